# SPDX-License-Identifier: Apache-2.0
"""Learning rates over time; also weft.optim.lr_scheduler. Call step() after the optimizer's.

Every rate is a function of the rates at the start and the number of steps, so that a schedule may be taken up
anywhere: state_dict() holds both.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import Any as _Any

import weft

from .._boundary import publish_classes as _publish_classes
from .._core import shown as _shown
from .._errors import error as _error
from .._errors import unwritten as _unwritten

__all__ = [
    "LRScheduler",
    "LambdaLR",
    "StepLR",
    "MultiStepLR",
    "ExponentialLR",
    "LinearLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ConstantLR",
    "PolynomialLR",
    "MultiplicativeLR",
    "CyclicLR",
    "OneCycleLR",
    "SequentialLR",
    "ChainedScheduler",
    "ReduceLROnPlateau",
]


class LRScheduler:
    """Sets the rates of an optimizer's groups to rate(base, n) after n steps."""

    def __init__(self, optimizer: weft.optim.Optimizer, last_epoch: int = -1) -> None:
        """last_epoch: the number of steps before the last one taken, to go on from; -1 begins."""
        if last_epoch != -1 and any("initial_lr" not in g for g in optimizer.param_groups):
            raise _refused(
                "optim.scheduler.resumed",
                f"{type(self).__name__} from step {last_epoch} of groups without 'initial_lr'",
                "-1, or groups that keep the rate at the start as 'initial_lr'",
            )
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        self.base_lrs = [g.setdefault("initial_lr", g["lr"]) for g in optimizer.param_groups]
        self._apply()

    def rate(self, base: float, n: int) -> float:
        """The rate of a group that began with `base`, after n steps."""
        raise _unwritten(self, "rate")

    def _apply(self):
        for group, base in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = self.rate(base, self.last_epoch)

    def step(self) -> None:
        """Counts one step and sets the rates."""
        self.last_epoch += 1
        self._apply()

    def get_last_lr(self) -> list[float]:
        """The rates of the groups."""
        return [g["lr"] for g in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, _Any]:
        """The count of steps and the rates at the start."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: dict[str, _Any]) -> None:
        """Goes on where state_dict was taken, and sets the rates."""
        self.last_epoch, self.base_lrs = state["last_epoch"], list(state["base_lrs"])
        self._apply()


def _refused(code, text, legal):
    return _error(weft.ArgumentError, code, text, [f"legal: {legal}"])


class LambdaLR(LRScheduler):
    """base * factor(n); one function, or a list of one for each group."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        lr_lambda: _Callable[[int], float] | _Sequence[_Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.factors = (
            list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        )
        if len(self.factors) != groups:
            raise _refused(
                "optim.scheduler.lambdas",
                f"{len(self.factors)} functions for {groups} groups",
                "one for each group",
            )
        super().__init__(optimizer, last_epoch)

    def _apply(self):
        groups = self.optimizer.param_groups
        for group, base, factor in zip(groups, self.base_lrs, self.factors):
            group["lr"] = base * factor(self.last_epoch)


class MultiplicativeLR(LambdaLR):
    """base times the product of factor(1), ..., factor(n)."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        lr_lambda: _Callable[[int], float] | _Sequence[_Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, lr_lambda, last_epoch)

    def _apply(self):
        groups = self.optimizer.param_groups
        for group, base, factor in zip(groups, self.base_lrs, self.factors):
            group["lr"] = base * math.prod(factor(n) for n in range(1, self.last_epoch + 1))


class StepLR(LRScheduler):
    """base * gamma ** (n // step_size)."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, n: int) -> float:
        return base * self.gamma ** (n // self.step_size)


class MultiStepLR(LRScheduler):
    """base * gamma ** (number of milestones reached)."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        milestones: _Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, n: int) -> float:
        return base * self.gamma ** bisect.bisect_right(self.milestones, n)


class ExponentialLR(LRScheduler):
    """base * gamma ** n."""

    def __init__(self, optimizer: weft.optim.Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, n: int) -> float:
        return base * self.gamma**n


class LinearLR(LRScheduler):
    """From base * start_factor to base * end_factor in total_iters steps, then constant: a warm-up."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start, self.end, self.total = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, n: int) -> float:
        return base * (self.start + (self.end - self.start) * min(n, self.total) / self.total)


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from base to eta_min in T_max steps."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        T_max: int,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, n: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * n / self.T_max)) / 2


class ConstantLR(LRScheduler):
    """base * factor for total_iters steps, then base."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.factor, self.total = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, n: int) -> float:
        return base * self.factor if n < self.total else base


class PolynomialLR(LRScheduler):
    """base * (1 - n / total_iters) ** power, 0 after total_iters steps."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, n: int) -> float:
        return base * (1 - min(n, self.total) / self.total) ** self.power


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from base to eta_min in T_0 steps, then again in T_0 T_mult, T_0 T_mult ** 2, ... steps."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise _refused(
                "optim.scheduler.restarts",
                f"T_0 is {T_0} and T_mult is {T_mult}",
                "1 and more for both",
            )
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, n: int) -> float:
        length = self.T_0
        while n >= length:
            n, length = n - length, length * self.T_mult
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * n / length)) / 2


