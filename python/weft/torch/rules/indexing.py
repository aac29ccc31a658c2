# SPDX-License-Identifier: Apache-2.0
"""Tables, gathers, scatters, joins and borders."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import Unsupported, array, as_type


@array("embedding.default")
def _embedding(c, weight, index, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if sparse:
        raise Unsupported("sparse gradients")
    if not index.size:
        raise Unsupported("a lookup without positions")
    rows = _core._gather(weight, [as_type(index.reshape((-1,)), "int64")])
    return rows.reshape(c.shape)


@array("embedding_dense_backward.default")
def _embedding_backward(c, g, index, count, padding_idx, scale_grad_by_freq):
    if scale_grad_by_freq:
        raise Unsupported("gradients scaled by how often a row is used")
    out = weft.zeros(c.shape, dtype=c.dtype, device=g.device)
    flat = as_type(index.reshape((-1,)), "int64")
    if flat.size:
        _core._scatter(out, [flat], g.reshape((flat.size, -1)), True)
        if padding_idx >= 0:
            out[padding_idx] = 0.0
    return out


@array("cat.default")
def _cat(c, arrays, dim=0):
    arrays = [a for a in arrays if a.shape != (0,) or c.shape == (0,)]
    if not math.prod(c.shape):
        raise Unsupported("a join without elements")
    return _core._concat([as_type(a, c.dtype) for a in arrays], dim % len(c.shape))


@array("stack.default")
def _stack(c, arrays, dim=0):
    dim %= len(c.shape)
    return _core._concat([_core._expand_dims(as_type(a, c.dtype), dim) for a in arrays], dim)


@array("constant_pad_nd.default")
def _pad(c, x, pad, value=0):
    if any(p < 0 for p in pad) or not math.prod(c.shape):
        raise Unsupported("borders that cut off")
    out = weft.full(c.shape, value, dtype=c.dtype, device=x.device)
    place = [slice(None)] * x.ndim
    for k in range(len(pad) // 2):
        axis = x.ndim - 1 - k
        place[axis] = slice(pad[2 * k], pad[2 * k] + x.shape[axis])
    out[tuple(place)] = x
    return out


def _line(dim, ndim, key):
    return (slice(None),) * (dim % ndim) + (key,)


@array("slice_backward.default")
def _slice_backward(c, g, sizes, dim, start, end, step):
    out = weft.zeros(c.shape, dtype=c.dtype, device=g.device)
    if g.size:
        start, stop, step = slice(start, end, step).indices(sizes[dim])
        out[_line(dim, out.ndim, slice(start, stop, step))] = g
    return out


@array("select_backward.default")
def _select_backward(c, g, sizes, dim, index):
    out = weft.zeros(c.shape, dtype=c.dtype, device=g.device)
    if g.size:
        out[_line(dim, out.ndim, index)] = g
    return out


@array("select_scatter.default")
def _select_scatter(c, x, source, dim, index):
    out = x.copy()
    if source.size:
        out[_line(dim, out.ndim, index)] = source
    return out


@array("slice_scatter.default")
def _slice_scatter(c, x, source, dim=0, start=None, end=None, step=1):
    out = x.copy()
    if source.size:
        start, stop, step = slice(start, end, step).indices(x.shape[dim])
        out[_line(dim, out.ndim, slice(start, stop, step))] = source
    return out


@array("gather.default")
def _gather(c, x, dim, index, *, sparse_grad=False):
    if not x.ndim or not index.size:
        raise Unsupported("a gather without axes or positions")
    dim %= x.ndim
    cut = tuple(slice(None) if a == dim else slice(0, n) for a, n in enumerate(index.shape))
    return weft.take_along_axis(x[cut], index, axis=dim)


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


@array("scatter_add.default")
def _scatter_add(c, x, dim, index, source):
    if not x.ndim or not index.size:
        raise Unsupported("a scatter without axes or positions")
    dim %= x.ndim
    out = x.copy()
    part = source[tuple(slice(0, n) for n in index.shape)]
    _core._scatter(out, _grid(index, dim), part, True)
    return out


@array("scatter.value")
def _scatter_value(c, x, dim, index, value):
    if not x.ndim or not index.size:
        raise Unsupported("a scatter without axes or positions")
    out = x.copy()
    filled = weft.full(index.shape, value, dtype=c.dtype, device=x.device)
    _core._scatter(out, _grid(index, dim % x.ndim), filled, False)
    return out


@array("index_select.default")
def _index_select(c, x, dim, index):
    if not x.ndim or not index.size:
        raise Unsupported("a selection without axes or positions")
    return _core._take(x, as_type(index.reshape((-1,)), "int64"), dim % x.ndim)


@array("index.Tensor")
def _index(c, x, indices):
    indices = list(indices) + [None] * (x.ndim - len(indices))
    used = [a for a, i in enumerate(indices) if i is not None]
    if any(str(indices[a].dtype) in ("bool", "uint8") for a in used):
        raise Unsupported("the mask decides the result's shape")
    if not math.prod(c.shape) or not x.size:
        raise Unsupported("a selection without elements")
    if used != list(range(used[0], used[-1] + 1)):
        raise Unsupported("index tensors with an axis between them")
    order = used + [a for a in range(x.ndim) if a not in used]
    y = _core._gather(x.permute(order), [as_type(indices[a], "int64") for a in used])
    joined = y.ndim - (x.ndim - len(used))
    lead = used[0]
    axes = list(range(joined, joined + lead)) + list(range(joined)) + list(range(joined + lead, y.ndim))  # fmt: skip
    return y.permute(axes)


@array("flip.default")
def _flip(c, x, dims):
    return weft.flip(x, axis=tuple(d % x.ndim for d in dims)) if dims and x.ndim else x


array("tril.default")(lambda c, x, diagonal=0: weft.tril(x, k=diagonal))
array("triu.default")(lambda c, x, diagonal=0: weft.triu(x, k=diagonal))


@array("repeat.default")
def _repeat(c, x, repeats):
    if not math.prod(c.shape):
        raise Unsupported("repetitions without elements")
    return weft.tile(x, tuple(repeats))
