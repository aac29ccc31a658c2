// SPDX-License-Identifier: Apache-2.0
// Cores that go on ahead of the calendar: cycles, memories and counters are those of visits cycle
// by cycle, on any number of host threads.
#include <gtest/gtest.h>

#include "csl_run.h"

namespace weft::wse::testing {
namespace {

// A rectangle whose PEs exchange vectors with their neighbours, several streams at a time, add them
// up, note the time of each round and work for a while that depends on their place.
const char* const kLayout = R"(
param w: u16; param h: u16; param n: u16; param rounds: u16;
const east = [2]color{ @get_color(0), @get_color(1) };
const south = [2]color{ @get_color(2), @get_color(3) };
layout {
  @set_rectangle(w, h);
  for (@range(u16, w)) |x| { for (@range(u16, h)) |y| {
    @set_tile_code(x, y, "pe.csl", .{ .n = n, .rounds = rounds, .pause = (x * 7 + y * 5) % 11,
      .e = x < w - 1, .w = x > 0, .s = y < h - 1, .n_ = y > 0,
      .to_e = east[x % 2], .from_w = east[1 - x % 2], .to_s = south[y % 2], .from_n = south[1 - y % 2] });
    if (x < w - 1) @set_color_config(x, y, east[x % 2], .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });
    if (x > 0) @set_color_config(x, y, east[1 - x % 2], .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });
    if (y < h - 1) @set_color_config(x, y, south[y % 2], .{ .routes = .{ .rx = .{RAMP}, .tx = .{SOUTH} } });
    if (y > 0) @set_color_config(x, y, south[1 - y % 2], .{ .routes = .{ .rx = .{NORTH}, .tx = .{RAMP} } });
  } }
}
)";
const char* const kPe = R"(
param n: u16; param rounds: u16; param pause: u16;
param e: bool; param w: bool; param s: bool; param n_: bool;
param to_e: color; param from_w: color; param to_s: color; param from_n: color;
const time = @import_module("<time>");
const start_id = @get_local_task_id(10);
const ends = [4]local_task_id{ @get_local_task_id(11), @get_local_task_id(12), @get_local_task_id(13), @get_local_task_id(14) };
export var v = @zeros([n]u32);
export var a = @zeros([n]u32);
export var b = @zeros([n]u32);
export var sums = @zeros([rounds]u32);
export var stamps = @zeros([rounds * 3]u16);
var open: u16 = 0;
var round: u16 = 0;
const v_dsd = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = n });
const a_dsd = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = n });
const b_dsd = @get_dsd(mem1d_dsd, .{ .base_address = &b, .extent = n });
const oq_e = @get_output_queue(2);
const oq_s = @get_output_queue(3);
const iq_w = @get_input_queue(4);
const iq_n = @get_input_queue(5);
const out_e = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_e, .output_queue = oq_e });
const out_s = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_s, .output_queue = oq_s });
const in_w = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_w, .input_queue = iq_w });
const in_n = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_n, .input_queue = iq_n });
task start() void {
  for (@range(u16, n)) |i| { v[i] = v[i] * 3 + a[i] + b[i] + @as(u32, i + pause); }
  open = @as(u16, e) + @as(u16, s) + @as(u16, w) + @as(u16, n_);
  if (w) @mov32(a_dsd, in_w, .{ .async = true, .activate = ends[0] });
  if (e) @mov32(out_e, v_dsd, .{ .async = true, .activate = ends[1] });
  for (@range(u16, pause)) |i| { sums[round] += @as(u32, i); }
  if (n_) @mov32(b_dsd, in_n, .{ .async = true, .activate = ends[2] });
  if (s) @mov32(out_s, v_dsd, .{ .async = true, .activate = ends[3] });
}
fn end() void {
  open -= 1;
  if (open > 0) return;
  sums[round] += a[0] + b[n - 1];
  time.get_timestamp(@ptrcast(*[3]u16, &stamps[round * 3]));
  round += 1;
  if (round < rounds) @activate(start_id);
}
task end_w() void { end(); }
task end_e() void { end(); }
task end_n() void { end(); }
task end_s() void { end(); }
comptime {
  @bind_local_task(start, start_id);
  @bind_local_task(end_w, ends[0]);
  @bind_local_task(end_e, ends[1]);
  @bind_local_task(end_n, ends[2]);
  @bind_local_task(end_s, ends[3]);
  @activate(start_id);
  if (@is_arch("wse3")) {
    if (e) @initialize_queue(oq_e, .{ .color = to_e });
    if (s) @initialize_queue(oq_s, .{ .color = to_s });
    if (w) @initialize_queue(iq_w, .{ .color = from_w });
    if (n_) @initialize_queue(iq_n, .{ .color = from_n });
  }
}
)";

