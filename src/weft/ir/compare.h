// SPDX-License-Identifier: Apache-2.0
#pragma once
// Structural equality and hash: names of variables, buffers and blocks' ids do not matter (block
// names do); bound variables correspond by position. Free variables are equal only to themselves
// unless mapped.

#include <string>

#include "weft/ir/node.h"

namespace weft::ir {

enum class FreeVars : std::uint8_t { by_identity, by_position };

bool structural_equal(const Expr& a, const Expr& b, FreeVars free = FreeVars::by_identity);
bool structural_equal(const Stmt& a, const Stmt& b, FreeVars free = FreeVars::by_identity);
bool structural_equal(const PrimFunc& a, const PrimFunc& b);
bool structural_equal(const IRModule& a, const IRModule& b);
/// Equal programs have equal hashes. Stable across runs of one version.
std::uint64_t structural_hash(const PrimFunc& f);
std::uint64_t structural_hash(const IRModule& m);
std::uint64_t structural_hash(const Expr& e);
/// 128 bits of the same walk: an address for what is kept on disk, where nothing is compared.
struct Digest {
  std::uint64_t high = 0, low = 0;
};
Digest structural_digest(const IRModule& m);
/// Cheap equality of expressions: same nodes or same shape over the same variables.
bool same_expr(const Expr& a, const Expr& b);

}  // namespace weft::ir
