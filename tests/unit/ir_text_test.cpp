// SPDX-License-Identifier: Apache-2.0
// The text form: what it accepts, what it prints, what it refuses.

#include <gtest/gtest.h>

#include <random>

#include "ir_programs.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::ir {
namespace {

void expect_round_trip(const IRModule& m) {
  std::string text = print(m);
  IRModule again;
  try {
    again = parse_module(text);
  } catch (const Error& e) {
    FAIL() << e.what() << "\n" << text;
  }
  EXPECT_TRUE(structural_equal(m, again)) << text << "\nthen\n" << print(again);
  EXPECT_EQ(structural_hash(m), structural_hash(again)) << text;
  EXPECT_EQ(text, print(again));
}

/// Parses a text that must fail; checks slug, message, and that the caret stands under `guilty`.
void expect_error(std::string_view text, std::string_view slug, std::string_view message,
                  std::string_view guilty, const Capture& capture = {}) {
  try {
    IRModule m = parse_module(text, "bad.weft", capture);
    ADD_FAILURE() << "accepted:\n" << text << "\nas\n" << print(m);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::parse) << e.what();
    EXPECT_EQ(e.code(), cat("parse.", slug)) << e.what();
    EXPECT_NE(e.message().find(message), std::string::npos) << e.what();
    EXPECT_NE(e.message().find("bad.weft:"), std::string::npos) << e.what();
    ASSERT_EQ(e.refusal().places.size(), 1u) << e.what();
    const Place& p = e.refusal().places[0];
    EXPECT_NE(p.text.find('^'), std::string::npos) << e.what();
    // The text at line and column begins with the guilty part.
    std::vector<std::string> lines = split(text, '\n');
    ASSERT_GE(p.line, 1) << e.what();
    ASSERT_LE(static_cast<std::size_t>(p.line), lines.size()) << e.what();
    const std::string& line = lines[static_cast<std::size_t>(p.line) - 1];
    EXPECT_TRUE(std::string_view(line)
                    .substr(std::min(line.size(), static_cast<std::size_t>(p.column - 1)))
                    .starts_with(guilty))
        << e.what();
  }
}

std::string in_func(std::string_view body) {
  std::string out =
      "@T.prim_func\ndef f(A: T.Buffer((16, 16), \"float32\"), B: T.Buffer((16,), \"int32\"), n: "
      "T.int64):\n";
  for (const std::string& line : split(body, '\n')) out += cat("    ", line, "\n");
  return out;
}

TEST(IrText, names_that_no_array_gives_are_refused) {
  expect_error(
      "@T.prim_func\ndef main(A: T.Buffer((8,), \"int8\")):\n    s = T.alloc_buffer((\"m\",), "
      "\"int8\")\n    T.evaluate(0)\n",
      "name", "nothing gives the extent \"m\"", "\"m\"");
  expect_error(
      "@T.prim_func\ndef main(A: T.Buffer((8,), \"int8\")):\n    s = T.alloc_buffer((4,), "
      "\"int8\", strides=\"int32\")\n    T.evaluate(0)\n",
      "name", "nothing gives the extent \"int32\"", "\"int32\"");
  parse_module(
      "@T.prim_func\ndef main(a: T.handle):\n    A = T.match_buffer(a, (\"m\", 4), \"int8\", "
      "strides=(\"q\", 1))\n    T.evaluate(0)\n");
}

