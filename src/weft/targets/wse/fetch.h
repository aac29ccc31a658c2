// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of PEs asked for before they are visited.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weft/targets/wse/state.h"

namespace weft::wse {

// The state of a rectangle beyond a few hundred PEs does not fit the caches, and a visit reads some
// twenty lines of it: they are asked for while the PEs before are visited. Each stage follows the
// pointers that the one before has brought.
inline void fetch(const void* at, std::size_t bytes) {
  const auto* p = static_cast<const char*>(at);
  for (std::size_t k = 0; k < bytes; k += 64) __builtin_prefetch(p + k);
}
/// From the beginning of an object to one of its members.
inline void fetch_up_to(const void* object, const void* member) {
  fetch(object, static_cast<std::size_t>(static_cast<const char*>(member) -
                                         static_cast<const char*>(object)));
}
inline void fetch_pe(const Pe* pe) { fetch_up_to(pe, &pe->count.sent); }
inline void fetch_core(const Pe& pe) {
  if (pe.core) fetch_up_to(pe.core.get(), &pe.core->dsrs);
  fetch(pe.in.data(), pe.in.size() * sizeof(InQueue));
  fetch(pe.out.data(), pe.out.size() * sizeof(OutQueue));
  if (pe.memory) fetch(pe.memory, std::min<std::size_t>(pe.memory_bytes, 128));
}
inline void fetch_work(const Pe& pe) {
  if (const Core* k = pe.core.get()) {
    fetch(k->frames.data(), sizeof(Frame));
    fetch(k->regs.data(), std::min<std::size_t>(k->regs.size(), 16) * sizeof(std::uint64_t));
    fetch(k->dsds.data(), std::min<std::size_t>(k->dsds.size(), 4) * sizeof(Dsd));
    for (std::uint32_t m = pe.live_ops; m; m &= m - 1)
      fetch(k->ops.find(static_cast<std::size_t>(std::countr_zero(m))), sizeof(Running));
  }
  for (std::uint32_t m = pe.express_in; m; m &= m - 1) {
    std::uint8_t q = pe.color_queue[static_cast<std::size_t>(std::countr_zero(m))];
    if (q != kNone8 && pe.in[q].channel) fetch(pe.in[q].channel, sizeof(Channel));
  }
}
inline void fetch_channels(const Pe& pe) {
  if (const Core* k = pe.core.get()) {
    for (std::uint32_t m = pe.live_ops; m; m &= m - 1) {
      const Running* run = k->ops.find(static_cast<std::size_t>(std::countr_zero(m)));
      if (run->dst.kind == Cursor::fabout && pe.out[run->dst.queue].single)
        fetch(pe.out[run->dst.queue].only, sizeof(Channel));
    }
  }
  for (std::uint32_t m = pe.express_in; m; m &= m - 1) {
    std::uint8_t q = pe.color_queue[static_cast<std::size_t>(std::countr_zero(m))];
    if (q == kNone8) continue;
    if (const Channel* c = pe.in[q].channel)
      fetch(&c->at(c->head.load(std::memory_order_relaxed)), sizeof(ChannelEntry));
  }
}

}  // namespace weft::wse
