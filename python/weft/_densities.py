# SPDX-License-Identifier: Apache-2.0
"""Rarer random variables with their densities, by PyTorch's names; weft.distributions offers them."""

from __future__ import annotations

import math
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import weft

from . import _core
from ._errors import error as _error
from .distributions import Categorical, Distribution, Normal, _one_of, _plain, _values

_EULER = 0.57721566490153286


def _uniform(self, sample_shape, like, event=()):
    """Uniform numbers from 0 to 1, without both."""
    shape = (*self._shape(sample_shape), *event)
    u = weft.random.uniform(shape, device=like.device).astype(like.dtype)
    tiny = weft.finfo(like.dtype).eps * 0.5
    return weft.clip(u, tiny, 1 - tiny)


def _of_counts(value, like):
    """Counts as floats beside parameters."""
    value = value if hasattr(value, "dtype") else weft.asarray(value)
    return value if value.dtype.kind == "f" else value.astype(like.dtype)


class _LocationScale(Distribution):
    """Of a location and a scale: loc + scale * standard values."""

    def __init__(self, loc: _Any, scale: _Any) -> None:
        self.loc, self.scale = _values(loc, scale)
        self.batch_shape = tuple(self.loc.shape)

    mean = property(lambda self: self.loc, doc="The mean.")

    def _z(self, value):
        return (value - self.loc) / self.scale

    def _standard(self, u):
        raise NotImplementedError

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """loc + scale times what a uniform number becomes."""
        return self.loc + self.scale * self._standard(_uniform(self, sample_shape, self.loc))


class Laplace(_LocationScale):
    """Of a location and a scale; the density falls exponentially on both sides."""

    variance = property(lambda self: 2 * self.scale**2, doc="The variance.")

    def _standard(self, u):
        u = u - 0.5
        return -weft.sign(u) * weft.log1p(-2.0 * weft.abs(u))

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        return -weft.log(2.0 * self.scale) - weft.abs(self._z(value))

    def entropy(self) -> _Any:
        """The entropy."""
        return 1 + weft.log(2.0 * self.scale)

    def cdf(self, value: _Any) -> _Any:
        """The probability of values below."""
        z = self._z(value)
        return 0.5 - 0.5 * weft.sign(z) * weft.expm1(-weft.abs(z))


class Cauchy(_LocationScale):
    """Of a location and a scale; it has neither mean nor variance."""

    mean = property(lambda self: weft.full_like(_plain(self.loc), math.nan), doc="NaN.")
    variance = property(lambda self: weft.full_like(_plain(self.loc), math.inf), doc="Infinite.")

    def _standard(self, u):
        return weft.tan(math.pi * (u - 0.5))

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        z = self._z(value)
        return -math.log(math.pi) - weft.log(self.scale) - weft.log1p(z * z)

    def entropy(self) -> _Any:
        """The entropy."""
        return math.log(4 * math.pi) + weft.log(self.scale)

    def cdf(self, value: _Any) -> _Any:
        """The probability of values below."""
        return weft.atan(self._z(value)) / math.pi + 0.5


class Gumbel(_LocationScale):
    """Of a location and a scale: largest values."""

    mean = property(lambda self: self.loc + self.scale * _EULER, doc="The mean.")
    variance = property(lambda self: self.scale**2 * (math.pi**2 / 6), doc="The variance.")

    def _standard(self, u):
        return -weft.log(-weft.log(u))

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        z = self._z(value)
        return -(z + weft.exp(-z)) - weft.log(self.scale)

    def entropy(self) -> _Any:
        """The entropy."""
        return weft.log(self.scale) + 1 + _EULER


class LogNormal(Normal):
    """exp of normal values of a mean and a standard deviation."""

    mean = property(lambda self: weft.exp(self.loc + self.scale**2 / 2), doc="The mean.")
    variance = property(
        lambda self: weft.expm1(self.scale**2) * weft.exp(2 * self.loc + self.scale**2),
        doc="The variance.",
    )

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """exp of normal values."""
        return weft.exp(super().rsample(sample_shape))

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        x = weft.log(_of_counts(value, self.loc))
        return super().log_prob(x) - x

    def entropy(self) -> _Any:
        """The entropy."""
        return super().entropy() + self.loc

    def cdf(self, value: _Any) -> _Any:
        """The probability of values below."""
        return super().cdf(weft.log(_of_counts(value, self.loc)))


