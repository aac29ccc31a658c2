// SPDX-License-Identifier: Apache-2.0
#pragma once
// What legality needs to know of machines: axes a loop may be bound to, memory scopes and which
// axes own an instance of each. A plain view that targets fill; the default describes C-like
// accelerators in general.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/ir/node.h"

namespace weft::schedule {

struct AxisRule {
  std::string name;        // "blockIdx.x"
  std::int64_t limit = 0;  // largest extent; 0: none
  std::string group;       // axes of one group share group_limit
  std::int64_t group_limit = 0;
  bool reduces = false;     // an R iterator may be bound
  bool is_virtual = false;  // several loops of different extents may carry it
};

struct ScopeRule {
  std::string scope;
  std::vector<std::string> private_to;  // axes whose points each have their own instance
};

/// An instruction for tensorize: the two functions take the same parameters.
struct InstructionRule {
  std::string name;
  ir::PrimFunc meaning, implementation;
};

struct ScheduleRules {
  std::vector<AxisRule> axes;
  std::vector<ScopeRule> scopes;
  std::vector<InstructionRule> instructions;
  /// A scheduled function with the loops over points that hand work to one another joined into a
  /// launch, as the interpreter runs them. Null: such functions cannot be run.
  std::function<ir::PrimFunc(const ir::PrimFunc&)> join_points;

  const AxisRule* axis(std::string_view name) const;
  const ScopeRule* scope(std::string_view name) const;
  const InstructionRule* instruction(std::string_view name) const;
  /// Whether each point of `axis` has its own instance of memory `scope`.
  bool is_private(std::string_view scope, std::string_view axis) const;
  /// Adds the rows of `other` that are not here yet.
  void merge(const ScheduleRules& other);
  std::vector<std::string> axis_names() const;
  std::vector<std::string> scope_names() const;
  std::vector<std::string> instruction_names() const;

  /// blockIdx/threadIdx/vthread and global/shared/local/warp.
  static std::shared_ptr<const ScheduleRules> generic();
};

}  // namespace weft::schedule
