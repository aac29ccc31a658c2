// SPDX-License-Identifier: Apache-2.0
// Library modules that the reference names: complex numbers, arenas, tile configuration, tallies,
// messages, transforms, filters.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include "csl_run.h"
#include "expect.h"
#include "weft/base/dtype.h"
#include "weft/base/text.h"
#include "weft/targets/wse/sdk_runtime.h"

namespace weft::wse::testing {
namespace {

TEST(Library, Complex) {
  auto o = single(as_task(
      "const z = @import_module(\"<complex>\");\nexport var out = @zeros([8]f32); var x: f32 = "
      "2.0; var h: f16 = 3.0;\n",
      "const a = z.get_complex_64(x, 3.0); const b = z.get_complex(x + 2.0, 1.0); const s = "
      "z.add_complex(a, b); const d = z.subtract_complex_64(a, b); const p = z.multiply_complex(a, "
      "b); const q = z.multiply_complex_32(z.get_complex_32(h, 1.0), z.get_complex_32(2.0, h)); "
      "out[0] = s.real; out[1] = s.imag; out[2] = d.real; out[3] = d.imag; out[4] = p.real; out[5] "
      "= p.imag; out[6] = @as(f32, q.real); out[7] = @as(f32, q.imag);"));
  Ran ran(o);
  EXPECT_EQ(ran.read<float>("out"), (std::vector<float>{6, 4, -2, 2, 5, 14, 3, 11}));
}

TEST(Library, DsdOpsByType) {
  auto o = single(as_task(
      "const ops = @import_module(\"<dsd_ops>\");\nvar a = [3]f32 { 1.0, -2.0, 3.0 }; var b = "
      "[3]f32 { 10.0, 20.0, 30.0 }; export var out = @zeros([7, 3]f32); var h = [3]f16 { 1.0, 2.0, "
      "-4.0 }; export var hs = @zeros([2, 3]f16); var w = [3]u16 { 1, 2, 65535 }; export var ws = "
      "@zeros([2, 3]u16); export var ls = @zeros([3]u32); export var cs = @zeros([3]f32); "
      "export var ci = @zeros([3]i16); var l = [3]u32 { 7, 8, 9 };\nconst da = "
      "@get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 3 }); const db = @get_dsd(mem1d_dsd, "
      ".{ .base_address = &b, .extent = 3 }); const dh = @get_dsd(mem1d_dsd, .{ .base_address = "
      "&h, .extent = 3 }); const dw = @get_dsd(mem1d_dsd, .{ .base_address = &w, .extent = 3 }); "
      "const dl = @get_dsd(mem1d_dsd, .{ .base_address = &l, .extent = 3 });\n",
      "const o0 = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{3} -> out[0, i] }); ops.mov(f32, o0, "
      "da, .{}); ops.add(f32, f32, @increment_dsd_offset(o0, 3, f32), da, db, .{}); ops.sub(f32, "
      "@increment_dsd_offset(o0, 6, f32), da, db, .{}); ops.mul(f32, @increment_dsd_offset(o0, 9, "
      "f32), da, db, .{}); ops.fmac(f32, f32, @increment_dsd_offset(o0, 12, f32), db, da, 2.0, "
      ".{}); ops.max(f32, @increment_dsd_offset(o0, 15, f32), da, 0.0, .{}); ops.abs(f32, "
      "@increment_dsd_offset(o0, 18, f32), da, .{}); const o1 = @get_dsd(mem1d_dsd, .{ "
      ".tensor_access = |i|{3} -> hs[0, i] }); ops.neg(f16, o1, dh, .{}); ops.mul(f16, "
      "@increment_dsd_offset(o1, 3, f16), dh, dh, .{}); const o2 = @get_dsd(mem1d_dsd, .{ "
      ".tensor_access = |i|{3} -> ws[0, i] }); ops.add(u16, u16, o2, dw, dw, .{}); ops.sub(u16, "
      "@increment_dsd_offset(o2, 3, u16), dw, 1, .{}); const done = ops.mov(u32, "
      "@get_dsd(mem1d_dsd, .{ .base_address = &ls, .extent = 3 }), dl, .{}); @assert(done); "
      "ops.convert(f32, f16, @get_dsd(mem1d_dsd, .{ .base_address = &cs, .extent = 3 }), dh, .{}); "
      "ops.convert(i16, f32, @get_dsd(mem1d_dsd, .{ .base_address = &ci, .extent = 3 }), da, "
      ".{});"));
  Ran ran(o);
  EXPECT_EQ(ran.read<float>("out"),
            (std::vector<float>{1,  -2, 3,  11, 18, 33, -9, -22, -27, 10, -40,
                                90, 12, 16, 36, 1,  0,  3,  1,   2,   3}));
  EXPECT_EQ(ran.read<std::uint16_t>("hs"),
            (std::vector<std::uint16_t>{0xbc00, 0xc000, 0x4400, 0x3c00, 0x4400, 0x4c00}));
  EXPECT_EQ(ran.read<std::uint16_t>("ws"), (std::vector<std::uint16_t>{2, 4, 65534, 0, 1, 65534}));
  EXPECT_EQ(ran.read<std::uint32_t>("ls"), (Words{7, 8, 9}));
  EXPECT_EQ(ran.read<float>("cs"), (std::vector<float>{1, 2, -4}));
  EXPECT_EQ(ran.read<std::int16_t>("ci"), (std::vector<std::int16_t>{1, -2, 3}));
  expect_error(single(as_task("const ops = @import_module(\"<dsd_ops>\"); var l = [3]u32 { 7, 8, 9 "
                              "}; const dl = @get_dsd(mem1d_dsd, .{ .base_address = &l, .extent = "
                              "3 });\n",
                              "ops.add(u32, u32, dl, dl, dl, .{});")),
               "wse.csl.comptime.assert", "no such operation");
}

TEST(Library, MallocIsAnArena) {
  auto o = single(as_task(
      "const heap = @import_module(\"<malloc>\", .{ .buffer_num_words = 40 });\nexport var out = "
      "@zeros([10]u32);\n",
      "const h = heap.malloc_u16(3); const a = heap.malloc_u32(5); const b = heap.malloc(f32, 4); "
      "for (@range(u16, 5)) |k| { a[k] = 100 + @as(u32, k); } for (@range(u16, 4)) |k| { b[k] = "
      "0.5; } h[2] = 7; out[0] = a[4]; out[1] = @as(u32, b[3] * 4.0); out[2] = @as(u32, h[2]); "
      "out[3] = @as(u32, heap.has_enough_words(18)); out[4] = @as(u32, heap.has_enough_words(19)); "
      "out[5] = @as(u32, heap.has_enough_space(f32, 9)); out[6] = @as(u32, "
      "heap.has_enough_double_words(10)); out[7] = @as(u32, (@bitcast(u16, b) - @bitcast(u16, a)) "
      "/ 2); heap.free(); out[8] = @as(u32, heap.has_enough_words(40)); out[9] = @as(u32, "
      "@bitcast(u16, heap.malloc_i16(1)) == @bitcast(u16, h));"));
  // 3 words, one left out so that 32-bit numbers begin at even ones, 10 and 8 words: 18 are left.
  EXPECT_EQ(run_words(o), (Words{104, 2, 7, 1, 0, 1, 0, 10, 1, 1}));
  try {
    run_words(
        single(as_task("const heap = @import_module(\"<malloc>\", .{ .buffer_num_words = 4, "
                       ".asserts_enabled = true });\n",
                       "const a = heap.malloc_f32(3);")));
    FAIL() << "more was given than there is";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("assert"), std::string::npos) << e.what();
  }
}

// Names and forms of the documentation that no other test calls.
TEST(Library, TileConfigAsDocumented) {
  const char* globals = R"(
const tc = @import_module("<tile_config>"); const cc = tc.color_config; const sw = tc.switch_config;
export var out = @zeros([20]u32); const red = @get_color(2); var blue: color = @get_color(3);
const a = tc.addresses;
fn route(c: u16) u32 { return @as(u32, @get_config(a.ROUTES + c)); }
fn switched(c: u16) u32 { return @as(u32, @get_config(a.SWITCHES + c)); }
comptime {
  @set_local_color_config(red, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } }, .switches = .{ .pos1 = .{ .rx = EAST } } });
  @set_local_color_config(@get_color(3), .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
  tc.task_priority.set_task_priority(@get_local_task_id(9));
  tc.task_priority.clear_task_priority(@get_local_task_id(9));
  tc.main_thread_priority.update_main_thread_priority(tc.main_thread_priority.level.MEDIUM_HIGH);
}
)";
  const char* body = R"(
