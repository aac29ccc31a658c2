// SPDX-License-Identifier: Apache-2.0
// Products that fit the caches as they lie: rows of B are read as whole vectors, the last one by
// its mask, and each element of A is spread to all lanes. Nothing is packed, which for such sizes
// takes as long as the product.

#include "weft/host/small_gemm.h"

#include <algorithm>

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define WEFT_HERE __attribute__((target("avx512f")))
#define WEFT_INLINE __attribute__((target("avx512f"), always_inline)) inline

namespace weft {

namespace {

using I = std::int64_t;

template <typename T>
struct Lanes;
template <>
struct Lanes<float> {
  using V = __m512;
  using Mask = __mmask16;
  static constexpr I kCount = 16;
  WEFT_INLINE static V zero() { return _mm512_setzero_ps(); }
  WEFT_INLINE static V all(float x) { return _mm512_set1_ps(x); }
  WEFT_INLINE static V load(Mask m, const float* p) { return _mm512_maskz_loadu_ps(m, p); }
  WEFT_INLINE static void store(float* p, Mask m, V v) { _mm512_mask_storeu_ps(p, m, v); }
  WEFT_INLINE static V add(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
};
template <>
struct Lanes<double> {
  using V = __m512d;
  using Mask = __mmask8;
  static constexpr I kCount = 8;
  WEFT_INLINE static V zero() { return _mm512_setzero_pd(); }
  WEFT_INLINE static V all(double x) { return _mm512_set1_pd(x); }
  WEFT_INLINE static V load(Mask m, const double* p) { return _mm512_maskz_loadu_pd(m, p); }
  WEFT_INLINE static void store(double* p, Mask m, V v) { _mm512_mask_storeu_pd(p, m, v); }
  WEFT_INLINE static V add(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
};

template <typename T>
struct Product {
  I k;
  const T* a;
  I a_row, a_col;
  const T* b;
  I b_row;
  T* c;
  I ldc;
};

/// kRows rows of C, kVectors vectors of columns, the last one as wide as its mask.
template <typename T, int kRows, int kVectors>
WEFT_HERE void tile(const Product<T>& x, typename Lanes<T>::Mask last) {
  using L = Lanes<T>;
  typename L::V sums[kRows][kVectors];
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = L::zero();
  }
  const auto mask = [last](int v) {
    return v + 1 < kVectors ? static_cast<typename L::Mask>(~0u) : last;
  };
  const T *a = x.a, *b = x.b;
  for (I p = 0; p < x.k; ++p, a += x.a_col, b += x.b_row) {
    typename L::V row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = L::load(mask(v), b + v * L::kCount);
#pragma GCC unroll 24
    for (int r = 0; r < kRows; ++r) {
      const typename L::V by = L::all(a[r * x.a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = L::add(by, row[v], sums[r][v]);
    }
  }
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      L::store(x.c + r * x.ldc + v * L::kCount, mask(v), sums[r][v]);
  }
}

/// All rows of a strip of columns: kMost at a time, then fewer.
template <typename T, int kMost, int kVectors>
void rows(Product<T> x, I m, typename Lanes<T>::Mask last) {
  const auto next = [&](I count) { x.a += count * x.a_row, x.c += count * x.ldc, m -= count; };
  for (; m >= kMost; next(kMost)) tile<T, kMost, kVectors>(x, last);
  if constexpr (kMost > 8) {
    if (m >= 8) tile<T, 8, kVectors>(x, last), next(8);
  }
  if constexpr (kMost > 4) {
    if (m >= 4) tile<T, 4, kVectors>(x, last), next(4);
  }
  if (m >= 2) tile<T, 2, kVectors>(x, last), next(2);
  if (m >= 1) tile<T, 1, kVectors>(x, last);
}

}  // namespace

template <typename T>
bool small_gemm(I m, I n, I k, const T* a, I a_row, I a_col, const T* b, I b_row, I b_col, T* c,
                I ldc) {
  using L = Lanes<T>;
  constexpr I kSide = 80, kThin = 32, kBytes = 131072;
  const bool fits = (m <= kSide && n <= kSide && k <= kSide) || (m <= kThin && n <= 2 * L::kCount);
  if (!fits || b_col != 1 || m < 2 || n < 2 || k < 4 || k * n * static_cast<I>(sizeof(T)) > kBytes)
    return false;
  if (!__builtin_cpu_supports("avx512f")) return false;
  // Strips of equal widths: of five vectors three and two.
  const I vectors = (n + L::kCount - 1) / L::kCount, strips = (vectors + 3) / 4;
  for (I s = 0, at = 0; s < strips; ++s) {
    const I width = (vectors - at + strips - s - 1) / (strips - s), j = at * L::kCount;
    const I left = std::min(n - j, width * L::kCount) - (width - 1) * L::kCount;
    const auto last = static_cast<typename L::Mask>((1u << left) - 1);
    const Product<T> x{k, a, a_row, a_col, b + j, b_row, c + j, ldc};
    switch (width) {
      case 1: rows<T, 16, 1>(x, m, last); break;
      case 2: rows<T, 12, 2>(x, m, last); break;
      case 3: rows<T, 8, 3>(x, m, last); break;
      default: rows<T, 6, 4>(x, m, last); break;
    }
    at += width;
  }
  return true;
}

}  // namespace weft

#else

namespace weft {

template <typename T>
bool small_gemm(std::int64_t, std::int64_t, std::int64_t, const T*, std::int64_t, std::int64_t,
                const T*, std::int64_t, std::int64_t, T*, std::int64_t) {
  return false;
}

}  // namespace weft

#endif

namespace weft {

template bool small_gemm(std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t,
                         std::int64_t, const float*, std::int64_t, std::int64_t, float*,
                         std::int64_t);
template bool small_gemm(std::int64_t, std::int64_t, std::int64_t, const double*, std::int64_t,
                         std::int64_t, const double*, std::int64_t, std::int64_t, double*,
                         std::int64_t);

}  // namespace weft
