# SPDX-License-Identifier: Apache-2.0
"""Arguments of a compiled function: the arrays among them, and what is part of a trace's key."""

from __future__ import annotations

from ._core import NDArray, Tensor
from .transforms import trees


def flatten_arguments(args):
    """Arrays among the arguments, and a function that puts others in their place."""
    leaves, template = [], []
    for a in args:
        if isinstance(a, (NDArray, Tensor)):
            template.append(len(leaves))
            leaves.append(a)
        elif isinstance(a, (tuple, list)):
            inner, rebuild = flatten_arguments(a)
            kind = type(a)
            make = (lambda v, kind=kind: kind(*v)) if hasattr(kind, "_fields") else kind
            template.append((len(leaves), len(inner), rebuild, make))
            leaves.extend(inner)
        elif isinstance(a, dict):
            keys = trees.sorted_keys(a)
            inner, rebuild = flatten_arguments([a[k] for k in keys])
            make = lambda v, keys=keys: dict(zip(keys, v))  # noqa: E731
            template.append((len(leaves), len(inner), rebuild, make))
            leaves.extend(inner)
        else:
            template.append((a,))

    def rebuild(values):
        out = []
        for t in template:
            if isinstance(t, int):
                out.append(values[t])
            elif len(t) == 1:
                out.append(t[0])
            else:
                start, count, inner, kind = t
                out.append(kind(inner(values[start : start + count])))
        return out

    return leaves, rebuild


def static_arguments(args):
    """The arguments that are not arrays, as part of a key."""
    return tuple(
        ("array",)
        if isinstance(a, (NDArray, Tensor))
        else (type(a), static_arguments(a))
        if isinstance(a, (tuple, list))
        else (dict, trees.sorted_keys(a), static_arguments([a[k] for k in trees.sorted_keys(a)]))
        if isinstance(a, dict)
        else (type(a), a)
        for a in args
    )
