// SPDX-License-Identifier: Apache-2.0
#pragma once
// Proves, before anything runs, that a stream's tokens balance, that no interleaving of the stages
// deadlocks, that every access stays inside its memory and that every pair of conflicting accesses
// of two stages is ordered by tokens. Stages are in-order and tokens only count, so one run of the
// counters decides deadlock for all interleavings; order is decided with one clock per stage
// carried by the tokens.

#include "weft/targets/vta/program.h"

namespace weft::vta {

/// Slugs vta.check.{stage,finish,deadlock,leftover,outstanding,sram,uop,hazard,undrained,shift}.
Verdict check(const Program& program, std::size_t kernel);

}  // namespace weft::vta
