# SPDX-License-Identifier: Apache-2.0
"""More of PyTorch's methods of tensors, composed of the namespace's functions; they keep the graph where one can exist."""

from __future__ import annotations

import math

from . import _core
from ._core import NDArray, Tensor
from ._errors import error as _error
from ._tensor_methods import _axis


def _weft():
    import weft

    return weft


def _plain(x):
    return x.data if isinstance(x, Tensor) else x


def _index(x, like):
    return _weft().asarray(_plain(x)).to(like.device).astype("int64")


def addcmul(self, a, b, *, value=1):
    """self + value * a * b."""
    return self + a * b * value


def addcdiv(self, a, b, *, value=1):
    """self + value * a / b."""
    return self + a / b * value


def baddbmm(self, a, b, *, beta=1, alpha=1):
    """beta * self + alpha * (a @ b), a product for each entry of a batch."""
    return self * beta + (a @ b) * alpha


def addbmm(self, a, b, *, beta=1, alpha=1):
    """beta * self + alpha * the sum of a batch of products."""
    return self * beta + (a @ b).sum(0) * alpha


def addmv(self, matrix, vector, *, beta=1, alpha=1):
    """beta * self + alpha * (matrix @ vector)."""
    return self * beta + (matrix @ vector) * alpha


def addr(self, a, b, *, beta=1, alpha=1):
    """beta * self + alpha * the products of all pairs of two vectors."""
    return self * beta + a.reshape(-1, 1) * b.reshape(1, -1) * alpha


def clamp_min(self, min):
    """Every element at least min."""
    return self.clip(min, None)


def clamp_max(self, max):
    """Every element at most max."""
    return self.clip(None, max)


def cumprod(self, dim):
    """Running products along an axis."""
    return _weft().cumulative_prod(self, axis=_axis(self, dim))


def logcumsumexp(self, dim):
    """Logarithms of running sums of exponentials along an axis."""
    top = self.detach().amax(dim, True)
    return _weft().log(_weft().exp(self - top).cumsum(dim)) + top


def dist(self, other, p=2):
    """The p-norm of self - other."""
    return (self - other).norm(p)


def lerp(self, end, weight):
    """self + weight * (end - self)."""
    return self + (end - self) * weight


def frac(self):
    """self - trunc(self)."""
    return self - _weft().trunc(self.detach())


def fmod(self, other):
    """The rest with the sign of self: self - other * trunc(self / other)."""
    quotient = _weft().trunc((self / other).detach() if isinstance(self, Tensor) else self / other)
    return self - quotient * other


def logit(self, eps=None):
    """log(x / (1 - x)), x held between eps and 1 - eps."""
    x = self if eps is None else self.clip(eps, 1 - eps)
    return _weft().log(x) - _weft().log1p(-x)


def erfc(self):
    """1 - erf(x)."""
    return 1.0 - _weft().erf(self)


def sinc(self):
    """sin(pi x) / (pi x), 1 at 0."""
    weft = _weft()
    zero = _plain(self) == 0
    x = weft.where(zero, self * 0 + 1.0, self) * math.pi
    return weft.where(zero, self * 0 + 1.0, weft.sin(x) / x)


def xlogy(self, other):
    """self * log(other), 0 where self is 0 and the logarithm no number."""
    weft = _weft()
    none = (_plain(self) == 0) & (_plain(other) <= 0)
    return weft.where(none, self * 0.0, self * weft.log(weft.where(none, 1.0, other)))


def deg2rad(self):
    """Degrees as radians."""
    return self * (math.pi / 180)


def rad2deg(self):
    """Radians as degrees."""
    return self * (180 / math.pi)


