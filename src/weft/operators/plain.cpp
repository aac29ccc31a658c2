// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/plain.h"

#include <algorithm>
#include <cctype>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

#define PLAIN(name) const PlainOperator& name();
#include "plain.inc"
#undef PLAIN

const PlainOperator& plain_operator(std::string_view asked) {
#define PLAIN(name) \
  if (asked == #name) return name();
#include "plain.inc"
#undef PLAIN
  WEFT_CHECK(false, "no operator \"", std::string(asked), "\" in src/weft/operators/plain");
}

std::vector<std::string> axes_of(std::string_view axes) {
  std::vector<std::string> out;
  for (const std::string& axis : split(axes, ' '))
    if (!axis.empty()) out.push_back(axis);
  return out;
}

namespace {

class PlainText {
 public:
  PlainText(const std::vector<PlainArray>& operands, const std::vector<PlainNest>& nests,
            const PlainSpec& spec)
      : operands_(operands), nests_(nests), spec_(spec) {}

  std::string write() {
    const PlainNest& last = nests_.back();
    for (const PlainArray& a : operands_) parameter(a);
    parameter(last.to);
    for (const PlainNest& n : nests_)
      if (&n != &last)
        body_ += cat("    ", n.to.name, " = T.alloc_buffer(", shape(n.to.axes), ", \"", spec_.sums,
                     "\")\n");
    for (const PlainNest& n : nests_) nest(n, &n == &last);
    std::string sizes;
    for (const std::string& v : symbols_) sizes += cat("    ", v, " = T.int64()\n");
    return cat("@T.prim_func\ndef main(", head_, "):\n", sizes, matches_, body_);
  }

 private:
  void parameter(const PlainArray& a) {
    head_ += cat(head_.empty() ? "" : ", ", "p_", a.name, ": T.handle");
    matches_ += cat("    ", a.name, " = T.match_buffer(p_", a.name, ", ", shape(a.axes), ", \"",
                    spec_.type, "\")\n");
    outside_.push_back(std::string(a.name));
  }
  /// All axes of an array, the batch in front.
  std::vector<std::string> all(std::string_view axes) const {
    std::vector<std::string> out = axes_of(axes);
    if (spec_.batch) out.insert(out.begin(), "batch");
    return out;
  }
  std::string extent(const std::string& axis) {
    for (const auto& [name, n] : spec_.extents)
      if (name == axis || (name.empty() && axis == "batch")) return cat(n);
    const std::string symbol = cat("n_", axis);
    if (std::find(symbols_.begin(), symbols_.end(), symbol) == symbols_.end())
      symbols_.push_back(symbol);
    return symbol;
  }
  std::string shape(std::string_view axes) {
    std::vector<std::string> out;
    for (const std::string& axis : all(axes)) out.push_back(extent(axis));
    return cat("(", weft::join(out), out.size() == 1 ? ",)" : ")");
  }
  std::string element(std::string_view array, std::string_view axes) const {
    std::vector<std::string> at = all(axes);
    for (std::string& axis : at) axis = "v_" + axis;
    return cat(array, "[", weft::join(at), "]");
  }

  /// Reads by names of axes become reads by the block's iterators, in the type of the arithmetic.
  std::string read(std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t end = i;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) ||
                                   text[end] == '_' || text[end] == '.'))
        ++end;
      if (end == i) {
        out += text[i++];
        continue;
      }
      const std::string_view word = text.substr(i, end - i);
      i = end;
      if (end == text.size() || text[end] != '[') {
        out += word;
        continue;
      }
      const std::size_t close = text.find(']', end);
      std::string axes(text.substr(end + 1, close - end - 1));
      std::replace(axes.begin(), axes.end(), ',', ' ');
      const std::string e = element(word, axes);
      const bool outside = std::find(outside_.begin(), outside_.end(), word) != outside_.end();
      out += outside && spec_.type != spec_.sums ? cat("T.Cast(\"", spec_.sums, "\", ", e, ")") : e;
      i = close + 1;
    }
    return fill(out, {{"C", spec_.sums}});
  }

  void nest(const PlainNest& n, bool last) {
    const std::vector<std::string> kept = all(n.to.axes), summed = axes_of(n.sums);
    std::vector<std::string> iters, loops, extents;
    for (const auto* axes : {&kept, &summed})
      for (const std::string& axis : *axes)
        iters.push_back("v_" + axis), loops.push_back("i_" + axis), extents.push_back(extent(axis));
    const bool narrow = last && spec_.type != spec_.sums;
    const std::string to = element(n.to.name, n.to.axes), value = read(n.value);
    body_ += cat("    for ", weft::join(loops), " in T.grid(", weft::join(extents),
                 "):\n        with T.block(\"nest_", n.to.name, "\"):\n");
    for (std::size_t i = 0; i < iters.size(); ++i)
      body_ += cat("            ", iters[i], " = T.axis.", i < kept.size() ? "spatial" : "reduce",
                   "(", extents[i], ", ", loops[i], ")\n");
    const std::string stored = narrow ? cat("T.Cast(\"", spec_.type, "\", ", value, ")") : value;
    if (summed.empty()) {
      body_ += cat("            ", to, " = ", stored, "\n");
      return;
    }
    body_ += cat("            with T.init():\n                ", to, " = T.", spec_.sums,
                 "(0)\n            ", to, " = ", to, " + ", value, "\n");
  }

  const std::vector<PlainArray>& operands_;
  const std::vector<PlainNest>& nests_;
  const PlainSpec& spec_;
  std::string head_, matches_, body_;
  std::vector<std::string> symbols_, outside_;
};

}  // namespace

ir::PrimFunc plain_program(const std::vector<PlainArray>& operands,
                           const std::vector<PlainNest>& nests, const PlainSpec& spec) {
  const PlainNest& last = nests.back();
  if (last.sums.empty() || spec.type == spec.sums)
    return ir::parse_func(PlainText(operands, nests, spec).write());
  // Sums are kept in their own type and rounded once.
  std::vector<PlainNest> all = nests;
  const std::string axes = weft::join(axes_of(last.to.axes)), value = cat("total[", axes, "]");
  all.back().to.name = "total";
  all.push_back({last.to, "", value});
  return ir::parse_func(PlainText(operands, all, spec).write());
}

}  // namespace weft::operators
