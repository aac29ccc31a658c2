// SPDX-License-Identifier: Apache-2.0
// Pairs of products by vpmaddwd: inputs widened to int16, weights laid out as [k / 2][o][2] int16.
// A pair's sum is at most 2 * 128 * 128, so nothing saturates.
#include "weft/targets/vta/kernels.h"

#include <immintrin.h>

namespace weft::vta {
namespace {
#define WEFT_VTA_OWN_NARROW
#include "weft/targets/vta/kernels_common.inl"

constexpr int kRowsAtOnce = 6;  // 12 accumulators, 2 weights, 1 input, 1 product: all 16 registers

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

/// Transposes 8 rows of 8 pairs of bytes; the result's row k holds pair k of the 8 given rows.
inline void transpose_pairs(__m128i* r) {
  __m128i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = _mm_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    r[2 * i] = _mm_unpacklo_epi64(b[i], b[4 + i]);
    r[2 * i + 1] = _mm_unpackhi_epi64(b[i], b[4 + i]);
  }
}

std::size_t packed_wgt_bytes(int block) {
  return 2 * static_cast<std::size_t>(block) * static_cast<std::size_t>(block);
}

void pack_wgt(std::byte* packed, const std::int8_t* raw, int block) {
  std::int16_t* out = reinterpret_cast<std::int16_t*>(packed);
  if (block % 16 != 0) {
    for (int o = 0; o < block; ++o) {
      for (int k = 0; k < block; ++k) out[(k / 2 * block + o) * 2 + k % 2] = raw[o * block + k];
    }
    return;
  }
  for (int o = 0; o < block; o += 8) {
    for (int k = 0; k < block; k += 16) {
      __m128i r[8];
      for (int i = 0; i < 8; ++i)
        r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(raw + (o + i) * block + k));
      transpose_pairs(r);
      for (int i = 0; i < 8; ++i) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + ((k / 2 + i) * block + o) * 2),
                            _mm256_cvtepi8_epi16(r[i]));
      }
    }
  }
}

/// acc += pair products. Written out because compilers otherwise gather the products of a whole
/// tile before adding them, and run out of registers.
inline void multiply_add(__m256i& acc, __m256i x, __m256i v) {
  __m256i product;
  __asm__ volatile("vpmaddwd %[v], %[x], %[p]\n\tvpaddd %[p], %[a], %[a]"
                   : [a] "+x"(acc), [p] "=&x"(product)
                   : [x] "x"(x), [v] "x"(v));
}

/// kColumns vectors of 8 accumulators per row.
template <int kRows, int kColumns, int kBlock>
inline void gemm_rows(const GemmCall& call, const GemmRow* rows, int first) {
  __m256i acc[kRows][kColumns];
  const std::byte* inp[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    inp[r] = call.inp + rows[r].inp;
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c)
      acc[r][c] = _mm256_loadu_si256(
          reinterpret_cast<const __m256i*>(call.acc + rows[r].acc + first + 8 * c));
  }
  const GemmStep* step = call.steps;
  const GemmStep* end = step + call.step_count;
  const std::byte* wgt = call.wgt + first * 4;
  for (; step != end; ++step) {
    const std::byte* w = wgt + step->wgt;
    const std::uint32_t at = step->inp;
#pragma GCC unroll 8
    for (int k = 0; k < kBlock / 2; ++k) {
      __m256i v[kColumns];
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c)
        v[c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + (k * kBlock + 8 * c) * 4));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        int pair;
        __builtin_memcpy(&pair, inp[r] + at + 4 * k, 4);
        __m256i x = _mm256_set1_epi32(pair);
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) multiply_add(acc[r][c], x, v[c]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(call.acc + rows[r].acc + first + 8 * c),
                          acc[r][c]);
  }
}

template <int kColumns, int kBlock>
void gemm_count(const GemmCall& call) {
  for (int first = 0; first < kBlock; first += 8 * kColumns) {
    const GemmRow* row = call.rows;
    std::size_t left = call.row_count;
    for (; left >= kRowsAtOnce; left -= kRowsAtOnce, row += kRowsAtOnce)
      gemm_rows<kRowsAtOnce, kColumns, kBlock>(call, row, first);
    switch (left) {
      case 1: gemm_rows<1, kColumns, kBlock>(call, row, first); break;
      case 2: gemm_rows<2, kColumns, kBlock>(call, row, first); break;
      case 3: gemm_rows<3, kColumns, kBlock>(call, row, first); break;
      case 4: gemm_rows<4, kColumns, kBlock>(call, row, first); break;
      case 5: gemm_rows<5, kColumns, kBlock>(call, row, first); break;
      default: break;
    }
  }
}

void gemm(const GemmCall& call) {
  switch (call.block) {
    case 8: return gemm_count<1, 8>(call);
    case 16: return gemm_count<2, 16>(call);
    case 32: return gemm_count<2, 32>(call);
    case 64: return gemm_count<2, 64>(call);
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
