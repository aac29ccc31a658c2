// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/csl/parser.h"

#include <algorithm>
#include <utility>

#include "weft/base/text.h"

namespace weft::wse::csl {
namespace {

/// Unwinds to the nearest recovery point after a syntax error.
struct SyntaxError {};

int precedence(Tok tok) {
  switch (tok) {
    case Tok::k_or: return 1;
    case Tok::k_and: return 2;
    case Tok::eq:
    case Tok::ne:
    case Tok::lt:
    case Tok::le:
    case Tok::gt:
    case Tok::ge: return 3;
    case Tok::pipe: return 4;
    case Tok::caret: return 5;
    case Tok::amp: return 6;
    case Tok::shl:
    case Tok::shr: return 7;
    case Tok::plus:
    case Tok::minus: return 8;
    case Tok::star:
    case Tok::slash:
    case Tok::percent: return 9;
    default: return 0;
  }
}

bool is_assignment(Tok tok) {
  switch (tok) {
    case Tok::assign:
    case Tok::plus_assign:
    case Tok::minus_assign:
    case Tok::star_assign:
    case Tok::slash_assign:
    case Tok::percent_assign:
    case Tok::shl_assign:
    case Tok::shr_assign:
    case Tok::amp_assign:
    case Tok::pipe_assign:
    case Tok::caret_assign: return true;
    default: return false;
  }
}

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

  Node* item() {
    Pos start = pos();
    std::uint16_t flags = 0;
    for (;;) {
      if (accept(Tok::k_export)) flags |= kExport;
      else if (accept(Tok::k_extern)) flags |= kExtern;
      else if (kind() == Tok::k_inline) {
        advance();
        flags |= kInline;
      } else break;
    }
    switch (kind()) {
      case Tok::k_const:
      case Tok::k_var: {
        Node* n = variable();
        n->flags |= flags | kGlobal;
        expect(Tok::semicolon, "after the declaration");
        return n;
      }
      case Tok::k_param: {
        advance();
        Node* n = make_at(Kind::param_decl, pos());
        n->name = expect_name("the name of the param");
        if (accept(Tok::colon)) n->a = type();
        if (accept(Tok::assign)) n->b = expression();
        expect(Tok::semicolon, "after the param");
        return n;
      }
      case Tok::k_fn:
      case Tok::k_task: return function(flags);
      case Tok::k_layout:
      case Tok::k_comptime: {
        Node* n =
            make_at(kind() == Tok::k_layout ? Kind::layout_block : Kind::comptime_block, start);
        advance();
        n->a = block();
        return n;
      }
      default:
        fail("wse.csl.parse.item",
             cat("expected a declaration (const, var, param, fn, task, layout or comptime), found ",
                 found()));
    }
  }

  Node* function(std::uint16_t flags) {
    bool task = kind() == Tok::k_task;
    advance();
    Node* n = make_at(Kind::fn_decl, pos());
    n->flags = flags | (task ? kTask : 0);
    n->name = expect_name(task ? "the name of the task" : "the name of the function");
    expect(Tok::l_paren, "before the parameters");
    while (kind() != Tok::r_paren) {
      Node* p = make(Kind::fn_param);
      if (accept(Tok::k_comptime)) p->flags |= kComptime;
      p->pos = pos();
      p->name = expect_name("the name of a parameter");
      expect(Tok::colon, "after the parameter's name");
      if (kind() == Tok::identifier && names_.text(token().name) == "anytype") {
        advance();
        p->flags |= kAnytype;
      } else {
        p->a = type();
      }
      n->list.push_back(p);
      if (!accept(Tok::comma)) break;
    }
    expect(Tok::r_paren, "after the parameters");
    attributes(n);
    if (kind() == Tok::l_brace && kind(1) != Tok::r_brace) {
      fail("wse.csl.parse.result_type",
           "a function needs a result type before its body; use void for none");
    }
    n->a = type();
    attributes(n);
    if (n->has(kExtern) && kind() == Tok::semicolon) {
      advance();
      return n;
    }
    n->b = block();
    return n;
  }

  void attributes(Node* n) {
    for (;;) {
      Tok t = kind();
      if (t != Tok::k_align && t != Tok::k_linksection && t != Tok::k_linkname) return;
      advance();
      expect(Tok::l_paren, "after the attribute");
      Node* e = expression();
      expect(Tok::r_paren, "after the attribute's value");
      if (t == Tok::k_align) n->c = e;
      if (t == Tok::k_linkname) n->d = e;
    }
  }

