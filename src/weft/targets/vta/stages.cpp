// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/stages.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/stages/update.h"
#include "weft/stages/visits.h"
#include "weft/targets/vta/nest.h"
#include "weft/targets/vta/value_of.h"

namespace weft::vta {

using namespace ir;

bool Operand::operator==(const Operand& other) const {
  if (buffer.get() != other.buffer.get() || index != other.index ||
      bounds.size() != other.bounds.size())
    return false;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i].low != other.bounds[i].low || bounds[i].high != other.bounds[i].high)
      return false;
  }
  return true;
}

namespace {

/// One block: out[index] (op)= value over all points of its iterators.
struct View : stages::Update {
  Block block;
};

[[noreturn]] void refuse(const char* slug, const View& v, std::string message,
                         std::string note = {}) {
  Error error(ErrorKind::lower, cat("vta.accepts.", slug),
              cat("block \"", v.block->name, "\" ", message));
  error.at("statement", print(Stmt(v.store)));
  if (!note.empty()) error.note(std::move(note));
  throw error;
}

std::int64_t extent_of(const Expr& e) {
  std::int64_t n = -1;
  is_const_int(e, &n);
  return n;
}

class Planner {
 public:
  explicit Planner(const PrimFunc& f) : f_(f) {
    for (const Param& p : f->params) {
      if (p.buffer) params_.insert(p.buffer.get());
    }
  }

  StagePlan run() {
    collect();
    for (std::size_t i = 0; i < views_.size(); ++i) {
      if (!done_.count(i)) start(i);
    }
    while (drop_unread_store()) {
    }
    return std::move(plan_);
  }

 private:
  /// Readers look through copies, so that a chain may store what no stage reads. Removes one such
  /// store, and a stage that then stores nothing.
  bool drop_unread_store() {
    std::unordered_set<const BufferNode*> read = params_;
    for (const Task& s : plan_.stages) {
      for (const Operand* o : operands_of(s)) read.insert(o->buffer.get());
      if (s.kind != Task::Kind::copy) continue;
      for_each_expr(s.copy, [&](const Expr& e) {
        if (const auto* l = as<LoadNode>(e)) read.insert(l->buffer.get());
      });
    }
    auto found = std::find_if(plan_.temporaries.begin(), plan_.temporaries.end(),
                              [&](const Buffer& b) { return !read.count(b.get()); });
    if (found == plan_.temporaries.end()) return false;
    const BufferNode* unread = found->get();
    for (Task& s : plan_.stages) {
      for (std::size_t i = 0; i < s.chain.size(); ++i) {
        if (s.chain[i].store.get() != unread) continue;
        if (i + 1 < s.chain.size())
          s.chain[i + 1].value = replace_self(s.chain[i + 1].value, s.chain[i].value);
        s.chain.erase(s.chain.begin() + static_cast<std::ptrdiff_t>(i));
        keep_used_operands(s);
        break;
      }
    }
    std::erase_if(plan_.stages, [&](const Task& s) {
      return s.kind == Task::Kind::copy ? stores_to(s.copy, unread) : s.chain.empty();
    });
    plan_.temporaries.erase(found);
    return true;
  }

  static void keep_used_operands(Task& s) {
    std::vector<Operand> kept;
    std::map<std::size_t, std::size_t> place;
    for (Segment& segment : s.chain) {
      segment.value = renumber(segment.value, [&](std::size_t old) {
        auto [at, fresh] = place.try_emplace(old, kept.size());
        if (fresh) kept.push_back(s.operands[old]);
        return at->second;
      });
    }
    s.operands = std::move(kept);
  }

  static ValuePtr renumber(const ValuePtr& v,
                           const std::function<std::size_t(std::size_t)>& number) {
    if (v->kind != Value::Kind::operand && v->kind != Value::Kind::op) return v;
    auto out = std::make_shared<Value>(*v);
    if (v->kind == Value::Kind::operand) out->operand = number(v->operand);
    else out->a = renumber(v->a, number), out->b = renumber(v->b, number);
    return out;
  }

  static bool stores_to(const Stmt& copy, const BufferNode* b) {
    bool found = false;
    for_each_stmt(copy, [&](const Stmt& s) {
      const auto* t = as<StoreNode>(s);
      found |= t && t->buffer.get() == b;
    });
    return found;
  }

