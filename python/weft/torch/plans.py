# SPDX-License-Identifier: Apache-2.0
"""Fused plans of groups of operators. Equal groups (the layers of a Transformer, say) share one plan."""

from __future__ import annotations

import weakref

import torch

import weft

from .. import _core
from .graph import map_values
from .rules import ARRAYS, COMPLEX, FUSED, VIEWS, Context, Unsupported
from .rules.common import DTYPES

_plans = weakref.WeakValueDictionary()  # signature of a group -> _Shared


class _Shared:
    """A plan for as long as some program uses it."""

    def __init__(self, plan):
        self.plan = plan


def context(op, outputs=None):
    """What the rule of an operator is told about it; outputs: those of its results that are read."""
    wanted = None
    if outputs is not None:
        read = {v.id for v in outputs}
        wanted = {i for i, v in enumerate(op.outputs) if v is not None and v.id in read}
    c = Context(op.example(), [v.fake for v in op.inputs], wanted)
    if op.name.startswith("aten.") and op.name.split(".")[1] in (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
    ):
        x, y = (map_values(a, lambda v: v.fake) for a in op.args[:2])
        c.operand_dtype = DTYPES.get(torch.result_type(x, y), "")
    return c


def _number(value):
    """The Python number of a constant without axes, else None."""
    constant = value.constant
    if constant is None or constant.dim() or constant.device.type != "cpu":
        return None
    return constant.item()


class Recipe:
    """A group ready to run: its plan, and the values that the plan reads and gives."""

    def __init__(self, unit, like):
        """like: an array on the device where the plan will run, whose kernels it is made for."""
        self.like = like
        self.inputs = [v for v in unit.inputs if _number(v) is None]
        self.outputs = unit.outputs
        key = self._signature(unit)
        shared = _plans.get(key)
        if shared is None:
            shared = _plans[key] = _Shared(self._build(unit))
        self.shared, self.plan, self.key = shared, shared.plan, key

    def _signature(self, unit):
        names = {}

        def name(v):
            number = _number(v)
            if number is not None:
                return f"#{number!r}:{v.fake.dtype}"
            if v.id not in names:
                names[v.id] = f"%{len(names)}:{v.fake.dtype}:{tuple(v.fake.shape)}"
            return names[v.id]

        lines = [str(self.like.device), str([name(v) for v in self.inputs])]
        for op in unit.ops:
            args, kwargs = (map_values(a, name) for a in (op.args, op.kwargs))
            made = [None if v is None else name(v) for v in op.outputs]
            lines.append(f"{made} = {op.name} {args} {kwargs}")
        lines.append(str([name(v) for v in self.outputs]))
        return "\n".join(lines)

    def _build(self, unit):
        env = {}
        for i, v in enumerate(self.inputs):
            env[v.id] = _core._lazy_input(i, DTYPES[v.fake.dtype], tuple(v.fake.shape))
        like = next(iter(env.values()), None)
        if like is None:
            raise Unsupported("a group without inputs")
        for v in unit.inputs:
            if v.id not in env:
                dtype = DTYPES[v.fake.dtype]
                env[v.id] = _core._lazy_cast(
                    _core._lazy_constant(_number(v), _core._lazy_cast(like, dtype)), dtype
                )
        for op in unit.ops:
            args, kwargs = (map_values(a, lambda v: env[v.id]) for a in (op.args, op.kwargs))
            found = FUSED[op.name](context(op), *args, **kwargs)
            found = found if op.several else [found]
            for v, lazy in zip(op.outputs, found):
                if v is None or lazy is None:
                    if v is not None and v.constant is None and (v.users or v in self.outputs):
                        raise Unsupported(f"{op.name} does not give all of its results here")
                    continue
                check(op, v, lazy.shape, lazy.dtype)
                env[v.id] = lazy
        missing = [v for v in self.outputs if v.id not in env]
        if missing:
            raise Unsupported("a result of the operator that weft does not compute is used")
        return _core.FusedPlan([env[v.id] for v in self.outputs], False, self.like)


def check(op, value, shape, dtype):
    """A rule's result must have torch's type and shape."""
    fake = value.fake
    if tuple(shape) != tuple(fake.shape) or str(dtype) != DTYPES[fake.dtype]:
        raise Unsupported(
            f"fault in the rule of {op.name}: {dtype} {tuple(shape)}, and torch has "
            f"{DTYPES[fake.dtype]} {tuple(fake.shape)}"
        )


def array_function(op, outputs=None):
    """(rule, context) of an operator that runs alone."""
    own = COMPLEX.get(op.name) if op.complex else None
    rule = own or ARRAYS.get(op.name) or VIEWS[op.name]
    return rule, context(op, outputs)


def halves(unit, make):
    """The unit's operators in two parts; make(ops) makes a unit."""
    middle = len(unit.ops) // 2
    ops = sorted(unit.ops, key=lambda op: op.id)
    return make(ops[:middle]), make(ops[middle:])
