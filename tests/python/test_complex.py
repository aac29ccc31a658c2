# SPDX-License-Identifier: Apache-2.0
"""Complex numbers beside NumPy (whose functions are the C library's): values, special cases, layouts, reductions.

The kernels are pairs of reals from the operation table (src/weft/elements/complex_ir.h), so that nothing here is shared
with the reference.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import weft

SEED = 20261122
TYPES = ["complex64", "complex128"]
FUNCTIONS = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "log": np.log, "log10": np.log10,
    "log2": np.log2, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip


def _rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


def _numbers(rng, shape, dtype):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def _real(dtype):
    return np.empty(0, dtype).real.dtype


def _pairs(re, im, dtype):
    """Numbers of these parts, signs of zeros and NaN included (arithmetic would lose them)."""
    out = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)) + (2,), _real(dtype))
    out[..., 0], out[..., 1] = re, im
    return out.view(dtype)[..., 0]


def _points(rng, dtype):
    """Where functions are hard: on the unit circle, near the branch points, far out, close to zero and to the axes."""
    n, far = 400, 15 if dtype == "complex64" else 140
    z = _numbers(rng, n, "complex128")
    angle, sign = rng.uniform(0, 2 * np.pi, n), rng.choice([-1, 1], n)
    scale = 10.0 ** rng.uniform(-far, far, n)
    sets = [
        z,
        z * 10,
        z * 1e-4,
        z * scale,
        np.exp(1j * angle),
        np.exp(1j * angle) * (1 + z.real * 1e-6),
    ]
    sets += [p + z * s for p in (1, -1, 1j, -1j) for s in (1e-3, 1e-6)]
    sets += [
        sign * rng.uniform(0, 5, n) + 1j * z.imag * scale,
        z.real * scale + 1j * sign * rng.uniform(0, 5, n),
    ]
    return np.concatenate(sets).astype(dtype)


def _units(got, want, dtype):
    """Distance in units of the last place of `want`, part by part."""
    spacing = np.spacing(np.abs(want).astype(_real(dtype))).astype("longdouble")
    return np.abs(got.astype("longdouble") - want.astype("longdouble")) / spacing


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    """complex64 against NumPy's complex128: rounded once. complex128: within what both are allowed."""
    rng = _rng()
    with np.errstate(all="ignore"):
        for dtype, bound in (("complex64", 1.01), ("complex128", 10.0)):
            z = _points(rng, dtype)
            got, want = (
                getattr(weft, name)(weft.asarray(z)).numpy(),
                FUNCTIONS[name](z.astype("complex128")),
            )
            assert got.dtype == z.dtype
            for part in ("real", "imag"):
                g, w = getattr(got, part), getattr(want, part)
                inside = np.abs(w) < np.finfo(_real(dtype)).max
                assert inside.mean() > 0.8
                # NumPy's base changes multiply a rounded logarithm.
                worst = _units(g[inside], w[inside], dtype).max()
                assert worst <= bound, (name, dtype, part, float(worst))
                assert not np.isfinite(g[~inside]).any()


@pytest.mark.parametrize("dtype", TYPES)
def test_small_arguments(dtype):
    """expm1 and log1p beside their series, where exp(z) - 1 and log(1 + z) have no digits left."""
    z = (_numbers(_rng(), 500, "complex128") * 1e-4).astype(dtype)
    wide = z.astype("clongdouble")
    for name, series in (
        ("expm1", wide * (1 + wide / 2 * (1 + wide / 3 * (1 + wide / 4 * (1 + wide / 5))))),
        (
            "log1p",
            wide
            * (
                1
                - wide
                * (1 / np.longdouble(2) - wide * (1 / np.longdouble(3) - wide * (0.25 - wide / 5)))
            ),
        ),
    ):
        got = getattr(weft, name)(weft.asarray(z)).numpy()
        for part in ("real", "imag"):
            off = _units(getattr(got, part), getattr(series, part), dtype).max()
            assert off <= (1.01 if dtype == "complex64" else 4), (name, part, float(off))


def test_log1p_on_the_circle():
    """|1 + z| = 1 but for rounding: the real part is what rounding left."""
    rng = _rng()
    angle = rng.uniform(0, 2 * np.pi, 300)
    z = np.exp(1j * angle) - 1
    got = weft.log1p(weft.asarray(z)).numpy().real
    exact = []
    for v in z:
        x, y = Fraction(v.real), Fraction(v.imag)
        exact.append(float((2 * x + x * x + y * y) / 2))  # log(1 + t) / 2, t ~ 1e-16
    assert np.abs(exact).max() < 1e-15
    np.testing.assert_allclose(got, exact, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("log2", "log10")])
