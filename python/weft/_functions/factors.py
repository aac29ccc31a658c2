# SPDX-License-Identifier: Apache-2.0
"""Factorisations and solutions by PyTorch's names, of weft.linalg's; low-rank ones by random projections."""

from __future__ import annotations

import math
from collections import namedtuple

import weft

from .. import _core
from .common import beside, plain, real, refused, value

LinAlgError = _core.ArgumentError  # what a singular or indefinite matrix raises
LU = namedtuple("LU", "P L U")
LUFactors = namedtuple("LUFactors", "LU pivots")
Solution = namedtuple("Solution", "solution cloned_coefficient")
Factor = namedtuple("Factor", "L info")
Inverse = namedtuple("Inverse", "inverse info")
Result = namedtuple("Result", "result info")
QR = namedtuple("QR", "a tau")


def adjoint(x):
    """Matrices transposed and conjugated."""
    x = value(x)
    return weft.conj(x.mT) if x.dtype.kind == "c" else x.mT


_adjoint = adjoint  # where an argument has its name


def inverse(x):
    """Inverse matrices (..., n, n). Raises LinAlgError for singular ones. Has gradients."""
    return weft.linalg.inv(value(x))


def det(x):
    """Determinants of matrices (..., n, n). Has gradients."""
    return weft.linalg.det(value(x))


def pinverse(x, rcond=None):
    """Generalised inverses; singular values below rcond times the largest count as 0."""
    return weft.linalg.pinv(value(x), rtol=rcond)


def matrix_exp(x):
    """Exponentials of matrices (..., n, n)."""
    return weft.linalg.matrix_exp(value(x))


def matrix_rank(x, tol=None, symmetric=False):
    """How many singular values exceed tol (an absolute number), or the type's step times the larger extent times the largest."""
    x = real(x)
    if tol is None:
        return weft.linalg.matrix_rank(x)
    return weft.sum((weft.linalg.svdvals(plain(x)) > tol).astype("int64"), axis=-1)


def qr(x, some=True):
    """(Q, R); with some=False the whole orthogonal matrix."""
    return weft.linalg.qr(real(x), mode="reduced" if some else "complete")


def chain_matmul(*matrices):
    """The product of several matrices in the cheapest order."""
    given = (
        matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices
    )
    return weft.linalg.multi_dot(list(given)) if len(given) > 1 else value(given[0])


def cholesky(x, upper=False):
    """The triangular factor of symmetric positive definite matrices. Raises LinAlgError for others. Has gradients."""
    return weft.linalg.cholesky(real(x), upper=upper)


def _lower(factor, upper):
    factor = value(factor)
    return adjoint(factor) if upper else factor


def cholesky_inverse(x, upper=False):
    """The inverse of the matrices whose Cholesky factor is given."""
    low = _lower(x, upper)
    n = low.shape[-1]
    half = weft.linalg.solve_triangular(low, weft.broadcast_to(weft.eye(n, dtype=low.dtype, device=low.device), tuple(low.shape)), upper=False)  # fmt: skip
    return adjoint(half) @ half


def cholesky_solve(b, x, upper=False):
    """y with A y = b (..., n, k) for the matrices A whose Cholesky factor is x."""
    low = _lower(x, upper)
    half = weft.linalg.solve_triangular(low, value(b), upper=False)
    return weft.linalg.solve_triangular(adjoint(low), half, upper=True)


def triangular_solve(b, a, upper=True, transpose=False, unitriangular=False):
    """(x with a x = b, a); a is read above (below) the diagonal, transposed on demand."""
    a, b = value(a), value(b)
    m = a.mT if transpose else a
    x = weft.linalg.solve_triangular(m, b, upper=upper != transpose, unitriangular=unitriangular)
    return Solution(x, a)


def _length(x):
    """What LAPACK chooses a pivot by: of complex numbers the sum of both parts' magnitudes."""
    return weft.abs(weft.real(x)) + weft.abs(weft.imag(x)) if x.dtype.kind == "c" else weft.abs(x)


