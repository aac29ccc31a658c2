// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/visit.h"

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/instantiate.h"

namespace weft::ir {

// ---- Visitor

void Visitor::visit(const Expr& e) {
  if (!e) return;
  switch (e->kind) {
    case ExprKind::var: visit_var(as<VarNode>(e)); break;
    case ExprKind::int_imm:
    case ExprKind::float_imm:
    case ExprKind::string_imm: break;
    case ExprKind::cast: visit(as<CastNode>(e)->value); break;
    case ExprKind::not_: visit(as<NotNode>(e)->a); break;
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      visit(s->condition), visit(s->a), visit(s->b);
      break;
    }
    case ExprKind::call: visit_call(as<CallNode>(e)); break;
    case ExprKind::load: visit_load(as<LoadNode>(e)); break;
    case ExprKind::ramp: visit(as<RampNode>(e)->base), visit(as<RampNode>(e)->stride); break;
    case ExprKind::broadcast: visit(as<BroadcastNode>(e)->value); break;
    case ExprKind::let: {
      const auto* l = as<LetNode>(e);
      visit(l->value), visit(l->body);
      break;
    }
    case ExprKind::reduce: {
      const auto* r = as<ReduceNode>(e);
      for (const IterVar& axis : r->axes) visit(axis.dom.min), visit(axis.dom.extent);
      for (const Expr& s : r->source) visit(s);
      visit(r->condition);
      break;
    }
    default: visit(as<BinaryNode>(e)->a), visit(as<BinaryNode>(e)->b);
  }
}

void Visitor::visit(const Stmt& s) {
  if (!s) return;
  switch (s->kind) {
    case StmtKind::store: visit_store(as<StoreNode>(s)); break;
    case StmtKind::seq:
      for (const Stmt& child : as<SeqNode>(s)->stmts) visit(child);
      break;
    case StmtKind::for_: visit_for(as<ForNode>(s)); break;
    case StmtKind::if_: visit_if(as<IfNode>(s)); break;
    case StmtKind::while_: visit(as<WhileNode>(s)->condition), visit(as<WhileNode>(s)->body); break;
    case StmtKind::let: visit(as<LetStmtNode>(s)->value), visit(as<LetStmtNode>(s)->body); break;
    case StmtKind::assert_: visit(as<AssertNode>(s)->condition); break;
    case StmtKind::evaluate: visit(as<EvaluateNode>(s)->value); break;
    case StmtKind::allocate: visit_allocate(as<AllocateNode>(s)); break;
    case StmtKind::block_realize: visit_block_realize(as<BlockRealizeNode>(s)); break;
    case StmtKind::launch: visit_launch(as<LaunchNode>(s)); break;
    case StmtKind::async: visit(as<AsyncNode>(s)->body); break;
    case StmtKind::wait: visit(as<WaitNode>(s)->outstanding); break;
    case StmtKind::collective: {
      const auto* c = as<CollectiveNode>(s);
      visit_region(c->dst), visit_region(c->src), visit(c->root);
      break;
    }
  }
}

void Visitor::visit_region(const BufferRegion& region) {
  for (const Range& r : region.region) visit(r.min), visit(r.extent);
}

void Visitor::visit_block(const Block& block) {
  for (const IterVar& iter : block->iters) visit(iter.dom.min), visit(iter.dom.extent);
  for (const BufferRegion& r : block->reads) visit_region(r);
  for (const BufferRegion& r : block->writes) visit_region(r);
  for (const MatchBuffer& m : block->match_buffers) visit_region(m.source);
  visit(block->init);
  visit(block->body);
}

void Visitor::visit_load(const LoadNode* e) {
  for (const Expr& i : e->indices) visit(i);
}
void Visitor::visit_call(const CallNode* e) {
  for (const Expr& a : e->args) visit(a);
}
void Visitor::visit_store(const StoreNode* s) {
  for (const Expr& i : s->indices) visit(i);
  visit(s->value);
}
void Visitor::visit_for(const ForNode* s) { visit(s->min), visit(s->extent), visit(s->body); }
void Visitor::visit_if(const IfNode* s) {
  visit(s->condition), visit(s->then_case), visit(s->else_case);
}
void Visitor::visit_allocate(const AllocateNode* s) {
  for (const Expr& e : s->buffer->shape) visit(e);
  visit(s->body);
}
void Visitor::visit_launch(const LaunchNode* s) {
  for (const LaunchAxis& axis : s->axes) visit(axis.extent);
  visit(s->body);
}
void Visitor::visit_block_realize(const BlockRealizeNode* s) {
  for (const Expr& v : s->iter_values) visit(v);
  visit(s->predicate);
  visit_block(s->block);
}

