# SPDX-License-Identifier: Apache-2.0
"""weft.compile: what a function does to arrays becomes few kernels.

The function runs once for each combination of types and shapes, on traced values that write operations down. Chains of
element-wise operations become one kernel each, a reduction at their end included; products and views in between run as
the eager operations. The gradient of a compiled function is compiled from the same trace.
"""

from __future__ import annotations

import math

import weft

from . import _core
from ._core import NDArray, Tensor
from ._errors import error as _error
from ._methods import VALUES

__all__ = ["Compiled", "compile"]


def _refuse(what, repair):
    raise _error("value", "compile.trace.unsupported", what, help=repair)


class Traced:
    """A value of a function that is being compiled."""

    __weft_tensor__ = True
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, lazy):
        self._lazy = lazy

    shape = property(lambda self: tuple(self._lazy.shape))
    dtype = property(lambda self: self._lazy.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    T = mT = property(lambda self: self.transpose())

    def __weft_operation__(self, name, args):
        return Traced(_core._lazy_row(name, [_operand(a, self) for a in args]))

    def astype(self, dtype, copy=True):
        return Traced(_core._lazy_cast(self._lazy, dtype))

    def where(self, condition, a, b):
        like = next(x for x in (a, b, self) if isinstance(x, Traced))
        return Traced(_core._lazy_where(*(_lazy(x, like) for x in (condition, a, b))))

    def broadcast_to(self, shape):
        return Traced(_core._lazy_spread(self._lazy, tuple(shape)))

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return Traced(_core._lazy_reshape(self._lazy, tuple(shape)))

    def permute(self, *axes):
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return Traced(_core._lazy_permute(self._lazy, [a % self.ndim for a in axes]))

    def transpose(self, a=-2, b=-1):
        axes = list(range(self.ndim))
        axes[a], axes[b] = axes[b], axes[a]
        return self.permute(axes)

    def _reduced(self, name, axis, keepdims):
        return Traced(_core._lazy_reduce(name, self._lazy, axis, keepdims))

    def sum(self, axis=None, keepdims=False):
        return self._reduced("sum", axis, keepdims)

    def prod(self, axis=None, keepdims=False):
        return self._reduced("prod", axis, keepdims)

    def max(self, axis=None, keepdims=False):
        return self._reduced("max", axis, keepdims)

    def min(self, axis=None, keepdims=False):
        return self._reduced("min", axis, keepdims)

    def all(self, axis=None, keepdims=False):
        return self._reduced("all", axis, keepdims)

    def any(self, axis=None, keepdims=False):
        return self._reduced("any", axis, keepdims)

    def mean(self, axis=None, keepdims=False):
        total = self.sum(axis, keepdims)
        return total / (max(self.size, 1) / max(total.size, 1))

    def softmax(self, axis=-1):
        e = weft.exp(self - self.max(axis, True))
        return e / e.sum(axis, True)

    def log_softmax(self, axis=-1):
        shifted = self - self.max(axis, True)
        return shifted - weft.log(weft.exp(shifted).sum(axis, True))

    def logsumexp(self, axis=None, keepdims=False):
        top = self.max(axis, True)
        total = weft.log(weft.exp(self - top).sum(axis, True)) + top
        return total if keepdims else total.reshape(self.max(axis, False).shape)

    def layer_norm(self, scale, shift, eps=1e-5):
        centred = self - self.mean(-1, True)
        spread = weft.rsqrt((centred * centred).mean(-1, True) + eps)
        return centred * spread * scale + shift

    def __matmul__(self, other):
        return Traced(_core._lazy_matmul(self._lazy, _lazy(other, self)))

    def __rmatmul__(self, other):
        return Traced(_core._lazy_matmul(_lazy(other, self), self._lazy))

    def __bool__(self):
        _refuse(
            "the compiled function asks for the truth of a traced value",
            "use where(condition, a, b), or leave the branch outside",
        )

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in VALUES:
            return lambda: getattr(weft, name)(self)
        return _refuse(
            f'a traced value has no "{name}"',
            "element-wise operations, where, astype, reductions, softmax, reshape, permute and @ can be compiled; leave the rest outside",
        )

    def __getitem__(self, key):
        _refuse("the compiled function indexes a traced value", "index before or after")

    def __float__(self):
        _refuse("the compiled function needs the number in a traced value", "return it instead")

    __int__ = __index__ = __float__


def _operators():
    pairs = dict(
        add="add", sub="subtract", mul="multiply", truediv="divide", pow="pow", mod="remainder",
        floordiv="floor_divide", lt="less", le="less_equal", gt="greater", ge="greater_equal",
        eq="equal", ne="not_equal",
    )  # fmt: skip
    pairs.update({"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"})
    for symbol, name in pairs.items():

        def forward(self, other, name=name):
            return self.__weft_operation__(name, [self, other])

        def backward(self, other, name=name):
            return self.__weft_operation__(name, [other, self])

        setattr(Traced, f"__{symbol}__", forward)
        if symbol not in ("lt", "le", "gt", "ge", "eq", "ne"):
            setattr(Traced, f"__r{symbol}__", backward)
    for symbol, name in dict(
        neg="negative", pos="positive", abs="abs", invert="bitwise_invert"
    ).items():
        setattr(
            Traced, f"__{symbol}__", lambda self, name=name: self.__weft_operation__(name, [self])
        )


_operators()


_active = []  # traces in progress, innermost last


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


class _Trace:
    """One specialisation: inputs of given types and shapes, kernels forward and backward."""

    def __init__(self, function, leaves, rebuild, contract):
        self.inputs = [_core._lazy_input(i, a.dtype, a.shape) for i, a in enumerate(leaves)]
        self.extra, self._by_id = [], {}
        _active.append(self)
        try:
            result = function(*rebuild([Traced(x) for x in self.inputs]))
        finally:
            _active.pop()
        self.single = not isinstance(result, (tuple, list))
        self.kind = type(result)
        results = [result] if self.single else list(result)
        for r in results:
            if not isinstance(r, Traced):
                _refuse(
                    f"the compiled function returns {type(r).__name__}, not something computed from its arguments",
                    "return arrays computed from the arguments",
                )
        self.outputs = [r._lazy for r in results]
        self.forward = _core.FusedPlan(self.outputs, contract, leaves[0])
        self._contract, self._like = contract, leaves[0]
        self._backward = None

    def captured(self, array):
        if id(array) not in self._by_id:
            data = array.data if isinstance(array, Tensor) else array
            self._by_id[id(array)] = lazy = _core._lazy_input(
                len(self.inputs), data.dtype, data.shape
            )
            self.inputs.append(lazy)
            self.extra.append(array)
        return self._by_id[id(array)]

    def backward(self):
        """The plan of all inputs' gradients, and which inputs have one."""
        if self._backward is None:
            seeds = [
                _core._lazy_input(len(self.inputs) + k, o.dtype, o.shape)
                for k, o in enumerate(self.outputs)
            ]
            gradients = _core._lazy_gradients(self.outputs, seeds, self.inputs)
            reached = [i for i, g in enumerate(gradients) if g is not None]
            plan = _core.FusedPlan([gradients[i] for i in reached], self._contract, self._like)
            self._backward = plan, reached
        return self._backward


def _flatten(args):
    """Arrays among the arguments, and a function that puts others in their place."""
    leaves, template = [], []
    for a in args:
        if isinstance(a, (NDArray, Tensor)):
            template.append(len(leaves))
            leaves.append(a)
        elif isinstance(a, (tuple, list)):
            inner, rebuild = _flatten(a)
            template.append((len(leaves), len(inner), rebuild, type(a)))
            leaves.extend(inner)
        else:
            template.append((a,))

    def rebuild(values):
        out = []
        for t in template:
            if isinstance(t, int):
                out.append(values[t])
            elif len(t) == 1:
                out.append(t[0])
            else:
                start, count, inner, kind = t
                out.append(kind(inner(values[start : start + count])))
        return out

    return leaves, rebuild


def _static(args):
    """The arguments that are not arrays, as part of a key."""
    return tuple(
        ("array",)
        if isinstance(a, (NDArray, Tensor))
        else (type(a), _static(a))
        if isinstance(a, (tuple, list))
        else (type(a), a)
        for a in args
    )


class Compiled:
    """A function whose array work runs in fused kernels; made by weft.compile."""

    def __init__(self, function, contract=False):
        self.function = function
        self.contract = contract
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "compiled")
        self._traces = {}
        self._last = None

    def _trace(self, args, leaves, rebuild):
        arrays = [a.data if isinstance(a, Tensor) else a for a in leaves]
        key = (
            tuple((str(a.dtype), tuple(a.shape), str(a.device)) for a in arrays),
            _static(args),
        )
        trace = self._traces.get(key)
        if trace is None:
            trace = self._traces[key] = _Trace(self.function, arrays, rebuild, self.contract)
        self._last = trace
        return trace, arrays

    def __call__(self, *args):
        leaves, rebuild = _flatten(args)
        if not leaves:
            _refuse("the compiled function got no array", "pass at least one array")
        trace, arrays = self._trace(args, leaves, rebuild)
        operands = leaves + trace.extra
        arrays = arrays + [a.data if isinstance(a, Tensor) else a for a in trace.extra]
        results = trace.forward.run(arrays)
        if any(isinstance(a, Tensor) for a in operands):
            results = self._attach(trace, operands, arrays, results)
        return results[0] if trace.single else trace.kind(results)

    @staticmethod
    def _attach(trace, operands, arrays, results):
        """Results as tensors whose gradient is the compiled one."""
        tensors = [a for a in operands if isinstance(a, Tensor)]
        place = [i for i, a in enumerate(operands) if isinstance(a, Tensor)]
        if not any(t.requires_grad for t in tensors):
            return [Tensor(r, requires_grad=False) for r in results]

        def gradient(index):
            def rule(g):
                plan, reached = trace.backward()
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
        return self._need().backward()[0].kernels


def compile(function, *, contract=False):
    """The function with its element-wise chains and trailing reductions fused into few kernels.

    Works on NDArray and Tensor arguments (nested in lists and tuples too); other arguments are constants of the trace.
    On the host every element is rounded as the eager operations round it, which arithmetic, exp, log, tanh and what is
    made of them then share to the last bit (sums are taken in another order; other functions may differ by an ulp);
    contract=True lets a product and a sum become one rounding. The trace is kept for each combination of types, shapes and devices. Gradients are compiled as well. Raises an Error
    with code compile.trace.unsupported where the function needs a value while it is being traced.
    """
    if isinstance(function, Compiled):
        if function.contract == contract:
            return function
        function = function.function
    return Compiled(function, contract)
