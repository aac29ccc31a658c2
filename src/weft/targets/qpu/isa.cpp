// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/isa.h"

#include <bit>

#include "weft/targets/qpu/isa_names.h"

namespace weft::qpu::hw {

namespace {
using isa::Field;
using isa::FieldKind;
using isa::Fixed;
using isa::Format;
using isa::NamedCode;

Field plain(const char* name, unsigned at, unsigned width, const char* meaning) {
  return {name, at, width, FieldKind::unsigned_, {}, meaning};
}
Field named(const char* name, unsigned at, unsigned width, std::vector<NamedCode> codes,
            const char* meaning) {
  return {name, at, width, FieldKind::named, std::move(codes), meaning};
}

std::vector<Field> high_fields() {
  return {
      plain("pack", 52, 4, "how the result is packed (see the pack table)"),
      named("cond_add", 49, 3, names::conditions(), "lanes that the ADD result is written in"),
      named("cond_mul", 46, 3, names::conditions(), "lanes that the MUL result is written in"),
      plain("sf", 45, 1, "set the flags from ADD, or from MUL when ADD is nop"),
      plain("ws", 44, 1, "0: ADD writes file A and MUL file B; 1: swapped"),
      plain("waddr_add", 38, 6, "write address of the ADD result"),
      plain("waddr_mul", 32, 6, "write address of the MUL result"),
  };
}

std::vector<Field> alu_fields(bool immediate) {
  std::vector<Field> fields;
  if (!immediate) fields.push_back(named("sig", 60, 4, names::alu_signals(), "signal"));
  fields.push_back(
      plain("unpack", 57, 3, "how a read of file A (pm = 0) or r4 (pm = 1) is unpacked"));
  fields.push_back(plain("pm", 56, 1, "0: pack/unpack act on file A; 1: on r4 and the MUL result"));
  for (Field& f : high_fields()) fields.push_back(f);
  fields.push_back(named("op_mul", 29, 3, names::mul_codes(), "MUL operation"));
  fields.push_back(named("op_add", 24, 5, names::add_codes(), "ADD operation"));
  fields.push_back(plain("raddr_a", 18, 6, "read address, file A"));
  fields.push_back(plain(immediate ? "small_imm" : "raddr_b", 12, 6,
                         immediate ? "0..15, -16..-1, powers of two; 48..63: rotate the MUL result"
                                   : "read address, file B"));
  fields.push_back(plain("add_a", 9, 3, "input mux"));
  fields.push_back(plain("add_b", 6, 3, "input mux"));
  fields.push_back(plain("mul_a", 3, 3, "input mux"));
  fields.push_back(plain("mul_b", 0, 3, "input mux"));
  return fields;
}

std::vector<Field> ldi_fields() {
  std::vector<Field> fields{plain("pm", 56, 1, "as in ALU words")};
  for (Field& f : high_fields()) fields.push_back(f);
  fields.push_back(plain("imm", 0, 32, "the immediate"));
  return fields;
}

std::vector<Field> sem_fields() {
  std::vector<Field> fields{plain("pm", 56, 1, "as in ALU words")};
  for (Field& f : high_fields()) fields.push_back(f);
  fields.push_back(plain("acquire", 4, 1, "1: decrement, waits at 0; 0: increment, waits at 15"));
  fields.push_back(plain("sem", 0, 4, "semaphore"));
  return fields;
}

std::vector<Field> branch_fields() {
  return {
      named("cond_br", 52, 4, names::branch_conditions(), "condition over all lanes"),
      plain("rel", 51, 1, "add the address of the instruction 4 after the branch"),
      plain("reg", 50, 1, "add lane 15 of ra[raddr_a]"),
      plain("raddr_a", 45, 5, "register of the file A; its lowest bit is also sf: use even ones"),
      plain("ws", 44, 1, "as in ALU words"),
      plain("waddr_add", 38, 6, "link destination"),
      plain("waddr_mul", 32, 6, "link destination"),
      {"imm", 0, 32, FieldKind::signed_, {}, "byte offset"},
  };
}
}  // namespace

const isa::InstructionSet& instruction_set() {
  static const isa::InstructionSet set(
      "qpu", 64,
      {
          {"alu", {}, alu_fields(false), "", "an ADD and a MUL operation side by side"},
          {"alui",
           {{60, 4, 13}},
           alu_fields(true),
           "",
           "the same with a small immediate in place of the B read, or a rotation"},
          {"ldi",
           {{60, 4, 14}, {57, 3, 0}},
           ldi_fields(),
           "",
           "the immediate to both destinations, all lanes"},
          {"ldis",
           {{60, 4, 14}, {57, 3, 1}},
           ldi_fields(),
           "",
           "lane i gets bit i - 2 * bit (16 + i)"},
          {"ldiu",
           {{60, 4, 14}, {57, 3, 3}},
           ldi_fields(),
           "",
           "lane i gets bit i + 2 * bit (16 + i)"},
          {"sem",
           {{60, 4, 14}, {57, 3, 4}, {5, 27, 0}},
           sem_fields(),
           "",
           "increments or decrements a semaphore"},
          {"bra",
           {{60, 4, 15}, {56, 4, 0}},
           branch_fields(),
           "",
           "branches after three delay slots"},
      });
  return set;
}

namespace {
/// Visits the fields of a kind in the table's order; `f(member)` for each.
template <typename I, typename F>
void each_field(I& i, F&& f) {
  auto high = [&] {
    f(i.pack), f(i.cond_add), f(i.cond_mul), f(i.sf), f(i.ws), f(i.waddr_add), f(i.waddr_mul);
  };
  switch (i.kind) {
    case kAlu: f(i.sig); [[fallthrough]];
    case kAluImm:
      f(i.unpack), f(i.pm), high();
      f(i.op_mul), f(i.op_add), f(i.raddr_a), f(i.raddr_b), f(i.add_a), f(i.add_b), f(i.mul_a),
          f(i.mul_b);
      break;
    case kLdi:
    case kLdiSigned:
    case kLdiUnsigned: f(i.pm), high(), f(i.imm); break;
    case kSem: f(i.pm), high(), f(i.acquire), f(i.sem); break;
    case kBranch:
      f(i.cond_br), f(i.rel), f(i.reg), f(i.raddr_a), f(i.ws), f(i.waddr_add), f(i.waddr_mul),
          f(i.imm);
      break;
  }
}
}  // namespace

isa::Instruction to_table(const Instr& instr) {
  isa::Instruction out{static_cast<std::size_t>(instr.kind), {}};
  each_field(instr,
             [&](const auto& field) { out.values.push_back(static_cast<std::int64_t>(field)); });
  if (instr.kind == kBranch) out.values.back() = static_cast<std::int32_t>(instr.imm);
  return out;
}

Instr from_table(const isa::Instruction& instruction) {
  Instr out;
  out.kind = static_cast<Kind>(instruction.format);
  out.sig = out.kind == kAluImm   ? kSigImm
            : out.kind == kBranch ? kSigBranch
            : out.kind == kAlu    ? kSigNone
                                  : kSigLdi;
  std::size_t at = 0;
  each_field(out, [&](auto& field) {
    field = static_cast<std::remove_reference_t<decltype(field)>>(instruction.values[at++]);
  });
  return out;
}

Code encode(const Instr& instr) { return instruction_set().encode(to_table(instr)).lo; }
Instr decode(Code word) { return from_table(instruction_set().decode({word, 0})); }

std::uint32_t small_immediate(unsigned code) {
  if (code < 16) return code;
  if (code < 32) return static_cast<std::uint32_t>(static_cast<int>(code) - 32);
  if (code < 40) return 0x3f800000u + ((code - 32) << 23);
  if (code < 48) return 0x3b800000u + ((code - 40) << 23);
  return static_cast<std::uint32_t>(static_cast<int>(code) - 64);
}

int find_small_immediate(std::uint32_t value) {
  for (unsigned code = 0; code < 48; ++code) {
    if (small_immediate(code) == value) return static_cast<int>(code);
  }
  return -1;
}

int add_operands(unsigned op) {
  return op == kANop ? 0 : op == kFtoi || op == kItof || op == kNot || op == kClz ? 1 : 2;
}

namespace {
bool uses_mux(const Instr& i, unsigned mux) {
  if (i.kind != kAlu && i.kind != kAluImm) return false;
  int n = add_operands(i.op_add);
  return (n > 0 && i.add_a == mux) || (n > 1 && i.add_b == mux) ||
         (i.op_mul && (i.mul_a == mux || i.mul_b == mux));
}
}  // namespace

bool reads_a(const Instr& i) { return uses_mux(i, kMuxA); }
bool reads_b(const Instr& i) { return uses_mux(i, kMuxB); }

std::string manual() {
  std::string out = instruction_set().manual();
  out += "\n## ADD operations\n\n| code | name | meaning |\n|---|---|---|\n";
  for (const names::Op& op : names::kAddOps)
    out += cat("| ", op.code, " | ", op.name, " | ", op.meaning, " |\n");
  out += "\n## MUL operations\n\n| code | name | meaning |\n|---|---|---|\n";
  for (const names::Op& op : names::kMulOps)
    out += cat("| ", op.code, " | ", op.name, " | ", op.meaning, " |\n");
  out +=
      "\n## Register addresses\n\n| address | read A | read B | write A | write B "
      "|\n|---|---|---|---|---|\n";
  for (unsigned a = 32; a < 64; ++a) {
    out += cat("| ", a, " | ", read_name(false, a), " | ", read_name(true, a), " | ",
               write_name(false, a), " | ", write_name(true, a), " |\n");
  }
  return out;
}

}  // namespace weft::qpu::hw
