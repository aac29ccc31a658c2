// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit arrays by warp-specialized programs (gemm_program.h): how operands are read,
// which program, its arguments.

#include <algorithm>
#include <cstdlib>

#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/devices/gemm_program.h"
#include "weft/devices/kept_choices.h"
#include "weft/devices/pieces.h"
#include "weft/devices/reduce_program.h"
#include "weft/devices/tuned_decisions.h"
#include "weft/devices/warp_specialized.h"
#include "weft/devices/warp_specialized_call.h"
#include "weft/rules/product_choice.h"

namespace weft::device {

namespace {

constexpr std::int64_t kUnit = 8;  // of a result's rows

/// Elements of 16 bytes.
std::int64_t lanes_of_vector(const NDArray& x) { return 16 / elem_bytes(x.elem()); }

/// Rows of 16 bytes: whether a copy engine can read this axis pair, `inner` being the fast one.
bool rows_fit(const NDArray& x, int inner, int outer) {
  const Dims &shape = x.shape(), &steps = x.strides();
  bool fits = begins_at(x, 16) && (steps[inner] == 1 || shape[inner] == 1) &&
              (shape[outer] == 1 || (steps[outer] > 0 && steps[outer] % lanes_of_vector(x) == 0));
  for (int i = 0; i + 2 < x.ndim(); ++i)
    fits = fits && steps[i] >= 0 && steps[i] % lanes_of_vector(x) == 0;
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
TileOperand readable(const NDArray& x, int only) {
  const int r = x.ndim();
  if (only >= 0) {
    const bool last = only == r - 1;
    if (rows_fit(x, only, last ? r - 2 : r - 1)) return {x, only};
    const NDArray copy = in_vectors(last ? x : x.transpose(r - 2, r - 1));
    return {last ? copy : copy.transpose(r - 2, r - 1), only};
  }
  if (rows_fit(x, r - 1, r - 2)) return {x, r - 1};
  if (rows_fit(x, r - 2, r - 1)) return {x, r - 2};
  const bool turned = lies_turned(x);
  // What lies behind a row is outside of the tensor that the copy engine sees.
  const NDArray copy = in_vectors(turned ? x.transpose(r - 2, r - 1) : x);
  return turned ? TileOperand{copy.transpose(r - 2, r - 1), r - 2} : TileOperand{copy, r - 1};
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
          {static_cast<int>(elem_of(p.type)),
           static_cast<int>(elem_of(p.type_b)),
           static_cast<int>(elem_of(p.result)),
           static_cast<int>(p.scale_a),
           static_cast<int>(p.scale_b),
           p.bias ? 1 + static_cast<int>(elem_of(p.bias_type)) : 0,
           p.partial,
           p.a_along_m,
           p.b_along_n,
           p.unit,
           p.batch_axes,
           moves,
           p.pieces,
           p.pitched,
           d.rows,
           d.columns,
           d.slots,
           d.parts > 1,
           d.blocks,
           d.cluster,
           d.cluster_columns,
           d.turned}};
}

rules::GemmShape shape_of(const NDArray& out, const NDArray& a, const NDArray& b, int inner_a,
                          int inner_b, std::int64_t batches, bool pieces, bool pitched) {
  const int r = out.ndim();
  rules::GemmShape s;
  s.batches = batches, s.m = out.shape()[r - 2], s.n = out.shape()[r - 1], s.k = a.shape()[r - 1];
  s.bytes = elem_bytes(a.elem()), s.result_bytes = elem_bytes(out.elem());
  auto pitch = [&](const NDArray& x, int inner) {
    return x.strides()[inner == r - 1 ? r - 2 : r - 1] * s.bytes;
  };
  s.pitch_a = pitch(a, inner_a), s.pitch_b = pitch(b, inner_b);
  s.a_along_m = inner_a == r - 2, s.b_along_n = inner_b == r - 1, s.divisible = !pitched,
  s.pieces = pieces;
  if (pieces) s.column_unit = kPieceColumns;
  return s;
}

/// In vectors of 16 bytes; the stride of an axis of one element is never used, but must be legal.
std::int64_t step_of(const NDArray& x, int axis) {
  return x.shape()[axis] == 1 ? 1 : x.strides()[axis] / lanes_of_vector(x);
}

}  // namespace

rules::GemmDecisions gemm_choice(const Grid& grid, const rules::GemmShape& shape) {
  thread_local KeptChoices<rules::GemmDecisions> kept;
  return kept.find({&grid, shape},
                   [&] { return rules::choose_gemm(rules::gemm_machine(grid), shape); });
}

namespace {

Decision decision_of(const rules::GemmDecisions& d) {
  return {d.rows, d.columns, d.slots, d.parts, d.blocks, d.cluster, d.cluster_columns, d.turned};
}

}  // namespace

rules::GemmDecisions tuned_gemm(const Ref<Device>& device, const rules::GemmShape& s) {
  const std::int64_t facts[] = {s.batches,
                                s.m,
                                s.n,
                                s.k,
                                s.bytes,
                                s.pitch_a,
                                s.pitch_b,
                                s.a_along_m,
                                s.b_along_n,
                                s.divisible,
                                s.most_rows,
                                s.column_unit,
                                s.pieces,
                                s.most_cluster,
                                s.read_bytes,
                                s.keeps_pieces,
                                s.result_bytes,
                                s.turns};
  constexpr std::uint64_t kExtents = 0b1101111;  // batches, m, n, k and the pitches
  const Grid& grid = grid_of(device);
  const Decision* found = tuned_decision({"product.tensor_core", device, facts, kExtents}, [&] {
    std::vector<Decision> out;
    for (const rules::GemmDecisions& d : rules::gemm_options(rules::gemm_machine(grid), s))
      out.push_back(decision_of(d));
    return out;
  });
  if (!found) return gemm_choice(grid, s);
  const Decision& d = *found;
  return {d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] != 0};
}

