# SPDX-License-Identifier: Apache-2.0
"""Operands in any layout, repeated elements, views and selections beside NumPy."""

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(20261122)
LAYOUTS = {
    "transposed": lambda a: a.swapaxes(-1, -2),
    "rotated": lambda a: np.moveaxis(a, 0, -1),
    "reversed": lambda a: a[::-1, :, ::-1],
    "strided": lambda a: a[:, ::2, 1:],
    "row for all": lambda a: np.broadcast_to(a[0, 0], a.shape),
    "plane for all": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "one for all": lambda a: np.broadcast_to(a[0, 0, 0], a.shape),
}
DTYPES = ["float32", "float64", "float16", "int8", "int32", "uint64", "bool", "complex64"]


def _values(dtype, shape=(6, 10, 34)):
    x = RNG.standard_normal(shape) * 4
    if dtype == "bool":
        return x > -3
    if dtype == "complex64":
        return (x + 1j * RNG.standard_normal(shape)).astype(dtype)
    return np.abs(x).astype(dtype) if dtype == "uint64" else x.astype(dtype)


def _same_view(a, layout):
    """The weft array with the layout's strides, not a copy."""
    view = layout(a)
    step = [s // a.itemsize for s in view.strides]
    start = (view.__array_interface__["data"][0] - a.__array_interface__["data"][0]) // a.itemsize
    flat = weft.asarray(a).reshape(-1)
    if min(step) < 0:
        return weft.flip(weft.asarray(a), axis=(0, 2))
    return flat[start:].as_strided(view.shape, step)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_reductions_in_any_layout(layout, dtype):
    a = _values(dtype)
    view, x = LAYOUTS[layout](a), _same_view(a, LAYOUTS[layout])
    np.testing.assert_array_equal(x.numpy(), view)
    names = ["sum", "all", "any"] + (["max", "min"] if dtype != "complex64" else [])
    names = ["all", "any"] if dtype == "bool" else names
    for name in names:
        for axis in (None, 0, 1, 2, (0, 2), (1, 2)):
            got = getattr(weft, name)(x, axis=axis, keepdims=axis == 1).numpy()
            wide = view.astype("float64") if dtype in ("float16", "float32") else view
            want = np.asarray(getattr(np, name)(wide, axis=axis, keepdims=axis == 1))
            assert got.shape == want.shape
            tol = {"float16": 3e-3, "float32": 1e-4, "complex64": 1e-4}.get(dtype, 1e-11)
            np.testing.assert_allclose(got, want, rtol=tol, atol=tol * 50)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "complex64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_element_wise_in_any_layout(layout, dtype):
    a, b = _values(dtype), _values(dtype)
    va, vb = LAYOUTS[layout](a), LAYOUTS[layout](b)
    x, y = _same_view(a, LAYOUTS[layout]), _same_view(b, LAYOUTS[layout])
    row = va[0, 0].copy()
    for got, want in (
        (x + y, va + vb),
        (x * y.copy(), va * vb),
        (x + weft.asarray(row), va + row),
        (x * 2, va * 2),
        (2 - x, 2 - va),
        (-x, -va),
        (x == y, va == vb),
    ):
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-3 if dtype == "float16" else 1e-6)
    flat = (x + y).reshape(-1).numpy()  # row-major, whatever the layout
    np.testing.assert_allclose(
        flat, (va + vb).reshape(-1), rtol=2e-3 if dtype == "float16" else 1e-6
    )


def test_results_have_the_operands_layout():
    x = weft.ones((3, 5)).T
    assert (x + x).strides == x.strides and weft.exp(x).strides == x.strides
    assert (x + x.copy()).is_contiguous()


def test_sums_of_repeated_elements():
    x = weft.broadcast_to(weft.asarray(np.float32(0.1)), (1000, 1000))
    assert float(weft.sum(x)) == pytest.approx(1e5, rel=1e-6)
    assert int(weft.sum(weft.broadcast_to(weft.asarray(np.int8(100)), (7,)), dtype="int8")) == -68
    assert np.isnan(float(weft.max(weft.broadcast_to(weft.asarray(np.float32("nan")), (9, 9)))))
    assert float(weft.prod(weft.broadcast_to(weft.asarray(np.float64(2)), (10,)))) == 1024
    assert weft.sum(weft.broadcast_to(weft.ones((1, 3)), (0, 3)), axis=0).tolist() == [0, 0, 0]


def test_views_share_memory():
    x = weft.asarray(RNG.standard_normal((4, 6)).astype("float32"))
    turned = weft.einsum("ij->ji", x)
    diagonal = weft.linalg.diagonal(x, offset=1)
    second = weft.unstack(x, axis=1)[1]
    x[1, 2] = 7.0
    x[0, 1] = 5.0
    assert float(turned[2, 1]) == 7 and float(diagonal[1]) == 7 and float(second[0]) == 5
    a = x.numpy()
    for offset in (-5, -4, -1, 0, 2, 5, 6, 9):
        np.testing.assert_array_equal(
            weft.linalg.diagonal(x, offset=offset).numpy(), np.diagonal(a, offset)
        )
        assert float(weft.linalg.trace(x, offset=offset)) == pytest.approx(
            np.trace(a, offset), abs=1e-5
        )
    np.testing.assert_array_equal(weft.einsum("ij", x).numpy(), a)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "int8", "uint32", "int64", "bool"]
)
def test_topk_selects_as_argsort_orders(dtype):
    a = _values("float32", (5, 700)) if dtype != "bool" else _values("bool", (5, 700))
    a = np.round(np.abs(a) if dtype == "uint32" else a).astype(dtype)
    if dtype.startswith("float"):
        a[1, ::3], a[2, :], a[3, 5] = np.nan, np.nan, np.inf
    x = weft.asarray(a)
    for axis in (1, 0):
        for largest in (True, False):
            for k in (0, 1, 3, 5, 40) if axis else (0, 1, 5):
                values, places = weft.topk(x, k, axis=axis, largest=largest)
                order = weft.argsort(x, axis=axis, descending=largest).numpy()
                want = order.take(range(k), axis)
                np.testing.assert_array_equal(places.numpy(), want)
                np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, want, axis))


