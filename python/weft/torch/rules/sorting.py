# SPDX-License-Identifier: Apache-2.0
"""Order and running values: sorts, the largest k, positions in a sorted row, running products and extrema."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import HALVES, Unsupported, array, as_type


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
def _sort(c, x, dim=-1, descending=False):
    return _sorted(x, dim, descending)


@array("sort.stable")
def _stable(c, x, *, stable=None, dim=-1, descending=False):
    return _sorted(x, dim, descending)


@array("topk.default")
def _topk(c, x, k, dim=-1, largest=True, sorted=True):
    dim = _axis(x, dim)
    if "float" not in c.dtype or not k:
        raise Unsupported("which of equal elements come first is torch's choice")
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
    if len(edges.shape) != 1 or sorter is not None or not edges.size or not values.size:
        raise Unsupported("a search in several rows")
    if edges.dtype != values.dtype:
        raise Unsupported("a search among elements of another type")
    right = right if side is None else side == "right"
    found = _core._searchsorted(edges, values.reshape((-1,)), bool(right))
    return as_type(found.reshape(c.shape), c.dtype)


@array("cumprod.default")
def _cumprod(c, x, dim, *, dtype=None):
    if not x.ndim:
        raise Unsupported("a running product of a number")
    return _core._scan("prod", as_type(x, c.dtype), dim % x.ndim, c.dtype)


@array("logcumsumexp.default")
def _logcumsumexp(c, x, dim):
    axis = _axis(x, dim)
    return as_type(
        weft.logcumsumexp(as_type(x, "float32") if c.dtype in HALVES else x, axis), c.dtype
    )


@array("kthvalue.default")
def _kth(c, x, k, dim=-1, keepdim=False):
    axis = _axis(x, dim)
    if "float" not in c.dtype:
        raise Unsupported("which of equal elements is found is torch's choice")
    place = _core._argsort(x, axis, False)[(slice(None),) * axis + (slice(k - 1, k),)]
    found = _core._take_along_axis(x, place, axis)
    return found.reshape(c.shape), as_type(place, "int64").reshape(c.shape)


@array("histc.default")
def _histogram(c, x, bins=100, min=0, max=0):
    if min == max or "float" not in c.dtype or not x.size:
        raise Unsupported("limits that the data decides")
    x = x.reshape((-1,))
    place = as_type(weft.floor((x - min) * (bins / (max - min))), "int64")
    inside = (x >= min) & (x <= max)
    place = weft.clip(weft.where(inside, place, 0), 0, bins - 1)
    out = weft.zeros((bins,), dtype=c.dtype, device=x.device)
    _core._scatter(out, [place], as_type(inside, c.dtype), True)
    return out
