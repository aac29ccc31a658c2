// SPDX-License-Identifier: Apache-2.0
// Operations on tensors and their gradients. Elementwise gradients are the cells of
// elements/elementwise.def.

#include <algorithm>

#include "weft/array/constant_operand.h"
#include "weft/array/pad.h"
#include "weft/array/row_gradients.h"
#include "weft/autograd/gpu/row_gradients.h"
#include "weft/autograd/tensor.h"
#include "weft/devices/dispatch.h"
#include "weft/devices/grid.h"
#include "weft/devices/reduce_program.h"
#include "weft/elements/gradient_ir.h"
#include "weft/elements/rows.h"

namespace weft {

namespace {

const Tensor none;  // a gradient that is zero almost everywhere

#define UNARY(name, rule, types, value, grad, domain, sentence)                          \
  Tensor grad_##name([[maybe_unused]] const Tensor& g, [[maybe_unused]] const Tensor& x, \
                     [[maybe_unused]] const Tensor& out) {                               \
    return grad;                                                                         \
  }
#define BINARY(name, rule, types, value, gx, gy, domain, sentence)                       \
  void grad_##name([[maybe_unused]] const Tensor& g, [[maybe_unused]] const Tensor& x,   \
                   [[maybe_unused]] const Tensor& y, [[maybe_unused]] const Tensor& out, \
                   bool want_x, bool want_y, Tensor& dx, Tensor& dy) {                   \
    if (want_x) dx = gx;                                                                 \
    if (want_y) dy = gy;                                                                 \
  }
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY

using UnaryGradient = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);
using BinaryGradient = void (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool,
                                bool, Tensor&, Tensor&);

struct Gradients {
  UnaryGradient unary;
  BinaryGradient binary;
};
constexpr Gradients kGradients[] = {
#define UNARY(name, rule, types, value, grad, ...) {grad_##name, nullptr},
#define BINARY(name, rule, types, value, gx, gy, ...) {nullptr, grad_##name},
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
};

/// Gradients of complex numbers are dL/dRe + i dL/dIm, so a row with complex results multiplies by
/// the conjugate of its derivative: of what `cell` makes of the conjugate of g.
template <typename F>
void with_conjugates(const GradientCall& c, std::vector<Tensor>& out, const F& cell) {
  if (!is_complex(c.out.elem())) return cell(c.g);
  auto conjugate = [](const Tensor& x) { return is_complex(x.elem()) ? conj(x) : x; };
  cell(conjugate(c.g));
  for (Tensor& g : out)
    if (g.defined()) g = conjugate(g);
}

/// The scalar as a 0-d tensor, for gradients that read it.
Tensor constant(const Scalar& s, const Tensor& like, bool read) {
  if (!read) return {};
  return Tensor(full(like.device(), promote_weak(like.elem(), s.kind), Dims{}, s));
}

/// Of a complex sign(x): g less its part along sign(x), over |x|, since the sign turns with x but
/// does not grow; 0 at 0.
Tensor sign_gradient(const Tensor& g, const Tensor& x, const Tensor& sign) {
  const Tensor along = apply(Op::real, apply(Op::multiply, conj(sign), g));
  const Tensor across = apply(Op::subtract, g, apply(Op::multiply, sign, along));
  const Tensor size = apply(Op::abs, x);
  const Tensor inverse = where(apply(Op::equal, size, Scalar(0)), constant(Scalar(0), size, true),
                               apply(Op::reciprocal, size));
  return apply(Op::multiply, across, inverse);
}

std::vector<int> all_axes(const Axes& axes, int ndim) {
  std::vector<int> out;
  if (axes.all) {
    for (int i = 0; i < ndim; ++i) out.push_back(i);
  } else {
    for (std::int64_t axis : axes.axes)
      out.push_back(normalize_axis(static_cast<int>(axis), ndim, "reduce"));
  }
  return out;
}
Dims kept_shape(const Dims& shape, const std::vector<int>& axes) {
  Dims out = shape;
  for (int axis : axes) out[axis] = 1;
  return out;
}

}  // namespace

