// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/syntax.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/ir/lexer.h"

namespace weft::ir::syntax {

namespace {

class Parser {
 public:
  explicit Parser(const Source& source) : source_(source), tokens_(tokenize(source)) {}

  std::vector<StatementPtr> run() {
    std::vector<StatementPtr> out;
    while (!at(TokenKind::end)) statement(out);
    return out;
  }

 private:
  static constexpr int kMaxDepth = 200;  // of nested expressions and suites together
  static constexpr int kMaxChain =
      1000;  // operators in one chain: trees stay shallow enough to walk

  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool at_op(std::string_view text) const {
    return peek().kind == TokenKind::op && peek().text == text;
  }
  bool at_word(std::string_view text) const {
    return peek().kind == TokenKind::name && peek().text == text;
  }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool take_op(std::string_view text) {
    if (!at_op(text)) return false;
    next();
    return true;
  }
  bool take_word(std::string_view text) {
    if (!at_word(text)) return false;
    next();
    return true;
  }
  [[noreturn]] void fail(const Token& t, std::string message,
                         std::string_view slug = "syntax") const {
    source_.fail(t.line, t.column, t.width, slug, std::move(message));
  }
  static std::string show(const Token& t) {
    switch (t.kind) {
      case TokenKind::newline: return "the end of the line";
      case TokenKind::indent: return "a deeper margin";
      case TokenKind::dedent: return "the end of the block";
      case TokenKind::end: return "the end of the text";
      case TokenKind::string: return "a string";
      default: return cat("\"", t.text, "\"");
    }
  }
  void need_op(std::string_view text, std::string_view where) {
    if (!take_op(text))
      fail(peek(), cat("expected \"", text, "\" ", where, ", found ", show(peek())));
  }
  std::string need_name(std::string_view what) {
    if (!at(TokenKind::name) || keyword(peek().text))
      fail(peek(), cat("expected ", what, ", found ", show(peek())));
    return next().text;
  }
  static bool keyword(std::string_view t) {
    static constexpr std::string_view words[] = {
        "and",    "as", "assert", "class",  "def", "elif", "else", "for",    "from",  "if",
        "import", "in", "is",     "lambda", "not", "or",   "pass", "return", "while", "with"};
    return std::find(std::begin(words), std::end(words), t) != std::end(words);
  }

  struct Deeper {
    Parser& p;
    explicit Deeper(Parser& parser) : p(parser) {
      if (++p.depth_ > kMaxDepth) p.fail(p.peek(), cat("nested deeper than ", kMaxDepth), "depth");
    }
    ~Deeper() { --p.depth_; }
  };

  static NodePtr make(Kind kind, const Token& t) {
    auto n = std::make_unique<Node>();
    n->kind = kind;
    n->line = t.line;
    n->column = t.column;
    n->width = t.width;
    return n;
  }
  static NodePtr make(Kind kind, const Node& first, const Token& op) {
    NodePtr n = make(kind, op);
    n->line = first.line;
    n->column = first.column;
    n->text = op.text;
    return n;
  }
  /// Ends a node: lets the caret cover everything read since the node's first token, on one line.
  void widen(Node& n) const {
    for (const NodePtr& kid : n.kids) n.height = std::max(n.height, kid ? kid->height + 1 : 1);
    if (n.height > kMaxChain)
      source_.fail(n.line, n.column, n.width, "depth",
                   cat("an expression deeper than ", kMaxChain));
    const Token& last = tokens_[at_ ? at_ - 1 : 0];
    if (last.line == n.line && last.column + last.width > n.column)
      n.width = last.column + last.width - n.column;
  }

  // ---- expressions

  NodePtr expression() {
    Deeper deeper(*this);
    if (at_word("lambda")) return lambda();
    NodePtr a = logic("or");
    if (!at_word("if")) return a;
    NodePtr n = make(Kind::ternary, *a, next());
    NodePtr condition = logic("or");
    if (!take_word("else")) fail(peek(), cat("expected \"else\", found ", show(peek())));
    NodePtr otherwise = expression();
    n->kids.push_back(std::move(condition));
    n->kids.push_back(std::move(a));
    n->kids.push_back(std::move(otherwise));
    widen(*n);
    return n;
  }

