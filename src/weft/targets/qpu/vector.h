// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sixteen lanes of 32 bits, and how hot functions are compiled for more than one processor.

#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WEFT_QPU_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define WEFT_QPU_CLONES
#endif

namespace weft::qpu::hw {

struct alignas(64) Vec {
  std::uint32_t lane[16];
  std::uint32_t& operator[](unsigned i) { return lane[i]; }
  std::uint32_t operator[](unsigned i) const { return lane[i]; }
};

}  // namespace weft::qpu::hw
