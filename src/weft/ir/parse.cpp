// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/parse_internal.h"

namespace weft::ir {

using syntax::Kind;
using syntax::StatementKind;

void Builder::fail(const Node& at, std::string_view slug, std::string message,
                   std::string help) const {
  source_.fail(at.line, at.column, at.width, slug, std::move(message), std::move(help));
}

void Builder::fail(const Statement& at, std::string_view slug, std::string message,
                   std::string help) const {
  source_.fail(at.line, at.column, 1, slug, std::move(message), std::move(help));
}

const Value* Builder::find(std::string_view name) const {
  for (std::size_t i = scope_.size(); i-- > 0;) {
    if (scope_[i].first == name) return &scope_[i].second;
  }
  return nullptr;
}

std::vector<std::string> Builder::known_names() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : scope_) out.push_back(name);
  return out;
}

std::string Builder::dotted(const Node& n) const {
  if (n.kind == Kind::name) return n.text;
  if (n.kind != Kind::attribute) return "";
  std::string base = dotted(*n.kids[0]);
  return base.empty() ? "" : cat(base, ".", n.text);
}

std::string Builder::script_name(const Node& n) const {
  if (n.kind == Kind::name) return n.text == "range" && !find("range") ? "range" : "";
  std::string full = dotted(n);
  std::size_t dot = full.find('.');
  if (dot == std::string::npos || !prefixes_.contains(full.substr(0, dot)) ||
      find(full.substr(0, dot)))
    return "";
  std::string rest = full.substr(dot + 1);
  while (true) {  // tvm.script.tir.block, weft.script.block
    std::size_t next = rest.find('.');
    std::string head = rest.substr(0, next);
    if (next == std::string::npos || (head != "script" && head != "tir" && head != "ir"))
      return rest;
    rest = rest.substr(next + 1);
  }
}

const syntax::Node* Builder::Args::get(std::size_t position, std::string_view name) const {
  if (position < positional.size()) return positional[position];
  for (const auto& [key, node] : named) {
    if (key == name) return node;
  }
  return nullptr;
}

void Builder::decorators(const Statement& s, std::string_view wanted, bool* lowered,
                         std::string* key_name, std::string* symbol) {
  bool found = false;
  for (const syntax::NodePtr& d : s.decorators) {
    const Node& name = d->kind == Kind::call ? *d->kids[0] : *d;
    std::string full = dotted(name);
    std::size_t dot = full.rfind('.');
    std::string last = dot == std::string::npos ? full : full.substr(dot + 1);
    if (last != wanted)
      fail(*d, "decorator",
           cat("\"", full.empty() ? "this decorator" : full, "\" has no meaning for \"", s.text,
               "\""),
           cat("write @T.", wanted));
    found = true;
    if (dot != std::string::npos) prefixes_.insert(full.substr(0, full.find('.')));
    if (d->kind != Kind::call) continue;
    for (std::size_t i = 1; i < d->kids.size(); ++i) {
      const std::string& key = d->names[i - 1];
      if (key == "lowered" && lowered) *lowered = flag(*d->kids[i]);
      else if (key == "key" && key_name) *key_name = text(*d->kids[i], "key");
      else if (key == "symbol" && symbol) *symbol = text(*d->kids[i], "symbol");
      else if (key != "private" && key != "check_well_formed")
        fail(*d->kids[i], "argument", cat("@T.", wanted, " has no argument \"", key, "\""),
             lowered ? "it knows lowered=, key= and symbol=" : "");
    }
  }
  if (!found) fail(s, "decorator", cat("\"", s.text, "\" needs the decorator @T.", wanted));
}

