# SPDX-License-Identifier: Apache-2.0
"""More distributions of weft.random, and its functions under NumPy's older names. They are loaded on first use."""

from __future__ import annotations

import builtins
import math

import weft

from .._pointwise import composed
from .common import axis_of, plain, refused, value
from .distributions import (
    Generator,
    _keys,
    _open,
    _positive,
    _shape,
    beta,
    chisquare,
    gamma,
    poisson,
    sampled,
)  # noqa: F401
from .draws import (
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    set_rng_state,
)  # noqa: F401


def _normal(size, dtype, device, key):
    return weft.random.normal(size, dtype=dtype, device=device, key=key)


@sampled
def standard_exponential(shape=(), *, dtype=None, device=None, key=None):
    """Waiting times of mean 1."""
    return -weft.log(_open(_shape(shape), dtype, device, key))


@sampled
def standard_gamma(shape_parameter, shape=None, *, dtype=None, device=None, key=None):
    """Gamma numbers of scale 1; the shape parameter above 0."""
    return gamma(shape_parameter, 1.0, shape, dtype=dtype, device=device, key=key)


@sampled
def standard_cauchy(shape=(), *, dtype=None, device=None, key=None):
    """Quotients of two normal numbers."""
    one, two = _keys(key, 2)
    size = _shape(shape)
    return _normal(size, dtype, device, one) / _normal(size, dtype, device, two)


@sampled
def standard_t(df, shape=None, *, dtype=None, device=None, key=None):
    """Student's t of df degrees of freedom, above 0."""
    _positive("standard_t", df=df)
    one, two = _keys(key, 2)
    size = _shape(shape, df)
    x = chisquare(df, size, dtype=dtype, device=device, key=two) / plain(df)
    return _normal(size, dtype, device, one) / weft.sqrt(x)


@sampled
def f(dfnum, dfden, shape=None, *, dtype=None, device=None, key=None):
    """Fisher's F: quotients of two chi-squares over their degrees of freedom, both above 0."""
    _positive("f", dfnum=dfnum, dfden=dfden)
    one, two = _keys(key, 2)
    size = _shape(shape, dfnum, dfden)
    x = chisquare(dfnum, size, dtype=dtype, device=device, key=one) / plain(dfnum)
    return x / (chisquare(dfden, size, dtype=dtype, device=device, key=two) / plain(dfden))


def noncentral_chisquare(df, nonc, shape=None, *, dtype=None, device=None, key=None):
    """Chi-squares of df and twice a Poisson number of mean nonc / 2 degrees of freedom; df above 0, nonc from 0 on."""
    _positive("noncentral_chisquare", df=df)
    one, two = _keys(key, 2)
    size = _shape(shape, df, nonc)
    more = weft.random.poisson(plain(nonc) * 0.5, size, device=device, key=one).astype("float64")
    total = plain(df) + 2.0 * more
    return weft.random.chisquare(total, size, dtype=dtype, device=device, key=two)


def noncentral_f(dfnum, dfden, nonc, shape=None, *, dtype=None, device=None, key=None):
    """Quotients of a noncentral chi-square and a chi-square over their degrees of freedom."""
    one, two = _keys(key, 2)
    size = _shape(shape, dfnum, dfden, nonc)
    x = noncentral_chisquare(dfnum, nonc, size, dtype=dtype, device=device, key=one) / plain(dfnum)
    return x / (chisquare(dfden, size, dtype=dtype, device=device, key=two) / plain(dfden))


@sampled
def pareto(a, shape=None, *, dtype=None, device=None, key=None):
    """Pareto II (Lomax) numbers: exp(waiting time / a) - 1; a above 0."""
    _positive("pareto", a=a)
    return weft.expm1(standard_exponential(_shape(shape, a), dtype=dtype, device=device, key=key) / plain(a))  # fmt: skip


@sampled
def power(a, shape=None, *, dtype=None, device=None, key=None):
    """Numbers in [0, 1] of density a x^(a - 1); a above 0."""
    _positive("power", a=a)
    e = standard_exponential(_shape(shape, a), dtype=dtype, device=device, key=key)
    return weft.pow(-weft.expm1(-e), 1.0 / plain(a).astype(e.dtype))


