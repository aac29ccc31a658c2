# SPDX-License-Identifier: Apache-2.0
"""Sums over what is no NaN, histograms, covariances."""

from __future__ import annotations

import math
import operator

import weft

from .. import _core
from .._boundary import direct
from .._core import NDArray, Tensor
from .._dispatch import whole
from .._pointwise import widened
from .common import axis_of, beside, plain, real, refused, value

__all__ = [
    "average",
    "bucketize",
    "corrcoef",
    "cov",
    "digitize",
    "histc",
    "histogram",
    "histogram2d",
    "nanargmax",
    "nanargmin",
    "nancumsum",
    "nanmax",
    "nanmin",
    "nanprod",
    "nanstd",
    "nanvar",
    "ptp",
    "std_mean",
    "var_mean",
]


def average(x, axis=None, weights=None, returned=False, *, keepdims=False):
    """The mean, weighted; weights have x's shape or, with an axis, its extent. returned=True: with the sum of the weights."""
    x = value(x)
    if weights is None:
        mean = real(weft.mean(real(x), axis=axis, keepdims=keepdims))
        return (mean, weft.full_like(mean, x.size / max(mean.size, 1))) if returned else mean
    w = beside(weights, x)
    if tuple(w.shape) != tuple(x.shape):
        if axis is None or w.ndim != 1 or w.shape[0] != x.shape[axis_of(x, axis)]:
            raise refused(
                "array.average.weights",
                f"weights of shape {tuple(w.shape)} for {tuple(x.shape)}",
                "weights have the array's shape, or one axis is named and they have its extent",
            )
        w = w.reshape(tuple(-1 if i == axis_of(x, axis) else 1 for i in range(x.ndim)))
    along = {"axis": axis, "keepdims": keepdims}
    total = real(weft.sum(weft.broadcast_to(w, tuple(x.shape)), **along))
    mean = weft.sum(x * w, **along) / total
    return (mean, total) if returned else mean


def ptp(x, axis=None, keepdims=False):
    """The largest less the smallest."""
    return weft.max(x, axis=axis, keepdims=keepdims) - weft.min(x, axis=axis, keepdims=keepdims)


def var_mean(x, axis=None, correction=1, keepdims=False):
    """(variance, mean); the divisor of the variance is the count less `correction`."""
    x = value(x)
    return weft.var(x, axis=axis, correction=correction, keepdims=keepdims), weft.mean(
        x, axis=axis, keepdims=keepdims
    )


def std_mean(x, axis=None, correction=1, keepdims=False):
    """(standard deviation, mean); the divisor of the variance is the count less `correction`."""
    x = value(x)
    return weft.std(x, axis=axis, correction=correction, keepdims=keepdims), weft.mean(
        x, axis=axis, keepdims=keepdims
    )


def _with(x, number):
    x = value(x)
    if x.dtype.kind == "f":
        return weft.replace_nan(x, number)
    return weft.where(weft.isnan(plain(x)), number, x) if x.dtype.kind == "c" else x


def _there(x, where, dtype=None):
    """x as `dtype`, with NaN where it does not count; without NaN in types that have none, as it is."""
    x = value(x) if dtype is None else value(x).astype(dtype)
    if where is True or where is None:
        return x
    return weft.where(where, real(x), math.nan)


def _all_nan(x, axis, keepdims):
    return weft.all(weft.isnan(plain(value(x))), axis=axis, keepdims=keepdims)


def _extreme_number(extreme, x, nothing, axis, keepdims):
    """max or min of what is no NaN; `nothing` is what no number is beyond."""
    x = value(x)
    if isinstance(x, NDArray) and x.device.host_accessible:
        if x.size and x.dtype.name in ("float32", "float64"):
            out = _core._extreme_of_numbers(nothing < 0, x, axis, keepdims)
        else:
            out = extreme(_with(x, nothing), axis=axis, keepdims=keepdims)
        if not weft.any(out == nothing):
            return out
    else:
        out = extreme(_with(x, nothing), axis=axis, keepdims=keepdims)
    return weft.where(_all_nan(x, axis, keepdims), math.nan, out) if x.dtype.kind == "f" else out


