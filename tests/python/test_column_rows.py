# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives along any axis, beside NumPy in float64."""

import numpy as np
import pytest

import weft

TOLERANCE = {"float32": 3e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 1.6e-2}
SHAPES = [
    ((10, 1000), 0),
    ((3, 17), 0),
    ((7, 5, 130), 1),
    ((5, 6, 7, 9), 1),
    ((2, 33, 3), 1),  # few columns are turned
    ((1, 4099), 0),
    ((1500, 70), 0),
    ((40, 300, 2), 0),
]


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis):
    s = x - x.max(axis, keepdims=True)
    return s - np.log(np.exp(s).sum(axis, keepdims=True))


def wide(x):
    return x.astype("float64").numpy()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_values_and_gradients_along_an_outer_axis(shape, axis, dtype):
    rng = np.random.default_rng(29111)
    x = weft.asarray(rng.standard_normal(shape) * 5).astype(dtype)
    g = weft.asarray(rng.standard_normal(shape)).astype(dtype)
    tolerance = TOLERANCE[dtype]
    for ours, theirs in ((weft.softmax, softmax), (weft.log_softmax, log_softmax)):
        want, seed = theirs(wide(x), axis), wide(g)
        out = ours(x, axis=axis)
        assert out.dtype == x.dtype and out.shape == shape
        np.testing.assert_allclose(wide(out), want, rtol=tolerance, atol=tolerance)
        t = weft.Tensor(x, requires_grad=True)
        ours(t, axis=axis).backward(weft.Tensor(g, requires_grad=False))
        y = wide(ours(x, axis=axis))  # as rounded
        total = lambda v: v.sum(axis, keepdims=True)  # noqa: E731
        if ours is weft.softmax:
            expected = y * (seed - total(seed * y))
        else:
            expected = seed - np.exp(y) * total(seed)
        scale = max(1, shape[axis] ** 0.5)
        np.testing.assert_allclose(
            wide(t.grad.data), expected, rtol=tolerance, atol=tolerance * scale
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_extremes_and_what_is_no_number(dtype):
    x = np.zeros((5, 40))
    x[:, 1], x[2, 2], x[0, 3], x[1, 4] = -np.inf, -np.inf, np.nan, np.inf
    x[:, 5], x[3, 6] = 3e38, -3e38
    a = weft.asarray(x).astype(dtype)
    with np.errstate(invalid="ignore"):
        want = softmax(wide(a), 0)
    got = wide(weft.softmax(a, axis=0))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-30)
    # As the rows of the turned array are, but for the order of sums.
    turned = wide(weft.softmax(weft.asarray(x.T.copy()).astype(dtype), axis=1)).T
    np.testing.assert_allclose(got, turned, rtol=TOLERANCE[dtype], atol=1e-30)


def test_views_and_mixed_layouts():
    rng = np.random.default_rng(5)
    base = rng.standard_normal((60, 44)).astype("float32")
    for view in (lambda v: v[::2, 1:], lambda v: v.T, lambda v: v[::-1], lambda v: v[:, None, :]):
        x = view(weft.asarray(base))
        want = softmax(view(base).astype("float64"), 0)
        np.testing.assert_allclose(weft.softmax(x, axis=0).numpy(), want, rtol=3e-6, atol=1e-7)
    # A gradient that repeats one element.
    t = weft.Tensor(weft.asarray(base), requires_grad=True)
    (weft.log_softmax(t, axis=0)).sum().backward()
    y = log_softmax(base.astype("float64"), 0)
    np.testing.assert_allclose(t.grad.data.numpy(), 1 - np.exp(y) * 60, rtol=2e-5, atol=2e-5)


def test_threads_do_not_change_results():
    x = weft.asarray(np.random.default_rng(6).standard_normal((300, 5000)).astype("float32"))
    before = weft.get_threads()
    results = []
    for threads in (1, 2):
        weft.set_threads(threads)
        results.append(weft.softmax(x, axis=0).numpy())
    weft.set_threads(before)
    np.testing.assert_array_equal(*results)
