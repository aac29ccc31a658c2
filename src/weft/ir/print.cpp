// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/print_internal.h"
#include "weft/ir/visit.h"

namespace weft::ir {

namespace {

bool reserved(std::string_view name) {
  static constexpr std::string_view words[] = {
      "T",      "False",   "None",   "True",     "and",  "as",     "assert", "async",
      "await",  "break",   "class",  "continue", "def",  "del",    "elif",   "else",
      "except", "finally", "float",  "for",      "from", "global", "if",     "import",
      "in",     "is",      "lambda", "nonlocal", "not",  "or",     "pass",   "raise",
      "range",  "return",  "try",    "while",    "with", "yield"};
  return std::find(std::begin(words), std::end(words), name) != std::end(words);
}

/// `hint` made a Python identifier.
std::string identifier(const std::string& hint) {
  std::string out;
  for (char c : hint)
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
                   (static_cast<unsigned char>(c) & 0x80)
               ? c
               : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) return cat("v", out);
  if (reserved(out)) out += "_";
  return out;
}

bool all_constant(const Buffer& b) {
  auto constant = [](const Expr& e) { return !e || e->kind == ExprKind::int_imm; };
  return std::all_of(b->shape.begin(), b->shape.end(), constant) &&
         std::all_of(b->strides.begin(), b->strides.end(), constant) && constant(b->elem_offset);
}

/// A root block that the text need not show.
bool plain_root(const Block& b) {
  return b->iters.empty() && b->name == "root" && b->reads.empty() && b->writes.empty() &&
         b->annotations.empty() && b->match_buffers.empty() && !b->init &&
         b->execution.axis.empty();
}

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

std::string quoted_tuple(const std::vector<std::string>& names) {
  std::string out = "(";
  for (std::size_t i = 0; i < names.size(); ++i) out += cat(i ? ", " : "", json_quote(names[i]));
  return out + (names.size() == 1 ? ",)" : ")");
}

}  // namespace

// ---- names and lines

std::string Printer::free_name(const std::string& hint) const {
  std::string base = identifier(hint), name = base;
  for (int i = 1; used_.count(name); ++i) name = cat(base, "_", i);
  return name;
}

std::string Printer::define(const void* node, const std::string& hint) {
  std::string name = free_name(hint);
  names_[node] = name;
  used_[name] = 1;
  scope_.push_back(node);
  return name;
}

const std::string& Printer::name_of(const void* node, const std::string& hint) {
  auto found = names_.find(node);
  if (found != names_.end()) return found->second;
  std::string name = free_name(hint);  // defined nowhere above: keeps its name to the end
  used_[name] = 1;
  return names_[node] = name;
}

void Printer::close(std::size_t mark) {
  while (scope_.size() > mark) {
    auto found = names_.find(scope_.back());
    if (found != names_.end()) {
      used_.erase(found->second);
      names_.erase(found);
    }
    scope_.pop_back();
  }
}

void Printer::end_line() {
  lines_.push_back(line_.empty() ? line_
                                 : std::string(static_cast<std::size_t>(depth_) * 4, ' ') + line_);
  line_.clear();
}

void Printer::begin_mark(const void* node) {
  if (node == options_.culprit) mark_starts_.push_back(line_.size());
}

Printer::Piece Printer::piece(const std::function<void()>& print_it) {
  std::string before = std::move(line_);
  line_.clear();
  std::size_t mark = marks_.size();
  print_it();
  Piece out{std::move(line_), {marks_.begin() + static_cast<std::ptrdiff_t>(mark), marks_.end()}};
  marks_.resize(mark);
  line_ = std::move(before);
  return out;
}

void Printer::put(const Piece& p) {
  for (const Mark& m : p.marks)
    marks_.push_back({lines_.size(), m.begin + line_.size(), m.end + line_.size()});
  line_ += p.text;
}

void Printer::end_mark(const void* node) {
  if (node != options_.culprit || mark_starts_.empty()) return;
  std::size_t margin = static_cast<std::size_t>(depth_) * 4;
  marks_.push_back({lines_.size(), margin + mark_starts_.back(), margin + line_.size()});
  mark_starts_.pop_back();
}

std::string Printer::finish() {
  if (!line_.empty()) end_line();
  std::string out;
  std::vector<bool> shown(lines_.size(), options_.context <= 0 || marks_.empty());
  for (const Mark& m : marks_) {
    auto span = static_cast<std::size_t>(std::max(options_.context, 0));
    for (std::size_t i = m.line > span ? m.line - span : 0;
         i < std::min(lines_.size(), m.line + span + 1); ++i)
      shown[i] = true;
  }
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!shown[i]) {
      if (i == 0 || shown[i - 1]) out += "...\n";
      continue;
    }
    out += lines_[i] + "\n";
    std::string carets;
    for (const Mark& m : marks_) {
      if (m.line != i) continue;
      if (carets.size() < m.end) carets.resize(m.end, ' ');
      for (std::size_t k = m.begin; k < m.end; ++k) carets[k] = '^';
    }
    if (!carets.empty()) out += carets + "\n";
  }
  return out;
}

void Printer::header() {
  put("from weft import script as T");
  end_line();
  end_line();
}

// ---- buffers

