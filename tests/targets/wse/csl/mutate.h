// SPDX-License-Identifier: Apache-2.0
#pragma once
// Source mutations shared by the short test and the fuzzer.

#include <cctype>
#include <random>
#include <string>
#include <vector>

#include "csl_run.h"
#include "weft/targets/wse/csl/library.h"

namespace weft::wse::testing {

/// The text is the code of a PE whose layout exports two names; with a layout block of its own it
/// is both.
inline csl::CompileOptions fuzz_options(const std::string& text) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.read_disk = false;
  bool own =
      text.find("layout") != std::string::npos && text.find("set_rectangle") != std::string::npos;
  o.files["layout.csl"] =
      own ? text
          : "const mp = @import_module(\"<memcpy/get_params>\", .{ .width = 1, .height = 1, "
            ".MEMCPYH2D_1 = @get_color(5) });\n"
            "layout { @set_rectangle(1, 1); @set_tile_code(0, 0, \"pe.csl\", .{ .memcpy_params = "
            "mp.get_params(0), .n = 3, .c = @get_color(2) });\n"
            "@export_name(\"y\", [*]f32, true); @export_name(\"go\", fn()void); }";
  o.files["pe.csl"] = text;
  o.comptime_steps = 60000;
  o.params = {{"w", 2}};
  return o;
}

inline const std::vector<std::string>& corpus() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> out;
    for (const std::string& name : csl::library_names()) {
      if (const std::string_view* t =
              csl::library_text(std::string_view(name).substr(1, name.size() - 2))) {
        if (t->size() < 6000) out.emplace_back(*t);
      }
    }
    out.push_back(R"(
param memcpy_params: comptime_struct; param n: u16; param c: color;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
const math = @import_module("<math>");
var A = @zeros([n, 4]f32); var y = [3]f32 { 1.0, 2.5e-1, -3.0 }; var y_ptr: [*]f32 = &y; var k: i16 = 0;
const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> y[i] });
const m = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{n, 4} -> A[i, j] });
var buffer = @zeros([16]u32); const fifo = @allocate_fifo(buffer);
const in = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = c, .input_queue = @get_input_queue(2) });
const mode = enum(u16) { off, on = 4, idle };
const pair = struct { a: u16, b: f32 };
fn add(x: f32, by: f32) f32 { return x + by * 2.0; }
inline fn pick(comptime T: type, x: T, z: anytype) T { if (x > @as(T, z)) { return x; } else { return @as(T, z); } }
fn go() void {
  var p = pair { .a = 3, .b = 1.0 }; var local = [4]i16 { 1, 2, 3, 4 };
  for (@range(i16, 4)) |i| { local[i] += pick(i16, i, 2); if (i == 3) break; }
  while (k < 5) : (k += 1) { switch (k) { 0, 1 => continue, else => { p.b = math.sqrt(p.b + @as(f32, k)); } } }
  @fmacs(d, d, d, y[1]); @map(add, d, p.b, d); @mov32(fifo, in, .{ .async = true, .activate = done });
  const v = if (mode.on == mode.idle) 1 else local[1]; y[0] = @as(f32, v);
  sys.unblock_cmd_stream();
}
task done() void { @block(done); @unblock(done); }
comptime { @bind_local_task(done, @get_local_task_id(9)); @activate(done); @export_symbol(y_ptr, "y"); @export_symbol(go); }
)");
    out.push_back(R"(
param w: u16; const c = @get_color(1); const a = .{ .x = 1, .y = .{ 2, 3 } };
layout {
  @set_rectangle(w, 2); var i: u16 = 0;
  while (i < w) : (i += 1) { for (@range(u16, 2)) |j| {
    @set_tile_code(i, j, "pe.csl", @concat_structs(a, .{ .z = i * 2 }));
    @set_color_config(i, j, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{EAST, RAMP} }, .switches = .{ .pos1 = .{ .rx = RAMP }, .ring_mode = true } });
  } }
}
param x: u16 = 4; param y = .{ 1, 2 }; param z: u16 = 0; var t = @zeros([x]u16);
comptime { @comptime_assert(x < 10); }
)");
    out.push_back(R"(
param memcpy_params; param n: u16; param c: color; param pair = .{ .left = 1, .right = .{ .x = EAST } };
const sys = @import_module("<memcpy/memcpy>", memcpy_params); const dirs = @import_module("<directions>");
const tile = @import_module("<tile_config>"); const text = @import_module("<string>"); const types = @import_module("<types>");
const either = union { word: u32, halves: [2]u16, real: f32 }; const bits = packed struct { low: u8, high: u8, rest: u16 };
const packed_either = packed union { all: u32, parts: bits }; extern var shared: u16 linkname("mine"); export var mine: u16 = 4;
var ring = [4]u16 { 1, 2, 3, 4 }; var y = @zeros([8]f32); var y_ptr: [*]f32 = &y; var any: *anyopaque = @ptrcast(*anyopaque, &y);
const cb = @get_dsd(circbuf_dsd, .{ .base_address = &ring, .extent = 8, .wraparound = 4 });
const flat = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> y[i] }); var out16 = @zeros([8]u16);
const to = @get_dsd(mem1d_dsd, .{ .base_address = &out16, .extent = 8, .stride = 1, .offset = 0 });
const dst = @get_dsr(dsr_dest, 1); const src = @get_dsr(dsr_src1, 1); const x1 = @get_xdsr(1); const s1 = @get_sr(1);
fn go() void {
  var u: either = either{ .real = 1.0 }; u.word += 1; var b = bits{ .low = 1, .high = 2, .rest = 3 }; b.high = b.low;
  var p = packed_either{ .parts = b }; p.all ^= 7; shared += u.halves[0]; y[0] = @as(f32, p.parts.rest);
  @mov16(to, cb); @load_to_dsr_xdsr(src, x1, cb); @load_to_dsr(dst, to, .{ .save_address = true }); @mov16(dst, src);
  const wide: u32 = mine; if (@get_int(dst) == 1 and dst == dst and u16 == @type_of(mine)) { y[1] = @as(f32, wide); }
  const rx = comptime dirs.dirToRxBits(EAST); out16[0] = rx; @fmovs(sys.get_streaming_fabout_dsd(c, 8, @get_output_queue(2)), flat, .{ .async = true });
  sys.unblock_cmd_stream();
}
const label = comptime text.comptime_int_to_string(-42); const whole = types.is_int(u16);
comptime { @comptime_assert(whole and @strlen(label) == 3); @export_symbol(y_ptr, "y"); @export_symbol(go); }
)");
    return out;
  }();
  return texts;
}

