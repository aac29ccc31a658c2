// SPDX-License-Identifier: Apache-2.0
// Groups of four products by vpdpbusd, which multiplies unsigned by signed bytes without saturating. Weights are
// kept as w + 128 in [k / 4][o][4]; each step then adds 128 * sum(x) too much, which is taken off once per row.
#include "weft/targets/vta/kernels.h"

#include <immintrin.h>

namespace weft::vta {
namespace {
#include "weft/targets/vta/kernels_common.inl"

void narrow(std::int8_t* dst, const std::int32_t* src, std::size_t n) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i), _mm512_cvtepi32_epi8(_mm512_loadu_si512(src + i)));
  }
  for (; i < n; ++i) dst[i] = static_cast<std::int8_t>(src[i]);
}

void pack_inp(std::byte* packed, std::int32_t* sums, const std::int8_t* raw, std::size_t rows, int block) {
  __builtin_memcpy(packed, raw, rows * static_cast<std::size_t>(block));
  if (block == 16) {
    const __m128i ones = _mm_set1_epi8(1);
    for (std::size_t r = 0; r < rows; ++r) {
      __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(raw + 16 * r));
      __m128i s = _mm_dpbusd_epi32(_mm_setzero_si128(), ones, v);
      s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
      s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
      sums[r] = _mm_cvtsi128_si32(s);
    }
    return;
  }
  for (std::size_t r = 0; r < rows; ++r) {
    std::int32_t sum = 0;
    for (int k = 0; k < block; ++k) sum += raw[r * static_cast<std::size_t>(block) + static_cast<std::size_t>(k)];
    sums[r] = sum;
  }
}

void pack_wgt(std::byte* packed, const std::int8_t* raw, int block) {
  if (block == 16) {
    // 16 rows of 4 groups: a transpose of 4-byte units by two rounds of shuffles.
    const __m512i bias = _mm512_set1_epi8(static_cast<char>(0x80));
    __m512i r[4];
    for (int i = 0; i < 4; ++i) r[i] = _mm512_xor_si512(_mm512_loadu_si512(raw + 64 * i), bias);   // rows 4i .. 4i+3
    const __m512i by_group = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (__m512i& v : r) v = _mm512_permutexvar_epi32(by_group, v);      // lane g: group g of the four rows
    __m512i a = _mm512_shuffle_i32x4(r[0], r[1], 0x44), b = _mm512_shuffle_i32x4(r[2], r[3], 0x44);   // groups 0, 1
    __m512i c = _mm512_shuffle_i32x4(r[0], r[1], 0xee), d = _mm512_shuffle_i32x4(r[2], r[3], 0xee);   // groups 2, 3
    _mm512_storeu_si512(packed, _mm512_shuffle_i32x4(a, b, 0x88));
    _mm512_storeu_si512(packed + 64, _mm512_shuffle_i32x4(a, b, 0xdd));
    _mm512_storeu_si512(packed + 128, _mm512_shuffle_i32x4(c, d, 0x88));
    _mm512_storeu_si512(packed + 192, _mm512_shuffle_i32x4(c, d, 0xdd));
    return;
  }
  for (int o = 0; o < block; ++o) {
    for (int k = 0; k < block; ++k) {
      packed[(k / 4 * block + o) * 4 + k % 4] = static_cast<std::byte>(static_cast<std::uint8_t>(raw[o * block + k]) ^ 0x80u);
    }
  }
}

template <int kRows, int kColumns, int kBlock>
void gemm_rows(const GemmRow* rows, const GemmStep* steps, std::size_t n, const std::byte* wgt, int first) {
  __m512i acc[kRows][kColumns];
  const std::byte* inp[kRows];
  std::int32_t sum[kRows] = {};
  for (int r = 0; r < kRows; ++r) {
    inp[r] = rows[r].inp;
    for (int c = 0; c < kColumns; ++c) acc[r][c] = _mm512_loadu_si512(rows[r].acc + first + 16 * c);
  }
  for (std::size_t s = 0; s < n; ++s) {
    const std::byte* w = wgt + steps[s].wgt + first * 4;
    const std::uint32_t at = steps[s].inp;
    for (int r = 0; r < kRows; ++r) sum[r] += rows[r].sum[at / kBlock];
#pragma GCC unroll 8
    for (int k = 0; k < kBlock / 4; ++k) {
      __m512i v[kColumns];
      for (int c = 0; c < kColumns; ++c) v[c] = _mm512_loadu_si512(w + (k * kBlock + 16 * c) * 4);
      for (int r = 0; r < kRows; ++r) {
        int four;
        __builtin_memcpy(&four, inp[r] + at + 4 * k, 4);
        __m512i x = _mm512_set1_epi32(four);
        for (int c = 0; c < kColumns; ++c) acc[r][c] = _mm512_dpbusd_epi32(acc[r][c], v[c], x);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    __m512i extra = _mm512_set1_epi32(static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[r]) * 128u));
    for (int c = 0; c < kColumns; ++c) _mm512_storeu_si512(rows[r].acc + first + 16 * c, _mm512_sub_epi32(acc[r][c], extra));
  }
}

