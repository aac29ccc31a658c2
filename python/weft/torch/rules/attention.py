# SPDX-License-Identifier: Apache-2.0
"""Scaled dot-product attention and its gradient, in the forms torch has for the host and for cards."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import HALVES, Unsupported, array


def _scale(q, scale):
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale


def _wide(a):
    return a.astype("float32") if str(a.dtype) in HALVES else a


def _scores(q, k, is_causal, mask, scale):
    scores = _core._matmul(q, k.mT) * _scale(q, scale)
    if is_causal:
        rows, columns = scores.shape[-2:]
        above = weft.triu(weft.ones((rows, columns), dtype="bool"), k=1)
        scores = weft.where(above.to(scores.device), -math.inf, scores)
    if mask is not None:
        scores = scores + _wide(mask)
    return scores


def _checked(q, k, v, dropout):
    if dropout:
        raise Unsupported("attention with dropout draws torch's random numbers")
    if not (q.size and k.size and v.size):
        raise Unsupported("attention without elements")
    return _wide(q), _wide(k), _wide(v)


def _shared_heads(q, *others):
    """Keys and values with a head for each head of the queries: grouped-query attention shares them."""
    heads = q.shape[1]
    if all(a.shape[1] == heads for a in others):
        return others, 1
    times = heads // others[0].shape[1]

    def repeated(a):
        n, h, rows, columns = a.shape
        spread = _core._expand_dims(a, 2).broadcast_to((n, h, times, rows, columns))
        return spread.reshape((n, heads, rows, columns))

    return tuple(map(repeated, others)), times


def _per_head(gradient, times):
    """The gradient of a shared head: the sum over the queries' heads that read it."""
    if times == 1:
        return gradient
    n, heads, rows, columns = gradient.shape
    return weft.sum(gradient.reshape((n, heads // times, times, rows, columns)), axis=2)


@array("_scaled_dot_product_flash_attention_for_cpu.default")
def _attention(c, q, k, v, dropout=0.0, is_causal=False, *, attn_mask=None, scale=None):
    q, k, v = _checked(q, k, v, dropout)
    (k, v), _ = _shared_heads(q, k, v)
    scores = _scores(q, k, is_causal, attn_mask, scale)
    top = weft.max(scores, axis=-1, keepdims=True)
    top = weft.where(weft.isfinite(top), top, 0.0)
    e = weft.exp(scores - top)
    total = weft.sum(e, axis=-1, keepdims=True)
    p = weft.where(total == 0.0, 0.0, e / total)
    logsumexp = (weft.log(total) + top).reshape(scores.shape[:-1])
    return _core._matmul(p, v).astype(c.dtype), logsumexp.astype(c.dtypes[1])


@array("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def _attention_backward(c, g, q, k, v, out, logsumexp, dropout, is_causal, *, attn_mask=None, scale=None):  # fmt: skip
    q, k, v = _checked(q, k, v, dropout)
    g, out = _wide(g), _wide(out)
    (k, v), times = _shared_heads(q, k, v)
    scores = _scores(q, k, is_causal, attn_mask, scale)
    lse = _wide(logsumexp).reshape((*scores.shape[:-1], 1))
    p = weft.where(weft.isfinite(lse), weft.exp(scores - lse), 0.0)
    dv = _core._matmul(p.mT, g)
    dp = _core._matmul(g, v.mT)
    ds = p * (dp - weft.sum(g * out, axis=-1, keepdims=True)) * _scale(q, scale)
    dk = _per_head(_core._matmul(ds.mT, q), times)
    found = _core._matmul(ds, k), dk, _per_head(dv, times)
    return tuple(a.astype(t) for a, t in zip(found, c.dtypes))
