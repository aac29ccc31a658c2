// SPDX-License-Identifier: Apache-2.0
// The emulator on hand-written assembly: peripherals, timing, books, every fault; and the
// interpreted engine against the reference interpreter on random programs.

#include "weft/targets/qpu/emulator.h"

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <random>

#include "weft/runtime/cache.h"
#include "weft/targets/qpu/abi.h"
#include "weft/targets/qpu/engine/translate.h"
#include "weft/targets/qpu/float.h"
#include "words.h"

namespace weft::qpu::hw {
namespace {

TEST(QpuEmulator, adds_one_to_a_vector_through_tmu_and_dma) {
  for (Engine engine : engines()) {
    Bench b(with(engine));
    std::uint64_t a = b.array(16);
    for (unsigned i = 0; i < 16; ++i) b.word(a, i) = 100 * i;
    auto r = b.run(
        binary_of(kAddresses + "mov tmu0_s, r0\nnop; nop; ldtmu0\nadd r1, r4, #1\n" + kStore + kEnd,
                  {"p0"}),
        {a});
    for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(b.word(a, i), 100 * i + 1);
    // 16 instructions; the request at 16 is served at 32 and arrives 8 + 160 later; the store at 68
    // + stall.
    EXPECT_FALSE(b.emulator.stats().check_books()) << b.emulator.stats().table();
    EXPECT_EQ(b.emulator.stats().get("instructions"), 16);
    EXPECT_EQ(b.emulator.stats().get("stall.qpu0.tmu"), 16 + 16 + 8 + 160 - 20);
    EXPECT_EQ(b.emulator.stats().get("stall.qpu0.dma_store"), 40 + 4 + 8 - 4);
    EXPECT_EQ(r.cycles, 16 * 4 + 180 + 48);
  }
}

// A row that begins inside a line reads two; the result waits for both, in whichever order they
// come.
TEST(QpuEmulator, a_row_across_two_lines_waits_for_the_later_one) {
  const auto stall = [](Engine engine, int first, int second) {
    Bench b(with(engine));
    const std::uint64_t a = b.array(64);
    const auto read = [](int bytes) {
      return cat("ldi r1, ", bytes, "\nadd r1, r0, r1\nmov tmu0_s, r1\nnop; nop; ldtmu0\n");
    };
    b.run(binary_of(kAddresses + read(first) + read(second) + kEnd, {"p0"}), {a});
    return b.emulator.stats().get("stall.qpu0.tmu");
  };
  for (Engine engine : engines()) {
    const std::int64_t far = stall(engine, 64, 0), near = stall(engine, 64, 64);
    EXPECT_LT(near, far);                        // line 1 is in the cache, line 0 is not
    EXPECT_EQ(stall(engine, 64, 32), far);       // lines 0 and 1: the first one is late
    EXPECT_EQ(stall(engine, 64, 64 + 32), far);  // lines 1 and 2: the second one is
  }
}

struct FaultCase {
  const char* slug;
  std::string text;
  const char* part;
  int qpus;
};

TEST(QpuEmulator, faults_name_qpu_pc_and_instruction) {
  const std::string request = "mov tmu0_s, r0\n", row = "ldi vw_setup, 0x80904000\n";
  const FaultCase cases[] = {
      {"qpu.memory.read_outside", kAddresses + "add r0, r0, #4\n" + request + kEnd,
       "lane 15 of a TMU request reads 4 bytes", 1},
      {"qpu.hazard.tmu_overflow",
       kAddresses + request + request + request + request + request + kEnd,
       "4 requests outstanding", 1},
      {"qpu.hazard.tmu_unread", kAddresses + request + kEnd, "1 requests of TMU 0", 1},
      {"qpu.tmu.empty", std::string("nop; nop; ldtmu1\n") + kEnd, "without a request", 1},
      {"qpu.tmu.stale", kAddresses + "mov r1, #1\n" + kStore + request + kEnd, "stored by qpu 0",
       1},
      {"qpu.race", kAddresses + row + "mov vw_addr, ra0\nnop; nop; raddr_b=50\n" + kEnd,
       "without synchronisation", 2},
      {"qpu.memory.store_outside", kAddresses + "add ra0, ra0, #4\nmov r1, #1\n" + kStore + kEnd,
       "4 bytes past the end", 1},
      {"qpu.hazard.dma_outstanding",
       kAddresses + row + "mov vw_addr, ra0\nmov vw_addr, ra0\n" + kEnd, "before waiting", 1},
      {"qpu.dma.not_waited", kAddresses + row + "mov vw_addr, ra0\n" + kEnd, "nobody waited", 1},
      {"qpu.dma.no_setup", kAddresses + "mov vw_addr, ra0\n" + kEnd, "without a set-up", 1},
      {"qpu.dma.align", kAddresses + row + "add vw_addr, ra0, #1\n" + kEnd, "multiple of 4", 1},
      {"qpu.dma.early_read",
       kAddresses +
           "ldi vr_setup, 0x83010000\nldi vr_setup, 0x00101a00\nmov vr_addr, ra0\nnop\nnop\nmov "
           "r1, vpm\n" +
           kEnd,
       "not been waited for", 1},
      {"qpu.dma.early_write",
       kAddresses + "ldi vw_setup, 0x1a00\n" + row + "mov vw_addr, ra0\nmov vpm, r0\n" + kEnd,
       "not been waited for", 1},
      {"qpu.vpm.no_setup", std::string("mov vpm, r0\n") + kEnd, "without a set-up", 1},
      {"qpu.vpm.range",
       kAddresses + "ldi vw_setup, 0x80909f80\nldi vw_setup, 0x82105f80\nmov vw_addr, ra0\n" + kEnd,
       "reaches VPM row", 1},
      {"qpu.vpm.race", std::string("ldi vw_setup, 0x1a00\nmov vpm, r0\n") + kEnd, "VPM row 0", 2},
      {"qpu.vpm.setup", std::string("ldi vr_setup, 0x50000000\n") + kEnd, "is no VPM read", 1},
      {"qpu.vpm.size", std::string("ldi vw_setup, 0x00001b00\n") + kEnd, "reserved size", 1},
      {"qpu.hazard.vpm_read_count", std::string("mov r0, vpm\n") + kEnd, "without a vector", 1},
      {"qpu.hazard.vpm_read_count", std::string("ldi vr_setup, 0x00101a00\n") + kEnd, "were left",
       1},
      {"qpu.uniform.exhausted", std::string("mov r0, unif\nmov r0, unif\n") + kEnd,
       "past the end of its uniforms", 1},
      {"qpu.uniform.address", std::string("mov unif_addr, #4\n") + kEnd, "uniforms' address 0x4",
       1},
      {"qpu.deadlock", std::string("sacq 3\n") + kEnd, "qpu 0 for semaphore 3, qpu 1", 2},
      {"qpu.mutex.twice", std::string("mov r0, mutex\nmov r0, mutex\n") + kEnd, "that it holds", 1},
      {"qpu.mutex.release", std::string("mov mutex, r0\n") + kEnd, "held by nobody", 1},
      {"qpu.mutex.held", std::string("mov r0, mutex\n") + kEnd, "holding the mutex", 1},
      {"qpu.limit.cycles", std::string("bra.always rel, -32\nnop\nnop\nnop\n") + kEnd,
       "longer than", 1},
      {"qpu.breakpoint", std::string("nop; nop; bkpt\n") + kEnd, "breakpoint at instruction 0", 1},
      {"qpu.unsupported", std::string("nop\nnop\nmov tlbz, r0\n") + kEnd, "fragment", 1},
      {"qpu.unsupported", std::string("mov r0, vary\n") + kEnd, "fragment", 1},
      {"qpu.unsupported", std::string("nop; nop; thrsw\n") + kEnd, "signal 2", 1},
      {"qpu.pc.outside", std::string("nop\nnop\n"), "past the end", 1},
      {"qpu.hazard.read_after_write", std::string("mov ra1, r0\nadd r0, ra1, r0\n") + kEnd,
       "ra1 is read one", 1},
      {"qpu.hazard.conditional_peripheral", std::string("mov.zs recip, r0\n") + kEnd,
       "conditional write", 1},
  };
  for (const FaultCase& c : cases) {
    std::vector<std::string> texts;
    for (Engine engine : engines()) {
      Bench b(with(engine));
      std::uint64_t a = b.array(16);
      try {
        b.run(binary_of(c.text, {"p0"}), {a}, c.qpus, 100'000);
        ADD_FAILURE() << c.slug << " was not found in\n" << c.text;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::fault) << e.what();
        EXPECT_EQ(e.code(), c.slug) << e.what();
        texts.push_back(e.what());
        EXPECT_NE(std::string(e.what()).find(c.part), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("qpu "), std::string::npos);
        EXPECT_NE(std::string(e.what()).find("pc 0x"), std::string::npos);
      }
      // The machine lives on.
      b.run(binary_of(kAddresses + "mov r1, #7\n" + kStore + kEnd, {"p0"}), {a});
      EXPECT_EQ(b.word(a, 5), 7u);
      EXPECT_FALSE(b.emulator.stats().check_books());
    }
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  }
}

TEST(QpuEmulator, lenient_reads_are_noted_and_the_run_goes_on) {
  EmulatorOptions o = with(Engine::interpreted);
  o.outside_reads = OutsideReads::report;
  Bench b(o);
  std::uint64_t a = b.array(16);
  b.run(binary_of(kAddresses + "add r0, r0, #8\nmov tmu0_s, r0\nnop; nop; ldtmu0\n" + kEnd, {"p0"}),
        {a});
  std::vector<Finding> f = b.emulator.take_findings();
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f[0].code, "qpu.memory.read_outside");
  EXPECT_EQ(f[0].count, 2);
  EXPECT_TRUE(b.emulator.take_findings().empty());
}

TEST(QpuEmulator, semaphores_order_accesses_and_time) {
  // QPU 0 stores and releases; QPU 1 acquires and loads the row through the VPM into its own array.
  const std::string me =
      "mov ra1, unif\nmov ra0, unif\nmov ra2, unif\nsub null, ra1, #0; nop; sf\nbra.allnz rel, "
      "112\nnop\nnop\nnop\n";
  const std::string zero =
      "mov r1, #9\n" + kStore + "srel 2\nnop\nnop\n" + kEnd;  // 13 instructions
  const std::string one =
      "nop\nnop\nnop\nsacq 2\nldi vr_setup, 0x83010010\nmov vr_addr, ra0\nnop; nop; "
      "raddr_a=50\nldi vr_setup, 0x00101a01\nnop\nnop\nnop\n"
      "mov r1, vpm\nldi vw_setup, 0x00001a02\nmov vpm, r1\nldi vw_setup, 0x80904100\nldi vw_setup, "
      "0xc0000000\nmov vw_addr, ra2\nnop; nop; raddr_b=50\n";
  for (Engine engine : engines()) {
    Bench b(with(engine));
    std::uint64_t a = b.array(16), out = b.array(16);
    b.run(binary_of(me + zero + one + kEnd, {"me", "p0", "p1"}), {a, out}, 2);
    for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(b.word(out, i), 9u);
    EXPECT_GT(b.emulator.stats().get("stall.qpu1.semaphore"), 0);
    EXPECT_FALSE(b.emulator.stats().check_books());
    // Without the semaphore it is a race.
    std::string racy = one;
    racy.replace(racy.find("sacq 2"), 6, "nop");
    EXPECT_THROW(
        try {
          b.run(binary_of(me + zero + racy + kEnd, {"me", "p0", "p1"}), {a, out}, 2);
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), "qpu.race");
          throw;
        },
        Error);
  }
}

TEST(QpuEmulator, vpm_modes) {
  Bench b(with(Engine::interpreted));
  // Vertical write of column 3 in band 1, then horizontal read of row 17: lane 3 holds element 1.
  std::uint64_t a = b.array(16);
  b.run(binary_of("mov ra0, unif\nldi vw_setup, 0x00001213\nmov vpm, elem\nldi vr_setup, "
                  "0x00101a11\nnop\nnop\nnop\nmov r1, vpm\n" +
                      kStore + kEnd,
                  {"p0"}),
        {a});
  EXPECT_EQ(b.word(a, 3), 1u);
  // 16-bit laned, horizontal: low halves of row 5; 8-bit packed: four words hold sixteen bytes.
  b.run(binary_of("mov ra0, unif\nldi vw_setup, 0x0000190a\nldi vw_setup, 0x00001d0a\nmov vpm, "
                  "elem\nldi vr_setup, 0x00101d0a\nnop\nnop\nnop\nmov r1, vpm\n" +
                      kStore + kEnd,
                  {"p0"}),
        {a});
  for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(b.word(a, i), i);
  b.run(binary_of("mov ra0, unif\nldi vw_setup, 0x00001820\nmov vpm, elem\nldi vr_setup, "
                  "0x00101a08\nnop\nnop\nnop\nmov r1, vpm\n" +
                      kStore + kEnd,
                  {"p0"}),
        {a});
  EXPECT_EQ(b.word(a, 0), 0x03020100u);
  EXPECT_EQ(b.word(a, 3), 0x0f0e0d0cu);
}

