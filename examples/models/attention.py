# SPDX-License-Identifier: Apache-2.0
"""Attention with kept keys and values, and what the models of this folder have in common."""

import weft
from weft import nn

STEP = 64  # kept lengths are rounded up to multiples of this: few shapes, so few kernels


class Cache:
    """Keys and values of one layer: (batch, heads, capacity, width), filled from the front."""

    def __init__(self, batch, heads, capacity, width, dtype, device):
        shape = (batch, heads, -(-capacity // STEP) * STEP, width)
        self.keys, self.values = (weft.zeros(shape, dtype=dtype, device=device) for _ in range(2))
        self.length = 0

    def extended(self, k, v):
        """Keys, values and a mask for the new queries: (t, kept length rounded up), true where one may attend."""
        first, self.length = self.length, self.length + k.shape[2]
        if self.length > self.keys.shape[2]:
            raise weft.ShapeError(
                f"{self.length} tokens in a cache of {self.keys.shape[2]}: generate with a larger max_length"
            )
        self.keys[:, :, first : self.length] = k.data
        self.values[:, :, first : self.length] = v.data
        held = -(-self.length // STEP) * STEP
        device = self.keys.device
        at = weft.arange(held, device=device)[None, :]
        mask = at <= weft.arange(first, self.length, device=device)[:, None]
        keys, values = (
            weft.Tensor(x[:, :, :held], requires_grad=False) for x in (self.keys, self.values)
        )
        return keys, values, mask


def heads_of(x, count):
    """(b, t, count * d) as (b, count, t, d)."""
    b, t, width = x.shape
    return x.reshape(b, t, count, width // count).permute(0, 2, 1, 3)


def joined(x):
    """(b, heads, t, d) as (b, t, heads * d)."""
    b, heads, t, d = x.shape
    return x.permute(0, 2, 1, 3).reshape(b, t, heads * d)


def attend(q, k, v, cache=None, mask=None, causal=False):
    """Attention of heads; fewer heads of keys than of queries are shared. With a cache, causal over all it holds."""
    shared = q.shape[1] != k.shape[1]
    if cache is not None:
        k, v, mask = cache.extended(k, v)
        causal = False
    return nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=shared
    )


def activation(name):
    """The function that a configuration names."""
    known = {
        "gelu": nn.functional.gelu,
        "gelu_new": lambda x: nn.functional.gelu(x, approximate="tanh"),
        "gelu_pytorch_tanh": lambda x: nn.functional.gelu(x, approximate="tanh"),
        "relu": nn.functional.relu,
        "silu": nn.functional.silu,
    }
    if name not in known:
        raise weft.ArgumentError(f"activation {name!r} is not known; there are: {', '.join(known)}")
    return known[name]
