// SPDX-License-Identifier: Apache-2.0
// Layouts: tiles, distinct programs, routes, exports, parameters, and programs over several PEs.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <random>

#include "csl_run.h"
#include "weft/base/text.h"
#include "weft/targets/wse/sdk_runtime.h"

namespace weft::wse::testing {
namespace {

csl::CompileOptions layout(const std::string& text, const std::string& pe) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.read_disk = false;
  o.files["layout.csl"] = text;
  o.files["pe.csl"] = pe;
  return o;
}

void expect_error(const csl::CompileOptions& o, const char* code, const char* text) {
  try {
    csl::compile(o);
    FAIL() << "compiled";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

// The first program of the language's own introduction: memcpy, GEMV by columns, launch.
const char* kGemvLayout = R"(
param M: i16;
param N: i16;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 });
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(0), .M = M, .N = N });
  @export_name("A", [*]f32, true);
  @export_name("x", [*]f32, true);
  @export_name("y", [*]f32, false);
  @export_name("gemv", fn(f32)void);
}
)";
const char* kGemvPe = R"(
param memcpy_params: comptime_struct;
param M: i16;
param N: i16;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
var A: [M * N]f32;
var x: [N]f32;
var y: [M]f32;
var column = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{M} -> A[i * N] });
const result = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{M} -> y[i] });
var A_ptr: [*]f32 = &A;
var x_ptr: [*]f32 = &x;
const y_ptr: [*]f32 = &y;
fn gemv(scale: f32) void {
  for (@range(i16, N)) |i| {
    @fmacs(result, result, column, x[i] * scale);
    column = @increment_dsd_offset(column, 1, f32);
  }
  column = @increment_dsd_offset(column, -N, f32);
  sys.unblock_cmd_stream();
}
comptime {
  @export_symbol(A_ptr, "A");
  @export_symbol(x_ptr, "x");
  @export_symbol(y_ptr, "y");
  @export_symbol(gemv);
}
)";

TEST(Layouts, GemvThroughTheHost) {
  for (auto [m, n] : {std::pair{4, 6}, std::pair{7, 3}, std::pair{1, 1}}) {
    auto o = layout(kGemvLayout, kGemvPe);
    o.memcpy = true;
    o.fabric_width = 8;
    o.fabric_height = 3;
    o.offset_x = 4;
    o.offset_y = 1;
    o.params = {{"M", m}, {"N", n}};
    SdkRuntime runtime(csl::compile(o));
    runtime.load();
    runtime.run();
    std::mt19937 rng(5);
    std::vector<float> a(static_cast<std::size_t>(m * n)), x(static_cast<std::size_t>(n)),
        y(static_cast<std::size_t>(m));
    for (float& v : a) v = std::uniform_real_distribution<float>(-1, 1)(rng);
    for (float& v : x) v = std::uniform_real_distribution<float>(-1, 1)(rng);
    auto words = [](std::vector<float>& v) { return reinterpret_cast<std::uint32_t*>(v.data()); };
    auto to = [&](const char* name, std::vector<float>& v) {
      runtime.memcpy_h2d(runtime.get_id(name), words(v), static_cast<std::int64_t>(v.size()),
                         {0, 0, 1, 1, static_cast<std::int64_t>(v.size())}, false,
                         MemcpyDataType::MEMCPY_32BIT, MemcpyOrder::ROW_MAJOR, false);
    };
    to("A", a);
    to("x", x);
    float scale = 0.5f;
    std::uint32_t bits;
    std::memcpy(&bits, &scale, 4);
    for (int k = 0; k < 2; ++k) runtime.launch(runtime.get_id("gemv"), {bits}, {Ty::f32}, false);
    runtime.memcpy_d2h(words(y), m, runtime.get_id("y"), {0, 0, 1, 1, m}, false,
                       MemcpyDataType::MEMCPY_32BIT, MemcpyOrder::ROW_MAJOR, false);
    runtime.stop();
    for (int i = 0; i < m; ++i) {
      double want = 0;
      for (int j = 0; j < n; ++j)
        want += a[static_cast<std::size_t>(i * n + j)] * x[static_cast<std::size_t>(j)];
      EXPECT_NEAR(y[static_cast<std::size_t>(i)], want, 1e-5) << i;
    }
  }
}

TEST(Layouts, ChainAddsItsCoordinates) {
  const char* text = R"(
const c0 = @get_color(0);
const c1 = @get_color(1);
layout {
  @set_rectangle(5, 1);
  for (@range(u16, 5)) |x| {
    @set_tile_code(x, 0, "pe.csl", .{ .east = if (x % 2 == 0) c0 else c1, .west = if (x % 2 == 0) c1 else c0, .first = x == 0, .last = x == 4 });
    const send = .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } };
    const receive = .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } };
    if (x != 4) @set_color_config(x, 0, if (x % 2 == 0) c0 else c1, send);
    if (x != 0) @set_color_config(x, 0, if (x % 2 == 0) c1 else c0, receive);
  }
}
)";
  const char* pe = R"(
