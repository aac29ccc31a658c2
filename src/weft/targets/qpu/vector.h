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

/// Copies sixteen words in the widest pieces that the function around it may use: who loads them
/// again soon, in halves of eight, then finds whole stores.
[[gnu::always_inline]] inline void copy_row(void* to, const void* from) {
  typedef std::uint32_t Half __attribute__((vector_size(32), aligned(4), may_alias));
  const Half *a = static_cast<const Half*>(from), lo = a[0], hi = a[1];
  static_cast<Half*>(to)[0] = lo;
  static_cast<Half*>(to)[1] = hi;
}
/// Copies 1 to 16 words.
inline void copy_words(std::uint32_t* to, const std::uint32_t* from, unsigned count) {
  if (count == 16) [[likely]]
    return copy_row(to, from);
  for (unsigned i = 0; i < count; ++i) to[i] = from[i];
}

}  // namespace weft::qpu::hw
