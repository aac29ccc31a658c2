// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVIDIA's run-time compiler, opened when first needed: CUDA C text to a cubin. Needs no card.

#include <string>

namespace weft::cuda {

/// Where the compiler was looked for, for messages.
std::string nvrtc_searched();
bool nvrtc_available();

struct Compiled {
  std::string cubin, log;
};

/// Throws Error(device, "cuda.nvrtc.absent") or Error(emit, "cuda.nvrtc.refused") with the
/// compiler's log. Results are kept in the on-disk kernel cache.
Compiled compile(const std::string& text, const std::string& arch);

}  // namespace weft::cuda
