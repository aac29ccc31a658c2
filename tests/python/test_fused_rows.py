# SPDX-License-Identifier: Apache-2.0
"""Compiled functions whose values run along the rows of a matrix: one kernel on a grid, beside NumPy in float64."""

import numpy as np
import pytest
from cover import cover
from present import present

import weft

SEED = 20261123
SHAPES = [(300, 768), (257, 33), (2, 129, 1000), (500, 2), (130, 4096), (3, 50, 5), (200, 1023)]
TOLERANCE = {"float32": 3e-5, "bfloat16": 3e-2, "float16": 4e-3}


@pytest.fixture(scope="module", params=["opencl:0", "cuda:0"])
def device(request):
    return present(request.param)


def _drawn(device, dtype, *shapes):
    rng = np.random.default_rng(SEED)
    arrays = [weft.asarray(rng.standard_normal(s).astype("float32")).astype(dtype) for s in shapes]
    return [a.to(device) for a in arrays], [a.astype("float32").numpy().astype("float64") for a in arrays]  # fmt: skip


def _close(got, want, dtype, scale=1):
    got = got.to("cpu").astype("float32").numpy()
    tolerance = TOLERANCE[dtype] * scale
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=dtype)


def layer_norm(x, r, w, b):
    """Results of four kinds: elements, two numbers of a row, and what is shared with the first."""
    h = weft.astype(x + r, "float32")
    m = weft.mean(h, axis=-1, keepdims=True)
    c = h - m
    d = 1 / weft.sqrt(weft.mean(c * c, axis=-1, keepdims=True) + 1e-5)
    return weft.astype(c * d * w + b, x.dtype), m, d, x + r


def softmax_gradient(y, g):
    y, g = weft.astype(y, "float32"), weft.astype(g, "float32")
    return weft.astype(y * (g - weft.sum(g * y, axis=-1, keepdims=True)), "float32")


@cover("shape", SHAPES, "dtype", [*TOLERANCE])
def test_layer_norm_of_a_sum(device, shape, dtype):
    (x, r, w, b), (x64, r64, w64, b64) = _drawn(device, dtype, shape, shape, shape[-1:], shape[-1:])
    f = weft.compile(layer_norm)
    y, m, d, h = f(x, r, w, b)
    h64 = (x + r).to("cpu").astype("float32").numpy().astype("float64")
    m64 = h64.mean(-1, keepdims=True)
    d64 = 1 / np.sqrt(h64.var(-1, keepdims=True) + 1e-5)
    few = 30 if shape[-1] < 8 else 1  # the deviation of few numbers may be near zero
    _close(h, h64, dtype)
    _close(m, m64, "float32")
    _close(d, d64, "float32", few)
    _close(y, (h64 - m64) * d64 * w64 + b64, dtype, few)


@cover("shape", SHAPES, "dtype", [*TOLERANCE])
def test_extremum_and_sum_of_a_row(device, shape, dtype):
    (x, g), (x64, g64) = _drawn(device, dtype, shape, shape)

    def f(x, g):
        h = weft.astype(x, "float32")
        e = weft.exp(h - weft.max(h, axis=-1, keepdims=True))
        y = e / weft.sum(e, axis=-1, keepdims=True)
        return y, softmax_gradient(y, g)

    y, d = weft.compile(f)(x, g)
    e64 = np.exp(x64 - x64.max(-1, keepdims=True))
    y64 = e64 / e64.sum(-1, keepdims=True)
    _close(y, y64, "float32")
    _close(d, y64 * (g64 - (g64 * y64).sum(-1, keepdims=True)), "float32")


def test_views_and_not_a_number(device):
    """Operands that are not compact, a row with a NaN, and rows of infinities."""
    (x, r), (x64, r64) = _drawn(device, "float32", (96, 400), (400, 96))
    x64[5, 7], x64[8] = np.nan, np.inf
    x = weft.asarray(x64.astype("float32")).to(device)

    def f(x, r):
        s = x + r
        return s - weft.max(s, axis=-1, keepdims=True), weft.sum(s * s, axis=-1)

    a, b = weft.compile(f)(x[:, ::2], r.T[:, ::2])
    s = x64[:, ::2] + r64.T[:, ::2]
    with np.errstate(invalid="ignore"):
        _close(a, s - s.max(-1, keepdims=True), "float32")
    _close(b, (s * s).sum(-1), "float32", 10)


def test_two_axes_and_other_steps_between(device):
    """Rows of two axes; a product between two reductions belongs to no row kernel."""
    (x, w), (x64, w64) = _drawn(device, "float32", (130, 12, 20), (240, 3))

    def f(x, w):
        y = x - weft.mean(x, axis=(1, 2), keepdims=True)
        z = weft.reshape(y, (130, 240)) @ w
        return y / weft.sqrt(weft.sum(y * y, axis=(1, 2), keepdims=True)), z - weft.max(z, axis=1, keepdims=True)  # fmt: skip

    a, b = weft.compile(f)(x, w)
    y = x64 - x64.mean((1, 2), keepdims=True)
    z = y.reshape(130, 240) @ w64
    _close(a, y / np.sqrt((y * y).sum((1, 2), keepdims=True)), "float32")
    _close(b, z - z.max(1, keepdims=True), "float32", 10)


def test_numbers_of_rows_read_along_the_rows(device):
    """Without its axis, a reduction's result of a square matrix is a row that is added to every row."""
    (x,), (x64,) = _drawn(device, "float32", (300, 300))

    def f(x):
        total, top = weft.sum(x * x, axis=-1), weft.max(x + 1, axis=-1, keepdims=True)
        return x + total, x - top, total

    a, b, total = weft.compile(f)(x)
    _close(total, (x64 * x64).sum(-1), "float32", 10)
    _close(a, x64 + (x64 * x64).sum(-1), "float32", 10)
    _close(b, x64 - (x64 + 1).max(-1, keepdims=True), "float32")
