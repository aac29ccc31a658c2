# SPDX-License-Identifier: Apache-2.0
"""Optimizers. They change parameters' data and never extend a graph."""

from __future__ import annotations

import weft

from ._errors import error as _error


class Optimizer:
    """Holds parameters; step() updates those that have a gradient."""

    # Names of what state_dict keeps besides the rows by parameter.
    _kept: tuple[str, ...] = ("lr",)
    _rows: tuple[str, ...] = ()

    def __init__(self, params, lr=0.01):
        self.params = list(params)
        for p in self.params:
            if not isinstance(p, weft.Tensor):
                raise _error(
                    weft.DTypeError,
                    "optim.params.type",
                    f"an optimizer takes tensors, got a {type(p).__name__}",
                    help="pass model.parameters(); give groups with other rates optimizers of their own",
                )
        if not lr >= 0:
            raise _error(
                weft.ArgumentError, "optim.lr", f"the learning rate is {lr}", ["legal: 0 and more"]
            )
        self.lr = lr

    def state_dict(self):
        """Rates, counters and running averages: what load_state_dict goes on with."""
        out = {name: getattr(self, name) for name in self._kept}
        for name in self._rows:
            out[name.strip("_")] = {i: x.copy() for i, x in getattr(self, name).items()}
        return out

    def load_state_dict(self, state):
        """Takes what state_dict gave. Raises ArgumentError when names differ."""
        wanted = {*self._kept, *(name.strip("_") for name in self._rows)}
        if set(state) != wanted:
            raise _error(
                weft.ArgumentError,
                "optim.state.names",
                f"the state holds {sorted(state)}; needed: {sorted(wanted)}",
            )
        for name in self._kept:
            setattr(self, name, state[name])
        for name in self._rows:
            rows = state[name.strip("_")]
            setattr(self, name, {int(i): weft.asarray(x, copy=True) for i, x in rows.items()})

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
    """Stochastic gradient descent with momentum (nesterov: looked up one step ahead) and weight decay."""

    _kept, _rows = ("lr", "momentum", "weight_decay", "nesterov"), ("_velocity",)

    def __init__(self, params, lr=0.01, momentum=0.0, weight_decay=0.0, nesterov=False):
        super().__init__(params, lr)
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
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
                v = self._velocity[i] = g if v is None else v * self.momentum + g
                g = g + v * self.momentum if self.nesterov else v
            p.data = p.data - g * self.lr


class Adam(Optimizer):
    """Adam with bias correction; weight decay is added to the gradient."""

    decoupled = False
    _kept, _rows = ("lr", "beta1", "beta2", "eps", "weight_decay", "t"), ("_m", "_v")

    def __init__(
        self, params, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, betas=None
    ):
        super().__init__(params, lr)
        self.beta1, self.beta2 = (beta1, beta2) if betas is None else betas
        self.eps, self.weight_decay = eps, weight_decay
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

    def __init__(
        self, params, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, betas=None
    ):
        super().__init__(params, lr, beta1, beta2, eps, weight_decay, betas)
