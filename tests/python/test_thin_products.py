# SPDX-License-Identifier: Apache-2.0
"""Products with few rows or columns, whose long operand is read where it lies."""

import numpy as np
import pytest

import weft


def _drawn(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def _check(got, a, b):
    wide = "complex128" if a.dtype.kind == "c" else "float64"
    want = a.astype(wide) @ b.astype(wide)
    scale = np.abs(a.astype(wide)) @ np.abs(b.astype(wide))
    assert got.shape == want.shape and got.dtype == a.dtype
    assert np.max(np.abs(got - want) / scale) < 32 * np.finfo(a.dtype).eps


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("m", [1, 2, 3, 7, 8, 9, 15, 16, 17, 33])
def test_few_rows_by_a_long_matrix(m, dtype):
    rng = np.random.default_rng(m)
    for n, k in ((301, 67), (67, 301), (1030, 17), (513, 129)):
        a, b = _drawn(rng, (m, k), dtype), _drawn(rng, (k, n), dtype)
        plain = (weft.asarray(a) @ weft.asarray(b)).numpy()
        _check(plain, a, b)
        # The left operand transposed, and with gaps; the right one with gaps between its rows.
        turned = weft.asarray(np.ascontiguousarray(a.T)).T
        assert np.array_equal((turned @ weft.asarray(b)).numpy(), plain)
        wide = np.zeros((k, n + 5), dtype)
        wide[:, :n] = b
        _check((weft.asarray(np.repeat(a, 2, 1))[:, ::2] @ weft.asarray(wide)[:, :n]).numpy(), a, b)
        # The right operand transposed, and the transposed product.
        columns = weft.asarray(np.ascontiguousarray(b.T)).T
        _check((weft.asarray(a) @ columns).numpy(), a, b)
        _check((columns.T @ weft.asarray(a).T).numpy(), b.T, a.T)


LAYOUTS = {
    "plain": lambda x: weft.asarray(x),
    "transposed": lambda x: weft.asarray(np.ascontiguousarray(x.T)).T,
    "every other column": lambda x: weft.asarray(np.repeat(x, 2, 1))[:, ::2],
    "every other row": lambda x: weft.asarray(np.repeat(x, 2, 0))[::2],
    "part of a wider one": lambda x: weft.asarray(np.pad(x, ((1, 2), (3, 4)), mode="reflect"))[
        1:-2, 3:-4
    ],  # fmt: skip
    "transposed part": lambda x: (
        weft.asarray(np.pad(x.T, ((1, 2), (3, 4)), mode="reflect"))[1:-2, 3:-4].T
    ),  # fmt: skip
    "backwards": lambda x: weft.asarray(np.ascontiguousarray(x[::-1, ::-1]))[::-1, ::-1],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("m", [5, 11])
def test_every_layout_by_every_layout(m, dtype):
    rng = np.random.default_rng(m)
    n, k = 259, 131
    a, b = _drawn(rng, (m, k), dtype), _drawn(rng, (k, n), dtype)
    for left, lay_a in LAYOUTS.items():
        for right, lay_b in LAYOUTS.items():
            x, y = lay_a(a), lay_b(b)
            assert np.array_equal(x.numpy(), a) and np.array_equal(y.numpy(), b), (left, right)
            _check((x @ y).numpy(), a, b)
            _check((y.T @ x.T).numpy(), b.T, a.T)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_infinities_stay_where_the_product_has_them(dtype):
    rng = np.random.default_rng(5)
    a, b = _drawn(rng, (3, 200), dtype), _drawn(rng, (200, 300), dtype)
    b[17, 5] = complex(np.inf, 1)
    got = (weft.asarray(a) @ weft.asarray(b)).numpy()
    assert not np.isfinite(got[:, 5]).any()
    assert np.isfinite(np.delete(got, 5, axis=1)).all()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_threads_do_not_change_thin_products(dtype):
    rng = np.random.default_rng(9)
    a, b = (weft.asarray(_drawn(rng, s, dtype)) for s in ((5, 700), (700, 3001)))
    before = weft.get_num_threads()
    try:
        weft.set_threads(1)
        one = (a @ b).numpy()
        weft.set_threads(2)
        assert np.array_equal((a @ b).numpy(), one)
    finally:
        weft.set_threads(before)


def test_a_row_does_not_touch_others():
    """Infinite numbers and NaN stay in their row and column."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((9, 200)), rng.standard_normal((200, 700))
    a[2, 5], b[7, 650] = np.inf, np.nan
    got = (weft.asarray(a) @ weft.asarray(b)).numpy()
    want = a @ b
    assert np.array_equal(np.isnan(got), np.isnan(want))
    finite = np.isfinite(want)
    np.testing.assert_allclose(got[finite], want[finite], atol=1e-11)
    assert np.array_equal(got[np.isinf(want)], want[np.isinf(want)])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bit_matrix_by_a_vector(dtype):
    rng = np.random.default_rng(2)
    narrow = getattr(weft, dtype)
    for m, k in ((5, 7), (130, 33), (1030, 8), (2100, 65), (64, 300)):
        a = weft.asarray(rng.standard_normal((m, k)).astype("float32")).astype(narrow)
        v = weft.asarray(rng.standard_normal(k).astype("float32")).astype(narrow)
        w = weft.asarray(rng.standard_normal(m).astype("float32")).astype(narrow)
        wide = [x.astype(weft.float64).numpy() for x in (a, v, w)]
        for got, want in (
            (a @ v, wide[0] @ wide[1]),
            (a.T @ w, wide[0].T @ wide[2]),
            (w @ a, wide[2] @ wide[0]),
            (a.T.compact().T @ v, wide[0] @ wide[1]),
            (a[::2, 1:] @ v[1:], wide[0][::2, 1:] @ wide[1][1:]),
        ):
            assert got.dtype == narrow
            unit = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
            found = got.astype(weft.float64).numpy()
            np.testing.assert_allclose(found, want, rtol=unit * 1.01, atol=1e-4 * max(m, k) ** 0.5)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_long_sums_are_added_part_by_part(dtype):
    """Few rows by few columns of many terms: parts of the depth, the last of which is short."""
    rng = np.random.default_rng(3)
    for m, n, k in ((9, 31, 9001), (38, 83, 7001), (64, 65, 4097), (20, 21, 1025)):
        a, b = _drawn(rng, (m, k), dtype), _drawn(rng, (k, n), dtype)
        plain = (weft.asarray(a) @ weft.asarray(b)).numpy()
        _check(plain, a, b)
        turned = weft.asarray(np.ascontiguousarray(a.T)).T
        assert np.array_equal((turned @ weft.asarray(b)).numpy(), plain)
