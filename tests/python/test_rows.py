# SPDX-License-Identifier: Apache-2.0
"""Row kernels, blocked transposes, products of every layout and the vector mathematics beside NumPy in float64."""

import math

import numpy as np
import pytest

import weft

SEED = 20261122
SHAPES = [(1, 1), (3, 7), (5, 32), (2, 1000), (7, 33), (4, 5, 17)]


def _rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


def _softmax(a, axis):
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_family(shape, dtype):
    rng = _rng()
    x = (rng.standard_normal(shape) * 3).astype(dtype)
    wide = x.astype("float64")
    tol = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-12}[dtype]
    w = weft.asarray(x)
    for axis in range(len(shape)):
        s = _softmax(wide, axis)
        lse = np.log(np.exp(wide - wide.max(axis, keepdims=True)).sum(axis)) + wide.max(axis)
        for got, want in (
            (weft.softmax(w, axis=axis), s),
            (weft.log_softmax(w, axis=axis), np.log(s)),
            (weft.logsumexp(w, axis=axis), lse),
        ):
            assert got.shape == want.shape and str(got.dtype) == dtype
            np.testing.assert_allclose(
                got.numpy().astype("float64"), want, rtol=tol * 4, atol=tol * 4
            )
    flipped = weft.flip(w, axis=-1)
    np.testing.assert_allclose(
        weft.softmax(flipped).numpy(),
        weft.softmax(w).numpy()[..., ::-1],
        rtol=1e-3 if dtype == "float16" else 1e-6,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_layer_norm(shape, dtype):
    rng = _rng()
    x, s, b = (rng.standard_normal(k).astype(dtype) for k in (shape, shape[-1:], shape[-1:]))
    got = weft.layer_norm(weft.asarray(x), weft.asarray(s), weft.asarray(b)).numpy()
    wide = x.astype("float64")
    want = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(
        wide.var(-1, keepdims=True) + 1e-5
    ) * s + b
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-5)
    with pytest.raises(weft.ShapeError, match="one element for each") as caught:
        weft.layer_norm(weft.asarray(x), weft.ones((shape[-1] + 1,), dtype=dtype), weft.asarray(b))
    assert caught.value.code == "array.layer_norm.shape"


def test_special_rows():
    inf, nan = np.inf, np.nan
    x = weft.asarray(
        np.array([[nan, 1, 2], [inf, 1, 2], [-inf, 0, 1], [-inf, -inf, -inf]], "float32")
    )
    s = weft.softmax(x).numpy()
    assert np.isnan(s[0]).all() and np.isnan(s[3]).all()
    np.testing.assert_allclose(s[2], [0, 0.26894142, 0.73105858], rtol=1e-6)
    lse = weft.logsumexp(x, axis=1).numpy()
    assert np.isnan(lse[0]) and lse[1] == inf and lse[3] == -inf
    assert weft.softmax(weft.zeros((3, 0))).shape == (3, 0)
    assert weft.softmax(weft.zeros((0, 3)), axis=0).shape == (0, 3)
    for f, name in (
        (weft.softmax, "softmax"),
        (weft.log_softmax, "log_softmax"),
        (weft.logsumexp, "logsumexp"),
    ):
        with pytest.raises(weft.DTypeError, match=f"{name} is not defined for int32") as caught:
            f(weft.ones((2, 2), dtype=weft.int32), axis=-1)
        assert caught.value.code == f"array.{name}.dtype"
    with pytest.raises(weft.ShapeError, match="at least one dimension") as caught:
        weft._core._layer_norm(weft.asarray(1.0), weft.ones((0,)), weft.ones((0,)))
    assert caught.value.code in ("array.layer_norm.rank", "array.layer_norm.shape")


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "layer_norm"])
def test_gradients_by_finite_differences(name):
    rng = _rng()
    x, g = rng.standard_normal((3, 5)), rng.standard_normal((3, 5))
    s, b = rng.standard_normal(5), rng.standard_normal(5)

    def run(*values):
        t = [weft.Tensor(v, dtype=weft.float64) for v in values]
        if name == "layer_norm":
            y = t[0].layer_norm(t[1], t[2])
        elif name == "logsumexp":
            y = t[0].logsumexp(1, True)
        else:
            y = getattr(t[0], name)(-1)
        return t, (y * weft.Tensor(g, dtype=weft.float64, requires_grad=False)).sum()

    values = [x, s, b] if name == "layer_norm" else [x]
    tensors, loss = run(*values)
    loss.backward()
    for k, v in enumerate(values):
        numeric = np.zeros_like(v)
        for i in np.ndindex(*v.shape):
            step = np.zeros_like(v)
            step[i] = 1e-6
            up, down = list(values), list(values)
            up[k], down[k] = v + step, v - step
            numeric[i] = (run(*up)[1].item() - run(*down)[1].item()) / 2e-6
        np.testing.assert_allclose(tensors[k].grad.numpy(), numeric, rtol=1e-5, atol=1e-6)
    # With the gradient's own graph the composed form is used; it must say the same.
    tensors, loss = run(*values)
    linked = weft._core.gradients([loss], tensors, True)
    plain = weft._core.gradients([loss], tensors, False)
    for a, b_ in zip(linked, plain):
        np.testing.assert_allclose(a.numpy(), b_.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(64, 5), (65, 33), (3, 50, 257)])
