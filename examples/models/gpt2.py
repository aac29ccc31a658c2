# SPDX-License-Identifier: Apache-2.0
"""GPT-2, with Hugging Face's names of configuration and weights (model_type "gpt2")."""

from attention import Cache, activation, attend, heads_of, joined

import weft
from weft import nn

DEFAULTS = {
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "n_positions": 1024,
    "vocab_size": 50257,
    "layer_norm_epsilon": 1e-5,
    "activation_function": "gelu_new",
    "eos_token_id": 50256,
}
# The checkpoint's matrices lie as weft's do, (in, out).
TRANSPOSED = ()
RENAMED = ((r"^(?!transformer\.|lm_head\.)", "transformer."),)
IGNORED = r"\.attn\.(bias|masked_bias)$|^lm_head\.weight$"  # masks; the head is the embedding


class _Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c["n_head"]
        self.c_attn = nn.Linear(c["n_embd"], 3 * c["n_embd"])
        self.c_proj = nn.Linear(c["n_embd"], c["n_embd"])

    def forward(self, x, cache):
        q, k, v = (heads_of(part, self.heads) for part in self.c_attn(x).chunk(3, -1))
        return self.c_proj(joined(attend(q, k, v, cache, causal=True)))


class _Feed(nn.Module):
    def __init__(self, c):
        super().__init__()
        inner = c["n_inner"] or 4 * c["n_embd"]
        self.act = activation(c["activation_function"])
        self.c_fc, self.c_proj = nn.Linear(c["n_embd"], inner), nn.Linear(inner, c["n_embd"])

    def forward(self, x):
        return self.c_proj(self.act(self.c_fc(x)))


class _Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1, self.ln_2 = (nn.LayerNorm(c["n_embd"], c["layer_norm_epsilon"]) for _ in "12")
        self.attn, self.mlp = _Attention(c), _Feed(c)

    def forward(self, x, cache):
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_2(x))


class _Transformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.wte = nn.Embedding(c["vocab_size"], c["n_embd"])
        self.wpe = nn.Embedding(c["n_positions"], c["n_embd"])
        self.h = [_Block(c) for _ in range(c["n_layer"])]
        self.ln_f = nn.LayerNorm(c["n_embd"], c["layer_norm_epsilon"])


class Model(nn.Module):
    """Token ids (b, t) to logits (b, t, vocab_size)."""

    def __init__(self, config):
        super().__init__()
        self.config = {**DEFAULTS, **config}
        self.transformer = _Transformer(self.config)

    def caches(self, batch, capacity):
        """Empty caches of all layers for so many tokens."""
        c, weight = self.config, self.transformer.wte.weight
        if capacity > c["n_positions"]:
            raise weft.ShapeError(f"{capacity} tokens; the model has {c['n_positions']} positions")
        width = c["n_embd"] // c["n_head"]
        return [
            Cache(batch, c["n_head"], capacity, width, weight.dtype, weight.device)
            for _ in self.transformer.h
        ]

    def forward(self, ids, caches=None):
        t = self.transformer
        first = caches[0].length if caches else 0
        at = weft.arange(first, first + ids.shape[1], device=t.wte.weight.device)
        x = t.wte(ids) + t.wpe(at)
        for k, block in enumerate(t.h):
            x = block(x, caches[k] if caches else None)
        return t.ln_f(x) @ t.wte.weight.transpose(0, 1)
