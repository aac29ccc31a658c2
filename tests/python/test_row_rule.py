# SPDX-License-Identifier: Apache-2.0
"""Softmax, norms and their gradients on a device with a grid: one kernel that a rule schedules, beside NumPy in float64; transposes and takes."""

import numpy as np
import pytest
from cover import cover
from present import present

import weft
from weft import te

SEED = 20261130


@pytest.fixture(scope="module")
def device():
    return present("opencl:0")


def _softmax(x):
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


def _program(rows, columns, dtype="float32"):
    x = te.placeholder((rows, columns), dtype, name="X")
    k, j = (te.reduce_axis((0, columns), name=n) for n in "kj")
    most = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="M")
    power = te.compute((rows, columns), lambda i, c: te.exp(x[i, c] - most[i]), name="E")
    total = te.compute((rows,), lambda i: te.sum(power[i, j], axis=j), name="S")
    out = te.compute((rows, columns), lambda i, c: power[i, c] / total[i], name="P")
    return te.create_prim_func([x, out])


@pytest.mark.parametrize("rows, columns", [(37, 64), (5, 1000), (3, 1001), (1, 5), (2, 8192)])
def test_rows_of_weft_build_are_one_kernel(device, rows, columns):
    print("seed", SEED)
    x = np.random.default_rng(SEED).standard_normal((rows, columns)).astype("float32") * 3
    module = weft.build(_program(rows, columns), target="opencl", tuned=False)
    assert "M: row" in str(module.notes) and "P: row" in str(module.notes)
    out = weft.zeros((rows, columns), dtype="float32", device=device)
    module["main"](weft.asarray(x, device=device), out)
    np.testing.assert_allclose(out.numpy(), _softmax(x.astype("float64")), rtol=2e-5, atol=1e-9)


def test_rows_of_unknown_or_great_length_take_other_rules(device):
    for columns in (te.var("n"), 9001, 100_000):
        module = weft.build(_program(3, columns), target="opencl", tuned=False)
        assert ": row" not in str(module.notes) and "M: reduce" in str(module.notes)
    x = np.random.default_rng(SEED).standard_normal((3, 77)).astype("float32")
    out = weft.zeros((3, 77), dtype="float32", device=device)
    weft.build(_program(3, te.var("n")), target="opencl", tuned=False)["main"](
        weft.asarray(x, device=device), out
    )
    np.testing.assert_allclose(out.numpy(), _softmax(x.astype("float64")), rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize("case", ["reversed", "transposed", "all rows", "twice"])
def test_rows_that_need_more_than_their_own_places(device, case):
    n = 64
    x = te.placeholder((n, n), name="X")
    k, j = (te.reduce_axis((0, n), name=a) for a in "kj")
    most = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="M")
    power = te.compute((n, n), lambda i, c: te.exp(x[i, c] - most[i]), name="E")
    total = te.compute((n,), lambda i: te.sum(power[i, j], axis=j), name="S")
    out = te.compute(
        (n, n),
        {
            "reversed": lambda i, c: power[i, n - 1 - c] / total[i],
            "transposed": lambda i, c: power[c, i] / total[i],
            "all rows": lambda i, c: power[i, c] / total[c],
            "twice": lambda i, c: power[i, c] / total[i] + x[i, c] * most[i],
        }[case],
        name="P",
    )
    module = weft.build(te.create_prim_func([x, out]), target="opencl", tuned=False)
    assert ("P: row" in str(module.notes)) == (case == "twice")
    a = np.random.default_rng(SEED).standard_normal((n, n)).astype("float32")
    got = weft.zeros((n, n), dtype="float32", device=device)
    module["main"](weft.asarray(a, device=device), got)
    wide = a.astype("float64")
    m = wide.max(1, keepdims=True)
    e = np.exp(wide - m)
    s = e.sum(1, keepdims=True)
    want = {
        "reversed": e[:, ::-1] / s,
        "transposed": e.T / s,
        "all rows": e / s.T,
        "twice": e / s + wide * m,
    }[case]
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=1e-6)


def _layer_norm(x, w, b):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * w + b


def _layer_norm_gradient(x, g):
    d = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)
    n = d * r
    return r * (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True))


BOUNDS = {"float32": 1e-5, "float64": 1e-11, "float16": 3e-3, "bfloat16": 2e-2}


