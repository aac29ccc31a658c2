# SPDX-License-Identifier: Apache-2.0
"""Tables, gathers, joins and borders."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import HALVES, Unsupported, array, as_type, line_index, numbers_too


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


@array("_assert_async.msg")
def _assert(c, condition, message):
    if _core._has_grid(condition):
        raise Unsupported("a check that torch makes on the device")
    if not bool(weft.all(condition)):
        raise RuntimeError(message)  # torch's own words: the check is the user's


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
    if not math.prod(c.shape):
        raise Unsupported("a border around nothing")
    out = weft.full(c.shape, value, dtype=c.dtype, device=x.device)
    place, part = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for k in range(len(pad) // 2):
        axis, (before, behind) = x.ndim - 1 - k, pad[2 * k : 2 * k + 2]
        n = x.shape[axis]
        # A negative border cuts off.
        part[axis] = slice(max(-before, 0), n - max(-behind, 0))
        place[axis] = slice(max(before, 0), c.shape[axis] - max(behind, 0))
    kept = x[tuple(part)]
    if kept.size:
        out[tuple(place)] = kept
    return out


@array("_new_zeros_with_same_feature_meta.default")
def _zeros_for_tangents(c, x, other, *, self_num_batch_dims=0):
    return weft.zeros(c.shape, dtype=c.dtype, device=x.device)


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
@numbers_too
def _gather(c, x, dim, index, *, sparse_grad=False):
    dim %= x.ndim
    cut = tuple(slice(None) if a == dim else slice(0, n) for a, n in enumerate(index.shape))
    row = line_index(index, dim) if index.size else None
    if row is not None:
        return _core._take(x[cut], row, dim)
    return weft.take_along_axis(x[cut], index, axis=dim)


@array("index_select.default")
@numbers_too
def _index_select(c, x, dim, index):
    return _core._take(x, as_type(index.reshape((-1,)), "int64"), dim % x.ndim)


@array("index.Tensor")
def _index(c, x, indices):
    indices = list(indices) + [None] * (x.ndim - len(indices))
    used = [a for a, i in enumerate(indices) if i is not None]
    if any(str(indices[a].dtype) in ("bool", "uint8") for a in used):
        raise Unsupported("the mask decides the result's shape")
    if not math.prod(c.shape) or not x.size:
        raise Unsupported("a selection without elements")
    order = used + [a for a in range(x.ndim) if a not in used]
    y = _core._gather(x.permute(order), [as_type(indices[a], "int64") for a in used])
    joined = y.ndim - (x.ndim - len(used))
    # Index tensors with an axis between them: their common axes come first.
    lead = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
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


@array("embedding_renorm.default")
def _renorm(c, weight, index, max_norm, norm_type):
    if not index.size or not weight.size:
        raise Unsupported("a table without rows, or no positions")
    used = weft.zeros((weight.shape[0],), dtype="bool", device=weight.device)
    _core._scatter(used, [as_type(index.reshape((-1,)), "int64")], weft.ones((index.size,), dtype="bool", device=weight.device), False)  # fmt: skip
    length = weft.linalg.vector_norm(weight, axis=-1, keepdims=True, ord=norm_type)
    factor = weft.where(length > max_norm, max_norm / (length + 1e-7), weft.ones_like(length))
    return weft.where(used.reshape((-1, 1)), as_type(weight * factor, c.dtype), weight)
