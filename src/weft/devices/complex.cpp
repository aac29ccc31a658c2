// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/complex.h"

#include <algorithm>
#include <vector>

#include "weft/array/nest.h"
#include "weft/base/integers.h"
#include "weft/devices/complex_map.h"
#include "weft/devices/dispatch.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/devices/pieces.h"
#include "weft/devices/program_cache.h"
#include "weft/devices/reduce_program.h"
#include "weft/devices/structured.h"
#include "weft/elements/complex_row.h"
#include "weft/elements/row_ir.h"
#include "weft/operators/complex_join.h"

namespace weft {

using complex_ir::Complex;
using ir::Expr;

namespace {

/// complex64 as words of 64 bits.
NDArray as_words(const NDArray& z) {
  return NDArray(z.handle(), Elem::int64, z.shape(), z.strides(), z.offset());
}

NDArray part(const NDArray& z, int which) { return as_reals(z).select(z.ndim(), which); }

/// A number as an array of complex type without axes.
NDArray constant(const Ref<Device>& device, Elem elem, const Scalar& value) {
  alignas(16) char bytes[16];
  write_scalar(value, elem, bytes);
  NDArray out = NDArray::empty(device, elem, Dims{});
  device->upload(*out.handle(), 0, bytes, static_cast<runtime::Bytes>(elem_bytes(elem)));
  return out;
}

NDArray converted(const NDArray& x, Elem elem) { return x.elem() == elem ? x : x.astype(elem); }

/// One part of the row's value on devices without a grid: a program for each part.
void composed(Op op, Elem compute, const NDArray& out, int which, std::span<const Arg> args) {
  DeviceProgram p;
  p.name = info(op).name;
  p.variant = cat("complex ", name_of(compute), which ? " im" : " re");
  std::vector<bool> pairs;
  for (const Arg& arg : args) {
    const NDArray x = arg.array ? *arg.array : constant(out.device(), compute, arg.scalar);
    pairs.push_back(is_complex(x.elem()));
    p.variant += pairs.back() ? "z" : "x";
    for (int k = 0; k < (pairs.back() ? 2 : 1); ++k) {
      NDArray reals = pairs.back() ? part(x, k) : x;
      Dims strides = broadcast_strides(reals, out.shape());
      p.inputs.push_back({std::move(reals), std::move(strides), false});
    }
  }
  const Elem real = real_of(compute);
  p.value = [=](const DeviceScope& s) {
    std::vector<Complex> in;
    std::size_t at = 0;
    for (const bool pair : pairs) {
      const Expr re = device_cast(s.load(at++), real);
      in.push_back(
          {re, pair ? device_cast(s.load(at++), real) : ir::make_const(0, dtype_of(real))});
    }
    const Complex z = row_value(op, in);
    return which ? z.im : z.re;
  };
  device_run(out, p);
}

/// Rows that treat both parts alike, as real numbers, over arrays of one type.
bool by_parts(Op op, Elem compute, const NDArray& out, std::span<const Arg> args) {
  return (op == Op::negative || op == Op::add || op == Op::subtract) && out.elem() == compute &&
         std::all_of(args.begin(), args.end(),
                     [&](const Arg& arg) { return arg.array && arg.array->elem() == compute; });
}

}  // namespace

void complex_elementwise(Op op, Elem compute, const NDArray& out, std::span<const Arg> args) {
  if (out.size() == 0) return;
  if (by_parts(op, compute, out, args)) {
    std::vector<NDArray> reals;
    for (const Arg& arg : args) reals.push_back(as_reals(arg.array->broadcast_to(out.shape())));
    const std::vector<Arg> views(reals.begin(), reals.end());
    return device_elementwise(op, real_of(compute), as_reals(out), views);
  }
  if (device::grid_of(out.device()).present()) return gpu::complex_map(out, op, compute, args);
  if (!is_complex(out.elem())) return composed(op, compute, out, 0, args);
  // Both parts are known before the first is written: the result may be an operand.
  NDArray fresh = NDArray::empty(out.device(), out.elem(), out.shape());
  for (int which : {0, 1}) composed(op, compute, part(fresh, which), which, args);
  assign(out, fresh);
}

void complex_fill(const NDArray& out, const Scalar& value) {
  assign(out, constant(out.device(), out.elem(), value));
}

void complex_select(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b) {
  const Arg* given[2] = {&a, &b};
  NDArray operands[2];
  for (int k : {0, 1}) {
    const NDArray x = given[k]->array ? converted(*given[k]->array, out.elem())
                                      : constant(out.device(), out.elem(), given[k]->scalar);
    operands[k] = as_reals(x.broadcast_to(out.shape()));
  }
  const NDArray reals = as_reals(out),
                wide = condition.broadcast_to(out.shape()).expand_dims(out.ndim());
  if (!device_select(reals, wide, operands[0], operands[1]))
    device_where(reals, wide, operands[0], operands[1]);
}

void complex_copy(const NDArray& dst, const NDArray& src) {
  if (dst.size() == 0) return;
  if (is_complex(src.elem()) && is_complex(dst.elem())) {
    if (src.elem() == Elem::complex64 && dst.elem() == Elem::complex64)
      return device_copy(as_words(dst), as_words(src.broadcast_to(dst.shape())));
    return device_copy(as_reals(dst), as_reals(src.broadcast_to(dst.shape())));
  }
  if (dst.elem() == Elem::boolean) {
    const Arg args[2] = {Arg(src), Arg(Scalar(0))};
    return complex_elementwise(Op::not_equal, src.elem(), dst, args);
  }
  if (is_complex(src.elem())) return assign(dst, part(src, 0));
  const NDArray no = constant(dst.device(), dst.elem(), Scalar(0));
  if (!device::grid_of(dst.device()).present()) {
    assign(part(dst, 1), part(no, 1));
    return assign(part(dst, 0), src);
  }
  const Arg args[1] = {Arg(src)};
  gpu::complex_map(dst, Op::positive, dst.elem(), args);
}

namespace {

/// Products along one axis: halves are multiplied until one element is left.
NDArray product_along(NDArray x, int axis) {
  while (x.shape()[axis] > 1) {
    const std::int64_t n = x.shape()[axis], half = n / 2;
    NDArray y = apply(Op::multiply, x.slice(axis, 0, half, 1), x.slice(axis, half, half, 1));
    if (n % 2) {
      const NDArray first = y.slice(axis, 0, 1, 1);
      apply_into(Op::multiply, first, first, x.slice(axis, n - 1, 1, 1));
    }
    x = y;
  }
  return x.select(axis, 0);
}

}  // namespace

void complex_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                    std::uint64_t mask) {
  if (!is_complex(kernel)) {  // truth values
    return device_reduce(op, kernel, out, apply(Op::not_equal, x, Scalar(0)), mask);
  }
  const NDArray z = converted(x, kernel);
  if (op == ReduceOp::sum)
    return device_reduce(op, real_of(kernel), as_reals(out), as_reals(z), mask);
  NDArray rest = z;
  for (int i = x.ndim(); i-- > 0;) {
    if (mask >> i & 1) rest = product_along(rest, i);
  }
  assign(out.reshape(rest.shape()), rest);
}

