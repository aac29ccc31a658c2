# SPDX-License-Identifier: Apache-2.0
"""Rows of tables by integers."""

from __future__ import annotations

import math

import weft

from .._core import shown as _shown
from .. import _core, init
from .._errors import error as _error
from ..autograd import Function as _Function
from .module import Module, Parameter

__all__ = ["embedding", "embedding_bag"]


class _ByCount(_Function):
    """Rows as they are; the gradient of each over how often its row is named."""

    @staticmethod
    def forward(ctx, rows, share):
        ctx.share = share
        return rows.data

    @staticmethod
    def backward(ctx, g):
        return g * ctx.share, None


def _renormed(weight, index, max_norm, norm_type):
    """Scales the rows that are named down to max_norm, in the table itself, as PyTorch does."""
    table = getattr(weight, "data", weight)
    named = weft.unique_values(index)
    rows = weft.take(table, named, axis=0)
    length = weft.linalg.vector_norm(rows, ord=norm_type, axis=1, keepdims=True)
    rows = weft.where(length > max_norm, rows * (max_norm / (length + 1e-7)), rows)
    table[named] = rows


def embedding(
    weight,
    index,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    """Rows of weight; the row padding_idx gets no gradient. Raises IndexError for rows that are not there, on
    cards at the next copy to the host or synchronize() of the device.

    PyTorch's order, indices first, is understood, too: indices are integers. max_norm scales longer rows that are named in the table itself;
    scale_grad_by_freq divides gradients by how often a row is named; gradients are dense, whatever `sparse` says.
    """
    if weft.isdtype(weight.dtype, "integral"):
        weight, index = index, weight
    index = weft.asarray(getattr(index, "data", index)).to(weight.device)
    if max_norm is not None:
        _renormed(weight, index, max_norm, norm_type)
    flat = weft.reshape(index, (-1,))
    rows = _core._gather_tensor(weight, _core._as_positions(flat))
    if scale_grad_by_freq:
        often = weft.bincount(flat, minlength=weight.shape[0])
        rows = _ByCount.apply(rows, (1.0 / weft.take(often, flat, axis=0).astype(rows.dtype))[:, None])  # fmt: skip
    rows = rows.reshape(*index.shape, weight.shape[1])
    if padding_idx is None:
        return rows
    return weft.where((index == padding_idx % weight.shape[0])[..., None], rows.detach(), rows)


def _checked_bags(index, offsets, mode, per_sample_weights):
    if mode not in ("sum", "mean", "max"):
        raise _error(
            weft.ArgumentError,
            "nn.embedding_bag.mode",
            f"no mode is called {_shown(mode)}",
            ['legal: "sum", "mean", "max"'],
        )
    if (index.ndim, offsets is None) not in ((2, True), (1, False)):
        raise _error(
            weft.ShapeError,
            "nn.embedding_bag.shape",
            f"embedding_bag of indices of shape {index.shape} {'without' if offsets is None else 'with'} offsets",
            ["rule: (bags, entries), or one row with offsets"],
        )
    if per_sample_weights is None:
        return
    if mode != "sum" or tuple(per_sample_weights.shape) != tuple(index.shape):
        raise _error(
            weft.ArgumentError,
            "nn.embedding_bag.weights",
            f"weights of shape {tuple(per_sample_weights.shape)} for entries of shape {index.shape}, mode {_shown(mode)}",
            ['legal: one for each entry, with mode "sum"'],
        )


def embedding_bag(
    index,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Sums, means or maxima of the rows of weight in each bag.

    index is (bags, entries), or one row of which `offsets` says where each bag begins (include_last_offset: and where the last one ends). An empty
    bag gives zeros. per_sample_weights multiply the rows of sums; the row padding_idx counts nowhere; other options as embedding's.
    Raises ArgumentError for other modes and weights, ShapeError for other shapes.
    """
    if isinstance(max_norm, str):  # the mode by place
        mode, max_norm = max_norm, None
    index = weft.asarray(getattr(index, "data", index)).to(weight.device)
    _checked_bags(index, offsets, mode, per_sample_weights)
    rows = embedding(weight, index, None, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[..., None]
    counted = None if padding_idx is None else index != padding_idx % weight.shape[0]
    if counted is not None:
        rows = weft.where(counted[..., None], rows, -math.inf if mode == "max" else 0.0)
    if offsets is None and counted is None:
        return getattr(rows, mode)(axis=1)
    if offsets is None:
        return _of_bags(rows, counted, mode)
    starts = weft.asarray(getattr(offsets, "data", offsets)).tolist()
    ends = starts if include_last_offset else [*starts, index.shape[0]]
    out = weft.segment_reduce(rows, "max" if mode == "max" else "sum", offsets=weft.asarray(ends), initial=0.0)  # fmt: skip
    if mode == "sum":
        return out
    if counted is None:
        count = weft.asarray([b - a for a, b in zip(ends[:-1], ends[1:])], device=out.device)
    else:
        count = weft.segment_reduce(counted.astype("int64"), "sum", offsets=weft.asarray(ends))
    return _finished(out, getattr(count, "data", count)[:, None], mode)


def _of_bags(rows, counted, mode):
    out = rows.max(axis=1) if mode == "max" else rows.sum(axis=1)
    return _finished(out, weft.sum(counted.astype("int64"), axis=1)[:, None], mode)


def _finished(out, count, mode):
    """Means from sums, and zeros for bags in which nothing counts."""
    if mode == "mean":
        return out / weft.maximum(count, 1).astype(out.dtype)
    return weft.where(count > 0, out, 0.0) if mode == "max" else out


class Embedding(Module):
    """Rows of a table by integers; the row padding_idx begins as zeros and gets no gradient."""

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.weight = Parameter(
            init.randn(num_embeddings, embedding_dim, dtype=dtype, device=device)
        )
        if padding_idx is not None:
            table = self.weight.data.copy()
            table[padding_idx] = 0.0
            self.weight.data = table

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, **options):
        """An embedding over a table that is given; frozen, it is not trained."""
        table = weft.asarray(getattr(embeddings, "data", embeddings))
        make = {"device": table.device, "dtype": table.dtype}
        out = cls(*table.shape, padding_idx=padding_idx, **make, **options)
        out.weight.data = table
        out.weight.requires_grad = not freeze
        return out

    def forward(self, index):
        options = self.max_norm, self.norm_type, self.scale_grad_by_freq
        return embedding(self.weight, index, self.padding_idx, *options)


class EmbeddingBag(Module):
    """nn.functional.embedding_bag with a table that is learnt."""

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if isinstance(max_norm, str):  # the mode by place
            mode, max_norm = max_norm, None
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        if _weight is not None:
            self.weight = Parameter(_weight)
            return
        self.weight = Parameter(
            init.randn(num_embeddings, embedding_dim, dtype=dtype, device=device)
        )

        if padding_idx is not None:
            table = self.weight.data.copy()
            table[padding_idx] = 0.0
            self.weight.data = table

    def forward(self, index, offsets=None, per_sample_weights=None):
        return embedding_bag(
            index,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            False,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )
