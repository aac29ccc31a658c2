# SPDX-License-Identifier: Apache-2.0
"""Modules as functions of their parameters."""

from __future__ import annotations

import contextlib

from .. import _core
from .._core import Tensor
from .._errors import error as _error
from .._held_state import ParameterHolder


def _holders(module):
    """(container, key, tensor) wherever a tensor is kept in a module, its parts, lists and dicts."""
    seen, stack = set(), [module]
    while stack:
        holder = stack.pop()
        if id(holder) in seen:
            continue
        seen.add(id(holder))
        items = holder.__dict__ if isinstance(holder, ParameterHolder) else holder
        pairs = items.items() if isinstance(items, dict) else enumerate(items)
        for key, value in list(pairs):
            if isinstance(value, Tensor):
                yield items, key, value
            elif isinstance(value, (ParameterHolder, list, tuple, dict)):
                stack.append(value)


@contextlib.contextmanager
def lending(pairs):
    """Inside, modules have other tensors for their parameters: (module, {name: tensor}) each."""
    kept = []
    try:
        for module, values in pairs:
            named = dict(module.named_parameters())
            unknown = sorted(set(values) - set(named))
            if unknown:
                raise _error(
                    _core.ArgumentError,
                    "nn.functional_call.names",
                    f"{type(module).__name__} has no parameters {unknown}",
                    [f"there are: {', '.join(named)}"],
                )
            by_id = {id(named[name]): value for name, value in values.items()}
            for items, key, value in list(_holders(module)):
                if id(value) in by_id:
                    if isinstance(items, tuple):
                        raise _error(
                            _core.ArgumentError,
                            "nn.functional_call.tuple",
                            f"a parameter of {type(module).__name__} is kept in a tuple, where no other can stand",
                            help="keep parameters in attributes, lists or dicts",
                        )
                    kept.append((items, key, value))
                    items[key] = by_id[id(value)]
        yield
    finally:
        for items, key, value in reversed(kept):
            items[key] = value


def functional_call(module, parameters, *args, **kwargs):
    """module(*args, **kwargs) with the tensors of a dict, by name, in place of its parameters.

    One tuple of arguments, and a dict behind it, are the arguments themselves, as torch.func.functional_call takes them. Parameters that the dict
    lacks are the module's own. Other threads must not use the module meanwhile.
    Raises ArgumentError (nn.functional_call.names) for names that the module does not have.
    """
    if args and isinstance(args[0], tuple) and (len(args) == 1 or len(args) == 2 and isinstance(args[1], dict)):  # fmt: skip
        kwargs = {**args[1], **kwargs} if len(args) == 2 else kwargs
        args = args[0]
    with lending([(module, parameters)]):
        return module(*args, **kwargs)
