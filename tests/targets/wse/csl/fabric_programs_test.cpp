// SPDX-License-Identifier: Apache-2.0
// Programs over a few PEs, in CSL: every switch and pop mode, every kind of filter, teardown with
// run-time routes, color swap, control wavelets into operations, FIFOs between microthreads,
// priorities and queues at run time.
#include <gtest/gtest.h>

#include "csl_run.h"
#include "weft/base/text.h"

namespace weft::wse::testing {
namespace {

using Words = std::vector<std::uint32_t>;

/// A row of PEs; program k of `pes` runs on column k. `config` holds @set_color_config calls.
csl::CompileOptions row(const std::vector<std::string>& pes, const std::string& config,
                        Arch arch = Arch::wse2) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.read_disk = false;
  o.arch = arch;
  std::string tiles;
  for (std::size_t k = 0; k < pes.size(); ++k) {
    tiles += cat("@set_tile_code(", k, ", 0, \"pe", k, ".csl\", .{ .c = c, .d = d });\n");
    o.files[cat("pe", k, ".csl")] = cat("param c: color;\nparam d: color;\n", pes[k]);
  }
  o.files["layout.csl"] =
      cat("const c = @get_color(2);\nconst d = @get_color(3);\nlayout {\n@set_rectangle(",
          pes.size(), ", 1);\n", tiles, config, "}\n");
  return o;
}

Words out(const csl::CompileOptions& o, int x, const char* name = "out") {
  Ran ran(o, x, 0);
  return ran.read<std::uint32_t>(name);
}

/// Runs `body` in task 9 at the start.
std::string main_task(const std::string& globals, const std::string& body,
                      const std::string& setup = {}) {
  return cat(globals, "\ntask main() void {\n", body,
             "\n}\ncomptime {\n  @bind_local_task(main, @get_local_task_id(9));\n  "
             "@activate(@get_local_task_id(9));\n",
             setup, "\n}\n");
}

const std::string kSend = R"(
const ctrl = @import_module("<control>");
const oq = @get_output_queue(2);
const one = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq });
const command = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq, .control = true });
fn advance() void { @mov32(command, ctrl.encode_single_payload(ctrl.opcode.SWITCH_ADV, true, {}, 0)); }
fn reset() void { @mov32(command, ctrl.encode_single_payload(ctrl.opcode.SWITCH_RST, true, {}, 0)); }
)";
const std::string kSendSetup = "if (@is_arch(\"wse3\")) @initialize_queue(oq, .{ .color = c });";
/// Keeps what comes on color c.
const std::string kCollect = R"(
export var out = @zeros([8]u32);
var n: u16 = 0;
const iq = @get_input_queue(3);
task take(x: u32) void { out[n] = x; n += 1; }
comptime {
  if (@is_arch("wse3")) { @initialize_queue(iq, .{ .color = c }); @bind_data_task(take, @get_data_task_id(iq)); }
  else { @bind_data_task(take, @get_data_task_id(c)); }
}
)";
const std::string kFromWest =
    "@set_color_config(2, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });\n";
const std::string kFromEast =
    "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{EAST}, .tx = .{RAMP} } });\n";

TEST(FabricPrograms, SwitchPositionsInARing) {
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    for (bool ring : {true, false}) {
      auto o =
          row({kCollect,
               main_task(kSend,
                         "for (@range(u16, 5)) |k| { @mov32(one, @as(u32, k) + 10); advance(); } "
                         "reset(); @mov32(one, 99);",
                         kSendSetup),
               kCollect},
              cat(kFromWest, kFromEast,
                  "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} }, "
                  ".switches = .{ .pos1 = .{ .tx = WEST }, .current_switch_pos = 1, .ring_mode "
                  "= ",
                  ring, ", .pop_mode = .{ .always_pop = true } } });\n"),
              arch);
      // Position 1 (west) is the first; without a ring it stays there for ever, until the reset.
      EXPECT_EQ(out(o, 0),
                ring ? (Words{10, 12, 14, 0, 0, 0, 0, 0}) : (Words{10, 11, 12, 13, 14, 0, 0, 0}));
      EXPECT_EQ(out(o, 2),
                ring ? (Words{11, 13, 99, 0, 0, 0, 0, 0}) : (Words{99, 0, 0, 0, 0, 0, 0, 0}));
    }
  }
}

