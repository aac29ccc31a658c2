// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes a stage plan as a tensor program for this machine: host loops that pack arrays into
// elements, tiles with DMA into vta.inp, vta.wgt and vta.acc, GEMM and ALU statements, stores, and
// host loops that unpack. The result is an ordinary program: it prints, any target can run it, and
// lower() makes instructions of it.

#include "weft/targets/vta/stages.h"
#include "weft/targets/vta/timing.h"

namespace weft::vta {

ir::PrimFunc synthesise(const ir::PrimFunc& f, const StagePlan& plan, const Config& config,
                        const TimingParams& timing = {});

}  // namespace weft::vta
