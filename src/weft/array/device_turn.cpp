// SPDX-License-Identifier: Apache-2.0
#include "weft/array/device_turn.h"

#include <algorithm>

#include "weft/array/collapse.h"
#include "weft/array/device_kernel.h"
#include "weft/array/nest.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr std::int64_t kTile = 64, kThreads = 256;

/// Elements are only moved: words of their width.
Elem moved_elem(std::int64_t bytes) {
  return bytes == 1   ? Elem::uint8
         : bytes == 2 ? Elem::uint16
         : bytes == 4 ? Elem::uint32
                      : Elem::uint64;
}

/// `lanes` neighbours are read and written at once.
ir::PrimFunc turn_kernel(std::int64_t bytes, bool narrow, std::int64_t lanes) {
  Builder p(narrow);
  const Elem elem = moved_elem(bytes);
  ir::Buffer out = p.buffer("out", elem), in = p.buffer("x", elem);
  const Expr blocks_r = p.integer("blocks_r"), blocks_c = p.integer("blocks_c"),
             batches = p.integer("batches"), rows = p.integer("rows"),
             columns = p.integer("columns"), batch_in = p.integer("batch_in"),
             row_in = p.integer("row_in"), batch_out = p.integer("batch_out"),
             row_out = p.integer("row_out");  // steps in vectors of `lanes`
  // Lines a few elements longer than the tile: columns fall on different banks.
  auto tile = ir::edit(shared("tile", dtype_of(elem), {kTile, kTile}));
  tile->strides = {ir::make_int(kTile + 2), ir::make_int(1)};
  const ir::Buffer t = tile, held = local("held", dtype_of(elem), lanes);
  const std::int64_t line = kTile / lanes, pace = kThreads / line;
  auto body = [&](const Expr& block, const Expr& thread) {
    std::vector<std::pair<ir::Var, Expr>> lets;
    auto let = [&](const char* name, const Expr& value) -> Expr {
      lets.emplace_back(p.var(name), value);
      return lets.back().first;
    };
    auto mod = [](const Expr& a, const Expr& b) {
      return ir::make_binary(ir::ExprKind::mod, a, b);
    };
    const Expr rest = let("rest", ir::div(block, blocks_c)),
               batch = let("batch", ir::div(rest, blocks_r));
    const Expr c0 = let("c0", mod(block, blocks_c) * p.at(kTile)),
               r0 = let("r0", mod(rest, blocks_r) * p.at(kTile));
    const Expr fast = let("fast", mod(thread, p.at(line))),
               slow = let("slow", ir::div(thread, p.at(line)));
    const Expr from = let("from", batch * batch_in + (r0 + slow) * row_in +
                                      ir::div(c0, p.at(lanes)) + fast),
               to = let("to", batch * batch_out + (c0 + slow) * row_out + ir::div(r0, p.at(lanes)) +
                                  fast);
    auto each = [&](const ir::ForKind kind, const Builder::Body& make) {
      return p.loop("v", p.at(lanes), make, kind);
    };
    const Stmt read = p.unrolled("i", kTile / pace, [&](const Expr& i) {
      const Expr r = slow + i * p.at(pace);
      return ir::if_then(
          ir::logical_and(ir::lt(r0 + r, rows), ir::lt(c0 + fast * p.at(lanes), columns)),
          ir::seq({each(ir::ForKind::vectorized,
                        [&](const Expr& v) {
                          const Expr place = (from + i * p.at(pace) * row_in) * p.at(lanes) + v;
                          return ir::store(held, ir::load(in, {place}), {v});
                        }),
                   each(ir::ForKind::unrolled, [&](const Expr& v) {
                     return ir::store(t, ir::load(held, {v}), {r, fast * p.at(lanes) + v});
                   })}));
    });
    const Stmt write = p.unrolled("j", kTile / pace, [&](const Expr& j) {
      const Expr c = slow + j * p.at(pace);
      return ir::if_then(
          ir::logical_and(ir::lt(c0 + c, columns), ir::lt(r0 + fast * p.at(lanes), rows)),
          ir::seq({each(ir::ForKind::unrolled,
                        [&](const Expr& v) {
                          return ir::store(held, ir::load(t, {fast * p.at(lanes) + v, c}), {v});
                        }),
                   each(ir::ForKind::vectorized, [&](const Expr& v) {
                     const Expr place = (to + j * p.at(pace) * row_out) * p.at(lanes) + v;
                     return ir::store(out, ir::load(held, {v}), {place});
                   })}));
    });
    Stmt s = ir::allocate(held, ir::allocate(t, ir::seq({read, write})));
    for (std::size_t i = lets.size(); i-- > 0;) s = ir::let_stmt(lets[i].first, lets[i].second, s);
    return s;
  };
  return p.finish(p.bound("blockIdx.x", blocks_r * blocks_c * batches,
                          [&](const Expr& block) {
                            return p.bound("threadIdx.x", p.at(kThreads),
                                           [&](const Expr& thread) { return body(block, thread); });
                          }),
                  true);
}

}  // namespace

