# SPDX-License-Identifier: Apache-2.0
import math

from needle import init, ops

from .nn_basic import Module, Parameter

__all__ = ["Conv"]


class Conv(Module):
    """(n, c, h, w), same size at stride 1; the weights are (k, k, in, out)."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        bias=True,
        device=None,
        dtype="float32",
    ):
        super().__init__()
        k = kernel_size[0] if isinstance(kernel_size, tuple) else kernel_size
        stride = stride[0] if isinstance(stride, tuple) else stride
        self.in_channels, self.out_channels, self.kernel_size, self.stride = (
            in_channels,
            out_channels,
            k,
            stride,
        )
        self.padding = k // 2
        area = k * k
        self.weight = Parameter(
            init.kaiming_uniform(
                in_channels * area,
                out_channels * area,
                shape=(k, k, in_channels, out_channels),
                device=device,
                dtype=dtype,
            )
        )
        bound = 1.0 / math.sqrt(in_channels * area)
        self.bias = (
            Parameter(init.rand(out_channels, low=-bound, high=bound, device=device, dtype=dtype))
            if bias
            else None
        )

    def forward(self, x):
        y = ops.conv(
            x.transpose((1, 2)).transpose((2, 3)),
            self.weight,
            stride=self.stride,
            padding=self.padding,
        )
        if self.bias is not None:
            y = y + self.bias.reshape((1, 1, 1, self.out_channels)).broadcast_to(y.shape)
        return y.transpose((2, 3)).transpose((1, 2))
