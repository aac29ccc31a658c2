// SPDX-License-Identifier: Apache-2.0
// The mathematics of library text. Polynomials of log and tanh are those of the Cephes library
// (S. Moshier, netlib.org/cephes, single precision), those of exp and erf are weighted least
// squares over Chebyshev's nodes; the same as in the vector code of the targets that emit LLVM.

#include "weft/base/text.h"
#include "weft/targets/c/spelling.h"

namespace weft::c {

namespace {

// glibc's vector mathematics: declaring the variants lets the compiler use them in loops.
constexpr const char* kVectorLibrary = R"(
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define WEFT_SIMD(name) \
  extern __attribute__((simd("notinbranch"), const)) double name(double); \
  extern __attribute__((simd("notinbranch"), const)) float name##f(float);
WEFT_SIMD(exp) WEFT_SIMD(log) WEFT_SIMD(sin) WEFT_SIMD(cos) WEFT_SIMD(tan) WEFT_SIMD(asin)
WEFT_SIMD(acos) WEFT_SIMD(atan) WEFT_SIMD(sinh) WEFT_SIMD(cosh) WEFT_SIMD(tanh) WEFT_SIMD(asinh)
WEFT_SIMD(acosh) WEFT_SIMD(atanh) WEFT_SIMD(exp2) WEFT_SIMD(expm1) WEFT_SIMD(log2)
WEFT_SIMD(log10) WEFT_SIMD(log1p) WEFT_SIMD(erf)
#define WEFT_SIMD2(name) \
  extern __attribute__((simd("notinbranch"), const)) double name(double, double); \
  extern __attribute__((simd("notinbranch"), const)) float name##f(float, float);
WEFT_SIMD2(pow) WEFT_SIMD2(atan2) WEFT_SIMD2(hypot)
#endif
#define WEFT_FUNCTION static inline __attribute__((always_inline))
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define WEFT_FMA(a, b, c) __builtin_fmaf(a, b, c)
#define WEFT_FMA_DOUBLE(a, b, c) __builtin_fma(a, b, c)
#else
#define WEFT_FMA(a, b, c) ((a) * (b) + (c))
#define WEFT_FMA_DOUBLE(a, b, c) ((a) * (b) + (c))
#endif
)";

// Products and sums of the polynomials are one instruction where the processor has it, as in the
// LLVM text's llvm.fmuladd: results of processors with and without it differ within the bounds.
// exp: x = n ln 2 + r, a polynomial of degree 6 in r, two steps of scaling so that subnormal
// results come out; NaN passes through. sinh: a polynomial below 1, else through exp. tanh: a
// polynomial below 0.625, else 1 less 2 / (exp(2x) + 1), whose exp needs no second step of scaling.
// expm1: as exp, with 1 taken off the power of two. log1p: log of 1 + x, with what that sum lost.
// erf: a polynomial below 0.95, else 1 - exp of one.
constexpr const char* kMath = R"(
WEFT_FUNCTION int32_t weft_bits_of(float v) { int32_t b; __builtin_memcpy(&b, &v, 4); return b; }
WEFT_FUNCTION float weft_of_bits(int32_t b) { float v; __builtin_memcpy(&v, &b, 4); return v; }
WEFT_FUNCTION int32_t weft_left(int32_t e) { return (int32_t)((uint32_t)e << 23); }
/* exp(r) - 1, r from -0.35 to 0.35 */
WEFT_FUNCTION float weft_exp_rest(float r) {
  float p = 1.9845910758e-4f;
  p = WEFT_FMA(p, r, 1.3940893995e-3f);
  p = WEFT_FMA(p, r, 8.3333899339e-3f);
  p = WEFT_FMA(p, r, 4.1666357757e-2f);
  p = WEFT_FMA(p, r, 1.6666666366e-1f);
  p = WEFT_FMA(p, r, 5.0000000448e-1f);
  return WEFT_FMA(p, r * r, r);
}
/* c less whole times ln 2 */
WEFT_FUNCTION float weft_exp_reduced(float c, float whole) {
  return WEFT_FMA(whole, 2.12194440e-4f, WEFT_FMA(whole, -0.693359375f, c));
}
/* y 2^n, by the sum n + 1.5 * 2^23 + 254: its last nine bits shifted are half of n, plus 127 */
WEFT_FUNCTION float weft_exp_scaled(float y, float sum) {
  int32_t bits = weft_bits_of(sum), half = bits >> 1;
  y *= weft_of_bits(weft_left(half));
  return y * weft_of_bits(weft_left(bits - half));
}
WEFT_FUNCTION float weft_exp_float(float x) {
  float c = x > 89.0f ? 89.0f : x;
  c = c < -104.0f ? -104.0f : c;
  float t = WEFT_FMA(c, 1.44269504088896341f, 12583166.0f);
  float r = weft_exp_reduced(c, t - 12583166.0f);
  return weft_exp_scaled(weft_exp_rest(r) + 1.0f, t);
}
WEFT_FUNCTION float weft_exp2_float(float x) {
  float c = x > 129.0f ? 129.0f : x;
  c = c < -151.0f ? -151.0f : c;
  float t = c + 12583166.0f;
  float r = (c - (t - 12583166.0f)) * 0.693147180559945309f;
  return weft_exp_scaled(weft_exp_rest(r) + 1.0f, t);
}
/* half of exp(m), m > 0, which may overflow where that does not */
WEFT_FUNCTION float weft_half_exp(float m) {
  float c = m > 90.0f ? 90.0f : m;
  float t = WEFT_FMA(c, 1.44269504088896341f, 12583166.0f);
  float r = weft_exp_reduced(c, t - 12583166.0f);
  return weft_exp_scaled(weft_exp_rest(r) + 1.0f, t - 1.0f);
}
WEFT_FUNCTION float weft_cosh_float(float x) {
  float h = weft_half_exp(fabsf(x));
  return h + 0.25f / h;
}
WEFT_FUNCTION float weft_sinh_float(float x) {
  float m = fabsf(x), z = x * x, h = weft_half_exp(m);
  float p = WEFT_FMA(2.8122801e-6f, z, 1.9839086e-4f);
  p = WEFT_FMA(p, z, 8.3333394e-3f);
  p = WEFT_FMA(p, z, 1.6666667e-1f);
  float small = WEFT_FMA(p * z, m, m);
  return copysignf(m < 1.0f ? small : h - 0.25f / h, x);
}
/* log of 2^exponent (1 + f), f from -0.3 to 0.42 */
WEFT_FUNCTION float weft_log_parts(float f, float exponent) {
  float z = f * f, zz = z * z; /* in pairs and pairs of pairs, which wait less for each other */
  float low = WEFT_FMA(-2.4999993993e-1f, f, 3.3333331174e-1f);
  low = WEFT_FMA(WEFT_FMA(-1.6668057665e-1f, f, 2.0000714765e-1f), z, low);
  float high = WEFT_FMA(-1.2420140846e-1f, f, 1.4249322787e-1f);
  high = WEFT_FMA(WEFT_FMA(-1.1514610310e-1f, f, 1.1676998740e-1f), z, high);
  high = WEFT_FMA(zz, 7.0376836292e-2f, high);
  float p = WEFT_FMA(high, zz, low);
  float y = p * f * z;
  y = WEFT_FMA(exponent, -2.12194440e-4f, y);
  y = WEFT_FMA(z, -0.5f, y);
  return WEFT_FMA(exponent, 0.693359375f, f + y);
}
/* r for positive finite x; the logarithm's limits and NaN elsewhere */
WEFT_FUNCTION float weft_log_ends(float x, float r) {
  r = x == INFINITY ? x : r;
  r = x == 0.0f ? -INFINITY : r;
  float bad = x != x ? x : NAN;
  return x >= 0.0f ? r : bad;
}
WEFT_FUNCTION float weft_log_float(float x) {
  int tiny = x < 1.17549435e-38f;
  float scaled = tiny ? x * 8388608.0f : x;
  int32_t bits = weft_bits_of(scaled);
  int32_t e = (bits - 0x3f3504f3) >> 23;
  float f = weft_of_bits(bits - weft_left(e)) - 1.0f;
  return weft_log_ends(x, weft_log_parts(f, (float)e + (tiny ? -23.0f : 0.0f)));
}
WEFT_FUNCTION float weft_log1p_float(float x) {
  float u = 1.0f + x, lost = x - (u - 1.0f);
  int32_t bits = weft_bits_of(u);
  int32_t e = (bits - 0x3f3504f3) >> 23;
  int32_t scale = 0x3f800000 - weft_left(e); /* below 0 only where nothing was lost */
  scale = scale < 0 ? 0 : scale;
  float f = weft_of_bits(bits - weft_left(e)) - 1.0f;
  f = WEFT_FMA(lost, weft_of_bits(scale), f);
  return copysignf(weft_log_ends(u, weft_log_parts(f, (float)e)), x); /* also of a zero */
}
WEFT_FUNCTION float weft_tanh_float(float x) {
  float m = fabsf(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = WEFT_FMA(p, z, 2.06390887954e-2f);
  p = WEFT_FMA(p, z, -5.37397155531e-2f);
  p = WEFT_FMA(p, z, 1.33314422036e-1f);
  p = WEFT_FMA(p, z, -3.33332819422e-1f);
  float small = WEFT_FMA(p * z, m, m);
  float c = m + m;
  c = c > 18.2f ? 18.2f : c;
  float t = WEFT_FMA(c, 1.44269504088896341f, 12583038.0f); /* n + 1.5 * 2^23 + 126 */
  float e = weft_exp_rest(weft_exp_reduced(c, t - 12583038.0f));
  float scale = weft_of_bits(weft_left(weft_bits_of(t))); /* half of 2^n */
  float large = 1.0f - 1.0f / WEFT_FMA(e, scale, scale + 0.5f);
  return copysignf(m < 0.625f ? small : large, x); /* also of a zero */
}
WEFT_FUNCTION float weft_expm1_float(float x) {
  float c = x > 89.0f ? 89.0f : x;
  c = c < -18.0f ? -18.0f : c;
  float t = WEFT_FMA(c, 1.44269504088896341f, 12583038.0f); /* n + 1.5 * 2^23 + 126 */
  float e = weft_exp_rest(weft_exp_reduced(c, t - 12583038.0f));
  float scale = weft_of_bits(weft_left(weft_bits_of(t))); /* half of 2^n, which may overflow */
  return copysignf(WEFT_FMA(e, scale, scale - 0.5f) * 2.0f, x); /* also of a zero */
}
WEFT_FUNCTION float weft_erf_float(float x) {
  float m = fabsf(x);
  m = m > 3.95f ? 3.95f : m;
  float z = m * m;
  float p = -5.8620761180e-4f;
  p = WEFT_FMA(p, z, 4.9675054746e-3f);
  p = WEFT_FMA(p, z, -2.6748863219e-2f);
  p = WEFT_FMA(p, z, 1.1281320655e-1f);
  p = WEFT_FMA(p, z, -3.7612445932e-1f);
  p = WEFT_FMA(p, z, 1.2837914231e-1f);
  float small = WEFT_FMA(p, m, m);
  float q = -2.1445685173e-5f;
  q = WEFT_FMA(q, m, 4.3853124322e-4f);
  q = WEFT_FMA(q, m, -4.1908617580e-3f);
  q = WEFT_FMA(q, m, 2.5171823697e-2f);
  q = WEFT_FMA(q, m, -1.0836157442e-1f);
  q = WEFT_FMA(q, m, -6.3327239471e-1f);
  q = WEFT_FMA(q, m, -1.1295520504f);
  q = WEFT_FMA(q, m, 1.8246196453e-4f);
  float large = 1.0f - weft_exp_float(q);
  return copysignf(m < 0.95f ? small : large, x);
}
)";

// Cube roots: the bits of s give s^(-1/3) to a few percent, its series about that more digits, and
// a step of Newton's the root. Far from 1, s is scaled by a cube, so that what the last step takes
// off does not underflow; halves of its terms do not overflow.
constexpr const char* kRoots = R"(
WEFT_FUNCTION float weft_cbrt_float(float x) {
  float m = fabsf(x);
  float s = m < 0x1p-60f ? m * 0x1p72f : m;
  float y = weft_of_bits(0x54a20000 - (int32_t)((float)weft_bits_of(s) * 0.333333333f));
  float e = WEFT_FMA(-(s * y), y * y, 1.0f);
  y = WEFT_FMA(y * e, WEFT_FMA(WEFT_FMA(e, 14.0f / 81.0f, 2.0f / 9.0f), e, 1.0f / 3.0f), y);
  float square = y * y, c = s * square;
  float over = WEFT_FMA(c * c, c * 0.5f, s * -0.5f);
  c = WEFT_FMA(over * square, -2.0f / 3.0f, c);
  c = m < 0x1p-60f ? c * 0x1p-24f : c;
  c = m == 0.0f ? m : c;
  c = m < INFINITY ? c : m;
  return copysignf(c, x);
}
WEFT_FUNCTION double weft_cbrt_double(double x) {
  double m = fabs(x);
  double s = m < 0x1p-700 ? m * 0x1p300 : m;
  uint64_t bits;
  __builtin_memcpy(&bits, &s, 8);
  bits = (bits >> 32) | 0x4330000000000000u; /* 2^52 and the upper half */
  double word, y;
  __builtin_memcpy(&word, &bits, 8);
  word = (0x1p52 + 0x553ef0ff) - (word - 0x1p52) * (1.0 / 3.0);
  __builtin_memcpy(&bits, &word, 8);
  bits <<= 32;
  __builtin_memcpy(&y, &bits, 8);
  double e = WEFT_FMA_DOUBLE(-(s * y), y * y, 1.0);
  y = WEFT_FMA_DOUBLE(
      y * e, WEFT_FMA_DOUBLE(WEFT_FMA_DOUBLE(e, 14.0 / 81.0, 2.0 / 9.0), e, 1.0 / 3.0), y);
  e = WEFT_FMA_DOUBLE(-(s * y), y * y, 1.0);
  y = WEFT_FMA_DOUBLE(y * e, 1.0 / 3.0, y);
  double square = y * y, c = s * square;
  double over = WEFT_FMA_DOUBLE(c * c, c * 0.5, s * -0.5);
  c = WEFT_FMA_DOUBLE(over * square, -2.0 / 3.0, c);
  c = m < 0x1p-700 ? c * 0x1p-100 : c;
  c = m == 0.0 ? m : c;
  c = m < INFINITY ? c : m;
  return copysign(c, x);
}
)";

