// SPDX-License-Identifier: Apache-2.0
// The two engines for scalar code: the same bits, the same cycles, the same faults.
#include <gtest/gtest.h>

#include "csl_run.h"
#include "engines.h"
#include "weft/base/text.h"

namespace weft::wse::testing {
namespace {

TEST(Engines, LoopsOfEveryFloatFormat) {
  if (!jit::llvm().available) GTEST_SKIP() << jit::llvm().reason;
  for (auto [format, name] :
       {std::pair{Ty::f16, "f16"}, std::pair{Ty::bf16, "bf16"}, std::pair{Ty::cb16, "cb16"}}) {
    auto o = single(as_task(
        cat("const math = @import_module(\"<math>\");\nexport var h = @zeros([64]", name,
            ");\nexport var s = @zeros([64]f32); export var n = @zeros([64]i32); var seed: u32 = "
            "12345; export var hits: u16 = 0;\n"),
        cat("for (@range(u16, 64)) |k| { seed = seed * 1664525 + 1013904223; const x = @as(f32, "
            "@as(i32, seed >> 8) - 8000000) / 1234567.0; var a: ",
            name, " = @as(", name, ", x); var b: ", name, " = @as(", name,
            ", 1.5); var j: i16 = 0; while (j < 20) : (j += 1) { a = a * b - b / (a + b); b = -b + "
            "a % b; if (a < b and a != b) { hits += 1; b += @as(",
            name,
            ", j); } } h[k] = a; s[k] = math.sqrt_f32(x * x + @as(f32, b)) - math.sin(x); n[k] = "
            "@as(i32, x * 1000.0) ^ @as(i32, seed) << (k & 15); }")));
    o.fp16 = format;
    Ran reference(o, 0, 0, {.engine = Engine::bytecode});
    expect_same_on_native(reference, name);
  }
}

TEST(Engines, IntegersOfEveryWidth) {
  if (!jit::llvm().available) GTEST_SKIP() << jit::llvm().reason;
  for (const char* t : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"}) {
    auto o = single(as_task(
        cat("export var r = @zeros([96]", t, "); var seed: u32 = 99;\n"),
        cat("for (@range(u16, 48)) |k| { seed = seed * 1664525 + 1013904223; var a: ", t, " = @as(",
            t, ", seed >> 4); const b: ", t, " = @as(", t,
            ", seed >> 11) | 1; const c = a; a += b * c; a -= c / b; a ^= c % b; a = a << (k & 7); "
            "a "
            "= a >> (k & 3); a = (a & ~c) | (c & b); if (a >= b or a <= c) a = -a; r[k] = a; r[k + "
            "48] = @as(",
            t, ", a == b) + @as(", t, ", a > c); }")));
    Ran reference(o, 0, 0, {.engine = Engine::bytecode});
    expect_same_on_native(reference, t);
  }
}

TEST(Engines, CallsMemoryAndLongRuns) {
  if (!jit::llvm().available) GTEST_SKIP() << jit::llvm().reason;
  auto o = single(as_task(
      "const time = @import_module(\"<time>\"); const place = "
      "@import_module(\"<layout>\");\nexport "
      "var out = @zeros([300]u32); export var when = @zeros([3]u16);\nfn step(x: u32, k: u16) u32 "
      "{ "
      "var t = [4]u32 { 1, 2, 3, 4 }; t[k & 3] += x; return t[(k + 1) & 3] ^ t[k & 3] * 3; }\n",
      "time.enable_tsc(); var x: u32 = 1; for (@range(u16, 4000)) |k| { x = step(x, k); out[k % "
      "300] += x; if (k % 1000 == 7) time.get_timestamp(&when); } out[0] += @as(u32, "
      "place.get_x_coord());"));
  Ran reference(o, 0, 0, {.engine = Engine::bytecode});
  EXPECT_GT(reference.fabric().now(), 50000);
  expect_same_on_native(reference, "calls");
}

TEST(Engines, FaultsAreTheSame) {
  if (!jit::llvm().available) GTEST_SKIP() << jit::llvm().reason;
  for (const char* body :
       {"var k: u16 = 9; while (true) { k -= 1; out[0] = 100 / @as(u32, k); }",
        "var k: i32 = 9; while (true) { k -= 1; out[0] = @as(u32, 100 % k); }",
        "var k: u16 = 0; while (true) { k += 1; @assert(k < 500); }",
        "const p: [*]u32 = &out; var k: u16 = 0; while (true) { k += 1000; p[k] = 5; }"}) {
    auto o = single(as_task("export var out = @zeros([2]u32);\n", body));
    std::string text[2];
    for (int e = 0; e < 2; ++e) {
      try {
        Ran ran(o, 0, 0, {.engine = e ? Engine::native : Engine::bytecode});
        FAIL() << body;
      } catch (const Error& error) {
        text[e] = error.what();
      }
    }
    EXPECT_EQ(text[0], text[1]);
    EXPECT_NE(text[0].find("cycle"), std::string::npos) << text[0];
  }
}

TEST(Engines, LongProgramsBecomeNativeByThemselves) {
  auto o = single(as_task("export var out = @zeros([2]u32);\n",
                          "for (@range(u32, 100000)) |k| { out[0] += k; }"));
  Ran ran(o), bytecode(o, 0, 0, {.engine = Engine::bytecode});
  bool llvm = jit::llvm().available;
  EXPECT_EQ(ran.fabric().stats().get("engine.native"), llvm ? 1 : 0);
  EXPECT_EQ(bytecode.fabric().stats().get("engine.native"), 0);
  EXPECT_EQ(ran.read<std::uint32_t>("out"), bytecode.read<std::uint32_t>("out"));
  EXPECT_EQ(ran.fabric().now(), bytecode.fabric().now());
  EXPECT_EQ(ran.fabric().stats().get("instructions"),
            bytecode.fabric().stats().get("instructions"));
  Ran brief(single(as_task("export var out = @zeros([2]u32);\n", "out[0] = 3;")));
  EXPECT_EQ(brief.fabric().stats().get("engine.native"), 0);
}

}  // namespace
}  // namespace weft::wse::testing
