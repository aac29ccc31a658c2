# SPDX-License-Identifier: Apache-2.0
"""weft.special beside SciPy on random data and at the ends of the ranges; gradients, compiled and mapped functions."""

import math

import numpy as np
import pytest
import scipy.special as reference

import weft
from weft import special

RNG = np.random.default_rng(20261128)
WIDE = np.concatenate(
    [
        RNG.uniform(-40, 40, 301),
        RNG.uniform(-1, 1, 101),
        10.0 ** RNG.uniform(-300, 3, 57),
        [0.0, -0.0, 1.0, 2.0, 8.0, -8.0, 26.0, -26.5, 700.0, 1e5, np.nan, 1e-310],
    ]
)
ONE = "j0 j1 y0 y1 i0 i0e i1 i1e k0 k0e k1 k1e erfcx erfc ndtr log_ndtr entr".split()


def close(got, want, rtol, atol=0.0):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=atol)


PI = np.longdouble("3.14159265358979323846264338327950288")


def scaled_tail(x):
    """exp(x^2) erfc(x) of x >= 0 in extended precision: the trapezoidal rule with steps of 1/4, and what it misses at the pole."""
    y, step = np.maximum(np.longdouble(x), 1), np.longdouble(0.25)
    total = 1 / (y * y)
    for k in range(1, 40):
        total = total + 2 * np.exp(-((k * step) ** 2)) / (y * y + (k * step) ** 2)
    z = np.minimum(y, 20)
    out = y * step / PI * total + 2 * np.exp(z * z) / (1 - np.exp(2 * PI * z / step))
    near = [math.erfc(v) * math.exp(v * v) if v < 1 else 0.0 for v in x]
    return np.where(x < 1, near, out)


def normal(name, x):
    """erfc and its relatives, with all digits of float64; SciPy's lose some in the tails."""
    size = np.abs(x)
    square = np.longdouble(size) ** 2
    tail = np.exp(-square / 2) * scaled_tail(size * np.sqrt(np.longdouble(0.5))) / 2
    if name == "erfcx":
        right = scaled_tail(size)
        return np.where(x < 0, 2 * np.exp(square) - right, right)
    if name == "erfc":
        right = scaled_tail(size) * np.exp(-square)
        return np.where(x < 0, 2 - right, right)
    if name == "ndtr":
        return np.where(x < 0, tail, 1 - tail)
    logarithm = np.log(scaled_tail(size * np.sqrt(np.longdouble(0.5))) / 2) - square / 2
    return np.where(x < 0, logarithm, np.log1p(-tail))


@pytest.mark.parametrize("name", ["erfc", "erfcx", "ndtr", "log_ndtr"])
def test_the_normal_distribution_has_all_digits(name):
    x = WIDE[np.isfinite(WIDE)]
    with np.errstate(all="ignore"):
        want = normal(name, x).astype("float64")
    assert units(getattr(special, name)(weft.asarray(x)), want, "float64") <= 9


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument(name):
    with np.errstate(all="ignore"):
        want = getattr(reference, name)(WIDE)
        if name in ("erfc", "erfcx", "ndtr", "log_ndtr"):
            want = np.where(np.isfinite(WIDE), normal(name, WIDE).astype("float64"), want)
        usual = np.abs(want) > 1e-300  # below, SciPy's own results lose digits
        # Near their zeros the oscillating ones have absolute accuracy.
        atol = 2e-14 if name[0] in "jy" else 0.0
        got = np.asarray(getattr(special, name)(weft.asarray(WIDE)))
        close(got[usual], want[usual], 5e-14, atol)
        close(got[~usual], want[~usual], 0, 1e-299)
        narrow = WIDE[np.abs(WIDE) < 80].astype("float32")
        wide = getattr(reference, name)(narrow.astype(float))
        in_range = ~(np.abs(wide) > 3e38)
        got = getattr(special, name)(weft.asarray(narrow))
        assert got.dtype == "float32"
        close(np.asarray(got)[in_range], wide[in_range], 1e-6, 1e-37)


def units(got, want, dtype):
    """Distances in units of the last place where the result is a normal number."""
    got, want = np.asarray(got).astype(float), want.astype(float)
    there = np.isfinite(want) & (np.abs(want) > np.finfo(dtype).tiny * 4) & (np.abs(want) < np.finfo(dtype).max)  # fmt: skip
    return (np.abs(got - want)[there] / np.spacing(np.abs(want[there]).astype(dtype))).max()


