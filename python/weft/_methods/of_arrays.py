# SPDX-License-Identifier: Apache-2.0
"""Methods of tensors for arrays: what PyTorch's users expect of a value and NumPy has no meaning of its own for."""

from __future__ import annotations

import functools

from .._boundary import is_function
from .._core import NDArray, Tensor
from .._dispatch import first_leaf, mapped
from .tools import members

_TREES = (list, tuple, dict, slice)


def _as_given(out, args, kwargs):
    """The result of a function of tensors: arrays in their place, unless a tensor is among the arguments."""
    for x in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(x, Tensor) or (isinstance(x, _TREES) and first_leaf(x, Tensor) is not None):
            return out
    return out.data if isinstance(out, Tensor) else mapped(out, Tensor, lambda t: t.data)


def on_arrays(method):
    """A method or function of a tensor that takes an array: an array comes back, unless a tensor takes part."""
    if hasattr(method, "__weft_direct__"):  # it takes either
        return method

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        out = method(Tensor(self, requires_grad=False), *args, **kwargs)
        return _as_given(out, args, kwargs)

    return call


def constant(x):
    """An array of floats as a tensor without gradient; anything else as it is: positions and masks stay arrays."""
    return Tensor(x, requires_grad=False) if _of_floats(x) else x


def _of_floats(x):
    return isinstance(x, NDArray) and x.dtype.kind in "fc"


def taking_arrays(function):
    """A function of tensors that takes arrays of floats for any of them: arrays come back, unless a tensor takes part."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        given, named, found = [], kwargs, False
        for x in args:
            if isinstance(x, NDArray) and x.dtype.kind in "fc":
                x, found = Tensor(x, requires_grad=False), True
            given.append(x)
        if kwargs:
            named = {k: constant(v) for k, v in kwargs.items()}
            found = found or any(named[k] is not v for k, v in kwargs.items())
        if not found:
            return function(*args, **kwargs)
        return _as_given(function(*given, **named), args, kwargs)

    return call


# About the graph of a tensor, or with a meaning of NumPy's own.
_OF_TENSORS_ALONE = {"requires_grad_", "contiguous"}


def shared(families, own):
    """A class of the methods of tensors that arrays lack: neither the core's type nor the classes in `own` have them."""
    taken = set(dir(NDArray)) | {n for family in own for n in members(family)}
    found = {
        name: on_arrays(member)
        for family in families
        for name, member in members(family).items()
        if is_function(member) and name[:2] != "__" and name not in taken | _OF_TENSORS_ALONE
    }
    return type("Shared", (), {"__doc__": "Methods of tensors, of arrays.", **found})
