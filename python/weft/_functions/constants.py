# SPDX-License-Identifier: Apache-2.0
"""Names of numbers, classes and layouts that are the same thing as others here."""

from __future__ import annotations

import math
import types

import weft

from .draws import Generator, default_generator  # noqa: F401

Inf = Infinity = PINF = infty = math.inf
NINF = -math.inf
NaN = NAN = math.nan
PZERO, NZERO = 0.0, -0.0
euler_gamma = 0.57721566490153286
True_, False_ = True, False
ndarray = weft.NDArray
Size = tuple


def _strided_bytes(x, shape=None, strides=None):
    """NumPy's as_strided: a view whose steps are given in bytes."""
    x = x if isinstance(x, weft.NDArray) else weft.asarray(x)
    steps = x.strides if strides is None else tuple(s // x.dtype.itemsize for s in strides)
    return weft.as_strided(x, x.shape if shape is None else shape, steps)


lib = types.SimpleNamespace(
    stride_tricks=types.SimpleNamespace(
        as_strided=_strided_bytes,
        sliding_window_view=weft.sliding_window_view,
        broadcast_to=weft.broadcast_to,
        broadcast_arrays=weft.broadcast_arrays,
    )
)


class _Layout:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"weft.{self._name}"


strided = _Layout("strided")
preserve_format, contiguous_format = _Layout("preserve_format"), _Layout("contiguous_format")
channels_last, channels_last_3d = _Layout("channels_last"), _Layout("channels_last_3d")
