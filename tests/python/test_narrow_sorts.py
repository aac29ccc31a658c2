# SPDX-License-Identifier: Apache-2.0
"""Positions of narrow integers in order, and reductions over few middle axes, beside NumPy."""

import numpy as np
import pytest
import weft


@pytest.mark.parametrize("n", [127, 128, 257, 511, 512, 513, 1271, 5003])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "bool"])
def test_positions(dtype, n):
    """Stable in both directions; rows too, and values at both ends of the type."""
    rng = np.random.default_rng(n)
    low, high = (0, 2) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    a = rng.integers(low, high, (3, n)).astype(dtype)
    a[1] = rng.integers(0, 2, n).astype(dtype)
    a[2, : n // 2] = low
    for descending in (False, True):
        keys = a.astype("int64") * (-1 if descending else 1)
        want = np.argsort(keys, axis=-1, kind="stable")
        got = weft.argsort(weft.asarray(a), axis=-1, descending=descending)
        np.testing.assert_array_equal(got.numpy(), want)
        one = weft.argsort(weft.asarray(a[0]), descending=descending)
        np.testing.assert_array_equal(one.numpy(), want[0])


@pytest.mark.parametrize("n", [255, 256, 1031, 5003])
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]
)
def test_small_ranges(dtype, n):
    """Integers whose keys differ in one digit or in two, about zero and far from it, in both directions; equal elements too."""
    rng = np.random.default_rng(n)
    info = np.iinfo("uint8" if dtype == "bool" else dtype)
    ranges = [(0, 2)] if dtype == "bool" else [(0, 100), (5, 6), (int(info.max) - 60, int(info.max)), (int(info.min), int(info.min) + 90)]  # fmt: skip
    if info.bits > 8:
        ranges += [(200, 300), (max(info.min, -40), 40), (0x1234, 0x1234 + 3)]
    for low, high in ranges:
        a = (rng.integers(0, high - low, n) + low).astype(dtype)
        for descending in (False, True):
            x = weft.asarray(a)
            want = np.sort(a)[::-1] if descending else np.sort(a)
            np.testing.assert_array_equal(weft.sort(x, descending=descending).numpy(), want)
            at = weft.argsort(x, descending=descending).numpy()
            np.testing.assert_array_equal(a[at], want)
            ties = np.flatnonzero(a[at][1:] == a[at][:-1])
            assert (at[ties] < at[ties + 1]).all()
        rows = np.stack([a, a[::-1], np.roll(a, 3)])
        np.testing.assert_array_equal(weft.sort(weft.asarray(rows)).numpy(), np.sort(rows))


@pytest.mark.parametrize(
    "shape", [(9, 9, 9), (3, 5, 8), (7, 15, 31), (2, 4, 8, 9), (11, 3, 7), (5, 2, 40)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "float16"])
def test_middle_axes(dtype, shape):
    a = np.random.default_rng(len(shape)).integers(0, 9, shape).astype(dtype)
    for view in (a, a.swapaxes(0, 1), a[::-1]):
        x = weft.asarray(view)
        for name in ("sum", "max", "min"):
            for axis in range(1, len(shape) - 1):
                want = getattr(np, name)(view, axis=axis)
                got = getattr(weft, name)(x, axis=axis)
                np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32", "float64", "float16"])
def test_distinct_values(dtype):
    for n in (1, 2, 7, 1031):
        a = np.random.default_rng(n).integers(0, 5 + n // 4, n).astype(dtype)
        want, counts = np.unique(a, return_counts=True)
        x = weft.asarray(a)
        np.testing.assert_array_equal(weft.unique_values(x).numpy(), want)
        found = weft.unique_counts(x)
        np.testing.assert_array_equal(found.values.numpy(), want)
        np.testing.assert_array_equal(found.counts.numpy(), counts)
    assert weft.unique_values(weft.zeros(0, dtype=dtype)).shape == (0,)
