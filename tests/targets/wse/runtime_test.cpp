// SPDX-License-Identifier: Apache-2.0
// The host's side: copies, launches, streams, checks; on programs compiled from CSL text.
#include "weft/targets/wse/sdk_runtime.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstring>

#include <filesystem>
#include <functional>
#include <numeric>

#include "weft/base/file.h"
#include "weft/targets/wse/csl/compile.h"
#include "weft/targets/wse/picture.h"
#include "weft/targets/wse/program_io.h"

namespace weft::wse {
namespace {

Layout compile_text(const std::string& layout, const std::string& pe, Arch arch = Arch::wse2) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.arch = arch;
  o.memcpy = true;
  o.read_disk = false;
  o.files = {{"layout.csl", layout}, {"pe.csl", pe}};
  o.offset_x = 4;
  o.offset_y = 1;
  return csl::compile(o);
}

const char* kLayout = R"(
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 3, .height = 2, .MEMCPYH2D_1 = @get_color(4), .MEMCPYD2H_1 = @get_color(5) });
layout {
  @set_rectangle(3, 2);
  for (@range(u16, 3)) |x| { for (@range(u16, 2)) |y| {
    @set_tile_code(x, y, "pe.csl", .{ .memcpy_params = memcpy.get_params(x) });
  } }
  @export_name("v", [*]f32, true);
  @export_name("h", [*]u16, true);
  @export_name("seen", [*]f32, false);
  @export_name("scale", fn(f32, i16)void);
  @export_name("silent", fn()void);
}
)";
// scale: v = v * factor + add; `silent` never takes another command; what comes on the stream goes
// back doubled.
const char* kPe = R"(
param memcpy_params: comptime_struct;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
var v = @zeros([4]f32); var h = @zeros([4]u16); var seen = @zeros([1]f32);
var v_ptr: [*]f32 = &v; var h_ptr: [*]u16 = &h; const seen_ptr: [*]f32 = &seen;
const in_queue = @get_input_queue(2);
const out_queue = @get_output_queue(3);
const out_dsd = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = sys_mod.MEMCPYD2H_1, .output_queue = out_queue });
const stream_id: data_task_id = if (@is_arch("wse3")) @get_data_task_id(in_queue) else @get_data_task_id(sys_mod.MEMCPYH2D_1);
fn scale(factor: f32, add: i16) void {
  for (@range(i16, 4)) |i| { v[i] = v[i] * factor + @as(f32, add); }
  sys_mod.unblock_cmd_stream();
}
fn silent() void { seen[0] += 1.0; }
task echo(data: u32) void { @mov32(out_dsd, data * 2); }
comptime {
  @bind_data_task(echo, stream_id);
  if (@is_arch("wse3")) {
    @initialize_queue(in_queue, .{ .color = sys_mod.MEMCPYH2D_1 });
    @initialize_queue(out_queue, .{ .color = sys_mod.MEMCPYD2H_1 });
  }
  @export_symbol(v_ptr, "v"); @export_symbol(h_ptr, "h"); @export_symbol(seen_ptr, "seen");
  @export_symbol(scale); @export_symbol(silent);
}
)";

constexpr auto k32 = MemcpyDataType::MEMCPY_32BIT;
constexpr auto k16 = MemcpyDataType::MEMCPY_16BIT;
constexpr auto kRow = MemcpyOrder::ROW_MAJOR;
constexpr auto kCol = MemcpyOrder::COL_MAJOR;

struct Host {
  SdkRuntime rt;
  explicit Host(Arch arch = Arch::wse2, int threads = 1)
      : rt(compile_text(kLayout, kPe, arch), [&] {
          RuntimeOptions o;
          o.threads = threads;
          return o;
        }()) {
    rt.load();
    rt.run();
  }
};

std::vector<std::uint32_t> words(const std::vector<float>& v) {
  std::vector<std::uint32_t> out(v.size());
  std::memcpy(out.data(), v.data(), 4 * v.size());
  return out;
}

std::string code_of(const std::function<void()>& body, std::string* text = nullptr) {
  try {
    body();
  } catch (const Error& e) {
    if (text) *text = e.what();
    return e.code();
  }
  return "none";
}

