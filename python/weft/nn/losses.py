# SPDX-License-Identifier: Apache-2.0
"""Losses, as functions. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

import math

import weft

from .._core import shown as _shown
from .. import _core
from .._core import Tensor
from .._errors import error as _error
from .._pointwise import pointwise as _pointwise
from .._wide import narrow as _narrow, wide as _wide

__all__ = [
    "cross_entropy",
    "nll_loss",
    "mse",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
]


def _reduced(x, reduction):
    if reduction not in ("mean", "sum", "none"):
        raise _error(
            weft.ArgumentError,
            "nn.loss.reduction",
            f"no reduction is called {_shown(reduction)}",
            ['legal: "mean", "sum", "none"'],
        )
    return x if reduction == "none" else getattr(x, reduction)()


def each(function, reduction, x, *args):
    """An elementwise loss, one of those below, reduced."""
    if reduction == "mean" and _narrow(x):
        return each(function, reduction, *(_wide(a) for a in (x, *args))).astype(x.dtype)
    if reduction in function and x.size:
        return function[reduction](x, *args)
    return _reduced(function["none"](x, *args), reduction)


def in_one_pass(function):
    """An elementwise loss, its sum and its mean."""
    return {r: _pointwise(function, r) for r in ("none", "sum", "mean")}


@in_one_pass
def _square(x, y):
    return (x - y) * (x - y)


@in_one_pass
def _distance(x, y):
    return weft.abs(x - y)


@in_one_pass
def _huber(x, y, delta):
    d = weft.abs(x - y)
    near = weft.minimum(d, delta)
    return near * (d - near * 0.5)


@in_one_pass
def _logistic(x, y):
    return weft.relu(x) - x * y + weft.log1p(weft.exp(-weft.abs(x)))


@in_one_pass
def _crossed(x, y):
    yes, no = (weft.clip(weft.log(p), -100.0, None) for p in (x, 1.0 - x))
    return -(y * yes + (1.0 - y) * no)


@in_one_pass
def _logistic_of_parts(x, y, scale):
    stable = weft.relu(-x) + weft.log1p(weft.exp(-weft.abs(x)))
    return (1.0 - y) * x + (y * (scale - 1.0) + 1.0) * stable


@in_one_pass
def _divergence(x, y):
    return y * (weft.log(weft.where(y > 0, y, 1.0)) - x)


@in_one_pass
def _divergence_of_logarithms(x, y):
    return weft.exp(y) * (y - x)


def _like(x, target, name):
    target = target if isinstance(target, Tensor) else Tensor(target, requires_grad=False)
    if x.shape != target.shape:
        raise _error(
            weft.ShapeError,
            "nn.loss.shape",
            f"{name} compares shape {x.shape} with {target.shape}",
            note="rule: equal shapes; losses do not broadcast",
        )
    return target.to(x.device)


def _picked(scores, labels, name):
    """(rows of scores, labels in a row, their shape): scores (n, classes, ...) become (n, ..., classes)."""
    labels = weft.asarray(getattr(labels, "data", labels)).to(scores.device)
    if scores.ndim < 2 or labels.shape != (scores.shape[0], *scores.shape[2:]):
        want = (scores.shape[0], *scores.shape[2:]) if scores.ndim else ()
        raise _error(
            weft.ShapeError,
            f"nn.{name}.shape",
            f"logits {scores.shape} need labels of shape {want}, got {labels.shape}",
        )
    if scores.ndim > 2:
        scores = scores.permute(0, *range(2, scores.ndim), 1)
    return scores.reshape(labels.size, scores.shape[-1]), labels.reshape(-1), labels.shape


def cross_entropy(
    logits, labels, ignore_index=None, label_smoothing=0.0, reduction="mean", weight=None
):
    """-log softmax(logits)[label]; logits (n, classes) or (n, classes, ...), labels integers without the class axis.

    Rows labelled ignore_index count neither in the sum nor in the mean. label_smoothing s puts (1 - s) on the label
    and s / classes on every class. `weight` scales each class's part; the mean is then over the labels' weights.
    Labels of the logits' own shape and of floats are probabilities of the classes. Raises ShapeError, ArgumentError,
    and IndexError for labels outside [0, classes). In the third place PyTorch's weight is understood, too.
    """
    ignore_index, weight = _third(ignore_index, weight, None)
    _check_ignored("cross_entropy", ignore_index)
    if _are_probabilities(logits, labels):
        return _soft_cross_entropy(logits, labels, label_smoothing, reduction, weight)
    rows, labels, shape = _picked(logits, labels, "cross_entropy")
    of_scores = isinstance(rows, Tensor) and not label_smoothing
    losses, keep = _chosen(
        rows if of_scores else rows.log_softmax(-1),
        labels,
        ignore_index,
        label_smoothing,
        weight,
        of_scores,
    )
    return _mean_of(losses, keep, reduction, shape)


def _third(option, weight, default):
    """(option, weight) of a call whose third place has the option, or the weight as in PyTorch."""
    if weight is None and isinstance(option, (weft.Tensor, weft.NDArray)):
        return default, option
    return option, weight


def _check_ignored(name, ignore_index):
    if ignore_index is not None and not isinstance(ignore_index, int):
        raise _error(
            weft.ArgumentError,
            "nn.loss.ignore_index",
            f"{name} got a {type(ignore_index).__name__} as ignore_index",
            ["legal: an integer, or None"],
            help="weights of the classes are an array, or named: weight=...",
        )


def _are_probabilities(logits, labels):
    shape, dtype = getattr(labels, "shape", None), getattr(labels, "dtype", None)
    if shape is None or tuple(shape) != tuple(logits.shape) or logits.ndim < 2:
        return False
    return weft.isdtype(weft.asarray(getattr(labels, "data", labels)).dtype, "real floating") and (
        dtype is not None
    )


def _soft_cross_entropy(logits, target, smoothing, reduction, weight):
    target = _like(logits, target, "cross_entropy").astype(logits.dtype)
    classes = logits.shape[1]
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / classes
    z = -logits.log_softmax(1) * target
    if weight is not None:
        weight = weft.asarray(getattr(weight, "data", weight)).to(logits.device)
        shape = (1, classes, *(1,) * (logits.ndim - 2))
        z = z * Tensor(weight.astype(logits.dtype).reshape(shape), requires_grad=False)
    out = z.sum(1)
    return out.sum() * (1.0 / out.size) if reduction == "mean" else _reduced(out, reduction)


def nll_loss(log_probabilities, labels, ignore_index=None, reduction="mean", weight=None):
    """-log_probabilities[label]: cross_entropy of what log_softmax already normalised."""
    ignore_index, weight = _third(ignore_index, weight, None)
    _check_ignored("nll_loss", ignore_index)
    rows, labels, shape = _picked(log_probabilities, labels, "cross_entropy")
    losses, keep = _chosen(rows, labels, ignore_index, 0.0, weight)
    return _mean_of(losses, keep, reduction, shape)


def _outside(classes):
    """What the error of a label that is no class says: code, message, help."""
    message = f"a label is outside [0, {classes})"
    return "nn.cross_entropy.label", message, "count classes from 0; ignore_index leaves labels out"


def _places_of(labels, classes):
    """(flat places of the labels among all classes of all rows, labels to read with, where they were none of [0, classes) or None): raises for the latter, on a card when the host next waits for it."""
    code, message, help = _outside(classes)
    device = labels.device
    recording, wrong = _core._recording(device), None
    if recording:  # nobody can be told: the loss of such a label is no number
        wrong = (labels < 0) | (labels >= classes)
        labels = weft.where(wrong, 0, labels)
    elif device.limits.get("threads_per_block", 0):
        return _core._label_positions(labels, classes, code, message, help), labels, None
    elif labels.size and (int(weft.min(labels)) < 0 or int(weft.max(labels)) >= classes):
        raise _error(weft.IndexError, code, message, help=help)
    at = weft.arange(labels.size, dtype=labels.dtype, device=device) * classes + labels
    return at, labels, wrong


def _losses_of(rows, labels):
    """(losses of logarithms of probabilities, labels to read with)"""
    at, labels, wrong = _places_of(labels, rows.shape[1])
    losses = -_core._gather_tensor(rows.reshape(rows.size), at)
    if wrong is not None:
        zeros = weft.zeros_like(losses.data)
        losses = losses + Tensor(weft.where(wrong, math.nan, zeros), requires_grad=False)
    return losses, labels


def _chosen(rows, labels, ignore_index, smoothing, weight, of_scores=False):
    """(losses of the rows, how much each counts in a mean, or None where all count as one). Rows are logarithms of probabilities, or scores."""
    n, classes = rows.shape
    valid = None
    labels = _core._as_positions(labels)  # int32 on machines of 32 bits
    if weight is not None:
        weight = weft.asarray(getattr(weight, "data", weight)).to(rows.device).astype(rows.dtype)
        if weight.shape != (classes,):
            raise _error(
                weft.ShapeError,
                "nn.cross_entropy.weight",
                f"{classes} classes need as many weights, got shape {weight.shape}",
                help="give one weight for each class",
            )
    if ignore_index is not None:
        valid = labels != ignore_index
        labels = weft.where(valid, labels, 0)
    if of_scores:
        losses = _core._label_losses(rows, labels, *_outside(classes))
    else:
        losses, labels = _losses_of(rows, labels)
    keep = None if valid is None else valid.astype(rows.dtype)
    if weight is not None:
        counts = weft.take(weight, labels, axis=0)
        losses = losses * Tensor(counts, requires_grad=False)
        if smoothing:
            rows = rows * Tensor(weight, requires_grad=False)
        keep = counts if keep is None else keep * counts
    if smoothing:
        losses = losses * (1.0 - smoothing) - rows.mean(1) * smoothing
    if valid is not None:
        losses = losses * Tensor(valid.astype(rows.dtype), requires_grad=False)
    return losses, keep


def _mean_of(losses, keep, reduction, shape):
    if keep is not None and reduction == "mean":
        return losses.sum() / Tensor(weft.sum(keep), requires_grad=False)
    out = _reduced(losses, reduction)
    return out.reshape(*shape) if reduction == "none" else out


def mse(x, y):
    """Mean of squared differences; shapes broadcast."""
    d = x - y
    return (d * d).mean()


def mse_loss(x, target, reduction="mean"):
    """Squared differences of equal shapes."""
    return each(_square, reduction, x, _like(x, target, "mse_loss"))


def l1_loss(x, target, reduction="mean"):
    """Absolute differences of equal shapes."""
    return each(_distance, reduction, x, _like(x, target, "l1_loss"))


def huber_loss(x, target, reduction="mean", delta=1.0):
    """d * d / 2 where |d| < delta, else delta * (|d| - delta / 2)."""
    return each(_huber, reduction, x, _like(x, target, "huber_loss"), delta)


def smooth_l1_loss(x, target, reduction="mean", beta=1.0):
    """huber_loss(delta=beta) / beta; l1_loss when beta is 0."""
    if beta == 0:
        return l1_loss(x, target, reduction)
    return huber_loss(x, target, reduction, beta) / beta


def _weighed(loss, weight):
    if weight is None:
        return loss
    weight = weft.asarray(getattr(weight, "data", weight)).to(loss.device).astype(loss.dtype)
    return loss * Tensor(weight, requires_grad=False)


def binary_cross_entropy(x, target, reduction="mean", weight=None):
    """-(t log x + (1 - t) log(1 - x)) of probabilities; logarithms are held at -100, as in PyTorch."""
    reduction, weight = _third(reduction, weight, "mean")
    target = _like(x, target, "binary_cross_entropy")
    if weight is None:
        return each(_crossed, reduction, x, target)
    return _reduced(_weighed(_crossed["none"](x, target), weight), reduction)


def binary_cross_entropy_with_logits(x, target, reduction="mean", pos_weight=None, weight=None):
    """binary_cross_entropy(sigmoid(x), target), without overflow for large |x|; pos_weight scales the part of t,
    weight, which broadcasts, each loss."""
    reduction, weight = _third(reduction, weight, "mean")
    target = _like(x, target, "binary_cross_entropy_with_logits")
    if pos_weight is None and weight is None:
        return each(_logistic, reduction, x, target)
    if pos_weight is None:
        stable = _logistic["none"](x, target)
    else:
        pos_weight = weft.asarray(getattr(pos_weight, "data", pos_weight)).to(x.device)
        stable = _logistic_of_parts["none"](x, target, pos_weight.astype(x.dtype))
    return _reduced(_weighed(stable, weight), reduction)


def kl_div(x, target, reduction="mean", log_target=False):
    """t (log t - x) with x a logarithm of probabilities; "batchmean" is the sum over the rows' number.

    With log_target the target is a logarithm, too.
    """
    target = _like(x, target, "kl_div")
    function = _divergence_of_logarithms if log_target else _divergence
    if reduction == "batchmean":
        return each(function, "sum", x, target) / float(x.shape[0])
    return each(function, reduction, x, target)
