// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/fuse_host.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "weft/array/feed.h"
#include "weft/elements/row_ir.h"
#include "weft/fusion/host_passes.h"
#include "weft/fusion/lazy_value.h"
#include "weft/ir/build.h"
#include "weft/ir/share.h"

namespace weft::fuse {

using ir::Expr;
using ir::Stmt;
using ir::Var;

namespace {

constexpr std::int64_t kLanes = 16, kRow = 4096, kColumns = 128;
constexpr std::int64_t kHeldBytes = 1 << 18;  // of a row's values, kept for later passes
/// Additions in a row to one running result: sums of sums lose fewer digits.
constexpr std::int64_t kRun = 128;

Expr number(std::int64_t v) { return ir::make_int(v); }
std::int64_t product(const Dims& d) {
  std::int64_t p = 1;
  for (std::int64_t v : d) p *= v;
  return p;
}

/// Neighbouring axes joined where every operand allows it; at least one axis is left.
void collapse(Dims& shape, std::vector<Dims>& steps) {
  int kept = 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    bool joins = kept > 0;
    for (Dims& s : steps) joins = joins && s[kept - 1] == s[i] * shape[i];
    if (joins) --kept;
    shape[kept] = joins ? shape[kept] * shape[i] : shape[i];
    for (Dims& s : steps) s[kept] = s[i];
    ++kept;
  }
  if (kept == 0) {
    shape = Dims{1};
    for (Dims& s : steps) s = Dims{0};
    return;
  }
  shape.resize(kept);
  for (Dims& s : steps) s.resize(kept);
}

Stmt loop(const std::string& name, std::int64_t extent, ir::ForKind kind,
          const std::function<Stmt(const Expr&)>& body) {
  if (extent == 1 && kind != ir::ForKind::parallel) return body(number(0));
  Var v = ir::make_var(name);
  return ir::make_for(v, number(0), number(extent), body(v), kind);
}

/// Offsets of all operands at a row-major position among axes [0, axes).
std::vector<Expr> offsets(const Expr& linear, const Dims& shape, const std::vector<Dims>& steps,
                          int axes) {
  std::vector<Expr> out(steps.size(), number(0));
  Expr rest = linear;
  for (int i = axes - 1; i >= 0; --i) {
    Expr x = i > 0 ? ir::floormod(rest, number(shape[i])) : rest;
    if (i > 0) rest = ir::floordiv(rest, number(shape[i]));
    for (std::size_t k = 0; k < steps.size(); ++k) out[k] = out[k] + x * number(steps[k][i]);
  }
  return out;
}

/// body(i) for i in [0, extent), `most` at a time between before() and after().
Stmt in_runs(const std::string& name, std::int64_t extent, std::int64_t most,
             const std::function<Stmt()>& before, const std::function<Stmt(const Expr&)>& body,
             const std::function<Stmt()>& after) {
  auto run = [&](const Expr& first, std::int64_t length) {
    return ir::seq(
        {before(),
         loop(name, length, ir::ForKind::serial, [&](const Expr& i) { return body(first + i); }),
         after()});
  };
  const std::int64_t whole = extent / most;
  std::vector<Stmt> all;
  if (whole > 0)
    all.push_back(loop(name + "_run", whole, ir::ForKind::serial,
                       [&](const Expr& r) { return run(r * number(most), most); }));
  if (extent % most) all.push_back(run(number(whole * most), extent % most));
  return ir::seq(std::move(all));
}

/// body(j) over [0, extent) in vectors, the rest in shorter vectors and at last one by one.
/// `unrolled`: without a loop, so that a compiler keeps in registers what is read at each j.
Stmt vectors(std::int64_t extent, std::int64_t lanes, const std::function<Stmt(const Expr&)>& body,
             bool unrolled = false) {
  constexpr std::int64_t kShortest = 4;
  std::vector<Stmt> all;
  auto vector = [&](const Expr& first, std::int64_t width) {
    Var v = ir::make_var("ji");
    return ir::make_for(v, number(0), number(width), body(first + Expr(v)),
                        ir::ForKind::vectorized);
  };
  const std::int64_t whole = extent / lanes;
  if (unrolled) {
    for (std::int64_t jo = 0; jo < whole; ++jo) all.push_back(vector(number(jo * lanes), lanes));
  } else if (whole > 0) {
    all.push_back(loop("jo", whole, ir::ForKind::serial,
                       [&](const Expr& jo) { return vector(jo * number(lanes), lanes); }));
  }
  std::int64_t done = whole * lanes;
  for (std::int64_t width = lanes / 2; width >= kShortest; width /= 2) {
    if (extent - done < width) continue;
    all.push_back(vector(number(done), width));
    done += width;
  }
  for (; done < extent; ++done) all.push_back(body(number(done)));
  return ir::seq(std::move(all));
}

using Places = std::vector<Expr>;  // of the operands: the kernel's results, then its leaves

Places sum(Places a, const Places& b) {
  for (std::size_t k = 0; k < a.size(); ++k) a[k] = a[k] + b[k];
  return a;
}
Places along(const std::vector<Dims>& steps, int axis, const Expr& x) {
  Places out;
  for (const Dims& s : steps) out.push_back(x * number(s[axis]));
  return out;
}

/// Statements one after another, with names for values between them.
class Block {
 public:
  void add(Stmt s) { items_.push_back({std::move(s), {}, {}}); }
  Expr let(const std::string& name, const Expr& value) {
    const Var v = ir::make_var(name, value->dtype);
    items_.push_back({{}, v, value});
    return v;
  }
  Stmt done() const {
    std::vector<Stmt> after;
    for (std::size_t k = items_.size(); k-- > 0;) {
      const Item& i = items_[k];
      if (i.stmt) {
        after.insert(after.begin(), i.stmt);
      } else {
        after = {ir::let_stmt(i.var, i.value, ir::seq(std::move(after)))};
      }
    }
    return ir::seq(std::move(after));
  }