@sampled
def weibull(a, shape=None, *, dtype=None, device=None, key=None):
    """(waiting time)^(1 / a); a above 0."""
    _positive("weibull", a=a)
    e = standard_exponential(_shape(shape, a), dtype=dtype, device=device, key=key)
    return weft.pow(e, 1.0 / plain(a).astype(e.dtype))


@sampled
def triangular(left, mode, right, shape=None, *, dtype=None, device=None, key=None):
    """Numbers in [left, right] whose density rises to `mode` and falls again."""
    low, peak, high = (plain(v) for v in (left, mode, right))
    if not bool(weft.all((low <= peak) & (peak <= high) & (low < high))):
        raise refused("random.triangular.range", "triangular with ends out of order", "left <= mode <= right, left < right")  # fmt: skip
    u = _open(_shape(shape, low, peak, high), dtype, device, key)
    low, peak, high = (v.astype(u.dtype) for v in (low, peak, high))
    wide = high - low
    rising = u * wide <= peak - low
    a = low + weft.sqrt(u * wide * (peak - low))
    return weft.where(rising, a, high - weft.sqrt((1.0 - u) * wide * (high - peak)))


@sampled
def wald(mean, scale, shape=None, *, dtype=None, device=None, key=None):
    """Inverse Gaussian numbers (Michael, Schucany and Haas); both above 0."""
    _positive("wald", mean=mean, scale=scale)
    one, two = _keys(key, 2)
    size = _shape(shape, mean, scale)
    y = _normal(size, "float64", device, one) ** 2
    m, s = plain(mean).astype("float64"), plain(scale).astype("float64")
    x = m + m * m * y / (2.0 * s) - m / (2.0 * s) * weft.sqrt(4.0 * m * s * y + m * m * y * y)
    u = weft.random.uniform(size, dtype="float64", device=device, key=two)
    x = weft.where(u <= m / (m + x), x, m * m / x)
    return x.astype(dtype or weft.asarray(0.0).dtype)


@sampled
def vonmises(mu, kappa, shape=None, *, dtype=None, device=None, key=None):
    """Angles in [-pi, pi] about mu, concentrated by kappa from 0 on (Best and Fisher)."""
    m, k = plain(mu).astype("float64"), plain(kappa).astype("float64")
    if k.size and not bool(weft.all(k >= 0)):
        raise refused("random.vonmises.range", "vonmises with a negative kappa", "kappa from 0 on")
    size = _shape(shape, m, k)
    kind = dtype or weft.asarray(0.0).dtype
    k = weft.broadcast_to(weft.maximum(k, 1e-6), size)
    tau = 1.0 + weft.sqrt(1.0 + 4.0 * k * k)
    rho = (tau - weft.sqrt(2.0 * tau)) / (2.0 * k)
    r = (1.0 + rho * rho) / (2.0 * rho)
    out, waiting = weft.zeros(size, dtype="float64"), weft.ones(size, dtype="bool")
    while bool(weft.any(waiting)):
        one, two, three, key = _keys(key, 4)
        u = [weft.random.uniform(size, dtype="float64", key=q) for q in (one, two, three)]
        z = weft.cos(math.pi * u[0])
        w = (1.0 + r * z) / (r + z)
        c = k * (r - w)
        v = weft.maximum(u[1], 1e-300)
        fits = (c * (2.0 - c) - v > 0) | (weft.log(weft.maximum(c, 1e-300) / v) + 1.0 - c >= 0)
        angle = weft.where(u[2] < 0.5, -1.0, 1.0) * weft.acos(weft.clip(w, -1.0, 1.0))
        out = weft.where(waiting & fits, angle, out)
        waiting = waiting & ~fits
    turned = out + m
    turned = turned - 2 * math.pi * weft.floor((turned + math.pi) / (2 * math.pi))
    return turned.astype(kind) if device is None else turned.astype(kind).to(device)


