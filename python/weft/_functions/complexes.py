# SPDX-License-Identifier: Apache-2.0
"""Complex numbers from parts and as pairs of reals, as PyTorch has them."""

from __future__ import annotations

import weft

from .common import beside, real as _real, refused, value


def complex(real, imag):
    """real + i imag, of float32 complex64, of float64 complex128; both broadcast. Has gradients."""
    a = _real(real)
    b = beside(imag, a)
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        raise refused("array.complex.type", f"parts of {a.dtype} and {b.dtype}", "real floats")
    wide = weft.float64 in (a.dtype, b.dtype)
    kind = "complex128" if wide else "complex64"
    return a.astype(kind) + b.astype(kind) * 1j


def polar(abs, angle):
    """Complex numbers of these magnitudes and angles in radians. Has gradients."""
    size = _real(abs)
    turn = _real(beside(angle, size))
    return complex(size * weft.cos(turn), size * weft.sin(turn))


def view_as_real(x):
    """Complex numbers as pairs (..., 2) of their parts, a copy. Has gradients."""
    x = value(x)
    if x.dtype.kind != "c":
        raise refused("array.view_as_real.type", f"view_as_real of {x.dtype}", "complex numbers")
    return weft.stack([weft.real(x), weft.imag(x)], axis=-1)


def view_as_complex(x):
    """Pairs (..., 2) of floats as complex numbers, a copy. Has gradients."""
    x = value(x)
    if x.dtype.kind != "f" or x.ndim == 0 or x.shape[-1] != 2:
        raise refused("array.view_as_complex.shape", f"view_as_complex of {x.dtype} {tuple(x.shape)}", "floats whose last axis has 2 entries")  # fmt: skip
    return complex(x[..., 0], x[..., 1])


def conj_physical(x):
    """As conj."""
    x = value(x)
    return weft.conj(x) if x.dtype.kind == "c" else x


def resolve_conj(x):
    """Itself: conj computes."""
    return value(x)


def resolve_neg(x):
    """Itself: negation computes."""
    return value(x)


def is_conj(x):
    """False: conj computes, and marks nothing."""
    value(x)
    return False


def is_neg(x):
    """False: negation computes, and marks nothing."""
    return is_conj(x)
