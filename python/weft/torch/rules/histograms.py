# SPDX-License-Identifier: Apache-2.0
"""Counts of elements in bins: histc, histogram and histogramdd. On the host, where the data decides the limits."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import HALVES, Unsupported, array, as_type


def _check(x):
    if not x.size or str(x.dtype) in HALVES or "float" not in str(x.dtype):
        raise Unsupported("a histogram of nothing, of integers, or of 16-bit floats")
    if not x.device.host_accessible:
        raise Unsupported("limits that the host would have to read")


def _limits(x, low, high, around=0.5):
    """The ends of the bins: as given, or the smallest and the largest element; so much beyond them where they are equal."""
    if low == high == 0:
        low, high = float(weft.min(x)), float(weft.max(x))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise Unsupported("limits that are not finite")
    return (low - around, high + around) if low == high else (low, high)


@array("histc.default")
def _histc(c, x, bins=100, min=0, max=0):
    _check(x)
    x = x.reshape((-1,))
    low, high = _limits(x, min, max, around=1.0)
    inside = (x >= low) & (x <= high)
    place = (weft.where(inside, x, low) - low) * bins / (high - low)
    place = weft.clip(as_type(place, "int64"), 0, bins - 1)
    out = weft.zeros((bins,), dtype=c.dtype, device=x.device)
    _core._scatter(out, [place], as_type(inside, c.dtype), True)
    return out


def _equal_bins(low, high, bins, dtype):
    """The ends of equal bins, each half counted from its own end, as torch does."""
    low, high = (weft.asarray(v, dtype=dtype) for v in (low, high))
    step = (high - low) / bins
    at = weft.arange(bins + 1, dtype="int64")
    from_high = high - step * as_type(bins - at, dtype)
    return weft.where(at < (bins + 1) // 2, low + step * as_type(at, dtype), from_high)


def _edges(points, bins, limits):
    """The ends of the bins of each column of points (n, d)."""
    out = []
    for k, count in enumerate(bins):
        low, high = (0, 0) if limits is None else limits[2 * k : 2 * k + 2]
        low, high = _limits(points[:, k], low, high)
        out.append(_equal_bins(low, high, count, str(points.dtype)))
    return out


def _counted(c, points, edges, weight, density):
    """Counts of points (n, d) in a grid of bins, whose last ones have both ends; with density over their sum and sizes."""
    sizes = [e.shape[0] - 1 for e in edges]
    at, inside = 0, None
    for k, (e, n) in enumerate(zip(edges, sizes)):
        x = points[:, k].copy()
        place = as_type(_core._searchsorted(e, x, True), "int64") - 1
        fits = (x >= e[0]) & (x <= e[n])
        at = at * n + weft.clip(place, 0, n - 1)
        inside = fits if inside is None else inside & fits
    counted = as_type(inside, c.dtypes[0])
    if weight is not None:
        counted = weft.where(inside, weight.reshape((-1,)), 0.0)
    out = weft.zeros((math.prod(sizes),), dtype=c.dtypes[0])
    _core._scatter(out, [at], counted, True)
    out = out.reshape(tuple(sizes))
    if density:
        out = out / weft.sum(out)
        for k, e in enumerate(edges):
            out = out / (e[1:] - e[:-1]).reshape((-1, *(1,) * (len(edges) - 1 - k)))
    return out


def _row(x):
    _check(x)
    return x.reshape((-1, 1))


def _points(x):
    _check(x)
    return x.reshape((-1, x.shape[-1]))


@array("histogram.bin_ct")
def _histogram(c, x, bins=100, *, range=None, weight=None, density=False):
    points = _row(x)
    edges = _edges(points, [bins], range)
    return _counted(c, points, edges, weight, density), edges[0]


@array("histogram.bins_tensor")
def _histogram_between(c, x, bins, *, weight=None, density=False):
    return _counted(c, _row(x), [bins], weight, density), bins.copy()


@array("_histogramdd_bin_edges.default")
def _edges_of_points(c, x, bins, *, range=None, weight=None, density=False):
    return _edges(_points(x), bins, range)


@array("_histogramdd_from_bin_cts.default")
def _histogram_of_points(c, x, bins, *, range=None, weight=None, density=False):
    points = _points(x)
    return _counted(c, points, _edges(points, bins, range), weight, density)


@array("_histogramdd_from_bin_tensors.default")
def _histogram_of_points_between(c, x, bins, *, weight=None, density=False):
    return _counted(c, _points(x), bins, weight, density)
