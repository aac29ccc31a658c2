# SPDX-License-Identifier: Apache-2.0
"""What special functions share: types, polynomials, values away from where a formula fails."""

from __future__ import annotations

import functools

import weft

from .. import _core
from .._errors import error as _error

from .._functions.common import beside, plain, real
from .._pointwise import composed, on_host

__all__ = ["beside", "between", "fitting", "plain", "polynomial", "real", "special"]


def _work_type(values, least):
    """The operands' common type and the one that they are computed in: float64 on the host, where `least` is."""
    own = values[0].dtype if len(values) == 1 else weft.result_type(*(v.dtype for v in values))
    if own.kind == "c":
        raise _error(
            _core.ArgumentError,
            "special.type",
            f"a special function of {own}",
            ["rule: real numbers"],
        )
    if own.name == "float64" or (least == "float64" and on_host(values[0])):
        return own, "float64"
    return own, "float32" if own.name in ("float16", "bfloat16") else own.name


def special(least):
    """A function of floats, which takes whatever becomes an array and rounds its result once. `least`: "float64" of functions
    that lose digits in float32, which are computed in float64 wherever the device has it for certain."""

    def decorate(function):
        @functools.partial(composed, long=True)
        @functools.wraps(function)
        def call(*args):
            first = real(args[0])
            values = [first, *(real(beside(x, first)) for x in args[1:])]
            own, work = _work_type(values, least)
            out = function(*(v if v.dtype == work else v.astype(work) for v in values))
            return out if out.dtype == own else out.astype(own)

        return call

    return decorate


def fitting(tables, name, x):
    """The table's polynomial for the type of x."""
    return getattr(tables, name if x.dtype == "float64" else name + "_SINGLE")


def polynomial(t, coefficients):
    """The first coefficient is that of the highest power."""
    total = t * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        total = total * t + c
    return total


def between(x, low, high):
    """x where it lies between the bounds and for NaN; a bound elsewhere, which no gradient passes."""
    x = x if low is None else weft.maximum(x, float(low))
    return x if high is None else weft.minimum(x, float(high))
