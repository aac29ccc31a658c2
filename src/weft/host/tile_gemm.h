// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of bfloat16 matrices by a processor's tile registers (AMX).

#include <cstdint>

namespace weft {

/// Whether this processor and its system have them.
bool tile_products();

/// C = A B, rounded once to bfloat16: words of 16 bits, any steps of A and B in elements, C
/// row-major with row step ldc. Sums are float32 in the order of k; subnormal factors count as
/// zero. Only where tile_products() is true.
void tile_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint16_t* a,
               std::int64_t a_row, std::int64_t a_col, const std::uint16_t* b, std::int64_t b_row,
               std::int64_t b_col, std::uint16_t* c, std::int64_t ldc);

}  // namespace weft
