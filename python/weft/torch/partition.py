# SPDX-License-Identifier: Apache-2.0
"""Which operators go where: groups that become one FusedPlan, single array functions, views, and what torch keeps."""

from __future__ import annotations

import torch

from .rules import ARRAYS, COMPLEX, FUSED, VIEWS
from .rules.common import DTYPES

_MOST_OPS = 48  # in one group: the unit in which weft and torch are compared


class Unit:
    """Operators that run together. kind: "fused", "array", "view" or "torch"."""

    __slots__ = ("kind", "ops", "inputs", "outputs", "reason")

    def __init__(self, kind, ops, reason=""):
        self.kind, self.ops, self.reason = kind, ops, reason
        self.inputs, self.outputs = [], []

    def connect(self, kept):
        """Finds the values that come in and go out; `kept`: ids of the graph's outputs."""
        own = {v.id for op in self.ops for v in op.outputs if v is not None}
        seen = set()
        self.inputs, self.outputs = [], []
        for op in self.ops:
            for v in op.inputs:
                if v.id not in own and v.id not in seen:
                    seen.add(v.id)
                    self.inputs.append(v)
        members = set(map(id, self.ops))
        for op in self.ops:
            for v in op.outputs:
                if v is None or v.constant is not None:
                    continue
                if v.id in kept or any(id(user) not in members for user in v.users):
                    self.outputs.append(v)


def obstacle(op, device):
    """Why weft cannot take an operator whatever its arguments are; empty where it can."""
    known = (COMPLEX,) if op.complex else (FUSED, ARRAYS, VIEWS)
    if not any(op.name in table for table in known):
        if op.complex and (op.name in FUSED or op.name in ARRAYS):
            return "complex elements"
        seeded = torch.Tag.nondeterministic_seeded in getattr(op.target, "tags", ())
        if seeded or op.name in ("run_and_save_rng_state", "run_with_rng_state"):
            return "random numbers are torch's"
        return "weft has no rule for this operator"
    for v in [*op.inputs, *op.outputs]:
        if v is None:
            continue
        t = v.fake
        if t.dtype not in DTYPES:
            return f"elements of type {str(t.dtype).removeprefix('torch.')}"
        if t.layout is not torch.strided or t.is_quantized:
            return "a tensor that is sparse or quantised"
        if t.device != device:
            return f"a tensor on {t.device} among tensors on {device}"
    for value in op.kwargs.values():
        if isinstance(value, torch.device) and value != device:
            return f"a copy to {value}"
    return ""


class _Groups:
    """Grows groups so that no value leaves a group and comes back into it.

    Units are numbered; `deps[u]` has bit g set where unit u needs, directly or not, what group g makes.
    """

    def __init__(self):
        self.of, self.members, self.deps = {}, {}, {}
        self.count = 0

    def new(self, op, needed):
        unit = self.count
        self.count += 1
        self.of[id(op)], self.members[unit], self.deps[unit] = unit, [op], needed
        return unit

    def needs(self, units):
        out = 0
        for u in units:
            out |= self.deps[u] | 1 << u
        return out

    def _require(self, unit, needed):
        needed &= ~(1 << unit)
        if needed & ~self.deps[unit]:
            for u in self.deps:
                if u == unit or self.deps[u] >> unit & 1:
                    self.deps[u] |= needed

    def join(self, op, unit, needed):
        self.of[id(op)] = unit
        self.members[unit].append(op)
        self._require(unit, needed)

    def merge(self, into, other):
        for op in self.members[other]:
            self.of[id(op)] = into
        self.members[into] += self.members.pop(other)
        needed = self.deps.pop(other)
        for u in self.deps:
            if self.deps[u] >> other & 1 and u != into:
                self.deps[u] |= 1 << into
        self._require(into, needed)
        for u in self.deps:
            if self.deps[u] >> into & 1:
                self.deps[u] |= self.deps[into]


