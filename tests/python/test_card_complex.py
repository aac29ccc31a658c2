# SPDX-License-Identifier: Apache-2.0
"""Complex numbers on a card beside NumPy and beside the host's kernels."""

import numpy as np
import pytest
from cover import cover
from present import present

import weft

GRID = "opencl:0"
present(GRID)

TYPES = ["complex64", "complex128"]
UNARY = (
    "abs sqrt exp expm1 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh conj real imag "
    "sign square negative positive reciprocal isnan isinf isfinite round"
).split()
TOLERANCE = {"complex64": 1e-5, "complex128": 1e-12}


def draw(rng, shape, dtype):
    kind = np.dtype(dtype).kind
    if kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if kind == "b":
        return rng.random(shape) < 0.5
    return (rng.standard_normal(shape) * 9).astype(dtype)


def same(got, want, tolerance):
    got, want = got.to("cpu").numpy(), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.fixture
def rng():
    return np.random.default_rng(20261122)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(rng, name, dtype):
    x = weft.asarray(draw(rng, (5, 331), dtype))
    f = getattr(weft, name)
    same(f(x.to(GRID)), f(x).numpy(), TOLERANCE[dtype])
    if name in ("abs", "exp", "conj", "isnan"):
        same(f(x.to(GRID)[1:, ::3].T), f(x[1:, ::3].T).numpy(), TOLERANCE[dtype])


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name):
    parts = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
    x = weft.asarray(np.array([complex(a, b) for a in parts for b in parts]))
    got, want = getattr(weft, name)(x.to(GRID)).to("cpu").numpy(), getattr(weft, name)(x).numpy()
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(got), part(want), rtol=1e-12)


@cover(
    "name", ["pow", "divide", "multiply", "add", "subtract", "equal", "not_equal"], "dtype", TYPES
)
def test_functions_of_two_numbers(rng, name, dtype):
    f, g = getattr(weft, name), getattr(np, {"pow": "power"}.get(name, name))
    x = draw(rng, (6, 33), dtype)
    for other in (dtype, "float32", "int32"):
        y = draw(rng, (33,), other)
        if other == "int32":
            y = np.abs(y) + 1
        a, b = weft.asarray(x), weft.asarray(y)
        same(f(a.to(GRID), b.to(GRID)), f(a, b).numpy(), 50 * TOLERANCE[dtype])
        same(f(b.to(GRID), a.to(GRID)), f(b, a).numpy(), 50 * TOLERANCE[dtype])
    for number in (2 - 3j, 1.5):
        got = f(weft.asarray(x, device=GRID), number)
        same(got, g(x, np.asarray(number, dtype=dtype)), 50 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TYPES)