  Node* variable() {
    bool is_const = kind() == Tok::k_const;
    advance();
    Node* n = make_at(Kind::var_decl, pos());
    n->flags = is_const ? kConst : kVar;
    n->name = expect_name("the name of the variable");
    if (accept(Tok::colon)) n->a = type();
    attributes(n);
    if (accept(Tok::assign)) n->b = expression();
    return n;
  }

  // ---- statements ----

  Node* block() {
    Depth depth(*this);
    Node* n = make(Kind::block);
    expect(Tok::l_brace, "at the beginning of a block");
    while (kind() != Tok::r_brace) {
      if (kind() == Tok::end)
        fail("wse.csl.parse.expected",
             "expected \"}\" at the end of a block, found the end of the file");
      std::size_t before = at_;
      try {
        if (accept(Tok::semicolon)) continue;
        n->list.push_back(statement());
      } catch (const SyntaxError&) {
        if (depth_ >= kMaxNesting) throw;
        recover_statement(before);
      }
    }
    advance();
    return n;
  }

  void recover_statement(std::size_t before) {
    if (at_ == before) advance();
    int nesting = 0;
    while (kind() != Tok::end) {
      Tok t = kind();
      if (nesting == 0 && t == Tok::r_brace) return;
      if (nesting == 0 && t == Tok::semicolon) {
        advance();
        return;
      }
      if (t == Tok::l_brace) ++nesting;
      if (t == Tok::r_brace) --nesting;
      advance();
    }
  }

  Node* statement() {
    Depth depth(*this);
    bool needs_semicolon = true;
    Node* n = statement_body(needs_semicolon, Place::statement);
    if (needs_semicolon) expect(Tok::semicolon, "at the end of the statement");
    return n;
  }

  enum class Place { statement, body };

  /// A statement without its semicolon. `needs_semicolon` is cleared when it ends in a block.
  Node* statement_body(bool& needs_semicolon, Place place) {
    Depth depth(*this);
    needs_semicolon = true;
    Pos start = pos();
    Symbol label = 0;
    if (kind() == Tok::identifier && kind(1) == Tok::colon &&
        (kind(2) == Tok::k_for || kind(2) == Tok::k_while || kind(2) == Tok::l_brace ||
         kind(2) == Tok::k_inline)) {
      label = token().name;
      advance();
      advance();
    }
    switch (kind()) {
      case Tok::k_const:
      case Tok::k_var:
        if (place == Place::body)
          fail("wse.csl.parse.body", "a declaration cannot be a body by itself; use braces");
        return variable();
      case Tok::k_comptime: {
        if (kind(1) == Tok::k_var || kind(1) == Tok::k_const) {
          advance();
          Node* n = variable();
          n->flags |= kComptime;
          return n;
        }
        if (kind(1) == Tok::l_brace || kind(1) == Tok::k_for || kind(1) == Tok::k_while ||
            kind(1) == Tok::k_inline || kind(1) == Tok::k_if || kind(1) == Tok::k_switch) {
          advance();
          Node* n = make_at(Kind::comptime_block, start);
          n->a = statement_body(needs_semicolon, Place::body);
          return n;
        }
        return expression_statement();
      }
      case Tok::k_inline:
        if (kind(1) == Tok::k_for || kind(1) == Tok::k_while) {
          advance();
          Node* n = kind() == Tok::k_for ? for_statement(label, needs_semicolon)
                                         : while_statement(label, needs_semicolon);
          n->flags |= kInline;
          return n;
        }
        fail("wse.csl.parse.expected", cat("expected for or while after inline, found ", found()));
      case Tok::k_for: return for_statement(label, needs_semicolon);
      case Tok::k_while: return while_statement(label, needs_semicolon);
      case Tok::k_if: return if_(needs_semicolon, true);
      case Tok::k_switch: {
        Node* n = switch_();
        needs_semicolon = false;
        return n;
      }
      case Tok::l_brace: {
        Node* n = block();
        n->name = label;
        needs_semicolon = false;
        return n;
      }
      case Tok::k_return: {
        advance();
        Node* n = make_at(Kind::return_, start);
        if (kind() != Tok::semicolon && kind() != Tok::comma && kind() != Tok::r_brace &&
            kind() != Tok::k_else) {
          n->a = expression();
        }
        return n;
      }
      case Tok::k_break:
      case Tok::k_continue: {
        bool is_break = kind() == Tok::k_break;
        advance();
        Node* n = make_at(is_break ? Kind::break_ : Kind::continue_, start);
        if (accept(Tok::colon)) n->name = expect_name("a label");
        if (is_break && kind() != Tok::semicolon && kind() != Tok::comma &&
            kind() != Tok::r_brace && kind() != Tok::k_else) {
          n->a = expression();
        }
        return n;
      }
      default: return expression_statement();
    }
  }

