// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of narrow numbers on machines whose instructions add several neighbouring ones to a sum
// at once: which terms are neighbours, and the layouts of both operands in which they are.

#include <optional>

#include "weft/rules/host_product.h"

namespace weft::rules {

struct DotTerms {
  std::int64_t terms = 1;     // of one instruction; 1: there is none
  std::size_t reduction = 0;  // the loop that is cut into them
  std::optional<DType> held;  // as which copies of the operands are kept, if not as they are
  bool shift = false;         // both have a sign, and the instruction takes one that has none
};

/// The block as the schedule has it now.
const ir::BlockNode* block_node(const Schedule& sch, BlockRef block);

/// Where the nest is a sum of products of two narrow operands, of which one moves along the columns
/// of a tile (`across`): by an instruction of the machine, or of wider copies.
std::optional<DotTerms> match_dot(const Nest& nest, const TargetInfo& machine, std::int64_t across);
/// The operand of the rows, laid out so that the terms of an instruction are neighbours and kept in
/// the type that it asks for; what is so already is not copied. `padded`: a copy of it that is
/// longer, in its layout.
void lay_out_rows(Schedule& sch, BlockRef block, const ir::BufferNode* rows, const DotTerms& dot,
                  std::optional<BlockRef> padded);

}  // namespace weft::rules
