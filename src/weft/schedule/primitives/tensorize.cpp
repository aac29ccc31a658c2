// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/tensorize.h"

#include <unordered_map>
#include <unordered_set>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"
#include "weft/schedule/analysis.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Below blocks without iterators: what a function or a tile computes.
Stmt core(Stmt s) {
  while (true) {
    const auto* realize = as<BlockRealizeNode>(s);
    if (!realize || !realize->block->iters.empty() || realize->block->init) return s;
    if (!is_const_int_value(realize->predicate, 1)) return s;
    s = realize->block->body;
  }
}

/// Walks meaning and program side by side. Variables and buffers of the meaning correspond to those
/// of the program; a buffer's indices may differ by an offset that the tile fixes.
class Match {
 public:
  explicit Match(arith::Analyzer& analyzer) : analyzer_(analyzer) {}

  struct Operand {
    Buffer buffer;  // of the program
    Exprs base;     // its index where the operand begins
  };
  std::unordered_map<const BufferNode*, Operand> operands;
  std::string why;  // the first difference

  bool stmt(const Stmt& d, const Stmt& p) {
    if (const Stmt inner = skip_unit(d); inner != d) return stmt(inner, p);
    if (const Stmt inner = skip_unit(p); inner != p) return stmt(d, inner);
    if (d->kind != p->kind) return fail("the statements have different shapes");
    switch (d->kind) {
      case StmtKind::for_: {
        const auto *a = as<ForNode>(d), *b = as<ForNode>(p);
        if (!same_extent(a->extent, b->extent)) {
          return fail(cat("loop \"", b->var->name, "\" runs ", print(b->extent),
                          " times, the instruction needs ", print(a->extent)));
        }
        bind(a->var, b->var);
        return stmt(a->body, b->body);
      }
      case StmtKind::seq: {
        const auto &a = as<SeqNode>(d)->stmts, &b = as<SeqNode>(p)->stmts;
        if (a.size() != b.size()) return fail("the number of statements differs");
        for (std::size_t i = 0; i < a.size(); ++i) {
          if (!stmt(a[i], b[i])) return false;
        }
        return true;
      }
      case StmtKind::store: {
        const auto *a = as<StoreNode>(d), *b = as<StoreNode>(p);
        return access(a->buffer, a->indices, b->buffer, b->indices) && expr(a->value, b->value);
      }
      case StmtKind::if_: {
        const auto *a = as<IfNode>(d), *b = as<IfNode>(p);
        if (!a->else_case != !b->else_case) return fail("only one side has an else");
        return expr(a->condition, b->condition) && stmt(a->then_case, b->then_case) &&
               (!a->else_case || stmt(a->else_case, b->else_case));
      }
      case StmtKind::block_realize: return block(as<BlockRealizeNode>(d), as<BlockRealizeNode>(p));
      default: return fail("a statement that instructions do not have");
    }
  }

 private:
  bool fail(std::string reason) {
    if (why.empty()) why = std::move(reason);
    return false;
  }
  static Stmt skip_unit(const Stmt& s) {
    // Blocks without iterators and loops that run once add nothing; the loop's variable is then 0.
    if (const auto* loop = as<ForNode>(s); loop && is_const_int_value(loop->extent, 1)) {
      return substitute(loop->body, {{loop->var.get(), loop->min}});
    }
    return core(s);
  }
  void bind(const Var& d, const Var& p) {
    vars_[d.get()] = p;
    inner_.insert(p.get());
  }
  bool same_extent(const Expr& a, const Expr& b) {
    return analyzer_.prove_equal(substitute(a, vars_), b);
  }

