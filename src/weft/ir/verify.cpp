// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/roles.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::ir {

namespace {

/// What stopped the walk; never leaves this file.
struct Found {
  Refusal refusal;
  const void* culprit;
};

class Verifier {
 public:
  explicit Verifier(const IRModuleNode* module) : module_(module) {}

  void func(const PrimFunc& f) {
    for (const Param& p : f->params) {
      if (!p.var) fail(nullptr, "param", cat("a parameter of \"", f->name, "\" has no variable"));
      define_param(p.var, f.get());
    }
    for (const Param& p : f->params) {
      if (!p.buffer) continue;
      if (!buffers_.insert(p.buffer.get()).second)
        fail(p.buffer.get(), "buffer.redefined",
             cat("the buffer \"", p.buffer->name, "\" is two parameters"));
      open_shape(p.buffer);
      buffer(p.buffer);
    }
    if (!f->body) fail(nullptr, "body", cat("\"", f->name, "\" has no body"));
    for_each_stmt(f->body, [&](const Stmt& s) {
      if (const auto* a = as<AsyncNode>(s)) tokens_.insert(a->token.get());
    });
    stmt(f->body);
  }

 private:
  enum class Origin : std::uint8_t { param, loop, iter };
  struct Definition {
    bool active = false;
    Origin origin = Origin::param;
    std::size_t depth = 0;
  };

  [[noreturn]] static void fail(const void* culprit, std::string_view slug, std::string message,
                                std::string help = "") {
    Refusal r{cat("verify.", slug), std::move(message), {}, {}, std::move(help)};
    throw Found{std::move(r), culprit};
  }

  // ---- definitions

  static void present(const Var& v, const void* culprit) {
    if (!v) fail(culprit, "var", "a variable is missing here");
  }
  void define(const Var& v, const void* culprit, Origin origin) {
    present(v, culprit);
    auto [it, fresh] = vars_.emplace(v.get(), Definition{true, origin, block_depth_});
    if (!fresh)
      fail(culprit, "var.redefined", cat("the variable \"", v->name, "\" is defined twice"),
           "copy statements with deep_copy");
  }
  void define_param(const Var& v, const void* culprit) { define(v, culprit, Origin::param); }
  void undefine(const Var& v) { vars_[v.get()].active = false; }

  /// Variables that stand alone as an extent, stride or offset of a bound buffer are defined by it.
  void open_shape(const Buffer& b) {
    auto open = [&](const Expr& e) {
      if (!e) return;
      for_each_expr(e, [&](const Expr& x) {
        const auto* v = as<VarNode>(x);
        if (v && !vars_.count(v)) define(Var(v), b.get(), Origin::iter);
      });
    };
    for (const Expr& e : b->shape) open(e);
    for (const Expr& e : b->strides) open(e);
    open(b->elem_offset);
  }

  void buffer(const Buffer& b) {
    auto extent = [&](const Expr& e, std::string_view what) {
      if (!e || !e->dtype.is_integral() || !e->dtype.is_scalar())
        fail(b.get(), "buffer.shape", cat("a ", what, " of \"", b->name, "\" is no integer"));
      expr(e);
    };
    for (const Expr& e : b->shape) extent(e, "dimension");
    for (const Expr& e : b->strides) extent(e, "stride");
    if (b->elem_offset) extent(b->elem_offset, "element offset");
    if (!b->strides.empty() && b->strides.size() != b->shape.size())
      fail(b.get(), "buffer.shape",
           cat("\"", b->name, "\" has ", b->shape.size(), " dimensions and ", b->strides.size(),
               " strides"));
    if (b->dtype.is_handle()) fail(b.get(), "buffer.dtype", cat("\"", b->name, "\" holds handles"));
    if (b->spatial_axes.size() > b->layout_exprs.size())
      fail(b.get(), "buffer.layout",
           cat("\"", b->name, "\" has ", b->spatial_axes.size(),
               " spatial axes, but its layout gives ", b->layout_exprs.size(), " values"));
    if (!b->layout_exprs.empty() && b->layout_vars.size() != b->shape.size())
      fail(b.get(), "buffer.layout",
           cat("the layout of \"", b->name, "\" takes ", b->layout_vars.size(), " indices, not ",
               b->shape.size()));
    for (const Var& v : b->layout_vars) define(v, b.get(), Origin::iter);
    for (const Expr& e : b->layout_exprs) expr(e);
    for (const Var& v : b->layout_vars) undefine(v);
  }

