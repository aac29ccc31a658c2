# SPDX-License-Identifier: Apache-2.0
"""Meshes of ranks, placements of arrays on them, and products that get their collectives from the placements."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import weft

from .._core import shown
from .._errors import error
from .collectives import all_gather, all_reduce, reduce_scatter
from .group import job, new_group


@dataclasses.dataclass(frozen=True)
class Shard:
    """Along one axis of the mesh, each rank has a part of `axis` of the array."""

    axis: int


@dataclasses.dataclass(frozen=True)
class Replicate:
    """Along one axis of the mesh, every rank has the whole array."""


@dataclasses.dataclass(frozen=True)
class Partial:
    """Along one axis of the mesh, the array is the sum of what the ranks have."""


class Mesh:
    """The ranks of the job as a grid: Mesh((2, 4), ("data", "model")) has eight, the last axis fastest.

    Every rank of the job makes it, in the same order as other groups. Raises ArgumentError `distributed.mesh` where the extents do not multiply
    to the number of ranks or names repeat.
    """

    def __init__(self, shape: Sequence[int], names: Sequence[str] | None = None) -> None:
        world = job().world
        self.shape = tuple(int(n) for n in ((shape,) if isinstance(shape, int) else shape))
        self.names = tuple(names or (f"axis{i}" for i in range(len(self.shape))))
        unequal = len(self.names) != len(self.shape) or len(set(self.names)) != len(self.names)
        if math.prod(self.shape) != world.size or min(self.shape, default=1) < 1 or unequal:
            raise error(
                weft.ArgumentError,
                "distributed.mesh",
                f"a mesh of {self.shape} with the axes {self.names} for {world.size} ranks",
                [f"legal: extents whose product is {world.size}, and one name for each"],
            )
        rest, place = world.rank, []
        for extent in reversed(self.shape):
            place.append(rest % extent)
            rest //= extent
        self.coordinates = tuple(reversed(place))
        self._groups = [self._along(i) for i in range(len(self.shape))]

    def _along(self, axis):
        """The group of this rank along one axis; every rank makes all groups of the axis, in one order."""
        step = math.prod(self.shape[axis + 1 :])
        mine = None
        for start in range(math.prod(self.shape)):
            if (start // step) % self.shape[axis]:
                continue
            ranks = [start + k * step for k in range(self.shape[axis])]
            group = new_group(ranks)
            mine = group if group.rank >= 0 else mine
        return mine

    def axis(self, name: str) -> Any:
        """The number of an axis by name or number. Raises ArgumentError `distributed.mesh`."""
        if isinstance(name, int) and 0 <= name < len(self.shape):
            return name
        if name in self.names:
            return self.names.index(name)
        raise error(
            weft.ArgumentError,
            "distributed.mesh",
            f"the mesh has no axis {shown(name)}",
            [f"there are: {', '.join(self.names)}"],
        )

    def group(self, name: str) -> Any:
        """The ranks along one axis that share this rank's other coordinates."""
        return self._groups[self.axis(name)]

    def __repr__(self):
        return f"Mesh({self.shape}, {self.names})"


def _part(extent, mesh, axis, what):
    if extent % mesh.shape[axis]:
        raise error(
            weft.ShapeError,
            "distributed.extent",
            f"{what} has extent {extent}, and {mesh.shape[axis]} ranks share it along {shown(mesh.names[axis])}",
            [f"legal: an extent that {mesh.shape[axis]} divides"],
        )
    return extent // mesh.shape[axis]


def _checked(placements, mesh, ndim):
    placements = tuple(placements)
    fits = len(placements) == len(mesh.shape) and all(
        isinstance(p, (Replicate, Partial)) or (isinstance(p, Shard) and 0 <= p.axis < ndim)
        for p in placements
    )
    if not fits:
        raise error(
            weft.ArgumentError,
            "distributed.placement",
            f"the placements {placements} of an array of {ndim} axes on {shown(mesh)}",
            [f"legal: one Shard(axis below {ndim}) or Replicate() for each of {mesh.names}"],
        )
    return placements


