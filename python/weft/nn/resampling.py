# SPDX-License-Identifier: Apache-2.0
"""Images of other sizes: borders, enlarging and shrinking."""

from __future__ import annotations

import functools
import itertools
import math

import weft

from .._core import shown as _shown
from .. import _core
from .._errors import error as _error
from .._pointwise import pointwise
from .module import Module

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(x, widths, mode="constant", value=0.0):
    """A border as PyTorch counts it: (left, right, top, bottom, ...) from the last axis backwards.

    mode: "constant", "reflect", "replicate", "circular". weft.pad takes a pair for each axis instead.
    """
    flat = isinstance(widths, (tuple, list)) and all(hasattr(w, "__index__") for w in widths)
    if mode not in _MODES or not flat or len(widths) % 2 or len(widths) > 2 * x.ndim:
        raise _error(
            weft.ArgumentError,
            "nn.pad.widths",
            f"pad of shape {x.shape} by {_shown(widths)}, mode {_shown(mode)}",
            [
                "legal: integers (left, right, top, bottom, ...), two for each axis from the last backwards; "
                f"modes {', '.join(map(repr, _MODES))}"
            ],
            help="weft.pad takes a pair for each axis, from the first",
        )
    pairs = [(widths[i], widths[i + 1]) for i in range(0, len(widths), 2)]
    full = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    inside = tuple(  # negative widths cut
        slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, full)
    )
    grown = [(max(a, 0), max(b, 0)) for a, b in full]
    return weft.pad(x[inside], grown, mode=_MODES[mode], value=value)


def _sizes(x, size, scale_factor):
    spatial = x.ndim - 2
    if (size is None) == (scale_factor is None) or spatial < 1:
        raise _error(
            weft.ArgumentError,
            "nn.interpolate.size",
            f"interpolate of shape {x.shape} with size {size} and scale_factor {scale_factor}",
            ["legal: one of the two, for (n, c, ...)"],
        )
    given = scale_factor if size is None else size
    given = tuple(given) if isinstance(given, (tuple, list)) else (given,) * spatial
    if size is not None:
        return given, [n / m for n, m in zip(x.shape[2:], given)]
    return tuple(math.floor(n * f) for n, f in zip(x.shape[2:], given)), [1.0 / f for f in given]


