# SPDX-License-Identifier: Apache-2.0
"""Sorts, extremes, searches and sets of complex numbers: NumPy's order, by real part and then by imaginary part."""

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(20261129)


def numbers(*shape, dtype="complex128", nan=False):
    # Few different parts, so that real parts are equal often.
    x = RNG.integers(-2, 3, shape) + 1j * RNG.integers(-2, 3, shape)
    x = x.astype(dtype)
    if nan:
        x.real[RNG.random(shape) < 0.1] = np.nan
        x.imag[RNG.random(shape) < 0.1] = np.nan
    return x


def bits(x):
    return np.ascontiguousarray(x).view(np.float64 if x.dtype == np.complex128 else np.float32)


@pytest.fixture(params=["cpu", "opencl:0"])
def device(request):
    found = weft.device(request.param)
    if not found.available:
        pytest.skip(found.reason.splitlines()[0])
    return found


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("shape, axis", [((1,), 0), ((37,), 0), ((5, 23), 1), ((7, 3, 4), 0)])
def test_sorts(dtype, nan, shape, axis):
    x = numbers(*shape, dtype=dtype, nan=nan)
    a = weft.asarray(x)
    order = np.argsort(x, axis=axis, kind="stable")
    np.testing.assert_array_equal(weft.argsort(a, axis=axis).numpy(), order)
    want = np.take_along_axis(x, order, axis)
    np.testing.assert_array_equal(bits(weft.sort(a, axis=axis).numpy()), bits(want))
    down = weft.sort(a, axis=axis, descending=True).numpy()
    clean = ~np.isnan(want).any(axis=axis, keepdims=True)
    np.testing.assert_array_equal(np.where(clean, down, 0), np.where(clean, np.flip(want, axis), 0))


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), (0, 1, 2)])
def test_extremes(axis, nan):
    x = numbers(6, 5, 9, nan=nan)
    a = weft.asarray(x)
    for name in ("max", "min"):
        for keepdims in (False, True):
            want = getattr(np, name)(x, axis=axis, keepdims=keepdims)
            got = getattr(weft, name)(a, axis=axis, keepdims=keepdims).numpy()
            assert got.shape == want.shape
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            np.testing.assert_array_equal(got[~np.isnan(got)], want[~np.isnan(want)])
        if axis is None or isinstance(axis, int):
            want = getattr(np, f"arg{name}")(x, axis=axis)
            np.testing.assert_array_equal(getattr(weft, f"arg{name}")(a, axis=axis).numpy(), want)


def test_larger_and_smaller():
    x, y = numbers(200, nan=True), numbers(200, nan=True)
    for name in ("maximum", "minimum"):
        got = getattr(weft, name)(weft.asarray(x), weft.asarray(y)).numpy()
        np.testing.assert_array_equal(bits(got), bits(getattr(np, name)(x, y)))
        got = getattr(weft, name)(weft.asarray(x), 1.0).numpy()
        np.testing.assert_array_equal(bits(got), bits(getattr(np, name)(x, 1.0)))


def test_sets_and_searches():
    x, y = numbers(60), numbers(15)
    a, b = weft.asarray(x), weft.asarray(y)
    for got, want in zip(
        weft.unique(a, True, True, True), np.unique(x, True, True, True), strict=True
    ):
        np.testing.assert_array_equal(got.numpy(), want)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"):
        got = getattr(weft, name)(a, b).numpy()
        np.testing.assert_array_equal(got, getattr(np, name)(x, y), err_msg=name)
    for side in ("left", "right"):
        got = weft.searchsorted(weft.sort(a), b, side=side).numpy()
        np.testing.assert_array_equal(got, np.searchsorted(np.sort(x), y, side=side))
    np.testing.assert_array_equal(weft.topk(a, 3)[0].numpy(), np.sort(x)[::-1][:3])
    np.testing.assert_array_equal(weft.maximum.accumulate(a).numpy(), np.maximum.accumulate(x))


def test_on_devices(device):
    x = numbers(40, dtype="complex64")
    a = weft.asarray(x, device=device)
    np.testing.assert_array_equal(weft.sort(a).numpy(), np.sort(x))
    np.testing.assert_array_equal(weft.max(a).numpy(), x.max())
    np.testing.assert_array_equal(weft.argmin(a).numpy(), x.argmin())
    if not device.host_accessible:
        with pytest.raises(weft.DTypeError) as refusal:
            weft.searchsorted(weft.sort(a), a)
        assert refusal.value.code == "array.searchsorted.dtype" and "complex64" in str(
            refusal.value
        )


def test_nothing_has_no_extreme():
    with pytest.raises(weft.ArgumentError) as refusal:
        weft.max(weft.zeros((0,), dtype="complex64"))
    assert refusal.value.code == "array.max.empty"
    assert weft.sort(weft.zeros((0, 3), dtype="complex64")).shape == (0, 3)