@pytest.mark.parametrize("dtype", TYPES)
def test_special_cases(name, dtype):
    """Zeros of both signs, infinities and NaN, as C99's Annex G has them."""
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 20.0, -800.0, np.inf, -np.inf, np.nan]
    z = np.array([_pairs(a, b, dtype) for a, b in itertools.product(parts, parts)])
    with np.errstate(all="ignore"):
        got, want = getattr(weft, name)(weft.asarray(z)).numpy(), FUNCTIONS[name](z)
    whole = np.isfinite(z.real) & np.isfinite(z.imag)
    for k in range(len(z)):
        a, b = (got[k].real, got[k].imag), (want[k].real, want[k].imag)
        lost = np.isnan(b).any()
        for g, w in zip(a, b, strict=True):
            case = (name, z[k], got[k], want[k])
            assert np.isnan(g) == np.isnan(w), case
            if np.isnan(w):
                continue
            assert np.isinf(g) == np.isinf(w), case
            # Signs beside NaN, and of zeros at the ends, are not said.
            if not lost and (w != 0 or whole[k]):
                assert np.signbit(g) == np.signbit(w), case
            if np.isfinite(w):
                np.testing.assert_allclose(
                    g, w, rtol=1e-6 if dtype == "complex64" else 1e-14, err_msg=str(case)
                )


def test_logarithms_of_other_bases():
    z = np.array(
        [
            _pairs(a, b, "complex128")
            for a, b in itertools.product([0.0, 1.0, -8.0, np.inf], [0.0, -0.0, 2.0])
        ]
    )
    natural = weft.log(weft.asarray(z)).numpy()
    for name, base in (("log2", 2.0), ("log10", 10.0)):
        got = getattr(weft, name)(weft.asarray(z)).numpy()
        np.testing.assert_allclose(got.real, natural.real / np.log(base), rtol=1e-14)
        np.testing.assert_allclose(got.imag, natural.imag / np.log(base), rtol=1e-14)


@pytest.mark.parametrize("dtype", TYPES)
def test_arithmetic_bit_for_bit(dtype):
    """Products by the textbook, quotients by Smith's method, part by part in the type's own precision."""
    rng = _rng()
    n = 1003
    x, y = (
        _numbers(rng, n, dtype) * np.exp(rng.uniform(-30, 30, n)).astype(_real(dtype))
        for _ in range(2)
    )
    y[:5] = [0, 1, 1j, -1, 2 + 2j]
    a, b, c, d = x.real, x.imag, y.real, y.imag
    wx, wy = weft.asarray(x), weft.asarray(y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            (wx * wy).numpy(), _pairs(a * c - b * d, a * d + b * c, dtype)
        )
        np.testing.assert_array_equal((wx + wy).numpy(), _pairs(a + c, b + d, dtype))
        np.testing.assert_array_equal((wx - wy).numpy(), _pairs(a - c, b - d, dtype))
        over_c, over_d = d / c, c / d
        m, k = c + d * over_c, d + c * over_d
        smith = np.where(
            np.abs(c) >= np.abs(d),
            _pairs((a + b * over_c) / m, (b - a * over_c) / m, dtype),
            _pairs((a * over_d + b) / k, (b * over_d - a) / k, dtype),
        )
        zero = y == 0
        smith[zero] = _pairs(a[zero] / c[zero], b[zero] / d[zero], dtype)
        got = (wx / wy).numpy()
        np.testing.assert_array_equal(got[~zero], smith[~zero])
        assert np.isinf(got[zero]).all()
    for got, want in (
        (wx == wy, x == y), (wx != wy, x != y), (wx == weft.asarray(x), np.ones(n, bool)), (weft.conj(wx), x.conj()),
        (-wx, -x), (weft.real(wx), a), (weft.imag(wx), b), (weft.round(wx), np.round(x)),
        (weft.square(wx), (wx * wx).numpy()),
    ):  # fmt: skip
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("dtype", TYPES)
def test_no_overflow_in_between(dtype):
    """abs, quotients and roots at both ends of the range."""
    rng = _rng()
    info = np.finfo(_real(dtype))
    for scale in (float(info.max) / 4, float(info.tiny) * 64):
        z = (_numbers(rng, 301, "complex128") / 8 * scale).astype(dtype)
        w = weft.asarray(z)
        size = np.hypot(z.real.astype("longdouble"), z.imag.astype("longdouble"))
        assert _units(weft.abs(w).numpy(), size, dtype).max() <= (
            0.75 if dtype == "complex64" else 1.1
        )
        np.testing.assert_allclose((w / w).numpy(), np.ones(301), rtol=8 * info.eps)
        back = weft.square(weft.sqrt(w)).numpy()
        np.testing.assert_allclose(np.abs(back - z) / np.abs(z), np.zeros(301), atol=8 * info.eps)
        unit = np.abs(weft.sign(w).numpy().astype("complex128"))
        np.testing.assert_allclose(unit, np.ones(301), rtol=4 * info.eps)
    assert weft.abs(weft.asarray(_pairs(np.nan, -np.inf, dtype))).item() == np.inf
    assert weft.sign(weft.asarray(np.zeros(3, dtype))).numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", TYPES)
