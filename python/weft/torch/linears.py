# SPDX-License-Identifier: Apache-2.0
"""Linear layers of a graph as one operator each.

aot_autograd takes them apart: the input as a matrix, the transposed weight, the product, the result in the input's shape.
Four calls on torch where its own operator is one, and three more changes of form on weft.
"""

from __future__ import annotations

import torch

from .graph import Op, Value

_LINEAR = torch.ops.aten.linear.default
_VIEWS = ("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default")
_TURNS = ("aten.t.default", "aten.permute.default", "aten.transpose.int")


def _turned(value):
    """The matrix whose transpose the value is, or None."""
    op = value.op if isinstance(value, Value) else None
    if op is None or op.name not in _TURNS or value.fake.dim() != 2:
        return None
    source = op.args[0]
    if op.name == "aten.permute.default" and [a % 2 for a in op.args[1]] != [1, 0]:
        return None
    if op.name == "aten.transpose.int" and op.args[1] % 2 == op.args[2] % 2:
        return None
    return source


def _rows(value):
    """What the matrix is a view of, with the same last axis."""
    op = value.op
    if op is not None and op.name in _VIEWS and value.constant is None:
        source = op.args[0]
        if source.fake.dim() > 2 and source.fake.shape[-1] == value.fake.shape[-1]:
            return source
    return value


def _parts(op):
    """(input, weight, bias) of a product that is a linear layer, or None."""
    if op.name == "aten.addmm.default" and not op.kwargs:
        bias, x, turned = op.args
        if not isinstance(bias, Value) or bias.fake.dim() != 1:
            return None
    elif op.name == "aten.mm.default":
        (x, turned), bias = op.args, None
    else:
        return None
    weight = _turned(turned)
    if weight is None or not x.fake.dtype.is_floating_point:
        return None
    if bias is not None and bias.fake.shape[0] != weight.fake.shape[0]:
        return None
    return x, weight, bias


def join_linears(graph):
    """Replaces products by linear layers; what nothing uses any more goes."""
    kept = {v.id for v in graph.outputs if isinstance(v, Value)}
    for op in list(graph.ops):
        parts = _parts(op)
        if parts is None:
            continue
        x, weight, bias = parts
        (made,) = op.outputs
        wide = _rows(x)
        shape = (*wide.fake.shape[:-1], weight.fake.shape[0])
        views = [
            u for u in made.users if u.name in _VIEWS and tuple(u.outputs[0].fake.shape) == shape
        ]
        if wide is not x and (made.id in kept or len(views) != len(made.users) or len(views) != 1):
            wide, shape = x, tuple(made.fake.shape)
        last = views[0] if wide is not x else op
        _replace(graph, op, last, [wide, weight] + ([] if bias is None else [bias]))
    _sweep(graph, kept)


def _replace(graph, first, last, args):
    new = Op(first.id, _LINEAR, args, {})
    new.inputs, new.outputs = list(args), last.outputs
    for op in {id(first): first, id(last): last}.values():
        for v in op.inputs:
            v.users.remove(op)
        graph.ops.remove(op)
    for v in new.inputs:
        v.users.append(new)
    for v in new.outputs:
        v.op = new
    at = next((i for i, op in enumerate(graph.ops) if op.id > new.id), len(graph.ops))
    graph.ops.insert(at, new)


def _sweep(graph, kept):
    """Views and transposes that only served the products."""
    for op in reversed(list(graph.ops)):
        if op.name in _VIEWS + _TURNS and not any(v.users or v.id in kept for v in op.outputs):
            graph.ops.remove(op)
            for v in op.inputs:
                v.users.remove(op)
