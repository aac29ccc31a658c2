# SPDX-License-Identifier: Apache-2.0
"""Functions that hosts run in one pass stay whole inside compiled functions; copies have memory of their own."""

import numpy as np
import pytest
import weft

X = np.random.default_rng(3).standard_normal((6, 20)).astype("float32")
N = np.random.default_rng(4).integers(1, 40, (6, 20))

FUNCTIONS = {
    "cummax": lambda x, n: weft.cummax(x * 2)[0] + 1,
    "cummin": lambda x, n: weft.cummin(n + 1, 0)[1] * 2,
    "gcd": lambda x, n: weft.gcd(n, n + 6) + 1,
    "lcm": lambda x, n: weft.lcm(n + 0, 12),
    "median": lambda x, n: weft.median(x + x, axis=1) * 2,
    "nanmedian": lambda x, n: weft.nanmedian(x + x),
    "percentile": lambda x, n: weft.percentile(x * 3, 30, axis=0),
    "quantile": lambda x, n: weft.quantile(x * 3, 0.3) + x,
    "quantile of an axis": lambda x, n: weft.quantile(x, 0.25, 1),
    "bincount": lambda x, n: weft.bincount((n * 2).reshape(-1)) + 1,
    "histogram": lambda x, n: weft.histogram(x + 1, 10)[0],
    "partition": lambda x, n: weft.partition(x + 1, 4)[:, 4],
    "argpartition": lambda x, n: weft.take_along_axis(x, weft.argpartition(x, 4), axis=1)[:, 4],
    "frexp": lambda x, n: weft.frexp(x * 5)[0] * weft.exp2(weft.frexp(x * 5)[1].astype("float32")),
    "modf": lambda x, n: weft.modf(x * 3)[0] - weft.modf(x * 3)[1],
    "copy": lambda x, n: x.copy() + x.T.copy().T,
    "spread": lambda x, n: (
        weft.broadcast_to(x[:, :1], x.shape) * x + weft.broadcast_to(x[:1], x.shape)
    ),
    "both spread": lambda x, n: (
        weft.broadcast_to(x[:, :1], x.shape) * weft.broadcast_to(x[:1], x.shape)
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_eager(name):
    f, x, n = FUNCTIONS[name], weft.asarray(X), weft.asarray(N)
    compiled = weft.compile(f)
    for _ in range(2):
        got, want = compiled(x, n), f(x, n)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
        x, n = x[:, ::-1].copy(), n[::-1].copy()


def test_a_copy_is_no_view():
    x = weft.asarray(X)
    for f in (
        lambda x: x.copy(),
        lambda x: x.T.copy(),
        lambda x: (x > 0).copy(),
        lambda x: x.clone(),
    ):
        out = weft.compile(f)(x)
        assert not weft.may_share_memory(out, x)

    def changed(x):
        y = x.copy()
        y += 1
        return y

    np.testing.assert_allclose(weft.compile(changed)(x).numpy(), X + 1)
    np.testing.assert_array_equal(x.numpy(), X)


def test_gradients_pass_what_is_spread():
    x = weft.Tensor(weft.asarray(X), requires_grad=True)
    f = lambda x: (weft.broadcast_to(x[:, :1], x.shape) * x).sum()  # noqa: E731
    f(x).backward()
    want, x.grad = x.grad.numpy(), None
    weft.compile(f)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-5)