def _joined_with(out, initial, join):
    return out if initial is None else join(weft.where(weft.isnan(plain(out)), initial, out), initial)  # fmt: skip


@direct(_core._direct_nanmax)
def nanmax(x, axis=None, keepdims=False, *, where=None, initial=None):
    """The largest of what is no NaN (and of `initial`) where `where` holds; NaN where there is nothing else."""
    out = _extreme_number(weft.max, _there(x, where), -math.inf, axis, keepdims)
    return _joined_with(out, initial, weft.maximum)


@direct(_core._direct_nanmin)
def nanmin(x, axis=None, keepdims=False, *, where=None, initial=None):
    """The smallest of what is no NaN (and of `initial`) where `where` holds; NaN where there is nothing else."""
    out = _extreme_number(weft.min, _there(x, where), math.inf, axis, keepdims)
    return _joined_with(out, initial, weft.minimum)


def nanprod(x, axis=None, keepdims=False, *, dtype=None, where=None, initial=None):
    """The product of what is no NaN, where `where` holds."""
    x = value(x) if dtype is None else value(x).astype(dtype)
    return weft.prod(_with(x, 1.0), axis=axis, keepdims=keepdims, where=where, initial=initial)


def nancumsum(x, axis=None, *, dtype=None):
    """Running sums in which NaN counts as 0; of all elements in a row when axis is None."""
    x = _with(x, 0.0)
    return weft.cumulative_sum(
        x.reshape(-1) if axis is None else x, axis=0 if axis is None else axis, dtype=dtype
    )


def nanvar(x, axis=None, correction=0, keepdims=False, *, dtype=None, where=None):
    """The variance of what is no NaN, where `where` holds; the divisor is their count less `correction`."""
    x = _there(x, where, dtype)
    x = x if x.dtype.kind == "c" else real(x)
    return _rounded(_squares(widened(x), axis, correction, keepdims), plain(x).real.dtype)


def _squares(x, axis, correction, keepdims):
    there = ~weft.isnan(plain(x))
    count = weft.sum(there.astype(x.dtype), axis=axis, keepdims=True)
    mean = weft.sum(_with(x, 0.0), axis=axis, keepdims=True) / count
    away = weft.where(there, x - mean, 0.0)
    squares = weft.real(away * weft.conj(away)) if x.dtype.kind == "c" else away * away
    total = weft.sum(squares, axis=axis, keepdims=keepdims)
    free = weft.sum(there.astype(squares.dtype), axis=axis, keepdims=keepdims) - correction
    return total / weft.where(free > 0, free, math.nan)


def _rounded(x, dtype):
    return x if x.dtype == dtype else x.astype(dtype)


def nanstd(x, axis=None, correction=0, keepdims=False, *, dtype=None, where=None):
    """The standard deviation of what is no NaN, where `where` holds; the divisor of the variance is their count less `correction`."""
    x = _there(x, where, dtype)
    x = x if x.dtype.kind == "c" else real(x)
    squares = _squares(widened(x), axis, correction, keepdims)
    return _rounded(weft.sqrt(squares), plain(x).real.dtype)


def _nan_position(name, x, axis, keepdims, number):
    x = plain(x)
    if x.dtype.kind == "f" and bool(weft.any(_all_nan(x, axis, False))):
        raise refused(
            f"array.{name}.nan", f"{name} of a line of NaN alone", "each line has a number"
        )
    return getattr(weft, name[3:])(_with(x, number), axis=axis, keepdims=keepdims)


def nanargmax(x, axis=None, keepdims=False):
    """The position of the largest of what is no NaN. Raises ArgumentError for a line of NaN alone."""
    return _nan_position("nanargmax", x, axis, keepdims, -math.inf)


def nanargmin(x, axis=None, keepdims=False):
    """The position of the smallest of what is no NaN. Raises ArgumentError for a line of NaN alone."""
    return _nan_position("nanargmin", x, axis, keepdims, math.inf)