class HalfNormal(Distribution):
    """Magnitudes of normal values of mean 0."""

    def __init__(self, scale: _Any) -> None:
        (self.scale,) = _values(scale)
        self.batch_shape = tuple(self.scale.shape)
        self._whole = Normal(self.scale * 0.0, self.scale)

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi), doc="The mean.")
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi), doc="The variance.")

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Magnitudes of normal values."""
        return weft.abs(self._whole.rsample(sample_shape))

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density, -inf below 0."""
        found = self._whole.log_prob(value) + math.log(2.0)
        return weft.where(_plain(value) >= 0, found, -math.inf)

    def entropy(self) -> _Any:
        """The entropy."""
        return self._whole.entropy() - math.log(2.0)

    def cdf(self, value: _Any) -> _Any:
        """The probability of values below."""
        return 2 * self._whole.cdf(value) - 1


class StudentT(Distribution):
    """Of degrees of freedom, a location and a scale."""

    def __init__(self, df: _Any, loc: _Any = 0.0, scale: _Any = 1.0) -> None:
        self.df, self.loc, self.scale = _values(df, loc, scale)
        self.batch_shape = tuple(self.df.shape)

    @property
    def mean(self) -> _Any:
        """The mean; NaN up to one degree of freedom."""
        return weft.where(_plain(self.df) > 1, self.loc, math.nan)

    @property
    def variance(self) -> _Any:
        """The variance; infinite up to two degrees of freedom, NaN up to one."""
        df = _plain(self.df)
        found = self.scale**2 * (self.df / (self.df - 2))
        return weft.where(df > 2, found, weft.where(df > 1, math.inf, math.nan))

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Random values of shape sample_shape + batch_shape."""
        shape, df = self._shape(sample_shape), _plain(self.df)
        t = weft.random.standard_t(df, shape, device=df.device).astype(df.dtype)
        return _plain(self.loc) + _plain(self.scale) * t

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        z = (value - self.loc) / self.scale
        n = self.df
        whole = weft.lgamma((n + 1) / 2) - weft.lgamma(n / 2)
        whole = whole - 0.5 * weft.log(n * math.pi) - weft.log(self.scale)
        return whole - (n + 1) / 2 * weft.log1p(z * z / n)


class Gamma(Distribution):
    """Of a shape parameter (concentration) and a rate."""

    def __init__(self, concentration: _Any, rate: _Any) -> None:
        self.concentration, self.rate = _values(concentration, rate)
        self.batch_shape = tuple(self.rate.shape)

    mean = property(lambda self: self.concentration / self.rate, doc="The mean.")
    variance = property(lambda self: self.concentration / self.rate**2, doc="The variance.")

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Random values of shape sample_shape + batch_shape."""
        a, shape = _plain(self.concentration), self._shape(sample_shape)
        return weft.random.gamma(a, 1.0, shape, dtype=a.dtype, device=a.device) / _plain(self.rate)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        a, x = self.concentration, _of_counts(value, self.rate)
        return a * weft.log(self.rate) + (a - 1) * weft.log(x) - self.rate * x - weft.lgamma(a)

    def entropy(self) -> _Any:
        """The entropy."""
        a = self.concentration
        return a - weft.log(self.rate) + weft.lgamma(a) + (1 - a) * weft.digamma(a)


class Chi2(Gamma):
    """Sums of df squares of normal values."""

    def __init__(self, df: _Any) -> None:
        (self.df,) = _values(df)
        super().__init__(0.5 * self.df, 0.5)


