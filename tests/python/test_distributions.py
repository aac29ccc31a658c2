# SPDX-License-Identifier: Apache-2.0
"""Random variables beside torch.distributions: densities with gradients, moments, entropies, divergences, samples."""

import numpy as np
import pytest
from refusal import refused

import weft

torch = pytest.importorskip("torch")
D, T = weft.distributions, torch.distributions
RNG = np.random.default_rng(3)


def some(*shape, low=0.3, high=2.0):
    return RNG.uniform(low, high, shape)


COVARIANCE = np.cov(RNG.standard_normal((3, 20)))
CASES = {
    "Normal": (some(3), some(3)), "Laplace": (some(3), some(3)), "Cauchy": (some(3), some(3)), "Gumbel": (some(3), some(3)),
    "LogNormal": (some(3), some(3)), "HalfNormal": (some(3),), "StudentT": (some(3) + 2.5, some(3), some(3)), "Gamma": (some(3), some(3)),
    "Chi2": (some(3),), "Dirichlet": (some(2, 4),), "Beta": (some(3), some(3)), "Poisson": (some(3),), "Geometric": (some(3, high=0.8),),
    "Bernoulli": (some(3, high=0.8),), "OneHotCategorical": (some(2, 4),), "MultivariateNormal": (some(2, 3), COVARIANCE),
    "Uniform": (some(3), some(3) + 3.0), "Exponential": (some(3),),
}  # fmt: skip
NO_ENTROPY = {"StudentT", "Poisson"}
NO_DIVERGENCE = {"Cauchy", "Gumbel", "HalfNormal", "StudentT"}
NO_MOMENTS = {"Cauchy"}


def near(got, want, tolerance=1e-9):
    got = got.detach().numpy() if hasattr(got, "detach") else got.numpy()
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_densities(name):
    ours, theirs = [weft.Tensor(x) for x in CASES[name]], [torch.tensor(x, requires_grad=True) for x in CASES[name]]  # fmt: skip
    d, e = getattr(D, name)(*ours), getattr(T, name)(*theirs)
    assert tuple(d.batch_shape) == tuple(e.batch_shape) and tuple(d.event_shape) == tuple(
        e.event_shape
    )
    torch.manual_seed(0)
    value = e.sample((5,))
    got, want = d.log_prob(weft.asarray(value.numpy())), e.log_prob(value)
    near(got, want)
    got.sum().backward()
    want.sum().backward()
    for x, y in zip(ours, theirs):
        near(weft.asarray(0.0) if x.grad is None else x.grad, torch.tensor(0.0) if y.grad is None else y.grad, 1e-8)  # fmt: skip
    if name not in NO_MOMENTS:
        for moment in ("mean", "variance", "stddev"):
            near(getattr(d, moment), getattr(e, moment))
    if name not in NO_ENTROPY:
        near(d.entropy(), e.entropy())


@pytest.mark.parametrize("name", sorted(set(CASES) - NO_MOMENTS))
def test_samples(name):
    weft.random.seed(7)
    d = getattr(D, name)(*map(weft.asarray, CASES[name]))
    e = getattr(T, name)(*map(torch.tensor, CASES[name]))
    drawn = d.sample((20000,))
    assert not getattr(drawn, "requires_grad", False)
    drawn = drawn.numpy()
    assert drawn.shape == tuple(e.sample((20000,)).shape)
    away = np.abs(drawn.mean(0) - e.mean.numpy()) / e.stddev.numpy()
    assert away.max() < 0.06
    np.testing.assert_allclose(drawn.std(0), e.stddev.numpy(), rtol=0.5 if name in ("LogNormal", "StudentT") else 0.06)  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(CASES) - NO_DIVERGENCE))
def test_divergences(name):
    first = CASES[name]
    second = [x * (0.8 if name in ("Geometric", "Bernoulli") else 1.3) for x in first]
    if name == "Uniform":
        second = [first[0] - 0.1, first[1] + 0.5]
    ours = [getattr(D, name)(*map(weft.asarray, p)) for p in (first, second)]
    theirs = [getattr(T, name)(*map(torch.tensor, p)) for p in (first, second)]
    near(D.kl_divergence(*ours), T.kl_divergence(*theirs))


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Gumbel", "LogNormal", "HalfNormal", "Cauchy", "MultivariateNormal"])  # fmt: skip
def test_samples_with_gradients(name):
    given = [weft.Tensor(x) for x in CASES[name]]
    drawn = getattr(D, name)(*given).rsample((4,))
    assert drawn.requires_grad
    drawn.sum().backward()
    assert all(np.isfinite(x.grad.numpy()).all() for x in given)