def cov(
    x, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, correction=None
):
    """The covariances of the rows (of the columns with rowvar=False); the divisor is the count less ddof (1; 0 with bias).

    fweights: how often each observation occurs, whole numbers; aweights: what it weighs. Both have one axis of the observations' extent.
    """
    x = real(x)
    x = x.reshape(1, -1) if x.ndim < 2 else x if rowvar else x.mT
    if y is not None:
        y = real(beside(y, x))
        x = weft.concat([x, y.reshape(1, -1) if y.ndim < 2 else y if rowvar else y.mT], axis=0)
    free = correction if correction is not None else ddof if ddof is not None else 0 if bias else 1
    weights, count = _observation_weights(x, fweights, aweights, free)
    if weights is None:
        away = x - weft.mean(x, axis=1, keepdims=True)
    else:
        away = x - weft.sum(x * weights, axis=1, keepdims=True) / weft.sum(weights)
    conjugate = weft.conj(away) if x.dtype.kind == "c" else away
    out = away @ (conjugate if weights is None else conjugate * weights).mT / count
    return out.reshape(()) if out.shape == (1, 1) else out


def _observation_weights(x, fweights, aweights, free):
    """The weights of observations (None: all 1) and what their sum of squares is divided by."""
    given = {"fweights": fweights, "aweights": aweights}
    parts = {k: beside(w, x) for k, w in given.items() if w is not None}
    for name, w in parts.items():
        if tuple(w.shape) != (x.shape[1],):
            raise refused(
                "array.cov.weights",
                f"{name} of shape {tuple(w.shape)} for {x.shape[1]} observations",
                "one axis, a weight for each observation",
            )
    if not parts:
        return None, x.shape[1] - free
    weights = math.prod(parts.values())
    total = weft.sum(weights)
    if "aweights" not in parts:
        return weights, total - free
    return weights, total - free * weft.sum(weights * parts["aweights"]) / total


def corrcoef(x, y=None, rowvar=True):
    """The correlation coefficients of the rows (of the columns with rowvar=False), between -1 and 1; of complex numbers both parts are."""
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    spread = weft.sqrt(weft.real(c.diagonal()))
    out = c / spread.reshape(-1, 1) / spread.reshape(1, -1)
    if out.dtype.kind != "c":
        return weft.clip(out, -1, 1)
    return weft.complex(*(weft.clip(part(out), -1, 1) for part in (weft.real, weft.imag)))