class Dirichlet(Distribution):
    """Parts of 1, one for each entry of the last axis of the concentrations."""

    def __init__(self, concentration: _Any) -> None:
        (self.concentration,) = _values(concentration)
        shape = tuple(self.concentration.shape)
        self.batch_shape, self.event_shape = shape[:-1], shape[-1:]

    def _total(self):
        return weft.sum(self.concentration, axis=-1, keepdims=True)

    mean = property(lambda self: self.concentration / self._total(), doc="The mean.")

    @property
    def variance(self) -> _Any:
        """The variance."""
        mean = self.mean
        return mean * (1 - mean) / (self._total() + 1)

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Random values of shape sample_shape + batch_shape + event_shape."""
        a = _plain(self.concentration)
        shape = (*self._shape(sample_shape), *self.event_shape)
        x = weft.random.gamma(a, 1.0, shape, dtype=a.dtype, device=a.device)
        return x / weft.sum(x, axis=-1, keepdims=True)

    def _normalizer(self):
        a = self.concentration
        return weft.sum(weft.lgamma(a), axis=-1) - weft.lgamma(weft.sum(a, axis=-1))

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        terms = (self.concentration - 1) * weft.log(_of_counts(value, self.concentration))
        return weft.sum(terms, axis=-1) - self._normalizer()

    def entropy(self) -> _Any:
        """The entropy."""
        a = self.concentration
        total, k = weft.sum(a, axis=-1), a.shape[-1]
        rest = weft.sum((a - 1) * weft.digamma(a), axis=-1)
        return self._normalizer() + (total - k) * weft.digamma(total) - rest


class Beta(Distribution):
    """From 0 to 1, of two shape parameters."""

    def __init__(self, concentration1: _Any, concentration0: _Any) -> None:
        self.concentration1, self.concentration0 = _values(concentration1, concentration0)
        self.batch_shape = tuple(self.concentration1.shape)

    def _pair(self):
        return Dirichlet(weft.stack([self.concentration1, self.concentration0], axis=-1))

    mean = property(lambda self: self._pair().mean[..., 0], doc="The mean.")
    variance = property(lambda self: self._pair().variance[..., 0], doc="The variance.")

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Random values of shape sample_shape + batch_shape."""
        return self._pair().sample(sample_shape)[..., 0]

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        x = _of_counts(value, self.concentration1)
        terms = (self.concentration1 - 1) * weft.log(x) + (self.concentration0 - 1) * weft.log1p(-x)
        return terms - self._pair()._normalizer()

    def entropy(self) -> _Any:
        """The entropy."""
        return self._pair().entropy()


