# SPDX-License-Identifier: Apache-2.0
"""Shapes: broadcasting, joining, permuting, borders, triangles."""

from __future__ import annotations

import builtins as _py

from .._core import shown as _shown
from .. import _core
from .._boundary import direct as _direct, publish as _publish
from .._errors import error as _error
from .common import _array, _axis, _is_tensor
from .creation import arange, zeros
from .elementwise import where


def broadcast_to(x, /, shape):
    """A view with extents of 1 repeated to a shape."""
    return x.broadcast_to(shape)


def broadcast_shapes(*shapes):
    """The shape that all these broadcast to."""
    return _core._broadcast_shapes([tuple(s) for s in shapes])


def broadcast_arrays(*arrays):
    """Views of all arrays in their common shape."""
    shape = broadcast_shapes(*[a.shape for a in arrays])
    return [a.broadcast_to(shape) for a in arrays]


def concat(arrays, /, *, axis=0):
    """Arrays joined along an axis; None flattens them first."""
    arrays = list(arrays)
    for a in arrays if axis is not None else (None,):
        if type(a) is not _core.NDArray:
            break
    else:
        return _core._concat(arrays, axis)
    if axis is None:
        arrays, axis = [a.reshape((-1,)) for a in arrays], 0
    tensor = next((a for a in arrays if _is_tensor(a)), None)
    if tensor is not None:
        return tensor.concat(arrays, axis)
    return _core._concat([_array(a) for a in arrays], axis)


def stack(arrays, /, *, axis=0):
    """Arrays of one shape joined along a new axis."""
    arrays = list(arrays)
    if not arrays:
        raise _error(
            _core.ArgumentError,
            "array.stack.empty",
            f"stack of {len(arrays)} arrays",
            help="give at least one array",
        )
    for a in arrays[1:]:
        if a.shape != arrays[0].shape:
            raise _error(
                _core.ShapeError,
                "array.stack.shape",
                f"stack of shapes {arrays[0].shape} and {a.shape}; they must be equal",
                help="broadcast or reshape them first; concat joins along an axis that exists",
            )
    ndim = arrays[0].ndim
    if not -ndim - 1 <= axis <= ndim:
        raise _error(
            _core.IndexError,
            "array.stack.axis",
            f"axis {axis} of stack is outside a result of {ndim + 1} dimensions",
            help="count axes of the result, from 0 or from the end with -1",
        )
    axis = axis % (ndim + 1)
    if _py.all(type(a) is _core.NDArray for a in arrays):
        return _core._stack(arrays, axis)
    return concat([expand_dims(a, axis=axis) for a in arrays], axis=axis)


def unstack(x, /, *, axis=0):
    """The slices along an axis, as a tuple; of an array views."""
    axis = _axis(axis, x.ndim, "unstack")
    if not _is_tensor(x):
        return tuple(_core._unstack(x, axis))
    front = (slice(None),) * axis
    return tuple(x[(*front, i, ...)] for i in range(x.shape[axis]))


def expand_dims(x, /, axis):
    """A view with an extra axis of extent 1."""
    if _is_tensor(x):
        axis = axis % (x.ndim + 1)
        return x.reshape((*x.shape[:axis], 1, *x.shape[axis:]))
    if isinstance(axis, tuple):
        n = x.ndim + len(axis)
        if len({_axis(a, n, "expand_dims") for a in axis}) < len(axis):
            raise _error(
                _core.ArgumentError,
                "array.expand_dims.axis",
                f"expand_dims of shape {x.shape} names an axis twice: {axis}",
                help="name each new axis once",
            )
        for a in sorted(a % n for a in axis):
            x = _core._expand_dims(x, a)
        return x
    return _core._expand_dims(x, axis)


@_direct(_core._direct_squeeze)
def squeeze(x, /, axis=None):
    """A view without axes of extent 1: these, or all that there are."""
    if axis is None:
        axis = tuple(i for i, n in enumerate(x.shape) if n == 1)
    if _is_tensor(x):
        axes = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = {_axis(a, x.ndim, "squeeze") for a in axes}
        if _py.any(x.shape[a] != 1 for a in axes):
            raise _error(
                _core.ArgumentError,
                "array.squeeze.extent",
                f"squeeze of axes {sorted(axes)} of shape {x.shape}: an extent is not 1",
                help="name axes of extent 1 only",
            )
        return x.reshape(tuple(n for i, n in enumerate(x.shape) if i not in axes))
    return _core._squeeze(x, axis)


def reshape(x, /, shape, *, copy=None):
    """The elements in another shape; one extent may be -1."""
    if _is_tensor(x):
        return x.reshape(shape)
    return _core._reshape(x, shape, copy)


def permute_dims(x, /, axes=None):
    """A view with the axes in another order; None: turned round."""
    if axes is None:
        axes = tuple(reversed(range(x.ndim)))
    return x.permute(axes)


def matrix_transpose(x, /):
    """A view with the last two axes exchanged."""
    return x.mT


