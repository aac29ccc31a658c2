// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of two integers that take a loop for each element, on devices with a grid: powers by
// squaring, common divisors and multiples by Euclid's algorithm.

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

enum class IntegerLoop : std::uint8_t { power, gcd, lcm };
inline constexpr int kIntegerLoopThreads = 256;

/// (x, y, out, blocks, count), all of one integer type, wrapped: out[i] = x[i] to the power
/// y[i] >= 0, or the greatest common divisor, or the least common multiple, of the magnitudes;
/// these of types of 32 and 64 bits.
ir::PrimFunc integer_loop(IntegerLoop what, const std::string& element);

}  // namespace weft::operators