TEST(FabricPrograms, PopModesDecideWhoHearsTheCommand) {
  // PE 0 sends past PE 1, which takes a copy in position 0 only; PE 2 takes copies in position 1.
  auto run_mode = [&](const char* mode, const char* commands) {
    auto o =
        row({main_task(kSend,
                       cat("@mov32(one, 1); @mov32(command, comptime ctrl.encode_payload(2, "
                           "[2]ctrl.opcode { ",
                           commands, " }, [2]bool { true, true }, true, {})); @mov32(one, 2);"),
                       kSendSetup),
             kCollect, kCollect},
            cat("@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
                "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{EAST, RAMP} }, "
                ".switches = .{ .pos1 = .{ .tx = EAST }, .pop_mode = .{ .",
                mode,
                " = true } } });\n"
                "@set_color_config(2, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} }, "
                ".switches = "
                ".{ .pos1 = .{ .rx = EAST } } });\n"));
    Ran a(o, 1, 0), b(o, 2, 0);
    return std::pair{a.read<std::uint32_t>("out")[1], b.read<std::uint32_t>("out")[1]};
  };
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  const char* first = "ctrl.opcode.SWITCH_ADV, ctrl.opcode.NOP";
  const char* both = "ctrl.opcode.SWITCH_ADV, ctrl.opcode.SWITCH_ADV";
  EXPECT_EQ(run_mode("no_pop", first), (Pair{0, 0}));      // PE 2 obeys the same command
  EXPECT_EQ(run_mode("always_pop", first), (Pair{0, 2}));  // PE 2 sees the NOP
  EXPECT_EQ(run_mode("always_pop", both), (Pair{0, 0}));
  EXPECT_EQ(run_mode("pop_on_advance", first), (Pair{0, 2}));
  EXPECT_EQ(run_mode("pop_on_advance", both), (Pair{0, 0}));
  EXPECT_EQ(run_mode("pop_on_advance_nop", first), (Pair{0, 2}));
}

TEST(FabricPrograms, FiltersOfEveryKind) {
  auto with = [&](const std::string& filter) {
    auto o =
        row({main_task(R"(
const oq = @get_output_queue(2);
var data = [8]u16 { 10, 11, 12, 13, 14, 15, 16, 17 };
const from = @get_dsd(mem1d_dsd, .{ .base_address = &data, .extent = 1 });
const to = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq, .wavelet_index_offset = true });
)",
                       "for (@range(u16, 8)) |k| { @mov16(to, @increment_dsd_offset(from, "
                       "@as(i16, k), u16), .{ .index = k }); }"),
             "export var out = @zeros([8]u32); var n: u16 = 0;\ntask take(x: u16, i: u16) void "
             "{ out[n] = @as(u32, x) * 100 + @as(u32, i); n += 1; }\ncomptime { "
             "@bind_data_task(take, @get_data_task_id(c)); }"},
            cat("@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
                "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} }, "
                ".filter = .{ ",
                filter, " } });\n"));
    Words w = out(o, 1);
    std::erase(w, 0u);
    return w;
  };
  EXPECT_EQ(with(".kind = .{ .range = true }, .min_idx = 3, .max_idx = 5"),
            (Words{1303, 1404, 1505}));
  // Counts 0 1 2 and again; what is counted 0 or 1 passes.
  EXPECT_EQ(with(".kind = .{ .counter = true }, .count_data = true, .limit1 = 2, .max_counter = 1"),
            (Words{1000, 1101, 1303, 1404, 1606, 1707}));
  EXPECT_EQ(
      with(".kind = .{ .counter = true }, .count_data = true, .init_counter = 1, .limit1 = 3, "
           ".max_counter = 0"),
      (Words{1303, 1707}));
  // One reload, then off.
  Words sparse = with(
      ".kind = .{ .sparse_counter = true }, .count_data = true, .limit1 = 2, .limit2 = 3, "
      ".max_counter = 0");
  EXPECT_LT(sparse.size(), 4u);
  EXPECT_FALSE(sparse.empty());
}

