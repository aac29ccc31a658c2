# SPDX-License-Identifier: Apache-2.0
"""Methods of tensors that users of PyTorch reach for; all keep the graph unless they say otherwise."""

from __future__ import annotations

import operator

from . import _core
from ._core import Tensor
from ._errors import error as _error


def _axis(x, dim):
    if not -x.ndim <= dim < x.ndim:
        raise _error(
            _core.IndexError,
            "tensor.dim",
            f"axis {dim} of a tensor with {x.ndim} dimensions",
            [f"legal: {-x.ndim} to {x.ndim - 1}"],
        )
    return dim % x.ndim


def split(self, split_size_or_sections, dim=0):
    """Parts along an axis: of one size (the last may be smaller), or of the sizes in a list, which must add up."""
    dim = _axis(self, dim)
    n, sizes = self.shape[dim], split_size_or_sections
    if isinstance(sizes, int):
        if sizes < 1:
            raise _error(_core.ArgumentError, "tensor.split", f"parts of {sizes} entries")
        sizes = [min(sizes, n - at) for at in range(0, n, sizes)]
    elif sum(sizes) != n:
        raise _error(
            _core.ShapeError,
            "tensor.split",
            f"sizes {list(sizes)} add up to {sum(sizes)}, axis {dim} has {n} entries",
        )
    out, at = [], 0
    for size in sizes:
        out.append(self.narrow(dim, at, size))
        at += size
    return tuple(out)


def chunk(self, chunks, dim=0):
    """At most `chunks` parts of one size along an axis; the last may be smaller."""
    return self.split(max(-(-self.shape[_axis(self, dim)] // chunks), 1), dim)


def unbind(self, dim=0):
    """The entries along an axis, each with one axis less."""
    import weft

    return tuple(weft.unstack(self, axis=dim))


def narrow(self, dim, start, length):
    """Entries start to start + length - 1 along an axis."""
    return self[(slice(None),) * _axis(self, dim) + (slice(start, start + length),)]


def masked_fill(self, mask, value):
    """With `value` where the mask, which broadcasts, is true."""
    import weft

    return weft.where(weft.asarray(getattr(mask, "data", mask)).astype("bool"), value, self)


def expand(self, *sizes):
    """Broadcast to a shape; -1 leaves an extent."""
    sizes = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    lead = len(sizes) - self.ndim
    return self.broadcast_to(
        tuple(self.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(sizes))
    )


def expand_as(self, other):
    """Broadcast to the shape of another."""
    return self.broadcast_to(other.shape)


def norm(self, p=2, dim=None, keepdim=False):
    """The p-norm over all elements, or along an axis."""
    import weft

    if p == 2:
        return weft.sqrt((self * self).sum(dim, keepdim))
    return (weft.abs(self) ** p).sum(dim, keepdim) ** (1.0 / p)


def index_select(self, dim, index):
    """Entries at positions along an axis."""
    import weft

    return weft.take(self, weft.asarray(getattr(index, "data", index)), axis=dim)


def gather(self, dim, index):
    """The element at index[..., i, ...] along an axis for each position of index."""
    import weft

    return weft.take_along_axis(self, weft.asarray(getattr(index, "data", index)), axis=dim)


def t(self):
    """The transpose of a matrix; vectors and scalars as they are. Raises ShapeError above two dimensions."""
    if self.ndim > 2:
        raise _error(
            _core.ShapeError,
            "tensor.t",
            f"t() of shape {self.shape}",
            help="name the axes: permute",
        )
    return self.transpose(0, 1) if self.ndim == 2 else self


def type_as(self, other):
    """With the element type of another."""
    return self.astype(other.dtype)


def double(self):
    """As float64."""
    return self.astype("float64")


def half(self):
    """As float16."""
    return self.astype("float16")


def _float(self):
    """As float32."""
    return self.astype("float32")


def _whole(name):
    def method(self):
        return self.data.astype(name)

    method.__doc__ = f"The elements as an array of {name}, without the graph."
    return method


def _compared(function, symbol):
    def method(self, other):
        return function(self, other)

    method.__doc__ = f"self {symbol} other, as an array of bool."
    return method


def _named(name, **renamed):
    def method(self, *args, **kwargs):
        import weft

        for theirs, ours in renamed.items():
            if theirs in kwargs:
                kwargs[ours] = kwargs.pop(theirs)
        return getattr(weft, name)(self, *args, **kwargs)

    method.__doc__ = f"weft.{name} of the tensor."
    return method


def cumsum(self, dim):
    """Running sums along an axis."""
    import weft

    return weft.cumulative_sum(self, axis=dim)


def clamp(self, min=None, max=None):
    """Every element brought between min and max."""
    return self.clip(min, max)


METHODS = {
    f.__name__: f
    for f in (
        *(split, chunk, unbind, narrow, masked_fill, expand, expand_as, norm, index_select),
        *(gather, t, type_as, double, half, cumsum, clamp),
    )
}
METHODS["float"] = _float
METHODS |= {"long": _whole("int64"), "int": _whole("int32"), "bool": _whole("bool")}
METHODS |= {
    n: _compared(getattr(operator, n), s)
    for n, s in [("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")]
}
METHODS |= {
    n: _named(n)
    for n in "log1p expm1 reciprocal sign floor ceil round isnan isfinite isinf tril triu".split()
}
METHODS["roll"] = _named("roll", shifts="shift", dims="axis")
for _name, _method in METHODS.items():
    _method.__name__ = _method.__qualname__ = _name
    setattr(Tensor, _name, _method)