def test_distributions_of_others():
    base = lambda lib, make: lib.Normal(make(CASES["Normal"][0]), make(CASES["Normal"][1]))  # noqa: E731
    x = weft.asarray(some(5, 3)), None
    d, e = D.Independent(base(D, weft.asarray), 1), T.Independent(base(T, torch.tensor), 1)
    near(d.log_prob(x[0]), e.log_prob(torch.tensor(x[0].numpy())))
    near(d.entropy(), e.entropy())
    near(D.kl_divergence(d, d), T.kl_divergence(e, e))
    y = np.tanh(some(5, 3) - 1.0) * 0.9
    d = D.TransformedDistribution(base(D, weft.asarray), [D.TanhTransform(), D.AffineTransform(0.1, 2.0)])  # fmt: skip
    e = T.TransformedDistribution(base(T, torch.tensor), [T.TanhTransform(), T.AffineTransform(0.1, 2.0)])  # fmt: skip
    near(d.log_prob(weft.asarray(y)), e.log_prob(torch.tensor(y)), 1e-8)
    assert d.sample((7,)).shape == (7, 3) and d.rsample((7,)).shape == (7, 3)
    d = D.TransformedDistribution(base(D, weft.asarray), [D.ExpTransform()])
    near(d.log_prob(weft.asarray(y + 2)), T.LogNormal(*map(torch.tensor, CASES["Normal"])).log_prob(torch.tensor(y + 2)), 1e-8)  # fmt: skip
    weights, places, widths = some(2, 3), some(2, 3), some(2, 3)
    d = D.MixtureSameFamily(D.Categorical(weft.asarray(weights)), D.Normal(weft.asarray(places), weft.asarray(widths)))  # fmt: skip
    e = T.MixtureSameFamily(T.Categorical(torch.tensor(weights)), T.Normal(torch.tensor(places), torch.tensor(widths)))  # fmt: skip
    z = some(5, 2)
    near(d.log_prob(weft.asarray(z)), e.log_prob(torch.tensor(z)))
    near(d.mean, e.mean)
    near(d.variance, e.variance)
    assert d.sample((6,)).shape == (6, 2)
    p = some(3, high=0.8)
    near(D.Binomial(7, weft.asarray(p)).log_prob(weft.asarray([2.0, 3.0, 4.0])), T.Binomial(7, torch.tensor(p)).log_prob(torch.tensor([2.0, 3.0, 4.0])), 1e-6)  # fmt: skip
    drawn = D.Binomial(7, weft.asarray(p)).sample((4000,)).numpy()
    np.testing.assert_allclose(drawn.mean(0), 7 * p, rtol=0.06)


def test_matrices_of_vectors():
    for name, matrix in (
        ("covariance_matrix", COVARIANCE), ("precision_matrix", np.linalg.inv(COVARIANCE)), ("scale_tril", np.linalg.cholesky(COVARIANCE))
    ):  # fmt: skip
        d = D.MultivariateNormal(weft.asarray(some(3)), **{name: weft.asarray(matrix)})
        np.testing.assert_allclose(d.covariance_matrix.numpy(), COVARIANCE, rtol=1e-9)
    refused(weft.ArgumentError, "distributions.parameter", D.MultivariateNormal, weft.ones(3))


def test_refusals():
    refused(weft.ArgumentError, "distributions.rsample", D.Gamma(1.0, 1.0).rsample)
    refused(weft.ArgumentError, "distributions.kl", D.kl_divergence, D.Cauchy(0.0, 1.0), D.Cauchy(0.0, 1.0))  # fmt: skip
    refused(weft.ArgumentError, "distributions.independent", D.Independent, D.Normal(0.0, 1.0), 1)


def test_parameters_that_are_whole_numbers_make_float32():
    for d in (
        weft.distributions.Normal(weft.asarray([0, 1]), weft.asarray([1, 2])),
        weft.distributions.Uniform(0, 2),
    ):
        assert d.log_prob(weft.asarray([0.5], dtype="float32")).dtype == weft.float32
        assert d.sample((3,)).dtype == weft.float32
