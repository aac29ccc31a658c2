# SPDX-License-Identifier: Apache-2.0
"""Distributions of weft.random that are made of its uniform and normal numbers, and a generator in NumPy's manner."""

from __future__ import annotations

import functools
import math
import os

import weft

from .. import _core
from .._boundary import direct
from .._held_state import captured
from .._pointwise import composed
from .common import plain, refused, value

__all__ = [
    "beta",
    "binomial",
    "chisquare",
    "default_rng",
    "dirichlet",
    "exponential",
    "gamma",
    "geometric",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "multinomial",
    "multivariate_normal",
    "poisson",
    "rayleigh",
    "shuffle",
    "standard_normal",
]


def sampled(function):
    """A distribution that hosts draw in one pass; its body is for machines that are none."""
    return direct(_core._direct_random(function.__name__, vars(weft.random), captured))(function)


def _shape(shape, *parameters):
    """The shape asked for, or the one of the parameters."""
    if shape is not None:
        return (shape,) if isinstance(shape, int) else tuple(shape)
    out = weft.broadcast_arrays(*map(plain, parameters)) if parameters else ()
    return tuple(out[0].shape) if out else ()


def _open(shape, dtype, device, key):
    """Uniform numbers in (0, 1]."""
    return 1.0 - weft.random.uniform(shape, dtype=dtype, device=device, key=key)


def _number(x):
    """A parameter: the array of a value, but numbers as they are, which take the type of what they meet."""
    return x if type(x) in (int, float) else plain(x)


def _positive(name, **numbers):
    for what, x in numbers.items():
        x = _number(x)
        fits = x > 0
        if not (fits if type(x) in (int, float) else not x.size or bool(weft.all(fits))):
            raise refused(
                f"random.{name}.range",
                f"{name} with a {what} that is not positive",
                f"{what} above 0",
            )


def _keys(key, n):
    return [None] * n if key is None else weft.random.split(key, n)


def standard_normal(shape=(), *, dtype=None, device=None, key=None):
    """Normal numbers of mean 0 and deviation 1."""
    return weft.random.normal(shape, dtype=dtype, device=device, key=key)


@sampled
def exponential(scale=1.0, shape=None, *, dtype=None, device=None, key=None):
    """Waiting times of this mean."""
    _positive("exponential", scale=scale)
    return -weft.log(_open(_shape(shape, scale), dtype, device, key)) * _number(scale)


@sampled
def laplace(loc=0.0, scale=1.0, shape=None, *, dtype=None, device=None, key=None):
    """Differences of two waiting times of mean `scale`, about loc."""
    _positive("laplace", scale=scale)
    u = _open(_shape(shape, loc, scale), dtype, device, key) - 0.5
    return _number(loc) - _number(scale) * weft.sign(u) * weft.log1p(
        -2.0 * weft.minimum(weft.abs(u), 0.49999997)
    )


@sampled
def gumbel(loc=0.0, scale=1.0, shape=None, *, dtype=None, device=None, key=None):
    """Largest values: loc - scale * log(waiting time)."""
    _positive("gumbel", scale=scale)
    u = weft.minimum(_open(_shape(shape, loc, scale), dtype, device, key), 0.99999994)
    return _number(loc) - _number(scale) * weft.log(-weft.log(u))


@sampled
def logistic(loc=0.0, scale=1.0, shape=None, *, dtype=None, device=None, key=None):
    """loc + scale * log(u / (1 - u))."""
    _positive("logistic", scale=scale)
    u = weft.minimum(_open(_shape(shape, loc, scale), dtype, device, key), 0.99999994)
    return _number(loc) + _number(scale) * (weft.log(u) - weft.log1p(-u))


@sampled
def lognormal(mean=0.0, sigma=1.0, shape=None, *, dtype=None, device=None, key=None):
    """exp of normal numbers."""
    return weft.exp(
        weft.random.normal(_shape(shape, mean, sigma), dtype=dtype, device=device, key=key)
        * _number(sigma)
        + _number(mean)
    )


