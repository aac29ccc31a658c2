// SPDX-License-Identifier: Apache-2.0
#pragma once
// The translated engine: a clean program becomes one function of LLVM text over the QPU's state in
// memory, compiled by jit. A block keeps registers in machine registers and stores at its end what
// is read later; sums and products run in the processor's own float mode (toward zero, denormals
// flushed) and are repaired together, once per group, where a result is no number.

#include <memory>
#include <string>

#include "weft/targets/qpu/engine.h"
#include "weft/targets/qpu/engine/flow.h"

namespace weft::qpu::hw {

struct TranslateOptions {
  bool count = false;      // executions per instruction
  bool keep = false;       // registers that nobody reads any more keep their last values
  int optimisation = 2;    // LLVM's code generator, 0 to 3
  bool file_cache = true;  // keep machine code for other processes
};

/// Empty: this host can run translated programs; otherwise why not.
std::string translation_missing();
/// Throws Error(device, "qpu.engine.translated") when something is missing.
void require_translation(const std::string& missing);
/// Throws as require_translation does where translation is not possible.
std::unique_ptr<FastProgram> make_translated(const Program& program,
                                             const TranslateOptions& options);

/// Who runs the code.
enum class Role : std::uint8_t {
  alone,   // everything, on one thread
  values,  // registers and memory; what shared units need to know is written down
           // (engine/decoupled_timing.h)
  clocks,  // the rest, from what was written down
};

/// The LLVM text, for tests and debugging.
std::string translate_text(const Program& program, const Flow& flow, bool count,
                           Role role = Role::alone);

/// A group of sums and products as the repair helper reads it: how many operations and inputs,
/// then per operation its code (MUL operations from 32 on) and two places in the scratch area.
inline constexpr int kRecipeMul = 32;
/// Vectors of the scratch area that repairs work in.
inline constexpr std::size_t kScratch = 96;

}  // namespace weft::qpu::hw