class Poisson(Distribution):
    """How many events of a rate occur."""

    def __init__(self, rate: _Any) -> None:
        (self.rate,) = _values(rate)
        self.batch_shape = tuple(self.rate.shape)

    mean = property(lambda self: self.rate, doc="The mean.")
    variance = property(lambda self: self.rate, doc="The variance.")

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Counts in the rate's type."""
        rate = _plain(self.rate)
        found = weft.random.poisson(rate, self._shape(sample_shape), device=rate.device)
        return found.astype(rate.dtype)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the probability of a count."""
        k = _of_counts(value, self.rate)
        return weft.where(_plain(k) == 0, 0.0, k * weft.log(self.rate)) - self.rate - weft.lgamma(k + 1)  # fmt: skip


class _OfTries(Distribution):
    """Of probabilities or logits."""

    def _take(self, probs, logits):
        _one_of(type(self).__name__, probs, logits)
        (given,) = _values(probs if logits is None else logits)
        self.probs = given if logits is None else weft.sigmoid(given)
        self.logits = given if logits is not None else weft.log(given) - weft.log1p(-given)
        self.batch_shape = tuple(given.shape)


class Geometric(_OfTries):
    """How many tries fail before one succeeds, from 0 on."""

    def __init__(self, probs: _Any = None, logits: _Any = None) -> None:
        self._take(probs, logits)

    mean = property(lambda self: 1 / self.probs - 1, doc="The mean.")
    variance = property(lambda self: (1 / self.probs - 1) / self.probs, doc="The variance.")

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Counts in the parameters' type."""
        p = _plain(self.probs)
        return weft.floor(weft.log(_uniform(self, sample_shape, p)) / weft.log1p(-p))

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the probability of a count."""
        k = _of_counts(value, self.probs)
        return k * weft.log1p(-self.probs) + weft.log(self.probs)

    def entropy(self) -> _Any:
        """The entropy."""
        p = self.probs
        return -((1 - p) * weft.log1p(-p) + p * weft.log(p)) / p


class Binomial(_OfTries):
    """How many of total_count tries succeed."""

    def __init__(self, total_count: int = 1, probs: _Any = None, logits: _Any = None) -> None:
        self._take(probs, logits)
        self.total_count = int(total_count)

    mean = property(lambda self: self.total_count * self.probs, doc="The mean.")
    variance = property(lambda self: self.mean * (1 - self.probs), doc="The variance.")

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Counts in the parameters' type."""
        p = _plain(self.probs)
        shape = self._shape(sample_shape)
        found = weft.random.binomial(self.total_count, weft.broadcast_to(p, shape), shape, device=p.device)  # fmt: skip
        return found.astype(p.dtype)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the probability of a count."""
        k, n, x = _of_counts(value, self.probs), self.total_count, self.logits
        ways = math.lgamma(n + 1) - weft.lgamma(k + 1) - weft.lgamma(n - k + 1)
        return ways + k * x - n * weft.logaddexp(x, 0.0)


class OneHotCategorical(Distribution):
    """A 1 among zeros along the last axis, with probabilities as of Categorical."""

    def __init__(self, probs: _Any = None, logits: _Any = None) -> None:
        self._number = Categorical(probs, logits)
        self.logits, self.batch_shape = self._number.logits, self._number.batch_shape
        self.event_shape = tuple(self.logits.shape)[-1:]

    probs = property(lambda self: self._number.probs, doc="The probabilities.")
    mean = property(lambda self: self.probs, doc="The mean.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="The variance.")

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Zeros and ones of the parameters' type."""
        at = self._number.sample(sample_shape)
        line = weft.arange(self.event_shape[0], device=at.device)
        return (at[..., None] == line).astype(self.logits.dtype)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the probability."""
        return self._number.log_prob(weft.argmax(_plain(value), axis=-1))

    def entropy(self) -> _Any:
        """The entropy."""
        return self._number.entropy()


class MultivariateNormal(Distribution):
    """Normal vectors of a mean and one of covariance_matrix, precision_matrix, scale_tril (Cholesky's factor of the first)."""

    def __init__(
        self, loc: _Any, covariance_matrix: _Any = None, precision_matrix: _Any = None, scale_tril: _Any = None
    ) -> None:  # fmt: skip
        given = [covariance_matrix, precision_matrix, scale_tril]
        if sum(m is not None for m in given) != 1:
            raise _error(
                _core.ArgumentError,
                "distributions.parameter",
                f"MultivariateNormal of {sum(m is not None for m in given)} matrices",
                help="name one of covariance_matrix, precision_matrix, scale_tril",
            )
        (self.loc,) = _values(loc)
        if scale_tril is not None:
            (self.scale_tril,) = _values(scale_tril)
        elif covariance_matrix is not None:
            self.scale_tril = weft.linalg.cholesky(*_values(covariance_matrix))
        else:
            self.scale_tril = weft.linalg.cholesky(weft.linalg.inv(*_values(precision_matrix)))
        n = self.loc.shape[-1]
        self.batch_shape = weft.broadcast_shapes(tuple(self.loc.shape[:-1]), tuple(self.scale_tril.shape[:-2]))  # fmt: skip
        self.event_shape = (n,)

    @property
    def mean(self) -> _Any:
        """The mean."""
        return weft.broadcast_to(self.loc, (*self.batch_shape, *self.event_shape))

    @property
    def covariance_matrix(self) -> _Any:
        """The covariances."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def variance(self) -> _Any:
        """The variances."""
        found = weft.sum(self.scale_tril * self.scale_tril, axis=-1)
        return weft.broadcast_to(found, (*self.batch_shape, *self.event_shape))

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """loc + scale_tril z of standard normal z."""
        shape = (*self._shape(sample_shape), *self.event_shape)
        z = weft.random.normal(shape, device=self.loc.device).astype(self.loc.dtype)
        return self.loc + (self.scale_tril @ z[..., None])[..., 0]

    def _half_log_det(self):
        return weft.sum(weft.log(weft.linalg.diagonal(self.scale_tril)), axis=-1)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        away = (value - self.loc)[..., None]
        low = weft.broadcast_to(self.scale_tril, (*away.shape[:-2], *self.scale_tril.shape[-2:]))
        z = weft.linalg.solve_triangular(low, away, upper=False)[..., 0]
        n = self.event_shape[0]
        return -0.5 * (weft.sum(z * z, axis=-1) + n * math.log(2 * math.pi)) - self._half_log_det()

    def entropy(self) -> _Any:
        """The entropy."""
        n = self.event_shape[0]
        return 0.5 * n * (1 + math.log(2 * math.pi)) + self._half_log_det() + weft.zeros(self.batch_shape)  # fmt: skip


class Independent(Distribution):
    """Another distribution whose last batch axes count as one event: densities are summed over them."""

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int) -> None:
        base, k = base_distribution, reinterpreted_batch_ndims
        if not 0 <= k <= len(base.batch_shape):
            raise _error(
                _core.ArgumentError,
                "distributions.independent",
                f"{k} axes of a batch of shape {base.batch_shape}",
                [f"legal: 0 to {len(base.batch_shape)}"],
            )
        self.base_dist, self.reinterpreted_batch_ndims = base, k
        at = len(base.batch_shape) - k
        self.batch_shape = base.batch_shape[:at]
        self.event_shape = (*base.batch_shape[at:], *base.event_shape)

    mean = property(lambda self: self.base_dist.mean, doc="The mean.")
    variance = property(lambda self: self.base_dist.variance, doc="The variance.")

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """As the other distribution's."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """As the other distribution's."""
        return self.base_dist.rsample(sample_shape)

    def _summed(self, x):
        k = self.reinterpreted_batch_ndims
        return weft.sum(x, axis=tuple(range(-k, 0))) if k else x

    def log_prob(self, value: _Any) -> _Any:
        """The sum of the logarithms of the densities."""
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> _Any:
        """The sum of the entropies."""
        return self._summed(self.base_dist.entropy())


class MixtureSameFamily(Distribution):
    """One of several distributions of a batch's last axis, chosen by a Categorical."""

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution) -> None:  # fmt: skip
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution  # fmt: skip
        self.batch_shape = component_distribution.batch_shape[:-1]
        self.event_shape = component_distribution.event_shape

    def _weights(self):
        p = self.mixture_distribution.probs
        return p.reshape((*p.shape, *(1,) * len(self.event_shape)))

    @property
    def mean(self) -> _Any:
        """The mean."""
        return weft.sum(self._weights() * self.component_distribution.mean, axis=-1 - len(self.event_shape))  # fmt: skip

    @property
    def variance(self) -> _Any:
        """The variance: of the parts and between them."""
        axis, part = -1 - len(self.event_shape), self.component_distribution
        away = part.mean - weft.expand_dims(self.mean, axis=axis)
        return weft.sum(self._weights() * (part.variance + away * away), axis=axis)

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Random values of shape sample_shape + batch_shape + event_shape."""
        k = len(self.event_shape)
        at = _plain(self.mixture_distribution.sample(sample_shape))
        all_of_them = _plain(self.component_distribution.sample(sample_shape))
        at = at.reshape((*at.shape, 1, *(1,) * k))
        shape = (*all_of_them.shape[: all_of_them.ndim - k - 1], 1, *self.event_shape)
        found = weft.take_along_axis(all_of_them, weft.broadcast_to(at, shape), axis=-1 - k)
        return weft.squeeze(found, axis=-1 - k)

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        value = value if hasattr(value, "dtype") else weft.asarray(value)
        each = self.component_distribution.log_prob(weft.expand_dims(value, axis=-1 - len(self.event_shape)))  # fmt: skip
        return weft.logsumexp(each + self.mixture_distribution.logits, axis=-1)


class Transform:
    """An invertible function of each element: transform(x), inv(y), log_abs_det_jacobian(x, y)."""

    def __init__(self) -> None:
        pass

    def __call__(self, x: _Any) -> _Any:
        raise NotImplementedError


class ExpTransform(Transform):
    """exp(x)."""

    def __call__(self, x: _Any) -> _Any:
        return weft.exp(x)

    def inv(self, y: _Any) -> _Any:
        """log(y)."""
        return weft.log(y)

    def log_abs_det_jacobian(self, x: _Any, y: _Any) -> _Any:
        """The logarithm of the derivative's magnitude."""
        return x


