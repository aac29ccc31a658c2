// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/nn.h"

#include <cmath>

#include "weft/array/on_device.h"
#include "weft/array/random.h"
#include "weft/autograd/structured.h"
#include "weft/devices/grid.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/build.h"

namespace weft {

namespace {

Tensor uniform(const Ref<Device>& device, Dims shape, double bound, std::uint64_t seed,
               std::uint64_t first) {
  std::int64_t n = checked_size(shape);
  NDArray x = random_uniform(device, seed, first, n, Elem::float32).reshape(std::move(shape));
  return Tensor(arrays::add(arrays::multiply(x, 2 * bound), -bound), true);
}

NDArray zeros_like(const NDArray& x) { return full(x.device(), x.elem(), x.shape(), Scalar(0)); }

}  // namespace

namespace nn {

Linear::Linear(const Ref<Device>& device, std::int64_t in_features, std::int64_t out_features,
               std::uint64_t seed) {
  const double fan = static_cast<double>(std::max<std::int64_t>(in_features, 1));
  weight = uniform(device, Dims{in_features, out_features}, std::sqrt(6.0 / fan), seed, 0);
  // Four words of the stream to a counter: the bias begins where the weights end.
  bias = uniform(device, Dims{out_features}, std::sqrt(1.0 / fan), seed,
                 static_cast<std::uint64_t>((in_features * out_features + 3) / 4));
}

namespace {
/// exp(x - sums) g: what each class's loss gives to its score before the label's part.
NDArray class_gradients(const NDArray& x, const NDArray& sums, const NDArray& g) {
  NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
  const NDArray* operands[3] = {&x, &sums, &g};
  device::Map map;
  map.family = "class gradients";
  map.arrays = operands;
  map.compute = sums.elem();
  map.value = [to = sums.elem()](const std::vector<ir::Expr>& v, const std::vector<ir::Expr>&) {
    return ir::call("exp", {convert_value(v[0], to) - v[1]}) * convert_value(v[2], to);
  };
  device::grid_map(out, map);
  return out;
}
}  // namespace

Tensor label_losses(const Tensor& logits, const NDArray& at) {
  const NDArray& x = logits.data();
  const Dims flat{x.size()};
  const Axes last{false, Dims{-1}};
  if (x.size() == 0 || !has_grid(x) || !is_real_float(x.elem()))
    return -gather(reshape(log_softmax(logits, -1), flat), {at});
  // The sums of 16-bit floats keep 32 bits: their error is that of every class's share.
  const Elem wide = device::sum_elem(x.elem());
  NDArray sums = NDArray::empty(x.device(), wide, Dims{x.shape()[0]});
  on_device().logsumexp(sums, x, 2);
  auto as = [](const NDArray& v, Elem elem) { return v.elem() == elem ? v : v.astype(elem); };
  const NDArray picked = as(gather(x.reshape(flat), {&at, 1}), wide);
  return make_tensor(
      "label_losses", as(apply(Op::subtract, sums, picked), x.elem()), {logits},
      [at, sums, flat, last](const GradientCall& c) {
        const Dims column{at.size(), 1};
        if (c.g.requires_grad() || c.x[0].requires_grad()) {
          const Tensor shares = exp(c.x[0] - logsumexp(c.x[0], last, true));
          const Tensor zeros(full(at.device(), c.g.elem(), flat, Scalar(0)));
          const Tensor picked = scatter_add(zeros, {at}, c.g);
          return std::vector<Tensor>{shares * reshape(c.g, column) -
                                     reshape(picked, c.x[0].shape())};
        }
        const NDArray& g = c.g.data();
        const NDArray out = class_gradients(c.x[0].data(), sums.reshape(column), g.reshape(column));
        scatter(out.reshape(flat), {&at, 1}, apply(Op::negative, g), true, Checked::yes);
        return std::vector<Tensor>{Tensor(out)};
      });
}

Tensor cross_entropy(const Tensor& logits, const NDArray& labels) {
  if (logits.ndim() != 2 || labels.ndim() != 1 || labels.size() != logits.shape()[0] ||
      labels.size() == 0) {
    throw Error(
        ErrorKind::shape, "nn.cross_entropy.shape",
        cat("cross_entropy of ", describe(logits.data()), " with labels ", describe(labels)))
        .note("rule: logits (n, classes) and n labels, n at least 1");
  }
  const std::int64_t n = logits.shape()[0], classes = logits.shape()[1];
  auto extreme = [&](ReduceOp op) {
    std::int64_t v = 0;
    reduce(op, labels.astype(Elem::int64)).read_element(0, &v);
    return v;
  };
  const std::int64_t low = extreme(ReduceOp::min), high = extreme(ReduceOp::max);
  if (low < 0 || high >= classes) {
    throw Error(ErrorKind::index, "nn.cross_entropy.label",
                cat("label ", low < 0 ? low : high, " is outside [0, ", classes, ")"));
  }
  NDArray rows = arange(labels.device(), Elem::int64, 0, static_cast<double>(classes), n);
  NDArray at = apply(Op::add, rows, labels.astype(Elem::int64));
  return mean(label_losses(logits, at));
}

}  // namespace nn

namespace optim {

void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.set_grad(Tensor());
}

SGD::SGD(std::vector<Tensor> parameters, double lr, double momentum, double weight_decay)
    : Optimizer(std::move(parameters)),
      lr_(lr),
      momentum_(momentum),
      weight_decay_(weight_decay),
      velocity_(parameters_.size()) {}

void SGD::step() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& p = parameters_[i];
    if (!p.grad().defined()) continue;
    NDArray g = p.grad().data();
    if (weight_decay_ != 0) g = arrays::add(g, arrays::multiply(p.data(), weight_decay_));
    if (momentum_ != 0) {
      NDArray& v = velocity_[i];
      v = v.defined() ? arrays::add(arrays::multiply(v, momentum_), g) : g;
      g = v;
    }
    p.set_data(arrays::subtract(p.data(), arrays::multiply(g, lr_)));
  }
}

Adam::Adam(std::vector<Tensor> parameters, double lr, double beta1, double beta2, double eps,
           double weight_decay)
    : Optimizer(std::move(parameters)),
      lr_(lr),
      beta1_(beta1),
      beta2_(beta2),
      eps_(eps),
      weight_decay_(weight_decay),
      m_(parameters_.size()),
      v_(parameters_.size()) {}

void Adam::step() {
  ++t_;
  const double steps = static_cast<double>(t_);
  const double scale = lr_ / (1 - std::pow(beta1_, steps)),
               correction = 1 / (1 - std::pow(beta2_, steps));
  auto blend = [](const NDArray& a, double weight, const NDArray& b) {
    return arrays::add(arrays::multiply(a, weight), arrays::multiply(b, 1 - weight));
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& p = parameters_[i];
    if (!p.grad().defined()) continue;
    NDArray g = p.grad().data();
    if (weight_decay_ != 0) g = arrays::add(g, arrays::multiply(p.data(), weight_decay_));
    if (!m_[i].defined()) m_[i] = v_[i] = zeros_like(g);
    m_[i] = blend(m_[i], beta1_, g);
    v_[i] = blend(v_[i], beta2_, arrays::multiply(g, g));
    NDArray root = arrays::add(apply(Op::sqrt, arrays::multiply(v_[i], correction)), eps_);
    p.set_data(arrays::subtract(p.data(), arrays::divide(arrays::multiply(m_[i], scale), root)));
  }
}

}  // namespace optim

}  // namespace weft
