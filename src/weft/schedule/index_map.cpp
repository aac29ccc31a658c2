// SPDX-License-Identifier: Apache-2.0
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/schedule/refs.h"

namespace weft::schedule {

using namespace ir;

std::string IndexMap::text() const {
  std::vector<std::string> left, right;
  for (const Var& v : inputs) left.push_back(v->name);
  for (const Expr& e : outputs) right.push_back(print(e));
  return cat("lambda ", join(left), ": (", join(right), right.size() == 1 ? ",)" : ")");
}

IndexMap IndexMap::parse(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Error(ErrorKind::parse, "schedule.index_map.syntax",
                 cat("cannot read the index map \"", text, "\": ", why))
        .note("form: lambda i, j: (i // 16, j, i % 16)");
  };
  std::string_view rest = trim(text);
  if (!rest.starts_with("lambda")) throw bad("it does not begin with \"lambda\"");
  rest.remove_prefix(6);
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) throw bad("it has no colon");
  IndexMap map;
  for (const std::string& name : split(rest.substr(0, colon), ','))
    map.inputs.push_back(make_var(std::string(trim(name))));
  std::string_view body = trim(rest.substr(colon + 1));
  if ((body.starts_with('(') && body.ends_with(')')) ||
      (body.starts_with('[') && body.ends_with(']'))) {
    body = body.substr(1, body.size() - 2);
  }
  // Outputs: split at commas outside parentheses; each is an expression of the text form.
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : body) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  const Capture capture = [&](std::string_view name) -> std::optional<Captured> {
    for (const Var& v : map.inputs) {
      if (v->name == name) return Captured(Expr(v));
    }
    return std::nullopt;
  };
  for (const std::string& part : parts) {
    const std::string_view source = trim(part);
    if (source.empty()) continue;
    const PrimFunc f =
        parse_func(cat("@T.prim_func\ndef index_map():\n    T.evaluate(", source, ")\n"),
                   "<index map>", capture);
    Expr found;
    for_each_stmt(f->body, [&](const Stmt& s) {
      if (const auto* e = as<EvaluateNode>(s)) found = e->value;
    });
    if (!found) throw bad("an output is not an expression");
    map.outputs.push_back(found);
  }
  if (map.outputs.empty()) throw bad("it has no outputs");
  return map;
}

}  // namespace weft::schedule