TEST(QpuEmulator, dma_shapes) {
  Bench b(with(Engine::interpreted));
  std::uint64_t a = b.array(64), c = b.array(64);
  for (unsigned i = 0; i < 64; ++i) b.word(a, i) = 1000 + i, b.word(c, i) = 5;
  // Four rows down column 15 in successive bands, then row 2 of band 0 out lane by lane with gaps
  // of one word.
  b.run(binary_of("mov ra0, unif\nmov ra1, unif\nldi vr_setup, 0x8304080f\nmov vr_addr, ra0\nnop; "
                  "nop; raddr_a=50\n"
                  "ldi vw_setup, 0x88010100\nldi vw_setup, 0xc0000004\nmov vw_addr, ra1\nnop; nop; "
                  "raddr_b=50\n" +
                      std::string(kEnd),
                  {"p0", "p1"}),
        {a, c});
  EXPECT_EQ(b.emulator.machine().vpm[2][15], 1002u);
  EXPECT_EQ(b.emulator.machine().vpm[16 * 3 + 4][15], 1000u + 48 + 4);
  EXPECT_EQ(b.word(c, 30), 1002u);
  EXPECT_EQ(b.word(c, 31), 5u);
  // A partial row: three elements only.
  b.run(binary_of("mov ra0, unif\nldi vw_setup, 0x1a00\nmov vpm, #7\nldi vw_setup, 0x80834000\nmov "
                  "vw_addr, ra0\nnop; nop; raddr_b=50\n" +
                      std::string(kEnd),
                  {"p0"}),
        {c});
  EXPECT_EQ(b.word(c, 2), 7u);
  EXPECT_EQ(b.word(c, 3), 5u);
}

