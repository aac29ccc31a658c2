// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/plain_operator.h"

#include "weft/devices/plain_operator.h"

namespace weft {

namespace {

std::vector<NDArray> data_of(const std::vector<Tensor>& tensors) {
  std::vector<NDArray> out;
  for (const Tensor& t : tensors) out.push_back(t.data());
  return out;
}

std::vector<Tensor> gradients_of(const operators::PlainOperator& op,
                                 const std::vector<bool>& wanted, const GradientCall& c) {
  const std::vector<NDArray> x = data_of(c.x);
  std::vector<Tensor> out(x.size()), inputs = c.x;
  inputs.push_back(c.g);
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!wanted[k]) continue;
    out[k] = make_tensor(op.name, plain_gradient(op, k, x, c.out.data(), c.g.data()), inputs,
                         [&op](const GradientCall&) -> std::vector<Tensor> {
                           throw Error(ErrorKind::dtype, cat("array.", op.name, ".gradient"),
                                       cat("the gradient of ", op.name, " has no gradient"))
                               .help("compose it of differences, products and sums");
                         });
  }
  return out;
}

}  // namespace

Tensor plain_operator(std::string_view name, const std::vector<Tensor>& operands) {
  const operators::PlainOperator& op = operators::plain_operator(name);
  std::vector<bool> wanted;  // what a gradient is called with is detached
  for (const Tensor& t : operands) wanted.push_back(t.requires_grad());
  return make_tensor(op.name, plain_run(op, data_of(operands)), operands,
                     [&op, wanted](const GradientCall& c) { return gradients_of(op, wanted, c); });
}

}  // namespace weft