  void add_buffer(const Buffer& b, const void* culprit) {
    if (!b) fail(culprit, "buffer", "a buffer is missing here");
    if (!buffers_.insert(b.get()).second)
      fail(culprit, "buffer.redefined", cat("the buffer \"", b->name, "\" is defined twice"),
           "copy statements with deep_copy");
  }

  void use_buffer(const Buffer& b, const void* culprit) {
    if (!b) fail(culprit, "buffer", "a buffer is missing here");
    if (buffers_.count(b.get())) return;
    fail(culprit, "buffer.undefined", cat("the buffer \"", b->name, "\" is not visible here"),
         "it must be a parameter, an alloc_buffer of a block around, or allocated around");
  }

  // ---- expressions

  void need(bool good, const Expr& e, std::string_view slug, const std::string& message) {
    if (!good) fail(e.get(), slug, message);
  }

  void expr(const Expr& e) {
    if (!e) fail(nullptr, "expr", "an expression is missing");
    switch (e->kind) {
      case ExprKind::var: {
        auto found = vars_.find(as<VarNode>(e));
        const std::string& name = as<VarNode>(e)->name;
        if (found == vars_.end())
          fail(e.get(), "var.undefined",
               cat("the variable \"", name, "\" is used but defined nowhere around"));
        if (!found->second.active)
          fail(e.get(), "var.undefined",
               cat("the variable \"", name, "\" is used outside its scope"));
        if (found->second.origin == Origin::loop && found->second.depth < barrier_) {
          fail(e.get(), "block.isolation", cat("the block uses \"", name, "\" of a loop around it"),
               "bind it to an iterator of the block");
        }
        break;
      }
      case ExprKind::int_imm:
      case ExprKind::float_imm:
      case ExprKind::string_imm: break;
      case ExprKind::cast:
        expr(as<CastNode>(e)->value);
        need(as<CastNode>(e)->value->dtype.lanes == e->dtype.lanes, e, "types",
             cat("a cast from ", to_string(as<CastNode>(e)->value->dtype), " to ",
                 to_string(e->dtype), " changes the lanes"));
        break;
      case ExprKind::not_:
        expr(as<NotNode>(e)->a);
        need(e->dtype.is_bool(), e, "types", cat("\"not\" of ", to_string(e->dtype)));
        break;
      case ExprKind::select: {
        const auto* s = as<SelectNode>(e);
        expr(s->condition), expr(s->a), expr(s->b);
        need(s->a->dtype == s->b->dtype, e, "types",
             cat("select between ", to_string(s->a->dtype), " and ", to_string(s->b->dtype)));
        need(s->condition->dtype.is_bool() &&
                 (s->condition->dtype.lanes == 1 || s->condition->dtype.lanes == s->a->dtype.lanes),
             e, "types", cat("select by ", to_string(s->condition->dtype)));
        break;
      }
      case ExprKind::call: call(as<CallNode>(e), e); break;
      case ExprKind::load: {
        const auto* l = as<LoadNode>(e);
        use_buffer(l->buffer, e.get());
        access(l->buffer, l->indices, e->dtype, e.get(), "read as");
        if (!reads_.empty()) declared(*reads_.back(), l->buffer, e.get(), "read");
        break;
      }
      case ExprKind::ramp: {
        const auto* r = as<RampNode>(e);
        expr(r->base), expr(r->stride);
        need(r->base->dtype == r->stride->dtype && r->base->dtype.is_scalar() &&
                 r->base->dtype.is_integral(),
             e, "types",
             cat("ramp of ", to_string(r->base->dtype), " and ", to_string(r->stride->dtype)));
        break;
      }
      case ExprKind::broadcast:
        expr(as<BroadcastNode>(e)->value);
        need(as<BroadcastNode>(e)->value->dtype.is_scalar(), e, "types",
             cat("broadcast of ", to_string(as<BroadcastNode>(e)->value->dtype)));
        break;
      case ExprKind::let: {
        const auto* l = as<LetNode>(e);
        expr(l->value);
        present(l->var, e.get());
        need(l->var->dtype == l->value->dtype, e, "types",
             cat("\"", l->var->name, "\" is ", to_string(l->var->dtype), ", its value ",
                 to_string(l->value->dtype)));
        define(l->var, e.get(), Origin::loop);
        expr(l->body);
        undefine(l->var);
        break;
      }
      case ExprKind::reduce:
        fail(e.get(), "reduce", "a reduction of the front end is no part of a program",
             "te.create_prim_func makes a block of it");
      default: binary(as<BinaryNode>(e), e);
    }
  }

