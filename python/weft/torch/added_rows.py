# SPDX-License-Identifier: Apache-2.0
"""Rows gathered only to be added at other positions, as one operator.

Networks over graphs send each node's row along its edges: rows of a table at one index, added up at another one. The gathered
rows, of which there are many more than nodes, are then neither written nor read.
"""

from __future__ import annotations

import torch

from .graph import Op, Value

_VIEWS = ("aten.expand.default", "aten.unsqueeze.default", "aten.view.default", "aten.reshape.default")  # fmt: skip
_INTEGERS = (torch.int32, torch.int64)


class _AddRows:
    """x with rows table[origin] added at the rows `to`; what torch does in its place."""

    def __call__(self, x, to, table, origin):
        rows = torch.ops.aten.index.Tensor(table, [origin])
        return torch.ops.aten.index_put.default(x, [to], rows, True)

    def __str__(self):
        return "weft.add_rows.default"


_ADD_ROWS = _AddRows()


def _is_row(v):
    return isinstance(v, Value) and v.fake.dtype in _INTEGERS and v.fake.dim() == 1


def _expanded(v, width):
    """The row of positions that an index was made of by giving it equal columns, or None."""
    if not isinstance(v, Value) or v.fake.dim() < 2 or any(s and n > 1 for n, s in zip(v.fake.shape[1:], v.fake.stride()[1:])):  # fmt: skip
        return None
    n = v.fake.shape[0]
    while v.fake.dim() > 1 and v.op is not None and v.op.name in _VIEWS:
        v = v.op.args[0]
        if v.fake.numel() != n and v.fake.shape[0] != n:
            return None
    return v if _is_row(v) and v.fake.shape[0] == n else None


def _first_only(indices):
    """The only index, where it is one of the first axis."""
    row, *rest = indices
    return row if _is_row(row) and all(i is None for i in rest) else None


def _gathered(op):
    """(table, positions) where the operator gives whole rows, else None."""
    row = None
    if op.name == "aten.index.Tensor":
        row = _first_only(op.args[1])
    elif op.name == "aten.index_select.default" and op.args[1] % op.args[0].fake.dim() == 0:
        row = op.args[2]
    elif op.name == "aten.gather.default" and op.args[1] % max(op.args[0].fake.dim(), 1) == 0:
        if op.args[2].fake.shape[1:] == op.args[0].fake.shape[1:]:
            row = _expanded(op.args[2], op.args[0].fake.shape[1:])
    return (op.args[0], row) if row is not None and _is_row(row) else None


def _added(op):
    """(x, positions, rows) where the operator adds whole rows, else None."""
    row = rows = None
    if op.name == "aten.index_put.default" and len(op.args) == 4 and op.args[3] is True:
        row, rows = _first_only(op.args[1]), op.args[2]
    elif op.name == "aten.scatter_add.default" and op.args[1] % max(op.args[0].fake.dim(), 1) == 0:
        index, rows = op.args[2:4]
        if index.fake.shape == rows.fake.shape and index.fake.shape[1:] == op.args[0].fake.shape[1:]:  # fmt: skip
            row = _expanded(index, index.fake.shape[1:])
    return None if row is None else (op.args[0], row, rows)


def _join(graph, kept, op):
    added = _added(op)
    if added is None:
        return
    x, to, rows = added
    maker = rows.op
    if maker is None or rows.constant is not None or rows.id in kept or len(rows.users) != 1:
        return
    found = _gathered(maker)
    if found is None:
        return
    table, origin = found
    kinds = {x.fake.dtype, rows.fake.dtype}
    if len(kinds) > 1 or x.fake.dtype is torch.bool or not rows.fake.numel():
        return
    if tuple(rows.fake.shape) != (to.fake.shape[0], *x.fake.shape[1:]) or rows.fake.dim() < 2:
        return
    for old in (maker, op):
        for v in old.inputs:
            v.users.remove(old)
    graph.ops.remove(maker)
    op.target, op.name, op.kwargs = _ADD_ROWS, str(_ADD_ROWS), {}
    op.args = [x, to, table, origin]
    op.inputs = list(op.args)
    for v in op.inputs:
        v.users.append(op)


def join_added_rows(graph):
    """Replaces gathers of rows and what adds them up; views of indices that nothing reads any more go."""
    kept = {v.id for v in graph.outputs if isinstance(v, Value)}
    for op in list(graph.ops):
        if op in graph.ops:
            _join(graph, kept, op)
    for op in reversed(list(graph.ops)):
        if op.name in _VIEWS and not any(v.users or v.id in kept for v in op.outputs):
            graph.ops.remove(op)
            for v in op.inputs:
                v.users.remove(op)
