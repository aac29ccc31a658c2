// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finding and editing places in the immutable tree. A Path is the chain of statements from a
// function's body to a target; an edit copies that chain and shares everything else. There is no
// index to keep in step: a scheduled kernel has some tens of statements, so walking it costs less
// than a microsecond.

#include <optional>
#include <string>
#include <vector>

#include "weft/ir/node.h"
#include "weft/ir/visit.h"
#include "weft/schedule/refs.h"

namespace weft::schedule {

struct Path {
  std::string func;             // name of the function in its module
  std::vector<ir::Stmt> nodes;  // nodes[0]: the function's body; back(): the target

  const ir::Stmt& target() const { return nodes.back(); }
  const ir::ForNode* loop() const { return ir::as<ir::ForNode>(nodes.back()); }
  const ir::BlockRealizeNode* realize() const { return ir::as<ir::BlockRealizeNode>(nodes.back()); }
  /// Index of the nearest enclosing block realize strictly above the target; npos for the root
  /// block.
  std::size_t scope_index() const;
  const ir::BlockRealizeNode* scope() const;
  /// Loops between the scope and the target, outermost first, without the target.
  std::vector<const ir::ForNode*> loops() const;
  /// The same path cut after nodes[index].
  Path prefix(std::size_t index) const;
};

inline constexpr std::size_t npos = static_cast<std::size_t>(-1);

/// Direct children: of a block realize its body (init is not a place).
std::vector<ir::Stmt> children(const ir::Stmt& s);
/// `parent` with the child `from` (by identity) replaced.
ir::Stmt with_child(const ir::Stmt& parent, const ir::Stmt& from, const ir::Stmt& to);
ir::Stmt with_body(const ir::ForNode* loop, ir::Stmt body);
ir::Stmt with_block(const ir::BlockRealizeNode* realize, ir::Block block);

std::optional<Path> find_block(const ir::IRModule& m, BlockRef block);
std::optional<Path> find_loop(const ir::IRModule& m, const LoopRef& loop);
std::optional<Path> find_block(const ir::Stmt& body, std::uint64_t id);
std::optional<Path> find_loop(const ir::Stmt& body, const ir::VarNode* var);
std::optional<Path> find_stmt(const ir::Stmt& body, const ir::StmtNode* target);

/// The function's body after replacing nodes[index] (default: the target).
ir::Stmt replace(const Path& path, ir::Stmt with, std::size_t index = npos);
/// The function's body without the target and the loops that become empty. Null when nothing would
/// remain in the target's scope.
ir::Stmt remove(const Path& path);
ir::IRModule with_body(const ir::IRModule& m, const std::string& func, ir::Stmt body);

/// The statements of a body: those of a sequence, or the one.
std::vector<ir::Stmt> statements(const ir::Stmt& body);

/// A block directly inside a scope, with the loops around it (outermost first).
struct Leaf {
  const ir::BlockRealizeNode* realize = nullptr;
  std::vector<const ir::ForNode*> loops;
  const ir::BlockNode* block() const { return realize->block.get(); }
};
/// All of them, in program order; `s` is any statement of the scope.
std::vector<Leaf> leaves(const ir::Stmt& s);
/// Those under the path's target, with all loops of the scope around each.
std::vector<Leaf> leaves_under(const Path& path);

/// Rewrites loops and block realizes of one scope without entering blocks: variables through `map`.
class ScopeRewriter : public ir::Rewriter {
 public:
  explicit ScopeRewriter(const ir::VarMap* map) : map_(map) {}

 protected:
  ir::Expr rewrite_var(const ir::Expr& e) override {
    if (!map_) return e;
    auto it = map_->find(static_cast<const ir::VarNode*>(e.get()));
    return it == map_->end() ? e : it->second;
  }
  ir::Stmt rewrite_block_realize(const ir::Stmt& s) override;

 private:
  const ir::VarMap* map_;
};

}  // namespace weft::schedule
