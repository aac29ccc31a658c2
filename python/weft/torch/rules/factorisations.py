# SPDX-License-Identifier: Apache-2.0
"""Factorisations of matrices and systems solved with them.

In compiled programs vectors of singular and eigenvalues stay with torch: their signs are the choice of the library that
iterates, and results should be those of eager torch. The values alone have no such choice.
"""

from __future__ import annotations

import functools
import math

import torch

import weft

from ... import _core
from .common import HALVES, Unsupported, array, as_type, complex_too

_SIGNS = "the signs of vectors are the choice of torch's library"


def _conj(x):
    return weft.conj(x) if str(x.dtype).startswith("complex") else x


def _need_elements(*arrays):
    if any(not a.size for a in arrays):
        raise Unsupported("matrices without elements")


@functools.cache
def _by_rows(operator):
    """Whether this version of torch factors the transpose of matrices that lie row by row."""
    a = torch.tensor([[4.0, 1.0], [2.0, 3.0]])
    found = getattr(torch.ops.aten, operator).default(*((a, a) if "solve" in operator else (a,)))
    factors = found[-3 if "solve" in operator else -2]
    return bool(factors[1, 0] == 0.25)  # 1 / 4 of the transpose, 2 / 4 of the matrix itself


def _factors_transpose(c, operator):
    """Whether torch's operator factors the transpose; its gradients count on that."""
    a = c.inputs[0]
    return a.is_contiguous() and not a.dtype.is_complex and _by_rows(operator)


def _lu_solve(lu, pivots, b, left, adjoint):
    if left:
        return _core._lu_solve(lu, pivots, b, adjoint)
    return _conj(_core._lu_solve(lu, pivots, _conj(b.mT), not adjoint)).mT


@array("linalg_lu_factor_ex.default")
def _lu_factor(c, a, *, pivot=True, check_errors=False):
    if not pivot or check_errors:
        raise Unsupported("factors without row exchanges, or with a check inside")
    _need_elements(a)
    return _core._lu(a)


def _permutation(pivots, rows):
    """The matrix P of P L U, from the exchanges of rows."""
    if not pivots.device.host_accessible:
        raise Unsupported("row exchanges that the host would have to read")
    flat = pivots.reshape((-1, pivots.shape[-1])).tolist()
    orders = []
    for exchanges in flat:
        order = list(range(rows))
        for i, p in enumerate(exchanges):
            order[i], order[p - 1] = order[p - 1], order[i]
        orders.append(order)
    places = weft.asarray(orders).reshape((*pivots.shape[:-1], rows))
    return places[..., None, :] == weft.arange(rows)[:, None]


def _triangles(lu):
    k = min(lu.shape[-2:])
    lower = weft.tril(lu[..., :k], k=-1) + weft.eye(lu.shape[-2], k, dtype=lu.dtype)
    return lower, weft.triu(lu[..., :k, :])


@array("lu_unpack.default")
def _lu_unpack(c, lu, pivots, unpack_data=True, unpack_pivots=True):
    _need_elements(lu)
    lower, upper = _triangles(lu) if unpack_data else (None, None)
    exchanges = _permutation(pivots, lu.shape[-2]) if unpack_pivots else None
    return exchanges if exchanges is None else as_type(exchanges, c.dtypes[0]), lower, upper


@array("linalg_lu.default")
def _lu(c, a, *, pivot=True):
    if not pivot:
        raise Unsupported("factors without row exchanges")
    _need_elements(a)
    lu, pivots, _ = _core._lu(a)
    return as_type(_permutation(pivots, a.shape[-2]), c.dtypes[0]), *_triangles(lu)


@array("linalg_lu_solve.default")
def _solve_factored(c, lu, pivots, b, *, left=True, adjoint=False):
    _need_elements(lu, b)
    return _lu_solve(lu, pivots, b, left, adjoint)


