// SPDX-License-Identifier: Apache-2.0
#include "weft/target/rules.h"

#include <algorithm>

#include "weft/target/backend.h"
#include "weft/target/join_points.h"
#include "weft/target/pipeline.h"
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
    merged->join_points = join_points;
    return merged;
  }();
  return rules;
}

rules::Context context_of(const TargetInfo& info) {
  rules::Context out;
  out.schedule_rules = std::make_shared<schedule::ScheduleRules>(rules_of(info));
  out.machine = machine_of(info, "grid");
  rules::Facts& facts = out.facts;
  auto limit = [&](const char* name, std::int64_t otherwise) {
    auto found = info.limits.find(name);
    return found == info.limits.end() ? otherwise : found->second;
  };
  facts.threads = limit("max_threads_per_block", facts.threads);
  if (const AxisInfo* x = info.axis("threadIdx.x"); x && x->limit > 0)
    facts.threads = std::min(facts.threads, x->limit);
  facts.lanes = limit("lanes", facts.lanes);
  facts.processors = limit("processors", facts.processors);
  facts.shared_bytes = limit("max_shared_memory_per_block", facts.shared_bytes);
  facts.vector_bytes = limit("vector_bytes", facts.vector_bytes);
  auto queue = [&](std::string_view name) {
    return std::any_of(info.queues.begin(), info.queues.end(),
                       [&](const QueueInfo& q) { return q.name == name; });
  };
  facts.warp_products = queue("bulk") && queue("wgmma");
  return out;
}

}  // namespace weft
