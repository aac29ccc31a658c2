# SPDX-License-Identifier: Apache-2.0
"""Values written or added at positions: scatter, index_put and their relatives."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import HALVES, Unsupported, array, as_type, line_index, numbers_too


def _grid(index, dim):
    """Positions along every axis: the index itself along `dim`, the element's own place along others."""
    places = []
    for axis, n in enumerate(index.shape):
        if axis == dim:
            places.append(index)
        else:
            shape = [1] * index.ndim
            shape[axis] = n
            places.append(weft.arange(n, device=index.device).reshape(tuple(shape)))
    return places


def _positions(x, dim, index):
    """Where the elements of a scatter go, as one index array for each axis."""
    return _grid(as_type(index, "int64"), dim % x.ndim)


def _part(source, index):
    """The elements of a source that have a position."""
    return source[tuple(slice(0, n) for n in index.shape)]


def _aimed(x, dim, index, source):
    """(a view of x, positions of its first axes, values) of a scatter into x: whole rows where the index is an expanded one."""
    dim %= x.ndim
    row, source = line_index(index, dim), _part(source, index)
    if row is None:
        return x, _positions(x, dim, index), source
    cut = tuple(slice(None) if a == dim else slice(0, n) for a, n in enumerate(index.shape))
    axes = [dim, *(a for a in range(x.ndim) if a != dim)]
    return x[cut].permute(axes), [row], source.permute(axes)


def _wide(x, source):
    """A new array to add to, and what is added: of 16-bit floats in float32, since each sum would be rounded."""
    if str(x.dtype) not in HALVES:
        return x.copy(), source
    return x.astype("float32"), as_type(source, "float32")


def _and_in_place(name, overload):
    """A rule that writes into its array: for the operator in place, and for the one that gives a new array, on a copy."""

    def add(rule):
        array(f"{name}_.{overload}")(rule)
        array(f"{name}.{overload}")(lambda c, x, *args, **named: rule(c, x.copy(), *args, **named))
        return rule

    return add


@array("scatter_add.default")
@numbers_too
def _scatter_add(c, x, dim, index, source):
    out, source = _wide(x, source)
    if index.size:
        _core._scatter(*_aimed(out, dim, index, source), True)
    return as_type(out, c.dtype)


@_and_in_place("scatter", "value")
@numbers_too
def _scatter_value(c, x, dim, index, value):
    if index.size:
        filled = weft.full(index.shape, value, dtype=c.dtype, device=x.device)
        _core._scatter(*_aimed(x, dim, index, filled), False)
    return x


@_and_in_place("scatter", "src")
@numbers_too
def _scatter_source(c, x, dim, index, source):
    if index.size:
        _core._scatter(*_aimed(x, dim, index, source), False)
    return x


def _extreme(x, places, source, largest):
    """The largest or smallest source element at each position: written in order of size, so the winner is last."""
    flat = _flat(x, places, source.shape)
    row = source.reshape((-1,))
    if "float" in str(row.dtype):  # NaN is last in either order
        order = _core._argsort(row if largest else -row, 0, False)
    else:
        order = _core._argsort(row, 0, not largest)
    at = [_core._take(flat, order, 0)]
    out = x.copy().reshape((-1,))
    _core._scatter(out, at, _core._take(row, order, 0), False)
    return out.reshape(x.shape)


def _flat(x, places, shape):
    """Positions of an array as numbers of its elements in a row."""
    flat = weft.zeros(shape, dtype="int64", device=x.device)
    for place, n in zip(places, x.shape):
        flat = flat * n + weft.where(place < 0, place + n, place)
    return flat.reshape((-1,))


def _multiplied(out, places, source):
    """out times all source elements of each position: first those that come first to a position, then the second ones."""
    flat, row = _flat(out, places, source.shape), source.reshape((-1,))
    order = _core._argsort(flat, 0, False)
    flat, row = _core._take(flat, order, 0), _core._take(row, order, 0)
    at = weft.arange(flat.size, dtype="int64", device=out.device)
    turn = at - _core._searchsorted(flat, flat, False)
    shape, out = out.shape, out.reshape((-1,))
    for n in range(int(weft.max(turn)) + 1):
        now = weft.nonzero(turn == n)[0]
        here = _core._take(flat, now, 0)
        _core._scatter(out, [here], _core._take(out, here, 0) * _core._take(row, now, 0), False)
    return out.reshape(shape)


