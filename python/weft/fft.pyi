# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

def fft(
    x: _ArrayLike,
    /,
    *,
    n: int | None = None,
    axis: int | Sequence[int] | None = -1,
    norm: str = "backward",
) -> NDArray: ...
def ifft(
    x: _ArrayLike,
    /,
    *,
    n: int | None = None,
    axis: int | Sequence[int] | None = -1,
    norm: str = "backward",
) -> NDArray: ...
def fftn(
    x: _ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> NDArray: ...
def ifftn(
    x: _ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = "backward",
) -> NDArray: ...
def rfft(
    x: _ArrayLike,
    /,
    *,
    n: int | None = None,
    axis: int | Sequence[int] | None = -1,
    norm: str = "backward",
) -> NDArray: ...
def irfft(
    x: _ArrayLike,
    /,
    *,
    n: int | None = None,
    axis: int | Sequence[int] | None = -1,
    norm: str = "backward",
) -> NDArray: ...
def rfftn(
    x: _ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = "backward",
) -> NDArray: ...
def irfftn(
    x: _ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str = "backward",
) -> NDArray: ...
def hfft(
    x: _ArrayLike,
    /,
    *,
    n: int | None = None,
    axis: int | Sequence[int] | None = -1,
    norm: str = "backward",
) -> NDArray: ...
def ihfft(
    x: _ArrayLike,
    /,
    *,
    n: int | None = None,
    axis: int | Sequence[int] | None = -1,
    norm: str = "backward",
) -> NDArray: ...
def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: _DType | None = None, device: _Device | None = None
) -> NDArray: ...
def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: _DType | None = None, device: _Device | None = None
) -> NDArray: ...
def fftshift(x: _ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> NDArray: ...
def ifftshift(x: _ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> NDArray: ...
def use(library: Any = None) -> Any: ...
