// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/compare.h"

#include <bit>
#include <unordered_map>

#include "weft/base/hash.h"

namespace weft::ir {

namespace {

class Equal {
 public:
  explicit Equal(bool map_free) : map_free_(map_free) {}

  bool var(const VarNode* a, const VarNode* b, bool defining = false) {
    auto x = forward_.find(a);
    auto y = backward_.find(b);
    if (x != forward_.end() || y != backward_.end())
      return x != forward_.end() && y != backward_.end() && x->second == b && y->second == a;
    if (!defining && !map_free_) return a == b;
    if (a->dtype != b->dtype) return false;
    forward_[a] = b;
    backward_[b] = a;
    return true;
  }

  bool all(const Exprs& a, const Exprs& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!expr(a[i], b[i])) return false;
    }
    return true;
  }

  bool buffer(const Buffer& a, const Buffer& b, bool defining = false) {
    auto x = buffers_.find(a.get());
    if (x != buffers_.end()) return x->second == b.get();
    if (!defining && !map_free_) return a == b;
    if (taken_.count(b.get())) return false;
    bool was = map_free_;
    map_free_ = map_free_ || defining;  // extents of a parameter define its shape variables
    bool same = a->dtype == b->dtype && a->scope == b->scope && a->align == b->align &&
                all(a->shape, b->shape) && all(a->strides, b->strides) &&
                expr(a->elem_offset, b->elem_offset) && a->spatial_axes == b->spatial_axes &&
                layout(a, b);
    map_free_ = was;
    if (same) {
      buffers_[a.get()] = b.get();
      taken_[b.get()] = true;
    }
    return same;
  }

  bool layout(const Buffer& a, const Buffer& b) {
    if (a->layout_vars.size() != b->layout_vars.size()) return false;
    for (std::size_t i = 0; i < a->layout_vars.size(); ++i) {
      if (!var(a->layout_vars[i].get(), b->layout_vars[i].get(), true)) return false;
    }
    return all(a->layout_exprs, b->layout_exprs);
  }

  bool range(const Range& a, const Range& b) {
    return expr(a.min, b.min) && expr(a.extent, b.extent);
  }

  bool region(const BufferRegion& a, const BufferRegion& b) {
    if (!buffer(a.buffer, b.buffer) || a.region.size() != b.region.size()) return false;
    for (std::size_t i = 0; i < a.region.size(); ++i) {
      if (!range(a.region[i], b.region[i])) return false;
    }
    return true;
  }

