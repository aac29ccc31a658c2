# SPDX-License-Identifier: Apache-2.0
"""Sums, extrema, moments and softmax."""

from __future__ import annotations

import math

import weft

from .common import (
    as_type,
    Unsupported,
    add,
    array,
    axes_of,
    cast,
    div,
    fused,
    is_float,
    mean,
    mul,
    numbers_too,
    reduce,
    reshape,
    row,
    spread,
    sub,
    where,
    work_type,
)
from ... import _core


@fused("sum.dim_IntList", "sum.default")
def _sum(c, x, dim=None, keepdim=False, dtype=None):
    wide = "float32" if c.dtype in ("float16", "bfloat16") else c.dtype
    y = reduce("sum", cast(x, wide), axes_of(dim, len(x.shape)), keepdim)
    return cast(y, c.dtype)


@fused("mean.dim", "mean.default")
def _mean(c, x, dim=None, keepdim=False, dtype=None):
    wide = "float32" if c.dtype in ("float16", "bfloat16") else c.dtype
    return cast(mean(cast(x, wide), axes_of(dim, len(x.shape)), keepdim), c.dtype)


def _extremum(weft_name):
    def rule(c, x, dim=None, keepdim=False):
        if c.dtype == "bool":
            name = "any" if weft_name == "max" else "all"
            return reduce(name, x, axes_of(dim, len(x.shape)), keepdim)
        return reduce(weft_name, x, axes_of(dim, len(x.shape)), keepdim)

    return rule


fused("amax.default", "max.default")(_extremum("max"))
fused("amin.default", "min.default")(_extremum("min"))


@fused("prod.dim_int", "prod.default")
def _prod(c, x, dim=None, keepdim=False, dtype=None):
    wide = "float32" if c.dtype in ("float16", "bfloat16") else c.dtype
    y = reduce("prod", cast(x, wide), axes_of(dim, len(x.shape)), keepdim)
    return cast(y, c.dtype)


for _name in ("all", "any"):

    def _quantifier(c, x, dim=None, keepdim=False, name=_name):
        if c.dtype != "bool":
            raise Unsupported(f"{name} of uint8 gives uint8 in torch")
        return reduce(name, cast(x, "bool"), axes_of(dim, len(x.shape)), keepdim)

    fused(f"{_name}.default", f"{_name}.dim", f"{_name}.dims")(_quantifier)


def moments(x, axes):
    """Mean and variance (by the count) with the axes kept, and the centred values."""
    m = mean(x, axes, True)
    centred = sub(x, m)
    return m, mean(mul(centred, centred), axes, True), centred


def _moments(c, x, dim, correction, keepdim):
    if not is_float(x):
        raise Unsupported("moments of this type")
    axes = axes_of(dim, len(x.shape))
    count = math.prod(x.shape[a] for a in axes)
    correction = 1 if correction is None else correction
    w = work_type(x)
    m = mean(w, axes, True)
    centred = sub(w, m)
    total = reduce("sum", mul(centred, centred), axes, keepdim)
    degrees = max(count - correction, 0)
    variance = mul(total, 1 / degrees) if degrees else div(total, 0.0)
    return variance, m if keepdim else mean(w, axes, False)


@fused("var.correction")
def _var(c, x, dim=None, correction=None, keepdim=False):
    return cast(_moments(c, x, dim, correction, keepdim)[0], c.dtype)


@fused("var_mean.correction")
def _var_mean(c, x, dim=None, correction=None, keepdim=False):
    return tuple(cast(v, c.dtype) for v in _moments(c, x, dim, correction, keepdim))


@fused("std.correction")
def _std(c, x, dim=None, correction=None, keepdim=False):
    return cast(row("sqrt", _moments(c, x, dim, correction, keepdim)[0]), c.dtype)


def _axis(x, dim):
    return [dim % len(x.shape)] if tuple(x.shape) else []


def _exponentials(x, dim):
    axes = _axis(x, dim)
    top = reduce("max", x, axes, True)
    e = row("exp", sub(x, top))
    return e, reduce("sum", e, axes, True), top


@fused("_softmax.default")
def _softmax(c, x, dim, half_to_float=False):
    w = cast(x, c.dtype) if "float" in c.dtype else x
    e, total, _ = _exponentials(work_type(w), dim)
    return cast(div(e, total), c.dtype)


@fused("_log_softmax.default")
def _log_softmax(c, x, dim, half_to_float):
    w = work_type(x)
    _, total, top = _exponentials(w, dim)
    return cast(sub(sub(w, top), row("log", total)), c.dtype)


@fused("_safe_softmax.default")
def _safe_softmax(c, x, dim, dtype=None):
    w = work_type(cast(x, c.dtype))
    axes = _axis(w, dim)
    top = reduce("max", w, axes, True)
    nothing = row("equal", top, -math.inf)
    e = row("exp", sub(w, top))
    return cast(where(nothing, 0.0, div(e, reduce("sum", e, axes, True))), c.dtype)


@fused("_softmax_backward_data.default")
def _softmax_backward(c, g, y, dim, dtype):
    g, y = work_type(g), work_type(y)
    gy = mul(g, y)
    return cast(sub(gy, mul(y, reduce("sum", gy, _axis(y, dim), True))), c.dtype)


@fused("_log_softmax_backward_data.default")
def _log_softmax_backward(c, g, y, dim, dtype):
    g, y = work_type(g), work_type(y)
    return cast(sub(g, mul(row("exp", y), reduce("sum", g, _axis(y, dim), True))), c.dtype)


@fused("logsumexp.default")
def _logsumexp(c, x, dim, keepdim=False):
    axes = axes_of(dim, len(x.shape))
    x = cast(x, c.dtype)
    top = reduce("max", x, axes, True)
    finite = where(row("isfinite", top), top, 0.0)
    total = reduce("sum", row("exp", sub(x, finite)), axes, keepdim)
    return add(
        row("log", total), finite if keepdim else _core._lazy_reshape(finite, tuple(total.shape))
    )


@array("cumsum.default")
@numbers_too
def _cumsum(c, x, dim, dtype=None):
    return _core._scan("sum", as_type(x, c.dtype), dim % x.ndim, c.dtype)


for _name in ("argmax", "argmin"):

    @numbers_too
    def _position(c, x, dim=None, keepdim=False, largest=_name == "argmax"):
        if x.size == 0:
            raise Unsupported("position in an array without elements")
        return _core._arg_reduce(largest, x, None if dim is None else dim % x.ndim, keepdim)

    array(f"{_name}.default")(_position)


for _name in ("max", "min"):

    @numbers_too
    def _value_and_position(c, x, dim, keepdim=False, largest=_name == "max"):
        if not x.size:
            raise Unsupported("an extremum without elements")
        places = _core._arg_reduce(largest, x, dim % x.ndim, True)
        found = _core._take_along_axis(x, places, dim % x.ndim)
        return found.reshape(c.shapes[0]), as_type(places, "int64").reshape(c.shapes[1])

    array(f"{_name}.dim")(_value_and_position)
