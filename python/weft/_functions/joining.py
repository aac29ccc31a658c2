# SPDX-License-Identifier: Apache-2.0
"""Arrays put together and taken apart, by NumPy's names."""

from __future__ import annotations

import itertools
import operator

import weft

from .._core import NDArray, shown
from .._errors import error as _error
from .._methods.tools import MOST_PARTS
from ..transforms import trees
from .common import along, axis_of, beside, plain, refused, value

__all__ = [
    "append",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block",
    "block_diag",
    "broadcast_tensors",
    "cartesian_prod",
    "column_stack",
    "combinations",
    "delete",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "insert",
    "resize",
    "sliding_window_view",
    "transpose",
    "trim_zeros",
    "vsplit",
    "vstack",
]


def _each(change, arrays):
    """change of every array; of one, not a tuple."""
    out = tuple(change(value(a)) for a in arrays)
    return out[0] if len(out) == 1 else out


def atleast_1d(*arrays):
    """Each with one axis at least."""
    return _each(lambda x: x.reshape(1) if x.ndim == 0 else x, arrays)


def atleast_2d(*arrays):
    """Each with two axes at least; a vector becomes a row."""
    return _each(lambda x: x.reshape(1, -1) if x.ndim < 2 else x, arrays)


def transpose(x, axes=None, dim1=None, *, dim0=None):
    """Axes in the order of a tuple, reversed without one, as in NumPy; two axes exchanged, as in PyTorch."""
    x = value(x)
    axes = axes if dim0 is None else dim0
    if dim1 is not None:
        return weft.swapaxes(x, axes, dim1)
    return x.permute(tuple(reversed(range(x.ndim))) if axes is None else tuple(axes))


def sliding_window_view(x, window_shape, axis=None):
    """Windows at every place along axes, their entries as new last axes; of an array a view."""
    x = value(x)
    sizes = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = [axis_of(x, a) for a in axes]
    if len(axes) != len(sizes) or any(not 0 < n <= x.shape[a] for a, n in zip(axes, sizes)):
        raise refused(
            "array.sliding_window_view.shape",
            f"windows of {sizes} along axes {axes} of shape {tuple(x.shape)}",
            "an extent for each axis, from 1 to the array's",
        )
    if not isinstance(x, weft.NDArray):
        for a, n in zip(axes, sizes):
            x = x.unfold(a, n, 1)
        return x
    shape, strides = list(x.shape), list(x.strides)
    for a, n in zip(axes, sizes):
        shape[a] -= n - 1
    steps = [strides[a] for a in axes]
    return x.as_strided((*shape, *sizes), (*strides, *steps))


def _three(x):
    if x.ndim == 2:
        return weft.expand_dims(x, axis=2)
    return x.reshape(1, -1, 1) if x.ndim < 2 else x


