// SPDX-License-Identifier: Apache-2.0
// Products of int16 in pairs that sum to int32 (vpmaddwd, pmaddwd and the like): inputs widened to int16, weights
// laid out as [k / 2][o][2] int16. A pair's sum is at most 2 * 128 * 128, so nothing saturates. Included inside an
// unnamed namespace after a type `Vector` (V below): its register type, lanes, load, store, pair (two neighbouring
// int16 in every lane) and multiply_add.

constexpr std::size_t packed_wgt_bytes(int block) {
  return 2 * static_cast<std::size_t>(block) * static_cast<std::size_t>(block);
}

/// kColumns vectors of accumulators per row.
template <class V, int kRows, int kColumns, int kBlock>
inline void gemm_rows(const GemmCall& call, const GemmRow* rows, int first) {
  typename V::Register acc[kRows][kColumns];
  const std::byte* inp[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    inp[r] = call.inp + rows[r].inp;
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) acc[r][c] = V::load(call.acc + rows[r].acc + first + V::kLanes * c);
  }
  const std::byte* wgt = call.wgt + first * 4;
  for (const GemmStep *step = call.steps, *end = step + call.step_count; step != end; ++step) {
    const std::byte* w = wgt + step->wgt;
    const std::size_t at = step->inp;
#pragma GCC unroll 8
    for (int k = 0; k < kBlock / 2; ++k) {
      typename V::Register v[kColumns];
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) v[c] = V::load(w + (k * kBlock + V::kLanes * c) * 4);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const typename V::Register x = V::pair(inp[r] + at + 4 * k);
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) V::multiply_add(acc[r][c], x, v[c]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) V::store(call.acc + rows[r].acc + first + V::kLanes * c, acc[r][c]);
  }
}

/// The last rows: `left` of them, at most kMost.
template <class V, int kMost, int kColumns, int kBlock>
inline void gemm_rest(const GemmCall& call, const GemmRow* row, std::size_t left, int first) {
  if constexpr (kMost > 0) {
    if (left == kMost) return gemm_rows<V, kMost, kColumns, kBlock>(call, row, first);
    return gemm_rest<V, kMost - 1, kColumns, kBlock>(call, row, left, first);
  }
}

/// Rows by kMost; what is left over is shared with the last of those, because one or two rows alone
/// cannot keep the units busy.
template <class V, int kMost, int kColumns, int kBlock>
void gemm_count(const GemmCall& call) {
  for (int first = 0; first < kBlock; first += V::kLanes * kColumns) {
    const GemmRow* row = call.rows;
    std::size_t left = call.row_count;
    for (; left >= 2 * kMost || left == kMost; left -= kMost, row += kMost)
      gemm_rows<V, kMost, kColumns, kBlock>(call, row, first);
    if (left > kMost) {
      const std::size_t half = (left + 1) / 2;
      gemm_rest<V, kMost, kColumns, kBlock>(call, row, half, first);
      left -= half, row += half;
    }
    gemm_rest<V, kMost, kColumns, kBlock>(call, row, left, first);
  }
}
