// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/parse_internal.h"
#include "weft/ir/regions.h"
#include "weft/ir/visit.h"

namespace weft::ir {

using syntax::Kind;

// ---- buffers

Exprs Builder::shape(const Node& n, bool declares) {
  Exprs out;
  auto one = [&](const Node& k) {
    if (k.kind == Kind::string) {  // ("n", "m"): names that the shape declares
      if (!find(k.text) && !declares)
        fail(k, "name", cat("nothing gives the extent \"", k.text, "\" of this buffer"),
             "shapes of parameters and of T.match_buffer declare names");
      if (!find(k.text)) define(k.text, Value::of(Expr(make_var(k.text, dtypes::int64))));
      out.push_back(find(k.text)->expr);
    } else {
      out.push_back(expr(k, dtypes::int64));
    }
    if (!out.back() || !out.back()->dtype.is_integral())
      fail(k, "types", "an extent must be an integer");
    std::int64_t v;
    if (is_const_int(out.back(), &v) && v < 0) fail(k, "shape", cat("an extent cannot be ", v));
  };
  if (n.kind == Kind::tuple || n.kind == Kind::list) {
    for (const auto& kid : n.kids) one(*kid);
    return out;
  }
  Value v = eval(n);
  if (v.kind == Value::Kind::tuple) {
    for (const Value& item : v.items) out.push_back(to_expr(n, item, dtypes::int64));
  } else {
    one(n);
  }
  return out;
}

Buffer Builder::buffer(const Node& at, const std::string& name, const Args& a, std::size_t first,
                       bool declares) {
  auto b = make_ref<BufferNode>();
  b->name = name;
  const Node* extents = a.get(first, "shape");
  if (!extents) fail(at, "arity", cat("the buffer \"", name, "\" needs a shape"));
  b->shape = shape(*extents, declares);
  const Node* type = a.get(first + 1, "dtype");
  b->dtype = type ? dtype(*type) : dtypes::float32;
  if (b->dtype.is_handle()) fail(*type, "dtype", "a buffer cannot hold handles");
  auto named = [&](std::string_view key) -> const Node* {
    for (const auto& [k, node] : a.named) {
      if (k == key && !(node->kind == Kind::constant && node->text == "None")) return node;
    }
    return nullptr;
  };
  const Node* scope = first + 2 < a.positional.size() ? a.positional[first + 2] : named("scope");
  if (scope) b->scope = text(*scope, "scope");
  if (b->scope.empty()) b->scope = "global";
  if (const Node* strides = named("strides")) {
    b->strides = shape(*strides, declares);
    if (!b->strides.empty() && b->strides.size() != b->shape.size()) {
      fail(*strides, "rank",
           cat("\"", name, "\" has ", b->shape.size(), " dimensions, but ", b->strides.size(),
               " strides are given"));
    }
  }
  if (const Node* offset = named("elem_offset")) {
    b->elem_offset = expr(*offset, dtypes::int64);
    if (!b->elem_offset->dtype.is_integral())
      fail(*offset, "types", "elem_offset must be an integer");
  }
  if (const Node* align = named("align")) {
    std::int64_t v = constant(*align, "align");
    if (v > 1 << 30) fail(*align, "value", cat("an alignment of ", v, " bytes"));
    b->align = v <= 0 ? 64 : static_cast<int>(v);
  }
  if (const Node* factor = named("offset_factor"))
    constant(*factor, "offset_factor");  // a promise nobody needs
  for (std::string_view key :
       {"data", "buffer_type", "axis_separators"}) {  // only their defaults have a meaning here
    const Node* n = named(key);
    bool plain = n && ((n->kind == Kind::string && (n->text.empty() || n->text == "default")) ||
                       ((n->kind == Kind::list || n->kind == Kind::tuple) && n->kids.empty()));
    if (n && !plain)
      fail(*n, "argument", cat("the buffer \"", name, "\" cannot have ", key, "="),
           key == "data" ? "write T.match_buffer in a block for a view of another buffer" : "");
  }
  if (const Node* axes = named("spatial_axes")) {
    if (axes->kind != Kind::tuple && axes->kind != Kind::list)
      fail(*axes, "value", "spatial_axes must be a tuple of names");
    for (const auto& kid : axes->kids) b->spatial_axes.push_back(text(*kid, "an axis"));
  }
  if (const Node* layout = named("layout")) {
    if (layout->kind != Kind::lambda || layout->names.size() != b->shape.size())
      fail(*layout, "value", cat("layout must be a lambda of ", b->shape.size(), " indices"));
    std::size_t mark = scope_.size();
    for (std::size_t i = 0; i < layout->names.size(); ++i) {
      Var v = make_var(layout->names[i], b->shape[i]->dtype);
      b->layout_vars.push_back(v);
      define(v->name, Value::of(Expr(v)));
    }
    const Node& body = *layout->kids[0];
    b->layout_exprs = body.kind == Kind::tuple ? tuple(body) : Exprs{expr(body, dtypes::int64)};
    scope_.resize(mark);
  }
  if (b->spatial_axes.size() > b->layout_exprs.size())
    fail(at, "value",
         cat("\"", name, "\" has ", b->spatial_axes.size(), " spatial axes, but its layout gives ",
             b->layout_exprs.size(), " values"));
  return b;
}

/// T.Buffer((16,), "float32") and the older T.Buffer[(16,), "float32"].
Buffer Builder::annotation_buffer(const Node& n, const std::string& name) {
  Args a;
  if (n.kind == Kind::subscript) {
    a.call = &n;
    for (std::size_t i = 1; i < n.kids.size(); ++i) a.positional.push_back(n.kids[i].get());
    if (a.positional.empty() || a.positional.size() > 2)
      fail(n, "arity", cat("T.Buffer[shape, dtype] has two parts, found ", a.positional.size()));
    if (a.positional.size() == 1 && a.positional[0]->kind == Kind::tuple &&
        a.positional[0]->kids.size() == 2 && a.positional[0]->kids[1]->kind == Kind::string) {
      const Node* both = a.positional[0];
      a.positional = {both->kids[0].get(), both->kids[1].get()};
    }
    return buffer(n, name, a, 0, true);
  }
  a = args(n,
           {"shape", "dtype", "scope", "strides", "elem_offset", "align", "spatial_axes", "layout",
            "data", "offset_factor", "buffer_type", "axis_separators"},
           1);
  return buffer(n, name, a, 0, true);
}

// ---- statements of a block

bool Builder::block_assignment(const Statement& s, const std::string& name) {
  if (name.starts_with("axis.")) {
    axis(s, name.substr(5));
    return true;
  }
  if (name != "alloc_buffer" && name != "match_buffer") return false;
  if (s.target->kind != Kind::name) fail(*s.target, "target", cat("T.", name, " gives one buffer"));
  if (!block_)
    fail(s, "place",
         cat("T.", name, " stands directly in a function or a block, not in a loop or condition"));
  if (name == "match_buffer") {
    match_buffer(s, s.target->text);
    return true;
  }
  Args a = args(*s.value,
                {"shape", "dtype", "scope", "strides", "elem_offset", "align", "spatial_axes",
                 "layout", "data", "offset_factor", "buffer_type", "axis_separators"},
                1);
  Buffer b = buffer(*s.value, s.target->text, a, 0);
  block_->block->alloc_buffers.push_back(b);
  define(s.target->text, Value::of(b));
  return true;
}

void Builder::match_buffer(const Statement& s, const std::string& target) {
  const Node& call = *s.value;
  Args a =
      args(call,
           {"source", "shape", "dtype", "strides", "elem_offset", "scope", "align", "offset_factor",
            "buffer_type", "axis_separators", "spatial_axes", "layout", "data"},
           1);
  const Node& source = *a.get(0, "source");
  if (block_->in_function) {
    Value v = eval(source);
    const auto* handle = v.kind == Value::Kind::expr ? as<VarNode>(v.expr) : nullptr;
    auto param = std::find_if(function_->params.begin(), function_->params.end(),
                              [&](const Param& p) { return p.var.get() == handle; });
    if (!handle || param == function_->params.end() || !handle->dtype.is_handle())
      fail(source, "value",
           "T.match_buffer of a function needs one of its parameters of type T.handle");
    if (param->buffer) fail(source, "redefined", cat("\"", handle->name, "\" is matched twice"));
    if (a.positional.size() > 3)
      fail(*a.positional[3], "argument", "T.match_buffer takes three positional arguments",
           "name the others: strides=, elem_offset=, scope=, align=");
    Buffer b = buffer(call, target, a, 1, true);
    param->buffer = b;
    define(target, Value::of(b));
    return;
  }
  BufferRegion r = region(source);
  if (a.positional.size() > 3)
    fail(*a.positional[3], "argument", "T.match_buffer takes three positional arguments",
         "name the others: strides=, elem_offset=, scope=, align=");
  Args filled = a;
  Buffer b;
  if (a.get(1, "shape")) {
    b = buffer(call, target, a, 1, true);
  } else {  // the shape of the region
    auto fresh = make_ref<BufferNode>();
    fresh->name = target;
    fresh->scope = r.buffer->scope;
    for (const Range& x : r.region) fresh->shape.push_back(x.extent);
    b = fresh;
  }
  if (!a.get(2, "dtype")) {
    auto typed = edit(b);
    typed->dtype = r.buffer->dtype;
    b = typed;
  }
  block_->block->match_buffers.push_back({b, r});
  define(target, Value::of(b));
}

void Builder::axis(const Statement& s, const std::string& kind) {
  if (!block_ || block_->in_function) fail(s, "place", "T.axis stands directly in a block");
  const Node& call = *s.value;
  std::vector<std::string> names = target_names(*s.target);
  auto iter_kind = [&](char c) {
    switch (c) {
      case 'S': return IterKind::spatial;
      case 'R': return IterKind::reduce;
      case 'C': return IterKind::scan;
      case 'O': return IterKind::opaque;
      default:
        fail(*call.kids[1], "axis", cat("\"", c, "\" is no kind of iterator"),
             "S spatial, R reduce, C scan, O opaque");
    }
  };
  auto add = [&](const std::string& name, Range dom, IterKind k, Expr value) {
    Var v = make_var(name, dom.extent->dtype);
    block_->block->iters.push_back({v, dom, k});
    block_->values.push_back(std::move(value));
    define(name, Value::of(Expr(v)));
  };
  if (kind == "remap") {
    Args a = args(call, {"kinds", "bindings"}, 2);
    std::string kinds = text(*a.get(0, "kinds"), "the kinds");
    const Node& list = *a.get(1, "bindings");
    if (list.kind != Kind::list && list.kind != Kind::tuple)
      fail(list, "value", "T.axis.remap needs a list of loop variables");
    if (kinds.size() != names.size() || list.kids.size() != names.size()) {
      fail(call, "arity",
           cat("T.axis.remap has ", kinds.size(), " kinds and ", list.kids.size(), " loops for ",
               names.size(), " iterators"));
    }
    std::vector<std::pair<Range, Expr>> found;
    for (const auto& kid : list.kids) {
      Expr e = expr(*kid);
      const auto* v = as<VarNode>(e);
      auto loop = v ? loops_.find(v) : loops_.end();
      if (loop == loops_.end())
        fail(*kid, "axis", "T.axis.remap takes loop variables",
             "write T.axis.spatial(extent, expression) for anything else");
      found.emplace_back(loop->second, e);
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      add(names[i], found[i].first, iter_kind(kinds[i]), found[i].second);
    return;
  }
  static const std::map<std::string, IterKind> kinds = {
      {"spatial", IterKind::spatial}, {"S", IterKind::spatial}, {"reduce", IterKind::reduce},
      {"R", IterKind::reduce},        {"scan", IterKind::scan}, {"C", IterKind::scan},
      {"opaque", IterKind::opaque},   {"O", IterKind::opaque}};
  auto k = kinds.find(kind);
  if (k == kinds.end())
    fail(call, "name", cat("\"T.axis.", kind, "\" is unknown"),
         did_you_mean(kind, {"remap", "spatial", "reduce", "scan", "opaque"}));
  if (names.size() != 1)
    fail(*s.target, "arity",
         cat("T.axis.", kind, " gives one iterator, found ", names.size(), " names"));
  Args a = args(call, {"dom", "binding"}, 2);
  const Node& dom_node = *a.get(0, "dom");
  const Node& value_node = *a.get(1, "binding");
  Value dom = eval(dom_node), binding = eval(value_node);
  Value lo = Value::number(std::int64_t{0}), hi = dom;
  if (dom.kind == Value::Kind::tuple) {
    if (dom.items.size() != 2)
      fail(dom_node, "axis",
           cat("a domain is an extent or (low, high), found a tuple of ", dom.items.size()));
    lo = dom.items[0], hi = dom.items[1];
  }
  Range r = range(dom_node, lo, hi);
  Expr value;
  if (lo.weak() && hi.weak() && !binding.weak()) {  // an untyped domain takes the binding's type
    value = to_expr(value_node, binding);
    if (value->dtype.is_integral() && value->dtype.is_scalar())
      r = {cast(value->dtype, r.min), cast(value->dtype, r.extent)};
  } else {
    value = to_expr(value_node, binding, r.extent->dtype);
  }
  if (value->dtype != r.extent->dtype)
    fail(value_node, "types",
         cat("the binding is ", to_string(value->dtype), ", but the domain is ",
             to_string(r.extent->dtype)));
  add(names[0], r, k->second, value);
}

bool Builder::block_statement(const Statement& s, const std::string& name) {
  static const std::set<std::string> names = {"where",       "reads",     "writes",   "block_attr",
                                              "sblock_attr", "func_attr", "execution"};
  if (!names.count(name)) return false;
  const Node& call = *s.value;
  if (name == "func_attr") {
    if (!block_ || !block_->in_function)
      fail(s, "place", "T.func_attr stands directly in a function");
    Args a = args(call, {"attrs"}, 1);
    for (auto& [key, value] : annotations(*a.get(0, "attrs")))
      function_->attrs = with_annotation(function_->attrs, key, value);
    return true;
  }
  if (!block_ || block_->in_function)
    fail(s, "place", cat("T.", name, " stands directly in a block"));
  BlockNode& b = *block_->block;
  if (name == "where") {
    Args a = args(call, {"condition"}, 1);
    if (block_->predicate) fail(s, "redefined", cat("block \"", b.name, "\" has two T.where"));
    block_->predicate = condition(*a.get(0, "condition"));
  } else if (name == "reads" || name == "writes") {
    bool reads = name == "reads";
    (reads ? block_->reads : block_->writes) = true;
    auto& list = reads ? b.reads : b.writes;
    for (std::size_t i = 1; i < call.kids.size(); ++i) {
      const Node& k = *call.kids[i];
      if (k.kind == Kind::list || k.kind == Kind::tuple) {
        for (const auto& kid : k.kids) list.push_back(region(*kid));
      } else {
        list.push_back(region(k));
      }
    }
  } else if (name == "execution") {
    Args a = args(call, {"axis", "begin", "end"}, 3);
    b.execution = {text(*a.get(0, "axis"), "the axis"), constant(*a.get(1, "begin"), "begin"),
                   constant(*a.get(2, "end"), "end")};
    if (b.execution.axis.empty() || b.execution.begin < 0 || b.execution.end < b.execution.begin)
      fail(call, "value",
           cat("[", b.execution.begin, ", ", b.execution.end, ") is no part of an axis"));
  } else {
    Args a = args(call, {"attrs"}, 1);
    for (auto& [key, value] : annotations(*a.get(0, "attrs"))) {
      if (find_annotation(b.annotations, key))
        fail(*a.get(0, "attrs"), "redefined", cat("the key \"", key, "\" appears twice"));
      b.annotations.emplace_back(key, value);
    }
  }
  return true;
}

Stmt Builder::block(const Statement& s) {
  Args a = args(*s.value, {"name"});
  if (s.target) fail(*s.target, "target", "T.block binds no name");
  BlockScope scope;
  scope.block = make_ref<BlockNode>();
  scope.block->id = fresh_block_id();
  if (const Node* name = a.get(0, "name")) scope.block->name = text(*name, "the name of a block");
  BlockScope* outer = block_;
  block_ = &scope;
  std::size_t mark = scope_.size();
  BlockNode& b = *scope.block;
  b.body = suite(s.body);
  block_ = outer;
  scope_.resize(mark);
  bool root = outer && outer->in_function && b.name == "root" && b.iters.empty();
  if (!root && (!scope.reads || !scope.writes)) {
    AccessRegions found = detect_block_regions(b);
    if (!scope.reads) b.reads = std::move(found.reads);
    if (!scope.writes) b.writes = std::move(found.writes);
  }
  return block_realize(std::move(scope.values), scope.predicate, scope.block);
}

}  // namespace weft::ir