class _Cycle(LRScheduler):
    """Rates and, against them, momentum (or beta1) that depend on n alone."""

    def _start(self, optimizer, cycle_momentum, last_epoch):
        names = [name for name in ("momentum", "beta1", "betas") if name in optimizer._options]
        if cycle_momentum and not names:
            raise _refused(
                "optim.scheduler.momentum",
                f"{type(self).__name__} cycles the momentum of {type(optimizer).__name__}, which has none",
                "cycle_momentum=False",
            )
        self.cycled = names[0] if cycle_momentum else None
        super().__init__(optimizer, last_epoch)

    def momentum(self, n):
        """The momentum after n steps."""
        raise _unwritten(self, "momentum")

    def _apply(self):
        super()._apply()
        if self.cycled is None:
            return
        value = self.momentum(self.last_epoch)
        for group in self.optimizer.param_groups:
            group[self.cycled] = (value, group["betas"][1]) if self.cycled == "betas" else value


class CyclicLR(_Cycle):
    """From base_lr to max_lr in step_size_up steps and back in step_size_down, again and again; momentum the other way.

    mode "triangular2" halves the height each time, "exp_range" multiplies it by gamma ** n; scale_fn takes its place: a function of the number of the
    cycle, from 1 (scale_mode "cycle"), or of n ("iterations").
    """

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        base_lr: float | _Sequence[float],
        max_lr: float | _Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: _Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range"):
            raise _refused(
                "optim.scheduler.mode",
                f"no mode is called {_shown(mode)}",
                '"triangular", "triangular2", "exp_range"',
            )
        if scale_mode not in ("cycle", "iterations"):
            raise _refused(
                "optim.scheduler.mode",
                f"no scale_mode is called {_shown(scale_mode)}",
                '"cycle", "iterations"',
            )
        self.scale, self.by_cycle = scale_fn, scale_mode == "cycle"
        self.low, self.high, self.mode, self.gamma = base_lr, max_lr, mode, gamma
        self.up = step_size_up
        self.down = step_size_up if step_size_down is None else step_size_down
        self.momenta = base_momentum, max_momentum
        self._start(optimizer, cycle_momentum, last_epoch)

    def _height(self, n):
        cycle, at = divmod(n, self.up + self.down)
        height = at / self.up if at <= self.up else 1 - (at - self.up) / self.down
        if self.scale is not None:
            return height * self.scale(cycle + 1 if self.by_cycle else n)
        scale = {"triangular": 1.0, "triangular2": 0.5**cycle, "exp_range": self.gamma**n}
        return height * scale[self.mode]

    def rate(self, base: float, n: int) -> float:
        return self.low + (self.high - self.low) * self._height(n)

    def momentum(self, n: int) -> float:
        low, high = self.momenta
        return high - (high - low) * self._height(n)


class OneCycleLR(_Cycle):
    """One rise from max_lr / div_factor to max_lr in the first pct_start of the steps and one fall to
    1 / final_div_factor of the start; momentum the other way.

    The number of steps is total_steps, or epochs * steps_per_epoch. anneal_strategy is "cos" or "linear";
    three_phase falls to the start symmetrically first. step() beyond the last step raises ArgumentError.
    """

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        max_lr: float | _Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise _refused(
                "optim.scheduler.steps",
                f"OneCycleLR with total_steps None, epochs {epochs}, steps_per_epoch {steps_per_epoch}",
                "total_steps, or epochs and steps_per_epoch",
            )
        if anneal_strategy not in ("cos", "linear"):
            raise _refused(
                "optim.scheduler.mode",
                f"no strategy is called {_shown(anneal_strategy)}",
                '"cos", "linear"',
            )
        self.total = epochs * steps_per_epoch if total_steps is None else total_steps
        self.linear = anneal_strategy == "linear"
        self.max_lr, low = max_lr, max_lr / div_factor
        final, (base_m, max_m) = low / final_div_factor, (base_momentum, max_momentum)
        top = pct_start * self.total - 1
        self.phases = [(0.0, top, low, max_lr, max_m, base_m)]
        if three_phase:
            self.phases += [(top, 2 * top, max_lr, low, base_m, max_m)]
            self.phases += [(2 * top, self.total - 1, low, final, max_m, max_m)]
        else:
            self.phases += [(top, self.total - 1, max_lr, final, base_m, max_m)]
        self._start(optimizer, cycle_momentum, last_epoch)

    def _between(self, n, first):
        if n > self.total:  # a loop of `total` steps ends with one call more than it uses
            raise _refused(
                "optim.scheduler.steps",
                f"step {n} of OneCycleLR over {self.total} steps",
                f"{self.total} steps at most",
            )
        phase = next((p for p in self.phases if n <= p[1]), self.phases[-1])
        start, end, (a, b) = phase[0], phase[1], phase[first : first + 2]
        at = (n - start) / (end - start) if end > start else 1.0
        return a + (b - a) * at if self.linear else b + (a - b) * (1 + math.cos(math.pi * at)) / 2

    def rate(self, base: float, n: int) -> float:
        return self._between(n, 2)

    def momentum(self, n: int) -> float:
        return self._between(n, 4)