  NodePtr lambda() {
    NodePtr n = make(Kind::lambda, next());
    while (!at_op(":")) {
      take_op("*");
      n->names.push_back(need_name("a parameter"));
      if (!take_op(",")) break;
    }
    need_op(":", "after the parameters");
    n->kids.push_back(expression());
    widen(*n);
    return n;
  }

  NodePtr logic(std::string_view word) {
    bool is_or = word == "or";
    NodePtr a = is_or ? logic("and") : negation();
    for (int chain = 0; at_word(word); ++chain) {
      if (chain >= kMaxChain)
        fail(peek(), cat("more than ", kMaxChain, " operators in a row"), "depth");
      NodePtr n = make(Kind::logic, *a, next());
      n->kids.push_back(std::move(a));
      n->kids.push_back(is_or ? logic("and") : negation());
      widen(*n);
      a = std::move(n);
    }
    return a;
  }

  NodePtr negation() {
    if (!at_word("not")) return comparison();
    Deeper deeper(*this);
    NodePtr n = make(Kind::unary, peek());
    n->text = next().text;
    n->kids.push_back(negation());
    widen(*n);
    return n;
  }

  NodePtr comparison() {
    NodePtr first = binary(0);
    NodePtr n;
    while (at(TokenKind::op) &&
           (peek().text == "==" || peek().text == "!=" || peek().text == "<" ||
            peek().text == "<=" || peek().text == ">" || peek().text == ">=")) {
      if (!n) {
        n = make(Kind::compare, *first, peek());
        n->kids.push_back(std::move(first));
      }
      if (n->kids.size() > 16) fail(peek(), "more than 16 comparisons in a row", "depth");
      n->names.push_back(next().text);
      n->kids.push_back(binary(0));
      widen(*n);
    }
    if (at_word("in") && in_for_target_ == 0) fail(peek(), "\"in\" is only for loops");
    if (at_word("is")) fail(peek(), "\"is\" has no meaning here; use ==");
    return n ? std::move(n) : std::move(first);
  }

  NodePtr binary(std::size_t level) {
    static const std::vector<std::vector<std::string_view>> levels = {
        {"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%"}};
    if (level == levels.size()) return unary();
    NodePtr a = binary(level + 1);
    for (int chain = 0;; ++chain) {
      if (!at(TokenKind::op) ||
          std::find(levels[level].begin(), levels[level].end(), peek().text) == levels[level].end())
        return a;
      if (chain >= kMaxChain)
        fail(peek(), cat("more than ", kMaxChain, " operators in a row"), "depth");
      NodePtr n = make(Kind::binary, *a, next());
      n->kids.push_back(std::move(a));
      n->kids.push_back(binary(level + 1));
      widen(*n);
      a = std::move(n);
    }
  }

  NodePtr unary() {
    if (!at_op("-") && !at_op("+") && !at_op("~")) return postfix();
    Deeper deeper(*this);
    NodePtr n = make(Kind::unary, peek());
    n->text = next().text;
    n->kids.push_back(unary());
    widen(*n);
    return n;
  }

  NodePtr postfix() {
    NodePtr a = atom();
    for (int chain = 0;; ++chain) {
      if (chain >= kMaxChain / 10) fail(peek(), "too many calls and subscripts in a row", "depth");
      if (take_op(".")) {
        NodePtr n = make(Kind::attribute, *a, peek());
        n->text = need_name("a name after \".\"");
        n->kids.push_back(std::move(a));
        widen(*n);
        a = std::move(n);
      } else if (at_op("(")) {
        NodePtr n = make(Kind::call, *a, next());
        n->kids.push_back(std::move(a));
        while (!at_op(")")) {
          std::string name;
          if (at(TokenKind::name) && peek(1).kind == TokenKind::op && peek(1).text == "=") {
            name = need_name("a keyword");
            next();
          }
          take_op("*");
          n->kids.push_back(expression());
          n->names.push_back(std::move(name));
          if (!take_op(",")) break;
        }
        need_op(")", "after the arguments");
        widen(*n);
        a = std::move(n);
      } else if (at_op("[")) {
        NodePtr n = make(Kind::subscript, *a, next());
        n->kids.push_back(std::move(a));
        while (!at_op("]")) {
          n->kids.push_back(slice());
          if (!take_op(",")) break;
        }
        need_op("]", "after the indices");
        widen(*n);
        a = std::move(n);
      } else {
        return a;
      }
    }
  }

