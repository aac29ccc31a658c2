// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value that steps read: a program, the table of the machine it is scheduled for. A step
// computes an Outcome from a const State and changes nothing itself, so a refused step cannot leave
// a trace behind.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/ir/node.h"
#include "weft/machine/target_info.h"
#include "weft/schedule/refs.h"
#include "weft/schedule/tree.h"

namespace weft::schedule {

class Facts;  // analysis.h

struct State {
  ir::IRModule mod;
  std::shared_ptr<const TargetInfo> machine;
  std::string func = "main";  // where get_block looks when no function is named
  std::int64_t sampled = 0;   // integers that sampling steps have returned so far
  bool detail = true;         // false: refusals carry no printed program (tuners)
  /// What was proven of nests that later steps leave alone; shared by copies.
  std::shared_ptr<Facts> facts;
};

/// The result of a step without one.
struct Done {};

/// What a legal step leads to. `mod` null: the program is unchanged.
template <typename R>
struct Outcome {
  ir::IRModule mod;
  R result{};
};

/// A refusal that shows the program with `culprit` (a statement, block or expression) underlined.
Refusal refuse(const State& s, std::string_view code, std::string message,
               const void* culprit = nullptr);

/// Finds what a reference names; refuses with what there is instead.
Verdict locate(const State& s, BlockRef block, Path& out);
Verdict locate(const State& s, const LoopRef& loop, Path& out);
/// As above, and refuses the root block (slug "schedule.<step>.root").
Verdict locate_inner(const State& s, BlockRef block, std::string_view step, Path& out);

std::vector<std::string> block_names(const ir::IRModule& m);
/// "\"i\", \"j\", \"k\"".
std::string quoted(const std::vector<std::string>& names);
/// Names of the loops around a place, outermost first.
std::vector<std::string> loop_names(const std::vector<const ir::ForNode*>& loops);

/// A loop or block name within quotes, for messages.
std::string name_of(const ir::ForNode* loop);
std::string name_of(const ir::BlockNode* block);

/// Refuses a memory scope that the machine does not have.
Verdict check_scope(const State& s, std::string_view step, const std::string& scope);

#define WEFT_TRY(verdict)                                  \
  do {                                                     \
    if (::weft::Verdict weft_v = (verdict)) return weft_v; \
  } while (false)

}  // namespace weft::schedule
