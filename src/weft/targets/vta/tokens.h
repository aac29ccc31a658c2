// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of the four token counters an instruction takes from and gives to. Bit t of a set is
// counter t.

#include "weft/base/error.h"
#include "weft/targets/vta/isa.h"

namespace weft::vta {

struct Prepared;

enum Token : int {
  kLoadToCompute = 0,
  kComputeToLoad = 1,
  kComputeToStore = 2,
  kStoreToCompute = 3
};
inline constexpr const char* kTokenNames[4] = {"load->compute", "compute->load", "compute->store",
                                               "store->compute"};

struct TokenUse {
  std::uint8_t pops = 0, pushes = 0;
  bool illegal = false;
};

inline TokenUse token_use(const Insn& n) {
  auto bit = [](bool on, int t) { return static_cast<std::uint8_t>(on ? 1 << t : 0); };
  switch (n.stage()) {
    case Stage::load:
      return {bit(n.pop_next, kComputeToLoad), bit(n.push_next, kLoadToCompute),
              n.pop_prev || n.push_prev};
    case Stage::store:
      return {bit(n.pop_prev, kComputeToStore), bit(n.push_prev, kStoreToCompute),
              n.pop_next || n.push_next};
    default:
      return {static_cast<std::uint8_t>(bit(n.pop_prev, kLoadToCompute) |
                                        bit(n.pop_next, kStoreToCompute)),
              static_cast<std::uint8_t>(bit(n.push_prev, kComputeToLoad) |
                                        bit(n.push_next, kComputeToStore)),
              false};
  }
}

/// The fault that names each blocked instruction, the token it lacks and all counters.
Error deadlock(const Prepared& program, const Isa& isa, const std::size_t head[3],
               const std::int64_t tokens[4], std::size_t fetched);

}  // namespace weft::vta
