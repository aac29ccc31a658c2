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

}  // namespace

std::string quoted_tuple(const std::vector<std::string>& names) {
  std::string out = "(";
  for (std::size_t i = 0; i < names.size(); ++i) out += cat(i ? ", " : "", json_quote(names[i]));
  return out + (names.size() == 1 ? ",)" : ")");
}

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
