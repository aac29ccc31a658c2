// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels that are written for one width of vectors: parts of products, packing, transposes. The
// generator makes them for each processor level (generate/), which fixes the tile's shape; what
// calls them (gemm.cpp, gemv.cpp, transpose.cpp) is about caches and threads only.

#include <cstdint>

#include "weft/elements/elem.h"

namespace weft {

/// A level's vectors and the register tile of its products: `rows` by two vectors.
struct VectorShape {
  int bytes = 16, rows = 4;
  constexpr int lanes(int elem_bytes) const { return bytes / elem_bytes; }
  constexpr int columns(int elem_bytes) const { return 2 * lanes(elem_bytes); }
  /// Rows of a tile at the lower end of a matrix, or half of them.
  constexpr int low() const { return rows / 3; }
  /// Side of the tiles that are transposed in registers (target/transpose_rows.h).
  constexpr int side(int elem_bytes) const {
    return elem_bytes < 4 ? 16 / elem_bytes : (bytes < 32 ? bytes : 32) / elem_bytes;
  }
};
/// Accumulators, two vectors of B and one of A fill 16 registers, or 27 of 32.
inline constexpr VectorShape kShapeBase{16, 4}, kShapeAvx2{32, 6}, kShapeAvx512{64, 12};

/// In the order of the table's first index. Panels hold, for each p, a column of so many rows of A
/// or columns of B side by side.
enum class VectorKernel : std::int16_t {
  tile,             // TileFn: C = A panel * B panel
  tile_add,         // C += ...
  tile_direct,      // A is read where it stands, its rows `row` apart
  tile_direct_add,  //
  edge,             // EdgeFn: a part of a tile's result
  edge_low,         // VectorShape::low rows of a panel
  edge_middle,      // twice as many
  edge_direct,
  interleave_rows,     // PackFn, rows of A with unit steps along p
  interleave_columns,  // columns of B with unit steps along p
  copy_rows,           // PackFn, unit steps across the panel
  copy_columns,
  gather_rows,  // PackFn, any steps, or a panel at the end
  gather_columns,
  dot_four,     // DotFn: four rows
  dot_one,      // one row
  dot_long,     // one row in eight running sums
  columns,      // ColumnsFn; of bfloat16: a is, x and y are float32
  columns_two,  // ColumnsRowsFn
  columns_four,
  transpose,  // TransposeFn, of unsigned integers
  transpose_stream,
  exchange,      // ExchangeFn, of unsigned integers: lines of one vector
  exchange_two,  // of two
  products,      // ProductsFn
  count_,
};
inline constexpr int kVectorKernels = static_cast<int>(VectorKernel::count_);

/// c[i * ldc + j] (+)= sum over p < kc of A(i, p) * b[p * columns + j] for a whole tile; `lines`
/// lines of 64 bytes from `next` on are asked for meanwhile. `row` is for A in place only.
using TileFn = void (*)(const void* a, const void* b, void* c, const void* next, std::int64_t kc,
                        std::int64_t row, std::int64_t ldc, std::int64_t lines);
/// The first m rows and n columns of a tile; `add`: to what c holds.
using EdgeFn = void (*)(const void* a, const void* b, void* c, std::int64_t kc, std::int64_t row,
                        std::int64_t ldc, std::int64_t m, std::int64_t n, std::int64_t add);
/// out[p * width + r] = in[r * across + p * along] for p < k and r < the panel's width. Of
/// fewer rows than that the rest is left as it is. interleave_*: along is 1; copy_*: across is
/// 1 and no row is missing. Up to 16 elements behind the panel may be written.
using PackFn = void (*)(const void* in, void* out, std::int64_t rows, std::int64_t k,
                        std::int64_t across, std::int64_t along);
/// y[r] = sum over p < k of a[r * row + p] * x[p].
using DotFn = void (*)(const void* a, const void* x, void* y, std::int64_t k, std::int64_t row);
/// y[i] += sum over p < k of a[p * col + i] * x[p] for i < m.
using ColumnsFn = void (*)(const void* a, const void* x, void* y, std::int64_t m, std::int64_t k,
                           std::int64_t col);
/// y[r * ys + i] += sum over p < k of a[p * col + i] * x[r * xs + p] for r < 2 or 4, i < m.
using ColumnsRowsFn = void (*)(const void* a, const void* x, void* y, std::int64_t m,
                               std::int64_t k, std::int64_t col, std::int64_t xs, std::int64_t ys);
/// y[i] += sum over p < k of a[p * as + i] * x[p * xs + i] for i < m.
using ProductsFn = void (*)(const void* a, const void* x, void* y, std::int64_t m, std::int64_t k,
                            std::int64_t as, std::int64_t xs);
/// out[i * out_step + j] = in[j * in_step + i] for i < m, j < n. The streaming one stores past the
/// caches: out is aligned to its vectors, and its out_step counts sides of a tile.
using TransposeFn = void (*)(const void* in, void* out, std::int64_t m, std::int64_t n,
                             std::int64_t in_step, std::int64_t out_step);

/// Rows i and j of lines side by side become their minima and maxima, for so many pairs i, j.
using ExchangeFn = void (*)(void* lines, const std::uint8_t* pairs, std::int64_t count);

struct VectorTable {
  VectorShape shape;
  void (*function[kVectorKernels][kElems])() = {};
  template <typename F>
  F get(VectorKernel k, Elem e) const {
    return reinterpret_cast<F>(function[static_cast<int>(k)][static_cast<int>(e)]);
  }
};
/// The table for this processor.
const VectorTable& vector_kernels();

}  // namespace weft
