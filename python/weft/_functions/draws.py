# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions of random numbers, of the default generator."""

from __future__ import annotations

import contextlib
import os

import weft

from .._errors import error as _error
from .. import _core
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


class Generator:
    """A stream of random numbers of its own, for generator=: weft.Generator().manual_seed(0)."""

    def __init__(self, device="cpu"):
        self.device = weft.device(device) if isinstance(device, str) else device
        self._key = weft.random.Stream(67280421310721)

    def _next(self):
        return self._key

    def manual_seed(self, seed):
        """Restarts the stream of a seed; gives the generator."""
        self._key = weft.random.Stream(int(seed))
        return self

    def seed(self):
        """Restarts the stream from chance; gives the seed."""
        seed = int.from_bytes(os.urandom(8), "little") >> 1
        self.manual_seed(seed)
        return seed

    def initial_seed(self):
        """The seed that the stream is at."""
        return self._key.seed

    def get_state(self):
        """The place in the stream: 16 bytes, as an array of uint8."""
        return _state_bytes(self._key.seed, self._key.offset)

    def set_state(self, state):
        """Goes to a place that get_state gave; gives the generator."""
        self._key = weft.random.Stream(*_state_words(state))
        return self


class _Default(Generator):
    """The stream of weft.random's functions without a key."""

    def __init__(self):
        super().__init__()

    def _next(self):
        return None

    def manual_seed(self, seed):
        weft.random.seed(int(seed))
        return self

    def initial_seed(self):
        return weft.random._state["key"]

    def get_state(self):
        state = dict(weft.random._state)  # at one moment
        return _state_bytes(state["key"], state["offset"])

    def set_state(self, state):
        seed, offset = _state_words(state)
        weft.random._state.update(key=seed, offset=offset)
        return self


def _state_bytes(seed, offset):
    raw = seed.to_bytes(8, "little") + (offset % 2**64).to_bytes(8, "little")
    return weft.asarray(list(raw), dtype="uint8")


def _state_words(state):
    raw = plain(state)
    if raw.dtype != weft.uint8 or tuple(raw.shape) != (16,):
        raise _error(
            _core.ArgumentError,
            "random.state",
            f"a state of {raw.dtype} {tuple(raw.shape)}",
            ["rule: what get_state or get_rng_state gave, 16 bytes"],
        )
    raw = bytes(raw.tolist())
    return int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:], "little")


default_generator = _Default()


def get_rng_state():
    """The place in the stream of the default generator: 16 bytes, as an array of uint8."""
    return default_generator.get_state()


def set_rng_state(state):
    """Goes to a place that get_rng_state gave."""
    default_generator.set_state(state)


def initial_seed():
    """The seed of the default generator."""
    return default_generator.initial_seed()


@contextlib.contextmanager
def _forked(enabled):
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def fork_rng(devices=None, enabled=True):
    """with weft.fork_rng(): ... the default generator is where it was before afterwards."""
    return _forked(enabled)


def _key(generator):
    return None if generator is None else generator._next()


def _made(x, requires_grad):
    return weft.Tensor(x) if requires_grad else x


def _sizes(size):
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size


def rand(*size, dtype=None, device=None, generator=None, requires_grad=False):
    """Uniform numbers in [0, 1)."""
    key = _key(generator)
    return _made(
        weft.random.uniform(_sizes(size), dtype=dtype, device=device, key=key), requires_grad
    )


def randn(*size, dtype=None, device=None, generator=None, requires_grad=False):
    """Normal numbers of mean 0 and deviation 1."""
    key = _key(generator)
    return _made(
        weft.random.normal(_sizes(size), dtype=dtype, device=device, key=key), requires_grad
    )


def randint(low, high=None, size=None, *, dtype=None, device=None, generator=None):
    """Integers in [low, high); randint(high, size) begins at 0."""
    if size is None:
        low, high, size = 0, low, high
    if size is None:
        raise refused(
            "random.randint.size",
            "randint without a size",
            "randint(low, high, size) or randint(high, size)",
        )
    return weft.random.integers(low, high, size, dtype=dtype, device=device, key=_key(generator))


def randperm(n, *, device=None, generator=None):
    """The numbers below n in random order."""
    return weft.random.permutation(n, device=device, key=_key(generator))


def rand_like(x, *, dtype=None, device=None):
    """Uniform numbers in [0, 1) with the shape, type and device of x."""
    x = plain(x)
    return weft.random.uniform(tuple(x.shape), dtype=dtype or x.dtype, device=device or x.device)


def randn_like(x, *, dtype=None, device=None):
    """Normal numbers with the shape, type and device of x."""
    x = plain(x)
    return weft.random.normal(tuple(x.shape), dtype=dtype or x.dtype, device=device or x.device)


def normal(mean=0.0, std=1.0, size=None, *, generator=None):
    """Normal numbers; the shape is `size`, or that of mean and std."""
    if size is None:
        size = tuple(weft.broadcast_arrays(plain(mean), plain(std))[0].shape)
    return weft.random.normal(size, key=_key(generator)) * plain(std) + plain(mean)


def bernoulli(x, p=None, *, generator=None):
    """0 or 1 in the elements' type, 1 with the probabilities that the elements are, or with p."""
    x = plain(x)
    u = weft.random.uniform(tuple(x.shape), device=x.device, key=_key(generator))
    return (u < (x if p is None else plain(p))).astype(x.dtype)


def poisson(rate):
    """How many events of these means occur, in their type."""
    rate = plain(rate)
    return weft.random.poisson(rate, device=rate.device).astype(rate.dtype)


def multinomial(weights, num_samples, replacement=False, *, generator=None):
    """Positions drawn with probabilities in proportion to the weights, of a vector or of each row; int64."""
    weights = value(plain(weights))
    rows = weights.reshape(1, -1) if weights.ndim == 1 else weights
    key = _key(generator)
    n = rows.shape[1]
    if not replacement and num_samples > int(
        weft.min(weft.sum((rows > 0).astype("int64"), axis=1))
    ):
        raise refused(
            "random.multinomial.count",
            f"{num_samples} samples without replacement",
            "as many positive weights at least",
        )
    if replacement:
        edges = weft.cumulative_sum(rows.astype("float64"), axis=1)
        u = (
            weft.random.uniform(
                (rows.shape[0], num_samples), dtype="float64", device=rows.device, key=key
            )
            * edges[:, -1:]
        )
        at = weft.sum(
            (weft.expand_dims(edges, axis=1) <= weft.expand_dims(u, axis=2)).astype("int64"), axis=2
        )
        at = weft.minimum(at, n - 1)
    else:
        noise = weft.random.gumbel(
            shape=tuple(rows.shape), dtype="float64", device=rows.device, key=key
        )
        score = weft.log(rows.astype("float64")) + noise
        at = weft.argsort(score, axis=1, descending=True)[:, :num_samples]
    return at.reshape(-1) if weights.ndim == 1 else at


def manual_seed(seed):
    """Restarts the default generator, as weft.random.seed; gives weft.default_generator."""
    return default_generator.manual_seed(seed)
