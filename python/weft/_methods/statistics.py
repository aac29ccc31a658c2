# SPDX-License-Identifier: Apache-2.0
"""Methods that sum a tensor up, in PyTorch's manner."""

from __future__ import annotations

import functools

import math
from collections import namedtuple

import weft

from .. import _core
from .._dispatch import whole
from .._errors import error as _error
from .._pointwise import composed, widened
from .tools import axis_of, filled, plain


values_and_positions = namedtuple("values_and_positions", "values indices")


def _spread(name):
    def method(self, axis=None, keepdims=False, correction=0.0):
        return getattr(weft, name)(self, axis=axis, keepdims=keepdims, correction=correction)

    method.__doc__ = f"weft.{name}; the divisor is the count less `correction`."
    return method


def _named(name):
    def method(self, *args, **kwargs):
        return getattr(weft, name)(self, *args, **kwargs)

    method.__doc__ = f"weft.{name} of the tensor."
    return method


def _truth(name):
    def method(self, axis=None, keepdims=False):
        return getattr(weft, name)(plain(self), axis=axis, keepdims=keepdims)

    method.__doc__ = f"weft.{name}, as an array of bool."
    return method


@filled(_spread, "var std")
@filled(_truth, "all any")
@filled(_named, "count_nonzero diff")
class Statistics:
    """Reductions, running results, order statistics, products of matrices."""

    def argmax(self, axis=None, keepdims=False, *, dim=None, keepdim=False):
        """Positions of the largest elements, as an array of int64; dim and keepdim are PyTorch's names."""
        return weft.argmax(
            plain(self), axis=axis if dim is None else dim, keepdims=keepdims or keepdim
        )

    def argmin(self, axis=None, keepdims=False, *, dim=None, keepdim=False):
        """Positions of the smallest elements, as an array of int64; dim and keepdim are PyTorch's names."""
        return weft.argmin(
            plain(self), axis=axis if dim is None else dim, keepdims=keepdims or keepdim
        )

    def prod(self, axis=None, keepdims=False):
        """weft.prod."""
        return weft.prod(self, axis=axis, keepdims=keepdims)

    def cumsum(self, dim=None, dtype=None):
        """Running sums along an axis; of all elements in a row without one, as in NumPy."""
        x, dim = (self.reshape(-1), 0) if dim is None else (self, dim)
        return weft.cumulative_sum(x, axis=dim, dtype=dtype)

    def amax(self, dim=None, keepdim=False, *, where=None, initial=None):
        """The largest, over axes; where= and initial= as weft.max."""
        if where is not None or initial is not None:
            return weft.max(self, axis=dim, keepdims=keepdim, where=where, initial=initial)
        return self.max(axis=dim, keepdims=keepdim)

    def amin(self, dim=None, keepdim=False, *, where=None, initial=None):
        """The smallest, over axes; where= and initial= as weft.min."""
        if where is not None or initial is not None:
            return weft.min(self, axis=dim, keepdims=keepdim, where=where, initial=initial)
        return self.min(axis=dim, keepdims=keepdim)

    def allclose(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
        """Is every difference at most atol + rtol * |other|?"""
        a, b = self.data, weft.asarray(plain(other))
        close = (a == b) | (weft.abs(a - b) <= atol + rtol * weft.abs(b))
        return bool(weft.all(close | (weft.isnan(a) & weft.isnan(b)) if equal_nan else close))

    def cumprod(self, dim=None, dtype=None):
        """Running products along an axis; of all elements in a row without one, as in NumPy."""
        x, dim = (self.reshape(-1), 0) if dim is None else (self, dim)
        return weft.cumulative_prod(x, axis=axis_of(x, dim), dtype=dtype)

    def logcumsumexp(self, dim):
        """Logarithms of running sums of exponentials along an axis, without overflow or underflow."""
        axis = axis_of(self, dim)
        before, n = (slice(None),) * axis, self.shape[axis]
        x, step = self, 1
        while step < n:  # each entry has the sums of `step` entries up to it
            grown = weft.logaddexp(x[(*before, slice(step, n))], x[(*before, slice(n - step))])
            x = weft.concat([x[(*before, slice(step))], grown], axis=axis)
            step *= 2
        return x

    def nansum(self, dim=None, keepdim=False, *, dtype=None, where=None, initial=None):
        """The sum of what is no NaN, where `where` holds."""
        if initial is not None:
            return self.nansum(dim, keepdim, dtype=dtype, where=where) + initial
        self = self if dtype is None else self.astype(dtype)
        self = self if where is None or where is True else weft.where(where, self, 0)
        x = plain(self)
        if x.dtype.kind in "iub":
            return self.sum(dim, keepdim)
        if isinstance(x, _core.NDArray) and x.device.host_accessible and x.dtype.kind == "f":
            out = self.sum(dim, keepdim)
            holes = weft.isnan(plain(out))
            if not (
                holes.item() if holes.ndim == 0 else weft.any(holes)
            ):  # no NaN among the elements
                return out
        if x.dtype.kind == "f":
            return weft.replace_nan(self, 0.0).sum(dim, keepdim)
        return weft.where(weft.isnan(x), 0.0, self).sum(dim, keepdim)

    def nanmean(self, dim=None, keepdim=False, *, dtype=None, where=None):
        """The mean of what is no NaN, where `where` holds."""
        self = self if dtype is None else self.astype(dtype)
        self = self if where is None or where is True else weft.where(where, self, math.nan)
        if (
            isinstance(self, _core.NDArray)
            and self.device.host_accessible
            and self.dtype.kind == "f"
            and self.size
        ):
            out = weft.mean(self, axis=dim, keepdims=keepdim)
            if not weft.any(weft.isnan(out)):  # no NaN among the elements
                return out
        own, self = self.dtype, widened(self)
        count = (~weft.isnan(plain(self))).astype(self.dtype).sum(dim, keepdim)
        out = self.nansum(dim, keepdim) / count
        return out if out.dtype == own or own.kind != "f" else out.astype(own)

    def median(self, dim=None, keepdim=False):
        """The lower of the two middle elements; along an axis (value, position), as in PyTorch."""
        if dim is None:
            return self.reshape(-1).kthvalue((self.size + 1) // 2, 0)[0]
        return self.kthvalue((self.shape[axis_of(self, dim)] + 1) // 2, dim, keepdim)

    @functools.partial(whole, public="quantile")
    def quantile(
        self, q, dim=None, keepdim=False, *, interpolation="linear", method=None, weights=None
    ):
        """The q-quantile, between two neighbours in proportion; over all elements without an axis.

        interpolation (NumPy: method) and weights: as percentile.
        """
        method = interpolation if method is None else method
        from .._functions.quantiles import _quantiles, _selected, _selects

        if method != "linear" or isinstance(dim, (tuple, list)) or weights is not None:
            return _quantiles(self, q, 1.0, dim, keepdim, "quantile", method, weights)
        if not isinstance(q, (int, float, complex)):  # several, along a first axis
            # A list stays one of Python's numbers: an array of them would be float32.
            if isinstance(q, (list, tuple)):
                weft.asarray(q)  # refuses what is deeper than arrays, or more
                if any(isinstance(one, (list, tuple)) for one in q):
                    q = weft.asarray(q, dtype="float64")
            several = list(q) if isinstance(q, (list, tuple)) else plain(q).reshape(-1).tolist()
            out = weft.stack([self.quantile(one, dim, keepdim) for one in several], axis=0)
            return out if getattr(q, "ndim", 1) == 1 else out.reshape((*q.shape, *out.shape[1:]))
        x, axis = (self.reshape(-1), 0) if dim is None else (self, axis_of(self, dim))
        if not 0 <= q <= 1:
            raise _error(_core.ArgumentError, "tensor.quantile", f"quantile {q}", ["legal: 0 to 1"])
        if isinstance(self, weft.Tensor) and not self.requires_grad and _selects(plain(self)):
            out = _selected(plain(self), [q], dim, keepdim)[0]
            return weft.Tensor(out, requires_grad=False)
        x = x.sort(axis)[0]
        place = q * (x.shape[axis] - 1)
        low = math.floor(place)
        entry = lambda i: x.narrow(axis, i, 1)  # noqa: E731
        out = entry(low)
        if place > low:
            out = out + (entry(low + 1) - out) * (place - low)
        if dim is None:
            return out.reshape((1,) * self.ndim if keepdim else ())
        return out if keepdim else weft.squeeze(out, axis=axis)

    def aminmax(self, dim=None, keepdim=False):
        """(smallest, largest)."""
        return self.amin(dim, keepdim), self.amax(dim, keepdim)

    def trace(self, offset=0):
        """The sum of a matrix's diagonal, or of the one beside it by `offset`."""
        return self.diagonal(offset).sum()

    def cross(self, other, dim=-1, *, axisa=-1, axisb=-1, axisc=-1):
        """The vector product along an axis of three entries; of two, whose third is 0, and of two such the third entry.

        axisa, axisb, axisc: NumPy's names for the vectors' axes of either value and of the result, in place of dim.
        """
        if (axisa, axisb, axisc) != (-1, -1, -1):
            out = weft.moveaxis(self, axisa, -1).cross(weft.moveaxis(other, axisb, -1), -1)
            return out if out.ndim == 0 else weft.moveaxis(out, -1, axisc)
        dim = axis_of(self, dim)
        return weft.linalg.cross(self, other, axis=dim - self.ndim)

    def kron(self, other):
        """The Kronecker product: of matrices blocks, of values of other dimensions likewise along each axis."""
        n = max(self.ndim, other.ndim)
        one, two = ((1,) * (n - x.ndim) + tuple(x.shape) for x in (self, other))
        left = [e for m in one for e in (m, 1)]
        right = [e for m in two for e in (1, m)]
        shape = tuple(a * b for a, b in zip(one, two))
        return (self.reshape(tuple(left)) * other.reshape(tuple(right))).reshape(shape)

    def inner(self, other):
        """Products summed over the last axis of both."""
        if not self.ndim or not other.ndim:
            return self * other
        if self.ndim == other.ndim == 1:
            return self @ other
        if self.ndim == other.ndim == 2 and self.dtype == other.dtype:
            return self @ other.permute(1, 0)
        return weft.tensordot(self, other, axes=((self.ndim - 1,), (other.ndim - 1,)))

    def equal(self, other):
        """Are shapes and all elements equal?"""
        other = plain(other)
        return tuple(other.shape) == self.shape and bool(weft.all(plain(self) == other))

    @composed
    def isclose(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
        """Is each difference at most atol + rtol * |other|? An array of bool."""
        a, b = plain(self), plain(other)
        if type(b) not in (int, float):
            b = b if hasattr(b, "dtype") else weft.asarray(b)
            near = (weft.abs(a - b) <= atol + rtol * weft.abs(b)) & weft.isfinite(b)
            both = weft.isnan(a) & weft.isnan(b) if equal_nan else None
        else:
            near = weft.abs(a - b) <= (atol + rtol * abs(b) if math.isfinite(b) else -1.0)
            both = weft.isnan(a) if equal_nan and b != b else None
        close = (a == b) | near
        return close if both is None else close | both