def test_layer_norm_gradients_of_many_rows(shape, dtype):
    """One pass over the rows beside the composed gradient, which has a gradient itself."""
    rng = _rng()
    values = [rng.standard_normal(s) for s in (shape, shape[-1:], shape[-1:])]
    tensors = [weft.Tensor(v, dtype=dtype, requires_grad=True) for v in values]
    seed = weft.Tensor(rng.standard_normal(shape), dtype=dtype, requires_grad=False)
    loss = (tensors[0].layer_norm(tensors[1], tensors[2]) * seed).sum()
    plain, linked = (weft._core.gradients([loss], tensors, graph) for graph in (False, True))
    for a, b in zip(plain, linked):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(
            a.numpy(), b.numpy(), rtol=2e-4 if dtype == "float32" else 1e-10, atol=1e-5
        )


def _units(got, want):
    """Largest distance in units in the last place of float32 among finite results."""
    exact = want.astype("float32")
    step = np.spacing(np.abs(exact)).astype("float64")
    some = np.isfinite(exact) & (exact != 0)
    return float(np.max(np.abs(got.astype("float64") - want)[some] / step[some]))


@pytest.mark.parametrize(
    "name, low, high, most",
    [
        ("exp", -103, 88.7, 1.0),
        ("tanh", -12, 12, 1.3),
        ("sigmoid", -80, 80, 2.5),
        ("expm1", -103, 88.7, 1.5),
        ("log1p", -0.999, 300, 1.5),
        ("erf", -5, 5, 1.8),
    ],
)
def test_vector_mathematics_is_accurate(name, low, high, most):
    rng = _rng()
    x = np.concatenate([np.linspace(low, high, 200001), rng.standard_normal(50001) * 1e-2]).astype(
        "float32"
    )
    wide = x.astype("float64")
    want = {"exp": np.exp, "tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "expm1": np.expm1,
            "log1p": np.log1p, "erf": np.vectorize(math.erf)}[name](wide)  # fmt: skip
    got = getattr(weft, name)(weft.asarray(x)).numpy()
    assert _units(got, want) <= most
    # Compiled functions have the same bits.
    function = getattr(weft, name)
    assert np.array_equal(weft.compile(lambda v: function(v) * 1.0)(weft.asarray(x)).numpy(), got)


def test_powers_are_accurate_and_special_values_are_right():
    special = [0, 1, 2, 3, 0.5, 1.5, np.inf, np.nan, 1e-45, 1e-39, 3.4e38, 2**24 - 1, 2**24, 2**25]
    special += [1.0000001, 0.99999994, 1e30, 1e-30, 127, 149, 150, 151, 0.1, 1e9]
    special = np.array([*special, *(-v for v in special)], "float32")
    x, y = (v.ravel() for v in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        want = np.power(x.astype("float64"), y.astype("float64")).astype("float32")
        got = weft.pow(weft.asarray(x), weft.asarray(y)).numpy()
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        some = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[some], np.signbit(want)[some])
        np.testing.assert_allclose(got, want, rtol=2.4e-7, atol=1.5e-45)
    rng = _rng()
    x = np.exp(rng.uniform(-80, 80, 100001)).astype("float32")
    near = (1 + rng.standard_normal(50001) * 2.0 ** -rng.integers(2, 22, 50001)).astype("float32")
    x = np.concatenate([x, np.abs(near)])
    y = (rng.uniform(-85, 85, len(x)) / np.log(x.astype("float64"))).astype("float32")
    fine = np.isfinite(y)
    x, y = x[fine], y[fine]
    want = np.power(x.astype("longdouble"), y.astype("longdouble")).astype("float64")
    got = weft.pow(weft.asarray(x), weft.asarray(y)).numpy()
    assert _units(got, want) <= 1.0
    # An element's result depends neither on its neighbours nor on its place.
    for k in (0, 1, 5, 17, 100):
        alone = weft.pow(weft.asarray(x[k : k + 3]), weft.asarray(y[k : k + 3])).numpy()
        np.testing.assert_array_equal(alone, got[k : k + 3])
    x[1::16] *= -1  # others of its vector are rare cases
    mixed = weft.pow(weft.asarray(x), weft.asarray(y)).numpy()
    np.testing.assert_array_equal(np.delete(mixed, np.s_[1::16]), np.delete(got, np.s_[1::16]))


