# SPDX-License-Identifier: Apache-2.0
"""Functions of layers under other names: activations that change their argument (one table), resampling by older names, attention
from given weights."""

from __future__ import annotations

import weft

from .._errors import error as _error
from .._methods.inplace import _replace

_IN_PLACE = "celu elu hardtanh leaky_relu relu rrelu selu threshold"
__all__ = [
    *(f"{name}_" for name in _IN_PLACE.split()),
    "conv_tbc",
    "multi_head_attention_forward",
    "native_channel_shuffle",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def _functional():
    from . import functional

    return functional


def _in_place(name):
    def function(x, *args, **kwargs):
        plain = x.data if isinstance(x, weft.Tensor) else x
        return _replace(x, getattr(_functional(), name)(plain, *args, **kwargs), f"{name}_")

    function.__name__ = function.__qualname__ = f"{name}_"
    function.__doc__ = f"The elements of x become those of {name}(x, ...); gives x."
    return function


for _name in _IN_PLACE.split():
    globals()[f"{_name}_"] = _in_place(_name)


def conv_tbc(x, weight, bias, pad=0):
    """A convolution of (time, batch, channels) with weight (taps, channels, results)."""
    y = _functional().conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return y.permute(2, 0, 1)


def native_channel_shuffle(x, groups):
    """As channel_shuffle."""
    return _functional().channel_shuffle(x, groups)


def upsample(x, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """As interpolate."""
    return _functional().interpolate(x, size, scale_factor, mode, bool(align_corners))


def upsample_nearest(x, size=None, scale_factor=None):
    """interpolate by the nearest element."""
    return _functional().interpolate(x, size, scale_factor, "nearest")


def upsample_bilinear(x, size=None, scale_factor=None):
    """interpolate between elements, corners on corners."""
    return _functional().interpolate(x, size, scale_factor, "bilinear", True)


def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
    out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    average_attn_weights=True,
):  # fmt: skip
    """(output, weights) of nn.MultiheadAttention with given weights in PyTorch's layout: queries (t, n, e), in_proj_weight (3 e, e),
    out_proj_weight (e, e). bias_k, bias_v and add_zero_attn are refused; dropout is left to the module."""
    from .transformers import MultiheadAttention

    if bias_k is not None or bias_v is not None or add_zero_attn:
        raise _error(
            weft.ArgumentError,
            "nn.attention.option",
            "multi_head_attention_forward with bias_k, bias_v or add_zero_attn",
            help="append the rows to key and value before the call",
        )
    e = query.shape[-1]
    made = MultiheadAttention(1, 1, batch_first=False)
    made.embed_dim = made.kdim = made.vdim = e
    made.num_heads, made.dropout, made.training = num_heads, dropout_p, training
    made.in_proj_weight, made.in_proj_bias = in_proj_weight, in_proj_bias
    made.out_proj.weight, made.out_proj.bias = out_proj_weight.T, out_proj_bias
    return made.forward(
        query, key, value, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
        average_attn_weights=average_attn_weights,
    )  # fmt: skip
