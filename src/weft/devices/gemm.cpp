// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit arrays by warp-specialized programs (gemm_program.h): how operands are read,
// which program, its arguments.

#include <algorithm>
#include <cstdlib>

#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/devices/gemm_program.h"
#include "weft/devices/reduce_program.h"
#include "weft/devices/tile.h"
#include "weft/devices/whole.h"
#include "weft/devices/whole_call.h"

namespace weft::device {

namespace {

constexpr std::int64_t kUnit = 8;  // of a result's rows

/// Elements of 16 bytes.
std::int64_t vector_of(const NDArray& x) { return 16 / elem_bytes(x.elem()); }

/// Rows of 16 bytes: whether a copy engine can read this axis pair, `inner` being the fast one.
bool rows_fit(const NDArray& x, int inner, int outer) {
  const Dims &shape = x.shape(), &steps = x.strides();
  bool fits = begins_at(x, 16) && (steps[inner] == 1 || shape[inner] == 1) &&
              (shape[outer] == 1 || (steps[outer] > 0 && steps[outer] % vector_of(x) == 0));
  for (int i = 0; i + 2 < x.ndim(); ++i)
    fits = fits && steps[i] >= 0 && steps[i] % vector_of(x) == 0;
  return fits;
}

/// The operand with rows of whole vectors of 16 bytes at multiples of them; else a copy of it.
NDArray in_vectors(const NDArray& x) {
  const int r = x.ndim();
  const std::int64_t vector = 16 / elem_bytes(x.elem());
  bool fits = begins_at(x, 16) && (x.strides()[r - 1] == 1 || x.shape()[r - 1] == 1) &&
              x.shape()[r - 1] % vector == 0;
  for (int i = 0; i + 1 < r; ++i) fits = fits && x.strides()[i] % vector == 0;
  if (fits) return x;
  // Batches that are repeated are copied once.
  Dims shape = x.shape(), once = x.shape();
  for (int i = 0; i + 2 < r; ++i) {
    if (x.strides()[i] == 0) once[i] = 1;
  }
  Dims wide = once;
  // Rows at multiples of 32 bytes, the sectors that memory is fetched in.
  const std::int64_t pad = 2 * vector;
  wide[r - 1] = ceil_div(once[r - 1], pad) * pad;
  NDArray out = NDArray::empty(x.device(), x.elem(), wide);
  assign(out.as_strided(once, out.strides(), out.offset()),
         x.as_strided(once, x.strides(), x.offset()));
  Dims steps = out.strides();
  for (int i = 0; i + 2 < r; ++i) {
    if (once[i] != shape[i]) steps[i] = 0;
  }
  return out.as_strided(shape, steps, out.offset());
}

/// The operand itself where the copy engine can read it, else a copy of its rows. `only`: the axis
/// that rows must lie along; -1: any.
NDArray readable(const NDArray& x, int* inner, int only) {
  const int r = x.ndim();
  if (only >= 0) {
    const bool last = only == r - 1;
    *inner = only;
    if (rows_fit(x, only, last ? r - 2 : r - 1)) return x;
    const NDArray copy = in_vectors(last ? x : x.transpose(r - 2, r - 1));
    return last ? copy : copy.transpose(r - 2, r - 1);
  }
  *inner = r - 1;
  if (rows_fit(x, r - 1, r - 2)) return x;
  *inner = r - 2;
  if (rows_fit(x, r - 2, r - 1)) return x;
  const bool turned = std::abs(x.strides()[r - 2]) < std::abs(x.strides()[r - 1]) &&
                      x.shape()[r - 1] > 1 && x.shape()[r - 2] > 1;
  if (!turned) *inner = r - 1;
  // What lies behind a row is outside of the tensor that the copy engine sees.
  NDArray copy = in_vectors(turned ? x.transpose(r - 2, r - 1) : x);
  return turned ? copy.transpose(r - 2, r - 1) : copy;
}

/// Batch axes of both operands, joined where both allow it; outermost first.
struct Batch {
  Dims shape, a, b;
  std::int64_t size = 1;
};
Batch join(const Dims& shape, const NDArray& a, const NDArray& b) {
  Batch out;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    out.size *= shape[i];
    const int last = out.shape.size() - 1;
    if (last >= 0 && out.a[last] == a.strides()[i] * shape[i] &&
        out.b[last] == b.strides()[i] * shape[i]) {
      out.shape[last] *= shape[i];
      out.a[last] = a.strides()[i], out.b[last] = b.strides()[i];
      continue;
    }
    out.shape.push_back(shape[i]);
    out.a.push_back(a.strides()[i]), out.b.push_back(b.strides()[i]);
  }
  return out;
}

ProgramKey key_of(const GemmProgram& p) {
  std::int64_t moves = 0;
  for (int i = 0; i < GemmProgram::kMostBatchAxes; ++i)
    moves = moves * 4 + (p.moves_a[i] ? 2 : 0) + (p.moves_b[i] ? 1 : 0);
  const rules::GemmDecisions& d = p.decisions;
  return {"gemm_tensor_core",
          {static_cast<int>(elem_of(p.type)), static_cast<int>(elem_of(p.type_b)),
           static_cast<int>(elem_of(p.result)), static_cast<int>(p.scale_a),
           static_cast<int>(p.scale_b), p.bias, p.partial, p.a_along_m, p.b_along_n, p.unit,
           p.batch_axes, moves, d.rows, d.columns, d.slots, d.parts > 1, d.blocks, d.cluster}};
}

rules::GemmShape shape_of(const NDArray& out, const NDArray& a, const NDArray& b, int inner_a,
                          int inner_b, std::int64_t batches) {
  const int r = out.ndim();
  rules::GemmShape s;
  s.batches = batches, s.m = out.shape()[r - 2], s.n = out.shape()[r - 1], s.k = a.shape()[r - 1];
  s.bytes = elem_bytes(a.elem()), s.result_bytes = elem_bytes(out.elem());
  auto pitch = [&](const NDArray& x, int inner) {
    return x.strides()[inner == r - 1 ? r - 2 : r - 1] * s.bytes;
  };
  s.pitch_a = pitch(a, inner_a), s.pitch_b = pitch(b, inner_b);
  s.b_along_n = inner_b == r - 1, s.divisible = true;
  return s;
}

/// Hundreds of candidates are compared: what was chosen for the last shapes is kept.
rules::GemmDecisions choice_for(const Grid& grid, const rules::GemmShape& shape) {
  struct Kept {
    const Grid* grid = nullptr;
    rules::GemmShape shape;
    rules::GemmDecisions choice;
  };
  thread_local Kept kept[64];
  const std::int64_t mix = shape.m * 7 + shape.n * 131 + shape.k * 1031 + shape.batches * 3;
  Kept& k = kept[static_cast<std::size_t>(mix ^ mix >> 9) % 64];
  if (k.grid != &grid || !(k.shape == shape))
    k = {&grid, shape, rules::choose_gemm(rules::gemm_machine(grid), shape)};
  return k.choice;
}

/// In vectors of 16 bytes; the stride of an axis of one element is never used, but must be legal.
std::int64_t step_of(const NDArray& x, int axis) {
  return x.shape()[axis] == 1 ? 1 : x.strides()[axis] / vector_of(x);
}

}  // namespace