cc.set_io_direction(red, cc.fabric_io.TX_EAST); out[0] = route(2);
cc.toggle_io_direction(blue, cc.fabric_io.RX_WEST); cc.toggle_io_direction(blue, cc.fabric_io.RX_SOUTH); out[1] = route(3);
cc.clear_io_direction(cc.get_color_config_addr(red), cc.fabric_io.TX_RAMP); out[2] = route(2);
cc.reset_routes(blue, .{ .tx = [2]direction{ NORTH, SOUTH }, .rx = RAMP }); out[3] = route(3);
sw.set_current_switch_position(red, 1); out[4] = switched(2); out[5] = route(2);
sw.clear_current_position(sw.get_switch_config_addr(red, sw.switch_status)); out[6] = switched(2);
sw.set_ring_mode(red, sw.ring_mode.RING_MODE); sw.set_pop_mode(red, sw.pop_mode.POP_ON_ADVANCE); out[7] = switched(2);
sw.set_switch_pos(sw.switch_pos.POS2, red, NORTH, sw.switch_select.INPUT); sw.set_current_switch_position(red, 2); out[8] = route(2);
const none = tc.teardown.get_pending(); out[9] = @as(u32, tc.teardown.is_pending(none, red)); out[10] = @as(u32, tc.teardown.is_pending(0x8, @get_color(3)));
out[11] = @as(u32, tc.input_queue_status.all_empty(tc.input_queue_status.get())); out[12] = @as(u32, tc.output_queue_status.none_full(tc.output_queue_status.get()));
out[13] = @as(u32, tc.output_queue_status.is_empty(tc.output_queue_status.get(), @get_output_queue(3))); out[14] = @as(u32, tc.input_queue_status.get_raw());
out[15] = @as(u32, tc.get_fabric_coord(tc.fabric_coord.X)); out[16] = @as(u32, tc.word_size); const wide: tc.double_reg_type = 70000; out[17] = wide;
out[18] = @as(u32, @strlen(tc.target_name));
)";
  EXPECT_EQ(run_words(single(as_task(globals, body))), (Words{2 | 1 << 5 | 1 << 9,
                                                              8 | 1 << 9,
                                                              2 | 1 << 5,
                                                              16 | 1 << 7 | 1 << 8,
                                                              1,
                                                              1 | 1 << 5,
                                                              0,
                                                              4 | 2 << 3,
                                                              4 | 1 << 5,
                                                              0,
                                                              1,
                                                              1,
                                                              1,
                                                              1,
                                                              0xff,
                                                              0,
                                                              2,
                                                              70000,
                                                              4,
                                                              0}));
  const std::string head = "const tc = @import_module(\"<tile_config>\");\n";
  expect_error(
      single(as_task(head, "tc.exceptions.set_exception_mask(tc.exceptions.FP_DIV_BY_0);")),
      "wse.csl.library.error", "does not stop at exceptions");
  expect_error(
      single(as_task(head, "tc.filters.set_state(1, tc.filters.counter_filter_state.DROP);")),
      "wse.csl.library.error", "counters of half-wavelets are not there");
  expect_error(single(as_task(head,
                              "tc.switch_config.set_rxtx_switch_pos1(@get_color(1), EAST, "
                              "WEST);")),
               "wse.csl.comptime.assert", "WSE-3 only");
}

