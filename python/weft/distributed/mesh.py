# SPDX-License-Identifier: Apache-2.0
"""Meshes of ranks, placements of arrays on them, and products that get their collectives from the placements."""

from __future__ import annotations

import dataclasses
import math

import weft

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

    def __init__(self, shape, names=None):
        world = job().world
        self.shape = tuple(int(n) for n in ((shape,) if isinstance(shape, int) else shape))
        self.names = tuple(names or (f"axis{i}" for i in range(len(self.shape))))
        unequal = len(self.names) != len(self.shape) or len(set(self.names)) != len(self.names)
        if math.prod(self.shape) != world.size or unequal:
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
            mine = group if group is not None else mine
        return mine

    def axis(self, name):
        """The number of an axis by name or number. Raises ArgumentError `distributed.mesh`."""
        if isinstance(name, int) and 0 <= name < len(self.shape):
            return name
        if name in self.names:
            return self.names.index(name)
        raise error(
            weft.ArgumentError,
            "distributed.mesh",
            f"the mesh has no axis {name!r}",
            [f"there are: {', '.join(self.names)}"],
        )

    def group(self, name):
        """The ranks along one axis that share this rank's other coordinates."""
        return self._groups[self.axis(name)]

    def __repr__(self):
        return f"Mesh({self.shape}, {self.names})"


def _part(extent, mesh, axis, what):
    if extent % mesh.shape[axis]:
        raise error(
            weft.ShapeError,
            "distributed.extent",
            f"{what} has extent {extent}, and {mesh.shape[axis]} ranks share it along {mesh.names[axis]!r}",
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
            f"the placements {placements} of an array of {ndim} axes on {mesh!r}",
            [f"legal: one Shard(axis below {ndim}) or Replicate() for each of {mesh.names}"],
        )
    return placements


class ShardedArray:
    """An array over a mesh: `local` is this rank's part, `shape` that of the whole, `placements` one for each axis of the mesh."""

    def __init__(self, local, mesh, placements, shape):
        self.local, self.mesh = local, mesh
        self.placements, self.shape = _checked(placements, mesh, len(shape)), tuple(shape)

    dtype = property(lambda self: self.local.dtype)
    device = property(lambda self: self.local.device)

    def redistribute(self, placements):
        """The same array with other placements: by the fewest of all_gather, reduce_scatter, all_reduce and slices."""
        placements = _checked(placements, self.mesh, len(self.shape))
        local = self.local
        # Gathers run from the last axis of the mesh to the first: nested parts are joined inside out.
        for i in reversed(range(len(placements))):
            now, then = self.placements[i], placements[i]
            group = self.mesh._groups[i]
            if now == then:
                continue
            if isinstance(now, Partial):
                if isinstance(then, Shard):
                    _part(local.shape[then.axis], self.mesh, i, f"axis {then.axis}")
                    turned = weft.moveaxis(local, then.axis, 0)
                    local = weft.moveaxis(reduce_scatter(turned, "sum", group), 0, then.axis)
                    continue
                local = all_reduce(local, "sum", group)
            elif isinstance(now, Shard):
                turned = weft.moveaxis(local, now.axis, 0)
                local = weft.moveaxis(all_gather(turned, group), 0, now.axis)
        for i, (now, then) in enumerate(zip(self.placements, placements)):
            if now == then or (isinstance(now, Partial) and isinstance(then, Shard)):
                continue
            if isinstance(then, Shard):
                local = _slice(local, then.axis, self.mesh, i)
            elif isinstance(then, Partial) and self.mesh.coordinates[i]:
                local = weft.zeros_like(local)
        return ShardedArray(local, self.mesh, placements, self.shape)

    def full(self):
        """The whole array, on every rank."""
        return self.redistribute([Replicate()] * len(self.mesh.shape)).local

    def __matmul__(self, other):
        return matmul(self, other)

    def __repr__(self):
        return f"ShardedArray(shape={self.shape}, dtype={self.dtype}, placements={self.placements}, local={tuple(self.local.shape)})"


def _slice(local, axis, mesh, i):
    n = _part(local.shape[axis], mesh, i, f"axis {axis}")
    at = mesh.coordinates[i] * n
    return local[(slice(None),) * axis + (slice(at, at + n),)]


def shard(x, mesh, placements):
    """An array that every rank has whole, distributed over the mesh: each rank keeps its part.

    Raises ShapeError `distributed.extent` where ranks do not share an axis evenly, ArgumentError `distributed.placement`.
    """
    x = x if isinstance(x, weft.NDArray) else weft.asarray(x)
    whole = ShardedArray(x, mesh, [Replicate()] * len(mesh.shape), x.shape)
    return whole.redistribute(placements)


def matmul(a, b):
    """The product of two sharded matrices, with the collectives that their placements ask for.

    Along each axis of the mesh: rows of a sharded give rows of the result sharded, columns of b sharded columns; the summed extent sharded in both gives
    Partial sums, which redistribute() adds up. Other pairs are redistributed first, so that the smaller operand moves.
    """
    if a.mesh is not b.mesh or len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise error(
            weft.ShapeError,
            "distributed.matmul",
            f"a product of {a!r} and {b!r}",
            ["legal: two matrices on one mesh, with equal inner extents"],
        )
    left, right, result = list(a.placements), list(b.placements), []
    for i, (p, q) in enumerate(zip(a.placements, b.placements)):
        rule = {
            (Shard(0), Replicate()): Shard(0),
            (Replicate(), Shard(1)): Shard(1),
            (Shard(1), Shard(0)): Partial(),
            (Replicate(), Replicate()): Replicate(),
            (Partial(), Replicate()): Partial(),
            (Replicate(), Partial()): Partial(),
        }.get((p, q))
        if rule is None:
            a_moves = isinstance(p, Partial) or math.prod(a.shape) <= math.prod(b.shape)
            if p == Shard(1) and q == Replicate():
                right[i], rule = Shard(0), Partial()
            elif p == Replicate() and q == Shard(0):
                left[i], rule = Shard(1), Partial()
            elif a_moves and q == Shard(1):
                left[i], rule = Replicate(), Shard(1)
            elif a_moves and q == Shard(0):
                left[i], rule = Shard(1), Partial()
            elif p == Shard(0):
                right[i], rule = Replicate(), Shard(0)
            elif p == Shard(1):
                right[i], rule = Shard(0), Partial()
            else:
                left[i] = right[i] = rule = Replicate()
        result.append(rule)
    x, y = a.redistribute(left).local, b.redistribute(right).local
    return ShardedArray(x @ y, a.mesh, result, (a.shape[0], b.shape[1]))
