// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "weft/array/ndarray.h"

namespace weft {

/// Arrays with their axes in the order in which all of them lie in memory, where they have one that
/// is not row-major: element-wise work goes along memory, and results have the arrays' layout.
/// Broadcast to the shape then. The arrays outlive it.
class Turned {
 public:
  Turned(std::span<const NDArray* const> in, const Dims& shape);
  bool any() const { return !order_.empty(); }
  std::span<const NDArray* const> arrays() const { return arrays_; }
  /// What an operand of these extents has in that order.
  Dims extents(const Dims& own) const;
  /// A result of such extents in the operand's own.
  NDArray back(const NDArray& x, const Dims& own) const;

 private:
  std::vector<int> order_;
  std::vector<NDArray> views_;
  std::vector<const NDArray*> arrays_;
};

}  // namespace weft
