// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft {

/// C = A B without packing, on AVX-512: where the rows of B are contiguous and the sizes small.
/// False, and nothing done, for other products. Each sum has its terms in order.
template <typename T>
bool small_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
                std::int64_t a_col, const T* b, std::int64_t b_row, std::int64_t b_col, T* c,
                std::int64_t ldc);

}  // namespace weft
