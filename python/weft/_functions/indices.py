# SPDX-License-Identifier: Apache-2.0
"""Positions, grids of positions, triangles, and orders along an axis, by NumPy's names."""

from __future__ import annotations

import operator

import weft

from .._core import shown
from .. import _core
from .._boundary import direct
from .._core import NDArray
from .._dispatch import whole
from .._namespace.indexing import inside
from .common import axis_of, plain, refused, value

__all__ = [
    "apply_along_axis",
    "argpartition",
    "diag_indices",
    "diagflat",
    "fill_diagonal",
    "indices",
    "ix_",
    "lexsort",
    "partition",
    "put_along_axis",
    "ravel_multi_index",
    "rollaxis",
    "tri",
    "tril_indices",
    "triu_indices",
    "unravel_index",
    "vander",
]


def indices(dimensions, dtype=None, device=None, *, sparse=False):
    """The positions along each axis of every element of a grid: (axes, *dimensions); sparse=True: an array for each axis, of extent 1 along the others."""
    dimensions = tuple(dimensions)
    if sparse:
        lines = [weft.arange(n, dtype=dtype or "int64", device=device) for n in dimensions]
        shape = lambda k: tuple(-1 if i == k else 1 for i in range(len(dimensions)))  # noqa: E731
        return tuple(line.reshape(shape(k)) for k, line in enumerate(lines))
    out = weft.empty((len(dimensions), *dimensions), dtype=dtype or "int64", device=device)
    for k, n in enumerate(dimensions):
        line = weft.arange(n, dtype=out.dtype, device=device)
        out[k] = line.reshape((n, *(1,) * (len(dimensions) - 1 - k)))
    return out


def ix_(*sequences):
    """Index arrays that pick the grid of the positions (or masks) given for each axis."""
    out, n = [], len(sequences)
    for k, s in enumerate(sequences):
        s = plain(s)
        if s.ndim != 1:
            raise refused(
                "array.ix.shape", f"positions of shape {tuple(s.shape)}", "a vector for each axis"
            )
        s = weft.nonzero(s)[0] if s.dtype.kind == "b" else s
        out.append(s.reshape(tuple(-1 if i == k else 1 for i in range(n))))
    return tuple(out)


def lexsort(keys, axis=-1):
    """Positions that sort by the last key, equal ones by the key before it, and so on."""
    keys = [plain(k) for k in keys]
    if not keys:
        raise refused("array.lexsort.keys", f"lexsort of {len(keys)} keys", "one key at least")
    order = weft.argsort(keys[0], axis=axis)
    for k in keys[1:]:
        then = weft.argsort(weft.take_along_axis(k, order, axis=axis), axis=axis)
        order = weft.take_along_axis(order, then, axis=axis)
    return order


def diag_indices(n, ndim=2):
    """The positions of the diagonal of an array with `ndim` axes of n entries."""
    at = weft.arange(n)
    return (at,) * ndim


def tri(n, m=None, k=0, dtype=None):
    """Ones on and below the k-th diagonal of an (n, m) matrix, zeros above."""
    m = n if m is None else m
    mask = weft.arange(n).reshape(-1, 1) + k >= weft.arange(m).reshape(1, -1)
    return mask.astype(weft.asarray(0.0).dtype if dtype is None else dtype)


def tril_indices(n, k=0, m=None):
    """(rows, columns) of the elements on and below the k-th diagonal of an (n, m) matrix."""
    return tuple(weft.nonzero(tri(n, m, k, "bool")))


def triu_indices(n, k=0, m=None):
    """(rows, columns) of the elements on and above the k-th diagonal of an (n, m) matrix."""
    return tuple(weft.nonzero(weft.logical_not(tri(n, m, k - 1, "bool"))))


def _product(shape):
    size = 1
    for n in shape:
        size *= n
    return size


def _row_order(name, order):
    if order not in ("C", "F"):
        raise refused(f"array.{name}.order", f"order {shown(order)}", "'C' (the last axis counts first) or 'F' (the first one)")  # fmt: skip
    return order == "C"


def unravel_index(index, shape, order="C"):
    """The positions along each axis of positions in the row of all elements. Raises ArgumentError beyond them."""
    index = plain(index)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if not _row_order("unravel", order):
        return tuple(reversed(unravel_index(index, shape[::-1])))
    size = _product(shape)
    if index.size and (int(weft.min(index)) < 0 or int(weft.max(index)) >= size):
        raise refused(
            "array.unravel.range", f"a position outside of {size} elements", f"from 0 to {size - 1}"
        )
    out = []
    for n in reversed(shape):
        out.append(index % n)
        index = index // n
    return tuple(reversed(out))


