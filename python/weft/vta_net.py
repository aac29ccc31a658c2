# SPDX-License-Identifier: Apache-2.0
"""Quantised networks (int8, synthetic weights) whose layers run on VTA wherever it can do them: ResNets of both
versions, YOLOv3-tiny.

Each layer is a tensor program. It is built for the accelerator; when that is refused it is built for the CPU, and the
report says so and why. Nothing falls back in silence.

>>> net = weft.vta.net.resnet18(weft.vta.env(), size=224)
>>> logits, report = net.run(net.image(seed=1))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from weft import _numpy as np

import weft

from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from . import te
from . import vta_op as op


@dataclasses.dataclass
class Layer:
    """out = func(inputs..., weights...); `reference` computes the same with NumPy on row-major arrays."""

    name: str
    func: object
    inputs: tuple  # names of activations
    constants: tuple  # arrays
    shape: tuple  # of the result
    dtype: str
    reference: object
    macs: int = 0
    key: tuple = ()  # layers of one key are one program
    takes: tuple = ()  # shapes in which it reads its inputs; none: their own

    def taken(self, values):
        """Its inputs among the activations."""
        found = [values[i] for i in self.inputs]
        return [v.reshape(s) for v, s in zip(found, self.takes)] if self.takes else found


def _blocks(c, block):
    return -(-c // block) * block


def _im2col_conv(x, w, stride, pad):
    """Exact: products and sums of int8 stay far below 2^53."""
    n, ci, h, wd = x.shape
    co, _, k, _ = w.shape
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    oh, ow = ((e + 2 * pad - k) // stride + 1 for e in (h, wd))
    columns = np.stack(
        [
            x[:, :, p : p + (oh - 1) * stride + 1 : stride, q : q + (ow - 1) * stride + 1 : stride]
            for p in range(k)
            for q in range(k)
        ],
        axis=2,
    ).reshape(n, ci * k * k, oh * ow)
    return (w.reshape(co, -1).astype(np.float64) @ columns).reshape(n, co, oh, ow).astype(np.int64)


class Net:
    """Layers in order; activations are named. `env` decides the accelerator."""

    def __init__(self, env: _Any, input_shape: _Sequence[int], host: str = "cpu") -> None:
        self.env, self.host, self.layers = env, host, []
        self.input_shape = input_shape
        self._built, self._places = {}, []
        self.values, self.expected = (
            {},
            {},
        )  # every activation of the last run, of the last reference

    def image(self, seed: _Any) -> _Any:
        return np.random.default_rng(seed).integers(-128, 128, self.input_shape).astype(np.int8)

    def add(self, layer: Layer) -> _Any:
        self.layers.append(layer)
        return layer.name

    def build(self) -> _Any:
        """Where each layer runs: [(name, target, reason)]; the reason is why it is not on the accelerator."""
        out = []
        known = {}
        for layer in self.layers:
            if layer.key in known:
                self._built[layer.name], reason = known[layer.key]
                out.append((layer.name, self._built[layer.name][1], reason))
                continue
            reason = ""
            try:
                module, target = weft.build(layer.func, target=self.env.target), self.env.target
            except weft.Error as refusal:
                code = refusal.code
                if not code.startswith(("vta.accepts.", "stages.", "target.")):
                    raise
                reason = f"{code}: {refusal.message}"
                module, target = weft.build(layer.func, target=self.host), self.host
            self._built[layer.name] = (module, target)
            if layer.key:
                known[layer.key] = (module, target), reason
            out.append((layer.name, target, reason))
        self._places = out
        return out

    def run(self, image: _Any, device: _Any = None) -> _Any:
        """The last activation, and per layer (name, target, reason, cycles)."""
        places = self._places or self.build()
        devices = {self.env.target: device or weft.device(self.env.target)}
        values = {"image": image}
        report = []
        for layer, (_, target, reason) in zip(self.layers, places):
            module = self._built[layer.name][0]
            place = devices.setdefault(target, weft.device(target))
            taken = layer.taken(values)
            arrays = [taken[0], *layer.constants, *taken[1:]]  # X, W, bias, residual
            arguments = [weft.asarray(np.ascontiguousarray(a), device=place) for a in arrays]
            result = weft.asarray(np.zeros(layer.shape, layer.dtype), device=place)
            before = place.stats().get("cycles", 0)
            module["main"](*arguments, result)
            cycles = place.stats().get("cycles", 0) - before
            values[layer.name] = result.numpy()
            report.append((layer.name, target, reason, cycles))
        self.values = values
        return values[self.layers[-1].name], report

    def reference(self, image: _Any) -> _Any:
        """The same network in NumPy."""
        values = {"image": image}
        for layer in self.layers:
            values[layer.name] = layer.reference(*layer.taken(values))
        self.expected = values
        return values[self.layers[-1].name]

    # ---- layouts

    def pack(self, x: _Any) -> _Any:
        """[n, c, h, w] -> [n / B, c / b, h, w, B, b], zeros where there is nothing."""
        B, b = self.env.BATCH, self.env.BLOCK_IN
        n, c, h, w = x.shape
        x = np.pad(x, ((0, -n % B), (0, -c % b), (0, 0), (0, 0)))
        x = x.reshape(-(-n // B), B, -(-c // b), b, h, w)
        return np.ascontiguousarray(x.transpose(0, 2, 4, 5, 1, 3))

    def unpack(self, x: _Any, n: int, c: int) -> _Any:
        nb, cb, h, w, B, b = x.shape
        return x.transpose(0, 4, 1, 5, 2, 3).reshape(nb * B, cb * b, h, w)[:n, :c]


class _Maker:
    """Adds layers to a Net. Activations are (name, channels, size, packed); layers whose channels are whole blocks
    keep the machine's packed layout, and copies are put in where the layout changes."""

    def __init__(self, env, size, seed, host):
        self.env, self.rng = env, np.random.default_rng(seed)
        self.net = Net(env, (1, 3, size, size), host)
        self.image = ("image", 3, size, False)

    def shape(self, channels, size, packed):
        if not packed:
            return (1, channels, size, size)
        B, b = self.env.BATCH, self.env.BLOCK_IN
        return (1, _blocks(channels, b) // b, size, size, B, b)

    def lanes(self, values):
        """Per-channel numbers as elements of packed activations."""
        b = self.env.BLOCK_OUT
        return np.ascontiguousarray(
            np.broadcast_to(values.reshape(-1, 1, b), (len(values) // b, self.env.BATCH, b))
        )

    def whole(self, *channels):
        return all(c % self.env.BLOCK_IN == 0 for c in channels)

    def to_packed(self, x, name):
        source, channels, size, packed = x
        if packed:
            return x
        layer = Layer(
            name,
            _pack_func(self.env, channels, size),
            (source,),
            (),
            self.shape(channels, size, True),
            "int8",
            self.net.pack,
            key=("pack", channels, size),
        )
        self.net.add(layer)
        return (name, channels, size, True)

    def to_rows(self, x, name):
        source, channels, size, packed = x
        if not packed:
            return x
        layer = Layer(
            name,
            _unpack_func(self.env, channels, size),
            (source,),
            (),
            self.shape(channels, size, False),
            "int8",
            lambda v: np.ascontiguousarray(self.net.unpack(v, 1, channels)),
            key=("unpack", channels, size),
        )
        self.net.add(layer)
        return (name, channels, size, False)

    def conv(self, name, x, co, kernel, stride=1, pad=0, clip=(0, 127), residual=None):
        """>> shift, + bias, + residual, clip. The shift lets sums of products of about 40 x 25, which spread like
        sqrt(fan in) x 1000, fill int8."""
        env, net = self.env, self.net
        _, ci, h, _ = x
        weights = self.rng.integers(-50, 51, (co, ci, kernel, kernel)).astype(np.int8)
        bias = self.rng.integers(-20, 21, co).astype(np.int32)
        shift = max(0, round(np.log2(np.sqrt(ci * kernel * kernel) * 1000 / 60)))
        oh = (h + 2 * pad - kernel) // stride + 1
        packed = self.whole(ci, co)
        x = (self.to_packed if packed else self.to_rows)(x, f"{name}.in")
        inputs = (x[0],) if residual is None else (x[0], residual[0])
        key = ("conv", packed, ci, h, co, kernel, stride, pad, clip, shift, residual is not None)
        options = {"bias": True, "shift": shift, "clip": clip}
        if packed:
            func = op.conv2d_packed(
                env, 1, ci, h, h, co, kernel, stride, pad, residual=residual is not None, **options
            )
            bi, bo = env.BLOCK_IN, env.BLOCK_OUT
            w = weights.reshape(co // bo, bo, ci // bi, bi, kernel, kernel)
            w, b = np.ascontiguousarray(w.transpose(0, 2, 4, 5, 1, 3)), self.lanes(bias)
        else:
            func = op.conv2d(1, ci, h, h, co, kernel, stride, pad, **options)
            w, b = weights, bias

        def reference(*values):
            v = net.unpack(values[0], 1, ci) if packed else values[0]
            y = (_im2col_conv(v, weights, stride, pad) >> shift) + bias[:, None, None]
            if residual is not None:
                y = y + net.unpack(values[1], 1, co)
            y = np.clip(y, *clip).astype(np.int8)
            return net.pack(y) if packed else y

        macs = oh * oh * co * ci * kernel * kernel
        shape = self.shape(co, oh, packed)
        net.add(Layer(name, func, inputs, (w, b), shape, "int8", reference, macs, key))
        return (name, co, oh, packed)

    def max_pool(self, name, x, kernel, stride, before=0, after=0):
        """Windows over the image framed with -128: `before` rows and columns first, `after` last."""
        source, channels, h, packed = x
        oh = (h + before + after - kernel) // stride + 1

        def reference(v):
            frame = [(0, 0)] * v.ndim
            frame[2] = frame[3] = (before, after)
            v, span = np.pad(v, frame, constant_values=-128), stride * (oh - 1) + 1
            windows = [
                v[:, :, p : p + span : stride, q : q + span : stride]
                for p in range(kernel)
                for q in range(kernel)
            ]
            return np.max(windows, axis=0)

        func = _pool_func(self.shape(channels, h, packed), kernel, stride, before, oh)
        key = ("pool", packed, channels, h, kernel, stride, before, after)
        shape = self.shape(channels, oh, packed)
        self.net.add(Layer(name, func, (source,), (), shape, "int8", reference, key=key))
        return (name, channels, oh, packed)

    def elementwise(self, name, x, kind, f, reference, *constants):
        """A chain on one activation; `f` gets it and `constants`, int32 per channel."""
        source, channels, h, packed = x
        shape = self.shape(channels, h, packed)
        source_t = te.placeholder(shape, "int8", name="X")
        places = [self.lanes(c) if packed else c for c in constants]
        taken = [te.placeholder(c.shape, "int32", name=f"C{i}") for i, c in enumerate(places)]

        def element(*i):
            at = (i[1], i[4], i[5]) if packed else (i[1],)
            return f(source_t[i].astype("int32"), *(c[at] for c in taken)).astype("int8")

        out = te.compute(shape, element, name="result")

        def whole(v):
            rows = self.net.unpack(v, 1, channels) if packed else v
            y = reference(rows.astype(np.int64), *(c[:, None, None] for c in constants))
            return self.net.pack(y.astype(np.int8)) if packed else y.astype(np.int8)

        func = te.create_prim_func([source_t, *taken, out])
        key = (kind, packed, channels, h)
        self.net.add(Layer(name, func, (source,), tuple(places), shape, "int8", whole, key=key))
        return (name, channels, h, packed)

    def head(self, x, classes):
        """The mean over the image, a dense layer, and scores in float32."""
        net, rng = self.net, self.rng
        source, channels, h, _ = self.to_packed(x, "head.in")
        factor = round(65536 / (h * h))
        average = _average_func(self.env, channels, h, factor)

        def mean(v):
            total = net.unpack(v, 1, channels).astype(np.int64).sum((2, 3))
            return ((total * factor) >> 16).astype(np.int8)

        net.add(Layer("pool2", average, (source,), (), (1, channels), "int8", mean))
        weights = rng.integers(-50, 51, (classes, channels)).astype(np.int8)
        bias = rng.integers(-1000, 1001, classes).astype(np.int32)
        dense = op.dense(1, channels, classes, bias=True, dtype="int32")

        def scores(v):
            return (v.astype(np.int64) @ weights.T.astype(np.int64) + bias).astype(np.int32)

        net.add(
            Layer(
                "dense",
                dense,
                ("pool2",),
                (weights, bias),
                (1, classes),
                "int32",
                scores,
                channels * classes,
            )
        )
        net.add(
            Layer(
                "probabilities",
                _softmax_scores(classes),
                ("dense",),
                (),
                (1, classes),
                "float32",
                lambda v: np.exp((v - v.max()).astype(np.float32) / np.float32(1024)),
            )
        )
        return net


_DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}


def resnet(
    env: _Any,
    depth: int = 18,
    version: int = 1,
    size: int = 224,
    classes: int = 1000,
    width: int = 64,
    seed: int = 2026,
    host: str = "cpu",
) -> Net:
    """A ResNet of 18, 34, 50 or 101 layers for one image of 3 x size x size; from 50 on with bottlenecks. version 1:
    clipped after the sum with the shortcut; version 2: before each convolution (He et al. 2016). Weights and biases
    come from `seed`."""
    if depth not in _DEPTHS or version not in (1, 2):
        raise ValueError(f"depth is {depth}, version {version}: 18, 34, 50 or 101, version 1 or 2")
    m = _Maker(env, size, seed, host)
    signed, positive = (-127, 127), (0, 127)

    def before(tag, x):  # version 2: shift each channel, keep what is positive
        bias = m.rng.integers(-20, 21, x[1]).astype(np.int32)
        return m.elementwise(
            tag,
            x,
            "before",
            lambda v, b: op.minimum(op.maximum(v + b, 0), 127),
            lambda v, b: np.clip(v + b, 0, 127),
            bias,
        )

    x = m.conv("conv1", m.image, width, 7, 2, 3)
    x = m.max_pool("pool1", x, 3, 2, 1, 1)
    if m.whole(width):
        x = m.to_packed(x, "pack")
    for stage, blocks in enumerate(_DEPTHS[depth]):
        inner = width << stage
        co = inner * 4 if depth >= 50 else inner
        for block in range(blocks):
            tag, stride = f"stage{stage + 1}.{block + 1}", 2 if stage and not block else 1
            inside = before(f"{tag}.before1", x) if version == 2 else x
            shortcut = x
            if stride != 1 or x[1] != co:
                shortcut = m.conv(f"{tag}.down", inside, co, 1, stride, clip=signed)
            last = {"clip": signed if version == 2 else positive, "residual": shortcut}
            if depth >= 50:
                inside = m.conv(f"{tag}.conv1", inside, inner, 1)
                inside = m.conv(f"{tag}.conv2", inside, inner, 3, stride, 1)
                x = m.conv(f"{tag}.conv3", inside, co, 1, **last)
            else:
                inside = m.conv(f"{tag}.conv1", inside, inner, 3, stride, 1)
                x = m.conv(f"{tag}.conv2", inside, co, 3, 1, 1, **last)
    if version == 2:
        x = before("last", x)
    return m.head(x, classes)


def resnet18(
    env: _Any,
    size: int = 224,
    classes: int = 1000,
    width: int = 64,
    seed: int = 2026,
    host: str = "cpu",
) -> Net:
    """resnet(depth=18, version=1)."""
    return resnet(env, 18, 1, size, classes, width, seed, host)


def yolov3_tiny(
    env: _Any,
    size: int = 416,
    outputs: int = 255,
    width: int = 16,
    seed: int = 2026,
    host: str = "cpu",
) -> Net:
    """YOLOv3-tiny for one image of 3 x size x size (a multiple of 32): 13 convolutions with leaky clipping (an eighth
    below zero), six pools, upsampling and concatenation. Its results are the layers "coarse" and "fine", the latter
    last; their channels are padded to whole blocks, as weights of zero."""
    if size % 32:
        raise ValueError(f"size is {size}, which is no multiple of 32")
    m = _Maker(env, size, seed, host)
    signed = (-127, 127)

    def leaky(tag, x, co, kernel):
        x = m.conv(tag, x, co, kernel, 1, kernel // 2, clip=signed)
        return m.elementwise(
            f"{tag}.leaky",
            x,
            "leaky",
            lambda v: op.maximum(v, v >> 3),
            lambda v: np.maximum(v, v >> 3),
        )

    x, route = m.image, None
    for i in range(6):
        x = leaky(f"conv{i + 1}", x, width << i, 3)
        route = x if i == 4 else route
        x = m.max_pool(f"pool{i + 1}", x, 2, 2) if i < 5 else m.max_pool("pool6", x, 2, 1, 0, 1)
    x = leaky("conv7", x, width << 6, 3)
    neck = leaky("conv8", x, width << 4, 1)
    x = leaky("conv9", neck, width << 5, 3)
    channels = _blocks(outputs, env.BLOCK_OUT)
    m.conv("coarse", x, channels, 1, clip=signed)
    x = leaky("conv10", neck, width << 3, 1)
    x = _upsample_and_join(m, "joined", x, route)
    x = leaky("conv11", x, width << 4, 3)
    m.conv("fine", x, channels, 1, clip=signed)
    return m.net


def _upsample_and_join(m, name, x, route):
    """Twice the size by repetition, then the channels of `route`: copies."""
    (_, ca, h, _), (b, cb, _, packed) = x, route
    x = (m.to_packed if packed else m.to_rows)(x, f"{name}.in")
    sx, sr = m.shape(ca, h, packed), m.shape(cb, 2 * h, packed)
    first, second = te.placeholder(sx, "int8", name="X"), te.placeholder(sr, "int8", name="Y")
    shape = (1, sx[1] + sr[1], *sr[2:])
    out = te.compute(
        shape,
        lambda n, c, y, z, *k: te.if_then_else(
            c < sx[1],
            first[(n, c, y // 2, z // 2, *k)],
            second[(n, c - sx[1], y, z, *k)],
        ),
        name="joined",
    )

    def reference(u, v):
        return np.concatenate([u.repeat(2, axis=2).repeat(2, axis=3), v], axis=1)

    func = te.create_prim_func([first, second, out])
    m.net.add(Layer(name, func, (x[0], b), (), shape, "int8", reference))
    return (name, ca + cb, 2 * h, packed)


def _pool_func(shape, kernel, stride, before, oh):
    """The largest of each window over dimensions 2 and 3; outside the image counts as -128."""
    x = te.placeholder(shape, "int8", name="X")
    h, big = shape[2], stride * (oh - 1) + kernel
    source = x
    if big > h or before:
        source = te.compute(
            (*shape[:2], big, big, *shape[4:]),
            lambda n, c, y, z, *k: te.if_then_else(
                (y >= before) & (y < h + before) & (z >= before) & (z < h + before),
                x[(n, c, y - before, z - before, *k)],
                te.const(-128, "int8"),
            ),
            name="framed",
        )
    p, q = (te.reduce_axis((0, kernel), name=name) for name in "pq")
    out = te.compute(
        (*shape[:2], oh, oh, *shape[4:]),
        lambda n, c, y, z, *k: te.max(
            source[(n, c, y * stride + p, z * stride + q, *k)], axis=[p, q]
        ),
        name="pooled",
    )
    return te.create_prim_func([x, out])


def _unpack_func(env, channels, h):
    """The machine's layout -> [1, c, h, h]: a copy, which the host makes."""
    b = env.BLOCK_IN
    x = te.placeholder((1, _blocks(channels, b) // b, h, h, env.BATCH, b), "int8", name="X")
    out = te.compute(
        (1, channels, h, h), lambda n, c, y, z: x[0, c // b, y, z, 0, c % b], name="rows"
    )
    return te.create_prim_func([x, out])


def _pack_func(env, channels, h):
    """[1, c, h, h] -> the machine's layout: a copy, which the host makes."""
    B, b = env.BATCH, env.BLOCK_IN
    x = te.placeholder((1, channels, h, h), "int8", name="X")
    blocks = -(-channels // b)
    zero = te.const(0, "int8")

    def element(n, c, y, z, l, k):
        value = x[0, c * b + k, y, z]
        if B > 1:
            value = te.if_then_else(l < 1, value, zero)
        return value

    out = te.compute((1, blocks, h, h, B, b), element, name="packed")
    return te.create_prim_func([x, out])


def _average_func(env, channels, h, factor):
    """[1, c / b, h, h, B, b] -> [1, c]: sum * factor >> 16."""
    b = env.BLOCK_IN
    x = te.placeholder((1, channels // b, h, h, env.BATCH, b), "int8", name="X")
    p, q = te.reduce_axis((0, h), name="p"), te.reduce_axis((0, h), name="q")
    total = te.compute(
        (channels // b, b),
        lambda c, k: te.sum(x[0, c, p, q, 0, k].astype("int32"), axis=[p, q]),
        name="total",
    )
    scaled = te.compute((channels // b, b), lambda c, k: total[c, k] * factor, name="scaled")
    average = te.compute(
        (channels // b, b), lambda c, k: (scaled[c, k] >> 16).astype("int8"), name="average"
    )
    out = te.compute((1, channels), lambda n, c: average[c // b, c % b], name="flat")
    return te.create_prim_func([x, out])


def _softmax_scores(classes):
    """exp((x - max) / 1024) in float32, without the division by the sum."""
    x = te.placeholder((1, classes), "int32", name="X")
    k = te.reduce_axis((0, classes), name="k")
    largest = te.compute((1,), lambda n: te.max(x[n, k], axis=k), name="largest")
    out = te.compute(
        (1, classes),
        lambda n, c: te.exp(
            (x[n, c] - largest[n]).astype("float32") * te.const(1 / 1024, "float32")
        ),
        name="scores",
    )
    return te.create_prim_func([x, out])


_publish(__name__)
_publish_classes(__name__)
