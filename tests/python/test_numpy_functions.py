# SPDX-License-Identifier: Apache-2.0
"""Functions by NumPy's names that are composed of others: each beside NumPy's, on the host and on a grid."""

import math

import numpy as np
import pytest
from present import present

import weft

RNG = np.random.default_rng(20261123)
M, N = RNG.standard_normal((4, 5)), RNG.standard_normal((4, 5))
V, W = RNG.standard_normal(7), RNG.standard_normal(4)
C = RNG.standard_normal((3, 4, 5))
I, J = RNG.integers(-9, 10, (4, 5)), RNG.integers(-9, 10, (4, 5))
U = RNG.integers(0, 6, 20)
HOLES = np.where(RNG.random((4, 5)) < 0.3, np.nan, M)
HOLES[2] = np.nan
SOME = np.where(RNG.random((4, 5)) < 0.3, np.nan, M)
SOME[:, 0] = 0.5
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-300, -1e300, 0.75, -8.0, 27.0])
Z = M + 1j * N

# (name, arguments, keywords)
CASES = [
    ("atleast_1d", (2.5,), {}), ("atleast_2d", (V,), {}), ("atleast_2d", (M,), {}), ("atleast_3d", (V,), {}), ("atleast_3d", (M,), {}),
    ("vstack", ([V, V * 2],), {}), ("vstack", ([M, N],), {}), ("hstack", ([V, W],), {}), ("hstack", ([M, N],), {}), ("dstack", ([V, V],), {}),
    ("dstack", ([M, N],), {}), ("column_stack", ([W, M, W],), {}), ("block", ([[M, N], [N, M]],), {}), ("block", ([V, W],), {}),
    ("append", (M, V), {}), ("append", (M, N), {"axis": 1}), ("delete", (V, 2), {}), ("delete", (M, [0, -1]), {"axis": 1}),
    ("delete", (M, slice(0, 3, 2)), {"axis": 0}), ("delete", (V, V > 0), {}), ("insert", (V, 3, 9.0), {}), ("insert", (V, [1, 1, 5], [7.0, 8.0, 9.0]), {}),
    ("insert", (M, 2, W), {"axis": 1}), ("insert", (M, [1, 3], W.reshape(4, 1)), {"axis": 1}), ("insert", (M, 1, V[:5]), {"axis": 0}),
    ("insert", (V, 2, [1.0, 2.0, 3.0]), {}), ("insert", (V, slice(0, 4, 2), 5.0), {}), ("resize", (V, (3, 4)), {}), ("array_split", (V, 3), {}),
    ("array_split", (M, [1, 3]), {"axis": 1}), ("hsplit", (C, 2), {}), ("vsplit", (M, 2), {}), ("dsplit", (C, [1, 2]), {}), ("hsplit", (M, [2]), {}),
    ("trim_zeros", (np.array([0, 0, 1, 0, 2, 0]),), {}), ("trim_zeros", (np.array([0, 0, 1, 0, 2, 0]), "f"), {}),
    ("around", (M * 100, 1), {}), ("around", (M * 100, -1), {}), ("array_equal", (M, M), {}), ("array_equal", (HOLES, HOLES), {"equal_nan": True}),
    ("shape", (C,), {}), ("size", (C, 1), {}), ("ndim", (C,), {}), ("cbrt", (ODD,), {}), ("cbrt", (M,), {}), ("fmax", (HOLES, M), {}),
    ("fmin", (HOLES, SOME), {}), ("divmod", (I, np.where(J == 0, 3, J)), {}), ("modf", (ODD,), {}), ("modf", (M * 5,), {}), ("frexp", (ODD,), {}),
    ("frexp", (M * 1e5,), {}), ("ldexp", (M, I), {}), ("heaviside", (ODD, 0.5), {}), ("gcd", (I, J), {}), ("lcm", (I, J), {}),
    ("float_power", (np.abs(M), N), {}), ("logaddexp2", (M * 300, N * 300), {}), ("isposinf", (ODD,), {}), ("isneginf", (ODD,), {}),
    ("isreal", (Z,), {}), ("iscomplex", (Z,), {}), ("average", (M,), {"axis": 1}), ("average", (M,), {"axis": 0, "weights": np.abs(W)}),
    ("average", (M,), {"weights": np.abs(N)}), ("ptp", (M,), {"axis": 1}), ("percentile", (M, 30), {}), ("percentile", (M, [0, 33.3, 100]), {"axis": 1}),
    ("percentile", (SOME, 50), {"axis": 0}), ("nanpercentile", (HOLES, 40), {"axis": 1}), ("nanquantile", (HOLES, 0.77), {}), ("nanmedian", (HOLES,), {"axis": 0}),
    ("nanmax", (HOLES,), {"axis": 1}), ("nanmin", (HOLES,), {}), ("nanprod", (HOLES,), {"axis": 0}), ("nancumsum", (HOLES,), {"axis": 1}),
    ("nanvar", (HOLES,), {"axis": 1}), ("nanstd", (HOLES,), {"axis": 0}), ("nanargmax", (SOME,), {"axis": 1}), ("nanargmin", (SOME,), {"axis": 0}),
    ("cov", (M,), {}), ("cov", (V, V * V), {}), ("cov", (M,), {"rowvar": False, "bias": True}), ("corrcoef", (M,), {}), ("histogram", (V,), {}),
    ("histogram", (V, 4), {"range": (-1, 1), "density": True}), ("histogram", (V, [-2.0, 0.0, 0.5, 3.0]), {"weights": np.abs(V)}), ("histogram", (U, 6), {}),
    ("histogram2d", (V, V * V), {"bins": 3}), ("digitize", (V, np.array([-1.0, 0.0, 0.5])), {}), ("digitize", (V, np.array([1.0, 0.0, -0.5])), {"right": True}),
    ("unique", (U,), {"return_index": True, "return_inverse": True, "return_counts": True}), ("unique", (U,), {}), ("intersect1d", (U, I), {}),
    ("union1d", (U, I), {}), ("setdiff1d", (U, I), {}), ("setxor1d", (U, I), {}), ("flatnonzero", (I,), {}), ("extract", (M > 0, M), {}),
    ("compress", ([True, False, True], M), {"axis": 0}), ("compress", (M[0] > 0, M), {"axis": 1}), ("choose", (U % 3, [V[:1], W[:1], W[1:2]]), {}),
    ("choose", (U - 2, [1, 2, 3]), {"mode": "clip"}), ("piecewise", (M, [M < 0, M > 1], [lambda x: -x, 7.0]), {}), ("indices", ((2, 3),), {}),
    ("ix_", ([0, 2], [1, 3]), {}), ("diag_indices", (3,), {}), ("tri", (3, 4, 1), {}), ("tril_indices", (4, 1, 5), {}), ("triu_indices", (4, -1), {}),
    ("unravel_index", (U, (2, 3)), {}), ("ravel_multi_index", ((U % 2, U % 3), (2, 3)), {}), ("diagflat", (W, 1), {}), ("rollaxis", (C, 2), {}),
    ("rollaxis", (C, 0, 3), {}), ("apply_along_axis", (lambda x: x.sum(), 1, M), {}), ("apply_along_axis", (lambda x: x * 2, 0, M), {}),
    ("vander", (W,), {}), ("vander", (W, 3, True), {}), ("convolve", (V, W), {}), ("convolve", (W, V, "same"), {}), ("convolve", (V, W, "valid"), {}),
    ("convolve", (np.tile(V, 20), np.tile(W, 5), "same"), {}), ("correlate", (V, W), {}), ("correlate", (V, W, "full"), {}), ("correlate", (W, V, "same"), {}),
    ("correlate", (V, W, "same"), {}), ("correlate", (V[:6], W, "same"), {}), ("convolve", (U, U[:3]), {}),
    ("interp", (V, np.sort(W), W), {}), ("interp", (V, np.sort(W), W, -7.0, 7.0), {}), ("gradient", (V,), {}), ("gradient", (M,), {}),
    ("gradient", (V, np.sort(np.abs(np.cumsum(V)))), {"edge_order": 2}), ("gradient", (M, 0.5), {"axis": 1, "edge_order": 2}), ("ediff1d", (V,), {"to_end": [1.0, 2.0]}),
    ("trapezoid", (M,), {"dx": 0.5}), ("trapezoid", (M, np.cumsum(np.abs(W))), {"axis": 0}), ("unwrap", (np.cumsum(V * 4) % 6.28,), {}),
    ("logspace", (0.0, 2.0, 5), {}), ("geomspace", (1.0, 1000.0, 4), {}), ("geomspace", (-8.0, -1.0, 4), {"endpoint": False}), ("hanning", (9,), {}),
    ("kaiser", (9, 3.0), {}), ("polyval", (W, M), {}), ("poly", (W,), {}), ("polyfit", (V, V**3 - V, 3), {}), ("concatenate", ([M, N],), {"axis": 1}),
    ("arctan2", (M, N), {}), ("power", (np.abs(M), 2.5), {}), ("mod", (M, 0.7), {}), ("degrees", (M,), {}), ("left_shift", (U, 2), {}), ("in1d", (U, I.ravel()), {}),
    ("partition", (V, 2), {}),
]  # fmt: skip
LATER = {"trapezoid": "trapz", "in1d": "isin"}  # the name in another NumPy
NOT_COMPARED_BY_ELEMENT = {"partition"}


