// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/nn.h"

#include <cmath>

#include "weft/array/on_device.h"
#include "weft/array/random.h"
#include "weft/autograd/structured.h"
#include "weft/devices/grid.h"
#include "weft/devices/operators.h"
#include "weft/devices/pending_checks.h"
#include "weft/devices/reduce_program.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/build.h"
#include "weft/runtime/recording.h"

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
/// (exp(x - sums) - the label's 1) g: the gradients of losses towards the scores of all classes.
NDArray class_gradients(const NDArray& x, const NDArray& sums, const NDArray& places,
                        const NDArray& g) {
  NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
  const NDArray* operands[4] = {&x, &sums, &places, &g};
  device::Map map;
  map.family = "class gradients";
  map.arrays = operands;
  map.compute = sums.elem();
  map.numbered = true;
  map.value = [to = sums.elem()](const std::vector<ir::Expr>& v,
                                 const std::vector<ir::Expr>& numbers) {
    const ir::Expr label = ir::eq(ir::cast(v[2]->dtype, numbers[0]), v[2]);
    const ir::Expr one = ir::make_const(1, dtype_of(to)), zero = ir::make_const(0, dtype_of(to));
    return (ir::call("exp", {convert_value(v[0], to) - v[1]}) - ir::select(label, one, zero)) *
           convert_value(v[3], to);
  };
  device::grid_map(out, map);
  return out;
}

/// The losses of labels that are checked at once.
Tensor composed_losses(const Tensor& logits, const NDArray& labels, const Error& outside) {
  const std::int64_t n = logits.shape()[0], classes = logits.shape()[1];
  auto extreme = [&](ReduceOp op) {
    std::int64_t v = 0;
    reduce(op, labels).astype(Elem::int64).read_element(0, &v);
    return v;
  };
  if (n > 0 && (extreme(ReduceOp::min) < 0 || extreme(ReduceOp::max) >= classes)) throw outside;
  // Machines of 32 bits have labels of 32 bits; of narrower ones the places would not fit.
  const Elem elem = elem_bytes(labels.elem()) < 4 ? Elem::int64 : labels.elem();
  const NDArray first = arange(labels.device(), elem, 0, static_cast<double>(classes), n);
  return -gather(reshape(log_softmax(logits, -1), Dims{logits.data().size()}),
                 {apply(Op::add, first, labels.astype(elem))});
}
}  // namespace

Tensor label_losses(const Tensor& logits, const NDArray& labels, const Error& outside) {
  const NDArray& x = logits.data();
  if (x.size() == 0 || !has_grid(x) || !is_real_float(x.elem()))
    return composed_losses(logits, labels, outside);
  const Dims flat{x.size()};
  const Axes last{false, Dims{-1}};
  const NDArray given = labels.contiguous();
  auto each = [&](Elem elem) { return NDArray::empty(x.device(), elem, given.shape()); };
  // The sums of 16-bit floats keep 32 bits: their error is that of every class's share.
  const NDArray losses = each(x.elem()), sums = each(device::sum_elem(x.elem())),
                at = each(device::fits_narrow(x.size()) ? Elem::int32 : Elem::int64);
  // While work is recorded nobody can be told: the loss of such a label is no number.
  const bool told = !runtime::recording_on(x.device());
  label_losses_program(losses, sums, at, x, given, told ? pending_flag(x.device()) : NDArray{});
  if (told) add_label_check(given, x.shape()[1], outside);
  return make_tensor(
      "label_losses", losses, {logits}, [at, sums, flat, last](const GradientCall& c) {
        const Dims column{at.size(), 1};
        if (c.g.requires_grad() || c.x[0].requires_grad()) {
          const Tensor shares = exp(c.x[0] - logsumexp(c.x[0], last, true));
          const Tensor zeros(full(at.device(), c.g.elem(), flat, Scalar(0)));
          const Tensor picked = scatter_add(zeros, {at}, c.g);
          return std::vector<Tensor>{shares * reshape(c.g, column) -
                                     reshape(picked, c.x[0].shape())};
        }
        return std::vector<Tensor>{Tensor(class_gradients(
            c.x[0].data(), sums.reshape(column), at.reshape(column), c.g.data().reshape(column)))};
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
  const auto outside = Error(ErrorKind::index, "nn.cross_entropy.label",
                             cat("a label is outside [0, ", logits.shape()[1], ")"));
  return mean(label_losses(logits, labels, outside));
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
