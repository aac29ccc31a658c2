// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block at the top of a function's body as rules see it: its loops by kind, how often they are
// expected to run, and how far apart its accesses along each loop lie.

#include <functional>
#include <vector>

#include "weft/ir/reduction_pattern.h"
#include "weft/rules/facts.h"
#include "weft/schedule/schedule.h"

namespace weft::rules {

struct NestLoop {
  LoopRef loop;
  std::int64_t extent = 0;    // expected
  bool constant = false;      // the extent is a literal
  std::int64_t multiple = 1;  // what divides the extent, whatever its symbols are
  /// Least distance, in elements, between the accesses of neighbouring iterations; 0 where no
  /// access moves. Of a nest that streams, only accesses that do count. `every`: all moving
  /// accesses have distance 1.
  std::int64_t step = 0;
  bool every = false;
  std::vector<bool> moves;  // whether each element that is read, in the body's order, moves with it
  std::vector<std::int64_t> steps;  // how far, in elements
};

struct Nest {
  BlockRef block;
  std::vector<NestLoop> spatial, reduction;
  bool mixed = false;  // a loop feeds spatial and reduction iterators
  std::int64_t results = 1, terms = 1;
  /// Some access moves along every spatial loop: elements are used once, unlike those of products.
  bool streams = false;
  int widest_bytes = 1;                 // of the elements in global memory
  const ir::BlockNode* node = nullptr;  // valid until the next step
};

/// The sizes a function states; empty without the attribute.
Sizes sizes_of(const ir::PrimFunc& f);
/// The expected value of an integer expression; variables without a hint count kUnknownSize.
std::int64_t estimate(const ir::Expr& e, const Sizes& sizes, const ir::VarMap* bound = nullptr);
Nest read_nest(const Schedule& sch, BlockRef block, const Sizes& sizes);

/// Whether the step was legal; a refused one leaves the program as it was. `refusal`: its first
/// line.
bool attempt(const std::function<void()>& step, std::string* refusal = nullptr);
/// A literal factor of a split.
inline schedule::Factor factor(std::int64_t n) { return schedule::IntRef(n); }
/// Loops around a block that feed iterators of one kind, outermost first.
std::vector<LoopRef> loops_of(Schedule& sch, BlockRef block, ir::IterKind kind);

}  // namespace weft::rules
