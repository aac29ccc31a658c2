# SPDX-License-Identifier: Apache-2.0
"""Attention and Transformers with PyTorch's arguments, masks and parameter names.

Sequences are (time, batch, features), or (batch, time, features) with batch_first, or (time, features). Masks of bool are
true where attention is *not* allowed; those of numbers are added.
"""

from __future__ import annotations

import copy
import math

import weft

from .._core import shown as _shown
from .. import init
from .._core import Tensor
from .._errors import error as _error
from . import functional as F
from .dropouts import Dropout
from .layers import Linear, ModuleList
from .module import Module, Parameter
from .norms import LayerNorm


class MultiheadAttention(Module):
    """Attention of several heads: forward(query, key, value) gives (output, weights).

    in_proj_weight is (3 embed_dim, embed_dim), as in PyTorch (with kdim or vdim there are q_, k_ and v_proj_weight). add_bias_kv: one more key and value,
    bias_k and bias_v, that are learnt; add_zero_attn: one more of zeros.
    Weights are the means over the heads unless average_attn_weights is False, None unless need_weights. Raises
    ShapeError.
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if embed_dim % num_heads:
            raise _error(
                weft.ShapeError,
                "nn.attention.heads",
                f"{embed_dim} features do not divide into {num_heads} heads",
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.batch_first = batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        make = {"device": device, "dtype": dtype}

        def weight(rows, columns):
            bound = math.sqrt(6.0 / (rows + columns))
            return Parameter(init.rand(rows, columns, low=-bound, high=bound, **make))

        if (self.kdim, self.vdim) == (embed_dim, embed_dim):
            self.in_proj_weight = weight(3 * embed_dim, embed_dim)
        else:
            self.q_proj_weight = weight(embed_dim, embed_dim)
            self.k_proj_weight = weight(embed_dim, self.kdim)
            self.v_proj_weight = weight(embed_dim, self.vdim)
        self.in_proj_bias = Parameter(init.zeros(3 * embed_dim, **make)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, **make)
        if bias:
            self.out_proj.bias.data = weft.zeros_like(self.out_proj.bias.data)
        self.bias_k = self.bias_v = None
        if add_bias_kv:
            spread = math.sqrt(2.0 / (embed_dim + embed_dim))
            self.bias_k, self.bias_v = (
                Parameter(init.randn(1, 1, embed_dim, std=spread, **make)) for _ in range(2)
            )
        self.add_zero_attn = add_zero_attn

    def _projected(self, k, x):
        e = self.embed_dim
        packed = (self.kdim, self.vdim) == (e, e)
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        w = self.in_proj_weight[k * e : (k + 1) * e] if packed else getattr(self, names[k])
        y = x @ w.T
        return y if self.in_proj_bias is None else y + self.in_proj_bias[k * e : (k + 1) * e]

    def _checked_masks(self, mask, padding, n, t, s, like, batched):
        """Both as arrays or None: true where attention is not allowed, or numbers to add."""
        if mask is not None:
            mask = weft.asarray(getattr(mask, "data", mask)).to(like.device)
            if mask.shape not in ((t, s), (n * self.num_heads, t, s)):
                raise _error(
                    weft.ShapeError,
                    "nn.attention.mask",
                    f"a mask of shape {mask.shape} for {t} queries and {s} keys",
                    [f"legal: {(t, s)}, {(n * self.num_heads, t, s)}"],
                )
            mask = mask if mask.ndim == 2 else mask.reshape((n, self.num_heads, t, s))
        if padding is not None:
            padding = weft.asarray(getattr(padding, "data", padding)).to(like.device)
            padding = padding if batched else padding.reshape((1, *padding.shape))
            if padding.shape != (n, s):
                raise _error(
                    weft.ShapeError,
                    "nn.attention.mask",
                    f"a padding mask of shape {padding.shape} for {n} sequences of {s} keys",
                    [f"legal: {(n, s)}"],
                )
        return mask, padding

    def _lengthened(self, k, v, mask, padding):
        """Keys and values with those that the layer adds itself, which no mask hides."""
        n, heads, s, width = k.shape
        rows = []
        if self.bias_k is not None:
            shape = (1, heads, 1, width)
            rows.append([b.reshape(shape) for b in (self.bias_k, self.bias_v)])
        if self.add_zero_attn:
            rows.append([weft.zeros((1, heads, 1, width), dtype=k.dtype, device=k.device)] * 2)
        for of_k, of_v in rows:
            shape = (n, heads, 1, width)
            k, v = (
                weft.concat([x, weft.broadcast_to(r, shape)], axis=2)
                for x, r in ((k, of_k), (v, of_v))
            )
        open_ = lambda x: (
            x if x is None else weft.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, len(rows))])
        )  # noqa: E731
        return k, v, open_(mask), open_(padding)

    @staticmethod
    def _added(mask, dtype):
        if mask.dtype == weft.bool:
            mask = weft.where(mask, -math.inf, 0.0)
        return Tensor(mask.astype(dtype), requires_grad=False)

    def _attended(self, q, k, v, mask, padding, is_causal):
        options = {"dropout": self.dropout if self.training else 0.0}
        if mask is None and is_causal:
            options["window"] = (None, q.shape[2] - k.shape[2])  # query i sees keys up to i
        if padding is not None and padding.dtype == weft.bool:
            options["padding"], padding = weft.logical_not(padding), None
        if padding is not None:
            padding = padding.reshape((padding.shape[0], 1, 1, padding.shape[1]))
            padding = padding if mask is None else padding + self._added(mask, padding.dtype).data
        elif mask is not None:
            padding = weft.logical_not(mask) if mask.dtype == weft.bool else mask
        return F.attention(q, k, v, mask=padding, **options)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        batched = query.ndim == 3
        parts, widths = (query, key, value), (self.embed_dim, self.kdim, self.vdim)
        if query.ndim not in (2, 3) or any(
            x.ndim != query.ndim or x.shape[-1] != w for x, w in zip(parts, widths)
        ):
            raise _error(
                weft.ShapeError,
                "nn.attention.shape",
                f"attention of {widths} features got shapes {query.shape}, {key.shape}, {value.shape}",
                [
                    "rule: (time, batch, features), (batch, time, features) with batch_first, or (time, features)"
                ],
            )
        if not batched:
            parts = tuple(x.unsqueeze(0) for x in parts)
        elif not self.batch_first:
            parts = tuple(x.permute(1, 0, 2) for x in parts)
        n, t, e = parts[0].shape
        s, heads = parts[1].shape[1], self.num_heads
        q, k, v = (
            self._projected(i, x).reshape(n, x.shape[1], heads, e // heads).permute(0, 2, 1, 3)
            for i, x in enumerate(parts)
        )
        mask, padding = self._checked_masks(attn_mask, key_padding_mask, n, t, s, q, batched)
        if self.bias_k is not None or self.add_zero_attn:
            if is_causal and mask is None:
                mask = weft.triu(weft.ones((t, s), dtype="bool"), k=1).to(q.device)
            k, v, mask, padding = self._lengthened(k, v, mask, padding)
            s = k.shape[2]
        if need_weights or not isinstance(q, Tensor):
            if is_causal and mask is None:
                mask = weft.triu(weft.ones((t, s), dtype="bool"), k=1).to(q.device)
            scores = (q * (1.0 / math.sqrt(e // heads))) @ k.mT
            for x in (mask, None if padding is None else padding.reshape((n, 1, 1, s))):
                if x is not None:
                    scores = scores + self._added(x, scores.dtype)
            weights = F.dropout(scores.softmax(-1), self.dropout, self.training)
            y = weights @ v
        else:
            weights, y = None, self._attended(q, k, v, mask, padding, is_causal)
        y = self.out_proj(y.permute(0, 2, 1, 3).reshape(n, t, e))
        if not batched:
            y = y[0]
        elif not self.batch_first:
            y = y.permute(1, 0, 2)
        if not need_weights:
            return y, None
        weights = weights.mean(1) if average_attn_weights else weights
        return y, weights if batched else weights[0]


def _activation(given):
    if given in ("relu", "gelu"):
        return getattr(F, given)
    if not callable(given):
        raise _error(
            weft.ArgumentError,
            "nn.transformer.activation",
            f"no activation is called {_shown(given)}",
            ['legal: "relu", "gelu", a function'],
        )
    return given


class _Layer(Module):
    """Attention and two linear layers, each added to its input; normalised after, or before with norm_first."""

    attentions = ("self_attn",)

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        make = {"device": device, "dtype": dtype, "bias": bias}
        for name in self.attentions:
            part = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **make)
            setattr(self, name, part)
        self.linear1 = Linear(d_model, dim_feedforward, **make)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **make)
        for k in range(1, len(self.attentions) + 2):
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, **make))
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.activation, self.norm_first = _activation(activation), norm_first

    def _step(self, k, x, f):
        norm, drop = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        return x + drop(f(norm(x))) if self.norm_first else norm(x + drop(f(x)))

    def _feed(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear layers: forward(src, src_mask, src_key_padding_mask)."""

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        def attend(x):
            masks = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask}
            return self.self_attn(x, x, x, need_weights=False, is_causal=is_causal, **masks)[0]

        return self._step(2, self._step(1, src, attend), self._feed)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, two linear layers: forward(tgt, memory, masks ...)."""

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
    ):
        def own(x):
            masks = {"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask}
            return self.self_attn(x, x, x, need_weights=False, is_causal=tgt_is_causal, **masks)[0]

        def other(x):
            masks = {"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask}
            return self.multihead_attn(x, memory, memory, need_weights=False, **masks)[0]

        x = self._step(1, tgt, own)
        return self._step(3, self._step(2, x, other), self._feed)


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after another, and a norm if given.

    enable_nested_tensor and mask_check choose how PyTorch runs it; they change nothing here.
    """

    def __init__(
        self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True
    ):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=False):
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after another, and a norm if given."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of the source and a decoder of the target (Vaswani et al., 2017)."""

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        make = {"device": device, "dtype": dtype, "bias": bias}
        layer = d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps
        layer = *layer, batch_first, norm_first

        def norm():
            return LayerNorm(d_model, layer_norm_eps, **make)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer, **make), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer, **make), num_decoder_layers, norm()
        )
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    @staticmethod
    def generate_square_subsequent_mask(size):
        """Numbers to add to scores: -inf where a later position would be seen, else 0."""
        return weft.triu(weft.full((size, size), -math.inf), k=1)

    def forward(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        return self.decoder(tgt, memory, *masks)