bool reads_in_bulk(const NDArray& x) {
  const int r = x.ndim();
  return rows_fit(x, r - 1, r - 2) || rows_fit(x, r - 2, r - 1);
}

bool has_whole_product(const Ref<Device>& device, Elem elem) {
  return (elem == Elem::float16 || elem == Elem::bfloat16) && grid_of(device).whole_products();
}

bool has_scaled_product(const Ref<Device>& device) { return grid_of(device).whole_products(); }

bool prefers_product(const NDArray& out, const NDArray& a, const NDArray& b) {
  if (a.elem() != b.elem() || !has_whole_product(out.device(), a.elem())) return false;
  const Grid& grid = grid_of(out.device());
  const int r = out.ndim();
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  const std::int64_t batches = out.size() / (m * n);
  std::int64_t copied = 0, copies = 0;  // bytes of operands that do not lie in vectors
  for (const NDArray* x : {&a, &b}) {
    if (reads_in_bulk(*x)) continue;
    std::int64_t bytes = elem_bytes(x->elem());
    for (int i = 0; i < r; ++i) bytes *= x->strides()[i] == 0 && i + 2 < r ? 1 : x->shape()[i];
    ++copies, copied += bytes;
  }
  // A product with few vectors is bound by reading the matrix: threads do that as well.
  constexpr std::int64_t kWorthTiles = 1 << 21;  // bytes of the matrix
  if (std::min(m, n) <= kFewColumns) {
    const std::int64_t bytes = 2 * std::max(m, n) * k * batches;
    return copies == 0 && std::min(m, n) > 2 && bytes >= kWorthTiles;
  }
  const double clocks = choose_tile(grid, 4, batches, m, n, k, TileReads::no_vectors).clocks;
  // Conversions are made by the threads that multiply, which then wait for what they load.
  constexpr double kConverted = 1.4;
  const double by_threads = kConverted * clocks / grid.clocks_per_microsecond();
  const double sums = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                      static_cast<double>(batches);
  const double by_tiles = sums / (grid.tile_sums_per_microsecond()) +
                          kLaunchMicroseconds * static_cast<double>(copies) +
                          static_cast<double>(2 * copied) / grid.bytes_per_microsecond();
  return by_tiles < by_threads;
}

