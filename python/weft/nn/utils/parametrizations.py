# SPDX-License-Identifier: Apache-2.0
"""Parametrizations by PyTorch's names (torch.nn.utils.parametrizations): weights with norms, spectral norms, orthogonal ones."""

from __future__ import annotations

from typing import TypeVar

import weft

from ..._core import shown as _shown
from ..._boundary import publish as _publish
from ..._errors import error as _error
from ..module import Module
from . import _axes_but, _axis_of, _length, _singular
from .parametrize import _no_parameter, register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_M = TypeVar("_M", bound=Module)


def _parameter(module, name):
    value = getattr(module, name, None)
    if not isinstance(value, weft.Tensor):
        raise _no_parameter(module, name)
    return value


class _WeightNorm(Module):
    def __init__(self, axes):
        super().__init__()
        self.axes = axes

    def forward(self, g, v):
        return v * (g / _length(v, self.axes))

    def right_inverse(self, value):
        return _length(value, self.axes), value


def weight_norm(module: _M, name: str = "weight", dim: int | None = 0) -> _M:
    """The module with a weight of g v / |v|: `original0` is g, `original1` v, norms over all axes but dim (None: over all)."""
    axes = _axes_but(module, name, _parameter(module, name), dim)
    return register_parametrization(module, name, _WeightNorm(axes))


class _SpectralNorm(Module):
    def __init__(self, weight, axis, rounds, eps):
        super().__init__()
        self.order = (axis, *(k for k in range(weight.ndim) if k != axis))
        self.rounds, self.eps = rounds, eps
        for name, vector in _singular.start(self._matrix(weight.data), eps):
            self.register_buffer(name, vector)
        self._renew(weight.data, 15)

    def _matrix(self, w):
        return w.permute(*self.order).reshape(w.shape[self.order[0]], -1)

    def _renew(self, weight, rounds):
        self._u, self._v = _singular.renewed(
            self._matrix(weight), self._u, self._v, rounds, self.eps
        )

    def forward(self, weight):
        if self.training:
            self._renew(weight.data, self.rounds)
        return weight / _singular.value(self._matrix(weight), self._u, self._v)

    def right_inverse(self, value):
        return value


def spectral_norm(
    module: _M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> _M:
    """The module with a weight over its largest singular value, found by power iterations while training."""
    weight = _parameter(module, name)
    axis = _axis_of(module, name, weight, 0 if dim is None else dim)
    part = _SpectralNorm(weight, axis, n_power_iterations, eps)
    return register_parametrization(module, name, part)


class _Orthogonal(Module):
    def __init__(self, shape, kind):
        super().__init__()
        self.tall, self.kind = shape[-2] >= shape[-1], kind

    def forward(self, x):
        x = x if self.tall else x.mT
        n, k = x.shape[-2:]
        if n != k:
            x = weft.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - k)])
        x = weft.tril(x)
        skew = x - x.mT
        if self.kind == "matrix_exp":
            q = weft.linalg.matrix_exp(skew)
        else:
            one = weft.eye(n, dtype=x.dtype, device=x.device)
            q = weft.linalg.solve(one + skew * -0.5, one + skew * 0.5)
        q = (self.base @ q)[..., :k]
        return q if self.tall else q.mT

    def right_inverse(self, value):
        value = getattr(value, "data", value)
        q = value if self.tall else value.mT
        n, k = q.shape[-2:]
        if n != k:
            rest = weft.random.normal((*q.shape[:-1], n - k), dtype=q.dtype, device=q.device)
            q = weft.concat([q, rest], axis=-1)
        self.base = _orthogonalized(q)
        return weft.zeros_like(value)


def _orthogonalized(x):
    """Q of x = Q R with a positive diagonal of R: x itself where it is orthogonal."""
    q, r = weft.linalg.qr(x)
    sign = weft.where(weft.linalg.diagonal(r) < 0, -1.0, 1.0).astype(x.dtype)
    return q * weft.expand_dims(sign, -2)


def orthogonal(
    module: _M,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> _M:
    """The module with a weight whose columns (rows, where it is wide) are orthonormal; at first the orthogonal factor of its value.

    `orthogonal_map`: "matrix_exp" (or None) or "cayley". Raises ArgumentError for another, or without trivialization;
    ShapeError for fewer than two axes.
    """
    weight = _parameter(module, name)
    if orthogonal_map not in (None, "matrix_exp", "cayley") or not use_trivialization:
        raise _error(
            weft.ArgumentError,
            "nn.parametrize.orthogonal",
            f"orthogonal with orthogonal_map={_shown(orthogonal_map)}, use_trivialization={use_trivialization}",
            ['legal: None, "matrix_exp", "cayley", with use_trivialization=True'],
        )
    if weight.ndim < 2:
        raise _error(
            weft.ShapeError,
            "nn.parametrize.matrix",
            f"orthogonal takes a parameter with two axes or more, got one of shape {tuple(weight.shape)}",
        )
    part = _Orthogonal(weight.shape, orthogonal_map or "matrix_exp")
    return register_parametrization(module, name, part)


_publish(__name__)
