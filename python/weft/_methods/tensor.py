# SPDX-License-Identifier: Apache-2.0
"""Methods about a tensor as a thing: its place, type, history, protocol of exchange, and new ones like it."""

from __future__ import annotations

import weft

from .. import _core
from .._core import Tensor
from ..autograd import Function
from .tools import also, axis_of, filled, plain


class _Moved(Function):
    @staticmethod
    def forward(ctx, x, device):
        ctx.device = x.device
        return x.data.to(device)

    @staticmethod
    def backward(ctx, g):
        return g.to(ctx.device), None


_count = Tensor.size.__get__


class _Size(int):
    """A number of elements that PyTorch's programs may call."""

    def _of(self, shape):
        self.shape = shape
        return self

    def __call__(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def __reduce__(self):
        return int, (int(self),)


def _moved(self, device):
    """The tensor on a device; gradients come back to where it was. Itself when it is there already."""
    if self.device == _core.open_device(device):
        return self
    return _Moved.apply(self, device)


class _Hook:
    """What register_hook gives."""

    def __init__(self, tensor, number):
        self._tensor, self.id = tensor, number

    def remove(self):
        """Takes the hook away."""
        self._tensor._remove_hook(self.id)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()
        return False


def _new(name):
    like = name.removeprefix("new_")

    def method(self, *size, dtype=None, device=None):
        shape = tuple(size[0]) if size and not isinstance(size[0], int) else size
        data = getattr(weft, like)(shape, dtype=dtype or self.dtype, device=device or self.device)
        return Tensor(data, requires_grad=False)

    method.__doc__ = f"A tensor of {like} with this type and device."
    return method


def _masks(family):
    """A maker of operations on masks and integers, which have no gradient; weft's function is family + and, or, xor."""

    def make(name):
        short = name.strip("_").removeprefix("logical_")
        short = short.removeprefix("r") if name.startswith("__r") else short

        def method(self, other):
            out = getattr(weft, family + short)(self.data, plain(other))
            return Tensor(out, requires_grad=False)

        method.__doc__ = f"weft.{family}{short} of masks and integers, without gradient."
        return method

    return make


def _shifts(name):
    function = "bitwise_left_shift" if "lshift" in name else "bitwise_right_shift"

    def method(self, other):
        pair = (self.data, plain(other))
        return Tensor(
            getattr(weft, function)(*(pair[::-1] if name in ("__rlshift__", "__rrshift__") else pair)),
            requires_grad=False,
        )  # fmt: skip

    method.__doc__ = f"weft.{function} of integers, without gradient."
    return method


@also(ndimension="dim", nelement="numel")
@filled(_masks("logical_"), "logical_and logical_or logical_xor")
@filled(_masks("bitwise_"), "__and__ __or__ __xor__")
@filled(_shifts, "__lshift__ __rshift__ __rlshift__ __rrshift__")
@filled(_masks("bitwise_"), "__rand__ __ror__ __rxor__")
@filled(_new, "new_zeros new_ones new_empty")
class TensorMethods:
    """What only a tensor has."""

    def to(self, device=None, dtype=None, *, non_blocking=False, copy=False):
        """On a device, or converted to an element type, or both; of a tensor, to its type and device."""
        if hasattr(device, "requires_grad"):
            device, dtype = device.device, device.dtype
        if isinstance(device, _core.dtype):
            device, dtype = None, device
        if None not in (device, dtype) and weft.dtype(dtype).itemsize <= self.dtype.itemsize:
            # Before it travels: fewer bytes, and a machine may lack the old type.
            self, dtype = self.astype(dtype), None
        moved = self if device is None else _moved(self, device)
        return moved if dtype is None else moved.astype(dtype)

    def cpu(self):
        """As to("cpu")."""
        return self.to("cpu")

    def clone(self):
        """A copy that stays linked."""
        return self * 1 if self.requires_grad else Tensor(self.data.copy(), requires_grad=False)

    def contiguous(self):
        """Itself: kernels take any strides."""
        return self

    def as_strided(self, size, stride, storage_offset=0):
        """weft.as_strided: elements picked by steps, with the gradient."""
        return weft.as_strided(self, size, stride, storage_offset)

    def as_strided_scatter(self, src, size, stride, storage_offset=0):
        """weft.as_strided_scatter: a copy with src at the elements that as_strided reads."""
        return weft.as_strided_scatter(self, src, size, stride, storage_offset)

    def put(self, index, source, accumulate=False):
        """A copy with elements at flat positions replaced by those of source, or added to."""
        flat = self.reshape(-1)
        source = weft.asarray(plain(source)) if not hasattr(source, "dtype") else source
        return weft.index_put(flat, (index,), source.reshape(-1), accumulate).reshape(self.shape)

    @property
    def grad_fn(self):
        """What made it, for printing: None of a leaf."""
        return None if self.is_leaf else getattr(self, "op", None)

    def retain_grad(self):
        """Keeps the gradient in .grad, as of a leaf, though the tensor was computed."""
        self._retain()

    def register_hook(self, hook):
        """Calls hook(gradient) in each backward pass; what it returns, unless None, is the gradient from there on.

        Returns a handle; its remove() takes the hook away, as does the end of a with block.
        """
        return _Hook(self, self._add_hook(hook))

    def requires_grad_(self, requires_grad=True):
        """Sets requires_grad; returns the tensor."""
        self.requires_grad = requires_grad
        return self

    def dim(self):
        """As ndim."""
        return self.ndim

    def numel(self):
        """As size."""
        return self.size

    def __dlpack__(self, **options):
        """The array of the tensor. Raises BufferError when it requires gradients: detach() first."""
        if self.requires_grad:
            raise BufferError("a tensor that requires gradients is not exported: detach() first")
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        """Type and number of the device, as DLPack counts them."""
        return self.data.__dlpack_device__()

    def type_as(self, other):
        """With the element type of another."""
        return self.astype(other.dtype)

    def type(self, dtype):
        """As another element type."""
        return self.astype(dtype)

    def new_full(self, size, fill_value, dtype=None, device=None):
        """A tensor of one number with this type and device."""
        made = weft.full(
            tuple(size), fill_value, dtype=dtype or self.dtype, device=device or self.device
        )
        return Tensor(made, requires_grad=False)

    def new_tensor(self, data, dtype=None, device=None):
        """A tensor of the data with this type and device."""
        made = weft.asarray(data, dtype=dtype or self.dtype, device=device or self.device)
        return Tensor(made, requires_grad=False)

    def is_floating_point(self):
        """Are the elements real floats?"""
        return weft.isdtype(self.dtype, "real floating")

    def is_complex(self):
        """Are the elements complex?"""
        return weft.isdtype(self.dtype, "complex floating")

    def element_size(self):
        """Bytes of an element."""
        return self.dtype.itemsize

    def bernoulli(self, p=None):
        """0 or 1, 1 with the probabilities that the elements are, or with p."""
        return Tensor(weft.bernoulli(plain(self), p), requires_grad=False)

    def is_contiguous(self):
        """Do the elements lie in order without gaps?"""
        return self.data.is_contiguous()

    def stride(self, dim=None):
        """The steps of the axes, in elements."""
        return self.data.strides if dim is None else self.data.strides[axis_of(self, dim)]

    def cuda(self):
        """As to("cuda:0"). Raises DeviceError without one."""
        return self.to("cuda:0")

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.data.nbytes

    def conj(self):
        """Complex conjugate; the tensor itself when it is real."""
        return weft.conj(self) if self.is_complex() else self

    @property
    def real(self):
        """The real part; the tensor itself when it is real."""
        return weft.real(self) if self.is_complex() else self

    @property
    def imag(self):
        """The imaginary part; zeros when the tensor is real."""
        return weft.imag(self) if self.is_complex() else self * 0

    def __invert__(self):
        """Each bit of a mask or of integers turned, without gradient."""
        return Tensor(weft.bitwise_invert(self.data), requires_grad=False)


class OnlyTensors:
    """What arrays have otherwise or not at all."""

    @property
    def size(self):
        """The number of elements; called as in PyTorch, size() is the shape and size(dim) an extent."""
        return _Size(_count(self))._of(tuple(self.shape))
