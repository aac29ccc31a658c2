# SPDX-License-Identifier: Apache-2.0
"""NumPy's and PyTorch's names of functions that stand here under the array standard's names."""

from __future__ import annotations

import weft

from .common import plain, value

# The name: the function of weft that it is.
SAME = {
    "absolute": "abs",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "bitwise_not": "bitwise_invert",
    "fix": "trunc",
    "arccosh": "acosh",
    "arcsinh": "asinh",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "cat": "concat",
    "concatenate": "concat",
    "conjugate": "conj",
    "degrees": "rad2deg",
    "fabs": "abs",
    "identity": "eye",
    "in1d": "isin",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "mod": "remainder",
    "power": "pow",
    "radians": "deg2rad",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}

__all__ = [
    "around",
    "array_equal",
    "as_tensor",
    "copy",
    "from_numpy",
    "is_tensor",
    "ndim",
    "shape",
    "size",
    "tensor",
]


def around(x, decimals=0):
    """Rounded to a number of decimals, halves to even; negative numbers of decimals round to tens, hundreds, ..."""
    x = value(x)
    if decimals == 0:
        return weft.round(x)
    scale = 10.0 ** abs(decimals)
    return weft.round(x * scale) / scale if decimals > 0 else weft.round(x / scale) * scale


def array_equal(a, b, equal_nan=False):
    """Are shapes and all elements equal? With equal_nan NaN equals NaN."""
    a, b = plain(a), plain(b)
    if tuple(a.shape) != tuple(b.shape):
        return False
    same = a == b
    if equal_nan and a.dtype.kind in "fc":
        same = same | ((a != a) & (b != b))
    return bool(weft.all(same))


def as_tensor(data, dtype=None, device=None):
    """A tensor of the data without gradient, which shares memory where it can."""
    if isinstance(data, weft.Tensor) and dtype is None and device is None:
        return data
    return weft.Tensor(weft.asarray(plain(data), dtype=dtype, device=device), requires_grad=False)


def tensor(data, dtype=None, device=None, requires_grad=False):
    """A tensor with a copy of the data."""
    return weft.Tensor(
        weft.asarray(plain(data), dtype=dtype, device=device, copy=True),
        requires_grad=requires_grad,
    )


def from_numpy(x):
    """A tensor without gradient over the memory of a NumPy array."""
    return weft.Tensor(weft.asarray(x), requires_grad=False)


def is_tensor(x):
    """Is it a Tensor?"""
    return isinstance(x, weft.Tensor)


def copy(x):
    """A new array with the elements of x."""
    return value(x).copy() if isinstance(value(x), weft.NDArray) else value(x).clone()


def shape(x):
    """The extents of an array, or of what becomes one."""
    return tuple(value(x).shape)


def size(x, axis=None):
    """The number of elements, or of entries along an axis."""
    x = value(x)
    return x.size if axis is None else x.shape[axis]


def ndim(x):
    """The number of axes."""
    return value(x).ndim
