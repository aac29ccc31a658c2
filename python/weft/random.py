# SPDX-License-Identifier: Apache-2.0
"""Random numbers from Philox 4x32-10: counter-based, the same stream on every device.

Devices with a grid (cuda, opencl) make the numbers themselves. Equal keys give equal integers and uniform numbers
everywhere; normal numbers differ in the last bits of a device's logarithm.

`key(seed)` makes an explicit key; every function takes `key=` and then depends on it alone. Without a key the
module's default generator, set by `seed(n)`, is used and advanced.
"""

from __future__ import annotations

import math
import operator
import os

from . import _core
from ._boundary import direct as _direct
from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from ._errors import error as _error
from ._held_state import captured as _captured

# Calls of the core read and advance it while they hold the interpreter's lock.
_state = {"key": int.from_bytes(os.urandom(8), "little"), "offset": 0}


class Key:
    """A position in the stream of one seed."""

    __slots__ = ("seed", "offset")
    state = None  # of a stream that goes on: its place

    def __init__(self, seed: int, offset: int = 0):
        self.seed, self.offset = seed & (2**64 - 1), offset & (2**64 - 1)

    def __repr__(self):
        return f"weft.random.Key({self.seed}, {self.offset})"

    def split(self, n: int = 2) -> list[Key]:
        """n keys whose streams are unrelated to each other's and to this one's."""
        words = _core._random_bits(
            self.seed, (self.offset ^ (1 << 63)) & (2**64 - 1), 2 * n, "cpu"
        ).tolist()
        return [Key(words[2 * i] | (words[2 * i + 1] << 32)) for i in range(n)]

    def take(self, count: int) -> tuple[int, int]:
        """(seed, first counter) of `count` words of 32 bits, four to a counter."""
        return self.seed, self.offset


class Stream(Key):
    """A stream that goes on with each draw, as the default generator does: the `key=` of a generator's draws."""

    __slots__ = ("state",)

    def __init__(self, seed: int, offset: int = 0):
        self.state = {"key": seed & (2**64 - 1), "offset": offset & (2**64 - 1)}

    seed = property(lambda self: self.state["key"])
    offset = property(lambda self: self.state["offset"])

    def take(self, count: int) -> tuple[int, int]:
        return _core._random_next(self.state, count)

    def split(self, n: int = 2) -> list[Key]:
        return Key(*self.take(4)).split(n)


def key(seed: int) -> Key:
    """A key for explicit use."""
    return Key(seed)


def split(key: Key, n: int = 2) -> list[Key]:
    """n independent keys."""
    return key.split(n)


def seed(value: int | None = None) -> None:
    """Restarts the default generator; without a number from chance."""
    value = int.from_bytes(os.urandom(8), "little") if value is None else value
    _state.update(key=value & (2**64 - 1), offset=0)


def _take(count, key):
    """(seed, first counter) for `count` 32-bit words, four to a counter."""
    if type(count) is not int:
        count = operator.index(count)  # of another type it would stay in the generator's state
    if key is not None:
        return key.take(count)
    if _captured():
        raise _error(
            "value",
            "random.capture",
            "random numbers without a key inside a captured function",
            ["every replay would give the same numbers"],
            help="draw them outside and pass them as an argument",
        )
    return _core._random_next(_state, count)


def _going_on(key):
    """The state that a draw advances, if that is all that it needs: the default generator's, a stream's."""
    return key.state if key is not None else None if _captured() else _state


def _size(shape, *numbers):
    """The shape and its size; `numbers` are what a user of NumPy may have given in the shape's place."""
    for number in numbers:
        if type(number) is not float and isinstance(number, (tuple, list)):
            raise _error(
                _core.DTypeError,
                "random.shape.place",
                f"a number is expected, got {_core.shown(number)}",
                help="the shape comes first here: weft.random.normal((2, 3), mean, std)",
            )
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if shape and min(shape) < 0:
        raise _error(
            _core.ArgumentError,
            "array.shape.negative",
            f"negative extent {min(shape)} in shape {shape}",
            help="give extents from 0 on",
        )
    return shape, math.prod(shape)