  void binary(const BinaryNode* b, const Expr& e) {
    expr(b->a), expr(b->b);
    DType t = b->a->dtype;
    need(t == b->b->dtype && !t.is_handle(), e, "types",
         cat("operands of ", to_string(t), " and ", to_string(b->b->dtype)));
    DType result = b->kind >= ExprKind::eq ? dtypes::boolean.with_lanes(t.lanes) : t;
    need(e->dtype == result, e, "types",
         cat("a result of ", to_string(e->dtype), " where ", to_string(result), " follows"));
    if (b->kind == ExprKind::and_ || b->kind == ExprKind::or_)
      need(t.is_bool(), e, "types", cat("a logical operation on ", to_string(t)));
  }

  /// The element that is updated is the one that is stored; reading it is part of the store, so
  /// that the block's reads need not name it.
  void atomic(const StoreNode* s, const CallNode* c) {
    const auto* element = c->args.size() == 2 ? as<LoadNode>(c->args[0]) : nullptr;
    bool same =
        element && element->buffer == s->buffer && element->indices.size() == s->indices.size();
    for (std::size_t i = 0; same && i < s->indices.size(); ++i)
      same = same_expr(element->indices[i], s->indices[i]);
    if (!same)
      fail(s, "atomic.element",
           cat("an atomic update of \"", s->buffer->name, "\" reads another element"));
    if (!can_update_atomically(c->op, c->dtype) || element->dtype != c->dtype ||
        c->args[1]->dtype != c->dtype)
      fail(s, "types",
           cat("an ", c->op, " of ", to_string(c->args[1]->dtype), " to \"", s->buffer->name,
               "\" of ", to_string(element->dtype)));
    access(element->buffer, element->indices, element->dtype, s, "read as");
    expr(c->args[1]);
  }

  /// Compilers take the numbers of a prefetch as constants only.
  static void prefetch(const CallNode* c, const Expr& e) {
    const std::int64_t most[] = {0, 1, 3};
    bool good = !c->args.empty() && c->args.size() <= 3 && c->args[0]->dtype.is_handle();
    for (std::size_t i = 1; good && i < c->args.size(); ++i) {
      std::int64_t n = 0;
      good = is_const_int(c->args[i], &n) && n >= 0 && n <= most[i];
    }
    if (!good)
      fail(e.get(), "types", cat("a prefetch has other arguments than it takes: ", print(e)),
           "T.prefetch(A[i], 0 to read or 1 to write, a locality from 0 to 3), both constant");
  }