@sampled
def rayleigh(scale=1.0, shape=None, *, dtype=None, device=None, key=None):
    """Lengths of two normal numbers of this deviation."""
    _positive("rayleigh", scale=scale)
    return _number(scale) * weft.sqrt(
        -2.0 * weft.log(_open(_shape(shape, scale), dtype, device, key))
    )


@sampled
def geometric(p, shape=None, *, device=None, key=None):
    """How many tries a success of probability p takes, from 1 on; int64."""
    _positive("geometric", p=p)
    u = _open(_shape(shape, p), "float64", device, key)
    if type(p) in (int, float):
        rate = 1.0 / math.log1p(-min(p, 1 - 1e-16))
    else:
        rate = 1.0 / weft.log1p(-weft.minimum(plain(p).astype("float64"), 1 - 1e-16))
    return weft.maximum(weft.ceil(weft.log(u) * rate), 1.0).astype("int64")


@composed
def _gamma_round(out, waiting, x, u, c, d):
    """Those that wait and whose x and u fit are done."""
    v = (1.0 + c * x) ** 3
    fits = (v > 0) & (
        weft.log(u) < 0.5 * x * x + d * (1.0 - v + weft.log(weft.where(v > 0, v, 1.0)))
    )
    return weft.where(waiting & fits, d * v, out), waiting & ~fits


@sampled
def gamma(shape_parameter, scale=1.0, shape=None, *, dtype=None, device=None, key=None):
    """Gamma numbers by Marsaglia and Tsang's method: the shape parameter above 0, times scale."""
    _positive("gamma", shape=shape_parameter, scale=scale)
    size = _shape(shape, shape_parameter, scale)
    dtype = dtype or weft.asarray(0.0).dtype
    a = weft.broadcast_to(
        plain(shape_parameter).astype(dtype).to(weft.device(device or "cpu")), size
    )
    small = a < 1
    lifted = weft.where(small, a + 1.0, a)
    d = lifted - 1.0 / 3.0
    c = 1.0 / weft.sqrt(9.0 * d)
    out, waiting = (
        weft.zeros(size, dtype=dtype, device=device),
        weft.ones(size, dtype="bool", device=device),
    )
    while bool(weft.any(waiting)):
        one, two, key = _keys(key, 3)
        x = weft.random.normal(size, dtype=dtype, device=device, key=one)
        u = _open(size, dtype, device, two)
        out, waiting = _gamma_round(out, waiting, x, u, c, d)
    one = _keys(key, 2)[0]
    boost = weft.exp(weft.log(_open(size, dtype, device, one)) / a)
    return weft.where(small, out * boost, out) * plain(scale).astype(dtype)


@sampled
def chisquare(df, shape=None, *, dtype=None, device=None, key=None):
    """Sums of squares of df normal numbers; df above 0."""
    return gamma(plain(df) / 2.0, 2.0, shape, dtype=dtype, device=device, key=key)


@sampled
def beta(a, b, shape=None, *, dtype=None, device=None, key=None):
    """x / (x + y) of gamma numbers of a and b."""
    one, two = _keys(key, 2)
    size = _shape(shape, a, b)
    x = gamma(a, 1.0, size, dtype=dtype, device=device, key=one)
    return x / (x + gamma(b, 1.0, size, dtype=dtype, device=device, key=two))


def dirichlet(alpha, shape=(), *, dtype=None, device=None, key=None):
    """Parts of 1, one for each entry of alpha (all above 0), as the last axis."""
    alpha = plain(alpha)
    size = _shape(() if shape is None else shape) + tuple(alpha.shape)
    x = weft.random.gamma(
        weft.broadcast_to(alpha, size), 1.0, size, dtype=dtype, device=device, key=key
    )
    return x / weft.sum(x, axis=-1, keepdims=True)


