# SPDX-License-Identifier: Apache-2.0
"""Distinct elements, sets of elements, and elements picked by conditions, by NumPy's names."""

from __future__ import annotations

import weft

from .._errors import error as _error
from .._namespace.indexing import inside, run_bounds, run_values
from .common import axis_of, beside, plain, refused, value

__all__ = [
    "select",
    "choose",
    "compress",
    "extract",
    "flatnonzero",
    "intersect1d",
    "piecewise",
    "place",
    "put",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_consecutive",
]


def unique(
    x,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    sorted=True,
    equal_nan=False,
):
    """The distinct elements in ascending order; with them, as asked, the first position of each, each element's place, how often.

    axis: the distinct entries along it, in the order of their elements. equal_nan=True: all NaN are one element, as NumPy has it unless told otherwise;
    they are as many as there are in the array standard and in PyTorch.
    """
    x = plain(x)
    if equal_nan and axis is None and x.dtype.kind in "fc":
        return _unique_with_nan(x, return_index, return_inverse, return_counts)
    if axis is not None:
        return _unique_entries(x, axis_of(x, axis), return_index, return_inverse, return_counts)
    if not (return_index or return_inverse or return_counts):
        return weft.unique_values(x)
    found = weft.unique_all(x)
    out = [found.values]
    out += [found.indices] if return_index else []
    out += [found.inverse_indices] if return_inverse else []
    out += [found.counts] if return_counts else []
    return tuple(out)


def _unique_with_nan(x, return_index, return_inverse, return_counts):
    """unique, where all NaN, which are the last elements, are one."""
    found = weft.unique_all(x)
    numbers = int(weft.sum(~weft.isnan(found.values)))
    size = min(numbers + 1, found.values.shape[0])
    if not (return_index or return_inverse or return_counts):
        return found.values[:size]
    counts = found.counts[:size]
    if size > numbers:
        counts = weft.concat([counts[:numbers], weft.sum(found.counts[numbers:]).reshape(1)])
    nan_at = found.indices[numbers:]
    first = found.indices[:size]
    if size > numbers:
        first = weft.concat([first[:numbers], weft.min(nan_at).reshape(1)])
    out = [found.values[:size]]
    out += [first] if return_index else []
    out += [weft.minimum(found.inverse_indices, size - 1)] if return_inverse else []
    out += [counts] if return_counts else []
    return tuple(out)


def _unique_entries(x, axis, return_index, return_inverse, return_counts):
    lines = weft.moveaxis(x, axis, 0)
    rows = lines.reshape(lines.shape[0], -1)
    n = rows.shape[0]
    order = weft.arange(n, device=x.device)
    for k in range(rows.shape[1] - 1, -1, -1):  # the last element first: each sort is stable
        order = weft.take(order, weft.argsort(weft.take(rows[:, k], order, axis=0)), axis=0)
    ordered = weft.take(rows, order, axis=0)
    fresh = weft.ones(n, dtype="bool", device=x.device)
    if n > 1:
        fresh[1:] = weft.any(ordered[1:] != ordered[:-1], axis=1)
    starts = weft.nonzero(fresh)[0]
    first = weft.take(order, starts, axis=0)
    out = [weft.take(x, first, axis=axis)]
    out += [first] if return_index else []
    if return_inverse:
        inverse = weft.zeros(n, dtype="int64", device=x.device)
        inverse[order] = weft.cumulative_sum(fresh.astype("int64"), axis=0) - 1
        out.append(inverse)
    if return_counts:
        end = weft.asarray([n], dtype=starts.dtype, device=x.device)
        out.append(weft.concat([starts[1:], end], axis=0) - starts)
    return out[0] if len(out) == 1 else tuple(out)


def _runs_of_entries(x, axis, return_inverse, return_counts):
    lines = weft.moveaxis(x, axis, 0)
    n = lines.shape[0]
    rows = lines.reshape(n, -1)
    fresh = weft.ones(n, dtype="bool", device=x.device)
    if n > 1:
        fresh[1:] = weft.any(rows[1:] != rows[:-1], axis=1)
    starts = weft.nonzero(fresh)[0]
    out = [weft.take(x, starts, axis=axis)]
    out += [weft.cumulative_sum(fresh.astype("int64"), axis=0) - 1] if return_inverse else []
    if return_counts:
        ends = weft.concat([starts[1:], weft.asarray([n], dtype=starts.dtype, device=x.device)])
        out += [ends - starts]
    return out[0] if len(out) == 1 else tuple(out)


def unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal elements, or of equal entries along an axis; with them, as asked, each one's run and the runs' lengths."""
    x = plain(x)
    if dim is not None:
        return _runs_of_entries(x, axis_of(x, dim), return_inverse, return_counts)
    row = x.reshape(-1)
    if not (return_inverse or return_counts):
        return run_values(row) if row.size else row.copy()
    none = weft.zeros((1,), dtype="int64", device=row.device)
    bounds = run_bounds(row) if row.size else none
    starts = bounds[:-1]
    out = [weft.take(row, starts, axis=0)]
    if return_inverse:
        number = weft.arange(starts.size, device=row.device)
        out.append(weft.repeat(number, bounds[1:] - starts).reshape(tuple(x.shape)))
    if return_counts:
        out.append(bounds[1:] - starts)
    return tuple(out)


def intersect1d(x1, x2, assume_unique=False, return_indices=False):
    """What is in both, ascending, each once. return_indices=True: with the first positions in both."""
    if return_indices:
        both = intersect1d(x1, x2)
        places = []
        for x in (x1, x2):
            found, first = unique(beside(x, both), return_index=True)
            places.append(weft.take(first, weft.searchsorted(found, both), axis=0))
        return (both, *places)
    a = weft.unique_values(plain(x1))
    b = weft.unique_values(plain(beside(x2, a)))
    return a[weft.isin(a, b)] if b.size else a[:0]


def union1d(x1, x2):
    """What is in one of both, ascending, each once."""
    x1 = plain(x1)
    return weft.unique_values(
        weft.concat([x1.reshape(-1), plain(beside(x2, x1)).reshape(-1)], axis=0)
    )


def setdiff1d(x1, x2, assume_unique=False):
    """What is in the first and not in the second, ascending, each once."""
    a = weft.unique_values(plain(x1))
    b = plain(beside(x2, a))
    return a[~weft.isin(a, b)] if b.size else a


def setxor1d(x1, x2, assume_unique=False):
    """What is in one of both alone, ascending, each once."""
    x1 = plain(x1)
    x2 = plain(beside(x2, x1))
    return union1d(setdiff1d(x1, x2), setdiff1d(x2, x1))


def flatnonzero(x):
    """The positions in the row of all elements of those that are not 0."""
    return weft.nonzero(plain(x).reshape(-1))[0]


def extract(condition, x):
    """The elements of x, in a row, where the condition is not 0."""
    x = value(x)
    return x.reshape(-1)[plain(beside(condition, x)).reshape(-1).astype("bool")]


def compress(condition, x, axis=None):
    """The entries along an axis for which the condition, a vector, is not 0; of the elements in a row when axis is None."""
    x = value(x)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))
    at = weft.nonzero(plain(condition))[0]
    return weft.take(x, at.to(x.device), axis=axis)


def choose(index, choices, mode="raise"):
    """Element by element that of choices[index]; mode: "raise", "wrap" or "clip" for positions beyond them."""
    index = plain(index)
    stacked = weft.broadcast_arrays(*(beside(c, index) for c in choices))
    n = len(stacked)
    if (
        mode == "raise"
        and index.size
        and not (0 <= int(weft.min(index)) and int(weft.max(index)) < n)
    ):
        raise refused(
            "array.choose.index",
            f"a position outside of {n} choices",
            f"from 0 to {n - 1}, or mode='wrap' or 'clip'",
        )
    index = index if mode == "raise" else inside(index, n, mode, "choose")
    out = stacked[0]
    for k in range(1, n):
        out = weft.where(index == k, stacked[k], out)
    return weft.broadcast_to(out, tuple(weft.broadcast_arrays(index, plain(stacked[0]))[0].shape))


def _set(x, name):
    if not isinstance(x, weft.NDArray):
        raise refused(
            f"array.{name}.target",
            f"{name} into {type(x).__name__}",
            "an array, whose elements change",
        )
    return x


def select(input, dim=None, index=None, default=0, *, condlist=None, choicelist=None):
    """The entry at a position of an axis: select(x, dim, index), as in PyTorch. Of a list of masks and a list of values, the first value
    whose mask is true, `default` where none is: select(masks, values, default), as in NumPy."""
    if condlist is None and not isinstance(input, (list, tuple)):
        return value(input).select(dim, index)
    masks = list(input if condlist is None else condlist)
    values = list(dim if choicelist is None else choicelist)
    default = default if index is None else index
    if len(masks) != len(values) or not masks:
        raise refused(
            "array.select.count",
            f"{len(masks)} masks and {len(values)} values",
            "as many of each, one at least",
        )
    out = default
    for mask, one in reversed(list(zip(masks, values))):
        out = weft.where(value(mask).astype("bool"), one, out)
    return out


def put(x, index, values):
    """Writes values, again from the first where they end, at positions in the row of x's elements; an array changes, of a tensor a copy is returned."""
    if isinstance(x, weft.Tensor):  # PyTorch's is a copy
        return x.put(index, values)
    x = _set(x, "put")
    index = plain(beside(index, x)).reshape(-1)
    values = plain(beside(values, x)).astype(x.dtype).reshape(-1)
    if not index.size:
        return
    n = x.size
    low, high = int(weft.min(index)), int(weft.max(index))
    if low < -n or high >= n:
        raise _error(
            weft.IndexError,
            "array.position.range",
            f"positions {low} to {high} of {n} elements",
            [f"legal: {-n} to {n - 1}"],
        )
    repeated = weft.tile(values, (-(-index.size // values.size),))[: index.size]
    row = x.reshape(-1).copy()
    row[weft.where(index < 0, index + n, index)] = repeated
    x[...] = row.reshape(tuple(x.shape))


def place(x, mask, values):
    """Writes values in order, again from the first where they end, where the mask is true; x itself changes."""
    x = _set(x, "place")
    put(x, flatnonzero(plain(beside(mask, x))), values)


def piecewise(x, conditions, functions):
    """The function of the first list entry whose condition holds, or that number; one more function serves the rest, else 0."""
    x = value(x)
    conditions = [conditions] if not isinstance(conditions, (list, tuple)) else list(conditions)
    functions = list(functions)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise refused(
            "array.piecewise.count",
            f"{len(functions)} functions for {len(conditions)} conditions",
            "one for each condition, and one more for the rest",
        )
    rest = functions[len(conditions)] if len(functions) > len(conditions) else 0
    apply = lambda f: f(x) if callable(f) else f  # noqa: E731
    out = weft.zeros_like(plain(x)) + apply(rest)
    for c, f in zip(conditions, functions):
        out = weft.where(plain(beside(c, x)).astype("bool"), apply(f), out)
    return out.astype(x.dtype)
