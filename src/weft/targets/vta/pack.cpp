// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/pack.h"

#include <map>
#include <set>
#include <unordered_set>

#include "weft/ir/build.h"
#include "weft/ir/regions.h"
#include "weft/ir/visit.h"
#include "weft/targets/vta/chain.h"

namespace weft::vta {

using namespace ir;

namespace {

Expr both(Expr a, Expr b) { return a ? logical_and(std::move(a), std::move(b)) : b; }

/// Names that nothing else in the function has.
class Names {
 public:
  std::string buffer(const std::string& constraints) { return fresh(buffers_, constraints); }
  std::string block(const std::string& constraints) { return fresh(blocks_, constraints); }

 private:
  static std::string fresh(std::set<std::string>& used, const std::string& constraints) {
    std::string name = constraints;
    for (int i = 1; !used.insert(name).second; ++i) name = cat(constraints, "_", i);
    return name;
  }
  std::set<std::string> buffers_, blocks_;
};

struct Iter {
  Var var;
  std::int64_t extent = 1;
  bool reduce = false;
};

/// Loops and a block around one store, with what the block reads and writes.
Stmt leaf(const std::string& name, const std::vector<Iter>& iters, const Stmt& body,
          const Stmt& init = nullptr, const Expr& predicate = nullptr) {
  auto block = make_ref<BlockNode>();
  block->id = fresh_block_id();
  block->name = name;
  VarMap fresh;
  std::vector<Var> loops;
  Exprs values;
  for (const Iter& i : iters) {
    loops.push_back(make_var(i.var->name, i.var->dtype));
    values.push_back(loops.back());
    Var v = make_var("v_" + i.var->name, i.var->dtype);
    fresh[i.var.get()] = v;
    block->iters.push_back(
        {v, {make_int(0), make_int(i.extent)}, i.reduce ? IterKind::reduce : IterKind::spatial});
  }
  block->body = substitute(body, fresh);
  if (init) block->init = substitute(init, fresh);
  AccessRegions regions = detect_block_regions(*block);
  block->reads = std::move(regions.reads);
  block->writes = std::move(regions.writes);
  // The predicate speaks of loops.
  VarMap outer;
  for (std::size_t i = 0; i < iters.size(); ++i) outer[iters[i].var.get()] = loops[i];
  Stmt out =
      block_realize(values, predicate ? substitute(predicate, outer) : make_bool(true), block);
  for (std::size_t i = iters.size(); i-- > 0;)
    out = make_for(loops[i], make_int(0), make_int(iters[i].extent), out);
  return out;
}

Expr combine(AluOp op, Expr a, Expr b) {
  switch (op) {
    case AluOp::add: return a + b;
    case AluOp::min: return ir::min(a, b);
    case AluOp::max: return ir::max(a, b);
    case AluOp::mul: return a * b;
    default: return call("shift_right", {a, b});
  }
}

DType wide(DType t) { return t == dtypes::int8 ? t : dtypes::int32; }

/// Writes one stage.
class Writer {
 public:
  Writer(const Task& s, const Config& c, Names& names, std::vector<Buffer>& temporaries)
      : c_(c), names_(names), temporaries_(temporaries), chain_(compile_chain(s)) {
    out_.task = s;
    out_.laid = lay_out(s, c);
    for (std::size_t i = 0; i < s.chain.size(); ++i) {
      if (!s.chain[i].store) continue;
      for (const PackedDim& p : laid().stores[i].dims) {
        if (outer(p.axis) > 1) acc_axes_.push_back(p.axis);
      }
      break;
    }
    axis_.assign(s.axes.size(), make_int(0));
    for (std::size_t a : acc_axes_) axis_iter(a);
    lane_[0] = make_var("b"), lane_[1] = make_var("m");
    iters_.push_back({lane_[0], c.batch(), false});
    iters_.push_back({lane_[1], c.block_out(), false});
    for (std::size_t a : acc_axes_) at_.push_back(axis_[a]);
    at_.push_back(lane_[0]), at_.push_back(lane_[1]);
  }

