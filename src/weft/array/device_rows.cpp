// SPDX-License-Identifier: Apache-2.0
// Kernels of one pass over rows (softmax, layer norm and their gradients): the threads of a row
// hold its elements in registers, so memory is read once and written once. Longer rows are in
// row_programs.cpp.

#include <bit>

#include "weft/array/device_grid.h"
#include "weft/array/row_ir.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

struct RowTile {
  std::int64_t threads = 32, each = 8, rows = 1;
  std::int64_t vector = 1;  // neighbours that a thread moves at once
};

/// Eight elements to a thread up to 512 threads, then sixteen. `lanes`: what may move at once.
bool tile_of(const Grid& grid, std::int64_t columns, std::int64_t lanes, RowTile& out) {
  constexpr std::int64_t kLeast = 4, kGroup = 256;
  if (!grid.present || columns < 1) return false;
  for (std::int64_t each : {8, 16}) {
    std::int64_t threads = std::max<std::int64_t>(
        kLeast, static_cast<std::int64_t>(
                    std::bit_ceil(static_cast<std::uint64_t>((columns + each - 1) / each))));
    std::int64_t most = each == 8 ? 512 : 1024;
    if (threads > std::min(most, grid.threads)) continue;
    out = {threads, each, std::max<std::int64_t>(1, std::min(kGroup, grid.threads) / threads),
           lanes};
    // Short rows do not fill eight registers.
    const std::int64_t moves = (columns + threads * lanes - 1) / (threads * lanes);
    out.each = std::min<std::int64_t>(each, moves * lanes);
    return true;
  }
  return false;
}

/// Elements of a row that can move together: rows and addresses of all operands are multiples.
std::int64_t lanes_of(const NDArray& out, std::span<const NDArray* const> in,
                      std::int64_t columns) {
  constexpr std::int64_t kBytes = 16;
  const std::int64_t lanes = std::min<std::int64_t>(8, kBytes / elem_bytes(out.elem()));
  auto aligned = [&](const NDArray& a) {
    const std::int64_t bytes = elem_bytes(a.elem());
    return (a.handle()->address() + static_cast<std::uint64_t>(a.offset() * bytes)) %
               static_cast<std::uint64_t>(lanes * bytes) ==
           0;
  };
  bool all = columns % lanes == 0 && aligned(out);
  for (const NDArray* a : in) all = all && aligned(*a);
  return all ? lanes : 1;
}

}  // namespace

bool row_kernel_fits(const Ref<Device>& device, std::int64_t columns) {
  return columns >= 1 && grid_of(device).present;
}

