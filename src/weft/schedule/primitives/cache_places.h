// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies with more to them than cache_read and cache_write: cache_inplace, cache_index, read_at,
// write_at.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct CacheInplace {
  static constexpr std::string_view kName = "cache_inplace";
  static constexpr std::string_view kDoc =
      "For a buffer that a block both reads and writes: copies it into a memory scope before the "
      "block's nest, lets the block work there, and copies what was written back. Returns the two "
      "copying blocks. Example: `load, back = sch.cache_inplace(b, 0, \"local\")`.";
  using Result = std::vector<BlockRef>;
  BlockRef block;
  std::int64_t read_buffer_index = 0;
  std::string storage_scope;
  static void fields(auto&& f) {
    f("block", &CacheInplace::block, "the block that updates the buffer");
    f("read_buffer_index", &CacheInplace::read_buffer_index,
      "which of the block's reads; it is among its writes, too");
    f("storage_scope", &CacheInplace::storage_scope, "memory scope of the copy");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct CacheIndex {
  static constexpr std::string_view kName = "cache_index";
  static constexpr std::string_view kDoc =
      "Computes index expressions that a block uses several times once, in blocks before it, into "
      "small integer buffers that the block then indexes by. Returns these blocks. Example: "
      "`sch.cache_index(upsample, \"global\", 1)`.";
  using Result = std::vector<BlockRef>;
  BlockRef block;
  std::string storage_scope;
  std::int64_t cse_thresh = 0;
  static void fields(auto&& f) {
    f("block", &CacheIndex::block, "the block whose indices are computed ahead");
    f("storage_scope", &CacheIndex::storage_scope, "memory scope of the buffers");
    f("cse_thresh", &CacheIndex::cse_thresh,
      "least number of uses of an expression; 0: every index that is more than an iterator",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct ReadAt {
  static constexpr std::string_view kName = "read_at";
  static constexpr std::string_view kDoc =
      "Copies the part of a buffer that one iteration of a loop reads, inside the loop: cache_read "
      "for one block, compute_at, and the annotation \"auto_copy\" on the copy. Returns the "
      "copying "
      "block. Example: `sch.read_at(k_outer, c, 0, \"shared\")`.";
  using Result = BlockRef;
  LoopRef loop;
  BlockRef block;
  std::int64_t read_buffer_index = 0;
  std::string storage_scope;
  static void fields(auto&& f) {
    f("loop", &ReadAt::loop, "the loop in which the copy stands");
    f("block", &ReadAt::block, "the reader");
    f("read_buffer_index", &ReadAt::read_buffer_index, "which of the block's reads");
    f("storage_scope", &ReadAt::storage_scope, "memory scope of the copy");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct WriteAt {
  static constexpr std::string_view kName = "write_at";
  static constexpr std::string_view kDoc =
      "Lets a block write into a memory scope and copies out, inside a loop, what one iteration of "
      "the loop finishes: cache_write, reverse_compute_at, and the annotation \"auto_copy\" on the "
      "copy. Returns the copying block. Example: `sch.write_at(tile, c, 0, \"local\")`.";
  using Result = BlockRef;
  LoopRef loop;
  BlockRef block;
  std::int64_t write_buffer_index = 0;
  std::string storage_scope;
  static void fields(auto&& f) {
    f("loop", &WriteAt::loop, "the loop in which the copy stands");
    f("block", &WriteAt::block, "the writer");
    f("write_buffer_index", &WriteAt::write_buffer_index, "which of the block's writes");
    f("storage_scope", &WriteAt::storage_scope, "memory scope of the cache");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