TEST(IrText, SeedProgramsParseAsPrintedInTheNotebook) {
  IRModule add = parse_module(programs::kSeedVectorAdd);
  ASSERT_EQ(add->functions.size(), 1u);
  EXPECT_EQ(add->functions[0].first, "main");
  PrimFunc f = add->functions[0].second;
  EXPECT_EQ(print(f), R"(from weft import script as T

@T.prim_func
def main(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), C: T.Buffer((1024,), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    for i in range(1024):
        with T.block("C"):
            vi = T.axis.remap("S", [i])
            T.reads(A[vi], B[vi])
            T.writes(C[vi])
            C[vi] = A[vi] + B[vi]
)");
  expect_round_trip(add);
  IRModule window = parse_module(programs::kSeedWindowSum);
  expect_round_trip(window);
  EXPECT_NE(print(window).find("T.reads(A[vi:vi + 3])"), std::string::npos) << print(window);
  IRModule gemm = parse_module(programs::kSeedMatmul);
  EXPECT_EQ(print(gemm->functions[0].second), R"(from weft import script as T

@T.prim_func
def main(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    for i, j, k in T.grid(1024, 1024, 1024):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)");
  expect_round_trip(gemm);
}

TEST(IrText, EveryProgramOfTheCollectionRoundTrips) {
  for (const char* text : programs::all()) {
    IRModule m;
    try {
      m = parse_module(text);
    } catch (const Error& e) {
      FAIL() << e.what() << "\n" << text;
    }
    expect_round_trip(m);
  }
}

TEST(IrText, PrintedProgramsAreStable) {
  // What is printed is itself canonical: printing what was parsed gives the same text, header and
  // all.
  for (const char* text : programs::canonical()) {
    PrimFunc f = parse_func(text);
    EXPECT_EQ(print(f), text);
  }
}

TEST(IrText, HandBuiltNodesKeepTheirTypesAndAreNotFolded) {
  Buffer a = make_buffer("A", dtypes::float32, {make_int(8)}),
         h = make_buffer("H", dtypes::float16, {make_int(8)}),
         u = make_buffer("U", dtypes::uint64, {make_int(8)});
  Var i = make_var("i"), j = make_var("i", dtypes::int32), w = make_var("i");  // one name for three
  auto raw = [](ExprKind k, Expr x, Expr y) {
    return Expr(
        make_ref<const BinaryNode>(k, k >= ExprKind::eq ? dtypes::boolean : x->dtype, x, y));
  };
  auto c32 = [](std::int64_t v) { return make_int(v, dtypes::int32); };
  std::vector<Stmt> list = {
      store(a, make_float(-0.0), {raw(ExprKind::add, i, make_int(0))}),
      store(a, raw(ExprKind::add, make_float(1), make_float(2)),
            {raw(ExprKind::add, make_int(1), make_int(2))}),
      store(a, raw(ExprKind::mul, cast(dtypes::float32, j), make_float(0.1)),
            {raw(ExprKind::floormod,
                 cast(dtypes::int64, raw(ExprKind::sub, c32(7), raw(ExprKind::sub, j, c32(-3)))),
                 make_int(8))}),
      store(a,
            make_ref<const SelectNode>(raw(ExprKind::lt, c32(1), c32(2)), make_float(1e30),
                                       make_float(-1e-7)),
            {make_int(0)}),
      store(a, make_float(INFINITY), {make_int(0)}),
      store(a, make_float(-INFINITY), {make_int(0)}),
      store(h, make_float(0.1, dtypes::float16), {make_int(0)}),
      store(u, make_int(-1, dtypes::uint64), {make_int(0)}),
      store(u, raw(ExprKind::div, load(u, {make_int(0)}), make_int(3, dtypes::uint64)),
            {make_int(0)}),
      store(u, raw(ExprKind::mod, load(u, {make_int(0)}), make_int(3, dtypes::uint64)),
            {make_int(0)}),
      store(a, ir::let(w, make_int(4), cast(dtypes::float32, raw(ExprKind::mul, w, w))),
            {make_int(0)}),
      store(a, raw(ExprKind::add, make_float(1e21), make_float(-4e18)), {make_int(0)}),
      store(a, broadcast(make_float(1), 4),
            {make_ref<const RampNode>(make_int(0), make_int(2), 4)}),
      store(a, call_typed(dtypes::float32, "reinterpret", {c32(1)}), {make_int(0)}),
      store(a, call("pow", {make_float(2), load(a, {make_int(1)})}), {make_int(0)}),
      store(u, call("shift_left", {load(u, {make_int(0)}), make_int(3, dtypes::uint64)}),
            {make_int(0)}),
      if_then(make_ref<const NotNode>(
                  raw(ExprKind::or_, raw(ExprKind::and_, raw(ExprKind::eq, i, i), make_bool(true)),
                      make_bool(false))),
              seq({}), seq({})),
      evaluate(
          call("if_then_else", {raw(ExprKind::lt, i, make_int(3)),
                                make_int(std::numeric_limits<std::int64_t>::min()), make_int(2)})),
      evaluate(call_typed(dtypes::int32, "call_extern",
                          {make_string("f\n\"'\\\t"), c32(1), make_int(1)})),
  };
  Stmt body = make_for(
      i, make_int(2), make_int(3),
      make_for(j, c32(-1), c32(4), seq(list), ForKind::unrolled, "",
               {{"k", Json(1.0)}, {"l", Json()}, {"m", Json(Json::Array{Json(1), Json(true)})}}));
  PrimFunc f =
      make_func("f", {buffer_param(a), buffer_param(h), buffer_param(u)}, root_block(body));
  expect_round_trip(make_module({{"f", f}}));
  // The same without its root: lowered.
  PrimFunc g = make_func("kernel.1", {buffer_param(a), buffer_param(h), buffer_param(u)}, body);
  std::string text = print(g);
  EXPECT_NE(text.find("@T.prim_func(key=\"kernel.1\", lowered=True)\ndef kernel_1("),
            std::string::npos)
      << text;
  EXPECT_TRUE(structural_equal(g, parse_func(text)));
  EXPECT_EQ(parse_func(text)->name, "kernel.1");
}

TEST(IrText, LiteralsTakeTheTypeOfTheirNeighbour) {
  PrimFunc f =
      parse_func(in_func("for i in range(16):\n    B[i] = B[i] * 2 + 1\n    A[i, 0] = 3 * A[i, 0] "
                         "- 0.5\n    A[i, 1] = 7"));
  int ints = 0, floats = 0;
  for_each_expr(f->body, [&](const Expr& e) {
    if (e->kind == ExprKind::int_imm && e->dtype == dtypes::int32) ++ints;
    if (e->kind == ExprKind::float_imm && e->dtype == dtypes::float32) ++floats;
  });
  EXPECT_EQ(ints, 2);
  EXPECT_EQ(floats, 3);
}

TEST(IrText, CapturedNamesAreReadThroughTheCallback) {
  PrimFunc helper = parse_func("@T.prim_func\ndef helper(n: T.int64):\n    T.evaluate(n)\n");
  Capture capture = [&](std::string_view name) -> std::optional<Captured> {
    if (name == "N") return Captured(std::int64_t{8});
    if (name == "cfg.scale") return Captured(0.5);
    if (name == "cfg.on") return Captured(true);
    if (name == "dt") return Captured(std::string("float32"));
    if (name == "expr") return Captured(make_int(3) + make_int(1));
    if (name == "helper") return Captured(helper);
    return std::nullopt;
  };
  std::string text =
      "@S.prim_func\ndef f(A: S.Buffer((N, N * 2), dt)):\n    for i in range(N):\n        if "
      "cfg.on:\n            A[i, expr] = A[i, N - 1] * cfg.scale\n    helper(N)\n";
  IRModule m = parse_module(text, "<t>", capture);
  ASSERT_EQ(m->functions.size(), 2u);  // the captured function travels along
  EXPECT_EQ(m->functions[1].first, "helper");
  std::string out = print(m->functions[0].second);
  EXPECT_NE(out.find("T.Buffer((8, 16), \"float32\")"), std::string::npos) << out;
  EXPECT_NE(out.find("A[i, 4] = A[i, 7] * T.float32(0.5)"), std::string::npos) << out;
  EXPECT_NE(out.find("T.call(\"helper\", 8)"), std::string::npos) << out;
  expect_error("@T.prim_func\ndef f(A: T.Buffer((M,), \"float32\")):\n    pass\n", "name",
               "\"M\" is not defined", "M", capture);
}

TEST(IrText, RegionsAreDerivedWhenAbsent) {
  PrimFunc f = parse_func(R"(@T.prim_func
def f(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), I: T.Buffer((64,), "int64")):
    for io, jo in T.grid(8, 8):
        with T.block("tile"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            L = T.alloc_buffer((8,), "float32")
            for i, j in T.grid(8, 8):
                L[j] = A[vio * 8 + i, vjo * 8 + j] + A[vio * 8 + i, vjo * 8 + j // 2]
                B[vio * 8 + i, 63 - j] = L[j] + A[0, I[j]]
)");
  std::string text = print(f);
  EXPECT_NE(text.find("T.reads(A[0:64, 0:64], I[0:8])"), std::string::npos) << text;
  EXPECT_NE(text.find("T.writes(B[vio * 8:vio * 8 + 8, 56:64])"), std::string::npos) << text;
}

TEST(IrText, CulpritIsUnderlined) {
  PrimFunc f = parse_func(programs::kMatmul);
  const ExprNode* culprit = nullptr;
  for_each_expr(f->body, [&](const Expr& e) {
    if (e->kind == ExprKind::mul) culprit = e.get();
  });
  ASSERT_NE(culprit, nullptr);
  EXPECT_EQ(print(f, {culprit, false, 1}), R"(...
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
                                    ^^^^^^^^^^^^^^^^^^^^^
)");
  const Stmt loop = as<BlockRealizeNode>(f->body)->block->body;
  std::string text = print(f, {loop.get(), false, 0});
  EXPECT_NE(
      text.find("    for i, j, k in T.grid(16, 24, 32):\n    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"),
      std::string::npos)
      << text;
  const Block* block = nullptr;
  for_each_stmt(f->body, [&](const Stmt& s) {
    if (const auto* b = as<BlockRealizeNode>(s)) block = &b->block;
  });
  text = print(f, {block->get(), false, 0});
  EXPECT_NE(text.find("        with T.block(\"C\"):\n        ^^^^^^^^^^^^^^^^^^\n"),
            std::string::npos)
      << text;
}

TEST(IrText, FragmentsPrint) {
  Var i = make_var("i"), j = make_var("i");
  Buffer a = make_buffer("A", dtypes::float32, {make_int(8)});
  EXPECT_EQ(print(i * 2 + j), "i * 2 + i_1");
  EXPECT_EQ(print(floordiv(i + j, make_int(4)) * 3), "(i + i_1) // 4 * 3");
  EXPECT_EQ(print(point_region(a, {i})), "A[i]");
  EXPECT_EQ(print(full_region(a)), "A[0:8]");
  EXPECT_EQ(print(store(a, make_float(1), {i})), "A[i] = T.float32(1)\n");
  EXPECT_EQ(print(i - (j - i)), "i - (i_1 - i)");
  EXPECT_EQ(print(logical_not(logical_or(lt(i, j), eq(i, j)))), "not (i < i_1 or i == i_1)");
}

TEST(IrText, BadTextIsRefusedWithPlaceAndReason) {
  expect_error(in_func("for i in range(16):\n    A[i, j] = 0"), "name", "\"j\" is not defined",
               "j] = 0");
  expect_error(in_func("for index in range(16):\n    A[indx, 0] = 0"), "name",
               "\"indx\" is not defined", "indx");
  expect_error(in_func("A[0] = 0"), "rank", "\"A\" has 2 dimensions, but 1 indices", "A[0]");
  expect_error(in_func("A[0, 0] = T.sqroot(1)"), "name", "\"T.sqroot\" is unknown", "T.sqroot");
  expect_error(in_func("A[0, 0] = T.pow(A[0, 0])"), "arity", "T.pow takes 2 arguments, found 1",
               "T.pow(");
  expect_error(in_func("A[0, 0] = A[0, 0] + B[0]"), "types", "cannot join float32 and int32",
               "A[0, 0] + B[0]");
  expect_error(in_func("A[0, 0] = B[0]"), "types", "\"A\" holds float32, but int32", "B[0]");
  expect_error(in_func("B[0] = 1.5"), "literal", "1.5 is no int32", "1.5");
  expect_error(in_func("B[0] = 3000000000"), "literal", "3000000000 does not fit int32",
               "3000000000");
  expect_error(in_func("B[0] = B[0] / B[1]"), "types", "\"/\" between int32 and int32 is ambiguous",
               "B[0] / B[1]");
  expect_error(in_func("for i in range(4):\nA[0, 0] = 0"), "indent", "expected an indented block",
               "A[0, 0]");
  expect_error(in_func("A[0, 0] = 0\n  A[0, 0] = 0"), "indent", "indented more", "A[0, 0]");
  expect_error(in_func("if n > 0:\n        A[0, 0] = 0\n  A[0, 0] = 1"), "indent", "margin of 6",
               "A[0, 0]");
  expect_error(in_func("for i in T.grid(4, 4):\n    pass"), "arity",
               "T.grid has 2 extents for 1 variables", "T.grid(4, 4)");
  expect_error(in_func("for i in T.paralel(4):\n    pass"), "name", "\"T.paralel\" is no loop",
               "T.paralel");
  expect_error(in_func("for i in n:\n    pass"), "loop", "a loop runs over", "n:");
  expect_error(in_func("for i in T.serial(4, annotation={}):\n    pass"), "argument",
               "no argument \"annotation\"", "{}");
  expect_error(in_func("for i in T.thread_binding(4):\n    pass"), "arity",
               "needs thread=", "T.thread_binding(4)");
  expect_error(in_func("with T.block(\"x\"):\n    vi = T.axis.spacial(4, n)\n    pass"), "name",
               "\"T.axis.spacial\" is unknown", "T.axis.spacial");
  expect_error(in_func("with T.block(\"x\"):\n    vi = T.axis.remap(\"S\", [n])\n    pass"), "axis",
               "takes loop variables", "n]");
  expect_error(in_func("for i in range(4):\n    with T.block(\"x\"):\n        vi = "
                       "T.axis.remap(\"X\", [i])\n        pass"),
               "axis", "\"X\" is no kind", "\"X\"");
  expect_error(in_func("for i in range(4):\n    T.where(i < 2)"), "place",
               "T.where stands directly in a block", "T.where");
  expect_error(in_func("for i in range(4):\n    X = T.alloc_buffer((4,), \"float32\")"), "place",
               "T.alloc_buffer stands directly", "X = ");
  expect_error(in_func("with T.init():\n    pass"), "place", "T.init stands directly in a block",
               "with");
  expect_error(in_func("with T.blok(\"x\"):\n    pass"), "name", "\"with T.blok\" is unknown",
               "T.blok");
  expect_error(in_func("T.attr(n, \"a\", 1)"), "attr", "T.attr has no meaning", "T.attr");
  expect_error(in_func("X = T.alloc_buffer((4,), \"flot32\")"), "dtype", "\"flot32\" is no type",
               "\"flot32\"");
  expect_error(in_func("X = T.alloc_buffer((-4,), \"float32\")"), "shape", "an extent cannot be -4",
               "-4");
  expect_error(in_func("X = T.match_buffer(n, (4,), \"float32\")"), "value",
               "needs one of its parameters of type T.handle", "n, (4");
  expect_error(in_func("X = T.alloc_buffer((4,), \"float32\", data=A)"), "argument",
               "\"X\" cannot have data=", "A)");
  expect_error(in_func("if n:\n    pass"), "types",
               "expected a condition, found a value of type int64", "n:");
  expect_error(in_func("A[0, 0] = A"), "value", "\"A\" is used without indices", "A");
  expect_error(in_func("A[0, 0] = (1"), "bracket", "\"(\" is never closed", "(1");
  expect_error(in_func("A[0, 0) = 1"), "bracket", "\")\" closes the \"[\"", ") = 1");
  expect_error(in_func("A[0, 0] = 1 2"), "syntax", "expected the end of the line", "2");
  expect_error(in_func("A[0, 0] = \"abc"), "string", "this string never ends", "\"abc");
  expect_error(in_func("A[0, 0] = 12ab"), "number", "is not a number", "12ab");
  expect_error(in_func("A[0, 0] = 99999999999999999999"), "number", "needs more than 64 bits",
               "9999");
  expect_error(in_func("A[0, 0] = $"), "character", "\"$\" has no meaning", "$");
  expect_error(in_func("A[0, 0] = 4611686018427387904 * 4"), "literal", "needs more than 64 bits",
               "4611");
  expect_error(in_func("A[0, 0] = 1 // 0"), "literal", "1 // 0 has no value", "1 // 0");
  expect_error(in_func("B[0] = T.Select(n, 1, 2)"), "types", "expected a condition", "n, 1");
  expect_error(in_func("A[T.ramp(0, 1, 4), 0] = 0"), "slice", "only the last index", "A[T.ramp");
  expect_error(in_func("A[0, T.ramp(0, 1, 1)] = 0"), "lanes", "a vector has 2 to 4096 lanes, not 1",
               "1)");
  expect_error(in_func("A[0, 0:n] = 0"), "slice", "needs a constant length", "0:n");
  expect_error(in_func("T.collective(\"sum\", (\"threadIdx.x\",), A, A)"), "name",
               "\"sum\" is no collective", "\"sum\"");
  expect_error(in_func("T.collective(\"reduce\", (\"threadIdx.x\",), A, A, reducer=\"summ\")"),
               "reducer", "\"summ\" is no reducer", "\"summ\"");
  expect_error(in_func("with T.launch(\"k\", {\"blockIdx.x\": 4}) as (a, b):\n    pass"), "arity",
               "1 axes for 2 variables", "T.launch");
  expect_error(in_func("T.wait(A, 0)"), "token", "\"A\" is no token", "A, 0");
  expect_error(in_func("1 = A[0, 0]"), "target",
               "expected a name or an element of a buffer on the left", "1 =");
  expect_error(in_func("T.evaluate(A.shape[5])"), "index", "index 5 is outside a tuple of 2",
               "A.shape[5]");
  expect_error(in_func("with n:\n    pass"), "with", "\"with\" opens T.block", "n:");
  expect_error(in_func("return 1"), "syntax", "expected an expression, found the word \"return\"",
               "return");
  expect_error(in_func("def g():\n    pass"), "place", "\"g\" is defined inside a function",
               "def g");
  expect_error(in_func("T.func_attr({\"a\": n})"), "annotation", "an annotation holds constants",
               "n}");
  expect_error(in_func("x: T.int32 = n"), "types", "\"x\" is int32, but its value is int64", "n");
  expect_error(in_func("T.block(\"x\")"), "place", "T.block is no expression", "T.block");
  expect_error(in_func("T.reads(A[0, 0])"), "place", "stands directly in a block", "T.reads");
  expect_error(in_func("with T.block(\"b\"):\n    T.reads(A[0])\n    pass"), "rank",
               "\"A\" has 2 dimensions, but 1 ranges", "A[0]");
  expect_error(in_func("with T.block(\"b\"):\n    T.reads(n)\n    pass"), "region",
               "expected a region such as", "n)");
  expect_error(in_func("with T.block(\"b\"):\n    T.execution(\"threadIdx.y\", 3, 1)\n    pass"),
               "value", "is no part of an axis", "T.execution");
  expect_error(in_func("A[0, 0] = T.broadcast(1, n)"), "constant",
               "the number of lanes must be a constant integer", "n)");
  expect_error(in_func("A[0, 0] = lambda x: x"), "place", "a lambda has no meaning here", "lambda");
  expect_error(in_func("n.shape[0] = 1"), "name", "has no attribute \"shape\"", "n.shape");
  expect_error(in_func("a, b = T.axis.spatial(4, n)"), "place", "T.axis stands directly in a block",
               "a, b");
  expect_error("def f():\n    pass\n", "decorator", "\"f\" needs the decorator @T.prim_func",
               "def f");
  expect_error("@T.jit\ndef f():\n    pass\n", "decorator", "\"T.jit\" has no meaning for \"f\"",
               "T.jit");
  expect_error("@T.prim_func\ndef f(a: T.int64, a: T.int64):\n    pass\n", "redefined",
               "parameter \"a\" appears twice", "a: T.int64):");
  expect_error("@T.prim_func\ndef f():\n    pass\n@T.prim_func\ndef f():\n    pass\n", "redefined",
               "\"f\" is defined twice", "@T.prim_func");
  expect_error("x = 1\n", "place", "only functions and classes", "x = 1");
  expect_error("@T.prim_func(lowered=True)\ndef f():\n    X = T.alloc_buffer((4,), \"float32\")\n",
               "place", "has no root block", "@T.prim_func");
  expect_error("@T.prim_func(inline=1)\ndef f():\n    pass\n", "argument",
               "has no argument \"inline\"", "1");
  expect_error(in_func(cat("A[0, 0] = ", std::string(300, '('), "1", std::string(300, ')'))),
               "depth", "brackets are nested deeper than 100", "(");
  std::string chain = "A[0, 0] = A[0, 0]";
  for (int i = 0; i < 5000; ++i) chain += " + A[0, 0]";
  expect_error(in_func(chain), "depth", "", "");
  std::string deep;
  for (int i = 0; i < 400; ++i)
    deep += std::string(static_cast<std::size_t>(i), ' ') + "if n > 0:\n";
  expect_error(cat("@T.prim_func\ndef f(n: T.int64):\n ", deep), "indent", "", "");
}

TEST(IrText, OneFunctionIsExpectedWhereOneIsAskedFor) {
  try {
    parse_func(programs::kTwoFunctions);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "parse.count");
    EXPECT_NE(e.message().find("expected one function, found 2"), std::string::npos) << e.what();
  }
}

TEST(IrText, NearMissesAreOffered) {
  try {
    parse_module(in_func("for index in range(16):\n    A[indx, 0] = 0"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.refusal().help, "did you mean \"index\"?");
  }
  try {
    parse_module(in_func("A[0, 0] = T.sqroot(1)"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.refusal().help, "did you mean \"sqrt\"?");
  }
}

TEST(IrText, LinesCountFromTheCallersFile) {
  try {
    parse_module("@T.prim_func\ndef f():\n    x[0] = 1\n", "user.py", {}, 41);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("user.py:43:5"), std::string::npos) << e.what();
    EXPECT_EQ(e.refusal().places[0].line, 43);
  }
  PrimFunc f =
      parse_func("@T.prim_func\ndef f(n: T.int64):\n    T.evaluate(n)\n", "user.py", {}, 41);
  EXPECT_EQ(as<BlockRealizeNode>(f->body)->block->body->line, 43);
}

TEST(IrText, IndentedSourceIsAccepted) {
  PrimFunc f = parse_func("    @T.prim_func\n    def f(n: T.int64):\n        T.evaluate(n)\n");
  EXPECT_EQ(f->params.size(), 1u);
}

TEST(IrText, MutatedTextNeverCrashesAndOftenRoundTrips) {
  const std::uint32_t seed = 20240611;
  std::mt19937 random(seed);
  auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<std::string> texts;
  for (const char* t : programs::all()) texts.emplace_back(t);
  std::vector<std::string> words = {"(",
                                    ")",
                                    "[",
                                    "]",
                                    "{",
                                    "}",
                                    ":",
                                    ",",
                                    "=",
                                    "\n",
                                    "    ",
                                    "\t",
                                    "T.",
                                    "for ",
                                    "with ",
                                    "if ",
                                    "else:",
                                    "lambda ",
                                    "0",
                                    "1",
                                    "-1",
                                    "1e400",
                                    "9223372036854775807",
                                    "\"",
                                    "'",
                                    "#",
                                    "\\",
                                    "not ",
                                    "and ",
                                    "or ",
                                    "in ",
                                    "as ",
                                    "T.block(\"b\"):",
                                    "T.float32(",
                                    "T.int64()",
                                    "T.ramp(",
                                    "A",
                                    "n",
                                    "**",
                                    "@",
                                    "\xc3\xa9",
                                    std::string(1, '\0')};
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string t = texts[below(texts.size())];
    for (std::size_t k = 1 + below(3); k-- > 0;) {
      std::size_t at = below(t.size());
      switch (below(6)) {
        case 0: t.erase(at, 1 + below(8)); break;
        case 1: t.insert(at, words[below(words.size())]); break;
        case 2: t[at] = static_cast<char>(random()); break;
        case 3: {  // a line again
          std::size_t begin = t.rfind('\n', at), end = t.find('\n', at);
          if (begin != std::string::npos && end != std::string::npos && end > begin)
            t.insert(end, t.substr(begin, end - begin));
          break;
        }
        case 4: {  // a line away
          std::size_t begin = t.rfind('\n', at), end = t.find('\n', at);
          if (begin != std::string::npos && end != std::string::npos && end > begin)
            t.erase(begin, end - begin);
          break;
        }
        case 5: {  // one piece moved elsewhere
          std::string piece = t.substr(at, 1 + below(20));
          t.insert(below(t.size()), piece);
          break;
        }
      }
      if (t.empty()) t = " ";
    }
    try {
      IRModule m = parse_module(t, "fuzz");
      ++accepted;
      std::string printed = print(m);
      IRModule again = parse_module(printed, "printed");
      ASSERT_TRUE(structural_equal(m, again)) << "seed " << seed << " round " << round << "\n"
                                              << t << "\nprinted\n"
                                              << printed << "\nagain\n"
                                              << print(again);
    } catch (const Error& e) {
      ++refused;
      ASSERT_EQ(e.kind(), ErrorKind::parse) << "seed " << seed << " round " << round << "\n"
                                            << e.what() << "\n"
                                            << t;
      ASSERT_EQ(e.message().find("printed:"), std::string::npos)
          << "seed " << seed << " round " << round << "\n"
          << e.what() << "\n"
          << t;
    }
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace weft::ir