TEST(Library, MathOfBits) {
  const char* globals = R"(
const m = @import_module("<math>"); const r = @import_module("<random>"); const t = @import_module("<timer>", .{ .timerCount = 2 });
const time = @import_module("<time>"); const d = @import_module("<directions>");
export var out = @zeros([20]u32); var x: f32 = -6.5; var h: f16 = 0.375; var tiny: f32 = 1.0e-40; var loud: u32 = 0x7f800001;
)";
  const char* body = R"(
out[0] = @bitcast(u32, m.POSITIVE_INF(f32)); out[1] = @as(u32, @bitcast(u16, m.NEGATIVE_INF_f16)); out[2] = @as(u32, m.isNaN(m.NaN(f16)));
out[3] = @as(u32, m.signbit(x)); out[4] = @as(u32, m.signbit_f16(h)); out[5] = @as(u32, m.sig(x) > 0.0015 and m.sig(x) < 0.0016); out[6] = @as(u32, m.sig_f16(h) > 0.59 and m.sig_f16(h) < 0.595);
out[7] = @as(u32, m.isSignaling(@bitcast(f32, loud))); out[8] = @as(u32, m.isSignaling(m.NaN_f32)); out[9] = @as(u32, m.sig(tiny) == 0.5 and m.sig(m.NEGATIVE_INF(f32)) == 0.0 and m.sig(m.POSITIVE_INF(f32)) == 1.0);
out[10] = @as(u32, r.random_pow_u32(4) < 16 and r.random_pow_u32(0) == 0);
time.enable_tsc(); t.start(1); for (@range(u16, 100)) |k| { out[11] += 1; } t.stop(1); var e = @zeros([3]u16); t.elapsed(1, &e);
out[12] = @as(u32, e[0] > 100 and e[0] < 2000 and e[1] == 0 and e[2] == 0);
if (d.rotate_clockwise(NORTH) == EAST and d.rotate_counterclockwise(NORTH) == WEST) out[13] = 1;
out[14] = @as(u32, @strlen(@strcat())); out[15] = @as(u32, @strlen(@strcat(@get_string_from_byte('A'), @get_string_from_byte(10))));
)";
  EXPECT_EQ(run_words(single(as_task(globals, body))),
            (Words{0x7f800000, 0xfc00, 1, 1, 0, 1, 1, 1, 0, 1, 1, 100, 1, 1, 0, 2, 0, 0, 0, 0}));
  expect_error(single("const s = @get_string_from_byte(256); comptime { @comptime_print(s); }"),
               "wse.csl.comptime.byte", "256 is no byte");
  expect_error(single(as_task("const time = @import_module(\"<time>\"); var w = @zeros([3]u16);\n",
                              "time.get_perf_cntr(&w, 0);")),
               "wse.csl.library.error", "no performance counters");
}