_ZERO = float("0")  # the default itself, which a number that is given never is


def _not_numpys(name, shape, first, second):
    """normal(0, 1, 10) is NumPy's order; a shape of 0 with numbers behind it would be an empty array in silence."""
    if (
        type(shape) is int
        and shape == 0
        and first is not _ZERO
        and not isinstance(second, (tuple, list))
    ):
        raise _error(
            _core.DTypeError,
            "random.shape.place",
            f"{name} of shape 0 with numbers behind it",
            ["legal: the shape first, or size= by name with the numbers first, as in NumPy"],
            help=f"weft.random.{name}(10, 0, 1), or weft.random.{name}(0, 1, size=10)",
        )


def _size_last(size, given, low, high):
    """(shape, first, second number) of a call with NumPy's size=: its numbers stand where the shape and the first stand here."""
    first, second, rest = given
    if first == ():
        return size, second, rest
    return size, first, high if second is low else second


@_direct(_core._direct_random("uniform", globals(), _captured))
def uniform(shape=(), low=_ZERO, high=1.0, *, dtype=None, device=None, key=None, size=None):
    """Uniform in [low, high). With size= the numbers come first, as in NumPy: uniform(low, high, size=(2, 3))."""
    if size is not None:
        shape, low, high = _size_last(size, (shape, low, high), _ZERO, 1.0)
    else:
        _not_numpys("uniform", shape, low, high)
    if (state := _going_on(key)) is not None:
        x = _core._random_draw(False, state, shape, low, high, dtype, device)
        if x is not None:
            return x
    shape, n = _size(shape, low, high)
    wide = dtype is not None and _core.dtype(dtype).name == "float64"
    s, offset = _take(2 * n if wide else n, key)
    x = _core._random_uniform(s, offset, shape, wide, device)
    if high != 1.0 or low != 0.0:
        x = x * (high - low) + low
    return x if dtype is None else x.astype(dtype, copy=False)


