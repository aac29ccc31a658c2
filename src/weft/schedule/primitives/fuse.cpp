// SPDX-License-Identifier: Apache-2.0
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/loop_checks.h"
#include "weft/schedule/primitives/loops.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {

using namespace ir;

Verdict check_plain_loop(const State& s, std::string_view step, const ForNode* loop) {
  if (loop->for_kind == ForKind::bound) {
    Refusal r = refuse(s, cat("schedule.", step, ".bound"),
                       cat(step, " cannot reshape loop ", name_of(loop), ", which is bound to \"",
                           loop->axis, "\""),
                       loop);
    r.note(cat("legal: loops that are not bound; ", step, " before bind"));
    return r;
  }
  if (!loop->annotations.empty()) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : loop->annotations) keys.push_back(key);
    Refusal r = refuse(
        s, cat("schedule.", step, ".annotated"),
        cat(step, " cannot reshape loop ", name_of(loop), ", which carries annotations"), loop);
    r.note(cat("annotations: ", quoted(keys)));
    r.repair(cat("sch.unannotate(", loop->var->name, ", \"", keys[0], "\")"));
    return r;
  }
  return std::nullopt;
}

Verdict check_starts_at_zero(const State& s, std::string_view step, const ForNode* loop) {
  if (is_const_int_value(loop->min, 0)) return std::nullopt;
  Refusal r =
      refuse(s, cat("schedule.", step, ".start"),
             cat(step, " needs loops that start at 0, but ", name_of(loop), " does not"), loop);
  r.note("legal: loops of the form range(extent)");
  return r;
}

Verdict Fuse::transform(const State& s, Outcome<Result>& out) const {
  if (loops.empty())
    return refuse(s, "schedule.fuse.loops", cat("fuse got ", loops.size(), " loops"))
        .note("legal: at least one");
  std::vector<Path> paths(loops.size());
  for (std::size_t i = 0; i < loops.size(); ++i) WEFT_TRY(locate(s, loops[i], paths[i]));
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const ForNode* loop = paths[i].loop();
    WEFT_TRY(check_plain_loop(s, kName, loop));
    WEFT_TRY(check_starts_at_zero(s, kName, loop));
    if (i == 0) continue;
    const ForNode* outer = paths[i - 1].loop();
    if (outer->body.get() != loop) {
      Refusal r = refuse(
          s, "schedule.fuse.nest",
          cat("fuse needs ", name_of(loop), " directly and alone inside ", name_of(outer)), loop);
      const Path& deepest =
          paths[i].nodes.size() > paths[i - 1].nodes.size() ? paths[i] : paths[i - 1];
      auto names = loop_names(deepest.loops());
      names.push_back(deepest.loop()->var->name);
      r.note(cat("the nest there is, outermost first: ", quoted(names)));
      r.repair(cat("sch.reorder(", join(names), ") in an order with ", name_of(loop),
                   " next after ", name_of(outer), ", then fuse"));
      return r;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (uses_var(loop->extent, loops[j].var.get())) {
        Refusal r = refuse(s, "schedule.fuse.dependent",
                           cat("fuse cannot join ", name_of(loop), " to ", name_of(paths[j].loop()),
                               ", because its extent depends on it"),
                           loop);
        r.note("legal: loops whose extents do not depend on each other");
        return r;
      }
    }
  }
  const Path& top = paths[0];
  DType type = top.loop()->var->dtype;
  std::string name;
  Expr extent;
  for (const Path& path : paths) {
    const ForNode* loop = path.loop();
    if (loop->var->dtype.bits > type.bits) type = loop->var->dtype;
    name += loop->var->name + "_";
    extent = extent ? extent * loop->extent : loop->extent;
  }
  const Var fused = make_var(name + "fused", type);
  VarMap map;
  Expr rest = fused;
  Expr inner = make_const(1, type);
  for (std::size_t i = paths.size(); i-- > 0;) {
    const ForNode* loop = paths[i].loop();
    Expr digit = floordiv(fused, inner);
    if (i > 0) digit = floormod(digit, loop->extent);
    if (!preserve_unit_iters && is_const_int_value(loop->extent, 1)) digit = make_zero(type);
    map[loop->var.get()] = loop->var->dtype == type ? digit : cast(loop->var->dtype, digit);
    inner = inner * loop->extent;
  }
  arith::Analyzer analyzer;
  bind_around(analyzer, top);
  extent = analyzer.simplify(extent);
  std::vector<IterVar> around = as_iters(top.loops());
  around.push_back({fused, {make_zero(type), extent}, IterKind::spatial});
  Stmt body = Rebinder(around, map).rewrite(paths.back().loop()->body);
  out.mod = with_body(s.mod, top.func,
                      replace(top, make_for(fused, make_zero(type), extent, std::move(body))));
  out.result = {fused};
  return std::nullopt;
}

Verdict AddUnitLoop::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  if (const auto* block = std::get_if<BlockRef>(&block_or_loop)) {
    WEFT_TRY(locate_inner(s, *block, kName, path));
  } else {
    WEFT_TRY(locate(s, std::get<LoopRef>(block_or_loop), path));
  }
  const Var var = make_var("u");
  out.mod = with_body(s.mod, path.func,
                      replace(path, make_for(var, make_zero(var->dtype), make_const(1, var->dtype),
                                             path.target())));
  out.result = {var};
  return std::nullopt;
}

}  // namespace weft::schedule
