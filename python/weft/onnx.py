# SPDX-License-Identifier: Apache-2.0
"""Models in ONNX files as functions of weft arrays. Needs the package onnx, which is imported by `load` alone.

>>> net = weft.onnx.load("model.onnx")
>>> scores = net(weft.asarray(images, device="cuda"))

Batch norms behind a convolution become part of its weights, and sums with a vector behind a product its bias.
`weft.vta.quantize(net, samples, env)` makes int8 layers of it.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any as _Any

from weft import _numpy as np

import weft

from . import _core
from ._boundary import publish as _publish
from ._boundary import publish_class as _publish_class
from ._errors import error as _error

__all__ = ["Graph", "Node", "load"]


@dataclasses.dataclass
class Node:
    """One layer: `outputs` = `op`(`inputs`), all names; an input that is left out has the name ""."""

    name: str
    op: str
    inputs: list
    outputs: list
    attributes: dict
    opset: int


class Graph:
    """A model: called with arrays in the order of `inputs`, it gives its result, or a tuple of `outputs`.

    `inputs`: names and shapes, None where a model leaves an extent open; `nodes`: its layers; `constants`: its weights,
    as NumPy arrays. Arrays may lie on any device, weights follow them; tensors give tensors, with gradients.
    """

    def __init__(self, nodes: _Any, inputs: _Any, outputs: _Any, constants: _Any) -> None:
        self.nodes, self.inputs, self.outputs, self.constants = nodes, inputs, outputs, constants
        self._held = {}  # (name, device): the constant there

    def __repr__(self):
        return f"weft.onnx.Graph({len(self.nodes)} layers, inputs {self.inputs}, outputs {list(self.outputs)})"

    def __call__(self, *arrays: _Any) -> _Any:
        """The result, or a tuple of the results. Raises ShapeError (onnx.input), and what the layers' functions raise."""
        return self._run(arrays, None)

    def _run(self, arrays, watch):
        """`watch(node, results)` is called after each layer."""
        from ._onnx_operators import OPERATORS

        self._check(arrays)
        like = arrays[0]
        values = dict(zip(self.inputs, arrays))
        for node in self.nodes:
            # Sizes stay in NumPy; a layer that computes with any array gets arrays.
            taken = [self._value(values, name) for name in node.inputs]
            if any(not isinstance(v, (np.ndarray, type(None))) for v in taken):
                taken = [
                    v if k in _SIZES.get(node.op, ()) else self._on_device(name, v, like, node.op)
                    for k, (name, v) in enumerate(zip(node.inputs, taken))
                ]
            elif node.op not in _OF_NUMPY:
                taken = [self._on_device("", v, like) for v in taken]
            found = OPERATORS[node.op](node, *taken)
            found = found if isinstance(found, (list, tuple)) else [found]
            if watch is not None:
                watch(node, found)
            values.update(zip(node.outputs, found))
        out = tuple(self._on_device("", self._value(values, n), like) for n in self.outputs)
        return out[0] if len(out) == 1 else out

    def _check(self, arrays):
        wanted = list(self.inputs.values())
        fits = len(arrays) == len(wanted) and all(
            hasattr(a, "shape")
            and (w is None or (len(a.shape) == len(w) and all(n in (None, m) for n, m in zip(w, a.shape))))
            for a, w in zip(arrays, wanted)
        )  # fmt: skip
        if not fits:
            got = ", ".join(str(tuple(getattr(a, "shape", type(a).__name__))) for a in arrays)
            raise _error(
                _core.ShapeError,
                "onnx.input",
                f"the model takes {self.inputs}, got {got}",
                ["None is an extent that the model leaves open"],
                help="pass weft arrays in this order, or export the model with dynamic axes",
            )

    def _value(self, values, name):
        return None if not name else values[name] if name in values else self.constants[name]

    def _on_device(self, name, value, like, op=""):
        if not isinstance(value, np.ndarray):
            return value
        if op in _WITH_NUMBERS and value.ndim == 0:
            return value.item()
        key = name, str(like.device), type(like)
        if name and key in self._held and name in self.constants:
            return self._held[key]
        out = weft.asarray(value, device=like.device)
        if isinstance(like, _core.Tensor):
            out = _core.Tensor(out, requires_grad=False)
        if name in self.constants:
            self._held[key] = out
        return out


# Inputs that are sizes, axes or numbers, which stay in NumPy.
_SIZES = {
    "Reshape": (1,), "Squeeze": (1,), "Unsqueeze": (1,), "Slice": (1, 2, 3, 4), "Pad": (1, 2, 3), "Clip": (1, 2),
    "Expand": (1,), "Split": (1,), "ReduceMean": (1,), "ReduceSum": (1,), "ReduceMax": (1,), "ReduceMin": (1,),
    "Dropout": (1, 2), "ConstantOfShape": (0,),
}  # fmt: skip
# Layers that take a number as it is: a square is cheaper than a power.
_WITH_NUMBERS = {"Add", "Sub", "Mul", "Div", "Pow"}
# Layers that take NumPy's arrays and give such: computations with shapes stay on the host.
_OF_NUMPY = {
    "Add", "Sub", "Mul", "Div", "Neg", "Cast", "Concat", "Constant", "ConstantOfShape", "Dropout", "Flatten", "Gather",
    "Identity", "Reshape", "Shape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze",
}  # fmt: skip


