// SPDX-License-Identifier: Apache-2.0
#pragma once
// The QPU's arithmetic on one lane, literally and in integers: the oracle that every engine is
// tested against. IEEE single format, not IEEE behaviour: denormals are zero, there is no -0 and no
// NaN result, the adder rounds toward zero. Source: measurements on chips (addendum to the
// architecture guide; models validated by running on a Raspberry Pi); unconfirmed points are in
// assumptions.h.

#include <bit>
#include <cmath>
#include <cstdint>

#include "weft/targets/qpu/assumptions.h"
#include "weft/targets/qpu/isa.h"

namespace weft::qpu::hw {

inline constexpr std::uint32_t kSign = 0x80000000u, kInf = 0x7f800000u, kLargest = 0x7f7fffffu;

inline bool is_nan(std::uint32_t x) { return (x & 0x7fffffffu) > kInf; }
inline bool is_inf(std::uint32_t x) { return (x & 0x7fffffffu) == kInf; }
inline std::uint32_t flush(std::uint32_t x) { return (x & kInf) == 0 ? 0 : x; }

/// sign, exponent of the leading bit (unbiased) and a 64-bit significand with its leading bit
/// at 62.
inline std::uint32_t assemble_float(std::uint32_t sign, int exponent, std::uint64_t significand) {
  int biased = exponent + 127;
  if (biased < 1) return 0;
  if (biased > 254) return sign | (assume::kOverflowIsLargestFinite ? kLargest : kInf);
  return sign | (static_cast<std::uint32_t>(biased) << 23) |
         (static_cast<std::uint32_t>(significand >> 39) & 0x7fffffu);
}

inline std::uint32_t fadd(std::uint32_t a, std::uint32_t b) {
  a = flush(a), b = flush(b);
  if (is_nan(b)) return (b & kSign) | kInf;
  if (is_nan(a)) return (a & kSign) | kInf;
  if (is_inf(b)) return b;
  if (is_inf(a)) return a;
  if (a == 0) return b;
  if (b == 0) return a;
  if ((a & ~kSign) < (b & ~kSign)) std::swap(a, b);
  int ea = static_cast<int>(a >> 23 & 255), eb = static_cast<int>(b >> 23 & 255), shift = ea - eb;
  // 1.f with the leading bit at 61, one bit of head room; what is shifted out stays as a sticky
  // bit.
  std::uint64_t ma = static_cast<std::uint64_t>((a & 0x7fffffu) | 0x800000u) << 38;
  std::uint64_t mb = static_cast<std::uint64_t>((b & 0x7fffffu) | 0x800000u) << 38;
  mb = shift > 60 ? 1 : (mb >> shift) | ((mb & ((1ull << shift) - 1)) != 0);
  std::uint64_t m = ((a ^ b) & kSign) ? ma - mb : ma + mb;
  if (m == 0) return 0;
  int lead = 63 - std::countl_zero(m);
  return assemble_float(a & kSign, ea - 127 + lead - 61,
                        lead < 62 ? m << (62 - lead) : m >> (lead - 62));
}

inline std::uint32_t fsub(std::uint32_t a, std::uint32_t b) { return fadd(a, b ^ kSign); }

inline std::uint32_t fmul(std::uint32_t a, std::uint32_t b) {
  a = flush(a), b = flush(b);
  if ((a & ~kSign) == 0 || (b & ~kSign) == 0) return 0;
  std::uint32_t sign = (a ^ b) & kSign;
  if ((a & kInf) == kInf || (b & kInf) == kInf) return sign | kInf;
  std::uint64_t m =
      static_cast<std::uint64_t>((a & 0x7fffffu) | 0x800000u) * ((b & 0x7fffffu) | 0x800000u);
  int exponent = static_cast<int>(a >> 23 & 255) + static_cast<int>(b >> 23 & 255) - 254;
  int lead = 63 - std::countl_zero(m);  // 46 or 47
  return assemble_float(sign, exponent + lead - 46, m << (62 - lead));
}

/// a > b in the order -NaN < -Inf < ... < +Inf < NaN; zeros of either sign are equal.
inline bool float_greater(std::uint32_t a, std::uint32_t b) {
  if (((a | b) << 1) == 0) return false;
  auto key = [](std::uint32_t x) {
    return static_cast<std::int32_t>(x ^ ((x & kSign) ? 0x7fffffffu : 0));
  };
  return key(a) > key(b);
}

inline std::uint32_t itof(std::uint32_t a) {
  if (a == 0) return 0;
  std::uint32_t sign = a & kSign;
  std::uint64_t m = sign ? 0 - a : a;
  m &= 0xffffffffu;
  int lead = 63 - std::countl_zero(m);
  return assemble_float(sign, lead, m << (62 - lead));
}

inline std::uint32_t ftoi(std::uint32_t a) {
  a = flush(a);
  std::uint32_t magnitude = a & ~kSign;
  if (magnitude == kLargest || a == 0x4f000000u) return kSign;  // FLT_MAX and 2^31, as measured
  int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent < 0 || exponent > 31 || (exponent == 31 && a != 0xcf000000u)) return 0;
  std::uint64_t m = static_cast<std::uint64_t>((a & 0x7fffffu) | 0x800000u);
  std::uint32_t value =
      static_cast<std::uint32_t>(exponent >= 23 ? m << (exponent - 23) : m >> (23 - exponent));
  return (a & kSign) ? 0 - value : value;
}

