# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions of random numbers, of the default generator."""

from __future__ import annotations

import weft

from .common import plain, refused, value

__all__ = [
    "bernoulli",
    "manual_seed",
    "multinomial",
    "normal",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
]


def _sizes(size):
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size


def rand(*size, dtype=None, device=None):
    """Uniform numbers in [0, 1)."""
    return weft.random.uniform(_sizes(size), dtype=dtype, device=device)


def randn(*size, dtype=None, device=None):
    """Normal numbers of mean 0 and deviation 1."""
    return weft.random.normal(_sizes(size), dtype=dtype, device=device)


def randint(low, high=None, size=None, *, dtype=None, device=None):
    """Integers in [low, high); randint(high, size) begins at 0."""
    if size is None:
        low, high, size = 0, low, high
    if size is None:
        raise refused("random.randint.size", "randint without a size", "randint(low, high, size) or randint(high, size)")
    return weft.random.integers(low, high, size, dtype=dtype, device=device)


def randperm(n, *, device=None):
    """The numbers below n in random order."""
    return weft.random.permutation(n, device=device)


def rand_like(x):
    """Uniform numbers in [0, 1) with the shape, type and device of x."""
    x = plain(x)
    return weft.random.uniform(tuple(x.shape), dtype=x.dtype, device=x.device)


def randn_like(x):
    """Normal numbers with the shape, type and device of x."""
    x = plain(x)
    return weft.random.normal(tuple(x.shape), dtype=x.dtype, device=x.device)


def normal(mean=0.0, std=1.0, size=None):
    """Normal numbers; the shape is `size`, or that of mean and std."""
    if size is None:
        size = tuple(weft.broadcast_arrays(plain(mean), plain(std))[0].shape)
    return weft.random.normal(size) * plain(std) + plain(mean)


def bernoulli(x):
    """0 or 1, 1 with the probabilities that the elements are, in their type."""
    x = plain(x)
    return (weft.random.uniform(tuple(x.shape), device=x.device) < x).astype(x.dtype)


def poisson(rate):
    """How many events of these means occur, in their type."""
    rate = plain(rate)
    return weft.random.poisson(rate, device=rate.device).astype(rate.dtype)


def multinomial(weights, num_samples, replacement=False):
    """Positions drawn with probabilities in proportion to the weights, of a vector or of each row; int64."""
    weights = value(plain(weights))
    rows = weights.reshape(1, -1) if weights.ndim == 1 else weights
    n = rows.shape[1]
    if not replacement and num_samples > int(weft.min(weft.sum((rows > 0).astype("int64"), axis=1))):
        raise refused("random.multinomial.count", f"{num_samples} samples without replacement", "as many positive weights at least")
    if replacement:
        edges = weft.cumulative_sum(rows.astype("float64"), axis=1)
        u = weft.random.uniform((rows.shape[0], num_samples), dtype="float64", device=rows.device) * edges[:, -1:]
        at = weft.sum((weft.expand_dims(edges, axis=1) <= weft.expand_dims(u, axis=2)).astype("int64"), axis=2)
        at = weft.minimum(at, n - 1)
    else:
        noise = weft.random.gumbel(shape=tuple(rows.shape), dtype="float64", device=rows.device)
        score = weft.log(rows.astype("float64")) + noise
        at = weft.argsort(score, axis=1, descending=True)[:, :num_samples]
    return at.reshape(-1) if weights.ndim == 1 else at


def manual_seed(seed):
    """Restarts the default generator: weft.random.seed."""
    weft.random.seed(seed)
