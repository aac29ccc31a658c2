// SPDX-License-Identifier: Apache-2.0
// Items and statements.
#include <map>

#include "weft/targets/wse/csl/parser_class.h"

namespace weft::wse::csl {
namespace {

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

}  // namespace

Node* Parser::item() {
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
      Node* n = make_at(kind() == Tok::k_layout ? Kind::layout_block : Kind::comptime_block, start);
      advance();
      n->a = block();
      return n;
    }
    default:
      if (kind() == Tok::identifier && kind(1) == Tok::identifier && kind(2) == Tok::l_paren)
        fail("wse.csl.parse.form",
             cat(found(), " begins no declaration; a function is written: fn ",
                 names_.text(tokens_[at_ + 1].name), "(a: T) T { }"));
      refuse_item();
  }
}

/// What other languages, and CSL before 1.0, begin an item with.
void Parser::refuse_item() {
  static constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
      {"pub", "there is no pub: all that a file declares can be reached through @import_module"},
      {"color", "a color is a value: const c: color = @get_color(3); or param c: color;"},
      {"struct", "a struct type is a value: const P = struct { x: f32, y: f32 };"},
      {"enum", "an enum is a value: const E = enum(u16) { A, B };"},
      {"import", "a module is a value: const m = @import_module(\"file.csl\");"},
      {"asm",
       "inline assembly is not there: the machine's instructions are in no public document"}};
  for (const auto& [word, here] : kElsewhere)
    if (found() == cat("\"", word, "\"")) fail("wse.csl.parse.item", std::string(here));
  fail("wse.csl.parse.item",
       cat("expected a declaration (const, var, param, fn, task, layout or comptime), found ",
           found()));
}

Node* Parser::function(std::uint16_t flags) {
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
    for (const Node* earlier : n->list) {
      if (earlier->name == p->name)
        fail("wse.csl.name.duplicate",
             cat("\"", names_.text(p->name), "\" names two parameters of \"", names_.text(n->name),
                 "\""));
    }
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
  if (kind() == Tok::l_brace && (kind(1) != Tok::r_brace || kind(2) != Tok::l_brace)) {
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
  accept(Tok::semicolon);  // examples of the language's guide end a function with one
  return n;
}

void Parser::attributes(Node* n) {
  for (;;) {
    Tok t = kind();
    if (t != Tok::k_align && t != Tok::k_linksection && t != Tok::k_linkname) return;
    advance();
    expect(Tok::l_paren, "after the attribute");
    Node* e = expression();
    expect(Tok::r_paren, "after the attribute's value");
    if (t == Tok::k_align) n->c = e;
    if (t == Tok::k_linkname) n->d = e;
    if (t == Tok::k_linksection && n->kind == Kind::var_decl) n->list = {e};
  }
}

Node* Parser::variable() {
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

Node* Parser::block() {
  Depth depth(*this);
  Node* n = make(Kind::block);
  std::map<Symbol, Node*> declared;
  expect(Tok::l_brace, "at the beginning of a block");
  while (kind() != Tok::r_brace) {
    if (kind() == Tok::end)
      fail("wse.csl.parse.expected",
           "expected \"}\" at the end of a block, found the end of the file");
    std::size_t before = at_;
    try {
      if (accept(Tok::semicolon)) continue;
      Node* made = statement();
      n->list.push_back(made);
      if (made->kind != Kind::var_decl) continue;
      if (auto [first, fresh] = declared.emplace(made->name, made); !fresh) {
        Diagnostic& twice = diagnostics_.add(
            Diagnostic::Level::error, made->pos, "wse.csl.name.duplicate",
            cat("\"", names_.text(made->name), "\" is declared twice in this block"));
        twice.notes.push_back({"the first declaration is here", first->second->pos});
      }
    } catch (const SyntaxError&) {
      if (depth_ >= kMaxNesting) throw;
      recover_statement(before);
    }
  }
  advance();
  return n;
}

void Parser::recover_statement(std::size_t before) {
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

Node* Parser::statement() {
  Depth depth(*this);
  bool needs_semicolon = true;
  if (spelled("asm") && (kind(1) == Tok::l_paren || spelled("volatile", 1)))
    fail("wse.csl.parse.form",
         "inline assembly is not there: the machine's instructions are in no public document");
  Node* n = statement_body(needs_semicolon, Place::statement);
  if (n->kind == Kind::ident && kind() == Tok::identifier)
    fail("wse.csl.parse.form",
         cat("\"", names_.text(n->name), "\" begins no declaration; a variable is written: var ",
             names_.text(token().name), ": T = value;"));
  if (needs_semicolon) expect(Tok::semicolon, "at the end of the statement");
  return n;
}

Node* Parser::statement_body(bool& needs_semicolon, Place place) {
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
      if (is_break && kind() != Tok::semicolon && kind() != Tok::comma && kind() != Tok::r_brace &&
          kind() != Tok::k_else) {
        n->a = expression();
      }
      return n;
    }
    default: return expression_statement();
  }
}

Node* Parser::expression_statement() {
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

Node* Parser::for_statement(Symbol label, bool& needs_semicolon) {
  Node* n = make(Kind::for_);
  advance();
  n->name = label;
  expect(Tok::l_paren, "after for");
  if (kind() == Tok::k_var || kind() == Tok::k_const ||
      (kind() == Tok::identifier && kind(1) == Tok::assign))
    fail("wse.csl.parse.form",
         "for goes over a range or an array; write: for (@range(u16, n)) |i| { }");
  n->a = expression();
  expect(Tok::r_paren, "after what for iterates over");
  expect(Tok::pipe, "before the loop variable");
  if (kind() == Tok::star)
    fail("wse.csl.parse.form",
         "the loop variable is a copy of an element; write to the array by an index: "
         "for (@range(u16, n)) |i| { a[i] = 0; }");
  n->name2 = expect_name("the loop variable");
  if (accept(Tok::comma)) n->name3 = expect_name("the index variable");
  expect(Tok::pipe, "after the loop variable");
  n->c = statement_body(needs_semicolon, Place::body);
  return n;
}

Node* Parser::while_statement(Symbol label, bool& needs_semicolon) {
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

Node* Parser::if_(bool& needs_semicolon, bool is_statement) {
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

Node* Parser::branch(bool& needs_semicolon, bool is_statement) {
  if (is_statement) return statement_body(needs_semicolon, Place::body);
  Depth depth(*this);
  needs_semicolon = true;
  if (kind() == Tok::l_brace) return block();
  if (kind() == Tok::k_return || kind() == Tok::k_break || kind() == Tok::k_continue) {
    return statement_body(needs_semicolon, Place::body);
  }
  return expression();
}

Node* Parser::switch_() {
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

Ast parse(const Source& source, Names& names, Diagnostics& diagnostics) {
  return Parser(source, names, diagnostics).run();
}

}  // namespace weft::wse::csl