def _factored(x):
    """(LU in one matrix, the order of the rows) of square matrices."""
    x = real(plain(x))
    if x.ndim < 2:
        raise refused("array.lu.shape", f"lu of shape {tuple(x.shape)}", "matrices (..., m, n)")
    if x.device.host_accessible and x.dtype.itemsize >= 4:
        a, pivots, _ = _core._lu(x)
        return a, _rows_of(pivots, x.shape[-2]), pivots.astype("int32")
    m, n = x.shape[-2:]
    a, rows = x, weft.broadcast_to(weft.arange(m, device=x.device), (*x.shape[:-2], m))
    line = weft.arange(m, device=x.device)
    swaps = []
    for k in range(min(m, n)):
        size = weft.where(line >= k, _length(a[..., :, k]), -1.0)
        pivot = weft.argmax(size, axis=-1, keepdims=True)
        swaps.append(pivot)
        order = weft.where(line == k, pivot, weft.where(line == pivot, k, weft.broadcast_to(line, size.shape)))  # fmt: skip
        a = weft.take_along_axis(a, weft.broadcast_to(weft.expand_dims(order, axis=-1), a.shape), axis=-2)  # fmt: skip
        rows = weft.take_along_axis(rows, order, axis=-1)
        lead = a[..., k : k + 1, k : k + 1]
        below = (line > k).reshape((m, 1))
        factor = weft.where(below & (lead != 0), a[..., :, k : k + 1] / weft.where(lead == 0, 1.0, lead), 0.0)  # fmt: skip
        right = (weft.arange(n, device=x.device) > k).reshape((1, n))
        a = weft.where(right & below, a - factor * a[..., k : k + 1, :], a)
        here = (weft.arange(n, device=x.device) == k).reshape((1, n))
        a = weft.where(below & here, factor, a)
    if swaps:
        pivots = weft.concat(swaps, axis=-1)
    else:
        pivots = weft.zeros((*x.shape[:-2], 0), dtype="int64", device=x.device)
    return a, rows, (pivots + 1).astype("int32")


def _pivoted(pivot):
    """Factors without exchanged rows are not offered."""
    if not pivot:
        raise refused("array.lu.pivot", "lu with pivot=False", "pivot=True: rows are exchanged")


def _joined(low, high):
    """L and U in one matrix."""
    m, n = low.shape[-2], high.shape[-1]
    low = weft.tril(low, k=-1)
    if m > n:
        zeros = weft.zeros((*high.shape[:-2], m - n, n), dtype=high.dtype, device=high.device)
        high = weft.concat([high, zeros], axis=-2)
    elif n > m:
        zeros = weft.zeros((*low.shape[:-1], n - m), dtype=low.dtype, device=low.device)
        low = weft.concat([low, zeros], axis=-1)
    return low + high


def lu_factor(x, *, pivot=True):
    """(L and U in one matrix, pivots from 1 on, int32) of matrices (..., m, n)."""
    _pivoted(pivot)
    low, high, _, pivots = _factors_of(x)
    return LUFactors(_joined(low, high), pivots)


def lu_factor_ex(x, *, pivot=True, check_errors=False):
    """lu_factor and where a pivot is 0: (LU, pivots, info), info the first such place from 1 on, 0 where there is none."""
    a, pivots = lu_factor(x, pivot=pivot)
    zero = weft.linalg.diagonal(plain(a)) == 0
    first = weft.argmax(zero.astype("int32"), axis=-1).astype("int32") + 1
    info = weft.where(weft.any(zero, axis=-1), first, 0).astype("int32")
    if check_errors and bool(weft.any(info != 0)):
        raise refused("array.lu.singular", "lu_factor_ex of a singular matrix", "matrices with pivots that are not 0")  # fmt: skip
    return namedtuple("LUFactorsEx", "LU pivots info")(a, pivots, info)


def _rows_of(pivots, m):
    rows = weft.broadcast_to(weft.arange(m, device=pivots.device), (*pivots.shape[:-1], m))
    line = weft.arange(m, device=pivots.device)
    for k in range(pivots.shape[-1]):
        p = pivots[..., k : k + 1].astype("int64") - 1
        order = weft.where(
            line == k, p, weft.where(line == p, k, weft.broadcast_to(line, rows.shape))
        )
        rows = weft.take_along_axis(rows, order, axis=-1)
    return rows


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """(P, L, U) with P L U the matrices that lu_factor took."""
    a = value(LU_data)
    rows = _rows_of(plain(LU_pivots), a.shape[-2])
    return LU(_permutation(rows, a), *_parts(a))


