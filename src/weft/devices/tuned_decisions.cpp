// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/tuned_decisions.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "weft/base/fork_safe_mutex.h"
#include "weft/devices/kernel.h"
#include "weft/devices/tuned_programs.h"

namespace weft {

namespace {

std::atomic<std::uint64_t>& age() {
  static auto& one = *new std::atomic<std::uint64_t>(1);
  return one;
}

struct Recording {
  ForkSafeMutex mutex;
  std::shared_ptr<const DecisionRecorder> recorder;
  std::atomic<bool> on = false;
};
Recording& recording() {
  static auto& one = *new Recording;
  return one;
}

/// An answer, and what was asked. A device's address may be another one's later, of another grid.
struct Kept {
  std::uint64_t age = 0;
  const Device* device = nullptr;
  const device::Grid* grid = nullptr;
  std::string_view operation;
  Decision facts, found;  // nothing found: empty
  bool is(const DecisionRequest& r) const {
    return age == weft::age() && device == r.device.get() && grid == &device::grid_of(r.device) &&
           operation == r.operation &&
           std::equal(facts.begin(), facts.end(), r.facts.begin(), r.facts.end());
  }
};

std::size_t slot_of(std::span<const std::int64_t> facts, std::size_t slots) {
  std::uint64_t h = 0;
  for (std::int64_t f : facts)
    h = (h ^ static_cast<std::uint64_t>(f)) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
  return h % slots;
}

}  // namespace

const Decision* tuned_decision(const DecisionRequest& request,
                               const std::function<std::vector<Decision>()>& options) {
  std::vector<Decision> legal;
  if (recording().on) {
    std::shared_ptr<const DecisionRecorder> recorder;
    {
      std::lock_guard lock(recording().mutex);
      recorder = recording().recorder;
    }
    if (recorder) legal = options(), (*recorder)(request, legal);
  }
  thread_local Kept kept[64];
  Kept& k = kept[slot_of(request.facts, std::size(kept))];
  if (!k.is(request)) {
    const std::uint64_t now = age();
    const auto tuned = tuned_programs();
    Decision found = tuned ? tuned->decide(request) : Decision{};
    if (!found.empty()) {
      if (legal.empty()) legal = options();
      if (std::find(legal.begin(), legal.end(), found) == legal.end()) found.clear();
    }
    k.age = now, k.operation = request.operation, k.found = std::move(found);
    k.device = request.device.get(), k.grid = &device::grid_of(request.device);
    k.facts.assign(request.facts.begin(), request.facts.end());
  }
  return k.found.empty() ? nullptr : &k.found;
}

void forget_decisions() { ++age(); }

void record_decisions(DecisionRecorder recorder) {
  std::shared_ptr<const DecisionRecorder> next;
  if (recorder) next = std::make_shared<const DecisionRecorder>(std::move(recorder));
  std::lock_guard lock(recording().mutex);
  recording().on = next != nullptr;
  recording().recorder.swap(next);
}

}  // namespace weft
