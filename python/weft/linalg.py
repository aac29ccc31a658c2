# SPDX-License-Identifier: Apache-2.0
"""Linear algebra: the linalg extension of the array API standard.

On the host over LAPACK; on cards over the vendor's library where it is installed, else composed of array operations.
"""

from __future__ import annotations

import math as _math
from collections import namedtuple as _namedtuple

from ._core import shown as _shown
from . import _core
from . import _factor_gradients as _gradients
from . import _namespace as _ns
from ._boundary import direct as _direct, publish as _publish
from ._dispatch import whole as _whole
from ._errors import error as _error
from ._joined import joined as _joined
from ._fallback import computed as _computed
from ._pointwise import composed as _composed
from ._torch_names import understand as _understand
from ._wide import narrow as _narrow, wide as _wide
from ._namespace.common import _array, _is_tensor
from .autograd import Function as _Function
from ._namespace import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

EigResult = _namedtuple("EigResult", "eigenvalues eigenvectors")
EighResult = _namedtuple("EighResult", "eigenvalues eigenvectors")
QRResult = _namedtuple("QRResult", "Q R")
SlogdetResult = _namedtuple("SlogdetResult", "sign logabsdet")
SVDResult = _namedtuple("SVDResult", "U S Vh")


def _linked(x):
    """Is it a tensor whose gradient is asked for?"""
    return _is_tensor(x) and x.requires_grad


class _Inverse(_Function):
    @staticmethod
    def forward(ctx, x):
        y = _core.Tensor(inv(x.data), requires_grad=False)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        y = _adjoint(inv(ctx.saved_tensors[0]))
        return -(y @ g @ y)


