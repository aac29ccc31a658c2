// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds the recursion of the analyser, so that no input overflows the stack.

#include "weft/base/text.h"
#include "weft/targets/wse/csl/analyzer.h"

namespace weft::wse::csl {

inline constexpr int kMaxAnalysisDepth = 1800;
/// Stack of one compilation, for builds whose frames are large (sanitizers): threads have 8 MB.
inline constexpr std::ptrdiff_t kMaxAnalysisStack = 5 << 20;

struct Analyzer::DepthGuard {
  DepthGuard(Analyzer& a, Pos pos) : analyzer(a) {
    a.spend(pos);
    auto* here = static_cast<const char*>(__builtin_frame_address(0));
    if (!a.stack_base_) a.stack_base_ = here;
    if (++a.depth_ > kMaxAnalysisDepth || a.stack_base_ - here > kMaxAnalysisStack) {
      --a.depth_;
      a.fail(pos, "wse.csl.depth",
             "evaluation nests too deeply; is there a recursion without end?");
    }
  }
  ~DepthGuard() { --analyzer.depth_; }
  Analyzer& analyzer;
};

}  // namespace weft::wse::csl
