// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of arrays as nests: tiles of both operands with zeros beyond their extents, sums, the
// results that count. Every group of axes (batch, m, n, k) has any number of them at any steps, so
// that views, windows and batches need no copies. Extents and steps are arguments; the rule
// gemm_registers binds the nests to the grid.

#include <algorithm>
#include <cstdint>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

struct ProductSpec {
  std::string sum, a, b, out;  // element types; sums are computed in the first
  bool narrow = true;          // positions fit 32 bits
  int rank_m = 1, rank_n = 1, rank_k = 1, rank_batch = 1;
  bool a_along_k = true, b_along_k = false;  // the axis that neighbouring threads read along
  /// Elements that are read or written at once, of a and b along the axis above, of out along n;
  /// the extent of m, n or k, of its last axis, and the other steps of that array count such
  /// vectors.
  std::int64_t vector_a = 1, vector_b = 1, vector_out = 1;
  bool lines_a = false, lines_b = false;  // terms of a tile's row or column lie side by side
  bool bias = false;                      // a number of each column is added to its sums
  std::int64_t rows = 128, columns = 128, depth = 16;  // of a tile

  /// What the extents of m and n, and of their last axes, count.
  std::int64_t unit_m() const { return a_along_k ? 1 : vector_a; }
  std::int64_t unit_k() const {
    return std::max(a_along_k ? vector_a : 1, b_along_k ? vector_b : 1);
  }
  std::int64_t unit_n() const { return std::max(b_along_k ? 1 : vector_b, vector_out); }
};

/// Blocks "A_tile", "B_tile", "product", "store", and "places" where k has several axes.
/// Parameters: out, a, b, bias; batches, parts, steps of a part, m, n, k; elements of a part's
/// result; extents of the axes of m, n, k, batch; the steps of a along m, k, batch, of b along k,
/// n, batch, of out along m, n, batch. A vector of n, of b or of the result alone, is one of both.
ir::PrimFunc product_program(const ProductSpec& spec);

}  // namespace weft::operators
