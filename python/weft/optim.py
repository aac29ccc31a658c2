# SPDX-License-Identifier: Apache-2.0
"""Optimizers. They change parameters' data and never extend a graph."""

from __future__ import annotations

import weft

from . import lr_scheduler
from ._errors import error as _error

__all__ = ["Optimizer", "SGD", "Adam", "AdamW", "RMSprop", "lr_scheduler"]


class Optimizer:
    """Holds parameters; step() updates those that have a gradient.

    `params` are tensors, or groups of them: dicts with "params" and the options that differ in the group, as in
    PyTorch. `param_groups` lists the groups with all their options, which may be changed between steps. An option read
    from the optimizer (`opt.lr`) is the first group's; assigned, it holds for all groups.
    """

    # Names of what state_dict keeps besides the rows by parameter: options of groups, and counters.
    _kept: tuple[str, ...] = ()
    _rows: tuple[str, ...] = ()
    _options: tuple[str, ...] = ("lr",)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in cls._options:
            setattr(cls, name, _option(name))

    def __init__(self, params, lr=0.01, **options):
        self._defaults = {"lr": lr, **options}
        groups = list(params)
        if not all(isinstance(g, dict) for g in groups):
            groups = [{"params": groups}]
        self.param_groups = []
        for given in groups:
            self.add_param_group(given)

    def add_param_group(self, given):
        """One more group: a dict with "params" and the options that differ. Raises ArgumentError, DTypeError."""
        seen = {id(p) for p in self.params}
        group = {**self._defaults, **given}
        unknown = sorted(set(group) - {"params", "initial_lr", *self._options})
        if unknown or "params" not in given:
            raise _error(
                weft.ArgumentError,
                "optim.params.group",
                f"{type(self).__name__} has a group with the keys {sorted(given)}",
                [f'legal: "params" and {", ".join(self._options)}'],
            )
        held = group["params"]
        group["params"] = [held] if isinstance(held, weft.Tensor) else list(held)
        for p in group["params"]:
            if not isinstance(p, weft.Tensor):
                raise _error(
                    weft.DTypeError,
                    "optim.params.type",
                    f"an optimizer takes tensors, got a {type(p).__name__}",
                    help="pass model.parameters(), or groups: [{'params': [...], 'lr': 0.1}, ...]",
                )
        twice = [p for p in group["params"] if id(p) in seen]
        if twice:
            raise _error(
                weft.ArgumentError,
                "optim.params.twice",
                f"a parameter of shape {twice[0].shape} is in more than one group",
            )
        seen.update(id(p) for p in group["params"])
        if not group["lr"] >= 0:
            raise _error(
                weft.ArgumentError,
                "optim.lr",
                f"the learning rate is {group['lr']}",
                ["legal: 0 and more"],
            )
        self.param_groups.append(group)

    @property
    def params(self):
        """The parameters of all groups, in order."""
        return [p for g in self.param_groups for p in g["params"]]

    def _each(self):
        """(index among all parameters, parameter, options of its group) of those with a gradient."""
        i = 0
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    yield i, p, group
                i += 1

    def _option_state(self, name):
        values = [g[name] for g in self.param_groups]
        return values if len(values) > 1 else values[0]

    def state_dict(self):
        """Rates, counters and running averages: what load_state_dict goes on with.

        An option is one value, or a list of one for each group.
        """
        out = {name: self._option_state(name) for name in self._options}
        out |= {name: getattr(self, name) for name in self._kept}
        for name in self._rows:
            out[name.strip("_")] = {i: x.copy() for i, x in getattr(self, name).items()}
        return out

    def load_state_dict(self, state):
        """Takes what state_dict gave. Raises ArgumentError when names differ."""
        wanted = {*self._options, *self._kept, *(name.strip("_") for name in self._rows)}
        if set(state) != wanted:
            raise _error(
                weft.ArgumentError,
                "optim.state.names",
                f"the state holds {sorted(state)}; needed: {sorted(wanted)}",
            )
        for name in self._options:
            values = state[name]
            if not isinstance(values, (list, tuple)):
                values = [values] * len(self.param_groups)
            if len(values) != len(self.param_groups):
                raise _error(
                    weft.ArgumentError,
                    "optim.state.groups",
                    f"the state is of {len(values)} groups, the optimizer has {len(self.param_groups)}",
                )
            for group, value in zip(self.param_groups, values):
                group[name] = value
        for name in self._kept:
            setattr(self, name, state[name])
        for name in self._rows:
            rows = state[name.strip("_")]
            setattr(self, name, {int(i): weft.asarray(x, copy=True) for i, x in rows.items()})

    def zero_grad(self, set_to_none=True):
        """Forgets the gradients; with set_to_none=False they become zeros."""
        for p in self.params:
            p.grad = None if set_to_none or p.grad is None else weft.zeros_like(p.grad.data)

    reset_grad = zero_grad

    def clip_grad_norm(self, max_norm=1.0):
        """Scales all gradients so that their joint norm is at most max_norm; returns the norm."""
        from .nn.utils import clip_grad_norm_

        return clip_grad_norm_(self.params, max_norm)

    def step(self):
        raise NotImplementedError