@array("_linalg_solve_ex.default")
def _solve(c, a, b, *, left=True, check_errors=False):
    if check_errors:
        raise Unsupported("a check inside")
    _need_elements(a, b)
    turned = _factors_transpose(c, "_linalg_solve_ex")
    lu, pivots, info = _core._lu(a.mT if turned else a)
    vectors = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    x = _lu_solve(lu, pivots, b[..., None] if vectors else b, left or vectors, turned)
    return x[..., 0] if vectors else x, lu, pivots, info


@array("linalg_inv_ex.default")
def _inverse(c, a, *, check_errors=False):
    if check_errors:
        raise Unsupported("a check inside")
    _need_elements(a)
    lu, pivots, info = _core._lu(a)
    one = weft.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return _core._lu_solve(lu, pivots, one, False), info


def _signs(pivots):
    """1 or -1: whether an even number of rows was exchanged."""
    moved = pivots != weft.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype)
    return 1 - 2 * (weft.sum(as_type(moved, "int32"), axis=-1) % 2)


@array("_linalg_det.default")
def _determinant(c, a):
    _need_elements(a)
    lu, pivots, _ = _core._lu(a.mT if _factors_transpose(c, "_linalg_det") else a)
    found = weft.prod(weft.linalg.diagonal(lu), axis=-1) * as_type(_signs(pivots), c.dtypes[0])
    return found, lu, pivots


@array("_linalg_slogdet.default")
def _log_determinant(c, a):
    _need_elements(a)
    lu, pivots, _ = _core._lu(a.mT if _factors_transpose(c, "_linalg_slogdet") else a)
    diagonal = weft.linalg.diagonal(lu)
    sign = weft.prod(weft.sign(diagonal), axis=-1) * as_type(_signs(pivots), c.dtypes[0])
    return sign, weft.sum(weft.log(weft.abs(diagonal)), axis=-1), lu, pivots


def _triangular(a, b, upper, left=True, unit=False):
    if left:
        return _core._solve_triangular(a, b, upper, unit)
    return _core._solve_triangular(a.mT, b.mT, not upper, unit).mT


@array("linalg_solve_triangular.default")
def _solve_triangular(c, a, b, *, upper, left=True, unitriangular=False):
    _need_elements(a, b)
    return _triangular(a, b, upper, left, unitriangular)


@array("triangular_solve.default")
def _old_solve_triangular(c, b, a, upper=True, transpose=False, unitriangular=False):
    _need_elements(a, b)
    found = _triangular(a.mT if transpose else a, b, upper != transpose, True, unitriangular)
    return found, a.broadcast_to(c.shapes[1]).copy()


@array("linalg_cholesky_ex.default")
def _cholesky(c, a, *, upper=False, check_errors=False):
    if check_errors:
        raise Unsupported("a check inside")
    _need_elements(a)
    return _core._try_cholesky(a, upper)


def _solve_definite(b, factor, upper):
    first = _conj(factor.mT) if upper else factor
    half = _core._solve_triangular(first, b, False, False)
    return _core._solve_triangular(_conj(first.mT), half, True, False)


@array("_cholesky_solve_helper.default", "cholesky_solve.default")
def _cholesky_solve(c, b, factor, upper=False):
    _need_elements(b, factor)
    return _solve_definite(b, factor, upper)


@array("cholesky_inverse.default")
def _cholesky_inverse(c, factor, upper=False):
    _need_elements(factor)
    one = weft.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return _solve_definite(one, factor, upper)


@array("linalg_qr.default")
def _qr(c, a, mode="reduced"):
    _need_elements(a)
    q, r = weft.linalg.qr(a, mode="complete" if mode == "complete" else "reduced")
    return None if mode == "r" else q, r


def _values(function, of_torch, a):
    """Values of matrices; torch says what is wrong with those that have none. Other refusals are refusals."""
    try:
        return function(a)
    except weft.Error as raised:
        if raised.code.rpartition(".")[2] not in ("finite", "divergent"):
            raise
        if not a.device.host_accessible:
            raise
        return _core._from_dlpack(torch._C._to_dlpack(of_torch(torch.from_dlpack(a))), None, None)


