// SPDX-License-Identifier: Apache-2.0
// Pairs of products by vpmaddwd: inputs widened to int16, weights laid out as [k / 2][o][2] int16. A pair's sum
// is at most 2 * 128 * 128, so nothing saturates.
#include "weft/targets/vta/kernels.h"

#include <immintrin.h>

namespace weft::vta {
namespace {
#include "weft/targets/vta/kernels_common.inl"

void narrow(std::int8_t* dst, const std::int32_t* src, std::size_t n) {
  const __m256i mask = _mm256_set1_epi32(0xff);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  std::size_t i = 0;
  auto low = [&](std::size_t at) { return _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + at)), mask); };
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

void pack_inp(std::byte* packed, std::int32_t*, const std::int8_t* raw, std::size_t rows, int block) {
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
      for (int i = 0; i < 8; ++i) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(raw + (o + i) * block + k));
      transpose_pairs(r);
      for (int i = 0; i < 8; ++i) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + ((k / 2 + i) * block + o) * 2), _mm256_cvtepi8_epi16(r[i]));
      }
    }
  }
}

/// kColumns vectors of 8 accumulators per row.
template <int kRows, int kColumns, int kBlock>
void gemm_rows(const GemmRow* rows, const GemmStep* steps, std::size_t n, const std::byte* wgt, int first) {
  __m256i acc[kRows][kColumns];
  const std::byte* inp[kRows];
  for (int r = 0; r < kRows; ++r) {
    inp[r] = rows[r].inp;
    for (int c = 0; c < kColumns; ++c) acc[r][c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r].acc + first + 8 * c));
  }
  for (std::size_t s = 0; s < n; ++s) {
    const std::byte* w = wgt + steps[s].wgt + first * 4;
    const std::uint32_t at = steps[s].inp;
#pragma GCC unroll 8
    for (int k = 0; k < kBlock / 2; ++k) {
      __m256i v[kColumns];
      for (int c = 0; c < kColumns; ++c) v[c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + (k * kBlock + 8 * c) * 4));
      for (int r = 0; r < kRows; ++r) {
        int pair;
        __builtin_memcpy(&pair, inp[r] + at + 4 * k, 4);
        __m256i x = _mm256_set1_epi32(pair);
        for (int c = 0; c < kColumns; ++c) acc[r][c] = _mm256_add_epi32(acc[r][c], _mm256_madd_epi16(x, v[c]));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows[r].acc + first + 8 * c), acc[r][c]);
  }
}

template <int kColumns, int kBlock>
void gemm_count(const GemmRow* rows, int count, const GemmStep* steps, std::size_t n, const std::byte* wgt) {
  for (int first = 0; first < kBlock; first += 8 * kColumns) {
    switch (count) {
      case 1: gemm_rows<1, kColumns, kBlock>(rows, steps, n, wgt, first); break;
      case 2: gemm_rows<2, kColumns, kBlock>(rows, steps, n, wgt, first); break;
      case 3: gemm_rows<3, kColumns, kBlock>(rows, steps, n, wgt, first); break;
      default: gemm_rows<4, kColumns, kBlock>(rows, steps, n, wgt, first); break;
    }
  }
}

void gemm(const GemmRow* rows, int count, const GemmStep* steps, std::size_t n, const std::byte* wgt, int block) {
  switch (block) {
    case 8: return gemm_count<1, 8>(rows, count, steps, n, wgt);
    case 16: return gemm_count<2, 16>(rows, count, steps, n, wgt);
    case 32: return gemm_count<2, 32>(rows, count, steps, n, wgt);
    case 64: return gemm_count<2, 64>(rows, count, steps, n, wgt);
    default: break;
  }
  for (int r = 0; r < count; ++r) {   // blocks of 4
    for (std::size_t s = 0; s < n; ++s) {
      const std::int16_t* x = reinterpret_cast<const std::int16_t*>(rows[r].inp + steps[s].inp);
      const std::int16_t* w = reinterpret_cast<const std::int16_t*>(wgt + steps[s].wgt);
      for (int k = 0; k < block; ++k) {
        for (int o = 0; o < block; ++o) {
          std::uint32_t product = static_cast<std::uint32_t>(x[k] * w[(k / 2 * block + o) * 2 + k % 2]);
          rows[r].acc[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(rows[r].acc[o]) + product);
        }
      }
    }
  }
}
constexpr KernelSet kSet{"avx2", 4, 2, 2, pack_inp, pack_wgt, gemm, alu, narrow, widen};
}  // namespace

const KernelSet* avx2_kernels() { return __builtin_cpu_supports("avx2") ? &kSet : nullptr; }

}  // namespace weft::vta
