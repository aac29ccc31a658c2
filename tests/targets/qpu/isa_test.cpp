// SPDX-License-Identifier: Apache-2.0
// The QPU's instruction words: worked encodings of the hardware's documents, and every row of the
// table through encode, decode, print and assemble.

#include "weft/targets/qpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace weft::qpu::hw {
namespace {

struct Worked {
  const char* text;
  std::uint32_t low, high;
};

constexpr Worked kWorked[] = {
    {"nop", 0x009e7000, 0x100009e7},
    {"nop; nop; thrend", 0x009e7000, 0x300009e7},
    {"nop; nop; ldtmu0", 0x009e7000, 0xa00009e7},
    {"or r0, unif", 0x15827d80, 0x10020827},
    {"mov r0, unif; nop", 0x15827d80, 0x10020827},
    {"add r1, r0, r2", 0x0c9e7080, 0x10020867},
    {"fadd ra0, ra1, rb2", 0x01042dc0, 0x10020027},
    {"fadd r0, r1, r2; fmul r3, ra4, rb5", 0x211052b7, 0x10024823},
    {"sub null, r0, #1; nop; sf", 0x0d9c11c0, 0xd00229e7},
    {"add.zs ra3, ra3, #15", 0x0c0cfdc0, 0xd00400e7},
    {"nop; fmul.zc r2, r2, r3", 0x209e7013, 0x1000c9e2},
    {"nop; mul24 r0, r1, r2", 0x409e700a, 0x100049e0},
    {"ldi r0, 0x12345678", 0x12345678, 0xe0020827},
    {"ldi ra5, 0x3f800000; to rb6", 0x3f800000, 0xe0024146},
    {"ldiu r1, 0xccccaaaa", 0xccccaaaa, 0xe6020867},
    {"ldis r1, 0xccccaaaa", 0xccccaaaa, 0xe2020867},
    {"sacq 3", 0x00000013, 0xe80009e7},
    {"srel 3", 0x00000003, 0xe80009e7},
    {"bra.always rel, 16", 0x00000010, 0xf0f809e7},
    {"bra.anyz rel, -32", 0xffffffe0, 0xf02809e7},
    {"bra.always ra2, 8; link ra31", 0x00000008, 0xf0f447e7},
    {"nop; mov r1, r0; rot=1", 0x809f1000, 0xd00049e1},
    {"nop; mov r1, r0; rot=r5", 0x809f0000, 0xd00049e1},
    {"mov tmu0_s, r0", 0x159e7000, 0x10020e27},
    {"mov vpm, r0", 0x159e7000, 0x10020c27},
    {"mov r0, vpm", 0x15c27d80, 0x10020827},
    {"ldi vr_setup, 0x83010000", 0x83010000, 0xe0020c67},
    {"ldi vw_setup, 0x80904000", 0x80904000, 0xe0021c67},
    {"mov vr_addr, unif", 0x15827d80, 0x10020ca7},
    {"mov vw_addr, unif", 0x15827d80, 0x10021ca7},
    {"nop; nop; raddr_a=50", 0x00ca7000, 0x100009e7},
    {"nop; nop; raddr_b=50", 0x009f2000, 0x100009e7},
    {"ldi host_int, 1", 0x00000001, 0xe00209a7},
    {"mov r5rep, unif", 0x15827d80, 0x10021967},
    {"mov r0, elem", 0x159a7d80, 0x10020827},
    {"mov r0, qpu", 0x159e6fc0, 0x10020827},
    {"itof r0, r1", 0x089e7240, 0x10020827},
    {"ftoi r0, r1", 0x079e7240, 0x10020827},
    {"clz r0, r1", 0x189e7240, 0x10020827},
    {"not r0, r1", 0x179e7240, 0x10020827},
    {"fadd r0, r4, r1; nop; pm; unpack=4", 0x019e7840, 0x19020827},
    {"mov ra0, r0; nop; pack=1", 0x159e7000, 0x10120027},
    {"mov r0, ra0; nop; unpack=2", 0x15027d80, 0x14020827},
};

TEST(QpuIsa, worked_encodings) {
  for (const Worked& w : kWorked) {
    std::vector<Instr> program = assemble(w.text);
    ASSERT_EQ(program.size(), 1u) << w.text;
    Code word = (static_cast<Code>(w.high) << 32) | w.low;
    EXPECT_EQ(hex(encode(program[0]), 16), hex(word, 16)) << w.text;
    EXPECT_EQ(decode(word), program[0]) << w.text << " came back as " << print(decode(word));
    EXPECT_EQ(assemble(print(decode(word)))[0], program[0]) << print(decode(word));
  }
}

TEST(QpuIsa, every_row_survives_encode_decode_print_assemble) {
  std::mt19937_64 rng(4);
  const isa::InstructionSet& set = instruction_set();
  for (std::size_t f = 0; f < set.formats().size(); ++f) {
    for (int round = 0; round < 3000; ++round) {
      isa::Instruction table{f, {}};
      for (const isa::Field& field : set.formats()[f].fields) {
        std::int64_t value = static_cast<std::int64_t>(rng() & ((1ull << field.width) - 1));
        if (field.kind == isa::FieldKind::signed_) value -= 1ll << (field.width - 1);
        if (field.kind == isa::FieldKind::named)
          value = static_cast<std::int64_t>(field.names[rng() % field.names.size()].code);
        table.values.push_back(value);
      }
      Instr i = from_table(table);
      ASSERT_EQ(to_table(i), table);
      Code word = encode(i);
      ASSERT_EQ(decode(word), i) << print(i);
      std::string text = print(i);
      std::vector<Instr> again = assemble(text);
      ASSERT_EQ(again.size(), 1u);
      ASSERT_EQ(encode(again[0]), word) << text << "  became  " << print(again[0]);
    }
  }
}

TEST(QpuIsa, refuses_fields_that_do_not_fit) {
  Instr i;
  i.waddr_add = 64;
  EXPECT_THROW(
      try { encode(i); } catch (const Error& e) {
        EXPECT_EQ(e.code(), "qpu.encode.range");
        EXPECT_NE(e.message().find("waddr_add"), std::string::npos);
        EXPECT_NE(std::string(e.what()).find("0 to 63"), std::string::npos);
        throw;
      },
      Error);
  Instr reserved;
  reserved.op_add = 9;
  EXPECT_THROW(encode(reserved), Error);
  Instr branch;
  branch.kind = kBranch;
  branch.cond_br = 12;
  branch.raddr_a = 0;
  EXPECT_THROW(encode(branch), Error);
  try {
    decode(0xf0c809e700000000ull);  // branch condition 12 is reserved
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "qpu.decode.unknown");
  }
}

