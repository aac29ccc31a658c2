# SPDX-License-Identifier: Apache-2.0
"""Functions that layers are made of."""

from __future__ import annotations

import math

import weft

from .. import _core
from .._core import Tensor, conv2d

__all__ = [
    "conv2d",
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


def gelu(x):
    """x times the normal distribution function of x."""
    return x * (weft.erf(x * (1.0 / math.sqrt(2.0))) + 1.0) * 0.5


def softmax(x, axis=-1):
    """exp(x) / sum(exp(x))."""
    return x.softmax(axis)


def cross_entropy(logits, labels):
    """Mean of -log softmax(logits)[label] over rows; labels are integers."""
    labels = weft.asarray(getattr(labels, "data", labels))
    if logits.ndim != 2 or labels.shape != logits.shape[:1]:
        raise weft.ShapeError(
            f"error[nn.cross_entropy.shape]: logits {logits.shape} need labels of shape {logits.shape[:1]}, got {labels.shape}"
        )
    n, classes = logits.shape
    flat = logits.log_softmax(-1).reshape(n * classes)
    if labels.size and (int(weft.min(labels)) < 0 or int(weft.max(labels)) >= classes):
        raise weft.IndexError(f"error[nn.cross_entropy.label]: a label is outside [0, {classes})")
    picked = _core._gather_tensor(flat, weft.arange(n) * classes + labels.astype(weft.int64))
    return -picked.mean()


def mse(x, y):
    """Mean of squared differences."""
    d = x - y
    return (d * d).mean()


def embedding(weight, index):
    """Rows of weight."""
    index = weft.asarray(getattr(index, "data", index))
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
    keep = weft.random.bernoulli(1.0 - p, x.shape, key=key).astype(x.dtype)
    return x * Tensor(keep * (1.0 / (1.0 - p)), requires_grad=False)


def attention(q, k, v, causal=False):
    """softmax(q k' / sqrt(d)) v over the last two axes."""
    scores = (q @ k.mT) * (1.0 / math.sqrt(q.shape[-1]))
    if causal:
        n, m = scores.shape[-2:]
        mask = weft.triu(weft.full((n, m), -math.inf), k=1 + m - n)
        mask = weft.where(weft.isnan(mask), 0.0, mask)
        scores = scores + Tensor(mask.astype(scores.dtype), requires_grad=False)
    return scores.softmax(-1) @ v
