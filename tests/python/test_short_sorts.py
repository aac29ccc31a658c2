# SPDX-License-Identifier: Apache-2.0
"""Sorting of short lines along any axis beside NumPy, bit for bit."""

import numpy as np
import pytest
import weft

TYPES = ["float32", "float64", "int32", "uint32", "int64", "uint64", "int16", "float16"]
SHAPES = [  # shape, axis: lengths and numbers of lines about the ends of what each method takes
    ((2, 8), 0), ((3, 17), 0), ((100, 10), 0), ((129, 9), 0), ((128, 16), 0), ((256, 31), 0), ((257, 33), 0),
    ((8, 2), 1), ((17, 3), 1), ((10, 100), 1), ((9, 129), 1), ((33, 256), 1), ((7, 5), 1), ((5, 7), 0),
    ((3, 20, 5), 1), ((3, 20, 11), 1), ((2, 3, 4, 40), 2), ((6, 3, 19), 0), ((31,), 0), ((0, 9), 0), ((9, 0), 0), ((9, 0), 1),
    ((1, 40), 0), ((40, 1), 0), ((40, 1), 1),
]  # fmt: skip


def drawn(shape, dtype):
    rng = np.random.default_rng(len(shape) * 1000 + sum(shape))
    if dtype[0] == "f":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.3, rng.integers(0, 3, shape).astype(dtype), x)


def stable(x, axis, descending):
    """NaN last in either direction, equal elements in their order, as the array API standard has it."""
    keys = x.astype("float32") if x.dtype == "float16" else x
    if not descending:
        return np.take_along_axis(x, np.argsort(keys, axis=axis, kind="stable"), axis)
    order = np.argsort(np.flip(keys, axis), axis=axis, kind="stable")
    at = x.shape[axis] - 1 - np.flip(order, axis)
    nan = np.take_along_axis(np.isnan(keys.astype("float64")), at, axis)
    at = np.take_along_axis(at, np.argsort(nan, axis=axis, kind="stable"), axis)
    return np.take_along_axis(x, at, axis)


def same_bits(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("descending", [False, True])
def test_short_lines(dtype, shape, axis, descending):
    x = drawn(shape, dtype)
    got = weft.sort(weft.asarray(x), axis=axis, descending=descending).numpy()
    same_bits(got, stable(x, axis, descending))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("view", ["transposed", "stepped", "reversed", "broadcast"])
def test_short_lines_of_views(dtype, view):
    def seen(m):
        return {
            "transposed": lambda: m.T,
            "stepped": lambda: m[1:, ::3],
            "reversed": lambda: m[::-1, ::-1],
            "broadcast": lambda: m[:1],
        }[view]()

    x = drawn((37, 41), dtype)
    before = x.copy()
    w = weft.asarray(x)
    for axis in (0, 1):
        got = weft.sort(seen(w), axis=axis).numpy()
        same_bits(got, stable(np.ascontiguousarray(seen(x)), axis, False))
    same_bits(w.numpy(), before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_infinities_zeros_and_nan(dtype, descending, axis):
    rng = np.random.default_rng(4)
    plain = rng.choice([np.inf, -np.inf, 0.0, 1.5, -1.5, 1e-40], (50, 50)).astype(dtype)
    special = rng.choice([np.nan, -np.nan, -0.0, 0.0, np.inf, -np.inf, 2.0], (50, 50)).astype(dtype)
    for x in (plain, special):
        got = weft.sort(weft.asarray(x), axis=axis, descending=descending).numpy()
        same_bits(got, stable(x, axis, descending))


def test_every_short_length():
    """All lines of zeros and ones of lengths up to 12, random permutations beyond."""
    for n in range(2, 13):
        x = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype("int32")
        np.testing.assert_array_equal(
            weft.sort(weft.asarray(x), axis=1).numpy(), np.sort(x, axis=1)
        )
    rng = np.random.default_rng(8)
    for n in range(13, 258):
        x = rng.permuted(np.tile(np.arange(n, dtype="int32"), (16, 1)), axis=1)
        np.testing.assert_array_equal(
            weft.sort(weft.asarray(x), axis=1).numpy(), np.sort(x, axis=1)
        )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("largest", [True, False])
def test_best_of_short_lines(dtype, largest):
    """Rows side by side, one after the other, and too long for either, with ties across the k-th place."""
    for (rows, n), k in (
        ((40, 58), 5), ((3, 58), 5), ((17, 58), 1), ((33, 9), 2), ((19, 4), 1), ((9, 256), 60),
        ((9, 257), 7), ((100, 130), 31), ((1, 77), 3), ((21, 40), 0),
    ):  # fmt: skip
        x = drawn((rows, n), dtype)
        x[rows // 2] = x[0, 0]  # all equal
        keys = x.astype("float64") if dtype[0] == "f" else x.astype(object)
        order = np.argsort(-keys if largest else keys, axis=1, kind="stable")[:, :k]
        values, at = weft.topk(weft.asarray(x), k, largest=largest)
        np.testing.assert_array_equal(at.numpy(), order)
        same_bits(values.numpy(), np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("largest", [True, False])
def test_best_of_doubles_that_share_their_upper_halves(largest):
    """Differences in the last places alone, on both sides of the k-th place."""
    rng = np.random.default_rng(11)
    x = 1 + rng.integers(0, 40, (30, 50)) * 2.0**-52
    x[::3] = rng.choice([1.0, 1 + 2.0**-52, 3.0, np.nan, -0.0, 0.0, np.inf, -np.inf], (10, 50))
    for k in (1, 4, 12):
        keys = -x if largest else x  # NaN last
        order = np.argsort(keys, axis=1, kind="stable")[:, :k]
        values, at = weft.topk(weft.asarray(x), k, largest=largest)
        np.testing.assert_array_equal(at.numpy(), order)
        same_bits(values.numpy(), np.take_along_axis(x, order, 1))
