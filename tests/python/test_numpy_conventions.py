# SPDX-License-Identifier: Apache-2.0
"""Arrays and NumPy: its functions, its methods, its strange types."""

import numpy as np
import pytest
from refusal import refused

import weft


def test_numpy_functions_take_arrays():
    x = np.arange(6.0).reshape(2, 3) + 1
    a = weft.asarray(x)
    for f in (
        np.sum,
        np.prod,
        np.max,
        np.min,
        np.mean,
        np.std,
        np.var,
        np.argmax,
        np.cumsum,
        np.ravel,
        np.squeeze,
    ):
        np.testing.assert_allclose(np.asarray(f(a)), f(x))
    assert np.all(a) and np.any(a)
    np.testing.assert_allclose(np.mean(a, axis=1), x.mean(1))
    np.testing.assert_allclose(np.std(a, axis=0, ddof=1), x.std(0, ddof=1))


def test_arrays_have_the_methods_of_numpy():
    x = np.random.RandomState(3).rand(3, 4, 2)
    a = weft.asarray(x)
    i = np.array([2, 0])
    for name, args in {
        "std": (1,),
        "var": (),
        "cumsum": (),
        "cumprod": (1,),
        "ravel": (),
        "flatten": (),
        "clip": (0.2, 0.7),
        "round": (1,),
        "transpose": (2, 0, 1),
        "swapaxes": (0, 2),
        "argsort": (1,),
        "take": (i, 1),
        "repeat": (2, 1),
        "conj": (),
    }.items():
        extra = {"axis": args[0]} if name == "argsort" else {"axis": 1} if name == "repeat" else {}
        given = () if name == "argsort" else args[:1] if name == "repeat" else args
        np.testing.assert_allclose(
            np.asarray(getattr(a, name)(*given, **extra)), getattr(x, name)(*args), err_msg=name
        )
    np.testing.assert_allclose(a[0].dot(a[1].T).numpy(), x[0] @ x[1].T)
    np.testing.assert_allclose(a.permute(2, 0, 1).numpy(), a.permute((2, 0, 1)).numpy())
    z = weft.asarray(x + 1j * x[::-1])
    np.testing.assert_array_equal(z.real.numpy(), x)
    np.testing.assert_array_equal(z.imag.numpy(), x[::-1])
    np.testing.assert_array_equal(a.imag.numpy(), 0 * x)
    assert [list(p) for p in weft.asarray([0, 3, 0, 1]).nonzero()] == [[1, 3]]
    assert f"{weft.asarray(2.5):.3f} {weft.asarray(7):03d}" == "2.500 007"
    assert round(weft.asarray(2.6)) == 3 and divmod(weft.asarray(7), 2)[0].item() == 3
    refused(weft.ArgumentError, "array.method.out", a.mean, out=a)
    with pytest.raises(ValueError):
        f"{a:.3f}"


def test_arrays_of_strings_and_dates_are_refused():
    for x in (np.array(["a"]), np.array(["2020-01-01"], dtype="datetime64[D]")):
        error = refused(weft.DTypeError, "array.asarray.type", weft.asarray, x)
        assert str(x.dtype) in error.message


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_where_of_reductions(name, axis):
    rng = np.random.default_rng(4)
    x = rng.random((6, 7)).astype("float32")
    x = x > 0.8 if name in ("any", "all") else x
    more = {"initial": 0.25} if name in ("max", "min") else {}
    for mask in (rng.random((6, 7)) < 0.7, np.arange(7) != 3, True):
        if name in ("mean", "var", "std") and not np.all(
            np.any(np.broadcast_to(mask, x.shape), axis=axis)
        ):
            continue
        want = getattr(np, name)(x, axis=axis, where=mask, **more)
        given = mask if mask is True else weft.asarray(mask)
        for got in (
            getattr(weft, name)(weft.asarray(x), axis=axis, where=given, **more),
            getattr(weft, name)(
                weft.asarray(x), axis=axis, keepdims=True, where=given, **more
            ).reshape(np.shape(want)),
        ):
            np.testing.assert_allclose(got.numpy(), want, rtol=2e-6)
    if name in ("max", "min"):
        with pytest.raises(weft.Error, match="array.reduce.initial"):
            getattr(weft, name)(weft.asarray(x), where=weft.asarray(x > 0.5))


