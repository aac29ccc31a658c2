# SPDX-License-Identifier: Apache-2.0
"""Calls that take ways of their own on the host beside NumPy: columns by positions, in-place work on turned views, extremes of truth
values, limits of integers, counts, diagonals, quantiles."""

import numpy as np
import pytest
import weft

RNG = np.random.default_rng(15)


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "float32", "float64", "complex64", "complex128"]
)
def test_columns_by_positions(dtype):
    x = (RNG.standard_normal((5, 7, 9)) * 50).astype(dtype)
    w = weft.asarray(x)
    at = np.array([[3, -1, 0], [2, 2, -7]])
    for index in (at, at[0], np.array([], dtype="int64"), np.array(4)):
        for key in (
            (slice(None), index),
            (slice(1, 4), index),
            (Ellipsis, index),
            (slice(None), slice(None), index),
        ):
            np.testing.assert_array_equal(
                w[tuple(weft.asarray(k) if isinstance(k, np.ndarray) else k for k in key)].numpy(),
                x[key],
            )
    turned = w.permute(2, 1, 0)
    np.testing.assert_array_equal(turned[:, weft.asarray(at)].numpy(), x.transpose(2, 1, 0)[:, at])
    with pytest.raises(weft.IndexError, match="index 7 is outside axis"):
        w[:, weft.asarray(np.array([0, 7]))]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64", "complex64", "float16"])
def test_in_place_on_turned_views(dtype):
    x, y = ((RNG.standard_normal((13, 17)) * 9).astype(dtype) for _ in range(2))
    for other in ("number", "row", "column", "matrix", "turned", "itself"):
        a, w = x.copy(), weft.asarray(x.copy())
        b, v = {
            "number": (2, 2), "row": (y[0, :13], weft.asarray(y[0, :13])), "column": (y[0].reshape(17, 1), weft.asarray(y[0]).reshape(17, 1)),
            "matrix": (y.T.copy(), weft.asarray(y.T.copy())), "turned": (y.T, weft.asarray(y).T), "itself": (a.T, w.T),
        }[other]  # fmt: skip
        t, s = a.T, w.T
        t *= b
        s *= v
        np.testing.assert_array_equal(w.numpy(), a)
    # What overlaps is read before it is written.
    a = np.arange(16, dtype="int64").reshape(4, 4)
    w = weft.asarray(a.copy())
    turned, want = w.T, a.T + a
    turned += w
    np.testing.assert_array_equal(w.numpy(), want.T)


@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 40), (40, 3), (6, 257), (257, 6), (5, 120), (33, 16, 7)]
)
def test_extremes_of_truth_values_and_narrow_columns(shape):
    for share in (0.0, 0.02, 0.5, 0.98, 1.0):
        x = RNG.random(shape) < share
        for values in (
            x,
            x.astype("uint8"),
            RNG.integers(0, 5, shape).astype("int16"),
            RNG.integers(0, 9, shape) / 3,
        ):
            w = weft.asarray(values)
            for axis in (None, *range(len(shape))):
                for name in ("argmax", "argmin", "max", "min"):
                    got = getattr(weft, name)(w, axis=axis)
                    want = getattr(np, name)(values, axis=axis)
                    assert name[:3] == "arg" or got.dtype == w.dtype
                    np.testing.assert_array_equal(got.numpy(), want)
            for name in ("argmax", "argmin"):
                np.testing.assert_array_equal(
                    getattr(weft, name)(w.swapaxes(0, 1), axis=0).numpy(),
                    getattr(np, name)(values.swapaxes(0, 1), axis=0),
                )
    x = RNG.standard_normal((50, 6))
    x[RNG.random(x.shape) < 0.05] = np.nan
    for axis in (0, 1):
        np.testing.assert_array_equal(
            weft.argmax(weft.asarray(x), axis=axis).numpy(), np.argmax(x, axis=axis)
        )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_limits_of_integers(dtype):
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, 5000, dtype=dtype, endpoint=True)
    for part in (x[:7], x):
        w = weft.asarray(part)
        for low, high in ((3, 90), (None, 5), (7, None), (90, 3), (-(2**62), 2**62), (-1000, 1000)):
            lowest, highest = (
                None if v is None else min(max(v, info.min), info.max) for v in (low, high)
            )
            got = weft.clip(w, low, high)
            assert got.dtype == w.dtype
            np.testing.assert_array_equal(got.numpy(), np.clip(part, lowest, highest))
        np.testing.assert_array_equal(w.numpy(), part)


