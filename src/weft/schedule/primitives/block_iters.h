// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that change a block's iterators: reorder_block_iter_var, transform_block_layout.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct ReorderBlockIterVar {
  static constexpr std::string_view kName = "reorder_block_iter_var";
  static constexpr std::string_view kDoc =
      "Puts a block's iterators, with their bindings, into another order; loops stay. An intrinsic "
      "that is to match the block may need it. Example: `sch.reorder_block_iter_var(c, [1, 0, "
      "2])`.";
  using Result = Done;
  BlockRef block;
  std::vector<std::int64_t> new_order;
  static void fields(auto&& f) {
    f("block", &ReorderBlockIterVar::block, "the block");
    f("new_order", &ReorderBlockIterVar::new_order,
      "for each new position the old position of its iterator");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct TransformBlockLayout {
  static constexpr std::string_view kName = "transform_block_layout";
  static constexpr std::string_view kDoc =
      "Gives a block new iterators, which are a one-to-one map of the old ones, and a new nest of "
      "loops over them; buffers stay. Example: `sch.transform_block_layout(c, lambda n, h, w, k: "
      "(n * 49 + h * 7 + w, k))`.";
  using Result = std::vector<LoopRef>;
  BlockRef block;
  IndexMap index_map;
  static void fields(auto&& f) {
    f("block", &TransformBlockLayout::block,
      "a block whose iterators are the loops of a nest of its own");
    f("index_map", &TransformBlockLayout::index_map, "old iterators to new ones");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

/// The loops of a nest that the block has to itself, one per iterator, each bound to it as it is:
/// nodes[top] of the path is the first. Absent otherwise, with the reason.
struct OwnNest {
  std::size_t top = npos;
  std::vector<const ir::ForNode*> loops;  // by iterator
};
std::optional<OwnNest> own_nest(const Path& path, std::string& why);

}  // namespace weft::schedule
