# SPDX-License-Identifier: Apache-2.0
"""Special functions that weft composes of many kernels: the gamma functions and the inverse of erf."""

from __future__ import annotations

import weft

from .common import HALVES, Unsupported, array, as_type


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