  bool block(const BlockRealizeNode* d, const BlockRealizeNode* p) {
    const BlockNode *a = d->block.get(), *b = p->block.get();
    std::vector<std::size_t> left, right;  // iterators that count
    for (std::size_t i = 0; i < a->iters.size(); ++i) {
      if (!is_const_int_value(a->iters[i].dom.extent, 1)) left.push_back(i);
    }
    for (std::size_t i = 0; i < b->iters.size(); ++i) {
      analyzer_.bind(b->iters[i].var, b->iters[i].dom);  // (o * 16 + i) // 16 is o
      if (!is_const_int_value(b->iters[i].dom.extent, 1)) {
        right.push_back(i);
      } else {
        inner_.insert(b->iters[i].var.get());
        fixed_[b->iters[i].var.get()] = b->iters[i].dom.min;
      }
    }
    if (left.size() != right.size())
      return fail(cat("block \"", b->name, "\" has ", right.size(), " iterators, the instruction ",
                      left.size()));
    for (std::size_t i = 0; i < a->iters.size(); ++i) {
      if (is_const_int_value(a->iters[i].dom.extent, 1))
        vars_[a->iters[i].var.get()] = a->iters[i].dom.min;
    }
    for (std::size_t k = 0; k < left.size(); ++k) {
      const IterVar &x = a->iters[left[k]], &y = b->iters[right[k]];
      if (x.kind != y.kind)
        return fail(cat("iterators \"", y.var->name, "\" and \"", x.var->name,
                        "\" are of different kinds"));
      if (!same_extent(x.dom.extent, y.dom.extent)) {
        return fail(cat("iterator \"", y.var->name, "\" has extent ", print(y.dom.extent),
                        ", the instruction needs ", print(x.dom.extent)));
      }
      if (!expr(d->iter_values[left[k]], p->iter_values[right[k]]))
        return fail(cat("iterator \"", y.var->name, "\" is bound differently"));
      bind(x.var, y.var);
    }
    if (!expr(d->predicate, p->predicate)) return fail("the predicates differ");
    if (!a->init != !b->init)
      return fail(b->init ? "the block still has an init; decompose_reduction first"
                          : "the block has no init");
    if (a->init && !stmt(a->init, b->init)) return false;
    return stmt(a->body, b->body);
  }

  bool access(const Buffer& d, const Exprs& di, const Buffer& p, const Exprs& pi) {
    if (d->dtype != p->dtype)
      return fail(cat("\"", p->name, "\" holds ", to_string(p->dtype), ", operand \"", d->name,
                      "\" ", to_string(d->dtype)));
    if (pi.size() < di.size())
      return fail(cat("\"", p->name, "\" has fewer axes than operand \"", d->name, "\""));
    if (d->scope != "global" && d->scope != p->scope) {
      return fail(cat("\"", p->name, "\" is in scope \"", p->scope, "\", operand \"", d->name,
                      "\" needs \"", d->scope, "\""));
    }
    const std::size_t lead = pi.size() - di.size();
    Exprs base;
    for (std::size_t i = 0; i < pi.size(); ++i) {
      const Expr here = substitute(pi[i], fixed_);
      const Expr offset =
          analyzer_.simplify(i < lead ? here : here - substitute(di[i - lead], vars_));
      if (uses_any(offset, inner_))
        return fail(cat("\"", p->name, "\" is indexed differently than operand \"", d->name,
                        "\" in axis ", i));
      base.push_back(offset);
    }
    auto [it, fresh] = operands.emplace(d.get(), Operand{p, base});
    if (fresh) return true;
    if (it->second.buffer != p)
      return fail(cat("operand \"", d->name, "\" would be both \"", it->second.buffer->name,
                      "\" and \"", p->name, "\""));
    for (std::size_t i = 0; i < base.size(); ++i) {
      if (!analyzer_.prove_equal(base[i], it->second.base[i]))
        return fail(cat("\"", p->name, "\" is used at two offsets"));
    }
    return true;
  }

