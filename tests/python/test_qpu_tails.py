# SPDX-License-Identifier: Apache-2.0
"""Last vectors of few lanes, cut tiles and short sums on the QPUs by the default schedule: right at any size, and no slower
than whole vectors would be. Cycles are simulated: the same in every run."""

import math

import numpy as np
import pytest

import weft
from weft import te

pytestmark = pytest.mark.targets("qpu")


def run(tensors, arrays, want, near=1e-4):
    """Cycles of one call; the results are checked."""
    device = weft.device("qpu")
    module = weft.build(te.create_prim_func(tensors), target="qpu", tuned=False)
    held = [weft.asarray(a, device=device) for a in arrays]
    out = weft.asarray(np.full(want.shape, 7, arrays[0].dtype), device=device)
    before = device.stats().get("cycles", 0)
    module["main"](*held, out)
    cycles = device.stats()["cycles"] - before
    np.testing.assert_allclose(out.numpy(), want, rtol=near, atol=near)
    return cycles


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def convolution(height, width, channels=0):
    """3 x 3 with ReLU; with channels: of several images, summed."""
    image = (channels, height, width) if channels else (height, width)
    X, W = te.placeholder(image, name="X"), te.placeholder(image[:-2] + (3, 3), name="W")
    p, q = te.reduce_axis(3, name="p"), te.reduce_axis(3, name="q")
    shape = (height - 2, width - 2)
    if channels:
        c = te.reduce_axis(channels, name="c")
        S = te.compute(
            shape, lambda y, x: te.sum(X[c, y + p, x + q] * W[c, p, q], axis=[c, p, q]), name="S"
        )
    else:
        S = te.compute(shape, lambda y, x: te.sum(X[y + p, x + q] * W[p, q], axis=[p, q]), name="S")
    R = te.compute(shape, lambda y, x: te.max(S[y, x], te.const(0, "float32")), name="R")
    x, w = normal(1, *image), normal(2, *image[:-2], 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype("f8"), (3, 3), axis=(-2, -1))
    sums = (windows * w[..., None, None, :, :]).sum((-2, -1))
    return run([X, W, R], [x, w], np.maximum(sums.sum(0) if channels else sums, 0))


def product(m, n, depth, dtype="float32", batch=0):
    lead = (batch,) if batch else ()
    A = te.placeholder(lead + (m, depth), dtype, name="A")
    B = te.placeholder(lead + (depth, n), dtype, name="B")
    k = te.reduce_axis(depth, name="k")
    C = te.compute(
        lead + (m, n), lambda *i: te.sum(A[(*i[:-1], k)] * B[(*i[:-2], k, i[-1])], axis=k), name="C"
    )
    if dtype == "float32":
        a, b = normal(3, *lead, m, depth), normal(4, *lead, depth, n)
    else:
        random = np.random.default_rng(5)
        a, b = (random.integers(-9, 9, lead + s).astype(dtype) for s in ((m, depth), (depth, n)))
    return run([A, B, C], [a, b], a.astype("f8") @ b.astype("f8"), near=1e-4)


def softmax(rows, columns):
    X = te.placeholder((rows, columns), name="X")
    k, m = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="m")
    M = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="M")
    E = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    Z = te.compute((rows,), lambda i: te.sum(E[i, m], axis=m), name="Z")
    Y = te.compute((rows, columns), lambda i, j: E[i, j] / Z[i], name="Y")
    x = normal(6, rows, columns)
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    return run([X, Y], [x], e / e.sum(1, keepdims=True))


def attention(batch, rows, columns):
    """Softmax of scaled scores over rows of two axes, and the deviation of each row: several values are wanted twice."""
    shape = (batch, rows, columns)
    X, B = te.placeholder(shape, name="X"), te.placeholder((columns,), name="B")
    k, m, r = (te.reduce_axis(columns, name=n) for n in "kmr")
    P = te.compute(shape, lambda b, i, j: te.tanh(X[b, i, j]) + B[j], name="P")
    M = te.compute(shape[:2], lambda b, i: te.max(P[b, i, k], axis=k), name="M")
    E = te.compute(shape, lambda b, i, j: te.exp(P[b, i, j] - M[b, i]), name="E")
    Z = te.compute(shape[:2], lambda b, i: te.sum(E[b, i, m], axis=m), name="Z")
    S = te.compute(shape[:2], lambda b, i: te.sum(E[b, i, r] * E[b, i, r], axis=r), name="S")
    Y = te.compute(shape, lambda b, i, j: E[b, i, j] / Z[b, i] - S[b, i] * X[b, i, j], name="Y")
    x, bias = normal(7, *shape), normal(8, columns)
    p = np.tanh(x.astype("f8")) + bias
    e = np.exp(p - p.max(-1, keepdims=True))
    want = e / e.sum(-1, keepdims=True) - (e * e).sum(-1, keepdims=True) * x
    return run([X, B, Y], [x, bias], want, near=3e-4)


def shapes(seed, count, *limits):
    """Log-uniform sizes."""
    random = np.random.default_rng(seed)
    return [
        tuple(
            round(math.exp(random.uniform(math.log(low), math.log(high)))) for low, high in limits
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    "height, width", shapes(1, 16, (3, 60), (3, 120)) + [(3, 3), (20, 18), (9, 34), (40, 19)]
)
def test_convolutions_of_any_width(height, width):
    convolution(height, width)


@pytest.mark.parametrize("height, width, channels", shapes(2, 6, (3, 20), (3, 60), (2, 6)))
def test_convolutions_of_several_channels(height, width, channels):
    convolution(height, width, channels)


@pytest.mark.parametrize(
    "m, n, depth", shapes(3, 24, (1, 60), (1, 90), (1, 50)) + [(8, 16, 2), (3, 17, 15), (9, 40, 17)]
)
def test_products_of_any_size(m, n, depth):
    product(m, n, depth)


@pytest.mark.parametrize("m, n, depth", shapes(4, 4, (2, 40), (2, 60), (2, 40)))
def test_products_of_integers_and_of_batches(m, n, depth):
    product(m, n, depth, "int32")
    product(m, n, depth, batch=3)


@pytest.mark.parametrize(
    "rows, columns", shapes(5, 16, (1, 40), (2, 300)) + [(12, 16), (5, 17), (24, 256), (24, 257)]
)
def test_rows_of_any_length(rows, columns):
    softmax(rows, columns)


@pytest.mark.parametrize(
    "batch, rows, columns", shapes(6, 8, (1, 4), (1, 13), (2, 290)) + [(3, 8, 37), (2, 6, 256)]
)
def test_rows_of_two_axes_and_values_wanted_twice(batch, rows, columns):
    attention(batch, rows, columns)


@pytest.mark.parametrize(
    "make, cut, whole",
    [
        (convolution, (40, 60), (40, 66)),  # lanes: 58 of 64
        (convolution, (26, 21), (26, 34)),  # 19 of 32
        (convolution, (15, 74), (15, 82)),  # chunks shared by the QPUs, 72 of 80
        (product, (40, 50, 32), (40, 64, 32)),  # lanes
        (product, (37, 64, 32), (40, 64, 32)),  # rows of a tile
        (product, (40, 64, 41), (40, 64, 48)),  # steps of the last round
        (product, (40, 64, 9), (40, 64, 16)),  # no whole round
        (softmax, (48, 37), (48, 48)),  # rows that registers hold
        (softmax, (24, 300), (24, 304)),  # longer ones
    ],
)
def test_what_is_cut_takes_little_longer_than_what_is_whole(make, cut, whole):
    assert make(*cut) < 1.2 * make(*whole)
