// SPDX-License-Identifier: Apache-2.0
#pragma once
// VTA's instructions: tables whose field widths follow a configuration (weft/isa), and a decoded
// form with a fast codec for engines and queues. Table and codec are tested against one another.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "weft/isa/isa.h"
#include "weft/targets/vta/config.h"

namespace weft::vta {

enum class Opcode : std::uint8_t { load = 0, store = 1, gemm = 2, finish = 3, alu = 4 };
enum class AluOp : std::uint8_t { min = 0, max = 1, add = 2, shr = 3, mul = 4 };
enum class Stage : std::uint8_t { load = 0, compute = 1, store = 2 };
std::string_view to_string(Opcode op);
std::string_view to_string(AluOp op);
std::string_view to_string(Stage stage);

/// A decoded instruction. Sizes, strides and addresses count elements of the memory type. Fields of
/// transfers share their place with fields of loops: a stream is read once per run and should be
/// short.
struct Insn {
  Opcode op = Opcode::finish;
  bool pop_prev = false, pop_next = false, push_prev = false, push_next = false;
  union {
    MemType mem = MemType::uop;  // load, store
    AluOp alu;                   // alu
  };
  bool reset = false, use_imm = false;  // gemm, alu
  union {
    std::uint32_t sram = 0;   // load, store
    std::uint32_t uop_begin;  // gemm, alu
  };
  union {
    std::uint32_t dram = 0;
    std::uint32_t uop_end;  // exclusive
  };
  union {
    std::uint32_t y_size = 0;
    std::uint32_t iter_out;
  };
  union {
    std::uint32_t x_size = 0;
    std::uint32_t iter_in;
  };
  union {
    std::uint32_t x_stride = 0;
    std::uint32_t dst_out;
  };
  union {
    std::uint32_t y_pad_0 = 0;
    std::uint32_t dst_in;
  };
  union {
    std::uint32_t y_pad_1 = 0;
    std::uint32_t src_out;
  };
  union {
    std::uint32_t x_pad_0 = 0;
    std::uint32_t src_in;
  };
  union {
    std::uint32_t x_pad_1 = 0;
    std::uint32_t wgt_out;  // gemm
  };
  union {
    std::uint32_t wgt_in = 0;  // gemm
    std::int32_t imm;          // alu
  };

  bool operator==(const Insn& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
  Stage stage() const {
    if (op == Opcode::store) return Stage::store;
    return op == Opcode::load && (mem == MemType::inp || mem == MemType::wgt) ? Stage::load
                                                                              : Stage::compute;
  }
  bool is_dma() const { return op == Opcode::load || op == Opcode::store; }
  /// DmaTransfers nothing: only tokens. A LOAD of no rows still writes its rows of zeros; one of no
  /// columns writes nothing.
  bool is_nop() const {
    if (!is_dma()) return false;
    return x_size == 0 || (y_size == 0 && (op == Opcode::store || (y_pad_0 | y_pad_1) == 0));
  }
  std::int64_t sram_elements() const {
    if (is_nop()) return 0;
    return std::int64_t{y_pad_0 + y_size + y_pad_1} * (x_pad_0 + x_size + x_pad_1);
  }
  std::int64_t uop_runs() const {
    return std::int64_t{iter_out} * iter_in * (std::int64_t{uop_end} - uop_begin);
  }
};

static_assert(sizeof(Insn) == 48);

struct Uop {
  std::uint32_t dst = 0, src = 0, wgt = 0;
  bool operator==(const Uop&) const = default;
};

class Isa {
 public:
  explicit Isa(const Config& config);
  const Config& config() const { return config_; }
  const isa::InstructionSet& instructions() const { return instructions_; }
  const isa::InstructionSet& uops() const { return uops_; }

  /// Whether every field holds its value.
  bool fits(const Insn& insn) const;
  /// Throws Error(value, "vta.encode.range") naming field, value and legal range.
  isa::Word encode(const Insn& insn) const;
  /// Throws Error(value, "vta.decode.unknown").
  Insn decode(const isa::Word& word) const;
  /// Throws Error(value, "vta.uop.encode.range").
  std::uint32_t encode(const Uop& uop) const;
  Uop decode_uop(std::uint32_t word) const {
    return {word & mask_dst_, (word >> src_at_) & mask_src_, (word >> wgt_at_) & mask_wgt_};
  }
  std::string print(const Insn& insn) const;
  std::string print(const Uop& uop) const;
  /// Text, one instruction per line ("gemm", "load" ...), to words.
  std::vector<isa::Word> assemble(std::string_view text, std::string_view file = "<vta>") const;

 private:
  isa::Instruction row(const Insn& insn) const;

  Config config_;
  unsigned u_, i_, w_, a_;
  unsigned src_at_, wgt_at_;
  std::uint32_t mask_dst_, mask_src_, mask_wgt_;
  isa::InstructionSet instructions_, uops_;
};

}  // namespace weft::vta
