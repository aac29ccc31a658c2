# SPDX-License-Identifier: Apache-2.0
"""Values of a function that weft.compile traces: arrays that write down what is done to them."""

from __future__ import annotations

import math
import operator
import types
import weakref

import weft

from ._boundary import publish_class as _publish_class
from . import _autocast, _core
from ._core import NDArray, Tensor
from ._differentiating import differentiating
from ._dispatch import Recorder, leaves_of
from ._errors import error as _error
from ._islands import REFUSED, assigned, call_or_island, changed
from ._methods.arithmetic import Arithmetic
from ._methods.at import Indexed
from ._methods.inplace import IN_PLACE
from ._methods.named import Named
from ._methods.statistics import values_and_positions

active = []  # traces in progress, innermost last


def refuse(what, repair):
    raise _error("value", "compile.trace.unsupported", what, help=repair)


def _on_host():
    """Does the trace at hand run on the host?"""
    return bool(active) and active[-1].on_host


class Memory:
    """What an array of the function would share with its views: a change of one is seen through the others."""

    def __init__(self, held=False):
        self.held = held  # by the caller, too
        self._values = []

    def add(self, value):
        self._values.append(weakref.ref(value))

    def seen_beside(self, value):
        return self.held or any(v() is not None and v() is not value for v in self._values)


_THEMSELVES = frozenset("abs ceil conj floor positive real round sign square trunc".split())
#: comparison of truth values -> (what joins them, which one stays, which one is turned)
_COMPARED = {
    "greater": ("logical_and", 0, 1),
    "less": ("logical_and", 1, 0),
    "greater_equal": ("logical_or", 0, 1),
    "less_equal": ("logical_or", 1, 0),
}


def _beside_the_rows(name, args):
    """What rows that have no truth values mean for them, and the imaginary part of numbers that have none, as for arrays; None: nothing."""
    args = [weft.asarray(a) if isinstance(a, bool) else a for a in args]
    if name == "imag":
        x = args[0]
        # No constant: results of compiled functions depend on arguments.
        no = (
            None
            if x.dtype.kind == "c"
            else weft.logical_and(weft.equal(x, x), weft.not_equal(x, x))
        )
        return None if no is None else no.astype(x.dtype)
    if any(getattr(getattr(a, "dtype", None), "kind", "") != "b" for a in args):
        return None
    if name in _THEMSELVES:
        return weft.logical_or(args[0], args[0])  # in memory of its own
    if name not in _COMPARED:
        return None
    joined, kept, turned = _COMPARED[name]
    return getattr(weft, joined)(args[kept], weft.logical_not(args[turned]))


