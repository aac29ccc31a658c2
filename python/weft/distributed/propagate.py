# SPDX-License-Identifier: Apache-2.0
"""Operations on sharded arrays: the placements of the operands decide those of the result and the collectives.

Every operation is described by labels, one for each axis of an operand and of the result, as in einsum. Along each axis of the mesh there are few ways to
share the work: all ranks take a part of one label, or one operand is a partial sum, or all ranks do the same. The way that moves the fewest bytes wins; of equal
ones that which divides the work.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import weft

from .._core import shown
from .._errors import error
from .mesh import Partial, Replicate, Shard, ShardedArray, shard


@dataclasses.dataclass(frozen=True)
class Labels:
    """An operation's axes by letters.

    `whole`: letters that no rank may have a part of. `sums`: letters that the result lacks are added up. `linear`: the operands (by number) in each of which
    the operation is linear by itself, as a product is. `adds`: it is linear in all of them together, as a sum is.
    """

    operands: tuple
    result: str
    whole: str = ""
    sums: bool = True
    linear: tuple = ()
    adds: bool = False


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LINEAR = ("none", "each", "first", "together")


def _refuse(name, arrays, legal):
    return error(
        weft.ShapeError,
        "distributed.operands",
        f"{name} of {', '.join(map(repr, arrays))}",
        [f"legal: {legal}"],
    )


def _ways(labels):
    """(placements of the operands, placement of the result, whether the work is divided) along one axis of the mesh."""
    letters = sorted(set("".join(labels.operands)) - set(labels.whole))
    for letter in letters:
        if letter not in labels.result and not labels.sums:
            continue
        given = [Shard(t.index(letter)) if letter in t else Replicate() for t in labels.operands]
        result = Shard(labels.result.index(letter)) if letter in labels.result else Partial()
        yield given, result, True
    if labels.adds:
        yield [Partial()] * len(labels.operands), Partial(), False
    for i in labels.linear:
        given = [Replicate()] * len(labels.operands)
        given[i] = Partial()
        yield given, Partial(), False
    yield [Replicate()] * len(labels.operands), Replicate(), False


def _moved(now, then, count, ranks):
    """Elements that a rank receives when an array of `count` elements changes its placement."""
    share = count * (ranks - 1) / ranks
    if now == then or isinstance(now, Replicate):
        return 0.0
    if isinstance(now, Partial):
        return share if isinstance(then, Shard) else 2 * share
    return share


def _divides(given, arrays, i, mesh):
    """Whether the ranks share the axes evenly."""
    for p, a in zip(given, arrays):
        if isinstance(p, Shard):
            parts = mesh.shape[i]
            for j, other in enumerate(a.placements):
                if j != i and other == p:
                    parts *= mesh.shape[j]
            if a.shape[p.axis] % parts:
                return False
    return True


def _chosen(labels, arrays):
    """The placements that each operand gets, and those of the result."""
    mesh = arrays[0].mesh
    wanted, result = [[] for _ in arrays], []
    for i, ranks in enumerate(mesh.shape):
        best = None
        for given, out, divided in _ways(labels):
            if not _divides(given, arrays, i, mesh):
                continue
            moved = sum(
                _moved(a.placements[i], p, math.prod(a.shape), ranks) for a, p in zip(arrays, given)
            )
            cost = (moved, not divided, isinstance(out, Partial))
            if best is None or cost < best[0]:
                best = cost, given, out
        for held, p in zip(wanted, best[1]):
            held.append(p)
        result.append(best[2])
    return wanted, result


def run(name: Any, labels: Any, arrays: Any, compute: Any, shape: Any = None) -> Any:
    """The result of `compute(local arrays...)` as a ShardedArray, after the operands were redistributed.

    Raises ShapeError `distributed.operands` for arrays of several meshes, ranks or extents that do not fit the labels.
    """
    size = {}
    for text, a in zip(labels.operands, arrays):
        fits = isinstance(a, ShardedArray) and len(text) == len(a.shape) and a.mesh is arrays[0].mesh  # fmt: skip
        if not fits or any(size.setdefault(c, n) != n for c, n in zip(text, a.shape)):
            spec = ",".join(labels.operands) + "->" + labels.result
            raise _refuse(name, arrays, f"arrays on one mesh with equal extents for equal letters of {spec}")  # fmt: skip
    wanted, result = _chosen(labels, arrays)
    local = [a.redistribute(p).local for a, p in zip(arrays, wanted)]
    shape = [size[c] for c in labels.result] if shape is None else shape
    return ShardedArray(compute(*local), arrays[0].mesh, result, shape)


def _parsed(spec, arrays):
    text = spec.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = tuple(left.split(","))
    simple = all(c.isalpha() for c in left.replace(",", "") + right)
    once = all(len(set(t)) == len(t) for t in (*terms, right))
    if not (arrow and simple and once and set(right) <= set(left) and len(terms) == len(arrays)):
        raise _refuse(f"einsum({shown(spec)})", arrays, '"ij,jk->ik": one term for each array, each letter once in it, and "->"')  # fmt: skip
    return terms, right


def einsum(spec: str, *arrays: Any) -> Any:
    """weft.einsum of sharded arrays: einsum("bik,bkj->bij", a, b). The result's placements follow from those of the arrays.

    A summed letter that the ranks share gives Partial sums, which redistribute() or full() add up. Raises ShapeError `distributed.operands`.
    """
    terms, right = _parsed(spec, arrays)
    labels = Labels(terms, right, linear=tuple(range(len(terms))))
    return run("einsum", labels, arrays, lambda *x: weft.einsum(spec, *x))


def matmul(a: Any, b: Any) -> Any:
    """The product of two sharded matrices, with the collectives that their placements ask for.

    Along each axis of the mesh: rows of a sharded give rows of the result sharded, columns of b sharded columns; the summed extent sharded in both gives
    Partial sums, which redistribute() adds up. Other pairs are redistributed first, so that the fewest bytes move. Raises ShapeError `distributed.matmul`.
    """
    both = isinstance(a, ShardedArray) and isinstance(b, ShardedArray)
    if (
        not both
        or a.mesh is not b.mesh
        or len(a.shape) != 2
        or len(b.shape) != 2
        or a.shape[1] != b.shape[0]
    ):
        raise error(
            weft.ShapeError,
            "distributed.matmul",
            f"a product of {shown(a)} and {shown(b)}",
            ["legal: two matrices on one mesh, with equal inner extents"],
        )
    return run("matmul", Labels(("ij", "jk"), "ik", linear=(0, 1)), [a, b], lambda x, y: x @ y)


def _broadcast_labels(arrays):
    """(terms, letters of the result, letters that stay whole) of element-wise operands: axes are aligned at the end."""
    n = max(len(a.shape) for a in arrays)
    letters = _LETTERS[:n]
    shape = [1] * n
    for a in arrays:
        for i, extent in enumerate(a.shape, n - len(a.shape)):
            if extent != 1 and shape[i] not in (1, extent):
                raise _refuse("an element-wise operation", arrays, "shapes that broadcast")
            shape[i] = extent if extent != 1 else shape[i]
    terms, whole = [], ""
    for a in arrays:
        term = ""
        for i, extent in enumerate(a.shape, n - len(a.shape)):
            if extent == shape[i]:
                term += letters[i]
            else:  # repeated along the axis: a letter of its own
                whole += _LETTERS[n + len(whole)]
                term += whole[-1]
        terms.append(term)
    return tuple(terms), letters, whole, shape


def elementwise(f: Callable[..., Any], *arrays: Any, linear: str = "none") -> Any:
    """f(local arrays...) for a function that works element by element, with broadcasting: elementwise(weft.exp, a).

    `linear`: "none"; "each" where f is linear in each array by itself, as a product is; "first" in the first one only, as a quotient is; "together" as a
    sum is. Partial sums of arrays under which f is not linear are added up first. Raises ShapeError `distributed.operands`, ArgumentError
    `distributed.linear`.
    """
    if linear not in _LINEAR:
        raise error(
            weft.ArgumentError,
            "distributed.linear",
            f"an element-wise operation that is linear {shown(linear)}",
            [f"legal: {', '.join(_LINEAR)}"],
        )
    if not arrays or not all(isinstance(a, ShardedArray) for a in arrays):
        raise _refuse("an element-wise operation", arrays, "sharded arrays: dist.shard(x, mesh, placements) makes one")  # fmt: skip
    terms, result, whole, shape = _broadcast_labels(arrays)
    each = {"each": tuple(range(len(arrays))), "first": (0,)}.get(linear, ())
    labels = Labels(terms, result, whole, False, each, linear == "together")
    return run("an element-wise operation", labels, arrays, f, shape)


def binary(f: Callable[..., Any], linear: Any, a: Any, b: Any) -> Any:
    """a + b and the like, for an array and an array or a number."""
    if isinstance(b, ShardedArray):
        return elementwise(f, a, b, linear=linear)
    # A plain number takes the array's type where that holds it, as it does beside an array of one device.
    plain = isinstance(b, (bool, int, float, complex))
    other = weft.asarray(b, dtype=weft.result_type(a.dtype, b)) if plain else weft.asarray(b)
    number = shard(other.to(a.device), a.mesh, [Replicate()] * len(a.mesh.shape))
    return elementwise(f, a, number, linear=linear)


def reduction(name: Any, array: Any, axes: Any = None, keepdims: bool = False) -> Any:
    """sum, mean, max, min or prod over axes (all without): a shared axis gives Partial sums, or is combined at once for the other three.

    Raises ArgumentError `distributed.placement` for axes that the array lacks.
    """
    n = len(array.shape)
    axes = tuple(range(n)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    if not all(isinstance(a, int) and -n <= a < n for a in axes):
        raise error(
            weft.ArgumentError,
            "distributed.placement",
            f"{name} over the axes {axes} of an array of {n} axes",
            [f"legal: -{n} to {n - 1}"],
        )
    axes = tuple(sorted({a % n for a in axes}))
    letters = _LETTERS[:n]
    kept = "".join(c for i, c in enumerate(letters) if i not in axes)
    if name in ("sum", "mean"):
        labels = Labels((letters,), kept, linear=(0,))
        out = run(name, labels, [array], lambda x: weft.sum(x, axis=axes))
        if name == "mean":
            out = out.scaled(1.0 / math.prod(array.shape[i] for i in axes))
    else:
        out = _combined(name, array, letters, kept, axes)
    if not keepdims:
        return out
    at = [i for i in range(n) if i not in axes]
    places = [Shard(at[p.axis]) if isinstance(p, Shard) else p for p in out.placements]
    shape = [1 if i in axes else extent for i, extent in enumerate(array.shape)]
    local = out.local
    for i in axes:
        local = weft.expand_dims(local, i)
    return ShardedArray(local, out.mesh, places, shape)


def _combined(name, array, letters, kept, axes):
    """max, min, prod: parts of the ranks are combined by the same function."""
    from .collectives import all_reduce

    whole = array.redistribute([Replicate() if isinstance(p, Partial) else p for p in array.placements])  # fmt: skip
    local = getattr(weft, name)(whole.local, axis=axes)
    places = []
    for i, p in enumerate(whole.placements):
        if isinstance(p, Shard) and p.axis in axes:
            local = all_reduce(local, name, whole.mesh._groups[i])
            p = Replicate()
        elif isinstance(p, Shard):
            p = Shard(kept.index(letters[p.axis]))
        places.append(p)
    return ShardedArray(local, whole.mesh, places, [array.shape[letters.index(c)] for c in kept])


class MeshProgram:
    """A tensor program over a mesh: each rank runs it on its parts.

        matmul = dist.MeshProgram(make, "ik,kj->ij", target="cpu")   # make(shape of a, shape of b) returns the program for these shapes
        c = matmul(a, b)                                             # ShardedArrays

    The spec gives the axes of the operands and of the result as einsum does; letters that the result lacks are summed by the program. `whole`: letters of
    which no rank may have a part (the axis of a softmax). `linear=False`: the program is not linear in its operands, so that partial sums are added up
    before it and only letters of the result are shared. The program's parameters are the operands and then the result. Raises ShapeError
    `distributed.operands`.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        spec: str,
        target: str = "cpu",
        dtype: str = "float32",
        whole: str = "",
        linear: bool = True,
    ) -> None:
        left, arrow, right = spec.replace(" ", "").partition("->")
        terms = tuple(left.split(","))
        if not arrow or not set(right) <= set(left) or not set(whole) <= set(left):
            raise _refuse(f"a program of {shown(spec)} with whole={shown(whole)}", (), '"ik,kj->ij", with letters of the operands')  # fmt: skip
        each = tuple(range(len(terms))) if linear else ()
        self._labels = Labels(terms, right, whole, linear, each)
        self._make, self._target, self._dtype, self._built = make, target, dtype, {}

    def __call__(self, *arrays: Any) -> Any:
        if len(arrays) != len(self._labels.operands):
            raise _refuse("a program", arrays, f"{len(self._labels.operands)} arrays")
        return run("a program", self._labels, arrays, self._local)

    def _local(self, *parts):
        shapes = tuple(tuple(p.shape) for p in parts)
        if shapes not in self._built:
            module = weft.build(self._make(*shapes), target=self._target)
            self._built[shapes] = module
        size = {c: n for t, s in zip(self._labels.operands, shapes) for c, n in zip(t, s)}
        shape = tuple(size[c] for c in self._labels.result)
        out = weft.empty(shape, dtype=getattr(weft, self._dtype), device=parts[0].device)
        self._built[shapes](*[p if p.is_compact() else p.copy() for p in parts], out)
        return out
