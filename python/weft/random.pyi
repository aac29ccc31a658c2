# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, _ArrayLike, _bool, _Device, _DType, _Number

class Key:
    seed: int
    offset: int
    def __init__(self, seed: int, offset: int = 0) -> None: ...
    def split(self, n: int = 2) -> list[Key]: ...

def key(seed: int) -> Key: ...
def split(key: Key, n: int = 2) -> list[Key]: ...
def seed(value: _Number) -> None: ...
def uniform(
    shape: int | Sequence[int] = ...,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: _DType | None = None,
    device: _Device | None = None,
    key: Key | None = None,
) -> NDArray: ...
def normal(
    shape: int | Sequence[int] = ...,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: _DType | None = None,
    device: _Device | None = None,
    key: Key | None = None,
) -> NDArray: ...
def integers(
    low: int,
    high: int,
    shape: int | Sequence[int] = ...,
    *,
    dtype: _DType | None = None,
    device: _Device | None = None,
    key: Key | None = None,
) -> NDArray: ...
def bernoulli(
    p: float,
    shape: int | Sequence[int] = ...,
    *,
    device: _Device | None = None,
    key: Key | None = None,
) -> NDArray: ...
def permutation(n: int, *, device: _Device | None = None, key: Key | None = None) -> NDArray: ...
def choice(
    x: int | NDArray, shape: int | Sequence[int] = ..., *, key: Key | None = None
) -> NDArray: ...
