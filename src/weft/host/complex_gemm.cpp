// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "weft/host/gemm.h"
#include "weft/runtime/pool.h"

namespace weft {
namespace {

using I = std::int64_t;

// A block of B, expanded: its rows fill two panels of the product of reals, its columns one round.
constexpr I kColumns = 512;
template <typename T>
constexpr I kRows = sizeof(T) == 8 ? 256 : 352;

/// Rows b and i b of n complex numbers.
template <typename T>
void expand_row(I n, const T* b, I step, T* out, T* turned) {
  if (step == 1) {
    for (I j = 0; j < 2 * n; ++j) out[j] = b[j];
    for (I j = 0; j < n; ++j) {
      turned[2 * j] = -b[2 * j + 1];
      turned[2 * j + 1] = b[2 * j];
    }
    return;
  }
  for (I j = 0; j < n; ++j) {
    const T re = b[2 * j * step], im = b[2 * j * step + 1];
    out[2 * j] = re, out[2 * j + 1] = im;
    turned[2 * j] = -im, turned[2 * j + 1] = re;
  }
}

/// One column: real and imaginary parts are products with a vector each.
template <typename T>
void column(I m, I k, const T* a, I a_row, const T* b, I b_row, T* c, I ldc) {
  const auto memory = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(4 * k + 2 * m));
  T *wide = memory.get(), *turned = wide + 2 * k, *re = turned + 2 * k, *im = re + m;
  expand_row(k, b, b_row, wide, turned);
  for (I p = 0; p < k; ++p) {  // (re, -im) and (im, re)
    turned[2 * p] = wide[2 * p + 1];
    turned[2 * p + 1] = wide[2 * p];
    wide[2 * p + 1] = -wide[2 * p + 1];
  }
  gemv_two<T>(m, 2 * k, a, 2 * a_row, wide, turned, re, im);
  for (I i = 0; i < m; ++i) {
    c[2 * i * ldc] = re[i];
    c[2 * i * ldc + 1] = im[i];
  }
}

}  // namespace

template <typename T>
void complex_gemm(I m, I n, I k, const T* a, I a_row, const T* b, I b_row, I b_col, T* c, I ldc) {
  if (n == 1) return column(m, k, a, a_row, b, b_row, c, ldc);
  const I rows = std::min(k, kRows<T>), columns = std::min(n, kColumns);
  const auto wide =
      std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(4 * rows * columns));
  for (I p = 0; p < k; p += rows) {
    const I depth = std::min(rows, k - p);
    for (I j = 0; j < n; j += columns) {
      const I width = std::min(columns, n - j);
      runtime::Pool::shared().parallel_for(depth, std::max<I>(1, 16384 / width), [&](I r, I end) {
        for (; r < end; ++r) {
          T* out = wide.get() + r * 4 * width;
          expand_row(width, b + 2 * ((p + r) * b_row + j * b_col), b_col, out, out + 2 * width);
        }
      });
      gemm<T>(m, 2 * width, 2 * depth, a + 2 * p, 2 * a_row, 1, wide.get(), 2 * width, 1, c + 2 * j,
              2 * ldc, p > 0);
    }
  }
}

template void complex_gemm(I, I, I, const float*, I, const float*, I, I, float*, I);
template void complex_gemm(I, I, I, const double*, I, const double*, I, I, double*, I);

}  // namespace weft