@sampled
def poisson(lam=1.0, shape=None, *, device=None, key=None):
    """How many events of mean lam occur; int64. Below 10 by inversion, above by transformed rejection (Hörmann's PTRS)."""
    lam_ = plain(lam).astype("float64")
    if lam_.size and not bool(weft.all(lam_ >= 0)):
        raise refused("random.poisson.range", "poisson with a negative mean", "lam of 0 and more")
    size = _shape(shape, lam_)
    lam_ = weft.broadcast_to(lam_.to(weft.device(device or "cpu")), size)
    one, key = _keys(key, 2)
    low = weft.where(lam_ < 10, lam_, 0.0)
    u = weft.random.uniform(size, dtype="float64", device=device, key=one)
    term = weft.exp(-low)
    total, count = term, weft.zeros(size, dtype="float64", device=device)
    k = 0
    while k < 200 and bool(weft.any(u >= total)):
        k += 1
        count = weft.where(u >= total, float(k), count)
        term = term * low / float(k)
        total = total + term
    high = lam_ >= 10
    mean = weft.where(high, lam_, 10.0)
    b = 0.931 + 2.53 * weft.sqrt(mean)
    a = -0.059 + 0.02483 * b
    alpha, limit = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)
    waiting = high
    while bool(weft.any(waiting)):
        one, two, key = _keys(key, 3)
        u = weft.random.uniform(size, dtype="float64", device=device, key=one) - 0.5
        v = _open(size, "float64", device, two)
        us = 0.5 - weft.abs(u)
        near = weft.where(us > 0, us, 1.0)
        k = weft.floor((2.0 * a / near + b) * u + mean + 0.43)
        legal = (k >= 0) & (us > 0) & ~((us < 0.013) & (v > us))
        kept = weft.where(legal, k, 0.0)
        exact = weft.log(v * alpha / (a / (near * near) + b)) <= kept * weft.log(
            mean
        ) - mean - weft.lgamma(kept + 1.0)
        fits = ((us >= 0.07) & (v <= limit) & (k >= 0)) | (legal & exact)
        count = weft.where(waiting & fits, k, count)
        waiting = waiting & ~fits
    return count.astype("int64")


@sampled
def binomial(n, p, shape=None, *, device=None, key=None):
    """How many of n tries (one number) succeed with probability p; int64."""
    n = int(n)
    p = plain(p)
    if n < 0 or p.size and not bool(weft.all((p >= 0) & (p <= 1))):
        raise refused(
            "random.binomial.range",
            f"binomial of {n} tries",
            "tries of 0 and more, probabilities from 0 to 1",
        )
    size = _shape(shape, p)
    out = weft.zeros(size, dtype="int64", device=device)
    for start in range(0, n, 64):
        one, key = _keys(key, 2)
        draws = weft.random.uniform((min(64, n - start), *size), device=device, key=one)
        out = out + weft.sum((draws < p).astype("int64"), axis=0)
    return out


def multinomial(n, pvals, shape=(), *, device=None, key=None):
    """How often each of the outcomes with these probabilities occurs in n tries, as the last axis; int64."""
    odds = list(pvals) if isinstance(pvals, (list, tuple)) else plain(pvals).tolist()
    total = math.fsum(odds)
    if abs(total - 1) > 1e-5:
        raise refused(
            "random.multinomial.sum", f"probabilities that add up to {total}", "their sum is 1"
        )
    size, count = _shape(() if shape is None else shape), len(odds)
    if weft.random._devices_of(device)[0].host_accessible:
        return _by_binomials(n, odds, size, device, key)
    edges = weft.cumulative_sum(weft.asarray(odds, dtype="float64"), axis=0)
    u = weft.random.uniform((*size, n), dtype="float64", device=device, key=key)
    at = (
        weft.searchsorted(edges.to(u.device), u.reshape(-1), side="right")
        .astype("int64")
        .reshape(tuple(u.shape))
    )
    at = weft.minimum(at, count - 1)
    hits = [weft.sum((at == k).astype("int64"), axis=-1) for k in range(count)]
    return weft.stack(hits, axis=-1)


