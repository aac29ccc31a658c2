# SPDX-License-Identifier: Apache-2.0
"""The error function's relatives and the normal distribution."""

from __future__ import annotations

import math

import weft

from .._pointwise import composed

from . import _normal_tables as tables
from ._shared import beside, between, fitting, plain, polynomial, real, special

_ROOT = math.sqrt(0.5)
_MIDDLE, _ROOTS, _BEYOND = 3.0, (2.5, 6.02, 27.5), (3.0, 20.0)  # as in tools/special_tables
_SINGLE_ROOT = 10.3


def _tail(x):
    """exp(x^2) erfc(x) of x >= 0: 1 / (1 + 2x) times a polynomial in (x - 3) / (x + 3)."""
    t = 1.0 - (2 * _MIDDLE) / (x + _MIDDLE)
    return polynomial(t, fitting(tables, "TAIL", x)) / (x * 2.0 + 1.0)


def _exp_of_square(x, factor):
    """exp(factor x^2) of x >= 0 with all digits: what x * x was rounded by is made up for."""
    # Of numbers with so large a part the last place is one whose square is exact.
    limit, large = (40.0, 1.5 * 2.0**32) if x.dtype == "float64" else (15.0, 1.5 * 2.0**15)
    x = between(x, None, limit)
    d = plain(x)
    near = (d + large) - large
    rest = (near * near - d * d) + (d - near) * (d + near)
    return weft.exp(x * x * factor) * (rest * factor + 1.0)


def _sized(x):
    """(is x negative?, its size, whose slope at 0 is 1)."""
    return plain(x) < 0, weft.maximum(x, -x)


@special("float32")
def erfcx(x):
    """exp(x * x) * (1 - erf(x)), without underflow."""
    left, size = _sized(x)
    right = _tail(size)
    reflected = 2.0 * _exp_of_square(weft.where(left, size, 0.0), 1.0) - right
    return weft.where(left, reflected, right)


@special("float32")
def erfc(x):
    """1 - erf(x), with all digits where erf is near 1."""
    left, size = _sized(x)
    right = _exp_of_square(size, -1.0) * _tail(size)
    return weft.where(left, 2.0 - right, right)


def _below(x):
    left, size = _sized(x)
    tail = _exp_of_square(size, -0.5) * _tail(size * _ROOT) * 0.5
    return weft.where(left, tail, 1.0 - tail)


@special("float32")
def ndtr(x):
    """The normal distribution: the probability of a value below x."""
    return _below(x)


@special("float32")
def log_ndtr(x):
    """The logarithm of ndtr, with all digits where ndtr vanishes."""
    low = between(x, None, -1.0)
    tail = weft.log(_tail(low * -_ROOT) * 0.5) - low * low * 0.5
    return weft.where(plain(x) < -1, tail, weft.log1p(-_below(-between(x, -1.0, None))))


def _scaled(x, low, high, beyond):
    """1 / (x + beyond), moved so that it runs from -1 at x = low to 1 at high."""
    a, b = 1 / (low + beyond), 1 / (high + beyond)
    return (2 / (b - a)) / (x + beyond) - (a + b) / (b - a)


def inverse(w, smallest=False):
    """y / x of the y with erf(y) = x, where w = -log(1 - x^2). `smallest`: w may be above 36, where 1 - x is lost in x."""
    one, two, three = _ROOTS
    single = w.dtype != "float64"
    two = _SINGLE_ROOT if single else two
    p = plain(w)
    centre = polynomial(between(w, None, one * one) * (2 / (one * one)) - 1.0, fitting(tables, "CENTRE", w))  # fmt: skip
    root = weft.sqrt(between(w, one * one, None))
    far = polynomial(_scaled(between(root, None, two), one, two, _BEYOND[0]), fitting(tables, "FAR", w))  # fmt: skip
    if smallest and not single:
        t = _scaled(between(root, two, three), two, three, _BEYOND[1])
        far = weft.where(p > two * two, polynomial(t, tables.FARTHEST), far)
    return weft.where(p > one * one, far, centre)


@special("float32")
def inverse_of_erf(x):
    """The number whose error function is x; infinite at 1 and -1, NaN beyond."""
    y = x * inverse(-weft.log((1.0 - x) * (1.0 + x)))
    p = plain(x)
    return weft.where(weft.abs(p) == 1, p * math.inf, y)


@special("float32")
def ndtri(p):
    """The x with ndtr(x) = p; infinite at 0 and 1, NaN beyond."""
    # 1 - x^2 of x = 2p - 1 is 4p (1 - p).
    w = -weft.log(p * 4.0 * (1.0 - p))
    out = (p * 2.0 - 1.0) * inverse(w, smallest=True) * math.sqrt(2)
    d = plain(p)
    return weft.where(d == 0, -math.inf, weft.where(d == 1, math.inf, out))


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
