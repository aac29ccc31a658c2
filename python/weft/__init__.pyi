# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ContextDecorator
from typing import Any, Generic, NamedTuple, Protocol, overload

import numpy as _numpy
from typing_extensions import TypeVar

from . import amp as amp
from . import cuda as cuda
from . import data as data
from . import distributed as distributed
from . import distributions as distributions
from . import fft as fft
from . import func as func
from . import init as init
from . import linalg as linalg
from . import lr_scheduler as lr_scheduler
from . import nn as nn
from . import onnx as onnx
from . import optim as optim
from . import polynomial as polynomial
from . import qpu as qpu
from . import random as random
from . import rpc as rpc
from . import script as script
from . import special as special
from . import te as te
from . import torch as torch
from . import vta as vta
from . import wse as wse
from .build import Function as Function, Module as Module, TimeResult as TimeResult, accepts as accepts, build as build, load as load, target_limits as target_limits
from .ir import IRModule as IRModule, PrimFunc as PrimFunc
from .profiler import profile as profile
from .schedule import BlockRef as BlockRef, LoopRef as LoopRef, Schedule as Schedule

_bool = _builtins.bool
_Number = _bool | int | float | complex
_DType = dtype | str | type[Any]
_Device = Device | str
class _Switch(ContextDecorator):
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

class _Mapped(Protocol):
    looped: frozenset[str]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class _Captured(Protocol):
    @property
    def launches(self) -> list[int]: ...
    def __call__(self, *args: Any) -> Any: ...

_ArrayLike = NDArray | _Number | _numpy.ndarray[Any, Any] | Sequence[Any]
_dtype = dtype

__version__: str
__array_api_version__: str

e: float
pi: float
inf: float
nan: float
newaxis: None

