// SPDX-License-Identifier: Apache-2.0
#pragma once
// The printer of the text form, shared by print.cpp (names, lines, functions), print_stmt.cpp
// (statements, blocks) and print_expr.cpp (expressions).
// Text is appended to one line at a time; names are given to nodes where they are defined and are
// unique among the names in scope.

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/ir/text.h"

namespace weft::ir {

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  void module(const IRModule& m);
  void func(const PrimFunc& f, const std::string& key);
  /// The statements of one suite, one level deeper than the header above them.
  void suite(const Stmt& s);
  void stmt(const Stmt& s, bool last);
  /// Binding strength of the place an expression is printed in.
  enum Level { kAny, kTernary, kOr, kAnd, kNot, kCompare, kAdd, kMul, kUnary, kPostfix };
  /// `expected`: the type that an integer literal without a type would get there.
  void expr(const Expr& e, Level level = kAny, DType expected = dtypes::int64);
  void region(const BufferRegion& r);
  void header();
  std::string finish();

 private:
  struct Mark {
    std::size_t line, begin, end;
  };
  /// Part of a line printed ahead of what stands left of it.
  struct Piece {
    std::string text;
    std::vector<Mark> marks;
  };
  Piece piece(const std::function<void()>& print_it);
  void put(const Piece& p);

  // print_expr.cpp
  void expr_body(const Expr& e, Level level, DType expected);
  void binary(const BinaryNode* e, ExprKind kind, Level level);
  void call(const CallNode* e);
  void reduce(const ReduceNode* e);
  void exprs(const Exprs& list, DType expected = dtypes::int64);
  void tuple(const Exprs& list);
  void range(const Range& r, bool point);
  void reducer(const Reducer& r);

  // print.cpp
  void flat_suite(const std::vector<Stmt>& list);
  void for_stmt(const ForNode* f);
  void block(const BlockRealizeNode* r);
  void block_iters(const BlockRealizeNode* r);
  void block_contents(const Block& b, bool regions);
  void launch(const LaunchNode* l);
  void collective(const CollectiveNode* c);
  void buffer_args(const Buffer& b);
  void symbols(const Buffer& b);
  void bounds(const Expr& lo, const Expr& extent);
  void params(const PrimFunc& f, const std::string& key, bool lowered);

  const std::string& name_of(const void* node, const std::string& hint);
  std::string define(const void* node, const std::string& hint);
  std::string free_name(const std::string& hint) const;
  std::size_t open() const { return scope_.size(); }
  void close(std::size_t mark);

  void put(std::string_view text) { line_ += text; }
  void end_line();
  void indent() { ++depth_; }
  void dedent() { --depth_; }
  void begin_mark(const void* node);
  void end_mark(const void* node);

  PrintOptions options_;
  std::vector<std::string> lines_;
  std::string line_;
  int depth_ = 0;
  std::vector<Mark> marks_;
  std::vector<std::size_t> mark_starts_;
  std::unordered_map<const void*, std::string> names_;
  std::unordered_map<std::string, int> used_;
  std::vector<const void*> scope_;
  std::unordered_map<const VarNode*, Range> loops_;  // ranges of loop variables, for axis.remap
};

/// ("a", "b"): a tuple of strings.
std::string quoted_tuple(const std::vector<std::string>& names);
/// A JSON value in Python's spelling.
std::string python_literal(const Json& value);
/// The type's name after "T.": "float32", "bool", "handle".
std::string script_type(DType t);
/// "T.float32(0.5)": always typed.
std::string float_literal(double value, DType t);

}  // namespace weft::ir
