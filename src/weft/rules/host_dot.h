// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of narrow numbers on machines whose instructions add several neighbouring ones to a sum
// at once: which terms are neighbours, and the layouts of both operands in which they are.

#include <optional>

#include "weft/rules/host_product.h"

namespace weft::rules {

struct DotTerms {
  std::int64_t terms = 4;    // of one instruction
  std::size_t reduction = 0; // the loop that is cut into them
};

/// Where the nest is a sum of products of two narrow operands that the machine has an instruction
/// for, `columns` of which moves along the tile's columns.
std::optional<DotTerms> match_dot(const Nest& nest, const TargetInfo& machine,
                                  std::size_t columns);
/// The operand of the rows, laid out so that the terms of an instruction are neighbours; where they
/// are already, nothing is copied. `padded`: a copy of it that is longer, in its layout.
void lay_out_rows(Schedule& sch, BlockRef block, const ir::BufferNode* rows, const DotTerms& dot,
                  std::optional<BlockRef> padded);

}  // namespace weft::rules