def _edges(x, bins, range):
    """The ends of the bins."""
    if isinstance(bins, str):
        return weft.histogram_bin_edges(x, bins, range)
    bins = (
        operator.index(bins)
        if hasattr(bins, "__index__") and not getattr(bins, "ndim", 0)
        else bins
    )
    if not isinstance(bins, int):
        return beside(bins, x)
    if bins < 1:
        raise refused("array.histogram.bins", f"{bins} bins", "one at least")
    if range is not None:
        low, high = map(float, range)
    else:
        low, high = (float(weft.min(x)), float(weft.max(x))) if x.size else (0.0, 1.0)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise refused(
            "array.histogram.range", f"a range from {low} to {high}", "finite and ascending"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    wide = x.dtype if x.dtype.kind == "f" and x.dtype.itemsize >= 4 else weft.asarray(0.0).dtype
    return weft.linspace(low, high, bins + 1, dtype=wide, device=x.device)


def _bins_of(x, edges):
    """The bin of each element, -1 for what lies in none; the last bin has both its ends."""
    count = edges.shape[0] - 1
    at = weft.searchsorted(edges, x.astype(edges.dtype), side="right").astype("int64") - 1
    at = weft.where(x.astype(edges.dtype) == edges[-1], count - 1, at)
    return weft.where((at >= count) | weft.isnan(x.astype(edges.dtype)), -1, at)


def _equal_bins(x, edges):
    """_bins_of equal bins: the place in proportion, put right where rounding took it beyond an end."""
    x, count = x.astype(edges.dtype), edges.shape[0] - 1
    low, high = float(edges[0]), float(edges[-1])
    scale, type = count / (high - low) if high > low else math.inf, weft.finfo(edges.dtype)
    # Too narrow or too wide a range for a proportion, or bins so narrow that rounding misses by more than one.
    narrow = (high - low) / count < 8 * type.eps * max(abs(low), abs(high))
    if narrow or not 0 < scale <= type.max or high - low > type.max:
        return _bins_of(x, edges)
    inside = (x >= low) & (x <= high)
    at = weft.where(inside, (x - low) * scale, 0.0).astype("int64")
    at = weft.minimum(at, count - 1)
    at = at - (x < edges[at]).astype("int64")
    at = at + ((x >= edges[at + 1]) & (at < count - 1)).astype("int64")
    return weft.where(inside, at, -1)


def _counted(at, count, weights):
    if weights is None and isinstance(at, NDArray) and at.device.host_accessible:
        return _core._histogram(at, count)
    inside = at >= 0
    place = weft.where(inside, at, 0)
    if weights is None:
        return weft.scatter(
            weft.zeros((count,), dtype="int64", device=at.device),
            (place,),
            inside.astype("int64"),
            accumulate=True,
        )
    w = weft.where(inside, plain(beside(weights, at)).reshape(-1), 0)
    return weft.scatter(
        weft.zeros((count,), dtype=w.dtype, device=at.device), (place,), w, accumulate=True
    )


@whole
def histogram(x, bins=10, range=None, density=False, weights=None):
    """(how many elements lie in each bin, the ends of the bins).

    bins: a number of equal ones between the smallest and the largest element, or `range`; or their ends. With density the counts over their sum and the
    bins' widths.
    """
    x = plain(x).reshape(-1)
    edges = _edges(x, bins, range)
    equal = isinstance(bins, (int, str))
    if equal and weights is None and isinstance(x, NDArray) and x.device.host_accessible:
        counts = _core._counts_in_bins(x.astype(edges.dtype, copy=False), edges)
    else:
        place = _equal_bins if equal else _bins_of
        counts = _counted(place(x, edges), edges.shape[0] - 1, weights)
    if density:
        widths = edges[1:] - edges[:-1]
        counts = counts.astype(edges.dtype) / widths / weft.sum(counts).astype(edges.dtype)
    return counts, edges


def histogram2d(x, y, bins=10, range=None, density=False, weights=None):
    """(counts, ends along x, ends along y) of points in a grid of bins."""
    x, y = plain(x).reshape(-1), plain(y).reshape(-1)
    one, two = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else (bins, bins)
    over, across = (None, None) if range is None else range
    ex, ey = _edges(x, one, over), _edges(y, two, across)
    rows, columns = ex.shape[0] - 1, ey.shape[0] - 1
    at, beside = _bins_of(x, ex), _bins_of(y, ey)
    both = weft.where((at < 0) | (beside < 0), -1, at * columns + beside)
    counts = _counted(both, rows * columns, weights).reshape(rows, columns)
    if density:
        area = (ex[1:] - ex[:-1]).reshape(-1, 1) * (ey[1:] - ey[:-1]).reshape(1, -1)
        counts = counts.astype(ex.dtype) / area / weft.sum(counts).astype(ex.dtype)
    else:
        counts = counts.astype(ex.dtype)
    return counts, ex, ey


def histc(x, bins=100, min=0, max=0):
    """Counts in equal bins from min to max, as floats; between the smallest and largest element where both are 0."""
    x = real(plain(x))
    counts, _ = histogram(x, bins, None if min == max == 0 else (min, max))
    return counts.astype(x.dtype)


def digitize(x, bins, right=False):
    """The bin of each element: how many of the ascending (or descending) ends are at most it; below it with right."""
    x = plain(x)
    bins = plain(beside(bins, x))
    count = bins.shape[0]
    falling = count > 1 and bool(bins[0] > bins[-1])
    if falling:
        return count - weft.searchsorted(
            weft.flip(bins, axis=0), x, side="right" if right else "left"
        ).astype("int64")
    return weft.searchsorted(bins, x, side="left" if right else "right").astype("int64")


def bucketize(x, boundaries, right=False):
    """The position of each element among ascending boundaries, as in PyTorch: after equal ones with right."""
    x = plain(x)
    return weft.searchsorted(
        plain(beside(boundaries, x)), x, side="right" if right else "left"
    ).astype("int64")