TEST(QpuEmulator, bad_launches_and_binaries) {
  Bench b(with(Engine::interpreted));
  std::uint64_t a = b.array(16);
  auto code = [&](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.code();
    }
    return "";
  };
  runtime::Binary good = binary_of(std::string("mov r0, unif\n") + kEnd, {"p0"});
  EXPECT_EQ(code([&] { b.run(good, {a}, 13); }), "qpu.launch.qpus");
  EXPECT_EQ(code([&] { b.run(good, {a}, 0); }), "qpu.launch.qpus");
  EXPECT_EQ(code([&] { b.run(good, {}); }), "qpu.launch.unbound");
  EXPECT_EQ(code([&] { b.run(good, {0}); }), "qpu.launch.null");
  EXPECT_EQ(code([&] { b.run(good, {a + 2}); }), "qpu.launch.align");
  runtime::Binary bad = good;
  bad.bytes.pop_back();
  EXPECT_EQ(code([&] { b.run(bad, {a}); }), "qpu.binary.size");
  bad.bytes.clear();
  EXPECT_EQ(code([&] { b.run(bad, {a}); }), "qpu.binary.empty");
  bad = good;
  bad.bytes[7] = '\xf0', bad.bytes[6] = '\xc8';  // branch condition 12
  EXPECT_EQ(code([&] { b.run(bad, {a}); }), "qpu.binary.word");
  bad = good;
  bad.metadata["uniforms"] = Json(Json::Array{"x9"});
  EXPECT_EQ(code([&] { b.run(bad, {a}); }), "qpu.binary.uniform");
  EXPECT_EQ(code([&] { parse_options("qpu:qpus=13"); }), "qpu.device.option");
  EXPECT_EQ(code([&] { parse_options("qpu:engine=magic"); }), "qpu.device.option");
  EXPECT_EQ(code([&] { parse_options("qpu:threads=0"); }), "qpu.device.option");
  EXPECT_EQ(parse_options("qpu:threads=2,counts=off").threads, 2);
  EXPECT_EQ(parse_options("qpu:engine=translated,counts=off").engine, Engine::translated);
  const std::int64_t large[] = {1ll << 40};
  std::string text;
  try {
    fill_uniforms({{{UniformKind::integer, 0}}, 0}, {}, large, 1, 12);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "qpu.launch.range");
    text = e.what();
  }
  EXPECT_NE(text.find("scalar argument 0, 1099511627776, does not fit"), std::string::npos) << text;
  try {
    require_translation("no such processor");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "qpu.engine.translated");
    EXPECT_NE(std::string(e.what()).find("no such processor"), std::string::npos);
  }
  require_translation("");
  EXPECT_EQ(parse_options("qpu:qpus=4,races=off").qpus, 4);
  EXPECT_EQ(code([&] { b.run(good, {a}); }), "");
}

TEST(QpuEmulator, runs_as_a_device) {
  Ref<runtime::Device> device = make_device("qpu:qpus=3");
  Ref<runtime::Storage> s = device->allocate(64);
  std::vector<std::uint32_t> data(16, 41);
  device->upload(*s, 0, data.data(), 64);
  runtime::Binary b = binary_of(
      kAddresses + "mov tmu0_s, r0\nnop; nop; ldtmu0\nadd r1, r4, #1\n" + kStore + kEnd, {"p0"});
  b.kernels.push_back(
      {"main", {{"a", runtime::ParamKind::pointer, dtypes::int32, "global"}}, {"qpu"}, 0});
  Ref<runtime::Executable> e = device->load(b);
  runtime::KernelArg args[] = {runtime::KernelArg::pointer(s.get())};
  std::int64_t extents[] = {1};
  runtime::TraceSink trace;
  device->trace_to(&trace);
  runtime::Span span = device->measure([&] { device->launch(*e, 0, args, extents).wait(); });
  device->download(data.data(), *s, 0, 64);
  EXPECT_EQ(data[7], 42u);
  EXPECT_GT(span.cycles, 64);
  EXPECT_NEAR(span.seconds, static_cast<double>(span.cycles) / 300e6, 1e-12);
  EXPECT_GE(trace.size(), 3u);
}