/// The SFU: `which` is the write address, kWRecip to kWLog2.
inline std::uint32_t sfu(unsigned which, std::uint32_t bits) {
  bits = flush(bits);
  if (is_nan(bits)) return (bits & kSign) | kInf;
  double x = std::bit_cast<float>(bits), y = 0;
  switch (which) {
    case kWRecip: y = x == 0 ? HUGE_VAL : 1.0 / x; break;
    case kWRsqrt: y = x == 0 ? HUGE_VAL : 1.0 / std::sqrt(std::fabs(x)); break;
    case kWExp2: y = std::exp2(x); break;
    default: y = x == 0 ? -HUGE_VAL : std::log2(std::fabs(x)); break;
  }
  std::uint32_t r = std::bit_cast<std::uint32_t>(static_cast<float>(y));
  if ((r & kInf) == kInf) return (r & kSign) | kInf;
  r &= ~((1u << assume::kSfuClearedBits) - 1);
  return (r & kInf) == 0 ? 0 : r;
}

struct LaneResult {
  std::uint32_t value;
  bool carry;
};

inline std::uint32_t bytes4(std::uint32_t a, std::uint32_t b, auto f) {
  std::uint32_t out = 0;
  for (int s = 0; s < 32; s += 8)
    out |= static_cast<std::uint32_t>(
               f(static_cast<int>(a >> s & 255), static_cast<int>(b >> s & 255)))
           << s;
  return out;
}
inline std::uint32_t v8adds(std::uint32_t a, std::uint32_t b) {
  return bytes4(a, b, [](int x, int y) { return x + y > 255 ? 255 : x + y; });
}
inline std::uint32_t v8subs(std::uint32_t a, std::uint32_t b) {
  return bytes4(a, b, [](int x, int y) { return x < y ? 0 : x - y; });
}

inline LaneResult add_lane(unsigned op, std::uint32_t a, std::uint32_t b) {
  auto sa = static_cast<std::int32_t>(a), sb = static_cast<std::int32_t>(b);
  unsigned n = b & 31;
  auto positive = [](std::uint32_t r) { return static_cast<std::int32_t>(r) > 0; };
  switch (op) {
    case kFadd: {
      auto r = fadd(a, b);
      return {r, positive(r)};
    }
    case kFsub: {
      auto r = fsub(a, b);
      return {r, positive(r)};
    }
    case kFmin: {
      bool g = float_greater(a, b);
      return {g ? b : a, g};
    }
    case kFmax: {
      bool g = float_greater(a, b);
      return {g ? a : b, g};
    }
    case kFminabs: {
      a &= ~kSign, b &= ~kSign;
      return {a > b ? b : a, a > b};
    }
    case kFmaxabs: {
      a &= ~kSign, b &= ~kSign;
      return {a > b ? a : b, a > b};
    }
    case kFtoi: return {ftoi(a), false};
    case kItof: {
      auto r = itof(a);
      return {r, positive(r)};
    }
    case kAdd: return {a + b, a + b < a};
    case kSub: return {a - b, a < b};
    case kShr: return {a >> n, n && (a >> (n - 1) & 1)};
    case kAsr:
      return {static_cast<std::uint32_t>(sa >> n),
              n && (static_cast<std::uint32_t>(sa >> (n - 1)) & 1)};
    case kRor: return {std::rotr(a, static_cast<int>(n)), false};
    case kShl: return {a << n, n && (a >> (32 - n) & 1)};
    case kMin: return {sa > sb ? b : a, sa > sb};
    case kMax: return {sa > sb ? a : b, sa > sb};
    case kAnd: return {a & b, false};
    case kOr: return {a | b, false};
    case kXor: return {a ^ b, false};
    case kNot: return {~a, false};
    case kClz: return {static_cast<std::uint32_t>(std::countl_zero(a)), false};
    case kV8addsA: return {v8adds(a, b), false};
    case kV8subsA: return {v8subs(a, b), false};
    default: return {0, false};
  }
}

inline LaneResult mul_lane(unsigned op, std::uint32_t a, std::uint32_t b) {
  switch (op) {
    case kFmul: return {fmul(a, b), false};
    case kMul24: {
      std::uint64_t product = static_cast<std::uint64_t>(a & 0xffffffu) * (b & 0xffffffu);
      return {static_cast<std::uint32_t>(product), product > assume::kMul24CarryLimit};
    }
    case kV8muld: return {bytes4(a, b, [](int x, int y) { return (x * y + 127) / 255; }), false};
    case kV8min: return {bytes4(a, b, [](int x, int y) { return x < y ? x : y; }), false};
    case kV8max: return {bytes4(a, b, [](int x, int y) { return x > y ? x : y; }), false};
    case kV8addsM: return {v8adds(a, b), false};
    case kV8subsM: return {v8subs(a, b), false};
    default: return {0, false};
  }
}

