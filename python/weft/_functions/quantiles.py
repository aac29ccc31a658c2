# SPDX-License-Identifier: Apache-2.0
"""Quantiles, percentiles and medians by all methods of NumPy."""

from __future__ import annotations

import math

import weft

from .._core import shown
from .. import _core
from .._core import NDArray, Tensor
from .._dispatch import whole
from .common import axis_of, plain, real, refused, value

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile"]


@whole
def percentile(x, q, axis=None, keepdims=False, *, method="linear", weights=None):
    """The q-th percentile; q from 0 to 100, one number or several (a first axis).

    method, as in NumPy: "linear", "lower", "higher", "nearest" or "midpoint" of the two neighbours of place q (n - 1); or by another place: "inverted_cdf",
    "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased". weights, of x's shape or of one axis, go with "inverted_cdf".
    """
    return _quantiles(value(x), q, 100.0, axis, keepdims, "percentile", method, weights)


# Which of two neighbours of place q (n - 1) is taken, or what lies between them; the core's numbers for these.
_BETWEEN = {name: i for i, name in enumerate(("linear", "lower", "higher", "midpoint", "nearest"))}
# The place n q + a + q (1 - a - b) - 1 with proportion between the neighbours (Hyndman and Fan, 1996): a and b.
_PLACES = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
# Entries of the order itself.
_STEPS = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")


def _check_method(name, method):
    legal = (*_BETWEEN, *_PLACES, *_STEPS)
    if method not in legal:
        raise refused(f"array.{name}.method", f"{name} by method {shown(method)}", f"one of {', '.join(map(repr, legal))}")  # fmt: skip


def _place(method, q, n):
    """Where among n ordered entries the q-quantile lies; a fraction is the share of the entry behind. n: a number, or an array of such."""
    several = not isinstance(n, (int, float))
    floor, around = (weft.floor, weft.round) if several else (math.floor, round)
    flag = (lambda c: c.astype(n.dtype)) if several else float
    if method in _PLACES:
        a, b = _PLACES[method]
        place = n * q + (a + q * (1 - a - b)) - 1
    elif method in _STEPS:
        place = n * q - 1
        low, part = floor(place), place - floor(place)
        if method == "closest_observation":  # halves to the even place
            place = around(place)
        else:
            even = 0.5 if method == "averaged_inverted_cdf" else 0.0
            place = low + flag(part > 0) + even * flag(part == 0)
    else:
        place = q * (n - 1)
        low = floor(place)
        if method == "nearest":
            place = around(place)
        elif method != "linear":
            step = {"lower": 0.0, "higher": 1.0, "midpoint": 0.5}[method]
            place = low + step * flag(place > low)
    if several:
        return weft.maximum(weft.minimum(place, n - 1), 0.0)
    return float(max(min(place, n - 1), 0))


def _over_axes(x, axis, keepdims, f):
    """f(line of x, axis) over several axes joined into one."""
    axes = [axis_of(x, a) for a in axis]
    kept = [i for i in range(x.ndim) if i not in axes]
    order = (*kept, *axes)
    shape = tuple(x.shape[i] for i in kept)
    out = f(weft.permute_dims(x, order).reshape((*shape, -1)), len(kept))
    if not keepdims:
        return out
    lead = tuple(out.shape)[: out.ndim - len(kept)]
    return out.reshape((*lead, *(1 if i in axes else n for i, n in enumerate(x.shape))))


def _in_order(x, axis):
    """Sorted along an axis; of a tensor by positions, which its gradient goes back through."""
    if isinstance(x, NDArray):
        return weft.sort(x, axis=axis)
    return weft.take_along_axis(x, weft.argsort(plain(x), axis=axis), axis=axis)


def _selects(x):
    """Does the core select elements of it?"""
    return isinstance(x, NDArray) and x.device.host_accessible and x.dtype.kind == "f" and x.size


def _selected(x, shares, axis, keepdims, method="linear", skip_nan=False):
    """The quantiles of an array on the host, as a first axis."""
    line, at = (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))
    if method in _BETWEEN:
        out = _core._quantiles(line, shares, at, _BETWEEN[method], skip_nan)
    else:
        out = _selected_at(line, [_place(method, q, line.shape[at]) for q in shares], at, method)
    if not keepdims:
        return out
    kept = (1 if axis is None or i == at else n for i, n in enumerate(x.shape))
    return out.reshape((len(shares), *kept))


