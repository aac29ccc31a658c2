// SPDX-License-Identifier: Apache-2.0
// vpdpbusd in 512 bits: 16 results of a row in one register.
#include "weft/targets/vta/kernels.h"

#include <immintrin.h>

namespace weft::vta {
namespace {
#define WEFT_VTA_OWN_NARROW
#define WEFT_VTA_LANES 16
#include "weft/targets/vta/kernels_common.inl"
#include "weft/targets/vta/kernels_dpbusd.inl"

struct Vector {
  using Register = __m512i;
  static constexpr int kLanes = 16;
  static Register load(const void* p) { return _mm512_loadu_si512(p); }
  static void store(void* p, Register v) { _mm512_storeu_si512(p, v); }
  static Register set1(int x) { return _mm512_set1_epi32(x); }
  static Register add(Register a, Register b) { return _mm512_add_epi32(a, b); }
  static Register sub(Register a, Register b) { return _mm512_sub_epi32(a, b); }
  static Register dot(Register sum, Register x, Register w) {
#ifdef WEFT_EMULATED_VECTORS
    sum = _mm512_dpbusd_epi32(sum, x, w);
#else  // in place; compilers copy the sums of a loop around otherwise
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
#endif
    return sum;
  }
};

struct Half {  // elements of 8 lanes
  using Register = __m256i;
  static constexpr int kLanes = 8;
  static Register load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static void store(void* p, Register v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
  static Register set1(int x) { return _mm256_set1_epi32(x); }
  static Register add(Register a, Register b) { return _mm256_add_epi32(a, b); }
  static Register sub(Register a, Register b) { return _mm256_sub_epi32(a, b); }
  static Register dot(Register sum, Register x, Register w) {
#ifdef WEFT_EMULATED_VECTORS
    sum = _mm256_dpbusd_epi32(sum, x, w);
#else
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
#endif
    return sum;
  }
};

void narrow(std::int8_t* dst, const std::int32_t* src, std::size_t n) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i),
                     _mm512_cvtepi32_epi8(_mm512_loadu_si512(src + i)));
  }
  for (; i < n; ++i) dst[i] = static_cast<std::int8_t>(src[i]);
}

/// Four registers of 16 groups each: out[g] holds group g of 16 rows of four groups.
inline void transpose_16(__m512i (&out)[4], const std::int8_t* raw) {
  const __m512i by_group = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512i r[4];
  for (int i = 0; i < 4; ++i)  // rows 4i .. 4i+3; lane g then holds their groups g
    r[i] = _mm512_permutexvar_epi32(by_group, _mm512_loadu_si512(raw + 64 * i));
  __m512i a = _mm512_shuffle_i32x4(r[0], r[1], 0x44), b = _mm512_shuffle_i32x4(r[2], r[3], 0x44);
  __m512i c = _mm512_shuffle_i32x4(r[0], r[1], 0xee), d = _mm512_shuffle_i32x4(r[2], r[3], 0xee);
  out[0] = _mm512_shuffle_i32x4(a, b, 0x88), out[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
  out[2] = _mm512_shuffle_i32x4(c, d, 0x88), out[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

void pack_wgt(std::byte* packed, const std::int8_t* raw, int block) {
  __m512i out[4];
  if (block == 16) {
    transpose_16(out, raw);
    const __m512i bias = _mm512_set1_epi32(static_cast<int>(0x80808080u));
    __m512i even = _mm512_dpbusd_epi32(_mm512_set1_epi32(0), bias, out[0]),
            odd = _mm512_dpbusd_epi32(_mm512_set1_epi32(0), bias, out[1]);
    even = _mm512_dpbusd_epi32(even, bias, out[2]), odd = _mm512_dpbusd_epi32(odd, bias, out[3]);
    for (int g = 0; g < 4; ++g) _mm512_storeu_si512(packed + 64 * g, out[g]);
    _mm512_storeu_si512(packed + 256, _mm512_add_epi32(even, odd));
    return;
  }
  if (block % 16 != 0) {
    transpose_groups(packed, raw, block);
    if (block == 8) write_excess<Half>(packed, block);
    return;
  }
  for (int o = 0; o < block; o += 16) {
    for (int k = 0; k < block; k += 16) {
      alignas(64) std::int8_t part[256];
      for (int i = 0; i < 16; ++i) __builtin_memcpy(part + 16 * i, raw + (o + i) * block + k, 16);
      transpose_16(out, part);
      for (int g = 0; g < 4; ++g)
        _mm512_storeu_si512(packed + ((k / 4 + g) * block + o) * 4, out[g]);
    }
  }
  write_excess<Vector>(packed, block);
}

void gemm(
    const GemmCall& call) {  // 16 sums of 32 registers: as many as the two units' latency asks
  switch (call.block) {
    case 8: return gemm_count<Half, 8, 1, 8, 2>(call);
    case 16: return gemm_count<Vector, 8, 1, 16, 2>(call);
    case 32: return gemm_count<Vector, 8, 2, 32, 1>(call);
    case 64: return gemm_count<Vector, 8, 2, 64, 1>(call);
    default: return gemm_4(call);
  }
}

constexpr KernelSet kSet{
    "avx512-vnni", 8,      1,    packed_wgt_bytes, std::byte{0x80}, pack_inp, pack_wgt, gemm,
    alu,           narrow, widen};
}  // namespace

const KernelSet* vnni_kernels() {
  bool usable = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vnni");
  return usable ? &kSet : nullptr;
}

}  // namespace weft::vta
