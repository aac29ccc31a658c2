// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/lazy.h"

#include "weft/array/constant_operand.h"
#include "weft/elements/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace weft {

Lazy Lazy::input(int index, Elem elem, Dims shape) {
  auto n = make_ref<LazyNode>();
  n->index = index;
  n->elem = elem;
  n->shape = std::move(shape);
  return Lazy(n);
}
Lazy Lazy::number(const Scalar& value, Elem elem) {
  auto n = make_ref<LazyNode>();
  n->kind = LazyKind::number;
  n->elem = elem;
  n->number = value;
  return Lazy(n);
}
Elem Lazy::elem() const { return node_->elem; }
const Dims& Lazy::shape() const { return node_->shape; }

namespace {

Ref<LazyNode> make(LazyKind kind, Elem elem, Dims shape, std::vector<Lazy> in) {
  auto n = make_ref<LazyNode>();
  n->kind = kind;
  n->elem = elem;
  n->shape = std::move(shape);
  n->in = std::move(in);
  return n;
}

Lazy row(Op op, const Types& types, Dims shape, std::vector<Lazy> in) {
  auto n = make(LazyKind::elementwise, types.result, std::move(shape), std::move(in));
  n->op = op;
  n->compute = types.compute;
  return Lazy(n);
}

std::uint64_t mask_of(const Axes& axes, int ndim, std::string_view name) {
  if (axes.all) return (std::uint64_t{1} << ndim) - 1;
  std::uint64_t mask = 0;
  for (std::int64_t axis : axes.axes) {
    int a = normalize_axis(static_cast<int>(axis), ndim, name);
    if (mask >> a & 1) {
      throw Error(ErrorKind::value, cat("array.", name, ".repeated"),
                  cat(name, " names axis ", a, " twice"));
    }
    mask |= std::uint64_t{1} << a;
  }
  return mask;
}

}  // namespace

Lazy apply(Op op, const Lazy& x) {
  const Elem elems[1] = {x.elem()};
  return row(op, resolve(op, elems, {}), x.shape(), {x});
}
Lazy apply(Op op, const Lazy& x, const Lazy& y) {
  const Elem elems[2] = {x.elem(), y.elem()};
  const Dims* shapes[2] = {&x.shape(), &y.shape()};
  const Dims common = broadcast_shapes(shapes, info(op).name);
  // Beside an operand of the whole shape, what was spread is read where it is.
  const auto bare = [&](const Lazy& v, const Lazy& beside) {
    return v->kind == LazyKind::broadcast && !v->held && beside.shape() == common ? v->in[0] : v;
  };
  const Lazy left = bare(x, y);
  return row(op, resolve(op, elems, {}), common, {left, bare(y, left)});
}
namespace {
/// Powers as eager operations compute them (known.h); undefined where these call pow.
std::optional<Lazy> known_power(const Lazy& x, double p) {
  if (p == 2) return apply(Op::square, x);
  if (p == 3) return apply(Op::multiply, apply(Op::square, x), x);
  if (!is_real_float(x.elem())) return std::nullopt;
  if (p == -1) return apply(Op::reciprocal, x);
  if (p != 0.5 && p != -0.5) return std::nullopt;
  const auto value = [&](double v) { return Lazy::number(Scalar(v), x.elem()); };
  const double infinity = std::numeric_limits<double>::infinity();
  const Lazy root =
      where(apply(Op::equal, x, Scalar(0.0)), value(0),
            where(apply(Op::equal, x, Scalar(-infinity)), value(infinity), apply(Op::sqrt, x)));
  return p < 0 ? apply(Op::reciprocal, root) : root;
}
}  // namespace

