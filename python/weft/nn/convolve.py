# SPDX-License-Identifier: Apache-2.0
"""Convolutions of rows, images and volumes with torch's parameters; rows and volumes by those of images."""

from __future__ import annotations

import weft

from .._core import shown as _shown
from .._core import conv2d as _conv2d, conv_transpose2d as _conv_transpose2d
from .._errors import error as _error
from .pooling import _each

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]


def _ranks(name, x, weight, n):
    if x.ndim != n or weight.ndim != n:
        axes = "(n, c, length)" if n == 3 else "(n, c, d, h, w)"
        raise _error(
            weft.ShapeError,
            f"nn.{name}.shape",
            f"{name} of shape {x.shape} with weights {weight.shape}",
            note=f"rule: {axes} with weights of {n} dimensions",
        )


def _add_bias(name, y, bias):
    """y plus one number for each channel; None adds nothing."""
    if bias is None:
        return y
    if not isinstance(bias, (weft.Tensor, weft.NDArray)):
        raise _error(
            weft.DTypeError,
            f"nn.{name}.bias",
            f"{name} takes a bias of one number for each channel, or None, and got {_shown(bias)}",
            help=f"{name}(x, weight, stride=...): the third argument is the bias",
        )
    if tuple(bias.shape) != (y.shape[1],):
        raise _error(
            weft.ShapeError,
            f"nn.{name}.bias",
            f"{name} of {y.shape[1]} channels and a bias of shape {tuple(bias.shape)}",
        )
    return y + bias.reshape((-1,) + (1,) * (y.ndim - 2))


def _one(value):
    return value[0] if isinstance(value, (tuple, list)) else value


def borders(padding, kernel, dilation):
    """(before, after) for each axis; "same" keeps the size at stride 1 (an odd border has its greater part behind), "valid" is none."""
    if padding is None or isinstance(padding, str) and padding not in ("same", "valid"):
        raise _error(
            weft.ArgumentError,
            "nn.conv.padding",
            f"padding is {_shown(padding)}",
            ['legal: numbers, "same", "valid"'],
        )
    if padding == "same":
        return [(d * (k - 1) // 2, (d * (k - 1) + 1) // 2) for k, d in zip(kernel, dilation)]
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    return [(p, p) for p in _each(padding, len(kernel))]


def _bordered(x, weight, padding, dilation):
    """x and the border in numbers; what one side has more than the other is put around x here."""
    if not isinstance(padding, str):
        return x, padding
    kernel = weight.shape[2:]
    pairs = borders(padding, kernel, _each(dilation, len(kernel)))
    if any(a != b for a, b in pairs):
        x = weft.pad(x, [(0, 0), (0, 0), *((0, b - a) for a, b in pairs)])
    return x, tuple(a for a, _ in pairs)


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """x (n, c, length) with weight (o, c / groups, k)."""
    _ranks("conv1d", x, weight, 3)
    x, padding = _bordered(x, weight, padding, dilation)
    options = ((1, _one(stride)), (0, _one(padding)), (1, _one(dilation)), groups)
    y = _conv2d(x.unsqueeze(2), weight.unsqueeze(2), *options).squeeze(2)
    return _add_bias("conv1d", y, bias)


def conv_transpose1d(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """The transpose of conv1d: x (n, c, length) with weight (c, o / groups, k)."""
    _ranks("conv_transpose1d", x, weight, 3)
    pairs = [(a, _one(v)) for a, v in zip((1, 0, 0), (stride, padding, output_padding))]
    y = _conv_transpose2d(x.unsqueeze(2), weight.unsqueeze(2), *pairs, groups, (1, _one(dilation)))
    return _add_bias("conv_transpose1d", y.squeeze(2), bias)


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """x (n, c, h, w) with weight (o, c / groups, kh, kw) and bias (o,). Options: a number or (rows, columns); padding also "same" or "valid"."""
    x, padding = _bordered(x, weight, padding, dilation)
    return _add_bias("conv2d", _conv2d(x, weight, stride, padding, dilation, groups), bias)


def conv_transpose2d(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """The transpose of conv2d: x (n, c, h, w) with weight (c, o / groups, kh, kw) and bias (o,)."""
    y = _conv_transpose2d(x, weight, stride, padding, output_padding, groups, dilation)
    return _add_bias("conv_transpose2d", y, bias)


def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """x (n, c, d, h, w) with weight (o, c / groups, kd, kh, kw): slices convolved as images, kd of them added up."""
    _ranks("conv3d", x, weight, 5)
    x, padding = _bordered(x, weight, padding, dilation)
    stride, padding, dilation = (_each(v, 3) for v in (stride, padding, dilation))
    n, c, depth, h, w = x.shape
    taps = weight.shape[2]
    if padding[0]:
        x = weft.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (0, 0), (0, 0)])
    count = (depth + 2 * padding[0] - dilation[0] * (taps - 1) - 1) // stride[0] + 1
    if count < 1:
        raise _error(
            weft.ShapeError,
            "nn.conv3d.shape",
            f"conv3d of a depth of {depth} with a border of {padding[0]} and {taps} taps {dilation[0]} apart",
            help="pad more, dilate less, or use a smaller kernel",
        )
    total = None
    for k in range(taps):
        first = k * dilation[0]
        part = x[:, :, first : first + (count - 1) * stride[0] + 1 : stride[0]]
        images = part.permute(0, 2, 1, 3, 4).reshape(n * count, c, h, w)
        y = _conv2d(images, weight[:, :, k], stride[1:], padding[1:], dilation[1:], groups)
        total = y if total is None else total + y
    total = total.reshape(n, count, *total.shape[1:]).permute(0, 2, 1, 3, 4)
    return _add_bias("conv3d", total, bias)


def conv_transpose3d(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """The transpose of conv3d: x (n, c, d, h, w) with weight (c, o / groups, kd, kh, kw)."""
    _ranks("conv_transpose3d", x, weight, 5)
    stride, padding, extra, dilation = (
        _each(v, 3) for v in (stride, padding, output_padding, dilation)
    )
    n, c, depth, h, w = x.shape
    taps, (s, p, d) = weight.shape[2], (stride[0], padding[0], dilation[0])
    size = (depth - 1) * s + d * (taps - 1) + 1 + extra[0]
    images = x.permute(0, 2, 1, 3, 4).reshape(n * depth, c, h, w)
    total = None
    for k in range(taps):
        options = stride[1:], padding[1:], extra[1:], groups, dilation[1:]
        y = _conv_transpose2d(images, weight[:, :, k], *options)
        y = y.reshape(n, depth, 1, *y.shape[1:])
        # Slices s apart: s - 1 slices of zeros behind each, those of the last cut off.
        y = weft.pad(y, [(0, 0), (0, 0), (0, s - 1)] + [(0, 0)] * 3)
        y = y.reshape(n, depth * s, *y.shape[3:])[:, : (depth - 1) * s + 1]
        behind = size - k * d - y.shape[1]
        y = weft.pad(y, [(0, 0), (k * d, behind)] + [(0, 0)] * 3)
        total = y if total is None else total + y
    return _add_bias("conv_transpose3d", total[:, p : size - p].permute(0, 2, 1, 3, 4), bias)
