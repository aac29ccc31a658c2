// SPDX-License-Identifier: Apache-2.0
// Softmax, log-softmax, logsumexp and layer norm: one pass over rows where the row fits (host: any
// row; devices: rows that fit a block's registers), else composed of reductions and maps.

#include <algorithm>
#include <array>
#include <vector>

#include "weft/array/column_rows.h"
#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/array/row_gradients.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

void need_real(const NDArray& x, std::string_view name) {
  if (is_real_float(x.elem())) return;
  throw Error(ErrorKind::dtype, cat("array.", name, ".dtype"),
              cat(name, " is not defined for ", name_of(x.elem())))
      .note("defined for: float16, bfloat16, float32, float64")
      .help("convert with astype");
}

/// Composed of maps and reductions, on any device; rows along the last axis.
NDArray composed(RowKernel kind, std::span<const NDArray* const> in, double eps) {
  const NDArray& x = *in[0];
  const Axes last{false, Dims{-1}};
  auto sum = [&](const NDArray& v) { return reduce(ReduceOp::sum, v, last, true); };
  switch (kind) {
    case RowKernel::softmax: {
      NDArray e = arrays::exp(arrays::subtract(x, reduce(ReduceOp::max, x, last, true)));
      return arrays::divide(e, sum(e));
    }
    case RowKernel::log_softmax: {
      NDArray s = arrays::subtract(x, reduce(ReduceOp::max, x, last, true));
      return arrays::subtract(s, arrays::log(sum(arrays::exp(s))));
    }
    case RowKernel::softmax_gradient:
      return arrays::multiply(x, arrays::subtract(*in[1], sum(arrays::multiply(*in[1], x))));
    case RowKernel::log_softmax_gradient:
      return arrays::subtract(*in[1], arrays::multiply(arrays::exp(x), sum(*in[1])));
    case RowKernel::logsumexp: {
      NDArray m = reduce(ReduceOp::max, x, last, true);
      NDArray safe = where(arrays::isfinite(m), m, Scalar(0.0));
      NDArray s = arrays::log(sum(arrays::exp(arrays::subtract(x, safe))));
      return arrays::add(s, safe);
    }
    default: break;
  }
  const double n = static_cast<double>(x.shape()[x.ndim() - 1]);
  NDArray mean = arrays::divide(sum(x), n);
  NDArray centred = arrays::subtract(x, mean);
  NDArray variance = arrays::divide(sum(arrays::square(centred)), n);
  NDArray scale = arrays::rsqrt(arrays::add(variance, eps));
  NDArray normal = arrays::multiply(centred, scale);
  if (kind == RowKernel::layer_norm) return arrays::add(arrays::multiply(normal, *in[1]), *in[2]);
  const NDArray& g = *in[1];
  NDArray a = arrays::divide(sum(g), n);
  NDArray b = arrays::divide(sum(arrays::multiply(g, normal)), n);
  return arrays::multiply(arrays::subtract(arrays::subtract(g, a), arrays::multiply(normal, b)),
                          scale);
}

/// The kernel on rows of n elements of compact operands; those of another shape than the first are
/// one row. `half`: the kernel is of float32.
void run_rows(RowFn fn, std::span<const NDArray* const> in, const NDArray& out, std::int64_t n,
              bool half, double eps) {
  const NDArray& x = *in[0];
  const int bytes = elem_bytes(x.elem());
  const auto e = static_cast<int>(x.elem()), wide = static_cast<int>(Elem::float32);
  const CastFn widen = kernels().cast[e][wide], narrow = kernels().cast[wide][e];
  const std::int64_t rows = x.size() / n, out_n = out.size() / rows;
  std::int64_t step[3];
  for (std::size_t k = 0; k < in.size(); ++k)
    step[k] = in[k]->size() == x.size() && in[k]->ndim() == x.ndim() ? n * bytes : 0;
  runtime::Pool::shared().parallel_for(
      rows, std::max<std::int64_t>(1, kParallelGrain / 4 / n),
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<float> held(half ? static_cast<std::size_t>(n) * in.size() : 0);
        const void* row[3];
        for (std::int64_t r = begin; r < end; ++r) {
          for (std::size_t k = 0; k < in.size(); ++k) {
            const char* from = in[k]->host() + r * step[k];
            row[k] = from;
            if (!half) continue;
            float* to = held.data() + static_cast<std::int64_t>(k) * n;
            if (step[k] || r == begin) widen(n, from, to);
            row[k] = to;
          }
          char* to = out.host() + r * out_n * bytes;
          if (!half) {
            fn(n, row, to, eps);
            continue;
          }
          fn(n, row, held.data(), eps);  // over the first operand
          narrow(out_n, held.data(), to);
        }
      });
}

}  // namespace

