# SPDX-License-Identifier: Apache-2.0
"""The vision transformer, with Hugging Face's names of configuration and weights (model_type "vit")."""

from attention import activation, attend, heads_of, joined

import weft
from weft import nn

DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "image_size": 224,
    "patch_size": 16,
    "num_channels": 3,
    "layer_norm_eps": 1e-12,
    "qkv_bias": True,
    "num_labels": None,
    "id2label": None,
}
# Matrices that the checkpoint holds as (out, in).
TRANSPOSED = (r"_proj\.weight$", r"\.fc[12]\.weight$", r"^classifier\.weight$")
# The names of files are the older ones.
RENAMED = (
    (r"^vit\.", ""),
    (r"^encoder\.layer\.", "layers."),
    (r"\.attention\.attention\.query\.", ".attention.q_proj."),
    (r"\.attention\.attention\.key\.", ".attention.k_proj."),
    (r"\.attention\.attention\.value\.", ".attention.v_proj."),
    (r"\.attention\.output\.dense\.", ".attention.o_proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"\.output\.dense\.", ".mlp.fc2."),
)
IGNORED = r"^pooler\."


class _Embeddings(nn.Module):
    def __init__(self, c):
        super().__init__()
        n, patch = c["hidden_size"], c["patch_size"]
        places = (c["image_size"] // patch) ** 2 + 1
        self.cls_token = nn.Parameter(weft.zeros((1, 1, n)))
        self.position_embeddings = nn.Parameter(weft.zeros((1, places, n)))
        self.patch_embeddings = nn.ModuleDict(
            {"projection": nn.Conv2d(c["num_channels"], n, patch, stride=patch)}
        )

    def forward(self, images):
        x = self.patch_embeddings["projection"](images)
        x = x.flatten(2).permute(0, 2, 1)
        first = self.cls_token.broadcast_to((x.shape[0], 1, x.shape[2]))
        return weft.concat([first, x], axis=1) + self.position_embeddings


class _Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        n, self.heads = c["hidden_size"], c["num_attention_heads"]
        self.q_proj, self.k_proj, self.v_proj = (
            nn.Linear(n, n, bias=c["qkv_bias"]) for _ in range(3)
        )
        self.o_proj = nn.Linear(n, n)

    def forward(self, x):
        q, k, v = (heads_of(f(x), self.heads) for f in (self.q_proj, self.k_proj, self.v_proj))
        return self.o_proj(joined(attend(q, k, v)))


class _Feed(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.act = activation(c["hidden_act"])
        self.fc1 = nn.Linear(c["hidden_size"], c["intermediate_size"])
        self.fc2 = nn.Linear(c["intermediate_size"], c["hidden_size"])

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class _Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attention, self.mlp = _Attention(c), _Feed(c)
        self.layernorm_before = nn.LayerNorm(c["hidden_size"], c["layer_norm_eps"])
        self.layernorm_after = nn.LayerNorm(c["hidden_size"], c["layer_norm_eps"])

    def forward(self, x):
        x = x + self.attention(self.layernorm_before(x))
        return x + self.mlp(self.layernorm_after(x))


class Model(nn.Module):
    """Images (b, channels, h, w) to logits (b, labels), or to hidden states without labels."""

    def __init__(self, config):
        super().__init__()
        c = self.config = {**DEFAULTS, **config}
        labels = c["num_labels"] or len(c["id2label"] or ())
        self.embeddings = _Embeddings(c)
        self.layers = [_Layer(c) for _ in range(c["num_hidden_layers"])]
        self.layernorm = nn.LayerNorm(c["hidden_size"], c["layer_norm_eps"])
        self.classifier = nn.Linear(c["hidden_size"], labels) if labels else None

    def forward(self, images):
        x = self.embeddings(images)
        for layer in self.layers:
            x = layer(x)
        x = self.layernorm(x)
        return x if self.classifier is None else self.classifier(x[:, 0])
