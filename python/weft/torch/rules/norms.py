# SPDX-License-Identifier: Apache-2.0
"""Batch, layer and group normalisation with their gradients."""

from __future__ import annotations

import math

from .common import (
    Unsupported,
    add,
    cast,
    div,
    fused,
    is_float,
    mean,
    mul,
    per_channel,
    reduce,
    reshape,
    row,
    sub,
    work_type,
)
from .reductions import moments


def _work(*values):
    return [None if v is None else work_type(v) for v in values]


def _results(c, *values):
    """Values in the types that torch gives them; None for results nobody asked for."""
    return tuple(
        None if v is None or dtype is None else cast(v, dtype) for v, dtype in zip(values, c.dtypes)
    )


def _affine(y, scale, shift):
    y = y if scale is None else mul(y, scale)
    return y if shift is None else add(y, shift)


@fused("native_layer_norm.default")
def _layer_norm(c, x, normalized, weight, bias, eps):
    x, weight, bias = _work(x, weight, bias)
    axes = list(range(len(x.shape) - len(normalized), len(x.shape)))
    m, variance, centred = moments(x, axes)
    rstd = row("rsqrt", add(variance, eps))
    return _results(c, _affine(mul(centred, rstd), weight, bias), m, rstd)


@fused("native_layer_norm_backward.default")
def _layer_norm_backward(c, g, x, normalized, m, rstd, weight, bias, wanted):
    g, x, m, rstd, weight = _work(g, x, m, rstd, weight)
    inner = len(x.shape) - len(normalized)
    axes, outer = list(range(inner, len(x.shape))), list(range(inner))
    normal = mul(sub(x, m), rstd)
    dx = dw = db = None
    if wanted[0]:
        gw = g if weight is None else mul(g, weight)
        centre = mean(gw, axes, True)
        along = mean(mul(gw, normal), axes, True)
        dx = mul(rstd, sub(sub(gw, centre), mul(normal, along)))
    if wanted[1] and weight is not None:
        dw = reduce("sum", mul(g, normal), outer) if outer else mul(g, normal)
    if wanted[2]:
        db = reduce("sum", g, outer) if outer else row("positive", g)
    return _results(c, dx, dw, db)


def _channels(x, *vectors):
    return [None if v is None else per_channel(v, len(x.shape)) for v in vectors]


@fused("_native_batch_norm_legit_no_training.default")
def _batch_norm_inference(c, x, weight, bias, running_mean, running_var, momentum, eps):
    if len(x.shape) < 2:
        raise Unsupported("batch norm of a vector")
    vectors = _channels(x, weight, bias, running_mean, running_var)
    x, weight, bias, m, variance = _work(x, *vectors)
    rstd = row("rsqrt", add(variance, eps))
    flat = (x.shape[1],)
    saved = (None, None) if c.shapes[1] == (0,) else (reshape(row("positive", m), flat), reshape(rstd, flat))  # fmt: skip
    y = mul(sub(x, m), rstd if weight is None else mul(rstd, weight))
    return _results(c, y if bias is None else add(y, bias), *saved)


def _batch_moments(x):
    axes = [a for a in range(len(x.shape)) if a != 1]
    m, variance, centred = moments(x, axes)
    return axes, m, variance, centred


@fused("_native_batch_norm_legit_functional.default")
def _batch_norm_training(c, x, weight, bias, running_mean, running_var, training, momentum, eps):
    if len(x.shape) < 2:
        raise Unsupported("batch norm of a vector")
    if not training:
        y, *saved = _batch_norm_inference(c, x, weight, bias, running_mean, running_var, momentum, eps)  # fmt: skip
        return _results(c, y, *saved, row("positive", running_mean), row("positive", running_var))
    scale, shift = _channels(x, weight, bias)
    x, scale, shift, old_mean, old_var = _work(x, scale, shift, running_mean, running_var)
    axes, m, variance, centred = _batch_moments(x)
    count = math.prod(x.shape[a] for a in axes)
    rstd = row("rsqrt", add(variance, eps))
    y = _affine(mul(centred, rstd), scale, shift)
    flat = (x.shape[1],)
    m, variance = reshape(m, flat), reshape(variance, flat)
    new_mean = add(mul(m, momentum), mul(old_mean, 1 - momentum))
    unbiased = mul(variance, momentum * count / max(count - 1, 1))
    new_var = add(unbiased, mul(old_var, 1 - momentum))
    return _results(c, y, m, reshape(rstd, flat), new_mean, new_var)