void Printer::buffer_args(const Buffer& b) {
  tuple(b->shape);
  put(cat(", \"", to_string(b->dtype), "\""));
  if (!b->strides.empty()) {
    put(", strides=");
    tuple(b->strides);
  }
  if (b->elem_offset) {
    put(", elem_offset=");
    expr(b->elem_offset, kTernary);
  }
  if (b->scope != "global") put(cat(", scope=", json_quote(b->scope)));
  if (b->align != 64) put(cat(", align=", b->align));
  if (!b->spatial_axes.empty()) put(cat(", spatial_axes=", quoted_tuple(b->spatial_axes)));
  if (!b->layout_exprs.empty() || !b->layout_vars.empty()) {
    std::size_t mark = open();
    put(", layout=lambda");
    for (std::size_t i = 0; i < b->layout_vars.size(); ++i)
      put(cat(i ? ", " : " ", define(b->layout_vars[i].get(), b->layout_vars[i]->name)));
    put(": ");
    tuple(b->layout_exprs);
    close(mark);
  }
}

/// Declares the variables that a buffer's shape, strides or offset mention for the first time.
void Printer::symbols(const Buffer& b) {
  auto declare = [&](const Expr& e) {
    if (!e) return;
    for_each_expr(e, [&](const Expr& x) {
      const auto* v = as<VarNode>(x);
      if (!v || names_.count(v)) return;
      std::string name = define(v, v->name);
      put(cat(name, " = ", script_type(v->dtype), "()"));
      end_line();
    });
  };
  for (const Expr& e : b->shape) declare(e);
  for (const Expr& e : b->strides) declare(e);
  declare(b->elem_offset);
}

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
      if (atomic) put("T.atomic_add(");
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

// ---- functions

void Printer::func(const PrimFunc& f, const std::string& key) {
  std::size_t mark = open();
  const auto* root = as<BlockRealizeNode>(f->body);
  bool rooted = root && root->block->iters.empty() && root->block->name == "root" &&
                is_const_int_value(root->predicate, 1);
  std::vector<std::string> options;
  std::string name = identifier(key);
  if (name != key) options.push_back(cat("key=", json_quote(key)));
  if (key != f->name) options.push_back(cat("symbol=", json_quote(f->name)));
  if (!rooted) options.push_back("lowered=True");
  put(cat("@T.prim_func", options.empty() ? "" : cat("(", join(options), ")")));
  end_line();

  // A parameter is declared in the signature when its extents are constants and nobody uses its
  // handle.
  std::unordered_set<const VarNode*> used;
  for_each_expr(f->body, [&](const Expr& e) {
    if (const auto* v = as<VarNode>(e)) used.insert(v);
  });
  auto inline_param = [&](const Param& p) {
    return p.buffer && all_constant(p.buffer) && !(p.var && used.count(p.var.get()));
  };
  put(cat("def ", name, "("));
  for (std::size_t i = 0; i < f->params.size(); ++i) {
    const Param& p = f->params[i];
    if (i) put(", ");
    if (inline_param(p)) {
      begin_mark(p.buffer.get());
      put(cat(define(p.buffer.get(), p.buffer->name), ": T.Buffer("));
      buffer_args(p.buffer);
      put(")");
      end_mark(p.buffer.get());
    } else {
      put(cat(define(p.var.get(), p.buffer && p.var->name == p.buffer->name
                                      ? cat(p.var->name, "_handle")
                                      : p.var->name),
              ": ", script_type(p.var->dtype)));
    }
  }
  put("):");
  end_line();
  indent();
  if (!f->attrs.empty()) {
    put(cat("T.func_attr(", python_literal(Json(f->attrs)), ")"));
    end_line();
  }
  for (const Param& p : f->params) {
    if (!p.buffer || inline_param(p)) continue;
    symbols(p.buffer);
    begin_mark(p.buffer.get());
    put(cat(define(p.buffer.get(), p.buffer->name), " = T.match_buffer(",
            name_of(p.var.get(), p.var->name), ", "));
    buffer_args(p.buffer);
    put(")");
    end_mark(p.buffer.get());
    end_line();
  }
  if (rooted && plain_root(root->block)) {
    const auto* only = as<BlockRealizeNode>(
        root->block->body);  // a lone block "root" inside would be taken for the root
    if (only && only->block->name == "root" && only->block->iters.empty() &&
        root->block->alloc_buffers.empty())
      stmt(f->body, true);
    else block_contents(root->block, false);
  } else if (const auto* list = as<SeqNode>(f->body)) {
    flat_suite(list->stmts);
  } else {
    stmt(f->body, true);
  }
  dedent();
  close(mark);
}

void Printer::module(const IRModule& m) {
  put("@T.ir_module");
  end_line();
  put("class Module:");
  end_line();
  indent();
  if (m->functions.empty()) put("pass"), end_line();
  bool first = true;
  for (const auto& [key, f] : m->functions) {
    if (!first) end_line();
    first = false;
    func(f, key);
  }
  dedent();
}

std::string print(const IRModule& m, const PrintOptions& options) {
  Printer p(options);
  if (options.header) p.header();
  p.module(m);
  return p.finish();
}

std::string print(const PrimFunc& f, const PrintOptions& options) {
  Printer p(options);
  if (options.header) p.header();
  p.func(f, f->name);
  return p.finish();
}

std::string print(const Stmt& s, const PrintOptions& options) {
  Printer p(options);
  if (s) p.stmt(s, true);
  return p.finish();
}

std::string print(const Expr& e) {
  Printer p({});
  p.expr(e);
  std::string out = p.finish();
  if (!out.empty()) out.pop_back();
  return out;
}

std::string print(const BufferRegion& r) {
  Printer p({});
  p.region(r);
  std::string out = p.finish();
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace weft::ir