@pytest.mark.parametrize(
    "name", "erfc erfcx ndtr log_ndtr ndtri erfinv i0 i0e i1 i1e k0 k0e k1 k1e".split()
)
def test_units_in_the_last_place_of_float32(name):
    """As composed, compiled and on tensors: all compute in float32."""
    rng = np.random.default_rng(4)
    x = np.concatenate(
        [rng.uniform(-14, 14, 3001), rng.uniform(-1, 1, 1001), 10.0 ** rng.uniform(-20, 1, 301)]
    )
    if name == "ndtri":
        x = np.concatenate([rng.uniform(0, 1, 3001), 10.0 ** rng.uniform(-37, -1, 1001)])
    if name == "erfinv":
        x = np.concatenate([rng.uniform(-1, 1, 3001), 1 - 10.0 ** rng.uniform(-7, -1, 1001)])
    x = x.astype("float32")
    x = x[np.abs(x) != 1]
    f = getattr(special, name)
    with np.errstate(all="ignore"):
        want = getattr(reference, name)(x.astype(float))
    for got in (
        f(weft.asarray(x)),
        weft.compile(f)(weft.asarray(x)),
        f(weft.Tensor(x, requires_grad=True)).data,
    ):
        assert got.dtype == "float32"
        assert units(got, want, "float32") <= 9
    half = f(weft.asarray(x).astype("bfloat16"))
    rounded = np.asarray(weft.asarray(x).astype("bfloat16").astype("float64"))
    with np.errstate(all="ignore"):
        want = getattr(reference, name)(rounded)
    there = np.isfinite(want) & (np.abs(want) < 1e38) & (np.abs(want) > 1e-37)
    assert half.dtype == "bfloat16"
    close(np.asarray(half.astype("float64"))[there], want[there], 2.0**-8)


def test_units_in_the_last_place_of_float64():
    x = np.concatenate([RNG.uniform(-26, 26, 2001), 10.0 ** RNG.uniform(-20, 1, 301)])
    want = np.array([math.erfc(v) for v in x])
    assert units(special.erfc(weft.asarray(x)), want, "float64") <= 7
    assert special.erfc(weft.asarray([0.0, -0.0])).tolist() == [1.0, 1.0]
    assert special.ndtr(weft.asarray([0.0, -0.0], dtype="float32")).tolist() == [0.5, 0.5]
    p = np.concatenate([RNG.uniform(0, 1, 1001), 10.0 ** RNG.uniform(-300, -1, 301)])
    assert units(special.ndtri(weft.asarray(p)), reference.ndtri(p), "float64") <= 30
    y = RNG.uniform(-1, 1, 1001)
    assert units(weft.erfinv(weft.asarray(y)), reference.erfinv(y), "float64") <= 12


def test_gradients_at_zero():
    for name, slope in (("erfc", -2 / np.sqrt(np.pi)), ("erfcx", -2 / np.sqrt(np.pi)), ("ndtr", 1 / np.sqrt(2 * np.pi)), ("erfinv", np.sqrt(np.pi) / 2)):  # fmt: skip
        got = weft.grad(lambda v, name=name: getattr(special, name)(v).sum())(weft.zeros(3, dtype="float64"))  # fmt: skip
        close(got, np.full(3, slope), 1e-13)


@pytest.mark.parametrize(
    "name", ["j0", "j1", "y0", "y1", "i0e", "i1e", "k0", "k0e", "spherical_j0"]
)
def test_nothing_is_left_at_infinity(name):
    assert abs(getattr(special, name)(weft.asarray(np.inf)).item()) == 0.0


def test_bessel_functions_of_the_second_kind_exist_right_of_zero():
    for name, at in (("y0", -np.inf), ("y1", -np.inf), ("k0", np.inf), ("k1", np.inf)):
        got = getattr(special, name)(weft.asarray([0.0, -1.0])).tolist()
        assert got[0] == at and np.isnan(got[1])


def test_quantiles_of_the_normal_distribution():
    p = np.concatenate(
        [RNG.uniform(0, 1, 301), 10.0 ** RNG.uniform(-300, -1, 101), 1 - 10.0 ** RNG.uniform(-15, -1, 101)]
    )  # fmt: skip
    edges = np.array([0.0, 1.0, -1.0, 2.0, np.nan, 0.5])
    close(special.ndtri(weft.asarray(p)), reference.ndtri(p), 5e-14)
    close(special.ndtri(weft.asarray(edges)), reference.ndtri(edges), 0)
    close(special.ndtr(special.ndtri(weft.asarray(p[:301]))), p[:301], 1e-12)


