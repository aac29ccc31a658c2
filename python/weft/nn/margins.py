# SPDX-License-Identifier: Apache-2.0
"""Losses of rankings, margins, distributions and sequences; formulas are PyTorch's."""

from __future__ import annotations

import math

import weft

from .. import _core
from .._core import Tensor
from .._errors import error as _error
from .._methods.tools import plain
from .distances import cosine_similarity, pairwise_distance
from .losses import _like, _reduced, each, in_one_pass

__all__ = [
    "margin_ranking_loss",
    "hinge_embedding_loss",
    "cosine_embedding_loss",
    "soft_margin_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "poisson_nll_loss",
    "gaussian_nll_loss",
    "ctc_loss",
]


def _fixed(x, like):
    """A tensor without gradient on the device of another; tensors stay what they are."""
    if isinstance(x, Tensor):
        return x.to(like.device)
    return Tensor(weft.asarray(x, device=like.device), requires_grad=False)


def _integers(x, like):
    return weft.asarray(getattr(x, "data", x)).to(like.device).astype("int64")


def _in_range(name, labels, n):
    if labels.size and (int(weft.min(labels)) < 0 or int(weft.max(labels)) >= n):
        raise _error(
            weft.IndexError,
            "nn.loss.label",
            f"{name}: a label is outside [0, {n})",
            help="count classes from 0",
        )


@in_one_pass
def _ranked(x, y, target, margin):
    return weft.relu((y - x) * target + margin)


@in_one_pass
def _hinged(x, target, margin):
    return weft.where(plain(target) == 1, x, weft.relu(margin - x))


@in_one_pass
def _soft_margin(x, target):
    z = -x * target
    return weft.relu(z) + weft.log1p(weft.exp(-weft.abs(z)))


@in_one_pass
def _poisson(x, target, log_input, full, eps):
    loss = weft.exp(x) - target * x if log_input else x - target * weft.log(x + eps)
    if not full:
        return loss
    t = weft.clip(target, 1.0, None)
    term = t * weft.log(t) - t + weft.log(t * (2.0 * math.pi)) * 0.5
    return loss + weft.where(plain(target) > 1, term, term * 0.0)


@in_one_pass
def _gaussian(x, target, var, full):
    d = x - target
    loss = (weft.log(var) + d * d / var) * 0.5
    return loss + 0.5 * math.log(2.0 * math.pi) if full else loss


def margin_ranking_loss(x, y, target, margin=0.0, reduction="mean"):
    """max(0, -target (x - y) + margin); target is 1 where x should be larger, else -1."""
    return each(_ranked, reduction, x, y, _fixed(target, x), margin)


def hinge_embedding_loss(x, target, margin=1.0, reduction="mean"):
    """x where target is 1, max(0, margin - x) where it is -1."""
    return each(_hinged, reduction, x, _like(x, target, "hinge_embedding_loss"), margin)


