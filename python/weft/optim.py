# SPDX-License-Identifier: Apache-2.0
"""Optimizers. They change parameters' data and never extend a graph."""

from __future__ import annotations

import weft


class Optimizer:
    """Holds parameters; step() updates those that have a gradient."""

    def __init__(self, params):
        self.params = list(params)

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    reset_grad = zero_grad

    def clip_grad_norm(self, max_norm=1.0):
        """Scales all gradients so that their joint norm is at most max_norm; returns the norm."""
        with_grad = [p for p in self.params if p.grad is not None]
        total = sum(float(weft.sum(p.grad.data * p.grad.data).item()) for p in with_grad) ** 0.5
        if total > max_norm:
            for p in with_grad:
                p.grad = p.grad.data * (max_norm / (total + 1e-6))
        return total

    def step(self):
        raise NotImplementedError


class SGD(Optimizer):
    """Stochastic gradient descent with momentum and weight decay."""

    def __init__(self, params, lr=0.01, momentum=0.0, weight_decay=0.0):
        super().__init__(params)
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        self._velocity = {}

    def step(self):
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            g = p.grad.data
            if self.weight_decay:
                g = g + p.data * self.weight_decay
            if self.momentum:
                v = self._velocity.get(i)
                g = self._velocity[i] = g if v is None else v * self.momentum + g
            p.data = p.data - g * self.lr


class Adam(Optimizer):
    """Adam with bias correction; weight decay is added to the gradient."""

    decoupled = False

    def __init__(self, params, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
        super().__init__(params)
        self.lr, self.beta1, self.beta2, self.eps, self.weight_decay = (
            lr,
            beta1,
            beta2,
            eps,
            weight_decay,
        )
        self.t, self._m, self._v = 0, {}, {}

    def step(self):
        self.t += 1
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            g, x = p.grad.data, p.data
            if self.weight_decay:
                if self.decoupled:
                    x = x * (1.0 - self.lr * self.weight_decay)
                else:
                    g = g + x * self.weight_decay
            m = self._m[i] = self._m.get(i, 0.0) * self.beta1 + g * (1 - self.beta1)
            v = self._v[i] = self._v.get(i, 0.0) * self.beta2 + g * g * (1 - self.beta2)
            scale = self.lr / (1 - self.beta1**self.t)
            root = weft.sqrt(v * (1.0 / (1 - self.beta2**self.t))) + self.eps
            p.data = x - m * scale / root


class AdamW(Adam):
    """Adam with weight decay apart from the gradient."""

    decoupled = True

    def __init__(self, params, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01):
        super().__init__(params, lr, beta1, beta2, eps, weight_decay)
