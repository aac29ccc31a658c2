// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element-wise functions of arrays that are composed of table rows, such as activations, as one
// kernel on devices with a grid, and the gradients of a result as one more.

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
  enum class Total : std::uint8_t { none, sum, mean };
  /// Of graphs over the inputs 0 to `inputs` - 1, which have no axes and the arrays' types. `name`:
  /// the operation in graphs of tensors. `total`: of the only graph's values. Nothing where a
  /// kernel cannot say what the graphs do: complex numbers, and nodes that are not element-wise.
  static std::optional<FusedFunction> make(const std::string& name, std::vector<Lazy> values,
                                           int inputs, Total total);
  /// Whether these arrays have such kernels: all on one device with a grid, none of them empty.
  static bool suits(std::span<const NDArray* const> in);

  /// For arrays of the graphs' types, which broadcast. 16-bit floats are computed in float32 and
  /// rounded once.
  std::vector<NDArray> operator()(std::span<const NDArray* const> in) const;
  /// The results have gradients where the graphs' values have. The gradient of a gradient is a
  /// function of this kind, too.
  std::vector<Tensor> operator()(const std::vector<Tensor>& in) const;

 private:
  struct Shared;
  struct Derivative;
  std::shared_ptr<const Shared> shared_;
};

}  // namespace weft
