# SPDX-License-Identifier: Apache-2.0
"""Functions of weft.linalg that are composed of its factorisations, by NumPy's and PyTorch's names."""

from __future__ import annotations

from collections import namedtuple

import math

import weft

from .. import _core
from .._core import NDArray, Tensor
from .common import beside, plain, real, refused, value

__all__ = [
    "cond",
    "inverse",
    "lstsq",
    "matrix_exp",
    "multi_dot",
    "norm",
    "solve_triangular",
    "tensorinv",
    "tensorsolve",
]


def norm(x, ord=None, axis=None, keepdims=False):
    """A vector's norm along one axis, a matrix's along two; over all elements in a row when neither ord nor axis is given."""
    x = real(x)
    if axis is None and (ord is None or x.ndim == 1):
        out = weft.linalg.vector_norm(x.reshape(-1), ord=2 if ord is None else ord)
        return out.reshape((1,) * x.ndim) if keepdims else out
    axes = (
        tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    )
    if len(axes) == 1:
        return weft.linalg.vector_norm(
            x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord
        )
    if len(axes) != 2:
        raise refused("array.norm.axes", f"a norm over {len(axes)} axes", "one axis or two")
    out = weft.linalg.matrix_norm(
        weft.moveaxis(x, axes, (-2, -1)), keepdims=True, ord="fro" if ord is None else ord
    )
    out = weft.moveaxis(out, (-2, -1), axes)
    return out if keepdims else weft.squeeze(out, axis=axes)


def cond(x, p=None):
    """The condition number: the norm times the inverse's; of the largest and smallest singular value when p is None."""
    x = real(x)
    if p in (None, 2, -2):
        s = weft.linalg.svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return weft.linalg.matrix_norm(x, ord=p) * weft.linalg.matrix_norm(weft.linalg.inv(x), ord=p)


def inverse(x):
    """As inv."""
    return weft.linalg.inv(x)


LeastSquares = namedtuple("LeastSquares", "solution residuals rank singular_values")


def lstsq(a, b, rcond=None, *, driver=None):
    """(x, sums of squares, rank, singular values) with the least |a x - b|; of several the smallest.

    a (..., m, n), b (m,), (..., m) beside as many matrices, or (..., m, k). Singular values below rcond times the largest count as 0 (default: the type's step times
    the larger extent). The sums are empty where the rank is below n or m is at most n, as in NumPy; the rank of one matrix is a number. `driver` is
    PyTorch's choice of a routine of LAPACK, and changes nothing. Gradients are those of matrices whose rank does not change.
    """
    a = real(a)
    b = real(beside(b, a))
    vector = b.ndim == 1 or (a.ndim > 2 and tuple(b.shape) == tuple(a.shape[:-1]))
    right = weft.expand_dims(b, axis=-1) if vector else b
    if a.ndim < 2 or right.ndim < 2 or a.shape[-2] != right.shape[-2]:
        raise refused(
            "array.lstsq.shape",
            f"lstsq of {tuple(a.shape)} and {tuple(b.shape)}",
            "(..., m, n) and (m,) or (..., m, k)",
        )
    m, n = a.shape[-2:]
    step = weft.finfo(a.dtype).eps * max(m, n) if rcond is None or rcond == -1 else rcond
    if _by_library(a, right):
        x, sums, rank, s = _core._least_squares(a, right, step)
        if rank >= 0:
            return LeastSquares(x[..., 0] if vector else x, sums, rank, s)
    linked = any(getattr(x, "requires_grad", False) for x in (a, right))
    u, s, vh = weft.linalg.svd(plain(a) if linked else a, full_matrices=False)
    largest = s[..., :1] if s.shape[-1] else weft.zeros((*s.shape[:-1], 1), dtype=s.dtype, device=a.device)  # fmt: skip
    kept = s > largest * step
    rank = weft.sum(kept.astype("int64"), axis=-1)
    if linked:
        x = weft.linalg.pinv(a, rtol=step) @ right
    else:
        inverse_of = weft.where(kept, 1.0 / weft.where(kept, s, 1.0), 0.0)
        x = _adjoint(vh) @ (weft.expand_dims(inverse_of, axis=-1).astype(a.dtype) * (_adjoint(u) @ right))  # fmt: skip
    if m > n and bool(weft.all(rank == n)):
        away = weft.abs(a @ x - right)
        sums = weft.sum(away * away, axis=-2)
    else:
        sums = weft.zeros((0,), dtype=s.dtype, device=a.device)
    rank = int(rank) if rank.ndim == 0 else rank
    return LeastSquares(x[..., 0] if vector else x, sums, rank, s)


def _by_library(a, b):
    """Is it one matrix of finite numbers on the host, and has it a solution to look for?"""
    if not (type(a) is type(b) is NDArray and a.ndim == 2 and a.size and b.size):
        return False
    suits = a.device.host_accessible and a.dtype == b.dtype and a.dtype.name in ("float32", "float64")  # fmt: skip
    return suits and bool(weft.all(weft.isfinite(a)))