class Archs : public ::testing::TestWithParam<Arch> {};
INSTANTIATE_TEST_SUITE_P(Both, Archs, ::testing::Values(Arch::wse2, Arch::wse3));

TEST_P(Archs, CopiesInBothOrdersAndLaunchesWithArguments) {
  Host h(GetParam());
  std::vector<float> in(24);
  std::iota(in.begin(), in.end(), 0.0f);
  auto w = words(in);
  std::int64_t v = h.rt.get_id("v");
  h.rt.memcpy_h2d(v, w.data(), 24, {0, 0, 3, 2, 4}, false, k32, kRow, false);
  std::vector<std::uint64_t> args = {0x40000000u, static_cast<std::uint64_t>(-3)};  // 2.0f, -3
  h.rt.launch(h.rt.get_id("scale"), args, {Ty::f32, Ty::i16}, false);
  h.rt.launch(h.rt.get_id("scale"), args, {Ty::f32, Ty::i16}, true);
  std::vector<float> row(24), col(24);
  h.rt.memcpy_d2h(reinterpret_cast<std::uint32_t*>(row.data()), 24, v, {0, 0, 3, 2, 4}, false, k32,
                  kRow, false);
  h.rt.memcpy_d2h(reinterpret_cast<std::uint32_t*>(col.data()), 24, v, {0, 0, 3, 2, 4}, false, k32,
                  kCol, false);
  for (std::size_t y = 0; y < 2; ++y) {
    for (std::size_t x = 0; x < 3; ++x) {
      for (std::size_t k = 0; k < 4; ++k) {
        float want = (in[(y * 3 + x) * 4 + k] * 2 - 3) * 2 - 3;
        EXPECT_EQ(row[(y * 3 + x) * 4 + k], want);
        EXPECT_EQ(col[y + 2 * (x + 3 * k)], want);
      }
    }
  }
  h.rt.stop();
}

TEST_P(Archs, SixteenBitWordsAndBroadcasts) {
  Host h(GetParam());
  std::int64_t id = h.rt.get_id("h");
  std::vector<std::uint32_t> per_row = {0xff0001, 2, 3, 4, 5, 6, 7, 8}, per_col(12), out(24);
  h.rt.memcpy_h2d(id, per_row.data(), 8, {0, 0, 3, 2, 4}, false, k16, kRow, false, Broadcast::row);
  h.rt.memcpy_d2h(out.data(), 24, id, {0, 0, 3, 2, 4}, false, k16, kRow, false);
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t x = 0; x < 3; ++x)
      for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(out[(y * 3 + x) * 4 + k], y * 4 + k + 1);
  std::iota(per_col.begin(), per_col.end(), 100);
  h.rt.memcpy_h2d(id, per_col.data(), 12, {0, 0, 3, 2, 4}, false, k16, kRow, false,
                  Broadcast::column);
  h.rt.memcpy_d2h(out.data(), 4, id, {2, 1, 1, 1, 4}, false, k16, kRow, false);
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(out[k], 108 + k);
}

TEST_P(Archs, StreamsRunBesideEachOther) {
  for (int threads : {1, 2}) {
    Host h(GetParam(), threads);
    std::vector<std::uint32_t> in(6 * 50), out(6 * 50);
    std::iota(in.begin(), in.end(), 1);
    // The answer is asked for first: nothing may run to its end before the other begins.
    TaskHandle back = h.rt.memcpy_d2h(out.data(), 300, 5, {0, 0, 3, 2, 50}, true, k32, kRow, true);
    EXPECT_FALSE(h.rt.is_task_done(back));  // nothing has been sent yet
    h.rt.memcpy_h2d(4, in.data(), 300, {0, 0, 3, 2, 50}, true, k32, kRow, true);
    h.rt.task_wait(back);
    EXPECT_TRUE(h.rt.is_task_done(back));
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], 2 * in[i]) << i;
    h.rt.stop();
    EXPECT_FALSE(h.rt.fabric().stats().check_books());
  }
}

