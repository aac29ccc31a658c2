# SPDX-License-Identifier: Apache-2.0
"""Functions that are composed of rows of the table and run as one pass (_pointwise.composed, bindings/chunked_calls.cpp), and
selection, running extremes, sums by place and divisors of the host, beside NumPy."""

import itertools
import math

import numpy as np
import pytest
import weft
from weft import _pointwise

FLOATS = ("float32", "float64", "float16")
EDGES = (
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1.0,
    -1.0,
    5e-324,
    1e-45,
    1e-40,
    3.4e38,
    -2.5,
    0.5,
)
SIZES = (1, 3, 17, 1000, 5001)


def drawn(n, dtype, seed=0):
    """Random numbers with edges among them."""
    rng = np.random.default_rng(seed + n)
    with np.errstate(over="ignore"):
        x = (rng.standard_normal(n) * 9).astype(dtype)
        for k, edge in enumerate(EDGES):
            x[k * 7 % n :: 97] = np.array(edge).astype(dtype)
    return x


def same(got, want, ulps=0):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind != "f":
        return np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    there = ~np.isnan(want)
    if not ulps:
        np.testing.assert_array_equal(got[there], want[there])
        return np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(want[there]))
    with np.errstate(all="ignore"):
        near = np.abs(got[there] - want[there]) <= ulps * np.spacing(np.abs(want[there]))
    assert (near | (got[there] == want[there])).all()


def thrice(f, *args):
    """The composition, its first pass, and a call that does not enter Python; a view with steps as well."""
    results = [np.asarray(f(*args)) for _ in range(3)]
    for r in results[1:]:
        np.testing.assert_array_equal(r, results[0])
    return results[0]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_pairs_of_floats(dtype, n):
    a, b = drawn(n, dtype), drawn(n, dtype, 5)
    x, y = weft.asarray(a), weft.asarray(b)
    with np.errstate(all="ignore"):
        for name in ("fmod", "fmax", "fmin", "heaviside"):
            want = getattr(np, name)(a, b)
            got = thrice(getattr(weft, name), x, y)
            if name in ("fmax", "fmin"):  # of 0 and -0 either
                got, want = got + 0, want + 0
            same(got, want)
            same(getattr(weft, name)(x[::-2], y[::-2]) + 0, getattr(np, name)(a[::-2], b[::-2]) + 0)
            same(thrice(getattr(weft, name), x, 2.5), getattr(np, name)(a, np.array(2.5, dtype)))
        same(thrice(weft.fmax, x, math.nan), np.fmax(a, np.array(np.nan, dtype)))
        same(thrice(weft.isclose, x, y), np.isclose(a, b))
        same(
            thrice(lambda u, v: weft.isclose(u, v, equal_nan=True), x, y),
            np.isclose(a, b, equal_nan=True),
        )
        same(thrice(weft.isclose, x, 1.0), np.isclose(a, 1.0))


