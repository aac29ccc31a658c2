# SPDX-License-Identifier: Apache-2.0
"""Largest elements of windows and depthwise convolutions on the host, beside loops over every window."""

import itertools

import numpy as np
import pytest

import weft
from weft.nn import functional as F


def places(n, kernel, stride, padding, dilation):
    """The positions of each window's taps inside an axis."""
    count = (n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    taps = [[o * stride - padding + k * dilation for k in range(kernel)] for o in range(count)]
    return [[(k, at) for k, at in enumerate(t) if 0 <= at < n] for t in taps]


POOLS = [((5,), 2, 2, 0, 1), ((9,), 3, 1, 1, 2), ((7, 6), 2, 2, 0, 1), ((8, 9), 3, 2, 1, 1), ((6, 7), 3, 1, 1, 2), ((1, 1), 1, 1, 0, 1), ((4, 5, 6), 2, 2, 1, 1)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("case", POOLS)
def test_largest_of_windows(case, dtype):
    shape, kernel, stride, padding, dilation = case
    rng = np.random.default_rng(4)
    x = rng.integers(-3, 4, (2, 3, *shape)).astype("float32")  # with ties
    x.reshape(-1)[5] = np.nan
    tensor = weft.Tensor(weft.asarray(x).astype(getattr(weft, dtype)))
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(shape) - 1]
    y = pool(tensor, kernel, stride, padding, dilation)
    axes = [places(n, kernel, stride, padding, dilation) for n in shape]
    want, grad = np.empty((2, 3, *map(len, axes)), "float32"), np.zeros_like(x)
    g = rng.integers(1, 5, want.shape).astype("float32")
    for at in np.ndindex(*want.shape):
        taps = [t for t in itertools.product(*(axis[o] for axis, o in zip(axes, at[2:])))]
        spots = [(at[0], at[1], *(p for _, p in t)) for t in taps]
        values = np.array([x[s] for s in spots])
        best = int(np.argmax(values))  # the first, NaN before all
        want[at] = values[best]
        grad[spots[best]] += g[at]
    np.testing.assert_array_equal(y.astype(weft.float32).numpy(), want)
    weights = weft.Tensor(weft.asarray(g).astype(getattr(weft, dtype)), requires_grad=False)
    y.backward(weights)
    np.testing.assert_array_equal(tensor.grad.astype(weft.float32).numpy(), grad)


def test_largest_of_integers():
    x = np.random.default_rng(1).integers(-100, 100, (2, 6, 7)).astype("int32")
    got = F.max_pool2d(weft.asarray(x), 2).numpy()
    np.testing.assert_array_equal(got, x[:, :6, :6].reshape(2, 3, 2, 3, 2).max((2, 4)))


DEPTHWISE = list(itertools.product([(1, 1), (7, 5), (9, 12)], [(1, 1), (3, 3), (5, 2)], [1, 2, 3], [0, 2], [1, 2], [1, 2]))  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_depthwise_convolutions(dtype):
    """Values and gradients; a convolution is linear in both operands, so gradients are those of its formula."""
    rng = np.random.default_rng(6)
    tried = 0
    for (h, w), (kh, kw), stride, padding, dilation, each in DEPTHWISE:
        rows, columns = (places(n, k, stride, padding, dilation) for n, k in ((h, kh), (w, kw)))
        if not rows or not columns:
            continue
        tried += 1
        x, weight = rng.standard_normal((2, 3, h, w)), rng.standard_normal((3 * each, 1, kh, kw))
        g = rng.standard_normal((2, 3 * each, len(rows), len(columns)))
        want, dx, dw = np.zeros_like(g), np.zeros_like(x), np.zeros_like(weight)
        for o, (y, at_y), (z, at_z) in itertools.product(
            range(3 * each), enumerate(rows), enumerate(columns)
        ):
            for (i, p), (j, q) in itertools.product(at_y, at_z):
                want[:, o, y, z] += x[:, o // each, p, q] * weight[o, 0, i, j]
                dx[:, o // each, p, q] += g[:, o, y, z] * weight[o, 0, i, j]
                dw[o, 0, i, j] += (g[:, o, y, z] * x[:, o // each, p, q]).sum()
        image, kernel = weft.Tensor(x.astype(dtype)), weft.Tensor(weight.astype(dtype))
        out = F.conv2d(image, kernel, stride=stride, padding=padding, dilation=dilation, groups=3)
        out.backward(weft.Tensor(g.astype(dtype), requires_grad=False))
        tolerance = 1e-4 if dtype == "float32" else 1e-11
        for got, exact in ((out, want), (image.grad, dx), (kernel.grad, dw)):
            np.testing.assert_allclose(got.numpy(), exact, rtol=tolerance, atol=tolerance)
    assert tried > 80


def windows(x, kh, kw, stride, padding, dilation):
    """(n, c, oh, ow, kh, kw): the taps of every place, zeros outside the image."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    span = (dilation[0] * (kh - 1) + 1, dilation[1] * (kw - 1) + 1)
    if x.shape[2] < span[0] or x.shape[3] < span[1]:
        return None
    view = np.lib.stride_tricks.sliding_window_view(x, span, axis=(2, 3))
    return view[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def image_gradient(shape, spread, stride, padding, dilation):
    """Windows (n, c, oh, ow, kh, kw) added up where they lie."""
    n, c, h, w = shape
    out = np.zeros((n, c, h + 2 * padding[0], w + 2 * padding[1]))
    oh, ow, kh, kw = spread.shape[2:]
    for i, j in itertools.product(range(kh), range(kw)):
        a, b = i * dilation[0], j * dilation[1]
        rows = slice(a, a + (oh - 1) * stride[0] + 1, stride[0])
        columns = slice(b, b + (ow - 1) * stride[1] + 1, stride[1])
        out[:, :, rows, columns] += spread[..., i, j]
    return out[:, :, padding[0] : padding[0] + h, padding[1] : padding[1] + w]


# Odd sizes of everything; windows beyond the image; more zeros around it than the window is wide;
# images that are cut into strips of rows, and small ones that share a product.
CONVOLUTIONS = [
    ((rng.integers(1, 4), groups * cg, *rng.integers(1, 40, 2)), groups * og, groups, rng.integers(1, 6, 2), rng.integers(1, 4, 2), rng.integers(0, 5, 2), rng.integers(1, 3, 2))
    for rng in [np.random.default_rng(12)]
    for groups, cg, og in [(1, 1, 6), (1, 3, 16), (1, 9, 5), (2, 4, 3), (3, 17, 8), (1, 33, 70)] * 6
] + [
    ((1, 24, 150, 61), 9, 1, (3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 24, 151, 63), 9, 1, (3, 5), (2, 2), (1, 2), (1, 1)),
    ((2, 8, 301, 150), 3, 1, (7, 1), (1, 3), (3, 0), (2, 1)),
    ((13, 40, 7, 7), 20, 1, (3, 3), (1, 1), (1, 1), (1, 1)),
    ((5, 32, 14, 14), 20, 2, (1, 1), (1, 1), (2, 2), (1, 1)),
    ((6, 10, 8, 9), 12, 1, (1, 1), (1, 1), (0, 0), (1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_convolutions_of_all_channels(dtype, threads):
    rng = np.random.default_rng(7)
    before, tried = weft.get_threads(), 0
    weft.set_threads(threads)
    try:
        for shape, o, groups, kernel, *steps in CONVOLUTIONS:
            kernel, (stride, padding, dilation) = (
                [int(v) for v in kernel],
                [tuple(int(v) for v in s) for s in steps],
            )
            x = rng.standard_normal(shape)
            parts = windows(x, *kernel, stride, padding, dilation)
            if parts is None:
                continue
            tried += 1
            cg, og = shape[1] // groups, o // groups
            weight = rng.standard_normal((o, cg, *kernel))
            g = rng.standard_normal((shape[0], o, *parts.shape[2:4]))
            want, dw, spread = np.empty_like(g), np.empty_like(weight), np.empty(parts.shape)
            for k in range(groups):
                c, r = slice(k * cg, (k + 1) * cg), slice(k * og, (k + 1) * og)
                want[:, r] = np.einsum("ncyxij,ocij->noyx", parts[:, c], weight[r], optimize=True)
                dw[r] = np.einsum("ncyxij,noyx->ocij", parts[:, c], g[:, r], optimize=True)
                spread[:, c] = np.einsum("noyx,ocij->ncyxij", g[:, r], weight[r], optimize=True)
            dx = image_gradient(shape, spread, stride, padding, dilation)
            image, taps = weft.Tensor(x.astype(dtype)), weft.Tensor(weight.astype(dtype))
            out = F.conv2d(
                image, taps, stride=stride, padding=padding, dilation=dilation, groups=groups
            )
            out.backward(weft.Tensor(g.astype(dtype), requires_grad=False))
            tolerance = 3e-6 if dtype == "float32" else 1e-14
            for got, exact in ((out, want), (image.grad, dx), (taps.grad, dw)):
                scale = np.sqrt((exact**2).mean()) + 1
                np.testing.assert_allclose(
                    got.numpy() / scale, exact / scale, rtol=0, atol=10 * tolerance
                )
    finally:
        weft.set_threads(before)
    assert tried > 30


@pytest.mark.parametrize(
    "image, weight, options",
    [
        ((3, 5, 13, 17), (9, 5, 3, 3), {"padding": 1}),
        ((2, 16, 9, 9), (8, 16, 1, 1), {}),
        ((5, 16, 7, 7), (24, 16, 1, 1), {"padding": 1}),
        ((2, 8, 30, 31), (34, 4, 5, 3), {"padding": 2, "dilation": 2, "groups": 2}),
        ((1, 3, 65, 33), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((70, 32, 4, 4), (40, 32, 3, 3), {}),
    ],
)
def test_bfloat16_convolutions_are_within_their_type(image, weight, options):
    """Products of pairs where the processor has them; sums in float32, one rounding."""
    rng = np.random.default_rng(29)
    x, w = (weft.asarray(rng.standard_normal(s)).astype("bfloat16") for s in (image, weight))
    wide = [a.astype("float64") for a in (x, w)]
    conv2d = weft.nn.functional.conv2d
    got = conv2d(weft.Tensor(x), weft.Tensor(w), **options).data
    want = conv2d(*map(weft.Tensor, wide), **options).data
    assert got.dtype == "bfloat16" and got.shape == want.shape
    scale = float(np.abs(want.numpy()).max())
    np.testing.assert_allclose(
        got.astype("float64").numpy(), want.numpy(), rtol=2.0**-8, atol=2.0**-18 * scale
    )
    g = weft.asarray(rng.standard_normal(got.shape)).astype("bfloat16")
    tensors = [weft.Tensor(a, requires_grad=True) for a in (x, w)]
    exact = [weft.Tensor(a, requires_grad=True) for a in wide]
    conv2d(*tensors, **options).backward(weft.Tensor(g))
    conv2d(*exact, **options).backward(weft.Tensor(g.astype("float64")))
    for t, e in zip(tensors, exact):
        scale = float(np.abs(e.grad.data.numpy()).max())
        np.testing.assert_allclose(
            t.grad.data.astype("float64").numpy(),
            e.grad.data.numpy(),
            rtol=2.0**-8,
            atol=2.0**-17 * scale,
        )
