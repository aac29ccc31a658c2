# SPDX-License-Identifier: Apache-2.0
"""Positions of extremes, index arrays, masks, evenly spaced numbers and products of integers beside NumPy: every element
type, lengths around the kernels' groups, ties, NaN, positions outside at any place.
"""

import numpy as np
import pytest

import weft

SEED = 20261122
REALS = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
]  # fmt: skip
ALL = [*REALS, "complex64", "complex128"]
LENGTHS = [1, 2, 3, 5, 15, 16, 17, 63, 64, 65, 100, 1023, 1024, 1025, 4099, 262_145]


def _rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


def _values(rng, shape, dtype, few=False):
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.startswith("float"):
        x = rng.standard_normal(shape).astype(dtype)
        return np.round(x).astype(dtype) if few else x
    if dtype == "bool":
        return rng.random(shape) < (0.01 if few else 0.5)
    return rng.integers(0, 4 if few else 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("few", [False, True])
def test_extremes(dtype, few):
    rng = _rng()
    for n in LENGTHS:
        x = _values(rng, n, dtype, few)
        if dtype.startswith("float") and n > 2 and few:
            x[rng.integers(0, n, 1 + n // 100)] = np.nan  # the first NaN is the extreme
        w = weft.asarray(x)
        for ours, theirs in ((weft.argmax, np.argmax), (weft.argmin, np.argmin)):
            assert ours(w).item() == theirs(x), (n, dtype)
            assert ours(weft.flip(w)).item() == theirs(x[::-1])
    for shape in ((7, 1), (9, 33), (6, 100), (33, 17), (2, 5, 21), (3, 1500), (1500, 40)):
        x = _values(rng, shape, dtype, few)
        if dtype.startswith("float") and few:
            x[rng.random(shape) < 0.05] = np.nan
        w = weft.asarray(x)
        for axis in range(len(shape)):
            np.testing.assert_array_equal(weft.argmax(w, axis=axis).numpy(), x.argmax(axis))
            np.testing.assert_array_equal(weft.argmin(w, axis=axis).numpy(), x.argmin(axis))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_infinities(dtype):
    for row in ([-np.inf] * 40, [np.inf] * 40, [np.nan] * 40, [-np.inf, np.nan, np.inf] * 13):
        x = np.array(row, dtype)
        assert weft.argmax(weft.asarray(x)).item() == x.argmax()
        assert weft.argmin(weft.asarray(x)).item() == x.argmin()
        t = np.stack([x, -x, x[::-1], x])
        np.testing.assert_array_equal(weft.argmax(weft.asarray(t), axis=1).numpy(), t.argmax(1))


@pytest.mark.parametrize("dtype", ALL)
def test_index_arrays(dtype):
    rng = _rng()
    for n in (1, 7, 8, 9, 100, 1025, 70_001):
        x = _values(rng, n, dtype)
        for m in (1, 7, 33, 1031):
            k = rng.integers(-n, n, m)
            w, wk = weft.asarray(x), weft.asarray(k)
            np.testing.assert_array_equal(w[wk].numpy(), x[k])
            np.testing.assert_array_equal(w[::-1][wk].numpy(), x[::-1][k])
            np.testing.assert_array_equal(weft.take(w, weft.asarray(k % n)).numpy(), x[k % n])
            value = _values(rng, m, dtype)
            want, got = x.copy(), weft.asarray(x, copy=True)
            want[k] = value
            got[wk] = weft.asarray(value)
            np.testing.assert_array_equal(got.numpy(), want)
    big = _values(rng, 80_000, dtype)
    k = rng.permutation(80_000)
    got = weft.zeros(80_000, dtype=getattr(weft, dtype))
    got[weft.asarray(k)] = weft.asarray(big)
    want = np.zeros(80_000, dtype)
    want[k] = big
    np.testing.assert_array_equal(got.numpy(), want)
    t = _values(rng, (13, 9, 5), dtype)
    i, j = rng.integers(-13, 13, (4, 3)), rng.integers(-9, 9, (4, 3))
    np.testing.assert_array_equal(
        weft.asarray(t)[weft.asarray(i), weft.asarray(j)].numpy(), t[i, j]
    )
    for axis in range(3):
        order = np.argsort(rng.random(t.shape), axis)
        np.testing.assert_array_equal(
            weft.take_along_axis(weft.asarray(t), weft.asarray(order), axis=axis).numpy(),
            np.take_along_axis(t, order, axis),
        )
        some = rng.integers(0, t.shape[axis], 11)
        np.testing.assert_array_equal(
            weft.take(weft.asarray(t), weft.asarray(some), axis=axis).numpy(), t.take(some, axis)
        )


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 2048, 2049, 5121])
def test_several_index_arrays(n):
    """Read and assigned, around the lengths that are done at once; elements alone and rows."""
    rng = _rng()
    for shape in ((13, 400), (13, 400, 3)):
        x = _values(rng, shape, "float32")
        at = rng.permutation(13 * 400)[:n]  # each place once
        i, j = at // 400, at % 400 - 400
        wi, wj = weft.asarray(i), weft.asarray(j)
        np.testing.assert_array_equal(weft.asarray(x)[wi, wj].numpy(), x[i, j])
        value = _values(rng, x[i, j].shape, "float32")
        want, got = x.copy(), weft.asarray(x, copy=True)
        want[i, j] = value
        got[wi, wj] = weft.asarray(value)
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("n", [1, 8, 9, 17, 1030, 70_000])
def test_positions_outside_are_refused(n):
    """Wherever they stand, and before anything is assigned."""
    rng = _rng()
    x = weft.asarray(np.arange(10, dtype="float32"))
    for at in {0, n // 2, n - 1}:
        for bad in (10, -11, 2**40, -(2**40)):
            k = rng.integers(-10, 10, n)
            k[at] = bad
            wk = weft.asarray(k)
            for call in (lambda k: x[k], lambda k: weft.take_along_axis(x, k, axis=0)):
                with pytest.raises(weft.IndexError) as refused:
                    call(wk)
                assert (
                    refused.value.code == "array.index.range" and str(bad) in refused.value.message
                )
            with pytest.raises(weft.IndexError) as refused:
                x[wk] = weft.zeros(n)
            assert refused.value.code == "array.index.range" and "legal: -10 to 9" in str(
                refused.value
            )
            assert x.numpy().tolist() == list(range(10))
    empty = weft.zeros(0)
    with pytest.raises(weft.IndexError) as refused:
        empty[weft.asarray(np.zeros(n, "int64"))]
    assert refused.value.code == "array.index.range" and "index 0" in refused.value.message


@pytest.mark.parametrize("dtype", ALL)
def test_masks(dtype):
    rng = _rng()
    for n in (1, 31, 64, 100, 4095, 4096, 4097, 8192, 50_001):
        x = _values(rng, n, dtype)
        for share in (0.0, 0.01, 0.5, 1.0):
            mask = rng.random(n) < share
            w, m = weft.asarray(x), weft.asarray(mask)
            assert weft.count_nonzero(m).item() == mask.sum()
            np.testing.assert_array_equal(w[m].numpy(), x[mask])
            np.testing.assert_array_equal(weft.nonzero(m)[0].numpy(), mask.nonzero()[0])
        assert weft.count_nonzero(w).item() == np.count_nonzero(x)
    t = rng.random((6, 700, 3)) < 0.3
    for got, want in zip(weft.nonzero(weft.asarray(t)), t.nonzero(), strict=True):
        np.testing.assert_array_equal(got.numpy(), want)


def test_truth_that_is_not_one():
    """Bytes of a mask from elsewhere may be any: what is not 0 is set."""
    raw = np.array([0, 1, 2, 255, 0, 128] * 30, "uint8")
    mask = weft.asarray(raw.view("bool"))
    assert weft.count_nonzero(mask).item() == 120
    x = np.arange(180, dtype="int32")
    np.testing.assert_array_equal(weft.asarray(x)[mask].numpy(), x[raw != 0])


@pytest.mark.parametrize("dtype", [d for d in ALL if d != "bool"] + ["bfloat16"])
def test_evenly_spaced(dtype):
    for start, step, n in ((0, 1, 1), (3, 2, 17), (100, -3, 33), (0, 1, 100), (-5, 4, 20)):
        if dtype.startswith("u") and (start < 0 or start + step * n < 0):
            continue
        got = weft.arange(start, start + step * n, step, dtype=getattr(weft, dtype))
        want = np.arange(start, start + step * n, step)
        np.testing.assert_array_equal(weft.astype(got, weft.complex128).numpy(), want)
    if dtype == "int64":
        big = weft.arange(2**62, 2**62 + 40_001)
        np.testing.assert_array_equal(big.numpy(), np.arange(2**62, 2**62 + 40_001))
    if dtype in ("float32", "float64"):
        got = weft.arange(0.1, 4000, 0.1, dtype=getattr(weft, dtype)).numpy()
        np.testing.assert_array_equal(got, (0.1 + np.arange(len(got)) * 0.1).astype(dtype))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "uint64", "complex64", "complex128"]
)
def test_products_of_other_types(dtype):
    rng = _rng()
    cases = [
        ((3, 5), (5, 7)),
        ((17, 33), (33, 1)),
        ((1, 40), (40, 9)),
        ((9, 31), (31,)),
        ((31,), (31, 6)),
        ((8,), (8,)),
    ]
    cases += [
        ((4, 6, 5), (5, 3)),
        ((4, 6, 5), (4, 5, 1)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((70, 64), (64, 65)),
    ]
    for left, right in cases:
        a, b = _values(rng, left, dtype), _values(rng, right, dtype)
        got = (weft.asarray(a) @ weft.asarray(b)).numpy()
        want = a @ b
        if dtype.startswith("complex"):
            np.testing.assert_allclose(got, want, atol=1e-4 if dtype == "complex64" else 1e-12)
        else:
            np.testing.assert_array_equal(got, want)
        if a.ndim > 1 and b.ndim > 1:
            flipped = weft.asarray(np.swapaxes(b, -1, -2).copy()).mT
            turned = (weft.asarray(a) @ flipped).numpy()
            if dtype.startswith("complex"):  # another layout may take another order of the sum
                np.testing.assert_allclose(
                    turned, want, atol=1e-4 if dtype == "complex64" else 1e-12
                )
            else:
                np.testing.assert_array_equal(turned, got)


def test_normal_numbers_of_float64():
    x = weft.random.normal((200_001,), dtype=weft.float64, key=weft.random.Key(7)).numpy()
    assert x.dtype == np.float64
    assert abs(x.mean()) < 0.01 and abs(x.std() - 1) < 0.01 and np.isfinite(x).all()
    assert abs((np.abs(x) < 1).mean() - 0.6827) < 0.005


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_floats(dtype):
    """Exact, where the quotient is close to an integer, large or tiny, zero, infinite or NaN."""
    rng = _rng()
    n = 6401
    y = (rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3, n)).astype(dtype)
    whole = np.round(10.0 ** rng.uniform(0, 17 if dtype == "float64" else 9, n)) * rng.choice(
        [-1, 1], n
    )
    sets = [y * whole.astype(dtype), rng.standard_normal(n).astype(dtype) * 1000]
    sets.append(np.nextafter(sets[0], np.inf, dtype=dtype))
    sets.append(np.nextafter(sets[0], -np.inf, dtype=dtype))
    sets.append((rng.standard_normal(n) * 10.0 ** rng.uniform(-30, 30, n)).astype(dtype))
    special = np.array(
        [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny / 8, np.finfo(dtype).max],
        dtype,
    )
    for x in sets:
        for mixed in (False, True):
            a, b = x.copy(), y.copy()
            if mixed:
                a[rng.integers(0, n, 40)] = rng.choice(special, 40)
                b[rng.integers(0, n, 40)] = rng.choice(special, 40)
            with np.errstate(all="ignore"):
                want = np.remainder(a, b)
                down = np.fmod(a, b)
            got = weft.remainder(weft.asarray(a), weft.asarray(b)).numpy()
            np.testing.assert_array_equal(got, want)
            same = np.isfinite(want)
            np.testing.assert_array_equal(np.signbit(got[same]), np.signbit(want[same]))
            # floor_divide leaves the same remainder.
            q = weft.floor_divide(weft.asarray(a), weft.asarray(b)).numpy()
            with np.errstate(all="ignore"):
                plain = (
                    same
                    & np.isfinite(q)
                    & (np.abs(q) < 2.0 ** (22 if dtype == "float32" else 50))
                    & (b != 0)
                )
                assert plain.sum() > 100
                exact = (a.astype("longdouble") - want.astype("longdouble")) / b.astype(
                    "longdouble"
                )
            np.testing.assert_allclose(q[plain], exact[plain].astype("float64"), rtol=1e-6)
            assert np.isfinite(down[same]).all()
    one = weft.asarray(sets[0])
    np.testing.assert_array_equal(
        weft.remainder(one, 0.75).numpy(), np.remainder(sets[0], np.asarray(0.75, dtype))
    )


