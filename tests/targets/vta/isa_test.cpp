// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace weft::vta {
namespace {

TEST(VtaIsa, bits_are_where_the_hardware_has_them) {
  Isa isa{Config()};
  Insn g;
  g.op = Opcode::gemm;
  g.uop_begin = 1, g.uop_end = 8192, g.iter_out = 3, g.iter_in = 5;
  g.dst_out = 7, g.dst_in = 9, g.src_out = 11, g.src_in = 13, g.wgt_out = 17, g.wgt_in = 19;
  g.push_prev = true;
  isa::Word w = isa.encode(g);
  EXPECT_EQ(w.bits(0, 3), 2u);
  EXPECT_EQ(w.bits(5, 1), 1u);
  EXPECT_EQ(w.bits(8, 13), 1u);
  EXPECT_EQ(w.bits(21, 14), 8192u);
  EXPECT_EQ(w.bits(35, 14), 3u);
  EXPECT_EQ(w.bits(49, 14), 5u);
  EXPECT_EQ(w.bits(64, 11), 7u);
  EXPECT_EQ(w.bits(75, 11), 9u);
  EXPECT_EQ(w.bits(86, 11), 11u);
  EXPECT_EQ(w.bits(97, 11), 13u);
  EXPECT_EQ(w.bits(108, 10), 17u);
  EXPECT_EQ(w.bits(118, 10), 19u);
  Insn a;
  a.op = Opcode::alu, a.alu = AluOp::shr, a.use_imm = true, a.imm = -3;
  w = isa.encode(a);
  EXPECT_EQ(w.bits(108, 3), 3u);
  EXPECT_EQ(w.bits(111, 1), 1u);
  EXPECT_EQ(w.bits(112, 16), 0xfffdu);
  Insn l;
  l.op = Opcode::load, l.mem = MemType::inp, l.sram = 2, l.dram = 0xabcdef01, l.y_size = 4,
  l.x_size = 5, l.x_stride = 6;
  l.y_pad_0 = 1, l.y_pad_1 = 2, l.x_pad_0 = 3, l.x_pad_1 = 15;
  w = isa.encode(l);
  EXPECT_EQ(w.bits(7, 3), 2u);
  EXPECT_EQ(w.bits(10, 16), 2u);
  EXPECT_EQ(w.bits(26, 32), 0xabcdef01u);
  EXPECT_EQ(w.bits(64, 16), 4u);
  EXPECT_EQ(w.bits(112, 16), 0xf321u);
  EXPECT_EQ(isa.encode(Uop{2047, 3, 1023}), 2047u | 3u << 11 | 1023u << 22);
}

Insn random_insn(std::mt19937_64& rng, const Config& c) {
  auto bits = [&](int n) { return static_cast<std::uint32_t>(rng() & ((1ull << n) - 1)); };
  Insn n;
  n.op = static_cast<Opcode>(rng() % 5);
  n.pop_prev = rng() & 1, n.pop_next = rng() & 1, n.push_prev = rng() & 1, n.push_next = rng() & 1;
  int u = c.log_depth(MemType::uop), i = c.log_depth(MemType::inp), w = c.log_depth(MemType::wgt),
      a = c.log_depth(MemType::acc);
  if (n.is_dma()) {
    static const MemType loads[] = {MemType::uop, MemType::wgt, MemType::inp, MemType::acc,
                                    MemType::acc8};
    n.mem = n.op == Opcode::store ? MemType::out : loads[rng() % 5];
    n.sram = bits(16), n.dram = bits(32), n.y_size = bits(16), n.x_size = bits(16),
    n.x_stride = bits(16);
    n.y_pad_0 = bits(4), n.y_pad_1 = bits(4), n.x_pad_0 = bits(4), n.x_pad_1 = bits(4);
  } else if (n.op != Opcode::finish) {
    n.reset = rng() & 1, n.uop_begin = bits(u), n.uop_end = bits(u + 1), n.iter_out = bits(14),
    n.iter_in = bits(14);
    n.dst_out = bits(a), n.dst_in = bits(a);
    if (n.op == Opcode::gemm) {
      n.src_out = bits(i), n.src_in = bits(i), n.wgt_out = bits(w), n.wgt_in = bits(w);
    } else {
      n.src_out = bits(a), n.src_in = bits(a), n.alu = static_cast<AluOp>(rng() % 5),
      n.use_imm = rng() & 1;
      n.imm = static_cast<std::int16_t>(bits(16));
    }
  }
  return n;
}

// WEFT_VTA_INSTRUCTIONS: how many of each configuration, 3000 where it is not set.
TEST(VtaIsa, codec_table_and_text_agree_on_random_instructions) {
  const char* wanted = std::getenv("WEFT_VTA_INSTRUCTIONS");
  const int rounds = wanted ? std::atoi(wanted) : 3000;
  ASSERT_GT(rounds, 0);
  std::mt19937_64 rng(5);
  for (const std::string& name : Config::samples()) {
    Isa isa(Config::sample(name));
    std::vector<isa::Word> stream;
    std::string listing, numbered;  // as text, and as a program's listing shows it
    for (int round = 0; round < rounds; ++round) {
      Insn n = random_insn(rng, isa.config());
      isa::Word word = isa.encode(n);
      ASSERT_EQ(isa.decode(word), n);
      isa::Instruction row = isa.instructions().decode(word);
      ASSERT_EQ(isa.instructions().encode(row), word);
      std::string text = isa.print(n);
      ASSERT_EQ(isa.instructions().print(row), text);
      std::vector<isa::Word> again = isa.assemble(text);
      ASSERT_EQ(again.size(), 1u);
      ASSERT_EQ(again[0], word) << text;
      stream.push_back(word);
      listing += text + "\n";
      if (text.ends_with(" pop=-,- push=-,-")) text.resize(text.size() - 17);
      numbered += cat("%", round, "\tcompute\t", text, "\t; micro-operations\n");
    }
    ASSERT_EQ(isa.assemble(listing), stream);
    ASSERT_EQ(isa.assemble(numbered), stream);
  }
}

TEST(VtaIsa, a_field_that_overflows_is_refused_and_named) {
  Isa isa{Config()};
  auto refusal = [&](auto&& edit) {
    Insn n;
    n.op = Opcode::gemm;
    edit(n);
    try {
      isa.encode(n);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "vta.encode.range");
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refusal([](Insn& n) {
              n.iter_out = 20000;
            }).find("field \"iter_out\" of gemm cannot hold 20000"),
            std::string::npos);
  EXPECT_NE(refusal([](Insn& n) { n.iter_in = 16384; }).find("0 to 16383"), std::string::npos);
  EXPECT_NE(refusal([](Insn& n) { n.uop_begin = 8192; }).find("uop_begin"), std::string::npos);
  EXPECT_EQ(refusal([](Insn& n) { n.uop_end = 8192; }), "accepted");
  for (auto member : {&Insn::dst_out, &Insn::dst_in, &Insn::src_out, &Insn::src_in}) {
    EXPECT_NE(refusal([&](Insn& n) { n.*member = 2048; }).find("2048"), std::string::npos);
    EXPECT_NE(refusal([&](Insn& n) {
                n.op = Opcode::alu;
                n.*member = 2048;
              }).find("2048"),
              std::string::npos);
  }
  for (auto member : {&Insn::wgt_out, &Insn::wgt_in})
    EXPECT_NE(refusal([&](Insn& n) { n.*member = 1024; }).find("0 to 1023"), std::string::npos);
  EXPECT_NE(refusal([](Insn& n) {
              n.op = Opcode::alu;
              n.imm = 32768;
            }).find("-32768 to 32767"),
            std::string::npos);
  for (auto member : {&Insn::sram, &Insn::y_size, &Insn::x_size, &Insn::x_stride}) {
    EXPECT_NE(refusal([&](Insn& n) {
                n.op = Opcode::load;
                n.*member = 65536;
              }).find("65536"),
              std::string::npos);
  }
  for (auto member : {&Insn::y_pad_0, &Insn::y_pad_1, &Insn::x_pad_0, &Insn::x_pad_1}) {
    EXPECT_NE(refusal([&](Insn& n) {
                n.op = Opcode::load;
                n.*member = 16;
              }).find("0 to 15"),
              std::string::npos);
  }
  EXPECT_NE(refusal([](Insn& n) {
              n.op = Opcode::load;
              n.mem = MemType::out;
            }).find("mem"),
            std::string::npos);
  EXPECT_NE(refusal([](Insn& n) {
              n.op = Opcode::store;
              n.mem = MemType::acc;
            }).find("mem"),
            std::string::npos);
  EXPECT_THROW(isa.encode(Uop{2048, 0, 0}), Error);
  EXPECT_THROW(isa.encode(Uop{0, 2048, 0}), Error);
  EXPECT_THROW(isa.encode(Uop{0, 0, 1024}), Error);
}

TEST(VtaIsa, words_of_no_instruction_are_refused) {
  Isa isa{Config()};
  for (std::uint64_t lo : {5ull, 6ull, 7ull, 4ull << 7, 7ull << 7, 1ull << 60, (1ull << 63) | 2}) {
    try {
      isa.decode({lo, 0});
      ADD_FAILURE() << hex(lo);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "vta.decode.unknown");
    }
  }
  EXPECT_THROW(isa.decode({4, 5ull << 44}), Error);  // ALU operation 5
  EXPECT_THROW(isa.assemble("gemm run"), Error);
  // A line of a listing that ends before its instruction, or has no number's end.
  for (const char* line : {"%1\tcompute", "%1", "%", "%1\t", "%\tgemm\t"})
    EXPECT_THROW(isa.assemble(line), Error) << line;
}

}  // namespace
}  // namespace weft::vta