TEST(QpuFloat, adder_and_multiplier_follow_the_measured_rules) {
  auto bits = [](float f) { return std::bit_cast<std::uint32_t>(f); };
  EXPECT_EQ(fadd(bits(1.0f), bits(1e-10f)), bits(1.0f));
  EXPECT_EQ(fsub(bits(1.0f), bits(1e-10f)), bits(0.99999994f));  // toward zero
  EXPECT_EQ(fadd(0x80000000u, 0x80000000u), 0u);                 // no -0
  EXPECT_EQ(fadd(1u, bits(1.0f)), bits(1.0f));                   // denormals are zero
  EXPECT_EQ(fadd(0x7f800000u, 0xff800000u), 0xff800000u);        // Inf + -Inf = -Inf
  EXPECT_EQ(fsub(0xff800000u, 0xff800000u), 0x7f800000u);        // -Inf - -Inf = Inf
  EXPECT_EQ(fadd(0x7fc00000u, bits(1.0f)), 0x7f800000u);         // NaN gives Inf
  EXPECT_EQ(fmul(0u, 0x7f800000u), 0u);                          // 0 * Inf = 0
  EXPECT_EQ(fmul(0xffc00000u, bits(2.0f)), 0xff800000u);
  EXPECT_EQ(ftoi(bits(-1.9f)), 0xffffffffu);
  EXPECT_EQ(ftoi(bits(3e9f)), 0u);
  EXPECT_EQ(ftoi(0x4f000000u), 0x80000000u);
  EXPECT_EQ(ftoi(0xcf000000u), 0x80000000u);
  EXPECT_EQ(itof(0xffffffffu), bits(-1.0f));
  EXPECT_EQ(itof(0x7fffffffu), bits(2147483520.0f));
  EXPECT_EQ(sfu(kWRecip, bits(0.0f)), 0x7f800000u);
  EXPECT_NEAR(std::bit_cast<float>(sfu(kWLog2, bits(8.0f))), 3.0f, 1e-3f);
  // Against exact arithmetic in double: never above in magnitude, within one unit.
  std::mt19937 rng(7);
  for (int n = 0; n < 200000; ++n) {
    float a = std::bit_cast<float>(static_cast<std::uint32_t>(rng() & 0x83ffffffu) | 0x3c000000u);
    float b = std::bit_cast<float>(static_cast<std::uint32_t>(rng() & 0x83ffffffu) | 0x3c000000u);
    double sum = static_cast<double>(a) + b, got = std::bit_cast<float>(fadd(bits(a), bits(b)));
    ASSERT_LE(std::fabs(got), std::fabs(sum));
    ASSERT_LT(std::fabs(got - sum), std::fabs(sum) * 1.2e-7 + 1e-45);
    double product = static_cast<double>(a) * b, p = std::bit_cast<float>(fmul(bits(a), bits(b)));
    ASSERT_LE(std::fabs(p), std::fabs(product));
    ASSERT_LT(std::fabs(p - product), std::fabs(product) * 1.2e-7);
  }
}

// Random programs: straight ALU code with loops, every operation, condition, pack, rotation, SFU,
// TMU.
class Generator {
 public:
  explicit Generator(std::uint32_t seed) : rng_(seed) {}

  std::vector<Instr> program() {
    out_.clear();
    for (const Instr& i : assemble("mov ra0, unif\nmov r0, elem\nshl r1, r0, #2\nadd rb0, ra0, "
                                   "r1\nldi ra30, 0x3fa66666\nldi rb30, 0xc1234567\n"
                                   "ldi rb31, 0x0000000f\nmov ra29, unif\nmov rb29, unif\nldis r2, "
                                   "0x12348765\nldiu r3, 0x55aa33cc\n"))
      push(i);
    for (unsigned r = 1; r < 28; ++r) {
      Instr i = assemble("ldi ra1, 0; to rb1")[0];
      i.waddr_add = i.waddr_mul = static_cast<std::uint8_t>(r);
      i.imm = value();
      push(i);
    }
    int blocks = 1 + static_cast<int>(rng_() % 3);
    for (int b = 0; b < blocks; ++b) {
      push(assemble(rng_() % 2 ? "mov ra28, #3" : "mov ra28, #1")[0]);
      std::size_t top = out_.size();
      int length = 5 + static_cast<int>(rng_() % 40);
      for (int n = 0; n < length; ++n) random();
      if (rng_() % 2) tmu();
      if (rng_() % 3 == 0) sfu_use();
      push(assemble("nop")[0]);
      push(assemble("sub ra28, ra28, #1; nop; sf")[0]);
      nops(3);
      Instr branch = assemble(rng_() % 2 ? "bra.anynz rel, 0" : "bra.allnn rel, 0")[0];
      branch.imm = static_cast<std::uint32_t>(
          (static_cast<std::int64_t>(top) - static_cast<std::int64_t>(out_.size()) - 4) * 8);
      if (branch.cond_br == kAllNc) branch.cond_br = kAnyZc;
      // Where it would return to: neither, one or both files get it.
      if (rng_() % 2) branch.waddr_add = static_cast<std::uint8_t>(1 + rng_() % 27);
      if (rng_() % 3 == 0) branch.waddr_mul = static_cast<std::uint8_t>(1 + rng_() % 27);
      branch.ws = rng_() % 2;
      push(branch);
      nops(3);
    }
    nops(3);
    for (const Instr& i : assemble(kEnd)) push(i);
    return out_;
  }

