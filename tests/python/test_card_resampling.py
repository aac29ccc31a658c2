# SPDX-License-Identifier: Apache-2.0
"""interpolate on a device with a grid beside NumPy, and its gradient by the identity <g, R x> = <R' g, x>."""

import numpy as np
import pytest
from present import present

import weft

SEED = 20261131


@pytest.fixture(scope="module")
def device():
    return present("opencl:0")


def _along(x, axis, m, scale, corners):
    n = x.shape[axis]
    if corners:
        at = np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0.0)
    else:
        at = np.maximum((np.arange(m) + 0.5) * scale - 0.5, 0)
    low = np.minimum(at.astype(int), n - 1)
    part = (at - low).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    a, b = np.take(x, low, axis), np.take(x, np.minimum(low + 1, n - 1), axis)
    return a + (b - a) * part


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize(
    "dtype, bound", [("float32", 3e-5), ("float64", 1e-11), ("float16", 1e-2), ("bfloat16", 6e-2)]
)
def test_linear_interpolation_and_its_gradient(device, dtype, bound, corners):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    for shape, sizes, mode in (
        ((2, 9, 7, 9), (14, 18), "bilinear"),
        ((3, 1, 6), (11,), "linear"),
        ((1, 2, 4, 5, 3), (7, 2, 6), "trilinear"),
        ((1, 1, 1, 4), (3, 1), "bilinear"),
    ):
        a = weft.asarray(rng.standard_normal(shape), device=device).astype(dtype)
        g = weft.asarray(rng.standard_normal((*shape[:2], *sizes)), device=device).astype(dtype)
        x, dy = (v.astype("float64").numpy() for v in (a, g))
        want = x
        for axis, m in enumerate(sizes, start=2):
            want = _along(want, axis, m, shape[axis] / m, corners)
        v = weft.Tensor(a, requires_grad=True)
        y = weft.nn.functional.interpolate(v, size=sizes, mode=mode, align_corners=corners)
        np.testing.assert_allclose(y.data.astype("float64").numpy(), want, atol=bound, rtol=bound)
        y.backward(weft.Tensor(g))
        slope = v.grad.data if isinstance(v.grad, weft.Tensor) else v.grad
        slope = slope.astype("float64").numpy()
        size = np.sqrt((x**2).sum() * (slope**2).sum()) + np.abs(dy * want).sum()
        assert abs((dy * want).sum() - (x * slope).sum()) <= bound * size


def test_views_and_empty_images(device):
    x = np.random.default_rng(SEED).standard_normal((2, 3, 8, 10)).astype("float32")
    w = weft.Tensor(weft.asarray(x, device=device))
    for view in (lambda a: a[:, :, ::2], lambda a: a[:, 1:, :, 3:]):
        want = view(x)
        for axis in (2, 3):
            want = _along(want, axis, 6, want.shape[axis] / 6, False)
        got = weft.nn.functional.interpolate(view(w), size=(6, 6), mode="bilinear")
        np.testing.assert_allclose(got.data.numpy(), want, rtol=1e-5, atol=1e-5)
    none = weft.Tensor(weft.zeros((0, 3, 4, 4), device=device))
    assert weft.nn.functional.interpolate(none, size=(8, 8), mode="bilinear").shape == (0, 3, 8, 8)
