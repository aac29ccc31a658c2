# SPDX-License-Identifier: Apache-2.0
"""Convolutions of rows, images and volumes, and their gradients."""

from __future__ import annotations

import weft

from ... import _core
from ...nn.convolve import conv3d, conv_transpose3d
from .common import HALVES, Unsupported, array, as_type


def _pair(values, lead):
    """Options of one or two axes as pairs; a row is an image of height 1."""
    values = list(values)
    return (lead, values[0]) if len(values) == 1 else tuple(values)


def _convolve(x, w, options):
    """The convolution of tensors of weft: (n, c, ...) with (o, c / groups, ...)."""
    stride, padding, dilation, transposed, extra, groups = options
    if len(stride) == 3:
        if transposed:
            return conv_transpose3d(x, w, None, stride, padding, extra, groups, dilation)
        return conv3d(x, w, None, stride, padding, dilation, groups)
    if transposed:
        return _core.conv_transpose2d(x, w, stride, padding, extra, groups, dilation)
    return _core.conv2d(x, w, stride, padding, dilation, groups)


def _prepared(x, w, stride, padding, dilation, transposed, output_padding, groups):
    axes = len(stride)
    if x.ndim != axes + 2:
        raise Unsupported("convolution without a batch")
    if not x.size or not w.size:
        raise Unsupported("convolution without elements")
    options = (
        _pair(stride, 1),
        _pair(padding, 0),
        _pair(dilation, 1),
        transposed,
        _pair(output_padding, 0),
        groups,
    )
    widen = (lambda a: a.reshape((*a.shape[:2], 1, a.shape[2]))) if axes == 1 else (lambda a: a)
    return widen, options


def _constant(a):
    return _core.Tensor(a, requires_grad=False)


def _in_single(*arrays):
    """16-bit floats in float32, where the kernels do not keep sums in float32: on devices without a grid."""
    if str(arrays[0].dtype) not in HALVES or _core._has_grid(arrays[0]):
        return arrays
    return tuple(a.astype("float32") for a in arrays)


@array("convolution.default")
def _convolution(c, x, w, bias, *options):
    if c.kept is None:
        c.kept = _prepared(x, w, *options)
    widen, options = c.kept
    if options[3] or len(options[0]) == 3:  # windows or slices add up: rounded once, as in torch
        x, w = _in_single(x, w)
        y = _convolve(_constant(widen(x)), _constant(widen(w)), options).data
    else:
        y = _core._convolution(widen(x), widen(w), *options[:3], options[5])
    y = y.reshape(c.shape)
    y = y if bias is None else y + bias.reshape((1, -1, *(1,) * (y.ndim - 2)))
    return as_type(y, c.dtype)


def _gradients(g, x, w, wanted, options):
    """Gradients of image and weights, each where it is wanted."""
    with weft.enable_grad():
        if len(options[0]) == 2:
            return _core._convolution_gradients(g, x, w, *wanted, *options)
        given = [_core.Tensor(a, requires_grad=need) for a, need in zip((x, w), wanted)]
        term = _convolve(*given, options) * _constant(g)
        found = _core.gradients([term], [t for t, need in zip(given, wanted) if need], False)
        found = iter(found)
        return [next(found).data if need else None for need in wanted]


@array("convolution_backward.default")
def _convolution_backward(c, g, x, w, bias_sizes, *options):
    *options, wanted = options
    if c.kept is None:
        c.kept = _prepared(x, w, *options)
    widen, options = c.kept
    dx = dw = db = None
    g, x, w = _in_single(g, x, w)
    if wanted[0] or wanted[1]:
        dx, dw = _gradients(*map(widen, (g, x, w)), list(map(bool, wanted[:2])), options)
    if wanted[2]:
        db = g.sum((0, *range(2, g.ndim)))
    shaped = lambda d, like: None if d is None else d.reshape(like.shape)  # noqa: E731
    found = shaped(dx, x), shaped(dw, w), db
    return [None if d is None else as_type(d, t) for d, t in zip(found, c.dtypes)]
