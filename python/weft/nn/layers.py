# SPDX-License-Identifier: Apache-2.0
"""Feed-forward layers, normalisation and losses."""

from __future__ import annotations

import math

import weft

from .. import init
from .._core import Tensor
from .._errors import error as _error
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


def _pair(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def _padding(padding, kernel, dilation):
    """One width for each axis; None and "same" keep the size at stride 1, "valid" is none at all."""
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise _error(
            weft.ArgumentError,
            "nn.conv.padding",
            f"padding is {padding!r}",
            ['legal: numbers, "same", "valid", None (as "same")'],
        )
    if padding == "same" and any(d * (k - 1) % 2 for k, d in zip(kernel, dilation)):
        raise _error(
            weft.ArgumentError,
            "nn.conv.padding",
            f'padding "same" of a kernel {tuple(kernel)} would differ from side to side',
            help="an odd kernel, or weft.pad before a convolution without padding",
        )
    if padding is None or padding == "same":
        return tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation))
    if padding == "valid":
        return (0,) * len(kernel)
    return tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * len(kernel)


class _Conv(Module):
    """Weight and bias of a convolution; `spatial` axes of the kernel."""

    spatial, transposed = 2, False

    def _prepare(self, channels, kernel, groups, bias, device, dtype):
        in_channels, out_channels = channels
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise _error(
                weft.ShapeError,
                "nn.conv.groups",
                f"{in_channels} channels in and {out_channels} out do not divide into {groups} groups",
            )
        area = math.prod(kernel)
        fan_in = (out_channels if self.transposed else in_channels) // groups * area
        first, second = (
            (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        )
        self.weight = Parameter(
            init.kaiming_uniform(
                fan_in,
                out_channels,
                shape=(first, second // groups, *kernel),
                dtype=dtype,
                device=device,
            )
        )
        bound = 1.0 / math.sqrt(fan_in)
        self.bias = (
            Parameter(init.rand(out_channels, low=-bound, high=bound, dtype=dtype, device=device))
            if bias
            else None
        )

    def _add_bias(self, y):
        return y if self.bias is None else y + self.bias.reshape(1, -1, *(1,) * self.spatial)


class Conv2d(_Conv):
    """Convolution of (n, c, h, w); padding defaults to the same size at stride 1.

    kernel_size, stride, padding and dilation are one number or (rows, columns).
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=None,
        dilation=1,
        groups=1,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        kernel, self.dilation = _pair(kernel_size), _pair(dilation)
        self.stride, self.groups = _pair(stride), groups
        self.padding = _padding(padding, kernel, self.dilation)
        self._prepare((in_channels, out_channels), kernel, groups, bias, device, dtype)

    def forward(self, x):
        return self._add_bias(
            F.conv2d(x, self.weight, self.stride, self.padding, self.dilation, self.groups)
        )


class Conv1d(_Conv):
    """Convolution of (n, c, length); padding defaults to the same length at stride 1."""

    spatial = 1

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=None,
        dilation=1,
        groups=1,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.stride, self.dilation, self.groups = stride, dilation, groups
        (self.padding,) = _padding(padding, (kernel_size,), (dilation,))
        self._prepare((in_channels, out_channels), (kernel_size,), groups, bias, device, dtype)

    def forward(self, x):
        return self._add_bias(
            F.conv1d(x, self.weight, self.stride, self.padding, self.dilation, self.groups)
        )


class ConvTranspose2d(_Conv):
    """The transpose of Conv2d: (n, c, h, w) to (n, o, (h - 1) stride + kernel - 2 padding, ...)."""

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
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.stride, self.padding, self.output_padding = stride, padding, output_padding
        self.groups, self.dilation = groups, dilation
        self._prepare((in_channels, out_channels), _pair(kernel_size), groups, bias, device, dtype)

    def forward(self, x):
        return self._add_bias(
            F.conv_transpose2d(
                x,
                self.weight,
                self.stride,
                self.padding,
                self.output_padding,
                self.groups,
                self.dilation,
            )
        )


class ConvTranspose1d(_Conv):
    """The transpose of Conv1d."""

    spatial, transposed = 1, True

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
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.stride, self.padding, self.output_padding = stride, padding, output_padding
        self.groups, self.dilation = groups, dilation
        self._prepare((in_channels, out_channels), (kernel_size,), groups, bias, device, dtype)

    def forward(self, x):
        return self._add_bias(
            F.conv_transpose1d(
                x,
                self.weight,
                self.stride,
                self.padding,
                self.output_padding,
                self.groups,
                self.dilation,
            )
        )


class _BatchNorm(Module):
    ranks = (2, 3)

    def __init__(self, dim, eps=1e-5, momentum=0.1, affine=True, device=None, dtype=None):
        super().__init__()
        self.eps, self.momentum, self.features = eps, momentum, dim
        self.weight = self.bias = None
        if affine:
            self.weight = Parameter(init.ones(dim, dtype=dtype, device=device))
            self.bias = Parameter(init.zeros(dim, dtype=dtype, device=device))
        self.running_mean = weft.zeros((dim,), dtype=dtype, device=device)
        self.running_var = weft.ones((dim,), dtype=dtype, device=device)

    def forward(self, x):
        if x.ndim not in self.ranks or x.shape[1] != self.features:
            raise _error(
                weft.ShapeError,
                "nn.batch_norm.shape",
                f"{type(self).__name__} of {self.features} features got shape {x.shape}",
                note=f"rule: {' or '.join(map(str, self.ranks))} dimensions, features along axis 1",
            )
        axes, shape = (0, *range(2, x.ndim)), (1, -1, *(1,) * (x.ndim - 2))
        if self.training:
            mean = x.mean(axes, True)
            centred = x - mean
            var = (centred * centred).mean(axes, True)
            n = x.size / self.features
            unbiased = var.data.reshape(-1) * (n / max(n - 1.0, 1.0))
            self.running_mean = (
                self.running_mean * (1 - self.momentum) + mean.data.reshape(-1) * self.momentum
            )
            self.running_var = self.running_var * (1 - self.momentum) + unbiased * self.momentum
        else:
            centred = x - self.running_mean.reshape(shape)
            var = Tensor(self.running_var.reshape(shape), requires_grad=False)
        scale = weft.rsqrt(var + self.eps)
        if self.weight is None:
            return centred * scale
        return centred * (scale * self.weight.reshape(*shape)) + self.bias.reshape(*shape)


class BatchNorm1d(_BatchNorm):
    """Normalises each feature of (n, features) or (n, features, length) over the batch."""


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of (n, c, h, w) over the batch."""

    ranks = (4,)


class LayerNorm(Module):
    """Normalises the last axis, or the last axes when `dim` is a sequence of their extents."""

    def __init__(self, dim, eps=1e-5, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.eps, self.shape = eps, tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
        self.weight = self.bias = None
        if elementwise_affine:
            self.weight = Parameter(init.ones(*self.shape, dtype=dtype, device=device))
            self.bias = Parameter(init.zeros(*self.shape, dtype=dtype, device=device))

    def forward(self, x):
        return F.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class Dropout(Module):
    """Zeroes each element with probability p while training and scales the others by 1 / (1 - p)."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0 <= p <= 1:
            raise _error(
                weft.ArgumentError,
                "nn.dropout.p",
                f"dropout with probability {p}",
                ["legal: 0 to 1"],
            )
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
    """x where positive, else 0. `inplace` is taken as PyTorch's word and changes nothing: results are new."""

    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, x):
        return F.relu(x)


class GELU(Module):
    """x times the normal distribution function of x; approximate="tanh" takes the tanh formula."""

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, x):
        return F.gelu(x, self.approximate)


class SiLU(Module):
    """x sigmoid(x)."""

    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, x):
        return F.silu(x)