Lazy apply(Op op, const Lazy& x, const Scalar& y) {
  const Elem elems[1] = {x.elem()};
  Types t = resolve(op, elems, {&y, 1});
  if (op == Op::pow && !is_complex(t.compute) && elem_bytes(t.compute) != 2) {
    if (std::optional<Lazy> power = known_power(astype(x, t.compute), exponent_of(y)))
      return *power;
  }
  return row(op, t, x.shape(), {x, Lazy::number(y, t.compute)});
}
Lazy apply(Op op, const Scalar& x, const Lazy& y) {
  const Elem elems[1] = {y.elem()};
  Types t = resolve(op, elems, {&x, 1});
  return row(op, t, y.shape(), {Lazy::number(x, t.compute), y});
}
Lazy astype(const Lazy& x, Elem elem) {
  if (x.elem() == elem) return x;
  return Lazy(make(LazyKind::cast, elem, x.shape(), {x}));
}
Lazy where(const Lazy& condition, const Lazy& a, const Lazy& b) {
  const Dims* shapes[3] = {&condition.shape(), &a.shape(), &b.shape()};
  Elem e = promote(a.elem(), b.elem());
  return Lazy(make(LazyKind::where, e, broadcast_shapes(shapes, "where"),
                   {astype(condition, Elem::boolean), astype(a, e), astype(b, e)}));
}
Lazy broadcast_to(const Lazy& x, const Dims& shape) {
  const Dims* shapes[2] = {&x.shape(), &shape};
  Dims common = broadcast_shapes(shapes, "broadcast_to");
  if (!(common == shape)) {
    throw Error(ErrorKind::shape, "array.broadcast_to.shape",
                cat("shape ", to_string(x.shape()), " does not broadcast to ", to_string(shape)));
  }
  if (x.shape() == shape) return x;
  return Lazy(make(LazyKind::broadcast, x.elem(), shape, {x}));
}
Lazy detach(const Lazy& x) {
  auto n = make(LazyKind::broadcast, x.elem(), x.shape(), {x});
  n->held = true;
  return Lazy(n);
}
Lazy reduce(ReduceOp op, const Lazy& x, const Axes& axes, bool keepdims,
            std::optional<Elem> dtype) {
  std::uint64_t mask = mask_of(axes, x.ndim(), info(op).name);
  Elem e = reduced_elem(op, x.elem(), dtype);
  Dims shape;
  for (int i = 0; i < x.ndim(); ++i) {
    bool gone = mask >> i & 1;
    if (!gone) shape.push_back(x.shape()[i]);
    else if (keepdims) shape.push_back(1);
  }
  auto n = make(LazyKind::reduce, e, shape, {astype(x, e)});
  n->reduction = op;
  n->mask = mask;
  return Lazy(n);
}
Lazy variance(const Lazy& x, const Axes& axes, bool keepdims, double correction, bool root) {
  WEFT_CHECK(x.elem() == Elem::float32 || x.elem() == Elem::float64, "variance of ",
             name_of(x.elem()));
  const Lazy total = reduce(ReduceOp::sum, x, axes, keepdims);  // for its shape
  auto n = make(LazyKind::variance, x.elem(), total.shape(), {x});
  n->mask = total->mask;
  n->eps = correction;
  n->root = root;
  return Lazy(n);
}
Lazy rows(RowKernel kernel, std::vector<Lazy> in, double eps) {
  const Elem elem = in[0].elem();
  Dims shape = in[0].shape();
  bool fits = is_real_float(elem) && !shape.empty();
  for (const Lazy& x : in) fits = fits && x.elem() == elem;
  if (!fits) {
    throw Error(ErrorKind::dtype, "compile.rows.operands",
                cat("rows of ", name_of(elem), to_string(shape)))
        .note("legal: operands of one real floating type with at least one axis")
        .help("convert with astype");
  }
  if (kernel == RowKernel::logsumexp) shape[shape.size() - 1] = 1;
  auto n = make(LazyKind::rows, elem, std::move(shape), std::move(in));
  n->kernel = kernel;
  n->eps = eps;
  return Lazy(n);
}
Lazy reshape(const Lazy& x, Dims shape) {
  std::int64_t known = 1, size = 1;
  int open = -1;
  for (std::int64_t d : x.shape()) size *= d;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && open < 0) open = i;
    else known *= shape[i];
  }
  if (open >= 0 && known > 0) shape[open] = size / known;
  if ((open >= 0 ? known * shape[open] : known) != size) {
    throw Error(
        ErrorKind::shape, "array.reshape.size",
        cat("reshape of ", to_string(x.shape()), " (", size, " elements) to ", to_string(shape)));
  }
  if (shape == x.shape()) return x;
  return Lazy(make(LazyKind::reshape, x.elem(), shape, {x}));
}
Lazy permute(const Lazy& x, std::vector<int> axes) {
  Dims shape;
  std::uint64_t seen = 0;
  for (int& axis : axes) {
    axis = normalize_axis(axis, x.ndim(), "permute");
    seen |= std::uint64_t{1} << axis;
    shape.push_back(x.shape()[axis]);
  }
  if (static_cast<int>(axes.size()) != x.ndim() || seen != (std::uint64_t{1} << x.ndim()) - 1) {
    throw Error(
        ErrorKind::value, "array.permute.axes",
        cat("permute of ", x.ndim(), " axes got ", axes.size(), " that are no permutation"));
  }
  auto n = make(LazyKind::permute, x.elem(), shape, {x});
  n->axes = std::move(axes);
  return Lazy(n);
}
Lazy matmul(const Lazy& a, const Lazy& b) {
  if (a.ndim() < 2 || b.ndim() < 2 || a.shape()[a.ndim() - 1] != b.shape()[b.ndim() - 2]) {
    throw Error(ErrorKind::shape, "array.matmul.inner_extent",
                cat("matmul of ", to_string(a.shape()), " and ", to_string(b.shape())))
        .note("rule in a compiled function: [.., m, k] by [.., k, n] gives [.., m, n]");
  }
  Dims batch_a(a.shape().data(), a.ndim() - 2), batch_b(b.shape().data(), b.ndim() - 2);
  const Dims* shapes[2] = {&batch_a, &batch_b};
  Dims shape = broadcast_shapes(shapes, "matmul");
  shape.push_back(a.shape()[a.ndim() - 2]);
  shape.push_back(b.shape()[b.ndim() - 1]);
  return Lazy(make(LazyKind::matmul, promote(a.elem(), b.elem()), shape, {a, b}));
}
Lazy constant(const Scalar& value, const Lazy& like) {
  return Lazy::number(value, promote_weak(like.elem(), value.kind));
}
Lazy sum_to(const Lazy& x, const Dims& shape) {
  Axes axes{false, {}};
  int shift = x.ndim() - shape.size();
  for (int i = 0; i < x.ndim(); ++i) {
    if (i < shift || (shape[i - shift] == 1 && x.shape()[i] != 1)) axes.axes.push_back(i);
  }
  return axes.axes.empty() ? x : reshape(reduce(ReduceOp::sum, x, axes, true), shape);
}

