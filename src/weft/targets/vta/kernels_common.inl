// SPDX-License-Identifier: Apache-2.0
// ALU, narrowing and widening in plain C++, compiled once per instruction set; the includer's flags decide
// what the compiler makes of the lane loops. Included inside an unnamed namespace.

// Eight lanes, or what the includer says; a compiler splits them where registers are shorter.
#ifndef WEFT_VTA_LANES
#define WEFT_VTA_LANES 8
#endif
typedef std::int32_t Lanes __attribute__((vector_size(WEFT_VTA_LANES * 4)));
typedef std::uint32_t Unsigned __attribute__((vector_size(WEFT_VTA_LANES * 4)));

template <int kOp>
inline std::int32_t alu_lane(std::int32_t x, std::int32_t y) {
  auto u = [](std::int32_t v) { return static_cast<std::uint32_t>(v); };
  if constexpr (kOp == 0) return x < y ? x : y;
  if constexpr (kOp == 1) return x > y ? x : y;
  if constexpr (kOp == 2) return static_cast<std::int32_t>(u(x) + u(y));
  if constexpr (kOp == 4) return static_cast<std::int32_t>(u(x) * u(y));
  std::int32_t right = x >> (y & 31);
  std::int32_t left = static_cast<std::int32_t>(u(x) << (static_cast<std::uint32_t>(-y) & 31));
  return y >= 0 ? right : left;
}

template <int kOp>
inline void alu_vector(Lanes& x, const Lanes& y) {
  if constexpr (kOp == 0) x = x < y ? x : y;
  if constexpr (kOp == 1) x = x > y ? x : y;
  if constexpr (kOp == 2) x = (Lanes)((Unsigned)x + (Unsigned)y);
  if constexpr (kOp == 4) x = (Lanes)((Unsigned)x * (Unsigned)y);
  if constexpr (kOp == 3) {
    Lanes right = x >> (y & 31);
    Lanes left = (Lanes)((Unsigned)x << ((Unsigned)(-y) & 31));
    x = y >= 0 ? right : left;
  }
}

/// Elements are equal or disjoint, so each may be read whole before it is written.
template <int kOp, bool kImm, int kLanes>
bool alu_run(std::int32_t imm, std::int32_t* acc, int lanes_given, std::uint32_t dst, std::uint32_t dst_step, std::uint32_t src,
             std::uint32_t src_step, std::size_t n) {
  const int lanes = kLanes ? kLanes : lanes_given;
  std::int32_t* d = acc + static_cast<std::size_t>(dst) * static_cast<std::size_t>(lanes);
  const std::int32_t* s = acc + static_cast<std::size_t>(src) * static_cast<std::size_t>(lanes);
  const std::size_t dn = static_cast<std::size_t>(dst_step) * static_cast<std::size_t>(lanes);
  const std::size_t sn = static_cast<std::size_t>(src_step) * static_cast<std::size_t>(lanes);
  const Lanes constant = Lanes{} + imm;
  Lanes bad = {};
  for (std::size_t i = 0; i < n; ++i, d += dn, s += sn) {
    int l = 0;
    for (; l + WEFT_VTA_LANES <= lanes; l += WEFT_VTA_LANES) {
      Lanes x, y;
      __builtin_memcpy(&x, d + l, sizeof x);
      if constexpr (kImm) {
        y = constant;
      } else {
        __builtin_memcpy(&y, s + l, sizeof y);
      }
      if constexpr (kOp == 3 && !kImm) bad |= (y > 31) | (y < -31);
      alu_vector<kOp>(x, y);
      __builtin_memcpy(d + l, &x, sizeof x);
    }
    for (; l < lanes; ++l) {  // elements of fewer lanes
      std::int32_t y = kImm ? imm : s[l];
      if (kOp == 3 && !kImm && (y > 31 || y < -31)) bad[0] = -1;
      d[l] = alu_lane<kOp>(d[l], y);
    }
  }
  std::int32_t any = 0;
  for (int l = 0; l < WEFT_VTA_LANES; ++l) any |= bad[l];
  return any == 0;
}

template <int kOp, bool kImm>
bool alu_lanes(std::int32_t imm, std::int32_t* acc, int lanes, std::uint32_t dst, std::uint32_t dst_step, std::uint32_t src,
               std::uint32_t src_step, std::size_t n) {
  switch (lanes) {
    case 16: return alu_run<kOp, kImm, 16>(imm, acc, lanes, dst, dst_step, src, src_step, n);
    case 32: return alu_run<kOp, kImm, 32>(imm, acc, lanes, dst, dst_step, src, src_step, n);
    default: return alu_run<kOp, kImm, 0>(imm, acc, lanes, dst, dst_step, src, src_step, n);
  }
}

bool alu(int op, bool use_imm, std::int32_t imm, std::int32_t* acc, int lanes, std::uint32_t dst, std::uint32_t dst_step,
         std::uint32_t src, std::uint32_t src_step, std::size_t n) {
  using Fn = bool (*)(std::int32_t, std::int32_t*, int, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::size_t);
  static constexpr Fn table[5][2] = {{alu_lanes<0, false>, alu_lanes<0, true>}, {alu_lanes<1, false>, alu_lanes<1, true>},
                                     {alu_lanes<2, false>, alu_lanes<2, true>}, {alu_lanes<3, false>, alu_lanes<3, true>},
                                     {alu_lanes<4, false>, alu_lanes<4, true>}};
  return table[op][use_imm](imm, acc, lanes, dst, dst_step, src, src_step, n);
}

#ifndef WEFT_VTA_OWN_NARROW
void narrow(std::int8_t* __restrict dst, const std::int32_t* __restrict src, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = static_cast<std::int8_t>(src[i]);
}
#endif

void widen(std::int32_t* __restrict dst, const std::int8_t* __restrict src, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = src[i];
}
