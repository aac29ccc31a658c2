// SPDX-License-Identifier: Apache-2.0
// vpdpbusd in 256 bits, for processors that have AVX-VNNI but no AVX-512. Layouts are those of the
// AVX-512 set: inputs as they are, weights as w + 128 in [k / 4][o][4], and 128 * sum(x) taken off
// once per row.
#include "weft/targets/vta/kernels.h"

#include <cpuid.h>
#include <immintrin.h>

namespace weft::vta {
namespace {
#include "weft/targets/vta/kernels_common.inl"

void narrow(std::int8_t* __restrict dst, const std::int32_t* __restrict src, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = static_cast<std::int8_t>(src[i]);
}

void pack_inp(std::byte* packed, std::int32_t* sums, const std::int8_t* raw, std::size_t rows,
              int block) {
  __builtin_memcpy(packed, raw, rows * static_cast<std::size_t>(block));
  for (std::size_t r = 0; r < rows; ++r) {
    std::int32_t sum = 0;
    for (int k = 0; k < block; ++k)
      sum += raw[r * static_cast<std::size_t>(block) + static_cast<std::size_t>(k)];
    sums[r] = sum;
  }
}

void pack_wgt(std::byte* packed, const std::int8_t* raw, int block) {
  for (int o = 0; o < block; ++o) {
    for (int k = 0; k + 4 <= block; k += 4) {
      std::uint32_t four;
      __builtin_memcpy(&four, raw + o * block + k, sizeof four);
      four ^= 0x80808080u;
      __builtin_memcpy(packed + (k * block / 4 + o) * 4, &four, sizeof four);
    }
  }
}

/// kRows rows by kColumns vectors of 8 results.
template <int kRows, int kColumns, int kBlock>
inline void gemm_rows(const GemmCall& call, const GemmRow* rows, int first) {
  __m256i acc[kRows][kColumns];
  std::int32_t sum[kRows] = {};
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < kColumns; ++c)
      acc[r][c] = _mm256_loadu_si256(
          reinterpret_cast<const __m256i*>(call.acc + rows[r].acc + first + 8 * c));
  }
  for (std::size_t s = 0; s < call.step_count; ++s) {
    const std::byte* w = call.wgt + call.steps[s].wgt + first * 4;
    const std::uint32_t at = call.steps[s].inp;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum[r] += call.sums[rows[r].sum + at / kBlock];
#pragma GCC unroll 4
    for (int k = 0; k < kBlock / 4; ++k) {
      __m256i v[kColumns];
#pragma GCC unroll 2
      for (int c = 0; c < kColumns; ++c)
        v[c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + (k * kBlock + 8 * c) * 4));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        int four;
        __builtin_memcpy(&four, call.inp + rows[r].inp + at + 4 * k, 4);
        __m256i x = _mm256_set1_epi32(four);
#pragma GCC unroll 2
        for (int c = 0; c < kColumns; ++c) acc[r][c] = _mm256_dpbusd_avx_epi32(acc[r][c], v[c], x);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    __m256i extra =
        _mm256_set1_epi32(static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[r]) * 128u));
#pragma GCC unroll 2
    for (int c = 0; c < kColumns; ++c)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(call.acc + rows[r].acc + first + 8 * c),
                          _mm256_sub_epi32(acc[r][c], extra));
  }
}

template <int kColumns, int kBlock>
void gemm_count(const GemmCall& call) {
  for (int first = 0; first < kBlock; first += 8 * kColumns) {
    const GemmRow* row = call.rows;
    std::size_t left = call.row_count;
    for (; left >= 6; left -= 6, row += 6) gemm_rows<6, kColumns, kBlock>(call, row, first);
    for (; left >= 2; left -= 2, row += 2) gemm_rows<2, kColumns, kBlock>(call, row, first);
    if (left) gemm_rows<1, kColumns, kBlock>(call, row, first);
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

constexpr KernelSet kSet{"avx-vnni", 6, 1, 1, pack_inp, pack_wgt, gemm, alu, narrow, widen};

/// CPUID leaf 7, subleaf 1, EAX bit 4.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
}  // namespace

const KernelSet* avxvnni_kernels() {
  return __builtin_cpu_supports("avx2") && has_avx_vnni() ? &kSet : nullptr;
}

}  // namespace weft::vta