class NDArray:
    @property
    def shape(self) -> tuple[_builtins.int, ...]:
        """Extents."""
    @property
    def strides(self) -> tuple[_builtins.int, ...]:
        """Steps in elements."""
    @property
    def offset(self) -> _builtins.int:
        """Position of the first element in the handle, in elements."""
    @property
    def dtype(self) -> _dtype:
        """Element type."""
    @property
    def device(self) -> Device:
        """Where the elements live."""
    @property
    def size(self) -> _builtins.int:
        """Number of elements."""
    @property
    def ndim(self) -> _builtins.int:
        """Number of dimensions."""
    @property
    def nbytes(self) -> _builtins.int:
        """Bytes of the elements."""
    @property
    def T(self) -> NDArray:
        """Transposed view of a matrix."""
    @property
    def mT(self) -> NDArray:
        """View with the last two axes exchanged."""
    @property
    def handle(self) -> Any:
        """_handle(arg: weft.NDArray, /) -> weft._core.StorageHandle"""
    @property
    def real(self) -> NDArray: ...
    @property
    def imag(self) -> NDArray: ...
    def numpy(self) -> _numpy.ndarray[Any, Any]:
        """A NumPy array with a copy of the elements."""
    def to(self, device: _Device, /) -> NDArray:
        """On a device, or converted to an element type, or both."""
    def to_device(self, device: _Device, /, *, stream: Any = ...) -> NDArray:
        """The array on a device: the array API's spelling of to(device)."""
    def item(self, *index: _builtins.int) -> Any:
        """item(*index): one element as a Python number."""
    def tolist(self) -> Any:
        """tolist(self) -> object"""
    def is_compact(self) -> _bool:
        """Row-major without gaps, over the whole handle?"""
    def is_contiguous(self) -> _bool:
        """Row-major without gaps?"""
    def compact(self) -> NDArray:
        """Itself when compact, else a compact copy."""
    def copy(self) -> NDArray:
        """copy(self) -> weft.NDArray"""
    def astype(self, dtype: _DType, copy: _bool = True) -> NDArray:
        """astype(self, dtype: object, copy: bool = True) -> weft.NDArray"""
    def fill(self, value: _Number, /) -> None:
        """fill(self, arg: object, /) -> None"""
    def permute(self, *axes: _builtins.int | Sequence[_builtins.int]) -> NDArray:
        """permute(self, *args) -> weft.NDArray"""
    def flip(self, axes: _builtins.int | Sequence[_builtins.int], /) -> NDArray:
        """flip(self, arg: object, /) -> weft.NDArray"""
    def as_strided(self, shape: Sequence[_builtins.int], strides: Sequence[_builtins.int], /) -> NDArray:
        """as_strided(self, arg0: object, arg1: object, /) -> weft.NDArray"""
    def broadcast_to(self, shape: Sequence[_builtins.int], /) -> NDArray:
        """broadcast_to(self, arg: object, /) -> weft.NDArray"""
    def reshape(self, *shape: _builtins.int | Sequence[_builtins.int]) -> NDArray:
        """reshape(*shape): the elements in another shape; one extent may be -1. A view where the layout allows it."""
    def sum(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False, *, dtype: _DType | None = None) -> NDArray:
        """sum(axis=None, keepdims=False, *, dtype=None)"""
    def prod(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False, *, dtype: _DType | None = None) -> NDArray:
        """prod(axis=None, keepdims=False, *, dtype=None)"""
    def max(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> NDArray:
        """max(axis=None, keepdims=False)"""
    def min(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> NDArray:
        """min(axis=None, keepdims=False)"""
    def all(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> NDArray:
        """all(axis=None, keepdims=False)"""
    def any(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> NDArray:
        """any(axis=None, keepdims=False)"""
    def mean(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False, dtype: _DType | None = None, out: None = None) -> NDArray:
        """Arithmetic mean."""
    def std(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False, dtype: _DType | None = None, out: None = None, ddof: _builtins.float = 0) -> NDArray:
        """weft.std; the divisor is the count less `ddof`, or `correction`."""
    def var(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False, dtype: _DType | None = None, out: None = None, ddof: _builtins.float = 0) -> NDArray:
        """weft.var; the divisor is the count less `ddof`, or `correction`."""
    def argmax(self, axis: _builtins.int | None = None, keepdims: _bool = False, out: None = None) -> NDArray:
        """weft.argmax."""
    def argmin(self, axis: _builtins.int | None = None, keepdims: _bool = False, out: None = None) -> NDArray:
        """weft.argmin."""
    def cumsum(self, axis: _builtins.int | None = None, dtype: _DType | None = None, out: None = None) -> NDArray:
        """Running sums along an axis; of all elements in a row when axis is None."""
    def cumprod(self, axis: _builtins.int | None = None, dtype: _DType | None = None, out: None = None) -> NDArray:
        """Running products along an axis; of all elements in a row when axis is None."""
    def ravel(self) -> NDArray:
        """The elements in a row, a view where the layout allows it; order="F": the first axis runs fastest."""
    def flatten(self) -> NDArray:
        """The elements, or those of the axes from start_dim to end_dim (inclusive), in a row, always a copy."""
    def conj(self) -> NDArray:
        """Complex conjugate; the array itself when it is real."""
    def clip(self, min: Any = None, max: Any = None, out: None = None) -> NDArray:
        """Every element brought between min and max."""
    def round(self, decimals: _builtins.int = 0, out: None = None) -> NDArray:
        """Rounded to a number of decimals, halves to even."""
    def transpose(self, *axes: _builtins.int | Sequence[_builtins.int]) -> NDArray:
        """Axes in another order; reversed without arguments, as in NumPy. Two of more axes are exchanged, as in PyTorch."""
    def swapaxes(self, axis1: _builtins.int, axis2: _builtins.int) -> NDArray:
        """A view with two axes exchanged."""
    def squeeze(self, axis: _builtins.int | Sequence[_builtins.int] | None = None) -> NDArray:
        """Without axes of extent 1."""
    def take(self, indices: Any, axis: _builtins.int | None = None) -> NDArray:
        """Entries at positions along an axis; of the elements in a row when axis is None. mode: as weft.take."""
    def dot(self, other: Any) -> NDArray:
        """Products summed over the last axis and the other's last but one: of vectors, of matrices, of stacks in all pairs."""
    def argsort(self, *, axis: _builtins.int = -1, descending: _bool = False, stable: _bool = True) -> NDArray:
        """Positions that would sort the array along an axis; of all elements in a row when axis is None."""
    def nonzero(self) -> tuple[NDArray, ...]:
        """Positions of the elements that are not zero, for each axis."""
    def float(self) -> NDArray:
        """As float32; of a tensor, whole numbers and truth values are an array without the graph."""
    def double(self) -> NDArray:
        """As float64; of a tensor, whole numbers and truth values are an array without the graph."""
    def half(self) -> NDArray:
        """As float16; of a tensor, whole numbers and truth values are an array without the graph."""
    def long(self) -> NDArray:
        """As int64; of a tensor, whole numbers and truth values are an array without the graph."""
    def int(self) -> NDArray:
        """As int32; of a tensor, whole numbers and truth values are an array without the graph."""
    def bool(self) -> NDArray:
        """As bool; of a tensor, whole numbers and truth values are an array without the graph."""
    def add_(self, other: Any, *, alpha: _Number = 1) -> NDArray:
        """self += other (times alpha); returns self."""
    def sub_(self, other: Any, *, alpha: _Number = 1) -> NDArray:
        """self -= other (times alpha); returns self."""
    def mul_(self, other: Any, *, alpha: _Number = 1) -> NDArray:
        """self *= other (times alpha); returns self."""
    def div_(self, other: Any, *, alpha: _Number = 1) -> NDArray:
        """self /= other; with rounding_mode as div. Returns self."""
    def pow_(self, other: Any, *, alpha: _Number = 1) -> NDArray:
        """self **= other (times alpha); returns self."""
    def zero_(self) -> NDArray:
        """All elements become 0; returns self."""
    def fill_(self, value: _Number) -> NDArray:
        """All elements become a number; returns self."""
    def copy_(self, source: Any) -> NDArray:
        """The elements become those of an array that broadcasts, converted to this type; returns self."""
    def clamp_(self, min: _Number | None = None, max: _Number | None = None) -> NDArray:
        """The elements become those of clip(...); returns self."""
    def uniform_(self, a: _builtins.float = 0.0, b: _builtins.float = 1.0) -> NDArray:
        """Uniform random numbers in [a, b); returns self."""
    def normal_(self, mean: _builtins.float = 0.0, std: _builtins.float = 1.0) -> NDArray:
        """Normal random numbers; returns self."""
    def repeat(self, repeats: Any, *, axis: _builtins.int | None = None) -> NDArray:
        """Each element several times: weft.repeat. Three numbers or more are PyTorch's: the array so often along each axis."""
    @staticmethod
    def make(shape: Sequence[_builtins.int], strides: Sequence[_builtins.int] | None = None, device: _Device | None = None, handle: Any = None, offset: _builtins.int = 0, dtype: _DType | None = None) -> NDArray:
        """A checked view over a handle (another array's .handle), or new unset storage without one."""
    def __getitem__(self, key: Any, /) -> NDArray: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __len__(self) -> _builtins.int: ...
    def __iter__(self) -> Iterator[NDArray]: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> _builtins.int: ...
    def __index__(self) -> _builtins.int: ...
    def __float__(self) -> _builtins.float: ...
    def __complex__(self) -> complex: ...
    def __neg__(self) -> NDArray: ...
    def __pos__(self) -> NDArray: ...
    def __abs__(self) -> NDArray: ...
    def __invert__(self) -> NDArray: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> _numpy.ndarray[Any, Any]: ...
    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: _bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[_builtins.int, _builtins.int]: ...
    def __add__(self, other: _ArrayLike, /) -> NDArray: ...
    def __radd__(self, other: _ArrayLike, /) -> NDArray: ...
    def __iadd__(self, other: _ArrayLike, /) -> NDArray: ...
    def __sub__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rsub__(self, other: _ArrayLike, /) -> NDArray: ...
    def __isub__(self, other: _ArrayLike, /) -> NDArray: ...
    def __mul__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rmul__(self, other: _ArrayLike, /) -> NDArray: ...
    def __imul__(self, other: _ArrayLike, /) -> NDArray: ...
    def __truediv__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rtruediv__(self, other: _ArrayLike, /) -> NDArray: ...
    def __itruediv__(self, other: _ArrayLike, /) -> NDArray: ...
    def __floordiv__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rfloordiv__(self, other: _ArrayLike, /) -> NDArray: ...
    def __ifloordiv__(self, other: _ArrayLike, /) -> NDArray: ...
    def __mod__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rmod__(self, other: _ArrayLike, /) -> NDArray: ...
    def __imod__(self, other: _ArrayLike, /) -> NDArray: ...
    def __pow__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rpow__(self, other: _ArrayLike, /) -> NDArray: ...
    def __ipow__(self, other: _ArrayLike, /) -> NDArray: ...
    def __matmul__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rmatmul__(self, other: _ArrayLike, /) -> NDArray: ...
    def __imatmul__(self, other: _ArrayLike, /) -> NDArray: ...
    def __and__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rand__(self, other: _ArrayLike, /) -> NDArray: ...
    def __iand__(self, other: _ArrayLike, /) -> NDArray: ...
    def __or__(self, other: _ArrayLike, /) -> NDArray: ...
    def __ror__(self, other: _ArrayLike, /) -> NDArray: ...
    def __ior__(self, other: _ArrayLike, /) -> NDArray: ...
    def __xor__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rxor__(self, other: _ArrayLike, /) -> NDArray: ...
    def __ixor__(self, other: _ArrayLike, /) -> NDArray: ...
    def __lshift__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rlshift__(self, other: _ArrayLike, /) -> NDArray: ...
    def __ilshift__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rshift__(self, other: _ArrayLike, /) -> NDArray: ...
    def __rrshift__(self, other: _ArrayLike, /) -> NDArray: ...
    def __irshift__(self, other: _ArrayLike, /) -> NDArray: ...
    def __eq__(self, other: _ArrayLike, /) -> NDArray: ...  # type: ignore[override]
    def __ne__(self, other: _ArrayLike, /) -> NDArray: ...  # type: ignore[override]
    def __lt__(self, other: _ArrayLike, /) -> NDArray: ...
    def __le__(self, other: _ArrayLike, /) -> NDArray: ...
    def __gt__(self, other: _ArrayLike, /) -> NDArray: ...
    def __ge__(self, other: _ArrayLike, /) -> NDArray: ...
    def fliplr(self) -> Any:
        """The second axis reversed."""
    def flipud(self) -> Any:
        """The first axis reversed."""
    def sort(self, axis: Any = -1, kind: Any = None) -> Any:
        """Sorts the array itself along an axis, as in NumPy; weft.sort gives a sorted copy."""
    def diagonal(self, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
        """The diagonals of the matrices in two axes, as the last axis."""
    def diag(self, diagonal: Any = 0) -> Any:
        """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    def trace(self, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
        """The sums of the diagonals of the matrices in two axes."""
    def contiguous(self) -> Any:
        """Itself where the elements lie in order without gaps, else a copy that does."""
    def detach(self) -> Any:
        """Itself: an array has no graph."""
    def softmax(self, axis: Any = -1) -> Any:
        """exp(x) over its sum along an axis."""
    def log_softmax(self, axis: Any = -1) -> Any:
        """x less the logarithm of the sum of exp(x) along an axis."""
    def logsumexp(self, axis: Any = None, keepdims: Any = False) -> Any:
        """The logarithm of the sum of exp(x) over axes; over all when None."""
    def median(self, axis: Any = None, keepdims: Any = False) -> Any:
        """weft.median: of an even count the mean of the two in the middle."""
    def where(self, condition: Any, other: Any) -> Any:
        """The elements where the condition is true, those of other elsewhere."""
    def view(self, *shape: Any, dtype: Any = None) -> Any:
        """The same memory as another element type, view(dtype), or in another shape, view(2, 3); of the last axis when sizes differ."""
    def resize(self, *shape: Any, refcheck: Any = True) -> Any:
        """Refused: others may hold the array. weft.resize gives a new one."""
    def tobytes(self) -> Any:
        """The elements in order, as bytes."""
    def searchsorted(self, v: Any, side: Any = 'left', sorter: Any = None) -> Any:
        """Where elements would go in this sorted vector."""
    def partition(self, kth: Any, axis: Any = -1) -> Any:
        """Puts the kth element where sorting would, smaller ones before it: the array itself changes, as in NumPy."""
    def argpartition(self, kth: Any, axis: Any = -1) -> Any:
        """Positions that partition the array along an axis."""
    def put(self, indices: Any, values: Any, mode: Any = 'raise') -> Any:
        """Writes values at flat positions of the array itself, as in NumPy."""
    def compress(self, condition: Any, axis: Any = None) -> Any:
        """Entries where a condition is true, along an axis; of all elements in a row when axis is None."""
    def itemset(self, *args: Any) -> Any:
        """Writes one element: itemset(number), itemset(flat position, number) or itemset(position, number)."""
    def tofile(self, path: Any, sep: Any = '', format: Any = '%s') -> Any:
        """Writes the elements in order: bytes, or text with a separator."""
    def tostring(self) -> Any:
        """As tobytes."""
    def dumps(self) -> Any:
        """The array as a pickle."""
    def dump(self, path: Any) -> Any:
        """Writes the array as a pickle."""
    @property
    def flat(self) -> Any:
        """The elements in a row: iterated, indexed, and x.flat[...] = number writes."""
    @property
    def flags(self) -> Any:
        """NumPy's flags of the layout: flags.c_contiguous, flags["F_CONTIGUOUS"], writeable, owndata, aligned."""
    @property
    def base(self) -> Any:
        """None: views share memory and name no owner; weft.shares_memory(a, b) tells."""
    @property
    def data(self) -> Any:
        """Itself: an array has no graph."""
    @property
    def requires_grad(self) -> Any: ...
    @property
    def is_leaf(self) -> Any: ...
    @property
    def grad(self) -> Any: ...
    @property
    def grad_fn(self) -> Any: ...
    @property
    def at(self) -> Any:
        """x.at[index].set(values), add, subtract, multiply, divide, power, min, max, apply, get: a copy with other elements, as in JAX."""
    def bitwise_not(self) -> Any:
        """Each bit turned, without gradient."""
    def to_dense(self) -> Any:
        """Itself."""
    def get_device(self) -> Any:
        """The number of the card that it lies on, -1 on the host."""
    def data_ptr(self) -> Any:
        """The address of the first element, as a number; of memory that the host or CUDA knows."""
    def storage_offset(self) -> Any:
        """How many elements of the memory lie before the first one."""
    def is_set_to(self, other: Any) -> Any:
        """Are both the same elements of the same memory?"""
    def is_pinned(self) -> Any:
        """False: memory of the host is not pinned."""
    def pin_memory(self) -> Any:
        """Itself: copies to cards need no pinned memory."""
    def narrow_copy(self, dim: Any, start: Any, length: Any) -> Any:
        """A copy of `length` entries along an axis."""
    @property
    def layout(self) -> Any:
        """weft.strided: all are."""
    @property
    def itemsize(self) -> Any:
        """Bytes of an element."""
    @property
    def H(self) -> Any:
        """A matrix transposed and conjugated."""
    @property
    def mH(self) -> Any:
        """Matrices in the last two axes transposed and conjugated."""
    def adjoint(self, *args: Any, **kwargs: Any) -> Any:
        """weft.adjoint of the value."""
    def angle(self, *args: Any, **kwargs: Any) -> Any:
        """weft.angle of the value."""
    def arccosh(self, *args: Any, **kwargs: Any) -> Any:
        """weft.arccosh of the value."""
    def arcsinh(self, *args: Any, **kwargs: Any) -> Any:
        """weft.arcsinh of the value."""
    def arctan2(self, *args: Any, **kwargs: Any) -> Any:
        """weft.arctan2 of the value."""
    def arctanh(self, *args: Any, **kwargs: Any) -> Any:
        """weft.arctanh of the value."""
    def bitwise_and(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_and of the value."""
    def bitwise_left_shift(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_left_shift of the value."""
    def bitwise_or(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_or of the value."""
    def bitwise_right_shift(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_right_shift of the value."""
    def bitwise_xor(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_xor of the value."""
    def cholesky(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cholesky of the value."""
    def cholesky_inverse(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cholesky_inverse of the value."""
    def cholesky_solve(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cholesky_solve of the value."""
    def choose(self, *args: Any, **kwargs: Any) -> Any:
        """weft.choose of the value."""
    def conj_physical(self, *args: Any, **kwargs: Any) -> Any:
        """weft.conj_physical of the value."""
    def corrcoef(self, *args: Any, **kwargs: Any) -> Any:
        """weft.corrcoef of the value."""
    def cov(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cov of the value."""
    def cummax(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cummax of the value."""
    def cummin(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cummin of the value."""
    def det(self, *args: Any, **kwargs: Any) -> Any:
        """weft.det of the value."""
    def diagflat(self, *args: Any, **kwargs: Any) -> Any:
        """weft.diagflat of the value."""
    def diagonal_scatter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.diagonal_scatter of the value."""
    def digamma(self, *args: Any, **kwargs: Any) -> Any:
        """weft.digamma of the value."""
    def dsplit(self, *args: Any, **kwargs: Any) -> Any:
        """weft.dsplit of the value."""
    def erfinv(self, *args: Any, **kwargs: Any) -> Any:
        """weft.erfinv of the value."""
    def float_power(self, *args: Any, **kwargs: Any) -> Any:
        """weft.float_power of the value."""
    def fmax(self, *args: Any, **kwargs: Any) -> Any:
        """weft.fmax of the value."""
    def fmin(self, *args: Any, **kwargs: Any) -> Any:
        """weft.fmin of the value."""
    def frexp(self, *args: Any, **kwargs: Any) -> Any:
        """weft.frexp of the value."""
    def gcd(self, *args: Any, **kwargs: Any) -> Any:
        """weft.gcd of the value."""
    def geqrf(self, *args: Any, **kwargs: Any) -> Any:
        """weft.geqrf of the value."""
    def hardshrink(self, *args: Any, **kwargs: Any) -> Any:
        """weft.hardshrink of the value."""
    def heaviside(self, *args: Any, **kwargs: Any) -> Any:
        """weft.heaviside of the value."""
    def histc(self, *args: Any, **kwargs: Any) -> Any:
        """weft.histc of the value."""
    def histogram(self, *args: Any, **kwargs: Any) -> Any:
        """weft.histogram of the value."""
    def hsplit(self, *args: Any, **kwargs: Any) -> Any:
        """weft.hsplit of the value."""
    def index_copy(self, *args: Any, **kwargs: Any) -> Any:
        """weft.index_copy of the value."""
    def index_put(self, *args: Any, **kwargs: Any) -> Any:
        """weft.index_put of the value."""
    def index_reduce(self, *args: Any, **kwargs: Any) -> Any:
        """weft.index_reduce of the value."""
    def inverse(self, *args: Any, **kwargs: Any) -> Any:
        """weft.inverse of the value."""
    def is_conj(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_conj of the value."""
    def is_inference(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_inference of the value."""
    def is_neg(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_neg of the value."""
    def is_nonzero(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_nonzero of the value."""
    def is_same_size(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_same_size of the value."""
    def is_signed(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_signed of the value."""
    def isneginf(self, *args: Any, **kwargs: Any) -> Any:
        """weft.isneginf of the value."""
    def isposinf(self, *args: Any, **kwargs: Any) -> Any:
        """weft.isposinf of the value."""
    def isreal(self, *args: Any, **kwargs: Any) -> Any:
        """weft.isreal of the value."""
    def istft(self, *args: Any, **kwargs: Any) -> Any:
        """weft.istft of the value."""
    def lcm(self, *args: Any, **kwargs: Any) -> Any:
        """weft.lcm of the value."""
    def ldexp(self, *args: Any, **kwargs: Any) -> Any:
        """weft.ldexp of the value."""
    def lgamma(self, *args: Any, **kwargs: Any) -> Any:
        """weft.lgamma of the value."""
    def logaddexp2(self, *args: Any, **kwargs: Any) -> Any:
        """weft.logaddexp2 of the value."""
    def logdet(self, *args: Any, **kwargs: Any) -> Any:
        """weft.logdet of the value."""
    def logical_not(self, *args: Any, **kwargs: Any) -> Any:
        """weft.logical_not of the value."""
    def lu(self, *args: Any, **kwargs: Any) -> Any:
        """weft.lu of the value."""
    def lu_solve(self, *args: Any, **kwargs: Any) -> Any:
        """weft.lu_solve of the value."""
    def masked_scatter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.masked_scatter of the value."""
    def matrix_exp(self, *args: Any, **kwargs: Any) -> Any:
        """weft.matrix_exp of the value."""
    def matrix_power(self, *args: Any, **kwargs: Any) -> Any:
        """weft.matrix_power of the value."""
    def mode(self, *args: Any, **kwargs: Any) -> Any:
        """weft.mode of the value."""
    def multinomial(self, *args: Any, **kwargs: Any) -> Any:
        """weft.multinomial of the value."""
    def mvlgamma(self, *args: Any, **kwargs: Any) -> Any:
        """weft.mvlgamma of the value."""
    def nanmedian(self, *args: Any, **kwargs: Any) -> Any:
        """weft.nanmedian of the value."""
    def nanquantile(self, *args: Any, **kwargs: Any) -> Any:
        """weft.nanquantile of the value."""
    def nextafter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.nextafter of the value."""
    def orgqr(self, *args: Any, **kwargs: Any) -> Any:
        """weft.orgqr of the value."""
    def ormqr(self, *args: Any, **kwargs: Any) -> Any:
        """weft.ormqr of the value."""
    def pinverse(self, *args: Any, **kwargs: Any) -> Any:
        """weft.pinverse of the value."""
    def positive(self, *args: Any, **kwargs: Any) -> Any:
        """weft.positive of the value."""
    def prelu(self, *args: Any, **kwargs: Any) -> Any:
        """weft.prelu of the value."""
    def ptp(self, *args: Any, **kwargs: Any) -> Any:
        """weft.ptp of the value."""
    def qr(self, *args: Any, **kwargs: Any) -> Any:
        """weft.qr of the value."""
    def renorm(self, *args: Any, **kwargs: Any) -> Any:
        """weft.renorm of the value."""
    def resolve_conj(self, *args: Any, **kwargs: Any) -> Any:
        """weft.resolve_conj of the value."""
    def resolve_neg(self, *args: Any, **kwargs: Any) -> Any:
        """weft.resolve_neg of the value."""
    def scatter_reduce(self, *args: Any, **kwargs: Any) -> Any:
        """weft.scatter_reduce of the value."""
    def select_scatter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.select_scatter of the value."""
    def sgn(self, *args: Any, **kwargs: Any) -> Any:
        """weft.sgn of the value."""
    def signbit(self, *args: Any, **kwargs: Any) -> Any:
        """weft.signbit of the value."""
    def slice_scatter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.slice_scatter of the value."""
    def slogdet(self, *args: Any, **kwargs: Any) -> Any:
        """weft.slogdet of the value."""
    def stft(self, *args: Any, **kwargs: Any) -> Any:
        """weft.stft of the value."""
    def svd(self, *args: Any, **kwargs: Any) -> Any:
        """weft.svd of the value."""
    def triangular_solve(self, *args: Any, **kwargs: Any) -> Any:
        """weft.triangular_solve of the value."""
    def unique(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unique of the value."""
    def unique_consecutive(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unique_consecutive of the value."""
    def unsafe_chunk(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unsafe_chunk of the value."""
    def unsafe_split(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unsafe_split of the value."""
    def unsafe_split_with_sizes(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unsafe_split_with_sizes of the value."""
    def vsplit(self, *args: Any, **kwargs: Any) -> Any:
        """weft.vsplit of the value."""
    def bfloat16(self) -> Any:
        """As bfloat16; of a tensor, whole numbers are an array without the graph."""
    def byte(self) -> Any:
        """As uint8; of a tensor, whole numbers are an array without the graph."""
    def char(self) -> Any:
        """As int8; of a tensor, whole numbers are an array without the graph."""
    def short(self) -> Any:
        """As int16; of a tensor, whole numbers are an array without the graph."""
    def cfloat(self) -> Any:
        """As complex64; of a tensor, whole numbers are an array without the graph."""
    def cdouble(self) -> Any:
        """As complex128; of a tensor, whole numbers are an array without the graph."""
    def to_sparse(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def to_sparse_csr(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def to_sparse_coo(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def coalesce(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def to_mkldnn(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def conjugate(self, *args: Any, **kwargs: Any) -> Any:
        """weft.conj_physical of the value."""
    @property
    def is_cpu(self) -> Any: ...
    @property
    def is_cuda(self) -> Any: ...
    @property
    def is_sparse(self) -> Any: ...
    @property
    def is_quantized(self) -> Any: ...
    @property
    def is_meta(self) -> Any: ...
    @property
    def is_mps(self) -> Any: ...
    @property
    def is_xpu(self) -> Any: ...
    @property
    def is_mkldnn(self) -> Any: ...
    @property
    def is_nested(self) -> Any: ...
    @property
    def is_sparse_csr(self) -> Any: ...
    def detach_(self) -> Any:
        """Forgets the graph: the tensor becomes a leaf without gradient; returns self."""
    def fill_diagonal_(self, value: Any, wrap: Any = False) -> Any:
        """The diagonal of a matrix becomes a number; returns self."""
    def apply_(self, function: Any) -> Any:
        """Every element becomes function(element), called on the host; returns self."""
    def map_(self, other: Any, function: Any) -> Any:
        """Every element becomes function(element, other's element), called on the host; returns self."""
    def put_(self, index: Any, source: Any, accumulate: Any = False) -> Any:
        """Elements at flat positions become those of source, or are added to; returns self."""
    def abs_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of abs(...); returns self."""
    def absolute_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of absolute(...); returns self."""
    def acos_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of acos(...); returns self."""
    def acosh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of acosh(...); returns self."""
    def addbmm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addbmm(...); returns self."""
    def addcdiv_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addcdiv(...); returns self."""
    def addcmul_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addcmul(...); returns self."""
    def addmm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addmm(...); returns self."""
    def addmv_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addmv(...); returns self."""
    def addr_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addr(...); returns self."""
    def arccos_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arccos(...); returns self."""
    def arccosh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arccosh(...); returns self."""
    def arcsin_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arcsin(...); returns self."""
    def arcsinh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arcsinh(...); returns self."""
    def arctan_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arctan(...); returns self."""
    def arctan2_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arctan2(...); returns self."""
    def arctanh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arctanh(...); returns self."""
    def asin_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of asin(...); returns self."""
    def asinh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of asinh(...); returns self."""
    def atan_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of atan(...); returns self."""
    def atan2_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of atan2(...); returns self."""
    def atanh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of atanh(...); returns self."""
    def baddbmm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of baddbmm(...); returns self."""
    def bernoulli_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bernoulli(...); returns self."""
    def bitwise_and_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_and(...); returns self."""
    def bitwise_left_shift_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_left_shift(...); returns self."""
    def bitwise_not_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_not(...); returns self."""
    def bitwise_or_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_or(...); returns self."""
    def bitwise_right_shift_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_right_shift(...); returns self."""
    def bitwise_xor_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_xor(...); returns self."""
    def ceil_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of ceil(...); returns self."""
    def clamp_max_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of clamp_max(...); returns self."""
    def clamp_min_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of clamp_min(...); returns self."""
    def clip_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of clip(...); returns self."""
    def conj_physical_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of conj_physical(...); returns self."""
    def copysign_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of copysign(...); returns self."""
    def cos_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of cos(...); returns self."""
    def cosh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of cosh(...); returns self."""
    def cumprod_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of cumprod(...); returns self."""
    def cumsum_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of cumsum(...); returns self."""
    def deg2rad_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of deg2rad(...); returns self."""
    def digamma_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of digamma(...); returns self."""
    def eq_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of eq(...); returns self."""
    def erf_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of erf(...); returns self."""
    def erfc_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of erfc(...); returns self."""
    def erfinv_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of erfinv(...); returns self."""
    def exp_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of exp(...); returns self."""
    def exp2_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of exp2(...); returns self."""
    def expm1_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of expm1(...); returns self."""
    def fix_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of fix(...); returns self."""
    def float_power_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of float_power(...); returns self."""
    def floor_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of floor(...); returns self."""
    def floor_divide_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of floor_divide(...); returns self."""
    def fmod_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of fmod(...); returns self."""
    def frac_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of frac(...); returns self."""
    def gcd_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of gcd(...); returns self."""
    def ge_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of ge(...); returns self."""
    def greater_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of greater(...); returns self."""
    def greater_equal_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of greater_equal(...); returns self."""
    def gt_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of gt(...); returns self."""
    def heaviside_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of heaviside(...); returns self."""
    def hypot_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of hypot(...); returns self."""
    def index_add_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_add(...); returns self."""
    def index_copy_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_copy(...); returns self."""
    def index_fill_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_fill(...); returns self."""
    def index_put_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_put(...); returns self."""
    def index_reduce_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_reduce(...); returns self."""
    def lcm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of lcm(...); returns self."""
    def ldexp_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of ldexp(...); returns self."""
    def le_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of le(...); returns self."""
    def lerp_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of lerp(...); returns self."""
    def less_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of less(...); returns self."""
    def less_equal_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of less_equal(...); returns self."""
    def lgamma_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of lgamma(...); returns self."""
    def log_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of log(...); returns self."""
    def log10_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of log10(...); returns self."""
    def log1p_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of log1p(...); returns self."""
    def log2_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of log2(...); returns self."""
    def logical_and_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logical_and(...); returns self."""
    def logical_not_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logical_not(...); returns self."""
    def logical_or_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logical_or(...); returns self."""
    def logical_xor_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logical_xor(...); returns self."""
    def logit_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logit(...); returns self."""
    def lt_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of lt(...); returns self."""
    def masked_fill_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of masked_fill(...); returns self."""
    def masked_scatter_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of masked_scatter(...); returns self."""
    def mvlgamma_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of mvlgamma(...); returns self."""
    def nan_to_num_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of nan_to_num(...); returns self."""
    def ne_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of ne(...); returns self."""
    def neg_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of neg(...); returns self."""
    def negative_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of negative(...); returns self."""
    def nextafter_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of nextafter(...); returns self."""
    def not_equal_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of not_equal(...); returns self."""
    def rad2deg_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of rad2deg(...); returns self."""
    def reciprocal_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of reciprocal(...); returns self."""
    def relu_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of relu(...); returns self."""
    def remainder_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of remainder(...); returns self."""
    def renorm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of renorm(...); returns self."""
    def round_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of round(...); returns self."""
    def rsqrt_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of rsqrt(...); returns self."""
    def scatter_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of scatter(...); returns self."""
    def scatter_add_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of scatter_add(...); returns self."""
    def scatter_reduce_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of scatter_reduce(...); returns self."""
    def sgn_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sgn(...); returns self."""
    def sigmoid_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sigmoid(...); returns self."""
    def sign_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sign(...); returns self."""
    def sin_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sin(...); returns self."""
    def sinc_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sinc(...); returns self."""
    def sinh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sinh(...); returns self."""
    def sqrt_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sqrt(...); returns self."""
    def square_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of square(...); returns self."""
    def tan_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of tan(...); returns self."""
    def tanh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of tanh(...); returns self."""
    def tril_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of tril(...); returns self."""
    def triu_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of triu(...); returns self."""
    def trunc_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of trunc(...); returns self."""
    def xlogy_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of xlogy(...); returns self."""
    def squeeze_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.squeeze() gives a new view."""
    def unsqueeze_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.unsqueeze(dim) gives a new view."""
    def t_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.t() gives a new view."""
    def transpose_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.transpose(dim0, dim1) gives a new view."""
    def swapaxes_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.swapaxes(a, b) gives a new view."""
    def swapdims_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.swapdims(a, b) gives a new view."""
    def resize_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = weft.resize(x, shape) gives a new view."""
    def resize_as_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = weft.resize(x, other.shape) gives a new view."""
    def as_strided_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = weft.as_strided(x, size, stride) gives a new view."""
    def set_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = source gives a new view."""
    def exponential_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (exponential); returns self."""
    def cauchy_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (cauchy); returns self."""
    def log_normal_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (log_normal); returns self."""
    def geometric_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (geometric); returns self."""
    def random_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (random); returns self."""
    def subtract_(self, other: Any, *, alpha: Any = 1) -> Any:
        """self -= other (times alpha); returns self."""
    def multiply_(self, other: Any, *, alpha: Any = 1) -> Any:
        """self *= other (times alpha); returns self."""
    def divide_(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """self /= other; with rounding_mode as div. Returns self."""
    def true_divide_(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """self /= other; with rounding_mode as div. Returns self."""
    def i0(self) -> Any:
        """The modified Bessel function of the first kind of order 0."""
    def add(self, other: Any, *, alpha: Any = 1) -> Any:
        """self + alpha * other."""
    def sub(self, other: Any, *, alpha: Any = 1) -> Any:
        """self - alpha * other."""
    def div(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """self / other; with rounding_mode "floor" or "trunc" the whole number below it or towards 0, of integers as integers."""
    def masked_fill(self, mask: Any, value: Any) -> Any:
        """With `value` where the mask, which broadcasts, is true."""
    def norm(self, p: Any = 2, dim: Any = None, keepdim: Any = False) -> Any:
        """The p-norm over all elements, or along an axis; inf: the largest magnitude, -inf: the least, 0: the count of non-zeros."""
    def addmm(self, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * self + alpha * (a @ b)."""
    def mv(self, vector: Any) -> Any:
        """The product of a matrix and a vector."""
    def outer(self, other: Any) -> Any:
        """The products of all pairs of two vectors."""
    def vdot(self, other: Any) -> Any:
        """The sum of conj(self) * other over all elements, in a row; as many on both sides."""
    def clamp(self, min: Any = None, max: Any = None) -> Any:
        """Every element brought between min and max."""
    def addcmul(self, a: Any, b: Any, *, value: Any = 1) -> Any:
        """self + value * a * b."""
    def addcdiv(self, a: Any, b: Any, *, value: Any = 1) -> Any:
        """self + value * a / b."""
    def baddbmm(self, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * self + alpha * (a @ b), a product for each entry of a batch."""
    def addbmm(self, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * self + alpha * the sum of a batch of products."""
    def addmv(self, matrix: Any, vector: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * self + alpha * (matrix @ vector)."""
    def addr(self, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * self + alpha * the products of all pairs of two vectors."""
    def clamp_min(self, min: Any) -> Any:
        """Every element at least min."""
    def clamp_max(self, max: Any) -> Any:
        """Every element at most max."""
    def dist(self, other: Any, p: Any = 2) -> Any:
        """The p-norm of self - other."""
    def lerp(self, end: Any, weight: Any) -> Any:
        """self + weight * (end - self)."""
    def frac(self) -> Any:
        """self - trunc(self)."""
    def fmod(self, other: Any) -> Any:
        """The rest with the sign of self, without rounding error: self - other * trunc(self / other)."""
    def logit(self, eps: Any = None) -> Any:
        """log(x / (1 - x)), x held between eps and 1 - eps."""
    def erfc(self) -> Any:
        """1 - erf(x), with all digits where erf is near 1."""
    def sinc(self) -> Any:
        """sin(pi x) / (pi x), 1 at 0."""
    def xlogy(self, other: Any) -> Any:
        """self * log(other), 0 where self is 0 and the logarithm no number."""
    def deg2rad(self) -> Any:
        """Degrees as radians."""
    def rad2deg(self) -> Any:
        """Radians as degrees."""
    def nan_to_num(self, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
        """NaN and infinities as numbers: the type's largest unless given."""
    def neg(self) -> Any:
        """-self."""
    def maximum(self, other: Any) -> Any:
        """weft.maximum of the value and another, element by element."""
    def minimum(self, other: Any) -> Any:
        """weft.minimum of the value and another, element by element."""
    def atan2(self, other: Any) -> Any:
        """weft.atan2 of the value and another, element by element."""
    def hypot(self, other: Any) -> Any:
        """weft.hypot of the value and another, element by element."""
    def remainder(self, other: Any) -> Any:
        """weft.remainder of the value and another, element by element."""
    def floor_divide(self, other: Any) -> Any:
        """weft.floor_divide of the value and another, element by element."""
    def copysign(self, other: Any) -> Any:
        """weft.copysign of the value and another, element by element."""
    def logaddexp(self, other: Any) -> Any:
        """weft.logaddexp of the value and another, element by element."""
    def abs(self) -> Any:
        """weft.abs of the value, element by element."""
    def cos(self) -> Any:
        """weft.cos of the value, element by element."""
    def exp(self) -> Any:
        """weft.exp of the value, element by element."""
    def log(self) -> Any:
        """weft.log of the value, element by element."""
    def relu(self) -> Any:
        """weft.relu of the value, element by element."""
    def rsqrt(self) -> Any:
        """weft.rsqrt of the value, element by element."""
    def sigmoid(self) -> Any:
        """weft.sigmoid of the value, element by element."""
    def sin(self) -> Any:
        """weft.sin of the value, element by element."""
    def sqrt(self) -> Any:
        """weft.sqrt of the value, element by element."""
    def square(self) -> Any:
        """weft.square of the value, element by element."""
    def tanh(self) -> Any:
        """weft.tanh of the value, element by element."""
    def log1p(self) -> Any:
        """weft.log1p of the value, element by element."""
    def expm1(self) -> Any:
        """weft.expm1 of the value, element by element."""
    def reciprocal(self) -> Any:
        """weft.reciprocal of the value, element by element."""
    def sign(self) -> Any:
        """weft.sign of the value, element by element."""
    def floor(self) -> Any:
        """weft.floor of the value, element by element."""
    def ceil(self) -> Any:
        """weft.ceil of the value, element by element."""
    def isnan(self) -> Any:
        """weft.isnan of the value, element by element."""
    def isfinite(self) -> Any:
        """weft.isfinite of the value, element by element."""
    def isinf(self) -> Any:
        """weft.isinf of the value, element by element."""
    def trunc(self) -> Any:
        """weft.trunc of the value, element by element."""
    def erf(self) -> Any:
        """weft.erf of the value, element by element."""
    def exp2(self) -> Any:
        """weft.exp2 of the value, element by element."""
    def log2(self) -> Any:
        """weft.log2 of the value, element by element."""
    def log10(self) -> Any:
        """weft.log10 of the value, element by element."""
    def tan(self) -> Any:
        """weft.tan of the value, element by element."""
    def asin(self) -> Any:
        """weft.asin of the value, element by element."""
    def acos(self) -> Any:
        """weft.acos of the value, element by element."""
    def atan(self) -> Any:
        """weft.atan of the value, element by element."""
    def sinh(self) -> Any:
        """weft.sinh of the value, element by element."""
    def cosh(self) -> Any:
        """weft.cosh of the value, element by element."""
    def asinh(self) -> Any:
        """weft.asinh of the value, element by element."""
    def acosh(self) -> Any:
        """weft.acosh of the value, element by element."""
    def atanh(self) -> Any:
        """weft.atanh of the value, element by element."""
    def eq(self, other: Any) -> Any:
        """self == other, as an array of bool."""
    def ne(self, other: Any) -> Any:
        """self != other, as an array of bool."""
    def lt(self, other: Any) -> Any:
        """self < other, as an array of bool."""
    def le(self, other: Any) -> Any:
        """self <= other, as an array of bool."""
    def gt(self, other: Any) -> Any:
        """self > other, as an array of bool."""
    def ge(self, other: Any) -> Any:
        """self >= other, as an array of bool."""
    def mul(self, other: Any) -> Any:
        """self * other."""
    def pow(self, other: Any) -> Any:
        """self ** other."""
    def matmul(self, other: Any) -> Any:
        """self @ other."""
    def mm(self, other: Any) -> Any:
        """self @ other."""
    def bmm(self, other: Any) -> Any:
        """self @ other."""
    def negative(self) -> Any:
        """-self."""
    def subtract(self, other: Any, *, alpha: Any = 1) -> Any:
        """self - alpha * other."""
    def multiply(self, other: Any) -> Any:
        """self * other."""
    def divide(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """self / other; with rounding_mode "floor" or "trunc" the whole number below it or towards 0, of integers as integers."""
    def true_divide(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """self / other; with rounding_mode "floor" or "trunc" the whole number below it or towards 0, of integers as integers."""
    def absolute(self) -> Any:
        """weft.abs of the value, element by element."""
    def fix(self) -> Any:
        """weft.trunc of the value, element by element."""
    def arcsin(self) -> Any:
        """weft.asin of the value, element by element."""
    def arccos(self) -> Any:
        """weft.acos of the value, element by element."""
    def arctan(self) -> Any:
        """weft.atan of the value, element by element."""
    def greater(self, other: Any) -> Any:
        """self > other, as an array of bool."""
    def greater_equal(self, other: Any) -> Any:
        """self >= other, as an array of bool."""
    def less(self, other: Any) -> Any:
        """self < other, as an array of bool."""
    def less_equal(self, other: Any) -> Any:
        """self <= other, as an array of bool."""
    def not_equal(self, other: Any) -> Any:
        """self != other, as an array of bool."""
    def ger(self, other: Any) -> Any:
        """The products of all pairs of two vectors."""
    def unsqueeze(self, dim: Any) -> Any:
        """With a new axis of extent 1 at `dim`."""
    def split(self, split_size_or_sections: Any, dim: Any = 0) -> Any:
        """Parts along an axis: of one size (the last may be smaller), of the sizes in a list, which must add up, or, of an array,
        between these positions, as in NumPy.
        """
    def chunk(self, chunks: Any, dim: Any = 0) -> Any:
        """At most `chunks` parts of one size along an axis; the last may be smaller."""
    def unbind(self, dim: Any = 0) -> Any:
        """The entries along an axis, each with one axis less."""
    def narrow(self, dim: Any, start: Any, length: Any) -> Any:
        """Entries start to start + length - 1 along an axis."""
    def expand(self, *sizes: Any) -> Any:
        """Broadcast to a shape; -1 leaves an extent."""
    def expand_as(self, other: Any) -> Any:
        """Broadcast to the shape of another."""
    def t(self) -> Any:
        """The transpose of a matrix; vectors and scalars as they are. Raises ShapeError above two dimensions."""
    def select(self, dim: Any, index: Any) -> Any:
        """The entry at a position along an axis, which goes."""
    def view_as(self, other: Any) -> Any:
        """In the shape of another."""
    def diag_embed(self, offset: Any = 0, dim1: Any = -2, dim2: Any = -1) -> Any:
        """Matrices with the last axis on a diagonal, zeros elsewhere; dim1, dim2: where their rows and columns are in the result."""
    def rot90(self, k: Any = 1, dims: Any = ...) -> Any:
        """Turned by k right angles from the first axis towards the second."""
    def unflatten(self, dim: Any, sizes: Any) -> Any:
        """One axis as several."""
    def unfold(self, dimension: Any, size: Any, step: Any) -> Any:
        """Windows of `size` entries every `step` along an axis; their entries are a new last axis."""
    def tensor_split(self, parts: Any, dim: Any = 0) -> Any:
        """`parts` pieces along an axis, the first ones longer by one where it does not divide; or cut before indices."""
    def sum_to_size(self, *size: Any) -> Any:
        """Summed over the axes that were broadcast from a shape."""
    def moveaxis(self, source: Any, destination: Any) -> Any:
        """weft.moveaxis of the tensor."""
    def roll(self, shift: Any = None, axis: Any = None, *, shifts: Any = None) -> Any:
        """weft.roll of the tensor; shifts and dims are PyTorch's names."""
    def movedim(self, source: Any, destination: Any) -> Any:
        """weft.moveaxis of the tensor."""
    def reshape_as(self, other: Any) -> Any:
        """In the shape of another."""
    def split_with_sizes(self, split_size_or_sections: Any, dim: Any = 0) -> Any:
        """Parts along an axis: of one size (the last may be smaller), of the sizes in a list, which must add up, or, of an array,
        between these positions, as in NumPy.
        """
    def swapdims(self, axis0: Any, axis1: Any) -> Any:
        """Two axes exchanged."""
    def tile(self, *sizes: Any) -> Any:
        """The whole tensor several times along each axis, as in PyTorch; weft.tile."""
    def index_select(self, dim: Any, index: Any) -> Any:
        """Entries at positions along an axis."""
    def gather(self, dim: Any, index: Any) -> Any:
        """The element at index[..., i, ...] along an axis for each position of index, which may be shorter along the others."""
    def topk(self, k: Any, dim: Any = -1, largest: Any = True, sorted: Any = True) -> Any:
        """(values, positions) of the k largest or smallest along an axis, in order."""
    def masked_select(self, mask: Any) -> Any:
        """The elements where the mask is true, in a row."""
    def index_fill(self, dim: Any, index: Any, value: Any) -> Any:
        """With a number at positions along an axis."""
    def scatter_add(self, dim: Any, index: Any, src: Any) -> Any:
        """With src[...] added at the positions index[...] along an axis; positions may occur several times."""
    def scatter(self, dim: Any, index: Any, src: Any) -> Any:
        """With src[...], or a number, at the positions index[...] along an axis; of equal positions the last stands."""
    def index_add(self, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> Any:
        """With entries of source, times alpha, added at positions along an axis."""
    def take_along_dim(self, index: Any, dim: Any = None) -> Any:
        """gather; of the elements in a row when dim is None."""
    def repeat_interleave(self, repeats: Any = None, dim: Any = None, *, output_size: Any = None) -> Any:
        """Each entry several times: weft.repeat. Without `repeats` the positions, each as often as the entry there says."""
    def argwhere(self) -> Any:
        """Positions of the elements that are not zero, one in each row."""
    def bincount(self, weights: Any = None, minlength: Any = 0) -> Any:
        """How often each integer from 0 on occurs, or the sum of the weights where it does. Raises ArgumentError for
        negative ones.
        """
    def msort(self) -> Any:
        """Sorted along the first axis."""
    def kthvalue(self, k: Any, dim: Any = -1, keepdim: Any = False) -> Any:
        """(value, position) of the k-th smallest along an axis, from 1."""
    def tril(self, *args: Any, **kwargs: Any) -> Any:
        """weft.tril of the tensor."""
    def triu(self, *args: Any, **kwargs: Any) -> Any:
        """weft.triu of the tensor."""
    def amax(self, dim: Any = None, keepdim: Any = False, *, where: Any = None, initial: Any = None) -> Any:
        """The largest, over axes; where= and initial= as weft.max."""
    def amin(self, dim: Any = None, keepdim: Any = False, *, where: Any = None, initial: Any = None) -> Any:
        """The smallest, over axes; where= and initial= as weft.min."""
    def allclose(self, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
        """Is every difference at most atol + rtol * |other|?"""
    def logcumsumexp(self, dim: Any) -> Any:
        """Logarithms of running sums of exponentials along an axis, without overflow or underflow."""
    def nansum(self, dim: Any = None, keepdim: Any = False, *, dtype: Any = None, where: Any = None, initial: Any = None) -> Any:
        """The sum of what is no NaN, where `where` holds."""
    def nanmean(self, dim: Any = None, keepdim: Any = False, *, dtype: Any = None, where: Any = None) -> Any:
        """The mean of what is no NaN, where `where` holds."""
    def quantile(self, q: Any, dim: Any = None, keepdim: Any = False, *, interpolation: Any = 'linear', method: Any = None, weights: Any = None) -> Any:
        """The q-quantile, between two neighbours in proportion; over all elements without an axis."""
    def aminmax(self, dim: Any = None, keepdim: Any = False) -> Any:
        """(smallest, largest)."""
    def cross(self, other: Any, dim: Any = -1, *, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1) -> Any:
        """The vector product along an axis of three entries; of two, whose third is 0, and of two such the third entry."""
    def kron(self, other: Any) -> Any:
        """The Kronecker product: of matrices blocks, of values of other dimensions likewise along each axis."""
    def inner(self, other: Any) -> Any:
        """Products summed over the last axis of both."""
    def equal(self, other: Any) -> Any:
        """Are shapes and all elements equal?"""
    def isclose(self, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
        """Is each difference at most atol + rtol * |other|? An array of bool."""
    def count_nonzero(self, *args: Any, **kwargs: Any) -> Any:
        """weft.count_nonzero of the tensor."""
    def diff(self, *args: Any, **kwargs: Any) -> Any:
        """weft.diff of the tensor."""
    def cpu(self) -> Any:
        """As to("cpu")."""
    def clone(self) -> Any:
        """A copy that stays linked."""
    def as_strided_scatter(self, src: Any, size: Any, stride: Any, storage_offset: Any = 0) -> Any:
        """weft.as_strided_scatter: a copy with src at the elements that as_strided reads."""
    def retain_grad(self) -> Any:
        """Keeps the gradient in .grad, as of a leaf, though the tensor was computed."""
    def register_hook(self, hook: Any) -> Any:
        """Calls hook(gradient) in each backward pass; what it returns, unless None, is the gradient from there on."""
    def dim(self) -> Any:
        """As ndim."""
    def numel(self) -> Any:
        """As size."""
    def type_as(self, other: Any) -> Any:
        """With the element type of another."""
    def type(self, dtype: Any) -> Any:
        """As another element type."""
    def new_full(self, size: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Any:
        """A tensor of one number with this type and device."""
    def new_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> Any:
        """A tensor of the data with this type and device."""
    def is_floating_point(self) -> Any:
        """Are the elements real floats?"""
    def is_complex(self) -> Any:
        """Are the elements complex?"""
    def element_size(self) -> Any:
        """Bytes of an element."""
    def bernoulli(self, p: Any = None) -> Any:
        """0 or 1, 1 with the probabilities that the elements are, or with p."""
    def stride(self, dim: Any = None) -> Any:
        """The steps of the axes, in elements."""
    def cuda(self) -> Any:
        """As to("cuda:0"). Raises DeviceError without one."""
    def new_zeros(self, *size: Any, dtype: Any = None, device: Any = None) -> Any:
        """A tensor of zeros with this type and device."""
    def new_ones(self, *size: Any, dtype: Any = None, device: Any = None) -> Any:
        """A tensor of ones with this type and device."""
    def new_empty(self, *size: Any, dtype: Any = None, device: Any = None) -> Any:
        """A tensor of empty with this type and device."""
    def logical_and(self, other: Any) -> Any:
        """weft.logical_and of masks and integers, without gradient."""
    def logical_or(self, other: Any) -> Any:
        """weft.logical_or of masks and integers, without gradient."""
    def logical_xor(self, other: Any) -> Any:
        """weft.logical_xor of masks and integers, without gradient."""
    def ndimension(self) -> Any:
        """As ndim."""
    def nelement(self) -> Any:
        """As size."""

class Tensor:
    @property
    def data(self) -> NDArray:
        """(self) -> weft.NDArray"""
    @data.setter
    def data(self, value: Any) -> None:
        """(self) -> weft.NDArray"""
    @property
    def grad(self) -> Tensor | None:
        """(self) -> object"""
    @grad.setter
    def grad(self, value: Any) -> None:
        """(self) -> object"""
    @property
    def requires_grad(self) -> _bool:
        """(self) -> bool"""
    @requires_grad.setter
    def requires_grad(self, value: _bool) -> None:
        """(self) -> bool"""
    @property
    def op(self) -> str:
        """(self) -> str"""
    @property
    def inputs(self) -> list[Tensor]:
        """(self) -> list[weft._core.Tensor]"""
    @property
    def is_leaf(self) -> _bool:
        """(self) -> bool"""
    @property
    def shape(self) -> tuple[_builtins.int, ...]:
        """(self) -> tuple[int, ...]"""
    @property
    def ndim(self) -> _builtins.int:
        """(self) -> int"""
    @property
    def size(self) -> _builtins.int:
        """The number of elements; called as in PyTorch, size() is the shape and size(dim) an extent."""
    @property
    def dtype(self) -> _dtype:
        """(self) -> weft.dtype"""
    @property
    def device(self) -> Device:
        """(self) -> object"""
    @property
    def T(self) -> Tensor:
        """(self) -> weft._core.Tensor"""
    @property
    def mT(self) -> Tensor:
        """(self) -> weft._core.Tensor"""
    def __init__(self, data: Any, device: _Device | None = None, dtype: _DType | None = None, requires_grad: _bool = True) -> None: ...
    def detach(self) -> Tensor:
        """The same data without history."""
    def numpy(self) -> _numpy.ndarray[Any, Any]:
        """numpy(self) -> object"""
    def item(self) -> Any:
        """item(self) -> object"""
    def tolist(self) -> Any:
        """tolist(self) -> object"""
    def backward(self, grad: Tensor | NDArray | _Number | None = None, create_graph: _bool = False, retain_graph: _bool = True) -> None:
        """Adds gradients to .grad of all leaves. Unless retain_graph (or create_graph) says that the graph will be passed again, the values that it keeps are given back on the way."""
    def sum(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> Tensor:
        """sum(self, axis: object | None = None, keepdims: bool = False, dtype: object | None = None, out: object | None = None) -> weft._core.Tensor
        sum(self, dim: object, keepdim: bool = False, dtype: object | None = None) -> weft._core.Tensor
        """
    def mean(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> Tensor:
        """mean(self, axis: object | None = None, keepdims: bool = False, dtype: object | None = None, out: object | None = None) -> weft._core.Tensor
        mean(self, dim: object, keepdim: bool = False, dtype: object | None = None) -> weft._core.Tensor
        """
    def max(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> Tensor:
        """max(self, *, axis: object | None = None, keepdims: bool = False, out: object | None = None) -> weft._core.Tensor
        max(self, *, dim: object | None, keepdim: bool = False) -> object
        max(self, axis: object | None, *, keepdims: bool) -> weft._core.Tensor
        max(self, dim: object | None, keepdim: bool = False) -> object
        """
    def min(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> Tensor:
        """min(self, *, axis: object | None = None, keepdims: bool = False, out: object | None = None) -> weft._core.Tensor
        min(self, *, dim: object | None, keepdim: bool = False) -> object
        min(self, axis: object | None, *, keepdims: bool) -> weft._core.Tensor
        min(self, dim: object | None, keepdim: bool = False) -> object
        """
    def prod(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> Tensor:
        """weft.prod."""
    def all(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> NDArray:
        """weft.all, as an array of bool."""
    def any(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> NDArray:
        """weft.any, as an array of bool."""
    def add(self, other: Any) -> Tensor:
        """self + alpha * other."""
    def sub(self, other: Any) -> Tensor:
        """self - alpha * other."""
    def mul(self, other: Any) -> Tensor:
        """self * other."""
    def div(self, other: Any) -> Tensor:
        """self / other; with rounding_mode "floor" or "trunc" the whole number below it or towards 0, of integers as integers."""
    def pow(self, other: Any) -> Tensor:
        """self ** other."""
    def matmul(self, other: Any) -> Tensor:
        """self @ other."""
    def mm(self, other: Any) -> Tensor:
        """self @ other."""
    def bmm(self, other: Any) -> Tensor:
        """self @ other."""
    def cpu(self) -> Tensor:
        """As to("cpu")."""
    def clone(self) -> Tensor:
        """A copy that stays linked."""
    def contiguous(self) -> Tensor:
        """Itself: kernels take any strides."""
    def dim(self) -> _builtins.int:
        """As ndim."""
    def numel(self) -> _builtins.int:
        """As size."""
    def to(self, device: _Device | _dtype | None = None, dtype: _DType | None = None) -> Tensor:
        """On a device, or converted to an element type, or both; of a tensor, to its type and device."""
    def repeat(self, *sizes: _builtins.int | Sequence[_builtins.int]) -> Tensor:
        """The whole tensor several times along each axis, as in PyTorch; weft.tile."""
    def select(self, dim: _builtins.int, index: _builtins.int) -> Tensor:
        """The entry at a position along an axis, which goes."""
    def topk(self, k: _builtins.int, dim: _builtins.int = -1, largest: _bool = True) -> Any:
        """(values, positions) of the k largest or smallest along an axis, in order."""
    def argsort(self, dim: _builtins.int = -1, descending: _bool = False) -> NDArray:
        """Positions that would sort along an axis."""
    def sort(self, dim: _builtins.int = -1, descending: _bool = False) -> tuple[Tensor, NDArray]:
        """(values, positions) sorted along an axis."""
    def addmm(self, a: Any, b: Any, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor:
        """beta * self + alpha * (a @ b)."""
    def outer(self, other: Any) -> Tensor:
        """The products of all pairs of two vectors."""
    def dot(self, other: Any) -> Tensor:
        """The inner product of two vectors."""
    def view_as(self, other: Any) -> Tensor:
        """In the shape of another."""
    def reshape_as(self, other: Any) -> Tensor:
        """In the shape of another."""
    def mv(self, vector: Any) -> Tensor:
        """The product of a matrix and a vector."""
    def amax(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _bool = False) -> Tensor:
        """The largest, over axes; where= and initial= as weft.max."""
    def amin(self, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _bool = False) -> Tensor:
        """The smallest, over axes; where= and initial= as weft.min."""
    def allclose(self, other: Any, rtol: _builtins.float = 1e-05, atol: _builtins.float = 1e-08) -> _bool:
        """Is every difference at most atol + rtol * |other|?"""
    def new_zeros(self, *size: _builtins.int | Sequence[_builtins.int], dtype: _DType | None = None, device: _Device | None = None) -> Tensor:
        """A tensor of zeros with this type and device."""
    def new_ones(self, *size: _builtins.int | Sequence[_builtins.int], dtype: _DType | None = None, device: _Device | None = None) -> Tensor:
        """A tensor of ones with this type and device."""
    def new_empty(self, *size: _builtins.int | Sequence[_builtins.int], dtype: _DType | None = None, device: _Device | None = None) -> Tensor:
        """A tensor of empty with this type and device."""
    def trunc(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.trunc of the value, element by element."""
    def erf(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.erf of the value, element by element."""
    def exp2(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.exp2 of the value, element by element."""
    def log2(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.log2 of the value, element by element."""
    def log10(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.log10 of the value, element by element."""
    def tan(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.tan of the value, element by element."""
    def asin(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.asin of the value, element by element."""
    def acos(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.acos of the value, element by element."""
    def atan(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.atan of the value, element by element."""
    def sinh(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.sinh of the value, element by element."""
    def cosh(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.cosh of the value, element by element."""
    def asinh(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.asinh of the value, element by element."""
    def acosh(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.acosh of the value, element by element."""
    def atanh(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.atanh of the value, element by element."""
    def maximum(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.maximum of the value and another, element by element."""
    def minimum(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.minimum of the value and another, element by element."""
    def atan2(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.atan2 of the value and another, element by element."""
    def hypot(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.hypot of the value and another, element by element."""
    def remainder(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.remainder of the value and another, element by element."""
    def floor_divide(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.floor_divide of the value and another, element by element."""
    def copysign(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.copysign of the value and another, element by element."""
    def logaddexp(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.logaddexp of the value and another, element by element."""
    def moveaxis(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.moveaxis of the tensor."""
    def movedim(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.moveaxis of the tensor."""
    def diff(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.diff of the tensor."""
    def count_nonzero(self, *args: Any, **kwargs: Any) -> Any:
        """weft.count_nonzero of the tensor."""
    def nonzero(self, *args: Any, **kwargs: Any) -> Any:
        """weft.nonzero of the tensor."""
    def add_(self, other: Any, *, alpha: _Number = 1) -> Tensor:
        """self += other (times alpha); returns self."""
    def sub_(self, other: Any, *, alpha: _Number = 1) -> Tensor:
        """self -= other (times alpha); returns self."""
    def mul_(self, other: Any, *, alpha: _Number = 1) -> Tensor:
        """self *= other (times alpha); returns self."""
    def div_(self, other: Any, *, alpha: _Number = 1) -> Tensor:
        """self /= other; with rounding_mode as div. Returns self."""
    def pow_(self, other: Any, *, alpha: _Number = 1) -> Tensor:
        """self **= other (times alpha); returns self."""
    def zero_(self) -> Tensor:
        """All elements become 0; returns self."""
    def fill_(self, value: _Number) -> Tensor:
        """All elements become a number; returns self."""
    def copy_(self, source: Any) -> Tensor:
        """The elements become those of an array that broadcasts, converted to this type; returns self."""
    def clamp_(self, min: _Number | None = None, max: _Number | None = None) -> Tensor:
        """The elements become those of clip(...); returns self."""
    def uniform_(self, a: _builtins.float = 0.0, b: _builtins.float = 1.0) -> Tensor:
        """Uniform random numbers in [a, b); returns self."""
    def normal_(self, mean: _builtins.float = 0.0, std: _builtins.float = 1.0) -> Tensor:
        """Normal random numbers; returns self."""
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor:
        """Sets requires_grad; returns the tensor."""
    def abs(self) -> Tensor:
        """weft.abs of the value, element by element."""
    def cos(self) -> Tensor:
        """weft.cos of the value, element by element."""
    def exp(self) -> Tensor:
        """weft.exp of the value, element by element."""
    def log(self) -> Tensor:
        """weft.log of the value, element by element."""
    def relu(self) -> Tensor:
        """weft.relu of the value, element by element."""
    def rsqrt(self) -> Tensor:
        """weft.rsqrt of the value, element by element."""
    def sigmoid(self) -> Tensor:
        """weft.sigmoid of the value, element by element."""
    def sin(self) -> Tensor:
        """weft.sin of the value, element by element."""
    def sqrt(self) -> Tensor:
        """weft.sqrt of the value, element by element."""
    def square(self) -> Tensor:
        """weft.square of the value, element by element."""
    def tanh(self) -> Tensor:
        """weft.tanh of the value, element by element."""
    def var(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False, correction: _builtins.float = 0.0) -> Tensor:
        """weft.var; the divisor is the count less `correction`."""
    def std(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False, correction: _builtins.float = 0.0) -> Tensor:
        """weft.std; the divisor is the count less `correction`."""
    def argmax(self, axis: _builtins.int | None = None, keepdims: _bool = False, *, dim: _builtins.int | None = None, keepdim: _bool = False) -> NDArray:
        """Positions of the largest elements, as an array of int64; dim and keepdim are PyTorch's names."""
    def argmin(self, axis: _builtins.int | None = None, keepdims: _bool = False, *, dim: _builtins.int | None = None, keepdim: _bool = False) -> NDArray:
        """Positions of the smallest elements, as an array of int64; dim and keepdim are PyTorch's names."""
    def split(self, split_size_or_sections: _builtins.int | Sequence[_builtins.int], dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """Parts along an axis: of one size (the last may be smaller), of the sizes in a list, which must add up, or, of an array,
        between these positions, as in NumPy.
        """
    def chunk(self, chunks: _builtins.int, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` parts of one size along an axis; the last may be smaller."""
    def unbind(self, dim: _builtins.int = 0) -> tuple[Tensor, ...]:
        """The entries along an axis, each with one axis less."""
    def narrow(self, dim: _builtins.int, start: _builtins.int, length: _builtins.int) -> Tensor:
        """Entries start to start + length - 1 along an axis."""
    def masked_fill(self, mask: Any, value: _Number) -> Tensor:
        """With `value` where the mask, which broadcasts, is true."""
    def expand(self, *sizes: _builtins.int | Sequence[_builtins.int]) -> Tensor:
        """Broadcast to a shape; -1 leaves an extent."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Broadcast to the shape of another."""
    def norm(self, p: _builtins.float = 2, dim: _builtins.int | Sequence[_builtins.int] | None = None, keepdim: _bool = False) -> Tensor:
        """The p-norm over all elements, or along an axis; inf: the largest magnitude, -inf: the least, 0: the count of non-zeros."""
    def index_select(self, dim: _builtins.int, index: Any) -> Tensor:
        """Entries at positions along an axis."""
    def gather(self, dim: _builtins.int, index: Any) -> Tensor:
        """The element at index[..., i, ...] along an axis for each position of index, which may be shorter along the others."""
    def cumsum(self, dim: _builtins.int) -> Tensor:
        """Running sums along an axis; of all elements in a row without one, as in NumPy."""
    def clamp(self, min: _Number | None = None, max: _Number | None = None) -> Tensor:
        """Every element brought between min and max."""
    def type_as(self, other: Tensor) -> Tensor:
        """With the element type of another."""
    def roll(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.roll of the tensor; shifts and dims are PyTorch's names."""
    def t(self) -> Tensor:
        """The transpose of a matrix; vectors and scalars as they are. Raises ShapeError above two dimensions."""
    def double(self) -> Tensor:
        """As float64; of a tensor, whole numbers and truth values are an array without the graph."""
    def half(self) -> Tensor:
        """As float16; of a tensor, whole numbers and truth values are an array without the graph."""
    def float(self) -> Tensor:
        """As float32; of a tensor, whole numbers and truth values are an array without the graph."""
    def long(self) -> NDArray:
        """As int64; of a tensor, whole numbers and truth values are an array without the graph."""
    def int(self) -> NDArray:
        """As int32; of a tensor, whole numbers and truth values are an array without the graph."""
    def bool(self) -> NDArray:
        """As bool; of a tensor, whole numbers and truth values are an array without the graph."""
    def log1p(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.log1p of the value, element by element."""
    def expm1(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.expm1 of the value, element by element."""
    def reciprocal(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.reciprocal of the value, element by element."""
    def sign(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.sign of the value, element by element."""
    def floor(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.floor of the value, element by element."""
    def ceil(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.ceil of the value, element by element."""
    def round(self, *args: Any, **kwargs: Any) -> Tensor:
        """The nearest whole numbers, halves to even; with decimals, numbers of so many places."""
    def tril(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.tril of the tensor."""
    def triu(self, *args: Any, **kwargs: Any) -> Tensor:
        """weft.triu of the tensor."""
    def isnan(self, *args: Any, **kwargs: Any) -> Any:
        """weft.isnan of the value, element by element."""
    def isfinite(self, *args: Any, **kwargs: Any) -> Any:
        """weft.isfinite of the value, element by element."""
    def isinf(self, *args: Any, **kwargs: Any) -> Any:
        """weft.isinf of the value, element by element."""
    def eq(self, other: Any) -> Any:
        """self == other, as an array of bool."""
    def ne(self, other: Any) -> Any:
        """self != other, as an array of bool."""
    def lt(self, other: Any) -> Any:
        """self < other, as an array of bool."""
    def le(self, other: Any) -> Any:
        """self <= other, as an array of bool."""
    def gt(self, other: Any) -> Any:
        """self > other, as an array of bool."""
    def ge(self, other: Any) -> Any:
        """self >= other, as an array of bool."""
    def clip(self, min: _Number | None = None, max: _Number | None = None) -> Tensor:
        """Every element brought between min and max."""
    def unsqueeze(self, dim: _builtins.int) -> Tensor:
        """With a new axis of extent 1 at `dim`."""
    def squeeze(self, dim: _builtins.int | Sequence[_builtins.int] | None = None) -> Tensor:
        """Without the axes `dim`, which must have extent 1; without all such axes when None."""
    def flatten(self, start_dim: _builtins.int = 0, end_dim: _builtins.int = -1) -> Tensor:
        """With the axes from start_dim to end_dim (inclusive) as one."""
    def view(self, *shape: _builtins.int | Sequence[_builtins.int]) -> Tensor:
        """As reshape; of an element type the memory as elements of that type, without a gradient."""
    def reshape(self, *shape: _builtins.int | Sequence[_builtins.int]) -> Tensor:
        """reshape(self, *args) -> weft._core.Tensor"""
    def permute(self, *axes: _builtins.int | Sequence[_builtins.int]) -> Tensor:
        """permute(self, *args) -> weft._core.Tensor"""
    def flip(self, *axes: _builtins.int | Sequence[_builtins.int]) -> Tensor:
        """With axes reversed; `dims` is PyTorch's name of them."""
    def transpose(self, a: _builtins.int = -2, b: _builtins.int = -1) -> Tensor:
        """transpose(self, a: int = -2, b: int = -1) -> weft._core.Tensor"""
    def broadcast_to(self, shape: Sequence[_builtins.int], /) -> Tensor:
        """broadcast_to(self, arg: object, /) -> weft._core.Tensor"""
    def astype(self, dtype: _DType, /) -> Tensor:
        """astype(self, arg: weft.dtype, /) -> weft._core.Tensor"""
    def pad(self, widths: Sequence[tuple[_builtins.int, _builtins.int]], /) -> Tensor:
        """pad(self, arg: collections.abc.Sequence[tuple[int, int]], /) -> weft._core.Tensor"""
    def softmax(self, axis: _builtins.int = -1) -> Tensor:
        """softmax(self, axis: int = -1) -> weft._core.Tensor
        softmax(self, dim: int) -> weft._core.Tensor
        """
    def log_softmax(self, axis: _builtins.int = -1) -> Tensor:
        """log_softmax(self, axis: int = -1) -> weft._core.Tensor
        log_softmax(self, dim: int) -> weft._core.Tensor
        """
    def logsumexp(self, axis: _builtins.int | Sequence[_builtins.int] | None = None, keepdims: _bool = False) -> Tensor:
        """logsumexp(self, axis: object | None = None, keepdims: bool = False) -> weft._core.Tensor
        logsumexp(self, dim: object, keepdim: bool = False) -> weft._core.Tensor
        """
    def layer_norm(self, scale: Tensor, shift: Tensor, eps: _builtins.float = 1e-05) -> Tensor:
        """(x - mean) / sqrt(variance + eps) * scale + shift over the last axis; None: 1, 0."""
    def concat(self, tensors: list[Tensor], axis: _builtins.int, /) -> Tensor:
        """concat(self, arg0: list, arg1: int, /) -> weft._core.Tensor"""
    def where(self, condition: Any, a: Any, b: Any, /) -> Tensor:
        """The elements where the condition is true, those of other elsewhere."""
    def windows(self, kh: _builtins.int, kw: _builtins.int, stride: _builtins.int, /) -> Tensor:
        """windows(self, arg0: int, arg1: int, arg2: int, /) -> weft._core.Tensor"""
    def __getitem__(self, key: Any, /) -> Tensor: ...
    def __len__(self) -> _builtins.int: ...
    def __float__(self) -> _builtins.float: ...
    def __neg__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __gt__(self, other: Any, /) -> Tensor: ...
    def __ge__(self, other: Any, /) -> Tensor: ...
    def __lt__(self, other: Any, /) -> Tensor: ...
    def __le__(self, other: Any, /) -> Tensor: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> _builtins.int: ...
    def __pos__(self) -> Tensor: ...
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: _bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[_builtins.int, _builtins.int]: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> _numpy.ndarray[Any, Any]: ...
    def __add__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __radd__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __iadd__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __sub__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rsub__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __isub__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __mul__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rmul__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __imul__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __truediv__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rtruediv__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __itruediv__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __floordiv__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rfloordiv__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __mod__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rmod__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __pow__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rpow__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __ipow__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __matmul__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rmatmul__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __and__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rand__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __or__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __ror__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __xor__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rxor__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __lshift__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rlshift__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rshift__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __rrshift__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...
    def __eq__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: _ArrayLike | Tensor, /) -> Tensor: ...  # type: ignore[override]
    def i0(self) -> Any:
        """The modified Bessel function of the first kind of order 0."""
    def vdot(self, other: Any) -> Any:
        """The sum of conj(self) * other over all elements, in a row; as many on both sides."""
    def addcmul(self, a: Any, b: Any, *, value: Any = 1) -> Any:
        """self + value * a * b."""
    def addcdiv(self, a: Any, b: Any, *, value: Any = 1) -> Any:
        """self + value * a / b."""
    def baddbmm(self, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * self + alpha * (a @ b), a product for each entry of a batch."""
    def addbmm(self, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * self + alpha * the sum of a batch of products."""
    def addmv(self, matrix: Any, vector: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * self + alpha * (matrix @ vector)."""
    def addr(self, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * self + alpha * the products of all pairs of two vectors."""
    def clamp_min(self, min: Any) -> Any:
        """Every element at least min."""
    def clamp_max(self, max: Any) -> Any:
        """Every element at most max."""
    def dist(self, other: Any, p: Any = 2) -> Any:
        """The p-norm of self - other."""
    def lerp(self, end: Any, weight: Any) -> Any:
        """self + weight * (end - self)."""
    def frac(self) -> Any:
        """self - trunc(self)."""
    def fmod(self, other: Any) -> Any:
        """The rest with the sign of self, without rounding error: self - other * trunc(self / other)."""
    def logit(self, eps: Any = None) -> Any:
        """log(x / (1 - x)), x held between eps and 1 - eps."""
    def erfc(self) -> Any:
        """1 - erf(x), with all digits where erf is near 1."""
    def sinc(self) -> Any:
        """sin(pi x) / (pi x), 1 at 0."""
    def xlogy(self, other: Any) -> Any:
        """self * log(other), 0 where self is 0 and the logarithm no number."""
    def deg2rad(self) -> Any:
        """Degrees as radians."""
    def rad2deg(self) -> Any:
        """Radians as degrees."""
    def nan_to_num(self, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
        """NaN and infinities as numbers: the type's largest unless given."""
    def neg(self) -> Any:
        """-self."""
    def negative(self) -> Any:
        """-self."""
    def subtract(self, other: Any, *, alpha: Any = 1) -> Any:
        """self - alpha * other."""
    def multiply(self, other: Any) -> Any:
        """self * other."""
    def divide(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """self / other; with rounding_mode "floor" or "trunc" the whole number below it or towards 0, of integers as integers."""
    def true_divide(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """self / other; with rounding_mode "floor" or "trunc" the whole number below it or towards 0, of integers as integers."""
    def absolute(self) -> Any:
        """weft.abs of the value, element by element."""
    def fix(self) -> Any:
        """weft.trunc of the value, element by element."""
    def arcsin(self) -> Any:
        """weft.asin of the value, element by element."""
    def arccos(self) -> Any:
        """weft.acos of the value, element by element."""
    def arctan(self) -> Any:
        """weft.atan of the value, element by element."""
    def greater(self, other: Any) -> Any:
        """self > other, as an array of bool."""
    def greater_equal(self, other: Any) -> Any:
        """self >= other, as an array of bool."""
    def less(self, other: Any) -> Any:
        """self < other, as an array of bool."""
    def less_equal(self, other: Any) -> Any:
        """self <= other, as an array of bool."""
    def not_equal(self, other: Any) -> Any:
        """self != other, as an array of bool."""
    def ger(self, other: Any) -> Any:
        """The products of all pairs of two vectors."""
    def diagonal(self, offset: Any = 0, dim1: Any = 0, dim2: Any = 1) -> Any:
        """The diagonals of the matrices in two axes, as the last axis."""
    def diag(self, diagonal: Any = 0) -> Any:
        """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    def diag_embed(self, offset: Any = 0, dim1: Any = -2, dim2: Any = -1) -> Any:
        """Matrices with the last axis on a diagonal, zeros elsewhere; dim1, dim2: where their rows and columns are in the result."""
    def rot90(self, k: Any = 1, dims: Any = ...) -> Any:
        """Turned by k right angles from the first axis towards the second."""
    def fliplr(self) -> Any:
        """The second axis reversed."""
    def flipud(self) -> Any:
        """The first axis reversed."""
    def swapaxes(self, axis0: Any, axis1: Any) -> Any:
        """Two axes exchanged."""
    def ravel(self) -> Any:
        """The elements in a row."""
    def unflatten(self, dim: Any, sizes: Any) -> Any:
        """One axis as several."""
    def unfold(self, dimension: Any, size: Any, step: Any) -> Any:
        """Windows of `size` entries every `step` along an axis; their entries are a new last axis."""
    def tensor_split(self, parts: Any, dim: Any = 0) -> Any:
        """`parts` pieces along an axis, the first ones longer by one where it does not divide; or cut before indices."""
    def sum_to_size(self, *size: Any) -> Any:
        """Summed over the axes that were broadcast from a shape."""
    def split_with_sizes(self, split_size_or_sections: Any, dim: Any = 0) -> Any:
        """Parts along an axis: of one size (the last may be smaller), of the sizes in a list, which must add up, or, of an array,
        between these positions, as in NumPy.
        """
    def swapdims(self, axis0: Any, axis1: Any) -> Any:
        """Two axes exchanged."""
    def tile(self, *sizes: Any) -> Any:
        """The whole tensor several times along each axis, as in PyTorch; weft.tile."""
    def masked_select(self, mask: Any) -> Any:
        """The elements where the mask is true, in a row."""
    def index_fill(self, dim: Any, index: Any, value: Any) -> Any:
        """With a number at positions along an axis."""
    def scatter_add(self, dim: Any, index: Any, src: Any) -> Any:
        """With src[...] added at the positions index[...] along an axis; positions may occur several times."""
    def scatter(self, dim: Any, index: Any, src: Any) -> Any:
        """With src[...], or a number, at the positions index[...] along an axis; of equal positions the last stands."""
    def index_add(self, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> Any:
        """With entries of source, times alpha, added at positions along an axis."""
    def take(self, index: Any) -> Any:
        """Elements at positions in the row of all elements."""
    def take_along_dim(self, index: Any, dim: Any = None) -> Any:
        """gather; of the elements in a row when dim is None."""
    def repeat_interleave(self, repeats: Any = None, dim: Any = None, *, output_size: Any = None) -> Any:
        """Each entry several times: weft.repeat. Without `repeats` the positions, each as often as the entry there says."""
    def argwhere(self) -> Any:
        """Positions of the elements that are not zero, one in each row."""
    def bincount(self, weights: Any = None, minlength: Any = 0) -> Any:
        """How often each integer from 0 on occurs, or the sum of the weights where it does. Raises ArgumentError for
        negative ones.
        """
    def msort(self) -> Any:
        """Sorted along the first axis."""
    def kthvalue(self, k: Any, dim: Any = -1, keepdim: Any = False) -> Any:
        """(value, position) of the k-th smallest along an axis, from 1."""
    def cumprod(self, dim: Any = None, dtype: Any = None) -> Any:
        """Running products along an axis; of all elements in a row without one, as in NumPy."""
    def logcumsumexp(self, dim: Any) -> Any:
        """Logarithms of running sums of exponentials along an axis, without overflow or underflow."""
    def nansum(self, dim: Any = None, keepdim: Any = False, *, dtype: Any = None, where: Any = None, initial: Any = None) -> Any:
        """The sum of what is no NaN, where `where` holds."""
    def nanmean(self, dim: Any = None, keepdim: Any = False, *, dtype: Any = None, where: Any = None) -> Any:
        """The mean of what is no NaN, where `where` holds."""
    def median(self, dim: Any = None, keepdim: Any = False) -> Any:
        """The lower of the two middle elements; along an axis (value, position), as in PyTorch."""
    def quantile(self, q: Any, dim: Any = None, keepdim: Any = False, *, interpolation: Any = 'linear', method: Any = None, weights: Any = None) -> Any:
        """The q-quantile, between two neighbours in proportion; over all elements without an axis."""
    def aminmax(self, dim: Any = None, keepdim: Any = False) -> Any:
        """(smallest, largest)."""
    def trace(self, offset: Any = 0) -> Any:
        """The sum of a matrix's diagonal, or of the one beside it by `offset`."""
    def cross(self, other: Any, dim: Any = -1, *, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1) -> Any:
        """The vector product along an axis of three entries; of two, whose third is 0, and of two such the third entry."""
    def kron(self, other: Any) -> Any:
        """The Kronecker product: of matrices blocks, of values of other dimensions likewise along each axis."""
    def inner(self, other: Any) -> Any:
        """Products summed over the last axis of both."""
    def equal(self, other: Any) -> Any:
        """Are shapes and all elements equal?"""
    def isclose(self, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
        """Is each difference at most atol + rtol * |other|? An array of bool."""
    def as_strided(self, size: Any, stride: Any, storage_offset: Any = 0) -> Any:
        """weft.as_strided: elements picked by steps, with the gradient."""
    def as_strided_scatter(self, src: Any, size: Any, stride: Any, storage_offset: Any = 0) -> Any:
        """weft.as_strided_scatter: a copy with src at the elements that as_strided reads."""
    def put(self, index: Any, source: Any, accumulate: Any = False) -> Any:
        """A copy with elements at flat positions replaced by those of source, or added to."""
    @property
    def grad_fn(self) -> Any:
        """What made it, for printing: None of a leaf."""
    def retain_grad(self) -> Any:
        """Keeps the gradient in .grad, as of a leaf, though the tensor was computed."""
    def register_hook(self, hook: Any) -> Any:
        """Calls hook(gradient) in each backward pass; what it returns, unless None, is the gradient from there on."""
    def type(self, dtype: Any) -> Any:
        """As another element type."""
    def new_full(self, size: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Any:
        """A tensor of one number with this type and device."""
    def new_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> Any:
        """A tensor of the data with this type and device."""
    def is_floating_point(self) -> Any:
        """Are the elements real floats?"""
    def is_complex(self) -> Any:
        """Are the elements complex?"""
    def element_size(self) -> Any:
        """Bytes of an element."""
    def bernoulli(self, p: Any = None) -> Any:
        """0 or 1, 1 with the probabilities that the elements are, or with p."""
    def is_contiguous(self) -> Any:
        """Do the elements lie in order without gaps?"""
    def stride(self, dim: Any = None) -> Any:
        """The steps of the axes, in elements."""
    def cuda(self) -> Any:
        """As to("cuda:0"). Raises DeviceError without one."""
    @property
    def nbytes(self) -> Any:
        """Bytes of all elements."""
    def conj(self) -> Any:
        """Complex conjugate; the tensor itself when it is real."""
    @property
    def real(self) -> Any:
        """The real part; the tensor itself when it is real."""
    @property
    def imag(self) -> Any:
        """The imaginary part; zeros when the tensor is real."""
    def logical_and(self, other: Any) -> Any:
        """weft.logical_and of masks and integers, without gradient."""
    def logical_or(self, other: Any) -> Any:
        """weft.logical_or of masks and integers, without gradient."""
    def logical_xor(self, other: Any) -> Any:
        """weft.logical_xor of masks and integers, without gradient."""
    def ndimension(self) -> Any:
        """As ndim."""
    def nelement(self) -> Any:
        """As size."""
    @property
    def at(self) -> Any:
        """x.at[index].set(values), add, subtract, multiply, divide, power, min, max, apply, get: a copy with other elements, as in JAX."""
    def bitwise_not(self) -> Any:
        """Each bit turned, without gradient."""
    def to_dense(self) -> Any:
        """Itself."""
    def get_device(self) -> Any:
        """The number of the card that it lies on, -1 on the host."""
    def data_ptr(self) -> Any:
        """The address of the first element, as a number; of memory that the host or CUDA knows."""
    def storage_offset(self) -> Any:
        """How many elements of the memory lie before the first one."""
    def is_set_to(self, other: Any) -> Any:
        """Are both the same elements of the same memory?"""
    def is_pinned(self) -> Any:
        """False: memory of the host is not pinned."""
    def pin_memory(self) -> Any:
        """Itself: copies to cards need no pinned memory."""
    def narrow_copy(self, dim: Any, start: Any, length: Any) -> Any:
        """A copy of `length` entries along an axis."""
    @property
    def layout(self) -> Any:
        """weft.strided: all are."""
    @property
    def itemsize(self) -> Any:
        """Bytes of an element."""
    @property
    def H(self) -> Any:
        """A matrix transposed and conjugated."""
    @property
    def mH(self) -> Any:
        """Matrices in the last two axes transposed and conjugated."""
    def adjoint(self, *args: Any, **kwargs: Any) -> Any:
        """weft.adjoint of the value."""
    def angle(self, *args: Any, **kwargs: Any) -> Any:
        """weft.angle of the value."""
    def arccosh(self, *args: Any, **kwargs: Any) -> Any:
        """weft.arccosh of the value."""
    def arcsinh(self, *args: Any, **kwargs: Any) -> Any:
        """weft.arcsinh of the value."""
    def arctan2(self, *args: Any, **kwargs: Any) -> Any:
        """weft.arctan2 of the value."""
    def arctanh(self, *args: Any, **kwargs: Any) -> Any:
        """weft.arctanh of the value."""
    def bitwise_and(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_and of the value."""
    def bitwise_left_shift(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_left_shift of the value."""
    def bitwise_or(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_or of the value."""
    def bitwise_right_shift(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_right_shift of the value."""
    def bitwise_xor(self, *args: Any, **kwargs: Any) -> Any:
        """weft.bitwise_xor of the value."""
    def cholesky(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cholesky of the value."""
    def cholesky_inverse(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cholesky_inverse of the value."""
    def cholesky_solve(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cholesky_solve of the value."""
    def choose(self, *args: Any, **kwargs: Any) -> Any:
        """weft.choose of the value."""
    def conj_physical(self, *args: Any, **kwargs: Any) -> Any:
        """weft.conj_physical of the value."""
    def corrcoef(self, *args: Any, **kwargs: Any) -> Any:
        """weft.corrcoef of the value."""
    def cov(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cov of the value."""
    def cummax(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cummax of the value."""
    def cummin(self, *args: Any, **kwargs: Any) -> Any:
        """weft.cummin of the value."""
    def det(self, *args: Any, **kwargs: Any) -> Any:
        """weft.det of the value."""
    def diagflat(self, *args: Any, **kwargs: Any) -> Any:
        """weft.diagflat of the value."""
    def diagonal_scatter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.diagonal_scatter of the value."""
    def digamma(self, *args: Any, **kwargs: Any) -> Any:
        """weft.digamma of the value."""
    def dsplit(self, *args: Any, **kwargs: Any) -> Any:
        """weft.dsplit of the value."""
    def erfinv(self, *args: Any, **kwargs: Any) -> Any:
        """weft.erfinv of the value."""
    def float_power(self, *args: Any, **kwargs: Any) -> Any:
        """weft.float_power of the value."""
    def fmax(self, *args: Any, **kwargs: Any) -> Any:
        """weft.fmax of the value."""
    def fmin(self, *args: Any, **kwargs: Any) -> Any:
        """weft.fmin of the value."""
    def frexp(self, *args: Any, **kwargs: Any) -> Any:
        """weft.frexp of the value."""
    def gcd(self, *args: Any, **kwargs: Any) -> Any:
        """weft.gcd of the value."""
    def geqrf(self, *args: Any, **kwargs: Any) -> Any:
        """weft.geqrf of the value."""
    def hardshrink(self, *args: Any, **kwargs: Any) -> Any:
        """weft.hardshrink of the value."""
    def heaviside(self, *args: Any, **kwargs: Any) -> Any:
        """weft.heaviside of the value."""
    def histc(self, *args: Any, **kwargs: Any) -> Any:
        """weft.histc of the value."""
    def histogram(self, *args: Any, **kwargs: Any) -> Any:
        """weft.histogram of the value."""
    def hsplit(self, *args: Any, **kwargs: Any) -> Any:
        """weft.hsplit of the value."""
    def index_copy(self, *args: Any, **kwargs: Any) -> Any:
        """weft.index_copy of the value."""
    def index_put(self, *args: Any, **kwargs: Any) -> Any:
        """weft.index_put of the value."""
    def index_reduce(self, *args: Any, **kwargs: Any) -> Any:
        """weft.index_reduce of the value."""
    def inverse(self, *args: Any, **kwargs: Any) -> Any:
        """weft.inverse of the value."""
    def is_conj(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_conj of the value."""
    def is_inference(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_inference of the value."""
    def is_neg(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_neg of the value."""
    def is_nonzero(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_nonzero of the value."""
    def is_same_size(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_same_size of the value."""
    def is_signed(self, *args: Any, **kwargs: Any) -> Any:
        """weft.is_signed of the value."""
    def isneginf(self, *args: Any, **kwargs: Any) -> Any:
        """weft.isneginf of the value."""
    def isposinf(self, *args: Any, **kwargs: Any) -> Any:
        """weft.isposinf of the value."""
    def isreal(self, *args: Any, **kwargs: Any) -> Any:
        """weft.isreal of the value."""
    def istft(self, *args: Any, **kwargs: Any) -> Any:
        """weft.istft of the value."""
    def lcm(self, *args: Any, **kwargs: Any) -> Any:
        """weft.lcm of the value."""
    def ldexp(self, *args: Any, **kwargs: Any) -> Any:
        """weft.ldexp of the value."""
    def lgamma(self, *args: Any, **kwargs: Any) -> Any:
        """weft.lgamma of the value."""
    def logaddexp2(self, *args: Any, **kwargs: Any) -> Any:
        """weft.logaddexp2 of the value."""
    def logdet(self, *args: Any, **kwargs: Any) -> Any:
        """weft.logdet of the value."""
    def logical_not(self, *args: Any, **kwargs: Any) -> Any:
        """weft.logical_not of the value."""
    def lu(self, *args: Any, **kwargs: Any) -> Any:
        """weft.lu of the value."""
    def lu_solve(self, *args: Any, **kwargs: Any) -> Any:
        """weft.lu_solve of the value."""
    def masked_scatter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.masked_scatter of the value."""
    def matrix_exp(self, *args: Any, **kwargs: Any) -> Any:
        """weft.matrix_exp of the value."""
    def matrix_power(self, *args: Any, **kwargs: Any) -> Any:
        """weft.matrix_power of the value."""
    def mode(self, *args: Any, **kwargs: Any) -> Any:
        """weft.mode of the value."""
    def multinomial(self, *args: Any, **kwargs: Any) -> Any:
        """weft.multinomial of the value."""
    def mvlgamma(self, *args: Any, **kwargs: Any) -> Any:
        """weft.mvlgamma of the value."""
    def nanmedian(self, *args: Any, **kwargs: Any) -> Any:
        """weft.nanmedian of the value."""
    def nanquantile(self, *args: Any, **kwargs: Any) -> Any:
        """weft.nanquantile of the value."""
    def nextafter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.nextafter of the value."""
    def orgqr(self, *args: Any, **kwargs: Any) -> Any:
        """weft.orgqr of the value."""
    def ormqr(self, *args: Any, **kwargs: Any) -> Any:
        """weft.ormqr of the value."""
    def pinverse(self, *args: Any, **kwargs: Any) -> Any:
        """weft.pinverse of the value."""
    def positive(self, *args: Any, **kwargs: Any) -> Any:
        """weft.positive of the value."""
    def prelu(self, *args: Any, **kwargs: Any) -> Any:
        """weft.prelu of the value."""
    def ptp(self, *args: Any, **kwargs: Any) -> Any:
        """weft.ptp of the value."""
    def qr(self, *args: Any, **kwargs: Any) -> Any:
        """weft.qr of the value."""
    def renorm(self, *args: Any, **kwargs: Any) -> Any:
        """weft.renorm of the value."""
    def resolve_conj(self, *args: Any, **kwargs: Any) -> Any:
        """weft.resolve_conj of the value."""
    def resolve_neg(self, *args: Any, **kwargs: Any) -> Any:
        """weft.resolve_neg of the value."""
    def scatter_reduce(self, *args: Any, **kwargs: Any) -> Any:
        """weft.scatter_reduce of the value."""
    def select_scatter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.select_scatter of the value."""
    def sgn(self, *args: Any, **kwargs: Any) -> Any:
        """weft.sgn of the value."""
    def signbit(self, *args: Any, **kwargs: Any) -> Any:
        """weft.signbit of the value."""
    def slice_scatter(self, *args: Any, **kwargs: Any) -> Any:
        """weft.slice_scatter of the value."""
    def slogdet(self, *args: Any, **kwargs: Any) -> Any:
        """weft.slogdet of the value."""
    def stft(self, *args: Any, **kwargs: Any) -> Any:
        """weft.stft of the value."""
    def svd(self, *args: Any, **kwargs: Any) -> Any:
        """weft.svd of the value."""
    def triangular_solve(self, *args: Any, **kwargs: Any) -> Any:
        """weft.triangular_solve of the value."""
    def unique(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unique of the value."""
    def unique_consecutive(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unique_consecutive of the value."""
    def unsafe_chunk(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unsafe_chunk of the value."""
    def unsafe_split(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unsafe_split of the value."""
    def unsafe_split_with_sizes(self, *args: Any, **kwargs: Any) -> Any:
        """weft.unsafe_split_with_sizes of the value."""
    def vsplit(self, *args: Any, **kwargs: Any) -> Any:
        """weft.vsplit of the value."""
    def bfloat16(self) -> Any:
        """As bfloat16; of a tensor, whole numbers are an array without the graph."""
    def byte(self) -> Any:
        """As uint8; of a tensor, whole numbers are an array without the graph."""
    def char(self) -> Any:
        """As int8; of a tensor, whole numbers are an array without the graph."""
    def short(self) -> Any:
        """As int16; of a tensor, whole numbers are an array without the graph."""
    def cfloat(self) -> Any:
        """As complex64; of a tensor, whole numbers are an array without the graph."""
    def cdouble(self) -> Any:
        """As complex128; of a tensor, whole numbers are an array without the graph."""
    def to_sparse(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def to_sparse_csr(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def to_sparse_coo(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def coalesce(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def to_mkldnn(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arrays and tensors here are dense."""
    def conjugate(self, *args: Any, **kwargs: Any) -> Any:
        """weft.conj_physical of the value."""
    @property
    def is_cpu(self) -> Any: ...
    @property
    def is_cuda(self) -> Any: ...
    @property
    def is_sparse(self) -> Any: ...
    @property
    def is_quantized(self) -> Any: ...
    @property
    def is_meta(self) -> Any: ...
    @property
    def is_mps(self) -> Any: ...
    @property
    def is_xpu(self) -> Any: ...
    @property
    def is_mkldnn(self) -> Any: ...
    @property
    def is_nested(self) -> Any: ...
    @property
    def is_sparse_csr(self) -> Any: ...
    def detach_(self) -> Any:
        """Forgets the graph: the tensor becomes a leaf without gradient; returns self."""
    def fill_diagonal_(self, value: Any, wrap: Any = False) -> Any:
        """The diagonal of a matrix becomes a number; returns self."""
    def apply_(self, function: Any) -> Any:
        """Every element becomes function(element), called on the host; returns self."""
    def map_(self, other: Any, function: Any) -> Any:
        """Every element becomes function(element, other's element), called on the host; returns self."""
    def put_(self, index: Any, source: Any, accumulate: Any = False) -> Any:
        """Elements at flat positions become those of source, or are added to; returns self."""
    def abs_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of abs(...); returns self."""
    def absolute_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of absolute(...); returns self."""
    def acos_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of acos(...); returns self."""
    def acosh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of acosh(...); returns self."""
    def addbmm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addbmm(...); returns self."""
    def addcdiv_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addcdiv(...); returns self."""
    def addcmul_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addcmul(...); returns self."""
    def addmm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addmm(...); returns self."""
    def addmv_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addmv(...); returns self."""
    def addr_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of addr(...); returns self."""
    def arccos_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arccos(...); returns self."""
    def arccosh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arccosh(...); returns self."""
    def arcsin_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arcsin(...); returns self."""
    def arcsinh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arcsinh(...); returns self."""
    def arctan_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arctan(...); returns self."""
    def arctan2_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arctan2(...); returns self."""
    def arctanh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of arctanh(...); returns self."""
    def asin_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of asin(...); returns self."""
    def asinh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of asinh(...); returns self."""
    def atan_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of atan(...); returns self."""
    def atan2_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of atan2(...); returns self."""
    def atanh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of atanh(...); returns self."""
    def baddbmm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of baddbmm(...); returns self."""
    def bernoulli_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bernoulli(...); returns self."""
    def bitwise_and_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_and(...); returns self."""
    def bitwise_left_shift_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_left_shift(...); returns self."""
    def bitwise_not_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_not(...); returns self."""
    def bitwise_or_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_or(...); returns self."""
    def bitwise_right_shift_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_right_shift(...); returns self."""
    def bitwise_xor_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of bitwise_xor(...); returns self."""
    def ceil_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of ceil(...); returns self."""
    def clamp_max_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of clamp_max(...); returns self."""
    def clamp_min_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of clamp_min(...); returns self."""
    def clip_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of clip(...); returns self."""
    def conj_physical_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of conj_physical(...); returns self."""
    def copysign_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of copysign(...); returns self."""
    def cos_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of cos(...); returns self."""
    def cosh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of cosh(...); returns self."""
    def cumprod_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of cumprod(...); returns self."""
    def cumsum_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of cumsum(...); returns self."""
    def deg2rad_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of deg2rad(...); returns self."""
    def digamma_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of digamma(...); returns self."""
    def eq_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of eq(...); returns self."""
    def erf_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of erf(...); returns self."""
    def erfc_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of erfc(...); returns self."""
    def erfinv_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of erfinv(...); returns self."""
    def exp_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of exp(...); returns self."""
    def exp2_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of exp2(...); returns self."""
    def expm1_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of expm1(...); returns self."""
    def fix_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of fix(...); returns self."""
    def float_power_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of float_power(...); returns self."""
    def floor_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of floor(...); returns self."""
    def floor_divide_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of floor_divide(...); returns self."""
    def fmod_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of fmod(...); returns self."""
    def frac_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of frac(...); returns self."""
    def gcd_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of gcd(...); returns self."""
    def ge_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of ge(...); returns self."""
    def greater_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of greater(...); returns self."""
    def greater_equal_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of greater_equal(...); returns self."""
    def gt_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of gt(...); returns self."""
    def heaviside_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of heaviside(...); returns self."""
    def hypot_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of hypot(...); returns self."""
    def index_add_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_add(...); returns self."""
    def index_copy_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_copy(...); returns self."""
    def index_fill_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_fill(...); returns self."""
    def index_put_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_put(...); returns self."""
    def index_reduce_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of index_reduce(...); returns self."""
    def lcm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of lcm(...); returns self."""
    def ldexp_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of ldexp(...); returns self."""
    def le_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of le(...); returns self."""
    def lerp_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of lerp(...); returns self."""
    def less_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of less(...); returns self."""
    def less_equal_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of less_equal(...); returns self."""
    def lgamma_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of lgamma(...); returns self."""
    def log_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of log(...); returns self."""
    def log10_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of log10(...); returns self."""
    def log1p_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of log1p(...); returns self."""
    def log2_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of log2(...); returns self."""
    def logical_and_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logical_and(...); returns self."""
    def logical_not_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logical_not(...); returns self."""
    def logical_or_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logical_or(...); returns self."""
    def logical_xor_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logical_xor(...); returns self."""
    def logit_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of logit(...); returns self."""
    def lt_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of lt(...); returns self."""
    def masked_fill_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of masked_fill(...); returns self."""
    def masked_scatter_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of masked_scatter(...); returns self."""
    def mvlgamma_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of mvlgamma(...); returns self."""
    def nan_to_num_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of nan_to_num(...); returns self."""
    def ne_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of ne(...); returns self."""
    def neg_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of neg(...); returns self."""
    def negative_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of negative(...); returns self."""
    def nextafter_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of nextafter(...); returns self."""
    def not_equal_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of not_equal(...); returns self."""
    def rad2deg_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of rad2deg(...); returns self."""
    def reciprocal_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of reciprocal(...); returns self."""
    def relu_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of relu(...); returns self."""
    def remainder_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of remainder(...); returns self."""
    def renorm_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of renorm(...); returns self."""
    def round_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of round(...); returns self."""
    def rsqrt_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of rsqrt(...); returns self."""
    def scatter_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of scatter(...); returns self."""
    def scatter_add_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of scatter_add(...); returns self."""
    def scatter_reduce_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of scatter_reduce(...); returns self."""
    def sgn_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sgn(...); returns self."""
    def sigmoid_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sigmoid(...); returns self."""
    def sign_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sign(...); returns self."""
    def sin_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sin(...); returns self."""
    def sinc_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sinc(...); returns self."""
    def sinh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sinh(...); returns self."""
    def sqrt_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of sqrt(...); returns self."""
    def square_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of square(...); returns self."""
    def tan_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of tan(...); returns self."""
    def tanh_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of tanh(...); returns self."""
    def tril_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of tril(...); returns self."""
    def triu_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of triu(...); returns self."""
    def trunc_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of trunc(...); returns self."""
    def xlogy_(self, *args: Any, **kwargs: Any) -> Any:
        """The elements become those of xlogy(...); returns self."""
    def squeeze_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.squeeze() gives a new view."""
    def unsqueeze_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.unsqueeze(dim) gives a new view."""
    def t_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.t() gives a new view."""
    def transpose_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.transpose(dim0, dim1) gives a new view."""
    def swapaxes_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.swapaxes(a, b) gives a new view."""
    def swapdims_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = x.swapdims(a, b) gives a new view."""
    def resize_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = weft.resize(x, shape) gives a new view."""
    def resize_as_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = weft.resize(x, other.shape) gives a new view."""
    def as_strided_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = weft.as_strided(x, size, stride) gives a new view."""
    def set_(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: shapes do not change in place. x = source gives a new view."""
    def exponential_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (exponential); returns self."""
    def cauchy_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (cauchy); returns self."""
    def log_normal_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (log_normal); returns self."""
    def geometric_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (geometric); returns self."""
    def random_(self, *args: Any, **kwargs: Any) -> Any:
        """Random numbers as of weft.random (random); returns self."""
    def subtract_(self, other: Any, *, alpha: Any = 1) -> Any:
        """self -= other (times alpha); returns self."""
    def multiply_(self, other: Any, *, alpha: Any = 1) -> Any:
        """self *= other (times alpha); returns self."""
    def divide_(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """self /= other; with rounding_mode as div. Returns self."""
    def true_divide_(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """self /= other; with rounding_mode as div. Returns self."""

class Device:
    @property
    def name(self) -> str:
        """(self) -> str"""
    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...
    @property
    def kind(self) -> str:
        """(self) -> str"""
    @property
    def description(self) -> str:
        """(self) -> str"""
    @property
    def available(self) -> _bool:
        """(self) -> bool"""
    @property
    def reason(self) -> str:
        """(self) -> str"""
    @property
    def host_accessible(self) -> _bool:
        """(self) -> bool"""
    @property
    def clock_hz(self) -> float:
        """(self) -> float"""
    @property
    def limits(self) -> dict[str, int]:
        """(self) -> dict"""
    def synchronize(self) -> None:
        """Waits for all work."""
    def stats(self) -> dict[str, Any]:
        """Statistics by name: cycles, instructions, busy.*, stall.*, bytes.* on simulators."""
    def clear_stats(self) -> None:
        """clear_stats(self) -> None"""

class dtype:
    def __init__(self, name: _DType) -> None: ...
    @property
    def name(self) -> str:
        """(self) -> str"""
    @property
    def itemsize(self) -> int:
        """(self) -> int"""
    @property
    def is_floating_point(self) -> _bool:
        """(self) -> bool"""
    @property
    def is_complex(self) -> _bool:
        """(self) -> bool"""
    @property
    def is_signed(self) -> _bool:
        """(self) -> bool"""
    @property
    def kind(self) -> str:
        """(self) -> str"""
    @property
    def dtype(self) -> Any:
        """NumPy's type of that name, so that numpy.dtype(x.dtype) and numpy.zeros(3, dtype=x.dtype) work. AttributeError without one."""
    def __call__(self, x: _ArrayLike = 0) -> NDArray: ...

class Error(Exception):
    code: str
    message: str
    kind: str
    help: str
    notes: list[str]
    places: list[Any]

class ArgumentError(Error, ValueError): ...
class ShapeError(Error, ValueError): ...
class DTypeError(Error, TypeError): ...
class IndexError(Error, _builtins.IndexError): ...
class OutOfMemoryError(Error, MemoryError): ...
class ScheduleError(Error, ValueError): ...
class DeviceError(Error, RuntimeError): ...
class Fault(Error, RuntimeError): ...
class ParseError(Error, ValueError): ...
class IOError(Error, OSError): ...

bool: dtype
int8: dtype
int16: dtype
int32: dtype
int64: dtype
uint8: dtype
uint16: dtype
uint32: dtype
uint64: dtype
float8_e4m3fn: dtype
float8_e5m2: dtype
float16: dtype
bfloat16: dtype
float32: dtype
float64: dtype
complex64: dtype
complex128: dtype

class finfo_object(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: _dtype

class iinfo_object(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: _dtype

_A = TypeVar("_A", default=NDArray)
class topk_result(NamedTuple, Generic[_A]):
    values: _A
    indices: NDArray

class sort_result(NamedTuple, Generic[_A]):
    values: _A
    indices: NDArray

class unique_all_result(NamedTuple, Generic[_A]):
    values: _A
    indices: NDArray
    inverse_indices: NDArray
    counts: NDArray

class unique_counts_result(NamedTuple, Generic[_A]):
    values: _A
    counts: NDArray

class unique_inverse_result(NamedTuple, Generic[_A]):
    values: _A
    inverse_indices: NDArray

def __array_namespace_info__() -> Any:
    """What this namespace can do."""
@overload
def abs(x: Tensor, /) -> Tensor:
    """Absolute value."""
@overload
def abs(x: _ArrayLike, /) -> NDArray:
    """Absolute value."""
@overload
def acos(x: Tensor, /) -> Tensor:
    """Inverse cosine, in radians."""
@overload
def acos(x: _ArrayLike, /) -> NDArray:
    """Inverse cosine, in radians."""
@overload
def acosh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic cosine."""
@overload
def acosh(x: _ArrayLike, /) -> NDArray:
    """Inverse hyperbolic cosine."""
@overload
def asin(x: Tensor, /) -> Tensor:
    """Inverse sine, in radians."""
@overload
def asin(x: _ArrayLike, /) -> NDArray:
    """Inverse sine, in radians."""
@overload
def asinh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic sine."""
@overload
def asinh(x: _ArrayLike, /) -> NDArray:
    """Inverse hyperbolic sine."""
@overload
def atan(x: Tensor, /) -> Tensor:
    """Inverse tangent, in radians."""
@overload
def atan(x: _ArrayLike, /) -> NDArray:
    """Inverse tangent, in radians."""
@overload
def atanh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic tangent."""
@overload
def atanh(x: _ArrayLike, /) -> NDArray:
    """Inverse hyperbolic tangent."""
@overload
def bitwise_invert(x: Tensor, /) -> Tensor:
    """Bits inverted; on bool, logical not."""
@overload
def bitwise_invert(x: _ArrayLike, /) -> NDArray:
    """Bits inverted; on bool, logical not."""
@overload
def ceil(x: Tensor, /) -> Tensor:
    """Smallest integer not below x."""
@overload
def ceil(x: _ArrayLike, /) -> NDArray:
    """Smallest integer not below x."""
@overload
def conj(x: Tensor, /) -> Tensor:
    """Complex conjugate."""
@overload
def conj(x: _ArrayLike, /) -> NDArray:
    """Complex conjugate."""
@overload
def cos(x: Tensor, /) -> Tensor:
    """Cosine of radians."""
@overload
def cos(x: _ArrayLike, /) -> NDArray:
    """Cosine of radians."""
@overload
def cosh(x: Tensor, /) -> Tensor:
    """Hyperbolic cosine."""
@overload
def cosh(x: _ArrayLike, /) -> NDArray:
    """Hyperbolic cosine."""
@overload
def erf(x: Tensor, /) -> Tensor:
    """Error function."""
@overload
def erf(x: _ArrayLike, /) -> NDArray:
    """Error function."""
@overload
def exp(x: Tensor, /) -> Tensor:
    """e to the power x."""
@overload
def exp(x: _ArrayLike, /) -> NDArray:
    """e to the power x."""
@overload
def exp2(x: Tensor, /) -> Tensor:
    """2 to the power x."""
@overload
def exp2(x: _ArrayLike, /) -> NDArray:
    """2 to the power x."""
@overload
def expm1(x: Tensor, /) -> Tensor:
    """exp(x) - 1, accurate near 0."""
@overload
def expm1(x: _ArrayLike, /) -> NDArray:
    """exp(x) - 1, accurate near 0."""
@overload
def floor(x: Tensor, /) -> Tensor:
    """Largest integer not above x."""
@overload
def floor(x: _ArrayLike, /) -> NDArray:
    """Largest integer not above x."""
@overload
def imag(x: Tensor, /) -> Tensor:
    """Imaginary part."""
@overload
def imag(x: _ArrayLike, /) -> NDArray:
    """Imaginary part."""
@overload
def isfinite(x: Tensor, /) -> Tensor:
    """Neither infinite nor NaN."""
@overload
def isfinite(x: _ArrayLike, /) -> NDArray:
    """Neither infinite nor NaN."""
@overload
def isinf(x: Tensor, /) -> Tensor:
    """Infinite."""
@overload
def isinf(x: _ArrayLike, /) -> NDArray:
    """Infinite."""
@overload
def isnan(x: Tensor, /) -> Tensor:
    """Not a number."""
@overload
def isnan(x: _ArrayLike, /) -> NDArray:
    """Not a number."""
@overload
def log(x: Tensor, /) -> Tensor:
    """Natural logarithm."""
@overload
def log(x: _ArrayLike, /) -> NDArray:
    """Natural logarithm."""
@overload
def log10(x: Tensor, /) -> Tensor:
    """Logarithm to base 10."""
@overload
def log10(x: _ArrayLike, /) -> NDArray:
    """Logarithm to base 10."""
@overload
def log1p(x: Tensor, /) -> Tensor:
    """log(1 + x), accurate near 0."""
@overload
def log1p(x: _ArrayLike, /) -> NDArray:
    """log(1 + x), accurate near 0."""
@overload
def log2(x: Tensor, /) -> Tensor:
    """Logarithm to base 2."""
@overload
def log2(x: _ArrayLike, /) -> NDArray:
    """Logarithm to base 2."""
@overload
def logical_not(x: Tensor, /) -> Tensor:
    """Logical not."""
@overload
def logical_not(x: _ArrayLike, /) -> NDArray:
    """Logical not."""
@overload
def negative(x: Tensor, /) -> Tensor:
    """The number with the other sign."""
@overload
def negative(x: _ArrayLike, /) -> NDArray:
    """The number with the other sign."""
@overload
def positive(x: Tensor, /) -> Tensor:
    """The number itself, in a new array."""
@overload
def positive(x: _ArrayLike, /) -> NDArray:
    """The number itself, in a new array."""
@overload
def real(x: Tensor, /) -> Tensor:
    """Real part."""
@overload
def real(x: _ArrayLike, /) -> NDArray:
    """Real part."""
@overload
def reciprocal(x: Tensor, /) -> Tensor:
    """1 / x."""
@overload
def reciprocal(x: _ArrayLike, /) -> NDArray:
    """1 / x."""
@overload
def relu(x: Tensor, /) -> Tensor:
    """x where positive, else 0."""
@overload
def relu(x: _ArrayLike, /) -> NDArray:
    """x where positive, else 0."""
@overload
def round(x: Tensor, /) -> Tensor:
    """Nearest integer, ties to even."""
@overload
def round(x: _ArrayLike, /) -> NDArray:
    """Nearest integer, ties to even."""
@overload
def rsqrt(x: Tensor, /) -> Tensor:
    """1 / sqrt(x)."""
@overload
def rsqrt(x: _ArrayLike, /) -> NDArray:
    """1 / sqrt(x)."""
@overload
def sigmoid(x: Tensor, /) -> Tensor:
    """1 / (1 + exp(-x))."""
@overload
def sigmoid(x: _ArrayLike, /) -> NDArray:
    """1 / (1 + exp(-x))."""
@overload
def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; x / abs(x) for complex numbers."""
@overload
def sign(x: _ArrayLike, /) -> NDArray:
    """-1, 0 or 1; x / abs(x) for complex numbers."""
@overload
def signbit(x: Tensor, /) -> Tensor:
    """Is the sign bit set?"""
@overload
def signbit(x: _ArrayLike, /) -> NDArray:
    """Is the sign bit set?"""
@overload
def sin(x: Tensor, /) -> Tensor:
    """Sine of radians."""
@overload
def sin(x: _ArrayLike, /) -> NDArray:
    """Sine of radians."""
@overload
def sinh(x: Tensor, /) -> Tensor:
    """Hyperbolic sine."""
@overload
def sinh(x: _ArrayLike, /) -> NDArray:
    """Hyperbolic sine."""
@overload
def sqrt(x: Tensor, /) -> Tensor:
    """Square root."""
@overload
def sqrt(x: _ArrayLike, /) -> NDArray:
    """Square root."""
@overload
def square(x: Tensor, /) -> Tensor:
    """x * x."""
@overload
def square(x: _ArrayLike, /) -> NDArray:
    """x * x."""
@overload
def tan(x: Tensor, /) -> Tensor:
    """Tangent of radians."""
@overload
def tan(x: _ArrayLike, /) -> NDArray:
    """Tangent of radians."""
@overload
def tanh(x: Tensor, /) -> Tensor:
    """Hyperbolic tangent."""
@overload
def tanh(x: _ArrayLike, /) -> NDArray:
    """Hyperbolic tangent."""
@overload
def trunc(x: Tensor, /) -> Tensor:
    """x rounded toward zero."""
@overload
def trunc(x: _ArrayLike, /) -> NDArray:
    """x rounded toward zero."""
@overload
def add(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 + x2; of bool, logical or."""
@overload
def add(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 + x2; of bool, logical or."""
@overload
def add(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 + x2; of bool, logical or."""
@overload
def atan2(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """Angle of the point (x2, x1), in radians."""
@overload
def atan2(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """Angle of the point (x2, x1), in radians."""
@overload
def atan2(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Angle of the point (x2, x1), in radians."""
@overload
def bitwise_and(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 & x2."""
@overload
def bitwise_and(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 & x2."""
@overload
def bitwise_and(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 & x2."""
@overload
def bitwise_left_shift(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 << x2; 0 when x2 is at least the width."""
@overload
def bitwise_left_shift(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 << x2; 0 when x2 is at least the width."""
@overload
def bitwise_left_shift(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 << x2; 0 when x2 is at least the width."""
@overload
def bitwise_or(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 | x2."""
@overload
def bitwise_or(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 | x2."""
@overload
def bitwise_or(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 | x2."""
@overload
def bitwise_right_shift(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 >> x2, arithmetic for signed integers."""
@overload
def bitwise_right_shift(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 >> x2, arithmetic for signed integers."""
@overload
def bitwise_right_shift(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 >> x2, arithmetic for signed integers."""
@overload
def bitwise_xor(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 ^ x2."""
@overload
def bitwise_xor(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 ^ x2."""
@overload
def bitwise_xor(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 ^ x2."""
@overload
def copysign(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """Magnitude of x1 with the sign of x2."""
@overload
def copysign(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """Magnitude of x1 with the sign of x2."""
@overload
def copysign(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Magnitude of x1 with the sign of x2."""
@overload
def divide(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 / x2, true division."""
@overload
def divide(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 / x2, true division."""
@overload
def divide(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 / x2, true division."""
@overload
def equal(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 == x2."""
@overload
def equal(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 == x2."""
@overload
def equal(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 == x2."""
@overload
def floor_divide(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 / x2 rounded toward minus infinity; integers by 0 give 0."""
@overload
def floor_divide(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 / x2 rounded toward minus infinity; integers by 0 give 0."""
@overload
def floor_divide(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 / x2 rounded toward minus infinity; integers by 0 give 0."""
@overload
def greater(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 > x2."""
@overload
def greater(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 > x2."""
@overload
def greater(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 > x2."""
@overload
def greater_equal(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 >= x2."""
@overload
def greater_equal(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 >= x2."""
@overload
def greater_equal(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 >= x2."""
@overload
def hypot(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """sqrt(x1*x1 + x2*x2) without overflow."""
@overload
def hypot(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """sqrt(x1*x1 + x2*x2) without overflow."""
@overload
def hypot(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """sqrt(x1*x1 + x2*x2) without overflow."""
@overload
def less(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 < x2."""
@overload
def less(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 < x2."""
@overload
def less(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 < x2."""
@overload
def less_equal(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 <= x2."""
@overload
def less_equal(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 <= x2."""
@overload
def less_equal(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 <= x2."""
@overload
def logaddexp(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """log(exp(x1) + exp(x2)) without overflow."""
@overload
def logaddexp(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """log(exp(x1) + exp(x2)) without overflow."""
@overload
def logaddexp(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """log(exp(x1) + exp(x2)) without overflow."""
@overload
def logical_and(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """Logical and."""
@overload
def logical_and(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """Logical and."""
@overload
def logical_and(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Logical and."""
@overload
def logical_or(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """Logical or."""
@overload
def logical_or(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """Logical or."""
@overload
def logical_or(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Logical or."""
@overload
def logical_xor(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """Logical exclusive or."""
@overload
def logical_xor(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """Logical exclusive or."""
@overload
def logical_xor(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Logical exclusive or."""
@overload
def maximum(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """The larger; NaN if either is."""
@overload
def maximum(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """The larger; NaN if either is."""
@overload
def maximum(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """The larger; NaN if either is."""
@overload
def minimum(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """The smaller; NaN if either is."""
@overload
def minimum(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """The smaller; NaN if either is."""
@overload
def minimum(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """The smaller; NaN if either is."""
@overload
def multiply(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 * x2; of bool, logical and."""
@overload
def multiply(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 * x2; of bool, logical and."""
@overload
def multiply(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 * x2; of bool, logical and."""
@overload
def nextafter(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """The next number after x1 toward x2."""
@overload
def nextafter(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """The next number after x1 toward x2."""
@overload
def nextafter(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """The next number after x1 toward x2."""
@overload
def not_equal(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 != x2."""
@overload
def not_equal(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 != x2."""
@overload
def not_equal(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 != x2."""
@overload
def pow(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 to the power x2."""
@overload
def pow(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 to the power x2."""
@overload
def pow(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 to the power x2."""
@overload
def remainder(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """Remainder of floor_divide: has the sign of x2; integers by 0 give 0."""
@overload
def remainder(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """Remainder of floor_divide: has the sign of x2; integers by 0 give 0."""
@overload
def remainder(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Remainder of floor_divide: has the sign of x2; integers by 0 give 0."""
@overload
def subtract(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 - x2."""
@overload
def subtract(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 - x2."""
@overload
def subtract(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 - x2."""
@overload
def cbrt(x: Tensor, /) -> Tensor:
    """Real cube root, of negative numbers, too."""
@overload
def cbrt(x: _ArrayLike, /) -> NDArray:
    """Real cube root, of negative numbers, too."""
@overload
def gelu(x: Tensor, /) -> Tensor:
    """x times the normal distribution function of x."""
@overload
def gelu(x: _ArrayLike, /) -> NDArray:
    """x times the normal distribution function of x."""
@overload
def hardswish(x: Tensor, /) -> Tensor:
    """x clip(x + 3, 0, 6) / 6."""
@overload
def hardswish(x: _ArrayLike, /) -> NDArray:
    """x clip(x + 3, 0, 6) / 6."""
@overload
def silu(x: Tensor, /) -> Tensor:
    """x / (1 + exp(-x))."""
@overload
def silu(x: _ArrayLike, /) -> NDArray:
    """x / (1 + exp(-x))."""
@overload
def elu(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 where positive, else x2 (exp(x1) - 1)."""
@overload
def elu(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 where positive, else x2 (exp(x1) - 1)."""
@overload
def elu(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 where positive, else x2 (exp(x1) - 1)."""
@overload
def leaky_relu(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 where positive, else x1 x2."""
@overload
def leaky_relu(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 where positive, else x1 x2."""
@overload
def leaky_relu(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 where positive, else x1 x2."""
@overload
def maximum_number(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """The larger; the other where one is NaN."""
@overload
def maximum_number(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """The larger; the other where one is NaN."""
@overload
def maximum_number(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """The larger; the other where one is NaN."""
@overload
def minimum_number(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """The smaller; the other where one is NaN."""
@overload
def minimum_number(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """The smaller; the other where one is NaN."""
@overload
def minimum_number(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """The smaller; the other where one is NaN."""
@overload
def replace_nan(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1, or x2 where x1 is NaN."""
@overload
def replace_nan(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1, or x2 where x1 is NaN."""
@overload
def replace_nan(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1, or x2 where x1 is NaN."""
def arange(start: float, /, stop: float | None = None, step: float = 1, *, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """Evenly spaced numbers from start up to, without, stop."""
def array(obj: Any, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """A new array with a copy of the elements."""
def asarray(obj: Any, /, *, dtype: _DType | None = None, device: _Device | None = None, copy: _bool | None = None) -> NDArray:
    """An array of a number, nested sequence, buffer, DLPack tensor or array; shares memory where it may."""
def empty(shape: int | Sequence[int], *more: Any, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """An array with unset elements."""
def empty_like(x: NDArray, /, *, dtype: _DType | None = None, device: _Device | None = None, shape: int | Sequence[int] | None = None) -> NDArray:
    """As empty, shape, type and device taken from x."""
def eye(n_rows: Any, n_cols: Any = None, k: int = 0, *, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """Ones on diagonal k, zeros elsewhere."""
def from_dlpack(x: Any, /, *, device: _Device | None = None, copy: _bool | None = None) -> NDArray:
    """An array over the memory of any DLPack exporter."""
def full(shape: int | Sequence[int], fill_value: _Number | NDArray, *, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """An array with the same number everywhere."""
def full_like(x: NDArray, /, fill_value: _Number | NDArray, *, dtype: _DType | None = None, device: _Device | None = None, shape: int | Sequence[int] | None = None) -> NDArray:
    """As full, shape, type and device taken from x; fill_value may be an array that broadcasts."""
def linspace(start: _Number, stop: _Number, /, num: int, *, dtype: _DType | None = None, device: _Device | None = None, endpoint: _bool = True, retstep: Any = False, axis: int | Sequence[int] | None = 0) -> NDArray:
    """num evenly spaced numbers over an interval; of arrays between their elements, along a new axis."""
def ones(shape: int | Sequence[int], *more: Any, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """An array of ones."""
def ones_like(x: NDArray, /, *, dtype: _DType | None = None, device: _Device | None = None, shape: int | Sequence[int] | None = None) -> NDArray:
    """As ones, shape, type and device taken from x."""
def zeros(shape: int | Sequence[int], *more: Any, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """An array of zeros."""
def zeros_like(x: NDArray, /, *, dtype: _DType | None = None, device: _Device | None = None, shape: int | Sequence[int] | None = None) -> NDArray:
    """As zeros, shape, type and device taken from x."""
@overload
def clip(x: Tensor, /, min: _Number | NDArray | None = None, max: _Number | NDArray | None = None) -> Tensor:
    """Elements limited to [min, max]."""
@overload
def clip(x: _ArrayLike, /, min: _Number | NDArray | None = None, max: _Number | NDArray | None = None) -> NDArray:
    """Elements limited to [min, max]."""
@overload
def where(condition: _ArrayLike, x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """x1 where the condition holds, else x2."""
@overload
def where(condition: _ArrayLike, x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """x1 where the condition holds, else x2."""
@overload
def where(condition: _ArrayLike, x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """x1 where the condition holds, else x2."""
def argmax(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> NDArray:
    """Position of the largest element; the first of equals."""
def argmin(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> NDArray:
    """Position of the smallest element; the first of equals."""
def argsort(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = -1, descending: _bool = False, stable: _bool = True, kind: _DType | str | tuple[_DType | str, ...] | None = None) -> NDArray:
    """Positions that would sort the array; NaN last. Every sort is stable, whatever NumPy's `kind`."""
def isin(x1: _ArrayLike, x2: _ArrayLike, /, assume_unique: Any = False, invert: _bool = False) -> NDArray:
    """Which elements of x1 occur in x2? One of them may be a number; it is compared as `==` does it."""
def nonzero(x: _ArrayLike, /) -> tuple[NDArray, ...]:
    """Positions of the elements that are not zero, one array for each axis."""
@overload
def repeat(x: Tensor, repeats: int | NDArray, /, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """Each element several times."""
@overload
def repeat(x: _ArrayLike, repeats: int | NDArray, /, *, axis: int | Sequence[int] | None = None) -> NDArray:
    """Each element several times."""
@overload
def scatter(x: Tensor, indices: _ArrayLike | tuple[_ArrayLike, ...], values: Tensor | _ArrayLike, /, *, accumulate: _bool = False) -> Tensor:
    """A copy of x with values at x[indices], or added to it when `accumulate`."""
@overload
def scatter(x: _ArrayLike, indices: _ArrayLike | tuple[_ArrayLike, ...], values: Tensor, /, *, accumulate: _bool = False) -> Tensor:
    """A copy of x with values at x[indices], or added to it when `accumulate`."""
@overload
def scatter(x: _ArrayLike, indices: _ArrayLike | tuple[_ArrayLike, ...], values: _ArrayLike, /, *, accumulate: _bool = False) -> NDArray:
    """A copy of x with values at x[indices], or added to it when `accumulate`."""
@overload
def topk(x: Tensor, k: int, /, *, axis: int | Sequence[int] | None = -1, largest: _bool = True, sorted: Any = True) -> topk_result[Tensor]:
    """The k largest (smallest) elements along an axis in order, and their positions; sorted=False leaves the order open, and it is the same here."""
@overload
def topk(x: _ArrayLike, k: int, /, *, axis: int | Sequence[int] | None = -1, largest: _bool = True, sorted: Any = True) -> topk_result[NDArray]:
    """The k largest (smallest) elements along an axis in order, and their positions; sorted=False leaves the order open, and it is the same here."""
def searchsorted(x1: _ArrayLike, x2: _ArrayLike, /, *, side: str = 'left', sorter: NDArray | None = None) -> NDArray:
    """Where the elements of x2 would go in the sorted x1; of x1 with several axes each row of x2 in the row of x1 beside it."""
@overload
def sort(x: Tensor, /, *, axis: int | Sequence[int] | None = -1, descending: _bool = False, stable: _bool = True, kind: _DType | str | tuple[_DType | str, ...] | None = None) -> Tensor:
    """A sorted copy; NaN last. Every sort is stable: `kind` is NumPy's choice of a method, which changes nothing."""
@overload
def sort(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = -1, descending: _bool = False, stable: _bool = True, kind: _DType | str | tuple[_DType | str, ...] | None = None) -> NDArray:
    """A sorted copy; NaN last. Every sort is stable: `kind` is NumPy's choice of a method, which changes nothing."""
@overload
def take(x: Tensor, indices: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, mode: str = 'raise') -> Tensor:
    """Entries at positions along an axis; of the elements in a row when axis is None."""
@overload
def take(x: _ArrayLike, indices: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, mode: str = 'raise') -> NDArray:
    """Entries at positions along an axis; of the elements in a row when axis is None."""
@overload
def take_along_axis(x: Tensor, indices: _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> Tensor:
    """Entries at positions that differ from line to line."""
@overload
def take_along_axis(x: _ArrayLike, indices: _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> NDArray:
    """Entries at positions that differ from line to line."""
@overload
def unique_all(x: Tensor, /) -> unique_all_result[Tensor]:
    """Distinct elements with first positions, inverse positions and counts; every NaN is distinct."""
@overload
def unique_all(x: _ArrayLike, /) -> unique_all_result[NDArray]:
    """Distinct elements with first positions, inverse positions and counts; every NaN is distinct."""
@overload
def unique_counts(x: Tensor, /) -> unique_counts_result[Tensor]:
    """Distinct elements and how often each occurs."""
@overload
def unique_counts(x: _ArrayLike, /) -> unique_counts_result[NDArray]:
    """Distinct elements and how often each occurs."""
@overload
def unique_inverse(x: Tensor, /) -> unique_inverse_result[Tensor]:
    """Distinct elements and the positions that rebuild x."""
@overload
def unique_inverse(x: _ArrayLike, /) -> unique_inverse_result[NDArray]:
    """Distinct elements and the positions that rebuild x."""
@overload
def unique_values(x: Tensor, /) -> Tensor:
    """Distinct elements."""
@overload
def unique_values(x: _ArrayLike, /) -> NDArray:
    """Distinct elements."""
def broadcast_arrays(*arrays: _ArrayLike | Tensor) -> list[Any]:
    """Views of all arrays in their common shape."""
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all these broadcast to."""
@overload
def broadcast_to(x: Tensor, /, shape: int | Sequence[int]) -> Tensor:
    """A view with extents of 1 repeated to a shape."""
@overload
def broadcast_to(x: _ArrayLike, /, shape: int | Sequence[int]) -> NDArray:
    """A view with extents of 1 repeated to a shape."""
@overload
def concat(arrays: Sequence[Tensor], /, *, axis: int | Sequence[int] | None = 0) -> Tensor:
    """Arrays joined along an axis; None flattens them first."""
@overload
def concat(arrays: Sequence[_ArrayLike], /, *, axis: int | Sequence[int] | None = 0) -> NDArray:
    """Arrays joined along an axis; None flattens them first."""
@overload
def expand_dims(x: Tensor, /, axis: int | Sequence[int] | None) -> Tensor:
    """A view with an extra axis of extent 1."""
@overload
def expand_dims(x: _ArrayLike, /, axis: int | Sequence[int] | None) -> NDArray:
    """A view with an extra axis of extent 1."""
@overload
def flip(x: Tensor, /, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """A view with axes reversed."""
@overload
def flip(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> NDArray:
    """A view with axes reversed."""
@overload
def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged."""
@overload
def matrix_transpose(x: _ArrayLike, /) -> NDArray:
    """A view with the last two axes exchanged."""
def meshgrid(*arrays: _ArrayLike | Tensor, indexing: str = 'xy', sparse: Any = False, copy: _bool | None = True) -> list[Any]:
    """Coordinate arrays of a grid; sparse=True: of extent 1 along the axes of the others."""
@overload
def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """A view with some axes moved."""
@overload
def moveaxis(x: _ArrayLike, source: int | Sequence[int], destination: int | Sequence[int], /) -> NDArray:
    """A view with some axes moved."""
@overload
def permute_dims(x: Tensor, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """A view with the axes in another order; None: turned round."""
@overload
def permute_dims(x: _ArrayLike, /, axes: int | Sequence[int] | None = None) -> NDArray:
    """A view with the axes in another order; None: turned round."""
@overload
def reshape(x: Tensor, /, shape: int | Sequence[int], *, copy: _bool | None = None) -> Tensor:
    """The elements in another shape; one extent may be -1."""
@overload
def reshape(x: _ArrayLike, /, shape: int | Sequence[int], *, copy: _bool | None = None) -> NDArray:
    """The elements in another shape; one extent may be -1."""
@overload
def roll(x: Tensor, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> Tensor:
    """Elements moved cyclically along axes."""
@overload
def roll(x: _ArrayLike, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> NDArray:
    """Elements moved cyclically along axes."""
@overload
def squeeze(x: Tensor, /, axis: int | Sequence[int] | None = None) -> Tensor:
    """A view without axes of extent 1: these, or all that there are."""
@overload
def squeeze(x: _ArrayLike, /, axis: int | Sequence[int] | None = None) -> NDArray:
    """A view without axes of extent 1: these, or all that there are."""
@overload
def stack(arrays: Sequence[Tensor], /, *, axis: int | Sequence[int] | None = 0) -> Tensor:
    """Arrays of one shape joined along a new axis."""
@overload
def stack(arrays: Sequence[_ArrayLike], /, *, axis: int | Sequence[int] | None = 0) -> NDArray:
    """Arrays of one shape joined along a new axis."""
@overload
def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """The whole array several times along each axis."""
@overload
def tile(x: _ArrayLike, repetitions: Sequence[int], /) -> NDArray:
    """The whole array several times along each axis."""
@overload
def tril(x: Tensor, /, k: int = 0) -> Tensor:
    """The lower triangle; zeros above diagonal k."""
@overload
def tril(x: _ArrayLike, /, k: int = 0) -> NDArray:
    """The lower triangle; zeros above diagonal k."""
@overload
def triu(x: Tensor, /, k: int = 0) -> Tensor:
    """The upper triangle; zeros below diagonal k."""
@overload
def triu(x: _ArrayLike, /, k: int = 0) -> NDArray:
    """The upper triangle; zeros below diagonal k."""
@overload
def unstack(x: Tensor, /, *, axis: int | Sequence[int] | None = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, as a tuple; of an array views."""
@overload
def unstack(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = 0) -> tuple[NDArray, ...]:
    """The slices along an axis, as a tuple; of an array views."""
@overload
def pad(x: Tensor, widths: Sequence[tuple[int, int]], /, mode: str = 'constant', *, value: _Number = 0, constant_values: Any = 0, end_values: Any = 0, stat_length: Any = None, reflect_type: Any = 'even') -> Tensor:
    """A border ((before, after), ...) for every axis; one pair, or one number, is the same for all."""
@overload
def pad(x: _ArrayLike, widths: Sequence[tuple[int, int]], /, mode: str = 'constant', *, value: _Number = 0, constant_values: Any = 0, end_values: Any = 0, stat_length: Any = None, reflect_type: Any = 'even') -> NDArray:
    """A border ((before, after), ...) for every axis; one pair, or one number, is the same for all."""
def einsum(spec: str, *operands: _ArrayLike | Tensor, optimize: Any = False) -> Any:
    """Sum of products by letters: "ij,jk->ik"; "..." broadcasts. NumPy's other form is understood, einsum(a, [0, 1], b, [1, 2], [0, 2])."""
@overload
def layer_norm(x: Tensor, scale: _ArrayLike | Tensor | None, shift: _ArrayLike | Tensor | None, /, *, eps: float = 1e-05) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * scale + shift over the last axis; scale and shift hold one row."""
@overload
def layer_norm(x: _ArrayLike, scale: _ArrayLike | Tensor | None, shift: _ArrayLike | Tensor | None, /, *, eps: float = 1e-05) -> NDArray:
    """(x - mean) / sqrt(variance + eps) * scale + shift over the last axis; scale and shift hold one row."""
@overload
def log_softmax(x: Tensor, /, *, axis: int = -1, dtype: _DType | None = None) -> Tensor:
    """x - log(sum(exp(x))) along an axis, without overflow, computed in `dtype`. Real floats."""
@overload
def log_softmax(x: _ArrayLike, /, *, axis: int = -1, dtype: _DType | None = None) -> NDArray:
    """x - log(sum(exp(x))) along an axis, without overflow, computed in `dtype`. Real floats."""
@overload
def logsumexp(x: Tensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Tensor:
    """log(sum(exp(x))) along axes, without overflow. Real floats."""
@overload
def logsumexp(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> NDArray:
    """log(sum(exp(x))) along axes, without overflow. Real floats."""
@overload
def matmul(x1: Tensor, x2: Tensor | _ArrayLike, /) -> Tensor:
    """Matrix product over the last two axes; the others broadcast."""
@overload
def matmul(x1: _ArrayLike, x2: Tensor, /) -> Tensor:
    """Matrix product over the last two axes; the others broadcast."""
@overload
def matmul(x1: _ArrayLike, x2: _ArrayLike, /) -> NDArray:
    """Matrix product over the last two axes; the others broadcast."""
@overload
def softmax(x: Tensor, /, *, axis: int = -1, dtype: _DType | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, without overflow, computed in `dtype`. Real floats."""
@overload
def softmax(x: _ArrayLike, /, *, axis: int = -1, dtype: _DType | None = None) -> NDArray:
    """exp(x) / sum(exp(x)) along an axis, without overflow, computed in `dtype`. Real floats."""
@overload
def tensordot(x1: Tensor, x2: Tensor | _ArrayLike, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sum of products over several axes."""
@overload
def tensordot(x1: _ArrayLike, x2: Tensor, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sum of products over several axes."""
@overload
def tensordot(x1: _ArrayLike, x2: _ArrayLike, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> NDArray:
    """Sum of products over several axes."""
@overload
def vecdot(x1: Tensor, x2: Tensor | _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> Tensor:
    """Sum of conj(x1) * x2 along an axis."""
@overload
def vecdot(x1: _ArrayLike, x2: Tensor, /, *, axis: int | Sequence[int] | None = -1) -> Tensor:
    """Sum of conj(x1) * x2 along an axis."""
@overload
def vecdot(x1: _ArrayLike, x2: _ArrayLike, /, *, axis: int | Sequence[int] | None = -1) -> NDArray:
    """Sum of conj(x1) * x2 along an axis."""
def all(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, where: Any = None) -> NDArray:
    """Is every element true?"""
def any(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, where: Any = None) -> NDArray:
    """Is some element true?"""
def count_nonzero(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> NDArray:
    """How many elements are not zero."""
def cumulative_prod(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, dtype: _DType | None = None, include_initial: _bool = False) -> NDArray:
    """Running product."""
@overload
def cumulative_sum(x: Tensor, /, *, axis: int | Sequence[int] | None = None, dtype: _DType | None = None, include_initial: _bool = False) -> Tensor:
    """Running sum."""
@overload
def cumulative_sum(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, dtype: _DType | None = None, include_initial: _bool = False) -> NDArray:
    """Running sum."""
@overload
def diff(x: Tensor, /, n: int = 1, axis: int | Sequence[int] | None = -1, prepend: NDArray | None = None, append: NDArray | None = None) -> Tensor:
    """Differences of neighbours, n times."""
@overload
def diff(x: _ArrayLike, /, n: int = 1, axis: int | Sequence[int] | None = -1, prepend: NDArray | None = None, append: NDArray | None = None) -> NDArray:
    """Differences of neighbours, n times."""
@overload
def max(x: Tensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, where: Any = None, initial: Any = None) -> Tensor:
    """Largest element; NaN if there is one."""
@overload
def max(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, where: Any = None, initial: Any = None) -> NDArray:
    """Largest element; NaN if there is one."""
@overload
def mean(x: Tensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, where: Any = None, dtype: _DType | None = None) -> Tensor:
    """Arithmetic mean, computed in `dtype`."""
@overload
def mean(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, where: Any = None, dtype: _DType | None = None) -> NDArray:
    """Arithmetic mean, computed in `dtype`."""
@overload
def min(x: Tensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, where: Any = None, initial: Any = None) -> Tensor:
    """Smallest element; NaN if there is one."""
@overload
def min(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False, where: Any = None, initial: Any = None) -> NDArray:
    """Smallest element; NaN if there is one."""
@overload
def prod(x: Tensor, /, *, axis: int | Sequence[int] | None = None, dtype: _DType | None = None, keepdims: _bool = False, where: Any = None, initial: Any = None) -> Tensor:
    """Product of elements."""
@overload
def prod(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, dtype: _DType | None = None, keepdims: _bool = False, where: Any = None, initial: Any = None) -> NDArray:
    """Product of elements."""
@overload
def std(x: Tensor, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False, where: Any = None, dtype: _DType | None = None, mean: float | None = None) -> Tensor:
    """Standard deviation; dtype and mean as in var."""
@overload
def std(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False, where: Any = None, dtype: _DType | None = None, mean: float | None = None) -> NDArray:
    """Standard deviation; dtype and mean as in var."""
@overload
def sum(x: Tensor, /, *, axis: int | Sequence[int] | None = None, dtype: _DType | None = None, keepdims: _bool = False, where: Any = None, initial: Any = None) -> Tensor:
    """Sum of elements."""
@overload
def sum(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, dtype: _DType | None = None, keepdims: _bool = False, where: Any = None, initial: Any = None) -> NDArray:
    """Sum of elements."""
@overload
def var(x: Tensor, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False, where: Any = None, dtype: _DType | None = None, mean: float | None = None) -> Tensor:
    """Variance, over n - correction, computed in `dtype`; about `mean`, which has the summed axes with extent 1, where it is given."""
@overload
def var(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _bool = False, where: Any = None, dtype: _DType | None = None, mean: float | None = None) -> NDArray:
    """Variance, over n - correction, computed in `dtype`; about `mean`, which has the summed axes with extent 1, where it is given."""
@overload
def astype(x: Tensor, dtype: _DType | None, /, *, copy: _bool | None = True, device: _Device | None = None) -> Tensor:
    """The elements converted to another type."""
@overload
def astype(x: _ArrayLike, dtype: _DType | None, /, *, copy: _bool | None = True, device: _Device | None = None) -> NDArray:
    """The elements converted to another type."""
def can_cast(from_: _DType | NDArray, to: _DType, /) -> _bool:
    """May this type be converted to that along the promotion rules?"""
def finfo(type: _DType | NDArray, /) -> finfo_object:
    """Limits of a floating-point type."""
def iinfo(type: _DType | NDArray, /) -> iinfo_object:
    """Limits of an integer type."""
def isdtype(dtype: _DType | None, kind: _DType | str | tuple[_DType | str, ...]) -> _bool:
    """Is the type one of a kind, of a tuple of kinds, or equal to a type?"""
def result_type(*arrays_and_dtypes: _DType | NDArray | Tensor | _Number) -> dtype:
    """The common type by the promotion rules; Python numbers are weak."""
def addbmm(input: Tensor | _ArrayLike, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * self + alpha * the sum of a batch of products."""
def addcdiv(input: Tensor | _ArrayLike, a: Any, b: Any, *, value: Any = 1) -> Any:
    """self + value * a / b."""
def addcmul(input: Tensor | _ArrayLike, a: Any, b: Any, *, value: Any = 1) -> Any:
    """self + value * a * b."""
def addmm(input: Tensor | _ArrayLike, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * self + alpha * (a @ b)."""
def addmv(input: Tensor | _ArrayLike, matrix: Any, vector: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * self + alpha * (matrix @ vector)."""
def addr(input: Tensor | _ArrayLike, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * self + alpha * the products of all pairs of two vectors."""
def allclose(input: Tensor | _ArrayLike, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    """Is every difference at most atol + rtol * |other|?"""
def amax(input: Tensor | _ArrayLike, dim: Any = None, keepdim: Any = False, *, where: Any = None, initial: Any = None) -> Any:
    """The largest, over axes; where= and initial= as weft.max."""
def amin(input: Tensor | _ArrayLike, dim: Any = None, keepdim: Any = False, *, where: Any = None, initial: Any = None) -> Any:
    """The smallest, over axes; where= and initial= as weft.min."""
def aminmax(input: Tensor | _ArrayLike, dim: Any = None, keepdim: Any = False) -> Any:
    """(smallest, largest)."""
def argwhere(input: Tensor | _ArrayLike) -> Any:
    """Positions of the elements that are not zero, one in each row."""
def baddbmm(input: Tensor | _ArrayLike, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * self + alpha * (a @ b), a product for each entry of a batch."""
def bincount(input: Tensor | _ArrayLike, weights: Any = None, minlength: Any = 0) -> Any:
    """How often each integer from 0 on occurs, or the sum of the weights where it does. Raises ArgumentError for
            negative ones.
    """
def bmm(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self @ other."""
def chunk(input: Tensor | _ArrayLike, chunks: Any, dim: Any = 0) -> Any:
    """At most `chunks` parts of one size along an axis; the last may be smaller."""
def clamp(input: Tensor | _ArrayLike, min: Any = None, max: Any = None) -> Any:
    """Every element brought between min and max."""
def clamp_max(input: Tensor | _ArrayLike, max: Any) -> Any:
    """Every element at most max."""
def clamp_min(input: Tensor | _ArrayLike, min: Any) -> Any:
    """Every element at least min."""
def clone(input: Tensor | _ArrayLike) -> Any:
    """A copy that stays linked."""
def cross(input: Tensor | _ArrayLike, other: Any, dim: Any = -1, *, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1) -> Any:
    """The vector product along an axis of three entries; of two, whose third is 0, and of two such the third entry."""
def cumprod(input: Tensor | _ArrayLike, dim: Any = None, dtype: Any = None) -> Any:
    """Running products along an axis; of all elements in a row without one, as in NumPy."""
def cumsum(input: Tensor | _ArrayLike, dim: Any = None, dtype: Any = None) -> Any:
    """Running sums along an axis; of all elements in a row without one, as in NumPy."""
def deg2rad(input: Tensor | _ArrayLike) -> Any:
    """Degrees as radians."""
def diag(input: Tensor | _ArrayLike, diagonal: Any = 0) -> Any:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
def diag_embed(input: Tensor | _ArrayLike, offset: Any = 0, dim1: Any = -2, dim2: Any = -1) -> Any:
    """Matrices with the last axis on a diagonal, zeros elsewhere; dim1, dim2: where their rows and columns are in the result."""
def diagonal(input: Tensor | _ArrayLike, offset: Any = 0, dim1: Any = 0, dim2: Any = 1) -> Any:
    """The diagonals of the matrices in two axes, as the last axis."""
def dist(input: Tensor | _ArrayLike, other: Any, p: Any = 2) -> Any:
    """The p-norm of self - other."""
def div(input: Tensor | _ArrayLike, other: Any, *, rounding_mode: Any = None) -> Any:
    """self / other; with rounding_mode "floor" or "trunc" the whole number below it or towards 0, of integers as integers."""
def dot(input: Tensor | _ArrayLike, other: Any) -> Any:
    """The inner product of two vectors."""
def eq(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self == other, as an array of bool."""
def erfc(input: Tensor | _ArrayLike) -> Any:
    """1 - erf(x), with all digits where erf is near 1."""
def flatten(input: Tensor | _ArrayLike, start_dim: Any = 0, end_dim: Any = -1) -> Any:
    """With the axes from start_dim to end_dim (inclusive) as one."""
def fliplr(input: Tensor | _ArrayLike) -> Any:
    """The second axis reversed."""
def flipud(input: Tensor | _ArrayLike) -> Any:
    """The first axis reversed."""
def fmod(input: Tensor | _ArrayLike, other: Any) -> Any:
    """The rest with the sign of self, without rounding error: self - other * trunc(self / other)."""
def frac(input: Tensor | _ArrayLike) -> Any:
    """self - trunc(self)."""
def gather(input: Tensor | _ArrayLike, dim: Any, index: Any) -> Any:
    """The element at index[..., i, ...] along an axis for each position of index, which may be shorter along the others."""
def ge(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self >= other, as an array of bool."""
def ger(input: Tensor | _ArrayLike, other: Any) -> Any:
    """The products of all pairs of two vectors."""
def gt(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self > other, as an array of bool."""
def index_add(input: Tensor | _ArrayLike, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """With entries of source, times alpha, added at positions along an axis."""
def index_fill(input: Tensor | _ArrayLike, dim: Any, index: Any, value: Any) -> Any:
    """With a number at positions along an axis."""
def index_select(input: Tensor | _ArrayLike, dim: Any, index: Any) -> Any:
    """Entries at positions along an axis."""
def inner(input: Tensor | _ArrayLike, other: Any) -> Any:
    """Products summed over the last axis of both."""
def is_complex(input: Tensor | _ArrayLike) -> Any:
    """Are the elements complex?"""
def is_floating_point(input: Tensor | _ArrayLike) -> Any:
    """Are the elements real floats?"""
def isclose(input: Tensor | _ArrayLike, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    """Is each difference at most atol + rtol * |other|? An array of bool."""
def kron(input: Tensor | _ArrayLike, other: Any) -> Any:
    """The Kronecker product: of matrices blocks, of values of other dimensions likewise along each axis."""
def kthvalue(input: Tensor | _ArrayLike, k: Any, dim: Any = -1, keepdim: Any = False) -> Any:
    """(value, position) of the k-th smallest along an axis, from 1."""
def le(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self <= other, as an array of bool."""
def lerp(input: Tensor | _ArrayLike, end: Any, weight: Any) -> Any:
    """self + weight * (end - self)."""
def logcumsumexp(input: Tensor | _ArrayLike, dim: Any) -> Any:
    """Logarithms of running sums of exponentials along an axis, without overflow or underflow."""
def logit(input: Tensor | _ArrayLike, eps: Any = None) -> Any:
    """log(x / (1 - x)), x held between eps and 1 - eps."""
def lt(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self < other, as an array of bool."""
def masked_fill(input: Tensor | _ArrayLike, mask: Any, value: Any) -> Any:
    """With `value` where the mask, which broadcasts, is true."""
def masked_select(input: Tensor | _ArrayLike, mask: Any) -> Any:
    """The elements where the mask is true, in a row."""
def mm(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self @ other."""
def movedim(input: Tensor | _ArrayLike, source: Any, destination: Any) -> Any:
    """weft.moveaxis of the tensor."""
def msort(input: Tensor | _ArrayLike) -> Any:
    """Sorted along the first axis."""
def mul(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self * other."""
def mv(input: Tensor | _ArrayLike, vector: Any) -> Any:
    """The product of a matrix and a vector."""
def nan_to_num(input: Tensor | _ArrayLike, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """NaN and infinities as numbers: the type's largest unless given."""
def nanmean(input: Tensor | _ArrayLike, dim: Any = None, keepdim: Any = False, *, dtype: Any = None, where: Any = None) -> Any:
    """The mean of what is no NaN, where `where` holds."""
def nansum(input: Tensor | _ArrayLike, dim: Any = None, keepdim: Any = False, *, dtype: Any = None, where: Any = None, initial: Any = None) -> Any:
    """The sum of what is no NaN, where `where` holds."""
def narrow(input: Tensor | _ArrayLike, dim: Any, start: Any, length: Any) -> Any:
    """Entries start to start + length - 1 along an axis."""
def ne(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self != other, as an array of bool."""
def neg(input: Tensor | _ArrayLike) -> Any:
    """-self."""
def norm(input: Tensor | _ArrayLike, p: Any = 2, dim: Any = None, keepdim: Any = False) -> Any:
    """The p-norm over all elements, or along an axis; inf: the largest magnitude, -inf: the least, 0: the count of non-zeros."""
def numel(input: Tensor | _ArrayLike) -> Any:
    """As size."""
def outer(input: Tensor | _ArrayLike, other: Any) -> Any:
    """The products of all pairs of two vectors."""
def permute(input: Tensor | _ArrayLike, *args: Any) -> Any:
    """As the method Tensor.permute; of an array, an array."""
def quantile(input: Tensor | _ArrayLike, q: Any, dim: Any = None, keepdim: Any = False, *, interpolation: Any = 'linear', method: Any = None, weights: Any = None) -> Any:
    """The q-quantile, between two neighbours in proportion; over all elements without an axis."""
def rad2deg(input: Tensor | _ArrayLike) -> Any:
    """Radians as degrees."""
def ravel(input: Tensor | _ArrayLike) -> Any:
    """The elements in a row."""
def repeat_interleave(input: Tensor | _ArrayLike, repeats: Any = None, dim: Any = None, *, output_size: Any = None) -> Any:
    """Each entry several times: weft.repeat. Without `repeats` the positions, each as often as the entry there says."""
def rot90(input: Tensor | _ArrayLike, k: Any = 1, dims: Any = ...) -> Any:
    """Turned by k right angles from the first axis towards the second."""
def scatter_add(input: Tensor | _ArrayLike, dim: Any, index: Any, src: Any) -> Any:
    """With src[...] added at the positions index[...] along an axis; positions may occur several times."""
def sinc(input: Tensor | _ArrayLike) -> Any:
    """sin(pi x) / (pi x), 1 at 0."""
def split(input: Tensor | _ArrayLike, split_size_or_sections: Any, dim: Any = 0) -> Any:
    """Parts along an axis: of one size (the last may be smaller), of the sizes in a list, which must add up, or, of an array,
            between these positions, as in NumPy.
    """
def split_with_sizes(input: Tensor | _ArrayLike, split_size_or_sections: Any, dim: Any = 0) -> Any:
    """Parts along an axis: of one size (the last may be smaller), of the sizes in a list, which must add up, or, of an array,
            between these positions, as in NumPy.
    """
def sub(input: Tensor | _ArrayLike, other: Any, *, alpha: Any = 1) -> Any:
    """self - alpha * other."""
def swapaxes(input: Tensor | _ArrayLike, axis0: Any, axis1: Any) -> Any:
    """Two axes exchanged."""
def swapdims(input: Tensor | _ArrayLike, axis0: Any, axis1: Any) -> Any:
    """Two axes exchanged."""
def t(input: Tensor | _ArrayLike) -> Any:
    """The transpose of a matrix; vectors and scalars as they are. Raises ShapeError above two dimensions."""
def take_along_dim(input: Tensor | _ArrayLike, index: Any, dim: Any = None) -> Any:
    """gather; of the elements in a row when dim is None."""
def tensor_split(input: Tensor | _ArrayLike, parts: Any, dim: Any = 0) -> Any:
    """`parts` pieces along an axis, the first ones longer by one where it does not divide; or cut before indices."""
def trace(input: Tensor | _ArrayLike, offset: Any = 0) -> Any:
    """The sum of a matrix's diagonal, or of the one beside it by `offset`."""
def true_divide(input: Tensor | _ArrayLike, other: Any, *, rounding_mode: Any = None) -> Any:
    """self / other; with rounding_mode "floor" or "trunc" the whole number below it or towards 0, of integers as integers."""
def unbind(input: Tensor | _ArrayLike, dim: Any = 0) -> Any:
    """The entries along an axis, each with one axis less."""
def unflatten(input: Tensor | _ArrayLike, dim: Any, sizes: Any) -> Any:
    """One axis as several."""
def unsqueeze(input: Tensor | _ArrayLike, dim: Any) -> Any:
    """With a new axis of extent 1 at `dim`."""
def vdot(input: Tensor | _ArrayLike, other: Any) -> Any:
    """The sum of conj(self) * other over all elements, in a row; as many on both sides."""
def xlogy(input: Tensor | _ArrayLike, other: Any) -> Any:
    """self * log(other), 0 where self is 0 and the logarithm no number."""
def cdist(x1: Any, x2: Any, p: Any = 2.0) -> Any:
    """The p-norms of the differences of all rows (..., n, d) and (..., m, d): (..., n, m)."""
def bernoulli(x: Any, p: Any = None, *, generator: Any = None) -> Any:
    """0 or 1 in the elements' type, 1 with the probabilities that the elements are, or with p."""
def manual_seed(seed: Any) -> Any:
    """Restarts the default generator, as weft.random.seed; gives weft.default_generator."""
def multinomial(weights: Any, num_samples: Any, replacement: Any = False, *, generator: Any = None) -> Any:
    """Positions drawn with probabilities in proportion to the weights, of a vector or of each row; int64."""
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None) -> Any:
    """Normal numbers; the shape is `size`, or that of mean and std."""
def poisson(rate: Any) -> Any:
    """How many events of these means occur, in their type."""
def rand(*size: Any, dtype: Any = None, device: Any = None, generator: Any = None, requires_grad: Any = False) -> Any:
    """Uniform numbers in [0, 1)."""
def rand_like(x: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Uniform numbers in [0, 1) with the shape, type and device of x."""
def randint(low: Any, high: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None, generator: Any = None) -> Any:
    """Integers in [low, high); randint(high, size) begins at 0."""
def randn(*size: Any, dtype: Any = None, device: Any = None, generator: Any = None, requires_grad: Any = False) -> Any:
    """Normal numbers of mean 0 and deviation 1."""
def randn_like(x: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Normal numbers with the shape, type and device of x."""
def randperm(n: Any, *, device: Any = None, generator: Any = None) -> Any:
    """The numbers below n in random order."""
def angle(x: Any, deg: Any = False) -> Any:
    """The angle of complex numbers in radians, or degrees; of real ones 0, or pi below 0."""
def digamma(x: Any) -> Any:
    """The derivative of lgamma; NaN at negative whole numbers, -infinity at 0 and infinity at -0."""
def divmod(x1: Any, x2: Any) -> Any:
    """(x1 // x2, x1 % x2)."""
def erfinv(x: Any) -> Any:
    """The number whose error function is x; infinite at 1 and -1, NaN beyond."""
def float_power(x1: Any, x2: Any) -> Any:
    """x1 to the power x2 in float64, or complex128."""
def fmax(x1: Any, x2: Any) -> Any:
    """The larger of both; the other where one is NaN."""
def fmin(x1: Any, x2: Any) -> Any:
    """The smaller of both; the other where one is NaN."""
def frexp(x: Any) -> Any:
    """(m, e) with x = m * 2**e, 0.5 <= |m| < 1, e of int32; 0, infinities and NaN are their own m with e of 0."""
def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor of whole numbers, not negative."""
def heaviside(x1: Any, x2: Any) -> Any:
    """0 where x1 is negative, x2 where it is 0, 1 where it is positive, NaN where it is NaN."""
def iscomplex(x: Any) -> Any:
    """Has it an imaginary part?"""
def isneginf(x: Any) -> Any:
    """Is it negative infinity?"""
def isposinf(x: Any) -> Any:
    """Is it positive infinity?"""
def isreal(x: Any) -> Any:
    """Has it no imaginary part?"""
def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple of whole numbers, not negative; 0 where one is 0."""
def ldexp(x1: Any, x2: Any) -> Any:
    """x1 * 2**x2."""
def lgamma(x: Any) -> Any:
    """The logarithm of |gamma(x)|; infinite at 0 and at negative whole numbers."""
def logaddexp2(x1: Any, x2: Any) -> Any:
    """log2(2**x1 + 2**x2) without overflow."""
def logdet(x: Any) -> Any:
    """The logarithm of the determinant, complex of complex matrices; of real ones NaN where it is negative, -infinity where it is 0."""
def modf(x: Any) -> Any:
    """(fraction, whole part), both with the sign of x."""
def sgn(x: Any) -> Any:
    """The sign; of complex numbers x / |x|, 0 at 0."""
def apply_along_axis(function: Any, axis: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The function of each line along an axis; what it gives for a line takes the place of the axis."""
def argpartition(x: Any, kth: Any, axis: Any = -1) -> Any:
    """Positions that bring x in the order of partition."""
def diag_indices(n: Any, ndim: Any = 2) -> Any:
    """The positions of the diagonal of an array with `ndim` axes of n entries."""
def diagflat(x: Any, k: Any = 0) -> Any:
    """A matrix with the elements in a row on its k-th diagonal, zeros elsewhere."""
def fill_diagonal(x: Any, number: Any) -> Any:
    """Writes a number, or the elements of a vector, on the diagonal of a matrix; x itself changes."""
def indices(dimensions: Any, dtype: Any = None, device: Any = None, *, sparse: Any = False) -> Any:
    """The positions along each axis of every element of a grid: (axes, *dimensions); sparse=True: an array for each axis, of extent 1 along the others."""
def ix_(*sequences: Any) -> Any:
    """Index arrays that pick the grid of the positions (or masks) given for each axis."""
def lexsort(keys: Any, axis: Any = -1) -> Any:
    """Positions that sort by the last key, equal ones by the key before it, and so on."""
def partition(x: Any, kth: Any, axis: Any = -1) -> Any:
    """A copy in which the entries at kth (one place or several) along an axis stand as in order, smaller ones before them."""
def put_along_axis(x: Any, index: Any, values: Any, axis: Any) -> Any:
    """Writes values at positions along an axis, one for each entry of index; x itself changes."""
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = 'raise', order: Any = 'C') -> Any:
    """The positions in the row of all elements of positions along each axis."""
def rollaxis(x: Any, axis: Any, start: Any = 0) -> Any:
    """The axis moved before the axis at `start`."""
def tri(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> Any:
    """Ones on and below the k-th diagonal of an (n, m) matrix, zeros above."""
def tril_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """(rows, columns) of the elements on and below the k-th diagonal of an (n, m) matrix."""
def triu_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """(rows, columns) of the elements on and above the k-th diagonal of an (n, m) matrix."""
def unravel_index(index: Any, shape: Any, order: Any = 'C') -> Any:
    """The positions along each axis of positions in the row of all elements. Raises ArgumentError beyond them."""
def vander(x: Any, n: Any = None, increasing: Any = False) -> Any:
    """The powers of a vector's elements, one column for each: from the highest down, or from 0 up with increasing."""
def append(x: Any, values: Any, axis: Any = None) -> Any:
    """values behind x along an axis; both in a row when axis is None."""
def array_split(x: Any, sections: Any, axis: Any = 0) -> Any:
    """A list of parts along an axis: `sections` of nearly equal length, or cut before the positions of a list."""
def atleast_1d(*arrays: Any) -> Any:
    """Each with one axis at least."""
def atleast_2d(*arrays: Any) -> Any:
    """Each with two axes at least; a vector becomes a row."""
def atleast_3d(*arrays: Any) -> Any:
    """Each with three axes at least, as NumPy places them: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
def block(arrays: Any) -> Any:
    """One array of nested lists of blocks: the innermost lists are joined along the last axis, the next along the one before."""
def block_diag(*matrices: Any) -> Any:
    """A matrix with the given ones along its diagonal, zeros elsewhere."""
def broadcast_tensors(*arrays: Any) -> Any:
    """All in the shape to which they broadcast."""
def cartesian_prod(*vectors: Any) -> Any:
    """All choices of one element from each vector, one in each row; of one vector, the vector."""
def column_stack(arrays: Any) -> Any:
    """Vectors as the columns of a matrix; matrices beside one another."""
def combinations(x: Any, r: Any = 2, with_replacement: Any = False) -> Any:
    """All choices of r elements of a vector in order, one in each row."""
def delete(x: Any, index: Any, axis: Any = None) -> Any:
    """Without the entries at positions along an axis (a number, numbers, a slice or a mask); in a row when axis is None."""
def dsplit(x: Any, sections: Any) -> Any:
    """Equal parts along the third axis."""
def dstack(arrays: Any) -> Any:
    """Arrays behind one another, along the third axis."""
def hsplit(x: Any, sections: Any) -> Any:
    """Equal parts along the second axis, of a vector along its only one."""
def hstack(arrays: Any) -> Any:
    """Arrays beside one another: along the second axis, vectors along their only one."""
def insert(x: Any, index: Any, values: Any, axis: Any = None) -> Any:
    """With values before positions along an axis; in a row when axis is None. One value may serve several positions."""
def resize(x: Any, new_shape: Any) -> Any:
    """The elements in order, again from the first where they end, in a new shape."""
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    """Windows at every place along axes, their entries as new last axes; of an array a view."""
def transpose(x: Any, axes: Any = None, dim1: Any = None, *, dim0: Any = None) -> Any:
    """Axes in the order of a tuple, reversed without one, as in NumPy; two axes exchanged, as in PyTorch."""
def trim_zeros(x: Any, trim: Any = 'fb') -> Any:
    """A vector without the zeros at its front ("f") and back ("b")."""
def vsplit(x: Any, sections: Any) -> Any:
    """Equal parts along the first axis."""
def vstack(arrays: Any) -> Any:
    """Arrays below one another; vectors are rows."""
def around(x: Any, decimals: Any = 0) -> Any:
    """Rounded to a number of decimals, halves to even; negative numbers of decimals round to tens, hundreds, ..."""
def array_equal(a: Any, b: Any, equal_nan: Any = False) -> Any:
    """Are shapes and all elements equal? With equal_nan NaN equals NaN."""
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of the data without gradient, which shares memory where it can."""
def copy(x: Any) -> Any:
    """A new array with the elements of x."""
def from_numpy(x: Any) -> Any:
    """A tensor without gradient over the memory of a NumPy array."""
def is_tensor(x: Any) -> Any:
    """Is it a Tensor?"""
def ndim(x: Any) -> Any:
    """The number of axes."""
def shape(x: Any) -> Any:
    """The extents of an array, or of what becomes one."""
def size(x: Any, axis: Any = None) -> Any:
    """The number of elements, or of entries along an axis."""
def tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Any:
    """A tensor with a copy of the data."""
def select(input: Any, dim: Any = None, index: Any = None, default: Any = 0, *, condlist: Any = None, choicelist: Any = None) -> Any:
    """The entry at a position of an axis: select(x, dim, index), as in PyTorch. Of a list of masks and a list of values, the first value
    whose mask is true, `default` where none is: select(masks, values, default), as in NumPy.
    """
def choose(index: Any, choices: Any, mode: Any = 'raise') -> Any:
    """Element by element that of choices[index]; mode: "raise", "wrap" or "clip" for positions beyond them."""
def compress(condition: Any, x: Any, axis: Any = None) -> Any:
    """The entries along an axis for which the condition, a vector, is not 0; of the elements in a row when axis is None."""
def extract(condition: Any, x: Any) -> Any:
    """The elements of x, in a row, where the condition is not 0."""
def flatnonzero(x: Any) -> Any:
    """The positions in the row of all elements of those that are not 0."""
def intersect1d(x1: Any, x2: Any, assume_unique: Any = False, return_indices: Any = False) -> Any:
    """What is in both, ascending, each once. return_indices=True: with the first positions in both."""
def piecewise(x: Any, conditions: Any, functions: Any) -> Any:
    """The function of the first list entry whose condition holds, or that number; one more function serves the rest, else 0."""
def place(x: Any, mask: Any, values: Any) -> Any:
    """Writes values in order, again from the first where they end, where the mask is true; x itself changes."""
def put(x: Any, index: Any, values: Any) -> Any:
    """Writes values, again from the first where they end, at positions in the row of x's elements; an array changes, of a tensor a copy is returned."""
def setdiff1d(x1: Any, x2: Any, assume_unique: Any = False) -> Any:
    """What is in the first and not in the second, ascending, each once."""
def setxor1d(x1: Any, x2: Any, assume_unique: Any = False) -> Any:
    """What is in one of both alone, ascending, each once."""
def union1d(x1: Any, x2: Any) -> Any:
    """What is in one of both, ascending, each once."""
def unique(x: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False, axis: Any = None, *, sorted: Any = True, equal_nan: Any = False) -> Any:
    """The distinct elements in ascending order; with them, as asked, the first position of each, each element's place, how often."""
def unique_consecutive(x: Any, return_inverse: Any = False, return_counts: Any = False, dim: Any = None) -> Any:
    """The first of each run of equal elements, or of equal entries along an axis; with them, as asked, each one's run and the runs' lengths."""
def bartlett(m: Any, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
    """NumPy's bartlett window of m points, computed in float64."""
def blackman(m: Any, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
    """NumPy's blackman window of m points, computed in float64."""
def convolve(a: Any, v: Any, mode: Any = 'full') -> Any:
    """The sums of a[k] v[n - k]: "full", "same" (as long as the longer) or "valid" (where they overlap wholly)."""
def correlate(a: Any, v: Any, mode: Any = 'valid') -> Any:
    """The sums of a[n + k] conj(v[k]): "full", "same" or "valid"."""
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """Running integrals along an axis by trapezoids, one entry less."""
def ediff1d(x: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences of neighbours in the row of all elements, with values before and behind them."""
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, device: Any = None, *, axis: Any = 0) -> Any:
    """Numbers whose neighbours have one ratio, from start to stop; both have one sign, or they are complex: then a spiral. Of arrays
    between their elements, along a new axis.
    """
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Differences of neighbours over their distance: central inside, one-sided of first or second order at both ends."""
def hamming(m: Any, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
    """NumPy's hamming window of m points, computed in float64."""
def hanning(m: Any, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
    """NumPy's hanning window of m points, computed in float64."""
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Values at x of the lines through the points (xp, fp), xp ascending; fp's ends, or left and right, beyond them."""
def kaiser(m: Any, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
    """NumPy's kaiser window of m points, computed in float64."""
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None, device: Any = None, *, axis: Any = 0) -> Any:
    """base to the powers of evenly spaced numbers, which may be complex; of arrays between their elements, along a new axis."""
def poly(zeros: Any) -> Any:
    """The coefficients, the highest power's first, of the polynomial with these zeros; of a square matrix its characteristic one."""
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    """The coefficients, the highest power's first, of the polynomial of a degree with the least sum of squares through the points."""
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with these coefficients, the highest power's first, at x."""
def roots(p: Any) -> Any:
    """The zeros of the polynomial with these coefficients, the highest power's first; complex numbers."""
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """The integral along an axis by trapezoids; samples at x, or dx apart."""
def trapz(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """The integral along an axis by trapezoids; samples at x, or dx apart."""
def unwrap(x: Any, discont: Any = None, axis: Any = -1, *, period: Any = 6.283185307179586) -> Any:
    """Angles whose neighbours differ by more than half a period (or discont) brought nearer by whole periods."""
def median(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Of an array as in NumPy: of an even count the mean of the two in the middle. Of a tensor as in PyTorch: the lower of the two,
    and along an axis (value, position).
    """
def nanmedian(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The median of what is no NaN. Of an array as in NumPy: of an even count the mean of the two in the middle. Of a tensor as in
    PyTorch: the lower of the two, and along an axis (value, position).
    """
def nanpercentile(x: Any, q: Any, axis: Any = None, keepdims: Any = False, *, method: Any = 'linear') -> Any:
    """The q-th percentile of what is no NaN, by a method of percentile; q from 0 to 100."""
def nanquantile(x: Any, q: Any, axis: Any = None, keepdims: Any = False, *, method: Any = 'linear') -> Any:
    """The q-quantile of what is no NaN, by a method of percentile; q from 0 to 1. NaN where there is nothing else."""
def percentile(x: Any, q: Any, axis: Any = None, keepdims: Any = False, *, method: Any = 'linear', weights: Any = None) -> Any:
    """The q-th percentile; q from 0 to 100, one number or several (a first axis)."""
def average(x: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    """The mean, weighted; weights have x's shape or, with an axis, its extent. returned=True: with the sum of the weights."""
def bucketize(x: Any, boundaries: Any, right: Any = False) -> Any:
    """The position of each element among ascending boundaries, as in PyTorch: after equal ones with right."""
def corrcoef(x: Any, y: Any = None, rowvar: Any = True) -> Any:
    """The correlation coefficients of the rows (of the columns with rowvar=False), between -1 and 1; of complex numbers both parts are."""
def cov(x: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *, correction: Any = None) -> Any:
    """The covariances of the rows (of the columns with rowvar=False); the divisor is the count less ddof (1; 0 with bias)."""
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    """The bin of each element: how many of the ascending (or descending) ends are at most it; below it with right."""
def histc(x: Any, bins: Any = 100, min: Any = 0, max: Any = 0) -> Any:
    """Counts in equal bins from min to max, as floats; between the smallest and largest element where both are 0."""
def histogram(x: Any, bins: Any = 10, range: Any = None, density: Any = False, weights: Any = None) -> Any:
    """(how many elements lie in each bin, the ends of the bins)."""
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = False, weights: Any = None) -> Any:
    """(counts, ends along x, ends along y) of points in a grid of bins."""
def nanargmax(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The position of the largest of what is no NaN. Raises ArgumentError for a line of NaN alone."""
def nanargmin(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The position of the smallest of what is no NaN. Raises ArgumentError for a line of NaN alone."""
def nancumsum(x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    """Running sums in which NaN counts as 0; of all elements in a row when axis is None."""
def nanmax(x: Any, axis: Any = None, keepdims: Any = False, *, where: Any = None, initial: Any = None) -> Any:
    """The largest of what is no NaN (and of `initial`) where `where` holds; NaN where there is nothing else."""
def nanmin(x: Any, axis: Any = None, keepdims: Any = False, *, where: Any = None, initial: Any = None) -> Any:
    """The smallest of what is no NaN (and of `initial`) where `where` holds; NaN where there is nothing else."""
def nanprod(x: Any, axis: Any = None, keepdims: Any = False, *, dtype: Any = None, where: Any = None, initial: Any = None) -> Any:
    """The product of what is no NaN, where `where` holds."""
def nanstd(x: Any, axis: Any = None, correction: Any = 0, keepdims: Any = False, *, dtype: Any = None, where: Any = None) -> Any:
    """The standard deviation of what is no NaN, where `where` holds; the divisor of the variance is their count less `correction`."""
def nanvar(x: Any, axis: Any = None, correction: Any = 0, keepdims: Any = False, *, dtype: Any = None, where: Any = None) -> Any:
    """The variance of what is no NaN, where `where` holds; the divisor is their count less `correction`."""
def ptp(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The largest less the smallest."""
def std_mean(x: Any, axis: Any = None, correction: Any = 1, keepdims: Any = False) -> Any:
    """(standard deviation, mean); the divisor of the variance is the count less `correction`."""
def var_mean(x: Any, axis: Any = None, correction: Any = 1, keepdims: Any = False) -> Any:
    """(variance, mean); the divisor of the variance is the count less `correction`."""
def absolute(x: Any, /) -> Any:
    """Absolute value."""
def arccos(x: Any, /) -> Any:
    """Inverse cosine, in radians."""
def arcsin(x: Any, /) -> Any:
    """Inverse sine, in radians."""
def arctan(x: Any, /) -> Any:
    """Inverse tangent, in radians."""
def bitwise_not(x: Any, /) -> Any:
    """Bits inverted; on bool, logical not."""
def fix(x: Any, /) -> Any:
    """x rounded toward zero."""
def arccosh(x: Any, /) -> Any:
    """Inverse hyperbolic cosine."""
def arcsinh(x: Any, /) -> Any:
    """Inverse hyperbolic sine."""
def arctan2(x1: Any, x2: Any, /) -> Any:
    """Angle of the point (x2, x1), in radians."""
def arctanh(x: Any, /) -> Any:
    """Inverse hyperbolic tangent."""
def cat(arrays: Any, /, *, axis: Any = 0) -> Any:
    """Arrays joined along an axis; None flattens them first."""
def concatenate(arrays: Any, /, *, axis: Any = 0) -> Any:
    """Arrays joined along an axis; None flattens them first."""
def conjugate(x: Any, /) -> Any:
    """Complex conjugate."""
def degrees(input: Any) -> Any:
    """Radians as degrees."""
def fabs(x: Any, /) -> Any:
    """Absolute value."""
def identity(n_rows: Any, n_cols: Any = None, k: Any = 0, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones on diagonal k, zeros elsewhere."""
def in1d(x1: Any, x2: Any, /, assume_unique: Any = False, invert: Any = False) -> Any:
    """Which elements of x1 occur in x2? One of them may be a number; it is compared as `==` does it."""
def invert(x: Any, /) -> Any:
    """Bits inverted; on bool, logical not."""
def left_shift(x1: Any, x2: Any, /) -> Any:
    """x1 << x2; 0 when x2 is at least the width."""
def mod(x1: Any, x2: Any, /) -> Any:
    """Remainder of floor_divide: has the sign of x2; integers by 0 give 0."""
def power(x1: Any, x2: Any, /) -> Any:
    """x1 to the power x2."""
def radians(input: Any) -> Any:
    """Degrees as radians."""
def right_shift(x1: Any, x2: Any, /) -> Any:
    """x1 >> x2, arithmetic for signed integers."""
def rint(x: Any, /) -> Any:
    """Nearest integer, ties to even."""
def matrix_power(x: Any, n: Any, /) -> Any:
    """Matrices (..., n, n) to an integer power; negative ones of the inverse. Raises ArgumentError (array.inv.singular)."""
def slogdet(x: Any, /) -> Any:
    """Signs and logarithms of the magnitudes of determinants: (sign, logabsdet), each (...), of matrices (..., n, n)."""
def svd(input: Any, some: Any = True, compute_uv: Any = True) -> Any:
    """(U, S, V) with input = U diag(S) V', as PyTorch's: V itself, as few columns as there are singular values unless some=False. With
    compute_uv=False U and V are zeros. linalg.svd gives V' and all columns.
    """
def apply_over_axes(function: Any, a: Any, axes: Any) -> Any:
    """function(a, axis) for one axis after another; an axis that it takes away stays with extent 1."""
def array_equiv(a: Any, b: Any) -> Any:
    """Are all elements equal after broadcasting? False where the shapes do not fit."""
def asanyarray(a: Any, dtype: Any = None) -> Any:
    """As asarray; arrays and tensors stay what they are. a: any shape and type."""
def asarray_chkfinite(a: Any, dtype: Any = None) -> Any:
    """As asarray. Raises ArgumentError where an element is infinite or NaN."""
def asfarray(a: Any, dtype: Any = None) -> Any:
    """As an array of floats: whole numbers and truth values become the default float."""
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """With its elements in order without gaps, at least one axis; a copy where it was not."""
def asfortranarray(a: Any, dtype: Any = None) -> Any:
    """With the first axis the one whose elements are neighbours in memory; shape and elements are those of a."""
def copyto(dst: Any, src: Any, casting: Any = 'same_kind', where: Any = True) -> Any:
    """Writes src, which broadcasts, into dst; only where a mask is true."""
def diag_indices_from(x: Any) -> Any:
    """The positions of the diagonal of an array with equal extents."""
def frombuffer(buffer: Any, dtype: Any = None, count: Any = -1, offset: Any = 0, *, requires_grad: Any = False) -> Any:
    """A vector over bytes: `count` elements of a type (float64 as in NumPy) from a byte on; -1 takes all that are there."""
def fromfile(file: Any, dtype: Any = None, count: Any = -1, sep: Any = '', offset: Any = 0) -> Any:
    """A vector of the numbers in a file: bytes of a type, or text with a separator."""
def fromfunction(function: Any, shape: Any, *, dtype: Any = 'float64', **kwargs: Any) -> Any:
    """function(positions along axis 0, along axis 1, ...) of a grid; positions are arrays of this shape and type."""
def fromiter(iterable: Any, dtype: Any, count: Any = -1) -> Any:
    """A vector of what an iterable gives, `count` elements at most; all of them when it is -1."""
def fromstring(text: Any, dtype: Any = None, count: Any = -1, *, sep: Any = ' ') -> Any:
    """A vector of the numbers in a text."""
def iscomplexobj(x: Any) -> Any:
    """Is its element type complex?"""
def isfortran(a: Any) -> Any:
    """Are the elements in order along the first axis, and not along the last?"""
def isrealobj(x: Any) -> Any:
    """Is its element type not complex?"""
def isscalar(element: Any) -> Any:
    """Is it a number or a text, and no array?"""
def iterable(x: Any) -> Any:
    """Can one iterate over it?"""
def mask_indices(n: Any, mask_func: Any, k: Any = 0) -> Any:
    """The positions where mask_func(ones of (n, n), k) is not zero: mask_indices(3, weft.triu)."""
def may_share_memory(a: Any, b: Any) -> Any:
    """Could both lie in the same memory? Compared by the first and the last byte."""
def nancumprod(x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    """Running products along an axis in which NaN counts as 1; of all elements in a row when axis is None."""
def packbits(a: Any, axis: Any = None, bitorder: Any = 'big') -> Any:
    """Truth values, or whole numbers that are 0 or not, eight to a byte along an axis; uint8."""
def putmask(a: Any, mask: Any, values: Any) -> Any:
    """Writes into a where the mask is true: values[n] at the n-th element of a, values repeated as often as needed."""
def real_if_close(a: Any, tol: Any = 100) -> Any:
    """The real part of complex numbers whose imaginary parts are all below tol steps of the type (or tol itself below 1)."""
def require(a: Any, dtype: Any = None, requirements: Any = ...) -> Any:
    """An array that meets C (or F) order, A, O and W of NumPy: a copy where it does not."""
def row_stack(arrays: Any) -> Any:
    """As vstack: arrays below one another."""
def shares_memory(a: Any, b: Any) -> Any:
    """Have both an element in common? On the host exactly; elsewhere whether they are views of one storage."""
def sort_complex(x: Any) -> Any:
    """Sorted along the last axis by real parts, equal ones by imaginary parts, as complex numbers."""
def spacing(x: Any) -> Any:
    """The distance to the next larger number in magnitude, with the sign of x; NaN for infinities."""
def tril_indices_from(x: Any, k: Any = 0) -> Any:
    """The positions on and below the k-th diagonal of a matrix, as (rows, columns)."""
def triu_indices_from(x: Any, k: Any = 0) -> Any:
    """The positions on and above the k-th diagonal of a matrix, as (rows, columns)."""
def unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: Any = 'big') -> Any:
    """The bits of uint8, eight zeros and ones for a byte along an axis; `count` of them, or all but -count."""
def bitwise_count(x: Any) -> Any:
    """How many bits of |x| are set; uint8. Whole numbers only."""
c_: Any
def frompyfunc(func: Any, nin: Any, nout: Any, *, identity: Any = None) -> Any:
    """A function of nin numbers as one of arrays: weft.vectorize. Results are numbers, never objects."""
index_exp: Any
mgrid: Any
from ._functions.grids import ndenumerate as ndenumerate
from ._functions.grids import ndindex as ndindex
ogrid: Any
r_: Any
s_: Any
from ._functions.grids import vectorize as vectorize
def array2string(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None, separator: Any = ' ', prefix: Any = '') -> Any:
    """The elements as text under the options of set_printoptions; arguments that are given go before them."""
def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> Any:
    """"array([...], dtype=...)" under the options of set_printoptions."""
def array_str(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> Any:
    """The elements as text, as str does it, under the options of set_printoptions."""
def base_repr(number: Any, base: Any = 2, padding: Any = 0) -> Any:
    """A whole number as text in a base from 2 to 36, `padding` zeros before it."""
def binary_repr(num: Any, width: Any = None) -> Any:
    """A whole number in bits; negative ones as the two's complement of `width` bits."""
from ._functions.text import errstate as errstate
def format_float_positional(x: Any, precision: Any = None, unique: Any = True, fractional: Any = True, trim: Any = 'k', sign: Any = False) -> Any:
    """A number as text without an exponent."""
def format_float_scientific(x: Any, precision: Any = None, unique: Any = True, trim: Any = 'k', sign: Any = False) -> Any:
    """A number as text with an exponent."""
def genfromtxt(fname: Any, dtype: Any = None, comments: Any = '#', delimiter: Any = None, skip_header: Any = 0, skip_footer: Any = 0, usecols: Any = None, filling_values: Any = None, unpack: Any = False, max_rows: Any = None, **options: Any) -> Any:
    """As loadtxt, with NaN (or filling_values) for numbers that are missing. Names of columns and mixed types are not offered."""
def get_printoptions() -> Any:
    """The options of set_printoptions as a dict."""
def geterr() -> Any:
    """What seterr gives: nothing warns."""
def loadtxt(fname: Any, dtype: Any = None, comments: Any = '#', delimiter: Any = None, converters: Any = None, skiprows: Any = 0, usecols: Any = None, unpack: Any = False, ndmin: Any = 0, max_rows: Any = None) -> Any:
    """Numbers of a text file (a path, a file or lines), a row for each line, on the host; float64 unless a type is given."""
def printoptions(**options: Any) -> Any:
    """with weft.printoptions(precision=3): ... sets options of printing inside."""
def savetxt(fname: Any, X: Any, fmt: Any = '%.18e', delimiter: Any = ' ', newline: Any = '\n', header: Any = '', footer: Any = '', comments: Any = '# ') -> Any:
    """Writes a vector or a matrix as text, a line for each row."""
def savez_compressed(path: Any, **arrays: Any) -> Any:
    """Writes arrays by name into one compressed .npz file; load_arrays reads it."""
def set_printoptions(precision: Any = None, threshold: Any = None, edgeitems: Any = None, linewidth: Any = None, suppress: Any = None, nanstr: Any = None, infstr: Any = None, formatter: Any = None, sign: Any = None, floatmode: Any = None, profile: Any = None, sci_mode: Any = None) -> Any:
    """How array2string, array_repr and array_str write numbers, with NumPy's meanings; None leaves an option as it is."""
def seterr(all: Any = None, **modes: Any) -> Any:
    """NumPy's switch of floating-point warnings. weft never warns: what is infinite or NaN is so. Raises for "raise"."""
def typename(x: Any) -> Any:
    """The kind of a value as text: "weft.Tensor", "weft.NDArray", a Python type; of a type's letter its words."""
def bool_(x: Any = 0) -> Any:
    """An element type."""
def byte(x: Any = 0) -> Any:
    """An element type."""
def cdouble(x: Any = 0) -> Any:
    """An element type."""
def cfloat(x: Any = 0) -> Any:
    """An element type."""
def common_type(*arrays: Any) -> Any:
    """The type of floats, or complex numbers, for arrays together: float64 for whole numbers."""
def complex_(x: Any = 0) -> Any:
    """An element type."""
complexfloating: Any
def csingle(x: Any = 0) -> Any:
    """An element type."""
def double(x: Any = 0) -> Any:
    """An element type."""
def find_common_type(array_types: Any, scalar_types: Any = ...) -> Any:
    """The common type of types."""
def float_(x: Any = 0) -> Any:
    """An element type."""
floating: Any
generic: Any
def get_default_dtype() -> Any:
    """The type of floats that has no other: float32."""
def half(x: Any = 0) -> Any:
    """An element type."""
inexact: Any
def int_(x: Any = 0) -> Any:
    """An element type."""
def intc(x: Any = 0) -> Any:
    """An element type."""
integer: Any
def intp(x: Any = 0) -> Any:
    """An element type."""
def is_signed(x: Any) -> Any:
    """Can elements be negative?"""
def issctype(rep: Any) -> Any:
    """Is it an element type?"""
def issubdtype(arg1: Any, arg2: Any) -> Any:
    """Is a type one of a kind (weft.integer, weft.floating, ...), or equal to another type? Python's int, float and complex are kinds."""
def long(x: Any = 0) -> Any:
    """An element type."""
def longlong(x: Any = 0) -> Any:
    """An element type."""
def min_scalar_type(a: Any) -> Any:
    """The smallest type that holds a number; of an array its type."""
def mintypecode(typechars: Any, typeset: Any = 'GDFgdf', default: Any = 'd') -> Any:
    """The letter of the smallest of NumPy's types for several letters."""
number: Any
def promote_types(type1: Any, type2: Any) -> Any:
    """The smallest type that both go to by the promotion rules."""
def set_default_dtype(d: Any) -> Any:
    """The default type of floats is float32. Raises ArgumentError for another: name the type with dtype=."""
def short(x: Any = 0) -> Any:
    """An element type."""
signedinteger: Any
def single(x: Any = 0) -> Any:
    """An element type."""
def singlecomplex(x: Any = 0) -> Any:
    """An element type."""
def ubyte(x: Any = 0) -> Any:
    """An element type."""
def uint(x: Any = 0) -> Any:
    """An element type."""
def uintc(x: Any = 0) -> Any:
    """An element type."""
def uintp(x: Any = 0) -> Any:
    """An element type."""
def ulonglong(x: Any = 0) -> Any:
    """An element type."""
unsignedinteger: Any
def ushort(x: Any = 0) -> Any:
    """An element type."""
Inf: Any
Infinity: Any
NAN: Any
NINF: Any
NZERO: Any
NaN: Any
PINF: Any
PZERO: Any
euler_gamma: Any
infty: Any
True_: Any
False_: Any
from ._functions.draws import Generator as Generator
Size: Any
default_generator: Any
strided: Any
preserve_format: Any
contiguous_format: Any
channels_last: Any
channels_last_3d: Any
def einsum_path(subscripts: Any, *operands: Any, optimize: Any = 'greedy', einsum_call: Any = False) -> Any:
    """(['einsum_path', (i, j), ...], a text): the pairs that einsum contracts, in order, as positions in the list that remains, whose end each
    result goes to; and what it saves. `optimize` as in NumPy: False contracts all at once, a list is taken as it is; True, "greedy" and
    "optimal" give the order that weft.einsum takes.
    """
def matvec(x1: Any, x2: Any) -> Any:
    """Matrices (..., m, n) times vectors (..., n)."""
def vecmat(x1: Any, x2: Any) -> Any:
    """Vectors (..., m), conjugated, times matrices (..., m, n)."""
def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """How many of `count` tries succeed with probability `prob`, element by element, in the counts' type."""
def get_default_device() -> Any:
    """The device of arrays that are made without naming one."""
def i0(x: Any) -> Any:
    """The modified Bessel function of order 0: weft.special.i0."""
def igamma(x: Any, other: Any) -> Any:
    """The regularised lower incomplete gamma function: weft.special.gammainc."""
def igammac(x: Any, other: Any) -> Any:
    """The regularised upper incomplete gamma function: weft.special.gammaincc."""
def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma: weft.special.polygamma."""
def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """weft.nn.functional.rms_norm."""
def set_default_device(device: Any) -> Any:
    """Arrays that are made without naming a device are made on this one from now on, in the whole process; None: on the host."""
from ._functions.polynomials import poly1d as poly1d
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials; vectors (n,) and (m,) give (max(n, m),)."""
def polyder(p: Any, m: Any = 1) -> Any:
    """The m-th derivative of a polynomial."""
def polydiv(u: Any, v: Any) -> Any:
    """(quotient, rest) of a division of polynomials, in floats. Raises ArgumentError for a leading coefficient of 0."""
def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    """The m-th integral of a polynomial; k: its constants, the first one integrated most often (one number, or m of them)."""
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials; vectors (n,) and (m,) give (n + m - 1,)."""
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials."""
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges (bins + 1,) that histogram takes; bins: a number, edges, or a rule ("auto", "sqrt", "sturges", "rice", "scott", "fd")."""
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = False, weights: Any = None) -> Any:
    """(counts, list of edges) of points (n, d), or d vectors of coordinates; bins: a number, or one (or edges) for each axis."""
def cummax(x: Any, dim: Any = -1) -> Any:
    """(largest elements so far along an axis, their positions, the last of equals); NaN stays once met. Any real type."""
def cummin(x: Any, dim: Any = -1) -> Any:
    """(smallest elements so far along an axis, their positions, the last of equals); NaN stays once met. Any real type."""
def mode(x: Any, dim: Any = -1, keepdim: Any = False) -> Any:
    """(the most frequent element along an axis, the smallest of equally frequent ones, a position of it)."""
def renorm(x: Any, p: Any, dim: Any, maxnorm: Any) -> Any:
    """Slices along an axis scaled down to a p-norm of at most maxnorm."""
def as_strided(x: Any, size: Any, stride: Any, storage_offset: Any = 0) -> Any:
    """The elements at storage_offset + i * stride[0] + j * stride[1] + ... of x in order: of an array without gaps a view, else
    picked, with the gradient. Raises IndexError outside the array.
    """
def as_strided_scatter(x: Any, src: Any, size: Any, stride: Any, storage_offset: Any = 0) -> Any:
    """A copy of x with src at the elements that as_strided reads."""
def diagonal_scatter(x: Any, src: Any, offset: Any = 0, dim1: Any = 0, dim2: Any = 1) -> Any:
    """A copy of x with a diagonal replaced by src, which has the shape of diagonal(x, offset, dim1, dim2)."""
def index_copy(x: Any, dim: Any, index: Any, source: Any) -> Any:
    """A copy of x with the entries `index` along an axis replaced by those of source."""
def index_put(x: Any, indices: Any, values: Any, accumulate: Any = False) -> Any:
    """A copy of x with values at x[indices], or added there; indices: a tuple of index arrays (or masks), values broadcast."""
def index_reduce(x: Any, dim: Any, index: Any, source: Any, reduce: Any, *, include_self: Any = True) -> Any:
    """A copy of x with the entries of source combined into its entries `index` along an axis: "prod", "mean", "amax" or "amin"."""
def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """A copy of x with the elements of source, in order, where the mask is true."""
def scatter_reduce(x: Any, dim: Any, index: Any, src: Any, reduce: Any, include_self: Any = True) -> Any:
    """A copy of x with src[i, j] combined into x[index[i, j], j] (along an axis): "sum", "prod", "mean", "amax" or "amin"."""
def segment_reduce(data: Any, reduce: Any, *, lengths: Any = None, offsets: Any = None, axis: Any = 0, unsafe: Any = False, initial: Any = None) -> Any:
    """Reductions of pieces along the first axis: "sum", "mean", "max" or "min" of `lengths` entries each, or between offsets."""
def select_scatter(x: Any, src: Any, dim: Any, index: Any) -> Any:
    """A copy of x with one entry along an axis replaced by src."""
def slice_scatter(x: Any, src: Any, dim: Any = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """A copy of x with a slice along an axis replaced by src."""
def adjoint(x: Any) -> Any:
    """Matrices transposed and conjugated."""
def chain_matmul(*matrices: Any) -> Any:
    """The product of several matrices in the cheapest order."""
def cholesky(x: Any, upper: Any = False) -> Any:
    """The triangular factor of symmetric positive definite matrices. Raises LinAlgError for others. Has gradients."""
def cholesky_inverse(x: Any, upper: Any = False) -> Any:
    """The inverse of the matrices whose Cholesky factor is given."""
def cholesky_solve(b: Any, x: Any, upper: Any = False) -> Any:
    """y with A y = b (..., n, k) for the matrices A whose Cholesky factor is x."""
def det(x: Any) -> Any:
    """Determinants of matrices (..., n, n). Has gradients."""
def frobenius_norm(x: Any, dim: Any = None, keepdim: Any = False) -> Any:
    """The root of the sum of squares over axes."""
def geqrf(x: Any) -> Any:
    """(R above the diagonal and the reflectors below it, their factors tau) of matrices (m, n)."""
def inverse(x: Any) -> Any:
    """Inverse matrices (..., n, n). Raises LinAlgError for singular ones. Has gradients."""
def lobpcg(A: Any, k: Any = None, B: Any = None, X: Any = None, n: Any = None, iK: Any = None, niter: Any = None, tol: Any = None, largest: Any = None, **options: Any) -> Any:
    """(eigenvalues (k,), eigenvectors (n, k)) of a symmetric A, the largest (or smallest) ones, of A x = e B x where B is given.
    All are computed, whatever the method's options say.
    """
def lu(x: Any, *, pivot: Any = True, get_infos: Any = False) -> Any:
    """weft.linalg.lu: (P, L, U) with P L U = x, of matrices (..., m, n); L has ones on its diagonal."""
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any = None, *, left: Any = True, adjoint: Any = False) -> Any:
    """x with A x = b for what lu_factor gave of A: lu_solve(b, LU, pivots), or weft.linalg's order lu_solve(LU, pivots, b)."""
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: Any = True, unpack_pivots: Any = True) -> Any:
    """(P, L, U) with P L U the matrices that lu_factor took."""
def matrix_exp(x: Any) -> Any:
    """Exponentials of matrices (..., n, n)."""
def matrix_rank(x: Any, tol: Any = None, symmetric: Any = False) -> Any:
    """How many singular values exceed tol (an absolute number), or the type's step times the larger extent times the largest."""
def mvlgamma(x: Any, p: Any) -> Any:
    """The logarithm of the multivariate gamma function of dimension p; x above (p - 1) / 2."""
def nuclear_norm(x: Any, dim: Any = None, keepdim: Any = False) -> Any:
    """The sum of the singular values of matrices in two axes (the last ones)."""
def orgqr(x: Any, tau: Any) -> Any:
    """As weft.linalg.householder_product."""
def ormqr(x: Any, tau: Any, other: Any, left: Any = True, transpose: Any = False) -> Any:
    """other times the orthogonal matrix of geqrf's reflectors, from the left or the right."""
def pca_lowrank(x: Any, q: Any = None, center: Any = True, niter: Any = 2) -> Any:
    """svd_lowrank of x less the means of its columns: (U, S, V), the columns of V the principal directions."""
def pinverse(x: Any, rcond: Any = None) -> Any:
    """Generalised inverses; singular values below rcond times the largest count as 0."""
def qr(x: Any, some: Any = True) -> Any:
    """(Q, R); with some=False the whole orthogonal matrix."""
def svd_lowrank(x: Any, q: Any = 6, niter: Any = 2, M: Any = None) -> Any:
    """(U, S, V) with about x = U diag(S) V' of rank q, by products with random vectors and `niter` powers."""
def triangular_solve(b: Any, a: Any, upper: Any = True, transpose: Any = False, unitriangular: Any = False) -> Any:
    """(x with a x = b, a); a is read above (below) the diagonal, transposed on demand."""
def norm_except_dim(v: Any, pow: Any = 2, dim: Any = 0) -> Any:
    """The p-norms of the slices along an axis, with extents of 1 elsewhere."""
def conj_physical(x: Any) -> Any:
    """As conj."""
def is_conj(x: Any) -> Any:
    """False: conj computes, and marks nothing."""
def is_neg(x: Any) -> Any:
    """False: negation computes, and marks nothing."""
def polar(abs: Any, angle: Any) -> Any:
    """Complex numbers of these magnitudes and angles in radians. Has gradients."""
def resolve_conj(x: Any) -> Any:
    """Itself: conj computes."""
def resolve_neg(x: Any) -> Any:
    """Itself: negation computes."""
def view_as_complex(x: Any) -> Any:
    """Pairs (..., 2) of floats as complex numbers, a copy. Has gradients."""
def view_as_real(x: Any) -> Any:
    """Complex numbers as pairs (..., 2) of their parts, a copy. Has gradients."""
def bartlett_window(window_length: Any, periodic: Any = True, *, dtype: Any = None, device: Any = None) -> Any:
    """1 - |2 k / n - 1|."""
def blackman_window(window_length: Any, periodic: Any = True, *, dtype: Any = None, device: Any = None) -> Any:
    """0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)."""
def hamming_window(window_length: Any, periodic: Any = True, alpha: Any = 0.54, beta: Any = 0.46, *, dtype: Any = None, device: Any = None) -> Any:
    """alpha - beta cos(2 pi k / n)."""
def hann_window(window_length: Any, periodic: Any = True, *, dtype: Any = None, device: Any = None) -> Any:
    """(1 - cos(2 pi k / n)) / 2 for k below window_length; n is the length, or one less without periodic."""
def istft(input: Any, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: Any = True, normalized: Any = False, onesided: Any = None, length: Any = None, return_complex: Any = False) -> Any:
    """The samples whose stft is given, frames added up under the window: (frequencies, frames) or (n, ...) complex gives (samples,)
    or (n, samples). Raises ArgumentError where windows leave a gap. Has gradients.
    """
def kaiser_window(window_length: Any, periodic: Any = True, beta: Any = 12.0, *, dtype: Any = None, device: Any = None) -> Any:
    """I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta)."""
def stft(input: Any, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: Any = True, pad_mode: Any = 'reflect', normalized: Any = False, onesided: Any = None, return_complex: Any = None) -> Any:
    """Fourier transforms of overlapping frames: (samples,) or (n, samples) gives (n_fft // 2 + 1, frames), or (n, ...), complex."""
def adaptive_avg_pool1d(*args: Any, **kwargs: Any) -> Any:
    """Means of output_size windows that together cover the axis; they overlap where it does not divide."""
def adaptive_max_pool1d(*args: Any, **kwargs: Any) -> Any:
    """The largest of output_size windows that together cover the axis."""
def affine_grid_generator(theta: Any, size: Any, align_corners: Any) -> Any:
    """nn.functional.affine_grid."""
def alpha_dropout(*args: Any, **kwargs: Any) -> Any:
    """Sets elements to the lowest value of selu, and scales and shifts so that mean and variance stay."""
def avg_pool1d(*args: Any, **kwargs: Any) -> Any:
    """Mean of each window of (n, c, length) or (c, length); a border counts as zeros, or not at all."""
def batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: Any, momentum: Any, eps: Any, cudnn_enabled: Any = True) -> Any:
    """nn.functional.batch_norm with PyTorch's order: (n, c, ...), statistics (c,); while training those of the batch."""
def bilinear(*args: Any, **kwargs: Any) -> Any:
    """x[..., i] weight[o, i, j] y[..., j], summed over i and j, plus bias[o]."""
def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: Any = 1) -> Any:
    """nn.functional.binary_cross_entropy_with_logits; reduction: 0, 1, 2 or none, mean, sum."""
def celu(*args: Any, **kwargs: Any) -> Any:
    """x where positive, else alpha (exp(x / alpha) - 1)."""
def channel_shuffle(*args: Any, **kwargs: Any) -> Any:
    """The channels (axis 1) of `groups` groups dealt out in turn. Raises ShapeError when they do not divide."""
def constant_pad_nd(input: Any, pad: Any, value: Any = 0) -> Any:
    """A border of one number: pairs (before, after) from the last axis on."""
def conv1d(*args: Any, **kwargs: Any) -> Any:
    """x (n, c, length) with weight (o, c / groups, k)."""
def conv2d(*args: Any, **kwargs: Any) -> Any:
    """x (n, c, h, w) with weight (o, c / groups, kh, kw) and bias (o,). Options: a number or (rows, columns); padding also "same" or "valid"."""
def conv3d(*args: Any, **kwargs: Any) -> Any:
    """x (n, c, d, h, w) with weight (o, c / groups, kd, kh, kw): slices convolved as images, kd of them added up."""
def conv_tbc(*args: Any, **kwargs: Any) -> Any:
    """A convolution of (time, batch, channels) with weight (taps, channels, results)."""
def conv_transpose1d(*args: Any, **kwargs: Any) -> Any:
    """The transpose of conv1d: x (n, c, length) with weight (c, o / groups, k)."""
def conv_transpose2d(*args: Any, **kwargs: Any) -> Any:
    """The transpose of conv2d: x (n, c, h, w) with weight (c, o / groups, kh, kw) and bias (o,)."""
def conv_transpose3d(*args: Any, **kwargs: Any) -> Any:
    """The transpose of conv3d: x (n, c, d, h, w) with weight (c, o / groups, kd, kh, kw)."""
def convolution(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: Any, output_padding: Any, groups: Any) -> Any:
    """The convolution (or its transpose) for as many spatial axes as the input has: conv1d, conv2d or conv3d."""
def cosine_embedding_loss(*args: Any, **kwargs: Any) -> Any:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1; cos along the last axis."""
def cosine_similarity(*args: Any, **kwargs: Any) -> Any:
    """The cosine of the angle between vectors along an axis; `dim` is PyTorch's name of the axis."""
def ctc_loss(*args: Any, **kwargs: Any) -> Any:
    """-log of the probability of all alignments of a sequence of labels (Graves et al., 2006)."""
def dropout(*args: Any, **kwargs: Any) -> Any:
    """Zeroes elements with probability p and scales the others by 1 / (1 - p)."""
def embedding(weight: Any, indices: Any, padding_idx: Any = -1, scale_grad_by_freq: Any = False, sparse: Any = False) -> Any:
    """Rows of weight (rows, n) by integers of any shape; negative padding_idx is none."""
def embedding_bag(*args: Any, **kwargs: Any) -> Any:
    """Sums, means or maxima of the rows of weight in each bag."""
def feature_alpha_dropout(*args: Any, **kwargs: Any) -> Any:
    """alpha_dropout of whole channels of (n, c, ...)."""
def feature_dropout(input: Any, p: Any = 0.5, training: Any = True) -> Any:
    """Zeroes whole channels of (n, c, ...) with probability p."""
def grid_sampler(input: Any, grid: Any, interpolation_mode: Any, padding_mode: Any, align_corners: Any) -> Any:
    """nn.functional.grid_sample with PyTorch's numbers of modes: 0 bilinear, 1 nearest; 0 zeros, 1 border, 2 reflection."""
def group_norm(input: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-05, cudnn_enabled: Any = True) -> Any:
    """nn.functional.group_norm: (n, c, ...), channels in num_groups groups."""
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """h of one step: x (n, i), hx (n, k), weights (3 k, i) and (3 k, k); gates reset, update, new."""
def hardshrink(*args: Any, **kwargs: Any) -> Any:
    """x where |x| > lambd, else 0."""
def hinge_embedding_loss(*args: Any, **kwargs: Any) -> Any:
    """x where target is 1, max(0, margin - x) where it is -1."""
def instance_norm(input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None, use_input_stats: Any = True, momentum: Any = 0.1, eps: Any = 1e-05, cudnn_enabled: Any = True) -> Any:
    """nn.functional.instance_norm of (n, c, ...) over the statistics of each image and channel."""
def kl_div(*args: Any, **kwargs: Any) -> Any:
    """t (log t - x) with x a logarithm of probabilities; "batchmean" is the sum over the rows' number."""
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """(h, c) of one step: x (n, i), hx = (h, c) of (n, k), weights (4 k, i) and (4 k, k); gates input, forget, cell, output."""
def margin_ranking_loss(*args: Any, **kwargs: Any) -> Any:
    """max(0, -target (x - y) + margin); target is 1 where x should be larger, else -1."""
def max_pool1d(*args: Any, **kwargs: Any) -> Any:
    """Largest value of each window of (n, c, length) or (c, length); a border of `padding` never wins."""
def max_pool1d_with_indices(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: Any = False) -> Any:
    """(largest of each window of (n, c, length), their positions in the row)."""
def max_pool2d(*args: Any, **kwargs: Any) -> Any:
    """Largest value of each window of (n, c, h, w) or (c, h, w); a border of `padding` never wins."""
def max_pool3d(*args: Any, **kwargs: Any) -> Any:
    """Largest value of each window of (n, c, d, h, w) or (c, d, h, w); a border of `padding` never wins."""
def pairwise_distance(*args: Any, **kwargs: Any) -> Any:
    """The p-norm of x - y + eps along the last axis."""
def pdist(*args: Any, **kwargs: Any) -> Any:
    """The p-norms of the differences of all pairs of rows of x (n, m), those of row 0 first: (n (n - 1) / 2,)."""
def pixel_shuffle(*args: Any, **kwargs: Any) -> Any:
    """(n, c r r, h, w) to (n, c, h r, w r): r r channels become the pixels of a square."""
def pixel_unshuffle(*args: Any, **kwargs: Any) -> Any:
    """(n, c, h r, w r) to (n, c r r, h, w): the pixels of a square become r r channels."""
def poisson_nll_loss(*args: Any, **kwargs: Any) -> Any:
    """exp(x) - target x, or x - target log(x + eps) without log_input; `full` adds Stirling's term for target > 1."""
def prelu(*args: Any, **kwargs: Any) -> Any:
    """x where positive, else weight times x; weight has one element, or one for each channel (axis 1)."""
def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """max(0, x w_ih' + h w_hh' + biases)."""
def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """tanh(x w_ih' + h w_hh' + biases): x (n, i), h (n, k), weights (k, i) and (k, k)."""
def rrelu(*args: Any, **kwargs: Any) -> Any:
    """x where positive, else x times a random number in [lower, upper) while training, their mean otherwise."""
def selu(*args: Any, **kwargs: Any) -> Any:
    """elu with the two constants that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
def threshold(*args: Any, **kwargs: Any) -> Any:
    """x where x > threshold, else value."""
def triplet_margin_loss(*args: Any, **kwargs: Any) -> Any:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the difference."""
def are_deterministic_algorithms_enabled() -> Any:
    """Is the order of all sums fixed?"""
def detach(x: Any) -> Any:
    """The values without the graph."""
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Any:
    """A tensor of unset elements with these steps between its elements."""
def fork_rng(devices: Any = None, enabled: Any = True) -> Any:
    """with weft.fork_rng(): ... the default generator is where it was before afterwards."""
def get_device(x: Any) -> Any:
    """The number of the card that it lies on, -1 on the host."""
def get_float32_matmul_precision() -> Any:
    """"highest": products of float32 are computed in float32."""
def get_num_interop_threads() -> Any:
    """How many threads the host computes with."""
def get_num_threads() -> Any:
    """How many threads the host computes with."""
def get_rng_state() -> Any:
    """The place in the stream of the default generator: 16 bytes, as an array of uint8."""
def inference_mode(mode: Any = True) -> Any:
    """As no_grad: with weft.inference_mode(): ..., or a decorator. With mode=False nothing changes."""
def initial_seed() -> Any:
    """The seed of the default generator."""
def is_anomaly_enabled() -> Any:
    """False: there is no such mode; weft.isnan(x).any() finds NaN."""
def is_distributed(x: Any) -> Any:
    """Is it spread over devices? Arrays and tensors of one device are not."""
def is_grad_enabled() -> Any:
    """Do operations of this thread make a graph?"""
def is_inference(x: Any) -> Any:
    """Was it made without a graph?"""
def is_inference_mode_enabled() -> Any:
    """Do operations of this thread make no graph?"""
def is_nonzero(x: Any) -> Any:
    """Is the only element not zero? Raises ArgumentError for more than one."""
def is_same_size(a: Any, b: Any) -> Any:
    """Have both the same shape?"""
def is_storage(x: Any) -> Any:
    """Is it the memory under arrays?"""
def randint_like(x: Any, low: Any, high: Any = None, *, dtype: Any = None, device: Any = None) -> Any:
    """Integers in [low, high), or [0, low), with the shape, type and device of x."""
def rsub(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """other - alpha * x."""
def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Any:
    """A tensor of one number without axes."""
def seed() -> Any:
    """Restarts the default generator from chance; gives the seed."""
def set_float32_matmul_precision(precision: Any) -> Any:
    """Products of float32 are computed in float32, whichever of "highest", "high" and "medium" is allowed."""
from ._functions.states import set_grad_enabled as set_grad_enabled
def set_num_interop_threads(n: Any) -> Any:
    """Nothing to set: operations of one thread run one after another."""
def set_num_threads(n: Any) -> Any:
    """How many threads the host computes with, from 1 on."""
def set_rng_state(state: Any) -> Any:
    """Goes to a place that get_rng_state gave."""
def unsafe_chunk(x: Any, chunks: Any, dim: Any = 0) -> Any:
    """As chunk."""
def unsafe_split(x: Any, split_size: Any, dim: Any = 0) -> Any:
    """As split."""
def unsafe_split_with_sizes(x: Any, split_sizes: Any, dim: Any = 0) -> Any:
    """As split_with_sizes."""
def use_deterministic_algorithms(mode: Any, *, warn_only: Any = False) -> Any:
    """Sums in one order on every device, also where a faster way has none: weft.use_deterministic for the rest of the process."""
def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, keeping none of what it computes inside for the backward pass, which computes it again."""
from .transforms.custom import custom_jvp as custom_jvp
from .transforms.custom import custom_vjp as custom_vjp
def functional_call(module: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
    """module(*args, **kwargs) with the tensors of a dict, by name, in place of its parameters."""
def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: Any = False) -> Callable[..., Any]:
    """The gradient function of f; grad(grad(f)) is its second derivative. Arguments and errors: value_and_grad."""
def hessian(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: Any = False) -> Callable[..., Any]:
    """The second derivatives of f: jacfwd(jacrev(f)), with the shape (*result, *argument, *argument)."""
def jacfwd(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: Any = False) -> Callable[..., Any]:
    """The Jacobian function of f by forward derivatives, one for each element of the argument, all at once."""
def jacobian(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: Any = False) -> Callable[..., Any]:
    """The Jacobian function of f by backward passes, one for each element of the result, all at once."""
def jacrev(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: Any = False) -> Callable[..., Any]:
    """The Jacobian function of f by backward passes, one for each element of the result, all at once."""
def jvp(f: Callable[..., Any], primals: Any, tangents: Any, has_aux: Any = False) -> tuple[Any, ...]:
    """(f(*primals), derivative of f along the tangents). With has_aux f returns (result, aux) and aux comes third."""
def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(f(*primals), push): push(*tangents) gives the derivative of f along the tangents, as often as wanted."""
def stop_gradient(x: _ArrayLike) -> Any:
    """The values of a tree of arrays as constants: no derivative passes."""
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """f of the leaves of trees of one structure, as such a tree."""
def value_and_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: Any = False) -> Callable[..., tuple[Any, Any]]:
    """A function that gives f's value, one number, and its gradient with respect to some positional arguments."""
def vjp(f: Callable[..., Any], *primals: Any, has_aux: Any = False) -> tuple[Any, ...]:
    """(f(*primals), pull): pull(cotangent) gives the tuple of gradients of the primals for a gradient of the result."""
def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: Any = None, randomness: Any = 'error', strict: Any = False) -> _Mapped:
    """f, which is written for one example, for all examples along an axis of its arguments at once."""
def no_grad() -> _Switch:
    """Inside, operations of this thread make no graph: ``with weft.no_grad(): y = model(x)``. Also a decorator."""
def enable_grad() -> _Switch:
    """Inside, operations make a graph again, within no_grad or a Function's own methods. Also a decorator."""
from ._autocast import autocast as autocast
def get_autocast_dtype(device_type: Any) -> _dtype:
    """The type of autocast on this kind of device: the one at work here, else the one that it has by itself."""
def is_autocast_available(device_type: Any) -> _bool:
    """Is there autocast for this kind of device?"""
def is_autocast_enabled(device_type: Any = None) -> _bool:
    """Does autocast convert on this kind of device here (None: on any)?"""
def capture(function: Callable[..., Any], *, state: Any = ..., donate: Any = ...) -> _Captured:
    """The function with its launches recorded in the second call and replayed by one call of the driver after that."""
def compile(function: Callable[..., Any], *, contract: _bool = False, capture: Any = False, donate: Any = ..., static_argnums: Any = ..., static_argnames: Any = ..., donate_argnums: Any = ...) -> Callable[..., Any]:
    """The function with its element-wise chains and trailing reductions fused into few kernels."""
from ._compiled import Compiled as Compiled
def device(name: Any) -> Device:
    """The device of a name: "cpu", "cuda:0", "qpu:qpus=12", "vta", "wse:8x8", "ref"."""
def devices() -> list[Device]:
    """Every device known, whether present or not."""
def is_deterministic() -> _bool:
    """What use_deterministic() was last told; False at the beginning."""
def fallbacks(*, clear: Any = False) -> list[Any]:
    """What was computed on the host in place of a device under ``weft.use(..., fallback="cpu")``, in this process."""
def use(name: Any, *, fallback: Any = None) -> Any:
    """Makes a device the default inside a with statement, for the thread that runs it."""
def use_deterministic(on: Any = True) -> Any:
    """Whether every run of a program gives the same bits on devices with a grid, too."""
def set_threads(n: int, /) -> None:
    """At most n host threads compute."""
def get_threads() -> int:
    """get_threads() -> int"""
def save(path: Any, x: Any) -> None:
    """One array as .npy; a dict as .safetensors, a checkpoint's nested dicts, lists and numbers too. weft.load reads both."""
def savez(path: str | os.PathLike[str], **arrays: Any) -> None:
    """Named arrays as .npz."""
def load_arrays(path: str | os.PathLike[str], limit: Any = None) -> Any:
    """The array of a .npy file, a dict of arrays of a .npz or .safetensors file."""
def save_safetensors(path: str | os.PathLike[str], arrays: Mapping[str, _ArrayLike | Tensor], metadata: Any = None) -> None:
    """Named arrays as .safetensors."""
def load_safetensors(path: str | os.PathLike[str]) -> dict[str, NDArray]:
    """A dict of the arrays of a .safetensors file."""
def load_gguf(path: str | os.PathLike[str], quantized: Any = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """(tensors, metadata) of a GGUF file of version 2 or 3, two dicts by name."""
def tune(main: Any, target: Any = 'cpu', trials: Any = 64, database: Any = None, seed: int = 0, device: _Device | None = None, function: Any = None, progress: Any = None, seconds: Any = None, limit: Any = None, ranked: Any = True, arguments: Any = None) -> Schedule:
    """Searches for a fast schedule of a function and returns it, a weft.Schedule."""

__all__: list[str]