  // ---- reading blocks

  void collect() {
    const auto* root = as<BlockRealizeNode>(f_->body);
    std::vector<Buffer> temporaries;
    for (const stages::Leaf& leaf :
         stages::collect_leaves(root ? root->block->body : f_->body, &temporaries))
      block(leaf);
    drop_unread();
    if (views_.empty())
      throw Error(ErrorKind::lower, "vta.accepts.block", cat("\"", f_->name, "\" has no blocks"));
    for (std::size_t i = 0; i < views_.size(); ++i) {
      const BufferNode* out = views_[i].store->buffer.get();
      if (!writer_.emplace(out, i).second)
        refuse("block", views_[i], cat("writes \"", out->name, "\" once more"),
               "a default schedule needs one block for each buffer");
    }
    for (const View& v : views_) {
      for_each_expr(v.store->value, [&](const Expr& e) {
        const auto* l = as<LoadNode>(e);
        if (l && l->buffer.get() != v.store->buffer.get()) readers_[l->buffer.get()].insert(&v);
      });
    }
  }

  /// Blocks whose results neither the caller nor another block reads are not computed.
  void drop_unread() {
    while (true) {
      std::unordered_set<const BufferNode*> read = params_;
      for (const View& v : views_) {
        for_each_expr(v.store->value, [&](const Expr& e) {
          const auto* l = as<LoadNode>(e);
          if (l && l->buffer.get() != v.store->buffer.get()) read.insert(l->buffer.get());
        });
      }
      if (!std::erase_if(views_, [&](const View& v) { return !read.count(v.store->buffer.get()); }))
        return;
    }
  }

  void block(const stages::Leaf& leaf) {
    View v{stages::read_update(leaf.block), leaf.block};
    for (const IterVar& i : v.block->iters) {
      if (i.kind != IterKind::reduce && i.kind != IterKind::spatial)
        refuse("block", v,
               cat("has the iterator \"", i.var->name, "\", neither spatial nor reduced"));
      if (extent_of(i.dom.extent) < 0 || !is_const_int_value(i.dom.min, 0))
        refuse("block", v, cat("has the iterator \"", i.var->name, "\" without a constant range"));
    }
    const stages::Visits visits = stages::visits_of(leaf, {});
    Expr condition = visits.never                 ? make_bool(false)
                     : !visits.conditions.empty() ? visits.conditions[0]
                                                  : v.condition;
    if (condition)
      refuse("block", v,
             cat("leaves elements out: its loops, bindings and conditions reach only points where ",
                 print(condition)),
             "every element of a result is computed here; put the condition into the value, as "
             "in if_then_else(condition, value, 0)");
    std::unordered_set<const VarNode*> seen;
    for (const Expr& e : v.store->indices) {
      const auto* var = as<VarNode>(e);
      bool spatial = is_const_int(e);
      for (const IterVar& i : v.block->iters)
        spatial |= i.var.get() == var && i.kind == IterKind::spatial;
      if (!spatial || (var && !seen.insert(var).second))
        refuse("block", v, cat("writes at the index ", print(e)),
               "each index of the result must be an iterator of its own");
    }
    views_.push_back(v);
  }

  // ---- copies

  /// out[...] = in[...], or constant where a condition on the iterators fails. Nothing depends on
  /// values.
  bool is_copy(const View& v) const {
    if (v.reduces || v.store->buffer->dtype.is_float()) return false;
    Expr e = v.store->value;
    while (true) {
      const auto* call = as<CallNode>(e);
      const auto* choose = as<SelectNode>(e);
      if (call && call->op == "if_then_else" && is_const_int(call->args[2])) {
        e = call->args[1];
      } else if (choose && is_const_int(choose->b)) {
        e = choose->a;
      } else {
        break;
      }
    }
    const auto* l = as<LoadNode>(e);
    return l && l->buffer->dtype == v.store->buffer->dtype && loads_of(v.store->value) == 1;
  }

  static int loads_of(const Expr& e) {
    int n = 0;
    for_each_expr(e, [&](const Expr& x) { n += x->kind == ExprKind::load; });
    return n;
  }

