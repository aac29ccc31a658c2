// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/placement.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/text.h"

namespace weft::wse {

using namespace ir;

namespace {

Partition axis_of(const ForNode* loop) {
  if (loop->for_kind != ForKind::bound) return Partition::none;
  return loop->axis == "pe.x" ? Partition::x : Partition::y;
}

BoundPart part_of(const stages::Leaf& leaf, std::size_t i, const stages::Binding& binding,
                  std::int32_t width) {
  const std::vector<stages::Digit>& digits = binding.digits;
  const auto bound = static_cast<std::size_t>(
      std::count_if(digits.begin(), digits.end(),
                    [](const stages::Digit& d) { return axis_of(d.loop) != Partition::none; }));
  if (bound == 0) return {};
  auto wrong = [&](const char* why) {
    throw Error(ErrorKind::lower, "wse.lower.axis",
                cat("iterator ", leaf.block->iters[i].var->name, " of block ", leaf.block->name,
                    " is bound to ", print(leaf.iter_values[i]), ", where ", why))
        .help("legal are i, i * n + j with loop i on pe.x or pe.y, and (y * width + x) * n + j");
  };
  if (binding.start != 0) wrong("the first PE does not have element 0");
  for (std::size_t d = 0; d < bound; ++d) {
    if (axis_of(digits[d].loop) == Partition::none || digits[d].reversed)
      wrong("a loop over PEs is not the outermost part, in rising order");
  }
  const Partition outer = axis_of(digits[0].loop);
  if (bound == 1) return {outer, digits[0].scale};
  if (outer != Partition::y || digits[1].extent != width ||
      digits[0].scale != digits[1].scale * width)
    wrong("loops on both axes do not go over all PEs row by row");
  return {Partition::xy, digits[1].scale};
}

}  // namespace

std::vector<BoundPart> parts_of(const stages::Leaf& leaf, const stages::Visits& visits,
                                std::int32_t width) {
  std::vector<BoundPart> out;
  if (std::none_of(leaf.loops.begin(), leaf.loops.end(),
                   [](const ForNode* l) { return axis_of(l) != Partition::none; }))
    return out;
  for (std::size_t i = 0; i < visits.bindings.size(); ++i)
    out.push_back(part_of(leaf, i, visits.bindings[i], width));
  return out;
}

}  // namespace weft::wse
