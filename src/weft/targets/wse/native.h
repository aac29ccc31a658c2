// SPDX-License-Identifier: Apache-2.0
#pragma once
// Native code for the scalar instructions of a program, made through `jit` once per distinct
// program. A native function runs from one instruction to the next that it does not know (DSD
// operations, tasks, calls) or that needs the slow path (memory not there yet, division by zero,
// a used-up budget); the interpreter does that one and comes back. Cycles, instruction counts and
// the places where a run is cut are those of the bytecode, so the two engines cannot be told apart.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/jit/jit.h"
#include "weft/targets/wse/program.h"
#include "weft/targets/wse/timing.h"

namespace weft::wse {

/// What generated code reads and writes; offsets are part of its text.
struct NativeState {
  std::uint64_t* regs = nullptr;   // 0: of the frame
  std::uint8_t* memory = nullptr;  // 8
  std::uint64_t memory_bytes = 0;  // 16
  std::uint64_t pc = 0;            // 24: in and out
  std::int64_t cycles = 0;         // 32: in and out
  std::int64_t budget = 0;         // 40: instructions left; in and out
  std::uint64_t sp = 0;            // 48
  std::uint64_t place[4] = {};     // 56: x, y, width, height
};

class NativeProgram {
 public:
  using Run = void(NativeState*);
  struct Entry {
    Run* run = nullptr;                // null: nothing in the function is worth it
    std::vector<std::uint8_t> leader;  // per instruction: may be entered there
  };
  std::vector<Entry> functions;
  Ref<jit::Code> code;
};

/// The LLVM text of the scalar parts of functions; `quantum`: cycles a run may be ahead. Without
/// `all` only functions with a loop.
std::string native_text(const Program& program, const Timing& timing, std::int64_t quantum,
                        bool all, NativeProgram& out);
/// Throws what jit throws, "jit.llvm.absent" among others.
NativeProgram compile_native(const Program& program, const Timing& timing, std::int64_t quantum,
                             bool all);

}  // namespace weft::wse