  void call(const CallNode* c, const Expr& e) {
    if (c->op == "prefetch") prefetch(c, e);
    if (is_atomic(c->op))
      fail(e.get(), "atomic.place", "an atomic update stands inside an expression",
           cat("it is a statement: T.", c->op, "(A[i], value)"));
    for (const Expr& a : c->args) expr(a);
    if (const Intrinsic* row = find_intrinsic(c->op)) {
      need(row->arity < 0 || row->arity == static_cast<int>(c->args.size()), e, "call.arity",
           cat("\"", c->op, "\" takes ", row->arity, " arguments, not ", c->args.size()));
      bool generic = row->type != IntrinsicType::special;
      DType t = generic ? c->args[0]->dtype : e->dtype;
      bool floats = row->type == IntrinsicType::float_unary ||
                    row->type == IntrinsicType::float_binary ||
                    row->type == IntrinsicType::predicate;
      bool ints = row->type == IntrinsicType::int_binary || row->type == IntrinsicType::int_unary;
      bool good = !(floats && !t.is_float()) && !(ints && !t.is_integral() && !t.is_bool());
      if (generic && c->args.size() == 2) good = good && c->args[1]->dtype == t;
      if (generic)
        good = good && e->dtype == (row->type == IntrinsicType::predicate
                                        ? dtypes::boolean.with_lanes(t.lanes)
                                        : t);
      if (c->op == "if_then_else") {
        good = c->args[0]->dtype.is_bool() && c->args[1]->dtype == e->dtype &&
               c->args[2]->dtype == e->dtype &&
               (c->args[0]->dtype.lanes == 1 || c->args[0]->dtype.lanes == e->dtype.lanes);
      }
      if (c->op == "fma")
        good = e->dtype.is_float() && c->args[0]->dtype == e->dtype &&
               c->args[1]->dtype == e->dtype && c->args[2]->dtype == e->dtype;
      if (c->op == "dot")
        good = e->dtype == c->args[0]->dtype && is_dot(*c->args[0], *c->args[1], *c->args[2]);
      if (c->op == "vector_interleave") {
        for (const Expr& a : c->args)
          good = good && a->dtype == c->args[0]->dtype && a->dtype.lanes > 1;
        good = good && !c->args.empty() &&
               e->dtype == c->args[0]->dtype.with_lanes(c->args[0]->dtype.lanes *
                                                        static_cast<int>(c->args.size()));
      }
      if (c->op == "address_of" || c->op == "masked_load")
        good = c->args[0]->kind == ExprKind::load;
      for (int i = 0; i < role_addresses(c->op) && good; ++i) {
        const Expr& a = c->args[static_cast<std::size_t>(i)];
        const auto* address = as<CallNode>(a);
        good = (address && address->op == "address_of") ||
               (c->op.starts_with("bulk_") && a->dtype.is_handle());
      }
      need(good, e, "types",
           cat("\"", c->op, "\" does not fit its arguments of ",
               to_string(c->args.empty() ? e->dtype : c->args[0]->dtype)));
      return;
    }
    if (!module_) return;  // a function of a module that is not at hand
    PrimFunc f = module_->find(c->op);
    if (!f)
      fail(e.get(), "call.unknown",
           cat("\"", c->op, "\" is neither an intrinsic nor a function of the module"),
           "write the function into the same module, or take one of docs/reference/script.md");
    if (f->params.size() != c->args.size())
      fail(e.get(), "call.arity",
           cat("\"", c->op, "\" takes ", f->params.size(), " arguments, not ", c->args.size()),
           "pass one argument for each parameter of the function");
  }

  void access(const Buffer& b, const Exprs& indices, DType type, const void* culprit,
              std::string_view what) {
    if (indices.size() != b->ndim())
      fail(culprit, "rank",
           cat("\"", b->name, "\" has ", b->ndim(), " dimensions, but ", indices.size(),
               " indices are given"));
    int lanes = 1;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      expr(indices[i]);
      DType t = indices[i]->dtype;
      if (!t.is_integral())
        fail(culprit, "types", cat("index ", i, " of \"", b->name, "\" is ", to_string(t)));
      if (t.lanes > 1 && i + 1 != indices.size())
        fail(culprit, "types",
             cat("index ", i, " of \"", b->name, "\" is a vector; only the last may be"));
      lanes = t.lanes;
    }
    DType want = b->dtype.with_lanes(b->dtype.lanes * lanes);
    if (type != want)
      fail(culprit, "types",
           cat("\"", b->name, "\" holds ", to_string(want), ", but is ", what, " ",
               to_string(type)));
  }

  void scalar_int(const Expr& e, const void* culprit, std::string_view what) {
    if (!e) fail(culprit, "expr", cat(what, " is missing"));
    expr(e);
    if (!e->dtype.is_integral() || !e->dtype.is_scalar())
      fail(culprit, "types", cat(what, " is ", to_string(e->dtype), ", not an integer"));
  }

