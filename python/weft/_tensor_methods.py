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


def repeat(self, *sizes):
    """The whole tensor several times along each axis, as in PyTorch; weft.tile."""
    import weft

    return weft.tile(self, tuple(sizes[0]) if sizes and not isinstance(sizes[0], int) else sizes)


def select(self, dim, index):
    """The entry at a position along an axis, which goes."""
    return self[(slice(None),) * _axis(self, dim) + (index,)]


def topk(self, k, dim=-1, largest=True):
    """(values, positions) of the k largest or smallest along an axis, in order."""
    import weft

    return weft.topk(self, k, axis=dim, largest=largest)


def argsort(self, dim=-1, descending=False):
    """Positions that would sort along an axis."""
    import weft

    return weft.argsort(self.data, axis=dim, descending=descending)


def sort(self, dim=-1, descending=False):
    """(values, positions) sorted along an axis."""
    import weft

    at = self.argsort(dim, descending)
    return weft.take_along_axis(self, at, axis=dim), at


def addmm(self, a, b, *, beta=1, alpha=1):
    """beta * self + alpha * (a @ b)."""
    return self * beta + (a @ b) * alpha


def mv(self, vector):
    """The product of a matrix and a vector."""
    return self @ vector


def outer(self, other):
    """The products of all pairs of two vectors."""
    return self.reshape(-1, 1) * other.reshape(1, -1)


def dot(self, other):
    """The inner product of two vectors."""
    return self @ other


def view_as(self, other):
    """In the shape of another."""
    return self.reshape(*other.shape)


def amax(self, dim=None, keepdim=False):
    """The largest, over axes."""
    return self.max(dim, keepdim)


def amin(self, dim=None, keepdim=False):
    """The smallest, over axes."""
    return self.min(dim, keepdim)


def allclose(self, other, rtol=1e-5, atol=1e-8):
    """Is every difference at most atol + rtol * |other|?"""
    import weft

    a, b = self.data, weft.asarray(getattr(other, "data", other))
    return bool(weft.all((a == b) | (weft.abs(a - b) <= atol + rtol * weft.abs(b))))


def _new(name):
    def method(self, *size, dtype=None, device=None):
        import weft

        shape = tuple(size[0]) if size and not isinstance(size[0], int) else size
        data = getattr(weft, name)(shape, dtype=dtype or self.dtype, device=device or self.device)
        return Tensor(data, requires_grad=False)

    method.__doc__ = f"A tensor of {name} with this type and device."
    return method


_move = Tensor.to


def to(self, device=None, dtype=None):
    """On a device, or converted to an element type, or both."""
    if isinstance(device, _core.dtype):
        device, dtype = None, device
    moved = self if device is None else _move(self, device)
    return moved if dtype is None else moved.astype(dtype)


METHODS = {
    f.__name__: f
    for f in (
        *(split, chunk, unbind, narrow, masked_fill, expand, expand_as, norm, index_select),
        *(gather, t, type_as, double, half, cumsum, clamp, repeat, select, topk, argsort, sort),
        *(addmm, mv, outer, dot, view_as, amax, amin, allclose, to),
    )
}
METHODS["float"] = _float
METHODS |= {"reshape_as": view_as}
METHODS |= {"new_zeros": _new("zeros"), "new_ones": _new("ones"), "new_empty": _new("empty")}
METHODS |= {"long": _whole("int64"), "int": _whole("int32"), "bool": _whole("bool")}
METHODS |= {
    n: _compared(getattr(operator, n), s)
    for n, s in [("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")]
}
METHODS |= {
    n: _named(n)
    for n in (
        "log1p expm1 reciprocal sign floor ceil round isnan isfinite isinf tril triu trunc erf exp2 log2 log10 "
        "tan asin acos atan sinh cosh asinh acosh atanh maximum minimum atan2 hypot remainder floor_divide "
        "copysign logaddexp count_nonzero nonzero moveaxis diff"
    ).split()
}
METHODS["movedim"] = METHODS["moveaxis"]
METHODS["roll"] = _named("roll", shifts="shift", dims="axis")
for _name, _method in METHODS.items():
    _method.__name__ = _method.__qualname__ = _name
    setattr(Tensor, _name, _method)

# Comparisons give arrays; (guess == labels).float().mean() is how accuracy is written.
for _name, _dtype in {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "bool": "bool",
}.items():

    def _method(self, _dtype=_dtype):
        return self.astype(_dtype)

    _method.__doc__ = f"As {_dtype}."
    _method.__name__ = _method.__qualname__ = _name
    setattr(_core.NDArray, _name, _method)
