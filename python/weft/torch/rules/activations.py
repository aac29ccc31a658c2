# SPDX-License-Identifier: Apache-2.0
"""Activations and their gradients, by torch's formulas."""

from __future__ import annotations

import math

from .common import add, div, fused, mul, row, sub, where, wide

_HALF_ROOT = math.sqrt(0.5)
_BETA = math.sqrt(2 / math.pi)
_KAPPA = 0.044715


def _clipped(x):
    """clip(x + 3, 0, 6)."""
    return row("minimum", row("maximum", add(x, 3.0), 0.0), 6.0)


@fused("gelu.default")
@wide
def _gelu(c, x, approximate="none"):
    if approximate == "tanh":
        inner = mul(add(mul(mul(mul(x, x), x), _KAPPA), x), _BETA)
        return mul(mul(x, 0.5), add(row("tanh", inner), 1.0))
    return row("gelu", x)  # half the time of the error function


@fused("gelu_backward.default")
@wide
def _gelu_backward(c, g, x, approximate="none"):
    if approximate == "tanh":
        square = mul(x, x)
        t = row("tanh", mul(add(mul(mul(square, x), _KAPPA), x), _BETA))
        inner = mul(add(mul(square, 3 * _KAPPA), 1.0), _BETA)
        slope = mul(mul(mul(x, 0.5), sub(1.0, mul(t, t))), inner)
        return mul(g, add(mul(add(t, 1.0), 0.5), slope))
    cdf = mul(add(row("erf", mul(x, _HALF_ROOT)), 1.0), 0.5)
    pdf = mul(row("exp", mul(mul(x, x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return mul(g, add(cdf, mul(x, pdf)))


@fused("silu.default")
@wide
def _silu(c, x):
    return div(x, add(row("exp", row("negative", x)), 1.0))


@fused("silu_backward.default")
@wide
def _silu_backward(c, g, x):
    s = div(1.0, add(row("exp", row("negative", x)), 1.0))
    return mul(mul(g, s), add(mul(x, sub(1.0, s)), 1.0))


@fused("sigmoid_backward.default")
@wide
def _sigmoid_backward(c, g, y):
    return mul(mul(g, y), sub(1.0, y))


@fused("tanh_backward.default")
@wide
def _tanh_backward(c, g, y):
    return mul(g, sub(1.0, mul(y, y)))


@fused("threshold_backward.default")
def _threshold_backward(c, g, x, threshold):
    return where(row("less_equal", x, threshold), 0.0, g)


@fused("threshold.default")
def _threshold(c, x, threshold, value):
    return where(row("less_equal", x, threshold), value, x)


@fused("hardswish.default")
@wide
def _hardswish(c, x):
    return mul(mul(x, _clipped(x)), 1 / 6)  # torch's order: it overflows sooner


@fused("hardshrink_backward.default", "softshrink_backward.default")
def _shrink_backward(c, g, x, bound):
    outside = row("logical_or", row("less", x, -bound), row("greater", x, bound))
    return where(outside, g, 0.0)  # 0 where x is NaN, as torch's kernels have it


@fused("hardswish_backward.default")
@wide
def _hardswish_backward(c, g, x):
    middle = mul(g, add(mul(x, 1 / 3), 0.5))
    low = row("less_equal", x, -3.0)
    return where(low, 0.0, where(row("greater_equal", x, 3.0), g, middle))  # NaN stays NaN


@fused("hardsigmoid.default")
@wide
def _hardsigmoid(c, x):
    return mul(_clipped(x), 1 / 6)


@fused("hardsigmoid_backward.default")
@wide
def _hardsigmoid_backward(c, g, x):
    inside = row("logical_and", row("greater", x, -3.0), row("less", x, 3.0))
    return where(inside, mul(g, 1 / 6), 0.0)


@fused("hardtanh_backward.default")
def _hardtanh_backward(c, g, x, low, high):
    inside = row("logical_and", row("greater", x, low), row("less", x, high))
    return where(inside, g, 0.0)  # 0 where x is NaN, as torch's kernels have it


@fused("leaky_relu.default")
@wide
def _leaky_relu(c, x, slope=0.01):
    return where(row("greater", x, 0.0), x, mul(x, slope))


@fused("leaky_relu_backward.default")
@wide
def _leaky_relu_backward(c, g, x, slope, is_result):
    return where(row("greater", x, 0.0), g, mul(g, slope))


@fused("elu.default")
@wide
def _elu(c, x, alpha=1.0, scale=1.0, input_scale=1.0):
    low = mul(row("expm1", mul(x, input_scale)), alpha * scale)
    return where(row("less_equal", x, 0.0), low, mul(x, scale))


@fused("elu_backward.default")
@wide
def _elu_backward(c, g, alpha, scale, input_scale, is_result, x):
    low = mul(g, input_scale)
    low = mul(low, add(x, alpha * scale)) if is_result else mul(mul(low, alpha * scale), row("exp", mul(x, input_scale)))  # fmt: skip
    return where(row("greater", x, 0.0), mul(g, scale), low)  # NaN stays NaN


@fused("softplus.default")
@wide
def _softplus(c, x, beta=1.0, threshold=20.0):
    scaled = mul(x, beta)
    return where(
        row("greater", scaled, threshold), x, mul(row("log1p", row("exp", scaled)), 1 / beta)
    )


@fused("softplus_backward.default")
@wide
def _softplus_backward(c, g, x, beta, threshold):
    scaled = mul(x, beta)
    z = row("exp", scaled)
    return where(row("greater", scaled, threshold), g, mul(g, div(z, add(z, 1.0))))
