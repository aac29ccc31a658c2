// SPDX-License-Identifier: Apache-2.0
#include "weft/base/vector_math_avx512.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cmath>
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

// The same for powers of float64, by the upper five bits: numbers near 1 / m of twelve bits behind
// the point, so that the product with m is the sum of two numbers; logarithms as a part of forty
// bits behind the point, to which an exponent is added without rounding, and the rest.
alignas(64) constexpr double kFineReciprocals[32] = {1.0,
                                                     0.955322265625,
                                                     0.927490234375,
                                                     0.9013671875,
                                                     0.876708984375,
                                                     0.853271484375,
                                                     0.8310546875,
                                                     0.81005859375,
                                                     0.7900390625,
                                                     0.77099609375,
                                                     0.7529296875,
                                                     0.735595703125,
                                                     0.718994140625,
                                                     0.703369140625,
                                                     0.688232421875,
                                                     0.673583984375,
                                                     0.659912109375,
                                                     0.646484375,
                                                     0.633544921875,
                                                     0.621337890625,
                                                     0.609619140625,
                                                     0.59814453125,
                                                     0.587158203125,
                                                     0.57666015625,
                                                     0.56640625,
                                                     0.556640625,
                                                     0.547119140625,
                                                     0.537841796875,
                                                     0.52880859375,
                                                     0.520263671875,
                                                     0.511962890625,
                                                     0.5};
alignas(64) constexpr double kFineLogarithms[32] = {0.0,
                                                    0.0659406050990583,
                                                    0.10859600333515118,
                                                    0.14981316235389386,
                                                    0.18983006233520427,
                                                    0.22892325973680272,
                                                    0.2669846783137473,
                                                    0.3039018290437525,
                                                    0.3400041075701665,
                                                    0.37520454413970583,
                                                    0.4094129500845156,
                                                    0.44301504240593204,
                                                    0.47594808128178556,
                                                    0.5076460548398245,
                                                    0.5390322374296375,
                                                    0.5700702586464104,
                                                    0.599654203465434,
                                                    0.6293125931924806,
                                                    0.6584811767543215,
                                                    0.6865500590365627,
                                                    0.7140198940714981,
                                                    0.7414339661099802,
                                                    0.7681788213421896,
                                                    0.7942067506028252,
                                                    0.8200909099850833,
                                                    0.8451818909479698,
                                                    0.8700730664895673,
                                                    0.8947462202995666,
                                                    0.9191824723920945,
                                                    0.9426851222169716,
                                                    0.9658888539033796,
                                                    1.0};
alignas(64) constexpr double kFineRests[32] = {0.0,
                                               1.4749069204082552e-13,
                                               -1.7358082799116913e-13,
                                               3.319198158248429e-13,
                                               1.3757954401503386e-13,
                                               3.985136583812113e-13,
                                               2.900646394132017e-13,
                                               3.8427285111199476e-13,
                                               -1.4409549998566607e-13,
                                               5.72252269640362e-14,
                                               4.500971913252398e-13,
                                               -3.9518707455961587e-13,
                                               3.9138736123075714e-13,
                                               3.051272272147908e-13,
                                               -5.924326232095411e-14,
                                               3.16670174971936e-13,
                                               -1.2873489135849935e-13,
                                               3.017396687490472e-13,
                                               4.353424178377542e-13,
                                               3.7961351719866784e-13,
                                               2.896309673700394e-13,
                                               8.684239195397399e-14,
                                               4.0608822910650713e-13,
                                               1.755692002448285e-14,
                                               -1.7740339410400144e-14,
                                               -7.382810116386926e-14,
                                               3.941760083660338e-14,
                                               -4.497236471934266e-13,
                                               -4.216652126992814e-13,
                                               3.249162880772245e-13,
                                               2.7759532095705226e-14,
                                               0.0};
// What 2^(i / 16) has more than its double, as a part of it.
alignas(64) constexpr double kPowerRests[16] = {0.0,
                                                8.189317638195514e-17,
                                                -2.7939114859515733e-17,
                                                7.826573258636075e-17,
                                                3.3484623336251524e-17,
                                                3.7508542013031266e-17,
                                                1.9572585293112036e-17,
                                                5.68648095791174e-17,
                                                -6.835808657661923e-17,
                                                -2.3591094770850053e-17,
                                                5.1548301170786783e-17,
                                                1.5341410053603723e-17,
                                                4.875160526227061e-17,
                                                1.685487290628973e-17,
                                                1.790126907604513e-17,
                                                -5.5450656186394274e-17};

WEFT_INLINE __m512d entry(const double* table, __m512i index) {
  return _mm512_permutex2var_pd(_mm512_load_pd(table), index, _mm512_load_pd(table + 8));
}
WEFT_INLINE __m512i entry(const std::uint64_t* table, __m512i index) {
  return _mm512_permutex2var_epi64(_mm512_load_si512(table), index, _mm512_load_si512(table + 8));
}
WEFT_INLINE __m512d number(double v) { return _mm512_set1_pd(v); }
WEFT_INLINE __m512 single(float v) { return _mm512_set1_ps(v); }

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