def _weighted(x, q, whole, axis, keepdims, name, method, weights):
    """The first entry of the order up to which the weights sum to the share q of all."""
    if method != "inverted_cdf":
        raise refused(f"array.{name}.method", f"{name} with weights by method {shown(method)}", "weights go with 'inverted_cdf'")  # fmt: skip
    if isinstance(axis, (tuple, list)):
        raise refused(f"array.{name}.weights", f"{name} with weights over axes {tuple(axis)}", "one axis, or all with axis=None")  # fmt: skip
    x, w = plain(value(x)), plain(weights)
    ndim, at = x.ndim, 0 if axis is None else axis_of(x, axis)
    if tuple(w.shape) != tuple(x.shape):
        if axis is None or w.ndim != 1 or w.shape[0] != x.shape[at]:
            raise refused(
                f"array.{name}.weights",
                f"weights of shape {tuple(w.shape)} for {tuple(x.shape)}",
                "weights have the array's shape, or one axis is named and they have its extent",
            )
        w = w.reshape(tuple(-1 if i == at else 1 for i in range(ndim)))
    w = weft.broadcast_to(w, tuple(x.shape)).astype("float64")
    if axis is None:
        x, w = x.reshape(-1), w.reshape(-1)
    order = weft.argsort(x, axis=at)
    ordered = weft.take_along_axis(x, order, axis=at)
    sums = weft.cumulative_sum(weft.take_along_axis(w, order, axis=at), axis=at)
    total = weft.sum(w, axis=at, keepdims=True)
    several = isinstance(q, (list, tuple)) or getattr(q, "ndim", 0) > 0
    numbers = (list(q) if isinstance(q, (list, tuple)) else plain(q).tolist()) if several else [q]
    out = []
    for k in numbers:
        before = (sums < total * (float(k) / whole)) | (sums == 0)
        place = weft.sum(before.astype("int64"), axis=at, keepdims=True)
        y = weft.take_along_axis(ordered, weft.minimum(place, x.shape[at] - 1), axis=at)
        if axis is None:
            y = y.reshape((1,) * ndim if keepdims else ())
        out.append(y if keepdims or axis is None else weft.squeeze(y, axis=at))
    return weft.stack(out, axis=0) if several else out[0]


def _selected_at(line, places, at, method):
    """Entries of the order of an array on the host, or what lies between two of them."""
    last = max(line.shape[at] - 1, 1)
    if method in _PLACES:
        return _core._quantiles(line, [p / last for p in places], at, _BETWEEN["linear"], False)
    # A place that division has moved by an ulp is still nearest to its entry, or between its two.
    near = [_BETWEEN["nearest" if p == int(p) else "midpoint"] for p in places]
    parts = [_core._quantiles(line, [p / last], at, how, False) for p, how in zip(places, near)]
    return parts[0] if len(parts) == 1 else weft.concat(parts, axis=0)


def _quantiles(x, q, whole, axis, keepdims, name, method="linear", weights=None):
    if weights is not None:
        return _weighted(x, q, whole, axis, keepdims, name, method, weights)
    if isinstance(axis, (tuple, list)):
        return _over_axes(
            x, axis, keepdims, lambda y, a: _quantiles(y, q, whole, a, False, name, method)
        )
    _check_method(name, method)
    x = real(x)
    several = isinstance(q, (list, tuple)) or getattr(q, "ndim", 0) > 0
    if isinstance(q, (list, tuple)) and any(isinstance(k, (list, tuple)) for k in q):
        q = weft.asarray(q, dtype="float64")
    if getattr(q, "ndim", 0) > 1:
        out = _quantiles(x, q.reshape(-1), whole, axis, keepdims, name, method)
        return out.reshape(*q.shape, *out.shape[1:])
    # A list stays one of Python's numbers: an array of them would be float32.
    numbers = (
        (list(q) if isinstance(q, (list, tuple)) else plain(q).tolist()) if several else [float(q)]
    )
    if any(not 0 <= k <= whole for k in numbers):
        raise refused(f"array.{name}.range", f"{name} {q}", f"from 0 to {whole:g}")
    if _selects(x):
        y = _selected(x, [k / whole for k in numbers], axis, keepdims, method)
        return y if several else y[0]
    ndim = x.ndim
    x, at = (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))
    ordered = _in_order(x, at)
    n = x.shape[at]
    if n == 0:
        empty = weft.full_like(weft.sum(x, axis=at, keepdims=True), math.nan)
        ordered, n = empty, 1
    out = []
    for k in numbers:
        place = _place(method, k / whole, n)
        low = int(place)
        entry = lambda i: ordered[(slice(None),) * at + (slice(i, i + 1),)]  # noqa: E731
        y = entry(low)
        if place > low:
            after = entry(low + 1)
            # Of two infinities there is no difference.
            y = weft.where(plain(y) == plain(after), y, y + (after - y) * (place - low))
        # NaN is last in order and makes the whole line NaN.
        y = weft.where(weft.isnan(plain(entry(n - 1))), math.nan, y)
        if axis is None:
            y = y.reshape((1,) * ndim if keepdims else ())
        out.append(y if keepdims or axis is None else weft.squeeze(y, axis=at))
    return weft.stack(out, axis=0) if several else out[0]


@whole
def nanquantile(x, q, axis=None, keepdims=False, *, method="linear"):
    """The q-quantile of what is no NaN, by a method of percentile; q from 0 to 1. NaN where there is nothing else."""
    return _nan_quantiles(x, q, 1.0, axis, keepdims, "nanquantile", method)


