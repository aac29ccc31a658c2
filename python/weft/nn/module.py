# SPDX-License-Identifier: Apache-2.0
"""Parameters and the modules that hold them."""

from __future__ import annotations

import weft

from .._core import Tensor


class Parameter(Tensor):
    """A tensor that training changes."""


def _walk(value, seen):
    if isinstance(value, Parameter):
        if id(value) not in seen:
            seen.add(id(value))
            yield value
    elif isinstance(value, Module):
        for v in value.__dict__.values():
            yield from _walk(v, seen)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _walk(v, seen)
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _walk(v, seen)


def _modules(value):
    if isinstance(value, Module):
        yield value
        for v in value.__dict__.values():
            yield from _modules(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _modules(v)
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _modules(v)


def _named(value, prefix):
    if isinstance(value, Parameter):
        yield prefix, value
    elif isinstance(value, (Module, dict)):
        items = value.__dict__ if isinstance(value, Module) else value
        for k, v in items.items():
            yield from _named(v, f"{prefix}.{k}" if prefix else str(k))
    elif isinstance(value, (list, tuple)):
        for k, v in enumerate(value):
            yield from _named(v, f"{prefix}.{k}")


class Module:
    """Something callable with parameters, found in its attributes."""

    def __init__(self):
        self.training = True

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, *args, **kwargs):
        raise NotImplementedError

    def parameters(self) -> list[Parameter]:
        return list(_walk(self, set()))

    def named_parameters(self):
        return dict(_named(self, ""))

    def modules(self):
        return list(_modules(self))

    def train(self):
        for m in _modules(self):
            m.training = True
        return self

    def eval(self):
        for m in _modules(self):
            m.training = False
        return self

    def state_dict(self):
        """Copies of all parameters by name."""
        return {name: p.data.copy() for name, p in self.named_parameters().items()}

    def load_state_dict(self, state):
        named = self.named_parameters()
        if set(named) != set(state):
            raise weft.ArgumentError(
                f"error[nn.state.names]: parameters differ: {sorted(set(named) ^ set(state))}"
            )
        for name, p in named.items():
            p.data = weft.asarray(state[name]).copy()
