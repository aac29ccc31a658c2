// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transforms and factorisations that a device's vendor offers as libraries, opened at run time.
// Work is ordered with the device's launches; matrices lie column by column.

#include <array>
#include <cstdint>

#include "weft/runtime/device.h"

namespace weft::runtime {

class MathLibrary {
 public:
  virtual ~MathLibrary() = default;

  struct Place {
    Storage* storage = nullptr;
    std::int64_t offset = 0;  // in bytes
    std::uint64_t address() const {
      return storage->address() + static_cast<std::uint64_t>(offset);
    }
  };
  enum class Fft : std::uint8_t { forward, inverse, real_forward, real_inverse };
  /// Transforms over `rank` axes of n[0], n[1], ... points, the last one of which a real kind
  /// halves. Neighbours along the last axis lie `step` elements apart (several axes: 1, and the
  /// axes are compact), the first elements of the transforms `next`.
  struct Transform {
    Fft kind = Fft::forward;
    bool wide = false;  // float64
    int rank = 1;
    std::array<std::int64_t, 3> n = {};
    std::int64_t count = 0;  // of transforms
    std::int64_t in_step = 1, in_next = 0, out_step = 1, out_next = 0;
    bool operator==(const Transform&) const = default;
  };
  /// Whether there is a library of transforms, of factorisations.
  virtual bool transforms() const = 0;
  virtual bool factorisations() const = 0;
  /// Whether it has the functions "of all".
  virtual bool batches() const = 0;
  /// Results are unscaled; real_inverse may overwrite `in`. Both begin at multiples of a complex
  /// number.
  virtual void fft(const Transform& transform, Place in, Place out) = 0;

  enum class Number : std::uint8_t { float32, float64, complex64, complex128 };
  /// In place, a matrix at a time; the lower triangle. `status` is an int32: 0, or the library's
  /// number of what failed.
  virtual void cholesky(Number type, std::int64_t n, Place a, Place status) = 0;
  /// `pivots`: n int32, from 1.
  virtual void lu(Number type, std::int64_t n, Place a, Place pivots, Place status) = 0;
  /// b (n, k) becomes the solution, `a` and `pivots` as lu left them.
  virtual void lu_solve(Number type, std::int64_t n, std::int64_t k, Place a, Place pivots, Place b,
                        Place status) = 0;
  /// a (m, n) becomes R and reflectors, `tau` has min(m, n) elements.
  virtual void qr(Number type, std::int64_t m, std::int64_t n, Place a, Place tau,
                  Place status) = 0;
  /// a (m, columns): `k` reflectors become orthogonal columns.
  virtual void orthogonal(Number type, std::int64_t m, std::int64_t columns, std::int64_t k,
                          Place a, Place tau, Place status) = 0;
  /// The lower triangle of a; eigenvectors take a's place where wanted.
  virtual void eigh(Number type, bool vectors, std::int64_t n, Place a, Place values,
                    Place status) = 0;
  /// m >= n. u is (m, n) or (m, m), vh (n, n); null storages where they are not wanted.
  virtual void svd(Number type, std::int64_t m, std::int64_t n, bool full, Place a, Place s,
                   Place u, Place vh, Place status) = 0;
  /// The same by Jacobi's rotations, with vectors, thin: v (n, n) in place of its adjoint. A status
  /// other than 0: the rotations did not end.
  virtual void svd_jacobi(Number type, std::int64_t m, std::int64_t n, Place a, Place s, Place u,
                          Place v, Place status) = 0;
  /// `count` matrices at once, whose addresses (int64) lie one after the other, as do the pivots
  /// and an int32 status for each.
  virtual void lu_of_all(Number type, std::int64_t n, std::int64_t count, Place addresses,
                         Place pivots, Place status) = 0;
  virtual void lu_solve_all(Number type, std::int64_t n, std::int64_t k, std::int64_t count,
                            Place addresses, Place pivots, Place b_addresses) = 0;
  virtual void cholesky_of_all(Number type, std::int64_t n, std::int64_t count, Place addresses,
                               Place status) = 0;
};

/// A Device may also be this.
class HasMathLibrary {
 public:
  virtual ~HasMathLibrary() = default;
  virtual MathLibrary& math_library() = 0;
};

/// Null where the device has none.
inline MathLibrary* math_library_of(Device& device) {
  auto* has = dynamic_cast<HasMathLibrary*>(&device);
  return has ? &has->math_library() : nullptr;
}

}  // namespace weft::runtime