def given(x, device):
    if isinstance(x, np.ndarray):
        return weft.asarray(x, device=device)
    if isinstance(x, list) and any(isinstance(v, (np.ndarray, list)) for v in x):
        return [given(v, device) for v in x]
    if isinstance(x, tuple) and any(isinstance(v, np.ndarray) for v in x):
        return tuple(given(v, device) for v in x)
    return x


def flat(x):
    return [y for v in x for y in flat(v)] if isinstance(x, (tuple, list)) else [x]


# A grid's kernels take a while to build: numbers and lists beside arrays, and every third case.
GRID = {
    "insert",
    "heaviside",
    "histogram",
    "choose",
    "ediff1d",
    "append",
    "average",
    "delete",
    "digitize",
    "interp",
}
PLACES = [(k, "cpu") for k in range(len(CASES))] + [
    (k, "opencl:0") for k in range(len(CASES)) if k % 3 == 0 or CASES[k][0] in GRID
]


@pytest.mark.parametrize(
    "at, device", PLACES, ids=lambda v: v if isinstance(v, str) else f"{CASES[v][0]}-{v}"
)
def test_beside_numpy(at, device):
    name, arguments, keywords = CASES[at]
    present(device)
    theirs = getattr(np, name, None) or getattr(np, LATER[name])
    with np.errstate(all="ignore"):
        want = flat(theirs(*arguments, **keywords))
    got = flat(
        getattr(weft, name)(
            *given(arguments, device), **{k: given(v, device) for k, v in keywords.items()}
        )
    )
    assert len(want) == len(got)
    for w, g in zip(want, got):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape, (g.shape, w.shape)
        if name in NOT_COMPARED_BY_ELEMENT:
            g, w = np.sort(g), np.sort(w)
        if w.dtype.kind in "biu":
            np.testing.assert_array_equal(g, w)
        else:
            np.testing.assert_allclose(
                g,
                w,
                rtol=2e-6 if g.dtype == np.float32 else 1e-9,
                atol=1e-6 if g.dtype == np.float32 else 1e-10,
            )


