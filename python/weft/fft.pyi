# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

def fft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Transform along an axis."""
def ifft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Inverse transform along an axis."""
def fftn(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Transform along several axes."""
def ifftn(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Inverse transform along several axes."""
def rfft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Transform of real numbers: the first half of the spectrum."""
def irfft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Inverse of rfft."""
def rfftn(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Transform of real numbers along several axes; the last one is halved."""
def fft2(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """fftn over two axes."""
def ifft2(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """ifftn over two axes."""
def rfft2(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """rfftn over two axes."""
def irfft2(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """irfftn over two axes."""
def irfftn(x: _ArrayLike, /, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Inverse of rfftn."""
def hfft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Transform of a Hermitian signal: real numbers."""
def ihfft(x: _ArrayLike, /, n: int | None = None, axis: int | Sequence[int] | None = -1, norm: str = 'backward') -> NDArray:
    """Inverse of hfft."""
def fftfreq(n: int, d: float = 1.0, *, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """Frequencies of the n points of a transform."""
def rfftfreq(n: int, d: float = 1.0, *, dtype: _DType | None = None, device: _Device | None = None) -> NDArray:
    """Frequencies of the points of rfft."""
def fftshift(x: _ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> NDArray:
    """The zero frequency moved to the middle."""
def ifftshift(x: _ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> NDArray:
    """Inverse of fftshift."""
def hfft2(x: _ArrayLike, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """hfftn of two axes."""
def hfftn(x: _ArrayLike, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """Real numbers from those of half a spectrum: irfftn of the conjugates with the norm turned."""
def ihfft2(x: _ArrayLike, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = ..., norm: str = 'backward') -> NDArray:
    """ihfftn of two axes."""
def ihfftn(x: _ArrayLike, /, *, s: Sequence[int] | None = None, axes: int | Sequence[int] | None = None, norm: str = 'backward') -> NDArray:
    """The inverse of hfftn: conjugates of rfftn with the norm turned."""
def use(library: Any = None) -> Any:
    """Takes one-dimensional transforms from a module with NumPy's fft interface, given itself or by name."""