  bool regions(const std::vector<BufferRegion>& a, const std::vector<BufferRegion>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!region(a[i], b[i])) return false;
    }
    return true;
  }

  bool iters(const std::vector<IterVar>& a, const std::vector<IterVar>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].kind != b[i].kind || !range(a[i].dom, b[i].dom) ||
          !var(a[i].var.get(), b[i].var.get(), true))
        return false;
    }
    return true;
  }

  bool reducer(const Reducer& a, const Reducer& b) {
    if (a == b) return true;
    if (!a || !b || a->lhs.size() != b->lhs.size()) return false;
    for (std::size_t i = 0; i < a->lhs.size(); ++i) {
      if (!var(a->lhs[i].get(), b->lhs[i].get(), true) ||
          !var(a->rhs[i].get(), b->rhs[i].get(), true))
        return false;
    }
    return all(a->result, b->result) && all(a->identity, b->identity);
  }

  bool expr(const Expr& a, const Expr& b) {
    if (!a || !b) return !a && !b;
    if (a->kind != b->kind || a->dtype != b->dtype) return false;
    switch (a->kind) {
      case ExprKind::var: return var(as<VarNode>(a), as<VarNode>(b));
      case ExprKind::int_imm: return as<IntImmNode>(a)->value == as<IntImmNode>(b)->value;
      case ExprKind::float_imm:
        return std::bit_cast<std::uint64_t>(as<FloatImmNode>(a)->value) ==
               std::bit_cast<std::uint64_t>(as<FloatImmNode>(b)->value);
      case ExprKind::string_imm: return as<StringImmNode>(a)->value == as<StringImmNode>(b)->value;
      case ExprKind::cast: return expr(as<CastNode>(a)->value, as<CastNode>(b)->value);
      case ExprKind::not_: return expr(as<NotNode>(a)->a, as<NotNode>(b)->a);
      case ExprKind::select: {
        const auto *x = as<SelectNode>(a), *y = as<SelectNode>(b);
        return expr(x->condition, y->condition) && expr(x->a, y->a) && expr(x->b, y->b);
      }
      case ExprKind::call: {
        const auto *x = as<CallNode>(a), *y = as<CallNode>(b);
        return x->op == y->op && all(x->args, y->args);
      }
      case ExprKind::load: {
        const auto *x = as<LoadNode>(a), *y = as<LoadNode>(b);
        return buffer(x->buffer, y->buffer) && all(x->indices, y->indices);
      }
      case ExprKind::ramp: {
        const auto *x = as<RampNode>(a), *y = as<RampNode>(b);
        return expr(x->base, y->base) && expr(x->stride, y->stride);
      }
      case ExprKind::broadcast:
        return expr(as<BroadcastNode>(a)->value, as<BroadcastNode>(b)->value);
      case ExprKind::let: {
        const auto *x = as<LetNode>(a), *y = as<LetNode>(b);
        return expr(x->value, y->value) && var(x->var.get(), y->var.get(), true) &&
               expr(x->body, y->body);
      }
      case ExprKind::reduce: {
        const auto *x = as<ReduceNode>(a), *y = as<ReduceNode>(b);
        return x->component == y->component && iters(x->axes, y->axes) &&
               reducer(x->reducer, y->reducer) && all(x->source, y->source) &&
               expr(x->condition, y->condition);
      }
      default:
        return expr(as<BinaryNode>(a)->a, as<BinaryNode>(b)->a) &&
               expr(as<BinaryNode>(a)->b, as<BinaryNode>(b)->b);
    }
  }

  bool block(const Block& a, const Block& b) {
    if (a->name != b->name || !(a->annotations == b->annotations) ||
        a->execution.axis != b->execution.axis || a->execution.begin != b->execution.begin ||
        a->execution.end != b->execution.end) {
      return false;
    }
    if (!iters(a->iters, b->iters) || a->alloc_buffers.size() != b->alloc_buffers.size() ||
        a->match_buffers.size() != b->match_buffers.size())
      return false;
    for (std::size_t i = 0; i < a->alloc_buffers.size(); ++i) {
      if (!buffer(a->alloc_buffers[i], b->alloc_buffers[i], true)) return false;
    }
    if (!regions(a->reads, b->reads) || !regions(a->writes, b->writes)) return false;
    for (std::size_t i = 0; i < a->match_buffers.size(); ++i) {
      if (!region(a->match_buffers[i].source, b->match_buffers[i].source) ||
          !buffer(a->match_buffers[i].buffer, b->match_buffers[i].buffer, true))
        return false;
    }
    return stmt(a->init, b->init) && stmt(a->body, b->body);
  }

  bool stmt(const Stmt& a, const Stmt& b) {
    if (!a || !b) return !a && !b;
    if (a->kind != b->kind) return false;
    switch (a->kind) {
      case StmtKind::store: {
        const auto *x = as<StoreNode>(a), *y = as<StoreNode>(b);
        return buffer(x->buffer, y->buffer) && all(x->indices, y->indices) &&
               expr(x->value, y->value);
      }
      case StmtKind::seq: {
        const auto *x = as<SeqNode>(a), *y = as<SeqNode>(b);
        if (x->stmts.size() != y->stmts.size()) return false;
        for (std::size_t i = 0; i < x->stmts.size(); ++i) {
          if (!stmt(x->stmts[i], y->stmts[i])) return false;
        }
        return true;
      }
      case StmtKind::for_: {
        const auto *x = as<ForNode>(a), *y = as<ForNode>(b);
        return x->for_kind == y->for_kind && x->axis == y->axis &&
               x->annotations == y->annotations && expr(x->min, y->min) &&
               expr(x->extent, y->extent) && var(x->var.get(), y->var.get(), true) &&
               stmt(x->body, y->body);
      }
      case StmtKind::if_: {
        const auto *x = as<IfNode>(a), *y = as<IfNode>(b);
        return expr(x->condition, y->condition) && stmt(x->then_case, y->then_case) &&
               stmt(x->else_case, y->else_case);
      }
      case StmtKind::while_:
        return expr(as<WhileNode>(a)->condition, as<WhileNode>(b)->condition) &&
               stmt(as<WhileNode>(a)->body, as<WhileNode>(b)->body);
      case StmtKind::let: {
        const auto *x = as<LetStmtNode>(a), *y = as<LetStmtNode>(b);
        return expr(x->value, y->value) && var(x->var.get(), y->var.get(), true) &&
               stmt(x->body, y->body);
      }
      case StmtKind::assert_:
        return as<AssertNode>(a)->message == as<AssertNode>(b)->message &&
               expr(as<AssertNode>(a)->condition, as<AssertNode>(b)->condition);
      case StmtKind::evaluate: return expr(as<EvaluateNode>(a)->value, as<EvaluateNode>(b)->value);
      case StmtKind::allocate: {
        const auto *x = as<AllocateNode>(a), *y = as<AllocateNode>(b);
        return x->annotations == y->annotations && buffer(x->buffer, y->buffer, true) &&
               stmt(x->body, y->body);
      }
      case StmtKind::block_realize: {
        const auto *x = as<BlockRealizeNode>(a), *y = as<BlockRealizeNode>(b);
        return all(x->iter_values, y->iter_values) && expr(x->predicate, y->predicate) &&
               block(x->block, y->block);
      }
      case StmtKind::launch: {
        const auto *x = as<LaunchNode>(a), *y = as<LaunchNode>(b);
        if (x->axes.size() != y->axes.size()) return false;
        for (std::size_t i = 0; i < x->axes.size(); ++i) {
          if (x->axes[i].axis != y->axes[i].axis || !expr(x->axes[i].extent, y->axes[i].extent) ||
              !var(x->axes[i].var.get(), y->axes[i].var.get(), true)) {
            return false;
          }
        }
        return stmt(x->body, y->body);
      }
      case StmtKind::async: {
        const auto *x = as<AsyncNode>(a), *y = as<AsyncNode>(b);
        return x->queue == y->queue && var(x->token.get(), y->token.get(), true) &&
               stmt(x->body, y->body);
      }
      case StmtKind::wait: {
        const auto *x = as<WaitNode>(a), *y = as<WaitNode>(b);
        return x->consumer == y->consumer && var(x->token.get(), y->token.get(), true) &&
               expr(x->outstanding, y->outstanding);
      }
      case StmtKind::collective: {
        const auto *x = as<CollectiveNode>(a), *y = as<CollectiveNode>(b);
        return x->collective == y->collective && x->axes == y->axes && region(x->dst, y->dst) &&
               region(x->src, y->src) && reducer(x->reducer, y->reducer) && expr(x->root, y->root);
      }
    }
    return false;
  }

  bool func(const PrimFunc& a, const PrimFunc& b) {
    if (a->params.size() != b->params.size() || !(a->attrs == b->attrs)) return false;
    for (std::size_t i = 0; i < a->params.size(); ++i) {
      const Param &p = a->params[i], &q = b->params[i];
      if (bool(p.buffer) != bool(q.buffer)) return false;
      if (!p.buffer && !var(p.var.get(), q.var.get(), true)) return false;
    }
    for (std::size_t i = 0; i < a->params.size(); ++i) {
      if (a->params[i].buffer && !buffer(a->params[i].buffer, b->params[i].buffer, true))
        return false;
    }
    return stmt(a->body, b->body);
  }

 private:
  bool map_free_;
  std::unordered_map<const VarNode*, const VarNode*> forward_, backward_;
  std::unordered_map<const BufferNode*, const BufferNode*> buffers_;
  std::unordered_map<const BufferNode*, bool> taken_;
};

