# SPDX-License-Identifier: Apache-2.0
"""A quantised ResNet-18 (int8, synthetic weights) whose layers run on VTA wherever it can do them.

Each layer is a tensor program. It is built for the accelerator; when that is refused it is built for the CPU, and the
report says so and why. Nothing falls back in silence.

>>> net = weft.vta.net.resnet18(weft.vta.env(), size=224)
>>> logits, report = net.run(net.image(seed=1))
"""

import dataclasses

import numpy as np

import weft

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

    def __init__(self, env, input_shape, host="cpu"):
        self.env, self.host, self.layers = env, host, []
        self.input_shape = input_shape
        self._built, self._places = {}, []
        self.values, self.expected = (
            {},
            {},
        )  # every activation of the last run, of the last reference

    def image(self, seed):
        return np.random.default_rng(seed).integers(-128, 128, self.input_shape).astype(np.int8)

    def add(self, layer):
        self.layers.append(layer)
        return layer.name

    def build(self):
        """Where each layer runs: [(name, target, reason)]; the reason is why it is not on the accelerator."""
        out = []
        for layer in self.layers:
            reason = ""
            try:
                module, target = weft.build(layer.func, target=self.env.target), self.env.target
            except weft.Error as refusal:
                code = refusal.code
                if not code.startswith(("vta.accepts.", "target.")):
                    raise
                reason = f"{code}: {refusal.message}"
                module, target = weft.build(layer.func, target=self.host), self.host
            self._built[layer.name] = (module, target)
            out.append((layer.name, target, reason))
        self._places = out
        return out

    def run(self, image, device=None):
        """The last activation, and per layer (name, target, reason, cycles)."""
        places = self._places or self.build()
        devices = {self.env.target: device or weft.device(self.env.target)}
        values = {"image": image}
        report = []
        for layer, (_, target, reason) in zip(self.layers, places):
            module = self._built[layer.name][0]
            place = devices.setdefault(target, weft.device(target))
            taken = [values[i] for i in layer.inputs]
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

    def reference(self, image):
        """The same network in NumPy."""
        values = {"image": image}
        for layer in self.layers:
            values[layer.name] = layer.reference(*(values[i] for i in layer.inputs))
        self.expected = values
        return values[self.layers[-1].name]

    # ---- layouts

    def pack(self, x):
        """[n, c, h, w] -> [n / B, c / b, h, w, B, b], zeros where there is nothing."""
        B, b = self.env.BATCH, self.env.BLOCK_IN
        n, c, h, w = x.shape
        x = np.pad(x, ((0, -n % B), (0, -c % b), (0, 0), (0, 0)))
        x = x.reshape(-(-n // B), B, -(-c // b), b, h, w)
        return np.ascontiguousarray(x.transpose(0, 2, 4, 5, 1, 3))

    def unpack(self, x, n, c):
        nb, cb, h, w, B, b = x.shape
        return x.transpose(0, 4, 1, 5, 2, 3).reshape(nb * B, cb * b, h, w)[:n, :c]


def resnet18(env, size=224, classes=1000, width=64, seed=2026, host="cpu"):
    """ResNet-18 for one image of 3 x size x size. Weights and biases come from `seed`; each sum is shifted so that its
    values fill int8. Layers after the first keep the machine's packed layout."""
    rng = np.random.default_rng(seed)
    net = Net(env, (1, 3, size, size), host)

    def shift_for(fan_in):
        """Sums of fan_in products of about 40 x 25 spread like sqrt(fan_in) x 1000; about 100 is wanted."""
        return max(0, round(np.log2(np.sqrt(fan_in) * 1000 / 60)))

    def conv(name, source, ci, h, co, kernel, stride, pad, relu, residual=None):
        weights = rng.integers(-50, 51, (co, ci, kernel, kernel)).astype(np.int8)
        bias = rng.integers(-20, 21, co).astype(np.int32)
        shift, oh = shift_for(ci * kernel * kernel), (h + 2 * pad - kernel) // stride + 1
        clip = (0, 127) if relu else (-127, 127)
        packed = ci % env.BLOCK_IN == 0 and co % env.BLOCK_OUT == 0
        inputs = (source,) if residual is None else (source, residual)

        if packed:
            func = op.conv2d_packed(
                env,
                1,
                ci,
                h,
                h,
                co,
                kernel,
                stride,
                pad,
                bias=True,
                residual=residual is not None,
                shift=shift,
                clip=clip,
            )
            w = weights.reshape(
                co // env.BLOCK_OUT, env.BLOCK_OUT, ci // env.BLOCK_IN, env.BLOCK_IN, kernel, kernel
            )
            w = np.ascontiguousarray(w.transpose(0, 2, 4, 5, 1, 3))
            b = np.ascontiguousarray(
                np.broadcast_to(
                    bias.reshape(-1, 1, env.BLOCK_OUT),
                    (co // env.BLOCK_OUT, env.BATCH, env.BLOCK_OUT),
                )
            )
        else:
            func = op.conv2d(
                1, ci, h, h, co, kernel, stride, pad, bias=True, shift=shift, clip=clip
            )
            w, b = weights, bias

        def reference(*values):
            x = net.unpack(values[0], 1, ci) if packed else values[0]
            y = (_im2col_conv(x, weights, stride, pad) >> shift) + bias[:, None, None]
            if residual is not None:
                y = y + net.unpack(values[1], 1, co)
            y = np.clip(y, *clip).astype(np.int8)
            return net.pack(y) if packed else y

        shape = net.pack(np.zeros((1, co, oh, oh), np.int8)).shape if packed else (1, co, oh, oh)
        net.add(
            Layer(
                name,
                func,
                inputs,
                (w, b),
                shape,
                "int8",
                reference,
                oh * oh * co * ci * kernel * kernel,
            )
        )
        return name, oh

    first, h = conv("conv1", "image", 3, size, width, 7, 2, 3, relu=True)
    pooled = (h + 2 - 3) // 2 + 1

    def pool_reference(x):
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-128)
        span = 2 * (pooled - 1) + 1
        return np.max(
            [x[:, :, p : p + span : 2, q : q + span : 2] for p in range(3) for q in range(3)],
            axis=0,
        )

    net.add(
        Layer(
            "pool1",
            op.max_pool2d(1, width, h, h, 3, 2, 1),
            (first,),
            (),
            (1, width, pooled, pooled),
            "int8",
            pool_reference,
        )
    )
    shape = net.pack(np.zeros((1, width, pooled, pooled), np.int8)).shape
    net.add(Layer("pack", _pack_func(env, width, pooled), ("pool1",), (), shape, "int8", net.pack))
    last, h, channels = "pack", pooled, width
    for stage in range(4):
        co = width << stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            tag = f"stage{stage + 1}.{block + 1}"
            shortcut = last
            if stride != 1 or channels != co:
                shortcut, _ = conv(f"{tag}.down", last, channels, h, co, 1, stride, 0, relu=False)
            middle, oh = conv(f"{tag}.conv1", last, channels, h, co, 3, stride, 1, relu=True)
            last, _ = conv(
                f"{tag}.conv2", middle, co, oh, co, 3, 1, 1, relu=True, residual=shortcut
            )
            h, channels = oh, co
    shape = net.pack(np.zeros((1, channels, 1, 1), np.int8)).shape
    factor = round(65536 / (h * h))
    net.add(
        Layer(
            "pool2",
            _average_func(env, channels, h, factor),
            (last,),
            (),
            (1, channels),
            "int8",
            lambda x: (
                (net.unpack(x, 1, channels).astype(np.int64).sum((2, 3)) * factor) >> 16
            ).astype(np.int8),
        )
    )
    weights = rng.integers(-50, 51, (classes, channels)).astype(np.int8)
    bias = rng.integers(-1000, 1001, classes).astype(np.int32)
    net.add(
        Layer(
            "dense",
            op.dense(1, channels, classes, bias=True, dtype="int32"),
            ("pool2",),
            (weights, bias),
            (1, classes),
            "int32",
            lambda x: (x.astype(np.int64) @ weights.T.astype(np.int64) + bias).astype(np.int32),
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
            lambda x: np.exp((x - x.max()).astype(np.float32) / np.float32(1024)),
        )
    )
    return net


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