def test_powers(dtype):
    rng = _rng()
    x, y = _numbers(rng, 505, dtype), _numbers(rng, 505, dtype)
    got, want = (
        weft.pow(weft.asarray(x), weft.asarray(y)).numpy(),
        x.astype("complex128") ** y.astype("complex128"),
    )
    np.testing.assert_allclose(
        got, want.astype(dtype), rtol=3e-7 if dtype == "complex64" else 1e-13
    )
    zero = np.zeros(3, dtype)
    assert weft.pow(weft.asarray(zero), 0j).numpy().tolist() == [1, 1, 1]
    assert weft.pow(weft.asarray(zero), 2 + 1j).numpy().tolist() == [0, 0, 0]
    assert not np.isfinite(weft.pow(weft.asarray(zero), -1 + 0j).numpy()).any()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "asin", "log1p", "abs", "sign", "isnan"])
def test_place_does_not_matter(name, dtype):
    """An element's bits are the same at any place, of any layout, at any length."""
    z = _points(_rng(), dtype)[:1037]
    f = getattr(weft, name)
    all_at_once = f(weft.asarray(z)).numpy()
    for start, stop, step in ((0, 1, 1), (1, 18, 1), (5, 1000, 3), (1036, 0, -7), (3, 36, 1)):
        part = f(weft.asarray(z)[start:stop:step]).numpy()
        assert part.tobytes() == all_at_once[start:stop:step].tobytes()
    table = z[:1036].reshape(28, 37)
    assert (
        f(weft.asarray(table).T).numpy().tobytes()
        == np.ascontiguousarray(f(weft.asarray(table)).numpy().T).tobytes()
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_one_element_against_many(dtype):
    rng = _rng()
    x, c = _numbers(rng, 77, dtype), np.complex128(1.25 - 0.5j)
    w, spread = weft.asarray(x), weft.asarray(np.full(77, c, dtype))
    for name in ("add", "subtract", "multiply", "divide", "pow", "equal", "not_equal"):
        f = getattr(weft, name)
        assert f(w, complex(c)).numpy().tobytes() == f(w, spread).numpy().tobytes(), name
        assert f(complex(c), w).numpy().tobytes() == f(spread, w).numpy().tobytes(), name


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 16, 31, 64, 100, 1000, 4097, 300_001])
def test_reductions(n, dtype):
    rng = _rng()
    x = _numbers(rng, n, dtype)
    unit = (x / np.abs(x)).astype(dtype)
    tol = 1e-4 if dtype == "complex64" else 1e-11
    w = weft.asarray(x)
    scale = np.sqrt(n)
    assert abs(weft.sum(w).item() - x.astype("complex128").sum()) <= tol * scale
    assert abs(weft.prod(weft.asarray(unit)).item() - unit.astype("complex128").prod()) <= tol * n
    got = weft.cumulative_sum(w).numpy()
    np.testing.assert_allclose(got, x.astype("complex128").cumsum(), atol=tol * scale * 3)
    if n >= 100:
        columns = 7 if n % 7 == 0 else 10 if n % 10 == 0 else 17
        table = x[: n // columns * columns].reshape(-1, columns)
        for axis in (0, 1):
            np.testing.assert_allclose(
                weft.sum(weft.asarray(table), axis=axis).numpy(),
                table.astype("complex128").sum(axis),
                atol=tol * scale,
            )
        np.testing.assert_allclose(
            weft.prod(weft.asarray(table / np.abs(table)), axis=1).numpy(),
            (table / np.abs(table)).astype("complex128").prod(1),
            atol=tol,
        )