bool reads_in_bulk(const NDArray& x) {
  const int r = x.ndim();
  return rows_fit(x, r - 1, r - 2) || rows_fit(x, r - 2, r - 1);
}

bool has_warp_specialized_product(const Ref<Device>& device, Elem elem) {
  return (elem == Elem::float16 || elem == Elem::bfloat16) && grid_of(device).whole_products();
}

bool has_scaled_product(const Ref<Device>& device) { return grid_of(device).whole_products(); }

bool prefers_product(const NDArray& out, const NDArray& a, const NDArray& b) {
  if (a.elem() != b.elem() || !has_warp_specialized_product(out.device(), a.elem())) return false;
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
  const double clocks =
      rules::choose_tile(grid, 4, {batches, m, n, k}, rules::TileReads::no_vectors).clocks;
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
Scale scale_of(NDArray& x, std::int64_t extent, Elem elem = Elem::float32) {
  if (!x.defined()) return Scale::none;
  WEFT_CHECK(
      (x.elem() == Elem::float32 || x.elem() == elem) && (x.size() == 1 || x.size() == extent),
      "a scale of shape ", x.size());
  x = x.contiguous();
  return x.size() == 1 ? Scale::one : Scale::each;
}

bool multiply(const NDArray& out, const TileOperand& of_a, const TileOperand& of_b,
              const rules::GemmDecisions* measured, const ProductScales* scaled) {
  const NDArray &a = of_a.x, &b = of_b.x;
  const int r = out.ndim(), inner_a = of_a.inner, inner_b = of_b.inner;
  const bool pieces = of_a.plane > 0;
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  const Batch batch = join(Dims(out.shape().data(), r - 2), a, b);
  const std::int64_t steps = ceil_div(k, 128 / elem_bytes(a.elem()));
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 4096;
  if (std::max({m, n, k}) >= kMost || ceil_div(m, 64) * ceil_div(n, 64) * batch.size >= kMost)
    return false;
  if (batch.shape.size() > GemmProgram::kMostBatchAxes) return false;
  GemmProgram p;
  p.pieces = pieces;
  p.pitched = r == 2 && m > 1 && out.strides()[0] != n;
  p.decisions = measured ? *measured
                         : tuned_gemm(out.device(), shape_of(out, a, b, inner_a, inner_b,
                                                             batch.size, pieces, p.pitched));
  const std::int64_t part = ceil_div(steps, p.decisions.parts), parts = ceil_div(steps, part);
  p.decisions.parts = parts;
  p.type = a.dtype(), p.type_b = b.dtype(), p.result = out.dtype();
  ProductScales scales = scaled ? *scaled : ProductScales{};
  p.scale_a = scale_of(scales.a, m), p.scale_b = scale_of(scales.b, n);
  p.bias = scale_of(scales.bias, n, out.elem()) != Scale::none;
  if (scales.bias.defined()) p.bias_type = scales.bias.dtype();
  p.a_along_m = inner_a == r - 2, p.b_along_n = inner_b == r - 1;
  p.partial = (out.elem() == Elem::float32 && !scaled) || parts > 1;
  if (p.partial) p.scale_a = p.scale_b = Scale::none, p.bias = false;
  const bool rows =
      n % kUnit == 0 &&
      (out.offset() * 2 + static_cast<std::int64_t>(out.handle()->address() % 16)) % 16 == 0;
  p.unit = rows && !p.partial && elem_bytes(out.elem()) == 2 ? static_cast<int>(kUnit)
           : n % 2 == 0                                      ? 2
                                                             : 1;
  if (p.pitched && (out.strides()[0] % 2 || out.offset() % 2)) p.unit = 1;
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
    if (pieces) call.integer((first ? of_a : of_b).plane / lanes_of_vector(a));
    for (int i = 0; i < p.batch_axes; ++i)
      if (moves[i]) call.integer(strides[i] / lanes_of_vector(first ? a : b));
    const int inner = first ? inner_a : inner_b;
    call.integer(step_of(first ? a : b, inner == r - 1 ? r - 2 : r - 1));
  }
  if (p.pitched) call.integer(out.strides()[0] / p.unit);
  call.run(key_of(p), [&] { return p.scheduled(); });
  if (parts > 1 && scaled) {
    const NDArray sums = NDArray::empty(out.device(), Elem::float32, out.shape());
    add_parts(sums, to);
    if (p.bias_type != dtypes::float32) scales.bias = scales.bias.astype(Elem::float32);
    assign(out, apply_scales(sums, scales));
  } else if (parts > 1) {
    add_parts(out, to);
  }
  return true;
}

