// SPDX-License-Identifier: Apache-2.0
// Speed and size of the fabric: `wse_bench [threads [case [width height]]]` prints one JSON
// object per case.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/targets/wse/csl/compile.h"
#include "weft/targets/wse/sdk_runtime.h"

namespace {

using namespace weft;
using namespace weft::wse;

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

// Processor time of the whole program: on a busy machine the honest figure.
double cpu_now() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

long resident_mib() {
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  long total = 0, pages = 0;
  if (f) {
    if (std::fscanf(f, "%ld %ld", &total, &pages) != 2) pages = 0;
    std::fclose(f);
  }
  return pages / 256;
}

Layout compile_text(const std::string& layout, const std::string& pe,
                    const std::vector<std::pair<std::string, std::int64_t>>& params) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.memcpy = true;
  o.read_disk = false;
  o.files = {{"layout.csl", layout}, {"pe.csl", pe}};
  o.params = params;
  o.offset_x = 4;
  o.offset_y = 1;
  return csl::compile(o);
}

// A row of PEs: each adds its vector to the sum that comes from the east.
const char* kChainLayout = R"(
param w: u16; param n: u16;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = w, .height = 1 });
const c = [2]color{ @get_color(0), @get_color(1) };
layout {
  @set_rectangle(w, 1);
  for (@range(u16, w)) |x| {
    @set_tile_code(x, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(x), .n = n, .first = x == 0, .last = x == w - 1,
                                      .to = c[x % 2], .from = c[(x + 1) % 2] });
    if (x > 0) @set_color_config(x, 0, c[x % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
    if (x < w - 1) @set_color_config(x, 0, c[(x + 1) % 2], .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
  }
  @export_name("v", [*]f32, true);
  @export_name("go", fn()void);
}
)";
const char* kChainPe = R"(
param memcpy_params: comptime_struct; param n: u16; param first: bool; param last: bool; param to: color; param from: color;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
var v = @zeros([n]f32);
var v_ptr: [*]f32 = &v;
const v_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> v[i] });
const in_dsd = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = from, .input_queue = @get_input_queue(2) });
const out_dsd = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = to, .output_queue = @get_output_queue(3) });
fn go() void {
  if (last) { @fmovs(out_dsd, v_dsd); }
  else if (first) { @fadds(v_dsd, in_dsd, v_dsd); }
  else { @fadds(out_dsd, in_dsd, v_dsd); }
  sys_mod.unblock_cmd_stream();
}
comptime { @export_symbol(v_ptr, "v"); @export_symbol(go); }
)";

void chain(int threads) {
  const int w = 512, n = 4096;
  Layout l = compile_text(kChainLayout, kChainPe, {{"w", w}, {"n", n}});
  SdkRuntime rt(std::move(l), [&] {
    RuntimeOptions o;
    o.threads = threads;
    return o;
  }());
  rt.load();
  rt.run();
  std::vector<std::uint32_t> ones(static_cast<std::size_t>(w) * n, 0x3f800000u);
  rt.memcpy_h2d(rt.get_id("v"), ones.data(), static_cast<std::int64_t>(ones.size()),
                {0, 0, w, 1, n}, false, MemcpyDataType::MEMCPY_32BIT, MemcpyOrder::ROW_MAJOR,
                false);
  double best = 1e9, cpu = 1e9;
  Cycle cycles = 0;
  std::int64_t hops = 0;
  for (int k = 0; k < 5; ++k) {
    Cycle from = rt.fabric().now();
    std::int64_t before = rt.fabric().hops();
    auto t = std::chrono::steady_clock::now();
    double c = cpu_now();
    rt.launch(rt.get_id("go"), {}, {}, false);
    double s = seconds_since(t);
    cpu = std::min(cpu, cpu_now() - c);
    cycles = rt.fabric().now() - from;
    hops = rt.fabric().hops() - before;
    best = std::min(best, s);
  }
  std::printf(
      "{\"case\": \"chain 512x1, 4096 f32\", \"threads\": %d, \"cycles\": %lld, \"seconds\": %.4f, "
      "\"cpu_s\": %.4f, \"tile_cycles_per_s\": %.1fe6, \"hops_per_s\": %.1fe6}\n",
      threads, static_cast<long long>(cycles), best, cpu,
      w * static_cast<double>(cycles) / best / 1e6, static_cast<double>(hops) / best / 1e6);
}