// ---- Rewriter

Exprs Rewriter::rewrite_all(const Exprs& es, bool* changed) {
  Exprs out;
  out.reserve(es.size());
  for (const Expr& e : es) {
    out.push_back(rewrite(e));
    if (!(out.back() == e)) *changed = true;
  }
  return out;
}

Expr Rewriter::rewrite(const Expr& e) {
  if (!e) return e;
  switch (e->kind) {
    case ExprKind::var: return rewrite_var(e);
    case ExprKind::load: return rewrite_load(e);
    case ExprKind::call: return rewrite_call(e);
    default: return rewrite_default(e);
  }
}

Expr Rewriter::rewrite_load(const Expr& e) {
  const auto* l = as<LoadNode>(e);
  bool changed = false;
  Exprs indices = rewrite_all(l->indices, &changed);
  Buffer buffer = rewrite_buffer(l->buffer);
  if (!changed && buffer == l->buffer) return e;
  if (buffer->ndim() == indices.size() && buffer->dtype == l->buffer->dtype)
    return load(std::move(buffer), std::move(indices));
  return make_ref<const LoadNode>(l->dtype, std::move(buffer), std::move(indices));
}

Expr Rewriter::rewrite_call(const Expr& e) {
  const auto* c = as<CallNode>(e);
  bool changed = false;
  Exprs args = rewrite_all(c->args, &changed);
  if (!changed) return e;
  if (c->op == "if_then_else") {
    if (const auto* i = as<IntImmNode>(args[0])) return i->value ? args[1] : args[2];
  }
  DType t = c->dtype;
  if (c->op != "reinterpret" && !c->args.empty() && c->args[0]->dtype == t) t = args[0]->dtype;
  return call_typed(t, c->op, std::move(args));
}

Expr Rewriter::rewrite_default(const Expr& e) {
  switch (e->kind) {
    case ExprKind::var:
    case ExprKind::int_imm:
    case ExprKind::float_imm:
    case ExprKind::string_imm: return e;
    case ExprKind::cast: {
      const Expr& value = as<CastNode>(e)->value;
      Expr v = rewrite(value);
      return v == value ? e : cast(e->dtype.with_lanes(v->dtype.lanes), v);
    }
    case ExprKind::not_: {
      Expr v = rewrite(as<NotNode>(e)->a);
      return v == as<NotNode>(e)->a ? e : logical_not(v);
    }
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      Expr c = rewrite(s->condition), a = rewrite(s->a), b = rewrite(s->b);
      return c == s->condition && a == s->a && b == s->b ? e : select(c, a, b);
    }
    case ExprKind::call: return rewrite_call(e);
    case ExprKind::load: return rewrite_load(e);
    case ExprKind::ramp: {
      const auto* r = as<RampNode>(e);
      Expr base = rewrite(r->base), stride = rewrite(r->stride);
      return base == r->base && stride == r->stride ? e : ramp(base, stride, e->dtype.lanes);
    }
    case ExprKind::broadcast: {
      const auto* b = as<BroadcastNode>(e);
      Expr v = rewrite(b->value);
      return v == b->value ? e : broadcast(v, e->dtype.lanes);
    }
    case ExprKind::let: {
      const auto* l = as<LetNode>(e);
      Expr v = rewrite(l->value), body = rewrite(l->body);
      return v == l->value && body == l->body ? e : let(l->var, v, body);
    }
    case ExprKind::reduce: {
      const auto* r = as<ReduceNode>(e);
      bool changed = false;
      Exprs source = rewrite_all(r->source, &changed);
      Expr condition = rewrite(r->condition);
      std::vector<IterVar> axes = r->axes;
      for (IterVar& axis : axes) {
        Range dom = rewrite_range(axis.dom);
        changed = changed || !(dom.min == axis.dom.min) || !(dom.extent == axis.dom.extent);
        axis.dom = dom;
      }
      if (!changed && condition == r->condition) return e;
      return make_ref<const ReduceNode>(r->reducer, std::move(source), std::move(axes),
                                        std::move(condition), r->component);
    }
    default: {
      const auto* b = as<BinaryNode>(e);
      Expr x = rewrite(b->a), y = rewrite(b->b);
      return x == b->a && y == b->b ? e : make_binary(e->kind, std::move(x), std::move(y));
    }
  }
}

