# SPDX-License-Identifier: Apache-2.0
"""The order in which a program's images lie on a host: as they come, or with the channels of a place side by side.

What weft and torch compute has the order of its operands, so it is enough to lay out the images that reach the first
convolutions. Which order is faster is measured by whole programs (whole.py).
"""

from __future__ import annotations

import torch

from .graph import Op, Value
from .mutation import changed_inputs
from .rules.common import array

LAY_OUT = "weft.channels_last"


class Layout:
    """The order of a graph's images: `last` says whether their channels come last."""

    def __init__(self):
        self.last = False

    def __repr__(self):  # part of the text by which equal steps are known
        return "images"

    def __call__(self, image, layout):
        return image.contiguous(memory_format=torch.channels_last) if self.last else image


@array("channels_last", space="weft")
def _channels_last(c, x, layout):
    turned = x.permute((0, 2, 3, 1))
    return turned.copy().permute((0, 3, 1, 2)) if layout.last and not turned.is_contiguous() else x


def _is_convolution(op):
    return op.name == "aten.convolution.default" and len(op.args[3]) == 2 and not op.args[6]


def _may_turn(value):
    """An image whose order is a matter of choice."""
    t = value.fake
    return (
        t.dim() == 4 and t.dtype in (torch.float32, torch.float64) and t.device.type == "cpu"
        and t.is_contiguous() and t.shape[1] > 1 and t.shape[2] * t.shape[3] > 1 and value.constant is None
    )  # fmt: skip


def lay_out_images(graph):
    """Puts an operator before the first convolutions that lays out their images; graph.layout: the order, or None."""
    changed = {graph.inputs[i].id for i in changed_inputs(graph)}
    follows = set()  # values that come from a convolution
    laid = {}
    for op in list(graph.ops):
        if any(v.id in follows for v in op.inputs):
            follows.update(v.id for v in op.outputs if v is not None)
        if not _is_convolution(op):
            continue
        image = op.args[0]
        if image.id not in follows | changed and _may_turn(image):
            graph.layout = graph.layout or Layout()
            if image.id not in laid:
                laid[image.id] = _insert(graph, op, image)
            op.args[0] = laid[image.id]
            op.inputs[op.inputs.index(image)] = laid[image.id]
            image.users.remove(op)
            laid[image.id].users.append(op)
        follows.update(v.id for v in op.outputs if v is not None)


def _insert(graph, before, image):
    new = Op(before.id, graph.layout, [image, graph.layout], {})
    new.name, new.inputs = LAY_OUT, [image]
    known = [
        *graph.inputs,
        *graph.outputs,
        *(v for o in [*graph.ops, *graph.folded] for v in [*o.inputs, *o.outputs]),
    ]
    number = 1 + max(v.id for v in known if isinstance(v, Value))
    new.outputs = [Value(number, image.fake, new)]
    image.users.append(new)
    graph.ops.insert(graph.ops.index(before), new)
    return new.outputs[0]
