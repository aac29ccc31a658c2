# SPDX-License-Identifier: Apache-2.0
"""Layers of Transformers that torch computes by one operator in inference, as the operators that they are made of."""

from __future__ import annotations

import torch


def attention(q, k, v, width, heads, qkv_weight, qkv_bias, weight, bias, mask=None, need_weights=True, average=True, mask_type=None):  # fmt: skip
    """torch.nn.MultiheadAttention as one operator: projections, softmax of the scores, the last projection.

    mask is true where a query may not attend, of shape (t, s) for mask_type 0, (b, s) for 1, any that broadcasts to
    (b, heads, t, s) for 2.
    """
    parts = qkv_weight.split(width), qkv_bias.split(width)
    q, k, v = (
        torch.nn.functional.linear(x, w, b).unflatten(-1, (heads, -1)).transpose(1, 2)
        for x, w, b in zip((q, k, v), *parts)
    )
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if mask is not None:
        if mask_type == 1:
            mask = mask[:, None, None, :]
        scores = scores + _added(mask, scores)
    shares = scores.softmax(-1)
    out = torch.nn.functional.linear((shares @ v).transpose(1, 2).flatten(2), weight, bias)
    if not need_weights:
        return out, None
    return out, shares.mean(1) if average else shares


def _added(mask, scores):
    """A mask as numbers to add to scores."""
    if mask.dtype != torch.bool:
        return mask.to(scores.dtype)
    return torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device).masked_fill(mask, -torch.inf)  # fmt: skip


def encoder_layer(x, width, heads, qkv_weight, qkv_bias, weight, bias, use_gelu, norm_first, eps, scale_1, shift_1, scale_2, shift_2, up, up_bias, down, down_bias, mask=None, mask_type=None):  # fmt: skip
    """torch.nn.TransformerEncoderLayer in inference as one operator."""

    def attended(x):
        return attention(x, x, x, width, heads, qkv_weight, qkv_bias, weight, bias, mask, False, True, mask_type)[0]  # fmt: skip

    def fed(x):
        inner = torch.nn.functional.linear(x, up, up_bias)
        inner = torch.nn.functional.gelu(inner) if use_gelu else inner.relu()
        return torch.nn.functional.linear(inner, down, down_bias)

    first, second = (
        lambda x, scale=scale, shift=shift: torch.nn.functional.layer_norm(
            x, (width,), scale, shift, eps
        )
        for scale, shift in ((scale_1, shift_1), (scale_2, shift_2))
    )
    if norm_first:
        x = x + attended(first(x))
        return x + fed(second(x))
    x = first(x + attended(x))
    return second(x + fed(x))
