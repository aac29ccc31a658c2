# SPDX-License-Identifier: Apache-2.0
"""Entries by position, searching, sorting, sets."""

from __future__ import annotations

from collections import namedtuple as _namedtuple

from .._core import shown as _shown
from .. import _core
from .._boundary import direct as _direct
from .._boundary import publish as _publish
from .._errors import error as _error
from .._torch_names import Dim as _Dim
from .common import _array, _axis, _bool, _int64, _is_tensor, _name, _row
from .creation import arange, asarray, empty, ones, zeros
from .manipulation import broadcast_shapes, broadcast_to, concat, reshape
from .statistics import any as _any
from .statistics import cumulative_sum
from .types import astype


def take(x, indices, /, *, axis=None, mode="raise"):
    """Entries at positions along an axis; of the elements in a row when axis is None.

    mode: positions outside it are errors ("raise": IndexError, on cards at the next copy to the host or synchronize() of the device),
    counted on from the other end ("wrap"), or taken for the nearest end ("clip", where negative ones are the first).
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    if mode != "raise":
        indices = inside(_array(indices), x.shape[_axis(axis, x.ndim, "take")], mode, "take")
    if _is_tensor(x):
        axis, index = _axis(axis, x.ndim, "take"), _array(indices)
        order = [axis, *(i for i in range(x.ndim) if i != axis)]
        out = _core._gather_tensor(x.permute(*order), index)
        m = index.ndim
        back = [*range(m, m + axis), *range(m), *range(m + axis, out.ndim)]
        return out.permute(*back)
    return _core._take(_array(x), _array(indices), axis)


def inside(index, n, mode, name):
    """Positions from 0 to n - 1 that a mode of NumPy's means."""
    if mode not in ("wrap", "clip"):
        raise _error(
            _core.ArgumentError,
            f"array.{name}.mode",
            f"mode is {_shown(mode)}, legal: 'raise', 'wrap', 'clip'",
            help="leave mode out, which is 'raise'",
        )
    return index % n if mode == "wrap" else _row("minimum")(_row("maximum")(index, 0), n - 1)


def take_along_axis(x, indices, /, *, axis=-1):
    """Entries at positions that differ from line to line."""
    if _is_tensor(x):
        return _core._take_along_axis_tensor(x, _array(indices), axis)
    return _core._take_along_axis(_array(x), indices, axis)


def scatter(x, indices, values, /, *, accumulate=False):
    """A copy of x with values at x[indices], or added to it when `accumulate`.

    indices: an array of positions along the first axis, or a tuple of them, one for each leading axis, which
    broadcast together; values broadcast to x[indices]. Of equal positions the last value stands, or all are
    added. Tensors: accumulate only, differentiable in x and values.
    """
    places = [_array(i) for i in (indices if isinstance(indices, tuple) else (indices,))]
    if len(places) > x.ndim:
        raise _error(
            _core.IndexError,
            "array.scatter.rank",
            f"scatter into shape {x.shape} with {len(places)} index arrays",
            help="give one index array for each axis, from the first on",
        )
    if _is_tensor(x) or _is_tensor(values):
        if not accumulate:
            raise _error(
                _core.ArgumentError,
                "array.scatter.gradient",
                f"scatter of a Tensor of shape {x.shape} replaces elements, which has no gradient here",
                help="pass accumulate=True, or detach",
            )
        x = x if _is_tensor(x) else _core.Tensor(x, requires_grad=False)
        values = values if _is_tensor(values) else _core.Tensor(values, requires_grad=False)
        shape = (*broadcast_shapes(*[p.shape for p in places]), *x.shape[len(places) :])
        return _core._scatter_add_tensor(x, places, values.broadcast_to(shape))
    out = x.copy()
    _core._scatter(out, places, _array(values), accumulate)
    return out


def topk(x, k, /, *, axis=-1, largest=True, sorted=True):
    """The k largest (smallest) elements along an axis in order, and their positions; sorted=False leaves the order open, and it is the same here."""
    axis = _axis(axis, x.ndim, "topk")
    if not 0 <= k <= x.shape[axis]:
        raise _error(
            _core.ArgumentError,
            "array.topk.count",
            f"topk of {k} elements along axis {axis} of shape {x.shape}",
            help="ask for 0 to as many as the axis has",
        )
    data = x.data if _is_tensor(x) else x
    order = _core._topk(data, k, axis, largest)
    return topk_result(take_along_axis(x, order, axis=axis), order)


