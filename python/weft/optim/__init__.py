# SPDX-License-Identifier: Apache-2.0
"""Optimizers. They change parameters' data and never extend a graph. Formulas and names of options are PyTorch's."""

from __future__ import annotations

import weft

from .._boundary import publish_classes as _publish_classes
from . import swa_utils
from . import lr_scheduler
from .._adaptive import ASGD, Adadelta, Adagrad, Adamax, NAdam, RAdam, Rprop
from .._errors import error as _error
from .._fused_step import FusedStep
from .._held_state import captured
from .._matrix_optimizers import Adafactor, Muon
from .._optimizer import Optimizer, _decayed, into
from .._second_order import LBFGS

__all__ = [
    "Optimizer",
    "SGD",
    "Adam",
    "AdamW",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "Adamax",
    "NAdam",
    "RAdam",
    "Rprop",
    "ASGD",
    "LBFGS",
    "SparseAdam",
    "Adafactor",
    "Muon",
    "lr_scheduler",
    "swa_utils",
]


# ---- formulas: x is what is learned, g its gradient


@FusedStep
def _descend(x, g, rate, decay):
    return (x - _decayed(g, x, decay) * rate,)


def _first_velocity(x, g, rate, ahead, decay):
    g = _decayed(g, x, decay)
    return x - (g if ahead is None else g + g * ahead) * rate, g


_first_velocity = FusedStep(_first_velocity, in_place=False)  # the gradient stays


@FusedStep
def _roll(x, v, g, rate, keep, part, ahead, decay):
    g = _decayed(g, x, decay)
    v = v * keep + (g if part is None else g * part)
    return x - (v if ahead is None else g + v * ahead) * rate, v


@FusedStep
def _adam(x, m, v, largest, g, rate, first, second, eps, beta1, rest1, beta2, rest2, decay, shrink):
    """`first`, `second`: what the means are multiplied by; the rate holds the first where it is None."""
    g = _decayed(g, x, decay)
    m, v = m * beta1 + g * rest1, v * beta2 + g * g * rest2
    if largest is not None:
        largest = weft.maximum(largest, v)
    root = weft.sqrt((v if largest is None else largest) * second) + eps
    step = m * (rate if first is None else first * rate) / root
    return (x if shrink is None else x * shrink) - step, m, v, largest


