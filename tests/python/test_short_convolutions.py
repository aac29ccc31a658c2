# SPDX-License-Identifier: Apache-2.0
"""Convolutions of the host whose planes are small: depthwise ones of channels beside each other, and those of one element a window."""

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(11301)
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 3e-2, "float16": 4e-3}
#: n, c, h, w, results of a channel or results, kh, kw, stride, padding, dilation
DEPTHWISE = [
    (2, 16, 3, 3, 1, 5, 5, (1, 1), (2, 2), (1, 1)),
    (3, 35, 7, 6, 1, 3, 3, (1, 1), (0, 1), (1, 1)),
    (2, 40, 9, 20, 1, 3, 2, (2, 2), (2, 0), (2, 1)),
    (1, 17, 5, 5, 1, 4, 4, (3, 1), (1, 1), (1, 1)),
    (2, 16, 6, 6, 1, 2, 2, (3, 3), (0, 0), (1, 1)),  # rows that no window reaches
    (2, 24, 4, 4, 2, 3, 3, (1, 1), (1, 1), (1, 1)),  # two results of a channel
    (2, 5, 4, 4, 1, 3, 3, (1, 1), (1, 1), (1, 1)),  # too few channels for a vector
]
PLAIN = [(4, 40, 1, 1, 14), (5, 7, 3, 3, 9), (3, 12, 6, 7, 20), (1, 9, 1, 1, 5), (2, 130, 8, 8, 70)]


def _reference(x, w, groups, stride, padding, dilation):
    """(result, function of the result's gradient that gives those of x and w) in float64."""
    n, c, h, width = x.shape
    o, cg, kh, kw = w.shape
    padded = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    oh = (padded.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (padded.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    each = o // groups

    def part(a, i, j):
        rows = slice(i * dilation[0], i * dilation[0] + (oh - 1) * stride[0] + 1, stride[0])
        return a[:, :, rows, j * dilation[1] : j * dilation[1] + (ow - 1) * stride[1] + 1 : stride[1]]  # fmt: skip

    out = np.zeros((n, o, oh, ow))
    for k in range(o):
        for r in range(cg):
            for i in range(kh):
                for j in range(kw):
                    out[:, k] += part(padded, i, j)[:, k // each * cg + r] * w[k, r, i, j]

    def gradients(g):
        dx, dw = np.zeros_like(padded), np.zeros_like(w)
        for k in range(o):
            for r in range(cg):
                for i in range(kh):
                    for j in range(kw):
                        channel = k // each * cg + r
                        part(dx, i, j)[:, channel] += g[:, k] * w[k, r, i, j]
                        dw[k, r, i, j] = (g[:, k] * part(padded, i, j)[:, channel]).sum()
        return dx[:, :, padding[0] : padding[0] + h, padding[1] : padding[1] + width], dw

    return out, gradients


def _check(x, w, groups, stride, padding, dilation, dtype):
    arrays = [weft.asarray(a).astype(dtype) for a in (x, w)]
    wide = [a.astype("float64").numpy() for a in arrays]
    want, gradients = _reference(*wide, groups, stride, padding, dilation)
    given = [weft.Tensor(a, requires_grad=True) for a in arrays]
    got = weft.nn.functional.conv2d(*given, None, stride, padding, dilation, groups)
    g = weft.asarray(RNG.uniform(-1, 1, want.shape)).astype(dtype)
    got.backward(g)
    found = (got.data, *(t.grad.data for t in given))
    for a, b in zip(found, (want, *gradients(g.astype("float64").numpy()))):
        assert a.dtype == dtype and a.shape == b.shape
        bound = TOLERANCE[dtype] * np.abs(b).max()
        np.testing.assert_allclose(a.astype("float64").numpy(), b, rtol=TOLERANCE[dtype], atol=bound)  # fmt: skip


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", DEPTHWISE, ids=str)
def test_depthwise(case, dtype):
    n, c, h, w, each, kh, kw, stride, padding, dilation = case
    x, weight = RNG.uniform(-1, 1, (n, c, h, w)), RNG.uniform(-1, 1, (c * each, 1, kh, kw))
    _check(x, weight, c, stride, padding, dilation, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_windows_of_one_element(case, dtype):
    n, c, h, w, o = case
    x, weight = RNG.uniform(-1, 1, (n, c, h, w)), RNG.uniform(-1, 1, (o, c, 1, 1))
    _check(x, weight, 1, (1, 1), (0, 0), (1, 1), dtype)


def test_results_do_not_depend_on_threads():
    x, w = RNG.uniform(-1, 1, (3, 70, 5, 5)), RNG.uniform(-1, 1, (70, 1, 3, 3))
    before, results = weft.get_threads(), []
    try:
        for threads in (1, 3):
            weft.set_threads(threads)
            given = [weft.Tensor(weft.asarray(a), requires_grad=True) for a in (x, w)]
            y = weft.nn.functional.conv2d(*given, None, 1, 1, 1, 70)
            (y * y).sum().backward()
            results.append([y.data.numpy(), *(t.grad.data.numpy() for t in given)])
    finally:
        weft.set_threads(before)
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)