def test_changes_in_place():
    for name, arguments in (
        ("put", ([1, -1, 3], [5.0, 6.0])),
        ("place", (M > 0, [1.0, 2.0])),
        ("fill_diagonal", (9.0,)),
    ):
        theirs, ours = M.copy(), weft.asarray(M.copy())
        getattr(np, name)(theirs, *arguments)
        getattr(weft, name)(ours, *given(arguments, "cpu"))
        np.testing.assert_array_equal(np.asarray(ours), theirs)
    theirs, ours, at = M.copy(), weft.asarray(M.copy()), np.argsort(M, axis=1)[:, :2]
    np.put_along_axis(theirs, at, -1.0, 1)
    weft.put_along_axis(ours, weft.asarray(at), -1.0, 1)
    np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_erfc_has_all_digits_in_its_tail():
    x = np.concatenate([np.linspace(-6, 26, 641), [1.0, np.inf, -np.inf, 40.0]])
    want = np.array([math.erfc(v) for v in x])
    np.testing.assert_allclose(np.asarray(weft.erfc(weft.asarray(x))), want, rtol=2e-13)
    np.testing.assert_allclose(np.asarray(weft.compile(lambda x: weft.erfc(x))(weft.asarray(x))), want, rtol=2e-13)  # fmt: skip
    narrow = x[x < 9].astype("float32")
    want = np.array([math.erfc(v) for v in narrow.astype(float)])
    np.testing.assert_allclose(np.asarray(weft.erfc(weft.asarray(narrow))), want, rtol=1e-5)
    t = weft.Tensor(weft.asarray(x[:641]), requires_grad=True)
    t.erfc().sum().backward()
    slope = -2 / math.sqrt(math.pi) * np.exp(-(x[:641] ** 2))
    np.testing.assert_allclose(t.grad.numpy(), slope, rtol=2e-13)
    assert np.isnan(weft.erfc(weft.asarray(np.nan)).item())


