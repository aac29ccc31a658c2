# SPDX-License-Identifier: Apache-2.0
"""Optimizers. They change parameters' data and never extend a graph. Formulas and names of options are PyTorch's."""

from __future__ import annotations

import weft

from . import _core
from ._boundary import publish_classes as _publish_classes
from . import lr_scheduler
from ._adaptive import ASGD, Adadelta, Adagrad, Adamax, NAdam, RAdam, Rprop
from ._errors import error as _error
from ._held_state import captured
from ._optimizer import Optimizer, _decayed
from ._second_order import LBFGS

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
    "lr_scheduler",
]


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
        weight_decay=0.0,
        nesterov=False,
        dampening=0.0,
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
            momentum, v = options["momentum"], self._velocity.get(i)
            if not captured() and self._stepped(i, p, g, v, options):
                continue
            g = _decayed(g, p, options)
            if captured() and (v is not None or not momentum):
                part = 1.0 - options["dampening"]
                if self._descend(p, g, v, momentum, part, options):
                    continue
            if momentum:
                part = g * (1.0 - options["dampening"]) if options["dampening"] else g
                first = g.copy() if captured() else g  # a captured step writes over it
                v = self._velocity[i] = first if v is None else v * momentum + part
                g = g + v * momentum if options["nesterov"] else v
            p.data = p.data - g * options["lr"]

    def _stepped(self, i, p, g, v, options):
        """The step by one launch; False where the device has no kernel for it, and for a first velocity."""
        momentum, lr, decay = options["momentum"], options["lr"], options["weight_decay"]
        if not momentum:
            done = _core._step("descend", [p.data, g], [lr], decay)
        elif v is None:
            return False
        else:
            rule = "nesterov" if options["nesterov"] else "momentum"
            numbers = [lr, momentum, 1.0 - options["dampening"]]
            done = _core._step(rule, [p.data, v, g], numbers, decay)
        if done:
            p.data = done[0]
            if momentum:
                self._velocity[i] = done[1]
        return bool(done)

    def _descend(self, p, g, v, momentum, part, options):
        """The step in place, one launch for each array; False where the device has no kernel for it."""
        x, lr = p.data, options["lr"]
        if not momentum:
            return _core._update("descend", x, [g], [lr])
        if not _core._update("blend", v, [g], [momentum, part]):
            return False
        if options["nesterov"]:
            return _core._update("descend", x, [g], [lr]) and _core._update(
                "descend", x, [v], [lr * momentum]
            )
        return _core._update("descend", x, [v], [lr])


class Adam(Optimizer):
    """Adam with bias correction; weight decay is added to the gradient. amsgrad divides by the largest of the running
    squares so far."""

    decoupled = False
    _options = ("lr", "beta1", "beta2", "eps", "weight_decay", "amsgrad", "maximize")
    _rows = ("_m", "_v", "_largest")

    def __init__(
        self,
        params,
        lr=0.001,
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        weight_decay=0.0,
        betas=None,
        amsgrad=False,
        maximize=False,
    ):
        # PyTorch's third argument is a pair.
        beta1, beta2 = beta1 if isinstance(beta1, (tuple, list)) else betas or (beta1, beta2)
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
        """1 - beta1**t and 1 - beta2**t: numbers, and arrays that the device advances inside a captured function.

        `known` holds those of this step, which parameters of one count share.
        """
        if not captured():
            return 1 - beta1**t, 1 - beta2**t
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
            known[at] = [1.0 - p for p in kept]
        return [c.astype(x.dtype) for c in known[at]]

    @property
    def t(self):
        """The number of steps taken: of the parameter that took most."""
        return max(self._steps.values(), default=0)

    def _update(self):
        known = {}
        for i, p, g, options in self._each():
            t, x, lr, decay = self._count(i), p.data, options["lr"], options["weight_decay"]
            beta1, beta2 = options["beta1"], options["beta2"]
            if not captured() and i in self._m and not options["amsgrad"]:
                numbers = [
                    lr,
                    beta1,
                    beta2,
                    options["eps"],
                    1 - beta1**t,
                    1 - beta2**t,
                    1 - beta1,
                    1 - beta2,
                ]
                l2, shrink = (0.0, 1.0 - lr * decay) if self.decoupled else (decay, 1.0)
                if done := _core._step("adam", [x, self._m[i], self._v[i], g], numbers, l2, shrink):
                    p.data, self._m[i], self._v[i] = done
                    continue
            if decay:
                if self.decoupled:
                    x = x * (1.0 - lr * decay)
                else:
                    g = g + x * decay
            if captured() and i in self._m and not options["amsgrad"]:
                if self._descend(i, p, g, x, t, options, known):
                    continue
            m = self._m[i] = self._m.get(i, 0.0) * beta1 + g * (1 - beta1)
            v = self._v[i] = self._v.get(i, 0.0) * beta2 + g * g * (1 - beta2)
            if options["amsgrad"]:
                largest = self._largest.get(i)
                v = self._largest[i] = v if largest is None else weft.maximum(largest, v)
            first, second = self._corrections(i, x, beta1, beta2, t, known)
            root = weft.sqrt(v * (1.0 / second)) + options["eps"]
            p.data = x - m * (lr / first) / root

    def _descend(self, i, p, g, x, t, options, known):
        """The step in place, one launch for each array; False where the device has no kernel for it."""
        m, v, beta1, beta2 = self._m[i], self._v[i], options["beta1"], options["beta2"]
        if not _core._update("blend", m, [g], [beta1, 1 - beta1]):
            return False
        first, second = self._corrections(i, x, beta1, beta2, t, known)
        done = _core._update("blend_square", v, [g], [beta2, 1 - beta2])
        if self.decoupled and options["weight_decay"]:
            p.data[...] = x
        return done and _core._update(
            "descend_root", p.data, [m, v, first, second], [options["lr"], options["eps"]]
        )


class SparseAdam(Adam):
    """Adam: gradients are dense here, and rows without a gradient move by their running means as in Adam."""


class AdamW(Adam):
    """Adam with weight decay apart from the gradient."""

    decoupled = True

    def __init__(
        self,
        params,
        lr=0.001,
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        weight_decay=0.01,
        betas=None,
        amsgrad=False,
        maximize=False,
    ):
        super().__init__(params, lr, beta1, beta2, eps, weight_decay, betas, amsgrad, maximize)


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
            g, alpha = _decayed(g, p, options), options["alpha"]
            v = self._square[i] = self._square.get(i, 0.0) * alpha + g * g * (1 - alpha)
            if options["centered"]:
                mean = self._mean[i] = self._mean.get(i, 0.0) * alpha + g * (1 - alpha)
                v = v - mean * mean
            g = g / (weft.sqrt(v) + options["eps"])
            if options["momentum"]:
                g = self._velocity[i] = self._velocity.get(i, 0.0) * options["momentum"] + g
            p.data = p.data - g * options["lr"]


_publish_classes(__name__)