class _Several(LRScheduler):
    """A schedule made of others."""

    def load_state_dict(self, state):
        for part in self.schedulers:
            part.base_lrs = list(state["base_lrs"])
        super().load_state_dict(state)


class SequentialLR(_Several):
    """One schedule after another; each begins, at its own step 0, when the next of the milestones is reached."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        schedulers: _Sequence[_Any],
        milestones: _Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise _refused(
                "optim.scheduler.milestones",
                f"{len(schedulers)} schedules with {len(milestones)} milestones",
                "one milestone less than schedules",
            )
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def _apply(self):
        k = bisect.bisect_right(self.milestones, self.last_epoch)
        part = self.schedulers[k]
        part.last_epoch = self.last_epoch - (self.milestones[k - 1] if k else 0)
        part._apply()


class ChainedScheduler(_Several):
    """base times the factors of several schedules, each stepped along."""

    def __init__(
        self, schedulers: _Sequence[_Any], optimizer: weft.optim.Optimizer | None = None
    ) -> None:
        self.schedulers = list(schedulers)
        super().__init__(self.schedulers[0].optimizer if optimizer is None else optimizer)

    def _apply(self):
        groups = self.optimizer.param_groups
        factors = [1.0] * len(groups)
        for part in self.schedulers:
            part.last_epoch = self.last_epoch
            part._apply()
            for k, (group, base) in enumerate(zip(groups, self.base_lrs)):
                factors[k] *= group["lr"] / base if base else 1.0
        for group, base, factor in zip(groups, self.base_lrs, factors):
            group["lr"] = base * factor


class ReduceLROnPlateau:
    """step(metric): multiplies the rates by `factor` when the metric has not improved for more than `patience` steps.

    mode "min" wants it to fall, "max" to rise, by more than `threshold`, a part of the best (threshold_mode "rel")
    or an amount ("abs"). After a change `cooldown` steps are not counted. min_lr is one number or one for each group;
    changes below eps are left out.
    """

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs") or not factor < 1:
            raise _refused(
                "optim.scheduler.plateau",
                f"mode {_shown(mode)}, factor {factor}, threshold_mode {_shown(threshold_mode)}",
                'mode "min" or "max", factor below 1, threshold_mode "rel" or "abs"',
            )
        self.optimizer, self.factor, self.patience, self.eps = optimizer, factor, patience, eps
        self.sign, self.threshold, self.relative = (
            1.0 if mode == "min" else -1.0,
            threshold,
            threshold_mode == "rel",
        )
        groups = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * groups
        self.cooldown, self.cooling = cooldown, 0
        self.best, self.bad = self.sign * math.inf, 0

    def _better(self, metric):
        slack = abs(self.best) * self.threshold if self.relative else self.threshold
        if math.isinf(self.best):
            return self.sign * metric < self.sign * self.best
        return self.sign * (self.best - metric) > slack

    def step(self, metric: _Any) -> None:
        """Looks at one metric."""
        metric = float(metric)
        if self._better(metric):
            self.best, self.bad = metric, 0
        else:
            self.bad += 1
        if self.cooling > 0:
            self.cooling, self.bad = self.cooling - 1, 0
        if self.bad > self.patience:
            self.bad, self.cooling = 0, self.cooldown
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                new = max(group["lr"] * self.factor, least)
                if group["lr"] - new > self.eps:
                    group["lr"] = new

    def get_last_lr(self) -> list[float]:
        """The rates of the groups."""
        return [g["lr"] for g in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, _Any]:
        """The best metric and the counters."""
        return {"best": self.best, "bad": self.bad, "cooling": self.cooling}

    def load_state_dict(self, state: dict[str, _Any]) -> None:
        """Goes on where state_dict was taken."""
        self.best, self.bad, self.cooling = state["best"], state["bad"], state["cooling"]


_publish_classes(__name__)
