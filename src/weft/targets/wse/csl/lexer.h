// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text to tokens. Every byte sequence lexes: what is no token is reported and skipped.

#include <vector>

#include "weft/targets/wse/csl/source.h"
#include "weft/targets/wse/csl/value_int.h"

namespace weft::wse::csl {

enum class Tok : std::uint8_t {
  end,
  identifier,
  builtin,
  integer,
  floating,
  string,
  character,
  // keywords
  k_const,
  k_var,
  k_param,
  k_fn,
  k_task,
  k_layout,
  k_comptime,
  k_export,
  k_extern,
  k_inline,
  k_if,
  k_else,
  k_for,
  k_while,
  k_switch,
  k_return,
  k_break,
  k_continue,
  k_and,
  k_or,
  k_true,
  k_false,
  k_enum,
  k_struct,
  k_align,
  k_linksection,
  k_linkname,
  // punctuation
  l_paren,
  r_paren,
  l_brace,
  r_brace,
  l_bracket,
  r_bracket,
  comma,
  semicolon,
  colon,
  dot,
  dot_star,
  arrow,
  fat_arrow,
  pipe,
  amp,
  caret,
  tilde,
  bang,
  plus,
  minus,
  star,
  slash,
  percent,
  shl,
  shr,
  assign,
  plus_assign,
  minus_assign,
  star_assign,
  slash_assign,
  percent_assign,
  shl_assign,
  shr_assign,
  amp_assign,
  pipe_assign,
  caret_assign,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
};

std::string_view describe(Tok tok);

struct Token {
  Tok kind = Tok::end;
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  Symbol name = 0;  // identifier or builtin (without @); string: index of the decoded text
  Int128 integer = 0;
  double floating = 0;
};

std::vector<Token> lex(const Source& source, Names& names, Diagnostics& diagnostics);

}  // namespace weft::wse::csl