  /// Appends the stage: packing by the host, the machine's blocks, unpacking.
  PackedStage run(std::vector<Stmt>& body) {
    buffers_.resize(static_cast<std::size_t>(chain_.buffers));
    pending_.resize(buffers_.size());
    if (task().kind != Task::Kind::elementwise) sum();
    for (const ChainStep& s : chain_.steps) step(s);
    body.insert(body.end(), before_.begin(), before_.end());
    body.insert(body.end(), body_.begin(), body_.end());
    body_.clear();
    for (std::size_t i = 0; i < task().chain.size(); ++i) unpack(i);
    body.insert(body.end(), body_.begin(), body_.end());
    return std::move(out_);
  }

 private:
  const Task& task() const { return out_.task; }
  const StageLayout& laid() const { return out_.laid; }

  /// Whole elements along an axis.
  std::int64_t outer(std::size_t a) const { return outer_extent(task(), laid().lanes, c_, a); }

  void axis_iter(std::size_t a) {
    const Axis& axis = task().axes[a];
    std::string name = axis.var->name;
    if (name.starts_with("v_")) name = name.substr(2);
    Var v = make_var(name);
    axis_[a] = v;
    out_.loops.push_back(a);
    iters_.push_back({v, outer(a), axis.reduce});
  }

  Buffer temporary(const std::string& name, DType type, Exprs shape) {
    Buffer b = make_buffer(names_.buffer(name), type, std::move(shape));
    temporaries_.push_back(b);
    return b;
  }

  // ---- indices

  /// The array's index at a place of the packed form.
  Exprs array_index(const Operand& o, const Layout& l, const Exprs& dims,
                    const std::array<Var, 2>& lanes) const {
    std::vector<Expr> axis(task().axes.size());
    Exprs out(o.index.size());
    for (std::size_t i = 0; i < l.dims.size(); ++i) {
      const PackedDim& p = l.dims[i];
      if (p.window) {
        out[p.dim] = (p.step > 1 ? dims[i] * p.step : dims[i]) + shift(o, l, p);
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
        std::int64_t c = o.index[d].coeff(task().axes[a].var.get());
        if (c != 0 && axis[a]) e = e + (c == 1 ? axis[a] : axis[a] * c);
      }
      out[d] = e;
    }
    return out;
  }

  /// What a window's index in the packed form leaves out: all before the first place read, also
  /// where LOAD pads.
  std::int64_t shift(const Operand& o, const Layout& l, const PackedDim& p) const {
    return l.guard ? range_of(o.index[p.dim], task().axes).first : p.shift;
  }
  std::int64_t extent(const Operand& o, const Layout& l, const PackedDim& p) const {
    if (!p.window || (!l.guard && p.step == 1)) return p.extent;
    auto [low, high] = range_of(o.index[p.dim], task().axes);
    return (high - low) / p.step + 1;
  }

  /// Where the packed form holds data: lanes inside their axes, windows inside the array. Null:
  /// everywhere.
  Expr inside_array(const Operand& o, const Layout& l, const Exprs& dims,
                    const std::array<Var, 2>& lanes) const {
    Expr out;
    for (std::size_t k = 0; k < 2; ++k) {
      if (l.lanes[k] == 1 || l.replicate[k]) continue;
      if (l.lane_axis[k] < 0) {
        out = both(out, lt(lanes[k], make_int(1)));
        continue;
      }
      std::int64_t n = task().axes[static_cast<std::size_t>(l.lane_axis[k])].extent;
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
      Expr v = (p.step > 1 ? dims[i] * p.step : dims[i]) + shift(o, l, p);
      auto [low, high] = range_of(o.index[p.dim], task().axes);
      if (low < b.low) out = both(out, ge(v, make_int(b.low)));
      if (high >= b.high) out = both(out, lt(v, make_int(b.high)));
    }
    return out;
  }

  /// Iterators over the packed form of an array.
  struct Form {
    std::vector<Iter> iters;
    Exprs dims, shape;
    std::array<Var, 2> lanes;
    Exprs place() const {
      Exprs out = dims;
      out.push_back(lanes[0]), out.push_back(lanes[1]);
      return out;
    }
  };

  Form form_of(const Operand& o, const Layout& l) const {
    Form f;
    for (std::size_t i = 0; i < l.dims.size(); ++i) {
      Var v = make_var(cat("p", i));
      std::int64_t n = extent(o, l, l.dims[i]);
      f.iters.push_back({v, n, false});
      f.dims.push_back(v);
      f.shape.push_back(make_int(n));
    }
    for (std::size_t k = 0; k < 2; ++k) {
      f.lanes[k] = make_var(k ? "l1" : "l0");
      f.iters.push_back({f.lanes[k], l.lanes[k], false});
      f.shape.push_back(make_int(l.lanes[k]));
    }
    return f;
  }

