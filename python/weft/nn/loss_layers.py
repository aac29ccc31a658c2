# SPDX-License-Identifier: Apache-2.0
"""Losses as modules."""

from __future__ import annotations

import weft

from .._errors import error as _error
from . import functional as F
from .module import Module


class _Loss(Module):
    def __init__(self, reduction="mean"):
        if not isinstance(reduction, str):
            raise _error(
                weft.ArgumentError,
                "nn.loss.reduction",
                f"{type(self).__name__} got a {type(reduction).__name__} as reduction",
                ['legal: "mean", "sum", "none"'],
                help="other options are named: weight=..., pos_weight=...",
            )
        super().__init__()
        self.reduction = reduction


def _first(weight, reduction):
    """(weight, reduction) of a loss whose first argument is PyTorch's weight, or the reduction."""
    return (None, weight) if isinstance(weight, str) else (weight, reduction)


class CrossEntropyLoss(_Loss):
    """nn.functional.cross_entropy."""

    def __init__(self, weight=None, ignore_index=None, label_smoothing=0.0, reduction="mean"):
        if isinstance(weight, int):
            weight, ignore_index = None, weight
        weight, reduction = _first(weight, reduction)
        super().__init__(reduction)
        self.ignore_index, self.label_smoothing, self.weight = ignore_index, label_smoothing, weight

    def forward(self, logits, labels):
        return F.cross_entropy(
            logits, labels, self.ignore_index, self.label_smoothing, self.reduction, self.weight
        )


class NLLLoss(_Loss):
    """nn.functional.nll_loss."""

    def __init__(self, weight=None, ignore_index=None, reduction="mean"):
        weight, reduction = _first(weight, reduction)
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def forward(self, logits, labels):
        return F.nll_loss(logits, labels, self.ignore_index, self.reduction, self.weight)


class MSELoss(_Loss):
    """nn.functional.mse_loss; with a mean, shapes may broadcast."""

    def forward(self, x, y):
        return F.mse(x, y) if self.reduction == "mean" else F.mse_loss(x, y, self.reduction)


class L1Loss(_Loss):
    """nn.functional.l1_loss."""

    def forward(self, x, y):
        return F.l1_loss(x, y, self.reduction)


class SmoothL1Loss(_Loss):
    """nn.functional.smooth_l1_loss."""

    def __init__(self, reduction="mean", beta=1.0):
        super().__init__(reduction)
        self.beta = beta

    def forward(self, x, y):
        return F.smooth_l1_loss(x, y, self.reduction, self.beta)


class BCELoss(_Loss):
    """nn.functional.binary_cross_entropy."""

    def __init__(self, weight=None, *, reduction="mean"):
        weight, reduction = _first(weight, reduction)
        super().__init__(reduction)
        self.weight = weight

    def forward(self, x, y):
        return F.binary_cross_entropy(x, y, self.reduction, self.weight)


class BCEWithLogitsLoss(_Loss):
    """nn.functional.binary_cross_entropy_with_logits."""

    def __init__(self, weight=None, *, reduction="mean", pos_weight=None):
        weight, reduction = _first(weight, reduction)
        super().__init__(reduction)
        self.pos_weight, self.weight = pos_weight, weight

    def forward(self, x, y):
        return F.binary_cross_entropy_with_logits(
            x, y, self.reduction, self.pos_weight, self.weight
        )


class HuberLoss(_Loss):
    """nn.functional.huber_loss."""

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x, y):
        return F.huber_loss(x, y, self.reduction, self.delta)


class KLDivLoss(_Loss):
    """nn.functional.kl_div."""

    def __init__(self, reduction="mean", log_target=False):
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, x, y):
        return F.kl_div(x, y, self.reduction, self.log_target)


class MarginRankingLoss(_Loss):
    """nn.functional.margin_ranking_loss."""

    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = margin

    def forward(self, x, y, target):
        return F.margin_ranking_loss(x, y, target, self.margin, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """nn.functional.hinge_embedding_loss."""

    def __init__(self, margin=1.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = margin

    def forward(self, x, target):
        return F.hinge_embedding_loss(x, target, self.margin, self.reduction)


class CosineEmbeddingLoss(MarginRankingLoss):
    """nn.functional.cosine_embedding_loss."""

    def forward(self, x, y, target):
        return F.cosine_embedding_loss(x, y, target, self.margin, self.reduction)


class SoftMarginLoss(_Loss):
    """nn.functional.soft_margin_loss."""

    def forward(self, x, target):
        return F.soft_margin_loss(x, target, self.reduction)


class MultiMarginLoss(_Loss):
    """nn.functional.multi_margin_loss."""

    def __init__(self, p=1, margin=1.0, weight=None, reduction="mean"):
        super().__init__(reduction)
        self.options = p, margin, weight

    def forward(self, x, target):
        return F.multi_margin_loss(x, target, *self.options, self.reduction)


class MultiLabelMarginLoss(_Loss):
    """nn.functional.multilabel_margin_loss."""

    def forward(self, x, target):
        return F.multilabel_margin_loss(x, target, self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """nn.functional.multilabel_soft_margin_loss."""

    def __init__(self, weight=None, reduction="mean"):
        super().__init__(reduction)
        self.weight = weight

    def forward(self, x, target):
        return F.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class TripletMarginLoss(_Loss):
    """nn.functional.triplet_margin_loss."""

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"):
        super().__init__(reduction)
        self.options = margin, p, eps, swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(anchor, positive, negative, *self.options, self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """nn.functional.triplet_margin_with_distance_loss."""

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(reduction)
        self.options = {"distance_function": distance_function, "margin": margin, "swap": swap}

    def forward(self, anchor, positive, negative):
        options = {**self.options, "reduction": self.reduction}
        return F.triplet_margin_with_distance_loss(anchor, positive, negative, **options)


class PoissonNLLLoss(_Loss):
    """nn.functional.poisson_nll_loss."""

    def __init__(
        self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
    ):
        super().__init__(reduction)
        self.options = log_input, full, eps

    def forward(self, x, target):
        return F.poisson_nll_loss(x, target, *self.options, self.reduction)


class GaussianNLLLoss(_Loss):
    """nn.functional.gaussian_nll_loss."""

    def __init__(self, full=False, eps=1e-6, reduction="mean"):
        super().__init__(reduction)
        self.options = full, eps

    def forward(self, x, target, var):
        return F.gaussian_nll_loss(x, target, var, *self.options, self.reduction)


class CTCLoss(_Loss):
    """nn.functional.ctc_loss."""

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
