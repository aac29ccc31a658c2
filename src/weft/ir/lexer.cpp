// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/lexer.h"

#include <cctype>
#include <charconv>

#include "weft/base/error.h"

namespace weft::ir::syntax {

void Source::fail(int line, int column, int width, std::string_view slug, std::string message,
                  std::string help) const {
  int shown = line + first_line - 1;
  Error e(ErrorKind::parse, cat("parse.", slug), cat(file, ":", shown, ":", column, ": ", message));
  e.at(cat(file, ":", shown, ":", column), caret_line(text, line, column, width), shown, column);
  if (!help.empty()) e.help(std::move(help));
  throw e;
}

namespace {

bool letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80);
}
bool digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text) {}

  std::vector<Token> run() {
    while (pos_ < text_.size()) {
      if (at_line_start_ && depth_ == 0) {
        if (!indentation()) continue;
      }
      char c = text_[pos_];
      if (c == '\n') {
        if (depth_ == 0 && !at_line_start_) push(TokenKind::newline, "\n", 1);
        advance();
        if (depth_ == 0) at_line_start_ = true;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        advance();
      } else if (c == '#') {
        while (pos_ < text_.size() && text_[pos_] != '\n') advance();
      } else if (c == '\\' && pos_ + 1 < text_.size() &&
                 (text_[pos_ + 1] == '\n' || text_.substr(pos_ + 1, 2) == "\r\n")) {
        while (text_[pos_] != '\n') advance();
        advance();
      } else {
        token();
        at_line_start_ = false;
      }
    }
    if (depth_ > 0)
      source_.fail(open_line_[depth_ - 1], open_column_[depth_ - 1], 1, "bracket",
                   cat("\"", open_[depth_ - 1], "\" is never closed"));
    if (!at_line_start_) push(TokenKind::newline, "\n", 1);
    while (margins_.size() > 1) {
      margins_.pop_back();
      push(TokenKind::dedent, "", 1);
    }
    push(TokenKind::end, "", 1);
    return std::move(tokens_);
  }

 private:
  static constexpr std::size_t kMaxBrackets = 100;

  void advance() {
    if (text_[pos_] == '\n') ++line_, column_ = 1;
    else ++column_;
    ++pos_;
  }

  Token& push(TokenKind kind, std::string text, int width) {
    Token t;
    t.kind = kind;
    t.line = line_;
    t.column = column_;
    t.width = width;
    t.text = std::move(text);
    tokens_.push_back(std::move(t));
    return tokens_.back();
  }

  [[noreturn]] void fail(std::string_view slug, std::string message, int width = 1) {
    source_.fail(line_, column_, width, slug, std::move(message));
  }

  /// Measures a line's margin; false when the line is blank.
  bool indentation() {
    std::size_t begin = pos_;
    int margin = 0;
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\t' ||
                                   text_[pos_] == '\f' || text_[pos_] == '\r')) {
      margin = text_[pos_] == '\t' ? (margin / 8 + 1) * 8 : margin + 1;
      advance();
    }
    if (pos_ == text_.size()) return false;
    if (text_[pos_] == '\n') {
      advance();
      return false;
    }
    if (text_[pos_] == '#') {
      while (pos_ < text_.size() && text_[pos_] != '\n') advance();
      if (pos_ < text_.size()) advance();
      return false;
    }
    (void)begin;
    if (tokens_.empty())
      margins_ = {margin};  // a text cut out of something deeper keeps its own margin
    if (margin > margins_.back()) {
      margins_.push_back(margin);
      push(TokenKind::indent, "", 1);
    } else {
      while (margin < margins_.back()) {
        if (margins_.size() == 1)
          fail("indent", cat("this line stands ", margins_.back() - margin,
                             " columns left of the first one"));
        margins_.pop_back();
        push(TokenKind::dedent, "", 1);
      }
      if (margin != margins_.back())
        fail("indent",
             cat("this line's margin of ", margin, " columns matches none of the lines above"));
    }
    at_line_start_ = false;
    return true;
  }

  void token() {
    char c = text_[pos_];
    if (letter(c)) {
      std::size_t end = pos_;
      while (end < text_.size() && (letter(text_[end]) || digit(text_[end]))) ++end;
      if (end < text_.size() && (text_[end] == '"' || text_[end] == '\'')) {
        std::string_view prefix = text_.substr(pos_, end - pos_);
        if (prefix != "r" && prefix != "u")
          fail("string", cat("strings with the prefix \"", prefix, "\" are not supported"),
               static_cast<int>(end - pos_));
        bool raw = prefix == "r";
        advance();
        return string(raw);
      }
      take(TokenKind::name, end);
    } else if (digit(c) || (c == '.' && pos_ + 1 < text_.size() && digit(text_[pos_ + 1]))) {
      number();
    } else if (c == '"' || c == '\'') {
      string(false);
    } else {
      symbol();
    }
  }

  void take(TokenKind kind, std::size_t end) {
    push(kind, std::string(text_.substr(pos_, end - pos_)), static_cast<int>(end - pos_));
    while (pos_ < end) advance();
  }

  void number() {
    std::size_t end = pos_;
    int base = 10;
    if (text_[pos_] == '0' && pos_ + 1 < text_.size()) {
      char x = static_cast<char>(std::tolower(text_[pos_ + 1]));
      base = x == 'x' ? 16 : x == 'b' ? 2 : x == 'o' ? 8 : 10;
    }
    bool real = false;
    if (base != 10) end += 2;
    std::string digits;
    while (end < text_.size()) {
      char x = text_[end];
      if (x == '_') {
        ++end;
        continue;
      }
      bool part = base == 16 ? std::isxdigit(static_cast<unsigned char>(x)) != 0 : digit(x);
      if (!part && base == 10) {
        bool exponent =
            (x == 'e' || x == 'E') && end + 1 < text_.size() &&
            (digit(text_[end + 1]) || ((text_[end + 1] == '-' || text_[end + 1] == '+') &&
                                       end + 2 < text_.size() && digit(text_[end + 2])));
        if (x == '.' || exponent) {
          real = true;
          digits += x;
          ++end;
          if (exponent && !digit(text_[end])) digits += text_[end++];
          continue;
        }
      }
      if (!part) break;
      digits += x;
      ++end;
    }
    int width = static_cast<int>(end - pos_);
    if (digits.empty() || (end < text_.size() && letter(text_[end])))
      fail("number", cat("\"", text_.substr(pos_, end - pos_ + 1), "\" is not a number"), width);
    Token& t = push(real ? TokenKind::real : TokenKind::integer,
                    std::string(text_.substr(pos_, end - pos_)), width);
    if (real) {
      auto r = std::from_chars(digits.data(), digits.data() + digits.size(), t.real);
      if (r.ptr != digits.data() + digits.size() ||
          (r.ec != std::errc() && r.ec != std::errc::result_out_of_range))
        fail("number", cat("\"", digits, "\" is not a number"), width);
    } else {
      std::uint64_t value = 0;
      auto r = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
      if (r.ec == std::errc::result_out_of_range)
        fail("number", cat(digits, " needs more than 64 bits"), width);
      if (r.ec != std::errc() || r.ptr != digits.data() + digits.size())
        fail("number", cat("\"", digits, "\" is not a number"), width);
      t.integer = static_cast<std::int64_t>(value);
      t.huge = value > 0x7fffffffffffffffull;
    }
    while (pos_ < end) advance();
  }

  void append_utf8(std::string& out, unsigned code) {
    if (code < 0x80) out += static_cast<char>(code);
    else if (code < 0x800)
      out += static_cast<char>(0xc0 | code >> 6), out += static_cast<char>(0x80 | (code & 63));
    else
      out += static_cast<char>(0xe0 | code >> 12),
          out += static_cast<char>(0x80 | (code >> 6 & 63)),
          out += static_cast<char>(0x80 | (code & 63));
  }

  void string(bool raw) {
    int line = line_, column = column_;
    char quote = text_[pos_];
    bool triple = text_.substr(pos_, 3) == std::string(3, quote);
    for (int i = 0; i < (triple ? 3 : 1); ++i) advance();
    std::string value;
    while (true) {
      if (pos_ >= text_.size() || (!triple && text_[pos_] == '\n'))
        source_.fail(line, column, 1, "string",
                     cat("this string never ends (", quote, " is missing)"));
      char c = text_[pos_];
      if (c == quote && (!triple || text_.substr(pos_, 3) == std::string(3, quote))) break;
      advance();
      if (c != '\\' || raw || pos_ >= text_.size()) {
        value += c;
        continue;
      }
      char e = text_[pos_];
      advance();
      switch (e) {
        case 'n': value += '\n'; break;
        case 't': value += '\t'; break;
        case 'r': value += '\r'; break;
        case 'b': value += '\b'; break;
        case 'f': value += '\f'; break;
        case '0': value += '\0'; break;
        case '\n': break;
        case 'x':
        case 'u': {
          unsigned code = 0;
          for (int i = 0; i < (e == 'x' ? 2 : 4); ++i) {
            if (pos_ >= text_.size() || !std::isxdigit(static_cast<unsigned char>(text_[pos_])))
              fail("string", cat("\"\\", e, "\" needs ", e == 'x' ? 2 : 4, " hexadecimal digits"));
            char h = static_cast<char>(std::tolower(text_[pos_]));
            code = code * 16 + static_cast<unsigned>(digit(h) ? h - '0' : h - 'a' + 10);
            advance();
          }
          append_utf8(value, code);
          break;
        }
        case '\\':
        case '\'':
        case '"':
        case '/': value += e; break;
        default: value += '\\', value += e;
      }
    }
    for (int i = 0; i < (triple ? 3 : 1); ++i) advance();
    Token& t = push(TokenKind::string, std::move(value), line == line_ ? column_ - column : 1);
    t.line = line;
    t.column = column;
  }

  void symbol() {
    static constexpr std::string_view longest[] = {
        "**=", "//=", ">>=", "<<=", "...", "->", ":=", "==", "!=", "<=", ">=", "//",
        "<<",  ">>",  "+=",  "-=",  "*=",  "/=", "%=", "**", "&=", "|=", "^="};
    std::string_view rest = text_.substr(pos_);
    for (std::string_view op : longest) {
      if (rest.starts_with(op)) return take(TokenKind::op, pos_ + op.size());
    }
    char c = rest[0];
    if (std::string_view("+-*/%<>=()[]{},:.@&|^~;").find(c) == std::string_view::npos) {
      if (std::isprint(static_cast<unsigned char>(c)))
        fail("character", cat("\"", c, "\" has no meaning here"));
      fail("character",
           cat("byte ", hex(static_cast<unsigned char>(c), 2), " has no meaning here"));
    }
    if (c == '(' || c == '[' || c == '{') {
      if (depth_ >= kMaxBrackets)
        fail("depth", cat("brackets are nested deeper than ", kMaxBrackets));
      open_.resize(depth_), open_line_.resize(depth_), open_column_.resize(depth_);
      open_.push_back(c), open_line_.push_back(line_), open_column_.push_back(column_);
      ++depth_;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth_ == 0) fail("bracket", cat("\"", c, "\" closes nothing"));
      char o = open_[depth_ - 1];
      if ((o == '(') != (c == ')') || (o == '[') != (c == ']'))
        fail("bracket", cat("\"", c, "\" closes the \"", o, "\" of line ",
                            open_line_[depth_ - 1] + source_.first_line - 1));
      --depth_;
    }
    take(TokenKind::op, pos_ + 1);
  }

  const Source& source_;
  std::string_view text_;
  std::size_t pos_ = 0, depth_ = 0;
  int line_ = 1, column_ = 1;
  bool at_line_start_ = true;
  std::vector<int> margins_{0};
  std::string open_;
  std::vector<int> open_line_, open_column_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const Source& source) { return Lexer(source).run(); }

}  // namespace weft::ir::syntax
