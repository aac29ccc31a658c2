// SPDX-License-Identifier: Apache-2.0
#pragma once
// What passes may know of a machine: rows of axes and memories, copied from the target's table
// (target/pipeline.h), so that no pass names a target.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::pass {

struct AxisRow {
  std::string name;
  bool is_virtual = false;  // expanded into the program, never launched
  std::int64_t limit = 0;   // largest extent; 0: none
  std::string group;        // axes of a group share a product limit and a barrier
  std::int64_t group_limit = 0;
  bool barrier = false;  // its points can synchronise
  bool reduces = false;  // a reduction iterator may be bound
  /// Its points join a value in one step: instruction("reduce.<op>", value), every point gets the
  /// result. False: a tree through shared memory.
  bool joins = false;
};

struct MemoryRow {
  std::string scope;
  std::int64_t bytes = 0;               // 0: unknown
  std::vector<std::string> private_to;  // axes whose points each have their own instance
  bool is_private_to(std::string_view axis) const {
    return std::find(private_to.begin(), private_to.end(), axis) != private_to.end();
  }
};

struct Machine {
  std::string name;           // for messages
  std::vector<AxisRow> axes;  // in launch order
  std::vector<MemoryRow> memories;
  std::string queue;  // on which asynchronous copies run; "": there is none
  /// Buffers inside loops may have extents that depend on the loops around them.
  bool varying_shapes = false;
  const AxisRow* axis(std::string_view axis_name) const {
    for (const AxisRow& row : axes) {
      if (row.name == axis_name) return &row;
    }
    return nullptr;
  }
  const MemoryRow* memory(std::string_view scope) const {
    for (const MemoryRow& row : memories) {
      if (row.scope == scope) return &row;
    }
    return nullptr;
  }
};

}  // namespace weft::pass
