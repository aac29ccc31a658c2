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
from .._dispatch import Recorder
from .._errors import error as _error
from .tools import also, filled, plain


def _key(generator):
    return None if generator is None else generator._next()


def _may_change(x, name, other=None):
    if isinstance(other, Recorder):
        raise _error(
            _core.ArgumentError,
            "tensor.inplace.recorded",
            f"{name} would write into an array of shape {x.shape} what is known only when a compiled or mapped function runs",
            help="return the value from the function, and change the array after the call",
        )
    if isinstance(x, Tensor) and x.requires_grad and _core.grad_enabled():
        raise _error(
            _core.ArgumentError,
            "tensor.inplace.graph",
            f"{name} would change a tensor of shape {x.shape} that requires gradients",
            help="with weft.no_grad(): ... for parameters; elsewhere write x = x + y",
        )


def _replace(x, value, name):
    """Gives x the elements of value, which broadcast to x's shape and are converted to its type."""
    _may_change(x, name, value)
    data = plain(x).copy() if isinstance(x, Tensor) else x
    data[...] = weft.asarray(plain(value), device=x.device).astype(x.dtype)
    if isinstance(x, Tensor):
        x.data = data
    return x


def _stepped(x, operation, other, name):
    """x operation= other, under the rules of arrays: type and shape stay."""
    _may_change(x, name, other)
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


def _div_(self, other, *, rounding_mode=None):
    """self /= other; with rounding_mode as div. Returns self."""
    if rounding_mode is None:
        return _stepped(self, operator.itruediv, other, "div_")
    return _again("div_")(self, other, rounding_mode=rounding_mode)


def _again(name):
    """The method without the underscore, as one that changes the tensor."""

    def method(self, *args, **kwargs):
        _may_change(self, name)
        values = Tensor(plain(self), requires_grad=False)
        kwargs = {k: plain(v) for k, v in kwargs.items()}
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


# Methods and functions that change nothing, one table; of each the one with an underscore gives a tensor the elements.
_AGAIN = """
    abs absolute acos acosh addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin
    asinh atan atan2 atanh baddbmm bernoulli bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
    bitwise_xor ceil clamp_max clamp_min clip conj_physical copysign cos cosh cumprod cumsum deg2rad digamma eq erf erfc erfinv
    exp exp2 expm1 fix float_power floor floor_divide fmod frac gcd ge greater greater_equal gt heaviside hypot index_add
    index_copy index_fill index_put index_reduce lcm ldexp le lerp less less_equal lgamma log log10 log1p log2 logical_and
    logical_not logical_or logical_xor logit lt masked_fill masked_scatter mvlgamma nan_to_num ne neg negative nextafter
    not_equal rad2deg reciprocal relu remainder renorm round rsqrt scatter scatter_add scatter_reduce sgn sigmoid sign sin sinc
    sinh sqrt square tan tanh tril triu trunc xlogy
""".split()
_SECOND = {
    "subtract_": "sub_",
    "multiply_": "mul_",
    "divide_": "div_",
    "true_divide_": "div_",
    "clamp_": "clip_",
}
_OWN = ("add_", "sub_", "mul_", "div_", "pow_", "zero_", "fill_", "copy_", "uniform_", "normal_")
IN_PLACE = frozenset([*(f"{n}_" for n in _AGAIN), *_SECOND, *_OWN])
# They would change the shape of what others hold: PyTorch's name: what to write instead.
_RESHAPING = {
    "squeeze_": "x = x.squeeze()", "unsqueeze_": "x = x.unsqueeze(dim)", "t_": "x = x.t()",
    "transpose_": "x = x.transpose(dim0, dim1)", "swapaxes_": "x = x.swapaxes(a, b)", "swapdims_": "x = x.swapdims(a, b)",
    "resize_": "x = weft.resize(x, shape)", "resize_as_": "x = weft.resize(x, other.shape)",
    "as_strided_": "x = weft.as_strided(x, size, stride)", "set_": "x = source",
}  # fmt: skip


