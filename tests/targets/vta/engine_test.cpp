// SPDX-License-Identifier: Apache-2.0
// The fast engine, on every kernel set this host has, against the scalar oracle.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "support.h"

namespace weft::vta {

const KernelSet* emulated_avxvnni_kernels();
const KernelSet& emulated_plain_kernels();
const KernelSet* emulated_vnni_kernels();

namespace {

/// What this host can run, the VNNI kernels over emulated operations, and those for any processor.
std::vector<const KernelSet*> tested_kernels() {
  std::vector<const KernelSet*> out = usable_kernels();
  out.push_back(emulated_avxvnni_kernels());
  out.push_back(emulated_vnni_kernels());
  out.push_back(&emulated_plain_kernels());
  return out;
}

/// Random instructions whose accesses all stay inside the memories.
class StreamMaker {
 public:
  StreamMaker(const Config& config, std::uint64_t seed) : c_(config), isa_(config), rng_(seed) {}

  Program make(int instructions) {
    Program p{c_, {}, {}};
    Kernel k;
    k.signature.name = "random";
    for (const char* name : {"inp", "wgt", "acc", "acc8", "out"})
      k.signature.params.push_back({name, runtime::ParamKind::pointer, dtypes::int8, "global"});
    uops_.assign(64, Uop{});
    for (int i = 0; i < instructions; ++i) {
      switch (below(10)) {
        case 0: add(k, load(MemType::inp), 0); break;
        case 1: add(k, load(MemType::wgt), 1); break;
        case 2: add(k, load(MemType::acc), 2); break;
        case 3: add(k, load(MemType::acc8), 3); break;
        case 4: load_uops(p, k); break;
        case 5: add(k, store(), 4); break;
        case 6: add(k, alu(), kAbsolute); break;
        default: add(k, gemm(), kAbsolute); break;
      }
    }
    Insn n;
    n.op = Opcode::finish;
    add(k, n, kAbsolute);
    p.kernels.push_back(std::move(k));
    return p;
  }

  static constexpr std::int64_t kDram = 4096;  // elements in each array

 private:
  std::uint32_t below(std::int64_t n) {
    return static_cast<std::uint32_t>(rng_() % static_cast<std::uint64_t>(n));
  }
  void add(Kernel& k, const Insn& n, std::uint16_t base) {
    k.stream.insns.push_back(n);
    k.stream.base.push_back(base);
  }
  void pads(Insn& n) {
    if (below(2))
      n.y_pad_0 = below(4), n.y_pad_1 = below(4), n.x_pad_0 = below(4), n.x_pad_1 = below(4);
  }
  Insn load(MemType mem) {
    Insn n;
    n.op = Opcode::load, n.mem = mem;
    n.y_size = below(6), n.x_size = below(9), n.x_stride = below(2) ? n.x_size : below(40);
    pads(n);
    MemType m = mem == MemType::acc8 ? MemType::acc : mem;
    n.sram = below(std::min<std::int64_t>(c_.depth(m), 256) - n.sram_elements() + 1);
    if (below(8) == 0) n.sram = static_cast<std::uint32_t>(c_.depth(m) - n.sram_elements());
    n.dram = below(kDram - 6 * 40);
    return n;
  }
  Insn store() {
    Insn n;
    n.op = Opcode::store, n.mem = MemType::out;
    n.y_size = below(6), n.x_size = below(9), n.x_stride = below(2) ? n.x_size : below(40);
    n.sram = below(256 - n.sram_elements());
    n.dram = below(kDram - 6 * 40);
    return n;
  }
  void load_uops(Program& p, Kernel& k) {
    std::uint32_t at = below(64), count = 1 + below(64 - at);
    Insn n;
    n.op = Opcode::load, n.mem = MemType::uop, n.sram = at,
    n.dram = static_cast<std::uint32_t>(p.uops.size()), n.y_size = 1, n.x_size = n.x_stride = count;
    // Half of the time regular, as real kernels are.
    bool regular = below(2);
    std::uint32_t d = below(3), s = below(3), w = below(3);
    for (std::uint32_t i = 0; i < count; ++i) {
      Uop u = regular ? Uop{i * d % 100, i * s % 100, i * w % 100}
                      : Uop{below(100), below(100), below(100)};
      uops_[at + i] = u;
      p.uops.push_back(isa_.encode(u));
    }
    add(k, n, kUopArena);
  }
  void loops(Insn& n) {
    n.uop_begin = below(64),
    n.uop_end = n.uop_begin + below(std::min<std::uint32_t>(64 - n.uop_begin, 12) + 1);
    n.iter_out = below(6), n.iter_in = below(6);
    if (below(4) == 0) n.iter_out = n.iter_in = 1;
    auto step = [&] { return below(3) == 0 ? 0 : below(12); };
    n.dst_out = step(), n.dst_in = step(), n.src_out = step(), n.src_in = step();
  }
  Insn gemm() {
    Insn n;
    n.op = Opcode::gemm;
    loops(n);
    n.wgt_out = below(2) ? 0 : below(12), n.wgt_in = below(2) ? 0 : below(12);
    n.reset = below(8) == 0;
    if (n.reset && below(2)) {  // elements in a row, which are cleared in one piece
      n.uop_end = n.uop_begin + 1;
      (below(2) ? n.iter_in : n.dst_in) = 1;
      if (below(3) == 0) n.dst_out = n.iter_in;
    }
    return n;
  }
  Insn alu() {
    Insn n;
    n.op = Opcode::alu;
    loops(n);
    n.alu = static_cast<AluOp>(below(5)), n.use_imm = below(2);
    n.imm = static_cast<std::int16_t>(rng_());
    if (n.alu == AluOp::shr) n.use_imm = true, n.imm = static_cast<std::int32_t>(below(63)) - 31;
    return n;
  }

