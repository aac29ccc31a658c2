# SPDX-License-Identifier: Apache-2.0
"""Distances between tensors, between the rows of two matrices, and between all rows of one."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import (
    Unsupported,
    array,
    as_type,
    cast,
    div,
    fused,
    mul,
    reduce,
    reshape,
    row,
    spread,
    sub,
    where,
)


@array("dist.default")
def _dist(c, a, b, p=2):
    if not math.prod(_core._broadcast_shapes([a.shape, b.shape])):
        raise Unsupported("a distance without elements")
    d = as_type(a, c.dtype) - as_type(b, c.dtype)
    return as_type(weft.linalg.vector_norm(d.reshape((-1,)), ord=p), c.dtype)


def _differences(a, b):
    """Every row of a less every row of b: (..., rows of a, rows of b, entries)."""
    lead = _core._broadcast_shapes([tuple(a.shape[:-2]), tuple(b.shape[:-2])])
    left = (*a.shape[:-1], 1, a.shape[-1])
    right = (*b.shape[:-2], 1, *b.shape[-2:])
    shape = (*lead, a.shape[-2], b.shape[-2], a.shape[-1])
    return sub(spread(reshape(a, left), shape), spread(reshape(b, right), shape))


@fused("_cdist_forward.default")
def _cdist(c, a, b, p, mode=None):
    if not a.shape[-1]:
        raise Unsupported("distances of rows without entries")
    d = row("abs", _differences(a, b))
    last = [len(d.shape) - 1]
    if p == 0:
        return reduce("sum", cast(row("not_equal", d, 0.0), c.dtype), last)
    if math.isinf(p):
        return reduce("max", d, last)
    if p == 1:
        return reduce("sum", d, last)
    if p == 2:
        return row("sqrt", reduce("sum", mul(d, d), last))
    return row("pow", reduce("sum", row("pow", d, float(p)), last), 1.0 / p)


def _pairs(x):
    """Numbers of the first and of the second row of all pairs of different rows."""
    n = x.shape[0]
    ends = weft.cumulative_sum(weft.arange(n - 1, 0, -1, dtype="int64", device=x.device))
    at = weft.arange(n * (n - 1) // 2, dtype="int64", device=x.device)
    first = _core._searchsorted(ends, at, True)
    start = weft.where(first > 0, _core._take(ends, weft.maximum(first - 1, weft.zeros_like(first)), 0), 0)  # fmt: skip
    return first, at - start + first + 1


@array("_pdist_forward.default")
def _pdist(c, x, p=2):
    if not x.shape[-1]:
        raise Unsupported("distances of rows without entries")
    a, b = (_core._take(x, i, 0) for i in _pairs(x))
    return weft.linalg.vector_norm(a - b, ord=p, axis=-1)


@fused("_cdist_backward.default")
def _cdist_backward(c, g, a, b, p, distance):
    d = _differences(a, b)
    wide = lambda v: spread(reshape(v, (*v.shape, 1)), d.shape)  # noqa: E731
    g, distance = wide(g), wide(distance)
    size = row("abs", d)
    if p == 0:
        slope = mul(d, 0.0)
    elif p == 1:
        slope = mul(row("sign", d), g)
    elif math.isinf(p):
        slope = mul(mul(row("sign", d), g), cast(row("equal", size, distance), c.dtype))
    else:
        ratio = div(mul(row("sign", d), row("pow", size, float(p - 1))), row("pow", distance, float(p - 1)))  # fmt: skip
        # torch's slopes of powers below 1 are none where entries are equal.
        none = row("logical_or", row("equal", distance, 0.0), row("equal", d, 0.0))
        slope = where(none, 0.0, mul(ratio, g))
    found = reduce("sum", slope, [len(d.shape) - 2])
    lead = len(found.shape) - len(c.shape)
    axes = [i for i, n in enumerate(found.shape) if i < lead or n != c.shape[i - lead]]
    return reshape(reduce("sum", found, axes), c.shape) if axes else found


@array("_pdist_backward.default")
def _pdist_backward(c, g, x, p, distance):
    i, j = _pairs(x)
    d = _core._take(x, i, 0) - _core._take(x, j, 0)
    g, distance = g.reshape((-1, 1)), distance.reshape((-1, 1))
    if p == 0:
        slope = 0.0 * d
    elif p == 1:
        slope = weft.sign(d) * g
    elif math.isinf(p):
        slope = weft.where(weft.abs(d) == distance, weft.sign(d) * g, 0.0)
    else:
        power = weft.sign(d) * weft.abs(d) ** float(p - 1) if p != 2 else d
        # torch's slopes of powers below 1 are none where entries are equal.
        none = (distance == 0.0) | (d == 0.0)
        slope = weft.where(none, 0.0, power * g / distance ** float(p - 1))
    out = weft.zeros(c.shape, dtype=c.dtype, device=x.device)
    _core._scatter(out, [i], slope, True)
    _core._scatter(out, [j], -slope, True)
    return out
