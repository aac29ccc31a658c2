// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/parse_internal.h"
#include "weft/ir/regions.h"

namespace weft::ir {

using syntax::Kind;
using syntax::StatementKind;

namespace {

/// The callee's node of a statement's right side, when it is a call.
const syntax::Node* callee(const syntax::Node* n) {
  return n && n->kind == Kind::call ? n->kids[0].get() : nullptr;
}

ExprKind augmented_kind(const std::string& op) {
  return op == "+="    ? ExprKind::add
         : op == "-="  ? ExprKind::sub
         : op == "*="  ? ExprKind::mul
         : op == "/="  ? ExprKind::div
         : op == "//=" ? ExprKind::floordiv
                       : ExprKind::floormod;
}

}  // namespace

std::vector<std::string> Builder::target_names(const Node& n) {
  std::vector<std::string> out;
  auto one = [&](const Node& t) {
    if (t.kind != Kind::name) fail(t, "target", "expected a name here");
    if (std::find(out.begin(), out.end(), t.text) != out.end())
      fail(t, "redefined", cat("\"", t.text, "\" appears twice"));
    out.push_back(t.text);
  };
  if (n.kind == Kind::tuple || n.kind == Kind::list) {
    for (const auto& kid : n.kids) one(*kid);
  } else {
    one(n);
  }
  return out;
}

/// A suite deeper inside: statements that belong directly to a block are refused there.
Stmt Builder::nested_suite(const std::vector<syntax::StatementPtr>& list) {
  BlockScope* outer = block_;
  block_ = nullptr;
  Stmt s = suite(list);
  block_ = outer;
  return s;
}

Stmt Builder::suite(const std::vector<syntax::StatementPtr>& list) {
  std::size_t mark = scope_.size();
  struct Open {
    std::vector<Stmt> before;
    std::function<Stmt(Stmt)> bind;
    int line;
  };
  std::vector<Open> open;  // binders whose scope is the rest of the suite
  std::vector<Stmt> stmts;
  for (const auto& s : list) {
    if (s->kind == StatementKind::pass) continue;
    if (s->kind == StatementKind::expression && s->value->kind == Kind::string)
      continue;  // a docstring
    if (s->kind == StatementKind::assign && s->text.empty() && s->target->kind != Kind::subscript) {
      if (std::function<Stmt(Stmt)> bind = assignment(*s)) {
        open.push_back({std::move(stmts), std::move(bind), s->line});
        stmts.clear();
        if (open.size() > 2000) fail(*s, "depth", "more than 2000 variables in one suite");
      }
      continue;
    }
    Stmt out = statement(*s);
    if (!out) continue;
    if (out->line == 0) out->line = s->line + source_.first_line - 1;
    stmts.push_back(std::move(out));
  }
  Stmt body = seq(std::move(stmts));
  while (!open.empty()) {
    Open o = std::move(open.back());
    open.pop_back();
    body = o.bind(body);
    body->line = o.line + source_.first_line - 1;
    o.before.push_back(body);
    body = seq(std::move(o.before));
  }
  scope_.resize(mark);
  return body;
}

/// T.allocate and T.launch_thread: what they bind holds for the statements after or under them.
std::function<Stmt(Stmt)> Builder::storage_binder(const Node& call, const std::string& name,
                                                  const std::string& target) {
  if (name != "launch_thread") {
    Args a = args(call,
                  {"shape", "dtype", "scope", "strides", "elem_offset", "align", "spatial_axes",
                   "layout", "annotations"},
                  1);
    Buffer b = buffer(call, target, a, 0);
    const Node* notes = a.get(8, "annotations");
    Annotations given = notes ? annotations(*notes) : Annotations{};
    define(target, Value::of(b));
    return [b, given](Stmt body) { return allocate(b, std::move(body), given); };
  }
  Args a = args(call, {"thread", "extent"}, 2);
  std::string axis = text(*a.get(0, "thread"), "the axis");
  Expr extent = expr(*a.get(1, "extent"), dtypes::int64);
  Var v = make_var(target, extent->dtype);
  Expr zero = make_int(0, extent->dtype);
  loops_[v.get()] = {zero, extent};
  define(target, Value::of(Expr(v)));
  return [v, zero, extent, axis](Stmt body) {
    return make_for(v, zero, extent, std::move(body), ForKind::bound, axis);
  };
}

std::function<Stmt(Stmt)> Builder::assignment(const Statement& s) {
  const Node* f = callee(s.value.get());
  std::string name = f ? script_name(*f) : "";
  if (s.target->kind == Kind::tuple && s.value && s.value->kind == Kind::tuple &&
      s.value->kids.size() == s.target->kids.size() && name.empty()) {
    // n, m = T.int64(), T.int64(): declarations only
    for (std::size_t i = 0; i < s.value->kids.size(); ++i) {
      const Node& v = *s.value->kids[i];
      if (v.kind != Kind::call || script_name(*v.kids[0]).empty())
        fail(v, "value", "expected the declaration of a variable such as T.int64()");
      DType t = dtype(*v.kids[0]);
      define(target_names(*s.target->kids[i])[0],
             Value::of(Expr(make_var(s.target->kids[i]->text, t))));
    }
    return nullptr;
  }
  if (!name.empty() && block_assignment(s, name)) return nullptr;
  if (s.target->kind != Kind::name)
    fail(*s.target, "target", "expected a name or an element of a buffer on the left");
  std::string target = s.target->text;
  DType t;
  bool typed_call = !name.empty() && try_parse_dtype(name, t);
  if (typed_call && s.value->kids.size() == 1) {  // n = T.int64()
    define(target, Value::of(Expr(make_var(target, t))));
    return nullptr;
  }
  if (name == "var" || name == "size_var" || name == "Var" || name == "SizeVar") {
    Args a = args(*s.value, {"name", "dtype"});
    // T.var("int64") or T.Var("n", "int64")
    const Node* type = a.get(1, "dtype");
    DType kind = dtypes::int64;
    if (type) kind = dtype(*type);
    else if (const Node* only = a.get(0, "name"); only) {
      std::string word = text(*only, "the argument");
      if (!try_parse_dtype(word, kind)) kind = dtypes::int64;
    }
    define(target, Value::of(Expr(make_var(target, kind))));
    return nullptr;
  }
  if (name == "allocate" || name == "decl_buffer" || name == "launch_thread")
    return storage_binder(*s.value, name, target);
  if (!s.value) {  // n: T.int64
    define(target, Value::of(Expr(make_var(target, dtype(*s.annotation)))));
    return nullptr;
  }
  Value v = eval(*s.value);
  if (!s.annotation &&
      v.kind != Value::Kind::expr) {  // another name for something known while parsing
    define(target, v);
    return nullptr;
  }
  DType type = dtypes::handle;
  if (s.annotation)
    type = dtype(s.annotation->kind == Kind::call ? *s.annotation->kids[0] : *s.annotation);
  Expr value = to_expr(*s.value, v, type);
  if (s.annotation && value->dtype != type)
    fail(*s.value, "types",
         cat("\"", target, "\" is ", to_string(type), ", but its value is ",
             to_string(value->dtype)),
         "insert T.Cast");
  Var x = make_var(target, value->dtype);
  define(target, Value::of(Expr(x)));
  return [x, value](Stmt body) { return let_stmt(x, value, std::move(body)); };
}

Stmt Builder::statement(const Statement& s) {
  switch (s.kind) {
    case StatementKind::assign: return store(s);
    case StatementKind::for_: return for_loop(s);
    case StatementKind::with: return with(s);
    case StatementKind::if_: {
      Expr c = condition(*s.value);
      if (c->dtype.lanes > 1)
        fail(*s.value, "types", "\"if\" needs one condition, not a vector of them",
             "use T.Select or T.if_then_else");
      Stmt a = nested_suite(s.body);
      Stmt b = s.otherwise.empty() ? nullptr : nested_suite(s.otherwise);
      if (b && s.otherwise.size() == 1 && s.otherwise[0]->kind == StatementKind::pass) b = seq({});
      return if_then(c, a, b);
    }
    case StatementKind::while_: {
      Expr c = condition(*s.value);
      if (c->dtype.lanes > 1)
        fail(*s.value, "types", "\"while\" needs one condition, not a vector of them");
      return while_loop(c, nested_suite(s.body));
    }
    case StatementKind::assert_:
      return assert_stmt(condition(*s.value), s.extra ? text(*s.extra, "the message") : "");
    case StatementKind::expression: return expression_statement(s);
    case StatementKind::function:
    case StatementKind::class_:
      fail(s, "place", cat("\"", s.text, "\" is defined inside a function"));
    default: fail(s, "place", "this statement has no meaning inside a function");
  }
}

Stmt Builder::store(const Statement& s) {
  if (s.target->kind != Kind::subscript)
    fail(*s.target, "target", "expected an element of a buffer on the left");
  if (s.annotation) fail(*s.annotation, "place", "an element of a buffer has no annotation");
  const Node& t = *s.target;
  Value base = eval(*t.kids[0]);
  if (base.kind != Value::Kind::buffer)
    fail(t, "value", "only elements of buffers can be assigned");
  Value access = subscript(t);  // checks rank and index types
  const auto* l = as<LoadNode>(access.expr);
  DType want = l->dtype;
  Value v = eval(*s.value);
  Expr value;
  if (!s.text.empty()) {
    ExprKind kind = augmented_kind(s.text);
    Expr right = to_expr(*s.value, v, want);
    if (kind == ExprKind::div && !want.is_float())
      fail(*s.value, "types", cat("\"/=\" on ", to_string(want), " is ambiguous"), "write //=");
    value = raw_binary(*s.value, kind, access.expr, right);
  } else {
    value = to_expr(*s.value, v, want);
  }
  if (value->dtype != want) {
    if (value->dtype.lanes == 1 && value->dtype == want.element()) {
      value = ir::broadcast(value, want.lanes);
    } else if (value->dtype.is_int() && want.is_int() && value->dtype.lanes == want.lanes &&
               value->kind == ExprKind::int_imm) {
      value = cast(want, value);
    } else {
      fail(*s.value, "types",
           cat("\"", l->buffer->name, "\" holds ", to_string(want), ", but ",
               to_string(value->dtype), " is stored"),
           cat("write T.Cast(\"", to_string(want), "\", …)"));
    }
  }
  return make_ref<const StoreNode>(l->buffer, value, l->indices);
}

Stmt Builder::for_loop(const Statement& s) {
  const Node* f = callee(s.value.get());
  std::string name = f ? script_name(*f) : "";
  if (name == "unrolled") name = "unroll";
  if (name == "vectorize") name = "vectorized";
  static const std::map<std::string, ForKind> kinds = {
      {"range", ForKind::serial},      {"serial", ForKind::serial},
      {"parallel", ForKind::parallel}, {"vectorized", ForKind::vectorized},
      {"unroll", ForKind::unrolled},   {"thread_binding", ForKind::bound}};
  std::vector<std::string> targets = target_names(*s.target);
  struct Loop {
    Var var;
    Range range;
    ForKind kind;
    std::string axis;
    Annotations annotations;
  };
  std::vector<Loop> loops;
  std::size_t mark = scope_.size();
  if (name == "grid") {
    std::size_t count = s.value->kids.size() - 1;
    if (count != targets.size())
      fail(*s.value, "arity",
           cat("T.grid has ", count, " extents for ", targets.size(), " variables"));
    for (std::size_t i = 0; i < count; ++i) {
      const Node& e = *s.value->kids[i + 1];
      if (!s.value->names[i].empty())
        fail(e, "argument", cat("T.grid has no argument \"", s.value->names[i], "\""));
      Value v = eval(e);
      Range r;
      if (v.kind == Value::Kind::tuple && v.items.size() == 2) r = range(e, v.items[0], v.items[1]);
      else r = range(e, Value::number(std::int64_t{0}), v);
      loops.push_back({make_var(targets[i], r.extent->dtype), r, ForKind::serial, "", {}});
    }
  } else if (auto kind = kinds.find(name); kind != kinds.end()) {
    if (targets.size() != 1)
      fail(*s.target, "arity", cat("one loop has one variable, found ", targets.size()),
           "use T.grid for several");
    bool bound = kind->second == ForKind::bound;
    Args a = bound ? args(*s.value, {"start", "stop", "thread", "annotations"}, 0)
                   : args(*s.value, {"start", "stop", "annotations"}, 0);
    const Node* first = a.get(0, "start");
    const Node* second = a.get(1, "stop");
    const Node* axis = bound ? a.get(2, "thread") : nullptr;
    if (bound && !axis && second && second->kind == Kind::string)
      axis = std::exchange(second, nullptr);  // (extent, "threadIdx.x")
    if (!first && !second) fail(*s.value, "arity", "a loop needs an extent");
    Value lo = Value::number(std::int64_t{0});
    if (first && second) lo = eval(*first);
    Range r = range(*s.value, lo, eval(second ? *second : *first));
    const Node* notes = bound ? a.get(3, "annotations") : a.get(2, "annotations");
    if (name == "range" && notes && notes->kind != Kind::dict)
      fail(*notes, "loop", "a range has no step",
           "write the loop over the number of steps and multiply its variable");
    Annotations given =
        notes && notes->kind != Kind::constant ? annotations(*notes) : Annotations{};
    std::string axis_name;
    if (bound) {
      if (!axis) fail(*s.value, "arity", "T.thread_binding needs thread=, the name of an axis");
      axis_name = text(*axis, "thread");
    }
    loops.push_back(
        {make_var(targets[0], r.extent->dtype), r, kind->second, axis_name, std::move(given)});
  } else {
    std::vector<std::string> known = {"grid"};
    for (const auto& [key, value] : kinds) known.push_back(key);
    if (!f || name.empty())
      fail(*s.value, "loop", "a loop runs over range(…), T.grid(…) or another loop of the script",
           cat("known are ", join(known)));
    fail(*f, "name", cat("\"T.", name, "\" is no loop"), did_you_mean(name, known));
  }
  for (const Loop& l : loops) {
    loops_[l.var.get()] = l.range;
    define(l.var->name, Value::of(Expr(l.var)));
  }
  Stmt body = nested_suite(s.body);
  scope_.resize(mark);
  for (std::size_t i = loops.size(); i-- > 0;) {
    Loop& l = loops[i];
    body = make_for(l.var, l.range.min, l.range.extent, body, l.kind, l.axis,
                    std::move(l.annotations));
    body->line = s.line + source_.first_line - 1;
  }
  return body;
}

Var Builder::token(const Node& n) {
  std::string name = n.kind == Kind::string ? n.text : n.kind == Kind::name ? n.text : "";
  if (name.empty()) fail(n, "token", "a token is a name");
  if (n.kind == Kind::name) {
    if (const Value* v = find(name)) {
      const auto* var = v->kind == Value::Kind::expr ? as<VarNode>(v->expr) : nullptr;
      if (!var) fail(n, "token", cat("\"", name, "\" is no token"));
      return Var(var);
    }
  }
  auto [it, fresh] = tokens_.emplace(name, nullptr);  // the first use of a token declares it
  if (fresh) it->second = make_var(name, dtypes::int64);
  return it->second;
}

Stmt Builder::with(const Statement& s) {
  const Node* f = callee(s.value.get());
  std::string name = f ? script_name(*f) : "";
  std::size_t mark = scope_.size();
  auto single = [&](std::string_view what) {
    if (!s.target) fail(*s.value, "arity", cat(what, " needs \"as\" and a name"));
    std::vector<std::string> names = target_names(*s.target);
    if (names.size() != 1)
      fail(*s.target, "arity", cat(what, " binds one name, found ", names.size()));
    return names[0];
  };
  Stmt out;
  if (name == "block" || name == "sblock") return block(s);
  if (name == "launch") return launch(s);
  if (name == "init") {
    if (!block_ || block_->in_function) fail(s, "place", "T.init stands directly in a block");
    if (block_->block->init)
      fail(s, "redefined", cat("block \"", block_->block->name, "\" has two T.init"));
    block_->block->init = nested_suite(s.body);
    return nullptr;
  }
  if (name == "async_") {
    Args a = args(*s.value, {"queue", "token"}, 2);
    std::string queue = text(*a.get(0, "queue"), "the queue");
    Var t = token(*a.get(1, "token"));
    return make_ref<const AsyncNode>(queue, t, nested_suite(s.body));
  }
  if (name == "let" || name == "LetStmt") {
    std::string target;
    const Node *type = nullptr, *what = nullptr;
    if (!s.target && s.value->kids.size() == 3 && s.value->kids[1]->kind == Kind::name) {
      target = s.value->kids[1]->text;  // the older with T.let(x, value):
      what = s.value->kids[2].get();
    } else {
      Args a = args(*s.value, {"value", "dtype"}, 1);
      target = single("T.let");
      type = a.get(1, "dtype");
      what = a.get(0, "value");
    }
    Expr value = expr(*what, type ? dtype(*type) : dtypes::handle);
    Var v = make_var(target, type ? dtype(*type) : value->dtype);
    define(target, Value::of(Expr(v)));
    out = let_stmt(v, value, nested_suite(s.body));
  } else if (name == "allocate" || name == "decl_buffer" || name == "launch_thread") {
    std::function<Stmt(Stmt)> bind = storage_binder(*s.value, name, single(cat("T.", name)));
    out = bind(nested_suite(s.body));
  } else if (name == "attr") {
    fail(*s.value, "attr", "T.attr has no meaning here",
         "use annotations= on loops, T.block_attr on blocks, T.func_attr on functions");
  } else {
    std::vector<std::string> known = {"block", "init",     "launch",       "async_",
                                      "let",   "allocate", "launch_thread"};
    if (name.empty())
      fail(*s.value, "with",
           "\"with\" opens T.block, T.init, T.launch, T.async_, T.let or T.allocate");
    fail(*f, "name", cat("\"with T.", name, "\" is unknown"), did_you_mean(name, known));
  }
  scope_.resize(mark);
  return out;
}

Stmt Builder::launch(const Statement& s) {
  Args a = args(*s.value, {"name", "axes"}, 2);
  std::string name = text(*a.get(0, "name"), "the name of the kernel");
  const Node& axes = *a.get(1, "axes");
  if (axes.kind != Kind::dict)
    fail(axes, "value", "T.launch needs a dictionary from axis to extent");
  std::vector<std::string> names;
  if (s.target) names = target_names(*s.target);
  if (names.size() != axes.kids.size() / 2)
    fail(*s.value, "arity",
         cat("T.launch has ", axes.kids.size() / 2, " axes for ", names.size(), " variables"));
  std::size_t mark = scope_.size();
  std::vector<LaunchAxis> list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string axis = text(*axes.kids[2 * i], "an axis");
    Expr extent = expr(*axes.kids[2 * i + 1], dtypes::int64);
    if (!extent->dtype.is_integral())
      fail(*axes.kids[2 * i + 1], "types",
           cat("an extent must be an integer, found ", to_string(extent->dtype)));
    list.push_back({axis, make_var(names[i], extent->dtype), extent});
  }
  for (const LaunchAxis& l : list) {
    loops_[l.var.get()] = {make_int(0, l.extent->dtype), l.extent};
    define(l.var->name, Value::of(Expr(l.var)));
  }
  Stmt body = nested_suite(s.body);
  scope_.resize(mark);
  return make_ref<const LaunchNode>(name, std::move(list), body);
}

