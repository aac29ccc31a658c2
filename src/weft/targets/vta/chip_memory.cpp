// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/chip_memory.h"

#include <algorithm>

namespace weft::vta {

std::int64_t ChipMemory::enter(const ir::AllocateNode* a, MemType mem, std::int64_t elements) {
  std::int64_t at = place(a, mem, elements);
  if (at >= 0) live_.push_back({a->buffer.get(), {mem, at, elements}});
  return at;
}

const ChipMemory::Placed* ChipMemory::find(const ir::BufferNode* b) const {
  for (auto it = live_.rbegin(); it != live_.rend(); ++it) {
    if (it->first == b) return &it->second;
  }
  return nullptr;
}

bool ChipMemory::free_at(MemType mem, std::int64_t at, std::int64_t elements, bool reserved) const {
  for (const auto& [buffer, p] : live_) {
    if (p.mem == mem && at < p.at + p.elements && p.at < at + elements) return false;
  }
  for (const auto& [node, s] : slots_) {
    if (!reserved || s.mem != mem) continue;
    for (std::int64_t other : s.at) {
      if (at < other + s.elements && other < at + elements) return false;
    }
  }
  return true;
}

std::int64_t ChipMemory::find_room(MemType mem, std::int64_t elements, bool reserved) const {
  std::vector<std::int64_t> candidates{0};
  for (const auto& [buffer, p] : live_) candidates.push_back(p.at + p.elements);
  for (const auto& [node, s] : slots_) {
    for (std::int64_t other : s.at) candidates.push_back(other + s.elements);
  }
  std::sort(candidates.begin(), candidates.end());
  for (std::int64_t at : candidates) {
    if (at + elements <= c_.depth(mem) && free_at(mem, at, elements, reserved)) return at;
  }
  return -1;
}

std::int64_t ChipMemory::place(const ir::AllocateNode* a, MemType mem, std::int64_t elements) {
  Slots& slots = slots_[a];
  slots.mem = mem;
  slots.elements = std::max(slots.elements, elements);
  auto wanted = static_cast<std::size_t>(slots.count++ % 2);
  if (wanted < slots.at.size() && free_at(mem, slots.at[wanted], elements, false))
    return slots.at[wanted];
  std::int64_t at = find_room(mem, elements, true);
  if (at >= 0) {
    if (slots.at.size() < 2) slots.at.push_back(at);
    return at;
  }
  for (std::int64_t old : slots.at) {
    if (free_at(mem, old, elements, false)) return old;
  }
  return find_room(mem, elements, false);  // over what is kept for buffers that may come again
}

}  // namespace weft::vta