 private:
  struct Item {
    Stmt stmt;
    Var var;
    Expr value;
  };
  std::vector<Item> items_;
};

/// The axes of a kernel: those that are left and those that are joined, each as few as the
/// operands' steps allow.
struct KernelAxes {
  Dims kept, gone;
  std::vector<Dims> kept_steps, gone_steps;  // of the results, then the leaves

  int last_kept() const { return kept.size() - 1; }
  int last_gone() const { return gone.size() - 1; }
};

KernelAxes axes_of(const HostKernel& k) {
  KernelAxes out;
  std::vector<Dims> all = k.out_steps;
  all.insert(all.end(), k.steps.begin(), k.steps.end());
  out.kept_steps.resize(all.size()), out.gone_steps.resize(all.size());
  for (int i = 0; i < k.shape.size(); ++i) {
    const bool gone = k.mask >> i & 1;
    (gone ? out.gone : out.kept).push_back(k.shape[i]);
    for (std::size_t n = 0; n < all.size(); ++n)
      (gone ? out.gone_steps : out.kept_steps)[n].push_back(all[n][i]);
  }
  collapse(out.kept, out.kept_steps);
  collapse(out.gone, out.gone_steps);
  if (k.parts > 1) {
    // The parts become the axis that is left; the longest joined axis gives it where it divides.
    int axis = -1;
    for (int i = 0; i < out.gone.size() && axis < 0; ++i)
      if (out.gone[i] % k.parts == 0) axis = i;
    WEFT_CHECK(axis >= 0, "no axis of ", to_string(out.gone), " divides by ", k.parts);
    out.kept = Dims{k.parts};
    out.gone[axis] /= k.parts;
    for (std::size_t n = 0; n < all.size(); ++n)
      out.kept_steps[n] = Dims{n == 0 ? 1 : out.gone_steps[n][axis] * out.gone[axis]};
  }
  return out;
}

class KernelWriter {
 public:
  explicit KernelWriter(const HostKernel& kernel)
      : k_(kernel),
        axes_(axes_of(kernel)),
        outs_(kernel.out_steps.size()),
        strips_(is_strip()),
        passes_(kernel, strips_ ? kHeldBytes / strip_width() : kHeldBytes) {
    results_.resize(k_.values.size(), -1);
    for (std::size_t v = 0; v < k_.values.size(); ++v) {
      if (!k_.kept[v]) continue;
      results_[v] = static_cast<int>(operands_.size());
      add(cat("out", v), k_.parts > 1 ? sums(v) : k_.values[v].elem());
    }
    for (std::size_t n = 0; n < k_.leaves.size(); ++n) add(cat("a", n), k_.leaves[n]->elem);
  }

  ir::PrimFunc write() {
    // A reduction of no axes, as of a number, joins rows of one element.
    const bool joins = k_.mask != 0 || k_.values[0]->kind == LazyKind::reduce;
    const Stmt body = !joins ? map() : strips_ ? strips() : rows();
    return ir::make_func("main", params_, ir::root_block(body));
  }