Stmt Builder::collective(const Node& n) {
  Args a = args(n, {"kind", "axes", "dst", "src", "reducer", "root"}, 4);
  static const std::vector<std::string> names = {"broadcast", "reduce",  "all_reduce",
                                                 "shift",     "scatter", "gather"};
  const Node& kind_node = *a.get(0, "kind");
  std::string kind = text(kind_node, "the kind of collective");
  auto found = std::find(names.begin(), names.end(), kind);
  if (found == names.end())
    fail(kind_node, "name", cat("\"", kind, "\" is no collective"), cat("known are ", join(names)));
  std::vector<std::string> axes;
  const Node& list = *a.get(1, "axes");
  if (list.kind == Kind::string) {
    axes.push_back(list.text);
  } else {
    for (const auto& kid : list.kids) axes.push_back(text(*kid, "an axis"));
  }
  BufferRegion dst = region(*a.get(2, "dst")), src = region(*a.get(3, "src"));
  const Node* r = a.get(4, "reducer");
  const Node* root = a.get(5, "root");
  bool reducing = kind == "reduce" || kind == "all_reduce";
  if (reducing && !r) fail(n, "arity", cat("T.collective(\"", kind, "\") needs reducer="));
  return make_ref<const CollectiveNode>(
      static_cast<CollectiveKind>(found - names.begin()), std::move(axes), dst, src,
      r ? reducer(*r, {src.buffer->dtype.element()}) : nullptr,
      root && root->kind != Kind::constant ? expr(*root, dtypes::int64) : nullptr);
}

