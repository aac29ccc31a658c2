# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, overload

from typing_extensions import TypeVar

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

_A = TypeVar("_A", default=NDArray)
class EigResult(NamedTuple, Generic[_A]):
    eigenvalues: _A
    eigenvectors: _A

class EighResult(NamedTuple, Generic[_A]):
    eigenvalues: _A
    eigenvectors: _A

class QRResult(NamedTuple, Generic[_A]):
    Q: _A
    R: _A

class SlogdetResult(NamedTuple, Generic[_A]):
    sign: _A
    logabsdet: _A

class SVDResult(NamedTuple, Generic[_A]):
    U: _A
    S: _A
    Vh: _A

class _LUFactorsEx(NamedTuple, Generic[_A]):
    LU: _A
    pivots: NDArray
    info: NDArray

class _Factor(NamedTuple, Generic[_A]):
    L: _A
    info: NDArray

class _Inverse(NamedTuple, Generic[_A]):
    inverse: _A
    info: NDArray

class _Result(NamedTuple, Generic[_A]):
    result: _A
    info: NDArray

class _LU(NamedTuple, Generic[_A]):
    P: NDArray
    L: _A
    U: _A

class _LUFactors(NamedTuple, Generic[_A]):
    LU: _A
    pivots: NDArray

@overload
def cholesky(x: Tensor, /, *, upper: _bool = False) -> Tensor:
    """The triangular factor (..., n, n) of symmetric (Hermitian) positive definite matrices (..., n, n). Its gradient is symmetric (Hermitian)."""
@overload
def cholesky(x: _ArrayLike, /, *, upper: _bool = False) -> NDArray:
    """The triangular factor (..., n, n) of symmetric (Hermitian) positive definite matrices (..., n, n). Its gradient is symmetric (Hermitian)."""