def _grow(graph, fusible, is_view):
    groups = _Groups()
    growing = set()
    for op in graph.ops:
        makers = {
            groups.of[id(v.op)] for v in op.inputs if v.op is not None and id(v.op) in groups.of
        }
        if not fusible(op):
            groups.new(op, groups.needs(makers))
            continue
        target = None
        for unit in sorted(makers & growing, reverse=True):
            others = makers - {unit}
            if len(groups.members[unit]) >= _MOST_OPS:
                continue
            if all(not groups.deps[u] >> unit & 1 for u in others):
                target = unit
                break
        if target is None:
            unit = groups.new(op, groups.needs(makers))
            if not is_view(op):
                growing.add(unit)
            continue
        groups.join(op, target, groups.needs(makers - {target}))
        for other in sorted((makers & growing) - {target}, reverse=True):
            apart = not groups.deps[target] >> other & 1 and not groups.deps[other] >> target & 1
            small = len(groups.members[target]) + len(groups.members[other]) <= _MOST_OPS
            # `target` needs `other` through this very operator; that edge disappears by merging.
            direct = groups.deps[target] >> other & 1 and not groups.deps[other] >> target & 1
            if small and (apart or (direct and _only_direct(groups, target, other))):
                groups.merge(target, other)
                growing.discard(other)
    return groups


def _only_direct(groups, target, other):
    """Whether `target` needs `other` through no third unit."""
    for op in groups.members[target]:
        for v in op.inputs:
            u = groups.of.get(id(v.op)) if v.op is not None else None
            if u is not None and u not in (target, other) and (groups.deps[u] >> other & 1):
                return False
    return True


def _peel(ops, is_view, kept):
    """Views at the end of a group are no work: they become units of their own."""
    ops = sorted(ops, key=lambda op: op.id)
    views = []
    inside = set(map(id, ops))
    for op in reversed(ops):
        if is_view(op) and not any(
            id(u) in inside for v in op.outputs if v is not None for u in v.users
        ):
            inside.discard(id(op))
            views.append(op)
    return [op for op in ops if id(op) in inside], views


def order(units, kept):
    """Units in an order in which every value is made before it is read."""
    maker = {}
    for u in units:
        for op in u.ops:
            maker[id(op)] = u
    state, out = {}, []
    for first in sorted(units, key=lambda u: max(op.id for op in u.ops)):
        stack = [(first, None)]
        while stack:
            unit, rest = stack.pop()
            if rest is None:
                if id(unit) in state:
                    continue
                state[id(unit)] = "open"
                needed = {
                    id(maker[id(v.op)]): maker[id(v.op)]
                    for op in unit.ops
                    for v in op.inputs
                    if v.op is not None and id(v.op) in maker
                }
                rest = [u for u in needed.values() if u is not unit]
            while rest and id(rest[-1]) in state:
                rest.pop()
            if rest:
                stack.append((unit, rest))
                stack.append((rest[-1], None))
            else:
                out.append(unit)
    for unit in out:
        unit.connect(kept)
    return out


def kept_ids(graph):
    return {v.id for v in graph.outputs if getattr(v, "fake", None) is not None}


def partition(graph, device):
    """The units of a graph whose tensors are on `device`, in an order in which they can run."""
    kept = kept_ids(graph)
    for op in graph.ops:
        op.reason = obstacle(op, device)

    def fusible(op):
        return not op.reason and op.name in FUSED and not op.complex

    def is_view(op):
        return op.name in VIEWS

    units = []
    groups = _grow(graph, fusible, is_view)
    for members in groups.members.values():
        if not fusible(members[0]):
            op = members[0]
            kind = "torch" if op.reason else "view" if op.name in VIEWS else "array"
            units.append(Unit(kind, [op], op.reason))
            continue
        ops, views = _peel(members, is_view, kept)
        if ops:
            units.append(Unit("fused", ops))
        units += [Unit("view", [op]) for op in views]
    return order(units, kept)
