# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, overload

from typing_extensions import TypeVar

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

@overload
def fft(x: Tensor, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> Tensor:
    """Transform along an axis."""
@overload
def fft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Transform along an axis."""
@overload
def ifft(x: Tensor, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> Tensor:
    """Inverse transform along an axis."""
@overload
def ifft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Inverse transform along an axis."""
@overload
def fftn(x: Tensor, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = 'backward') -> Tensor:
    """Transform along several axes."""
@overload
def fftn(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Transform along several axes."""
@overload
def ifftn(x: Tensor, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> Tensor:
    """Inverse transform along several axes."""
@overload
def ifftn(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Inverse transform along several axes."""
@overload
def rfft(x: Tensor, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> Tensor:
    """Transform of real numbers: the first half of the spectrum."""
@overload
def rfft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Transform of real numbers: the first half of the spectrum."""
@overload
def irfft(x: Tensor, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> Tensor:
    """Inverse of rfft."""
@overload
def irfft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Inverse of rfft."""
@overload
def rfftn(x: Tensor, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> Tensor:
    """Transform of real numbers along several axes; the last one is halved."""
@overload
def rfftn(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Transform of real numbers along several axes; the last one is halved."""
@overload
def fft2(x: Tensor, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> Tensor:
    """fftn over two axes."""
@overload
def fft2(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """fftn over two axes."""
@overload
def ifft2(x: Tensor, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> Tensor:
    """ifftn over two axes."""
@overload
def ifft2(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """ifftn over two axes."""
@overload
def rfft2(x: Tensor, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> Tensor:
    """rfftn over two axes."""
@overload
def rfft2(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """rfftn over two axes."""
@overload
def irfft2(x: Tensor, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> Tensor:
    """irfftn over two axes."""
@overload
def irfft2(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """irfftn over two axes."""
@overload
def irfftn(x: Tensor, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> Tensor:
    """Inverse of rfftn."""
@overload
def irfftn(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Inverse of rfftn."""
@overload
def hfft(x: Tensor, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> Tensor:
    """Transform of a Hermitian signal: real numbers."""
@overload
def hfft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Transform of a Hermitian signal: real numbers."""
@overload
def ihfft(x: Tensor, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> Tensor:
    """Inverse of hfft."""
@overload
def ihfft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Inverse of hfft."""
def fftfreq(n: int, d: float = 1.0, *, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """Frequencies of the n points of a transform."""
def rfftfreq(n: int, d: float = 1.0, *, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """Frequencies of the points of rfft."""
@overload
def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The zero frequency moved to the middle."""
@overload
def fftshift(x: _ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> NDArray:
    """The zero frequency moved to the middle."""
@overload
def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Inverse of fftshift."""
@overload
def ifftshift(x: _ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> NDArray:
    """Inverse of fftshift."""
@overload
def hfft2(x: Tensor, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> Tensor:
    """hfftn of two axes."""
@overload
def hfft2(x: _ArrayLike, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """hfftn of two axes."""
@overload
def hfftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> Tensor:
    """Real numbers from those of half a spectrum: irfftn of the conjugates with the norm turned."""
@overload
def hfftn(x: _ArrayLike, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Real numbers from those of half a spectrum: irfftn of the conjugates with the norm turned."""
@overload
def ihfft2(x: Tensor, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> Tensor:
    """ihfftn of two axes."""
@overload
def ihfft2(x: _ArrayLike, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """ihfftn of two axes."""
@overload
def ihfftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> Tensor:
    """The inverse of hfftn: conjugates of rfftn with the norm turned."""
@overload
def ihfftn(x: _ArrayLike, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """The inverse of hfftn: conjugates of rfftn with the norm turned."""
def use(library: Any = None) -> Any:
    """Takes one-dimensional transforms from a module with NumPy's fft interface, given itself or by name."""