def _one_by_one(c, x, dim, index, source, kind, include_self):
    """Products and extremes on the host: each value is combined with what is at its position; 16-bit floats in float32."""
    out, source = _wide(x, source)
    into, places, part = _aimed(out, dim, index, source)
    if not include_self:  # any of the values for a position begins an extreme
        _core._scatter(into, places, weft.ones_like(part) if kind == "prod" else part, False)
    if kind == "prod":
        _core._scatter_product(into, places, part)
    else:
        _core._scatter_extreme(into, places, part, kind == "amax")
    return as_type(out, c.dtype)


@array("index_reduce.default")
@numbers_too
def _index_reduce(c, x, dim, index, source, reduce, *, include_self=True):
    if not index.size:
        return x.copy()
    dim %= x.ndim
    shape = (*(1,) * dim, index.size, *(1,) * (x.ndim - dim - 1))
    index = index.reshape(shape).broadcast_to((*x.shape[:dim], index.size, *x.shape[dim + 1 :]))
    return _scatter_reduce(c, x, dim, index, source, reduce, include_self=include_self)


@array("scatter.reduce", "scatter.value_reduce")
def _scatter_and(c, x, dim, index, source, *, reduce):
    if not hasattr(source, "dtype"):
        source = weft.full(index.shape, source, dtype=c.dtype, device=x.device)
    kind = dict(add="sum", multiply="prod")[reduce]
    return _scatter_reduce(c, x, dim, index, source, kind)


@array("scatter_reduce.two")
@numbers_too
def _scatter_reduce(c, x, dim, index, source, reduce, *, include_self=True):
    if not index.size:
        return x.copy()
    if c.dtype == "bool":
        raise Unsupported("booleans reduced by position")
    if reduce in ("prod", "amax", "amin") and x.device.host_accessible:
        return _one_by_one(c, x, dim, index, source, reduce, include_self)
    places, part = _positions(x, dim, index), _part(source, index)
    if reduce == "prod":
        out = x.copy()
        if not include_self:
            _core._scatter(out, places, weft.ones_like(part), False)
        return _multiplied(out, places, part)
    if reduce in ("amax", "amin"):
        found = _extreme(x, places, part, reduce == "amax")
        if not include_self:
            return found
        return weft.maximum(x, found) if reduce == "amax" else weft.minimum(x, found)
    out, source = _wide(x, source)
    into, places, part = _aimed(out, dim, index, source)
    if not include_self:
        _core._scatter(into, places, weft.zeros_like(part), False)
    _core._scatter(into, places, part, True)
    if reduce == "sum":
        return as_type(out, c.dtype)
    count = (weft.ones_like if include_self else weft.zeros_like)(out)
    _core._scatter(*_aimed(count, dim, index, weft.ones_like(source)), True)
    count = weft.maximum(count, weft.ones_like(count))
    return out // count if "int" in c.dtype else as_type(out / count, c.dtype)


@array("add_rows.default", space="weft")
def _add_rows(c, x, to, table, origin):
    out, table = _wide(x, table)
    _core._add_rows(out, as_type(to, "int64"), table, as_type(origin, "int64"))
    return as_type(out, c.dtype)


@array("put.default")
def _put(c, x, index, source, accumulate=False):
    if not x.size or not index.size:
        raise Unsupported("an assignment without elements")
    out, source = _wide(x, source) if accumulate else (x.copy(), source)
    out = out.reshape((-1,))
    _core._scatter(out, [as_type(index.reshape((-1,)), "int64")], source.reshape((-1,)), accumulate)  # fmt: skip
    return as_type(out.reshape(x.shape), c.dtype)


