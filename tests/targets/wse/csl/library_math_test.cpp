// SPDX-License-Identifier: Apache-2.0
// Every function of <math>, generic and by type, against the C library in double, rounded once; and
// the functions of <random>, <layout>, <simprint>, <directions> and <control> not met elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "csl_run.h"
#include "weft/base/dtype.h"
#include "weft/base/text.h"

namespace weft::wse::testing {
namespace {

struct Unary {
  const char* name;
  std::function<double(double)> meaning;
};
struct Binary {
  const char* name;
  std::function<double(double, double)> meaning;
};

const std::vector<Unary>& unary() {
  static const std::vector<Unary> rows = {
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"tan", [](double x) { return std::tan(x); }},
      {"asin", [](double x) { return std::asin(x); }},
      {"acos", [](double x) { return std::acos(x); }},
      {"atan", [](double x) { return std::atan(x); }},
      {"sinh", [](double x) { return std::sinh(x); }},
      {"cosh", [](double x) { return std::cosh(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"exp", [](double x) { return std::exp(x); }},
      {"exp2", [](double x) { return std::exp2(x); }},
      {"log", [](double x) { return std::log(x); }},
      {"log2", [](double x) { return std::log2(x); }},
      {"log10", [](double x) { return std::log10(x); }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"round", [](double x) { return std::round(x); }},
      {"trunc", [](double x) { return std::trunc(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"inv", [](double x) { return 1 / x; }},
      {"invsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"cbrt", [](double x) { return std::cbrt(x); }},
      {"abs", [](double x) { return std::fabs(x); }},
      {"sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }},
  };
  return rows;
}
const std::vector<Binary>& binary() {
  static const std::vector<Binary> rows = {
      {"pow", [](double x, double y) { return std::pow(x, y); }},
      {"atan2", [](double x, double y) { return std::atan2(x, y); }},
      {"fmod", [](double x, double y) { return std::fmod(x, y); }},
      {"copysign", [](double x, double y) { return std::copysign(x, y); }},
      {"min", [](double x, double y) { return std::fmin(x, y); }},
      {"max", [](double x, double y) { return std::fmax(x, y); }},
  };
  return rows;
}

TEST(Math, EveryFunctionInBothFormats) {
  for (double input : {0.37109375, 0.75, 0.0625}) {
    std::size_t n = 2 * (unary().size() + binary().size());
    std::string globals =
        cat("const math = @import_module(\"<math>\");\nexport var s = @zeros([", n,
            "]f32); export var h = @zeros([", n, "]f16); var x: f32 = ", input,
            "; var y: f32 = -1.5; var p: f16 = ", input, "; var q: f16 = -1.5;\n");
    std::string body;
    std::size_t k = 0;
    for (const Unary& u : unary()) {
      body += cat("s[", k, "] = math.", u.name, "(x); h[", k, "] = math.", u.name, "(p); s[", k + 1,
                  "] = math.", u.name, "_f32(x); h[", k + 1, "] = math.", u.name, "_f16(p);\n");
      k += 2;
    }
    for (const Binary& b : binary()) {
      body += cat("s[", k, "] = math.", b.name, "(x, y); h[", k, "] = math.", b.name, "(p, q); s[",
                  k + 1, "] = math.", b.name, "_f32(x, y); h[", k + 1, "] = math.", b.name,
                  "_f16(p, q);\n");
      k += 2;
    }
    Ran ran(single(as_task(globals, body)));
    auto s = ran.read<float>("s");
    auto h = ran.read<std::uint16_t>("h");
    k = 0;
    auto check = [&](const char* name, double want) {
      for (int form = 0; form < 2; ++form, ++k) {
        EXPECT_EQ(s[k], static_cast<float>(want)) << name << " of " << input;
        EXPECT_EQ(h[k], double_to_half(want)) << name << " of " << input;
      }
    };
    for (const Unary& u : unary()) check(u.name, u.meaning(input));
    for (const Binary& b : binary()) check(b.name, b.meaning(input, -1.5));
  }
}

TEST(Math, IntegersScalesAndTests) {
  Ran ran(single(as_task(
      "const math = @import_module(\"<math>\");\nexport var out = @zeros([17]u32); var i: i32 = "
      "-7; "
      "var j: i16 = 5; var u: u16 = 60000; var f: f32 = 1.5; var h: f16 = 1.5; var zero: f32 = "
      "0.0;\n",
      "out[0] = @bitcast(u32, math.fscale(f, 3)); out[1] = @as(u32, math.fscale_f16(h, -1) * "
      "100.0); "
      "out[2] = @bitcast(u32, math.fscale_f32(f, -2)); out[3] = @as(u32, math.abs_i32(i)); out[4] "
      "= "
      "@bitcast(u32, math.sign_i32(i)); out[5] = @bitcast(u32, math.min_i32(i, 3)); out[6] = "
      "@as(u32, "
      "math.max_i16(j, 9)); out[7] = @as(u32, math.min_u16(u, 7)); out[8] = @as(u32, "
      "math.max_u16(u, "
      "7)); out[9] = @as(u32, math.isNaN(zero / zero)); out[10] = @as(u32, math.isNaN_f32(f)); "
      "out[11] "
      "= @as(u32, math.isInf(f / zero)); out[12] = @as(u32, math.isInf_f32(f)); out[13] = @as(u32, "
      "math.isFinite(f)); out[14] = @as(u32, math.isFinite_f32(f / zero)); out[15] = @as(u32, "
      "math.abs_i16(-j)); out[16] = @as(u32, math.isFinite_f16(h) and !math.isNaN_f16(h) and "
      "!math.isInf_f16(h));")));
  EXPECT_EQ(ran.read<std::uint32_t>("out"),
            (std::vector<std::uint32_t>{0x41400000, 75, 0x3ec00000, 7, 0xffffffff, 0xfffffff9, 9, 7,
                                        60000, 1, 0, 1, 0, 1, 0, 5, 1}));
}

TEST(Library, RandomLayoutAndDirections) {
  Ran ran(single(as_task(
      "const random = @import_module(\"<random>\"); const place = @import_module(\"<layout>\"); "
      "const "
      "dirs = @import_module(\"<directions>\");\nexport var out = @zeros([12]u32); var sum: f32 = "
      "0.0; "
      "var low: f32 = 9.0; var high: f32 = -9.0; var half: f16 = 0.0;\n",
      "random.set_global_prng_seed(77); const a = random.random_u32(); const b = "
      "random.random_u16(); "
      "random.set_global_prng_seed(77); out[0] = @as(u32, a == random.random_u32() and b == "
      "random.random_u16()); for (@range(u16, 400)) |k| { const v = random.random_normal_f32(); "
      "sum += v; "
      "const u = random.random_f32(2.0, 3.0); if (u < low) { low = u; } if (u > high) { high = u; "
      "} half "
      "= random.random_f16(1.0, 2.0); if (half < 1.0 or half >= 2.0) { out[1] += 1; } } if (low >= "
      "2.0 "
      "and high < 3.0 and low < 2.1 and high > 2.9) { out[2] = 1; } if (sum < 80.0 and sum > "
      "-80.0) { "
      "out[3] = 1; } out[4] = @as(u32, place.get_x_coord() + place.get_y_coord()); if (comptime "
      "dirs.rotate_cw(EAST) == SOUTH) { out[5] = 1; } if (comptime dirs.rotate_ccw(EAST) == NORTH) "
      "{ "
      "out[6] = 1; } if (comptime dirs.flip_vertical(NORTH) == SOUTH) { out[7] = 1; } if (comptime "
      "dirs.flip_horizontal(NORTH) == NORTH) { out[8] = 1; } if (comptime dirs.flip(SOUTH) == "
      "NORTH) { "
      "out[9] = 1; } if (comptime dirs.flip_horizontal(WEST) == EAST) { out[10] = 1; } if "
      "(comptime "
      "dirs.flip(RAMP) == RAMP) { out[11] = 1; }")));
  EXPECT_EQ(ran.read<std::uint32_t>("out"),
            (std::vector<std::uint32_t>{1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(Library, EveryPrintAndTime) {
  Ran ran(single(as_task(
      "const print = @import_module(\"<simprint>\"); const quiet = "
      "@import_module(\"<simprint>\", .{ .enable = false }); const time = "
      "@import_module(\"<time>\");\nexport var "
      "out = @zeros([3]u32); var a = @zeros([3]u16); var b = @zeros([3]u16); var u: u16 = 65535; "
      "var w: "
      "u32 = 4000000000; var i: i16 = -5; var j: i32 = -70000; var f: f32 = 1.5; var h: f16 = "
      "-0.25;\n",
      "print.print_string(\"u \"); print.print_u16_decimal(u); print.print_string(\" \"); "
      "print.print_u32_decimal(w); print.print_newline(); print.print_i16_decimal(i); "
      "print.print_char(' '); print.print_i32_decimal(j); print.print_char('\\n'); "
      "print.print_u16_hex(u); print.print_string(\" \"); print.print_u32_hex(w); "
      "print.print_newline(); "
      "print.print_f32(f); print.print_string(\" \"); print.print_f16(h); print.print_newline(); "
      "print.fmt_no_nl(\"{} and {}\", .{ u, f }); print.fmt(\" end {X} {b} {d} {f} "
      "{{x}\", .{ i, @as(u16, 5), w, h }); print.fmt_with_coords(\"{}\", .{ i }); "
      "print.print_u16_binary(6); print.print_newline(); quiet.fmt(\"{}\", .{ i }); "
      "time.enable_tsc(); time.get_timestamp(&a); "
      "time.reset_tsc_counter(); time.get_timestamp(&b); out[0] = @as(u32, b[0] <= a[0] + 60); "
      "time.disable_tsc(); time.get_timestamp(&a); for (@range(u16, 50)) |k| { out[2] += 1; } "
      "time.get_timestamp(&b); out[1] = @as(u32, a[0] == b[0]);")));
  std::vector<std::string> lines;
  for (const LogLine& l : ran.fabric().take_log()) lines.push_back(l.text);
  EXPECT_EQ(lines, (std::vector<std::string>{"u 65535 4000000000", "-5 -70000", "FFFF EE6B2800",
                                             "1.5 -0.25",
                                             "65535 and 1.5 end FFFB 0000000000000101 4000000000 "
                                             "-0.25 {x}",
                                             "PE(0,0): -5", "0000000000000110"}));
  EXPECT_EQ(ran.read<std::uint32_t>("out"), (std::vector<std::uint32_t>{1, 1, 50}));
}

}  // namespace
}  // namespace weft::wse::testing
