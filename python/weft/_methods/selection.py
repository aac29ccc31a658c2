# SPDX-License-Identifier: Apache-2.0
"""Methods that pick elements of a tensor or write at positions of it, in PyTorch's manner."""

from __future__ import annotations

import functools

import weft

from .. import _core
from .._dispatch import whole
from .._core import NDArray, Tensor
from .._errors import error as _error
from .tools import axis_of, filled, plain


def _index(x, like):
    return weft.asarray(plain(x)).to(like.device).astype("int64")


def _lines(name, x, dim, index):
    """(axis, index, index arrays of all axes) of a scatter. Raises ShapeError for an index that does not fit."""
    dim, index = axis_of(x, dim), _index(index, x)
    if index.ndim != x.ndim or any(
        n > m for i, (n, m) in enumerate(zip(index.shape, x.shape)) if i != dim
    ):
        raise _error(
            _core.ShapeError,
            "tensor.scatter",
            f"{name} into shape {x.shape} at indices of shape {index.shape}",
            ["rule: as many axes; extents at most the tensor's, beside the axis"],
        )
    places = []
    for i, n in enumerate(index.shape):
        shape = tuple(n if k == i else 1 for k in range(index.ndim))
        places.append(index if i == dim else weft.arange(n, device=x.device).reshape(shape))
    return dim, index, tuple(places)


def _source(src, index):
    """The part of a source that belongs to the indices."""
    return src[tuple(slice(n) for n in index.shape)]


def _named(name):
    def method(self, *args, **kwargs):
        return getattr(weft, name)(self, *args, **kwargs)

    method.__doc__ = f"weft.{name} of the tensor."
    return method


def _floats_beside(w, x):
    """Are these float32 or float64, one for each element?"""
    return (
        isinstance(w, _core.NDArray)
        and w.dtype.name in ("float32", "float64")
        and w.size == x.size
        and w.device.host_accessible
    )


