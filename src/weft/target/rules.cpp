// SPDX-License-Identifier: Apache-2.0
#include "weft/target/rules.h"

#include <algorithm>

#include "weft/rules/expected_time.h"
#include "weft/rules/grid.h"
#include "weft/target/backend.h"
#include "weft/target/join_points.h"
#include "weft/target/open_schedules.h"
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

bool has_rules(std::string_view target_text) {
  const Target target = Target::parse(target_text);
  return find_backend(target.name).info(target).axis("threadIdx.x") != nullptr;
}

std::unique_ptr<schedule::Schedule> open_schedule(const ir::PrimFunc& f,
                                                  std::string_view target_text,
                                                  rules::Choices& choices) {
  const Target target = Target::parse(target_text);
  const Backend& backend = find_backend(target.name);
  const TargetInfo info = backend.info(target);
  if (const auto* own = dynamic_cast<const OpenSchedules*>(&backend))
    return own->open_schedule(
        f, target, [&](const std::string& name, const std::vector<std::int64_t>& options) {
          return choices.number(name, options);
        });
  if (!info.axis("threadIdx.x") || !rules::is_unscheduled(f)) return nullptr;
  rules::Context context = context_of(info);
  context.choices = &choices;
  return std::make_unique<schedule::Schedule>(rules::grid_schedule(f, context).schedule);
}

double expected_seconds(const ir::PrimFunc& f, std::string_view target_text,
                        const std::map<std::string, std::int64_t>& measured) {
  const Target target = Target::parse(target_text);
  const TargetInfo info = find_backend(target.name).info(target);
  auto fact = [&](const char* name, double& value, double unit = 1) {
    if (auto own = info.limits.find(name); own != info.limits.end())
      value = static_cast<double>(own->second) * unit;
    if (auto found = measured.find(name); found != measured.end())
      value = static_cast<double>(found->second) * unit;
  };
  constexpr double kSeconds = 1e-6;
  if (info.axis("threadIdx.x")) {
    rules::GridRates r;
    fact("processors", r.processors), fact("lanes", r.lanes);
    fact("clock_khz", r.clocks_per_microsecond, 1e-3);
    fact("memory_bytes_per_microsecond", r.memory_bytes_per_microsecond);
    fact("max_shared_memory_per_block", r.memory_shared);
    return rules::expected_time(f, r) * kSeconds;
  }
  rules::HostRates r;
  fact("vector_bytes", r.vector_bytes), fact("registers", r.registers);
  fact("cache1_bytes", r.cache1), fact("cache2_bytes", r.cache2);
  fact("threads", r.processors);
  return rules::expected_time(f, r) * kSeconds;
}

rules::HostFacts host_facts_of(const TargetInfo& info) {
  rules::HostFacts out;
  auto limit = [&](const char* name, std::int64_t otherwise) {
    auto found = info.limits.find(name);
    return found == info.limits.end() ? otherwise : found->second;
  };
  out.vector_bytes = limit("vector_bytes", out.vector_bytes);
  return out;
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
  facts.copies_ahead = !out.machine.queue.empty();
  facts.warp_products = queue("bulk") && queue("wgmma");
  return out;
}

}  // namespace weft
