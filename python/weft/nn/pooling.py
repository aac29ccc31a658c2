# SPDX-License-Identifier: Apache-2.0
"""Windows along one, two or three axes and what is taken of each: the largest, the mean, a norm.

A window over several axes is one axis after another: entries are picked by a table of positions, windows by taps. Square
windows over images without further options go through Tensor.windows, which copies nothing.
"""

from __future__ import annotations

import functools
import math

import weft

from .._core import shown as _shown
from .. import _core
from .._errors import error as _error
from .module import Module

__all__ = [
    *(
        f"{kind}_pool{n}d"
        for kind in ("max", "avg", "adaptive_avg", "adaptive_max")
        for n in (1, 2, 3)
    ),
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
]


_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))


def _each(value, n):
    """One value for each of n axes."""
    out = tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
    return out * n if len(out) == 1 else out


@functools.lru_cache(maxsize=512)
def _options_of(name, shape, n, kernel, stride, padding, dilation):
    kernel = _each(kernel, n)
    given = [
        kernel,
        kernel if stride is None else _each(stride, n),
        _each(padding, n),
        _each(dilation, n),
    ]
    legal = all(len(v) == n and all(isinstance(i, int) for i in v) for v in given)
    if legal:
        kernel, stride, padding, dilation = given
        legal = all(
            k > 0 and s > 0 and d > 0 and 0 <= 2 * p <= k
            for k, s, p, d in zip(kernel, stride, padding, dilation)
        )
    if not legal or len(shape) not in (n + 1, n + 2):
        raise _error(
            weft.ShapeError,
            "nn.pool.shape",
            f"{name} of shape {shape} with kernel {kernel}, stride {stride}, padding {padding}, dilation {dilation}",
            [
                f"rule: (batch, channels, ...) or (channels, ...) with {n} spatial axes",
                "rule: integers from 1 on, a padding of at most half the kernel",
            ],
        )
    return tuple(zip(range(len(shape) - n, len(shape)), kernel, stride, padding, dilation))


def _options(name, x, n, *given):
    """(axis, kernel, stride, padding, dilation) of each axis; a call like one before is not looked at again."""
    given = [tuple(v) if isinstance(v, list) else v for v in given]
    try:
        return _options_of(name, tuple(x.shape), n, *given)
    except TypeError:  # what cannot be a key is refused
        return _options_of.__wrapped__(name, tuple(x.shape), n, *given)


def _window_count(name, n, kernel, stride, padding, dilation, ceil_mode):
    """How many windows an axis of n entries has."""
    span = dilation * (kernel - 1) + 1
    room = n + 2 * padding - span
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if (
        ceil_mode and (count - 1) * stride >= n + padding
    ):  # windows begin inside, or in the border before
        count -= 1
    if room < 0 or count < 1:
        raise _error(
            weft.ShapeError,
            "nn.pool.empty",
            f"{name}: a window of {span} entries does not fit an axis of {n} with a border of {padding}",
            help="use a smaller window, or pad more",
        )
    return count


def _places(name, n, kernel, stride, padding, dilation, ceil_mode):
    """(positions of each window's taps in an axis of n entries, which of them lie inside, padded taps of each)."""
    import numpy as np  # importing weft.nn stays quick

    count = _window_count(name, n, kernel, stride, padding, dilation, ceil_mode)
    at = np.arange(count)[:, None] * stride - padding + np.arange(kernel)[None, :] * dilation
    inside = (at >= 0) & (at < n)
    padded = (at < n + padding).sum(1)
    return at, inside, padded


def _windowed(x, axis, at):
    """The entries at a table (windows, taps) of positions: windows in place of the axis, taps behind it."""
    flat = weft.asarray(at.reshape(-1).astype("int64"), device=x.device)
    y = weft.take(x, flat, axis=axis)
    return y.reshape(*x.shape[:axis], *at.shape, *x.shape[axis + 1 :])


def _largest(x, axis, at, inside):
    """The largest of each window; taps outside stand for the window's first tap inside."""
    import numpy as np  # importing weft.nn stays quick

    first = np.take_along_axis(at, inside.argmax(1)[:, None], 1)
    return _windowed(x, axis, np.where(inside, at, first)).max(axis=axis + 1)


