// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/fused_rows.h"

#include "weft/devices/kernel.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/build.h"
#include "weft/ir/reducers.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/regions.h"
#include "weft/rules/row.h"

namespace weft::device {

using ir::Expr;
using ir::Exprs;
using ir::Stmt;
using ir::Var;

namespace {

bool moves_along(RowExtent e) { return e == RowExtent::element || e == RowExtent::column; }

/// Elements of a row that can move together: rows and addresses are multiples.
std::int64_t lanes_of(const FusedRows& p, const std::vector<NDArray>& in,
                      const std::vector<NDArray>& out) {
  std::int64_t widest = 1;
  for (const auto* arrays : {&in, &out})
    for (const NDArray& a : *arrays) widest = std::max<std::int64_t>(widest, elem_bytes(a.elem()));
  const std::int64_t lanes = std::min<std::int64_t>(8, 16 / widest);
  auto aligned = [&](const NDArray& a) { return begins_at(a, lanes * elem_bytes(a.elem())); };
  bool all = p.columns % lanes == 0;
  for (std::size_t k = 0; k < in.size(); ++k)
    if (moves_along(p.extents[k])) all = all && aligned(in[k]);
  std::size_t next = 0;
  for (const RowStep& s : p.steps) {
    if (!s.kept) continue;
    const NDArray& result = out[next++];
    if (s.extent == RowExtent::element) all = all && aligned(result);
  }
  return all ? lanes : 1;
}

/// Arrays and steps whose elements a reduction reads: a thread keeps its own of them, since what
/// reads them later stands behind a barrier. Others are computed where they are read.
std::vector<bool> held_values(const FusedRows& p) {
  const std::size_t arrays = p.extents.size();
  std::vector<bool> out(arrays + p.steps.size());
  for (const RowStep& s : p.steps) {
    if (!s.reduces) continue;
    for (int i : s.in) {
      const auto k = static_cast<std::size_t>(i);
      out[k] = moves_along(k < arrays ? p.extents[k] : p.steps[k - arrays].extent);
    }
  }
  return out;
}

struct RowsLayout {
  std::int64_t width = 1;  // iterations along a row: its length, rounded up
  std::int64_t lanes = 1;
  bool full = false;    // a row is exactly `width` long
  bool narrow = false;  // positions fit 32 bits
};

/// main(results..., arrays..., rows, moves, numbers...): nests over rows and along them, as the
/// rule `row` takes them; rows of moves * lanes elements.
class RowsWriter {
 public:
  RowsWriter(const FusedRows& p, const RowsLayout& layout)
      : p_(p), layout_(layout), b_(layout.narrow) {}

  ir::PrimFunc write() {
    rows_ = b_.integer("rows"), moves_ = b_.integer("moves");
    columns_ = layout_.full ? at(layout_.width) : moves_ * layout_.lanes;
    std::vector<ir::Buffer> results;
    for (std::size_t k = 0; k < p_.steps.size(); ++k)
      if (p_.steps[k].kept) results.push_back(b_.buffer(cat("out", k), p_.steps[k].elem));
    const std::vector<bool> held = held_values(p_);
    for (std::size_t k = 0; k < p_.steps.size(); ++k) {
      Exprs& own = numbers_.emplace_back();
      for (std::size_t i = 0; i < p_.steps[k].numbers.size(); ++i)
        own.push_back(b_.number(cat("c", k, "_", i), Elem::float32));
    }
    for (std::size_t k = 0; k < p_.elems.size(); ++k)
      fetch(k, b_.buffer(cat("a", k), p_.elems[k]), held[k]);
    for (std::size_t k = 0; k < p_.steps.size(); ++k) compute(k, held[p_.elems.size() + k]);
    keep(results);
    return ir::make_func("main", b_.params(), ir::root_block(ir::seq(std::move(nests_)), own_),
                         ir::with_annotation({}, "tir.noalias", true));
  }