inline bool add_is_float(unsigned op) { return op >= kFadd && op <= kFtoi; }
inline bool add_gives_float(unsigned op) { return (op >= kFadd && op <= kFmaxabs) || op == kItof; }

/// Half to single; half denormals come out wrong on the chip (mantissa only shifted), so do ours.
inline std::uint32_t half_to_float(std::uint32_t h) {
  std::uint32_t sign = (h & 0x8000u) << 16, e = h >> 10 & 31, m = (h & 0x3ffu) << 13;
  if (e == 0) return sign | m;
  if (e == 31) return sign | kInf | m;
  return sign | ((e + 112) << 23) | m;
}
/// Single to half, away from zero; denormals become 0, NaN becomes Inf.
inline std::uint32_t float_to_half(std::uint32_t f) {
  std::uint32_t sign = f >> 16 & 0x8000u, m = f & 0x7fffffu;
  int e = static_cast<int>(f >> 23 & 255) - 112;
  if ((f & kInf) == kInf) return sign | 0x7c00u;
  if (e < 1) return 0;
  std::uint32_t half = (static_cast<std::uint32_t>(e) << 10) + (m >> 13) + ((m & 0x1fffu) != 0);
  return sign | (half > 0x7c00u ? 0x7c00u : half);
}

/// Unpacking a value of file A (float_op: an operation that consumes it is a float one) or of r4.
inline std::uint32_t unpack_lane(unsigned code, std::uint32_t v, bool float_op) {
  switch (code) {
    case 1:
    case 2: {
      std::uint32_t h = code == 1 ? v & 0xffffu : v >> 16;
      return float_op ? half_to_float(h)
                      : static_cast<std::uint32_t>(
                            static_cast<std::int32_t>(static_cast<std::int16_t>(h)));
    }
    case 3: return (v >> 24) * 0x01010101u;
    case 4:
    case 5:
    case 6:
    case 7: {
      std::uint32_t byte = v >> (8 * (code - 4)) & 255u;
      return float_op ? std::bit_cast<std::uint32_t>(static_cast<float>(byte) / 255.0f) : byte;
    }
    default: return v;
  }
}

/// The full result with signed overflow of add and sub undone by saturation (packs 8 and up).
inline std::uint32_t saturate32(unsigned op, std::uint32_t a, std::uint32_t b, std::uint32_t r) {
  bool overflow = op == kAdd   ? ((a ^ r) & (b ^ r) & kSign) != 0
                  : op == kSub ? ((a ^ b) & (a ^ r) & kSign) != 0
                               : false;
  return overflow ? ((a & kSign) ? 0x80000000u : 0x7fffffffu) : r;
}

/// Packing into file A: merges into the register's old value.
inline std::uint32_t pack_lane(unsigned code, std::uint32_t old, std::uint32_t v, bool is_float) {
  auto put = [&](std::uint32_t mask, unsigned shift, std::uint32_t x) {
    return (old & ~(mask << shift)) | ((x & mask) << shift);
  };
  auto s = static_cast<std::int32_t>(v);
  std::uint32_t s16 = static_cast<std::uint32_t>(s < -32768  ? -32768
                                                 : s > 32767 ? 32767
                                                             : s) &
                      0xffffu;
  std::uint32_t u8 = static_cast<std::uint32_t>(s < 0 ? 0 : s > 255 ? 255 : s);
  switch (code) {
    case 1: return put(0xffffu, 0, is_float ? float_to_half(v) : v);
    case 2: return put(0xffffu, 16, is_float ? float_to_half(v) : v);
    case 3: return (v & 255u) * 0x01010101u;
    case 4:
    case 5:
    case 6:
    case 7: return put(255u, 8 * (code - 4), v);
    case 9: return put(0xffffu, 0, is_float ? float_to_half(v) : s16);
    case 10: return put(0xffffu, 16, is_float ? float_to_half(v) : s16);
    case 11: return u8 * 0x01010101u;
    case 12:
    case 13:
    case 14:
    case 15: return put(255u, 8 * (code - 12), u8);
    default: return v;
  }
}

/// Packing the MUL result as a colour (pm = 1, codes 3 to 7).
inline std::uint32_t pack_colour(unsigned code, std::uint32_t old, std::uint32_t f) {
  float x = std::bit_cast<float>(flush(f)) * 255.0f;
  std::uint32_t byte = !(x > 0) ? 0 : x >= 255.0f ? 255 : static_cast<std::uint32_t>(x);
  if (code == 3) return byte * 0x01010101u;
  if (code >= 4 && code <= 7)
    return (old & ~(255u << (8 * (code - 4)))) | (byte << (8 * (code - 4)));
  return f;
}

}  // namespace weft::qpu::hw