def _adjoint(x):
    return weft.conj(x.mT) if x.dtype.kind == "c" else x.mT


def multi_dot(matrices):
    """The product of several matrices in the order that costs least; the first and the last may be vectors."""
    matrices = [value(m) for m in matrices]
    if len(matrices) < 2:
        raise refused("array.multi_dot.count", f"{len(matrices)} matrices", "two at least")
    row, column = matrices[0].ndim == 1, matrices[-1].ndim == 1
    if row:
        matrices[0] = matrices[0].reshape(1, -1)
    if column:
        matrices[-1] = matrices[-1].reshape(-1, 1)
    n = len(matrices)
    extents = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    best = {(i, i): (0, i) for i in range(n)}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best[i, j] = min(
                (
                    best[i, k][0]
                    + best[k + 1, j][0]
                    + extents[i] * extents[k + 1] * extents[j + 1],
                    k,
                )
                for k in range(i, j)
            )

    def product(i, j):
        return matrices[i] if i == j else product(i, best[i, j][1]) @ product(best[i, j][1] + 1, j)

    out = product(0, n - 1)
    out = out[0] if row else out
    return out[..., 0] if column else out


def svd(input, some=True, compute_uv=True):
    """(U, S, V) with input = U diag(S) V', as PyTorch's: V itself, as few columns as there are singular values unless some=False. With
    compute_uv=False U and V are zeros. linalg.svd gives V' and all columns."""
    x = real(input)
    m, n = x.shape[-2:]
    if not compute_uv:
        make = {"dtype": x.dtype, "device": x.device}
        u, v = (weft.zeros((*x.shape[:-2], k, k), **make) for k in (m, n))
        return u, weft.linalg.svdvals(x), v
    u, s, vh = weft.linalg.svd(x, full_matrices=not some)
    return u, s, (weft.conj(vh) if vh.dtype.kind == "c" else vh).mT


def matrix_exp(x):
    """The exponential of square matrices: scaled until small, a Taylor polynomial of degree 18, squared again."""
    x = real(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise refused(
            "array.matrix_exp.shape", f"matrix_exp of shape {tuple(x.shape)}", "square matrices"
        )
    if not x.size:
        return x
    largest = float(weft.max(weft.linalg.matrix_norm(plain(x), ord=1)))
    if not math.isfinite(largest):
        return x * math.nan
    squarings = max(0, math.ceil(math.log2(largest / 0.5))) if largest > 0.5 else 0
    y = x * 0.5**squarings
    one = weft.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    degree = 18
    out = one + y * (1.0 / degree)
    for k in range(degree - 1, 0, -1):
        out = one + (y @ out) * (1.0 / k)
    for _ in range(squarings):
        out = out @ out
    return out


def solve_triangular(a, b, *, upper, left=True, unitriangular=False):
    """x with a x = b (x a = b without left) for the triangle of a that `upper` names; the other one is not read."""
    a = real(a)
    b = real(beside(b, a))
    if not left:
        return solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    ours = all(isinstance(x, (NDArray, Tensor)) and x.device.host_accessible for x in (a, b))
    if ours and a.dtype == b.dtype and a.dtype.itemsize >= 4 and min(a.ndim, b.ndim) > 1:
        return weft.linalg._triangular(a, b, bool(upper), bool(unitriangular))
    a = weft.triu(a) if upper else weft.tril(a)
    if unitriangular:
        one = weft.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        a = a * (1 - one) + one
    return weft.linalg.solve(a, b)


def _size(shape):
    size = 1
    for n in shape:
        size *= n
    return size


def tensorinv(a, ind=2):
    """The inverse of a as a map from its last axes to its first `ind`."""
    a = real(a)
    first, last = tuple(a.shape[:ind]), tuple(a.shape[ind:])
    if ind < 1 or _size(first) != _size(last):
        raise refused(
            "array.tensorinv.shape",
            f"shape {tuple(a.shape)} cut before axis {ind}",
            "as many elements on both sides",
        )
    return weft.linalg.inv(a.reshape(_size(first), -1)).reshape(last + first)


def tensorsolve(a, b):
    """x with tensordot(a, x, x.ndim) = b."""
    a = real(a)
    b = real(beside(b, a))
    shape = tuple(a.shape[b.ndim :])
    if _size(shape) != b.size or tuple(a.shape[: b.ndim]) != tuple(b.shape):
        raise refused(
            "array.tensorsolve.shape",
            f"shapes {tuple(a.shape)} and {tuple(b.shape)}",
            "a begins with b's shape and is square",
        )
    return weft.linalg.solve(a.reshape(b.size, -1), b.reshape(-1)).reshape(shape)
