// SPDX-License-Identifier: Apache-2.0
#include "weft/base/vector_math_avx512.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstdint>

#define WEFT_HERE __attribute__((target("avx512f,avx512dq")))
#define WEFT_INLINE __attribute__((target("avx512f,avx512dq"), always_inline)) inline

namespace weft {

namespace {

constexpr int kTowardZero = 0x0b;  // no exceptions are raised

// For the upper four bits of a mantissa m in [1, 2): a number near 1 / m, and the base-2 logarithm
// that the product with it lacks. At both ends they are powers of two, so that nothing cancels
// around 1.
alignas(64) constexpr double kReciprocals[16] = {1.0,
                                                 0.9142857142857143,
                                                 0.8648648648648649,
                                                 0.8205128205128205,
                                                 0.7804878048780488,
                                                 0.7441860465116279,
                                                 0.7111111111111111,
                                                 0.6808510638297872,
                                                 0.6530612244897959,
                                                 0.6274509803921569,
                                                 0.6037735849056604,
                                                 0.5818181818181818,
                                                 0.5614035087719298,
                                                 0.5423728813559322,
                                                 0.5245901639344263,
                                                 0.5};
alignas(64) constexpr double kLogarithms[16] = {0.0,
                                                0.1292830169449665,
                                                0.2094533656289497,
                                                0.28540221886224837,
                                                0.3575520046180836,
                                                0.42626475470209796,
                                                0.49185309632967467,
                                                0.5545888516776374,
                                                0.6147098441152083,
                                                0.6724253419714956,
                                                0.7279204545631992,
                                                0.7813597135246597,
                                                0.8328900141647417,
                                                0.8826430493618412,
                                                0.9307373375628862,
                                                1.0};
// The bits of 2^(i / 16), less what i adds to them when it is shifted to the exponent's sixteenths.
alignas(64) constexpr std::uint64_t kPowersOfTwo[16] = {
    0x3ff0000000000000u, 0x3fefb5586cf9890fu, 0x3fef72b83c7d517bu, 0x3fef387a6e756238u,
    0x3fef06fe0a31b715u, 0x3feedea64c123422u, 0x3feebfdad5362a27u, 0x3feeab07dd485429u,
    0x3feea09e667f3bcdu, 0x3feea11473eb0187u, 0x3feeace5422aa0dbu, 0x3feec49182a3f090u,
    0x3feee89f995ad3adu, 0x3fef199bdd85529cu, 0x3fef5818dcfba487u, 0x3fefa4afa2a490dau};

WEFT_INLINE __m512d entry(const double* table, __m512i index) {
  return _mm512_permutex2var_pd(_mm512_load_pd(table), index, _mm512_load_pd(table + 8));
}
WEFT_INLINE __m512i entry(const std::uint64_t* table, __m512i index) {
  return _mm512_permutex2var_epi64(_mm512_load_si512(table), index, _mm512_load_si512(table + 8));
}
WEFT_INLINE __m512d number(double v) { return _mm512_set1_pd(v); }

/// The base-2 logarithm of numbers that are floats, x >= 0, its error below 2^-39 of it.
WEFT_INLINE __m512d log2_of_floats(__m512d x) {
  // Not by vgetmantpd, which waits for the old value of the register that it writes.
  const __m512d m = _mm512_castsi512_pd(
      _mm512_ternarylogic_epi64(_mm512_castpd_si512(x), _mm512_set1_epi64(0xfffffffffffff),
                                _mm512_castpd_si512(number(1)), 0xea));
  const __m512i part = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);
  const __m512d r = _mm512_fmsub_pd(m, entry(kReciprocals, part), number(1));
  const __m512d whole = _mm512_add_pd(_mm512_getexp_pd(x), entry(kLogarithms, part));
  // Least squares over Chebyshev's nodes of (-1/31, 1/16), weighted.
  const __m512d square = _mm512_mul_pd(r, r);
  const __m512d low = _mm512_fmadd_pd(
      _mm512_fmadd_pd(number(-0.3606742016123813), r, number(0.4808983335392923)), square,
      _mm512_fmadd_pd(number(-0.7213475203059108), r, number(1.4426950408900145)));
  const __m512d high = _mm512_fmadd_pd(
      number(0.18854563057534915), square,
      _mm512_fmadd_pd(number(-0.24033047851906705), r, number(0.28856839462793726)));
  const __m512d p = _mm512_fmadd_pd(high, _mm512_mul_pd(square, square), low);
  return _mm512_fmadd_pd(p, r, whole);
}

/// x to the power y for x >= 0, its error below 2^-27 of it. `far`: lanes whose result leaves
/// float64 or is NaN, which have any value.
WEFT_INLINE __m512d power(__m512d x, __m512d y, __mmask8& far) {
  const __m512d l = log2_of_floats(x);
  const __m512d shift = number(0x1.8p48);  // its last place is a sixteenth
  const __m512d sum = _mm512_fmadd_pd(y, l, shift);
  const __m512d f = _mm512_fmsub_pd(y, l, _mm512_sub_pd(sum, shift));
  const __m512i steps = _mm512_castpd_si512(sum);
  const __m512i scale = _mm512_add_epi64(entry(kPowersOfTwo, steps), _mm512_slli_epi64(steps, 48));
  // Least squares over Chebyshev's nodes of (-1/32, 1/32).
  const __m512d p = _mm512_fmadd_pd(
      _mm512_fmadd_pd(number(0.055502481052303564), f, number(0.2402358992501579)),
      _mm512_mul_pd(f, f), _mm512_fmadd_pd(number(0.6931471825467319), f, number(1)));
  const __m512i first = _mm512_castpd_si512(number(0x1.8p48 - 1000));
  far = _mm512_cmp_epu64_mask(_mm512_sub_epi64(steps, first), _mm512_set1_epi64(32000),
                              _MM_CMPINT_NLE);
  return _mm512_mul_pd(p, _mm512_castsi512_pd(scale));
}

/// Powers of any x and y. Lanes whose x is positive have the bits that `powers` gives them.
WEFT_HERE __attribute__((noinline)) __m512 rare_powers(__m512 x, __m512 y) {
  const __m512 zero = _mm512_setzero_ps(), one = _mm512_set1_ps(1);
  const __m512 infinity = _mm512_set1_ps(__builtin_inff()), size = _mm512_abs_ps(x);
  const __m512 sign = _mm512_set1_ps(-0.0f);
  __mmask8 far_low, far_high;
  const __m512d low = power(_mm512_cvtps_pd(_mm512_castps512_ps256(size)),
                            _mm512_cvtps_pd(_mm512_castps512_ps256(y)), far_low);
  const __m512d high = power(_mm512_cvtps_pd(_mm512_extractf32x8_ps(size, 1)),
                             _mm512_cvtps_pd(_mm512_extractf32x8_ps(y, 1)), far_high);
  __m512 out =
      _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
  const __mmask16 far = static_cast<__mmask16>(far_low | far_high << 8);
  const __mmask16 grows =
      _mm512_cmp_ps_mask(size, one, _CMP_GT_OQ) ^ _mm512_cmp_ps_mask(y, zero, _CMP_LT_OQ);
  out = _mm512_mask_mov_ps(out, far, _mm512_maskz_mov_ps(grows, infinity));
  // Of negative x: the sign of odd powers, NaN for powers that are not whole.
  const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(x));
  const __mmask16 whole = _mm512_cmp_ps_mask(_mm512_roundscale_ps(y, kTowardZero), y, _CMP_EQ_OQ);
  const __m512 half = _mm512_mul_ps(y, _mm512_set1_ps(0.5f));
  const __mmask16 even =
      _mm512_cmp_ps_mask(_mm512_roundscale_ps(half, kTowardZero), half, _CMP_EQ_OQ);
  out = _mm512_mask_xor_ps(out, negative & whole & ~even, out, sign);
  const __mmask16 finite =
      _mm512_cmp_ps_mask(size, infinity, _CMP_LT_OQ) & _mm512_cmp_ps_mask(x, zero, _CMP_NEQ_OQ);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q) | (negative & finite & ~whole);
  out = _mm512_mask_mov_ps(out, nan, _mm512_set1_ps(__builtin_nanf("")));
  // Powers that are 1 whatever the other number is.
  const __mmask16 ones = _mm512_cmp_ps_mask(y, zero, _CMP_EQ_OQ) |
                         _mm512_cmp_ps_mask(x, one, _CMP_EQ_OQ) |
                         (_mm512_cmp_ps_mask(size, one, _CMP_EQ_OQ) &
                          _mm512_cmp_ps_mask(_mm512_abs_ps(y), infinity, _CMP_EQ_OQ));
  return _mm512_mask_mov_ps(out, ones, one);
}

WEFT_HERE __m512 powers(__m512 x, __m512 y) {
  __mmask8 far_low, far_high;
  const __m512d low = power(_mm512_cvtps_pd(_mm512_castps512_ps256(x)),
                            _mm512_cvtps_pd(_mm512_castps512_ps256(y)), far_low);
  const __m512d high = power(_mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)),
                             _mm512_cvtps_pd(_mm512_extractf32x8_ps(y, 1)), far_high);
  constexpr int kNotPositive = 0xdf;  // NaN, zeros, infinities and signs
  const __mmask16 rare = _mm512_fpclass_ps_mask(x, kNotPositive);
  if (__builtin_expect(rare | far_low | far_high, 0)) return rare_powers(x, y);
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}

}  // namespace

void* own_vector_function(const std::string& name) {
  static const bool possible = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  }();
  return possible && name == "_ZGVeN16vv_powf" ? reinterpret_cast<void*>(&powers) : nullptr;
}

}  // namespace weft

#else

namespace weft {

void* own_vector_function(const std::string&) { return nullptr; }

}  // namespace weft

#endif