// A torus-free systolic product: every PE holds blocks of A, B and C; A is broadcast along the row
// by its owner in turn, B along the column.
const char* kGemmLayout = R"(
param p: u16; param m: u16;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = p, .height = p });
const a_color = [2]color{ @get_color(0), @get_color(1) };
const b_color = [2]color{ @get_color(2), @get_color(3) };
layout {
  @set_rectangle(p, p);
  for (@range(u16, p)) |x| { for (@range(u16, p)) |y| {
    @set_tile_code(x, y, "pe.csl", .{ .memcpy_params = memcpy.get_params(x), .m = m, .p = p, .x_last = x == p - 1, .y_last = y == p - 1,
      .x_first = x == 0, .y_first = y == 0, .a_to = a_color[x % 2], .a_from = a_color[(x + 1) % 2], .b_to = b_color[y % 2], .b_from = b_color[(y + 1) % 2] });
    if (x < p - 1) @set_color_config(x, y, a_color[x % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
    if (x > 0) @set_color_config(x, y, a_color[(x + 1) % 2], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
    if (y < p - 1) @set_color_config(x, y, b_color[y % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ SOUTH } } });
    if (y > 0) @set_color_config(x, y, b_color[(y + 1) % 2], .{ .routes = .{ .rx = .{ NORTH }, .tx = .{ RAMP } } });
  } }
  @export_name("a", [*]f32, true); @export_name("b", [*]f32, true); @export_name("c", [*]f32, true);
  @export_name("go", fn()void);
}
)";
const char* kGemmPe = R"(
param memcpy_params: comptime_struct; param m: u16; param p: u16; param x_first: bool; param x_last: bool; param y_first: bool; param y_last: bool;
param a_to: color; param a_from: color; param b_to: color; param b_from: color;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
const size = m * m;
var a = @zeros([size]f32); var b = @zeros([size]f32); var c = @zeros([size]f32);
var a_ptr: [*]f32 = &a; var b_ptr: [*]f32 = &b; var c_ptr: [*]f32 = &c;
const a_all = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{size} -> a[i] });
const b_all = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{size} -> b[i] });
const b_row = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{m} -> b[i] });
const c_row = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{m} -> c[i] });
const a_in = @get_dsd(fabin_dsd, .{ .extent = size, .fabric_color = a_from, .input_queue = @get_input_queue(2) });
const a_out = @get_dsd(fabout_dsd, .{ .extent = size, .fabric_color = a_to, .output_queue = @get_output_queue(3) });
const b_in = @get_dsd(fabin_dsd, .{ .extent = size, .fabric_color = b_from, .input_queue = @get_input_queue(4) });
const b_out = @get_dsd(fabout_dsd, .{ .extent = size, .fabric_color = b_to, .output_queue = @get_output_queue(5) });
fn multiply() void {
  for (@range(i16, @as(i16, m))) |i| {
    const acc = @increment_dsd_offset(c_row, i * @as(i16, m), f32);
    for (@range(i16, @as(i16, m))) |k| {
      @fmacs(acc, acc, @increment_dsd_offset(b_row, k * @as(i16, m), f32), a[i * @as(i16, m) + k]);
    }
  }
}
// p steps: multiply what is here, then pass A east and B south.
fn go() void {
  for (@range(u16, p)) |step| {
    multiply();
    if (!x_last) @fmovs(a_out, a_all);
    if (!x_first) @fmovs(a_all, a_in);
    if (!y_last) @fmovs(b_out, b_all);
    if (!y_first) @fmovs(b_all, b_in);
  }
  sys_mod.unblock_cmd_stream();
}
comptime {
  @export_symbol(a_ptr, "a"); @export_symbol(b_ptr, "b"); @export_symbol(c_ptr, "c"); @export_symbol(go);
}
)";

