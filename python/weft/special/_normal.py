# SPDX-License-Identifier: Apache-2.0
"""The error function's relatives and the normal distribution."""

from __future__ import annotations

import math

import weft

from .._pointwise import composed

from ._shared import beside, between, plain, real, special

_ROOT = math.sqrt(0.5)


def _scaled_tail(x):
    """exp(x^2) erfc(x) of x >= 1, by the trapezoidal rule with steps of 1/2 for the integral over exp(-t^2) / (x^2 + t^2)."""
    inner = between(x, None, 1e8)  # beyond it, 1 / (x sqrt(pi)) to all digits
    square = inner * inner
    total = 1.0 / square
    for k in range(1, 14):
        total = total + (2.0 * math.exp(-k * k / 4)) / (square + k * k / 4)
    out = inner * total * (0.5 / math.pi)
    near = between(x, None, 6.0)  # where the rule's error matters
    pole = 2.0 * weft.exp(near * near) / (1.0 - weft.exp(near * (4 * math.pi)))
    out = out + weft.where(plain(x) < 6, pole, 0.0)
    return weft.where(plain(x) > 1e8, 1.0 / (between(x, 1.0, None) * math.sqrt(math.pi)), out)


@special
def erfcx(x):
    """exp(x * x) * (1 - erf(x)), without underflow."""
    size = weft.abs(x)
    tail = _scaled_tail(between(size, 1.0, None))
    small = between(size, None, 1.0)
    middle = weft.exp(small * small) * (1.0 - weft.erf(small))
    right = weft.where(plain(size) > 1, tail, middle)
    left = between(x, -30.0, 0.0)  # below, the square's exponential is infinite
    reflected = 2.0 * weft.exp(left * left) - right
    return weft.where(plain(x) < 0, weft.where(plain(x) < -27, math.inf, reflected), right)


def complement(x):
    """1 - erf(x), in the type of x."""
    far = between(x, 1.0, 30.0)
    tail = _scaled_tail(far) * weft.exp(-(far * far))
    return weft.where(plain(x) > 1, tail, 1.0 - weft.erf(x))


@special
def erfc(x):
    """1 - erf(x), with all digits where erf is near 1."""
    return complement(x)


@special
def ndtr(x):
    """The normal distribution: the probability of a value below x."""
    return erfc(x * -_ROOT) * 0.5


@special
def log_ndtr(x):
    """The logarithm of ndtr, with all digits where ndtr vanishes."""
    low = between(x, None, -1.0)
    tail = weft.log(erfcx(low * -_ROOT) * 0.5) - low * low * 0.5
    high = between(x, -1.0, None)
    return weft.where(plain(x) < -1, tail, weft.log1p(erfc(high * _ROOT) * -0.5))


def _lower_quantile(p):
    """The x below 0 with ndtr(x) = p, for p from 0 to 1/2."""
    logarithm = weft.log(p)
    size = plain(logarithm) * -2.0
    # From the first terms of the expansion for small p, then Newton's method on the logarithm, which is nearly a parabola.
    start = weft.sqrt(size - weft.log(weft.maximum(size, 2.0) * (2 * math.pi)) + 2.0)
    x = -start
    for step in range(6):
        if step == 4:
            size = logarithm * -2.0
        ratio = erfcx(x * -_ROOT) * math.sqrt(math.pi / 2)
        goal = logarithm if step >= 4 else plain(logarithm)
        x = x - (log_ndtr(x) - goal) * ratio
    return x


@special
def ndtri(p):
    """The x with ndtr(x) = p; infinite at 0 and 1, NaN beyond."""
    d = plain(p)
    inside = (d > 0) & (d < 1)
    middle = weft.abs(d - 0.5) < 0.4
    centre = weft.where(inside & middle, p, 0.5)
    near = weft.erfinv(2.0 * centre - 1.0) * math.sqrt(2)
    upper = d > 0.5
    side = weft.where(upper, 1.0 - p, p)
    far = _lower_quantile(weft.where(inside & ~middle, side, 0.05))
    out = weft.where(middle, near, weft.where(upper, -far, far))
    edge = weft.where(d == 0, -math.inf, weft.where(d == 1, math.inf, math.nan))
    return weft.where(inside, out, edge)


@composed
def entr(x):
    """-x log(x): 0 at 0, -infinity below."""
    x = real(x)
    p = plain(x)
    usual = weft.where(p > 0, x, 1.0)
    out = weft.where(p > 0, -(usual * weft.log(usual)), weft.where(p == 0, 0.0, -math.inf))
    return weft.where(weft.isnan(p), math.nan, out)


@composed
def xlog1py(x, y):
    """x log(1 + y), 0 where x is 0 and the logarithm no number."""
    x = real(x)
    y = real(beside(y, x))
    none = (plain(x) == 0) & (plain(y) <= -1)
    return weft.where(none, x * 0.0, x * weft.log1p(weft.where(none, 0.0, y)))
