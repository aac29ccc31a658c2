// SPDX-License-Identifier: Apache-2.0
// Built-ins: every DSD operation against a reference written here, descriptors, DSRs, FIFOs, @map,
// library.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "csl_run.h"
#include "weft/base/dtype.h"
#include "weft/base/text.h"

namespace weft::wse::testing {
namespace {

using Words = std::vector<std::uint32_t>;

std::string list(const Words& v, const std::string& type) {
  std::string out = cat("[", v.size(), "]", type, " {");
  for (std::size_t k = 0; k < v.size(); ++k) out += cat(k ? ", " : " ", v[k]);
  return out + " }";
}

float f32(std::uint32_t w) { return std::bit_cast<float>(w); }
std::uint32_t w32(float v) { return std::bit_cast<std::uint32_t>(v); }
double f16(std::uint32_t w) { return half_to_float(static_cast<std::uint16_t>(w)); }
std::uint32_t w16(double v) { return double_to_half(v); }

struct OpCase {
  const char* name;
  int dst_bytes, src0_bytes, src1_bytes, sources;
  bool scalar, real;
  std::function<std::uint32_t(std::uint32_t, std::uint32_t, std::uint32_t)>
      meaning;  // a, b, scalar
};

const std::vector<OpCase>& ops() {
  static const std::vector<OpCase> rows = {
      {"add16", 2, 2, 2, 2, false, false, [](auto a, auto b, auto) { return (a + b) & 0xffff; }},
      {"sub16", 2, 2, 2, 2, false, false, [](auto a, auto b, auto) { return (a - b) & 0xffff; }},
      {"and16", 2, 2, 2, 2, false, false, [](auto a, auto b, auto) { return a & b; }},
      {"or16", 2, 2, 2, 2, false, false, [](auto a, auto b, auto) { return a | b; }},
      {"xor16", 2, 2, 2, 2, false, false, [](auto a, auto b, auto) { return a ^ b; }},
      {"mov16", 2, 2, 0, 1, false, false, [](auto a, auto, auto) { return a; }},
      {"mov32", 4, 4, 0, 1, false, false, [](auto a, auto, auto) { return a; }},
      {"clz", 2, 2, 0, 1, false, false,
       [](auto a, auto, auto) {
         return static_cast<std::uint32_t>(std::countl_zero(static_cast<std::uint16_t>(a)));
       }},
      {"ctz", 2, 2, 0, 1, false, false,
       [](auto a, auto, auto) {
         return static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint16_t>(a)));
       }},
      {"popcnt", 2, 2, 0, 1, false, false,
       [](auto a, auto, auto) { return static_cast<std::uint32_t>(std::popcount(a)); }},
      {"fadds", 4, 4, 4, 2, false, true, [](auto a, auto b, auto) { return w32(f32(a) + f32(b)); }},
      {"fsubs", 4, 4, 4, 2, false, true, [](auto a, auto b, auto) { return w32(f32(a) - f32(b)); }},
      {"fmuls", 4, 4, 4, 2, false, true, [](auto a, auto b, auto) { return w32(f32(a) * f32(b)); }},
      {"fmaxs", 4, 4, 4, 2, false, true,
       [](auto a, auto b, auto) { return w32(std::fmax(f32(a), f32(b))); }},
      {"fmacs", 4, 4, 4, 2, true, true,
       [](auto a, auto b, auto s) { return w32(f32(a) + f32(w32(f32(b) * f32(s)))); }},
      {"fmovs", 4, 4, 0, 1, false, true, [](auto a, auto, auto) { return a; }},
      {"fnegs", 4, 4, 0, 1, false, true, [](auto a, auto, auto) { return a ^ 0x80000000u; }},
      {"fabss", 4, 4, 0, 1, false, true, [](auto a, auto, auto) { return a & 0x7fffffffu; }},
      {"faddh", 2, 2, 2, 2, false, true, [](auto a, auto b, auto) { return w16(f16(a) + f16(b)); }},
      {"fsubh", 2, 2, 2, 2, false, true, [](auto a, auto b, auto) { return w16(f16(a) - f16(b)); }},
      {"fmulh", 2, 2, 2, 2, false, true, [](auto a, auto b, auto) { return w16(f16(a) * f16(b)); }},
      {"fmaxh", 2, 2, 2, 2, false, true,
       [](auto a, auto b, auto) { return w16(std::fmax(f16(a), f16(b))); }},
      {"fmach", 2, 2, 2, 2, true, true,
       [](auto a, auto b, auto s) { return w16(std::fma(f16(b), f16(s), f16(a))); }},
      {"fmovh", 2, 2, 0, 1, false, true, [](auto a, auto, auto) { return a; }},
      {"fnegh", 2, 2, 0, 1, false, true, [](auto a, auto, auto) { return a ^ 0x8000u; }},
      {"fabsh", 2, 2, 0, 1, false, true, [](auto a, auto, auto) { return a & 0x7fffu; }},
      {"fh2s", 4, 2, 0, 1, false, true,
       [](auto a, auto, auto) { return w32(static_cast<float>(f16(a))); }},
      {"fs2h", 2, 4, 0, 1, false, true, [](auto a, auto, auto) { return w16(f32(a)); }},
      {"faddhs", 4, 4, 2, 2, false, true,
       [](auto a, auto b, auto) {
         return w32(static_cast<float>(static_cast<double>(f32(a)) + f16(b)));
       }},
      {"fmachs", 4, 4, 2, 2, true, true,
       [](auto a, auto b, auto s) {
         return w32(static_cast<float>(std::fma(f16(b), f16(s), static_cast<double>(f32(a)))));
       }},
      {"sll16", 2, 2, 2, 2, false, false,
       [](auto a, auto b, auto) { return b > 15 ? 0u : a << b & 0xffffu; }},
      {"slr16", 2, 2, 2, 2, false, false, [](auto a, auto b, auto) { return b > 15 ? 0u : a >> b; }},
      {"sar16", 2, 2, 2, 2, false, false,
       [](auto a, auto b, auto) {
         auto v = static_cast<std::int64_t>(static_cast<std::int16_t>(a));
         return static_cast<std::uint32_t>(v >> b) & 0xffffu;
       }},
      {"fscaleh", 2, 2, 2, 2, false, true,
       [](auto a, auto b, auto) { return w16(f16(a) * std::pow(2.0, static_cast<double>(b))); }},
      {"fscales", 4, 4, 2, 2, false, true,
       [](auto a, auto b, auto) {
         return w32(static_cast<float>(f32(a) * std::pow(2.0, static_cast<double>(b))));
       }},
      {"fnormh", 2, 2, 0, 1, false, true,
       [](auto a, auto, auto) {
         double v = f16(a);
         while (std::fabs(v) >= 2) v /= 2;
         while (v != 0 && std::fabs(v) < 1) v *= 2;
         return w16(v);
       }},
      {"fnorms", 4, 4, 0, 1, false, true,
       [](auto a, auto, auto) {
         float v = f32(a);
         while (std::fabs(v) >= 2) v /= 2;
         while (v != 0 && std::fabs(v) < 1) v *= 2;
         return w32(v);
       }},
      {"fh2xp16", 2, 2, 0, 1, false, true,
       [](auto a, auto, auto) {
         return static_cast<std::uint32_t>(static_cast<int>(f16(a))) & 0xffffu;
       }},
      {"fs2xp16", 2, 4, 0, 1, false, true,
       [](auto a, auto, auto) {
         return static_cast<std::uint32_t>(static_cast<int>(f32(a))) & 0xffffu;
       }},
      {"xp162fh", 2, 2, 0, 1, false, false,
       [](auto a, auto, auto) { return w16(static_cast<std::int16_t>(a)); }},
      {"xp162fs", 4, 2, 0, 1, false, false,
       [](auto a, auto, auto) { return w32(static_cast<std::int16_t>(a)); }},
  };
  return rows;
}

