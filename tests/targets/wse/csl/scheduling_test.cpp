// SPDX-License-Identifier: Apache-2.0
// Who runs when: the timer, priorities of data tasks, and the host threads' shares of the PEs,
// which change while a program runs and must not change what it does.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "csl_run.h"
#include "weft/base/text.h"
#include "weft/targets/wse/sdk_runtime.h"

namespace weft::wse::testing {
namespace {

using Words = std::vector<std::uint32_t>;

// Task 20 makes local tasks 9 to 11 ready while a word waits for the data task.
TEST(Order, OfReadyTasksIsAnOption) {
  const char* program = R"(
const c = @get_color(2);
const iq = @get_input_queue(3);
const oq = @get_output_queue(2);
const word = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq });
export var out = @zeros([4]u16);
var n: u16 = 0;
fn note(id: u16) void { out[n] = id; n += 1; }
task nine() void { note(9); }
task ten() void { note(10); }
task eleven() void { note(11); }
task data(x: u32) void { note(2); }
task begin() void {
  @mov32(word, @as(u32, 1));
  var k: u16 = 0;
  while (k < 500) : (k += 1) { out[3] = k; }
  @activate(@get_local_task_id(9)); @activate(@get_local_task_id(10)); @activate(@get_local_task_id(11));
}
const data_id = if (@is_arch("wse3")) @get_data_task_id(iq) else @get_data_task_id(c);
comptime {
  @set_local_color_config(c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{RAMP} } });
  if (@is_arch("wse3")) { @initialize_queue(iq, .{ .color = c }); @initialize_queue(oq, .{ .color = c }); }
  @bind_local_task(nine, @get_local_task_id(9));
  @bind_local_task(ten, @get_local_task_id(10));
  @bind_local_task(eleven, @get_local_task_id(11));
  @bind_local_task(begin, @get_local_task_id(20));
  @bind_data_task(data, data_id);
  @activate(@get_local_task_id(20));
}
)";
  using Ids = std::vector<std::uint16_t>;
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    auto with = [&](TaskOrder order, std::uint64_t seed = 0) {
      FabricOptions o;
      o.task_order = order;
      o.seed = seed;
      Ids ids = Ran(single(program, arch), 0, 0, o).read<std::uint16_t>("out");
      if (arch == Arch::wse3)
        for (std::uint16_t& id : ids) id = id == 3 ? 2 : id;
      return ids;
    };
    EXPECT_EQ(with(TaskOrder::local_first), (Ids{9, 10, 11, 2}));
    EXPECT_EQ(with(TaskOrder::lowest_first), (Ids{2, 9, 10, 11}));
    EXPECT_EQ(with(TaskOrder::highest_first), (Ids{11, 10, 9, 2}));
    EXPECT_EQ(with(TaskOrder::round_robin), (Ids{2, 9, 10, 11}));  // on from task 20
    std::set<Ids> seen;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      seen.insert(with(TaskOrder::random, seed));
      EXPECT_EQ(with(TaskOrder::random, seed), with(TaskOrder::random, seed));
    }
    EXPECT_GT(seen.size(), 8u);
  }
}

