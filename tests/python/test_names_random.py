# SPDX-License-Identifier: Apache-2.0
"""Distributions under NumPy's names: means and deviations of many numbers, shapes, seeds."""

import collections

import numpy as np
import pytest
import weft

N = 20000
# Arguments, mean and deviation of each.
MOMENTS = {
    "standard_exponential": ((), 1, 1), "standard_gamma": ((3.0,), 3, 3**0.5), "standard_t": ((8.0,), 0, (8 / 6) ** 0.5),
    "f": ((5.0, 20.0), 20 / 18, (2 * 400 * 23 / (5 * 324 * 16)) ** 0.5), "noncentral_chisquare": ((3.0, 2.0), 5, 14**0.5),
    "pareto": ((5.0,), 0.25, (5 / (16 * 3)) ** 0.5), "power": ((3.0,), 0.75, (3 / (16 * 5)) ** 0.5), "weibull": ((2.0,), 0.8862, 0.4633),
    "triangular": ((0.0, 1.0, 4.0), 5 / 3, (13 / 18) ** 0.5), "wald": ((2.0, 5.0), 2, (8 / 5) ** 0.5), "vonmises": ((0.5, 4.0), 0.5, 0.5419),
    "logseries": ((0.6,), 1.637, 1.1889), "negative_binomial": ((4.0, 0.4), 6, 15**0.5), "zipf": ((5.0,), 1.0437, 0.2565),
    "hypergeometric": ((15, 10, 7), 4.2, (7 * 0.6 * 0.4 * 18 / 24) ** 0.5), "noncentral_f": ((4.0, 30.0, 2.0), 30 * 6 / (4 * 28), None),
}  # fmt: skip


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name):
    more, mean, deviation = MOMENTS[name]
    weft.random.seed(5)
    x = getattr(weft.random, name)(*more, size=(N,)).numpy().astype("float64")
    assert x.shape == (N,) and np.isfinite(x).all()
    spread = deviation or x.std()
    assert abs(x.mean() - mean) < 6 * spread / N**0.5 + 2e-3
    if deviation:
        assert abs(x.std() - deviation) < 0.12 * deviation
    rng, again = weft.random.default_rng(3), weft.random.default_rng(3)
    one = getattr(rng, name)(*more, 4)
    assert tuple(one.shape) == (4,)
    np.testing.assert_array_equal(one.numpy(), getattr(again, name)(*more, size=4).numpy())


def test_older_names_and_numpys_order():
    weft.random.seed(1)
    r = weft.random
    assert tuple(r.rand(2, 3).shape) == tuple(r.randn(2, 3).shape) == (2, 3)
    assert tuple(r.uniform(-1.0, 0.0, size=(3,)).shape) == (3,)
    x = r.uniform(-1.0, 0.0, size=500).numpy()
    assert x.min() >= -1 and x.max() < 0
    assert abs(r.normal(5.0, 0.1, size=200).numpy().mean() - 5) < 0.1
    assert abs(r.normal(loc=5.0, scale=0.1, size=200).numpy().mean() - 5) < 0.1
    assert set(r.randint(2, size=50).tolist()) == {0, 1} and r.randint(3, 4).item() == 3
    assert len(r.bytes(5)) == 5 and 0 <= float(r.random()) < 1
    assert sorted(r.permutation([3, 1, 2]).tolist()) == [1, 2, 3]
    assert sorted(r.choice(5, size=5, replace=False).tolist()) == [0, 1, 2, 3, 4]
    assert r.choice([10, 20], 50, p=[0.0, 1.0]).tolist() == [20] * 50
    assert tuple(r.gamma(shape=2.0, scale=1.0, size=3).shape) == (3,)
    assert sorted(r.permuted(weft.arange(5)).tolist()) == [0, 1, 2, 3, 4]
    counts = r.multivariate_hypergeometric([3, 4, 5], 6, 10).numpy()
    assert counts.shape == (10, 3) and (counts.sum(1) == 6).all()
    state = r.get_state()
    first = r.rand(3).tolist()
    r.set_state(state)
    assert r.rand(3).tolist() == first
    older = r.RandomState(4)
    assert tuple(older.randn(2, 2).shape) == (2, 2) and tuple(older.randint(0, 5, 3).shape) == (3,)
    rows = (
        weft.random.default_rng(2).permuted(weft.reshape(weft.arange(12), (3, 4)), axis=1).numpy()
    )
    assert (np.sort(rows, 1) == np.arange(12).reshape(3, 4)).all()


@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_numpys_order_is_no_empty_array(name):
    function = getattr(weft.random, name)
    with pytest.raises(weft.DTypeError) as caught:
        function(0, 1, 10)
    assert caught.value.code == "random.shape.place" and "size=10" in str(caught.value)
    assert function(0).shape == (0,) and function(0, 1, size=10).shape == (10,)
    assert function((0,), 0.0, 1.0).shape == (0,)


@pytest.mark.parametrize("n, count", [(7, 3), (5, 5), (1, 1), (1000, 4), (2**40, 9)])
def test_choice_without_repeats(n, count):
    """Numbers below n, all different; each first number and each pair of a short range about as often; a key gives the same ones."""
    key = weft.random.key(73)
    at = weft.random.choice(n, (count,), replace=False, key=key)
    assert at.shape == (count,) and at.dtype == weft.int64
    found = at.tolist()
    assert len(set(found)) == count and min(found) >= 0 and max(found) < n
    assert weft.random.choice(n, count, False, key=key).tolist() == found
    if n == 7:
        seen = collections.Counter()
        for one in key.split(4200):
            seen[tuple(weft.random.choice(n, (2,), replace=False, key=one).tolist())] += 1
        assert len(seen) == 42 and min(seen.values()) > 60 and max(seen.values()) < 145


def test_choice_of_more_than_there_are():
    with pytest.raises(weft.Error, match="random.choice.count"):
        weft.random.choice(3, (5,), replace=False)


def test_one_negative_extent_is_refused():
    weft.random.seed(3)
    wanted = weft.random.normal((4,)).numpy()
    weft.random.seed(3)
    for shape in ((-1,), (3, -1), -1):
        for draw in (weft.random.normal, weft.random.uniform):
            with pytest.raises(weft.ArgumentError, match="negative extent -1"):
                draw(shape)
    assert (weft.random.normal((4,)).numpy() == wanted).all()  # nothing was drawn for them