@filled(_named, "nonzero tril triu")
class Selection:
    """Gathers, scatters, masks."""

    def index_select(self, dim, index):
        """Entries at positions along an axis."""
        return weft.take(self, weft.asarray(plain(index)), axis=dim)

    def gather(self, dim, index):
        """The element at index[..., i, ...] along an axis for each position of index, which may be shorter along the others."""
        index = weft.asarray(plain(index))
        x, dim = self, axis_of(self, dim) if self.ndim else dim
        if index.ndim == x.ndim:
            cut = [slice(None)] * x.ndim
            for d, (wanted, there) in enumerate(zip(index.shape, x.shape)):
                if d != dim and wanted < there:
                    cut[d] = slice(0, wanted)
            x = x[tuple(cut)] if any(c != slice(None) for c in cut) else x
        return weft.take_along_axis(x, index, axis=dim)

    def topk(self, k, dim=-1, largest=True, sorted=True):
        """(values, positions) of the k largest or smallest along an axis, in order."""
        return weft.topk(self, k, axis=dim, largest=largest)

    def argsort(self, dim=-1, descending=False):
        """Positions that would sort along an axis."""
        return weft.argsort(self.data, axis=dim, descending=descending)

    def sort(self, dim=-1, descending=False):
        """(values, positions) sorted along an axis."""
        at = self.argsort(dim, descending)
        return weft.take_along_axis(self, at, axis=dim), at

    def masked_select(self, mask):
        """The elements where the mask is true, in a row."""
        mask = weft.asarray(plain(mask)).astype("bool").to(self.device)
        return self.broadcast_to(mask.shape)[mask] if mask.shape != self.shape else self[mask]

    def index_fill(self, dim, index, value):
        """With a number at positions along an axis."""
        dim = axis_of(self, dim)
        at = weft.arange(self.shape[dim], device=self.device)
        hit = weft.any(at[:, None] == _index(index, self)[None, :], axis=1)
        shape = tuple(n if i == dim else 1 for i, n in enumerate(self.shape))
        return weft.where(hit.reshape(shape), value, self)

    def scatter_add(self, dim, index, src):
        """With src[...] added at the positions index[...] along an axis; positions may occur several times.

        index may be smaller than src and, beside the axis, than the tensor. Raises ShapeError, IndexError.
        """
        at = plain(index)
        if (
            isinstance(at, NDArray)
            and at.ndim > 1
            and dim in (0, -at.ndim)
            and not any(at.strides[1:])
        ):
            if at.shape[1:] == self.shape[1:] and at.shape == src.shape:  # whole entries
                at = at[(slice(None), *(0,) * (at.ndim - 1))]
                return weft.scatter(self, _index(at, self), src, accumulate=True)
        dim, index, places = _lines("scatter_add", self, dim, index)
        return weft.scatter(self, places, _source(src, index), accumulate=True)

    def scatter(self, dim, index, src):
        """With src[...], or a number, at the positions index[...] along an axis; of equal positions the last stands.

        Raises ShapeError, IndexError.
        """
        dim, index, places = _lines("scatter", self, dim, index)
        nobody = weft.full(self.shape, -1, dtype="int64", device=self.device)
        row = weft.arange(index.size, device=self.device).reshape(index.shape)
        winner = weft.scatter(nobody, places, row)
        hit = winner >= 0
        if isinstance(src, (Tensor, NDArray)):
            src = _source(src, index).reshape(-1)
            src = src if isinstance(src, Tensor) else Tensor(src, requires_grad=False)
            chosen = weft.where(hit, winner, 0).reshape(-1)
            src = src.index_select(0, chosen).reshape(self.shape) if index.size else 0
        return weft.where(hit, src, self).astype(self.dtype)

    def index_add(self, dim, index, source, *, alpha=1):
        """With entries of source, times alpha, added at positions along an axis."""
        dim = axis_of(self, dim)
        index, source = _index(index, self).reshape(-1), source if alpha == 1 else source * alpha
        if dim == 0:  # whole entries
            shape = (index.shape[0], *self.shape[1:])
            if tuple(source.shape) == shape:
                return weft.scatter(self, index, source, accumulate=True)
        shape = tuple(-1 if i == dim else 1 for i in range(source.ndim))
        spread = index.reshape(shape).broadcast_to(source.shape)
        return self.scatter_add(dim, spread, source)

    def take(self, index):
        """Elements at positions in the row of all elements."""
        index = _index(index, self)
        return self.reshape(-1).index_select(0, index.reshape(-1)).reshape(*index.shape)

    def take_along_dim(self, index, dim=None):
        """gather; of the elements in a row when dim is None."""
        if dim is None:
            return self.reshape(-1).gather(0, _index(index, self).reshape(-1))
        return self.gather(dim, _index(index, self))

    def repeat_interleave(self, repeats=None, dim=None, *, output_size=None):
        """Each entry several times: weft.repeat. Without `repeats` the positions, each as often as the entry there says."""
        if repeats is None:
            return weft.repeat(weft.arange(self.shape[0], device=self.device), _index(self, self))
        repeats = repeats if isinstance(repeats, int) else _index(repeats, self)
        x, dim = (self.reshape(-1), 0) if dim is None else (self, dim)
        at = weft.repeat(weft.arange(x.shape[dim], device=x.device), repeats)
        return x.index_select(dim, at)

    def argwhere(self):
        """Positions of the elements that are not zero, one in each row."""
        return weft.stack(weft.nonzero(plain(self)), axis=1)

    @functools.partial(whole, public="bincount")
    def bincount(self, weights=None, minlength=0):
        """How often each integer from 0 on occurs, or the sum of the weights where it does. Raises ArgumentError for
        negative ones."""
        x = plain(self)
        if x.device.host_accessible and x.dtype.kind in "iu":
            w = None if weights is None else plain(weights)
            if w is None:
                counts = _core._counts_from_zero(x, minlength)
            elif _floats_beside(w, x):
                counts = _core._sums_from_zero(x, w, minlength)
            else:
                counts = None
            if counts is not None:
                return counts
        x = weft.reshape(x.astype("int64", copy=False), (-1,))
        if not x.size:
            low, high = 0, -1
        elif x.device.host_accessible:
            low, high = weft.min(x).item(), weft.max(x).item()
        else:  # one wait for the device
            low, high = weft.stack([weft.min(x), weft.max(x)]).tolist()
        if low < 0:
            raise _error(
                weft.ArgumentError,
                "array.bincount.negative",
                f"bincount of {low}",
                note="legal: integers from 0 on",
            )
        n = max(high + 1, minlength)
        if weights is not None:
            w = weft.reshape(plain(weights), (-1,))
            w = w if w.dtype.kind == "f" else w.astype("float64")
            return weft.scatter(
                weft.zeros((n,), dtype=w.dtype, device=x.device), x, w, accumulate=True
            )
        counts = _core._histogram(x, n)
        if counts is not None:
            return counts
        one = weft.ones((), dtype="int64", device=x.device)
        out = weft.zeros((n,), dtype="int64", device=x.device)
        return weft.scatter(out, x, one, accumulate=True)

    def msort(self):
        """Sorted along the first axis."""
        return self.sort(0)[0]

    def kthvalue(self, k, dim=-1, keepdim=False):
        """(value, position) of the k-th smallest along an axis, from 1."""
        dim = axis_of(self, dim)
        if not 1 <= k <= self.shape[dim]:
            raise _error(
                _core.IndexError,
                "tensor.kthvalue",
                f"kthvalue {k} along axis {dim} of shape {self.shape}",
                [f"legal: 1 to {self.shape[dim]}"],
            )
        x = plain(self)
        at = weft.argpartition(x, k - 1, dim) if x.dtype.kind != "c" else self.argsort(dim)
        at = at[(slice(None),) * dim + (slice(k - 1, k),)]
        value = weft.take_along_axis(self, at, axis=dim)
        return (value, at) if keepdim else (value.squeeze(dim), at.squeeze(dim))