@FusedStep
def _rms(x, v, mean, velocity, g, rate, alpha, rest, eps, keep, decay):
    g = _decayed(g, x, decay)
    v = v * alpha + g * g * rest
    if mean is not None:
        mean = mean * alpha + g * rest
    g = g / (weft.sqrt(v if mean is None else v - mean * mean) + eps)
    if velocity is not None:
        g = velocity = velocity * keep + g
    return x - g * rate, v, mean, velocity


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (nesterov: looked up one step ahead) and weight decay.

    The gradient enters the velocity times 1 - dampening. Raises ArgumentError for nesterov without momentum or with
    dampening.
    """

    _options = ("lr", "momentum", "weight_decay", "nesterov", "dampening", "maximize")
    _rows = ("_velocity",)

    def __init__(
        self,
        params,
        lr=0.01,
        momentum=0.0,
        dampening=0.0,
        weight_decay=0.0,
        nesterov=False,
        maximize=False,
    ):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise _error(
                weft.ArgumentError,
                "optim.sgd.nesterov",
                f"nesterov with momentum {momentum} and dampening {dampening}",
                ["legal: momentum above 0, dampening 0"],
            )
        super().__init__(
            params,
            lr,
            momentum=momentum,
            weight_decay=weight_decay,
            nesterov=nesterov,
            dampening=dampening,
            maximize=maximize,
        )
        self._velocity = {}

    def _update(self):
        for i, p, g, options in self._each():
            momentum, dampening = options["momentum"], options["dampening"]
            lr, decay = options["lr"], options["weight_decay"] or None
            ahead, v = momentum if options["nesterov"] else None, self._velocity.get(i)
            if not momentum:
                yield _descend, (p.data, g, lr, decay), into(p, i)
            elif v is None:
                yield _first_velocity, (p.data, g, lr, ahead, decay), into(p, i, self._velocity)
            else:
                part = 1.0 - dampening if dampening else None
                arguments = p.data, v, g, lr, momentum, part, ahead, decay
                yield _roll, arguments, into(p, i, self._velocity)


# Adam's arguments behind the rate by place: PyTorch's, or one number after the other.
_PAIR_FIRST = ("betas", "eps", "weight_decay", "amsgrad")
_NUMBERS_FIRST = ("beta1", "beta2", "eps", "weight_decay", "betas", "amsgrad", "maximize")


class Adam(Optimizer):
    """Adam with bias correction; weight decay is added to the gradient. amsgrad divides by the largest of the running
    squares so far."""

    decoupled, _decay = False, 0.0
    _options = ("lr", "beta1", "beta2", "eps", "weight_decay", "amsgrad", "maximize")
    _rows = ("_m", "_v", "_largest")

    def __init__(
        self,
        params,
        lr=0.001,
        *places,
        betas=None,
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        weight_decay=None,
        amsgrad=False,
        maximize=False,
        decoupled_weight_decay=None,
    ):
        if places:  # both orders, told by the pair
            names = _PAIR_FIRST if isinstance(places[0], (tuple, list)) else _NUMBERS_FIRST
            if len(places) > len(names):
                raise TypeError(f"behind the rate go at most {len(names)}: {', '.join(names)}")
            given = dict(zip(names, places))
            own = {"beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay}
            own.update(betas=betas, amsgrad=amsgrad, maximize=maximize)
            return self.__init__(
                params, lr, **{**own, **given}, decoupled_weight_decay=decoupled_weight_decay
            )
        if decoupled_weight_decay is not None:
            self.decoupled = bool(decoupled_weight_decay)
        weight_decay = self._decay if weight_decay is None else weight_decay
        beta1, beta2 = betas or (beta1, beta2)
        super().__init__(
            params,
            lr,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
        )
        self._m, self._v, self._largest = {}, {}, {}
        self._powers, self._power_steps = {}, {}

    _counts_on_device = True

    def _corrections(self, i, x, beta1, beta2, t, known):
        """1 / (1 - beta1**t) and 1 / (1 - beta2**t), which the device advances inside a captured function.

        `known` holds those of this step, which parameters of one count share.
        """
        at = beta1, beta2, t, str(x.device)
        if at not in known:
            slot = len(known)
            powers = self._powers.get(slot)
            if powers is None or self._power_steps.get(slot) != t - 1:
                powers = [
                    weft.asarray(b ** (t - 1), dtype="float32", device=x.device)
                    for b in (beta1, beta2)
                ]
            # The list itself stays: a captured function knows its arrays by where they are kept.
            kept = self._powers.setdefault(slot, [])
            kept[:] = [p * b for p, b in zip(powers, (beta1, beta2))]
            self._power_steps[slot] = t
            known[at] = [1.0 / (1.0 - p) for p in kept]
        return known[at]

    @property
    def t(self):
        """The number of steps taken: of the parameter that took most."""
        return max(self._steps.values(), default=0)

    def _update(self):
        known = {}
        for i, p, g, options in self._each():
            t, x, lr, decay = self._count(i), p.data, options["lr"], options["weight_decay"]
            beta1, beta2 = options["beta1"], options["beta2"]
            if captured():
                first, second = self._corrections(i, x, beta1, beta2, t, known)
            else:
                lr, first, second = lr / (1 - beta1**t), None, 1 / (1 - beta2**t)
            shrink = 1.0 - options["lr"] * decay if decay and self.decoupled else None
            for rows in (self._m, self._v, self._largest):
                if i not in rows and (rows is not self._largest or options["amsgrad"]):
                    rows[i] = weft.zeros_like(g)
            arguments = (
                x,
                self._m[i],
                self._v[i],
                self._largest[i] if options["amsgrad"] else None,
                g,
                lr,
                first,
                second,
                options["eps"],
                beta1,
                1 - beta1,
                beta2,
                1 - beta2,
                None if self.decoupled else decay or None,
                shrink,
            )
            yield _adam, arguments, into(p, i, self._m, self._v, self._largest)


class SparseAdam(Adam):
    """Adam: gradients are dense here, and rows without a gradient move by their running means as in Adam."""


class AdamW(Adam):
    """Adam with weight decay apart from the gradient."""

    decoupled, _decay = True, 0.01


class RMSprop(Optimizer):
    """Steps over the root of a running mean of squared gradients, with momentum; `centered` takes the variance."""

    _options = ("lr", "alpha", "eps", "weight_decay", "momentum", "centered", "maximize")
    _rows = ("_square", "_velocity", "_mean")

    def __init__(
        self,
        params,
        lr=0.01,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0.0,
        momentum=0.0,
        centered=False,
        maximize=False,
    ):
        super().__init__(
            params,
            lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            maximize=maximize,
        )
        self._square, self._velocity, self._mean = {}, {}, {}

    def _update(self):
        for i, p, g, options in self._each():
            alpha = options["alpha"]
            wanted = {
                "_square": True,
                "_mean": options["centered"],
                "_velocity": options["momentum"],
            }
            rows = [getattr(self, name) if there else None for name, there in wanted.items()]
            before = [
                None if row is None else row[i] if i in row else weft.zeros_like(g) for row in rows
            ]
            arguments = (
                p.data,
                *before,
                g,
                options["lr"],
                alpha,
                1 - alpha,
                options["eps"],
                options["momentum"] or None,
                options["weight_decay"] or None,
            )
            yield _rms, arguments, into(p, i, *rows)


_publish_classes(__name__)
