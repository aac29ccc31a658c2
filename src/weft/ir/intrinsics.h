// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions that a Call may name. The rows stand in intrinsics.def.

#include <string>
#include <string_view>
#include <vector>

#include "weft/ir/node.h"

namespace weft::ir {

enum class IntrinsicType : std::uint8_t {
  float_unary,   // float -> same
  float_binary,  // two equal floats -> same
  number_unary,  // any arithmetic type -> same
  int_binary,    // two equal integers (or bools) -> same
  int_unary,
  predicate,  // float -> bool
  special,    // typed by its builder
};
enum class IntrinsicEffect : std::uint8_t { pure, reads, effect };

struct Intrinsic {
  std::string_view name;
  int arity;  // -1: any
  IntrinsicType type;
  IntrinsicEffect effect;
  std::string_view meaning;
};

const std::vector<Intrinsic>& intrinsics();
/// Null when unknown.
const Intrinsic* find_intrinsic(std::string_view name);
/// Whether `dot` has a meaning for sums and two loads of these types.
bool is_dot(const ExprNode& sums, const ExprNode& a, const ExprNode& b);
/// True when evaluating e has no effect and reads no memory.
bool is_pure(const Expr& e);

}  // namespace weft::ir
