# SPDX-License-Identifier: Apache-2.0
"""Functions that layers are made of."""

from __future__ import annotations

import math

import weft

from .. import _core
from .._core import Tensor, conv2d, conv_transpose2d
from .._errors import error as _error
from . import activations as _activations
from . import losses as _losses
from .activations import *  # noqa: F401,F403
from .groups import group_norm
from .losses import *  # noqa: F401,F403
from .resampling import interpolate, pad, pixel_shuffle

__all__ = [
    *_losses.__all__,
    *_activations.__all__,
    "batch_norm",
    "group_norm",
    "interpolate",
    "layer_norm",
    "pad",
    "pixel_shuffle",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "relu",
    "gelu",
    "silu",
    "leaky_relu",
    "elu",
    "softplus",
    "sigmoid",
    "tanh",
    "softmax",
    "log_softmax",
    "linear",
    "one_hot",
    "normalize",
    "cosine_similarity",
    "embedding",
    "max_pool2d",
    "avg_pool2d",
    "adaptive_avg_pool2d",
    "attention",
    "scaled_dot_product_attention",
    "dropout",
]

relu = _core.operations["relu"]


def _as_images(name, x, weight):
    """(n, c, length) and (o, c, k) as images of one row."""
    if x.ndim != 3 or weight.ndim != 3:
        raise _error(
            weft.ShapeError,
            f"nn.{name}.shape",
            f"{name} of shape {x.shape} with weights {weight.shape}",
            note="rule: (n, c, length) with weights of three dimensions",
        )
    return (
        x.reshape(x.shape[0], x.shape[1], 1, x.shape[2]),
        weight.reshape(weight.shape[0], weight.shape[1], 1, weight.shape[2]),
    )


def conv1d(x, weight, stride=1, padding=0, dilation=1, groups=1):
    """x (n, c, length) with weight (o, c / groups, k)."""
    x, weight = _as_images("conv1d", x, weight)
    y = conv2d(x, weight, (1, stride), (0, padding), (1, dilation), groups)
    return y.reshape(y.shape[0], y.shape[1], y.shape[3])


