// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/loop_checks.h"
#include "weft/schedule/primitives/loops.h"
#include "weft/schedule/primitives/split_tail.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

std::string factors_text(const Factors& factors) {
  std::vector<std::string> out;
  for (const Factor& f : factors) out.push_back(f ? cat(f->value) : "None");
  return cat("[", join(out), "]");
}

/// The extents of the new loops; refuses factors that do not fit.
Verdict infer_extents(const State& s, const Split& step, const ForNode* loop,
                      const arith::Analyzer& analyzer, Exprs& extents) {
  const DType type = loop->var->dtype;
  std::int64_t known = 1;
  std::size_t inferred = npos;
  for (std::size_t i = 0; i < step.factors.size(); ++i) {
    if (!step.factors[i]) {
      if (inferred != npos) {
        Refusal r = refuse(s, "schedule.split.infer",
                           cat("split of ", name_of(loop), " by ", factors_text(step.factors),
                               " leaves more than one factor to be inferred"),
                           loop);
        r.note("legal: at most one None");
        return r;
      }
      inferred = i;
      continue;
    }
    const std::int64_t f = step.factors[i]->value;
    if (f <= 0) {
      Refusal r = refuse(s, "schedule.split.factor",
                         cat("split of ", name_of(loop), " got the factor ", f), loop);
      r.note("legal: factors of at least 1");
      return r;
    }
    if (__builtin_mul_overflow(known, f, &known)) {
      return refuse(s, "schedule.split.factor",
                    cat("the product of the factors ", factors_text(step.factors), " of loop ",
                        name_of(loop), " exceeds 64 bits"),
                    loop);
    }
  }
  for (const Factor& f : step.factors) extents.push_back(f ? make_int(f->value, type) : nullptr);
  std::int64_t extent = 0;
  const bool constant = is_const_int(loop->extent, &extent);
  if (inferred != npos) {
    extents[inferred] =
        constant
            ? make_int(std::max<std::int64_t>(extent > 0 ? (extent - 1) / known + 1 : 0, 0), type)
            : analyzer.simplify(floordiv(loop->extent + (known - 1), make_int(known, type)));
    return std::nullopt;
  }
  if (constant ? known < extent : !analyzer.prove(ge(make_int(known, type), loop->extent))) {
    Refusal r =
        refuse(s, "schedule.split.cover",
               constant ? cat("split of ", name_of(loop), " by ", factors_text(step.factors),
                              " covers ", known, " of its ", extent, " iterations")
                        : cat("split of ", name_of(loop), " by ", factors_text(step.factors),
                              " is not proven to cover its symbolic extent"),
               loop);
    r.note("legal: factors whose product is at least the extent, or one None");
    Factors repaired = step.factors;
    repaired[0].reset();
    r.repair(cat("sch.split(", loop->var->name, ", ", factors_text(repaired), ")"));
    return r;
  }
  return std::nullopt;
}

}  // namespace

namespace {

constexpr std::string_view kTails[] = {"guard", "peel", "round_up", "shift_inwards"};

Verdict check_tail(const State& s, const Split& step, const ForNode* loop) {
  if (std::find(std::begin(kTails), std::end(kTails), step.tail) == std::end(kTails)) {
    const std::vector<std::string> legal(std::begin(kTails), std::end(kTails));
    Refusal r = refuse(s, "schedule.split.tail",
                       cat("split of ", name_of(loop), " got the tail \"", step.tail, "\""), loop);
    r.note(cat("legal: ", quoted(legal)));
    r.help = did_you_mean(step.tail, legal);
    return r;
  }
  return std::nullopt;
}

}  // namespace

Verdict Split::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  const ForNode* old = path.loop();
  if (factors.empty()) {
    Refusal r =
        refuse(s, "schedule.split.factor", cat("split of ", name_of(old), " got no factors"), old);
    r.note("legal: at least one factor");
    return r;
  }
  WEFT_TRY(check_plain_loop(s, kName, old));
  WEFT_TRY(check_starts_at_zero(s, kName, old));
  WEFT_TRY(check_tail(s, *this, old));
  arith::Analyzer analyzer;
  bind_around(analyzer, path);
  Exprs extents;
  WEFT_TRY(infer_extents(s, *this, old, analyzer, extents));

  const DType type = old->var->dtype;
  SplitTail parts{path, {}, extents, make_zero(type), make_const(1, type)};
  std::vector<IterVar> loops = as_iters(path.loops());
  for (std::size_t i = 0; i < extents.size(); ++i) {
    parts.vars.push_back(make_var(cat(old->var->name, "_", i), type));
    const Range dom{make_zero(type), extents[i]};
    loops.push_back({parts.vars[i], dom, IterKind::spatial});
    analyzer.bind(parts.vars[i], dom);
    const bool unit = !preserve_unit_iters && is_const_int_value(extents[i], 1);
    parts.index = parts.index * extents[i] + (unit ? make_zero(type) : Expr(parts.vars[i]));
    if (i > 0) parts.tile = parts.tile * extents[i];
  }
  for (const Var& var : parts.vars) out.result.push_back({var});
  const Expr guard = lt(parts.index, old->extent);
  const bool exact = analyzer.prove(guard);
  if (!exact && disable_predication && tail == "guard") {
    Refusal r = refuse(s, "schedule.split.predicate",
                       cat("split of ", name_of(old), " by ", factors_text(factors),
                           " needs a predicate, which disable_predication forbids"),
                       old);
    r.note("legal: factors whose product is exactly the extent");
    r.repair(cat("sch.split(", old->var->name, ", ", factors_text(factors), ", tail=\"peel\")"));
    return r;
  }
  if (!exact && tail == "peel") return split_peeled(s, parts, out.mod);
  if (!exact && tail == "round_up") return split_rounded_up(s, parts, out.mod);
  if (!exact && tail == "shift_inwards") return split_shifted(s, parts, out.mod);
  const VarMap map{{old->var.get(), parts.index}};
  const Stmt body = Rebinder(loops, map, exact ? nullptr : guard).rewrite(old->body);
  out.mod = with_body(s.mod, path.func, replace(path, parts.nest(body)));
  return std::nullopt;
}

}  // namespace weft::schedule
