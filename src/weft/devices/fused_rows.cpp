// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/fused_rows.h"

#include <bit>

#include "weft/devices/kernel.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/build.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

using Combine = std::function<Expr(const Expr&, const Expr&)>;

/// into[at] = the combination of `value` over the points of a row of `threads` (a power of two),
/// for every point, through `shared`, which is [rows, threads]. `combine` is symmetric.
Stmt join_points(const Builder& p, const ir::Buffer& shared, const Expr& row, const Expr& thread,
                 std::int64_t threads, const Expr& value, const Combine& combine,
                 const ir::Buffer& into, const Expr& at) {
  constexpr std::int64_t kAtOnce = 8;
  std::vector<Stmt> steps = {ir::store(shared, value, {row, thread})};
  std::vector<ir::Buffer> trees{shared};
  // into[at] = the shares of `from` that are `apart` from each other, from `first` on.
  auto gather = [&](const ir::Buffer& from, const Expr& first, std::int64_t apart,
                    std::int64_t count) {
    std::vector<Stmt> out = {ir::store(into, ir::load(from, {row, first}), {at})};
    for (std::int64_t i = 1; i < count; ++i)
      out.push_back(ir::store(
          into, combine(ir::load(into, {at}), ir::load(from, {row, first + p.at(i * apart)})),
          {at}));
    return out;
  };
  // What is left after a step has a place of its own: no barrier parts its loads from its stores.
  std::int64_t n = threads;
  while (n > kAtOnce) {
    const std::int64_t left = n / kAtOnce;
    auto next = ir::edit(shared);
    next->name = cat(shared->name, "_", left);
    next->shape = {shared->shape[0], ir::make_int(left)};
    next->strides = {};
    const ir::Buffer tree = next;
    std::vector<Stmt> join = gather(trees.back(), thread, left, kAtOnce);
    join.push_back(ir::store(tree, ir::load(into, {at}), {row, thread}));
    steps.push_back(ir::if_then(ir::lt(thread, p.at(left)), ir::seq(std::move(join))));
    trees.push_back(tree);
    n = left;
  }
  // Few are left: every point combines them for itself.
  for (Stmt& s : gather(trees.back(), p.at(0), 1, n)) steps.push_back(std::move(s));
  Stmt out = ir::seq(std::move(steps));
  for (std::size_t i = trees.size(); i-- > 1;) out = ir::allocate(trees[i], out);
  return out;
}

/// `each` elements to a thread, `vector` neighbours at once; `rows` rows to a block.
struct Tile {
  std::int64_t threads = 32, each = 8, rows = 1, vector = 1;
};

constexpr std::int64_t kRegisters = 64;  // elements of all arrays that a thread holds

bool tile_of(const Grid& grid, std::int64_t columns, std::int64_t arrays, std::int64_t lanes,
             Tile& out) {
  constexpr std::int64_t kLeast = 4, kGroup = 256;
  for (std::int64_t each : {8, 16}) {
    if (each * std::max<std::int64_t>(arrays, 1) > kRegisters || each % lanes) continue;
    const auto wanted = static_cast<std::uint64_t>((columns + each - 1) / each);
    const auto threads = std::max(kLeast, static_cast<std::int64_t>(std::bit_ceil(wanted)));
    const std::int64_t most = each == 8 ? 512 : 1024;
    if (threads > std::min(most, grid.threads)) continue;
    out = {threads, each, std::max<std::int64_t>(1, std::min(kGroup, grid.threads) / threads),
           lanes};
    const std::int64_t moves = (columns + threads * lanes - 1) / (threads * lanes);
    out.each = std::min(each, moves * lanes);  // short rows do not fill the registers
    return true;
  }
  return false;
}

bool moves_along(RowExtent e) { return e == RowExtent::element || e == RowExtent::column; }

bool aligned(const NDArray& a, std::int64_t lanes) {
  const std::int64_t bytes = elem_bytes(a.elem());
  return (a.handle()->address() + static_cast<std::uint64_t>(a.offset() * bytes)) %
             static_cast<std::uint64_t>(lanes * bytes) ==
         0;
}

std::int64_t lanes_of(const FusedRows& p, const std::vector<NDArray>& in,
                      const std::vector<NDArray>& out) {
  std::int64_t widest = 1;
  for (std::size_t k = 0; k < in.size(); ++k)
    if (moves_along(p.extents[k])) widest = std::max<std::int64_t>(widest, elem_bytes(p.elems[k]));
  for (const RowStep& s : p.steps)
    if (s.kept && s.extent == RowExtent::element)
      widest = std::max<std::int64_t>(widest, elem_bytes(s.elem));
  const std::int64_t lanes = std::min<std::int64_t>(8, 16 / widest);
  bool all = lanes > 0 && p.columns % std::max<std::int64_t>(lanes, 1) == 0;
  for (std::size_t k = 0; k < in.size() && all; ++k)
    if (moves_along(p.extents[k])) all = aligned(in[k], lanes);
  std::size_t next = 0;
  for (const RowStep& s : p.steps) {
    if (!s.kept) continue;
    const NDArray& result = out[next++];
    if (s.extent == RowExtent::element) all = all && aligned(result, lanes);
  }
  return all ? lanes : 1;
}

