// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cycles of one tiling by the parameters of the timing model, tile by tile instead of instruction
// by instruction: the same stages, places on chip and shared ports as timing.h, before any
// instruction exists. What sums of averages cannot see is seen here: bursts of loads that a short
// product does not cover, tiles at the edges, what comes before the first product and after the
// last.

#include <optional>

#include "weft/targets/vta/chain.h"
#include "weft/targets/vta/tiles.h"

namespace weft::vta {

/// How many elements of DRAM one tile of an operand is, and how they move: rectangles of rows.
struct DmaTransfers {
  std::int64_t transfers = 1, rows = 1;  // rows of each transfer; contiguous ones are one
  std::int64_t elements = 1, pads = 0;   // read, and set to zero on chip
};

/// An operand in its packed form, ready to be asked about many tiles.
class TiledOperand {
 public:
  TiledOperand(const Operand& o, const Layout& l, const Task& s);
  /// Elements on chip of a tile, padding included.
  std::int64_t elements(const std::vector<std::int64_t>& tile) const;
  /// The tile that begins at `first` (a position on each axis, in whole elements).
  DmaTransfers moves(const std::vector<std::int64_t>& tile,
                     const std::vector<std::int64_t>& first) const;
  /// The innermost tile loop (position in the tiles' order) that changes what is read; -1: none.
  int level(const Tiles& t) const;

 private:
  struct Term {
    std::size_t axis;
    std::int64_t coeff;
  };
  struct Dim {
    bool window = false, skips = false;  // skips: rows between those that are read
    std::int64_t extent = 1, base = 0;
    std::vector<Term> terms;  // window: of the position; otherwise the one axis
  };
  std::vector<Dim> dims_;
  std::vector<bool> uses_;  // by axis
  bool guard_ = false;
};

struct TiledChainOperand : TiledOperand {
  explicit TiledChainOperand(TiledOperand o) : TiledOperand(std::move(o)) {}
  bool whole = false;  // on chip as a whole (kept_whole)
  MemType mem = MemType::acc;
};

/// A stage, ready to be asked about many tilings. Refers to the task.
struct TiledTask {
  TiledTask(const Task& s, const StageLayout& laid, const Config& c);
  const Task& task;
  const ChainProgram chain;
  std::optional<TiledOperand> x, w;  // product: inputs and weights; reduction: x
  std::vector<TiledChainOperand> operands;
  std::vector<TiledOperand> stores;  // in the chain's order
};

/// Of a product with its chain. `places`: of what comes again, on chip.
std::int64_t flow_cycles(const TiledTask& task, const Config& c, const TimingParams& p,
                         const Tiles& t, int places);

}  // namespace weft::vta
