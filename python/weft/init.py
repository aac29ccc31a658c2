# SPDX-License-Identifier: Apache-2.0
"""Initial values of parameters."""

from __future__ import annotations

import math

import weft

from ._core import shown as _shown
from ._core import Tensor
from ._boundary import publish as _publish
from ._errors import error as _error

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0)}


def _wrap(x, device, requires_grad):
    return Tensor(x if device is None else x.to(device), requires_grad=requires_grad)


def rand(*shape, low=0.0, high=1.0, dtype=None, device=None, requires_grad=False, key=None):
    """Uniform in [low, high)."""
    return _wrap(
        weft.random.uniform(shape, low, high, dtype=dtype, device=device, key=key),
        None,
        requires_grad,
    )


def randn(*shape, mean=0.0, std=1.0, dtype=None, device=None, requires_grad=False, key=None):
    """Normal."""
    return _wrap(
        weft.random.normal(shape, mean, std, dtype=dtype, device=device, key=key),
        None,
        requires_grad,
    )


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


def calculate_gain(nonlinearity, param=None):
    """The factor by which a nonlinearity shrinks a signal; param is the slope of "leaky_relu" (0.01)."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    known = {**_GAINS, "conv1d": 1.0, "conv2d": 1.0, "selu": 0.75}
    if nonlinearity not in known:
        raise _error(
            "value",
            "init.gain",
            f"no gain is known for {_shown(nonlinearity)}",
            [f"legal: {', '.join(sorted(known))}, leaky_relu"],
        )
    return known[nonlinearity]


def _fans(tensor):
    """(in, out) of a weight: (in, out) of Linear, (out, in / groups, ...) of convolutions."""
    if tensor.ndim < 2:
        raise _error(
            "shape",
            "init.fan",
            f"a tensor of shape {tensor.shape} has no fan-in: two axes are needed",
            help="give a tensor with two axes or more, or use normal_ and uniform_",
        )
    if tensor.ndim == 2:
        return tensor.shape
    area = math.prod(tensor.shape[2:])
    return tensor.shape[1] * area, tensor.shape[0] * area


def _given(tensor, values):
    """The elements of the tensor become these; returns it. Parameters may be given values at any time."""
    values = values.astype(tensor.dtype).to(tensor.device)
    if isinstance(tensor, weft.NDArray):
        tensor[...] = values
    else:
        tensor.data = values
    return tensor


def uniform_(tensor, a=0.0, b=1.0):
    """Uniform in [a, b); returns the tensor."""
    return _given(tensor, weft.random.uniform(tensor.shape, a, b, device=tensor.device))


def normal_(tensor, mean=0.0, std=1.0):
    """Normal; returns the tensor."""
    return _given(tensor, weft.random.normal(tensor.shape, mean, std, device=tensor.device))


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0):
    """Normal, drawn again outside of [a, b]; returns the tensor."""
    x = weft.random.normal(tensor.shape, mean, std, device=tensor.device)
    for _ in range(100):
        outside = (x < a) | (x > b)
        if not bool(weft.any(outside)):
            break
        x = weft.where(
            outside, weft.random.normal(tensor.shape, mean, std, device=tensor.device), x
        )
    return _given(tensor, weft.clip(x, a, b))


def constant_(tensor, val):
    """The same number everywhere; returns the tensor."""
    return _given(tensor, weft.full(tensor.shape, float(val)))


def ones_(tensor):
    """Ones; returns the tensor."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Zeros; returns the tensor."""
    return constant_(tensor, 0.0)


def eye_(tensor):
    """The identity, as far as it goes, of a matrix; returns it."""
    return _given(tensor, weft.eye(*tensor.shape))


def xavier_uniform_(tensor, gain=1.0):
    """As xavier_uniform, into a weight; returns it. Raises ShapeError below two axes."""
    return _given(tensor, xavier_uniform(*_fans(tensor), gain, shape=tensor.shape).data)


def xavier_normal_(tensor, gain=1.0):
    """As xavier_normal, into a weight; returns it. Raises ShapeError below two axes."""
    return _given(tensor, xavier_normal(*_fans(tensor), gain, shape=tensor.shape).data)


def _kaiming_std(tensor, a, mode, nonlinearity):
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(tensor, a=0.0, mode="fan_in", nonlinearity="leaky_relu"):
    """Uniform with variance gain**2 / fan, into a weight; `a` is leaky_relu's slope. Returns it."""
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor, a=0.0, mode="fan_in", nonlinearity="leaky_relu"):
    """Normal with variance gain**2 / fan, into a weight; `a` is leaky_relu's slope. Returns it."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity))


def orthogonal_(tensor, gain=1.0):
    """Orthogonal rows or columns (whichever are fewer) of the tensor seen as a matrix; returns it."""
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    q, r = weft.linalg.qr(weft.random.normal((max(rows, columns), min(rows, columns))))
    q = q * weft.sign(weft.linalg.diagonal(r))
    return _given(tensor, ((q if rows >= columns else q.T) * gain).reshape(tensor.shape))


def dirac_(tensor, groups=1):
    """A convolution (o, c, ...) that gives back its channels, as many as there are; returns it. Raises ShapeError."""
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise _error(
            weft.ShapeError,
            "init.dirac.shape",
            f"dirac_ of shape {tuple(tensor.shape)} in {groups} groups",
            ["rule: (o, c, ...) with one to three spatial axes, o a multiple of groups"],
        )
    values = weft.zeros(tensor.shape, dtype=tensor.dtype)
    out = tensor.shape[0] // groups
    for g in range(groups):
        for k in range(min(out, tensor.shape[1])):
            values[(g * out + k, k, *(n // 2 for n in tensor.shape[2:]))] = 1.0
    return _given(tensor, values)


def sparse_(tensor, sparsity, std=0.01):
    """Normal numbers, in each column this part of them zero; returns it."""
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    order = weft.argsort(weft.random.uniform((rows, columns)), axis=0)
    rank = weft.argsort(order, axis=0)
    values = weft.random.normal((rows, columns), 0.0, std)
    return _given(tensor, weft.where(rank < zeros, 0.0, values))


_publish(__name__)