@_direct(_core._direct_random("normal", globals(), _captured))
def normal(
    shape=(),
    mean=_ZERO,
    std=1.0,
    *,
    dtype=None,
    device=None,
    key=None,
    size=None,
    loc=None,
    scale=None,
):
    """Normal (Gaussian). With size= the numbers come first, as in NumPy: normal(loc, scale, size=(2, 3))."""
    if size is not None:
        shape, mean, std = _size_last(size, (shape, mean, std), _ZERO, 1.0)
    else:
        _not_numpys("normal", shape, mean, std)
    mean, std = mean if loc is None else loc, std if scale is None else scale
    if (state := _going_on(key)) is not None:
        x = _core._random_draw(True, state, shape, mean, std, dtype, device)
        if x is not None:
            return x
    shape, n = _size(shape, mean, std)
    wide = dtype is not None and _core.dtype(dtype).name == "float64"
    s, offset = _take(4 * ((n + 1) // 2) if wide else 2 * ((n + 1) // 2), key)
    x = _core._random_normal(s, offset, shape, wide, device)
    if std != 1.0:
        x = x * std
    if mean != 0.0:
        x = x + mean
    return x if dtype is None else x.astype(dtype, copy=False)


def integers(low, high=None, shape=(), *, dtype=None, device=None, key=None, size=None):
    """Integers in [low, high), in [0, low) without high; size= is NumPy's name of the shape."""
    shape = shape if size is None else size
    low, high = (0, low) if high is None else (low, high)
    if dtype is None and (state := _going_on(key)) is not None:
        x = _core._random_draw_integers(state, low, high, shape, device)
        if x is not None:
            return x
    shape, n = _size(shape)
    if high <= low:
        raise _error(
            _core.ArgumentError,
            "random.integers.range",
            f"no integers in [{low}, {high})",
            help="give a high above low",
        )
    s, offset = _take(2 * n, key)
    device, maker = _devices_of(device)
    x = _below(s, offset, shape, n, low, high - low, maker)
    if dtype is not None:
        x = x.astype(_core.dtype(dtype), copy=False)
    return x if maker is device else x.to(device)


def bernoulli(p, shape=(), *, device=None, key=None):
    """True with probability p."""
    return uniform(shape, device=device, key=key) < p


@_direct(_core._direct_random("permutation", globals(), _captured))
def permutation(n, *, device=None, key=None):
    """The numbers 0..n-1 in random order; of an array or a list its entries."""
    import weft

    if hasattr(n, "shape") and getattr(n, "ndim", 0) or isinstance(n, (list, tuple)):
        x = n if isinstance(n, (_core.NDArray, _core.Tensor)) else weft.asarray(n)
        order = permutation(x.shape[0], device=x.device, key=key)
        return weft.take(x, order, axis=0)
    n = operator.index(n)

    s, offset = _take(2 * n, key)
    device, maker = _devices_of(device)
    x = _core._random_permutation(s, offset, n, maker)
    return x if maker is device else x.to(device)


def choice(x, shape=(), replace=True, p=None, *, key=None, size=None):
    """Entries of x (an array or a number of choices); with these probabilities, each at most once without `replace`."""
    import weft

    shape = shape if size is None else size
    x = operator.index(x) if not isinstance(x, (list, tuple)) and not getattr(x, "ndim", 0) else x
    if p is None and not replace and isinstance(x, int):
        size = (shape,) if isinstance(shape, int) else tuple(shape or ())
        at = _without_repeats(x, math.prod(size), key)
        return at if len(size) == 1 else at.reshape(size)
    if p is not None or not replace:
        from ._functions.distributions import Generator

        generator = Generator(0)
        generator._next = lambda: key
        return generator.choice(x, () if shape is None else shape, replace, p)
    x = x if isinstance(x, (int, _core.NDArray, _core.Tensor)) else weft.asarray(x)
    shape = () if shape is None else shape
    n = x if isinstance(x, int) else x.shape[0]
    at = integers(0, n, shape, device=None if isinstance(x, int) else x.device, key=key)
    return at if isinstance(x, int) else weft.take(x, at, axis=0)


def _without_repeats(n, count, key):
    """`count` different numbers below n, in random order, on the default device."""
    if not 0 <= count <= n:
        from ._functions.common import refused

        raise refused("random.choice.count", f"{count} of {n} without replacement", f"{n} at most")
    device = _core.open_device(None)
    if not device.host_accessible:
        return permutation(n, key=key)[:count]
    return _core._random_choice(*_take(2 * count, key), n, count, device)


def _devices_of(device):
    """The device, and the one that makes its integers: machines without 64 bits get them from the host."""
    if not isinstance(device, _core.Device):
        device = _core.open_device(device)
    return device, _core.open_device("cpu") if device.kind == "simulator" else device


def _below(seed, offset, shape, n, low, count, device):
    """low + the upper half of `count` times a number of 64 bits: int64, equal on every device."""
    if count >= 2**32:
        return (
            (_core._random_pairs(seed, offset, n, device) % count).astype("int64") + low
        ).reshape(shape)
    if device.name == "cpu":
        return _core._random_integers(seed, offset, shape, low, count, device)
    words = _core._random_pairs(seed, offset, n, device)
    high = (words >> 32) * count + (((words & (2**32 - 1)) * count) >> 32)
    return ((high >> 32).astype("int64") + low).reshape(shape)


def __dir__():
    from ._functions.later import names

    return sorted({*globals(), *names("weft.random")})


def __getattr__(name):
    from ._functions.later import found
    from ._names import missing

    if name[:1] != "_" and (value := found("weft.random", name)) is not None:
        return value
    raise missing("weft.random", name, {})


_publish(__name__)
_publish_classes(__name__)
