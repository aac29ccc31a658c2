# SPDX-License-Identifier: Apache-2.0
"""What optimizers share: groups of parameters with options, saved states, step."""

from __future__ import annotations

import weft

from ._errors import error as _error
from ._held_state import Holder, captured
from ._errors import unwritten as _unwritten


_MOST_TOGETHER = 64  # parameters whose new values exist beside the old ones


class Optimizer(Holder):
    """Holds parameters; step() updates those that have a gradient.

    `params` are tensors, or groups of them: dicts with "params" and the options that differ in the group, as in
    PyTorch. `param_groups` lists the groups with all their options, which may be changed between steps. An option read
    from the optimizer (`opt.lr`) is the first group's; assigned, it holds for all groups. `maximize` steps along the
    gradient instead of against it.
    """

    # Names of what state_dict keeps: attributes, dicts of arrays by the parameter's index, options of groups.
    _kept: tuple[str, ...] = ()
    _rows: tuple[str, ...] = ()
    _options: tuple[str, ...] = ("lr",)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in cls._options:
            setattr(cls, name, _option(name))

    def __init__(self, params, lr=0.01, **options):
        self._steps = {}
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
                help="list each parameter once",
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
        """(index among all parameters, parameter, gradient, options of its group) of those with a gradient."""
        i = 0
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    g = p.grad.data
                    yield i, p, -g if group.get("maximize") else g, group
                i += 1

    # Whether step() computes what depends on the number of steps on the device, where a captured function runs it.
    _counts_on_device = False

    def _count(self, i):
        """The number of the step that parameter i is at, from 1."""
        if captured() and not self._counts_on_device:
            raise _error(
                "value",
                "optim.capture",
                f"{type(self).__name__} in a captured function: its rate depends on the number of steps",
                ["a replay repeats the rate of the recording"],
                help="capture SGD, RMSprop, Adam or AdamW, or leave step() outside",
            )
        n = self._steps[i] = self._steps.get(i, 0) + 1
        return n

    def _option_state(self, name):
        values = [g[name] for g in self.param_groups]
        # An option that is a tuple itself is always in a list, one for each group.
        return values if len(values) > 1 or isinstance(values[0], tuple) else values[0]

    def state_dict(self):
        """Rates, counts of steps and running averages: what load_state_dict goes on with.

        An option is one value, or a list of one for each group.
        """
        out = {name: self._option_state(name) for name in self._options}
        out |= {name: getattr(self, name) for name in self._kept}
        out["steps"] = dict(self._steps)
        for name in self._rows:
            out[name.strip("_")] = {i: x.copy() for i, x in getattr(self, name).items()}
        return out

    def load_state_dict(self, state):
        """Takes what state_dict gave. Raises ArgumentError when names differ."""
        wanted = {"steps", *self._options, *self._kept, *(name.strip("_") for name in self._rows)}
        state = dict(state.items())  # of a mapping alone: other things may give names without end
        if set(state) != wanted:
            raise _error(
                weft.ArgumentError,
                "optim.state.names",
                f"the state holds {sorted(state)}; needed: {sorted(wanted)}",
                help="load a state that this kind of optimizer saved",
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
                    help="make the optimizer with the groups that it had when the state was saved",
                )
            for group, value in zip(self.param_groups, values):
                group[name] = value
        for name in self._kept:
            setattr(self, name, state[name])
        for name in self._rows:
            rows = state[name.strip("_")]
            setattr(self, name, {int(i): weft.asarray(x, copy=True) for i, x in rows.items()})
        self._steps = {int(i): int(n) for i, n in state["steps"].items()}

    def zero_grad(self, set_to_none=True):
        """Forgets the gradients; with set_to_none=False they become zeros."""
        for p in self.params:
            p.grad = None if set_to_none or p.grad is None else weft.zeros_like(p.grad.data)

    reset_grad = zero_grad

    def clip_grad_norm(self, max_norm=1.0):
        """Scales all gradients so that their joint norm is at most max_norm; returns the norm."""
        from .nn.utils import clip_grad_norm_

        return clip_grad_norm_(self.params, max_norm)

    def step(self, closure=None):
        """One update. `closure`, if given, is called first: it computes the loss anew, calls backward, and returns
        the loss, which step returns."""
        loss = None if closure is None else _called(closure)
        run_together(self._update() or ())
        return loss

    def _update(self):
        """Yields (formula, its arguments, what takes the results) for each parameter."""
        raise _unwritten(self, "_update")


def into(p, i, *rows):
    """Takes a formula's results: the parameter's values, and what the rows hold of it."""

    def take(x, *values):
        p.data = x
        for row, value in zip(rows, values):
            if row is not None and value is not None:
                row[i] = value

    return take


def run_together(steps):
    """Runs formulas; those of small arrays on a device with a grid some at a time, in few launches."""
    waiting = {}
    for formula, arguments, take in steps:
        if not formula.joins(arguments[0]):
            take(*formula(*arguments))
            continue
        calls = waiting.setdefault(formula, [])
        calls.append((arguments, take))
        if len(calls) == _MOST_TOGETHER:
            _run_calls(formula, waiting.pop(formula))
    for formula, calls in waiting.items():
        _run_calls(formula, calls)


def _run_calls(formula, calls):
    for (_, take), results in zip(calls, formula.together([a for a, _ in calls])):
        take(*results)


def _called(closure):
    with weft.enable_grad():
        return closure()


def _decayed(g, x, decay):
    """The gradient plus weight decay."""
    return g if decay is None else g + x * decay


def _option(name):
    def read(self):
        return self.param_groups[0][name]

    def write(self, value):
        for group in self.param_groups:
            group[name] = value

    return property(read, write, doc=f"{name} of the first group; assigning sets it in all groups.")