def nan_to_num(self, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities as numbers: the type's largest unless given."""
    weft = _weft()
    x = _plain(self)
    limit = weft.finfo(x.dtype)
    out = weft.where(weft.isnan(x), nan, self)
    high, low = x == math.inf, x == -math.inf
    out = weft.where(high, limit.max if posinf is None else posinf, out)
    return weft.where(low, limit.min if neginf is None else neginf, out)


def nansum(self, dim=None, keepdim=False):
    """The sum of what is no NaN."""
    return _weft().where(_weft().isnan(_plain(self)), 0.0, self).sum(dim, keepdim)


def nanmean(self, dim=None, keepdim=False):
    """The mean of what is no NaN."""
    count = (~_weft().isnan(_plain(self))).astype(self.dtype).sum(dim, keepdim)
    return nansum(self, dim, keepdim) / count


def kthvalue(self, k, dim=-1, keepdim=False):
    """(value, position) of the k-th smallest along an axis, from 1."""
    dim = _axis(self, dim)
    if not 1 <= k <= self.shape[dim]:
        raise _error(
            _core.IndexError,
            "tensor.kthvalue",
            f"kthvalue {k} along axis {dim} of shape {self.shape}",
            [f"legal: 1 to {self.shape[dim]}"],
        )
    at = self.argsort(dim)
    at = at[(slice(None),) * dim + (slice(k - 1, k),)]
    value = _weft().take_along_axis(self, at, axis=dim)
    return (value, at) if keepdim else (value.squeeze(dim), at.squeeze(dim))


def median(self, dim=None, keepdim=False):
    """The lower of the two middle elements; along an axis (value, position), as in PyTorch."""
    if dim is None:
        return self.reshape(-1).kthvalue((self.size + 1) // 2, 0)[0]
    return self.kthvalue((self.shape[_axis(self, dim)] + 1) // 2, dim, keepdim)


def quantile(self, q, dim=None, keepdim=False):
    """The q-quantile, between two neighbours in proportion; over all elements without an axis."""
    weft = _weft()
    x, axis = (self.reshape(-1), 0) if dim is None else (self, _axis(self, dim))
    if not 0 <= q <= 1:
        raise _error(_core.ArgumentError, "tensor.quantile", f"quantile {q}", ["legal: 0 to 1"])
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


def msort(self):
    """Sorted along the first axis."""
    return self.sort(0)[0]


def aminmax(self, dim=None, keepdim=False):
    """(smallest, largest)."""
    return self.amin(dim, keepdim), self.amax(dim, keepdim)


def masked_select(self, mask):
    """The elements where the mask is true, in a row."""
    mask = _weft().asarray(_plain(mask)).astype("bool").to(self.device)
    return self.broadcast_to(mask.shape)[mask] if mask.shape != self.shape else self[mask]


def index_fill(self, dim, index, value):
    """With a number at positions along an axis."""
    weft = _weft()
    dim = _axis(self, dim)
    at = weft.arange(self.shape[dim], device=self.device)
    hit = weft.any(at[:, None] == _index(index, self)[None, :], axis=1)
    shape = tuple(n if i == dim else 1 for i, n in enumerate(self.shape))
    return weft.where(hit.reshape(shape), value, self)


def _lines(name, x, dim, index):
    """(axis, index, index arrays of all axes) of a scatter. Raises ShapeError for an index that does not fit."""
    dim, index = _axis(x, dim), _index(index, x)
    if index.ndim != x.ndim or any(
        n > m for i, (n, m) in enumerate(zip(index.shape, x.shape)) if i != dim
    ):
        raise _error(
            _core.ShapeError,
            "tensor.scatter",
            f"{name} into shape {x.shape} at indices of shape {index.shape}",
            ["rule: as many axes; extents at most the tensor's, beside the axis"],
        )
    weft = _weft()
    places = []
    for i, n in enumerate(index.shape):
        shape = tuple(n if k == i else 1 for k in range(index.ndim))
        places.append(index if i == dim else weft.arange(n, device=x.device).reshape(shape))
    return dim, index, tuple(places)


def _source(src, index):
    """The part of a source that belongs to the indices."""
    return src[tuple(slice(n) for n in index.shape)]


def scatter_add(self, dim, index, src):
    """With src[...] added at the positions index[...] along an axis; positions may occur several times.

    index may be smaller than src and, beside the axis, than the tensor. Raises ShapeError, IndexError.
    """
    dim, index, places = _lines("scatter_add", self, dim, index)
    return _weft().scatter(self, places, _source(src, index), accumulate=True)


def scatter(self, dim, index, src):
    """With src[...], or a number, at the positions index[...] along an axis; of equal positions the last stands.

    Raises ShapeError, IndexError.
    """
    weft = _weft()
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
    dim = _axis(self, dim)
    index = _index(index, self)
    shape = tuple(-1 if i == dim else 1 for i in range(source.ndim))
    spread = index.reshape(shape).broadcast_to(source.shape)
    return scatter_add(self, dim, spread, source * alpha)


def take_flat(self, index):
    """Elements at positions in the row of all elements."""
    index = _index(index, self)
    return self.reshape(-1).index_select(0, index.reshape(-1)).reshape(*index.shape)


def take_along_dim(self, index, dim=None):
    """gather; of the elements in a row when dim is None."""
    if dim is None:
        return self.reshape(-1).gather(0, _index(index, self).reshape(-1))
    return self.gather(dim, _index(index, self))


def repeat_interleave(self, repeats, dim=None):
    """Each entry several times: weft.repeat."""
    repeats = repeats if isinstance(repeats, int) else _index(repeats, self)
    x, dim = (self.reshape(-1), 0) if dim is None else (self, dim)
    at = _weft().repeat(_weft().arange(x.shape[dim], device=x.device), repeats)
    return x.index_select(dim, at)


def diagonal(self, offset=0, dim1=0, dim2=1):
    """The diagonals of the matrices in two axes, as the last axis."""
    weft = _weft()
    a, b = _axis(self, dim1), _axis(self, dim2)
    rest = [i for i in range(self.ndim) if i not in (a, b)]
    x = self.permute(*rest, a, b)
    rows, columns = x.shape[-2:]
    first, second = max(-offset, 0), max(offset, 0)
    count = max(min(rows - first, columns - second), 0)
    at = (weft.arange(count) + first) * columns + weft.arange(count) + second
    flat = x.reshape(*x.shape[:-2], rows * columns)
    return flat.index_select(flat.ndim - 1, at.to(self.device))


def diag(self, diagonal=0):
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if self.ndim == 2:
        return self.diagonal(diagonal)
    return diag_embed(self, diagonal)


def diag_embed(self, offset=0):
    """Matrices with the last axis on a diagonal, zeros elsewhere."""
    weft = _weft()
    count = self.shape[-1]
    n = count + abs(offset)
    rows, columns = (weft.arange(n, device=self.device)[:, None] for _ in (0, 1))
    place = columns.T - rows == offset
    at = weft.clip(rows - max(-offset, 0), 0, count - 1).reshape(-1)
    spread = self.index_select(self.ndim - 1, at).unsqueeze(-1)
    return weft.where(place, spread, spread * 0.0)


def trace(self):
    """The sum of a matrix's diagonal."""
    return self.diagonal().sum()


def rot90(self, k=1, dims=(0, 1)):
    """Turned by k right angles from the first axis towards the second."""
    a, b = (_axis(self, d) for d in dims)
    k %= 4
    if k == 0:
        return self
    if k == 2:
        return self.flip(a, b)
    return self.transpose(a, b).flip(a) if k == 1 else self.transpose(a, b).flip(b)


def fliplr(self):
    """The second axis reversed."""
    return self.flip(1)


def flipud(self):
    """The first axis reversed."""
    return self.flip(0)


def swapaxes(self, a, b):
    """Two axes exchanged."""
    return self.transpose(a, b)


def ravel(self):
    """The elements in a row."""
    return self.reshape(-1)


def unflatten(self, dim, sizes):
    """One axis as several."""
    dim = _axis(self, dim)
    return self.reshape(*self.shape[:dim], *sizes, *self.shape[dim + 1 :])


def unfold(self, dimension, size, step):
    """Windows of `size` entries every `step` along an axis; their entries are a new last axis."""
    weft = _weft()
    dim = _axis(self, dimension)
    count = (self.shape[dim] - size) // step + 1
    at = (weft.arange(count)[:, None] * step + weft.arange(size)[None, :]).reshape(-1)
    x = self.index_select(dim, at.to(self.device)).unflatten(dim, (count, size))
    order = [i for i in range(x.ndim) if i != dim + 1]
    return x.permute(*order, dim + 1)


def tensor_split(self, parts, dim=0):
    """`parts` pieces along an axis, the first ones longer by one where it does not divide; or cut before indices."""
    dim = _axis(self, dim)
    n = self.shape[dim]
    if isinstance(parts, int):
        sizes = [n // parts + (i < n % parts) for i in range(parts)]
        cuts = [sum(sizes[: i + 1]) for i in range(parts - 1)]
    else:
        cuts = list(parts)
    edges = [0, *cuts, n]
    front = (slice(None),) * dim
    return tuple(self[(*front, slice(a, b))] for a, b in zip(edges, edges[1:]))


def cross(self, other, dim=-1):
    """The vector product along an axis of three entries."""
    dim = _axis(self, dim)
    a, b = (tuple(x.select(dim, i) for i in range(3)) for x in (self, other))
    parts = [a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)]
    return _weft().stack(parts, axis=dim)


def kron(self, other):
    """The Kronecker product of two matrices."""
    (a, b), (c, d) = self.shape, other.shape
    return (self.reshape(a, 1, b, 1) * other.reshape(1, c, 1, d)).reshape(a * c, b * d)


def inner(self, other):
    """Products summed over the last axis of both."""
    return _weft().tensordot(self, other, axes=((self.ndim - 1,), (other.ndim - 1,)))


def sum_to_size(self, *size):
    """Summed over the axes that were broadcast from a shape."""
    size = tuple(size[0]) if size and not isinstance(size[0], int) else size
    lead = self.ndim - len(size)
    x = self.sum(tuple(range(lead))) if lead else self
    axes = tuple(i for i, (n, m) in enumerate(zip(x.shape, size)) if m == 1 and n != 1)
    return x.sum(axes, True) if axes else x


def new_full(self, size, fill_value, dtype=None, device=None):
    """A tensor of one number with this type and device."""
    made = _weft().full(
        tuple(size), fill_value, dtype=dtype or self.dtype, device=device or self.device
    )
    return Tensor(made, requires_grad=False)


def new_tensor(self, data, dtype=None, device=None):
    """A tensor of the data with this type and device."""
    made = _weft().asarray(data, dtype=dtype or self.dtype, device=device or self.device)
    return Tensor(made, requires_grad=False)


def is_floating_point(self):
    """Are the elements real floats?"""
    return _weft().isdtype(self.dtype, "real floating")


def is_complex(self):
    """Are the elements complex?"""
    return _weft().isdtype(self.dtype, "complex floating")


def element_size(self):
    """Bytes of an element."""
    return self.dtype.itemsize


def equal(self, other):
    """Are shapes and all elements equal?"""
    other = _plain(other)
    return tuple(other.shape) == self.shape and bool(_weft().all(_plain(self) == other))


def isclose(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Is each difference at most atol + rtol * |other|? An array of bool."""
    weft = _weft()
    a, b = _plain(self), weft.asarray(_plain(other))
    close = (a == b) | (weft.abs(a - b) <= atol + rtol * weft.abs(b))
    return close | (weft.isnan(a) & weft.isnan(b)) if equal_nan else close


def argwhere(self):
    """Positions of the elements that are not zero, one in each row."""
    weft = _weft()
    return weft.stack(weft.nonzero(_plain(self)), axis=1)


def bincount(self, minlength=0):
    """How often each integer from 0 on occurs. Raises ArgumentError for negative ones."""
    weft = _weft()
    x = weft.reshape(_plain(self).astype("int64", copy=False), (-1,))
    low, high = (weft.stack([weft.min(x), weft.max(x)]).tolist()) if x.size else (0, -1)
    if low < 0:
        raise _error(
            weft.ArgumentError,
            "array.bincount.negative",
            f"bincount of {low}",
            note="legal: integers from 0 on",
        )
    n = max(high + 1, minlength)
    counts = _core._histogram(x, n)
    if counts is not None:
        return counts
    one = weft.ones((), dtype="int64", device=x.device)
    out = weft.zeros((n,), dtype="int64", device=x.device)
    return weft.scatter(out, x, one, accumulate=True)


def bernoulli(self):
    """0 or 1, 1 with the probabilities that the elements are."""
    weft = _weft()
    draw = weft.random.uniform(self.shape).to(self.device)
    return Tensor((draw < _plain(self)).astype(self.dtype), requires_grad=False)


METHODS = (
    *(addcmul, addcdiv, baddbmm, addbmm, addmv, addr, clamp_min, clamp_max, cumprod, logcumsumexp),
    *(dist, lerp, frac, fmod, logit, erfc, sinc, xlogy, deg2rad, rad2deg, nan_to_num, nansum),
    *(nanmean, kthvalue, median, quantile, msort, aminmax, masked_select, index_fill),
    *(
        scatter,
        scatter_add,
        index_add,
        take_along_dim,
        repeat_interleave,
        diagonal,
        diag,
        diag_embed,
    ),
    *(trace, rot90, fliplr, flipud, swapaxes, ravel, unflatten, unfold, tensor_split, cross),
    *(kron, inner, sum_to_size, new_full, new_tensor, is_floating_point, is_complex),
    *(element_size, equal, isclose, argwhere, bincount, bernoulli),
)
NAMES = {f.__name__: f for f in METHODS}
NAMES |= {
    "take": take_flat,
    "swapdims": swapaxes,
    "split_with_sizes": Tensor.split,
    "subtract": Tensor.sub,
    "multiply": Tensor.mul,
    "divide": Tensor.div,
    "true_divide": Tensor.div,
    "absolute": Tensor.abs,
    "fix": Tensor.trunc,
    "clip": Tensor.clip,
    "arcsin": Tensor.asin,
    "arccos": Tensor.acos,
    "arctan": Tensor.atan,
    "ndimension": Tensor.dim,
    "nelement": Tensor.numel,
    "greater": Tensor.gt,
    "greater_equal": Tensor.ge,
    "less": Tensor.lt,
    "less_equal": Tensor.le,
    "not_equal": Tensor.ne,
    "vdot": Tensor.dot,
    "ger": Tensor.outer,
    "tile": Tensor.repeat,
}
for _name, _method in NAMES.items():
    if not hasattr(Tensor, _name):
        setattr(Tensor, _name, _method)


def _negative(self):
    """-self."""
    return -self


Tensor.neg = Tensor.negative = _negative


def _masks(name, symbol):
    def method(self, other):
        out = getattr(_weft(), name)(self.data, _plain(other))
        return Tensor(out, requires_grad=False)

    method.__doc__ = f"self {symbol} other of masks and integers, without gradient."
    return method


def _invert(self):
    """Each bit of a mask or of integers turned, without gradient."""
    return Tensor(_weft().bitwise_invert(self.data), requires_grad=False)


for _dunder, _name, _symbol in (
    ("and", "bitwise_and", "&"),
    ("or", "bitwise_or", "|"),
    ("xor", "bitwise_xor", "^"),
):
    setattr(Tensor, f"__{_dunder}__", _masks(_name, _symbol))
    setattr(Tensor, f"__r{_dunder}__", _masks(_name, _symbol))
    setattr(Tensor, f"logical_{_dunder}", _masks(f"logical_{_dunder}", _dunder))
Tensor.__invert__ = _invert

_flip = Tensor.flip


def flip(self, *axes, dims=None):
    """With axes reversed; `dims` is PyTorch's name of them."""
    axes = axes if dims is None else dims if isinstance(dims, (tuple, list)) else (dims,)
    axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return _flip(self, *axes)


def type_(self, dtype):
    """As another element type."""
    return self.astype(dtype)


def is_contiguous(self):
    """Do the elements lie in order without gaps?"""
    return self.data.is_contiguous()


def stride(self, dim=None):
    """The steps of the axes, in elements."""
    return self.data.strides if dim is None else self.data.strides[_axis(self, dim)]


def cuda(self):
    """As to("cuda:0"). Raises DeviceError without one."""
    return self.to("cuda:0")


Tensor.flip, Tensor.type, Tensor.is_contiguous = flip, type_, is_contiguous
Tensor.stride, Tensor.cuda = stride, cuda
