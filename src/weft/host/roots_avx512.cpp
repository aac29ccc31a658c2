// SPDX-License-Identifier: Apache-2.0
// An estimate of 1 / sqrt(x) to 14 bits, steps of Goldschmidt's iteration, and Markstein's last
// step, whose remainder x - g * g is exact: the nearest number. Where x is not well inside the
// range (zeros, infinities, NaN, negative and very small numbers) the instruction is asked.

#include "weft/host/roots_avx512.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cfloat>

#define WEFT_HERE __attribute__((target("avx512f,avx512dq")))
#define WEFT_INLINE __attribute__((target("avx512f,avx512dq"), always_inline)) inline

namespace weft {

namespace {

/// g = sqrt(x) and h = 1 / (2 sqrt(x)), both to twice as many digits as before.
WEFT_INLINE void refine(__m512d& g, __m512d& h) {
  const __m512d r = _mm512_fnmadd_pd(g, h, _mm512_set1_pd(0.5));
  g = _mm512_fmadd_pd(g, r, g);
  h = _mm512_fmadd_pd(h, r, h);
}
WEFT_INLINE void refine(__m512& g, __m512& h) {
  const __m512 r = _mm512_fnmadd_ps(g, h, _mm512_set1_ps(0.5F));
  g = _mm512_fmadd_ps(g, r, g);
  h = _mm512_fmadd_ps(h, r, h);
}

/// `exact`: the nearest number; else within 2^-50 of the root, for results that are rounded again.
template <bool exact>
WEFT_INLINE __m512d root(__m512d x) {
  const __mmask8 usual = _mm512_cmp_pd_mask(x, _mm512_set1_pd(0x1p-960), _CMP_GE_OQ) &
                         _mm512_cmp_pd_mask(x, _mm512_set1_pd(DBL_MAX), _CMP_LE_OQ);
  if (usual != 0xff) return _mm512_sqrt_pd(x);
  const __m512d y = _mm512_rsqrt14_pd(x);
  __m512d g = _mm512_mul_pd(x, y), h = _mm512_mul_pd(y, _mm512_set1_pd(0.5));
  refine(g, h);
  if (exact) refine(g, h);
  return _mm512_fmadd_pd(_mm512_fnmadd_pd(g, g, x), h, g);
}

WEFT_INLINE __m512 root(__m512 x) {
  const __mmask16 usual = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p-100F), _CMP_GE_OQ) &
                          _mm512_cmp_ps_mask(x, _mm512_set1_ps(FLT_MAX), _CMP_LE_OQ);
  if (usual != 0xffff) return _mm512_sqrt_ps(x);
  const __m512 y = _mm512_rsqrt14_ps(x);
  __m512 g = _mm512_mul_ps(x, y), h = _mm512_mul_ps(y, _mm512_set1_ps(0.5F));
  refine(g, h);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(g, g, x), h, g);
}

WEFT_HERE void roots_of_double(std::int64_t n, const void* const* in, void* out) {
  const auto* const x = static_cast<const double*>(in[0]);
  auto* const to = static_cast<double*>(out);
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm512_storeu_pd(to + i, root<true>(_mm512_loadu_pd(x + i)));
  if (i == n) return;
  const auto rest = static_cast<__mmask8>((1U << (n - i)) - 1);
  const __m512d last = _mm512_mask_loadu_pd(_mm512_set1_pd(1), rest, x + i);
  _mm512_mask_storeu_pd(to + i, rest, root<true>(last));
}

WEFT_HERE void roots_of_float(std::int64_t n, const void* const* in, void* out) {
  const auto* const x = static_cast<const float*>(in[0]);
  auto* const to = static_cast<float*>(out);
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) _mm512_storeu_ps(to + i, root(_mm512_loadu_ps(x + i)));
  if (i == n) return;
  const auto rest = static_cast<__mmask16>((1U << (n - i)) - 1);
  const __m512 last = _mm512_mask_loadu_ps(_mm512_set1_ps(1), rest, x + i);
  _mm512_mask_storeu_ps(to + i, rest, root(last));
}

/// Of eight complex numbers: squares of float32 are exact in float64, and their sum's root is
/// rounded to float32 once more. An infinite part makes it infinite beside NaN, too.
WEFT_INLINE __m256 magnitudes(__m512 pairs) {
  const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(pairs));
  const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(pairs, 1));
  const __m512d a = _mm512_mul_pd(low, low), b = _mm512_mul_pd(high, high);
  const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
  const __m512d re = _mm512_permutex2var_pd(a, even, b), im = _mm512_permutex2var_pd(a, odd, b);
  const __m512d infinity = _mm512_set1_pd(__builtin_inf());
  const __mmask8 infinite =
      _mm512_cmp_pd_mask(re, infinity, _CMP_EQ_OQ) | _mm512_cmp_pd_mask(im, infinity, _CMP_EQ_OQ);
  const __m512d sum = _mm512_mask_mov_pd(_mm512_add_pd(re, im), infinite, infinity);
  return _mm512_cvtpd_ps(root<false>(sum));
}

WEFT_HERE void magnitudes_of_complex(std::int64_t n, const void* const* in, void* out) {
  const auto* const x = static_cast<const float*>(in[0]);
  auto* const to = static_cast<float*>(out);
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(to + i, magnitudes(_mm512_loadu_ps(x + 2 * i)));
  if (i == n) return;
  const auto rest = static_cast<__mmask16>((1U << (2 * (n - i))) - 1);
  const __m512 last = _mm512_mask_loadu_ps(_mm512_set1_ps(1), rest, x + 2 * i);
  alignas(32) float found[8];
  _mm256_store_ps(found, magnitudes(last));
  for (std::int64_t k = 0; i + k < n; ++k) to[i + k] = found[k];
}

}  // namespace

void put_roots_avx512(KernelTable& table) {
  const auto put = [&](Op op, Elem e, ElementwiseFn fn) {
    table.elementwise[static_cast<int>(op)][static_cast<int>(e)] = fn;
  };
  put(Op::sqrt, Elem::float64, roots_of_double);
  put(Op::sqrt, Elem::float32, roots_of_float);
  put(Op::abs, Elem::complex64, magnitudes_of_complex);
}

}  // namespace weft

#endif
