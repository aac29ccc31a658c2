// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10 as C text. A loop of the IR costs three times as much: compilers make the upper
// and the lower half of a product by separate instructions and put the halves in order each time.
// Here a word is the lower half of 64 bits, whatever lies above it, so that one product gives both.

#include "weft/host/generate/kernels.h"

namespace weft::generate {

static_assert(kCounters == 16);

const char* philox_text() {
  return R"(
/* The words of counters first to first + 15, one counter after the other. */
WEFT_FUNCTION int32_t weft_random_words(uint64_t seed, uint64_t first, uint32_t* out) {
  const uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#if defined(__AVX2__)
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  __m256i a[4], b[4], c[4], d[4];
  for (int g = 0; g < 4; ++g) {
    a[g] = _mm256_add_epi64(_mm256_set1_epi64x((int64_t)first),
                            _mm256_setr_epi64x(4 * g, 4 * g + 1, 4 * g + 2, 4 * g + 3));
    b[g] = _mm256_srli_epi64(a[g], 32);
    c[g] = d[g] = _mm256_setzero_si256();
  }
#pragma GCC unroll 10
  for (uint32_t r = 0; r < 10; ++r) {
    const __m256i x = _mm256_set1_epi32((int32_t)(k0 + r * 0x9E3779B9u));
    const __m256i y = _mm256_set1_epi32((int32_t)(k1 + r * 0xBB67AE85u));
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      const __m256i p = _mm256_mul_epu32(a[g], m0), q = _mm256_mul_epu32(c[g], m1);
      a[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(q, 32), b[g]), x);
      b[g] = q;
      c[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p, 32), d[g]), y);
      d[g] = p;
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const __m256i u = _mm256_blend_epi32(a[g], _mm256_slli_epi64(b[g], 32), 0xAA);
    const __m256i v = _mm256_blend_epi32(c[g], _mm256_slli_epi64(d[g], 32), 0xAA);
    const __m256i low = _mm256_unpacklo_epi64(u, v), high = _mm256_unpackhi_epi64(u, v);
    _mm256_storeu_si256((__m256i*)(out + 16 * g), _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i*)(out + 16 * g + 8), _mm256_permute2x128_si256(low, high, 0x31));
  }
#else
  for (uint64_t g = 0; g < 16; ++g) {
    uint32_t a = (uint32_t)(first + g), b = (uint32_t)((first + g) >> 32), c = 0, d = 0;
    for (uint32_t r = 0; r < 10; ++r) {
      const uint64_t p = (uint64_t)a * 0xD2511F53u, q = (uint64_t)c * 0xCD9E8D57u;
      a = (uint32_t)(q >> 32) ^ b ^ (k0 + r * 0x9E3779B9u);
      b = (uint32_t)q;
      c = (uint32_t)(p >> 32) ^ d ^ (k1 + r * 0xBB67AE85u);
      d = (uint32_t)p;
    }
    out[4 * g] = a, out[4 * g + 1] = b, out[4 * g + 2] = c, out[4 * g + 3] = d;
  }
#endif
  return 0;
}
)";
}

}  // namespace weft::generate