def _reshaping(name):
    repair = _RESHAPING[name]

    def method(self, *args, **kwargs):
        raise _error(
            _core.ArgumentError,
            "tensor.inplace.shape",
            f"{name} would change the shape of a value of shape {tuple(self.shape)} that others may hold",
            help=repair,
        )

    method.__doc__ = f"Refused: shapes do not change in place. {repair} gives a new view."
    return method


def _drawn(name):
    draw = {
        "exponential_": lambda x, lambd=1.0: weft.random.exponential(1.0 / lambd, x.shape),
        "cauchy_": lambda x, median=0.0, sigma=1.0: (
            weft.random.standard_cauchy(x.shape) * sigma + median
        ),
        "log_normal_": lambda x, mean=1.0, std=2.0: weft.random.lognormal(mean, std, x.shape),
        "geometric_": lambda x, p: weft.random.geometric(p, x.shape),
        "random_": _whole_numbers,
    }[name]

    def method(self, *args, **kwargs):
        kwargs.pop("generator", None)
        return _replace(self, draw(self, *args, **kwargs).to(self.device), name)

    method.__doc__ = f"Random numbers as of weft.random ({name[:-1]}); returns self."
    return method


def _whole_numbers(x, low=0, high=None):
    low, high = (0, low or None) if high is None else (low, high)
    if high is None:
        kind = x.dtype
        bits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}.get(kind.name)
        high = 2**bits + 1 if bits else weft.iinfo(kind).max
    return weft.random.integers(low, high, x.shape)


@also(**_SECOND)
@filled(_drawn, "exponential_ cauchy_ log_normal_ geometric_ random_")
@filled(_reshaping, " ".join(_RESHAPING))
@filled(_step, "add_ sub_ mul_ pow_")
@filled(_again, " ".join(f"{n}_" for n in _AGAIN))
class InPlace:
    """Of arrays and tensors alike; a name with an underscore gives the elements of the method without it."""

    div_ = _div_

    def zero_(self):
        """All elements become 0; returns self."""
        return _replace(self, 0, "zero_")

    def fill_(self, value):
        """All elements become a number; returns self."""
        return _replace(self, value, "fill_")

    def copy_(self, source):
        """The elements become those of an array that broadcasts, converted to this type; returns self."""
        return _replace(self, source, "copy_")

    def detach_(self):
        """Forgets the graph: the tensor becomes a leaf without gradient; returns self."""
        if isinstance(self, Tensor):
            self.requires_grad = False
        return self

    def fill_diagonal_(self, value, wrap=False):
        """The diagonal of a matrix becomes a number; returns self."""
        data = plain(self).copy()
        weft.fill_diagonal(data, value)
        return _replace(self, data, "fill_diagonal_")

    def apply_(self, function):
        """Every element becomes function(element), called on the host; returns self."""
        return _replace(self, weft.vectorize(function)(plain(self)), "apply_")

    def map_(self, other, function):
        """Every element becomes function(element, other's element), called on the host; returns self."""
        return _replace(self, weft.vectorize(function)(plain(self), plain(other)), "map_")

    def put_(self, index, source, accumulate=False):
        """Elements at flat positions become those of source, or are added to; returns self."""
        return _replace(self, self.put(index, source, accumulate), "put_") if isinstance(self, Tensor) else _replace(self, Tensor(self, requires_grad=False).put(index, source, accumulate), "put_")  # fmt: skip

    def uniform_(self, a=0.0, b=1.0, *, generator=None):
        """Uniform random numbers in [a, b); returns self."""
        return _replace(
            self,
            weft.random.uniform(self.shape, a, b, device=self.device, key=_key(generator)),
            "uniform_",
        )

    def normal_(self, mean=0.0, std=1.0, *, generator=None):
        """Normal random numbers; returns self."""
        return _replace(
            self,
            weft.random.normal(self.shape, mean, std, device=self.device, key=_key(generator)),
            "normal_",
        )


@filled(_augmented, "__iadd__ __isub__ __imul__ __itruediv__ __ipow__")
class TensorInPlace:
    """Operators that change a tensor inside no_grad."""
