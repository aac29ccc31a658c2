// SPDX-License-Identifier: Apache-2.0
// The rarer refusals of the compiler and faults of the machine, each provoked once.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "csl_run.h"
#include "weft/base/text.h"
#include "weft/targets/wse/sdk_runtime.h"

namespace weft::wse::testing {
namespace {

struct Bad {
  const char* code;
  const char* text;
  std::string source;
  Arch arch = Arch::wse2;
};

std::string repeat(int n, const std::string& piece) {
  std::string out;
  for (int k = 0; k < n; ++k) out += piece;
  return out;
}

const std::vector<Bad>& bad() {
  static const std::string fifos = [] {
    std::string s;
    for (int k = 0; k < 260; ++k)
      s += cat("var b", k, " = @zeros([2]u16); const f", k, " = @allocate_fifo(b", k,
               "); comptime { const x", k, " = f", k, "; }\n");
    return s;
  }();
  static const std::string fabric =
      "const in = @get_dsd(fabin_dsd, .{ .extent = 2, .fabric_color = @get_color(3), .input_queue "
      "= "
      "@get_input_queue(2) }); var v = @zeros([4]u32); const m = @get_dsd(mem1d_dsd, .{ "
      ".base_address = &v, .extent = 2 }); task t() void { } comptime { @bind_local_task(t, "
      "@get_local_task_id(12)); }\n";
  static const std::vector<Bad> rows = {
      {"wse.csl.break.comptime", "cannot be left",
       as_task("", "var k: u16 = 0; while (k < 3) : (k += 1) { comptime { break; } }")},
      {"wse.csl.builtin.native", "no native function",
       as_task("var x: f32 = 1.0;\n", "x = @weft_math(\"nope\", x);")},
      {"wse.csl.builtin.native", "no tile configuration", as_task("", "@weft_config(\"nope\");")},
      {"wse.csl.call.array", "is an array, [4]u16; a function that runs on the PE takes arrays",
       as_task("var a = @zeros([4]u16); fn f(v: [4]u16) u16 { return v[0]; }\n", "var y = f(a);")},
      {"wse.csl.call.array", "returns an array, [2]u16; only functions that run at compile time",
       as_task("var k: u16 = 1; fn f(x: u16) [2]u16 { return [2]u16{ x, x }; }\n",
               "var y = f(k);")},
      {"wse.csl.shift.signed", "the count of << is unsigned, found i16",
       as_task("var k: i16 = 1; var w: u32 = 1;\n", "w = w << k;")},
      {"wse.csl.shift.signed", "the count of >> is unsigned, found i8",
       as_task("var k: i8 = 1; var w: u32 = 1;\n", "w >>= k;")},
      {"wse.csl.comptime.shift", "cannot be negative",
       as_task("var w: u32 = 1;\n", "w = w << @as(i16, -1);")},
      {"wse.csl.type.dereference", "[*]u16 points to any number of elements and is only indexed",
       as_task("var a = @zeros([4]u16); var p: [*]u16 = &a;\n", "p.* = 1;")},
      {"wse.csl.type.mismatch", "at run time @get_color takes a u16, found i16",
       as_task("var k: i16 = 2;\n", "const c = @get_color(k); @block(c);")},
      {"wse.csl.dsd.access", "the length of a tensor access is known at compile time; this u16",
       as_task("var a = @zeros([4]u16); var n: u16 = 2;\n",
               "@mov16(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> a[i] }), 1);")},
      {"wse.csl.dsd.access", "leads through an array or a pointer, found u16",
       as_task("var x: u16 = 1;\n",
               "@mov16(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1} -> x[i] }), 1);")},
      {"wse.csl.dsd.queue", "on WSE-3 fabout_dsd needs an output_queue",
       as_task("const o = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = @get_color(3) });\n",
               "@mov32(o, @as(u32, 1));"),
       Arch::wse3},
      {"wse.csl.call.extern", "no body",
       as_task("extern fn outside(x: u16) u16;\n", "var y: u16 = outside(3);")},
      {"wse.csl.extern.undefined", "no module of this program exports it",
       as_task("extern var outside: u16;\n", "outside = 3;")},
      {"wse.csl.extern.value", "cannot have a value here",
       as_task("extern var outside: u16 = 1;\n", "outside = 3;")},
      {"wse.csl.extern.type", "needs a type",
       as_task("extern var outside;\nexport var x: u16 linkname(\"outside\") = 1;\n",
               "outside = 3;")},
      {"wse.csl.extern.mismatch", "has type i16, the exported one u16",
       as_task("extern var y: i16;\nexport var x: u16 linkname(\"y\") = 1;\n", "y = 3;")},
      {"wse.csl.comptime.runtime_branch", "decided at run time",
       as_task("var g: u16 = 1;\n", "comptime var k: u16 = 1; if (g == 1) { k = 2; } g = k;")},
      {"wse.csl.comptime.runtime_store", "cannot be written",
       "var g: u16 = 1; comptime { g = 2; }"},
      {"wse.csl.comptime.string", "longer than 1 MiB",
       cat("const a = \"", std::string(5000, 'x'),
           "\"; const b = @strcat(a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a); const c = "
           "@strcat(b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b); comptime { "
           "@comptime_assert(@strlen(c) == 0); }")},
      {"wse.csl.comptime.unroll", "more than 100,000 rounds",
       as_task("var g: u32 = 0;\n",
               "comptime var k: u32 = 0; inline while (k < 200000) : (k += 1) { }")},
      {"wse.csl.depth", "nests too deeply",
       "fn f(n: u16) u16 { return f(n + 1); } const x = f(0); comptime { @comptime_assert(x == 0); "
       "}"},
      {"wse.csl.dsd.extent", "must lie in 0..65535",
       as_task("var v = @zeros([4]u32);\n",
               "@mov32(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{70000} -> v[i] }), 1);")},
      {"wse.csl.dsd.extent", "must be an integer",
       as_task("var v = @zeros([4]u32);\n",
               "@mov32(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{1.5} -> v[i] }), 1);")},
      {"wse.csl.dsd.stride", "has 2 extents but 1 strides",
       as_task("var v = @zeros([4]u32);\n",
               "@mov32(@get_dsd(mem4d_dsd, .{ .base_address = &v, .extent = .{ 2, 2 }, .stride = "
               ".{ 1 } "
               "}), 1);")},
      {"wse.csl.export.name", "needs a name", "comptime { @export_symbol(3 + 4); }"},
      {"wse.csl.fifo.count", "more than 255", fifos},
      {"wse.csl.for.range_type", "run-time integer type",
       as_task("var n: u16 = 3;\n",
               "for (@range(comptime_int, 3)) |i| { if (n == 1) { n += 1; } }")},
      {"wse.csl.inline.recursion", "without end",
       as_task("inline fn f(x: u16) u16 { return f(x) + 1; } var g: u16 = 1;\n", "g = f(g);")},
      {"wse.csl.inline.result", "under a run-time condition",
       as_task(
           "inline fn f(x: u16) [2]u16 { if (x == 1) { return [2]u16 { 1, 2 }; } return [2]u16 { "
           "3, 4 }; } var g: u16 = 1; var h = @zeros([2]u16);\n",
           "h = f(g);")},
      {"wse.csl.library.error", "broken here", as_task("", "@weft_error(\"broken here\");")},
      {"wse.csl.map.parameter", "cannot pass a parameter",
       as_task("fn f(x: [2]u16) u16 { return x[0]; } var a = @zeros([2]u16); const d = "
               "@get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 2 });\n",
               "@map(f, d, d);")},
      {"wse.csl.module.name", "cannot be empty",
       as_task("const m = @import_module(\"\");\n", "m.f();")},
      {"wse.csl.parse.depth", "deeper than",
       cat("const a = ", std::string(400, '('), "1", std::string(400, ')'), ";")},
      {"wse.csl.parse.depth", "chains more than", cat("const a = 1", repeat(1000, " + 1"), ";")},
      {"wse.csl.return.comptime", "cannot return from inside comptime",
       as_task("fn f() u16 { comptime { return 3; } } var g: u16 = 0;\n", "g = f();")},
      {"wse.csl.return.outside", "only inside a function", "comptime { return; }"},
      {"wse.csl.route.receive", "exactly one direction",
       "comptime { @set_local_color_config(@get_color(1), .{ .routes = .{ .rx = .{ EAST, WEST }, "
       ".tx "
       "= .{RAMP} } }); }",
       Arch::wse3},
      {"wse.csl.settings.completion", "not both",
       as_task(fabric, "@mov32(m, in, .{ .async = true, .activate = t, .unblock = t });")},
      {"wse.csl.settings.priority", "a priority is",
       "comptime { @initialize_queue(@get_input_queue(2), .{ .color = @get_color(1), .priority = 3 "
       "}); }"},
      {"wse.csl.settings.priority", "no priority \"highest\"",
       "comptime { @initialize_queue(@get_input_queue(2), .{ .color = @get_color(1), .priority = "
       ".{ "
       ".highest = true } }); }"},
      {"wse.csl.task.result", "cannot return u16",
       "task t() u16 { return 1; } comptime { @bind_local_task(t, @get_local_task_id(12)); }"},
      {"wse.csl.teardown.twice", "already has",
       "fn f() void { } comptime { @set_teardown_handler(f, @get_color(2)); "
       "@set_teardown_handler(f, "
       "@get_color(2)); }"},
      {"wse.csl.type.zero", "has no zero", as_task("", "const z = @zeros([2]type);")},
      {"wse.csl.var.linkname", "linkname takes a string",
       as_task("var g: u16 linkname(3) = 1;\n", "g += 1;")},
      {"wse.csl.memory.overflow", "a PE has 49152 bytes",
       as_task("var a = @zeros([20000]f32); var b = @zeros([100]u16);\n", "a[1] = 1.0; b[2] = 3;")},
      {"wse.csl.comptime.limit", "compile-time",
       "fn f() u32 { var k: u32 = 0; while (true) { k += 1; } return k; } const x = f(); comptime "
       "{ "
       "@comptime_assert(x == 0); }"},
      {"wse.csl.comptime.limit", "compile-time", "comptime { while (true) { } }"},
  };
  return rows;
}

class Refusals : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Refusals, SlugAndText) {
  const Bad& b = bad()[GetParam()];
  auto o = single(b.source, b.arch);
  if (std::string(b.code) == "wse.csl.comptime.limit") o.comptime_steps = 300000;
  try {
    csl::compile(o);
    FAIL() << "compiled: " << b.source.substr(0, 300);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), b.code) << e.what();
    EXPECT_NE(std::string(e.what()).find(b.text), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Csl, Refusals, ::testing::Range<std::size_t>(0, bad().size()),
                         [](const auto& param_info) {
                           std::string name = std::to_string(param_info.param);
                           for (char c : std::string(bad()[param_info.param].code).substr(8))
                             name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

template <typename F>
void expect(const char* code, const char* text, F&& work) {
  try {
    work();
    FAIL() << "nothing was refused; wanted " << code;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(Refusals, OfFilesAndTiles) {
  expect("wse.csl.file.none", "no layout file", [] { csl::compile({}); });
  expect("wse.csl.file.size", "larger than 16 MiB", [] {
    auto o = single(as_task("const m = @import_module(\"big.csl\");\n", "m.f();"));
    o.files["big.csl"] = std::string((16u << 20) + 10, ' ');
    csl::compile(o);
  });
  expect("wse.csl.layout.tiles", "not width times height", [] {
    csl::CompileOptions o;
    o.read_disk = false;
    o.width = 2;
    o.height = 2;
    o.tiles.resize(3);
    csl::compile(o);
  });
  auto warned =
      single(as_task("const m = @import_module(\"m.csl\", .{ .n = 3, .typo = 4 }); var v = "
                     "@zeros([4]u32); const d = "
                     "@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{5} -> v[i] });\n",
                     "v[0] = m.n; @mov32(d, 1);"));
  warned.files["m.csl"] = "param n: u32;";
  warned.warnings_as_errors = true;
  expect("wse.csl.param.unknown", "has no param \"typo\"", [&] { csl::compile(warned); });
  std::string& pe = warned.files["pe.csl"];
  pe.replace(pe.find(", .typo = 4"), 11, "");
  expect("wse.csl.dsd.bounds", "reaches elements 0..4", [&] { csl::compile(warned); });
}

TEST(Refusals, WhatOnlyTheOtherSdkHas) {
  auto compiled = [](const std::string& globals, csl::Sdk sdk, const std::string& body = {}) {
    auto o = single(as_task(globals, body));
    o.sdk = sdk;
    return csl::compile_program(o);
  };
  const std::string old_only =
      "param p: comptime_struct = .{ .a = 1 };\nexport var x: u16 = p.a;\n";
  const std::string new_only =
      "const dirs = @import_module(\"<directions>\");\nexport var x: u16 = "
      "comptime dirs.dirToRxBits(EAST);\n";
  const std::string use = "x += 1;";
  expect("wse.csl.version", "comptime_struct exists in SDK 1.4 only",
         [&] { compiled(old_only, csl::Sdk::v2, use); });
  expect("wse.csl.version", "<directions>.dirToRxBits exists in SDK 2.10 only",
         [&] { compiled(new_only, csl::Sdk::v1, use); });
  EXPECT_TRUE(compiled(old_only, csl::Sdk::detect, use).uses_v1);
  EXPECT_TRUE(compiled(new_only, csl::Sdk::detect, use).uses_v2);
  EXPECT_FALSE(compiled("export var x: u16 = 0;\n", csl::Sdk::detect, use).uses_v1);
  compiled(old_only, csl::Sdk::v1, use);
  compiled(new_only, csl::Sdk::v2, use);
}

TEST(Refusals, ScalarsOfEqualWidthHaveTheirType) {
  auto with = [](const std::string& globals, const std::string& body) {
    return [=] { csl::compile(single(as_task(globals, body))); };
  };
  const std::string halves =
      "var h = @zeros([4]f16); var f = @zeros([4]f32); var u: u16 = 3; var i: i32 = 3; const H = "
      "@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> h[i] }); const F = @get_dsd(mem1d_dsd, .{ "
      ".tensor_access = |i|{4} -> f[i] });\n";
  expect("wse.csl.dsd.operand", "@fmach takes scalars of type f16, found u16",
         with(halves, "@fmach(H, H, H, u);"));
  expect("wse.csl.dsd.operand", "@fmacs takes scalars of type f32, found i32",
         with(halves, "@fmacs(F, F, F, i);"));
  with(halves, "@fmacs(F, F, F, @bitcast(f32, i)); @fmach(H, H, H, @as(f16, u));")();
}

TEST(Refusals, BoundsAreThoseOfTheOperation) {
  auto with = [](const std::string& body) {
    auto o = single(as_task(
        "var dummy = @zeros([1]i16); var f = @zeros([4]f32); var h = @zeros([4]f16);\nconst D = "
        "@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> dummy[i] }); const H = "
        "@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> h[i] });\n",
        body));
    o.warnings_as_errors = true;
    return [=] { csl::compile(o); };
  };
  with("@fmovs(@set_dsd_base_addr(D, &f), 1.0); @fmovh(H, 1.0);")();  // rebased: not dummy's
  expect("wse.csl.dsd.bounds", "reaches elements 0..3 of 4 bytes in \"h\", which holds 2",
         with("@fmovs(H, 1.0);"));
  expect("wse.csl.dsd.bounds", "in \"dummy\"", with("@mov16(D, 1);"));
}

TEST(Refusals, OfTheMachine) {
  auto run = [](const std::string& globals, const std::string& body, Arch arch = Arch::wse2) {
    return [=] { Ran ran(single(as_task(globals, body), arch)); };
  };
  expect("wse.config.queue", "input queue 9 cannot take colour 3; queues are 0 to 7",
         run("const tile = @import_module(\"<tile_config>\"); var q: u16 = 9;\n",
             "tile.input_queue_config.encode_input_queue(q, 3, true);"));
  expect("wse.config.queue", "output queue 6 cannot take colour 3; queues are 0 to 5",
         run("const tile = @import_module(\"<tile_config>\");\n",
             "tile.output_queue_config.encode_output_queue(6, 3);"));
  std::string map =
      "var a = @zeros([2]u16); const d = @get_dsd(mem1d_dsd, .{ .base_address = &a, "
      ".extent = 2 }); fn f(";
  std::string args;
  for (int k = 0; k < 9; ++k) {
    map += cat(k ? ", " : "", "x", k, ": u16");
    args += ", d";
  }
  expect("wse.map.operands", "9 inputs",
         run(map + ") u16 { return x0; }\n", cat("@map(f", args, ", d);")));
  expect("wse.memory.stack", "runs into the data",
         run("var big = @zeros([20000]u16); fn f(n: u16) u16 { var t = @zeros([500]u16); t[n % "
             "500] = n; "
             "big[n] = 1; if (n == 0) { return 0; } return f(n - 1) + t[1]; } var g: u16 = 30;\n",
             "g = f(g);"));
  expect("wse.queue.color", "not initialised",
         run("var v = @zeros([2]u32);\n",
             "@mov32(@get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 2 }), "
             "@get_dsd(fabin_dsd, .{ "
             ".extent = 2, .fabric_color = @get_color(3), .input_queue = @get_input_queue(2) }));",
             Arch::wse3));
  const std::string sends = "const q = @get_output_queue(2);\nconst c = @get_color(3);\n";
  const std::string send =
      "@mov32(@get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = q }), 1);";
  expect("wse.queue.color", "output queue 2 is not initialised", run(sends, send, Arch::wse3));
  expect("wse.queue.color", "output queue 2 has colour 4, the descriptor names colour 3",
         run(sends + "comptime { @initialize_queue(q, .{ .color = @get_color(4) }); }\n", send,
             Arch::wse3));
  expect("wse.task.unbound", "activated at pe.csl:",
         run("var v = @zeros([2]u32);\n", "@activate(@get_local_task_id(21));"));
  expect("wse.task.unbound", "activated at pe.csl:",
         run("const q = @get_output_queue(2);\nconst c = @get_color(3);\ncomptime { "
             "@set_local_color_config(c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{RAMP} } }); }\n",
             "@mov32(@get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = q }), "
             "1, .{ .async = true, .activate = @get_local_task_id(22) });"));
  expect("wse.dsd.damaged", "are no descriptor: something has overwritten it",
         run("var v = @zeros([2]u32); var d = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = "
             "2 });\n",
             "const words = @ptrcast([*]u16, &d); words[0] = 0x77; @mov32(d, 1);"));
  expect("wse.color.range", "a descriptor gets colour 99; there are 24",
         run("var k: u16 = 99;\n",
             "@mov32(@get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = @get_color(k), "
             ".output_queue = @get_output_queue(2) }), 1);"));
  expect("wse.queue.none", "no input queue takes colour 3",
         run("var v = @zeros([2]u32);\n",
             "@mov32(@get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 2 }), "
             "@get_dsd(fabin_dsd, .{ "
             ".extent = 2, .fabric_color = @get_color(3) }));",
             Arch::wse3));
}

TEST(Refusals, OfQueuesAndTeardown) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.read_disk = false;
  o.files["layout.csl"] =
      "const c = @get_color(2); const d = @get_color(3); layout { @set_rectangle(2, 1); "
      "@set_tile_code(0, 0, \"a.csl\", .{ .c = c }); @set_tile_code(1, 0, \"b.csl\", .{ .c = c, .d "
      "= "
      "d }); @set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } }); "
      "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } }); }";
  o.files["a.csl"] = as_task(
      "param c: color; const q = @get_output_queue(2); const ctrl = "
      "@import_module(\"<control>\");\n",
      "@mov32(@get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = q }), 5);");
  o.files["b.csl"] =
      "param c: color; param d: color; const iq = @get_input_queue(2); var v = @zeros([2]u32); var "
      "n: "
      "u16 = 0;\ntask wait() void { n += 1; if (n < 200) { @activate(@get_local_task_id(10)); } "
      "else { "
      "@mov32(@get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 1 }), @get_dsd(fabin_dsd, .{ "
      ".extent = 1, .fabric_color = d, .input_queue = iq }), .{ .async = true }); } }\ncomptime { "
      "@initialize_queue(iq, .{ .color = c }); @bind_local_task(wait, @get_local_task_id(10)); "
      "@activate(@get_local_task_id(10)); }";
  FabricOptions routed;
  routed.express = false;
  expect("wse.queue.rebound", "still holds 1 wavelets of colour 2",
         [&] { Ran ran(o, 0, 0, routed); });
  auto down = o;
  std::string& a = down.files["a.csl"];
  a.replace(
      a.find(".output_queue = q }), 5)"), 24,
      ".output_queue = q, .control = true }), ctrl.encode_single_payload(ctrl.opcode.TEARDOWN, "
      "true, {}, 0))");
  down.files["b.csl"] = "param c: color; param d: color;";
  for (bool express : {true, false}) {
    routed.express = express;
    expect("wse.task.teardown_unbound", "has no handler", [&] { Ran ran(down, 0, 0, routed); });
  }
}

TEST(Refusals, OfAHostWithoutMemory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer reserves more than any limit on the address space";
#endif
  auto o = single("var v = @zeros([2]u32); comptime { }");
  o.files["layout.csl"] =
      "layout { @set_rectangle(200, 200); for (@range(u16, 200)) |x| { for (@range(u16, 200)) |y| "
      "{ "
      "@set_tile_code(x, y, \"pe.csl\"); } } }";
  Layout l = csl::compile(o);
  auto child = [&] {
    Fabric fabric(l, {});
    for (int k = 0; k < 40000; ++k) fabric.touch(k % 200, k / 200);
    long pages = 0;
    if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(f, "%ld", &pages) != 1) pages = 0;
      std::fclose(f);
    }
    rlimit limit{static_cast<rlim_t>(pages) * 4096 + (64u << 20), RLIM_INFINITY};
    limit.rlim_max = limit.rlim_cur;
    setrlimit(RLIMIT_AS, &limit);
    std::uint32_t word = 1;
    try {
      for (int k = 0; k < 40000; ++k) fabric.write_memory(k % 200, k / 200, 49000, &word, 4);
    } catch (const Error& e) {
      _exit(e.code() == "wse.memory.host" ? 0 : 3);
    } catch (...) {
      _exit(4);
    }
    _exit(5);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
}

TEST(Refusals, OfCodeThatNoCompilerMade) {
  Layout l = csl::compile(single(as_task("export var out: u16 = 0;\n", "out = 1;")));
  for (Function& f : l.programs[0].functions) f.code.pop_back();
  expect("wse.code.end", "runs past its", [&] {
    Fabric fabric(l, {});
    fabric.start();
    fabric.run();
  });
}

TEST(Refusals, OfStreamsAndSymbols) {
  auto o = single("export var out = @zeros([2]u32);");
  o.files["layout.csl"] =
      "layout { @set_rectangle(2, 1); @set_tile_code(0, 0, \"pe.csl\"); @set_tile_code(1, 0, "
      "\"empty.csl\"); @export_name(\"p\", [*]u32, true); }";
  o.files["empty.csl"] = "";
  o.files["pe.csl"] =
      "var v = @zeros([2]u32); var q: [*]u32 = &v; comptime { @export_symbol(q, \"p\"); }";
  o.memcpy = true;
  o.fabric_width = 9;
  o.fabric_height = 3;
  o.offset_x = 4;
  o.offset_y = 1;
  Layout l = csl::compile(o);
  {
    SdkRuntime rt(l, {});
    rt.load();
    rt.run();
    std::vector<std::uint32_t> words(4);
    expect("wse.symbol.absent", "PE (1, 0) does not export \"p\"", [&] {
      rt.memcpy_h2d(rt.get_id("p"), words.data(), 4, {0, 0, 2, 1, 2}, false,
                    MemcpyDataType::MEMCPY_32BIT, MemcpyOrder::ROW_MAJOR, false);
    });
    expect("wse.stream.port", "no input stream \"tx\"",
           [&] { rt.send("tx", words.data(), 4, false); });
  }
  Layout preset = l;
  preset.presets.push_back({0, 0, "v", std::string(3, 'x')});
  expect("wse.symbol.size", "has 8 bytes", [&] {
    SdkRuntime rt(preset, {});
    rt.load();
  });
  Fabric fabric(l, {});
  HostSource source;
  source.color = 5;
  source.port = kWest;
  source.data = {1};
  expect("wse.stream.route", "takes nothing from", [&] { fabric.send(0, 0, std::move(source)); });
}

}  // namespace
}  // namespace weft::wse::testing
