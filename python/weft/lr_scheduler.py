# SPDX-License-Identifier: Apache-2.0
"""Learning rates over time; also weft.optim.lr_scheduler. Call step() after the optimizer's.

Every rate is a function of the rates at the start and the number of steps, so that a schedule may be taken up
anywhere: state_dict() holds both.
"""

from __future__ import annotations

import bisect
import math

__all__ = [
    "LRScheduler",
    "LambdaLR",
    "StepLR",
    "MultiStepLR",
    "ExponentialLR",
    "LinearLR",
    "CosineAnnealingLR",
    "ReduceLROnPlateau",
]


class LRScheduler:
    """Sets the rates of an optimizer's groups to rate(base, n) after n steps."""

    def __init__(self, optimizer):
        self.optimizer, self.last_epoch = optimizer, 0
        self.base_lrs = [g.setdefault("initial_lr", g["lr"]) for g in optimizer.param_groups]
        self._apply()

    def rate(self, base, n):
        """The rate of a group that began with `base`, after n steps."""
        raise NotImplementedError

    def _apply(self):
        for group, base in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = self.rate(base, self.last_epoch)

    def step(self):
        """Counts one step and sets the rates."""
        self.last_epoch += 1
        self._apply()

    def get_last_lr(self):
        """The rates of the groups."""
        return [g["lr"] for g in self.optimizer.param_groups]

    def state_dict(self):
        """The count of steps and the rates at the start."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state):
        """Goes on where state_dict was taken, and sets the rates."""
        self.last_epoch, self.base_lrs = state["last_epoch"], list(state["base_lrs"])
        self._apply()


class LambdaLR(LRScheduler):
    """base * factor(n)."""

    def __init__(self, optimizer, lr_lambda):
        self.factor = lr_lambda
        super().__init__(optimizer)

    def rate(self, base, n):
        return base * self.factor(n)


class StepLR(LRScheduler):
    """base * gamma ** (n // step_size)."""

    def __init__(self, optimizer, step_size, gamma=0.1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def rate(self, base, n):
        return base * self.gamma ** (n // self.step_size)


class MultiStepLR(LRScheduler):
    """base * gamma ** (number of milestones reached)."""

    def __init__(self, optimizer, milestones, gamma=0.1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def rate(self, base, n):
        return base * self.gamma ** bisect.bisect_right(self.milestones, n)


class ExponentialLR(LRScheduler):
    """base * gamma ** n."""

    def __init__(self, optimizer, gamma):
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, base, n):
        return base * self.gamma**n


class LinearLR(LRScheduler):
    """From base * start_factor to base * end_factor in total_iters steps, then constant: a warm-up."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5):
        self.start, self.end, self.total = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def rate(self, base, n):
        return base * (self.start + (self.end - self.start) * min(n, self.total) / self.total)


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from base to eta_min in T_max steps."""

    def __init__(self, optimizer, T_max, eta_min=0.0):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, base, n):
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * n / self.T_max)) / 2


class ReduceLROnPlateau:
    """step(loss): multiplies the rates by `factor` when the loss has not fallen for more than `patience` steps."""

    def __init__(self, optimizer, factor=0.1, patience=10, threshold=1e-4, min_lr=0.0):
        self.optimizer, self.factor, self.patience = optimizer, factor, patience
        self.threshold, self.min_lr = threshold, min_lr
        self.best, self.bad = math.inf, 0

    def step(self, metric):
        """Looks at one loss."""
        metric = float(metric)
        if metric < self.best * (1 - self.threshold):
            self.best, self.bad = metric, 0
        else:
            self.bad += 1
        if self.bad > self.patience:
            self.bad = 0
            for group in self.optimizer.param_groups:
                group["lr"] = max(group["lr"] * self.factor, self.min_lr)