def conv_transpose1d(x, weight, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The transpose of conv1d: x (n, c, length) with weight (c, o / groups, k)."""
    x, weight = _as_images("conv_transpose1d", x, weight)
    y = conv_transpose2d(
        x, weight, (1, stride), (0, padding), (0, output_padding), groups, (1, dilation)
    )
    return y.reshape(y.shape[0], y.shape[1], y.shape[3])


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Mean 0 and variance 1 over the last axes, whose extents are normalized_shape, then times weight plus bias."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if x.shape[x.ndim - len(shape) :] != shape:
        raise _error(
            weft.ShapeError,
            "nn.layer_norm.shape",
            f"layer_norm over {shape} got shape {x.shape}",
            note="rule: the last axes have these extents",
        )
    size = math.prod(shape)
    scale = (
        weft.ones((size,), dtype=x.dtype, device=x.device) if weight is None else weight.reshape(-1)
    )
    shift = (
        weft.zeros((size,), dtype=x.dtype, device=x.device) if bias is None else bias.reshape(-1)
    )
    scale, shift = (
        t if isinstance(t, Tensor) else Tensor(t, requires_grad=False) for t in (scale, shift)
    )
    if len(shape) == 1:
        return x.layer_norm(scale, shift, eps)
    rows = x.reshape(*x.shape[: x.ndim - len(shape)], size)
    return rows.layer_norm(scale, shift, eps).reshape(*x.shape)


def batch_norm(x, running_mean, running_var, weight=None, bias=None, training=False, eps=1e-5):
    """(n, c, ...) over the batch when training, else by the running statistics, which are not changed here."""
    axes, shape = (0, *range(2, x.ndim)), (1, -1, *(1,) * (x.ndim - 2))
    if training:
        centred = x - x.mean(axes, True)
        var = (centred * centred).mean(axes, True)
    else:
        centred = x - running_mean.reshape(shape)
        var = Tensor(running_var.reshape(shape), requires_grad=False)
    y = centred * weft.rsqrt(var + eps)
    y = y if weight is None else y * weight.reshape(*shape)
    return y if bias is None else y + bias.reshape(*shape)


def gelu(x, approximate="none"):
    """x times the normal distribution function of x; approximate="tanh" takes the tanh formula."""
    if approximate == "tanh":
        return _activations.gelu_tanh(x)
    return x * (weft.erf(x * (1.0 / math.sqrt(2.0))) + 1.0) * 0.5


def silu(x):
    """x sigmoid(x)."""
    return x * weft.sigmoid(x)


def leaky_relu(x, slope=0.01):
    """x where positive, else slope times x."""
    return relu(x) - relu(-x) * slope


def elu(x, alpha=1.0):
    """x where positive, else alpha (exp(x) - 1)."""
    return relu(x) + weft.expm1(-relu(-x)) * alpha


def softplus(x, beta=1.0):
    """log(1 + exp(beta x)) / beta, without overflow."""
    return relu(x) + weft.log1p(weft.exp(-weft.abs(x) * beta)) * (1.0 / beta)


def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return weft.sigmoid(x)


def tanh(x):
    """The hyperbolic tangent."""
    return weft.tanh(x)


def softmax(x, axis=-1, dim=None):
    """exp(x) / sum(exp(x)) along an axis; `dim` is PyTorch's name of it."""
    return x.softmax(axis if dim is None else dim)


def log_softmax(x, axis=-1, dim=None):
    """x - log(sum(exp(x))) along an axis; `dim` is PyTorch's name of it."""
    return x.log_softmax(axis if dim is None else dim)


def linear(x, weight, bias=None):
    """x weight + bias; weight is (in, out), as in weft.nn.Linear."""
    y = x @ weight
    return y if bias is None else y + bias


def one_hot(index, num_classes):
    """An array of int64 with a new last axis, 1 at each index. Raises IndexError outside [0, num_classes)."""
    index = weft.asarray(getattr(index, "data", index))
    if index.size and (int(weft.min(index)) < 0 or int(weft.max(index)) >= num_classes):
        raise _error(weft.IndexError, "nn.one_hot.index", f"an index is outside [0, {num_classes})")
    return (index[..., None] == weft.arange(num_classes, device=index.device)).astype(weft.int64)


def normalize(x, p=2.0, axis=1, eps=1e-12):
    """x over its p-norm along an axis, the norm held at eps."""
    norm = (
        weft.sqrt((x * x).sum(axis, True))
        if p == 2
        else (weft.abs(x) ** p).sum(axis, True) ** (1 / p)
    )
    return x / weft.clip(norm, eps, None)


def cosine_similarity(x, y, axis=1, eps=1e-8):
    """The cosine of the angle between vectors along an axis."""
    lengths = [weft.clip(weft.sqrt((v * v).sum(axis)), eps, None) for v in (x, y)]
    return (x * y).sum(axis) / (lengths[0] * lengths[1])


def embedding(weight, index):
    """Rows of weight."""
    index = weft.asarray(getattr(index, "data", index)).to(weight.device)
    rows = _core._gather_tensor(weight, weft.reshape(index, (-1,)).astype(weft.int64))
    return rows.reshape(*index.shape, weight.shape[1])


def _windows(x, kernel, stride, padding, outside):
    rows, columns = (padding, padding) if isinstance(padding, int) else padding
    if rows or columns:
        border = ((0, 0), (0, 0), (rows, rows), (columns, columns))
        inside = weft.pad(weft.ones(x.shape[2:], dtype="bool", device=x.device), border[2:])
        x = x.pad(border)
        if outside:
            x = weft.where(inside, x, -math.inf)
    return x.windows(kernel, kernel, stride or kernel)


def max_pool2d(x, kernel, stride=None, padding=0):
    """Largest value of each window; a border of `padding` never wins."""
    return _windows(x, kernel, stride, padding, True).max((4, 5))


def avg_pool2d(x, kernel, stride=None, padding=0):
    """Mean of each window; a border of `padding` counts as zeros."""
    return _windows(x, kernel, stride, padding, False).mean((4, 5))


def adaptive_avg_pool2d(x, output_size):
    """Means of (n, c, h, w) to (n, c, *output_size); extents must divide. Raises ShapeError."""
    rows, columns = (output_size,) * 2 if isinstance(output_size, int) else output_size
    if x.ndim != 4 or x.shape[2] % rows or x.shape[3] % columns:
        raise _error(
            weft.ShapeError,
            "nn.adaptive_pool.shape",
            f"{x.shape} does not divide into {rows} by {columns} windows",
            note="rule: (n, c, h, w) with h and w multiples of the output's",
        )
    n, c, h, w = x.shape
    return x.reshape(n, c, rows, h // rows, columns, w // columns).mean((3, 5))


def dropout(x, p=0.5, training=True, key=None):
    """Zeroes elements with probability p and scales the others."""
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    keep = weft.random.bernoulli(1.0 - p, x.shape, key=key).astype(x.dtype).to(x.device)
    return x * Tensor(keep * (1.0 / (1.0 - p)), requires_grad=False)


def attention(q, k, v, causal=False):
    """softmax(q k' / sqrt(d)) v over the last two axes."""
    scores = (q @ k.mT) * (1.0 / math.sqrt(q.shape[-1]))
    if causal:
        n, m = scores.shape[-2:]
        mask = weft.triu(weft.full((n, m), -math.inf, dtype=scores.dtype), k=1 + m - n)
        scores = scores + Tensor(mask.to(scores.device), requires_grad=False)
    return scores.softmax(-1) @ v


def scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False):
    """softmax(q k' / sqrt(d) + mask) v; attn_mask is true where attention is allowed, or numbers to add.

    With is_causal position i attends to positions up to i. dropout_p acts always, as in PyTorch.
    """
    if attn_mask is None and not dropout_p and q.shape[-2] == k.shape[-2]:
        return attention(q, k, v, is_causal)
    scores = (q @ k.mT) * (1.0 / math.sqrt(q.shape[-1]))
    masks = [] if attn_mask is None else [attn_mask]
    if is_causal:
        masks.append(weft.tril(weft.ones(scores.shape[-2:], dtype="bool")))
    for mask in masks:
        mask = weft.asarray(getattr(mask, "data", mask))
        if mask.dtype == weft.bool:
            mask = weft.where(mask, 0.0, -math.inf).astype(scores.dtype)
        scores = scores + Tensor(mask.to(scores.device), requires_grad=False)
    return dropout(scores.softmax(-1), dropout_p) @ v