/// Hashes a preorder walk; variables and buffers by order of first appearance. Two values of
/// different seeds: one for tables in memory, which compare what they find, both for a digest.
class Hasher {
 public:
  std::uint64_t value = 0x77656674, second = 0x6b657074;
  void mix(std::uint64_t v) { value = hash_combine(value, v), second = hash_combine(second, v); }
  void mix(DType t) {
    mix(static_cast<std::uint64_t>(t.code) << 32 | static_cast<std::uint64_t>(t.bits) << 16 |
        t.lanes);
  }
  void mix(std::string_view s) {
    value = hash_combine(value, hash_text(s, 1)), second = hash_combine(second, hash_text(s, 2));
  }
  void mix(const Annotations& a) { mix(std::string_view(Json(a).dump())); }
  void var(const VarNode* v) {
    mix(ids_.emplace(v, ids_.size()).first->second);
    mix(v->dtype);
  }
  void all(const Exprs& es) {
    mix(es.size());
    for (const Expr& e : es) expr(e);
  }
  void buffer(const Buffer& b) {
    auto [it, fresh] = ids_.emplace(b.get(), ids_.size());
    mix(it->second);
    if (!fresh) return;
    mix(b->dtype), mix(std::string_view(b->scope)), mix(static_cast<std::uint64_t>(b->align));
    all(b->shape), all(b->strides), expr(b->elem_offset);
    mix(b->spatial_axes.size()), mix(b->layout_vars.size());
    for (const std::string& axis : b->spatial_axes) mix(std::string_view(axis));
    for (const Var& v : b->layout_vars) var(v.get());
    all(b->layout_exprs);
  }
  void range(const Range& r) { expr(r.min), expr(r.extent); }
  void region(const BufferRegion& r) {
    buffer(r.buffer);
    mix(r.region.size());
    for (const Range& x : r.region) range(x);
  }
  void iters(const std::vector<IterVar>& is) {
    mix(is.size());
    for (const IterVar& i : is)
      mix(static_cast<std::uint64_t>(i.kind)), range(i.dom), var(i.var.get());
  }
  void reducer(const Reducer& r) {
    mix(r ? 1u : 0u);
    if (!r) return;
    mix(r->lhs.size());
    for (std::size_t i = 0; i < r->lhs.size(); ++i) var(r->lhs[i].get()), var(r->rhs[i].get());
    all(r->result), all(r->identity);
  }

