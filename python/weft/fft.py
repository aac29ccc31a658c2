# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms: the fft extension of the array API standard."""

from __future__ import annotations

from . import _core
from . import _namespace as _ns

__all__ = [
    "fft",
    "ifft",
    "fftn",
    "ifftn",
    "rfft",
    "irfft",
    "rfftn",
    "irfftn",
    "hfft",
    "ihfft",
    "fftfreq",
    "rfftfreq",
    "fftshift",
    "ifftshift",
]

_conj = _core.operations["conj"]
_real = _core.operations["real"]


def _scale(x, n, norm, inverse):
    if norm not in ("backward", "ortho", "forward"):
        raise _core.ArgumentError(
            f"error[array.fft.norm]: norm is {norm!r}, legal: 'backward', 'ortho', 'forward'"
        )
    if norm == "ortho":
        return x * (1.0 / n**0.5)
    return x * (1.0 / n) if inverse == (norm == "backward") else x


def _along(x, n, axis, norm, inverse):
    axis = _ns._axis(axis, x.ndim, "fft")
    n = x.shape[axis] if n is None else n
    out = _core._fft(_ns.moveaxis(x, axis, -1), n, inverse)
    return _scale(_ns.moveaxis(out, -1, axis), n, norm, inverse)


def _complex_only(x, name):
    if x.dtype.kind != "c":
        raise _core.DTypeError(
            f"error[array.{name}.dtype]: {name} needs complex numbers, got {x.dtype}"
        )


def _real_only(x, name):
    if x.dtype.kind != "f":
        raise _core.DTypeError(
            f"error[array.{name}.dtype]: {name} needs real numbers, got {x.dtype}"
        )


def fft(x, /, *, n=None, axis=-1, norm="backward"):
    """Transform along an axis."""
    return _along(x, n, axis, norm, False)


def ifft(x, /, *, n=None, axis=-1, norm="backward"):
    """Inverse transform along an axis."""
    return _along(x, n, axis, norm, True)


def _axes_of(x, s, axes):
    if axes is None:
        axes = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    s = tuple(x.shape[a] for a in axes) if s is None else tuple(s)
    return s, axes


def fftn(x, /, *, s=None, axes=None, norm="backward"):
    """Transform along several axes."""
    s, axes = _axes_of(x, s, axes)
    for n, a in zip(s, axes):
        x = fft(x, n=n, axis=a, norm=norm)
    return x


def ifftn(x, /, *, s=None, axes=None, norm="backward"):
    """Inverse transform along several axes."""
    s, axes = _axes_of(x, s, axes)
    for n, a in zip(s, axes):
        x = ifft(x, n=n, axis=a, norm=norm)
    return x


def _head(x, count, axis):
    axis = _ns._axis(axis, x.ndim, "fft")
    return x[(*(slice(None),) * axis, slice(0, count))].copy()


def rfft(x, /, *, n=None, axis=-1, norm="backward"):
    """Transform of real numbers: the first half of the spectrum."""
    _real_only(x, "rfft")
    n = x.shape[axis] if n is None else n
    return _head(_along(x, n, axis, norm, False), n // 2 + 1, axis)


def _mirror(x, n, axis):
    """The whole Hermitian spectrum of n points from its first half."""
    axis = _ns._axis(axis, x.ndim, "fft")
    front = (slice(None),) * axis
    half = n // 2 + 1
    if x.shape[axis] < half:
        widths = [(0, half - x.shape[axis]) if i == axis else (0, 0) for i in range(x.ndim)]
        x = _ns.pad(x, widths)
    x = x[(*front, slice(0, half))]
    tail = _ns.flip(x[(*front, slice(1, n - half + 1))], axis=axis)
    return _ns.concat([x, _conj(tail)], axis=axis)


def irfft(x, /, *, n=None, axis=-1, norm="backward"):
    """Inverse of rfft."""
    n = 2 * (x.shape[axis] - 1) if n is None else n
    if n < 1:
        raise _core.ArgumentError(
            f"error[array.irfft.length]: irfft to {n} points; at least 1 is needed"
        )
    x = _mirror(x if x.dtype.kind == "c" else x * (1 + 0j), n, axis)
    return _real(_along(x, n, axis, norm, True))


def rfftn(x, /, *, s=None, axes=None, norm="backward"):
    """Transform of real numbers along several axes; the last one is halved."""
    s, axes = _axes_of(x, s, axes)
    out = rfft(x, n=s[-1], axis=axes[-1], norm=norm)
    for n, a in zip(s[:-1], axes[:-1]):
        out = fft(out, n=n, axis=a, norm=norm)
    return out


def irfftn(x, /, *, s=None, axes=None, norm="backward"):
    """Inverse of rfftn."""
    given = s is not None
    s, axes = _axes_of(x, s, axes)
    for n, a in zip(s[:-1], axes[:-1]):
        x = ifft(x, n=n, axis=a, norm=norm)
    return irfft(x, n=s[-1] if given else None, axis=axes[-1], norm=norm)


_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x, /, *, n=None, axis=-1, norm="backward"):
    """Transform of a Hermitian signal: real numbers."""
    return irfft(
        _conj(x) if x.dtype.kind == "c" else x, n=n, axis=axis, norm=_OPPOSITE.get(norm, norm)
    )


def ihfft(x, /, *, n=None, axis=-1, norm="backward"):
    """Inverse of hfft."""
    _real_only(x, "ihfft")
    return _conj(rfft(x, n=n, axis=axis, norm=_OPPOSITE.get(norm, norm)))


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """Frequencies of the n points of a transform."""
    k = _ns.concat(
        [_ns.arange((n + 1) // 2, device=device), _ns.arange(-(n // 2), 0, device=device)]
    )
    dtype = _core.float32 if dtype is None else dtype
    return (k.astype(_core.float64) / (n * d)).astype(dtype)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """Frequencies of the points of rfft."""
    dtype = _core.float32 if dtype is None else dtype
    return (_ns.arange(n // 2 + 1, device=device).astype(_core.float64) / (n * d)).astype(dtype)


def _shift(x, axes, sign):
    axes = (
        tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    )
    return _ns.roll(
        x,
        tuple(sign * (x.shape[a] // 2) if sign > 0 else -(x.shape[a] // 2) for a in axes),
        axis=axes,
    )


def fftshift(x, /, *, axes=None):
    """The zero frequency moved to the middle."""
    return _shift(x, axes, 1)


def ifftshift(x, /, *, axes=None):
    """Inverse of fftshift."""
    return _shift(x, axes, -1)