namespace {

using Scale = GemmProgram::Scale;

/// `x` becomes an array in order: one number, or one for each of `extent`.
Scale scale_of(NDArray& x, std::int64_t extent) {
  if (!x.defined()) return Scale::none;
  WEFT_CHECK(x.elem() == Elem::float32 && (x.size() == 1 || x.size() == extent),
             "a scale of shape ", x.size());
  x = x.contiguous();
  return x.size() == 1 ? Scale::one : Scale::each;
}

}  // namespace

bool whole_product(const NDArray& out, const NDArray& a_in, const NDArray& b_in,
                   const rules::GemmDecisions* measured, const ProductScales* scaled) {
  const bool bytes = is_float8(a_in.elem());
  if (!(bytes ? has_scaled_product(out.device()) : has_whole_product(out.device(), a_in.elem())))
    return false;
  const int r = out.ndim();
  int inner_a = 0, inner_b = 0;
  const NDArray a = readable(a_in, &inner_a, bytes ? r - 1 : -1),
                b = readable(b_in, &inner_b, bytes ? r - 2 : -1);
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  const Batch batch = join(Dims(out.shape().data(), r - 2), a, b);
  const std::int64_t steps = ceil_div(k, 128 / elem_bytes(a.elem()));
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 4096;
  if (std::max({m, n, k}) >= kMost || ceil_div(m, 64) * ceil_div(n, 64) * batch.size >= kMost)
    return false;
  if (batch.shape.size() > GemmProgram::kMostBatchAxes)  // in order, they are one axis
    return whole_product(out, a_in.contiguous(), b_in.contiguous(), measured, scaled);
  GemmProgram p;
  p.decisions = measured ? *measured
                         : choice_for(grid_of(out.device()),
                                      shape_of(out, a, b, inner_a, inner_b, batch.size));
  const std::int64_t part = ceil_div(steps, p.decisions.parts), parts = ceil_div(steps, part);
  p.decisions.parts = parts;
  p.type = a.dtype(), p.type_b = b.dtype(), p.result = out.dtype();
  ProductScales scales = scaled ? *scaled : ProductScales{};
  p.scale_a = scale_of(scales.a, m), p.scale_b = scale_of(scales.b, n);
  p.bias = scale_of(scales.bias, n) != Scale::none;
  p.a_along_m = inner_a == r - 2, p.b_along_n = inner_b == r - 1;
  p.partial = (out.elem() == Elem::float32 && !scaled) || parts > 1;
  if (p.partial) p.scale_a = p.scale_b = Scale::none, p.bias = false;
  const bool rows =
      n % kUnit == 0 &&
      (out.offset() * 2 + static_cast<std::int64_t>(out.handle()->address() % 16)) % 16 == 0;
  p.unit = rows && !p.partial && elem_bytes(out.elem()) == 2 ? static_cast<int>(kUnit)
           : n % 2 == 0                                      ? 2
                                                             : 1;
  p.batch_axes = batch.shape.size();
  for (int i = 0; i < p.batch_axes; ++i)
    p.moves_a[i] = batch.a[i] != 0, p.moves_b[i] = batch.b[i] != 0;
  const NDArray to =
      parts == 1 ? out : NDArray::empty(out.device(), Elem::float32, Dims{parts, batch.size, m, n});
  ProgramCall call(out.device());
  call.array(a).array(b).array(to);
  if (p.scale_a != Scale::none) call.array(scales.a);
  if (p.scale_b != Scale::none) call.array(scales.b);
  if (p.bias) call.array(scales.bias);
  for (std::int64_t v : {m, n / p.unit, k, parts, part}) call.integer(v);
  for (int i = 0; i < p.batch_axes; ++i) call.integer(batch.shape[i]);
  for (const bool first : {true, false}) {
    const Dims& strides = first ? batch.a : batch.b;
    const bool* moves = first ? p.moves_a : p.moves_b;
    for (int i = 0; i < p.batch_axes; ++i)
      if (moves[i]) call.integer(strides[i] / vector_of(first ? a : b));
    const int inner = first ? inner_a : inner_b;
    call.integer(step_of(first ? a : b, inner == r - 1 ? r - 2 : r - 1));
  }
  call.run(key_of(p), [&] { return p.scheduled(); });
  if (parts > 1 && scaled) {
    const NDArray sums = NDArray::empty(out.device(), Elem::float32, out.shape());
    add_parts(sums, to);
    assign(out, apply_scales(sums, scales));
  } else if (parts > 1) {
    add_parts(out, to);
  }
  return true;
}

}  // namespace weft::device
