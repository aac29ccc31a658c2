// SPDX-License-Identifier: Apache-2.0
#include "weft/array/device_whole.h"

#include <algorithm>

#include "weft/array/device_product.h"
#include "weft/array/device_whole_call.h"
#include "weft/array/row_ir.h"

namespace weft::device {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Microseconds on an NVIDIA H200 (2026-11-22): of a step of 64 summands, and of a tile beside its
/// steps.
struct Rate {
  int groups, columns, stages;
  double step, tile;
};
constexpr Rate kRates[] = {{2, 256, 4, 0.65, 1.6}, {2, 128, 6, 0.33, 0.6}, {1, 256, 5, 0.36, 0.6},
                           {2, 64, 6, 0.25, 0.5},  {1, 128, 6, 0.22, 0.3}, {1, 64, 8, 0.19, 0.3}};
constexpr double kAdd = 2.5, kBytesPerMicrosecond = 3.5e6;  // of adding parts up

/// Rows of 16 bytes: whether a copy engine can read this axis pair, `inner` being the fast one.
bool rows_fit(const NDArray& x, int inner, int outer) {
  const Dims &shape = x.shape(), &steps = x.strides();
  const std::uint64_t address =
      x.handle()->address() + static_cast<std::uint64_t>(x.offset() * elem_bytes(x.elem()));
  bool fits = address % 16 == 0 && (steps[inner] == 1 || shape[inner] == 1) &&
              (shape[outer] == 1 || (steps[outer] > 0 && steps[outer] % 8 == 0));
  for (int i = 0; i + 2 < x.ndim(); ++i) fits = fits && steps[i] >= 0 && steps[i] % 8 == 0;
  return fits;
}

/// The operand itself where the copy engine can read it, else a copy of its rows.
NDArray readable(const NDArray& x, int* inner) {
  const int r = x.ndim();
  *inner = r - 1;
  if (rows_fit(x, r - 1, r - 2)) return x;
  *inner = r - 2;
  if (rows_fit(x, r - 2, r - 1)) return x;
  const bool turned = std::abs(x.strides()[r - 2]) < std::abs(x.strides()[r - 1]) &&
                      x.shape()[r - 1] > 1 && x.shape()[r - 2] > 1;
  if (!turned) *inner = r - 1;
  // What lies behind a row is outside of the tensor that the copy engine sees.
  NDArray copy = in_vectors(turned ? x.transpose(r - 2, r - 1) : x, false);
  return turned ? copy.transpose(r - 2, r - 1) : copy;
}

/// Batch axes of both operands, joined where both allow it; innermost first.
struct Batch {
  Dims shape, a, b;
};
Batch join(const Dims& shape, const NDArray& a, const NDArray& b) {
  Batch out;
  for (int i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    const int last = out.shape.size() - 1;
    if (last >= 0 && a.strides()[i] == out.a[last] * out.shape[last] &&
        b.strides()[i] == out.b[last] * out.shape[last]) {
      out.shape[last] *= shape[i];
      continue;
    }
    out.shape.push_back(shape[i]);
    out.a.push_back(a.strides()[i]), out.b.push_back(b.strides()[i]);
  }
  while (out.shape.size() < 2) out.shape.push_back(1), out.a.push_back(0), out.b.push_back(0);
  return out;
}

}  // namespace

bool reads_in_bulk(const NDArray& x) {
  const int r = x.ndim();
  return rows_fit(x, r - 1, r - 2) || rows_fit(x, r - 2, r - 1);
}

bool has_whole_product(const Ref<Device>& device, Elem elem) {
  return (elem == Elem::float16 || elem == Elem::bfloat16) && grid_of(device).whole_products;
}