@fused("_native_batch_norm_legit.no_stats")
def _batch_norm_of_itself(c, x, weight, bias, training, momentum, eps):
    if len(x.shape) < 2 or not math.prod(x.shape):
        raise Unsupported("batch norm of a vector, or of no elements")
    x, scale, shift = _work(x, *_channels(x, weight, bias))
    _, m, variance, centred = _batch_moments(x)
    rstd = row("rsqrt", add(variance, eps))
    y, flat = _affine(mul(centred, rstd), scale, shift), (x.shape[1],)
    return _results(c, y, reshape(m, flat), reshape(rstd, flat))


@fused("native_batch_norm_backward.default")
def _batch_norm_backward(c, g, x, weight, old_mean, old_var, m, rstd, training, eps, wanted):
    if len(x.shape) < 2:
        raise Unsupported("batch norm of a vector")
    vectors = _channels(x, weight, old_mean, old_var, m, rstd)
    g, x, scale, old_mean, old_var, spread_mean, spread_rstd = _work(g, x, *vectors)
    axes = [a for a in range(len(x.shape)) if a != 1]
    if not training:
        spread_mean, spread_rstd = old_mean, row("rsqrt", add(old_var, eps))
    normal = mul(sub(x, spread_mean), spread_rstd)
    dw = reduce("sum", mul(g, normal), axes, True)
    db = reduce("sum", g, axes, True)
    dx = None
    if wanted[0]:
        slope = spread_rstd if scale is None else mul(spread_rstd, scale)
        if training:
            per = 1 / math.prod(x.shape[a] for a in axes)
            inner = sub(sub(g, mul(db, per)), mul(normal, mul(dw, per)))
            dx = mul(inner, slope)
        else:
            dx = mul(g, slope)
    flat = (x.shape[1],)
    dw, db = reshape(dw, flat), reshape(db, flat)
    return _results(c, dx, dw if wanted[1] else None, db if wanted[2] else None)


@fused("native_group_norm.default")
def _group_norm(c, x, weight, bias, n, channels, size, groups, eps):
    if not is_float(x) or not n * channels * size:
        raise Unsupported("group norm of this shape")
    shape = tuple(x.shape)
    x, weight, bias = _work(x, weight, bias)
    rows = reshape(x, (n, groups, channels // groups * size))
    m, variance, centred = moments(rows, [2])
    rstd = row("rsqrt", add(variance, eps))
    y = reshape(mul(centred, rstd), (n, channels, size))
    scale, shift = _channels(y, weight, bias)
    y = reshape(_affine(y, scale, shift), shape)
    return _results(c, y, reshape(m, (n, groups)), reshape(rstd, (n, groups)))


@fused("native_group_norm_backward.default")
def _group_norm_backward(c, g, x, m, rstd, weight, n, channels, size, groups, wanted):
    if not n * channels * size:
        raise Unsupported("group norm of this shape")
    shape, rows = tuple(x.shape), (n, groups, channels // groups * size)
    g, x, m, rstd, weight = _work(g, x, m, rstd, weight)
    m, rstd = (reshape(v, (n, groups, 1)) for v in (m, rstd))
    g, flat = reshape(g, (n, channels, size)), (n, channels, size)
    normal = mul(sub(reshape(x, rows), m), rstd)
    dx = None
    if wanted[0]:
        gw = reshape(g if weight is None else mul(g, per_channel(weight, 3)), rows)
        along = mul(normal, mean(mul(gw, normal), [2], True))
        dx = reshape(mul(rstd, sub(sub(gw, mean(gw, [2], True)), along)), shape)
    dw = reduce("sum", mul(g, reshape(normal, flat)), [0, 2]) if wanted[1] else None
    db = reduce("sum", g, [0, 2]) if wanted[2] else None
    return _results(c, dx, dw, db)


def _other_axes(x, dim):
    return [a for a in range(len(x.shape)) if a != dim % len(x.shape)]


@fused("_weight_norm_interface.default")
def _weight_norm(c, v, g, dim=0):
    length = row("sqrt", reduce("sum", mul(v, v), _other_axes(v, dim), True))
    return mul(v, div(g, length)), length


@fused("_weight_norm_interface_backward.default")
def _weight_norm_backward(c, grad, v, g, length, dim):
    along = reduce("sum", mul(grad, v), _other_axes(v, dim), True)
    dv = mul(div(g, length), sub(grad, mul(v, div(along, mul(length, length)))))
    return dv, div(along, length)