def atleast_3d(*arrays):
    """Each with three axes at least, as NumPy places them: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
    return _each(_three, arrays)


def vstack(arrays):
    """Arrays below one another; vectors are rows."""
    arrays = [a if type(a) is NDArray and a.ndim > 1 else atleast_2d(a) for a in arrays]
    return weft.concat(arrays, axis=0)


def hstack(arrays):
    """Arrays beside one another: along the second axis, vectors along their only one."""
    arrays = [a if type(a) is NDArray and a.ndim else atleast_1d(a) for a in arrays]
    return weft.concat(arrays, axis=0 if arrays and arrays[0].ndim == 1 else 1)


def dstack(arrays):
    """Arrays behind one another, along the third axis."""
    return weft.concat([atleast_3d(a) for a in arrays], axis=2)


def column_stack(arrays):
    """Vectors as the columns of a matrix; matrices beside one another."""
    arrays = [value(a) for a in arrays]
    return weft.concat([a.reshape(-1, 1) if a.ndim < 2 else a for a in arrays], axis=1)


def block(arrays):
    """One array of nested lists of blocks: the innermost lists are joined along the last axis, the next along the one before."""

    def depth(x):
        return 1 + max(map(depth, x), default=0) if isinstance(x, list) else 0

    trees.flatten(arrays)  # refuses lists of more parts than anybody wrote down
    levels = depth(arrays)

    def ranks(x):
        return max(map(ranks, x), default=0) if isinstance(x, list) else value(x).ndim

    rank = max(ranks(arrays), levels)

    def join(x, level):
        if not isinstance(x, list):
            x = value(x)
            return x.reshape((1,) * (rank - x.ndim) + tuple(x.shape))
        return weft.concat([join(part, level + 1) for part in x], axis=rank - levels + level)

    return join(arrays, 0)


def block_diag(*matrices):
    """A matrix with the given ones along its diagonal, zeros elsewhere."""
    matrices = [atleast_2d(m) for m in matrices]
    width, rows, at = sum(m.shape[1] for m in matrices), [], 0
    for m in matrices:
        rows.append(weft.nn.functional.pad(m, (at, width - at - m.shape[1])))
        at += m.shape[1]
    return weft.concat(rows, axis=0)


def append(x, values, axis=None):
    """values behind x along an axis; both in a row when axis is None."""
    x = value(x)
    values = beside(values, x)
    if axis is None:
        return weft.concat([x.reshape(-1), values.reshape(-1)], axis=0)
    return weft.concat([x, values], axis=axis)


_FEW = 256  # places for which joining what lies between costs less than positions of all entries


def _positions(index, count):
    """Positions from 0 on, of a slice, a number or numbers. Raises IndexError beyond the axis."""
    if isinstance(index, slice):
        return list(range(*index.indices(count)))
    at = plain(index)
    if at.dtype.kind == "b":
        return [i for i, hit in enumerate(at.tolist()) if hit]
    at = at.reshape(-1).tolist()
    for i in at:
        if not -count <= i < count:
            raise _error(
                weft.IndexError,
                "array.position.range",
                f"position {i} of {count} entries",
                [f"legal: {-count} to {count - 1}"],
            )
    return [int(i) % count for i in at]


def delete(x, index, axis=None):
    """Without the entries at positions along an axis (a number, numbers, a slice or a mask); in a row when axis is None."""
    x = value(x)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))
    if type(index) is int and -x.shape[axis] <= index < x.shape[axis]:
        gone = [index % x.shape[axis]]
    else:
        gone = sorted(set(_positions(index, x.shape[axis])))
    if len(gone) <= _FEW:  # what lies between them
        ends = zip([0, *(i + 1 for i in gone)], [*gone, x.shape[axis]])
        return weft.concat([along(x, axis, slice(a, b)) for a, b in ends], axis=axis)
    gone = set(gone)
    kept = [i for i in range(x.shape[axis]) if i not in gone]
    return weft.take(x, weft.asarray(kept, dtype="int64", device=x.device), axis=axis)


def insert(x, index, values, axis=None):
    """With values before positions along an axis; in a row when axis is None. One value may serve several positions.

    Before a single position all entries of values are put, as in NumPy.
    """
    x = value(x)
    one = type(index) is int and type(values) in (int, float) and x.dtype.kind == "f"
    if not one:
        values = beside(values, x)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))
    count, shape = x.shape[axis], list(x.shape)
    if one and -count <= index <= count:  # one number before one place
        index, shape[axis] = index + count * (index < 0), 1
        new = weft.full(tuple(shape), values, dtype=x.dtype, device=x.device)
        return weft.concat(
            [along(x, axis, slice(0, index)), new, along(x, axis, slice(index, count))], axis=axis
        )
    values = beside(values, x) if one else values
    values = values.astype(x.dtype).reshape((1,) * (x.ndim - values.ndim) + tuple(values.shape))
    if isinstance(index, slice):
        at = list(range(*index.indices(count)))
    else:
        at = [i + count if i < 0 else i for i in map(int, plain(index).reshape(-1).tolist())]
        if plain(index).ndim == 0:
            values = weft.moveaxis(values, 0, axis)
            at *= values.shape[axis]
    if any(not 0 <= i <= count for i in at):
        raise _error(
            weft.IndexError,
            "array.position.range",
            f"insert before {at} of {count} entries",
            [f"legal: {-count} to {count}"],
        )
    shape[axis] = len(at)
    if len(at) <= _FEW:
        values, parts, done = weft.broadcast_to(values, tuple(shape)), [], 0
        for k in sorted(range(len(at)), key=lambda k: at[k]):  # equal places in the order given
            parts += [along(x, axis, slice(done, at[k])), along(values, axis, slice(k, k + 1))]
            done = at[k]
        return weft.concat([*parts, along(x, axis, slice(done, count))], axis=axis)
    both = weft.concat([x, weft.broadcast_to(values, tuple(shape))], axis=axis)
    # Before entry i stand the new ones for i, in the order in which they were given.
    order = sorted(
        [(i, 1, i) for i in range(count)] + [(i, 0, count + k) for k, i in enumerate(at)],
        key=lambda t: t[:2],
    )
    source = [t[2] for t in order]
    return weft.take(both, weft.asarray(source, dtype="int64", device=x.device), axis=axis)


def resize(x, new_shape):
    """The elements in order, again from the first where they end, in a new shape."""
    x = value(x).reshape(-1)
    shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    size = 1
    for n in shape:
        size *= n
    if not x.size:
        return weft.zeros(shape, dtype=x.dtype, device=x.device)
    return weft.tile(x, (-(-size // x.size),))[:size].reshape(shape)


# A list of more parts than this is a mistake in a number, and would not fit.


def array_split(x, sections, axis=0):
    """A list of parts along an axis: `sections` of nearly equal length, or cut before the positions of a list."""
    x = value(x)
    axis = axis_of(x, axis)
    n = x.shape[axis]
    if isinstance(sections, int):
        if not 1 <= sections <= MOST_PARTS:
            raise refused("array.split.sections", f"{sections} parts", f"1 to {MOST_PARTS} parts")
        cuts = [0]
        for i in range(sections):
            cuts.append(cuts[-1] + n // sections + (i < n % sections))
    else:
        found = list(itertools.islice(sections, MOST_PARTS))
        if len(found) == MOST_PARTS:
            raise refused("array.split.sections", f"{MOST_PARTS} cuts", f"1 to {MOST_PARTS} parts")
        cuts = [0, *map(_cut, found), n]
    return [along(x, axis, slice(a, b)) for a, b in zip(cuts, cuts[1:])]


def _cut(position):
    try:
        return operator.index(position)
    except TypeError:
        # Masked numbers, floats and texts of NumPy name no position.
        raise refused("array.split.cuts", f"a cut at {shown(position)}", "integers") from None


def _equal_parts(x, sections, axis):
    if isinstance(sections, int) and (sections < 1 or x.shape[axis] % sections):
        raise refused(
            "array.split.sections",
            f"{sections} equal parts of {x.shape[axis]} entries",
            "the number of parts divides the axis",
        )
    return array_split(x, sections, axis)


def hsplit(x, sections):
    """Equal parts along the second axis, of a vector along its only one."""
    x = value(x)
    return _equal_parts(x, sections, 1 if x.ndim > 1 else 0)


def vsplit(x, sections):
    """Equal parts along the first axis."""
    return _equal_parts(value(x), sections, 0)


def dsplit(x, sections):
    """Equal parts along the third axis."""
    x = value(x)
    return _equal_parts(x, sections, axis_of(x, 2))


def trim_zeros(x, trim="fb"):
    """A vector without the zeros at its front ("f") and back ("b")."""
    x = value(x)
    at = weft.nonzero(plain(x))[0]
    if not at.size:
        return x[:0]
    first, last = int(at[0]), int(at[-1]) + 1
    return x[first if "f" in trim.lower() else 0 : last if "b" in trim.lower() else x.shape[0]]


def broadcast_tensors(*arrays):
    """All in the shape to which they broadcast."""
    return tuple(weft.broadcast_arrays(*map(value, arrays)))


def cartesian_prod(*vectors):
    """All choices of one element from each vector, one in each row; of one vector, the vector."""
    grids = weft.meshgrid(*map(value, vectors), indexing="ij")
    return grids[0] if len(grids) == 1 else weft.stack([g.reshape(-1) for g in grids], axis=1)


def combinations(x, r=2, with_replacement=False):
    """All choices of r elements of a vector in order, one in each row."""
    x = value(x)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    at = list(choose(range(x.shape[0]), r))
    index = weft.asarray(at, dtype="int64", device=x.device).reshape(-1)
    return weft.take(x, index, axis=0).reshape(len(at), r)
