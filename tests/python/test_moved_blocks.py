# SPDX-License-Identifier: Apache-2.0
"""Copies of blocks (repeat, concat, stack, tile), counts and small powers on the host, beside NumPy: odd sizes, views, every type."""

import numpy as np
import pytest
import weft

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
         "float32", "float64", "complex64", "complex128")  # fmt: skip
SHAPES = ((), (0,), (1,), (5,), (1025,), (4, 0), (3, 5), (7, 3, 5), (2, 1, 3, 2))


def draw(shape, dtype, seed=2):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    x = np.asarray(rng.integers(-50, 50, shape))
    if np.dtype(dtype).kind == "c":
        return np.asarray(x + 1j * rng.integers(-9, 9, shape)).astype(dtype)
    return x.astype(dtype)


def turned(x):
    return x.permute(*reversed(range(x.ndim)))


def views(x):
    """The array and views of it: turned round, with steps, reversed, repeated."""
    yield x, weft.asarray(x)
    y = weft.asarray(x)
    if x.ndim > 1:
        yield x.T, turned(y)
        yield x[:, ::2], y[:, ::2]
    if x.ndim:
        yield x[::-1], y[::-1]
        yield np.broadcast_to(x, (2, *x.shape)), y.broadcast_to((2, *x.shape))


@pytest.mark.parametrize("dtype", TYPES)
def test_repeat(dtype):
    for shape in SHAPES:
        for x, y in views(draw(shape, dtype)):
            for times in (0, 1, 2, 3, 8, 9, 33):
                np.testing.assert_array_equal(weft.repeat(y, times).numpy(), np.repeat(x, times))
                for axis in range(-x.ndim, x.ndim):
                    got = weft.repeat(y, times, axis=axis)
                    np.testing.assert_array_equal(got.numpy(), np.repeat(x, times, axis))
                    assert got.dtype == y.dtype


def test_repeat_refuses():
    x = weft.ones((2, 3))
    with pytest.raises(weft.ArgumentError) as caught:
        weft.repeat(x, -1)
    assert caught.value.code == "array.repeat.negative"
    with pytest.raises(weft.IndexError) as caught:
        weft.repeat(x, 2, axis=2)
    assert caught.value.code == "array.repeat.axis"
    for times in (2**61, 2**62, 2**63 - 1):
        with pytest.raises(weft.Error) as caught:
            weft.repeat(x, times, axis=1)
        assert caught.value.code == "array.size.overflow"


@pytest.mark.parametrize("dtype", TYPES)
def test_joined(dtype):
    for shape in SHAPES[1:]:
        for (x, y), (v, w) in zip(views(draw(shape, dtype)), views(draw(shape, dtype, 3))):
            for axis in range(-x.ndim, x.ndim):
                for several in (1, 2, 5):
                    got = weft.concat([y, w] * several, axis=axis)
                    np.testing.assert_array_equal(
                        got.numpy(), np.concatenate([x, v] * several, axis)
                    )
            for axis in range(-x.ndim - 1, x.ndim + 1):
                np.testing.assert_array_equal(
                    weft.stack([y, w, y], axis=axis).numpy(), np.stack([x, v, x], axis)
                )
            if x.ndim > 1:
                mixed = weft.concat([turned(y), weft.asarray(v.T.copy())], axis=0)
                np.testing.assert_array_equal(mixed.numpy(), np.concatenate([x.T, v.T], 0))


def test_joined_in_one_order_keeps_it():
    x = weft.asarray(draw((30, 40, 5), "float32"))
    out = weft.concat([turned(x)] * 2, axis=1)
    np.testing.assert_array_equal(out.numpy(), np.concatenate([x.numpy().T] * 2, 1))
    assert turned(out).is_contiguous()


@pytest.mark.parametrize("dtype", TYPES)
def test_tile(dtype):
    for shape in SHAPES:
        for x, y in views(draw(shape, dtype)):
            for times in ((), (2,), (0,), (3, 2), (1, 2, 3)):
                np.testing.assert_array_equal(weft.tile(y, times).numpy(), np.tile(x, times))


@pytest.mark.parametrize("dtype", TYPES)
def test_count_nonzero(dtype):
    for shape in (*SHAPES, (4097,), (33, 1031), (100_003,)):
        x = draw(shape, dtype)
        x[x == 1] = 0
        for a, b in views(x):
            got = weft.count_nonzero(b)
            assert got.dtype == weft.int64 and got.shape == () and got.item() == np.count_nonzero(a)


