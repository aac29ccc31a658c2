// SPDX-License-Identifier: Apache-2.0
// The generic path of every step, instantiated for each row of primitives.def, and the table
// itself.

#include <algorithm>

#include "weft/base/text.h"
#include "weft/schedule/schedule.h"

namespace weft::schedule {
namespace {

template <typename S>
Value call_step(Schedule& sch, const Arguments& args) {
  return to_value(sch.apply(step_from<S>(args)));
}

template <typename S>
Verdict check_step(const Schedule& sch, const Arguments& args) {
  return sch.check(step_from<S>(args));
}

template <typename S>
const PrimitiveInfo& info_of() {
  static const PrimitiveInfo info{
      S::kName,        S::kDoc,      type_name(static_cast<const typename S::Result*>(nullptr)),
      &fields_of<S>(), call_step<S>, check_step<S>};
  return info;
}

/// A block's name where a block is wanted.
Value named_block(Schedule& sch, Value v) {
  if (const auto* name = v.get<std::string>()) return sch.get_block(*name);
  if (auto* list = std::get_if<Value::List>(&v.data)) {
    for (Value& item : *list) item = named_block(sch, std::move(item));
  }
  return v;
}

}  // namespace

template <typename S>
typename S::Result Schedule::apply(const S& step) {
  if constexpr (requires(S & s, std::uint64_t & random) { s.decide(state_, random); }) {
    S decided = step;
    if (Verdict v = decided.decide(state_, random_))
      refuse_step(info_of<S>(), values_of(step), std::move(*v));
    Outcome<typename S::Result> out;
    if (Verdict v = decided.transform(state_, out))
      refuse_step(info_of<S>(), values_of(decided), std::move(*v));
    commit(info_of<S>(), values_of(decided), to_value(out.result), std::move(out.mod));
    return std::move(out.result);
  } else {
    Outcome<typename S::Result> out;
    if (Verdict v = step.transform(state_, out))
      refuse_step(info_of<S>(), values_of(step), std::move(*v));
    commit(info_of<S>(), values_of(step), to_value(out.result), std::move(out.mod));
    return std::move(out.result);
  }
}

template <typename S>
Verdict Schedule::check(const S& step) const {
  Outcome<typename S::Result> out;
  return step.transform(state_, out);
}

#define WEFT_PRIMITIVE(S)                          \
  template S::Result Schedule::apply<S>(const S&); \
  template Verdict Schedule::check<S>(const S&) const;
#include "weft/schedule/primitives.def"
#undef WEFT_PRIMITIVE

const std::vector<PrimitiveInfo>& primitives() {
  static const std::vector<PrimitiveInfo> table = {
#define WEFT_PRIMITIVE(S) info_of<S>(),
#include "weft/schedule/primitives.def"
#undef WEFT_PRIMITIVE
  };
  return table;
}

const PrimitiveInfo& find_primitive(std::string_view name) {
  for (const PrimitiveInfo& p : primitives()) {
    if (p.name == name) return p;
  }
  std::vector<std::string> names;
  for (const PrimitiveInfo& p : primitives()) names.emplace_back(p.name);
  throw Error(ErrorKind::schedule, "schedule.primitive.unknown",
              cat("a schedule has no step \"", name, "\""))
      .note(cat("steps: ", join(names)))
      .help(did_you_mean(name, names));
}

Value Schedule::call(std::string_view name, const Value::List& positional,
                     const std::vector<std::pair<std::string, Value>>& keywords) {
  const PrimitiveInfo& p = find_primitive(name);
  const std::vector<FieldInfo>& fields = *p.fields;
  Arguments args(fields.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < positional.size(); ++i) {
    if (next < fields.size() && fields[next].mode == Field::variadic) {
      const bool one_list = positional.size() == 1 && positional[i].get<Value::List>();
      args[next] = one_list ? positional[i]
                            : Value(Value::List(positional.begin() + static_cast<std::ptrdiff_t>(i),
                                                positional.end()));
      break;
    }
    if (next >= fields.size()) {
      throw Error(ErrorKind::schedule, "schedule.argument.count",
                  cat(name, " takes ", fields.size(), " arguments, but got ", positional.size()));
    }
    args[next++] = positional[i];
  }
  for (const auto& [key, value] : keywords) {
    const auto it =
        std::find_if(fields.begin(), fields.end(),
                     [&, k = std::string_view(key)](const FieldInfo& f) { return f.name == k; });
    if (it == fields.end()) {
      std::vector<std::string> names;
      for (const FieldInfo& f : fields) names.emplace_back(f.name);
      throw Error(ErrorKind::schedule, "schedule.argument.unknown",
                  cat(name, " has no argument \"", key, "\""))
          .note(cat("arguments: ", join(names)))
          .help(did_you_mean(key, names));
    }
    auto& slot = args[static_cast<std::size_t>(it - fields.begin())];
    if (slot)
      throw Error(ErrorKind::schedule, "schedule.argument.twice",
                  cat(name, " got the argument \"", key, "\" twice"));
    slot = value;
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (args[i] && fields[i].type.find("block") != std::string_view::npos)
      args[i] = named_block(*this, std::move(*args[i]));
    if (!args[i] && fields[i].mode == Field::variadic) args[i] = Value::List{};
  }
  return p.call(*this, args);
}

}  // namespace weft::schedule
