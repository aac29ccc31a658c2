// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/pieces.h"

#include <algorithm>
#include <cstdlib>

#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/devices/kept_choices.h"
#include "weft/devices/reduce_program.h"
#include "weft/rules/product_choice.h"

namespace weft::device {

using ir::Expr;

bool lies_turned(const NDArray& x) {
  const int r = x.ndim();
  return std::abs(x.strides()[r - 2]) < std::abs(x.strides()[r - 1]) && x.shape()[r - 1] > 1 &&
         x.shape()[r - 2] > 1;
}

ir::Expr piece_plane(const Expr& pair, const int* planes) {
  std::int64_t digits = 0;
  for (int v = rules::kPieceProducts; v-- > 0;) digits = digits * 4 + planes[v];
  auto number = [&](std::int64_t v) { return ir::make_int(v, pair->dtype); };
  return ir::floormod(ir::call("shift_right", {number(digits), pair * number(2)}), number(4));
}

TileOperand pieces_of(const NDArray& x) {
  const int r = x.ndim();
  const bool turned = lies_turned(x);
  const NDArray from = turned ? x.transpose(r - 2, r - 1) : x;
  // Batches that are repeated are written once.
  Dims shape = from.shape(), once = from.shape();
  for (int i = 0; i + 2 < r; ++i) {
    if (from.strides()[i] == 0) once[i] = 1;
  }
  const NDArray planes = piece_planes(from.as_strided(once, from.strides(), from.offset()));
  Dims steps(planes.strides().data() + 1, r);
  for (int i = 0; i + 2 < r; ++i) {
    if (once[i] != shape[i]) steps[i] = 0;
  }
  const NDArray first = planes.as_strided(shape, steps, planes.offset());
  return {turned ? first.transpose(r - 2, r - 1) : first, turned ? r - 2 : r - 1,
          planes.strides()[0]};
}

namespace {

/// Microseconds by tiles beside those by threads, for operands whose pieces take `copied` bytes.
bool is_worth(const Grid& grid, const rules::GemmShape& s, double copied) {
  const double clocks =
      rules::choose_tile(grid, 4, {s.batches, s.m, s.n, s.k}, rules::TileReads::both_in_vectors)
          .clocks;
  const double by_threads = clocks / grid.clocks_per_microsecond();
  const double by_pieces = rules::gemm_time(rules::gemm_machine(grid), s, gemm_choice(grid, s)) +
                           2 * kLaunchMicroseconds + copied / grid.bytes_per_microsecond();
  return by_pieces < by_threads;
}

}  // namespace

bool prefers_pieces(const NDArray& out, const NDArray& a, const NDArray& b) {
  if (a.elem() != Elem::float32 || b.elem() != Elem::float32 || out.elem() != Elem::float32 ||
      out.size() == 0)
    return false;
  const int r = out.ndim();
  rules::GemmShape s;
  s.m = out.shape()[r - 2], s.n = out.shape()[r - 1], s.k = a.shape()[r - 1];
  s.batches = out.size() / (s.m * s.n);
  s.result_bytes = 4, s.pieces = true, s.divisible = true, s.column_unit = kPieceColumns;
  // Less is over before pieces are made.
  constexpr double kWorthPieces = std::int64_t{1} << 27;  // multiply-adds
  const double sums = static_cast<double>(s.m) * static_cast<double>(s.n) *
                      static_cast<double>(s.k) * static_cast<double>(s.batches);
  if (sums < kWorthPieces || std::min(s.m, s.n) <= kFewColumns) return false;
  const Grid& grid = grid_of(out.device());
  if (!grid.whole_products()) return false;
  double copied = 0;
  for (const NDArray* x : {&a, &b}) {
    double bytes = 4 + 2 * kPiecePlanes;
    for (int i = 0; i < r; ++i)
      bytes *= static_cast<double>(x->strides()[i] == 0 && i + 2 < r ? 1 : x->shape()[i]);
    copied += bytes;
  }
  thread_local KeptChoices<bool> kept;
  return kept.find({&grid, s, copied}, [&] { return is_worth(grid, s, copied); });
}

}  // namespace weft::device
