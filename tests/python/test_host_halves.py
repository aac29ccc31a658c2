# SPDX-License-Identifier: Apache-2.0
"""16-bit floats on the host: conversions of every bit pattern, and operations on the words themselves."""

import numpy as np
import pytest
import weft


@pytest.mark.parametrize("drop", [0, 1, 31])
def test_every_half_becomes_its_float(drop):
    every = np.arange(65536 - drop, dtype="uint16").view("float16")
    got = weft.asarray(every).astype("float32").numpy()
    want = every.astype("float32")
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    same = ~np.isnan(want)
    np.testing.assert_array_equal(got[same].view("uint32"), want[same].view("uint32"))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100_003])
@np.errstate(over="ignore", invalid="ignore")
def test_floats_round_to_the_nearest_half(n):
    """Ties go to even; results that are subnormal, too large, infinite or NaN included."""
    rng = np.random.default_rng(n)
    a = rng.integers(0, 2**32, n, dtype="uint32").view("float32")
    b = (rng.standard_normal(n) * 10.0 ** rng.integers(-9, 6, n)).astype("float32")
    ties = rng.integers(0, 31743, n).astype("uint16").view("float16").astype("float32")
    ties = (
        ties
        + np.abs(np.nextafter(ties.astype("float16"), np.float16(1e5)).astype("float32") - ties) / 2
    )
    for x in (a, b, ties.astype("float32")):
        with np.errstate(over="ignore", invalid="ignore"):
            want = x.astype("float16")
        got = weft.asarray(x).astype("float16").numpy()
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        same = ~np.isnan(want)
        np.testing.assert_array_equal(got[same].view("uint16"), want[same].view("uint16"))


@np.errstate(invalid="ignore")
def values(dtype, n):
    """Random bit patterns of a 16-bit type, as (array, float64)."""
    rng = np.random.default_rng(n)
    bits = rng.integers(0, 2**16, n).astype("uint16")
    bits[:: max(1, n // 7)] = rng.choice([0, 0x8000, 1, 0x8001, 0x7C00, 0xFC00, 0x7F80, 0xFF80])
    if dtype == "float16":
        wide = bits.view("float16").astype("float64")
        return weft.asarray(bits.view("float16")), wide
    wide = (bits.astype("uint32") << 16).view("float32").astype("float64")
    return weft.asarray(wide.astype("float32")).astype("bfloat16"), wide


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [3, 63, 1000, 70_001])
def test_copysign_takes_bits(dtype, n):
    (x, wide), (y, other) = values(dtype, n), values(dtype, n)
    y, other = y[::-1], other[::-1]
    number = ~np.isnan(wide) & ~np.isnan(other)
    for got, want in (
        (weft.copysign(x, y), np.copysign(wide, other)),
        (weft.copysign(x, -1.0), np.copysign(wide, -1.0)),
        (weft.copysign(x, y[:1]), np.copysign(wide, other[:1])),
        (weft.copysign(x.reshape(1, n).T, y.reshape(n, 1)).reshape(n), np.copysign(wide, other)),
    ):
        assert str(got.dtype) == dtype
        got = got.astype("float64").numpy()
        np.testing.assert_array_equal(got[number], want[number])
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))
    wide_result = weft.copysign(x, weft.asarray(np.full(n, -2.0, "float32")))
    assert str(wide_result.dtype) == "float32"
    np.testing.assert_array_equal(wide_result.numpy()[number], np.copysign(wide, -2.0)[number])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [5, 1000, 70_001])
@np.errstate(invalid="ignore")
def test_nextafter_is_the_next_of_its_type(dtype, n):
    """Beside the sorted list of all finite and infinite numbers of the type."""
    (x, wide), (y, other) = values(dtype, n), values(dtype, n)
    y, other = y[::-1], other[::-1]
    _, every = values(dtype, 1)
    bits = np.arange(2**16).astype("uint16")
    if dtype == "float16":
        every = bits.view("float16").astype("float64")
    else:
        with np.errstate(invalid="ignore"):
            every = (bits.astype("uint32") << 16).view("float32").astype("float64")
    every = np.unique(every[~np.isnan(every)])
    number = ~np.isnan(wide) & ~np.isnan(other)
    at = np.searchsorted(every, np.where(number, wide, 0))
    want = every[
        np.clip(at + np.where(number, np.sign(other - wide), 0).astype(int), 0, every.size - 1)
    ]
    want = np.where(number, np.where(wide == other, other, want), np.nan)
    got = weft.nextafter(x, y)
    assert str(got.dtype) == dtype
    np.testing.assert_array_equal(got.astype("float64").numpy(), want)
    up = weft.nextafter(x, np.inf).astype("float64").numpy()
    np.testing.assert_array_equal(up[number] > wide[number], wide[number] < np.inf)
    least = weft.nextafter(weft.asarray(np.array([-0.0, 0.0], dtype="float32")).astype(dtype), -1.0)
    assert (least.astype("float64").numpy() == -every[every > 0][0]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "m, k", [(2, 2), (3, 5), (5, 8193), (65, 129), (1025, 9), (4100, 3), (17, 20_000)]
)
@pytest.mark.parametrize("layout", ["rows", "columns", "gaps between rows", "gaps between columns"])
def test_products_with_vectors(dtype, m, k, layout):
    """Blocks of the matrix become float32 on the way: each side, each layout, vectors with gaps, mixed types."""
    rng = np.random.default_rng(m + k)
    turned = layout.endswith("columns")
    wide = weft.asarray(rng.standard_normal((k, m + 3) if turned else (m, k + 3)).astype("float32"))
    wide = wide.astype(dtype)
    inner = m if turned else k
    held = wide[:, 1 : 1 + inner] if layout.startswith("gaps") else wide[:, :inner].copy()
    a = held.T if turned else held
    exact = a.astype("float64").numpy()
    for kind in (dtype, "float32"):
        x = weft.asarray(rng.standard_normal((k, 2)).astype("float32")).astype(kind)[:, 1]
        y = weft.asarray(rng.standard_normal(m).astype("float32")).astype(kind)
        for got, want, terms in (
            (a @ x, exact @ x.astype("float64").numpy(), k),
            (y @ a, y.astype("float64").numpy() @ exact, m),
        ):
            assert got.dtype == getattr(weft, kind)
            unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-22}[kind]
            error = np.abs(got.astype("float64").numpy() - want)
            assert (error <= unit * np.abs(want) + 2.0**-22 * (8 + terms)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "low, high",
    [(0.3, 0.7), (-0.5, None), (None, 0.25), (0.0, 1e9), (-1e9, -0.1), (0.6, 0.2), (1, 2)],
)
def test_limits_of_all_words(dtype, low, high):
    """Every 16-bit word between limits is what float32 gives, rounded; NaN stays."""
    words = np.arange(65536, dtype="uint16")
    every = (
        (words.astype("uint32") << 16).view("float32")
        if dtype == "bfloat16"
        else words.view("float16")
    )
    x = weft.asarray(every).astype(dtype)
    wide = x.astype("float32").numpy()
    want = np.array(wide)
    for limit, pick in ((low, np.maximum), (high, np.minimum)):
        if limit is not None:
            want = pick(want, weft.asarray(float(limit)).astype(dtype).astype("float32").numpy())
    got = weft.clip(x, low, high)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.astype("float32").numpy(), want)
    np.testing.assert_array_equal(weft.clip(x[::3], low, high).astype("float32").numpy(), want[::3])
