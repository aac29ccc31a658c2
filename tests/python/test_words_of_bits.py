# SPDX-License-Identifier: Apache-2.0
"""Bits of bytes and counts of bits, interpolation between points, sums of slices, beside NumPy at odd sizes."""

import numpy as np
import pytest

import weft

WHOLE = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()


@pytest.mark.parametrize("dtype", WHOLE)
def test_counts_of_bits(dtype):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2 if dtype == "bool" else 2**63 - 1, 999).astype(dtype)
    if dtype[0] == "i":
        x[::3] = -x[::3]
        x[0] = np.iinfo(dtype).min
    want = [bin(abs(int(v))).count("1") for v in x]
    for _ in range(3):
        got = weft.bitwise_count(weft.asarray(x))
        assert got.dtype == "uint8" and np.asarray(got).tolist() == want
    assert np.asarray(weft.bitwise_count(weft.asarray(x)[::-2])).tolist() == want[::-2]


def turned(x):
    return weft.permute_dims(x, tuple(range(x.ndim))[::-1])


@pytest.mark.parametrize("shape", [(13,), (16,), (1,), (5, 24), (7, 9), (3, 8, 10)])
@pytest.mark.parametrize("order", ["big", "little"])
def test_bits_of_bytes(shape, order):
    x = np.random.default_rng(2).integers(0, 256, shape).astype("uint8")
    for axis in (None, *range(len(shape))):
        for a, w in (
            (x, weft.asarray(x)),
            (x.T, turned(weft.asarray(x))),
            (x[::-1], weft.asarray(x)[::-1]),
        ):
            given = dict(axis=axis, bitorder=order)
            np.testing.assert_array_equal(
                np.asarray(weft.packbits(w > 100, **given)), np.packbits(a > 100, **given)
            )
            np.testing.assert_array_equal(
                np.asarray(weft.packbits(w, **given)), np.packbits(a, **given)
            )
            for count in (None, 3, -2, 50):
                got = np.asarray(weft.unpackbits(w, count=count, **given))
                np.testing.assert_array_equal(got, np.unpackbits(a, count=count, **given))


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_lines_between_points(n):
    rng = np.random.default_rng(n)
    xp, fp = np.sort(rng.random(n) * 5), rng.random(n)
    q = np.concatenate([rng.random(501) * 8 - 1, xp, [np.inf, -np.inf]])
    if n > 3:
        xp[5] = xp[4]
        q[7] = np.nan
    x, f, w = weft.asarray(xp), weft.asarray(fp), weft.asarray(q)
    for ends in ({}, dict(left=-3.0), dict(right=9.0), dict(left=0, right=1)):
        got = np.asarray(weft.interp(w, x, f, **ends))
        np.testing.assert_array_equal(got, np.interp(q, xp, fp, **ends))
    thin = np.asarray(weft.interp(w.astype("float32"), x.astype("float32"), f.astype("float32")))
    assert thin.dtype == "float32"
    given = [np.asarray(v).astype("float32") for v in (q, xp, fp)]
    np.testing.assert_allclose(thin, np.interp(*given), rtol=1e-4, atol=1e-4)
    grid = np.asarray(weft.interp(w[:500].reshape(20, 25), x, f))
    np.testing.assert_array_equal(grid, np.interp(q[:500].reshape(20, 25), xp, fp))
    turned = np.sort(rng.random(n) * 5)
    got = np.asarray(weft.interp(w[:-2], weft.asarray(turned), f, period=2.0))
    np.testing.assert_allclose(got, np.interp(q[:-2], turned, fp, period=2.0), rtol=1e-12)


def test_gradients_of_lines():
    xp, fp, q = (
        np.array([0.0, 1.0, 1.0, 3.0]),
        np.array([1.0, 2.0, 5.0, 4.0]),
        np.array([-1.0, 0.25, 1.0, 2.0, 4.0]),
    )
    slope = weft.grad(lambda v: weft.interp(v, weft.asarray(xp), weft.asarray(fp)).sum())(
        weft.asarray(q)
    )
    assert np.asarray(slope).tolist() == [0.0, 1.0, -0.5, -0.5, 0.0]
    weights = weft.grad(lambda f: weft.interp(weft.asarray(q), weft.asarray(xp), f).sum())(
        weft.asarray(fp)
    )
    np.testing.assert_allclose(np.asarray(weights), [1.75, 0.25, 1.5, 1.5])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "complex64"])
@pytest.mark.parametrize("count", [3, 5, 40])
def test_sums_of_slices(count, dtype):
    rng = np.random.default_rng(count)
    x, places = (
        (rng.random(1001) * 9).astype(dtype),
        np.sort(rng.choice(1001, count, replace=False)),
    )
    got = np.asarray(weft.add.reduceat(weft.asarray(x), places))
    np.testing.assert_allclose(got, np.add.reduceat(x, places), rtol=1e-5)


def test_grids_of_positions():
    for shape in ((2, 3), (4,), (3, 1, 5)):
        np.testing.assert_array_equal(np.asarray(weft.indices(shape)), np.indices(shape))
    assert weft.indices((2, 3), dtype="float32").dtype == "float32"


def test_searchsorted_of_tensors():
    ends = weft.Tensor(np.array([0.0, 1.0, 2.0], "float32"))
    found = weft.searchsorted(ends, weft.Tensor(np.array([0.5, 2.0, 9.0], "float32")))
    assert np.asarray(found).tolist() == [1, 2, 3]