WholeChoice choose_whole(std::int64_t processors, std::int64_t batches, std::int64_t m,
                         std::int64_t n, std::int64_t steps, bool divisible) {
  WholeChoice best;
  double least = -1;
  for (const Rate& r : kRates) {
    const std::int64_t tiles = ceil_div(m, 64 * r.groups) * ceil_div(n, r.columns) * batches;
    // Closely enough: a choice is made at every call.
    const std::int64_t most = divisible ? processors : 1;
    for (std::int64_t parts = 1; parts <= most; parts += std::max<std::int64_t>(1, parts / 4)) {
      if (parts > 1 && (tiles * parts > processors || steps < parts * 4)) break;
      double time = static_cast<double>(ceil_div(tiles * parts, processors)) *
                    (static_cast<double>(ceil_div(steps, parts)) * r.step + r.tile);
      if (parts > 1)
        time += kAdd + static_cast<double>(parts * batches * m * n * 8) / kBytesPerMicrosecond;
      if (least < 0 || time < least) least = time, best = {r.groups, r.columns, r.stages, parts};
    }
  }
  return best;
}

WholeTensor tensor_of(const NDArray& x, std::initializer_list<std::int64_t> extents,
                      std::initializer_list<std::int64_t> strides) {
  WholeTensor out;
  out.storage = x.handle().get();
  out.offset = static_cast<std::uint64_t>(x.offset() * elem_bytes(x.elem()));
  std::copy(extents.begin(), extents.end(), out.extents);
  // The stride of an axis of one element is never used, but must be legal.
  std::size_t i = 0;
  for (std::int64_t s : strides) {
    ++i;
    out.strides[i - 1] = out.extents[i] == 1 ? 8 : s;
  }
  return out;
}

void run_whole(const Ref<Device>& device, const WholeProduct& spec,
               std::initializer_list<const WholeTensor*> tensors, const NDArray& to,
               const WholeNumbers& numbers) {
  auto word = [](auto v) { return static_cast<std::uint64_t>(v); };
  const Key key{17 | word(spec.mode) << 8 | word(spec.out) << 12 |
                    word(spec.type == dtypes::bfloat16) << 16 | word(spec.a_along_m) << 17 |
                    word(spec.b_along_n) << 18,
                word(spec.groups) | word(spec.columns) << 8 | word(spec.stages) << 20,
                word(spec.patch[0]) | word(spec.patch[1]) << 16 | word(spec.patch[2]) << 32,
                word(spec.step[0]) | word(spec.step[1]) << 16};
  const WholeNumbers& x = numbers;
  Call call(device);
  for (const WholeTensor* t : tensors) {
    if (call.count() < 2) call.pointer(t->storage, t->offset);
  }
  call.array(to);
  for (const WholeTensor* t : tensors) {
    for (std::int64_t v : t->extents) call.integer(v);
    for (std::int64_t v : t->strides) call.integer(v);
  }
  call.integer(std::min(grid_of(device).processors * x.resident,
                        x.tiles_m * x.tiles_n * x.batches * x.parts));
  for (std::int64_t v :
       {x.tiles_m,    x.tiles_n,   x.batches,   x.parts,     x.steps,     x.part,      x.m,
        x.n,          x.inner,     x.move_a[0], x.move_a[1], x.move_b[0], x.move_b[1], x.patches[0],
        x.patches[1], x.before[0], x.before[1], x.window,    x.chunks,    x.turned})
    call.integer(v);
  call.run(key, [&] { return whole_kernel(spec); });
}

void add_parts(const NDArray& out, const NDArray& parts) {
  const std::int64_t count = parts.shape()[0], size = parts.size() / count;
  const NDArray flat = out.reshape(Dims{size}), rows = parts.reshape(Dims{count, size});
  constexpr std::int64_t kMost = 8;  // that one map adds up
  if (count > kMost) return grid_reduce(ReduceOp::sum, Elem::float32, flat, rows, 1);
  std::vector<NDArray> each;
  for (std::int64_t i = 0; i < count; ++i) each.push_back(rows.select(0, i));
  std::vector<const NDArray*> arrays;
  for (const NDArray& x : each) arrays.push_back(&x);
  Map map;
  map.key = 0x7200 + static_cast<std::uint64_t>(count);
  map.arrays = arrays;
  map.compute = Elem::float32;
  map.value = [](const std::vector<ir::Expr>& x, const std::vector<ir::Expr>&) {
    ir::Expr sum = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) sum = sum + x[i];
    return sum;
  };
  grid_map(flat, map);
}