def _summed(x, axis, at, weight):
    """Sums of each window's taps times their weights."""
    import numpy as np  # importing weft.nn stays quick

    y = _windowed(x, axis, np.clip(at, 0, x.shape[axis] - 1))
    shape = (*at.shape, *(1,) * (x.ndim - axis - 1))
    weight = weft.asarray(weight.reshape(shape), dtype=x.dtype, device=x.device)
    return (y * weft.Tensor(weight, requires_grad=False)).sum(axis + 1)


def _plain_square(x, n, options, ceil_mode):
    return (
        n == 2
        and x.ndim == 4
        and not ceil_mode
        and options[0][1:3] == options[1][1:3]
        and all(o[3:] == (0, 1) for o in options)
        and all(x.shape[o[0]] >= o[1] for o in options)
    )


def _max_pool(n, name, x, kernel, stride, padding, dilation, ceil_mode):
    options = _options(name, x, n, kernel, stride, padding, dilation)
    if isinstance(x, weft.Tensor) and _core._has_pooling(x.data):
        return _core._max_pool(x, _windows(name, x, options, ceil_mode))
    for axis, *rest in options:
        at, inside, _ = _places(name, x.shape[axis], *rest, ceil_mode)
        x = _largest(x, axis, at, inside)
    return x


@functools.lru_cache(maxsize=512)
def _windows_of(name, shape, options, ceil_mode):
    counts = [_window_count(name, shape[a], *rest, ceil_mode) for a, *rest in options]
    return [(shape[o[0]], c, *o[1:]) for o, c in zip(options, counts)]


def _windows(name, x, options, ceil_mode):
    """Of each axis: extent, windows, kernel, stride, padding, dilation."""
    return _windows_of(name, tuple(x.shape), options, ceil_mode)


def _has_means(x):
    return isinstance(x, weft.Tensor) and _core._has_pooling(x.data) and x.dtype.name in _FLOATS


