// SPDX-License-Identifier: Apache-2.0
#pragma once
// transform_layout: another order of elements in memory.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct TransformLayout {
  static constexpr std::string_view kName = "transform_layout";
  static constexpr std::string_view kDoc =
      "Rewrites a buffer's shape and every access by an index map, such as lambda i, j: (i // 16, "
      "j, i % 16). The map must be "
      "one to one over the buffer's shape, or over that shape with its extents rounded up when "
      "pad_value says what the elements added hold: a block after the buffer's last writer stores "
      "it "
      "(of a parameter that nothing writes it is assumed). An index may be a digit ^ others (a "
      "swizzle): the digit's extent is a power of two that the others stay below. A parameter's "
      "shape changes in the "
      "function's "
      "signature, too.";
  using Result = Done;
  BlockRef block;
  BufferChoice buffer;
  IndexMap index_map;
  Json pad_value;
  bool assume_injective_transform = false;
  static void fields(auto&& f) {
    f("block", &TransformLayout::block, "a block that uses the buffer");
    f("buffer", &TransformLayout::buffer, "(\"read\" | \"write\", index), or the buffer's name");
    f("index_map", &TransformLayout::index_map, "from the old indices to the new ones");
    f("pad_value", &TransformLayout::pad_value,
      "what new elements outside of the old shape hold, a number; None: refuse maps that make any",
      Field::optional);
    f("assume_injective_transform", &TransformLayout::assume_injective_transform,
      "kept for compatibility; maps are proven", Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