// Cells that tell their neighbours on both sides, row by row and then column by column: nearly all
// that a PE does waits for one wavelet or the end of another operation, and the main thread waits
// for microthreads that are taken.
const char* const kCellsLayout = R"(
param w: u16; param h: u16; param n: u16; param rounds: u16;
const east = [2]color{ @get_color(0), @get_color(1) };
const west = [2]color{ @get_color(2), @get_color(3) };
const south = [2]color{ @get_color(4), @get_color(5) };
const north = [2]color{ @get_color(6), @get_color(7) };
layout {
  @set_rectangle(w, h);
  for (@range(u16, w)) |x| { for (@range(u16, h)) |y| {
    const i = x % 2; const j = y % 2;
    @set_tile_code(x, y, "pe.csl", .{ .n = n, .rounds = rounds, .place = x * 3 + y,
      .e = x < w - 1, .w = x > 0, .s = y < h - 1, .n_ = y > 0,
      .to_e = east[i], .from_w = east[1 - i], .to_w = west[i], .from_e = west[1 - i],
      .to_s = south[j], .from_n = south[1 - j], .to_n = north[j], .from_s = north[1 - j] });
    if (x < w - 1) {
      @set_color_config(x, y, east[i], .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });
      @set_color_config(x, y, west[1 - i], .{ .routes = .{ .rx = .{EAST}, .tx = .{RAMP} } });
    }
    if (x > 0) {
      @set_color_config(x, y, west[i], .{ .routes = .{ .rx = .{RAMP}, .tx = .{WEST} } });
      @set_color_config(x, y, east[1 - i], .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });
    }
    if (y < h - 1) {
      @set_color_config(x, y, south[j], .{ .routes = .{ .rx = .{RAMP}, .tx = .{SOUTH} } });
      @set_color_config(x, y, north[1 - j], .{ .routes = .{ .rx = .{SOUTH}, .tx = .{RAMP} } });
    }
    if (y > 0) {
      @set_color_config(x, y, north[j], .{ .routes = .{ .rx = .{RAMP}, .tx = .{NORTH} } });
      @set_color_config(x, y, south[1 - j], .{ .routes = .{ .rx = .{NORTH}, .tx = .{RAMP} } });
    }
  } }
}
)";
const char* const kCellsPe = R"(
param n: u16; param rounds: u16; param place: u16;
param e: bool; param w: bool; param s: bool; param n_: bool;
param to_e: color; param from_w: color; param to_w: color; param from_e: color;
param to_s: color; param from_n: color; param to_n: color; param from_s: color;
const time = @import_module("<time>");
const rows_id = @get_local_task_id(10);
const columns_id = @get_local_task_id(11);
const ends = [4]local_task_id{ @get_local_task_id(12), @get_local_task_id(13), @get_local_task_id(14), @get_local_task_id(15) };
export var v = @zeros([n]u32);
export var from = @zeros([4 * n]u32);
export var stamps = @zeros([rounds * 3]u16);
var open: u16 = 0;
var round: u16 = 0;
const v_dsd = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = n });
const side_e = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> from[i] });
const side_w = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> from[i + n] });
const side_s = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> from[i + 2 * n] });
const side_n = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> from[i + 3 * n] });
const oq = [4]output_queue{ @get_output_queue(2), @get_output_queue(3), @get_output_queue(4), @get_output_queue(5) };
const iq = [4]input_queue{ @get_input_queue(4), @get_input_queue(5), @get_input_queue(6), @get_input_queue(7) };
const out_e = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_e, .output_queue = oq[0] });
const out_w = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_w, .output_queue = oq[1] });
const out_s = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_s, .output_queue = oq[2] });
const out_n = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to_n, .output_queue = oq[3] });
const in_e = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_e, .input_queue = iq[0] });
const in_w = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_w, .input_queue = iq[1] });
const in_s = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_s, .input_queue = iq[2] });
const in_n = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from_n, .input_queue = iq[3] });
task rows() void {
  open = @as(u16, e) + @as(u16, w);
  if (e) { @mov32(out_e, v_dsd, .{ .async = true }); @mov32(side_e, in_e, .{ .async = true, .activate = ends[0] }); }
  if (w) { @mov32(out_w, v_dsd, .{ .async = true }); @mov32(side_w, in_w, .{ .async = true, .activate = ends[1] }); }
  if (open == 0) @activate(columns_id);
}
fn add(side: u16) void {
  for (@range(u16, n)) |i| { v[i] = v[i] * 5 + from[i + side * n] + @as(u32, place); }
  open -= 1;
}
task row_e() void { add(0); if (open == 0) @activate(columns_id); }
task row_w() void { add(1); if (open == 0) @activate(columns_id); }
task columns() void {
  open = @as(u16, s) + @as(u16, n_);
  if (s) { @mov32(out_s, v_dsd, .{ .async = true }); }
  if (n_) { @mov32(out_n, v_dsd, .{ .async = true }); @mov32(side_n, in_n, .{ .async = true, .activate = ends[3] }); }
  if (s) { @mov32(side_s, in_s, .{ .async = true, .activate = ends[2] }); }
  if (open == 0) next();
}
task column_s() void { add(2); if (open == 0) next(); }
task column_n() void { add(3); if (open == 0) next(); }
fn next() void {
  time.get_timestamp(@ptrcast(*[3]u16, &stamps[round * 3]));
  round += 1;
  if (round < rounds) @activate(rows_id);
}
comptime {
  @bind_local_task(rows, rows_id);
  @bind_local_task(columns, columns_id);
  @bind_local_task(row_e, ends[0]);
  @bind_local_task(row_w, ends[1]);
  @bind_local_task(column_s, ends[2]);
  @bind_local_task(column_n, ends[3]);
  @activate(rows_id);
  if (@is_arch("wse3")) {
    if (e) { @initialize_queue(oq[0], .{ .color = to_e }); @initialize_queue(iq[0], .{ .color = from_e }); }
    if (w) { @initialize_queue(oq[1], .{ .color = to_w }); @initialize_queue(iq[1], .{ .color = from_w }); }
    if (s) { @initialize_queue(oq[2], .{ .color = to_s }); @initialize_queue(iq[2], .{ .color = from_s }); }
    if (n_) { @initialize_queue(oq[3], .{ .color = to_n }); @initialize_queue(iq[3], .{ .color = from_n }); }
  }
}
)";