Tensor apply(Op op, const Tensor& x) {
  const bool turns = op == Op::sign && is_complex(x.elem());
  return make_tensor(
      info(op).name.data(), apply(op, Arg(x.data())), {x},
      [op, turns](const GradientCall& c) {
        std::vector<Tensor> out(1);
        if (turns) out[0] = sign_gradient(c.g, c.x[0], c.out);
        // Parts of complex numbers, which no cell can say.
        if (op == Op::real) out[0] = astype(c.g, c.x[0].elem());
        if (op == Op::imag) out[0] = apply(Op::multiply, c.g, Scalar(std::complex<double>(0, 1)));
        const RowOperand operand[] = {{0, 0, true}};
        if (out[0].defined() || grid_row_gradients(op, c, operand, out)) return out;
        with_conjugates(c, out, [&](const Tensor& g) {
          out[0] = kGradients[row_of(op)].unary(g, c.x[0], c.out);
        });
        return out;
      },
      turns ? 1u | kResult : gradient_cell(op, 0).reads);
}

Tensor apply(Op op, const Tensor& x, const Tensor& y) {
  bool want_x = x.requires_grad(), want_y = y.requires_grad();
  return make_tensor(
      info(op).name.data(), apply(op, Arg(x.data()), Arg(y.data())), {x, y},
      [op, want_x, want_y](const GradientCall& c) {
        std::vector<Tensor> out(2);
        const RowOperand operands[] = {{0, 0, want_x}, {1, 0, want_y}};
        const unsigned done = grid_row_gradients(op, c, operands, out);
        const bool x_open = want_x && !(done & 1), y_open = want_y && !(done & 2);
        if (!x_open && !y_open) return out;
        with_conjugates(c, out, [&](const Tensor& g) {
          kGradients[row_of(op)].binary(g, c.x[0], c.x[1], c.out, x_open, y_open, out[0], out[1]);
        });
        return out;
      },
      (want_x ? gradient_cell(op, 0).reads : 0) | (want_y ? gradient_cell(op, 1).reads : 0));
}

namespace {
/// The gradient of x ** p, p a number: as the row has it, but the power stays one of a number,
/// which may be a product.
Tensor power_gradient(const Tensor& g, const Tensor& x, const Scalar& y) {
  const double p = exponent_of(y);
  const Scalar less = y.kind == Kind::real ? Scalar(p - 1) : Scalar(y.i - 1);
  const Tensor scaled = apply(Op::multiply, g, y);
  return p == 1 ? scaled : apply(Op::multiply, scaled, p == 2 ? x : apply(Op::pow, x, less));
}
}  // namespace

Tensor apply(Op op, const Tensor& x, const Scalar& y) {
  return make_tensor(
      info(op).name.data(), apply(op, Arg(x.data()), Arg(y)), {x},
      [op, y](const GradientCall& c) {
        std::vector<Tensor> out(1);
        Tensor unused;
        const RowOperand operands[] = {{0, 0, true}, {-1, y, false}};
        if (grid_row_gradients(op, c, operands, out)) return out;
        if (op == Op::pow && is_real_float(c.x[0].elem()) && exponent_of(y) != 0)
          return std::vector<Tensor>{power_gradient(c.g, c.x[0], y)};
        with_conjugates(c, out, [&](const Tensor& g) {
          kGradients[row_of(op)].binary(g, c.x[0],
                                        constant(y, c.x[0], gradient_cell(op, 0).reads & 2), c.out,
                                        true, false, out[0], unused);
        });
        return out;
      },
      gradient_cell(op, 0).reads & ~2u);
}

Tensor apply(Op op, const Scalar& x, const Tensor& y) {
  return make_tensor(
      info(op).name.data(), apply(op, Arg(x), Arg(y.data())), {y},
      [op, x](const GradientCall& c) {
        std::vector<Tensor> out(1);
        Tensor unused;
        const RowOperand operands[] = {{-1, x, false}, {0, 0, true}};
        if (grid_row_gradients(op, c, operands, out)) return out;
        with_conjugates(c, out, [&](const Tensor& g) {
          kGradients[row_of(op)].binary(g, constant(x, c.x[0], gradient_cell(op, 1).reads & 1),
                                        c.x[0], c.out, false, true, unused, out[0]);
        });
        return out;
      },
      // The tensor is the row's second operand and this node's first input.
      (gradient_cell(op, 1).reads & kResult) | (gradient_cell(op, 1).reads >> 1 & 1));
}

Tensor ones_like(const Tensor& x) {
  return Tensor(full(x.device(), x.elem(), x.shape(), Scalar(1)));
}

