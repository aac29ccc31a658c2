# SPDX-License-Identifier: Apache-2.0
"""The operators of ONNX that weft.onnx runs: each takes the inputs of a node, arrays or constants in NumPy, and the node.

Sizes, axes and permutations are constants; an array that holds them is read back.
"""

from __future__ import annotations

import math

from weft import _numpy as np

import weft

from ._core import shown as _shown
from ._errors import error as _error
from ._core import ArgumentError, NDArray, Tensor
from .nn import functional as F


def refuse(node, what, legal):
    raise _error(
        ArgumentError,
        "onnx.attribute",
        f"{node.op} {_shown(node.name)}: {what}",
        [f"legal: {legal}"],
        help="export the model with another form of this layer",
    )


def ints(value):
    """The integers of a constant or of an array; None for an input that is left out."""
    if value is None:
        return None
    return [
        int(v) for v in np.atleast_1d(value if isinstance(value, np.ndarray) else value.numpy())
    ]


def _axes(node, x, given=None, name="axes"):
    """Axes from the second input (newer models) or the attribute, from 0 up; None: all."""
    axes = ints(given) if given is not None else node.attributes.get(name)
    if axes is None:
        return None
    return tuple(a % x.ndim for a in ([axes] if isinstance(axes, int) else axes))


# ---- windows


