// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of PEs asked for before they are visited.

#include <bit>
#include <cstdint>

#include "weft/targets/wse/state.h"

namespace weft::wse {

// The state of a rectangle beyond a few hundred PEs does not fit the caches, and a visit reads some
// twenty lines of it: they are asked for while the PEs before are visited. Each stage follows the
// pointers that the one before has brought.
template <class T>
void fetch(const T* at, std::size_t n = 1) {
  const auto* p = reinterpret_cast<const char*>(at);
  for (std::size_t k = 0; k < n * sizeof(T); k += 64) __builtin_prefetch(p + k);
}
inline void fetch_core(const Pe& pe) {
  if (pe.core) fetch(pe.core.get());
  fetch(pe.in.data(), pe.in.size());
  fetch(pe.out.data(), pe.out.size());
  if (pe.memory) fetch(pe.memory, std::min<std::size_t>(pe.memory_bytes, 128));
}
inline void fetch_work(const Pe& pe) {
  if (const Core* k = pe.core.get()) {
    fetch(k->frames.data());
    fetch(k->regs.data(), std::min<std::size_t>(k->regs.size(), 16));
    fetch(k->dsds.data(), std::min<std::size_t>(k->dsds.size(), 6));
    for (std::uint32_t m = pe.live_ops; m; m &= m - 1)
      fetch(k->ops.find(static_cast<std::size_t>(std::countr_zero(m))));
  }
  for (std::uint32_t m = pe.express_in; m; m &= m - 1) {
    std::uint8_t q = pe.color_queue[static_cast<std::size_t>(std::countr_zero(m))];
    if (q != kNone8 && pe.in[q].channel) fetch(pe.in[q].channel);
  }
}
inline void fetch_channels(const Pe& pe) {
  for (std::uint32_t m = pe.express_in; m; m &= m - 1) {
    std::uint8_t q = pe.color_queue[static_cast<std::size_t>(std::countr_zero(m))];
    if (q == kNone8) continue;
    if (const Channel* c = pe.in[q].channel)
      fetch(&c->at(c->head.load(std::memory_order_relaxed)));
  }
}

}  // namespace weft::wse
