# SPDX-License-Identifier: Apache-2.0
"""Activations beside those of layers.py, as functions and as modules."""

from __future__ import annotations

import math

import weft

from .. import init as _init
from .._methods.tools import plain
from .._pointwise import pointwise
from .module import Module, Parameter

__all__ = [
    "celu",
    "glu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "logsigmoid",
    "mish",
    "prelu",
    "relu6",
    "selu",
    "softmin",
    "softsign",
    "hardshrink",
    "softshrink",
    "tanhshrink",
    "threshold",
    "rrelu",
    "gumbel_softmax",
]


@pointwise
def hardtanh(x, min_val=-1.0, max_val=1.0):
    """x held between two numbers."""
    return weft.clip(x, min_val, max_val)


@pointwise
def relu6(x):
    """x held between 0 and 6."""
    return weft.clip(x, 0.0, 6.0)


@pointwise
def _gated(first, gate):
    return first * weft.sigmoid(gate)


@pointwise
def _gate_gradient(first, gate, g):
    s = weft.sigmoid(gate)
    return g * first * s * (1.0 - s)


@pointwise
def hardsigmoid(x):
    """relu6(x + 3) / 6."""
    return relu6(x + 3.0) * (1.0 / 6.0)


@pointwise
def hardswish(x):
    """x hardsigmoid(x)."""
    return weft.hardswish(x)


@pointwise
def logsigmoid(x):
    """log(1 / (1 + exp(-x))), without overflow."""
    return -weft.logaddexp(-x, 0.0)


@pointwise
def mish(x):
    """x tanh(log(1 + exp(x)))."""
    # With s = 1 / (1 + exp(-x)) and r = 1 - s, tanh(log(1 / r)) is (1 - r r) / (1 + r r), and 1 - r r
    # is s (1 + r), which keeps its digits where s is small: one exponential, no logarithm.
    s = weft.sigmoid(x)
    r = 1.0 - s
    return x * s * (1.0 + r) / (1.0 + r * r)


@pointwise
def celu(x, alpha=1.0):
    """x where positive, else alpha (exp(x / alpha) - 1)."""
    return weft.elu(x * (1.0 / alpha), 1.0) * alpha


@pointwise
def selu(x):
    """elu with the two constants that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return weft.elu(x, alpha) * scale


@pointwise
def softsign(x):
    """x / (1 + |x|)."""
    return x / (weft.abs(x) + 1.0)


def softmin(x, axis=-1, dim=None):
    """softmax(-x); `dim` is PyTorch's name of the axis."""
    return (-x).softmax(axis if dim is None else dim)


def glu(x, axis=-1, dim=None):
    """The first half along an axis times the sigmoid of the second. Raises ArgumentError or ShapeError as split does."""
    axis = axis if dim is None else dim
    half = -(-x.shape[axis] // 2)
    if not isinstance(x, weft.Tensor) or x.shape[axis] != 2 * half or half == 0:
        first, gate = x.split(half, axis)
        return _gated(first, gate)
    front = (slice(None),) * (axis % x.ndim)
    out = _gated(x.data[(*front, slice(half))], x.data[(*front, slice(half, None))])
    if not (x.requires_grad and weft._core.grad_enabled()):
        return weft.Tensor(out, requires_grad=False)

    def gradient(xs, result, g):
        # Of both halves at once: gradients of slices would be padded and added.
        first, gate = xs[0].split(half, axis)
        return [weft.concat([_gated(g, gate), _gate_gradient(first, gate, g)], axis=axis)]

    return weft._core._function_tensor("glu", out, [x], gradient, [0], False)


@pointwise
def hardshrink(x, lambd=0.5):
    """x where |x| > lambd, else 0."""
    return weft.where(weft.abs(plain(x)) > lambd, x, 0.0).astype(x.dtype)


@pointwise
def softshrink(x, lambd=0.5):
    """x moved towards 0 by lambd, 0 where |x| <= lambd."""
    return weft.relu(x - lambd) - weft.relu(-x - lambd)


@pointwise
def tanhshrink(x):
    """x - tanh(x)."""
    return x - weft.tanh(x)


@pointwise
def threshold(x, threshold, value):
    """x where x > threshold, else value."""
    return weft.where(plain(x) > threshold, x, value).astype(x.dtype)


def rrelu(x, lower=1.0 / 8, upper=1.0 / 3, training=False, key=None):
    """x where positive, else x times a random number in [lower, upper) while training, their mean otherwise."""
    if not training:
        return weft.nn.functional.leaky_relu(x, (lower + upper) / 2)
    slope = weft.random.uniform(x.shape, lower, upper, device=x.device, key=key).astype(x.dtype)
    return weft.relu(x) - weft.relu(-x) * weft.Tensor(slope, requires_grad=False)


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1, key=None):
    """softmax((logits + Gumbel noise) / tau); `hard` gives one-hot rows that have the gradient of the soft ones."""
    uniform = weft.random.uniform(logits.shape, 1e-7, 1.0 - 1e-7, device=logits.device, key=key)
    floats = weft.isdtype(logits.dtype, "real floating")
    noise = -weft.log(-weft.log(uniform.astype(logits.dtype) if floats else uniform))
    soft = ((logits + weft.Tensor(noise, requires_grad=False)) * (1.0 / tau)).softmax(dim)
    if not hard:
        return soft
    at = weft.argmax(soft.data, axis=dim, keepdims=True)
    axis = dim % soft.ndim
    shape = tuple(n if i == axis else 1 for i, n in enumerate(soft.shape))
    places = weft.arange(soft.shape[axis], device=soft.device).reshape(shape)
    one = (at == places).astype(soft.dtype)
    return soft + weft.Tensor(one - soft.data, requires_grad=False)


