// SPDX-License-Identifier: Apache-2.0
// The interpreted engine for any processor: lane by lane through the oracle's arithmetic.

#define WEFT_QPU_FAST_NAME make_fast_base
#include "weft/targets/qpu/engine/interpret.inl"

namespace weft::qpu::hw {

const char* fast_variant() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return "avx2";
#endif
  return "base";
}

std::unique_ptr<FastProgram> make_fast(const Program& program, bool count, bool keep) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return make_fast_avx2(program, count, keep);
#endif
  return make_fast_base(program, count, keep);
}

}  // namespace weft::qpu::hw
