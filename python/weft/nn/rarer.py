# SPDX-License-Identifier: Apache-2.0
"""Layers that few programs use: softmax over many classes, normalisation between processes, names of older programs."""

from __future__ import annotations

from collections import namedtuple

import weft

from .. import _core
from .._errors import error as _error
from . import functional as F
from .groups import LocalResponseNorm
from .layers import Linear, ModuleList, Sequential
from .loss_layers import NLLLoss
from .module import Module
from .norms import BatchNorm1d

__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
    "CrossMapLRN2d",
    "DataParallel",
    "NLLLoss2d",
    "SyncBatchNorm",
]

Output = namedtuple("Output", "output loss")


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over n_classes in clusters, frequent classes first: (log probability of each target, mean loss).

    x (n, in_features), target (n,); cutoffs: where clusters begin. log_prob(x) gives (n, n_classes), predict(x) the best class.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs or cutoffs != sorted(set(cutoffs)) or min(cutoffs) < 1 or max(cutoffs) >= n_classes:  # fmt: skip
            raise _error(
                weft.ArgumentError,
                "nn.adaptive_softmax.cutoffs",
                f"cutoffs {cutoffs} of {n_classes} classes",
                ["rule: ascending, from 1 to n_classes - 1"],
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.clusters = len(cutoffs)
        self.head = Linear(in_features, cutoffs[0] + self.clusters, bias=head_bias)
        tails = []
        for k in range(self.clusters):
            inner = max(int(in_features // div_value ** (k + 1)), 1)
            tails.append(Sequential(Linear(in_features, inner, bias=False), Linear(inner, self.cutoffs[k + 1] - self.cutoffs[k], bias=False)))  # fmt: skip
        self.tail = ModuleList(tails)

    def log_prob(self, x):
        """The logarithms of the probabilities of all classes, (n, n_classes)."""
        head = F.log_softmax(self.head(x), -1)
        first = self.cutoffs[0]
        parts = [head[:, :first]]
        for k, tail in enumerate(self.tail):
            parts.append(F.log_softmax(tail(x), -1) + head[:, first + k : first + k + 1])
        return weft.concat(parts, axis=1)

    def predict(self, x):
        """The class of the largest probability, (n,)."""
        out = self.log_prob(x)
        return weft.argmax(out.data if isinstance(out, weft.Tensor) else out, axis=1)

    def forward(self, x, target):
        target = weft.asarray(getattr(target, "data", target)).astype("int64")
        picked = weft.take_along_axis(self.log_prob(x), weft.expand_dims(target, axis=1), axis=1)
        picked = picked.reshape((-1,))
        return Output(picked, -picked.mean())


class CrossMapLRN2d(LocalResponseNorm):
    """As LocalResponseNorm."""


class NLLLoss2d(NLLLoss):
    """As NLLLoss, for (n, c, h, w) with classes (n, h, w)."""


class SyncBatchNorm(BatchNorm1d):
    """BatchNorm whose statistics are those of the batches of all processes of the job of weft.distributed; of one process, its own.

    Takes (n, c) and (n, c, ...). Statistics pass no gradient between processes.
    """

    ranks = (2, 3, 4, 5)

    def forward(self, x):
        from .. import distributed

        if not self.training or not distributed.is_initialized() or distributed.size() == 1:
            return super().forward(x)
        axes = (0, *range(2, x.ndim))
        data = x.data
        count = weft.asarray([float(x.size // x.shape[1])], dtype=data.dtype, device=data.device)
        sums = weft.concat([weft.sum(data, axis=axes), weft.sum(data * data, axis=axes), count])
        sums = distributed.all_reduce(sums)
        c, n = x.shape[1], float(sums[-1])
        mean, square = sums[:c] / n, sums[c : 2 * c] / n
        var = weft.maximum(square - mean * mean, 0.0)
        self._remember(mean, var, n)
        return F.batch_norm(x, mean, var, self.weight, self.bias, False, self.eps)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with its batch norms turned into synchronised ones."""
        from .norms import BatchNorm2d, BatchNorm3d

        for m in module.modules():
            if type(m) in (BatchNorm1d, BatchNorm2d, BatchNorm3d):
                m.__class__ = cls
        return module


class DataParallel(Module):
    """Refused: one process drives one device here. weft.distributed trains on several."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        raise _error(
            _core.ArgumentError,
            "nn.data_parallel",
            "DataParallel: one process drives one device",
            help="weft.distributed.DataParallel(model) in one process for each card; `weft.distributed.init()` begins",
        )
