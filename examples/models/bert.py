# SPDX-License-Identifier: Apache-2.0
"""BERT, with Hugging Face's names of configuration and weights (model_type "bert")."""

from attention import activation, attend, heads_of, joined

import weft
from weft import nn

DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}
# Matrices that the checkpoint holds as (out, in).
TRANSPOSED = (r"\.(query|key|value|dense)\.weight$",)
RENAMED = ((r"^bert\.", ""), (r"\.gamma$", ".weight"), (r"\.beta$", ".bias"))
IGNORED = r"position_ids$|^cls\."  # the head that pretraining used


class _Embeddings(nn.Module):
    def __init__(self, c):
        super().__init__()
        n = c["hidden_size"]
        self.word_embeddings = nn.Embedding(c["vocab_size"], n)
        self.position_embeddings = nn.Embedding(c["max_position_embeddings"], n)
        self.token_type_embeddings = nn.Embedding(c["type_vocab_size"], n)
        self.LayerNorm = nn.LayerNorm(n, c["layer_norm_eps"])

    def forward(self, ids, types):
        at = weft.arange(ids.shape[1], device=self.word_embeddings.weight.device)
        types = weft.zeros(ids.shape, dtype="int64", device=at.device) if types is None else types
        x = self.word_embeddings(ids) + self.token_type_embeddings(types)
        return self.LayerNorm(x + self.position_embeddings(at))


class _Self(nn.Module):
    def __init__(self, c):
        super().__init__()
        n, self.heads = c["hidden_size"], c["num_attention_heads"]
        self.query, self.key, self.value = (nn.Linear(n, n) for _ in range(3))

    def forward(self, x, mask):
        q, k, v = (heads_of(f(x), self.heads) for f in (self.query, self.key, self.value))
        return joined(attend(q, k, v, mask=mask))


class _Output(nn.Module):
    """A linear layer whose result is added to what went before, and normalised."""

    def __init__(self, c, inner):
        super().__init__()
        self.dense = nn.Linear(inner, c["hidden_size"])
        self.LayerNorm = nn.LayerNorm(c["hidden_size"], c["layer_norm_eps"])

    def forward(self, x, before):
        return self.LayerNorm(self.dense(x) + before)


class _Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.act = activation(c["hidden_act"])
        self.attention = nn.ModuleDict({"self": _Self(c), "output": _Output(c, c["hidden_size"])})
        self.intermediate = nn.ModuleDict(
            {"dense": nn.Linear(c["hidden_size"], c["intermediate_size"])}
        )
        self.output = _Output(c, c["intermediate_size"])

    def forward(self, x, mask):
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(self.act(self.intermediate["dense"](x)), x)


class Model(nn.Module):
    """Token ids (b, t) to (hidden states (b, t, hidden_size), pooled (b, hidden_size))."""

    def __init__(self, config):
        super().__init__()
        c = self.config = {**DEFAULTS, **config}
        self.embeddings = _Embeddings(c)
        self.encoder = nn.ModuleDict(
            {"layer": nn.ModuleList([_Layer(c) for _ in range(c["num_hidden_layers"])])}
        )
        self.pooler = nn.ModuleDict({"dense": nn.Linear(c["hidden_size"], c["hidden_size"])})

    def forward(self, ids, attention_mask=None, token_type_ids=None):
        mask = (
            None if attention_mask is None else weft.asarray(attention_mask)[:, None, None, :] != 0
        )
        x = self.embeddings(ids, token_type_ids)
        for layer in self.encoder["layer"]:
            x = layer(x, mask)
        return x, weft.tanh(self.pooler["dense"](x[:, 0]))