NDArray complex_scan(ReduceOp op, const NDArray& x, int axis, Elem elem) {
  const NDArray z = converted(x, elem);
  if (op == ReduceOp::sum) {
    const NDArray reals = as_reals(z);
    return as_complex(has_grid(z) ? grid_scan(op, reals, axis, reals.elem())
                                  : device_scan(op, reals, axis, reals.elem()));
  }
  NDArray out = z.copy();
  const std::int64_t n = out.shape()[axis];
  for (std::int64_t by = 1; by < n; by *= 2) {
    NDArray next = out.copy();
    assign(next.slice(axis, by, n - by, 1),
           apply(Op::multiply, out.slice(axis, by, n - by, 1), out.slice(axis, 0, n - by, 1)));
    out = next;
  }
  return out;
}

namespace {

/// For a with few rows: both parts of a as rows of their own, by b's real view, which is read once
/// where it lies; then re a * b and im a * b are joined.
void thin_complex_matmul(const NDArray& out, const NDArray& a, const NDArray& b) {
  const int r = out.ndim();
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  const Elem real = real_of(out.elem());
  Dims batch(out.shape().data(), r - 2), strides(b.strides().data(), r - 2);
  auto with = [](Dims shape, std::initializer_list<std::int64_t> tail) {
    for (std::int64_t extent : tail) shape.push_back(extent);
    return shape;
  };
  NDArray rows = NDArray::empty(a.device(), real, with(batch, {2, m, k}));
  std::vector<int> order;
  for (int i = 0; i < r - 2; ++i) order.push_back(i);
  for (int i : {r, r - 2, r - 1}) order.push_back(i);
  assign(rows, as_reals(a).permute(order));
  for (std::int64_t& stride : strides) stride *= 2;
  const NDArray right = as_reals(b).as_strided(
      with(batch, {k, 2 * n}), with(strides, {2 * b.strides()[r - 2], 1}), 2 * b.offset());
  const NDArray products = NDArray::empty(a.device(), real, with(batch, {2 * m, 2 * n}));
  device_matmul(products, rows.reshape(with(batch, {2 * m, k})), right);
  const std::int64_t each = m * n, count = out.size();
  ProgramCall call(out.device());
  call.array(products).array(as_reals(out));
  call.integer(ceil_div(count, operators::kComplexJoinThreads)).integer(count).integer(each);
  call.run({"complex.join", {static_cast<int>(real)}},
           [&] { return operators::complex_join(std::string(name_of(real))); });
}

/// By a where it lies, the parts of its numbers as an axis of the sum of their own: what a copy of
/// it in rows costs is more than small products take. False, and nothing done, where a lies in rows
/// or the product is made of pieces, which read rows.
bool multiply_in_place(const NDArray& out, const NDArray& a, const NDArray& right) {
  const int r = out.ndim();
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  const NDArray reals = as_reals(a);
  const Dims &of_a = reals.strides(), &of_b = right.strides(), &of_out = out.strides();
  const bool in_rows = k == 1 || of_a[r - 1] == 2;
  if (in_rows || std::min(m, n) <= kFewColumns) return false;
  Dims rows(a.shape().data(), r - 2), steps(of_a.data(), r - 2);
  for (std::int64_t extent : {m, 2 * k}) rows.push_back(extent);
  for (std::int64_t step : {of_a[r - 2], std::int64_t{1}}) steps.push_back(step);
  // Asked for its extents alone.
  if (device::prefers_pieces(out, reals.as_strided(rows, steps, reals.offset()), right))
    return false;
  device::Contraction c;
  c.batch = Dims(out.shape().data(), r - 2);
  c.m = Dims{m}, c.n = Dims{n}, c.k = Dims{k, 2};
  auto lead = [&](const Dims& s) { return Dims(s.data(), r - 2); };
  c.a = {lead(of_a), Dims{of_a[r - 2]}, Dims{of_a[r - 1], 1}};
  c.b = {lead(of_b), Dims{2 * of_b[r - 2], of_b[r - 2]}, Dims{of_b[r - 1]}};
  c.out = {lead(of_out), Dims{of_out[r - 2]}, Dims{of_out[r - 1]}};
  device::grid_contract(out, reals, right, c);
  return true;
}

}  // namespace

