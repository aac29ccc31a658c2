# SPDX-License-Identifier: Apache-2.0
"""Values of a function under vmap: one example's shape outside, all examples inside."""

from __future__ import annotations

import contextlib
import math
import threading

from .. import _autocast, _core
from .._core import NDArray, Tensor
from .._core import operations as _operations
from .._dispatch import Recorder, dispatching, draws, leaves_of, mapped, public_functions_dispatch
from .._errors import error as _error
from .._methods.inplace import IN_PLACE
from . import trees

_state = threading.local()


def frames():
    """The vmaps that this thread is in, outermost first."""
    if not hasattr(_state, "frames"):
        _state.frames = []
    return _state.frames


class Unruled(Exception):
    """These arguments have no rule; the loop takes the call."""


class _Rules:
    """How functions and methods act on all examples at once; batching_rules fills it."""

    load = None  # to be called by a vmap before anything else
    functions: dict = {}
    methods: dict = {}
    getitem = matmul = transpose = None


rules = _Rules()


class Frame:
    """One vmap in progress."""

    def __init__(self, size, level, randomness, strict):
        self.size, self.level, self.randomness, self.strict = size, level, randomness, strict
        self.looped = set()
        self.looping = 0  # how many loops over its examples are in progress

    def owns(self, x):
        return isinstance(x, Batched) and x.frame is self

    def __enter__(self):
        frames().append(self)
        self._before = getattr(draws, "take", None)
        draws.take = _draw
        return self

    def __exit__(self, *_):
        frames().remove(self)
        draws.take = self._before


@contextlib.contextmanager
def entered(inside):
    """Inside, the vmaps that a call was made in are in progress again: its backward pass runs after they ended."""
    before, take = list(frames()), getattr(draws, "take", None)
    frames()[:] = inside
    draws.take = _draw if inside else None
    try:
        if inside:
            with public_functions_dispatch():
                yield
        else:
            yield
    finally:
        frames()[:] = before
        draws.take = take


def outside_of_vmap():
    """Inside, no vmap is in progress."""
    return entered([]) if frames() else contextlib.nullcontext()


def _draw(name, function, args, kwargs):
    """Random numbers inside a vmap, drawn as its `randomness` says. With an explicit key they depend on it alone."""
    if kwargs.get("key") is not None:
        return function(*args, **kwargs)
    inside = [f for f in frames() if f.randomness == "error" or not f.looping]
    refused = next((f for f in inside if f.randomness == "error"), None)
    if refused:
        raise _error(
            _core.ArgumentError,
            "vmap.random",
            f"weft.random.{name} without a key inside vmap, which says randomness='error'",
            ["legal: 'error', 'same' (all examples get the same numbers), 'different'"],
            help="vmap(f, randomness='different'), or pass key=",
        )
    draws.take = None
    try:
        return _drawn([f for f in inside if f.randomness == "different"], function, args, kwargs)
    finally:
        draws.take = _draw


def _drawn(inside, function, args, kwargs):
    """An own draw for each example of each frame: the outermost frame has the first axis."""
    if not inside:
        return function(*args, **kwargs)
    import weft

    def nested(rest):
        if not rest:
            return function(*args, **kwargs)
        return weft.stack([nested(rest[1:]) for _ in range(rest[0].size)])

    return wrapped(nested(inside), inside)


def wrapped(value, inside):
    """Examples of several frames along the first axes, outermost first, as a value of the innermost one."""
    for frame in inside:
        value = Batched(value, frame)
    return value


def escaped(x, name):
    """The error for a value of a vmap that has ended."""
    return _error(
        _core.ArgumentError,
        "vmap.escaped",
        f"{name} of a value of shape {x.shape} that left its vmap, which has ended",
        help="return values from the function; do not keep them elsewhere",
    )


def _number(self, *_):
    raise _error(
        _core.DTypeError,
        "vmap.value",
        f"the function under vmap needs the number in a batched value of shape {self.shape}, "
        f"which is another one for each of {self.frame.size} examples",
        help="use weft.where(condition, a, b) in place of a branch, or compute it outside of vmap",
    )


