# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose rates follow each parameter's history, beside Adam and RMSprop, which stand in optim.py."""

from __future__ import annotations

import math

import weft

from ._fused_step import FusedStep
from ._optimizer import Optimizer, _decayed, into

# ---- formulas: x is what is learned, g its gradient


@FusedStep
def _adagrad(x, total, g, rate, eps, decay):
    g = _decayed(g, x, decay)
    total = total + g * g
    return x - g * rate / (weft.sqrt(total) + eps), total


@FusedStep
def _adadelta(x, v, delta, g, rate, rho, rest, eps, decay):
    g = _decayed(g, x, decay)
    v = v * rho + g * g * rest
    step = weft.sqrt(delta + eps) / weft.sqrt(v + eps) * g
    return x - step * rate, v, delta * rho + step * step * rest


@FusedStep
def _adamax(x, m, v, g, rate, eps, beta1, rest1, beta2, rest2, decay):
    g = _decayed(g, x, decay)
    m, v = m * beta1 + g * rest1, weft.maximum(v * beta2, weft.abs(g) + eps)
    return x - m * rate / v, m, v


@FusedStep
def _nadam(x, m, v, g, now, ahead, second, eps, beta1, rest1, beta2, rest2, decay):
    g = _decayed(g, x, decay)
    m, v = m * beta1 + g * rest1, v * beta2 + g * g * rest2
    return x - (g * now + m * ahead) / (weft.sqrt(v * second) + eps), m, v


@FusedStep
def _radam(x, m, v, g, rate, certain, eps, beta1, rest1, beta2, rest2, decay):
    g = _decayed(g, x, decay)
    m, v = m * beta1 + g * rest1, v * beta2 + g * g * rest2
    step = m * rate
    return x - (step if certain is None else step * certain / (weft.sqrt(v) + eps)), m, v


@FusedStep
def _rprop(x, before, size, g, less, more, least, most):
    turn = g * before
    longer = weft.where(turn > 0, size * more, size)
    size = weft.minimum(weft.maximum(weft.where(turn < 0, size * less, longer), least), most)
    g = weft.where(turn < 0, g * 0.0, g)
    return x - weft.sign(g) * size, g, size


@FusedStep
def _averaged(x, mean, g, rate, keep, share, decay):
    x = x * keep - _decayed(g, x, decay) * rate
    return x, x * 1.0 if share is None else mean + (x - mean) * share


def _held(g, i, *rows):
    """Parameter i's array of each, zeros before its first step."""
    return [row[i] if i in row else weft.zeros_like(g) for row in rows]


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
            n, decay = self._count(i), options["weight_decay"] or None
            if i not in self._sum:
                self._sum[i] = weft.full_like(g, options["initial_accumulator_value"])
            rate = options["lr"] / (1.0 + (n - 1) * options["lr_decay"])
            arguments = p.data, self._sum[i], g, rate, options["eps"], decay
            yield _adagrad, arguments, into(p, i, self._sum)


class Adadelta(Optimizer):
    """Steps as large as the running mean of former steps (Zeiler, 2012)."""

    _options = ("lr", "rho", "eps", "weight_decay", "maximize")
    _rows = ("_square", "_delta")

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False):
        super().__init__(params, lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize)
        self._square, self._delta = {}, {}

    def _update(self):
        for i, p, g, options in self._each():
            rho, decay = options["rho"], options["weight_decay"] or None
            v, delta = _held(g, i, self._square, self._delta)
            arguments = p.data, v, delta, g, options["lr"], rho, 1 - rho, options["eps"], decay
            yield _adadelta, arguments, into(p, i, self._square, self._delta)


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
        decoupled_weight_decay=False,
        **options,
    ):
        self.decoupled = bool(decoupled_weight_decay)
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

    def _rolled(self, step, i, p, g, options, *numbers):
        """`numbers`: those of the formula before eps; the factors of the means follow."""
        beta1, beta2 = options["betas"]
        factors = [beta1, 1 - beta1, beta2, 1 - beta2]
        decay, x = options["weight_decay"] or None, p.data
        if decay and self.decoupled:
            x, decay = x * (1.0 - options["lr"] * decay), None
        held = _held(g, i, self._m, self._v)
        arguments = x, *held, g, *numbers, options["eps"], *factors, decay
        return step, arguments, into(p, i, self._m, self._v)


class Adamax(_Moments):
    """Adam with the largest gradient, fading, in place of the mean square."""

    def _update(self):
        for i, p, g, options in self._each():
            t, (beta1, beta2) = self._count(i), options["betas"]
            rate = options["lr"] / (1 - beta1**t)
            yield self._rolled(_adamax, i, p, g, options, rate)


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
        decoupled_weight_decay=False,
        maximize=False,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            maximize,
            decoupled_weight_decay,
            momentum_decay=momentum_decay,
        )
        self.products = {}

    def _update(self):
        for i, p, g, options in self._each():
            t, (beta1, beta2) = self._count(i), options["betas"]
            mu, ahead = (
                beta1 * (1.0 - 0.5 * 0.96 ** (n * options["momentum_decay"])) for n in (t, t + 1)
            )
            product = self.products[i] = self.products.get(i, 1.0) * mu
            now = options["lr"] * (1 - mu) / (1 - product)
            ahead = options["lr"] * ahead / (1 - product * ahead)
            yield self._rolled(_nadam, i, p, g, options, now, ahead, 1 / (1 - beta2**t))


class RAdam(_Moments):
    """Adam that leaves out the mean square while it is uncertain (Liu et al., 2020)."""

    def __init__(
        self,
        params,
        lr=0.001,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        decoupled_weight_decay=False,
        maximize=False,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, maximize, decoupled_weight_decay)

    def _update(self):
        for i, p, g, options in self._each():
            t, (beta1, beta2) = self._count(i), options["betas"]
            left = 1 - beta2**t
            limit = 2.0 / (1 - beta2) - 1.0
            rho = limit - 2.0 * t * beta2**t / left
            certain = None
            if rho > 5:
                part = (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)
                certain = math.sqrt(part * left)
            yield self._rolled(_radam, i, p, g, options, options["lr"] / (1 - beta1**t), certain)


class Rprop(Optimizer):
    """Steps by the gradient's sign, longer while it stays and shorter when it changes (Riedmiller & Braun, 1993)."""

    _options = ("lr", "etas", "step_sizes", "maximize")
    _rows = ("_before", "_size")

    def __init__(self, params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0), maximize=False):
        super().__init__(
            params, lr, etas=tuple(etas), step_sizes=tuple(step_sizes), maximize=maximize
        )
        self._before, self._size = {}, {}

    def _update(self):
        for i, p, g, options in self._each():
            if i not in self._size:
                self._size[i] = weft.full_like(g, options["lr"])
            (before,) = _held(g, i, self._before)
            limits = *options["etas"], *options["step_sizes"]
            arguments = p.data, before, self._size[i], g, *limits
            yield _rprop, arguments, into(p, i, self._before, self._size)


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
            lambd, lr, n = options["lambd"], options["lr"], self._count(i)
            rate = lr / (1 + lambd * lr * (n - 1)) ** options["alpha"]
            share = 1.0 / max(1.0, n - 1 - options["t0"])
            if share == 1 or i not in self._mean:
                share = None
            (mean,) = _held(g, i, self._mean)
            decay = options["weight_decay"] or None
            arguments = p.data, mean, g, rate, 1.0 - lambd * rate, share, decay
            yield _averaged, arguments, into(p, i, self._mean)
