# SPDX-License-Identifier: Apache-2.0
"""Kernels of devices with a grid (maps, reductions, row kernels, products, fused functions) beside NumPy."""

import numpy as np
import pytest
import weft

SEED = 20261123


@pytest.fixture(scope="module", params=["cuda:0", "opencl:0"])
def device(request):
    found = weft.device(request.param)
    if not found.available:
        pytest.skip(f"{request.param}: {found.reason}")
    return found


def _pair(device, *shape, dtype="float32"):
    print("seed", SEED)
    x = (np.random.default_rng(SEED + sum(shape)).standard_normal(shape) * 4).astype(dtype)
    return x, weft.asarray(x, device=device)


def _same(got, want, tol=1e-5):
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=tol, atol=tol)


@pytest.mark.parametrize("n", [0, 1, 255, 1024, 5000])
def test_maps(device, n):
    x, w = _pair(device, n)
    _same(w + w, x + x)
    _same(w * 2.5, x * np.float32(2.5))
    _same(weft.where(w > 0.0, w, -w), np.abs(x))
    assert weft.full((n,), 3.0, device=device).numpy().tolist() == [3.0] * n


def test_layouts(device):
    x, w = _pair(device, 37, 53)
    _same(w + w[0], x + x[0])
    _same(w.T * w.T[:, :1], x.T * x.T[:, :1])
    _same(w[::2, ::-1] - 1.0, x[::2, ::-1] - 1)
    _same(w.T.copy(), x.T.copy())
    h, v = _pair(device, 33, 7, dtype="int32")
    _same(v * v, h * h)


@pytest.mark.parametrize(
    "shape, axis",
    [((1000,), None), ((37, 53), 0), ((37, 53), 1), ((3, 20001), 1), ((20001, 3), 0), ((5, 64, 7, 9), (0, 2, 3)), ((100000,), None), ((3000, 64), 0)],
)  # fmt: skip
def test_reductions(device, shape, axis):
    x, w = _pair(device, *shape)
    wide = x.astype("float64")
    np.testing.assert_allclose(
        weft.sum(w, axis=axis).numpy(),
        wide.sum(axis),
        rtol=1e-4,
        atol=np.abs(wide).sum() * 1e-7 + 1e-4,
    )
    np.testing.assert_array_equal(weft.max(w, axis=axis).numpy(), x.max(axis))


def test_nan_wins_and_integers_are_exact(device):
    x, _ = _pair(device, 300, 5)
    x[17, 3] = np.nan
    got = weft.max(weft.asarray(x, device=device), axis=0).numpy()
    assert np.isnan(got[3]) and not np.isnan(got[:3]).any()
    h, v = _pair(device, 129, 65, dtype="int32")
    np.testing.assert_array_equal(weft.sum(v, axis=0).numpy(), h.sum(0))
    np.testing.assert_array_equal(weft.any(v > 9, axis=1).numpy(), (h > 9).any(1))


@pytest.mark.parametrize("columns", [1, 10, 100, 1000, 1023, 4097, 20001])
def test_row_kernels(device, columns):
    x, w = _pair(device, 7, columns)
    s, scale = _pair(device, columns)
    host = weft.asarray(x)
    _same(weft.softmax(w), weft.softmax(host).numpy())
    _same(weft.log_softmax(w), weft.log_softmax(host).numpy(), 1e-4)
    _same(
        weft.layer_norm(w, scale, scale),
        weft.layer_norm(host, weft.asarray(s), weft.asarray(s)).numpy(),
        2e-3,
    )


@pytest.mark.parametrize("columns", [9, 1000, 20001])
def test_gradients_of_rows(device, columns):
    (x, w), (g, v) = _pair(device, 3, columns), _pair(device, 5, columns)
    g, v = g[:3], v[:3]

    def gradients(a, upper, device):
        scale = weft.Tensor(np.ones(columns, "float32"), device=device)
        for f in (
            lambda t: t.softmax(-1),
            lambda t: t.log_softmax(-1),
            lambda t: t.layer_norm(scale, scale),
        ):
            t = weft.Tensor(a)
            (f(t) * weft.Tensor(upper, requires_grad=False)).sum().backward()
            yield t.grad.numpy()

    host = gradients(weft.asarray(x), weft.asarray(g), weft.device("cpu"))
    for got, want in zip(gradients(w, v, device), host):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_rows_of_infinities(device):
    x = np.full((4, 20001), -np.inf, "float32")
    x[0, 7] = 1.0
    x[1, 20000] = np.inf
    x[2, 3] = np.nan
    x[3, 5000:6000] = 2.0
    got = weft.softmax(weft.asarray(x, device=device)).numpy()
    want = weft.softmax(weft.asarray(x)).numpy()
    np.testing.assert_allclose(got[[0, 3]], want[[0, 3]], rtol=1e-5)
    assert got[0, 7] == 1.0 and np.isnan(got[1, 20000]) and np.isnan(got[2]).all()


@pytest.mark.parametrize(
    "m, n, k",
    [
        (1, 1, 1),
        (5, 7, 3),
        (64, 64, 64),
        (100, 33, 257),
        (3, 200, 5),
        (130, 139, 67),
        (257, 1, 1000),
        (1, 257, 1000),
        (10, 10, 5000),
    ],
)
def test_products(device, m, n, k):
    (a, wa), (b, wb) = _pair(device, m, k), _pair(device, k, n)
    want = a.astype("float64") @ b.astype("float64")
    _same(wa @ wb, want, 1e-3)
    _same(wb.T @ wa.T, want.T, 1e-3)


def test_products_of_views(device):
    (a, wa), (b, wb) = _pair(device, 70, 150), _pair(device, 150, 66)
    _same(wa[::2, 1::3] @ wb[1::3, ::-1], a[::2, 1::3] @ b[1::3, ::-1], 1e-3)
    _same(wa[3:, 5:] @ wb[5:, 2:], a[3:, 5:] @ b[5:, 2:], 1e-3)
    _same(wa.T @ wa, a.T @ a, 2e-3)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int8"])
def test_products_of_other_types(device, dtype):
    (a, wa), (b, wb) = _pair(device, 65, 40, dtype=dtype), _pair(device, 40, 67, dtype=dtype)
    if dtype == "float16":
        want = a.astype("float32") @ b.astype("float32")
        np.testing.assert_allclose((wa @ wb).numpy(), want, rtol=2e-3, atol=1e-2)
    elif dtype == "float64":
        np.testing.assert_allclose((wa @ wb).numpy(), a @ b, rtol=1e-12, atol=1e-10)
    else:
        np.testing.assert_array_equal((wa @ wb).numpy(), a @ b)


def test_batches_of_products(device):
    (a, wa), (b, wb) = _pair(device, 3, 1, 20, 30), _pair(device, 4, 30, 25)
    _same(wa @ wb, a @ b, 1e-3)


def test_fused_functions(device):
    (a, wa), (b, wb) = _pair(device, 33, 65), _pair(device, 65)
    f = weft.compile(lambda x, y: weft.sum(weft.tanh(x * 0.5 + y) * x, axis=1))
    _same(f(wa, wb), (np.tanh(a * 0.5 + b) * a).sum(1), 1e-3)
    assert f.kernels == 1