std::string_view name_of(RowKernel kind) {
  static constexpr std::string_view kNames[] = {
      "softmax",    "log_softmax",         "softmax_gradient", "log_softmax_gradient",
      "layer_norm", "layer_norm_gradient", "logsumexp"};
  return kNames[static_cast<int>(kind)];
}

NDArray apply_rows(RowKernel kind, std::span<const NDArray* const> operands, double eps) {
  const std::string_view name = name_of(kind);
  const NDArray& x = *operands[0];
  for (const NDArray* a : operands) {
    need_real(*a, name);
    check_same_device(x, *a, name);
  }
  if (x.ndim() == 0) {
    throw Error(ErrorKind::shape, cat("array.", name, ".rank"),
                cat(name, " needs at least one dimension, got ", describe(x)));
  }
  Dims shape = x.shape();
  const std::int64_t n = shape[x.ndim() - 1];
  if (kind == RowKernel::logsumexp) shape[x.ndim() - 1] = 1;
  if (x.size() == 0 && kind != RowKernel::logsumexp)
    return NDArray::empty(x.device(), x.elem(), shape);
  const bool on_grid =
      !x.on_host() && kind != RowKernel::logsumexp && on_device().has_rows(x.device(), n);
  if (n == 0 || (!x.on_host() && !on_grid)) return composed(kind, operands, eps);
  if (std::optional<NDArray> out = rows_by_columns(kind, operands)) return *out;
  // On the host floats of 8 and 16 bits are widened a row at a time, and rounded once.
  const bool half = elem_bytes(x.elem()) < 4 && x.on_host();
  const Elem compute = half ? Elem::float32 : x.elem();
  NDArray ready[3];
  const NDArray* in[3];
  for (std::size_t k = 0; k < operands.size(); ++k) {
    ready[k] = *operands[k];
    if (ready[k].elem() != x.elem()) ready[k] = ready[k].astype(x.elem());
    ready[k] = ready[k].contiguous();
    in[k] = &ready[k];
  }
  NDArray out = NDArray::empty(x.device(), x.elem(), shape);
  if (out.size() == 0) return out;
  if (on_grid) {
    on_device().rows(kind, out, {in, operands.size()}, eps);
    return out;
  }
  run_rows(kernels().row[static_cast<int>(kind)][static_cast<int>(compute)], {in, operands.size()},
           out, n, half, eps);
  return out;
}

NDArray apply_rows_along(RowKernel kind, std::span<const NDArray* const> operands, int axis) {
  const int last = operands[0]->ndim() - 1,
            at = normalize_axis(axis, operands[0]->ndim(), name_of(kind));
  if (at == last) return apply_rows(kind, operands);
  const NDArray& x = *operands[0];
  if (x.size() > 0 && has_grid(x) && is_real_float(x.elem()) &&
      std::all_of(operands.begin(), operands.end(), [&](const NDArray* a) {
        return a->elem() == x.elem() && a->shape() == x.shape() && a->device() == x.device();
      })) {
    NDArray ready[2];
    const NDArray* compact[2];
    for (std::size_t k = 0; k < operands.size(); ++k)
      ready[k] = operands[k]->contiguous(), compact[k] = &ready[k];
    NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
    on_device().rows_along(kind, out, {compact, operands.size()}, at);
    return out;
  }
  NDArray turned[2];
  const NDArray* in[2];
  for (std::size_t k = 0; k < operands.size(); ++k) {
    turned[k] = operands[k]->transpose(at, last);
    in[k] = &turned[k];
  }
  return apply_rows(kind, {in, operands.size()}).transpose(at, last);
}

NDArray softmax(const NDArray& x, int axis) {
  const NDArray* in[1] = {&x};
  return apply_rows_along(RowKernel::softmax, in, axis);
}
NDArray log_softmax(const NDArray& x, int axis) {
  const NDArray* in[1] = {&x};
  return apply_rows_along(RowKernel::log_softmax, in, axis);
}
NDArray logsumexp(const NDArray& x, const Axes& axes, bool keepdims) {
  // Reduced axes go to the end and become one.
  std::vector<int> order, gone;
  std::uint64_t mask = 0;
  if (!axes.all) {
    for (std::int64_t axis : axes.axes)
      mask |= std::uint64_t{1} << normalize_axis(static_cast<int>(axis), x.ndim(), "logsumexp");
  }
  Dims kept, flat;
  for (int i = 0; i < x.ndim(); ++i) {
    bool reduced = axes.all || (mask >> i & 1);
    if (reduced) gone.push_back(i);
    else order.push_back(i), flat.push_back(x.shape()[i]);
    if (!reduced) kept.push_back(x.shape()[i]);
    else if (keepdims) kept.push_back(1);
  }
  if (gone.empty()) return x.copy();
  if (x.size() > 0 && has_grid(x) && is_real_float(x.elem())) {
    for (int i : gone) mask |= std::uint64_t{1} << i;
    NDArray out = NDArray::empty(x.device(), x.elem(), kept);
    on_device().logsumexp(out, x, mask);
    return out;
  }
  order.insert(order.end(), gone.begin(), gone.end());
  std::int64_t n = 1;
  for (int i : gone) n *= x.shape()[i];
  flat.push_back(n);
  NDArray rows = x.permute(order).reshape(flat);
  const NDArray* in[1] = {&rows};
  return apply_rows(RowKernel::logsumexp, in).reshape(kept);
}