def _permutation(rows, like):
    m = rows.shape[-1]
    # Row i of P has its one where the row i of the matrix went.
    line = weft.arange(m, device=rows.device).reshape((m, 1))
    return (weft.expand_dims(rows, axis=-2) == line).astype(like.dtype)


def _parts(a):
    m, n = a.shape[-2:]
    k = min(m, n)
    low = weft.tril(a[..., :, :k], k=-1) + weft.eye(m, k, dtype=a.dtype, device=a.device)
    return low, weft.triu(a[..., :k, :])


def _factors_of(x):
    """(L, U, order of the rows, pivots) of matrices, with gradients where x asks for them."""
    x = real(value(x))
    a, rows, pivots = _factored(x)
    low, high = _parts(a)
    if getattr(x, "requires_grad", False):
        low, high = _linked_parts(x, rows, low, high)
    return low, high, rows, pivots


def _linked_parts(x, rows, low, high):
    """The factors as nodes of the graph: those of the leading square, and what these say of the rest."""
    m, n = x.shape[-2:]
    k = min(m, n)
    sorted_rows = weft.take_along_axis(x, weft.broadcast_to(weft.expand_dims(rows, axis=-1), tuple(x.shape)), axis=-2)  # fmt: skip
    low, high = _leading(sorted_rows[..., :k, :k], low[..., :k, :], high[..., :, :k])
    if m > k:
        rest = adjoint(weft.linalg.solve(adjoint(high), adjoint(sorted_rows[..., k:, :])))
        low = weft.concat([low, rest], axis=-2)
    if n > k:
        high = weft.concat([high, weft.linalg.solve(low, sorted_rows[..., :, k:])], axis=-1)
    return low, high


def _leading(x, low, high):
    """L and U with L U = x, whose values are known."""
    from .._factor_gradients import link

    def of(middle, low, high):
        left = weft.linalg.solve_triangular(adjoint(low), middle, upper=True, unitriangular=True)
        return adjoint(weft.linalg.solve_triangular(high, adjoint(left), upper=True))

    pulls = [
        lambda g, low, high: of(weft.tril(adjoint(low) @ g, k=-1), low, high),
        lambda g, low, high: of(weft.triu(g @ adjoint(high)), low, high),
    ]
    return link("lu", x, [low, high], pulls, lambda x: _leading(x, low, high))


def lu(x, *, pivot=True, get_infos=False):
    """weft.linalg.lu: (P, L, U) with P L U = x, of matrices (..., m, n); L has ones on its diagonal."""
    _pivoted(pivot)
    low, high, rows, _ = _factors_of(x)
    return LU(_permutation(rows, low), low, high)


def lu_solve(b, LU_data, LU_pivots=None, *, left=True, adjoint=False):
    """x with A x = b for what lu_factor gave of A: lu_solve(b, LU, pivots), or weft.linalg's order lu_solve(LU, pivots, b).

    Without left x A = b; with adjoint A is transposed and conjugated.
    """
    if plain(LU_data).dtype.kind == "i":
        LU_data, LU_pivots, b = b, LU_data, LU_pivots
    a, b = value(LU_data), value(b)
    if not left:
        return _adjoint(lu_solve(_adjoint(b), a, LU_pivots, adjoint=not adjoint))
    solve, rows = weft.linalg.solve_triangular, _rows_of(plain(LU_pivots), a.shape[-2])

    def in_order(x, rows):
        batch = weft.broadcast_shapes(tuple(rows.shape[:-1]), tuple(x.shape[:-2]))
        shape = (*batch, *x.shape[-2:])
        rows = weft.broadcast_to(weft.expand_dims(rows, axis=-1), shape)
        return weft.take_along_axis(weft.broadcast_to(x, shape), rows, axis=-2)

    if adjoint:
        half = solve(_adjoint(a), b, upper=False)
        return in_order(solve(_adjoint(a), half, upper=True, unitriangular=True), weft.argsort(rows, axis=-1))  # fmt: skip
    half = solve(a, in_order(b, rows), upper=False, unitriangular=True)
    return solve(a, half, upper=True)


def frobenius_norm(x, dim=None, keepdim=False):
    """The root of the sum of squares over axes."""
    return weft.linalg.vector_norm(real(x), axis=dim, keepdims=keepdim)


