# SPDX-License-Identifier: Apache-2.0
"""How far vectors are from one another."""

from __future__ import annotations

import math

import weft

from .. import init
from .._joined import joined as _joined
from .._wide import of_type as _of_type, wide as _wide
from .module import Module, Parameter

__all__ = ["cosine_similarity", "pairwise_distance", "pdist", "bilinear"]


def cosine_similarity(x, y, axis=1, eps=1e-8, dim=None):
    """The cosine of the angle between vectors along an axis; `dim` is PyTorch's name of the axis."""
    return _cosine(x, y, axis if dim is None else dim, eps)


@_joined
def _cosine(x, y, axis, eps):
    a, b = _wide(x), _wide(y)
    lengths = [weft.clip(weft.sqrt((v * v).sum(axis)), eps, None) for v in (a, b)]
    return _of_type((a * b).sum(axis) / (lengths[0] * lengths[1]), x, y)


def pairwise_distance(x, y, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x - y + eps along the last axis."""
    return _distance(x, y, p, eps, keepdim)


@_joined
def _distance(x, y, p, eps, keepdim):
    d = weft.abs(x - y + eps)
    if p == math.inf:
        return d.max(axis=-1, keepdims=keepdim)
    wide = _wide(d)
    powers = wide * wide if p == 2 else wide**p
    return _of_type(powers.sum(-1, keepdim) ** (1.0 / p), d)


def pdist(x, p=2.0):
    """The p-norms of the differences of all pairs of rows of x (n, m), those of row 0 first: (n (n - 1) / 2,)."""
    i, j = weft.triu_indices(x.shape[0], 1)
    d = weft.abs(weft.take(x, i, axis=0) - weft.take(x, j, axis=0))
    if p == math.inf:
        return d.max(axis=-1)
    if p == 0:
        return (d != 0).astype(x.dtype).sum(-1)
    if p == 1:
        return d.sum(-1)
    powers = (d * d if p == 2 else d**p).sum(-1)
    # Of equal rows the gradient is 0, as in PyTorch: their distance is taken of 1.
    same = (powers.data if isinstance(powers, weft.Tensor) else powers) == 0
    return weft.where(same, 0.0, weft.where(same, 1.0, powers) ** (1.0 / p))


def bilinear(x, y, weight, bias=None):
    """x[..., i] weight[o, i, j] y[..., j], summed over i and j, plus bias[o]."""
    out, width, height = weight.shape
    rows = x.reshape(-1, width) @ weight.permute(1, 0, 2).reshape(width, out * height)
    z = (rows.reshape(-1, out, height) * y.reshape(-1, 1, height)).sum(2)
    z = z.reshape(*x.shape[:-1], out)
    return z if bias is None else z + bias


class CosineSimilarity(Module):
    """nn.functional.cosine_similarity."""

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x, y):
        return cosine_similarity(x, y, self.dim, self.eps)


class PairwiseDistance(Module):
    """nn.functional.pairwise_distance."""

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.options = p, eps, keepdim

    def forward(self, x, y):
        return pairwise_distance(x, y, *self.options)


class Bilinear(Module):
    """nn.functional.bilinear with a weight (out, in1, in2) and a bias that are learnt."""

    def __init__(
        self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None
    ):
        super().__init__()
        bound = 1.0 / math.sqrt(in1_features)
        make = {"low": -bound, "high": bound, "dtype": dtype, "device": device}
        self.weight = Parameter(init.rand(out_features, in1_features, in2_features, **make))
        self.bias = Parameter(init.rand(out_features, **make)) if bias else None

    def forward(self, x, y):
        return bilinear(x, y, self.weight, self.bias)
