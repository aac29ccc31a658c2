// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text form (T-script): printed and parsed by one grammar. parse(print(p)) is structurally
// equal to p.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "weft/ir/node.h"

namespace weft::ir {

struct PrintOptions {
  const void* culprit = nullptr;  // a node to underline (Stmt, Block or Expr)
  bool header = true;             // the import line
  int context = 0;                // > 0: only this many lines around the culprit
};

std::string print(const IRModule& m, const PrintOptions& options = {});
std::string print(const PrimFunc& f, const PrintOptions& options = {});
std::string print(const Stmt& s, const PrintOptions& options = {});
std::string print(const Expr& e);
std::string print(const BufferRegion& region);

/// A value a decorated Python function captures from around it.
using Captured = std::variant<std::int64_t, double, bool, std::string, Expr, PrimFunc>;
/// Looks a free name up; nullopt when unknown. Dotted names are looked up whole ("cfg.block").
using Capture = std::function<std::optional<Captured>(std::string_view name)>;

/// Text with @T.prim_func functions and/or one @T.ir_module class. Throws Error(parse, "parse.*")
/// with file, line, column and caret. `first_line` is the line number of the text's first line in
/// its file.
IRModule parse_module(std::string_view text, std::string_view file = "<text>",
                      const Capture& capture = {}, int first_line = 1);
/// Exactly one function.
PrimFunc parse_func(std::string_view text, std::string_view file = "<text>",
                    const Capture& capture = {}, int first_line = 1);

}  // namespace weft::ir