 private:
  using Loaded = std::vector<std::optional<Expr>>;  // of the leaves

  void add(const std::string& name, Elem elem) {
    auto b = ir::edit(ir::make_buffer(name, dtype_of(elem), {ir::make_var("n_" + name)}));
    b->align = elem_bytes(elem);
    operands_.push_back(b);
    params_.push_back(ir::buffer_param(operands_.back()));
  }
  /// 16-bit floats are joined in float32 and rounded once.
  Elem sums(std::size_t value) const { return kernel_elem(k_.values[value].elem()); }
  const Lazy& value(std::size_t v) const { return k_.values[v]; }
  const ir::Buffer& result(std::size_t v) const {
    return operands_[static_cast<std::size_t>(results_[v])];
  }
  const Expr& place(const Places& at, std::size_t v) const {
    return at[static_cast<std::size_t>(results_[v])];
  }

  // ---- what all forms share

  /// Leaves that do not move along an axis, loaded before its loop. A compiler cannot move such a
  /// load, nor what is computed of it: a result might overlap the operand.
  Loaded load_still(Block& block, const HostPass& pass, const Places& at,
                    const std::vector<Dims>& steps, int axis) const {
    Loaded loaded(k_.leaves.size());
    for (std::size_t n : pass.leaves) {
      if (steps[outs_ + n][axis] == 0)
        loaded[n] = block.let(cat("same", n), ir::load(operands_[outs_ + n], {at[outs_ + n]}));
    }
    return loaded;
  }

  /// What is known at a position of a row: numbers of the row, values in memory.
  using Known = std::function<void(LazyWriter&)>;
  /// Computes at one position what the pass wants: joins values (join gives the statement), writes
  /// results and what later passes read.
  Stmt position(const HostPass& pass, const Places& at, const Loaded& loaded, const Known& known,
                const std::function<Stmt(std::size_t, const Expr&)>& join,
                const std::function<Stmt(const Lazy&, const Expr&)>& hold, bool stream) const {
    Block block;
    LazyWriter writer;
    known(writer);
    for (std::size_t n : pass.leaves) {
      Expr x = loaded[n] ? *loaded[n]
                         : block.let(cat("x", n), ir::load(operands_[outs_ + n], {at[outs_ + n]}));
      writer.set(k_.leaves[n], std::move(x));
    }
    ir::Exprs all;
    for (std::size_t v : pass.reductions)
      all.push_back(convert_value(writer.value(value(v)->in[0]), sums(v)));
    for (std::size_t v : pass.elements)
      all.push_back(convert_value(writer.value(value(v)), value(v).elem()));
    for (const Lazy& x : pass.held) all.push_back(writer.value(x));
    block.add(ir::with_shared(all, [&](const ir::Exprs& named) {
      std::vector<Stmt> out;
      std::size_t next = 0;
      for (std::size_t v : pass.reductions) out.push_back(join(v, named[next++]));
      for (std::size_t v : pass.elements) {
        const Expr& x = named[next++];
        const bool past = stream && is_streamed(v);
        out.push_back(
            ir::store(result(v), past ? ir::call("nontemporal", {x}) : x, {place(at, v)}));
      }
      for (const Lazy& x : pass.held) out.push_back(hold(x, named[next++]));
      return ir::seq(std::move(out));
    }));
    return block.done();
  }

  /// What does not stay in the caches is stored past them.
  bool is_streamed(std::size_t v) const {
    const std::int64_t bytes = elem_bytes(value(v).elem());
    return bytes >= 4 && product(axes_.kept) * bytes >= kStreamBytes &&
           axes_.kept_steps[static_cast<std::size_t>(results_[v])][0] == 1;
  }

  Places base(const Expr& row) const {
    return offsets(row, axes_.kept, axes_.kept_steps, axes_.kept.size());
  }

  // ---- maps

