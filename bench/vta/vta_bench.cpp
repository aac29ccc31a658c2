// SPDX-License-Identifier: Apache-2.0
// Speed of the simulated VTA and of its command queue, and the cycle model on ResNet-18. Each
// figure is the best of several rounds on one core. `vta_bench [--json] [--kernels NAME] [case
// ...]`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>

#include "weft/targets/vta/schedules.h"
#include "weft/targets/vta/simulator.h"

namespace {

using namespace weft;
using namespace weft::vta;

Json results = Json::object();
bool as_json = false;
std::string only;  // --kernels

/// Those of this host that are asked for, best first.
std::vector<const KernelSet*> wanted_kernels() {
  std::vector<const KernelSet*> out;
  for (const KernelSet* set : usable_kernels()) {
    if (only.empty() || set->name == only) out.push_back(set);
  }
  return out;
}

void report(const std::string& name, double value, const char* unit, double floor = 0) {
  results[name] = value;
  if (!as_json)
    std::printf("%-44s %12.2f %-14s%s\n", name.c_str(), value, unit,
                floor > 0 ? cat("asked: ", floor).c_str() : "");
}

/// Best of at least `rounds`, and of a quarter of a second: clocks of processors rise late.
double seconds(const std::function<void()>& work, int rounds = 7) {
  double best = 1e9;
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0;
       i < rounds || std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(250);
       ++i) {
    auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// The last argument after one run: for comparing engines.
std::vector<std::uint8_t> output(const Config& config, const Program& program,
                                 const std::vector<std::int64_t>& bytes, SimOptions options) {
  VtaSimulator sim(config, std::move(options));
  sim::Launch launch;
  std::mt19937_64 rng(1);
  for (std::int64_t n : bytes) {
    std::uint64_t at = sim.memory().allocate(static_cast<std::uint64_t>(n), 4096);
    for (std::int64_t i = 0; i + 8 <= n; i += 8)
      sim.memory().store<std::uint64_t>(at + static_cast<std::uint64_t>(i), rng());
    launch.pointers.push_back(at);
  }
  sim.run(sim.load(program), launch, {});
  const auto* data =
      reinterpret_cast<const std::uint8_t*>(sim.memory().raw(launch.pointers.back()));
  return {data, data + bytes.back()};
}

/// Every kernel set of this host against the scalar oracle; false: some bits differ.
bool verify() {
  bool good = true;
  std::mt19937_64 rng(7);
  for (const char* name : {"sim", "4x8x8", "1x32x32"}) {
    Config c = Config::sample(name);
    for (int round = 0; round < 12; ++round) {
      auto pick = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + rng() % n); };
      MatmulShape s{pick(40), pick(6), pick(6)};
      Program p = matmul(c, s, {pick(30), pick(6), pick(6), static_cast<int>(pick(2))},
                         {static_cast<int>(rng() % 9), rng() % 2 == 0, rng() % 2 == 0, -100, 100});
      std::vector<std::int64_t> bytes{
          s.o * s.n * c.elem_bytes(MemType::inp), s.m * s.n * c.elem_bytes(MemType::wgt),
          s.m * c.elem_bytes(MemType::acc), s.o * s.m * c.elem_bytes(MemType::out)};
      if (p.kernels[0].signature.params.size() == 3) bytes.erase(bytes.begin() + 2);
      SimOptions oracle;
      oracle.engine = EngineKind::oracle;
      auto want = output(c, p, bytes, oracle);
      for (const KernelSet* kernels : usable_kernels()) {
        SimOptions fast;
        fast.kernels = kernels;
        if (output(c, p, bytes, fast) == want) continue;
        good = false;
        std::printf("%s differs from the oracle on %s, round %d\n",
                    std::string(kernels->name).c_str(), name, round);
      }
    }
  }
  if (good && !as_json) std::printf("every kernel set gives the oracle's bits\n");
  return good;
}