  bool expr(const Expr& d, const Expr& p) {
    if (d->kind != p->kind || d->dtype != p->dtype) {
      // Index arithmetic may be spelled in several ways.
      if (d->dtype.is_int() && p->dtype.is_int() &&
          analyzer_.prove_equal(substitute(d, vars_), substitute(p, fixed_)))
        return true;
      return fail(cat("the instruction computes ", print(d), ", the program ", print(p)));
    }
    if (is_binary(d->kind)) {
      const auto *a = as<BinaryNode>(d), *b = as<BinaryNode>(p);
      return expr(a->a, b->a) && expr(a->b, b->b);
    }
    switch (d->kind) {
      case ExprKind::load: {
        const auto *a = as<LoadNode>(d), *b = as<LoadNode>(p);
        return access(a->buffer, a->indices, b->buffer, b->indices);
      }
      case ExprKind::cast: return expr(as<CastNode>(d)->value, as<CastNode>(p)->value);
      case ExprKind::not_: return expr(as<NotNode>(d)->a, as<NotNode>(p)->a);
      case ExprKind::select: {
        const auto *a = as<SelectNode>(d), *b = as<SelectNode>(p);
        return expr(a->condition, b->condition) && expr(a->a, b->a) && expr(a->b, b->b);
      }
      case ExprKind::call: {
        const auto *a = as<CallNode>(d), *b = as<CallNode>(p);
        if (a->op != b->op || a->args.size() != b->args.size())
          return fail(cat("the instruction calls ", a->op, ", the program ", b->op));
        for (std::size_t i = 0; i < a->args.size(); ++i) {
          if (!expr(a->args[i], b->args[i])) return false;
        }
        return true;
      }
      default:
        if (same_expr(substitute(d, vars_), substitute(p, fixed_))) return true;
        return fail(cat("the instruction computes ", print(d), ", the program ", print(p)));
    }
  }

  arith::Analyzer& analyzer_;
  VarMap vars_, fixed_;
  std::unordered_set<const VarNode*> inner_;
};

}  // namespace

Verdict Tensorize::transform(const State& s, Outcome<Result>& out) const {
  const InstructionInfo* rule = s.machine->instruction(tensor_intrin);
  if (!rule) {
    Refusal r = refuse(s, "schedule.tensorize.unknown",
                       cat("tensorize: no instruction \"", tensor_intrin, "\" is registered"));
    r.note(cat("instructions: ", quoted(names_of(s.machine->instructions))));
    r.help = did_you_mean(tensor_intrin, names_of(s.machine->instructions));
    return r;
  }
  State now = s;
  BlockRef tile;
  if (const auto* loop = std::get_if<LoopRef>(&block_or_loop)) {
    Outcome<BlockRef> made;
    WEFT_TRY((Blockize{*loop, preserve_unit_iters}.transform(s, made)));
    now.mod = made.mod;
    tile = made.result;
  } else {
    tile = std::get<BlockRef>(block_or_loop);
  }
  Path path;
  WEFT_TRY(locate_inner(now, tile, kName, path));
  const BlockRealizeNode* realize = path.realize();
  arith::Analyzer analyzer;
  bind_path(analyzer, path);
  Match match(analyzer);
  const PrimFunc implementation = deep_copy(rule->implementation);
  if (!match.stmt(core(rule->meaning->body), core(realize->block->body))) {
    Refusal r = refuse(now, "schedule.tensorize.mismatch",
                       cat("tensorize: block ", name_of(realize->block.get()),
                           " does not compute \"", tensor_intrin, "\": ", match.why),
                       realize);
    if (s.detail) {
      r.at("the instruction computes", print(rule->meaning, {nullptr, false, 0}));
      r.at("the block computes", print(core(realize->block->body)));
    }
    return r;
  }
  auto block = edit(realize->block);
  BufferMap views;
  for (std::size_t i = 0; i < rule->meaning->params.size(); ++i) {
    const Buffer& meant = rule->meaning->params[i].buffer;
    const auto found = meant ? match.operands.find(meant.get()) : match.operands.end();
    if (found == match.operands.end()) continue;
    const auto& [buffer, base] = found->second;
    const std::size_t lead = base.size() - meant->ndim();
    BufferRegion source{buffer, {}};
    for (std::size_t d = 0; d < base.size(); ++d) {
      source.region.push_back(
          {base[d], d < lead ? make_const(1, base[d]->dtype) : meant->shape[d - lead]});
    }
    auto view = edit(implementation->params[i].buffer);
    view->scope = buffer->scope;
    views[implementation->params[i].buffer.get()] = view;
    block->match_buffers.push_back({view, std::move(source)});
  }
  Stmt body = implementation->body;
  while (const auto* root = as<BlockRealizeNode>(body)) {
    if (!root->block->iters.empty() || root->block->init) break;
    for (const Buffer& b : root->block->alloc_buffers) block->alloc_buffers.push_back(b);
    body = root->block->body;
  }
  block->body = replace_buffers(body, views);
  out.mod = with_body(now.mod, path.func, replace(path, with_block(realize, block)));
  return std::nullopt;
}

}  // namespace weft::schedule
