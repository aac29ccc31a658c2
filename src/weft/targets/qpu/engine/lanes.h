// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sixteen lanes in registers, and the ALU operations on them: AVX2 where the translation unit is
// compiled for it, otherwise lane by lane through the oracle's functions. With AVX2 the caller has
// set MXCSR to round toward zero with denormals flushed; what IEEE does differently from the QPU is
// repaired here.

#include "weft/targets/qpu/float.h"
#include "weft/targets/qpu/vector.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace weft::qpu::hw {
namespace {  // each variant of the engine has its own copy

#if defined(__AVX2__)
struct Lanes {
  __m256i lo, hi;
};

inline Lanes load(const Vec& v) {
  return {_mm256_load_si256(reinterpret_cast<const __m256i*>(v.lane)),
          _mm256_load_si256(reinterpret_cast<const __m256i*>(v.lane + 8))};
}
inline void store(Vec& v, const Lanes& x) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(v.lane), x.lo);
  _mm256_store_si256(reinterpret_cast<__m256i*>(v.lane + 8), x.hi);
}
inline Lanes blend(const Lanes& mask, const Lanes& on, const Lanes& off) {
  return {_mm256_blendv_epi8(off.lo, on.lo, mask.lo), _mm256_blendv_epi8(off.hi, on.hi, mask.hi)};
}
template <typename F>
inline Lanes each(const Lanes& a, const Lanes& b, F f) {
  return {f(a.lo, b.lo), f(a.hi, b.hi)};
}
inline Lanes invert(const Lanes& a) {
  __m256i ones = _mm256_set1_epi32(-1);
  return {_mm256_xor_si256(a.lo, ones), _mm256_xor_si256(a.hi, ones)};
}
inline Lanes is_zero(const Lanes& a) {
  __m256i z = _mm256_setzero_si256();
  return {_mm256_cmpeq_epi32(a.lo, z), _mm256_cmpeq_epi32(a.hi, z)};
}
inline Lanes is_negative(const Lanes& a) {
  return {_mm256_srai_epi32(a.lo, 31), _mm256_srai_epi32(a.hi, 31)};
}
inline Lanes no_lanes() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline Lanes greater(const Lanes& a, const Lanes& b) {
  return each(a, b, [](__m256i x, __m256i y) { return _mm256_cmpgt_epi32(x, y); });
}
inline __m256 ps(__m256i x) { return _mm256_castsi256_ps(x); }
inline __m256i si(__m256 x) { return _mm256_castps_si256(x); }
inline bool any_nan(const Lanes& r) {
  return _mm256_movemask_ps(_mm256_cmp_ps(ps(r.lo), ps(r.hi), _CMP_UNORD_Q)) != 0;
}
inline Lanes no_minus_zero(const Lanes& r) {
  __m256 z = _mm256_setzero_ps();
  return {si(_mm256_and_ps(ps(r.lo), _mm256_cmp_ps(ps(r.lo), z, _CMP_NEQ_UQ))),
          si(_mm256_and_ps(ps(r.hi), _mm256_cmp_ps(ps(r.hi), z, _CMP_NEQ_UQ)))};
}
/// Order of bit patterns as floats: -NaN < ... < NaN; zeros of either sign equal.
inline Lanes float_keys(const Lanes& a) {
  auto key = [](__m256i x) {
    __m256i k = _mm256_xor_si256(x, _mm256_srli_epi32(_mm256_srai_epi32(x, 31), 1));
    return _mm256_sub_epi32(k,
                            _mm256_srai_epi32(k, 31));  // -0 has key -1: move negatives up by one
  };
  return {key(a.lo), key(a.hi)};
}
inline Lanes magnitude(const Lanes& a) {
  __m256i m = _mm256_set1_epi32(0x7fffffff);
  return {_mm256_and_si256(a.lo, m), _mm256_and_si256(a.hi, m)};
}
[[gnu::noinline]] inline Lanes slow_add(unsigned op, const Lanes& a, const Lanes& b) {
  Vec x, y;
  store(x, a), store(y, b);
  for (unsigned l = 0; l < 16; ++l) x[l] = add_lane(op, x[l], y[l]).value;
  return load(x);
}
[[gnu::noinline]] inline Lanes slow_mul(unsigned op, const Lanes& a, const Lanes& b) {
  Vec x, y;
  store(x, a), store(y, b);
  for (unsigned l = 0; l < 16; ++l) x[l] = mul_lane(op, x[l], y[l]).value;
  return load(x);
}
inline __m256i five_bits(__m256i b) { return _mm256_and_si256(b, _mm256_set1_epi32(31)); }