def _option(name):
    def read(self):
        return self.param_groups[0][name]

    def write(self, value):
        for group in self.param_groups:
            group[name] = value

    return property(read, write, doc=f"{name} of the first group; assigning sets it in all groups.")


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (nesterov: looked up one step ahead) and weight decay."""

    _options, _rows = ("lr", "momentum", "weight_decay", "nesterov"), ("_velocity",)

    def __init__(self, params, lr=0.01, momentum=0.0, weight_decay=0.0, nesterov=False):
        super().__init__(
            params, lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov
        )
        self._velocity = {}

    def step(self):
        for i, p, options in self._each():
            g, momentum = p.grad.data, options["momentum"]
            if options["weight_decay"]:
                g = g + p.data * options["weight_decay"]
            if momentum:
                v = self._velocity.get(i)
                v = self._velocity[i] = g if v is None else v * momentum + g
                g = g + v * momentum if options["nesterov"] else v
            p.data = p.data - g * options["lr"]


class Adam(Optimizer):
    """Adam with bias correction; weight decay is added to the gradient."""

    decoupled = False
    _options = ("lr", "beta1", "beta2", "eps", "weight_decay")
    _kept, _rows = ("t",), ("_m", "_v")

    def __init__(
        self, params, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, betas=None
    ):
        beta1, beta2 = (beta1, beta2) if betas is None else betas
        super().__init__(params, lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay)
        self.t, self._m, self._v = 0, {}, {}

    def step(self):
        self.t += 1
        for i, p, options in self._each():
            g, x, lr, decay = p.grad.data, p.data, options["lr"], options["weight_decay"]
            beta1, beta2 = options["beta1"], options["beta2"]
            if decay:
                if self.decoupled:
                    x = x * (1.0 - lr * decay)
                else:
                    g = g + x * decay
            m = self._m[i] = self._m.get(i, 0.0) * beta1 + g * (1 - beta1)
            v = self._v[i] = self._v.get(i, 0.0) * beta2 + g * g * (1 - beta2)
            root = weft.sqrt(v * (1.0 / (1 - beta2**self.t))) + options["eps"]
            p.data = x - m * (lr / (1 - beta1**self.t)) / root


class AdamW(Adam):
    """Adam with weight decay apart from the gradient."""

    decoupled = True

    def __init__(
        self, params, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, betas=None
    ):
        super().__init__(params, lr, beta1, beta2, eps, weight_decay, betas)


class RMSprop(Optimizer):
    """Steps over the root of a running mean of squared gradients, with momentum."""

    _options = ("lr", "alpha", "eps", "weight_decay", "momentum")
    _rows = ("_square", "_velocity")

    def __init__(self, params, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0):
        super().__init__(
            params, lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum
        )
        self._square, self._velocity = {}, {}

    def step(self):
        for i, p, options in self._each():
            g, alpha = p.grad.data, options["alpha"]
            if options["weight_decay"]:
                g = g + p.data * options["weight_decay"]
            v = self._square[i] = self._square.get(i, 0.0) * alpha + g * g * (1 - alpha)
            g = g / (weft.sqrt(v) + options["eps"])
            if options["momentum"]:
                g = self._velocity[i] = self._velocity.get(i, 0.0) * options["momentum"] + g
            p.data = p.data - g * options["lr"]
