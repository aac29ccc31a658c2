// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several element-wise results of some arrays in one pass: by chunks on the host, one kernel on a
// grid, where numbers that differ from call to call may be among the operands.

#include <optional>
#include <span>
#include <vector>

#include "weft/devices/grid.h"
#include "weft/fusion/chunked.h"

namespace weft {

class FusedMap {
 public:
  /// Of graphs over inputs [0, inputs) of no axes and one real floating type; the last `numbers` of
  /// them are numbers.
  FusedMap(std::vector<Lazy> outputs, int inputs, int numbers = 0);
  /// Whether arrays of this type have such a pass on their device: real floats on the host and on
  /// machines with a grid.
  static bool suits(const NDArray& x);
  /// The type in which `step` computes arrays of one shape, or of no axes; nothing where their
  /// device has no grid, or where shapes or devices differ.
  static std::optional<Elem> step_elem(std::span<const NDArray* const> in);
  /// Which inputs the outputs read.
  const std::vector<int>& reads() const { return reads_; }
  std::size_t outputs() const { return outputs_.size(); }
  /// Into arrays of one shape of two axes, which overlap no input; `in` are all inputs, which
  /// broadcast to it. Inputs that are not read may be undefined.
  void operator()(std::span<const NDArray> out, std::span<const NDArray> in) const;
  /// Results that take the place of the first arrays: new arrays of their types and shapes, or
  /// written over them. On a grid.
  std::vector<NDArray> step(std::span<const NDArray> arrays, std::span<const Scalar> numbers,
                            bool in_place) const;
  /// Steps of several lists of arrays of the same types, with the same numbers, small ones in few
  /// launches.
  std::vector<std::vector<NDArray>> steps(std::span<const std::vector<NDArray>> lists,
                                          std::span<const Scalar> numbers, bool in_place) const;

 private:
  std::vector<NDArray> results(std::span<const NDArray> arrays, bool in_place) const;
  device::Map map(std::span<const NDArray* const> read, std::span<const Scalar> numbers) const;
  device::MapValues values(Elem compute) const;
  void on_grid(std::span<const NDArray> out, std::span<const NDArray> in,
               std::span<const Scalar> numbers) const;

  std::vector<Lazy> outputs_;
  int arrays_;
  std::vector<int> reads_;
  std::vector<const LazyNode*> leaves_;
  std::uint32_t serial_ = 0;  // programs are kept by it
  std::optional<ChunkedMap> chunks_;
};

}  // namespace weft
