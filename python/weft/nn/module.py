# SPDX-License-Identifier: Apache-2.0
"""Parameters and the modules that hold them."""

from __future__ import annotations

from collections import namedtuple

import weft

from .._core import shown as _shown
from .._core import NDArray, Tensor
from .._errors import error as _error
from .._errors import unwritten as _unwritten
from .._held_state import ParameterHolder
from .._methods.of_arrays import constant
from ..autograd import Function


IncompatibleKeys = namedtuple("IncompatibleKeys", "missing_keys unexpected_keys")


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


def _parts(value):
    """(name, part) of a module, dict or list; what a module says is nameless gives its own parts."""
    if isinstance(value, Module):
        for k, v in value.__dict__.items():
            if k == value._nameless:
                yield from _parts(v)
            else:
                yield k, v
    elif isinstance(value, dict):
        for k, v in value.items():
            yield str(k), v
    elif isinstance(value, (list, tuple)):
        for k, v in enumerate(value):
            yield str(k), v


def _found(value, kind, prefix):
    if isinstance(value, kind):
        yield prefix, value
    else:
        for k, v in _parts(value):
            yield from _found(v, kind, f"{prefix}.{k}" if prefix else k)


def _children(value, prefix=""):
    for k, v in _parts(value):
        name = f"{prefix}.{k}" if prefix else k
        if isinstance(v, Module):
            yield name, v
        elif isinstance(v, (list, tuple, dict)):
            yield from _children(v, name)


def _plain(name):
    """A name from before containers were nameless: "layers.0.weight" was the "0.weight" of now."""
    return ".".join(part for part in name.split(".") if part not in ("layers", "items"))


class _Steps:
    """next(model.parameters()) gives the first one, as of PyTorch's iterators; a second call on the same object the second."""

    def __next__(self):
        rest = self.__dict__.get("_rest")
        if rest is None:
            rest = self.__dict__["_rest"] = iter(self)
        return next(rest)


class InOrder(_Steps, list):
    """Parameters or modules in a row."""


class ByName(_Steps, dict):
    """Parts by name. A loop over it gives pairs, as PyTorch's does: `for name, p in model.named_parameters()`; `.keys()` are the names."""

    def __iter__(self):
        return iter(self.items())


class _Handle:
    """Of a hook."""

    def __init__(self, hooks, hook):
        self.hooks = hooks
        hooks[id(self)] = hook

    def remove(self):
        """Takes the hook away."""
        self.hooks.pop(id(self), None)


class _Watched:
    """One call of a module whose gradients hooks look at."""

    def __init__(self, module, hooks, count, at):
        self.module, self.hooks, self.count, self.at = module, hooks, count, at
        self.result = None

    def gradients(self, g):
        """The arguments' gradients as the hooks leave them; the one that was given, of the argument at `at`."""
        out = tuple(g if i == self.at else None for i in range(self.count))
        for hook in self.hooks:
            changed = hook(self.module, out, (self.result,))
            if changed is not None:
                out = changed if isinstance(changed, tuple) else (changed,)
        return None if self.at is None else out[self.at]


class _Incoming(Function):
    @staticmethod
    def forward(ctx, x, call):
        ctx.call = call
        return x

    @staticmethod
    def backward(ctx, g):
        return ctx.call.gradients(g), None


class _Outgoing(Function):
    @staticmethod
    def forward(ctx, x, call):
        ctx.call = call
        return x

    @staticmethod
    def backward(ctx, g):
        ctx.call.result = g
        if ctx.call.at is None:  # no gradient will come out at the other end
            ctx.call.gradients(None)
        return g, None


def _watched(module, args, hooks):
    """The arguments with the one that requires gradients led through _Incoming, and the call."""
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
    if len(places) > 1:
        raise _error(
            weft.ArgumentError,
            "nn.module.backward_hook",
            f"a backward hook of {type(module).__name__} with {len(places)} arguments that require gradients",
            ["legal: one at most"],
            help="hook the module that makes one of the arguments",
        )
    call = _Watched(module, hooks, len(args), places[0] if places else None)
    args = [_Incoming.apply(a, call) if i in places else a for i, a in enumerate(args)]
    return tuple(args), call


