# SPDX-License-Identifier: Apache-2.0
"""NumPy's methods of its operations: minimum.accumulate, add.at, add.reduceat, multiply.outer, add.reduce."""

from __future__ import annotations

import math
import types

import weft

from .. import _core
from .._core import NDArray
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
_OF_SLICES = ("sum", "prod", "max", "min")
#: Others whose order does not matter, and what changes nothing; None: there is no such value.
_ASSOCIATIVE = {
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
    "fmax": None,
    "fmin": None,
    "gcd": 0,
    "hypot": 0,
    "lcm": 1,
    "logaddexp": -math.inf,
    "logaddexp2": -math.inf,
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
}


def _combining(operation, way, among=(*_COMBINING, *_ASSOCIATIVE)):
    name = operation.__name__
    if name not in among:
        raise _error(
            _core.ArgumentError,
            "array.operation.method",
            f"{name}.{way}",
            [f"legal: {', '.join(f'{n}.{way}' for n in dict.fromkeys(among))}"],
        )
    return _COMBINING.get(name, name)


def _into(out, found):
    """NumPy's out=."""
    if out is None:
        return found
    out = out[0] if isinstance(out, tuple) else out
    weft.copyto(out, found)
    return out


def _operand(operation, x, dtype):
    x = value(x)
    if operation.__name__.startswith("logical"):
        x = plain(x).astype("bool")
    return x if dtype is None else x.astype(dtype)


def reduce(self, x, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True):
    """All elements along an axis combined; of all axes when axis is None."""
    name, x = _combining(self, "reduce"), _operand(self, x, dtype)
    if name in _COMBINING.values():
        more = {} if where is True else {"where": where}
        if initial is not None and name not in ("all", "any"):
            more["initial"] = initial
        return _into(out, getattr(weft, name)(x, axis=axis, keepdims=keepdims, **more))
    neutral = _ASSOCIATIVE[name] if initial is None else initial
    if where is not True:
        if neutral is None:
            raise refused("array.reduce.initial", f"{name}.reduce of marked elements without a value for none of them", "initial= names it")  # fmt: skip
        x = weft.where(beside(where, x), x, neutral)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = sorted({axis_of(x, a) for a in axes})
    for a in axes:
        x = _halved(self, x, a, neutral)
    x = x if initial is None else self(x, beside(initial, x).astype(x.dtype))
    return _into(out, x if keepdims else weft.squeeze(x, axis=tuple(axes)))


def _halved(operation, x, axis, neutral):
    """One half combined with the other until one element is left."""
    before, n = (slice(None),) * axis, x.shape[axis]
    if n == 0:
        if neutral is None:
            raise refused("array.reduce.empty", f"{operation.__name__}.reduce of no elements", "one element at least, or initial=")  # fmt: skip
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        return weft.full(shape, neutral, dtype=x.dtype, device=x.device)
    while n > 1:
        half = n // 2
        y = operation(x[(*before, slice(half))], x[(*before, slice(half, 2 * half))])
        x = weft.concat([y, x[(*before, slice(2 * half, n))]], axis=axis) if n % 2 else y
        n -= half
    return x


def accumulate(self, x, axis=0, dtype=None, out=None):
    """Running combinations along an axis."""
    among = (*_RUNNING, *_ASSOCIATIVE, "subtract")
    name, x = _combining(self, "accumulate", among), _operand(self, x, dtype)
    axis = axis_of(x, axis)
    if name == "subtract":
        before = (slice(None),) * axis
        x = weft.concat([x[(*before, slice(1))], -x[(*before, slice(1, None))]], axis=axis)
        name = "sum"
    if name in ("sum", "prod"):
        return _into(out, getattr(weft, f"cumulative_{name}")(x, axis=axis))
    if x.dtype.kind == "c" or name not in _COMBINING.values() or name in ("all", "any"):
        return _into(out, _folded(self, x, axis))
    return _into(out, _core._scan(name, plain(x), axis, None))


def _folded(operation, x, axis):
    """Running combinations by doubling, of what no kernel scans."""
    before, n, step = (slice(None),) * axis, x.shape[axis], 1
    while step < n:
        later = operation(x[(*before, slice(step, n))], x[(*before, slice(n - step))])
        x = weft.concat([x[(*before, slice(step))], later], axis=axis)
        step *= 2
    return x


def reduceat(self, x, indices, axis=0, dtype=None, out=None):
    """Slices of an axis combined: from each position to the next; the element alone where the next is not behind it."""
    _combining(self, "reduceat")
    return _into(out, _combined_at(self, _operand(self, x, dtype), indices, axis))


def _combined_at(self, x, indices, axis):
    x, places = value(x), plain(indices).reshape(-1)
    axis = axis_of(x, axis)
    n, before = x.shape[axis], (slice(None),) * axis
    if places.size and not (0 <= int(weft.min(places)) and int(weft.max(places)) < n):
        raise refused("array.reduceat.index", f"positions {places.tolist()} of an axis of extent {n}", f"from 0 to {n - 1}")  # fmt: skip
    name = _COMBINING.get(self.__name__)
    if name in _OF_SLICES and isinstance(x, NDArray) and x.ndim == 1 and x.device.host_accessible and x.dtype.kind in "iuf":  # fmt: skip
        return _core._reduce_slices(name, x, places.to(x.device).astype("int64"))
    places = places.tolist()
    ends = [*places[1:], n]
    if name == "sum" and x.ndim == 1 and len(places) > 4 and all(p < e for p, e in zip(places, ends)):  # fmt: skip
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


_METHODS = (reduce, accumulate, reduceat, outer, at)
for _method in _METHODS:
    setattr(type(_core.operations["add"]), _method.__name__, _method)


def give_methods(function):
    """The same to a public function that is an operation in NumPy."""
    for method in _METHODS:
        setattr(function, method.__name__, types.MethodType(method, function))