class LeakyReLU(Module):
    """x where positive, else slope times x."""

    def __init__(self, slope=0.01, negative_slope=None):
        super().__init__()
        self.slope = slope if negative_slope is None else negative_slope

    def forward(self, x):
        return F.leaky_relu(x, self.slope)


class ELU(Module):
    """x where positive, else alpha (exp(x) - 1)."""

    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return F.elu(x, self.alpha)


class Softplus(Module):
    """log(1 + exp(beta x)) / beta."""

    def __init__(self, beta=1.0):
        super().__init__()
        self.beta = beta

    def forward(self, x):
        return F.softplus(x, self.beta)


class MaxPool2d(Module):
    """The largest value of each window."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x):
        return F.max_pool2d(x, self.kernel_size, self.stride, self.padding)


class AvgPool2d(Module):
    """The mean of each window."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x):
        return F.avg_pool2d(x, self.kernel_size, self.stride, self.padding)


class AdaptiveAvgPool2d(Module):
    """Means over equal windows, as many as output_size says."""

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, x):
        return F.adaptive_avg_pool2d(x, self.output_size)


class Sigmoid(Module):
    def forward(self, x):
        return weft.sigmoid(x)


class Tanh(Module):
    def forward(self, x):
        return weft.tanh(x)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along an axis; `dim` is PyTorch's name of it."""

    def __init__(self, axis=-1, dim=None):
        super().__init__()
        self.axis = axis if dim is None else dim

    def forward(self, x):
        return x.softmax(self.axis)