class BulkOps : public ::testing::TestWithParam<std::size_t> {};

TEST_P(BulkOps, MatchesReference) {
  const OpCase& op = ops()[GetParam()];
  std::mt19937 rng(static_cast<unsigned>(GetParam()) + 11);
  constexpr int n = 13;
  auto value = [&](int bytes) -> std::uint32_t {
    if (!op.real) return bytes == 2 ? rng() & 0xffff : rng();
    double v = std::uniform_real_distribution<double>(-4, 4)(rng);
    return bytes == 2 ? w16(v) : w32(static_cast<float>(v));
  };
  Words a(n), b(n);
  for (auto& w : a) w = value(op.src0_bytes);
  for (auto& w : b) w = value(op.src1_bytes ? op.src1_bytes : 2);
  std::string_view name = op.name;
  if (name.starts_with("sll") || name.starts_with("slr") || name.starts_with("sar") ||
      name.starts_with("fscale")) {
    for (auto& w : b) w = rng() % 18;  // a count
  }
  int scalar_bytes = op.src1_bytes ? op.src1_bytes : op.src0_bytes;
  std::uint32_t s = value(scalar_bytes);
  auto type = [](int bytes) { return std::string(bytes == 4 ? "u32" : "u16"); };
  std::string globals = cat("export var out = @zeros([", n, "]", type(op.dst_bytes),
                            ");\nvar a = ", list(a, type(op.src0_bytes)),
                            ";\nvar b = ", list(b, type(op.src1_bytes ? op.src1_bytes : 2)),
                            ";\nvar s: ", type(scalar_bytes), " = ", s, ";\n");
  for (const char* x : {"out", "a", "b"}) {
    globals += cat("const d_", x, " = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", n, "} -> ", x,
                   "[i] });\n");
  }
  std::string cast =
      op.real ? cat("@bitcast(", scalar_bytes == 4 ? "f32" : "f16", ", s)") : std::string("s");
  std::string body = cat("@", op.name, "(d_out, d_a", op.sources > 1 ? ", d_b" : "",
                         op.scalar ? cat(", ", cast) : std::string(), ");");
  try {
    Ran ran(single(as_task(globals, body)));
    Words want;
    for (int k = 0; k < n; ++k)
      want.push_back(op.meaning(a[static_cast<std::size_t>(k)], b[static_cast<std::size_t>(k)], s));
    Words got;
    if (op.dst_bytes == 4) {
      got = ran.read<std::uint32_t>("out");
    } else {
      for (std::uint16_t v : ran.read<std::uint16_t>("out")) got.push_back(v);
    }
    EXPECT_EQ(got, want) << op.name;
  } catch (const Error& e) {
    FAIL() << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Csl, BulkOps, ::testing::Range<std::size_t>(0, 41),
                         [](const auto& param_info) { return ops()[param_info.param].name; });

struct Case {
  const char* name;
  std::string globals, body;
  Words want;
};

const std::vector<Case>& cases() {
  static const std::string a6 =
      "export var out = @zeros([6]u32);\nvar a = [6]u32 { 1, 2, 3, 4, 5, 6 };\nvar m = [2, 3]u32 { "
      "1, 2, 3, 4, 5, 6 };\n"
      "const all = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 6 });\nconst o = "
      "@get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 6 });\n";
  static const std::vector<Case> rows = {
      {"stride and offset",
       a6,
       "@mov32(@get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 3 }), @get_dsd(mem1d_dsd, .{ "
       ".base_address = &a, .extent = 3, .stride = 2, .offset = 1 }));",
       {2, 4, 6, 0, 0, 0}},
      {"reversed access",
       a6,
       "@mov32(o, @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{6} -> a[5 - i] }));",
       {6, 5, 4, 3, 2, 1}},
      {"column of a matrix",
       a6,
       "@mov32(o, @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{2} -> m[i, 2] }));",
       {3, 6, 0, 0, 0, 0}},
      {"transpose by mem4d",
       a6,
       "@mov32(o, @get_dsd(mem4d_dsd, .{ .tensor_access = |j, i|{3, 2} -> m[i, j] }));",
       {1, 4, 2, 5, 3, 6}},
      {"mem4d by deltas",
       a6,
       "@mov32(o, @get_dsd(mem4d_dsd, .{ .base_address = &a, .extent = .{ 2, 3 }, .stride = .{ 1, "
       "-1 } }));",
       {1, 2, 3, 2, 3, 4}},
      {"run-time length and base",
       a6 + "var n: u16 = 2; var p: [*]u32 = &a;\n",
       "var d = @set_dsd_length(o, n); @mov32(d, @set_dsd_length(all, n)); d = "
       "@increment_dsd_offset(d, 3, u32);"
       "var i: i16 = 4; @mov32(d, @increment_dsd_offset(@set_dsd_length(all, n), i, u32), .{}); n "
       "= 1; @mov32(@get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = n, .offset = 2 }), "
       "@set_dsd_base_addr(@set_dsd_length(all, n), p));",
       {1, 2, 1, 5, 6, 0}},
      {"run-time stride",
       a6 + "var s: i8 = 2;\n",
       "@mov32(@set_dsd_length(o, 3), @set_dsd_stride(@set_dsd_length(all, 3), s)); "
       "@mov32(@increment_dsd_offset(@set_dsd_length(o, 3), 3, u32), "
       "@set_dsd_stride(@set_dsd_length(all, 3), 1));",
       {1, 3, 5, 1, 2, 3}},
      {"scalar source fills", a6, "@mov32(o, 7);", {7, 7, 7, 7, 7, 7}},
      {"pointer destination reduces",
       "export var out = @zeros([2]f32);\nvar a = [4]f32 { 1.0, 2.0, 3.0, 4.5 };\nvar acc: f32 = "
       "0.5;\nconst d = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 4 });\n",
       "@fadds(&acc, acc, d); out[0] = acc; @fmovs(&out[1], d);",
       {w32(11.0f), w32(4.5f)}},
      {"descriptors as parameters and results",
       a6 + "fn half(d: mem1d_dsd, n: u16) mem1d_dsd { return @set_dsd_length(d, n / 2); }\n",
       "@mov32(o, half(all, 6)); var v = o; v = half(v, 4); @mov32(v, 9);",
       {9, 9, 3, 0, 0, 0}},
      {"DSRs with save_address",
       a6,
       "const d = @get_dsr(dsr_dest, 2); const s = @get_dsr(dsr_src1, 2); @load_to_dsr(d, "
       "@set_dsd_length(o, 2), .{ .save_address = true });"
       "@load_to_dsr(s, @set_dsd_length(all, 2), .{ .save_address = true }); @mov32(d, s); "
       "@mov32(d, s); @mov32(d, s);",
       {1, 2, 3, 4, 5, 6}},
      {"FIFO in memory",
       a6 + "var buffer = @zeros([4]u32); const fifo = @allocate_fifo(buffer);\n",
       "out[5] = @as(u32, @mov32(fifo, all)); @mov32(@set_dsd_length(o, 4), fifo);",
       {1, 2, 3, 4, 0, 0}},
      {"@map with scalars and a result",
       a6 + "fn f(x: u32, k: u32, y: u32) u32 { return x * k + y; }\nvar k: u32 = 100;\n",
       "@map(f, all, k, all, o);",
       {101, 202, 303, 404, 505, 606}},
      {"@map without a result",
       a6 + "var at: u16 = 0; fn f(x: u32) void { out[at] = x + 1; at += 1; }\n",
       "@map(f, all);",
       {2, 3, 4, 5, 6, 7}},
      {"@map reducing through a pointer",
       a6 + "fn f(x: u32, s: *u32) u32 { return x + s.*; }\n",
       "@map(f, all, &out[3], &out[3]);",
       {0, 0, 0, 21, 0, 0}},
      {"wavelet index offset",
       a6 + "const w = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 2, "
            ".wavelet_index_offset = true });\nvar idx: u16 = 2;\n",
       "@mov32(o, w, .{ .index = 2 * idx });",
       {3, 4, 0, 0, 0, 0}},
      {"comptime queries",
       "export var out = @zeros([9]u32);\nvar m = @zeros([2, 5]f32); const s = .{ .a = 1, .b = 2 "
       "};\n",
       "out[0] = @rank(@type_of(m)); out[1] = @element_count(@type_of(m)); out[2] = @as(u32, "
       "@is_same_type(@element_type(@type_of(m)), f32)); out[3] = @dimensions(@type_of(m))[1];"
       "out[4] = @field(s, \"b\"); out[5] = @as(u32, @has_field(s, \"c\")); const c = "
       "@concat_structs(s, .{ .c = 9 }); out[6] = c.c; out[7] = @range_stop(@range(u16, 12)); "
       "out[8] = @as(u32, @get_int(@get_color(7)));",
       {2, 10, 1, 5, 2, 0, 9, 12, 7}},
      {"bit casts",
       "export var out = @zeros([4]u32);\nvar f: f32 = 1.0; var h: f16 = -2.0; var u: u32 = "
       "0x40000000;\n",
       "out[0] = @bitcast(u32, f); out[1] = @as(u32, @bitcast(u16, h)); out[2] = @as(u32, "
       "@bitcast(f32, u)); out[3] = @bitcast(u32, @as(f32, 0.5));",
       {0x3f800000, 0xc000, 2, 0x3f000000}},
      {"math library",
       "const math = @import_module(\"<math>\");\nexport var out = @zeros([6]u32);\nvar x: f32 = "
       "2.25; var i: i16 = -5; var h: f16 = 4.0;\n",
       "out[0] = @bitcast(u32, math.sqrt_f32(x)); out[1] = @bitcast(u32, math.sqrt(x)); out[2] = "
       "@as(u32, math.abs(i)); out[3] = @as(u32, math.max(i, 3)); out[4] = @as(u32, math.sqrt(h)); "
       "out[5] = @bitcast(u32, math.floor(x));",
       {w32(1.5f), w32(1.5f), 5, 3, 2, w32(2.0f)}},
      {"control payloads",
       "const ctrl = @import_module(\"<control>\"); const sw = "
       "@import_module(\"<memcpy/memcpy_switches>\");\nexport var out = @zeros([5]u32);\n",
       "out[0] = ctrl.encode_single_payload(ctrl.opcode.SWITCH_ADV, true, {}, 6); out[1] = "
       "ctrl.encode_control_task_payload(@get_control_task_id(40));"
       "out[2] = comptime sw.ctrl([8]u16 { 3, 3, 3, 3, 3, 3, 3, 3 }) & 0xffc0ffff; out[3] = "
       "ctrl.encode_single_payload(ctrl.opcode.TEARDOWN, false, @get_control_task_id(5), 0); "
       "out[4] = sw.ctrl(sw.switch_cmd_11());",
       {(1u << 22) | (1u << 24) | (31u << 16) | 6u, 40u << 16, 0x3fc0ffffu & 0xffffffffu,
        (3u << 22) | (5u << 16), 0}},
      {"directions",
       "const dirs = @import_module(\"<directions>\");\nexport var out = @zeros([3]u32);\n",
       "const d = comptime dirs.flip(EAST); if (d == WEST) out[0] = 1; if (comptime "
       "dirs.rotate_cw(NORTH) == EAST) out[1] = 1; var r = NORTH; if (dirs.rotate_ccw(r) == WEST) "
       "out[2] = 1;",
       {1, 1, 1}},
      {"time and random",
       "const tsc = @import_module(\"<time>\"); const random = @import_module(\"<random>\");\nvar "
       "t0 = @zeros([3]u16); var t1 = @zeros([tsc.tsc_size_words]u16);\nexport var out = "
       "@zeros([3]u32);\n",
       "tsc.enable_tsc(); tsc.get_timestamp(&t0); for (@range(u16, 50)) |i| { const x = "
       "random.random_f32(-1.0, 1.0); if (x < -1.0 or x >= 1.0) out[1] = 1; } "
       "tsc.get_timestamp(&t1); out[0] = @as(u32, t1[0] > t0[0]); const a = random.random_u32(); "
       "out[2] = @as(u32, a != random.random_u32());",
       {1, 0, 1}},
      {"addition of many words",
       "export var out = @zeros([2]u32);\nvar a = [4]u16 { 65535, 65535, 1, 7 }; var b = [4]u16 { "
       "1, "
       "0, 65535, 1 }; var r = @zeros([4]u16);\nconst da = @get_dsd(mem1d_dsd, .{ .base_address = "
       "&a, .extent = 4 }); const db = @get_dsd(mem1d_dsd, .{ .base_address = &b, .extent = 4 }); "
       "const dr = @get_dsd(mem1d_dsd, .{ .base_address = &r, .extent = 4 });\n",
       "@addc16(dr, da, db); out[0] = @as(u32, r[0]) | (@as(u32, r[1]) << 16); out[1] = @as(u32, "
       "r[2]) | (@as(u32, r[3]) << 16);",
       {0, 9u << 16 | 1u}},
      {"ranges and comptime tests",
       "export var out = @zeros([6]u32);\nconst r = @range(i16, 3, 12, 4); var v: u32 = 2;\n",
       "out[0] = @range_start(r); out[1] = @range_step(r); out[2] = @as(u32, comptime "
       "@is_comptime()); "
       "out[3] = @as(u32, @is_comptime()); out[4] = @as(u32, @is_arch(\"wse2\")); out[5] = "
       "@as(u32, "
       "@is_same_type(@fp16(), f16));",
       {3, 4, 1, 0, 1, 1}},
      {"strings",
       "export var out = @zeros([5]u32);\nconst s = @strcat(\"ab\", \"cde\"); const bytes = "
       "@get_array(s);\n",
       "out[0] = @strlen(s); out[1] = @as(u32, bytes[3]); out[2] = @as(u32, s == \"abcde\"); "
       "comptime { @comptime_print(s, 1 + 1); @comptime_assert(@strlen(s) == 5, \"length\"); } "
       "@assert(out[0] == 5); out[3] = @element_count(@type_of(bytes)); out[4] = "
       "@dimensions(@type_of(bytes))[0];",
       {5, 'd', 1, 5, 5}},
      {"pointers reinterpreted",
       "export var out = @zeros([3]u32);\nvar f = [2]f32 { 1.0, 2.0 }; var p: [*]f32 = &f;\n",
       "const q = @ptrcast([*]u32, p); out[0] = q[1]; q[0] = 0x40400000; out[1] = @as(u32, f[0]); "
       "out[2] = @as(u32, @bitcast(u16, q) == @bitcast(u16, p));",
       {0x40000000, 3, 1}},
      {"constants of a run-time value",
       "export var out = @zeros([4]u32);\nvar k: u32 = 9;\n",
       "out = @constants([4]u32, k + 1);",
       {10, 10, 10, 10}},
      {"generators",
       "export var out = @zeros([4]u32);\n",
       "@set_active_prng(3); const a = @random16(); const b = @random16(); @set_active_prng(3); "
       "out[0] = @as(u32, a == @random16()); out[1] = @as(u32, a != b); @set_active_prng(4); "
       "out[2] "
       "= @as(u32, a != @random16()); out[3] = @as(u32, @is_same_type(@type_of(a), u16));",
       {1, 1, 1, 1}},
      {"lengths of a FIFO",
       "export var out = @zeros([4]u32); var buffer = @zeros([4]u32); const fifo = "
       "@allocate_fifo(buffer); var a = [4]u32 { 1, 2, 3, 4 };\nconst o = @get_dsd(mem1d_dsd, .{ "
       ".base_address = &out, .extent = 2 }); const d = @get_dsd(mem1d_dsd, .{ .base_address = &a, "
       ".extent = 4 });\n",
       "out[2] = @as(u32, @mov32(fifo, d)); @set_fifo_read_length(fifo, 2); @mov32(o, fifo); "
       "@set_fifo_write_length(fifo, 4); out[3] = @as(u32, @mov32(fifo, @set_dsd_length(d, 3)));",
       {1, 2, 1, 1}},
      {"extended registers",
       "export var out = @zeros([6]u32); var m = [2, 3]u32 { 1, 2, 3, 4, 5, 6 };\nconst o = "
       "@get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 6 }); const x = @get_xdsr(2); const "
       "s "
       "= @get_dsr(dsr_src1, 3);\n",
       "@load_to_dsr(s, @get_dsd(mem4d_dsd, .{ .tensor_access = |j, i|{3, 2} -> m[i, j] })); "
       "@mov32(o, s);",
       {1, 4, 2, 5, 3, 6}},
  };
  return rows;
}

class Builtins : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Builtins, Program) {
  const Case& c = cases()[GetParam()];
  try {
    Ran ran(single(as_task(c.globals, c.body)));
    Words got = ran.read<std::uint32_t>("out");
    Words want = c.want;
    if (std::string(c.name) == "control payloads") {
      // The all-teardown payload without its entry point, from the bit positions of the encoding.
      std::uint32_t all = 0;
      for (int k = 0; k < 8; ++k) {
        for (int j = 0; j < 3; ++j) all |= 1u << ((22 + 3 * k + j) % 30);
      }
      want[2] = all & 0xffc0ffffu;
      std::uint32_t two = 31u << 16;
      for (int k = 0; k < 8; ++k) {
        std::uint32_t bits = (k < 2 ? 1u : 0u) | 4u;
        for (int j = 0; j < 3; ++j) two |= (bits >> j & 1u) << ((22 + 3 * k + j) % 30);
      }
      want[4] = two;
    }
    EXPECT_EQ(got, want);
  } catch (const Error& e) {
    FAIL() << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Csl, Builtins, ::testing::Range<std::size_t>(0, 30),
                         [](const auto& param_info) {
                           std::string name;
                           for (char c : std::string(cases()[param_info.param].name))
                             name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(BuiltinsTable, AllCasesRun) {
  EXPECT_EQ(ops().size(), 41u);  // all of bulk.def but addc16, which carries between elements
  EXPECT_EQ(cases().size(), 30u);
}

}  // namespace
}  // namespace weft::wse::testing