template <int A>
inline Lanes add_op(const Lanes& a, const Lanes& b) {
  if constexpr (A == kFadd || A == kFsub) {
    Lanes r = each(a, b, [](__m256i x, __m256i y) {
      if constexpr (A == kFadd) return si(_mm256_add_ps(ps(x), ps(y)));
      return si(_mm256_sub_ps(ps(x), ps(y)));
    });
    if (any_nan(r)) [[unlikely]]
      return slow_add(A, a, b);
    return no_minus_zero(r);
  } else if constexpr (A == kFmin || A == kFmax) {
    Lanes g = greater(float_keys(a), float_keys(b));
    return A == kFmin ? blend(g, b, a) : blend(g, a, b);
  } else if constexpr (A == kFminabs) {
    return each(magnitude(a), magnitude(b),
                [](__m256i x, __m256i y) { return _mm256_min_epi32(x, y); });
  } else if constexpr (A == kFmaxabs) {
    return each(magnitude(a), magnitude(b),
                [](__m256i x, __m256i y) { return _mm256_max_epi32(x, y); });
  } else if constexpr (A == kFtoi) {
    Lanes r{_mm256_cvttps_epi32(ps(a.lo)), _mm256_cvttps_epi32(ps(a.hi))};
    __m256i odd = _mm256_set1_epi32(static_cast<int>(0x80000000u));
    __m256i bad = _mm256_or_si256(_mm256_cmpeq_epi32(r.lo, odd), _mm256_cmpeq_epi32(r.hi, odd));
    if (!_mm256_testz_si256(bad, bad)) [[unlikely]]
      return slow_add(A, a, b);
    return r;
  } else if constexpr (A == kItof) {
    return {si(_mm256_cvtepi32_ps(a.lo)), si(_mm256_cvtepi32_ps(a.hi))};
  } else if constexpr (A == kNot) {
    return invert(a);
  } else if constexpr (A == kClz) {
    return slow_add(A, a, b);
  } else {
    return each(a, b, [](__m256i x, __m256i y) {
      if constexpr (A == kAdd) return _mm256_add_epi32(x, y);
      else if constexpr (A == kSub) return _mm256_sub_epi32(x, y);
      else if constexpr (A == kShr) return _mm256_srlv_epi32(x, five_bits(y));
      else if constexpr (A == kAsr) return _mm256_srav_epi32(x, five_bits(y));
      else if constexpr (A == kShl) return _mm256_sllv_epi32(x, five_bits(y));
      else if constexpr (A == kRor) {
        __m256i n = five_bits(y);
        return _mm256_or_si256(_mm256_srlv_epi32(x, n),
                               _mm256_sllv_epi32(x, _mm256_sub_epi32(_mm256_set1_epi32(32), n)));
      } else if constexpr (A == kMin) return _mm256_min_epi32(x, y);
      else if constexpr (A == kMax) return _mm256_max_epi32(x, y);
      else if constexpr (A == kAnd) return _mm256_and_si256(x, y);
      else if constexpr (A == kOr) return _mm256_or_si256(x, y);
      else if constexpr (A == kXor) return _mm256_xor_si256(x, y);
      else if constexpr (A == kV8addsA) return _mm256_adds_epu8(x, y);
      else return _mm256_subs_epu8(x, y);
    });
  }
}

