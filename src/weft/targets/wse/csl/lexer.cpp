// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/csl/lexer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/base/text.h"

namespace weft::wse::csl {

std::string to_text(Int128 value) {
  if (value == 0) return "0";
  bool negative = value < 0;
  UInt128 magnitude =
      negative ? UInt128(0) - static_cast<UInt128>(value) : static_cast<UInt128>(value);
  std::string out;
  while (magnitude != 0) {
    out += static_cast<char>('0' + static_cast<int>(magnitude % 10));
    magnitude /= 10;
  }
  if (negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

namespace {

struct Keyword {
  std::string_view text;
  Tok kind;
};
constexpr Keyword kKeywords[] = {
    {"const", Tok::k_const},
    {"var", Tok::k_var},
    {"param", Tok::k_param},
    {"fn", Tok::k_fn},
    {"task", Tok::k_task},
    {"layout", Tok::k_layout},
    {"comptime", Tok::k_comptime},
    {"export", Tok::k_export},
    {"extern", Tok::k_extern},
    {"inline", Tok::k_inline},
    {"if", Tok::k_if},
    {"else", Tok::k_else},
    {"for", Tok::k_for},
    {"while", Tok::k_while},
    {"switch", Tok::k_switch},
    {"return", Tok::k_return},
    {"break", Tok::k_break},
    {"continue", Tok::k_continue},
    {"and", Tok::k_and},
    {"or", Tok::k_or},
    {"true", Tok::k_true},
    {"false", Tok::k_false},
    {"enum", Tok::k_enum},
    {"struct", Tok::k_struct},
    {"align", Tok::k_align},
    {"linksection", Tok::k_linksection},
    {"linkname", Tok::k_linkname},
};

struct Punctuation {
  std::string_view text;
  Tok kind;
};
// Longest first.
constexpr Punctuation kPunctuation[] = {
    {"<<=", Tok::shl_assign},
    {">>=", Tok::shr_assign},
    {"->", Tok::arrow},
    {"=>", Tok::fat_arrow},
    {".*", Tok::dot_star},
    {"+=", Tok::plus_assign},
    {"-=", Tok::minus_assign},
    {"*=", Tok::star_assign},
    {"/=", Tok::slash_assign},
    {"%=", Tok::percent_assign},
    {"&=", Tok::amp_assign},
    {"|=", Tok::pipe_assign},
    {"^=", Tok::caret_assign},
    {"==", Tok::eq},
    {"!=", Tok::ne},
    {"<=", Tok::le},
    {">=", Tok::ge},
    {"<<", Tok::shl},
    {">>", Tok::shr},
    {"(", Tok::l_paren},
    {")", Tok::r_paren},
    {"{", Tok::l_brace},
    {"}", Tok::r_brace},
    {"[", Tok::l_bracket},
    {"]", Tok::r_bracket},
    {",", Tok::comma},
    {";", Tok::semicolon},
    {":", Tok::colon},
    {".", Tok::dot},
    {"|", Tok::pipe},
    {"&", Tok::amp},
    {"^", Tok::caret},
    {"~", Tok::tilde},
    {"!", Tok::bang},
    {"+", Tok::plus},
    {"-", Tok::minus},
    {"*", Tok::star},
    {"/", Tok::slash},
    {"%", Tok::percent},
    {"=", Tok::assign},
    {"<", Tok::lt},
    {">", Tok::gt},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Lexer {
 public:
  Lexer(const Source& source, Names& names, Diagnostics& diagnostics)
      : text_(source.text), file_(source.id), names_(names), diagnostics_(diagnostics) {}

  std::vector<Token> run() {
    std::vector<Token> out;
    out.reserve(text_.size() / 4 + 8);
    for (;;) {
      skip_space();
      Token token;
      token.offset = static_cast<std::uint32_t>(at_);
      if (at_ >= text_.size()) {
        out.push_back(token);
        return out;
      }
      if (next(token)) {
        token.length = static_cast<std::uint32_t>(at_) - token.offset;
        out.push_back(token);
      }
    }
  }

 private:
  char peek(std::size_t k = 0) const { return at_ + k < text_.size() ? text_[at_ + k] : '\0'; }

  void error(std::size_t offset, std::string_view code, std::string message) {
    diagnostics_.add(Diagnostic::Level::error,
                     {static_cast<std::uint32_t>(offset), static_cast<std::uint16_t>(file_), 1},
                     code, std::move(message));
  }

  void skip_space() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  bool next(Token& token) {
    char c = peek();
    std::size_t begin = at_;
    if (is_name_start(c)) {
      while (is_name(peek())) ++at_;
      std::string_view word = text_.substr(begin, at_ - begin);
      for (const Keyword& k : kKeywords) {
        if (k.text == word) {
          token.kind = k.kind;
          return true;
        }
      }
      token.kind = Tok::identifier;
      token.name = names_.intern(word);
      return true;
    }
    if (c == '@' && is_name_start(peek(1))) {
      ++at_;
      while (is_name(peek())) ++at_;
      token.kind = Tok::builtin;
      token.name = names_.intern(text_.substr(begin + 1, at_ - begin - 1));
      return true;
    }
    if (is_digit(c)) return number(token);
    if (c == '"') return string(token);
    if (c == '\'') return character(token);
    for (const Punctuation& p : kPunctuation) {
      if (text_.substr(at_, p.text.size()) == p.text) {
        at_ += p.text.size();
        token.kind = p.kind;
        return true;
      }
    }
    bool printable = c > 32 && c < 127;
    error(at_, "wse.csl.lex.character",
          c == '?'    ? std::string("'?' begins no token; a choice is written: if (c) a else b")
          : printable ? cat("'", c, "' begins no token")
                      : cat("byte ", hex(static_cast<unsigned char>(c), 2), " begins no token"));
    ++at_;
    while (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) >= 0x80) ++at_;
    return false;
  }

  bool number(Token& token) {
    std::size_t begin = at_;
    int base = 10;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) base = 16;
    if (peek() == '0' && (peek(1) == 'b' || peek(1) == 'B')) base = 2;
    if (peek() == '0' && peek(1) == 'o') base = 8;
    if (base != 10) at_ += 2;
    std::size_t digits = at_;
    UInt128 value = 0;
    bool overflow = false;
    for (; hex_value(peek()) >= 0 || peek() == '_'; ++at_) {
      if (peek() == '_') continue;
      int d = hex_value(peek());
      if (d >= base) break;
      if (value >
          ((UInt128(1) << 127) - 1 - static_cast<unsigned>(d)) / static_cast<unsigned>(base)) {
        overflow = true;
      } else {
        value = value * static_cast<unsigned>(base) + static_cast<unsigned>(d);
      }
    }
    bool is_float = false;
    if (base == 10) {
      if (peek() == '.' && is_digit(peek(1))) {
        is_float = true;
        ++at_;
        while (is_digit(peek())) ++at_;
      }
      if ((peek() == 'e' || peek() == 'E') &&
          (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))))) {
        is_float = true;
        at_ += 2;
        while (is_digit(peek())) ++at_;
      }
    } else if (at_ == digits) {
      error(begin, "wse.csl.lex.number",
            cat("\"", text_.substr(begin, at_ - begin), "\" has no digits"));
    }
    if (is_name(peek())) {
      std::size_t junk = at_;
      while (is_name(peek())) ++at_;
      error(begin, "wse.csl.lex.number",
            cat("\"", text_.substr(begin, std::min<std::size_t>(at_ - begin, 60)),
                "\" is not a number: \"", text_.substr(junk, std::min<std::size_t>(at_ - junk, 30)),
                "\" follows the digits"));
    }
    if (is_float) {
      token.kind = Tok::floating;
      std::from_chars(text_.data() + begin, text_.data() + at_, token.floating);
      return true;
    }
    if (overflow) {
      error(begin, "wse.csl.lex.number", "an integer literal above 2^127 - 1 is not supported");
    }
    token.kind = Tok::integer;
    token.integer = static_cast<Int128>(value);
    return true;
  }

