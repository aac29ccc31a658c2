// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/host_copy.h"

#include <algorithm>
#include <cstring>

#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/stages/linear.h"

namespace weft::vta {

using namespace ir;
using stages::Axis;
using stages::Linear;
using stages::SplitWish;

std::int64_t HostCopy::points() const {
  std::int64_t n = 1;
  for (std::int64_t e : extents) n *= std::max<std::int64_t>(e, 0);
  return n;
}

namespace {

/// One nest around one store, as a HostCopy.
class Reader {
 public:
  Reader(const PrimFunc& f, const StoreNode* s, std::vector<Axis> axes,
         std::vector<Expr> conditions)
      : f_(f), s_(s), axes_(std::move(axes)), conditions_(std::move(conditions)) {}

  HostCopy run() {
    Expr value = s_->value;
    std::int64_t otherwise = 0;
    std::vector<Expr> chosen;
    while (true) {
      while (const auto* c = as<CastNode>(value)) value = c->value;
      const auto* call = as<CallNode>(value);
      const auto* choose = as<SelectNode>(value);
      Expr condition, a, b;
      if (call && call->op == "if_then_else") {
        condition = call->args[0], a = call->args[1], b = call->args[2];
      } else if (choose) {
        condition = choose->condition, a = choose->a, b = choose->b;
      } else {
        break;
      }
      while (const auto* c = as<CastNode>(b)) b = c->value;
      std::int64_t n = 0;
      if (!is_const_int(b, &n) || (!chosen.empty() && n != otherwise))
        refuse(cat("chooses between ", print(a), " and ", print(b)),
               "the other value is a constant");
      chosen.push_back(condition), otherwise = n, value = a;
    }
    std::int64_t constant = 0;
    constant_ = is_const_int(value, &constant) && (chosen.empty() || constant == otherwise);
    out_.fill = constant_ || !chosen.empty();
    if (out_.fill && !constant_ && !conditions_.empty())
      refuse("is guarded and chooses", "one condition around the store, or one inside it");
    out_.otherwise = constant_ ? constant : otherwise;
    if (!constant_) {
      for (const Expr& c : chosen) conditions_.push_back(c);
      collect(value, 0);
    }
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& a, const Part& b) { return a.shift < b.shift; });
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      bool byte = parts_[i].load->buffer->dtype.bytes() == 1;
      if (parts_[i].shift != static_cast<int>(8 * i) || (parts_.size() > 1 && !byte))
        refuse(cat("computes ", print(s_->value)), "the host copies and joins bytes, no more");
    }
    // Splits until every index is a sum.
    for (int tries = 0; tries < 16; ++tries) {
      constraints_ = {};
      if (analyse()) return std::move(out_);
      if (!constraints_.var) break;
      split();
    }
    refuse("has an index that is not affine in its loops");
  }

 private:
  struct Part {
    const LoadNode* load;
    int shift;
  };

  [[noreturn]] void refuse(std::string what, std::string note = {}) const {
    Error error(ErrorKind::lower, "vta.host.statement",
                cat("the copy into \"", s_->buffer->name, "\" ", what));
    error.at("statement", print(Stmt(s_)));
    if (!note.empty()) error.note(std::move(note));
    throw error.help("arithmetic belongs into vta.acc");
  }

  void collect(const Expr& e, int shift) {
    std::int64_t n = 0;
    if (const auto* c = as<CastNode>(e)) return collect(c->value, shift);
    if (const auto* l = as<LoadNode>(e)) {
      parts_.push_back({l, shift});
      return;
    }
    if (const auto* call = as<CallNode>(e)) {
      if (call->op == "bitwise_or")
        return collect(call->args[0], shift), collect(call->args[1], shift);
      if (call->op == "shift_left" && is_const_int(call->args[1], &n) && n > 0 && n < 32)
        return collect(call->args[0], shift + static_cast<int>(n));
      if (call->op == "bitwise_and" && is_const_int_value(call->args[1], 255))
        return collect(call->args[0], shift);
    }
    refuse(cat("computes ", print(e)), "the host copies and joins bytes, no more");
  }

  std::optional<HostCopy::Index> index(const Expr& e) {
    std::optional<Linear> l = linear(e, axes_, &constraints_);
    if (!l) return std::nullopt;
    return index(*l);
  }
  HostCopy::Index index(const Linear& l) const {
    HostCopy::Index out{l.base, {}};
    for (const Axis& a : axes_) out.step.push_back(l.coeff(a.var.get()));
    return out;
  }

  int param(const BufferNode* b) const {
    for (std::size_t i = 0; i < f_->params.size(); ++i) {
      if (f_->params[i].buffer.get() == b) return static_cast<int>(i);
    }
    refuse(cat("uses \"", b->name, "\", which is not in global memory"));
  }

  bool guard(const Expr& e) {
    const auto* c = as<BinaryNode>(e);
    if (c && c->kind == ExprKind::and_) return guard(c->a) && guard(c->b);
    if (const auto* call = as<CallNode>(e);
        call && (call->op == "likely" || call->op == "bitwise_and"))
      return std::all_of(call->args.begin(), call->args.end(),
                         [&](const Expr& part) { return guard(part); });
    if (const auto* imm = as<IntImmNode>(e); imm && imm->value) return true;
    if (!c || !is_compare(c->kind) || c->kind == ExprKind::ne)
      refuse(cat("depends on ", print(e)), "conditions are comparisons of indices, joined by and");
    std::optional<HostCopy::Index> difference = index(c->a - c->b);
    if (!difference) return false;
    constexpr std::int64_t kFar = std::int64_t{1} << 62;
    HostCopy::Guard g{*difference, -kFar, kFar};
    switch (c->kind) {
      case ExprKind::lt: g.high = 0; break;
      case ExprKind::le: g.high = 1; break;
      case ExprKind::gt: g.low = 1; break;
      case ExprKind::ge: g.low = 0; break;
      default: g.low = 0, g.high = 1; break;
    }
    out_.guards.push_back(std::move(g));
    return true;
  }

  bool analyse() {
    out_.guards.clear(), out_.from.clear(), out_.extents.clear();
    for (const Axis& a : axes_) out_.extents.push_back(a.extent);
    std::optional<HostCopy::Index> to = index(substitute(s_->indices.at(0), map_));
    if (!to) return false;
    out_.to = *to;
    for (const Part& p : parts_) {
      std::optional<HostCopy::Index> from = index(substitute(p.load->indices.at(0), map_));
      if (!from) return false;
      out_.from.push_back(*from);
    }
    for (const Expr& c : conditions_) {
      if (!guard(substitute(c, map_))) return false;
    }
    for (HostCopy::Guard& g : out_.guards) g.skip = constant_;
    for (const auto& [l, extent] : covers_) {
      std::optional<HostCopy::Index> i = index(substitute(l, map_));
      if (!i) return false;
      out_.guards.push_back({*i, 0, extent, true});
    }
    out_.dst = param(s_->buffer.get());
    out_.src.clear();
    if (constant_) {  // what a guard that never holds leaves; nothing is read
      if (s_->buffer->dtype.is_float() && out_.otherwise != 0)
        refuse(cat("computes ", print(s_->value)), "the host copies and joins bytes, no more");
      out_.guards.push_back({{0, std::vector<std::int64_t>(axes_.size())}, 1, 1});
      out_.src = {out_.dst}, out_.from = {out_.to};
      out_.dst_bytes = out_.src_bytes = s_->buffer->dtype.bytes();
      return true;
    }
    for (const Part& p : parts_) out_.src.push_back(param(p.load->buffer.get()));
    DType d = s_->buffer->dtype, f = parts_[0].load->buffer->dtype;
    out_.dst_bytes = d.bytes(), out_.src_bytes = f.bytes(), out_.src_signed = f.is_int();
    if (out_.from.size() > 1 && static_cast<int>(out_.from.size()) != out_.dst_bytes)
      refuse(cat("joins ", out_.from.size(), " bytes into ", to_string(d)));
    if ((d.is_float() || f.is_float()) && !(d == f))
      refuse(cat("converts ", to_string(f), " to ", to_string(d)));
    return true;
  }

  void split() {
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i].var.get() != constraints_.var) continue;
      Axis old = axes_[i];
      std::int64_t reach = old.extent + constraints_.offset;
      Axis outer{make_var(old.var->name, old.var->dtype),
                 (reach + constraints_.factor - 1) / constraints_.factor, false},
          inner{make_var(old.var->name, old.var->dtype), constraints_.factor, false};
      Expr both = outer.var * constraints_.factor + inner.var - constraints_.offset;
      VarMap one{{old.var.get(), both}};
      for (auto& [v, e] : map_) e = substitute(e, one);
      map_[old.var.get()] = both;
      if (!constraints_.exact) {
        for (auto& [e, n] : covers_) e = substitute(e, one);
        covers_.emplace_back(both, old.extent);  // outside the old loop nothing happens
      }
      axes_[i] = outer;
      axes_.insert(axes_.begin() + static_cast<std::ptrdiff_t>(i) + 1, inner);
      return;
    }
    WEFT_CHECK(false, "a split of a loop that is not there");
  }

  const PrimFunc& f_;
  const StoreNode* s_;
  std::vector<Axis> axes_;
  std::vector<Expr> conditions_;
  std::vector<std::pair<Expr, std::int64_t>> covers_;
  std::vector<Part> parts_;
  bool constant_ = false;  // the same number everywhere
  VarMap map_;
  SplitWish constraints_;
  HostCopy out_;
};

