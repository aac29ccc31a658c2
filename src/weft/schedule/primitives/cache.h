// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that put a copy of a buffer into another memory: cache_read, cache_write.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct CacheRead {
  static constexpr std::string_view kName = "cache_read";
  static constexpr std::string_view kDoc =
      "Copies what a block reads into a memory scope first; the block (or the listed consumers) "
      "then reads the copy. "
      "Returns the copying block.";
  using Result = BlockRef;
  BlockRef block;
  std::int64_t read_buffer_index = 0;
  std::string storage_scope;
  std::vector<BlockRef> consumer_blocks;
  static void fields(auto&& f) {
    f("block", &CacheRead::block, "a consumer of the buffer");
    f("read_buffer_index", &CacheRead::read_buffer_index, "which of the block's reads");
    f("storage_scope", &CacheRead::storage_scope, "memory scope of the copy");
    f("consumer_blocks", &CacheRead::consumer_blocks, "blocks that shall read the copy; empty: all",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct CacheWrite {
  static constexpr std::string_view kName = "cache_write";
  static constexpr std::string_view kDoc =
      "Lets a block write into a memory scope first and copies the result out afterwards. Returns "
      "the copying block.";
  using Result = BlockRef;
  BlockRef block;
  std::int64_t write_buffer_index = 0;
  std::string storage_scope;
  std::vector<BlockRef> consumer_blocks;
  static void fields(auto&& f) {
    f("block", &CacheWrite::block, "the producer of the buffer");
    f("write_buffer_index", &CacheWrite::write_buffer_index, "which of the block's writes");
    f("storage_scope", &CacheWrite::storage_scope, "memory scope of the copy");
    f("consumer_blocks", &CacheWrite::consumer_blocks,
      "blocks that shall read the copy instead of the buffer", Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
