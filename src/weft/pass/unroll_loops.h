// SPDX-License-Identifier: Apache-2.0
#pragma once
// Unrolling. Loops under an annotation "pragma_auto_unroll_max_step" of n are marked when their
// body has at most n statement instances; marked loops are then replicated, or left marked for
// emitters whose compiler unrolls.

#include "weft/ir/node.h"

namespace weft::pass {

enum class Unroll : std::uint8_t { mark, replicate };

struct UnrollOptions {
  Unroll how = Unroll::mark;
  std::int64_t max_extent = 4096;  // a larger marked loop stays a loop
};

ir::PrimFunc unroll_loops(const ir::PrimFunc& f, const UnrollOptions& options = {});

}  // namespace weft::pass
