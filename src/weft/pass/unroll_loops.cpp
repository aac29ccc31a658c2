// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/unroll_loops.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::int64_t kMany = 1 << 30;

/// Statement instances of one execution, or a large number when a range is not constant.
/// `written`: the statements of the text instead, where only marked loops are written out.
std::int64_t steps_of(const Stmt& s, bool written = false) {
  if (!s) return 0;
  switch (s->kind) {
    case StmtKind::seq: {
      std::int64_t total = 0;
      for (const Stmt& child : as<SeqNode>(s)->stmts)
        total = std::min(kMany, total + steps_of(child, written));
      return total;
    }
    case StmtKind::for_: {
      const auto* t = as<ForNode>(s);
      const std::int64_t body = steps_of(t->body, written);
      std::int64_t n = 1;
      if (written && t->for_kind != ForKind::unrolled) return std::min(kMany, body + 1);
      if (!is_const_int(t->extent, &n) && !written) return kMany;
      return n > 0 && body > kMany / n ? kMany : std::max<std::int64_t>(n, 0) * body;
    }
    case StmtKind::if_:
      return std::min(kMany, steps_of(as<IfNode>(s)->then_case, written) +
                                 steps_of(as<IfNode>(s)->else_case, written));
    case StmtKind::let: return steps_of(as<LetStmtNode>(s)->body, written);
    case StmtKind::allocate: return steps_of(as<AllocateNode>(s)->body, written);
    case StmtKind::launch: return steps_of(as<LaunchNode>(s)->body, written);
    case StmtKind::while_: return written ? steps_of(as<WhileNode>(s)->body, written) + 1 : kMany;
    default: return 1;
  }
}

class UnrollLoops final : public Rewriter {
 public:
  explicit UnrollLoops(const UnrollOptions& options) : options_(options) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    if (find_annotation(t->annotations, "instruction")) return s;  // printed as one
    std::int64_t saved = auto_steps_;
    if (const Json* n = find_annotation(t->annotations, "pragma_auto_unroll_max_step"))
      auto_steps_ = n->as_int();
    Stmt inner = Rewriter::rewrite_for(s);
    bool automatic = auto_steps_ > 0;
    std::int64_t budget = auto_steps_;
    auto_steps_ = saved;
    t = as<ForNode>(inner);
    std::int64_t n = 0;
    bool constant = is_const_int(t->extent, &n);
    bool marked = t->for_kind == ForKind::unrolled;
    if (automatic && t->for_kind == ForKind::serial && constant && steps_of(inner) <= budget)
      marked = true;
    if (!marked) return inner;
    const std::int64_t body = std::max<std::int64_t>(steps_of(t->body, true), 1);
    if (constant && n > options_.max_statements / body) {
      const std::string why =
          cat(n, " iterations of ", body, body == 1 ? " statement" : " statements",
              " are more than the ", options_.max_statements, " that are written out");
      return make_for(t->var, t->min, t->extent, t->body, ForKind::serial, "",
                      with_annotation(t->annotations, kNotUnrolled, why));
    }
    if (options_.how == Unroll::mark || !constant) {
      return make_for(t->var, t->min, t->extent, t->body, ForKind::unrolled, "",
                      with_annotation(t->annotations, "pragma_auto_unroll_max_step", nullptr));
    }
    std::vector<Stmt> out;
    for (std::int64_t i = 0; i < n; ++i) {
      out.push_back(
          deep_copy(substitute(t->body, {{t->var.get(), t->min + make_int(i, t->var->dtype)}})));
    }
    return seq(std::move(out));
  }

 private:
  UnrollOptions options_;
  std::int64_t auto_steps_ = 0;
};

}  // namespace

PrimFunc unroll_loops(const PrimFunc& f, const UnrollOptions& options) {
  Stmt body = UnrollLoops(options).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
