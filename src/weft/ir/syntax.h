// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Python-like surface of the text form: tokens and a plain syntax tree with positions. Knows
// nothing of tensors; parse.cpp gives the tree its meaning.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft::ir::syntax {

/// Where text comes from; all errors of the front end are made here.
struct Source {
  std::string_view text;
  std::string file;
  int first_line = 1;  // number of the text's first line in its file
  /// Throws Error(parse, "parse.<slug>") with file, line, column and a caret. `line` counts from 1
  /// in the text.
  [[noreturn]] void fail(int line, int column, int width, std::string_view slug,
                         std::string message, std::string help = "") const;
};

enum class Kind : std::uint8_t {
  name,
  integer,
  real,
  string,
  constant,  // constant: True False None
  attribute,
  call,
  subscript,
  slice,
  tuple,
  list,
  dict,
  unary,
  binary,
  compare,
  logic,
  ternary,
  lambda,
};

struct Node {
  Kind kind;
  int line = 0, column = 0, width = 1;
  int height = 1;    // of the tree below; limited, so that walks may recurse
  std::string text;  // name, operator, string value, attribute, constant
  std::int64_t integer = 0;
  bool huge = false;  // an integer above INT64_MAX, as a bit pattern
  double real = 0;
  std::vector<std::unique_ptr<Node>>
      kids;  // call: function, then arguments; slice: lo, hi (may be null); dict: key, value, ...
  std::vector<std::string> names;  // call: keyword or "" per argument; lambda: parameters
};
using NodePtr = std::unique_ptr<Node>;

enum class StatementKind : std::uint8_t {
  assign,
  for_,
  with,
  if_,
  while_,
  assert_,
  expression,
  pass,
  function,
  class_,
  import
};

struct Statement;
using StatementPtr = std::unique_ptr<Statement>;
struct Parameter {
  std::string name;
  NodePtr annotation;
  int line = 0, column = 0;
};

struct Statement {
  StatementKind kind;
  int line = 0, column = 0;
  std::string text;  // name of a function or class; "+=" of an assignment; alias of an import
  NodePtr target, annotation, value,
      extra;  // for: target, value; with: value, target; assert: value, extra
  std::vector<StatementPtr> body, otherwise;
  std::vector<NodePtr> decorators;
  std::vector<Parameter> parameters;
};

/// Parses a whole text. Nesting of brackets and suites is limited.
std::vector<StatementPtr> parse(const Source& source);

}  // namespace weft::ir::syntax
