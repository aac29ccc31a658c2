# SPDX-License-Identifier: Apache-2.0
"""Normalisation over the batch, over features, and along neighbouring channels."""

from __future__ import annotations

import weft

from .. import _core, init
from .._autocast import listed
from .._errors import error as _error
from .._fused_step import FusedStep
from .._held_state import captured
from . import functional as F
from .groups import as_one_node, by_statistics, moved_statistics
from .module import Module, Parameter


_running = FusedStep(moved_statistics)


def _extent(name, own, other, alias):
    """What was given under one of two names."""
    if (own is None) == (other is None):
        raise _error(
            weft.ArgumentError,
            "nn.norm.extent",
            f"{name} needs its extent once, got {own} and {alias}={other}",
            help=f"give it first, or as {alias}=",
        )
    return own if other is None else other


class _BatchNorm(Module):
    """Mean 0 and variance 1 of each feature over the batch while training, by running statistics in eval.

    Running statistics take a part `momentum` of each batch's; with momentum None all batches count alike; without
    track_running_stats there are none, and eval normalises over the batch, too. `num_features` is PyTorch's name of `dim`.
    """

    ranks = (2, 3)

    def __init__(
        self,
        dim=None,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        num_features=None,
        *,
        bias=True,
    ):
        super().__init__()
        dim = _extent("BatchNorm", dim, num_features, "num_features")
        self.eps, self.momentum, self.features = eps, momentum, dim
        self.weight = self.bias = None
        if affine:
            self.weight = Parameter(init.ones(dim, dtype=dtype, device=device))
        if affine and bias:
            self.bias = Parameter(init.zeros(dim, dtype=dtype, device=device))
        self.running_mean = self.running_var = None
        self.batches = 0
        if track_running_stats:
            self.running_mean = weft.zeros((dim,), dtype=dtype, device=device)
            self.running_var = weft.ones((dim,), dtype=dtype, device=device)

    def _remember(self, mean, var, count):
        if captured() and self.momentum is None:
            raise _error(
                weft.ArgumentError,
                "nn.batch_norm.capture",
                f"{type(self).__name__} with momentum None in a captured function",
                [
                    "the part of a batch in the statistics depends on the number of batches, which replays repeat"
                ],
                help="give a momentum",
            )
        self.batches += 1
        share = 1.0 / self.batches if self.momentum is None else self.momentum
        scale = count / max(count - 1.0, 1.0)
        mean = mean.astype(self.running_mean.dtype, copy=False)
        var = var.astype(self.running_var.dtype, copy=False)
        self.running_mean, self.running_var = _running(
            self.running_mean, self.running_var, mean, var, 1 - share, share, share * scale
        )

    def _as_one(self, x):
        """The normalised batch by sums and one map as one node, where the device has kernels for it."""
        found = as_one_node(x, self.weight, self.bias, self.eps)
        if found is None:
            return None
        y, mean, var = found
        if self.training and self.running_mean is not None:
            self._remember(mean, var, x.size / self.features)
        return y

    @listed("around")
    def forward(self, x):
        if x.ndim not in self.ranks or x.shape[1] != self.features:
            raise _error(
                weft.ShapeError,
                "nn.batch_norm.shape",
                f"{type(self).__name__} of {self.features} features got shape {x.shape}",
                note=f"rule: {' or '.join(map(str, self.ranks))} dimensions, features along axis 1",
            )
        axes, shape = (0, *range(2, x.ndim)), (1, -1, *(1,) * (x.ndim - 2))
        if self.training or self.running_mean is None:
            kernels = self._as_one(x)
            if kernels is not None:
                return kernels
            mean = x.mean(axes, True)
            centred = x - mean
            var = (centred * centred).mean(axes, True)
            if self.training and self.running_mean is not None:
                self._remember(mean.data.reshape(-1), var.data.reshape(-1), x.size / self.features)
        else:
            return by_statistics(
                x, self.running_mean, self.running_var, self.weight, self.bias, self.eps
            )
        scale = weft.rsqrt(var + self.eps)
        if self.weight is None:
            return centred * scale
        y = centred * (scale * self.weight.reshape(*shape))
        return y if self.bias is None else y + self.bias.reshape(*shape)


class BatchNorm1d(_BatchNorm):
    """Normalises each feature of (n, features) or (n, features, length) over the batch."""


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of (n, c, h, w) over the batch."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises each channel of (n, c, d, h, w) over the batch."""

    ranks = (5,)


class LayerNorm(Module):
    """Normalises the last axis, or the last axes when `dim` is a sequence of their extents.

    `normalized_shape` is PyTorch's name of `dim`.
    """

    def __init__(
        self,
        dim=None,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        device=None,
        dtype=None,
        normalized_shape=None,
    ):
        super().__init__()
        dim = _extent("LayerNorm", dim, normalized_shape, "normalized_shape")
        self.eps, self.shape = eps, tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
        self.weight = self.bias = None
        if elementwise_affine:
            self.weight = Parameter(init.ones(*self.shape, dtype=dtype, device=device))
        if elementwise_affine and bias:
            self.bias = Parameter(init.zeros(*self.shape, dtype=dtype, device=device))

    def forward(self, x):
        return F.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Divides by the root of the mean square over the last axis, or the last axes when `dim` is a sequence of extents.

    eps None is the type's. `normalized_shape` is PyTorch's name of `dim`.
    """

    def __init__(
        self,
        dim=None,
        eps=None,
        elementwise_affine=True,
        device=None,
        dtype=None,
        normalized_shape=None,
    ):
        super().__init__()
        dim = _extent("RMSNorm", dim, normalized_shape, "normalized_shape")
        self.eps, self.shape = eps, tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
        self.weight = None
        if elementwise_affine:
            self.weight = Parameter(init.ones(*self.shape, dtype=dtype, device=device))

    def forward(self, x):
        return F.rms_norm(x, self.shape, self.weight, self.eps)
