// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/synthesise.h"

#include <algorithm>

#include "weft/ir/build.h"
#include "weft/targets/vta/chain.h"
#include "weft/targets/vta/tiles.h"

namespace weft::vta {

using namespace ir;

namespace {

Expr both(Expr a, Expr b) { return a ? logical_and(std::move(a), std::move(b)) : b; }

class Writer {
 public:
  Writer(const Task& s, const Config& c, const TimingParams& timing)
      : s_(s),
        c_(c),
        laid_(lay_out(s, c)),
        t_(choose_tiles(s, laid_, c, timing)),
        chain_(compile_chain(s)) {
    x_ = laid_.lanes.swapped ? &s.w : &s.x;
    w_ = laid_.lanes.swapped ? &s.x : &s.w;
    for (std::size_t a = 0; a < s.axes.size(); ++a) {
      at_.push_back(make_int(0));
      size_.push_back(make_int(t_.tile[a]));
      if (s.axes[a].reduce) continue;
      ++spatial_;
    }
    for (const Segment& segment : s.chain) {
      if (!segment.store) continue;
      for (const PackedDim& p : laid_.stores[static_cast<std::size_t>(&segment - &s.chain[0])].dims)
        acc_axes_.push_back(p.axis);
      break;
    }
  }

  void write(std::vector<Stmt>& body, std::vector<Buffer>& temporaries) {
    bool product = s_.kind == Task::Kind::product, reduction = s_.kind == Task::Kind::reduction;
    if (product) {
      fetch_.push_back(source(*x_, *laid_.x, dtypes::int8, "vta.inp"));
      fetch_.push_back(source(*w_, *laid_.w, dtypes::int8, "vta.wgt"));
    } else if (reduction) {
      fetch_.push_back(source(s_.x, *laid_.x, wide(s_.x.buffer->dtype), "vta.acc"));
    }
    operands_at_ = fetch_.size();
    for (std::size_t i = 0; i < s_.operands.size(); ++i)
      fetch_.push_back(
          source(s_.operands[i], laid_.operands[i], wide(s_.operands[i].buffer->dtype), "vta.acc"));
    for (std::size_t i = 0; i < s_.chain.size(); ++i) target(i);
    choose_direct();
    for (Source& f : fetch_) f.level = level_of(*f.operand, s_, t_);
    Stmt device = inside(0);
    for (Stmt& s : pack_) body.push_back(std::move(s));
    body.push_back(std::move(device));
    for (std::size_t i = 0; i < s_.chain.size(); ++i) unpack(i, body);
    temporaries.insert(temporaries.end(), temporaries_.begin(), temporaries_.end());
  }

 private:
  /// An array, its packed form and its tile on chip.
  struct Source {
    const Operand* operand;
    const Layout* layout;
    Buffer global;  // packed, or the array itself
    bool packed;
    std::string scope;
    Buffer chip;
    int level = -1;
    bool direct = false;  // loaded into the value's own buffer
  };
  struct Target {
    Operand operand;
    Buffer global;
    bool packed = false;
    int bytes = 1;
  };

  static DType wide(DType t) { return t == dtypes::int8 ? t : dtypes::int32; }

  Buffer temporary(const std::string& name, DType type, const Layout& l, int bytes = 1) {
    Exprs shape;
    if (bytes > 1) shape.push_back(make_int(bytes));
    for (const PackedDim& p : l.dims) shape.push_back(make_int(p.extent));
    shape.push_back(make_int(l.lanes[0]));
    shape.push_back(make_int(l.lanes[1]));
    Buffer b = make_buffer(name, type, shape);
    temporaries_.push_back(b);
    return b;
  }

  // ---- indices