def _folded(nodes, constants, outputs):
    """Batch norms behind convolutions become weights, sums behind products with a matrix their bias."""
    readers = {}
    for node in nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    gone = set()
    for node in nodes:
        after = readers.get(node.outputs[0], [])
        known = all(n in constants for n in node.inputs[1:] if n)
        if len(after) != 1 or node.outputs[0] in outputs or not known or len(node.inputs) < 2:
            continue
        next_node = after[0]
        others = [n for n in next_node.inputs if n != node.outputs[0]]
        if any(n not in constants for n in others) or not others:
            continue
        if node.op == "Conv" and next_node.op == "BatchNormalization" and len(others) == 4:
            if len(next_node.outputs) > 1 or next_node.attributes.get("training_mode", 0):
                continue
            w = constants[node.inputs[1]].astype("float64")
            bias = (
                constants[node.inputs[2]].astype("float64")
                if len(node.inputs) > 2 and node.inputs[2]
                else 0
            )
            scale, shift, mean, var = (constants[n].astype("float64") for n in others)
            step = scale / np.sqrt(var + next_node.attributes.get("epsilon", 1e-5))
            kind = constants[node.inputs[1]].dtype
            weight, offset = f"{node.name}.weight", f"{node.name}.bias"
            constants[weight] = (w * step.reshape(-1, *(1,) * (w.ndim - 1))).astype(kind)
            constants[offset] = ((bias - mean) * step + shift).astype(kind)
            node.inputs = [node.inputs[0], weight, offset]
        elif node.op == "MatMul" and next_node.op == "Add" and len(others) == 1:
            w, bias = constants[node.inputs[1]], constants[others[0]]
            if node.inputs[0] in constants or w.ndim != 2 or bias.shape != (w.shape[1],):
                continue
            node.op, node.inputs = "Linear", [*node.inputs, others[0]]
        else:
            continue
        node.outputs = next_node.outputs
        gone.add(id(next_node))
    return [n for n in nodes if id(n) not in gone]


def _attribute(package, a):
    value = package.helper.get_attribute_value(a)
    if isinstance(value, package.TensorProto):
        return package.numpy_helper.to_array(value)
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _package():
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError as reason:
        raise _error(
            _core.ArgumentError,
            "onnx.package",
            "reading ONNX models needs the package onnx, which is not installed",
            [str(reason)],
            help="pip install onnx, or apt-get install python3-onnx",
        ) from reason
    return onnx


def _model(package, source):
    """The model of a path, of bytes, or as it is; damaged ones are refused."""
    try:
        if isinstance(source, (str, os.PathLike)):
            model = package.load(os.fspath(source))
        elif isinstance(source, (bytes, bytearray)):
            model = package.load_model_from_string(bytes(source))
        else:
            model = source
        package.checker.check_model(model)
        return model
    except OSError as reason:
        raise _error(
            _core.IOError,
            "onnx.read",
            f"{source}: {reason.strerror or reason}",
            help="check the path and its rights",
        ) from reason
    except Exception as reason:  # the library's own errors, of several kinds
        what = "the model" if not isinstance(source, (str, os.PathLike)) else str(source)
        text = (str(reason).strip() or type(reason).__name__).splitlines()[0]
        raise _error(
            _core.IOError,
            "onnx.model",
            f"{what} is no valid ONNX model: {text[:200]}",
            ["legal: a path, bytes or an onnx.ModelProto that onnx.checker accepts"],
        ) from reason


def load(source: _Any) -> Graph:
    """The model of an ONNX file (a path), of its bytes, or of an onnx.ModelProto, as a Graph.

    Raises ArgumentError: onnx.package (the package is absent), onnx.operator (a layer that is not known; the text says
    which are), onnx.attribute (later, by the call); IOError: onnx.read, onnx.model.
    """
    package = _package()
    model = _model(package, source)
    from ._onnx_operators import OPERATORS

    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
    graph = model.graph
    constants = {t.name: np.array(package.numpy_helper.to_array(t)) for t in graph.initializer}
    nodes, unknown = [], []
    for k, n in enumerate(graph.node):
        name = n.name or f"{n.op_type}_{k}"
        if n.domain not in ("", "ai.onnx") or n.op_type not in OPERATORS or n.op_type == "Linear":
            unknown.append(f"{n.op_type} ({name})")
            continue
        attributes = {a.name: _attribute(package, a) for a in n.attribute}
        node = Node(name, n.op_type, list(n.input), list(n.output), attributes, opset)
        if node.op == "Constant":
            constants[node.outputs[0]] = OPERATORS["Constant"](node)
            continue
        nodes.append(node)
        extra = [o for o in n.output[1:] if o]
        if extra and n.op_type != "Split":
            unknown.append(f"{n.op_type} ({name}) with the results {', '.join(extra)}")
    if unknown:
        raise _error(
            _core.ArgumentError,
            "onnx.operator",
            f"the model has layers that are not known: {', '.join(unknown[:8])}",
            ["legal: " + ", ".join(sorted(set(OPERATORS) - {"Linear"}))],
            help="export the model without these layers, or compute them before and behind it",
        )
    inputs = {}
    for i in graph.input:
        if i.name in constants:
            continue
        tensor = i.type.tensor_type
        extents = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
        inputs[i.name] = tuple(extents) if tensor.HasField("shape") else None
    outputs = tuple(o.name for o in graph.output)
    return Graph(_folded(nodes, constants, outputs), inputs, outputs, constants)


_publish(__name__)
_publish_class(Graph)
_publish_class(Node)
