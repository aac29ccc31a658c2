// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that only look: blocks by name, loops around a block, neighbours in the data flow.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct GetBlock {
  static constexpr std::string_view kName = "get_block";
  static constexpr std::string_view kDoc = "The block with this name.";
  using Result = BlockRef;
  std::string name;
  std::string func_name;
  static void fields(auto&& f) {
    f("name", &GetBlock::name, "name of the block");
    f("func_name", &GetBlock::func_name, "function to look in; empty: \"main\" or the only one",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct GetLoops {
  static constexpr std::string_view kName = "get_loops";
  static constexpr std::string_view kDoc =
      "The loops around a block within its scope, outermost first.";
  using Result = std::vector<LoopRef>;
  BlockRef block;
  static void fields(auto&& f) { f("block", &GetLoops::block, "the block"); }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct GetChildBlocks {
  static constexpr std::string_view kName = "get_child_blocks";
  static constexpr std::string_view kDoc =
      "The blocks directly inside a block or loop, in program order.";
  using Result = std::vector<BlockRef>;
  BlockOrLoop block_or_loop;
  static void fields(auto&& f) {
    f("block_or_loop", &GetChildBlocks::block_or_loop, "where to look");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct GetProducers {
  static constexpr std::string_view kName = "get_producers";
  static constexpr std::string_view kDoc =
      "The blocks of the same scope that write what the block reads.";
  using Result = std::vector<BlockRef>;
  BlockRef block;
  static void fields(auto&& f) { f("block", &GetProducers::block, "the consumer"); }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct GetConsumers {
  static constexpr std::string_view kName = "get_consumers";
  static constexpr std::string_view kDoc =
      "The blocks of the same scope that read what the block writes.";
  using Result = std::vector<BlockRef>;
  BlockRef block;
  static void fields(auto&& f) { f("block", &GetConsumers::block, "the producer"); }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct GetOutputBlocks {
  static constexpr std::string_view kName = "get_output_blocks";
  static constexpr std::string_view kDoc =
      "The blocks of a scope that write a buffer from outside of it.";
  using Result = std::vector<BlockRef>;
  BlockRef scope_block;
  static void fields(auto&& f) {
    f("scope_block", &GetOutputBlocks::scope_block, "the enclosing block");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