// In bits, so that compilers make vectors of them: few of those that convert _Float16 do.
constexpr const char* kHalf = R"(
WEFT_FUNCTION float weft_half_to_float(uint16_t h) {
  uint32_t size = (uint32_t)(h & 0x7fff) << 13;
  float scaled;
  __builtin_memcpy(&scaled, &size, 4);
  scaled *= 0x1p112f; /* exponents differ by 112; subnormal numbers become normal */
  uint32_t bits;
  __builtin_memcpy(&bits, &scaled, 4);
  uint32_t special = (size + 0x70000000u) | (size > 0x0f800000u ? 0x00400000u : 0u);
  bits = size >= 0x0f800000u ? special : bits;
  bits |= (uint32_t)(h & 0x8000) << 16;
  float out;
  __builtin_memcpy(&out, &bits, 4);
  return out;
}
WEFT_FUNCTION uint16_t weft_float_to_half(float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, 4);
  uint32_t sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  float shifted;
  __builtin_memcpy(&shifted, &size, 4);
  shifted += 0.5f; /* its last place is that of subnormal results */
  uint32_t small;
  __builtin_memcpy(&small, &shifted, 4);
  small -= 0x3f000000u;
  uint32_t normal = (size + 0xc8000fffu + ((size >> 13) & 1u)) >> 13;
  uint32_t special = size > 0x7f800000u ? 0x7e00u | ((size >> 13) & 0x3ffu) : 0x7c00u;
  uint32_t out = size < 0x38800000u ? small : normal;
  out = size >= 0x47800000u ? special : out;
  return (uint16_t)(out | sign);
}
WEFT_FUNCTION int32_t weft_halves_to_floats(const uint16_t* in, float* out) {
#if defined(__AVX512F__)
  for (int k = 0; k < 32; k += 16)
    _mm512_storeu_ps(out + k, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(in + k))));