def test_powers_of_float64_are_accurate_and_special_values_are_right():
    special = [0, 1, 2, 3, 0.5, 1.5, np.inf, np.nan, 5e-324, 1e-310, 1.7e308, 2.0**53 - 1, 2.0**53]
    special += [1.0000000000000002, 0.9999999999999999, 1e300, 1e-300, 1023, 1074, 1075, 0.1]
    special = np.array([*special, *(-v for v in special)])
    x, y = (v.ravel() for v in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        want = np.power(x, y)
        got = weft.pow(weft.asarray(x), weft.asarray(y)).numpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    some = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[some], np.signbit(want)[some])
    np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-323)
    rng = _rng()
    x = np.exp(rng.uniform(-700, 700, 100001))
    near = np.abs(1 + rng.standard_normal(100001) * 2.0 ** -rng.integers(2, 50, 100001))
    x = np.concatenate([x, near, rng.uniform(0.9, 1.1, 100001)])
    y = rng.uniform(-707, 707, len(x)) / np.log(x)
    fine = np.isfinite(y)
    x, y = x[fine], y[fine]
    got = weft.pow(weft.asarray(x), weft.asarray(y)).numpy()
    wide = x.astype("longdouble") ** y.astype("longdouble")
    units = np.abs((got.astype("longdouble") - wide) / np.spacing(wide.astype("float64")))
    # 1.2 with AVX-512; elsewhere the C library's vectors, which promise 4.
    assert units.max() <= (1.5 if "avx512dq" in open("/proc/cpuinfo").read() else 4.0)
    for k in (0, 1, 5, 17, 100):  # neither neighbours nor places change a result
        alone = weft.pow(weft.asarray(x[k : k + 3]), weft.asarray(y[k : k + 3])).numpy()
        np.testing.assert_array_equal(alone, got[k : k + 3])
    x[1::8] *= -1  # others of its vector are rare cases
    mixed = weft.pow(weft.asarray(x), weft.asarray(y)).numpy()
    np.testing.assert_array_equal(np.delete(mixed, np.s_[1::8]), np.delete(got, np.s_[1::8]))


def test_log_is_within_two_units_and_special_values_are_right():
    rng = _rng()
    x = np.concatenate(
        [np.exp(np.linspace(-100, 88, 200001)), 1 + rng.standard_normal(50001) * 1e-2]
    ).astype("float32")
    x = np.abs(x)
    assert _units(weft.log(weft.asarray(x)).numpy(), np.log(x.astype("float64"))) <= 2.0
    special = np.array(
        [
            0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            1e-45,
            -1e-45,
            3.4e38,
            -3.4e38,
            88.8,
            -87.5,
            -103,
            -105,
            1e-38,
            1,
            -1,
        ],
        "float32",
    )
    with np.errstate(all="ignore"):
        for name in ("exp", "log", "log1p", "tanh", "expm1", "erf"):
            got = getattr(weft, name)(weft.asarray(special)).numpy()
            want = np.vectorize(math.erf) if name == "erf" else getattr(np, name)
            want = want(special.astype("float64")).astype("float32")
            np.testing.assert_allclose(got, want, rtol=3e-7, atol=1.5e-45)
            if name not in ("exp", "log"):
                assert np.array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    "shape, axis",
    [
        ((7, 5), 0),
        ((700, 301), 0),
        ((3, 401, 333), 1),
        ((3, 401, 333), 0),
        ((2, 90000), 0),
        ((90000, 2), 0),
        ((70001, 2, 1), 1),
    ],
)
def test_softmax_along_other_axes(shape, axis, dtype):
    rng = _rng()
    x, g = (rng.standard_normal(shape).astype("float32") for _ in range(2))
    wx, wg = (weft.asarray(v).astype(dtype) for v in (x, g))
    exact, seed = (v.astype("float32").numpy().astype("float64") for v in (wx, wg))
    e = np.exp(exact - exact.max(axis, keepdims=True))
    want = e / e.sum(axis, keepdims=True)
    tol = 1e-2 if dtype == "bfloat16" else 2e-6
    for function, value, gradient in (
        (weft.nn.functional.softmax, want, want * (seed - (seed * want).sum(axis, keepdims=True))),
        (weft.nn.functional.log_softmax, np.log(want), seed - want * seed.sum(axis, keepdims=True)),
    ):
        t = weft.Tensor(wx, requires_grad=True)
        out = function(t, axis)
        bound = {"rtol": tol, "atol": tol * max(1, np.sqrt(shape[axis]))}
        np.testing.assert_allclose(out.data.astype("float32").numpy(), value, **bound)
        (out * weft.Tensor(wg, requires_grad=False)).sum().backward()
        np.testing.assert_allclose(t.grad.data.astype("float32").numpy(), gradient, **bound)
        reversed_view = function(wx.flip([1]), axis).astype("float32").numpy()
        np.testing.assert_allclose(reversed_view, np.flip(value, 1), **bound)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16", "complex64"])