TEST(Timer, TaskThirtyRunsWhenItIsDue) {
  const char* globals = R"(
const timer = @import_module("<timer>");
const time = @import_module("<time>");
export var out = @zeros([8]u32);
var stamp = @zeros([3]u16);
var n: u16 = 0;
fn now() u32 { time.get_timestamp(&stamp); return @as(u32, stamp[0]) | (@as(u32, stamp[1]) << 16); }
task due() void {
  out[n] = now();
  n += 1;
  if (n < 4) timer.set_timer(100000);
  if (n == 4) { timer.set_timer(500); timer.stop_timer(); out[5] = @as(u32, timer.is_running()); }
}
comptime { @bind_local_task(due, timer.task_id); }
)";
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    Ran ran(
        single(as_task(globals,
                       "time.enable_tsc(); timer.set_timer(300); timer.set_timer(2000); out[4] = "
                       "timer.remaining(); out[6] = @as(u32, timer.is_running());"),
               arch));
    Words got = ran.read<std::uint32_t>("out");
    EXPECT_NEAR(got[0], 2000, 80);  // the second call began anew
    for (std::size_t k = 1; k < 4; ++k) EXPECT_NEAR(got[k] - got[k - 1], 100000, 80) << k;
    EXPECT_GT(got[4], 1900u);
    EXPECT_LE(got[4], 2000u);
    EXPECT_EQ(got[5], 0u);
    EXPECT_EQ(got[6], 1u);
    EXPECT_EQ(got[7], 0u);
    EXPECT_LT(ran.fabric().now(), 303000);  // stopped: nothing runs after the fourth time
  }
  try {
    Ran ran(single(as_task("const timer = @import_module(\"<timer>\");\n", "timer.set_timer(9);")));
    FAIL() << "an unbound task ran";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "wse.task.unbound") << e.what();
    EXPECT_NE(std::string(e.what()).find("local task 30"), std::string::npos) << e.what();
  }
}

// PE 0 sends two numbers on each of two colours; on PE 1 they wait until the task that sets the
// priorities has ended.
TEST(Priorities, OfDataTasks) {
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    for (int high : {0, 1, 2}) {
      csl::CompileOptions o;
      o.root = "layout.csl";
      o.arch = arch;
      o.read_disk = false;
      o.files["layout.csl"] = R"(
const c = @get_color(2); const d = @get_color(3);
layout {
  @set_rectangle(2, 1);
  @set_tile_code(0, 0, "send.csl", .{ .c = c, .d = d });
  @set_tile_code(1, 0, "take.csl", .{ .c = c, .d = d });
  for (@range(u16, 2)) |k| {
    const e = if (k == 0) c else d;
    @set_color_config(0, 0, e, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
    @set_color_config(1, 0, e, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
  }
})";
      o.files["send.csl"] = R"(
param c: color; param d: color;
const oc = @get_output_queue(2); const od = @get_output_queue(3);
task main() void {
  const to_c = @get_dsd(fabout_dsd, .{ .extent = 2, .fabric_color = c, .output_queue = oc });
  const to_d = @get_dsd(fabout_dsd, .{ .extent = 2, .fabric_color = d, .output_queue = od });
  @mov32(to_c, 5); @mov32(to_d, 6);
}
comptime {
  @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9));
  if (@is_arch("wse3")) { @initialize_queue(oc, .{ .color = c }); @initialize_queue(od, .{ .color = d }); }
})";
      std::string id_c = arch == Arch::wse3 ? "@get_data_task_id(ic)" : "@get_data_task_id(c)";
      std::string id_d = arch == Arch::wse3 ? "@get_data_task_id(id)" : "@get_data_task_id(d)";
      o.files["take.csl"] =
          cat(R"(
param c: color; param d: color;
const prio = @import_module("<tile_config/task_priority>");
const ic = @get_input_queue(2); const id = @get_input_queue(3);
export var out = @zeros([4]u32);
var n: u16 = 0; var k: u32 = 0;
task take_c(v: u32) void { out[n] = v; n += 1; }
task take_d(v: u32) void { out[n] = v; n += 1; }
task main() void {
  while (k < 2000) : (k += 1) {}
)",
              high == 1   ? cat("prio.update_task_priority(", id_c, ", prio.level.HIGH);")
              : high == 2 ? cat("prio.update_task_priority(", id_d, ", prio.level.HIGH);")
                          : std::string(),
              R"(
}
comptime {
  @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9));
  @initialize_queue(ic, .{ .color = c }); @initialize_queue(id, .{ .color = d });
  @bind_data_task(take_c, )",
              id_c, "); @bind_data_task(take_d, ", id_d, ");\n}\n");
      Ran ran(o, 1, 0);
      EXPECT_EQ(ran.read<std::uint32_t>("out"), high == 2   ? (Words{6, 6, 5, 5})
                                                : high == 1 ? (Words{5, 5, 6, 6})
                                                            : (Words{5, 6, 5, 6}))
          << high;
    }
  }
}