  /// The place that the stage's axes read in the packed form.
  Exprs place(const Operand& o, const Layout& l, const Expr& lane0, const Expr& lane1) const {
    Exprs out;
    for (const PackedDim& p : l.dims) {
      if (!p.window) {
        out.push_back(axis_[p.axis]);
        continue;
      }
      const Linear& x = o.index[p.dim];
      Expr e = make_int((x.base - shift(o, l, p)) / p.step);
      for (std::size_t a = 0; a < task().axes.size(); ++a) {
        std::int64_t c = p.coeff(x.coeff(task().axes[a].var.get()));
        if (c != 0) e = e + (c == 1 ? axis_[a] : axis_[a] * c);
      }
      out.push_back(e);
    }
    out.push_back(lane0), out.push_back(lane1);
    return out;
  }

  // ---- arrays

  /// The array in packed form, as blocks before the stage's own.
  Buffer input(const Operand& o, const Layout& l, const char* scope, bool operand) {
    // The hardware loads no bytes into the accumulator: the host widens what goes there.
    const DType own = o.buffer->dtype, held = operand ? dtypes::int32 : wide(own);
    const DType chip = operand ? dtypes::int32 : dtypes::int8;
    PackedInput in;
    in.scope = scope, in.operand = operand, in.index = o;
    Buffer array = o.buffer;
    const bool packs = !l.identity || !(own == held);
    if (packs) {
      Form f = form_of(o, l);
      array = temporary(o.buffer->name + "_packed", held, f.shape);
      Expr value = cast(held, load(o.buffer, array_index(o, l, f.dims, f.lanes)));
      if (Expr guard = inside_array(o, l, f.dims, f.lanes))
        value = if_then_else(guard, value, make_zero(held));
      before_.push_back(leaf(names_.block(array->name), f.iters, store(array, value, f.place())));
    }
    Form f = form_of(o, l);
    Exprs from = packs ? f.place() : array_index(o, l, f.dims, f.lanes);
    bool same = array->dtype == chip && (packs || !l.guard) && from.size() == f.iters.size() &&
                from.size() == array->ndim();
    for (std::size_t i = 0; same && i < from.size(); ++i) {
      std::int64_t n = 0;
      same = from[i].get() == f.iters[i].var.get() ||
             (is_const_int_value(from[i], 0) && is_const_int(array->shape[i], &n) && n == 1);
    }
    if (!same) {
      Buffer view = temporary(o.buffer->name + "_elements", chip, f.shape);
      Expr value = cast(chip, load(array, from));
      if (!packs && l.guard) {
        if (Expr guard = inside_array(o, l, f.dims, f.lanes))
          value = if_then_else(guard, value, make_zero(chip));
      }
      in.view = names_.block(view->name);
      before_.push_back(leaf(in.view, f.iters, store(view, value, f.place())));
      array = view;
    }
    in.array = array->name;
    out_.inputs.push_back(std::move(in));
    return array;
  }

  void read_by(const Buffer& array, const std::string& block) {
    for (PackedInput& in : out_.inputs) {
      if (in.array == array->name && in.consumer.empty()) in.consumer = block;
    }
  }

  /// int32 [...acc axes...][BATCH][BLOCK_OUT].
  Buffer accumulator(const std::string& name) {
    Exprs shape;
    for (std::size_t a : acc_axes_) shape.push_back(make_int(outer(a)));
    shape.push_back(make_int(c_.batch()));
    shape.push_back(make_int(c_.block_out()));
    return temporary(name, dtypes::int32, shape);
  }

  // ---- the sum