namespace {
Stmt with_line(Stmt fresh, const Stmt& old) {
  if (!(fresh == old) && fresh && fresh->line == 0) fresh->line = old->line;
  return fresh;
}
}  // namespace

Stmt Rewriter::rewrite(const Stmt& s) {
  if (!s) return s;
  switch (s->kind) {
    case StmtKind::store: return with_line(rewrite_store(s), s);
    case StmtKind::seq: return rewrite_seq(s);
    case StmtKind::for_: return with_line(rewrite_for(s), s);
    case StmtKind::if_: return with_line(rewrite_if(s), s);
    case StmtKind::allocate: return with_line(rewrite_allocate(s), s);
    case StmtKind::block_realize: return with_line(rewrite_block_realize(s), s);
    default: return with_line(rewrite_default(s), s);
  }
}

Stmt Rewriter::rewrite_store(const Stmt& s) {
  const auto* t = as<StoreNode>(s);
  bool changed = false;
  Exprs indices = rewrite_all(t->indices, &changed);
  Expr value = rewrite(t->value);
  Buffer buffer = rewrite_buffer(t->buffer);
  if (!changed && value == t->value && buffer == t->buffer) return s;
  return make_ref<const StoreNode>(std::move(buffer), std::move(value), std::move(indices));
}

Stmt Rewriter::rewrite_seq(const Stmt& s) {
  const auto* t = as<SeqNode>(s);
  bool changed = false;
  std::vector<Stmt> out;
  for (const Stmt& child : t->stmts) {
    out.push_back(rewrite(child));
    if (!(out.back() == child)) changed = true;
  }
  return changed ? seq(std::move(out)) : s;
}

Stmt Rewriter::rewrite_for(const Stmt& s) {
  const auto* t = as<ForNode>(s);
  Expr lo = rewrite(t->min), extent = rewrite(t->extent);
  Stmt body = rewrite(t->body);
  if (lo == t->min && extent == t->extent && body == t->body) return s;
  return make_for(t->var, lo, extent, body, t->for_kind, t->axis, t->annotations);
}

Stmt Rewriter::rewrite_if(const Stmt& s) {
  const auto* t = as<IfNode>(s);
  Expr c = rewrite(t->condition);
  Stmt a = rewrite(t->then_case), b = rewrite(t->else_case);
  return c == t->condition && a == t->then_case && b == t->else_case ? s : if_then(c, a, b);
}

Stmt Rewriter::rewrite_allocate(const Stmt& s) {
  const auto* t = as<AllocateNode>(s);
  Buffer buffer = rewrite_buffer(t->buffer);
  Stmt body = rewrite(t->body);
  return buffer == t->buffer && body == t->body ? s : allocate(buffer, body, t->annotations);
}

BufferRegion Rewriter::rewrite_region(const BufferRegion& region) {
  BufferRegion out{rewrite_buffer(region.buffer), {}};
  for (const Range& r : region.region) out.region.push_back(rewrite_range(r));
  return out;
}

namespace {
bool same_region(const BufferRegion& a, const BufferRegion& b) {
  if (!(a.buffer == b.buffer) || a.region.size() != b.region.size()) return false;
  for (std::size_t i = 0; i < a.region.size(); ++i) {
    if (!(a.region[i].min == b.region[i].min) || !(a.region[i].extent == b.region[i].extent))
      return false;
  }
  return true;
}
}  // namespace

Block Rewriter::rewrite_block(const Block& block) {
  Ref<BlockNode> copy;
  auto writable = [&]() -> BlockNode& {
    if (!copy) copy = edit(block);
    return *copy;
  };
  for (std::size_t i = 0; i < block->iters.size(); ++i) {
    Range dom = rewrite_range(block->iters[i].dom);
    if (!(dom.min == block->iters[i].dom.min) || !(dom.extent == block->iters[i].dom.extent))
      writable().iters[i].dom = dom;
  }
  for (std::size_t i = 0; i < block->reads.size(); ++i) {
    BufferRegion r = rewrite_region(block->reads[i]);
    if (!same_region(r, block->reads[i])) writable().reads[i] = r;
  }
  for (std::size_t i = 0; i < block->writes.size(); ++i) {
    BufferRegion r = rewrite_region(block->writes[i]);
    if (!same_region(r, block->writes[i])) writable().writes[i] = r;
  }
  for (std::size_t i = 0; i < block->alloc_buffers.size(); ++i) {
    Buffer b = rewrite_buffer(block->alloc_buffers[i]);
    if (!(b == block->alloc_buffers[i])) writable().alloc_buffers[i] = b;
  }
  for (std::size_t i = 0; i < block->match_buffers.size(); ++i) {
    const MatchBuffer& m = block->match_buffers[i];
    BufferRegion r = rewrite_region(m.source);
    Buffer b = rewrite_buffer(m.buffer);
    if (!same_region(r, m.source) || !(b == m.buffer)) writable().match_buffers[i] = {b, r};
  }
  Stmt init = rewrite(block->init);
  if (!(init == block->init)) writable().init = init;
  Stmt body = rewrite(block->body);
  if (!(body == block->body)) writable().body = body;
  return copy ? Block(copy) : block;
}