TEST(Library, TallyEndsAtTheCorner) {
  for (auto [w, h] : {std::pair{1, 1}, std::pair{4, 3}, std::pair{5, 2}, std::pair{1, 4}}) {
    csl::CompileOptions o;
    o.root = "layout.csl";
    o.read_disk = false;
    o.params = {{"w", w}, {"h", h}, {"total", w * h * 7}};
    o.files["layout.csl"] = R"(
param w: u16;
param h: u16;
param total: u32;
const done = @get_color(20);
const tally = @import_module("<kernels/tally/layout>", .{ .kernel_width = w, .kernel_height = h,
  .phase2_tally = total, .colors = [3]color { @get_color(5), @get_color(6), @get_color(7) }, .output_color = done });
layout {
  @set_rectangle(w, h);
  for (@range(u16, w)) |x| {
    for (@range(u16, h)) |y| {
      @set_tile_code(x, y, "pe.csl", .{ .tally_params = tally.get_params(x, y) });
      @set_color_config(x, y, done, .{ .routes = .{ .rx = .{RAMP}, .tx = .{RAMP} } });
    }
  }
}
)";
    o.files["pe.csl"] = R"(
param tally_params: comptime_struct;
export var out = @zeros([3]u32);
fn over() void { out[0] = tally.local_tally; out[2] = tally.local_tally; }
const tally = @import_module("<kernels/tally/pe>", @concat_structs(tally_params, .{ .output_queues = [1]u16{2}, .callback = over }));
const place = @import_module("<layout>");
var rounds: u16 = 0;
task main() void {
  if (rounds == 0) tally.signal_completion();
  tally.bump_tally(if (rounds == 2) 5 else 1);
  rounds += 1;
  if (rounds < 3) @activate(@get_local_task_id(9));
  out[2] = tally.local_tally;
}
task result(sum: u32) void { out[1] = sum; }
comptime {
  @bind_local_task(main, @get_local_task_id(9));
  @bind_data_task(result, @get_data_task_id(@get_color(20)));
  @activate(@get_local_task_id(9));
}
)";
    // With a callback nothing is sent; the corner's own count is that of all.
    auto all = static_cast<std::uint32_t>(w * h * 7);
    EXPECT_EQ(run_words(o, w - 1, 0), (Words{all, 0, all})) << w << "x" << h;
    if (w > 1) {
      EXPECT_EQ(run_words(o, 0, 0), (Words{0, 0, 7}));
    }
    // Without one the sum is sent; parameters as one nested struct are the same.
    std::string& pe = o.files["pe.csl"];
    const std::string joined =
        "@concat_structs(tally_params, .{ .output_queues = [1]u16{2}, .callback = over })";
    pe.replace(pe.find(joined), joined.size(),
               ".{ .parameters = tally_params, .output_queues = [1]u16{2} }");
    EXPECT_EQ(run_words(o, w - 1, 0)[1], all) << w << "x" << h;
  }
}