  Stmt map() {
    const int last = axes_.last_kept();
    const HostPass& pass = passes_.passes()[0];
    const bool stream = last == 0;
    auto row = [&](const Places& from, std::int64_t extent) {
      Block block;
      const Loaded loaded = load_still(block, pass, from, axes_.kept_steps, last);
      block.add(vectors(extent, kLanes, [&](const Expr& j) {
        return position(
            pass, sum(from, along(axes_.kept_steps, last, j)), loaded, [](LazyWriter&) {}, nullptr,
            nullptr, stream);
      }));
      return block.done();
    };
    const std::int64_t inner = axes_.kept[last],
                       rows = product(axes_.kept) / std::max<std::int64_t>(inner, 1);
    const Var o = ir::make_var("o");
    auto shared = [&](std::int64_t extent, const Stmt& body) {
      return ir::make_for(o, number(0), number(extent), body,
                          extent > 1 ? ir::ForKind::parallel : ir::ForKind::serial);
    };
    if (last == 0) {  // one long row is cut so that threads share it
      const std::int64_t cut = inner > kRow ? kRow : inner, pieces = inner / cut;
      std::vector<Stmt> all = {
          shared(pieces, row(along(axes_.kept_steps, 0, Expr(o) * number(cut)), cut))};
      if (inner % cut)
        all.push_back(row(along(axes_.kept_steps, 0, number(pieces * cut)), inner % cut));
      return ir::seq(std::move(all));
    }
    // Several short rows to a task.
    std::int64_t per = std::clamp<std::int64_t>(kRow / inner, 1, rows);
    while (rows % per) --per;
    const Var r = ir::make_var("r");
    const Places from =
        offsets(Expr(o) * number(per) + Expr(r), axes_.kept, axes_.kept_steps, last);
    return shared(rows / per, ir::make_for(r, number(0), number(per), row(from, inner)));
  }

  // ---- rows: the innermost joined axis runs in vectors of running results, joined at its end

  Stmt rows() {
    const std::int64_t gone = product(axes_.gone), kept = product(axes_.kept);
    std::int64_t per = std::clamp<std::int64_t>(kRow / gone, 1, kept);
    while (kept % per) --per;
    std::map<const LazyNode*, ir::Buffer> held;
    std::vector<ir::Buffer> own;
    for (const HostPass& p : passes_.passes()) {
      for (const Lazy& x : p.held) {
        own.push_back(
            ir::make_buffer(cat("held", own.size()), dtype_of(x.elem()), {number(gone)}, "local"));
        held[x.node()] = own.back();
      }
    }
    return loop("o", kept / per, ir::ForKind::parallel, [&](const Expr& o) {
      Stmt out = loop("r", per, ir::ForKind::serial,
                      [&](const Expr& r) { return row(o * number(per) + r, held); });
      for (const ir::Buffer& b : own) out = ir::allocate(b, out);
      return out;
    });
  }

  Stmt row(const Expr& at, const std::map<const LazyNode*, ir::Buffer>& held) {
    Block block;
    const Places from = base(at);
    std::map<std::size_t, ir::Buffer> acc, run;
    LazyWriter numbers;  // of this row
    for (std::size_t p = 0; p < passes_.passes().size(); ++p) {
      const HostPass& pass = passes_.passes()[p];
      for (const Lazy& x : pass.numbers) number_of_row(block, numbers, from, x);
      const std::int64_t lanes = lanes_of(pass);
      for (std::size_t v : pass.reductions) {
        const std::int64_t own = lanes + rest_of(lanes);
        const auto make = [&](const char* name) {
          return ir::make_buffer(cat(name, v), dtype_of(sums(v)), {number(own)}, "local");
        };
        acc[v] = make("acc");
        if (is_long(lanes)) run[v] = make("run");
        block.add(started(v, acc[v], lanes));
      }
      block.add(row_pass(p, from, lanes, numbers, acc, run, held));
      for (std::size_t v : pass.reductions) {
        block.add(joined_lanes(acc[v], value(v)->reduction, lanes));
        const Expr total = ir::load(acc[v], {number(0)});
        numbers.set(value(v).node(),
                    block.let(cat("total", v), convert_value(total, value(v).elem())));
        if (k_.parts > 1) block.add(ir::store(result(v), total, {place(from, v)}));
      }
    }
    for (std::size_t v : passes_.of_rows()) {
      if (k_.parts > 1) continue;
      number_of_row(block, numbers, from, value(v));
      block.add(ir::store(result(v), convert_value(numbers.value(value(v)), value(v).elem()),
                          {place(from, v)}));
    }
    Stmt out = block.done();
    for (const auto& [v, buffer] : acc) out = ir::allocate(buffer, out);
    for (const auto& [v, buffer] : run) out = ir::allocate(buffer, out);
    return out;
  }

  /// Whether a running result of a row would be joined with too many elements one after another.
  bool is_long(std::int64_t lanes) const { return product(axes_.gone) / lanes > 2 * kRun; }

