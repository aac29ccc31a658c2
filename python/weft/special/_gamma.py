# SPDX-License-Identifier: Apache-2.0
"""The regularised incomplete gamma functions."""

from __future__ import annotations

import math

import weft

from ._gamma_tables import AWAY, LOG_GAMMA, UNIFORM
from ._normal import erfc
from ._shared import between, plain, polynomial, special

# Regions of (a, x): the power series of the lower function and the continued fraction of the upper one for small a, or
# where x is far from a; Temme's uniform expansion for large a near x; for a <= 1 and small x a series of the upper one.
_LARGE = 20.0  # a, from where the uniform expansion holds
_CLOSE = 0.5  # |x - a| / a up to which it does
_POWERS, _FRACTIONS = 70, 80  # terms for float64 at the worst places


def _stirling(a):
    """The logarithm of gamma(a) sqrt(a / (2 pi)) (e / a)^a, for a >= _LARGE."""
    inverse = 1.0 / (a * a)
    series = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))  # fmt: skip
    return series / a


def _series(a, x):
    """The sum of x^n / ((a + 1) ... (a + n))."""
    term = x / (a + 1.0)
    total = term + 1.0
    for n in range(2, _POWERS):
        term = term * (x / (a + float(n)))
        total = total + term
    return total


def _fraction(a, x):
    """The continued fraction of gamma(a, x) exp(x) / x^a."""
    d = x + (2.0 * _FRACTIONS + 1.0) - a
    for n in range(_FRACTIONS, 0, -1):
        d = (x + (2.0 * n - 1.0) - a) - (n * (n - a)) / d
    return 1.0 / d


def _uniform(a, x):
    """(lower, upper) of a >= _LARGE with x near a."""
    m = (x - a) / a
    away = polynomial(m * (1 / _CLOSE), AWAY)  # (m - log(1 + m)) / m^2
    eta = m * weft.sqrt(away * 2.0)
    inverse = 1.0 / a
    total = 0.0
    for row in reversed(UNIFORM):
        term = polynomial(eta, row) if len(row) > 1 else row[0]
        total = total * inverse + term
    half = weft.sqrt(a * 0.5)
    rest = weft.exp(-(a * (m * m) * away)) * total / (half * (2.0 * math.sqrt(math.pi)))
    return erfc(-eta * half) * 0.5 - rest, erfc(eta * half) * 0.5 + rest


def _factor(a, x):
    """x^a exp(-x) / gamma(a + 1)."""
    p = plain(a)
    big = p >= _LARGE
    # Large a: a (1 + log(x / a)) - x without its large parts, over the rest of Stirling's formula.
    large = between(a, _LARGE, None)
    ratio = weft.where(big, x / large, 1.0)
    high = large * (1.0 - ratio + weft.log(ratio)) - _stirling(large) - 0.5 * weft.log(large * (2 * math.pi))  # fmt: skip
    small = between(a, None, 1.0)
    near = small * polynomial(2.0 * small - 1.0, LOG_GAMMA)
    middle = weft.lgamma(between(a, 1.0, _LARGE) + 1.0)
    low = between(a, None, _LARGE) * weft.log(x) - x - weft.where(p <= 1, near, middle)
    return weft.exp(weft.where(big, high, low))


def _small_upper(a, x):
    """The upper function for 0 < a <= 1 and x <= 2, without its large part 1: sums of x^(a + n) / n! / (a + n)."""
    total, power = 0.0, 1.0
    for n in range(1, 30):
        power = power * x * (-1.0 / n)
        total = total + power / (a + float(n))
    exponent = a * weft.log(x) - a * polynomial(2.0 * a - 1.0, LOG_GAMMA)
    return -(weft.expm1(exponent) + weft.exp(exponent) * a * total)


def _incomplete(a, x):
    """(lower, upper) of the regularised functions."""
    shape = weft.broadcast_shapes(tuple(a.shape), tuple(x.shape))
    a, x = weft.broadcast_to(a, shape), weft.broadcast_to(x, shape)
    pa, px = plain(a), plain(x)
    usual = (pa > 0) & (px > 0) & weft.isfinite(pa) & weft.isfinite(px)
    a, x = weft.where(usual, a, 1.0), weft.where(usual, x, 1.0)
    qa, qx = plain(a), plain(x)
    near = (qa >= _LARGE) & (weft.abs(qx - qa) <= _CLOSE * qa)
    upper_first = ~near & (qx > weft.where(qa <= 1, 2.0, qa + 1.0))
    lower_first = ~near & ~upper_first
    small = lower_first & (qa <= 1)

    close = [weft.where(near, v, _LARGE) for v in (a, x)]
    by_lower, by_upper = _uniform(*close)
    factor = _factor(weft.where(near, 1.0, a), weft.where(near, 1.0, x))
    lower = factor * _series(weft.where(lower_first, a, 1.0), weft.where(lower_first, x, 1.0))
    ua, ux = weft.where(upper_first, a, 1.0), weft.where(upper_first, x, 3.0)
    upper = factor * ua * _fraction(ua, ux)
    tiny = _small_upper(weft.where(small, a, 1.0), weft.where(small, x, 1.0))

    p = weft.where(near, by_lower, weft.where(upper_first, 1.0 - upper, lower))
    q = weft.where(near, by_upper, weft.where(upper_first, upper, weft.where(small, tiny, 1.0 - lower)))  # fmt: skip
    # At the edges: all of the mass lies at 0 for a = 0, nowhere finite for infinite a.
    wrong = (pa < 0) | (px < 0) | weft.isnan(pa) | weft.isnan(px)
    wrong = wrong | ((pa == 0) & (px == 0)) | (weft.isinf(pa) & weft.isinf(px))
    whole = (pa == 0) | weft.isinf(px)
    edge = weft.where(wrong, math.nan, weft.where(whole, 1.0, 0.0))
    other = weft.where(wrong, math.nan, weft.where(whole, 0.0, 1.0))
    return weft.where(usual, p, edge), weft.where(usual, q, other)


@special("float64")
def gammainc(a, x):
    """The regularised lower incomplete gamma function: the integral of t^(a - 1) exp(-t) up to x, over gamma(a)."""
    return _incomplete(a, x)[0]


@special("float64")
def gammaincc(a, x):
    """The regularised upper incomplete gamma function: 1 - gammainc(a, x), with all digits where that vanishes."""
    return _incomplete(a, x)[1]