def pairs():
    a = np.concatenate([RNG.uniform(0, 30, 601), 10.0 ** RNG.uniform(-8, 5, 901)])
    x = np.concatenate(
        [RNG.uniform(0, 60, 601), a[601:901] * RNG.uniform(0.3, 2, 300), 10.0 ** RNG.uniform(-8, 5, 201),
         a[1102:] * (1 + RNG.normal(size=400) * RNG.choice([0.001, 0.01, 0.1], 400)).clip(0.01)]
    )  # fmt: skip
    return a, x


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions(name):
    a, x = pairs()
    want = getattr(reference, name)(a, x)
    usual = want > 1e-250  # SciPy's own tails lose digits for large a
    got = np.asarray(getattr(special, name)(weft.asarray(a), weft.asarray(x)))
    close(got[usual], want[usual], 2e-11)
    close(got[~usual], 0, 0, 1e-249)
    edges = [(0, 0), (0, 2), (1, 0), (3, np.inf), (np.inf, 1), (np.inf, np.inf), (-1, 1), (2, -1), (np.nan, 1), (1, np.nan)]  # fmt: skip
    ea, ex = (np.array(v, float) for v in zip(*edges))
    close(getattr(special, name)(weft.asarray(ea), weft.asarray(ex)), getattr(reference, name)(ea, ex), 0)  # fmt: skip


def test_both_halves_of_the_gamma_function_are_one():
    a, x = (weft.asarray(v) for v in pairs())
    close(special.gammainc(a, x) + special.gammaincc(a, x), np.ones(len(a.tolist())), 1e-13)


def test_zeta_and_polygamma():
    s = np.concatenate(
        [RNG.uniform(1.01, 20, 101), RNG.integers(2, 8, 60).astype(float), [1, 0.5, 2, 2, 3, 3]]
    )
    q = np.concatenate(
        [10.0 ** RNG.uniform(-3, 3, 101), RNG.uniform(-10, 0, 60), [2, 3, 0, -2, 0.5, np.inf]]
    )
    close(special.zeta(weft.asarray(s), weft.asarray(q)), reference.zeta(s, q), 1e-13)
    x = RNG.uniform(0.01, 20, 101)
    for n in range(5):
        close(special.polygamma(n, weft.asarray(x)), reference.polygamma(n, x), 2e-13, 1e-13)
    y = -RNG.uniform(0.05, 0.95, 20) - RNG.integers(0, 5, 20)
    close(special.polygamma(1, weft.asarray(y)), reference.zeta(2.0, y), 1e-11)
    close(special.multigammaln(weft.asarray(x + 2), 3), [reference.multigammaln(v, 3) for v in x + 2], 1e-11, 1e-12)  # fmt: skip


# The derivative of each function, by other functions of SciPy.
SLOPES = {
    "j0": lambda x: -reference.j1(x),
    "j1": lambda x: reference.jvp(1, x),
    "y0": lambda x: -reference.y1(x),
    "y1": lambda x: reference.yvp(1, x),
    "i0": reference.i1,
    "i1e": lambda x: reference.i0e(x) - (1 + 1 / x) * reference.i1e(x),
    "k0": lambda x: -reference.k1(x),
    "k1": lambda x: reference.kvp(1, x),
    "erfcx": lambda x: 2 * x * reference.erfcx(x) - 2 / np.sqrt(np.pi),
    "log_ndtr": lambda x: np.exp(-x * x / 2 - reference.log_ndtr(x)) / np.sqrt(2 * np.pi),
}


@pytest.mark.parametrize("name", SLOPES)
def test_gradients(name):
    x = np.concatenate([RNG.uniform(0.1, 30, 61), [2.0, 8.0, 1.0]])
    f = weft.grad(lambda v: getattr(special, name)(v).sum())
    close(f(weft.asarray(x)), SLOPES[name](x), 1e-9, 1e-12)


def test_gradients_of_gamma_functions_and_quantiles():
    a, x = RNG.uniform(0.5, 60, 41), RNG.uniform(0.5, 60, 41)
    da, dx = weft.grad(lambda a, x: special.gammainc(a, x).sum(), argnums=(0, 1))(
        weft.asarray(a), weft.asarray(x)
    )
    close(dx, np.exp((a - 1) * np.log(x) - x - reference.gammaln(a)), 1e-9, 1e-14)
    h = 1e-5
    by_difference = (reference.gammainc(a + h, x) - reference.gammainc(a - h, x)) / (2 * h)
    close(da, by_difference, 1e-6, 1e-9)
    p = RNG.uniform(0.001, 0.999, 41)
    slope = weft.grad(lambda v: special.ndtri(v).sum())(weft.asarray(p))
    want = np.sqrt(2 * np.pi) * np.exp(reference.ndtri(p) ** 2 / 2)
    close(slope, want, 1e-10)
    twice = weft.grad(weft.grad(lambda v: special.ndtri(v).sum()))
    close(twice(weft.asarray(0.03, dtype="float64")), reference.ndtri(0.03) * (2 * np.pi) * np.exp(reference.ndtri(0.03) ** 2), 1e-9)  # fmt: skip