def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """The positions in the row of all elements of positions along each axis.

    mode, one or one for each axis: positions beyond an axis raise ArgumentError ("raise"), count on from its other end ("wrap") or mean its nearest
    end ("clip").
    """
    parts = [plain(p) for p in multi_index]
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(parts) != len(dims):
        raise refused(
            "array.ravel.axes", f"{len(parts)} positions for {len(dims)} axes", "one for each axis"
        )
    modes = [mode] * len(dims) if isinstance(mode, str) else list(mode)
    if not _row_order("ravel", order):
        parts, dims, modes = parts[::-1], dims[::-1], modes[::-1]
    out = 0
    for p, n, how in zip(parts, dims, modes):
        p = p if how == "raise" else inside(p, n, how, "ravel")
        if p.size and (int(weft.min(p)) < 0 or int(weft.max(p)) >= n):
            raise refused(
                "array.unravel.range", f"a position outside of {n} entries", f"from 0 to {n - 1}"
            )
        out = out * n + p
    return out


def diagflat(x, k=0):
    """A matrix with the elements in a row on its k-th diagonal, zeros elsewhere."""
    return weft.diag(value(x).reshape(-1), k)


def fill_diagonal(x, number):
    """Writes a number, or the elements of a vector, on the diagonal of a matrix; x itself changes."""
    if not isinstance(x, weft.NDArray) or x.ndim < 2:
        raise refused(
            "array.fill_diagonal.target",
            "fill_diagonal of no matrix",
            "an array with two axes and more",
        )
    n = min(x.shape)
    at = weft.arange(n, device=x.device)
    x[(at,) * x.ndim] = (
        plain(number).astype(x.dtype) if not isinstance(number, (int, float)) else number
    )


def put_along_axis(x, index, values, axis):
    """Writes values at positions along an axis, one for each entry of index; x itself changes."""
    index = plain(index)
    axis = axis_of(x, axis)
    places = [
        index
        if i == axis
        else weft.arange(n, device=x.device).reshape(
            tuple(n if k == i else 1 for k in range(x.ndim))
        )
        for i, n in enumerate(index.shape)
    ]
    x[tuple(weft.broadcast_arrays(*places))] = weft.broadcast_to(
        plain(values).astype(x.dtype), tuple(index.shape)
    )


def _partitioned(x, axis):
    """The operand, in a row where no axis is named, and the axis."""
    x = value(x)
    return (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))


def _selects(x, axis):
    """Is selection along the axis faster than sorting?"""
    return x.shape[axis] > 256 and x.size and x.device.host_accessible


def _places(kth, n, name):
    """Places of an order of n as a list, counted from its end where they are negative."""
    if type(kth) is int and -n <= kth < n:
        return (kth % n,)
    places = plain(kth).reshape(-1).tolist() if hasattr(kth, "ndim") else kth
    places = list(places) if isinstance(places, (list, tuple)) else [places]
    places = [operator.index(k) for k in places]
    if any(not -n <= k < n for k in places):
        raise refused(f"array.{name}.place", f"{name} at {kth} of {n} elements", f"from {-n} to {n - 1}")  # fmt: skip
    return [k % n for k in places]


@direct(_core._direct_partition)
@whole
def partition(x, kth, axis=-1):
    """A copy in which the entries at kth (one place or several) along an axis stand as in order, smaller ones before them."""
    x, at = _partitioned(x, axis)
    places = _places(kth, x.shape[at], "partition")
    if isinstance(x, NDArray) and _selects(x, at) and x.dtype.kind != "c":
        return _core._partition(x, places, at)
    return weft.sort(x, axis=at)


@whole
def argpartition(x, kth, axis=-1):
    """Positions that bring x in the order of partition."""
    x, at = _partitioned(plain(x), axis)
    places = _places(kth, x.shape[at], "argpartition")
    if _selects(x, at) and x.dtype.kind != "c":
        found = _core._argpartition(x, places, at)
        if found is not None:
            return found
    return weft.argsort(x, axis=at)


def rollaxis(x, axis, start=0):
    """The axis moved before the axis at `start`."""
    x = value(x)
    axis = axis_of(x, axis)
    start = start + x.ndim if start < 0 else start
    return weft.moveaxis(x, axis, start - 1 if start > axis else start)


def apply_along_axis(function, axis, x, *args, **kwargs):
    """The function of each line along an axis; what it gives for a line takes the place of the axis."""
    x = value(x)
    axis = axis_of(x, axis)
    lines = weft.moveaxis(x, axis, -1)
    shape = tuple(lines.shape[:-1])
    rows = lines.reshape(-1, lines.shape[-1])
    made = [value(function(rows[i], *args, **kwargs)) for i in range(rows.shape[0])]
    out = weft.stack(made, axis=0)
    inner = tuple(out.shape[1:])
    out = out.reshape(shape + inner)
    for k in range(len(inner)):
        out = weft.moveaxis(out, len(shape) + k, axis + k)
    return out


def vander(x, n=None, increasing=False):
    """The powers of a vector's elements, one column for each: from the highest down, or from 0 up with increasing."""
    x = value(x)
    n = x.shape[0] if n is None else n
    powers = (
        weft.arange(n, device=x.device)
        if increasing
        else weft.arange(n - 1, -1, -1, device=x.device)
    )
    return x.reshape(-1, 1) ** powers.reshape(1, -1).astype(x.dtype)