  void sum() {
    const bool product = task().kind == Task::Kind::product;
    const Operand& x = laid().lanes.swapped ? task().w : task().x;
    const Operand& w = laid().lanes.swapped ? task().x : task().w;
    std::vector<Iter> spatial = iters_;
    const std::size_t first = iters_.size();
    for (std::size_t a = 0; a < task().axes.size(); ++a) {
      const bool last = a + 1 == task().axes.size() && !product && iters_.size() == first;
      if (task().axes[a].reduce && (outer(a) > 1 || last)) axis_iter(a);
    }
    std::vector<Iter> all = iters_;
    iters_.resize(first);
    Buffer acc = accumulator(task().name + "_sum");
    Expr old = load(acc, at_), next;
    std::string name = names_.block(task().name);
    if (product) {
      Var k = make_var("k_lane");
      all.push_back({k, c_.block_in(), true});
      Buffer a = input(x, *laid().x, "vta.inp", false), b = input(w, *laid().w, "vta.wgt", false);
      next = old + cast(dtypes::int32, load(a, place(x, *laid().x, lane_[0], k))) *
                       cast(dtypes::int32, load(b, place(w, *laid().w, lane_[1], k)));
      read_by(a, name), read_by(b, name);
    } else {
      Buffer a = input(x, *laid().x, "vta.acc", true);
      out_.inputs.back().operand = false;
      next = combine(task().reducer, old, load(a, place(x, *laid().x, lane_[0], lane_[1])));
      read_by(a, name);
    }
    body_.push_back(leaf(name, all, store(acc, next, at_),
                         store(acc, make_int(task().start, dtypes::int32), at_)));
    out_.anchor = name;
    buffers_[0] = acc;
    derived_.insert(acc.get());
  }

  // ---- the chain

  Buffer operand(std::size_t i) {
    if (operands_.size() <= i) operands_.resize(task().operands.size());
    if (!operands_[i])
      operands_[i] = input(task().operands[i], laid().operands[i], "vta.acc", true);
    return operands_[i];
  }

  Expr value_of(int b) const {
    auto i = static_cast<std::size_t>(b);
    return pending_[i] ? pending_[i] : load(buffers_[i], at_);
  }

  /// A buffer of its own for what is pending.
  Buffer settle(int b) {
    auto i = static_cast<std::size_t>(b);
    if (!pending_[i]) return buffers_[i];
    Buffer acc = accumulator(task().name + "_value");
    std::string name = names_.block(acc->name);
    std::unordered_set<const BufferNode*> used = used_buffers(evaluate(pending_[i]));
    for (const Buffer& o : operands_) {
      if (o && used.count(o.get())) read_by(o, name);
    }
    bool free = !out_.anchor.empty();
    for (const BufferNode* read : used) free = free && !derived_.count(read);
    (free ? before_ : body_).push_back(leaf(name, iters_, store(acc, pending_[i], at_)));
    if (!free) derived_.insert(acc.get());
    if (out_.anchor.empty()) {
      out_.anchor = name;
    } else {
      out_.steps.push_back({name, true, free});
    }
    buffers_[i] = acc, pending_[i] = nullptr;
    return acc;
  }

  Expr second(const ChainStep& s) {
    if (!s.from_operand) {
      settle(s.from);
      return value_of(s.from);
    }
    auto k = static_cast<std::size_t>(s.from);
    return load(operand(k), place(task().operands[k], laid().operands[k], lane_[0], lane_[1]));
  }

  void step(const ChainStep& s) {
    auto i = static_cast<std::size_t>(s.into);
    auto number = [&] { return make_int(s.number, dtypes::int32); };
    switch (s.kind) {
      case ChainStep::Kind::set:
        pending_[i] = number();
        settle(s.into);
        return;
      case ChainStep::Kind::copy: {
        Expr value = second(s);
        pending_[i] = value;
        return;
      }
      case ChainStep::Kind::imm:
        // Sums and products of one statement would be rearranged; the rest stays a chain.
        if (s.op == AluOp::add || s.op == AluOp::mul) settle(s.into);
        pending_[i] =
            s.op == AluOp::shr && s.number < 0
                ? call("shift_left", {value_of(s.into), make_int(-s.number, dtypes::int32)})
                : combine(s.op, value_of(s.into), number());
        return;
      case ChainStep::Kind::acc: {
        Expr b = second(s);
        settle(s.into);
        pending_[i] = combine(s.op, value_of(s.into), b);
        return;
      }
      case ChainStep::Kind::store: return store_step(s);
    }
  }

