# SPDX-License-Identifier: Apache-2.0
"""Parameters and the modules that hold them."""

from __future__ import annotations

import weft

from .._core import Tensor
from .._errors import error as _error


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


def _buffers(value, prefix):
    if isinstance(value, weft.NDArray):
        yield prefix, value
    elif isinstance(value, (Module, dict)):
        items = value.__dict__ if isinstance(value, Module) else value
        for k, v in items.items():
            yield from _buffers(v, f"{prefix}.{k}" if prefix else str(k))
    elif isinstance(value, (list, tuple)):
        for k, v in enumerate(value):
            yield from _buffers(v, f"{prefix}.{k}")


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

    def zero_grad(self):
        """Forgets the gradients of all parameters."""
        for p in self.parameters():
            p.grad = None

    def __repr__(self):
        inner = []
        for name, value in self.__dict__.items():
            many = value if isinstance(value, (list, tuple)) else [value]
            inner += [
                f"{name}{f'.{i}' if value is many else ''}: {v!r}"
                for i, v in enumerate(many)
                if isinstance(v, Module)
            ]
        if inner:
            lines = "\n".join(inner).replace("\n", "\n  ")
            return f"{type(self).__name__}(\n  {lines}\n)"
        shapes = ", ".join(f"{n}: {tuple(p.shape)}" for n, p in self.named_parameters().items())
        return f"{type(self).__name__}({shapes})"

    def modules(self):
        return list(_modules(self))

    def named_children(self):
        """The modules directly inside, by name; those in lists as "name.0"."""
        out = {}
        for name, value in self.__dict__.items():
            if isinstance(value, Module):
                out[name] = value
            elif isinstance(value, (list, tuple)):
                out |= {f"{name}.{i}": m for i, m in enumerate(value) if isinstance(m, Module)}
            elif isinstance(value, dict):
                out |= {f"{name}.{k}": m for k, m in value.items() if isinstance(m, Module)}
        return out

    def children(self):
        """The modules directly inside."""
        return list(self.named_children().values())

    def named_modules(self, prefix=""):
        """This module under the name `prefix` and all inside it, by dotted names."""
        out = {prefix: self}
        for name, m in self.named_children().items():
            out |= m.named_modules(f"{prefix}.{name}" if prefix else name)
        return out

    def apply(self, f):
        """Calls f on every module inside, then on this one; returns it."""
        for m in self.children():
            m.apply(f)
        f(self)
        return self

    def requires_grad_(self, requires_grad=True):
        """Sets requires_grad of all parameters; returns the module."""
        for p in self.parameters():
            p.requires_grad = bool(requires_grad)
        return self

    def train(self, mode=True):
        """Layers such as Dropout and BatchNorm behave as in training; with mode=False as eval()."""
        for m in _modules(self):
            m.training = bool(mode)
        return self

    def eval(self):
        for m in _modules(self):
            m.training = False
        return self

    def named_buffers(self):
        """Arrays that are no parameters (running statistics), by name."""
        return dict(_buffers(self, ""))

    def to(self, device):
        """Moves parameters and buffers to a device, in place."""
        for p in self.parameters():
            p.data = p.data.to(device)
            p.grad = None
        for m in _modules(self):
            for k, v in m.__dict__.items():
                if isinstance(v, weft.NDArray):
                    m.__dict__[k] = v.to(device)
        return self

    def state_dict(self):
        """Copies of all parameters and buffers by name."""
        out = {name: p.data.copy() for name, p in self.named_parameters().items()}
        return out | {name: b.copy() for name, b in self.named_buffers().items()}

    def load_state_dict(self, state):
        """Takes what state_dict gave. Raises ArgumentError when names differ, ShapeError for shapes."""
        named, buffers = self.named_parameters(), self.named_buffers()
        if set(named) | set(buffers) != set(state):
            differ = sorted((set(named) | set(buffers)) ^ set(state))
            raise _error(
                weft.ArgumentError,
                "nn.state.names",
                f"names of parameters and buffers differ: {differ}",
            )
        for name, old in (named | buffers).items():
            new = weft.asarray(state[name])
            if new.shape != old.shape:
                raise _error(
                    weft.ShapeError,
                    "nn.state.shape",
                    f"{name} has shape {old.shape}, the state has {new.shape}",
                )
        for name, p in named.items():
            p.data = weft.array(state[name]).astype(p.dtype).to(p.device)
        for name, b in buffers.items():
            b[...] = weft.asarray(state[name]).astype(b.dtype).to(b.device)