  const Config& c_;
  Isa isa_;
  std::mt19937_64 rng_;
  std::vector<Uop> uops_;
};

struct Outcome {
  std::vector<std::int32_t> acc;
  Bytes8 out;
  std::int64_t macs = 0, cycles = 0;
};

Outcome outcome(const Program& program, const Config& config, SimOptions options,
                std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  VtaSimulator sim(config, std::move(options));
  sim::Launch launch;
  std::uint64_t out = 0;
  for (MemType m : {MemType::inp, MemType::wgt, MemType::acc, MemType::acc8, MemType::out}) {
    std::uint64_t bytes = static_cast<std::uint64_t>(StreamMaker::kDram * config.elem_bytes(m));
    std::uint64_t at = sim.memory().allocate(bytes, 4096);
    if (m != MemType::out) {
      for (std::uint64_t i = 0; i < bytes; i += 8) sim.memory().store<std::uint64_t>(at + i, rng());
    }
    launch.pointers.push_back(at);
    out = at;
  }
  std::size_t handle = sim.load(program);
  Outcome o;
  o.cycles = sim.run(handle, launch, {}).cycles;
  sim.run(handle, launch, {});  // a second run starts from clear memories
  for (std::uint32_t e = 0; e < config.depth(MemType::acc); ++e) {
    for (std::int32_t v : sim.engine().acc(e)) o.acc.push_back(v);
  }
  o.out.resize(static_cast<std::size_t>(StreamMaker::kDram * config.elem_bytes(MemType::out)));
  std::memcpy(o.out.data(), sim.memory().raw(out), o.out.size());
  o.macs = sim.stats().get("macs");
  EXPECT_FALSE(sim.stats().check_books()) << sim.stats().table();
  return o;
}

// WEFT_VTA_STREAMS: how many of each configuration, 30 where it is not set.
TEST(VtaEngine, random_streams_give_the_oracles_bits_on_every_kernel_set) {
  const char* wanted = std::getenv("WEFT_VTA_STREAMS");
  const std::uint64_t streams = wanted ? std::strtoull(wanted, nullptr, 10) : 30;
  ASSERT_GT(streams, 0u);
  std::int64_t macs = 0;
  for (const std::string& name :
       {std::string("sim"), std::string("4x8x8"), std::string("1x32x32")}) {
    Config config = Config::sample(name);
    for (std::uint64_t seed = 1; seed <= streams; ++seed) {
      Program program = StreamMaker(config, seed).make(60);
      SimOptions oracle;
      oracle.engine = EngineKind::oracle;
      Outcome want = outcome(program, config, oracle, seed);
      macs += want.macs;
      for (const KernelSet* kernels : tested_kernels()) {
        SimOptions fast;
        fast.kernels = kernels;
        Outcome got = outcome(program, config, fast, seed);
        ASSERT_EQ(got.acc, want.acc) << name << " seed " << seed << " " << kernels->name;
        ASSERT_EQ(got.out, want.out) << name << " seed " << seed << " " << kernels->name;
        ASSERT_EQ(got.macs, want.macs);
        ASSERT_EQ(got.cycles, want.cycles);
      }
    }
  }
  EXPECT_GT(macs, 1'000'000);  // the streams do something
}

TEST(VtaEngine, odd_blocks_too) {
  for (int block : {2, 6}) {
    ConfigValues v;
    v.log_block = block;
    if (block == 2) v.log_inp_buff = 13, v.log_wgt_buff = 14, v.log_acc_buff = 15;
    if (block == 6) v.log_inp_buff = 17, v.log_wgt_buff = 22, v.log_acc_buff = 19;
    Config config = Config::make(v);
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Program program = StreamMaker(config, seed).make(60);
      SimOptions oracle;
      oracle.engine = EngineKind::oracle;
      Outcome want = outcome(program, config, oracle, seed);
      for (const KernelSet* kernels : tested_kernels()) {
        SimOptions fast;
        fast.kernels = kernels;
        Outcome got = outcome(program, config, fast, seed);
        ASSERT_EQ(got.acc, want.acc) << block << " seed " << seed << " " << kernels->name;
        ASSERT_EQ(got.out, want.out) << block << " seed " << seed << " " << kernels->name;
      }
    }
  }
}

TEST(VtaEngine, every_kernel_of_every_set_at_odd_sizes) {
  std::mt19937_64 rng(3);
  const KernelSet& plain = portable_kernels();
  for (const KernelSet* set : tested_kernels()) {
    for (std::size_t n : {4u, 12u, 16u, 28u, 48u, 100u}) {
      auto wide = random_values<std::int32_t>(rng, n, INT32_MIN, INT32_MAX);
      Bytes8 a(n), b(n);
      set->narrow(a.data(), wide.data(), n);
      plain.narrow(b.data(), wide.data(), n);
      EXPECT_EQ(a, b) << set->name << " " << n;
      std::vector<std::int32_t> wa(n), wb(n);
      set->widen(wa.data(), a.data(), n);
      plain.widen(wb.data(), a.data(), n);
      EXPECT_EQ(wa, wb);
    }
    // Extremes: every product is 128 * 128 or its negative.
    for (int block : {8, 16, 32, 64}) {
      auto bb = static_cast<std::size_t>(block);
      Bytes8 x(8 * bb, -128), w(bb * bb, -128);
      for (std::size_t i = 0; i < w.size(); i += 3) w[i] = 127;
      std::vector<std::byte> px(x.size() * static_cast<std::size_t>(set->inp_scale) + 64),
          pw(set->wgt_bytes(block) + 64);
      std::vector<std::int32_t> acc(8 * bb, 7);
      set->pack_inp(px.data(), x.data(), 8, block);
      set->pack_wgt(pw.data(), w.data(), block);
      std::vector<GemmRow> rows;
      for (std::uint32_t r = 0; r < 8; ++r)
        rows.push_back({r * static_cast<std::uint32_t>(block),
                        r * static_cast<std::uint32_t>(block * set->inp_scale)});
      GemmStep step{0, 0};
      set->gemm({acc.data(), px.data(), pw.data(), rows.data(), 8, &step, 1, block});
      for (std::size_t o = 0; o < bb; ++o) {
        std::int32_t want = 7;
        for (std::size_t k = 0; k < bb; ++k) want += -128 * w[o * bb + k];
        for (std::size_t r = 0; r < 8; ++r)
          ASSERT_EQ(acc[r * bb + o], want) << set->name << " block " << block;
      }
    }
  }
}

}  // namespace
}  // namespace weft::vta
