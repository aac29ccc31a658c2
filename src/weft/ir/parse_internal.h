// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the syntax tree to the IR. One Builder reads one text: parse.cpp (functions, modules),
// parse_stmt.cpp (suites, loops), parse_block.cpp (blocks, buffers), parse_expr.cpp (expressions),
// parse_call.cpp (T.…). Nodes are built as written: nothing is folded but literals among
// themselves, so that text is faithful.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/base/error.h"
#include "weft/ir/syntax.h"
#include "weft/ir/text.h"

namespace weft::ir {

/// What a name or a piece of text stands for before it becomes an Expr.
struct Value {
  enum class Kind : std::uint8_t {
    none,
    integer,
    real,
    string,
    expr,
    buffer,
    dtype,
    tuple,
    function
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // without a type yet: takes its neighbour's
  bool huge = false;
  double real = 0;
  std::string text;  // string; function: its name
  Expr expr;
  Buffer buffer;
  DType dtype;
  std::vector<Value> items;

  static Value of(Expr e) {
    Value v;
    v.kind = Kind::expr;
    v.expr = std::move(e);
    return v;
  }
  static Value of(Buffer b) {
    Value v;
    v.kind = Kind::buffer;
    v.buffer = std::move(b);
    return v;
  }
  static Value of(DType t) {
    Value v;
    v.kind = Kind::dtype;
    v.dtype = t;
    return v;
  }
  static Value number(std::int64_t i) {
    Value v;
    v.kind = Kind::integer;
    v.integer = i;
    return v;
  }
  static Value number(double d) {
    Value v;
    v.kind = Kind::real;
    v.real = d;
    return v;
  }
  static Value words(std::string s) {
    Value v;
    v.kind = Kind::string;
    v.text = std::move(s);
    return v;
  }
  static Value function(std::string s) {
    Value v;
    v.kind = Kind::function;
    v.text = std::move(s);
    return v;
  }
  bool weak() const { return kind == Kind::integer || kind == Kind::real; }
};

class Builder {
 public:
  using Node = syntax::Node;
  using Statement = syntax::Statement;

  Builder(const syntax::Source& source, const Capture& capture)
      : source_(source), capture_(capture) {}
  std::vector<std::pair<std::string, PrimFunc>> functions(
      const std::vector<syntax::StatementPtr>& text);

 private:
  /// Arguments of a call by name or position.
  struct Args {
    const Node* call = nullptr;
    std::vector<const Node*> positional;
    std::vector<std::pair<std::string, const Node*>> named;
    const Node* get(std::size_t position, std::string_view name) const;  // null when absent
  };
  struct BlockScope {
    Ref<BlockNode> block;
    Exprs values;
    Expr predicate;
    bool reads = false, writes = false, in_function = false;
  };

  // ---- names and errors (parse.cpp)
  [[noreturn]] void fail(const Node& at, std::string_view slug, std::string message,
                         std::string help = "") const;
  [[noreturn]] void fail(const Statement& at, std::string_view slug, std::string message,
                         std::string help = "") const;
  /// Runs a builder and gives its errors a place.
  template <typename F>
  auto guard(const Node& at, F&& f) -> decltype(f()) {
    try {
      return f();
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::parse || e.kind() == ErrorKind::internal) throw;
      fail(at, "types", e.message(), e.refusal().help);
    }
  }
  void define(const std::string& name, Value value) { scope_.emplace_back(name, std::move(value)); }
  const Value* find(std::string_view name) const;
  std::vector<std::string> known_names() const;
  /// "axis.remap" for `T.axis.remap`; empty when the node names nothing of the script's vocabulary.
  std::string script_name(const Node& n) const;
  std::string dotted(const Node& n) const;
  PrimFunc function(const Statement& s, std::string* key);
  void decorators(const Statement& s, std::string_view wanted, bool* lowered, std::string* key_name,
                  std::string* symbol);