  void condition(const Expr& e, const void* culprit) {
    if (!e) fail(culprit, "expr", "a condition is missing");
    expr(e);
    if (e->dtype != dtypes::boolean)
      fail(culprit, "types", cat("a condition is ", to_string(e->dtype), ", not bool"));
  }

  // ---- statements

  void stmt(const Stmt& s) {
    if (!s) fail(nullptr, "stmt", "a statement is missing");
    switch (s->kind) {
      case StmtKind::store: {
        const auto* t = as<StoreNode>(s);
        use_buffer(t->buffer, s.get());
        if (const CallNode* c = as_atomic(t)) atomic(t, c);
        else expr(t->value);
        access(t->buffer, t->indices, t->value->dtype, s.get(), "written with");
        if (!writes_.empty()) declared(*writes_.back(), t->buffer, s.get(), "written");
        break;
      }
      case StmtKind::seq:
        for (const Stmt& child : as<SeqNode>(s)->stmts) stmt(child);
        break;
      case StmtKind::for_: {
        const auto* f = as<ForNode>(s);
        scalar_int(f->min, s.get(), "the begin of a loop");
        scalar_int(f->extent, s.get(), "the extent of a loop");
        present(f->var, s.get());
        if (f->min->dtype != f->var->dtype || f->extent->dtype != f->var->dtype) {
          fail(s.get(), "types",
               cat("\"", f->var->name, "\" is ", to_string(f->var->dtype), ", its range ",
                   to_string(f->min->dtype), " and ", to_string(f->extent->dtype)));
        }
        if ((f->for_kind == ForKind::bound) == f->axis.empty())
          fail(s.get(), "axis",
               cat("the loop over \"", f->var->name, "\" ",
                   f->axis.empty() ? "is bound to no axis" : "has an axis but is not bound"));
        define(f->var, s.get(), Origin::loop);
        stmt(f->body);
        undefine(f->var);
        break;
      }
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        condition(t->condition, s.get());
        stmt(t->then_case);
        if (t->else_case) stmt(t->else_case);
        break;
      }
      case StmtKind::while_:
        condition(as<WhileNode>(s)->condition, s.get());
        stmt(as<WhileNode>(s)->body);
        break;
      case StmtKind::let: {
        const auto* t = as<LetStmtNode>(s);
        expr(t->value);
        present(t->var, s.get());
        if (t->var->dtype != t->value->dtype)
          fail(s.get(), "types",
               cat("\"", t->var->name, "\" is ", to_string(t->var->dtype), ", its value ",
                   to_string(t->value->dtype)));
        define(t->var, s.get(), Origin::loop);
        stmt(t->body);
        undefine(t->var);
        break;
      }
      case StmtKind::assert_: condition(as<AssertNode>(s)->condition, s.get()); break;
      case StmtKind::evaluate: expr(as<EvaluateNode>(s)->value); break;
      case StmtKind::allocate: {
        const auto* t = as<AllocateNode>(s);
        add_buffer(t->buffer, s.get());
        buffer(t->buffer);
        local_.insert(t->buffer.get());
        stmt(t->body);
        buffers_hidden(t->buffer);
        break;
      }
      case StmtKind::block_realize: block(as<BlockRealizeNode>(s), s); break;
      case StmtKind::launch: {
        const auto* t = as<LaunchNode>(s);
        for (const LaunchAxis& axis : t->axes) {
          scalar_int(axis.extent, s.get(), "an extent of a launch");
          if (axis.axis.empty())
            fail(s.get(), "axis", cat("an axis of the kernel \"", t->name, "\" has no name"));
          present(axis.var, s.get());
          if (!axis.var->dtype.is_int())
            fail(s.get(), "types",
                 cat("\"", axis.var->name, "\" is ", to_string(axis.var->dtype),
                     ", not an integer"));  // may be narrower than its extent
        }
        for (std::size_t i = 0; i < t->axes.size(); ++i) {
          for (std::size_t k = 0; k < i; ++k) {
            if (t->axes[i].axis == t->axes[k].axis)
              fail(
                  s.get(), "axis",
                  cat("the kernel \"", t->name, "\" has the axis \"", t->axes[i].axis, "\" twice"));
          }
          define(t->axes[i].var, s.get(), Origin::loop);
        }
        stmt(t->body);
        for (const LaunchAxis& axis : t->axes) undefine(axis.var);
        break;
      }
      case StmtKind::async: stmt(as<AsyncNode>(s)->body); break;
      case StmtKind::wait:
        scalar_int(as<WaitNode>(s)->outstanding, s.get(), "the count of a wait");
        if (!tokens_.count(as<WaitNode>(s)->token.get()))
          fail(s.get(), "token",
               cat("nothing signals the token \"", as<WaitNode>(s)->token->name, "\""));
        break;
      case StmtKind::collective: {
        const auto* c = as<CollectiveNode>(s);
        region(c->dst, s.get()), region(c->src, s.get());
        if (c->axes.empty()) fail(s.get(), "axis", "a collective among no axis");
        if (c->dst.buffer->dtype != c->src.buffer->dtype)
          fail(s.get(), "types",
               cat("a collective from ", to_string(c->src.buffer->dtype), " to ",
                   to_string(c->dst.buffer->dtype)));
        bool reducing =
            c->collective == CollectiveKind::reduce || c->collective == CollectiveKind::all_reduce;
        if (reducing != bool(c->reducer))
          fail(s.get(), "reducer",
               reducing ? "a reducing collective has no reducer"
                        : "a collective that does not reduce has a reducer");
        if (c->root) scalar_int(c->root, s.get(), "the root of a collective");
        break;
      }
    }
  }

  void buffers_hidden(const Buffer& b) {
    buffers_.erase(b.get());
    gone_.insert(b.get());
  }

  void region(const BufferRegion& r, const void* culprit) {
    use_buffer(r.buffer, culprit);
    if (r.region.size() != r.buffer->ndim())
      fail(culprit, "rank",
           cat("\"", r.buffer->name, "\" has ", r.buffer->ndim(),
               " dimensions, but the region has ", r.region.size()));
    for (const Range& x : r.region)
      scalar_int(x.min, culprit, "the begin of a region"),
          scalar_int(x.extent, culprit, "the extent of a region");
  }

  /// An access inside a block with iterators must be of a buffer that its regions name, or of a
  /// local one.
  void declared(const std::unordered_set<const BufferNode*>& list, const Buffer& b,
                const void* culprit, std::string_view what) {
    if (list.count(b.get()) || local_.count(b.get())) return;
    fail(culprit, "block.region",
         cat("\"", b->name, "\" is ", what, " here, but the block's regions do not say so"),
         cat("add it to the block's ", what == "read" ? "reads" : "writes"));
  }

  void block(const BlockRealizeNode* r, const Stmt& s) {
    const Block& b = r->block;
    if (b->iters.size() != r->iter_values.size())
      fail(s.get(), "block.bindings",
           cat("block \"", b->name, "\" has ", b->iters.size(), " iterators and ",
               r->iter_values.size(), " bindings"));
    for (std::size_t i = 0; i < b->iters.size(); ++i) {
      const IterVar& iter = b->iters[i];
      scalar_int(r->iter_values[i], s.get(), "a binding");
      scalar_int(iter.dom.min, s.get(), "the begin of a domain");
      scalar_int(iter.dom.extent, s.get(), "the extent of a domain");
      present(iter.var, s.get());
      DType t = iter.var->dtype;
      if (r->iter_values[i]->dtype != t || iter.dom.min->dtype != t ||
          iter.dom.extent->dtype != t) {
        fail(s.get(), "types",
             cat("the iterator \"", iter.var->name, "\" is ", to_string(t), ", its binding ",
                 to_string(r->iter_values[i]->dtype), ", its domain ",
                 to_string(iter.dom.extent->dtype)));
      }
    }
    condition(r->predicate, s.get());
    if (b->id && !ids_.insert(b->id).second)
      fail(b.get(), "block.id", cat("two blocks have the identity of \"", b->name, "\""),
           "copy statements with deep_copy");

    bool opaque = b->iters.empty();  // such a block may speak of the loops around it
    std::size_t outer_barrier = barrier_;
    ++block_depth_;
    if (!opaque) barrier_ = block_depth_;
    for (const IterVar& iter : b->iters) define(iter.var, s.get(), Origin::iter);
    std::unordered_set<const BufferNode*> reads, writes;
    for (const BufferRegion& x : b->reads) region(x, b.get()), reads.insert(x.buffer.get());
    for (const BufferRegion& x : b->writes) region(x, b.get()), writes.insert(x.buffer.get());
    reads.insert(writes.begin(), writes.end());  // what a block writes it may read again
    for (const Buffer& a : b->alloc_buffers) {
      add_buffer(a, b.get());
      buffer(a);
      local_.insert(a.get());
    }
    for (const MatchBuffer& m : b->match_buffers) {
      region(m.source, b.get());
      add_buffer(m.buffer, b.get());
      open_shape(m.buffer);
      buffer(m.buffer);
      if (m.buffer->dtype != m.source.buffer->dtype)
        fail(b.get(), "types",
             cat("\"", m.buffer->name, "\" is ", to_string(m.buffer->dtype), ", its source ",
                 to_string(m.source.buffer->dtype)));
      local_.insert(m.buffer.get());
    }
    if (!opaque) reads_.push_back(&reads), writes_.push_back(&writes);
    if (b->init) stmt(b->init);
    if (!b->body) fail(b.get(), "body", cat("block \"", b->name, "\" has no body"));
    stmt(b->body);
    if (!opaque) reads_.pop_back(), writes_.pop_back();
    for (const Buffer& a : b->alloc_buffers) buffers_hidden(a);
    for (const MatchBuffer& m : b->match_buffers) buffers_hidden(m.buffer);
    for (const IterVar& iter : b->iters) undefine(iter.var);
    --block_depth_;
    barrier_ = outer_barrier;
  }

  const IRModuleNode* module_;
  std::unordered_map<const VarNode*, Definition> vars_;
  std::unordered_set<const BufferNode*> buffers_, gone_, local_;
  std::unordered_set<const VarNode*> tokens_;
  std::unordered_set<std::uint64_t> ids_;
  std::vector<const std::unordered_set<const BufferNode*>*> reads_, writes_;
  std::size_t block_depth_ = 0,
              barrier_ = 0;  // loops defined at a smaller depth than barrier_ are hidden
};