/// Rows of PEs that pass numbers on from west to east, `busy` of them for long, the others not at
/// all.
csl::CompileOptions rows(int width, int height, int busy, int n) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.read_disk = false;
  o.params = {{"w", width}, {"h", height}, {"busy", busy}, {"n", n}};
  o.files["layout.csl"] = R"(
param w: u16; param h: u16; param busy: u16; param n: u16;
const c = [2]color{ @get_color(0), @get_color(1) };
layout {
  @set_rectangle(w, h);
  for (@range(u16, w)) |x| { for (@range(u16, h)) |y| {
    @set_tile_code(x, y, "pe.csl", .{ .n = n, .busy = y < busy, .first = x == 0, .last = x == w - 1, .to = c[x % 2], .from = c[(x + 1) % 2] });
    if (x < w - 1) @set_color_config(x, y, c[x % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
    if (x > 0) @set_color_config(x, y, c[(x + 1) % 2], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
  } }
})";
  o.files["pe.csl"] = R"(
param n: u16; param busy: bool; param first: bool; param last: bool; param to: color; param from: color;
export var out = @zeros([2]u32);
const in_dsd = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from, .input_queue = @get_input_queue(2) });
const out_dsd = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to, .output_queue = @get_output_queue(3) });
task main() void {
  if (busy) {
    if (first) { @mov32(out_dsd, 7); }
    else if (last) { @mov32(&out[0], in_dsd); }
    else { @mov32(out_dsd, in_dsd); }
  }
  out[1] += 1;
}
comptime { @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9)); }
)";
  return o;
}

TEST(Shares, FollowTheWorkAndChangeNothing) {
  Layout layout = csl::compile(rows(12, 40, 2, 2300));
  std::string want;
  for (int threads : {1, 2}) {
    Fabric fabric(layout, {.threads = threads, .express = false});
    fabric.start();
    EXPECT_EQ(fabric.run(), Stop::quiet);
    std::string got;
    const runtime::StatReport report = fabric.stats();
    for (const runtime::Stat& row : report.rows()) {
      // The simulator's own visits are not the machine's.
      if (row.name != "steps") got += cat(row.name, " ", row.value, "\n");
    }
    for (int y = 0; y < 40; ++y) {
      for (int x = 0; x < 12; ++x) {
        const Program& p =
            layout.programs[layout.tiles[static_cast<std::size_t>(y * 12 + x)].program];
        std::string memory(p.data_bytes, '\0');
        fabric.read_memory(x, y, 0, memory.data(), p.data_bytes);
        got += memory;
      }
    }
    if (threads == 1) want = got;
    EXPECT_TRUE(got == want) << threads;
    // All that works lies in the first 24 PEs: so does the end of every share but the last.
    std::vector<std::uint32_t> ends = fabric.shares();
    ASSERT_EQ(ends.size(), static_cast<std::size_t>(threads));
    EXPECT_EQ(ends.back(), 480u);
    for (std::size_t k = 0; k + 1 < ends.size(); ++k) {
      EXPECT_LT(ends[k], 24u) << threads;
      EXPECT_GT(ends[k], 0u) << threads;
    }
  }
}

TEST(Shares, FaultsAreTheSameOnAnyNumberOfThreads) {
  // One PE divides by zero after a while; another does so later.
  csl::CompileOptions o = rows(6, 6, 6, 50);
  std::string& pe = o.files["pe.csl"];
  pe += "var zero: i32 = 0;\n";
  pe.replace(pe.find("  out[1] += 1;"), 14, "  if (last) { out[1] = @as(u32, 8 / zero); }");
  Layout layout = csl::compile(o);
  std::set<std::string> texts;
  for (int threads : {1, 3}) {
    Fabric fabric(layout, {.threads = threads});
    fabric.start();
    try {
      fabric.run();
      FAIL() << "no fault";
    } catch (const Error& e) {
      texts.insert(e.what());
    }
  }
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts.begin()->find("pe (5, 0)"), std::string::npos) << *texts.begin();
  EXPECT_EQ(texts.begin()->find("cycle 0"), std::string::npos) << *texts.begin();
}

