# SPDX-License-Identifier: Apache-2.0
"""Matrices of derivatives: the pull or the push of a function, mapped over a basis."""

from __future__ import annotations

import functools

from . import trees
from .reverse import _callable, _linearized, _places, vjp
from .vectorize import vmap


def _basis(leaves):
    """For each leaf the unit vectors of all leaves in a row: shape (count, *leaf's shape)."""
    import weft

    count = sum(x.size for x in leaves)
    out, at = [], 0
    for x in leaves:
        one = weft.eye(count, x.size, k=-at, dtype=x.dtype, device=x.device)
        out.append(one.reshape((count, *x.shape)))
        at += x.size
    return out


def _cut(x, leaves, front):
    """One array over the whole basis as one for each leaf; `front`: the basis' axes stand in front."""
    out, at = [], 0
    for leaf in leaves:
        part = x[at : at + leaf.size] if front else x[..., at : at + leaf.size]
        shape = tuple(part.shape)
        out.append(part.reshape((*leaf.shape, *shape[1:]) if front else (*shape[:-1], *leaf.shape)))
        at += leaf.size
    return out


def _over(f, args, kwargs, argnums, name):
    several, places = _places(argnums, len(args), name)

    def chosen(*values):
        own = list(args)
        for p, v in zip(places, values):
            own[p] = v
        return f(*own, **kwargs)

    return chosen, [args[p] for p in places], several


def jacrev(f, argnums=0, has_aux=False):
    """The Jacobian function of f by backward passes, one for each element of the result, all at once.

    The result is a tree like f's of trees like the argument's; an entry has the shape (*result, *argument).
    Best where f has fewer results than arguments. With has_aux: (jacobian, aux).
    """
    _callable(f, "jacrev")

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        chosen, primals, several = _over(f, args, kwargs, argnums, "jacrev")
        value, pull, *aux = vjp(chosen, *primals, has_aux=has_aux)
        leaves, structure = trees.flatten(value)
        seeds = trees.unflatten(structure, _basis(leaves))
        found = vmap(pull, randomness="same")(seeds)
        found, inner = trees.flatten(found if several else found[0])
        columns = [_cut(x, leaves, True) for x in found]
        out = trees.unflatten(structure, [trees.unflatten(inner, row) for row in zip(*columns)])
        return (out, aux[0]) if has_aux else out

    return wrapped


def jacfwd(f, argnums=0, has_aux=False):
    """The Jacobian function of f by forward derivatives, one for each element of the argument, all at once.

    The shape is jacrev's. Best where f has fewer arguments than results.
    """
    _callable(f, "jacfwd")

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        chosen, primals, several = _over(f, args, kwargs, argnums, "jacfwd")
        value, push, aux = _linearized(chosen, primals, "jacfwd", has_aux)
        leaves, structure = trees.flatten(primals)
        leaves = trees.as_arrays(leaves)
        basis = trees.unflatten(structure, _basis(leaves))
        found, outer = trees.flatten(vmap(push, out_axes=-1, randomness="same")(*basis))
        rows = []
        for x in found:
            tree = trees.unflatten(structure, _cut(x, leaves, False))
            rows.append(tuple(tree) if several else tree[0])
        out = trees.unflatten(outer, rows)
        return (out, aux) if has_aux else out

    return wrapped


jacobian = jacrev


def hessian(f, argnums=0, has_aux=False):
    """The second derivatives of f: jacfwd(jacrev(f)), with the shape (*result, *argument, *argument)."""
    _callable(f, "hessian")
    return jacfwd(jacrev(f, argnums, has_aux), argnums, has_aux)