@array("_linalg_svd.default")
def _svd(c, a, full_matrices=False, compute_uv=True, *, driver=None):
    _need_elements(a)
    if compute_uv and c.wanted != {1}:
        if not c.any_choice:
            raise Unsupported(_SIGNS)
        return weft.linalg.svd(a, full_matrices=full_matrices)
    return None, _values(weft.linalg.svdvals, torch.linalg.svdvals, a), None


@array("_linalg_eigh.default")
def _eigh(c, a, uplo="L", compute_v=True):
    _need_elements(a)
    lower = _conj(a.mT) if uplo.upper() == "U" else a
    if compute_v and c.wanted != {0}:
        if not c.any_choice:
            raise Unsupported(_SIGNS)
        return weft.linalg.eigh(lower)
    return _values(weft.linalg.eigvalsh, torch.linalg.eigvalsh, lower), None


@array("linalg_eig.default")
def _eig(c, a):
    _need_elements(a)
    if not c.any_choice:
        raise Unsupported(_SIGNS)
    return weft.linalg.eig(a)


@array("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
def _pseudo_inverse(c, a, *, atol=None, rtol=None, hermitian=False):
    _need_elements(a)
    if hermitian:  # of which torch reads the lower triangle
        a = weft.tril(a) + _conj(weft.tril(a, k=-1).mT)
    u, s, vh = weft.linalg.svd(a, full_matrices=False)
    if atol is None:
        atol = 0.0
    if rtol is None:
        # An absolute bound alone leaves no relative one.
        bare = not hasattr(atol, "dtype") and atol == 0.0
        rtol = max(a.shape[-2:]) * weft.finfo(s.dtype).eps if bare else 0.0
    if not hasattr(atol, "dtype") and not hasattr(rtol, "dtype"):
        bound = weft.clip(s[..., :1] * rtol, atol, None)
    else:
        atol, rtol = (v[..., None] if getattr(v, "ndim", 0) else v for v in (atol, rtol))
        bound = weft.maximum(s[..., :1] * rtol, s[..., :1] * 0.0 + atol)
    inverse = weft.where(s > bound, 1.0 / weft.where(s > bound, s, 1.0), 0.0 * s)
    return as_type(_conj(vh.mT) * inverse[..., None, :] @ _conj(u.mT), c.dtype)


@array("linalg_matrix_exp.default")
def _exponential(c, a):
    """The series of (a / 2^k), whose norm is below 1/2, squared k times."""
    _need_elements(a)
    if not a.device.host_accessible or c.dtype in HALVES:
        raise Unsupported("the host would have to read the norm, or 16-bit floats")
    norm = float(weft.max(weft.sum(weft.abs(a), axis=-2)))
    if not math.isfinite(norm):
        raise Unsupported("matrices that hold NaN or infinity")
    halvings = max(0, math.frexp(norm)[1] + 1)
    # Errors double with each square.
    a = a.astype("float64") * 0.5**halvings
    one = weft.eye(a.shape[-1], dtype="float64")
    found = one + a * (1.0 / 16)
    for k in range(15, 0, -1):
        found = one + (a @ found) * (1.0 / k)
    for _ in range(halvings):
        found = found @ found
    return as_type(found, c.dtype)


@array("_linalg_check_errors.default")
def _check_errors(c, info, name, *, is_matrix):
    if _core._has_grid(info):
        raise Unsupported("a check that torch makes on the device")
    if bool(weft.any(info != 0)):
        torch.ops.aten._linalg_check_errors(torch.from_dlpack(info), name, is_matrix=is_matrix)


for _name in (
    "linalg_lu_factor_ex linalg_lu_solve _linalg_solve_ex linalg_inv_ex linalg_solve_triangular linalg_cholesky_ex "
    "_cholesky_solve_helper cholesky_solve cholesky_inverse linalg_qr _linalg_svd _linalg_eigh linalg_eig"
).split():
    complex_too(f"{_name}.default")
