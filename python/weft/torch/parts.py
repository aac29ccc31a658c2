# SPDX-License-Identifier: Apache-2.0
"""Sums of gradients of parts as one tensor of these parts.

The gradient of x[0] or x[:, :n] is a tensor like x that is zero beside the part, and the parts' gradients are added up. Where
the parts are all of x, their sum is the parts beside each other: read and written once.
"""

from __future__ import annotations

import torch

from .graph import Op, Value, map_values

_ONE, _SOME = "aten.select_backward.default", "aten.slice_backward.default"
_JOIN = {_ONE: torch.ops.aten.stack.default, _SOME: torch.ops.aten.cat.default}


def _is_sum(op):
    """Is it the sum of two tensors of the result's type and shape?"""
    if op is None or op.name != "aten.add.Tensor" or op.kwargs or len(op.args) != 2:
        return False
    (made,) = op.outputs
    alike = lambda v: (
        isinstance(v, Value) and v.fake.shape == made.fake.shape and v.fake.dtype == made.fake.dtype
    )  # noqa: E731, E501
    return all(map(alike, op.args)) and op.args[0] is not op.args[1]


def _part(value):
    """((kind, axis), first, one past the last) of a gradient of a part, or None."""
    op = value.op
    if op is None or op.name not in _JOIN or value.constant is not None or op.kwargs:
        return None
    axis = op.args[2] % value.fake.dim()
    n = value.fake.shape[axis]
    if op.name == _ONE:
        first = op.args[3] % n
        return (op.name, axis), first, first + 1
    first, last, step = slice(*op.args[3:6]).indices(n)
    return ((op.name, axis), first, last) if step == 1 and last > first else None


class _Sum:
    """A sum of sums that nothing else reads, and what is added up in it."""

    def __init__(self, graph, kept, root):
        self.graph, self.kept, self.root = graph, kept, root
        self.sums, self.terms = [], []
        self._collect(root)

    def _alone(self, value):
        return len(value.users) == 1 and value.id not in self.kept and value.constant is None

    def _collect(self, op):
        self.sums.append(op)
        for v in op.args:
            if self._alone(v) and _is_sum(v.op):
                self._collect(v.op)
            else:
                self.terms.append(v)

    def join(self):
        found = {}
        for v in self.terms:
            part = _part(v) if self._alone(v) else None
            if part is not None:
                found.setdefault(part[0], []).append((*part[1:], v))
        for (kind, axis), parts in found.items():
            parts.sort(key=lambda p: p[0])
            ends = [0, *(last for _, last, _ in parts)]
            whole = ends[-1] == parts[0][2].fake.shape[axis]
            if len(parts) > 1 and whole and all(p[0] == end for p, end in zip(parts, ends)):
                return self._replace(_JOIN[kind], axis, [v for _, _, v in parts])

    def _replace(self, target, axis, values):
        """The one that is added last becomes all of them, the others zero; nothing is added where all terms are parts."""
        alone = len(values) == len(self.terms)
        joined = max(values, key=lambda v: v.users[0].id)
        behind = self.root if alone else joined.users[0]
        pieces = [v.op.args[0] for v in values]
        new = Op(max(v.op.id for v in values), target, [pieces, axis], {})
        self.graph.ops.insert(self.graph.ops.index(behind), new)
        for v in values:
            self._remove(v.op)
        if alone:
            for op in self.sums:
                self._remove(op)
            (joined,) = self.root.outputs
        new.inputs, new.outputs, joined.op = pieces, [joined], new
        for v in pieces:
            v.users.append(new)
        for v in [] if alone else values:
            if v is not joined:
                self._add_nothing(v)

    def _add_nothing(self, zero):
        (op,) = zero.users
        (made,) = op.outputs
        other = op.args[0] if op.args[1] is zero else op.args[1]
        if made.id in self.kept:  # keeps its strides
            op.target, op.args, op.inputs = torch.ops.aten.clone.default, [other], [other]
            op.name = str(op.target)
            return zero.users.clear()
        self._remove(op)
        for user in made.users:
            swap = lambda v: other if v is made else v  # noqa: E731
            user.args, user.kwargs = (map_values(a, swap) for a in (user.args, user.kwargs))
            user.inputs = [swap(v) for v in user.inputs]
            other.users.append(user)

    def _remove(self, op):
        self.graph.ops.remove(op)
        for v in op.inputs:
            v.users.remove(op)


def join_parts(graph):
    """Replaces sums of gradients of all parts of a tensor."""
    kept = {v.id for v in graph.outputs if isinstance(v, Value)}
    for op in list(graph.ops):
        if not _is_sum(op) or op not in graph.ops:
            continue
        (made,) = op.outputs
        if made.id not in kept and len(made.users) == 1 and _is_sum(made.users[0]):
            continue  # a term of another sum
        _Sum(graph, kept, op).join()