  // ---- expressions (parse_expr.cpp)
  Value eval(const Node& n);
  Value captured(const Node& n, const std::string& name);
  Value attribute(const Node& n);
  Value subscript(const Node& n);
  Value binary(const Node& at, std::string_view op, Value a, Value b);
  Value compare(const Node& n);
  Expr raw_binary(const Node& at, ExprKind kind, Expr a, Expr b);
  /// An expression; a literal without a type becomes `want` (or int64 / float32 when it is
  /// `handle`).
  Expr expr(const Node& n, DType want = dtypes::handle) { return to_expr(n, eval(n), want); }
  Expr to_expr(const Node& at, const Value& v, DType want = dtypes::handle);
  Expr condition(const Node& n);
  std::pair<Expr, Expr> matched(const Node& at, const Value& a, const Value& b);
  std::int64_t constant(const Node& n, std::string_view what);
  std::string text(const Node& n, std::string_view what);
  DType dtype(const Node& n);
  bool flag(const Node& n);
  Json json(const Node& n);
  Annotations annotations(const Node& n);
  Exprs tuple(const Node& n);
  Exprs indices(const Node& subscript);
  BufferRegion region(const Node& n);
  Range range(const Node& at, const Value& lo, const Value& hi);
  Reducer reducer(const Node& n, const std::vector<DType>& types);

  // ---- T.name(...) (parse_call.cpp)
  Value call(const Node& n);
  Value script_call(const Node& n, const std::string& name);
  Value typed(const Node& n, DType t);
  Value function_call(const Node& n, const std::string& name, std::size_t first_arg);
  Args args(const Node& call, std::initializer_list<std::string_view> names,
            std::size_t at_least = 0);

  // ---- statements (parse_stmt.cpp)
  Stmt suite(const std::vector<syntax::StatementPtr>& list);
  Stmt nested_suite(const std::vector<syntax::StatementPtr>& list);
  Stmt statement(const Statement& s);
  Stmt for_loop(const Statement& s);
  Stmt with(const Statement& s);
  Stmt store(const Statement& s);
  Stmt expression_statement(const Statement& s);
  Stmt atomic(const Node& call, const std::string& op);
  Stmt launch(const Statement& s);
  Stmt collective(const Node& n);
  Stmt block(const Statement& s);
  /// `x = …`: either a plain name (null) or a binder over the rest of the suite.
  std::function<Stmt(Stmt)> assignment(const Statement& s);
  std::function<Stmt(Stmt)> storage_binder(const Node& call, const std::string& name,
                                           const std::string& target);
  Var token(const Node& n);
  std::vector<std::string> target_names(const Node& n);

  // ---- blocks and buffers (parse_block.cpp)
  bool block_statement(const Statement& s,
                       const std::string& name);  // T.where, T.reads … ; false: none of these
  bool block_assignment(const Statement& s,
                        const std::string& name);  // T.axis…, T.alloc_buffer, T.match_buffer
  void axis(const Statement& s, const std::string& name);
  void match_buffer(const Statement& s, const std::string& target);
  /// Shape, dtype and the rest of T.Buffer / T.alloc_buffer / T.match_buffer / T.allocate.
  /// `declares`: names in quotes are new extents, which the caller's array gives.
  Buffer buffer(const Node& at, const std::string& name, const Args& args, std::size_t first,
                bool declares = false);
  Buffer annotation_buffer(const Node& n, const std::string& name);
  Exprs shape(const Node& n, bool declares);

  const syntax::Source& source_;
  const Capture& capture_;
  std::set<std::string, std::less<>> prefixes_{"T", "I", "tir", "tvm", "weft", "script"};
  std::vector<std::pair<std::string, Value>> scope_;
  std::unordered_map<const VarNode*, Range> loops_;
  std::map<std::string, Var> tokens_;
  std::set<std::string> function_names_, class_names_;
  std::vector<std::pair<std::string, PrimFunc>> captured_functions_;
  Ref<PrimFuncNode> function_;   // while one is being read
  BlockScope* block_ = nullptr;  // the block whose suite is being read; null deeper inside
};

}  // namespace weft::ir