def cosine_embedding_loss(x, y, target, margin=0.0, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1; cos along the last axis."""
    cos = cosine_similarity(x, y, -1)
    target = _fixed(target, x).data
    return _reduced(weft.where(target == 1, 1.0 - cos, weft.relu(cos - margin)), reduction)


def soft_margin_loss(x, target, reduction="mean"):
    """log(1 + exp(-target x))."""
    return each(_soft_margin, reduction, x, _like(x, target, "soft_margin_loss"))


def multi_margin_loss(x, target, p=1, margin=1.0, weight=None, reduction="mean"):
    """Mean over the classes i other than the target t of max(0, margin - x[t] + x[i]) ** p; x is (n, classes)."""
    labels = _integers(target, x)
    if x.ndim != 2 or labels.shape != x.shape[:1]:
        raise _error(
            weft.ShapeError,
            "nn.multi_margin_loss.shape",
            f"multi_margin_loss of shape {x.shape} with labels of shape {labels.shape}",
            ["rule: (n, classes) and (n,)"],
        )
    n, classes = x.shape
    _in_range("multi_margin_loss", labels, classes)
    own = weft.take_along_axis(x, labels.reshape(n, 1), axis=1)
    z = weft.relu(x - own + margin)
    z = z if p == 1 else z**p
    if weight is not None:
        of = weft.take(weft.asarray(getattr(weight, "data", weight)).to(x.device), labels, axis=0)
        z = z * Tensor(of.astype(x.dtype).reshape(n, 1), requires_grad=False)
    others = weft.arange(classes, device=x.device).reshape(1, classes) != labels.reshape(n, 1)
    return _reduced(weft.where(others, z, z * 0.0).sum(1) * (1.0 / classes), reduction)


def multilabel_margin_loss(x, target, reduction="mean"):
    """Mean of max(0, 1 - x[t] + x[i]) over targets t and the classes i that are no targets.

    target lists classes, ended by -1; x is (n, classes) or (classes,).
    """
    labels = _integers(target, x)
    if x.ndim not in (1, 2) or labels.shape != x.shape:
        raise _error(
            weft.ShapeError,
            "nn.multilabel_margin_loss.shape",
            f"multilabel_margin_loss of shape {x.shape} with labels of shape {labels.shape}",
            ["rule: equal shapes, (n, classes) or (classes,)"],
        )
    if x.ndim == 1:
        return multilabel_margin_loss(x[None], labels[None], reduction).reshape(())
    n, classes = x.shape
    live = weft.cumulative_sum((labels < 0).astype("int64"), axis=1) == 0
    # The longest list: what lies behind it takes no part.
    most = int(weft.max(weft.sum(live.astype("int64"), axis=1))) if labels.size else 0
    labels, live = weft.where(live, labels, 0)[:, :most], live[:, :most]
    _in_range("multilabel_margin_loss", labels, classes)
    places = weft.arange(classes, device=x.device)
    chosen = (labels[:, :, None] == places) & live[:, :, None]  # (n, entries, classes)
    free = ~weft.any(chosen, axis=1)
    own = weft.take_along_axis(x, labels, axis=1)
    z = weft.relu(1.0 - own.unsqueeze(2) + x.unsqueeze(1))
    counted = live[:, :, None] & free[:, None, :]
    return _reduced(weft.where(counted, z, z * 0.0).sum((1, 2)) * (1.0 / classes), reduction)


def multilabel_soft_margin_loss(x, target, weight=None, reduction="mean"):
    """Mean over the classes of binary_cross_entropy_with_logits; the classes may have weights."""
    target = _like(x, target, "multilabel_soft_margin_loss")
    z = weft.relu(x) - x * target + weft.log1p(weft.exp(-weft.abs(x)))
    z = z if weight is None else z * _fixed(weight, x)
    return _reduced(z.mean(-1), reduction)


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the difference.

    With swap the negative's distance is the smaller of those to the anchor and to the positive.
    """

    def distance(a, b):
        return pairwise_distance(a, b, p, eps)

    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=distance,
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


def triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
):
    """triplet_margin_loss with a distance of one's own, pairwise_distance unless given."""
    distance = distance_function or pairwise_distance
    far = distance(anchor, negative)
    if swap:
        far = weft.minimum(far, distance(positive, negative))
    return _reduced(weft.relu(distance(anchor, positive) - far + margin), reduction)


def poisson_nll_loss(x, target, log_input=True, full=False, eps=1e-8, reduction="mean"):
    """exp(x) - target x, or x - target log(x + eps) without log_input; `full` adds Stirling's term for target > 1."""
    target = _like(x, target, "poisson_nll_loss")
    return each(_poisson, reduction, x, target, bool(log_input), bool(full), eps)


