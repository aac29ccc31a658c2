// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/unify_thread_binding.h"

#include <map>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/pass/bound_repeats.h"
#include "weft/pass/bound_twice.h"

namespace weft::pass {

using namespace ir;

namespace {

std::string extent_text(const Expr& e) {
  std::int64_t n = 0;
  return is_const_int(e, &n) ? cat(n) : std::string("a run-time value");
}

class ThreadsOfKernel final : public Rewriter {
 public:
  ThreadsOfKernel(const TargetInfo& machine, const Stmt& s) : machine_(machine) {
    std::unordered_set<const VarNode*> inner;
    for_each_stmt(s, [&](const Stmt& t) {
      if (const auto* loop = as<ForNode>(t)) {
        if (loop->for_kind == ForKind::bound) add(loop, inner);
        inner.insert(loop->var.get());
      }
    });
    check_groups();
    check_bound_twice(s, machine);
    check_bound_repeats(s, machine);
  }

  Stmt launch(const std::string& name, const Stmt& s) {
    Stmt body = rewrite(s);
    std::vector<LaunchAxis> axes;
    for (const AxisInfo& row : machine_.axes) {
      if (auto found = axes_.find(row.name); found != axes_.end()) axes.push_back(found->second);
    }
    return make_ref<const LaunchNode>(name, std::move(axes), body);
  }

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = as<ForNode>(s);
    if (loop->for_kind != ForKind::bound || machine_.axis(loop->axis)->is_virtual()) {
      return Rewriter::rewrite_for(s);
    }
    const LaunchAxis& axis = axes_.at(loop->axis);
    VarMap map{{loop->var.get(), cast(loop->var->dtype, axis.var) + loop->min}};
    ++open_[loop->axis];
    Stmt body = rewrite(substitute(loop->body, map));
    --open_[loop->axis];
    return body;
  }

  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    const MemoryInfo* row = machine_.memory(t->buffer->scope);
    Expr guard = make_bool(true);
    for (const auto& [name, axis] : axes_) {
      if (open_[name] > 0 || (row && row->is_private_to(name)) ||
          is_const_int_value(axis.extent, 1))
        continue;
      guard = logical_and(guard, eq(axis.var, make_int(0)));
    }
    return is_const_int_value(guard, 1) ? s : if_then(guard, s);
  }

 private:
  void add(const ForNode* loop, const std::unordered_set<const VarNode*>& inner) {
    const AxisInfo* row = machine_.axis(loop->axis);
    if (!row) {
      std::vector<std::string> known;
      for (const AxisInfo& r : machine_.axes) known.push_back(r.name);
      throw Error(ErrorKind::lower, "lower.axis.unknown",
                  cat("loop \"", loop->var->name, "\" is bound to \"", loop->axis, "\", which ",
                      machine_.name, " does not have"))
          .note(cat("axes of ", machine_.name, ": ", known.empty() ? "none" : join(known)))
          .help(did_you_mean(loop->axis, known));
    }
    Expr extent = arith::simplify(loop->extent);
    if (row->is_virtual()) return;
    if (uses_any(extent, inner)) {
      throw Error(ErrorKind::lower, "lower.axis.extent",
                  cat("the extent of loop \"", loop->var->name, "\", bound to ", loop->axis,
                      ", changes inside the kernel"));
    }
    std::int64_t n = 0;
    if (is_const_int(extent, &n) && row->limit > 0 && n > row->limit) {
      throw Error(ErrorKind::lower, "lower.axis.limit",
                  cat("loop \"", loop->var->name, "\" has extent ", n, " but ", loop->axis, " of ",
                      machine_.name, " holds at most ", row->limit))
          .help(cat("split the loop by at most ", row->limit));
    }
    auto [it, fresh] = axes_.try_emplace(
        loop->axis, LaunchAxis{loop->axis, make_var(loop->axis, dtypes::int64), extent});
    if (!fresh && !is_const_int_value(arith::simplify(it->second.extent - extent), 0)) {
      throw Error(ErrorKind::lower, "lower.axis.extent",
                  cat("loops bound to ", loop->axis, " in one kernel must agree: \"",
                      loop->var->name, "\" has extent ", extent_text(extent), ", another has ",
                      extent_text(it->second.extent)))
          .help(cat("split \"", loop->var->name, "\" by the other extent before binding"));
    }
  }