def _repeated(x, sizes):
    """Each element m / n times along the spatial axes."""
    lead, axes = x.shape[:2], list(zip(x.shape[2:], sizes))
    x = x.reshape(*lead, *(e for n, _ in axes for e in (n, 1)))
    x = x.broadcast_to((*lead, *(e for n, m in axes for e in (n, m // n))))
    return x.reshape(*lead, *sizes)


def _averaged(x, axis, m, step, cubic, align_corners):
    """An axis by a product with the weights of a triangle or a cubic that is as wide as the elements become (a = -0.5)."""
    n = x.shape[axis]
    step = ((n - 1) / (m - 1) if m > 1 else 0.0) if align_corners else step
    wide = max(step, 1.0)
    support = (2.0 if cubic else 1.0) * wide
    centre = (weft.arange(m, dtype="float64") + 0.5).reshape(m, 1) * step
    at = weft.arange(n, dtype="float64").reshape(1, n)
    first = weft.maximum(weft.floor(centre - support + 0.5), 0.0)
    last = weft.minimum(weft.floor(centre + support + 0.5), float(n))
    d = weft.abs((at - centre + 0.5) / wide)
    if cubic:
        near = (1.5 * d - 2.5) * d * d + 1.0
        far = ((-0.5 * d + 2.5) * d - 4.0) * d + 2.0
        weights = weft.where(d < 1, near, weft.where(d < 2, far, 0.0))
    else:
        weights = weft.maximum(1.0 - d, 0.0)
    weights = weft.where((at >= first) & (at < last), weights, 0.0)
    weights = weights / weft.sum(weights, axis=1, keepdims=True)
    weights = weights.astype(x.dtype).to(x.device)
    if axis == x.ndim - 1:
        return x @ weights.mT
    return weft.moveaxis(weft.moveaxis(x, axis, -1) @ weights.mT, -1, axis)


def interpolate(
    x, size=None, scale_factor=None, mode="nearest", align_corners=False, recompute_scale_factor=None, antialias=False
):  # fmt: skip
    """(n, c, ...) with the spatial axes enlarged or shrunk to `size`, or by `scale_factor`.

    mode: "nearest", or "linear" / "bilinear" / "trilinear": between the two neighbours along each axis, or "bicubic":
    of the four neighbours along each of two axes, by the cubic with a = -0.75. With
    align_corners the centres of the outermost elements coincide, otherwise their outer edges, as in PyTorch. With recompute_scale_factor the
    factors are those of the sizes. With antialias ("bilinear", "bicubic") an element of a smaller image is a mean over all that it covers.
    """
    align_corners = bool(align_corners)
    sizes, steps = _sizes(x, size, scale_factor)
    if recompute_scale_factor:
        sizes, steps = _sizes(x, tuple(sizes), None)
    if antialias:
        if mode not in ("bilinear", "bicubic") or x.ndim != 4:
            raise _error(
                weft.ArgumentError,
                "nn.interpolate.antialias",
                f"antialias=True with mode {_shown(mode)} of shape {tuple(x.shape)}",
                ['legal: "bilinear" and "bicubic" of (n, c, h, w)'],
            )
        for axis, (m, step) in enumerate(zip(sizes, steps), start=2):
            x = _averaged(x, axis, m, step, mode == "bicubic", align_corners)
        return x
    if mode == "bicubic" and x.ndim == 4:
        for axis, (m, step) in enumerate(zip(sizes, steps), start=2):
            x = _cubic(x, axis, m, step, align_corners)
        return x
    if mode not in ("nearest", "linear", "bilinear", "trilinear"):
        raise _error(
            weft.ArgumentError,
            "nn.interpolate.mode",
            f"no interpolation is called {_shown(mode)}",
            ['legal: "nearest", "linear", "bilinear", "trilinear"; "bicubic" of images'],
        )
    if mode == "nearest" and all(
        m % n == 0 and step == n / m for m, n, step in zip(sizes, x.shape[2:], steps)
    ):
        return _repeated(x, sizes)
    if (
        mode != "nearest"
        and 1 <= len(sizes) <= 3
        and all(x.shape[2:])
        and isinstance(x, weft.Tensor)
        and _core._has_grid(x.data)
        and x.dtype.kind == "f"
    ):
        return _core._resample(
            x, [_line(*at, align_corners) for at in zip(x.shape[2:], sizes, steps)]
        )
    for axis, (m, step) in enumerate(zip(sizes, steps), start=2):
        n = x.shape[axis]
        if mode == "nearest":
            x = weft.take(x, _array(tuple(_nearest(n, m, step)), "int64", x.device), axis=axis)
            continue
        if align_corners:
            places = [i * (n - 1) / (m - 1) if m > 1 else 0.0 for i in range(m)]
        else:
            places = [max((i + 0.5) * step - 0.5, 0.0) for i in range(m)]
        low = tuple(min(int(p), n - 1) for p in places)
        high = tuple(min(i + 1, n - 1) for i in low)
        part = _array(tuple(p - i for p, i in zip(places, low)), str(x.dtype), x.device)
        a, b = (weft.take(x, _array(at, "int64", x.device), axis=axis) for at in (low, high))
        shape = tuple(m if a == axis else 1 for a in range(x.ndim))
        x = _between(a, b, weft.Tensor(part.reshape(shape), requires_grad=False))
    return x


def _cubic(x, axis, m, step, align_corners):
    """Along one axis of n: place p takes the four neighbours of floor(p) by weights of its fraction."""
    n = x.shape[axis]
    if align_corners:
        places = [i * (n - 1) / (m - 1) if m > 1 else 0.0 for i in range(m)]
    else:
        places = [(i + 0.5) * step - 0.5 for i in range(m)]
    a = -0.75
    near = lambda t: ((a + 2) * t - (a + 3)) * t * t + 1  # noqa: E731
    far = lambda t: ((a * t - 5 * a) * t + 8 * a) * t - 4 * a  # noqa: E731
    whole = [math.floor(p) for p in places]
    parts = [p - i for p, i in zip(places, whole)]
    weights = [[far(1 + t), near(t), near(1 - t), far(2 - t)] for t in parts]
    shape = tuple(m if k == axis else 1 for k in range(x.ndim))
    out = None
    for k in range(4):
        at = tuple(min(max(i + k - 1, 0), n - 1) for i in whole)
        part = _array(tuple(w[k] for w in weights), str(x.dtype), x.device).reshape(shape)
        one = weft.take(x, _array(at, "int64", x.device), axis=axis) * weft.Tensor(part, requires_grad=False)  # fmt: skip
        out = one if out is None else out + one
    return out


@pointwise
def _between(a, b, part):
    return a + (b - a) * part


def _line(n, m, step, align_corners):
    """Extent, size, step, bias: place i of m lies at max(i * step + bias, 0) of n."""
    if align_corners:
        return n, m, (n - 1) / (m - 1) if min(n, m) > 1 else 1.0, 0.0
    return n, m, step, 0.5 * step - 0.5


def _nearest(n, m, step):
    return [min(math.floor(i * step), n - 1) for i in range(m)]


@functools.lru_cache(maxsize=256)
def _array(values, dtype, device):
    return weft.asarray(values, dtype=dtype, device=device)


class Upsample(Module):
    """nn.functional.interpolate."""

    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode="nearest",
        align_corners=False,
        recompute_scale_factor=None,
    ):
        super().__init__()
        self.size, self.scale_factor = size, scale_factor
        self.recompute_scale_factor = recompute_scale_factor
        self.mode, self.align_corners = mode, bool(align_corners)

    def forward(self, x):
        options = self.mode, self.align_corners, self.recompute_scale_factor
        return interpolate(x, self.size, self.scale_factor, *options)


class UpsamplingNearest2d(Upsample):
    """interpolate(mode="nearest")."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """interpolate(mode="bilinear", align_corners=True)."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


class _Pad(Module):
    axes, mode = 2, "constant"

    def __init__(self, padding):
        super().__init__()
        sides = 2 * self.axes
        one = isinstance(padding, int)
        self.padding = (padding,) * sides if one else tuple(itertools.islice(padding, sides + 1))
        self.value = 0.0

    def forward(self, x):
        return pad(x, self.padding, self.mode, self.value)


class ConstantPad2d(_Pad):
    """A border of one number: one width, or (left, right, top, bottom)."""

    def __init__(self, padding, value=0.0):
        super().__init__(padding)
        self.value = value


class ConstantPad1d(ConstantPad2d):
    """A border of one number at both ends: one width, or (left, right)."""

    axes = 1


class ConstantPad3d(ConstantPad2d):
    """A border of one number: one width, or pairs from the last axis backwards."""

    axes = 3


class ZeroPad2d(_Pad):
    """A border of zeros: one width, or (left, right, top, bottom)."""


class ZeroPad1d(ZeroPad2d):
    """A border of zeros at both ends: one width, or (left, right)."""

    axes = 1


class ZeroPad3d(ZeroPad2d):
    """A border of zeros: one width, or pairs from the last axis backwards."""

    axes = 3


class CircularPad2d(_Pad):
    """A border that goes on at the other side of the image."""

    mode = "circular"


class CircularPad1d(CircularPad2d):
    """A border that goes on at the other end of the row."""

    axes = 1


class CircularPad3d(CircularPad2d):
    """A border that goes on at the other side of the volume."""

    axes = 3


class ReflectionPad2d(_Pad):
    """A border that mirrors the image without its edge."""

    mode = "reflect"


class ReflectionPad1d(ReflectionPad2d):
    """A border that mirrors the row without its end."""

    axes = 1


class ReflectionPad3d(ReflectionPad2d):
    """A border that mirrors the volume without its faces."""

    axes = 3


class ReplicationPad2d(_Pad):
    """A border that repeats the edge."""

    mode = "replicate"


class ReplicationPad1d(ReplicationPad2d):
    """A border that repeats the ends."""

    axes = 1


class ReplicationPad3d(ReplicationPad2d):
    """A border that repeats the faces."""

    axes = 3