void gemm(int threads, int p, int m) {
  Layout l = compile_text(kGemmLayout, kGemmPe, {{"p", p}, {"m", m}});
  SdkRuntime rt(std::move(l), [&] {
    RuntimeOptions o;
    o.threads = threads;
    return o;
  }());
  rt.load();
  rt.run();
  Cycle from = rt.fabric().now();
  auto t = std::chrono::steady_clock::now();
  double c = cpu_now();
  rt.launch(rt.get_id("go"), {}, {}, false);
  double s = seconds_since(t), cpu = cpu_now() - c;
  Cycle cycles = rt.fabric().now() - from;
  std::printf(
      "{\"case\": \"GEMM %dx%d PEs, %dx%d blocks passed on\", \"threads\": %d, \"cycles\": %lld, "
      "\"seconds\": %.3f, \"cpu_s\": %.3f, \"tile_cycles_per_s\": %.1fe6, \"hops_per_s\": %.1fe6, "
      "\"steps\": %lld}\n",
      p, p, m, m, threads, static_cast<long long>(cycles), s, cpu,
      p * p * static_cast<double>(cycles) / s / 1e6,
      static_cast<double>(rt.fabric().hops()) / s / 1e6,
      static_cast<long long>(rt.fabric().pe_steps()));
}

// y = A x over the whole wafer: x comes in along the top, partial sums go west in a chain.
const char* kGemvLayout = R"(
param w: u16; param h: u16; param rows: u16; param cols: u16;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = w, .height = h });
const c = [2]color{ @get_color(0), @get_color(1) };
layout {
  @set_rectangle(w, h);
  for (@range(u16, w)) |x| { for (@range(u16, h)) |y| {
    @set_tile_code(x, y, "pe.csl", .{ .memcpy_params = memcpy.get_params(x), .rows = rows, .cols = cols, .first = x == 0, .last = x == w - 1,
                                      .to = c[x % 2], .from = c[(x + 1) % 2] });
    if (x > 0) @set_color_config(x, y, c[x % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
    if (x < w - 1) @set_color_config(x, y, c[(x + 1) % 2], .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
  } }
  @export_name("A", [*]f32, true); @export_name("x", [*]f32, true); @export_name("y", [*]f32, true);
  @export_name("go", fn()void);
}
)";
const char* kGemvPe = R"(
param memcpy_params: comptime_struct; param rows: u16; param cols: u16; param first: bool; param last: bool; param to: color; param from: color;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
const size = rows * cols;
var A = @zeros([size]f32); var x = @zeros([cols]f32); var y = @zeros([rows]f32);
var A_ptr: [*]f32 = &A; var x_ptr: [*]f32 = &x; var y_ptr: [*]f32 = &y;
const A_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{rows} -> A[i * cols] });
const y_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{rows} -> y[i] });
const in_dsd = @get_dsd(fabin_dsd, .{ .extent = rows, .fabric_color = from, .input_queue = @get_input_queue(2) });
const out_dsd = @get_dsd(fabout_dsd, .{ .extent = rows, .fabric_color = to, .output_queue = @get_output_queue(3) });
fn go() void {
  for (@range(i16, @as(i16, cols))) |k| { @fmacs(y_dsd, y_dsd, @increment_dsd_offset(A_dsd, k, f32), x[k]); }
  if (last) { @fmovs(out_dsd, y_dsd); }
  else if (first) { @fadds(y_dsd, in_dsd, y_dsd); }
  else { @fadds(out_dsd, in_dsd, y_dsd); }
  sys_mod.unblock_cmd_stream();
}
comptime { @export_symbol(A_ptr, "A"); @export_symbol(x_ptr, "x"); @export_symbol(y_ptr, "y"); @export_symbol(go); }
)";

