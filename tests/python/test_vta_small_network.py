# SPDX-License-Identifier: Apache-2.0
"""A small quantised network of odd sizes through public names only, layer after layer, against NumPy: convolution with
bias, pooling, grouped, depthwise, transposed and dilated convolutions, a residual, dense and global pooling."""

import numpy as np
import pytest

import weft
from weft.vta import op

pytestmark = pytest.mark.targets("vta")


def sums(x, w, stride=1, pad=0, groups=1, dilation=1):
    """Exact sums of NCHW by OIHW."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))).astype(np.int64)
    o, c, kh, kw = w.shape
    oh = (x.shape[2] - dilation * (kh - 1) - 1) // stride + 1
    ow = (x.shape[3] - dilation * (kw - 1) - 1) // stride + 1
    out = np.zeros((x.shape[0], o, oh, ow), np.int64)
    for g in range(groups):
        rows = slice(g * (o // groups), (g + 1) * (o // groups))
        part = x[:, g * c : (g + 1) * c]
        for p in range(kh):
            for q in range(kw):
                at = part[:, :, p * dilation :, q * dilation :]
                at = at[:, :, : (oh - 1) * stride + 1 : stride, : (ow - 1) * stride + 1 : stride]
                out[:, rows] += np.einsum("ncyx,oc->noyx", at, w[rows, :, p, q])
    return out


def narrow(v, low=-128, high=127):
    return np.clip(v, low, high).astype(np.int8)


class Network:
    """Runs one layer at a time on the machine and compares it."""

    def __init__(self, env, seed):
        self.env, self.device = env, weft.device(env.target)
        self.rng, self.layers = np.random.default_rng(seed), 0

    def weights(self, *shape):
        return self.rng.integers(-20, 20, shape).astype(np.int8)

    def layer(self, f, inputs, want):
        module = weft.build(f, target=self.env.target)
        out = weft.zeros(want.shape, dtype=str(want.dtype), device=self.device)
        module["main"](*[weft.asarray(x, device=self.device) for x in inputs], out)
        got = out.numpy()
        np.testing.assert_array_equal(got, want, err_msg=f"layer {self.layers}")
        self.layers += 1
        return got


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("config", ["sim", "pynq", "4x8x8", "1x32x32"])
def test_a_small_network_of_odd_sizes(config, batch):
    net = Network(weft.vta.env(config), batch)
    w8 = (-128, 127)
    x = net.rng.integers(-128, 128, (batch, 3, 17, 13)).astype(np.int8)

    w, b = net.weights(24, 3, 5, 5), net.rng.integers(-500, 500, 24).astype(np.int32)
    f = op.conv2d(batch, 3, 17, 13, 24, 5, pad=2, bias=True, shift=6, relu=True, clip=w8)
    x = net.layer(f, [x, w, b], narrow((sums(x, w, pad=2) >> 6) + b[None, :, None, None], 0))

    framed = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-128)
    windows = [framed[:, :, p : p + 17 : 2, q : q + 13 : 2] for p in range(3) for q in range(3)]
    x = net.layer(op.max_pool2d(batch, 24, 17, 13, 3, 2, 1), [x], np.max(windows, axis=0))

    w = net.weights(36, 8, 3, 3)
    f = op.conv2d(batch, 24, 9, 7, 36, 3, pad=1, groups=3, shift=6, clip=w8)
    x = net.layer(f, [x, w], narrow(sums(x, w, 1, 1, 3) >> 6))

    w = net.weights(36, 1, 3, 3)  # depthwise
    f = op.conv2d(batch, 36, 9, 7, 36, 3, stride=2, pad=1, groups=36, shift=4, clip=w8)
    x = net.layer(f, [x, w], narrow(sums(x, w, 2, 1, 36) >> 4))

    w = net.weights(36, 10, 4, 4)
    n, c, h, wide = x.shape
    spread = np.zeros((n, c, 2 * h - 1, 2 * wide - 1), np.int8)
    spread[:, :, ::2, ::2] = x
    turned = w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    f = op.conv2d_transpose(batch, c, h, wide, 10, 4, 2, 1, shift=7, clip=w8)
    x = net.layer(f, [x, w], narrow(sums(spread, turned, 1, 2) >> 7))

    w, r = net.weights(10, 10, 3, 3), net.weights(*x.shape)
    f = op.conv2d(
        batch, 10, *x.shape[2:], 10, 3, pad=2, dilation=2, residual=True, shift=5, clip=w8
    )
    x = net.layer(f, [x, w, r], narrow((sums(x, w, 1, 2, dilation=2) >> 5) + r))

    flat = np.ascontiguousarray(x.reshape(batch, -1))
    w, b = net.weights(11, flat.shape[1]), net.rng.integers(-500, 500, 11).astype(np.int32)
    scores = (flat.astype(np.int64) @ w.T.astype(np.int64) + b).astype(np.int32)
    net.layer(op.dense(batch, flat.shape[1], 11, bias=True, dtype="int32"), [flat, w, b], scores)

    total = ((x.astype(np.int64).sum((2, 3)) * 3) >> 4).astype(np.int8)
    net.layer(op.global_sum_pool(*x.shape, shift=4, factor=3), [x], total)
    assert net.layers == 8 and scores.any() and total.any()
