# SPDX-License-Identifier: Apache-2.0
"""vmap: a function of one example as a function of many."""

from __future__ import annotations

import functools

from .._core import shown as _shown
from .. import _core
from .._core import NDArray
from .._dispatch import Recorder, dispatching, public_functions_dispatch
from .._errors import error as _error
from . import trees
from .batched import Batched, Frame, frames, rules


def _axes_error(what, found):
    return _error(
        _core.ArgumentError,
        "vmap.axes",
        f"vmap got {what} {_shown(found)}",
        ["legal: a number, None (the same for all examples), or a tree of these that begins like the arguments' tree"],
        help="vmap(f, in_axes=(0, None)) maps the first of two arguments",
    )  # fmt: skip


def _spread(axes, structure, what):
    """One axis for each leaf: a number or None holds for the whole tree under it."""
    if axes is None or isinstance(axes, int) and not isinstance(axes, bool):
        return [axes] * structure.leaves
    if structure.kind is None:
        raise _axes_error(what, axes)
    if isinstance(axes, dict):
        given = [axes[k] for k in structure.keys if k in axes]
        fits = structure.kind is dict and set(axes) == set(structure.keys)
    else:
        given = list(axes) if isinstance(axes, (list, tuple)) else []
        fits = len(given) == len(structure.children) and structure.kind is not dict
    if not fits:
        raise _axes_error(what, axes)
    return [a for one, child in zip(given, structure.children) for a in _spread(one, child, what)]


def _enter(leaf, axis):
    """A leaf with its mapped axis in front, and that axis' extent."""
    if not isinstance(leaf, trees.ARRAYS):
        raise _error(
            _core.ArgumentError,
            "vmap.argument",
            f"vmap over axis {axis} of a {type(leaf).__name__}, which has none",
            help="in_axes=None for an argument that is the same for all examples",
        )
    if not -leaf.ndim <= axis < leaf.ndim:
        raise _error(
            _core.IndexError,
            "vmap.axis",
            f"vmap over axis {axis} of an argument of shape {tuple(leaf.shape)}",
            [f"legal: {-leaf.ndim} to {leaf.ndim - 1}"] if leaf.ndim else ["a scalar has no axis"],
            help="in_axes=None for an argument that is the same for all examples",
        )
    axis %= leaf.ndim
    if axis:
        leaf = leaf.permute((axis, *(i for i in range(leaf.ndim) if i != axis)))
    return leaf, tuple(leaf.shape)[0]


def _leave(frame, leaf, axis):
    import weft

    if axis is None:
        if frame.owns(leaf):
            raise _error(
                _core.ArgumentError,
                "vmap.out_axes",
                f"out_axes=None for a result of shape {leaf.shape} that differs from example to example",
                help="name an axis, or reduce over the examples outside of vmap",
            )
        return leaf
    if not isinstance(leaf, trees.ARRAYS):
        leaf = weft.asarray(leaf)
    if not -leaf.ndim - 1 <= axis <= leaf.ndim:
        raise _error(
            _core.IndexError,
            "vmap.axis",
            f"out_axes={axis} for results of shape {tuple(leaf.shape)}",
            [f"legal: {-leaf.ndim - 1} to {leaf.ndim}"],
        )
    axis %= leaf.ndim + 1
    value = leaf.value if frame.owns(leaf) else leaf.broadcast_to((frame.size, *leaf.shape))
    if not axis:
        return value
    order = list(range(1, value.ndim))
    order.insert(axis, 0)
    return value.permute(tuple(order))


def _function(name, f):
    if not callable(f):
        raise _error(
            "dtype",
            "transform.function",
            f"{name} takes a function, got a {type(f).__name__}",
            help=f"{name}(lambda x: ...), or {name}(f) without calling f",
        )