@overload
def cross(x1: Tensor, x2: Tensor | _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> Tensor:
    """The product of three-vectors along an axis; of vectors of two numbers, whose third is 0, too, and of two such the third number."""
@overload
def cross(x1: _ArrayLike, x2: Tensor, /, *, axis: int | Sequence[int] | None = -1) -> Tensor:
    """The product of three-vectors along an axis; of vectors of two numbers, whose third is 0, too, and of two such the third number."""
@overload
def cross(x1: _ArrayLike, x2: _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> NDArray:
    """The product of three-vectors along an axis; of vectors of two numbers, whose third is 0, too, and of two such the third number."""
@overload
def det(x: Tensor, /) -> Tensor:
    """Determinants (...) of matrices (..., n, n). Raises ShapeError (array.slogdet.shape)."""
@overload
def det(x: _ArrayLike, /) -> NDArray:
    """Determinants (...) of matrices (..., n, n). Raises ShapeError (array.slogdet.shape)."""
@overload
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Diagonals (..., k) of matrices (..., m, n), `offset` above the main one; of an array a view."""
@overload
def diagonal(x: _ArrayLike, /, *, offset: int = 0) -> NDArray:
    """Diagonals (..., k) of matrices (..., m, n), `offset` above the main one; of an array a view."""
@overload
def eig(x: Tensor, /) -> EigResult[Tensor]:
    """Eigenvalues (..., n) and eigenvectors (..., n, n) as columns, complex, of general matrices (..., n, n). The gradient is that of vectors of length 1 whose phase does not matter."""
@overload
def eig(x: _ArrayLike, /) -> EigResult[NDArray]:
    """Eigenvalues (..., n) and eigenvectors (..., n, n) as columns, complex, of general matrices (..., n, n). The gradient is that of vectors of length 1 whose phase does not matter."""
@overload
def eigh(x: Tensor, /) -> EighResult[Tensor]:
    """Eigenvalues (..., n), ascending, and eigenvectors (..., n, n) as columns of symmetric (Hermitian) matrices (..., n, n). Equal eigenvalues give gradients of vectors that are no numbers."""
@overload
def eigh(x: _ArrayLike, /) -> EighResult[NDArray]:
    """Eigenvalues (..., n), ascending, and eigenvectors (..., n, n) as columns of symmetric (Hermitian) matrices (..., n, n). Equal eigenvalues give gradients of vectors that are no numbers."""
@overload
def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues (..., n), complex, of general matrices (..., n, n). Errors: eig."""
@overload
def eigvals(x: _ArrayLike, /) -> NDArray:
    """Eigenvalues (..., n), complex, of general matrices (..., n, n). Errors: eig."""
@overload
def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues (..., n), ascending, of symmetric (Hermitian) matrices (..., n, n). Errors: eigh."""
@overload
def eigvalsh(x: _ArrayLike, /) -> NDArray:
    """Eigenvalues (..., n), ascending, of symmetric (Hermitian) matrices (..., n, n). Errors: eigh."""
@overload
def inv(x: Tensor, /) -> Tensor:
    """Inverse matrices (..., n, n) of matrices (..., n, n). Raises ArgumentError (array.inv.singular), ShapeError (array.inv.shape)."""
@overload
def inv(x: _ArrayLike, /) -> NDArray:
    """Inverse matrices (..., n, n) of matrices (..., n, n). Raises ArgumentError (array.inv.singular), ShapeError (array.inv.shape)."""
@overload
def matmul(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """Matrix product over the last two axes; the others broadcast."""
@overload
def matmul(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """Matrix product over the last two axes; the others broadcast."""
@overload
def matmul(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Matrix product over the last two axes; the others broadcast."""
@overload
def matrix_norm(x: Tensor, /, *, keepdims: _bool = False, ord: int | float | str | None = 'fro') -> Tensor:
    """Norms (...) of matrices (..., m, n): 'fro', 'nuc', 1, -1, 2, -2, inf, -inf. Raises ArgumentError (array.matrix_norm.ord)."""
@overload
def matrix_norm(x: _ArrayLike, /, *, keepdims: _bool = False, ord: int | float | str | None = 'fro') -> NDArray:
    """Norms (...) of matrices (..., m, n): 'fro', 'nuc', 1, -1, 2, -2, inf, -inf. Raises ArgumentError (array.matrix_norm.ord)."""
@overload
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Matrices (..., n, n) to an integer power; negative ones of the inverse. Raises ArgumentError (array.inv.singular)."""
@overload
def matrix_power(x: _ArrayLike, n: int, /) -> NDArray:
    """Matrices (..., n, n) to an integer power; negative ones of the inverse. Raises ArgumentError (array.inv.singular)."""
def matrix_rank(x: _ArrayLike, /, *, rtol: float | NDArray | None = None) -> NDArray:
    """How many singular values exceed rtol times the largest: int64 (...) of matrices (..., m, n). rtol: a number or an array (...); by itself max(m, n) times the type's eps."""
@overload
def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged."""
@overload
def matrix_transpose(x: _ArrayLike, /) -> NDArray:
    """A view with the last two axes exchanged."""
@overload
def outer(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """Products (m, n) of all pairs of two vectors (m,) and (n,). Raises ShapeError (array.outer.rank)."""
@overload
def outer(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """Products (m, n) of all pairs of two vectors (m,) and (n,). Raises ShapeError (array.outer.rank)."""
@overload
def outer(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Products (m, n) of all pairs of two vectors (m,) and (n,). Raises ShapeError (array.outer.rank)."""
@overload
def pinv(x: Tensor, /, *, rtol: float | NDArray | None = None) -> Tensor:
    """Generalised inverse (..., n, m) of matrices (..., m, n) by singular values; those up to rtol times the largest count as 0. Its gradient is right where the rank does not change."""
@overload
def pinv(x: _ArrayLike, /, *, rtol: float | NDArray | None = None) -> NDArray:
    """Generalised inverse (..., n, m) of matrices (..., m, n) by singular values; those up to rtol times the largest count as 0. Its gradient is right where the rank does not change."""
@overload
def qr(x: Tensor, /, *, mode: str = 'reduced') -> QRResult[Tensor]:
    """Orthogonal and triangular factors, Q (..., m, k) and R (..., k, n) with k = min(m, n), of matrices (..., m, n); mode "complete": k = m. With mode "r" of arrays the triangular one alone, as in NumPy; of tensors Q is empty, as in PyTorch."""
@overload
def qr(x: _ArrayLike, /, *, mode: str = 'reduced') -> QRResult[NDArray]:
    """Orthogonal and triangular factors, Q (..., m, k) and R (..., k, n) with k = min(m, n), of matrices (..., m, n); mode "complete": k = m. With mode "r" of arrays the triangular one alone, as in NumPy; of tensors Q is empty, as in PyTorch."""
@overload
def slogdet(x: Tensor, /) -> SlogdetResult[Tensor]:
    """Signs and logarithms of the magnitudes of determinants: (sign, logabsdet), each (...), of matrices (..., n, n)."""
@overload
def slogdet(x: _ArrayLike, /) -> SlogdetResult[NDArray]:
    """Signs and logarithms of the magnitudes of determinants: (sign, logabsdet), each (...), of matrices (..., n, n)."""
@overload
def solve(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x with x1 x = x2 for matrices x1 (..., n, n) and x2 (n,) or (..., n, k), whose leading axes broadcast."""
@overload
def solve(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x with x1 x = x2 for matrices x1 (..., n, n) and x2 (n,) or (..., n, k), whose leading axes broadcast."""
@overload
def solve(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x with x1 x = x2 for matrices x1 (..., n, n) and x2 (n,) or (..., n, k), whose leading axes broadcast."""
@overload
def svd(x: Tensor, /, *, full_matrices: _bool = True) -> SVDResult[Tensor]:
    """Singular value decomposition U (..., m, m), S (..., k), descending, Vh (..., n, n) of matrices (..., m, n), k = min(m, n); without full_matrices U (..., m, k) and Vh (..., k, n). Equal singular values give gradients of vectors that are no numbers."""
@overload
def svd(x: _ArrayLike, /, *, full_matrices: _bool = True) -> SVDResult[NDArray]:
    """Singular value decomposition U (..., m, m), S (..., k), descending, Vh (..., n, n) of matrices (..., m, n), k = min(m, n); without full_matrices U (..., m, k) and Vh (..., k, n). Equal singular values give gradients of vectors that are no numbers."""
@overload
def svdvals(x: Tensor, /) -> Tensor:
    """Singular values (..., min(m, n)), descending, of matrices (..., m, n). Errors: svd."""
@overload
def svdvals(x: _ArrayLike, /) -> NDArray:
    """Singular values (..., min(m, n)), descending, of matrices (..., m, n). Errors: svd."""
@overload
def tensordot(x1: Tensor, x2: Tensor | _ArrayLike, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sum of products over several axes."""
@overload
def tensordot(x1: _ArrayLike, x2: Tensor, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sum of products over several axes."""
@overload
def tensordot(x1: _ArrayLike, x2: _ArrayLike, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> NDArray:
    """Sum of products over several axes."""
@overload
def trace(x: Tensor, /, *, offset: int = 0, dtype: _DType | None = None) -> Tensor:
    """Sums (...) of the diagonals of matrices (..., m, n)."""
@overload
def trace(x: _ArrayLike, /, *, offset: int = 0, dtype: _DType | None = None) -> NDArray:
    """Sums (...) of the diagonals of matrices (..., m, n)."""
@overload
def vecdot(x1: Tensor, x2: Tensor | _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> Tensor:
    """Sum of conj(x1) * x2 along an axis."""
@overload
def vecdot(x1: _ArrayLike, x2: Tensor, /, *, axis: int | Sequence[int] | None = -1) -> Tensor:
    """Sum of conj(x1) * x2 along an axis."""
@overload
def vecdot(x1: _ArrayLike, x2: _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> NDArray:
    """Sum of conj(x1) * x2 along an axis."""
@overload
def vector_norm(x: Tensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, ord: int | float | str | None = 2) -> Tensor:
    """p-norms of vectors along an axis or several, of all elements without: sum(|x|^ord)^(1/ord); ord 0 counts, inf and -inf give the largest and least magnitude."""
@overload
def vector_norm(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, ord: int | float | str | None = 2) -> NDArray:
    """p-norms of vectors along an axis or several, of all elements without: sum(|x|^ord)^(1/ord); ord 0 counts, inf and -inf give the largest and least magnitude."""
@overload
def cond(x: Tensor, p: float | None = None) -> Tensor:
    """The condition number: the norm times the inverse's; of the largest and smallest singular value when p is None."""
@overload
def cond(x: _ArrayLike, p: float | None = None) -> NDArray:
    """The condition number: the norm times the inverse's; of the largest and smallest singular value when p is None."""
@overload
def inverse(x: Tensor) -> Tensor:
    """As inv."""
@overload
def inverse(x: _ArrayLike) -> NDArray:
    """As inv."""
@overload
def lstsq(a: Tensor, b: Tensor | _ArrayLike, rcond: Any = None, *, driver: Any = None) -> tuple[Tensor, NDArray, int, NDArray]:
    """(x, sums of squares, rank, singular values) with the least |a x - b|; of several the smallest."""
@overload
def lstsq(a: _ArrayLike, b: Tensor, rcond: Any = None, *, driver: Any = None) -> tuple[Tensor, NDArray, int, NDArray]:
    """(x, sums of squares, rank, singular values) with the least |a x - b|; of several the smallest."""
@overload
def lstsq(a: _ArrayLike, b: _ArrayLike, rcond: Any = None, *, driver: Any = None) -> tuple[NDArray, NDArray, int, NDArray]:
    """(x, sums of squares, rank, singular values) with the least |a x - b|; of several the smallest."""
@overload
def matrix_exp(x: Tensor) -> Tensor:
    """The exponential of square matrices: scaled until small, a Taylor polynomial of degree 18, squared again."""
@overload
def matrix_exp(x: _ArrayLike) -> NDArray:
    """The exponential of square matrices: scaled until small, a Taylor polynomial of degree 18, squared again."""
def multi_dot(matrices: Any) -> NDArray:
    """The product of several matrices in the order that costs least; the first and the last may be vectors."""
@overload
def norm(x: Tensor, ord: int | float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """A vector's norm along one axis, a matrix's along two; over all elements in a row when neither ord nor axis is given."""
@overload
def norm(x: _ArrayLike, ord: int | float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> NDArray:
    """A vector's norm along one axis, a matrix's along two; over all elements in a row when neither ord nor axis is given."""
@overload
def solve_triangular(a: Tensor, b: Tensor | _ArrayLike, *, upper: _bool, left: Any = True, unitriangular: Any = False) -> Tensor:
    """x with a x = b (x a = b without left) for the triangle of a that `upper` names; the other one is not read."""
@overload
def solve_triangular(a: _ArrayLike, b: Tensor, *, upper: _bool, left: Any = True, unitriangular: Any = False) -> Tensor:
    """x with a x = b (x a = b without left) for the triangle of a that `upper` names; the other one is not read."""
@overload
def solve_triangular(a: _ArrayLike, b: _ArrayLike, *, upper: _bool, left: Any = True, unitriangular: Any = False) -> NDArray:
    """x with a x = b (x a = b without left) for the triangle of a that `upper` names; the other one is not read."""
@overload
def tensorinv(a: Tensor, ind: Any = 2) -> Tensor:
    """The inverse of a as a map from its last axes to its first `ind`."""
@overload
def tensorinv(a: _ArrayLike, ind: Any = 2) -> NDArray:
    """The inverse of a as a map from its last axes to its first `ind`."""
@overload
def tensorsolve(a: Tensor, b: Tensor | _ArrayLike) -> Tensor:
    """x with tensordot(a, x, x.ndim) = b."""
@overload
def tensorsolve(a: _ArrayLike, b: Tensor) -> Tensor:
    """x with tensordot(a, x, x.ndim) = b."""
@overload
def tensorsolve(a: _ArrayLike, b: _ArrayLike) -> NDArray:
    """x with tensordot(a, x, x.ndim) = b."""
LinAlgError: Any
@overload
def cholesky_ex(x: Tensor, *, upper: _bool = False, check_errors: Any = False) -> _Factor[Tensor]:
    """(Cholesky's factor, info): info is 0, or 1 (and the factor NaN) where a matrix of the batch is not positive definite."""
@overload
def cholesky_ex(x: _ArrayLike, *, upper: _bool = False, check_errors: Any = False) -> _Factor[NDArray]:
    """(Cholesky's factor, info): info is 0, or 1 (and the factor NaN) where a matrix of the batch is not positive definite."""
@overload
def householder_product(x: Tensor, tau: Tensor | _ArrayLike) -> Tensor:
    """The first columns of the product of the reflectors of geqrf, (m, n)."""
@overload
def householder_product(x: _ArrayLike, tau: Tensor) -> Tensor:
    """The first columns of the product of the reflectors of geqrf, (m, n)."""
@overload
def householder_product(x: _ArrayLike, tau: _ArrayLike) -> NDArray:
    """The first columns of the product of the reflectors of geqrf, (m, n)."""
@overload
def inv_ex(x: Tensor, *, check_errors: Any = False) -> _Inverse[Tensor]:
    """(inverse, info): info is 0, or 1 (and the inverse NaN) where a matrix of the batch is singular."""
@overload
def inv_ex(x: _ArrayLike, *, check_errors: Any = False) -> _Inverse[NDArray]:
    """(inverse, info): info is 0, or 1 (and the inverse NaN) where a matrix of the batch is singular."""
@overload
def lu(x: Tensor, *, pivot: Any = True, get_infos: Any = False) -> _LU[Tensor]:
    """weft.linalg.lu: (P, L, U) with P L U = x, of matrices (..., m, n); L has ones on its diagonal."""
@overload
def lu(x: _ArrayLike, *, pivot: Any = True, get_infos: Any = False) -> _LU[NDArray]:
    """weft.linalg.lu: (P, L, U) with P L U = x, of matrices (..., m, n); L has ones on its diagonal."""
@overload
def lu_factor(x: Tensor, *, pivot: Any = True) -> _LUFactors[Tensor]:
    """(L and U in one matrix, pivots from 1 on, int32) of matrices (..., m, n)."""
@overload
def lu_factor(x: _ArrayLike, *, pivot: Any = True) -> _LUFactors[NDArray]:
    """(L and U in one matrix, pivots from 1 on, int32) of matrices (..., m, n)."""
@overload
def lu_factor_ex(x: Tensor, *, pivot: Any = True, check_errors: Any = False) -> _LUFactorsEx[Tensor]:
    """lu_factor and where a pivot is 0: (LU, pivots, info), info the first such place from 1 on, 0 where there is none."""
@overload
def lu_factor_ex(x: _ArrayLike, *, pivot: Any = True, check_errors: Any = False) -> _LUFactorsEx[NDArray]:
    """lu_factor and where a pivot is 0: (LU, pivots, info), info the first such place from 1 on, 0 where there is none."""
@overload
def lu_solve(b: Tensor, LU_data: Tensor | _ArrayLike, LU_pivots: Any = None, *, left: Any = True, adjoint: Any = False) -> Tensor:
    """x with A x = b for what lu_factor gave of A: lu_solve(b, LU, pivots), or weft.linalg's order lu_solve(LU, pivots, b)."""
@overload
def lu_solve(b: _ArrayLike, LU_data: Tensor, LU_pivots: Any = None, *, left: Any = True, adjoint: Any = False) -> Tensor:
    """x with A x = b for what lu_factor gave of A: lu_solve(b, LU, pivots), or weft.linalg's order lu_solve(LU, pivots, b)."""
@overload
def lu_solve(b: _ArrayLike, LU_data: _ArrayLike, LU_pivots: Any = None, *, left: Any = True, adjoint: Any = False) -> NDArray:
    """x with A x = b for what lu_factor gave of A: lu_solve(b, LU, pivots), or weft.linalg's order lu_solve(LU, pivots, b)."""
@overload
def solve_ex(a: Tensor, b: Tensor | _ArrayLike, *, left: Any = True, check_errors: Any = False) -> _Result[Tensor]:
    """(x with a x = b, info): info is 0, or 1 (and x NaN) where a matrix of the batch is singular."""
@overload
def solve_ex(a: _ArrayLike, b: Tensor, *, left: Any = True, check_errors: Any = False) -> _Result[Tensor]:
    """(x with a x = b, info): info is 0, or 1 (and x NaN) where a matrix of the batch is singular."""
@overload
def solve_ex(a: _ArrayLike, b: _ArrayLike, *, left: Any = True, check_errors: Any = False) -> _Result[NDArray]:
    """(x with a x = b, info): info is 0, or 1 (and x NaN) where a matrix of the batch is singular."""
@overload
def vander(x: Tensor, N: Any = None) -> Tensor:
    """Powers of the elements from 0 on, as the last axis: (..., n) gives (..., n, N), N n without a number."""
@overload
def vander(x: _ArrayLike, N: Any = None) -> NDArray:
    """Powers of the elements from 0 on, as the last axis: (..., n) gives (..., n, N), N n without a number."""
