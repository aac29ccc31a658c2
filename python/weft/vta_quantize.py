# SPDX-License-Identifier: Apache-2.0
"""Networks of PyTorch and ONNX, quantised for VTA: 8-bit weights with a scale for each channel, 8-bit activations whose scales come
from samples.

>>> net = weft.vta.quantize(model, samples, weft.vta.env())
>>> scores = net(images)                       # float32, as the model's
>>> [place for place in net.places if place.target != "vta"]

The scale of a channel's weights is the result's over the source's times the power of two that fits them, so a sum becomes
an activation by an addition, a shift and a clip, which the machine does on chip.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any as _Any
from typing import NamedTuple

from weft import _numpy as np

from ._core import shown as _shown
from ._boundary import publish as _publish
from . import _core, te
from . import vta_op as op
from ._errors import error as _error
from ._quantize_nodes import refuse as _refuse
from .vta_net import Layer, Net

_MOST = 127  # largest magnitude of a quantised number
_FACTOR = 32767  # largest constant of an instruction


class Place(NamedTuple):
    """Where a layer runs, and why it is not on the machine."""

    layer: str
    target: str
    reason: str


class _Value(NamedTuple):
    """A quantised activation: its layer, the shape of one example, and what one stands for."""

    layer: str
    shape: tuple
    scale: float


def _one(value, what):
    """A size that is equal in both directions."""
    pair = value if isinstance(value, tuple) else (value, value)
    if pair[0] != pair[-1] or isinstance(value, str):
        _refuse(f"{what} is {value}, which differs between rows and columns")
    return int(pair[0])


class QuantizedNet:
    """A network of int8 layers; made by `quantize`.

    `places`: where each layer runs. `cycles`: of the machine in the last call. `net`: the layers, a weft.vta.net.Net.
    """

    def __init__(self, net: Net, scale: _Any, out_scale: _Any, shape: _Any, result: _Any) -> None:
        self.net, self._scale, self._out, self._shape = net, scale, out_scale, shape
        self._result = result  # shape of one answer
        floats = "vta.accepts.dtype: numbers are float32 outside the machine"
        inner = [Place(*place) for place in net.build()]
        self.places = [
            Place("quantize", net.host, floats),
            *inner,
            Place("dequantize", net.host, floats),
        ]
        self.cycles = 0

    def quantized(self, images: _Any) -> _Any:
        """The int8 images that the first layer gets."""
        return np.clip(np.rint(images / self._scale), -_MOST, _MOST).astype(np.int8)

    def _each(self, images, run):
        images = np.asarray(images, np.float32)
        if images.shape[1:] != self._shape:
            raise _error(
                _core.ShapeError,
                "vta.quantize.shape",
                f"images have shape {images.shape}; the network was quantised for (n, "
                f"{', '.join(map(str, self._shape))})",
                help="resize the images, or quantise the network again for this size",
            )
        rows = [run(self.quantized(image[None]))[0] * self._out for image in images]
        return np.reshape(rows, (len(images), *self._result)).astype(np.float32)

    def __call__(self, images: _Any) -> _Any:
        """float32 scores of images (n, channels, rows, columns). Raises ShapeError."""
        self.cycles = 0

        def run(image):
            scores, report = self.net.run(image)
            self.cycles += sum(cycles for *_, cycles in report)
            return scores

        return self._each(images, run)

    def reference(self, images: _Any) -> _Any:
        """The same integers in NumPy."""
        return self._each(images, self.net.reference)


def _integer_conv(x, w, stride, pad, groups, dilation):
    """A convolution of integers, exact: sums stay far below 2^53."""
    n, ci, h, wide = x.shape
    co, _, kh, kw = w.shape
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    oh, ow = (
        (e + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for e, k in ((h, kh), (wide, kw))
    )
    out = np.zeros((n, groups, co // groups, oh * ow))
    for p in range(kh):
        for q in range(kw):
            rows = slice(p * dilation, p * dilation + (oh - 1) * stride + 1, stride)
            columns = slice(q * dilation, q * dilation + (ow - 1) * stride + 1, stride)
            part = x[:, :, rows, columns].reshape(n, groups, ci // groups, oh * ow)
            out += w[:, :, p, q].reshape(groups, co // groups, -1).astype(np.float64) @ part
    return out.reshape(n, co, oh, ow).astype(np.int64)


def _numbers(value, size=0):
    """Weights, of a tensor or in NumPy, in float64; zeros for none."""
    if value is None:
        return np.zeros(size)
    return np.asarray(value.detach() if hasattr(value, "detach") else value, np.float64)


def _ratio(value):
    """(factor, shift) with factor / 2^shift close to the value; both constants of instructions."""
    shift = max(0, min(14, math.floor(math.log2(_FACTOR / value))))
    return min(_FACTOR, round(value * 2**shift)), shift


def _moved(value, ratio):
    """The value in another scale, of numbers and of expressions."""
    factor, shift = ratio
    return (value * factor + (1 << shift >> 1)) >> shift if shift else value * factor


def _between(value, low, high):
    return op.maximum(op.minimum(value, te.const(high, "int32")), te.const(low, "int32"))


class _Quantizer:
    """Nodes are those of `_quantize_nodes`."""

    def __init__(self, nodes, kinds, seen, env, host):
        self.nodes, self.kinds, self.seen, self.env = nodes, kinds, seen, env
        self.values = {}  # of nodes: _Value
        inputs = [n for n in self.nodes if n.op == "placeholder"]
        if len(inputs) != 1 or len(seen[inputs[0]][1]) != 3:
            _refuse("the model takes something else than one batch of images")
        self.input = inputs[0]
        amax, self.shape = seen[self.input]
        self.net = Net(env, (1, *self.shape), host)
        self.values[self.input] = _Value("image", self.shape, max(amax, 1e-30) / _MOST)
        self.done = set()
        self.out_scale = None

    def scale(self, node):
        """The smallest scale that holds what was seen; of what is concatenated, all parts have one."""
        joined = self.only_user(node, "concat")
        return max(self.seen[joined or node][0], 1e-30) / _MOST

    def only_user(self, node, *kinds):
        """The one node that uses this one, when it does one of these things."""
        users = list(node.users)
        return users[0] if len(users) == 1 and self.kinds[users[0]][0] in kinds else None

    def run(self):
        for node in self.nodes:
            kind, module = self.kinds[node]
            if node in self.done or kind in ("placeholder", "get_attr"):
                continue
            if kind == "output":
                return self.finish(node.args[0])
            getattr(self, kind)(node, module)
        raise AssertionError("a traced model ends with its output")

    def finish(self, node):
        if self.out_scale is None:
            self.out_scale = self.values[node].scale
        scale, result = self.values[self.input].scale, self.seen[node][1]
        return QuantizedNet(self.net, scale, self.out_scale, self.shape, result)

    def add_layer(self, node, func, inputs, constants, shape, dtype, reference, macs=0):
        """`inputs`: values. A layer of its own for each node: its key is its name."""
        name, names = node.name, tuple(v.layer for v in inputs)
        takes = tuple((1, *v.shape) for v in inputs)
        self.net.add(
            Layer(name, func, names, constants, (1, *shape), dtype, reference, macs, (name,), takes)
        )
        return name

    def activation(self, node):
        """(the node that ends the layer, its clip): a ReLU behind a node belongs to it."""
        end = self.only_user(node, "relu", "relu6")
        if end is None:
            return node, None
        self.done.add(end)
        return end, self.kinds[end][0]

    def clip(self, relu, scale):
        if relu == "relu6":
            return (0, min(_MOST, round(6 / scale)))
        return (0 if relu else -_MOST, _MOST)

    def weights(self, w, bias, source, scale):
        """(int8 weights, int32 bias with what rounds, shifts, scale): sum + bias >> shift is the result's number."""
        amax = np.maximum(np.abs(w.reshape(len(w), -1)).max(1), 1e-30)
        shifts = np.floor(np.log2(_MOST * scale / source.scale / amax) + 1e-9)
        # Biases fit 31 bits beside the sums.
        shifts = np.minimum(shifts, 30 - np.ceil(np.log2(1 + np.abs(bias) / scale)))
        shifts = np.minimum(shifts, 30).astype(np.int64)
        if shifts.min() < 0:  # sums are wider than what was seen
            return self.weights(w, bias, source, scale * 2.0 ** -int(shifts.min()))
        step = scale / source.scale * 2.0**-shifts
        quantised = np.rint(w / step.reshape(-1, *(1,) * (w.ndim - 1)))
        half = np.where(shifts > 0, 2.0 ** (shifts - 1), 0)
        offset = np.rint(bias / (step * source.scale)) + half
        if np.abs(offset).max() >= 2**31:
            _refuse("a bias is far larger than the activations", "scale the layer before")
        return quantised.astype(np.int8), offset.astype(np.int32), shifts.astype(np.int32), scale

    def conv(self, node, module):
        source = self.values[node.args[0]]
        w = _numbers(module.weight)
        bias = _numbers(module.bias, len(w))
        if module.padding_mode != "zeros" or isinstance(module.padding, str):
            _refuse(
                f"layer {_shown(node.target)} pads by {_shown(module.padding_mode)}, {_shown(module.padding)}"
            )
        options = {
            "stride": _one(module.stride, "a stride"),
            "pad": _one(module.padding, "a padding"),
            "groups": module.groups,
            "dilation": _one(module.dilation, "a dilation"),
        }
        end = node
        norm = self.only_user(node, "norm")
        if norm is not None:
            bn = self.kinds[norm][1]
            scale = 1 / np.sqrt(_numbers(bn.running_var) + bn.eps)
            shift = np.zeros(len(w))
            if bn.affine:
                scale = scale * _numbers(bn.weight)
                shift = _numbers(bn.bias)
            bias = (bias - _numbers(bn.running_mean)) * scale + shift
            w = w * scale[:, None, None, None]
            end = norm
            self.done.add(norm)
        residual = self.residual_of(end)
        taken = ()
        if residual is not None:
            end, taken = residual[0], residual[1:]
        last, relu = self.activation(end)
        w, bias, shifts, scale = self.weights(
            w, np.asarray(bias, np.float64), source, self.scale(last)
        )
        clip = self.clip(relu, scale)
        factor, move = _ratio(taken[0].scale / scale) if taken else (1, 0)
        ci, h, wide = source.shape
        co, _, kh, kw = w.shape
        block = math.gcd(ci, self.env.BLOCK_IN) if module.groups == ci == co else 1
        func = op.conv2d(
            1, ci, h, wide, co, (kh, kw), bias=True, shifts=True, clip=clip,
            residual=bool(taken), residual_factor=factor, residual_shift=move,
            block=block, **options,
        )  # fmt: skip
        shape = self.seen[last][1]

        def reference(x, *more):
            total = _integer_conv(x, w, **options) + bias[:, None, None]
            total >>= shifts[:, None, None]
            for r in more:
                total += (r.astype(np.int64) * factor + ((1 << move) >> 1)) >> move
            return np.clip(total, *clip).astype(np.int8)

        macs = int(np.prod(shape)) * w[0].size
        inputs = (source, *taken)
        name = self.add_layer(last, func, inputs, (w, bias, shifts), shape, "int8", reference, macs)
        self.values[last] = _Value(name, shape, scale)

    def residual_of(self, node):
        """(the sum, the other operand) where this node is added to a value that is already there."""
        total = self.only_user(node, "add")
        if total is None or len(total.args) != 2:
            return None
        other = total.args[1] if total.args[0] is node else total.args[0]
        if other not in self.values or other is node or self.seen[other][1] != self.seen[node][1]:
            return None
        self.done.add(total)
        return total, self.values[other]

    def linear(self, node, module):
        source = self.values[node.args[0]]
        w = _numbers(module.weight)
        bias = _numbers(module.bias, len(w))
        out, inputs = w.shape
        if source.shape != (inputs,):
            _refuse(f"layer {_shown(node.target)} reads {source.shape}, not ({inputs},)")
        last, relu = self.activation(node)
        if relu is None and self.only_user(last, "output") is not None:
            step = np.maximum(np.abs(w).max(1), 1e-30) / _MOST
            scale = step * source.scale
            w = np.rint(w / step[:, None]).astype(np.int8)
            bias = np.rint(bias / scale).astype(np.int32)
            func = op.dense(1, inputs, out, bias=True, dtype="int32")
            self.out_scale = scale

            def scores(x):
                return (x.astype(np.int64) @ w.T.astype(np.int64) + bias).astype(np.int32)

            name = self.add_layer(last, func, (source,), (w, bias), (out,), "int32", scores, w.size)
            self.values[last] = _Value(name, (out,), 1.0)
            return
        w, bias, shifts, scale = self.weights(w, bias, source, self.scale(last))
        clip = self.clip(relu, scale)
        func = op.dense(1, inputs, out, bias=True, shifts=True, clip=clip)

        def reference(x):
            total = (x.astype(np.int64) @ w.T.astype(np.int64) + bias) >> shifts
            return np.clip(total, *clip).astype(np.int8)

        name = self.add_layer(
            last, func, (source,), (w, bias, shifts), (out,), "int8", reference, w.size
        )
        self.values[last] = _Value(name, (out,), scale)

    def add(self, node, module):
        if len(node.args) != 2 or any(a not in self.values for a in node.args):
            _refuse(f"{_shown(node.name)} adds something else than two activations")
        a, b = (self.values[n] for n in node.args)
        if a.shape != b.shape:
            _refuse(f"{_shown(node.name)} adds activations of shapes {a.shape} and {b.shape}")
        last, relu = self.activation(node)
        scale = self.scale(last)
        clip, moves = self.clip(relu, scale), [_ratio(v.scale / scale) for v in (a, b)]

        func = op.elementwise(
            (1, *a.shape),
            lambda x, y: _between(_moved(x, moves[0]) + _moved(y, moves[1]), *clip),
            ("int8", "int8"),
        )

        def reference(x, y):
            x, y = (_moved(v.astype(np.int64), n) for v, n in zip((x, y), moves))
            return np.clip(x + y, *clip).astype(np.int8)

        name = self.add_layer(last, func, (a, b), (), a.shape, "int8", reference)
        self.values[last] = _Value(name, a.shape, scale)

    def relu(self, node, module):
        self.clipped(node, "relu")

    def relu6(self, node, module):
        self.clipped(node, "relu6")

    def clipped(self, node, relu):
        source = self.values[node.args[0]]
        low, high = self.clip(relu, source.scale)
        func = op.elementwise(
            (1, *source.shape),
            lambda x: _between(x, low, high),
            ("int8",),
        )
        name = self.add_layer(
            node, func, (source,), (), source.shape, "int8",
            lambda x: np.clip(x, low, high).astype(np.int8),
        )  # fmt: skip
        self.values[node] = source._replace(layer=name)

    def norm(self, node, module):
        _refuse(f"layer {_shown(node.target)} normalises what is no convolution's result alone")

    def max_pool(self, node, module):
        source = self.values[node.args[0]]
        kernel, stride, pad = (
            _one(v, f"layer {node.target!r}")
            for v in (module.kernel_size, module.stride, module.padding)
        )
        if module.ceil_mode or _one(module.dilation, "a dilation") != 1:
            _refuse(f"layer {_shown(node.target)} has ceil_mode or a dilation")
        shape = self.seen[node][1]
        _, oh, ow = shape

        def reference(x):
            x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-128)
            return np.max(
                [
                    x[:, :, p : p + stride * (oh - 1) + 1 : stride, q : q + stride * (ow - 1) + 1 : stride]
                    for p in range(kernel)
                    for q in range(kernel)
                ],
                axis=0,
            )  # fmt: skip

        func = op.max_pool2d(1, *source.shape, kernel, stride, pad)
        name = self.add_layer(node, func, (source,), (), shape, "int8", reference)
        self.values[node] = _Value(name, shape, source.scale)

    def mean(self, node, module):
        source = self.values[node.args[0]]
        self.averages(node, source, source.shape[1:], 1, 0)

    def avg_pool(self, node, module):
        kernel, stride, pad = (
            _one(v, f"layer {node.target!r}")
            for v in (module.kernel_size, module.stride, module.padding)
        )
        if module.ceil_mode:
            _refuse(f"layer {_shown(node.target)} has ceil_mode")
        self.averages(node, self.values[node.args[0]], (kernel, kernel), stride, pad)

    def averages(self, node, source, kernel, stride, pad):
        """Averages of windows; beyond the image lie zeros."""
        channels, h, w = source.shape
        (kh, kw), shape = kernel, self.seen[node][1]
        whole = kernel == (h, w) and not pad
        rows = (1, channels) if whole else (1, *shape)
        scale = self.scale(node)
        # (sum + half) * factor >> shift is the mean in the result's scale; the factor is a constant of 16 bits.
        most = min(_FACTOR, (2**31 - 1) // ((_MOST + 1) * kh * kw * 2))
        ratio = source.scale / scale / (kh * kw)
        shift = min(30, math.floor(math.log2(most / ratio)))
        factor, half = round(ratio * 2.0**shift), min(_FACTOR, round(0.5 / ratio))
        x = te.placeholder((1, channels, h, w), "int8", name="X")
        p, q = te.reduce_axis((0, kh), name="p"), te.reduce_axis((0, kw), name="q")
        framed = op.framed(x, pad, 0)

        def window(n, c, y=0, z=0):
            return te.sum(framed[n, c, y * stride + p, z * stride + q].astype("int32"), axis=[p, q])

        if whole:
            total = te.compute(rows, lambda n, c: window(n, c), name="total")
        else:
            total = te.compute(rows, lambda n, c, y, z: window(n, c, y, z), name="total")
        scaled = te.compute(rows, lambda *i: (total[i] + half) * factor, name="scaled")
        out = te.compute(
            rows,
            lambda *i: _between(scaled[i] >> shift, -_MOST, _MOST).astype("int8"),
            name="mean",
        )

        def reference(v):
            v = np.pad(v.astype(np.int64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
            windows = np.lib.stride_tricks.sliding_window_view(v, kernel, (2, 3))
            total = windows[:, :, ::stride, ::stride].sum((4, 5)).reshape(rows)
            return np.clip(((total + half) * factor) >> shift, -_MOST, _MOST).astype(np.int8)

        func = te.create_prim_func([x, out])
        name = self.add_layer(node, func, (source,), (), rows[1:], "int8", reference)
        self.values[node] = _Value(name, shape, scale)

    def concat(self, node, module):
        """Channels side by side, each part in the result's scale."""
        parts, scale = [self.values[n] for n in node.args], self.scale(node)
        if len({p.shape[1:] for p in parts}) != 1:
            _refuse(f"{_shown(node.name)} joins images of several sizes")
        same = [math.isclose(p.scale, scale, rel_tol=1e-6) for p in parts]
        moves = [(1, 0) if s else _ratio(p.scale / scale) for s, p in zip(same, parts)]

        def joined(values):
            moved = [v if m == (1, 0) else _moved(v, m) for v, m in zip(values, moves)]
            return _between(functools.reduce(operator.add, moved), -_MOST, _MOST)

        def reference(*values):
            moved = [_moved(v.astype(np.int64), m) for v, m in zip(values, moves)]
            return np.clip(np.concatenate(moved, axis=1), -_MOST, _MOST).astype(np.int8)

        shape = self.seen[node][1]
        func = op.concatenated([(1, *p.shape) for p in parts], joined)
        name = self.add_layer(node, func, tuple(parts), (), shape, "int8", reference)
        self.values[node] = _Value(name, shape, scale)

    def flatten(self, node, module):
        source = self.values[node.args[0]]  # the same elements in the same order
        self.values[node] = source._replace(shape=self.seen[node][1])

    def same(self, node, module):
        self.values[node] = self.values[node.args[0]]


def quantize(model: _Any, samples: _Any, env: _Any, host: str = "cpu") -> QuantizedNet:
    """A PyTorch model of images, or a weft.onnx.Graph, as int8 layers of VTA, a QuantizedNet.

    `samples` (n, channels, rows, columns): images from which the ranges of activations come; their shape is that of all
    later images. Weights have a scale for each output channel. Batch norms, ReLUs and sums with a shortcut belong to the
    convolution before them. What the machine refuses is built for `host`; `QuantizedNet.places` names it with the reason.
    Raises weft.ArgumentError (vta.quantize.layer, .trace, .torch).
    """
    from .onnx import Graph

    try:
        samples = np.asarray(samples, np.float32)
    except (TypeError, ValueError) as reason:
        raise _error(
            _core.DTypeError, "vta.quantize.samples", f"samples of type {type(samples).__name__} are no array",
            help="pass images (n, channels, rows, columns)",
        ) from reason  # fmt: skip
    if samples.ndim != 4 or samples.size == 0:
        raise _error(
            _core.ShapeError, "vta.quantize.samples", f"samples have shape {samples.shape}",
            ["rule: images (n, channels, rows, columns), n at least 1"], help="pass some images that the model will see",
        )  # fmt: skip
    if isinstance(model, Graph):
        from ._onnx_quantize import nodes_of as read
    else:
        from ._torch_quantize import nodes_of as read
    return _Quantizer(*read(model, samples), env, host).run()


_publish(__name__)