class Batched(Recorder):
    """A value that differs from example to example: `value` has the examples along axis 0."""

    __slots__ = ("value", "frame")
    __weft_tensor__ = True
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, value, frame):
        self.value, self.frame = value, frame

    __weft_level__ = property(lambda self: self.frame.level)
    shape = property(lambda self: tuple(self.value.shape)[1:])
    ndim = property(lambda self: self.value.ndim - 1)
    size = property(lambda self: math.prod(self.shape))
    dtype = property(lambda self: self.value.dtype)
    device = property(lambda self: self.value.device)
    requires_grad = property(lambda self: getattr(self.value, "requires_grad", False))

    @property
    def data(self):
        inner = self.value
        return Batched(inner.data if not isinstance(inner, NDArray) else inner, self.frame)

    @property
    def at(self):
        """x.at[index].set(values), as of arrays."""
        from .._methods.at import Indexed

        return Indexed.at.fget(self)

    @property
    def mT(self):
        """The last two axes exchanged."""
        if self.ndim < 2:  # gives the array's own answer
            return loop(self.frame, "T", lambda x: x.mT, (self,), {})
        return rules.transpose(self.frame, self)

    @property
    def T(self):
        """As mT."""
        return self.mT

    def detach(self):
        """The same values without history."""
        inner = self.value
        return Batched(inner if isinstance(inner, NDArray) else inner.detach(), self.frame)

    def base(self):
        """The array or Tensor inside all levels."""
        x = self.value
        while isinstance(x, Batched):
            x = x.value
        return x

    def __repr__(self):
        return f"weft.Batched(shape={self.shape}, dtype={self.dtype}, examples={self.frame.size})"

    def __len__(self):
        if not self.ndim:
            _number(self)
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    __bool__ = __int__ = __float__ = __index__ = __complex__ = _number
    item = tolist = numpy = __array__ = _number

    def __setitem__(self, key, value):
        raise _error(
            _core.ArgumentError,
            "vmap.assign",
            f"assignment to elements of a batched value of shape {self.shape}",
            help="make a new one: weft.where, weft.scatter or weft.concat",
        )

    def __weft_operation__(self, name, args):
        return _innermost(args)._operation(name, args)

    def _operation(self, name, args):
        frame = self.frame
        n = max(a.ndim for a in args if hasattr(a, "ndim"))
        values = [padded(a, n) if frame.owns(a) else a for a in args]
        return Batched(_operations[name](*values), frame)

    def __weft_call__(self, name, function, args, kwargs):
        if self.frame not in frames():
            raise escaped(self, name)
        rule = rules.functions.get(getattr(function, "__weft_public__", function))
        if rule is not None:
            try:
                return rule(self.frame, *args, **kwargs)
            except Unruled:
                pass
        else:
            try:  # what is composed of functions that have rules
                return function(*args, **kwargs)
            except (TypeError, AttributeError):
                pass
        # Of one example values of outer vmaps may be left, which the function leaves to their rules.
        return loop(self.frame, name, dispatching(function), args, kwargs)

    def __getitem__(self, key):
        found = [self, *leaves_of(key, Batched)]
        frame = _innermost(found).frame
        try:
            return rules.getitem(frame, self, key)
        except Unruled:
            return loop(frame, "indexing", lambda x, k: x[k], (self, key), {})

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in rules.methods:
            return lambda *args, **kwargs: self._method(name, rules.methods[name], args, kwargs)
        if name in IN_PLACE:
            raise _error(
                _core.ArgumentError,
                "vmap.assign",
                f"{name} would change a batched value of shape {self.shape} in place",
                help=f"make a new one: x.{name[:-1]}(...)",
            )
        own = getattr(type(self.base()), name, None)
        if not callable(own):
            raise AttributeError(f"a batched value has no attribute {name!r}")
        return lambda *args, **kwargs: self._method(name, None, args, kwargs, own)

    def _method(self, name, rule, args, kwargs, own=None):
        args = (self, *args)
        frame = _innermost(list(leaves_of((args, kwargs), Batched))).frame
        try:
            if rule is not None:
                return rule(frame, *args, **kwargs)
            return own(*args, **kwargs)  # composed of methods and functions that have rules
        except Unruled:
            pass
        except (TypeError, AttributeError):
            if rule is not None:
                raise
        return loop(frame, name, lambda x, *a, **k: getattr(x, name)(*a, **k), args, kwargs)


