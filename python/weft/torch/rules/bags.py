# SPDX-License-Identifier: Apache-2.0
"""Bags of embeddings: rows of a table added up, averaged or compared, and their gradients."""

from __future__ import annotations

import math
from types import SimpleNamespace

import weft

from ... import _core
from .common import HALVES, Unsupported, array, as_type
from .scatters import _scatter_reduce

_LARGEST = 2  # torch's number of the mode "max"


def _bags(index, offsets, padding_idx, include_last):
    """(the bag of each position, the size of each bag), positions that are padding left out of the sizes."""
    count = offsets.shape[0] - bool(include_last)
    at = weft.arange(index.shape[0], dtype="int64", device=index.device)
    bag = _core._searchsorted(as_type(offsets[:count], "int64"), at, True) - 1
    kept = as_type(index != padding_idx, "int64")
    sizes = weft.zeros((count,), dtype="int64", device=index.device)
    _core._scatter(sizes, [bag], kept, True)
    return as_type(bag, "int64"), sizes, kept


def _weighted(c, rows, bag, sizes, kept, mode, per_sample):
    """The rows by what each bag makes of them; 16-bit floats in float32, as their sums."""
    kind = "float32" if c.dtype in HALVES else c.dtype
    weight = as_type(kept, kind)
    if mode == 1:
        weight = weight / as_type(weft.maximum(_core._take(sizes, bag, 0), 1), kind)
    weight = weight if per_sample is None else weight * as_type(per_sample, kind)
    return as_type(rows, kind) * weight.reshape((-1, 1))


def _added_up(c, places, rows):
    """The sum of the rows of each place."""
    out = weft.zeros(c.shape, dtype=rows.dtype, device=rows.device)
    _core._scatter(out, [places], rows, True)
    return as_type(out, c.dtype)


def _best(start, bag, values, kind):
    """The extreme of each bag in each column, of values and what is there before."""
    places = bag.reshape((-1, 1)).broadcast_to(values.shape)
    return _scatter_reduce(SimpleNamespace(dtype=str(start.dtype)), start, 0, places, values, kind)


def _largest(c, rows, index, bag, sizes, kept):
    """(the largest of each bag, its position in the table). As torch compares: a NaN that comes first stays, others lose."""
    n, shape = rows.shape[0], (sizes.shape[0], rows.shape[1])
    kept = (kept != 0).reshape((-1, 1)).broadcast_to(rows.shape)
    behind = weft.full(shape, n, dtype="int64", device=rows.device)
    at = weft.arange(n, dtype="int64", device=rows.device).reshape((-1, 1)).broadcast_to(rows.shape)
    first = _best(behind, bag, weft.where(kept, at, n), "amin")
    some = first < n
    leads = as_type(kept, "bool") & (at == _core._take(first, bag, 0))
    nothing = weft.full(shape, -math.inf, dtype=str(rows.dtype), device=rows.device)
    numbers = weft.where((rows == rows) & kept, rows, -math.inf)
    # A bag that begins with NaN has it: no number is as large as infinity by this order.
    spoilt = weft.where(leads & (rows != rows), as_type(weft.ones_like(rows), "int64"), 0)
    spoilt = _best(weft.zeros(shape, dtype="int64", device=rows.device), bag, spoilt, "amax") != 0
    best = _best(nothing, bag, numbers, "amax")
    mine = kept & (numbers == _core._take(best, bag, 0))
    found = weft.where(spoilt, first, _best(behind, bag, weft.where(mine, at, n), "amin"))
    found = weft.where(some, found, 0)
    out = weft.where(spoilt, math.nan, weft.where(some, best, 0.0))
    return as_type(out, c.dtype), weft.where(
        some, _core._take(index, found.reshape((-1,)), 0).reshape(shape), 0
    )


def _largest_backward(c, g, largest, sizes):
    """Each column's gradient at the row that was the largest; bags without rows have none."""
    kind = "float32" if c.dtype in HALVES else c.dtype
    width = g.shape[1]
    columns = weft.arange(width, dtype="int64", device=g.device)
    places = (largest * width + columns).reshape((-1,))
    values = weft.where((sizes != 0).reshape((-1, 1)), as_type(g, kind), 0.0)
    out = weft.zeros((math.prod(c.shape),), dtype=kind, device=g.device)
    _core._scatter(out, [places], values.reshape((-1,)), True)
    return as_type(out.reshape(c.shape), c.dtype)


@array("_embedding_bag.default", "_embedding_bag_forward_only.default")
def _embedding_bag(c, weight, index, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample=None, include_last_offset=False, padding_idx=-1):  # fmt: skip
    if sparse or not index.size or not offsets.size:
        raise Unsupported("sparse gradients, or no positions")
    bag, sizes, kept = _bags(index, offsets, padding_idx, include_last_offset)
    rows = _core._gather(weight, [as_type(index, "int64")])
    if mode == _LARGEST:
        out, largest = _largest(c, rows, as_type(index, "int64"), bag, sizes, kept)
    else:
        out = _added_up(c, bag, _weighted(c, rows, bag, sizes, kept, mode, per_sample))
        largest = weft.zeros(c.shapes[3], dtype="int64", device=weight.device)
    others = [bag, sizes, largest]
    # torch leaves what its gradient does not need empty.
    shaped = [x if x.shape == s else None for x, s in zip(others, c.shapes[1:])]
    return out, *(x if x is None else as_type(x, t) for x, t in zip(shaped, c.dtypes[1:]))


@array("_embedding_bag_backward.default")
def _embedding_bag_backward(c, g, index, offsets, bag, sizes, largest, count, scale_grad_by_freq, mode, sparse, per_sample, padding_idx=-1):  # fmt: skip
    if sparse or scale_grad_by_freq or not index.size or not offsets.size:
        raise Unsupported("sparse or scaled gradients, or no positions")
    if mode == _LARGEST:
        return _largest_backward(c, g, as_type(largest, "int64"), sizes)
    include_last = offsets.shape[0] > g.shape[0]
    bag, sizes, kept = _bags(index, offsets, padding_idx, include_last)
    rows = _weighted(c, _core._take(g, bag, 0), bag, sizes, kept, mode, per_sample)
    return _added_up(c, as_type(index, "int64"), rows)


@array("_embedding_bag_per_sample_weights_backward.default")
def _weights_backward(c, g, weight, index, offsets, bag, mode, padding_idx=-1):
    """Of each position: its row by the gradient of its bag."""
    if not index.size or not offsets.size:
        raise Unsupported("no positions")
    bag, _, kept = _bags(index, offsets, padding_idx, offsets.shape[0] > g.shape[0])
    rows = _core._gather(weight, [as_type(index, "int64")])
    kind = "float32" if c.dtype in HALVES else c.dtype
    found = weft.sum(as_type(_core._take(g, bag, 0), kind) * as_type(rows, kind), axis=1)
    return as_type(weft.where(kept != 0, found, weft.zeros_like(found)), c.dtype)
