# SPDX-License-Identifier: Apache-2.0
"""Llama, with Hugging Face's names of configuration and weights (model_type "llama")."""

from attention import Cache, activation, attend, heads_of, joined

import weft
from weft import nn

DEFAULTS = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "head_dim": None,
    "vocab_size": 32000,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": None,
    "rope_scaling": None,
    "rope_parameters": None,
    "max_position_embeddings": 2048,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "eos_token_id": 2,
}
# Matrices that the checkpoint holds as (out, in).
TRANSPOSED = (r"_proj\.weight$", r"^lm_head\.weight$")
RENAMED = ()
IGNORED = r"rotary_emb\.inv_freq$"


def _base(c):
    """The base of the rotation's frequencies. Only the plain rotation is known."""
    told = c["rope_parameters"] or c["rope_scaling"] or {}
    kind = told.get("rope_type", told.get("type", "default"))
    if kind != "default":
        raise weft.ArgumentError(f'rope of type {kind!r}; legal: "default"')
    return c["rope_theta"] or told.get("rope_theta", 10000.0)


def rotation(first, count, width, base, like):
    """Cosines and sines (count, width) of positions from `first` on, of both halves of a head."""
    at = weft.arange(first, first + count, dtype="float32", device=like.device)
    powers = weft.arange(0, width, 2, dtype="float32", device=like.device) / width
    angle = at[:, None] * (1.0 / base**powers)[None, :]
    angle = weft.concat([angle, angle], axis=1)
    return weft.cos(angle).astype(like.dtype), weft.sin(angle).astype(like.dtype)


def rotated(x, cos, sin):
    """Pairs (i, i + width / 2) of each head turned by their position's angle."""
    half = x.shape[-1] // 2
    turned = weft.concat([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos + turned * sin


class _Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        n, bias = c["hidden_size"], c["attention_bias"]
        self.heads, self.kept = c["num_attention_heads"], c["num_key_value_heads"]
        self.q_proj = nn.Linear(n, self.heads * c["head_dim"], bias=bias)
        self.k_proj = nn.Linear(n, self.kept * c["head_dim"], bias=bias)
        self.v_proj = nn.Linear(n, self.kept * c["head_dim"], bias=bias)
        self.o_proj = nn.Linear(self.heads * c["head_dim"], n, bias=bias)

    def forward(self, x, turn, cache):
        q, k = heads_of(self.q_proj(x), self.heads), heads_of(self.k_proj(x), self.kept)
        v = heads_of(self.v_proj(x), self.kept)
        return self.o_proj(
            joined(attend(rotated(q, *turn), rotated(k, *turn), v, cache, causal=True))
        )


class _Feed(nn.Module):
    def __init__(self, c):
        super().__init__()
        n, inner, bias = c["hidden_size"], c["intermediate_size"], c["mlp_bias"]
        self.act = activation(c["hidden_act"])
        self.gate_proj = nn.Linear(n, inner, bias=bias)
        self.up_proj, self.down_proj = (
            nn.Linear(n, inner, bias=bias),
            nn.Linear(inner, n, bias=bias),
        )

    def forward(self, x):
        return self.down_proj(self.act(self.gate_proj(x)) * self.up_proj(x))


class _Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self_attn, self.mlp = _Attention(c), _Feed(c)
        self.input_layernorm = nn.RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.post_attention_layernorm = nn.RMSNorm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, x, turn, cache):
        x = x + self.self_attn(self.input_layernorm(x), turn, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class _Layers(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = [_Layer(c) for _ in range(c["num_hidden_layers"])]
        self.norm = nn.RMSNorm(c["hidden_size"], c["rms_norm_eps"])


class Model(nn.Module):
    """Token ids (b, t) to logits (b, t, vocab_size)."""

    def __init__(self, config):
        super().__init__()
        c = self.config = {**DEFAULTS, **config}
        c["num_key_value_heads"] = c["num_key_value_heads"] or c["num_attention_heads"]
        c["head_dim"] = c["head_dim"] or c["hidden_size"] // c["num_attention_heads"]
        self.base = _base(c)
        self.model = _Layers(c)
        if not c["tie_word_embeddings"]:
            self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)

    def caches(self, batch, capacity):
        """Empty caches of all layers for so many tokens."""
        c, weight = self.config, self.model.embed_tokens.weight
        return [
            Cache(
                batch,
                c["num_key_value_heads"],
                capacity,
                c["head_dim"],
                weight.dtype,
                weight.device,
            )
            for _ in self.model.layers
        ]

    def forward(self, ids, caches=None):
        m = self.model
        x = m.embed_tokens(ids)
        first = caches[0].length if caches else 0
        turn = rotation(first, ids.shape[1], self.config["head_dim"], self.base, x)
        for k, layer in enumerate(m.layers):
            x = layer(x, turn, caches[k] if caches else None)
        x = m.norm(x)
        if self.config["tie_word_embeddings"]:
            return x @ m.embed_tokens.weight.transpose(0, 1)
        return self.lm_head(x)
