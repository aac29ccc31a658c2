# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions of NumPy and PyTorch that are composed of others."""

from __future__ import annotations

import functools
import math

import weft

from .. import _core
from .._boundary import direct
from .._core import NDArray, Tensor
from .._pointwise import composed, has_graph
from .._dispatch import whole
from .common import beside, plain, real, refused, value

__all__ = [
    "angle",
    "digamma",
    "divmod",
    "erfinv",
    "float_power",
    "fmax",
    "fmin",
    "frexp",
    "gcd",
    "heaviside",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "ldexp",
    "lgamma",
    "logaddexp2",
    "logdet",
    "modf",
    "sgn",
]


@composed
def _turn(x):
    """0, or pi where the sign is set; NaN of NaN."""
    half = weft.copysign(weft.where(weft.isnan(plain(x)), x, math.pi / 2), x)
    return math.pi / 2 - half


@direct(_turn.__weft_direct__)
def angle(x, deg=False):
    """The angle of complex numbers in radians, or degrees; of real ones 0, or pi below 0."""
    x = value(x)
    turn = weft.atan2(weft.imag(x), weft.real(x)) if x.dtype.kind == "c" else _turn(real(x))
    return weft.rad2deg(turn) if deg else turn


def _is_number(x):
    return type(x) in (int, float)


def _extreme(of_numbers, of_whole, x1, x2):
    a = value(x1) if _is_number(x2) or not _is_number(x1) else x1
    b = x2 if _is_number(x2) else beside(x2, a) if not _is_number(a) else value(x2)
    real = any(type(x) is float if _is_number(x) else x.dtype.kind == "f" for x in (a, b))
    return (of_numbers if real else of_whole)(a, b)


@composed
def fmax(x1, x2):
    """The larger of both; the other where one is NaN."""
    return _extreme(weft.maximum_number, weft.maximum, x1, x2)


@composed
def fmin(x1, x2):
    """The smaller of both; the other where one is NaN."""
    return _extreme(weft.minimum_number, weft.minimum, x1, x2)


def divmod(x1, x2):
    """(x1 // x2, x1 % x2)."""
    x1 = value(x1)
    x2 = beside(x2, x1)
    return weft.floor_divide(x1, x2), weft.remainder(x1, x2)


@whole
@composed
def modf(x):
    """(fraction, whole part), both with the sign of x."""
    x = real(x)
    whole = weft.trunc(plain(x))
    part = weft.where(weft.isinf(plain(x)), 0.0, x - whole)
    if not has_graph(x):  # whose gradient does not depend on the sign of a zero
        part = weft.copysign(part, whole)
    return part, Tensor(whole, requires_grad=False) if isinstance(x, Tensor) else whole


@whole
def frexp(x):
    """(m, e) with x = m * 2**e, 0.5 <= |m| < 1, e of int32; 0, infinities and NaN are their own m with e of 0."""
    x = plain(real(x))
    if (
        isinstance(x, NDArray)
        and x.device.host_accessible
        and x.dtype in (weft.float32, weft.float64)
    ):
        return _core._parts_of_floats(x)
    return _frexp(x)


@composed
def _frexp(x):
    usual = weft.isfinite(x) & (x != 0)
    size = weft.where(usual, weft.abs(x), 1.0)
    # Two steps keep the powers of 2 inside the type's range for the smallest and the largest numbers.
    e = weft.floor(weft.log2(size)) + 1
    half = weft.trunc(e / 2)
    m = size * weft.exp2(-half) * weft.exp2(half - e)
    e = weft.where(m >= 1, e + 1, weft.where(m < 0.5, e - 1, e))
    m = weft.where(m >= 1, m / 2, weft.where(m < 0.5, m * 2, m))
    return weft.where(usual, weft.copysign(m, x), x), weft.where(usual, e, 0.0).astype("int32")


@composed
def ldexp(x1, x2):
    """x1 * 2**x2."""
    x = real(x1)
    e = beside(x2, x)
    e = e.astype(x.dtype)
    half = weft.trunc(plain(e) / 2)
    return x * weft.exp2(half) * weft.exp2(plain(e) - half)


@composed
def heaviside(x1, x2):
    """0 where x1 is negative, x2 where it is 0, 1 where it is positive, NaN where it is NaN."""
    x = real(x1)
    at = float(x2) if _is_number(x2) else real(beside(x2, x))
    p = plain(x)
    return weft.where(p == 0, at, weft.where(weft.isnan(p), p, (p > 0).astype(p.dtype)))


def _whole(x, name):
    x = plain(x)
    if x.dtype.kind not in "iu":
        raise refused("array.whole.type", f"{name} of {x.dtype}", "whole numbers")
    return x


def _divisors(a, b, multiple):
    """Of arrays on the host and on devices with a grid; else None."""
    if not (isinstance(a, NDArray) and isinstance(b, NDArray) and a.device == b.device):
        return None
    return _core._divisors(a, b, multiple)


def _wholes(x1, x2, name):
    """Both as arrays of whole numbers; a number takes the array's type where that is unsigned."""
    a = _whole(x1, name)
    if type(x2) is int and a.dtype.kind == "u" and x2 >= 0:
        return a, weft.full((), x2, dtype=a.dtype, device=a.device)
    return a, _whole(beside(x2, a), name)


