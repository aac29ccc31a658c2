// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/program_text.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/text.h"

namespace weft::operators {

std::string fill(std::string_view text, const Values& values) {
  std::string out;
  out.reserve(text.size() * 2);
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    WEFT_CHECK(close != std::string_view::npos, "a name in a program's text has no end");
    const std::string_view name = text.substr(open + 1, close - open - 1);
    auto found = std::find_if(values.begin(), values.end(),
                              [&](const auto& value) { return value.first == name; });
    WEFT_CHECK(found != values.end(), "a program's text names ", name, ", which has no value");
    out += found->second;
    text.remove_prefix(close + 1);
  }
  return out;
}

ProgramText& ProgramText::buffer(std::string_view name, std::string_view type) {
  parameters_ += cat(parameters_.empty() ? "" : ", ", "p_", name, ": T.handle");
  buffers_ += cat("    n_", name, " = T.int64()\n    ", name, " = T.match_buffer(p_", name, ", (n_",
                  name, ",), \"", type, "\", align=1)\n");
  return *this;
}

ProgramText& ProgramText::scalar(std::string_view name, std::string_view type) {
  parameters_ += cat(parameters_.empty() ? "" : ", ", name, ": T.", type);
  return *this;
}

ir::PrimFunc ProgramText::parse(std::string_view body, const Values& values) const {
  std::string flags;
  auto flag = [&](bool set, std::string_view name) {
    if (set) flags += cat(flags.empty() ? "" : ", ", "\"", name, "\": True");
  };
  flag(bound_, "weft.points_together");
  flag(true, "tir.noalias");
  flag(distinct_, "weft.distinct_elements");
  if (resident_ > 0) flags += cat(", \"weft.blocks_per_processor\": ", resident_);
  const std::string attributes = flags.empty() ? "" : cat("    T.func_attr({", flags, "})\n");
  return ir::parse_func(
      cat("@T.prim_func\ndef main(", parameters_, "):\n", attributes, buffers_, fill(body, values)),
      cat("<", name_, ">"));
}

BlockScan block_scan(std::string_view first, std::string_view second, int threads,
                     std::string_view join, int indent, std::string_view thread) {
  BlockScan out;
  std::string_view from = first, to = second;
  const std::string blanks(static_cast<std::size_t>(indent), ' ');
  for (int step = 1; step < threads; step *= 2) {
    out.text += cat(blanks, to, "[", thread, "] = T.if_then_else(", thread, " >= ", step, ", ",
                    fill(join, {{"a", cat(from, "[T.max(", thread, " - ", step, ", 0)]")},
                                {"b", cat(from, "[", thread, "]")}}),
                    ", ", from, "[", thread, "])\n");
    std::swap(from, to);
  }
  out.result = from;
  return out;
}

}  // namespace weft::operators