@pytest.mark.parametrize(
    "shape", [(8, 8), (7, 9), (33, 70), (130, 257), (1, 40), (3, 41, 50), (2, 3, 17, 19)]
)
def test_transposed_copies(shape, dtype):
    rng = _rng()
    x = (rng.standard_normal(shape) * 100).astype(dtype)
    w = weft.asarray(x)
    n = len(shape)
    for order in {
        tuple(reversed(range(n))),
        tuple(np.roll(range(n), 1)),
        (*range(n - 2), n - 1, n - 2),
    }:
        view = weft.permute_dims(w, tuple(int(i) for i in order))
        np.testing.assert_array_equal(view.copy().numpy(), x.transpose(order))
    part, mine = x[..., 1:, :-1], w[..., 1:, :-1]
    np.testing.assert_array_equal(mine.mT.copy().numpy(), np.swapaxes(part, -1, -2))
    target = weft.zeros(x.shape[:-2] + (x.shape[-1], x.shape[-2]), dtype=dtype)
    target.mT[...] = w
    np.testing.assert_array_equal(target.numpy(), np.swapaxes(x, -1, -2))


def test_large_transposes_stream():
    x = np.arange(1603 * 1408, dtype="float32").reshape(1603, 1408)
    np.testing.assert_array_equal(weft.asarray(x).T.copy().numpy(), x.T)
    y = np.arange(1032 * 1040, dtype="float64").reshape(1032, 1040)
    np.testing.assert_array_equal(weft.asarray(y).T.copy().numpy(), y.T)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "size", [(1, 1, 1), (5, 7, 3), (6, 16, 64), (33, 65, 100), (128, 130, 77), (150, 257, 513)]
)
def test_products_of_every_layout(size, dtype):
    rng = _rng()
    m, n, k = size
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    want = a.astype("float64") @ b.astype("float64")
    tol = 2e-5 if dtype == "float32" else 1e-12
    lefts = [
        weft.asarray(a),
        weft.asarray(np.ascontiguousarray(a.T)).T,
        weft.asarray(np.repeat(a, 2, 1))[:, ::2],
    ]
    rights = [
        weft.asarray(b),
        weft.asarray(np.ascontiguousarray(b.T)).T,
        weft.asarray(np.repeat(b, 2, 1))[:, ::2],
        weft.asarray(b[::-1].copy())[::-1],
    ]
    for left in lefts:
        for right in rights:
            got = (left @ right).numpy()
            assert np.max(np.abs(got - want)) <= tol * max(1.0, k**0.5) * 4


@pytest.mark.parametrize("stride, padding", [(1, 1), (2, 0), (3, 2)])
def test_convolution_on_a_device_with_a_grid_is_one_kernel(stride, padding):
    device = weft.device("cuda:0")
    if not device.available:
        device = weft.device("opencl:0")
    if not device.available:
        pytest.skip(f"no device with a grid: {device.reason}")
    rng = _rng()
    x, w = rng.standard_normal((2, 3, 8, 7)), rng.standard_normal((4, 3, 3, 3))
    seed = None
    found = []
    for place in (device, weft.device("cpu")):
        t = [weft.Tensor(v.astype("float32"), device=place) for v in (x, w)]
        y = weft.nn.functional.conv2d(*t, stride=stride, padding=padding)
        assert y.op == "conv2d"
        seed = rng.standard_normal(y.shape).astype("float32") if seed is None else seed
        y.backward(weft.asarray(seed, device=place))
        found.append([y.numpy(), *(v.grad.numpy() for v in t)])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
