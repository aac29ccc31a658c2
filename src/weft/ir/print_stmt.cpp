// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/print_internal.h"
#include "weft/ir/visit.h"

namespace weft::ir {

namespace {

std::string_view loop_call(ForKind kind) {
  switch (kind) {
    case ForKind::serial: return "T.serial";
    case ForKind::parallel: return "T.parallel";
    case ForKind::vectorized: return "T.vectorized";
    case ForKind::unrolled: return "T.unroll";
    case ForKind::bound: return "T.thread_binding";
  }
  return "";
}

/// A loop that `T.grid` can express.
bool grid_loop(const ForNode* f) {
  return f->for_kind == ForKind::serial && f->annotations.empty() &&
         is_const_int_value(f->min, 0) && f->min->dtype == f->extent->dtype &&
         f->var->dtype == f->extent->dtype;
}

}  // namespace

// ---- statements

void Printer::suite(const Stmt& s) {
  indent();
  std::size_t mark = open();
  if (const auto* list = as<SeqNode>(s)) flat_suite(list->stmts);
  else if (s) stmt(s, true);
  else flat_suite({});
  close(mark);
  dedent();
}

void Printer::flat_suite(const std::vector<Stmt>& list) {
  if (list.empty()) {
    put("pass");
    end_line();
  }
  for (std::size_t i = 0; i < list.size(); ++i) stmt(list[i], i + 1 == list.size());
}

void Printer::for_stmt(const ForNode* f) {
  std::size_t mark = open();
  std::vector<const ForNode*> nest{f};
  // Consecutive plain loops become one grid, unless an extent depends on an outer variable.
  std::unordered_set<const VarNode*> vars{f->var.get()};
  while (grid_loop(nest.back())) {
    const auto* next = as<ForNode>(nest.back()->body);
    if (!next || !grid_loop(next) || uses_any(next->extent, vars)) break;
    nest.push_back(next);
    vars.insert(next->var.get());
  }
  auto finish_line = [&] {
    for (const ForNode* loop : nest) end_mark(static_cast<const StmtNode*>(loop));
    end_line();
  };
  for (const ForNode* loop : nest) begin_mark(static_cast<const StmtNode*>(loop));
  // The extents are printed before the variables are named: they belong to the outside.
  Piece call = piece([&] {
    if (nest.size() == 1) {
      bool plain = f->for_kind == ForKind::serial && f->annotations.empty();
      put(plain ? "range(" : cat(loop_call(f->for_kind), "("));
      if (is_const_int_value(f->min, 0) && f->min->dtype == f->extent->dtype)
        expr(f->extent, kTernary);
      else bounds(f->min, f->extent);
      if (f->for_kind == ForKind::bound) put(cat(", thread=", json_quote(f->axis)));
      if (!f->annotations.empty()) put(cat(", annotations=", python_literal(Json(f->annotations))));
    } else {
      put("T.grid(");
      for (std::size_t i = 0; i < nest.size(); ++i) {
        if (i) put(", ");
        expr(nest[i]->extent, kTernary);
      }
    }
    put(")");
  });
  put("for ");
  for (std::size_t i = 0; i < nest.size(); ++i) {
    loops_[nest[i]->var.get()] = {nest[i]->min, nest[i]->extent};
    put(cat(i ? ", " : "", define(nest[i]->var.get(), nest[i]->var->name)));
  }
  put(" in ");
  put(call);
  put(":");
  finish_line();
  suite(nest.back()->body);
  close(mark);
}

void Printer::launch(const LaunchNode* l) {
  put(cat("with T.launch(", json_quote(l->name), ", {"));
  for (std::size_t i = 0; i < l->axes.size(); ++i) {
    put(cat(i ? ", " : "", json_quote(l->axes[i].axis), ": "));
    expr(l->axes[i].extent, kTernary);
  }
  put("})");
  for (std::size_t i = 0; i < l->axes.size(); ++i) {
    const LaunchAxis& axis = l->axes[i];
    loops_[axis.var.get()] = {make_int(0, axis.extent->dtype), axis.extent};
    put(cat(i                    ? ", "
            : l->axes.size() > 1 ? " as ("
                                 : " as ",
            define(axis.var.get(), axis.var->name)));
  }
  put(l->axes.size() > 1 ? "):" : ":");
}

void Printer::collective(const CollectiveNode* c) {
  static constexpr std::string_view names[] = {"broadcast", "reduce",  "all_reduce",
                                               "shift",     "scatter", "gather"};
  put(cat("T.collective(\"", names[static_cast<std::size_t>(c->collective)], "\", ",
          quoted_tuple(c->axes), ", "));
  region(c->dst);
  put(", ");
  region(c->src);
  if (c->reducer) {
    put(", reducer=");
    reducer(c->reducer);
  }
  if (c->root) {
    put(", root=");
    expr(c->root, kTernary);
  }
  put(")");
}

void Printer::stmt(const Stmt& s, bool last) {
  std::size_t mark = open();
  bool loop = s->kind == StmtKind::for_, block_stmt = s->kind == StmtKind::block_realize;
  const void* marked = s.get();
  if (block_stmt && as<BlockRealizeNode>(s)->block.get() == options_.culprit)
    marked = options_.culprit;
  if (!loop) begin_mark(marked);
  auto header_done = [&](std::string_view text = "") {
    put(text);
    end_mark(marked);
    end_line();
  };
  switch (s->kind) {
    case StmtKind::store: {
      const auto* t = as<StoreNode>(s);
      const CallNode* atomic = as_atomic(t);
      if (atomic) put(cat("T.", atomic->op, "("));
      put(name_of(t->buffer.get(), t->buffer->name));
      put("[");
      if (t->indices.empty()) put("()");
      exprs(t->indices);
      put(atomic ? "], " : "] = ");
      expr(atomic ? atomic->args[1] : t->value, kAny, t->buffer->dtype);
      if (atomic) put(")");
      header_done();
      break;
    }
    case StmtKind::seq:
      if (as<SeqNode>(s)->stmts.empty()) header_done("pass");
      else flat_suite(as<SeqNode>(s)->stmts);
      break;
    case StmtKind::for_: for_stmt(as<ForNode>(s)); break;
    case StmtKind::if_: {
      const auto* t = as<IfNode>(s);
      put("if ");
      while (true) {
        expr(t->condition);
        header_done(":");
        suite(t->then_case);
        if (!t->else_case) break;
        const auto* next = as<IfNode>(t->else_case);
        if (!next) {
          put("else:");
          end_line();
          suite(t->else_case);
          break;
        }
        marked = next;
        begin_mark(marked);
        put("elif ");
        t = next;
      }
      break;
    }
    case StmtKind::while_:
      put("while ");
      expr(as<WhileNode>(s)->condition);
      header_done(":");
      suite(as<WhileNode>(s)->body);
      break;
    case StmtKind::let: {
      const auto* t = as<LetStmtNode>(s);
      if (last) {
        Piece value = piece([&] { expr(t->value, kAny, t->var->dtype); });
        put(cat(define(t->var.get(), t->var->name), ": ", script_type(t->var->dtype), " = "));
        put(value);
        header_done();
        if (const auto* list = as<SeqNode>(t->body)) flat_suite(list->stmts);
        else stmt(t->body, true);
      } else {
        put("with T.let(");
        expr(t->value, kTernary);
        if (t->var->dtype != t->value->dtype)
          put(cat(", dtype=\"", to_string(t->var->dtype), "\""));
        header_done(cat(") as ", define(t->var.get(), t->var->name), ":"));
        suite(t->body);
      }
      break;
    }
    case StmtKind::assert_:
      put("assert ");
      expr(as<AssertNode>(s)->condition, kTernary);
      header_done(cat(", ", json_quote(as<AssertNode>(s)->message)));
      break;
    case StmtKind::evaluate: {
      const auto* c = as<CallNode>(as<EvaluateNode>(s)->value);
      const Intrinsic* row = c ? find_intrinsic(c->op) : nullptr;
      bool bare = c && (!row || row->effect == IntrinsicEffect::effect);
      if (!bare) put("T.evaluate(");
      expr(as<EvaluateNode>(s)->value);
      header_done(bare ? "" : ")");
      break;
    }
    case StmtKind::allocate: {
      const auto* t = as<AllocateNode>(s);
      Piece value = piece([&] {
        put("T.allocate(");
        buffer_args(t->buffer);
        if (!t->annotations.empty())
          put(cat(", annotations=", python_literal(Json(t->annotations))));
        put(")");
      });
      std::string name = define(t->buffer.get(), t->buffer->name);
      put(last ? cat(name, " = ") : "with ");
      put(value);
      if (last) {
        header_done();
        if (const auto* list = as<SeqNode>(t->body)) flat_suite(list->stmts);
        else stmt(t->body, true);
      } else {
        header_done(cat(" as ", name, ":"));
        suite(t->body);
      }
      break;
    }
    case StmtKind::block_realize:
      put(cat("with T.block(", json_quote(as<BlockRealizeNode>(s)->block->name), ")"));
      header_done(":");
      block(as<BlockRealizeNode>(s));
      break;
    case StmtKind::launch:
      launch(as<LaunchNode>(s));
      header_done();
      suite(as<LaunchNode>(s)->body);
      break;
    case StmtKind::async: {
      const auto* t = as<AsyncNode>(s);
      header_done(cat("with T.async_(", json_quote(t->queue), ", ",
                      name_of(t->token.get(), t->token->name), "):"));
      suite(t->body);
      break;
    }
    case StmtKind::wait: {
      const auto* t = as<WaitNode>(s);
      put(cat("T.wait(", name_of(t->token.get(), t->token->name), ", "));
      expr(t->outstanding, kTernary);
      if (!t->consumer.empty()) put(cat(", consumer=", json_quote(t->consumer)));
      header_done(")");
      break;
    }
    case StmtKind::collective:
      collective(as<CollectiveNode>(s));
      header_done();
      break;
  }
  if (!(last && (s->kind == StmtKind::let || s->kind == StmtKind::allocate))) close(mark);
}

// ---- blocks

void Printer::block_iters(const BlockRealizeNode* r) {
  static constexpr char letters[] = {'S', 'R', 'C', 'O'};
  static constexpr std::string_view calls[] = {"spatial", "reduce", "scan", "opaque"};
  const auto& iters = r->block->iters;
  const Exprs& values_of = r->iter_values;  // an ill-formed block may have too few
  auto simple = [&](std::size_t i) {        // bound to a loop over exactly the iterator's domain
    if (i >= values_of.size()) return false;
    const auto* v = as<VarNode>(r->iter_values[i]);
    auto found = v ? loops_.find(v) : loops_.end();
    return found != loops_.end() && v->dtype == iters[i].var->dtype &&
           same_expr(found->second.min, iters[i].dom.min) &&
           same_expr(found->second.extent, iters[i].dom.extent);
  };
  // Right sides speak of the outside, so they are printed before the iterators are named.
  for (std::size_t i = 0; i < iters.size();) {
    std::size_t end = i;
    while (end < iters.size() && simple(end)) ++end;
    if (end > i) {
      std::string kinds, values, names;
      for (std::size_t k = i; k < end; ++k) {
        kinds += letters[static_cast<std::size_t>(iters[k].kind)];
        values += cat(k > i ? ", " : "", name_of(r->iter_values[k].get(), "v"));
      }
      for (std::size_t k = i; k < end; ++k)
        names += cat(k > i ? ", " : "", define(iters[k].var.get(), iters[k].var->name));
      put(cat(names, " = T.axis.remap(\"", kinds, "\", [", values, "])"));
      i = end;
    } else {
      Piece call = piece([&] {
        put(cat("T.axis.", calls[static_cast<std::size_t>(iters[i].kind)], "("));
        const Range& dom = iters[i].dom;
        if (is_const_int_value(dom.min, 0) && dom.min->dtype == dom.extent->dtype) {
          expr(dom.extent, kTernary);
        } else {
          put("(");
          bounds(dom.min, dom.extent);
          put(")");
        }
        put(", ");
        expr(i < values_of.size() ? values_of[i] : nullptr, kTernary, iters[i].var->dtype);
        put(")");
      });
      put(cat(define(iters[i].var.get(), iters[i].var->name), " = "));
      put(call);
      ++i;
    }
    end_line();
  }
}

void Printer::block(const BlockRealizeNode* r) {
  indent();
  std::size_t mark = open();
  block_iters(r);
  if (!is_const_int_value(r->predicate, 1)) {
    put("T.where(");
    expr(r->predicate);
    put(")");
    end_line();
  }
  block_contents(r->block, true);
  close(mark);
  dedent();
}

void Printer::block_contents(const Block& b, bool regions) {
  if (regions) {
    for (const auto* list : {&b->reads, &b->writes}) {
      put(list == &b->reads ? "T.reads(" : "T.writes(");
      for (std::size_t i = 0; i < list->size(); ++i) {
        if (i) put(", ");
        region((*list)[i]);
      }
      put(")");
      end_line();
    }
  }
  if (!b->annotations.empty()) {
    put(cat("T.block_attr(", python_literal(Json(b->annotations)), ")"));
    end_line();
  }
  if (!b->execution.axis.empty()) {
    put(cat("T.execution(", json_quote(b->execution.axis), ", ", b->execution.begin, ", ",
            b->execution.end, ")"));
    end_line();
  }
  for (const Buffer& buffer : b->alloc_buffers) {
    std::string name = define(buffer.get(), buffer->name);
    begin_mark(buffer.get());
    put(cat(name, " = T.alloc_buffer("));
    buffer_args(buffer);
    put(")");
    end_mark(buffer.get());
    end_line();
  }
  for (const MatchBuffer& m : b->match_buffers) {
    symbols(m.buffer);
    put(cat(define(m.buffer.get(), m.buffer->name), " = T.match_buffer("));
    region(m.source);
    put(", ");
    buffer_args(m.buffer);
    put(")");
    end_line();
  }
  if (b->init) {
    put("with T.init():");
    end_line();
    suite(b->init);
  }
  if (const auto* list = as<SeqNode>(b->body)) flat_suite(list->stmts);
  else if (b->body) stmt(b->body, true);
  else flat_suite({});
}
}  // namespace weft::ir