TEST(FabricPrograms, TeardownRewritesRoutes) {
  // PE 1 first hears the east; a teardown command from there makes it listen to the west.
  const std::string sender = main_task(kSend, R"(
  @mov32(one, 7);
  @mov32(command, comptime ctrl.encode_payload(2, [2]ctrl.opcode { ctrl.opcode.NOP, ctrl.opcode.TEARDOWN }, [2]bool { true, true }, true, {}));
)");
  const std::string other =
      main_task(R"(
const oq = @get_output_queue(2);
const one = @get_dsd(fabout_dsd, .{ .extent = 2, .fabric_color = c, .output_queue = oq });
var v = [2]u32 { 50, 51 };
)",
                "@mov32(one, @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent "
                "= 2 }), .{ .async = true });");
  const std::string middle = kCollect + R"(
const tile = @import_module("<tile_config>");
export var seen = @zeros([4]u32);
fn down() void {
  seen[0] += 1;
  seen[1] = @as(u32, tile.teardown.is_pending(c));
  const address = tile.color_config.get_color_config_addr(c);
  tile.color_config.reset_routes(address, .{ .rx = WEST, .tx = RAMP });
  tile.switch_config.clear_current_position(address);
  tile.switch_config.set_invalid_for_all_switch_positions(address);
  tile.teardown.exit(c);
  seen[2] = @as(u32, tile.teardown.is_pending(c));
  seen[3] = tile.teardown.get_pending();
}
comptime { @set_teardown_handler(down, c); }
)";
  auto o =
      row({other, middle, sender},
          "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
          "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{EAST}, .tx = .{RAMP} } });\n"
          "@set_color_config(2, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{WEST} }, .switches = "
          ".{ .pos1 = .{ .tx = EAST }, .pop_mode = .{ .always_pop = true } } });\n");
  // The western words wait at the port that is not listened to until the routes change.
  EXPECT_EQ(out(o, 1), (Words{7, 50, 51, 0, 0, 0, 0, 0}));
  EXPECT_EQ(out(o, 1, "seen"), (Words{1, 1, 0, 0}));
}

TEST(FabricPrograms, RunTimeSwitchPositions) {
  const std::string middle = kCollect + main_task(R"(
const tile = @import_module("<tile_config>");
const sw = tile.switch_config;
)",
                                                  R"(
  const a = sw.get_switch_config_addr(c);
  sw.set_ring_mode(a, true);
  sw.set_pop_mode(a, sw.pop_mode.ALWAYS_POP);
  sw.set_rx_switch_pos1(a, WEST);
  @unblock(c);
)",
                                                  "@block(c);");
  auto from = [&](int value) {
    return main_task(kSend,
                     cat("@mov32(one, ", value,
                         "); @mov32(command, ctrl.encode_single_payload(ctrl.opcode.SWITCH_ADV, "
                         "true, {}, 0)); @mov32(one, ",
                         value + 1, ");"));
  };
  auto o =
      row({from(20), middle, from(40)},
          "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
          "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{EAST}, .tx = .{RAMP} }, .switches = "
          ".{ .pos1 = .{ .rx = NORTH } } });\n"
          "@set_color_config(2, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{WEST} } });\n");
  // East until its command, then west until its, then east again; the last western word stays out.
  EXPECT_EQ(out(o, 1), (Words{40, 20, 41, 0, 0, 0, 0, 0}));
}

TEST(FabricPrograms, PositionsBuildOnTheOneBefore) {
  // Position 1 turns the output to the east; position 2 names an input only and keeps that output.
  const std::string sender = main_task(
      kSend, "@mov32(one, 1); advance(); @mov32(one, 2); advance(); @mov32(one, 3);", kSendSetup);
  const std::string from_ramp =
      "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n";
  const std::string at_run_time = kCollect + main_task(R"(
const tile = @import_module("<tile_config>");
const sw = tile.switch_config;
)",
                                                       R"(
  sw.set_pop_mode(c, sw.pop_mode.ALWAYS_POP);
  sw.set_tx_switch_pos1(c, EAST);
  sw.set_rx_switch_pos2(c, WEST);
  tile.color_config.reset_routes(c, .{ .rx = WEST, .tx = RAMP });
)");
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    for (bool run_time : {false, true}) {
      auto o = row({sender, run_time ? at_run_time : kCollect, kCollect},
                   cat(from_ramp,
                       run_time ? "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{NORTH}, .tx "
                                  "= .{RAMP} } });\n"
                                : "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = "
                                  ".{RAMP} }, .switches = .{ .pos1 = .{ .tx = EAST }, .pos2 = .{ "
                                  ".rx = WEST }, .pop_mode = .{ .always_pop = true } } });\n",
                       kFromWest),
                   arch);
      EXPECT_EQ(out(o, 1)[0], 1u) << run_time;
      EXPECT_EQ(out(o, 1)[1], 0u) << run_time;
      EXPECT_EQ(out(o, 2)[0], 2u) << run_time;
      EXPECT_EQ(out(o, 2)[1], 3u) << run_time;
    }
  }
}

TEST(FabricPrograms, RoutesAsBitVectors) {
  const std::string sender = main_task(kSend, "@mov32(one, 7);", kSendSetup);
  auto o = row(
      {kCollect, sender, kCollect},
      "@set_color_config(0, 0, c, .{ .routes = .{ .rx = dirs.RX_EAST, .tx = "
      "dirs.dirToTxBits(RAMP) } });\n"
      "@set_color_config(1, 0, c, .{ .routes = .{ .rx = dirs.dirToRxBits(RAMP), .tx = "
      "dirs.TX_EAST | dirs.TX_WEST }, .switches = .{ .pos1 = .{ .tx = dirs.TX_EAST } } });\n"
      "@set_color_config(2, 0, c, .{ .routes = .{ .rx = dirs.RX_WEST, .tx = dirs.TX_RAMP } });\n");
  o.files["layout.csl"].insert(0, "const dirs = @import_module(\"<directions>\");\n");
  EXPECT_EQ(out(o, 0)[0], 7u);
  EXPECT_EQ(out(o, 2)[0], 7u);
  o.files["layout.csl"].replace(o.files["layout.csl"].find("dirs.RX_EAST"), 12, "dirs.TX_EAST");
  try {
    csl::compile(o);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "wse.csl.route.direction") << e.what();
    EXPECT_NE(std::string(e.what()).find("expected bits of RX_ constants, found 32"),
              std::string::npos)
        << e.what();
  }
}

TEST(FabricPrograms, ColorSwap) {
  // Colors 2 and 3 change places at every hop along x.
  const std::string config = R"(
for (@range(u16, 3)) |x| {
  const tx = if (x == 2) RAMP else EAST;
  const rx = if (x == 0) RAMP else WEST;
  @set_color_config(x, 0, c, .{ .routes = .{ .rx = .{rx}, .tx = .{tx}, .color_swap_x = true } });
  @set_color_config(x, 0, d, .{ .routes = .{ .rx = .{rx}, .tx = .{tx}, .color_swap_x = true } });
}
)";
  const std::string last =
      "export var out = @zeros([2]u32);\ntask on_c(x: u32) void { out[0] = x; }\ntask on_d(x: u32) "
      "void { out[1] = x; }\ncomptime { @bind_data_task(on_c, @get_data_task_id(c)); "
      "@bind_data_task(on_d, @get_data_task_id(d)); }";
  auto sent = [&](int hops) {
    std::vector<std::string> pes{main_task(kSend, "@mov32(one, 5);"), "", last};
    auto o = row(pes, config);
    if (hops == 1) {
      pes = {main_task(kSend, "@mov32(one, 5);"), last};
      std::string two = config;
      two.replace(two.find("3)"), 2, "2)");
      two.replace(two.find("x == 2"), 6, "x == 1");
      o = row(pes, two);
    }
    return out(o, hops);
  };
  EXPECT_EQ(sent(1), (Words{0, 5}));  // one hop: on the other color
  EXPECT_EQ(sent(2), (Words{5, 0}));  // two: back again
}

