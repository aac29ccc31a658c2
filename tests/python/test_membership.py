# SPDX-License-Identifier: Apache-2.0
"""isin, and running extremes of long rows, beside NumPy."""

import numpy as np
import pytest

import weft

TYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n, m", [(1, 1), (17, 3), (1001, 50), (5003, 777), (129, 20001)])
def test_elements_of_a_set(n, m, dtype):
    rng = np.random.default_rng(n + m)
    most = 2 if dtype == "bool" else min(3 * m, 120)
    low = 0 if dtype[0] in "ub" else -most
    a, b = (rng.integers(low, most, k).astype(dtype) for k in (n, m))
    if dtype[0] == "f":
        for x in (a, b):
            x[::7], x[1::11], x[2::13], x[3::17] = np.nan, -0.0, np.inf, 0.5
    want = np.isin(a, b)
    x, y = weft.asarray(a), weft.asarray(b)
    np.testing.assert_array_equal(np.asarray(weft.isin(x, y)), want)
    np.testing.assert_array_equal(np.asarray(weft.isin(x, y, invert=True)), ~want)
    np.testing.assert_array_equal(np.asarray(weft.isin(x[::-2], y[::3])), np.isin(a[::-2], b[::3]))


def test_sets_of_other_types_and_shapes():
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 9, (7, 11)).astype("int32"), rng.integers(-9, 9, (5, 3)) / 2
    np.testing.assert_array_equal(
        np.asarray(weft.isin(weft.asarray(a), weft.asarray(b))), np.isin(a, b)
    )
    np.testing.assert_array_equal(
        np.asarray(weft.isin(weft.asarray(a.T), weft.asarray(b))), np.isin(a.T, b)
    )
    wide = rng.integers(-(2**62), 2**62, 4001)
    some = np.concatenate([wide[::5], wide[::7] + 1, [0x9E3779B97F4A7C15 - 2**64]])
    np.testing.assert_array_equal(
        np.asarray(weft.isin(weft.asarray(wide), weft.asarray(some))), np.isin(wide, some)
    )
    # The word that marks an entry without a value is a value like any other.
    mark = np.array([0x9E3779B97F4A7C15 - 2**64, 5, 0], dtype="int64")
    for values in ([5], [5, mark[0]], [1, 2, 3]):
        got = weft.isin(weft.asarray(mark), weft.asarray(np.array(values, dtype="int64")))
        np.testing.assert_array_equal(np.asarray(got), np.isin(mark, values))
    assert not np.asarray(weft.isin(weft.asarray(a), weft.asarray(np.zeros(0, "int32")))).any()
    assert np.asarray(weft.isin(weft.asarray(3), weft.asarray([1, 3]))).shape == ()


def running(a, better):
    values, places = a.copy(), np.zeros(len(a), "int64")
    for i in range(1, len(a)):
        at = places[i - 1]
        stays = np.isnan(a[at]) if a.dtype.kind == "f" else False
        new = (a.dtype.kind == "f" and np.isnan(a[i])) or (not stays and better(a[i], a[at]))
        places[i] = i if new else at
        values[i] = a[places[i]]
    return values, places


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8"])
@pytest.mark.parametrize("kind", ["random", "rising", "falling", "few values", "with nan", "late"])
def test_running_extremes_of_long_rows(kind, dtype):
    n = 1501
    a = np.random.default_rng(5).integers(-120, 120, n).astype(dtype)
    a = {"rising": np.sort(a), "falling": np.sort(a)[::-1], "few values": a % 3}.get(kind, a).copy()
    if kind == "with nan" and a.dtype.kind == "f":
        a[700], a[1203] = np.nan, np.nan
    if kind == "late":
        a[3], a[1499] = 120, 121
    for f, better in ((weft.cummax, np.greater_equal), (weft.cummin, np.less_equal)):
        values, places = running(a, better)
        got = f(weft.asarray(a), 0)
        np.testing.assert_array_equal(np.asarray(got[0]), values)
        np.testing.assert_array_equal(np.asarray(got[1]), places)
