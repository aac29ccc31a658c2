# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose rates follow each parameter's history, beside Adam and RMSprop, which stand in optim.py."""

from __future__ import annotations

import math

import weft

from ._optimizer import Optimizer, _decayed


class Adagrad(Optimizer):
    """Steps over the root of the sum of squared gradients (Duchi et al., 2011); the rate falls as
    lr / (1 + n lr_decay)."""

    _options = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps", "maximize")
    _rows = ("_sum",)

    def __init__(
        self,
        params,
        lr=0.01,
        lr_decay=0.0,
        weight_decay=0.0,
        initial_accumulator_value=0.0,
        eps=1e-10,
        maximize=False,
    ):
        super().__init__(
            params,
            lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
            maximize=maximize,
        )
        self._sum = {}

    def _update(self):
        for i, p, g, options in self._each():
            g, n = _decayed(g, p, options), self._count(i)
            before = self._sum.get(i, options["initial_accumulator_value"])
            total = self._sum[i] = g * g + before
            rate = options["lr"] / (1.0 + (n - 1) * options["lr_decay"])
            p.data = p.data - g * rate / (weft.sqrt(total) + options["eps"])


class Adadelta(Optimizer):
    """Steps as large as the running mean of former steps (Zeiler, 2012)."""

    _options = ("lr", "rho", "eps", "weight_decay", "maximize")
    _rows = ("_square", "_delta")

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False):
        super().__init__(params, lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize)
        self._square, self._delta = {}, {}

    def _update(self):
        for i, p, g, options in self._each():
            g, rho, eps = _decayed(g, p, options), options["rho"], options["eps"]
            v = self._square[i] = self._square.get(i, 0.0) * rho + g * g * (1 - rho)
            before = self._delta[i] if i in self._delta else weft.zeros_like(g)
            step = weft.sqrt(before + eps) / weft.sqrt(v + eps) * g
            self._delta[i] = before * rho + step * step * (1 - rho)
            p.data = p.data - step * options["lr"]


class _Moments(Optimizer):
    """Two running means with their factors `betas`."""

    _options = ("lr", "betas", "eps", "weight_decay", "maximize")
    _rows = ("_m", "_v")

    def __init__(
        self,
        params,
        lr=0.002,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        maximize=False,
        **options,
    ):
        super().__init__(
            params,
            lr,
            betas=tuple(betas),
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            **options,
        )
        self._m, self._v = {}, {}

    def _means(self, i, g, beta1, beta2):
        m = self._m[i] = self._m.get(i, 0.0) * beta1 + g * (1 - beta1)
        v = self._v[i] = self._v.get(i, 0.0) * beta2 + g * g * (1 - beta2)
        return m, v

    def _option_state(self, name):
        # betas are pairs themselves: always a list, one for each group.
        values = [g[name] for g in self.param_groups]
        return values if name == "betas" else super()._option_state(name)


class Adamax(_Moments):
    """Adam with the largest gradient, fading, in place of the mean square."""

    def _update(self):
        for i, p, g, options in self._each():
            g, t, (beta1, beta2) = _decayed(g, p, options), self._count(i), options["betas"]
            m = self._m[i] = self._m.get(i, 0.0) * beta1 + g * (1 - beta1)
            size = weft.abs(g) + options["eps"]
            before = self._v.get(i)
            v = self._v[i] = size if before is None else weft.maximum(before * beta2, size)
            p.data = p.data - m * (options["lr"] / (1 - beta1**t)) / v