Stmt Rewriter::rewrite_block_realize(const Stmt& s) {
  const auto* t = as<BlockRealizeNode>(s);
  bool changed = false;
  Exprs values = rewrite_all(t->iter_values, &changed);
  Expr predicate = rewrite(t->predicate);
  Block block = rewrite_block(t->block);
  if (!changed && predicate == t->predicate && block == t->block) return s;
  return block_realize(std::move(values), std::move(predicate), std::move(block));
}

Stmt Rewriter::rewrite_default(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::while_: {
      const auto* t = as<WhileNode>(s);
      Expr c = rewrite(t->condition);
      Stmt body = rewrite(t->body);
      return c == t->condition && body == t->body ? s : while_loop(c, body);
    }
    case StmtKind::let: {
      const auto* t = as<LetStmtNode>(s);
      Expr v = rewrite(t->value);
      Stmt body = rewrite(t->body);
      return v == t->value && body == t->body ? s : let_stmt(t->var, v, body);
    }
    case StmtKind::assert_: {
      const auto* t = as<AssertNode>(s);
      Expr c = rewrite(t->condition);
      return c == t->condition ? s : assert_stmt(c, t->message);
    }
    case StmtKind::evaluate: {
      Expr v = rewrite(as<EvaluateNode>(s)->value);
      return v == as<EvaluateNode>(s)->value ? s : evaluate(v);
    }
    case StmtKind::launch: {
      const auto* t = as<LaunchNode>(s);
      bool changed = false;
      std::vector<LaunchAxis> axes = t->axes;
      for (LaunchAxis& axis : axes) {
        Expr e = rewrite(axis.extent);
        changed = changed || !(e == axis.extent);
        axis.extent = e;
      }
      Stmt body = rewrite(t->body);
      return !changed && body == t->body
                 ? s
                 : Stmt(make_ref<const LaunchNode>(t->name, std::move(axes), body));
    }
    case StmtKind::async: {
      const auto* t = as<AsyncNode>(s);
      Stmt body = rewrite(t->body);
      return body == t->body ? s : Stmt(make_ref<const AsyncNode>(t->queue, t->token, body));
    }
    case StmtKind::wait: {
      const auto* t = as<WaitNode>(s);
      Expr n = rewrite(t->outstanding);
      return n == t->outstanding ? s : Stmt(make_ref<const WaitNode>(t->token, n, t->consumer));
    }
    case StmtKind::collective: {
      const auto* t = as<CollectiveNode>(s);
      BufferRegion dst = rewrite_region(t->dst), src = rewrite_region(t->src);
      Expr root = rewrite(t->root);
      if (same_region(dst, t->dst) && same_region(src, t->src) && root == t->root) return s;
      return make_ref<const CollectiveNode>(t->collective, t->axes, dst, src, t->reducer, root);
    }
    default: WEFT_CHECK(false, "statement kind ", static_cast<int>(s->kind), " has no rewriter");
  }
  return s;
}

// ---- substitution

namespace {

class Substitute final : public Rewriter {
 public:
  explicit Substitute(const VarMap& map) : map_(map) {}

 protected:
  Expr rewrite_var(const Expr& e) override {
    auto found = map_.find(static_cast<const VarNode*>(e.get()));
    return found == map_.end() ? e : found->second;
  }
  /// Buffers whose shape or offset mention a replaced variable keep their identity: only uses
  /// change.

 private:
  const VarMap& map_;
};

class ReplaceBuffers final : public Rewriter {
 public:
  explicit ReplaceBuffers(const BufferMap& map) : map_(map) {}
  Buffer rewrite_buffer(const Buffer& b) override {
    auto found = map_.find(b.get());
    return found == map_.end() ? b : found->second;
  }

