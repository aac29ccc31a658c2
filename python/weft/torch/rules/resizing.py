# SPDX-License-Identifier: Apache-2.0
"""Gradients of resized images. torch's compiler takes them apart; its eager mode asks for the operators themselves.

Resizing is a product with one matrix along each axis, so the gradient is the product with the transposes. The matrices are
what torch's own forward kernels make of unit vectors.
"""

from __future__ import annotations

import torch

from ..interop import from_torch
from .common import HALVES, array, as_type


def _matrix(function, n, size, scale, *options):
    """(size, n): the weights of the n elements of an axis in each of the `size` new ones."""
    return function(torch.eye(n, dtype=torch.float64)[None], [size], *options, scale)[0].T


def _cubic(rows, size, align_corners, scale):
    """Rows resized like the rows of an image of height 1."""
    resize = torch.ops.aten.upsample_bicubic2d.default
    return resize(rows[:, :, None], [1, *size], align_corners, None, scale)[:, :, 0]


def _transposed(c, g, function, input_size, output_size, scales, *options):
    found = g.astype("float32") if c.dtype in HALVES else g
    if c.kept is None:
        c.kept = [
            as_type(from_torch(_matrix(function, n, m, scale, *options).contiguous()), str(found.dtype)).to(g.device)
            for n, m, scale in zip(input_size[2:], output_size, scales or [None] * len(output_size))
        ]  # fmt: skip
    for axis, matrix in enumerate(c.kept, 2):
        order = [a for a in range(found.ndim) if a != axis] + [axis]
        back = [order.index(a) for a in range(found.ndim)]
        found = (found.permute(order) @ matrix).permute(back)
    return as_type(found, c.dtype)


@array(*(f"upsample_{kind}_backward.default" for kind in ("linear1d", "bilinear2d", "trilinear3d")))
def _linear(c, g, output_size, input_size, align_corners, *scales):
    function = torch.ops.aten.upsample_linear1d.default
    return _transposed(c, g, function, input_size, output_size, scales, align_corners)


@array("upsample_bicubic2d_backward.default")
def _bicubic(c, g, output_size, input_size, align_corners, *scales):
    return _transposed(c, g, _cubic, input_size, output_size, scales, align_corners)


@array(*(f"upsample_nearest{n}d_backward.default" for n in (1, 2, 3)))
def _nearest(c, g, output_size, input_size, *scales):
    function = torch.ops.aten.upsample_nearest1d.default
    return _transposed(c, g, function, input_size, output_size, scales)


@array(*(f"_upsample_nearest_exact{n}d_backward.default" for n in (1, 2, 3)))
def _nearest_exact(c, g, output_size, input_size, *scales):
    function = torch.ops.aten._upsample_nearest_exact1d.default
    return _transposed(c, g, function, input_size, output_size, scales)
