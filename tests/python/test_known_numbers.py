# SPDX-License-Identifier: Apache-2.0
"""Rows whose second operand is a number with a cheaper way: integer division by constants, powers, signs of float16."""

import numpy as np
import pytest

import weft

SEED = 20261122
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()


def _numerators(dtype):
    kind = np.iinfo(dtype)
    if kind.bits <= 16:
        return np.arange(kind.min, kind.max + 1, dtype=dtype)
    rng = np.random.default_rng(SEED)
    edges = [kind.min, kind.min + 1, kind.max, kind.max - 1, 0, 1, 2, 3]
    return np.concatenate(
        [
            np.array(edges, dtype),
            rng.integers(kind.min, kind.max, 3000, dtype=dtype, endpoint=True),
            rng.integers(max(kind.min, -1000), 1000, 1000, dtype=dtype),
        ]
    )


def _divisors(dtype):
    kind = np.iinfo(dtype)
    if kind.bits == 8:
        return [*range(kind.min, 0), *range(1, kind.max + 1)]
    rng = np.random.default_rng(SEED + 1)
    powers = [1 << k for k in range(kind.bits - (kind.min < 0))]
    near = [p + d for p in powers for d in (-1, 0, 1)]
    drawn = [int(kind.max) >> int(s) for s in rng.integers(0, kind.bits - 2, 20)]
    drawn += [int(d) for d in rng.integers(1, 1000, 20)]
    return sorted({d for d in near + drawn if 1 <= d <= kind.max}) + ([-1, -3] if kind.min else [])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_divided_by_constants_as_numpy_divides_them(dtype):
    print("seed", SEED)
    n = _numerators(dtype)
    w = weft.asarray(n)
    with np.errstate(over="ignore"):
        for d in _divisors(dtype):
            quotient, rest = n // np.array(d, dtype), n % np.array(d, dtype)
            np.testing.assert_array_equal((w // d).numpy(), quotient, err_msg=f"{dtype} // {d}")
            np.testing.assert_array_equal((w % d).numpy(), rest, err_msg=f"{dtype} % {d}")
            assert (w // d).dtype == dtype


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_by_constants_of_views_and_in_place(dtype):
    n = _numerators(dtype)
    n = n[: n.size // 10 * 10].reshape(-1, 10)
    w = weft.asarray(n.copy())
    np.testing.assert_array_equal((w.T // 7).numpy(), n.T // n.dtype.type(7))
    np.testing.assert_array_equal((w[::-2, 1::3] % 7).numpy(), n[::-2, 1::3] % n.dtype.type(7))
    w[:, ::2] //= 5
    w[:, 1::2] %= 5
    want = n.copy()
    want[:, ::2] //= n.dtype.type(5)
    want[:, 1::2] %= n.dtype.type(5)
    np.testing.assert_array_equal(w.numpy(), want)


def test_division_of_many_integers_on_two_threads():
    n = np.random.default_rng(SEED).integers(-(2**62), 2**62, 100_003)
    before = weft.get_threads()
    weft.set_threads(2)
    np.testing.assert_array_equal((weft.asarray(n) // 1000).numpy(), n // 1000)
    weft.set_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [3, 3.0, 0.5, -0.5, 2, -1, 1, 0])
def test_powers_by_products_and_roots(dtype, p):
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, -2.5, 5e-324, 1e-30, 1e30]
    x = np.array([*special, *np.random.default_rng(SEED).uniform(0, 9, 3000)], dtype)
    with np.errstate(all="ignore"):
        want = np.power(x.astype("longdouble"), np.longdouble(p)).astype(dtype)
        want[: len(special)] = np.power(x[: len(special)], np.full(len(special), p, dtype))
    for got in (weft.asarray(x) ** p, weft.pow(weft.asarray(x), p), weft.asarray(x)[::-1] ** p):
        got = got.numpy()
        got = got[::-1] if got[0] != want[0] else got
        np.testing.assert_allclose(got, want, rtol=2 * np.finfo(dtype).eps, atol=0)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    x = weft.asarray(x)
    x **= p
    np.testing.assert_allclose(x.numpy(), want, rtol=2 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_cubes_of_integers_wrap(dtype):
    n = _numerators(dtype)
    np.testing.assert_array_equal((weft.asarray(n) ** 3).numpy(), n * n * n)


def test_a_real_power_of_integers_is_real():
    n = np.arange(5)
    got = weft.asarray(n) ** 0.5
    assert got.dtype == weft.float32
    np.testing.assert_allclose(got.numpy(), np.sqrt(n), rtol=1e-6)


@pytest.mark.parametrize("p", [3, 2, 1, 0, 0.5, -0.5, -1, 2.5, 4])
def test_gradients_of_powers_twice(p):
    x = weft.Tensor(np.array([0.5, 1.0, 2.0, 3.0]), dtype="float64")
    y = (x**p).sum()
    y.backward(create_graph=True)
    n = x.numpy()
    np.testing.assert_allclose(x.grad.numpy(), p * n ** (p - 1), rtol=1e-12)
    if p in (0, 1):
        return
    first, x.grad = x.grad, None
    first.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), p * (p - 1) * n ** float(p - 2), rtol=1e-12)


@pytest.mark.parametrize("p", [3, 2, 0.5, -0.5, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_compiled_powers_have_the_same_bits(p, dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, -3.0, *np.linspace(0.1, 5, 99)], dtype)
    eager = (weft.asarray(x) ** p).numpy()
    fused = weft.compile(lambda v: v**p)(weft.asarray(x)).numpy()
    np.testing.assert_array_equal(eager.view(f"u{x.itemsize}"), fused.view(f"u{x.itemsize}"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_signs_of_narrow_floats_are_bits(dtype):
    words = np.arange(65536, dtype="uint16")
    x = weft.asarray(words.view("float16"))
    if dtype == "bfloat16":
        wide = (words.astype("uint32") << 16).view("float32")
        x = weft.asarray(wide).astype(dtype)
        nan = np.isnan(wide)
        for got, want in ((abs(x), np.abs(wide)), (-x, -wide)):
            got = got.astype("float32").numpy()
            np.testing.assert_array_equal(got[~nan].view("u4"), want[~nan].view("u4"))
            assert np.isnan(got[nan]).all()
        return
    np.testing.assert_array_equal(abs(x).numpy().view("uint16"), words & 0x7FFF)
    np.testing.assert_array_equal((-x).numpy().view("uint16"), words ^ 0x8000)
    np.testing.assert_array_equal((-x[::3]).numpy().view("uint16"), words[::3] ^ 0x8000)


@pytest.mark.parametrize("dtype", "float32 int32 uint32 float64 int64 uint64".split())
@pytest.mark.parametrize("n", [1, 31, 32, 33, 95, 4099, 40_001])
def test_truth_values_of_every_length(dtype, n):
    rng = np.random.default_rng(SEED + n)
    a, b = (rng.integers(0, 3, n).astype(dtype) for _ in range(2))
    if dtype.startswith("float"):
        a[rng.random(n) < 0.2] = np.nan
        b[rng.random(n) < 0.2] = np.nan
    wa, wb = weft.asarray(a), weft.asarray(b)
    for name in "equal not_equal less less_equal greater greater_equal".split():
        ours, theirs = getattr(weft, name), getattr(np, name)
        np.testing.assert_array_equal(ours(wa, wb).numpy(), theirs(a, b))
        np.testing.assert_array_equal(ours(wa, 1).numpy(), theirs(a, b.dtype.type(1)))
        np.testing.assert_array_equal(ours(1, wb).numpy(), theirs(a.dtype.type(1), b))
        np.testing.assert_array_equal(ours(wa[::-1], wb[:1]).numpy(), theirs(a[::-1], b[:1]))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_remainders_of_floats_have_the_bits_of_fmod(n):
    """Quotients on both sides of what the quick way takes, whole ones, special values, every layout."""
    rng = np.random.default_rng(SEED + n)
    x = (rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n)).astype("float32")
    y = (rng.standard_normal(n) + 1.5).astype("float32")
    whole = rng.random(n) < 0.3
    x[whole] = (np.round(x[whole]) * y[whole]).astype("float32")
    cases = [(x, y)]
    far = x.copy()
    far[n // 2] = 3e30
    cases.append((far, y))
    odd = x.copy()
    odd[:: max(1, n // 7)] = rng.choice(
        np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45], "float32"), len(odd[:: max(1, n // 7)])
    )
    cases += [(odd, y), (y, odd)]
    with np.errstate(all="ignore"):
        for a, b in cases:
            wa, wb = weft.asarray(a), weft.asarray(b)
            d = np.float32(0.7)
            for got, p, q in ((wa % wb, a, b), (wa % 0.7, a, d), (0.7 % wb, d, b)):
                m = np.fmod(p, q)
                want = np.where(
                    m == 0, np.copysign(np.float32(0), q), np.where((m < 0) != (q < 0), m + q, m)
                )
                np.testing.assert_array_equal(got.numpy(), want.astype("float32"))
            for got, q in ((wa // wb, b), (wa // 0.7, d)):
                plain = ~np.isfinite(a) | (q == 0) | (a / q == 0)  # where there is no remainder
                want = np.where(plain, np.floor(a / q), np.floor_divide(a, q))
                np.testing.assert_array_equal(got.numpy(), want)


def test_extremes_of_four_rows_and_nan():
    rng = np.random.default_rng(SEED)
    for dtype in ("float32", "float64"):
        for n in (1, 7, 8, 15, 16, 17, 40, 1000):
            x = rng.standard_normal((23, n)).astype(dtype)
            x[5, rng.integers(0, n)] = np.nan
            x[22, -1] = np.nan
            x[11, 0] = np.nan
            for ours, theirs in ((weft.max, np.max), (weft.min, np.min)):
                np.testing.assert_array_equal(ours(weft.asarray(x), axis=1).numpy(), theirs(x, 1))


def test_random_normals_are_box_and_mullers():
    key = weft.random.Key(SEED)
    u = weft.random.uniform((8, 3), key=key).numpy().reshape(-1).astype("float64")
    radius, angle = np.sqrt(-2 * np.log1p(-u[::2])), 2 * np.pi * u[1::2]
    want = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
    got = weft.random.normal((8, 3), key=key).numpy().reshape(-1)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-7)
    for dtype in ("float32", "float64"):  # a stream does not depend on how much is drawn of it
        for make in (weft.random.uniform, weft.random.normal):
            long = make((100_001,), key=key, dtype=dtype).numpy()
            for n in (1, 2, 3, 5, 1001):
                np.testing.assert_array_equal(make((n,), key=key, dtype=dtype).numpy(), long[:n])
    assert abs(long.mean()) < 0.02 and abs(long.std() - 1) < 0.02


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_limits_that_are_numbers(dtype):
    """maximum and minimum with a number: NaN of either side wins, the number where they are equal."""
    kind = getattr(weft, dtype)
    values = np.array([np.nan, -np.inf, -2.0, -0.0, 0.0, 1.5, 2.0, np.inf] * 9)
    x = weft.asarray(values).astype(kind)
    for limit in (0.0, -0.0, 1.5, 2, -2, np.inf, -np.inf, np.nan, 10**30):
        with np.errstate(over="ignore"):
            there = float(
                weft.asarray(float(limit), dtype=weft.float64).astype(kind).astype(weft.float64)
            )
        for name in ("maximum", "minimum"):
            want = getattr(np, name)(values, there)
            for view, wanted in ((x, want), (x[::3], want[::3]), (x[:1], want[:1])):
                got = getattr(weft, name)(view, limit).astype(weft.float64).numpy()
                np.testing.assert_array_equal(got, wanted)
            into = x.copy()
            getattr(weft, name)(into, limit, out=into)
            np.testing.assert_array_equal(into.astype(weft.float64).numpy(), want)
    low, high = weft.clip(x, -1.0, 1.5), np.clip(values, -1.0, 1.5)
    np.testing.assert_array_equal(low.astype(weft.float64).numpy(), high)