void grid_rows(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in, double eps) {
  if (out.size() == 0) return;
  const std::int64_t columns = out.shape()[out.ndim() - 1], rows = out.size() / columns;
  RowTile tile;
  if (!tile_of(grid_of(out.device()), columns, lanes_of(out, in, columns), tile))
    return grid_long_rows(kind, out, in, eps);
  const bool full = columns == tile.threads * tile.each;
  const bool narrow = fits_narrow(out.size() + tile.threads * tile.each * (tile.rows + 1));
  const Elem elem = out.elem();
  const Elem compute = elem == Elem::float64 ? elem : Elem::float32;
  auto word = [](auto v) { return static_cast<std::uint64_t>(v); };
  Key key{3, word(kind) | word(elem) << 8 | word(narrow) << 16 | word(full) << 17,
          word(tile.threads) | word(tile.each) << 16 | word(tile.rows) << 32, word(tile.vector)};
  Call call(out.device());
  call.array(out);
  for (const NDArray* a : in) call.array(*a);
  call.integer((rows + tile.rows - 1) / tile.rows).integer(rows).integer(columns / tile.vector);
  call.real(eps);
  call.run(key, [&] {
    Builder p(narrow);
    ir::Buffer result = p.buffer("out", elem);
    std::vector<ir::Buffer> from;
    for (std::size_t k = 0; k < in.size(); ++k) from.push_back(p.buffer(cat("a", k), elem));
    Expr groups = p.integer("groups"), row_count = p.integer("rows"), moves = p.integer("moves"),
         width = moves * p.at(tile.vector);
    Expr tiny = p.number("eps", compute);
    const DType type = dtype_of(compute);
    const std::int64_t each = tile.each;
    auto call1 = [](const char* f, const Expr& x) { return ir::call(f, {x}); };
    Expr zero = ir::make_const(0, type), one = ir::make_const(1, type);
    Combine add = [](const Expr& a, const Expr& b) { return a + b; };
    Combine larger = [](const Expr& a, const Expr& b) { return reduce_value(ReduceOp::max, a, b); };
    auto body = [&](const Expr& group, const Expr& ty, const Expr& t) {
      ir::Buffer x = local("x", type, each), y = local("y", type, each),
                 keep = local("keep", type, 4),
                 tree = shared("tree", type, {tile.rows, tile.threads});
      ir::Var row = p.var("row");
      Expr live = ir::lt(row, row_count);
      std::vector<Stmt> steps;
      auto slot = [&](const ir::Buffer& b, std::int64_t e) { return ir::load(b, {p.at(e)}); };
      auto kept = [&](std::int64_t k) { return ir::load(keep, {p.at(k)}); };
      // Element q * vector + v of a thread: vectors of neighbouring threads lie side by side.
      const std::int64_t lanes = tile.vector;
      auto move_of = [&](const Expr& q) { return t + q * p.at(tile.threads); };
      auto column = [&](std::int64_t e) {
        return move_of(p.at(e / lanes)) * p.at(lanes) + p.at(e % lanes);
      };
      auto any = [&](const ir::Buffer& b, const Expr& e) { return ir::load(b, {e}); };
      // statement e of every element; outside ones are skipped, or take `otherwise`
      auto every = [&](const std::function<Stmt(std::int64_t)>& f) {
        for (std::int64_t e = 0; e < each; ++e) steps.push_back(f(e));
      };
      auto inside = [&](std::int64_t e) {
        return full ? live : ir::logical_and(live, ir::lt(column(e), width));
      };
      auto fetch = [&](const ir::Buffer& to, const ir::Buffer& b, const Expr& otherwise) {
        // What lies outside is read at the nearest place inside: a load under a condition would
        // wait for it, and the loads behind it with it.
        Expr safe_row = ir::min(row, row_count - p.at(1));
        for (std::int64_t q = 0; q < each / lanes; ++q) {
          const Expr move = full ? move_of(p.at(q)) : ir::min(move_of(p.at(q)), moves - p.at(1));
          const Expr start = safe_row * width + move * p.at(lanes);
          auto element = [&](const Expr& v) {
            Expr x = convert_value(ir::load(b, {start + v}), compute);
            return ir::store(to, ir::select(inside(q * lanes), x, otherwise),
                             {p.at(q * lanes) + v});
          };
          steps.push_back(lanes == 1 ? element(p.at(0))
                                     : p.loop("v", p.at(lanes), element, ir::ForKind::vectorized));
        }
      };
      auto total = [&](const std::function<Expr(std::int64_t)>& value, const Combine& combine,
                       std::int64_t into) {
        steps.push_back(ir::store(keep, value(0), {p.at(into)}));
        for (std::int64_t e = 1; e < each; ++e)
          steps.push_back(ir::store(keep, combine(kept(into), value(e)), {p.at(into)}));
        steps.push_back(
            join_points(p, tree, ty, t, tile.threads, kept(into), combine, keep, p.at(into)));
      };
      auto only = [&](std::int64_t e, const Expr& v) {  // zero where the row has ended
        return full ? v : ir::select(ir::lt(column(e), width), v, zero);
      };
      // One statement: barriers between stores of one thread would be asked for otherwise.
      auto write = [&](const std::function<Expr(const Expr& e, const Expr& at)>& value) {
        steps.push_back(p.unrolled("q", each / lanes, [&](const Expr& q) {
          const Expr move = move_of(q);
          const Expr in_row = full ? live : ir::logical_and(live, ir::lt(move, moves));
          auto element = [&](const Expr& v) {
            const Expr at = move * p.at(lanes) + v;
            return ir::store(result, convert_value(value(q * p.at(lanes) + v, at), elem),
                             {Expr(row) * width + at});
          };
          return ir::if_then(
              in_row, lanes == 1 ? element(p.at(0))
                                 : p.loop("v", p.at(lanes), element, ir::ForKind::vectorized));
        }));
      };
      auto normalise = [&] {  // keep[1] = 1 / deviation; x = normalised
        Expr n = ir::cast(type, width);
        total([&](std::int64_t e) { return slot(x, e); }, add, 0);
        steps.push_back(ir::store(keep, ir::div(kept(0), n), {p.at(0)}));
        every(
            [&](std::int64_t e) { return ir::store(x, only(e, slot(x, e) - kept(0)), {p.at(e)}); });
        total([&](std::int64_t e) { return slot(x, e) * slot(x, e); }, add, 1);
        steps.push_back(
            ir::store(keep, ir::div(one, call1("sqrt", ir::div(kept(1), n) + tiny)), {p.at(1)}));
        every([&](std::int64_t e) { return ir::store(x, slot(x, e) * kept(1), {p.at(e)}); });
      };
      switch (kind) {
        case RowKernel::softmax:
        case RowKernel::log_softmax: {
          fetch(x, from[0], ir::min_value(type));
          total([&](std::int64_t e) { return slot(x, e); }, larger, 0);
          if (kind == RowKernel::softmax) {
            every([&](std::int64_t e) {
              return ir::store(x, call1("exp", slot(x, e) - kept(0)), {p.at(e)});
            });
            total([&](std::int64_t e) { return only(e, slot(x, e)); }, add, 1);
            // One division for the row: eight under guards would run one after another.
            steps.push_back(ir::store(keep, ir::div(one, kept(1)), {p.at(1)}));
            write([&](const Expr& e, const Expr&) { return any(x, e) * kept(1); });
          } else {
            total([&](std::int64_t e) { return only(e, call1("exp", slot(x, e) - kept(0))); }, add,
                  1);
            steps.push_back(ir::store(keep, call1("log", kept(1)), {p.at(1)}));
            write([&](const Expr& e, const Expr&) { return any(x, e) - kept(0) - kept(1); });
          }
          break;
        }
        case RowKernel::softmax_gradient:
          fetch(x, from[0], zero);
          fetch(y, from[1], zero);
          total([&](std::int64_t e) { return slot(x, e) * slot(y, e); }, add, 0);
          write([&](const Expr& e, const Expr&) { return any(x, e) * (any(y, e) - kept(0)); });
          break;
        case RowKernel::log_softmax_gradient:
          fetch(x, from[0], zero);
          fetch(y, from[1], zero);
          total([&](std::int64_t e) { return slot(y, e); }, add, 0);
          write([&](const Expr& e, const Expr&) {
            return any(y, e) - call1("exp", any(x, e)) * kept(0);
          });
          break;
        case RowKernel::layer_norm:
          fetch(x, from[0], zero);
          normalise();
          write([&](const Expr& e, const Expr& at) {
            return any(x, e) * convert_value(ir::load(from[1], {at}), compute) +
                   convert_value(ir::load(from[2], {at}), compute);
          });
          break;
        case RowKernel::layer_norm_gradient:
          fetch(x, from[0], zero);
          fetch(y, from[1], zero);
          normalise();
          total([&](std::int64_t e) { return slot(y, e); }, add, 2);
          total([&](std::int64_t e) { return slot(y, e) * slot(x, e); }, add, 3);
          write([&](const Expr& e, const Expr&) {
            Expr n = ir::cast(type, width);
            return kept(1) * (any(y, e) - ir::div(kept(2), n) - any(x, e) * ir::div(kept(3), n));
          });
          break;
        default: WEFT_CHECK(false, "row kernel ", static_cast<int>(kind));
      }
      Stmt all = ir::seq(std::move(steps));
      for (const ir::Buffer& b : {x, y, keep, tree}) all = ir::allocate(b, all);
      return ir::let_stmt(row, group * p.at(tile.rows) + ty, all);
    };
    return p.finish(p.bound("blockIdx.x", groups, [&](const Expr& group) {
      return p.bound("threadIdx.y", p.at(tile.rows), [&](const Expr& ty) {
        return p.bound("threadIdx.x", p.at(tile.threads),
                       [&](const Expr& t) { return body(group, ty, t); });
      });
    }));
  });
}

}  // namespace weft::device
