// SPDX-License-Identifier: Apache-2.0
#pragma once
// C (+)= A B for one matrix, any strides of A and B, C row-major with row step ldc; `add`: to what
// C holds. Packed and blocked; the order of the sum over k is fixed by the sizes alone.

#include <cstdint>

namespace weft {

template <typename T>
using GemmFn = void (*)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                        std::int64_t a_row, std::int64_t a_col, const T* b, std::int64_t b_row,
                        std::int64_t b_col, T* c, std::int64_t ldc, bool add);

/// y = A x for one matrix whose rows or columns are contiguous, y without gaps; false (and nothing
/// done) for other layouts.
template <typename T>
using GemvFn = bool (*)(std::int64_t m, std::int64_t k, const T* a, std::int64_t row,
                        std::int64_t col, const T* x, std::int64_t step, T* y);

struct GemmTable {
  GemmFn<float> f32 = nullptr;
  GemmFn<double> f64 = nullptr;
  GemvFn<float> v32 = nullptr;
  GemvFn<double> v64 = nullptr;
};
const GemmTable& gemm_table();

}  // namespace weft