def _avg_pool(n, name, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    import numpy as np  # importing weft.nn stays quick

    options = _options(name, x, n, kernel, stride, padding, 1)
    if divisor_override is not None and (
        isinstance(divisor_override, bool)
        or not isinstance(divisor_override, int)
        or divisor_override == 0
    ):
        raise _error(
            weft.ArgumentError,
            "nn.pool.divisor",
            f"{name} got divisor_override = {_shown(divisor_override)}",
            ["legal: a whole number that is not 0, or None"],
        )
    if divisor_override is None and all(
        x.shape[a] == k and p == 0 and x.shape[a] > 0 for a, k, _, p, _ in options
    ):
        return x.mean(tuple(o[0] for o in options), True)
    if _has_means(x):
        windows = _windows(name, x, options, ceil_mode)
        return _core._mean_pool(x, windows, False, count_include_pad, divisor_override or 0)
    if _plain_square(x, n, options, ceil_mode) and divisor_override is None:
        return x.windows(options[0][1], options[0][1], options[0][2]).mean((4, 5))
    for axis, *rest in options:
        at, inside, padded = _places(name, x.shape[axis], *rest, ceil_mode)
        count = padded if count_include_pad else inside.sum(1)
        count = count if divisor_override is None else np.ones_like(count)
        x = _summed(x, axis, at, inside / count[:, None])
    return x if divisor_override is None else x * (1.0 / divisor_override)


def _adaptive(n, name, x, output_size, take):
    import numpy as np  # importing weft.nn stays quick

    sizes = _each(output_size, n)
    legal = len(sizes) == n and all(s is None or (isinstance(s, int) and s > 0) for s in sizes)
    if not legal or x.ndim not in (n + 1, n + 2):
        raise _error(
            weft.ShapeError,
            "nn.adaptive_pool.shape",
            f"{name} of shape {x.shape} to the size {output_size}",
            [
                f"rule: (batch, channels, ...) or (channels, ...) with {n} spatial axes and as many sizes from 1 on"
            ],
        )
    sizes = [size if m is None else m for m, size in zip(sizes, x.shape[x.ndim - n :])]
    if take is _adaptive_mean and all(s % m == 0 for m, s in zip(sizes, x.shape[x.ndim - n :])):
        # Equal windows: one mean over all their axes.
        lead = x.shape[: x.ndim - n]
        split = [e for m, s in zip(sizes, x.shape[x.ndim - n :]) for e in (m, s // m)]
        axes = tuple(range(len(lead) + 1, len(lead) + 2 * n, 2))
        return x.reshape(*lead, *split).mean(axes)
    if take is _adaptive_mean and _has_means(x):
        windows = [(s, m, 1, 1, 0, 1) for m, s in zip(sizes, x.shape[x.ndim - n :])]
        return _core._mean_pool(x, windows, True, False, 0)
    for axis, m in zip(range(x.ndim - n, x.ndim), sizes):
        size = x.shape[axis]
        if m == size:
            continue
        start = np.arange(m) * size // m
        length = -(-(np.arange(1, m + 1) * size) // m) - start
        taps = np.arange(length.max())[None, :]
        inside = taps < length[:, None]
        x = take(x, axis, start[:, None] + taps * inside, inside)
    return x


def _adaptive_mean(x, axis, at, inside):
    if inside.all() and at.shape[1] * at.shape[0] == x.shape[axis]:
        return x.reshape(*x.shape[:axis], *at.shape, *x.shape[axis + 1 :]).mean(axis + 1)
    return _summed(x, axis, at, inside / inside.sum(1, keepdims=True))


def max_pool1d(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Largest value of each window of (n, c, length) or (c, length); a border of `padding` never wins."""
    return _max_pool(1, "max_pool1d", x, kernel, stride, padding, dilation, ceil_mode)


def max_pool2d(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Largest value of each window of (n, c, h, w) or (c, h, w); a border of `padding` never wins.

    The stride is the kernel unless given; numbers hold for both axes. With ceil_mode the last window may reach over
    the edge. Raises ShapeError.
    """
    return _max_pool(2, "max_pool2d", x, kernel, stride, padding, dilation, ceil_mode)


def max_pool3d(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Largest value of each window of (n, c, d, h, w) or (c, d, h, w); a border of `padding` never wins."""
    return _max_pool(3, "max_pool3d", x, kernel, stride, padding, dilation, ceil_mode)


def avg_pool1d(x, kernel, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """Mean of each window of (n, c, length) or (c, length); a border counts as zeros, or not at all."""
    return _avg_pool(
        1, "avg_pool1d", x, kernel, stride, padding, ceil_mode, count_include_pad, None
    )


def avg_pool2d(
    x,
    kernel,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Mean of each window of (n, c, h, w) or (c, h, w); a border counts as zeros, or not at all.

    divisor_override divides the sums instead of the number of entries. Raises ShapeError.
    """
    rest = ceil_mode, count_include_pad, divisor_override
    return _avg_pool(2, "avg_pool2d", x, kernel, stride, padding, *rest)


def avg_pool3d(
    x,
    kernel,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Mean of each window of (n, c, d, h, w) or (c, d, h, w); a border counts as zeros, or not at all."""
    rest = ceil_mode, count_include_pad, divisor_override
    return _avg_pool(3, "avg_pool3d", x, kernel, stride, padding, *rest)


def lp_pool1d(x, norm_type, kernel, stride=None, ceil_mode=False):
    """(sum of x ** norm_type) ** (1 / norm_type) of each window; of one over the edge, the mean times the whole window."""
    mean = _avg_pool(1, "lp_pool1d", x**norm_type, kernel, stride, 0, ceil_mode, True, None)
    return (mean * math.prod(_each(kernel, 1))) ** (1.0 / norm_type)


def lp_pool2d(x, norm_type, kernel, stride=None, ceil_mode=False):
    """(sum of x ** norm_type) ** (1 / norm_type) of each window; of one over the edge, the mean times the whole window."""
    mean = _avg_pool(2, "lp_pool2d", x**norm_type, kernel, stride, 0, ceil_mode, True, None)
    return (mean * math.prod(_each(kernel, 2))) ** (1.0 / norm_type)


def lp_pool3d(x, norm_type, kernel, stride=None, ceil_mode=False):
    """(sum of x ** norm_type) ** (1 / norm_type) of each window; of one over the edge, the mean times the whole window."""
    mean = _avg_pool(3, "lp_pool3d", x**norm_type, kernel, stride, 0, ceil_mode, True, None)
    return (mean * math.prod(_each(kernel, 3))) ** (1.0 / norm_type)


def adaptive_avg_pool1d(x, output_size):
    """Means of output_size windows that together cover the axis; they overlap where it does not divide."""
    return _adaptive(1, "adaptive_avg_pool1d", x, output_size, _adaptive_mean)


def adaptive_avg_pool2d(x, output_size):
    """Means of (n, c, h, w) to (n, c, *output_size); None keeps an axis. Raises ShapeError."""
    return _adaptive(2, "adaptive_avg_pool2d", x, output_size, _adaptive_mean)


def adaptive_avg_pool3d(x, output_size):
    """Means of (n, c, d, h, w) to (n, c, *output_size); None keeps an axis. Raises ShapeError."""
    return _adaptive(3, "adaptive_avg_pool3d", x, output_size, _adaptive_mean)


def adaptive_max_pool1d(x, output_size):
    """The largest of output_size windows that together cover the axis."""
    return _adaptive(1, "adaptive_max_pool1d", x, output_size, _largest)


def adaptive_max_pool2d(x, output_size):
    """The largest of each window: (n, c, h, w) to (n, c, *output_size); None keeps an axis."""
    return _adaptive(2, "adaptive_max_pool2d", x, output_size, _largest)


def adaptive_max_pool3d(x, output_size):
    """The largest of each window: (n, c, d, h, w) to (n, c, *output_size); None keeps an axis."""
    return _adaptive(3, "adaptive_max_pool3d", x, output_size, _largest)


class _MaxPool(Module):
    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        super().__init__()
        self.options = kernel_size, stride, padding, dilation, ceil_mode
        self.return_indices = return_indices

    def forward(self, x):
        if self.return_indices:
            from . import unpooling

            return getattr(unpooling, f"max_pool{self.axes}d_with_indices")(x, *self.options)
        return _max_pool(self.axes, type(self).__name__, x, *self.options)


class MaxPool1d(_MaxPool):
    """The largest value of each window."""

    axes = 1


class MaxPool2d(_MaxPool):
    """The largest value of each window."""

    axes = 2


class MaxPool3d(_MaxPool):
    """The largest value of each window."""

    axes = 3


class _AvgPool(Module):
    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__()
        self.options = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override

    def forward(self, x):
        return _avg_pool(self.axes, type(self).__name__, x, *self.options)


class AvgPool1d(_AvgPool):
    """The mean of each window."""

    axes = 1


class AvgPool2d(_AvgPool):
    """The mean of each window."""

    axes = 2


class AvgPool3d(_AvgPool):
    """The mean of each window."""

    axes = 3


class LPPool1d(Module):
    """The p-norm of each window."""

    axes = 1

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.options = norm_type, kernel_size, stride, ceil_mode

    def forward(self, x):
        return (lp_pool1d, lp_pool2d, lp_pool3d)[self.axes - 1](x, *self.options)


class LPPool2d(LPPool1d):
    """The p-norm of each window."""

    axes = 2


class LPPool3d(LPPool1d):
    """The p-norm of each window."""

    axes = 3


class _AdaptivePool(Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, x):
        return _adaptive(self.axes, type(self).__name__, x, self.output_size, type(self).take)


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means over windows, as many as output_size says."""

    axes, take = 1, staticmethod(_adaptive_mean)


class AdaptiveAvgPool2d(AdaptiveAvgPool1d):
    """Means over windows, as many as output_size says; None keeps an axis."""

    axes = 2


class AdaptiveAvgPool3d(AdaptiveAvgPool1d):
    """Means over windows, as many as output_size says; None keeps an axis."""

    axes = 3


class AdaptiveMaxPool1d(_AdaptivePool):
    """The largest of windows, as many as output_size says; with return_indices their positions, too."""

    axes, take = 1, staticmethod(_largest)

    def __init__(self, output_size, return_indices=False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, x):
        if not self.return_indices:
            return super().forward(x)
        from . import unpooling

        found = getattr(unpooling, f"adaptive_max_pool{self.axes}d_with_indices")
        return found(x, self.output_size)


class AdaptiveMaxPool2d(AdaptiveMaxPool1d):
    """The largest of windows, as many as output_size says; None keeps an axis."""

    axes = 2


class AdaptiveMaxPool3d(AdaptiveMaxPool1d):
    """The largest of windows, as many as output_size says; None keeps an axis."""

    axes = 3
