// SPDX-License-Identifier: Apache-2.0
#pragma once
// The three decoupled queues and the four token counters between them, executed deterministically:
// each stage in turn runs as far as its tokens allow. Also the same stream without data against a
// clock (estimate).

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/runtime/trace.h"
#include "weft/targets/vta/engine.h"
#include "weft/targets/vta/program.h"
#include "weft/targets/vta/timing.h"

namespace weft::vta {

/// A stream with what running it needs computed once.
struct Prepared {
  explicit Prepared(Stream stream);
  Stream stream;
  std::vector<std::uint32_t> queue[3];  // instruction numbers per stage, in program order
};

struct ExecuteOptions {
  std::int64_t command_depth =
      512;  // instructions that a stage's queue holds (Vivado and Chisel designs)
  std::int64_t token_limit = 0;  // 0: counters do not overflow; 255: Chisel's
  bool strict = false;           // refuse what real VTA does not do
  std::span<const std::uint32_t>
      order;  // run in this order instead (must respect the tokens); empty: default
  /// Called before each instruction, with its number.
  std::function<void(std::uint32_t)> before;
};

/// `bases[i]`: address of parameter i; `uop_base`: of the program's micro-operations.
/// Throws Faults "vta.*" with stage, instruction number and disassembly.
void execute(const Prepared& program, std::span<const std::uint64_t> bases, std::uint64_t uop_base,
             Engine& engine, sim::Memory& dram, const ExecuteOptions& options, Work& work);

}  // namespace weft::vta
