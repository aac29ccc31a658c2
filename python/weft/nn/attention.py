# SPDX-License-Identifier: Apache-2.0
"""Attention and the Transformer layer, over (batch, time, features)."""

from __future__ import annotations

import weft

from .._errors import error as _error
from . import functional as F
from .dropouts import Dropout
from .layers import GELU, Linear, Sequential
from .module import Module
from .norms import LayerNorm


class MultiHeadAttention(Module):
    def __init__(self, dim, heads, causal=False, device=None, dtype=None):
        super().__init__()
        if dim % heads:
            raise _error(
                weft.ShapeError,
                "nn.attention.heads",
                f"{dim} features do not divide into {heads} heads",
            )
        self.heads, self.causal = heads, causal
        self.query, self.key, self.value, self.out = (
            Linear(dim, dim, device=device, dtype=dtype) for _ in range(4)
        )

    def forward(self, x, memory=None):
        memory = x if memory is None else memory
        n, t, d = x.shape

        def split(y):
            return y.reshape(y.shape[0], y.shape[1], self.heads, d // self.heads).permute(
                0, 2, 1, 3
            )

        y = F.attention(
            split(self.query(x)), split(self.key(memory)), split(self.value(memory)), self.causal
        )
        return self.out(y.permute(0, 2, 1, 3).reshape(n, t, d))


class TransformerLayer(Module):
    """Attention and two linear layers, each normalised before and added to its input."""

    def __init__(self, dim, heads, hidden=None, dropout=0.0, causal=False, device=None, dtype=None):
        super().__init__()
        hidden = hidden or 4 * dim
        self.norm1, self.norm2 = (
            LayerNorm(dim, device=device, dtype=dtype),
            LayerNorm(dim, device=device, dtype=dtype),
        )
        self.attention = MultiHeadAttention(dim, heads, causal, device=device, dtype=dtype)
        self.feed = Sequential(
            Linear(dim, hidden, device=device, dtype=dtype),
            GELU(),
            Linear(hidden, dim, device=device, dtype=dtype),
        )
        self.dropout = Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.feed(self.norm2(x)))
