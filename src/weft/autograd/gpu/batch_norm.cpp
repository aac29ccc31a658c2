// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/gpu/batch_norm.h"

#include "weft/array/nest.h"
#include "weft/devices/grid.h"
#include "weft/elements/row_ir.h"

namespace weft::device {

using ir::Expr;

namespace {

Expr plus(const Expr& x, const Expr& y) { return row_value(Op::add, {x, y}); }
Expr minus(const Expr& x, const Expr& y) { return row_value(Op::subtract, {x, y}); }
Expr times(const Expr& x, const Expr& y) { return row_value(Op::multiply, {x, y}); }

/// The kernels of one normalisation: values of arrays along x's channels, sums over the rest.
class Channels {
 public:
  explicit Channels(const NDArray& x)
      : x_(x), compute_(sum_elem(x.elem())), over_(((std::uint64_t{1} << x.ndim()) - 1) & ~2u) {
    channels_ = Dims{x.shape()[1]};
    along_ = Dims{1, x.shape()[1]};
    for (int i = 2; i < x.ndim(); ++i) along_.push_back(1);
    count = static_cast<double>(x.size() / std::max<std::int64_t>(x.shape()[1], 1));
  }

  using Value = std::function<Expr(const std::vector<Expr>&, const std::vector<Expr>&)>;
  enum Kind : std::uint64_t { mean, variance, normal, gradient_sum, gradient_normal, gradient };

  NDArray sum(Kind kind, std::vector<NDArray> of, std::vector<Scalar> numbers, Value value) const {
    NDArray out = NDArray::empty(x_.device(), compute_, channels_);
    const Arrays arrays(std::move(of), *this);
    grid_reduce(ReduceOp::sum, compute_, out, map(kind, arrays, numbers, std::move(value)),
                x_.shape(), over_);
    return out;
  }
  /// Of the arrays that are there.
  NDArray all(Kind kind, const std::vector<NDArray>& given, std::vector<Scalar> numbers,
              Value value) const {
    NDArray out = NDArray::empty(x_.device(), x_.elem(), x_.shape());
    std::vector<NDArray> of;
    std::uint64_t form = 0;
    for (const NDArray& a : given) {
      form = form * 2 + a.defined();
      if (a.defined()) of.push_back(a);
    }
    const Arrays arrays(std::move(of), *this);
    Map one = map(kind, arrays, numbers, std::move(value));
    one.key += form << 3;
    grid_map(out, one);
    return out;
  }
  double count;  // of elements of a channel

 private:
  /// Vectors lie along axis 1.
  struct Arrays {
    Arrays(std::vector<NDArray> of, const Channels& c) : held(std::move(of)) {
      for (NDArray& a : held) {
        if (a.ndim() == 1) a = a.reshape(c.along_);
        pointers.push_back(&a);
      }
    }
    std::vector<NDArray> held;
    std::vector<const NDArray*> pointers;
  };
  Map map(Kind kind, const Arrays& arrays, const std::vector<Scalar>& numbers, Value value) const {
    Map out;
    out.family = "batch_norm";
    out.key = static_cast<std::uint64_t>(kind);
    out.arrays = arrays.pointers;
    out.numbers = numbers;
    out.compute = compute_;
    out.value = [this, value = std::move(value)](const std::vector<Expr>& loads,
                                                 const std::vector<Expr>& c) {
      std::vector<Expr> wide;
      for (const Expr& e : loads) wide.push_back(convert_value(e, compute_));
      return value(wide, c);
    };
    return out;
  }

  const NDArray& x_;
  Elem compute_;
  std::uint64_t over_;
  Dims channels_, along_;
};

Expr root(const Expr& variance, const Expr& eps) {
  return row_value(Op::rsqrt, {plus(variance, eps)});
}

}  // namespace

bool has_batch_norm(const NDArray& x) {
  return is_real_float(x.elem()) && x.ndim() >= 2 && x.size() > 0 && grid_of(x.device()).present();
}

BatchNorm batch_norm(const NDArray& x, const NDArray& weight, const NDArray& bias, double eps) {
  const Channels c(x);
  BatchNorm out;
  out.mean = c.sum(Channels::mean, {x}, {1 / c.count},
                   [](const auto& e, const auto& n) { return times(e[0], n[0]); });
  out.variance =
      c.sum(Channels::variance, {x, out.mean}, {1 / c.count}, [](const auto& e, const auto& n) {
        const Expr centred = minus(e[0], e[1]);
        return times(times(centred, centred), n[0]);
      });
  const bool weighted = weight.defined(), shifted = bias.defined();
  out.y = c.all(Channels::normal, {x, out.mean, out.variance, weight, bias}, {eps},
                [=](const auto& e, const auto& n) {
                  const Expr normal = times(minus(e[0], e[1]), root(e[2], n[0]));
                  const Expr scaled = weighted ? times(normal, e[3]) : normal;
                  return shifted ? plus(scaled, e.back()) : scaled;
                });
  return out;
}

BatchNormGradient batch_norm_gradient(const NDArray& g, const NDArray& x, const NDArray& mean,
                                      const NDArray& variance, const NDArray& weight, double eps) {
  const Channels c(x);
  BatchNormGradient out;
  out.bias =
      c.sum(Channels::gradient_sum, {g}, {}, [](const auto& e, const auto&) { return e[0]; });
  out.weight = c.sum(Channels::gradient_normal, {g, x, mean, variance}, {eps},
                     [](const auto& e, const auto& n) {
                       return times(e[0], times(minus(e[1], e[2]), root(e[3], n[0])));
                     });
  const bool weighted = weight.defined();
  out.x = c.all(Channels::gradient, {g, x, mean, variance, out.weight, out.bias, weight},
                {eps, 1 / c.count}, [=](const auto& e, const auto& n) {
                  const Expr spread = root(e[3], n[0]);
                  const Expr normal = times(minus(e[1], e[2]), spread);
                  const Expr rest = plus(times(e[5], n[1]), times(normal, times(e[4], n[1])));
                  return times(weighted ? times(e[6], spread) : spread, minus(e[0], rest));
                });
  return out;
}

}  // namespace weft::device
