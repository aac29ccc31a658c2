# SPDX-License-Identifier: Apache-2.0
"""Rows of a few elements, which the host computes side by side: softmax and its family, beside NumPy in float64."""

import numpy as np
import pytest

import weft

SHAPES = [(64, 2), (65, 3), (1031, 10), (7, 11, 13, 5), (130, 24), (63, 7), (90, 25)]
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-13}


def drawn(shape, dtype, seed):
    x = np.random.default_rng(seed).standard_normal(shape) * 5
    given = weft.asarray(x.astype("float32" if dtype == "bfloat16" else dtype))
    given = given.astype("bfloat16") if dtype == "bfloat16" else given
    return given, np.asarray(given.astype("float64"))


def wide(x):
    return np.asarray(x.astype("float64"))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows(shape, dtype):
    x, a = drawn(shape, dtype, 1)
    top = a.max(-1, keepdims=True)
    total = np.log(np.exp(a - top).sum(-1, keepdims=True)) + top
    near = dict(rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    every_other = x[::2]
    for axis, keep in ((-1, False), (len(shape) - 1, True)):
        got = weft.logsumexp(x, axis=axis, keepdims=keep)
        assert got.dtype == dtype and got.is_contiguous()
        np.testing.assert_allclose(wide(got), total if keep else total[..., 0], **near)
    for f, want in ((weft.softmax, np.exp(a - total)), (weft.log_softmax, a - total)):
        got = f(x, axis=-1)
        assert got.dtype == dtype and got.is_contiguous()
        np.testing.assert_allclose(wide(got), want, **near)
        np.testing.assert_allclose(wide(f(every_other, axis=-1)), want[::2], **near)


def test_rows_with_infinities_and_nan():
    rng = np.random.default_rng(2)
    a = rng.choice(
        [-np.inf, 0.0, 1.5, np.inf, 3e38, -3e38, np.nan],
        (999, 4),
        p=[0.4, 0.2, 0.2, 0.05, 0.05, 0.05, 0.05],
    )
    a[:9] = -np.inf
    for dtype in ("float32", "float64"):
        got = np.asarray(weft.logsumexp(weft.asarray(a.astype(dtype)), axis=1))
        with np.errstate(all="ignore"):
            top = a.max(1)
            at = np.where(np.isfinite(top), top, 0)
            want = np.log(np.exp(a - at[:, None]).sum(1)) + at
        np.testing.assert_allclose(got, want.astype(dtype), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(shape, dtype):
    x, a = drawn(shape, dtype, 3)
    g, b = drawn(shape, dtype, 4)
    p = np.exp(a - a.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    near = dict(rtol=20 * TOLERANCE[dtype], atol=20 * TOLERANCE[dtype])
    wanted = {
        weft.softmax: p * (b - (b * p).sum(-1, keepdims=True)),
        weft.log_softmax: b - p * b.sum(-1, keepdims=True),
    }
    for f, want in wanted.items():
        t = weft.Tensor(x, requires_grad=True)
        (f(t, axis=-1) * weft.Tensor(g)).sum().backward()
        np.testing.assert_allclose(np.asarray(t.grad.data), want, **near)
    t = weft.Tensor(x, requires_grad=True)
    weft.logsumexp(t, axis=-1).sum().backward()
    np.testing.assert_allclose(np.asarray(t.grad.data), p, **near)


def test_logsumexp_of_columns():
    x, a = drawn((37, 130), "float32", 5)
    want = np.log(np.exp(a).sum(0))
    np.testing.assert_allclose(wide(weft.logsumexp(x, axis=0)), want, rtol=2e-6)
    y, b = drawn((5, 9, 70), "float64", 6)
    np.testing.assert_allclose(wide(weft.logsumexp(y, axis=(0, 1))), np.log(np.exp(b).sum((0, 1))), rtol=1e-13)  # fmt: skip
