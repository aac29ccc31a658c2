// SPDX-License-Identifier: Apache-2.0
// vpdpbusd in 256 bits, for processors that have AVX-VNNI but no AVX-512.
#include "weft/targets/vta/kernels.h"

#include <cpuid.h>
#include <immintrin.h>

namespace weft::vta {
namespace {
#include "weft/targets/vta/kernels_common.inl"
#include "weft/targets/vta/kernels_dpbusd.inl"

struct Vector {
  using Register = __m256i;
  static constexpr int kLanes = 8;
  static Register load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static void store(void* p, Register v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
  static Register set1(int x) { return _mm256_set1_epi32(x); }
  static Register add(Register a, Register b) { return _mm256_add_epi32(a, b); }
  static Register sub(Register a, Register b) { return _mm256_sub_epi32(a, b); }
  static Register dot(Register sum, Register x, Register w) {
#ifdef WEFT_EMULATED_VECTORS
    sum = _mm256_dpbusd_avx_epi32(sum, x, w);
#else  // in place; compilers copy the sums of a loop around otherwise
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "x"(w));
#endif
    return sum;
  }
};

void pack_wgt(std::byte* packed, const std::int8_t* raw, int block) {
  transpose_groups(packed, raw, block);
  if (block >= 8) write_excess<Vector>(packed, block);
}

void gemm(const GemmCall& call) {  // 12 sums, 2 weights, 1 input: 15 of 16 registers
  switch (call.block) {
    case 8: return gemm_count<Vector, 6, 1, 8, 2>(call);
    case 16: return gemm_count<Vector, 6, 2, 16, 1>(call);
    case 32: return gemm_count<Vector, 6, 2, 32, 1>(call);
    case 64: return gemm_count<Vector, 6, 2, 64, 1>(call);
    default: return gemm_4(call);
  }
}

constexpr KernelSet kSet{
    "avx-vnni", 6,      1,    packed_wgt_bytes, std::byte{0x80}, pack_inp, pack_wgt, gemm,
    alu,        narrow, widen};

/// CPUID leaf 7, subleaf 1, EAX bit 4.
bool has_avx_vnni() {
  unsigned a = 0;
  [[maybe_unused]] unsigned b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
}  // namespace

const KernelSet* avxvnni_kernels() {
  return __builtin_cpu_supports("avx2") && has_avx_vnni() ? &kSet : nullptr;
}

}  // namespace weft::vta