def test_special_functions():
    x = np.concatenate([np.linspace(-5.7, 9.3, 301), [1e-6, 0.5, 1.0, 2.0, 30.0, 170.0, 1e5, 1e12]])
    usual = x[(x > 0) | (x != np.floor(x))]
    got = np.asarray(weft.lgamma(weft.asarray(usual)))
    np.testing.assert_allclose(got, [math.lgamma(v) for v in usual], rtol=1e-12, atol=1e-13)
    assert weft.lgamma(weft.asarray([0.0, -3.0, np.inf])).tolist() == [np.inf] * 3
    h = 1e-5
    near = usual[(np.abs(usual - np.round(usual)) > 0.01) & (np.abs(usual) < 100)]
    slope = [(math.lgamma(v + h) - math.lgamma(v - h)) / (2 * h) for v in near]
    np.testing.assert_allclose(
        np.asarray(weft.digamma(weft.asarray(near))), slope, rtol=1e-5, atol=1e-6
    )
    assert np.isnan(weft.digamma(weft.asarray([-2.0])).tolist()[0]) and weft.digamma(
        weft.asarray([0.0, -0.0])
    ).tolist() == [-np.inf, np.inf]
    y = np.concatenate([np.linspace(-0.99999, 0.99999, 201), [1e-8, 1 - 1e-12, -1 + 1e-9]])
    back = [math.erf(v) for v in np.asarray(weft.erfinv(weft.asarray(y)))]
    np.testing.assert_allclose(back, y, rtol=1e-12, atol=1e-15)
    assert weft.erfinv(weft.asarray([1.0, -1.0])).tolist() == [np.inf, -np.inf] and np.isnan(
        weft.erfinv(weft.asarray([1.5])).tolist()[0]
    )
    single = weft.asarray(usual.astype("float32"))
    np.testing.assert_allclose(
        np.asarray(weft.lgamma(single)),
        [math.lgamma(v) for v in usual.astype("float32")],
        rtol=5e-6,
        atol=5e-6,
    )


LINEAR = [
    ("norm", (M,), {}), ("norm", (V, 1), {}), ("norm", (M, "nuc"), {}), ("norm", (C,), {"axis": (0, 2)}), ("norm", (M,), {"axis": 1, "keepdims": True}),
    ("norm", (V, np.inf), {}), ("cond", (M[:, :4],), {}), ("cond", (M[:, :4], 1), {}), ("lstsq", (M.T.copy(), V[:5]), {"rcond": None}),
    ("lstsq", (M, W), {"rcond": None}), ("lstsq", (np.outer(V, W), V), {"rcond": None}), ("lstsq", (M.T.copy(), M.T.copy()), {"rcond": None}),
    ("multi_dot", ([M, M.T.copy(), N],), {}), ("multi_dot", ([W, M, V[:5]],), {}), ("tensorinv", (RNG.standard_normal((4, 6, 8, 3)),), {}),
    ("tensorsolve", (RNG.standard_normal((2, 3, 6)), RNG.standard_normal((2, 3))), {}),
]  # fmt: skip


@pytest.mark.parametrize("name, arguments, keywords", LINEAR)
def test_linear_algebra(name, arguments, keywords):
    want = flat(getattr(np.linalg, name)(*arguments, **keywords))
    got = flat(getattr(weft.linalg, name)(*given(arguments, "cpu"), **keywords))
    assert len(want) == len(got)
    for w, g in zip(want, got):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-9, atol=1e-9)


def test_exponentials_and_triangles():
    a = RNG.standard_normal((3, 4, 4)) * 3
    values, vectors = np.linalg.eig(a)
    want = (vectors * np.exp(values)[:, None, :] @ np.linalg.inv(vectors)).real
    np.testing.assert_allclose(
        np.asarray(weft.linalg.matrix_exp(weft.asarray(a))), want, rtol=1e-10, atol=1e-10
    )
    b = RNG.standard_normal((4, 2))
    for upper in (False, True):
        triangle = np.triu(a[0]) if upper else np.tril(a[0])
        got = weft.linalg.solve_triangular(weft.asarray(a[0]), weft.asarray(b), upper=upper)
        np.testing.assert_allclose(triangle @ np.asarray(got), b, rtol=1e-9, atol=1e-9)


def test_gradients_pass():
    x = weft.Tensor(np.abs(M) + 0.5)
    y = (
        weft.vstack([x, x]).sum()
        + weft.average(x)
        + weft.trapezoid(x).sum()
        + weft.cbrt(x).sum()
        + weft.lgamma(x).sum()
        + weft.erfinv(x * 0.1).sum()
    )
    y.backward()
    h = 1e-6
    f = lambda a: (  # noqa: E731
        np.vstack([a, a]).sum() + a.mean() + np.sum((a[:, 1:] + a[:, :-1]) / 2) + np.cbrt(a).sum() + sum(map(math.lgamma, a.ravel()))
        + sum(float(weft.erfinv(weft.asarray(v * 0.1))) for v in a.ravel())
    )  # fmt: skip
    for at in ((0, 0), (2, 3)):
        up, down = np.abs(M) + 0.5, np.abs(M) + 0.5
        up[at] += h
        down[at] -= h
        assert x.grad.numpy()[at] == pytest.approx((f(up) - f(down)) / (2 * h), rel=1e-5)