Tensor astype(const Tensor& x, Elem elem) {
  if (x.elem() == elem) return x;
  return make_tensor(
      "astype", x.data().astype(elem), {x},
      [](const GradientCall& c) { return std::vector<Tensor>{astype(c.g, c.x[0].elem())}; },
      kReadsNothing);
}

Tensor sum(const Tensor& x, const Axes& axes, bool keepdims) {
  Dims kept = kept_shape(x.shape(), all_axes(axes, x.ndim()));
  return make_tensor(
      "sum", reduce(ReduceOp::sum, x.data(), axes, keepdims), {x},
      [kept](const GradientCall& c) {
        return std::vector<Tensor>{broadcast_to(reshape(c.g, kept), c.x[0].shape())};
      },
      kReadsNothing);
}

Tensor mean(const Tensor& x, const Axes& axes, bool keepdims) {
  if (is_integer(x.elem()) || x.elem() == Elem::boolean)
    return mean(astype(x, Elem::float32), axes, keepdims);
  const Dims kept = kept_shape(x.shape(), all_axes(axes, x.ndim()));
  double count = 1;
  for (int a = 0; a < x.ndim(); ++a)
    if (kept[a] != x.shape()[a]) count *= static_cast<double>(x.shape()[a]);
  const auto spread = [kept, count](const GradientCall& c) {
    return std::vector<Tensor>{broadcast_to(reshape(c.g * (1 / count), kept), c.x[0].shape())};
  };
  if (x.data().size() > 0 && count > 1 && !x.data().on_host()) {
    if (NDArray one = moments(Moment::mean, x.data(), axes, keepdims, 0); one.defined())
      return make_tensor("mean", std::move(one), {x}, spread, kReadsNothing);
  }
  if (is_narrow_float(
          x.elem())) {  // the sum may lie beyond the type's range, where the mean does not
    const NDArray total = reduce(ReduceOp::sum, x.data(), axes, keepdims, Elem::float32);
    return make_tensor("mean", apply(Op::multiply, total, Arg(1 / count)).astype(x.elem()), {x},
                       spread, kReadsNothing);
  }
  return sum(x, axes, keepdims) * (1 / count);  // of no elements: 0 times infinity, NaN
}

namespace {

Tensor extreme(ReduceOp op, const char* name, const Tensor& x, const Axes& axes, bool keepdims) {
  Dims kept = kept_shape(x.shape(), all_axes(axes, x.ndim()));
  Axes same = axes;
  return make_tensor(
      name, reduce(op, x.data(), axes, keepdims), {x}, [kept, same](const GradientCall& c) {
        // Equal extremes share the gradient.
        if (Tensor own = grid_extreme_gradient(c, kept); own.defined())
          return std::vector<Tensor>{own};
        Tensor hit = astype(equal(c.x[0].detach(), reshape(c.out.detach(), kept)), c.g.elem());
        Tensor share = hit / sum(hit, same, true);
        return std::vector<Tensor>{reshape(c.g, kept) * share};
      });
}

}  // namespace

Tensor max(const Tensor& x, const Axes& axes, bool keepdims) {
  return extreme(ReduceOp::max, "max", x, axes, keepdims);
}

Tensor min(const Tensor& x, const Axes& axes, bool keepdims) {
  return extreme(ReduceOp::min, "min", x, axes, keepdims);
}

Tensor reshape(const Tensor& x, const Dims& shape) {
  return make_tensor(
      "reshape", x.data().reshape(shape), {x},
      [](const GradientCall& c) { return std::vector<Tensor>{reshape(c.g, c.x[0].shape())}; },
      kReadsNothing);
}

Tensor permute(const Tensor& x, std::span<const int> axes) {
  std::vector<int> back(axes.size());
  NDArray data = x.data().permute(axes);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    back[static_cast<std::size_t>(normalize_axis(axes[i], x.ndim(), "permute"))] =
        static_cast<int>(i);
  }
  return make_tensor(
      "permute", std::move(data), {x},
      [back](const GradientCall& c) { return std::vector<Tensor>{permute(c.g, back)}; },
      kReadsNothing);
}

Tensor transpose(const Tensor& x, int a, int b) {
  return make_tensor(
      "transpose", x.data().transpose(a, b), {x},
      [a, b](const GradientCall& c) { return std::vector<Tensor>{transpose(c.g, a, b)}; },
      kReadsNothing);
}