  /// The array's index at a place of the packed form.
  Exprs array_index(const Operand& o, const Layout& l, const Exprs& dims,
                    const std::array<Expr, 2>& lanes) const {
    std::vector<Expr> axis(s_.axes.size());
    Exprs out(o.index.size());
    for (std::size_t i = 0; i < l.dims.size(); ++i) {
      const PackedDim& p = l.dims[i];
      if (p.window) {
        out[p.dim] = dims[i] + p.shift;
        continue;
      }
      Expr v = dims[i];
      for (std::size_t k = 0; k < 2; ++k) {
        if (l.lane_axis[k] == static_cast<int>(p.axis) && l.lanes[k] > 1)
          v = v * l.lanes[k] + lanes[k];
      }
      axis[p.axis] = v;
    }
    for (std::size_t d = 0; d < out.size(); ++d) {
      if (out[d]) continue;
      Expr e = make_int(o.index[d].base);
      for (std::size_t a = 0; a < axis.size(); ++a) {
        std::int64_t c = o.index[d].coeff(s_.axes[a].var.get());
        if (c != 0) e = e + axis[a] * c;
      }
      out[d] = e;
    }
    return out;
  }

  /// Where the packed form holds data: lanes inside their axes, windows inside the array. Null:
  /// everywhere.
  Expr inside_array(const Operand& o, const Layout& l, const Exprs& dims,
                    const std::array<Expr, 2>& lanes) const {
    Expr out;
    for (std::size_t k = 0; k < 2; ++k) {
      if (l.lanes[k] == 1 || l.replicate[k]) continue;
      if (l.lane_axis[k] < 0) {
        out = both(out, lt(lanes[k], make_int(1)));
        continue;
      }
      std::int64_t n = s_.axes[static_cast<std::size_t>(l.lane_axis[k])].extent;
      if (n % l.lanes[k] == 0) continue;
      for (std::size_t i = 0; i < l.dims.size(); ++i) {
        if (!l.dims[i].window && static_cast<int>(l.dims[i].axis) == l.lane_axis[k])
          out = both(out, lt(dims[i] * l.lanes[k] + lanes[k], make_int(n)));
      }
    }
    for (std::size_t i = 0; i < l.dims.size(); ++i) {
      const PackedDim& p = l.dims[i];
      if (!p.window) continue;
      const Bounds& b = o.bounds[p.dim];
      Expr v = dims[i] + p.shift;
      auto [low, high] = range_of(o.index[p.dim], s_.axes);
      if (low < b.low) out = both(out, ge(v, make_int(b.low)));
      if (high >= b.high) out = both(out, lt(v, make_int(b.high)));
    }
    return out;
  }

  // ---- host loops

  struct HostLoops {
    Exprs dims;
    std::array<Expr, 2> lanes;
    std::vector<std::pair<Var, Expr>> loops;
  };

  HostLoops host_loops(const Layout& l) const {
    HostLoops out;
    for (std::size_t i = 0; i < l.dims.size(); ++i) {
      Var v = make_var(cat("p", i));
      out.dims.push_back(v);
      out.loops.emplace_back(v, make_int(l.dims[i].extent));
    }
    for (std::size_t k = 0; k < 2; ++k) {
      Var v = make_var(k ? "l1" : "l0");
      out.lanes[k] = v;
      out.loops.emplace_back(v, make_int(l.lanes[k]));
    }
    return out;
  }

  static Stmt nest(const std::vector<std::pair<Var, Expr>>& loops, Stmt s) {
    for (std::size_t i = loops.size(); i-- > 0;)
      s = make_for(loops[i].first, make_int(0), loops[i].second, std::move(s));
    return s;
  }

  static Exprs join(Exprs dims, const std::array<Expr, 2>& lanes) {
    dims.push_back(lanes[0]);
    dims.push_back(lanes[1]);
    return dims;
  }

  Source source(const Operand& o, const Layout& l, DType type, std::string scope) {
    Source f{&o, &l, o.buffer, false, std::move(scope), nullptr};
    if (l.identity && o.buffer->dtype == type) return f;
    f.packed = true;
    f.global = temporary(o.buffer->name + "_packed", type, l);
    HostLoops h = host_loops(l);
    Expr value = cast(type, load(o.buffer, array_index(o, l, h.dims, h.lanes)));
    if (Expr guard = inside_array(o, l, h.dims, h.lanes))
      value = if_then_else(guard, value, make_zero(type));
    pack_.push_back(nest(h.loops, store(f.global, value, join(h.dims, h.lanes))));
    return f;
  }