void wafer(int threads, int w, int h) {
  const int rows = 25, cols = 33;  // 990 * 25 = 24,750 by 750 * 33 = 24,750
  auto t = std::chrono::steady_clock::now();
  Layout l =
      compile_text(kGemvLayout, kGemvPe, {{"w", w}, {"h", h}, {"rows", rows}, {"cols", cols}});
  double compile = seconds_since(t);
  t = std::chrono::steady_clock::now();
  SdkRuntime rt(std::move(l), [&] {
    RuntimeOptions o;
    o.threads = threads;
    return o;
  }());
  rt.load();
  rt.run();
  double open = seconds_since(t);
  long opened = resident_mib();
  std::printf(
      "{\"case\": \"open %dx%d\", \"compile_s\": %.2f, \"open_s\": %.3f, \"resident_mib\": %ld}\n",
      w, h, compile, open, opened);
  std::fflush(stdout);
  t = std::chrono::steady_clock::now();
  // A in rows of the rectangle, so that the host never holds all of it. Small integers: sums are
  // exact.
  auto element = [](std::int64_t i, std::int64_t j) {
    return static_cast<float>((i * 7 + j * 3) % 5 - 2);
  };
  std::vector<float> line(static_cast<std::size_t>(w) * rows * cols),
      x(static_cast<std::size_t>(w) * cols);
  std::vector<double> want(static_cast<std::size_t>(h) * rows);
  for (std::size_t j = 0; j < x.size(); ++j)
    x[j] = static_cast<float>(static_cast<std::int64_t>(j % 3) - 1);
  auto words = [](const std::vector<float>& v) {
    return reinterpret_cast<const std::uint32_t*>(v.data());
  };
  for (int y = 0; y < h; ++y) {
    std::size_t at = 0;
    for (int px = 0; px < w; ++px) {
      for (int i = 0; i < rows; ++i) {
        double sum = 0;
        for (int j = 0; j < cols; ++j) {
          float e = element(y * rows + i, px * cols + j);
          line[at++] = e;
          sum += static_cast<double>(e) *
                 static_cast<double>(x[static_cast<std::size_t>(px * cols + j)]);
        }
        want[static_cast<std::size_t>(y * rows + i)] += sum;
      }
    }
    rt.memcpy_h2d(rt.get_id("A"), words(line), static_cast<std::int64_t>(line.size()),
                  {0, y, w, 1, rows * cols}, false, MemcpyDataType::MEMCPY_32BIT,
                  MemcpyOrder::ROW_MAJOR, false);
  }
  rt.memcpy_h2d(rt.get_id("x"), words(x), static_cast<std::int64_t>(x.size()), {0, 0, w, h, cols},
                false, MemcpyDataType::MEMCPY_32BIT, MemcpyOrder::ROW_MAJOR, false,
                Broadcast::column);
  double scatter = seconds_since(t);
  t = std::chrono::steady_clock::now();
  Cycle from = rt.fabric().now();
  double c = cpu_now();
  rt.launch(rt.get_id("go"), {}, {}, false);
  double run = seconds_since(t), run_cpu = cpu_now() - c;
  Cycle cycles = rt.fabric().now() - from;
  std::vector<std::uint32_t> y(static_cast<std::size_t>(h) * rows);
  rt.memcpy_d2h(y.data(), static_cast<std::int64_t>(y.size()), rt.get_id("y"), {0, 0, 1, h, rows},
                false, MemcpyDataType::MEMCPY_32BIT, MemcpyOrder::ROW_MAJOR, false);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    float got;
    std::memcpy(&got, &y[i], 4);
    wrong += static_cast<double>(got) != want[i];
  }
  std::printf(
      "{\"case\": \"GEMV %d x %d f32 on %dx%d PEs\", \"threads\": %d, \"scatter_s\": %.1f, "
      "\"run_s\": %.1f, \"run_cpu_s\": %.1f, \"cycles\": %lld, \"tile_cycles_per_s\": %.1fe6, "
      "\"wrong\": %zu, \"resident_mib\": %ld}\n",
      h * rows, w * cols, w, h, threads, scatter, run, run_cpu, static_cast<long long>(cycles),
      static_cast<double>(w) * h * static_cast<double>(cycles) / run / 1e6, wrong, resident_mib());
  if (wrong) std::exit(1);
}

