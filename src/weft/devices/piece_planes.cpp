// SPDX-License-Identifier: Apache-2.0
// Planes of pieces: element by element, and of the transposes of matrices by tiles in shared
// memory, in one pass.

#include <algorithm>

#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/base/text.h"
#include "weft/devices/grid.h"
#include "weft/devices/pieces.h"
#include "weft/ir/share.h"

namespace weft::device {

namespace {

using ir::Expr;
using ir::Stmt;

constexpr float kMostBfloat16 = 3.38953139e38F;  // 0x7F7F0000

/// Rounding to nearest may leave the range, so finite numbers are held within it; what is cut off
/// is in the next piece.
std::vector<Expr> piece_values(const Expr& x) {
  const auto whole = [](const Expr& v) { return ir::cast(dtypes::float32, v); };
  const Expr zero = ir::make_float(0), most = ir::make_float(kMostBfloat16);
  const Expr finite = ir::eq(x - x, zero);
  const Expr held = ir::max(ir::min(x, most), ir::make_float(-kMostBfloat16));
  const Expr first = ir::cast(dtypes::bfloat16, ir::select(finite, held, zero));
  const Expr rest = ir::select(finite, x - whole(first), zero);
  const Expr second = ir::cast(dtypes::bfloat16, rest);
  const Expr third = ir::cast(dtypes::bfloat16, rest - whole(second));
  return {ir::select(finite, first, ir::cast(dtypes::bfloat16, x)), second, third, first};
}

/// Room for pieces of `shape`, rows at multiples of 32 bytes, the sectors that memory is fetched
/// in.
NDArray empty_planes(const NDArray& like, const Dims& shape) {
  constexpr std::int64_t kRow = 16;
  Dims all{kPiecePlanes};
  for (std::int64_t n : shape) all.push_back(n);
  all[shape.size()] = ceil_div(shape[shape.size() - 1], kRow) * kRow;
  return NDArray::empty(like.device(), Elem::bfloat16, all);
}

constexpr std::int64_t kThreads = 256, kTile = 64, kPair = 2;

}  // namespace

// A warp reads 32 neighbours along the columns of x and writes pairs along its rows, 128 bytes of
// each plane. Rows are even, and shared memory has one element more in each line.
ir::PrimFunc turned_pieces_program(bool narrow) {
  Builder p(narrow);
  ir::Buffer planes[kPiecePlanes];  // one for each, so that no store waits for those of another
  for (int k = 0; k < kPiecePlanes; ++k) planes[k] = p.buffer(cat("plane", k), Elem::bfloat16, 4);
  const ir::Buffer x = p.buffer("x", Elem::float32);
  const Expr blocks = p.integer("blocks"), high = p.integer("blocks_r"),
             wide = p.integer("blocks_c"), rows = p.integer("rows"), columns = p.integer("columns"),
             row_in = p.integer("row_in"), batch_in = p.integer("batch_in"),
             pairs = p.integer("pairs"), batch_out = p.integer("batch_out");
  const ir::Buffer tile = shared("tile", dtypes::float32, {kTile * (kTile + 1)}),
                   held =
                       ir::make_buffer("held", dtypes::bfloat16,
                                       {ir::make_int(kPiecePlanes), ir::make_int(kPair)}, "local");
  auto at = [&](std::int64_t v) { return p.at(v); };
  auto mod = [](const Expr& a, const Expr& b) { return ir::make_binary(ir::ExprKind::mod, a, b); };
  auto body = [&](const Expr& block, const Expr& thread) {
    std::vector<std::pair<ir::Var, Expr>> names;
    auto let = [&](const char* name, const Expr& value) -> Expr {
      names.emplace_back(p.var(name), value);
      return names.back().first;
    };
    const Expr tiles = let("tiles", ir::div(block, wide)),
               batch = let("batch", ir::div(tiles, high)),
               c0 = let("c0", mod(block, wide) * at(kTile)),
               r0 = let("r0", mod(tiles, high) * at(kTile)),
               fast = let("fast", mod(thread, at(kTile))),
               slow = let("slow", ir::div(thread, at(kTile))),
               near = let("near", mod(thread, at(kTile / kPair)) * at(kPair)),
               far = let("far", ir::div(thread, at(kTile / kPair)));
    const std::int64_t pace_in = kThreads / kTile, pace_out = kThreads * kPair / kTile;
    const Stmt in = p.unrolled("i", kTile / pace_in, [&](const Expr& i) {
      const Expr r = slow + i * at(pace_in);
      return ir::if_then(
          ir::logical_and(ir::lt(r0 + r, rows), ir::lt(c0 + fast, columns)),
          ir::store(tile, ir::load(x, {batch * batch_in + (r0 + r) * row_in + (c0 + fast)}),
                    {r * at(kTile + 1) + fast}));
    });
    const Stmt back = p.unrolled("i", kTile / pace_out, [&](const Expr& i) {
      const Expr c = far + i * at(pace_out);
      std::vector<Stmt> all{p.unrolled("e", kPair, [&](const Expr& e) {
        return ir::with_shared(
            piece_values(ir::load(tile, {(near + e) * at(kTile + 1) + c})),
            [&](const ir::Exprs& v) {
              std::vector<Stmt> stores;
              for (std::size_t k = 0; k < v.size(); ++k)
                stores.push_back(ir::store(held, v[k], {at(static_cast<std::int64_t>(k)), e}));
              return ir::seq(std::move(stores));
            });
      })};
      const Expr to = batch * batch_out + (c0 + c) * pairs + ir::div(r0 + near, at(kPair));
      for (int k = 0; k < kPiecePlanes; ++k) {
        all.push_back(p.loop(
            "v", at(kPair),
            [&](const Expr& v) {
              return ir::store(planes[k], ir::load(held, {at(k), v}), {to * at(kPair) + v});
            },
            ir::ForKind::vectorized));
      }
      return ir::if_then(ir::logical_and(ir::lt(c0 + c, columns), ir::lt(r0 + near, rows)),
                         ir::allocate(held, ir::seq(std::move(all))));
    });
    Stmt s = ir::allocate(tile, ir::seq({in, back}));
    for (std::size_t i = names.size(); i-- > 0;)
      s = ir::let_stmt(names[i].first, names[i].second, s);
    return s;
  };
  return p.finish(p.bound("blockIdx.x", blocks,
                          [&](const Expr& block) {
                            return p.bound("threadIdx.x", at(kThreads),
                                           [&](const Expr& thread) { return body(block, thread); });
                          }),
                  true);
}

NDArray piece_planes(const NDArray& x) {
  const NDArray planes = empty_planes(x, x.shape());
  const Dims steps(planes.strides().data() + 1, x.ndim());
  std::vector<NDArray> outs;
  for (int i = 0; i < kPiecePlanes; ++i)
    outs.push_back(planes.as_strided(x.shape(), steps, planes.offset() + i * planes.strides()[0]));
  const NDArray* arrays[] = {&x};
  Map map;
  map.family = "pieces", map.arrays = arrays;
  grid_map(outs, map, [](const std::vector<Expr>& loads, const std::vector<Expr>&) {
    return piece_values(loads[0]);
  });
  return planes;
}

NDArray turned_piece_planes(const NDArray& x) {
  const std::int64_t batches = x.shape()[0], rows = x.shape()[1], columns = x.shape()[2];
  const bool lies = rows % kPair == 0 && (columns == 1 || x.strides()[2] == 1);
  if (!lies) return piece_planes(x.transpose(1, 2).contiguous());
  const NDArray planes = empty_planes(x, Dims{batches, columns, rows});
  const Dims& to = planes.strides();
  const std::int64_t high = ceil_div(rows, kTile), wide = ceil_div(columns, kTile);
  const std::int64_t blocks = batches * high * wide;
  const std::int64_t reach = batches * std::abs(x.strides()[0]) +
                             (rows + kTile) * std::abs(x.strides()[1]) + columns + kTile;
  const bool narrow = fits_narrow(std::max({reach, planes.size() + kTile * to[2] + kTile, blocks}));
  ProgramCall call(x.device());
  for (int k = 0; k < kPiecePlanes; ++k) call.array(planes.select(0, k));
  call.array(x).integer(blocks).integer(high).integer(wide);
  call.integer(rows).integer(columns).integer(x.strides()[1]).integer(x.strides()[0]);
  call.integer(to[2] / kPair).integer(to[1] / kPair);
  call.run({"pieces.turned", {narrow}}, [&] { return turned_pieces_program(narrow); });
  return planes;
}

}  // namespace weft::device