Tensor broadcast_to(const Tensor& x, const Dims& shape) {
  return make_tensor(
      "broadcast_to", x.data().broadcast_to(shape), {x},
      [](const GradientCall& c) { return std::vector<Tensor>{sum_to(c.g, c.x[0].shape())}; },
      kReadsNothing);
}

Tensor sum_to(const Tensor& x, const Dims& shape) {
  Axes axes;
  axes.all = false;
  int shift = x.ndim() - shape.size();
  for (int i = 0; i < x.ndim(); ++i) {
    if (i < shift || (shape[i - shift] == 1 && x.shape()[i] != 1)) axes.axes.push_back(i);
  }
  return axes.axes.empty() ? x : reshape(sum(x, axes, true), shape);
}

Tensor flip(const Tensor& x, std::span<const int> axes) {
  std::vector<int> kept(axes.begin(), axes.end());
  return make_tensor(
      "flip", x.data().flip(axes), {x},
      [kept](const GradientCall& c) { return std::vector<Tensor>{flip(c.g, kept)}; },
      kReadsNothing);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.ndim() == 1) {
    Dims row{1, a.size()};
    Tensor out = matmul(reshape(a, row), b);
    Dims shape(out.shape().data(), out.ndim());
    Dims slim;
    for (int i = 0; i < shape.size(); ++i) {
      if (i != shape.size() - (b.ndim() == 1 ? 1 : 2)) slim.push_back(shape[i]);
    }
    return reshape(out, slim);
  }
  if (b.ndim() == 1) {
    Tensor out = matmul(a, reshape(b, Dims{b.size(), 1}));
    return reshape(out, Dims(out.shape().data(), out.ndim() - 1));
  }
  if (a.ndim() > 2 && b.ndim() == 2 && a.size() > 0) {  // many rows by one matrix: one product
    const std::int64_t k = a.shape()[a.ndim() - 1];
    Dims shape = a.shape();
    shape[a.ndim() - 1] = b.shape()[1];
    if (k == b.shape()[0]) return reshape(matmul(reshape(a, Dims{a.size() / k, k}), b), shape);
  }
  const bool want_a = a.requires_grad(), want_b = b.requires_grad();
  return make_tensor(
      "matmul", matmul(a.data(), b.data()), {a, b},
      [want_a, want_b](const GradientCall& c) {
        std::vector<Tensor> out(2);
        with_conjugates(c, out, [&](const Tensor& g) {
          if (want_a) out[0] = matmul(g, transpose(c.x[1], -2, -1));
          if (want_b) out[1] = matmul(transpose(c.x[0], -2, -1), g);
        });
        return out;
      },
      (want_b ? 1u : 0u) | (want_a ? 2u : 0u));
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.ndim() > 1 && x.size() > 0) {
    const std::int64_t k = x.shape()[x.ndim() - 1];
    const Tensor rows = x.ndim() == 2 ? x : reshape(x, Dims{x.size() / k, k});
    if (NDArray one = device_linear(rows.data(), weight.data(), bias.data()); one.defined()) {
      const bool want_x = x.requires_grad(), want_w = weight.requires_grad();
      Dims shape = x.shape();
      shape[x.ndim() - 1] = bias.shape()[0];
      const Tensor out = make_tensor(
          "linear", std::move(one), {rows, weight, bias},
          [want_x, want_w](const GradientCall& c) {
            std::vector<Tensor> found(3);
            if (want_x) found[0] = matmul(c.g, transpose(c.x[1], -2, -1));
            if (want_w) found[1] = matmul(transpose(c.x[0], -2, -1), c.g);
            found[2] = sum_to(c.g, c.x[2].shape());
            return found;
          },
          (want_w ? 1u : 0u) | (want_x ? 2u : 0u));
      return x.ndim() == 2 ? out : reshape(out, shape);
    }
  }
  return matmul(x, weight) + bias;
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const bool want_a = a.requires_grad(), want_b = b.requires_grad();
  return make_tensor(
      "where", where(condition.data(), Arg(a.data()), Arg(b.data())), {a, b},
      [condition, want_a, want_b](const GradientCall& c) {
        std::vector<Tensor> out(2);
        if (grid_where_gradients(condition.data(), c, want_a ? 0 : -1, want_b ? 1 : -1, out))
          return out;
        Tensor zero(full(c.g.data().device(), c.g.elem(), Dims{}, Scalar(0)));
        return std::vector<Tensor>{where(condition, c.g, zero), where(condition, zero, c.g)};
      },
      kReadsNothing);
}

