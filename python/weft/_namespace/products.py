# SPDX-License-Identifier: Apache-2.0
"""Sums of products, and what is normalised by a sum."""

from __future__ import annotations

import math as _math

from .. import _core
from .._boundary import publish as _publish
from .._errors import error as _error
from .common import _COMPLEX, _array, _axis, _is_tensor, _name, _row
from .manipulation import expand_dims, moveaxis, permute_dims, reshape, squeeze
from .statistics import mean


def matmul(x1, x2, /):
    """Matrix product over the last two axes; the others broadcast."""
    if _is_tensor(x1) or _is_tensor(x2):
        return x1 @ x2
    return _core._matmul(_array(x1), _array(x2))


def tensordot(x1, x2, /, axes=2):
    """Sum of products over several axes."""
    if isinstance(axes, int):
        a1 = list(range(x1.ndim - axes, x1.ndim))
        a2 = list(range(axes))
    else:
        a1, a2 = ([s] if isinstance(s, int) else list(s) for s in axes)
    a1 = [_axis(a, x1.ndim, "tensordot") for a in a1]
    a2 = [_axis(a, x2.ndim, "tensordot") for a in a2]
    for i, j in zip(a1, a2):
        if x1.shape[i] != x2.shape[j]:
            raise _error(
                _core.ShapeError,
                "array.tensordot.extent",
                f"tensordot over axes {i} and {j}: {x1.shape[i]} and {x2.shape[j]} differ",
                help="choose axes of equal extents: axes=([...], [...])",
            )
    free1 = [i for i in range(x1.ndim) if i not in a1]
    free2 = [i for i in range(x2.ndim) if i not in a2]
    n = _math.prod(x1.shape[i] for i in a1)
    left = reshape(permute_dims(x1, (*free1, *a1)), (_math.prod(x1.shape[i] for i in free1), n))
    right = reshape(permute_dims(x2, (*a2, *free2)), (n, _math.prod(x2.shape[i] for i in free2)))
    shape = tuple(x1.shape[i] for i in free1) + tuple(x2.shape[i] for i in free2)
    return reshape(matmul(left, right), shape)


_FEW = 8  # products of a sum, up to which a matrix product costs more than the products themselves


def vecdot(x1, x2, /, *, axis=-1):
    """Sum of conj(x1) * x2 along an axis."""
    if _name(x1.dtype) in _COMPLEX:
        x1 = _row("conj")(x1)
    if axis >= 0 and x1.ndim == x2.ndim > axis:
        axis -= x1.ndim
    if axis >= 0:
        raise _error(
            _core.ArgumentError,
            "array.vecdot.axis",
            f"axis {axis} must be negative: the arrays broadcast",
            help="name -1 for the last axis",
        )
    if x1.shape[axis] != x2.shape[axis]:
        raise _error(
            _core.ShapeError,
            "array.vecdot.extent",
            f"vecdot of extents {x1.shape[axis]} and {x2.shape[axis]}",
            help="give vectors of one length along that axis",
        )
    arrays = not _is_tensor(x1) and not _is_tensor(x2)
    if arrays and 0 < x1.shape[axis] <= _FEW and "b" not in (x1.dtype.kind, x2.dtype.kind):
        product = x1 * x2
        return _core._reduce("sum", product, axis, False, product.dtype)
    a, b = (x1, x2) if axis == -1 else (moveaxis(x1, axis, -1), moveaxis(x2, axis, -1))
    product = matmul(expand_dims(a, axis=-2), expand_dims(b, axis=-1))
    return squeeze(product, (-2, -1))


def einsum(spec, *operands, optimize=False):
    """Sum of products by letters: "ij,jk->ik"; "..." broadcasts. NumPy's other form is understood, einsum(a, [0, 1], b, [1, 2], [0, 2]).

    Products are always taken in a cheap order: NumPy's `optimize` changes nothing.
    """
    if not isinstance(spec, str):
        spec, operands = _by_letters(spec, operands)
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)) and "," in spec:
        operands = operands[0]
    global _einsum
    if _einsum is None:
        from .._einsum import einsum as _einsum
    return _einsum(spec, *operands)


def _by_letters(first, rest):
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) as letters and operands."""
    given = (first, *rest)
    letters = lambda axes: "".join("..." if a is Ellipsis else chr(ord("a") + a) for a in axes)  # noqa: E731
    count = len(given) // 2
    spec = ",".join(letters(axes) for axes in given[1 : 2 * count : 2])
    return spec + ("->" + letters(given[-1]) if len(given) % 2 else ""), given[0 : 2 * count : 2]


_einsum = None  # imported at the first call: it uses this module


def softmax(x, /, *, axis=-1, dtype=None):
    """exp(x) / sum(exp(x)) along an axis, without overflow, computed in `dtype`. Real floats."""
    x = x if dtype is None else x.astype(dtype)
    return x.softmax(axis) if _is_tensor(x) else _core._softmax(_array(x), axis)


def log_softmax(x, /, *, axis=-1, dtype=None):
    """x - log(sum(exp(x))) along an axis, without overflow, computed in `dtype`. Real floats."""
    x = x if dtype is None else x.astype(dtype)
    return x.log_softmax(axis) if _is_tensor(x) else _core._log_softmax(_array(x), axis)


def logsumexp(x, /, *, axis=None, keepdims=False):
    """log(sum(exp(x))) along axes, without overflow. Real floats."""
    if _is_tensor(x):
        return x.logsumexp(axis, keepdims)
    return _core._logsumexp(_array(x), axis, keepdims)


def layer_norm(x, scale, shift, /, *, eps=1e-5):
    """(x - mean) / sqrt(variance + eps) * scale + shift over the last axis; scale and shift hold one row."""
    if all(isinstance(a, _core.Tensor) for a in (x, scale, shift)):
        return x.layer_norm(scale, shift, eps)
    if _is_tensor(x) or _is_tensor(scale) or _is_tensor(shift):
        centred = x - mean(x, axis=-1, keepdims=True)
        variance = mean(centred * centred, axis=-1, keepdims=True)
        return centred * _row("rsqrt")(variance + eps) * scale + shift
    return _core._layer_norm(_array(x), _array(scale), _array(shift), eps)


__all__ = [
    "einsum",
    "layer_norm",
    "log_softmax",
    "logsumexp",
    "matmul",
    "softmax",
    "tensordot",
    "vecdot",
]

_publish(__name__)
