// SPDX-License-Identifier: Apache-2.0
// Built-ins about registers, filters, queues that run empty, control task tables, values from
// files and the host's symbols.
#include <gtest/gtest.h>

#include "csl_run.h"
#include "expect.h"
#include "weft/base/dtype.h"
#include "weft/base/text.h"
#include "weft/targets/wse/sdk_runtime.h"

namespace weft::wse::testing {
namespace {

TEST(Config, RegistersHoldWhatIsWritten) {
  auto o = single(as_task(
      "const addresses = @import_module(\"<tile_config/addresses>\");\n"
      "export var out = @zeros([4]u32); var k: u16 = 3;\n"
      "comptime { @set_config(addresses.SCRATCH + 1, 77); }\n",
      "@set_config(addresses.SCRATCH + k, 1234); out[0] = @as(u32, @get_config(addresses.SCRATCH "
      "+ 3)); out[1] = @as(u32, @get_config(addresses.SCRATCH + 1)); out[2] = @as(u32, "
      "@get_config(addresses.SCRATCH)); @set_config(addresses.SCRATCH + 1, 5); out[3] = @as(u32, "
      "@get_config(addresses.SCRATCH + 1));"));
  EXPECT_EQ(run_words(o), (Words{1234, 77, 0, 5}));
}

TEST(Config, RoutesAndSwitchesAreRegisters) {
  auto o = single(as_task(
      "const addresses = @import_module(\"<tile_config/addresses>\");\n"
      "export var out = @zeros([5]u32); const c = @get_color(4);\n"
      "comptime { @set_local_color_config(c, .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} }, "
      ".switches = .{ .pos1 = .{ .tx = WEST }, .ring_mode = true, .pop_mode = .{ .always_pop = "
      "true } } }); }\n",
      "out[0] = @as(u32, @get_config(addresses.ROUTES + 4)); out[1] = @as(u32, "
      "@get_config(addresses.SWITCHES + 4)); @set_config_unchecked(addresses.SWITCHES + 4, 1); "
      "out[2] = @as(u32, @get_config(addresses.ROUTES + 4)); out[3] = @as(u32, "
      "@get_config(addresses.SWITCHES + 4)); out[4] = @as(u32, @get_config(addresses.TEARDOWN));"));
  // Ports: east 0, west 1, north 2, south 3, ramp 4; inputs in the low five bits.
  EXPECT_EQ(run_words(o), (Words{16 | 1 << 5, 4 | 1 << 3, 16 | 2 << 5, 1, 0}));
  expect_error(single("comptime { @set_config(4, 1); }"), "wse.csl.config.managed",
               "register 4 belongs to the routes");
  // The later of two values holds, and can be asked for at compile time.
  EXPECT_EQ(run_words(single(as_task(
                "export var out = @zeros([3]u32);\ncomptime { @set_config(200, 1); "
                "@set_config(200, 2); @set_config(201, @get_config(200) + 40); }\n",
                "out[0] = @as(u32, @get_config(200, .{ 190, 210 })); out[1] = @as(u32, "
                "@get_config_unchecked(201)); @set_config(202, 9, .{ .{ 1, 5 }, .{ 200, 203 } }); "
                "out[2] = @as(u32, @get_config(202));"))),
            (Words{2, 42, 9}));
  expect_error(single("comptime { const x = @get_config(300); }"), "wse.csl.config.unset",
               "register 300 has no value");
  expect_error(single(as_task("", "@set_config(200, 1, .{ 1, 5 });")), "wse.csl.config.range",
               "address 200 lies in none of the 1 ranges");
  expect_error(single(as_task("", "@set_config(200, 1, .{ 7, 5 });")), "wse.csl.config.range",
               "the range from 7 to 5 is empty");
}

TEST(Config, FiltersAreNumberedByColor) {
  const std::string filter =
      ", .filter = .{ .kind = .{ .counter = true }, .count_data = true, .limit1 = 3, .max_counter "
      "= 1 } }); ";
  const std::string route = ".{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} }";
  std::string globals =
      "export var out = @zeros([4]u32);\nconst a = @get_color(9); const b = @get_color(2); const "
      "tile = @import_module(\"<tile_config>\");\ncomptime { @set_local_color_config(a, " +
      route + filter + "@set_local_color_config(b, " + route + filter + "}\n";
  auto o = single(
      as_task(globals,
              "out[0] = @as(u32, @get_filter_id(a)); out[1] = @as(u32, @get_filter_id(b)); "
              "tile.filters.set_counter(@get_filter_id(a), 2); out[2] = @as(u32, "
              "@get_config(tile.addresses.FILTER_COUNTERS + 9)); tile.filters.set_counter(b, 1); "
              "tile.filters.set_limit1(b, 5); tile.filters.set_limit2(a, 5); "
              "tile.filters.set_max_counter(b, 4); out[3] = @as(u32, "
              "@get_config(tile.addresses.FILTER_COUNTERS + 2));"));
  EXPECT_EQ(run_words(o), (Words{1, 0, 2, 1}));
  expect_fault(
      single(as_task("var id: u16 = 0; const c = @get_color(3);\n", "id = @get_filter_id(c);")),
      "wse.config.filter", "colour 3 has no filter");
  expect_fault(single(as_task("const f = @import_module(\"<tile_config/filters>\"); var k: u16 = "
                              "7;\n",
                              "f.set_counter(k, 1);")),
               "wse.config.filter", "filter 7 does not exist");
  expect_error(single(as_task("var id: u16 = 0;\n", "id = @get_filter_id(4);")),
               "wse.csl.type.mismatch", "takes a color");
}

TEST(Config, ValuesFromFiles) {
  auto o = single(
      as_task("const table = @import_comptime_value([2, 3]u16, \"data.json\");\n"
              "const shape = @import_comptime_value(comptime_struct, \"shape.json\");\n"
              "const pair = @import_comptime_value(struct { n: i16, on: bool }, \"pair.json\");\n"
              "export var out = @zeros([shape.count]u32); var m = table;\n",
              "out[0] = @as(u32, m[1, 2]); out[1] = @as(u32, shape.scale * 4.0); out[2] = "
              "@strlen(shape.name); "
              "out[3] = @as(u32, pair.n) + @as(u32, pair.on); out[4] = shape.list[1];"));
  o.files["data.json"] = "[[1, 2, 3], [4, 5, 60]]";
  o.files["shape.json"] = R"({"count": 5, "scale": 2.5, "name": "abc", "list": [7, 8]})";
  o.files["pair.json"] = R"({"n": 41, "on": true})";
  EXPECT_EQ(run_words(o), (Words{60, 10, 3, 42, 8}));
  auto wrong = [&](const char* type, const char* text, const char* code, const char* says) {
    auto w = single(cat("const v = @import_comptime_value(", type,
                        ", \"v.json\"); comptime { @comptime_assert(@is_same_type(@type_of(v), "
                        "void)); }"));
    w.files["v.json"] = text;
    expect_error(w, code, says);
  };
  wrong("u16", "70000", "wse.csl.json.type", "does not fit u16");
  wrong("u16", "1.5", "wse.csl.json.type", "a fraction");
  wrong("[3]u16", "[1, 2]", "wse.csl.json.type", "holds 2 elements");
  wrong("struct { a: u16 }", "{}", "wse.csl.json.type", "no member \"a\"");
  wrong("bool", "1", "wse.csl.json.type", "a number");
  wrong("color", "1", "wse.csl.json.type", "cannot be read");
  wrong("u16", "{", "wse.csl.json.parse", "is not JSON");
  expect_error(single("const v = @import_comptime_value(u16, \"none.json\"); comptime { "
                      "@comptime_assert(v == 1); }"),
               "wse.csl.file.missing", "none.json");
}

TEST(Config, EmptyQueuesCallTheirHandlers) {
  // Two PEs; the first sends four words and asks to be told when its queue is empty.
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.read_disk = false;
  o.arch = Arch::wse3;
  o.files["layout.csl"] =
      "const c = @get_color(2); layout { @set_rectangle(2, 1); @set_tile_code(0, 0, \"a.csl\", .{ "
      ".c = c }); @set_tile_code(1, 0, \"b.csl\", .{ .c = c }); @set_color_config(0, 0, c, .{ "
      ".routes = .{ .rx = .{RAMP}, .tx = .{EAST} } }); @set_color_config(1, 0, c, .{ .routes = .{ "
      ".rx = .{WEST}, .tx = .{RAMP} } }); }";
  o.files["a.csl"] = R"(
param c: color;
const q = @get_output_queue(2);
export var out = @zeros([3]u32);
var data = [4]u32 { 1, 2, 3, 4 };
const to = @get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = c, .output_queue = q });
const from = @get_dsd(mem1d_dsd, .{ .base_address = &data, .extent = 4 });
const flush = @import_module("<tile_config/queue_flush>");
fn emptied() void { out[0] += 1; out[2] = @as(u32, flush.is_pending(q)); flush.exit(q); }
task main() void {
  @mov32(to, from, .{ .async = true, .activate = done });
}
task done() void { @queue_flush(q); out[1] = 9; }
comptime {
  @initialize_queue(q, .{ .color = c });
  @set_empty_queue_handler(emptied, q);
  @bind_local_task(main, @get_local_task_id(9));
  @bind_local_task(done, @get_local_task_id(10));
  @activate(@get_local_task_id(9));
}
)";
  o.files["b.csl"] = R"(