def test_lists_of_all_types():
    for dtype in DTYPES:
        a = _values(dtype, (2, 3, 2))
        got = weft.asarray(a).tolist()
        assert got == a.tolist() and type(got[0][0][0]) is type(a.tolist()[0][0][0])
    assert weft.ones((0, 3)).tolist() == [] and weft.ones((2, 0)).tolist() == [[], []]
    assert weft.asarray([[1, 2], [3, 4]]).T.tolist() == [[1, 3], [2, 4]]
    assert weft.asarray(3).tolist() == 3


def test_repeated_and_counted():
    x, counts = RNG.integers(0, 50, 1000), RNG.integers(0, 4, 1000)
    got = weft.repeat(weft.asarray(x), weft.asarray(counts))
    np.testing.assert_array_equal(got.numpy(), np.repeat(x, counts))
    np.testing.assert_array_equal(weft.Tensor(weft.asarray(x)).bincount().numpy(), np.bincount(x))


def test_halves_are_rounded_as_numpy_rounds_them():
    half = np.arange(65536, dtype="uint16").view("float16")
    wide = weft.asarray(half).astype("float32").numpy()
    np.testing.assert_array_equal(wide, half.astype("float32"))
    bits = half.astype("float32").view("uint32")[:, None]
    near = (bits + np.array([0, 0xFFF, 0x1000, 0x1001, 0xFFFFFFFF], "uint32")).ravel()
    any_bits = RNG.integers(0, 2**32, 200_000, dtype=np.uint64).astype("uint32")
    floats = np.concatenate([near, any_bits]).view("float32")
    with np.errstate(all="ignore"):
        want = floats.astype("float16")
    np.testing.assert_array_equal(weft.asarray(floats).astype("float16").numpy(), want)


def test_limits_of_integers_that_are_no_integers():
    x = np.arange(-2, 5)
    np.testing.assert_array_equal(
        weft.clip(weft.asarray(x), 0.5, 2.5).numpy(), np.clip(x, 0.5, 2.5)
    )
    assert weft.clip(weft.asarray(x), 0, 2).dtype == "int64"
    assert weft.clip(weft.asarray(x.astype("uint8")), -5, 1000).dtype == "uint8"
    assert np.isnan(weft.clip(weft.asarray(x), float("nan"), 3.0).numpy()).all()


def test_negative_exponents_of_integers_are_refused():
    x = weft.asarray([1, 2])
    for power in (
        lambda: x**-1,
        lambda: x ** weft.asarray([1, -1]),
        lambda: 2 ** weft.asarray([-1]),
        lambda: x.__ipow__(-2),
        lambda: weft.pow(x.astype("int8"), weft.asarray([-3, 1], dtype="int8")),
    ):
        with pytest.raises(weft.ArgumentError, match="negative exponent") as caught:
            power()
        assert caught.value.code == "array.pow.negative"
    assert (x ** weft.asarray([3, 0])).tolist() == [1, 1] and (x**0).tolist() == [1, 1]
    assert (x**-1.0).tolist() == [1.0, 0.5]


def test_masks_of_no_elements():
    a = np.ones((3, 4), "float32")
    x, none = weft.asarray(a), weft.zeros((0,), dtype="bool")
    assert x[none].shape == a[np.zeros(0, bool)].shape == (0, 4)
    x[none] = 5.0
    assert float(weft.sum(x)) == 12
    with pytest.raises(weft.Error) as caught:
        x[weft.zeros((0, 2), dtype="bool")]
    assert caught.value.code == "array.index.mask"


@pytest.mark.parametrize("name", ["svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv"])
def test_iterations_refuse_what_is_not_finite(name):
    a = np.stack([np.eye(3), np.full((3, 3), np.nan)]).astype("float32")
    with pytest.raises(weft.ArgumentError, match="matrix 1 of .* holds NaN or infinity") as caught:
        getattr(weft.linalg, name)(weft.asarray(a))
    assert caught.value.code in ("array.svd.finite", "array.eigh.finite", "array.eig.finite")


def test_borders_as_pairs_are_refused_with_the_repair():
    with pytest.raises(weft.ArgumentError, match="weft.pad takes a pair") as caught:
        weft.nn.functional.pad(weft.ones((2, 3)), ((1, 1), (0, 0)))
    assert caught.value.code == "nn.pad.widths"


def test_windows_of_every_step_beside_numpy():
    x = RNG.standard_normal((2, 3, 17, 19)).astype("float32")
    t = weft.Tensor(weft.asarray(x))
    for k, s in ((2, 2), (3, 1), (3, 2), (5, 3)):
        w = np.lib.stride_tricks.sliding_window_view(x, (k, k), (2, 3))[:, :, ::s, ::s]
        F = weft.nn.functional
        np.testing.assert_array_equal(F.max_pool2d(t, k, s).numpy(), w.max((4, 5)))
        np.testing.assert_allclose(
            F.avg_pool2d(t, k, s).numpy(), w.mean((4, 5)), rtol=1e-4, atol=1e-5
        )