param east: color;
param west: color;
param first: bool;
param last: bool;
const place = @import_module("<layout>");
export var sum = @zeros([3]f32);
const oq = @get_output_queue(2);
const iq = @get_input_queue(3);
const mine = @get_dsd(mem1d_dsd, .{ .base_address = &sum, .extent = 3 });
const to = @get_dsd(fabout_dsd, .{ .extent = 3, .fabric_color = east, .output_queue = oq });
const from = @get_dsd(fabin_dsd, .{ .extent = 3, .fabric_color = west, .input_queue = iq });
task start() void {
  for (@range(u16, 3)) |k| { sum[k] = @as(f32, place.get_x_coord() + k); }
  if (first) {
    @fmovs(to, mine, .{ .async = true });
  } else {
    @fadds(mine, mine, from, .{ .async = true, .activate = pass });
  }
}
task pass() void {
  if (!last) @fmovs(to, mine, .{ .async = true });
}
comptime {
  @bind_local_task(start, @get_local_task_id(9));
  @bind_local_task(pass, @get_local_task_id(10));
  @activate(@get_local_task_id(9));
  if (@is_arch("wse3")) {
    if (!last) @initialize_queue(oq, .{ .color = east });
    if (!first) @initialize_queue(iq, .{ .color = west });
  }
}
)";
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    auto o = layout(text, pe);
    o.arch = arch;
    Ran ran(o, 4, 0);
    EXPECT_EQ(ran.read<float>("sum"), (std::vector<float>{10, 15, 20}));
    EXPECT_EQ(ran.layout().programs.size(), 4u);  // first, odd, even, last
  }
}

TEST(Layouts, CollectivesForEveryRoot) {
  const char* text = R"(
param root: u16;
const c2d = @import_module("<collectives_2d/params>");
layout {
  @set_rectangle(5, 3);
  for (@range(u16, 5)) |x| {
    for (@range(u16, 3)) |y| {
      @set_tile_code(x, y, "pe.csl", .{ .root = root, .c = c2d.get_params(x, y, .{
        .x_colors = .{ @get_color(0), @get_color(1) }, .x_entrypoints = .{ @get_local_task_id(10), @get_local_task_id(11) },
        .y_colors = .{ @get_color(4), @get_color(5) }, .y_entrypoints = .{ @get_local_task_id(12), @get_local_task_id(13) } }) });
    }
  }
}
)";
  const char* pe = R"(
param root: u16;
param c: comptime_struct;
const x = @import_module("<collectives_2d/pe>", .{ .dim_params = c.x, .queues = [2]u16{2, 4}, .dest_dsr_ids = [1]u16{1}, .src0_dsr_ids = [1]u16{1}, .src1_dsr_ids = [1]u16{1} });
const y = @import_module("<collectives_2d/pe>", .{ .dim_params = c.y, .queues = [2]u16{3, 5}, .dest_dsr_ids = [1]u16{2}, .src0_dsr_ids = [1]u16{2}, .src1_dsr_ids = [1]u16{2} });
const next = @get_local_task_id(15);
const place = @import_module("<layout>");
export var same = @zeros([4]u32);
export var part = @zeros([2]u32);
export var all = @zeros([10]u32);
export var total = @zeros([2]f32);
export var high = @zeros([2]u32);
var parts = @zeros([10]u32);
var mine = @zeros([2]f32);
var state: u16 = 0;
task advance() void {
  state += 1;
  switch (state) {
    1 => {
      x.init();
      y.init();
      if (x.pe_id == root) { for (@range(u16, 10)) |k| { parts[k] = 100 + @as(u32, k); } for (@range(u16, 4)) |k| { same[k] = 7 + @as(u32, k); } }
      mine[0] = @as(f32, x.pe_id) + 0.5;
      mine[1] = 1.0;
      high[0] = @as(u32, place.get_y_coord()) + 50;
      x.broadcast(root, &same, 4, next);
    },
    2 => x.scatter(root, &parts, &part, 2, next),
    3 => x.gather(root, &part, &all, 2, next),
    4 => x.reduce_fadds(root, &mine, &total, 2, next),
    5 => x.broadcast(root, &same, 4, next),
    6 => y.broadcast(2, &high, 2, next),
    else => { },
  }
}
comptime {
  @bind_local_task(advance, next);
  @activate(next);
}
)";
  for (int root = 0; root < 5; ++root) {
    auto o = layout(text, pe);
    o.params = {{"root", root}};
    for (int x = 0; x < 5; ++x) {
      Ran ran(o, x, 1);
      EXPECT_EQ(ran.read<std::uint32_t>("same"), (std::vector<std::uint32_t>{7, 8, 9, 10}))
          << root << " " << x;
      EXPECT_EQ(ran.read<std::uint32_t>("part"),
                (std::vector<std::uint32_t>{100u + 2 * static_cast<unsigned>(x),
                                            101u + 2 * static_cast<unsigned>(x)}))
          << root << " " << x;
      EXPECT_EQ(ran.read<std::uint32_t>("high")[0], 52u);
      if (x == root) {
        std::vector<std::uint32_t> want;
        for (unsigned k = 0; k < 10; ++k) want.push_back(100 + k);
        EXPECT_EQ(ran.read<std::uint32_t>("all"), want) << root;
        EXPECT_EQ(ran.read<float>("total"), (std::vector<float>{12.5f, 5.0f})) << root;
      }
    }
  }
}