/// A program's kernel with buffers of random bytes, ready to run again and again.
class Ready {
 public:
  Ready(const Config& config, const Program& program, const std::vector<std::int64_t>& bytes,
        const KernelSet* kernels = nullptr)
      : sim_(config, options(kernels)) {
    std::mt19937_64 rng(1);
    for (std::int64_t n : bytes) {
      std::uint64_t at = sim_.memory().allocate(static_cast<std::uint64_t>(n), 4096);
      for (std::int64_t i = 0; i + 8 <= n; i += 8)
        sim_.memory().store<std::uint64_t>(at + static_cast<std::uint64_t>(i), rng());
      launch_.pointers.push_back(at);
    }
    handle_ = sim_.load(program);
  }
  std::int64_t operator()() { return sim_.run(handle_, launch_, {}).cycles; }
  runtime::StatReport stats() const { return sim_.stats(); }

 private:
  static SimOptions options(const KernelSet* kernels) {
    SimOptions o;
    o.kernels = kernels;
    return o;
  }
  VtaSimulator sim_;
  sim::Launch launch_;
  std::size_t handle_;
};

const Epilogue kEpilogue{8, true, true, 0, 127};

/// The inner loop alone: rows of one weight column each, operands in the first caches.
void kernels() {
  for (const KernelSet* set : wanted_kernels()) {
    for (std::size_t steps : {8u, 32u}) {
      constexpr std::size_t kRowCount = 48;
      constexpr int kBlock = 16;
      const auto row = static_cast<std::size_t>(kBlock * set->inp_scale),
                 tile = set->wgt_bytes(kBlock);
      auto aligned = [](std::vector<std::byte>& room, std::size_t n) {
        room.assign(n + 128, std::byte{3});
        return room.data() + (64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64);
      };
      std::vector<std::byte> acc, inp, wgt;
      std::vector<GemmRow> rows;
      std::vector<GemmStep> sum;
      for (std::size_t r = 0; r < kRowCount; ++r)
        rows.push_back(
            {static_cast<std::uint32_t>(r * kBlock), static_cast<std::uint32_t>(r * steps * row)});
      for (std::size_t s = 0; s < steps; ++s)
        sum.push_back({static_cast<std::uint32_t>(s * row), static_cast<std::uint32_t>(s * tile)});
      GemmCall call{reinterpret_cast<std::int32_t*>(aligned(acc, kRowCount * kBlock * 4)),
                    aligned(inp, kRowCount * steps * row + 64),
                    aligned(wgt, steps * tile + 64),
                    rows.data(),
                    rows.size(),
                    sum.data(),
                    sum.size(),
                    kBlock};
      const double t = seconds([&] {
        for (int i = 0; i < 100; ++i) set->gemm(call);
      });
      report(cat("kernel ", kRowCount, " rows, ", steps, " steps, ", set->name),
             100 * 2.0 * kRowCount * static_cast<double>(steps) * kBlock * kBlock / t * 1e-9,
             "GOP/s");
    }
  }
}

void gemm() {
  struct Case {
    const char* config;
    std::int64_t size;
  };
  for (Case c : {Case{"sim", 512}, Case{"sim", 1024}, Case{"4x8x8", 512}, Case{"1x32x32", 512}}) {
    Config config = Config::sample(c.config);
    MatmulShape s{c.size / config.batch(), c.size / config.block_out(), c.size / config.block_in()};
    // Large tiles, in which a weight is used often once it has been packed; with one place for each
    // they are larger still, and functional speed does not ask for overlap.
    const bool deep = std::strcmp(c.config, "sim") == 0;
    MatmulTiles tiles = deep ? MatmulTiles{128, 16, 16, 1} : MatmulTiles{128, 8, 8, 2};
    Program program = matmul(config, s, tiles);
    for (const KernelSet* kernels : wanted_kernels()) {
      Ready run(config, program, {c.size * c.size, c.size * c.size, c.size * c.size}, kernels);
      double t = seconds([&] { run(); }, kernels->name == "portable" ? 3 : 9);
      double ops = 2.0 * static_cast<double>(c.size) * static_cast<double>(c.size) *
                   static_cast<double>(c.size);
      report(cat("gemm ", c.size, "^3 ", c.config, " ", kernels->name), ops / t * 1e-9, "GOP/s",
             std::strcmp(c.config, "sim") == 0 && c.size == 512 ? 300 : 0);
    }
  }
}

