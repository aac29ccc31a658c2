// SPDX-License-Identifier: Apache-2.0
// Types and expressions.
#include "weft/targets/wse/csl/parser_class.h"

namespace weft::wse::csl {
namespace {

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

}  // namespace

Node* Parser::type() {
  Depth depth(*this);
  Braces braces(*this, false);
  return prefix();
}

Node* Parser::expression() {
  Braces braces(*this, true);
  return binary(1);
}

Node* Parser::binary(int lowest) {
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
    if (kind() == n->op &&
        (n->op == Tok::amp || n->op == Tok::pipe || n->op == Tok::plus || n->op == Tok::star)) {
      fail("wse.csl.parse.operator", n->op == Tok::amp    ? "there is no &&; write: a and b"
                                     : n->op == Tok::pipe ? "there is no ||; write: a or b"
                                     : n->op == Tok::star
                                         ? "there is no **; write: a * a, or <math>.pow"
                                         : "there is no ++; write: a += 1");
    }
    n->a = left;
    n->b = binary(p + 1);
    left = n;
  }
}

Node* Parser::prefix() {
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

Node* Parser::postfix() {
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
               cat("expected a field name after \".\", found ", found(),
                   kind() == Tok::dot ? "; a switch lists its values: 0, 1, 2 => ..." : ""));
        }
        advance();
        Node* field = make_at(Kind::field, pos());
        field->a = n;
        field->name = token().name;
        advance();
        n = field;
        break;
      }
      case Tok::arrow:
        fail("wse.csl.parse.operator",
             cat("there is no ->; write: p.*.",
                 kind(1) == Tok::identifier ? names_.text(tokens_[at_ + 1].name) : "field"));
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

void Parser::arguments(std::vector<Node*>& out) {
  while (kind() != Tok::r_paren) {
    out.push_back(expression());
    if (!accept(Tok::comma)) break;
  }
  expect(Tok::r_paren, "after the arguments");
}

void Parser::fields(std::vector<Node*>& out) {
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

Node* Parser::primary() {
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
      // Both words are names elsewhere.
      const bool packed = spelled("packed") && (kind(1) == Tok::k_struct || spelled("union", 1));
      if (packed) advance();
      const std::uint16_t flags = packed ? kPacked : 0;
      if (packed && kind() == Tok::k_struct) return struct_type(flags);
      if (spelled("union") && kind(1) == Tok::l_brace)
        return struct_type(static_cast<std::uint16_t>(flags | kUnion));
      Node* n = make(Kind::ident);
      n->name = t.name;
      advance();
      return n;
    }
    case Tok::k_extern: {
      // Our structs have the layout that C gives them.
      const bool is_union = spelled("union", 1);
      if (!is_union && kind(1) != Tok::k_struct)
        fail("wse.csl.parse.expression",
             cat("expected struct or union after extern, found ", describe(kind(1))));
      advance();
      return struct_type(is_union ? std::uint16_t{kUnion} : std::uint16_t{0});
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
        fail("wse.csl.parse.expected",
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
        Node* parameter = type();
        // The parameter may have a name, which says nothing to the type: fn(n: i16)void.
        if (parameter->kind == Kind::ident && accept(Tok::colon)) parameter = type();
        n->list.push_back(parameter);
        if (!accept(Tok::comma)) break;
      }
      expect(Tok::r_paren, "after the parameter types");
      n->a = type();
      return n;
    }
    case Tok::k_struct: return struct_type(0);
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
    case Tok::k_else:
      fail("wse.csl.parse.form",
           "this else follows no if: no \";\" stands before else; write: if (c) a else b;");
    default:
      if (kind() == Tok::slash && kind(1) == Tok::star)
        fail("wse.csl.parse.expression", "a comment is written: // text, to the end of the line");
      fail("wse.csl.parse.expression", cat("expected an expression, found ", found()));
  }
}

/// From "struct" or "union" on; "packed" has been read.
Node* Parser::struct_type(std::uint16_t flags) {
  Node* n = make(Kind::struct_type);
  n->flags |= flags;
  advance();
  expect(Tok::l_brace, n->has(kUnion) ? "after union" : "after struct");
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

Node* Parser::tensor_access() {
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

}  // namespace weft::wse::csl
