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
// pointers that the one before has brought. All are inlined by force: compilers take a function
// that does nothing but fetch for one without an effect, and leave out its calls (seen with g++
// 12).
#define WEFT_WSE_FETCH [[gnu::always_inline]] inline
WEFT_WSE_FETCH void fetch(const void* at, std::size_t bytes) {
  const auto* p = static_cast<const char*>(at);
#ifdef __GNUC__
#pragma GCC unroll 8
#endif
  for (std::size_t k = 0; k < bytes; k += 64) __builtin_prefetch(p + k);
}
/// From the beginning of an object to one of its members.
WEFT_WSE_FETCH void fetch_up_to(const void* object, const void* member) {
  fetch(object, static_cast<std::size_t>(static_cast<const char*>(member) -
                                         static_cast<const char*>(object)));
}
WEFT_WSE_FETCH void fetch_pe(const Pe* pe) { fetch_up_to(pe, &pe->count.sent); }
WEFT_WSE_FETCH void fetch_home(const Pe& pe) {
  if (const Core* core = pe.core.get()) fetch_up_to(core, &core->wanted);
  fetch(pe.home, pe.home_bytes);
}
/// Registers, operations in progress and the channels at their ends. The places behind a channel's
/// first follow one another, which the processor sees itself.
WEFT_WSE_FETCH void fetch_work(const Pe& pe) {
  if (!pe.core) return;
  fetch(pe.core->regs.data(), kHotRegisters);
  if (pe.main != MainState::idle || (pe.local_pending & ~pe.local_blocked)) {
    if (const Running* next = pe.core->ops.next()) fetch(next, sizeof(Running));
  }
  if (pe.live_ops) {
    for (std::uint32_t m = pe.live_ops; m; m &= m - 1)
      fetch(pe.core->ops.find(static_cast<std::size_t>(std::countr_zero(m))), sizeof(Running));
    for (std::uint32_t m = pe.writing; m; m &= m - 1) {
      const OutQueue& q = pe.out[static_cast<std::size_t>(std::countr_zero(m))];
      if (q.single) __builtin_prefetch(q.only);
    }
    for (std::uint32_t m = pe.reading; m; m &= m - 1)
      __builtin_prefetch(pe.in[static_cast<std::size_t>(std::countr_zero(m))].channel);
  }
  for (std::uint32_t m = pe.express_in; m; m &= m - 1) {
    std::uint8_t q = pe.color_queue[static_cast<std::size_t>(std::countr_zero(m))];
    if (q != kNone8 && pe.in[q].reader == kNone8 && pe.in[q].channel)
      __builtin_prefetch(pe.in[q].channel);
  }
}
/// What telling a PE that something has been sent to it changes.
WEFT_WSE_FETCH void fetch_receiver(const Pe* pe) {
  __builtin_prefetch(pe);
  __builtin_prefetch(&pe->express_in);
}

#undef WEFT_WSE_FETCH

}  // namespace weft::wse
