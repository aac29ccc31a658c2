// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element-wise functions of arrays that are composed of table rows, such as activations, as one
// kernel, and each of their gradients as one more.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/autograd/tensor.h"
#include "weft/fusion/lazy.h"

namespace weft {

class FusedFunction {
 public:
  /// `value`: a graph over the inputs 0 to `inputs` - 1, which have no axes and the type of the
  /// computation. `name`: the operation in graphs of tensors. `total`: the sum of its values.
  FusedFunction(const std::string& name, const Lazy& value, int inputs, bool total = false);
  /// The type in which a function of these arrays is computed by one kernel; nothing where none is:
  /// on the host and on machines without a grid, for other types than real floats and for mixed
  /// ones.
  static std::optional<Elem> compute_elem(std::span<const NDArray* const> in);

  /// Computed in the function's type and rounded once to that of the arrays, which broadcast.
  NDArray operator()(std::span<const NDArray* const> in) const;
  Tensor operator()(const std::vector<Tensor>& in) const;

 private:
  struct Shared;
  std::shared_ptr<const Shared> shared_;
};

}  // namespace weft
