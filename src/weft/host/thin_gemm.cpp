// SPDX-License-Identifier: Apache-2.0
// Products with a few rows on the left: eight rows of B at a time are read where they lie, and
// their multiples are added to pieces of C's rows, which stay in the nearest cache with them.

#include <algorithm>
#include <cstring>
#include <memory>

#include "weft/host/gemm.h"
#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {
namespace {

using I = std::int64_t;

/// Rows of B that the kernel adds up in one pass.
constexpr I kDeep = 8;
/// Elements of a piece: eight rows of B fill the nearest cache.
template <typename T>
constexpr I kPiece = 4096 / sizeof(T);

template <typename T>
struct ColumnKernels {
  static constexpr Elem kElem = sizeof(T) == 8 ? Elem::float64 : Elem::float32;
  ColumnsFn one = vector_kernels().get<ColumnsFn>(VectorKernel::columns, kElem);
  ColumnsRowsFn two = vector_kernels().get<ColumnsRowsFn>(VectorKernel::columns_two, kElem);
  ColumnsRowsFn four = vector_kernels().get<ColumnsRowsFn>(VectorKernel::columns_four, kElem);
};

/// to[r * step + j] = sum over p of a[r * k + p] * b[p * b_row + j] for r < rows, j < width.
template <typename T>
void piece(const ColumnKernels<T>& add, I rows, I width, I k, const T* a, const T* b, I b_row,
           T* to, I step) {
  for (I r = 0; r < rows; ++r)
    std::memset(to + r * step, 0, static_cast<std::size_t>(width) * sizeof(T));
  for (I p = 0; p < k; p += kDeep) {
    const I deep = std::min(kDeep, k - p);
    I r = 0;
    for (; r + 4 <= rows; r += 4)
      add.four(b + p * b_row, a + r * k + p, to + r * step, width, deep, b_row, k, step);
    for (; r + 2 <= rows; r += 2)
      add.two(b + p * b_row, a + r * k + p, to + r * step, width, deep, b_row, k, step);
    if (r < rows) add.one(b + p * b_row, a + r * k + p, to + r * step, width, deep, b_row);
  }
}

/// f(first column, columns) for pieces of n, shared by threads; `rows` are added to.
template <typename T, typename F>
void for_pieces(I n, I rows, I k, const F& f) {
  // With few rows of C longer runs of B's rows fit beside them.
  const I piece = rows <= 4 ? 2 * kPiece<T> : kPiece<T>;
  const I count = (n + piece - 1) / piece;
  const I grain = std::max<I>(1, 262144 / std::max<I>(1, piece * rows * k));
  runtime::Pool::shared().parallel_for(count, grain, [&](I at, I end) {
    for (; at < end; ++at) f(at * piece, std::min(piece, n - at * piece));
  });
}

template <typename T>
std::unique_ptr<T[]> room(I count) {
  return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count));
}

/// f(row, first place, end) for all rows, some places at a time: where neighbours of a row lie far
/// apart, those of a place are read before their lines leave the caches.
template <typename F>
void for_parts(I m, I k, const F& f) {
  constexpr I kPlaces = 128;
  for (I p = 0; p < k; p += kPlaces) {
    for (I r = 0; r < m; ++r) f(r, p, std::min(k, p + kPlaces));
  }
}

/// A's rows one after the other, in `packed` where they had gaps.
template <typename T>
const T* without_gaps(I m, I k, const T* a, I a_row, I a_col, std::unique_ptr<T[]>& packed) {
  if (a_col == 1 && (a_row == k || m == 1)) return a;
  packed = room<T>(m * k);
  for_parts(m, k, [&](I r, I p, I end) {
    for (; p < end; ++p) packed[r * k + p] = a[r * a_row + p * a_col];
  });
  return packed.get();
}

/// Real parts of A's rows without gaps, then imaginary ones.
template <typename T>
void part(I m, I k, const T* a, I a_row, I a_col, T* out) {
  for_parts(m, k, [&](I r, I p, I end) {
    const T* const from = a + 2 * r * a_row;
    T *const real = out + r * k, *const imag = out + (m + r) * k;
    if (a_col == 1) {
      for (; p < end; ++p) real[p] = from[2 * p], imag[p] = from[2 * p + 1];
    }
    for (; p < end; ++p) real[p] = from[2 * p * a_col], imag[p] = from[2 * p * a_col + 1];
  });
}

