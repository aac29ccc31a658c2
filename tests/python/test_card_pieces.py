# SPDX-License-Identifier: Apache-2.0
"""Products of float32 by tiles of bfloat16 pieces: as exact as multiplications of float32, for every layout and value."""

import numpy as np
import pytest
from present import present

import weft

SHAPES = [
    ((), 520, 640, 777),
    ((), 1000, 1501, 2049),
    ((), 130, 200, 50257),  # in parts of the sum
    ((5,), 256, 333, 700),
    ((2, 3), 300, 512, 300),
]


@pytest.fixture(scope="module")
def device():
    return present("cuda:0")


def operand(device, values, turned):
    if not turned:
        return weft.asarray(values, device=device)
    return weft.asarray(np.ascontiguousarray(np.swapaxes(values, -1, -2)), device=device).mT


@pytest.mark.parametrize("batch, m, n, k", SHAPES)
@pytest.mark.parametrize("layout", ["NN", "TN", "NT", "TT"])
def test_errors_are_those_of_float32(device, batch, m, n, k, layout):
    rng = np.random.default_rng(m + k)
    # Of the sum of absolute products: what is left of numbers of both signs is its root, and roundings add up as steps at random.
    # Multiplications by threads have up to 0.6 of these; sums that tile instructions add up in one go, 2 and 1.3 at 4096 terms.
    for values, bound in ((rng.standard_normal, 1.5e-5 / np.sqrt(k)), (rng.random, 1.2e-7 * np.sqrt(k))):  # fmt: skip
        a = values((*batch, m, k)).astype("float32")
        b = values((*batch, k, n)).astype("float32")
        out = operand(device, a, layout[0] == "T") @ operand(device, b, layout[1] == "T")
        want = a.astype("float64") @ b.astype("float64")
        size = np.abs(a).astype("float64") @ np.abs(b)
        worst = np.max(np.abs(out.numpy() - want) / size)
        assert worst < bound, (layout, worst)


def test_one_for_all_batches(device):
    rng = np.random.default_rng(3)
    a, b = (
        rng.standard_normal((512, 300)).astype("float32"),
        rng.standard_normal((7, 300, 600)).astype("float32"),
    )
    out = weft.asarray(a, device=device) @ weft.asarray(b, device=device)
    np.testing.assert_allclose(out.numpy(), a.astype("float64") @ b, rtol=1e-5, atol=1e-4)


def test_a_bias_is_added_once(device):
    rng = np.random.default_rng(4)
    x, w, c = (rng.standard_normal(s).astype("float32") for s in ((700, 900), (900, 1100), (1100,)))
    out = weft.nn.functional.linear(*(weft.asarray(v, device=device) for v in (x, w, c)))
    np.testing.assert_allclose(out.numpy(), x.astype("float64") @ w + c, rtol=1e-5, atol=1e-4)


def test_values_that_are_not_finite(device):
    rng = np.random.default_rng(5)
    a, b = (
        rng.standard_normal((512, 1024)).astype("float32"),
        rng.standard_normal((1024, 640)).astype("float32"),
    )
    inf = np.float32("inf")
    a[3, 5], a[7, 8], a[9, 9], b[100, 11], b[100, 12] = inf, -inf, np.nan, inf, -inf
    a[20, 100], a[50, 100] = 0, inf
    b[:, 50] = 1  # no pieces after the first: infinity times 0 would be no number
    b[5, 60:62], b[8, 62] = [0, 1], -2
    out = (weft.asarray(a, device=device) @ weft.asarray(b, device=device)).numpy()
    with np.errstate(invalid="ignore"):
        want = a.astype("float64") @ b.astype("float64")
    np.testing.assert_array_equal(np.isnan(out), np.isnan(want))
    np.testing.assert_array_equal(
        np.where(np.isinf(out), out, 0), np.where(np.isinf(want), want, 0)
    )
    finite = np.isfinite(want)
    np.testing.assert_allclose(out[finite], want[finite], rtol=1e-5, atol=2e-4)


