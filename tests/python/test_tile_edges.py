# SPDX-License-Identifier: Apache-2.0
"""Matrix products at every edge of a register tile, in every layout, beside sums in float64."""

import numpy as np
import pytest
import weft


def _drawn(rng, shape, dtype):
    if dtype.startswith("int"):
        return rng.integers(-9, 9, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x).astype(dtype)


def _check(got, a, b):
    wide = {"c": "complex128", "i": "int64"}.get(a.dtype.kind, "float64")
    want = a.astype(wide) @ b.astype(wide)
    if a.dtype.kind == "i":
        return np.testing.assert_array_equal(got, want.astype(a.dtype))
    scale = np.abs(a).astype("float64") @ np.abs(b).astype("float64") + 1e-30
    assert np.max(np.abs(got - want) / scale) < 32 * np.finfo(a.dtype).eps


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 5, 8, 23, 64, 65, 300])
def test_every_height_and_width(dtype, k):
    rng = np.random.default_rng(k)
    a, b = _drawn(rng, (31, k), dtype), _drawn(rng, (k, 71), dtype)
    turned_a, turned_b = (weft.asarray(np.ascontiguousarray(x.T)).T for x in (a, b))
    wa, wb = weft.asarray(a), weft.asarray(b)
    for m in [*range(1, 15), 16, 17, 20, 23, 24, 25, 28, 31]:
        for n in (1, 2, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 50, 64, 71):
            for left in (wa, turned_a):
                for right in (wb, turned_b):
                    _check((left[:m] @ right[:, :n]).numpy(), a[:m], b[:, :n])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
def test_stacks_of_small_matrices(dtype):
    rng = np.random.default_rng(7)
    for m, k, n in (
        (2, 2, 2),
        (4, 4, 4),
        (8, 8, 8),
        (8, 3, 7),
        (9, 8, 8),
        (1, 4, 4),
        (4, 4, 1),
        (3, 9, 3),
    ):
        a, b = _drawn(rng, (37, m, k), dtype), _drawn(rng, (37, k, n), dtype)
        wa, wb = weft.asarray(a), weft.asarray(b)
        turned = weft.asarray(np.ascontiguousarray(b.swapaxes(1, 2))).swapaxes(1, 2)
        for got in (wa @ wb, wa @ turned):
            for i in range(37):
                _check(got.numpy()[i], a[i], b[i])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_lies_beside_an_operand_does_not_matter(dtype):
    """NaN around parts of matrices, and numbers too small to be multiplied quickly."""
    rng = np.random.default_rng(2)
    for m, k, n in ((13, 70, 37), (5, 31, 50), (20, 400, 18), (31, 9, 9)):
        wide_a, wide_b = (np.full((r + 9, c + 40), np.nan, dtype) for r, c in ((m, k), (k, n)))
        a, b = _drawn(rng, (m, k), dtype), _drawn(rng, (k, n), dtype)
        wide_a[4 : 4 + m, 3 : 3 + k], wide_b[4 : 4 + k, 3 : 3 + n] = a, b
        wa, wb = weft.asarray(wide_a), weft.asarray(wide_b)
        _check((wa[4 : 4 + m, 3 : 3 + k] @ wb[4 : 4 + k, 3 : 3 + n]).numpy(), a, b)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "int32", "int64"]
)
def test_inner_products(dtype):
    rng = np.random.default_rng(1)
    for n in (1, 3, 16, 29, 1023, 1024, 1025, 5000):
        a, b = _drawn(rng, (n,), dtype), _drawn(rng, (n,), dtype)
        _check((weft.asarray(a) @ weft.asarray(b)).numpy(), a, b)
        gaps = np.repeat(b, 2)
        _check((weft.asarray(a) @ weft.asarray(gaps)[::2]).numpy(), a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
def test_matrices_of_short_rows_by_a_vector(dtype):
    rng = np.random.default_rng(4)
    for k in range(1, 40):
        a, v = _drawn(rng, (23, k), dtype), _drawn(rng, (k,), dtype)
        _check((weft.asarray(a) @ weft.asarray(v)).numpy(), a, v)