  void expr(const Expr& e) {
    if (!e) return mix(std::uint64_t{999});
    mix(static_cast<std::uint64_t>(e->kind));
    mix(e->dtype);
    switch (e->kind) {
      case ExprKind::var: var(as<VarNode>(e)); break;
      case ExprKind::int_imm: mix(static_cast<std::uint64_t>(as<IntImmNode>(e)->value)); break;
      case ExprKind::float_imm:
        mix(std::bit_cast<std::uint64_t>(as<FloatImmNode>(e)->value));
        break;
      case ExprKind::string_imm: mix(std::string_view(as<StringImmNode>(e)->value)); break;
      case ExprKind::cast: expr(as<CastNode>(e)->value); break;
      case ExprKind::not_: expr(as<NotNode>(e)->a); break;
      case ExprKind::select:
        expr(as<SelectNode>(e)->condition), expr(as<SelectNode>(e)->a), expr(as<SelectNode>(e)->b);
        break;
      case ExprKind::call:
        mix(std::string_view(as<CallNode>(e)->op)), all(as<CallNode>(e)->args);
        break;
      case ExprKind::load: buffer(as<LoadNode>(e)->buffer), all(as<LoadNode>(e)->indices); break;
      case ExprKind::ramp: expr(as<RampNode>(e)->base), expr(as<RampNode>(e)->stride); break;
      case ExprKind::broadcast: expr(as<BroadcastNode>(e)->value); break;
      case ExprKind::let:
        expr(as<LetNode>(e)->value), var(as<LetNode>(e)->var.get()), expr(as<LetNode>(e)->body);
        break;
      case ExprKind::reduce: {
        const auto* r = as<ReduceNode>(e);
        mix(static_cast<std::uint64_t>(r->component)), iters(r->axes), reducer(r->reducer),
            all(r->source), expr(r->condition);
        break;
      }
      default: expr(as<BinaryNode>(e)->a), expr(as<BinaryNode>(e)->b);
    }
  }

  void block(const Block& b) {
    mix(std::string_view(b->name)), mix(b->annotations), mix(std::string_view(b->execution.axis));
    mix(static_cast<std::uint64_t>(b->execution.begin)),
        mix(static_cast<std::uint64_t>(b->execution.end));
    iters(b->iters);
    mix(b->alloc_buffers.size()), mix(b->match_buffers.size());
    for (const Buffer& a : b->alloc_buffers) buffer(a);
    mix(b->reads.size()), mix(b->writes.size());
    for (const BufferRegion& r : b->reads) region(r);
    for (const BufferRegion& r : b->writes) region(r);
    for (const MatchBuffer& m : b->match_buffers) region(m.source), buffer(m.buffer);
    stmt(b->init), stmt(b->body);
  }