  Node* expression_statement() {
    Node* e = expression();
    if (is_assignment(kind())) {
      Node* n = make(Kind::assign);
      n->op = kind();
      advance();
      n->a = e;
      n->b = expression();
      return n;
    }
    return e;
  }

  Node* for_statement(Symbol label, bool& needs_semicolon) {
    Node* n = make(Kind::for_);
    advance();
    n->name = label;
    expect(Tok::l_paren, "after for");
    n->a = expression();
    expect(Tok::r_paren, "after what for iterates over");
    expect(Tok::pipe, "before the loop variable");
    n->name2 = expect_name("the loop variable");
    if (accept(Tok::comma)) n->name3 = expect_name("the index variable");
    expect(Tok::pipe, "after the loop variable");
    n->c = statement_body(needs_semicolon, Place::body);
    return n;
  }

  Node* while_statement(Symbol label, bool& needs_semicolon) {
    Node* n = make(Kind::while_);
    advance();
    n->name = label;
    expect(Tok::l_paren, "after while");
    n->a = expression();
    expect(Tok::r_paren, "after the condition");
    if (accept(Tok::colon)) {
      expect(Tok::l_paren, "before the continuation of while");
      n->b = expression_statement();
      expect(Tok::r_paren, "after the continuation of while");
    }
    n->c = statement_body(needs_semicolon, Place::body);
    return n;
  }

  Node* if_(bool& needs_semicolon, bool is_statement) {
    Node* n = make(Kind::if_);
    advance();
    expect(Tok::l_paren, "after if");
    n->a = expression();
    expect(Tok::r_paren, "after the condition");
    n->b = branch(needs_semicolon, is_statement);
    // `if (c) a; else b;` is not of the language; `if (c) a else b;` is.
    if (accept(Tok::k_else)) n->c = branch(needs_semicolon, is_statement);
    return n;
  }

  Node* branch(bool& needs_semicolon, bool is_statement) {
    if (is_statement) return statement_body(needs_semicolon, Place::body);
    Depth depth(*this);
    needs_semicolon = true;
    if (kind() == Tok::l_brace) return block();
    if (kind() == Tok::k_return || kind() == Tok::k_break || kind() == Tok::k_continue) {
      return statement_body(needs_semicolon, Place::body);
    }
    return expression();
  }

  Node* switch_() {
    Node* n = make(Kind::switch_);
    advance();
    expect(Tok::l_paren, "after switch");
    n->a = expression();
    expect(Tok::r_paren, "after the subject");
    expect(Tok::l_brace, "before the cases");
    while (kind() != Tok::r_brace) {
      Node* arm = make(Kind::switch_arm);
      if (accept(Tok::k_else)) {
        arm->flags |= kElse;
      } else {
        do {
          if (kind() == Tok::fat_arrow) break;
          arm->list.push_back(expression());
        } while (accept(Tok::comma));
      }
      expect(Tok::fat_arrow, "after the values of a case");
      bool ignored = true;
      arm->a = statement_body(ignored, Place::body);
      n->list.push_back(arm);
      if (!accept(Tok::comma)) break;
    }
    expect(Tok::r_brace, "after the cases");
    return n;
  }

  // ---- expressions ----

  Node* type() {
    Depth depth(*this);
    Braces braces(*this, false);
    return prefix();
  }

  /// An expression in which `T{` begins an initialiser.
  Node* expression() {
    Braces braces(*this, true);
    return binary(1);
  }

  Node* binary(int lowest) {
    Depth depth(*this);
    Node* left = prefix();
    int chain = 0;
    for (;;) {
      int p = precedence(kind());
      if (p < lowest || p == 0) return left;
      if (++chain > 4 * kMaxNesting) {
        fail("wse.csl.parse.depth",
             cat("an expression chains more than ", 4 * kMaxNesting, " operators"));
      }
      Node* n = make(Kind::binary);
      n->op = kind();
      advance();
      n->a = left;
      n->b = binary(p + 1);
      left = n;
    }
  }