class AffineTransform(Transform):
    """loc + scale x."""

    def __init__(self, loc: _Any, scale: _Any) -> None:
        self.loc, self.scale = loc, scale

    def __call__(self, x: _Any) -> _Any:
        return self.loc + self.scale * x

    def inv(self, y: _Any) -> _Any:
        """(y - loc) / scale."""
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: _Any, y: _Any) -> _Any:
        """The logarithm of the derivative's magnitude."""
        return weft.log(weft.abs(weft.ones_like(_plain(x)) * self.scale))


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    def __call__(self, x: _Any) -> _Any:
        return weft.sigmoid(x)

    def inv(self, y: _Any) -> _Any:
        """log(y / (1 - y))."""
        return weft.log(y) - weft.log1p(-y)

    def log_abs_det_jacobian(self, x: _Any, y: _Any) -> _Any:
        """The logarithm of the derivative's magnitude."""
        return -weft.logaddexp(x, 0.0) - weft.logaddexp(-x, 0.0)


class TanhTransform(Transform):
    """The hyperbolic tangent."""

    def __init__(self, cache_size: int = 0) -> None:
        pass

    def __call__(self, x: _Any) -> _Any:
        return weft.tanh(x)

    def inv(self, y: _Any) -> _Any:
        """The inverse hyperbolic tangent."""
        return weft.atanh(y)

    def log_abs_det_jacobian(self, x: _Any, y: _Any) -> _Any:
        """The logarithm of the derivative's magnitude, without cancellation."""
        return 2.0 * (math.log(2.0) - x - weft.logaddexp(-2.0 * x, 0.0))


