// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/transpose.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "weft/array/collapse.h"
#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/operators/transpose.h"

namespace weft::device {

namespace {

/// dst[b..., c, r] = src[b..., r, c]: neighbours along c in src and along r in dst lie together.
struct Turn {
  std::int64_t rows = 1, columns = 1, row_in = 0, row_out = 0;
  bool backwards = false;  // src's neighbours lie one before the other
  Dims batch, batch_in, batch_out;
  std::int64_t batches() const {
    std::int64_t n = 1;
    for (std::int64_t extent : batch) n *= extent;
    return n;
  }
};

/// A tile of the shorter extent where that is short: no more of its places than half stay empty.
std::int64_t tile_columns(const Turn& t) {
  constexpr std::int64_t kLeast = 16, kSquare = 64;
  auto side = [&](std::int64_t n) {
    return std::max(kLeast, static_cast<std::int64_t>(
                                std::bit_ceil(static_cast<std::uint64_t>(std::min(n, kSquare)))));
  };
  if (side(t.columns) < kSquare) return side(t.columns);
  return operators::kTransposeTile / side(t.rows);
}

/// Elements of bytes and of 16 bits at once where every line of both sides has whole words.
std::int64_t lanes_of(const NDArray& dst, const NDArray& src, const Turn& t) {
  constexpr std::int64_t kWord = 4;
  const std::int64_t bytes = elem_bytes(dst.elem()),
                     lanes = std::max<std::int64_t>(1, kWord / bytes);
  bool whole = !t.backwards && t.rows % lanes == 0 && t.columns % lanes == 0 &&
               t.row_in % lanes == 0 && t.row_out % lanes == 0 && begins_at(dst, kWord) &&
               begins_at(src, kWord);
  for (const Dims* steps : {&t.batch_in, &t.batch_out})
    for (std::int64_t step : *steps) whole = whole && step % lanes == 0;
  return whole ? lanes : 1;
}

void run_turn(const NDArray& dst, const NDArray& src, const Turn& t) {
  operators::TransposeSpec spec;
  const std::int64_t bytes = elem_bytes(dst.elem());
  spec.type = cat("uint", 8 * bytes);
  spec.tile_columns = tile_columns(t);
  spec.backwards = t.backwards;
  spec.lanes = lanes_of(dst, src, t);
  spec.batch_axes = std::max(1, t.batch.size());
  const std::int64_t blocks_r = ceil_div(t.rows, spec.tile_rows()),
                     blocks_c = ceil_div(t.columns, spec.tile_columns);
  std::int64_t in = 0, out = 0;  // beyond all positions
  in = (t.rows + spec.tile_rows()) * std::abs(t.row_in) + t.columns + spec.tile_columns;
  out = (t.columns + spec.tile_columns) * std::abs(t.row_out) + t.rows + spec.tile_rows();
  for (int a = 0; a < t.batch.size(); ++a) {
    in += t.batch[a] * std::abs(t.batch_in[a]);
    out += t.batch[a] * std::abs(t.batch_out[a]);
  }
  spec.narrow = fits_narrow(std::max(in, out));
  ProgramCall call(dst.device());
  call.array(dst).array(src).integer(blocks_r).integer(blocks_c).integer(t.batches());
  call.integer(t.rows).integer(t.columns);
  call.integer(t.row_in / spec.lanes).integer(t.row_out / spec.lanes);
  for (int a = t.batch.size(); a-- > 0;) {
    call.integer(t.batch[a]);
    call.integer(t.batch_in[a] / spec.lanes).integer(t.batch_out[a] / spec.lanes);
  }
  if (t.batch.empty()) call.integer(1).integer(0).integer(0);
  call.run({"transpose",
            {bytes, spec.narrow, spec.lanes, spec.tile_columns, spec.backwards, spec.batch_axes}},
           [&] { return operators::transpose_program(spec); });
}

}  // namespace

void grid_transpose(const NDArray& out, const NDArray& x) {
  WEFT_CHECK(
      out.ndim() == 3 && x.ndim() == 3 && out.elem() == x.elem() && elem_bytes(x.elem()) <= 8,
      "operands of a transpose");
  Turn t;
  t.rows = x.shape()[1], t.columns = x.shape()[2];
  t.row_in = x.strides()[1], t.row_out = out.strides()[1];
  t.batch = Dims{x.shape()[0]}, t.batch_in = Dims{x.strides()[0]};
  t.batch_out = Dims{out.strides()[0]};
  WEFT_CHECK(out.shape()[0] == t.batch[0] && out.shape()[1] == t.columns &&
                 out.shape()[2] == t.rows && (x.strides()[2] == 1 || t.columns == 1) &&
                 (out.strides()[2] == 1 || t.rows == 1),
             "a transpose of other extents or strides");
  if (x.size() > 0) run_turn(out, x, t);
}

namespace {

/// How a copy of src to an array of this shape and these strides turns it; nothing where it does
/// not, or where copying element by element is as fast.
std::optional<Turn> find_turn(const Dims& to_shape, const Dims& strides, const NDArray& src) {
  constexpr std::int64_t kSmall = 1 << 16, kNarrow = 8, kFewPlaces = 1024;
  const std::int64_t bytes = elem_bytes(src.elem());
  std::int64_t size = 1;
  for (std::int64_t extent : to_shape) size *= extent;
  if (size < kSmall || bytes > 8) return std::nullopt;
  Dims shape = to_shape;
  std::vector<Dims> steps{strides, broadcast_strides(src, shape)};
  collapse_axes(shape, steps);
  int to = -1, from = -1;  // the axes of the unit steps
  for (int i = 0; i < shape.size(); ++i) {
    if (steps[0][i] == 1) to = i;
    if (std::abs(steps[1][i]) == 1) from = i;
  }
  if (to < 0 || from < 0 || to == from || shape[to] < kNarrow || shape[from] < kNarrow ||
      shape[to] * shape[from] < kFewPlaces)
    return std::nullopt;
  Turn t;
  t.rows = shape[to], t.columns = shape[from];
  t.row_in = steps[1][to], t.row_out = steps[0][from];
  t.backwards = steps[1][from] < 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (i == to || i == from) continue;
    t.batch.push_back(shape[i]);
    t.batch_in.push_back(steps[1][i]);
    t.batch_out.push_back(steps[0][i]);
  }
  operators::TransposeSpec spec;
  spec.tile_columns = tile_columns(t);
  if (grid_of(src.device()).shared_bytes() < spec.shared_elements() * bytes) return std::nullopt;
  return t;
}

}  // namespace

bool transpose_copy(const NDArray& dst, const NDArray& src) {
  if (dst.elem() != src.elem()) return false;
  const std::optional<Turn> turn = find_turn(dst.shape(), dst.strides(), src);
  if (turn) run_turn(dst, src, *turn);
  return turn.has_value();
}

NDArray transposed_for(const NDArray& out, const NDArray& operand) {
  const int rank = out.ndim();
  if (!(operand.shape() == out.shape()) || rank < 2 || operand.strides() == out.strides())
    return operand;
  const std::optional<Turn> turn =
      find_turn(out.shape(), NDArray::compact_strides(out.shape()), operand);
  if (!turn) return operand;
  NDArray transposed = NDArray::empty(out.device(), operand.elem(), out.shape());
  run_turn(transposed, operand, *turn);
  return transposed;
}

}  // namespace weft::device