def rounded(x):
    """float32 rounded to bfloat16, ties to even."""
    x = np.asarray(x, "float32")
    word = np.atleast_1d(x).view("uint32").astype("int64")
    word = ((word + 0x7FFF + (word >> 16 & 1)) >> 16 << 16).astype("uint32")
    return np.where(np.isnan(x), np.float32("nan"), word.view("float32").reshape(x.shape))


def test_count_nonzero_of_16_bits():
    x = np.maximum(rounded(np.random.default_rng(3).standard_normal(5001)), 0)
    assert weft.count_nonzero(weft.asarray(x).astype(weft.bfloat16)).item() == np.count_nonzero(x)


SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)


def both_tables(dtype, *limits):
    x = np.random.default_rng(4).standard_normal(17)
    x = np.array([*SPECIAL, *limits, *(-v for v in limits), *x], dtype)
    return [np.ascontiguousarray(a.ravel()) for a in np.meshgrid(x, x)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nextafter(dtype):
    info = np.finfo(dtype)
    x, y = both_tables(dtype, info.tiny, info.smallest_subnormal, info.max)
    word = f"uint{8 * x.dtype.itemsize}"
    views = (slice(None), slice(3, 3), slice(1, 2), slice(5, 500, 3), slice(None, None, -1))
    cases = [(x[at], y[at], weft.asarray(x)[at], weft.asarray(y)[at]) for at in views]
    cases.append((x, y[5 * 23], weft.asarray(x), weft.asarray(y)[5 * 23]))
    for a, b, c, d in cases:
        got = weft.nextafter(c, d).numpy()
        with np.errstate(
            over="ignore"
        ):  # C's rule of equal operands; NumPy's float16 keeps the first
            want = np.where(a == b, b, np.nextafter(a, b))
        nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), nan)
        np.testing.assert_array_equal(got[~nan].view(word), want[~nan].view(word))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("power", [-1, 0, 1, 2, 3, 0.5, 2.0, 3 + 0j])
def test_powers_of_complex_numbers(power, dtype):
    rng = np.random.default_rng(6)
    for shape in ((0,), (1,), (9, 7), (4001,)):
        x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        for a, b in views(x):
            np.testing.assert_allclose(
                (b**power).numpy(), a**power, rtol=3e-5 if dtype == "complex64" else 1e-12
            )
    out = weft.asarray(x.copy())
    out **= power
    np.testing.assert_allclose(out.numpy(), x**power, rtol=3e-5 if dtype == "complex64" else 1e-12)


BINARY = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "less",
    "equal",
    "copysign",
)
UNARY = ("sqrt", "square", "exp", "floor", "ceil", "trunc", "isnan", "isfinite", "signbit", "sign", "abs", "negative",
         "reciprocal", "tanh")  # fmt: skip


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_bfloat16_rows_round_once(name):
    """Computed in float32 and rounded once: special values, odd sizes, views."""
    x, y = map(rounded, both_tables("float32", 2.0**-126, 2.0**-133, rounded(np.float32(3.38e38))))
    operands = (x, y) if name in BINARY else (x,)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*operands)
        want = want if want.dtype == bool else rounded(want)
    for cut in (slice(None), slice(3, 3), slice(1, 2), slice(5, 500, 3), slice(None, None, -1)):
        given = (weft.asarray(a).astype(weft.bfloat16)[cut] for a in operands)
        got = getattr(weft, name)(*given)
        if want.dtype == bool:
            np.testing.assert_array_equal(got.numpy(), want[cut])
            continue
        assert got.dtype == weft.bfloat16
        a, b = got.astype("float32").numpy(), want[cut]
        # exp and tanh are within a unit of the last place of float32 before they are rounded.
        exact = name not in ("exp", "tanh")
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_allclose(a, b, rtol=0 if exact else 2**-7)
        if exact:
            np.testing.assert_array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)]))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_sums_at_positions(dtype):
    rng = np.random.default_rng(7)
    for n, m in ((1, 1), (7, 100), (1000, 3), (5001, 4001)):
        x, v = draw((n,), dtype), draw((m,), dtype, 3)
        at = rng.integers(0, n, m)
        want = x.copy()
        np.add.at(want, at, v)
        got = weft.asarray(x.copy())
        weft._core._scatter(got, [weft.asarray(at)], weft.asarray(v), True)
        np.testing.assert_array_equal(got.numpy(), want)