class LogSoftmax(Softmax):
    """x - log(sum(exp(x))) along an axis."""

    def forward(self, x):
        return x.log_softmax(self.axis)


class Flatten(Module):
    """(n, ...) to (n, features), or the axes from start_dim to end_dim as one."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x):
        return x.flatten(self.start_dim, self.end_dim)


class Sequential(Module):
    """Modules called one after another; inside names they are "0", "1", ..."""

    _nameless = "layers"

    def __init__(self, *modules):
        super().__init__()
        self.layers = modules

    def forward(self, x):
        for m in self.layers:
            x = m(x)
        return x

    def __len__(self):
        return len(self.layers)

    def __iter__(self):
        return iter(self.layers)

    def __getitem__(self, index):
        got = self.layers[index]
        return Sequential(*got) if isinstance(index, slice) else got

    def append(self, module):
        """One more at the end; returns the module."""
        self.layers = (*self.layers, module)
        return self


class ModuleList(Module):
    """Modules in a list whose parameters are found; it is not called itself."""

    _nameless = "items"

    def __init__(self, modules=()):
        super().__init__()
        self.items = list(modules)

    def append(self, module):
        """One more at the end; returns the list."""
        self.items.append(module)
        return self

    def extend(self, modules):
        """Some more at the end; returns the list."""
        self.items.extend(modules)
        return self

    __iadd__ = extend

    def insert(self, index, module):
        """One more before an index."""
        self.items.insert(index, module)

    def __setitem__(self, index, module):
        self.items[index] = module

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, index):
        got = self.items[index]
        return ModuleList(got) if isinstance(index, slice) else got


class Residual(Module):
    """f(x) + x."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x


class _Loss(Module):
    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction


class CrossEntropyLoss(_Loss):
    """nn.functional.cross_entropy."""

    def __init__(self, ignore_index=None, label_smoothing=0.0, reduction="mean", weight=None):
        super().__init__(reduction)
        self.ignore_index, self.label_smoothing, self.weight = ignore_index, label_smoothing, weight

    def forward(self, logits, labels):
        return F.cross_entropy(
            logits, labels, self.ignore_index, self.label_smoothing, self.reduction, self.weight
        )


class NLLLoss(_Loss):
    """nn.functional.nll_loss."""

    def forward(self, logits, labels):
        return F.nll_loss(logits, labels, None, self.reduction)


class MSELoss(_Loss):
    """nn.functional.mse_loss; with a mean, shapes may broadcast."""

    def forward(self, x, y):
        return F.mse(x, y) if self.reduction == "mean" else F.mse_loss(x, y, self.reduction)


class L1Loss(_Loss):
    """nn.functional.l1_loss."""

    def forward(self, x, y):
        return F.l1_loss(x, y, self.reduction)


class SmoothL1Loss(_Loss):
    """nn.functional.smooth_l1_loss."""

    def forward(self, x, y):
        return F.smooth_l1_loss(x, y, self.reduction)


class BCELoss(_Loss):
    """nn.functional.binary_cross_entropy."""

    def forward(self, x, y):
        return F.binary_cross_entropy(x, y, self.reduction)


class BCEWithLogitsLoss(_Loss):
    """nn.functional.binary_cross_entropy_with_logits."""

    def __init__(self, reduction="mean", pos_weight=None):
        super().__init__(reduction)
        self.pos_weight = pos_weight

    def forward(self, x, y):
        return F.binary_cross_entropy_with_logits(x, y, self.reduction, self.pos_weight)


class HuberLoss(_Loss):
    """nn.functional.huber_loss."""

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x, y):
        return F.huber_loss(x, y, self.reduction, self.delta)


class KLDivLoss(_Loss):
    """nn.functional.kl_div."""

    def forward(self, x, y):
        return F.kl_div(x, y, self.reduction)
