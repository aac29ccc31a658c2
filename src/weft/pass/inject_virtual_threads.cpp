// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/inject_virtual_threads.h"

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

using Whole = std::function<bool(const Stmt&)>;

class Expand final : public Rewriter {
 public:
  Expand(const TargetInfo& machine, const ForNode* loop, const Whole& whole)
      : machine_(machine), loop_(loop), whole_(whole) {}

  Stmt push(const Stmt& s) {
    if (!needs(s)) return s;
    if (whole_ && whole_(s)) return replicate(s);
    switch (s->kind) {
      case StmtKind::seq: {
        std::vector<Stmt> out;
        for (const Stmt& child : as<SeqNode>(s)->stmts) out.push_back(push(child));
        return seq(std::move(out));
      }
      case StmtKind::allocate: {
        const auto* a = as<AllocateNode>(s);
        const MemoryInfo* row = machine_.memory(a->buffer->scope);
        if (!row || !row->is_private_to(loop_->axis))
          return allocate(a->buffer, push(a->body), a->annotations);
        auto wide = edit(a->buffer);
        if (!wide->strides.empty())
          wide->strides.insert(wide->strides.begin(), wide->strides[0] * wide->shape[0]);
        wide->shape.insert(wide->shape.begin(), loop_->extent);
        Buffer buffer = wide;
        wide_[a->buffer.get()] = buffer;
        return allocate(buffer, push(a->body), a->annotations);
      }
      case StmtKind::for_: {
        const auto* t = as<ForNode>(s);
        if (needs(t->min) || needs(t->extent)) return replicate(s);
        return make_for(t->var, t->min, t->extent, push(t->body), t->for_kind, t->axis,
                        t->annotations);
      }
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        if (needs(t->condition)) return replicate(s);
        return if_then(t->condition, push(t->then_case),
                       t->else_case ? push(t->else_case) : nullptr);
      }
      default: return replicate(s);
    }
  }

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    auto found = wide_.find(l->buffer.get());
    if (found == wide_.end()) return Rewriter::rewrite_load(e);
    return load(found->second, widened(l->indices));
  }
  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    auto found = wide_.find(t->buffer.get());
    if (found == wide_.end()) return Rewriter::rewrite_store(s);
    return store(found->second, rewrite(t->value), widened(t->indices));
  }
  BufferRegion rewrite_region(const BufferRegion& region) override {
    BufferRegion out = Rewriter::rewrite_region(region);
    if (auto found = wide_.find(region.buffer.get()); found != wide_.end()) {
      out.buffer = found->second;
      out.region.insert(out.region.begin(), {loop_->var - loop_->min, make_int(1)});
    }
    return out;
  }

 private:
  Exprs widened(const Exprs& indices) {
    Exprs out{Expr(loop_->var) - loop_->min};
    for (const Expr& i : indices) out.push_back(rewrite(i));
    return out;
  }
  bool needs(const Expr& e) const {
    bool found = uses_var(e, loop_->var.get());
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = as<LoadNode>(x)) found = found || wide_.count(l->buffer.get());
    });
    return found;
  }
  bool needs(const Stmt& s) const {
    if (free_vars(s).count(loop_->var.get())) return true;
    bool found = false;
    for (const BufferNode* b : used_buffers(s)) found = found || wide_.count(b);
    for_each_stmt(s, [&](const Stmt& t) {
      const auto* a = as<AllocateNode>(t);
      if (!a) return;
      const MemoryInfo* row = machine_.memory(a->buffer->scope);
      found = found || (row && row->is_private_to(loop_->axis));
    });
    return found;
  }
  Stmt replicate(const Stmt& s) {
    Stmt body = rewrite(s);
    Var var = make_var(loop_->var->name, loop_->var->dtype);
    Stmt copy = deep_copy(substitute(body, {{loop_->var.get(), var}}));
    return make_for(var, loop_->min, loop_->extent, copy, ForKind::unrolled);
  }

  const TargetInfo& machine_;
  const ForNode* loop_;
  const Whole& whole_;
  std::unordered_map<const BufferNode*, Buffer> wide_;
};

class Inject final : public Rewriter {
 public:
  Inject(const TargetInfo& machine, const Whole& whole) : machine_(machine), whole_(whole) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_for(s);
    const auto* loop = as<ForNode>(inner);
    if (loop->for_kind != ForKind::bound) return inner;
    const AxisInfo* row = machine_.axis(loop->axis);
    if (!row || !row->is_virtual()) return inner;
    if (!is_const_int(loop->extent)) {
      throw Error(ErrorKind::lower, "lower.virtual.extent",
                  cat("loop \"", loop->var->name, "\" is bound to ", loop->axis,
                      " and needs a constant extent"));
    }
    return Expand(machine_, loop, whole_).push(loop->body);
  }

 private:
  const TargetInfo& machine_;
  const Whole& whole_;
};

}  // namespace

PrimFunc inject_virtual_threads(const PrimFunc& f, const TargetInfo& machine, const Whole& whole) {
  Stmt body = Inject(machine, whole).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
