# SPDX-License-Identifier: Apache-2.0
"""Methods that are arithmetic on whole values: of tensors and of the traced values of weft.compile."""

from __future__ import annotations

import functools
import math
import operator

import weft

from .._core import shown as _shown
from .. import _core
from .._errors import error as _error
from .._pointwise import composed, has_graph
from .tools import also, filled, plain


def _operator(symbols, doc):
    """A maker of methods that are Python's operators; symbols are by the method's name."""

    def make(name):
        function, symbol = symbols[name]

        def method(self, other):
            return function(self, other)

        method.__doc__ = doc.format(symbol)
        return method

    return make


def _of_one(name):
    def method(self):
        return getattr(weft, name)(self)

    method.__doc__ = f"weft.{name} of the value, element by element."
    return method


def _of_two(name):
    def method(self, other):
        return getattr(weft, name)(self, other)

    method.__doc__ = f"weft.{name} of the value and another, element by element."
    return method


_BINARY = {
    "mul": (operator.mul, "*"),
    "pow": (operator.pow, "**"),
    "matmul": (operator.matmul, "@"),
    "mm": (operator.matmul, "@"),
    "bmm": (operator.matmul, "@"),
}
_COMPARED = {
    "eq": (operator.eq, "=="),
    "ne": (operator.ne, "!="),
    "lt": (operator.lt, "<"),
    "le": (operator.le, "<="),
    "gt": (operator.gt, ">"),
    "ge": (operator.ge, ">="),
}


