// SPDX-License-Identifier: Apache-2.0
#pragma once
// An NVIDIA card through the driver's library, opened at run time: nothing of it is linked.

#include <string>
#include <vector>

#include "weft/base/ref.h"
#include "weft/runtime/device.h"

namespace weft::cuda {

struct Card {
  std::string name, arch;  // "NVIDIA H200", "sm_90"
  int major = 0;           // compute capability
  std::int64_t threads = 1024, shared_bytes = 49152, shared_optin = 49152, processors = 1;
  std::int64_t clock_khz = 0, memory_khz = 0, bus_bits = 0;  // 0: not told
  runtime::Bytes memory = 0;
};

/// Cards present, asked for once; empty with the reason when the driver or a card is absent.
const std::vector<Card>& cards(std::string* reason);
/// Throws Error(device, "cuda.absent").
Ref<runtime::Device> open_card(int index);

}  // namespace weft::cuda
