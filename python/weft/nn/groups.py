# SPDX-License-Identifier: Apache-2.0
"""Normalisation over groups of channels."""

from __future__ import annotations

import weft

from .. import init
from .._errors import error as _error
from .module import Module, Parameter


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    """x (n, c, ...) with mean 0 and variance 1 over each group of neighbouring channels and all that follows, then
    times weight and plus bias, one number for each channel. Raises ShapeError when the groups do not divide c."""
    if x.ndim < 2 or x.shape[1] % num_groups:
        raise _error(
            weft.ShapeError,
            "nn.group_norm.shape",
            f"{num_groups} groups do not divide the channels (axis 1) of shape {x.shape}",
        )
    rows = x.reshape(x.shape[0], num_groups, -1)
    centred = rows - rows.mean(2, True)
    y = centred * weft.rsqrt((centred * centred).mean(2, True) + eps)
    y = y.reshape(*x.shape)
    shape = (1, -1, *(1,) * (x.ndim - 2))
    y = y if weight is None else y * weight.reshape(*shape)
    return y if bias is None else y + bias.reshape(*shape)


class GroupNorm(Module):
    """nn.functional.group_norm with a weight and a bias for each channel, or none (affine=False)."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        super().__init__()
        self.num_groups, self.eps = num_groups, eps
        self.weight = self.bias = None
        if num_groups < 1 or num_channels % num_groups:
            raise _error(
                weft.ShapeError,
                "nn.group_norm.shape",
                f"{num_groups} groups do not divide {num_channels} channels",
            )
        if affine:
            self.weight = Parameter(init.ones(num_channels, dtype=dtype, device=device))
            self.bias = Parameter(init.zeros(num_channels, dtype=dtype, device=device))

    def forward(self, x):
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class InstanceNorm1d(GroupNorm):
    """Normalises each channel of each sample by itself; no weights unless affine."""

    def __init__(self, num_features, eps=1e-5, affine=False, device=None, dtype=None):
        super().__init__(num_features, num_features, eps, affine, device, dtype)


class InstanceNorm2d(InstanceNorm1d):
    """Normalises each channel of each image by itself; no weights unless affine."""