  /// The value of `copy` at `indices`, with its 0 padding kept as a condition.
  Expr value_at(const View& copy, const Exprs& indices) const {
    VarMap map;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      if (const auto* var = as<VarNode>(copy.store->indices[d])) map[var] = indices[d];
    }
    for (const IterVar& i : copy.block->iters) {
      if (!map.count(i.var.get())) map[i.var.get()] = make_int(0, i.var->dtype);
    }
    return substitute(copy.store->value, map);
  }

  const View* copy_behind(const BufferNode* b) const {
    auto found = writer_.find(b);
    if (found == writer_.end() || params_.count(b)) return nullptr;
    return is_copy(views_[found->second]) ? &views_[found->second] : nullptr;
  }

  /// A read of global memory as an operand over `axes`, through as many copies as stay affine.
  bool operand(Expr e, const std::vector<Axis>& axes, Operand& out, SplitWish* constraints,
               bool may_pad) {
    std::vector<Expr> conditions;
    auto peel = [&] {
      while (true) {
        const auto* call = as<CallNode>(e);
        const auto* choose = as<SelectNode>(e);
        Expr condition, inner, other;
        if (call && call->op == "if_then_else") {
          condition = call->args[0], inner = call->args[1], other = call->args[2];
        } else if (choose) {
          condition = choose->condition, inner = choose->a, other = choose->b;
        } else {
          break;
        }
        if (!is_const_int_value(other, 0)) return false;
        conditions.push_back(condition), e = inner;
      }
      return as<LoadNode>(e) != nullptr;
    };
    if (!peel()) return false;
    auto analyse = [&](Operand& o) {
      const auto* l = as<LoadNode>(e);
      o = {};
      o.buffer = l->buffer;
      for (std::size_t d = 0; d < l->indices.size(); ++d) {
        std::optional<Linear> x = linear(l->indices[d], axes, constraints);
        if (!x) return false;
        o.index.push_back(*x);
        o.bounds.push_back({0, extent_of(l->buffer->shape[d])});
      }
      for (const Expr& c : conditions) {
        if (!bounds_from(c, o.index, axes, o.bounds)) return false;
      }
      for (std::size_t d = 0; d < o.index.size(); ++d) {
        auto [low, high] = range_of(o.index[d], axes);
        o.bounded |= low < o.bounds[d].low || high >= o.bounds[d].high;
      }
      return may_pad || !o.bounded;
    };
    Operand best;
    bool have = analyse(best);
    if (!have && constraints && constraints->var) return false;
    while (const View* copy = copy_behind(as<LoadNode>(e)->buffer.get())) {
      e = value_at(*copy, as<LoadNode>(e)->indices);
      if (!peel()) break;
      Operand through;
      SplitWish other;
      SplitWish* before = constraints;
      constraints = &other;
      bool good = analyse(through);
      constraints = before;
      if (!good) break;
      best = std::move(through), have = true;
    }
    if (!have) return false;
    need(best.buffer.get());
    out = std::move(best);
    return true;
  }

  /// A copy whose result some stage reads as it is must be done.
  void need(const BufferNode* b) {
    if (copy_behind(b)) needed_.insert(b);
  }