def _masked(c, x, mask, values):
    """x with one number, or an array of the remaining axes, where a mask of the first axes holds."""
    rest = x.shape[mask.ndim :]
    if values.ndim > len(rest):
        if math.prod(values.shape[: values.ndim - len(rest)]) != 1:
            raise Unsupported("the mask decides how many values are written")
        values = values.reshape(values.shape[values.ndim - len(rest) :])
    mask = mask.reshape((*mask.shape, *(1,) * len(rest)))
    return weft.where(mask, as_type(values, c.dtype), x)


def _put_at(c, x, indices, values, accumulate):
    """Writes the values into x. `indices`: positions along each axis, None for all of them."""
    used = [a for a, i in enumerate(indices) if i is not None]
    if not x.size or not values.size or any(not indices[a].size for a in used):
        raise Unsupported("an assignment without elements")
    places = [as_type(indices[a], "int64") for a in used]
    joined = _core._broadcast_shapes([i.shape for i in places])
    rest = [a for a in range(x.ndim) if a not in used]
    lead = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
    before, behind = [x.shape[a] for a in rest[:lead]], [x.shape[a] for a in rest[lead:]]
    # The values in the order of the selection; the indexed axes first, as the scatter wants them.
    values = as_type(values, str(x.dtype)).broadcast_to((*before, *joined, *behind))
    axes = list(range(lead, lead + len(joined)))
    values = values.permute(axes + [a for a in range(values.ndim) if a not in axes])
    _core._scatter(x.permute(used + rest), places, values, bool(accumulate))
    return x


def _masks(indices):
    """Axes that a mask selects from."""
    return [a for a, i in enumerate(indices) if i is not None and str(i.dtype) in ("bool", "uint8")]


@array("index_put.default", "_unsafe_index_put.default")
def _index_put(c, x, indices, values, accumulate=False):
    indices = list(indices) + [None] * (x.ndim - len(indices))
    masks = _masks(indices)
    if masks:
        used = [a for a, i in enumerate(indices) if i is not None]
        if masks != [0] or used != [0] or accumulate:
            raise Unsupported("the mask decides how many values are written")
        return _masked(c, x, as_type(indices[0], "bool"), values)
    if not accumulate:
        return _put_at(c, x.copy(), indices, values, False)
    out, values = _wide(x, values)
    return as_type(_put_at(c, out, indices, values, True), c.dtype)


@array("index_put_.default")
def _index_put_in_place(c, x, indices, values, accumulate=False):
    if accumulate:  # a first call that times both sides would add several times
        raise Unsupported("numbers added in place")
    indices = list(indices) + [None] * (x.ndim - len(indices))
    if _masks(indices):
        raise Unsupported("the mask decides how many values are written")
    return _put_at(c, x, indices, values, False)


@array("masked_scatter.default")
def _masked_scatter(c, x, mask, source):
    if source.size < math.prod(c.shape) or not x.size:
        raise Unsupported("the mask decides how many values are read")
    mask = as_type(mask, "bool").broadcast_to(c.shape).reshape((-1,))
    rank = _core._scan("sum", as_type(mask, "int64"), 0, "int64") - 1
    values = _core._take(source.reshape((-1,)), weft.maximum(rank, weft.zeros_like(rank)), 0)
    return weft.where(mask, values, x.broadcast_to(c.shape).reshape((-1,))).reshape(c.shape)


@array("masked_scatter_backward.default")
def _masked_scatter_backward(c, g, mask, sizes):
    """The gradients under the mask, one behind the other, and zeros for the elements that were not read."""
    n = math.prod(sizes)
    if not g.size or not n:
        raise Unsupported("an assignment without elements")
    mask = as_type(mask, "bool").broadcast_to(g.shape).reshape((-1,))
    rank = _core._scan("sum", as_type(mask, "int64"), 0, "int64") - 1
    out = weft.zeros(
        (n + 1,), dtype=c.dtype, device=g.device
    )  # the last one takes what is not written
    _core._scatter(out, [weft.where(mask, rank, n)], g.reshape((-1,)), False)
    return out[:n].reshape(c.shape)
