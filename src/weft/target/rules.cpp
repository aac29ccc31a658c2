// SPDX-License-Identifier: Apache-2.0
#include "weft/target/rules.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "weft/base/fork_safe_mutex.h"
#include "weft/rules/expected_time.h"
#include "weft/rules/grid.h"
#include "weft/target/backend.h"
#include "weft/target/open_schedules.h"
#include "weft/target/text_backend.h"

namespace weft {

std::shared_ptr<const TargetInfo> all_target_info() {
  static const std::shared_ptr<const TargetInfo> all = [] {
    auto merged = std::make_shared<TargetInfo>(*schedule_target_info());
    for (Backend* backend : backends()) {
      Target plain;
      plain.name = std::string(backend->name());
      const auto* text = dynamic_cast<const TextBackend*>(backend);
      merged->merge(text ? text->kind() : backend->info(plain));
    }
    return merged;
  }();
  return all;
}

bool has_rules(std::string_view target_text) {
  const Target target = Target::parse(target_text);
  return find_backend(target.name).info(target).axis("threadIdx.x") != nullptr;
}

OpenSchedule::OpenSchedule(ir::PrimFunc f, std::string_view target)
    : func_(std::move(f)), target_(Target::parse(target)) {
  const Backend& backend = find_backend(target_.name);
  own_ = dynamic_cast<const OpenSchedules*>(&backend);
  if (own_) return;
  auto info = std::make_shared<const TargetInfo>(backend.info(target_));
  if (info->axis("threadIdx.x") && rules::is_unscheduled(func_))
    start_ = std::make_unique<const rules::GridStart>(func_, std::move(info));
}

OpenSchedule::~OpenSchedule() = default;

std::unique_ptr<schedule::Schedule> OpenSchedule::made(rules::Choices& choices) const {
  if (own_)
    return own_->open_schedule(
        func_, target_, [&](const std::string& name, const std::vector<std::int64_t>& options) {
          return choices.number(name, options);
        });
  if (!start_) return nullptr;
  return std::make_unique<schedule::Schedule>(rules::grid_schedule(*start_, &choices).schedule);
}

namespace {

/// A table with what a device says of itself in place of what its target assumes.
TargetInfo reported(TargetInfo info, const std::map<std::string, std::int64_t>& report) {
  std::int64_t threads = info.group_threads(), bytes = info.group_bytes();
  for (const auto& [name, value] : report) {
    if (name == "threads_per_block") threads = value;
    else if (name == "shared_bytes" || name == "max_shared_memory_per_block")
      bytes = bytes > 0 ? std::min(bytes, value) : value;
    else if (name == "multiprocessors") info.limits[limits::kProcessors] = value;
    else info.limits[name] = value;
  }
  info.set_group(threads, bytes);
  return info;
}

}  // namespace

double expected_seconds(const ir::PrimFunc& f, std::string_view target_text,
                        const std::map<std::string, std::int64_t>& measured) {
  const Target target = Target::parse(target_text);
  const TargetInfo info = reported(find_backend(target.name).info(target), measured);
  constexpr double kSeconds = 1e-6;
  return kSeconds * (info.axis("threadIdx.x") ? rules::expected_time(f, rules::grid_rates(info))
                                              : rules::expected_time(f, rules::host_rates(info)));
}

const TargetInfo* target_info_of(const runtime::Device& device) {
  // Two devices of one name and the same report are alike: an address may be another's later.
  struct Known {
    std::string name;
    std::map<std::string, std::int64_t> report;
    std::optional<TargetInfo> info;
  };
  static ForkSafeMutex mutex;
  static auto& known = *new std::deque<Known>;
  const runtime::DeviceInfo& info = device.info();
  std::lock_guard lock(mutex);
  for (const Known& k : known) {
    if (k.name == info.name && k.report == info.limits) return k.info ? &*k.info : nullptr;
  }
  Known& made = known.emplace_back(Known{info.name, info.limits, std::nullopt});
  const Target target = Target::parse(info.name);
  for (const Backend* backend : backends()) {
    if (backend->name() == target.name) made.info = reported(backend->info(target), info.limits);
  }
  return made.info ? &*made.info : nullptr;
}

}  // namespace weft