def _probability(name, p, one=False):
    p = plain(p).astype("float64")
    if p.size and not bool(weft.all((p > 0) & ((p <= 1) if one else (p < 1)))):
        raise refused(
            f"random.{name}.range", f"{name} with probability {p.tolist()}", "above 0 and below 1"
        )
    return p


@sampled
def logseries(p, shape=None, *, device=None, key=None):
    """Whole numbers k of probability -p^k / (k log(1 - p)); int64 (Kemp)."""
    p = _probability("logseries", p)
    one, two = _keys(key, 2)
    size = _shape(shape, p)
    q = -weft.expm1(weft.log1p(-p) * _open(size, "float64", device, one))
    v = _open(size, "float64", device, two)
    return weft.maximum(weft.floor(1.0 + weft.log(v) / weft.log(q)), 1.0).astype("int64")


@sampled
def negative_binomial(n, p, shape=None, *, device=None, key=None):
    """How many failures there are before n successes of probability p; int64. n above 0."""
    _positive("negative_binomial", n=n)
    p = _probability("negative_binomial", p, True)
    one, two = _keys(key, 2)
    n = plain(n).astype("float64")
    size = _shape(shape, n, p)
    sure = p >= 1
    odds = weft.where(sure, 1.0, (1.0 - p) / p)
    rate = gamma(n, 1.0, size, dtype="float64", device=device, key=one) * odds
    return poisson(
        weft.where(weft.broadcast_to(sure, size), 0.0, rate), size, device=device, key=two
    )


@composed
def _zipf_round(out, waiting, u, v, a, b):
    """Those that wait and whose u and v fit are done."""
    x = weft.floor(weft.pow(u, -1.0 / (a - 1.0)))
    sane = x < 9.0e18
    x = weft.where(sane, x, 1.0)
    t = weft.pow(1.0 + 1.0 / x, a - 1.0)
    fits = sane & (v * x * (t - 1.0) / (b - 1.0) <= t / b)
    return weft.where(waiting & fits, x, out), waiting & ~fits


@sampled
def zipf(a, shape=None, *, device=None, key=None):
    """Whole numbers k of probability in proportion to k^-a; int64, a above 1 (Devroye's rejection)."""
    a = plain(a).astype("float64")
    if a.size and not bool(weft.all(a > 1)):
        raise refused("random.zipf.range", "zipf with an exponent of 1 or less", "a above 1")
    size = _shape(shape, a)
    a = weft.broadcast_to(a, size)
    b = weft.pow(2.0, a - 1.0)
    out, waiting = weft.ones(size, dtype="float64"), weft.ones(size, dtype="bool")
    while bool(weft.any(waiting)):
        one, two, key = _keys(key, 3)
        u = _open(size, "float64", None, one)
        v = weft.random.uniform(size, dtype="float64", key=two)
        out, waiting = _zipf_round(out, waiting, u, v, a, b)
    out = out.astype("int64")
    return out if device is None else out.to(device)


def hypergeometric(ngood, nbad, nsample, shape=None, *, device=None, key=None):
    """How many of nsample things taken from ngood good and nbad bad ones are good; int64."""
    good, bad, take = (plain(v).astype("int64") for v in (ngood, nbad, nsample))
    if not bool(weft.all((good >= 0) & (bad >= 0) & (take >= 0) & (take <= good + bad))):
        raise refused("random.hypergeometric.range", "hypergeometric with more samples than things", "counts from 0 on, nsample at most ngood + nbad")  # fmt: skip
    size = _shape(shape, good, bad, take)
    left = weft.broadcast_to(good, size).astype("float64")
    total = weft.broadcast_to(good + bad, size).astype("float64")
    take = weft.broadcast_to(take, size)
    start = left
    for k in builtins.range(int(weft.max(take)) if take.size else 0):
        one, key = _keys(key, 2)
        u = weft.random.uniform(size, dtype="float64", key=one)
        hit = (u * total < left) & (take > k)
        left = left - hit.astype("float64")
        total = total - 1.0
    out = (start - left).astype("int64")
    return out if device is None else out.to(device)


