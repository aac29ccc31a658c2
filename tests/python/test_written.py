# SPDX-License-Identifier: Apache-2.0
"""What is written into arrays that exist (out=, where=, copyto, masks), and layouts that are read by rows that repeat or run
backwards, beside NumPy at odd sizes."""

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(5)
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.25])


def drawn(shape, dtype):
    n = int(np.prod(shape))
    if np.dtype(dtype).kind in "iu":
        return RNG.integers(1, 100, n).astype(dtype).reshape(shape)
    x = RNG.standard_normal(n) * 3
    if np.dtype(dtype).kind in "fc":
        x[: min(n, 7)] = ODD[: min(n, 7)]
    return x.astype(dtype).reshape(shape)


def same(got, want):
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        number = ~np.isnan(
            want
        )  # which NaN a product of two keeps, neither NumPy nor IEEE 754 says
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


def equal(got, want):
    """The same numbers; the sign of a zero is open."""
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (1031,), (40_001,), (7, 9), (131, 257)])
def test_results_in_arrays_that_exist(shape, dtype):
    x, y = drawn(shape, dtype), drawn(shape, dtype)
    for name in ("add", "multiply", "maximum"):
        place, wanted = weft.zeros(shape, dtype=dtype), np.zeros(shape, dtype)
        assert getattr(weft, name)(weft.asarray(x), weft.asarray(y), out=place) is place
        same(place, getattr(np, name)(x, y, out=wanted))
    for name in ("negative", "abs", *(("floor",) if dtype[0] == "f" else ())):
        place = weft.zeros(shape, dtype=dtype)
        assert getattr(weft, name)(weft.asarray(x), out=place) is place
        same(place, getattr(np, name)(x))
    mask = RNG.random(shape) < 0.5
    place, wanted = weft.asarray(y.copy()), y.copy()
    weft.add(weft.asarray(x), weft.asarray(y), out=place, where=weft.asarray(mask))
    np.add(x, y, out=wanted, where=mask)
    same(place, wanted)
    weft.negative(weft.asarray(x), out=place, where=weft.asarray(mask))
    np.negative(x, out=wanted, where=mask)
    same(place, wanted)


def test_results_in_views_and_operands():
    a = drawn((33, 40), "float64")
    for at in ((slice(None), slice(None, None, 2)), (slice(None, None, -1), slice(1, 21)), (slice(3, 32), slice(0, 20))):  # fmt: skip
        w, n = weft.asarray(a.copy()), a.copy()
        weft.add(w[at], 1.5, out=w[at])
        np.add(n[at], 1.5, out=n[at])
        weft.sqrt(weft.abs(w[at]), out=w[at])
        np.sqrt(np.abs(n[at]), out=n[at])
        same(w, n)
    # Operands that overlap the place otherwise are read before it is written.
    w, n = weft.asarray(a.copy()), a.copy()
    weft.negative(w[:-1], out=w[1:])
    np.negative(n[:-1].copy(), out=n[1:])
    weft.multiply(w[1:], w[:-1], out=w[1:])
    np.multiply(n[1:].copy(), n[:-1].copy(), out=n[1:])
    same(w, n)
    # Of other types and shapes than the result's, as before.
    place = weft.zeros((33, 40), dtype="float32")
    weft.add(weft.asarray(a), weft.asarray(a[:1]), out=place)
    same(place, (a + a[:1]).astype("float32"))
    row = weft.zeros((40,))
    with pytest.raises(weft.Error):
        weft.add(weft.asarray(a), 1.0, out=row)
    kept = weft.asarray(np.arange(6.0))
    weft.copyto(kept, weft.asarray(np.arange(6)))
    same(kept, np.arange(6.0))
    with pytest.raises(weft.Error):
        weft.copyto(kept, weft.zeros((5,)))


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(1,), (7,), (4095,), (4097,), (12_289,), (70_001,), (65, 129)])
def test_values_at_marks(shape, dtype):
    x = drawn(shape, dtype)
    for share in (0.0, 0.3, 1.0):
        mask = RNG.random(shape) < share
        values = drawn((int(mask.sum()),), dtype)
        w, n = weft.asarray(x.copy()), x.copy()
        w[weft.asarray(mask)] = weft.asarray(values)
        n[mask] = values
        same(w, n)
    w, n = weft.asarray(x.copy()), x.copy()
    mask = RNG.random(shape) < 0.5
    w[weft.asarray(mask)] = w.reshape(-1)[: int(mask.sum())]  # values in the array itself
    n[mask] = n.reshape(-1)[: int(mask.sum())].copy()
    same(w, n)
    if mask.sum() > 1:
        with pytest.raises(weft.Error):
            w[weft.asarray(mask)] = weft.zeros((int(mask.sum()) + 1,), dtype=dtype)
        same(w, n)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("inner", [1, 2, 3, 9, 38, 100])
