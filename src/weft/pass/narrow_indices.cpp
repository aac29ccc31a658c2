// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/narrow_indices.h"

#include <limits>
#include <utility>

#include "weft/arith/analyzer.h"
#include "weft/ir/attributes.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kHigh = std::numeric_limits<std::int32_t>::max();

bool is_index(const Expr& e) { return e->dtype.is_int() && e->dtype.bits == 64; }

class Narrow final : public Rewriter {
 public:
  /// `vouched`: the function has the attribute kNarrowPositions.
  explicit Narrow(bool vouched) : vouched_(vouched) {}
  using Rewriter::rewrite;

  Expr rewrite(const Expr& e) override {
    if (!e) return e;
    if (is_compare(e->kind)) {
      const auto* b = as<BinaryNode>(e);
      if (is_index(b->a)) {
        const bool before = std::exchange(in_position_, true);
        Expr x = narrow(b->a), y = x ? narrow(b->b) : nullptr;
        in_position_ = before;
        if (x && y) return make_binary(e->kind, x, y);
      }
    }
    if (is_index(e) && e->kind != ExprKind::int_imm) {
      if (Expr n = narrow(e)) return cast(e->dtype, n);
    }
    return Rewriter::rewrite(e);
  }

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    return make_ref<const LoadNode>(l->dtype, l->buffer, indices(l->indices));
  }

  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    return make_ref<const StoreNode>(t->buffer, rewrite(t->value), indices(t->indices));
  }

  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    const bool index = is_index(t->var), before = std::exchange(in_position_, true);
    Expr low = index ? narrow(t->min) : nullptr, extent = index ? narrow(t->extent) : nullptr;
    bool fits = low && extent && fits_position(analyzer_.bounds(t->min + t->extent));
    in_position_ = before;
    const arith::Analyzer::Scope inside(analyzer_);
    analyzer_.bind(t->var, {t->min, t->extent});
    if (!fits) {
      own_.insert(t->var.get());
      return Rewriter::rewrite_for(s);
    }
    Var var = define(t->var);
    return make_for(var, low, extent, rewrite(t->body), t->for_kind, t->axis, t->annotations);
  }

  Stmt rewrite_default(const Stmt& s) override {
    if (const auto* t = as<LaunchNode>(s)) {
      std::vector<LaunchAxis> axes = t->axes;
      for (LaunchAxis& axis : axes) {
        analyzer_.bind(axis.var, {make_int(0), axis.extent});
        axis.var = define(axis.var);  // no machine has 2^31 points on an axis
        axis.extent = cast(dtypes::int32, rewrite(axis.extent));
      }
      const bool before = std::exchange(in_kernel_, true);
      Stmt body = rewrite(t->body);
      in_kernel_ = before;
      return make_ref<const LaunchNode>(t->name, std::move(axes), std::move(body));
    }
    if (const auto* t = as<LetStmtNode>(s); t && is_index(t->value)) {
      if (Expr value = narrow(t->value)) {
        analyzer_.bind(t->var, t->value);
        Var var = define(t->var);
        return let_stmt(var, value, rewrite(t->body));
      }
      own_.insert(t->var.get());
    }
    return Rewriter::rewrite_default(s);
  }

 private:
  static bool in_range(const arith::Bounds& b) { return b.min >= kLow && b.max <= kHigh; }
  /// Positions of kernels (indices, bounds of loops, what is compared with them), not values.
  bool vouched() const { return vouched_ && in_kernel_ && (in_index_ || in_position_); }
  bool fits_position(const arith::Bounds& b) const { return vouched() || in_range(b); }

  /// Bounds of an index, which never leaves its type, or of a value, which may wrap.
  arith::Bounds reach(const Expr& e) const {
    return in_index_ ? analyzer_.bounds(e) : analyzer_.value_bounds(e);
  }

  Var define(const Var& old) {
    Var var = make_var(old->name, dtypes::int32);
    vars_[old.get()] = var;
    return var;
  }

  Exprs indices(const Exprs& list) {
    Exprs out;
    const bool before = std::exchange(in_index_, true);
    for (const Expr& i : list) {
      Expr n = is_index(i) ? narrow(i) : nullptr;
      out.push_back(n ? n : rewrite(i));
    }
    in_index_ = before;
    return out;
  }

  /// The int32 form, or null.
  Expr narrow(const Expr& e) {
    if (!is_index(e)) return nullptr;
    switch (e->kind) {
      case ExprKind::int_imm: {
        std::int64_t v = as<IntImmNode>(e)->value;
        return v >= kLow && v <= kHigh ? make_int(v, dtypes::int32) : nullptr;
      }
      case ExprKind::var: {
        auto found = vars_.find(as<VarNode>(e));
        if (found != vars_.end()) return found->second;
        return vouched() && !own_.count(as<VarNode>(e)) ? cast(dtypes::int32, e) : nullptr;
      }
      case ExprKind::cast: {
        const Expr& v = as<CastNode>(e)->value;
        if (!v->dtype.is_int() || v->dtype.bits > 32) return nullptr;
        return cast(dtypes::int32.with_lanes(e->dtype.lanes), rewrite(v));
      }
      case ExprKind::ramp: {
        const auto* r = as<RampNode>(e);
        Expr base = narrow(r->base), stride = narrow(r->stride);
        bool fits =
            base && stride && fits_position(reach(r->base + r->stride * (e->dtype.lanes - 1)));
        return fits ? ramp(base, stride, e->dtype.lanes) : nullptr;
      }
      case ExprKind::broadcast: {
        Expr v = narrow(as<BroadcastNode>(e)->value);
        return v ? broadcast(v, e->dtype.lanes) : nullptr;
      }
      case ExprKind::call: {
        const auto* c = as<CallNode>(e);
        if (c->op != "shift_right" && c->op != "bitwise_and" && c->op != "bitwise_xor")
          return nullptr;
        Expr a = narrow(c->args[0]), b = narrow(c->args[1]);
        return a && b ? call(c->op, {a, b}) : nullptr;
      }
      default: {
        const auto* b = as<BinaryNode>(e);
        if (!b || !e->dtype.is_scalar() || !fits_position(reach(e))) return nullptr;
        Expr x = narrow(b->a), y = x ? narrow(b->b) : nullptr;
        return x && y ? make_binary(e->kind, x, y) : nullptr;
      }
    }
  }

  Expr rewrite_var(const Expr& e) override {
    auto found = vars_.find(as<VarNode>(e));
    return found == vars_.end() ? e : cast(e->dtype, found->second);
  }

  arith::Analyzer analyzer_;
  std::unordered_map<const VarNode*, Var> vars_;
  std::unordered_set<const VarNode*> own_;  // of the kernel, 64 bits wide
  const bool vouched_;
  bool in_kernel_ = false, in_position_ = false;
  bool in_index_ = false;  // an index is rewritten
};

}  // namespace

PrimFunc narrow_indices(const PrimFunc& f) {
  Stmt body = Narrow(has_flag(f->attrs, kNarrowPositions)).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