Tensor where(const Tensor& condition, const Tensor& x, const Scalar& number, bool chosen) {
  const auto choice = [chosen](const NDArray& test, const NDArray& own, const Scalar& other) {
    return chosen ? where(test, Arg(own), Arg(other)) : where(test, Arg(other), Arg(own));
  };
  return make_tensor(
      "where", choice(condition.data(), x.data(), number), {x},
      [condition, chosen](const GradientCall& c) {
        std::vector<Tensor> out(1);
        if (!grid_where_gradients(condition.data(), c, chosen ? 0 : -1, chosen ? -1 : 0, out))
          out[0] = where(condition, c.g, Scalar(0), chosen);
        return out;
      },
      kReadsNothing);
}

Tensor slice_view(const Tensor& x, NDArray view, std::function<NDArray(const NDArray&)> same_view) {
  return make_tensor(
      "getitem", std::move(view), {x},
      [same_view](const GradientCall& c) {
        const Tensor& g = c.g;
        NDArray grown = full(g.data().device(), g.elem(), c.x[0].shape(), Scalar(0));
        assign(same_view(grown), g.data());
        return std::vector<Tensor>{make_tensor(
            "getitem_gradient", std::move(grown), {g},
            [same_view](const GradientCall& d) {
              return std::vector<Tensor>{slice_view(d.g, same_view(d.g.data()), same_view)};
            },
            kReadsNothing)};
      },
      kReadsNothing);
}

Tensor concat(std::span<const Tensor> xs, int axis) {
  std::vector<NDArray> arrays;
  for (const Tensor& x : xs) arrays.push_back(x.data());
  NDArray joined = concat(arrays, axis);
  int a = normalize_axis(axis, joined.ndim(), "concat");
  return make_tensor(
      "concat", std::move(joined), {xs.begin(), xs.end()},
      [a](const GradientCall& c) {
        std::vector<Tensor> out;
        std::int64_t at = 0;
        for (const Tensor& x : c.x) {
          std::int64_t n = x.shape()[a];
          auto part = [a, at, n](const NDArray& whole) { return whole.slice(a, at, n, 1); };
          out.push_back(slice_view(c.g, part(c.g.data()), part));
          at += n;
        }
        return out;
      },
      kReadsNothing);
}

Tensor pad(const Tensor& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths) {
  if (static_cast<int>(widths.size()) != x.ndim()) {
    throw Error(ErrorKind::shape, "array.pad.rank",
                cat("pad of ", describe(x.data()), " got ", widths.size(), " widths"));
  }
  auto middle = [widths, inner = x.shape()](const NDArray& whole) {
    NDArray part = whole;
    for (int i = 0; i < inner.size(); ++i)
      part = part.slice(i, widths[static_cast<std::size_t>(i)].first, inner[i], 1);
    return part;
  };
  return make_tensor(
      "pad", pad(x.data(), widths, Scalar(0)), {x},
      [middle](const GradientCall& c) {
        return std::vector<Tensor>{slice_view(c.g, middle(c.g.data()), middle)};
      },
      kReadsNothing);
}

Tensor gather(const Tensor& x, std::vector<NDArray> indices) {
  NDArray data = gather(x.data(), indices);
  return make_tensor(
      "gather", std::move(data), {x},
      [indices](const GradientCall& c) {
        NDArray grown = full(c.g.data().device(), c.g.elem(), c.x[0].shape(), Scalar(0));
        scatter(grown, indices, c.g.data(), true, Checked::yes);
        return std::vector<Tensor>{make_tensor(
            "scatter", std::move(grown), {c.g},
            [indices](const GradientCall& d) { return std::vector<Tensor>{gather(d.g, indices)}; },
            kReadsNothing)};
      },
      kReadsNothing);
}

namespace {
Tensor along(RowKernel kind, const Tensor& a, const Tensor& b, int axis) {
  const NDArray* in[2] = {&a.data(), &b.data()};
  return Tensor(apply_rows_along(kind, in, axis));
}
}  // namespace

