# SPDX-License-Identifier: Apache-2.0
"""Gradients of the margin losses as operators that weft has rules for; torch has one kernel for each."""

from __future__ import annotations

import torch

aten = torch.ops.aten
_NONE, _MEAN = 0, 1  # of torch's numbers for reductions


def _rows(x, *more):
    """All as rows of a batch, which has one row where the loss is that of a vector."""
    return [t.unsqueeze(0) if x.dim() < 2 else t for t in (x, *more)]


def _scale(grad, x, reduction):
    """What each row's gradient is multiplied by: a column, or a number."""
    grad = grad.reshape(-1, 1) if reduction == _NONE else grad
    return grad / (x.shape[1] * (x.shape[0] if reduction == _MEAN else 1))


def multi_margin_backward(grad, x, target, p, margin, weight=None, reduction=_MEAN):
    """Of max(0, margin - x[target] + x[d]) ** p, summed over the classes d other than the target."""
    rows, labels = _rows(x, target.reshape(-1) if x.dim() > 1 else target.reshape(()))
    at = labels.reshape(-1, 1)
    away = margin - rows.gather(1, at) + rows
    others = torch.arange(rows.shape[1], device=x.device) != at
    slope = torch.where((away > 0) & others, torch.ones_like(away) if p == 1 else 2 * away, 0.0)
    slope = slope * weight[at] if weight is not None else slope
    slope = torch.where(others, slope, -slope.sum(1, keepdim=True))
    return (slope * _scale(grad, rows, reduction)).to(x.dtype).reshape(x.shape)


def multilabel_margin_backward(grad, x, target, reduction, is_target):
    """Of max(0, 1 - x[t] + x[d]) over the targets t, which end at the first -1, and the classes d that are none."""
    rows, labels, known = _rows(x, target.reshape(x.shape), is_target.reshape(x.shape))
    listed = (labels < 0).to(torch.int64).cumsum(1) == 0
    at = torch.where(listed, labels, 0)
    away = 1 - rows.gather(1, at)[:, :, None] + rows[:, None, :]
    active = (away > 0) & listed[:, :, None] & (known == 0)[:, None, :]
    pairs = active.to(rows.dtype)
    slope = pairs.sum(1).scatter_add(1, at, -pairs.sum(2))
    return (slope * _scale(grad, rows, reduction)).to(x.dtype).reshape(x.shape)


def _of_a_vector(op):
    """torch's decomposition of the loss; that of a vector is a number, which torch gives an axis."""

    def loss(x, *args, **kwargs):
        from torch._decomp import decomposition_table

        found = decomposition_table[op](x, *args, **kwargs)
        several = isinstance(found, tuple)
        value = (found[0] if several else found).reshape(()) if x.dim() < 2 else None
        return found if value is None else (value, *found[1:]) if several else value

    return loss


def table():
    """{operator: its decomposition}."""
    losses = (aten.multi_margin_loss.default, aten.multilabel_margin_loss_forward.default)
    return {
        **{op: _of_a_vector(op) for op in losses},
        aten.multi_margin_loss_backward.default: multi_margin_backward,
        aten.multilabel_margin_loss_backward.default: multilabel_margin_backward,
    }