 private:
  /// A value at row i and place j of it.
  using Value = std::function<Expr(const Expr& i, const Expr& j)>;
  using Body = std::function<Stmt(const Expr& i, const Expr& j)>;

  Expr at(std::int64_t v) const { return b_.at(v); }
  static Elem sums(Elem e) { return arithmetic_elem(e); }
  ir::Buffer own(const std::string& name, Elem elem, bool several) {
    Exprs shape{rows_};
    if (several) shape.push_back(at(layout_.width));
    own_.push_back(ir::make_buffer(name, dtype_of(elem), shape));
    return own_.back();
  }

  void nest(const std::string& name, const Body& body, const Body& init = nullptr,
            bool inside = false) {
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = name;
    const Var i = b_.var("i"), j = b_.var("j");
    const Expr width = at(layout_.width);
    block->iters = {{i, {at(0), rows_}, ir::IterKind::spatial},
                    {j, {at(0), width}, init ? ir::IterKind::reduce : ir::IterKind::spatial}};
    if (init) {
      block->init = init(i, j);
      block->annotations = ir::with_annotation({}, ir::kCommutative, true);
    }
    block->body = body(i, j);
    ir::AccessRegions found = ir::detect_block_regions(*block);
    block->reads = std::move(found.reads), block->writes = std::move(found.writes);
    const Var r = b_.var("r"), c = b_.var("c");
    const Expr where = inside && !layout_.full ? ir::lt(Expr(c), columns_) : ir::make_bool(true);
    Stmt out = ir::make_for(c, at(0), width, ir::block_realize({r, c}, where, block));
    nests_.push_back(ir::make_for(r, at(0), rows_, out));
  }

  /// What lies beyond a row's end is read at the nearest place inside: loads under a condition
  /// would wait for each other.
  void fetch(std::size_t k, const ir::Buffer& from, bool held) {
    const RowExtent extent = p_.extents[k];
    const Elem elem = sums(p_.elems[k]);
    const Value direct = [=, this](const Expr& i, const Expr& j) {
      Expr place = extent == RowExtent::row ? i : at(0);
      if (moves_along(extent)) {
        const Expr lanes = at(layout_.lanes);
        place = layout_.full
                    ? j
                    : ir::min(ir::floordiv(j, lanes), moves_ - 1) * lanes + ir::floormod(j, lanes);
        if (extent == RowExtent::element) place = i * columns_ + place;
      }
      return convert_value(ir::load(from, {place}), elem);
    };
    values_.push_back(held ? kept("fetch_", own(cat("x", k), elem, true), direct) : direct);
  }
  /// A nest that writes the value to an array of a thread's own.
  Value kept(const char* name, const ir::Buffer& to, const Value& direct) {
    nest(cat(name, to->name), [&](const Expr& i, const Expr& j) {
      return ir::store(to, direct(i, j), {i, j});
    });
    return [=](const Expr& i, const Expr& j) { return ir::load(to, {i, j}); };
  }

  Expr value(const RowStep& s, const Expr& i, const Expr& j) const {
    Exprs in;
    for (int k : s.in) in.push_back(values_[static_cast<std::size_t>(k)](i, j));
    return s.value(in, numbers_[static_cast<std::size_t>(&s - p_.steps.data())]);
  }
  /// As an array of the step's type would be.
  static Expr rounded(const RowStep& s, const Expr& v) {
    return convert_value(convert_value(v, s.elem), sums(s.elem));
  }

