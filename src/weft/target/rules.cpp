// SPDX-License-Identifier: Apache-2.0
#include "weft/target/rules.h"

#include "weft/target/backend.h"
#include "weft/target/text_backend.h"

namespace weft {

schedule::ScheduleRules rules_of(const TargetInfo& info) {
  schedule::ScheduleRules out;
  for (const AxisInfo& axis : info.axes) {
    out.axes.push_back({axis.name, axis.limit, axis.group, axis.group_limit, axis.reduces,
                        axis.kind == AxisKind::virtual_});
  }
  for (const MemoryInfo& memory : info.memories)
    out.scopes.push_back({memory.scope, memory.private_to});
  for (const InstructionInfo& i : info.instructions)
    out.instructions.push_back({i.name, i.meaning, i.implementation});
  return out;
}

std::shared_ptr<const schedule::ScheduleRules> all_rules() {
  static const std::shared_ptr<const schedule::ScheduleRules> rules = [] {
    auto merged = std::make_shared<schedule::ScheduleRules>(*schedule::ScheduleRules::generic());
    for (Backend* backend : backends()) {
      Target plain;
      plain.name = std::string(backend->name());
      const auto* text = dynamic_cast<const TextBackend*>(backend);
      merged->merge(rules_of(text ? text->kind() : backend->info(plain)));
    }
    return merged;
  }();
  return rules;
}

}  // namespace weft
