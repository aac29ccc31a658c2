# SPDX-License-Identifier: Apache-2.0
"""Initial values of parameters."""

from __future__ import annotations

import math

import weft

from ._core import Tensor

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0)}


def _wrap(x, device, requires_grad):
    return Tensor(x if device is None else x.to(device), requires_grad=requires_grad)


def rand(*shape, low=0.0, high=1.0, dtype=None, device=None, requires_grad=False, key=None):
    """Uniform in [low, high)."""
    return _wrap(weft.random.uniform(shape, low, high, dtype=dtype, key=key), device, requires_grad)


def randn(*shape, mean=0.0, std=1.0, dtype=None, device=None, requires_grad=False, key=None):
    """Normal."""
    return _wrap(weft.random.normal(shape, mean, std, dtype=dtype, key=key), device, requires_grad)


def constant(*shape, c=1.0, dtype=None, device=None, requires_grad=False):
    """The same number everywhere."""
    return _wrap(weft.full(shape, float(c), dtype=dtype), device, requires_grad)


def ones(*shape, dtype=None, device=None, requires_grad=False):
    """Ones."""
    return constant(*shape, c=1.0, dtype=dtype, device=device, requires_grad=requires_grad)


def zeros(*shape, dtype=None, device=None, requires_grad=False):
    """Zeros."""
    return constant(*shape, c=0.0, dtype=dtype, device=device, requires_grad=requires_grad)


def one_hot(n, i, dtype=None, device=None):
    """Rows of the identity matrix."""
    i = weft.asarray(getattr(i, "data", i)).astype(weft.int64)
    rows = weft.take(weft.eye(n, dtype=dtype), weft.reshape(i, (-1,)), axis=0)
    return _wrap(weft.reshape(rows, (*i.shape, n)), device, False)


def xavier_uniform(fan_in, fan_out, gain=1.0, shape=None, **kwargs):
    """Uniform, variance kept forward and backward."""
    a = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return rand(*(shape or (fan_in, fan_out)), low=-a, high=a, **kwargs)


def xavier_normal(fan_in, fan_out, gain=1.0, shape=None, **kwargs):
    """Normal, variance kept forward and backward."""
    return randn(
        *(shape or (fan_in, fan_out)), std=gain * math.sqrt(2.0 / (fan_in + fan_out)), **kwargs
    )


def kaiming_uniform(fan_in, fan_out, shape=None, nonlinearity="relu", **kwargs):
    """Uniform, variance kept through a nonlinearity."""
    a = _GAINS[nonlinearity] * math.sqrt(3.0 / fan_in)
    return rand(*(shape or (fan_in, fan_out)), low=-a, high=a, **kwargs)


def kaiming_normal(fan_in, fan_out, shape=None, nonlinearity="relu", **kwargs):
    """Normal, variance kept through a nonlinearity."""
    return randn(
        *(shape or (fan_in, fan_out)), std=_GAINS[nonlinearity] / math.sqrt(fan_in), **kwargs
    )