WEFT_INLINE __m512d fine_entry(const double* table, __m512i index, __mmask8 upper) {
  return _mm512_mask_mov_pd(entry(table, index), upper, entry(table + 16, index));
}
WEFT_INLINE __m512d fused(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }

/// The base-2 logarithm of normal x > 0 as a sum; its error is below 2^-62 of it.
WEFT_INLINE __m512d log2_in_parts(__m512d x, __m512d& rest) {
  const __m512i bits = _mm512_castpd_si512(x);
  const __m512d m = _mm512_castsi512_pd(_mm512_ternarylogic_epi64(
      bits, _mm512_set1_epi64(0xfffffffffffff), _mm512_castpd_si512(number(1)), 0xea));
  const __m512i part = _mm512_srli_epi64(bits, 47);
  const __mmask8 upper = _mm512_test_epi64_mask(bits, _mm512_set1_epi64(1LL << 51));
  const __m512d reciprocal = fine_entry(kFineReciprocals, part, upper);
  const __m512d product = _mm512_mul_pd(m, reciprocal), r = _mm512_sub_pd(product, number(1));
  const __m512d lost = _mm512_fmsub_pd(m, reciprocal, product);
  const __m512d whole =
      _mm512_add_pd(_mm512_getexp_pd(x), fine_entry(kFineLogarithms, part, upper));
  // log(1 + r) = r - r r / 2 + r^3 p(r); p interpolates at Chebyshev's nodes of (-1/64, 1/32).
  const __m512d square = _mm512_mul_pd(r, r), fourth = _mm512_mul_pd(square, square);
  const __m512d low =
      fused(fused(number(-0.16666666665955376), r, number(0.20000000000000684)), square,
            fused(number(-0.2500000000000003), r, number(0.3333333333333333)));
  const __m512d high =
      fused(fused(number(-0.09992685598696353), r, number(0.11111330795167598)), square,
            fused(number(-0.12500004713815926), r, number(0.14285714262143087)));
  const __m512d p = fused(fused(number(0.08534336283108344), fourth, high), fourth, low);
  const __m512d half = _mm512_mul_pd(square, number(0.5));
  const __m512d head = _mm512_sub_pd(r, half);
  // What the difference and the square lost, and the small terms.
  __m512d tail = _mm512_sub_pd(_mm512_sub_pd(r, head), half);
  tail = fused(_mm512_fmsub_pd(r, r, square), number(-0.5), tail);
  tail = _mm512_add_pd(tail, _mm512_fnmadd_pd(lost, _mm512_sub_pd(r, square), lost));
  tail = fused(_mm512_mul_pd(square, r), p, tail);
  const __m512d all = _mm512_add_pd(head, tail);
  tail = _mm512_sub_pd(tail, _mm512_sub_pd(all, head));
  const __m512d scaled = _mm512_mul_pd(all, number(1.4426950408889634));
  __m512d scaled_rest = _mm512_fmsub_pd(all, number(1.4426950408889634), scaled);
  scaled_rest = fused(all, number(2.0355273740931033e-17), scaled_rest);
  scaled_rest = fused(tail, number(1.4426950408889634), scaled_rest);
  const __m512d sum = _mm512_add_pd(whole, scaled);
  rest = _mm512_add_pd(_mm512_sub_pd(scaled, _mm512_sub_pd(sum, whole)),
                       _mm512_add_pd(fine_entry(kFineRests, part, upper), scaled_rest));
  return sum;
}

/// Lanes of `rare` by the C library, the others as they are.
WEFT_HERE __attribute__((noinline)) __m512d rare_powers(__m512d x, __m512d y, __m512d out,
                                                        unsigned rare) {
  alignas(64) double left[8], right[8], result[8];
  _mm512_store_pd(left, x);
  _mm512_store_pd(right, y);
  _mm512_store_pd(result, out);
  for (int k = 0; k < 8; ++k)
    if (rare >> k & 1) result[k] = std::pow(left[k], right[k]);
  return _mm512_load_pd(result);
}

