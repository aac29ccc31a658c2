# SPDX-License-Identifier: Apache-2.0
"""weft.compile: what a function does to arrays becomes few kernels.

The function runs once for each combination of types and shapes, on traced values that write operations down. Chains of
element-wise operations become one kernel each, a reduction at their end included; products and views in between run as
the eager operations. The gradient of a compiled function is compiled from the same trace.
"""

from __future__ import annotations

import math
import operator
import types
import weakref

import weft

from ._boundary import public as _public
from ._boundary import publish as _publish
from ._boundary import publish_class as _publish_class
from . import _core
from ._core import NDArray, Tensor
from ._dispatch import Recorder, dispatching, leaves_of, mapped, public_functions_dispatch
from ._errors import error as _error
from ._islands import REFUSED, Island, assigned, call_or_island, changed, on_tensors
from ._methods import Arithmetic, Indexed, Named
from ._methods.inplace import IN_PLACE
from ._methods.statistics import values_and_positions
from .transforms import trees
from .transforms.batched import outside_of_vmap
from ._compile_arguments import flatten_arguments, static_arguments
from ._differentiating import differentiating

__all__ = ["Compiled", "compile"]


_FEW = 1 << 15  # elements for which an array's memory matters less than the time of a call


def _refuse(what, repair):
    raise _error("value", "compile.trace.unsupported", what, help=repair)


def _on_host():
    """Does the trace at hand run on the host?"""
    return bool(_active) and _active[-1].on_host


class _Memory:
    """What an array of the function would share with its views: a change of one is seen through the others."""

    def __init__(self, held=False):
        self.held = held  # by the caller, too
        self._values = []

    def add(self, value):
        self._values.append(weakref.ref(value))

    def seen_beside(self, value):
        return self.held or any(v() is not None and v() is not value for v in self._values)