  /// Running results that nothing was joined with.
  Stmt started(std::size_t v, const ir::Buffer& to, std::int64_t lanes) const {
    const Expr start = reduce_identity(value(v)->reduction, sums(v));
    return lanes_and_rest(lanes, [&](const Expr& j) { return ir::store(to, start, {j}); });
  }
  Stmt lanes_and_rest(std::int64_t lanes, const std::function<Stmt(const Expr&)>& at) const {
    return ir::seq(
        {vectors(lanes, kLanes, at, true),
         vectors(
             rest_of(lanes), kLanes, [&](const Expr& j) { return at(j + number(lanes)); }, true)});
  }
  /// Running results joined with those of a run.
  Stmt added(std::size_t v, const ir::Buffer& run, const ir::Buffer& to, std::int64_t lanes) const {
    return lanes_and_rest(lanes, [&](const Expr& j) {
      return ir::store(to, reduce_value(value(v)->reduction, ir::load(to, {j}), ir::load(run, {j})),
                       {j});
    });
  }

  /// Names a number of the row: its leaves are loaded at the row's first place.
  void number_of_row(Block& block, LazyWriter& numbers, const Places& from, const Lazy& x) {
    if (numbers.knows(x.node()) || x->kind == LazyKind::number) return;
    load_of_row(block, numbers, from, x);
    const Expr value = numbers.value(x);
    if (!value->dtype.is_bool()) numbers.set(x.node(), block.let("number", value));
  }
  void load_of_row(Block& block, LazyWriter& numbers, const Places& from, const Lazy& x) {
    if (numbers.knows(x.node())) return;
    const auto leaf = std::find(k_.leaves.begin(), k_.leaves.end(), x.node());
    if (leaf == k_.leaves.end()) {
      for (const Lazy& i : x->in) load_of_row(block, numbers, from, i);
      return;
    }
    const auto n = static_cast<std::size_t>(leaf - k_.leaves.begin());
    numbers.set(*leaf, block.let(cat("of", n), ir::load(operands_[outs_ + n], {from[outs_ + n]})));
  }

  /// Vectors of a row that are joined apart from each other: each sum waits for the one before it.
  std::int64_t lanes_of(const HostPass& pass) const {
    const std::int64_t inner = axes_.gone[axes_.last_gone()];
    if (pass.reductions.empty()) return kLanes;
    if (inner >= 16 * kLanes && pass.reductions.size() <= 2) return 4 * kLanes;
    if (inner >= 2 * kLanes) return 2 * kLanes;
    std::int64_t lanes = kLanes;
    while (lanes > inner) lanes /= 2;
    return lanes < 4 ? 1 : lanes;
  }

  /// What is left of a row beyond whole vectors has running results of its own, so that none is
  /// written in one width and read in another.
  std::int64_t rest_of(std::int64_t lanes) const { return axes_.gone[axes_.last_gone()] % lanes; }

  Stmt row_pass(std::size_t p, const Places& from, std::int64_t lanes, const LazyWriter& numbers,
                const std::map<std::size_t, ir::Buffer>& acc,
                const std::map<std::size_t, ir::Buffer>& run,
                const std::map<const LazyNode*, ir::Buffer>& held) {
    const HostPass& pass = passes_.passes()[p];
    const int last = axes_.last_gone();
    const std::int64_t inner = axes_.gone[last], outer = product(axes_.gone) / inner;
    const std::int64_t whole = inner / lanes;
    const bool joins = !pass.reductions.empty(), runs = joins && is_long(lanes);
    const auto each = [&](const std::function<Stmt(std::size_t)>& f) {
      std::vector<Stmt> all;
      for (std::size_t v : pass.reductions) all.push_back(f(v));
      return ir::seq(std::move(all));
    };
    const auto start = [&] { return each([&](auto v) { return started(v, run.at(v), lanes); }); };
    const auto add = [&] {
      return each([&](auto v) { return added(v, run.at(v), acc.at(v), lanes); });
    };
    auto along_inner = [&](const Expr& g) {
      Block block;
      const Places at = sum(from, offsets(g, axes_.gone, axes_.gone_steps, last));
      const Loaded loaded = load_still(block, pass, at, axes_.gone_steps, last);
      // j: in the row's innermost axis; lane: of the running results.
      auto body = [&](const Expr& j, const Expr& lane) {
        const Places here = sum(at, along(axes_.gone_steps, last, j));
        const Expr linear = g * number(inner) + j;
        auto known = [&](LazyWriter& w) {
          for (const Lazy& x : pass.numbers)
            if (x->kind != LazyKind::number) w.set(x.node(), LazyWriter(numbers).value(x));
          for (const auto& [node, stored] : passes_.stored()) {
            if (stored >= p) continue;
            const auto own = held.find(node);
            w.set(node, own != held.end() ? ir::load(own->second, {linear}) : written(node, here));
          }
        };
        auto join = [&](std::size_t v, const Expr& x) {
          const ir::Buffer& to = (runs ? run : acc).at(v);
          return ir::store(to, reduce_value(value(v)->reduction, ir::load(to, {lane}), x), {lane});
        };
        auto hold = [&](const Lazy& x, const Expr& v) {
          return ir::store(held.at(x.node()), v, {linear});
        };
        return position(pass, here, loaded, known, join, hold, false);
      };
      const auto column = [&](const Expr& c) {
        return vectors(
            lanes, kLanes, [&](const Expr& j) { return body(c * number(lanes) + j, j); }, joins);
      };
      const Stmt rest = vectors(
          rest_of(lanes), kLanes,
          [&](const Expr& j) { return body(j + number(whole * lanes), j + number(lanes)); }, joins);
      if (runs && whole > kRun) {
        block.add(in_runs("c", whole, kRun, start, column, add));
        block.add(ir::seq({start(), rest, add()}));
        return block.done();
      }
      if (whole > 0) block.add(loop("c", whole, ir::ForKind::serial, column));
      block.add(rest);
      return block.done();
    };
    if (!runs || whole > kRun) return loop("g", outer, ir::ForKind::serial, along_inner);
    return in_runs("g", outer, kRun / std::max<std::int64_t>(whole, 1), start, along_inner, add);
  }