TEST(Builtins, EveryNameOfTheReferenceIsKnown) {
  // The built-ins of the language's public reference, version 1.4, by its chapters.
  static const char* const kNames[] = {
      // general
      "as", "bitcast", "ptrcast", "zeros", "constants", "range", "range_start", "range_stop",
      "range_step", "type_of", "is_same_type", "is_arch", "is_comptime", "comptime_assert",
      "comptime_print", "assert", "concat_structs", "get_int", "fp16", "dimensions", "rank",
      "element_count", "element_type", "field", "has_field", "strcat", "strlen", "get_array",
      "import_module", "import_comptime_value", "random16", "set_active_prng",
      // layout and host
      "get_rectangle", "set_rectangle", "set_tile_code", "set_color_config",
      "set_local_color_config", "export_name", "export_symbol", "get_symbol_id", "get_symbol_value",
      "get_tensor_ptr", "has_exported_tensors", "rpc", "get_config", "set_config",
      "set_config_unchecked", "get_filter_id",
      // colours, queues, tasks
      "get_color", "get_input_queue", "get_output_queue", "get_ut_id", "get_local_task_id",
      "get_data_task_id", "get_control_task_id", "bind_local_task", "bind_data_task",
      "bind_control_task", "activate", "block", "unblock", "initialize_queue", "queue_flush",
      "set_teardown_handler", "set_empty_queue_handler", "set_control_task_table",
      // descriptors
      "get_dsd", "set_dsd_length", "set_dsd_base_addr", "set_dsd_stride", "increment_dsd_offset",
      "get_dsr", "get_xdsr", "load_to_dsr", "allocate_fifo", "set_fifo_read_length",
      "set_fifo_write_length", "dfilt", "map",
      // operations
      "add16", "addc16", "sub16", "and16", "or16", "xor16", "sll16", "slr16", "sar16", "clz", "ctz",
      "popcnt", "fabsh", "fabss", "faddh", "fadds", "faddhs", "fsubh", "fsubs", "fmulh", "fmuls",
      "fmach", "fmacs", "fmachs", "fmaxh", "fmaxs", "fmovh", "fmovs", "fnegh", "fnegs", "fnormh",
      "fnorms", "fscaleh", "fscales", "fh2s", "fs2h", "fh2xp16", "fs2xp16", "xp162fh", "xp162fs",
      "mov16", "mov32"};
  auto code = [](const std::string& name) {
    // In a program and in a layout: some belong to one of them only.
    csl::CompileOptions o = single(cat("comptime { @", name, "(); }\n"));
    try {
      csl::compile(o);
    } catch (const Error& e) {
      return e.code();
    }
    return std::string("accepted");
  };
  for (const char* name : kNames) EXPECT_NE(code(name), "wse.csl.builtin.unknown") << name;
  EXPECT_EQ(code("get_colour"), "wse.csl.builtin.unknown");
  std::printf("%zu built-ins\n", std::size(kNames));
}

TEST(Builtins, TheRectangleIsKnownEverywhere) {
  csl::CompileOptions o = single(
      "const r = @get_rectangle();\nexport var out = [6]u16 { r.width, r.height, r.fabric.width, "
      "r.fabric.height, r.offsets.width, r.offsets.height };\n");
  o.files["layout.csl"] =
      "layout { @set_rectangle(3, 2); const r = @get_rectangle(); @comptime_assert(r.width == 3); "
      "for "
      "(@range(u16, 3)) |x| { for (@range(u16, 2)) |y| { @set_tile_code(x, y, \"pe.csl\"); } } }";
  o.fabric_width = 11;
  o.fabric_height = 7;
  o.offset_x = 4;
  o.offset_y = 1;
  Ran ran(o, 2, 1);
  EXPECT_EQ(ran.read<std::uint16_t>("out"), (std::vector<std::uint16_t>{3, 2, 11, 7, 4, 1}));
}

}  // namespace
}  // namespace weft::wse::testing