  /// One character of a literal after `at_`; false at the end of the line.
  bool unescape(std::string& out) {
    char c = peek();
    if (at_ >= text_.size() || c == '\n') return false;
    ++at_;
    if (c != '\\') {
      out += c;
      return true;
    }
    char e = peek();
    if (at_ >= text_.size() || e == '\n') return false;
    ++at_;
    switch (e) {
      case 'n': out += '\n'; return true;
      case 't': out += '\t'; return true;
      case 'r': out += '\r'; return true;
      case '0': out += '\0'; return true;
      case '\\':
      case '\'':
      case '"': out += e; return true;
      case 'x': {
        int hi = hex_value(peek()), lo = hi >= 0 ? hex_value(peek(1)) : -1;
        if (lo >= 0) {
          out += static_cast<char>(hi * 16 + lo);
          at_ += 2;
          return true;
        }
        error(at_ - 2, "wse.csl.lex.escape", "\\x needs two hexadecimal digits");
        return true;
      }
      default:
        error(at_ - 2, "wse.csl.lex.escape",
              "unknown escape sequence; known are \\n \\t \\r \\0 \\\\ \\' \\\" \\xNN");
        return true;
    }
  }

  bool string(Token& token) {
    std::size_t begin = at_++;
    std::string out;
    for (;;) {
      if (peek() == '"') {
        ++at_;
        break;
      }
      if (!unescape(out)) {
        error(begin, "wse.csl.lex.string", "the string is not closed on its line");
        break;
      }
    }
    token.kind = Tok::string;
    token.name = names_.intern(out);
    return true;
  }

  bool character(Token& token) {
    std::size_t begin = at_++;
    std::string out;
    if (peek() != '\'') unescape(out);
    if (out.size() != 1 || peek() != '\'') {
      error(begin, "wse.csl.lex.character_literal",
            "a character literal holds exactly one byte: 'a', '\\n', '\\x0a'");
      while (at_ < text_.size() && peek() != '\'' && peek() != '\n') ++at_;
    }
    if (peek() == '\'') ++at_;
    token.kind = Tok::integer;
    token.integer = out.empty() ? 0 : static_cast<unsigned char>(out[0]);
    return true;
  }

  std::string_view text_;
  int file_;
  Names& names_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view describe(Tok tok) {
  for (const Keyword& k : kKeywords) {
    if (k.kind == tok) return k.text;
  }
  for (const Punctuation& p : kPunctuation) {
    if (p.kind == tok) return p.text;
  }
  switch (tok) {
    case Tok::end: return "the end of the file";
    case Tok::identifier: return "a name";
    case Tok::builtin: return "a built-in";
    case Tok::integer: return "an integer";
    case Tok::floating: return "a number";
    case Tok::string: return "a string";
    default: return "a character";
  }
}

std::vector<Token> lex(const Source& source, Names& names, Diagnostics& diagnostics) {
  return Lexer(source, names, diagnostics).run();
}

}  // namespace weft::wse::csl