  Node* prefix() {
    Depth depth(*this);
    Pos start = pos();
    switch (kind()) {
      case Tok::minus:
      case Tok::bang:
      case Tok::tilde:
      case Tok::amp: {
        Tok op = kind();
        advance();
        Node* n = make_at(op == Tok::amp ? Kind::address_of : Kind::unary, start);
        n->op = op;
        n->a = prefix();
        return n;
      }
      case Tok::star: {
        advance();
        Node* n = make_at(Kind::pointer_type, start);
        if (accept(Tok::k_const)) n->flags |= kConst;
        n->a = type();
        return n;
      }
      case Tok::k_comptime: {
        advance();
        Node* n = make_at(Kind::comptime_expr, start);
        n->a = kind() == Tok::l_brace ? block() : prefix();
        return n;
      }
      default: return postfix();
    }
  }

  Node* postfix() {
    Node* n = primary();
    int chain = 0;
    for (;;) {
      Pos p = pos();
      switch (kind()) {
        case Tok::l_paren: {
          advance();
          Node* call = make_at(Kind::call, n->pos);
          call->a = n;
          arguments(call->list);
          n = call;
          break;
        }
        case Tok::l_bracket: {
          advance();
          Node* index = make_at(Kind::index, n->pos);
          index->a = n;
          do {
            if (kind() == Tok::r_bracket) break;
            index->list.push_back(expression());
          } while (accept(Tok::comma));
          expect(Tok::r_bracket, "after the index");
          n = index;
          break;
        }
        case Tok::dot: {
          if (kind(1) != Tok::identifier) {
            advance();
            fail("wse.csl.parse.expected",
                 cat("expected a field name after \".\", found ", found()));
          }
          advance();
          Node* field = make_at(Kind::field, pos());
          field->a = n;
          field->name = token().name;
          advance();
          n = field;
          break;
        }
        case Tok::dot_star: {
          advance();
          Node* deref = make_at(Kind::deref, p);
          deref->a = n;
          n = deref;
          break;
        }
        case Tok::l_brace: {
          if (!braces_allowed_) return n;
          if (n->kind != Kind::ident && n->kind != Kind::field && n->kind != Kind::array_type &&
              n->kind != Kind::struct_type && n->kind != Kind::call && n->kind != Kind::builtin) {
            return n;
          }
          Node* init = make_at(Kind::typed_init, n->pos);
          init->a = n;
          fields(init->list);
          n = init;
          break;
        }
        default: return n;
      }
      if (++chain > 4 * kMaxNesting) {
        fail("wse.csl.parse.depth",
             cat("an expression chains more than ", 4 * kMaxNesting, " operators"));
      }
    }
  }

  void arguments(std::vector<Node*>& out) {
    while (kind() != Tok::r_paren) {
      out.push_back(expression());
      if (!accept(Tok::comma)) break;
    }
    expect(Tok::r_paren, "after the arguments");
  }

  /// `{ .name = e, ... }` or `{ e, ... }`.
  void fields(std::vector<Node*>& out) {
    expect(Tok::l_brace, "before the fields");
    while (kind() != Tok::r_brace) {
      Node* f = make(Kind::field_init);
      if (kind() == Tok::dot && kind(1) == Tok::identifier && kind(2) == Tok::assign) {
        advance();
        f->pos = pos();
        f->name = token().name;
        advance();
        advance();
      }
      f->a = expression();
      if (!out.empty() && (out.front()->name == 0) != (f->name == 0)) {
        diagnostics_.add(Diagnostic::Level::error, f->pos, "wse.csl.parse.mixed_fields",
                         "the fields of one literal are either all named or all nameless");
      }
      out.push_back(f);
      if (!accept(Tok::comma)) break;
    }
    expect(Tok::r_brace, "after the fields");
  }

