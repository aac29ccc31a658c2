# SPDX-License-Identifier: Apache-2.0
"""How methods written in classes come to the types of the core, and what those classes share."""

from __future__ import annotations

from .. import _core
from .._boundary import is_function
from .._core import Tensor
from .._errors import error as _error
from .._pointwise import held
from .._torch_names import understanding

MOST_PARTS = 10**7  # that an axis is cut into

_OF_EVERY_CLASS = set(vars(type("_", (), {}))) | {
    "__annotations__",
    "__firstlineno__",
    "__static_attributes__",
}


def plain(x):
    """The array of a tensor, a value of a trace without gradients; anything else as it is."""
    return x.data if isinstance(x, Tensor) else held(x)


def axis_of(x, dim):
    """The axis counted from the front. Raises IndexError beyond the value's dimensions."""
    if not -x.ndim <= dim < x.ndim:
        raise _error(
            _core.IndexError,
            "tensor.dim",
            f"axis {dim} of a tensor with {x.ndim} dimensions",
            [f"legal: {-x.ndim} to {x.ndim - 1}"],
        )
    return dim % x.ndim


def filled(make, names, **options):
    """Decorates a class of methods: adds make(name) for each of the names."""

    def decorate(cls):
        for name in names.split():
            _once(cls.__name__, name, vars(cls))
            method = make(name, **options)
            method.__name__ = name
            method.__qualname__ = f"{cls.__name__}.{name}"
            setattr(cls, name, method)
        return cls

    return decorate


def also(**names):
    """Decorates a class of methods: adds second names of its methods, the second name first."""

    def decorate(cls):
        for name, first in names.items():
            _once(cls.__name__, name, vars(cls))
            setattr(cls, name, vars(cls)[first])
        return cls

    return decorate


def _once(owner, name, members):
    if name in members:
        raise _error(
            _core.ArgumentError,
            "python.method.twice",
            f"{owner} has the method {name} already",
            help="rename one of the two",
        )


def members(family):
    """Name and value of what a class of methods adds."""
    return {n: v for n, v in vars(family).items() if n not in _OF_EVERY_CLASS and n[:5] != "_abc_"}


def adopt(cls, *families, instead=()):
    """Gives a type of the core the members of classes written in Python, each once.

    A name that two families have, or that the core has and `instead` does not list, is an ArgumentError: the order of
    families never decides. PyTorch's names of axes are understood by all.
    """
    own = set(vars(cls)) - set(vars(object)) - set(instead)
    taken = {}
    for family in families:
        for name, member in members(family).items():
            _once(cls.__name__, name, own)
            _once(cls.__name__, name, taken)
            taken[name] = understanding(member) if is_function(member) else member
    for name, member in taken.items():
        setattr(cls, name, member)
