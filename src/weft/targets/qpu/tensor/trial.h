// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small nests are placed by trial: what estimates say of few rows, few columns and short sums is
// off by up to a half, and the emulator takes a few milliseconds to count the clocks of such a
// nest.

#include <cstdint>
#include <memory>

#include "weft/machine/target_info.h"
#include "weft/targets/qpu/tensor/nest.h"
#include "weft/targets/qpu/tensor/place.h"

namespace weft::qpu::tensor {

/// The placement of a nest that takes the emulator the fewest clocks, alone and on zeros, among
/// those whose estimates come near the best. Where there is no choice, or a nest is too large
/// to be run while a program is built: what estimates say.
Placement fastest_placement(const Nest& nest, const std::shared_ptr<const TargetInfo>& machine,
                            std::int64_t qpus);

}  // namespace weft::qpu::tensor
