# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions."""

from __future__ import annotations

import functools

from ._core import ArgumentError, Tensor, gradients
from ._errors import error as _error


def value_and_grad(f, argnums=0):
    """A function that gives f's value and its gradient with respect to some positional arguments."""
    several = not isinstance(argnums, int)
    places = tuple(argnums) if several else (argnums,)

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        args = list(args)
        wanted = []
        for i in places:
            a = args[i]
            # A linked tensor stays linked: gradients of gradients go through it.
            t = a if isinstance(a, Tensor) and a.requires_grad else Tensor(a)
            args[i] = t
            wanted.append(t)
        out = f(*args, **kwargs)
        if not isinstance(out, Tensor) or out.size != 1:
            shape = getattr(out, "shape", None)
            raise _error(
                ArgumentError,
                "array.grad.scalar",
                f"grad needs a function with one number as result, got shape {shape}",
            )
        gs = gradients([out], wanted, True)
        return out, (tuple(gs) if several else gs[0])

    return wrapped


def grad(f, argnums=0):
    """The gradient function of f; grad(grad(f)) is its second derivative."""
    both = value_and_grad(f, argnums)

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        return both(*args, **kwargs)[1]

    return wrapped
