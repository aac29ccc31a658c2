// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stage's chain as ALU steps over accumulator buffers, in place wherever a value is not needed
// again.

#include "weft/targets/vta/stages.h"

namespace weft::vta {

struct ChainStep {
  enum class Kind : std::uint8_t { set, copy, imm, acc, store };
  Kind kind = Kind::set;
  AluOp op = AluOp::add;
  int into = 0;               // buffer 0 is the stage's sum; others are temporaries. store: read
  std::int64_t number = 0;    // set, imm
  bool from_operand = false;  // copy, acc
  int from = 0;               // buffer or operand
  std::size_t segment = 0;    // store
  int byte = 0;               // store: which byte of the value
};

struct ChainProgram {
  std::vector<ChainStep> steps;
  int buffers = 1;
  /// Cycles for each element, at one for a constant operand and two for another element.
  std::int64_t cycles(std::int64_t imm = 1, std::int64_t acc = 2) const;
};

ChainProgram compile_chain(const Task& s);

}  // namespace weft::vta
