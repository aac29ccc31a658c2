# SPDX-License-Identifier: Apache-2.0
"""Rows of tables by integers."""

from __future__ import annotations

import weft

from .. import _core, init
from .._errors import error as _error
from .module import Module, Parameter

__all__ = ["embedding", "embedding_bag"]


def embedding(weight, index, padding_idx=None):
    """Rows of weight; the row padding_idx gets no gradient. Raises IndexError for rows that are not there, on
    cards at the next copy to the host or synchronize() of the device.

    PyTorch's order, indices first, is understood, too: indices are integers.
    """
    if weft.isdtype(weight.dtype, "integral"):
        weight, index = index, weight
    index = weft.asarray(getattr(index, "data", index)).to(weight.device)
    rows = _core._gather_tensor(weight, _core._as_positions(weft.reshape(index, (-1,))))
    rows = rows.reshape(*index.shape, weight.shape[1])
    if padding_idx is None:
        return rows
    return weft.where((index == padding_idx % weight.shape[0])[..., None], rows.detach(), rows)


def embedding_bag(index, weight, offsets=None, mode="mean"):
    """Sums, means or maxima of the rows of weight in each bag.

    index is (bags, entries), or one row of which `offsets` says where each bag begins. An empty bag gives zeros.
    Raises ArgumentError for other modes, ShapeError for other shapes.
    """
    index = weft.asarray(getattr(index, "data", index)).to(weight.device)
    if mode not in ("sum", "mean", "max"):
        raise _error(
            weft.ArgumentError,
            "nn.embedding_bag.mode",
            f"no mode is called {mode!r}",
            ['legal: "sum", "mean", "max"'],
        )
    if (index.ndim, offsets is None) not in ((2, True), (1, False)):
        raise _error(
            weft.ShapeError,
            "nn.embedding_bag.shape",
            f"embedding_bag of indices of shape {index.shape} {'without' if offsets is None else 'with'} offsets",
            ["rule: (bags, entries), or one row with offsets"],
        )
    rows = embedding(weight, index)
    if offsets is None:
        return getattr(rows, mode)(axis=1)
    starts = weft.asarray(getattr(offsets, "data", offsets)).tolist()
    out = []
    for start, end in zip(starts, [*starts[1:], index.shape[0]]):
        out.append(getattr(rows[start:end], mode)(axis=0) if end > start else weight[0] * 0.0)
    return weft.stack(out)


class Embedding(Module):
    """Rows of a table by integers; the row padding_idx begins as zeros and gets no gradient."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, device=None, dtype=None):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        self.weight = Parameter(
            init.randn(num_embeddings, embedding_dim, dtype=dtype, device=device)
        )
        if padding_idx is not None:
            table = self.weight.data.copy()
            table[padding_idx] = 0.0
            self.weight.data = table

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None):
        """An embedding over a table that is given; frozen, it is not trained."""
        table = weft.asarray(getattr(embeddings, "data", embeddings))
        out = cls(*table.shape, padding_idx, device=table.device, dtype=table.dtype)
        out.weight.data = table
        out.weight.requires_grad = not freeze
        return out

    def forward(self, index):
        return embedding(self.weight, index, self.padding_idx)


class EmbeddingBag(Module):
    """nn.functional.embedding_bag with a table that is learnt."""

    def __init__(self, num_embeddings, embedding_dim, mode="mean", device=None, dtype=None):
        super().__init__()
        self.mode = mode
        self.weight = Parameter(
            init.randn(num_embeddings, embedding_dim, dtype=dtype, device=device)
        )

    def forward(self, index, offsets=None):
        return embedding_bag(index, self.weight, offsets, self.mode)