TEST(FabricPrograms, ControlWaveletsEndOrTellOperations) {
  const std::string sender = main_task(kSend + R"(
var v = [6]u32 { 1, 2, 3, 4, 5, 6 };
const from = @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 2 });
const two = @get_dsd(fabout_dsd, .{ .extent = 2, .fabric_color = c, .output_queue = oq });
)",
                                       R"(
  @mov32(two, from);
  @mov32(command, ctrl.encode_single_payload(ctrl.opcode.NOP, false, {}, 0));
  @mov32(two, @increment_dsd_offset(from, 2, u32));
)");
  const std::string routes =
      "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
      "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });\n";
  auto receiver = [&](const char* what) {
    return main_task(cat(R"(
export var out = @zeros([6]u32);
const in = @get_dsd(fabin_dsd, .{ .extent = 4, .fabric_color = c, .input_queue = @get_input_queue(2) });
const to = @get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 4 });
task told() void { out[4] += 1; }
task done() void { out[5] += 1; }
comptime { @bind_local_task(told, @get_local_task_id(10)); @bind_local_task(done, @get_local_task_id(11)); }
)"),
                     cat("@mov32(to, in, .{ .async = true, .activate = done, .on_control = .{ ",
                         what, " } });"));
  };
  EXPECT_EQ(out(row({sender, receiver(".activate = told")}, routes), 1), (Words{1, 2, 0, 0, 1, 1}));
  EXPECT_EQ(out(row({sender, receiver(".unblock = told")}, routes), 1), (Words{1, 2, 0, 0, 0, 1}));
  EXPECT_EQ(out(row({sender, receiver(".terminate = false")}, routes), 1),
            (Words{1, 2, 3, 4, 0, 1}));
  EXPECT_EQ(out(row({sender, receiver(".terminate = true")}, routes), 1),
            (Words{1, 2, 0, 0, 0, 1}));
}

TEST(FabricPrograms, ControlTasksGetTheirArgument) {
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    auto o =
        row({main_task(kSend,
                       "@mov32(command, ctrl.encode_single_payload(ctrl.opcode.NOP, false, "
                       "@get_control_task_id(40), 1234)); @mov32(command, "
                       "ctrl.encode_control_task_payload(@get_control_task_id(41)));",
                       kSendSetup),
             "export var out = @zeros([2]u32);\ntask a(x: u16) void { out[0] = @as(u32, x); }\n"
             "task b() void { out[1] += 1; }\ncomptime { @bind_control_task(a, "
             "@get_control_task_id(40)); @bind_control_task(b, @get_control_task_id(41)); if "
             "(@is_arch(\"wse3\")) @initialize_queue(@get_input_queue(2), .{ .color = c }); }"},
            "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
            "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });\n",
            arch);
    EXPECT_EQ(out(o, 1), (Words{1234, 1}));
  }
}