def test_the_largest_numbers(device):
    a, b = np.zeros((512, 600), "float32"), np.zeros((600, 640), "float32")
    largest = np.finfo("float32").max
    a[5, 7], a[6, 8] = largest, -largest
    b[7, 9], b[8, 10] = 1, 0.5
    b[9, :] = 1e-30
    a[9, 9] = 1e-7
    out = (weft.asarray(a, device=device) @ weft.asarray(b, device=device)).numpy()
    np.testing.assert_allclose(out, a.astype("float64") @ b, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    "channels, results, side, step", [(256, 512, 29, 1), (256, 512, 31, 2), (128, 1024, 14, 1)]
)
def test_convolutions_of_one_place(device, channels, results, side, step):
    rng = np.random.default_rng(6)
    x = rng.standard_normal((8, channels, side, side)).astype("float32")
    w = rng.standard_normal((results, channels, 1, 1)).astype("float32")
    X, W = (weft.Tensor(weft.asarray(v, device=device), requires_grad=True) for v in (x, w))
    out = weft.nn.functional.conv2d(X, W, stride=step)
    named = x[:, :, ::step, ::step].astype("float64")
    want = np.einsum("nchw,oc->nohw", named, w[:, :, 0, 0])
    g = rng.standard_normal(want.shape).astype("float32")
    out.backward(weft.Tensor(weft.asarray(g, device=device)))
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-5, atol=2e-4)
    dx = np.zeros(x.shape)
    dx[:, :, ::step, ::step] = np.einsum("nohw,oc->nchw", g.astype("float64"), w[:, :, 0, 0])
    np.testing.assert_allclose(X.grad.numpy(), dx, rtol=1e-5, atol=3e-4)
    dw = np.einsum("nohw,nchw->oc", g.astype("float64"), named)[:, :, None, None]
    np.testing.assert_allclose(W.grad.numpy(), dw, rtol=1e-5, atol=2e-3)


def convolution(x, w, stride, padding):
    """In float64, with its gradients' functions."""
    n, c, h, width = x.shape
    o, _, kh, kw = w.shape
    py, px = padding
    around = np.pad(x.astype("float64"), ((0, 0), (0, 0), (py, py), (px, px)))
    windows = np.lib.stride_tricks.sliding_window_view(around, (kh, kw), axis=(2, 3))[
        :, :, :: stride[0], :: stride[1]
    ]
    out = np.einsum("ncyxij,ocij->noyx", windows, w, optimize=True)

    def gradients(g):
        g = g.astype("float64")
        dw = np.einsum("ncyxij,noyx->ocij", windows, g, optimize=True)
        da = np.zeros(around.shape)
        for i in range(kh):
            for j in range(kw):
                da[:, :, i : i + stride[0] * g.shape[2] : stride[0], j : j + stride[1] * g.shape[3] : stride[1]] += np.einsum("noyx,oc->ncyx", g, w[:, :, i, j], optimize=True)  # fmt: skip
        return da[:, :, py : py + h, px : px + width], dw

    return out, gradients


@pytest.mark.parametrize(
    "n, channels, results, image, window, stride, padding",
    [
        (8, 128, 130, (57, 56), (3, 3), (2, 2), (1, 1)),
        (3, 72, 200, (41, 37), (5, 4), (2, 3), (2, 0)),
        (5, 200, 72, (33, 31), (5, 5), (1, 1), (2, 2)),
        (4, 256, 192, (30, 30), (2, 2), (2, 2), (0, 0)),
        (9, 96, 160, (29, 27), (1, 7), (1, 1), (0, 3)),
    ],
)
def test_convolutions_with_windows(device, n, channels, results, image, window, stride, padding):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((n, channels, *image)).astype("float32")
    w = rng.standard_normal((results, channels, *window)).astype("float32")
    X, W = (weft.Tensor(weft.asarray(v, device=device), requires_grad=True) for v in (x, w))
    out = weft.nn.functional.conv2d(X, W, stride=stride, padding=padding)
    want, gradients = convolution(x, w, stride, padding)
    g = rng.standard_normal(want.shape).astype("float32")
    out.backward(weft.Tensor(weft.asarray(g, device=device)))
    for got, right in zip((out, X.grad, W.grad), (want, *gradients(g))):
        error = np.linalg.norm(got.numpy() - right) / np.linalg.norm(right)
        assert error < 2e-6, error
    # Towards one of both alone, and of an image whose channels lie last.
    last = weft.asarray(np.ascontiguousarray(x.transpose(0, 2, 3, 1)), device=device)
    X = weft.Tensor(weft.permute_dims(last, (0, 3, 1, 2)), requires_grad=True)
    out = weft.nn.functional.conv2d(X, weft.Tensor(W.data), stride=stride, padding=padding)
    out.backward(weft.Tensor(weft.asarray(g, device=device)))
    for got, right in zip((out, X.grad), (want, gradients(g)[0])):
        error = np.linalg.norm(got.numpy() - right) / np.linalg.norm(right)
        assert error < 2e-6, error