void walk(const PrimFunc& f, const Stmt& s, std::vector<Axis> axes, std::vector<Expr> conditions,
          std::vector<HostCopy>& out) {
  std::int64_t extent = 0;
  switch (s->kind) {
    case StmtKind::seq:
      for (const Stmt& part : as<SeqNode>(s)->stmts) walk(f, part, axes, conditions, out);
      return;
    case StmtKind::launch: return walk(f, as<LaunchNode>(s)->body, axes, conditions, out);
    case StmtKind::for_: {
      const auto* loop = as<ForNode>(s);
      if (is_const_int(loop->extent, &extent) && is_const_int_value(loop->min, 0)) {
        axes.push_back({loop->var, extent, false});
        return walk(f, loop->body, axes, conditions, out);
      }
      break;
    }
    case StmtKind::if_: {
      const auto* i = as<IfNode>(s);
      if (i->else_case) break;
      conditions.push_back(i->condition);
      return walk(f, i->then_case, axes, conditions, out);
    }
    case StmtKind::store:
      out.push_back(Reader(f, as<StoreNode>(s), axes, conditions).run());
      return;
    case StmtKind::evaluate:
      if (is_const_int(as<EvaluateNode>(s)->value)) return;
      break;
    default: break;
  }
  throw Error(ErrorKind::lower, "vta.host.loop",
              cat("kernel \"", f->name, "\" has a statement that is no copy"))
      .at("statement", print(s))
      .note("outside the chip's memories only copies over loops of constant extents are possible");
}

}  // namespace

std::vector<HostCopy> host_copies(const PrimFunc& kernel) {
  std::vector<HostCopy> out;
  walk(kernel, kernel->body, {}, {}, out);
  return out;
}

}  // namespace weft::vta