  void store_step(const ChainStep& s) {
    Buffer from = settle(s.into);
    const Segment& segment = task().chain[s.segment];
    const Layout& l = laid().stores[s.segment];
    Operand o = target_of(segment);
    const int bytes = o.buffer->dtype.bytes();
    std::vector<Iter> iters;
    Exprs dims;
    VarMap fresh;
    for (const PackedDim& p : l.dims) {
      Var v = make_var(cat("p", dims.size()));
      iters.push_back({v, p.extent, false});
      dims.push_back(v);
      if (const auto* var = as<VarNode>(axis_[p.axis])) fresh[var] = v;
    }
    std::array<Var, 2> lanes{make_var("l0"), make_var("l1")};
    Exprs place = dims;
    for (std::size_t k = 0; k < 2; ++k) {
      iters.push_back({lanes[k], l.lanes[k], false});
      place.push_back(lanes[k]);
      fresh[lane_[k].get()] = lanes[k];
    }
    Buffer to = o.buffer;
    if (!l.identity || bytes > 1) {
      Exprs shape;
      for (const Iter& i : iters) shape.push_back(make_int(i.extent));
      to = temporary(o.buffer->name + "_packed", bytes > 1 ? dtypes::int8 : o.buffer->dtype, shape);
      stored_[s.segment].push_back(to);
    } else {
      place = array_index(o, l, dims, lanes);
    }
    Exprs read;
    for (const Expr& e : at_) read.push_back(substitute(e, fresh));
    std::string name = names_.block(to->name + (to.get() == o.buffer.get() ? "" : "_store"));
    body_.push_back(leaf(name, iters, store(to, cast(to->dtype, load(from, read)), place)));
    out_.steps.push_back({name, false});
  }

  void unpack(std::size_t i) {
    auto found = stored_.find(i);
    if (found == stored_.end()) return;
    const Layout& l = laid().stores[i];
    Operand o = target_of(task().chain[i]);
    Form f = form_of(o, l);
    Expr value;
    const std::vector<Buffer>& parts = found->second;
    for (std::size_t byte = 0; byte < parts.size(); ++byte) {
      Expr part = load(parts[byte], f.place());
      if (parts.size() == 1) {
        value = part;
        break;
      }
      part = cast(dtypes::int32, part);
      if (byte + 1 < parts.size()) part = call("bitwise_and", {part, make_int(255, dtypes::int32)});
      if (byte)
        part = call("shift_left",
                    {part, make_int(8 * static_cast<std::int64_t>(byte), dtypes::int32)});
      value = value ? call("bitwise_or", {value, part}) : part;
    }
    Stmt s = store(o.buffer, cast(o.buffer->dtype, value), array_index(o, l, f.dims, f.lanes));
    body_.push_back(leaf(names_.block(o.buffer->name), f.iters, s, nullptr,
                         inside_array(o, l, f.dims, f.lanes)));
  }

  const Config& c_;
  Names& names_;
  std::vector<Buffer>& temporaries_;
  std::vector<Stmt> before_, body_;
  PackedStage out_;
  ChainProgram chain_;
  std::vector<std::size_t> acc_axes_;
  std::vector<Iter> iters_;  // of a block over the accumulator
  std::vector<Expr> axis_;   // per axis: its iterator, or 0
  std::array<Var, 2> lane_;
  Exprs at_;  // the accumulator's index
  std::vector<Buffer> buffers_, operands_;
  std::unordered_set<const BufferNode*> derived_;  // hold what comes from the anchor
  std::vector<Expr> pending_;                      // per buffer of the chain: what it becomes next
  std::map<std::size_t, std::vector<Buffer>> stored_;
};

/// A copy of global memory, as a block.
Stmt copy_block(const Task& s, Names& names) {
  std::vector<Iter> iters;
  Stmt at = s.copy;
  while (const auto* loop = as<ForNode>(at)) {
    std::int64_t n = 1;
    is_const_int(loop->extent, &n);
    iters.push_back({loop->var, n, false});
    at = loop->body;
  }
  return leaf(names.block(s.name), iters, at);
}

}  // namespace

Packed pack(const PrimFunc& f, const Config& config) {
  StagePlan plan = plan_stages(f);
  Names names;
  for (const Param& p : f->params) names.buffer(p.buffer ? p.buffer->name : p.var->name);
  for (const Buffer& b : plan.temporaries) names.buffer(b->name);
  Packed out;
  std::vector<Stmt> body;
  std::vector<Buffer> temporaries = plan.temporaries;
  for (const Task& s : plan.stages) {
    if (s.kind == Task::Kind::copy) {
      body.push_back(copy_block(s, names));
    } else {
      out.stages.push_back(Writer(s, config, names, temporaries).run(body));
    }
  }
  auto func = edit(f);
  func->body = root_block(seq(std::move(body)), std::move(temporaries));
  out.func = func;
  return out;
}

}  // namespace weft::vta