def gaussian_nll_loss(x, target, var, full=False, eps=1e-6, reduction="mean"):
    """(log var + (x - target)^2 / var) / 2, var held at eps; `full` adds log(2 pi) / 2.

    var has x's shape, or 1 in place of the last axis, or lacks it.
    """
    target, var = _like(x, target, "gaussian_nll_loss"), _fixed(var, x)
    if var.shape == x.shape[:-1]:
        var = var.unsqueeze(-1)
    if var.shape not in (x.shape, (*x.shape[:-1], 1)) or bool(weft.any(var.data < 0)):
        raise _error(
            weft.ShapeError if bool(weft.all(var.data >= 0)) else weft.ArgumentError,
            "nn.gaussian_nll_loss.var",
            f"gaussian_nll_loss of shape {x.shape} got variances of shape {var.shape}, the smallest {weft.min(var.data)}",
            ["rule: x's shape, or 1 for the last axis; nowhere negative"],
        )
    # Held at eps by what is added, so that the variance has a gradient there, as in PyTorch.
    var = var + Tensor(weft.clip(var.data, eps, None) - var.data, requires_grad=False)
    return each(_gaussian, reduction, x, target, var, bool(full))


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """-log of the probability of all alignments of a sequence of labels (Graves et al., 2006).

    log_probs is (time, batch, classes), targets (batch, labels) or all labels in a row; lengths are integers. "mean"
    divides each loss by its number of labels. zero_infinity gives 0 where no alignment exists.
    """
    if log_probs.ndim != 3:
        raise _error(
            weft.ShapeError,
            "nn.ctc_loss.shape",
            f"ctc_loss of shape {log_probs.shape}",
            ["rule: (time, batch, classes)"],
        )
    time, batch, classes = log_probs.shape
    lengths, counts = (
        [int(n) for n in weft.asarray(getattr(v, "data", v)).tolist()]
        for v in (input_lengths, target_lengths)
    )
    labels = weft.asarray(getattr(targets, "data", targets)).tolist()
    if labels and not isinstance(labels[0], list):
        ends = [sum(counts[: i + 1]) for i in range(batch)]
        labels = [labels[end - n : end] for end, n in zip(ends, counts)]
    legal = len(lengths) == len(counts) == batch == len(labels)
    legal = legal and all(0 <= n <= time for n in lengths)
    if not legal or any(n > len(row) for n, row in zip(counts, labels)):
        raise _error(
            weft.ArgumentError,
            "nn.ctc_loss.lengths",
            f"ctc_loss of {time} steps and {batch} sequences with lengths {lengths} of input, {counts} of target",
            ["rule: one of each for a sequence, at most its steps and labels"],
        )
    width = 2 * max(counts, default=0) + 1
    rows = [[blank] * width for _ in labels]  # blanks between the labels and at both ends
    for row, given, n in zip(rows, labels, counts):
        row[1 : 2 * n : 2] = given[:n]
    states = weft.asarray(rows, dtype="int64", device=log_probs.device)
    _in_range("ctc_loss", states, classes)
    # Two states back leads to a label that differs from the one before.
    skips = [
        [i > 1 and row[i] != blank and row[i] != row[i - 2] for i in range(width)] for row in rows
    ]
    low = -1e30 if log_probs.dtype in ("float32", "float64") else -6e4
    skip = weft.asarray(skips, device=log_probs.device)
    lowest = weft.full((batch, 2), low, dtype=log_probs.dtype, device=log_probs.device)
    lowest = Tensor(lowest, requires_grad=False)
    begin = weft.asarray([[i < 2 and i < 2 * n + 1 for i in range(width)] for n in counts])
    alpha = weft.where(begin.to(log_probs.device), _emitted(log_probs, 0, states), low)
    alphas = [alpha]
    for t in range(1, max(lengths, default=0)):
        padded = weft.concat([lowest, alpha], axis=1)
        two = weft.where(skip, padded[:, :width], low)
        ways = weft.stack([alpha, padded[:, 1 : width + 1], two], axis=2).logsumexp(2)
        alpha = ways + _emitted(log_probs, t, states)
        alphas.append(alpha)
    losses = []
    for i, (length, n) in enumerate(zip(lengths, counts)):
        if length == 0:
            losses.append(log_probs[0, i, 0] * 0.0 + (0.0 if n == 0 or zero_infinity else math.inf))
            continue
        last = alphas[length - 1][i, max(2 * n - 1, 0) : 2 * n + 1]
        loss = -last.logsumexp(0)
        impossible = float(loss.item()) > -low / 2
        losses.append(loss * 0.0 + (0.0 if zero_infinity else math.inf) if impossible else loss)
    out = weft.stack(losses)
    if reduction == "mean":
        each = weft.asarray([1.0 / max(n, 1) for n in counts], dtype=out.dtype, device=out.device)
        out = out * Tensor(each, requires_grad=False)
    return _reduced(out, reduction)


def _emitted(log_probs, t, states):
    """log_probs[t, i, states[i, s]]."""
    batch, width = states.shape
    classes = log_probs.shape[2]
    flat = log_probs[t].reshape(batch * classes)
    first = (weft.arange(batch, device=states.device) * classes).reshape(batch, 1)
    return _core._gather_tensor(flat, (first + states).reshape(-1)).reshape(batch, width)