TEST(Layouts, CollectivesOfMoreThanTheBuffersHold) {
  // Parts far longer than all queues on the way; a sum in place at a root in the middle.
  const char* text = R"(
const c2d = @import_module("<collectives_2d/params>");
layout {
  @set_rectangle(4, 1);
  for (@range(u16, 4)) |x| {
    @set_tile_code(x, 0, "pe.csl", .{ .c = c2d.get_params(x, 0, .{
      .x_colors = .{ @get_color(0), @get_color(1) }, .x_entrypoints = .{ @get_local_task_id(10), @get_local_task_id(11) } }) });
  }
}
)";
  const char* pe = R"(
param c: comptime_struct;
const n: u16 = 300;
const x = @import_module("<collectives_2d/pe>", .{ .dim_params = c.x, .queues = [2]u16{2, 4} });
const next = @get_local_task_id(15);
var parts = @zeros([4 * n]u32);
var part = @zeros([n]u32);
var all = @zeros([4 * n]u32);
var sums = @zeros([20]f32);
export var out = @zeros([6]u32);
export var total = @zeros([2]f32);
var state: u16 = 0;
task advance() void {
  state += 1;
  switch (state) {
    1 => {
      x.init();
      for (@range(u16, 4 * n)) |k| { parts[k] = @as(u32, k); }
      for (@range(u16, 20)) |k| { sums[k] = @as(f32, x.pe_id + k); }
      x.scatter(2, &parts, &part, n, next);
    },
    2 => { out[0] = part[0]; out[1] = part[n - 1]; x.gather(1, &part, &all, n, next); },
    3 => { out[2] = all[0]; out[3] = all[4 * n - 1]; x.gather(0, &part, &all, n, next); },
    4 => { out[4] = all[2 * n]; x.reduce_fadds(2, &sums, &sums, 20, next); },
    5 => { out[5] = 1; total[0] = sums[0]; total[1] = sums[19]; },
    else => { },
  }
}
comptime {
  @bind_local_task(advance, next);
  @activate(next);
  if (@is_arch("wse3")) { }
}
)";
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    for (unsigned k = 0; k < 4; ++k) {
      auto o = layout(text, pe);
      o.arch = arch;
      Ran ran(o, static_cast<int>(k), 0);
      auto out = ran.read<std::uint32_t>("out");
      EXPECT_EQ(out[0], 300 * k);
      EXPECT_EQ(out[1], 300 * k + 299);
      if (k == 1) {
        EXPECT_EQ(out[2], 0u);
        EXPECT_EQ(out[3], 1199u);
      }
      if (k == 0) {
        EXPECT_EQ(out[4], 600u);
      }
      EXPECT_EQ(out[5], 1u) << k;
      if (k == 2) {
        EXPECT_EQ(ran.read<float>("total"), (std::vector<float>{6, 82}));
      }
    }
  }
}