bool whole_product(const NDArray& out, const NDArray& a_in, const NDArray& b_in,
                   const WholeChoice* measured) {
  if (!has_whole_product(out.device(), a_in.elem())) return false;
  const int r = out.ndim();
  int inner_a = 0, inner_b = 0;
  const NDArray a = readable(a_in, &inner_a), b = readable(b_in, &inner_b);
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  const Batch batch = join(Dims(out.shape().data(), r - 2), a, b);
  const std::int64_t batches = batch.shape[0] * batch.shape[1], steps = ceil_div(k, 64);
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 4096;
  if (batch.shape.size() > 2 || std::max({m, n, k}) >= kMost ||
      ceil_div(m, 64) * ceil_div(n, 64) * batches >= kMost)
    return false;
  const WholeChoice choice =
      measured ? *measured
               : choose_whole(grid_of(out.device()).processors, batches, m, n, steps, true);
  WholeProduct spec;
  spec.type = a.dtype();
  spec.groups = choice.groups, spec.columns = choice.columns, spec.stages = choice.stages;
  spec.a_along_m = inner_a == r - 2, spec.b_along_n = inner_b == r - 1;
  WholeNumbers x;
  x.resident = choice.resident;
  x.part = ceil_div(steps, choice.parts), x.parts = ceil_div(steps, x.part);
  const bool narrow = out.elem() != Elem::float32;
  const bool rows =
      n % 8 == 0 &&
      (out.offset() * 2 + static_cast<std::int64_t>(out.handle()->address() % 16)) % 16 == 0;
  spec.out = !narrow || x.parts > 1 ? WholeProduct::Out::partial
             : rows                 ? WholeProduct::Out::copied
                                    : WholeProduct::Out::stored;
  const NDArray to =
      x.parts == 1 ? out
                   : NDArray::empty(out.device(), Elem::float32, Dims{x.parts, batches, m, n});
  x.tiles_m = ceil_div(m, 64 * spec.groups), x.tiles_n = ceil_div(n, spec.columns);
  x.batches = batches, x.steps = steps, x.m = m, x.n = n, x.inner = batch.shape[0];
  auto moves = [&](const Dims& steps_of, std::int64_t* move, std::int64_t* extents) {
    for (int i = 0; i < 2; ++i)
      move[i] = steps_of[i] != 0, extents[i] = move[i] ? batch.shape[i] : 1;
  };
  std::int64_t ea[2], eb[2];
  moves(batch.a, x.move_a, ea), moves(batch.b, x.move_b, eb);
  const Dims &sa = a.strides(), &sb = b.strides();
  const WholeTensor from_a =
      spec.a_along_m ? tensor_of(a, {m, k, ea[0], ea[1]}, {sa[r - 1], batch.a[0], batch.a[1]})
                     : tensor_of(a, {k, m, ea[0], ea[1]}, {sa[r - 2], batch.a[0], batch.a[1]});
  const WholeTensor from_b =
      spec.b_along_n ? tensor_of(b, {n, k, eb[0], eb[1]}, {sb[r - 2], batch.b[0], batch.b[1]})
                     : tensor_of(b, {k, n, eb[0], eb[1]}, {sb[r - 1], batch.b[0], batch.b[1]});
  if (spec.out == WholeProduct::Out::copied) {
    const WholeTensor into = tensor_of(out, {n, m, batches, 1}, {n, m * n, 8});
    run_whole(out.device(), spec, {&from_a, &from_b, &into}, out, x);
  } else {
    run_whole(out.device(), spec, {&from_a, &from_b}, to, x);
    if (x.parts > 1) add_parts(out, to);
  }
  return true;
}

}  // namespace weft::device