/// Of `extent` rows or columns of a result, so many that their pieces, of `bytes` each, fit in
/// `room`: whole rounds of tiles on all processors, where one fits.
std::int64_t in_turn(std::int64_t extent, std::int64_t room, std::int64_t bytes, std::int64_t tile,
                     std::int64_t round) {
  std::int64_t count = room / bytes / tile * tile;
  if (count >= round) count = count / round * round;
  return count < extent ? count : 0;
}

/// Pieces take twice the memory of their operand. Where that is much, a part of the rows, of the
/// columns or of the sum is in pieces at a time.
bool multiply_pieces(const NDArray& out, const NDArray& a, const NDArray& b,
                     const rules::GemmDecisions* measured, const ProductScales* scaled) {
  constexpr std::int64_t kLeast = std::int64_t{1} << 27, kShare = 8;  // of the whole, in bytes
  constexpr std::int64_t kLeastTerms = 2048, kBytes = 2 * kPiecePlanes, kRows = 128, kColumns = 192;
  const int r = out.ndim();
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1], k = a.shape()[r - 1];
  const std::int64_t of_a = kBytes * m * k, of_b = kBytes * n * k;
  const std::int64_t most = std::max(kLeast, (of_a + of_b + 4 * m * n) / kShare);
  if (r != 2 || of_a + of_b <= most || (scaled && (scaled->a.defined() || scaled->b.defined())))
    return multiply(out, pieces_of(a), pieces_of(b), measured, scaled);
  const std::int64_t processors = grid_of(out.device()).processors();
  auto rounds = [&](std::int64_t tiles) { return std::max<std::int64_t>(1, processors / tiles); };
  bool done = true;
  if (2 * of_b <= most) {
    const std::int64_t rows =
        in_turn(m, most - of_b, kBytes * k, kRows, kRows * rounds(ceil_div(n, kColumns)));
    const TileOperand whole = rows ? pieces_of(b) : TileOperand();
    for (std::int64_t i = 0; rows && done && i < m; i += rows) {
      const std::int64_t count = std::min(rows, m - i);
      done = multiply(out.slice(0, i, count, 1), pieces_of(a.slice(0, i, count, 1)), whole,
                      measured, scaled);
    }
    if (rows) return done;
  }
  if (2 * of_a <= most) {
    const std::int64_t columns =
        in_turn(n, most - of_a, kBytes * k, kColumns, kColumns * rounds(ceil_div(m, kRows)));
    const TileOperand whole = columns ? pieces_of(a) : TileOperand();
    for (std::int64_t i = 0; columns && done && i < n; i += columns) {
      const std::int64_t count = std::min(columns, n - i);
      ProductScales part;
      if (scaled) part.bias = scaled->bias.slice(0, i, count, 1);
      done = multiply(out.slice(1, i, count, 1), whole, pieces_of(b.slice(1, i, count, 1)),
                      measured, scaled ? &part : nullptr);
    }
    if (columns) return done;
  }
  const std::int64_t terms = std::max(kLeastTerms, most / (kBytes * (m + n)) / 64 * 64),
                     parts = ceil_div(k, terms);
  if (parts == 1 || 4 * parts * m * n > most || scaled)
    return multiply(out, pieces_of(a), pieces_of(b), measured, scaled);
  const NDArray sums = NDArray::empty(out.device(), Elem::float32, Dims{parts, m, n});
  for (std::int64_t i = 0; done && i < parts; ++i) {
    const std::int64_t count = std::min(terms, k - i * terms);
    done = multiply(sums.slice(0, i, 1, 1).reshape(Dims{m, n}),
                    pieces_of(a.slice(1, i * terms, count, 1)),
                    pieces_of(b.slice(0, i * terms, count, 1)), measured, nullptr);
  }
  if (done) add_parts(out, sums);
  return done;
}

}  // namespace

bool warp_specialized_product(const NDArray& out, const NDArray& a, const NDArray& b,
                              const rules::GemmDecisions* measured, const ProductScales* scaled) {
  const bool bytes = is_float8(a.elem()), pieces = a.elem() == Elem::float32;
  if (!(bytes || pieces ? has_scaled_product(out.device())
                        : has_warp_specialized_product(out.device(), a.elem())))
    return false;
  const int r = out.ndim();
  auto with = [&](const NDArray& x, const NDArray& y) {
    if (pieces) return multiply_pieces(out, x, y, measured, scaled);
    return multiply(out, readable(x, bytes ? r - 1 : -1), readable(y, bytes ? r - 2 : -1), measured,
                    scaled);
  };
  if (with(a, b)) return true;
  // In order, batch axes are one.
  if (r < 5 || (a.is_contiguous() && b.is_contiguous())) return false;
  return with(a.contiguous(), b.contiguous());
}

}  // namespace weft::device