def test_counts():
    for n, most in ((0, 1), (1, 1), (6, 3), (5000, 100), (5000, 9000)):
        x = RNG.integers(0, most, n)
        np.testing.assert_array_equal(weft.bincount(weft.asarray(x)).numpy(), np.bincount(x))
        np.testing.assert_array_equal(
            weft.bincount(weft.asarray(x), minlength=200).numpy(), np.bincount(x, minlength=200)
        )
    with pytest.raises(weft.ArgumentError, match="bincount of -3"):
        weft.bincount(weft.asarray(np.array([1, -3])))
    x = RNG.standard_normal(3000)
    x[:3] = np.nan, np.inf, -np.inf
    for bins in (10, np.array([-1.0, 0.0, 0.5, 2.0])):
        between = None if isinstance(bins, np.ndarray) else (-2, 2)
        got = weft.histogram(
            weft.asarray(x), weft.asarray(bins) if between is None else bins, between
        )
        want = np.histogram(x[~np.isnan(x)], bins, between)
        np.testing.assert_array_equal(got[0].numpy(), want[0])


def test_diagonals():
    x = RNG.standard_normal((6, 9)).astype("float32")
    w = weft.asarray(x)
    for k in (-7, -2, 0, 3, 8):
        np.testing.assert_array_equal(weft.diag(w, k).numpy(), np.diag(x, k))
        np.testing.assert_array_equal(weft.diag(w[0], k).numpy(), np.diag(x[0], k))
        np.testing.assert_allclose(weft.trace(w, k).numpy(), np.trace(x, k), rtol=1e-6)
    copied = weft.diag(w)
    copied += 1
    np.testing.assert_array_equal(w.numpy(), x)


def test_quantiles_by_sorting():
    x = RNG.standard_normal((7, 31))
    w = weft.asarray(x)
    for axis in (None, 0, 1):
        np.testing.assert_allclose(
            weft.percentile(w, [0, 12.5, 50, 100], axis).numpy(),
            np.percentile(x, [0, 12.5, 50, 100], axis),
        )
        np.testing.assert_allclose(weft.median(w, axis).numpy(), np.median(x, axis))
    x[3, 4] = np.nan
    np.testing.assert_allclose(weft.median(weft.asarray(x), 1).numpy(), np.median(x, 1))
    np.testing.assert_allclose(weft.nanmedian(weft.asarray(x), 0).numpy(), np.nanmedian(x, 0))


def test_numbers_in_place_of_what_is_none():
    x = np.array([1.5, np.nan, np.inf, -np.inf, -0.0], "float32")
    for named in ({}, {"nan": 3.0}, {"posinf": 5.0, "neginf": -6.0}, {"nan": np.inf}):
        np.testing.assert_array_equal(
            weft.nan_to_num(weft.asarray(x), **named).numpy(), np.nan_to_num(x, **named)
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_of_whole_arrays(dtype):
    x = RNG.standard_normal((37, 41)).astype(dtype)
    for view in (x, x.T, x[::2]):
        got = weft.linalg.vector_norm(
            weft.asarray(x)
            if view is x
            else weft.asarray(x).T
            if view.shape[0] == 41
            else weft.asarray(x)[::2]
        )
        np.testing.assert_allclose(
            got.numpy(),
            np.linalg.norm(view.astype("float64")),
            rtol=1e-6 if dtype == "float32" else 1e-13,
        )
    assert weft.linalg.vector_norm(weft.asarray(np.zeros(0, dtype))).item() == 0