class Module(ParameterHolder):
    """Something callable with parameters, found in its attributes."""

    _nameless = None  # the attribute whose parts are named as if they were the module's own
    _reads_children = False  # forward reads parameters of modules inside without calling them

    def __init__(self):
        self.training = True

    def __call__(self, *args, **kwargs):
        """forward(...), with hooks. Arrays of floats are taken as tensors without gradient."""
        own = self.__dict__
        if any(isinstance(x, NDArray) for x in args):
            args = tuple(map(constant, args))
        for hook in own.get("_pre_hooks", {}).values():
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        watched = list(own["_backward_hooks"].values()) if own.get("_backward_hooks") else None
        if watched:
            args, call = _watched(self, args, watched)
        out = self.forward(*args, **kwargs)
        if watched:
            out = _Outgoing.apply(out, call)
        for hook in own.get("_hooks", {}).values():
            changed = hook(self, args, out)
            out = out if changed is None else changed
        return out

    def register_forward_pre_hook(self, hook):
        """Calls hook(module, arguments) before forward; what it returns, unless None, are the arguments.

        Returns a handle; its remove() takes the hook away.
        """
        return _Handle(self.__dict__.setdefault("_pre_hooks", {}), hook)

    def register_full_backward_hook(self, hook):
        """Calls hook(module, gradients of the arguments, (gradient of the result,)) in backward.

        forward gives one tensor and takes at most one that requires gradients (ArgumentError otherwise): the gradients
        of the others are None. What the hook returns, unless None, are the arguments' gradients. Returns a handle; its
        remove() takes the hook away.
        """
        return _Handle(self.__dict__.setdefault("_backward_hooks", {}), hook)

    def extra_repr(self):
        """What repr shows in the parentheses of a module without modules inside, before its parameters' shapes."""
        return ""

    def register_forward_hook(self, hook):
        """Calls hook(module, arguments, result) after forward; what it returns, unless None, is the result.

        Returns a handle; its remove() takes the hook away.
        """
        return _Handle(self.__dict__.setdefault("_hooks", {}), hook)

    def forward(self, *args, **kwargs):
        raise _unwritten(self, "forward")

    def parameters(self, recurse=True) -> list[Parameter]:
        """All parameters, each once; recurse=False: the module's own alone."""
        found = InOrder(_walk(self, set()))
        if recurse:
            return found
        inside = {id(p) for m in self.children() for p in m.parameters()}
        return InOrder(p for p in found if id(p) not in inside)

    def named_parameters(self, prefix="", recurse=True):
        """Parameters by dotted names, behind `prefix`; recurse=False: the module's own alone."""
        found = _found(self, Parameter, prefix)
        if not recurse:
            inside = {id(p) for m in self.children() for p in m.parameters()}
            found = ((name, p) for name, p in found if id(p) not in inside)
        return ByName(found)

    def zero_grad(self):
        """Forgets the gradients of all parameters."""
        for p in self.parameters():
            p.grad = None

    def __repr__(self):
        inner = [f"{name}: {m!r}" for name, m in self.named_children().items()]
        if inner:
            lines = "\n".join(inner).replace("\n", "\n  ")
            return f"{type(self).__name__}(\n  {lines}\n)"
        shapes = [f"{n}: {tuple(p.shape)}" for n, p in self.named_parameters().items()]
        return f"{type(self).__name__}({', '.join([*filter(None, [self.extra_repr()]), *shapes])})"

    def modules(self):
        return InOrder(_modules(self))

    def named_children(self):
        """The modules directly inside, by name; those in lists as "name.0"."""
        return ByName(_children(self))

    def children(self):
        """The modules directly inside."""
        return InOrder(self.named_children().values())

    def named_modules(self, prefix=""):
        """This module under the name `prefix` and all inside it, by dotted names."""
        out = ByName({prefix: self})
        for name, m in self.named_children().items():
            out.update(m.named_modules(f"{prefix}.{name}" if prefix else name).items())
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
        return ByName(_found(self, weft.NDArray, ""))

    def buffers(self):
        """Arrays that are no parameters (running statistics)."""
        return InOrder(self.named_buffers().values())

    def get_submodule(self, target):
        """The module of a dotted name, itself for "". Raises ArgumentError with the names there are."""
        return self._named(target, dict(self.named_modules()), "module")

    def get_parameter(self, target):
        """The parameter of a dotted name. Raises ArgumentError with the names there are."""
        return self._named(target, self.named_parameters(), "parameter")

    def get_buffer(self, target):
        """The buffer of a dotted name. Raises ArgumentError with the names there are."""
        return self._named(target, self.named_buffers(), "buffer")

    def _named(self, target, known, what):
        if target not in known:
            raise _error(
                weft.ArgumentError,
                "nn.module.name",
                f"{type(self).__name__} has no {what} {_shown(target)}",
                [f"there are: {', '.join(sorted(filter(None, known.keys())))}"],
            )
        return known[target]

    def add_module(self, name, module):
        """Sets an attribute to a module."""
        setattr(self, name, module)

    register_module = add_module

    def register_parameter(self, name, parameter):
        """Sets an attribute to a parameter, or to None."""
        wrong = parameter is not None and not isinstance(parameter, Parameter)
        setattr(self, name, Parameter(parameter) if wrong else parameter)

    def register_buffer(self, name, array, persistent=True):
        """Sets an attribute to an array that moves and is saved with the module, and is not trained; persistent=False: is not saved."""
        if array is None:
            setattr(self, name, None)
            return
        if not persistent:
            self.__dict__.setdefault("_unsaved", set()).add(name)
        setattr(self, name, weft.asarray(getattr(array, "data", array)))

    def cpu(self):
        """As to("cpu")."""
        return self.to("cpu")

    def cuda(self):
        """As to("cuda:0"). Raises DeviceError without one."""
        return self.to("cuda:0")

    def to(self, device=None, dtype=None):
        """Moves parameters and buffers to a device, or converts those of floats to a type, in place."""
        if isinstance(device, weft.dtype):
            device, dtype = None, device

        def moved(x):
            x = x if device is None else x.to(device)
            floats = dtype is not None and weft.isdtype(x.dtype, "real floating")
            return x.astype(dtype) if floats else x

        for p in self.parameters():
            p.data = moved(p.data)
            p.grad = None
        for m in _modules(self):
            for k, v in m.__dict__.items():
                if isinstance(v, weft.NDArray):
                    m.__dict__[k] = moved(v)
        return self

    def float(self):
        """As to(dtype=float32)."""
        return self.to(dtype="float32")

    def double(self):
        """As to(dtype=float64)."""
        return self.to(dtype="float64")

    def half(self):
        """As to(dtype=float16)."""
        return self.to(dtype="float16")

    def bfloat16(self):
        """As to(dtype=bfloat16)."""
        return self.to(dtype="bfloat16")

    def type(self, dtype):
        """As to(dtype=dtype)."""
        return self.to(dtype=dtype)

    def state_dict(self):
        """Copies of all parameters and buffers by name."""
        out = {name: p.data.copy() for name, p in self.named_parameters().items()}
        return out | {name: b.copy() for name, b in self._saved_buffers().items()}

    def _saved_buffers(self):
        unsaved = {
            f"{name}.{k}" if name else k
            for name, m in self.named_modules().items()
            for k in m.__dict__.get("_unsaved", ())
        }
        return {name: b for name, b in self.named_buffers().items() if name not in unsaved}

    def load_state_dict(self, state, strict=True):
        """Takes what state_dict gave. Raises ArgumentError when names differ, ShapeError for shapes.

        With strict=False names that only one side has are left alone. Returns both: (missing, unexpected).
        """
        state = dict(state.items())  # of a mapping alone: other things may give names without end
        named, buffers = dict(self.named_parameters()), self._saved_buffers()
        known = set(named) | set(buffers)
        if known != set(state):
            plain = {_plain(name): value for name, value in state.items()}
            state = plain if known == set(plain) else state
        lack, extra = sorted(known - set(state)), sorted(set(state) - known)
        if strict and known != set(state):
            raise _error(
                weft.ArgumentError,
                "nn.state.names",
                f"names of parameters and buffers differ: {lack + extra}",
                [f"missing from the state: {lack}", f"unknown to the module: {extra}"],
            )
        named = {name: p for name, p in named.items() if name in state}
        buffers = {name: b for name, b in buffers.items() if name in state}
        for name, old in (named | buffers).items():
            new = weft.asarray(state[name])
            if new.shape != old.shape:
                raise _error(
                    weft.ShapeError,
                    "nn.state.shape",
                    f"{name} has shape {old.shape}, the state has {new.shape}",
                    help="build the module with the sizes that it had when it was saved",
                )
        for name, p in named.items():
            p.data = weft.array(state[name]).astype(p.dtype).to(p.device)
        for name, b in buffers.items():
            b[...] = weft.asarray(state[name]).astype(b.dtype).to(b.device)
        return IncompatibleKeys(lack, extra)