@pytest.mark.parametrize("dtype", "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
@pytest.mark.parametrize("n", SIZES)
def test_pairs_of_whole_numbers(dtype, n):
    rng, info = np.random.default_rng(n), np.iinfo(dtype)
    a = rng.integers(info.min + 1, info.max, n, dtype=dtype, endpoint=True)
    b = rng.integers(1, 30, n).astype(dtype)
    x, y = weft.asarray(a), weft.asarray(b)
    same(thrice(weft.fmod, x, y), np.fmod(a, b))
    same(thrice(weft.fmod, x, 7), np.fmod(a, np.array(7, dtype)))
    same(thrice(weft.fmax, x, y), np.fmax(a, b))
    same(thrice(weft.gcd, x, y), np.gcd(a, b))
    small = (a % 50).astype(dtype)
    same(thrice(weft.lcm, weft.asarray(small % 5), y), np.lcm(small % np.array(5, dtype), b))
    same(weft.gcd(x, weft.zeros_like(x)), np.abs(a))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_one_float(dtype, n):
    a = drawn(n, dtype)
    x = weft.asarray(a)
    with np.errstate(all="ignore"):
        same(
            thrice(weft.cbrt, x),
            np.cbrt(a.astype("longdouble")).astype(dtype),
            1 if dtype == "float16" else 2,
        )
        same(weft.cbrt(x[::3]), weft.cbrt(weft.asarray(a[::3].copy())))
        same(thrice(weft.nan_to_num, x), np.nan_to_num(a))
        got = thrice(lambda v: weft.nan_to_num(v, nan=1.0, posinf=2.0, neginf=-3.0), x)
        same(got, np.nan_to_num(a, nan=1.0, posinf=2.0, neginf=-3.0))
        same(thrice(weft.replace_nan, x, 4.0), np.where(np.isnan(a), np.array(4, dtype), a))
        for got, want in zip(weft.modf(x), np.modf(a)):
            same(got, want)
        for _ in range(2):
            for got, want in zip(weft.modf(x), np.modf(a)):
                same(got, want)
        same(thrice(weft.angle, x), np.angle(a).astype(dtype), 1)
        same(thrice(weft.frac, x)[np.isfinite(a)], (a - np.trunc(a))[np.isfinite(a)])


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_cube_roots_are_within_a_unit(dtype):
    """Of numbers over the whole range, subnormal ones included, beside long double."""
    words = {"float32": "uint32", "float64": "uint64"}[dtype]
    rng = np.random.default_rng(3)
    a = rng.integers(0, np.iinfo(words).max, 200_000, dtype=words).view(dtype)
    a = a[np.isfinite(a)]
    want = np.cbrt(a.astype("longdouble"))
    error = np.abs(weft.cbrt(weft.asarray(a)).numpy() - want) / np.spacing(
        np.abs(want).astype(dtype)
    )
    assert error.max() < 1


def test_what_is_seen_does_not_enter_python():
    x = weft.asarray(np.linspace(-3, 3, 11, dtype="float32"))
    for name, args in (("fmax", (x, x)), ("fmod", (x, 2.0)), ("lerp", (x, x, 0.5)), ("sinc", (x,))):
        function = getattr(weft, name)
        for _ in range(2):
            want = function(*args)
        direct = function.__wrapped__.__weft_direct__
        np.testing.assert_array_equal(direct(*args).numpy(), want.numpy())
        assert direct(x.astype("complex64"), *args[1:]) is NotImplemented
        assert direct(*args, 1.0, 2.0) is NotImplemented
    tensor = weft.Tensor(x, requires_grad=False)
    assert isinstance(weft.nn.functional.elu(tensor), weft.Tensor)
    got = weft.nn.functional.elu.__wrapped__.__weft_direct__(tensor)
    assert isinstance(got, weft.Tensor) and not got.requires_grad
    leaf = weft.Tensor(x, requires_grad=True)
    assert weft.nn.functional.elu(leaf).requires_grad


def test_numbers_that_differ_from_call_to_call():
    x = weft.asarray(np.linspace(-3, 3, 11))
    for k in range(300):
        same(weft.lerp(x, 2 * x, k / 7), x.numpy() + (2 * x.numpy() - x.numpy()) * (k / 7))
    same(weft.fmod(x.astype("int32"), 2), np.fmod(x.numpy().astype("int32"), np.int32(2)))
    assert weft.fmod(x.astype("int32"), 2.0).dtype.kind == "f"
    zero = weft.copysign(x, weft.xlogy(x * 0.0, 2.0))
    assert zero.shape == x.shape


@pytest.mark.parametrize("n", (1, 2, 129, 257, 1000, 3001, 20011))
@pytest.mark.parametrize(
    "dtype", "float32 float64 float16 int8 uint8 int32 uint32 int64 uint64 bool".split()
)
def test_selection(n, dtype):
    rng = np.random.default_rng(n)
    kinds = [
        rng.standard_normal(n) * 40,
        np.zeros(n),
        np.arange(n),
        -np.arange(n),
        rng.integers(0, 2, n),
    ]
    for a in kinds:
        a = (np.abs(a) if dtype[0] == "u" else a).astype(dtype)
        if dtype[0] == "f":
            a[::11], a[::13], a[1::29], a[2::31] = 0.0, -0.0, np.inf, -np.inf
            if n > 500:
                a[5::501] = np.nan
        for k in {0, n // 3, n // 2, n - 1}:
            got = weft.partition(weft.asarray(a), k).numpy()
            ordered = np.sort(a)
            assert got.dtype == a.dtype
            np.testing.assert_array_equal(got[k], ordered[k])
            np.testing.assert_array_equal(np.sort(got), ordered)
            np.testing.assert_array_equal(np.sort(got[:k]), ordered[:k])
            if dtype[0] == "f":  # zeros and NaN with their bits
                word = f"uint{8 * a.itemsize}"
                np.testing.assert_array_equal(np.sort(got.view(word)), np.sort(a.view(word)))
            at = weft.argpartition(weft.asarray(a), k).numpy()
            np.testing.assert_array_equal(np.sort(at), np.arange(n))
            np.testing.assert_array_equal(np.sort(a[at[:k]]), ordered[:k])
        if dtype in ("float32", "float64"):
            a[np.isinf(a)] = 1.0  # between infinities NumPy has NaN
            for q in (0.0, 0.3, 0.5, 1.0):
                with np.errstate(invalid="ignore"):
                    np.testing.assert_allclose(
                        weft.quantile(weft.asarray(a), q).numpy(), np.quantile(a, q), rtol=1e-6
                    )
                    np.testing.assert_allclose(
                        weft.nanquantile(weft.asarray(a), q).numpy(),
                        np.nanquantile(a, q),
                        rtol=1e-6,
                    )


@pytest.mark.parametrize(
    "dtype", "float32 float64 float16 int8 uint8 int32 uint32 int64 uint64".split()
)
def test_places_in_order(dtype):
    rng = np.random.default_rng(1)
    for n, m in itertools.product((0, 1, 2, 3, 50, 1000), (1, 7, 8, 9, 1001)):
        a = np.sort((rng.standard_normal(n) * 20).astype(dtype))
        v = (rng.standard_normal(m) * 30).astype(dtype)
        if n and m > 1:
            v[0], v[1] = a[n // 2], a[-1]
        if dtype[0] == "f" and n > 3:
            a[-2:] = np.nan
            v[-1] = np.nan
        for side in ("left", "right"):
            got = weft.searchsorted(weft.asarray(a), weft.asarray(v), side=side).numpy()
            np.testing.assert_array_equal(got, np.searchsorted(a, v, side))


@pytest.mark.parametrize(
    "dtype", "float32 float64 float16 int8 uint8 int32 uint32 int64 uint64 bool".split()
)
def test_running_extremes(dtype):
    rng = np.random.default_rng(2)
    a = (rng.standard_normal((7, 33, 5)) * 5).astype(dtype)
    if dtype[0] == "f":
        a[3, 10, 2] = a[0, 0, 0] = np.nan
    for axis in (0, 1, -1):
        for name, accumulate in (("cummax", np.maximum), ("cummin", np.minimum)):
            got, at = getattr(weft, name)(weft.asarray(a), axis)
            with np.errstate(invalid="ignore"):
                want = accumulate.accumulate(a, axis=axis)
            np.testing.assert_array_equal(got.numpy(), want)
            np.testing.assert_array_equal(np.take_along_axis(a, at.numpy(), axis), want)
            # The last of equals, which no later one up to here is.
            index = np.arange(a.shape[axis]).reshape([-1 if k == axis % 3 else 1 for k in range(3)])
            assert (at.numpy() <= index).all()
            hit = (a == want) | (np.isnan(a) if dtype[0] == "f" else False)
            np.testing.assert_array_equal(
                at.numpy(), np.maximum.accumulate(np.where(hit, index, -1), axis=axis)
            )


def test_sums_by_place():
    rng = np.random.default_rng(4)
    for n, bins in ((0, 1), (1, 1), (5, 3), (1001, 7), (5000, 5000), (4096, 4096)):
        at = rng.integers(0, bins, n)
        for dtype in ("float32", "float64", "int32"):
            w = (rng.standard_normal(n) * 4).astype(dtype)
            got = weft.bincount(weft.asarray(at), weft.asarray(w), minlength=3).numpy()
            np.testing.assert_allclose(got, np.bincount(at, w, 3), rtol=1e-4, atol=1e-4)
    with pytest.raises(weft.ArgumentError):
        weft.bincount(weft.asarray([1, -1]), weft.asarray([1.0, 2.0]))


@pytest.mark.parametrize(
    "dtype", "complex64 complex128 float32 float64 int32 int64 float16".split()
)
def test_sums_of_products(dtype):
    rng = np.random.default_rng(5)

    def draw(*shape):
        x = rng.standard_normal(shape) * 3
        return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)

    close = dict(rtol=3e-2, atol=1) if dtype == "float16" else dict(rtol=2e-5, atol=2e-4)
    wide = "complex128" if dtype[0] == "c" else "float64"
    for n in (1, 2, 5, 1000, 1025, 5001):
        a, b = draw(n), draw(n)
        np.testing.assert_allclose(
            weft.dot(weft.asarray(a), weft.asarray(b)).numpy(),
            np.dot(a.astype(wide), b.astype(wide)),
            **close,
        )
    for rows, k in ((1, 3), (7, 1), (50, 10), (33, 17), (5, 1500), (4, 0)):
        a, b = draw(rows, k), draw(rows, k)
        want = np.einsum("ij,ij->i", a.astype(wide), b.astype(wide))
        for u, v in ((a, b), (a.T.copy().T, b), (a, np.asfortranarray(b))):
            got = weft.einsum("ij,ij->i", weft.asarray(u), weft.asarray(v)).numpy()
            np.testing.assert_allclose(got, want, **close)
    tall = draw(3001, 10)
    np.testing.assert_allclose(
        (weft.asarray(tall).T @ weft.asarray(tall)).numpy(),
        tall.T.astype(wide) @ tall.astype(wide),
        rtol=3e-2 if dtype == "float16" else 1e-4,
        atol=60 if dtype == "float16" else 1e-2,
    )


@pytest.mark.parametrize("dtype", "float32 float64 int32 float16".split())
def test_convolutions(dtype):
    rng = np.random.default_rng(6)
    for n, m in (
        (1, 1),
        (5, 5),
        (7, 3),
        (3, 7),
        (1000, 5),
        (5000, 64),
        (3000, 17),
        (64, 63),
        (100, 70),
        (9000, 8),
    ):
        a, v = ((rng.standard_normal(k) * 4).astype(dtype) for k in (n, m))
        for mode in ("full", "same", "valid"):
            got = weft.convolve(weft.asarray(a), weft.asarray(v), mode).numpy()
            want = np.convolve(a.astype("float64"), v.astype("float64"), mode)
            np.testing.assert_allclose(
                got,
                want,
                rtol=1e-2 if dtype == "float16" else 1e-4,
                atol=1 if dtype == "float16" else 1e-3,
            )


def test_parts_between_places():
    a = np.arange(24.0).reshape(4, 6)
    x = weft.asarray(a)
    for index, axis in ((2, None), (-1, 1), ([1, 3], 1), ([5, 1, 1], 1), (slice(1, 3), 0), ([], 0)):
        index_of = np.array(index, int) if index == [] else index
        np.testing.assert_array_equal(
            weft.delete(x, index, axis).numpy(), np.delete(a, index_of, axis)
        )
    for index, values, axis in (
        (2, 7.0, None),
        (0, [1.0, 2.0], None),
        ([1, 3, 1], [7.0, 8.0, 9.0], None),
        (6, 5.0, 1),
        (2, np.ones((3, 4)), 1),
        ([0, 4], np.ones((2, 6)), 0),
    ):
        np.testing.assert_array_equal(
            weft.insert(x, index, values, axis).numpy(), np.insert(a, index, values, axis)
        )
    bits = np.random.default_rng(7).random((5, 21)) < 0.5
    for axis, order in itertools.product((None, 0, 1), ("big", "little")):
        np.testing.assert_array_equal(
            weft.packbits(weft.asarray(bits), axis, order).numpy(), np.packbits(bits, axis, order)
        )
    np.testing.assert_array_equal(
        weft.packbits(weft.asarray([3, 0, -1])).numpy(), np.packbits([3, 0, -1])
    )
    y = np.array([np.inf, 1.0, 2.0, 5.0])
    for part in (y, y[1:], y[:1], y[1:3]):
        np.testing.assert_allclose(
            weft.trapezoid(weft.asarray(part), dx=0.5).numpy(),
            np.trapezoid(part, dx=0.5) if hasattr(np, "trapezoid") else np.trapz(part, dx=0.5),
        )
    np.testing.assert_allclose(
        weft.trapezoid(x, axis=0).numpy(), a[:-1].sum(0) / 2 + a[1:].sum(0) / 2
    )
    assert weft.squeeze(x[None, :, None]).shape == (4, 6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_small_systems(dtype):
    rng = np.random.default_rng(8)

    def draw(*shape):
        x = rng.standard_normal(shape)
        return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)

    tolerance = 2e-3 if dtype in ("float32", "complex64") else 1e-9
    for n in (1, 2, 3, 4, 5, 8, 9):
        a = draw(7, n, n)
        a[0] = np.eye(n)[::-1]  # every pivot lies in another row
        a[1] *= np.array(1e-37 if dtype in ("float32", "complex64") else 1e-300, a.real.dtype)
        for b in (draw(7, n, 3), draw(n, 2), draw(7, n, 1)):
            got = weft.linalg.solve(weft.asarray(a[2:]), weft.asarray(b[2:] if b.ndim > 2 else b))
            residue = a[2:] @ got.numpy() - (b[2:] if b.ndim > 2 else b)
            assert (
                got.dtype == dtype and np.abs(residue).max() < tolerance * np.abs(got.numpy()).max()
            )
        got = weft.linalg.inv(weft.asarray(a)).numpy()
        assert np.isfinite(got).all()
        np.testing.assert_allclose(
            a.astype("complex128") @ got, np.broadcast_to(np.eye(n), a.shape), atol=tolerance * 50
        )
        det = weft.linalg.det(weft.asarray(a[2:])).numpy()
        np.testing.assert_allclose(det, np.linalg.det(a[2:]), rtol=tolerance * 10, atol=tolerance)
        np.testing.assert_array_equal(
            weft.linalg.solve(weft.asarray(a[0]), weft.asarray(a[0][:, 0])).numpy(), np.eye(n)[:, 0]
        )
        a[3, :, 0] = 0
        with pytest.raises(weft.ArgumentError, match="matrix 3"):
            weft.linalg.inv(weft.asarray(a))


def test_padded_short_rows():
    for shape in ((3, 4), (40, 7, 3), (5, 100)):
        for dtype in ("float32", "int8", "complex128"):
            a = (np.random.default_rng(9).standard_normal(shape) * 9).astype(dtype)
            widths = [(1, 2)] * len(shape)
            for x, y in ((a, weft.asarray(a)), (a[::-1], weft.asarray(a)[::-1])):
                got = weft.pad(y, widths, value=3).numpy()
                np.testing.assert_array_equal(got, np.pad(x, widths, constant_values=3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 5, 1023, 2050])
def test_polynomials_are_rounded_as_their_operations(n, dtype):
    """Runs of products and sums are one step (chunked_polynomial.h), with the bits of the single operations."""
    rng = np.random.default_rng(n)
    x = (rng.standard_normal(n) * 3).astype(dtype)
    x[::17], x[3::29] = np.inf, np.nan
    y = rng.standard_normal(n).astype(dtype)
    kind = np.dtype(dtype).type

    def shapes(x, y, c):
        powers = x * c[0] + c[1]
        for k in c[2:]:
            powers = powers * x + k
        turned = c[0] + y * x
        for k in c[1:]:
            turned = k + x * turned
        shared = (y * x + c[0]) * x + c[1]
        again = (shared * x + c[2]) * x + c[3]
        other = ((again * y + c[0]) * y + c[1]) * y + c[2]
        return powers, turned, shared + again, other * x + (powers - turned)

    for count in (4, 5, 8, 11, 23):
        numbers = [float(np.float32(v)) for v in rng.standard_normal(count)]
        f = _pointwise.composed(lambda x, y, c=tuple(numbers): shapes(x, y, c))
        with np.errstate(all="ignore"):
            want = shapes(x, y, [kind(v) for v in numbers])
        for got in (f(weft.asarray(x), weft.asarray(y)) for _ in range(2)):
            for g, w in zip(got, want):
                same(g, w)
        back = f(weft.asarray(x[::-1].copy())[::-1], weft.asarray(y))
        same(back[3], want[3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
def test_fractions_and_exponents(n, dtype):
    a = drawn(n, dtype, 9)
    tiny = np.finfo(dtype).smallest_subnormal
    a[::5] *= np.exp2(np.random.default_rng(n).integers(-30, 30, len(a[::5]))).astype(dtype)
    a[2::31] = tiny * 5
    for view in (a, a[::-3]):
        m, e = np.frexp(view)
        got = weft.frexp(weft.asarray(a)[::-3] if view is not a else weft.asarray(a))
        same(got[0], m)
        assert got[1].dtype == "int32"
        there = np.isfinite(view)
        np.testing.assert_array_equal(np.asarray(got[1])[there], e[there])


def test_signs_of_complex_numbers():
    rng = np.random.default_rng(8)
    for dtype in ("complex64", "complex128"):
        z = (rng.standard_normal(1001) + 1j * rng.standard_normal(1001)).astype(dtype)
        z[::10] = 0
        want = np.where(z == 0, 0, z / np.where(z == 0, 1, np.abs(z)))
        np.testing.assert_allclose(np.asarray(weft.sgn(weft.asarray(z))), want, rtol=3e-7 if dtype == "complex64" else 1e-15)  # fmt: skip
