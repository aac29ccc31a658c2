// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the translated engine knows about a clean program before it writes code: where execution can
// enter, how long straight runs are, which registers and flags are read later, and which registers
// hold the same word or consecutive words in all lanes.

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "weft/targets/qpu/machine.h"

namespace weft::qpu::hw {

/// Registers by Slot (files, r0 to r5), and three bits for the flags Z, N, C.
inline constexpr std::size_t kTracked = kSlotPerA, kFlagZ = kTracked, kFlagN = kTracked + 1,
                             kFlagC = kTracked + 2;
using Live = std::bitset<kTracked + 3>;

/// What is known of a register's lanes: lane l holds lane 0 plus l times `stride`.
struct Shape {
  static constexpr std::int32_t kUnknown = INT32_MIN;
  std::int32_t stride = 0;
  bool known() const { return stride != kUnknown; }
  bool operator==(const Shape&) const = default;
};
using Shapes = std::array<Shape, kTracked>;

/// How many results of each TMU are waited for; -1: unknown.
using Waiting = std::array<std::int8_t, 2>;

enum class BlockEnd : std::uint8_t { falls, branches, finishes, runs_off };

/// Instructions [first, last] executed one after the other from an entry on.
struct FlowBlock {
  std::uint32_t first = 0, last = 0;
  BlockEnd end = BlockEnd::falls;
  // It starts in the slots of a branch, at an instruction that may wait or after one: what the
  // branch decided is in Qpu::taken.
  bool in_slots = false;
  std::uint32_t branch = 0;  // of its branch instruction, when it branches
  std::int32_t target = -1;  // block of a taken branch
  std::int32_t next = -1;    // block that follows otherwise
  Live live_out;             // read by somebody after this block
  Shapes shapes;             // on entry
  Waiting waiting{};         // the same
  bool reached = false;
};

struct Flow {
  std::vector<FlowBlock> blocks;            // by `first`
  std::vector<std::int32_t> slot_block_at;  // the same for blocks that start in slots
  std::vector<std::int32_t> block_at;       // instruction -> block that starts there, or -1
  std::vector<bool> asks;                   // whether an instruction makes a request
  std::vector<std::uint8_t>
      site;               // one that makes a request or a transfer -> its place in Qpu::site
  bool own_sites = true;  // no two of them share one
};

/// Whether only the literal engine's code covers the instruction (packs, odd rotations, conditions
/// on peripherals).
bool needs_literal(const Instr& i);
/// Peripheral addresses read; 0: none.
unsigned peripheral_a(const Instr& i);
unsigned peripheral_b(const Instr& i);
/// Slot that a mux value or a small immediate names.
std::uint8_t source_slot(const Instr& i, unsigned mux);
/// Slot of a plain destination (files, r0 to r3), or kSlotTrash.
std::uint8_t plain_slot(bool file_b, unsigned address);
/// `q.mask` index whose any-lane test decides a branch, and whether the test is negated.
Cond branch_mask(unsigned cond_br, bool* negated);

/// `keep`: registers and flags count as read when a QPU ends, for who looks at them then.
Flow analyse(const Program& program, bool keep);
/// Whether an access to memory may come after a semaphore, which then orders it.
bool orders_accesses(const Program& program, const Flow& flow);
/// Registers and flags read and fully overwritten by an instruction.
void uses_of(const Instr& i, Live* reads, Live* writes);
/// The shape of an ALU's result, wherever it goes.
Shape result_shape(const Instr& i, bool mul, const Shapes& shapes);
/// The shapes after an instruction.
void step_shapes(const Instr& i, Shapes* shapes);
/// What waits after an instruction.
void step_waiting(const Instr& i, Waiting* waiting);

}  // namespace weft::qpu::hw