TEST(QpuIsa, assembler_refusals_have_a_slug_and_a_caret) {
  struct Bad {
    const char* text;
    const char* slug;
    const char* part;
  };
  const Bad bad[] = {
      {"foo r0, r1", "qpu.asm.mnemonic", "no ADD operation"},
      {"add r0, ra1, ra2", "qpu.asm.port", "only one register of file A"},
      {"add r0, rb1, rb2", "qpu.asm.port", "only one register of file B"},
      {"add r0, rb1, #3", "qpu.asm.port", "file B and a small immediate"},
      {"add r0, r1, #16", "qpu.asm.immediate", "no small immediate"},
      {"add r0, #1, #2", "qpu.asm.port", "one small immediate"},
      {"add r9, r0, r0", "qpu.asm.destination", "cannot be written"},
      {"add r0, r6, r0", "qpu.asm.operand", "cannot be read"},
      {"add.xx r0, r1, r2", "qpu.asm.condition", "no condition"},
      {"add r0, r1, #2; nop; ldtmu0", "qpu.asm.signal", "exclude"},
      {"fadd ra0, r0, r1; fmul ra1, r0, r1", "qpu.asm.file", "same register file"},
      {"sacq 16", "qpu.asm.range", "no semaphore 16"},
      {"bra.always rel", "qpu.asm.syntax", "offset"},
      {"bra.maybe rel, 8", "qpu.asm.condition", "maybe"},
      {"nop; nop; what", "qpu.asm.extra", "means nothing"},
      {"ldi r0, 0x123456789", "qpu.asm.range", "32 bits"},
      {"ldi r0, 12x", "qpu.asm.operand", "is no number"},
      {"ldi r0, 99999999999999999999", "qpu.asm.operand", "is no number"},
      {"ldi r0, 0x", "qpu.asm.operand", "is no number"},
  };
  for (const Bad& b : bad) {
    try {
      assemble(b.text);
      ADD_FAILURE() << b.text << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), b.slug) << b.text;
      EXPECT_NE(e.message().find(b.part), std::string::npos) << e.message();
      EXPECT_NE(std::string(e.what()).find('^'), std::string::npos);
    }
  }
}

TEST(QpuIsa, registers_that_are_operands_are_not_told_twice) {
  for (const char* text :
       {"add r0, ra1, r2", "add r0, r2, ra1", "add r0, rb1, r2", "add r0, r2, rb1",
        "nop; fmul r3, ra4, r1", "nop; fmul r3, r1, rb4", "add r0, r1, #3"})
    EXPECT_EQ(print(assemble(text).at(0)), text);
}

TEST(QpuIsa, what_is_missing_is_pointed_at) {
  struct Row {
    const char *text, *place;
  };
  const Row rows[] = {{"add r0, r1, r2;", "<qpu>:1:16: "},
                      {"add r0, r1, r2; ", "<qpu>:1:17: "},
                      {"nop; ; sf; ;", "<qpu>:1:6: "},
                      {";", "<qpu>:1:1: "},
                      {"add r0, r1,", "<qpu>:1:12: "},
                      {"add r0,, r1", "<qpu>:1:8: "},
                      {"mov ,r1", "<qpu>:1:5: "},
                      {"sacq ", "<qpu>:1:1: "},
                      {"bra.", "<qpu>:1:1: "},
                      {"bra. rel", "<qpu>:1:1: "},
                      {"nop; nop; to", "<qpu>:1:11: "}};
  for (const Row& row : rows) {
    try {
      assemble(row.text, "<qpu>");
      ADD_FAILURE() << row.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code().substr(0, 8), "qpu.asm.") << row.text;
      EXPECT_NE(std::string(error.what()).find(row.place), std::string::npos) << error.what();
      EXPECT_LT(std::string(error.what()).size(), 1000u) << row.text;
    }
  }
}