REFUSED = [
    ("array.split.sections", lambda: weft.vsplit(weft.zeros((5, 2)), 2)), ("array.split.sections", lambda: weft.array_split(weft.zeros(5), 0)),
    ("array.position.range", lambda: weft.delete(weft.zeros(5), 7)), ("array.position.range", lambda: weft.insert(weft.zeros(5), 9, 1.0)),
    ("array.position.range", lambda: weft.put(weft.zeros(5), [9], [1.0])), ("array.whole.type", lambda: weft.gcd(1.5, 2)),
    ("array.average.weights", lambda: weft.average(weft.zeros((2, 3)), weights=[1.0, 2.0])), ("array.percentile.range", lambda: weft.percentile(weft.zeros(3), 101)),
    ("array.nanquantile.range", lambda: weft.nanquantile(weft.zeros(3), 2)), ("array.nanargmax.nan", lambda: weft.nanargmax(weft.asarray([math.nan]))),
    ("array.nanpercentile.range", lambda: weft.nanpercentile(weft.zeros(3), -1)), ("array.nanargmin.nan", lambda: weft.nanargmin(weft.asarray([math.nan]))),
    ("array.histogram.bins", lambda: weft.histogram(weft.zeros(3), 0)), ("array.histogram.range", lambda: weft.histogram(weft.asarray([math.nan, 1.0]))),
    ("array.choose.index", lambda: weft.choose([5], [1, 2])), ("array.put.target", lambda: weft.put([1.0], [0], [2.0])), ("array.place.target", lambda: weft.place([1.0], [True], [2.0])),
    ("array.piecewise.count", lambda: weft.piecewise(weft.zeros(2), [], [1, 2, 3])), ("array.ix.shape", lambda: weft.ix_(weft.zeros((2, 2)))),
    ("array.unravel.range", lambda: weft.unravel_index(9, (2, 3))), ("array.ravel.axes", lambda: weft.ravel_multi_index((1, 1), (2, 2, 2))),
    ("array.unravel.range", lambda: weft.ravel_multi_index((1, 5), (2, 2))), ("array.fill_diagonal.target", lambda: weft.fill_diagonal(weft.zeros(3), 1.0)),
    ("array.convolve.shape", lambda: weft.convolve(weft.zeros((2, 2)), [1.0])), ("array.convolve.mode", lambda: weft.convolve([1.0], [1.0], "none")),
    ("array.correlate.shape", lambda: weft.correlate([], [1.0])), ("array.correlate.mode", lambda: weft.correlate([1.0], [1.0], "none")),
    ("array.gradient.steps", lambda: weft.gradient(weft.zeros((3, 3)), 1.0, 2.0, 3.0)), ("array.gradient.shape", lambda: weft.gradient(weft.zeros(1))),
    ("array.geomspace.ends", lambda: weft.geomspace(-1.0, 1.0)), ("array.norm.axes", lambda: weft.linalg.norm(weft.zeros((2, 2, 2)), axis=(0, 1, 2))),
    ("array.lstsq.shape", lambda: weft.linalg.lstsq(weft.zeros((3, 2)), weft.zeros(2))), ("array.multi_dot.count", lambda: weft.linalg.multi_dot([weft.zeros((2, 2))])),
    ("array.matrix_exp.shape", lambda: weft.linalg.matrix_exp(weft.zeros((2, 3)))), ("array.tensorinv.shape", lambda: weft.linalg.tensorinv(weft.zeros((2, 3)))),
    ("array.tensorsolve.shape", lambda: weft.linalg.tensorsolve(weft.zeros((2, 3)), weft.zeros(2))), ("array.axis.range", lambda: weft.compress([True], weft.zeros(2), axis=3)),
    ("random.randint.size", lambda: weft.randint(3)), ("random.multinomial.count", lambda: weft.multinomial(weft.asarray([1.0, 0.0]), 2)),
    ("random.multinomial.sum", lambda: weft.random.multinomial(3, [0.2, 0.2])), ("random.binomial.range", lambda: weft.random.binomial(3, 1.5)),
    ("random.poisson.range", lambda: weft.random.poisson(-1.0)), ("random.gamma.range", lambda: weft.random.gamma(-1.0)), ("random.exponential.range", lambda: weft.random.exponential(0.0)),
    ("random.laplace.range", lambda: weft.random.laplace(0.0, 0.0)), ("random.gumbel.range", lambda: weft.random.gumbel(0.0, -1.0)),
    ("random.logistic.range", lambda: weft.random.logistic(0.0, 0.0)), ("random.rayleigh.range", lambda: weft.random.rayleigh(0.0)),
    ("random.geometric.range", lambda: weft.random.geometric(0.0)), ("random.choice.count", lambda: weft.random.default_rng(1).choice(3, 5, replace=False)),
]  # fmt: skip


@pytest.mark.parametrize("slug, call", REFUSED)
def test_refusals(slug, call):
    with pytest.raises(weft.Error) as found:
        call()
    assert found.value.code == slug and found.value.notes


