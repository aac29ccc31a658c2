# SPDX-License-Identifier: Apache-2.0
"""Methods of arrays in NumPy's manner: names, order of arguments and defaults are NumPy's."""

from __future__ import annotations

import functools
import math
import os

import weft

from .._core import shown as _shown
from .. import _core
from .._core import Tensor
from .._errors import error as _error
from .._pointwise import composed
from .arithmetic import Arithmetic
from .common import no_out
from .of_arrays import on_arrays
from .tools import filled


_on = _core.NDArray.to


def _spread_of(name):
    def method(self, axis=None, keepdims=False, dtype=None, out=None, ddof=0, correction=None):
        no_out(out)
        x = self if dtype is None else self.astype(dtype)
        less = ddof if correction is None else correction
        return getattr(weft, name)(x, axis=axis, correction=less, keepdims=keepdims)

    method.__doc__ = f"weft.{name}; the divisor is the count less `ddof`, or `correction`."
    return method


def _position(name):
    def method(self, axis=None, keepdims=False, out=None):
        no_out(out)
        return getattr(weft, name)(self, axis=axis, keepdims=keepdims)

    method.__doc__ = f"weft.{name}."
    return method


def _running(function, x, axis, dtype, out):
    no_out(out)
    if axis is None:
        return function(x.reshape(-1), axis=0, dtype=dtype)
    return function(x, axis=axis, dtype=dtype)


@composed
def _rounded(x, scale):
    return weft.round(x * scale) / scale


def _part(name):
    def read(self):
        if self.dtype.kind == "c":
            return _core.operations[name](self)
        return self if name == "real" else self - self

    def write(self, values):
        if self.dtype.kind == "c":
            parts = [values, _core.operations["imag"](self)]
            if name == "imag":
                parts = [_core.operations["real"](self), values]
            re, im = (weft.asarray(p).astype(_core.operations["real"](self).dtype) for p in parts)
            self[...] = re + im * weft.asarray(1j, dtype=self.dtype)
        elif name == "real":
            self[...] = values
        else:
            raise _error(
                _core.DTypeError,
                "array.imag.dtype",
                f"an array of {self.dtype} has no imaginary part to write",
                help="make it complex first: x.astype(weft.complex64)",
            )

    return property(read, write, doc=f"The {name} part, a copy for complex numbers.")


class _Flat:
    """An array's elements in a row."""

    def __init__(self, x):
        self._x = x

    def __iter__(self):
        return iter(self._x.reshape(-1).tolist())

    def __len__(self):
        return self._x.size

    def __getitem__(self, key):
        return self._x.reshape(-1)[key]

    def __setitem__(self, key, values):
        row = self._x.reshape(-1).copy()
        row[key] = values
        self._x[...] = row.reshape(self._x.shape)


class _Flags:
    """NumPy's flags of an array."""

    writeable = aligned = True
    owndata = False

    def __init__(self, x):
        self.c_contiguous = x.is_contiguous()
        self.f_contiguous = x.permute(tuple(reversed(range(x.ndim)))).is_contiguous()
        self.contiguous = self.c_contiguous

    def __getitem__(self, name):
        return getattr(self, {"C": "c_contiguous", "F": "f_contiguous"}.get(name, name.lower()))


def _turned(x):
    return x.permute(tuple(reversed(range(x.ndim))))


def _type_named(x):
    """The element type that view's argument names, None for extents."""
    if isinstance(x, _core.dtype):
        return x
    if isinstance(x, (int, tuple, list)) and not isinstance(x, type):
        return None
    return weft.zeros(0, dtype=x).dtype


