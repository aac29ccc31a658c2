# SPDX-License-Identifier: Apache-2.0
"""NumPy's methods of its operations: minimum.accumulate, add.at, add.reduceat, multiply.outer, add.reduce."""

from __future__ import annotations

import weft

from .. import _core
from .._errors import error as _error
from .common import axis_of, beside, plain, refused, value

_COMBINING = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_RUNNING = ("add", "multiply", "maximum", "minimum")


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


def reduce(self, x, axis=0, dtype=None, *, keepdims=False):
    """All elements along an axis combined; of all axes when axis is None."""
    name, x = _combining(self, "reduce"), value(x)
    if name in ("all", "any"):
        return getattr(weft, name)(plain(x).astype("bool"), axis=axis, keepdims=keepdims)
    x = x if dtype is None else x.astype(dtype)
    return getattr(weft, name)(x, axis=axis, keepdims=keepdims)


def accumulate(self, x, axis=0, dtype=None):
    """Running combinations along an axis."""
    name, x = _combining(self, "accumulate", _RUNNING), value(x)
    x = x if dtype is None else x.astype(dtype)
    if name in ("sum", "prod"):
        return getattr(weft, f"cumulative_{name}")(x, axis=axis)
    if x.dtype.kind == "c":
        return _folded(self, x, axis_of(x, axis))
    return _core._scan(name, plain(x), axis_of(x, axis), None)


def _folded(operation, x, axis):
    """Running combinations by doubling, of what no kernel scans."""
    before, n, step = (slice(None),) * axis, x.shape[axis], 1
    while step < n:
        later = operation(x[(*before, slice(step, n))], x[(*before, slice(n - step))])
        x = weft.concat([x[(*before, slice(step))], later], axis=axis)
        step *= 2
    return x


def reduceat(self, x, indices, axis=0):
    """Slices of an axis combined: from each position to the next; the element alone where the next is not behind it."""
    _combining(self, "reduceat")
    x, places = value(x), plain(indices).reshape(-1).tolist()
    axis = axis_of(x, axis)
    n, before = x.shape[axis], (slice(None),) * axis
    if any(not 0 <= p < n for p in places):
        raise refused("array.reduceat.index", f"positions {places} of an axis of extent {n}", f"from 0 to {n - 1}")  # fmt: skip
    ends = [*places[1:], n]
    if self.__name__ == "add" and x.ndim == 1 and len(places) > 4 and all(p < e for p, e in zip(places, ends)):  # fmt: skip
        return _sums_of_slices(x, places, ends)
    parts = [
        reduce(self, x[(*before, slice(p, max(e, p + 1)))], axis=axis, keepdims=True)
        for p, e in zip(places, ends)
    ]
    return weft.concat(parts, axis=axis) if parts else x[(*before, slice(0))]


def _sums_of_slices(x, places, ends):
    """Sums of a vector's slices, one behind the other, in order."""
    count, device = len(places), x.device
    lengths = weft.asarray(ends, device=device) - weft.asarray(places, device=device)
    owner = weft.repeat(weft.arange(count, device=device), lengths)
    total = weft.zeros((count,), dtype=weft.sum(x[:0]).dtype, device=device)
    return weft.scatter(total, (owner,), x[places[0] :].astype(total.dtype), accumulate=True)


def outer(self, a, b):
    """The operation of each element of a with each of b."""
    a = value(a)
    b = beside(b, a)
    return self(a.reshape((*a.shape, *(1,) * b.ndim)), b)


def at(self, x, indices, values):
    """Combines x itself at positions with values, once for each time that a position is named."""
    name = self.__name__
    values = beside(values, x)
    if name in ("add", "subtract"):
        values = values.astype(x.dtype) if name == "add" else -values.astype(x.dtype)
        x[...] = weft.scatter(x, indices, values, accumulate=True)
        return
    # Each turn takes the first that is left of every position that is named.
    _combining(self, "at", ("add", "subtract", "multiply", "divide", "maximum", "minimum"))
    indices = indices if isinstance(indices, tuple) else (indices,)
    whole = weft.arange(x.size, device=x.device).reshape(tuple(x.shape))
    flat = whole[tuple(i if isinstance(i, slice) else plain(i) for i in indices)]
    values = weft.broadcast_to(values, tuple(flat.shape)).reshape(-1).astype(x.dtype)
    flat = flat.reshape(-1)
    row = x.reshape(-1).copy()
    while flat.size:
        names, first = weft.unique(flat, return_index=True)
        row[names] = self(row[names], values[first]).astype(x.dtype)
        left = weft.ones(flat.shape, dtype="bool", device=x.device)
        left[first] = False
        flat, values = flat[left], values[left]
    x[...] = row.reshape(tuple(x.shape))


for _method in (reduce, accumulate, reduceat, outer, at):
    setattr(type(_core.operations["add"]), _method.__name__, _method)
