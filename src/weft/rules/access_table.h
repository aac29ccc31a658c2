// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a scheduled function does, for models of time: every store with the loops around it, how
// often these run, and how far each of its accesses moves along each of them.

#include <functional>
#include <vector>

#include "weft/ir/node.h"
#include "weft/rules/facts.h"

namespace weft::rules {

struct LoopCount {
  const ir::ForNode* loop = nullptr;
  double extent = 1;
  bool constant = false;
};

struct Access {
  const ir::BufferNode* buffer = nullptr;
  bool store = false;
  /// For each loop: how far each index goes while it runs; elements from its first iteration to its
  /// second; whether it moves the access at all (a quotient stands still for a while).
  std::vector<std::vector<double>> span;
  std::vector<double> step;
  std::vector<bool> moves;
  ir::Expr at;  // the address in elements, of the loops' variables
  int bytes() const { return buffer->dtype.total_bytes(); }
};

/// A store, its loads, and the loops around it, outermost first.
struct Leaf {
  std::vector<LoopCount> loops;
  std::vector<Access> accesses;
  double operations = 0;  // arithmetic on floats, of one iteration

  /// Elements that an access meets while the chosen loops run.
  double distinct(const Access& access, const std::function<bool(std::size_t)>& chosen) const;
  double trips(const std::function<bool(std::size_t)>& chosen) const;
};

/// The leaves of each statement of the function's body.
std::vector<std::vector<Leaf>> read_accesses(const ir::PrimFunc& f, const Sizes& sizes);

/// The address of an access where some loops are at the given iterations, the others at 0.
double address(const Access& access, const Leaf& leaf, const Sizes& sizes,
               const std::vector<std::pair<const ir::VarNode*, std::int64_t>>& at);

}  // namespace weft::rules