  void target(std::size_t i) {
    Target t;
    if (s_.chain[i].store) {
      t.operand = target_of(s_.chain[i]);
      t.global = t.operand.buffer;
      t.bytes = t.global->dtype.bytes();
      t.packed = !laid_.stores[i].identity || t.bytes > 1;
      if (t.packed)
        t.global =
            temporary(t.operand.buffer->name + "_packed",
                      t.bytes > 1 ? dtypes::int8 : t.global->dtype, laid_.stores[i], t.bytes);
    }
    targets_.push_back(std::move(t));
  }

  void unpack(std::size_t i, std::vector<Stmt>& body) const {
    const Target& t = targets_[i];
    if (!t.packed) return;
    const Layout& l = laid_.stores[i];
    HostLoops h = host_loops(l);
    Expr value;
    for (int byte = 0; byte < t.bytes; ++byte) {
      Exprs index = join(h.dims, h.lanes);
      if (t.bytes == 1) {
        value = load(t.global, index);
        break;
      }
      index.insert(index.begin(), make_int(byte));
      Expr part = cast(dtypes::int32, load(t.global, index));
      if (byte + 1 < t.bytes) part = call("bitwise_and", {part, make_int(255, dtypes::int32)});
      if (byte) part = call("shift_left", {part, make_int(8 * byte, dtypes::int32)});
      value = value ? call("bitwise_or", {value, part}) : part;
    }
    Stmt s = store(t.operand.buffer, cast(t.operand.buffer->dtype, value),
                   array_index(t.operand, l, h.dims, h.lanes));
    if (Expr guard = inside_array(t.operand, l, h.dims, h.lanes)) s = if_then(guard, s);
    body.push_back(nest(h.loops, s));
  }

  // ---- tiles

  Expr window_extent(const Linear& l) const {
    Expr n = make_int(1);
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      std::int64_t c = std::abs(l.coeff(s_.axes[a].var.get()));
      if (c) n = n + (size_[a] - 1) * c;
    }
    return n;
  }

  Exprs chip_shape(const Operand& o, const Layout& l) const {
    Exprs shape;
    for (const PackedDim& p : l.dims)
      shape.push_back(p.window ? window_extent(o.index[p.dim]) : size_[p.axis]);
    shape.push_back(make_int(l.lanes[0]));
    shape.push_back(make_int(l.lanes[1]));
    return shape;
  }

  /// The tile's first place in the packed form.
  Exprs origin(const Operand& o, const Layout& l) const {
    Exprs out;
    for (const PackedDim& p : l.dims) {
      if (!p.window) {
        out.push_back(at_[p.axis]);
        continue;
      }
      const Linear& x = o.index[p.dim];
      Expr e = make_int(x.base - p.shift);
      for (std::size_t a = 0; a < s_.axes.size(); ++a) {
        std::int64_t c = x.coeff(s_.axes[a].var.get());
        if (c > 0) e = e + at_[a] * c;
        if (c < 0) e = e + (at_[a] + size_[a] - 1) * c;
      }
      out.push_back(e);
    }
    return out;
  }

  /// The index on chip at these positions of the axes inside the tile.
  Exprs chip_index(const Operand& o, const Layout& l, const std::vector<Expr>& local,
                   const std::array<Expr, 2>& lanes) const {
    Exprs out;
    for (const PackedDim& p : l.dims) {
      if (!p.window) {
        out.push_back(local[p.axis]);
        continue;
      }
      Expr e = make_int(0);
      for (std::size_t a = 0; a < s_.axes.size(); ++a) {
        std::int64_t c = o.index[p.dim].coeff(s_.axes[a].var.get());
        if (c > 0) e = e + local[a] * c;
        if (c < 0) e = e + (size_[a] - 1 - local[a]) * -c;
      }
      out.push_back(e);
    }
    return join(out, lanes);
  }

