# SPDX-License-Identifier: Apache-2.0
"""Reductions of pieces of an axis: segment_reduce and its gradient."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import HALVES, Unsupported, array, as_type
from .scatters import _scatter_reduce

_EMPTY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_KINDS = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


class _Pieces:
    """The pieces of axis `axis` of data, those of all rows before it counted through."""

    def __init__(self, c, data, lengths, offsets, axis):
        self.c = c
        if not data.size or str(data.dtype) in HALVES or "float" not in str(data.dtype):
            raise Unsupported("pieces without elements, or of other types than float32 and float64")
        if not data.device.host_accessible:
            raise Unsupported("lengths that the host would have to read")
        self.lead, self.n = data.shape[:axis], data.shape[axis]
        self.inner = data.shape[axis + 1 :]
        rows = math.prod(self.lead)
        if lengths is None:
            ends = as_type(offsets, "int64")
            lengths = ends[..., 1:] - ends[..., :-1]
        self.lengths = as_type(lengths, "int64").reshape((rows, -1))
        self.count = self.lengths.shape[1]
        if bool(weft.any(weft.sum(self.lengths, axis=1) != self.n)):
            raise Unsupported("pieces that are not the whole axis")
        ends = _core._scan("sum", self.lengths.reshape((-1,)), 0, "int64")
        at = weft.arange(rows * self.n, dtype="int64")
        self.of = as_type(_core._searchsorted(ends, at, True), "int64")

    def elements(self, x):
        """(elements of all rows, values of one)."""
        return x.reshape((self.of.shape[0], -1))

    def results(self, x):
        return x.reshape((self.lengths.size, -1))

    def shaped(self, x):
        return x.reshape((*self.lead, self.count, *self.inner))

    def length(self, dtype):
        return as_type(self.lengths, dtype).reshape((-1, 1))

    def reduced(self, start, values, kind):
        places = self.of.reshape((-1, 1)).broadcast_to(values.shape)
        return _scatter_reduce(self.c, start, 0, places, values, kind)

    def spread(self, x):
        """For each element what its piece has."""
        return _core._take(x, self.of, 0)


@array("segment_reduce.default")
def _segments(c, data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):  # fmt: skip
    if indices is not None or lengths is None and offsets is None:
        raise Unsupported("pieces by the number of each element")
    pieces = _Pieces(c, data, lengths, offsets, axis)
    values = pieces.elements(data)
    first = _EMPTY[reduce] if initial is None else initial
    start = weft.full((pieces.lengths.size, values.shape[1]), first, dtype=c.dtype)
    found = pieces.reduced(start, values, _KINDS[reduce])
    if reduce == "mean":
        length = pieces.length(c.dtype)
        empty = math.nan if initial is None else found
        found = weft.where(length == 0, empty, found / weft.maximum(length, weft.ones_like(length)))
    return pieces.shaped(found)


@array("_segment_reduce_backward.default")
def _segments_backward(c, g, out, data, reduce, *, lengths=None, offsets=None, axis=0, initial=None):  # fmt: skip
    pieces = _Pieces(c, data, lengths, offsets, axis)
    values, mine = pieces.elements(data), pieces.spread(pieces.results(g))
    if reduce == "mean":
        length = pieces.length(c.dtype)
        mine = mine / pieces.spread(length)
    elif reduce in ("max", "min"):
        best = pieces.spread(pieces.results(out))
        # Equal elements share the gradient, in torch one above zero alone; a NaN is its piece's extremum.
        chosen = (values == best) | (values != values)
        zero = weft.zeros((pieces.lengths.size, values.shape[1]), dtype=c.dtype)
        count = pieces.spread(pieces.reduced(zero, as_type(chosen, c.dtype), "sum"))
        mine = weft.where(chosen, weft.where(mine > 0, mine / count, mine), 0.0)
    elif reduce == "prod":
        whole = pieces.spread(pieces.results(out))
        if bool(weft.any((values == 0) | (values != values))):
            raise Unsupported("slopes of a product that holds zeros or NaN")
        mine = mine * whole / values
    return mine.reshape(data.shape)
