// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of a matrix with a vector or with few of them: every element of the matrix is read once,
// the results of a row stay in registers. Sums are float32 for 16-bit floats.

#include "weft/array/device_grid.h"
#include "weft/array/device_kernel.h"

namespace weft::device {

/// A (batch, rows, depth) times B (batch, depth, columns) with at most kThinColumns columns.
inline constexpr std::int64_t kThinColumns = 4;

/// What the choice of a schedule depends on.
struct ThinShape {
  std::int64_t batch = 1, rows = 1, columns = 1, depth = 1;
  std::int64_t element_bytes = 4;
  bool along_depth = true;  // neighbours of the matrix lie along the depth, otherwise along rows
  std::int64_t vector = 1;  // elements of the matrix that one load can take
};

/// The schedule: threads `x` by `y` of a block. along_depth: the x threads of a row share its
/// depth, y threads have rows of their own. Otherwise x threads have rows of their own and y
/// threads share the depth.
struct ThinPlan {
  bool along_depth = true;
  std::int64_t vector = 1;   // elements of a load
  std::int64_t columns = 1;  // accumulators for each row: `columns` rounded up
  std::int64_t x = 32, y = 8;
  std::int64_t rows_each = 1;  // of a thread, beside the vector's where it lies along rows
  std::int64_t loads = 4;      // of each row that are in flight
  std::int64_t parts = 1;      // of the depth, in different blocks
  /// Rows of a block, and elements of the depth in one sweep of a block.
  std::int64_t rows() const { return along_depth ? y * rows_each : x * vector; }
  std::int64_t sweep() const { return along_depth ? x * vector * loads : y * loads; }
};
ThinPlan plan_thin(const ThinShape& shape, const Grid& grid);

/// What the kernel is specialised on.
struct ThinSpec {
  Elem out, sum, a, b;  // the type stored, summed in, of the matrix, of the vectors
  bool narrow = true;   // positions fit 32 bits
  bool wide_b = false;  // the vectors are read `vector` elements at a time
  int rank_batch = 0;
  ThinPlan plan;
};
/// Parameters: out, a, b; blocks of rows, parts, length of a part, batches, rows, columns, depth;
/// a's step of rows or of the depth (in loads of `vector`); b's steps along depth and columns (in
/// loads where they are wide); out's along rows, columns, batches, parts; the extents of the batch
/// and the steps of a and b along it, in loads likewise.
ir::PrimFunc thin_kernel(const ThinSpec& spec);

/// out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n] where m or n is at most kThinColumns; false
/// where the layout needs a copy of the matrix. `out` is compact.
bool thin_product(const NDArray& out, const NDArray& a, const NDArray& b);

}  // namespace weft::device
