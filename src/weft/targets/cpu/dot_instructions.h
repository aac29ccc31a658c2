// SPDX-License-Identifier: Apache-2.0
#pragma once
// Instructions of this processor that add products of neighbouring narrow numbers, for the call
// `dot` of the language.

#include <string>

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::cpu {

struct DotInstructions {
  bool vnni = false;      // x86: bytes by fours, of which one operand has no sign; words by pairs
  bool words = false;     // x86: sums of pairs of words, an addition apart
  bool bfloat16 = false;  // x86: pairs of bfloat16
  bool bfloat16_pays = false;  // it is faster than products of float32
  bool arm_bytes = false;      // bytes by fours, both with or both without a sign
  int bytes = 0;               // of a vector

  /// What this processor has, with vectors of so many bytes.
  static DotInstructions of_host(int vector_bytes);
  /// The rows of a table that rules choose by.
  void state(TargetInfo& table) const;
  /// The function of LLVM that adds to `sums` lanes of 32 bits, or "". `plain`: it takes the sums
  /// too; `swapped`: b comes first.
  std::string function(DType sums, DType a, DType b, bool* adds, bool* swapped) const;
};

}  // namespace weft::cpu
