// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command queue: records instructions for one kernel, places micro-operations, and puts tokens
// on instructions. What it records is legal by construction field by field; whether tokens and
// hazards fit together is check()'s business (checker.h), which finish() calls.

#include <array>
#include <map>
#include <string>
#include <vector>

#include "weft/targets/vta/program.h"

namespace weft::vta {

/// Micro-operations under at most two loops.
struct UopKernel {
  std::vector<Uop> uops;
  struct Loop {
    std::int64_t extent = 1, dst = 0, src = 0, wgt = 0;
  };
  std::array<Loop, 2> loops{};  // outer, inner

  /// `dims` (outermost first, any number, affine) around one micro-operation, as few
  /// micro-operations under two loops as possible. Only for kernels whose order does not matter.
  /// Prefers forms in which neighbouring steps write different accumulators, which the hardware's
  /// pipeline needs.
  static UopKernel compress(std::vector<Loop> dims, Uop first = {});
  /// Whether two steps in a row write the same element.
  bool repeats_destination() const;
};

struct Rect {                             // a transfer: y rows of x elements, stride elements apart
  std::int64_t y = 1, x = 1, stride = 0;  // stride 0: x
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
};

enum class Checked : std::uint8_t { yes, no };

class Builder {
 public:
  Builder(const Config& config, std::string kernel_name);
  const Config& config() const { return isa_.config(); }

  /// Declares the next array parameter; returns its number.
  int param(std::string name, DType dtype);

  /// Element addresses and sizes count elements of `mem`. Larger rectangles than one instruction
  /// can say are split.
  void load(MemType mem, std::int64_t sram, int param, std::int64_t dram, const Rect& rect);
  void store(std::int64_t sram, int param, std::int64_t dram, const Rect& rect);
  void gemm(const UopKernel& kernel);
  void reset(const UopKernel& kernel);
  void alu(AluOp op, const UopKernel& kernel);
  void alu_imm(AluOp op, const UopKernel& kernel, std::int64_t imm);

  /// Token to `to` after the last instruction of `from`; before the next instruction of `to`.
  void push(Stage from, Stage to);
  void pop(Stage from, Stage to);

  std::size_t instructions() const { return stream_.insns.size(); }

  /// Waits for all stages, ends the kernel. With Checked::yes the static checker runs: Error(lower,
  /// "vta.check.*").
  Program finish(Checked checked = Checked::yes);
  /// For streams recorded in order without tokens: they are put in (synchronise.h), then checked.
  void finish_in_order(Program& program);
  /// Adds this kernel to a program of several.
  void finish_into(Program& program, Checked checked = Checked::yes);

 private:
  /// Instructions are filled in where they stay; seal() checks the last one and puts waiting pops
  /// on it.
  Insn& begin() { return stream_.insns.emplace_back(); }
  void seal(std::uint16_t base);
  void emit_nop(Stage stage);
  /// One instruction, or several in the same order where one would write an accumulator element by
  /// two micro-operations in a row: the hardware's pipeline is empty between instructions.
  void run_kernel(Opcode op, bool reset, AluOp alu, bool use_imm, std::int32_t imm,
                  const UopKernel& kernel);
  void run_in_parts(Opcode op, bool reset, AluOp alu, bool use_imm, std::int32_t imm,
                    const UopKernel& kernel);
  std::uint32_t make_resident(const std::vector<Uop>& uops);
  /// When all micro-operations fit at once: one LOAD at the beginning, while the memory port is
  /// free, instead of one before each first use.
  void load_uops_first();

  Isa isa_;
  std::string name_;
  std::vector<runtime::KernelParam> params_;
  Stream stream_;
  std::vector<std::uint32_t> arena_;
  struct Place {
    std::uint32_t arena, count;
    std::int64_t sram;
  };  // sram -1: not resident
  std::map<std::vector<std::uint32_t>, std::size_t> known_;
  std::vector<Place> places_;
  std::map<std::uint32_t, std::size_t> resident_;  // by first address in the micro-operation memory
  std::uint32_t next_uop_ = 0;
  std::vector<Uop> recent_uops_;  // of the last kernel: often the next one's too
  std::int64_t recent_at_ = -1;   // where they lie on chip; -1: nowhere
  std::int64_t depth_[6] = {};
  bool pending_[4] = {};
  std::int64_t last_[3] = {-1, -1, -1};
};

}  // namespace weft::vta