def multivariate_hypergeometric(colors, nsample, shape=(), *, device=None, key=None):
    """How many things of each color are among nsample ones taken, as the last axis; int64."""
    colors = [int(c) for c in plain(colors).tolist()]
    size, out = _shape(shape), []
    left = weft.full(size, nsample, dtype="int64")
    for k, c in enumerate(colors):
        rest = builtins.sum(colors[k + 1 :])
        one, key = _keys(key, 2)
        got = hypergeometric(c, rest, left, size, key=one) if rest else left
        out.append(got)
        left = left - got
    out = weft.stack(out, axis=-1)
    return out if device is None else out.to(device)


def permuted(x, axis=None, *, key=None):
    """A copy of x with the entries of each line along an axis in an order of its own; of all elements when axis is None."""
    x = value(x)
    if axis is None:
        order = weft.random.permutation(x.size, device=x.device, key=key)
        return weft.take(x.reshape(-1), order, axis=0).reshape(tuple(x.shape))
    axis = axis_of(x, axis)
    u = weft.random.uniform(tuple(x.shape), dtype="float64", device=x.device, key=key)
    return weft.take_along_axis(x, weft.argsort(u, axis=axis), axis=axis)


def bytes(length):
    """Random bytes."""
    words = weft.random.integers(0, 256, (length,), dtype="uint8").tolist()
    return builtins.bytes(words)


def rand(*shape):
    """Uniform numbers in [0, 1): rand(2, 3)."""
    return weft.random.uniform(tuple(shape))


def randn(*shape):
    """Normal numbers of mean 0 and deviation 1: randn(2, 3)."""
    return weft.random.normal(tuple(shape))


def randint(low, high=None, size=(), dtype="int64"):
    """Integers in [low, high), in [0, low) without high."""
    low, high = (0, low) if high is None else (low, high)
    return weft.random.integers(low, high, _shape(size if size is not None else ()), dtype=dtype)


def random_integers(low, high=None, size=()):
    """Integers from low to high, both included; from 1 without high."""
    low, high = (1, low) if high is None else (low, high)
    return randint(low, high + 1, size)


def random(size=None):
    """Uniform numbers in [0, 1)."""
    return weft.random.uniform(_shape(() if size is None else size))


random_sample = ranf = sample = random


def get_state(legacy=True):
    """The place of the default generator: ("Philox", 16 bytes)."""
    return "Philox", get_rng_state()


def set_state(state):
    """Goes to a place that get_state gave."""
    set_rng_state(state[1] if isinstance(state, tuple) else state)


def RandomState(seed=None):
    """A generator with NumPy's older names: RandomState(0).rand(3), .randn, .randint, and those of default_rng."""
    return _Older(_seed(seed))


def _seed(seed):
    import os

    return int.from_bytes(os.urandom(8), "little") if seed is None else int(seed)


def PCG64(seed=None):
    """A seed for weft.random.Generator; numbers come from Philox, whatever the name."""
    return _seed(seed)


Philox = SeedSequence = PCG64


class _Older(Generator):
    """NumPy's RandomState over weft's streams."""

    def rand(self, *shape):
        """Uniform numbers in [0, 1)."""
        return self.random(tuple(shape))

    def randn(self, *shape):
        """Normal numbers."""
        return self.standard_normal(tuple(shape))

    def randint(self, low, high=None, size=(), dtype="int64"):
        """Integers in [low, high), in [0, low) without high."""
        return self.integers(low, high, size or (), dtype)

    def random_sample(self, size=()):
        """Uniform numbers in [0, 1)."""
        return self.random(size)

    def seed(self, seed=None):
        """Restarts the stream."""
        self._go_on_from(weft.random.Stream(_seed(seed)))


OF_GENERATORS = {
    "standard_exponential": 0, "standard_gamma": 1, "standard_cauchy": 0, "standard_t": 1, "f": 2, "noncentral_chisquare": 2,
    "noncentral_f": 3, "pareto": 1, "power": 1, "weibull": 1, "triangular": 3, "wald": 2, "vonmises": 2, "logseries": 1,
    "negative_binomial": 2, "zipf": 1, "hypergeometric": 3, "multivariate_hypergeometric": 2,
}  # fmt: skip