def moveaxis(x, source, destination, /):
    """A view with some axes moved."""
    source = (source,) if isinstance(source, int) else tuple(source)
    destination = (destination,) if isinstance(destination, int) else tuple(destination)
    source = [_axis(a, x.ndim, "moveaxis") for a in source]
    destination = [_axis(a, x.ndim, "moveaxis") for a in destination]
    order = [i for i in range(x.ndim) if i not in source]
    for d, s in sorted(zip(destination, source)):
        order.insert(d, s)
    return x.permute(tuple(order))


def flip(x, /, *, axis=None):
    """A view with axes reversed."""
    axes = tuple(range(x.ndim)) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    return x.flip(axes)


def roll(x, /, shift, *, axis=None):
    """Elements moved cyclically along axes."""
    if axis is None:
        return roll(reshape(x, (-1,)), shift, axis=0).reshape(x.shape)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if len(shifts) == 1:
        shifts = tuple(shifts) * len(axes)
    if len(axes) == 1:
        axes = tuple(axes) * len(shifts)
    out = x
    for s, a in zip(shifts, axes):
        a = _axis(a, x.ndim, "roll")
        if type(out) is _core.NDArray:
            out = _core._roll(out, s % _py.max(x.shape[a], 1), a)
            continue
        n = x.shape[a]
        if n == 0 or s % n == 0:
            continue
        s = s % n
        front = (slice(None),) * a
        out = concat([out[(*front, slice(n - s, None))], out[(*front, slice(0, n - s))]], axis=a)
    return x.copy() if out is x and not _is_tensor(x) else out


def tile(x, repetitions, /):
    """The whole array several times along each axis."""
    reps = (repetitions,) if isinstance(repetitions, int) else tuple(repetitions)
    ndim = _py.max(len(reps), x.ndim)
    reps = (1,) * (ndim - len(reps)) + reps
    shape = (1,) * (ndim - x.ndim) + x.shape
    pairs, thin, whole = [], [], []
    for r, n in zip(reps, shape):
        pairs += (r, n)
        thin += (1, n)
        whole.append(r * n)
    if isinstance(x, _core.NDArray):
        return _core._reshape(_core._reshape(x, thin, None).broadcast_to(pairs), whole, None)
    return reshape(broadcast_to(reshape(x, tuple(thin)), tuple(pairs)), tuple(whole))


def meshgrid(*arrays, indexing="xy", sparse=False, copy=True):
    """Coordinate arrays of a grid; sparse=True: of extent 1 along the axes of the others."""
    if indexing not in ("xy", "ij"):
        raise _error(
            _core.ArgumentError,
            "array.meshgrid.indexing",
            f"indexing is {_shown(indexing)}, legal: 'xy', 'ij'",
            help="leave indexing out, which is 'xy'",
        )
    n = len(arrays)
    swap = indexing == "xy" and n > 1
    arrays = [a if a.ndim == 1 else reshape(a, (-1,)) for a in arrays]
    out = []
    order = [1, 0, *range(2, n)] if swap else list(range(n))
    shape = tuple(arrays[i].shape[0] for i in order)
    for i, a in enumerate(arrays):
        line = [1] * n
        line[order.index(i)] = -1
        view = reshape(a, tuple(line))
        view = view if sparse else broadcast_to(view, shape)
        out.append(view if _is_tensor(view) else view.copy())
    return out


def tril(x, /, k=0):
    """The lower triangle; zeros above diagonal k."""
    if (out := _one_kernel(x, k, True)) is not None:
        return out
    return where(_triangle(x, k), x, zeros((), dtype=x.dtype, device=x.device))


def triu(x, /, k=0):
    """The upper triangle; zeros below diagonal k."""
    if (out := _one_kernel(x, k, False)) is not None:
        return out
    return where(_triangle(x, k - 1), zeros((), dtype=x.dtype, device=x.device), x)


def _one_kernel(x, k, lower):
    """The triangle where the device makes it in one kernel, else None."""
    if not isinstance(x, (_core.NDArray, _core.Tensor)) or x.ndim < 2:
        return None
    if isinstance(x, _core.NDArray):
        return _core._triangle(x, k, lower)
    if (data := _core._triangle(x.data, k, lower)) is None:
        return None
    half = tril if lower else triu
    rule = lambda xs, result, g: [half(g, k)]  # noqa: E731
    return _core._function_tensor("tril" if lower else "triu", data, [x], rule, [], False)


def _triangle(x, k):
    if x.ndim < 2:
        raise _error(
            _core.ShapeError,
            "array.tril.rank",
            f"a triangle needs two dimensions, not {x.ndim}",
            help="give a matrix or a stack of them: x.reshape(1, -1)",
        )
    rows = reshape(arange(x.shape[-2], dtype="int32", device=x.device), (-1, 1))
    cols = arange(x.shape[-1], dtype="int32", device=x.device)
    return cols <= rows + k


__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "permute_dims",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "tril",
    "triu",
    "unstack",
]

_publish(__name__)