@whole
def nanpercentile(x, q, axis=None, keepdims=False, *, method="linear"):
    """The q-th percentile of what is no NaN, by a method of percentile; q from 0 to 100."""
    return _nan_quantiles(x, q, 100.0, axis, keepdims, "nanpercentile", method)


def _nan_quantiles(x, q, whole, axis, keepdims, name, method):
    if isinstance(q, (list, tuple)) or getattr(q, "ndim", 0) > 0:
        if isinstance(q, (list, tuple)):
            weft.asarray(q)  # refuses what is deeper than arrays, or more
        numbers = list(q) if isinstance(q, (list, tuple)) else plain(q).reshape(-1).tolist()
        if isinstance(q, (list, tuple)) and any(isinstance(k, (list, tuple)) for k in numbers):
            q = weft.asarray(q, dtype="float64")
            numbers = q.reshape(-1).tolist()
        out = weft.stack(
            [_nan_quantiles(x, k, whole, axis, keepdims, name, method) for k in numbers], axis=0
        )
        return out.reshape(*q.shape, *out.shape[1:]) if getattr(q, "ndim", 1) > 1 else out
    _check_method(name, method)
    x = real(x)
    if isinstance(axis, (tuple, list)):
        return _over_axes(
            x, axis, keepdims, lambda y, a: _nan_quantiles(y, q, whole, a, False, name, method)
        )
    q = float(q)
    if not 0 <= q <= whole:
        raise refused(f"array.{name}.range", f"{name} {q}", f"from 0 to {whole:g}")
    if _selects(x) and method in _BETWEEN:
        return _selected(x, [q / whole], axis, keepdims, method, skip_nan=True)[0]
    ndim = x.ndim
    x, at = (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))
    ordered = _in_order(x, at)
    count = weft.sum((~weft.isnan(plain(x))).astype("int64"), axis=at, keepdims=True)
    last = weft.maximum(count - 1, 0)
    place = _place(method, q / whole, weft.maximum(count, 1).astype(x.dtype))
    low = weft.floor(place).astype("int64")
    entry = lambda i: weft.take_along_axis(ordered, i, axis=at)  # noqa: E731
    below, after = entry(low), entry(weft.minimum(low + 1, last))
    y = below + (after - below) * (place - low.astype(x.dtype))
    y = weft.where(plain(below) == plain(after), below, y)
    y = weft.where(count == 0, math.nan, y)
    if axis is None:
        return y.reshape((1,) * ndim if keepdims else ())
    return y if keepdims else weft.squeeze(y, axis=at)


@whole
def median(x, axis=None, keepdims=False):
    """Of an array as in NumPy: of an even count the mean of the two in the middle. Of a tensor as in PyTorch: the lower of the two,
    and along an axis (value, position)."""
    x = value(x)
    if isinstance(x, Tensor):
        return x.median(axis, keepdims)
    if _selects(x) and not isinstance(axis, (tuple, list)):
        return _middle(x, axis, keepdims, False)
    return percentile(x, 50, axis, keepdims)


def _middle(x, axis, keepdims, skip_nan):
    """The mean of the two entries in the middle: beside an infinity it is the infinity, which no step from one to the other gives."""
    out = _selected(x, (0.5,), axis, keepdims, "midpoint", skip_nan)[0]
    if not weft.any(weft.isnan(out)):
        return out
    ends = (_selected(x, (0.5,), axis, keepdims, m, skip_nan)[0] for m in ("lower", "higher"))
    return sum(end * 0.5 for end in ends)


@whole
def nanmedian(x, axis=None, keepdims=False):
    """The median of what is no NaN. Of an array as in NumPy: of an even count the mean of the two in the middle. Of a tensor as in
    PyTorch: the lower of the two, and along an axis (value, position)."""
    x = value(x)
    if _selects(x) and not isinstance(axis, (tuple, list)):
        return _middle(x, axis, keepdims, True)
    if not isinstance(x, Tensor):
        return nanquantile(x, 0.5, axis, keepdims)
    line, at = (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))
    order = weft.argsort(plain(line), axis=at)  # NaN is last
    floats = plain(line).dtype.kind == "f"
    nans = (
        weft.sum(weft.isnan(plain(line)).astype("int64"), axis=at, keepdims=True) if floats else 0
    )
    middle = (
        weft.maximum((line.shape[at] - nans - 1) // 2, 0) if floats else (line.shape[at] - 1) // 2
    )
    if not floats:
        middle = weft.full_like(weft.sum(order, axis=at, keepdims=True), middle)
    place = weft.take_along_axis(order, middle, axis=at)
    found = weft.take_along_axis(line, place, axis=at)
    if axis is None:
        return found.reshape(())
    return (
        (found, place) if keepdims else (weft.squeeze(found, axis=at), weft.squeeze(place, axis=at))
    )
