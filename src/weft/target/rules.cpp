// SPDX-License-Identifier: Apache-2.0
#include "weft/target/rules.h"

#include "weft/target/backend.h"
#include "weft/target/text_backend.h"

namespace weft {

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