TEST(Library, MessagesReachAnyPe) {
  // Everyone sends to the PE opposite; the first PE also gets a word from each.
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.read_disk = false;
  o.arch = Arch::wse3;
  o.files["layout.csl"] =
      "layout { @set_rectangle(4, 3); for (@range(u16, 4)) |x| { for (@range(u16, 3)) |y| { "
      "@set_tile_code(x, y, \"pe.csl\"); } } }";
  o.files["pe.csl"] = R"(
const msg = @import_module("<message_passing>", .{ .input_queue = 2, .output_queue = 3, .enable_asserts = true });
const place = @import_module("<layout>");
export var out = @zeros([5]u32);
export var got = @zeros([3]u16);
export var sum = @zeros([12]u32);
var mine = @zeros([5]u32);
var short = @zeros([3]u16);
var word = @zeros([1]u32);
const sent = @get_local_task_id(10);
const read = @get_local_task_id(11);
var n: u16 = 0;
task main() void {
  msg.init();
  const x = place.get_x_coord();
  const y = place.get_y_coord();
  for (@range(u16, 5)) |k| { mine[k] = @as(u32, 100 * x + 10 * y + k); }
  for (@range(u16, 3)) |k| { short[k] = 7 * x + y + k; }
  msg.send_message(3 - x, 2 - y, &mine, 5, .{ .activate = sent });
  msg.recv_message(&out, 5, .{ .activate = read });
}
var step: u16 = 0;
task on_sent() void {
  step += 1;
  if (step == 1) { msg.send_message(3 - place.get_x_coord(), 2 - place.get_y_coord(), &short, 3, .{ .activate = sent }); }
}
task on_read() void {
  n += 1;
  if (n == 1) { msg.recv_message(&got, 3, .{ .activate = read }); }
  out[4] += @as(u32, n) * 1000;
}
comptime {
  @bind_local_task(main, @get_local_task_id(9));
  @bind_local_task(on_sent, sent);
  @bind_local_task(on_read, read);
  @activate(@get_local_task_id(9));
}
)";
  for (int threads : {1, 3}) {
    for (auto [x, y] : {std::pair{0, 0}, std::pair{3, 1}, std::pair{2, 2}}) {
      FabricOptions options;
      options.threads = threads;
      Ran ran(o, x, y, options);
      auto sx = static_cast<std::uint32_t>(3 - x), sy = static_cast<std::uint32_t>(2 - y);
      Words want;
      for (std::uint32_t k = 0; k < 5; ++k) want.push_back(100 * sx + 10 * sy + k);
      want[4] += 3000;  // two messages have been read
      EXPECT_EQ(ran.read<std::uint32_t>("out"), want) << x << " " << y << " " << threads;
      std::vector<std::uint16_t> shorts;
      for (std::uint32_t k = 0; k < 3; ++k)
        shorts.push_back(static_cast<std::uint16_t>(7 * sx + sy + k));
      EXPECT_EQ(ran.read<std::uint16_t>("got"), shorts);
    }
  }
  auto wrong = o;
  std::string& pe = wrong.files["pe.csl"];
  pe.replace(pe.find("3 - x, 2 - y"), 12, "9 - x, 2 - y");
  pe.replace(pe.find(", .enable_asserts = true"), 24, "");
  expect_fault(wrong, "wse.message.destination", "a message goes to PE (");
  expect_error(single(as_task("const msg = @import_module(\"<message_passing>\", .{ .input_queue = "
                              "2, .output_queue = 3 });\n",
                              "msg.init();")),
               "wse.csl.comptime.assert", "WSE-3 only");
}

