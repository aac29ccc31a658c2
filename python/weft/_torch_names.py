# SPDX-License-Identifier: Apache-2.0
"""PyTorch's names of arguments, dim and keepdim, beside the standard's axis and keepdims; and the axis by position, as
NumPy takes it."""

from __future__ import annotations

import functools
import inspect

from . import _core
from ._boundary import is_function as _is_function
from ._boundary import public as _public
from ._boundary import with_names as _with_names
from ._differentiating import differentiating as _differentiating
from ._errors import error as _error


def _twice(name, theirs, ours):
    return _error(
        _core.ArgumentError,
        "array.axis.twice",
        f"{name} got one argument under two names: {theirs} and {ours}",
        help=f"give one of the two, {ours}=",
    )


def _names(f):
    """PyTorch's name of each of f's arguments that has one."""
    own = inspect.signature(f).parameters
    names = {}
    if "axis" in own:
        names["dim"] = "axis"
        if f.__name__ in ("flip", "roll"):
            names["dims"] = "axis"
        if f.__name__ == "roll":
            names["shifts"] = "shift"
        if f.__name__ == "sort":
            names["descending"] = (
                "descending"  # which of tensors says that positions are meant, too
            )
    if "keepdims" in own:
        names["keepdim"] = "keepdims"
    if "correction" in own:
        names["unbiased"] = "correction"
    if f.__name__ in _PAIRS and names:
        names[""] = ""  # of tensors _renamed sees every such call
    return names


_OURS = {"axis", "keepdims", "correction"}


_PAIRS = ("max", "min", "sort")


class Dim(int):
    """An axis of a tensor in PyTorch's words, for which max, min and sort give positions, too."""


def _has_names(f):
    """Whether f has an argument that PyTorch names otherwise; told from its code, since a signature takes long to make."""
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    code = getattr(f, "__code__", None)
    return code is None or not _OURS.isdisjoint(
        code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    )


def understanding(f, name=""):
    """f, which takes PyTorch's names as well. Its signature stays the standard's."""
    if not _has_names(f):
        return f
    names, own = _names(f), inspect.signature(f).parameters
    if not names or "dim" in own:
        return f
    positional = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in own.values())
    free = "axis" in own and own["axis"].kind is inspect.Parameter.KEYWORD_ONLY
    rename = functools.partial(_renamed, name or f.__name__, names, positional if free else -1)
    return _with_names(f, names, rename, positional if free else -1)


def _renamed(name, names, positional, args, kwargs):
    """Arguments of a call under the function's own names."""
    kwargs = dict(kwargs)
    pairs = name in _PAIRS and args and hasattr(args[0], "__weft_tensor__")
    torchs = "dim" in kwargs
    if pairs and name == "sort":
        pairs = isinstance(args[0], _core.Tensor) or getattr(args[0], "_in_torchs_words", False)
        if "descending" in kwargs and len(args) == 1 and not {"axis", "dim"} & set(kwargs):
            kwargs["dim"] = -1  # the array standard's way of saying this to a tensor names the axis
            torchs = not _differentiating()
    if len(args) == positional + 1 and "axis" not in kwargs:
        *args, kwargs["axis"] = args
        torchs = torchs or "keepdims" not in kwargs and not _differentiating()
    for theirs in names.keys() & kwargs.keys():
        ours = names[theirs]
        if ours == theirs:
            continue
        if ours in kwargs:
            raise _twice(name, theirs, ours)
        kwargs[ours] = kwargs.pop(theirs)
        if theirs == "unbiased":
            kwargs[ours] = float(bool(kwargs[ours]))
    if pairs and torchs and isinstance(kwargs.get("axis"), int):
        kwargs["axis"] = Dim(kwargs["axis"])
    return tuple(args), kwargs


def understand(namespace, names, module):
    """Puts the understanding functions in place of those that have an axis."""
    for name in names:
        f = namespace[name]
        if _is_function(f):
            g = understanding(f)
            if g is not f:
                g = _public(g)
            namespace[name] = g
            if g is not f:
                g.__module__ = module