TEST(Runtime, RefusesWhatDoesNotFit) {
  Host h;
  std::vector<std::uint32_t> w(100);
  std::int64_t v = h.rt.get_id("v");
  std::string text;
  EXPECT_EQ(code_of([&] { h.rt.get_id("w"); }, &text), "wse.symbol.unknown");
  EXPECT_NE(text.find("it exports v, h, seen"), std::string::npos) << text;
  EXPECT_EQ(code_of(
                [&] {
                  h.rt.memcpy_h2d(v, w.data(), 24, {1, 0, 3, 2, 4}, false, k32, kRow, false);
                },
                &text),
            "wse.memcpy.region");
  EXPECT_NE(text.find("3 x 2 rectangle"), std::string::npos) << text;
  EXPECT_EQ(code_of(
                [&] {
                  h.rt.memcpy_h2d(v, w.data(), 23, {0, 0, 3, 2, 4}, false, k32, kRow, false);
                },
                &text),
            "wse.memcpy.size");
  EXPECT_NE(text.find("23 elements, the region needs 24"), std::string::npos) << text;
  EXPECT_EQ(code_of(
                [&] {
                  h.rt.memcpy_h2d(v, w.data(), 6, {0, 0, 1, 1, 6}, false, k32, kRow, false);
                },
                &text),
            "wse.memcpy.extent");
  EXPECT_NE(text.find("has 16 bytes"), std::string::npos) << text;
}

TEST(Runtime, RefusesWrongKinds) {
  Host h;
  std::vector<std::uint32_t> w(100);
  std::string text;
  EXPECT_EQ(code_of(
                [&] {
                  h.rt.memcpy_h2d(h.rt.get_id("seen"), w.data(), 1, {0, 0, 1, 1, 1}, false, k32,
                                  kRow, false);
                },
                &text),
            "wse.symbol.immutable");
  EXPECT_NE(text.find("\"seen\""), std::string::npos);
  EXPECT_EQ(code_of(
                [&] {
                  h.rt.memcpy_h2d(h.rt.get_id("scale"), w.data(), 1, {0, 0, 1, 1, 1}, false, k32,
                                  kRow, false);
                },
                &text),
            "wse.symbol.kind");
  EXPECT_NE(text.find("cannot be copied"), std::string::npos);
  EXPECT_EQ(code_of(
                [&] {
                  h.rt.memcpy_h2d(99, w.data(), 1, {0, 0, 1, 1, 1}, false, k32, kRow, false);
                },
                &text),
            "wse.symbol.id");
  EXPECT_NE(text.find("symbol id 99"), std::string::npos);
  EXPECT_EQ(code_of(
                [&] {
                  h.rt.memcpy_h2d(9, w.data(), 1, {0, 0, 1, 1, 1}, true, k32, kRow, false);
                },
                &text),
            "wse.stream.color");
  EXPECT_NE(text.find("colour 9"), std::string::npos);
  EXPECT_EQ(code_of([&] { h.rt.launch(h.rt.get_id("scale"), {1}, {Ty::f32}, false); }, &text),
            "wse.launch.arguments");
  EXPECT_NE(text.find("takes (f32, i16) and was given (f32)"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { h.rt.task_wait(77); }, &text), "wse.runtime.task");
  EXPECT_NE(text.find("task 77"), std::string::npos);
  EXPECT_EQ(code_of([&] { h.rt.read_symbol(0, 0, "v"); }, &text), "wse.pe.outside");
  EXPECT_NE(text.find("3 x 2 at (4, 1)"), std::string::npos) << text;
  EXPECT_EQ(h.rt.read_symbol(4, 1, "v").size(), 16u);
  h.rt.stop();
  EXPECT_EQ(code_of(
                [&] {
                  h.rt.memcpy_h2d(h.rt.get_id("v"), w.data(), 4, {0, 0, 1, 1, 4}, false, k32, kRow,
                                  false);
                },
                &text),
            "wse.runtime.order");
  EXPECT_NE(text.find("after stop()"), std::string::npos);
  RuntimeOptions o;
  o.cmaddr = "10.1.2.3:9000";
  EXPECT_EQ(code_of([&] { SdkRuntime rt("nowhere", o); }, &text), "wse.runtime.hardware");
  EXPECT_NE(text.find("10.1.2.3:9000"), std::string::npos);
}