/// What an edit may insert: punctuation, beginnings of constructs, and a call of every built-in.
inline const std::vector<std::string>& pieces() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out = {"(",
                                    ")",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    ".{",
                                    ";",
                                    ",",
                                    ".",
                                    "*",
                                    "&",
                                    "|i|{3} -> ",
                                    "@as(u16, ",
                                    "@zeros([3]u16)",
                                    "if (",
                                    " else ",
                                    "while (true) ",
                                    "for (@range(u16, 3)) |i| ",
                                    "comptime ",
                                    "inline ",
                                    "var q: u32 = 1;",
                                    "const q = 3;",
                                    "0x7fffffffffffffff",
                                    "1e300",
                                    "\"s\"",
                                    "'c'",
                                    "-1",
                                    "65536",
                                    "~",
                                    "!",
                                    "<<",
                                    ">>",
                                    "/ 0",
                                    "@type_of(",
                                    "&y",
                                    "y_ptr",
                                    ".*",
                                    "fn",
                                    "task",
                                    "u16",
                                    "f16",
                                    "comptime_int",
                                    "type",
                                    "struct { a: u16 }",
                                    "enum(u8) { a, b }",
                                    "return",
                                    "break",
                                    "continue",
                                    "switch (k) { else => 1 }",
                                    "@get_dsd(mem1d_dsd, .{ .base_address = &y, .extent = 2 })",
                                    "@import_module(\"pe.csl\")",
                                    "@import_module(\"<time>\")",
                                    "@map(add, d, 1.0, d)",
                                    "[*]",
                                    "*const ",
                                    "anytype",
                                    "void",
                                    "{}",
                                    "true",
                                    "@concat_structs(",
                                    "RAMP",
                                    "@get_color(3)",
                                    "\xff",
                                    std::string(1, '\0')};
#define WEFT_CSL_BUILTIN(name, fn, low, high) out.emplace_back("@" #name "(");
#include "weft/targets/wse/csl/builtins.def"
#undef WEFT_CSL_BUILTIN
#define WEFT_WSE_BULK(name, ...) out.emplace_back("@" #name "(d, d, ");
#include "weft/targets/wse/bulk.def"
#undef WEFT_WSE_BULK
    return out;
  }();
  return all;
}

/// `text` after one to four edits.
inline std::string mutate_text(std::string text, std::mt19937& rng) {
  int edits = 1 + static_cast<int>(rng() % 4);
  for (int k = 0; k < edits && !text.empty(); ++k) {
    std::size_t at = rng() % text.size();
    switch (rng() % 6) {
      case 0: text.erase(at, 1 + rng() % 12); break;
      case 1: text.insert(at, pieces()[rng() % pieces().size()]); break;
      case 2: text[at] = static_cast<char>(rng()); break;
      case 3: {
        std::size_t from = rng() % text.size();
        text.insert(at, text.substr(from, 1 + rng() % 40));
        break;
      }
      case 4: {
        std::size_t from = rng() % text.size(), n = 1 + rng() % 30;
        text.replace(at, std::min<std::size_t>(n, text.size() - at), text.substr(from, n));
        break;
      }
      default: {
        // A name or number for another.
        std::size_t b = at;
        while (b < text.size() && !std::isalnum(static_cast<unsigned char>(text[b]))) ++b;
        std::size_t e = b;
        while (e < text.size() &&
               (std::isalnum(static_cast<unsigned char>(text[e])) || text[e] == '_'))
          ++e;
        std::size_t b2 = rng() % text.size();
        while (b2 < text.size() && !std::isalnum(static_cast<unsigned char>(text[b2]))) ++b2;
        std::size_t e2 = b2;
        while (e2 < text.size() &&
               (std::isalnum(static_cast<unsigned char>(text[e2])) || text[e2] == '_'))
          ++e2;
        text.replace(b, e - b, text.substr(b2, e2 - b2));
        break;
      }
    }
  }
  return text;
}

inline std::string mutate(std::mt19937& rng, const std::vector<std::string>& texts = corpus()) {
  return mutate_text(texts[rng() % texts.size()], rng);
}

}  // namespace weft::wse::testing
