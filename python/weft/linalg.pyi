# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

class EigResult(NamedTuple):
    eigenvalues: NDArray
    eigenvectors: NDArray

class EighResult(NamedTuple):
    eigenvalues: NDArray
    eigenvectors: NDArray

class QRResult(NamedTuple):
    Q: NDArray
    R: NDArray

class SlogdetResult(NamedTuple):
    sign: NDArray
    logabsdet: NDArray

class SVDResult(NamedTuple):
    U: NDArray
    S: NDArray
    Vh: NDArray

def cholesky(x: _ArrayLike, /, *, upper: _bool = False) -> NDArray:
    """The triangular factor of symmetric (Hermitian) positive definite matrices. Its gradient is symmetric (Hermitian)."""
def cross(x1: _ArrayLike, x2: _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> NDArray:
    """The product of three-vectors; of vectors of two numbers, whose third is 0, too, and of two such the third number."""
def det(x: _ArrayLike, /) -> NDArray:
    """Determinants."""
def diagonal(x: _ArrayLike, /, *, offset: int = 0) -> NDArray:
    """Diagonals of matrices; of an array a view."""
def eig(x: _ArrayLike, /) -> EigResult:
    """Eigenvalues and eigenvectors, complex, of general matrices. The gradient is that of vectors of length 1 whose phase does not matter."""
def eigh(x: _ArrayLike, /) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of symmetric (Hermitian) matrices. Equal eigenvalues give gradients of vectors that are no numbers."""
def eigvals(x: _ArrayLike, /) -> NDArray:
    """Eigenvalues, complex, of general matrices."""
def eigvalsh(x: _ArrayLike, /) -> NDArray:
    """Eigenvalues, ascending, of symmetric (Hermitian) matrices."""
def inv(x: _ArrayLike, /) -> NDArray:
    """Inverse matrices."""
def matmul(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Matrix product over the last two axes; the others broadcast."""
def matrix_norm(x: _ArrayLike, /, *, keepdims: _bool = False, ord: int | float | str | None = 'fro') -> NDArray:
    """Norms of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf, -inf."""
def matrix_power(x: _ArrayLike, n: int, /) -> NDArray:
    """Matrices to an integer power."""
def matrix_rank(x: _ArrayLike, /, *, rtol: float | NDArray | None = None) -> NDArray:
    """How many singular values exceed rtol times the largest."""
def matrix_transpose(x: _ArrayLike, /) -> NDArray:
    """A view with the last two axes exchanged."""
def outer(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Products of all pairs of two vectors."""
def pinv(x: _ArrayLike, /, *, rtol: float | NDArray | None = None) -> NDArray:
    """Generalised inverse by singular values. Its gradient is right where the rank does not change."""
def qr(x: _ArrayLike, /, *, mode: str = 'reduced') -> QRResult:
    """Orthogonal and triangular factors. With mode "r" of arrays the triangular one alone, as in NumPy; of tensors Q is empty, as in PyTorch."""
def slogdet(x: _ArrayLike, /) -> SlogdetResult:
    """Signs and logarithms of the magnitudes of determinants."""
def solve(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x with x1 x = x2."""
def svd(x: _ArrayLike, /, *, full_matrices: _bool = True) -> SVDResult:
    """Singular value decomposition. Equal singular values give gradients of vectors that are no numbers."""
def svdvals(x: _ArrayLike, /) -> NDArray:
    """Singular values, descending."""
def tensordot(x1: _ArrayLike, x2: _ArrayLike, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> NDArray:
    """Sum of products over several axes."""
def trace(x: _ArrayLike, /, *, offset: int = 0, dtype: _DType | None = None) -> NDArray:
    """Sums of diagonals."""
def vecdot(x1: _ArrayLike, x2: _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> NDArray:
    """Sum of conj(x1) * x2 along an axis."""
def vector_norm(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, ord: int | float | str | None = 2) -> NDArray:
    """p-norms of vectors."""
def cond(x: _ArrayLike, p: float | None = None) -> NDArray:
    """The condition number: the norm times the inverse's; of the largest and smallest singular value when p is None."""
def inverse(x: _ArrayLike) -> NDArray:
    """As inv."""
def lstsq(a: Any, b: Any, rcond: Any = None, *, driver: Any = None) -> tuple[Any, Any, int, Any]:
    """(x, sums of squares, rank, singular values) with the least |a x - b|; of several the smallest."""
def matrix_exp(x: _ArrayLike) -> NDArray:
    """The exponential of square matrices: scaled until small, a Taylor polynomial of degree 18, squared again."""
def multi_dot(matrices: Any) -> NDArray:
    """The product of several matrices in the order that costs least; the first and the last may be vectors."""
def norm(x: _ArrayLike, ord: int | float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> NDArray:
    """A vector's norm along one axis, a matrix's along two; over all elements in a row when neither ord nor axis is given."""
def solve_triangular(a: Any, b: Any, *, upper: _bool, left: Any = True, unitriangular: Any = False) -> NDArray:
    """x with a x = b (x a = b without left) for the triangle of a that `upper` names; the other one is not read."""
def tensorinv(a: Any, ind: Any = 2) -> NDArray:
    """The inverse of a as a map from its last axes to its first `ind`."""
def tensorsolve(a: Any, b: Any) -> NDArray:
    """x with tensordot(a, x, x.ndim) = b."""
LinAlgError: Any
def cholesky_ex(x: _ArrayLike, *, upper: _bool = False, check_errors: Any = False) -> NDArray:
    """(Cholesky's factor, info): info is 0, or 1 (and the factor NaN) where a matrix of the batch is not positive definite."""
def householder_product(x: _ArrayLike, tau: Any) -> NDArray:
    """The first columns of the product of the reflectors of geqrf, (m, n)."""
def inv_ex(x: _ArrayLike, *, check_errors: Any = False) -> NDArray:
    """(inverse, info): info is 0, or 1 (and the inverse NaN) where a matrix of the batch is singular."""
def lu(x: _ArrayLike, *, pivot: Any = True, get_infos: Any = False) -> NDArray:
    """weft.linalg.lu: (P, L, U) with P L U = x, of matrices (..., m, n); L has ones on its diagonal."""
def lu_factor(x: _ArrayLike, *, pivot: Any = True) -> NDArray:
    """(L and U in one matrix, pivots from 1 on, int32) of matrices (..., m, n)."""
def lu_factor_ex(x: _ArrayLike, *, pivot: Any = True, check_errors: Any = False) -> NDArray:
    """lu_factor and where a pivot is 0: (LU, pivots, info), info the first such place from 1 on, 0 where there is none."""
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any = None, *, left: Any = True, adjoint: Any = False) -> NDArray:
    """x with A x = b for what lu_factor gave of A: lu_solve(b, LU, pivots), or weft.linalg's order lu_solve(LU, pivots, b)."""
def solve_ex(a: Any, b: Any, *, left: Any = True, check_errors: Any = False) -> NDArray:
    """(x with a x = b, info): info is 0, or 1 (and x NaN) where a matrix of the batch is singular."""
def vander(x: _ArrayLike, N: Any = None) -> NDArray:
    """Powers of the elements from 0 on, as the last axis: (..., n) gives (..., n, N), N n without a number."""