/// Rows of C from the products with real and with imaginary parts.
template <typename T>
void join(I n, const T* real, const T* imag, T* c) {
  for (I j = 0; j < n; ++j) {
    c[2 * j] = real[2 * j] - imag[2 * j + 1];
    c[2 * j + 1] = real[2 * j + 1] + imag[2 * j];
  }
}

}  // namespace

template <typename T>
void thin_gemm(I m, I n, I k, const T* a, I a_row, I a_col, const T* b, I b_row, T* c, I ldc) {
  std::unique_ptr<T[]> packed;
  a = without_gaps(m, k, a, a_row, a_col, packed);
  const ColumnKernels<T> add;
  for_pieces<T>(n, m, k,
                [&](I j, I width) { piece<T>(add, m, width, k, a, b + j, b_row, c + j, ldc); });
}

template <typename T>
void thin_dots(I m, I n, I k, const T* a, I a_row, I a_col, const T* b, I b_col, T* c, I c_row,
               I c_col) {
  std::unique_ptr<T[]> packed;
  a = without_gaps(m, k, a, a_row, a_col, packed);
  constexpr I kColumns = 4, kDepth = 8192 / sizeof(T);  // of B in the nearest cache
  const Elem e = ColumnKernels<T>::kElem;
  const auto four = vector_kernels().get<DotFn>(VectorKernel::dot_four, e),
             one = vector_kernels().get<DotFn>(VectorKernel::dot_one, e);
  const I grain = std::max<I>(1, 65536 / std::max<I>(1, kColumns * m * k));
  runtime::Pool::shared().parallel_for((n + kColumns - 1) / kColumns, grain, [&](I group, I end) {
    for (; group < end; ++group) {
      const I j = group * kColumns, width = std::min(kColumns, n - j);
      for (I p = 0; p < k; p += kDepth) {
        const I deep = std::min(kDepth, k - p);
        for (I r = 0; r < m; ++r) {
          T sums[kColumns];
          const T *const from = b + j * b_col + p, *const row = a + r * k + p;
          if (width == kColumns) four(from, row, sums, deep, b_col);
          for (I q = 0; width < kColumns && q < width; ++q)
            one(from + q * b_col, row, sums + q, deep, b_col);
          for (I q = 0; q < width; ++q) {
            T& to = c[r * c_row + (j + q) * c_col];
            to = p == 0 ? sums[q] : to + sums[q];
          }
        }
      }
    }
  });
}

template <typename T>
void thin_complex_gemm(I m, I n, I k, const T* a, I a_row, I a_col, const T* b, I b_row, T* c,
                       I ldc) {
  const I rows = 2 * m;
  if (rows > kThinRows) {
    // Some of the depth at a time, so that the parts of A are packed before they leave the cache.
    const I most = std::max<I>(1024, (I{1} << 20) / (static_cast<I>(sizeof(T)) * rows));
    const I deep = std::min(k, most);
    const auto parts = room<T>(rows * deep), both = room<T>(2 * rows * n);
    for (I p = 0; p < k; p += deep) {
      const I depth = std::min(deep, k - p);
      part(m, depth, a + 2 * p * a_col, a_row, a_col, parts.get());
      gemm<T>(rows, 2 * n, depth, parts.get(), depth, 1, b + 2 * p * b_row, 2 * b_row, 1,
              both.get(), 2 * n, p > 0);
    }
    for (I r = 0; r < m; ++r) join(n, &both[2 * r * n], &both[2 * (m + r) * n], c + 2 * r * ldc);
    return;
  }
  const auto parts = room<T>(rows * k);
  part(m, k, a, a_row, a_col, parts.get());
  const ColumnKernels<T> add;
  for_pieces<T>(2 * n, rows, k, [&](I j, I width) {
    T both[kThinRows * kPiece<T>];
    piece<T>(add, rows, width, k, parts.get(), b + j, 2 * b_row, both, width);
    for (I r = 0; r < m; ++r)
      join(width / 2, both + r * width, both + (m + r) * width, c + 2 * r * ldc + j);
  });
}

template void thin_gemm(I, I, I, const float*, I, I, const float*, I, float*, I);
template void thin_gemm(I, I, I, const double*, I, I, const double*, I, double*, I);
template void thin_dots(I, I, I, const float*, I, I, const float*, I, float*, I, I);
template void thin_dots(I, I, I, const double*, I, I, const double*, I, double*, I, I);
template void thin_complex_gemm(I, I, I, const float*, I, I, const float*, I, float*, I);
template void thin_complex_gemm(I, I, I, const double*, I, I, const double*, I, double*, I);

}  // namespace weft