def test_where_of_methods_and_of_gradients():
    x = np.arange(6.0).reshape(2, 3)
    y = weft.asarray(x)
    assert y.sum(where=y > 2).item() == 12 and y.sum(0, initial=1.0).tolist() == [4, 6, 8]
    assert y.max(axis=1, where=y < 5, initial=-1).tolist() == [2, 4]
    out = weft.zeros((3,), dtype="float64")
    assert y.sum(axis=0, out=out) is out and out.tolist() == [3, 5, 7]
    got = weft.grad(lambda t: weft.sum(t * t, where=weft.asarray(x > 2)))(y)
    np.testing.assert_allclose(got.numpy(), 2 * x * (x > 2))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_least_multiples(dtype):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0 if dtype[0] == "u" else -11, 12, 500).astype(dtype) for _ in range(2))
    got = weft.lcm(weft.asarray(a), weft.asarray(b))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.numpy(), np.lcm(a, b))
    np.testing.assert_array_equal(
        weft.lcm(weft.asarray(a), 6).numpy(), np.lcm(a, np.array(6, dtype))
    )


@pytest.mark.parametrize(
    "name",
    "add multiply maximum minimum logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor gcd lcm hypot logaddexp fmax fmin subtract".split(),
)
def test_methods_of_operations(name):
    x = np.random.default_rng(6).integers(1, 12, (5, 7))
    x = x / 7 if name in ("hypot", "logaddexp") else x
    y, f, want = weft.asarray(x), getattr(weft, name), getattr(np, name)

    def same(got, expected):
        assert got.dtype == str(expected.dtype)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)

    for axis in (0, 1, -1):
        same(f.accumulate(y, axis=axis), want.accumulate(x, axis=axis))
        if name == "subtract":
            continue
        same(f.reduce(y, axis=axis), want.reduce(x, axis=axis))
        same(f.reduce(y, axis, keepdims=True), want.reduce(x, axis, keepdims=True))
        same(f.reduceat(y, [0, 2, 3], axis=axis), want.reduceat(x, [0, 2, 3], axis=axis))
    if name == "subtract":
        return
    out = weft.asarray(np.zeros_like(want.reduce(x)))
    assert f.reduce(y, out=out) is out
    same(out, want.reduce(x))
    if name in ("add", "bitwise_or", "bitwise_and", "logical_or", "maximum"):
        more = {"initial": 1} if name == "maximum" else {}
        same(f.reduce(y, axis=1, where=y > 3, **more), want.reduce(x, axis=1, where=x > 3, **more))
    if name in ("add", "gcd", "bitwise_and", "bitwise_or", "logical_and"):
        same(f.reduce(y[:0]), want.reduce(x[:0]))
    if name == "fmax":
        with pytest.raises(weft.Error, match="array.reduce.empty"):
            f.reduce(y[:0])
        with pytest.raises(weft.Error, match="array.reduce.initial"):
            f.reduce(y, where=y > 3)


def test_running_combinations_into_arrays():
    x = np.array([3, 1, 4, 1, 5])
    y = weft.asarray(x)
    assert weft.maximum.accumulate(y, out=y) is y and y.tolist() == [3, 3, 4, 4, 5]


def test_functions_of_numpy_keep_the_graph_beside_numpys_arrays():
    t = weft.Tensor([2.0, 3.0], requires_grad=True)
    out = np.multiply(t, np.array([4.0, 5.0], np.float32))
    assert isinstance(out, weft.Tensor) and out.requires_grad
    out.sum().backward()
    assert t.grad.tolist() == [4, 5]
    beside = np.add(
        weft.ones(2), np.array([1, 2], object)
    )  # of what weft has no type for, NumPy's own
    assert [float(v) for v in beside] == [2, 3]


def test_other_ways_to_call_numpys_functions():
    """reduce, accumulate, outer, out= and where= are NumPy's, on the host."""
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    for given in (weft.asarray(x), weft.Tensor(weft.asarray(x), requires_grad=False)):
        for call in (
            lambda v: np.add.reduce(v),
            lambda v: np.maximum.reduce(v, axis=1),
            lambda v: np.multiply.accumulate(v, axis=1),
            lambda v: np.subtract.outer(v[0], v[1]),
            lambda v: np.add(v, v, where=np.array([True, False, True]), out=np.zeros((2, 3), np.float32)),
            lambda v: np.sqrt(v, dtype="float64"),
        ):  # fmt: skip
            want, found = call(x), call(given)
            np.testing.assert_array_equal(np.asarray(found), want)
            assert str(found.dtype) == str(want.dtype)
        out = np.empty((2, 3), np.float32)
        assert np.exp(given, out=out) is out
        np.testing.assert_array_equal(out, np.exp(x))
