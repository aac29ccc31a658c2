# SPDX-License-Identifier: Apache-2.0
"""Channels, blocks and windows of images exchanged for one another: shuffles, unfold and fold."""

from __future__ import annotations

import weft

from .._errors import error as _error
from ..autograd import Function
from .module import Module
from .pooling import _each, _places, _windowed

__all__ = ["pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "unfold", "fold"]


def pixel_shuffle(x, upscale_factor):
    """(n, c r r, h, w) to (n, c, h r, w r): r r channels become the pixels of a square."""
    r = upscale_factor
    if x.ndim != 4 or x.shape[1] % (r * r):
        raise _error(
            weft.ShapeError,
            "nn.pixel_shuffle.shape",
            f"pixel_shuffle of shape {x.shape} by {r} needs (n, c, h, w) with c a multiple of {r * r}",
            help="choose a factor whose square divides the channels",
        )
    n, c, h, w = x.shape
    y = x.reshape(n, c // (r * r), r, r, h, w).permute(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // (r * r), h * r, w * r)


def pixel_unshuffle(x, downscale_factor):
    """(n, c, h r, w r) to (n, c r r, h, w): the pixels of a square become r r channels."""
    r = downscale_factor
    if x.ndim != 4 or x.shape[2] % r or x.shape[3] % r:
        raise _error(
            weft.ShapeError,
            "nn.pixel_unshuffle.shape",
            f"pixel_unshuffle of shape {x.shape} by {r} needs (n, c, h, w) with h and w multiples of {r}",
            help="pad height and width to multiples of the factor",
        )
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // r, r, w // r, r).permute(0, 1, 3, 5, 2, 4)
    return y.reshape(n, c * r * r, h // r, w // r)


def channel_shuffle(x, groups):
    """The channels (axis 1) of `groups` groups dealt out in turn. Raises ShapeError when they do not divide."""
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups:
        raise _error(
            weft.ShapeError,
            "nn.channel_shuffle.shape",
            f"{groups} groups do not divide the channels (axis 1) of shape {x.shape}",
            help="choose a number of groups that divides the channels",
        )
    n, c, *rest = x.shape
    y = x.reshape(n, groups, c // groups, *rest)
    return y.permute(0, 2, 1, *range(3, y.ndim)).reshape(n, c, *rest)


def unfold(x, kernel_size, dilation=1, padding=0, stride=1):
    """(n, c, h, w) to (n, c kh kw, windows): what a convolution's windows see, zeros outside."""
    if x.ndim != 4:
        raise _error(
            weft.ShapeError,
            "nn.unfold.shape",
            f"unfold of shape {x.shape}",
            note="rule: (n, c, h, w)",
        )
    y = x
    kernel, steps, borders, dilations = (
        _each(v, 2) for v in (kernel_size, stride, padding, dilation)
    )
    plain = steps[0] == steps[1] > 0 and dilations == (1, 1) and min(kernel) > 0 <= min(borders)
    if plain and isinstance(x, weft.Tensor):
        (ph, pw), (kh, kw) = borders, kernel
        if x.shape[2] + 2 * ph >= kh and x.shape[3] + 2 * pw >= kw:
            if ph or pw:
                y = weft.pad(y, [(0, 0), (0, 0), (ph, ph), (pw, pw)])
            y = y.windows(kh, kw, steps[0])
            n, c, oh, ow, _, _ = y.shape
            return y.permute(0, 1, 4, 5, 2, 3).reshape(n, c * kh * kw, oh * ow)
    options = zip(kernel, steps, borders, dilations)
    for axis, (k, s, p, d) in zip((2, 4), options):
        if p:
            border = [(0, 0)] * y.ndim
            border[axis] = (p, p)
            y = weft.pad(y, border)
        at, _, _ = _places("unfold", y.shape[axis], k, s, 0, d, False)
        y = _windowed(y, axis, at)
    n, c, oh, kh, ow, kw = y.shape
    return y.permute(0, 1, 3, 5, 2, 4).reshape(n, c * kh * kw, oh * ow)


class _Fold(Function):
    """The gradient of unfold as an operation; its own gradient is unfold."""

    @staticmethod
    def forward(ctx, x, shape, options):
        ctx.options = options
        zeros = weft.zeros(shape, dtype=x.dtype, device=x.device)
        with weft.enable_grad():
            image = weft.Tensor(zeros)
            unfold(image, *options).backward(x.data)
        return image.grad

    @staticmethod
    def backward(ctx, g):
        return unfold(g, *ctx.options), None, None


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """(n, c kh kw, windows) to (n, c, *output_size): overlapping windows add up; the transpose of unfold."""
    kernel, size = _each(kernel_size, 2), _each(output_size, 2)
    rows = zip(size, kernel, _each(padding, 2), _each(dilation, 2), _each(stride, 2))
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, p, d, s in rows]
    area, windows = kernel[0] * kernel[1], counts[0] * counts[1]
    if x.ndim != 3 or x.shape[1] % area or x.shape[2] != windows:
        raise _error(
            weft.ShapeError,
            "nn.fold.shape",
            f"fold of shape {x.shape} to {size} needs (n, c, {windows}) with c a multiple of {area}",
            help="pass what unfold returned, with the same kernel_size, stride and padding",
        )
    shape = (x.shape[0], x.shape[1] // area, *size)
    return _Fold.apply(x, shape, (kernel_size, dilation, padding, stride))


class PixelShuffle(Module):
    """nn.functional.pixel_shuffle."""

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, x):
        return pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """nn.functional.pixel_unshuffle."""

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, x):
        return pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(Module):
    """nn.functional.channel_shuffle."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x):
        return channel_shuffle(x, self.groups)


class Unfold(Module):
    """nn.functional.unfold."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.options = kernel_size, dilation, padding, stride

    def forward(self, x):
        return unfold(x, *self.options)


class Fold(Module):
    """nn.functional.fold."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size, self.options = output_size, (kernel_size, dilation, padding, stride)

    def forward(self, x):
        return fold(x, self.output_size, *self.options)


class Unflatten(Module):
    """One axis as several: the inverse of Flatten."""

    def __init__(self, dim, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x):
        dim = self.dim % x.ndim
        return x.reshape(*x.shape[:dim], *self.unflattened_size, *x.shape[dim + 1 :])