def _by_binomials(n, odds, size, device, key):
    """Of the tries that earlier outcomes leave, each outcome takes a binomial number."""
    left, rest, out = n, 1.0, []
    keys = _keys(key, len(odds))
    for p, one in zip(odds[:-1], keys):
        hits = weft.random.binomial(
            left, min(p / rest, 1.0) if rest > 0 else 0.0, size, device=device, key=one
        )
        left, rest = left - hits, rest - p
        out.append(hits)
    out.append(left if out else weft.full(size, n, dtype="int64", device=device))
    return weft.stack(out, axis=-1)


def multivariate_normal(mean, cov, shape=(), *, dtype=None, device=None, key=None):
    """Normal vectors of a mean (n,) and covariances (n, n), as the last axis."""
    mean, root = plain(mean), weft.linalg.cholesky(plain(cov))
    x = weft.random.normal(
        (*_shape(() if shape is None else shape), mean.shape[0]),
        dtype=dtype or root.dtype,
        device=device,
        key=key,
    )
    return x @ root.mT.to(x.device) + mean.to(x.device)


def shuffle(x, *, key=None):
    """The entries along the first axis in another order; x itself, an array, changes."""
    order = weft.random.permutation(x.shape[0], device=x.device, key=key)
    x[...] = weft.take(x, order, axis=0)


def _seed_of(seed):
    """One number of what NumPy takes as a seed: a number, several numbers, None for chance."""
    if seed is None:
        return int.from_bytes(os.urandom(8), "little")
    if isinstance(seed, (list, tuple)):
        out = 0
        for s in seed:
            out = (out * 1000003 + int(s) + 1) & (2**64 - 1)
        return out
    return int(seed)


def _size(size):
    return () if size is None else size


