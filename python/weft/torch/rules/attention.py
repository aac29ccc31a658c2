# SPDX-License-Identifier: Apache-2.0
"""Scaled dot-product attention and its gradient, in the form torch has for the host."""

from __future__ import annotations

import math

from ... import _core
from .common import Unsupported, array, as_type


def _options(q, k, v, dropout, is_causal, mask, scale):
    if dropout:
        raise Unsupported("attention with dropout draws torch's random numbers")
    if not (q.size and k.size and v.size):
        raise Unsupported("attention without elements")
    options = {"scale": 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)}
    if is_causal:
        options["band"] = (-(1 << 40), 0)
    if mask is not None:
        options["mask"] = mask
    return options


@array("_scaled_dot_product_flash_attention_for_cpu.default")
def _attention(c, q, k, v, dropout=0.0, is_causal=False, *, attn_mask=None, scale=None):
    options = _options(q, k, v, dropout, is_causal, attn_mask, scale)
    wanted = c.wanted is None or 1 in c.wanted
    out, sums = _core._attention_forward(q, k, v, want_sums=wanted, **options)
    if sums is None:
        return as_type(out, c.dtype), None
    # torch 2.4 says float32 for the sums of float64 queries; its kernels give and take float64.
    kept = c.dtype if q.dtype == _core.float64 else c.dtypes[1]
    return as_type(out, c.dtype), as_type(sums, kept)


@array("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def _attention_backward(c, g, q, k, v, out, logsumexp, dropout, is_causal, *, attn_mask=None, scale=None):  # fmt: skip
    options = _options(q, k, v, dropout, is_causal, attn_mask, scale)
    found = _core._attention_backward(g, q, k, v, out, logsumexp, **options)
    return tuple(as_type(a, t) for a, t in zip(found, c.dtypes))
