# SPDX-License-Identifier: Apache-2.0
"""Copies of an array with other values at some positions, and reductions by position, as PyTorch has them."""

from __future__ import annotations

import math

import weft

from .._core import shown as _shown
from .._core import NDArray, Tensor
from .._dispatch import Recorder
from .._errors import error as _error
from .. import _core
from .common import along, axis_of, beside, plain, refused, value


def _placed(x, at, values):
    """x with values at flat positions: values where they go, x elsewhere, with the gradients of both."""
    tracked = [
        isinstance(t, Recorder) or isinstance(t, Tensor) and t.requires_grad for t in (x, values)
    ]
    if not any(tracked):
        out = plain(x).reshape(-1)
        out = weft.scatter(out, at.reshape(-1), plain(values).reshape(-1)).reshape(tuple(x.shape))
        return Tensor(out, requires_grad=False) if isinstance(x, Tensor) else out
    size = x.size
    flat, n = at.reshape(-1), at.size
    # The last of equal positions stands: the number of the value that each element gets, -1 for none.
    number = weft.scatter(weft.full((size,), -1, dtype="int64", device=x.device), flat, weft.arange(n, device=x.device))  # fmt: skip
    taken = weft.take(values.reshape(-1), weft.maximum(number, 0), axis=0)
    return weft.where((number >= 0).reshape(tuple(x.shape)), taken.reshape(tuple(x.shape)), x)


def _positions(x):
    """The flat position of every element."""
    return weft.arange(math.prod(x.shape), device=x.device).reshape(tuple(x.shape))


def _fitting(name, src, shape, x):
    src = beside(src, x)
    if tuple(src.shape) != tuple(shape):
        raise _error(
            _core.ShapeError,
            f"array.{name}.shape",
            f"{name} of a source of shape {tuple(src.shape)}",
            [f"rule: the shape {tuple(shape)} of what it replaces"],
        )
    return src.astype(x.dtype) if src.dtype != x.dtype else src


def diagonal_scatter(x, src, offset=0, dim1=0, dim2=1):
    """A copy of x with a diagonal replaced by src, which has the shape of diagonal(x, offset, dim1, dim2)."""
    x = value(x)
    at = weft.linalg.diagonal(weft.moveaxis(_positions(x), (dim1, dim2), (-2, -1)), offset=offset)
    return _placed(x, at, _fitting("diagonal_scatter", src, at.shape, x))


def select_scatter(x, src, dim, index):
    """A copy of x with one entry along an axis replaced by src."""
    x = value(x)
    axis = axis_of(x, dim)
    if not -x.shape[axis] <= index < x.shape[axis]:
        raise _error(
            _core.IndexError,
            "array.select_scatter.index",
            f"entry {index} of an axis of {x.shape[axis]}",
            [f"legal: {-x.shape[axis]} to {x.shape[axis] - 1}"],
        )
    at = along(_positions(x), axis, index)
    return _placed(x, at, _fitting("select_scatter", src, at.shape, x))


def slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    """A copy of x with a slice along an axis replaced by src."""
    x = value(x)
    at = along(_positions(x), axis_of(x, dim), slice(start, end, step))
    return _placed(x, at, _fitting("slice_scatter", src, at.shape, x))


def _lines(x, dim, index):
    """Flat positions of the entries `index` along an axis."""
    return weft.take(_positions(x), plain(beside(index, x)), axis=axis_of(x, dim))


def index_copy(x, dim, index, source):
    """A copy of x with the entries `index` along an axis replaced by those of source."""
    x = value(x)
    at = _lines(x, dim, index)
    return _placed(x, at, _fitting("index_copy", source, at.shape, x))


def index_put(x, indices, values, accumulate=False):
    """A copy of x with values at x[indices], or added there; indices: a tuple of index arrays (or masks), values broadcast."""
    x = value(x)
    at = _positions(x)[tuple(plain(beside(i, x)) for i in indices)]
    values = weft.broadcast_to(beside(values, x).astype(x.dtype), tuple(at.shape))
    if not accumulate:
        return _placed(x, at, values)
    out = weft.scatter(x.reshape(-1), at.reshape(-1), values.reshape(-1), accumulate=True)
    return out.reshape(tuple(x.shape))


