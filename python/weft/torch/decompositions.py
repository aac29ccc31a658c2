# SPDX-License-Identifier: Apache-2.0
"""What torch takes apart before weft sees a graph: core operators for what has no rule, lists of tensors, dropout."""

from __future__ import annotations

import torch

from . import margins, rules
from .layers import attention, encoder_layer


def decompositions():
    """torch's decompositions into core operators, for what weft has no rule for, and some of weft's own."""
    from torch._decomp import core_aten_decompositions

    rules.load()
    known = {*rules.FUSED, *rules.ARRAYS, *rules.VIEWS}
    table = {op: f for op, f in core_aten_decompositions().items() if str(op) not in known}
    # torch's form of it draws other numbers than its kernel does.
    table.pop(torch.ops.aten.bernoulli.default, None)
    for eye in (
        torch.ops.aten.eye.default,
        torch.ops.aten.eye.m,
    ):  # torch's form counts in uint16, which its kernels lack
        table.pop(eye, None)
    table[torch.ops.aten.native_dropout.default] = _dropout
    table[torch.ops.aten._efficientzerotensor.default] = _zeros
    table[torch.ops.aten._native_multi_head_attention.default] = attention
    table[torch.ops.aten._transformer_encoder_layer_fwd.default] = encoder_layer
    return {**_of_lists(), **table, **margins.table()}


def _dropout(x, p, train):
    """torch draws the mask, from the generator and in the order that the eager operator would; weft applies it.

    On a card torch's operator draws other numbers than its Bernoulli kernel does: it stays whole there.
    """
    if x.device.type == "cuda" or train is False or p == 0 or not x.dtype.is_floating_point:
        return NotImplemented
    mask = _drawn(torch.empty_like(x, dtype=torch.bool), 1.0 - p)
    return x * mask * (0.0 if p == 1 else 1.0 / (1.0 - p)), mask


def _drawn(like, p):
    """True with probability p, drawn in the order in which the elements of `like` lie in memory, as torch's kernels do."""
    if like.is_contiguous():
        return torch.ops.aten.bernoulli.p(like, p)
    order = sorted(range(like.dim()), key=like.stride, reverse=True)
    drawn = torch.ops.aten.bernoulli.p(like.permute(order), p)
    return drawn.permute([order.index(axis) for axis in range(like.dim())])


def _zeros(size, **options):
    """Zeros with memory: those of forward derivatives have none, and cannot be exported."""
    return torch.zeros(size, **{k: v for k, v in options.items() if k != "layout"})


#: Operators of lists (an optimizer's steps over all parameters) as functions of one element of each list.
_SINGLE = dict(
    abs=torch.abs, neg=torch.neg, exp=torch.exp, log=torch.log, sqrt=torch.sqrt, rsqrt=torch.rsqrt, sign=torch.sign,
    reciprocal=torch.reciprocal, sigmoid=torch.sigmoid, tanh=torch.tanh, zero=torch.zeros_like, add=torch.add,
    sub=torch.sub, mul=torch.mul, div=torch.div, pow=torch.pow, lerp=torch.lerp,
    clamp_min=torch.clamp_min, clamp_max=torch.clamp_max, maximum=torch.clamp_min, minimum=torch.clamp_max,
    addcmul=lambda x, a, b, value=1: torch.addcmul(x, a, b, value=value),
    addcdiv=lambda x, a, b, value=1: torch.addcdiv(x, a, b, value=value),
    copy=lambda x, source, non_blocking=False: torch.ops.aten.copy(x, source),
    norm=lambda x, ord=2, dtype=None: torch.linalg.vector_norm(x, ord, dtype=dtype),
)  # fmt: skip


def _of_lists():
    """Decompositions of operators of lists of tensors into the operators of their elements."""
    table = {}
    for name, single in _SINGLE.items():
        packet = getattr(torch.ops.aten, f"_foreach_{name}", None)
        for overload in packet.overloads() if packet else ():
            op = getattr(packet, overload)
            if not op._schema.is_mutable and not (name.startswith("addc") and overload == "Tensor"):
                table[op] = _element_by_element(op, single)
    return table


def _element_by_element(op, single):
    arguments = op._schema.arguments
    lists = {a.name for a in arguments if str(a.type).startswith("List")}

    def rule(*args, **kwargs):
        given = {a.name: x for a, x in zip(arguments, args)}
        count = len(next(x for name, x in given.items() if name in lists))
        element = lambda name, x, i: x[i] if name in lists else x  # noqa: E731
        return [
            single(
                *(element(name, x, i) for name, x in given.items()),
                **{name: element(name, x, i) for name, x in kwargs.items()},
            )
            for i in range(count)
        ]

    return rule