// The sum itself, in double.
using Complex = std::complex<double>;
std::vector<Complex> dft3(const std::vector<Complex>& in, int n, bool inverse) {
  std::vector<Complex> a = in, b(in.size());
  for (int axis = 0; axis < 3; ++axis) {
    int stride = axis == 0 ? n * n : axis == 1 ? n : 1;
    for (int at = 0; at < n * n * n; ++at) {
      int k = at / stride % n, base = at - k * stride;
      Complex sum = 0;
      for (int j = 0; j < n; ++j)
        sum += a[static_cast<std::size_t>(base + j * stride)] *
               std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * j * k / n);
      b[static_cast<std::size_t>(at)] = sum;
    }
    std::swap(a, b);
  }
  return a;
}

TEST(Library, FftInThreeDimensions) {
  struct Run {
    int w, n;
    bool half, inverse;
    std::int16_t norm;
    double tolerance;
  };
  for (Run r : {Run{2, 8, false, false, 0, 1e-4}, Run{4, 8, false, true, 0, 1e-6},
                Run{2, 4, false, false, 1, 1e-5}, Run{4, 8, true, false, 1, 0.05}}) {
    csl::CompileOptions o;
    o.root = "layout.csl";
    o.read_disk = false;
    o.arch = Arch::wse3;
    o.memcpy = true;
    o.fabric_width = r.w + 7;
    o.fabric_height = r.w + 2;
    o.offset_x = 4;
    o.offset_y = 1;
    o.files["layout.csl"] =
        cat("const fft = @import_module(\"<kernels/fft/fft3d_layout>\", .{ .width = ", r.w,
            " }); layout { fft.FFT_kernel(", r.w, ", ", r.n, ", ", r.half ? "f16" : "f32", "); }");
    SdkRuntime rt(csl::compile(o));
    rt.load();
    rt.run();
    std::mt19937 rng(4);
    auto points = static_cast<std::size_t>(r.n * r.n * r.n);
    std::vector<Complex> in(points);
    for (Complex& v : in) {
      std::uniform_real_distribution<double> d(-1, 1);
      v = {half_to_float(double_to_half(d(rng))), half_to_float(double_to_half(d(rng)))};
    }
    int block = r.n / r.w;
    std::int64_t each = 2 * r.n * block * block;
    std::vector<std::uint32_t> words;
    auto type = r.half ? MemcpyDataType::MEMCPY_16BIT : MemcpyDataType::MEMCPY_32BIT;
    auto put = [&](double v) {
      if (r.half) words.push_back(double_to_half(v));
      else words.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(v)));
    };
    auto at = [&](int x, int y, int z) {
      return static_cast<std::size_t>((x * r.n + y) * r.n + z);
    };
    for (int py = 0; py < r.w; ++py) {
      for (int px = 0; px < r.w; ++px) {
        for (int z = 0; z < r.n; ++z) {
          for (int x = 0; x < block; ++x) {
            for (int y = 0; y < block; ++y) {
              Complex v = in[at(px * block + x, py * block + y, z)];
              put(v.real());
              put(v.imag());
            }
          }
        }
      }
    }
    Region all{0, 0, r.w, r.w, each};
    auto count = static_cast<std::int64_t>(words.size());
    rt.memcpy_h2d(rt.get_id("X"), words.data(), count, all, false, type, MemcpyOrder::ROW_MAJOR,
                  false);
    auto bits = [](int v) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(v)); };
    rt.launch(rt.get_id("csfftExecC2C"), {bits(r.norm), bits(r.inverse)}, {Ty::i16, Ty::i16},
              false);
    rt.memcpy_d2h(words.data(), count, rt.get_id("X"), all, false, type, MemcpyOrder::ROW_MAJOR,
                  false);
    std::uint32_t time[3];
    rt.memcpy_d2h(time, 3, rt.get_id("fft_time"), {r.w - 1, 0, 1, 1, 3}, false,
                  MemcpyDataType::MEMCPY_16BIT, MemcpyOrder::ROW_MAJOR, false);
    const std::int64_t cycles = time[0] | std::int64_t{time[1]} << 16 | std::int64_t{time[2]} << 32;
    EXPECT_GT(cycles, 1000);
    EXPECT_LT(cycles, rt.fabric().now());
    rt.stop();
    std::vector<Complex> want = dft3(in, r.n, r.inverse);
    double scale = r.norm == 1 ? 1 / std::sqrt(static_cast<double>(points))
                   : r.inverse ? 1 / static_cast<double>(points)
                               : 1;
    double worst = 0;
    std::size_t k = 0;
    auto take = [&] {
      std::uint32_t w = words[k++];
      return r.half ? static_cast<double>(half_to_float(static_cast<std::uint16_t>(w)))
                    : static_cast<double>(std::bit_cast<float>(w));
    };
    for (int py = 0; py < r.w; ++py) {
      for (int px = 0; px < r.w; ++px) {
        for (int z = 0; z < r.n; ++z) {
          for (int x = 0; x < block; ++x) {
            for (int y = 0; y < block; ++y) {
              double re = take(), im = take();
              Complex v = want[at(px * block + x, py * block + y, z)] * scale;
              worst = std::max(worst, std::abs(v - Complex(re, im)));
            }
          }
        }
      }
    }
    EXPECT_LT(worst, r.tolerance) << r.w << " " << r.n;
  }
}