void complex_matmul(const NDArray& out, const NDArray& a_in, const NDArray& b_in) {
  const int r = out.ndim();
  NDArray a = converted(a_in, out.elem()), b = converted(b_in, out.elem());
  const bool grid = device::grid_of(out.device()).present() && out.is_contiguous();
  constexpr std::int64_t kThin = 8;
  if (grid && out.shape()[r - 2] <= kThin && b.strides()[r - 1] == 1)
    return thin_complex_matmul(out, a, b);
  if (grid && out.shape()[r - 1] == 1 && a.strides()[r - 2] == 1) {
    // One column: the transpose lies as the result does.
    const Dims batch(out.shape().data(), r - 2);
    Dims turned = batch;
    turned.push_back(1), turned.push_back(out.shape()[r - 2]);
    return thin_complex_matmul(out.reshape(turned), b.transpose(r - 2, r - 1),
                               a.transpose(r - 2, r - 1));
  }
  if (a.size() < b.size()) {  // the smaller one is spread out: (a b)' = b' a'
    NDArray turned = NDArray::empty(out.device(), out.elem(), out.transpose(r - 2, r - 1).shape());
    complex_matmul(turned, b.transpose(r - 2, r - 1), a.transpose(r - 2, r - 1));
    return assign(out, turned.transpose(r - 2, r - 1));
  }
  // (m, 2k) by (2k, 2n), where each number of b is the block [re, im; -im, re].
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  Dims batch(out.shape().data(), r - 2);
  auto with = [&](std::initializer_list<std::int64_t> tail) {
    Dims shape = batch;
    for (std::int64_t extent : tail) shape.push_back(extent);
    return shape;
  };
  const NDArray blocks = NDArray::empty(out.device(), out.elem(), with({k, 2, n}));
  if (device::grid_of(out.device()).present()) {
    const NDArray numbers = b.contiguous();
    const Elem real = real_of(out.elem());
    ProgramCall call(out.device());
    call.array(as_reals(numbers)).array(as_reals(blocks));
    call.integer(ceil_div(numbers.size(), operators::kComplexJoinThreads));
    call.integer(numbers.size()).integer(n);
    call.run({"complex.blocks", {static_cast<int>(real)}},
             [&] { return operators::complex_blocks(std::string(name_of(real))); });
  } else {
    assign(blocks.select(r - 1, 0), b);
    const NDArray turned = as_reals(blocks.select(r - 1, 1)), reals = as_reals(b);
    const NDArray im = reals.select(r, 1);
    const Arg negated[1] = {Arg(im)};
    device_elementwise(Op::negative, real_of(out.elem()), turned.select(r, 0), negated);
    assign(turned.select(r, 1), reals.select(r, 0));
  }
  const NDArray right = as_reals(blocks).reshape(with({2 * k, 2 * n})),
                result = as_reals(out).reshape(with({m, 2 * n}));
  if (device::grid_of(out.device()).present() && multiply_in_place(result, a, right)) return;
  device_matmul(result, as_reals(a.contiguous()).reshape(with({m, 2 * k})), right);
}

}  // namespace weft
