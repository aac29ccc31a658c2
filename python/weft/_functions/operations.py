# SPDX-License-Identifier: Apache-2.0
"""NumPy's methods of its operations: minimum.accumulate, add.at, multiply.outer, add.reduce."""

from __future__ import annotations

import weft

from .. import _core
from .._errors import error as _error
from .common import axis_of, beside, plain, value

_COMBINING = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


def _combining(operation, way, among=tuple(_COMBINING)):
    name = operation.__name__
    if name not in among:
        raise _error(
            _core.ArgumentError,
            "array.operation.method",
            f"{name}.{way}",
            [f"legal: {', '.join(f'{n}.{way}' for n in among)}"],
        )
    return _COMBINING.get(name, name)


def reduce(self, x, axis=0, keepdims=False):
    """All elements along an axis combined; of all axes when axis is None."""
    return getattr(weft, _combining(self, "reduce"))(value(x), axis=axis, keepdims=keepdims)


def accumulate(self, x, axis=0):
    """Running combinations along an axis."""
    name, x = _combining(self, "accumulate"), value(x)
    if name in ("sum", "prod"):
        return getattr(weft, f"cumulative_{name}")(x, axis=axis)
    return _core._scan(name, plain(x), axis_of(x, axis), None)


def outer(self, a, b):
    """The operation of each element of a with each of b."""
    a = value(a)
    b = beside(b, a)
    return self(a.reshape((*a.shape, *(1,) * b.ndim)), b)


def at(self, x, indices, values):
    """Adds to (or takes from) x itself at positions, once for each time that a position is named."""
    name = _combining(self, "at", ("add", "subtract"))
    values = beside(values, x)
    values = values.astype(x.dtype) if name != "subtract" else -values.astype(x.dtype)
    x[...] = weft.scatter(x, indices, values, accumulate=True)


for _method in (reduce, accumulate, outer, at):
    setattr(type(_core.operations["add"]), _method.__name__, _method)
