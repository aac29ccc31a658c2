# SPDX-License-Identifier: Apache-2.0
"""softmax(scale q k' + mask) v without an array of queries by keys."""

from __future__ import annotations

import math

import weft

from .. import _core
from .. import random as _random
from .._core import NDArray, Tensor
from .._errors import error as _error
from .dropouts import _checked, dropout

__all__ = ["attention", "scaled_dot_product_attention"]

_ALL = 1 << 40  # beyond every length


def _plain(x):
    return x.data if isinstance(x, Tensor) else weft.asarray(x)


def _composed(q, k, v, band, mask, dropout_p, scale):
    """For traced values, whose compiler makes the kernels."""
    scores = (q @ k.mT) * scale
    if band is not None:
        n, m = scores.shape[-2:]
        ahead = weft.arange(m).reshape(1, m) - weft.arange(n).reshape(n, 1)
        seen = weft.where((ahead >= band[0]) & (ahead <= band[1]), 0.0, -math.inf)
        scores = scores + Tensor(seen.astype(scores.dtype).to(scores.device), requires_grad=False)
    if mask is not None:
        mask = _plain(mask)
        if mask.dtype == weft.bool:
            mask = weft.where(mask, 0.0, -math.inf).astype(scores.dtype)
        scores = scores + Tensor(mask.to(scores.device), requires_grad=False)
    return dropout(scores.softmax(-1), dropout_p) @ v


def _four_axes(x):
    """(batch, heads, length, width); what stands before the last three axes is one batch."""
    if x.ndim == 4:
        return x
    if x.ndim == 2:
        return x.reshape((1, 1, *x.shape))
    if x.ndim == 3:
        return x.reshape((x.shape[0], 1, *x.shape[1:]))
    return x.reshape((math.prod(x.shape[:-3]), *x.shape[-3:]))


def _common(q, k, v):
    """The operands with one batch; heads of q are multiples of those of k and v, which agree."""
    for x in (q, k, v):
        if x.ndim < 2 or x.ndim != q.ndim:
            raise _error(
                weft.ShapeError,
                "nn.attention.shape",
                f"attention of queries {q.shape}, keys {k.shape} and values {v.shape}",
                ["legal: equally many axes, two or more: (..., length, width)"],
            )
    whole = q.ndim - 3 if q.ndim > 3 else q.ndim - 2  # axes that must agree
    lead = []
    for sizes in zip(*(x.shape[:whole] for x in (q, k, v))):
        size = max(sizes) if 0 not in sizes else 0
        if any(s not in (1, size) for s in sizes):
            raise _error(
                weft.ShapeError,
                "nn.attention.shape",
                f"attention of queries {q.shape}, keys {k.shape} and values {v.shape}: their batches differ",
                ["rule: extents of batch axes are equal or 1"],
            )
        lead.append(size)

    def spread(x, heads):
        shape = (*lead, *(() if heads is None else (heads,)), *x.shape[-2:])
        return x if x.shape == shape else x.broadcast_to(shape)

    if q.ndim < 4:
        return spread(q, None), spread(k, None), spread(v, None)
    shared = max(k.shape[-3], v.shape[-3])
    heads = max(q.shape[-3], shared) if q.shape[-3] == 1 else q.shape[-3]
    return spread(q, heads), *(
        spread(x, shared if x.shape[-3] == 1 else x.shape[-3]) for x in (k, v)
    )


def _attend(q, k, v, band=None, mask=None, padding=None, lengths=None, dropout_p=0.0, scale=None, key=None):  # fmt: skip
    """band: query i sees keys i + band[0] to i + band[1]; padding: bool (batch, m), true where a key is seen."""
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    if not all(isinstance(x, (Tensor, NDArray)) for x in (q, k, v)):
        return _composed(q, k, v, band, mask, dropout_p, scale)
    arrays = isinstance(q, NDArray)
    q, k, v = (x if isinstance(x, Tensor) else Tensor(x, requires_grad=False) for x in (q, k, v))
    q, k, v = _common(q, k, v)
    shape = (*q.shape[:-1], v.shape[-1])
    options = {"scale": scale, "dropout": float(_checked(dropout_p))}
    if band is not None:
        options["band"] = band
    if mask is not None:
        full = (*q.shape[:-1], k.shape[-2])
        data = _plain(mask)
        added = isinstance(mask, Tensor) and mask.requires_grad
        x = mask if added else data.to(q.device)
        if q.ndim > 4 and x.ndim > 2:
            x = x.broadcast_to(full)
        x = x if x.ndim <= 2 or (q.ndim == 4 and x.ndim == 3) else _four_axes(x)
        options["added" if added else "mask"] = x
    for name, x in (("padding", padding), ("lengths", lengths)):
        if x is not None:
            options[name] = _plain(x).to(q.device)
    if dropout_p:
        first = _random._take(2, key)
        low, high = _core._random_bits(*first, 2, None).tolist()
        options["seed"] = low | high << 32
    out = _core._attention(_four_axes(q), _four_axes(k), _four_axes(v), **options)
    out = out if out.shape == shape else out.reshape(shape)
    return out.data if arrays else out


def attention(q, k, v, causal=False, *, window=None, mask=None, padding=None, lengths=None, dropout=0.0, scale=None, key=None):  # fmt: skip
    """softmax(scale q k' + mask) v over the last two axes; q (..., n, width), k (..., m, width), v (..., m, value width).

    With four axes or more the third last holds heads; k and v may have fewer, which divide q's and are shared in order.
    causal: the last query sees all keys, each one before it one key less. window: (left, right) keys beside the one that
    lies opposite, None for no limit. mask: bool, true where a key is seen, or numbers to add; broadcasts to (..., n, m).
    padding: bool (batch, m), true where a key is seen; lengths: (batch,), how many keys are seen. dropout: of weights, with
    the same choice in the gradient; `key` as in weft.random. scale: 1 / sqrt(width). A query that sees no key gives 0.

    The type is one of floats. Neither this nor the gradients make an array of n x m elements for all heads, except for
    masks that require gradients and for small products on the host. Raises ShapeError, DTypeError, ArgumentError.
    """
    if window is None and not causal:
        band = None
    else:
        left, right = (None, None) if window is None else window
        opposite = k.shape[-2] - q.shape[-2]
        if causal:
            right = 0 if right is None else min(right, 0)
        band = (
            -_ALL if left is None else opposite - int(left),
            _ALL if right is None else opposite + int(right),
        )
    return _attend(q, k, v, band, mask, padding, lengths, dropout, scale, key)


def scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):  # fmt: skip
    """softmax(scale q k' + mask) v as in PyTorch; attn_mask is true where attention is allowed, or numbers to add.

    With is_causal query i attends to keys up to i. dropout_p acts always. With enable_gqa k and v may have fewer heads than
    q, which share them in order. A query that may attend to nothing gives 0. Types, memory and errors as for `attention`.
    """
    if q.ndim >= 4 and not enable_gqa and k.shape[-3] not in (1, q.shape[-3]) and q.shape[-3] != 1:
        raise _error(
            weft.ShapeError,
            "nn.attention.heads",
            f"{q.shape[-3]} heads of queries and {k.shape[-3]} of keys",
            ["legal without enable_gqa: equally many, or one"],
            help="pass enable_gqa=True, with which heads of queries share those of keys",
        )
    band = (-_ALL, 0) if is_causal else None
    return _attend(q, k, v, band, attn_mask, None, None, dropout_p, scale)