TEST(Layouts, RoutesAreKeptOncePerKind) {
  const char* text = R"(
const c = @get_color(3);
layout {
  @set_rectangle(40, 30);
  for (@range(u16, 40)) |x| {
    for (@range(u16, 30)) |y| {
      @set_tile_code(x, y, "pe.csl", .{ .k = if (x < 20) 1 else 2 });
      @set_color_config(x, y, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{EAST, RAMP} }, .teardown = false,
        .switches = .{ .pos1 = .{ .tx = RAMP }, .ring_mode = true, .pop_mode = .{ .always_pop = true } },
        .filter = .{ .kind = .{ .range = true }, .min_idx = 3, .max_idx = 5 } });
    }
  }
}
)";
  Layout l = csl::compile(layout(text, "param k: u16;"));
  EXPECT_EQ(l.programs.size(), 2u);
  EXPECT_EQ(l.route_sets.size(), 2u);
  const Route& r = l.route_sets[l.tiles[0].routes].at(0).route;
  EXPECT_EQ(r.rx, port_bit(kWest));
  EXPECT_EQ(r.tx, port_bit(kEast) | port_bit(kRamp));
  EXPECT_TRUE(r.ring);
  EXPECT_EQ(r.pop, PopMode::always);
  EXPECT_EQ(r.positions[0].tx, port_bit(kRamp));
  EXPECT_EQ(r.filter.kind, Filter::range);
  EXPECT_EQ(r.filter.max_index, 5);
}

TEST(Layouts, WaferOfOneProgramIsOneProgram) {
  const char* text = R"(
param w: u16;
param h: u16;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = w, .height = h });
const c = @get_color(3);
layout {
  @set_rectangle(w, h);
  for (@range(u16, w)) |x| {
    for (@range(u16, h)) |y| {
      @set_tile_code(x, y, "pe.csl", .{ .memcpy_params = memcpy.get_params(x), .n = 4 });
      @set_color_config(x, y, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{EAST} } });
    }
  }
}
)";
  auto o = layout(text,
                  "param memcpy_params: comptime_struct; param n: u16; const sys = "
                  "@import_module(\"<memcpy/memcpy>\", memcpy_params);");
  o.params = {{"w", 250}, {"h", 330}};
  std::clock_t begin = std::clock();
  Layout l = csl::compile(o);
  std::printf("%zu tiles in %.2f s of processor time\n", l.tiles.size(),
              static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  EXPECT_EQ(l.programs.size(), 1u);
  EXPECT_LE(l.route_sets.size(), 2u);
  EXPECT_EQ(l.tiles.size(), 82500u);
}

TEST(Layouts, Refusals) {
  const std::string tile = "@set_tile_code(0, 0, \"pe.csl\");";
  expect_error(layout("layout { " + tile + " }", ""), "wse.csl.layout.rectangle",
               "must come before");
  expect_error(layout("const a = 1;", ""), "wse.csl.layout.none", "has no layout block");
  expect_error(layout("layout { @set_rectangle(2, 1); " + tile + " }", ""),
               "wse.csl.layout.tile_missing", "PE (1, 0) has no code");
  expect_error(layout("layout { @set_rectangle(1, 1); " + tile + tile + " }", ""),
               "wse.csl.layout.tile_twice", "has code already");
  expect_error(layout("layout { @set_rectangle(1, 1); @set_tile_code(1, 0, \"pe.csl\"); }", ""),
               "wse.csl.layout.position", "outside the rectangle");
  expect_error(layout("layout { @set_rectangle(1, 1); " + tile +
                          " @set_color_config(0, 0, @get_color(1), .{}); @set_color_config(0, 0, "
                          "@get_color(1), .{}); }",
                      ""),
               "wse.csl.route.twice", "configured twice");
  expect_error(
      layout("layout { @set_rectangle(1, 1); " + tile +
                 " @export_name(\"a\", [*]f32, true); @export_name(\"a\", [*]f32, true); }",
             ""),
      "wse.csl.export.twice", "exported twice");
  expect_error(layout("layout { @set_rectangle(1, 1); " + tile +
                          " @export_name(\"a\", comptime_int, true); }",
                      ""),
               "wse.csl.export.type", "cannot be exported");
  expect_error(
      layout("layout { @set_rectangle(1, 1); " + tile + " @export_name(\"a\", [*]f32, true); }",
             "var v: [2]i32; var p: [*]i32 = &v; comptime { @export_symbol(p, \"a\"); }"),
      "wse.csl.export.type", "is exported as [*]f32");
  expect_error(
      layout("layout { @set_rectangle(1, 1); " + tile + " @export_name(\"f\", fn(u16)void); }",
             "fn f() void { } comptime { @export_symbol(f); }"),
      "wse.csl.export.type", "has type fn()void");
  auto o = layout("layout { @set_rectangle(3, 3); }", "");
  o.fabric_width = 8;
  o.fabric_height = 3;
  o.offset_x = 4;
  o.offset_y = 1;
  o.memcpy = true;
  expect_error(o, "wse.csl.layout.fabric", "needs a fabric of at least");
  csl::CompileOptions none;
  none.root = "absent.csl";
  none.read_disk = false;
  EXPECT_THROW(csl::compile(none), Error);
}

}  // namespace
}  // namespace weft::wse::testing