class NAdam(_Moments):
    """Adam with momentum looked up one step ahead (Dozat, 2016)."""

    _options = (*_Moments._options, "momentum_decay")
    _kept = ("products",)

    def __init__(
        self,
        params,
        lr=0.002,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        momentum_decay=0.004,
        maximize=False,
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, maximize, momentum_decay=momentum_decay
        )
        self.products = {}

    def _update(self):
        for i, p, g, options in self._each():
            g, t, (beta1, beta2) = _decayed(g, p, options), self._count(i), options["betas"]
            mu, ahead = (
                beta1 * (1.0 - 0.5 * 0.96 ** (n * options["momentum_decay"])) for n in (t, t + 1)
            )
            product = self.products[i] = self.products.get(i, 1.0) * mu
            m, v = self._means(i, g, beta1, beta2)
            root = weft.sqrt(v * (1.0 / (1 - beta2**t))) + options["eps"]
            lr = options["lr"]
            step = g * (lr * (1 - mu) / (1 - product)) + m * (lr * ahead / (1 - product * ahead))
            p.data = p.data - step / root


class RAdam(_Moments):
    """Adam that leaves out the mean square while it is uncertain (Liu et al., 2020)."""

    def __init__(
        self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, maximize=False
    ):
        super().__init__(params, lr, betas, eps, weight_decay, maximize)

    def _update(self):
        for i, p, g, options in self._each():
            g, t, (beta1, beta2) = _decayed(g, p, options), self._count(i), options["betas"]
            m, v = self._means(i, g, beta1, beta2)
            left = 1 - beta2**t
            limit = 2.0 / (1 - beta2) - 1.0
            rho = limit - 2.0 * t * beta2**t / left
            step = m * (options["lr"] / (1 - beta1**t))
            if rho > 5:
                certain = (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)
                step = step * math.sqrt(certain * left) / (weft.sqrt(v) + options["eps"])
            p.data = p.data - step


class Rprop(Optimizer):
    """Steps by the gradient's sign, longer while it stays and shorter when it changes (Riedmiller & Braun, 1993)."""

    _options = ("lr", "etas", "step_sizes", "maximize")
    _rows = ("_before", "_size")

    def __init__(self, params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0), maximize=False):
        super().__init__(
            params, lr, etas=tuple(etas), step_sizes=tuple(step_sizes), maximize=maximize
        )
        self._before, self._size = {}, {}

    def _option_state(self, name):
        values = [g[name] for g in self.param_groups]
        return values if name in ("etas", "step_sizes") else super()._option_state(name)

    def _update(self):
        for i, p, g, options in self._each():
            less, more = options["etas"]
            if i not in self._size:
                self._before[i] = weft.zeros_like(g)
                self._size[i] = weft.full_like(g, options["lr"])
            turn = g * self._before[i]
            factor = weft.where(turn > 0, more, weft.where(turn < 0, less, 1.0)).astype(g.dtype)
            size = self._size[i] = weft.clip(self._size[i] * factor, *options["step_sizes"])
            g = self._before[i] = weft.where(turn < 0, 0.0, g).astype(g.dtype)
            p.data = p.data - weft.sign(g) * size


class ASGD(Optimizer):
    """Gradient descent with falling rates; `averages` are the means of the parameters' values from step t0 on
    (Polyak & Juditsky, 1992)."""

    _options = ("lr", "lambd", "alpha", "t0", "weight_decay", "maximize")
    _rows = ("_mean",)

    def __init__(
        self,
        params,
        lr=0.01,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0.0,
        maximize=False,
    ):
        super().__init__(
            params,
            lr,
            lambd=lambd,
            alpha=alpha,
            t0=t0,
            weight_decay=weight_decay,
            maximize=maximize,
        )
        self._mean = {}

    @property
    def averages(self):
        """The mean of each parameter, an array; the parameter itself before its first step."""
        return [self._mean.get(i, p.data) for i, p in enumerate(self.params)]

    def _update(self):
        for i, p, g, options in self._each():
            lambd, lr = options["lambd"], options["lr"]
            g, n = _decayed(g, p, options), self._count(i)
            rate = lr / (1 + lambd * lr * (n - 1)) ** options["alpha"]
            x = p.data = p.data * (1.0 - lambd * rate) - g * rate
            share = 1.0 / max(1.0, n - 1 - options["t0"])
            before = self._mean.get(i)
            same = share == 1 or before is None
            self._mean[i] = x.copy() if same else before + (x - before) * share