TEST(Library, DfiltDropsUpToAControlWavelet) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.read_disk = false;
  o.files["layout.csl"] =
      "const c = @get_color(2); layout { @set_rectangle(2, 1); @set_tile_code(0, 0, \"a.csl\", .{ "
      ".c = c }); @set_tile_code(1, 0, \"b.csl\", .{ .c = c }); @set_color_config(0, 0, c, .{ "
      ".routes = .{ .rx = .{RAMP}, .tx = .{EAST} } }); @set_color_config(1, 0, c, .{ .routes = .{ "
      ".rx = .{WEST}, .tx = .{RAMP} } }); }";
  o.files["a.csl"] = R"(
param c: color;
const ctrl = @import_module("<control>");
const q = @get_output_queue(2);
var data = [5]u32 { 1, 2, 3, 4, 5 };
const from = @get_dsd(mem1d_dsd, .{ .base_address = &data, .extent = 5 });
task main() void {
  const to = @get_dsd(fabout_dsd, .{ .extent = 5, .fabric_color = c, .output_queue = q });
  @mov32(to, from);
  @mov32(@get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = q, .control = true }),
         ctrl.encode_single_payload(ctrl.opcode.NOP, false, {}, 0));
  @mov32(@set_dsd_length(to, 2), @increment_dsd_offset(from, 2, u32));
}
comptime { @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9)); }
)";
  o.files["b.csl"] = R"(
param c: color;
export var out = @zeros([2]u32);
const in = @get_dsd(fabin_dsd, .{ .extent = 2, .fabric_color = c, .input_queue = @get_input_queue(2) });
task main() void { @dfilt(in, .{ .async = true, .activate = then }); }
task then() void { @mov32(@get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 2 }), in, .{ .async = true }); }
comptime {
  @bind_local_task(main, @get_local_task_id(9));
  @bind_local_task(then, @get_local_task_id(10));
  @activate(@get_local_task_id(9));
}
)";
  EXPECT_EQ(run_words(o, 1, 0), (Words{3, 4}));
  expect_error(single(as_task("var a = @zeros([2]u32); const d = @get_dsd(mem1d_dsd, .{ "
                              ".base_address = &a, .extent = 2 });\n",
                              "@dfilt(d);")),
               "wse.csl.dsd.operand", "@dfilt takes a fabin_dsd");
}

}  // namespace
}  // namespace weft::wse::testing
