// SPDX-License-Identifier: Apache-2.0
// Each error is reported exactly: faults of the simulator, strict rules of the hardware, the static
// checker, refusals of the command queue, damaged binaries. The device works after each.
#include <gtest/gtest.h>

#include "support.h"

namespace weft::vta {
namespace {

/// A program from assembly: DRAM addresses of LOAD and STORE are relative to parameter 0 unless
/// `bases` says else.
Program assemble(const Config& config, std::string_view text,
                 std::vector<std::uint32_t> uops = {}) {
  Isa isa(config);
  Program p{config, std::move(uops), {}};
  Kernel k;
  k.signature.name = "asm";
  k.signature.params.push_back({"x", runtime::ParamKind::pointer, dtypes::int8, "global"});
  for (const isa::Word& w : isa.assemble(text)) {
    Insn n = isa.decode(w);
    k.stream.insns.push_back(n);
    k.stream.base.push_back(n.op == Opcode::load && n.mem == MemType::uop ? kUopArena
                            : n.is_dma()                                  ? std::uint16_t{0}
                                                                          : kAbsolute);
  }
  p.kernels.push_back(std::move(k));
  return p;
}

constexpr const char* kNoPad = " pad=0,0,0,0";
std::string dma(std::string head, std::string tokens = " pop=-,- push=-,-") {
  return head + kNoPad + tokens + "\n";
}
const std::string kFinish = "finish pop=-,- push=-,-\n";
std::string gemm(std::string head, std::string tokens = " pop=-,- push=-,-") {
  return head + " dst=0,0 src=0,0 wgt=0,0" + tokens + "\n";
}

/// Runs on a device with one array of 64 KiB, expects the fault, then that the device still runs a
/// good program.
Refused run_fault(const Program& program, SimOptions options = {}) {
  Session session(program.config, options);
  session.argument(Bytes8(65536, 1));
  Refused r = refused([&] { session(program); });
  Builder b(program.config, "good");
  int x = b.param("x", dtypes::int32);
  b.load(MemType::acc, 0, x, 0, {1, 4});
  b.alu_imm(AluOp::add, UopKernel::compress({{4, 1, 1, 0}}), 1);
  b.push(Stage::compute, Stage::store);
  b.pop(Stage::compute, Stage::store);
  b.store(0, x, 64, {1, 4});
  EXPECT_NO_THROW(session(b.finish(Checked::no)));
  return r;
}

void expect_text(const Refused& r, std::string_view code,
                 std::initializer_list<std::string_view> parts) {
  EXPECT_EQ(r.code, code) << r.text;
  for (std::string_view part : parts)
    EXPECT_NE(r.text.find(part), std::string::npos) << "missing \"" << part << "\" in\n" << r.text;
}

TEST(VtaFault, deadlock_names_each_blocked_instruction_and_the_counters) {
  Program p = assemble(
      Config(), dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=-,next push=-,next") +
                    dma("load uop sram=0 dram=0 y=0 x=0 stride=0", " pop=prev,- push=prev,-") +
                    dma("store out sram=0 dram=0 y=1 x=1 stride=1", " pop=prev,- push=-,-") +
                    kFinish);
  std::initializer_list<std::string_view> parts{
      "load  instruction 0",
      "compute  instruction 1",
      "store  instruction 2",
      "lacks a token compute->load",
      "lacks a token load->compute",
      "lacks a token compute->store",
      "load->compute 0, compute->load 0, compute->store 0, store->compute 0",
      "3 of the 3 stages"};
  expect_text(run_fault(p), "vta.deadlock", parts);
  SimOptions oracle;
  oracle.engine = EngineKind::oracle;
  expect_text(run_fault(p, oracle), "vta.deadlock", parts);
  // The executor finds it by itself, without the cycle model before it.
  Isa isa{p.config};
  auto engine = make_fast_engine(isa);
  sim::Memory dram("dram", 1 << 20, 4096);
  Work work;
  Prepared prepared(p.kernels[0].stream);
  std::uint64_t base[] = {dram.allocate(4096)};
  expect_text(refused([&] { execute(prepared, base, 0, *engine, dram, {}, work); }), "vta.deadlock",
              parts);
  Verdict v = check(p, 0);
  ASSERT_TRUE(v);
  EXPECT_EQ(v->code, "vta.check.deadlock");
}

TEST(VtaFault, a_full_queue_holds_up_what_is_behind_it) {
  // 513 loads wait for a token that only an instruction behind them could give.
  std::string text = dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=-,next push=-,-");
  for (int i = 0; i < 512; ++i) text += dma("load inp sram=0 dram=0 y=1 x=1 stride=1");
  text += dma("load uop sram=0 dram=0 y=0 x=0 stride=0", " pop=-,- push=prev,-") + kFinish;
  expect_text(run_fault(assemble(Config(), text)), "vta.deadlock",
              {"instruction 513, which cannot be fetched"});
  text.erase(0, dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=-,next push=-,-").size());
  text = dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=-,next push=-,-") +
         text.substr(dma("load inp sram=0 dram=0 y=1 x=1 stride=1").size());
  EXPECT_EQ(run_fault(assemble(Config(), text)).code,
            "nothing was refused");  // one less and it goes
}

TEST(VtaFault, tokens_left_over_and_missing_finish) {
  expect_text(run_fault(assemble(
                  Config(), dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=-,- push=-,next") +
                                kFinish)),
              "vta.token.leftover", {"1 tokens load->compute"});
  expect_text(run_fault(assemble(Config(), dma("load inp sram=0 dram=0 y=1 x=1 stride=1"))),
              "vta.finish.missing", {"1 instructions"});
  expect_text(run_fault(assemble(
                  Config(), dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=prev,- push=-,-") +
                                kFinish)),
              "vta.token.stage", {"load stage has no previous stage"});
  SimOptions strict;
  strict.strict = true;
  std::string many;
  for (int i = 0; i < 256; ++i)
    many += dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=-,- push=-,next");
  expect_text(run_fault(assemble(Config(), many + kFinish), strict), "vta.token.overflow",
              {"256 tokens", "at most 255"});
}

TEST(VtaFault, accesses_outside_the_memories) {
  Config c;
  Isa isa(c);
  std::vector<std::uint32_t> uops{isa.encode(Uop{2047, 2047, 1023})};
  std::string load_uop = dma("load uop sram=0 dram=0 y=1 x=1 stride=1");
  for (EngineKind kind : {EngineKind::fast, EngineKind::oracle}) {
    SimOptions o;
    o.engine = kind;
    expect_text(
        run_fault(assemble(c, dma("load inp sram=2040 dram=0 y=1 x=9 stride=9") + kFinish), o),
        "vta.sram.inp", {"elements 2040 to 2048", "2048", "load  instruction 0"});
    expect_text(
        run_fault(assemble(c, dma("load wgt sram=1023 dram=0 y=1 x=2 stride=2") + kFinish), o),
        "vta.sram.wgt", {"1024"});
    expect_text(
        run_fault(assemble(c, dma("load acc8 sram=2047 dram=0 y=2 x=1 stride=1") + kFinish), o),
        "vta.sram.acc", {"2048"});
    expect_text(
        run_fault(assemble(c, dma("load uop sram=8192 dram=0 y=1 x=1 stride=1") + kFinish, uops),
                  o),
        "vta.sram.uop", {"8192"});
    expect_text(
        run_fault(assemble(c, dma("store out sram=2047 dram=0 y=1 x=2 stride=2") + kFinish), o),
        "vta.sram.acc", {"2047 to 2048"});
    expect_text(
        run_fault(
            assemble(c,
                     load_uop +
                         "gemm run uop=0,1 loop=2,1 dst=1,0 src=0,0 wgt=0,0 pop=-,- push=-,-\n" +
                         kFinish,
                     uops),
            o),
        "vta.sram.acc", {"2048"});
    expect_text(
        run_fault(
            assemble(c,
                     load_uop +
                         "gemm run uop=0,1 loop=2,1 dst=0,0 src=1,0 wgt=0,0 pop=-,- push=-,-\n" +
                         kFinish,
                     uops),
            o),
        "vta.sram.inp", {"2048"});
    expect_text(
        run_fault(
            assemble(c,
                     load_uop +
                         "gemm run uop=0,1 loop=2,1 dst=0,0 src=0,0 wgt=1,0 pop=-,- push=-,-\n" +
                         kFinish,
                     uops),
            o),
        "vta.sram.wgt", {"1024"});
    expect_text(
        run_fault(
            assemble(c,
                     load_uop +
                         "gemm run uop=0,8193 loop=1,1 dst=0,0 src=0,0 wgt=0,0 pop=-,- push=-,-\n" +
                         kFinish,
                     uops),
            o),
        "vta.sram.uop", {"8192"});
    expect_text(
        run_fault(
            assemble(c,
                     load_uop +
                         "alu add acc 0 run uop=0,1 loop=2,1 dst=0,0 src=1,0 pop=-,- push=-,-\n" +
                         kFinish,
                     uops),
            o),
        "vta.sram.acc", {"2048"});
    auto program = [&](const std::string& instruction) {
      return assemble(c, load_uop + instruction + " pop=-,- push=-,-\n" + kFinish, uops);
    };
    // The last iteration of the inner loop alone lies outside.
    for (const char* steps : {"dst=0,0 src=0,1", "dst=0,1 src=0,0"})
      expect_text(run_fault(program(cat("alu add acc 0 run uop=0,1 loop=1,2 ", steps)), o),
                  "vta.sram.acc", {"2048"});
    for (const int amount : {-32, -33, 33, 100, -100, -31, 31}) {
      const auto shift =
          program(cat("alu shr imm ", amount, " run uop=0,1 loop=1,1 dst=0,0 src=0,0"));
      Session session(c, o);
      session.argument(Bytes8(65536, 1));
      if (std::abs(amount) < 32) EXPECT_NO_THROW(session(shift)) << amount;
      else expect_text(run_fault(shift, o), "vta.alu.shift", {"0 to 31 to the right"});
    }
    expect_text(
        run_fault(
            assemble(c,
                     load_uop +
                         "alu shr imm 32 run uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" +
                         kFinish,
                     uops),
            o),
        "vta.alu.shift", {"0 to 31 to the right"});
    // Addition of x to itself, then a shift by that: lanes of 16843009.
    expect_text(
        run_fault(
            assemble(c,
                     load_uop + dma("load acc sram=0 dram=0 y=1 x=2 stride=2") +
                         "alu shr acc 0 run uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" +
                         kFinish,
                     {isa.encode(Uop{0, 1, 0})}),
            o),
        "vta.alu.shift", {"legal"});
    expect_text(
        run_fault(assemble(c, dma("load inp sram=0 dram=4090 y=1 x=7 stride=7") + kFinish), o),
        "vta.dram.bounds", {"row 0", "16 bytes past the end of the 65536-byte allocation"});
    expect_text(
        run_fault(assemble(c, dma("store out sram=0 dram=4000 y=3 x=8 stride=60") + kFinish), o),
        "vta.dram.bounds", {"row 2"});
    expect_text(
        run_fault(
            assemble(c, "store out sram=0 dram=0 y=1 x=2 stride=2 pad=0,0,1,0 pop=-,- push=-,-\n" +
                            kFinish),
            o),
        "vta.store.pad", {"cannot pad"});
  }
}

TEST(VtaFault, parameters_and_orders_that_do_not_exist) {
  Config c;
  Isa isa(c);
  sim::Memory memory("dram", 1 << 20);
  auto engine = make_oracle(isa);
  Work work;
  Builder b(c, "one");
  b.load(MemType::inp, 0, b.param("x", dtypes::int8), 0, {1, 1});
  Prepared one(b.finish(Checked::no).kernels[0].stream);
  Refused parameter = refused([&] { execute(one, {}, 0, *engine, memory, {}, work); });
  EXPECT_EQ(parameter.code, "vta.dram.parameter");
  EXPECT_NE(parameter.text.find("parameter 0 of 0"), std::string::npos) << parameter.text;
  ExecuteOptions options;
  std::vector<std::uint32_t> order;  // first what waits for the LOAD's token
  for (std::uint32_t i = 0; i < one.stream.insns.size(); ++i) {
    if (one.stream.insns[i].pop_prev) order.push_back(i);
  }
  ASSERT_FALSE(order.empty());
  options.order = order;
  Refused early = refused([&] { execute(one, {}, 0, *engine, memory, options, work); });
  EXPECT_EQ(early.code, "vta.order");
  EXPECT_NE(early.text.find("before its tokens"), std::string::npos) << early.text;
}

TEST(VtaFault, loads_of_no_rows_write_their_zeros) {
  Config c;
  Isa isa(c);
  const std::vector<std::uint32_t> uops{isa.encode(Uop{5, 0, 0}), isa.encode(Uop{6, 0, 0})};
  // Element 5 and 6 become 7; then both micro-operations name element 0, and elements 4 to 6 are
  // zero.
  const std::string text =
      dma("load uop sram=0 dram=0 y=1 x=2 stride=2") +
      "alu add imm 7 run uop=0,2 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" +
      "load uop sram=0 dram=0 y=0 x=1 stride=181 pad=1,1,0,0 pop=-,- push=-,-\n" +
      "load acc sram=4 dram=0 y=0 x=1 stride=1 pad=0,1,1,0 pop=-,- push=-,-\n" +
      "alu add imm 3 run uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" + kFinish;
  for (EngineKind kind : {EngineKind::fast, EngineKind::oracle}) {
    SimOptions o;
    o.engine = kind;
    VtaSimulator sim(c, o);
    sim::Launch launch;
    launch.pointers = {sim.memory().allocate(4096, 4096)};
    sim.run(sim.load(assemble(c, text, uops)), launch, {});
    const std::int32_t wanted[] = {3, 0, 0, 0, 0, 0, 7};
    for (std::uint32_t e = 0; e < 7; ++e) EXPECT_EQ(sim.engine().acc(e)[0], wanted[e]) << e;
  }
}

TEST(VtaFault, strict_mode_refuses_what_the_chips_do_not_do) {
  Config c;
  Isa isa(c);
  SimOptions strict;
  strict.strict = true;
  std::vector<std::uint32_t> uops{isa.encode(Uop{0, 0, 0}), isa.encode(Uop{0, 0, 0})};
  std::string load_uop = dma("load uop sram=0 dram=0 y=1 x=2 stride=2");
  std::string store = dma("load uop sram=0 dram=0 y=0 x=0 stride=0", " pop=-,- push=-,next") +
                      dma("store out sram=0 dram=0 y=1 x=1 stride=1", " pop=prev,- push=prev,-") +
                      "finish pop=-,next push=-,-\n";
  auto both = [&](const std::string& text, const char* code,
                  std::initializer_list<std::string_view> parts) {
    Program p = assemble(c, text, uops);
    expect_text(run_fault(p, strict), code, parts);
    EXPECT_EQ(run_fault(p).code, "nothing was refused");
  };
  both(dma("load acc sram=0 dram=0 y=1 x=1 stride=1") + store, "vta.strict.stale_out",
       {"element 0", "shift right by 0"});
  both(load_uop + dma("load acc8 sram=0 dram=0 y=1 x=1 stride=1") + kFinish, "vta.strict.acc8",
       {"functional model"});
  both("load wgt sram=0 dram=0 y=1 x=1 stride=1 pad=1,0,0,0 pop=-,- push=-,-\n" + kFinish,
       "vta.strict.wgt_pad", {"padding"});
  // What the hardware does with sizes of nothing and with shapes that it has no counters for.
  auto shape = [&](std::string_view text, const char* pads) {
    return cat(text, " pad=", pads, " pop=-,- push=-,-\n") + kFinish;
  };
  both(shape("load uop sram=0 dram=0 y=2 x=1 stride=1", "0,0,0,0"), "vta.strict.uop_shape",
       {"one row", "y = 2"});
  both(shape("load uop sram=0 dram=0 y=0 x=1 stride=1", "0,0,0,0"), "vta.strict.uop_shape",
       {"y = 0"});
  both(shape("load uop sram=0 dram=0 y=1 x=1 stride=1", "0,1,0,0"), "vta.strict.uop_shape",
       {"padding"});
  both(shape("load inp sram=0 dram=0 y=1 x=0 stride=1", "0,0,1,0"), "vta.strict.empty_pad",
       {"no columns"});
  both(shape("load acc sram=0 dram=0 y=0 x=0 stride=1", "1,0,0,0"), "vta.strict.empty_pad",
       {"no columns"});
  for (const char* same : {"load inp sram=0 dram=0 y=0 x=2 stride=1 pad=1,1,1,1",
                           "load acc sram=0 dram=0 y=0 x=2 stride=1 pad=1,1,1,1",
                           "load wgt sram=0 dram=0 y=1 x=0 stride=1 pad=1,1,1,1",
                           "load uop sram=0 dram=0 y=7 x=0 stride=1 pad=1,1,1,1",
                           "load wgt sram=0 dram=0 y=0 x=3 stride=1 pad=0,0,0,0"})
    EXPECT_EQ(run_fault(assemble(c, cat(same, " pop=-,- push=-,-\n") + kFinish, uops), strict).code,
              "nothing was refused")
        << same;
  both(load_uop + "alu mul imm 3 run uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" + kFinish,
       "vta.strict.mul", {"multiplication"});
  both(
      load_uop + "alu shr imm 16 run uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" + kFinish,
      "vta.strict.shift", {"5 bits", "-16 to 15"});
  both(load_uop + "alu add imm 1 reset uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" +
           kFinish,
       "vta.strict.alu_reset", {"no effect"});
  both(load_uop + gemm("gemm run uop=0,2 loop=1,1") + kFinish, "vta.strict.hazard",
       {"element 0 is written by two micro-operations in a row"});
}

TEST(VtaFault, strict_mode_knows_the_output_memory_and_the_end_of_a_program) {
  Config c;
  Isa isa(c);
  SimOptions strict;
  strict.strict = true;
  const std::vector<std::uint32_t> uops{isa.encode(Uop{0, 0, 0}), isa.encode(Uop{1, 2, 0}),
                                        isa.encode(Uop{2, 0, 0})};
  const std::string load = dma("load uop sram=0 dram=0 y=1 x=3 stride=3"),
                    store =
                        dma("store out sram=0 dram=0 y=1 x=1 stride=1", " pop=prev,- push=prev,-"),
                    finish = "finish pop=-,next push=-,-\n";
  const char* give = " pop=-,- push=-,next";
  auto strictly = [&](const std::string& text, const char* code,
                      std::initializer_list<std::string_view> parts) {
    const Program p = assemble(c, text, uops);
    expect_text(run_fault(p, strict), code, parts);
    EXPECT_EQ(run_fault(p).code, "nothing was refused") << text;
  };
  auto alu = [](const char* what, const char* uop, const char* tokens) {
    return cat("alu ", what, " run uop=", uop, " loop=1,1 dst=0,0 src=0,0", tokens, "\n");
  };
  const char* none = " pop=-,- push=-,-";
  // A reset clears the accumulator; the output memory gets what the multiplier made meanwhile.
  strictly(load + gemm("gemm reset uop=0,1 loop=1,1", give) + store + finish,
           "vta.strict.stale_out", {"element 0 was reset", "shift right by 0"});
  strictly(
      load + gemm("gemm reset uop=0,1 loop=1,1") + alu("shr imm 0", "0,1", give) + store + finish,
      "nothing was refused", {});
  strictly(load + gemm("gemm reset uop=0,1 loop=1,1") + gemm("gemm run uop=0,1 loop=1,1", give) +
               store + finish,
           "nothing was refused", {});
  // FINISH tells the host that all is done.
  strictly(load + alu("shr imm 0", "0,1", give) +
               dma("store out sram=0 dram=0 y=1 x=1 stride=1", " pop=prev,- push=-,-") + kFinish,
           "vta.strict.undrained", {"store stage: 0 of its 1", "push a token to compute"});
  strictly(load + kFinish + alu("shr imm 0", "0,1", none) + kFinish, "vta.strict.finish",
           {"2 instructions follow", "last"});
  // Shifts by another element: lanes hold 1s of bytes, 0x01010101, unless they are made smaller.
  const std::string data = dma("load acc sram=0 dram=0 y=1 x=3 stride=3");
  for (auto [amount, legal] : {std::pair{15, true}, {16, false}, {-16, true}, {-17, false}}) {
    // Element 2 is the amount; element 1 is shifted by it.
    const std::string text = load + data + alu("min imm -32768", "2,3", none) +
                             alu("add imm 16384", "2,3", none) +
                             alu(cat("add imm ", 16384 + amount).c_str(), "2,3", none) +
                             alu("shr acc 0", "1,2", none) + kFinish;
    strictly(text, legal ? "nothing was refused" : "vta.strict.shift",
             legal ? std::initializer_list<std::string_view>{}
                   : std::initializer_list<std::string_view>{"lane 0 of accumulator element 2",
                                                             "-16 to 15"});
  }
}

TEST(VtaFault, strict_mode_accepts_what_the_schedules_make) {
  SimOptions strict;
  strict.strict = true;
  Config c;
  MatmulShape s{4, 4, 4};
  Program p = matmul(c, s, {2, 2, 2, 2}, {8, true, true, 0, 127});
  Session session(c, strict);
  session.argument(Bytes8(4 * 4 * 16, 1));
  session.argument(Bytes8(4 * 4 * 256, 1));
  session.argument(std::vector<std::int32_t>(4 * 16, 1));
  session.argument(Bytes8(4 * 4 * 16, 1));
  EXPECT_NO_THROW(session(p));
}

TEST(VtaFault, kernels_that_repeat_an_element_become_instructions_that_strict_mode_takes) {
  // One sum over 3 x 8 products, a chain of ALU steps on one element, and lists with repetitions:
  // the same numbers as the reference interpreter gives for the products, with nothing written
  // twice in a row.
  const Config c;
  SimOptions strict;
  strict.strict = true;
  strict.engine = EngineKind::oracle;
  for (int form = 0; form < 4; ++form) {
    Builder b(c, "repeats");
    const int x = b.param("x", dtypes::int8), w = b.param("w", dtypes::int8),
              y = b.param("y", dtypes::int8);
    b.load(MemType::inp, 0, x, 0, {1, 24});
    b.load(MemType::wgt, 0, w, 0, {1, 24});
    b.push(Stage::load, Stage::compute);
    b.pop(Stage::load, Stage::compute);
    b.reset(UopKernel::compress({{1, 0, 0, 0}}));
    UopKernel k;
    k.uops = {Uop{0, 0, 0}};
    if (form == 0) k.loops = {UopKernel::Loop{3, 0, 8, 8}, UopKernel::Loop{8, 0, 1, 1}};
    if (form == 1) k.loops[0] = {24, 0, 1, 1};
    if (form == 2) k.loops[1] = {24, 0, 1, 1};
    if (form == 3)
      for (std::uint32_t i = 1; i < 24; ++i) k.uops.push_back({0, i, i});
    EXPECT_TRUE(k.repeats_destination());
    b.gemm(k);
    b.alu_imm(AluOp::shr, UopKernel::compress({{1, 0, 0, 0}}), 4);
    b.push(Stage::compute, Stage::store);
    b.pop(Stage::compute, Stage::store);
    b.store(0, y, 0, {1, 1});
    const Program p = b.finish();
    Session run(c, strict);
    std::mt19937_64 rng(form + 1);
    const auto in = random_values<std::int8_t>(rng, 24 * 16, -128, 127),
               weights = random_values<std::int8_t>(rng, 24 * 256, -128, 127);
    run.argument(in), run.argument(weights), run.argument(Bytes8(16, 55));
    ASSERT_NO_THROW(run(p)) << form;
    const Bytes8 got = run.result<std::int8_t>(2);
    for (std::size_t o = 0; o < 16; ++o) {
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < 24; ++i)
        for (std::size_t k2 = 0; k2 < 16; ++k2)
          sum += in[i * 16 + k2] * weights[i * 256 + o * 16 + k2];
      EXPECT_EQ(got[o], static_cast<std::int8_t>((sum >> 4) & 0xff)) << form << " " << o;
    }
  }
  // Shifts by more than 5 bits with a sign can say are several.
  for (int by : {31, 24, 16, -17, -24, -31}) {
    Builder b(c, "shifts");
    const int x = b.param("x", dtypes::int32), y = b.param("y", dtypes::int8);
    b.load(MemType::acc, 0, x, 0, {1, 2});
    b.alu_imm(AluOp::shr, UopKernel::compress({{2, 1, 1, 0}}), by);
    b.push(Stage::compute, Stage::store);
    b.pop(Stage::compute, Stage::store);
    b.store(0, y, 0, {1, 2});
    const Program p = b.finish();
    Session run(c, strict);
    std::mt19937_64 rng(7);
    const auto in = random_values<std::int32_t>(rng, 32, INT32_MIN, INT32_MAX);
    run.argument(in), run.argument(Bytes8(32, 55));
    ASSERT_NO_THROW(run(p)) << by;
    const Bytes8 got = run.result<std::int8_t>(1);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::int64_t v = by > 0 ? in[i] >> by : std::int64_t{in[i]} * (std::int64_t{1} << -by);
      EXPECT_EQ(got[i], static_cast<std::int8_t>(v & 0xff)) << by << " " << i;
    }
  }
  // What moves on is one instruction.
  EXPECT_FALSE(UopKernel::compress({{4, 1, 0, 1}, {3, 0, 1, 4}}).repeats_destination());
}

Verdict check_one(const std::string& text, std::vector<std::uint32_t> uops = {}) {
  Program p = assemble(Config(), text, std::move(uops));
  return check(p, 0);
}

void expect_verdict(const Verdict& v, std::string_view code, std::string_view part) {
  ASSERT_TRUE(v) << code;
  EXPECT_EQ(v->code, code) << render(*v);
  EXPECT_NE(render(*v).find(part), std::string::npos) << render(*v);
}

TEST(VtaChecker, finds_each_kind_of_mistake) {
  Isa isa{Config()};
  std::vector<std::uint32_t> uop{isa.encode(Uop{0, 0, 0})};
  std::string load_inp = dma("load inp sram=0 dram=0 y=1 x=1 stride=1"),
              load_uop = dma("load uop sram=0 dram=0 y=1 x=1 stride=1");
  expect_verdict(check_one(load_inp), "vta.check.finish", "does not end with FINISH");
  expect_verdict(check_one(kFinish + kFinish), "vta.check.finish", "follow FINISH");
  expect_verdict(
      check_one(dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=prev,- push=-,-") + kFinish),
      "vta.check.stage", "not there");
  expect_verdict(
      check_one(dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=-,- push=-,next") + kFinish),
      "vta.check.leftover", "load->compute");
  expect_verdict(check_one(load_inp + kFinish), "vta.check.undrained",
                 "does not wait for the load stage: 0 of its 1");
  expect_verdict(check_one(dma("load acc sram=2047 dram=0 y=1 x=2 stride=2") + kFinish),
                 "vta.check.sram", "2048");
  expect_verdict(check_one(gemm("gemm run uop=0,1 loop=1,1") + kFinish), "vta.check.uop",
                 "was not loaded");
  expect_verdict(check_one(dma("load uop sram=0 dram=1 y=1 x=1 stride=1") + kFinish, uop),
                 "vta.check.uop", "micro-operation 1 of 1");
  expect_verdict(
      check_one(load_uop +
                    "alu shr imm 40 run uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" +
                    kFinish,
                uop),
      "vta.check.shift", "40");
  // GEMM may read before LOAD has written.
  expect_verdict(check_one(load_uop + load_inp + gemm("gemm run uop=0,1 loop=1,1") + kFinish, uop),
                 "vta.check.hazard", "load and compute both use inp element 0");
  // LOAD may overwrite what GEMM still reads.
  std::string use = dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=-,- push=-,next") +
                    gemm("gemm run uop=0,1 loop=1,1", " pop=prev,- push=-,-");
  expect_verdict(check_one(load_uop + use + load_inp + kFinish, uop), "vta.check.hazard",
                 "needed: a token compute->load");
  // STORE may read before the sum is complete; the sum may be overwritten before STORE has read it.
  expect_verdict(
      check_one(load_uop + "alu add imm 1 run uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" +
                    dma("store out sram=0 dram=0 y=1 x=1 stride=1") + kFinish,
                uop),
      "vta.check.hazard", "needed: a token compute->store");
  expect_verdict(
      check_one(
          load_uop + "alu add imm 1 run uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,next\n" +
              dma("store out sram=0 dram=0 y=1 x=1 stride=1", " pop=prev,- push=-,-") +
              "alu add imm 1 run uop=0,1 loop=1,1 dst=0,0 src=0,0 pop=-,- push=-,-\n" + kFinish,
          uop),
      "vta.check.hazard", "needed: a token store->compute");
  // Through DRAM: what STORE writes is loaded again without waiting for it.
  expect_verdict(
      check_one(load_uop + dma("load uop sram=0 dram=0 y=0 x=0 stride=0", " pop=-,- push=-,next") +
                    dma("store out sram=0 dram=0 y=1 x=1 stride=1", " pop=prev,- push=-,-") +
                    dma("load acc8 sram=4 dram=0 y=1 x=1 stride=1") + kFinish,
                uop),
      "vta.check.hazard", "both use x element 0");
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += dma("load inp sram=0 dram=0 y=1 x=1 stride=1", " pop=-,- push=-,next");
  for (int i = 0; i < 300; ++i)
    many += dma("load uop sram=0 dram=0 y=0 x=0 stride=0", " pop=prev,- push=-,-");
  expect_verdict(check_one(many + kFinish), "vta.check.outstanding",
                 "more than 255 tokens load->compute");
}

TEST(VtaChecker, a_schedule_with_one_token_taken_away_is_refused) {
  // Plant the fault: drop each token flag of a good program in turn. Each drop must be noticed.
  Config c;
  Program good = matmul(c, {4, 4, 4}, {2, 2, 2, 2}, {8, false, true, 0, 127});
  ASSERT_FALSE(check(good, 0));
  int dropped = 0;
  for (std::size_t i = 0; i < good.kernels[0].stream.insns.size(); ++i) {
    for (bool Insn::*flag :
         {&Insn::pop_prev, &Insn::pop_next, &Insn::push_prev, &Insn::push_next}) {
      if (!(good.kernels[0].stream.insns[i].*flag)) continue;
      Program bad = good;
      bad.kernels[0].stream.insns[i].*flag = false;
      EXPECT_TRUE(check(bad, 0)) << "instruction " << i;
      ++dropped;
    }
  }
  EXPECT_GT(dropped, 40);
  // A pair of tokens dropped together balances, yet leaves a hazard.
  Program hazard = good;
  for (Insn& n : hazard.kernels[0].stream.insns) {
    if (n.stage() == Stage::load) n.push_next = n.pop_next = false;
    if (n.stage() == Stage::compute && n.op != Opcode::finish) n.pop_prev = n.push_prev = false;
  }
  Verdict v = check(hazard, 0);
  ASSERT_TRUE(v);
  EXPECT_EQ(v->code, "vta.check.hazard");
}

TEST(VtaBuilder, refuses_what_cannot_be_recorded) {
  Config c;
  auto with = [&](auto&& work) {
    Builder b(c, "k");
    int x = b.param("x", dtypes::int8);
    return refused([&] { work(b, x); });
  };
  expect_text(with([](Builder& b, int x) {
                b.load(MemType::inp, 2000, x, 0, {1, 100});
              }),
              "vta.build.capacity", {"elements 2000 to 2099", "2048 elements of 16 bytes", "32"});
  expect_text(with([](Builder& b, int x) {
                b.store(2000, x, 0, {1, 100});
              }),
              "vta.build.capacity", {"lie outside acc"});
  expect_text(with([](Builder& b, int x) {
                b.load(MemType::uop, 0, x, 0, {1, 1});
              }),
              "vta.build.memory", {"uop"});
  expect_text(with([](Builder& b, int) {
                b.load(MemType::inp, 0, 7, 0, {1, 1});
              }),
              "vta.build.parameter", {"parameter 7 of 1"});
  expect_text(with([](Builder& b, int x) {
                b.store(0, x, 0, {1, 1, 1, 1});
              }),
              "vta.build.store_pad", {"cannot pad"});
  expect_text(with([](Builder& b, int x) {
                b.load(MemType::inp, 0, x, -1, {1, 1});
              }),
              "vta.build.range", {"dram is -1"});
  expect_text(with([](Builder& b, int x) {
                b.load(MemType::inp, 0, x, 0, {2, 2, 4, 16});
              }),
              "vta.encode.range", {"y_pad_0", "0 to 15"});
  expect_text(with([](Builder& b, int) { b.alu_imm(AluOp::shr, UopKernel::compress({}), 32); }),
              "vta.build.shift", {"32"});
  expect_text(with([](Builder& b, int) { b.alu_imm(AluOp::add, UopKernel::compress({}), 40000); }),
              "vta.build.constant", {"-32768 to 32767"});
  expect_text(with([](Builder& b, int) { b.push(Stage::load, Stage::store); }), "vta.token.pair",
              {"load to store", "go through compute"});
  expect_text(with([](Builder& b, int) {
                UopKernel k;
                k.uops.resize(8193);
                for (std::uint32_t i = 0; i < 8193; ++i) k.uops[i].dst = i & 1;
                b.gemm(k);
              }),
              "vta.uop.capacity", {"8193", "1 to 8192"});
  expect_text(with([](Builder& b, int x) {
                b.load(MemType::inp, 0, x, 0, {1, 1});
                b.gemm(UopKernel::compress({}));
                b.finish();
              }),
              "vta.check.hazard",
              {"load and compute both use inp element 0", "needed: a token load->compute"});
  expect_text(refused([&] {
                matmul(c, {64, 64, 64}, {64, 64, 1, 1});
              }),
              "vta.schedule.capacity", {"4096 elements of acc", "2048"});
  expect_text(refused([&] {
                matmul(c, {64, 64, 64}, {1, 64, 64, 2});
              }),
              "vta.schedule.capacity", {"of wgt", "for each of 2 threads"});
  expect_text(refused([&] { matmul(c, {0, 1, 1}, {}); }), "vta.schedule.extent", {"o is 0"});
  expect_text(refused([&] {
                conv2d(c, {1, 4, 4, 3, 4, 1, 1, 0, 2}, {});
              }),
              "vta.schedule.groups", {"2 groups do not divide 3"});
}

TEST(VtaBinary, damage_and_other_machines_are_refused) {
  Config c;
  Program p = matmul(c, {1, 4, 4}, {1, 4, 1, 1});
  runtime::Binary good = to_binary(p, "vta");
  Program again = from_binary(good);
  EXPECT_EQ(again.kernels[0].stream.insns, p.kernels[0].stream.insns);
  EXPECT_EQ(again.uops, p.uops);
  EXPECT_EQ(to_binary(again, "vta").bytes, good.bytes);
  auto load = [](const runtime::Binary& b) {
    return refused([&] { open_simulator(Config())->load(b); });
  };
  EXPECT_EQ(load(good).code, "nothing was refused");
  for (std::size_t n = 0; n < good.bytes.size(); n += 7) {  // cut at any byte
    runtime::Binary cut = good;
    cut.bytes.resize(n);
    EXPECT_NE(load(cut).code, "nothing was refused") << n;
  }
  std::mt19937_64 rng(9);
  for (int round = 0; round < 2000;
       ++round) {  // any byte changed: an error or a program, never a crash
    runtime::Binary bad = good;
    bad.bytes[rng() % bad.bytes.size()] = static_cast<char>(rng());
    load(bad);
  }
  runtime::Binary other =
      to_binary(matmul(Config::sample("4x8x8"), {1, 4, 4}, {1, 4, 1, 1}), "vta");
  expect_text(load(other), "vta.binary.config", {"4x8_i8w8a32", "1x16_i8w8a32"});
  runtime::Binary version = good;
  version.bytes[4] = 9;
  expect_text(load(version), "vta.binary.version", {"version 9"});
  version.bytes[0] = 'X';
  expect_text(load(version), "vta.binary.damaged", {"magic"});
  good.format = "qux";
  EXPECT_EQ(load(good).code, "device.binary.format");
}

TEST(VtaDevice, refuses_wrong_launches_and_reports_limits) {
  Config c;
  Ref<runtime::Device> device = open_simulator(c);
  Program p = matmul(c, {1, 4, 4}, {1, 4, 1, 1});
  Ref<runtime::Executable> e = device->load(to_binary(p, "vta"));
  Ref<runtime::Storage> s = device->allocate(1 << 16, 4096);
  std::vector<runtime::KernelArg> two{runtime::KernelArg::pointer(s.get()),
                                      runtime::KernelArg::pointer(s.get())};
  expect_text(refused([&] { device->launch(*e, 0, two, {}).wait(); }), "vta.launch.arguments",
              {"takes 3 arrays, not 2"});
  std::vector<runtime::KernelArg> odd{runtime::KernelArg::pointer(s.get()),
                                      runtime::KernelArg::pointer(s.get(), 16),
                                      runtime::KernelArg::pointer(s.get())};
  expect_text(refused([&] { device->launch(*e, 0, odd, {}).wait(); }), "vta.launch.alignment",
              {"argument \"B\"", "256 bytes"});
  std::vector<runtime::KernelArg> good{runtime::KernelArg::pointer(s.get()),
                                       runtime::KernelArg::pointer(s.get(), 4096),
                                       runtime::KernelArg::pointer(s.get(), 32768)};
  static_cast<sim::SimDevice&>(*device).limits.cycles = 10;
  expect_text(refused([&] { device->launch(*e, 0, good, {}).wait(); }), "vta.limit.cycles",
              {"the limit is 10"});
  static_cast<sim::SimDevice&>(*device).limits.cycles = 1'000'000;
  runtime::TraceSink trace;
  device->trace_to(&trace);
  runtime::Span span = device->measure([&] { device->launch(*e, 0, good, {}).wait(); });
  EXPECT_GT(span.cycles, 500);
  EXPECT_DOUBLE_EQ(span.seconds, static_cast<double>(span.cycles) / 100e6);
  EXPECT_GT(trace.size(), 10u);
  EXPECT_FALSE(device->stats().check_books()) << device->stats().table();
  EXPECT_EQ(device->stats().get("macs"), 16 * 256);
  EXPECT_EQ(device->stats().get("bytes.inp.written"), 4 * 16);
  EXPECT_EQ(device->stats().get("bytes.wgt.written"), 16 * 256);
  EXPECT_EQ(device->stats().get("bytes.dram.written"), 4 * 16);
  // A heap that is too small says so; nothing is reserved that was not asked for.
  SimOptions small;
  small.memory_bytes = 1 << 20;
  Ref<runtime::Device> tiny = open_simulator(c, small);
  expect_text(refused([&] { tiny->allocate(2 << 20); }), "sim.memory.exhausted",
              {"vta dram", "2 MiB"});
  EXPECT_NO_THROW(tiny->allocate(1 << 19));
}

TEST(VtaDevice, cycles_do_not_need_data_and_agree_with_the_order_of_execution) {
  Config c;
  MatmulShape s{8, 8, 8};
  Program p = matmul(c, s, {4, 4, 4, 2}, {4, false, true, 0, 127});
  Prepared prepared(p.kernels[0].stream);
  TimingOptions options;
  options.keep_order = true;
  Timing t = estimate(prepared, c, {}, options);
  ASSERT_EQ(t.order.size(), prepared.stream.insns.size());
  EXPECT_FALSE(std::is_sorted(t.order.begin(), t.order.end()));  // stages overlap
  // Run in the order of time: the same bits as in the executor's own order.
  std::mt19937_64 rng(8);
  auto a = random_values<std::int8_t>(rng, 64 * 16, -128, 127),
       w = random_values<std::int8_t>(rng, 64 * 256, -128, 127);
  Bytes8 results[2];
  for (int timed = 0; timed < 2; ++timed) {
    Isa isa(c);
    auto engine = make_oracle(isa);
    sim::Memory dram("dram", 1 << 20, 4096);
    std::uint64_t uops = dram.allocate(p.uops.size() * 4, 4096), pa = dram.allocate(a.size(), 4096),
                  pw = dram.allocate(w.size(), 4096), pc = dram.allocate(64 * 16, 4096);
    std::memcpy(dram.raw(uops), p.uops.data(), p.uops.size() * 4);
    std::memcpy(dram.raw(pa), a.data(), a.size());
    std::memcpy(dram.raw(pw), w.data(), w.size());
    ExecuteOptions run;
    if (timed) run.order = t.order;
    Work work;
    std::uint64_t bases[] = {pa, pw, pc};
    execute(prepared, bases, uops, *engine, dram, run, work);
    results[timed].resize(64 * 16);
    std::memcpy(results[timed].data(), dram.raw(pc), 64 * 16);
  }
  EXPECT_EQ(results[0], results[1]);
  SimOptions only;
  only.mode = Mode::cycles;
  Session session(c, only);
  session.argument(a);
  session.argument(w);
  session.argument(Bytes8(64 * 16, 5));
  EXPECT_EQ(session(p).cycles, t.cycles);
  EXPECT_EQ(session.result<std::int8_t>(2), Bytes8(64 * 16, 5));
  EXPECT_EQ(refused([] { parse_timing("{\"bus_byts\": 3}"); }).code, "vta.timing.key");
  EXPECT_EQ(refused([] { parse_timing("{\"bus_bytes\": 0}"); }).code, "vta.timing.value");
  TimingParams slow = parse_timing("{\"latency\": 500}");
  EXPECT_GT(estimate(prepared, c, slow).cycles, t.cycles);
}

TEST(VtaListing, shows_dma_micro_operations_and_tokens) {
  Program p = matmul(Config(), {1, 4, 4}, {1, 4, 1, 1});
  std::string text = listing(p);
  for (const char* part : {"load\tload inp", "; A", "; B", "store out", "; C", "gemm run",
                           "gemm reset", "uop 0: dst=", "push=-,next", "finish"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(listing(p, 2).find("uop 0:"), std::string::npos);
  EXPECT_NE(listing(p, 8 | 2).find("pop=-,- push=-,-"), std::string::npos);
}

}  // namespace
}  // namespace weft::vta