DRAWS = {
    "exponential": (lambda g: g.exponential(2.0, 40000), 2.0, 2.0), "laplace": (lambda g: g.laplace(1.0, 2.0, 40000), 1.0, 2 * math.sqrt(2)),
    "gumbel": (lambda g: g.gumbel(0.0, 1.0, 40000), 0.5772, math.pi / math.sqrt(6)), "logistic": (lambda g: g.logistic(1.0, 1.0, 40000), 1.0, math.pi / math.sqrt(3)),
    "lognormal": (lambda g: g.lognormal(0.0, 0.5, 40000), math.exp(0.125), math.sqrt((math.exp(0.25) - 1) * math.exp(0.25))),
    "rayleigh": (lambda g: g.rayleigh(2.0, 40000), 2 * math.sqrt(math.pi / 2), 2 * math.sqrt(2 - math.pi / 2)), "geometric": (lambda g: g.geometric(0.25, 40000), 4.0, math.sqrt(12)),
    "gamma": (lambda g: g.gamma(3.5, 2.0, 40000), 7.0, 2 * math.sqrt(3.5)), "small gamma": (lambda g: g.gamma(0.3, 1.0, 40000), 0.3, math.sqrt(0.3)),
    "chisquare": (lambda g: g.chisquare(5.0, 40000), 5.0, math.sqrt(10)), "beta": (lambda g: g.beta(2.0, 3.0, 40000), 0.4, 0.2),
    "poisson": (lambda g: g.poisson(3.0, 40000), 3.0, math.sqrt(3)), "large poisson": (lambda g: g.poisson(200.0, 40000), 200.0, math.sqrt(200)),
    "binomial": (lambda g: g.binomial(100, 0.3, 40000), 30.0, math.sqrt(21)), "integers": (lambda g: g.integers(0, 9, 40000, endpoint=True), 4.5, math.sqrt(33 / 4)),
    "choice": (lambda g: g.choice(3, 40000, p=[0.5, 0.25, 0.25]), 0.75, math.sqrt(0.6875)),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_distributions(name):
    draw, mean, deviation = DRAWS[name]
    x = np.asarray(draw(weft.random.default_rng(5))).astype("float64")
    assert x.shape == (40000,)
    assert abs(x.mean() - mean) < 5 * deviation / 200
    assert x.std() == pytest.approx(deviation, rel=0.06)
    np.testing.assert_array_equal(np.asarray(draw(weft.random.default_rng(5))), x)


def test_a_generator_in_numpy_s_manner():
    g = weft.random.default_rng(3)
    assert (
        g.normal(size=(2, 3)).shape == (2, 3)
        and g.random(4).shape == (4,)
        and g.standard_normal().shape == ()
    )
    assert sorted(g.permutation(6).tolist()) == list(range(6))
    assert len(set(g.choice(10, 10, replace=False).tolist())) == 10
    x = weft.asarray(np.arange(12).reshape(6, 2))
    g.shuffle(x)
    assert (
        sorted(x[:, 0].tolist()) == [0, 2, 4, 6, 8, 10] and (x[:, 1] - x[:, 0]).tolist() == [1] * 6
    )
    counts = weft.random.multinomial(1000, [0.2, 0.3, 0.5], 4, key=weft.random.key(1))
    assert (
        counts.shape == (4, 3)
        and counts.sum(1).tolist() == [1000] * 4
        and abs(int(counts[:, 2].sum()) - 2000) < 200
    )
    y = np.asarray(
        weft.random.multivariate_normal(
            [1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]], 20000, key=weft.random.key(2)
        )
    )
    np.testing.assert_allclose(np.cov(y.T), [[2.0, 0.5], [0.5, 1.0]], atol=0.08)
    parts = weft.random.dirichlet([1.0, 2.0, 3.0], 500, key=weft.random.key(3))
    np.testing.assert_allclose(np.asarray(parts).sum(1), 1, rtol=1e-5)


def test_pytorch_s_draws():
    weft.manual_seed(4)
    a = [
        weft.rand(2, 3),
        weft.randn(3),
        weft.randint(5, (4,)),
        weft.randperm(6),
        weft.bernoulli(weft.full((50,), 0.5)),
        weft.poisson(weft.full((9,), 4.0)),
    ]
    weft.manual_seed(4)
    b = [
        weft.rand(2, 3),
        weft.randn(3),
        weft.randint(5, (4,)),
        weft.randperm(6),
        weft.bernoulli(weft.full((50,), 0.5)),
        weft.poisson(weft.full((9,), 4.0)),
    ]
    for x, y in zip(a, b):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    at = weft.multinomial(weft.asarray([[0.0, 3.0, 1.0], [1.0, 0.0, 0.0]]), 400, replacement=True)
    assert at.shape == (2, 400) and set(at[1].tolist()) == {0} and set(at[0].tolist()) == {1, 2}
    assert abs(at[0].tolist().count(1) - 300) < 60
    assert sorted(weft.multinomial(weft.asarray([1.0, 2.0, 3.0]), 3).tolist()) == [0, 1, 2]
    assert (
        weft.randn_like(a[0]).shape == (2, 3)
        and weft.rand_like(a[0]).dtype == a[0].dtype
        and weft.normal(weft.zeros(3), 2.0).shape == (3,)
    )


