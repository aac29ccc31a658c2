# SPDX-License-Identifier: Apache-2.0
"""Mixed precision by PyTorch's names: autocast, and GradScaler for losses whose gradients float16 cannot hold."""

from __future__ import annotations

import functools

import weft

from ._autocast import alone as _alone
from ._autocast import autocast, is_autocast_available
from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from ._errors import error as _error

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Multiplies losses, so that small gradients survive in float16, and divides the gradients again before a step.

    >>> scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()

    A step whose gradients hold an infinity or NaN is left out, and the scale becomes backoff_factor times as large; after growth_interval
    steps in a row without it becomes growth_factor times as large. unscale_(optimizer) divides the gradients before they are clipped. With
    enabled=False losses and gradients stay as they are. `device` is PyTorch's and changes nothing. Raises ArgumentError
    (amp.scaler.order, amp.scaler.factor).
    """

    def __init__(
        self, device="cuda", init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True
    ):  # fmt: skip
        _factors(growth_factor, backoff_factor)
        self._enabled, self._scale, self._good = bool(enabled), float(init_scale), 0
        self._growth, self._backoff, self._interval = growth_factor, backoff_factor, growth_interval
        self._stages = {}  # by the optimizer's id: its stage, whether all gradients are finite, itself

    def scale(self, outputs):
        """Losses times the scale, one or several in lists and tuples."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(x) for x in outputs)
        return outputs * self._scale

    def _stage(self, optimizer):
        return self._stages.setdefault(id(optimizer), [_READY, True, optimizer])

    def unscale_(self, optimizer):
        """Divides the optimizer's gradients by the scale, in place; once between a step and the next.

        Of parameters that ranks of a job share out, all parts count: every rank calls this or step(), and all of them step or none.
        """
        from .nn.utils import _parted_over as parted_over

        if not self._enabled:
            return
        stage = self._stage(optimizer)
        if stage[0] != _READY:
            raise _order(f"unscale_() after {'unscale_()' if stage[0] == _UNSCALED else 'step()'}")
        finite, inverse = True, 1.0 / self._scale
        for p in optimizer.params:
            if p.grad is not None:
                g = p.grad.data * inverse
                finite = weft.logical_and(finite, weft.all(weft.isfinite(g))) if finite is not True else weft.all(weft.isfinite(g))  # fmt: skip
                p.grad = g
        finite = finite is True or bool(finite)
        for group in dict.fromkeys(g for p in optimizer.params for g in parted_over(p)):
            finite = group.combined(0.0 if finite else 1.0, "max") == 0.0
        stage[:2] = _UNSCALED, finite

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(...) with gradients that unscale_ has divided, where all are finite; None where they are not."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or args:
            raise _error(
                weft.ArgumentError,
                "amp.scaler.closure",
                "step(optimizer, closure) of a GradScaler",
                help="compute the loss before, and call step(optimizer)",
            )
        stage = self._stage(optimizer)
        if stage[0] == _STEPPED:
            raise _order("step() after step()")
        if stage[0] == _READY:
            self.unscale_(optimizer)
        stage[0] = _STEPPED
        return optimizer.step(**kwargs) if stage[1] else None

    def update(self, new_scale=None):
        """The scale for the next loss: smaller after gradients that were not finite, larger after many that were; or new_scale."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            checked = [stage[1] for stage in self._stages.values() if stage[0] != _READY]
            if not checked:
                raise _order("update() before step()")
            if not all(checked):
                self._scale, self._good = self._scale * self._backoff, 0
            else:
                self._good += 1
                if self._good == self._interval:
                    self._scale, self._good = self._scale * self._growth, 0
        self._stages.clear()

    def get_scale(self):
        """The scale; 1 when disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self):
        """What the scale is multiplied by after growth_interval good steps."""
        return self._growth

    def set_growth_factor(self, new_factor):
        """Another one; above 1."""
        _factors(new_factor, self._backoff)
        self._growth = new_factor

    def get_backoff_factor(self):
        """What the scale is multiplied by after gradients that are not finite."""
        return self._backoff

    def set_backoff_factor(self, new_factor):
        """Another one; below 1."""
        _factors(self._growth, new_factor)
        self._backoff = new_factor

    def get_growth_interval(self):
        """How many good steps in a row make the scale larger."""
        return self._interval

    def set_growth_interval(self, new_interval):
        """Another number."""
        self._interval = new_interval

    def is_enabled(self):
        """Does it scale at all?"""
        return self._enabled

    def state_dict(self):
        """Scale, factors and counts by PyTorch's names; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._good,
        }

    def load_state_dict(self, state):
        """Takes what state_dict gave. Raises ArgumentError for an empty state."""
        if not self._enabled:
            return
        if not state:
            raise _error(
                weft.ArgumentError,
                "amp.scaler.state",
                "the state is empty: it was saved by a disabled GradScaler",
                help="GradScaler(enabled=False), or a state of an enabled one",
            )
        self._scale, self._growth = float(state["scale"]), state["growth_factor"]
        self._backoff, self._interval = state["backoff_factor"], state["growth_interval"]
        self._good = state["_growth_tracker"]


def _factors(growth, backoff):
    if not growth > 1.0 or not backoff < 1.0:
        raise _error(
            weft.ArgumentError,
            "amp.scaler.factor",
            f"growth factor {growth}, backoff factor {backoff}",
            ["legal: a growth factor above 1, a backoff factor below 1"],
        )


def _order(what):
    return _error(
        weft.ArgumentError,
        "amp.scaler.order",
        f"{what} of a GradScaler",
        help="scale(loss).backward(), unscale_(optimizer) if gradients are clipped, step(optimizer), update()",
    )


def custom_fwd(fwd=None, *, device_type=None, cast_inputs=None):
    """Decorates forward of an autograd.Function: inside autocast it gets floats as `cast_inputs`, and converts nothing itself."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def call(*args, **kwargs):
        if cast_inputs is None or not weft.is_autocast_enabled(device_type):
            return fwd(*args, **kwargs)
        cast = lambda x: x.astype(cast_inputs) if getattr(getattr(x, "dtype", None), "kind", "") == "f" else x  # noqa: E731  # fmt: skip
        return _alone(fwd)(*map(cast, args), **{k: cast(v) for k, v in kwargs.items()})

    return call


def custom_bwd(bwd=None, *, device_type=None):
    """Decorates backward of an autograd.Function. Gradients convert nothing in any case."""
    return bwd if bwd is not None else functools.partial(custom_bwd, device_type=device_type)


_publish(__name__)
_publish_classes(__name__)
