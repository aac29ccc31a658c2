// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions over operands whose elements are used for several results (products, convolutions of
// every layout, distances, products with scales) on a processor: which results lie in the lanes of
// a vector, which share a tile with them, and the steps that keep a tile in registers.

#include <optional>

#include "weft/rules/choices.h"
#include "weft/rules/nest.h"

namespace weft::rules {

struct HostProduct {
  std::size_t column = 0, row = 0;     // results in lanes; results in rows, equal to column: none
  std::int64_t vectors = 2, rows = 6;  // of a tile
  std::size_t operand = 0;             // a read that moves along the columns, in the body's order
  bool pack = false;                   // it is copied in panels as wide as a tile
  std::int64_t lanes = 8, panel = 4;   // elements of a vector; tiles of a panel
  bool parallel = false;
  std::int64_t terms = 1;     // that one instruction adds (host_dot.h)
  std::size_t term_loop = 0;  // the loop of the sum in which these are neighbours
  /// Elements of panels, and of a copy of the rows' operand, where they are wider than the
  /// operands.
  std::optional<DType> held;
  /// The operand that is made unsigned first, where an instruction asks for one.
  std::optional<std::size_t> shifted;
  double cycles = 0;  // expected, of the whole nest
};

/// Puts rows and columns of a block's results last in their buffer, so that a row is a vector;
/// equal ones: there are no rows.
void lay_out_results(Schedule& sch, BlockRef block, std::size_t row, std::size_t column);
/// Elements of a vector of the widest type that a block reads or writes.
std::int64_t host_lanes(const Nest& nest, const TargetInfo& machine);
/// The tile of least expected time, or nothing where elements are not shared in this way.
std::optional<HostProduct> match_host_product(const Nest& nest, const TargetInfo& machine);
/// Replaces decisions by a tuner's.
void open_host_product(HostProduct& tile, const Nest& nest, const TargetInfo& machine,
                       const Questions& questions);
/// Returns blocks that it made and left as they are: what comes before the products.
std::vector<BlockRef> schedule_host_product(Schedule& sch, const Nest& nest,
                                            const HostProduct& tile);
/// Cuts iterators of results of which an operand reads the quotient only (the group of a channel)
/// into their digits, and gives operands and results axes of their own for these.
bool cut_into_digits(Schedule& sch, BlockRef block);

/// Operations from which on a second thread is worth waking.
inline constexpr std::int64_t kHostParallelWork = std::int64_t{1} << 21;
/// Shares on which threads even out.
inline constexpr std::int64_t kHostPieces = 8;

}  // namespace weft::rules
