# SPDX-License-Identifier: Apache-2.0
"""Distributions that hosts draw in one pass, beside NumPy's: both samples have one distribution, whatever the form of the call."""

import copy

import numpy as np
import pytest
import weft

N = 20000
# Parameters in NumPy's order; ones on both sides of where the method changes.
CASES = [
    ("exponential", 2.0), ("laplace", 1.0, 2.0), ("gumbel", 1.0, 2.0), ("logistic", 1.0, 2.0), ("lognormal", 0.2, 0.5), ("rayleigh", 1.5),
    ("weibull", 1.5), ("pareto", 3.0), ("power", 3.0), ("standard_cauchy",), ("standard_exponential",), ("triangular", 0.0, 1.0, 4.0),
    ("geometric", 0.3), ("geometric", 0.01), ("geometric", 1.0), ("standard_gamma", 2.5), ("gamma", 0.1, 2.0), ("gamma", 1.0, 1.0),
    ("gamma", 40.0, 0.5), ("chisquare", 3.0), ("standard_t", 5.0), ("f", 5.0, 9.0), ("beta", 2.0, 3.0), ("beta", 0.3, 0.4), ("beta", 0.5, 5.0),
    ("wald", 2.0, 5.0), ("vonmises", 0.5, 0.0), ("vonmises", 0.5, 4.0), ("vonmises", 0.5, 1e7), ("poisson", 0.0), ("poisson", 0.3),
    ("poisson", 9.9), ("poisson", 10.0), ("poisson", 1000.0), ("binomial", 20, 0.3), ("binomial", 20, 0.7), ("binomial", 40, 0.25),
    ("binomial", 100, 0.4), ("binomial", 1000, 0.9), ("binomial", 100000, 0.3), ("binomial", 7, 1.0), ("binomial", 0, 0.5),
    ("negative_binomial", 4, 0.4), ("negative_binomial", 2.5, 0.05), ("negative_binomial", 3, 1.0), ("zipf", 2.5), ("zipf", 1.3),
    ("logseries", 0.6), ("logseries", 0.99),
]  # fmt: skip


def apart(x, y):
    """The largest distance of two samples' distributions, in units of what chance gives (1.63: one in a hundred)."""
    x, y = np.sort(x.astype("float64")), np.sort(y.astype("float64"))
    at = np.concatenate([x, y])
    f, g = (np.searchsorted(v, at, side="right") / len(v) for v in (x, y))
    return np.abs(f - g).max() * (len(x) * len(y) / (len(x) + len(y))) ** 0.5


@pytest.mark.parametrize("name, parameters", [(c[0], c[1:]) for c in CASES])
def test_has_numpys_distribution(name, parameters):
    want = getattr(np.random.default_rng(2), name)(*parameters, size=4 * N)
    weft.random.seed(5)
    ours, rng = getattr(weft.random, name), weft.random.default_rng(7)
    key = weft.random.key(9)
    drawn = {
        "shape": ours(*parameters, shape=(N,)),
        "key": ours(*parameters, shape=N, key=key),
        "generator": getattr(rng, name)(*parameters, size=(N // 2, 2)).reshape(-1),
        # Parameters for each element.
        "arrays": ours(*(weft.full((N,), p, dtype="float64") for p in parameters), shape=(N,)),
    }
    if want.dtype.kind == "f":
        drawn["float64"] = ours(*parameters, shape=(N,), dtype="float64")
    for form, x in drawn.items():
        x = x.numpy()
        assert x.dtype == (
            "float64" if form == "float64" else "float32" if want.dtype.kind == "f" else "int64"
        )
        assert apart(x, want) < 2.4, form
    forms = [x.numpy() for x in drawn.values()]
    if len(np.unique(want)) > 1:  # no two streams are one
        assert len({tuple(x[:200]) for x in forms}) == len(forms)
    np.testing.assert_array_equal(ours(*parameters, shape=N, key=key).numpy(), drawn["key"].numpy())


def test_each_element_has_its_own_parameters():
    means = np.array([[0.5, 5.0, 50.0], [2.0, 20.0, 2000.0]])
    x = weft.random.poisson(weft.asarray(means), (4000, 2, 3)).numpy()
    assert (np.abs(x.mean(0) - means) < 6 * (means / 4000) ** 0.5).all()
    x = weft.random.default_rng(1).gamma([1.0, 10.0], [[1.0], [3.0]], size=(4000, 2, 2)).numpy()
    assert (np.abs(x.mean(0) - [[1, 10], [3, 30]]) < [[0.1, 0.4], [0.3, 1.0]]).all()
    assert weft.random.binomial([3, 5], 1.0).tolist() == [3, 5]
    assert tuple(weft.random.exponential(weft.ones((2, 1))).shape) == (2, 1)
    with pytest.raises(weft.Error):
        weft.random.poisson(weft.ones((3,)), (4,))
    with pytest.raises(weft.Error, match="random.gamma.range"):
        weft.random.gamma(weft.asarray([1.0, -1.0]))


def test_threads_change_nothing():
    before = weft.get_threads()
    try:
        drawn = []
        for threads in (1, 2):
            weft.set_threads(threads)
            drawn.append(weft.random.gamma(2.0, 1.0, (50001,), key=weft.random.key(3)).numpy())
    finally:
        weft.set_threads(before)
    np.testing.assert_array_equal(*drawn)


def test_shares_of_tries():
    p = [0.2, 0.3, 0.0, 0.5]
    x = weft.random.default_rng(4).multinomial(20, p, size=N).numpy()
    assert x.dtype == "int64" and (x.sum(1) == 20).all() and (x[:, 2] == 0).all()
    want = np.random.default_rng(2).multinomial(20, p, size=N)
    assert all(apart(x[:, k], want[:, k]) < 2.4 for k in range(4))
    assert abs(np.cov(x.T)[0, 1] + 20 * 0.2 * 0.3) < 0.1
    assert weft.random.multinomial(5, [1.0]).tolist() == [5]


def test_generators_go_on_and_are_copied():
    rng = weft.random.default_rng(6)
    assert len({float(rng.random()) for _ in range(50)}) == 50
    again = copy.deepcopy(rng)
    for name, *parameters in (
        ("normal", 1.0, 2.0),
        ("gamma", 2.0),
        ("integers", 5, 9),
        ("poisson", 3.0),
    ):
        x, y = (getattr(g, name)(*parameters, size=(3, 5)).numpy() for g in (rng, again))
        np.testing.assert_array_equal(x, y)
    assert tuple(rng.normal(size=0).shape) == (0,) and tuple(rng.uniform(1.0, 2.0).shape) == ()
    one, two = weft.random.default_rng(1).spawn(2)
    assert one.random(4).tolist() != two.random(4).tolist()
    x = rng.integers(-3, 4, size=5000, endpoint=True).numpy()
    assert x.dtype == "int64" and x.min() == -3 and x.max() == 4
    with pytest.raises(AttributeError):
        rng.nothing
    assert "gamma" in dir(rng) and "zipf" in dir(rng)


def test_with_a_generator_numbers_are_those_of_its_seed_without_one():
    weft.random.seed(3)
    np.testing.assert_array_equal(
        weft.random.default_rng(3).normal(1.0, 2.0, 7).numpy(),
        weft.random.normal((7,), 1.0, 2.0).numpy(),
    )