  /// A result that an earlier pass wrote.
  Expr written(const LazyNode* node, const Places& at) const {
    for (std::size_t v = 0; v < k_.values.size(); ++v)
      if (k_.kept[v] && k_.values[v].node() == node) return ir::load(result(v), {place(at, v)});
    WEFT_CHECK(false, "a value is read that no pass wrote");
    return {};
  }

  /// The running results in the first of them, by halves; those of the rest before.
  Stmt joined_lanes(const ir::Buffer& acc, ReduceOp op, std::int64_t lanes) const {
    std::vector<Stmt> all;
    auto join = [&](std::int64_t count, std::int64_t from) {
      all.push_back(vectors(
          count, kLanes,
          [&](const Expr& j) {
            const Expr other = ir::load(acc, {j + number(from)});
            return ir::store(acc, reduce_value(op, ir::load(acc, {j}), other), {j});
          },
          true));
    };
    if (rest_of(lanes) > 0) join(rest_of(lanes), lanes);
    for (std::int64_t half = lanes / 2; half > 0; half /= 2) join(half, half);
    return ir::seq(std::move(all));
  }

  // ---- strips: neighbours among what is left are joined beside each other

  /// Whether most of what moves along both lies nearer to each other along what is left.
  bool is_strip() const {
    if (k_.parts > 1 || axes_.kept[axes_.last_kept()] < kLanes) return false;
    const auto nearest = [](const Dims& steps, const Dims& shape) {
      std::int64_t step = INT64_MAX;
      for (int i = 0; i < shape.size(); ++i)
        if (shape[i] > 1 && steps[i] != 0) step = std::min(step, std::abs(steps[i]));
      return step;
    };
    int votes = 0, lone = 0;
    for (std::size_t n = 0; n < axes_.kept_steps.size(); ++n) {
      const std::int64_t down = nearest(axes_.kept_steps[n], axes_.kept),
                         along = nearest(axes_.gone_steps[n], axes_.gone);
      // One element for each row says nothing of the rest.
      if (down == along || (n < outs_ && along == INT64_MAX)) continue;
      (down != INT64_MAX && along != INT64_MAX ? votes : lone) += down < along ? 1 : -1;
    }
    return votes != 0 ? votes > 0 : lone > 0;
  }

  std::int64_t strip_width() const { return std::min(kColumns, axes_.kept[axes_.last_kept()]); }

  Stmt strips() {
    const int last = axes_.last_kept();
    const std::int64_t inner = axes_.kept[last], outer = product(axes_.kept) / inner;
    const std::int64_t width = strip_width(), count = inner / width;
    std::vector<Stmt> all = {loop("o", outer * count, ir::ForKind::parallel, [&](const Expr& o) {
      return strip(ir::floordiv(o, number(count)), ir::floormod(o, number(count)) * number(width),
                   width);
    })};
    if (inner % width)
      all.push_back(loop("o", outer, ir::ForKind::parallel, [&](const Expr& o) {
        return strip(o, number(count * width), inner % width);
      }));
    return ir::seq(std::move(all));
  }