#elif defined(__F16C__)
  for (int k = 0; k < 32; k += 8)
    _mm256_storeu_ps(out + k, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(in + k))));
#else
  for (int k = 0; k < 32; ++k) out[k] = weft_half_to_float(in[k]);
#endif
  return 0;
}
WEFT_FUNCTION int32_t weft_floats_to_halves(const float* in, uint16_t* out) {
#if defined(__AVX512F__)
  for (int k = 0; k < 32; k += 16)
    _mm256_storeu_si256((__m256i*)(out + k), _mm512_cvtps_ph(_mm512_loadu_ps(in + k), 0));
#elif defined(__F16C__)
  for (int k = 0; k < 32; k += 8)
    _mm_storeu_si128((__m128i*)(out + k), _mm256_cvtps_ph(_mm256_loadu_ps(in + k), 0));
#else
  for (int k = 0; k < 32; ++k) out[k] = weft_float_to_half(in[k]);
#endif
  return 0;
}
)";

// What expressions name as foreign functions: a double rounded to odd (the last bit that is kept is
// set where one behind it was) at 24 bits, at 13 where a float has fewer, so that a second rounding
// to 16-bit floats is right; powers of integers; quotients rounded to the one below of a
// divisor that is known as a multiplier m and a shift l (array/constant_operand.cpp); 32 masks of
// 32 or 64 bits as bytes, 0 or 1.
constexpr const char* kForeign = R"(
#if defined(__SSE2__)
#include <immintrin.h>
#endif
WEFT_FUNCTION int32_t weft_truth_bytes(const int32_t* mask, uint8_t* out) {
#if defined(__AVX2__)
  const __m256i* m = (const __m256i*)mask;
  __m256i low = _mm256_packs_epi32(m[0], m[1]), high = _mm256_packs_epi32(m[2], m[3]);
  __m256i all = _mm256_packs_epi16(low, high); /* groups of four bytes, of 0 2 4 6 1 3 5 7 */
  all = _mm256_permutevar8x32_epi32(all, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256((__m256i*)out, _mm256_and_si256(all, _mm256_set1_epi8(1)));
#elif defined(__SSE2__)
  const __m128i* m = (const __m128i*)mask;
  for (int k = 0; k < 2; ++k, m += 4) {
    __m128i all = _mm_packs_epi16(_mm_packs_epi32(m[0], m[1]), _mm_packs_epi32(m[2], m[3]));
    _mm_storeu_si128((__m128i*)(out + 16 * k), _mm_and_si128(all, _mm_set1_epi8(1)));
  }
#else
  for (int k = 0; k < 32; ++k) out[k] = (uint8_t)(mask[k] & 1);
#endif
  return 0;
}
WEFT_FUNCTION float weft_odd_float(double d) {
  uint64_t bits;
  __builtin_memcpy(&bits, &d, 8);
  uint64_t size = bits & 0x7fffffffffffffffu;
  uint64_t low = size < 0x3810000000000000u ? 0xffffffffffu : 0x1fffffffu;
  bits = (bits | ((bits & low) + low)) & ~low;
  __builtin_memcpy(&d, &bits, 8);
  return (float)d;
}
WEFT_FUNCTION int32_t weft_truth_bytes_64(const int64_t* mask, uint8_t* out) {
#if defined(__AVX2__)
  const __m256* m = (const __m256*)mask;
  __m256i q[4]; /* the lower halves, two masks to a vector */
  for (int k = 0; k < 4; ++k)
    q[k] = _mm256_castps_si256(_mm256_shuffle_ps(m[2 * k], m[2 * k + 1], 0x88));
  __m256i all = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  __m128i low = _mm256_castsi256_si128(all), high = _mm256_extracti128_si256(all, 1);
  __m128i one = _mm_set1_epi8(1); /* low has bytes 0 1 of each four, high 2 3 */
  _mm_storeu_si128((__m128i*)out, _mm_and_si128(_mm_unpacklo_epi16(low, high), one));
  _mm_storeu_si128((__m128i*)(out + 16), _mm_and_si128(_mm_unpackhi_epi16(low, high), one));
#else
  for (int k = 0; k < 32; ++k) out[k] = (uint8_t)(mask[k] & 1);
#endif
  return 0;
}
#define WEFT_POWER(name, type, wide) \
  WEFT_FUNCTION type weft_pow_##name(type x, type y) { \
    if (y < 0) return x == 1 ? 1 : x == (type)-1 ? (type)((y & 1) ? -1 : 1) : 0; \
    type result = 1; \
    while (y) { \
      if (y & 1) result = (type)((wide)result * (wide)x); \
      x = (type)((wide)x * (wide)x); \
      y = (type)(y >> 1); \
    } \
    return result; \
  }