void resnet() {
  Config config;
  for (const KernelSet* kernels : wanted_kernels()) {
    double total_ops = 0, total_time = 0;
    for (const ResnetLayer& layer : resnet18_layers()) {
      ConvShape s = shape_of(layer, config);
      Program program = conv2d(config, s, default_tiles(config, s, kEpilogue), kEpilogue);
      Ready run(config, program,
                {s.ci * s.h * s.w * 16, s.co * s.ci * s.kernel * s.kernel * 256, s.co * 64,
                 s.co * s.out_h() * s.out_w() * 16},
                kernels);
      double t = seconds([&] { run(); }, 3);
      double ops = 2.0 * 256 *
                   static_cast<double>(s.ci * s.co * s.kernel * s.kernel * s.out_h() * s.out_w());
      report(cat("resnet ", layer.name, " ", kernels->name), ops / t * 1e-9, "GOP/s");
      total_ops += ops * layer.repeats, total_time += t * layer.repeats;
    }
    report(cat("resnet C2-C11 ", kernels->name), total_ops / total_time * 1e-9, "GOP/s", 200);
  }
}

void cycles() {
  Config config;
  auto total = [&](const char* name, int threads, const TimingParams& params, bool layers,
                   const Epilogue& e) {
    double ideal = 0, cycles = 0;
    for (const ResnetLayer& layer : resnet18_layers()) {
      ConvShape s = shape_of(layer, config);
      ConvTiles tiles = default_tiles(config, s, e, threads, params);
      Timing t = estimate(Prepared(conv2d(config, s, tiles, e).kernels[0].stream), config, params);
      double macs = static_cast<double>(s.ci * s.co * s.kernel * s.kernel * s.out_h() * s.out_w());
      if (layers)
        report(cat("utilisation ", layer.name, " ", name, " (tile ", tiles.co, "x", tiles.h, "x",
                   tiles.w, ", ci ", tiles.ci, ")"),
               100 * macs / static_cast<double>(t.cycles), "%");
      ideal += macs * layer.repeats, cycles += static_cast<double>(t.cycles) * layer.repeats;
    }
    report(cat("utilisation C2-C11 ", name), 100 * ideal / cycles, "%", threads == 2 ? 90 : 0);
    report(cat("cycles C2-C11 ", name), cycles * 1e-6, "Mcycles");
  };
  TimingParams p;
  Epilogue plain{8, false, true, 0, 127};
  total("single", 1, p, true, kEpilogue);
  total("double", 2, p, true, kEpilogue);
  total("single, no bias", 1, p, false, plain);
  total("double, no bias", 2, p, false, plain);
  for (auto [name, edit] : {std::pair<const char*, void (*)(TimingParams&)>{
                                "double, ALU II 2", [](TimingParams& q) { q.alu_imm_uop = 2; }},
                            {"double, bus 16 B", [](TimingParams& q) { q.bus_bytes = 16; }},
                            {"double, bus 4 B", [](TimingParams& q) { q.bus_bytes = 4; }},
                            {"double, latency 100", [](TimingParams& q) { q.latency = 100; }}}) {
    TimingParams q;
    edit(q);
    total(name, 2, q, false, kEpilogue);
  }
}