 private:
  std::uint32_t value() {
    switch (rng_() % 6) {
      case 0: return static_cast<std::uint32_t>(rng_());
      case 1: return static_cast<std::uint32_t>(rng_() % 64) - 32;
      case 2:
        return std::bit_cast<std::uint32_t>(
            static_cast<float>(static_cast<int>(rng_() % 2000) - 1000) / 16.0f);
      case 3: {
        const std::uint32_t odd[] = {0, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                     1, 0x007fffffu, 0x7f7fffffu, 0x00800000u, 0x4f000000u};
        return odd[rng_() % 10];
      }
      case 4: return (static_cast<std::uint32_t>(rng_()) & 0x83ffffffu) | 0x3c000000u;
      default: return 1u << (rng_() % 32);
    }
  }
  void nops(int n) {
    for (int i = 0; i < n; ++i) push(assemble("nop")[0]);
  }
  void push(const Instr& i) {
    for (int wait = 0; wait < 4; ++wait) {
      bool bad = false;
      for (unsigned d = 1; d <= 3 && d <= out_.size(); ++d) {
        const char* slug = nullptr;
        path_rule(out_[out_.size() - d], i, d, &slug);
        bad |= slug != nullptr;
      }
      if (!bad) break;
      out_.push_back(Instr{});
    }
    out_.push_back(i);
  }
  void random() {
    static constexpr std::uint8_t adds[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  12, 13, 14,
                                            15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 30, 31};
    while (true) {
      Instr i;
      i.kind = rng_() % 3 == 0 ? kAluImm : kAlu;
      if (i.kind == kAluImm) i.sig = kSigImm;
      i.op_add = adds[rng_() % 24];
      i.op_mul = rng_() % 3 ? static_cast<std::uint8_t>(rng_() % 8) : 0;
      i.raddr_a = static_cast<std::uint8_t>(rng_() % 28);
      i.raddr_b = i.kind == kAluImm ? static_cast<std::uint8_t>(rng_() % 64)
                                    : static_cast<std::uint8_t>(rng_() % 28);
      if (rng_() % 20 == 0) i.raddr_a = 38;
      i.add_a = static_cast<std::uint8_t>(rng_() % 8),
      i.add_b = static_cast<std::uint8_t>(rng_() % 8);
      i.mul_a = static_cast<std::uint8_t>(rng_() % 8),
      i.mul_b = static_cast<std::uint8_t>(rng_() % 8);
      auto destination = [&]() -> std::uint8_t {
        switch (rng_() % 8) {
          case 0: return kNull;
          case 1:
          case 2:
          case 3: return static_cast<std::uint8_t>(32 + rng_() % 4);
          case 4: return static_cast<std::uint8_t>(rng_() % 10 ? 1 + rng_() % 27 : 37);
          default: return static_cast<std::uint8_t>(1 + rng_() % 27);
        }
      };
      i.waddr_add = i.op_add ? destination() : std::uint8_t{kNull};
      i.waddr_mul = i.op_mul ? destination() : std::uint8_t{kNull};
      auto cond = [&] { return static_cast<std::uint8_t>(rng_() % 3 ? 1 : rng_() % 8); };
      i.cond_add = i.op_add ? cond() : std::uint8_t{kNever};
      i.cond_mul = i.op_mul ? cond() : std::uint8_t{kNever};
      i.sf = rng_() % 4 == 0;
      i.ws = rng_() % 2;
      if (rng_() % 8 == 0) i.pm = rng_() % 2, i.unpack = rng_() % 8;
      if (rng_() % 8 == 0) i.pack = static_cast<std::uint8_t>(rng_() % 16);
      std::vector<Instr> alone{i};
      for (const Instr& e : assemble(kEnd)) alone.push_back(e);
      if (!validate(alone).empty()) continue;
      push(i);
      return;
    }
  }
  void tmu() {
    push(assemble("mov r1, rb0")[0]);
    int n = 1 + static_cast<int>(rng_() % 4);
    bool second = rng_() % 2;
    for (int k = 0; k < n; ++k) {
      if (k & 1)
        push(assemble("and r0, r0, #15")[0]), push(assemble("shl r0, r0, #2")[0]),
            push(assemble("add r1, ra0, r0")[0]);
      push(assemble(second ? "mov tmu1_s, r1" : "mov tmu0_s, r1")[0]);
    }
    for (int k = 0; k < n; ++k) {
      random();
      push(assemble(second ? "nop; nop; ldtmu1" : "nop; nop; ldtmu0")[0]);
      push(assemble("mov ra5, r4")[0]);
    }
  }
  void sfu_use() {
    const char* which[] = {"mov recip, ra3", "mov rsqrt, ra3", "mov exp2, ra3", "mov log2, ra3"};
    push(assemble("nop")[0]);
    push(assemble(which[rng_() % 4])[0]);
    nops(2);
    push(assemble("mov rb6, r4")[0]);
  }