struct Outcome {
  Cycle cycles = 0;
  std::vector<std::uint16_t> memory;
  std::vector<std::int64_t> counters;
  bool operator==(const Outcome&) const = default;
};

Outcome run(Arch arch, int w, int h, int n, FabricOptions options, bool cells = false) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.arch = arch;
  o.read_disk = false;
  o.files["layout.csl"] = cells ? kCellsLayout : kLayout;
  o.files["pe.csl"] = cells ? kCellsPe : kPe;
  o.params = {{"w", w}, {"h", h}, {"n", n}, {"rounds", 12}};
  Layout layout = csl::compile(o);
  Fabric fabric(layout, options);
  fabric.start();
  fabric.run();
  Outcome out;
  out.cycles = fabric.now();
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x) {
      const Tile& tile = layout.tiles[static_cast<std::size_t>(y * w + x)];
      for (const Symbol& s : layout.programs[tile.program].symbols) {
        std::vector<std::uint16_t> words(s.bytes / 2);
        fabric.read_memory(x, y, s.address, words.data(), s.bytes / 2 * 2);
        out.memory.insert(out.memory.end(), words.begin(), words.end());
      }
    }
  }
  auto report = fabric.stats();
  for (const char* name :
       {"instructions", "elements", "tasks", "busy.pe", "stall.pe.wait", "idle.pe"})
    out.counters.push_back(report.get(name));
  return out;
}

TEST(CslAhead, CyclesMemoriesAndCountersAreThoseOfVisitsCycleByCycle) {
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    for (int n : {1, 5, 40, 200}) {
      const Outcome ahead = run(arch, 7, 5, n, {});
      const Outcome slow = run(arch, 7, 5, n, {.fast = false});
      EXPECT_EQ(ahead.cycles, slow.cycles) << n;
      EXPECT_TRUE(ahead.memory == slow.memory) << n;
      EXPECT_EQ(ahead.counters, slow.counters) << n;
      EXPECT_GT(ahead.counters[1], 0);
      EXPECT_GT(ahead.counters[3], 0);
      for (int threads : {2, 3, 4}) {
        if (n > 40 && threads > 2) continue;  // channels are full: one is enough
        const Outcome other = run(arch, 7, 5, n, {.threads = threads});
        EXPECT_EQ(other.cycles, ahead.cycles) << n << ", " << threads;
        EXPECT_TRUE(other.memory == ahead.memory) << n << ", " << threads;
        EXPECT_EQ(other.counters, ahead.counters) << n << ", " << threads;
      }
    }
  }
}