def test_tensors_and_names_of_pytorch():
    x = weft.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert (
        weft.is_tensor(x)
        and x.requires_grad
        and not weft.is_tensor(x.data)
        and weft.as_tensor(x) is x
    )
    memory = np.zeros(3)
    weft.from_numpy(memory).data[...] = 2.0
    assert memory.tolist() == [2, 2, 2]
    weft.cat([x, x], dim=1).sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]]
    s, m = weft.std_mean(x.data, 1)
    assert m.tolist() == [1.5, 3.5] and s.tolist() == pytest.approx([math.sqrt(0.5)] * 2)
    assert weft.cartesian_prod([1, 2], [3, 4]).tolist() == [[1, 3], [1, 4], [2, 3], [2, 4]]
    assert weft.combinations([1, 2, 3]).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert weft.block_diag([[1.0]], [[2.0, 3.0]]).tolist() == [[1, 0, 0], [0, 2, 3]]
    assert [v.tolist() for v in weft.unique_consecutive([1, 1, 2, 1], True, True)] == [
        [1, 2, 1],
        [0, 0, 1, 2],
        [2, 1, 1],
    ]
    assert weft.histc(weft.asarray([1.0, 2.0, 1.0]), 4, 0, 3).tolist() == [
        0,
        2,
        1,
        0,
    ] and weft.bucketize([1, 2], [1, 2, 3], right=True).tolist() == [1, 2]
    assert weft.cumulative_trapezoid([1.0, 2.0, 4.0]).tolist() == [1.5, 4.5] and weft.sgn(
        weft.asarray(3 + 4j)
    ).item() == pytest.approx(0.6 + 0.8j)
    assert (
        float(weft.logdet(weft.asarray([[2.0, 0.0], [0.0, 3.0]]))) == pytest.approx(math.log(6))
        and weft.median(weft.asarray([1.0, 2.0, 3.0, 4.0])).item() == 2.5
    )
    assert weft.median(weft.Tensor([1.0, 2.0, 3.0, 4.0])).item() == 2.0
    zeros = sorted(weft.roots([1.0, -6.0, 11.0, -6.0, 0.0]).tolist(), key=lambda z: z.real)
    assert [round(z.real, 6) for z in zeros] == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_coefficients_of_correlation_stay_between_minus_one_and_one(dtype):
    """Rows that are multiples of one another, whose quotients round past 1."""
    rng = np.random.default_rng(3)
    beyond = 0
    for n in (2, 3, 5, 7, 9, 33):
        row = rng.normal(size=n) + (1j * rng.normal(size=n) if dtype[0] == "c" else 0)
        x = np.outer(rng.normal(size=9), row).astype(dtype)
        found, wanted = weft.corrcoef(weft.asarray(x)).numpy(), np.corrcoef(x)
        assert (
            found.dtype == dtype and np.abs(found.real).max() <= 1 and np.abs(found.imag).max() <= 1
        )
        np.testing.assert_allclose(
            found,
            wanted,
            atol=2e-6 if found.itemsize in (4, 8) and dtype[-2:] in ("32", "64") else 1e-12,
        )
        c = np.cov(x)
        beyond += np.abs((c / np.sqrt(np.outer(c.diagonal(), c.diagonal()))).real).max() > 1
    assert beyond
    t = weft.Tensor(weft.asarray(x.real), requires_grad=True)
    (weft.corrcoef(t) ** 2).sum().backward()
    assert np.isfinite(t.grad.numpy()).all()


TRUTH = np.array([[True, False, True], [False, False, True]])
OTHER = np.array([True, True, False])


@pytest.mark.parametrize("name", "greater greater_equal less less_equal".split())
def test_truth_values_are_compared(name):
    ours, theirs = getattr(weft, name), getattr(np, name)
    for a, b in ((TRUTH, OTHER), (OTHER, TRUTH), (TRUTH, True), (False, TRUTH), (TRUTH[:, ::2], OTHER[1:])):  # fmt: skip
        np.testing.assert_array_equal(ours(*(weft.asarray(v) if isinstance(v, np.ndarray) else v for v in (a, b))).numpy(), theirs(a, b))  # fmt: skip
    x, y = weft.asarray(TRUTH), weft.asarray(OTHER)
    np.testing.assert_array_equal(weft.compile(lambda a, b: ours(a, b))(x, y).numpy(), theirs(TRUTH, OTHER))  # fmt: skip
    np.testing.assert_array_equal(weft.compile(lambda a: ours(True, ours(a, y)))(x).numpy(), theirs(True, theirs(TRUTH, OTHER)))  # fmt: skip
    assert ((x > y).numpy() == (TRUTH > OTHER)).all() and ((x <= True).numpy() == (TRUTH <= True)).all()  # fmt: skip