Verdict verify_one(const PrimFunc& f, const IRModuleNode* module) {
  if (!f) return Refusal{"verify.body", "there is no function", {}, {}, {}};
  try {
    Verifier(module).func(f);
  } catch (Found& found) {
    PrintOptions options;
    options.culprit = found.culprit;
    options.header = false;
    options.context = 3;
    bool hole = found.refusal.code == "verify.expr" || found.refusal.code == "verify.stmt" ||
                found.refusal.code == "verify.buffer" || found.refusal.code == "verify.var";
    bool printable =
        found.culprit != nullptr && f->body && !hole;  // a tree with holes is not printed
    std::string text = printable ? print(f, options) : "";
    if (!text.empty()) text.pop_back();  // the last line's end
    if (printable) found.refusal.at(cat("in \"", f->name, "\""), text);
    else found.refusal.at("", cat("in \"", f->name, "\""));
    return found.refusal;
  }
  return std::nullopt;
}

}  // namespace

Verdict verify(const PrimFunc& f) { return verify_one(f, nullptr); }

Verdict verify(const IRModule& m) {
  std::unordered_set<std::string> names;
  for (const auto& [name, f] : m->functions) {
    if (!names.insert(name).second)
      return Refusal{"verify.function.redefined",
                     cat("the module has two functions \"", name, "\""),
                     {},
                     {},
                     {}};
    if (Verdict v = verify_one(f, m.get())) return v;
  }
  return std::nullopt;
}

}  // namespace weft::ir
