# SPDX-License-Identifier: Apache-2.0
"""Methods that are functions of weft with the value as first argument, one table; and what PyTorch and NumPy ask a value about itself."""

from __future__ import annotations

import weft

from .._errors import error as _error
from .. import _core
from .tools import also, filled, plain

_NAMES = """
    adjoint angle arccosh arcsinh arctan2 arctanh bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    cholesky cholesky_inverse cholesky_solve choose conj_physical corrcoef cov cummax cummin det diagflat
    diagonal_scatter digamma dsplit erfinv float_power fmax fmin frexp gcd geqrf hardshrink heaviside histc histogram hsplit
    index_copy index_put index_reduce inverse is_conj is_inference is_neg is_nonzero is_same_size is_signed isneginf isposinf
    isreal istft lcm ldexp lgamma logaddexp2 logdet logical_not lu lu_solve masked_scatter matrix_exp matrix_power mode
    multinomial mvlgamma nanmedian nanquantile nextafter orgqr ormqr pinverse positive prelu ptp qr renorm resolve_conj
    resolve_neg scatter_reduce select_scatter sgn signbit slice_scatter slogdet stft svd triangular_solve unique
    unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit
"""
_KINDS = {
    "bfloat16": "bfloat16", "byte": "uint8", "char": "int8", "short": "int16", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip


def _named(name):
    def method(self, *args, **kwargs):
        return getattr(weft, name)(self, *args, **kwargs)

    method.__doc__ = f"weft.{name} of the value."
    return method


def _cast(name):
    kind = _KINDS[name]

    def method(self):
        return (self if kind[:5] in ("bfloa", "compl") else plain(self)).astype(kind)

    method.__doc__ = f"As {kind}; of a tensor, whole numbers are an array without the graph."
    return method


def _constant(name):
    answer = name in ("is_cpu", "is_cuda")

    def read(self):
        return answer and self.device.name.partition(":")[0] == name[3:]

    return property(
        read, doc=f"Is it {name[3:]}?" if answer else f"False: nothing here is {name[3:]}."
    )


def _constants(cls):
    for name in "is_cpu is_cuda is_sparse is_quantized is_meta is_mps is_xpu is_mkldnn is_nested is_sparse_csr".split():
        setattr(cls, name, _constant(name))
    return cls


def _absent(name):
    def method(self, *args, **kwargs):
        raise _error(
            _core.ArgumentError,
            "tensor.foreign",
            f"{name}: arrays and tensors here are dense",
            help="keep the positions and the values as arrays: weft.nonzero(x), x[x != 0], weft.scatter",
        )

    method.__doc__ = "Refused: arrays and tensors here are dense."
    return method


@_constants
@also(conjugate="conj_physical")
@filled(_absent, "to_sparse to_sparse_csr to_sparse_coo coalesce to_mkldnn")
@filled(_cast, " ".join(_KINDS))
@filled(_named, _NAMES)
class Named:
    """Of arrays and tensors alike."""

    def bitwise_not(self):
        """Each bit turned, without gradient."""
        return ~self

    def to_dense(self):
        """Itself."""
        return self

    def get_device(self):
        """The number of the card that it lies on, -1 on the host."""
        return weft.get_device(self)

    def data_ptr(self):
        """The address of the first element, as a number; of memory that the host or CUDA knows."""
        x = plain(self)
        if x.device.name.startswith("cuda"):
            return x.__cuda_array_interface__["data"][0]
        return x.numpy().__array_interface__["data"][0]

    def storage_offset(self):
        """How many elements of the memory lie before the first one."""
        return plain(self).offset

    def is_set_to(self, other):
        """Are both the same elements of the same memory?"""
        a, b = plain(self), plain(other)
        same = (a.shape, a.strides, a.offset) == (b.shape, b.strides, b.offset)
        return same and weft.shares_memory(a, b)

    def is_pinned(self):
        """False: memory of the host is not pinned."""
        return False

    def pin_memory(self):
        """Itself: copies to cards need no pinned memory."""
        return self

    def narrow_copy(self, dim, start, length):
        """A copy of `length` entries along an axis."""
        return self.narrow(dim, start, length).clone()

    @property
    def layout(self):
        """weft.strided: all are."""
        return weft.strided

    @property
    def itemsize(self):
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def H(self):
        """A matrix transposed and conjugated."""
        if self.ndim not in (0, 2):
            raise _error(
                _core.ShapeError,
                "array.H.shape",
                f"H of a value with {self.ndim} axes",
                help="x.mH transposes the last two axes",
            )
        return weft.adjoint(self) if self.ndim else self

    @property
    def mH(self):
        """Matrices in the last two axes transposed and conjugated."""
        return weft.adjoint(self)
