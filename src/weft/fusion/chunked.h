// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementwise functions of several operations on the host, a chunk at a time: what lies between two
// operations stays in the first-level cache, and 16-bit floats are rounded once, at the end.
// Nothing is compiled: the steps are the kernels of the tables.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/fusion/lazy.h"

namespace weft {

class ChunkedMap {
 public:
  /// Of rows, casts, choices and numbers over inputs [0, inputs); their shapes are not looked at.
  /// `total`: outputs are summed. Nothing where a node is of another kind or has no kernel.
  static std::optional<ChunkedMap> make(const std::vector<Lazy>& outputs, int inputs, bool total);
  ~ChunkedMap();
  ChunkedMap(ChunkedMap&&) noexcept;
  /// For arrays on the host of the graph's types, which broadcast together.
  std::vector<NDArray> run(const std::vector<NDArray>& inputs) const;
  /// The one result for a few elements of such arrays, all of one shape without gaps; undefined for
  /// others.
  NDArray run_few(std::span<const NDArray* const> inputs) const;
  /// The same into arrays of two axes, whose rows may lie apart and overlap no
  /// input. Inputs that no output reads may be undefined.
  void run_into(std::span<const NDArray> out, std::vector<NDArray> inputs) const;

 private:
  struct Impl;
  explicit ChunkedMap(std::unique_ptr<Impl> impl);
  bool run_as_rows(const std::vector<NDArray>& out, const std::vector<NDArray>& inputs,
                   const Dims& shape) const;
  std::unique_ptr<Impl> impl_;
};

/// Elements of an array limited to [low, high], in one pass; numbers of the array's kind. Undefined
/// on a device that has neither the host's memory nor a grid.
NDArray clipped(const NDArray& x, const std::optional<Scalar>& low,
                const std::optional<Scalar>& high);

}  // namespace weft
