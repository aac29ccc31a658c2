# SPDX-License-Identifier: Apache-2.0
"""Convolutions of hosts whose images have the channels of a place side by side, and results in the order of their operands."""

import random

import numpy as np
import pytest

import weft
from weft.nn import functional as F


def last(x):
    """The same array with its channels last in memory."""
    return weft.asarray(np.ascontiguousarray(x.transpose(0, 2, 3, 1))).permute((0, 3, 1, 2))


def is_last(x):
    _, c, h, w = x.shape
    return tuple(x.strides) == (h * w * c, 1, w * c, c)


def geometry(rng):
    groups = rng.choice([1, 1, 1, 2, 3])
    kind = rng.choice(["dense", "plain", "depthwise", "several"])
    c, o = (rng.randint(2, 70) * groups if groups > 1 else rng.randint(2, 90) for _ in range(2))
    kernel = (rng.randint(1, 4), rng.randint(1, 5))
    stride, dilation = ((rng.randint(1, 3), rng.randint(1, 3)) for _ in range(2))
    if kind == "plain":
        kernel, stride, dilation = (1, 1), (1, 1), (1, 1)
    if kind == "depthwise":
        o = groups = c
    if kind == "several":
        groups, o = c, c * rng.randint(2, 3)
    padding = (0, 0) if kind == "plain" else (rng.randint(0, 3), rng.randint(0, 3))
    need = [d * (k - 1) + 1 - 2 * p for d, k, p in zip(dilation, kernel, padding)]
    h, w = (max(n, 1) + rng.randint(0, 9) for n in need)
    return dict(n=rng.randint(1, 3), c=c, o=o, h=h, w=max(w, 2), kernel=kernel,
                options=dict(stride=stride, padding=padding, dilation=dilation, groups=groups))  # fmt: skip


def drawn(rng, *shape):
    return rng.standard_normal(shape)


def gradients(f, g, *tensors):
    given = [weft.Tensor(t, requires_grad=True) for t in tensors]
    out = f(*given)
    out.backward(weft.Tensor(g) if not isinstance(g, weft.Tensor) else g)
    return out.data, *(t.grad.data for t in given)


@pytest.mark.parametrize(
    "dtype,places", [("float32", 1e-4), ("float64", 1e-12), ("bfloat16", 3e-2)]
)
@pytest.mark.parametrize("seed", range(12))
def test_convolutions_and_their_gradients(dtype, places, seed):
    some, rng = geometry(random.Random(seed)), np.random.default_rng(seed)
    x = drawn(rng, some["n"], some["c"], some["h"], some["w"])
    w = drawn(rng, some["o"], some["c"] // some["options"]["groups"], *some["kernel"])
    f = lambda x, w: F.conv2d(x, w, **some["options"])  # noqa: E731
    plain = [weft.asarray(a).astype(dtype) for a in (x, w)]
    shape = f(*plain).shape
    g = drawn(rng, *shape)
    turn = lambda a: a.astype(dtype) if dtype != "bfloat16" else (a * 1.0).astype(dtype)  # noqa: E731
    turned = [turn(last(x)), plain[1]]
    want = gradients(f, weft.asarray(g).astype(dtype), *plain)
    for upper in (weft.asarray(g).astype(dtype), turn(last(g))):
        got = gradients(f, upper, *turned)
        for a, b in zip(got, want, strict=True):
            a, b = (np.asarray(v.astype("float64").numpy()) for v in (a, b))
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, atol=places * max(1.0, np.abs(b).max()), rtol=places)
    if dtype != "bfloat16" and shape[1] > 1 and shape[2] * shape[3] > 1:
        assert is_last(F.conv2d(turned[0], plain[1], **some["options"]))


def test_what_is_fused_goes_along_memory():
    """Results, sums over places and values for each channel, of images in another order than that of their axes."""
    rng = np.random.default_rng(0)
    x, y = drawn(rng, 2, 21, 5, 7), drawn(rng, 2, 21, 5, 7)
    c = drawn(rng, 1, 21, 1, 1)

    def f(x, y, c):
        z = weft.exp(x * c) + y
        m = z.mean((0, 2, 3), keepdims=True)
        v = ((z - m) * (z - m)).mean((0, 2, 3), keepdims=True)
        return z, (z - m) / weft.sqrt(v + 1e-5), z.sum((2, 3)), z.max(), z.sum(1)

    g = weft.compile(f)
    want = f(*map(weft.asarray, (x, y, c)))
    for a, b in (
        (last(x), last(y)),
        (last(x), weft.asarray(y)),
        (weft.asarray(x).permute((3, 2, 1, 0)).copy().permute((3, 2, 1, 0)), last(y)),
    ):
        for got, w in zip(g(a, b, weft.asarray(c)), want, strict=True):
            np.testing.assert_allclose(got.numpy(), w.numpy(), rtol=1e-10, atol=1e-12)
    found = g(last(x), last(y), weft.asarray(c))
    assert is_last(found[0]) and is_last(found[1])
