# SPDX-License-Identifier: Apache-2.0
"""Rows of the operation table, and the elementwise functions that are none."""

from __future__ import annotations

import builtins as _py

from .._boundary import direct as _direct
from .._boundary import publish as _publish
from .. import _core
from .._core import NDArray, Tensor
from .._pointwise import composed as _composed
from .common import _INTEGERS, _array, _is_tensor, _name, _pybool, _row
from .creation import asarray
from .types import iinfo


_FLOATS = frozenset(("float32", "float64", "float16", "bfloat16"))


def where(condition, x1, x2, /):
    """x1 where the condition holds, else x2."""
    if _is_tensor(x1) or _is_tensor(x2):
        return (x1 if _is_tensor(x1) else x2)._where(condition, x1, x2)
    if hasattr(condition, "__weft_operation__"):  # a traced value
        return condition._where(condition, x1, x2)
    if not isinstance(x1, NDArray) and not isinstance(x2, NDArray):
        x1 = asarray(x1, device=getattr(condition, "device", None))
    return _core._where(_array(condition), x1, x2)


@_direct(_core._direct_clip)
def clip(x, /, min=None, max=None):
    """Elements limited to [min, max].

    The result has x's type; an integer x with a float limit gives the float type of x + limit, as in NumPy.
    """
    integers = _name(x.dtype) in _INTEGERS

    def bound(b):
        if integers and isinstance(b, int) and not isinstance(b, _pybool):
            info = iinfo(x.dtype)  # a limit outside the type does not bind
            return _py.min(_py.max(b, info.min), info.max)
        return b

    numbers = int if integers else (int, float)
    if (
        isinstance(x, NDArray)
        and (integers or _name(x.dtype) in _FLOATS)
        and _py.all(
            b is None or isinstance(b, numbers) and not isinstance(b, _pybool) for b in (min, max)
        )
    ):
        done = _core._clipped(x, bound(min), bound(max))
        if done is not None:
            return done
    if isinstance(x, Tensor) and x.dtype.kind == "f" and _core._has_grid(x.data):
        if _py.all(b is None or type(b) in (int, float) for b in (min, max)):
            return _limited(x, min, max)
    out = x
    if min is not None:
        out = _row("maximum")(out, bound(min))
    if max is not None:
        out = _row("minimum")(out, bound(max))
    if out.dtype != x.dtype and not (integers and out.dtype.kind == "f"):
        out = out.astype(x.dtype)
    return x.astype(x.dtype) if out is x and not isinstance(x, Tensor) else out


@_composed
def _limited(x, low, high):
    x = x if low is None else _row("maximum")(x, low)
    return x if high is None else _row("minimum")(x, high)


__all__ = ["clip", "where"]

_publish(__name__)