  void stmt(const Stmt& s) {
    if (!s) return mix(std::uint64_t{998});
    mix(1000 + static_cast<std::uint64_t>(s->kind));
    switch (s->kind) {
      case StmtKind::store:
        buffer(as<StoreNode>(s)->buffer), all(as<StoreNode>(s)->indices),
            expr(as<StoreNode>(s)->value);
        break;
      case StmtKind::seq:
        mix(as<SeqNode>(s)->stmts.size());
        for (const Stmt& t : as<SeqNode>(s)->stmts) stmt(t);
        break;
      case StmtKind::for_: {
        const auto* f = as<ForNode>(s);
        mix(static_cast<std::uint64_t>(f->for_kind)), mix(std::string_view(f->axis)),
            mix(f->annotations);
        expr(f->min), expr(f->extent), var(f->var.get()), stmt(f->body);
        break;
      }
      case StmtKind::if_:
        expr(as<IfNode>(s)->condition), stmt(as<IfNode>(s)->then_case),
            stmt(as<IfNode>(s)->else_case);
        break;
      case StmtKind::while_: expr(as<WhileNode>(s)->condition), stmt(as<WhileNode>(s)->body); break;
      case StmtKind::let:
        expr(as<LetStmtNode>(s)->value), var(as<LetStmtNode>(s)->var.get()),
            stmt(as<LetStmtNode>(s)->body);
        break;
      case StmtKind::assert_:
        expr(as<AssertNode>(s)->condition), mix(std::string_view(as<AssertNode>(s)->message));
        break;
      case StmtKind::evaluate: expr(as<EvaluateNode>(s)->value); break;
      case StmtKind::allocate:
        buffer(as<AllocateNode>(s)->buffer), mix(as<AllocateNode>(s)->annotations),
            stmt(as<AllocateNode>(s)->body);
        break;
      case StmtKind::block_realize:
        all(as<BlockRealizeNode>(s)->iter_values), expr(as<BlockRealizeNode>(s)->predicate),
            block(as<BlockRealizeNode>(s)->block);
        break;
      case StmtKind::launch:
        mix(as<LaunchNode>(s)->axes.size());
        for (const LaunchAxis& a : as<LaunchNode>(s)->axes)
          mix(std::string_view(a.axis)), expr(a.extent), var(a.var.get());
        stmt(as<LaunchNode>(s)->body);
        break;
      case StmtKind::async:
        mix(std::string_view(as<AsyncNode>(s)->queue)), var(as<AsyncNode>(s)->token.get()),
            stmt(as<AsyncNode>(s)->body);
        break;
      case StmtKind::wait:
        mix(std::string_view(as<WaitNode>(s)->consumer)), var(as<WaitNode>(s)->token.get()),
            expr(as<WaitNode>(s)->outstanding);
        break;
      case StmtKind::collective: {
        const auto* c = as<CollectiveNode>(s);
        mix(static_cast<std::uint64_t>(c->collective)), mix(c->axes.size());
        for (const std::string& a : c->axes) mix(std::string_view(a));
        region(c->dst), region(c->src), reducer(c->reducer), expr(c->root);
        break;
      }
    }
  }

  void func(const PrimFunc& f) {
    mix(f->attrs);
    mix(f->params.size());
    for (const Param& p : f->params) {
      mix(p.buffer ? 1u : 0u);
      if (!p.buffer) var(p.var.get());
    }
    for (const Param& p : f->params) {
      if (p.buffer) buffer(p.buffer);
    }
    stmt(f->body);
  }

 private:
  std::unordered_map<const void*, std::uint64_t> ids_;
};

}  // namespace

bool structural_equal(const Expr& a, const Expr& b, FreeVars free) {
  return Equal(free == FreeVars::by_position).expr(a, b);
}
bool structural_equal(const Stmt& a, const Stmt& b, FreeVars free) {
  return Equal(free == FreeVars::by_position).stmt(a, b);
}
bool structural_equal(const PrimFunc& a, const PrimFunc& b) {
  return a == b || Equal(false).func(a, b);
}

bool structural_equal(const IRModule& a, const IRModule& b) {
  if (a->functions.size() != b->functions.size()) return false;
  for (std::size_t i = 0; i < a->functions.size(); ++i) {
    if (a->functions[i].first != b->functions[i].first ||
        !structural_equal(a->functions[i].second, b->functions[i].second))
      return false;
  }
  return true;
}

namespace {
void mix_module(Hasher& h, const IRModule& m) {
  h.mix(m->functions.size());
  for (const auto& [name, f] : m->functions) {
    Hasher one;
    one.func(f);
    h.mix(std::string_view(name)), h.mix(one.value), h.mix(one.second);
  }
}
}  // namespace

std::uint64_t structural_hash(const PrimFunc& f) {
  Hasher h;
  h.func(f);
  return h.value;
}

Digest structural_digest(const IRModule& m) {
  Hasher h;
  mix_module(h, m);
  return {h.value, h.second};
}

std::uint64_t structural_hash(const IRModule& m) {
  Hasher h;
  mix_module(h, m);
  return h.value;
}

std::uint64_t structural_hash(const Expr& e) {
  Hasher h;
  h.expr(e);
  return h.value;
}

bool same_expr(const Expr& a, const Expr& b) {
  if (a == b) return true;
  // Two variables are the same only if they are one object.
  if (!a || !b || a->kind != b->kind || a->kind == ExprKind::var || a->dtype != b->dtype)
    return false;
  if (a->kind == ExprKind::int_imm) return as<IntImmNode>(a)->value == as<IntImmNode>(b)->value;
  return Equal(false).expr(a, b);
}

}  // namespace weft::ir
