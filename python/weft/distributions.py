# SPDX-License-Identifier: Apache-2.0
"""Random variables with their densities, by PyTorch's names: log_prob, entropy, sample, kl_divergence.

>>> d = weft.distributions.Normal(0.0, 1.0)
>>> d.log_prob(0.5), d.sample((3,)).shape

Parameters are numbers, arrays or tensors that broadcast; densities have gradients with respect to them, and so has rsample().
"""

from __future__ import annotations

import math
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import weft

from . import _core
from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from ._core import NDArray, Tensor
from ._errors import error as _error

__all__ = [
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "MixtureSameFamily",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "SigmoidTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "kl_divergence",
]


def _values(*parameters):
    """Parameters as values of floats that have one shape."""
    given = [p for p in parameters if isinstance(p, (NDArray, Tensor)) and p.dtype.kind == "f"]
    kind = weft.result_type(*(p.dtype for p in given)) if given else None
    numbers = [isinstance(p, (int, float)) for p in parameters]
    found = [
        p if isinstance(p, (NDArray, Tensor)) else weft.asarray(p, dtype=kind if number else None)
        for p, number in zip(parameters, numbers)
    ]
    found = [p if p.dtype.kind == "f" else p.astype("float32") for p in found]
    shape = weft.broadcast_shapes(*(tuple(p.shape) for p in found))
    return [weft.broadcast_to(p, shape) for p in found]


def _plain(x):
    return x.data if isinstance(x, Tensor) else weft.asarray(x)


def _one_of(kind, probs, logits):
    if (probs is None) == (logits is None):
        raise _error(
            _core.ArgumentError,
            "distributions.parameter",
            f"{kind} of {'both' if probs is not None else 'neither'} of probs and logits",
            help=f"name one of them: {kind}(probs=p)",
        )


class Distribution:
    """What the distributions share; batch_shape is the shape of their parameters."""

    batch_shape = ()
    event_shape = ()

    def __init__(self):
        pass

    def _shape(self, sample_shape):
        sample_shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*sample_shape, *self.batch_shape)

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Random values of shape sample_shape + batch_shape, without gradient."""
        with weft.no_grad():
            out = self.rsample(sample_shape)
        return out.detach() if isinstance(out, Tensor) else out

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Random values whose gradient reaches the parameters."""
        raise _error(
            _core.ArgumentError,
            "distributions.rsample",
            f"rsample of a {type(self).__name__}: its values do not vary smoothly with its parameters",
            help="sample(), and log_prob of what it gave",
        )

    @property
    def stddev(self) -> _Any:
        """The square root of the variance."""
        return weft.sqrt(self.variance)


class Normal(Distribution):
    """Of a mean and a standard deviation."""

    def __init__(self, loc: _Any, scale: _Any) -> None:
        self.loc, self.scale = _values(loc, scale)
        self.batch_shape = tuple(self.loc.shape)

    mean = property(lambda self: self.loc, doc="The mean.")
    variance = property(lambda self: self.scale * self.scale, doc="The variance.")

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """loc + scale * z of standard normal z."""
        z = weft.random.normal(self._shape(sample_shape), device=self.loc.device)
        return self.loc + self.scale * z.astype(self.loc.dtype)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        z = (value - self.loc) / self.scale
        return -0.5 * z * z - weft.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def entropy(self) -> _Any:
        """The entropy."""
        return weft.log(self.scale) + 0.5 * (1 + math.log(2 * math.pi))

    def cdf(self, value: _Any) -> _Any:
        """The probability of values below."""
        return 0.5 * (1 + weft.erf((value - self.loc) / (self.scale * math.sqrt(2))))


