# SPDX-License-Identifier: Apache-2.0
"""Histograms of several axes, and the edges of bins."""

from __future__ import annotations

import math

import weft

from .._core import shown
from .common import plain, refused, value
from .statistics import _bins_of, _counted, _edges


def _automatic(x, rule, low, high):
    """The number of bins by a rule that NumPy has."""
    n, wide = x.size, high - low
    if n == 0 or wide == 0:
        return 1
    x = x.astype("float64")
    widths = {
        "sqrt": lambda: wide / math.sqrt(n),
        "sturges": lambda: wide / (math.log2(n) + 1),
        "rice": lambda: wide / (2 * n ** (1 / 3)),
        "scott": lambda: (24 * math.sqrt(math.pi) / n) ** (1 / 3) * float(weft.std(x)),
        "fd": lambda: 2 * float(_quartiles(x)) / n ** (1 / 3),
    }
    if rule == "auto":
        fd = widths["fd"]()
        width = min(fd, widths["sturges"]()) if fd else widths["sturges"]()
    elif rule in widths:
        width = widths[rule]()
    else:
        raise refused(
            "array.histogram.rule",
            f"bins {shown(rule)}",
            f"auto, {', '.join(widths)}, a number, or edges",
        )
    return int(math.ceil(wide / width)) if width else 1


def _quartiles(x):
    q = weft.percentile(x, weft.asarray([75.0, 25.0], dtype="float64"))
    return q[0] - q[1]


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges (bins + 1,) that histogram takes; bins: a number, edges, or a rule ("auto", "sqrt", "sturges", "rice", "scott", "fd")."""
    x = plain(a).reshape(-1)
    if isinstance(bins, str):
        low, high = (
            (float(weft.min(x)), float(weft.max(x)))
            if range is None and x.size
            else range or (0.0, 1.0)
        )
        if range is not None:
            x = x[(x >= low) & (x <= high)]
        bins = _automatic(x, bins, low, high)
    return _edges(x, bins, range)


def histogramdd(sample, bins=10, range=None, density=False, weights=None):
    """(counts, list of edges) of points (n, d), or d vectors of coordinates; bins: a number, or one (or edges) for each axis."""
    if isinstance(sample, (list, tuple)):
        columns = [plain(x).reshape(-1) for x in sample]
    else:
        points = plain(sample)
        points = points.reshape((-1, 1)) if points.ndim == 1 else points
        columns = list(weft.unstack(points, axis=1))
    d = len(columns)
    each = list(bins) if isinstance(bins, (list, tuple)) else [bins] * d
    if len(each) != d or (range is not None and len(range) != d):
        raise refused(
            "array.histogramdd.bins", f"{len(each)} bins for {d} axes", "one for each axis"
        )
    edges, at, inside = [], 0, None
    shape = []
    for k, x in enumerate(columns):
        e = _edges(x, each[k], None if range is None else range[k])
        n = e.shape[0] - 1
        found = _bins_of(x, e)
        fits = (found >= 0) & (found < n)
        inside = fits if inside is None else inside & fits
        at = at * n + weft.where(fits, found, 0)
        edges.append(e)
        shape.append(n)
    count = math.prod(shape)
    at = weft.where(inside, at, count).astype("int64")
    counts = _counted(at, count + 1, None if weights is None else value(plain(weights)))[:count]
    counts = counts.reshape(tuple(shape)).astype("float64")
    if density:
        for k, e in enumerate(edges):
            wide = [1] * d
            wide[k] = shape[k]
            counts = counts / (e[1:] - e[:-1]).reshape(tuple(wide))
        counts = counts / weft.sum(counts * _volume(edges, shape))
    return counts, edges


def _volume(edges, shape):
    total = 1.0
    for k, e in enumerate(edges):
        wide = [1] * len(shape)
        wide[k] = shape[k]
        total = total * (e[1:] - e[:-1]).reshape(tuple(wide))
    return total
