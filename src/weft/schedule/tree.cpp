// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/tree.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/ir/build.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Calls f(child) for each child until it returns true.
template <typename F>
bool any_child(const Stmt& s, F&& f) {
  switch (s->kind) {
    case StmtKind::seq:
      for (const Stmt& child : static_cast<const SeqNode*>(s.get())->stmts) {
        if (f(child)) return true;
      }
      return false;
    case StmtKind::for_: return f(static_cast<const ForNode*>(s.get())->body);
    case StmtKind::if_: {
      const auto* n = static_cast<const IfNode*>(s.get());
      return f(n->then_case) || (n->else_case && f(n->else_case));
    }
    case StmtKind::while_: return f(static_cast<const WhileNode*>(s.get())->body);
    case StmtKind::let: return f(static_cast<const LetStmtNode*>(s.get())->body);
    case StmtKind::allocate: return f(static_cast<const AllocateNode*>(s.get())->body);
    case StmtKind::block_realize:
      return f(static_cast<const BlockRealizeNode*>(s.get())->block->body);
    case StmtKind::launch: return f(static_cast<const LaunchNode*>(s.get())->body);
    case StmtKind::async: return f(static_cast<const AsyncNode*>(s.get())->body);
    default: return false;
  }
}

/// Notes the statements on the way once the target is found, it first.
template <typename Match>
bool search(const Stmt& s, const Match& match, std::vector<Stmt>& nodes) {
  if (!match(s) && !any_child(s, [&](const Stmt& child) { return search(child, match, nodes); }))
    return false;
  nodes.push_back(s);
  return true;
}

template <typename Match>
std::optional<Path> find_in(const Stmt& body, const Match& match) {
  Path path;
  if (!search(body, match, path.nodes)) return std::nullopt;
  std::reverse(path.nodes.begin(), path.nodes.end());
  return path;
}

template <typename Match>
std::optional<Path> find_in(const IRModule& m, const Match& match) {
  for (const auto& [name, f] : m->functions) {
    if (auto path = find_in(f->body, match)) {
      path->func = name;
      return path;
    }
  }
  return std::nullopt;
}

auto is_block(std::uint64_t id) {
  return [id](const Stmt& s) {
    return s->kind == StmtKind::block_realize &&
           static_cast<const BlockRealizeNode*>(s.get())->block->id == id;
  };
}

auto is_loop(const VarNode* var) {
  return [var](const Stmt& s) {
    return s->kind == StmtKind::for_ && static_cast<const ForNode*>(s.get())->var.get() == var;
  };
}

void collect(const Stmt& s, std::vector<const ForNode*>& loops, std::vector<Leaf>& out) {
  if (s->kind == StmtKind::block_realize) {
    out.push_back({static_cast<const BlockRealizeNode*>(s.get()), loops});
    return;
  }
  const bool is_for = s->kind == StmtKind::for_;
  if (is_for) loops.push_back(static_cast<const ForNode*>(s.get()));
  any_child(s, [&](const Stmt& child) {
    collect(child, loops, out);
    return false;
  });
  if (is_for) loops.pop_back();
}

}  // namespace

std::size_t Path::scope_index() const {
  for (std::size_t i = nodes.size() - 1; i-- > 0;) {
    if (nodes[i]->kind == StmtKind::block_realize) return i;
  }
  return npos;
}

const BlockRealizeNode* Path::scope() const {
  const std::size_t i = scope_index();
  return i == npos ? nullptr : static_cast<const BlockRealizeNode*>(nodes[i].get());
}

std::vector<const ForNode*> Path::loops() const {
  std::vector<const ForNode*> out;
  const std::size_t scope = scope_index();
  for (std::size_t i = scope == npos ? 0 : scope + 1; i + 1 < nodes.size(); ++i) {
    if (const auto* loop = as<ForNode>(nodes[i])) out.push_back(loop);
  }
  return out;
}

Path Path::prefix(std::size_t index) const {
  return {func,
          std::vector<Stmt>(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(index) + 1)};
}

std::vector<Stmt> children(const Stmt& s) {
  std::vector<Stmt> out;
  any_child(s, [&](const Stmt& child) {
    out.push_back(child);
    return false;
  });
  return out;
}

Stmt with_body(const ForNode* loop, Stmt body) {
  auto out = make_ref<ForNode>(loop->var, loop->min, loop->extent, loop->for_kind, loop->axis,
                               loop->annotations, std::move(body));
  out->line = loop->line;
  return out;
}

Stmt with_block(const BlockRealizeNode* realize, Block block) {
  auto out = make_ref<BlockRealizeNode>(realize->iter_values, realize->predicate, std::move(block));
  out->line = realize->line;
  return out;
}

