// SPDX-License-Identifier: Apache-2.0
#pragma once
// Factorisations on devices that the host cannot address: matrices that fit the shared memory of a
// block by programs (linalg_small.cpp), others by the vendor's library where the device has one
// (linalg_library.cpp), else composed of array operations, which work on all matrices of a stack at
// once (linalg_composed.cpp).

#include "weft/linalg/linalg.h"
#include "weft/runtime/math_library.h"

namespace weft::linalg {

/// Matrices (count, m, n) of an inexact type of at least 32 bits, on one device. `status` has an
/// int32 for each: 0, or that the matrix has no such factorisation.
struct Solved {
  NDArray x, status;
};
struct Factors {
  NDArray lu, parity, status;  // parity: 1 or -1, real, of the row exchanges; status: a zero pivot
};
struct Definite {
  NDArray lower, status;
};

namespace library {
using runtime::MathLibrary;
/// Null where the device has none, or where composing is faster.
MathLibrary* of(const NDArray& matrices);
Solved solve(MathLibrary& lib, const NDArray& a, const NDArray& b);
Factors lu(MathLibrary& lib, const NDArray& a);
Definite cholesky(MathLibrary& lib, const NDArray& a);
Qr qr(MathLibrary& lib, const NDArray& a, bool complete);
struct Decomposed {
  NDArray values, left, right, status;  // right: of singular values, the vectors' adjoint
};
Decomposed eigh(MathLibrary& lib, const NDArray& a);
Decomposed svd(MathLibrary& lib, const NDArray& a, SvdPart part);  // m >= n
}  // namespace library

namespace composed {
Solved solve(const NDArray& a, const NDArray& b);
Factors lu(const NDArray& a);
Definite cholesky(const NDArray& a);
Qr qr(const NDArray& a, bool complete);
Eigen eigh(const NDArray& a);
Svd svd(const NDArray& a, SvdPart part);  // m >= n
/// Orthogonal columns in place of the columns of zeros of u where s is no more than rounding errors
/// of the largest, and with `full` as many as rows.
NDArray completed(const NDArray& u, const NDArray& s, bool full);
}  // namespace composed

namespace small {
enum class Program : std::uint8_t { elimination, cholesky, qr, eigh, svd };
/// Whether the program of one matrix a block takes these matrices, with so many right-hand sides.
bool fits(Program program, const NDArray& matrices, std::int64_t columns = 0);
Solved solve(const NDArray& a, const NDArray& b);
SignedLog slogdet(const NDArray& a);
Definite cholesky(const NDArray& a, bool upper);  // `lower` is the factor that was asked for
Qr qr(const NDArray& a, bool complete);
library::Decomposed eigh(const NDArray& a);
library::Decomposed svd(const NDArray& a, SvdPart part);  // m >= n
}  // namespace small

/// The functions of linalg.h for checked arguments that lie on a device.
namespace device {
NDArray solve(const NDArray& a, const NDArray& b, std::string_view name, const NDArray& asked);
SignedLog slogdet(const NDArray& a);
NDArray cholesky(const NDArray& a, bool upper);
Eigen eigh(const NDArray& a);
Svd svd(const NDArray& a, SvdPart part);
Qr qr(const NDArray& a, bool complete);
}  // namespace device

/// The matrix's triangle: the lower one, or with `upper` the other, zeros elsewhere.
NDArray triangle(const NDArray& a, bool upper);
/// (count, n, n) identities.
NDArray identities(const Ref<Device>& device, Elem elem, std::int64_t count, std::int64_t n);
NDArray adjoint(const NDArray& a);

}  // namespace weft::linalg
