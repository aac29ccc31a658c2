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

bool opens_schedules(std::string_view target_text) {
  return dynamic_cast<const OpenSchedules*>(&find_backend(Target::parse(target_text).name));
}

OpenSchedule::OpenSchedule(ir::PrimFunc f, std::string_view target_text) : func_(std::move(f)) {
  const Target target = Target::parse(target_text);
  const Backend& backend = find_backend(target.name);
  if (const auto* opens = dynamic_cast<const OpenSchedules*>(&backend))
    opened_ = opens->open_schedule(func_, target);
}

OpenSchedule::~OpenSchedule() = default;

std::unique_ptr<schedule::Schedule> OpenSchedule::made(rules::Choices& choices) const {
  return opened_ ? std::make_unique<schedule::Schedule>(opened_->made(choices)) : nullptr;
}

namespace {

struct OpenedGrid final : OpenedSchedule {
  rules::GridStart start;
  OpenedGrid(const ir::PrimFunc& f, TargetInfo machine)
      : start(f, std::make_shared<const TargetInfo>(std::move(machine))) {}
  schedule::Schedule made(rules::Choices& choices) const override {
    return rules::grid_schedule(start, &choices).schedule;
  }
};

struct OpenedHost final : OpenedSchedule {
  rules::HostStart start;
  OpenedHost(const ir::PrimFunc& f, TargetInfo machine) : start(f, std::move(machine)) {}
  schedule::Schedule made(rules::Choices& choices) const override {
    return rules::host_schedule(start, choices);
  }
};

}  // namespace

std::unique_ptr<const OpenedSchedule> open_grid_rules(const ir::PrimFunc& f, TargetInfo machine) {
  return rules::is_unscheduled(f) ? std::make_unique<OpenedGrid>(f, std::move(machine)) : nullptr;
}

std::unique_ptr<const OpenedSchedule> open_host_rules(const ir::PrimFunc& f, TargetInfo machine) {
  return rules::is_plain(f) ? std::make_unique<OpenedHost>(f, std::move(machine)) : nullptr;
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
