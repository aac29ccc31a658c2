// SPDX-License-Identifier: Apache-2.0
#pragma once
// IR values of Lazy expressions, given those of their leaves.

#include <unordered_map>
#include <vector>

#include "weft/fusion/lazy.h"
#include "weft/ir/node.h"

namespace weft {

/// Writes each node once: what two values share is one node of the IR too.
class LazyWriter {
 public:
  LazyWriter() = default;
  /// `values`: of the leaves, as loaded, of their own types. `wide`: narrow floats, leaves
  /// included, are float32 until the end, and nothing in between is rounded.
  LazyWriter(const std::vector<const LazyNode*>& leaves, const std::vector<ir::Expr>& values,
             bool wide = false);
  void set(const LazyNode* node, ir::Expr value) { known_[node] = std::move(value); }
  bool knows(const LazyNode* node) const { return known_.count(node) > 0; }
  /// Of all nodes that are not known, rows, casts, choices, broadcasts and numbers.
  ir::Expr value(const Lazy& x);

 private:
  Elem type_of(Elem e) const { return wide_ ? arithmetic_elem(e) : e; }

  std::unordered_map<const LazyNode*, ir::Expr> known_;
  bool wide_ = false;
};

/// The IR values of expressions, given those of their leaves (of the leaves' types).
std::vector<ir::Expr> lazy_values(const std::vector<Lazy>& roots,
                                  const std::vector<const LazyNode*>& leaves,
                                  const std::vector<ir::Expr>& values);
ir::Expr lazy_value(const Lazy& x, const std::vector<const LazyNode*>& leaves,
                    const std::vector<ir::Expr>& values);

}  // namespace weft
