// SPDX-License-Identifier: Apache-2.0
#pragma once
// Traversal and rewriting. A Visitor walks every child; a Rewriter returns the same node when
// nothing under it changed, so untouched subtrees stay shared. Override the case you care about and
// call the base for the children.

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "weft/ir/node.h"

namespace weft::ir {

class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void visit(const Expr& e);
  virtual void visit(const Stmt& s);
  /// Each part of a region, block iterators' domains and bindings are visited too.
  virtual void visit_region(const BufferRegion& region);
  virtual void visit_block(const Block& block);

 protected:
  virtual void visit_var(const VarNode*) {}
  virtual void visit_load(const LoadNode* e);
  virtual void visit_call(const CallNode* e);
  virtual void visit_store(const StoreNode* s);
  virtual void visit_for(const ForNode* s);
  virtual void visit_block_realize(const BlockRealizeNode* s);
  virtual void visit_allocate(const AllocateNode* s);
  virtual void visit_launch(const LaunchNode* s);
  virtual void visit_if(const IfNode* s);
};

class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual Expr rewrite(const Expr& e);
  virtual Stmt rewrite(const Stmt& s);
  virtual Block rewrite_block(const Block& block);
  virtual BufferRegion rewrite_region(const BufferRegion& region);
  /// Uses of a buffer anywhere (loads, stores, regions, allocations). Default: unchanged.
  virtual Buffer rewrite_buffer(const Buffer& buffer) { return buffer; }

 protected:
  virtual Expr rewrite_var(const Expr& e) { return e; }
  virtual Expr rewrite_load(const Expr& e);
  virtual Expr rewrite_call(const Expr& e);
  virtual Expr rewrite_default(const Expr& e);  // children rewritten, node rebuilt through build.h
  virtual Stmt rewrite_store(const Stmt& s);
  virtual Stmt rewrite_for(const Stmt& s);
  virtual Stmt rewrite_if(const Stmt& s);
  virtual Stmt rewrite_allocate(const Stmt& s);
  virtual Stmt rewrite_block_realize(const Stmt& s);
  virtual Stmt rewrite_seq(const Stmt& s);
  virtual Stmt rewrite_default(const Stmt& s);
  Range rewrite_range(const Range& r) { return {rewrite(r.min), rewrite(r.extent)}; }
  Exprs rewrite_all(const Exprs& es, bool* changed);
};

using VarMap = std::unordered_map<const VarNode*, Expr>;
using BufferMap = std::unordered_map<const BufferNode*, Buffer>;

/// Replaces free variables; bound ones are different nodes and so are untouched.
Expr substitute(const Expr& e, const VarMap& map);
Stmt substitute(const Stmt& s, const VarMap& map);
BufferRegion substitute(const BufferRegion& region, const VarMap& map);
Range substitute(const Range& range, const VarMap& map);
/// Replaces buffers at every use.
Stmt replace_buffers(const Stmt& s, const BufferMap& map);
Expr replace_buffers(const Expr& e, const BufferMap& map);
/// A copy in which every bound variable (loops, iters, lets), block id and allocated buffer is
/// fresh.
Stmt deep_copy(const Stmt& s);
PrimFunc deep_copy(const PrimFunc& f);

/// Calls f on every node, parents before children.
void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& f);
void for_each_expr(const Stmt& s, const std::function<void(const Expr&)>& f);
void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& f);

/// Variables used in e (not bound inside).
std::unordered_set<const VarNode*> used_vars(const Expr& e);
bool uses_var(const Expr& e, const VarNode* var);
bool uses_any(const Expr& e, const std::unordered_set<const VarNode*>& vars);
/// Variables used but not bound in s.
std::unordered_set<const VarNode*> free_vars(const Stmt& s);
std::unordered_set<const BufferNode*> used_buffers(const Stmt& s);

}  // namespace weft::ir
