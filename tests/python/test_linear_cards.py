# SPDX-License-Identifier: Apache-2.0
"""x W + b of tensors on a device with a grid: sums that begin with the bias."""

import numpy as np
import pytest
from present import present

import weft
import weft.nn.functional as F

GRID = present("opencl")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    "rows, k, n",
    [((7,), 5, 9), ((33,), 70, 65), ((2, 3, 11), 17, 40), ((5,), 3000, 6), ((130,), 64, 128)],
)
def test_as_composed(rows, k, n, dtype):
    rng = np.random.default_rng(k)
    values = [rng.standard_normal(s) for s in ((*rows, k), (k, n), (n,), (*rows, n))]
    x, w, b, g = (weft.asarray(v).astype(dtype) for v in values)

    def run(device, f):
        t = [weft.Tensor(v.to(device), requires_grad=True) for v in (x, w, b)]
        y = f(*t)
        y.backward(weft.Tensor(g.to(device), requires_grad=False))
        return [v.astype("float64").to("cpu").numpy() for v in (y.data, *(p.grad.data for p in t))]

    exact = [v.astype("float64").numpy() for v in (x, w, b, g)]
    flat, gs = exact[0].reshape(-1, k), exact[3].reshape(-1, n)
    want = [exact[0] @ exact[1] + exact[2], (gs @ exact[1].T).reshape(exact[0].shape), flat.T @ gs, gs.sum(0)]  # fmt: skip
    unit = {"float32": 2e-6, "float64": 1e-14, "bfloat16": 1e-2}[dtype]
    for got, right in zip(run(GRID, F.linear), want):
        np.testing.assert_allclose(got, right, atol=unit * max(1, abs(right).max()) * 4, rtol=unit)


def test_views_and_second_gradients():
    rng = np.random.default_rng(1)
    x, w, b = (rng.standard_normal(s).astype("float32") for s in ((9, 6), (8, 6), (16,)))
    t = weft.Tensor(weft.asarray(x, device=GRID), requires_grad=True)
    u = weft.Tensor(weft.asarray(w, device=GRID), requires_grad=True)
    bias = weft.Tensor(weft.asarray(b, device=GRID)[::2], requires_grad=True)
    y = F.linear(t, u.T, bias)
    np.testing.assert_allclose(y.data.to("cpu").numpy(), x @ w.T + b[::2], rtol=1e-5, atol=1e-5)
    f = lambda v: (F.linear(v, u.T, bias) ** 2).sum()  # noqa: E731
    h = weft.grad(lambda v: (weft.grad(f)(v) * 1.0).sum())(weft.asarray(x, device=GRID))
    h = getattr(h, "data", h)
    want = np.broadcast_to(2 * (w.T @ w).sum(0), x.shape)
    np.testing.assert_allclose(h.to("cpu").numpy(), want, rtol=1e-4, atol=1e-4)


def test_shapes_are_checked():
    x = weft.Tensor(weft.ones((6, 5), device=GRID))
    with pytest.raises(weft.ShapeError):
        F.linear(x, weft.Tensor(weft.ones((4, 7), device=GRID)), weft.Tensor(weft.ones(7, device=GRID)))  # fmt: skip
