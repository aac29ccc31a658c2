// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/synchronise.h"

#include <gtest/gtest.h>

#include "support.h"

namespace weft::vta {
namespace {

Program without_tokens(Program p) {
  Stream& s = p.kernels[0].stream;
  Stream out;
  for (std::size_t i = 0; i < s.insns.size(); ++i) {
    Insn n = s.insns[i];
    n.pop_prev = n.pop_next = n.push_prev = n.push_next = false;
    if (n.is_nop()) continue;
    out.insns.push_back(n);
    out.base.push_back(s.base[i]);
  }
  s = std::move(out);
  return p;
}

/// The stream's own meaning: one instruction after the other.
Bytes8 in_order(const Program& p, std::uint64_t seed, std::span<const std::uint32_t> order,
                std::size_t bytes) {
  Isa isa(p.config);
  auto engine = make_oracle(isa);
  sim::Memory dram("dram", 1 << 22, 4096);
  std::uint64_t uops = dram.allocate(std::max<std::size_t>(p.uops.size() * 4, 4), 4096);
  std::memcpy(dram.raw(uops), p.uops.data(), p.uops.size() * 4);
  std::mt19937_64 rng(seed);
  std::vector<std::uint64_t> bases;
  for (std::size_t i = 0; i < p.kernels[0].signature.params.size(); ++i) {
    bases.push_back(dram.allocate(bytes, 4096));
    for (std::size_t k = 0; k < bytes; k += 8) dram.store<std::uint64_t>(bases.back() + k, rng());
  }
  ExecuteOptions options;
  options.order = order;
  Work work;
  execute(Prepared(p.kernels[0].stream), bases, uops, *engine, dram, options, work);
  Bytes8 out;
  for (std::uint64_t base : bases) {
    const auto* data = reinterpret_cast<const std::int8_t*>(dram.raw(base));
    out.insert(out.end(), data, data + bytes);
  }
  return out;
}

/// Synchronised, the default order and the order of time give what program order gives.
void expect_same(const Program& bare, std::uint64_t seed, std::size_t bytes) {
  Isa isa(bare.config);
  Program synced = bare;
  synced.kernels[0].stream = synchronise(bare.kernels[0].stream, bare.uops, isa);
  Verdict verdict = check(synced, 0);
  ASSERT_FALSE(verdict) << render(*verdict) << listing(synced, 2);
  std::vector<std::uint32_t> sequential(bare.kernels[0].stream.insns.size());
  for (std::size_t i = 0; i < sequential.size(); ++i) sequential[i] = static_cast<std::uint32_t>(i);
  TimingOptions options;
  options.keep_order = true;
  Timing t = estimate(Prepared(synced.kernels[0].stream), bare.config, {}, options);
  Bytes8 want = in_order(bare, seed, sequential, bytes);
  ASSERT_EQ(in_order(synced, seed, {}, bytes), want);
  ASSERT_EQ(in_order(synced, seed, t.order, bytes), want);
}

TEST(VtaSynchronise, schedules_without_their_tokens_get_as_good_ones) {
  Config c;
  MatmulShape s{8, 8, 8};
  Program hand = matmul(c, s, {4, 4, 4, 2}, {4, false, true, 0, 127});
  Program bare = without_tokens(hand);
  expect_same(bare, 1, 1 << 14);
  Program synced = bare;
  synced.kernels[0].stream = synchronise(bare.kernels[0].stream, bare.uops, Isa(c));
  std::int64_t by_hand = estimate(Prepared(hand.kernels[0].stream), c, {}).cycles,
               automatic = estimate(Prepared(synced.kernels[0].stream), c, {}).cycles;
  EXPECT_LE(automatic,
            by_hand + by_hand / 50);  // data-based tokens lose nothing against the hand's
}

/// Tokens that a stream pushes.
std::int64_t tokens(const Stream& s) {
  std::int64_t n = 0;
  for (const Insn& i : s.insns) n += i.push_prev + i.push_next;
  return n;
}

/// The hand-written convolutions place tokens per virtual thread, in the order of statements, as
/// passes that insert them before threads are expanded do. From data flow alone come no more
/// tokens and no more cycles.
TEST(VtaSynchronise, tokens_from_data_equal_those_of_virtual_threads_on_resnet) {
  Config c;
  const Epilogue e{8, true, true, 0, 127};
  for (int threads : {1, 2}) {
    std::int64_t by_hand = 0, automatic = 0;
    for (const ResnetLayer& layer : resnet18_layers()) {
      ConvShape s = shape_of(layer, c);
      Program hand = conv2d(c, s, default_tiles(c, s, e, threads), e);
      Program synced = without_tokens(hand);
      Stream& stream = synced.kernels[0].stream;
      stream = synchronise(stream, synced.uops, Isa(c));
      Verdict verdict = check(synced, 0);
      ASSERT_FALSE(verdict) << layer.name << render(*verdict);
      EXPECT_LE(tokens(stream), tokens(hand.kernels[0].stream)) << layer.name;
      const std::int64_t before = estimate(Prepared(hand.kernels[0].stream), c, {}).cycles,
                         after = estimate(Prepared(stream), c, {}).cycles;
      EXPECT_LE(after, before + before / 100) << layer.name << " with " << threads;
      by_hand += before * layer.repeats, automatic += after * layer.repeats;
      RecordProperty(cat(layer.name, "_", threads),
                     cat(tokens(hand.kernels[0].stream), " -> ", tokens(stream), " tokens, ",
                         before, " -> ", after, " cycles"));
    }
    EXPECT_LE(automatic, by_hand);
  }
}

TEST(VtaSynchronise, random_streams_keep_the_meaning_of_program_order) {
  Config c;
  Isa isa(c);
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    std::mt19937_64 rng(seed);
    auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng() % n); };
    Program p{c, {}, {}};
    Kernel k;
    for (const char* name : {"a", "b", "c"})
      k.signature.params.push_back({name, runtime::ParamKind::pointer, dtypes::int8, "global"});
    for (std::uint32_t i = 0; i < 12; ++i)
      p.uops.push_back(isa.encode(Uop{static_cast<std::uint32_t>(below(20)),
                                      static_cast<std::uint32_t>(below(20)),
                                      static_cast<std::uint32_t>(below(8))}));
    auto add = [&](Insn n, std::uint16_t base) {
      k.stream.insns.push_back(n);
      k.stream.base.push_back(base);
    };
    Insn load;
    load.op = Opcode::load, load.mem = MemType::uop, load.y_size = 1,
    load.x_size = load.x_stride = 12;
    add(load, kUopArena);
    for (int i = 0; i < 40; ++i) {
      Insn n;
      int kind = static_cast<int>(below(6));
      if (kind < 3) {
        static const MemType types[] = {MemType::inp, MemType::wgt, MemType::acc8};
        n.op = Opcode::load, n.mem = types[kind];
        n.sram = static_cast<std::uint32_t>(below(20)),
        n.dram = static_cast<std::uint32_t>(below(10)),
        n.y_size = static_cast<std::uint32_t>(1 + below(2)),
        n.x_size = static_cast<std::uint32_t>(1 + below(4));
        n.x_stride = static_cast<std::uint32_t>(below(6));
        add(n, static_cast<std::uint16_t>(below(3)));
      } else if (kind == 3) {
        n.op = Opcode::store, n.mem = MemType::out, n.sram = static_cast<std::uint32_t>(below(20)),
        n.dram = static_cast<std::uint32_t>(below(40)), n.y_size = 1,
        n.x_size = n.x_stride = static_cast<std::uint32_t>(1 + below(4));
        add(n, static_cast<std::uint16_t>(below(3)));
      } else {
        n.op = kind == 4 ? Opcode::gemm : Opcode::alu;
        n.uop_begin = static_cast<std::uint32_t>(below(10)),
        n.uop_end = n.uop_begin + 1 + static_cast<std::uint32_t>(below(2)),
        n.iter_out = 1 + static_cast<std::uint32_t>(below(3)), n.iter_in = 1;
        n.dst_out = static_cast<std::uint32_t>(below(3)),
        n.src_out = static_cast<std::uint32_t>(below(3));
        n.alu = AluOp::add, n.use_imm = n.op == Opcode::alu, n.imm = n.use_imm ? 7 : 0;
        add(n, kAbsolute);
      }
    }
    Insn finish;
    finish.op = Opcode::finish;
    add(finish, kAbsolute);
    p.kernels.push_back(std::move(k));
    SCOPED_TRACE(seed);
    expect_same(p, seed, 1 << 13);
  }
}

TEST(VtaSynchronise, an_instruction_that_leaves_its_memory_is_named) {
  Config c;
  Isa isa(c);
  Stream stream;
  Insn load;
  load.op = Opcode::load, load.mem = MemType::inp, load.y_size = 1, load.x_size = load.x_stride = 4;
  load.sram = static_cast<std::uint32_t>(c.depth(MemType::inp)) - 2;
  stream.insns = {load};
  stream.base = {0};
  testing::expect_error(ErrorKind::lower, "vta.lower.range",
                        {cat("reaches element ", c.depth(MemType::inp) + 1, " of "),
                         cat("which has ", c.depth(MemType::inp)), "instruction"},
                        [&] { synchronise(stream, {}, isa); });
}

}  // namespace
}  // namespace weft::vta
