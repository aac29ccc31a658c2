# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy and PyTorch that are composed of those of the array standard, so that every device, gradients,
weft.compile and weft.vmap have them. A module holds each family; `functions` are those of the main namespace."""

from __future__ import annotations

import inspect

from .. import _core
from .._boundary import public, with_names
from .._dispatch import _wrapper
from .._torch_names import understanding
from . import (
    distances,
    distributions,
    draws,
    elementwise,
    indices,
    joining,
    matrices,
    names,
    operations,
    sets,
    signals,
    quantiles,
    statistics,
)

# Under transforms they run on arrays as they are: what they return depends on ranks.
_WHOLE = ("lstsq",)

__all__ = ["distributions", "functions", "matrices", "operations", "published", "sized"]


def published(function):
    """As callers see it: PyTorch's names of axes, weft's errors; traced and batched values go through it."""
    several = function.__code__.co_flags & inspect.CO_VARARGS
    out = public(function if several else understanding(function))
    out.__weft_transform__ = True
    out.__module__ = "weft"
    return out


def _sized(args, kwargs):
    """A call with size= beside shape=, which is NumPy's name of gamma's parameter."""
    kwargs = dict(kwargs)
    if "shape" in kwargs and "size" in kwargs:
        kwargs["shape_parameter"] = kwargs.pop("shape")
    if "size" in kwargs:
        kwargs["shape"] = kwargs.pop("size")
    return args, kwargs


def sized(function):
    """A distribution that takes NumPy's size= for its shape, too."""
    if "shape" not in function.__wrapped__.__code__.co_varnames:
        return function
    out = with_names(function, {"size": "shape"}, _sized, -1)
    out.__weft_transform__ = True
    return out


def _main():
    import weft

    found = {}
    for module in (
        distances,
        draws,
        elementwise,
        indices,
        joining,
        names,
        sets,
        signals,
        quantiles,
        statistics,
    ):
        found.update({name: published(getattr(module, name)) for name in module.__all__})
    found.update({name: getattr(weft, first) for name, first in names.SAME.items()})
    found.update({name: getattr(weft.linalg, name) for name in ("matrix_power", "slogdet")})
    found["svd"] = published(matrices.svd)
    return found


def _attach(module, family):
    for name in family.__all__:
        own = published(getattr(family, name))
        own = sized(own) if family is distributions else own
        if name in _WHOLE:
            own = _wrapper(name, own, False)
            own.__weft_transform__ = True
        own.__module__ = module.__name__
        setattr(module, name, own)
        if hasattr(module, "__all__"):
            module.__all__.append(name)


def _attached():
    import weft

    _attach(weft.linalg, matrices)
    _attach(weft.random, distributions)


_attached()
functions = _main()
for _name in ("gcd", "lcm", "fmax", "fmin", "logaddexp2", "float_power", "heaviside", "ldexp"):
    if isinstance(functions.get(_name), _core.PublicFunction):
        operations.give_methods(functions[_name])
