// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokens of the text form: Python's layout rules (indentation, brackets join lines, '#' comments).

#include <cstdint>
#include <string>
#include <vector>

#include "weft/ir/syntax.h"

namespace weft::ir::syntax {

enum class TokenKind : std::uint8_t {
  name,
  integer,
  real,
  string,
  op,
  newline,
  indent,
  dedent,
  end
};

struct Token {
  TokenKind kind;
  int line = 0, column = 0, width = 1;
  std::string text;  // string: its value
  std::int64_t integer = 0;
  bool huge = false;
  double real = 0;
};

std::vector<Token> tokenize(const Source& source);

}  // namespace weft::ir::syntax
