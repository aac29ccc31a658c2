// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that give a block a buffer laid out by its own iterators: reindex, reindex_cache_read,
// reindex_cache_write.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct Reindex {
  static constexpr std::string_view kName = "reindex";
  static constexpr std::string_view kDoc =
      "Copies what a block reads (writes) into a buffer with one axis for each iterator that the "
      "access uses, so that the block indexes by its iterators alone; the copy makes im2col and "
      "its "
      "kin explicit. Returns the copying block. Example: `im2col = sch.reindex(conv, (\"read\", "
      "0))`.";
  using Result = BlockRef;
  BlockRef block;
  BufferChoice buffer;
  static void fields(auto&& f) {
    f("block", &Reindex::block, "a block that accesses the buffer at one index");
    f("buffer", &Reindex::buffer, "which of the block's reads or writes, or the buffer's name");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct ReindexCacheRead {
  static constexpr std::string_view kName = "reindex_cache_read";
  static constexpr std::string_view kDoc =
      "As cache_read for one block, but the copy is laid out by a map of the block's iterators. "
      "Returns the copying block. Example: `sch.reindex_cache_read(c, 0, \"shared\", lambda i, j, "
      "k: (k, i))`.";
  using Result = BlockRef;
  BlockRef block;
  std::int64_t read_buffer_index = 0;
  std::string storage_scope;
  IndexMap index_map;
  static void fields(auto&& f) {
    f("block", &ReindexCacheRead::block, "the reader");
    f("read_buffer_index", &ReindexCacheRead::read_buffer_index, "which of the block's reads");
    f("storage_scope", &ReindexCacheRead::storage_scope, "memory scope of the copy");
    f("index_map", &ReindexCacheRead::index_map,
      "the block's iterators to the index in the copy; one to one on those that the access uses");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct ReindexCacheWrite {
  static constexpr std::string_view kName = "reindex_cache_write";
  static constexpr std::string_view kDoc =
      "As cache_write, but the cache is laid out by a map of the block's iterators. Returns the "
      "copying block. Example: `sch.reindex_cache_write(c, 0, \"local\", lambda i, j, k: (j, i))`.";
  using Result = BlockRef;
  BlockRef block;
  std::int64_t write_buffer_index = 0;
  std::string storage_scope;
  IndexMap index_map;
  static void fields(auto&& f) {
    f("block", &ReindexCacheWrite::block, "the writer");
    f("write_buffer_index", &ReindexCacheWrite::write_buffer_index, "which of the block's writes");
    f("storage_scope", &ReindexCacheWrite::storage_scope, "memory scope of the cache");
    f("index_map", &ReindexCacheWrite::index_map,
      "the block's iterators to the index in the cache; one to one on those that the access uses");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
