# SPDX-License-Identifier: Apache-2.0
"""Arguments that a graph changes: copies back into them, made in place where nothing else reads the old values."""

from __future__ import annotations

import torch

from .graph import Value

COPY = "aten.copy_.default"

# Operators that change part of their first argument, and their in-place form.
IN_PLACE = {
    "aten.index_put.default": torch.ops.aten.index_put_.default,
    "aten.scatter.src": torch.ops.aten.scatter_.src,
    "aten.scatter.value": torch.ops.aten.scatter_.value,
    "aten.index_copy.default": torch.ops.aten.index_copy_.default,
}


def changed_inputs(graph):
    """Numbers of the inputs that the graph writes to."""
    written = {
        op.args[0].id for op in graph.ops if isinstance(op.target, torch._ops.OpOverload)
        and op.target._schema.is_mutable and isinstance(op.args[0], Value)
    }  # fmt: skip
    return {i for i, v in enumerate(graph.inputs) if isinstance(v, Value) and v.id in written}


def _by_mask(op):
    """Whether masks say which elements are replaced: weft computes that for whole tensors."""
    found = op.args[1] if isinstance(op.args[1], (list, tuple)) else ()
    return any(isinstance(i, Value) and i.fake.dtype in (torch.bool, torch.uint8) for i in found)


def write_in_place(graph):
    """Where a new value of an argument is the argument with a part replaced, the part is written to the argument."""
    inputs = {v.id for v in graph.inputs if isinstance(v, Value)}
    outputs = {v.id for v in graph.outputs if isinstance(v, Value)}
    for copy in [op for op in graph.ops if op.name == COPY]:
        target, value = copy.args[:2]
        made = value.op if isinstance(value, Value) else None
        if (
            made is None
            or made.name not in IN_PLACE
            or _by_mask(made)
            or made.args[0] is not target
            or target.id not in inputs
            or {id(u) for u in target.users} != {id(made), id(copy)}
            or {target.id, value.id, copy.outputs[0].id} & outputs
            or copy.outputs[0].users
            or value.fake.stride() != target.fake.stride()
        ):
            continue
        made.target = IN_PLACE[made.name]
        made.name = str(made.target)
        graph.ops.remove(copy)
        value.users.remove(copy)
        target.users.remove(copy)