TEST(FabricPrograms, TheLastWaveletMayAdvanceTheSwitch) {
  auto o =
      row({kCollect,
           main_task("const oq = @get_output_queue(2); var v = [4]u32 { 1, 2, 3, 4 };\nconst to = "
                     "@get_dsd(fabout_dsd, .{ .extent = 2, .fabric_color = c, .output_queue = "
                     "oq, .advance_switch = true }); const from = @get_dsd(mem1d_dsd, .{ "
                     ".base_address = &v, .extent = 2 });\n",
                     "@mov32(to, from); @mov32(to, @increment_dsd_offset(from, 2, u32));"),
           kCollect},
          cat(kFromWest, kFromEast,
              "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} }, "
              ".switches = .{ .pos1 = .{ .tx = WEST }, .ring_mode = true } });\n"));
  EXPECT_EQ(out(o, 2)[1], 2u);
  EXPECT_EQ(out(o, 0)[1], 4u);
}

TEST(FabricPrograms, FifosJoinMicrothreads) {
  for (Arch arch : {Arch::wse2, Arch::wse3}) {
    auto o =
        row({main_task("const oq = @get_output_queue(2); var v = [8]u32 { 1, 2, 3, 4, 5, 6, 7, 8 "
                       "};\n",
                       "@mov32(@get_dsd(fabout_dsd, .{ .extent = 8, .fabric_color = c, "
                       ".output_queue = oq }), @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent "
                       "= 8 }), .{ .async = true });",
                       kSendSetup),
             main_task(R"(
const iq = @get_input_queue(2);
const oq = @get_output_queue(3);
var buffer = @zeros([3]u32);
const fifo = @allocate_fifo(buffer, .{ .activate_push = pushed, .activate_pop = popped });
export var count = @zeros([2]u32);
task pushed() void { count[0] += 1; }
task popped() void { count[1] += 1; }
comptime { @bind_local_task(pushed, @get_local_task_id(12)); @bind_local_task(popped, @get_local_task_id(13)); }
)",
                       "@mov32(fifo, @get_dsd(fabin_dsd, .{ .extent = 8, .fabric_color = c, "
                       ".input_queue = iq }), .{ .async = true }); "
                       "@mov32(@get_dsd(fabout_dsd, .{ .extent = 8, .fabric_color = d, "
                       ".output_queue = oq }), fifo, .{ .async = true });",
                       "if (@is_arch(\"wse3\")) { @initialize_queue(iq, .{ .color = c }); "
                       "@initialize_queue(oq, .{ .color = d }); }"),
             "export var out = @zeros([8]u32); var n: u16 = 0; const iq = @get_input_queue(2);\n"
             "task take(x: u32) void { out[n] = x; n += 1; }\ncomptime { if (@is_arch(\"wse3\")) { "
             "@initialize_queue(iq, .{ .color = d }); @bind_data_task(take, "
             "@get_data_task_id(iq)); } else { @bind_data_task(take, @get_data_task_id(d)); } }"},
            "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
            "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });\n"
            "@set_color_config(1, 0, d, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
            "@set_color_config(2, 0, d, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });\n",
            arch);
    EXPECT_EQ(out(o, 2), (Words{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_GT(out(o, 1, "count")[0], 0u);  // the pop began on an empty FIFO
  }
}

TEST(FabricPrograms, PrioritiesOrderReadyTasks) {
  for (bool high : {false, true}) {
    auto o = row(
        {main_task(R"(
const prio = @import_module("<tile_config/task_priority>");
const threads = @import_module("<tile_config/main_thread_priority>");
export var out = @zeros([2]u32);
var n: u32 = 0;
task a() void { n += 1; out[0] = n; }
task b() void { n += 1; out[1] = n; }
comptime { @bind_local_task(a, @get_local_task_id(12)); @bind_local_task(b, @get_local_task_id(13)); }
)",
                   cat(high ? "prio.update_task_priority(@get_local_task_id(13), "
                              "prio.level.HIGH); "
                            : "",
                       "threads.update_main_thread_priority(threads.level.HIGH); "
                       "@activate(@get_local_task_id(13)); @activate(@get_local_task_id(12));"))},
        "");
    EXPECT_EQ(out(o, 0), high ? (Words{2, 1}) : (Words{1, 2}));
  }
}

TEST(FabricPrograms, QueuesChangeTheirColor) {
  auto o =
      row({main_task("const oq = @get_output_queue(2); const q = "
                     "@import_module(\"<tile_config/queue_config>\");\n",
                     "q.set_output_queue_color(oq, d); @mov32(@get_dsd(fabout_dsd, .{ .extent = 1, "
                     ".fabric_color = d, .output_queue = oq }), 77);"),
           main_task("export var out = @zeros([2]u32); const q = "
                     "@import_module(\"<tile_config/queue_config>\"); const iq = "
                     "@get_input_queue(2);\n",
                     "out[1] = @as(u32, q.is_empty(iq)) + @as(u32, q.get_input_queue_addr(iq)); "
                     "q.set_input_queue_color(iq, d); @mov32(@get_dsd(mem1d_dsd, .{ .base_address "
                     "= &out, .extent = 1 }), @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = "
                     "d, .input_queue = iq }), .{ .async = true });",
                     "@initialize_queue(iq, .{ .color = c });")},
          "@set_color_config(0, 0, d, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
          "@set_color_config(1, 0, d, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });\n");
  EXPECT_EQ(out(o, 1), (Words{77, 3}));
}

TEST(FabricPrograms, BarrierOfBlockActivateUnblock) {
  // The barrier runs once both have happened: it was activated and unblocked.
  auto o = row({main_task(R"(
export var out = @zeros([3]u32);
var v = [3]u32 { 4, 5, 6 };
const oq = @get_output_queue(3);  // another microthread than the input queue has
const iq = @get_input_queue(2);
const barrier_id = @get_local_task_id(12);
task barrier() void { out[2] = out[0] + out[1]; }
comptime { @bind_local_task(barrier, barrier_id); @block(barrier_id); }
)",
                          R"(
  @mov32(@get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 2 }),
         @get_dsd(fabin_dsd, .{ .extent = 2, .fabric_color = c, .input_queue = iq }), .{ .async = true, .unblock = barrier_id });
  @mov32(@get_dsd(fabout_dsd, .{ .extent = 2, .fabric_color = c, .output_queue = oq }),
         @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 2 }), .{ .async = true, .activate = barrier_id });
)")},
               "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{RAMP} } });\n");
  EXPECT_EQ(out(o, 0), (Words{4, 5, 9}));
}