def nuclear_norm(x, dim=None, keepdim=False):
    """The sum of the singular values of matrices in two axes (the last ones)."""
    x = real(x)
    moved = x if dim is None else weft.moveaxis(x, tuple(dim), (-2, -1))
    out = weft.linalg.matrix_norm(moved, ord="nuc", keepdims=keepdim)
    return weft.moveaxis(out, (-2, -1), tuple(dim)) if keepdim and dim is not None else out


def norm_except_dim(v, pow=2, dim=0):
    """The p-norms of the slices along an axis, with extents of 1 elsewhere."""
    v = real(v)
    axes = tuple(k for k in range(v.ndim) if k != dim % v.ndim)
    return weft.linalg.vector_norm(v, axis=axes, keepdims=True, ord=pow)


_MOST_DIMENSIONS = 1 << 16  # each is a pass over x


def mvlgamma(x, p):
    """The logarithm of the multivariate gamma function of dimension p; x above (p - 1) / 2."""
    x = real(x)
    if not 1 <= p <= _MOST_DIMENSIONS:
        raise refused(
            "array.mvlgamma.dimension", f"mvlgamma of dimension {p}", f"1 to {_MOST_DIMENSIONS}"
        )
    total = p * (p - 1) / 4 * math.log(math.pi)
    for k in range(p):
        total = total + weft.lgamma(x - k / 2)
    return total


def geqrf(x):
    """(R above the diagonal and the reflectors below it, their factors tau) of matrices (m, n)."""
    a = real(x)
    if a.ndim != 2:
        raise refused("array.geqrf.shape", f"geqrf of shape {tuple(a.shape)}", "a matrix")
    m, n = a.shape
    taus, line = [], weft.arange(m, device=a.device)
    for k in range(min(m, n)):
        column = weft.where(line >= k, a[:, k], 0.0)
        length = weft.sqrt(weft.sum(column * column))
        lead = a[k, k]
        beta = weft.where(lead > 0, -length, length)
        none = weft.sum(weft.where(line > k, column * column, 0.0)) == 0
        tau = weft.where(none, 0.0, (beta - lead) / weft.where(beta == 0, 1.0, beta))
        gap = weft.where(none, 1.0, lead - beta)
        v = weft.where(line == k, 1.0, weft.where(line > k, column / gap, 0.0))
        v = weft.where(none, (line == k).astype(a.dtype), v)
        after = (weft.arange(n, device=a.device) >= k).reshape((1, n))
        a = weft.where(after, a - tau * v.reshape((m, 1)) * (v @ a).reshape((1, n)), a)
        here = (weft.arange(n, device=a.device) == k).reshape((1, n))
        a = weft.where((line > k).reshape((m, 1)) & here, v.reshape((m, 1)), a)
        taus.append(tau)
    return QR(a, weft.stack(taus, axis=0) if taus else weft.zeros((0,), dtype=a.dtype))


def _reflected(a, tau, other, left, transpose):
    """other with the reflectors of geqrf multiplied to one side."""
    m, k = a.shape[0], tau.shape[0]
    line = weft.arange(m, device=a.device)
    order = range(k) if (left == transpose) else range(k - 1, -1, -1)
    for j in order:
        v = weft.where(line == j, 1.0, weft.where(line > j, a[:, j], 0.0))
        if left:
            other = other - tau[j] * v.reshape((m, 1)) * (v @ other).reshape((1, -1))
        else:
            other = other - tau[j] * (other @ v).reshape((-1, 1)) * v.reshape((1, m))
    return other


def householder_product(x, tau):
    """The first columns of the product of the reflectors of geqrf, (m, n)."""
    a, tau = value(x), value(tau)
    m, n = a.shape
    return _reflected(a, tau, weft.eye(m, n, dtype=a.dtype, device=a.device), True, False)


def orgqr(x, tau):
    """As weft.linalg.householder_product."""
    return householder_product(x, tau)


def ormqr(x, tau, other, left=True, transpose=False):
    """other times the orthogonal matrix of geqrf's reflectors, from the left or the right."""
    return _reflected(value(x), value(tau), value(other), left, transpose)


