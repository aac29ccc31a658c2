// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elimination and factors of a few rows, for which a library's call costs more than the
// elimination.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "weft/linalg/lapack.h"

namespace weft::linalg {

/// Rows up to which matrices are eliminated here.
template <typename T>
constexpr Int kFewRows = kComplex<T> ? 4 : 8;

template <typename T>
T product(T a, T b) {
  if constexpr (kComplex<T>) {
    // Of finite numbers; what operator* does for others takes most of the time.
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return a * b;
  }
}
template <typename T>
Real<T> size_of_pivot(T a) {
  if constexpr (kComplex<T>) return std::abs(a.real()) + std::abs(a.imag());
  else return std::abs(a);
}

/// LAPACK's getrf of a matrix that lies column by column: rows are exchanged for the largest pivot.
/// 0, or the first column without one, from 1.
template <typename T>
Int small_lu(Int n, T* a, Int* pivots) {
  Int info = 0;
  for (Int k = 0; k < n; ++k) {
    T* const column = a + k * n;
    Int p = k;
    for (Int i = k + 1; i < n; ++i) {
      if (size_of_pivot(column[i]) > size_of_pivot(column[p])) p = i;
    }
    pivots[k] = p + 1;
    if (column[p] == T(0)) {
      if (!info) info = k + 1;
      continue;
    }
    for (Int j = 0; p != k && j < n; ++j) std::swap(a[j * n + k], a[j * n + p]);
    if (size_of_pivot(column[k]) >= std::numeric_limits<Real<T>>::min()) {
      const T inverse = T(1) / column[k];
      for (Int i = k + 1; i < n; ++i) column[i] = product(column[i], inverse);
    } else {
      for (Int i = k + 1; i < n; ++i) column[i] /= column[k];
    }
    for (Int j = k + 1; j < n; ++j) {
      T* const to = a + j * n;
      for (Int i = k + 1; i < n; ++i) to[i] -= product(column[i], to[k]);
    }
  }
  return info;
}

/// a x = b for rows one after the other, by elimination in both: `count` columns of b become x. 0,
/// or the first column without a pivot, from 1.
template <typename T>
Int small_solve(Int n, Int count, T* a, T* x) {
  T inverse[kFewRows<T>];
  const auto less = [](Int columns, T by, const T* from, T* to) {
    for (Int c = 0; c < columns; ++c) to[c] -= product(by, from[c]);
  };
  for (Int k = 0; k < n; ++k) {
    T* const row = a + k * n;
    Int p = k;
    for (Int i = k + 1; i < n; ++i) {
      if (size_of_pivot(a[i * n + k]) > size_of_pivot(a[p * n + k])) p = i;
    }
    if (a[p * n + k] == T(0)) return k + 1;
    if (p != k) {
      std::swap_ranges(row + k, row + n, a + p * n + k);
      std::swap_ranges(x + k * count, x + (k + 1) * count, x + p * count);
    }
    // The inverse of a subnormal number may not exist.
    T scale(1);
    while (size_of_pivot(row[k] * scale) < std::numeric_limits<Real<T>>::min()) scale *= T(0x1p20F);
    inverse[k] = T(1) / (row[k] * scale);
    if (scale != T(1)) {
      for (Int j = k; j < n; ++j) row[j] *= scale;
      for (Int c = 0; c < count; ++c) x[k * count + c] *= scale;
    }
    for (Int i = k + 1; i < n; ++i) {
      const T by = product(a[i * n + k], inverse[k]);
      less(n - k - 1, by, row + k + 1, a + i * n + k + 1);
      less(count, by, x + k * count, x + i * count);
    }
  }
  for (Int k = n; k-- > 0;) {
    for (Int c = 0; c < count; ++c) x[k * count + c] = product(x[k * count + c], inverse[k]);
    for (Int i = 0; i < k; ++i) less(count, a[i * n + k], x + k * count, x + i * count);
  }
  return 0;
}

/// LAPACK's potrf: the triangle whose elements lie `down` and `across` apart becomes the factor. 0,
/// or the first row that is not positive definite, from 1.
template <typename T>
Int small_cholesky(Int n, T* a, Int down, Int across) {
  const auto at = [=](Int i, Int j) -> T& { return a[i * down + j * across]; };
  for (Int k = 0; k < n; ++k) {
    const Real<T> pivot = std::real(at(k, k));
    if (!(pivot > 0)) return k + 1;
    const Real<T> root = std::sqrt(pivot);
    at(k, k) = root;
    for (Int i = k + 1; i < n; ++i) at(i, k) /= root;
    for (Int j = k + 1; j < n; ++j) {
      T by = at(j, k);
      if constexpr (kComplex<T>) by = std::conj(by);
      for (Int i = j; i < n; ++i) at(i, j) -= product(at(i, k), by);
    }
  }
  return 0;
}

}  // namespace weft::linalg