  std::mt19937 rng_;
  std::vector<Instr> out_;
};

TEST(QpuEngines, random_programs_give_the_same_state_and_cycles) {
  for (Engine engine : engines()) {
    if (engine == Engine::oracle) continue;
    Bench oracle(with(Engine::oracle)), fast(with(engine));
    std::uint64_t a = oracle.array(64), b = fast.array(64);
    ASSERT_EQ(a, b);
    for (unsigned i = 0; i < 64; ++i) oracle.word(a, i) = fast.word(b, i) = i * 0x01234567u;
    int clean = 0, last = engine == Engine::translated ? 400 : 1500;
    for (std::uint32_t seed = 1; seed <= static_cast<std::uint32_t>(last); ++seed) {
      std::vector<Instr> program = Generator(seed).program();
      runtime::Binary binary = binary_of("nop\n", {"p0", "3141592", "271828182"});
      binary.bytes.clear();
      for (const Instr& i : program) {
        Code word = encode(i);
        binary.bytes.append(reinterpret_cast<const char*>(&word), 8);
      }
      auto found = validate(program);
      ASSERT_TRUE(found.empty()) << violation_error(found[0], program).what();
      ++clean;
      fast.emulator.options().optimisation = seed % 20 ? 0 : 2;
      auto r1 = oracle.run(binary, {a}, 1), r2 = fast.run(binary, {b}, 1);
      ASSERT_EQ(r1.cycles, r2.cycles) << "seed " << seed;
      Qpu &q1 = oracle.emulator.machine().qpus[0], &q2 = fast.emulator.machine().qpus[0];
      ASSERT_EQ(q1.instructions, q2.instructions) << "seed " << seed;
      for (unsigned s = 0; s < 70; ++s) {
        for (unsigned l = 0; l < 16; ++l) {
          ASSERT_EQ(hex(q1.slot[s][l]), hex(q2.slot[s][l]))
              << "seed " << seed << " slot " << s << " lane " << l << " engine "
              << static_cast<int>(engine);
        }
      }
      for (unsigned c = 2; c < 8; ++c)
        for (unsigned l = 0; l < 16; ++l)
          ASSERT_EQ(q1.mask[c][l], q2.mask[c][l]) << "seed " << seed << " mask " << c;
    }
    EXPECT_EQ(clean, last);
  }
}

// Legal where each lane takes one of the two.
TEST(QpuEngines, both_units_write_one_register) {
  for (Engine engine : engines()) {
    SCOPED_TRACE(static_cast<int>(engine));
    Bench b(with(engine));
    const std::uint64_t a = b.array(16);
    b.run(binary_of(kAddresses +
                        "add r2, elem, #15\nmov r3, #3\nmov r1, #1\nsub r0, elem, #8; nop; sf\n"
                        "mov.ns r1, r2; v8max.nc r1, r3, r3\nmov.zc r2, r1; v8max.zs r2, r0, r0\n"
                        "add r1, r1, r2\n" +
                        kStore + kEnd,
                    {"p0"}),
          {a});
    for (unsigned l = 0; l < 16; ++l) {
      const unsigned first = l < 8 ? l + 15 : 3, second = l == 8 ? 0 : first;
      EXPECT_EQ(b.word(a, l), first + second) << l;
    }
  }
}

// Translation keeps what is asked for and leaves out the rest: the same numbers in memory.
TEST(QpuEngines, translated_code_is_kept_in_files) {
  if (!translation_missing().empty()) GTEST_SKIP() << translation_missing();
  EmulatorOptions o = with(Engine::translated);
  o.file_cache = true;
  std::string directory = ::testing::TempDir() + "weft-qpu-cache";
  runtime::FileCache::set_shared_directory(directory);
  runtime::Binary binary = binary_of(
      kAddresses + "mov tmu0_s, r0\nnop; nop; ldtmu0\nadd r1, r4, #5\n" + kStore + kEnd, {"p0"});
  for (int round = 0; round < 2; ++round) {
    Bench b(o);
    std::uint64_t a = b.array(16);
    b.run(binary, {a});
    EXPECT_EQ(b.word(a, 3), 5u);
    std::size_t files = 0;
    for (auto& entry : std::filesystem::recursive_directory_iterator(directory))
      files += entry.is_regular_file();
    EXPECT_EQ(files, 1u);  // made once, found again
  }
  std::filesystem::remove_all(directory);
}

