// SPDX-License-Identifier: Apache-2.0
#pragma once
// What executes single instructions on the on-chip memories. Two engines: the oracle says literally
// what each instruction means, element by element; the fast one gives the same bits quickly. Both
// refuse what leaves a memory with the same faults. Tokens and queues are the executor's business
// (execute.h).

#include <memory>
#include <span>

#include "weft/sim/fault.h"
#include "weft/sim/memory.h"
#include "weft/targets/vta/isa.h"
#include "weft/targets/vta/kernels.h"

namespace weft::vta {

/// Counts of work done; sums over runs.
struct Work {
  std::int64_t instructions = 0, loads = 0, stores = 0, gemms = 0, alus = 0, finishes = 0, nops = 0;
  std::int64_t gemm_uops = 0, reset_uops = 0, alu_uops = 0, macs = 0;
  std::int64_t bytes_read[6] = {};  // by MemType of the load
  std::int64_t bytes_written = 0, bytes_fetched = 0;
};

class Engine {
 public:
  explicit Engine(const Isa& isa) : isa_(isa) {}
  virtual ~Engine() = default;
  /// On-chip memories become zero.
  virtual void clear() = 0;
  /// `dram` is the host pointer of the transfer's first element; its bounds have been checked.
  virtual void load(const Insn& insn, const std::byte* dram) = 0;
  virtual void store(const Insn& insn, std::byte* dram) = 0;
  virtual void gemm(const Insn& insn) = 0;
  virtual void alu(const Insn& insn) = 0;
  /// For tests and debuggers: lanes of one accumulator element; one word of the micro-operation
  /// memory.
  virtual std::vector<std::int32_t> acc(std::uint32_t element) const = 0;
  virtual std::uint32_t uop_word(std::uint32_t index) const = 0;
  const Isa& isa() const { return isa_; }

 protected:
  const Isa& isa_;
};

/// The engine that the debugger uses: its memories hold elements as DRAM does.
class LiteralEngine : public Engine {
 public:
  using Engine::Engine;
  virtual std::span<const std::int8_t> inp() const = 0;
  virtual std::span<const std::int8_t> wgt() const = 0;
  virtual std::span<const std::int32_t> acc_lanes() const = 0;
  virtual std::span<const std::uint32_t> uop() const = 0;
};

std::unique_ptr<LiteralEngine> make_oracle(const Isa& isa);
/// `kernels` null: the best that this host has.
std::unique_ptr<Engine> make_fast_engine(const Isa& isa, const KernelSet* kernels = nullptr);

/// Faults without a place; the executor adds it.
[[noreturn]] void fault_sram(const Insn& insn, std::string_view memory, std::int64_t first,
                             std::int64_t last, std::int64_t depth);
[[noreturn]] void fault_shift(std::int64_t amount);

}  // namespace weft::vta