def masked_scatter(x, mask, source):
    """A copy of x with the elements of source, in order, where the mask is true."""
    x = value(x)
    mask = weft.broadcast_to(plain(beside(mask, x)).astype("bool"), tuple(x.shape))
    at = _positions(x)[mask]
    source = beside(source, x).reshape(-1)
    if source.size < at.size:
        raise _error(
            _core.ShapeError,
            "array.masked_scatter.count",
            f"{source.size} elements for a mask with {at.size} true ones",
            help="give a source of as many elements at least",
        )
    return _placed(x, at, source[: at.size].astype(x.dtype))


_WAYS = ("sum", "prod", "mean", "amax", "amin")


def _combined(x, at, src, reduce, include_self, name):
    """x with src combined into it at flat positions `at`."""
    aliases = {"add": "sum", "multiply": "prod", "max": "amax", "min": "amin"}
    reduce = aliases.get(reduce, reduce)
    if reduce not in _WAYS:
        raise refused(f"array.{name}.reduce", f"reduce {_shown(reduce)}", ", ".join(_WAYS))
    shape, at, src = tuple(x.shape), at.reshape(-1), src.reshape(-1)
    flat = x.reshape(-1)
    one = weft.ones((at.size,), dtype="int64", device=x.device)
    count = weft.scatter(weft.zeros((flat.size,), dtype="int64", device=x.device), at, one, accumulate=True)  # fmt: skip
    hit = count > 0
    if not include_self:
        neutral = {"sum": 0, "mean": 0, "prod": 1}.get(reduce)
        if neutral is not None:
            flat = weft.where(hit, neutral, flat)
    if reduce in ("sum", "mean"):
        out = weft.scatter(flat, at, src, accumulate=True)
        if reduce == "mean":
            total = weft.where(hit, count + int(include_self), 1)
            if out.dtype.kind in "iu":
                out = weft.floor_divide(out, total.astype(out.dtype))
            else:
                out = out / total.astype(out.dtype)
        return out.reshape(shape)
    # Values of one position side by side: sorted by position, the k-th of each combined in round k.
    order = weft.argsort(at)
    place, number = at[order], weft.arange(at.size, device=x.device)
    fresh = weft.concat([weft.ones((min(1, at.size),), dtype="bool", device=x.device), place[1:] != place[:-1]], axis=0)  # fmt: skip
    from .running import cummax

    start = cummax(weft.where(fresh, number, 0), 0).values if at.size else number
    rank = number - start
    combine = {"prod": weft.multiply, "amax": weft.maximum, "amin": weft.minimum}[reduce]
    out, rounds = flat, int(weft.max(rank)) + 1 if at.size else 0
    for k in range(rounds):
        chosen = weft.nonzero(rank == k)[0]
        where, values = place[chosen], weft.take(src, order[chosen], axis=0)
        old = weft.take(out, where, axis=0)
        new = values if k == 0 and not include_self else combine(old, values)
        out = _placed(out, where, new)
    return out.reshape(shape)


def scatter_reduce(x, dim, index, src, reduce, include_self=True):
    """A copy of x with src[i, j] combined into x[index[i, j], j] (along an axis): "sum", "prod", "mean", "amax" or "amin"."""
    x = value(x)
    axis = axis_of(x, dim)
    index = plain(beside(index, x)).astype("int64")
    src = beside(src, x)
    src = src[tuple(slice(0, n) for n in index.shape)].astype(x.dtype)
    if index.size and not bool(weft.all((index >= 0) & (index < x.shape[axis]))):
        raise _error(
            _core.IndexError,
            "array.scatter_reduce.index",
            f"a position outside an axis of {x.shape[axis]}",
            [f"legal: 0 to {x.shape[axis] - 1}"],
        )
    part = _positions(x)[tuple(slice(0, n) if k != axis else slice(0, 1) for k, n in enumerate(index.shape))]  # fmt: skip
    stride = math.prod(x.shape[axis + 1 :])
    return _combined(x, part + index * stride, src, reduce, include_self, "scatter_reduce")


def index_reduce(x, dim, index, source, reduce, *, include_self=True):
    """A copy of x with the entries of source combined into its entries `index` along an axis: "prod", "mean", "amax" or "amin"."""
    x = value(x)
    at = _lines(x, dim, index)
    src = _fitting("index_reduce", source, at.shape, x)
    return _combined(x, at, src, reduce, include_self, "index_reduce")


