# SPDX-License-Identifier: Apache-2.0
"""Feed-forward layers, normalisation and losses."""

from __future__ import annotations

import math

import weft

from .. import init
from .._core import Tensor
from . import functional as F
from .module import Module, Parameter


class Identity(Module):
    def forward(self, x):
        return x


class Linear(Module):
    """x W + b."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(
            init.kaiming_uniform(in_features, out_features, dtype=dtype, device=device)
        )
        bound = 1.0 / math.sqrt(in_features)
        self.bias = (
            Parameter(init.rand(out_features, low=-bound, high=bound, dtype=dtype, device=device))
            if bias
            else None
        )

    def forward(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


class Conv2d(Module):
    """Convolution of (n, c, h, w); padding defaults to the same size at stride 1."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=None,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.stride = stride
        self.padding = (kernel_size - 1) // 2 if padding is None else padding
        fan_in = in_channels * kernel_size * kernel_size
        shape = (out_channels, in_channels, kernel_size, kernel_size)
        self.weight = Parameter(
            init.kaiming_uniform(fan_in, out_channels, shape=shape, dtype=dtype, device=device)
        )
        bound = 1.0 / math.sqrt(fan_in)
        self.bias = (
            Parameter(init.rand(out_channels, low=-bound, high=bound, dtype=dtype, device=device))
            if bias
            else None
        )

    def forward(self, x):
        y = F.conv2d(x, self.weight, self.stride, self.padding)
        return y if self.bias is None else y + self.bias.reshape(1, -1, 1, 1)


class _BatchNorm(Module):
    axes, shape = (0,), (1, -1)

    def __init__(self, dim, eps=1e-5, momentum=0.1, device=None, dtype=None):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = Parameter(init.ones(dim, dtype=dtype, device=device))
        self.bias = Parameter(init.zeros(dim, dtype=dtype, device=device))
        self.running_mean = weft.zeros((dim,), dtype=dtype, device=device)
        self.running_var = weft.ones((dim,), dtype=dtype, device=device)

    def forward(self, x):
        if self.training:
            mean = x.mean(self.axes, True)
            centred = x - mean
            var = (centred * centred).mean(self.axes, True)
            n = x.size / self.weight.size
            unbiased = var.data.reshape(-1) * (n / max(n - 1.0, 1.0))
            self.running_mean = (
                self.running_mean * (1 - self.momentum) + mean.data.reshape(-1) * self.momentum
            )
            self.running_var = self.running_var * (1 - self.momentum) + unbiased * self.momentum
        else:
            centred = x - self.running_mean.reshape(self.shape)
            var = Tensor(self.running_var.reshape(self.shape), requires_grad=False)
        y = centred * weft.rsqrt(var + self.eps)
        return y * self.weight.reshape(*self.shape) + self.bias.reshape(*self.shape)


class BatchNorm1d(_BatchNorm):
    """Normalises each feature of (n, features) over the batch."""


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of (n, c, h, w) over the batch."""

    axes, shape = (0, 2, 3), (1, -1, 1, 1)


class LayerNorm(Module):
    """Normalises the last axis."""

    def __init__(self, dim, eps=1e-5, device=None, dtype=None):
        super().__init__()
        self.eps = eps
        self.weight = Parameter(init.ones(dim, dtype=dtype, device=device))
        self.bias = Parameter(init.zeros(dim, dtype=dtype, device=device))

    def forward(self, x):
        centred = x - x.mean(-1, True)
        var = (centred * centred).mean(-1, True)
        return centred * weft.rsqrt(var + self.eps) * self.weight + self.bias


class Dropout(Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        return F.dropout(x, self.p, self.training)


class Embedding(Module):
    """Rows of a table by integers."""

    def __init__(self, num_embeddings, embedding_dim, device=None, dtype=None):
        super().__init__()
        self.weight = Parameter(
            init.randn(num_embeddings, embedding_dim, dtype=dtype, device=device)
        )

    def forward(self, index):
        return F.embedding(self.weight, index)


class ReLU(Module):
    def forward(self, x):
        return F.relu(x)


class GELU(Module):
    def forward(self, x):
        return F.gelu(x)


class Sigmoid(Module):
    def forward(self, x):
        return weft.sigmoid(x)


class Tanh(Module):
    def forward(self, x):
        return weft.tanh(x)


class Softmax(Module):
    def __init__(self, axis=-1):
        super().__init__()
        self.axis = axis

    def forward(self, x):
        return x.softmax(self.axis)


class Flatten(Module):
    """(n, ...) to (n, features)."""

    def forward(self, x):
        return x.reshape(x.shape[0], -1)


class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        self.layers = modules

    def forward(self, x):
        for m in self.layers:
            x = m(x)
        return x


class Residual(Module):
    """f(x) + x."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x


class CrossEntropyLoss(Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels)


class MSELoss(Module):
    def forward(self, x, y):
        return F.mse(x, y)
