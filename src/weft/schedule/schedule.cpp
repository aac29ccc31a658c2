// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/schedule.h"

#include <unordered_set>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/verify.h"
#include "weft/schedule/analysis.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Names as the user knows them: variables and blocks of the program.
class ProgramNames final : public Names {
 public:
  explicit ProgramNames(const IRModule& m) : m_(m) {}
  std::string block(BlockRef ref) const override {
    const auto path = find_block(m_, ref);
    return path ? path->realize()->block->name : cat("block#", ref.id);
  }
  std::string loop(const LoopRef& ref) const override { return ref.var ? ref.var->name : "?"; }
  std::string integer(const IntRef& ref) const override { return cat(ref.value); }

 private:
  const IRModule& m_;
};

/// Whether a block id or loop variable occurs twice, so that references would be ambiguous.
bool has_duplicates(const IRModule& m) {
  std::unordered_set<const void*> loops;
  std::unordered_set<std::uint64_t> blocks;
  bool twice = false;
  for (const auto& [name, f] : m->functions) {
    for_each_stmt(f->body, [&](const Stmt& s) {
      if (const auto* loop = as<ForNode>(s)) twice |= !loops.insert(loop->var.get()).second;
      if (const auto* realize = as<BlockRealizeNode>(s))
        twice |= !blocks.insert(realize->block->id).second;
    });
  }
  return twice;
}

IRModule unique_names(const IRModule& m) {
  if (!has_duplicates(m)) return m;
  auto out = make_ref<IRModuleNode>(*m);
  for (auto& [name, f] : out->functions) f = deep_copy(f);
  return out;
}

void count_sampled(const Value& v, std::int64_t& last) {
  if (const auto* list = v.get<Value::List>()) {
    for (const Value& item : *list) count_sampled(item, last);
  }
  if (const auto* ref = v.get<IntRef>(); ref && ref->id > last) last = ref->id;
}

}  // namespace

Schedule::Schedule(const PrimFunc& f, std::shared_ptr<const TargetInfo> machine, std::int64_t seed)
    : Schedule(make_module(f), std::move(machine), seed) {}

Schedule::Schedule(IRModule m, std::shared_ptr<const TargetInfo> machine, std::int64_t seed)
    : random_(static_cast<std::uint64_t>(seed)) {
  if (Verdict v = verify(m)) throw Error(ErrorKind::verify, std::move(*v));
  start_ = state_.mod = unique_names(m);
  state_.facts = std::make_shared<Facts>();
  state_.machine = machine ? std::move(machine) : schedule_target_info();
}

PrimFunc Schedule::func() const {
  return state_.mod->functions.size() == 1 ? state_.mod->functions[0].second
                                           : state_.mod->find(state_.func);
}

std::string Schedule::show() const { return print(state_.mod); }

void Schedule::work_on(const std::string& func_name) {
  if (!state_.mod->find(func_name)) {
    std::vector<std::string> names;
    for (const auto& [name, f] : state_.mod->functions) names.push_back(name);
    throw Error(ErrorKind::schedule, "schedule.work_on.function",
                cat("the module has no function \"", func_name, "\""))
        .note(cat("functions: ", quoted(names)))
        .help(did_you_mean(func_name, names));
  }
  state_.func = func_name;
}

void Schedule::refuse_step(const PrimitiveInfo& primitive, const Value::List& arguments,
                           Refusal refusal) const {
  if (state_.detail) {
    Place place{cat("step ", trace_.entries().size() + 1),
                step_text(primitive, arguments, ProgramNames(state_.mod), false), 0, 0};
    refusal.places.insert(refusal.places.begin(), std::move(place));
    refusal.note("the schedule is unchanged");
  }
  throw Error(ErrorKind::schedule, std::move(refusal));
}

void Schedule::commit(const PrimitiveInfo& primitive, Value::List arguments, Value result,
                      IRModule mod) {
  if (mod) {
    if (verifying_) {
      const Verdict v = verify(mod);
      WEFT_CHECK(!v, "the program is ill-formed after ",
                 step_text(primitive, arguments, ProgramNames(state_.mod), false), ": ", render(*v),
                 "\n", print(mod));
    }
    if (run_check_) {
      if (Verdict v = run_check_->compare(mod)) refuse_step(primitive, arguments, std::move(*v));
    }
    state_.mod = std::move(mod);
  }
  count_sampled(result, state_.sampled);
  trace_.append({&primitive, std::move(arguments), std::move(result)});
}

Schedule Schedule::replay(const PrimFunc& f, const Json& trace,
                          std::shared_ptr<const TargetInfo> machine) {
  return replay(make_module(f), trace, std::move(machine));
}

Schedule Schedule::replay(const IRModule& m, const Json& trace,
                          std::shared_ptr<const TargetInfo> machine) {
  Schedule sch(m, std::move(machine));
  schedule::replay(sch, trace);
  return sch;
}

}  // namespace weft::schedule