def _pads(node, spatial, kernel, stride, dilation):
    """([pads before], [pads after]) of a node with windows."""
    n = len(spatial)
    mode = node.attributes.get("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        pads = node.attributes.get("pads", [0] * 2 * n) if mode == "NOTSET" else [0] * 2 * n
        return list(pads[:n]), list(pads[n:])
    before, after = [], []
    for size, k, s, d in zip(spatial, kernel, stride, dilation):
        whole = max(0, (-(-size // s) - 1) * s + d * (k - 1) + 1 - size)
        less, more = whole // 2, whole - whole // 2
        before.append(less if mode == "SAME_UPPER" else more)
        after.append(more if mode == "SAME_UPPER" else less)
    return before, after


def windows(node, x, kernel):
    """(kernel, stride, dilation, pads before, pads after), each with a number for every axis of the image."""
    n = x.ndim - 2
    stride = node.attributes.get("strides", [1] * n)
    dilation = node.attributes.get("dilations", [1] * n)
    return (kernel, stride, dilation, *_pads(node, x.shape[2:], kernel, stride, dilation))


def _padded(x, before, after, value=0.0):
    """The array and the padding that is left for the layer: pads that differ are put around the array."""
    if before == after:
        return x, tuple(before)
    return weft.pad(x, ((0, 0), (0, 0), *zip(before, after)), value=value), (0,) * len(before)


def _by_axes(name, x):
    """The function of lines, images or volumes; some take tensors alone."""
    function = getattr(F, f"{name}{x.ndim - 2}d")
    if isinstance(x, Tensor):
        return function

    def call(*args):
        taken = [Tensor(a, requires_grad=False) if isinstance(a, NDArray) else a for a in args]
        return function(*taken).data

    return call


def conv(node, x, w, bias=None):
    _, stride, dilation, before, after = windows(node, x, w.shape[2:])
    x, padding = _padded(x, before, after)
    groups = node.attributes.get("group", 1)
    return _by_axes("conv", x)(x, w, bias, tuple(stride), padding, tuple(dilation), groups)


def conv_transpose(node, x, w, bias=None):
    _, stride, dilation, before, after = windows(node, x, w.shape[2:])
    if before != after or {"auto_pad", "output_shape"} & set(node.attributes):
        refuse(node, "pads that differ, auto_pad or output_shape", "equal pads on both sides")
    more = tuple(node.attributes.get("output_padding", [0] * (x.ndim - 2)))
    groups = node.attributes.get("group", 1)
    return _by_axes("conv_transpose", x)(x, w, bias, tuple(stride), tuple(before), more, groups, tuple(dilation))  # fmt: skip


def max_pool(node, x):
    kernel, stride, dilation, before, after = windows(node, x, node.attributes["kernel_shape"])
    x, padding = _padded(x, before, after, -math.inf)
    ceil = bool(node.attributes.get("ceil_mode", 0))
    return _by_axes("max_pool", x)(x, tuple(kernel), tuple(stride), padding, tuple(dilation), ceil)


def average_pool(node, x):
    kernel, stride, dilation, before, after = windows(node, x, node.attributes["kernel_shape"])
    counted = bool(node.attributes.get("count_include_pad", 0))
    if any(d != 1 for d in dilation) or (before != after and not counted):
        refuse(node, f"dilations {dilation}, pads {before} and {after}", "dilations of 1 and equal pads on both sides")  # fmt: skip
    x, padding = _padded(x, before, after)
    ceil = bool(node.attributes.get("ceil_mode", 0))
    return _by_axes("avg_pool", x)(x, tuple(kernel), tuple(stride), padding, ceil, counted)


def _image_axes(x):
    return tuple(range(2, x.ndim))


# ---- layers


def batch_norm(node, x, scale, bias, mean, var):
    if node.attributes.get("training_mode", 0):
        refuse(node, "training_mode=1", "training_mode=0: the statistics are given")
    shape = (1, -1) + (1,) * (x.ndim - 2)
    step = scale / weft.sqrt(var + node.attributes.get("epsilon", 1e-5))
    return x * step.reshape(shape) + (bias - mean * step).reshape(shape)


def instance_norm(node, x, scale, bias):
    axes, shape = _image_axes(x), (1, -1) + (1,) * (x.ndim - 2)
    mean = weft.mean(x, axis=axes, keepdims=True)
    var = weft.mean(weft.square(x - mean), axis=axes, keepdims=True)
    normal = (x - mean) * weft.rsqrt(var + node.attributes.get("epsilon", 1e-5))
    return normal * scale.reshape(shape) + bias.reshape(shape)


def layer_norm(node, x, scale, bias=None):
    axis = node.attributes.get("axis", -1) % x.ndim
    axes = tuple(range(axis, x.ndim))
    mean = weft.mean(x, axis=axes, keepdims=True)
    var = weft.mean(weft.square(x - mean), axis=axes, keepdims=True)
    out = (x - mean) * weft.rsqrt(var + node.attributes.get("epsilon", 1e-5)) * scale
    return out if bias is None else out + bias


def gemm(node, a, b, c=None):
    at = node.attributes
    a = a.T if at.get("transA", 0) else a
    b = b.T if at.get("transB", 0) else b
    out = a @ b
    out = out if at.get("alpha", 1.0) == 1.0 else out * at["alpha"]
    if c is None:
        return out
    return out + (c if at.get("beta", 1.0) == 1.0 else c * at["beta"])


def softmax(node, x, function=None):
    function = function or weft.softmax
    if node.opset >= 13:
        return function(x, axis=node.attributes.get("axis", -1))
    axis = (
        node.attributes.get("axis", 1) % x.ndim
    )  # older models: all axes from this one on together
    rows = x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    return function(rows, axis=1).reshape(x.shape)


def clip(node, x, low=None, high=None):
    low, high = (
        node.attributes.get(name) if value is None else float(_number(value))
        for name, value in (("min", low), ("max", high))
    )
    return weft.clip(x, low, high)


def _number(value):
    return value if isinstance(value, np.ndarray) else value.numpy()


# ---- shapes


def reshape(node, x, shape):
    sizes = ints(shape)
    if not node.attributes.get("allowzero", 0):
        sizes = [x.shape[k] if s == 0 else s for k, s in enumerate(sizes)]
    return x.reshape(tuple(sizes))


def flatten(node, x):
    axis = node.attributes.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def transpose(node, x):
    order = node.attributes.get("perm", range(x.ndim)[::-1])
    return x.transpose(*order) if isinstance(x, np.ndarray) else weft.permute_dims(x, tuple(order))


def squeeze(node, x, axes=None):
    gone = _axes(node, x, axes)
    gone = tuple(k for k, s in enumerate(x.shape) if s == 1) if gone is None else gone
    return x.reshape(tuple(s for k, s in enumerate(x.shape) if k not in gone))


def unsqueeze(node, x, axes=None):
    new = ints(axes) if axes is not None else node.attributes["axes"]
    rank = x.ndim + len(new)
    new, rest = {a % rank for a in new}, iter(x.shape)
    return x.reshape(tuple(1 if k in new else next(rest) for k in range(rank)))


def concat(node, *parts):
    axis = node.attributes["axis"]
    if all(isinstance(p, np.ndarray) for p in parts):
        return np.concatenate(parts, axis)
    return weft.concat(list(parts), axis=axis)


def split(node, x, sizes=None):
    axis = node.attributes.get("axis", 0) % x.ndim
    sizes = ints(sizes) if sizes is not None else node.attributes.get("split")
    if sizes is None:
        each = -(-x.shape[axis] // len(node.outputs))
        sizes = [min(each, x.shape[axis] - k * each) for k in range(len(node.outputs))]
    ends = np.cumsum([0, *sizes])
    where = (slice(None),) * axis
    return [x[(*where, slice(int(a), int(b)))] for a, b in zip(ends, ends[1:])]


def slices(node, x, starts=None, ends=None, axes=None, steps=None):
    at = node.attributes
    starts, ends = (at["starts"], at["ends"]) if starts is None else (ints(starts), ints(ends))
    axes = ints(axes) if axes is not None else at.get("axes", list(range(len(starts))))
    where = [slice(None)] * x.ndim
    for a, start, end, step in zip(axes, starts, ends, ints(steps) or [1] * len(starts)):
        size = x.shape[a % x.ndim]
        end = None if step < 0 and end < -size else max(-size, min(end, size))
        start = max(-size, min(start, size - (step < 0)))
        where[a % x.ndim] = slice(start, end, step)
    return x[tuple(where)]


def gather(node, x, index):
    axis = node.attributes.get("axis", 0) % x.ndim
    if isinstance(x, np.ndarray) and isinstance(index, np.ndarray):
        return np.take(x, index, axis=axis)
    flat = index.reshape((-1,))
    return weft.take(x, flat, axis=axis).reshape(x.shape[:axis] + index.shape + x.shape[axis + 1 :])


def pad(node, x, pads=None, value=None, axes=None):
    mode = node.attributes.get("mode", "constant")
    if mode != "constant":
        refuse(node, f"mode {_shown(mode)}", "constant")
    pads = ints(pads) if pads is not None else node.attributes["pads"]
    fill = float(_number(value)) if value is not None else node.attributes.get("value", 0.0)
    widths = [(0, 0)] * x.ndim
    named = ints(axes) or range(x.ndim)
    for k, a in enumerate(named):
        widths[a % x.ndim] = (pads[k], pads[k + len(named)])
    return weft.pad(x, tuple(widths), value=fill)


def expand(node, x, shape):
    return weft.broadcast_to(x, weft.broadcast_shapes(x.shape, tuple(ints(shape))))


def reduction(function):
    def call(node, x, axes=None):
        axes = _axes(node, x, axes)
        if not axes:
            axes = () if node.attributes.get("noop_with_empty_axes", 0) else tuple(range(x.ndim))
        return function(x, axis=axes, keepdims=bool(node.attributes.get("keepdims", 1)))

    return call


# Types of ONNX by number.
TYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
         11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16"}  # fmt: skip


def cast(node, x):
    to = TYPES.get(node.attributes["to"])
    if to is None:
        refuse(node, f"type {node.attributes['to']}", ", ".join(TYPES.values()))
    return x.astype(to)


def constant(node):
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        if name in node.attributes:
            wanted = "float32" if "float" in name else "int64"
            value = node.attributes[name]
            return value if isinstance(value, np.ndarray) else np.asarray(value, wanted)
    refuse(node, "a constant of text or of few elements", "value, value_float(s), value_int(s)")


def same(node, x, *rest):
    if ints(rest[1] if len(rest) > 1 else None) == [1]:
        refuse(node, "training_mode=1", "training_mode=0")
    return x


def _map(function):
    return lambda node, *x: function(*x)


def _chain(function):
    def call(node, first, *rest):
        for x in rest:
            first = function(first, x)
        return first

    return call


def _divide(a, b):
    whole = (
        weft.isdtype(a.dtype, "integral") if not isinstance(a, np.ndarray) else a.dtype.kind in "iu"
    )
    return a // b if whole else a / b


OPERATORS = {
    **{name: _map(getattr(weft, name.lower())) for name in """Abs Acos Asin Atan Ceil Cos Cosh Erf Exp Floor Log Reciprocal
        Relu Round Sigmoid Sign Sin Sinh Sqrt Tan Tanh Equal Greater Less Where Pow""".split()},
    "Add": _map(lambda a, b: a + b), "Sub": _map(lambda a, b: a - b), "Mul": _map(lambda a, b: a * b),
    "Div": _map(_divide), "Neg": _map(lambda a: -a), "Not": _map(weft.logical_not), "And": _map(weft.logical_and),
    "Or": _map(weft.logical_or), "GreaterOrEqual": _map(weft.greater_equal), "LessOrEqual": _map(weft.less_equal),
    "Max": _chain(weft.maximum), "Min": _chain(weft.minimum), "Sum": _chain(lambda a, b: a + b),
    "MatMul": _map(lambda a, b: a @ b), "Gemm": gemm,
    "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": max_pool, "AveragePool": average_pool,
    "GlobalAveragePool": lambda n, x: weft.mean(x, axis=_image_axes(x), keepdims=True),
    "GlobalMaxPool": lambda n, x: weft.max(x, axis=_image_axes(x), keepdims=True),
    "BatchNormalization": batch_norm, "LayerNormalization": layer_norm, "InstanceNormalization": instance_norm,
    "Softmax": softmax, "LogSoftmax": lambda n, x: softmax(n, x, weft.log_softmax),
    "LeakyRelu": lambda n, x: F.leaky_relu(x, n.attributes.get("alpha", 0.01)),
    "Elu": lambda n, x: F.elu(x, n.attributes.get("alpha", 1.0)),
    "HardSigmoid": lambda n, x: weft.clip(x * n.attributes.get("alpha", 0.2) + n.attributes.get("beta", 0.5), 0, 1),
    "HardSwish": lambda n, x: F.hardswish(x), "Softplus": lambda n, x: F.softplus(x),
    "Gelu": lambda n, x: F.gelu(x, n.attributes.get("approximate", "none")),
    "PRelu": lambda n, x, slope: weft.relu(x) - weft.relu(-x) * slope,
    "Clip": clip, "Dropout": same, "Identity": same, "Cast": cast, "Constant": constant,
    "Reshape": reshape, "Flatten": flatten, "Transpose": transpose, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
    "Concat": concat, "Split": split, "Slice": slices, "Gather": gather, "Pad": pad, "Expand": expand,
    "Shape": lambda n, x: np.array(x.shape[n.attributes.get("start", 0) : n.attributes.get("end")], "int64"),
    "ConstantOfShape": lambda n, s: np.full(ints(s), n.attributes.get("value", np.zeros(1, "float32"))),
    "ReduceMean": reduction(weft.mean), "ReduceSum": reduction(weft.sum), "ReduceMax": reduction(weft.max),
    "ReduceMin": reduction(weft.min),
}  # fmt: skip
# A product and the vector behind it, which weft.onnx.load puts together.
OPERATORS["Linear"] = lambda n, x, w, b: x @ w + b
