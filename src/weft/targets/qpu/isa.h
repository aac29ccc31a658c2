// SPDX-License-Identifier: Apache-2.0
#pragma once
// The VideoCore IV QPU's instruction words as a table (on weft::isa), and the assembly text over
// it. An ALU word carries two operations whose operands share two read ports, so the text is not
// the table's flat one: print() and assemble() here know muxes, register names and what is implied;
// encoding, decoding and every range check come from the table. Source: VideoCore IV architecture
// guide, sections 3 and 4.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/isa/isa.h"

namespace weft::qpu::hw {

using Code = std::uint64_t;  // one instruction word, bit 63 = MSB

enum Kind : std::uint8_t { kAlu, kAluImm, kLdi, kLdiSigned, kLdiUnsigned, kSem, kBranch };

enum Signal : std::uint8_t {
  kSigBreak,
  kSigNone,
  kSigSwitch,
  kSigEnd,
  kSigWaitScore,
  kSigUnlockScore,
  kSigLastSwitch,
  kSigCoverage,
  kSigColour,
  kSigColourEnd,
  kSigLoadTmu0,
  kSigLoadTmu1,
  kSigAlphaMask,
  kSigImm,
  kSigLdi,
  kSigBranch
};
enum Cond : std::uint8_t { kNever, kAlways, kZs, kZc, kNs, kNc, kCs, kCc };
enum BranchCond : std::uint8_t {
  kAllZs,
  kAllZc,
  kAnyZs,
  kAnyZc,
  kAllNs,
  kAllNc,
  kAnyNs,
  kAnyNc,
  kAllCs,
  kAllCc,
  kAnyCs,
  kAnyCc,
  kBranchAlways = 15
};
enum AddOp : std::uint8_t {
  kANop = 0,
  kFadd,
  kFsub,
  kFmin,
  kFmax,
  kFminabs,
  kFmaxabs,
  kFtoi,
  kItof,
  kAdd = 12,
  kSub,
  kShr,
  kAsr,
  kRor,
  kShl,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kNot,
  kClz,
  kV8addsA = 30,
  kV8subsA = 31
};
enum MulOp : std::uint8_t { kMNop = 0, kFmul, kMul24, kV8muld, kV8min, kV8max, kV8addsM, kV8subsM };
enum Mux : std::uint8_t { kMuxR0, kMuxR1, kMuxR2, kMuxR3, kMuxR4, kMuxR5, kMuxA, kMuxB };

/// Register addresses above the physical files (read r…, write w…; A or B where the files differ).
enum Reg : std::uint8_t {
  kRUniform = 32,
  kRElementA = 38,
  kRMsMaskA = 42,
  kRQpuB = 38,
  kNull = 39,
  kRVpm = 48,
  kRLdBusyA = 49,
  kRStBusyB = 49,
  kRLdWaitA = 50,
  kRStWaitB = 50,
  kRMutex = 51,
  kWAcc0 = 32,
  kWNoswap = 36,
  kWR5 = 37,
  kWHostInt = 38,
  kWUniformsAddr = 40,
  kWVpm = 48,
  kWVpmSetup = 49,
  kWDmaAddr = 50,
  kWMutex = 51,
  kWTlbZ = 44,
  kWTlbColourMs = 45,
  kWTlbColour = 46,
  kWRecip = 52,
  kWRsqrt = 53,
  kWExp2 = 54,
  kWLog2 = 55,
  kWTmu0S = 56,
  kWTmu1S = 60
};

/// One instruction, all fields by name. Fields that a kind lacks stay at their defaults.
struct Instr {
  Kind kind = kAlu;
  std::uint8_t sig = kSigNone;
  std::uint8_t unpack = 0, pm = 0, pack = 0;
  std::uint8_t cond_add = kNever, cond_mul = kNever;
  std::uint8_t sf = 0, ws = 0;
  std::uint8_t waddr_add = kNull, waddr_mul = kNull;
  std::uint8_t op_mul = 0, op_add = 0;
  std::uint8_t raddr_a = kNull, raddr_b = kNull;  // raddr_b: the small immediate's code for kAluImm
  std::uint8_t add_a = 0, add_b = 0, mul_a = 0, mul_b = 0;
  std::uint32_t imm = 0;              // kLdi*: the word; kBranch: signed byte offset
  std::uint8_t sem = 0, acquire = 0;  // kSem
  std::uint8_t cond_br = kBranchAlways, rel = 0, reg = 0;  // kBranch; raddr_a (5 bits) when reg
  bool operator==(const Instr&) const = default;
};

inline bool is_alu(const Instr& i) { return i.kind == kAlu || i.kind == kAluImm; }
/// Whether the multiplier's operand is rotated between lanes.
inline bool rotates_product(const Instr& i) {
  return i.kind == kAluImm && i.raddr_b >= 48 && i.op_mul;
}

const isa::InstructionSet& instruction_set();

/// Through the table. encode throws "qpu.encode.range", decode "qpu.decode.unknown".
isa::Instruction to_table(const Instr& instr);
Instr from_table(const isa::Instruction& instruction);
Code encode(const Instr& instr);
Instr decode(Code word);

/// Assembly text of one instruction (no newline); lossless: assemble(print(i)) == i.
std::string print(const Instr& instr);
/// Errors are "qpu.asm.*" with a caret.
std::vector<Instr> assemble(std::string_view text, std::string_view file = "<asm>");
/// With addresses; words of no instruction become ".word".
std::string disassemble(const std::vector<Code>& words);
std::string manual();

/// Value of small immediate codes 0..47, and of 48..63 read as an operand (-16..-1).
std::uint32_t small_immediate(unsigned code);
/// Code for a 32-bit pattern, or -1.
int find_small_immediate(std::uint32_t value);

/// Names in assembly, for tables and fault texts.
std::string read_name(bool file_b, unsigned address);
std::string write_name(bool file_b, unsigned address);

/// Whether an ALU word reads its A or B address through any active operation's mux.
bool reads_a(const Instr& i);
bool reads_b(const Instr& i);
inline bool add_active(const Instr& i) { return i.op_add != 0; }
inline bool mul_active(const Instr& i) { return i.op_mul != 0; }
inline bool is_ldi(const Instr& i) {
  return i.kind == kLdi || i.kind == kLdiSigned || i.kind == kLdiUnsigned;
}
/// File of a destination: ws = 0 puts ADD into A and MUL into B.
inline bool add_file_b(const Instr& i) { return i.ws != 0; }
inline bool mul_file_b(const Instr& i) { return i.ws == 0; }
/// Number of ALU operands that an ADD operation reads (0, 1 or 2).
int add_operands(unsigned op);

}  // namespace weft::qpu::hw
