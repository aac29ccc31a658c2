// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that attach facts: annotate, unannotate, storage_align, set_scope.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct Annotate {
  static constexpr std::string_view kName = "annotate";
  static constexpr std::string_view kDoc =
      "Attaches a value to a block or loop under a key; lowering reads some keys.";
  using Result = Done;
  BlockOrLoop block_or_loop;
  std::string ann_key;
  Json ann_val;
  static void fields(auto&& f) {
    f("block_or_loop", &Annotate::block_or_loop, "what to annotate");
    f("ann_key", &Annotate::ann_key, "the key");
    f("ann_val", &Annotate::ann_val, "a number, string, list or dictionary");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct Unannotate {
  static constexpr std::string_view kName = "unannotate";
  static constexpr std::string_view kDoc = "Removes an annotation.";
  using Result = Done;
  BlockOrLoop block_or_loop;
  std::string ann_key;
  static void fields(auto&& f) {
    f("block_or_loop", &Unannotate::block_or_loop, "what carries the annotation");
    f("ann_key", &Unannotate::ann_key, "the key");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct StorageAlign {
  static constexpr std::string_view kName = "storage_align";
  static constexpr std::string_view kDoc =
      "Pads an intermediate buffer so that the stride of an axis is offset modulo factor.";
  using Result = Done;
  BlockRef block;
  std::int64_t buffer_index = 0;
  std::int64_t axis = 0;
  std::int64_t factor = 1;
  std::int64_t offset = 0;
  static void fields(auto&& f) {
    f("block", &StorageAlign::block, "the block that writes the buffer");
    f("buffer_index", &StorageAlign::buffer_index, "which of the block's writes");
    f("axis", &StorageAlign::axis, "the axis whose stride is padded; negative counts from the end");
    f("factor", &StorageAlign::factor, "the modulus, in elements");
    f("offset", &StorageAlign::offset, "the remainder, in elements");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct SetScope {
  static constexpr std::string_view kName = "set_scope";
  static constexpr std::string_view kDoc = "Puts an intermediate buffer into another memory scope.";
  using Result = Done;
  BlockRef block;
  BufferChoice buffer_index;
  std::string storage_scope;
  static void fields(auto&& f) {
    f("block", &SetScope::block, "the block that writes the buffer");
    f("buffer_index", &SetScope::buffer_index, "which of the block's writes, or the buffer's name");
    f("storage_scope", &SetScope::storage_scope, "the memory scope");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

/// The buffer a BufferChoice means for a block; refuses with what there is.
Verdict choose_buffer(const State& s, std::string_view step, const ir::BlockRealizeNode* realize,
                      const BufferChoice& choice, ir::Buffer& out);
/// The block on the path that allocates the buffer; refuses buffers that are parameters.
Verdict find_allocation(const State& s, std::string_view step, const Path& path,
                        const ir::Buffer& buffer, std::size_t& depth);

}  // namespace weft::schedule