class _Solution(_Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return solve(a.data, b.data)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        gb = solve(_adjoint(a), g)
        x = solve(a, b)
        if b.ndim == 1:
            return -(gb[..., :, None] * _conjugate(x)[..., None, :]), gb
        return -(gb @ _adjoint(x)), gb


class _Determinant(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return det(x.data)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g * _conjugate(det(x)))[..., None, None] * _adjoint(inv(x))


class _LogDeterminant(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return slogdet(x.data).logabsdet

    @staticmethod
    def backward(ctx, g):
        return g[..., None, None] * _adjoint(inv(ctx.saved_tensors[0]))


class _DeterminantSign(_Function):
    """Of complex matrices the sign turns with the imaginary part of the logarithm; of real ones it stays."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return slogdet(x.data).sign

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        turn = _core.operations["imag"](g * _conjugate(slogdet(x).sign))
        return (turn * 1j)[..., None, None] * _adjoint(inv(x))


class _PseudoInverse(_Function):
    @staticmethod
    def forward(ctx, x, rtol):
        y = _core.Tensor(pinv(x.data, rtol=rtol), requires_grad=False)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        return _gradients.pinv(g, *ctx.saved_tensors), None


class _TriangularSolution(_Function):
    """Of the core's substitution, which reads one triangle alone."""

    @staticmethod
    def forward(ctx, a, b, upper, unit):
        ctx.save_for_backward(a, b)
        ctx.upper, ctx.unit = upper, unit
        return _core._solve_triangular(a.data, b.data, upper, unit)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        triangle = _ns.triu if ctx.upper else _ns.tril
        x = _triangular(a, b, ctx.upper, ctx.unit)
        gb = _triangular(_adjoint(a), g, not ctx.upper, ctx.unit)
        past = (1 if ctx.upper else -1) if ctx.unit else 0  # the diagonal is not read
        return -triangle(gb @ _adjoint(x), k=past), gb, None, None


def _triangular(a, b, upper, unit):
    """x with a x = b on the host for matrices of one type."""
    if not (_linked(a) or _linked(b)):
        return _core._solve_triangular(_array(a), _array(b), upper, unit)
    batch = _ns.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    a, b = (
        x if tuple(x.shape[:-2]) == batch else _ns.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b)
    )  # fmt: skip
    a, b = (x if _is_tensor(x) else _core.Tensor(x, requires_grad=False) for x in (a, b))
    return _TriangularSolution.apply(a, b, upper, unit)


def _conjugate(x):
    return _core.operations["conj"](x) if x.dtype.kind == "c" else x


_adjoint = _gradients.adjoint


def cholesky(x, /, *, upper=False):
    """The triangular factor (..., n, n) of symmetric (Hermitian) positive definite matrices (..., n, n). Its gradient is symmetric (Hermitian).

    Raises ArgumentError (array.cholesky.indefinite), ShapeError (array.cholesky.shape).
    """
    if not _linked(x):
        return _computed("cholesky", _core._cholesky, _array(x), upper)
    pull = lambda g, factor: _gradients.cholesky(g, factor, upper)  # noqa: E731
    again = lambda x: [cholesky(x, upper=upper)]  # noqa: E731
    return _gradients.link("cholesky", x, [cholesky(x.data, upper=upper)], [pull], again)[0]


@_direct(_core._direct_cross)
@_whole
def cross(x1, x2, /, *, axis=-1):
    """The product of three-vectors along an axis; of vectors of two numbers, whose third is 0, too, and of two such the third number.

    Other axes broadcast. Raises ShapeError (array.cross.extent).
    """
    tensors = [type(x) is _core.Tensor for x in (x1, x2)]  # no values of a transform
    if any(tensors) and not (_linked(x1) or _linked(x2)):
        arrays = (x.data if known else x for x, known in zip((x1, x2), tensors))
        return _core.Tensor(cross(*arrays, axis=axis), requires_grad=False)
    if x1.shape[axis] not in (2, 3) or x2.shape[axis] not in (2, 3):
        raise _error(
            _core.ShapeError,
            "array.cross.extent",
            f"cross needs extents of 3 or 2, got {x1.shape[axis]} and {x2.shape[axis]}",
            help="choose the axis with the three numbers: axis=-1",
        )
    if x1.shape[axis] == x2.shape[axis] == 2:
        (a, b), (c, d) = (_ns.unstack(_ns.moveaxis(x, axis, -1), axis=-1) for x in (x1, x2))
        return a * d - b * c
    x1, x2 = (_of_three(x, axis) for x in (x1, x2))
    return _Cross.apply(x1, x2, axis) if _linked(x1) or _linked(x2) else _crossed(x1, x2, axis)


def _of_three(x, axis):
    if x.shape[axis] == 3:
        return x
    a, b = _ns.unstack(x, axis=axis)
    return _ns.stack([a, b, a * 0], axis=axis)


@_composed
def _cross_parts(a, b, c, d, e, f):
    return b * f - c * e, c * d - a * f, a * e - b * d


def _crossed(x1, x2, axis):
    parts = [_ns.unstack(_ns.moveaxis(x, axis, -1), axis=-1) for x in (x1, x2)]
    return _ns.stack(_cross_parts(*parts[0], *parts[1]), axis=axis)


class _Cross(_Function):
    @staticmethod
    def forward(ctx, x1, x2, axis):
        ctx.save_for_backward(x1, x2)
        ctx.axis = axis
        return _crossed(*(x.data if _is_tensor(x) else x for x in (x1, x2)), axis)

    @staticmethod
    def backward(ctx, g):
        x1, x2 = ctx.saved_tensors
        towards = cross(_conjugate(x2), g, axis=ctx.axis), cross(g, _conjugate(x1), axis=ctx.axis)
        return *(t.sum_to_size(*x.shape) for t, x in zip(towards, (x1, x2))), None


def det(x, /):
    """Determinants (...) of matrices (..., n, n). Raises ShapeError (array.slogdet.shape)."""
    if _linked(x):
        return _Determinant.apply(x)
    return _computed("slogdet", _core._slogdet, _array(x))[2]


def slogdet(x, /):
    """Signs and logarithms of the magnitudes of determinants: (sign, logabsdet), each (...), of matrices (..., n, n).

    A singular matrix has sign 0 and -inf. Raises ShapeError (array.slogdet.shape).
    """
    if _linked(x):
        log = _LogDeterminant.apply(x)
        if x.dtype.kind == "c":
            return SlogdetResult(_DeterminantSign.apply(x), log)
        return SlogdetResult(_core.Tensor(slogdet(x.data).sign, requires_grad=False), log)
    sign, log, _ = _computed("slogdet", _core._slogdet, _array(x))
    return SlogdetResult(sign, log)


def diagonal(x, /, *, offset=0):
    """Diagonals (..., k) of matrices (..., m, n), `offset` above the main one; of an array a view."""
    if not _is_tensor(x):
        return _core._diagonal(_array(x), -2, -1, offset)
    return x.diagonal(offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """Sums (...) of the diagonals of matrices (..., m, n)."""
    return _ns.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def eig(x, /):
    """Eigenvalues (..., n) and eigenvectors (..., n, n) as columns, complex, of general matrices (..., n, n). The gradient is that of vectors of length 1 whose phase does not matter.

    Raises ShapeError (array.eig.shape), ArgumentError (array.eig.finite) for NaN and infinities.
    """
    if not _linked(x):
        return EigResult(*_computed("eig", _core._eig, _array(x)))
    pulls = [
        lambda g, *factors, pull=pull: _gradients.of_real(pull(g, *factors), x)
        for pull in (_gradients.eig_values, _gradients.eig_vectors)
    ]
    return EigResult(*_gradients.link("eig", x, eig(x.data), pulls, eig))


def eigvals(x, /):
    """Eigenvalues (..., n), complex, of general matrices (..., n, n). Errors: eig."""
    return eig(x)[0]


def eigh(x, /):
    """Eigenvalues (..., n), ascending, and eigenvectors (..., n, n) as columns of symmetric (Hermitian) matrices (..., n, n). Equal eigenvalues give gradients of vectors that are no numbers.

    Raises ShapeError (array.eigh.shape), ArgumentError (array.eigh.finite) for NaN and infinities.
    """
    if not _linked(x):
        return EighResult(*_computed("eigh", _core._eigh, _array(x)))
    pulls = [_gradients.eigh_values, _gradients.eigh_vectors]
    return EighResult(*_gradients.link("eigh", x, eigh(x.data), pulls, eigh))


def eigvalsh(x, /):
    """Eigenvalues (..., n), ascending, of symmetric (Hermitian) matrices (..., n, n). Errors: eigh."""
    if _linked(x):
        return eigh(x)[0]
    return _computed("eigh", _core._eigvalsh, _array(x))


def inv(x, /):
    """Inverse matrices (..., n, n) of matrices (..., n, n). Raises ArgumentError (array.inv.singular), ShapeError (array.inv.shape)."""
    if _linked(x):
        return _Inverse.apply(x)
    x = _array(x)
    out = _computed("inv", _core._inverse, x)
    if out is not None:
        return out
    n = x.shape[-1]
    return _computed("inv", _core._solve, x, _ns.eye(n, dtype=x.dtype, device=x.device), "inv")


def solve(x1, x2, /):
    """x with x1 x = x2 for matrices x1 (..., n, n) and x2 (n,) or (..., n, k), whose leading axes broadcast.

    Raises ArgumentError (array.solve.singular), ShapeError (array.solve.shape, array.solve.extent).
    """
    if _linked(x1) or _linked(x2):
        x1, x2 = (x if _is_tensor(x) else _core.Tensor(x, requires_grad=False) for x in (x1, x2))
        if x2.ndim > 1 and x1.shape[:-2] != x2.shape[:-2]:  # gradients want equal batches
            batch = _ns.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
            x1 = x1.broadcast_to((*batch, *x1.shape[-2:]))
            x2 = x2.broadcast_to((*batch, *x2.shape[-2:]))
        return _Solution.apply(x1, x2)
    return _computed("solve", _core._solve, _array(x1), _array(x2))


def qr(x, /, *, mode="reduced"):
    """Orthogonal and triangular factors, Q (..., m, k) and R (..., k, n) with k = min(m, n), of matrices (..., m, n); mode "complete": k = m. With mode "r" of arrays the triangular one alone, as in NumPy; of tensors Q is empty, as in PyTorch.

    Raises ArgumentError (array.qr.mode, array.qr.gradient), ShapeError (array.qr.shape).
    """
    if mode == "r":
        r = qr(x).R
        return QRResult(_ns.zeros((0,), dtype=x.dtype, device=x.device), r) if _is_tensor(x) else r
    if mode not in ("reduced", "complete"):
        raise _error(
            _core.ArgumentError,
            "array.qr.mode",
            f"mode is {_shown(mode)}, legal: 'reduced', 'complete', 'r'",
            help="leave mode out, which is 'reduced'",
        )
    complete = mode == "complete"
    if not _linked(x):
        return QRResult(*_computed("qr", _core._qr, _array(x), complete))
    if complete and x.shape[-2] > x.shape[-1]:
        raise _error(
            _core.ArgumentError,
            "array.qr.gradient",
            f"the gradient of qr with mode='complete' of matrices of shape {tuple(x.shape)}",
            ["the factorisation does not determine columns of Q beyond those of the matrix, so they have no gradient"],
            help="mode='reduced', or pass x.detach()",
        )  # fmt: skip
    pulls = [_gradients.qr_orthogonal, _gradients.qr_triangular]
    return QRResult(*_gradients.link("qr", x, qr(x.data), pulls, qr))


def svd(x, /, *, full_matrices=True):
    """Singular value decomposition U (..., m, m), S (..., k), descending, Vh (..., n, n) of matrices (..., m, n), k = min(m, n); without full_matrices U (..., m, k) and Vh (..., k, n). Equal singular values give gradients of vectors that are no numbers.

    Raises ShapeError (array.svd.shape), ArgumentError (array.svd.finite) for NaN and infinities.
    """
    if not _linked(x):
        return SVDResult(*_computed("svd", _core._svd, _array(x), full_matrices))
    m, n = x.shape[-2:]
    k = min(m, n)
    u, s, vh = svd(x.data, full_matrices=full_matrices)
    pulls = [_gradients.svd_left, _gradients.svd_values, _gradients.svd_right]
    again = lambda x: svd(x, full_matrices=False)  # noqa: E731
    more_u, u = u[..., :, k:], u[..., :, :k]
    more_vh, vh = vh[..., k:, :], vh[..., :k, :]
    left, s, right = _gradients.link("svd", x, [u, s, vh], pulls, again)
    if more_u.shape[-1]:
        pull = _gradients.open_vectors("columns of U", x.shape)
        left = _ns.concat([left, *_gradients.link("svd", x, [more_u], [pull], again)], axis=-1)
    if more_vh.shape[-2]:
        pull = _gradients.open_vectors("rows of Vh", x.shape)
        right = _ns.concat([right, *_gradients.link("svd", x, [more_vh], [pull], again)], axis=-2)
    return SVDResult(left, s, right)


def svdvals(x, /):
    """Singular values (..., min(m, n)), descending, of matrices (..., m, n). Errors: svd."""
    if _linked(x):
        return svd(x, full_matrices=False)[1]
    return _computed("svd", _core._svdvals, _array(x))


def _eps(x):
    return _ns.finfo(x.dtype).eps


def matrix_rank(x, /, *, rtol=None):
    """How many singular values exceed rtol times the largest: int64 (...) of matrices (..., m, n). rtol: a number or an array (...); by itself max(m, n) times the type's eps."""
    x = _array(x)
    s = svdvals(x)
    if rtol is None:
        rtol = max(x.shape[-2:]) * _eps(x)
    elif isinstance(rtol, _core.NDArray):
        rtol = _ns.expand_dims(rtol, axis=-1)
    if s.shape[-1] == 0:
        return _ns.zeros(s.shape[:-1], dtype=_core.int64, device=x.device)
    return _ns.count_nonzero(s > _ns.max(s, axis=-1, keepdims=True) * rtol, axis=-1)


def pinv(x, /, *, rtol=None):
    """Generalised inverse (..., n, m) of matrices (..., m, n) by singular values; those up to rtol times the largest count as 0. Its gradient is right where the rank does not change."""
    if _linked(x):
        return _PseudoInverse.apply(x, rtol)
    x = _array(x)
    u, s, vh = svd(x, full_matrices=False)
    if rtol is None:
        rtol = max(x.shape[-2:]) * _eps(x)
    elif isinstance(rtol, _core.NDArray):
        rtol = _ns.expand_dims(rtol, axis=-1)
    if s.shape[-1] == 0:
        return _ns.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=x.dtype, device=x.device)
    keep = s > _ns.max(s, axis=-1, keepdims=True) * rtol
    inverse = _ns.where(keep, 1.0 / _ns.where(keep, s, 1.0), 0.0 * s)
    conj = _core.operations["conj"]
    scaled = conj(vh).mT * _ns.expand_dims(inverse, axis=-2)
    return matmul(scaled.astype(x.dtype), conj(u).mT)


def matrix_power(x, n, /):
    """Matrices (..., n, n) to an integer power; negative ones of the inverse. Raises ArgumentError (array.inv.singular)."""
    if n < 0:
        return matrix_power(inv(x), -n)
    out = _ns.broadcast_to(_ns.eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
    if n == 0:
        return out.copy()
    out = None
    while n:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return out if _is_tensor(out) else out.copy()


def outer(x1, x2, /):
    """Products (m, n) of all pairs of two vectors (m,) and (n,). Raises ShapeError (array.outer.rank)."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise _error(
            _core.ShapeError,
            "array.outer.rank",
            f"outer needs two vectors, got shapes {x1.shape} and {x2.shape}",
            help="flatten them first: x.reshape(-1)",
        )
    return x1[:, None] * x2[None, :]


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """p-norms of vectors along an axis or several, of all elements without: sum(|x|^ord)^(1/ord); ord 0 counts, inf and -inf give the largest and least magnitude."""
    if ord == 2 and axis is None and not keepdims and isinstance(x, _core.NDArray):
        length = _core._length(x)
        if length is not None:
            return length
    if _narrow(x) and ord not in (0, _math.inf, -_math.inf):
        return vector_norm(_wide(x), axis=axis, keepdims=keepdims, ord=ord).astype(x.dtype)
    if (
        ord == 2
        and isinstance(x, _core.NDArray)
        and x.device.host_accessible
        and x.dtype.kind == "f"
    ):
        return _core.operations["sqrt"](_core._reduce("sum", x * x, axis, keepdims, None))
    if ord == 2 and x.dtype.kind == "f":
        if isinstance(x, _core.Tensor) and not _core._has_grid(x.data):
            return _core.operations["sqrt"]((x * x).sum(axis, keepdims))
        return _length(x, axis, keepdims)
    magnitude = _core.operations["abs"](x)
    if ord == _math.inf:
        return (
            _ns.max(magnitude, axis=axis, keepdims=keepdims)
            if x.size
            else _ns.sum(magnitude, axis=axis, keepdims=keepdims)
        )
    if ord == -_math.inf:
        return _ns.min(magnitude, axis=axis, keepdims=keepdims)
    if ord == 0:
        return _ns.sum((magnitude != 0).astype(magnitude.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return _ns.sum(magnitude, axis=axis, keepdims=keepdims)
    if ord == 2:
        return _core.operations["sqrt"](
            _ns.sum(magnitude * magnitude, axis=axis, keepdims=keepdims)
        )
    return _ns.sum(magnitude**ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)


@_joined
def _length(x, axis, keepdims):
    return _core.operations["sqrt"](_ns.sum(x * x, axis=axis, keepdims=keepdims))


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Norms (...) of matrices (..., m, n): 'fro', 'nuc', 1, -1, 2, -2, inf, -inf. Raises ArgumentError (array.matrix_norm.ord)."""
    if _narrow(x) and ord != "nuc" and ord not in (2, -2):
        return matrix_norm(_wide(x), keepdims=keepdims, ord=ord).astype(x.dtype)
    magnitude = _core.operations["abs"](x)
    if ord == "fro":
        return _core.operations["sqrt"](
            _ns.sum(magnitude * magnitude, axis=(-2, -1), keepdims=keepdims)
        )
    if ord in (1, -1, _math.inf, -_math.inf):
        lines = _ns.sum(magnitude, axis=-2 if ord in (1, -1) else -1, keepdims=True)
        axis = -1 if ord in (1, -1) else -2
        if lines.shape[axis] == 0 and ord > 0:
            out = _ns.sum(lines, axis=(-2, -1), keepdims=True)
        else:
            out = (_ns.max if ord > 0 else _ns.min)(lines, axis=axis, keepdims=True)
    elif ord in ("nuc", 2, -2):
        s = svdvals(x)
        if ord == "nuc":
            out = _ns.sum(s, axis=-1)
        elif s.shape[-1] == 0:
            out = _ns.sum(s, axis=-1)
        else:
            out = (_ns.max if ord == 2 else _ns.min)(s, axis=-1)
        out = _ns.reshape(out, (*out.shape, 1, 1))
    else:
        raise _error(
            _core.ArgumentError,
            "array.matrix_norm.ord",
            f"ord is {_shown(ord)}; legal: 'fro', 'nuc', 1, -1, 2, -2, inf, -inf",
            help="leave ord out, which is 'fro'",
        )
    return out if keepdims else _ns.squeeze(out, (-2, -1))


def __dir__():
    from ._functions.later import names

    return sorted({*globals(), *names("weft.linalg")})


def __getattr__(name):
    from ._functions.later import found
    from ._names import missing

    if name[:1] != "_" and (value := found("weft.linalg", name)) is not None:
        return value
    raise missing("weft.linalg", name, {})


# What stands behind the vectors by position is the order of the norm, as in PyTorch.
_understand(globals(), [n for n in __all__ if n != "vector_norm"], "weft.linalg")

_publish(__name__)
