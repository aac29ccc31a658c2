// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lowered kernels to LLVM text that LLVM 15 to 19 accept. One external function a kernel, of the C
// kernel ABI; its body is an internal function whose pointers are arguments, so that `noalias` can
// be said of them. Accumulators in small local buffers with constant indices become SSA values by
// sroa.

#include <map>
#include <string>
#include <vector>

#include "weft/ir/node.h"
#include "weft/targets/cpu/dot_instructions.h"

namespace weft::cpu {

struct LlvmText {
  std::string text;
  bool explicit_vectors = false;  // the schedule vectorized: LLVM's own loop optimizers stay out
  std::map<std::string, std::vector<std::string>> assertions;  // per kernel: texts by code - 1
};

/// Products and sums may contract into one rounding, except in a kernel with the attribute
/// "contract": false. Kernels: params are one-dimensional buffers, then scalars; bodies without
/// blocks. Mathematics of vectors calls the C library's functions of at most `vector_bytes` where
/// it has them, and `dot` the instructions of `dots`. Throws Error(emit, "cpu.emit.*") on what the
/// emitter cannot express.
LlvmText emit_llvm(const std::vector<ir::PrimFunc>& kernels, int vector_bytes = 0,
                   const DotInstructions& dots = {});

}  // namespace weft::cpu
