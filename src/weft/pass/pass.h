// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pass is a named function PrimFunc -> PrimFunc; a pipeline is a list of them. In checking builds
// the verifier runs after each.

#include <functional>
#include <string>
#include <vector>

#include "weft/ir/node.h"

namespace weft::pass {

struct Pass {
  std::string name;  // = the function's name
  std::function<ir::PrimFunc(const ir::PrimFunc&)> run;
};
using Pipeline = std::vector<Pass>;

/// What happens around each pass: dumps, timing spans, verification.
struct PassObserver {
  std::function<void(const Pass&, const ir::PrimFunc& after, double seconds)> after;
  bool verify = true;
};

/// Adds "while running pass X on function F" to errors on the way.
ir::PrimFunc run_pipeline(const Pipeline& pipeline, ir::PrimFunc f,
                          const PassObserver& observer = {});

}  // namespace weft::pass