TEST(FabricPrograms, MicrothreadsByName) {
  // WSE-3: two operations over one queue pair run on named microthreads; @block holds one back.
  auto o =
      row({main_task(
              R"(
export var out = @zeros([2]u32);
const oq = @get_output_queue(2);
const iq = @get_input_queue(2);
const late = @get_ut_id(5);
task go() void { out[1] = 1; @unblock(late); }
comptime { @bind_local_task(go, @get_local_task_id(12)); }
)",
              R"(
  @block(late);
  @mov32(@get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 1 }),
         @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = c, .input_queue = iq }), .{ .async = true, .ut_id = @get_ut_id(4) });
  @mov32(@get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq }), 31, .{ .async = true, .ut_id = late });
  @activate(@get_local_task_id(12));
)",
              "@initialize_queue(oq, .{ .color = c }); @initialize_queue(iq, .{ .color = c });")},
          "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{RAMP} } });\n",
          Arch::wse3);
  EXPECT_EQ(out(o, 0), (Words{31, 1}));
}

TEST(FabricPrograms, TwoHalvesInOneWavelet) {
  // simd_32 packs two 16-bit elements into a wavelet.
  auto o = row({main_task("const oq = @get_output_queue(2); var v = [4]u16 { 1, 2, 3, 4 };\n",
                          "@mov16(@get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = c, "
                          ".output_queue = oq, .simd_mode = .{ .simd_32 = true } }), "
                          "@get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 4 }));"),
                kCollect},
               "@set_color_config(0, 0, c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } });\n"
               "@set_color_config(1, 0, c, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } });\n");
  EXPECT_EQ(out(o, 1), (Words{1 | 2 << 16, 3 | 4 << 16, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace weft::wse::testing
