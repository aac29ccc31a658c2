// SPDX-License-Identifier: Apache-2.0
#include "weft/linalg/triangular.h"

#include <cmath>
#include <memory>

#include "weft/host/gemm.h"

namespace weft::linalg {

namespace {

using I = std::int64_t;
/// Rows that are substituted one after the other.
constexpr I kBlock = 16;

/// A triangular system of reals; one of complex numbers has two rows for each, the real and the
/// imaginary parts, and two rows and columns of the triangle: (re, -im) and (im, re).
template <typename R>
struct Triangle {
  bool upper, unit;
  bool identity;   // of the lower one: what is right of the diagonal is 0, and stays it
  I parts;         // rows of a number
  I k, step;       // between rows of right sides; of the triangle
  R* const terms;  // `parts` rows

  /// Columns of right sides that the numbers up to `end` have.
  I width(I end) const { return identity ? end : k; }

  /// to += rows of the negative triangle times rows of right sides, of `depth` numbers.
  void substitute(const R* rows, I depth, const R* from, R* to, I columns) const {
    if (depth == 0) return;
    thin_gemm<R>(parts, columns, depth * parts, rows, step, 1, from, k, terms, k);
    for (I p = 0; p < parts; ++p) {
      for (I j = 0; j < columns; ++j) to[p * k + j] += terms[p * k + j];
    }
  }

  /// Divides the rows of a number by one whose negative is at `by`.
  void divide(const R* by, R* to) const {
    if (parts == 1) {
      const R inverse = R(-1) / by[0];
      if (std::isfinite(inverse)) {
        for (I j = 0; j < k; ++j) to[j] *= inverse;
      } else {  // of a subnormal number, or of none
        for (I j = 0; j < k; ++j) to[j] /= -by[0];
      }
      return;
    }
    const std::complex<R> divisor(-by[0], -by[step]), inverse = R(1) / divisor;
    const R re = inverse.real(), im = inverse.imag();
    R* const imaginary = to + k;
    if (std::isfinite(re) && std::isfinite(im)) {
      for (I j = 0; j < k; ++j) {
        const R x = to[j], y = imaginary[j];
        to[j] = x * re - y * im;
        imaginary[j] = x * im + y * re;
      }
    } else {
      for (I j = 0; j < k; ++j) {
        const std::complex<R> q = std::complex<R>(to[j], imaginary[j]) / divisor;
        to[j] = q.real(), imaginary[j] = q.imag();
      }
    }
  }

  /// n numbers, of which the first is `row` of the whole system.
  void solve(I row, I n, const R* a, R* x) const {
    const I line = parts * step, across = parts * k;  // of a number
    if (n > kBlock) {
      const I first = (n / 2 + kBlock - 1) / kBlock * kBlock, rest = n - first;
      const R* const corner = a + first * (line + parts);
      R* const below = x + first * across;
      if (upper) {
        solve(row + first, rest, corner, below);
        gemm<R>(first * parts, k, rest * parts, a + first * parts, step, 1, below, k, 1, x, k,
                true);
        solve(row, first, a, x);
      } else {
        solve(row, first, a, x);
        gemm<R>(rest * parts, width(row + first), first * parts, a + first * line, step, 1, x, k, 1,
                below, k, true);
        solve(row + first, rest, corner, below);
      }
      return;
    }
    for (I i = 0; i < n; ++i) {
      const I r = upper ? n - 1 - i : i;
      const R* const rows = a + r * line;
      R* const to = x + r * across;
      if (upper) substitute(rows + (r + 1) * parts, i, to + across, to, k);
      else substitute(rows, i, x, to, width(row + r));
      if (!unit) divide(rows + r * parts, to);
    }
  }
};

template <typename R>
std::unique_ptr<R[]> room(I count) {
  return std::make_unique_for_overwrite<R[]>(static_cast<std::size_t>(count));
}

}  // namespace

template <typename T>
void solve_triangle(Side side, I n, I k, const T* negative, T* x) {
  using R = Real<T>;
  constexpr I parts = kComplex<T> ? 2 : 1;
  const auto terms = room<R>(parts * k);
  const bool upper = side == Side::upper || side == Side::unit_upper;
  const bool unit = side != Side::lower && side != Side::upper;
  const Triangle<R> system{upper,     unit,       side == Side::unit_lower_inverse, parts, k,
                           parts * n, terms.get()};
  if constexpr (!kComplex<T>) {
    system.solve(0, n, negative, x);
  } else {
    const auto triangle = room<R>(4 * n * n), rows = room<R>(2 * n * k);
    for (I i = 0; i < n; ++i) {
      R *const re = triangle.get() + 4 * n * i, *const im = re + 2 * n;
      for (I j = 0; j < n; ++j) {
        const T v = negative[i * n + j];
        re[2 * j] = v.real(), re[2 * j + 1] = -v.imag();
        im[2 * j] = v.imag(), im[2 * j + 1] = v.real();
      }
      R *const real = rows.get() + 2 * k * i, *const imaginary = real + k;
      for (I j = 0; j < k; ++j) real[j] = x[i * k + j].real(), imaginary[j] = x[i * k + j].imag();
    }
    system.solve(0, n, triangle.get(), rows.get());
    for (I i = 0; i < n; ++i) {
      const R *const real = rows.get() + 2 * k * i, *const imaginary = real + k;
      for (I j = 0; j < k; ++j) x[i * k + j] = T(real[j], imaginary[j]);
    }
  }
}

template void solve_triangle(Side, I, I, const float*, float*);
template void solve_triangle(Side, I, I, const double*, double*);
template void solve_triangle(Side, I, I, const C*, C*);
template void solve_triangle(Side, I, I, const Z*, Z*);

}  // namespace weft::linalg