class Uniform(Distribution):
    """Between two bounds."""

    def __init__(self, low: _Any, high: _Any) -> None:
        self.low, self.high = _values(low, high)
        self.batch_shape = tuple(self.low.shape)

    mean = property(lambda self: (self.low + self.high) / 2, doc="The mean.")
    variance = property(lambda self: (self.high - self.low) ** 2 / 12, doc="The variance.")

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """low + (high - low) * u of u from 0 to 1."""
        u = weft.random.uniform(self._shape(sample_shape), device=self.low.device)
        return self.low + (self.high - self.low) * u.astype(self.low.dtype)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density, -inf outside."""
        inside = (_plain(value) >= _plain(self.low)) & (_plain(value) < _plain(self.high))
        return weft.where(inside, -weft.log(self.high - self.low), -math.inf)

    def entropy(self) -> _Any:
        """The entropy."""
        return weft.log(self.high - self.low)


class Exponential(Distribution):
    """Of a rate."""

    def __init__(self, rate: _Any) -> None:
        (self.rate,) = _values(rate)
        self.batch_shape = tuple(self.rate.shape)

    mean = property(lambda self: 1 / self.rate, doc="The mean.")
    variance = property(lambda self: 1 / (self.rate * self.rate), doc="The variance.")

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """-log(1 - u) / rate of u from 0 to 1."""
        u = weft.random.uniform(self._shape(sample_shape), device=self.rate.device)
        return -weft.log1p(-u.astype(self.rate.dtype)) / self.rate

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        return weft.log(self.rate) - self.rate * value

    def entropy(self) -> _Any:
        """The entropy."""
        return 1 - weft.log(self.rate)


class Bernoulli(Distribution):
    """1 with a probability, else 0."""

    def __init__(self, probs: _Any = None, logits: _Any = None) -> None:
        _one_of("Bernoulli", probs, logits)
        (self._given,) = _values(probs if logits is None else logits)
        self._of_logits = logits is not None
        self.batch_shape = tuple(self._given.shape)

    @property
    def logits(self) -> _Any:
        """log(p / (1 - p))."""
        p = self._given
        return p if self._of_logits else weft.log(p) - weft.log1p(-p)

    @property
    def probs(self) -> _Any:
        """The probability of 1."""
        return weft.sigmoid(self._given) if self._of_logits else self._given

    mean = property(lambda self: self.probs, doc="The mean.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="The variance.")

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Zeros and ones of the parameters' type."""
        p = _plain(self.probs)
        u = weft.random.uniform(self._shape(sample_shape), device=p.device)
        return (u < p).astype(p.dtype)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the probability of 0 or 1."""
        x = self.logits
        return value * x - weft.logaddexp(x, 0.0)

    def entropy(self) -> _Any:
        """The entropy."""
        x = self.logits
        return weft.logaddexp(x, 0.0) - self.probs * x


class Categorical(Distribution):
    """0, 1, ... with probabilities along the last axis; they need not sum to 1."""

    def __init__(self, probs: _Any = None, logits: _Any = None) -> None:
        _one_of("Categorical", probs, logits)
        (given,) = _values(probs if logits is None else logits)
        total = weft.sum(given, axis=-1, keepdims=True) if logits is None else None
        self.logits = (
            weft.log(given / total) if logits is None else weft.log_softmax(given, axis=-1)
        )
        self.batch_shape = tuple(given.shape)[:-1]

    @property
    def probs(self) -> _Any:
        """The probabilities."""
        return weft.exp(self.logits)

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Numbers as int64: the place of the largest of logits plus noise."""
        logits = _plain(self.logits)
        shape = (*self._shape(sample_shape), logits.shape[-1])
        u = weft.random.uniform(shape, device=logits.device).astype(logits.dtype)
        noise = -weft.log(-weft.log(weft.clip(u, 1e-20, 1 - 1e-7)))
        return weft.argmax(logits + noise, axis=-1)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the probability of a number."""
        at = _plain(value).astype("int64")
        shape = weft.broadcast_shapes(tuple(at.shape), self.batch_shape)
        at = weft.broadcast_to(at, shape).reshape((*shape, 1))
        rows = weft.broadcast_to(self.logits, (*shape, self.logits.shape[-1]))
        return weft.squeeze(weft.take_along_axis(rows, at, axis=-1), axis=-1)

    def entropy(self) -> _Any:
        """The entropy."""
        p = self.probs
        terms = weft.where(_plain(p) > 0, p * self.logits, 0.0)
        return -weft.sum(terms, axis=-1)


def kl_divergence(p: Distribution, q: Distribution) -> _Any:
    """The divergence of p from q, both of one kind. Raises ArgumentError for kinds without a formula."""
    if type(p) is type(q) is Normal:
        ratio = (p.scale / q.scale) ** 2
        return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - weft.log(ratio))
    if type(p) is type(q) is Categorical:
        terms = weft.where(_plain(p.probs) > 0, p.probs * (p.logits - q.logits), 0.0)
        return weft.sum(terms, axis=-1)
    if type(p) is type(q) is Bernoulli:
        a, b = p.logits, q.logits
        return p.probs * (a - b) + weft.logaddexp(b, 0.0) - weft.logaddexp(a, 0.0)
    if type(p) is type(q) is Exponential:
        ratio = q.rate / p.rate
        return ratio - 1 - weft.log(ratio)
    if type(p) is type(q) is Uniform:
        inside = (_plain(q.low) <= _plain(p.low)) & (_plain(p.high) <= _plain(q.high))
        return weft.where(inside, weft.log((q.high - q.low) / (p.high - p.low)), math.inf)
    if type(p) is type(q) is Independent:
        if p.reinterpreted_batch_ndims == q.reinterpreted_batch_ndims:
            return p._summed(kl_divergence(p.base_dist, q.base_dist))
    found = divergence(p, q)
    if found is not None:
        return found
    raise _error(
        _core.ArgumentError,
        "distributions.kl",
        f"kl_divergence of {type(p).__name__} and {type(q).__name__}",
        [
            "legal: two of one kind, but for Cauchy, Gumbel, HalfNormal, StudentT, Binomial and what is made of others"
        ],
    )


from ._densities import (  # noqa: E402  (they derive from the classes above)
    AffineTransform,
    Beta,
    Binomial,
    Cauchy,
    Chi2,
    Dirichlet,
    ExpTransform,
    Gamma,
    Geometric,
    Gumbel,
    HalfNormal,
    Independent,
    Laplace,
    LogNormal,
    MixtureSameFamily,
    MultivariateNormal,
    OneHotCategorical,
    Poisson,
    SigmoidTransform,
    StudentT,
    TanhTransform,
    Transform,
    TransformedDistribution,
    divergence,
)


_publish(__name__)
_publish_classes(__name__)