class Traced(Arithmetic, Named, Indexed, Recorder):
    """A value of a function that is being compiled."""

    __weft_tensor__ = True
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, lazy, memory=None):
        self._lazy = lazy
        self._memory = memory or Memory()
        self._memory.add(self)

    def _may_change(self, how):
        """A trace has values and no memory: a change in place is one of all names of the value. What others would see is refused."""
        if self._memory.seen_beside(self):
            what = (
                "its argument" if self._memory.held else "an array that shares memory with another"
            )
            refuse(
                f"the compiled function changes {what} in place by {how}, shape {self.shape}",
                "make a new array, x = x + y, and return it",
            )

    def _change(self, how, value):
        if value.shape != self.shape:
            refuse(
                f"{how} of an array of shape {self.shape} would need shape {value.shape}",
                "write it without the in-place operator",
            )
        self._may_change(how)
        self._lazy = value.astype(self.dtype)._lazy
        return self

    def __setitem__(self, key, value):
        if not active or active[-1].tensors:
            refuse(
                f"the compiled function assigns to elements of a tensor of shape {self.shape}",
                "make a new one: weft.where, weft.scatter or weft.concat",
            )
        self._may_change("assignment to elements")
        new = active[-1].island("assignment", assigned, (self, key, value), {})
        self._change("assignment to elements", new)

    shape = property(lambda self: tuple(self._lazy.shape))
    dtype = property(lambda self: self._lazy.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    T = mT = property(lambda self: self.transpose())

    @property
    def device(self):
        """Where the arguments of the trace are."""
        if not active:
            refuse("a traced value is used after its trace", "return values from the function")
        return active[-1]._like.device

    def __weft_call__(self, name, function, args, kwargs):
        if not active:
            return function(*args, **kwargs)
        return call_or_island(active[-1], name, function, args, kwargs)

    def __weft_operation__(self, name, args):
        if self.dtype.kind == "b" or name == "imag":
            meant = _beside_the_rows(name, args)
            if meant is not None:
                return meant
        return Traced(_core._lazy_row(name, [_operand(a, self) for a in args]))

    def astype(self, dtype, copy=True):
        lazy = _core._lazy_cast(self._lazy, dtype)
        return Traced(lazy, None if copy or lazy.dtype != self.dtype else self._memory)

    def _where(self, condition, a, b):
        like = next(x for x in (a, b, self) if isinstance(x, Traced))
        return Traced(_core._lazy_where(*(lazy_of(x, like) for x in (condition, a, b))))

    def broadcast_to(self, shape):
        return Traced(_core._lazy_spread(self._lazy, tuple(shape)), self._memory)

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return Traced(_core._lazy_reshape(self._lazy, tuple(shape)), self._memory)

    def permute(self, *axes):
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return Traced(_core._lazy_permute(self._lazy, [a % self.ndim for a in axes]), self._memory)

    def held(self):
        """The same value, which gradients of the trace do not pass."""
        return Traced(_core._lazy_detach(self._lazy), self._memory)

    def detach(self):
        """The same values without gradients: a step of the plan that gradients do not pass."""
        return active[-1].island("detach", lambda x: x, (self,), {})

    def transpose(self, a=-2, b=-1):
        axes = list(range(self.ndim))
        axes[a], axes[b] = axes[b], axes[a]
        return self.permute(axes)

    def copy(self):
        """The same elements in memory of their own."""
        return self.__weft_operation__(
            *(("logical_or", (self, self)) if self.dtype == "bool" else ("positive", (self,)))
        )

    clone = copy

    def whole(self, name, function, args, kwargs):
        """What a function that hosts run in one pass gives, between two pieces; None where it has to be traced."""
        if not active or not active[-1].on_host or active[-1].tensors:
            return None
        return active[-1].island(name, function, args, kwargs)

    def _reduced(self, name, axis, keepdims):
        return Traced(_core._lazy_reduce(name, self._lazy, axis, keepdims))

    def sum(self, axis=None, keepdims=False, dtype=None):
        x = self if dtype is None else self.astype(dtype)
        return x._reduced("sum", axis, keepdims)

    def prod(self, axis=None, keepdims=False, dtype=None):
        x = self if dtype is None else self.astype(dtype)
        return x._reduced("prod", axis, keepdims)

    def max(self, *where, **named):
        return self._extreme("max", where, **named)

    def min(self, *where, **named):
        return self._extreme("min", where, **named)

    def _extreme(self, name, where, axis=None, keepdims=None, dim=None, keepdim=False, out=None):
        """Of tensors max(dim) gives values and positions and max(other) the larger, as outside; axis= and keepdims= give values."""
        if where:
            axis, keepdim = where[0], where[1] if len(where) > 1 else keepdim
            if hasattr(axis, "dtype"):
                return getattr(weft, f"{name}imum")(self, axis)
        asked = dim is not None or where and keepdims is None and not differentiating()
        pair = asked and isinstance(axis if dim is None else dim, int) and active
        axis, keep = axis if dim is None else dim, keepdims or keepdim
        values = self._reduced(name, axis, keep)
        if not pair or not active[-1].tensors:
            return values
        return values_and_positions(
            values, getattr(weft, f"arg{name}")(self, axis=axis, keepdims=keep)
        )

    @property
    def _in_torchs_words(self):
        """Do calls mean what PyTorch's do? Those of traced tensors."""
        return bool(active) and active[-1].tensors

    def sort(self, *args, **kwargs):
        """Of tensors (values, positions); of arrays as outside."""
        if not self._in_torchs_words:
            return active[-1].island("sort", named_method("sort"), (self, *args), kwargs)
        dim = kwargs.pop("dim", args[0] if args else -1)
        at = weft.argsort(self, axis=dim, **dict(zip(("descending",), args[1:])), **kwargs)
        return weft.take_along_axis(self, at, axis=dim), at

    @property
    def real(self):
        """The real parts: of real numbers, the value."""
        return weft.real(self) if self.dtype.kind == "c" else self

    @property
    def imag(self):
        """The imaginary parts."""
        return weft.imag(self) if self.dtype.kind == "c" else self * 0

    def all(self, axis=None, keepdims=False):
        return self._reduced("all", axis, keepdims)

    def any(self, axis=None, keepdims=False):
        return self._reduced("any", axis, keepdims)

    def mean(self, axis=None, keepdims=False, dtype=None):
        x = self if dtype is None else self.astype(dtype)
        if x.dtype.kind == "f" and x.dtype.itemsize < 4:  # the sum may lie beyond the type's range
            return x.astype("float32").mean(axis, keepdims).astype(x.dtype)
        total = x.sum(axis, keepdims)
        return total / (max(x.size, 1) / max(total.size, 1))

    def _variance(self, axis, keepdims, correction, root=False):
        """The variance or its root by the eager kernel, in one pass over memory; None where another way is as good."""
        if not (self.size and _on_host() and str(self.dtype) in ("float32", "float64")):
            return None
        return Traced(_core._lazy_variance(self._lazy, axis, keepdims, float(correction), root))

    def _rows(self, name, axis, operands=(), eps=0.0):
        """A row kernel along the last axis; None along another one, and for other types than real floats."""
        if self.ndim == 0 or axis not in (-1, self.ndim - 1) or self.dtype.kind != "f":
            return None
        lazies = [self._lazy, *(lazy_of(x, self) for x in operands)]
        if any(x.dtype != self.dtype for x in operands):
            return None
        return Traced(_core._lazy_rows(name, lazies, eps))

    def _rows_along(self, name, axis):
        """On the host a row kernel along any axis: it takes columns where these lie in memory."""
        rows = self._rows(name, axis)
        if rows is None and -self.ndim <= axis < self.ndim and _on_host():
            turned = self.transpose(axis, -1)
            rows = turned._rows(name, -1)
            rows = None if rows is None else rows.transpose(axis, -1)
        return rows

    def softmax(self, axis=-1):
        if (rows := self._rows_along("softmax", axis)) is not None:
            return rows
        e = weft.exp(self - self._reduced("max", axis, True))
        return e / e.sum(axis, True)

    def log_softmax(self, axis=-1):
        if (rows := self._rows_along("log_softmax", axis)) is not None:
            return rows
        shifted = self - self._reduced("max", axis, True)
        return shifted - weft.log(weft.exp(shifted).sum(axis, True))

    def logsumexp(self, axis=None, keepdims=False):
        if self.size and (rows := self._rows("logsumexp", axis)) is not None:
            return rows if keepdims else rows.reshape(self.shape[:-1])
        top = self._reduced("max", axis, True)
        top = weft.where(weft.isfinite(top), top, 0.0)  # infinity minus infinity is no number
        total = weft.log(weft.exp(self - top).sum(axis, True)) + top
        return total if keepdims else total.reshape(self._reduced("max", axis, False).shape)

    def layer_norm(self, scale, shift, eps=1e-5):
        row = {"shape": self.shape[-1:], "dtype": self.dtype, "device": self.device}
        scale = weft.ones(**row) if scale is None else scale
        shift = weft.zeros(**row) if shift is None else shift
        if self.size and all(x.shape == self.shape[-1:] for x in (scale, shift)):
            if (rows := self._rows("layer_norm", -1, (scale, shift), eps)) is not None:
                return rows
        centred = self - self.mean(-1, True)
        spread = weft.rsqrt((centred * centred).mean(-1, True) + eps)
        return centred * spread * scale + shift

    def __matmul__(self, other):
        if _of_another_recorder(other):
            return NotImplemented
        return _product(self, Traced(lazy_of(other, self)))

    def __rmatmul__(self, other):
        if _of_another_recorder(other):
            return NotImplemented
        return _product(Traced(lazy_of(other, self)), self)

    def __bool__(self):
        refuse(
            "the compiled function asks for the truth of a traced value",
            "use where(condition, a, b), or leave the branch outside",
        )

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(Tensor, name, None)
        if name in IN_PLACE and active:
            return lambda *args, **kwargs: self._changed_by(name, args, kwargs)
        if callable(method) and name not in REFUSED and active:
            return lambda *args, **kwargs: active[-1].island(
                name, named_method(name), (self, *args), kwargs
            )
        return refuse(
            f'a traced value has no "{name}"',
            "what makes arrays of fixed shapes can be compiled; leave the rest outside",
        )

    def _changed_by(self, name, args, kwargs):
        """Methods such as add_."""
        if active[-1].tensors:
            refuse(
                f"the compiled function changes a tensor of shape {self.shape} in place by {name}",
                f"write x = x.{name[:-1]}(...)",
            )
        self._may_change(name)
        new = active[-1].island(name, changed(name), (self, *args), kwargs)
        return self._change(name, new)

    def __getitem__(self, key):
        for k in leaves_of(key, (Traced, NDArray, Tensor)):
            if k.dtype == "bool":
                refuse("the compiled function indexes by a mask", "use where, or index after")
        return active[-1].island("indexing", lambda x, key: x[key], (self, key), {})

    def __float__(self):
        refuse("the compiled function needs the number in a traced value", "return it instead")

    __int__ = __index__ = __complex__ = __float__

    def __array__(self, *_ignored, **_also):
        refuse("the compiled function needs the numbers in a traced value", "return it instead")

    def __len__(self):
        if not self.ndim:
            refuse("the compiled function asks for the length of a traced number", "reshape(1)")
        return self.shape[0]

    def __copy__(self):
        return Traced(self._lazy)

    def __deepcopy__(self, memo):
        return Traced(self._lazy)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self


def _of_another_recorder(x):
    """Is it a value of a vmap inside the trace? Its own operators know what to do with a traced one."""
    return isinstance(x, Recorder) and not isinstance(x, Traced)


def _product(a, b):
    """a @ b; a vector is a matrix of one row on the left, of one column on the right."""
    left, right = a.ndim == 1, b.ndim == 1
    a = a.reshape(1, *a.shape) if left else a
    b = b.reshape(*b.shape, 1) if right else b
    out = Traced(_core._lazy_matmul(a._lazy, b._lazy))
    if not (left or right):
        return out
    rows, columns = (() if left else out.shape[-2:-1]), (() if right else out.shape[-1:])
    return out.reshape(*out.shape[:-2], *rows, *columns)


def _augmented(symbol):
    """x op= y: of tensors a new one, of arrays a change of the array, whose type stays."""

    def method(self, other):
        new = getattr(self, f"__{symbol}__")(other)
        if new is NotImplemented or not active or active[-1].tensors:
            return new
        if new.dtype != self.dtype:  # within a kind, or arrays say what is wrong
            one = weft.ones((), dtype=other.dtype) if hasattr(other, "dtype") else other
            getattr(operator, f"i{symbol}")(weft.ones((), dtype=self.dtype), one)
        return self._change(f"the operator i{symbol}", new)

    return method


def _operators():
    pairs = dict(
        add="add", sub="subtract", mul="multiply", truediv="divide", pow="pow", mod="remainder",
        floordiv="floor_divide", lt="less", le="less_equal", gt="greater", ge="greater_equal",
        eq="equal", ne="not_equal",
    )  # fmt: skip
    pairs.update({"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"})
    pairs.update(lshift="bitwise_left_shift", rshift="bitwise_right_shift")
    for symbol, name in pairs.items():

        def forward(self, other, name=name):
            if _of_another_recorder(other):
                return NotImplemented
            return self.__weft_operation__(name, [self, other])

        def backward(self, other, name=name):
            if _of_another_recorder(other):
                return NotImplemented
            return self.__weft_operation__(name, [other, self])

        setattr(Traced, f"__{symbol}__", forward)
        if symbol not in ("lt", "le", "gt", "ge", "eq", "ne"):
            setattr(Traced, f"__r{symbol}__", backward)
            setattr(Traced, f"__i{symbol}__", _augmented(symbol))
    for symbol, name in dict(
        neg="negative", pos="positive", abs="abs", invert="bitwise_invert"
    ).items():
        setattr(
            Traced, f"__{symbol}__", lambda self, name=name: self.__weft_operation__(name, [self])
        )


_operators()
Traced.__imatmul__ = _augmented("matmul")


def named_method(name):
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def _operand(value, like):
    if isinstance(value, Traced):
        return value._lazy
    if isinstance(value, (NDArray, Tensor)):
        return lazy_of(value, like)
    return value


def lazy_of(value, like):
    if isinstance(value, Traced):
        return value._lazy
    if isinstance(value, (NDArray, Tensor)):
        if not active:
            refuse("a traced value is used after its trace", "return values from the function")
        return active[-1].captured(value)
    return _core._lazy_constant(value, like._lazy)


_publish_class(Traced)
_autocast.classes.append(Traced)
