# SPDX-License-Identifier: Apache-2.0
"""Order and running values: sorts, the largest k, positions in a sorted row, running products and extrema."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import HALVES, Unsupported, array, as_type, numbers_too


_MOST_ROWS = 4096  # that are searched one after another
_SORTED_IN_ORDER = (
    16  # elements of a row that torch's kernel sorts such that equal ones keep their order
)


def _axis(x, dim):
    if not x.ndim or not x.size:
        raise Unsupported("an order without axes or elements")
    return dim % x.ndim


def _nan_first(places, nan, axis):
    """Descending places, with NaN last as weft sorts, with NaN first, which torch takes for the largest."""
    if nan.device.host_accessible and not bool(weft.any(nan)):
        return places
    n = places.shape[axis]
    shape = [1] * places.ndim
    shape[axis] = n
    at = weft.arange(n, dtype="int64", device=places.device).reshape(tuple(shape))
    count = weft.sum(as_type(nan, "int64"), axis=axis, keepdims=True)
    return _core._take_along_axis(places, weft.where(at < count, at + n, at) - count, axis)


def _places(x, axis, descending):
    """Where the elements of sorted rows were."""
    places = _core._argsort(x, axis, bool(descending))
    return _nan_first(places, x != x, axis) if descending and "float" in str(x.dtype) else places


def _sorted(x, dim, descending):
    dim = _axis(x, dim)
    places = _places(x, dim, descending)
    return _core._take_along_axis(x, places, dim), as_type(places, "int64")


@array("sort.default")
@numbers_too
def _sort(c, x, dim=-1, descending=False):
    return _sorted(x, dim, descending)


@array("sort.stable")
@numbers_too
def _stable(c, x, *, stable=None, dim=-1, descending=False):
    return _sorted(x, dim, descending)


@array("topk.default")
@numbers_too
def _topk(c, x, k, dim=-1, largest=True, sorted=True):
    dim = _axis(x, dim)
    if not k:
        raise Unsupported("the largest none of a row")
    if "float" not in c.dtype:
        if not c.any_choice:
            raise Unsupported("which of equal elements come first is torch's choice")
        places = _core._argsort(x, dim, bool(largest))[(slice(None),) * dim + (slice(0, k),)]
        return _core._take_along_axis(x, places, dim), as_type(places, "int64")
    if not largest:
        places = _core._topk(x, k, dim, False)
    elif not x.device.host_accessible:
        # NaN counts as infinity while the largest are chosen, and comes before it then.
        places = _core._topk(weft.where(x != x, math.inf, x), k, dim, True)
        nan = _core._take_along_axis(x, places, dim)
        last = as_type(nan == nan, "int32")
        places = _core._take_along_axis(places, _core._argsort(last, dim, False), dim)
    elif bool(weft.any(x != x)):
        places = _places(x, dim, True)[(slice(None),) * dim + (slice(0, k),)]
    else:
        places = _core._topk(x, k, dim, True)
    return _core._take_along_axis(x, places, dim), as_type(places, "int64")


@array("searchsorted.Tensor", "bucketize.Tensor")
def _searchsorted(c, x, v, *, out_int32=False, right=False, side=None, sorter=None):
    edges, values = (v, x) if len(x.shape) != 1 and len(v.shape) == 1 else (x, v)
    if sorter is not None or not edges.size or not values.size:
        raise Unsupported("a search in rows that are not in order, or without elements")
    if edges.dtype != values.dtype:
        raise Unsupported("a search among elements of another type")
    right = bool(right if side is None else side == "right")
    if len(edges.shape) == 1:
        found = _core._searchsorted(edges, values.reshape((-1,)), right)
    else:  # row by row
        rows = edges.reshape((-1, edges.shape[-1])), values.reshape((-1, values.shape[-1]))
        if rows[0].shape[0] > _MOST_ROWS:
            raise Unsupported(f"a search in more than {_MOST_ROWS} rows")
        found = weft.concat([_core._searchsorted(e, v, right) for e, v in zip(*rows)])
    return as_type(found.reshape(c.shape), c.dtype)


@array("cumprod.default")
@numbers_too
def _cumprod(c, x, dim, *, dtype=None):
    if not x.ndim:
        raise Unsupported("a running product of a number")
    return _core._scan("prod", as_type(x, c.dtype), dim % x.ndim, c.dtype)


@array("logcumsumexp.default")
@numbers_too
def _logcumsumexp(c, x, dim):
    # As torch's kernel for the host: its gradient takes exponentials of differences of these logarithms.
    wide = "float64" if x.device.host_accessible else "float32" if c.dtype in HALVES else c.dtype
    return as_type(weft.logcumsumexp(as_type(x, wide), _axis(x, dim)), c.dtype)


@array("kthvalue.default")
@numbers_too
def _kth(c, x, k, dim=-1, keepdim=False):
    axis = _axis(x, dim)
    if "float" not in c.dtype and not c.any_choice:
        raise Unsupported("which of equal elements is found is torch's choice")
    place = _core._argsort(x, axis, False)[(slice(None),) * axis + (slice(k - 1, k),)]
    found = _core._take_along_axis(x, place, axis)
    return found.reshape(c.shape), as_type(place, "int64").reshape(c.shape)


def _median(x, axis, among_numbers):
    """The places of the lower middle of each row; NaN is last in order, and the median of a row that holds one."""
    n = x.shape[axis]
    places = _core._argsort(x, axis, False)
    nan = weft.sum(as_type(x != x, "int64"), axis=axis, keepdims=True)
    middle = weft.clip((n - nan - 1) // 2, 0, n - 1)
    if not among_numbers:
        middle = weft.where(nan > 0, n - nan, weft.full_like(nan, (n - 1) // 2))
    return _core._take_along_axis(places, middle, axis)


for _name in ("median", "nanmedian"):

    @numbers_too
    def _middles(c, x, dim=-1, keepdim=False, among_numbers=_name == "nanmedian"):
        axis = _axis(x, dim)
        if "float" not in c.dtypes[0] and not c.any_choice:
            raise Unsupported("which of equal elements is found is torch's choice")
        place = _median(x, axis, among_numbers)
        found = _core._take_along_axis(x, place, axis)
        return found.reshape(c.shapes[0]), as_type(place, "int64").reshape(c.shapes[1])

    def _middle(c, x, among_numbers=_name == "nanmedian"):
        if not x.size:
            raise Unsupported("the median of nothing")
        row = x.reshape((-1,))
        return _core._take_along_axis(row, _median(row, 0, among_numbers), 0).reshape(())

    array(f"{_name}.dim")(_middles)
    array(f"{_name}.default")(_middle)


for _name in ("cummax", "cummin"):

    @numbers_too
    def _running_extremum(c, x, dim, largest=_name == "cummax"):
        axis, step = _axis(x, dim), 1
        x = x.astype("uint8") if c.dtypes[0] == "bool" else x
        before, n = (slice(None),) * axis, x.shape[axis]
        at = weft.arange(n, dtype="int64", device=x.device).reshape((n, *(1,) * (x.ndim - axis - 1)))  # fmt: skip
        at = at.broadcast_to(x.shape)
        while (
            step < n
        ):  # each entry has the extremum of `step` entries up to it; of equal ones the last
            (a, b), (i, j) = (
                [v[(*before, part)] for part in (slice(n - step), slice(step, n))] for v in (x, at)
            )
            later = (b != b) | ((a == a) & ((b >= a) if largest else (b <= a)))
            grown = weft.where(later, b, a), weft.where(later, j, i)
            x, at = (
                weft.concat([v[(*before, slice(step))], g], axis=axis)
                for v, g in zip((x, at), grown)
            )
            step *= 2
        return [as_type(x, c.dtypes[0]), at]

    array(f"{_name}.default")(_running_extremum)


@array("mode.default")
@numbers_too
def _mode(c, x, dim=-1, keepdim=False):
    axis = _axis(x, dim)
    if c.wanted != {0} and x.shape[axis] > _SORTED_IN_ORDER and not c.any_choice:
        raise Unsupported("which of equal elements is found is torch's choice")
    if "float" in c.dtypes[0] and not c.any_choice and bool(weft.any(x != x)):
        raise Unsupported("NaN, which equals no element")
    found, place = weft.mode(x, axis)
    return found.reshape(c.shapes[0]), as_type(place, "int64").reshape(c.shapes[1])
