# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of several axes of Hermitian numbers, by PyTorch's names."""

from __future__ import annotations

import weft

from .common import value

_TURNED = {"backward": "forward", "forward": "backward", "ortho": "ortho", None: "forward"}


def hfftn(x, /, *, s=None, axes=None, norm="backward"):
    """Real numbers from those of half a spectrum: irfftn of the conjugates with the norm turned."""
    x = value(x)
    return weft.fft.irfftn(weft.conj(x), s=s, axes=axes, norm=_TURNED[norm])


def ihfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of hfftn: conjugates of rfftn with the norm turned."""
    return weft.conj(weft.fft.rfftn(value(x), s=s, axes=axes, norm=_TURNED[norm]))


def hfft2(x, /, *, s=None, axes=(-2, -1), norm="backward"):
    """hfftn of two axes."""
    return hfftn(x, s=s, axes=axes, norm=norm)


def ihfft2(x, /, *, s=None, axes=(-2, -1), norm="backward"):
    """ihfftn of two axes."""
    return ihfftn(x, s=s, axes=axes, norm=norm)