def test_short_rows_that_repeat(inner, dtype):
    x = drawn((13, 47, inner), dtype)
    w = weft.asarray(x)
    with np.errstate(all="ignore"):
        for part, other in ((x[:, :1], w[:, :1]), (x[:1], w[:1]), (x[..., :1], w[..., :1])):
            same(other * w, part * x)
            np.testing.assert_array_equal(np.asarray(w + other), x + part)
        y, v = x[0], w[0]
        np.testing.assert_array_equal(np.asarray(v[:, None] + v), y[:, None] + y)
        np.testing.assert_array_equal(np.asarray(v[:, None, :] + v[None, ::-1]), y[:, None, :] + y[None, ::-1])  # fmt: skip
    wide = np.broadcast_to(x[:, :1, None], (13, 5, 29, inner))
    same(weft.broadcast_to(w[:, :1, None], (13, 5, 29, inner)).copy(), wide.copy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("shape", [(9,), (5000,), (100_001,), (7, 60), (31, 17, 23)])
def test_sums_and_extremes_of_what_runs_backwards(shape, dtype):
    x = drawn(shape, "int16").astype(dtype)
    w = weft.asarray(x)
    for at in ([slice(None, None, -1)] * len(shape), [slice(None, None, -2)], [slice(None)] * (len(shape) - 1) + [slice(None, None, -1)]):  # fmt: skip
        at = tuple(at)
        for axis in (None, 0, len(shape) - 1):
            for name in ("sum", "max", "min"):
                got = np.asarray(getattr(weft, name)(w[at], axis=axis))
                np.testing.assert_array_equal(got, getattr(np, name)(x[at], axis=axis))
        assert int(weft.argmax(w[at])) == int(np.argmax(x[at]))
        np.testing.assert_array_equal(np.asarray(weft.any(w[at] > 98, axis=0)), np.any(x[at] > 98, axis=0))  # fmt: skip
    if dtype[0] == "f":
        odd = x.copy().reshape(-1)
        odd[3] = np.nan
        assert np.isnan(float(weft.max(weft.asarray(odd)[::-1])))


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64"])
def test_turned_and_reversed_copies(dtype):
    for shape in ((8, 8), (9, 31), (300, 283), (1100, 1025), (5, 40, 33)):
        x = drawn(shape, dtype)
        w = weft.asarray(x)
        for k in range(4):
            same(weft.rot90(w, k).copy(), np.rot90(x, k).copy())
        turned = tuple(range(len(shape)))[::-1]
        back = tuple([slice(None, None, -1)] * len(shape))
        same(weft.permute_dims(w[back], turned).copy(), x[back].transpose(turned).copy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [1, 7, 5003, 40_003])
def test_limits(dtype, n):
    x = drawn((n,), dtype)
    w = weft.asarray(x)
    for low, high in ((-1, 2.5), (0.0, 6), (-np.inf, np.inf), (2, -2), (-0.0, 0.0), (1, np.nan), (None, 1), (-1, None)):  # fmt: skip
        # np.clip of NumPy 1.24 takes NaN for no limit.
        want = x if low is None else np.maximum(x, np.asarray(low, dtype))
        want = want if high is None else np.minimum(want, np.asarray(high, dtype))
        equal(weft.clip(w, low, high), want)
        equal(weft.clip(w[::-2], low, high), want[::-2])
    y = np.stack([x, x[::-1]]).T
    equal(weft.clip(weft.asarray(y.T.copy()).T, -1, 1), np.clip(y, -1, 1))
    for nan, high, low in ((0.0, None, None), (1.0, 5.0, -5.0), (np.inf, None, None)):
        for _ in range(3):
            equal(weft.nan_to_num(w, nan=nan, posinf=high, neginf=low), np.nan_to_num(x, nan=nan, posinf=high, neginf=low))  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_rows_at_positions(dtype):
    x = drawn((23, 27, 34), "int16").astype(dtype)
    i, k = RNG.integers(-23, 23, 50), RNG.integers(-34, 34, 50)
    for at in (lambda a, i, k: (i, slice(None), k), lambda a, i, k: (slice(None), i), lambda a, i, k: (slice(None), slice(None, None, 2), k)):  # fmt: skip
        places, theirs = at(None, weft.asarray(i), weft.asarray(k)), at(None, i, k)
        same(weft.asarray(x)[places], x[theirs])
        for value in (7, x[0, 0, 0], x[theirs] * 2, (x[theirs] * 2)[:1]):
            w, n = weft.asarray(x.copy()), x.copy()
            given = weft.asarray(value) if isinstance(value, np.ndarray) else value
            w[places] = given if isinstance(given, (int, weft.NDArray)) else given.item()
            n[theirs] = value
            same(w, n)
    w, n = weft.asarray(x.copy()), x.copy()
    w[weft.asarray(i)] = weft.asarray(x[5, 3])
    n[i] = x[5, 3]
    same(w, n)
    w[weft.asarray(i)] = weft.asarray(x[:1, :, :1])
    n[i] = x[:1, :, :1]
    same(w, n)


SPECS = {
    "ii->": ((5, 5),), "ijj->i": ((4, 7, 7),), "iji->ij": ((3, 4, 3),), "iij,jkk->ik": ((3, 3, 4), (4, 5, 5)),
    "ij,ij->i": ((31, 9), (31, 9)), "ij,ij->j": ((65, 9), (65, 9)), "ij,ji->j": ((3, 70), (70, 3)), "ijij->ji": ((3, 4, 3, 4),),
    "ij,ij->i ": ((3, 1), (3, 4)), "i,ij,j->": ((3,), (3, 4), (4,)), "i,i->": ((7,), (7,)), "bij,bij->b": ((9, 6, 5), (9, 6, 5)),
    "abij,abij->ab": ((3, 4, 6, 70), (3, 4, 6, 70)), "...i,...i->...": ((2, 3, 4), (2, 3, 4)), "ii,jj->ij": ((3, 3), (4, 4)),
    "nchw,c->nhw": ((2, 3, 4, 5), (3,)), "ij,ij->": ((3, 4), (3, 4)), "a,a,a->a": ((4,), (4,), (4,)),
}  # fmt: skip


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_contractions_of_few_and_short_axes(spec, dtype):
    given = [RNG.integers(-9, 9, s).astype(dtype) for s in SPECS[spec]]
    for _ in range(2):
        got = np.asarray(weft.einsum(spec, *map(weft.asarray, given)))
        equal(got, np.asarray(np.einsum(spec, *given)))
    if dtype == "float32":
        tensors = [weft.Tensor(x, requires_grad=True) for x in given]
        got = weft.einsum(spec, *tensors)
        equal(got.detach().numpy(), np.asarray(np.einsum(spec, *given)))
        got.sum().backward()
        total = float(got.sum())
        for t, x in zip(tensors, given):  # every result is linear in each operand
            assert float((t.grad * weft.asarray(x)).sum()) == total
