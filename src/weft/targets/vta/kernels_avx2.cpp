// SPDX-License-Identifier: Apache-2.0
// Pairs of products by vpmaddwd in 256 bits.
#include "weft/targets/vta/kernels.h"

#include <immintrin.h>

namespace weft::vta {
namespace {
#define WEFT_VTA_OWN_NARROW
#include "weft/targets/vta/kernels_common.inl"
#include "weft/targets/vta/kernels_pairs.inl"

constexpr int kRowsAtOnce = 6;  // 12 accumulators, 2 weights, 1 input, 1 product: all 16 registers

struct Vector {
  using Register = __m256i;
  static constexpr int kLanes = 8;
  static Register load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static void store(void* p, Register v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
  static Register pair(const void* p) {
    int two;
    __builtin_memcpy(&two, p, 4);
    return _mm256_set1_epi32(two);
  }
  /// acc += pair products. Written out because compilers otherwise gather the products of a whole
  /// tile before adding them, and run out of registers.
  static void multiply_add(Register& acc, Register x, Register w) {
    Register product;
    __asm__ volatile("vpmaddwd %[w], %[x], %[p]\n\tvpaddd %[p], %[a], %[a]"
                     : [a] "+x"(acc), [p] "=&x"(product)
                     : [x] "x"(x), [w] "x"(w));
  }
};

void narrow(std::int8_t* dst, const std::int32_t* src, std::size_t n) {
  const __m256i mask = _mm256_set1_epi32(0xff);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  std::size_t i = 0;
  auto low = [&](std::size_t at) {
    return _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + at)), mask);
  };
  for (; i + 32 <= n; i += 32) {
    __m256i a = _mm256_packus_epi32(low(i), low(i + 8));
    __m256i b = _mm256_packus_epi32(low(i + 16), low(i + 24));
    __m256i c = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + i), c);
  }
  for (; i + 16 <= n; i += 16) {
    __m256i a = _mm256_permute4x64_epi64(_mm256_packus_epi32(low(i), low(i + 8)), 0xd8);
    __m128i c = _mm_packus_epi16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i), c);
  }
  for (; i < n; ++i) dst[i] = static_cast<std::int8_t>(src[i]);
}

void pack_inp(std::byte* packed, const std::int8_t* raw, std::size_t rows, int block) {
  std::size_t n = rows * static_cast<std::size_t>(block), i = 0;
  std::int16_t* out = reinterpret_cast<std::int16_t*>(packed);
  for (; i + 16 <= n; i += 16) {
    __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(raw + i)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), v);
  }
  for (; i < n; ++i) out[i] = raw[i];
}

/// Transposes 8 rows of 8 pairs of bytes in each half; row k of the result holds pair k of the
/// rows.
inline void transpose_pairs(__m256i* r) {
  __m256i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = _mm256_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm256_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm256_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm256_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    r[2 * i] = _mm256_unpacklo_epi64(b[i], b[4 + i]);
    r[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[4 + i]);
  }
}

void pack_wgt(std::byte* packed, const std::int8_t* raw, int block) {
  std::int16_t* out = reinterpret_cast<std::int16_t*>(packed);
  if (block % 16 != 0) {
    for (int o = 0; o < block; ++o) {
      for (int k = 0; k < block; ++k) out[(k / 2 * block + o) * 2 + k % 2] = raw[o * block + k];
    }
    return;
  }
  for (int o = 0; o < block; o += 16) {
    for (int k = 0; k < block; k += 16) {
      auto row = [&](int i) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(raw + (o + i) * block + k));
      };
      __m256i r[8];
      for (int i = 0; i < 8; ++i)
        r[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(row(i)), row(i + 8), 1);
      transpose_pairs(r);
      for (int i = 0; i < 8; ++i) {
        __m256i* to = reinterpret_cast<__m256i*>(out + ((k / 2 + i) * block + o) * 2);
        _mm256_storeu_si256(to, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(r[i])));
        _mm256_storeu_si256(to + 1, _mm256_cvtepi8_epi16(_mm256_extracti128_si256(r[i], 1)));
      }
    }
  }
}

void gemm(const GemmCall& call) {
  switch (call.block) {
    case 8: return gemm_count<Vector, kRowsAtOnce, 1, 8>(call);
    case 16: return gemm_count<Vector, kRowsAtOnce, 2, 16>(call);
    case 32: return gemm_count<Vector, kRowsAtOnce, 2, 32>(call);
    case 64: return gemm_count<Vector, kRowsAtOnce, 2, 64>(call);
    default: break;
  }
  const int block = call.block;  // 4
  for (std::size_t r = 0; r < call.row_count; ++r) {
    std::int32_t* acc = call.acc + call.rows[r].acc;
    for (std::size_t s = 0; s < call.step_count; ++s) {
      const std::int16_t* x =
          reinterpret_cast<const std::int16_t*>(call.inp + call.rows[r].inp + call.steps[s].inp);
      const std::int16_t* w = reinterpret_cast<const std::int16_t*>(call.wgt + call.steps[s].wgt);
      for (int k = 0; k < block; ++k) {
        for (int o = 0; o < block; ++o) {
          std::uint32_t product =
              static_cast<std::uint32_t>(x[k] * w[(k / 2 * block + o) * 2 + k % 2]);
          acc[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc[o]) + product);
        }
      }
    }
  }
}
constexpr KernelSet kSet{"avx2",   kRowsAtOnce, 2,   packed_wgt_bytes, std::byte{0}, pack_inp,
                         pack_wgt, gemm,        alu, narrow,           widen};
}  // namespace

const KernelSet* avx2_kernels() { return __builtin_cpu_supports("avx2") ? &kSet : nullptr; }

}  // namespace weft::vta