  Stmt dma_in(const Source& f, const Buffer& chip) const {
    HostLoops h;
    Exprs shape = chip_shape(*f.operand, *f.layout), from = origin(*f.operand, *f.layout), to;
    for (std::size_t i = 0; i < f.layout->dims.size(); ++i) {
      Var v = make_var(cat("d", i));
      h.loops.emplace_back(v, shape[i]);
      to.push_back(v);
      from[i] = from[i] + v;
    }
    for (std::size_t k = 0; k < 2; ++k) {
      Var v = make_var(k ? "l1" : "l0");
      h.lanes[k] = v;
      h.loops.emplace_back(v, make_int(f.layout->lanes[k]));
    }
    Expr value = load(f.global, f.packed ? join(from, h.lanes)
                                         : array_index(*f.operand, *f.layout, from, h.lanes));
    value = cast(chip->dtype, value);
    if (f.layout->guard && !f.packed) {
      if (Expr guard = inside_array(*f.operand, *f.layout, from, h.lanes))
        value = if_then_else(guard, value, make_zero(chip->dtype));
    }
    return nest(h.loops, store(chip, value, join(to, h.lanes)));
  }

  struct Inner {
    std::vector<Expr> local;
    std::array<Expr, 2> lanes;
    std::vector<std::pair<Var, Expr>> loops;
  };

  /// Loops over a tile: spatial axes (and summed ones first), then the lanes of an accumulator.
  Inner inner(bool reduced) const {
    Inner out;
    out.local.assign(s_.axes.size(), make_int(0));
    auto add = [&](std::size_t a) {
      Var v = make_var(cat("i", a));
      out.local[a] = v;
      out.loops.emplace_back(v, size_[a]);
    };
    for (std::size_t a = 0; reduced && a < s_.axes.size(); ++a) {
      if (s_.axes[a].reduce) add(a);
    }
    for (std::size_t a : acc_axes_) add(a);
    std::int64_t n[2] = {c_.batch(), c_.block_out()};
    for (std::size_t k = 0; k < 2; ++k) {
      Var v = make_var(k ? "c" : "b");
      out.lanes[k] = v;
      out.loops.emplace_back(v, make_int(n[k]));
    }
    return out;
  }

  Exprs acc_index(const Inner& i) const {
    Exprs out;
    for (std::size_t a : acc_axes_) out.push_back(i.local[a]);
    return join(out, i.lanes);
  }

