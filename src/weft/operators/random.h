// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers: Philox 4x32-10 (Salmon and others, SC 2011). Four words of 32 bits depend on a
// seed and a counter alone, so every device makes the same ones. The host's kernels and the program
// of devices with a grid are made of the same expressions.

#include <cstdint>
#include <functional>

#include "weft/ir/node.h"

namespace weft::operators {

enum class RandomNumbers : std::uint8_t { bits, uniform, normal, uniform64, normal64 };
inline constexpr int kRandomThreads = 256;

/// uint32, float32 or float64.
DType random_type(RandomNumbers kind);
/// Numbers that one counter gives: four, or two of 64 bits.
inline std::int64_t random_each(RandomNumbers kind) {
  return kind >= RandomNumbers::uniform64 ? 2 : 4;
}

/// then(numbers of one counter). `seed` and `counter` are uint64. Uniform numbers lie in [0, 1): 24
/// bits of a word, or 53 of two. Normal ones come in pairs by Box and Muller's method.
ir::Stmt random_values(RandomNumbers kind, const ir::Expr& seed, const ir::Expr& counter,
                       const std::function<ir::Stmt(const ir::Exprs&)>& then);

/// (out, seed, first, count, blocks): out[i] is number i of counters first, first + 1, ...; a
/// thread makes the numbers of one counter.
ir::PrimFunc random_program(RandomNumbers kind);

}  // namespace weft::operators
