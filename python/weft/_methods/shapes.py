# SPDX-License-Identifier: Apache-2.0
"""Methods that give a tensor another shape or part of it, in PyTorch's manner."""

from __future__ import annotations

import itertools

import weft

from .. import _core
from .._core import NDArray, Tensor
from .._errors import error as _error
from .tools import MOST_PARTS, also, axis_of

_flip = _core.Tensor.flip


@also(
    movedim="moveaxis",
    reshape_as="view_as",
    split_with_sizes="split",
    swapdims="swapaxes",
    tile="repeat",
)
class Shapes:
    """Views, parts and rearrangements of a tensor."""

    def view(self, *shape):
        """As reshape; of an element type the memory as elements of that type, without a gradient."""
        if len(shape) == 1 and isinstance(shape[0], weft.dtype):
            return Tensor(self.detach().data.view(shape[0]), requires_grad=False)
        return self.reshape(*shape)

    def unsqueeze(self, dim):
        """With a new axis of extent 1 at `dim`."""
        return weft.expand_dims(self, axis=dim)

    def squeeze(self, dim=None):
        """Without the axes `dim`, which must have extent 1; without all such axes when None."""
        axes = tuple(i for i, n in enumerate(self.shape) if n == 1) if dim is None else dim
        return weft.squeeze(self, axis=axes)

    def flatten(self, start_dim=0, end_dim=-1):
        """With the axes from start_dim to end_dim (inclusive) as one."""
        first, last = start_dim % max(self.ndim, 1), end_dim % max(self.ndim, 1)
        return self.reshape(*self.shape[:first], -1, *self.shape[last + 1 :])

    def split(self, split_size_or_sections, dim=0):
        """Parts along an axis: of one size (the last may be smaller), of the sizes in a list, which must add up, or, of an array,
        between these positions, as in NumPy."""
        dim = axis_of(self, dim)
        if hasattr(split_size_or_sections, "ndim"):
            return tuple(weft.array_split(self, split_size_or_sections.tolist(), dim))
        n, sizes = self.shape[dim], split_size_or_sections
        if isinstance(sizes, int):
            if sizes < 1:
                raise _error(
                    _core.ArgumentError,
                    "tensor.split",
                    f"parts of {sizes} entries",
                    help="give a positive size, or sizes that add up to the axis",
                )
            sizes = [min(sizes, n - at) for at in range(0, n, sizes)]
        elif sum(sizes := list(itertools.islice(sizes, MOST_PARTS + 1))) != n:
            raise _error(
                _core.ShapeError,
                "tensor.split",
                f"sizes {_core.shown(sizes)} add up to {_core.shown(sum(sizes))}, axis {dim} has {n} entries",
                help="give a positive size, or sizes that add up to the axis",
            )
        out, at, front = [], 0, (slice(None),) * dim
        for size in sizes:
            out.append(self[(*front, slice(at, at + size))])
            at += size
        return tuple(out)

    def chunk(self, chunks, dim=0):
        """At most `chunks` parts of one size along an axis; the last may be smaller."""
        return self.split(max(-(-self.shape[axis_of(self, dim)] // chunks), 1), dim)

    def unbind(self, dim=0):
        """The entries along an axis, each with one axis less."""
        return tuple(weft.unstack(self, axis=dim))

    def narrow(self, dim, start, length):
        """Entries start to start + length - 1 along an axis."""
        return self[(slice(None),) * axis_of(self, dim) + (slice(start, start + length),)]

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

    def repeat(self, *sizes):
        """The whole tensor several times along each axis, as in PyTorch; weft.tile."""
        return weft.tile(
            self, tuple(sizes[0]) if sizes and not isinstance(sizes[0], int) else sizes
        )

    def select(self, dim, index):
        """The entry at a position along an axis, which goes."""
        return self[(slice(None),) * axis_of(self, dim) + (index,)]

    def view_as(self, other):
        """In the shape of another."""
        return self.reshape(*other.shape)

    def diagonal(self, offset=0, dim1=0, dim2=1):
        """The diagonals of the matrices in two axes, as the last axis."""
        a, b = axis_of(self, dim1), axis_of(self, dim2)
        rest = [i for i in range(self.ndim) if i not in (a, b)]
        x = self.permute(*rest, a, b)
        rows, columns = x.shape[-2:]
        first, second = max(-offset, 0), max(offset, 0)
        count = max(min(rows - first, columns - second), 0)
        start = first * columns + second
        stop = start + (count - 1) * (columns + 1) + 1 if count else start
        return x.reshape(*x.shape[:-2], rows * columns)[..., start : stop : columns + 1]

    def diag(self, diagonal=0):
        """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
        if self.ndim == 2:
            return self.diagonal(diagonal)
        return self.diag_embed(diagonal)

    def diag_embed(self, offset=0, dim1=-2, dim2=-1):
        """Matrices with the last axis on a diagonal, zeros elsewhere; dim1, dim2: where their rows and columns are in the result."""
        rows, columns = (d % (self.ndim + 1) for d in (dim1, dim2))
        if (rows, columns) != (self.ndim - 1, self.ndim):
            return weft.moveaxis(self.diag_embed(offset), (-2, -1), (rows, columns))
        count = self.shape[-1]
        n = count + abs(offset)
        given = self.data if isinstance(self, Tensor) and not self.requires_grad else self
        if isinstance(given, NDArray) and (given.device.host_accessible or _core._has_grid(given)):
            out = weft.zeros((*given.shape[:-1], n, n), dtype=given.dtype, device=given.device)
            first = offset if offset >= 0 else -offset * n
            lines = out.reshape(*given.shape[:-1], n * n)
            lines[..., first : first + count * (n + 1) : n + 1] = given
            return out if given is self else Tensor(out, requires_grad=False)
        if count == 0:
            return weft.zeros((*self.shape[:-1], n, n), dtype=self.dtype, device=self.device)
        # An element every n + 1 places of the matrix in a row.
        apart = weft.nn.functional.pad(self.unsqueeze(-1), (0, n))
        line = apart.reshape(*self.shape[:-1], count * (n + 1))[..., : (count - 1) * (n + 1) + 1]
        first = offset if offset >= 0 else -offset * n
        line = weft.nn.functional.pad(line, (first, n * n - first - line.shape[-1]))
        return line.reshape(*self.shape[:-1], n, n)

    def rot90(self, k=1, dims=(0, 1)):
        """Turned by k right angles from the first axis towards the second."""
        a, b = (axis_of(self, d) for d in dims)
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

    def swapaxes(self, axis0, axis1):
        """Two axes exchanged."""
        return self.transpose(axis0, axis1)

    def ravel(self):
        """The elements in a row."""
        return self.reshape(-1)

    def unflatten(self, dim, sizes):
        """One axis as several."""
        dim = axis_of(self, dim)
        return self.reshape(*self.shape[:dim], *sizes, *self.shape[dim + 1 :])

    def unfold(self, dimension, size, step):
        """Windows of `size` entries every `step` along an axis; their entries are a new last axis."""
        dim = axis_of(self, dimension)
        if not self.requires_grad and self.device.host_accessible and 0 < size <= self.shape[dim]:
            view = weft.sliding_window_view(self.data, size, dim)
            view = view[(slice(None),) * dim + (slice(None, None, step),)]
            return _core.Tensor(view, requires_grad=False)
        count = (self.shape[dim] - size) // step + 1
        at = (weft.arange(count)[:, None] * step + weft.arange(size)[None, :]).reshape(-1)
        x = self.index_select(dim, at.to(self.device)).unflatten(dim, (count, size))
        order = [i for i in range(x.ndim) if i != dim + 1]
        return x.permute(*order, dim + 1)

    def tensor_split(self, parts, dim=0):
        """`parts` pieces along an axis, the first ones longer by one where it does not divide; or cut before indices."""
        return tuple(weft.array_split(self, parts, axis_of(self, dim)))

    def flip(self, *axes, dims=None):
        """With axes reversed; `dims` is PyTorch's name of them."""
        axes = axes if dims is None else dims if isinstance(dims, (tuple, list)) else (dims,)
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return _flip(self, *axes)

    def sum_to_size(self, *size):
        """Summed over the axes that were broadcast from a shape."""
        size = tuple(size[0]) if size and not isinstance(size[0], int) else size
        lead = self.ndim - len(size)
        x = self.sum(tuple(range(lead))) if lead else self
        axes = tuple(i for i, (n, m) in enumerate(zip(x.shape, size)) if m == 1 and n != 1)
        return x.sum(axes, True) if axes else x

    def moveaxis(self, source, destination):
        """weft.moveaxis of the tensor."""
        return weft.moveaxis(self, source, destination)

    def roll(self, shift=None, axis=None, *, shifts=None):
        """weft.roll of the tensor; shifts and dims are PyTorch's names."""
        return weft.roll(self, shift if shifts is None else shifts, axis=axis)