  void check_groups() const {
    std::map<std::string, std::int64_t> products;
    for (const auto& [name, axis] : axes_) {
      const AxisInfo* row = machine_.axis(name);
      std::int64_t n = 0;
      if (row->group.empty() || row->group_limit <= 0 || !is_const_int(axis.extent, &n)) continue;
      std::int64_t& product = products.try_emplace(row->group, 1).first->second;
      product *= n;
      if (product > row->group_limit) {
        throw Error(ErrorKind::lower, "lower.axis.group_limit",
                    cat("the kernel asks for ", product, " points of ", row->group, " but ",
                        machine_.name, " holds at most ", row->group_limit, " in one group"));
      }
    }
  }

  const TargetInfo& machine_;
  std::map<std::string, LaunchAxis> axes_;
  std::map<std::string, int> open_;
};

bool has_bound(const Stmt& s) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) {
    if (const auto* loop = as<ForNode>(t)) found = found || loop->for_kind == ForKind::bound;
  });
  return found;
}

bool touches_memory(const Stmt& s) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) {
    found = found || t->kind == StmtKind::store || t->kind == StmtKind::collective;
  });
  for_each_expr(s, [&](const Expr& e) { found = found || e->kind == ExprKind::load; });
  return found;
}

class Host final : public Rewriter {
 public:
  Host(const TargetInfo& machine, std::string function)
      : machine_(machine), function_(std::move(function)) {}

  Stmt rewrite(const Stmt& s) override {
    if (!s || s->kind == StmtKind::launch) return s;  // a kernel already
    bool kernels = false;
    for_each_stmt(s, [&](const Stmt& t) { kernels = kernels || t->kind == StmtKind::launch; });
    if (kernels) return Rewriter::rewrite(s);
    if (const auto* loop = as<ForNode>(s); loop && loop->for_kind == ForKind::bound)
      return launch(s);
    if (!has_bound(s)) {
      if (const auto* a = as<AllocateNode>(s); a && is_global(a->buffer))
        return Rewriter::rewrite(s);
      return touches_memory(s) && s->kind != StmtKind::seq ? launch(s) : Rewriter::rewrite(s);
    }
    if (const auto* a = as<AllocateNode>(s); a && !is_global(a->buffer)) {
      const MemoryInfo* row = machine_.memory(a->buffer->scope);
      if (!binds_private_axis(s, row)) return launch(s);  // one group: one kernel holds all of it
      std::string around = row && !row->private_to.empty()
                               ? cat("bind a loop around all its uses to \"", row->private_to[0],
                                     "\", which makes them one kernel, or ")
                               : std::string();
      throw Error(ErrorKind::lower, "lower.scope.host",
                  cat("\"", a->buffer->name, "\" of scope \"", a->buffer->scope,
                      "\" is used by more than one kernel of ", function_))
          .help(cat(around, "set its scope to \"global\""));
    }
    return Rewriter::rewrite(s);
  }
  using Rewriter::rewrite;

 private:
  bool is_global(const Buffer& b) const {
    const MemoryInfo* row = machine_.memory(b->scope);
    return !row || row->private_to.empty();
  }
  /// Whether some loop inside is bound to an axis whose points have copies of this memory of their
  /// own.
  static bool binds_private_axis(const Stmt& s, const MemoryInfo* row) {
    bool found = false;
    for_each_stmt(s, [&](const Stmt& t) {
      const auto* loop = as<ForNode>(t);
      found = found || (loop && loop->for_kind == ForKind::bound && row->is_private_to(loop->axis));
    });
    return found;
  }
  Stmt launch(const Stmt& s) {
    return ThreadsOfKernel(machine_, s).launch(cat(function_, "_kernel", count_++), s);
  }

  const TargetInfo& machine_;
  std::string function_;
  int count_ = 0;
};

}  // namespace

PrimFunc unify_thread_binding(const PrimFunc& f, const TargetInfo& machine) {
  bool bound = has_bound(f->body);
  if (!bound && machine.axes.empty()) return f;
  if (bound && machine.axes.empty()) ThreadsOfKernel(machine, f->body);  // refuses, naming the axis
  Stmt body = Host(machine, f->name).rewrite(f->body);
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
