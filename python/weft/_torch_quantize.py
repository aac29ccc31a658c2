# SPDX-License-Identifier: Apache-2.0
"""The layers of a PyTorch model as weft.vta.quantize reads them, and the ranges of its activations."""

from __future__ import annotations

import operator
from types import SimpleNamespace

from ._core import shown as _shown
from ._core import ArgumentError
from ._errors import error as _error
from ._quantize_nodes import Node, checked, refuse


def _traced(model):
    try:
        from torch import fx
    except ImportError as reason:
        raise _error(
            ArgumentError,
            "vta.quantize.torch",
            "quantize needs PyTorch, which is not installed",
            help="install python3-torch",
        ) from reason
    from torch import nn

    if isinstance(model, (nn.Conv2d, nn.Linear, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)):
        model = nn.Sequential(model)  # a layer by itself would be traced through
    try:
        return fx.symbolic_trace(model.eval())
    except Exception as reason:  # whatever the model's own code raises
        raise _error(
            ArgumentError,
            "vta.quantize.trace",
            f"the model cannot be traced: {type(reason).__name__}: {reason}",
            help="write its forward without branches on values, as torch.fx asks",
        ) from reason


def _observed(traced, samples):
    """{node of torch.fx: (largest magnitude, shape of one example)} of all nodes that give one array of examples, and the
    result."""
    import torch
    from torch import fx

    seen = {}

    class Watch(fx.Interpreter):
        def run_node(self, n):
            value = super().run_node(n)
            if n.op in ("get_attr", "output"):
                return value
            if isinstance(value, torch.Tensor):
                if value.shape[:1] != (len(samples),):
                    refuse(f"{_shown(n.name)} makes {tuple(value.shape)} of {len(samples)} images")
                seen[n] = (float(value.detach().abs().max()), tuple(value.shape[1:]))
            elif isinstance(value, (tuple, list)) and any(
                isinstance(v, torch.Tensor) for v in value
            ):
                refuse(f"{_shown(n.name)} makes {len(value)} arrays; legal: one")
            return value

    try:
        with torch.no_grad():
            result = Watch(traced).run(torch.tensor(samples))
    except (RuntimeError, IndexError, TypeError, ValueError) as reason:
        if isinstance(reason, ArgumentError):
            raise
        raise _error(
            ArgumentError,
            "vta.quantize.samples",
            f"the model does not take the samples {samples.shape}: {str(reason).splitlines()[0]}",
            help="give images (n, channels, rows, columns) as the model was trained with",
        ) from reason
    return seen, result


def _same_as_traced(model, samples, result):
    """torch.fx does not see all that Python does: `y += x` of an activation is a new one to it."""
    import torch

    with torch.no_grad():
        want = model(torch.tensor(samples))
    if not torch.allclose(want, result, rtol=1e-3, atol=1e-4 * max(1.0, float(want.abs().max()))):
        raise _error(
            ArgumentError,
            "vta.quantize.trace",
            "the traced model computes something else than the model",
            ["rule: the model is a function of its images; torch.fx takes y += x for y = y + x"],
            help="write y = y + x, and no branch on values or random numbers",
        )


# What functions and methods do: parameters as PyTorch has them, without the operand; the layer's kind and numbers.


def _add(name, shape, other=None, alpha=1):
    if alpha != 1:
        refuse(f"{_shown(name)} adds with alpha = {alpha}")
    return "add", None


def _flatten(name, shape, *_, **__):
    if shape[0] == shape[1]:
        return "same", None
    if len(shape[1]) != 1:
        refuse(
            f"{_shown(name)} makes {shape[1]} of {shape[0]}; legal: one axis beside that of the images"
        )
    return "flatten", None


def _mean(name, shape, dim=None, keepdim=False, **more):
    axes = dim if isinstance(dim, (tuple, list)) else (dim,)
    images = len(shape[0]) == 3 and None not in axes and sorted(a % 4 for a in axes) == [2, 3]
    if more or not images:
        refuse(f"{_shown(name)} is no average over whole images: its axes are {dim}")
    return "mean", None


def _adaptive(name, shape, output_size):
    if len(shape[0]) != 3 or tuple(shape[1][1:]) != (1, 1):
        refuse(f"{_shown(name)} is no average over whole images: it makes {shape[1]}")
    return "mean", None


def _max_pool(name, shape, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):  # fmt: skip
    return "max_pool", SimpleNamespace(
        kernel_size=kernel_size, stride=kernel_size if stride in (None, []) else stride, padding=padding, dilation=dilation,
        ceil_mode=ceil_mode,
    )  # fmt: skip


def _avg_pool(name, shape, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):  # fmt: skip
    if divisor_override is not None or (not count_include_pad and padding not in (0, (0, 0))):
        refuse(f"{_shown(name)} divides by another number than that of the window's elements")
    return "avg_pool", SimpleNamespace(
        kernel_size=kernel_size, stride=kernel_size if stride in (None, []) else stride, padding=padding, ceil_mode=ceil_mode,
    )  # fmt: skip


def _concat(name, shape, dim=0, axis=None):
    if len(shape[1]) != 3 or (dim if axis is None else axis) % 4 != 1:
        refuse(
            f"{_shown(name)} joins along axis {dim if axis is None else axis}; legal: channels of images"
        )
    return "concat", None


def _dropout(name, shape, p=0.5, training=True, inplace=False):
    if training and p:
        refuse(f"{_shown(name)} drops elements in evaluation, too", "pass training=self.training")
    return "same", None