/// T.atomic_add(A[i], value) or T.atomic_max; the element may also be given as T.address_of(A[i]).
Stmt Builder::atomic(const Node& call, const std::string& op) {
  Args a = args(call, {"dst", "value"}, 2);
  const Node* at = a.get(0, "dst");
  if (const Node* f = callee(at); f && script_name(*f) == "address_of" && at->kids.size() == 2)
    at = at->kids[1].get();
  Value element = at->kind == Kind::subscript ? subscript(*at) : Value();
  const auto* l = as<LoadNode>(element.expr);
  if (!l)
    fail(*at, "atomic", cat("T.", op, " updates one element of a buffer"),
         cat("write T.", op, "(A[i], value)"));
  Expr value = to_expr(*a.get(1, "value"), eval(*a.get(1, "value")), l->dtype);
  return guard(call, [&] { return atomic_update(op, l->buffer, l->indices, value); });
}

Stmt Builder::expression_statement(const Statement& s) {
  const Node* f = callee(s.value.get());
  std::string name = f ? script_name(*f) : "";
  if (!name.empty()) {
    if (block_statement(s, name)) return nullptr;
    const Node& call = *s.value;
    if (name == "evaluate") {
      Args a = args(call, {"value"}, 1);
      return evaluate(expr(*a.get(0, "value")));
    }
    if (is_atomic(name)) return atomic(call, name);
    if (name == "Assert") {
      Args a = args(call, {"condition", "message"}, 1);
      const Node* message = a.get(1, "message");
      return assert_stmt(condition(*a.get(0, "condition")),
                         message ? text(*message, "the message") : "");
    }
    if (name == "wait") {
      Args a = args(call, {"token", "outstanding", "consumer"}, 2);
      Expr n = expr(*a.get(1, "outstanding"), dtypes::int64);
      const Node* consumer = a.get(2, "consumer");
      return make_ref<const WaitNode>(token(*a.get(0, "token")), n,
                                      consumer ? text(*consumer, "the consumer") : "");
    }
    if (name == "collective") return collective(call);
    if (name == "attr")
      fail(call, "attr", "T.attr has no meaning here",
           "use annotations= on loops, T.block_attr on blocks, T.func_attr on functions");
  }
  return evaluate(expr(*s.value));
}

}  // namespace weft::ir
