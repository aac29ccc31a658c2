# SPDX-License-Identifier: Apache-2.0
"""Pooling that tells where the largest elements were, its inverse, and windows of random places."""

from __future__ import annotations

import math

import weft

from .._errors import error as _error
from .._functions.scatters import _placed
from .module import Module
from .pooling import _each, _options, _places

__all__ = [
    *(f"max_pool{n}d_with_indices" for n in (1, 2, 3)),
    *(f"adaptive_max_pool{n}d_with_indices" for n in (1, 2, 3)),
    *(f"max_unpool{n}d" for n in (1, 2, 3)),
    *(f"fractional_max_pool{n}d{more}" for n in (2, 3) for more in ("", "_with_indices")),
]


def _best(x, n, at, inside, counts):
    """The largest of windows whose taps have flat positions at (windows, taps), and where it is."""
    size = math.prod(x.shape[x.ndim - n :])
    flat = x.reshape((*x.shape[: x.ndim - n], size))
    table = weft.asarray(at.reshape(-1).astype("int64"), device=x.device)
    taps = weft.take(flat, table, axis=-1).reshape((*flat.shape[:-1], *at.shape))
    keys = taps.data if isinstance(taps, weft.Tensor) else taps
    keys = weft.where(weft.asarray(inside, device=x.device), keys, -math.inf if keys.dtype.kind == "f" else weft.iinfo(keys.dtype).min)  # fmt: skip
    if keys.dtype.kind == "f":  # NaN wins, as in the windows without positions
        keys = weft.where(weft.isnan(keys), math.inf, keys)
    best = weft.expand_dims(weft.argmax(keys, axis=-1), axis=-1)
    values = weft.squeeze(weft.take_along_axis(taps, best, axis=-1), axis=-1)
    where = weft.broadcast_to(weft.asarray(at.astype("int64"), device=x.device), tuple(keys.shape))
    where = weft.squeeze(weft.take_along_axis(where, best, axis=-1), axis=-1)
    shape = (*x.shape[: x.ndim - n], *counts)
    return values.reshape(shape), where.reshape(shape)


def _joined(tables, extents):
    """Flat positions (windows, taps) and which lie inside, from those of each axis."""
    import numpy as np

    at, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for (one, fits), m in zip(tables, extents):
        one = np.clip(one, 0, m - 1)
        at = at[:, None, :, None] * m + one[None, :, None, :]
        at = at.reshape(at.shape[0] * at.shape[1], -1)
        inside = inside[:, None, :, None] & fits[None, :, None, :]
        inside = inside.reshape(inside.shape[0] * inside.shape[1], -1)
    return at, inside