param c: color;
const q = @get_input_queue(2);
export var out = @zeros([4]u32);
const to = @get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 4 });
task main() void {
  @mov32(to, @get_dsd(fabin_dsd, .{ .extent = 4, .fabric_color = c, .input_queue = q }), .{ .async = true });
}
comptime {
  @initialize_queue(q, .{ .color = c });
  @bind_local_task(main, @get_local_task_id(9));
  @activate(@get_local_task_id(9));
}
)";
  EXPECT_EQ(run_words(o, 0, 0), (Words{1, 9, 0}));  // called once, the pending bit already cleared
  EXPECT_EQ(run_words(o, 1, 0), (Words{1, 2, 3, 4}));
  auto unbound = o;
  std::string& a = unbound.files["a.csl"];
  a.erase(a.find("  @set_empty_queue_handler"), 41);
  expect_fault(unbound, "wse.task.empty_unbound", "queue 2 was flushed");
  // With task 29 bound by the program the library tells which queue it was.
  auto bound = o;
  std::string& b = bound.files["a.csl"];
  b.replace(b.find("  @set_empty_queue_handler(emptied, q);"), 39,
            "  @bind_local_task(emptied, @get_local_task_id(29));");
  b.replace(b.find("fn emptied"), 2, "task");
  EXPECT_EQ(run_words(bound, 0, 0), (Words{1, 9, 1}));
  const std::string handler = "fn f() void { } const q = @get_output_queue(2); comptime { ";
  expect_error(single(handler + "@set_empty_queue_handler(f, q); }"), "wse.csl.builtin.wse3",
               "WSE-3 only");
  expect_error(single(handler + "@set_empty_queue_handler(f, q); @set_empty_queue_handler(f, q); }",
                      Arch::wse3),
               "wse.csl.queue.handler_twice", "output queue 2");
}

