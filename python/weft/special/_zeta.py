# SPDX-License-Identifier: Apache-2.0
"""Hurwitz's zeta function and the derivatives of digamma."""

from __future__ import annotations

import math

import weft

from .._core import shown as _shown
from .. import _core
from .._errors import error as _error

from ._shared import plain, real, special

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)  # fmt: skip
_FIRST, _MOST_TERMS = 12, 2000


@special("float64")
def zeta(s, q):
    """The sum of (q + k)^-s over k >= 0. Infinite at s = 1 and where a term is; NaN below s = 1, and for q below 0 with fractional s."""
    # Some terms, and the rest by Euler's and Maclaurin's formula, which needs a positive argument.
    d, e = plain(q), plain(s)
    usual = weft.isfinite(d) & weft.isfinite(e) & (e > 1)
    pole = (d <= 0) & (weft.floor(d) == d)
    none = (d < 0) & (weft.floor(e) != e)
    inner = usual & ~pole & ~none
    low = float(weft.min(weft.where(inner, d, 1.0))) if math.prod(d.shape) else 1.0
    if low < -_MOST_TERMS:
        raise _error(
            _core.ArgumentError,
            "special.zeta.range",
            f"zeta at {low}",
            [f"rule: arguments from {-_MOST_TERMS}"],
        )
    count = _FIRST + max(0, math.ceil(-low))
    x, s_ = weft.where(inner, q, 1.0), weft.where(inner, s, 2.0)
    total = sum(_power(x + float(k), s_) for k in range(count))
    a = x + float(count)
    power = a**-s_
    total = total + power * a / (s_ - 1.0) + power * 0.5
    factor, inverse = s_ * power / a, 1.0 / (a * a)
    for j, b in enumerate(_BERNOULLI, start=1):
        total = total + factor * (b / math.factorial(2 * j))
        factor = factor * (s_ + (2.0 * j - 1.0)) * (s_ + 2.0 * j) * inverse
    total = weft.where(pole, math.inf, weft.where(none, math.nan, total))
    # Far out nothing is left but the first term's limit.
    total = weft.where(weft.isinf(e), weft.where(d > 1, 0.0, weft.where(d == 1, 1.0, math.inf)), total)  # fmt: skip
    total = weft.where((d == math.inf) & (e > 1), 0.0, total)
    total = weft.where(e == 1, math.inf, weft.where(e < 1, math.nan, total))
    return weft.where(weft.isnan(d) | weft.isnan(e), math.nan, total)


def _power(x, s):
    """x^-s; of negative x for whole s alone."""
    p = plain(x)
    out = weft.abs(x) ** -s
    odd = weft.remainder(plain(s), 2.0) == 1
    return weft.where((p < 0) & odd, -out, out)


def _trigamma(x):
    """By reflection below 1/2, and a series of 1 / x beyond 6."""
    left = plain(x) < 0.5
    root = weft.sin(weft.where(left, x - weft.round(plain(x)), 0.5) * math.pi)
    turned = weft.where(left, 1.0 - x, x)
    total = sum(1.0 / ((turned + float(k)) * (turned + float(k))) for k in range(10))
    far = turned + 10.0
    inverse = 1.0 / (far * far)
    series = 1.0 + 0.5 / far + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42 - inverse * (1 / 30 - inverse * (5 / 66)))))  # fmt: skip
    total = total + series / far
    return weft.where(left, (math.pi * math.pi) / (root * root) - total, total)


@special("float64")
def _first_derivative(x):
    return _trigamma(x)


def polygamma(n, x):
    """The n-th derivative of digamma, n a whole number from 0."""
    if not isinstance(n, int) or n < 0:
        raise _error(
            _core.ArgumentError,
            "special.order",
            f"polygamma of order {_shown(n)}",
            ["rule: a whole number from 0"],
        )
    if n == 0:
        return weft.digamma(x)
    if n == 1:
        return _first_derivative(x)
    x = real(x)
    order = weft.full((), n + 1.0, dtype=x.dtype, device=x.device)
    return zeta(order, x) * ((-1.0) ** (n + 1) * math.factorial(n))
