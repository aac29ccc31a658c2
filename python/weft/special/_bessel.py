# SPDX-License-Identifier: Apache-2.0
"""Bessel functions of orders 0 and 1: polynomials near 0, amplitudes and phases or exponentials far from it."""

from __future__ import annotations

import math

import weft

from . import _bessel_tables as tables
from ._shared import between, fitting, plain, polynomial, special

_SPLIT, _NEAR = 8.0, 2.0  # as in tools/special_tables
_LARGEST = 1e150  # beyond it a square overflows, and the amplitude is what it is here to all digits


def _table(name):
    return getattr(tables, name)


def _waves(order, x):
    """(J, Y) of x >= _SPLIT, by the angle x - (2 order + 1) pi / 4."""
    limit = _LARGEST if x.dtype == "float64" else 1e18
    x = between(x, _SPLIT, None)
    inverse = _SPLIT / between(x, None, limit)
    t = 2.0 * inverse * inverse - 1.0
    p = polynomial(t, _table(f"P{order}"))
    q = polynomial(t, _table(f"Q{order}")) / x
    finite = weft.where(weft.isinf(plain(x)), 0.0, x)
    sine, cosine = weft.sin(finite), weft.cos(finite)
    if order == 0:
        c, s = cosine + sine, sine - cosine
    else:
        c, s = sine - cosine, -(sine + cosine)
    size = weft.rsqrt(x * math.pi)
    return size * (p * c - q * s), size * (p * s + q * c)


def _first_kind(order):
    def function(x):
        size = weft.abs(x)
        low = between(size, None, _SPLIT)
        near = polynomial(low * low * (2 / _SPLIT**2) - 1.0, _table(f"J{order}"))
        near = near * low if order else near
        out = weft.where(plain(size) <= _SPLIT, near, _waves(order, size)[0])
        return weft.where(plain(x) < 0, -out, out) if order else out

    return function


def _second_kind(order):
    def function(x):
        p = plain(x)
        low = weft.where(p > 0, between(x, None, _SPLIT), 1.0)
        t = low * low * (2 / _SPLIT**2) - 1.0
        regular = polynomial(t, _table(f"J{order}"))
        rest = polynomial(t, _table(f"Y{order}"))
        near = weft.log(low) * regular * (2 / math.pi) + rest
        if order:
            near = near * low - (2 / math.pi) / low
        out = weft.where(p <= _SPLIT, near, _waves(order, x)[1])
        out = weft.where(p == 0, -math.inf, out)
        return weft.where((p < 0) | weft.isnan(p), math.nan, out)

    return function


def _scaled_first(order, x):
    """exp(-x) I(x) of x >= 0."""
    low = between(x, None, _SPLIT)
    near = polynomial(low * (2 / _SPLIT) - 1.0, fitting(tables, f"I{order}", x))
    near = near * low if order else near
    far = between(x, _SPLIT, None)
    tail = polynomial(2 * _SPLIT / far - 1.0, fitting(tables, f"I{order}_FAR", x)) * weft.rsqrt(far)
    return weft.where(plain(x) <= _SPLIT, near, tail)


def _modified_first(order, scaled):
    def function(x):
        size = weft.abs(x)
        out = _scaled_first(order, size)
        if not scaled:
            # In two factors, since exp(x) overflows before exp(x) / sqrt(x) does.
            half = weft.exp(size * 0.5)
            out = weft.where(weft.isinf(plain(x)), math.inf, out * half * half)
        return weft.where(plain(x) < 0, -out, out) if order else out

    return function


def _modified_second(order, scaled):
    def function(x):
        p = plain(x)
        low = weft.where(p > 0, between(x, None, _NEAR), 1.0)
        t = low * low * (2 / _NEAR**2) - 1.0
        rest = polynomial(t, fitting(tables, f"K{order}", x))
        regular = polynomial(t, fitting(tables, f"I{order}_NEAR", x))
        logarithm = weft.log(low * 0.5)
        if order:
            near = 1.0 / low + low * (logarithm * regular + rest)
        else:
            near = rest - logarithm * regular
        far = between(x, _NEAR, None)
        tail = polynomial(2 * _NEAR / far - 1.0, fitting(tables, f"K{order}_FAR", x)) * weft.rsqrt(
            far
        )
        if scaled:
            near = near * weft.exp(low)
        else:
            tail = tail * weft.exp(-far)
        out = weft.where(p <= _NEAR, near, tail)
        out = weft.where(p == 0, math.inf, out)
        return weft.where((p < 0) | weft.isnan(p), math.nan, out)

    return function


def _named(function, name, text):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return special("float32" if name[0] in "ik" else "float64")(function)


j0 = _named(_first_kind(0), "j0", "The Bessel function of the first kind, of order 0.")
j1 = _named(_first_kind(1), "j1", "The Bessel function of the first kind, of order 1.")
y0 = _named(
    _second_kind(0), "y0", "The Bessel function of the second kind, of order 0; NaN below 0."
)
y1 = _named(_second_kind(1), "y1", "The Bessel function of the second kind, of order 1; NaN below 0.")  # fmt: skip
i0 = _named(_modified_first(0, False), "i0", "The modified Bessel function of the first kind, of order 0.")  # fmt: skip
i1 = _named(_modified_first(1, False), "i1", "The modified Bessel function of the first kind, of order 1.")  # fmt: skip
i0e = _named(_modified_first(0, True), "i0e", "exp(-|x|) i0(x).")
i1e = _named(_modified_first(1, True), "i1e", "exp(-|x|) i1(x).")
k0 = _named(_modified_second(0, False), "k0", "The modified Bessel function of the second kind, of order 0; NaN below 0.")  # fmt: skip
k1 = _named(_modified_second(1, False), "k1", "The modified Bessel function of the second kind, of order 1; NaN below 0.")  # fmt: skip
k0e = _named(_modified_second(0, True), "k0e", "exp(x) k0(x).")
k1e = _named(_modified_second(1, True), "k1e", "exp(x) k1(x).")


@special("float64")
def spherical_j0(x):
    """sin(x) / x: the spherical Bessel function of the first kind, of order 0."""
    small = weft.abs(plain(x)) < 0.5
    square = weft.where(small, x, 0.0)
    square = square * square
    series = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(7, -1, -1)]
    infinite = weft.isinf(plain(x))
    far = weft.where(small | infinite, 1.0, x)
    return weft.where(
        small, polynomial(square, series), weft.where(infinite, 0.0, weft.sin(far) / far)
    )