class RowsWriter {
 public:
  RowsWriter(const FusedRows& p, const Tile& tile)
      : p_(p),
        tile_(tile),
        build_(fits_narrow((p.rows + tile.rows) * p.columns + tile.threads * tile.each)),
        full_(p.columns == tile.threads * tile.each) {}

  ir::PrimFunc write() {
    std::vector<ir::Buffer> outs, ins;
    for (std::size_t k = 0; k < p_.steps.size(); ++k)
      if (p_.steps[k].kept) outs.push_back(build_.buffer(cat("out", k), p_.steps[k].elem));
    for (std::size_t k = 0; k < p_.elems.size(); ++k)
      ins.push_back(build_.buffer(cat("a", k), p_.elems[k]));
    const Expr groups = build_.at((p_.rows + tile_.rows - 1) / tile_.rows);
    return build_.finish(build_.bound("blockIdx.x", groups, [&](const Expr& group) {
      return build_.bound("threadIdx.y", build_.at(tile_.rows), [&](const Expr& ty) {
        return build_.bound("threadIdx.x", build_.at(tile_.threads),
                            [&](const Expr& t) { return body(outs, ins, group, ty, t); });
      });
    }));
  }

 private:
  Expr at(std::int64_t v) const { return build_.at(v); }
  /// Element q * vector + v of a thread: vectors of neighbouring threads lie side by side.
  Expr move_of(const Expr& q) const { return thread_ + q * at(tile_.threads); }
  Expr column_of(std::int64_t e) const {
    return move_of(at(e / tile_.vector)) * at(tile_.vector) + at(e % tile_.vector);
  }
  static Elem held(Elem e) { return arithmetic_elem(e); }

  Stmt body(const std::vector<ir::Buffer>& outs, const std::vector<ir::Buffer>& ins,
            const Expr& group, const Expr& ty, const Expr& t) {
    thread_ = t, thread_row_ = ty;
    row_ = build_.var("row");
    for (std::size_t k = 0; k < ins.size(); ++k) fetch(k, ins[k]);
    for (std::size_t k = 0; k < p_.steps.size(); ++k) compute(k);
    std::size_t next = 0;
    for (std::size_t k = 0; k < p_.steps.size(); ++k)
      if (p_.steps[k].kept) keep(k, outs[next++]);
    Stmt all = ir::seq(std::move(steps_));
    for (std::size_t i = locals_.size(); i-- > 0;) all = ir::allocate(locals_[i], all);
    return ir::let_stmt(row_, group * at(tile_.rows) + ty, all);
  }

  ir::Buffer own(const std::string& name, Elem elem, std::int64_t extent) {
    locals_.push_back(local(name, dtype_of(elem), extent));
    return locals_.back();
  }

  /// The array's part of the row to registers. What lies outside is read at the nearest place
  /// inside: a load under a condition would wait for it, and the loads behind it with it.
  void fetch(std::size_t k, const ir::Buffer& from) {
    const RowExtent extent = p_.extents[k];
    const Elem elem = held(p_.elems[k]);
    const Expr row = ir::min(Expr(row_), at(p_.rows - 1));
    if (!moves_along(extent)) {
      const ir::Buffer to = own(cat("x", k), elem, 1);
      const Expr place = extent == RowExtent::row ? row : at(0);
      steps_.push_back(ir::store(to, convert_value(ir::load(from, {place}), elem), {at(0)}));
      places_.push_back(to);
      return;
    }
    const ir::Buffer to = own(cat("x", k), elem, tile_.each);
    const std::int64_t lanes = tile_.vector;
    for (std::int64_t q = 0; q < tile_.each / lanes; ++q) {
      const Expr move =
          full_ ? move_of(at(q)) : ir::min(move_of(at(q)), at(p_.columns / lanes - 1));
      Expr start = move * at(lanes);
      if (extent == RowExtent::element) start = row * at(p_.columns) + start;
      auto element = [&](const Expr& v) {
        return ir::store(to, convert_value(ir::load(from, {start + v}), elem), {at(q * lanes) + v});
      };
      steps_.push_back(lanes == 1 ? element(at(0))
                                  : build_.loop("v", at(lanes), element, ir::ForKind::vectorized));
    }
    places_.push_back(to);
  }

  /// The step's value of element e (ignored where it is one for the row).
  Expr value(const RowStep& s, const Expr& e) const {
    std::vector<Expr> in;
    for (int i : s.in) {
      const ir::Buffer& b = places_[static_cast<std::size_t>(i)];
      const bool several = moves_along(extent_of(i));
      in.push_back(ir::load(b, {several ? e : at(0)}));
    }
    return s.value(in);
  }
  RowExtent extent_of(int i) const {
    const auto k = static_cast<std::size_t>(i);
    return k < p_.extents.size() ? p_.extents[k] : p_.steps[k - p_.extents.size()].extent;
  }

