# SPDX-License-Identifier: Apache-2.0
"""Runs of equal elements, selections and long sorts of cards beside NumPy: sizes around the tiles, keys of few numbers."""

import numpy as np
import pytest
from present import present

import weft

TILE = 4096  # of a selection and of a sort
SIZES = [1, 2, 255, 257, TILE - 1, TILE, TILE + 1, 3 * TILE + 5, 70_001]
DTYPES = ["int8", "uint16", "int32", "int64", "float16", "float32", "float64", "bool"]


@pytest.fixture(scope="module", params=["opencl:0", "cuda:0"])
def grid(request):
    return present(request.param)


def draw(n, dtype, most, seed=0):
    x = np.random.default_rng(seed + n).integers(0, most, n)
    return (
        (x > most // 2)
        if dtype == "bool"
        else (x - (most // 2 if dtype[0] != "u" else 0)).astype(dtype)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_distinct_elements_and_their_counts(grid, n, dtype):
    for most in (2, 90, 10**6 if dtype[-2:] in ("32", "64") else 120):
        x = draw(n, dtype, most)
        a = weft.asarray(x, device=grid)
        values, counts = np.unique(x, return_counts=True)
        assert np.array_equal(weft.unique_values(a).numpy(), values)
        found = weft.unique_counts(a)
        assert found.values.dtype == a.dtype and found.counts.dtype == weft.int64
        assert np.array_equal(found.values.numpy(), values)
        assert np.array_equal(found.counts.numpy(), counts)


@pytest.mark.parametrize("n", SIZES)
def test_runs_as_they_come(grid, n):
    x = np.repeat(
        np.random.default_rng(n).integers(0, 3, n), np.random.default_rng(n + 1).integers(1, 5, n)
    )[:n]
    a = weft.asarray(x.astype("int32"), device=grid)
    starts = np.flatnonzero(np.r_[True, x[1:] != x[:-1]])
    lengths = np.diff(np.r_[starts, n])
    values, inverse, counts = weft.unique_consecutive(a, True, True)
    assert np.array_equal(weft.unique_consecutive(a).numpy(), x[starts])
    assert np.array_equal(values.numpy(), x[starts]) and np.array_equal(counts.numpy(), lengths)
    assert np.array_equal(inverse.numpy(), np.repeat(np.arange(len(starts)), lengths))
    # A view that begins inside an array and does not lie in vectors.
    if n > 3:
        part = x[3:]
        at = np.flatnonzero(np.r_[True, part[1:] != part[:-1]])
        assert np.array_equal(weft.unique_consecutive(a[3:]).numpy(), part[at])
        stepped = x[::2]
        at = np.flatnonzero(np.r_[True, stepped[1:] != stepped[:-1]])
        assert np.array_equal(weft.unique_consecutive(a[::2]).numpy(), stepped[at])


def test_special_numbers(grid):
    x = np.array([np.nan, 1, -0.0, 0.0, np.inf, np.nan, -np.inf, 1, 0.0] * 700, "float32")
    got = weft.unique_values(weft.asarray(x, device=grid)).numpy()
    want = weft.unique_values(weft.asarray(x)).numpy()
    assert np.array_equal(got, want, equal_nan=True) and np.isnan(got).sum() == 1400
    assert weft.unique_values(weft.zeros((0,), device=grid)).shape == (0,)
    assert [
        v.shape for v in weft.unique_consecutive(weft.zeros((0,), device=grid), True, True)
    ] == [(0,)] * 3


@pytest.mark.parametrize("shape", [(1,), (4095,), (4097,), (3, 1400), (7, 11, 131)])
def test_masks(grid, shape):
    rng = np.random.default_rng(sum(shape))
    for share in (0.0, 0.01, 0.5, 1.0):
        x = rng.standard_normal(shape).astype("float32")
        mask = rng.random(shape) < share
        a, m = weft.asarray(x, device=grid), weft.asarray(mask, device=grid)
        assert np.array_equal(a[m].numpy(), x[mask])
        assert all(np.array_equal(g.numpy(), w) for g, w in zip(weft.nonzero(m), np.nonzero(mask)))
        whole = weft.nonzero(weft.asarray(x * mask, device=grid))
        assert all(np.array_equal(g.numpy(), w) for g, w in zip(whole, np.nonzero(x * mask)))


SORTED = ["uint16", "int32", "uint32", "int64", "float32", "float64"]


@pytest.mark.parametrize("dtype", SORTED)
@pytest.mark.parametrize("n", [TILE + 1, 3 * TILE, 5 * TILE + 777])
def test_long_sorts_of_keys_with_equal_digits(grid, n, dtype):
    """From some pass on all keys of a tile share a digit, or all but one tile do."""
    rng = np.random.default_rng(n)
    few = rng.integers(1, 100, n).astype(dtype)
    some = few.copy()
    some[rng.integers(0, n, 9)] = 30_000  # other digits in a few tiles
    constant = np.full(n, 7, dtype)
    signed = few if dtype[0] == "u" else (few - np.array(50, dtype))
    for x in (few, some, constant, signed):
        a = weft.asarray(x, device=grid)
        assert np.array_equal(weft.sort(a).numpy(), np.sort(x))
        assert np.array_equal(weft.argsort(a).numpy(), np.argsort(x, kind="stable"))
        assert np.array_equal(weft.sort(a, descending=True).numpy(), np.sort(x)[::-1])
    rows = np.stack([few, some, constant])
    assert np.array_equal(weft.sort(weft.asarray(rows, device=grid)).numpy(), np.sort(rows))
    assert np.array_equal(
        weft.argsort(weft.asarray(rows, device=grid)).numpy(), np.argsort(rows, kind="stable")
    )
