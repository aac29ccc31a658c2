// SPDX-License-Identifier: Apache-2.0
// Groups of four products by vpdpbusd, which multiplies unsigned by signed bytes without
// saturating. Weights are kept as w + 128 in [k / 4][o][4]; each step then adds 128 * sum(x) too
// much, which is taken off once per row.
#include "weft/targets/vta/kernels.h"

#include <immintrin.h>

namespace weft::vta {
namespace {
#include "weft/targets/vta/kernels_common.inl"

void narrow(std::int8_t* dst, const std::int32_t* src, std::size_t n) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i),
                     _mm512_cvtepi32_epi8(_mm512_loadu_si512(src + i)));
  }
  for (; i < n; ++i) dst[i] = static_cast<std::int8_t>(src[i]);
}

void pack_inp(std::byte* packed, std::int32_t* sums, const std::int8_t* raw, std::size_t rows,
              int block) {
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
    for (int k = 0; k < block; ++k)
      sum += raw[r * static_cast<std::size_t>(block) + static_cast<std::size_t>(k)];
    sums[r] = sum;
  }
}

void pack_wgt(std::byte* packed, const std::int8_t* raw, int block) {
  if (block == 16) {
    // 16 rows of 4 groups: a transpose of 4-byte units by two rounds of shuffles.
    const __m512i bias = _mm512_set1_epi8(static_cast<char>(0x80));
    __m512i r[4];
    for (int i = 0; i < 4; ++i)
      r[i] = _mm512_xor_si512(_mm512_loadu_si512(raw + 64 * i), bias);  // rows 4i .. 4i+3
    const __m512i by_group =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (__m512i& v : r)
      v = _mm512_permutexvar_epi32(by_group, v);  // lane g: group g of the four rows
    __m512i a = _mm512_shuffle_i32x4(r[0], r[1], 0x44),
            b = _mm512_shuffle_i32x4(r[2], r[3], 0x44);  // groups 0, 1
    __m512i c = _mm512_shuffle_i32x4(r[0], r[1], 0xee),
            d = _mm512_shuffle_i32x4(r[2], r[3], 0xee);  // groups 2, 3
    _mm512_storeu_si512(packed, _mm512_shuffle_i32x4(a, b, 0x88));
    _mm512_storeu_si512(packed + 64, _mm512_shuffle_i32x4(a, b, 0xdd));
    _mm512_storeu_si512(packed + 128, _mm512_shuffle_i32x4(c, d, 0x88));
    _mm512_storeu_si512(packed + 192, _mm512_shuffle_i32x4(c, d, 0xdd));
    return;
  }
  for (int o = 0; o < block; ++o) {
    for (int k = 0; k < block; ++k) {
      packed[(k / 4 * block + o) * 4 + k % 4] =
          static_cast<std::byte>(static_cast<std::uint8_t>(raw[o * block + k]) ^ 0x80u);
    }
  }
}

template <int kRows, int kColumns, int kBlock>
inline void gemm_rows(const GemmCall& call, const GemmRow* rows, int first) {
  __m512i acc[kRows][kColumns];
  const std::byte* inp[kRows];
  const std::int32_t* sums[kRows];
  std::int32_t sum[kRows] = {};
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    inp[r] = call.inp + rows[r].inp;
    sums[r] = call.sums + rows[r].sum;
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c)
      acc[r][c] = _mm512_loadu_si512(call.acc + rows[r].acc + first + 16 * c);
  }
  const GemmStep* step = call.steps;
  const GemmStep* end = step + call.step_count;
  const std::byte* wgt = call.wgt + first * 4;
  for (; step != end; ++step) {
    const std::byte* w = wgt + step->wgt;
    const std::uint32_t at = step->inp;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum[r] += sums[r][at / kBlock];
#pragma GCC unroll 4
    for (int k = 0; k < kBlock / 4; ++k) {
      __m512i v[kColumns];
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) v[c] = _mm512_loadu_si512(w + (k * kBlock + 16 * c) * 4);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        int four;
        __builtin_memcpy(&four, inp[r] + at + 4 * k, 4);
        __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) acc[r][c] = _mm512_dpbusd_epi32(acc[r][c], v[c], x);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    __m512i extra =
        _mm512_set1_epi32(static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[r]) * 128u));
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c)
      _mm512_storeu_si512(call.acc + rows[r].acc + first + 16 * c,
                          _mm512_sub_epi32(acc[r][c], extra));
  }
}