// A program of the tests' directory, compiled with `params`; `prepare` writes its inputs, `check`
// says whether the results are right.
void program(const char* name, const char* path, int width, int height, int threads,
             const std::vector<std::pair<std::string, std::int64_t>>& params,
             const std::function<void(SdkRuntime&)>& prepare, const char* function,
             const std::vector<std::uint64_t>& args,
             const std::function<bool(SdkRuntime&)>& check) {
  csl::CompileOptions o;
  o.root = std::string(WEFT_WSE_PROGRAMS "/") + path;
  o.memcpy = true;
  o.params = params;
  o.offset_x = 4;
  o.offset_y = 1;
  auto t = std::chrono::steady_clock::now();
  Layout l = csl::compile(o);
  double compile = seconds_since(t);
  RuntimeOptions options;
  options.threads = threads;
  SdkRuntime rt(std::move(l), options);
  rt.load();
  rt.run();
  prepare(rt);
  Cycle from = rt.fabric().now();
  std::int64_t steps = rt.fabric().pe_steps();
  t = std::chrono::steady_clock::now();
  double c = cpu_now();
  rt.launch(rt.get_id(function), args, {}, false);
  double s = seconds_since(t), cpu = cpu_now() - c;
  Cycle cycles = rt.fabric().now() - from;
  steps = rt.fabric().pe_steps() - steps;
  bool right = check(rt);
  std::printf(
      "{\"case\": \"%s, %dx%d PEs\", \"threads\": %d, \"cycles\": %lld, \"compile_s\": %.3f, "
      "\"seconds\": %.3f, \"cpu_s\": %.3f, \"tile_cycles_per_s\": %.1fe6, "
      "\"tile_cycles_per_cpu_s\": %.1fe6, \"steps\": %lld, \"right\": %s}\n",
      name, width, height, threads, static_cast<long long>(cycles), compile, s, cpu,
      width * height * static_cast<double>(cycles) / s / 1e6,
      width * height * static_cast<double>(cycles) / cpu / 1e6, static_cast<long long>(steps),
      right ? "true" : "false");
  std::fflush(stdout);
  if (!right) std::exit(1);
}

// Small integers, so that every order of additions gives the same sum.
void summa(int threads, int p, int m) {
  const auto n = static_cast<std::size_t>(p) * static_cast<std::size_t>(m);
  auto a = [](std::size_t i, std::size_t j) { return static_cast<float>((i * 7 + j * 3) % 5) - 2; };
  auto b = [](std::size_t i, std::size_t j) { return static_cast<float>((i * 2 + j * 5) % 7) - 3; };
  // Tile (x, y) column by column, as the program keeps it.
  auto tiles = [&](auto element) {
    std::vector<std::uint32_t> out;
    out.reserve(n * n);
    const auto size = static_cast<std::size_t>(m);
    for (std::size_t y = 0; y < n; y += size)
      for (std::size_t x = 0; x < n; x += size)
        for (std::size_t j = 0; j < size; ++j)
          for (std::size_t i = 0; i < size; ++i) {
            float v = element(y + i, x + j);
            std::uint32_t word;
            std::memcpy(&word, &v, 4);
            out.push_back(word);
          }
    return out;
  };
  program(
      "GEMM by collectives", "summa/src/layout.csl", p, p, threads,
      {{"P", p}, {"Mt", m}, {"Kt", m}, {"Nt", m}},
      [&](SdkRuntime& rt) {
        for (auto [name, data] : {std::pair{"A", tiles(a)}, std::pair{"B", tiles(b)}})
          rt.memcpy_h2d(rt.get_id(name), data.data(), static_cast<std::int64_t>(data.size()),
                        {0, 0, p, p, m * m}, false, MemcpyDataType::MEMCPY_32BIT,
                        MemcpyOrder::ROW_MAJOR, false);
      },
      "main", {},
      [&](SdkRuntime& rt) {
        std::vector<std::uint32_t> got(n * n);
        rt.memcpy_d2h(got.data(), static_cast<std::int64_t>(got.size()), rt.get_id("C"),
                      {0, 0, p, p, m * m}, false, MemcpyDataType::MEMCPY_32BIT,
                      MemcpyOrder::ROW_MAJOR, false);
        std::vector<float> rows(n * n), columns(n * n);
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j < n; ++j) {
            rows[i * n + j] = a(i, j);
            columns[j * n + i] = b(i, j);
          }
        return got == tiles([&](std::size_t i, std::size_t j) {
                 float sum = 0;
                 for (std::size_t k = 0; k < n; ++k) sum += rows[i * n + k] * columns[j * n + k];
                 return sum;
               });
      });
}