@filled(_spread_of, "std var")
@filled(_position, "argmax argmin")
class ArrayMethods:
    """Of arrays alone: where NumPy and PyTorch differ, NumPy's meaning."""

    def __array_namespace__(self, /, *, api_version=None):
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise _error(
                _core.ArgumentError,
                "array.api.version",
                f"version {_shown(api_version)} is not offered",
                help='"2024.12" is offered; leave api_version out',
            )
        return weft

    def to_device(self, device, /, *, stream=None):
        """The array on a device: the array API's spelling of to(device)."""
        if stream is not None:
            raise _error(
                _core.ArgumentError,
                "array.to_device.stream",
                f"{self.device} takes no stream, got {_shown(stream)}",
                help="leave stream out; weft orders its own work",
            )
        return self.to(device)

    @staticmethod
    def make(shape, strides=None, device=None, handle=None, offset=0, dtype=None):
        """A checked view over a handle (another array's .handle), or new unset storage without one."""
        return _core._make(shape, strides, device, handle, offset, dtype)

    def mean(self, axis=None, keepdims=False, dtype=None, out=None):
        """Arithmetic mean."""
        no_out(out)
        return weft.mean(
            self if dtype is None else self.astype(dtype), axis=axis, keepdims=keepdims
        )

    def ravel(self, order="C"):
        """The elements in a row, a view where the layout allows it; order="F": the first axis runs fastest."""
        return (_turned(self) if order == "F" else self).reshape(-1)

    def flatten(self, start_dim=0, end_dim=-1, order="C"):
        """The elements, or those of the axes from start_dim to end_dim (inclusive), in a row, always a copy."""
        if "F" in (start_dim, order):
            return self.ravel("F").copy()
        start_dim = 0 if start_dim in ("C", "A", "K") else start_dim
        first, last = start_dim % max(self.ndim, 1), end_dim % max(self.ndim, 1)
        return self.reshape((*self.shape[:first], -1, *self.shape[last + 1 :])).copy()

    def to(self, device=None, dtype=None):
        """On a device, or converted to an element type, or both."""
        if isinstance(device, _core.dtype):
            device, dtype = None, device
        if device is not None and dtype is not None:
            return weft.asarray(self, dtype=dtype, device=device)
        moved = self if device is None else _on(self, device)
        return moved if dtype is None else moved.astype(dtype)

    def round(self, decimals=0, out=None):
        """Rounded to a number of decimals, halves to even."""
        no_out(out)
        if decimals >= 0 and self.dtype.kind in "iub":
            return self.copy()
        if decimals == 0:
            return weft.round(self)
        return _rounded(self, 10.0**decimals)

    def fliplr(self):
        """The second axis reversed."""
        return weft.flip(self, axis=1)

    def flipud(self):
        """The first axis reversed."""
        return weft.flip(self, axis=0)

    def transpose(self, *axes):
        """Axes in another order; reversed without arguments, as in NumPy. Two of more axes are exchanged, as in PyTorch."""
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        if len(axes) == 2 and self.ndim > 2:
            return self.swapaxes(*axes)
        return self.permute(tuple(axes or reversed(range(self.ndim))))

    def swapaxes(self, axis1, axis2):
        """A view with two axes exchanged."""
        order = list(range(self.ndim))
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return self.permute(tuple(order))

    def squeeze(self, axis=None):
        """Without axes of extent 1."""
        axes = tuple(i for i, n in enumerate(self.shape) if n == 1) if axis is None else axis
        return weft.squeeze(self, axis=axes)

    def take(self, indices, axis=None, *, mode="raise"):
        """Entries at positions along an axis; of the elements in a row when axis is None. mode: as weft.take."""
        return weft.take(self, weft.asarray(indices), axis=axis, mode=mode)

    def dot(self, other):
        """Products summed over the last axis and the other's last but one: of vectors, of matrices, of stacks in all pairs."""
        if isinstance(other, (list, tuple)):
            other = weft.asarray(other)
        if not self.ndim or not getattr(other, "ndim", 0):
            return self * other
        if other.ndim <= 2:
            return self @ other
        return weft.tensordot(self, other, axes=((self.ndim - 1,), (other.ndim - 2,)))

    def conj(self):
        """Complex conjugate; the array itself when it is real."""
        return _core.operations["conj"](self) if self.dtype.kind == "c" else self

    def __round__(self, digits=None):
        """round(x): a Python number of one element, else the rounded array."""
        return round(self.item(), digits) if self.ndim == 0 else self.round(digits or 0)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def argsort(self, axis=-1, kind=None, *, descending=False, stable=True):
        """Positions that would sort the array along an axis; of all elements in a row when axis is None."""
        return weft.argsort(self, axis=axis, descending=descending, stable=stable, kind=kind)

    def sort(self, axis=-1, kind=None):
        """Sorts the array itself along an axis, as in NumPy; weft.sort gives a sorted copy."""
        self[...] = weft.sort(self, axis=axis)

    def diagonal(self, offset=0, axis1=0, axis2=1):
        """The diagonals of the matrices in two axes, as the last axis."""
        return weft.linalg.diagonal(weft.moveaxis(self, (axis1, axis2), (-2, -1)), offset=offset)

    def diag(self, diagonal=0):
        """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
        if self.ndim != 1:
            return _core._diagonal(self, 0, 1, diagonal).copy()
        n = self.shape[0] + abs(diagonal)
        out = weft.zeros((n, n), dtype=self.dtype, device=self.device)
        _core._diagonal(out, 0, 1, diagonal)[...] = self
        return out

    def trace(self, offset=0, axis1=0, axis2=1):
        """The sums of the diagonals of the matrices in two axes."""
        if self.ndim == 2 and axis1 == 0 and axis2 == 1:
            return _core._reduce("sum", _core._diagonal(self, 0, 1, offset), None, False, None)
        return self.diagonal(offset, axis1, axis2).sum(-1)

    def contiguous(self):
        """Itself where the elements lie in order without gaps, else a copy that does."""
        return self if self.is_contiguous() else self.copy()

    def detach(self):
        """Itself: an array has no graph."""
        return self

    def softmax(self, axis=-1):
        """exp(x) over its sum along an axis."""
        return Tensor(self, requires_grad=False).softmax(axis).data

    def log_softmax(self, axis=-1):
        """x less the logarithm of the sum of exp(x) along an axis."""
        return Tensor(self, requires_grad=False).log_softmax(axis).data

    def logsumexp(self, axis=None, keepdims=False):
        """The logarithm of the sum of exp(x) over axes; over all when None."""
        return Tensor(self, requires_grad=False).logsumexp(axis, keepdims).data

    def median(self, axis=None, keepdims=False):
        """weft.median: of an even count the mean of the two in the middle."""
        return weft.median(self, axis=axis, keepdims=keepdims)

    def where(self, condition, other):
        """The elements where the condition is true, those of other elsewhere."""
        return weft.where(condition, self, other)

    def view(self, *shape, dtype=None):
        """The same memory as another element type, view(dtype), or in another shape, view(2, 3); of the last axis when sizes differ."""
        dtype = _type_named(shape[0]) if len(shape) == 1 and dtype is None else dtype
        if dtype is None:
            return self.reshape(*shape) if shape else self
        return _core._with_elements_of(self, dtype)

    def resize(self, *shape, refcheck=True):
        """Refused: others may hold the array. weft.resize gives a new one."""
        raise _error(
            _core.ArgumentError,
            "array.resize.inplace",
            f"resize would change the shape of an array of shape {self.shape} that others may hold",
            help="x = weft.resize(x, shape)",
        )

    def tobytes(self):
        """The elements in order, as bytes."""
        return _core._to_bytes(self)

    def nonzero(self):
        """Positions of the elements that are not zero, for each axis."""
        return weft.nonzero(self)

    def repeat(self, repeats, /, *more, axis=None):
        """Each element several times: weft.repeat. Three numbers or more are PyTorch's: the array so often along each axis."""
        if len(more) > 1:
            return weft.tile(self, (repeats, *more))
        axis = more[0] if more else axis
        return weft.repeat(self, repeats, axis=axis)

    def cumsum(self, axis=None, dtype=None, out=None):
        """Running sums along an axis; of all elements in a row when axis is None."""
        return _running(weft.cumulative_sum, self, axis, dtype, out)

    def cumprod(self, axis=None, dtype=None, out=None):
        """Running products along an axis; of all elements in a row when axis is None."""
        return _running(weft.cumulative_prod, self, axis, dtype, out)

    def searchsorted(self, v, side="left", sorter=None):
        """Where elements would go in this sorted vector."""
        return weft.searchsorted(self, weft.asarray(v), side=side, sorter=sorter)

    def partition(self, kth, axis=-1):
        """Puts the kth element where sorting would, smaller ones before it: the array itself changes, as in NumPy."""
        self[...] = weft.partition(self, kth, axis)

    def argpartition(self, kth, axis=-1):
        """Positions that partition the array along an axis."""
        return weft.argpartition(self, kth, axis)

    def put(self, indices, values, mode="raise"):
        """Writes values at flat positions of the array itself, as in NumPy."""
        weft.put(self, weft.asarray(indices), weft.asarray(values))

    def compress(self, condition, axis=None):
        """Entries where a condition is true, along an axis; of all elements in a row when axis is None."""
        return weft.compress(weft.asarray(condition), self, axis)

    def itemset(self, *args):
        """Writes one element: itemset(number), itemset(flat position, number) or itemset(position, number)."""
        *at, number = args
        at = at[0] if len(at) == 1 else tuple(at)
        if isinstance(at, int):
            weft.put(self, weft.asarray([at]), weft.asarray([number]))
        else:
            self[at] = number

    def tofile(self, path, sep="", format="%s"):
        """Writes the elements in order: bytes, or text with a separator."""
        content = sep.join(format % v for v in self.reshape(-1).tolist()) if sep else self.tobytes()
        if hasattr(path, "write"):
            path.write(content)
            return
        with open(os.fspath(path), "w" if sep else "wb") as f:  # a number would be a descriptor
            f.write(content)

    def tostring(self):
        """As tobytes."""
        return self.tobytes()

    def dumps(self):
        """The array as a pickle."""
        import pickle

        return pickle.dumps(self)

    def dump(self, path):
        """Writes the array as a pickle."""
        if hasattr(path, "write"):
            path.write(self.dumps())
            return
        with open(os.fspath(path), "wb") as f:
            f.write(self.dumps())

    @property
    def flat(self):
        """The elements in a row: iterated, indexed, and x.flat[...] = number writes."""
        return _Flat(self)

    @property
    def flags(self):
        """NumPy's flags of the layout: flags.c_contiguous, flags["F_CONTIGUOUS"], writeable, owndata, aligned."""
        return _Flags(self)

    @property
    def base(self):
        """None: views share memory and name no owner; weft.shares_memory(a, b) tells."""
        return None

    @property
    def data(self):
        """Itself: an array has no graph."""
        return self

    requires_grad = property(lambda self: False, doc="False: an array has no graph.")
    is_leaf = property(lambda self: True, doc="True: an array has no graph.")
    grad = property(lambda self: None, doc="None: an array has no graph.")
    grad_fn = property(lambda self: None, doc="None: an array has no graph.")

    @property
    def __array_interface__(self):
        """Version 3 of NumPy's protocol: the memory of an array on the host."""
        import numpy as np

        try:
            memory = memoryview(self)
        except BufferError as reason:  # another device, or a type that NumPy lacks
            raise AttributeError(f"no __array_interface__: {reason}") from None
        return np.asarray(memory).__array_interface__

    __array_priority__ = 100
    handle = property(_core._handle, doc="The storage under the view.")
    __cuda_array_interface__ = property(
        _core._cuda_interface, doc="Version 3 of the protocol; AttributeError off CUDA devices."
    )
    real, imag = _part("real"), _part("imag")
