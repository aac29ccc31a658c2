// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rule book: what an instruction sequence must respect because the hardware does not check it.
// Rules are rows; validate() applies the static ones over all paths of a program; the others can
// only be seen at run time and are the emulator's. Source: architecture guide, section "instruction
// restrictions", and measurements published with assemblers.

#include <string>
#include <string_view>
#include <vector>

#include "weft/targets/qpu/isa.h"

namespace weft::qpu::hw {

enum class RuleKind : std::uint8_t {
  word,
  path,
  run
};  // seen in one word, along a path, at run time

struct Rule {
  const char* name;  // "H1"
  const char* slug;  // below "qpu.hazard."
  RuleKind kind;
  const char* source;  // the architecture guide's page or section, or what was measured on a chip
  const char* text;
  const char* help;
};

/// All rows, in the order of the names.
const std::vector<Rule>& rules();
const Rule& rule(std::string_view slug);

struct Violation {
  const Rule* rule = nullptr;
  std::size_t at = 0;       // instruction index that breaks the rule
  std::size_t because = 0;  // the earlier instruction, or the same
  std::string detail;
};

/// Every violation of the static rules. `entry`: index of the first instruction.
std::vector<Violation> validate(const std::vector<Instr>& program, std::size_t entry = 0);
/// Whether any branch takes its target from a register (targets unknown: such paths are not
/// checked).
bool has_register_branch(const std::vector<Instr>& program);

/// Error(emit, "qpu.hazard.<slug>") of a violation, with both instructions.
Error violation_error(const Violation& violation, const std::vector<Instr>& program);

/// The rule broken by `after` when `before` was executed `distance` (1 to 3) instructions earlier;
/// sets *slug.
std::string path_rule(const Instr& before, const Instr& after, unsigned distance,
                      const char** slug);

/// The rule that a word breaks by itself; empty: none.
std::string word_rule(const Instr& i, const char** slug);

/// A use of the program flow: predecessors of each instruction over all paths (after delay slots).
std::vector<std::vector<std::uint32_t>> predecessors(const std::vector<Instr>& program);

// What an instruction touches, for validators and schedulers.
bool writes_address(const Instr& i, bool file_b, unsigned address);  // exact file
bool writes_peripheral(const Instr& i, unsigned address);  // addresses equal in both files
bool reads_address(const Instr& i, bool file_b,
                   unsigned address);  // port set, even when the mux drops it
bool reads_mux(const Instr& i, unsigned mux);
bool writes_acc(const Instr& i, unsigned acc);  // r0..r3 and r5
/// Whether a write address means different things in the two files.
bool need_differs(unsigned address);

}  // namespace weft::qpu::hw
