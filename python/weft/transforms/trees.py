# SPDX-License-Identifier: Apache-2.0
"""Trees of arrays: tuples, lists, dicts, named tuples and the parameters of modules."""

from __future__ import annotations

from .._core import shown as _shown
from .. import _core
from .._core import NDArray, Tensor
from .._dispatch import Recorder
from .._errors import error as _error
from .._held_state import ParameterHolder

ARRAYS = (NDArray, Tensor, Recorder)
_DEPTH = 200
_LEAVES = 1 << 17


class Structure:
    """The shape of a tree: what stands where its leaves were."""

    __slots__ = ("kind", "keys", "children", "module")

    def __init__(self, kind, keys=(), children=(), module=None):
        self.kind, self.keys, self.children, self.module = kind, keys, children, module

    @property
    def leaves(self):
        return 1 if self.kind is None else sum(c.leaves for c in self.children)

    def __eq__(self, other):
        return (
            isinstance(other, Structure)
            and (self.kind, self.keys, self.children) == (other.kind, other.keys, other.children)
            and self.module is other.module
        )

    def __hash__(self):
        return hash((self.kind, self.keys, tuple(map(hash, self.children)), id(self.module)))

    def __repr__(self):
        if self.kind is None:
            return "*"
        if self.kind is dict or self.module is not None:
            inside = ", ".join(f"{k!r}: {c!r}" for k, c in zip(self.keys, self.children))
            return "{" + inside + "}"
        inside = ", ".join(map(repr, self.children))
        return f"[{inside}]" if self.kind is list else f"({inside})"


_LEAF = Structure(None)


def sorted_keys(tree):
    """The keys of a dict in order, so that dicts of one content are one structure."""
    try:
        return tuple(sorted(tree.keys()))
    except TypeError:
        return tuple(tree.keys())


def _parts(tree):
    """(kind, keys, values, module) of an inner node, None of a leaf."""
    if tree is None:
        return tuple, (), (), None
    if isinstance(tree, dict):
        keys = sorted_keys(tree)
        return dict, keys, [tree[k] for k in keys], None
    if isinstance(tree, (list, tuple)):
        parts = [part for part in tree]  # noqa: C416  (list() makes room for as many as its length says)
        return type(tree), tuple(range(len(parts))), parts, None
    if isinstance(tree, ParameterHolder):
        named = dict(tree.named_parameters())
        return type(tree), tuple(named), list(named.values()), tree
    return None


def flatten(tree):
    """(leaves, structure). Raises ArgumentError for nests deeper than 200, such as a list that holds itself."""
    leaves = []

    def walk(node, depth):
        if depth > _DEPTH:
            raise _error(
                _core.ArgumentError,
                "transform.tree.depth",
                f"a tree of arguments is nested more than {_DEPTH} deep",
                help="a list that contains itself is no tree; pass its parts",
            )
        parts = _parts(node)
        if parts is None:
            if len(leaves) == _LEAVES:
                raise _error(
                    _core.ArgumentError,
                    "transform.tree.leaves",
                    f"a tree of arguments has more than {_LEAVES} leaves",
                    help="stack what belongs together into arrays; a list that stands in many places counts in each",
                )
            leaves.append(node)
            return _LEAF
        kind, keys, values, module = parts
        inside = tuple(walk(v, depth + 1) for v in values)
        # None is a tree without leaves; its kind keeps it apart from the empty tuple.
        return Structure(type(None) if node is None else kind, keys, inside, module)

    return leaves, walk(tree, 0)


def unflatten(structure, leaves):
    """The tree of a structure with other leaves. A module becomes the dict of its parameters."""
    rest = iter(leaves)

    def build(s):
        if s.kind is None:
            return next(rest)
        values = [build(c) for c in s.children]
        if s.kind is type(None):
            return None
        if s.kind is dict or s.module is not None:
            return dict(zip(s.keys, values))
        return s.kind(*values) if hasattr(s.kind, "_fields") else s.kind(values)

    return build(structure)


def tree_map(f, tree, *rest):
    """f of the leaves of trees of one structure, as such a tree."""
    leaves, structure = flatten(tree)
    others = []
    for other in rest:
        found, its = flatten(other)
        if its != structure:
            raise mismatch("tree_map", structure, its)
        others.append(found)
    return unflatten(structure, [f(*xs) for xs in zip(leaves, *others)])


def mismatch(name, wanted, found):
    """The error for a tree of another structure."""
    return _error(
        _core.ArgumentError,
        "transform.tree.structure",
        f"{name} got a tree of the structure {_shown(found)}, where {_shown(wanted)} is needed",
        help="use the same nesting of tuples, lists and dicts for both",
    )


def as_arrays(leaves):
    """Numbers among leaves as arrays, of the type and on the device of the first array of floats beside them."""
    like = next((x for x in leaves if isinstance(x, ARRAYS) and x.dtype.kind == "f"), None)
    dtype, device = (None, None) if like is None else (like.dtype, like.device)
    return [x if isinstance(x, ARRAYS) else _core._asarray(x, dtype, device, None) for x in leaves]