@also(
    negative="neg",
    subtract="sub",
    multiply="mul",
    divide="div",
    true_divide="div",
    absolute="abs",
    fix="trunc",
    arcsin="asin",
    arccos="acos",
    arctan="atan",
    greater="gt",
    greater_equal="ge",
    less="lt",
    less_equal="le",
    not_equal="ne",
    ger="outer",
)
@filled(_operator(_BINARY, "self {} other."), " ".join(_BINARY))
@filled(_operator(_COMPARED, "self {} other, as an array of bool."), " ".join(_COMPARED))
@filled(
    _of_one,
    "abs cos exp log relu rsqrt sigmoid sin sqrt square tanh log1p expm1 reciprocal sign floor ceil isnan "
    "isfinite isinf trunc erf exp2 log2 log10 tan asin acos atan sinh cosh asinh acosh atanh",
)
@filled(_of_two, "maximum minimum atan2 hypot remainder floor_divide copysign logaddexp")
class Arithmetic:
    """Composed of operators and public functions only, so that a trace sees through them."""

    def where(self, condition, other):
        """The elements where the condition is true, those of other elsewhere."""
        return weft.where(condition, self, other)

    def round(self, *, decimals=0):
        """The nearest whole numbers, halves to even; with decimals, numbers of so many places."""
        return weft.round(self) if decimals == 0 else weft.around(self, decimals)

    def i0(self):
        """The modified Bessel function of the first kind of order 0."""
        return weft.i0(self)

    def add(self, other, *, alpha=1):
        """self + alpha * other."""
        return self + (other if alpha == 1 else other * alpha)

    def sub(self, other, *, alpha=1):
        """self - alpha * other."""
        return self - (other if alpha == 1 else other * alpha)

    def div(self, other, *, rounding_mode=None):
        """self / other; with rounding_mode "floor" or "trunc" the whole number below it or towards 0, of integers as integers."""
        if rounding_mode is None:
            return self / other
        if rounding_mode not in ("floor", "trunc"):
            raise _error(
                _core.ArgumentError,
                "array.div.rounding",
                f"rounding_mode is {_shown(rounding_mode)}",
                ["legal: None, 'floor', 'trunc'"],
            )
        below = weft.floor_divide(self, other)
        if rounding_mode == "floor":
            return below
        if below.dtype.kind == "f":
            return weft.trunc(self / other)
        return weft.where((below < 0) & (below * other != self), below + 1, below)

    def masked_fill(self, mask, value):
        """With `value` where the mask, which broadcasts, is true."""
        return weft.where(weft.asarray(plain(mask)).astype("bool"), value, self)

    def norm(self, p=2, dim=None, keepdim=False):
        """The p-norm over all elements, or along an axis; inf: the largest magnitude, -inf: the least, 0: the count of non-zeros."""
        if p in ("fro", None):
            p = 2
        if p == "nuc":
            return weft.linalg.norm(self, "nuc")
        return weft.linalg.vector_norm(self, axis=dim, keepdims=keepdim, ord=p)

    def addmm(self, a, b, *, beta=1, alpha=1):
        """beta * self + alpha * (a @ b)."""
        return self * beta + (a @ b) * alpha

    def mv(self, vector):
        """The product of a matrix and a vector."""
        return self @ vector

    def outer(self, other):
        """The products of all pairs of two vectors."""
        return self.reshape(-1, 1) * other.reshape(1, -1)

    def dot(self, other):
        """The inner product of two vectors."""
        return self @ other

    def vdot(self, other):
        """The sum of conj(self) * other over all elements, in a row; as many on both sides."""
        first = weft.conj(self) if self.dtype.kind == "c" else self
        return first.reshape(-1) @ other.reshape(-1)

    def clamp(self, min=None, max=None):
        """Every element brought between min and max."""
        return weft.clip(self, min, max)

    @composed
    def addcmul(self, a, b, *, value=1):
        """self + value * a * b."""
        return self + a * b * value

    @composed
    def addcdiv(self, a, b, *, value=1):
        """self + value * a / b."""
        return self + a / b * value

    def baddbmm(self, a, b, *, beta=1, alpha=1):
        """beta * self + alpha * (a @ b), a product for each entry of a batch."""
        return self * beta + (a @ b) * alpha

    def addbmm(self, a, b, *, beta=1, alpha=1):
        """beta * self + alpha * the sum of a batch of products."""
        return self * beta + (a @ b).sum(0) * alpha

    def addmv(self, matrix, vector, *, beta=1, alpha=1):
        """beta * self + alpha * (matrix @ vector)."""
        return self * beta + (matrix @ vector) * alpha

    def addr(self, a, b, *, beta=1, alpha=1):
        """beta * self + alpha * the products of all pairs of two vectors."""
        return self * beta + a.reshape(-1, 1) * b.reshape(1, -1) * alpha

    def clamp_min(self, min):
        """Every element at least min."""
        return weft.clip(self, min, None)

    def clamp_max(self, max):
        """Every element at most max."""
        return weft.clip(self, None, max)

    def dist(self, other, p=2):
        """The p-norm of self - other."""
        return (self - other).norm(p)

    @composed
    def lerp(self, end, weight):
        """self + weight * (end - self)."""
        return self + (end - self) * weight

    @composed
    def frac(self):
        """self - trunc(self)."""
        return self - weft.trunc(plain(self))

    @composed
    def fmod(self, other):
        """The rest with the sign of self, without rounding error: self - other * trunc(self / other)."""
        kinds = [
            x.dtype.kind if hasattr(x, "dtype") else type(x).__name__[0] for x in (self, other)
        ]
        if "f" not in kinds:
            rest = weft.remainder(self, other)  # with the sign of other
            turned = (rest != 0) & ((self < 0) != (other < 0))
            return weft.where(turned, rest - other, rest)
        rest = weft.remainder(
            weft.abs(self), weft.abs(other) if hasattr(other, "dtype") else abs(other)
        )
        if kinds[0] == "f" and not has_graph(self):
            return weft.copysign(rest, self)
        return weft.where(
            plain(self) < 0, -rest, rest
        )  # whose gradient is that of a rest of 0, too

    @composed
    def logit(self, eps=None):
        """log(x / (1 - x)), x held between eps and 1 - eps."""
        x = self if eps is None else weft.clip(self, eps, 1 - eps)
        return weft.log(x) - weft.log1p(-x)

    @composed
    def erfc(self):
        """1 - erf(x), with all digits where erf is near 1."""
        from ..special._normal import erfc

        return erfc(self)

    @composed
    def sinc(self):
        """sin(pi x) / (pi x), 1 at 0."""
        zero = plain(self) == 0
        x = weft.where(zero, self * 0 + 1.0, self) * math.pi
        return weft.where(zero, self * 0 + 1.0, weft.sin(x) / x)

    @composed
    def xlogy(self, other):
        """self * log(other), 0 where self is 0 and the logarithm no number."""
        none = (plain(self) == 0) & (plain(other) <= 0)
        return weft.where(none, self * 0.0, self * weft.log(weft.where(none, 1.0, other)))

    @composed
    def deg2rad(self):
        """Degrees as radians."""
        return self * (math.pi / 180)

    @composed
    def rad2deg(self):
        """Radians as degrees."""
        return self * (180 / math.pi)

    @composed
    def nan_to_num(self, nan=0.0, posinf=None, neginf=None):
        """NaN and infinities as numbers: the type's largest unless given."""
        x = plain(self)
        limit = weft.finfo(x.dtype)
        real = x.dtype.kind == "f"
        out = weft.replace_nan(self, nan) if real else weft.where(weft.isnan(x), nan, self)
        finite = isinstance(nan, (int, float)) and math.isfinite(nan)
        if real and finite and posinf is None and neginf is None:
            return weft.clip(out, limit.min, limit.max)
        high, low = x == math.inf, x == -math.inf
        out = weft.where(high, limit.max if posinf is None else posinf, out)
        return weft.where(low, limit.min if neginf is None else neginf, out)

    def neg(self):
        """-self."""
        return -self