def _plain(kind):
    def kind_of(name, shape, *_, **__):
        return kind, None

    return kind_of


def _functions():
    import torch

    f = torch.nn.functional
    return {
        operator.add: _add, operator.iadd: _add, torch.add: _add, "add": _add, "add_": _add,
        torch.relu: _plain("relu"), f.relu: _plain("relu"), f.relu_: _plain("relu"), torch.relu_: _plain("relu"),
        "relu": _plain("relu"), "relu_": _plain("relu"), f.relu6: _plain("relu6"),
        torch.flatten: _flatten, "flatten": _flatten, "view": _flatten, "reshape": _flatten, torch.reshape: _flatten,
        "mean": _mean, torch.mean: _mean, f.adaptive_avg_pool2d: _adaptive, f.max_pool2d: _max_pool,
        f.avg_pool2d: _avg_pool, torch.cat: _concat, torch.concat: _concat,
        f.dropout: _dropout, f.dropout2d: _dropout, "contiguous": _plain("same"),
    }  # fmt: skip


def _of_module(name, module, shape):
    from torch import nn

    plain = [
        (nn.Conv2d, "conv"),
        (nn.Linear, "linear"),
        (nn.ReLU6, "relu6"),
        (nn.ReLU, "relu"),
        ((nn.Dropout, nn.Dropout2d, nn.Identity), "same"),
    ]
    for kinds, kind in plain:
        if isinstance(module, kinds):
            return kind, module
    if isinstance(module, nn.BatchNorm2d):
        if module.running_var is None:
            refuse(f"layer {_shown(name)} normalises by each batch: it has no running statistics")
        return "norm", module
    if isinstance(module, nn.MaxPool2d):
        return _max_pool(
            name, shape, module.kernel_size, module.stride, module.padding, module.dilation, module.ceil_mode,
        )  # fmt: skip
    if isinstance(module, nn.AvgPool2d):
        return _avg_pool(
            name, shape, module.kernel_size, module.stride, module.padding, module.ceil_mode, module.count_include_pad,
            module.divisor_override,
        )  # fmt: skip
    if isinstance(module, nn.AdaptiveAvgPool2d):
        return _adaptive(name, shape, module.output_size)
    if isinstance(module, nn.Flatten):
        return _flatten(name, shape)
    refuse(f"layer {_shown(name)} is a {type(module).__name__}")


def _in_place(node, modules):
    """Whether the layer changes its operand, which later layers then see changed."""
    if node.op == "call_module":
        return bool(getattr(modules[node.target], "inplace", False))
    name = getattr(node.target, "__name__", str(node.target))
    return node.target is operator.iadd or name.endswith("_") or bool(node.kwargs.get("inplace"))


def nodes_of(model, samples):
    """(nodes, {node: (kind, numbers)}, {node: (largest magnitude, shape of one example)}) over the samples."""
    traced = _traced(model)
    modules, functions = dict(traced.named_modules()), _functions()
    observed, result = _observed(traced, samples)
    made, kinds, seen = {}, {}, {}  # of torch.fx's nodes: Node
    shared = {}  # of torch.fx's nodes: those with the same elements in memory
    for n in traced.graph.nodes:
        if n.op == "output":
            if not isinstance(n.args[0], type(n)) or not made.get(n.args[0]):
                refuse("the model returns something else than one array")
            ranges = checked(seen)
            _same_as_traced(model, samples, result)
            end = Node("output", "output", [made[n.args[0]]])
            kinds[end] = "output", None
            return [*kinds], kinds, ranges
        if n not in observed:
            continue  # sizes and constants
        reads = [a for a in n.all_input_nodes if made.get(a)]
        if n.op == "placeholder":
            kind = "placeholder", None
        else:
            if not reads:
                refuse(f"{_shown(n.name)} computes with constants alone")
            shape = observed[reads[0]][1], observed[n][1]
            kind = _kind(n, modules, functions, shape)
        # An activation that is read twice is two operands.
        if kind[0] == "concat":
            operands = n.args[0] if n.args else n.kwargs["tensors"]
        else:
            operands = () if n.op == "placeholder" else n.args[: 2 if kind[0] == "add" else 1]
        operands = [made.get(a) for a in operands]
        if None in operands or (kind[0] == "add" and len(operands) != 2):
            refuse(f"{_shown(n.name)} computes with something else than activations")
        node = made[n] = Node(n.op, n.name, operands)
        node.target = n.target
        kinds[node], seen[node] = kind, observed[n]
        group = shared[n] = {n}
        if reads and (_in_place(n, modules) or kind[0] in ("same", "flatten")):
            group = shared[reads[0]]
            group.add(n)
            shared[n] = group
        if _in_place(n, modules):
            for other in group:  # in another shape it is no activation any more
                made[other] = node if observed[other][1] == observed[n][1] else None
    raise AssertionError("a traced model ends with its output")


def _kind(n, modules, functions, shape):
    if n.op == "call_module":
        return _of_module(n.target, modules[n.target], shape)
    function = functions.get(n.target)
    if function is None:
        refuse(f"{_shown(n.name)} calls {getattr(n.target, '__name__', n.target)}")
    others = {k: v for k, v in n.kwargs.items() if k not in ("inplace", "input", "tensors")}
    try:
        return function(n.name, shape, *n.args[1:], **others)
    except TypeError:
        refuse(
            f"{_shown(n.name)} calls {getattr(n.target, '__name__', n.target)} with {n.args[1:]} {others}"
        )