 private:
  const BufferMap& map_;
};

/// Renames everything bound below.
class DeepCopy final : public Rewriter {
 public:
  VarMap vars;
  BufferMap buffers;

  Var fresh(const Var& v) {
    Var out = make_var(v->name, v->dtype);
    vars[v.get()] = out;
    return out;
  }
  Buffer fresh(const Buffer& b) {
    auto copy = edit(b);
    for (Expr& e : copy->shape) e = rewrite(e);
    for (Expr& e : copy->strides) e = rewrite(e);
    if (copy->elem_offset) copy->elem_offset = rewrite(copy->elem_offset);
    buffers[b.get()] = copy;
    return copy;
  }
  Buffer rewrite_buffer(const Buffer& b) override {
    auto found = buffers.find(b.get());
    return found == buffers.end() ? b : found->second;
  }
  Block rewrite_block(const Block& block) override {
    auto copy = edit(block);
    copy->id = fresh_block_id();
    for (IterVar& iter : copy->iters) {
      iter.dom = rewrite_range(iter.dom);
      iter.var = fresh(iter.var);
    }
    for (Buffer& b : copy->alloc_buffers) b = fresh(b);
    for (MatchBuffer& m : copy->match_buffers) {
      m.source = rewrite_region(m.source);
      for (const Exprs* list : {&m.buffer->shape, &m.buffer->strides}) bind_free(*list);
      if (m.buffer->elem_offset) bind_free({m.buffer->elem_offset});
      m.buffer = fresh(m.buffer);
    }
    for (BufferRegion& r : copy->reads) r = rewrite_region(r);
    for (BufferRegion& r : copy->writes) r = rewrite_region(r);
    copy->init = rewrite(copy->init);
    copy->body = rewrite(copy->body);
    return copy;
  }
  /// Variables that a match buffer's strides define.
  void bind_free(const Exprs& list) {
    for (const Expr& e : list) {
      if (e && e->kind == ExprKind::var && !vars.count(as<VarNode>(e))) fresh(Var(as<VarNode>(e)));
    }
  }

 protected:
  Expr rewrite_var(const Expr& e) override {
    auto found = vars.find(static_cast<const VarNode*>(e.get()));
    return found == vars.end() ? e : found->second;
  }
  Expr rewrite_default(const Expr& e) override {
    if (const auto* l = as<LetNode>(e)) {
      Expr value = rewrite(l->value);
      Var v = fresh(l->var);
      return let(v, value, rewrite(l->body));
    }
    return Rewriter::rewrite_default(e);
  }
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    Expr lo = rewrite(t->min), extent = rewrite(t->extent);
    Var v = fresh(t->var);
    return make_for(v, lo, extent, rewrite(t->body), t->for_kind, t->axis, t->annotations);
  }
  Stmt rewrite_allocate(const Stmt& s) override {
    const auto* t = as<AllocateNode>(s);
    Buffer b = fresh(t->buffer);
    return allocate(b, rewrite(t->body), t->annotations);
  }
  Stmt rewrite_default(const Stmt& s) override {
    if (const auto* t = as<LetStmtNode>(s)) {
      Expr value = rewrite(t->value);
      Var v = fresh(t->var);
      return let_stmt(v, value, rewrite(t->body));
    }
    if (const auto* t = as<LaunchNode>(s)) {
      std::vector<LaunchAxis> axes = t->axes;
      for (LaunchAxis& axis : axes) {
        axis.extent = rewrite(axis.extent);
        axis.var = fresh(axis.var);
      }
      return make_ref<const LaunchNode>(t->name, std::move(axes), rewrite(t->body));
    }
    return Rewriter::rewrite_default(s);
  }
};

}  // namespace

Expr substitute(const Expr& e, const VarMap& map) {
  return map.empty() ? e : Substitute(map).rewrite(e);
}
Stmt substitute(const Stmt& s, const VarMap& map) {
  return map.empty() ? s : Substitute(map).rewrite(s);
}
BufferRegion substitute(const BufferRegion& r, const VarMap& map) {
  return Substitute(map).rewrite_region(r);
}
Range substitute(const Range& r, const VarMap& map) {
  return {substitute(r.min, map), substitute(r.extent, map)};
}
Stmt replace_buffers(const Stmt& s, const BufferMap& map) { return ReplaceBuffers(map).rewrite(s); }
Expr replace_buffers(const Expr& e, const BufferMap& map) { return ReplaceBuffers(map).rewrite(e); }