class Generator:
    """Random numbers in NumPy's manner (`size` comes last), from a key of its own. Made by default_rng(seed)."""

    def __init__(self, seed):
        self._go_on_from(weft.random.Stream(_seed_of(seed)))

    def _go_on_from(self, stream):
        """Takes a stream; plain calls draw from it in the core."""
        self.__dict__.clear()
        self._key = stream
        for name in ("random", "uniform", "normal", "standard_normal", "integers"):
            self._add(name, getattr(self, name))

    def _add(self, name, method):
        core = _core._direct_random(name, self._key.state, None)
        if core is not None:
            called = _core.PublicFunction(method, core, None, None, None, -1)
            method = functools.update_wrapper(called, method)
        self.__dict__[name] = method

    def __getstate__(self):
        return self._key.seed, self._key.offset

    def __setstate__(self, state):
        self._go_on_from(weft.random.Stream(*state))

    def _next(self):
        return self._key

    def random(self, size=(), dtype=None):
        """Uniform numbers in [0, 1)."""
        return weft.random.uniform(_size(size), dtype=dtype, key=self._next())

    def uniform(self, low=0.0, high=1.0, size=()):
        """Uniform numbers in [low, high)."""
        return weft.random.uniform(_size(size), low, high, key=self._next())

    def normal(self, loc=0.0, scale=1.0, size=()):
        """Normal numbers."""
        return weft.random.normal(_size(size), loc, scale, key=self._next())

    def standard_normal(self, size=(), dtype=None):
        """Normal numbers of mean 0 and deviation 1."""
        return weft.random.normal(_size(size), dtype=dtype, key=self._next())

    def integers(self, low, high=None, size=(), dtype="int64", endpoint=False):
        """Integers in [low, high), in [0, low) without high; with endpoint up to high itself."""
        low, high = (0, low) if high is None else (low, high)
        return weft.random.integers(
            low,
            high + 1 if endpoint else high,
            _size(size),
            dtype=None if dtype == "int64" else dtype,
            key=self._next(),
        )

    def permutation(self, x):
        """The numbers below x, or x's entries, in another order."""
        if isinstance(x, int):
            return weft.random.permutation(x, key=self._next())
        x = value(x)
        return weft.take(
            x, weft.random.permutation(x.shape[0], device=x.device, key=self._next()), axis=0
        )

    def choice(self, a, size=(), replace=True, p=None):
        """Entries of a (or numbers below it), with these probabilities; without replacement each at most once."""
        if not isinstance(a, int) and getattr(a, "ndim", 1) == 0:
            a = int(a)
        n = a if isinstance(a, int) else value(a).shape[0]
        size = (size,) if isinstance(size, int) else tuple(size or ())
        count = math.prod(size)
        if p is None and replace:
            at = weft.random.integers(0, n, (count,), key=self._next())
        elif p is None:
            at = weft.random._without_repeats(n, count, self._next())
        elif replace:
            edges = weft.cumulative_sum(plain(p).astype("float64"), axis=0)
            u = weft.random.uniform((count,), dtype="float64", key=self._next())
            at = weft.minimum(weft.searchsorted(edges, u, side="right").astype("int64"), n - 1)
        else:
            order = weft.log(plain(p).astype("float64")) + gumbel(
                shape=(n,), dtype="float64", key=self._next()
            )
            at = weft.flip(weft.argsort(order), axis=0)[:count]
        if not replace and count > n:
            raise refused(
                "random.choice.count", f"{count} of {n} without replacement", f"{n} at most"
            )
        at = at.reshape(size)
        return (
            at
            if isinstance(a, int)
            else weft.take(value(a), at.reshape(-1), axis=0).reshape(
                size + tuple(value(a).shape[1:])
            )
        )

    def shuffle(self, x):
        """The entries along the first axis in another order; x itself changes."""
        shuffle(x, key=self._next())

    def permuted(self, x, axis=None):
        """A copy of x with the entries of each line along an axis in an order of its own."""
        return weft.random.permuted(x, axis, key=self._next())

    def bytes(self, length):
        """Random bytes."""
        return bytes(self.integers(0, 256, (length,), dtype="uint8").tolist())

    @property
    def bit_generator(self):
        """Itself: the generator is its own source of bits."""
        return self

    def spawn(self, n):
        """n generators whose streams are unrelated to each other's and to this one's."""
        keys = weft.random.split(self._key, n)
        out = [type(self)(0) for _ in keys]
        for generator, key in zip(out, keys):
            generator._go_on_from(weft.random.Stream(key.seed))
        return out

    def __getattr__(self, name):
        """Distributions, made for this generator on first use."""
        from .samplers import OF_GENERATORS

        count = {**_OF_GENERATORS, **OF_GENERATORS}.get(name)
        if count is None:
            raise AttributeError(f"'Generator' object has no attribute {name!r}")
        self._add(name, _with_size(self, name, count))
        return self.__dict__[name]

    def __dir__(self):
        """Distributions that are made on first use, too."""
        from .samplers import OF_GENERATORS

        return sorted({*super().__dir__(), *_OF_GENERATORS, *OF_GENERATORS})


#: Distributions of generators and how many parameters they have; OF_GENERATORS of samplers.py has more.
_OF_GENERATORS = {
    "exponential": 1, "laplace": 2, "gumbel": 2, "logistic": 2, "lognormal": 2, "rayleigh": 1, "geometric": 1, "gamma": 2, "chisquare": 1,
    "beta": 2, "poisson": 1, "binomial": 2, "multinomial": 2, "dirichlet": 1, "multivariate_normal": 2,
}  # fmt: skip


def _with_size(generator, name, count):
    def method(*args, size=None, **kwargs):
        if len(args) > count:
            *args, size = args
        if "shape" in kwargs:  # NumPy's name of gamma's parameter
            args = (kwargs.pop("shape"), *args)
        return getattr(weft.random, name)(
            *args, **kwargs, shape=() if size is None and not args else size, key=generator._next()
        )

    method.__name__ = name
    method.__doc__ = getattr(weft.random, name).__doc__
    return method


def default_rng(seed=None):
    """A generator in NumPy's manner: default_rng(seed).normal(loc, scale, size); without a seed from chance."""
    return seed if isinstance(seed, Generator) else Generator(seed)
