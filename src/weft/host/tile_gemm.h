// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of bfloat16 matrices by a processor's tile registers (AMX), or its dot products of pairs
// (AVX512_BF16).

#include <cstdint>

namespace weft {

/// Whether this processor and its system have either.
bool tile_products();

/// C = A B, rounded once to bfloat16: words of 16 bits, any steps of A and B in elements, C
/// row-major with row step ldc. Sums are float32 in the order of k; subnormal factors count as
/// zero. Only where tile_products() is true.
void tile_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint16_t* a,
               std::int64_t a_row, std::int64_t a_col, const std::uint16_t* b, std::int64_t b_row,
               std::int64_t b_col, std::uint16_t* c, std::int64_t ldc);

/// y = A x in float32 by dot products of pairs, rows of A contiguous, x without gaps; false (and
/// nothing done) where the processor has none.
bool pair_gemv(std::int64_t m, std::int64_t k, const std::uint16_t* a, std::int64_t row,
               const std::uint16_t* x, float* y);

}  // namespace weft
