// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parser as a class, shared by its two sources: items and statements (parser.cpp), expressions
// (parse_expr.cpp). One token of look-ahead in most places; recovery at items and statements.

#include <algorithm>
#include <utility>

#include "weft/base/text.h"
#include "weft/targets/wse/csl/parser.h"

namespace weft::wse::csl {

/// Unwinds to the nearest recovery point after a syntax error.
struct SyntaxError {};

class Parser {
 public:
  Parser(const Source& source, Names& names, Diagnostics& diagnostics)
      : file_(static_cast<std::uint16_t>(source.id)),
        names_(names),
        diagnostics_(diagnostics),
        tokens_(lex(source, names, diagnostics)) {}

  Ast run() {
    Node* file = make(Kind::file);
    while (kind() != Tok::end) {
      std::size_t before = at_;
      try {
        file->list.push_back(item());
      } catch (const SyntaxError&) {
        recover_item(before);
      }
    }
    ast_.root = file;
    return std::move(ast_);
  }

 private:
  struct Depth {
    explicit Depth(Parser& p) : parser(p) {
      if (++parser.depth_ > kMaxNesting) {
        --parser.depth_;
        parser.fail("wse.csl.parse.depth",
                    cat("the program nests deeper than ", kMaxNesting, " levels"));
      }
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  /// Whether `T{` begins an initialiser here.
  struct Braces {
    Braces(Parser& p, bool allowed) : parser(p), saved(std::exchange(p.braces_allowed_, allowed)) {}
    ~Braces() { parser.braces_allowed_ = saved; }
    Parser& parser;
    bool saved;
  };

  Tok kind(std::size_t k = 0) const {
    return at_ + k < tokens_.size() ? tokens_[at_ + k].kind : Tok::end;
  }
  const Token& token() const { return tokens_[at_]; }
  /// Whether the token `k` ahead is this identifier.
  bool spelled(std::string_view word, std::size_t k = 0) const {
    return kind(k) == Tok::identifier &&
           names_.text(tokens_[std::min(at_ + k, tokens_.size() - 1)].name) == word;
  }
  Pos pos() const {
    const Token& t = tokens_[at_];
    return {t.offset, file_,
            static_cast<std::uint16_t>(std::clamp<std::uint32_t>(t.length, 1, 400))};
  }
  void advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool accept(Tok tok) {
    if (kind() != tok) return false;
    advance();
    return true;
  }
  [[noreturn]] void fail(std::string_view code, std::string message) {
    diagnostics_.add(Diagnostic::Level::error, pos(), code, std::move(message));
    throw SyntaxError{};
  }
  void expect(Tok tok, std::string_view where) {
    if (!accept(tok)) {
      fail("wse.csl.parse.expected",
           cat("expected \"", describe(tok), "\" ", where, ", found ", found()));
    }
  }
  std::string found() const {
    Tok t = kind();
    if (t == Tok::identifier || t == Tok::builtin) {
      return cat("\"", t == Tok::builtin ? "@" : "", names_.text(token().name), "\"");
    }
    if (t == Tok::end) return "the end of the file";
    if (t == Tok::integer || t == Tok::floating || t == Tok::string)
      return std::string(describe(t));
    return cat("\"", describe(t), "\"");
  }
  Symbol expect_name(std::string_view what) {
    if (kind() != Tok::identifier)
      fail("wse.csl.parse.expected", cat("expected ", what, ", found ", found()));
    Symbol name = token().name;
    advance();
    return name;
  }

  Node* make(Kind k) {
    ast_.nodes.emplace_back();
    Node* n = &ast_.nodes.back();
    n->kind = k;
    if (!tokens_.empty()) n->pos = pos();
    return n;
  }
  Node* make_at(Kind k, Pos p) {
    Node* n = make(k);
    n->pos = p;
    return n;
  }

  void recover_item(std::size_t before) {
    if (at_ == before) advance();
    int braces = 0;
    while (kind() != Tok::end) {
      Tok t = kind();
      if (braces <= 0 && at_ > 0 &&
          (tokens_[at_ - 1].kind == Tok::semicolon || tokens_[at_ - 1].kind == Tok::r_brace)) {
        switch (t) {
          case Tok::k_const:
          case Tok::k_var:
          case Tok::k_param:
          case Tok::k_fn:
          case Tok::k_task:
          case Tok::k_layout:
          case Tok::k_comptime:
          case Tok::k_export:
          case Tok::k_extern: return;
          default: break;
        }
      }
      if (t == Tok::l_brace) ++braces;
      if (t == Tok::r_brace) --braces;
      advance();
    }
  }

  // ---- items ----
  Node* item();
  [[noreturn]] void refuse_item();
  Node* function(std::uint16_t flags);
  void attributes(Node* n);
  Node* variable();
  // ---- statements ----
  Node* block();
  void recover_statement(std::size_t before);
  Node* statement();
  enum class Place { statement, body };
  /// A statement without its semicolon. `needs_semicolon` is cleared when it ends in a block.
  Node* statement_body(bool& needs_semicolon, Place place);
  Node* expression_statement();
  Node* for_statement(Symbol label, bool& needs_semicolon);
  Node* while_statement(Symbol label, bool& needs_semicolon);
  Node* if_(bool& needs_semicolon, bool is_statement);
  Node* branch(bool& needs_semicolon, bool is_statement);
  Node* switch_();

  // ---- expressions ----
  Node* type();
  /// An expression in which `T{` begins an initialiser.
  Node* expression();
  Node* binary(int lowest);
  Node* prefix();
  Node* postfix();
  void arguments(std::vector<Node*>& out);
  /// `{ .name = e, ... }` or `{ e, ... }`.
  void fields(std::vector<Node*>& out);
  Node* primary();
  Node* tensor_access();
  Node* struct_type(std::uint16_t flags);

  std::uint16_t file_;
  Names& names_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool braces_allowed_ = true;
  Ast ast_;
};

}  // namespace weft::wse::csl