class TransformedDistribution(Distribution):
    """Values of another distribution after one transform or several."""

    def __init__(self, base_distribution: Distribution, transforms: _Any) -> None:
        self.base_dist = base_distribution
        several = isinstance(transforms, (list, tuple))
        self.transforms = list(transforms) if several else [transforms]
        self.batch_shape = base_distribution.batch_shape
        self.event_shape = base_distribution.event_shape

    def _through(self, x):
        for f in self.transforms:
            x = f(x)
        return x

    def sample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Transformed values, without gradient."""
        with weft.no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: _Sequence[int] = ()) -> _Any:
        """Transformed values whose gradient reaches the parameters."""
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: _Any) -> _Any:
        """The logarithm of the density."""
        total, y = 0.0, value if hasattr(value, "dtype") else weft.asarray(value)
        k = len(self.event_shape)
        for f in reversed(self.transforms):
            x = f.inv(y)
            change = f.log_abs_det_jacobian(x, y)
            total = total - (weft.sum(change, axis=tuple(range(-k, 0))) if k else change)
            y = x
        return self.base_dist.log_prob(y) + total


def _beta_pair(p):
    return Dirichlet(weft.stack([p.concentration1, p.concentration0], axis=-1))


def divergence(p, q):
    """kl_divergence of two of one of these kinds; None for others."""
    kind = type(p)
    if kind is not type(q):
        return None
    if kind is LogNormal:
        return _normal(p, q)
    if kind is Laplace:
        ratio, away = p.scale / q.scale, weft.abs(p.loc - q.loc)
        return -weft.log(ratio) + away / q.scale + ratio * weft.exp(-away / p.scale) - 1
    if kind in (Gamma, Chi2):
        a, b = p.concentration, q.concentration
        first = b * weft.log(p.rate / q.rate) + weft.lgamma(b) - weft.lgamma(a)
        return first + (a - b) * weft.digamma(a) + (q.rate - p.rate) * (a / p.rate)
    if kind is Beta:
        return divergence(_beta_pair(p), _beta_pair(q))
    if kind is Dirichlet:
        a, b = p.concentration, q.concentration
        total = weft.sum(a, axis=-1, keepdims=True)
        terms = (a - b) * (weft.digamma(a) - weft.digamma(total))
        return q._normalizer() - p._normalizer() + weft.sum(terms, axis=-1)
    if kind is Poisson:
        return p.rate * weft.log(p.rate / q.rate) - p.rate + q.rate
    if kind is Geometric:
        return -p.entropy() - weft.log1p(-q.probs) / p.probs - q.logits
    if kind is OneHotCategorical:
        return weft.sum(p.probs * (p.logits - q.logits), axis=-1)
    if kind is MultivariateNormal:
        return _of_vectors(p, q)
    return None


def _normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - weft.log(ratio))


def _of_vectors(p, q):
    solve = weft.linalg.solve_triangular
    root = solve(q.scale_tril, p.scale_tril, upper=False)
    away = solve(q.scale_tril, (p.loc - q.loc)[..., None], upper=False)[..., 0]
    squares = weft.sum(root * root, axis=(-2, -1)) + weft.sum(away * away, axis=-1)
    return q._half_log_det() - p._half_log_det() + 0.5 * (squares - p.event_shape[0])