def vmap(f, in_axes=0, out_axes=0, *, axis_size=None, randomness="error", strict=False):
    """f, which is written for one example, for all examples along an axis of its arguments at once.

    in_axes: an axis, None (the same for all examples), or a tuple of these, one for each positional argument; trees of
    arguments take trees of axes. Keyword arguments are mapped along axis 0. out_axes: where the examples stand in the
    results. Functions without a batching rule run example after example; ``vmap(f).looped`` names those of the last
    call, and strict=True refuses them. randomness: "error", "same" or "different" for random numbers drawn inside
    without a key. Raises ArgumentError (vmap.axes, vmap.size, vmap.argument, vmap.out_axes, vmap.rule, vmap.random),
    IndexError (vmap.axis), DTypeError (vmap.value) where f needs the number in a mapped value.
    """
    _function("vmap", f)
    if randomness not in ("error", "same", "different"):
        raise _error(
            _core.ArgumentError,
            "vmap.randomness",
            f"vmap got randomness={_shown(randomness)}",
            ["legal: 'error', 'same', 'different'"],
        )

    @functools.wraps(f)
    def mapped(*args, **kwargs):
        leaves, structure = trees.flatten(list(args))
        named, named_structure = trees.flatten(kwargs)
        axes = in_axes
        if isinstance(axes, (tuple, list)):
            if len(axes) != len(args):
                raise _axes_error(f"{len(args)} positional arguments and in_axes", in_axes)
            axes = list(axes)
        places = _spread(axes, structure, "in_axes") + [0] * len(named)
        whole = {}  # modules that are the same for all examples stay modules
        for i, a in enumerate(args):
            if structure.children[i].module is not None:
                one = axes[i] if isinstance(axes, list) else axes
                if one is not None:
                    raise _error(
                        _core.ArgumentError,
                        "vmap.module",
                        f"vmap over the parameters of a {type(a).__name__}",
                        help="in_axes=None for it, or weft.functional_call(module, parameters, x) with stacked parameters",
                    )
                whole[i] = a
        entered, sizes = [], {} if axis_size is None else {axis_size: "axis_size"}
        for k, (leaf, axis) in enumerate(zip(leaves + named, places)):
            if axis is None:
                entered.append(leaf)
                continue
            leaf, size = _enter(leaf, axis)
            sizes.setdefault(size, f"leaf {k} of the arguments")
            entered.append((leaf,))
        if len(sizes) != 1:
            found = ", ".join(f"{n} ({where})" for n, where in sizes.items())
            raise _error(
                _core.ShapeError if sizes else _core.ArgumentError,
                "vmap.size",
                f"vmap over axes of different extents: {found}" if sizes else "vmap over no argument",
                help="map axes of one extent" if sizes else "give one axis in in_axes, or axis_size=",
            )  # fmt: skip
        (size,) = sizes
        rules.load()
        level = frames()[-1].level + 1 if frames() else 0
        with public_functions_dispatch(), Frame(size, level, randomness, strict) as frame:
            entered = [Batched(e[0], frame) if isinstance(e, tuple) else e for e in entered]
            own = trees.unflatten(structure, entered[: len(leaves)])
            own = [whole.get(i, a) for i, a in enumerate(own)]
            out = dispatching(f)(*own, **trees.unflatten(named_structure, entered[len(leaves) :]))
            mapped.looped = frozenset(frame.looped)
            for module in whole.values():
                _unharmed(module, frame)
            results, result_structure = trees.flatten(out)
            places = _spread(out_axes, result_structure, "out_axes")
            results = [_leave(frame, r, a) for r, a in zip(results, places)]
        return trees.unflatten(result_structure, results)

    mapped.looped = frozenset()
    return mapped


vmap.__weft_transform__ = True


def _unharmed(module, frame):
    """Refuses a module whose own arrays became batched values: batch norm that trains inside vmap."""
    for part in module.modules():
        for name, value in part.__dict__.items():
            if isinstance(value, Recorder) and not isinstance(value, NDArray):
                raise _error(
                    _core.ArgumentError,
                    "vmap.state",
                    f"{type(part).__name__}.{name} became another value for each of {frame.size} examples",
                    help="call module.eval(), or use a layer without running statistics (GroupNorm, LayerNorm)",
                )
