# SPDX-License-Identifier: Apache-2.0
"""Functions of functions by the path that programs of PyTorch import them from: torch.func."""

from __future__ import annotations

import functools

from ._boundary import public as _public
from .transforms import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
    "vmap",
]


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives (gradient, value) of func, one number; with has_aux (gradient, (value, aux))."""
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return call


grad_and_value = _public(grad_and_value)