void life(int threads, int width, int height, int generations) {
  const auto w = static_cast<std::size_t>(width), h = static_cast<std::size_t>(height);
  std::vector<std::uint32_t> cells(w * h);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = (i * 2654435761u >> 9) & 1u;
  program(
      "game of life", "life/layout.csl", width, height, threads,
      {{"width", width}, {"height", height}},
      [&](SdkRuntime& rt) {
        rt.memcpy_h2d(rt.get_id("cell"), cells.data(), static_cast<std::int64_t>(cells.size()),
                      {0, 0, width, height, 1}, false, MemcpyDataType::MEMCPY_32BIT,
                      MemcpyOrder::ROW_MAJOR, false);
      },
      "generations", {static_cast<std::uint64_t>(generations)},
      [&](SdkRuntime& rt) {
        std::vector<std::uint32_t> got(cells.size());
        rt.memcpy_d2h(got.data(), static_cast<std::int64_t>(got.size()), rt.get_id("cell"),
                      {0, 0, width, height, 1}, false, MemcpyDataType::MEMCPY_32BIT,
                      MemcpyOrder::ROW_MAJOR, false);
        std::vector<std::uint32_t> now = cells, next(cells.size());
        for (int g = 0; g < generations; ++g, now.swap(next)) {
          for (std::size_t y = 0; y < h; ++y)
            for (std::size_t x = 0; x < w; ++x) {
              std::uint32_t around = 0;
              for (std::size_t j = y ? y - 1 : 0; j <= std::min(y + 1, h - 1); ++j)
                for (std::size_t i = x ? x - 1 : 0; i <= std::min(x + 1, w - 1); ++i)
                  if (i != x || j != y) around += now[j * w + i];
              next[y * w + x] = around == 3 || (around == 2 && now[y * w + x]);
            }
        }
        return got == now;
      });
}

// Scalar code on one PE: the bytecode beside native code, in the same run.
void scalar() {
  const std::string layout = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0, \"pe.csl\"); }";
  const std::string pe = R"(
export var hits: u32 = 0;
task main() void {
  for (@range(u16, 4000)) |i| {
    for (@range(u16, 60)) |j| {
      const cx = @as(f32, @as(i32, i) - 2500) * 0.001;
      const cy = @as(f32, @as(i32, j) - 30) * 0.04;
      var x: f32 = 0.0; var y: f32 = 0.0; var n: u16 = 0;
      while (n < 50 and x * x + y * y < 4.0) : (n += 1) {
        const t = x * x - y * y + cx;
        y = 2.0 * x * y + cy;
        x = t;
      }
      if (n == 50) hits += 1;
    }
  }
}
comptime { @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9)); }
)";
  Layout l = compile_text(layout, pe, {});
  double rate[2];
  std::int64_t cycles[2];
  for (Engine engine : {Engine::bytecode, Engine::native}) {
    Fabric fabric(l, {.engine = engine});
    fabric.start();
    auto t = std::chrono::steady_clock::now();
    double c = cpu_now();
    fabric.run();
    double s = seconds_since(t), cpu = cpu_now() - c;
    auto n = static_cast<double>(fabric.stats().get("instructions"));
    rate[engine == Engine::native] = n / cpu / 1e6;
    cycles[engine == Engine::native] = fabric.now();
    std::printf(
        "{\"case\": \"scalar loop\", \"engine\": \"%s\", \"seconds\": %.4f, \"cpu_s\": %.4f, "
        "\"instructions_per_s\": %.1fe6, \"cycles\": %lld}\n",
        engine == Engine::native ? "native, compilation included" : "bytecode", s, cpu,
        n / cpu / 1e6, static_cast<long long>(fabric.now()));
  }
  std::printf("{\"case\": \"scalar loop\", \"native_over_bytecode\": %.2f}\n", rate[1] / rate[0]);
  if (cycles[0] != cycles[1]) std::exit(1);
}