template <int A>
inline Lanes add_carry(const Lanes& a, const Lanes& b, const Lanes& r) {
  auto unsigned_less = [](__m256i x, __m256i y) {  // x < y
    return _mm256_xor_si256(_mm256_cmpeq_epi32(_mm256_max_epu32(x, y), x), _mm256_set1_epi32(-1));
  };
  if constexpr (A == kFadd || A == kFsub || A == kItof) {
    __m256i z = _mm256_setzero_si256();
    return {_mm256_cmpgt_epi32(r.lo, z), _mm256_cmpgt_epi32(r.hi, z)};
  } else if constexpr (A == kFmin || A == kFmax) {
    return greater(float_keys(a), float_keys(b));
  } else if constexpr (A == kFminabs || A == kFmaxabs) {
    return greater(magnitude(a), magnitude(b));
  } else if constexpr (A == kMin || A == kMax) {
    return greater(a, b);
  } else if constexpr (A == kAdd) {
    return {unsigned_less(r.lo, a.lo), unsigned_less(r.hi, a.hi)};
  } else if constexpr (A == kSub) {
    return each(a, b, unsigned_less);
  } else if constexpr (A == kShr || A == kAsr || A == kShl) {
    return each(a, b, [](__m256i x, __m256i y) {
      __m256i n = five_bits(y), one = _mm256_set1_epi32(1), last;
      if constexpr (A == kShl)
        last = _mm256_srlv_epi32(x, _mm256_sub_epi32(_mm256_set1_epi32(32), n));
      else last = _mm256_srlv_epi32(x, _mm256_sub_epi32(n, one));  // n = 0 shifts everything out
      return _mm256_cmpeq_epi32(_mm256_and_si256(last, one), one);
    });
  } else {
    return no_lanes();
  }
}

template <int M>
inline Lanes mul_op(const Lanes& a, const Lanes& b) {
  if constexpr (M == kFmul) {
    Lanes r = each(a, b, [](__m256i x, __m256i y) { return si(_mm256_mul_ps(ps(x), ps(y))); });
    if (any_nan(r)) [[unlikely]]
      return slow_mul(M, a, b);
    return no_minus_zero(r);
  } else if constexpr (M == kV8muld) {
    return slow_mul(M, a, b);
  } else {
    return each(a, b, [](__m256i x, __m256i y) {
      if constexpr (M == kMul24) {
        __m256i m = _mm256_set1_epi32(0xffffff);
        return _mm256_mullo_epi32(_mm256_and_si256(x, m), _mm256_and_si256(y, m));
      } else if constexpr (M == kV8min) return _mm256_min_epu8(x, y);
      else if constexpr (M == kV8max) return _mm256_max_epu8(x, y);
      else if constexpr (M == kV8addsM) return _mm256_adds_epu8(x, y);
      else return _mm256_subs_epu8(x, y);
    });
  }
}

inline bool any_lane(const Vec& m) {
  Lanes v = load(m);
  __m256i x = _mm256_or_si256(v.lo, v.hi);
  return !_mm256_testz_si256(x, x);
}

/// Up by n: lane i to lane (i + n) mod 16.
inline Lanes rotate(const Lanes& v, unsigned n) {
  __m256i lo = v.lo, hi = v.hi;
  if (n & 8) std::swap(lo, hi);
  n &= 7;
  __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
          shift = _mm256_set1_epi32(static_cast<int>(n));
  __m256i index = _mm256_and_si256(_mm256_sub_epi32(lane, shift), _mm256_set1_epi32(7)),
          wrapped = _mm256_cmpgt_epi32(shift, lane);
  __m256i a = _mm256_permutevar8x32_epi32(lo, index), b = _mm256_permutevar8x32_epi32(hi, index);
  return {_mm256_blendv_epi8(a, b, wrapped), _mm256_blendv_epi8(b, a, wrapped)};
}