Stmt with_child(const Stmt& parent, const Stmt& from, const Stmt& to) {
  switch (parent->kind) {
    case StmtKind::seq: {
      std::vector<Stmt> stmts = static_cast<const SeqNode*>(parent.get())->stmts;
      for (Stmt& s : stmts) {
        if (s == from) {
          s = to;
          break;
        }
      }
      return seq(std::move(stmts));
    }
    case StmtKind::for_: return with_body(static_cast<const ForNode*>(parent.get()), to);
    case StmtKind::if_: {
      const auto* n = static_cast<const IfNode*>(parent.get());
      if (n->then_case == from) return make_ref<IfNode>(n->condition, to, n->else_case);
      return make_ref<IfNode>(n->condition, n->then_case, to);
    }
    case StmtKind::while_:
      return make_ref<WhileNode>(static_cast<const WhileNode*>(parent.get())->condition, to);
    case StmtKind::let: {
      const auto* n = static_cast<const LetStmtNode*>(parent.get());
      return make_ref<LetStmtNode>(n->var, n->value, to);
    }
    case StmtKind::allocate: {
      const auto* n = static_cast<const AllocateNode*>(parent.get());
      return make_ref<AllocateNode>(n->buffer, n->annotations, to);
    }
    case StmtKind::block_realize: {
      const auto* n = static_cast<const BlockRealizeNode*>(parent.get());
      auto block = edit(n->block);
      block->body = to;
      return with_block(n, block);
    }
    case StmtKind::launch: {
      const auto* n = static_cast<const LaunchNode*>(parent.get());
      return make_ref<LaunchNode>(n->name, n->axes, to);
    }
    case StmtKind::async: {
      const auto* n = static_cast<const AsyncNode*>(parent.get());
      return make_ref<AsyncNode>(n->queue, n->token, to);
    }
    default: WEFT_CHECK(false, "statement has no children"); return parent;
  }
}

std::optional<Path> find_block(const IRModule& m, BlockRef block) {
  return find_in(m, is_block(block.id));
}
std::optional<Path> find_loop(const IRModule& m, const LoopRef& loop) {
  if (!loop.var) return std::nullopt;
  return find_in(m, is_loop(loop.var.get()));
}
std::optional<Path> find_block(const Stmt& body, std::uint64_t id) {
  return find_in(body, is_block(id));
}
std::optional<Path> find_loop(const Stmt& body, const VarNode* var) {
  return find_in(body, is_loop(var));
}
std::optional<Path> find_stmt(const Stmt& body, const StmtNode* target) {
  return find_in(body, [target](const Stmt& s) { return s.get() == target; });
}

Stmt replace(const Path& path, Stmt with, std::size_t index) {
  if (index == npos) index = path.nodes.size() - 1;
  for (std::size_t i = index; i-- > 0;) with = with_child(path.nodes[i], path.nodes[i + 1], with);
  return with;
}

Stmt remove(const Path& path) {
  for (std::size_t i = path.nodes.size() - 1; i-- > 0;) {
    const Stmt& parent = path.nodes[i];
    if (parent->kind == StmtKind::block_realize) return nullptr;
    if (const auto* list = as<SeqNode>(parent); list && list->stmts.size() > 1) {
      std::vector<Stmt> rest;
      for (const Stmt& s : list->stmts) {
        if (s != path.nodes[i + 1]) rest.push_back(s);
      }
      return replace(path, seq(std::move(rest)), i);
    }
    if (const auto* branch = as<IfNode>(parent); branch && branch->else_case) {
      const bool first = branch->then_case == path.nodes[i + 1];
      return replace(path,
                     first ? if_then(logical_not(branch->condition), branch->else_case)
                           : if_then(branch->condition, branch->then_case),
                     i);
    }
  }
  return nullptr;
}

IRModule with_body(const IRModule& m, const std::string& func, Stmt body) {
  auto out = make_ref<IRModuleNode>(*m);
  for (auto& [name, f] : out->functions) {
    if (name != func) continue;
    auto changed = edit(f);
    changed->body = std::move(body);
    f = changed;
    break;
  }
  return out;
}

std::vector<Stmt> statements(const Stmt& body) {
  if (const auto* list = as<SeqNode>(body)) return list->stmts;
  return {body};
}

std::vector<Leaf> leaves(const Stmt& s) {
  std::vector<Leaf> out;
  std::vector<const ForNode*> loops;
  collect(s, loops, out);
  return out;
}

std::vector<Leaf> leaves_under(const Path& path) {
  std::vector<Leaf> out;
  std::vector<const ForNode*> loops = path.loops();
  collect(path.target(), loops, out);
  return out;
}

Stmt ScopeRewriter::rewrite_block_realize(const Stmt& s) {
  const auto* n = static_cast<const BlockRealizeNode*>(s.get());
  bool changed = false;
  Exprs values = rewrite_all(n->iter_values, &changed);
  Expr predicate = rewrite(n->predicate);
  if (!changed && predicate == n->predicate) return s;
  return make_ref<BlockRealizeNode>(std::move(values), std::move(predicate), n->block);
}

}  // namespace weft::schedule