// A semaphore in the slot of a branch: who waits there goes on with the rest of the slots.
TEST(QpuEngines, waiting_in_the_slots_of_a_branch) {
  // QPU 0 counts down 3, acquiring in a slot each time; the others release late, 3 times each.
  const std::string text =
      "mov ra1, unif\nmov ra0, unif\nmov r2, #3\nmov r1, #0\nsub null, ra1, #0; nop; sf\n"
      "bra.allnz rel, 120\nnop\nnop\nnop\n"
      // QPU 0: the loop is the branch with its slots and one instruction before.
      "sub r2, r2, #1; nop; sf\nbra.anynz rel, -40\nsacq 4\nadd r1, r1, #2\nadd r1, r1, #5\n" +
      kStore + "nop\n" + kEnd +
      "nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nsrel 4\nnop\nnop\nsrel 4\nnop\nsrel 4\n" +
      kEnd;
  std::int64_t cycles = 0;
  for (Engine engine : engines()) {
    Bench b(with(engine));
    std::uint64_t a = b.array(16);
    auto r = b.run(binary_of(text, {"me", "p0"}), {a}, 2);
    EXPECT_EQ(b.word(a, 0), 21u);
    EXPECT_GT(b.emulator.stats().get("stall.qpu0.semaphore"), 0);
    EXPECT_FALSE(b.emulator.stats().check_books()) << b.emulator.stats().table();
    if (engine == Engine::oracle) cycles = r.cycles;
    EXPECT_EQ(r.cycles, cycles);
  }
}

// What LLVM could compute beforehand it would round to nearest.
TEST(QpuEngines, constants_are_rounded_as_the_qpu_does) {
  const std::string text =
      "mov ra0, unif\nldi r0, 0x13579bdf\nnot r0, r0\nitof r1, r0\n"
      "ldi r2, 0xc07ffffe\nnot r2, r2\nldi r3, 0xcc3fffff\nnot r3, r3\n"
      "fadd r2, r2, r3\nxor r1, r1, r2\n" +
      kStore + kEnd;
  std::uint32_t wanted = itof(~0x13579bdfu) ^ fadd(0x3f800001u, 0x33c00000u);
  EXPECT_EQ(fadd(0x3f800001u, 0x33c00000u), 0x3f800001u);  // to nearest: one more
  for (Engine engine : engines()) {
    EmulatorOptions o = with(engine);
    for (int level : {0, 2}) {
      o.optimisation = level;
      Bench b(o);
      std::uint64_t a = b.array(16);
      b.run(binary_of(text, {"p0"}), {a});
      EXPECT_EQ(hex(b.word(a, 3)), hex(wanted)) << static_cast<int>(engine);
    }
  }
}

// Loops longer than the time a QPU may run ahead, whose first instruction does nothing.
TEST(QpuEngines, giving_way_in_long_loops) {
  const std::string text =
      "mov ra0, unif\nmov r1, #0\nldi r2, 0x00000400\nnop\nsub r2, r2, #1; nop; sf\nadd r1, r1, "
      "#3\nbra.anynz rel, -56\nnop\nnop\nadd r1, r1, #1\nnop\n" +
      kStore + kEnd;
  std::int64_t cycles = 0;
  for (Engine engine : engines()) {
    Bench b(with(engine));
    std::uint64_t a = b.array(16), c = b.array(16);
    runtime::Binary two = binary_of("mov r0, unif\n" + text, {"me", "p0"});
    two.metadata["uniforms"] = Json(Json::Array{"me", "p0"});
    auto r = b.run(two, {a}, 1);
    EXPECT_EQ(b.word(a, 9), 4096u);
    auto both = b.run(binary_of("nop\nnop\n" + text, {"p0"}), {c}, 1);
    EXPECT_GT(both.cycles, 2048 * 10);
    if (engine == Engine::oracle) cycles = r.cycles;
    EXPECT_EQ(r.cycles, cycles);
  }
}

// What translation must not change: fixed by groups of sums and products with odd operands.
TEST(QpuEngines, infinities_in_long_sums) {
  const std::string text =
      kAddresses +
      "mov tmu0_s, r0\nldi r2, 0x7f800000\nldi r3, 0xff800000\nmov r1, #0\nnop; nop; "
      "ldtmu0\nmov ra3, r4\nfadd r1, r4, r2\nnop; fmul r0, ra3, r2\nfadd r1, r1, "
      "r3\nfadd r0, r0, r3\nfsub r1, r1, r0\nfadd r1, r1, ra3\n" +
      kStore + kEnd;
  std::vector<std::uint32_t> first;
  for (Engine engine : engines()) {
    Bench b(with(engine));
    std::uint64_t a = b.array(16);
    const std::uint32_t odd[] = {0, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                 1, 0x007fffffu, 0x7f7fffffu, 0x00800000u, 0x4f000000u};
    for (unsigned i = 0; i < 16; ++i) b.word(a, i) = odd[i % 10];
    b.run(binary_of(text, {"p0"}), {a});
    std::vector<std::uint32_t> got;
    for (unsigned i = 0; i < 16; ++i) got.push_back(b.word(a, i));
    if (first.empty()) first = got;
    EXPECT_EQ(got, first);
  }
}

}  // namespace
}  // namespace weft::qpu::hw
