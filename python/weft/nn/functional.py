# SPDX-License-Identifier: Apache-2.0
"""Functions that layers are made of."""

from __future__ import annotations

import math

import weft

from .. import _core
from .._core import Tensor, conv2d, conv_transpose2d
from .._errors import error as _error

__all__ = [
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "relu",
    "gelu",
    "softmax",
    "cross_entropy",
    "mse",
    "embedding",
    "max_pool2d",
    "avg_pool2d",
    "attention",
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


def gelu(x):
    """x times the normal distribution function of x."""
    return x * (weft.erf(x * (1.0 / math.sqrt(2.0))) + 1.0) * 0.5


def softmax(x, axis=-1):
    """exp(x) / sum(exp(x))."""
    return x.softmax(axis)


def cross_entropy(logits, labels):
    """Mean of -log softmax(logits)[label] over rows; labels are integers."""
    labels = weft.asarray(getattr(labels, "data", labels)).to(logits.device)
    if logits.ndim != 2 or labels.shape != logits.shape[:1]:
        raise _error(
            weft.ShapeError,
            "nn.cross_entropy.shape",
            f"logits {logits.shape} need labels of shape {logits.shape[:1]}, got {labels.shape}",
        )
    n, classes = logits.shape
    flat = logits.log_softmax(-1).reshape(n * classes)
    if labels.size and (int(weft.min(labels)) < 0 or int(weft.max(labels)) >= classes):
        raise _error(
            weft.IndexError, "nn.cross_entropy.label", f"a label is outside [0, {classes})"
        )
    picked = _core._gather_tensor(
        flat, weft.arange(n, device=logits.device) * classes + labels.astype(weft.int64)
    )
    return -picked.mean()


def mse(x, y):
    """Mean of squared differences."""
    d = x - y
    return (d * d).mean()


def embedding(weight, index):
    """Rows of weight."""
    index = weft.asarray(getattr(index, "data", index)).to(weight.device)
    rows = _core._gather_tensor(weight, weft.reshape(index, (-1,)).astype(weft.int64))
    return rows.reshape(*index.shape, weight.shape[1])


def max_pool2d(x, kernel, stride=None):
    """Largest value of each window."""
    return x.windows(kernel, kernel, stride or kernel).max((4, 5))


def avg_pool2d(x, kernel, stride=None):
    """Mean of each window."""
    return x.windows(kernel, kernel, stride or kernel).mean((4, 5))


def dropout(x, p, training=True, key=None):
    """Zeroes elements with probability p and scales the others."""
    if not training or p == 0:
        return x
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