// One percent of a whole wafer works; the rest is never touched. The same chains fill a rectangle
// of their own size. The two take turns; the ratio is the median of the rounds.
void idle(int threads) {
  Layout l = compile_text(kChainLayout, kChainPe, {{"w", 512}, {"n", 4096}});
  struct Side {
    const char* name;
    std::unique_ptr<SdkRuntime> rt;
    std::vector<double> seconds, cpu;
    Cycle cycles = 0;
  };
  std::array<Side, 2> sides{Side{"512x14", {}, {}, {}}, Side{"750x990", {}, {}, {}}};
  for (Side& side : sides) {
    bool whole = &side == &sides[1];
    auto t = std::chrono::steady_clock::now();
    Layout big = l;
    std::size_t width = whole ? 750 : 512, height = whole ? 990 : 14;
    big.width = static_cast<std::int32_t>(width);
    big.height = static_cast<std::int32_t>(height);
    big.tiles.assign(width * height, Tile{kNoProgram, 0});
    std::size_t left = whole ? 100 : 0, top = whole ? 480 : 0;
    for (std::size_t x = 0; x < 512; ++x) {
      for (std::size_t y = 0; y < 14; ++y) big.tiles[(top + y) * width + left + x] = l.tiles[x];
    }
    long before = resident_mib();
    RuntimeOptions options;
    options.threads = threads;
    side.rt = std::make_unique<SdkRuntime>(std::move(big), options);
    side.rt->load();
    side.rt->run();
    std::printf("{\"case\": \"14 chains of 512 in %s\", \"open_s\": %.3f, \"mib\": %ld}\n",
                side.name, seconds_since(t), resident_mib() - before);
  }
  std::vector<double> ratios, cpu_ratios;
  for (int k = 0; k < 8; ++k) {
    for (Side& side : sides) {
      auto t = std::chrono::steady_clock::now();
      Cycle from = side.rt->fabric().now();
      double c = cpu_now();
      side.rt->launch(side.rt->get_id("go"), {}, {}, false);
      side.seconds.push_back(seconds_since(t));
      side.cpu.push_back(cpu_now() - c);
      side.cycles = side.rt->fabric().now() - from;
    }
    if (k == 0) continue;  // pages are touched for the first time
    ratios.push_back(sides[0].seconds.back() / sides[1].seconds.back());
    cpu_ratios.push_back(sides[0].cpu.back() / sides[1].cpu.back());
  }
  for (Side& side : sides) {
    double best = *std::min_element(side.seconds.begin(), side.seconds.end());
    std::printf(
        "{\"case\": \"14 chains of 512 in %s\", \"threads\": %d, \"cycles\": %lld, "
        "\"seconds\": %.3f, \"cpu_s\": %.3f, \"tile_cycles_per_s_of_active\": %.1fe6, "
        "\"first_share_ends_at_row\": %d}\n",
        side.name, threads, static_cast<long long>(side.cycles), best,
        *std::min_element(side.cpu.begin(), side.cpu.end()),
        14.0 * 512 * static_cast<double>(side.cycles) / best / 1e6,
        static_cast<int>(side.rt->fabric().shares()[0]) / side.rt->fabric().layout().width);
  }
  auto median = [](std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  };
  std::printf("{\"case\": \"idle PEs\", \"whole_over_dense\": %.2f, \"by_processor_time\": %.2f}\n",
              median(ratios), median(cpu_ratios));
}

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  std::string which = argc > 2 ? argv[2] : "";
  try {
    if (which.empty() || which == "chain") {
      chain(1);
      chain(threads);
    }
    if (which.empty() || which == "gemm") {
      gemm(1, 16, 14);
      gemm(threads, 16, 14);
      gemm(1, 64, 6);
      gemm(threads, 64, 6);
    }
    if (which.empty() || which == "summa") {
      const int p = argc > 3 ? std::atoi(argv[3]) : 32;
      summa(1, p, 14);
      if (threads > 1) summa(threads, p, 14);
    }
    if (which.empty() || which == "life") {
      const int w = argc > 3 ? std::atoi(argv[3]) : 100, h = argc > 4 ? std::atoi(argv[4]) : 100;
      life(1, w, h, 50);
      if (threads > 1) life(threads, w, h, 50);
    }
    if (which.empty() || which == "scalar") scalar();
    if (which.empty() || which == "idle") idle(threads);
    if (which.empty() || which == "wafer")
      wafer(threads, argc > 3 ? std::atoi(argv[3]) : 750, argc > 4 ? std::atoi(argv[4]) : 990);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