def _innermost(values):
    return max((v for v in values if isinstance(v, Batched)), key=lambda v: v.frame.level)


def padded(x, ndim):
    """The examples of a value with axes of extent 1 put in front of one example's axes, up to ndim."""
    missing = ndim - x.ndim
    if missing <= 0:
        return x.value
    shape = tuple(x.value.shape)
    return x.value.reshape((shape[0], *(1,) * missing, *shape[1:]))


def loop(frame, name, function, args, kwargs):
    """Example after example: for what has no rule. Refused under strict=True, and counted."""
    if frame.strict:
        raise _error(
            _core.ArgumentError,
            "vmap.rule",
            f"{name} has no batching rule for these arguments and strict=True allows no loop over {frame.size} examples",
            help="vmap(f) without strict=True runs it example after example",
        )
    if frame.size == 0:
        raise _error(
            _core.ShapeError,
            "vmap.empty",
            f"{name} has no batching rule, and with no example to run it on its result's shape is unknown",
            help="treat the empty batch before vmap",
        )
    from .. import random

    frame.looped.add(name)
    results = []
    before = dict(random._state)
    frame.looping += 1
    try:
        for i in range(frame.size):
            if frame.randomness == "same":
                random._state.update(before)
            now, named = mapped(
                (args, kwargs), Batched, lambda b: b.value[i] if b.frame is frame else b
            )
            results.append(trees.flatten(function(*now, **named)))
    finally:
        frame.looping -= 1
    structure = results[0][1]
    columns = list(zip(*(leaves for leaves, _ in results)))
    return trees.unflatten(structure, [_joined(frame, name, column) for column in columns])


def _joined(frame, name, column):
    import weft

    if all(isinstance(x, trees.ARRAYS) for x in column):
        shapes = {tuple(x.shape) for x in column}
        if len(shapes) > 1:
            raise _error(
                _core.ShapeError,
                "vmap.shape",
                f"{name} gives results of shapes {', '.join(map(str, sorted(shapes)))} for different examples",
                help="one shape for all: weft.where in place of a mask, size= in place of a count",
            )
        return Batched(weft.stack(list(column)), frame)
    if any(x != column[0] for x in column[1:]):
        return Batched(weft.asarray(list(column)), frame)
    return column[0]


def _operators():
    names = dict(
        add="add", sub="subtract", mul="multiply", truediv="divide", pow="pow", mod="remainder",
        floordiv="floor_divide", lt="less", le="less_equal", gt="greater", ge="greater_equal",
        eq="equal", ne="not_equal", lshift="bitwise_left_shift", rshift="bitwise_right_shift",
    )  # fmt: skip
    names.update({"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"})
    for symbol, name in names.items():

        def forward(self, other, name=name):
            return self.__weft_operation__(name, [self, other])

        def backward(self, other, name=name):
            return self.__weft_operation__(name, [other, self])

        setattr(Batched, f"__{symbol}__", forward)
        if symbol not in ("lt", "le", "gt", "ge", "eq", "ne"):
            setattr(Batched, f"__r{symbol}__", backward)
    for symbol, name in dict(
        neg="negative", pos="positive", abs="abs", invert="bitwise_invert"
    ).items():
        setattr(
            Batched, f"__{symbol}__", lambda self, name=name: self.__weft_operation__(name, [self])
        )

    def product(a, b):
        return rules.matmul(_innermost([a, b]).frame, a, b)

    Batched.__matmul__ = product
    Batched.__rmatmul__ = lambda self, other: product(other, self)


_operators()
_autocast.classes.append(Batched)
__all__ = ["Batched", "Frame", "frames", "loop", "padded", "Tensor"]