template <int kRows>
inline void gemm_rows_8(const GemmCall& call, const GemmRow* rows) {
  __m256i acc[kRows];
  std::int32_t sum[kRows] = {};
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    acc[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(call.acc + rows[r].acc));
  for (std::size_t s = 0; s < call.step_count; ++s) {
    const std::byte* w = call.wgt + call.steps[s].wgt;
    const std::uint32_t at = call.steps[s].inp;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum[r] += call.sums[rows[r].sum + at / 8];
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + k * 32));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        int four;
        __builtin_memcpy(&four, call.inp + rows[r].inp + at + 4 * k, 4);
        acc[r] = _mm256_dpbusd_epi32(acc[r], v, _mm256_set1_epi32(four));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    __m256i extra =
        _mm256_set1_epi32(static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[r]) * 128u));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(call.acc + rows[r].acc),
                        _mm256_sub_epi32(acc[r], extra));
  }
}

template <int kColumns, int kBlock>
void gemm_count(const GemmCall& call) {
  for (int first = 0; first < kBlock; first += 16 * kColumns) {
    const GemmRow* row = call.rows;
    std::size_t left = call.row_count;
    for (; left >= 8; left -= 8, row += 8) gemm_rows<8, kColumns, kBlock>(call, row, first);
    if (left & 4) gemm_rows<4, kColumns, kBlock>(call, row, first), row += 4;
    if (left & 2) gemm_rows<2, kColumns, kBlock>(call, row, first), row += 2;
    if (left & 1) gemm_rows<1, kColumns, kBlock>(call, row, first);
  }
}

void gemm(const GemmCall& call) {
  switch (call.block) {
    case 16: return gemm_count<1, 16>(call);
    case 32: return gemm_count<2, 32>(call);
    case 64: return gemm_count<2, 64>(call);
    case 8: {
      const GemmRow* row = call.rows;
      std::size_t left = call.row_count;
      for (; left >= 8; left -= 8, row += 8) gemm_rows_8<8>(call, row);
      if (left & 4) gemm_rows_8<4>(call, row), row += 4;
      if (left & 2) gemm_rows_8<2>(call, row), row += 2;
      if (left & 1) gemm_rows_8<1>(call, row);
      return;
    }
    default: break;
  }
  const int block = call.block;  // 4
  for (std::size_t r = 0; r < call.row_count; ++r) {
    std::int32_t* acc = call.acc + call.rows[r].acc;
    for (std::size_t s = 0; s < call.step_count; ++s) {
      const std::int8_t* x =
          reinterpret_cast<const std::int8_t*>(call.inp + call.rows[r].inp + call.steps[s].inp);
      const std::uint8_t* w = reinterpret_cast<const std::uint8_t*>(call.wgt + call.steps[s].wgt);
      for (int k = 0; k < block; ++k) {
        for (int o = 0; o < block; ++o) {
          std::uint32_t product =
              static_cast<std::uint32_t>(x[k] * (w[(k / 4 * block + o) * 4 + k % 4] - 128));
          acc[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc[o]) + product);
        }
      }
    }
  }
}
constexpr KernelSet kSet{"avx512-vnni", 8, 1, 1, pack_inp, pack_wgt, gemm, alu, narrow, widen};
}  // namespace

const KernelSet* vnni_kernels() {
  bool usable = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vnni");
  return usable ? &kSet : nullptr;
}

}  // namespace weft::vta
