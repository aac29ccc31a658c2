# SPDX-License-Identifier: Apache-2.0
"""Averages of weights along training, by the names of torch.optim.swa_utils: weft.optim.swa_utils."""

from __future__ import annotations

import copy
import math
from collections.abc import (
    Callable as _Callable,
    Iterable as _Iterable,
    Mapping as _Mapping,
    Sequence as _Sequence,
)
from typing import Any as _Any

import weft

from .._core import shown as _shown
from . import lr_scheduler
from .._boundary import publish as _publish
from .._boundary import publish_classes as _publish_classes
from .._errors import error as _error
from ..nn import Module

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_swa_avg_fn() -> _Callable[[_Any, _Any, int], _Any]:
    """avg_fn of equal weights: the mean of all models so far."""

    def averaged(average, current, num_averaged):
        return average + (current - average) / (num_averaged + 1)

    return averaged


def get_ema_avg_fn(decay: float = 0.999) -> _Callable[[_Any, _Any, int], _Any]:
    """avg_fn of an exponential average: decay of the average and 1 - decay of the model."""
    if not 0.0 <= decay <= 1.0:
        raise _error(
            weft.ArgumentError, "optim.swa.decay", f"the decay of an average is {decay}", ["legal: 0 to 1"]
        )  # fmt: skip

    def averaged(average, current, num_averaged):
        return average * decay + current * (1 - decay)

    return averaged


def _of_lists(function):
    def averaged(averages, currents, num_averaged):
        for average, current in zip(averages, currents):
            average[...] = function(average, current, num_averaged)

    return averaged


def get_swa_multi_avg_fn() -> _Callable[[list[_Any], list[_Any], int], None]:
    """multi_avg_fn of equal weights; it changes a list of arrays in place."""
    return _of_lists(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> _Callable[[list[_Any], list[_Any], int], None]:
    """multi_avg_fn of an exponential average; it changes a list of arrays in place."""
    return _of_lists(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of a model whose parameters are averages: update_parameters(model) takes another one in.

    By itself all models count alike; avg_fn(average, current, number so far) gives another average of one array,
    multi_avg_fn changes lists of them in place (get_ema_multi_avg_fn). use_buffers averages buffers, too; without it they are copied.
    """

    def __init__(
        self,
        model: Module,
        device: weft.Device | str | None = None,
        avg_fn: _Callable[[_Any, _Any, int], _Any] | None = None,
        multi_avg_fn: _Callable[[list[_Any], list[_Any], int], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise _error(
                weft.ArgumentError, "optim.swa.functions", "AveragedModel with avg_fn and multi_avg_fn", ["legal: one of them"]
            )  # fmt: skip
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        for p in self.module.parameters():
            p.requires_grad = False
            p.grad = None
        self.n_averaged: int = 0
        self._average, self._lists = avg_fn or get_swa_avg_fn(), multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: _Any, **kwargs: _Any) -> _Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """One more model: the first is copied, later ones are averaged."""
        pairs = [(a, b.data) for a, b in zip(self.module.parameters(), model.parameters())]
        buffers = list(zip(self.module.buffers(), model.buffers()))
        of_floats = [(a, b) for a, b in buffers if a.dtype.kind == "f"] if self.use_buffers else []
        averages = [a.data for a, _ in pairs] + [a for a, _ in of_floats]
        currents = [b for _, b in pairs] + [b for _, b in of_floats]
        currents = [b.to(a.device).astype(a.dtype) for a, b in zip(averages, currents)]
        if not self.n_averaged:
            for a, b in zip(averages, currents):
                a[...] = b
        elif self._lists is not None:
            self._lists(averages, currents, self.n_averaged)
        else:
            for a, b in zip(averages, currents):
                a[...] = self._average(a, b, self.n_averaged)
        averaged = {id(a) for a, _ in of_floats}
        for a, b in buffers:
            if id(a) not in averaged:
                a[...] = b.to(a.device)
        self.n_averaged += 1

    def state_dict(self) -> dict[str, weft.NDArray]:
        """The averages, under "module.", and how many models they are of."""
        return {**super().state_dict(), "n_averaged": weft.asarray(self.n_averaged)}

    def load_state_dict(
        self, state: _Mapping[str, _Any], strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """Takes what state_dict gave."""
        state = dict(state)
        count = state.pop("n_averaged", None)
        if count is not None:
            self.n_averaged = int(count)
        return super().load_state_dict(state, strict)


def update_bn(
    loader: _Iterable[_Any], model: Module, device: weft.Device | str | None = None
) -> None:
    """Running statistics of batch norms anew: means over all batches of a loader (the first part of each is the input)."""
    from ..nn.norms import _BatchNorm

    norms = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
    if not norms:
        return
    before = [(m, m.momentum) for m in norms]
    for m in norms:
        m.running_mean, m.running_var = weft.zeros_like(m.running_mean), weft.ones_like(m.running_var)  # fmt: skip
        m.momentum, m.batches = None, 0
    training = getattr(model, "training", False)
    model.train()
    try:
        with weft.no_grad():
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
    finally:
        for m, momentum in before:
            m.momentum = momentum
        model.train(training)


class SWALR(lr_scheduler.LRScheduler):
    """From each group's rate to swa_lr within anneal_epochs steps, along a cosine or a line; then swa_lr."""

    def __init__(
        self,
        optimizer: weft.optim.Optimizer,
        swa_lr: float | _Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise _error(
                weft.ArgumentError, "optim.swa.strategy", f"anneal_strategy {_shown(anneal_strategy)}", ['legal: "cos", "linear"']
            )  # fmt: skip
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise _error(
                weft.ArgumentError, "optim.swa.epochs", f"anneal_epochs {_shown(anneal_epochs)}", ["legal: 0 and more"]
            )  # fmt: skip
        count = len(optimizer.param_groups)
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * count
        if len(rates) != count:
            raise _error(
                weft.ArgumentError, "optim.swa.rates", f"{len(rates)} rates of {count} groups", ["legal: one, or one for each group"]
            )  # fmt: skip
        self.swa_lr, self.anneal_epochs, self.anneal_strategy = rates, anneal_epochs, anneal_strategy  # fmt: skip
        super().__init__(optimizer)

    def _share(self, n):
        """The part of swa_lr in the rate after n steps."""
        if not self.anneal_epochs:
            return 1.0
        part = max(0.0, min(1.0, n / self.anneal_epochs))
        return (1 - math.cos(math.pi * part)) / 2 if self.anneal_strategy == "cos" else part

    def _apply(self):
        if not self.last_epoch and self.anneal_epochs:
            return
        # Another schedule may have set the rate before the first step, so the start is found from the rate now.
        before, now = self._share(self.last_epoch - 1), self._share(self.last_epoch)
        for group, rate in zip(self.optimizer.param_groups, self.swa_lr):
            start = rate if before == 1.0 else (group["lr"] - before * rate) / (1 - before)
            group["lr"] = rate * now + start * (1 - now)


_publish(__name__)
_publish_classes(__name__)
