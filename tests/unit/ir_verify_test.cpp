// SPDX-License-Identifier: Apache-2.0
// Each rule of well-formedness, broken once.

#include <gtest/gtest.h>

#include <functional>

#include "ir_programs.h"
#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"
#include "weft/ir/verify.h"
#include "weft/ir/visit.h"

namespace weft::ir {
namespace {

struct Parts {
  Buffer a = make_buffer("A", dtypes::float32, {make_int(8), make_int(8)});
  Var i = make_var("i"), j = make_var("j"), v = make_var("v");
  Expr one = make_float(1);
  PrimFunc func(const Stmt& body) const {
    return make_func("f", {buffer_param(a)}, root_block(body));
  }
  Stmt loop(const Stmt& body) const { return make_for(i, make_int(0), make_int(8), body); }
  Stmt put(Expr x, Expr y) const {
    return make_ref<const StoreNode>(a, one, Exprs{std::move(x), std::move(y)});
  }
  Ref<BlockNode> block(const Stmt& body) const {
    auto b = make_ref<BlockNode>();
    b->id = fresh_block_id();
    b->name = "B";
    b->iters = {{v, {make_int(0), make_int(8)}, IterKind::spatial}};
    b->writes = {full_region(a)};
    b->body = body;
    return b;
  }
};

void expect_refused(const Verdict& v, std::string_view code, std::string_view message,
                    std::string_view shown = "^") {
  ASSERT_TRUE(v.has_value()) << "accepted, expected " << code;
  EXPECT_EQ(v->code, code) << render(*v);
  EXPECT_NE(v->message.find(message), std::string::npos) << render(*v);
  ASSERT_FALSE(v->places.empty()) << render(*v);
  EXPECT_NE(v->places[0].text.find(shown), std::string::npos) << render(*v);
}

TEST(IrVerify, AcceptsEveryProgramOfTheCollection) {
  for (const char* text : programs::all()) {
    IRModule m = parse_module(text);
    Verdict v = verify(m);
    EXPECT_FALSE(v.has_value()) << render(*v);
  }
}

/// x of one level, `levels` of them through `more`.
Expr tower(const Var& x, int levels, const std::function<Expr(Expr)>& more) {
  Expr out = x;
  while (out->depth < levels) out = more(std::move(out));
  return out;
}

TEST(IrVerify, ExpressionsHaveALimitOfLevels) {
  Parts p;
  const Var x = make_var("x", dtypes::float32);
  const Expr one = p.one, yes = make_var("c", dtypes::boolean);
  const std::vector<std::function<Expr(Expr)>> ways = {
      [&](Expr e) { return std::move(e) + one; },
      [&](Expr e) { return one - std::move(e); },
      [&](Expr e) { return make_ref<const CastNode>(dtypes::float32, std::move(e)); },
      [&](Expr e) { return call("exp", {std::move(e)}); },
      [&](Expr e) { return select(yes, one, std::move(e)); },
      [&](Expr e) { return let(make_var("y", dtypes::float32), one, std::move(e)); },
      [&](Expr e) {
        return load(p.a, {p.i, cast(dtypes::int64, std::move(e))});
      },
      [&](Expr e) { return if_then_else(yes, std::move(e), one); },
  };
  for (const auto& more : ways) {
    try {
      tower(x, kMaxExprDepth + 1, more);
      ADD_FAILURE() << "no limit";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "ir.build.depth") << e.what();
      EXPECT_NE(std::string(e.what()).find("deeper than 4000 levels"), std::string::npos);
    }
    // What is just allowed can be walked.
    const Expr deep = tower(x, kMaxExprDepth - 2, more);
    EXPECT_NE(structural_hash(deep), 0u);
    EXPECT_TRUE(same_expr(deep, tower(x, kMaxExprDepth - 2, more)) || deep->kind == ExprKind::let);
    EXPECT_GT(print(deep).size(), 4000u);
    EXPECT_GE(substitute(deep, {{p.v.get(), one}})->depth, kMaxExprDepth - 2);
    EXPECT_TRUE(verify(p.func(p.loop(make_ref<const StoreNode>(p.a, deep, Exprs{p.i, p.i}))))
                    .has_value());  // "x" is nobody's
  }
}

TEST(IrVerify, AtomicAdditionsAreStoresOfOneElement) {
  Parts p;
  const Stmt good = atomic_add(p.a, {p.i, p.i}, p.one);
  EXPECT_TRUE(updates_atomically(good, p.a.get()));
  EXPECT_FALSE(updates_atomically(p.put(p.i, p.i)));
  EXPECT_FALSE(verify(p.func(p.loop(good))).has_value());
  const auto* made = as<StoreNode>(good);
  const Stmt other = make_ref<const StoreNode>(p.a, made->value, Exprs{p.i, make_int(0)});
  expect_refused(verify(p.func(p.loop(other))), "verify.atomic.element", "reads another element");
  const Stmt inside = make_ref<const StoreNode>(p.a, made->value + p.one, Exprs{p.i, p.i});
  expect_refused(verify(p.func(p.loop(inside))), "verify.atomic.place", "inside an expression");
  const Stmt mixed = make_ref<const StoreNode>(
      p.a, call_typed(dtypes::float32, "atomic_add", {load(p.a, {p.i, p.i}), make_int(1)}),
      Exprs{p.i, p.i});
  expect_refused(verify(p.func(p.loop(mixed))), "verify.types", "an atomic_add of int64");
}

void expect_error(const std::function<void()>& f, std::string_view code, std::string_view part) {
  try {
    f();
    ADD_FAILURE() << "accepted, expected " << code;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(IrVerify, AtomicAdditionsHaveTypesThatMachinesAddInOneStep) {
  Parts p;
  Buffer half = make_buffer("H", dtypes::float16, {make_int(8)});
  expect_error([&] { atomic_add(half, {make_int(0)}, make_float(1, dtypes::float16)); },
               "ir.atomic.type", "\"H\" is one of float16");
  expect_error(
      [&] {
        atomic_add(p.a, {p.i, p.i}, make_int(1));
      },
      "ir.atomic.value", "but int64 is added");
  expect_error(
      [&] {
        call("atomic_add", {load(p.a, {p.i, p.i}), p.one});
      },
      "ir.call.atomic", "is a statement");
}

TEST(IrVerify, RefusesVariablesOutsideTheirScope) {
  Parts p;
  expect_refused(verify(p.func(p.put(p.j, p.j))), "verify.var.undefined",
                 "\"j\" is used but defined nowhere");
  expect_refused(verify(p.func(seq({p.loop(p.put(p.i, p.i)), p.put(p.i, p.i)}))),
                 "verify.var.undefined", "\"i\" is used outside its scope");
  expect_refused(verify(p.func(seq({p.loop(p.put(p.i, p.i)), p.loop(p.put(p.i, p.i))}))),
                 "verify.var.redefined", "\"i\" is defined twice");
}

TEST(IrVerify, RefusesTypesThatDoNotFit) {
  Parts p;
  Expr bad =
      make_ref<const BinaryNode>(ExprKind::add, dtypes::int64, p.i, make_int(1, dtypes::int32));
  expect_refused(verify(p.func(p.loop(p.put(bad, p.i)))), "verify.types",
                 "operands of int64 and int32", "^^^^^^^");
  expect_refused(verify(p.func(p.put(make_float(1), make_int(0)))), "verify.types",
                 "index 0 of \"A\" is float32");
  expect_refused(
      verify(p.func(make_ref<const StoreNode>(p.a, make_int(1), Exprs{make_int(0), make_int(0)}))),
      "verify.types", "\"A\" holds float32, but is written with int64");
  expect_refused(verify(p.func(make_ref<const StoreNode>(p.a, p.one, Exprs{make_int(0)}))),
                 "verify.rank", "\"A\" has 2 dimensions, but 1");
  expect_refused(verify(p.func(if_then(make_int(1), seq({})))), "verify.types",
                 "a condition is int64");
  expect_refused(verify(p.func(make_for(p.i, make_int(0), make_int(8, dtypes::int32), seq({})))),
                 "verify.types", "\"i\" is int64, its range int64 and int32");
  expect_refused(verify(p.func(let_stmt(p.i, make_int(0, dtypes::int32), seq({})))), "verify.types",
                 "\"i\" is int64, its value int32");
  expect_refused(verify(p.func(evaluate(make_ref<const NotNode>(make_int(0))))), "verify.types",
                 "\"not\" of int64");
  expect_refused(
      verify(p.func(evaluate(make_ref<const SelectNode>(make_bool(true), make_int(0), p.one)))),
      "verify.types", "select between int64 and float32");
  expect_refused(verify(p.func(evaluate(
                     make_ref<const CastNode>(dtypes::float32.with_lanes(4), make_int(0))))),
                 "verify.types", "changes the lanes");
  expect_refused(verify(p.func(evaluate(
                     make_ref<const RampNode>(make_int(0), make_int(1, dtypes::int32), 4)))),
                 "verify.types", "ramp of int64 and int32");
  expect_refused(
      verify(p.func(evaluate(make_ref<const BroadcastNode>(broadcast(make_int(0), 4), 4)))),
      "verify.types", "broadcast of int64x4");
  expect_refused(verify(p.func(evaluate(call_typed(dtypes::int64, "exp", {make_int(1)})))),
                 "verify.types", "\"exp\" does not fit its arguments of int64");
  expect_refused(verify(p.func(evaluate(call_typed(dtypes::float32, "pow", {p.one})))),
                 "verify.call.arity", "\"pow\" takes 2 arguments, not 1");
  expect_refused(verify(p.func(evaluate(make_ref<const BinaryNode>(ExprKind::lt, dtypes::int64,
                                                                   make_int(0), make_int(1))))),
                 "verify.types", "a result of int64 where bool follows");
  expect_refused(
      verify(p.func(p.put(make_ref<const RampNode>(make_int(0), make_int(1), 4), make_int(0)))),
      "verify.types", "only the last may be");
}

TEST(IrVerify, RefusesBuffersThatAreNotVisible) {
  Parts p;
  Buffer b = make_buffer("B", dtypes::float32, {make_int(4)});
  Stmt use = store(b, p.one, {make_int(0)});
  expect_refused(verify(p.func(use)), "verify.buffer.undefined", "\"B\" is not visible");
  expect_refused(verify(p.func(seq({allocate(b, use), use}))), "verify.buffer.undefined",
                 "\"B\" is not visible");
  expect_refused(verify(make_func("f", {}, root_block(use, {b, b}))), "verify.buffer.redefined",
                 "\"B\" is defined twice", "T.alloc_buffer");
  auto strided = edit(b);
  strided->strides = {make_int(1), make_int(1)};
  expect_refused(verify(make_func("f", {buffer_param(Buffer(strided))}, seq({}))),
                 "verify.buffer.shape", "1 dimensions and 2 strides");
}

TEST(IrVerify, RefusesHoles) {
  Parts p;
  expect_refused(verify(p.func(p.put(nullptr, make_int(0)))), "verify.expr",
                 "an expression is missing", "in");
  expect_refused(verify(p.func(make_for(p.i, make_int(0), make_int(8), nullptr))), "verify.stmt",
                 "a statement is missing", "in");
  expect_refused(verify(p.func(make_ref<const StoreNode>(nullptr, p.one, Exprs{}))),
                 "verify.buffer", "a buffer is missing here", "f");
  const char* absent = "a variable is missing here";
  expect_refused(verify(p.func(make_for(nullptr, make_int(0), make_int(8), seq({})))), "verify.var",
                 absent, "in");
  const Expr zero = make_int(0);
  expect_refused(verify(p.func(p.put(make_ref<const LetNode>(nullptr, zero, zero), zero))),
                 "verify.var", absent, "in");
  expect_refused(verify(p.func(make_ref<const LetStmtNode>(nullptr, p.one, seq({})))), "verify.var",
                 absent, "in");
  expect_refused(verify(make_func("f", {Param{}}, seq({}))), "verify.param",
                 "a parameter of \"f\" has no variable", "f");
  Buffer handles = make_buffer("H", dtypes::handle, {make_int(4)});
  expect_refused(verify(make_func("f", {buffer_param(handles)}, seq({}))), "verify.buffer.dtype",
                 "\"H\" holds handles");
  auto spread = edit(p.a);
  spread->spatial_axes = {"pe.x"};
  expect_refused(verify(make_func("f", {buffer_param(Buffer(spread))}, seq({}))),
                 "verify.buffer.layout", "1 spatial axes, but its layout gives 0");
}

TEST(IrVerify, RefusesBlocksThatReachOutside) {
  Parts p;
  auto b = p.block(p.put(p.i, p.v));
  expect_refused(verify(p.func(p.loop(block_realize({p.i}, nullptr, b)))), "verify.block.isolation",
                 "the block uses \"i\" of a loop around it");
  auto undeclared = p.block(p.put(p.v, p.v));
  undeclared->writes.clear();
  expect_refused(verify(p.func(p.loop(block_realize({p.i}, nullptr, undeclared)))),
                 "verify.block.region",
                 "\"A\" is written here, but the block's regions do not say so");
  auto ok = p.block(p.put(p.v, p.v));
  Stmt realize = block_realize({p.i}, nullptr, ok);
  EXPECT_FALSE(verify(p.func(p.loop(realize))).has_value());
  expect_refused(verify(p.func(p.loop(seq({realize, realize})))), "verify.block.id",
                 "identity of \"B\"");
  Stmt unbound = make_ref<const BlockRealizeNode>(Exprs{}, make_bool(true), Block(ok));
  expect_refused(verify(p.func(p.loop(unbound))), "verify.block.bindings",
                 "1 iterators and 0 bindings", "f");
  expect_refused(verify(p.func(p.loop(block_realize({make_int(0, dtypes::int32)}, nullptr, ok)))),
                 "verify.types", "\"v\" is int64, its binding int32");
  auto rank = p.block(p.put(p.v, p.v));
  rank->reads = {BufferRegion{p.a, {{p.v, make_int(1)}}}};
  expect_refused(verify(p.func(p.loop(block_realize({p.i}, nullptr, rank)))), "verify.rank",
                 "\"A\" has 2 dimensions, but the region has 1");
}

TEST(IrVerify, RefusesTheRest) {
  Parts p;
  Var token = make_var("tok");
  expect_refused(verify(p.func(make_ref<const WaitNode>(token, make_int(0), ""))), "verify.token",
                 "nothing signals the token \"tok\"");
  expect_refused(verify(p.func(make_for(p.i, make_int(0), make_int(8), seq({}), ForKind::bound))),
                 "verify.axis", "is bound to no axis");
  std::vector<LaunchAxis> axes = {{"x", p.i, make_int(2)}, {"x", p.j, make_int(2)}};
  expect_refused(verify(p.func(make_ref<const LaunchNode>("k", axes, seq({})))), "verify.axis",
                 "has the axis \"x\" twice");
  BufferRegion r = full_region(p.a);
  expect_refused(
      verify(p.func(make_ref<const CollectiveNode>(
          CollectiveKind::reduce, std::vector<std::string>{"x"}, r, r, nullptr, nullptr))),
      "verify.reducer", "has no reducer");
  expect_refused(verify(make_func("f", {}, nullptr)), "verify.body", "\"f\" has no body", "f");
  IRModule m = make_module({{"f", p.func(evaluate(call_typed(dtypes::int32, "g", {})))}});
  expect_refused(verify(m), "verify.call.unknown", "\"g\" is neither an intrinsic nor a function");
  IRModule twice = make_module({{"f", p.func(seq({}))}, {"f", p.func(seq({}))}});
  EXPECT_EQ(verify(twice)->code, "verify.function.redefined");
  auto reducer = make_ref<ReducerNode>();
  expect_refused(verify(p.func(evaluate(make_ref<const ReduceNode>(
                     Reducer(reducer), Exprs{p.one}, std::vector<IterVar>{}, nullptr, 0)))),
                 "verify.reduce", "a reduction of the front end");
}

}  // namespace
}  // namespace weft::ir