def _bad(run, x, other):
    """(result, 0), or (other, 1) where the matrix does not allow it."""
    try:
        return run(x), weft.zeros(tuple(x.shape[:-2]), dtype="int32", device=x.device)
    except _core.ArgumentError:
        return other(x), weft.ones(tuple(x.shape[:-2]), dtype="int32", device=x.device)


def cholesky_ex(x, *, upper=False, check_errors=False):
    """(Cholesky's factor, info): info is 0, or 1 (and the factor NaN) where a matrix of the batch is not positive definite."""
    x = real(x)
    run = lambda a: weft.linalg.cholesky(a, upper=upper)  # noqa: E731
    return Factor(run(x), weft.zeros(x.shape[:-2], dtype="int32")) if check_errors else Factor(*_bad(run, x, _nan))  # fmt: skip


def _nan(x):
    return weft.full_like(plain(x), math.nan)


def inv_ex(x, *, check_errors=False):
    """(inverse, info): info is 0, or 1 (and the inverse NaN) where a matrix of the batch is singular."""
    x = real(x)
    return Inverse(weft.linalg.inv(x), weft.zeros(x.shape[:-2], dtype="int32")) if check_errors else Inverse(*_bad(weft.linalg.inv, x, _nan))  # fmt: skip


def solve_ex(a, b, *, left=True, check_errors=False):
    """(x with a x = b, info): info is 0, or 1 (and x NaN) where a matrix of the batch is singular."""
    a, b = real(a), real(b)
    run = lambda m: weft.linalg.solve(m, b) if left else weft.linalg.solve(m.mT, b.mT).mT  # noqa: E731
    return Result(run(a), weft.zeros(a.shape[:-2], dtype="int32")) if check_errors else Result(*_bad(run, a, lambda _: _nan(b)))  # fmt: skip


def svd_lowrank(x, q=6, niter=2, M=None):
    """(U, S, V) with about x = U diag(S) V' of rank q, by products with random vectors and `niter` powers."""
    a = real(x)
    a = a if M is None else a - M
    n = a.shape[-1]
    if not 0 < q <= min(a.shape[-2:]):
        raise refused("array.svd_lowrank.rank", f"rank {q} of shape {tuple(a.shape)}", "from 1 to the smaller extent")  # fmt: skip
    start = weft.random.normal((*a.shape[:-2], n, q), dtype=a.dtype, device=a.device)
    q_, _ = weft.linalg.qr(a @ start)
    for _ in range(niter):
        q_, _ = weft.linalg.qr(adjoint(a) @ q_)
        q_, _ = weft.linalg.qr(a @ q_)
    u, s, vh = weft.linalg.svd(adjoint(q_) @ a, full_matrices=False)
    return q_ @ u, s, adjoint(vh)


def pca_lowrank(x, q=None, center=True, niter=2):
    """svd_lowrank of x less the means of its columns: (U, S, V), the columns of V the principal directions."""
    a = real(x)
    q = min(6, *a.shape[-2:]) if q is None else q
    return svd_lowrank(a - weft.mean(a, axis=-2, keepdims=True) if center else a, q, niter)


def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, **options
):
    """(eigenvalues (k,), eigenvectors (n, k)) of a symmetric A, the largest (or smallest) ones, of A x = e B x where B is given.
    All are computed, whatever the method's options say."""
    a = real(A)
    k = (plain(X).shape[-1] if X is not None else 1) if k is None else k
    if B is not None:
        low = weft.linalg.cholesky(real(B))
        half = weft.linalg.solve_triangular(low, a, upper=False)
        a = weft.linalg.solve_triangular(low, half.mT, upper=False)
    values, vectors = weft.linalg.eigh(a)
    if B is not None:
        vectors = weft.linalg.solve_triangular(low.mT, vectors, upper=True)
    if largest is None or largest:
        values, vectors = weft.flip(values, axis=-1), weft.flip(vectors, axis=-1)
    return values[..., :k], vectors[..., :k]


def vander(x, N=None):
    """Powers of the elements from 0 on, as the last axis: (..., n) gives (..., n, N), N n without a number."""
    x = value(x)
    n = x.shape[-1] if N is None else N
    x = weft.expand_dims(x, axis=-1)
    parts, out = [weft.ones_like(plain(x))], x
    for _ in range(n - 1):
        parts.append(out)
        out = out * x
    return weft.concat([beside(p, x) for p in parts[:n]], axis=-1)