@direct(_core._direct_gcd)
@whole
def gcd(x1, x2):
    """The greatest common divisor of whole numbers, not negative."""
    a, b = weft.broadcast_arrays(*_wholes(x1, x2, "gcd"))
    if (found := _divisors(a, b, False)) is not None:
        return found
    a, b = weft.abs(a), weft.abs(b)
    while bool(weft.any(b != 0)):
        other = weft.where(b == 0, 1, b)
        a, b = weft.where(b == 0, a, b), weft.where(b == 0, b, a % other)
    return a


@direct(_core._direct_lcm)
@whole
def lcm(x1, x2):
    """The least common multiple of whole numbers, not negative; 0 where one is 0."""
    a, b = weft.broadcast_arrays(*_wholes(x1, x2, "lcm"))
    found = _divisors(a, b, True)
    return _multiple(a, b, gcd(a, b)) if found is None else found


@composed
def _multiple(a, b, divisor):
    return weft.abs(a) // weft.maximum(divisor, 1) * weft.abs(b)


@composed
def float_power(x1, x2):
    """x1 to the power x2 in float64, or complex128."""
    a = value(x1)
    wide = lambda x: x.astype("complex128" if x.dtype.kind == "c" else "float64")  # noqa: E731
    return weft.pow(wide(a), float(x2) if _is_number(x2) else wide(beside(x2, a)))


@composed
def logaddexp2(x1, x2):
    """log2(2**x1 + 2**x2) without overflow."""
    a = real(x1)
    b = real(beside(x2, a))
    return weft.logaddexp(a * math.log(2), b * math.log(2)) / math.log(2)


def isposinf(x):
    """Is it positive infinity?"""
    return plain(x) == math.inf


def isneginf(x):
    """Is it negative infinity?"""
    return plain(x) == -math.inf


def isreal(x):
    """Has it no imaginary part?"""
    x = plain(x)
    return (
        weft.imag(x) == 0
        if x.dtype.kind == "c"
        else weft.ones(x.shape, dtype="bool", device=x.device)
    )


def iscomplex(x):
    """Has it an imaginary part?"""
    return weft.logical_not(isreal(x))


def sgn(x):
    """The sign; of complex numbers x / |x|, 0 at 0."""
    x = value(x)
    if x.dtype.kind != "c" or isinstance(x, NDArray):
        return weft.sign(x)
    size = weft.abs(x)
    return x / weft.where(plain(size) == 0, 1.0, size)


def logdet(x):
    """The logarithm of the determinant, complex of complex matrices; of real ones NaN where it is negative, -infinity where it is 0."""
    sign, logarithm = weft.linalg.slogdet(x)
    if sign.dtype.kind == "c":
        return weft.log(sign) + logarithm
    return weft.where(plain(sign) < 0, math.nan, logarithm)


# Terms B(2k) / (2k (2k - 1)) of Stirling's series and B(2k) / 2k of its derivative: B are Bernoulli's numbers.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
_LIFTED = 8  # Arguments are lifted by this much before the series is used.


def _series(x, terms):
    inverse = 1.0 / (x * x)
    total = terms[-1]
    for c in reversed(terms[:-1]):
        total = total * inverse + c
    return total


def _lgamma_right(x):
    product = x
    for k in range(1, _LIFTED):
        product = product * (x + float(k))
    large = plain(x) > 1e4  # where lifting changes nothing, and overflows in float32
    lifted = x + float(_LIFTED)
    terms = tuple(b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(_BERNOULLI))
    stirling = lambda y: (
        (y - 0.5) * weft.log(y) - y + 0.5 * math.log(2 * math.pi) + _series(y, terms) / y
    )  # noqa: E731
    safe = weft.where(large, 1.0, product)
    return weft.where(large, stirling(weft.where(large, x, 1e5)), stirling(lifted) - weft.log(safe))


@functools.partial(composed, long=True)
def lgamma(x):
    """The logarithm of |gamma(x)|; infinite at 0 and at negative whole numbers."""
    x = real(x)
    p = plain(x)
    left = p < 0.5
    right = _lgamma_right(weft.where(left, 1.0 - x, x))
    # From the nearest whole number: what is left of a small negative number keeps its digits.
    turned = weft.sin(math.pi * (x - weft.round(p)))
    pole = (p <= 0) & (p == weft.floor(p))
    mirror = math.log(math.pi) - weft.log(weft.abs(weft.where(left & ~pole, turned, 1.0)))
    out = weft.where(left, mirror - right, right)
    return weft.where(pole | weft.isinf(p), math.inf, out)


@functools.partial(composed, long=True)
def digamma(x):
    """The derivative of lgamma; NaN at negative whole numbers, -infinity at 0 and infinity at -0."""
    x = real(x)
    p = plain(x)
    left = p < 0.5
    y = weft.where(left, 1.0 - x, x)
    shift = 0.0
    for k in range(_LIFTED):
        shift = shift + 1.0 / (y + float(k))
    lifted = y + float(_LIFTED)
    terms = tuple(b / (2 * k + 2) for k, b in enumerate(_BERNOULLI))
    right = weft.log(lifted) - 0.5 / lifted - _series(lifted, terms) / (lifted * lifted) - shift
    pole = (p < 0) & (p == weft.floor(p))
    turn = math.pi * (x - weft.round(p))
    own = left & (weft.sin(plain(turn)) != 0)
    angle = weft.where(own, turn, 1.0)
    out = weft.where(left, right - math.pi * weft.cos(angle) / weft.sin(angle), right)
    return weft.where(pole, math.nan, weft.where(p == 0, -1.0 / p, out))


@composed
def erfinv(x):
    """The number whose error function is x; infinite at 1 and -1, NaN beyond."""
    from ..special._normal import inverse_of_erf

    return inverse_of_erf(x)