  NodePtr slice() {
    NodePtr lo;
    const Token& first = peek();
    if (!at_op(":")) lo = expression();
    if (!at_op(":")) return lo;
    NodePtr n = make(Kind::slice, first);
    next();
    NodePtr hi;
    if (!at_op(",") && !at_op("]") && !at_op(":")) hi = expression();
    if (at_op(":")) fail(peek(), "a slice with a step has no meaning here");
    n->kids.push_back(std::move(lo));
    n->kids.push_back(std::move(hi));
    widen(*n);
    return n;
  }

  NodePtr atom() {
    const Token& t = peek();
    switch (t.kind) {
      case TokenKind::name: {
        if (keyword(t.text))
          fail(t, cat("expected an expression, found the word \"", t.text, "\""));
        bool constant = t.text == "True" || t.text == "False" || t.text == "None";
        NodePtr n = make(constant ? Kind::constant : Kind::name, t);
        n->text = next().text;
        return n;
      }
      case TokenKind::integer: {
        NodePtr n = make(Kind::integer, t);
        n->integer = t.integer;
        n->huge = t.huge;
        next();
        return n;
      }
      case TokenKind::real: {
        NodePtr n = make(Kind::real, t);
        n->real = t.real;
        next();
        return n;
      }
      case TokenKind::string: {
        NodePtr n = make(Kind::string, t);
        while (at(TokenKind::string)) n->text += next().text;
        return n;
      }
      default: break;
    }
    if (at_op("(") || at_op("[")) {
      bool round = at_op("(");
      NodePtr n = make(round ? Kind::tuple : Kind::list, next());
      std::string_view end = round ? ")" : "]";
      bool comma = false;
      while (!at_op(end)) {
        n->kids.push_back(expression());
        if (!take_op(",")) {
          comma = false;
          break;
        }
        comma = true;
      }
      need_op(end, "to close the bracket");
      widen(*n);
      if (round && n->kids.size() == 1 && !comma) return std::move(n->kids[0]);
      return n;
    }
    if (at_op("{")) {
      NodePtr n = make(Kind::dict, next());
      while (!at_op("}")) {
        n->kids.push_back(expression());
        need_op(":", "between key and value");
        n->kids.push_back(expression());
        if (!take_op(",")) break;
      }
      need_op("}", "to close the bracket");
      widen(*n);
      return n;
    }
    fail(t, cat("expected an expression, found ", show(t)));
  }

  /// a, b, c without brackets.
  NodePtr expression_list() {
    NodePtr first = expression();
    if (!at_op(",")) return first;
    NodePtr n = make(Kind::tuple, *first, peek());
    n->text.clear();
    n->kids.push_back(std::move(first));
    while (take_op(",")) {
      if (at(TokenKind::newline) || at_op("=") || at_op(":") || at_word("in")) break;
      n->kids.push_back(expression());
    }
    widen(*n);
    return n;
  }

  // ---- statements

  void end_line() {
    if (take_op(";")) {
      if (at(TokenKind::newline)) next();
      return;
    }
    if (!at(TokenKind::newline))
      fail(peek(), cat("expected the end of the line, found ", show(peek())));
    next();
  }

  std::vector<StatementPtr> suite() {
    Deeper deeper(*this);
    need_op(":", "at the end of this line");
    std::vector<StatementPtr> out;
    if (!at(TokenKind::newline)) {  // on the same line
      statement(out);
      return out;
    }
    next();
    if (!at(TokenKind::indent)) fail(peek(), "expected an indented block", "indent");
    next();
    while (!at(TokenKind::dedent) && !at(TokenKind::end)) statement(out);
    if (at(TokenKind::dedent)) next();
    return out;
  }

  StatementPtr make(StatementKind kind) {
    auto s = std::make_unique<Statement>();
    s->kind = kind;
    s->line = peek().line;
    s->column = peek().column;
    return s;
  }

