// SPDX-License-Identifier: Apache-2.0
#pragma once
// Unrolling. Loops under an annotation "pragma_auto_unroll_max_step" of n are marked when their
// body has at most n statement instances; marked loops are then replicated, or left marked for
// emitters whose compiler unrolls. A loop whose iterations would have more than max_statements
// stays a loop and says why in its annotation "not_unrolled".

#include <string_view>

#include "weft/ir/node.h"

namespace weft::pass {

inline constexpr std::string_view kNotUnrolled = "not_unrolled";

enum class Unroll : std::uint8_t { mark, replicate };

struct UnrollOptions {
  Unroll how = Unroll::mark;
  // Of one loop with all that is written out inside. The time of compilers grows with its square.
  std::int64_t max_statements = 1024;
};

ir::PrimFunc unroll_loops(const ir::PrimFunc& f, const UnrollOptions& options = {});

}  // namespace weft::pass