class Traced(Arithmetic, Named, Indexed, Recorder):
    """A value of a function that is being compiled."""

    __weft_tensor__ = True
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, lazy, memory=None):
        self._lazy = lazy
        self._memory = memory or _Memory()
        self._memory.add(self)

    def _may_change(self, how):
        """A trace has values and no memory: a change in place is one of all names of the value. What others would see is refused."""
        if self._memory.seen_beside(self):
            what = (
                "its argument" if self._memory.held else "an array that shares memory with another"
            )
            _refuse(
                f"the compiled function changes {what} in place by {how}, shape {self.shape}",
                "make a new array, x = x + y, and return it",
            )

    def _change(self, how, value):
        if value.shape != self.shape:
            _refuse(
                f"{how} of an array of shape {self.shape} would need shape {value.shape}",
                "write it without the in-place operator",
            )
        self._may_change(how)
        self._lazy = value.astype(self.dtype)._lazy
        return self

    def __setitem__(self, key, value):
        if not _active or _active[-1].tensors:
            _refuse(
                f"the compiled function assigns to elements of a tensor of shape {self.shape}",
                "make a new one: weft.where, weft.scatter or weft.concat",
            )
        self._may_change("assignment to elements")
        new = _active[-1].island("assignment", assigned, (self, key, value), {})
        self._change("assignment to elements", new)

    shape = property(lambda self: tuple(self._lazy.shape))
    dtype = property(lambda self: self._lazy.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    T = mT = property(lambda self: self.transpose())

    @property
    def device(self):
        """Where the arguments of the trace are."""
        if not _active:
            _refuse("a traced value is used after its trace", "return values from the function")
        return _active[-1]._like.device

    def __weft_call__(self, name, function, args, kwargs):
        if not _active:
            return function(*args, **kwargs)
        return call_or_island(_active[-1], name, function, args, kwargs)

    def __weft_operation__(self, name, args):
        return Traced(_core._lazy_row(name, [_operand(a, self) for a in args]))

    def astype(self, dtype, copy=True):
        lazy = _core._lazy_cast(self._lazy, dtype)
        return Traced(lazy, None if copy or lazy.dtype != self.dtype else self._memory)

    def where(self, condition, a, b):
        like = next(x for x in (a, b, self) if isinstance(x, Traced))
        return Traced(_core._lazy_where(*(_lazy(x, like) for x in (condition, a, b))))

    def broadcast_to(self, shape):
        return Traced(_core._lazy_spread(self._lazy, tuple(shape)), self._memory)

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return Traced(_core._lazy_reshape(self._lazy, tuple(shape)), self._memory)

    def permute(self, *axes):
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return Traced(_core._lazy_permute(self._lazy, [a % self.ndim for a in axes]), self._memory)

    def detach(self):
        """The same values without gradients: a step of the plan that gradients do not pass."""
        return _active[-1].island("detach", lambda x: x, (self,), {})

    def transpose(self, a=-2, b=-1):
        axes = list(range(self.ndim))
        axes[a], axes[b] = axes[b], axes[a]
        return self.permute(axes)

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
        pair = asked and isinstance(axis if dim is None else dim, int) and _active
        axis, keep = axis if dim is None else dim, keepdims or keepdim
        values = self._reduced(name, axis, keep)
        if not pair or not _active[-1].tensors:
            return values
        return values_and_positions(
            values, getattr(weft, f"arg{name}")(self, axis=axis, keepdims=keep)
        )

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
        total = self.sum(axis, keepdims, dtype)
        return total / (max(self.size, 1) / max(total.size, 1))

    def _variance(self, axis, keepdims, correction, root=False):
        """The variance or its root by the eager kernel, in one pass over memory; None where another way is as good."""
        if not (self.size and _on_host() and str(self.dtype) in ("float32", "float64")):
            return None
        return Traced(_core._lazy_variance(self._lazy, axis, keepdims, float(correction), root))

    def _rows(self, name, axis, operands=(), eps=0.0):
        """A row kernel along the last axis; None along another one, and for other types than real floats."""
        if self.ndim == 0 or axis not in (-1, self.ndim - 1) or self.dtype.kind != "f":
            return None
        lazies = [self._lazy, *(_lazy(x, self) for x in operands)]
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
        if self.size and all(x.shape == self.shape[-1:] for x in (scale, shift)):
            if (rows := self._rows("layer_norm", -1, (scale, shift), eps)) is not None:
                return rows
        centred = self - self.mean(-1, True)
        spread = weft.rsqrt((centred * centred).mean(-1, True) + eps)
        return centred * spread * scale + shift

    def __matmul__(self, other):
        if _of_another_recorder(other):
            return NotImplemented
        return _product(self, Traced(_lazy(other, self)))

    def __rmatmul__(self, other):
        if _of_another_recorder(other):
            return NotImplemented
        return _product(Traced(_lazy(other, self)), self)

    def __bool__(self):
        _refuse(
            "the compiled function asks for the truth of a traced value",
            "use where(condition, a, b), or leave the branch outside",
        )

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(Tensor, name, None)
        if name in IN_PLACE and _active:
            return lambda *args, **kwargs: self._changed_by(name, args, kwargs)
        if callable(method) and name not in REFUSED and _active:
            return lambda *args, **kwargs: _active[-1].island(
                name, _method(name), (self, *args), kwargs
            )
        return _refuse(
            f'a traced value has no "{name}"',
            "what makes arrays of fixed shapes can be compiled; leave the rest outside",
        )

    def _changed_by(self, name, args, kwargs):
        """Methods such as add_."""
        if _active[-1].tensors:
            _refuse(
                f"the compiled function changes a tensor of shape {self.shape} in place by {name}",
                f"write x = x.{name[:-1]}(...)",
            )
        self._may_change(name)
        new = _active[-1].island(name, changed(name), (self, *args), kwargs)
        return self._change(name, new)

    def __getitem__(self, key):
        for k in leaves_of(key, (Traced, NDArray, Tensor)):
            if k.dtype == "bool":
                _refuse("the compiled function indexes by a mask", "use where, or index after")
        return _active[-1].island("indexing", lambda x, key: x[key], (self, key), {})

    def __float__(self):
        _refuse("the compiled function needs the number in a traced value", "return it instead")

    __int__ = __index__ = __complex__ = __float__

    def __array__(self, *_ignored, **_also):
        _refuse("the compiled function needs the numbers in a traced value", "return it instead")

    def __len__(self):
        if not self.ndim:
            _refuse("the compiled function asks for the length of a traced number", "reshape(1)")
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
        if new is NotImplemented or not _active or _active[-1].tensors:
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


_active = []  # traces in progress, innermost last


def _method(name):
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def _operand(value, like):
    if isinstance(value, Traced):
        return value._lazy
    if isinstance(value, (NDArray, Tensor)):
        return _lazy(value, like)
    return value


def _lazy(value, like):
    if isinstance(value, Traced):
        return value._lazy
    if isinstance(value, (NDArray, Tensor)):
        if not _active:
            _refuse("a traced value is used after its trace", "return values from the function")
        return _active[-1].captured(value)
    return _core._lazy_constant(value, like._lazy)


class _Piece:
    """Part of a trace between islands: kernels forward, and backward at the first gradient."""

    def __init__(self, outputs, inputs, contract, like):
        self.outputs, self.inputs = outputs, list(inputs)
        self.forward = _core.FusedPlan(outputs, contract, like)
        self._contract, self._like = contract, like
        self._backward = None

    def backward(self):
        """The plan of all inputs' gradients, and which inputs have one."""
        if self._backward is None:
            seeds = [
                _core._lazy_input(len(self.inputs) + k, o.dtype, o.shape)
                for k, o in enumerate(self.outputs)
            ]
            gradients = _core._lazy_gradients(self.outputs, seeds, self.inputs)
            reached = [i for i, g in enumerate(gradients) if g is not None]
            outputs = [gradients[i] for i in reached]
            plan = _core.FusedPlan(outputs, self._contract, self._like)
            self._backward = plan, reached
        return self._backward

    def run(self, operands):
        """Results for arrays or tensors: tensors where an operand is one, with the compiled gradient."""
        operands = operands[: len(self.inputs)]
        arrays = [a.data if isinstance(a, Tensor) else a for a in operands]
        results = self.forward.run(arrays)
        if any(isinstance(a, Tensor) for a in operands):
            results = _attach(self, operands, arrays, results)
        return results


class _Trace:
    """One specialisation: inputs of given types and shapes; islands, each after its piece; the last piece."""

    def __init__(self, function, leaves, rebuild, contract, tensors):
        self._tensors, self.asked = tensors, False
        self.inputs = [_core._lazy_input(i, a.dtype, a.shape) for i, a in enumerate(leaves)]
        self._values = list(leaves)  # of the inputs, while tracing
        self._contract, self._like = contract, leaves[0]
        self.on_host = leaves[0].device.host_accessible
        self._steps = []  # what gives the inputs behind the leaves: captured arrays and islands
        self._by_id = {}
        _active.append(self)
        try:
            with public_functions_dispatch():
                result = dispatching(function)(
                    *rebuild([Traced(x, _Memory(held=True)) for x in self.inputs])
                )
        finally:
            _active.pop()
        self._values = None
        results, self.structure = trees.flatten(result)
        self.single = self.structure.kind is None
        # What does not depend on the arguments: the same in every call.
        self._constants = {k: r for k, r in enumerate(results) if not isinstance(r, Traced)}
        lazies = [r._lazy for r in results if isinstance(r, Traced)]
        if not lazies:
            found = ", ".join(sorted({type(r).__name__ for r in results})) or "nothing"
            _refuse(
                f"the compiled function returns {found}, not something computed from its arguments",
                "return arrays computed from the arguments, beside others if you like",
            )
        self.last = _Piece(lazies, self.inputs, contract, leaves[0])
        self.forward = self.last.forward
        # Where no kernel joins operations the function itself is the fastest way through them.
        plans = [s.piece.forward for s in self._steps if isinstance(s, Island)] + [self.forward]
        self.plain = not any(plan.joins for plan in plans)

    @property
    def tensors(self):
        """Are there tensors among the arguments? Those are not changed in place, as arrays are."""
        self.asked = True
        return self._tensors

    def only_plan(self, leaves):
        """The plan that gives the one result from these leaves, or None: there are islands, captured arrays or tensors."""
        alone = self.single and not self._steps and not self._constants
        return self.forward if alone and all(isinstance(a, NDArray) for a in leaves) else None

    def _input(self, data):
        lazy = _core._lazy_input(len(self.inputs), data.dtype, data.shape)
        self.inputs.append(lazy)
        self._values.append(data)
        return lazy

    def captured(self, array):
        if id(array) not in self._by_id:
            self._by_id[id(array)] = self._input(array.data if isinstance(array, Tensor) else array)
            self._steps.append(array)
        return self._by_id[id(array)]

    def mark(self):
        return len(self.inputs), len(self._steps)

    def back_to(self, mark):
        """Forgets what came after the mark."""
        del self.inputs[mark[0] :], self._values[mark[0] :], self._steps[mark[1] :]
        kept = {id(s) for s in self._steps}
        self._by_id = {i: lazy for i, lazy in self._by_id.items() if i in kept}

    def island(self, name, function, args, kwargs):
        """Runs the function now, on values, and again in every call of the trace."""
        needs = [t._lazy for t in leaves_of((args, kwargs), Traced)]
        piece = _Piece(needs, self.inputs, self._contract, self._like)
        values = piece.forward.run(self._values)
        rest = iter(values)
        now, named = mapped((args, kwargs), Traced, lambda _: next(rest))
        with outside_of_vmap():  # as in later calls: the values are those of all examples
            try:
                result = function(*now, **named)
            except (AttributeError, _core.DTypeError) as reason:  # a function of tensors alone
                if not isinstance(getattr(reason, "_reason", reason), AttributeError):
                    raise
                function = on_tensors(function)
                result = function(*now, **named)
        if next(leaves_of(result, (NDArray, Tensor)), None) is None:
            _refuse(
                f"{name} inside a compiled function gives {type(result).__name__}, no array",
                "call it before or after",
            )
        given = list(zip(values, leaves_of((args, kwargs), Traced)))
        # Operands of the step are values of their own: the function's may go.
        args, kwargs = mapped((args, kwargs), Traced, lambda t: Traced(t._lazy))
        step = Island(name, piece, function, args, kwargs, result)
        self._steps.append(step)

        def traced(a):
            a = a.data if isinstance(a, Tensor) else a
            shared = (t._memory for x, t in given if weft.may_share_memory(a, x))
            return Traced(self._input(a), next(shared, None))

        out = mapped(result, (NDArray, Tensor), traced)
        step.outputs = [Traced(t._lazy) for t in leaves_of(out, Traced)]
        return out

    def run(self, leaves):
        operands = list(leaves)
        for step in self._steps:
            if isinstance(step, Island):
                operands += step.run(step.piece.run(operands), Traced)
            else:
                operands.append(step)
        results = self.last.run(operands)
        if self._constants:
            rest = iter(results)
            count = len(results) + len(self._constants)
            results = [
                _own(self._constants[k]) if k in self._constants else next(rest)
                for k in range(count)
            ]
        return results


def _own(constant):
    """A constant result for one call: what a caller does to it in place does not reach the next one's."""
    return constant.copy() if isinstance(constant, NDArray) else constant


def _attach(piece, operands, arrays, results):
    """Results as tensors whose gradient is the compiled one."""
    tensors = [a for a in operands if isinstance(a, Tensor)]
    place = [i for i, a in enumerate(operands) if isinstance(a, Tensor)]
    if not any(t.requires_grad for t in tensors):
        return [Tensor(r, requires_grad=False) for r in results]

    def gradient(index):
        def rule(g):
            plan, reached = piece.backward()
            seeds = [
                g if k == index else weft.zeros(tuple(r.shape), dtype=r.dtype, device=r.device)
                for k, r in enumerate(results)
            ]
            found = dict(zip(reached, plan.run(arrays + seeds)))
            return [found.get(i) for i in place]

        return rule

    return [
        _core._custom_tensor("compiled", r, tensors, gradient(k)) for k, r in enumerate(results)
    ]


class _Results:
    """The results of a trace that is more than one plan, for arguments that are all arrays."""

    def __init__(self, function, trace):
        self.function, self.trace = function, trace

    def __call__(self, *args):
        if differentiating() > 1:
            return self.function(*args)
        return Compiled._results(self.trace, args)


class Compiled(_core.CompiledCall):
    """A function whose array work runs in fused kernels; made by weft.compile."""

    def __init__(self, function, contract=False):
        super().__init__()
        self.function = function
        self.contract = contract
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "compiled")
        self._traces = {}
        self._named = None

    def _trace(self, args, leaves, rebuild):
        arrays = [a.data if isinstance(a, Tensor) else a for a in leaves]
        tensors = len(leaves) > sum(isinstance(a, NDArray) for a in leaves)
        key = (
            tuple((str(a.dtype), tuple(a.shape), str(a.device)) for a in arrays),
            static_arguments(args),
        )
        # One for both, unless it has changes in place.
        trace = self._traces.get(key) or self._traces.get((key, tensors))
        if trace is None:
            trace = _Trace(self.function, arrays, rebuild, self.contract, tensors)
            self._traces[(key, tensors) if trace.asked else key] = trace
        self._last = trace
        return trace

    def __get__(self, instance, owner=None):
        """A compiled method is called with its object, a constant of the trace."""
        return self if instance is None else types.MethodType(self, instance)

    def _called(self, args, named):
        """A call that CompiledCall does not remember."""
        return self._call(*args, **named)

    def _call(self, *args, **named):
        if named:
            return self._by_names(args, named)
        leaves, rebuild = flatten_arguments(args)
        # A compiled gradient has no gradient: derivatives of higher order are those of the function itself.
        if differentiating() > 1 or next(leaves_of(args, Recorder), None) is not None:
            return self.function(*args)
        if not leaves:  # nothing to trace
            return self.function(*args)
        trace = self._trace(args, leaves, rebuild)
        plan = trace.only_plan(leaves)
        if plan is None and not trace.plain:
            self._remember(args, trace, _Results(self.function, trace), None)
        else:
            # Operations on few elements, and one alone, are called without the function around them.
            if trace.plain and plan is not None and not plan.alone:
                few = all(a.size <= _FEW for a in leaves)
                plan = plan if few and plan.eager else None
            self._remember(args, trace, self.function, plan)
        return self._results(trace, leaves)

    def _by_names(self, args, named):
        """A call with arguments by name: a function of both, compiled by itself."""
        if self._named is None:
            function = self.function
            self._named = Compiled(lambda args, named: function(*args, **named), self.contract)
        out = self._named(args, named)
        self._last = self._named._last
        return out

    @staticmethod
    def _results(trace, leaves):
        results = trace.run(leaves)
        return results[0] if trace.single else trees.unflatten(trace.structure, results)

    @property
    def traces(self):
        """How many combinations of types and shapes were compiled."""
        return len(self._traces)

    def _need(self):
        if self._last is None:
            raise _error(
                "value",
                "compile.trace.none",
                f"{self.__name__} was compiled but not called yet: 0 traces",
                help="call it once",
            )
        return self._last

    @property
    def kernels(self):
        """Fused kernels of the last call."""
        return self._need().forward.kernels

    def describe(self):
        """The steps of the last call, one line each."""
        return self._need().forward.describe()

    def source(self):
        """The text of the kernels that the last call used, as far as they are built."""
        return self._need().forward.source()

    def backward_kernels(self):
        """Fused kernels of the last call's gradient."""
        return self._need().last.backward()[0].kernels


