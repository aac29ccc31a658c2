# SPDX-License-Identifier: Apache-2.0
"""Special functions: those of weft.special and of the main namespace, in float64 whatever the type."""

from __future__ import annotations

import weft
from weft import special

from ..._traced import Traced
from .common import HALVES, Unsupported, array, as_type, cast, fused, is_lazy, number, spread


def _wide(c, *arrays):
    """Terms cancel near the roots: in float64 where the device has it for certain."""
    if any(hasattr(x, "size") and not x.size for x in arrays):
        raise Unsupported("a special function of no elements")
    narrow = "float32" if c.dtype in HALVES else c.dtype
    return [
        as_type(x, "float64" if x.device.host_accessible else narrow) if hasattr(x, "dtype") else x
        for x in arrays
    ]


def _alone(function):
    """A function of arrays, as a step alone: in the type that the device has."""

    def rule(c, *given):
        arrays = _wide(c, *given)
        like = next(x for x in arrays if hasattr(x, "dtype"))
        full = [x if hasattr(x, "dtype") else weft.full((), x, dtype=like.dtype, device=like.device) for x in arrays]  # fmt: skip
        return as_type(function(*full), c.dtype)

    return rule


array("lgamma.default")(_alone(weft.lgamma))
array("digamma.default")(_alone(weft.digamma))
array("erfinv.default")(_alone(weft.erfinv))


def _common_divisor(a, b):
    """Euclid's, of all elements until the last one is done."""
    a, b = weft.abs(a), weft.abs(b)
    while bool(weft.any(b != 0)):
        a, b = weft.where(b != 0, b, a), weft.where(b != 0, a % weft.maximum(b, weft.ones_like(b)), b)  # fmt: skip
    return a


@array("gcd.default")
def _gcd(c, a, b):
    return _common_divisor(*(as_type(x, c.dtype).broadcast_to(c.shape) for x in (a, b)))


@array("lcm.default")
def _lcm(c, a, b):
    a, b = (as_type(x, c.dtype).broadcast_to(c.shape) for x in (a, b))
    found = _common_divisor(a, b)
    return weft.abs(a // weft.maximum(found, weft.ones_like(found)) * b)


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


# ---- fused: traced values write the operations into the group


def _joined(function):
    def rule(c, *given):
        like = next(x for x in given if is_lazy(x))
        wide = [
            cast(x if is_lazy(x) else number(x, cast(like, "float64")), "float64") for x in given
        ]
        return cast(function(*(Traced(spread(x, c.shape)) for x in wide))._lazy, c.dtype)

    return rule


_FUSED = dict(
    i0="i0", special_i0="i0", special_i0e="i0e", special_i1="i1", special_i1e="i1e", special_bessel_j0="j0",
    special_bessel_j1="j1", special_bessel_y0="y0", special_bessel_y1="y1", special_modified_bessel_i0="i0",
    special_modified_bessel_i1="i1", special_modified_bessel_k0="k0", special_modified_bessel_k1="k1",
    special_scaled_modified_bessel_k0="k0e", special_scaled_modified_bessel_k1="k1e",
    special_spherical_bessel_j0="spherical_j0", special_erfcx="erfcx", special_erfc="erfc", erfc="erfc",
    special_ndtr="ndtr", special_log_ndtr="log_ndtr", special_entr="entr",
    special_ndtri="ndtri", igamma="gammainc", special_gammainc="gammainc", igammac="gammaincc", special_gammaincc="gammaincc",
)  # fmt: skip
for _name, _own in _FUSED.items():
    fused(f"{_name}.default")(_joined(getattr(special, _own)))


@array("special_zeta.default", "special_zeta.other_scalar", "special_zeta.self_scalar")
def _hurwitz(c, s, q):
    like = s if hasattr(s, "dtype") else q
    if not like.device.host_accessible:
        raise Unsupported("zeta without float64")
    return _alone(special.zeta)(c, s, q)


@array("polygamma.default")
def _polygamma(c, n, x):
    if not x.device.host_accessible:
        raise Unsupported("polygamma without float64")
    return as_type(special.polygamma(n, _wide(c, x)[0]), c.dtype)


# ---- polynomials by their recurrences: (x, n) -> p(n), from p(0) = 1 and p(1)

_MOST_TERMS = 512  # of a recurrence, each a pass over the values


_POLYNOMIALS = dict(
    chebyshev_polynomial_t=(lambda x: x, lambda x, k, p, q: 2.0 * x * q - p),
    chebyshev_polynomial_u=(lambda x: 2.0 * x, lambda x, k, p, q: 2.0 * x * q - p),
    chebyshev_polynomial_v=(lambda x: 2.0 * x - 1.0, lambda x, k, p, q: 2.0 * x * q - p),
    chebyshev_polynomial_w=(lambda x: 2.0 * x + 1.0, lambda x, k, p, q: 2.0 * x * q - p),
    hermite_polynomial_h=(lambda x: 2.0 * x, lambda x, k, p, q: 2.0 * x * q - 2.0 * k * p),
    hermite_polynomial_he=(lambda x: x, lambda x, k, p, q: x * q - k * p),
    laguerre_polynomial_l=(lambda x: 1.0 - x, lambda x, k, p, q: ((2.0 * k + 1.0 - x) * q - k * p) / (k + 1.0)),
    legendre_polynomial_p=(lambda x: x, lambda x, k, p, q: ((2.0 * k + 1.0) * x * q - k * p) / (k + 1.0)),
)  # fmt: skip


def _polynomial(first, step, shifted=False):
    def rule(c, x, n):
        like = x if hasattr(x, "dtype") else n
        if not like.device.host_accessible or not like.size:
            raise Unsupported("degrees that the host would have to read, or no elements")
        x, n = (
            as_type(v, "float64")
            if hasattr(v, "dtype")
            else weft.asarray(float(v), dtype="float64")
            for v in (x, n)
        )
        n = weft.trunc(n)
        top = weft.max(n)
        if not bool(top <= _MOST_TERMS):
            raise Unsupported(f"polynomials of a degree above {_MOST_TERMS}")
        x = 2.0 * x - 1.0 if shifted else x
        p, q = weft.ones_like(x), first(x)
        found = weft.where(n < 0, 0.0, weft.where(n == 0, p, q))
        for k in range(1, int(top)):
            p, q = q, step(x, float(k), p, q)
            found = weft.where(n == k + 1, q, found)
        return as_type(found.broadcast_to(c.shape), c.dtype)

    return rule


for _name, _parts in _POLYNOMIALS.items():
    _rule = _polynomial(*_parts)
    array(*(f"special_{_name}.{o}" for o in ("default", "x_scalar", "n_scalar")))(_rule)
    if _name.startswith("chebyshev"):
        _rule = _polynomial(*_parts, shifted=True)
        array(*(f"special_shifted_{_name}.{o}" for o in ("default", "x_scalar", "n_scalar")))(_rule)
