# SPDX-License-Identifier: Apache-2.0
"""Changes in place as PyTorch spells them: x.add_(y), x.zero_(), and p -= g inside no_grad.

A tensor keeps its identity and gets new data. One that records a graph cannot be changed: its operations would no longer
be what the graph says. Arrays are written through.
"""

from __future__ import annotations

import operator

from . import _core
from ._core import NDArray, Tensor
from ._errors import error as _error


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
    import weft

    _may_change(x, name)
    data = _plain(x).copy() if isinstance(x, Tensor) else x
    data[...] = weft.asarray(_plain(value), device=x.device).astype(x.dtype)
    if isinstance(x, Tensor):
        x.data = data
    return x


def _stepped(x, operation, other, name):
    """x operation= other, under the rules of arrays: type and shape stay."""
    _may_change(x, name)
    if isinstance(x, Tensor):
        x.data = operation(x.data.copy(), _plain(other))
    else:
        operation(x, _plain(other))
    return x


def _plain(x):
    return x.data if isinstance(x, Tensor) else x


def _step(name, operation):
    def method(self, other, *, alpha=1):
        return _stepped(self, operation, other if alpha == 1 else _plain(other) * alpha, name)

    method.__doc__ = f"The elements become self {name[:-1]} other (times alpha); returns self."
    return method


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
    import weft

    return _replace(self, weft.clip(_plain(self), min, max), "clamp_")


def uniform_(self, a=0.0, b=1.0):
    """Uniform random numbers in [a, b); returns self."""
    import weft

    return _replace(self, weft.random.uniform(self.shape, a, b, device=self.device), "uniform_")


def normal_(self, mean=0.0, std=1.0):
    """Normal random numbers; returns self."""
    import weft

    return _replace(self, weft.random.normal(self.shape, mean, std, device=self.device), "normal_")


_STEPS = {
    "add_": operator.iadd,
    "sub_": operator.isub,
    "mul_": operator.imul,
    "div_": operator.itruediv,
    "pow_": operator.ipow,
}


def _again(name):
    """A method that gives a new tensor, as one that changes the tensor."""

    def method(self, *args, **kwargs):
        _may_change(self, f"{name}_")
        plain = Tensor(_plain(self), requires_grad=False)
        return _replace(self, getattr(plain, name)(*map(_plain, args), **kwargs), f"{name}_")

    method.__doc__ = f"The elements become those of {name}(...); returns self."
    return method


AGAIN = (
    "abs neg exp log sqrt rsqrt square reciprocal sigmoid tanh relu sin cos floor ceil round trunc sign erf expm1 log1p "
    "clip clamp_min clamp_max masked_fill index_fill index_add scatter scatter_add lerp addcmul addcdiv "
    "nan_to_num tril triu bernoulli fmod cumsum"
).split()


def _augmented(symbol, name):
    def method(self, other):
        if _core.grad_enabled():  # part of the graph: x = x + y, a new tensor
            return NotImplemented
        return _stepped(self, _STEPS[name], other, symbol)

    method.__doc__ = (
        f"Inside no_grad the tensor itself changes; elsewhere x {symbol} y makes a new tensor."
    )
    return method


for _class in (Tensor, NDArray):
    for _method in (zero_, fill_, copy_, clamp_, uniform_, normal_):
        setattr(_class, _method.__name__, _method)
    for _name, _function in _STEPS.items():
        _made = _step(_name, _function)
        _made.__name__ = _made.__qualname__ = _name
        setattr(_class, _name, _made)
for _name in AGAIN:
    _made = _again(_name)
    _made.__name__ = _made.__qualname__ = f"{_name}_"
    setattr(Tensor, f"{_name}_", _made)
for _symbol, _dunder, _name in (
    ("+=", "__iadd__", "add_"),
    ("-=", "__isub__", "sub_"),
    ("*=", "__imul__", "mul_"),
    ("/=", "__itruediv__", "div_"),
    ("**=", "__ipow__", "pow_"),
):
    setattr(Tensor, _dunder, _augmented(_symbol, _name))
