// SPDX-License-Identifier: Apache-2.0
#include "weft/stages/blocks.h"

#include <algorithm>
#include <utility>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::stages {

using namespace ir;

namespace {

[[noreturn]] void refuse(std::string_view slug, std::string message, std::string help) {
  throw Error(ErrorKind::lower, cat("stages.", slug), std::move(message)).help(std::move(help));
}

bool is_leaf(const Block& block) {
  bool leaf = true;
  for_each_stmt(block->body,
                [&](const Stmt& c) { leaf = leaf && c->kind != StmtKind::block_realize; });
  return leaf;
}

std::string_view statement_name(StmtKind kind) {
  switch (kind) {
    case StmtKind::store: return "a store";
    case StmtKind::if_: return "an if with an else";
    case StmtKind::while_: return "a while loop";
    case StmtKind::let: return "a let";
    case StmtKind::assert_: return "an assertion";
    case StmtKind::evaluate: return "an evaluated call";
    case StmtKind::allocate: return "an allocation";
    case StmtKind::launch: return "a kernel launch";
    case StmtKind::async: return "an asynchronous statement";
    case StmtKind::wait: return "a wait";
    case StmtKind::collective: return "a collective";
    case StmtKind::seq:
    case StmtKind::for_:
    case StmtKind::block_realize: break;
  }
  return "a statement";
}

/// Iterators count from 0, as targets do, where their starts are known.
void count_from_zero(Leaf& leaf) {
  Ref<BlockNode> copy;
  VarMap moved;
  for (std::size_t k = 0; k < leaf.block->iters.size(); ++k) {
    const IterVar& old = leaf.block->iters[k];
    const auto* min = as<IntImmNode>(arith::simplify(old.dom.min));
    if (!min || min->value == 0) continue;
    if (!copy) copy = edit(leaf.block);
    IterVar& fresh = copy->iters[k];
    fresh.var = make_var(old.var->name, old.var->dtype);
    fresh.dom.min = make_int(0, old.var->dtype);
    const Expr start = make_int(min->value, old.var->dtype);
    moved[old.var.get()] = fresh.var + start;
    leaf.iter_values[k] = arith::simplify(leaf.iter_values[k] - start);
  }
  if (!copy) return;
  copy->body = substitute(copy->body, moved);
  if (copy->init) copy->init = substitute(copy->init, moved);
  copy->reads.clear(), copy->writes.clear();  // they name the old iterators; nobody asks for them
  leaf.block = copy;
}

class Collector {
 public:
  explicit Collector(std::vector<Buffer>* temporaries) : temporaries_(temporaries) {}

  void walk(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::seq:
        for (const Stmt& c : as<SeqNode>(s)->stmts) walk(c);
        return;
      case StmtKind::for_: return loop(as<ForNode>(s));
      case StmtKind::if_:
        if (const auto* i = as<IfNode>(s); !i->else_case) {
          conditions_.push_back(substitute(i->condition, outer_));
          walk(i->then_case);
          conditions_.pop_back();
          return;
        }
        break;
      case StmtKind::block_realize: return realize(as<BlockRealizeNode>(s));
      default: break;
    }
    refuse("statement", cat(statement_name(s->kind), " outside blocks"),
           "legal outside blocks are loops, sequences and if without else");
  }

  std::vector<Leaf> leaves;

 private:
  void loop(const ForNode* f) {
    const std::size_t before = leaves.size();
    loops_.push_back(f);
    walk(f->body);
    loops_.pop_back();
    if (leaves.size() - before > 1) {
      refuse("fused",
             cat("loop ", f->var->name, " holds ", leaves.size() - before, " blocks (",
                 leaves[before].block->name, ", ", leaves[before + 1].block->name,
                 " ...); each block needs loops of its own"),
             "leave out compute_at; the target places blocks itself");
    }
  }

  void realize(const BlockRealizeNode* r) {
    const Block& block = r->block;
    if (!block->execution.axis.empty())
      refuse("execution",
             cat("block ", block->name, " is given to a part of axis ", block->execution.axis,
                 "; here all parts of an axis run every block"),
             "leave out T.execution");
    if (!block->match_buffers.empty())
      refuse(
          "match_buffer",
          cat("block ", block->name, " matches buffer ", block->match_buffers.front().buffer->name,
              " to a region; blocks reach their buffers themselves"),
          "index the source buffer directly");
    for (const Buffer& b : block->alloc_buffers) temporaries_->push_back(b);
    const std::size_t mark = conditions_.size();
    conditions_.push_back(substitute(r->predicate, outer_));
    Exprs values;
    for (const Expr& v : r->iter_values) values.push_back(substitute(v, outer_));
    if (is_leaf(block)) {
      leaves.push_back({block, loops_, std::move(values), conditions_, around_});
      count_from_zero(leaves.back());
    } else {
      if (block->init)
        refuse("init", cat("block ", block->name, " holds blocks and an init"),
               "decompose the reduction first");
      VarMap saved = outer_;
      for (std::size_t k = 0; k < values.size(); ++k) outer_[block->iters[k].var.get()] = values[k];
      const std::size_t around = std::exchange(around_, loops_.size());
      walk(block->body);
      around_ = around;
      outer_ = std::move(saved);
    }
    conditions_.resize(mark);
  }

  std::vector<Buffer>* temporaries_;
  std::vector<const ForNode*> loops_;
  std::size_t around_ = 0;  // of the loops, outside the block at hand
  Exprs conditions_;
  VarMap outer_;
};

}  // namespace

std::vector<Leaf> collect_leaves(const Stmt& body, std::vector<Buffer>* temporaries) {
  Collector c(temporaries);
  c.walk(body);
  return std::move(c.leaves);
}

std::optional<Leaf> single_leaf(const Stmt& nest) {
  Leaf leaf;
  const Stmt* at = &nest;
  while (const auto* loop = as<ForNode>(*at)) {
    leaf.loops.push_back(loop);
    at = &loop->body;
  }
  const auto* realize = as<BlockRealizeNode>(*at);
  if (!realize || !is_const_int_value(realize->predicate, 1) || !is_leaf(realize->block))
    return std::nullopt;
  leaf.block = realize->block;
  leaf.iter_values = realize->iter_values;
  return leaf;
}

std::optional<std::vector<const IterVar*>> iterators_of_loops(const Leaf& leaf) {
  if (leaf.loops.size() != leaf.iter_values.size()) return std::nullopt;
  std::vector<const IterVar*> out;
  for (const ForNode* loop : leaf.loops) {
    auto at = std::find_if(leaf.iter_values.begin(), leaf.iter_values.end(),
                           [&](const Expr& v) { return v.get() == loop->var.get(); });
    if (at == leaf.iter_values.end()) return std::nullopt;
    out.push_back(&leaf.block->iters[static_cast<std::size_t>(at - leaf.iter_values.begin())]);
  }
  return out;
}

std::int64_t constant_of(const Expr& e, const std::string& what) {
  if (const auto* i = as<IntImmNode>(arith::simplify(e))) return i->value;
  refuse("symbolic", cat(what, " is not a constant; the machine needs constant extents"),
         "build the program for one shape");
}

}  // namespace weft::stages