  struct Strip {
    Places from;
    std::int64_t width;
    std::map<std::size_t, ir::Buffer> run;      // of each lane: what the last rows were joined to
    std::map<const LazyNode*, ir::Buffer> own;  // of each lane: joined results and numbers
    std::map<const LazyNode*, ir::Buffer> held;
    std::vector<ir::Buffer> all;

    const ir::Buffer& add(std::map<const LazyNode*, ir::Buffer>& to, const LazyNode* node,
                          Elem elem, std::int64_t size) {
      all.push_back(
          ir::make_buffer(cat("own", all.size()), dtype_of(elem), {number(size)}, "local"));
      return to[node] = all.back();
    }
  };

  Stmt strip(const Expr& outer, const Expr& first, std::int64_t width) {
    const int last = axes_.last_kept();
    Strip s;
    s.from = sum(offsets(outer, axes_.kept, axes_.kept_steps, last),
                 along(axes_.kept_steps, last, first));
    s.width = width;
    for (const HostPass& p : passes_.passes()) {
      for (std::size_t v : p.reductions) {
        s.add(s.own, value(v).node(), sums(v), width);
        if (product(axes_.gone) <= 2 * kRun) continue;
        s.run[v] = ir::make_buffer(cat("run", v), dtype_of(sums(v)), {number(width)}, "local");
        s.all.push_back(s.run[v]);
      }
      for (const Lazy& x : p.held) s.add(s.held, x.node(), x.elem(), width * product(axes_.gone));
    }
    std::vector<Stmt> all;
    for (std::size_t p = 0; p < passes_.passes().size(); ++p) {
      const HostPass& pass = passes_.passes()[p];
      numbers_of_strip(s, pass.numbers, all);
      for (std::size_t v : pass.reductions)
        all.push_back(started_lanes(v, s.own.at(value(v).node()), width));
      all.push_back(strip_pass(p, s));
    }
    if (!passes_.of_rows().empty())
      all.push_back(vectors(width, kLanes, [&](const Expr& j) {
        LazyWriter w = lane_numbers(s, j);
        const Places at = sum(s.from, along(axes_.kept_steps, last, j));
        load_rows(w, at);
        ir::Exprs values;
        for (std::size_t v : passes_.of_rows())
          values.push_back(convert_value(w.value(value(v)), value(v).elem()));
        return ir::with_shared(values, [&](const ir::Exprs& named) {
          std::vector<Stmt> out;
          for (std::size_t i = 0; i < named.size(); ++i) {
            const std::size_t v = passes_.of_rows()[i];
            out.push_back(ir::store(result(v), named[i], {place(at, v)}));
          }
          return ir::seq(std::move(out));
        });
      }));
    Stmt out = ir::seq(std::move(all));
    for (const ir::Buffer& b : s.all) out = ir::allocate(b, out);
    return out;
  }

  /// Joined results and numbers of a lane.
  LazyWriter lane_numbers(const Strip& s, const Expr& j) const {
    LazyWriter w;
    for (const auto& [node, buffer] : s.own)
      w.set(node, convert_value(ir::load(buffer, {j}), node->elem));
    return w;
  }
  /// Leaves with one element for each row, at its place.
  void load_rows(LazyWriter& w, const Places& at) const {
    for (std::size_t n = 0; n < k_.leaves.size(); ++n)
      if (!moves(n)) w.set(k_.leaves[n], ir::load(operands_[outs_ + n], {at[outs_ + n]}));
  }
  bool moves(std::size_t leaf) const {
    for (int i = 0; i < axes_.gone.size(); ++i)
      if (axes_.gone_steps[outs_ + leaf][i] != 0 && axes_.gone[i] > 1) return true;
    return false;
  }

