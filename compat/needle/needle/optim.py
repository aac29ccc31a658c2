# SPDX-License-Identifier: Apache-2.0
"""Optimizers that work on data alone, so that no graph grows."""

import numpy as np

import needle as ndl


class Optimizer:
    def __init__(self, params):
        self.params = params

    def step(self):
        raise NotImplementedError

    def reset_grad(self):
        for p in self.params:
            p.grad = None

    def _gradients(self):
        for p in self.params:
            if p.grad is not None:
                g = ndl.Tensor(p.grad.data, dtype=p.dtype, requires_grad=False)
                yield p, g + p.data * self.weight_decay if self.weight_decay else g


class SGD(Optimizer):
    """With u = momentum u + (1 - momentum) g."""

    def __init__(self, params, lr=0.01, momentum=0.0, weight_decay=0.0):
        super().__init__(params)
        self.lr, self.momentum, self.weight_decay, self.u = lr, momentum, weight_decay, {}

    def step(self):
        for p, g in self._gradients():
            u = g * (1 - self.momentum)
            if p in self.u:
                u = self.u[p] * self.momentum + u
            self.u[p] = u.detach()
            p.data = p.data - u.detach() * self.lr

    def clip_grad_norm(self, max_norm=0.25):
        norm = np.linalg.norm(
            [np.linalg.norm(p.grad.detach().numpy()) for p in self.params if p.grad is not None]
        )
        scale = min(1.0, float(max_norm / (norm + 1e-6)))
        for p in self.params:
            if p.grad is not None:
                p.grad = p.grad.detach() * scale


class Adam(Optimizer):
    def __init__(self, params, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
        super().__init__(params)
        self.lr, self.beta1, self.beta2, self.eps, self.weight_decay = (
            lr,
            beta1,
            beta2,
            eps,
            weight_decay,
        )
        self.t, self.m, self.v = 0, {}, {}

    def step(self):
        self.t += 1
        for p, g in self._gradients():
            m, v = g * (1 - self.beta1), g * g * (1 - self.beta2)
            if p in self.m:
                m, v = self.m[p] * self.beta1 + m, self.v[p] * self.beta2 + v
            self.m[p], self.v[p] = m.detach(), v.detach()
            m_hat, v_hat = (
                self.m[p] / (1 - self.beta1**self.t),
                self.v[p] / (1 - self.beta2**self.t),
            )
            p.data = p.data - m_hat * self.lr / (v_hat**0.5 + self.eps)
