# SPDX-License-Identifier: Apache-2.0
"""Pooling of images, and its gradients."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import Unsupported, array, as_type


def _each(values, default=None):
    values = list(values) if values is not None and len(values) else list(default)
    return values * 2 if len(values) == 1 else values


def _windows(x, kernel, stride, padding, dilation, out, fill):
    """A view (n, c, oh, ow, kh, kw) of the image with its border."""
    need = [
        max((o - 1) * s + d * (k - 1) + 1 - n - p, 0)
        for o, s, d, k, n, p in zip(out, stride, dilation, kernel, x.shape[2:], padding)
    ]
    if any(padding) or any(need):
        border = [(0, 0), (0, 0), *zip(padding, need)]
        x = weft.pad(x, border, value=fill)
    n, ch, h, w = x.strides
    shape = (*x.shape[:2], *out, *kernel)
    steps = (n, ch, h * stride[0], w * stride[1], h * dilation[0], w * dilation[1])
    return x.as_strided(shape, steps)


def _image(x, shape):
    if x.ndim != 4 or not x.size or not math.prod(shape):
        raise Unsupported("pooling without a batch or without elements")


@array("max_pool2d_with_indices.default")
def _max_pool(c, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    _image(x, c.shape)
    if "float" not in c.dtype:
        raise Unsupported("pooling of integers")
    kernel = _each(kernel)
    stride, padding, dilation = _each(stride, kernel), _each(padding), _each(dilation)
    out = c.shape[2:]
    taps = _windows(x, kernel, stride, padding, dilation, out, -math.inf)
    taps = taps.reshape((*c.shape, kernel[0] * kernel[1]))
    best = _core._arg_reduce(True, taps, 4, True)
    # A window of nothing but -inf: its first tap inside the image.
    values = weft.take_along_axis(taps, best, axis=4).reshape(c.shape)
    best = best.reshape(c.shape)
    rows = weft.arange(out[0], device=x.device).reshape((-1, 1)) * stride[0] - padding[0]
    columns = weft.arange(out[1], device=x.device) * stride[1] - padding[1]
    y = rows + best // kernel[1] * dilation[0]
    z = columns + best % kernel[1] * dilation[1]
    return values, as_type(y * x.shape[3] + z, "int64")


@array("max_pool2d_with_indices_backward.default")
def _max_pool_backward(c, g, x, kernel, stride, padding, dilation, ceil_mode, indices):
    _image(x, g.shape)
    planes = x.shape[0] * x.shape[1]
    out = weft.zeros((planes, x.shape[2] * x.shape[3]), dtype=c.dtype, device=x.device)
    plane = weft.arange(planes, device=x.device).reshape((-1, 1))
    _core._scatter(out, [plane, indices.reshape((planes, -1))], g.reshape((planes, -1)), True)
    return out.reshape(c.shape)


@array("avg_pool2d.default")
def _avg_pool(c, x, kernel, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor=None):  # fmt: skip
    _image(x, c.shape)
    kernel = _each(kernel)
    stride, padding = _each(stride, kernel), _each(padding)
    if ceil_mode or (any(padding) and not count_include_pad) or "float" not in c.dtype:
        raise Unsupported("average pooling with these borders")
    taps = _windows(x, kernel, stride, padding, [1, 1], c.shape[2:], 0)
    total = weft.sum(taps, axis=(4, 5))
    return total * (1.0 / (divisor or kernel[0] * kernel[1]))


@array("avg_pool2d_backward.default")
def _avg_pool_backward(c, g, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    _image(x, g.shape)
    kernel = _each(kernel)
    stride, padding = _each(stride, kernel), _each(padding)
    if ceil_mode or (any(padding) and not count_include_pad) or "float" not in c.dtype:
        raise Unsupported("average pooling with these borders")
    g = g * (1.0 / (divisor or kernel[0] * kernel[1]))
    h, w = x.shape[2] + 2 * padding[0], x.shape[3] + 2 * padding[1]
    out = weft.zeros((*x.shape[:2], h, w), dtype=c.dtype, device=x.device)
    rows, columns = g.shape[2], g.shape[3]
    for i in range(kernel[0]):
        for k in range(kernel[1]):
            part = out[
                :, :, i : i + (rows - 1) * stride[0] + 1 : stride[0],
                k : k + (columns - 1) * stride[1] + 1 : stride[1],
            ]  # fmt: skip
            _core._assign(part, part + g)
    return out[:, :, padding[0] : h - padding[0], padding[1] : w - padding[1]]


@array("_adaptive_avg_pool2d.default")
def _adaptive(c, x, size):
    _image(x, c.shape)
    (h, w), (oh, ow) = x.shape[2:], size
    if h % oh or w % ow:
        raise Unsupported("adaptive pooling whose windows differ in size")
    parts = x.reshape((*x.shape[:2], oh, h // oh, ow, w // ow))
    return weft.mean(parts, axis=(3, 5))


@array("_adaptive_avg_pool2d_backward.default")
def _adaptive_backward(c, g, x):
    _image(x, g.shape)
    (h, w), (oh, ow) = x.shape[2:], g.shape[2:]
    if h % oh or w % ow:
        raise Unsupported("adaptive pooling whose windows differ in size")
    kh, kw = h // oh, w // ow
    spread = (g * (1.0 / (kh * kw))).reshape((*g.shape[:2], oh, 1, ow, 1))
    return spread.broadcast_to((*g.shape[:2], oh, kh, ow, kw)).reshape(x.shape)
