// SPDX-License-Identifier: Apache-2.0
// Diagnostics: slug, text and place; several per run; limits.
#include <gtest/gtest.h>

#include "csl_run.h"

namespace weft::wse::testing {
namespace {

struct Bad {
  const char* code;
  const char* text;
  int line;
  std::string source;
};

std::string task(const std::string& body) { return as_task("", body); }

const Bad kBad[] = {
    {"wse.csl.lex.character", "begins no token", 1, "const a = 3 $ 4;"},
    {"wse.csl.lex.number", "not a number", 1, "const a = 3abc;"},
    {"wse.csl.lex.string", "not closed", 1, "const a = \"abc;\n"},
    {"wse.csl.lex.escape", "unknown escape", 1, "const a = \"\\q\";"},
    {"wse.csl.lex.character_literal", "exactly one byte", 1, "const a = 'ab';"},
    {"wse.csl.parse.expected", "expected \";\"", 2, "const a = 3\nconst b = 4;"},
    {"wse.csl.parse.item", "expected a declaration", 1, "hello();"},
    {"wse.csl.parse.expression", "expected an expression", 1, "const a = ;"},
    {"wse.csl.parse.mixed_fields", "all named or all nameless", 1, "const a = .{ .x = 1, 2 };"},
    {"wse.csl.parse.result_type", "needs a result type", 1, "fn f() { return; }"},
    {"wse.csl.parse.body", "use braces", 3,
     "fn f() void {\nvar x: u16 = 0;\nif (x == 0) var y: u16 = 1;\n}"},
    {"wse.csl.parse.array_type", "at least one extent", 1, "var a: []u16;"},
    {"wse.csl.name.unknown", "\"widht\" is not declared", 4,
     as_task("const width = 3;", "var x: u16 = widht;")},
    {"wse.csl.name.duplicate", "declared twice", 2, "const a = 1;\nconst a = 2;"},
    {"wse.csl.name.duplicate", "declared twice in this block", 4,
     task("const a: u16 = 1; var a: u16 = 2;")},
    {"wse.csl.name.cycle", "depends on itself", 1,
     as_task("const a = b; const b = a;", "var x: u16 = a;")},
    {"wse.csl.param.missing", "has no value", 4, as_task("param n: u16;", "var x = n;")},
    {"wse.csl.const.value", "needs a value", 1, as_task("const n: u16;", "var x = n;")},
    {"wse.csl.var.type", "needs a type", 1, as_task("var n = 5;", "n += 1;")},
    {"wse.csl.var.align", "power of two", 1, as_task("var n: u16 align(3) = 5;", "n += 1;")},
    {"wse.csl.type.mismatch", "types i16 and u16", 4,
     task("var a: i16 = 1; var b: u16 = 2; a = a + b;")},
    {"wse.csl.type.mismatch", "expected u16, found bool", 4, task("var a: u16 = true;")},
    {"wse.csl.type.mismatch", "300 does not fit u8", 4, task("var a: u8 = 300;")},
    {"wse.csl.type.operator", "not defined for", 4, task("const a = \"x\" * \"y\";")},
    {"wse.csl.type.field", "has no member \"blue\"", 4,
     task("const e = enum(u16) { red }; const x = e.blue;")},
    {"wse.csl.type.field", "there is no field \"z\"", 4,
     task("const s = .{ .x = 1 }; const y = s.z;")},
    {"wse.csl.type.duplicate_field", "occurs twice", 4, task("const s = .{ .x = 1, .x = 2 };")},
    {"wse.csl.type.missing_field", "needs a value", 4,
     as_task("const p = struct { x: u16, y: u16 };", "const s = p { .x = 1 };")},
    {"wse.csl.type.expected", "expected a type", 4, task("var x: 3 = 4;")},
    {"wse.csl.type.array", "cannot be an array", 4, task("var x: [3][4]u16;")},
    {"wse.csl.type.extent", "must lie in", 4, task("var x: [0 - 1]u16;")},
    {"wse.csl.type.enum", "taken by another", 4,
     task("const e = enum(u8) { a = 1, b = 1 }; const x = e.a;")},
    {"wse.csl.type.initialiser", "needs 3 elements", 4, task("var x = [3]u16 { 1, 2 };")},
    {"wse.csl.type.bitcast", "equal widths", 4, task("var x: u16 = 1; var y = @bitcast(u32, x);")},
    {"wse.csl.type.ptrcast", "converts pointers", 4,
     task("var x: u16 = 1; var y = @ptrcast(*u32, x);")},
    {"wse.csl.type.conversion", "cannot convert", 4, task("var x: u16 = 1; var y = @as(*u16, x);")},
    {"wse.csl.type.range", "does not fit", 4, task("var y = @as(u8, 256);")},
    {"wse.csl.type.dereference", "only a pointer", 4, task("var x: u16 = 1; x.* = 3;")},
    {"wse.csl.type.runtime", "cannot be chosen at run time", 4,
     as_task("var k: u16 = 1;", "var x = if (k == 1) u16 else u32;")},
    {"wse.csl.assign.constant", "constant", 4, task("const x: u16 = 1; x = 3;")},
    {"wse.csl.index.rank", "expected 2 indices", 4,
     as_task("var m = @zeros([2, 2]u16);", "m[1] = 3;")},
    {"wse.csl.index.range", "outside the extent 2", 4,
     as_task("var m = @zeros([2]u16);", "m[2] = 3;")},
    {"wse.csl.index.type", "cannot be indexed", 4, task("var x: u16 = 1; x[0] = 3;")},
    {"wse.csl.comptime.division", "division by zero", 4, task("const x = 3 / 0;")},
    {"wse.csl.comptime.overflow", "exceeds the 128 bits", 4, task("const x = 1 << 126 << 5;")},
    {"wse.csl.comptime.shift", "cannot be negative", 4, task("const x = 1 << (0 - 1);")},
    {"wse.csl.comptime.assert", "@comptime_assert failed: sizes", 4,
     task("@comptime_assert(1 == 2, \"sizes\");")},
    {"wse.csl.comptime.runtime_value", "only at run time", 4,
     as_task("var n: u16 = 3;", "var a: [n]u16;")},
    {"wse.csl.comptime.limit", "without end", 4,
     task("const x = comptime b: { while (true) { } break :b 1; };")},
    {"wse.csl.call.arguments", "takes 1 argument, found 2", 4,
     as_task("fn f(x: u16) void { }", "f(1, 2);")},
    {"wse.csl.call.task", "cannot be called", 4, task("main_task();")},
    {"wse.csl.call.callee", "cannot be called", 4, task("const x = 3; x();")},
    {"wse.csl.call.generic", "is generic", 4,
     as_task("fn f(x: anytype) void { }", "const p: *const fn(u16)void = &f;")},
    {"wse.csl.return.missing", "can end without returning", 1,
     as_task("fn f(x: u16) u16 { if (x == 1) return 2; }", "var y = f(3);")},
    {"wse.csl.return.value", "has no value", 1, as_task("fn f() u16 { return; }", "var y = f();")},
    {"wse.csl.break.target", "no enclosing loop", 4, task("break;")},
    {"wse.csl.switch.exhaustive", "do not cover", 4,
     task("var x: u16 = 1; switch (x) { 1 => { } }")},
    {"wse.csl.switch.duplicate", "occurs twice", 4,
     task("var x: u16 = 1; switch (x) { 1 => { }, 1 => { }, else => { } }")},
    {"wse.csl.switch.subject", "switch takes", 4,
     task("var x: f32 = 1.0; switch (x) { else => { } }")},
    {"wse.csl.for.iterable", "for needs", 4, task("for (3) |i| { }")},
    {"wse.csl.for.step", "cannot be 0", 4, task("for (@range(u16, 0, 3, 0)) |i| { }")},
    {"wse.csl.builtin.unknown", "no built-in @zeroes", 1,
     as_task("var x = @zeroes([3]u16);", "x[0] = 1;")},
    {"wse.csl.builtin.arguments", "@as takes 2", 4, task("const x = @as(3);")},
    {"wse.csl.builtin.context", "at run time", 1, "comptime { @random16(); }"},
    {"wse.csl.builtin.context", "belongs to a layout", 1, "comptime { @set_rectangle(1, 1); }"},
    {"wse.csl.builtin.arch", "unknown architecture", 4, task("const x = @is_arch(\"wse9\");")},
    {"wse.csl.module.library", "no library module <maths>", 1,
     as_task("const m = @import_module(\"<maths>\");", "")},
    {"wse.csl.module.member", "has no \"sqroot\"", 4,
     as_task("const m = @import_module(\"<math>\");", "var x = m.sqroot(1.0);")},
    {"wse.csl.module.member", "not known when compiling", 4,
     as_task("var m = @import_module(\"<math>\");", "var x = m.sqrt(1.0);")},
    {"wse.csl.file.missing", "cannot read", 1,
     as_task("const m = @import_module(\"other.csl\");", "")},
    {"wse.csl.module.recursion", "without end", 1, "const m = @import_module(\"pe.csl\");"},
    {"wse.csl.id.range", "color 24 does not exist", 1,
     as_task("const c = @get_color(24);", "const d = c;")},
    {"wse.csl.id.range", "output_queue 7", 1,
     as_task("const c = @get_output_queue(7);", "const d = c;")},
    {"wse.csl.task.bound", "already bound", 5,
     "task t() void { }\ntask s() void { }\nconst i = @get_local_task_id(8);\ncomptime { "
     "@bind_local_task(t, i);\n@bind_local_task(s, i); }"},
    {"wse.csl.task.arguments", "cannot take arguments", 2,
     "task t(x: u16) void { }\ncomptime { @bind_local_task(t, @get_local_task_id(8)); }"},
    {"wse.csl.task.arguments", "a wavelet has 32", 2,
     "task t(x: u32, y: u16) void { }\ncomptime { @bind_data_task(t, "
     "@get_data_task_id(@get_color(3))); }"},
    {"wse.csl.task.unbound", "bound to no task id", 2,
     "task t() void { }\ncomptime { @activate(t); }"},
    {"wse.csl.task.expected", "expected a task", 2,
     "fn t() void { }\ncomptime { @bind_local_task(t, @get_local_task_id(8)); }"},
    {"wse.csl.task.activate", "takes a local task", 1, "comptime { @activate(@get_color(3)); }"},
    {"wse.csl.queue.color", "needs a .color", 1,
     "comptime { @initialize_queue(@get_input_queue(2)); }"},
    {"wse.csl.queue.twice", "initialised twice", 2,
     "comptime { @initialize_queue(@get_input_queue(2), .{ .color = @get_color(1) "
     "});\n@initialize_queue(@get_input_queue(2), .{ .color = @get_color(1) }); }"},
    {"wse.csl.settings.unknown", "no setting \"asynch\"", 4,
     as_task("var a = @zeros([3]f32); const d = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent "
             "= 3 });",
             "@fmovs(d, d, .{ .asynch = true });")},
    {"wse.csl.settings.async", "needs a fabric operand", 4,
     as_task("var a = @zeros([3]f32); const d = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent "
             "= 3 });",
             "@fmovs(d, d, .{ .async = true });")},
    {"wse.csl.settings.ut_id", "WSE-3 only", 4,
     as_task("const o = @get_dsd(fabout_dsd, .{ .extent = 3, .fabric_color = @get_color(1), "
             ".output_queue = @get_output_queue(2) });",
             "@mov32(o, 1, .{ .async = true, .ut_id = @get_ut_id(3) });")},
    {"wse.csl.dsd.property", "has no property \"lenght\"", 1,
     as_task("var a = @zeros([3]f32); const d = @get_dsd(mem1d_dsd, .{ .base_address = &a, .lenght "
             "= 3 });",
             "@fmovs(d, d);")},
    {"wse.csl.dsd.base", "base_address is a pointer", 1,
     as_task("var a = @zeros([3]f32); const d = @get_dsd(mem1d_dsd, .{ .base_address = 4, .extent "
             "= 3 });",
             "@fmovs(d, d);")},
    {"wse.csl.dsd.affine", "must be affine", 1,
     as_task("var a = @zeros([30]f32); const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{3} -> "
             "a[i * i] });",
             "@fmovs(d, d);")},
    {"wse.csl.dsd.access", "needs 1 extents", 1,
     as_task("var a = @zeros([30]f32); const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{3, 4} "
             "-> a[i] });",
             "@fmovs(d, d);")},
    {"wse.csl.dsd.operand", "cannot be a destination", 4,
     as_task("const d = @get_dsd(fabin_dsd, .{ .extent = 3, .fabric_color = @get_color(1), "
             ".input_queue = @get_input_queue(2) });",
             "@fmovs(d, d);")},
    {"wse.csl.dsd.operand", "scalars of type f32, found f16", 4,
     as_task("var a = @zeros([3]f32); var h: f16 = 1.0; const d = @get_dsd(mem1d_dsd, .{ "
             ".base_address = &a, .extent = 3 });",
             "@fadds(d, d, h);")},
    {"wse.csl.fifo.buffer", "module-level var array", 1,
     as_task("const a = @zeros([3]u32); const f = @allocate_fifo(a);", "@mov32(f, 1);")},
    {"wse.csl.dsr.file", "cannot be loaded into a dsr_dest", 1,
     "comptime { @load_to_dsr(@get_dsr(dsr_dest, 1), @get_dsd(fabin_dsd, .{ .extent = 3, "
     ".fabric_color = @get_color(1), .input_queue = @get_input_queue(2) })); }"},
    {"wse.csl.route.twice", "configured twice", 2,
     "comptime { @set_local_color_config(@get_color(1), .{ .routes = .{ .rx = .{RAMP}, .tx = "
     ".{EAST} } });\n@set_local_color_config(@get_color(1), .{ .routes = .{ .rx = .{RAMP}, .tx = "
     ".{EAST} } }); }"},
    {"wse.csl.route.direction", "expected a direction", 1,
     "comptime { @set_local_color_config(@get_color(1), .{ .routes = .{ .rx = .{3}, .tx = .{EAST} "
     "} }); }"},
    {"wse.csl.route.config", "no setting \"rxx\"", 1,
     "comptime { @set_local_color_config(@get_color(1), .{ .routes = .{ .rxx = .{RAMP} } }); }"},
    {"wse.csl.route.switch", "either rx or tx", 1,
     "comptime { @set_local_color_config(@get_color(1), .{ .routes = .{ .rx = .{RAMP}, .tx = "
     ".{EAST} }, .switches = .{ .pos1 = .{ .rx = WEST, .tx = RAMP } } }); }"},
    {"wse.csl.export.unknown", "exports no name \"A\"", 2,
     "var A: [3]f32; var p: [*]f32 = &A;\ncomptime { @export_symbol(p, \"A\"); }"},
    {"wse.csl.memory.overflow", "a PE has 49152 bytes", 1,
     as_task("export var a = @zeros([13000]f32);", "a[0] = 1.0;")},
    {"wse.csl.memory.stack", "local variables", 4, task("var a = @zeros([13000]f32); a[0] = 1.0;")},
    {"wse.csl.map.function", "known at compile time", 4, task("@map(3, 4);")},
};

class Errors : public ::testing::TestWithParam<Bad> {};

TEST_P(Errors, SlugTextAndPlace) {
  const Bad& bad = GetParam();
  auto options = single(bad.source);
  options.comptime_steps = 200000;
  try {
    csl::compile(options);
    FAIL() << "compiled: " << bad.source;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), bad.code) << e.what();
    ASSERT_FALSE(e.refusal().places.empty());
    const Place& place = e.refusal().places[0];
    EXPECT_NE(place.text.find(bad.text), std::string::npos) << place.text;
    EXPECT_NE(place.text.find("pe.csl:"), std::string::npos) << place.text;
    EXPECT_NE(place.text.find('^'), std::string::npos) << place.text;
    EXPECT_EQ(place.line, bad.line) << place.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Csl, Errors, ::testing::ValuesIn(kBad), [](const auto& param_info) {
  std::string name = std::to_string(param_info.index);
  for (char c : std::string(param_info.param.code).substr(8))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(Diagnostics, OneRunReportsSeveral) {
  try {
    csl::compile(
        single("fn f() void {\n  var a: u8 = 300;\n}\nfn g() void {\n  missing();\n  "
               "also_missing();\n}\n" +
               as_task("", "f(); g();")));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.refusal().places.size(), 3u) << e.what();
  }
}

// The first error's repair is the Error's; each other diagnostic brings its own.
TEST(Diagnostics, EachHasItsRepairOnce) {
  try {
    csl::compile(single(
        "fn f() void {\n  @nothing_like_this();\n}\nfn g() void {\n  const c: i16 = 1 / 0;\n}\n" +
        as_task("", "f(); g();")));
    FAIL();
  } catch (const Error& e) {
    ASSERT_EQ(e.refusal().places.size(), 2u) << e.what();
    const std::string all = e.what(), first = e.refusal().help;
    EXPECT_FALSE(first.empty()) << all;
    EXPECT_EQ(all.find(first), all.rfind(first)) << all;
    EXPECT_NE(e.refusal().places[1].text.find("\n  help: "), std::string::npos) << all;
  }
}

TEST(Diagnostics, DepthIsLimited) {
  for (std::string open :
       {"(", "-", "&", ".{", "[", "{", "comptime ", "*", "if(true) ", "|i|{", "@as(u16,"}) {
    std::string text = "const a = ";
    for (int k = 0; k < 100000; ++k) text += open;
    EXPECT_THROW(csl::compile(single(text)), Error) << open;
  }
  EXPECT_THROW(csl::compile(single(
                   as_task("fn f(n: u32) u32 { return f(n + 1); }", "const x = comptime f(0);"))),
               Error);
}

TEST(Diagnostics, SuggestsNearNames) {
  try {
    csl::compile(single(as_task("const height = 3;", "const x = heigth;")));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean \"height\"?"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace weft::wse::testing