WEFT_HERE __m512d double_powers(__m512d x, __m512d y) {
  __m512d rest;
  const __m512d l = log2_in_parts(x, rest);
  const __m512d shift = number(0x1.8p48);  // its last place is a sixteenth
  const __m512d sum = fused(y, l, shift);
  const __m512d f = fused(y, rest, _mm512_fmsub_pd(y, l, _mm512_sub_pd(sum, shift)));
  const __m512i steps = _mm512_castpd_si512(sum);
  const __m512d scale = _mm512_castsi512_pd(
      _mm512_add_epi64(entry(kPowersOfTwo, steps), _mm512_slli_epi64(steps, 48)));
  // (2^f - 1) / f by interpolation at Chebyshev's nodes of (-1/32, 1/32).
  const __m512d square = _mm512_mul_pd(f, f);
  const __m512d p =
      fused(fused(fused(number(0.00015403723980749256), f, number(0.0013333781576784268)), square,
                  fused(number(0.009618129106919537), f, number(0.0555041086566393))),
            square, fused(number(0.24022650695910075), f, number(0.6931471805599457)));
  const __m512d more = fused(p, f, entry(kPowerRests, steps));
  const __m512d out = fused(scale, more, scale);
  // Results near the ends of the range and what is no normal number above 0.
  const __m512i first = _mm512_castpd_si512(number(0x1.8p48 - 1020));
  const __mmask8 far = _mm512_cmp_epu64_mask(_mm512_sub_epi64(steps, first),
                                             _mm512_set1_epi64(32640), _MM_CMPINT_NLE);
  constexpr int kNotNormal = 0xff;
  const unsigned rare = far | _mm512_fpclass_pd_mask(x, kNotNormal);
  return __builtin_expect(rare, 0) ? rare_powers(x, y, out, rare) : out;
}

/// The logarithm of 2^e (1 + f), f from -0.3 to 0.42: the polynomial of the library text's log.
WEFT_INLINE __m512 log_in_parts(__m512 f, __m512 e) {
  const __m512 z = _mm512_mul_ps(f, f), zz = _mm512_mul_ps(z, z);
  __m512 low = _mm512_fmadd_ps(single(-2.4999993993e-1f), f, single(3.3333331174e-1f));
  low = _mm512_fmadd_ps(_mm512_fmadd_ps(single(-1.6668057665e-1f), f, single(2.0000714765e-1f)), z,
                        low);
  __m512 high = _mm512_fmadd_ps(single(-1.2420140846e-1f), f, single(1.4249322787e-1f));
  high = _mm512_fmadd_ps(_mm512_fmadd_ps(single(-1.1514610310e-1f), f, single(1.1676998740e-1f)), z,
                         high);
  high = _mm512_fmadd_ps(zz, single(7.0376836292e-2f), high);
  __m512 y = _mm512_mul_ps(_mm512_mul_ps(_mm512_fmadd_ps(high, zz, low), f), z);
  y = _mm512_fmadd_ps(e, single(-2.12194440e-4f), y);
  y = _mm512_fmadd_ps(z, single(-0.5f), y);
  return _mm512_fmadd_ps(e, single(0.693359375f), _mm512_add_ps(f, y));
}

/// log(1 + t + sqrt(t t + 2 t)), t = x - 1; of numbers whose square would overflow log(x) + log(2).
WEFT_HERE __m512 inverse_cosh(__m512 x) {
  const __m512 one = _mm512_set1_ps(1), t = _mm512_sub_ps(x, one);
  const __m512 root = _mm512_sqrt_ps(_mm512_fmadd_ps(t, t, _mm512_add_ps(t, t)));
  const __mmask16 large = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p60f), _CMP_GT_OQ);
  const __m512 v = _mm512_mask_mov_ps(_mm512_add_ps(t, root), large, t);
  const __m512 u = _mm512_add_ps(v, one), lost = _mm512_sub_ps(v, _mm512_sub_ps(u, one));
  const __m512i bits = _mm512_castps_si512(u);
  const __m512i e = _mm512_srai_epi32(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3f3504f3)), 23);
  const __m512i shifted = _mm512_slli_epi32(e, 23);
  const __m512 scale = _mm512_castsi512_ps(_mm512_max_epi32(
      _mm512_sub_epi32(_mm512_castps_si512(one), shifted), _mm512_setzero_si512()));
  const __m512 f = _mm512_fmadd_ps(
      lost, scale, _mm512_sub_ps(_mm512_castsi512_ps(_mm512_sub_epi32(bits, shifted)), one));
  __m512 exponent = _mm512_cvtepi32_ps(e);
  exponent = _mm512_mask_add_ps(exponent, large, exponent, one);  // times 2
  const __m512 out = log_in_parts(f, exponent);
  const __mmask16 finite = _mm512_cmp_ps_mask(x, _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
  const __mmask16 inside = _mm512_cmp_ps_mask(x, one, _CMP_GE_OQ);
  const __m512 odd = _mm512_mask_mov_ps(_mm512_set1_ps(__builtin_nanf("")), inside, x);
  return _mm512_mask_mov_ps(odd, finite & inside, out);
}

}  // namespace

void* own_vector_function(const std::string& name) {
  static const bool possible = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  }();
  if (!possible) return nullptr;
  if (name == "_ZGVeN16vv_powf") return reinterpret_cast<void*>(&powers);
  if (name == "_ZGVeN16v_acoshf") return reinterpret_cast<void*>(&inverse_cosh);
  if (name == "_ZGVeN8vv_pow") return reinterpret_cast<void*>(&double_powers);
  return nullptr;
}

}  // namespace weft

#else

namespace weft {

void* own_vector_function(const std::string&) { return nullptr; }

}  // namespace weft

#endif
