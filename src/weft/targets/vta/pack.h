// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stage plan as a plain function over whole elements: arrays packed by copies of the host, sums
// and chains over [...][BATCH][BLOCK] arrays without any tile, results unpacked. It has no schedule
// and equals the function that it was made from; the default schedule's public steps begin here.

#include <string>
#include <vector>

#include "weft/targets/vta/tiles.h"

namespace weft::vta {

/// An array that a block of the machine reads.
struct PackedInput {
  std::string consumer;  // block
  std::string array;     // what it reads there
  std::string view;      // block that only renames, pads or widens: inlined into the copy; or empty
  std::string scope;     // where its copy belongs: "vta.inp", "vta.wgt", "vta.acc"
  bool operand = false;  // of the chain
  Operand index;         // over the stage's axes
};

/// A block after the first of its stage.
struct PackedStep {
  std::string block;
  bool on_chip = true;  // writes vta.acc; otherwise stores to global memory
  bool free = false;    // takes nothing of the anchor's, and stands before it
};

/// What the steps of a schedule need to know of one stage.
struct PackedStage {
  Task task;
  StageLayout laid;
  std::string anchor;              // the sum, or the first block of the chain
  std::vector<std::size_t> loops;  // axis of each of the anchor's loops, without the lanes
  std::vector<PackedInput> inputs;
  std::vector<PackedStep> steps;
};

struct Packed {
  ir::PrimFunc func;
  std::vector<PackedStage> stages;
};

/// Throws Error(lower, "vta.accepts.*") naming block, statement and rule.
Packed pack(const ir::PrimFunc& f, const Config& config);

}  // namespace weft::vta
