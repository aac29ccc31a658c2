# SPDX-License-Identifier: Apache-2.0
"""Normalisation over groups of channels."""

from __future__ import annotations

import weft

from .. import _core, init
from .._core import NDArray, Tensor
from .._autocast import listed
from .._errors import error as _error
from .._pointwise import pointwise
from .module import Module, Parameter


def by_statistics(x, mean, var, weight, bias, eps):
    """(x - mean) / sqrt(var + eps) * weight + bias of each feature, as one product and one sum over x."""
    shape = (1, -1, *(1,) * (x.ndim - 2))
    mean, var = (
        v if isinstance(v, Tensor) else Tensor(v, requires_grad=False) for v in (mean, var)
    )
    scale = weft.rsqrt(var + eps)
    scale = scale if weight is None else scale * weight
    shift = -(mean * scale) if bias is None else bias - mean * scale
    return _affine(x, scale.reshape(*shape), shift.reshape(*shape))


def as_one_node(x, weight, bias, eps, groups=0):
    """(normalised x, mean, variance) of groups of channels, or 0: of each channel over the batch; None where there are
    no kernels for it."""
    if not isinstance(x, (NDArray, Tensor)):
        return None
    if any(
        v is not None and (not isinstance(v, (NDArray, Tensor)) or v.dtype != x.dtype)
        for v in (weight, bias)
    ):
        return None
    given = x, weight, bias
    found = _core._plane_norm(
        *(Tensor(v, requires_grad=False) if isinstance(v, NDArray) else v for v in given),
        eps,
        groups,
    )
    if found is None or any(isinstance(v, Tensor) for v in given):
        return found
    return found[0].data, *found[1:]


def moved_statistics(mean, var, new_mean, new_var, keep, part, part_var):
    """Running statistics and those of a batch, by shares."""
    return mean * keep + new_mean * part, var * keep + new_var * part_var


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    """x (n, c, ...) with mean 0 and variance 1 over each group of neighbouring channels and all that follows, then
    times weight and plus bias, one number for each channel. Raises ShapeError when the groups do not divide c."""
    if x.ndim < 2 or x.shape[1] % num_groups:
        raise _error(
            weft.ShapeError,
            "nn.group_norm.shape",
            f"{num_groups} groups do not divide the channels (axis 1) of shape {x.shape}",
            help="choose a number of groups that divides the channels",
        )
    if x.size == 0:
        return x
    found = as_one_node(x, weight, bias, eps, num_groups)
    if found is not None:
        return found[0]
    rows = x.reshape(x.shape[0], num_groups, -1)
    y = rows.layer_norm(None, None, eps).reshape(*x.shape)
    shape = (1, -1, *(1,) * (x.ndim - 2))
    if weight is not None and bias is not None:
        return _affine(y, weight.reshape(*shape), bias.reshape(*shape))
    y = y if weight is None else y * weight.reshape(*shape)
    return y if bias is None else y + bias.reshape(*shape)


@pointwise
def _affine(x, scale, shift):
    return x * scale + shift


def statistics_of_images(x, mean, var, momentum):
    """Running statistics that have taken the means of those of a batch's images, by a part `momentum`."""
    axes, data = tuple(range(2, x.ndim)), getattr(x, "data", x)
    size = x.size // max(x.shape[0] * x.shape[1], 1)
    new_mean = weft.mean(weft.mean(data, axis=axes), axis=0)
    new_var = weft.mean(weft.var(data, axis=axes, correction=1.0 if size > 1 else 0.0), axis=0)
    return moved_statistics(mean, var, new_mean, new_var, 1 - momentum, momentum, momentum)


def instance_norm(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """group_norm with each channel a group of its own; by the running statistics unless use_input_stats, which move by `momentum` else."""
    if not use_input_stats:
        return by_statistics(x, running_mean, running_var, weight, bias, eps)
    if running_mean is not None:
        moved = statistics_of_images(x, running_mean, running_var, momentum)
        for kept, new in zip((running_mean, running_var), moved):
            weft.copyto(kept, new)
    return group_norm(x, x.shape[1], weight, bias, eps)


def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    """x over (k + alpha * mean of the squares of `size` neighbouring channels) ** beta; zeros beyond the edges."""
    if x.ndim < 3:
        raise _error(
            weft.ShapeError,
            "nn.local_response_norm.shape",
            f"local_response_norm of shape {x.shape}",
            ["rule: (n, c, ...) with a spatial axis"],
        )
    border = [(0, 0)] * x.ndim
    border[1] = (size // 2, (size - 1) // 2)
    squares, c = weft.pad(x * x, border), x.shape[1]
    total = squares[:, :c]
    for i in range(1, size):
        total = total + squares[:, i : i + c]
    return x / (total * (alpha / size) + k) ** beta


class LocalResponseNorm(Module):
    """nn.functional.local_response_norm."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.options = size, alpha, beta, k

    def forward(self, x):
        return local_response_norm(x, *self.options)


class GroupNorm(Module):
    """nn.functional.group_norm with a weight and a bias for each channel, or none (affine=False)."""

    def __init__(
        self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__()
        self.num_groups, self.eps = num_groups, eps
        self.weight = self.bias = None
        if num_groups < 1 or num_channels % num_groups:
            raise _error(
                weft.ShapeError,
                "nn.group_norm.shape",
                f"{num_groups} groups do not divide {num_channels} channels",
                help="choose a number of groups that divides the channels",
            )
        if affine:
            self.weight = Parameter(init.ones(num_channels, dtype=dtype, device=device))
        if affine and bias:
            self.bias = Parameter(init.zeros(num_channels, dtype=dtype, device=device))

    def forward(self, x):
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class InstanceNorm2d(GroupNorm):
    """Normalises each channel of each image (n, c, h, w) or (c, h, w) by itself; no weights unless affine.

    track_running_stats: eval normalises by running means of the images' statistics, of which each batch's take a part `momentum`.
    """

    spatial = 2

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, num_features, eps, affine, device, dtype, bias=bias)
        self.momentum, self.running_mean, self.running_var = momentum, None, None
        if track_running_stats:
            self.running_mean = weft.zeros((num_features,), dtype=dtype, device=device)
            self.running_var = weft.ones((num_features,), dtype=dtype, device=device)

    @listed("around")
    def forward(self, x):
        if x.ndim == self.spatial + 1:
            return self.forward(x[None])[0]
        if self.running_mean is None:
            return super().forward(x)
        if not self.training:
            return by_statistics(
                x, self.running_mean, self.running_var, self.weight, self.bias, self.eps
            )
        moved = statistics_of_images(x, self.running_mean, self.running_var, self.momentum)
        self.running_mean, self.running_var = moved
        return super().forward(x)


class InstanceNorm1d(InstanceNorm2d):
    """Normalises each channel of each row (n, c, length) or (c, length) by itself; no weights unless affine."""

    spatial = 1


class InstanceNorm3d(InstanceNorm2d):
    """Normalises each channel of each volume by itself; no weights unless affine."""

    spatial = 3