  void compute(std::size_t k, bool held) {
    const RowStep& s = p_.steps[k];
    const Value direct = [this, &s](const Expr& i, const Expr& j) {
      return rounded(s, value(s, i, j));
    };
    const Elem elem = sums(s.elem);
    if (!s.reduces) {
      values_.push_back(held ? kept("map_", own(cat("y", k), elem, true), direct) : direct);
      return;
    }
    const ir::Buffer to = own(cat("y", k), elem, false);
    const Expr identity = reduce_identity(s.op, elem);
    const Var x = ir::make_var("x", dtype_of(elem)), y = ir::make_var("y", dtype_of(elem));
    const ir::Reducer join =
        ir::make_reducer("row", {x}, {y}, {reduce_value(s.op, x, y)}, {identity});
    nest(
        cat("reduce_", k),
        [&](const Expr& i, const Expr& j) {
          Expr v = convert_value(value(s, i, j), elem);
          if (!layout_.full) v = ir::select(ir::lt(j, columns_), v, identity);
          return ir::store_joined(*join, {to}, {ir::load(to, {i})}, {v}, {i});
        },
        [&](const Expr& i, const Expr&) { return ir::store(to, identity, {i}); });
    values_.push_back(
        [=, &s](const Expr& i, const Expr&) { return rounded(s, ir::load(to, {i})); });
  }

  /// The results in one nest, which all others are computed for; numbers of a row at its first
  /// place.
  void keep(const std::vector<ir::Buffer>& results) {
    auto stores = [&](const Expr& i, const Expr& j) {
      std::vector<Stmt> out;
      std::size_t next = 0;
      for (std::size_t k = 0; k < p_.steps.size(); ++k) {
        const RowStep& s = p_.steps[k];
        if (!s.kept) continue;
        const ir::Buffer& to = results[next++];
        const Expr v = convert_value(values_[p_.extents.size() + k](i, j), s.elem);
        if (s.extent == RowExtent::element) out.push_back(ir::store(to, v, {i * columns_ + j}));
        else out.push_back(ir::if_then(ir::lt(j, at(1)), ir::store(to, v, {i})));
      }
      return ir::seq(std::move(out));
    };
    nest("write", stores, nullptr, true);
  }

  const FusedRows& p_;
  const RowsLayout layout_;
  Builder b_;
  Expr rows_, moves_, columns_;
  std::vector<Exprs> numbers_;  // of each step
  std::vector<Value> values_;   // of the arrays, then the steps
  std::vector<ir::Buffer> own_;
  std::vector<Stmt> nests_;
};

}  // namespace

bool fused_rows_fit(const Ref<Device>& device, std::int64_t rows, std::int64_t columns,
                    std::size_t arrays) {
  const Grid& grid = grid_of(device);
  return grid.present() && rows >= grid.processors() && columns >= 2 &&
         rules::row_tile(columns, 1, grid.threads(), static_cast<std::int64_t>(arrays));
}

void run_fused_rows(const FusedRows& p, const std::vector<NDArray>& in,
                    const std::vector<NDArray>& out) {
  std::int64_t held = 0;
  for (bool h : held_values(p)) held += h;
  const Ref<Device>& device = in[0].device();
  RowsLayout layout;
  layout.lanes = lanes_of(p, in, out);
  const auto tile = rules::row_tile(p.columns, layout.lanes, grid_of(device).threads(), held);
  WEFT_CHECK(tile, "rows of ", p.columns, " elements of ", held, " arrays do not fit");
  layout.width = tile->width();
  layout.full = p.columns == layout.width;
  layout.narrow = fits_narrow(p.rows * p.columns + layout.width * (tile->beside + 1));
  ProgramCall call(device);
  for (const NDArray& a : out) call.array(a);
  for (const NDArray& a : in) call.array(a);
  call.integer(p.rows).integer(p.columns / layout.lanes);
  for (const RowStep& s : p.steps)
    for (const Scalar& n : s.numbers) call.number(n, Elem::float32);
  constexpr std::uint64_t kHalf = 1u << 31;
  call.run(
      {"fused_rows",
       {static_cast<std::int64_t>(p.serial / kHalf), static_cast<std::int64_t>(p.serial % kHalf),
        layout.width, layout.lanes, layout.full, layout.narrow}},
      [&] { return RowsWriter(p, layout).write(); });
}

}  // namespace weft::device
