# SPDX-License-Identifier: Apache-2.0
"""Batch, group and instance norm as one node on the host, beside the formula in float64; moments over several axes."""

import itertools

import numpy as np
import pytest

import weft
from weft.nn import functional as F


def expected(x, weight, bias, g, groups, eps):
    """y and the gradients of x, weight, bias of sum(g y)."""
    n, c = x.shape[:2]
    shape = (n, groups, -1) if groups else x.shape
    axes = (2,) if groups else (0, *range(2, x.ndim))
    along = (1, c, *(1,) * (x.ndim - 2))
    rows = x.reshape(shape)
    centred = rows - rows.mean(axes, keepdims=True)
    spread = 1 / np.sqrt((centred**2).mean(axes, keepdims=True) + eps)
    normal = centred * spread
    flat = normal.reshape(x.shape)
    y = flat * weight.reshape(along) + bias.reshape(along)
    gw = (g * weight.reshape(along)).reshape(shape)
    dx = (
        gw - gw.mean(axes, keepdims=True) - normal * (gw * normal).mean(axes, keepdims=True)
    ) * spread
    over = (0, *range(2, x.ndim))
    return y, dx.reshape(x.shape), (g * flat).sum(over), g.sum(over)


SHAPES = [(3, 6, 5, 7), (1, 6, 40, 53), (4, 6, 17), (2, 6, 3, 4, 5), (2, 6, 70, 61), (5, 6, 3, 3), (4, 6, 1, 1)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("groups", [0, 1, 3, 6])
@pytest.mark.parametrize("threads", [1, 2])
def test_norms(dtype, groups, threads):
    rng = np.random.default_rng(5)
    before = weft.get_threads()
    weft.set_threads(threads)
    try:
        for shape in SHAPES:
            x, g = rng.standard_normal(shape) * 2 + 3, rng.standard_normal(shape)
            weight, bias = rng.standard_normal(6), rng.standard_normal(6)
            x, g, weight, bias = (a.astype(dtype) for a in (x, g, weight, bias))
            if groups and x[0].size == groups:
                continue  # statistics of one element
            t, w, b = weft.Tensor(x), weft.Tensor(weight), weft.Tensor(bias)
            y = F.group_norm(t, groups, w, b) if groups else F.batch_norm(t, None, None, w, b, True)
            y.backward(weft.Tensor(g, requires_grad=False))
            want = expected(*(a.astype("float64") for a in (x, weight, bias, g)), groups, 1e-5)
            for got, exact in zip((y, t.grad, w.grad, b.grad), want):
                size = np.abs(exact).max() + 1
                tolerance = 2e-5 if dtype == "float32" else 1e-12
                np.testing.assert_allclose(got.numpy(), exact, rtol=0, atol=tolerance * size)
    finally:
        weft.set_threads(before)


def test_without_weights_and_views():
    x = np.random.default_rng(1).standard_normal((4, 8, 9, 12))
    t = weft.Tensor(x)
    view = t.permute(3, 1, 0, 2)
    got = F.group_norm(view, 2)
    rows = x.transpose(3, 1, 0, 2).reshape(12, 2, -1)
    want = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(got.numpy(), want.reshape(12, 8, 4, 9), atol=1e-12)
    got.sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), np.zeros(x.shape), atol=1e-10)


@pytest.mark.parametrize("groups", [0, 2])
def test_gradients_of_gradients(groups):
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((2, 4, 4, 5)), rng.standard_normal(4)
    b, v = rng.standard_normal(4), rng.standard_normal((2, 4, 4, 5))

    def cubes(t):
        one, two = weft.Tensor(w, requires_grad=False), weft.Tensor(b, requires_grad=False)
        y = (
            F.group_norm(t, groups, one, two)
            if groups
            else F.batch_norm(t, None, None, one, two, True)
        )
        return (y * y * y).sum()

    def slope(t):
        return (weft.grad(cubes)(t) * weft.Tensor(v, requires_grad=False)).sum()

    found = weft.grad(slope)(weft.Tensor(x)).numpy()
    for at in itertools.islice(np.ndindex(*x.shape), 0, None, 17):
        step = np.zeros_like(x)
        step[at] = 1e-5
        want = (slope(weft.Tensor(x + step)).item() - slope(weft.Tensor(x - step)).item()) / 2e-5
        assert abs(want - found[at]) < 1e-5 * (1 + abs(want))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_moments_over_axes_that_are_no_neighbours(dtype):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((3, 4, 5, 6, 37)) * 9 + 20).astype(dtype)
    for a in (x, x[:, ::2, :, ::-1], x.transpose(4, 1, 0, 3, 2), x[:1], x[..., :1]):
        view = weft.asarray(np.ascontiguousarray(a))
        for axes in ((0, 2), (0, 2, 4), (1, 3), (0, 4), (1, 4), (2,), (0, 1, 3), (0, 3, 4)):
            for name in ("var", "std"):
                got = getattr(weft, name)(view, axis=axes).numpy()
                np.testing.assert_allclose(
                    got, getattr(np, name)(a.astype("float64"), axis=axes), rtol=3e-5
                )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("groups", [0, 2])
def test_16_bit_floats_are_computed_in_float32(dtype, groups):
    rng = np.random.default_rng(4)
    narrow = getattr(weft, dtype)
    for shape in ((3, 4, 33, 67), (2, 4, 5, 5)):
        arrays = [rng.standard_normal(s) for s in (shape, (4,), (4,), shape)]
        tensors = [weft.Tensor(weft.asarray(a).astype(narrow)) for a in arrays]
        x, w, b, g = tensors
        y = F.group_norm(x, groups, w, b) if groups else F.batch_norm(x, None, None, w, b, True)
        assert y.dtype == narrow
        y.backward(g.detach())
        exact = [t.data.astype(weft.float64).numpy() for t in tensors]
        want = expected(*exact, groups, 1e-5)
        unit = 2.0**-11 if dtype == "float16" else 2.0**-8
        for got, wide in zip((y, x.grad, w.grad, b.grad), want):
            found = got.data.astype(weft.float64).numpy()
            np.testing.assert_allclose(
                found, wide, rtol=unit * 1.02, atol=3e-4 * np.abs(wide).max()
            )


def test_arrays_give_arrays():
    rng = np.random.default_rng(6)
    x, w = (
        rng.standard_normal((2, 4, 6, 6)).astype("float32"),
        rng.standard_normal(4).astype("float32"),
    )
    mean, var = weft.zeros(4), weft.ones(4)
    y = F.batch_norm(weft.asarray(x), mean, var, weft.asarray(w), None, True, momentum=0.5)
    assert isinstance(y, weft.NDArray)
    want = expected(x.astype("float64"), w, np.zeros(4), x, 0, 1e-5)[0]
    np.testing.assert_allclose(y.numpy(), want, atol=1e-5)
    np.testing.assert_allclose(mean.numpy(), 0.5 * x.mean((0, 2, 3)), atol=1e-6)
    spread = x.astype("float64").var((0, 2, 3), ddof=1)
    np.testing.assert_allclose(var.numpy(), 0.5 + 0.5 * spread, atol=1e-5)
    assert isinstance(F.group_norm(weft.asarray(x), 2), weft.NDArray)
    assert isinstance(F.group_norm(weft.asarray(x), 2, weft.Tensor(w)), weft.Tensor)
