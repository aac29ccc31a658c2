// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which tile a warp-specialized product gets: the one of least expected time, from facts of the
// machine and the product's sizes (docs/design/rules.md).

#include <cstdint>
#include <vector>

#include "weft/rules/facts.h"

namespace weft::rules {

inline constexpr std::int64_t kGemmColumnUnit = 16, kMostGemmRows = 192;
/// A float32 is the sum of three bfloat16 pieces, and a product of two, to the precision of
/// float32, of six products of pieces (docs/design/roles.md).
inline constexpr int kPieces = 3, kPieceProducts = 6;

/// What a processor reaches while all of them multiply tiles of shared memory.
struct GemmMachine {
  std::int64_t processors = 0;
  std::int64_t shared_bytes = 0;  // of one block
  double clocks_per_microsecond = 0;
  double sums_per_clock = 0;                // of 16-bit operands; twice as many of 8 bits
  double cache_bytes_per_clock = 0;         // what one takes from the second-level cache
  double shared_cache_bytes_per_clock = 0;  // what each gets when all of them read
  double memory_bytes_per_microsecond = 0;  // of all processors, reading
  // Microseconds: to begin and end a tile; of a result of 32 columns that threads store; of a
  // kernel more; to begin and end clusters.
  double tile = 0, half_piece = 0, join = 0, cluster = 0;
  double staged_bytes_per_microsecond = 1;  // of a tile's result
  double written_share = 0.75;              // of the memory's rate, writing
};
GemmMachine gemm_machine(const Facts& facts);

/// batches times [m, k] by [k, n]. Pitches are the bytes from one row of an operand to the next, 0
/// where they are not known; `a_along_m`, `b_along_n`: rows of an operand lie along the result, not
/// along k.
struct GemmShape {
  std::int64_t batches = 1, m = 1, n = 1, k = 1;
  int bytes = 2, result_bytes = 2;  // of an element
  std::int64_t pitch_a = 0, pitch_b = 0;
  bool a_along_m = false, b_along_n = true;
  bool divisible = false;                      // parts of the sum can be joined afterwards
  std::int64_t column_unit = kGemmColumnUnit;  // what the columns of a tile are a multiple of
  std::int64_t most_rows = kMostGemmRows;      // of a tile
  std::int64_t most_cluster = 8;               // blocks of one
  bool turns = true;                           // tiles may lie the other way
  bool pieces = false;                         // of float32 operands, in bfloat16
  bool keeps_pieces = false;                   // copies each of a step's pieces once
  /// What memory gives, where that is less than all operands: windows of images overlap.
  std::int64_t read_bytes = 0;
  /// Terms of a step: rows of 128 bytes.
  std::int64_t step() const { return 128 / bytes; }
  std::int64_t products() const { return pieces ? kPieceProducts : 1; }
  bool operator==(const GemmShape&) const = default;
};

struct GemmDecisions {
  std::int64_t rows = 128, columns = 256;  // of a tile
  std::int64_t slots = 4;                  // steps that are copied ahead
  std::int64_t parts = 1;                  // of the sum; a second kernel joins them
  std::int64_t blocks = 0;                 // that take one tile after another; 0: one for each
  std::int64_t cluster = 1;                // blocks below one another that share b's tiles
  std::int64_t cluster_columns = 1;        // blocks beside one another that share a's
  bool turned = false;  // rows of tiles lie along n, columns, of finer steps, along m
  std::int64_t cluster_blocks() const { return cluster * cluster_columns; }
  bool operator==(const GemmDecisions&) const = default;
};

/// Slots that fit in shared memory beside what the result is staged in; at most 8.
std::int64_t gemm_slots(const GemmMachine& machine, std::int64_t rows, std::int64_t columns);

/// Blocks that run at the same time, in clusters of so many.
std::int64_t gemm_blocks(const GemmMachine& machine, std::int64_t cluster);

/// Microseconds that the product is expected to take once it runs.
double gemm_time(const GemmMachine& machine, const GemmShape& shape, const GemmDecisions& tile);

/// The decisions of least expected time.
GemmDecisions choose_gemm(const GemmMachine& machine, const GemmShape& shape);
/// All decisions, those of least expected time first.
std::vector<GemmDecisions> gemm_options(const GemmMachine& machine, const GemmShape& shape);

}  // namespace weft::rules
