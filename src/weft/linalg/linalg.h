// SPDX-License-Identifier: Apache-2.0
#pragma once
// Factorisations of stacks of matrices (the last two axes) through LAPACK, which is opened at run
// time by its Fortran names; nothing is linked. Work is done in double precision and rounded to the
// argument's type.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/array/ndarray.h"

namespace weft::linalg {

/// Is a LAPACK library there? Functions below throw Error(device, "array.lapack.absent") when not.
bool available();
/// x with a x = b. Throws Error(value, "array.solve.singular"); `name`: what the user asked for.
NDArray solve(const NDArray& a, const NDArray& b, std::string_view name = "solve");
/// The inverse of matrices of many rows on the host; nothing for others, of which it is the
/// solution with the identity. Throws Error(value, "array.inv.singular").
std::optional<NDArray> inverse(const NDArray& a);
struct SignedLog {
  NDArray sign, log, determinant;
};
SignedLog slogdet(const NDArray& a);
NDArray cholesky(const NDArray& a, bool upper);
/// A factor with an int32 for each matrix, as LAPACK has it: 0, or (from 1) the leading minor that
/// is not positive. On the host.
struct TriangularFactor {
  NDArray factor, info;
};
TriangularFactor try_cholesky(const NDArray& a, bool upper);
/// Rows exchanged by `pivots` (int32, from 1), then both triangles in one matrix; `info`: 0, or
/// (from 1) which pivot is zero. On the host.
struct Elimination {
  NDArray lu, pivots, info;
};
Elimination lu(const NDArray& a);
/// a x = b, or its adjoint, with the factors of a. Throws Error(value, "array.lu_solve.pivot").
NDArray lu_solve(const NDArray& lu, const NDArray& pivots, const NDArray& b, bool adjoint);
/// The triangle of a alone is read; a zero on its diagonal divides. `unit`: it holds ones.
NDArray solve_triangular(const NDArray& a, const NDArray& b, bool upper, bool unit);
struct Eigen {
  NDArray values, vectors;
};
/// `vectors` false: on the host the values alone are computed, and the vectors are undefined.
Eigen eigh(const NDArray& a, bool vectors = true);
/// Of general matrices; complex whatever the argument is.
Eigen eig(const NDArray& a);
struct Svd {
  NDArray u, s, vh;
};
enum class SvdPart : std::uint8_t { values, thin, full };  // `values` leaves u and vh empty
Svd svd(const NDArray& a, SvdPart part);
struct Qr {
  NDArray q, r;
};
Qr qr(const NDArray& a, bool complete);

}  // namespace weft::linalg
