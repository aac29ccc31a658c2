# SPDX-License-Identifier: Apache-2.0
"""Convolutions along one, two or three axes and their transposes."""

from __future__ import annotations

import math

import weft

from .._core import shown as _shown
from .. import init
from .._errors import error as _error
from . import functional as F
from .convolve import borders
from .module import Module, Parameter
from .pooling import _each
from .resampling import pad


class _Conv(Module):
    """Weight and bias of a convolution over `spatial` axes."""

    spatial, transposed = 2, False

    def _prepare(self, channels, kernel, groups, bias, device, dtype):
        in_channels, out_channels = channels
        self.in_channels, self.out_channels = channels
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise _error(
                weft.ShapeError,
                "nn.conv.groups",
                f"{in_channels} channels in and {out_channels} out do not divide into {groups} groups",
                help="choose a number of groups that divides both",
            )
        area = math.prod(kernel)
        fan_in = (out_channels if self.transposed else in_channels) // groups * area
        first, second = channels if self.transposed else channels[::-1]
        make = {"dtype": dtype, "device": device}
        shape = (first, second // groups, *kernel)
        self.weight = Parameter(init.kaiming_uniform(fan_in, out_channels, shape=shape, **make))
        bound = 1.0 / math.sqrt(fan_in)
        self.bias = None
        if bias:
            self.bias = Parameter(init.rand(out_channels, low=-bound, high=bound, **make))

    def _add_bias(self, y):
        if self.bias is None:
            return y
        # Inside autocast the product decides the type.
        bias = self.bias if y.dtype.itemsize >= 4 else self.bias.astype(y.dtype)
        return y + bias.reshape(1, -1, *(1,) * self.spatial)


class _Forward(_Conv):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__()
        kernel, self.dilation = _each(kernel_size, self.spatial), _each(dilation, self.spatial)
        self.stride, self.groups = _each(stride, self.spatial), groups
        self._borders = borders(padding, kernel, self.dilation)
        self.padding = padding if isinstance(padding, str) else _each(padding, self.spatial)
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise _error(
                weft.ArgumentError,
                "nn.conv.padding_mode",
                f"no padding_mode is called {_shown(padding_mode)}",
                ['legal: "zeros", "reflect", "replicate", "circular"'],
            )
        self.padding_mode = padding_mode
        self._prepare((in_channels, out_channels), kernel, groups, bias, device, dtype)

    def forward(self, x):
        padding = self.padding
        if self.padding_mode != "zeros":
            x = pad(x, [p for pair in reversed(self._borders) for p in pair], self.padding_mode)
            padding = (0,) * self.spatial
        function = getattr(F, f"conv{self.spatial}d")
        return self._add_bias(
            function(x, self.weight, None, self.stride, padding, self.dilation, self.groups)
        )


class Conv2d(_Forward):
    """Convolution of (n, c, h, w).

    kernel_size, stride, padding and dilation are one number or (rows, columns); padding may be "same" or "valid".
    padding_mode: "zeros", "reflect", "replicate", "circular". Raises ShapeError for groups that do not divide the
    channels, ArgumentError for other options.
    """


class Conv1d(_Forward):
    """Convolution of (n, c, length). Options as Conv2d's."""

    spatial = 1


class Conv3d(_Forward):
    """Convolution of (n, c, d, h, w). Options as Conv2d's."""

    spatial = 3


class _Backward(_Conv):
    transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__()
        if padding_mode != "zeros":
            raise _error(
                weft.ArgumentError,
                "nn.conv.padding_mode",
                f"a transposed convolution with padding_mode {_shown(padding_mode)}",
                ['legal: "zeros"'],
            )
        self.stride, self.padding, self.output_padding = (
            _each(v, self.spatial) for v in (stride, padding, output_padding)
        )
        self.groups, self.dilation = groups, _each(dilation, self.spatial)
        kernel = _each(kernel_size, self.spatial)
        self._prepare((in_channels, out_channels), kernel, groups, bias, device, dtype)

    def forward(self, x):
        function = getattr(F, f"conv_transpose{self.spatial}d")
        options = self.stride, self.padding, self.output_padding, self.groups, self.dilation
        return self._add_bias(function(x, self.weight, None, *options))


class ConvTranspose2d(_Backward):
    """The transpose of Conv2d: (n, c, h, w) to (n, o, (h - 1) stride + kernel - 2 padding, ...)."""


class ConvTranspose1d(_Backward):
    """The transpose of Conv1d."""

    spatial = 1


class ConvTranspose3d(_Backward):
    """The transpose of Conv3d."""

    spatial = 3