  /// What a pass reads of the rows, computed for all lanes before it.
  void numbers_of_strip(Strip& s, const std::vector<Lazy>& numbers, std::vector<Stmt>& all) {
    std::vector<Lazy> fresh;
    for (const Lazy& x : numbers)
      if (!s.own.count(x.node()) && x->kind != LazyKind::number) fresh.push_back(x);
    if (fresh.empty()) return;
    std::vector<ir::Buffer> to;
    Strip before = s;
    for (const Lazy& x : fresh) to.push_back(s.add(s.own, x.node(), x.elem(), s.width));
    all.push_back(vectors(s.width, kLanes, [&](const Expr& j) {
      LazyWriter w = lane_numbers(before, j);
      load_rows(w, sum(s.from, along(axes_.kept_steps, axes_.last_kept(), j)));
      ir::Exprs values;
      for (const Lazy& x : fresh) values.push_back(w.value(x));
      return ir::with_shared(values, [&](const ir::Exprs& named) {
        std::vector<Stmt> out;
        for (std::size_t i = 0; i < named.size(); ++i)
          out.push_back(ir::store(to[i], named[i], {j}));
        return ir::seq(std::move(out));
      });
    }));
  }

  Stmt started_lanes(std::size_t v, const ir::Buffer& to, std::int64_t width) const {
    const Expr start = reduce_identity(value(v)->reduction, sums(v));
    return vectors(width, kLanes, [&](const Expr& j) { return ir::store(to, start, {j}); });
  }

  Stmt strip_pass(std::size_t p, const Strip& s) {
    const HostPass& pass = passes_.passes()[p];
    const int last = axes_.last_kept();
    auto across = [&](const Expr& g) {
      Block block;
      const Places at = sum(s.from, offsets(g, axes_.gone, axes_.gone_steps, axes_.gone.size()));
      const Loaded loaded = load_still(block, pass, at, axes_.kept_steps, last);
      block.add(vectors(s.width, kLanes, [&](const Expr& j) {
        const Places here = sum(at, along(axes_.kept_steps, last, j));
        const Expr linear = g * number(s.width) + j;
        auto known = [&](LazyWriter& w) {
          for (const Lazy& x : pass.numbers)
            if (x->kind != LazyKind::number) w.set(x.node(), lane_numbers(s, j).value(x));
          for (const auto& [node, stored] : passes_.stored()) {
            if (stored >= p) continue;
            const auto own = s.held.find(node);
            w.set(node,
                  own != s.held.end() ? ir::load(own->second, {linear}) : written(node, here));
          }
        };
        auto join = [&](std::size_t v, const Expr& x) {
          const ir::Buffer& to = s.run.empty() ? s.own.at(value(v).node()) : s.run.at(v);
          return ir::store(to, reduce_value(value(v)->reduction, ir::load(to, {j}), x), {j});
        };
        auto hold = [&](const Lazy& x, const Expr& v) {
          return ir::store(s.held.at(x.node()), v, {linear});
        };
        return position(pass, here, loaded, known, join, hold, false);
      }));
      return block.done();
    };
    const std::int64_t rows = product(axes_.gone);
    if (s.run.empty() || pass.reductions.empty())
      return loop("g", rows, ir::ForKind::serial, across);
    const auto each = [&](const std::function<Stmt(std::size_t)>& f) {
      std::vector<Stmt> all;
      for (std::size_t v : pass.reductions) all.push_back(f(v));
      return ir::seq(std::move(all));
    };
    return in_runs(
        "g", rows, kRun,
        [&] { return each([&](auto v) { return started_lanes(v, s.run.at(v), s.width); }); },
        across,
        [&] {
          return each([&](auto v) {
            const ir::Buffer& to = s.own.at(value(v).node());
            return vectors(s.width, kLanes, [&](const Expr& j) {
              const Expr more = ir::load(s.run.at(v), {j});
              return ir::store(to, reduce_value(value(v)->reduction, ir::load(to, {j}), more), {j});
            });
          });
        });
  }

  const HostKernel& k_;
  const KernelAxes axes_;
  const std::size_t outs_;  // operands that are results
  const bool strips_;
  const HostPasses passes_;
  std::vector<ir::Buffer> operands_;  // results, then leaves
  std::vector<ir::Param> params_;
  std::vector<int> results_;  // of the kernel's values: the operand, or none
};

}  // namespace

std::int64_t host_reduce_parts(const Dims& shape, std::uint64_t mask) {
  std::int64_t kept = 1, gone = 1;
  for (int i = 0; i < shape.size(); ++i) (mask >> i & 1 ? gone : kept) *= shape[i];
  if (kept > 1 || gone < 1 << 16) return 1;
  for (std::int64_t parts = 64; parts > 1; parts /= 2) {
    for (int i = 0; i < shape.size(); ++i) {
      if ((mask >> i & 1) && shape[i] % parts == 0) return parts;
    }
  }
  return 1;
}

ir::PrimFunc host_kernel(const HostKernel& kernel) { return KernelWriter(kernel).write(); }

}  // namespace weft::fuse
