// SPDX-License-Identifier: Apache-2.0
#pragma once
// Affine iterator maps: recognising that expressions are mixed-radix digits of loop variables,
// inverting such maps, dividing them into outer and inner subspaces.
//
//   mark  := a loop variable, or a sum, with a known extent
//   split := ((mark // lower) % extent) * scale
//   sum   := split + split + ... + base

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/arith/analyzer.h"

namespace weft::arith {

struct IterSum;
struct IterMark {
  ir::Var var;  // a loop variable, or null when `source` is a sum
  std::shared_ptr<const IterSum> source;
  ir::Expr extent;
};
struct IterSplit {
  std::shared_ptr<const IterMark> mark;
  ir::Expr lower_factor, extent, scale;
};
struct IterSum {
  std::vector<IterSplit> splits;  // descending scale
  ir::Expr base;
};

enum class MapLevel : std::uint8_t {
  none,        // digits may overlap between expressions is refused, gaps allowed
  surjective,  // every value of the box of results is reached
  bijective,   // and the loops have no digit unused
};

struct IterMapResult {
  std::vector<IterSum> indices;  // empty when not affine
  std::string error;             // which rule failed, for messages
  bool ok() const { return error.empty(); }
};

/// `indices` as functions of loops with ranges `loops` (min must be 0) under `predicate`.
IterMapResult detect_iter_map(const std::vector<ir::Expr>& indices,
                              const std::vector<ir::IterVar>& loops, const ir::Expr& predicate,
                              MapLevel level, const Analyzer& analyzer);
/// Digits of the loop each index consists of; the expression a sum stands for.
ir::Expr to_expr(const IterSum& sum);

/// For index = f(loops) bijective: each loop variable as an expression of `outputs`. Empty: not
/// invertible.
std::vector<std::pair<ir::Var, ir::Expr>> inverse_iter_map(const std::vector<IterSum>& indices,
                                                           const std::vector<ir::Expr>& outputs);

/// Each binding split as outer * inner_extent + inner, where inner depends only on `inner_loops`.
/// Empty when not divisible; the last element is (outer predicate, inner predicate).
struct SubspacePart {
  ir::Expr outer, outer_extent, inner, inner_extent;
};
std::optional<std::vector<SubspacePart>> subspace_divide(const std::vector<ir::Expr>& bindings,
                                                         const std::vector<ir::IterVar>& loops,
                                                         const std::vector<ir::Var>& inner_loops,
                                                         const ir::Expr& predicate,
                                                         const Analyzer& analyzer);

/// Simplifies bindings knowing that they form an iterator map (used after split and fuse).
std::vector<ir::Expr> simplify_iter_map(const std::vector<ir::Expr>& indices,
                                        const std::vector<ir::IterVar>& loops,
                                        const ir::Expr& predicate, const Analyzer& analyzer);

}  // namespace weft::arith
