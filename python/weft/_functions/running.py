# SPDX-License-Identifier: Apache-2.0
"""Running extremes with their positions, the most frequent element, and slices held to a norm, as PyTorch has them."""

from __future__ import annotations

from collections import namedtuple

import weft

from .. import _core
from .._boundary import direct
from .._core import NDArray
from .._dispatch import whole
from .common import axis_of, plain, real, value

Extremes = namedtuple("Extremes", "values indices")


def _running(x, dim, larger):
    """Doubling steps: each entry takes the extreme of twice as many entries before it; later ones win among equals."""
    x = value(x)
    if x.ndim == 0:
        return Extremes(x, weft.zeros((), dtype="int64", device=x.device))
    axis = axis_of(x, dim)
    keys = plain(x)
    if isinstance(keys, NDArray) and keys.dtype.kind != "c":
        found = _core._running_extremes(keys, axis, larger)
        if found is not None:
            values = found[0] if x is keys else weft.take_along_axis(x, found[1], axis=axis)
            return Extremes(values, found[1])
    n, before = x.shape[axis], (slice(None),) * axis
    line = tuple(n if k == axis else 1 for k in range(x.ndim))
    at = weft.broadcast_to(weft.arange(n, device=x.device).reshape(line), tuple(x.shape))
    values, step = keys, 1
    floats = keys.dtype.kind == "f"
    while step < n:
        late, early = (*before, slice(step, n)), (*before, slice(0, n - step))
        a, b = values[late], values[early]
        stays = a >= b if larger else a <= b
        if floats:
            stays = weft.where(weft.isnan(b), weft.isnan(a), stays | weft.isnan(a))
        head = (*before, slice(0, step))
        values = weft.concat([values[head], weft.where(stays, a, b)], axis=axis)
        at = weft.concat([at[head], weft.where(stays, at[late], at[early])], axis=axis)
        step *= 2
    return Extremes(weft.take_along_axis(x, at, axis=axis), at)


@direct(_core._direct_cummax)
@whole
def cummax(x, dim=-1):
    """(largest elements so far along an axis, their positions, the last of equals); NaN stays once met. Any real type."""
    return _running(x, dim, True)


@direct(_core._direct_cummin)
@whole
def cummin(x, dim=-1):
    """(smallest elements so far along an axis, their positions, the last of equals); NaN stays once met. Any real type."""
    return _running(x, dim, False)


def mode(x, dim=-1, keepdim=False):
    """(the most frequent element along an axis, the smallest of equally frequent ones, a position of it)."""
    x = value(x)
    if x.ndim == 0:
        return Extremes(x, weft.zeros((), dtype="int64", device=x.device))
    axis = axis_of(x, dim)
    keys = plain(x)
    order = weft.argsort(keys, axis=axis)
    ordered = weft.take_along_axis(keys, order, axis=axis)
    n, before = x.shape[axis], (slice(None),) * axis
    line = tuple(n if k == axis else 1 for k in range(x.ndim))
    here = weft.broadcast_to(weft.arange(n, device=x.device).reshape(line), tuple(x.shape))
    fresh = ordered[(*before, slice(1, n))] != ordered[(*before, slice(0, n - 1))]
    first = weft.concat([weft.zeros_like(here[(*before, slice(0, 1))]), weft.where(fresh, here[(*before, slice(1, n))], 0)], axis=axis)  # fmt: skip
    length = here - cummax(first, axis).values
    best = weft.expand_dims(weft.argmax(length, axis=axis), axis=axis)
    at = weft.take_along_axis(order, best, axis=axis)
    found = weft.take_along_axis(x, at, axis=axis)
    if keepdim:
        return Extremes(found, at)
    return Extremes(weft.squeeze(found, axis=axis), weft.squeeze(at, axis=axis))


def renorm(x, p, dim, maxnorm):
    """Slices along an axis scaled down to a p-norm of at most maxnorm."""
    x = real(x)
    axis = axis_of(x, dim)
    others = tuple(k for k in range(x.ndim) if k != axis)
    size = weft.abs(x)
    if p == float("inf"):
        norm = weft.max(size, axis=others, keepdims=True)
    elif p == 2:
        norm = weft.sqrt(weft.sum(size * size, axis=others, keepdims=True))
    else:
        norm = weft.sum(size**p, axis=others, keepdims=True) ** (1.0 / p)
    factor = weft.where(plain(norm) > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return x * factor