@pytest.mark.parametrize("name", ["j1", "k0", "log_ndtr", "gammaincc", "zeta"])
def test_compiled_and_mapped(name):
    f = getattr(special, name)
    given = [
        weft.asarray(RNG.uniform(1.5, 9, (3, 5)))
        for _ in range(1 + (name in ("gammaincc", "zeta")))
    ]
    want = np.asarray(f(*given))
    close(weft.compile(lambda *v: getattr(special, name)(*v) * 2)(*given), 2 * want, 1e-13)
    if name != "zeta":
        close(weft.vmap(f)(*given), want, 1e-13)


def test_other_names_and_types():
    x = weft.asarray([0.5, 3.0])
    assert special.bessel_j0(x).tolist() == special.j0(x).tolist()
    assert special.scaled_modified_bessel_k1(x).tolist() == special.k1e(x).tolist()
    assert special.gammaln(x).tolist() == weft.lgamma(x).tolist()
    assert special.j0(weft.asarray([1, 2])).dtype == weft.asarray(0.0).dtype
    assert special.i0(weft.asarray([0.5], dtype="bfloat16")).dtype == "bfloat16"
    assert special.j0(weft.zeros((0, 3))).shape == (0, 3)
    for call, slug, text in (
        (lambda: special.j0(weft.asarray([1j])), "special.type", "of complex"),
        (lambda: special.polygamma(-1, x), "special.order", "order -1"),
        (lambda: special.zeta(weft.asarray([3.0]), weft.asarray([-5000.5])), "special.zeta.range", "-5000.5"),
    ):  # fmt: skip
        with pytest.raises(weft.Error) as caught:
            call()
        assert caught.value.code == slug and text in str(caught.value)


ORTHOGONAL = {
    "chebyshev_polynomial_t": "eval_chebyt",
    "chebyshev_polynomial_u": "eval_chebyu",
    "hermite_polynomial_h": "eval_hermite",
    "hermite_polynomial_he": "eval_hermitenorm",
    "laguerre_polynomial_l": "eval_laguerre",
    "legendre_polynomial_p": "eval_legendre",
    "shifted_chebyshev_polynomial_t": "eval_sh_chebyt",
    "shifted_chebyshev_polynomial_u": "eval_sh_chebyu",
}


@pytest.mark.parametrize("name", ORTHOGONAL)
def test_orthogonal_polynomials(name):
    ours, theirs = getattr(special, name), getattr(reference, ORTHOGONAL[name])
    x = RNG.uniform(-1.3, 1.3, 41)
    for n in (0, 1, 2, 7, 12):
        close(ours(weft.asarray(x), n), theirs(n, x), 1e-10, 1e-10)
    degrees = np.arange(41) % 6 - 1
    want = np.where(degrees < 0, 0, theirs(np.maximum(degrees, 0), x))
    close(ours(weft.asarray(x), weft.asarray(degrees)), want, 1e-11, 1e-11)
    assert float(ours(0.25, -1)) == 0
    assert ours(weft.asarray(x, dtype="float32"), 3).dtype == "float32"
    with pytest.raises(weft.ArgumentError) as refusal:
        ours(0.5, 1 << 20)
    assert refusal.value.code == "special.degree"


@pytest.mark.parametrize("kind", ["v", "w"])
def test_chebyshev_polynomials_of_half_angles(kind):
    x, sign = RNG.uniform(-1, 1, 41), -1 if kind == "v" else 1
    for n in (0, 1, 5):
        # V and W are the differences and the sums of two neighbours of the second kind.
        want = reference.eval_chebyu(n, x) + sign * (reference.eval_chebyu(n - 1, x) if n else 0)
        close(getattr(special, f"chebyshev_polynomial_{kind}")(weft.asarray(x), n), want, 1e-11, 1e-11)  # fmt: skip
        moved = getattr(special, f"shifted_chebyshev_polynomial_{kind}")(weft.asarray(x / 2 + 0.5), n)  # fmt: skip
        close(moved, want, 1e-11, 1e-11)