template <int kRows>
void gemm_rows_8(const GemmRow* rows, const GemmStep* steps, std::size_t n, const std::byte* wgt) {
  __m256i acc[kRows];
  std::int32_t sum[kRows] = {};
  for (int r = 0; r < kRows; ++r) acc[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r].acc));
  for (std::size_t s = 0; s < n; ++s) {
    const std::byte* w = wgt + steps[s].wgt;
    const std::uint32_t at = steps[s].inp;
    for (int r = 0; r < kRows; ++r) sum[r] += rows[r].sum[at / 8];
    for (int k = 0; k < 2; ++k) {
      __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + k * 32));
      for (int r = 0; r < kRows; ++r) {
        int four;
        __builtin_memcpy(&four, rows[r].inp + at + 4 * k, 4);
        acc[r] = _mm256_dpbusd_epi32(acc[r], v, _mm256_set1_epi32(four));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    __m256i extra = _mm256_set1_epi32(static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[r]) * 128u));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows[r].acc), _mm256_sub_epi32(acc[r], extra));
  }
}

template <int kColumns, int kBlock>
void gemm_count(const GemmRow* rows, int count, const GemmStep* steps, std::size_t n, const std::byte* wgt) {
  for (int first = 0; first < kBlock; first += 16 * kColumns) {
    int r = 0;
    for (; r + 8 <= count; r += 8) gemm_rows<8, kColumns, kBlock>(rows + r, steps, n, wgt, first);
    if (count - r >= 4) gemm_rows<4, kColumns, kBlock>(rows + r, steps, n, wgt, first), r += 4;
    if (count - r >= 2) gemm_rows<2, kColumns, kBlock>(rows + r, steps, n, wgt, first), r += 2;
    if (count - r >= 1) gemm_rows<1, kColumns, kBlock>(rows + r, steps, n, wgt, first);
  }
}

void gemm(const GemmRow* rows, int count, const GemmStep* steps, std::size_t n, const std::byte* wgt, int block) {
  switch (block) {
    case 16: return gemm_count<1, 16>(rows, count, steps, n, wgt);
    case 32: return gemm_count<2, 32>(rows, count, steps, n, wgt);
    case 64: return gemm_count<2, 64>(rows, count, steps, n, wgt);
    case 8: {
      int r = 0;
      for (; r + 8 <= count; r += 8) gemm_rows_8<8>(rows + r, steps, n, wgt);
      if (count - r >= 4) gemm_rows_8<4>(rows + r, steps, n, wgt), r += 4;
      if (count - r >= 2) gemm_rows_8<2>(rows + r, steps, n, wgt), r += 2;
      if (count - r >= 1) gemm_rows_8<1>(rows + r, steps, n, wgt);
      return;
    }
    default: break;
  }
  for (int r = 0; r < count; ++r) {   // blocks of 4
    for (std::size_t s = 0; s < n; ++s) {
      const std::int8_t* x = reinterpret_cast<const std::int8_t*>(rows[r].inp + steps[s].inp);
      const std::uint8_t* w = reinterpret_cast<const std::uint8_t*>(wgt + steps[s].wgt);
      for (int k = 0; k < block; ++k) {
        for (int o = 0; o < block; ++o) {
          std::uint32_t product = static_cast<std::uint32_t>(x[k] * (w[(k / 4 * block + o) * 4 + k % 4] - 128));
          rows[r].acc[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(rows[r].acc[o]) + product);
        }
      }
    }
  }
}
constexpr KernelSet kSet{"avx512-vnni", 8, 1, 1, pack_inp, pack_wgt, gemm, alu, narrow, widen};
}  // namespace

const KernelSet* vnni_kernels() {
  bool usable = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
  return usable ? &kSet : nullptr;
}

}  // namespace weft::vta