def test_reductions_and_running_combinations(rng, dtype):
    x = draw(rng, (7, 33), dtype)
    d = weft.asarray(x, device=GRID)
    for axis in (None, 0, 1):
        same(weft.sum(d, axis=axis), x.sum(axis=axis), 1e-4)
        same(weft.prod(d, axis=axis), x.prod(axis=axis), 1e-3)
        same(weft.mean(d, axis=axis), x.mean(axis=axis), 1e-4)
        same(weft.any(d, axis=axis), x.any(axis=axis), 0)
        same(weft.all(d, axis=axis), x.all(axis=axis), 0)
    for axis in (0, 1):
        same(weft.cumulative_sum(d, axis=axis), x.cumsum(axis=axis), 1e-4)
        same(weft.cumulative_prod(d, axis=axis), x.cumprod(axis=axis), 1e-3)
    same(
        weft.sum(weft.asarray(x.real.copy(), device=GRID), dtype=dtype),
        x.real.sum().astype(dtype),
        1e-4,
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_moving_elements(rng, dtype):
    x, mask, at = draw(rng, (7, 33), dtype), draw(rng, (7, 33), "bool"), np.array([3, -1, 0, 3])
    d, m, i = (weft.asarray(v, device=GRID) for v in (x, mask, at))
    same(d[i], x[at], 0)
    same(d[:, i], x[:, at], 0)
    same(d[m], x[mask], 0)
    same(weft.where(m, d, 1.0), np.where(mask, x, np.asarray(1, dtype)), 0)
    same(weft.nonzero(d * m)[1], np.nonzero(x * mask)[1], 0)
    same(weft.flip(d).T, x[::-1, ::-1].T, 0)
    same(weft.concat([d, d[::2]]), np.concatenate([x, x[::2]]), 0)
    same(weft.full((3, 4), 1 - 2j, dtype=dtype, device=GRID), np.full((3, 4), 1 - 2j, dtype), 0)
    d[2:5, ::3], x[2:5, ::3] = 3 + 1j, 3 + 1j
    d[i], x[at] = 5.0, 5.0
    d[m], x[mask] = 1j, 1j
    d += d
    x += x
    d *= 2j
    x *= 2j
    same(d, x, 1e-6)
    added = weft.scatter(d, i, weft.asarray(np.ones((4, 33), dtype), device=GRID), accumulate=True)
    np.add.at(x, at, 1)
    same(added, x, 1e-6)


@pytest.mark.parametrize("dtype", TYPES)
def test_conversions(rng, dtype):
    for other in ("bool", "uint8", "int32", "float32", "float64"):
        x = np.abs(draw(rng, (5, 3), other).astype("float64")).astype(other)
        same(weft.asarray(x, device=GRID).T.astype(dtype), x.T.astype(dtype), 0)
    x = draw(rng, (5, 3), dtype) * (draw(rng, (5, 3), "bool"))
    for other in ("complex64", "complex128", "bool"):
        same(
            weft.asarray(x.astype(dtype), device=GRID).T.astype(other),
            x.astype(dtype).T.astype(other),
            1e-6,
        )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "left,right",
    [
        ((5, 7), (7, 3)),
        ((1, 7), (7, 9)),
        ((4, 5, 7), (7, 3)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((33,), (33, 4)),
        ((4, 33), (33,)),
        ((33,), (33,)),
        ((100, 65), (65, 129)),
        ((3, 0), (0, 4)),
        ((0, 3), (3, 4)),
    ],
)
def test_products(rng, left, right, dtype):
    for other in (dtype, "float32"):
        a, b = draw(rng, left, dtype), draw(rng, right, other)
        x, y = weft.asarray(a, device=GRID), weft.asarray(b, device=GRID)
        same(x @ y, (a @ b).astype(dtype), 1e-3 if dtype == "complex64" else 1e-10)
        if a.ndim == b.ndim == 2:
            same(y.T @ x.T, (b.T @ a.T).astype(dtype), 1e-3 if dtype == "complex64" else 1e-10)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_products_read_turned_operands_where_they_lie(rng, batch, dtype):
    for m, n, k in ((40, 33, 70), (9, 130, 31), (130, 12, 5)):
        a, b = draw(rng, (*batch, k, m), dtype), draw(rng, (*batch, n, k), dtype)
        x, y = weft.asarray(a, device=GRID).mT, weft.asarray(b, device=GRID).mT
        want = np.swapaxes(a, -1, -2) @ np.swapaxes(b, -1, -2)
        same(x @ y, want, 1e-3 if dtype == "complex64" else 1e-10)
        same(y.mT @ x.mT, np.swapaxes(want, -1, -2), 1e-3 if dtype == "complex64" else 1e-10)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2)])
def test_few_elements(rng, shape):
    x = draw(rng, shape, "complex64") if shape else np.complex64(1 - 2j)
    d = weft.asarray(x, device=GRID)
    for f, g in ((weft.exp, np.exp), (weft.abs, np.abs), (weft.sum, np.sum), (weft.prod, np.prod)):
        same(f(d), g(x), 1e-5)


def test_integer_powers(rng):
    for dtype in ("int8", "uint8", "int32", "uint64"):
        x, y = (rng.integers(0, n, s).astype(dtype) for n, s in ((100, (13, 5)), (60, (5,))))
        d = weft.asarray(x, device=GRID)
        same(d ** weft.asarray(y, device=GRID), (weft.asarray(x) ** weft.asarray(y)).numpy(), 0)
        same(d.T**3, x.T ** np.asarray(3, dtype), 0)
        d **= 0
        same(d, np.ones_like(x), 0)


def test_masks_without_axes():
    for on in (True, False):
        picked = weft.asarray(3.0, device=GRID)[weft.asarray(on, device=GRID)]
        assert picked.shape == (int(on),)