def argmax(x, /, *, axis=None, keepdims=False):
    """Position of the largest element; the first of equals."""
    return _core._arg_reduce(True, _array(x), axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Position of the smallest element; the first of equals."""
    return _core._arg_reduce(False, _array(x), axis, keepdims)


def nonzero(x, /):
    """Positions of the elements that are not zero, one array for each axis."""
    return tuple(_core._nonzero(_array(x)))


def _searched_rows(x1, x2, right):
    """Row by row: how many of x1 come before each of x2 when both are sorted together, equal ones in the order that the side means."""
    if x1.shape[:-1] != x2.shape[:-1]:
        raise _error(
            _core.ShapeError,
            "array.searchsorted.rows",
            f"searchsorted of {x2.shape} in rows of {x1.shape}",
            help="give both the same axes before the last, or one sorted vector",
        )
    both = concat([x1, x2] if right else [x2, x1], axis=-1)
    place = lambda x: argsort(argsort(x, axis=-1), axis=-1)  # noqa: E731
    at = place(both)
    at = at[..., x1.shape[-1] :] if right else at[..., : x2.shape[-1]]
    return at - place(x2)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where the elements of x2 would go in the sorted x1; of x1 with several axes each row of x2 in the row of x1 beside it."""
    if side not in ("left", "right"):
        raise _error(
            _core.ArgumentError,
            "array.searchsorted.side",
            f"side is {_shown(side)}, legal: 'left', 'right'",
            help="leave side out, which is 'left'",
        )
    if getattr(x1, "ndim", 1) > 1 and getattr(x2, "ndim", 0) == x1.ndim:
        x1, x2 = _array(x1), _array(x2)
        x1 = x1 if sorter is None else take_along_axis(x1, sorter, axis=-1)
        return _searched_rows(x1, x2, side == "right")
    if sorter is not None:
        x1 = take(x1, sorter, axis=0)
    return _core._searchsorted(_array(x1), _array(x2), side == "right")


@_direct(_core._direct_sort)
def sort(x, /, *, axis=-1, descending=False, stable=True, kind=None):
    """A sorted copy; NaN last. Every sort is stable: `kind` is NumPy's choice of a method, which changes nothing."""
    x = x if _is_tensor(x) else _array(x)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, axis)
    if isinstance(axis, _Dim):
        return sort_result(*x.sort(int(axis), descending))
    return (_core._sort_tensor if _is_tensor(x) else _core._sort)(x, axis, descending)


@_direct(_core._direct_argsort)
def argsort(x, /, *, axis=-1, descending=False, stable=True, kind=None):
    """Positions that would sort the array; NaN last. Every sort is stable, whatever NumPy's `kind`."""
    x = _array(x)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, axis)
    return _core._argsort(x, axis, descending)


sort_result = _namedtuple("sort_result", "values indices")
topk_result = _namedtuple("topk_result", "values indices")
unique_all_result = _namedtuple("unique_all_result", "values indices inverse_indices counts")


unique_counts_result = _namedtuple("unique_counts_result", "values counts")


unique_inverse_result = _namedtuple("unique_inverse_result", "values inverse_indices")


def unique_all(x, /):
    """Distinct elements with first positions, inverse positions and counts; every NaN is distinct."""
    flat = reshape(x, (-1,))
    n = flat.size
    if n == 0:
        none = empty(0, dtype=_int64, device=x.device)
        return unique_all_result(flat.copy(), none, none.reshape(x.shape), none)
    order = argsort(flat)
    ordered = take(flat, order, axis=0)
    fresh = _fresh(ordered)
    bounds = nonzero(fresh)[0]
    starts = bounds[:-1]
    values = take(ordered, starts, axis=0)
    inverse = empty(n, dtype=_int64, device=x.device)
    inverse[order] = cumulative_sum(fresh[:-1].astype(_int64)) - 1
    return unique_all_result(
        values, take(order, starts, axis=0), inverse.reshape(x.shape), bounds[1:] - starts
    )


def _has_runs(ordered):
    """Has its device kernels that look for runs of equal elements? Complex numbers are compared by operations on arrays."""
    return ordered.device.limits.get("threads_per_block", 0) and ordered.dtype.kind != "c"