def prelu(x, weight):
    """x where positive, else weight times x; weight has one element, or one for each channel (axis 1)."""
    if weight.size > 1:
        weight = weight.reshape(1, -1, *(1,) * (x.ndim - 2))
    return _sloped(x, weight)


@pointwise
def _sloped(x, weight):
    return weft.leaky_relu(x, weight)


class PReLU(Module):
    """prelu with a weight that is learnt."""

    def __init__(self, num_parameters=1, init_value=0.25, device=None, dtype=None, init=None):
        super().__init__()
        value = init_value if init is None else init  # PyTorch's name
        self.weight = Parameter(_init.constant(num_parameters, c=value, device=device, dtype=dtype))

    def forward(self, x):
        return prelu(x, self.weight)


class _Fixed(Module):
    """A function with the arguments given at construction."""

    function = None

    def __init__(self, *args, inplace=False, **kwargs):
        super().__init__()
        self.options = args, kwargs

    def forward(self, x):
        args, kwargs = self.options
        return type(self).function(x, *args, **kwargs)


def _module(name, function):
    cls = type(
        name,
        (_Fixed,),
        {"function": staticmethod(function), "__doc__": f"nn.functional.{function.__name__}."},
    )
    cls.__module__ = __name__
    return cls


CELU, GLU, SELU = _module("CELU", celu), _module("GLU", glu), _module("SELU", selu)
Hardsigmoid, Hardswish = _module("Hardsigmoid", hardsigmoid), _module("Hardswish", hardswish)
Hardtanh, ReLU6 = _module("Hardtanh", hardtanh), _module("ReLU6", relu6)
LogSigmoid, Mish = _module("LogSigmoid", logsigmoid), _module("Mish", mish)
Softmin, Softsign = _module("Softmin", softmin), _module("Softsign", softsign)
Hardshrink, Softshrink = _module("Hardshrink", hardshrink), _module("Softshrink", softshrink)
Tanhshrink, Threshold = _module("Tanhshrink", tanhshrink), _module("Threshold", threshold)


class RReLU(Module):
    """nn.functional.rrelu."""

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper = lower, upper

    def forward(self, x):
        return rrelu(x, self.lower, self.upper, self.training)


class Softmax2d(Module):
    """softmax over the channels of (n, c, h, w) or (c, h, w)."""

    def forward(self, x):
        return x.softmax(-3)


@pointwise
def gelu_tanh(x):
    """GELU by the tanh formula: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2."""
    return x * (weft.tanh((x + x * x * x * 0.044715) * math.sqrt(2.0 / math.pi)) + 1.0) * 0.5