@pytest.mark.parametrize("name", "abs ceil conj floor real round sign square trunc".split())
def test_truth_values_are_their_own_size(name):
    x = weft.asarray(TRUTH)
    got = getattr(weft, name)(x)
    assert got.dtype == "bool" and not weft.shares_memory(got, x)
    compiled = weft.compile(getattr(weft, name))(x)
    assert compiled.dtype == "bool" and (compiled.numpy() == TRUTH).all()
    assert not weft.shares_memory(compiled, x)
    np.testing.assert_array_equal(got.numpy(), TRUTH)


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", "float16", "float64"])
def test_numbers_without_an_imaginary_part(dtype):
    for imag in (weft.imag, weft.compile(weft.imag)):
        got = imag(weft.ones((2, 3), dtype=dtype))
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.numpy(), np.zeros((2, 3), dtype))


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_places_of_quantiles_have_any_shape(name):
    x, places = M.astype("float64"), [[0.1, 0.2, 0.9], [0.0, 0.5, 1.0]]
    for q in (places, weft.asarray(places, dtype="float64")):
        for axis in (None, 0, 1):
            got = getattr(weft, name)(weft.asarray(x), q, axis=axis)
            np.testing.assert_allclose(got.numpy(), np.quantile(x, places, axis=axis), rtol=1e-12)  # fmt: skip
    got = weft.percentile(weft.asarray(x), weft.asarray(places, dtype="float64") * 100, axis=1)
    np.testing.assert_allclose(got.numpy(), np.quantile(x, places, axis=1), rtol=1e-12)


def test_complex_numbers_where_numpy_has_them():
    first, last = np.array([1 + 1j, 2]), np.array([2 + 3j, -5])
    for name in ("geomspace", "logspace"):
        ours, theirs = getattr(weft, name), getattr(np, name)
        got = ours(weft.asarray(first), weft.asarray(last), 5, axis=1, endpoint=False, dtype="complex128")  # fmt: skip
        np.testing.assert_allclose(got.numpy(), theirs(first, last, 5, axis=1, endpoint=False))
        np.testing.assert_allclose(ours(1 + 1j, 2 + 3j, 4, dtype="complex128").numpy(), theirs(1 + 1j, 2 + 3j, 4))  # fmt: skip
    with pytest.raises(weft.ArgumentError) as refusal:
        weft.geomspace(0j, 1j)
    assert refusal.value.code == "array.geomspace.ends"
    z = RNG.standard_normal((5, 6)) + 1j * RNG.standard_normal((5, 6))
    for ours, theirs in zip(weft.gradient(weft.asarray(z)), np.gradient(z)):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-14)
    at = np.array([0.0, 1.0, 3.0, 4.0, 7.0])
    np.testing.assert_allclose(weft.gradient(weft.asarray(z), weft.asarray(at), axis=0).numpy(), np.gradient(z, at, axis=0), atol=1e-14)  # fmt: skip
    sign, logarithm = np.linalg.slogdet(z[:, :5])
    np.testing.assert_allclose(complex(weft.logdet(weft.asarray(z[:, :5]))), np.log(sign) + logarithm)  # fmt: skip
    z[0, 1] = np.nan
    for name in ("nanvar", "nanstd"):
        got = getattr(weft, name)(weft.asarray(z), axis=0)
        assert got.dtype == "float64"
        np.testing.assert_allclose(got.numpy(), getattr(np, name)(z, axis=0))


def test_shapes_that_numpy_takes():
    a = weft.asarray(M)
    assert [v.shape for v in weft.meshgrid(a, weft.asarray(W))] == [v.shape for v in np.meshgrid(M, W)]  # fmt: skip
    np.testing.assert_array_equal(weft.permute_dims(weft.asarray(C)).numpy(), C.T)
    np.testing.assert_array_equal(weft.full_like(a, weft.asarray(M[0])).numpy(), np.full_like(M, M[0]))  # fmt: skip


@pytest.mark.parametrize("rule", ["auto", "sqrt", "sturges", "rice", "scott", "fd"])
def test_edges_by_rules(rule, rng):
    x = np.concatenate([rng.normal(0, 1, 700), [4.0, -4.0]])
    for limits in (None, (-2.0, 4.0), (-4.0, 1.5)):
        wanted = np.histogram_bin_edges(x, rule, limits)
        found = weft.histogram_bin_edges(weft.asarray(x), rule, limits)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)
    # An element at the end of the range counts: without it one bin fewer.
    for n in range(2, 40):
        x = np.arange(n + 1) / n
        wanted = np.histogram_bin_edges(x, rule, (0.0, 1.0))
        assert weft.histogram_bin_edges(weft.asarray(x), rule, (0.0, 1.0)).shape == wanted.shape, n