def _fresh(ordered):
    """Where a value differs from the one before, and one place behind the last."""
    if ordered.device.host_accessible or _has_runs(ordered):
        return _core._run_starts(ordered)
    fresh = ones(ordered.size + 1, dtype=_bool, device=ordered.device)
    fresh[1:-1] = ordered[1:] != ordered[:-1]
    return fresh


def run_bounds(ordered):
    """Where runs of equal elements begin, then the number of elements."""
    if _has_runs(ordered):
        return _core._run_bounds(ordered)
    return nonzero(_fresh(ordered))[0]


def run_values(ordered):
    """The first element of each run of equal ones."""
    if ordered.device.host_accessible or _has_runs(ordered):
        return _core._run_values(ordered)
    return ordered[_fresh(ordered)[:-1]]


def unique_counts(x, /):
    """Distinct elements and how often each occurs."""
    if x.size == 0:
        full_result = unique_all(x)
        return unique_counts_result(full_result.values, full_result.counts)
    ordered = sort(reshape(x, (-1,)))
    bounds = run_bounds(ordered)
    starts = bounds[:-1]
    return unique_counts_result(take(ordered, starts, axis=0), bounds[1:] - starts)


def unique_inverse(x, /):
    """Distinct elements and the positions that rebuild x."""
    full_result = unique_all(x)
    return unique_inverse_result(full_result.values, full_result.inverse_indices)


def unique_values(x, /):
    """Distinct elements."""
    return unique_all(x).values if x.size == 0 else run_values(sort(reshape(x, (-1,))))


def isin(x1, x2, /, assume_unique=False, invert=False):
    """Which elements of x1 occur in x2? One of them may be a number; it is compared as `==` does it.

    assume_unique changes nothing: no way here is quicker for elements that differ.
    """
    number = [not hasattr(x, "shape") and not hasattr(x, "__len__") for x in (x1, x2)]
    if number[1]:
        found = _array(x1) == x2
    elif number[0]:
        found = _any(_array(x2) == x1)
    elif (x2 := _array(x2)).size == 0:
        found = zeros(_array(x1).shape, dtype=_bool, device=x2.device)
    elif (x1 := _array(x1)).device.host_accessible and "c" not in x1.dtype.kind + x2.dtype.kind:
        found = _core._is_in(x1, x2)
    else:
        x2 = sort(reshape(x2, (-1,)))
        at = _row("minimum")(searchsorted(x2, x1), x2.size - 1)
        found = reshape(take(x2, reshape(at, (-1,)), axis=0), x1.shape) == x1
    return ~found if invert else found


def repeat(x, repeats, /, *, axis=None):
    """Each element several times."""
    if type(repeats) is int and repeats >= 0 and isinstance(x, _core.NDArray):
        return _core._repeat(x, repeats, axis)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = _axis(axis, x.ndim, "repeat")
    n = x.shape[axis]
    if isinstance(repeats, int) and repeats < 0:
        raise _error(
            _core.ArgumentError,
            "array.repeat.negative",
            f"an element cannot be repeated {repeats} times",
            help="repeat 0 or more times",
        )
    if isinstance(repeats, int):
        index = (
            arange(n * repeats, device=x.device) // repeats
            if repeats
            else empty(0, dtype=_int64, device=x.device)
        )
    else:
        counts = broadcast_to(astype(asarray(repeats), _int64), (n,))
        least, wanted = (int(counts.min()), float(counts.astype("float64").sum())) if n else (0, 0)
        if least < 0:
            raise _error(
                _core.ArgumentError,
                "array.repeat.negative",
                f"an element cannot be repeated {least} times",
                help="repeat 0 or more times",
            )
        if wanted >= 2**62:
            raise _error(
                _core.ArgumentError,
                "array.size.overflow",
                f"repeat to about {wanted:.3g} entries: more than 64 bits can count bytes of",
                help="repeat fewer times",
            )
        if counts.device.host_accessible:
            index = _core._repeat_places(counts).to(x.device)
        else:
            ends = cumulative_sum(counts) if n else counts
            total = int(ends[n - 1]) if n else 0
            index = searchsorted(ends, arange(total, device=x.device), side="right")
    return take(x, index, axis=axis)


__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "isin",
    "nonzero",
    "repeat",
    "scatter",
    "topk",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]

_publish(__name__)
