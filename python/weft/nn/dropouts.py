# SPDX-License-Identifier: Apache-2.0
"""Elements or whole channels left out while training."""

from __future__ import annotations

import math

import weft

from .._core import Tensor
from .._errors import error as _error
from .module import Module

__all__ = [
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
]


def _checked(p):
    if not 0 <= p <= 1:
        raise _error(
            weft.ArgumentError,
            "nn.dropout.p",
            f"dropout with probability {p}",
            ["legal: 0 to 1"],
        )
    return p


def _kept(x, p, key, channels):
    shape = (*x.shape[:2], *(1,) * (x.ndim - 2)) if channels else x.shape
    return weft.random.bernoulli(1.0 - p, shape, device=x.device, key=key).astype(x.dtype)


def _dropped(x, p, training, key, channels):
    _checked(p)
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    return x * Tensor(_kept(x, p, key, channels) * (1.0 / (1.0 - p)), requires_grad=False)


def dropout(x, p=0.5, training=True, key=None):
    """Zeroes elements with probability p and scales the others by 1 / (1 - p)."""
    return _dropped(x, p, training, key, False)


def _channels(n):
    def function(x, p=0.5, training=True, key=None):
        if x.ndim not in (n + 1, n + 2):
            raise _error(
                weft.ShapeError,
                "nn.dropout.shape",
                f"dropout{n}d of shape {x.shape}",
                [f"rule: (n, c, ...) or (c, ...) with {n} spatial axes"],
            )
        if x.ndim == n + 1:
            return _dropped(x[None], p, training, key, True)[0]
        return _dropped(x, p, training, key, True)

    function.__name__ = function.__qualname__ = f"dropout{n}d"
    function.__doc__ = "Zeroes whole channels of (n, c, ...) with probability p and scales the others by 1 / (1 - p)."
    return function


dropout1d, dropout2d, dropout3d = (_channels(n) for n in (1, 2, 3))


def _alpha(x, p, training, key, channels):
    _checked(p)
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    low = -1.7580993408473766  # minus scale times alpha of selu
    keep = _kept(x, p, key, channels)
    a = 1.0 / math.sqrt((1.0 - p) * (1.0 + p * low * low))
    shift = (1.0 - keep) * (low * a) - low * a * p
    return x * Tensor(keep * a, requires_grad=False) + Tensor(shift, requires_grad=False)


def alpha_dropout(x, p=0.5, training=False, key=None):
    """Sets elements to the lowest value of selu, and scales and shifts so that mean and variance stay."""
    return _alpha(x, p, training, key, False)


def feature_alpha_dropout(x, p=0.5, training=False, key=None):
    """alpha_dropout of whole channels of (n, c, ...)."""
    return _alpha(x, p, training, key, True)


class Dropout(Module):
    """Zeroes each element with probability p while training and scales the others by 1 / (1 - p)."""

    function = staticmethod(dropout)

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        self.p = _checked(p)

    def forward(self, x):
        return type(self).function(x, self.p, self.training)


class Dropout1d(Dropout):
    """Zeroes whole channels of (n, c, length) while training."""

    function = staticmethod(dropout1d)


class Dropout2d(Dropout):
    """Zeroes whole channels of (n, c, h, w) while training."""

    function = staticmethod(dropout2d)


class Dropout3d(Dropout):
    """Zeroes whole channels of (n, c, d, h, w) while training."""

    function = staticmethod(dropout3d)


class AlphaDropout(Dropout):
    """nn.functional.alpha_dropout while training."""

    function = staticmethod(alpha_dropout)


class FeatureAlphaDropout(Dropout):
    """nn.functional.feature_alpha_dropout while training."""

    function = staticmethod(feature_alpha_dropout)