TEST(CslAhead, CellsThatWaitForEachOtherAreTheSameOnAnyNumberOfThreads) {
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    for (int n : {1, 3, 30}) {
      const Outcome slow = run(arch, 6, 5, n, {.fast = false}, true);
      for (int threads : {1, 2, 3}) {
        const Outcome ahead = run(arch, 6, 5, n, {.threads = threads}, true);
        EXPECT_EQ(ahead.cycles, slow.cycles) << n << ", " << threads;
        EXPECT_TRUE(ahead.memory == slow.memory) << n << ", " << threads;
        EXPECT_EQ(ahead.counters, slow.counters) << n << ", " << threads;
      }
      EXPECT_GT(slow.counters[1], 0);
    }
  }
}

// A core that is ahead of the calendar and fails: the fault is that of the first cycle all the
// same.
TEST(CslAhead, TheFaultOfTheFirstCycleIsThrown) {
  for (bool fast : {true, false}) {
    csl::CompileOptions o;
    o.root = "layout.csl";
    o.read_disk = false;
    o.files["layout.csl"] = R"(layout { @set_rectangle(3, 1);
      for (@range(u16, 3)) |x| @set_tile_code(x, 0, "pe.csl", .{ .turns = 3 - x }); })";
    o.files["pe.csl"] = R"(param turns: u16; var x: u16 = 0; export var y: u16 = 0;
      task main() void { for (@range(u16, turns)) |i| { y += i; } y = 7 / x; }
      comptime { @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9)); })";
    Layout layout = csl::compile(o);
    Fabric fabric(layout, {.fast = fast});
    fabric.start();
    try {
      fabric.run();
      FAIL() << "no fault";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "wse.code.division");
      EXPECT_NE(std::string(e.what()).find("pe (0, 0)"), std::string::npos) << e.what();
    }
  }
}

// PE 1 receives from both sides when its main thread comes to a third operation on a microthread
// that is taken: each cycle is one element's, also ahead of the calendar.
TEST(CslAhead, AMainThreadThatWaitsForAMicrothreadTakesNoSecondTurn) {
  for (int pause = 0; pause < 12; ++pause) {
    csl::CompileOptions o;
    o.root = "layout.csl";
    o.read_disk = false;
    o.params = {{"pause", pause}};
    o.files["layout.csl"] = R"(param pause: u16;
const east = @get_color(0); const west = @get_color(1);
layout {
  @set_rectangle(3, 1);
  @set_tile_code(0, 0, "side.csl", .{ .out = east, .pause = 9 });
  @set_tile_code(1, 0, "middle.csl", .{ .from_w = east, .from_e = west });
  @set_tile_code(2, 0, "side.csl", .{ .out = west, .pause = pause });
  @set_color_config(0, 0, east, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });
  @set_color_config(1, 0, east, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });
  @set_color_config(2, 0, west, .{ .routes = .{ .rx = .{RAMP}, .tx = .{WEST} } });
  @set_color_config(1, 0, west, .{ .routes = .{ .rx = .{EAST}, .tx = .{RAMP} } });
})";
    o.files["side.csl"] = R"(param out: color; param pause: u16; var x: u32 = 0;
const v = @zeros([4]u32);
const v_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{2} -> v[i] });
const to = @get_dsd(fabout_dsd, .{ .extent = 2, .fabric_color = out, .output_queue = @get_output_queue(2) });
task main() void {
  for (@range(u16, 6)) |k| {
    for (@range(u16, pause)) |i| { x += 1; }
    @mov32(to, v_dsd, .{ .async = true });
  }
}
comptime { @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9)); })";
    o.files["middle.csl"] = R"(param from_w: color; param from_e: color;
var a = @zeros([2]u32); var b = @zeros([2]u32);
const a_dsd = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 2 });
const b_dsd = @get_dsd(mem1d_dsd, .{ .base_address = &b, .extent = 2 });
const in_w = @get_dsd(fabin_dsd, .{ .extent = 2, .fabric_color = from_w, .input_queue = @get_input_queue(4) });
const in_e = @get_dsd(fabin_dsd, .{ .extent = 2, .fabric_color = from_e, .input_queue = @get_input_queue(6) });
task main() void {
  for (@range(u16, 6)) |k| {
    @mov32(a_dsd, in_w, .{ .async = true });
    @mov32(b_dsd, in_e, .{ .async = true });
  }
}
comptime { @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9)); })";
    const Layout layout = csl::compile(o);
    Cycle cycles[2] = {};
    std::int64_t busy[2] = {};
    for (bool fast : {false, true}) {
      Fabric fabric(layout, {.fast = fast});
      fabric.start();
      EXPECT_EQ(fabric.run(), Stop::quiet);
      cycles[fast] = fabric.now();
      busy[fast] = fabric.stats().get("busy.pe");
    }
    EXPECT_EQ(cycles[0], cycles[1]) << pause;
    EXPECT_EQ(busy[0], busy[1]) << pause;
  }
}

}  // namespace
}  // namespace weft::wse::testing
