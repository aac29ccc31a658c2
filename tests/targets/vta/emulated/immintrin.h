// SPDX-License-Identifier: Apache-2.0
#pragma once
// The AVX-512 operations that the VNNI kernels use, in plain C++ from their definitions, so that
// those kernels' logic is tested on hosts whose processor lacks them.

#define WEFT_EMULATED_VECTORS

#include <cstdint>
#include <cstring>

template <int kLanes>
struct EmulatedVector {
  std::int32_t lane[kLanes];
};
using __m128i = EmulatedVector<4>;
using __m256i = EmulatedVector<8>;
using __m512i = EmulatedVector<16>;

namespace emulated {

template <typename V>
V load(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename V>
void store(void* p, const V& v) {
  std::memcpy(p, &v, sizeof v);
}
template <typename V, typename F>
V map(const V& a, const V& b, F f) {
  V out;
  for (std::size_t i = 0; i < sizeof(V) / 4; ++i) out.lane[i] = f(a.lane[i], b.lane[i]);
  return out;
}
template <typename V>
V splat(std::int32_t x) {
  V v;
  for (std::int32_t& l : v.lane) l = x;
  return v;
}
template <typename V>
V splat_bytes(char x) {
  V v;
  std::memset(&v, x, sizeof v);
  return v;
}
/// Sums of four products of unsigned by signed bytes, wrapping.
template <typename V>
V dpbusd(const V& sum, const V& a, const V& b) {
  V out = sum;
  unsigned char ua[sizeof(V)];
  signed char sb[sizeof(V)];
  std::memcpy(ua, &a, sizeof a);
  std::memcpy(sb, &b, sizeof b);
  for (std::size_t i = 0; i < sizeof(V); ++i) {
    out.lane[i / 4] = static_cast<std::int32_t>(static_cast<std::uint32_t>(out.lane[i / 4]) +
                                                static_cast<std::uint32_t>(ua[i] * sb[i]));
  }
  return out;
}
inline std::int32_t add(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
inline std::int32_t sub(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

}  // namespace emulated

inline __m128i _mm_loadu_si128(const __m128i* p) { return emulated::load<__m128i>(p); }
inline void _mm_storeu_si128(__m128i* p, __m128i v) { emulated::store(p, v); }
inline __m256i _mm256_loadu_si256(const __m256i* p) { return emulated::load<__m256i>(p); }
inline void _mm256_storeu_si256(__m256i* p, __m256i v) { emulated::store(p, v); }
inline __m512i _mm512_loadu_si512(const void* p) { return emulated::load<__m512i>(p); }
inline void _mm512_storeu_si512(void* p, __m512i v) { emulated::store(p, v); }
inline __m128i _mm_setzero_si128() { return emulated::splat<__m128i>(0); }
inline __m128i _mm_set1_epi8(char x) { return emulated::splat_bytes<__m128i>(x); }
inline __m512i _mm512_set1_epi8(char x) { return emulated::splat_bytes<__m512i>(x); }
inline __m256i _mm256_dpbusd_avx_epi32(__m256i sum, __m256i a, __m256i b) {
  return emulated::dpbusd(sum, a, b);
}
inline __m256i _mm256_set1_epi32(int x) { return emulated::splat<__m256i>(x); }
inline __m512i _mm512_set1_epi32(int x) { return emulated::splat<__m512i>(x); }
inline __m128i _mm_dpbusd_epi32(__m128i s, __m128i a, __m128i b) {
  return emulated::dpbusd(s, a, b);
}
inline __m256i _mm256_dpbusd_epi32(__m256i s, __m256i a, __m256i b) {
  return emulated::dpbusd(s, a, b);
}
inline __m512i _mm512_dpbusd_epi32(__m512i s, __m512i a, __m512i b) {
  return emulated::dpbusd(s, a, b);
}
inline __m128i _mm_add_epi32(__m128i a, __m128i b) { return emulated::map(a, b, emulated::add); }
inline __m256i _mm256_add_epi32(__m256i a, __m256i b) { return emulated::map(a, b, emulated::add); }
inline __m512i _mm512_add_epi32(__m512i a, __m512i b) { return emulated::map(a, b, emulated::add); }
inline __m256i _mm256_sub_epi32(__m256i a, __m256i b) { return emulated::map(a, b, emulated::sub); }
inline __m512i _mm512_sub_epi32(__m512i a, __m512i b) { return emulated::map(a, b, emulated::sub); }
inline __m512i _mm512_xor_si512(__m512i a, __m512i b) {
  return emulated::map(a, b, [](int x, int y) { return x ^ y; });
}
inline int _mm_cvtsi128_si32(__m128i v) { return v.lane[0]; }
inline __m128i _mm_shuffle_epi32(__m128i v, int order) {
  __m128i out;
  for (int i = 0; i < 4; ++i) out.lane[i] = v.lane[(order >> (2 * i)) & 3];
  return out;
}
inline __m128i _mm512_cvtepi32_epi8(__m512i v) {
  __m128i out;
  unsigned char bytes[16];
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(v.lane[i]);
  std::memcpy(&out, bytes, 16);
  return out;
}
inline __m512i _mm512_setr_epi32(int a, int b, int c, int d, int e, int f, int g, int h, int i,
                                 int j, int k, int l, int m, int n, int o, int p) {
  return {{a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p}};
}
inline __m512i _mm512_permutexvar_epi32(__m512i index, __m512i v) {
  __m512i out;
  for (int i = 0; i < 16; ++i) out.lane[i] = v.lane[index.lane[i] & 15];
  return out;
}
/// Quarters: two of a, then two of b.
inline __m512i _mm512_shuffle_i32x4(__m512i a, __m512i b, int order) {
  __m512i out;
  for (int q = 0; q < 4; ++q) {
    const __m512i& from = q < 2 ? a : b;
    for (int i = 0; i < 4; ++i) out.lane[4 * q + i] = from.lane[4 * ((order >> (2 * q)) & 3) + i];
  }
  return out;
}