  void compute(std::size_t k) {
    const RowStep& s = p_.steps[k];
    const Elem elem = held(s.elem);
    const bool several = s.extent == RowExtent::element;
    const ir::Buffer to = own(cat("y", k), elem, several ? tile_.each : 1);
    // Rounded as an array of the step's type would be.
    auto rounded = [&](const Expr& v) { return convert_value(convert_value(v, s.elem), elem); };
    if (s.reduces) {
      reduce(s, to);
      if (elem != s.elem) steps_.push_back(ir::store(to, rounded(ir::load(to, {at(0)})), {at(0)}));
    } else if (!several) {
      steps_.push_back(ir::store(to, rounded(value(s, at(0))), {at(0)}));
    } else {
      for (std::int64_t e = 0; e < tile_.each; ++e)
        steps_.push_back(ir::store(to, rounded(value(s, at(e))), {at(e)}));
    }
    places_.push_back(to);
  }

  void reduce(const RowStep& s, const ir::Buffer& to) {
    const Elem elem = held(s.elem);
    auto kept = [&] { return ir::load(to, {at(0)}); };
    const Combine combine = [&](const Expr& a, const Expr& b) { return reduce_value(s.op, a, b); };
    for (std::int64_t e = 0; e < tile_.each; ++e) {
      Expr v = convert_value(value(s, at(e)), elem);
      if (!full_)
        v = ir::select(ir::lt(column_of(e), at(p_.columns)), v, reduce_identity(s.op, elem));
      steps_.push_back(ir::store(to, e ? combine(kept(), v) : v, {at(0)}));
    }
    const ir::Buffer tree =
        shared(cat("tree", locals_.size()), dtype_of(elem), {tile_.rows, tile_.threads});
    steps_.push_back(ir::allocate(tree, join_points(build_, tree, thread_row_, thread_,
                                                    tile_.threads, kept(), combine, to, at(0))));
  }

  /// The step's result to memory: one statement, since barriers between stores of one thread would
  /// be asked for otherwise.
  void keep(std::size_t k, const ir::Buffer& out) {
    const RowStep& s = p_.steps[k];
    const ir::Buffer& from = places_[p_.extents.size() + k];
    const Expr live = ir::lt(Expr(row_), at(p_.rows));
    if (s.extent == RowExtent::row) {
      const Stmt store = ir::store(out, convert_value(ir::load(from, {at(0)}), s.elem), {row_});
      steps_.push_back(ir::if_then(ir::logical_and(live, ir::eq(thread_, at(0))), store));
      return;
    }
    const std::int64_t lanes = tile_.vector;
    steps_.push_back(build_.unrolled("q", tile_.each / lanes, [&](const Expr& q) {
      const Expr move = move_of(q);
      const Expr in_row =
          full_ ? live : ir::logical_and(live, ir::lt(move, at(p_.columns / lanes)));
      auto element = [&](const Expr& v) {
        const Expr x = ir::load(from, {q * at(lanes) + v});
        return ir::store(out, convert_value(x, s.elem),
                         {Expr(row_) * at(p_.columns) + move * at(lanes) + v});
      };
      return ir::if_then(
          in_row, lanes == 1 ? element(at(0))
                             : build_.loop("v", at(lanes), element, ir::ForKind::vectorized));
    }));
  }

  const FusedRows& p_;
  Tile tile_;
  Builder build_;
  bool full_;
  Expr thread_, thread_row_;
  ir::Var row_;
  std::vector<Stmt> steps_;
  std::vector<ir::Buffer> locals_;
  std::vector<ir::Buffer> places_;  // of the arrays' values, then the steps'
};

}  // namespace

bool fused_rows_fit(const Ref<Device>& device, std::int64_t rows, std::int64_t columns,
                    std::size_t arrays) {
  const Grid& grid = grid_of(device);
  Tile tile;
  return grid.present && rows >= grid.processors && columns >= 2 &&
         tile_of(grid, columns, static_cast<std::int64_t>(arrays), 1, tile);
}

void run_fused_rows(const FusedRows& p, const std::vector<NDArray>& in,
                    const std::vector<NDArray>& out) {
  std::int64_t held = 0;
  for (RowExtent e : p.extents) held += moves_along(e);
  for (const RowStep& s : p.steps) held += s.extent == RowExtent::element;
  const Ref<Device>& device = in[0].device();
  Tile tile;
  const bool fits = tile_of(grid_of(device), p.columns, held, lanes_of(p, in, out), tile);
  WEFT_CHECK(fits, "rows of ", p.columns, " elements of ", held, " arrays do not fit");
  auto word = [](auto v) { return static_cast<std::uint64_t>(v); };
  const Key key{19, p.serial, word(tile.threads) | word(tile.each) << 16 | word(tile.rows) << 32,
                word(tile.vector)};
  Call call(device);
  for (const NDArray& a : out) call.array(a);
  for (const NDArray& a : in) call.array(a);
  call.run(key, [&] { return RowsWriter(p, tile).write(); });
}

}  // namespace weft::device