class ShardedArray:
    """An array over a mesh: `local` is this rank's part, `shape` that of the whole, `placements` one for each axis of the mesh."""

    def __init__(self, local: Any, mesh: Mesh, placements: Any, shape: Sequence[int]) -> None:
        self.local, self.mesh = local, mesh
        self.placements, self.shape = _checked(placements, mesh, len(shape)), tuple(shape)

    dtype = property(lambda self: self.local.dtype)
    device = property(lambda self: self.local.device)

    def redistribute(self, placements: Any) -> ShardedArray:
        """The same array with other placements: by the fewest of all_gather, reduce_scatter, all_reduce and slices."""
        then = _checked(placements, self.mesh, len(self.shape))
        now, groups, local = self.placements, self.mesh._groups, self.local
        n = len(now)
        # Parts along several axes of the mesh are nested: where an outer cut of an axis changes, the inner ones are undone and made again.
        undone = {
            j
            for j in range(n)
            if isinstance(now[j], Shard)
            and any(now[i] != then[i] and now[j] in (now[i], then[i]) for i in range(j + 1))
        }
        scattered = set()
        for i in range(n):
            if not isinstance(now[i], Partial) or now[i] == then[i]:
                continue
            others = [j for j in range(n) if j != i and (now[j] != then[j] or j in undone)]
            if isinstance(then[i], Shard) and not any(then[i] in (now[j], then[j]) for j in others):
                _part(local.shape[then[i].axis], self.mesh, i, f"axis {then[i].axis}")
                turned = weft.moveaxis(local, then[i].axis, 0)
                local = weft.moveaxis(reduce_scatter(turned, "sum", groups[i]), 0, then[i].axis)
                scattered.add(i)
            else:
                local = all_reduce(local, "sum", groups[i])
        for i in reversed(range(n)):
            if i in undone:
                turned = weft.moveaxis(local, now[i].axis, 0)
                local = weft.moveaxis(all_gather(turned, groups[i]), 0, now[i].axis)
        for i in range(n):
            if (
                isinstance(then[i], Shard)
                and i not in scattered
                and (i in undone or now[i] != then[i])
            ):
                local = _slice(local, then[i].axis, self.mesh, i)
            elif isinstance(then[i], Partial) and now[i] != then[i] and self.mesh.coordinates[i]:
                local = weft.zeros_like(local)
        return ShardedArray(local, self.mesh, then, self.shape)

    def full(self) -> Any:
        """The whole array, on every rank."""
        return self.redistribute([Replicate()] * len(self.mesh.shape)).local

    def scaled(self, factor: float) -> ShardedArray:
        """The array times a number, with the same placements."""
        return ShardedArray(self.local * factor, self.mesh, self.placements, self.shape)

    def __matmul__(self, other):
        return propagate.matmul(self, other)

    def __neg__(self):
        return self.scaled(-1)

    def __add__(self, other):
        return propagate.binary(lambda a, b: a + b, "together", self, other)

    def __sub__(self, other):
        return propagate.binary(lambda a, b: a - b, "together", self, other)

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        return propagate.binary(lambda a, b: a * b, "each", self, other)

    def __truediv__(self, other):
        return propagate.binary(lambda a, b: a / b, "first", self, other)

    def __rtruediv__(self, other):
        return propagate.binary(lambda a, b: b / a, "none", self, other)

    def __pow__(self, other):
        return propagate.binary(lambda a, b: a**b, "none", self, other)

    __radd__, __rmul__ = __add__, __mul__
    __array_ufunc__ = None  # NumPy's arrays leave operators to this class

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The sum over axes; one that ranks share gives Partial sums."""
        return propagate.reduction("sum", self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The mean over axes; one that ranks share gives Partial sums."""
        return propagate.reduction("mean", self, axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The largest over axes, combined over the ranks that share one."""
        return propagate.reduction("max", self, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The smallest over axes, combined over the ranks that share one."""
        return propagate.reduction("min", self, axis, keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False) -> Any:
        """The product over axes, combined over the ranks that share one."""
        return propagate.reduction("prod", self, axis, keepdims)

    def __repr__(self):
        return f"ShardedArray(shape={self.shape}, dtype={self.dtype}, placements={self.placements}, local={tuple(self.local.shape)})"


def _slice(local, axis, mesh, i):
    n = _part(local.shape[axis], mesh, i, f"axis {axis}")
    at = mesh.coordinates[i] * n
    return local[(slice(None),) * axis + (slice(at, at + n),)]


def shard(x: Any, mesh: Mesh, placements: Any) -> ShardedArray:
    """An array that every rank has whole, distributed over the mesh: each rank keeps its part.

    Raises ShapeError `distributed.extent` where ranks do not share an axis evenly, ArgumentError `distributed.placement`.
    """
    x = x if isinstance(x, weft.NDArray) else weft.asarray(x)
    whole = ShardedArray(x, mesh, [Replicate()] * len(mesh.shape), x.shape)
    return whole.redistribute(placements)


from . import propagate  # noqa: E402  (it needs the classes above)