def compile(
    function,
    *,
    contract=False,
    capture=False,
    donate=(),
    static_argnums=(),
    static_argnames=(),
    donate_argnums=(),
):
    """The function with its element-wise chains and trailing reductions fused into few kernels.

    Works on NDArray and Tensor arguments (nested in lists and tuples too); other arguments are constants of the trace.
    On the host every element is rounded as the eager operations round it, which arithmetic, exp, log, tanh and what is
    made of them then share to the last bit (sums are taken in another order; other functions may differ by an ulp);
    contract=True lets a product and a sum become one rounding. The trace is kept for each combination of types, shapes and devices. Gradients are compiled as well. What kernels cannot
    hold (indexing, sorting, running sums, factorisations) runs as the eager operation between two compiled pieces,
    and once more while the function is traced. Raises an Error with code compile.trace.unsupported where the function needs a number or a truth value while it is traced, or makes arrays
    whose shapes depend on values.

    capture=True records the launches of a call, from the second call on, and replays them by one call of the driver (cuda;
    on opencl a list of launches): weft's own work on the host then costs one call. It is meant for functions of arrays
    alone: random numbers without a key, reads on the host and arguments that require gradients are refused
    (device.record.*, random.capture, capture.gradient). donate: numbers of arguments that the call may write over.
    Each of their arrays becomes the result of the same type and shape that replaces it: the arrays given away hold the new
    values, no copy is made, and the results stay in that memory from call to call (capture.donate.* where nothing replaces them).

    static_argnums, static_argnames and donate_argnums are JAX's: whatever is no array is static here, so the first two
    change nothing; donate_argnums is donate with capture=True and nothing without.
    """
    if donate_argnums != () and capture and not donate:
        donate = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    if capture:
        from ._capture import Captured

        inner = getattr(function, "function", function)
        return Captured(inner, donate=donate, compiled=Compiled(inner, contract))
    if isinstance(function, Compiled):
        if function.contract == contract:
            return function
        function = function.function
    return Compiled(function, contract)


_core._called_by_vector(Compiled)
_publish(__name__)
Compiled._call = _public(Compiled._call, "Compiled", "__call__")
_publish_class(Traced)