WEFT_POWER(i8, int8_t, uint32_t) WEFT_POWER(i16, int16_t, uint32_t)
WEFT_POWER(i32, int32_t, uint32_t) WEFT_POWER(i64, int64_t, uint64_t)
WEFT_POWER(u8, uint8_t, uint32_t) WEFT_POWER(u16, uint16_t, uint32_t)
WEFT_POWER(u32, uint32_t, uint32_t) WEFT_POWER(u64, uint64_t, uint64_t)
#define WEFT_HIGH(bits, wide) \
  WEFT_FUNCTION uint##bits##_t weft_high_##bits(uint##bits##_t x, uint##bits##_t y) { \
    return (uint##bits##_t)(((wide)x * y) >> bits); \
  }
__extension__ typedef unsigned __int128 weft_u128;
WEFT_HIGH(16, uint32_t) WEFT_HIGH(32, uint64_t)
#if defined(__AVX512DQ__)  // four products of halves; in shorter vectors they take longer than one
WEFT_FUNCTION uint64_t weft_high_64(uint64_t x, uint64_t y) {
  uint64_t a = (uint32_t)x, b = x >> 32, c = (uint32_t)y, d = y >> 32;
  uint64_t one = b * c + ((a * c) >> 32), other = a * d + (uint32_t)one;
  return b * d + (one >> 32) + (other >> 32);
}
#else
WEFT_HIGH(64, weft_u128)
#endif
#define WEFT_QUOTIENT(bits) \
  WEFT_FUNCTION int##bits##_t weft_quotient_i##bits(int##bits##_t x, int##bits##_t m, \
                                                    int##bits##_t l) { \
    uint##bits##_t sign = (uint##bits##_t)(x >> (bits - 1)); \
    uint##bits##_t size = (uint##bits##_t)((uint##bits##_t)x ^ sign); \
    uint##bits##_t q = weft_high_##bits(size, (uint##bits##_t)m); \
    q = (uint##bits##_t)(q >> l); \
    return (int##bits##_t)(q ^ sign); \
  } \
  WEFT_FUNCTION uint##bits##_t weft_quotient_u##bits(uint##bits##_t x, uint##bits##_t m, \
                                                     uint##bits##_t l) { \
    uint##bits##_t t = weft_high_##bits(x, m); \
    uint##bits##_t half = (uint##bits##_t)((uint##bits##_t)(x - t) >> 1); \
    return (uint##bits##_t)((uint##bits##_t)(t + half) >> l); \
  }
WEFT_QUOTIENT(16) WEFT_QUOTIENT(32) WEFT_QUOTIENT(64)
WEFT_FUNCTION uint8_t weft_quotient_u8(uint8_t x, uint16_t m, uint16_t l) {
  (void)l;
  uint16_t wide = x;
  return (uint8_t)(uint16_t)(((uint32_t)wide * m) >> 16);
}
WEFT_FUNCTION int8_t weft_quotient_i8(int8_t x, uint16_t m, uint16_t l) {
  uint8_t sign = (uint8_t)(x >> 7);
  return (int8_t)(weft_quotient_u8((uint8_t)((uint8_t)x ^ sign), m, l) ^ sign);
}
)";

}  // namespace

const CSpelling& library_spelling() {
  static const CSpelling table = [] {
    CSpelling s = spelling();
    s.prelude += cat(kVectorLibrary, kMath, kRoots, kForeign);
    s.function_prefix = "WEFT_FUNCTION ";
    s.kernel_prefix = "static int32_t ";
    s.restrict_word = "";
    s.types["bool"] = "uint8_t";
    s.functions["fma"] = {"WEFT_FMA", "WEFT_FMA_DOUBLE"};
    s.functions["exp"].first = "weft_exp_float";
    s.functions["exp2"].first = "weft_exp2_float";
    s.functions["cosh"].first = "weft_cosh_float";
    s.functions["sinh"].first = "weft_sinh_float";
    s.functions["log"].first = "weft_log_float";
    s.functions["log1p"].first = "weft_log1p_float";
    s.functions["tanh"].first = "weft_tanh_float";
    s.functions["expm1"].first = "weft_expm1_float";
    s.functions["erf"].first = "weft_erf_float";
    s.half_helpers = kHalf;
    s.prefetch = "__builtin_prefetch";
    s.unpacks = false;
    return s;
  }();
  return table;
}

}  // namespace weft::c
