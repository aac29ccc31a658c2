# SPDX-License-Identifier: Apache-2.0
"""Changes in place as PyTorch spells them: x.add_(y), x.zero_(), and p -= g inside no_grad.

A tensor keeps its identity and gets new data. One that records a graph cannot be changed: its operations would no longer
be what the graph says. Arrays are written through.
"""

from __future__ import annotations

import operator

import weft

from .. import _core
from .._core import Tensor
from .._errors import error as _error
from .tools import filled, plain


def _may_change(x, name):
    if isinstance(x, Tensor) and x.requires_grad and _core.grad_enabled():
        raise _error(
            _core.ArgumentError,
            "tensor.inplace.graph",
            f"{name} would change a tensor of shape {x.shape} that requires gradients",
            help="with weft.no_grad(): ... for parameters; elsewhere write x = x + y",
        )


def _replace(x, value, name):
    """Gives x the elements of value, which broadcast to x's shape and are converted to its type."""
    _may_change(x, name)
    data = plain(x).copy() if isinstance(x, Tensor) else x
    data[...] = weft.asarray(plain(value), device=x.device).astype(x.dtype)
    if isinstance(x, Tensor):
        x.data = data
    return x


def _stepped(x, operation, other, name):
    """x operation= other, under the rules of arrays: type and shape stay."""
    _may_change(x, name)
    if isinstance(x, Tensor):
        x.data = operation(x.data.copy(), plain(other))
    else:
        operation(x, plain(other))
    return x


# The method, the operator's method, the operator, its symbol.
_STEPS = (
    ("add_", "__iadd__", operator.iadd, "+="),
    ("sub_", "__isub__", operator.isub, "-="),
    ("mul_", "__imul__", operator.imul, "*="),
    ("div_", "__itruediv__", operator.itruediv, "/="),
    ("pow_", "__ipow__", operator.ipow, "**="),
)
_OF_NAME = {
    name: (operation, symbol)
    for row in _STEPS
    for name in row[:2]
    for operation, symbol in [row[2:]]
}


def _step(name):
    operation, symbol = _OF_NAME[name]

    def method(self, other, *, alpha=1):
        return _stepped(self, operation, other if alpha == 1 else plain(other) * alpha, name)

    method.__doc__ = f"self {symbol} other (times alpha); returns self."
    return method


def _again(name):
    """The method without the underscore, as one that changes the tensor."""

    def method(self, *args, **kwargs):
        _may_change(self, name)
        values = Tensor(plain(self), requires_grad=False)
        return _replace(self, getattr(values, name[:-1])(*map(plain, args), **kwargs), name)

    method.__doc__ = f"The elements become those of {name[:-1]}(...); returns self."
    return method


def _augmented(name):
    operation, symbol = _OF_NAME[name]

    def method(self, other):
        if _core.grad_enabled():  # part of the graph: x = x + y, a new tensor
            return NotImplemented
        return _stepped(self, operation, other, symbol)

    method.__doc__ = (
        f"Inside no_grad the tensor itself changes; elsewhere x {symbol} y makes a new tensor."
    )
    return method


@filled(_step, "add_ sub_ mul_ div_ pow_")
@filled(
    _again,
    "abs_ neg_ exp_ log_ sqrt_ rsqrt_ square_ reciprocal_ sigmoid_ tanh_ relu_ sin_ cos_ floor_ ceil_ round_ trunc_ "
    "sign_ erf_ expm1_ log1p_ clip_ clamp_min_ clamp_max_ masked_fill_ index_fill_ index_add_ scatter_ scatter_add_ "
    "lerp_ addcmul_ addcdiv_ nan_to_num_ tril_ triu_ bernoulli_ fmod_ cumsum_",
)
class InPlace:
    """Of arrays and tensors alike; a name with an underscore gives the elements of the method without it."""

    def zero_(self):
        """All elements become 0; returns self."""
        return _replace(self, 0, "zero_")

    def fill_(self, value):
        """All elements become a number; returns self."""
        return _replace(self, value, "fill_")

    def copy_(self, source):
        """The elements become those of an array that broadcasts, converted to this type; returns self."""
        return _replace(self, source, "copy_")

    def clamp_(self, min=None, max=None):
        """Every element is brought between min and max; returns self."""
        return _replace(self, weft.clip(plain(self), min, max), "clamp_")

    def uniform_(self, a=0.0, b=1.0):
        """Uniform random numbers in [a, b); returns self."""
        return _replace(self, weft.random.uniform(self.shape, a, b, device=self.device), "uniform_")

    def normal_(self, mean=0.0, std=1.0):
        """Normal random numbers; returns self."""
        return _replace(
            self, weft.random.normal(self.shape, mean, std, device=self.device), "normal_"
        )


@filled(_augmented, "__iadd__ __isub__ __imul__ __itruediv__ __ipow__")
class TensorInPlace:
    """Operators that change a tensor inside no_grad."""