  Node* primary() {
    Pos start = pos();
    const Token& t = token();
    switch (t.kind) {
      case Tok::identifier: {
        if (kind(1) == Tok::colon && kind(2) == Tok::l_brace) {
          Symbol label = t.name;
          advance();
          advance();
          Node* n = block();
          n->name = label;
          return n;
        }
        Node* n = make(Kind::ident);
        n->name = t.name;
        advance();
        return n;
      }
      case Tok::integer:
      case Tok::floating:
      case Tok::string:
      case Tok::k_true:
      case Tok::k_false: {
        Node* n = make(t.kind == Tok::integer    ? Kind::integer
                       : t.kind == Tok::floating ? Kind::floating
                       : t.kind == Tok::string   ? Kind::string
                                                 : Kind::boolean);
        n->integer = t.kind == Tok::k_true ? 1 : t.integer;
        n->floating = t.floating;
        n->name = t.name;
        advance();
        return n;
      }
      case Tok::builtin: {
        Node* n = make(Kind::builtin);
        n->name = t.name;
        advance();
        expect(Tok::l_paren, "after the built-in's name");
        arguments(n->list);
        return n;
      }
      case Tok::l_paren: {
        advance();
        Node* n = expression();
        expect(Tok::r_paren, "after the expression");
        return n;
      }
      case Tok::l_brace: return block();
      case Tok::dot: {
        advance();
        Node* n = make_at(Kind::struct_lit, start);
        if (kind() != Tok::l_brace) {
          fail(
              "wse.csl.parse.expected",
              cat("expected \"{\" after \".\" at the beginning of an expression, found ", found()));
        }
        fields(n->list);
        return n;
      }
      case Tok::l_bracket: {
        advance();
        if (accept(Tok::star)) {
          expect(Tok::r_bracket, "after \"[*\"");
          Node* n = make_at(Kind::pointer_type, start);
          n->flags |= kMany;
          if (accept(Tok::k_const)) n->flags |= kConst;
          n->a = type();
          return n;
        }
        Node* n = make_at(Kind::array_type, start);
        do {
          if (kind() == Tok::r_bracket) break;
          n->list.push_back(expression());
        } while (accept(Tok::comma));
        expect(Tok::r_bracket, "after the extents");
        if (n->list.empty())
          fail("wse.csl.parse.array_type", "an array type needs at least one extent: [N]T");
        n->a = type();
        return n;
      }
      case Tok::k_fn:
      case Tok::k_task: {
        Node* n = make(Kind::fn_type);
        if (t.kind == Tok::k_task) n->flags |= kTask;
        advance();
        expect(Tok::l_paren, "before the parameter types");
        while (kind() != Tok::r_paren) {
          n->list.push_back(type());
          if (!accept(Tok::comma)) break;
        }
        expect(Tok::r_paren, "after the parameter types");
        n->a = type();
        return n;
      }
      case Tok::k_struct: {
        Node* n = make(Kind::struct_type);
        advance();
        expect(Tok::l_brace, "after struct");
        while (kind() != Tok::r_brace) {
          Node* f = make(Kind::field_init);
          f->name = expect_name("the name of a field");
          expect(Tok::colon, "after the field's name");
          f->a = type();
          if (accept(Tok::assign)) f->b = expression();
          n->list.push_back(f);
          if (!accept(Tok::comma) && !accept(Tok::semicolon)) break;
        }
        expect(Tok::r_brace, "after the fields");
        return n;
      }
      case Tok::k_enum: {
        Node* n = make(Kind::enum_type);
        advance();
        if (accept(Tok::l_paren)) {
          n->a = type();
          expect(Tok::r_paren, "after the enum's underlying type");
        }
        expect(Tok::l_brace, "after enum");
        while (kind() != Tok::r_brace) {
          Node* f = make(Kind::field_init);
          f->name = expect_name("the name of an enum member");
          if (accept(Tok::assign)) f->a = expression();
          n->list.push_back(f);
          if (!accept(Tok::comma)) break;
        }
        expect(Tok::r_brace, "after the members");
        return n;
      }
      case Tok::k_if: {
        bool ignored = true;
        return if_(ignored, false);
      }
      case Tok::k_switch: return switch_();
      case Tok::pipe: return tensor_access();
      default: fail("wse.csl.parse.expression", cat("expected an expression, found ", found()));
    }
  }

  Node* tensor_access() {
    Node* n = make(Kind::tensor_access);
    advance();
    do {
      Node* v = make(Kind::ident);
      v->name = expect_name("an index variable");
      n->list.push_back(v);
    } while (accept(Tok::comma));
    expect(Tok::pipe, "after the index variables");
    expect(Tok::l_brace, "before the extents");
    do {
      if (kind() == Tok::r_brace) break;
      n->list2.push_back(expression());
    } while (accept(Tok::comma));
    expect(Tok::r_brace, "after the extents");
    expect(Tok::arrow, "after the extents");
    Braces braces(*this, false);
    n->a = postfix();
    return n;
  }

  std::uint16_t file_;
  Names& names_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool braces_allowed_ = true;
  Ast ast_;
};

}  // namespace

Ast parse(const Source& source, Names& names, Diagnostics& diagnostics) {
  return Parser(source, names, diagnostics).run();
}

}  // namespace weft::wse::csl