Stmt deep_copy(const Stmt& s) { return DeepCopy().rewrite(s); }

Stmt instantiate(const Stmt& s, VarMap vars, BufferMap buffers) {
  DeepCopy copier;
  copier.vars = std::move(vars), copier.buffers = std::move(buffers);
  return copier.rewrite(s);
}

PrimFunc deep_copy(const PrimFunc& f) {
  DeepCopy copier;
  auto out = edit(f);
  for (Param& p : out->params) {
    if (!p.buffer) p.var = copier.fresh(p.var);
  }
  for (Param& p : out->params) {
    if (!p.buffer) continue;
    copier.bind_free(p.buffer->shape);
    copier.bind_free(p.buffer->strides);
    if (p.buffer->elem_offset) copier.bind_free({p.buffer->elem_offset});
    p.var = make_var(p.var->name, p.var->dtype);
    p.buffer = copier.fresh(p.buffer);
  }
  out->body = copier.rewrite(f->body);
  return out;
}

// ---- queries

namespace {
class Each final : public Visitor {
 public:
  const std::function<void(const Expr&)>* on_expr = nullptr;
  const std::function<void(const Stmt&)>* on_stmt = nullptr;
  void visit(const Expr& e) override {
    if (e && on_expr) (*on_expr)(e);
    Visitor::visit(e);
  }
  void visit(const Stmt& s) override {
    if (s && on_stmt) (*on_stmt)(s);
    Visitor::visit(s);
  }
};
}  // namespace

void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& f) {
  Each each;
  each.on_expr = &f;
  each.visit(e);
}

void for_each_expr(const Stmt& s, const std::function<void(const Expr&)>& f) {
  Each each;
  each.on_expr = &f;
  each.visit(s);
}

void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& f) {
  Each each;
  each.on_stmt = &f;
  each.visit(s);
}

std::unordered_set<const VarNode*> used_vars(const Expr& e) {
  std::unordered_set<const VarNode*> out, bound;
  for_each_expr(e, [&](const Expr& x) {
    if (const auto* v = as<VarNode>(x)) out.insert(v);
    if (const auto* l = as<LetNode>(x)) bound.insert(l->var.get());
    if (const auto* r = as<ReduceNode>(x)) {
      for (const IterVar& axis : r->axes) bound.insert(axis.var.get());
    }
  });
  for (const VarNode* v : bound) out.erase(v);
  return out;
}

bool uses_var(const Expr& e, const VarNode* var) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) { found = found || x.get() == var; });
  return found;
}

bool uses_any(const Expr& e, const std::unordered_set<const VarNode*>& vars) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    found = found || (x->kind == ExprKind::var && vars.count(as<VarNode>(x)));
  });
  return found;
}

std::unordered_set<const VarNode*> free_vars(const Stmt& s) {
  std::unordered_set<const VarNode*> used, bound;
  for_each_expr(s, [&](const Expr& x) {
    if (const auto* v = as<VarNode>(x)) used.insert(v);
    if (const auto* l = as<LetNode>(x)) bound.insert(l->var.get());
  });
  for_each_stmt(s, [&](const Stmt& t) {
    if (const auto* f = as<ForNode>(t)) bound.insert(f->var.get());
    if (const auto* l = as<LetStmtNode>(t)) bound.insert(l->var.get());
    if (const auto* n = as<LaunchNode>(t)) {
      for (const LaunchAxis& axis : n->axes) bound.insert(axis.var.get());
    }
    if (const auto* b = as<BlockRealizeNode>(t)) {
      for (const IterVar& iter : b->block->iters) bound.insert(iter.var.get());
    }
  });
  for (const VarNode* v : bound) used.erase(v);
  return used;
}

std::unordered_set<const BufferNode*> used_buffers(const Stmt& s) {
  std::unordered_set<const BufferNode*> out;
  for_each_expr(s, [&](const Expr& x) {
    if (const auto* l = as<LoadNode>(x)) out.insert(l->buffer.get());
  });
  for_each_stmt(s, [&](const Stmt& t) {
    if (const auto* st = as<StoreNode>(t)) out.insert(st->buffer.get());
    if (const auto* c = as<CollectiveNode>(t))
      out.insert(c->dst.buffer.get()), out.insert(c->src.buffer.get());
    if (const auto* b = as<BlockRealizeNode>(t)) {
      for (const MatchBuffer& m : b->block->match_buffers) out.insert(m.source.buffer.get());
    }
  });
  return out;
}

}  // namespace weft::ir
