# SPDX-License-Identifier: Apache-2.0
"""Images read between their elements and beyond their borders: grid_sample, and gradients of borders and other sizes."""

from __future__ import annotations

import math

import weft

from ... import _core
from ...nn import resampling
from ...nn.sampling import grid_sample
from .common import HALVES, Unsupported, array, as_type, gradient

_MODES, _BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _array(x):
    """The values of an array or tensor, without history."""
    return x.data if isinstance(x, weft.Tensor) else x


def _read(read, line, column, h, w, weight):
    """read(lines, columns) times a weight where the position is inside of h x w, else zero; channels are last."""
    inside = (column >= 0) & (column <= w - 1) & (line >= 0) & (line <= h - 1)
    lines, columns = (weft.clip(v, 0, m - 1).astype("int64") for v, m in ((line, h), (column, w)))
    factor = weight * inside.astype(weight.dtype)
    return read(lines, columns) * factor.reshape((*factor.shape, 1))


def _between_elements(read, line, column, h, w):
    """The four elements around each position, weighted by how near they are."""
    left, top = weft.floor(_array(column)), weft.floor(_array(line))
    right, low = column - left, line - top
    return (
        _read(read, top, left, h, w, (1.0 - right) * (1.0 - low))
        + _read(read, top, left + 1, h, w, right * (1.0 - low))
        + _read(read, top + 1, left, h, w, (1.0 - right) * low)
        + _read(read, top + 1, left + 1, h, w, right * low)
    )


def _refuse(c, x):
    shapes = [s for s in c.shapes if s is not None]
    if not all(map(math.prod, shapes)) or not x.size:
        raise Unsupported("samples without elements")
    if str(x.dtype) in HALVES:
        raise Unsupported("samples of 16-bit floats")


def _sampler(mode, border, align):
    """A function of tensors (images or volumes, places)."""
    return lambda x, grid: grid_sample(x, grid, _MODES[mode], _BORDERS[border], align)


@array("grid_sampler_2d.default", "grid_sampler_3d.default", "_grid_sampler_2d_cpu_fallback.default")  # fmt: skip
def _sample(c, x, grid, mode, border, align):
    _refuse(c, x)
    return _sampler(mode, border, align)(x, grid)


def _gradients(c, g, function, arrays, wanted):
    """The gradients that weft derives of a function of several arrays; None for those that are not wanted."""
    given = [_core.Tensor(a, requires_grad=need) for a, need in zip(arrays, wanted)]
    asked = [t for t, need in zip(given, wanted) if need]
    with weft.enable_grad():
        term = function(*given) * _core.Tensor(g, requires_grad=False)
        found = iter(_core.gradients([term], asked, False))
    return [as_type(next(found).data, t) if need else None for need, t in zip(wanted, c.dtypes)]


@array("grid_sampler_2d_backward.default", "grid_sampler_3d_backward.default")
def _sample_backward(c, g, x, grid, mode, border, align, wanted):
    _refuse(c, x)
    if _MODES[mode] != "nearest":
        return _gradients(c, g, _sampler(mode, border, align), (x, grid), wanted)
    # The nearest element does not move with the place.
    (found,) = _gradients(c, g, lambda x: _sampler(mode, border, align)(x, grid), (x,), (True,))
    return found if wanted[0] else None, weft.zeros_like(grid) if wanted[1] else None


class _Deformable:
    """torchvision's convolution whose windows read between the elements, at places moved by offsets."""

    def __init__(self, c, x, weight, offset, stride, pad, dilation, groups, offset_groups):
        if not all(a.size for a in (x, weight, offset)) or str(x.dtype) in HALVES:
            raise Unsupported("a deformable convolution without elements, or of 16-bit floats")
        self.stride, self.pad, self.dilation = stride, pad, dilation
        self.groups, self.offset_groups = groups, offset_groups
        self.kernel, self.out = weight.shape[2:], offset.shape[2:]
        self.device = x.device

    def places(self, axis, moved):
        """Positions along an axis: of the windows, moved; (images, offset groups, taps, *out)."""
        taps, out = self.kernel[axis], self.out[axis]
        grid = lambda n: weft.arange(n, device=self.device)  # noqa: E731
        tap = (grid(taps) * self.dilation[axis]).reshape((taps, 1) if axis == 0 else (1, taps))
        tap = tap.broadcast_to(tuple(self.kernel)).reshape((-1, 1, 1))
        first = grid(out) * self.stride[axis] - self.pad[axis]
        return moved + (tap + first.reshape((out, 1) if axis == 0 else (1, out))).astype(
            moved.dtype
        )

    def __call__(self, x, weight, offset, mask, bias):
        n, channels, h, w = x.shape
        k, (oh, ow) = math.prod(self.kernel), self.out
        moved = offset.reshape((n, self.offset_groups, k, 2, oh, ow))
        line, column = (self.places(axis, moved[:, :, :, axis]) for axis in (0, 1))
        image = weft.arange(n, device=self.device).reshape((n, 1, 1, 1, 1))
        group = weft.arange(self.offset_groups, device=self.device).reshape((1, -1, 1, 1, 1))
        pixels = x.reshape((n, self.offset_groups, channels // self.offset_groups, h, w)).permute((0, 1, 3, 4, 2))  # fmt: skip
        read = lambda lines, columns: pixels[image, group, lines, columns]  # noqa: E731
        found = _between_elements(read, line, column, h, w)
        if mask is not None:
            found = found * mask.reshape((n, self.offset_groups, k, oh, ow, 1))
        # (images, groups, channels of a group x taps, places)
        found = found.permute((0, 1, 5, 2, 3, 4)).reshape((n, self.groups, -1, oh * ow))
        out = weight.reshape((1, self.groups, weight.shape[0] // self.groups, -1)) @ found
        return out.reshape((n, -1, oh, ow)) + bias.reshape((1, -1, 1, 1))


@array("deform_conv2d.default", space="torchvision")
def _deformed(c, x, weight, offset, mask, bias, sh, sw, ph, pw, dh, dw, groups, offset_groups, use_mask):  # fmt: skip
    run = _Deformable(c, x, weight, offset, (sh, sw), (ph, pw), (dh, dw), groups, offset_groups)
    return run(x, weight, offset, mask if use_mask else None, bias)


@array("_deform_conv2d_backward.default", space="torchvision")
def _deformed_backward(c, g, x, weight, offset, mask, bias, sh, sw, ph, pw, dh, dw, groups, offset_groups, use_mask):  # fmt: skip
    run = _Deformable(c, x, weight, offset, (sh, sw), (ph, pw), (dh, dw), groups, offset_groups)
    if use_mask:
        return _gradients(c, g, run, (x, weight, offset, mask, bias), [True] * 5)
    found = _gradients(c, g, lambda x, weight, offset, bias: run(x, weight, offset, None, bias), (x, weight, offset, bias), [True] * 4)  # fmt: skip
    return *found[:3], weft.zeros_like(mask), found[3]


def _border_backward(mode):
    def rule(c, g, x, widths):
        if not x.size or not g.size:
            raise Unsupported("a border without elements")
        return gradient(c, lambda x: resampling.pad(x, tuple(widths), mode), g, x)

    return rule


for _n in (1, 2, 3):
    array(f"replication_pad{_n}d_backward.default")(_border_backward("replicate"))
    array(f"reflection_pad{_n}d_backward.default")(_border_backward("reflect"))
