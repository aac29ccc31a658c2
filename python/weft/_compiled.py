# SPDX-License-Identifier: Apache-2.0
"""Compiled functions: a trace for each combination of types and shapes, its kernels forward and backward.

Chains of element-wise operations become one kernel each, a reduction at their end included; products and views in between run as
the eager operations. The gradient of a compiled function is compiled from the same trace.
"""

from __future__ import annotations

import types

import weft

from ._boundary import public as _public
from . import _core
from ._autocast import number as _casting
from ._compile_arguments import flatten_arguments, static_arguments
from ._core import NDArray, Tensor
from ._differentiating import differentiating
from ._dispatch import (
    Recorder,
    dispatching,
    first_leaf,
    leaves_of,
    mapped,
    public_functions_dispatch,
)
from ._errors import error as _error
from ._islands import Island, changed, on_tensors
from ._traced import Memory, Traced, active, refuse
from .transforms import trees
from .transforms.batched import outside_of_vmap

_FEW = 1 << 15  # elements for which an array's memory matters less than the time of a call


class _Piece:
    """Part of a trace between islands: kernels forward, and backward at the first gradient."""

    def __init__(self, outputs, inputs, contract, like):
        self.outputs, self.inputs = outputs, list(inputs)
        self.forward = _core.FusedPlan(outputs, contract, like)
        self._contract, self._like = contract, like
        self._backward = {}  # inputs -> the plan of their gradients, and which of them have one

    def backward(self, wanted=None):
        """The plan of the gradients of these inputs (None: of all), and which of them have one."""
        wanted = tuple(range(len(self.inputs))) if wanted is None else wanted
        found = self._backward.get(wanted)
        if found is None:
            seeds = [
                _core._lazy_input(len(self.inputs) + k, o.dtype, o.shape)
                for k, o in enumerate(self.outputs)
            ]
            inputs = [self.inputs[i] for i in wanted]
            gradients = _core._lazy_gradients(self.outputs, seeds, inputs)
            reached = [i for i, g in zip(wanted, gradients) if g is not None]
            outputs = [g for g in gradients if g is not None]
            plan = _core.FusedPlan(outputs, self._contract, self._like) if outputs else None
            found = self._backward[wanted] = plan, reached
        return found

    def run(self, operands):
        """Results for arrays or tensors: tensors where an operand is one, with the compiled gradient."""
        arrays = operands[: len(self.inputs)]
        place = [i for i, a in enumerate(arrays) if isinstance(a, Tensor)]
        if not place:
            return self.forward.run(arrays)
        tensors = [arrays[i] for i in place]
        for i, tensor in zip(place, tensors):
            arrays[i] = tensor.data
        return _attach(self, place, tensors, arrays, self.forward.run(arrays))


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
        active.append(self)
        try:
            with public_functions_dispatch():
                result = dispatching(function)(
                    *rebuild([Traced(x, Memory(held=True)) for x in self.inputs])
                )
        finally:
            active.pop()
        self._values = None
        results, self.structure = trees.flatten(result)
        self.single = self.structure.kind is None
        # What does not depend on the arguments: the same in every call.
        self._constants = {k: r for k, r in enumerate(results) if not isinstance(r, Traced)}
        lazies = [r._lazy for r in results if isinstance(r, Traced)]
        if not lazies:
            found = ", ".join(sorted({type(r).__name__ for r in results})) or "nothing"
            refuse(
                f"the compiled function returns {found}, not something computed from its arguments",
                "return arrays computed from the arguments, beside others if you like",
            )
        self.last = _Piece(lazies, self.inputs, contract, leaves[0])
        self.forward = self.last.forward
        # Where no kernel joins operations the function itself is the fastest way through them.
        self.plain = not any(piece.forward.joins for piece in self.pieces())

    def islands(self):
        return [step for step in self._steps if isinstance(step, Island)]

    def pieces(self):
        """What is compiled, in order: before each island, and after the last."""
        return [*(step.piece for step in self.islands()), self.last]

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
        if first_leaf(result, (NDArray, Tensor)) is None:
            refuse(
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


def _attach(piece, place, tensors, arrays, results):
    """Results as tensors whose gradient is the compiled one; place: where among the operands the tensors are."""
    wanted = tuple(i for i, t in zip(place, tensors) if t.requires_grad)
    if not wanted:
        return [Tensor(r, requires_grad=False) for r in results]

    def gradient(index):
        def rule(g):
            plan, reached = piece.backward(wanted)
            if plan is None:
                return [None] * len(place)
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
            _casting(),
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
        if differentiating() > 1 or first_leaf(args, Recorder) is not None:
            return self.function(*args)
        if not leaves:  # nothing to trace
            if not args:
                self._remember(args, None, self.function, None)
            return self.function(*args)
        trace = self._trace(args, leaves, rebuild)
        plan = trace.only_plan(leaves)
        if plan is None and not trace.plain:
            self._remember(args, trace, _Results(self.function, trace), None, of_leaves=True)
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
        return sum(piece.forward.kernels for piece in self._need().pieces())

    def describe(self):
        """The steps of the last call, one line each. What kernels cannot hold is named where it runs, between two pieces."""
        trace = self._need()
        lines = (
            ["no kernel joins operations: calls run the function as it is\n"] if trace.plain else []
        )
        for step in trace.islands():
            lines += [step.piece.forward.describe(), f"eager {step.name}, between two pieces\n"]
        return "".join(lines) + trace.forward.describe()

    def source(self):
        """The text of the kernels that the last call used, as far as they are built."""
        return "".join(piece.forward.source() for piece in self._need().pieces())

    def backward_kernels(self):
        """Fused kernels of the last call's gradient."""
        plan, _ = self._need().last.backward()
        return plan.kernels if plan is not None else 0


_core._called_by_vector(Compiled)
Compiled._call = _public(Compiled._call, "Compiled", "__call__")
