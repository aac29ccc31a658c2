// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds the recursion of the analyser, so that no input overflows the stack.

#include "weft/base/text.h"
#include "weft/targets/wse/csl/analyzer.h"

namespace weft::wse::csl {

inline constexpr int kMaxAnalysisDepth = 1800;

struct Analyzer::DepthGuard {
  DepthGuard(Analyzer& a, Pos pos) : analyzer(a) {
    a.spend(pos);
    if (++a.depth_ > kMaxAnalysisDepth) {
      --a.depth_;
      a.fail(pos, "wse.csl.depth",
             "evaluation nests too deeply; is there a recursion without end?");
    }
  }
  ~DepthGuard() { --analyzer.depth_; }
  Analyzer& analyzer;
};

}  // namespace weft::wse::csl
