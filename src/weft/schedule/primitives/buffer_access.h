// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps on what a block declares or how a buffer stores: annotate_buffer_access,
// unsafe_hide_buffer_access, unsafe_set_dtype.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct AnnotateBufferAccess {
  static constexpr std::string_view kName = "annotate_buffer_access";
  static constexpr std::string_view kDoc =
      "States the region of a buffer that a block reads or writes, in place of the one that was "
      "found: one index for each axis, or begin and end of each. It must hold every access; what a "
      "block writes cannot be stated larger than it is. Example: "
      "`sch.annotate_buffer_access(b, 0, \"read\", lambda i, j: (i - 1, i + 2, j, j + 1))`.";
  using Result = Done;
  BlockRef block;
  std::int64_t buffer_index = 0;
  std::string buf_type;
  IndexMap gen_new_ranges;
  static void fields(auto&& f) {
    f("block", &AnnotateBufferAccess::block, "the block");
    f("buffer_index", &AnnotateBufferAccess::buffer_index, "which of its reads or writes");
    f("buf_type", &AnnotateBufferAccess::buf_type, "\"read\" or \"write\"");
    f("gen_new_ranges", &AnnotateBufferAccess::gen_new_ranges,
      "the block's iterators to an index per axis, or to begin and end per axis");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct UnsafeHideBufferAccess {
  static constexpr std::string_view kName = "unsafe_hide_buffer_access";
  static constexpr std::string_view kDoc =
      "Takes regions out of what a block declares, so that later steps do not see the dependence; "
      "the caller vouches that none matters. Only accesses that the block's body makes through "
      "addresses may be hidden. Example: `sch.unsafe_hide_buffer_access(b, \"read\", [1])`.";
  using Result = Done;
  BlockRef block;
  std::string buf_type;
  std::vector<std::int64_t> buf_index_array;
  static void fields(auto&& f) {
    f("block", &UnsafeHideBufferAccess::block, "the block");
    f("buf_type", &UnsafeHideBufferAccess::buf_type, "\"read\" or \"write\"");
    f("buf_index_array", &UnsafeHideBufferAccess::buf_index_array,
      "which of its reads or writes to hide");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct UnsafeSetDtype {
  static constexpr std::string_view kName = "unsafe_set_dtype";
  static constexpr std::string_view kDoc =
      "Stores an intermediate buffer in another element type; values are cast where they are "
      "stored "
      "and loaded. Unsafe: a narrower type loses digits. Example: `sch.unsafe_set_dtype(b, 0, "
      "\"float16\")`.";
  using Result = Done;
  BlockRef block;
  std::int64_t buffer_index = 0;
  std::string dtype;
  static void fields(auto&& f) {
    f("block", &UnsafeSetDtype::block, "the block that writes the buffer");
    f("buffer_index", &UnsafeSetDtype::buffer_index, "which of the block's writes");
    f("dtype", &UnsafeSetDtype::dtype, "the new element type");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