  Stmt inside(std::size_t level) {
    // Buffers of this level: shapes follow the tile, which may be smaller at the end.
    std::vector<Source*> here;
    bool sums = level == spatial_;
    for (std::size_t i = 0; i < fetch_.size(); ++i) {
      Source& f = fetch_[i];
      if (f.direct || f.level + 1 != static_cast<int>(level)) continue;
      DType type = f.scope == "vta.acc" ? dtypes::int32 : dtypes::int8;
      f.chip = make_buffer(f.operand->buffer->name + "_tile", type,
                           chip_shape(*f.operand, *f.layout), f.scope);
      here.push_back(&f);
    }
    if (sums) {
      for (int b = 0; b < chain_.buffers; ++b) {
        Exprs shape;
        for (std::size_t a : acc_axes_) shape.push_back(size_[a]);
        shape.push_back(make_int(c_.batch()));
        shape.push_back(make_int(c_.block_out()));
        acc_.push_back(
            make_buffer(b ? cat("temp", b) : s_.name + "_tile", dtypes::int32, shape, "vta.acc"));
      }
    }
    Stmt core;
    if (level == t_.order.size()) {
      core = work();
    } else {
      std::size_t a = t_.order[level];
      if (t_.count(a) > 1) {
        Var v = make_var(cat(s_.axes[a].var->name, "_t"));
        Expr old_at = at_[a], old_size = size_[a];
        at_[a] = v * t_.tile[a];
        if (t_.outer[a] % t_.tile[a])
          size_[a] = ir::min(make_int(t_.tile[a]), make_int(t_.outer[a]) - at_[a]);
        core = inside(level + 1);
        core = core ? make_for(v, make_int(0), make_int(t_.count(a)), core) : core;
        at_[a] = old_at, size_[a] = old_size;
      } else {
        core = inside(level + 1);
      }
    }
    std::vector<Stmt> parts;
    if (sums) {
      if (s_.kind != Task::Kind::elementwise) parts.push_back(initial());
      if (core) parts.push_back(core);
      for (Source* f : here) {
        if (f >= fetch_.data() + operands_at_) parts.push_back(dma_in(*f, f->chip));
      }
      for (std::size_t i = 0; i < chain_.steps.size(); ++i) parts.push_back(step(i));
      core = seq(parts);
      for (std::size_t b = acc_.size(); b-- > 0;) core = allocate(acc_[b], core);
      for (Source* f : here) {
        if (f >= fetch_.data() + operands_at_) core = allocate(f->chip, core);
      }
      acc_.clear();
    }
    for (Source* f : here) {
      if (sums && f >= fetch_.data() + operands_at_) continue;
      core = allocate(f->chip, seq({dma_in(*f, f->chip), core}));
    }
    return core;
  }

  Stmt initial() const {
    Inner i = inner(false);
    return nest(i.loops, store(acc_[0], make_int(s_.start, dtypes::int32), acc_index(i)));
  }

  /// The innermost statement: sum of products, or one step of a reduction.
  Stmt work() const {
    if (s_.kind == Task::Kind::elementwise) return nullptr;
    Inner i = inner(true);
    Expr old = load(acc_[0], acc_index(i));
    if (s_.kind == Task::Kind::product) {
      Var k = make_var("k");
      i.loops.emplace_back(k, make_int(c_.block_in()));
      Expr a = load(fetch_[0].chip, chip_index(*x_, *laid_.x, i.local, {i.lanes[0], k})),
           b = load(fetch_[1].chip, chip_index(*w_, *laid_.w, i.local, {i.lanes[1], k}));
      Expr sum = old + cast(dtypes::int32, a) * cast(dtypes::int32, b);
      return nest(i.loops, store(acc_[0], sum, acc_index(i)));
    }
    Expr term = load(fetch_[0].chip, chip_index(s_.x, *laid_.x, i.local, i.lanes));
    return nest(i.loops, store(acc_[0], combine(s_.reducer, old, term), acc_index(i)));
  }

  static Expr combine(AluOp op, Expr a, Expr b) {
    switch (op) {
      case AluOp::add: return a + b;
      case AluOp::min: return ir::min(a, b);
      case AluOp::max: return ir::max(a, b);
      case AluOp::mul: return a * b;
      default: return call("shift_right", {a, b});
    }
  }

  // ---- the chain

  /// A chain that begins with a copy of an operand has it loaded in place.
  void choose_direct() {
    for (std::size_t i = 0; i < chain_.steps.size(); ++i) {
      const ChainStep& step = chain_.steps[i];
      if (step.kind != ChainStep::Kind::copy || !step.from_operand) continue;
      auto k = static_cast<std::size_t>(step.from);
      int used = 0;
      bool changed = false, stored = false;
      for (std::size_t j = 0; j < chain_.steps.size(); ++j) {
        const ChainStep& other = chain_.steps[j];
        used += other.from_operand && other.from == step.from;
        if (j <= i || other.into != step.into) continue;
        bool computes = other.kind == ChainStep::Kind::imm || other.kind == ChainStep::Kind::acc;
        if (other.kind == ChainStep::Kind::store) stored = true;
        if (computes && !stored) changed = true;
      }
      const Layout& l = laid_.operands[k];
      bool same = l.dims.size() == acc_axes_.size();
      for (std::size_t d = 0; same && d < l.dims.size(); ++d)
        same = !l.dims[d].window && l.dims[d].axis == acc_axes_[d];
      fetch_[operands_at_ + k].direct = used == 1 && changed && same;
    }
  }