@pytest.mark.parametrize("shape", [(5000,), (7, 300), (300, 7), (4, 3, 70)])
def test_extremes_of_truth_values(shape):
    rng = _rng()
    for share in (0.0, 0.001, 0.5, 0.999, 1.0):
        x = rng.random(shape) < share
        for axis in (None, *range(len(shape))):
            for name in ("argmax", "argmin"):
                want = getattr(np, name)(x, axis=axis)
                np.testing.assert_array_equal(getattr(weft, name)(weft.asarray(x), axis=axis).numpy(), want)  # fmt: skip


@pytest.mark.parametrize("n", [5000, 300_000])
@pytest.mark.parametrize("dtype", ["float32", "int16", "complex128"])
def test_one_value_for_many_positions_and_values_for_more_than_are_kept(n, dtype):
    rng = _rng()
    x = rng.integers(0, 50, n + 37).astype(dtype)
    at = rng.permutation(len(x))[:n]
    values = rng.integers(0, 50, n).astype(dtype)
    for value in (values, values[:1], values[0]):
        want, got = x.copy(), weft.asarray(x, copy=True)
        want[at] = value
        got[weft.asarray(at)] = weft.asarray(value)
        np.testing.assert_array_equal(got.numpy(), want)
    got = weft.asarray(x, copy=True)
    weft.add.at(got, weft.asarray(at), weft.asarray(values))
    want = x.copy()
    want[at] += values
    np.testing.assert_array_equal(got.numpy(), want)
    rows = rng.integers(0, 50, (n // 3, 4)).astype(dtype)
    some = rng.permutation(len(rows))[: len(rows) - 7]
    for value in (rows[0], rows[: len(some)], rows[:1], rows[:, :1][: len(some)]):
        want, got = rows.copy(), weft.asarray(rows, copy=True)
        want[some] = value
        got[weft.asarray(some)] = weft.asarray(value)
        np.testing.assert_array_equal(got.numpy(), want)
