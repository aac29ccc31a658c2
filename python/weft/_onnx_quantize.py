# SPDX-License-Identifier: Apache-2.0
"""The layers of a weft.onnx.Graph as weft.vta.quantize reads them, and the ranges of its activations."""

from __future__ import annotations

from types import SimpleNamespace

from weft import _numpy as np

import weft

from ._core import shown as _shown
from ._core import ArgumentError
from ._errors import error as _error
from ._onnx_operators import ints, windows
from ._quantize_nodes import Node, checked

LEGAL = ("Conv, BatchNormalization behind a Conv, Gemm, MatMul with weights, Relu, Clip from 0 to 6, MaxPool, AveragePool, averages "
         "over whole images, Concat of channels, Add of two activations, Flatten, Reshape to (n, all), Dropout, Identity")  # fmt: skip


def _refuse(node, why=""):
    raise _error(
        ArgumentError,
        "vta.quantize.layer",
        f"{node.op} {_shown(node.name)} has no int8 form{why}",
        [f"legal: {LEGAL}"],
        help="replace the layer, or run it before or behind the quantised part",
    )


def _equal_pads(node, before, after):
    if list(before) != list(after):
        _refuse(node, f": its pads are {before} before and {after} behind")
    return tuple(before)


def _conv(node, graph, shape):
    w = graph.constants[node.inputs[1]]
    kernel, stride, dilation, before, after = windows(
        node, SimpleNamespace(shape=shape, ndim=len(shape)), w.shape[2:]
    )
    bias = graph.constants[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else None
    return "conv", SimpleNamespace(
        weight=w, bias=bias, stride=tuple(stride), padding=_equal_pads(node, before, after),
        padding_mode="zeros", dilation=tuple(dilation), groups=node.attributes.get("group", 1),
    )  # fmt: skip


def _linear(node, graph):
    at, constants = node.attributes, graph.constants
    w = constants[node.inputs[1]]
    w = w if node.op == "Gemm" and at.get("transB", 0) else w.T
    bias = constants[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else None
    if at.get("transA", 0) or w.ndim != 2:
        _refuse(node, ": a transposed activation, or weights that are no matrix")
    if bias is not None:
        bias = np.broadcast_to(bias * at.get("beta", 1.0), (1, len(w)))[0]
    return "linear", SimpleNamespace(weight=w * at.get("alpha", 1.0), bias=bias)


def _pool(node, shape):
    kernel, stride, dilation, before, after = windows(
        node, SimpleNamespace(shape=shape, ndim=len(shape)), node.attributes["kernel_shape"]
    )
    if node.op == "AveragePool":
        padded = any((*before, *after))
        if tuple(kernel) == tuple(shape[2:]) and not padded:
            return "mean", None
        if any(d != 1 for d in dilation) or (
            padded and not node.attributes.get("count_include_pad", 0)
        ):
            _refuse(node, ": it divides by another number than that of the window's elements")
        return "avg_pool", SimpleNamespace(
            kernel_size=tuple(kernel), stride=tuple(stride), padding=_equal_pads(node, before, after),
            ceil_mode=bool(node.attributes.get("ceil_mode", 0)),
        )  # fmt: skip
    return "max_pool", SimpleNamespace(
        kernel_size=tuple(kernel), stride=tuple(stride), padding=_equal_pads(node, before, after),
        dilation=tuple(dilation), ceil_mode=bool(node.attributes.get("ceil_mode", 0)),
    )  # fmt: skip


def _bounds(node, graph):
    given = [graph.constants[n] if n else None for n in node.inputs[1:3]]
    given += [None] * (2 - len(given))
    low, high = (
        node.attributes.get(k) if v is None else float(v) for k, v in zip(("min", "max"), given)
    )
    return (low, high)


def _kind(node, graph, shapes):
    """(what a layer does, its numbers)."""
    shape = shapes[node.inputs[0]] if node.inputs else ()
    weights = all(n in graph.constants for n in node.inputs[1:] if n)
    if node.op == "Conv" and weights:
        return _conv(node, graph, shape)
    if node.op in ("Gemm", "MatMul", "Linear") and weights:
        return _linear(node, graph)
    if node.op in ("MaxPool", "AveragePool"):
        return _pool(node, shape)
    if node.op == "ReduceMean":
        axes = (
            node.attributes.get("axes")
            if weights and len(node.inputs) == 1
            else ints(graph.constants[node.inputs[1]])
        )
        return (
            ("mean", None)
            if sorted(a % len(shape) for a in axes or []) == [2, 3]
            else _refuse(node)
        )
    if node.op == "Clip" and weights:
        bounds = _bounds(node, graph)
        return ("relu6", None) if bounds == (0, 6) else ("relu", None) if bounds == (0, None) else _refuse(node, f" between {bounds}")  # fmt: skip
    if (
        node.op == "Add"
        and len(node.inputs) == 2
        and not any(n in graph.constants for n in node.inputs)
    ):
        return "add", None
    if node.op == "Concat" and not any(n in graph.constants for n in node.inputs):
        axis = node.attributes["axis"] % len(shape)
        return (
            ("concat", None)
            if (len(shape), axis) == (4, 1)
            else _refuse(node, f" along axis {axis}")
        )
    if node.op == "Reshape" and len(shapes[node.outputs[0]]) != 2:
        _refuse(node, f" to {shapes[node.outputs[0]]}")
    table = {"Relu": "relu", "GlobalAveragePool": "mean", "Flatten": "flatten", "Reshape": "flatten", "Dropout": "same", "Identity": "same"}  # fmt: skip
    return (table[node.op], None) if node.op in table else _refuse(node)


def nodes_of(graph, samples):
    """(nodes, {node: (kind, numbers)}, {node: (largest magnitude, shape of one example)}) over the samples."""
    x = weft.asarray(np.asarray(samples, np.float32))
    first, computed = next(iter(graph.inputs)), {}

    def watch(node, results):
        if not isinstance(results[0], np.ndarray):
            computed[node.outputs[0]] = results[0].numpy()

    result = graph._run((x,), watch)
    if not isinstance(result, weft.NDArray):
        raise _error(
            ArgumentError, "vta.quantize.layer", f"the model returns {len(graph.outputs)} arrays", ["legal: one array"]
        )  # fmt: skip
    computed[first] = x.numpy()
    shapes = {name: tuple(v.shape) for name, v in computed.items()}
    nodes = {first: Node("placeholder", first, ())}
    kinds = {nodes[first]: ("placeholder", None)}
    for node in graph.nodes:
        if node.outputs[0] not in computed:
            continue  # computes with constants
        kind = _kind(node, graph, shapes)
        made = Node("call_module", node.name, [nodes[n] for n in node.inputs if n in nodes])
        nodes[node.outputs[0]] = made
        kinds[made] = kind
    end = Node("output", "output", [nodes[graph.outputs[0]]])
    kinds[end] = "output", None
    seen = {
        n: (float(np.abs(computed[name]).max(initial=0)), shapes[name][1:])
        for name, n in nodes.items()
    }
    return [*nodes.values(), end], kinds, checked(seen)