def _with_indices(n):
    name = f"max_pool{n}d"

    def function(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
        options = _options(name, x, n, kernel, stride, padding, dilation)
        tables = [_places(name, x.shape[a], *rest, ceil_mode)[:2] for a, *rest in options]
        at, inside = _joined(tables, [x.shape[o[0]] for o in options])
        return _best(x, n, at, inside, [t[0].shape[0] for t in tables])

    function.__name__ = function.__qualname__ = f"{name}_with_indices"
    function.__doc__ = (
        f"({name}, the position of each largest element among those of its channel, int64)."
    )
    return function


def _adaptive_with_indices(n):
    def function(x, output_size):
        import numpy as np

        extents = x.shape[x.ndim - n :]
        sizes = [m if s is None else s for s, m in zip(_each(output_size, n), extents)]
        tables = []
        for m, size in zip(sizes, extents):
            start = np.arange(m) * size // m
            length = -(-(np.arange(1, m + 1) * size) // m) - start
            taps = np.arange(length.max())[None, :]
            tables.append((start[:, None] + taps, taps < length[:, None]))
        at, inside = _joined(tables, extents)
        return _best(x, n, at, inside, sizes)

    function.__name__ = function.__qualname__ = f"adaptive_max_pool{n}d_with_indices"
    function.__doc__ = f"(adaptive_max_pool{n}d, the position of each largest element among those of its channel, int64)."
    return function


def _unpool(n):
    name = f"max_unpool{n}d"

    def function(x, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel = _each(kernel_size, n)
        stride = kernel if stride is None else _each(stride, n)
        padding = _each(padding, n)
        spatial = x.shape[x.ndim - n :]
        usual = [(m - 1) * s - 2 * p + k for m, s, p, k in zip(spatial, stride, padding, kernel)]
        size = usual if output_size is None else list(output_size)[-n:]
        indices = weft.asarray(getattr(indices, "data", indices)).astype("int64")
        if tuple(indices.shape) != tuple(x.shape) or x.ndim not in (n + 1, n + 2):
            raise _error(
                weft.ShapeError,
                "nn.max_unpool.shape",
                f"{name} of shape {tuple(x.shape)} with positions {tuple(indices.shape)}",
                [f"rule: equal shapes (n, c, ...) or (c, ...) with {n} spatial axes"],
            )
        count = math.prod(size)
        if indices.size and not bool(weft.all((indices >= 0) & (indices < count))):
            raise _error(
                weft.IndexError,
                "nn.max_unpool.index",
                f"{name}: a position outside an image of {tuple(size)}",
                help="pass output_size, the shape that was pooled",
            )
        lead = x.shape[: x.ndim - n]
        rows = math.prod(lead)
        offset = weft.arange(rows, device=x.device).reshape((rows, 1)) * count
        at = indices.reshape((rows, -1)) + offset
        base = weft.zeros((rows * count,), dtype=x.dtype, device=x.device)
        return _placed(base if not isinstance(x, weft.Tensor) else weft.Tensor(base, requires_grad=False), at, x.reshape(-1)).reshape((*lead, *size))  # fmt: skip

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        "Values go back to where max_pool_with_indices found them, zeros elsewhere. Has gradients."
    )
    return function


def _fractional(n, both):
    def function(x, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None, key=None):  # fmt: skip
        kernel, extents = _each(kernel_size, n), x.shape[x.ndim - n :]
        if (output_size is None) == (output_ratio is None) or x.ndim not in (n + 1, n + 2):
            raise _error(
                weft.ArgumentError,
                "nn.fractional_pool.size",
                f"a fractional pool of shape {tuple(x.shape)} with output_size {output_size} and output_ratio {output_ratio}",
                ["rule: one of the two, for (n, c, ...) or (c, ...)"],
            )
        sizes = _each(output_size, n) if output_size is not None else tuple(int(m * r) for m, r in zip(extents, _each(output_ratio, n)))  # fmt: skip
        if any(o < 1 or o + k - 1 > m for o, k, m in zip(sizes, kernel, extents)):
            raise _error(
                weft.ShapeError,
                "nn.fractional_pool.shape",
                f"windows of {kernel} and {sizes} results for extents {tuple(extents)}",
                ["rule: results and windows fit each axis"],
            )
        single = x.ndim == n + 1
        x = x.reshape((1, *x.shape)) if single else x
        rows = x.shape[0] * x.shape[1]
        u = _random_samples
        if u is None:
            u = weft.random.uniform((x.shape[0], x.shape[1], n), device=x.device, key=key)
        u = weft.asarray(getattr(u, "data", u)).astype("float64").reshape((rows, n))
        index = weft.zeros((rows, 1, 1), dtype="int64", device=x.device)
        for k, (o, width, m) in enumerate(zip(sizes, kernel, extents)):
            # Samples of images are given for the last axis first, as in PyTorch.
            start = _starts(u[:, 1 - k if n == 2 else k], o, width, m)
            line = weft.expand_dims(start, axis=-1) + weft.arange(width, device=x.device)
            index = index.reshape((rows, index.shape[1], 1, index.shape[2], 1)) * m + line.reshape((rows, 1, o, 1, width))  # fmt: skip
            index = index.reshape((rows, index.shape[1] * o, -1))
        flat = x.reshape((rows, math.prod(extents)))
        taps = weft.take_along_axis(flat, index.reshape((rows, -1)), axis=1).reshape(index.shape)
        best = weft.expand_dims(weft.argmax(taps.data if isinstance(taps, weft.Tensor) else taps, axis=-1), axis=-1)  # fmt: skip
        shape = (*((x.shape[1],) if single else x.shape[:2]), *sizes)
        values = weft.take_along_axis(taps, best, axis=-1).reshape(shape)
        if not (both or return_indices):
            return values
        return values, weft.take_along_axis(index, best, axis=-1).reshape(shape)

    function.__name__ = function.__qualname__ = f"fractional_max_pool{n}d" + (
        "_with_indices" if both else ""
    )
    function.__doc__ = "The largest of windows that begin at random places, output_size (or output_ratio times the extents) of them."
    return function


def _starts(u, count, width, m):
    """Where windows begin: (rows, count), the last at the end."""
    if count == 1:
        return weft.full((u.shape[0], 1), m - width, dtype="int64", device=u.device)
    alpha = (m - width) / (count - 1)
    at = weft.arange(count, device=u.device).astype("float64")
    u = weft.expand_dims(u, axis=-1)
    start = weft.trunc((at + u) * alpha) - weft.trunc(u * alpha)
    return weft.where(at == count - 1, float(m - width), start).astype("int64")


for _n in (1, 2, 3):
    globals()[f"max_pool{_n}d_with_indices"] = _with_indices(_n)
    globals()[f"adaptive_max_pool{_n}d_with_indices"] = _adaptive_with_indices(_n)
    globals()[f"max_unpool{_n}d"] = _unpool(_n)
for _n in (2, 3):
    globals()[f"fractional_max_pool{_n}d"] = _fractional(_n, False)
    globals()[f"fractional_max_pool{_n}d_with_indices"] = _fractional(_n, True)


class MaxUnpool2d(Module):
    """nn.functional.max_unpool2d."""

    rank = 2

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x, indices, output_size=None):
        unpool = globals()[f"max_unpool{self.rank}d"]
        return unpool(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(MaxUnpool2d):
    """nn.functional.max_unpool1d."""

    rank = 1


class MaxUnpool3d(MaxUnpool2d):
    """nn.functional.max_unpool3d."""

    rank = 3


class FractionalMaxPool2d(Module):
    """nn.functional.fractional_max_pool2d."""

    rank = 2

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False):
        super().__init__()
        self.kernel_size, self.output_size = kernel_size, output_size
        self.output_ratio, self.return_indices = output_ratio, return_indices

    def forward(self, x):
        pool = globals()[f"fractional_max_pool{self.rank}d"]
        return pool(x, self.kernel_size, self.output_size, self.output_ratio, self.return_indices)


class FractionalMaxPool3d(FractionalMaxPool2d):
    """nn.functional.fractional_max_pool3d."""

    rank = 3
