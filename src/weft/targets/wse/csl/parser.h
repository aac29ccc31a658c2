// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokens to syntax tree. Recovers at statements and items, so several errors are reported; nesting
// deeper than kMaxNesting is an error, not a stack overflow.

#include "weft/targets/wse/csl/ast.h"

namespace weft::wse::csl {

inline constexpr int kMaxNesting = 200;

/// Always yields a file node; errors are in `diagnostics`.
Ast parse(const Source& source, Names& names, Diagnostics& diagnostics);

}  // namespace weft::wse::csl
