// SPDX-License-Identifier: Apache-2.0
#pragma once
// A complex product from real ones: the parts of one operand, and what joins them.

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

inline constexpr int kComplexJoinThreads = 256;

/// (parts, out, blocks, count, each): out[e] = u[e] + i v[e] of pairs (re, im), where for each
/// `each` of the `count` numbers `parts` holds those of u, then those of v.
ir::PrimFunc complex_join(const std::string& real);

/// (b, out, blocks, count, n): each number of rows of n becomes the block [re, im; -im, re] of two
/// rows of 2 n real numbers.
ir::PrimFunc complex_blocks(const std::string& real);

}  // namespace weft::operators
