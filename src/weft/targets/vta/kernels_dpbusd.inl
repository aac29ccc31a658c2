// SPDX-License-Identifier: Apache-2.0
// Products by vpdpbusd, which multiplies unsigned by signed bytes in groups of four, exactly. Inputs are kept
// as x + 128, weights as they are in [k / 4][o][4]; the 128 * sum(w) that every result then has too much is
// kept behind each weight tile, one number per output, and taken off once for all rows of a call. Included
// inside an unnamed namespace after a type `Vector` (V below): its register type, lanes, load, store, set1,
// add, sub and dot(sum, unsigned, signed).

constexpr std::size_t packed_wgt_bytes(int block) {
  return static_cast<std::size_t>(block) * static_cast<std::size_t>(block + 4);
}

void pack_inp(std::byte* packed, const std::int8_t* raw, std::size_t rows, int block) {
  const std::size_t n = rows * static_cast<std::size_t>(block);
  for (std::size_t i = 0; i < n; ++i)
    packed[i] = static_cast<std::byte>(static_cast<std::uint8_t>(raw[i]) ^ 0x80u);
}

/// Groups of four bytes, transposed one by one.
inline void transpose_groups(std::byte* packed, const std::int8_t* raw, int block) {
  for (int o = 0; o < block; ++o) {
    for (int k = 0; k + 4 <= block; k += 4)
      __builtin_memcpy(packed + (k * block / 4 + o) * 4, raw + o * block + k, 4);
  }
}

/// 128 * sum(w) of each output of a transposed tile.
template <class V>
inline void write_excess(std::byte* packed, int block) {
  const typename V::Register bias = V::set1(static_cast<int>(0x80808080u));
  for (int o = 0; o < block; o += V::kLanes) {
    typename V::Register sum = V::set1(0);
    for (int k = 0; k < block / 4; ++k)
      sum = V::dot(sum, bias, V::load(packed + (k * block + o) * 4));
    V::store(packed + block * block + o * 4, sum);
  }
}

/// kRows rows by kColumns registers of results. Where registers are left, even and odd groups are summed
/// apart (kChains 2), because one sum's steps wait for one another.
template <class V, int kRows, int kColumns, int kBlock, int kChains>
inline void gemm_rows(const GemmCall& call, const GemmRow* rows, int first,
                      const typename V::Register* excess) {
  using Register = typename V::Register;
  Register acc[kChains][kRows][kColumns];
  const std::byte* inp[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    inp[r] = call.inp + rows[r].inp;
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      acc[0][r][c] = V::sub(V::load(call.acc + rows[r].acc + first + V::kLanes * c), excess[c]);
      if constexpr (kChains == 2) acc[1][r][c] = V::set1(0);
    }
  }
  const std::byte* wgt = call.wgt + first * 4;
  for (const GemmStep *step = call.steps, *end = step + call.step_count; step != end; ++step) {
    const std::byte* w = wgt + step->wgt;
    const std::size_t at = step->inp;
#pragma GCC unroll 4
    for (int k = 0; k < kBlock / 4; ++k) {
      Register v[kColumns];
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) v[c] = V::load(w + (k * kBlock + V::kLanes * c) * 4);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        int four;
        __builtin_memcpy(&four, inp[r] + at + 4 * k, 4);
        const Register x = V::set1(four);
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c)
          acc[k % kChains][r][c] = V::dot(acc[k % kChains][r][c], x, v[c]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      Register sum = acc[0][r][c];
      if constexpr (kChains == 2) sum = V::add(sum, acc[1][r][c]);
      V::store(call.acc + rows[r].acc + first + V::kLanes * c, sum);
    }
  }
}

/// The last rows: `left` of them, at most kMost.
template <class V, int kMost, int kColumns, int kBlock, int kChains>
inline void gemm_rest(const GemmCall& call, const GemmRow* row, std::size_t left, int first,
                      const typename V::Register* excess) {
  if constexpr (kMost > 0) {
    if (left == kMost)
      return gemm_rows<V, kMost, kColumns, kBlock, kChains>(call, row, first, excess);
    return gemm_rest<V, kMost - 1, kColumns, kBlock, kChains>(call, row, left, first, excess);
  }
}

/// Rows by kMost; what is left over is shared with the last of those, because one or two rows alone
/// cannot keep the units busy.
template <class V, int kMost, int kColumns, int kBlock, int kChains>
void gemm_count(const GemmCall& call) {
  for (int first = 0; first < kBlock; first += V::kLanes * kColumns) {
    typename V::Register excess[kColumns];
    for (int c = 0; c < kColumns; ++c) excess[c] = V::set1(0);
    const std::byte* of = call.wgt + kBlock * kBlock + first * 4;
    for (std::size_t s = 0; s < call.step_count; ++s) {
      for (int c = 0; c < kColumns; ++c)
        excess[c] = V::add(excess[c], V::load(of + call.steps[s].wgt + V::kLanes * c * 4));
    }
    const GemmRow* row = call.rows;
    std::size_t left = call.row_count;
    for (; left >= 2 * kMost || left == kMost; left -= kMost, row += kMost)
      gemm_rows<V, kMost, kColumns, kBlock, kChains>(call, row, first, excess);
    if (left > kMost) {
      const std::size_t half = (left + 1) / 2;
      gemm_rest<V, kMost, kColumns, kBlock, kChains>(call, row, half, first, excess);
      left -= half, row += half;
    }
    gemm_rest<V, kMost, kColumns, kBlock, kChains>(call, row, left, first, excess);
  }
}

/// Blocks of 4, which no register fits.
inline void gemm_4(const GemmCall& call) {
  for (std::size_t r = 0; r < call.row_count; ++r) {
    std::int32_t* acc = call.acc + call.rows[r].acc;
    for (std::size_t s = 0; s < call.step_count; ++s) {
      const std::uint8_t* x =
          reinterpret_cast<const std::uint8_t*>(call.inp + call.rows[r].inp + call.steps[s].inp);
      const std::int8_t* w = reinterpret_cast<const std::int8_t*>(call.wgt + call.steps[s].wgt);
      for (int o = 0; o < 4; ++o) {
        std::uint32_t sum = 0;
        for (int k = 0; k < 4; ++k) sum += static_cast<std::uint32_t>((x[k] - 128) * w[o * 4 + k]);
        acc[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc[o]) + sum);
      }
    }
  }
}