@cover("shape", [(7, 1), (37, 33), (2, 3, 136), (3, 1001)], "dtype", [*BOUNDS])
def test_array_rows_and_gradients(device, dtype, shape):
    bound = BOUNDS[dtype]
    print("seed", SEED)
    rng = np.random.default_rng(SEED)

    def draw(*of):
        a = weft.asarray(rng.standard_normal(of) * 2, device=device).astype(dtype)
        return a, a.astype("float64").numpy()

    (a, x), (g, dy) = draw(*shape), draw(*shape)
    (w, s), (b, t) = draw(shape[-1]), draw(shape[-1])
    scale, shift = weft.Tensor(w, requires_grad=True), weft.Tensor(b, requires_grad=True)
    p = _softmax(x)
    cases = (
        (lambda v: v.softmax(-1), p, p * (dy - (p * dy).sum(-1, keepdims=True))),
        (lambda v: v.log_softmax(-1), np.log(p), dy - p * dy.sum(-1, keepdims=True)),
        (
            lambda v: v.layer_norm(scale, shift),
            _layer_norm(x, s, t),
            _layer_norm_gradient(x, dy * s),
        ),
    )
    for f, value, slope in cases:
        v = weft.Tensor(a, requires_grad=True)
        y = f(v)
        y.backward(weft.Tensor(g))
        for got, want in ((y.data, value), (v.grad, slope)):
            got = (got.data if isinstance(got, weft.Tensor) else got).astype("float64").numpy()
            size = np.abs(want).max() + 1e-3
            np.testing.assert_allclose(got / size, want / size, atol=4 * bound, rtol=0)
    outer = tuple(range(len(shape) - 1))
    normal = _layer_norm(x, 1, 0)
    for got, want in ((scale.grad, (dy * normal).sum(outer)), (shift.grad, dy.sum(outer))):
        size = np.abs(want).max() + 1e-3
        got = got.astype("float64").numpy()
        np.testing.assert_allclose(got / size, want / size, atol=4 * bound, rtol=0)


def test_rows_of_nan_and_infinity(device):
    inf, nan = np.inf, np.nan
    x = np.random.default_rng(SEED).standard_normal((6, 77)).astype("float32")
    x[0, 3], x[1, 5], x[2, 7], x[3], x[4, 1:] = nan, inf, -inf, -inf, -inf
    w = weft.asarray(x, device=device)
    np.testing.assert_allclose(weft.softmax(w).numpy(), _softmax(x), rtol=1e-5, atol=1e-9)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            weft.log_softmax(w).numpy(), np.log(_softmax(x)), rtol=1e-4, atol=1e-5
        )
    assert weft.softmax(weft.zeros((0, 5), device=device)).shape == (0, 5)
    assert weft.softmax(weft.zeros((5, 0), device=device)).shape == (5, 0)


def test_rows_of_views(device):
    x = np.random.default_rng(SEED).standard_normal((40, 70)).astype("float32")
    w = weft.asarray(x, device=device)
    for view in (lambda a: a[:, 1:], lambda a: a[::2], lambda a: a[:, ::-1], lambda a: a.T):
        np.testing.assert_allclose(
            weft.softmax(view(w)).numpy(), _softmax(view(x)), rtol=1e-5, atol=1e-9
        )
    np.testing.assert_allclose(weft.softmax(w, axis=0).numpy().T, _softmax(x.T), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64", "complex64"])
def test_transposes(device, dtype):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    for shape, order in (
        ((300, 257), (1, 0)),
        ((4, 130, 202), (0, 2, 1)),
        ((65, 3, 999), (2, 1, 0)),
    ):
        x = rng.integers(-100, 100, shape).astype(dtype)
        w = weft.asarray(x, device=device)
        for view in (lambda a: a, lambda a: a[..., 1:], lambda a: a[1:]):
            got = weft.permute_dims(view(w), order).copy().numpy()
            np.testing.assert_array_equal(got, view(x).transpose(order))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64", "complex64"])
def test_take_along_any_axis(device, dtype):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    x = rng.integers(-100, 100, (5, 6, 7, 8)).astype(dtype)
    w = weft.asarray(x, device=device)
    for axis in range(4):
        for view in (
            lambda a: a,
            lambda a: a[..., 1:5],
            lambda a: a[:, ::-1],
            lambda a: (
                a.transpose(1, 0, 3, 2)
                if isinstance(a, np.ndarray)
                else weft.permute_dims(a, (1, 0, 3, 2))
            ),
        ):
            a, b = view(x), view(w)
            n = a.shape[axis]
            for at in (rng.integers(-n, n, 11), np.array([0]), np.zeros(0, "int64")):
                got = weft.take(b, weft.asarray(at, device=device), axis=axis).numpy()
                np.testing.assert_array_equal(got, np.take(a, at, axis))
    with pytest.raises(weft.Error, match="outside axis"):
        weft.take(w, weft.asarray(np.array([9]), device=device), axis=2).numpy()
