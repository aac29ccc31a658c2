# SPDX-License-Identifier: Apache-2.0
"""Special functions: gamma functions and their derivatives, error functions, modified Bessel functions."""

from __future__ import annotations

import math

import torch

import weft

from ... import _core
from .common import HALVES, Unsupported, add, array, as_type, cast, div, fused, mul, row, sub, where


def _special(function):
    def rule(c, x):
        if not x.size:
            raise Unsupported("a special function of no elements")
        # Terms cancel near the roots: in float64 where the device has it for certain.
        narrow = "float32" if c.dtype in HALVES else c.dtype
        x = as_type(x, "float64" if x.device.host_accessible else narrow)
        return as_type(function(x), c.dtype)

    return rule


array("lgamma.default")(_special(weft.lgamma))
array("digamma.default")(_special(weft.digamma))
array("erfinv.default")(_special(weft.erfinv))
array("erfc.default", "special_erfc.default")(_special(weft.erfc))


@array("ldexp.Tensor")
def _ldexp(c, x, exponent):
    power = weft.exp2(as_type(exponent, c.dtype))
    return as_type(x, c.dtype) * power


@array("frexp.Tensor")
def _frexp(c, x):
    if not x.size or c.dtype in HALVES:
        raise Unsupported("mantissas of no elements, or of 16-bit floats")
    mantissa, exponent = weft.frexp(x)
    return as_type(mantissa, c.dtypes[0]), as_type(exponent, c.dtypes[1])


# ---- fused: in float64, whatever the type


def _in_float64(function):
    return lambda c, x: cast(function(cast(x, "float64")), c.dtype)


def _polynomial(x, coefficients):
    """The first coefficient is that of the highest power."""
    total = mul(x, coefficients[0])
    for a in coefficients[1:-1]:
        total = mul(add(total, a), x)
    return add(total, coefficients[-1])


_NEAR = 30.0  # where the power series of modified Bessel functions ends and the one of 1/x begins


def _bessel(order):
    """exp(-|x|) times the modified Bessel function of the first kind, for x >= 0."""
    power = [1.0 / (math.factorial(k) * math.factorial(k + order)) for k in range(70, -1, -1)]
    far, term = [1.0], 1.0
    for k in range(1, 19):
        term *= -(4 * order * order - (2 * k - 1) ** 2) / (8.0 * k)
        far.insert(0, term)

    def scaled(x):
        near = row("minimum", x, _NEAR)
        half = mul(near, 0.5)
        total = mul(_polynomial(mul(half, half), power), row("exp", row("negative", near)))
        total = mul(total, half) if order else total
        distant = row("maximum", x, _NEAR)
        series = _polynomial(row("reciprocal", distant), far)
        tail = mul(series, row("rsqrt", mul(distant, 2 * math.pi)))
        return where(row("less", x, _NEAR), total, tail)

    return scaled


def _modified(order, with_exp):
    scaled = _bessel(order)

    def function(x):
        magnitude = row("abs", x)
        found = scaled(magnitude)
        if with_exp:
            found = mul(found, row("exp", magnitude))
        return mul(found, row("sign", x)) if order else found

    return _in_float64(function)


fused("i0.default", "special_i0.default")(_modified(0, True))
fused("special_i0e.default")(_modified(0, False))
fused("special_i1.default")(_modified(1, True))
fused("special_i1e.default")(_modified(1, False))


@fused("special_spherical_bessel_j0.default")
@_in_float64
def _spherical(x):
    square = mul(x, x)
    series = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(7, -1, -1)]
    far = where(row("isinf", x), 0.0, div(row("sin", x), x))
    return where(row("less", row("abs", x), 0.5), _polynomial(square, series), far)


_FAR_ERFC = 20.0


@array("special_erfcx.default")
def _erfcx(c, x):
    """exp(x^2) erfc(x); far out by its series in 1/x^2, since erfc vanishes there."""
    if not x.size or not x.device.host_accessible:
        raise Unsupported("erfcx of no elements, or without float64")
    x = as_type(x, "float64")
    near = weft.minimum(x, weft.full((), _FAR_ERFC, dtype="float64"))
    square = near * near
    far = weft.maximum(x, weft.full((), _FAR_ERFC, dtype="float64"))
    inverse = 0.5 / (far * far)
    series = 1.0 - inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse * (1.0 - 7.0 * inverse)))
    tail = series / (far * math.sqrt(math.pi))
    return as_type(weft.where(x < _FAR_ERFC, weft.exp(square) * weft.erfc(near), tail), c.dtype)


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)  # fmt: skip
_MOST_TERMS = 200


def _zeta(s, q):
    """The sum of (q + k)^-s over k >= 0: some terms, and the rest by Euler's and Maclaurin's formula. float64."""
    low = float(weft.min(q))
    count = 12 + max(0, math.ceil(-low)) if math.isfinite(low) else _MOST_TERMS + 1
    if count > _MOST_TERMS:
        given = [torch.from_dlpack(v.copy()) for v in (s, q)]
        found = torch.special.zeta(*given)
        return _core._from_dlpack(torch._C._to_dlpack(found), None, None)
    total = sum((q + k) ** -s for k in range(count))
    a = q + count
    power = a**-s
    total = total + power * a / (s - 1.0) + power * 0.5
    factor, inverse = s * power / a, 1.0 / (a * a)
    for j, b in enumerate(_BERNOULLI, start=1):
        total = total + factor * (b / math.factorial(2 * j))
        factor = factor * (s + (2 * j - 1)) * (s + 2 * j) * inverse
    # No value below 1, infinity at 1 and at the poles; below 0 whole s alone.
    total = weft.where((q <= 0) & (weft.floor(q) == q), math.inf, weft.where((q < 0) & (weft.floor(s) != s), math.nan, total))  # fmt: skip
    return weft.where(s > 1.0, total, weft.where(s == 1.0, math.inf, math.nan))


def _number(v, dtype="float64"):
    return as_type(v, dtype) if hasattr(v, "dtype") else weft.full((), v, dtype=dtype)


@array("special_zeta.default", "special_zeta.other_scalar", "special_zeta.self_scalar")
def _hurwitz(c, s, q):
    s, q = _number(s), _number(q)
    if not math.prod(c.shape) or not (s.device.host_accessible and q.device.host_accessible):
        raise Unsupported("zeta of no elements, or without float64")
    return as_type(_zeta(s.broadcast_to(c.shape), q.broadcast_to(c.shape)), c.dtype)


def _trigamma(x):
    """By torch's formula, whose values at the poles are roundings of infinity."""
    left = x < 0.5
    root = weft.sin(x * math.pi)
    turned = weft.where(left, 1.0 - x, x)
    total = sum(1.0 / ((turned + k) * (turned + k)) for k in range(6))
    far = turned + 6.0
    inverse = 1.0 / (far * far)
    series = 1.0 + 0.5 / far + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42)))
    total = total + series / far
    return weft.where(left, (math.pi * math.pi) / (root * root) - total, total)


@array("polygamma.default")
def _polygamma(c, n, x):
    if n == 1 and x.size and x.device.host_accessible:
        return as_type(_trigamma(as_type(x, "float64")), c.dtype)
    if not x.size or not x.device.host_accessible or n < 1:
        raise Unsupported("polygamma of no elements, without float64, or of order 0")
    x = as_type(x, "float64")
    s = weft.full(x.shape, n + 1.0, dtype="float64")
    return as_type(_zeta(s, x) * ((-1.0) ** (n + 1) * math.factorial(n)), c.dtype)
