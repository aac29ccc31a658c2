# SPDX-License-Identifier: Apache-2.0
"""Initial values; random ones come from NumPy's generator, which course programs seed."""

import math

import needle as ndl

__all__ = [
    "rand",
    "randn",
    "constant",
    "ones",
    "zeros",
    "randb",
    "one_hot",
    "zeros_like",
    "ones_like",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
]


def _tensor(array, device, dtype, requires_grad):
    return ndl.Tensor(array, device=device, dtype=dtype, requires_grad=requires_grad)


def rand(*shape, low=0.0, high=1.0, device=None, dtype="float32", requires_grad=False):
    device = ndl.cpu() if device is None else device
    return _tensor(device.rand(*shape) * (high - low) + low, device, dtype, requires_grad)


def randn(*shape, mean=0.0, std=1.0, device=None, dtype="float32", requires_grad=False):
    device = ndl.cpu() if device is None else device
    return _tensor(device.randn(*shape) * std + mean, device, dtype, requires_grad)


def constant(*shape, c=1.0, device=None, dtype="float32", requires_grad=False):
    device = ndl.cpu() if device is None else device
    return _tensor(device.full(shape, c, dtype=dtype), device, dtype, requires_grad)


def ones(*shape, device=None, dtype="float32", requires_grad=False):
    return constant(*shape, c=1.0, device=device, dtype=dtype, requires_grad=requires_grad)


def zeros(*shape, device=None, dtype="float32", requires_grad=False):
    return constant(*shape, c=0.0, device=device, dtype=dtype, requires_grad=requires_grad)


def randb(*shape, p=0.5, device=None, dtype="bool", requires_grad=False):
    device = ndl.cpu() if device is None else device
    return _tensor(device.rand(*shape) <= p, device, dtype, requires_grad)


def one_hot(n, i, device=None, dtype="float32", requires_grad=False):
    device = ndl.cpu() if device is None else device
    return _tensor(
        device.one_hot(n, i.numpy().astype("int32"), dtype=dtype), device, dtype, requires_grad
    )


def zeros_like(array, *, device=None, requires_grad=False):
    return zeros(
        *array.shape, dtype=array.dtype, device=device or array.device, requires_grad=requires_grad
    )


def ones_like(array, *, device=None, requires_grad=False):
    return ones(
        *array.shape, dtype=array.dtype, device=device or array.device, requires_grad=requires_grad
    )


def xavier_uniform(fan_in, fan_out, gain=1.0, **kwargs):
    a = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return rand(fan_in, fan_out, low=-a, high=a, **kwargs)


def xavier_normal(fan_in, fan_out, gain=1.0, **kwargs):
    return randn(fan_in, fan_out, std=gain * math.sqrt(2.0 / (fan_in + fan_out)), **kwargs)


def kaiming_uniform(fan_in, fan_out, shape=None, nonlinearity="relu", **kwargs):
    assert nonlinearity == "relu", "Only relu supported currently"
    bound = math.sqrt(2.0) * math.sqrt(3.0 / fan_in)
    return rand(*(shape or (fan_in, fan_out)), low=-bound, high=bound, **kwargs)


def kaiming_normal(fan_in, fan_out, nonlinearity="relu", **kwargs):
    assert nonlinearity == "relu", "Only relu supported currently"
    return randn(fan_in, fan_out, std=math.sqrt(2.0) / math.sqrt(fan_in), **kwargs)