std::vector<std::pair<std::string, PrimFunc>> Builder::functions(
    const std::vector<syntax::StatementPtr>& list) {
  std::vector<std::pair<std::string, PrimFunc>> out;
  auto collect = [&](const Statement& s) {
    if (s.kind != StatementKind::function) return;
    if (!function_names_.insert(s.text).second)
      fail(s, "redefined", cat("function \"", s.text, "\" is defined twice"));
  };
  for (const auto& s : list) {
    collect(*s);
    if (s->kind != StatementKind::class_) continue;
    class_names_.insert(s->text);
    for (const auto& f : s->body) collect(*f);
  }
  auto read = [&](const Statement& s) {
    std::string key;
    PrimFunc f = function(s, &key);
    out.emplace_back(std::move(key), std::move(f));
  };
  for (const auto& s : list) {
    switch (s->kind) {
      case StatementKind::import:
        if (!s->text.empty()) prefixes_.insert(s->text);
        break;
      case StatementKind::function: read(*s); break;
      case StatementKind::class_:
        decorators(*s, "ir_module", nullptr, nullptr, nullptr);
        for (const auto& f : s->body) {
          if (f->kind == StatementKind::function) read(*f);
          else if (f->kind != StatementKind::pass &&
                   !(f->kind == StatementKind::expression && f->value->kind == Kind::string))
            fail(*f, "place", cat("class \"", s->text, "\" may hold only functions"));
        }
        break;
      case StatementKind::pass: break;
      case StatementKind::expression:
        if (s->value->kind == Kind::string) break;
        [[fallthrough]];
      default:
        fail(*s, "place", "only functions and classes stand at the top of a text",
             "begin with @T.prim_func");
    }
  }
  out.insert(out.end(), captured_functions_.begin(), captured_functions_.end());
  return out;
}

PrimFunc Builder::function(const Statement& s, std::string* key) {
  bool lowered = false;
  std::string symbol;
  *key = s.text;
  decorators(s, "prim_func", &lowered, key, &symbol);
  function_ = make_ref<PrimFuncNode>();
  function_->name = symbol.empty() ? *key : symbol;
  scope_.clear();
  loops_.clear();
  tokens_.clear();

  std::set<std::string> seen;
  for (const syntax::Parameter& p : s.parameters) {
    if (!seen.insert(p.name).second)
      source_.fail(p.line, p.column, static_cast<int>(p.name.size()), "redefined",
                   cat("parameter \"", p.name, "\" appears twice"));
  }
  // Scalars first: they may be extents of buffers that stand before them.
  std::vector<bool> is_buffer;
  for (const syntax::Parameter& p : s.parameters) {
    const Node* a = p.annotation.get();
    const Node* head =
        a && (a->kind == Kind::call || a->kind == Kind::subscript) ? a->kids[0].get() : a;
    bool buffer_type = head && script_name(*head) == "Buffer";
    is_buffer.push_back(buffer_type);
    if (buffer_type) {
      function_->params.push_back({});
      continue;
    }
    DType t = a ? dtype(a->kind == Kind::call ? *head : *a) : dtypes::handle;
    Var v = make_var(p.name, t);
    define(p.name, Value::of(Expr(v)));
    function_->params.push_back({v, nullptr});
  }
  for (std::size_t i = 0; i < s.parameters.size(); ++i) {
    if (!is_buffer[i]) continue;
    const syntax::Parameter& p = s.parameters[i];
    Buffer b = annotation_buffer(*p.annotation, p.name);
    function_->params[i] = buffer_param(b);
    define(p.name, Value::of(b));
  }

  BlockScope root;
  root.block = make_ref<BlockNode>();
  root.block->name = "root";
  root.in_function = true;
  block_ = &root;
  Stmt body = suite(s.body);
  block_ = nullptr;
  const auto* only = as<BlockRealizeNode>(body);
  bool has_root = only && only->block->name == "root" && only->block->iters.empty() &&
                  root.block->alloc_buffers.empty();
  if (lowered) {
    if (!root.block->alloc_buffers.empty())
      fail(s, "place",
           cat("\"", s.text,
               "\" is lowered, so it has no root block that could hold T.alloc_buffer"),
           "use T.allocate");
    function_->body = body;
  } else {
    function_->body = has_root ? body : root_block(body, root.block->alloc_buffers);
  }
  return function_;
}

IRModule parse_module(std::string_view text, std::string_view file, const Capture& capture,
                      int first_line) {
  syntax::Source source{text, std::string(file), first_line};
  std::vector<syntax::StatementPtr> tree = syntax::parse(source);
  return make_module(Builder(source, capture).functions(tree));
}

PrimFunc parse_func(std::string_view text, std::string_view file, const Capture& capture,
                    int first_line) {
  IRModule m = parse_module(text, file, capture, first_line);
  if (m->functions.empty() || (m->functions.size() > 1 && !capture)) {
    syntax::Source source{text, std::string(file), first_line};
    source.fail(1, 1, 1, "count", cat("expected one function, found ", m->functions.size()));
  }
  return m->functions.front().second;
}

}  // namespace weft::ir
