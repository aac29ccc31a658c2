// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compiler's middle form: QPU operations over unlimited virtual registers, in basic blocks laid
// out in program order. Temporaries have one definition; the kernel's variables may have several,
// and conditional ones. Invariant between passes: every use is reached by a definition or the
// variable is undefined by the kernel itself.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/targets/qpu/isa.h"
#include "weft/targets/qpu/language/ast.h"

namespace weft::qpu::mir {

inline constexpr std::uint8_t kFileAny = 2;

struct Src {
  enum Kind : std::uint8_t { none, vreg, imm, special, r4, r5 } kind = none;
  std::uint32_t value =
      0;  // vreg; imm: the 32-bit value (has a small-immediate code); special: read address
  std::uint8_t file = kFileAny;  // special
  bool operator==(const Src&) const = default;
  static Src of(std::uint32_t v) { return {vreg, v, kFileAny}; }
  static Src constant(std::uint32_t v) { return {imm, v, kFileAny}; }
  static Src read(unsigned address, std::uint8_t file = kFileAny) {
    return {special, address, file};
  }
};

struct Dst {
  enum Kind : std::uint8_t { none, vreg, special } kind = none;
  std::uint32_t value = 0;
  std::uint8_t file = kFileAny;
  static Dst of(std::uint32_t v) { return {vreg, v, kFileAny}; }
  static Dst write(unsigned address, std::uint8_t file = kFileAny) {
    return {special, address, file};
  }
};

enum class Unit : std::uint8_t { add, mul, move, ldi, semaphore, tmu_load, wait, breakpoint };

struct Ins {
  Unit unit = Unit::add;
  std::uint8_t op =
      0;     // hw::AddOp or hw::MulOp; semaphore: number; tmu_load: unit; wait: 0 load, 1 store
  Src a, b;  // unary: b unused (none)
  Dst d;
  std::uint8_t cond = hw::kAlways;
  bool sf = false;
  bool acquire = false;
  std::uint8_t rotate = 0;  // 0 none, 1..15, 16: by r5
  std::uint32_t imm = 0;    // ldi
  std::int32_t print = -1;  // breakpoint: index into prints
  ast::Place place;
  bool pure() const {
    return (unit == Unit::add || unit == Unit::mul || unit == Unit::move || unit == Unit::ldi) &&
           !sf && d.kind == Dst::vreg && a.kind != Src::r4 && b.kind != Src::r4 &&
           a.kind != Src::r5 && b.kind != Src::r5 && rotate != 16 &&
           !(a.kind == Src::special && a.value != hw::kRElementA);
  }
};

struct Block {
  std::vector<Ins> code;
  std::int32_t jump = -1;  // target block of the branch at the end; -1: falls through
  std::uint8_t cond = hw::kBranchAlways;  // of the branch
  bool ends = false;                      // program end
  int depth = 0;
  ast::Place place;
};

struct Loop {
  std::size_t first, last;
};  // blocks of a loop; block first - 1 is its preheader

struct PrintPoint {
  std::string kind, text;
};

struct Function {
  std::vector<Block> blocks;
  std::vector<Loop> loops;  // inner ones first
  std::uint32_t vregs = 0;
  std::vector<bool> needs_acc;  // per vreg: a rotation's source
  std::vector<PrintPoint> prints;
  std::vector<std::string> uniforms;  // as in the binary's metadata
  std::int64_t spill_slots = 0;
  // Registers with what spilling needs; present when lowered with `may_spill`.
  struct Spill {
    std::uint32_t base, write_setup, store_setup, load_setup, read_setup;
  };
  bool may_spill = false;
  Spill spill{};
  std::uint32_t spill_first = 0,
                spill_last = 0;  // registers defined while spilling is set up: never spilled
};

/// `may_spill` costs five registers; asked for when a kernel does not fit without.
Function lower(const ast::Program& program, bool may_spill);
void optimise(Function& f);

/// Where each virtual register lives: 0..31 file A, 32..63 file B, 64..66 r0..r2; -1: nowhere
/// (unused). Spills what does not fit; inserts moves where two operands share a file. r3 is the
/// scratch register. False: it does not fit and `f` may not spill.
bool allocate(Function& f, std::vector<std::int16_t>& home);

struct Emitted {
  std::vector<hw::Instr> code;
  std::vector<ast::Place> places;
  struct Print {
    std::uint32_t pc;
    std::int32_t print;
  };
  std::vector<Print> prints;
};
Emitted schedule(const Function& f, const std::vector<std::int16_t>& home);

/// For reading by people.
std::string print(const Function& f);
/// Uses of registers, for liveness.
template <typename F>
void each_use(const Ins& i, F&& f) {
  if (i.a.kind == Src::vreg) f(i.a.value);
  if (i.b.kind == Src::vreg) f(i.b.value);
}
/// Live-out sets per block as bit vectors.
std::vector<std::vector<std::uint64_t>> live_out(const Function& f);

}  // namespace weft::qpu::mir