Tensor softmax(const Tensor& x, int axis) {
  return make_tensor(
      "softmax", softmax(x.data(), axis), {x},
      [axis](const GradientCall& c) {
        if (gradient_is_linked(c)) {
          const Axes axes{false, Dims{axis}};
          return std::vector<Tensor>{c.out * (c.g - sum(c.g * c.out, axes, true))};
        }
        return std::vector<Tensor>{along(RowKernel::softmax_gradient, c.out, c.g, axis)};
      },
      kResult);
}

Tensor log_softmax(const Tensor& x, int axis) {
  return make_tensor(
      "log_softmax", log_softmax(x.data(), axis), {x},
      [axis](const GradientCall& c) {
        if (gradient_is_linked(c)) {
          const Axes axes{false, Dims{axis}};
          return std::vector<Tensor>{c.g - exp(c.out) * sum(c.g, axes, true)};
        }
        return std::vector<Tensor>{along(RowKernel::log_softmax_gradient, c.out, c.g, axis)};
      },
      kResult);
}

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdims) {
  Dims kept = kept_shape(x.shape(), all_axes(axes, x.ndim()));
  return make_tensor("logsumexp", logsumexp(x.data(), axes, keepdims), {x},
                     [kept](const GradientCall& c) {
                       if (Tensor own = grid_logsumexp_gradient(c, kept); own.defined())
                         return std::vector<Tensor>{own};
                       Tensor shifted = c.x[0] - reshape(c.out, kept);
                       return std::vector<Tensor>{reshape(c.g, kept) * exp(shifted)};
                     });
}

Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps) {
  const bool weighted = scale.defined();
  std::vector<Tensor> inputs = {x};
  if (weighted) inputs.insert(inputs.end(), {scale, shift});
  return make_tensor(
      "layer_norm",
      weighted ? layer_norm(x.data(), scale.data(), shift.data(), eps)
               : layer_norm(x.data(), {}, {}, eps),
      std::move(inputs),
      [eps, weighted](const GradientCall& c) {
        const Tensor &g = c.g, &in = c.x[0];
        const NDArray &own = in.data(), &dy = g.data();
        const Axes last{false, Dims{-1}};
        const bool linked = gradient_is_linked(c);
        std::vector<Tensor> out(c.x.size());
        const bool one_type = own.elem() == dy.elem() && own.shape() == dy.shape() &&
                              own.size() > 0 && (!weighted || own.elem() == c.x[1].elem());
        if (weighted && !linked && own.on_host() && one_type &&
            (own.elem() == Elem::float32 || own.elem() == Elem::float64)) {
          auto found = layer_norm_gradients(own, c.x[1].data(), dy, eps);
          for (std::size_t k = 0; k < 3; ++k) out[k] = Tensor(std::move(found[k]));
          return out;
        }
        if (!linked && !own.on_host() && own.elem() == dy.elem() && own.shape() == dy.shape() &&
            is_real_float(own.elem()) && !is_float8(own.elem()) && own.size() > 0 &&
            device::row_kernel_fits(own.device(), own.shape()[own.ndim() - 1])) {
          std::vector<const NDArray*> operands = {&own, &dy};
          if (weighted) operands.push_back(&c.x[1].data());
          out[0] = Tensor(apply_rows(RowKernel::layer_norm_gradient, operands, eps));
          if (!weighted) return out;
          const auto sums = device::grid_column_sums(own, dy, eps);
          out[1] = Tensor(sums[1].astype(c.x[1].elem()));
          out[2] = Tensor(sums[0].astype(c.x[2].elem()));
          return out;
        }
        const Tensor gs = weighted ? g * c.x[1] : g;
        Tensor centred = in - mean(in, last, true);
        Tensor spread = rsqrt(mean(centred * centred, last, true) + eps);
        Tensor normal = centred * spread;
        if (linked) {
          out[0] = (gs - mean(gs, last, true) - normal * mean(gs * normal, last, true)) * spread;
        } else {
          const NDArray* operands[2] = {&in.data(), &gs.data()};
          out[0] = Tensor(apply_rows(RowKernel::layer_norm_gradient, operands, eps));
        }
        if (!weighted) return out;
        out[1] = sum_to(g * normal, c.x[1].shape());
        out[2] = sum_to(g, c.x[2].shape());
        return out;
      },
      weighted ? 3 : 1);
}

}  // namespace weft