  void statement(std::vector<StatementPtr>& out) {
    if (at(TokenKind::newline)) {
      next();
      return;
    }
    if (at(TokenKind::indent))
      fail(peek(), "this line is indented more than the one above", "indent");
    if (at_op("@") || at_word("def") || at_word("class")) return out.push_back(definition());
    if (at_word("for")) {
      StatementPtr s = make(StatementKind::for_);
      next();
      ++in_for_target_;
      s->target = expression_list();
      --in_for_target_;
      if (!take_word("in")) fail(peek(), cat("expected \"in\", found ", show(peek())));
      s->value = expression_list();
      s->body = suite();
      return out.push_back(std::move(s));
    }
    if (at_word("with")) {
      StatementPtr s = make(StatementKind::with);
      next();
      s->value = expression();
      if (take_word("as")) s->target = expression();
      s->body = suite();
      return out.push_back(std::move(s));
    }
    if (at_word("if")) return out.push_back(conditional());
    if (at_word("while")) {
      StatementPtr s = make(StatementKind::while_);
      next();
      s->value = expression();
      s->body = suite();
      return out.push_back(std::move(s));
    }
    if (at_word("import") || at_word("from")) return out.push_back(import());
    if (at_word("pass")) {
      out.push_back(make(StatementKind::pass));
      next();
      return end_line();
    }
    if (at_word("assert")) {
      StatementPtr s = make(StatementKind::assert_);
      next();
      s->value = expression();
      if (take_op(",")) s->extra = expression();
      out.push_back(std::move(s));
      return end_line();
    }
    StatementPtr s = make(StatementKind::expression);
    NodePtr first = expression_list();
    static constexpr std::string_view augmented[] = {"+=", "-=", "*=", "/=", "//=", "%="};
    if (at_op("=")) {
      next();
      s->kind = StatementKind::assign;
      s->target = std::move(first);
      s->value = expression_list();
      if (at_op("=")) fail(peek(), "only one assignment in a line");
    } else if (at_op(":")) {
      next();
      s->kind = StatementKind::assign;
      s->target = std::move(first);
      s->annotation = expression();
      if (take_op("=")) s->value = expression();
    } else if (at(TokenKind::op) && std::find(std::begin(augmented), std::end(augmented),
                                              peek().text) != std::end(augmented)) {
      s->kind = StatementKind::assign;
      s->text = next().text;
      s->target = std::move(first);
      s->value = expression();
    } else {
      s->value = std::move(first);
    }
    out.push_back(std::move(s));
    end_line();
  }

  StatementPtr conditional() {
    Deeper deeper(*this);
    StatementPtr s = make(StatementKind::if_);
    next();
    s->value = expression();
    s->body = suite();
    if (at_word("elif")) s->otherwise.push_back(conditional());
    else if (take_word("else")) s->otherwise = suite();
    return s;
  }

  /// "from x import y as z", "import x as z": only the last name matters.
  StatementPtr import() {
    StatementPtr s = make(StatementKind::import);
    while (!at(TokenKind::newline) && !at(TokenKind::end)) {
      if (at(TokenKind::name) && !keyword(peek().text)) s->text = peek().text;
      next();
    }
    end_line();
    return s;
  }

  StatementPtr definition() {
    std::vector<NodePtr> decorators;
    StatementPtr s = make(StatementKind::function);
    while (take_op("@")) {
      decorators.push_back(expression());
      end_line();
    }
    if (take_word("class")) {
      s->kind = StatementKind::class_;
      s->text = need_name("the name of the class");
      if (take_op("(")) {
        while (!at_op(")") && !at(TokenKind::end)) next();
        need_op(")", "after the bases");
      }
    } else if (take_word("def")) {
      s->text = need_name("the name of the function");
      need_op("(", "after the name of the function");
      while (!at_op(")")) {
        Parameter p;
        p.line = peek().line;
        p.column = peek().column;
        p.name = need_name("a parameter");
        if (take_op(":")) p.annotation = expression();
        if (at_op("=")) fail(peek(), "parameters have no default values");
        s->parameters.push_back(std::move(p));
        if (!take_op(",")) break;
      }
      need_op(")", "after the parameters");
      if (take_op("->")) expression();
    } else {
      fail(peek(), cat("expected \"def\" or \"class\" after a decorator, found ", show(peek())));
    }
    s->body = suite();
    s->decorators = std::move(decorators);
    return s;
  }

  const Source& source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0, in_for_target_ = 0;
};

}  // namespace

std::vector<StatementPtr> parse(const Source& source) { return Parser(source).run(); }

}  // namespace weft::ir::syntax