TEST(Config, ControlTasksMayHaveTheirOwnTable) {
  // PE 0 sends control wavelets that name entry 10 on two colors; the table index of the second
  // queue adds two entries. Local task 10 is another task.
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.read_disk = false;
  o.arch = Arch::wse3;
  o.files["layout.csl"] =
      "const c = @get_color(2); const d = @get_color(3); layout { @set_rectangle(2, 1); "
      "@set_tile_code(0, 0, \"a.csl\", .{ .c = c, .d = d }); @set_tile_code(1, 0, \"b.csl\", .{ .c "
      "= c, .d = d }); for ([2]color { c, d }) |k| { @set_color_config(0, 0, k, .{ .routes = .{ "
      ".rx = .{RAMP}, .tx = .{EAST} } }); @set_color_config(1, 0, k, .{ .routes = .{ .rx = "
      ".{WEST}, .tx = .{RAMP} } }); } }";
  o.files["a.csl"] = R"(
param c: color;
param d: color;
const ctrl = @import_module("<control>");
const q = @get_output_queue(2);
const r = @get_output_queue(3);
task main() void {
  const word = ctrl.encode_control_task_payload(@get_control_task_id(10));
  @mov32(@get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = q, .control = true }), word);
  @mov32(@get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = d, .output_queue = r, .control = true }), word);
}
comptime {
  @initialize_queue(q, .{ .color = c });
  @initialize_queue(r, .{ .color = d });
  @bind_local_task(main, @get_local_task_id(9));
  @activate(@get_local_task_id(9));
}
)";
  o.files["b.csl"] = R"(