  void emit_copy(std::size_t i) {
    const View& v = views_[i];
    if (!done_.insert(i).second) return;
    for_each_expr(v.store->value, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (l) require(l->buffer.get(), v);
    });
    Task s;
    s.kind = Task::Kind::copy;
    s.name = v.block->name;
    Stmt body = v.store;
    VarMap fresh;
    std::vector<Var> vars;
    for (const IterVar& it : v.block->iters) {
      vars.push_back(make_var(it.var->name, it.var->dtype));
      fresh[it.var.get()] = vars.back();
    }
    body = substitute(body, fresh);
    for (std::size_t k = vars.size(); k-- > 0;)
      body = make_for(vars[k], make_int(0, vars[k]->dtype), v.block->iters[k].dom.extent, body);
    s.copy = body;
    remember(v.store->buffer);
    plan_.stages.push_back(std::move(s));
  }

  /// The buffer's values must stand in global memory before the next stage.
  void require(const BufferNode* b, const View& reader) {
    auto found = writer_.find(b);
    if (found == writer_.end()) return;
    if (is_copy(views_[found->second])) return emit_copy(found->second);
    if (!stored_.count(b))
      refuse("order", reader, cat("reads \"", b->name, "\" before it is complete"));
  }

  void remember(const Buffer& b) {
    stored_.insert(b.get());
    if (!params_.count(b.get())) plan_.temporaries.push_back(b);
  }

  // ---- stages

  void start(std::size_t i) {
    const View& v = views_[i];
    if (is_copy(v)) {
      // Folded into its readers; if it is a result itself, it is done now.
      if (params_.count(v.store->buffer.get())) emit_copy(i);
      return;
    }
    done_.insert(i);
    Task s;
    s.name = v.block->name;
    for (bool reduce : {false, true}) {
      for (const IterVar& it : v.block->iters) {
        if ((it.kind == IterKind::reduce) == reduce)
          s.axes.push_back({it.var, extent_of(it.dom.extent), reduce});
      }
    }
    VarMap split;  // iterators that became two
    SplitWish constraints;
    needed_.clear();
    for (int tries = 0; tries < 8; ++tries) {
      constraints = {};
      needed_.clear();
      Task attempt = s;
      if (head(v, split, attempt, constraints)) {
        s = std::move(attempt);
        break;
      }
      if (!constraints.var || !constraints.exact || tries == 7) why(v, split, s);
      for (std::size_t a = 0; a < s.axes.size(); ++a) {
        if (s.axes[a].var.get() != constraints.var) continue;
        Axis old = s.axes[a];
        Axis outer{make_var(old.var->name + "_o", old.var->dtype), old.extent / constraints.factor,
                   old.reduce},
            inner{make_var(old.var->name + "_i", old.var->dtype), constraints.factor, old.reduce};
        Expr both = outer.var * constraints.factor + inner.var;
        for (auto& [var, e] : split) e = substitute(e, VarMap{{old.var.get(), both}});
        split[old.var.get()] = both;
        s.axes[a] = outer;
        s.axes.insert(s.axes.begin() + static_cast<std::ptrdiff_t>(a) + 1, inner);
        break;
      }
    }
    grow(i, split, s);
    std::unordered_set<const BufferNode*> needed = needed_;
    for (const Operand* o : operands_of(s)) require(o->buffer.get(), v);
    (void)needed;
    for (const Segment& segment : s.chain) {
      if (segment.store) remember(segment.store);
    }
    plan_.stages.push_back(std::move(s));
  }

  static std::vector<const Operand*> operands_of(const Task& s) {
    std::vector<const Operand*> out;
    if (s.kind == Task::Kind::product || s.kind == Task::Kind::reduction) out.push_back(&s.x);
    if (s.kind == Task::Kind::product) out.push_back(&s.w);
    for (const Operand& o : s.operands) out.push_back(&o);
    return out;
  }

  /// The first block of a stage: its sum of products or reduction.
  bool head(const View& v, const VarMap& split, Task& s, SplitWish& constraints) {
    if (!v.reduces) {
      s.kind = Task::Kind::elementwise;
      // Reading it as a value may need splits too: tried here, kept by grow().
      return values(v, split, s, nullptr, nullptr, &constraints) != nullptr;
    }
    const BufferNode* out = v.store->buffer.get();
    switch (v.combine) {
      case stages::Combine::add: s.reducer = AluOp::add; break;
      case stages::Combine::min: s.reducer = AluOp::min; break;
      case stages::Combine::max: s.reducer = AluOp::max; break;
      case stages::Combine::mul:
        refuse("reduction", v, "reduces by an operation that ALU has not", "legal: add, min, max");
      case stages::Combine::none:
        refuse("reduction", v, "is no sum, minimum or maximum",
               "the machine sums int8 products (GEMM) and reduces by add, min and max (ALU)");
    }
    if (!v.init || !is_const_int(v.init->value, &s.start))
      refuse("reduction", v, "begins at a value that is no constant");
    Expr term = substitute(v.value, split);
    term = strip_widening(term);
    const auto* mul = as<BinaryNode>(term);
    bool product = s.reducer == AluOp::add && mul && mul->kind == ExprKind::mul;
    if (out->dtype.is_float() || out->dtype.bits > 32 || (product && out->dtype.bits != 32))
      refuse("dtype", v, cat("accumulates in ", to_string(out->dtype)),
             "sums of products are int32 on this machine");
    auto factor = [&](Expr e, Operand& o, const char* what) {
      e = strip_widening(e);
      if (!operand(e, s.axes, o, &constraints, true)) {
        if (constraints.var) return false;
        refuse(
            "operand", v, cat("multiplies ", print(e), ", which is no read with affine indices"),
            "each factor is an array of int8, read at sums of iterators times constants; outside "
            "its bounds it may be 0");
      }
      if (!(o.buffer->dtype == dtypes::int8))
        refuse("dtype", v,
               cat("multiplies \"", o.buffer->name, "\" of ", to_string(o.buffer->dtype), " (",
                   what, ")"),
               "GEMM multiplies int8 by int8");
      return true;
    };
    if (product) {
      s.kind = Task::Kind::product;
      return factor(mul->a, s.x, "left") && factor(mul->b, s.w, "right");
    }
    s.kind = Task::Kind::reduction;
    if (!operand(term, s.axes, s.x, &constraints, false)) {
      if (constraints.var) return false;
      refuse("operand", v, cat("reduces ", print(term), ", which is no read with affine indices"),
             "a reduction other than a sum of products takes an array as it is");
    }
    if (s.x.buffer->dtype.is_float() || s.x.buffer->dtype.bits > 32)
      refuse("dtype", v,
             cat("reduces \"", s.x.buffer->name, "\" of ", to_string(s.x.buffer->dtype)),
             "ALU computes in int32");
    return true;
  }

  [[noreturn]] void why(const View& v, const VarMap&, const Task&) {
    refuse("index", v, "reads at an index that is not affine in its iterators",
           "sums of iterators times constants; divisions must divide the extents");
  }

  std::vector<Linear> linear_all(const Exprs& es, const VarMap& split, const Task& s) const {
    std::vector<Linear> out;
    for (const Expr& e : es) {
      std::optional<Linear> x = linear(substitute(e, split), s.axes, nullptr);
      WEFT_CHECK(x, "an index of a result is an iterator");
      out.push_back(*x);
    }
    return out;
  }

  /// A block's value over the stage's axes; null when `constraints` names a split, or (quiet) when
  /// it cannot be.
  ValuePtr values(const View& v, const VarMap& map, Task& s, const BufferNode* self,
                  const Exprs* self_index, SplitWish* constraints) {
    ValueReader reader;
    reader.self = self;
    reader.self_index = self_index;
    reader.load = [&](const Expr& e) -> std::optional<std::size_t> {
      Operand o;
      if (!operand(e, s.axes, o, constraints, false)) return std::nullopt;
      for (std::size_t i = 0; i < s.operands.size(); ++i) {
        if (s.operands[i] == o) return i;
      }
      s.operands.push_back(std::move(o));
      return s.operands.size() - 1;
    };
    reader.dtype_of = [&](std::size_t i) { return s.operands[i].buffer->dtype; };
    ValuePtr out = reader.read(substitute(v.store->value, map));
    if (!out && !(constraints && constraints->var))
      refuse(reader.slug.c_str(), v, reader.message,
             reader.note.empty() ? "ALU does min, max, +, * and shifts of int32" : reader.note);
    return out;
  }

  /// Takes in the elementwise blocks that follow.
  void grow(std::size_t first, const VarMap& split, Task& s) {
    const View* tail = &views_[first];
    VarMap map = split;
    auto self = std::make_shared<Value>();
    ValuePtr value = self;
    if (s.kind == Task::Kind::elementwise) {
      s.operands.clear();
      value = values(*tail, map, s, nullptr, nullptr, nullptr);
    } else if (s.kind == Task::Kind::reduction && s.reducer != AluOp::add) {
      auto known = std::make_shared<Value>();
      DType t = s.x.buffer->dtype;
      if (t == dtypes::int8)
        known->low = std::min<std::int64_t>(-128, s.start),
        known->high = std::max<std::int64_t>(127, s.start);
      value = known;
    }
    Exprs at;  // where the tail's value stands, over the axes
    for (const Expr& e : tail->store->indices) at.push_back(substitute(e, map));
    while (true) {
      const BufferNode* out = tail->store->buffer.get();
      value = narrowed(value, tail->store->buffer->dtype);
      auto found = readers_.find(out);
      const View* next = nullptr;
      std::size_t next_index = 0;
      for (std::size_t i = 0; i < views_.size() && found != readers_.end(); ++i) {
        if (found->second.count(&views_[i]) && !done_.count(i)) {
          next = &views_[i], next_index = i;
          break;
        }
      }
      VarMap next_map;
      bool joins = next && follows(*next, out, at, next_map, s);
      bool alone = !params_.count(out) && found != readers_.end() && found->second.size() == 1;
      if (!joins || !alone) {
        Segment segment{value, tail->store->buffer, {}};
        for (const Expr& e : at) segment.index.push_back(*linear(e, s.axes, nullptr));
        s.chain.push_back(std::move(segment));
        if (!joins) return;
        auto again = std::make_shared<Value>();
        again->low = value->low, again->high = value->high;
        value = again;
      }
      done_.insert(next_index);
      Exprs inner;
      for (const Expr& e : at) inner.push_back(e);
      ValueReader reader;
      ValuePtr before = value;
      Task trial = s;
      ValuePtr after = values(*next, next_map, trial, out, &inner, nullptr);
      s = std::move(trial);
      value = replace_self(after, before);
      Exprs moved;
      for (const Expr& e : next->store->indices) moved.push_back(substitute(e, next_map));
      at = std::move(moved);
      tail = next;
    }
  }

  /// Whether `next` is elementwise over `out` as it stands at `at`; the map takes its iterators to
  /// the axes.
  bool follows(const View& next, const BufferNode* out, const Exprs& at, VarMap& map,
               const Task& s) {
    if (next.reduces) return false;
    if (next.store->buffer->dtype.is_float()) return false;
    bool good = true, any = false;
    for_each_expr(next.store->value, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (!l || !good) return;
      if (l->buffer.get() != out) {
        // Everything else must be there already.
        auto found = writer_.find(l->buffer.get());
        if (found != writer_.end() && !stored_.count(l->buffer.get()) &&
            !is_copy(views_[found->second]))
          good = false;
        if (found != writer_.end() && is_copy(views_[found->second]) &&
            leads_to(views_[found->second], out))
          good = false;
        return;
      }
      any = true;
      for (std::size_t d = 0; d < l->indices.size(); ++d) {
        const auto* var = as<VarNode>(l->indices[d]);
        if (!var) {
          good =
              good && is_const_int_value(l->indices[d], 0) && is_const_int_value(out->shape[d], 1);
          continue;
        }
        auto [place, fresh] = map.try_emplace(var, at[d]);
        good = good && (fresh || structural_equal(place->second, at[d]));
      }
    });
    if (!good || !any) return false;
    std::int64_t points = 1, mine = 1;
    for (const IterVar& i : next.block->iters) {
      points *= extent_of(i.dom.extent);
      if (!map.count(i.var.get())) {
        if (extent_of(i.dom.extent) != 1) return false;
        map[i.var.get()] = make_int(0, i.var->dtype);
      }
    }
    for (const Expr& e : out->shape) mine *= extent_of(e);
    (void)s;
    return points == mine;
  }

  bool leads_to(const View& copy, const BufferNode* b) const {
    bool found = false;
    for_each_expr(copy.store->value, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (!l) return;
      found = found || l->buffer.get() == b;
      if (const View* further = copy_behind(l->buffer.get()))
        found = found || leads_to(*further, b);
    });
    return found;
  }

  const PrimFunc& f_;
  std::vector<View> views_;
  std::unordered_set<const BufferNode*> params_, stored_, needed_;
  std::unordered_map<const BufferNode*, std::size_t> writer_;
  std::unordered_map<const BufferNode*, std::unordered_set<const View*>> readers_;
  std::unordered_set<std::size_t> done_;
  StagePlan plan_;
};

}  // namespace

StagePlan plan_stages(const PrimFunc& f) { return Planner(f).run(); }

}  // namespace weft::vta
