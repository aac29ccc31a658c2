# SPDX-License-Identifier: Apache-2.0
"""Parameters that modules compute: `module.weight` becomes f(original), whose original is what training changes.

As `torch.nn.utils.parametrize`: the original is "parametrizations.weight.original" in state_dict.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TypeVar

import weft

from ..._core import shown as _shown
from ..._boundary import publish as _publish
from ..._boundary import publish_class as _publish_class
from ..._errors import error as _error
from ..containers import ModuleDict
from ..module import Module, Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
]

_M = TypeVar("_M", bound=Module)
_cache = threading.local()  # what cached() keeps, by module and name; absent outside


class ParametrizationList(Module):
    """The modules that make one parameter, in a row, and what the first one takes: `original`, or `original0`, `original1`, ...
    where its right_inverse gives several."""

    _nameless = "parts"

    def __init__(self, parts, original):
        super().__init__()
        self.parts = list(parts)
        value = original
        for part in reversed(self.parts):
            if hasattr(part, "right_inverse"):
                value = part.right_inverse(value)
        self._several = isinstance(value, (list, tuple))
        for name, array in zip(self._names(value), value if self._several else [value]):
            setattr(self, name, Parameter(getattr(array, "data", array)))

    def _names(self, value):
        return [f"original{i}" for i in range(len(value))] if self._several else ["original"]

    def _originals(self):
        return [p for name, p in self.__dict__.items() if name.startswith("original")]

    def __len__(self):
        return len(self.parts)

    def __iter__(self):
        return iter(self.parts)

    def __getitem__(self, index):
        return self.parts[index]

    def forward(self):
        """The parameter's value now."""
        first, *rest = self.parts
        value = first(*self._originals())
        for part in rest:
            value = part(value)
        return value

    def right_inverse(self, value):
        """Changes the originals so that forward() gives `value`. Raises ArgumentError where a part has no right_inverse."""
        for part in reversed(self.parts):
            if not hasattr(part, "right_inverse"):
                raise _error(
                    weft.ArgumentError,
                    "nn.parametrize.inverse",
                    f"a value for a parameter that {type(part).__name__} makes",
                    [f"{type(part).__name__} has no right_inverse"],
                    help="write right_inverse(value), or assign to parametrizations.NAME.original",
                )
            value = part.right_inverse(value)
        values = value if self._several else [value]
        for p, new in zip(self._originals(), values):
            p.data = weft.asarray(getattr(new, "data", new)).astype(p.dtype)


def _property(name):
    """An attribute that a module's parametrization computes, where the module has one: a class serves copies without one, too."""

    def get(self):
        if not is_parametrized(self, name):
            return self.__dict__[name]
        kept = getattr(_cache, "kept", None)
        if kept is None:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in kept:
            kept[key] = self.parametrizations[name]()
        return kept[key]

    def put(self, value):
        if is_parametrized(self, name):
            self.parametrizations[name].right_inverse(value)
        else:
            self.__dict__[name] = value

    return property(get, put)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parameters that are computed, or the one of a name."""
    held = module.__dict__.get("parametrizations", ())
    return len(held) > 0 if tensor_name is None else tensor_name in held


def register_parametrization(
    module: _M, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> _M:
    """The module, whose parameter is from now on parametrization(original); a second one takes what the first gave.

    Where the parametrization has right_inverse(value), the original is what it gives for the present value. The result has the
    parameter's shape and dtype unless `unsafe`. Raises ArgumentError for a name that is no parameter, ShapeError.
    """
    if is_parametrized(module, tensor_name):
        held = module.parametrizations[tensor_name]
        before = held()
        if hasattr(parametrization, "right_inverse"):
            held.right_inverse(parametrization.right_inverse(before))
        held.parts.append(parametrization)
        if not unsafe:
            try:
                _like(held(), before, module, tensor_name)
            except weft.Error:
                held.parts.pop()
                raise
        return module
    original = module.__dict__.get(tensor_name)
    if not isinstance(original, Parameter):
        raise _no_parameter(module, tensor_name)
    held = ParametrizationList([parametrization], original)
    if not unsafe:
        _like(held(), original, module, tensor_name)
    for p in held._originals():
        p.requires_grad = original.requires_grad
    if not is_parametrized(module):
        kind = type(module)
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), {"_plain_class": kind})
        module.parametrizations = ModuleDict()
    del module.__dict__[tensor_name]
    module.parametrizations[tensor_name] = held
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def _no_parameter(module, name):
    return _error(
        weft.ArgumentError,
        "nn.parametrize.name",
        f"{type(module).__name__} has no parameter {_shown(name)} to parametrize",
        [f"there are: {', '.join(module.named_parameters(recurse=False).keys())}"],
    )


def _like(value, wanted, module, name):
    if value.shape != wanted.shape or value.dtype != wanted.dtype:
        raise _error(
            weft.ShapeError,
            "nn.parametrize.shape",
            f"{type(module).__name__}.{name} of shape {tuple(wanted.shape)} and {wanted.dtype} becomes one of shape "
            f"{tuple(value.shape)} and {value.dtype}",
            help="return the same shape and dtype, or register it with unsafe=True",
        )


def remove_parametrizations(module: _M, tensor_name: str, leave_parametrized: bool = True) -> _M:
    """The module with a plain parameter again: of the present value, or of the original where leave_parametrized is False.

    Raises ArgumentError for a parameter that is not parametrized, or whose originals are several and shall be left.
    """
    if not is_parametrized(module, tensor_name):
        raise _error(
            weft.ArgumentError,
            "nn.parametrize.absent",
            f"{type(module).__name__}.{tensor_name} is not parametrized",
            help="register_parametrization first",
        )
    held = module.parametrizations[tensor_name]
    originals = held._originals()
    if not leave_parametrized and len(originals) > 1:
        raise _error(
            weft.ArgumentError,
            "nn.parametrize.several",
            f"the original of {type(module).__name__}.{tensor_name} is {len(originals)} tensors",
            help="leave_parametrized=True keeps the present value",
        )
    value = held().data if leave_parametrized else originals[0].data
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module.__dict__["parametrizations"]
        module.__class__ = type(module)._plain_class
    plain = Parameter(value)
    plain.requires_grad = originals[0].requires_grad
    setattr(module, tensor_name, plain)
    return module


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside, a parametrized parameter is computed once, when it is first read, in this thread."""
    before = getattr(_cache, "kept", None)
    _cache.kept = {} if before is None else before
    try:
        yield
    finally:
        _cache.kept = before


_publish(__name__)
_publish_class(ParametrizationList)