std::vector<Lazy> topological(const std::vector<Lazy>& outputs) {
  std::vector<Lazy> order;
  std::unordered_set<const LazyNode*> seen;
  std::vector<std::pair<Lazy, std::size_t>> stack;
  for (const Lazy& output : outputs) {
    if (!seen.insert(output.node()).second) continue;
    stack.emplace_back(output, 0);
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next < at->in.size()) {
        Lazy input = at->in[next++];
        if (seen.insert(input.node()).second) stack.emplace_back(std::move(input), 0);
      } else {
        order.push_back(at);
        stack.pop_back();
      }
    }
  }
  return order;
}

namespace {

// The gradient cells of the table over Lazy: the names that they use.
namespace cells {

Lazy operator+(const Lazy& a, const Lazy& b) { return apply(Op::add, a, b); }
Lazy operator-(const Lazy& a, const Lazy& b) { return apply(Op::subtract, a, b); }
Lazy operator*(const Lazy& a, const Lazy& b) { return apply(Op::multiply, a, b); }
Lazy operator/(const Lazy& a, const Lazy& b) { return apply(Op::divide, a, b); }
[[maybe_unused]] Lazy operator+(const Lazy& a, double b) { return apply(Op::add, a, Scalar(b)); }
[[maybe_unused]] Lazy operator-(const Lazy& a, double b) {
  return apply(Op::subtract, a, Scalar(b));
}
[[maybe_unused]] Lazy operator*(const Lazy& a, double b) {
  return apply(Op::multiply, a, Scalar(b));
}
[[maybe_unused]] Lazy operator/(const Lazy& a, double b) { return apply(Op::divide, a, Scalar(b)); }
[[maybe_unused]] Lazy operator-(double a, const Lazy& b) {
  return apply(Op::subtract, Scalar(a), b);
}
Lazy operator-(const Lazy& a) { return apply(Op::negative, a); }
Lazy astype(const Lazy& x, const Lazy& like) { return weft::astype(x, like.elem()); }
Lazy ones_like(const Lazy& x) { return constant(Scalar(1), x); }
const Lazy none;

#define WEFT_UNARY(name) \
  [[maybe_unused]] Lazy name(const Lazy& x) { return apply(Op::name, x); }
#define WEFT_BINARY(name)                                                                    \
  [[maybe_unused]] Lazy name(const Lazy& x, const Lazy& y) { return apply(Op::name, x, y); } \
  [[maybe_unused]] Lazy name(const Lazy& x, double y) { return apply(Op::name, x, Scalar(y)); }
WEFT_UNARY_OPS(WEFT_UNARY)
WEFT_BINARY_OPS(WEFT_BINARY)
#undef WEFT_UNARY
#undef WEFT_BINARY

void row_gradient(Op op, const Lazy& g, const std::vector<Lazy>& in, const Lazy& out,
                  std::vector<Lazy>& result) {
  switch (static_cast<int>(op)) {
#define UNARY(name, rule, types, value, grad, domain, sentence) \
  case static_cast<int>(op_of(Row::name)): {                    \
    [[maybe_unused]] const Lazy& x = in[0];                     \
    result[0] = grad;                                           \
    return;                                                     \
  }
#define BINARY(name, rule, types, value, gx, gy, domain, sentence) \
  case static_cast<int>(op_of(Row::name)): {                       \
    [[maybe_unused]] const Lazy &x = in[0], &y = in[1];            \
    if (x->kind != LazyKind::number) result[0] = gx;               \
    if (y->kind != LazyKind::number) result[1] = gy;               \
    return;                                                        \
  }
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
    default: return;
  }
}

Lazy rows_sum(const Lazy& x) { return reduce(ReduceOp::sum, x, Axes{false, {-1}}, true); }
Lazy rows_mean(const Lazy& x) {
  return rows_sum(x) * (1.0 / static_cast<double>(x.shape()[x.ndim() - 1]));
}

/// A row kernel that is a gradient, of x and g, composed of nodes that have gradients.
Lazy composed_rows(const LazyNode& node, const Lazy& x, const Lazy& g) {
  switch (node.kernel) {
    case RowKernel::softmax_gradient: return x * (g - rows_sum(g * x));
    case RowKernel::log_softmax_gradient: return g - exp(x) * rows_sum(g);
    default: {
      const Lazy centred = x - rows_mean(x);
      const Lazy spread = rsqrt(rows_mean(centred * centred) + node.eps);
      const Lazy normal = centred * spread;
      return (g - rows_mean(g) - normal * rows_mean(g * normal)) * spread;
    }
  }
}

void rows_gradient(const Lazy& node, const Lazy& g, std::vector<Lazy>& result) {
  const std::vector<Lazy>& in = node->in;
  switch (node->kernel) {
    case RowKernel::softmax: result[0] = rows(RowKernel::softmax_gradient, {node, g}); return;
    case RowKernel::log_softmax:
      result[0] = rows(RowKernel::log_softmax_gradient, {node, g});
      return;
    case RowKernel::logsumexp: result[0] = g * exp(in[0] - node); return;
    case RowKernel::layer_norm: {
      const Lazy centred = in[0] - rows_mean(in[0]);
      const Lazy normal = centred * rsqrt(rows_mean(centred * centred) + node->eps);
      result[0] = rows(RowKernel::layer_norm_gradient, {in[0], g * in[1]}, node->eps);
      result[1] = g * normal;
      result[2] = g;
      return;
    }
    default: {
      // Two arguments, whatever the one is computed from: the same node twice is a node for each.
      const Lazy& x = in[0];
      std::vector<int> axes(static_cast<std::size_t>(x.ndim()));
      std::iota(axes.begin(), axes.end(), 0);
      const Lazy seed = x.node() == in[1].node() ? permute(in[1], axes) : in[1];
      result = gradients({composed_rows(*node.node(), x, seed)}, {g}, {x, seed});
      return;
    }
  }
}

}  // namespace cells

/// As for tensors (autograd/tensor_ops.cpp): complex results multiply by the derivative's
/// conjugate.
template <typename F>
void with_conjugates(const Lazy& node, const Lazy& g, std::vector<Lazy>& result, const F& cell) {
  if (!is_complex(node.elem())) return cell(g);
  auto conjugate = [](const Lazy& x) { return is_complex(x.elem()) ? apply(Op::conj, x) : x; };
  cell(conjugate(g));
  for (Lazy& r : result)
    if (r.defined()) r = conjugate(r);
}

Lazy sign_gradient(const Lazy& g, const Lazy& x, const Lazy& sign) {
  const Lazy along = apply(Op::real, apply(Op::multiply, apply(Op::conj, sign), g));
  const Lazy across = apply(Op::subtract, g, apply(Op::multiply, sign, along));
  const Lazy size = apply(Op::abs, x);
  const Lazy inverse = where(apply(Op::equal, size, Scalar(0)), constant(Scalar(0), size),
                             apply(Op::reciprocal, size));
  return apply(Op::multiply, across, inverse);
}

/// g 2 (x - mean) / (count - correction); of the root, by twice the root.
Lazy variance_gradient(const Lazy& node, const Lazy& g) {
  const Lazy& x = node->in[0];
  Dims kept = x.shape();
  Axes axes{false, {}};
  double count = 1;
  for (int i = 0; i < kept.size(); ++i) {
    if (!(node->mask >> i & 1)) continue;
    count *= static_cast<double>(kept[i]);
    kept[i] = 1, axes.axes.push_back(i);
  }
  const Lazy total = reduce(ReduceOp::sum, x, axes, true);
  const Lazy centred = apply(Op::subtract, x, apply(Op::divide, total, Scalar(count)));
  const double rest = count - node->eps;
  const double share = rest > 0 ? (node->root ? 1 : 2) / rest : std::nan("");
  const Lazy seed = node->root ? apply(Op::divide, g, node) : g;
  return apply(Op::multiply, centred, apply(Op::multiply, reshape(seed, kept), Scalar(share)));
}

void node_gradient(const Lazy& node, const Lazy& g, std::vector<Lazy>& result) {
  const std::vector<Lazy>& in = node->in;
  switch (node->kind) {
    case LazyKind::elementwise:
      if (node->op == Op::real) {
        result[0] = g;
        return;
      }
      if (node->op == Op::imag) {
        result[0] = apply(Op::multiply, g, Scalar(std::complex<double>(0, 1)));
        return;
      }
      if (node->op == Op::sign && is_complex(node.elem())) {
        result[0] = sign_gradient(g, in[0], node);
        return;
      }
      with_conjugates(node, g, result,
                      [&](const Lazy& h) { cells::row_gradient(node->op, h, in, node, result); });
      return;
    case LazyKind::where: {
      Lazy zero = constant(Scalar(0), g);
      result[1] = where(in[0], g, zero);
      result[2] = where(in[0], zero, g);
      return;
    }
    case LazyKind::cast: result[0] = g; return;
    case LazyKind::broadcast:
      if (!node->held) result[0] = g;
      return;
    case LazyKind::reshape: result[0] = reshape(g, in[0].shape()); return;
    case LazyKind::permute: {
      std::vector<int> back(node->axes.size());
      for (std::size_t i = 0; i < back.size(); ++i)
        back[static_cast<std::size_t>(node->axes[i])] = static_cast<int>(i);
      result[0] = permute(g, back);
      return;
    }
    case LazyKind::matmul: {
      auto turned = [](const Lazy& x) {
        std::vector<int> axes;
        for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
        std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
        return permute(x, axes);
      };
      with_conjugates(node, g, result, [&](const Lazy& h) {
        result[0] = matmul(h, turned(in[1]));
        result[1] = matmul(turned(in[0]), h);
      });
      return;
    }
    case LazyKind::rows: cells::rows_gradient(node, g, result); return;
    case LazyKind::variance: result[0] = variance_gradient(node, g); return;
    case LazyKind::reduce: {
      Dims kept = in[0].shape();
      Axes axes{false, {}};
      for (int i = 0; i < kept.size(); ++i) {
        if (node->mask >> i & 1) kept[i] = 1, axes.axes.push_back(i);
      }
      Lazy wide = reshape(g, kept);
      if (node->reduction == ReduceOp::sum) {
        result[0] = broadcast_to(wide, in[0].shape());
      } else if (node->reduction == ReduceOp::max || node->reduction == ReduceOp::min) {
        // Equal extremes share the gradient.
        Lazy hit = astype(apply(Op::equal, in[0], reshape(node, kept)), g.elem());
        Lazy share = apply(Op::divide, hit, reduce(ReduceOp::sum, hit, axes, true));
        result[0] = apply(Op::multiply, wide, share);
      } else if (node->elem != Elem::boolean) {
        throw Error(ErrorKind::value, "compile.gradient.none",
                    cat("the reduction ", info(node->reduction).name,
                        " has no gradient rule in a compiled function"))
            .help(
                "call the function on tensors that do not require gradients, or do not compile it");
      }
      return;
    }
    default: return;
  }
}

}  // namespace