param c: color;
param d: color;
export var out = @zeros([3]u32);
task first() void { out[0] += 1; @activate(@get_local_task_id(10)); }
task second() void { out[1] += 1; }
task local() void { out[2] += 1; }
comptime {
  @set_control_task_table(.{ .instructions = 8, .stride = 2 });
  @initialize_queue(@get_input_queue(2), .{ .color = c });
  @initialize_queue(@get_input_queue(3), .{ .color = d, .ctrl_table_id = 1 });
  @bind_control_task(first, @get_control_task_id(10));
  @bind_control_task(second, @get_control_task_id(12));
  @bind_local_task(local, @get_local_task_id(10));
}
)";
  EXPECT_EQ(run_words(o, 1, 0), (Words{1, 1, 1}));
  auto clash = o;
  std::string& b = clash.files["b.csl"];
  std::size_t table = b.find("  @set_control_task_table");
  b.erase(table, b.find('\n', table) - table);
  expect_error(clash, "wse.csl.task.clash", "both bound to entry point 10");
  for (const char* bad : {"@set_control_task_table(.{ .instructions = 3 });",
                          "@set_control_task_table(.{ .stride = 9 });",
                          "@set_control_task_table(); @set_control_task_table();"})
    expect_error(single(cat("comptime { ", bad, " }"), Arch::wse3), "wse.csl.task.table", "table");
  expect_error(single("comptime { @set_control_task_table(); }"), "wse.csl.builtin.wse3",
               "WSE-3 only");
  expect_error(single("comptime { @initialize_queue(@get_input_queue(2), .{ .color = "
                      "@get_color(1), .ctrl_table_id = 9 }); }",
                      Arch::wse3),
               "wse.csl.id.range", "ctrl_table_id");
}

TEST(Config, SymbolsOfTheHost) {
  auto o = single(as_task(
      "var a = [3]u32 { 4, 5, 6 }; var b = [2]f32 { 1.5, 2.5 };\nvar pa: [*]u32 = &a; var pb: "
      "[*]f32 = &b; export var out = @zeros([6]u32); var id: u16 = 1;\nfn f(x: u32) u32 { return x "
      "+ 1; }\ncomptime { @export_symbol(pa, \"a\"); @export_symbol(pb, \"b\"); @export_symbol(f); "
      "@rpc(@get_data_task_id(@get_color(5))); }\n",
      "const p = @get_tensor_ptr(@get_symbol_id(\"a\")); out[0] = p[2]; out[1] = "
      "@get_symbol_value(\"a\")[1]; out[2] = @get_symbol_value(\"f\")(41); const q = "
      "@get_tensor_ptr(id); out[3] = @bitcast(u32, @bitcast([*]f32, @bitcast(u16, q))[1]); id = 9; "
      "out[4] = @as(u32, @bitcast(u16, @get_tensor_ptr(id))); out[5] = @as(u32, "
      "@has_exported_tensors());"));
  o.files["layout.csl"] =
      "layout { @set_rectangle(1, 1); @set_tile_code(0, 0, \"pe.csl\"); @export_name(\"a\", "
      "[*]u32, true); @export_name(\"b\", [*]f32, true); @export_name(\"f\", fn(u32)u32); "
      "@export_name(\"late\", [*]f32, true); }";
  EXPECT_EQ(run_words(o), (Words{6, 5, 42, 0x40200000, 0, 1}));
  auto bad = [&](const char* body, const char* code, const char* says) {
    auto w =
        single(as_task("var a: u32 = 0; var p: *u32 = &a; fn f(x: u32) u32 { return x; } "
                       "comptime { @export_symbol(f); }\n",
                       body));
    w.files["layout.csl"] = o.files["layout.csl"];
    expect_error(w, code, says);
  };
  bad("a = @get_symbol_value(\"late\")[0];", "wse.csl.export.unbound", "does not export \"late\"");
  bad("a = @get_symbol_value(\"none\")[0];", "wse.csl.export.unknown", "no symbol");
  bad("const q = @get_tensor_ptr(\"f\"); a = q[0];", "wse.csl.export.type", "no tensor");
  expect_error(single("comptime { @rpc(); @rpc(); }"), "wse.csl.rpc.twice", "twice");
  expect_error(single("comptime { @rpc(5.0); }"), "wse.csl.type.mismatch", "@rpc takes");
}

}  // namespace
}  // namespace weft::wse::testing