/// Toward zero, denormals flushed; gives the mode before.
inline unsigned set_float_mode() {
  unsigned before = _mm_getcsr();
  _mm_setcsr(0x1f80 | 0x6000 | 0x8040);
  return before;
}
inline void restore_float_mode(unsigned before) { _mm_setcsr(before); }
class HostFloatMode {
 public:
  HostFloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~HostFloatMode() { _mm_setcsr(saved_); }
  HostFloatMode(const HostFloatMode&) = delete;
  HostFloatMode& operator=(const HostFloatMode&) = delete;

 private:
  unsigned saved_;
};

#else
using Lanes = Vec;
inline const Lanes& load(const Vec& v) { return v; }
inline void store(Vec& v, const Lanes& x) { v = x; }
template <typename F>
inline Lanes lanes_of(F f) {
  Lanes r;
  for (unsigned l = 0; l < 16; ++l) r[l] = f(l);
  return r;
}
inline Lanes blend(const Lanes& mask, const Lanes& on, const Lanes& off) {
  return lanes_of([&](unsigned l) { return mask[l] ? on[l] : off[l]; });
}
inline Lanes invert(const Lanes& a) {
  return lanes_of([&](unsigned l) { return ~a[l]; });
}
inline Lanes is_zero(const Lanes& a) {
  return lanes_of([&](unsigned l) { return a[l] ? 0u : ~0u; });
}
inline Lanes is_negative(const Lanes& a) {
  return lanes_of([&](unsigned l) { return a[l] >> 31 ? ~0u : 0u; });
}
inline Lanes no_lanes() {
  return lanes_of([](unsigned) { return 0u; });
}
template <int A>
inline Lanes add_op(const Lanes& a, const Lanes& b) {
  return lanes_of([&](unsigned l) { return add_lane(A, a[l], b[l]).value; });
}
template <int A>
inline Lanes add_carry(const Lanes& a, const Lanes& b, const Lanes&) {
  return lanes_of([&](unsigned l) { return add_lane(A, a[l], b[l]).carry ? ~0u : 0u; });
}
template <int M>
inline Lanes mul_op(const Lanes& a, const Lanes& b) {
  return lanes_of([&](unsigned l) { return mul_lane(M, a[l], b[l]).value; });
}
inline bool any_lane(const Vec& m) {
  std::uint32_t x = 0;
  for (std::uint32_t lane : m.lane) x |= lane;
  return x != 0;
}
inline Lanes rotate(const Lanes& v, unsigned n) {
  return lanes_of([&](unsigned l) { return v[(l - n) & 15]; });
}
inline unsigned set_float_mode() { return 0; }
inline void restore_float_mode(unsigned) {}
struct HostFloatMode {
  HostFloatMode() {}
};
#endif

/// Whether lane l holds lane 0 plus 4 l.
inline bool is_row(const Vec& v) {
#if defined(__AVX2__)
  Lanes x = load(v);
  __m256i first = _mm256_broadcastd_epi32(_mm256_castsi256_si128(x.lo));
  __m256i lo = _mm256_xor_si256(
              x.lo, _mm256_add_epi32(first, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28))),
          hi = _mm256_xor_si256(
              x.hi, _mm256_add_epi32(first, _mm256_setr_epi32(32, 36, 40, 44, 48, 52, 56, 60)));
  __m256i bad = _mm256_or_si256(lo, hi);
  return _mm256_testz_si256(bad, bad);
#else
  std::uint32_t bad = 0;
  for (unsigned l = 0; l < 16; ++l) bad |= v[l] ^ (v[0] + 4 * l);
  return bad == 0;
#endif
}

template <int M>
inline Lanes mul_carry(const Lanes& a, const Lanes& b) {
  if constexpr (M == kMul24) {
    Vec x, y;
    store(x, a), store(y, b);
    for (unsigned l = 0; l < 16; ++l) x[l] = mul_lane(M, x[l], y[l]).carry ? ~0u : 0u;
    return load(x);
  } else {
    return no_lanes();
  }
}

}  // namespace
}  // namespace weft::qpu::hw