void grid_turn(const NDArray& out, const NDArray& x) {
  WEFT_CHECK(
      out.ndim() == 3 && x.ndim() == 3 && out.elem() == x.elem() && elem_bytes(x.elem()) <= 8,
      "operands of a turn");
  const std::int64_t batches = x.shape()[0], rows = x.shape()[1], columns = x.shape()[2];
  WEFT_CHECK(out.shape()[0] == batches && out.shape()[1] == columns && out.shape()[2] == rows &&
                 (x.strides()[2] == 1 || columns == 1) && (out.strides()[2] == 1 || rows == 1),
             "a turn of other extents or strides");
  if (x.size() == 0) return;
  const std::int64_t blocks_r = (rows + kTile - 1) / kTile,
                     blocks_c = (columns + kTile - 1) / kTile;
  auto reach = [](const NDArray& a) {
    std::int64_t most = 0;
    for (int i = 0; i < 3; ++i) most += (a.shape()[i] + 2 * kTile) * std::abs(a.strides()[i]);
    return most;
  };
  const bool narrow = fits_narrow(std::max(reach(out), reach(x)));
  // Two elements of 16 bits at once where every line has whole pairs at whole words.
  auto paired = [](const NDArray& a) {
    return elem_bytes(a.elem()) == 2 && a.shape()[2] % 2 == 0 && a.strides()[0] % 2 == 0 &&
           a.strides()[1] % 2 == 0 && a.offset() % 2 == 0 && a.handle()->address() % 4 == 0;
  };
  const std::int64_t lanes = paired(x) && paired(out) ? 2 : 1;
  Call call(out.device());
  call.array(out).array(x).integer(blocks_r).integer(blocks_c).integer(batches);
  call.integer(rows).integer(columns);
  for (const NDArray* a : {&x, &out})
    call.integer(a->strides()[0] / lanes).integer(a->strides()[1] / lanes);
  auto word = [](auto v) { return static_cast<std::uint64_t>(v); };
  call.run({18, word(elem_bytes(out.elem())) | word(narrow) << 8 | word(lanes) << 9, 0, 0},
           [&] { return turn_kernel(elem_bytes(out.elem()), narrow, lanes); });
}

bool turn_copy(const NDArray& dst, const NDArray& src) {
  constexpr std::int64_t kSmall = 1 << 16, kNarrow = 8;
  const std::int64_t bytes = elem_bytes(src.elem());
  if (dst.elem() != src.elem() || dst.size() < kSmall || bytes > 8 ||
      grid_of(dst.device()).shared_bytes < kTile * (kTile + 2) * bytes)
    return false;
  Dims shape = dst.shape();
  std::vector<Dims> steps{dst.strides(), broadcast_strides(src, shape)};
  collapse_axes(shape, steps);
  const int rank = shape.size();
  if (rank != 2 && rank != 3) return false;
  int to = -1, from = -1;  // the axes of the unit steps
  for (int i = 0; i < rank; ++i) {
    if (steps[0][i] == 1) to = i;
    if (steps[1][i] == 1) from = i;
    if (steps[0][i] < 1 || steps[1][i] < 1) return false;
  }
  if (to < 0 || from < 0 || to == from || shape[to] < kNarrow || shape[from] < kNarrow)
    return false;
  const int rest = rank == 3 ? 3 - to - from : -1;
  const std::int64_t batches = rest < 0 ? 1 : shape[rest];
  auto view = [&](const NDArray& a, const Dims& s, int rows, int columns) {
    return a.as_strided(Dims{batches, shape[rows], shape[columns]},
                        Dims{rest < 0 ? 0 : s[rest], s[rows], s[columns]}, a.offset());
  };
  grid_turn(view(dst, steps[0], from, to), view(src, steps[1], to, from));
  return true;
}

NDArray turned_for(const NDArray& out, const NDArray& operand) {
  const int rank = out.ndim();
  if (!(operand.shape() == out.shape()) || rank < 2 || operand.strides() == out.strides())
    return operand;
  NDArray turned = NDArray::empty(out.device(), operand.elem(), out.shape());
  return turn_copy(turned, operand) ? turned : operand;
}

}  // namespace weft::device