def segment_reduce(data, reduce, *, lengths=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Reductions of pieces along the first axis: "sum", "mean", "max" or "min" of `lengths` entries each, or between offsets."""
    data = value(data)
    if axis != 0 or (lengths is None) == (offsets is None):
        raise refused("array.segment_reduce", f"axis {axis}, lengths {lengths}, offsets {offsets}", "axis 0 with lengths or offsets")  # fmt: skip
    if lengths is not None:
        ends = [0]
        for n in plain(lengths).tolist():
            ends.append(ends[-1] + n)
    else:
        ends = plain(offsets).tolist()
    if ends[-1] != data.shape[0] and lengths is not None:
        raise refused("array.segment_reduce.lengths", f"lengths that add up to {ends[-1]}", f"the {data.shape[0]} entries")  # fmt: skip
    empty = {"sum": 0.0, "mean": math.nan, "max": -math.inf, "min": math.inf, "prod": 1.0}
    if reduce not in empty:
        raise refused("array.segment_reduce.reduce", f"reduce {_shown(reduce)}", ", ".join(empty))
    counts = [b - a for a, b in zip(ends[:-1], ends[1:])]
    make = {"dtype": data.dtype, "device": data.device}
    which = weft.arange(len(counts), device=data.device)
    which = weft.repeat(which, weft.asarray(counts, dtype="int64", device=data.device))
    data = data[ends[0] : ends[-1]]
    shape = (len(counts), *data.shape[1:])
    if reduce in ("sum", "mean"):
        out = weft.scatter(value(weft.zeros(shape, **make)), which, data, accumulate=True)
        if reduce == "mean":
            several = weft.asarray(counts, **make).reshape((-1, *(1,) * (data.ndim - 1)))
            out = out / several
    else:
        none = weft.full(shape, empty[reduce], **make)
        how = {"max": "amax", "min": "amin", "prod": "prod"}[reduce]
        out = index_reduce(none, 0, which, data, how)
    if initial is not None and 0 in counts:
        there = weft.asarray([n > 0 for n in counts], device=data.device)
        out = weft.where(there.reshape((-1, *(1,) * (data.ndim - 1))), out, initial)
    return out


def _strided_positions(x, size, stride, offset, name):
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride) or any(n < 0 for n in size) or offset < 0:
        raise _error(
            _core.ShapeError,
            f"array.{name}.layout",
            f"{name} of size {size} with steps {stride} from element {offset}",
            ["rule: a step for each extent, extents and the first element from 0 on"],
        )
    at = offset
    for k, (n, s) in enumerate(zip(size, stride)):
        line = tuple(n if i == k else 1 for i in range(len(size)))
        at = at + weft.arange(n, device=x.device).reshape(line) * s
    last = offset + sum(max((n - 1) * s, 0) for n, s in zip(size, stride))
    first = offset + sum(min((n - 1) * s, 0) for n, s in zip(size, stride))
    if math.prod(size) and not (0 <= first and last < x.size):
        raise _error(
            _core.IndexError,
            f"array.{name}.range",
            f"{name} reads elements {first} to {last} of {x.size}",
            help="choose sizes and steps that stay inside the array",
        )
    at = at if len(size) else weft.asarray(offset, device=x.device)
    return weft.broadcast_to(at, size)


def as_strided(x, size, stride, storage_offset=0):
    """The elements at storage_offset + i * stride[0] + j * stride[1] + ... of x in order: of an array without gaps a view, else
    picked, with the gradient. Raises IndexError outside the array."""
    x = value(x)
    at = _strided_positions(x, size, stride, storage_offset, "as_strided")
    if isinstance(x, NDArray) and x.is_contiguous():
        return NDArray.make(
            tuple(size), strides=tuple(stride), device=x.device, handle=x.handle,
            offset=x.offset + storage_offset, dtype=x.dtype,
        )  # fmt: skip
    return weft.take(x.reshape(-1), at.reshape(-1), axis=0).reshape(tuple(size))


def as_strided_scatter(x, src, size, stride, storage_offset=0):
    """A copy of x with src at the elements that as_strided reads."""
    x = value(x)
    at = _strided_positions(x, size, stride, storage_offset, "as_strided_scatter")
    return _placed(x, at, _fitting("as_strided_scatter", src, at.shape, x))
