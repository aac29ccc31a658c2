// SPDX-License-Identifier: Apache-2.0
#pragma once
// Indices of accesses: the value of one where the loops around it stand at given iterations.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "weft/ir/node.h"

namespace weft::pass {

class IndexValues {
 public:
  using Value = std::optional<std::int64_t>;  // absent: data decides

  void set(const ir::VarNode* var, Value value) { vars_[var] = value; }
  /// Of one lane of a vector. Integers that nobody has set (extents, strides known only at run
  /// time) have one legal value.
  Value of(const ir::Expr& e, int lane = 0) const;

 private:
  std::unordered_map<const ir::VarNode*, Value> vars_;
};

bool reads_memory(const ir::Expr& e);

/// "C[7 - i]", for messages.
std::string access_text(const ir::Buffer& b, const ir::Exprs& indices);

}  // namespace weft::pass