NDArray layer_norm(const NDArray& x, const NDArray& scale, const NDArray& shift, double eps) {
  const std::int64_t n = x.ndim() ? x.shape()[x.ndim() - 1] : 0;
  for (const NDArray* a : {&scale, &shift}) {
    if (!a->defined() || (a->ndim() == 1 && a->shape()[0] == n)) continue;
    throw Error(ErrorKind::shape, "array.layer_norm.shape",
                cat("layer_norm of ", describe(x), " with ", describe(*a)))
        .note(cat("rule: scale and shift have one element for each of the ", n, " of a row"));
  }
  const bool plain = !scale.defined() && !shift.defined();
  const NDArray* in[3] = {&x, &scale, &shift};
  if (plain && !x.on_host() && x.ndim() > 0 && on_device().has_rows(x.device(), n))
    return apply_rows(RowKernel::layer_norm, {in, 1}, eps);
  const NDArray one = scale.defined() ? scale : full(x.device(), x.elem(), Dims{n}, Scalar(1.0));
  const NDArray zero = shift.defined() ? shift : full(x.device(), x.elem(), Dims{n}, Scalar(0.0));
  in[1] = &one, in[2] = &zero;
  return apply_rows(RowKernel::layer_norm, in, eps);
}

std::array<NDArray, 3> layer_norm_gradients(const NDArray& x, const NDArray& scale,
                                            const NDArray& g, double eps) {
  const Elem e = x.elem();
  const Dims& shape = x.shape();
  const std::int64_t n = shape[x.ndim() - 1], rows = x.size() / n;
  const auto at = static_cast<std::size_t>(e);
  const auto row_kernel = [&](RowKernel k) { return kernels().row[static_cast<int>(k)][at]; };
  const RowFn normalise = row_kernel(RowKernel::layer_norm),
              differentiate = row_kernel(RowKernel::layer_norm_gradient);
  const ElementwiseFn times = kernels().elementwise[static_cast<std::size_t>(Op::multiply)][at];
  const AccumulateFn add = kernels().accumulate[static_cast<std::size_t>(ReduceOp::sum)][at];
  const NDArray in = x.contiguous(), dy = g.contiguous(), w = scale.contiguous();
  const NDArray one = full(x.device(), e, Dims{n}, Scalar(1.0)),
                zero = full(x.device(), e, Dims{n}, Scalar(0.0));
  const NDArray out = NDArray::empty(x.device(), e, shape);
  // Sums of a fixed number of rows, joined in order: threads do not change them.
  constexpr std::int64_t kRows = 64;
  const std::int64_t groups = (rows + kRows - 1) / kRows, bytes = n * elem_bytes(e);
  const NDArray sums[2] = {full(x.device(), e, Dims{groups, n}, Scalar(0.0)),
                           full(x.device(), e, Dims{groups, n}, Scalar(0.0))};
  runtime::Pool::shared().parallel_for(groups, 1, [&](std::int64_t group, std::int64_t end) {
    const NDArray held = NDArray::empty(x.device(), e, Dims{n});
    for (; group < end; ++group) {
      char *const to_scale = sums[0].host() + group * bytes, *const to_shift =
                                                                 sums[1].host() + group * bytes;
      for (std::int64_t r = group * kRows; r < std::min(rows, (group + 1) * kRows); ++r) {
        const char *from = in.host() + r * bytes, *dy_row = dy.host() + r * bytes;
        const void* scaled[2] = {dy_row, w.host()};
        times(n, scaled, held.host());
        const void* both[2] = {from, held.host()};
        differentiate(n, both, out.host() + r * bytes, eps);
        const void* plain[3] = {from, one.host(), zero.host()};
        normalise(n, plain, held.host(), eps);
        const void* weighed[2] = {dy_row, held.host()};
        times(n, weighed, held.host());
        add(n, held.host(), to_scale);
        add(n, dy_row, to_shift);
      }
    }
  });
  const Axes first{false, Dims{0}};
  return {out, reduce(ReduceOp::sum, sums[0], first), reduce(ReduceOp::sum, sums[1], first)};
}

}  // namespace weft