@pytest.mark.parametrize(
    "n,bins", [(0, 1), (1, 1), (10, 3), (5000, 257), (100_000, 4096), (30_000, 5000)]
)
def test_counts_of_small_integers(rng, n, bins):
    x = rng.integers(0, bins, n)
    d = weft.Tensor(weft.asarray(x, device=GRID), requires_grad=False)
    same(getattr(d.bincount(), "data", d.bincount()), np.bincount(x), 0)
    values, counts = weft.unique_counts(d.data)
    want = np.unique(x, return_counts=True)
    same(values, want[0], 0)
    same(counts, want[1], 0)
    same(weft.unique_values(d.data), want[0], 0)


@pytest.mark.parametrize("device", ["cpu", GRID])
def test_counts_of_negative_numbers_are_refused(device):
    x = weft.Tensor(weft.asarray([1, -1], device=device), requires_grad=False)
    with pytest.raises(weft.ArgumentError) as caught:
        x.bincount()
    assert caught.value.code == "array.bincount.negative" and "bincount of -1" in str(caught.value)


@cover(
    "m, k, n, layout",
    [
        (*sizes, layout)
        for layout in ("NN", "NT", "TN")
        for sizes in [(1, 37, 50), (5, 64, 33), (8, 1, 1), (40, 37, 1), (41, 30, 2)]
    ],
    "dtype", ["complex64", "complex128"], times=7,
)  # fmt: skip
def test_products_with_few_rows_or_columns(rng, m, k, n, layout, dtype):
    def draw(shape):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)

    tolerance = 2e-6 if dtype == "complex64" else 1e-14
    for batch in ((), (3,)):
        a, b = draw((*batch, m, k)), draw((k, n))
        x = weft.asarray(np.swapaxes(a, -1, -2).copy() if layout == "TN" else a, device=GRID)
        y = weft.asarray(b.T.copy() if layout == "NT" else b, device=GRID)
        got = (x.mT if layout == "TN" else x) @ (y.mT if layout == "NT" else y)
        want = a.astype("complex128") @ b
        assert got.dtype == dtype and got.shape == want.shape
        assert np.abs(got.to("cpu").numpy() - want).max() <= tolerance * k * np.abs(want).max()


def _extremes(rng, n=4000):
    normal = lambda: rng.normal(size=n)  # noqa: E731
    powers = lambda low, high: 10.0 ** rng.uniform(low, high, n)  # noqa: E731
    yield normal() + 1j * normal()
    yield normal() * powers(-30, 30) + 1j * normal() * powers(-30, 30)
    yield (1 + normal() * powers(-8, -1)) * np.exp(1j * rng.uniform(-np.pi, np.pi, n))
    yield rng.uniform(-200, 200, n) + 1j * rng.uniform(-50, 50, n)
    yield (normal() + 1j * normal()) * 1e-42


@pytest.mark.parametrize(
    "name", ["exp", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
)
def test_functions_of_single_precision_are_close_everywhere(name, rng):
    """Within eight units in the last place of each part; what is infinite, no number or a zero is so on the host."""
    function = getattr(weft, name)
    edges = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45, 88.8, -104, 100, 191]
    real, imag = (x.ravel() for x in np.meshgrid(edges, edges))
    special = np.empty(real.shape, "complex64")
    special.real, special.imag = real, imag
    for z in [special, *(z.astype("complex64") for z in _extremes(rng))]:
        host = function(weft.asarray(z)).numpy()
        card = function(weft.asarray(z, device=GRID)).numpy()
        for want, got in ((host.real, card.real), (host.imag, card.imag)):
            with np.errstate(all="ignore"):
                ordinary = np.isfinite(want) & (want != 0)
                zero = (want == 0) & ~np.isnan(host)  # beside NaN a zero has no certain sign
                np.testing.assert_array_equal(np.signbit(got)[zero], np.signbit(want)[zero])
                np.testing.assert_array_equal(got[~ordinary], want[~ordinary])
                unit = np.spacing(np.abs(want[ordinary]))
                far = np.abs(got[ordinary].astype(float) - want[ordinary]) / unit
            assert far.size == 0 or far.max() <= 8, (name, z[ordinary][far.argmax()])
