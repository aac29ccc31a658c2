// SPDX-License-Identifier: Apache-2.0
#include "weft/linalg/triangular.h"

#include <memory>

#include "weft/host/gemm.h"

namespace weft::linalg {

namespace {

using I = std::int64_t;
/// Rows that are substituted one after the other.
constexpr I kBlock = 16;

/// c += a b: `rows` rows of k elements, sums of `depth` terms.
template <typename T>
void add_product(I rows, I k, I depth, const T* a, I a_row, const T* b, T* c) {
  if constexpr (kComplex<T>) {
    using R = Real<T>;
    complex_gemm<R>(rows, k, depth, reinterpret_cast<const R*>(a), a_row,
                    reinterpret_cast<const R*>(b), k, 1, reinterpret_cast<R*>(c), k, true);
  } else {
    gemm<T>(rows, k, depth, a, a_row, 1, b, k, 1, c, k, true);
  }
}

template <typename T>
struct Triangle {
  bool upper, unit;
  I k, step;       // right sides; between rows of the triangle
  T* const terms;  // of one row

  /// x[to] += the negative triangle's row times rows of x.
  void substitute(const T* row, I depth, const T* from, T* to) const {
    if (depth > 0) {
      if constexpr (kComplex<T>) {
        using R = Real<T>;
        thin_complex_gemm<R>(1, k, depth, reinterpret_cast<const R*>(row), step, 1,
                             reinterpret_cast<const R*>(from), k, reinterpret_cast<R*>(terms), k);
      } else {
        thin_gemm<T>(1, k, depth, row, step, 1, from, k, terms, k);
      }
      for (I j = 0; j < k; ++j) to[j] += terms[j];
    }
  }

  void divide(T by, T* to) const {
    for (I j = 0; j < k; ++j) to[j] /= by;
  }

  void solve(I n, const T* a, T* x) const {
    if (n > kBlock) {
      const I first = (n / 2 + kBlock - 1) / kBlock * kBlock, rest = n - first;
      const T* const corner = a + first * (step + 1);
      if (upper) {
        solve(rest, corner, x + first * k);
        add_product(first, k, rest, a + first, step, x + first * k, x);
        solve(first, a, x);
      } else {
        solve(first, a, x);
        add_product(rest, k, first, a + first * step, step, x, x + first * k);
        solve(rest, corner, x + first * k);
      }
      return;
    }
    for (I i = 0; i < n; ++i) {
      const I r = upper ? n - 1 - i : i;
      const T* const row = a + r * step;
      if (upper) substitute(row + r + 1, i, x + (r + 1) * k, x + r * k);
      else substitute(row, i, x, x + r * k);
      if (!unit) divide(-row[r], x + r * k);
    }
  }
};

}  // namespace

template <typename T>
void solve_triangle(bool upper, bool unit, I n, I k, const T* negative, T* x) {
  const auto terms = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(k));
  Triangle<T>{upper, unit, k, n, terms.get()}.solve(n, negative, x);
}

template void solve_triangle(bool, bool, I, I, const float*, float*);
template void solve_triangle(bool, bool, I, I, const double*, double*);
template void solve_triangle(bool, bool, I, I, const C*, C*);
template void solve_triangle(bool, bool, I, I, const Z*, Z*);

}  // namespace weft::linalg
