# SPDX-License-Identifier: Apache-2.0
"""Images read between their elements and beyond their borders: grid_sample, and gradients of borders and other sizes."""

from __future__ import annotations

import math

import weft

from ... import _core
from ...nn import resampling
from .common import HALVES, Unsupported, array, as_type, gradient

_ZEROS, _BORDER = 0, 1


def _place(x, n, align):
    """Coordinates from -1 to 1 as positions along an axis of n elements."""
    return (x + 1.0) * ((n - 1) / 2) if align else ((x + 1.0) * n - 1.0) * 0.5


def _grid_sampler(x, grid, mode, border, align):
    n, channels, h, w = x.shape
    column, line = _place(grid[..., 0], w, align), _place(grid[..., 1], h, align)
    if border == _BORDER:
        column, line = weft.clip(column, 0.0, w - 1.0), weft.clip(line, 0.0, h - 1.0)
    image = weft.arange(n, device=x.device).reshape((n, 1, 1))

    def at(column, line, weight):
        inside = (column >= 0) & (column <= w - 1) & (line >= 0) & (line <= h - 1)
        places = [weft.clip(v, 0, m - 1).astype("int64") for v, m in ((line, h), (column, w))]
        found = x.permute((0, 2, 3, 1))[image, places[0], places[1]]
        return found * (weight * inside.astype(grid.dtype)).reshape((*inside.shape, 1))

    whole = lambda v: weft.floor(v.data if isinstance(v, weft.Tensor) else v)  # noqa: E731
    if mode == 1:
        near = [weft.round(v.data if isinstance(v, weft.Tensor) else v) for v in (column, line)]
        total = at(*near, weft.ones_like(near[0]))
    else:
        left, top = whole(column), whole(line)
        right, low = column - left, line - top
        total = (
            at(left, top, (1.0 - right) * (1.0 - low))
            + at(left + 1, top, right * (1.0 - low))
            + at(left, top + 1, (1.0 - right) * low)
            + at(left + 1, top + 1, right * low)
        )
    return total.permute((0, 3, 1, 2))


def _refuse(c, x, mode, border):
    if mode not in (0, 1) or border not in (_ZEROS, _BORDER) or not math.prod(c.shape) or not x.size:  # fmt: skip
        raise Unsupported("samples by cubic curves, or reflected at the border")
    if c.dtype in HALVES:
        raise Unsupported("samples of 16-bit floats")


@array("grid_sampler_2d.default")
def _sample(c, x, grid, mode, border, align):
    _refuse(c, x, mode, border)
    return _grid_sampler(x, grid, mode, border, align)


@array("grid_sampler_2d_backward.default")
def _sample_backward(c, g, x, grid, mode, border, align, wanted):
    _refuse(c, x, mode, border)
    given = [_core.Tensor(a, requires_grad=need) for a, need in zip((x, grid), wanted)]
    asked = [t for t, need in zip(given, wanted) if need]
    with weft.enable_grad():
        term = _grid_sampler(*given, mode, border, align) * _core.Tensor(g, requires_grad=False)
        found = iter(_core.gradients([term], asked, False))
    return [as_type(next(found).data, t) if need else None for need, t in zip(wanted, c.dtypes)]


def _border_backward(mode):
    def rule(c, g, x, widths):
        if not x.size or not g.size:
            raise Unsupported("a border without elements")
        return gradient(c, lambda x: resampling.pad(x, tuple(widths), mode), g, x)

    return rule


for _n in (1, 2, 3):
    array(f"replication_pad{_n}d_backward.default")(_border_backward("replicate"))
    array(f"reflection_pad{_n}d_backward.default")(_border_backward("reflect"))