TEST(QpuIsa, damaged_text_is_refused_where_it_is_damaged) {
  std::mt19937 rng(20);
  const std::string good =
      "fadd r0, r1, r2; fmul.zs r3, ra4, rb5; sf; ldtmu0\nbra.anyz rel, ra2, -8; link ra3\n"
      "ldi ra1, 0x10; to rb2\nsacq 3, r0; to r1\nadd.nc null, #3, r1; mov rb1, r2; pack=1\n";
  const std::string_view letters = ";,.: #\n\tra0=-";
  std::size_t refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = good;
    for (int edits = 1 + static_cast<int>(rng() % 3); edits > 0; --edits) {
      const std::size_t at = rng() % text.size();
      if (rng() % 2) text.erase(at, 1 + rng() % 4);
      else text.insert(at, 1, letters[rng() % letters.size()]);
    }
    try {
      const std::vector<Instr> program = assemble(text);
      for (const Instr& i : program) EXPECT_EQ(assemble(print(i)).at(0), i) << print(i);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code().substr(0, 8), "qpu.asm.") << text;
      EXPECT_LT(std::string(error.what()).size(), 2000u) << text;
    }
  }
  EXPECT_GT(refused, 1000u);
}

// WEFT_QPU_WORDS: how many that decode, 5000 where it is not set.
TEST(QpuIsa, random_words_print_as_text_that_assembles) {
  const char* wanted = std::getenv("WEFT_QPU_WORDS");
  const int words = wanted ? std::atoi(wanted) : 5000;
  ASSERT_GT(words, 0);
  std::mt19937_64 rng(21);
  int decoded = 0, refused = 0;
  std::vector<Code> stream, told;  // words side by side; those of them that decode
  auto whole = [&] {
    const std::vector<Instr> back = assemble(disassemble(stream));
    ASSERT_EQ(back.size(), told.size());
    for (std::size_t i = 0; i < told.size(); ++i) ASSERT_EQ(encode(back[i]), told[i]) << i;
    stream.clear(), told.clear();
  };
  while (decoded < words) {
    if (stream.size() == 500) {
      ASSERT_NO_FATAL_FAILURE(whole());
    }
    Code word = rng();
    if (rng() % 4) {  // without a reserved operation of the ADD ALU or condition of a branch
      static constexpr Code kAdd[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  12, 13, 14,
                                      15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 30, 31};
      word = (word & ~(Code{31} << 24)) | kAdd[rng() % std::size(kAdd)] << 24;
    }
    stream.push_back(word);
    Instr i;
    try {
      i = decode(word);
    } catch (const Error&) {
      EXPECT_TRUE(assemble(disassemble({word})).empty());  // a comment
      ++refused;
      continue;
    }
    ++decoded;
    told.push_back(word);
    const std::vector<Instr> back = assemble(disassemble({word}));
    ASSERT_EQ(back.size(), 1u) << print(i);
    EXPECT_EQ(encode(back[0]), word) << print(i);
  }
  ASSERT_NO_FATAL_FAILURE(whole());
  EXPECT_GT(refused, 100);
}

TEST(QpuIsa, small_immediates) {
  EXPECT_EQ(small_immediate(15), 15u);
  EXPECT_EQ(small_immediate(16), 0xfffffff0u);
  EXPECT_EQ(small_immediate(31), 0xffffffffu);
  EXPECT_EQ(small_immediate(32), 0x3f800000u);
  EXPECT_EQ(small_immediate(39), 0x43000000u);  // 128.0
  EXPECT_EQ(small_immediate(40), 0x3b800000u);  // 1/256
  EXPECT_EQ(small_immediate(47), 0x3f000000u);  // 1/2
  for (unsigned c = 0; c < 48; ++c)
    EXPECT_EQ(find_small_immediate(small_immediate(c)), static_cast<int>(c));
  EXPECT_EQ(find_small_immediate(16), -1);
}

TEST(QpuIsa, listing_reads_back_and_manual_names_everything) {
  std::vector<Code> words;
  for (const Worked& w : kWorked) words.push_back((static_cast<Code>(w.high) << 32) | w.low);
  std::vector<Instr> again = assemble(disassemble(words));
  ASSERT_EQ(again.size(), words.size());
  for (std::size_t i = 0; i < words.size(); ++i) EXPECT_EQ(encode(again[i]), words[i]);
  for (const char* word : {"mul24", "tmu0_s", "cond_add", "small_imm", "host_int", "v8muld"}) {
    EXPECT_NE(manual().find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace weft::qpu::hw