void alu_and_store() {
  Config config;
  Builder b(config, "alu");
  int x = b.param("x", dtypes::int32), y = b.param("y", dtypes::int8);
  b.load(MemType::acc, 0, x, 0, {1, 2048});
  UopKernel all = UopKernel::compress({{2048, 1, 1, 0}}),
            halves = UopKernel::compress({{1024, 1, 1, 0}}, {0, 1024, 0});
  for (int i = 0; i < 100; ++i)
    b.alu_imm(AluOp::add, all, 3), b.alu_imm(AluOp::max, all, 0), b.alu_imm(AluOp::shr, all, 1);
  b.push(Stage::compute, Stage::store);
  b.pop(Stage::compute, Stage::store);
  b.store(0, y, 0, {1, 1});
  Ready imm(config, b.finish(), {2048 * 64, 4096});
  report("alu with a constant", 300 * 2048 * 16 / seconds([&] { imm(); }) * 1e-9, "Glane-ops/s",
         10);
  Builder b2(config, "alu2");
  x = b2.param("x", dtypes::int32), y = b2.param("y", dtypes::int8);
  b2.load(MemType::acc, 0, x, 0, {1, 2048});
  for (int i = 0; i < 100; ++i)
    b2.alu(AluOp::add, halves), b2.alu(AluOp::max, halves), b2.alu(AluOp::min, halves);
  b2.push(Stage::compute, Stage::store);
  b2.pop(Stage::compute, Stage::store);
  b2.store(0, y, 0, {1, 1});
  Ready tensor(config, b2.finish(), {2048 * 64, 4096});
  report("alu with a second operand", 300 * 1024 * 16 / seconds([&] { tensor(); }) * 1e-9,
         "Glane-ops/s", 10);
  Builder b3(config, "store");
  x = b3.param("x", dtypes::int32), y = b3.param("y", dtypes::int8);
  b3.load(MemType::acc, 0, x, 0, {1, 2048});
  b3.push(Stage::compute, Stage::store);
  b3.pop(Stage::compute, Stage::store);
  for (int i = 0; i < 200; ++i) b3.store(0, y, (i % 4) * 2048, {1, 2048});
  Ready store(config, b3.finish(), {2048 * 64, 4 * 2048 * 16});
  report("store narrowing", 200 * 2048 * 16 / seconds([&] { store(); }) * 1e-9, "GB/s", 8);
  Builder b4(config, "load");
  x = b4.param("x", dtypes::int8);
  int w = b4.param("w", dtypes::int8);
  for (int i = 0; i < 200; ++i) b4.load(MemType::inp, 0, x, 0, {1, 2048});
  for (int i = 0; i < 20; ++i) b4.load(MemType::wgt, 0, w, 0, {1, 1024});
  Ready load(config, b4.finish(), {2048 * 16, 1024 * 256});
  report("load inp x10 and wgt, packed",
         (200.0 * 2048 * 16 + 20.0 * 1024 * 256) / seconds([&] { load(); }) * 1e-9, "GB/s");
}

void small() {
  Config config;
  const int pairs = 20000;
  auto record = [&] {
    Builder b(config, "pairs");
    int x = b.param("x", dtypes::int8);
    UopKernel one = UopKernel::compress({});
    for (int i = 0; i < pairs; ++i) {
      if (i) b.pop(Stage::compute, Stage::load);
      b.load(MemType::inp, 0, x, i & 1023, {1, 1});
      b.push(Stage::load, Stage::compute);
      b.pop(Stage::load, Stage::compute);
      b.gemm(one);
      if (i + 1 < pairs) b.push(Stage::compute, Stage::load);
    }
    return b.finish(Checked::no);
  };
  Program program = record();
  double n = static_cast<double>(program.kernels[0].stream.insns.size());
  double recording = seconds([&] { record(); });
  Ready run(config, program, {1024 * 16});
  double running = seconds([&] { run(); });
  report("record one small instruction", recording / n * 1e9, "ns", 40);
  report("run one small instruction", running / n * 1e9, "ns", 40);
  Prepared prepared(program.kernels[0].stream);
  report("cycle model of one small instruction",
         seconds([&] { estimate(prepared, config, {}); }) / n * 1e9, "ns", 50);
  ConvShape s = shape_of(resnet18_layers()[3], config);
  Prepared conv(
      conv2d(config, s, default_tiles(config, s, kEpilogue), kEpilogue).kernels[0].stream);
  report("cycle model of one instruction of C5",
         seconds([&] { estimate(conv, config, {}); }, 50) /
             static_cast<double>(conv.stream.insns.size()) * 1e9,
         "ns", 50);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) {
      as_json = true;
    } else if (std::strcmp(argv[i], "--kernels") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else {
      wanted.emplace_back(argv[i]);
    }
  }
  if (wanted_kernels().empty()) {
    std::printf("this host has no kernel set \"%s\"\n", only.c_str());
    return 1;
  }
  if (!verify()) return 1;
  for (auto [name, run] : {std::pair<const char*, void (*)()>{"kernels", kernels},
                           {"gemm", gemm},
                           {"resnet", resnet},
                           {"cycles", cycles},
                           {"alu", alu_and_store},
                           {"small", small}}) {
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) run();
  }
  if (as_json) std::printf("%s\n", results.dump(2).c_str());
  return 0;
}