std::vector<Lazy> gradients(const std::vector<Lazy>& outputs, const std::vector<Lazy>& seeds,
                            const std::vector<Lazy>& wanted) {
  std::unordered_map<const LazyNode*, Lazy> incoming;
  auto add = [&](const Lazy& t, const Lazy& g) {
    Lazy& slot = incoming[t.node()];
    slot = slot.defined() ? apply(Op::add, slot, g) : g;
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (is_inexact(outputs[i].elem())) add(outputs[i], seeds[i]);
  }
  std::unordered_set<const LazyNode*> ends;
  for (const Lazy& w : wanted) ends.insert(w.node());
  std::vector<Lazy> order = topological(outputs);
  for (std::size_t i = order.size(); i-- > 0;) {
    const Lazy& node = order[i];
    auto found = incoming.find(node.node());
    if (found == incoming.end() || node->in.empty() || ends.contains(node.node())) continue;
    std::vector<Lazy> parts(node->in.size());
    node_gradient(node, found->second, parts);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const Lazy& input = node->in[k];
      if (!parts[k].defined() || !is_inexact(input.elem()) || input->kind == LazyKind::number)
        continue;
      Lazy part = parts[k].shape() == input.shape() ? parts[k] : sum_to(parts[k], input.shape());
      add(input, astype(part, input.elem()));
    }
  }
  std::vector<Lazy> out;
  for (const Lazy& w : wanted) {
    auto found = incoming.find(w.node());
    out.push_back(found == incoming.end() ? Lazy() : found->second);
  }
  return out;
}

}  // namespace weft
