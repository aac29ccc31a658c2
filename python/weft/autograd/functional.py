# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions with PyTorch's order of arguments, torch.autograd.functional: weft.autograd.functional."""

from __future__ import annotations

import weft

from .._boundary import publish as _publish
from .._core import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _inputs(inputs):
    several = isinstance(inputs, (tuple, list))
    return several, tuple(x.data if isinstance(x, Tensor) else x for x in (inputs if several else (inputs,)))  # fmt: skip


def _linked(tree):
    """Tensors in place of arrays, as PyTorch's functions give."""
    return weft.tree_map(
        lambda x: x if isinstance(x, Tensor) else Tensor(x, requires_grad=False), tree
    )


def _directions(v, values):
    if v is None:
        return tuple(weft.ones_like(x) for x in values)
    return _inputs(v)[1]


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):  # fmt: skip
    """The matrix of first derivatives of func(*inputs), of shape (*result, *input); a tuple for several inputs."""
    several, values = _inputs(inputs)
    matrix = weft.jacfwd if strategy == "forward-mode" else weft.jacrev
    found = matrix(func, argnums=tuple(range(len(values))) if several else 0)(*_kept(inputs, values, create_graph))  # fmt: skip
    return _linked(found)


def _kept(inputs, values, create_graph):
    """With create_graph the inputs themselves, whose graph the result is part of."""
    if not create_graph:
        return values
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):  # fmt: skip
    """The matrix of second derivatives of one number func(*inputs)."""
    several, values = _inputs(inputs)
    found = weft.hessian(func, argnums=tuple(range(len(values))) if several else 0)(*_kept(inputs, values, create_graph))  # fmt: skip
    return _linked(found)


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the gradients for the results' gradients v)."""
    several, values = _inputs(inputs)
    out, pull = weft.vjp(func, *_kept(inputs, values, create_graph))
    seeds = weft.tree_map(weft.ones_like, out) if v is None else weft.tree_map(lambda x: x, v)
    found = pull(seeds)
    return _linked(out), _linked(found if several else found[0])


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), its derivative along v)."""
    _, values = _inputs(inputs)
    out, along = weft.jvp(func, _kept(inputs, values, create_graph), _directions(v, values))
    return _linked(out), _linked(along)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the matrix of second derivatives times v), func giving one number."""
    several, values = _inputs(inputs)
    places = tuple(range(len(values)))
    gradient = weft.grad(func, argnums=places)
    own = _kept(inputs, values, create_graph)
    _, found = weft.jvp(gradient, own, _directions(v, values))
    return _linked(func(*own)), _linked(found if several else found[0])


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the matrix of second derivatives): as hvp, since the matrix is symmetric."""
    return hvp(func, inputs, v, create_graph, strict)


_publish(__name__)