TEST(Runtime, AskingForEverEnds) {
  Host h;
  std::vector<std::uint32_t> out(6);
  TaskHandle back = h.rt.memcpy_d2h(out.data(), 6, 5, {0, 0, 3, 2, 1}, true, k32, kRow, true);
  EXPECT_EQ(code_of([&] {
              while (!h.rt.is_task_done(back)) {
              }
            }),
            "wse.command.stalled");
}

TEST(Runtime, SilentProgramsAreNamedByTheNextCommand) {
  Host h;
  std::vector<std::uint32_t> w(24);
  h.rt.launch(h.rt.get_id("silent"), {}, {},
              false);  // delivered; whether it unblocks is its own affair
  std::string text;
  EXPECT_EQ(code_of(
                [&] {
                  h.rt.memcpy_d2h(w.data(), 24, h.rt.get_id("v"), {0, 0, 3, 2, 4}, false, k32, kRow,
                                  false);
                },
                &text),
            "wse.command.stalled");
  EXPECT_NE(text.find("pe (2, 1): has not called unblock_cmd_stream"), std::string::npos) << text;
}

TEST(Runtime, ArtifactsAreWholeOrRefused) {
  namespace fs = std::filesystem;
  std::string dir =
      (fs::temp_directory_path() / cat("weft-wse-artifact-", static_cast<std::int64_t>(::getpid())))
          .string();
  Layout l = compile_text(kLayout, kPe);
  write_artifact(l, dir);
  write_artifact(l, dir);  // again, in its place
  Layout back = read_artifact(dir);
  EXPECT_EQ(back.tiles, l.tiles);
  ASSERT_EQ(back.programs.size(), l.programs.size());
  EXPECT_EQ(to_bytes(back.programs[0]), to_bytes(l.programs[0]));
  EXPECT_NE(read_file(dir + "/out.json").find("\"params\""), std::string::npos);
  std::string text, file = dir + "/bin/out_0.bin", whole = read_file(file);
  for (std::size_t cut : {std::size_t{0}, std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
    write_file_atomic(file, whole.substr(0, cut));
    EXPECT_EQ(code_of([&] { read_artifact(dir); }, &text), "wse.artifact.read") << cut;
  }
  std::string bad = whole;
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
  write_file_atomic(file, bad);
  EXPECT_EQ(code_of([&] { read_artifact(dir); }, &text), "wse.artifact.read");
  EXPECT_NE(text.find("out_0.bin"), std::string::npos);
  fs::remove_all(dir);
  EXPECT_EQ(code_of([&] { read_artifact(dir); }), "wse.artifact.read");
  fs::create_directories(dir + "/mine");
  EXPECT_EQ(code_of([&] { write_artifact(l, dir); }, &text), "wse.artifact.write");
  EXPECT_NE(text.find("not a directory that cslc wrote"), std::string::npos) << text;
  fs::remove_all(dir);
}

TEST(Runtime, HeatMapsArePictures) {
  Host h;
  std::vector<std::uint32_t> in(6, 1), out(6);
  h.rt.memcpy_h2d(4, in.data(), 6, {0, 0, 3, 2, 1}, true, k32, kRow, true);
  h.rt.memcpy_d2h(out.data(), 6, 5, {0, 0, 3, 2, 1}, true, k32, kRow, false);
  std::string base = (std::filesystem::temp_directory_path() /
                      cat("weft-heat-", static_cast<std::int64_t>(::getpid())))
                         .string();
  write_heat_map(h.rt.fabric(), "busy", base + ".svg");
  write_heat_map(h.rt.fabric(), "ramp", base + ".png");
  EXPECT_NE(read_file(base + ".svg").find("PE (2, 1): "), std::string::npos);
  EXPECT_EQ(read_file(base + ".png").substr(1, 3), "PNG");
  std::string text;
  EXPECT_EQ(code_of([&] { write_heat_map(h.rt.fabric(), "warmth", base + ".svg"); }, &text),
            "wse.picture.what");
  EXPECT_NE(text.find("there are busy, stall"), std::string::npos);
  EXPECT_EQ(code_of([&] { write_heat_map(h.rt.fabric(), "busy", base + ".gif"); }),
            "wse.picture.format");
  std::filesystem::remove(base + ".svg");
  std::filesystem::remove(base + ".png");
}

}  // namespace
}  // namespace weft::wse