  Stmt step(std::size_t index) const {
    const ChainStep& step = chain_.steps[index];
    const Buffer& into = acc_[static_cast<std::size_t>(step.into)];
    Inner i = inner(false);
    auto from = [&] {
      if (!step.from_operand) return load(acc_[static_cast<std::size_t>(step.from)], acc_index(i));
      const Source& f = fetch_[operands_at_ + static_cast<std::size_t>(step.from)];
      return load(f.chip, chip_index(*f.operand, *f.layout, i.local, i.lanes));
    };
    auto constant = [&] { return make_int(step.number, dtypes::int32); };
    Expr old = load(into, acc_index(i));
    switch (step.kind) {
      case ChainStep::Kind::set: return nest(i.loops, store(into, constant(), acc_index(i)));
      case ChainStep::Kind::copy: {
        if (step.from_operand) {
          const Source& f = fetch_[operands_at_ + static_cast<std::size_t>(step.from)];
          if (f.direct) return dma_in(f, into);
        }
        return nest(i.loops, store(into, from(), acc_index(i)));
      }
      case ChainStep::Kind::imm: {
        Expr value = step.op == AluOp::shr && step.number < 0
                         ? call("shift_left", {old, make_int(-step.number, dtypes::int32)})
                         : combine(step.op, old, constant());
        return nest(i.loops, store(into, value, acc_index(i)));
      }
      case ChainStep::Kind::acc:
        return nest(i.loops, store(into, combine(step.op, old, from()), acc_index(i)));
      case ChainStep::Kind::store: break;
    }
    // A store: the array's order decides the loops.
    const Target& t = targets_[step.segment];
    const Layout& l = laid_.stores[step.segment];
    Exprs place = origin(t.operand, l);
    std::vector<std::pair<Var, Expr>> loops;
    i.local.assign(s_.axes.size(), make_int(0));
    for (std::size_t d = 0; d < l.dims.size(); ++d) {
      Var v = make_var(cat("d", d));
      loops.emplace_back(v, size_[l.dims[d].axis]);
      i.local[l.dims[d].axis] = v;
      place[d] = place[d] + v;
    }
    for (std::size_t k = 0; k < 2; ++k) loops.push_back(i.loops[i.loops.size() - 2 + k]);
    Exprs where = t.packed ? join(place, i.lanes) : array_index(t.operand, l, place, i.lanes);
    if (t.bytes > 1) where.insert(where.begin(), make_int(step.byte));
    return nest(loops, store(t.global, cast(t.global->dtype, load(into, acc_index(i))), where));
  }

  const Task& s_;
  const Config& c_;
  Laid laid_;
  Tiles t_;
  ChainProgram chain_;
  const Operand *x_ = nullptr, *w_ = nullptr;
  std::size_t spatial_ = 0, operands_at_ = 0;
  std::vector<std::size_t> acc_axes_;
  std::vector<Expr> at_, size_;  // per axis: the tile's first element and its extent
  std::vector<Source> fetch_;
  std::vector<Target> targets_;
  std::vector<Buffer> acc_, temporaries_;
  std::vector<Stmt> pack_;
};

}  // namespace

PrimFunc synthesise(const PrimFunc& f, const StagePlan& plan, const Config& config,
                    const TimingParams& timing) {
  std::vector<Stmt> body;
  std::vector<Buffer> temporaries = plan.temporaries;
  for (const Task& s : plan.stages) {
    if (s.kind == Task::Kind::copy) {
      body.push_back(s.copy);
    } else {
      Writer(s, config, timing).write(body, temporaries);
    }
  }
  auto out = edit(f);
  out->body = root_block(seq(std::move(body)), std::move(temporaries));
  return out;
}

}  // namespace weft::vta
