# SPDX-License-Identifier: Apache-2.0
"""Copies that exchange the contiguous axis (array/transpose.cpp), at sizes around its blocks and with rows that start anywhere, shifts and
quotients of narrow integers by a number, membership and permutations, beside NumPy."""

import numpy as np
import pytest
import weft

SIZES = [(8, 8), (9, 16), (15, 17), (129, 300), (301, 131), (16, 2051), (2051, 16), (257, 1030)]
TYPES = ("uint8", "int16", "float32", "int64", "complex128")


def drawn(shape, dtype):
    return np.random.default_rng(len(shape)).integers(-99, 99, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_matrices(shape, dtype):
    x = drawn(shape, dtype)
    w = weft.asarray(x)
    np.testing.assert_array_equal(np.asarray(w.T.copy()), x.T)
    np.testing.assert_array_equal(np.asarray(w[::-1].T.copy()), x[::-1].T)
    np.testing.assert_array_equal(np.asarray(w[:, ::-1].T.copy()), x[:, ::-1].T)
    np.testing.assert_array_equal(np.asarray(w[1:, 1:].T.copy()), x[1:, 1:].T)


@pytest.mark.parametrize("dtype", TYPES)
def test_into_a_part_of_an_array(dtype):
    x, out = drawn((131, 75), dtype), drawn((3, 80, 140), dtype)
    w, o = weft.asarray(x), weft.asarray(out)
    o[1, 2:77, 5:136] = w.T
    out[1, 2:77, 5:136] = x.T
    np.testing.assert_array_equal(np.asarray(o), out)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", [(2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1), (1, 0, 2)])
def test_axes_of_three(order, dtype):
    x = drawn((19, 33, 70), dtype)
    got = weft.permute_dims(weft.asarray(x), order).copy()
    np.testing.assert_array_equal(np.asarray(got), np.transpose(x, order))


def test_rows_of_a_large_result():
    x = drawn((1500, 1001), "int64")  # past the caches where rows are aligned
    np.testing.assert_array_equal(np.asarray(weft.asarray(x).T.copy()), x.T)
    np.testing.assert_array_equal(np.asarray(weft.asarray(x[:1496]).T.copy()), x[:1496].T)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_every_narrow_number_shifted_and_divided(dtype):
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1, dtype=dtype)
    w = weft.asarray(x)
    for by in range(info.bits):
        np.testing.assert_array_equal(np.asarray(w >> by), x >> np.array(by, dtype))
    for by in (1, 2, 3, 7, 64, 100, info.max):
        np.testing.assert_array_equal(np.asarray(w // by), x // np.array(by, dtype))
        np.testing.assert_array_equal(np.asarray(w % by), x % np.array(by, dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_membership(dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(4)
    x = rng.integers(info.min, info.max, 3000, dtype, endpoint=True)
    near = rng.integers(max(info.min, -50), 100, 3000).astype(dtype)
    ends = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1], dtype)
    for values in (x[:40], near[:40], ends, near[:1], near[:0], np.array([info.max, info.max - 3], dtype)):  # fmt: skip
        for among in (x, near, np.concatenate([ends, near]), x[:1], x[:0]):
            got = weft.isin(weft.asarray(among), weft.asarray(values))
            np.testing.assert_array_equal(np.asarray(got), np.isin(among, values))


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000, 70_000])
def test_permutations_are_the_order_of_the_stream(n):
    key = weft.random.key(5)
    words = np.asarray(weft._core._random_bits(key.seed, key.offset, 2 * n, None))
    want = np.argsort(words.astype("<u4").view("<u8"), kind="stable")
    np.testing.assert_array_equal(np.asarray(weft.random.permutation(n, key=key)), want)
