# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

def rand(
    *shape: int,
    low: float = 0.0,
    high: float = 1.0,
    dtype: _DType | None = None,
    device: _Device | None = None,
    requires_grad: _bool = False,
    key: random.Key | None = None,
) -> Tensor: ...
def randn(
    *shape: int,
    mean: float = 0.0,
    std: float = 1.0,
    dtype: _DType | None = None,
    device: _Device | None = None,
    requires_grad: _bool = False,
    key: random.Key | None = None,
) -> Tensor: ...
def constant(
    *shape: int,
    c: float = 1.0,
    dtype: _DType | None = None,
    device: _Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def ones(
    *shape: int,
    dtype: _DType | None = None,
    device: _Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def zeros(
    *shape: int,
    dtype: _DType | None = None,
    device: _Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def one_hot(
    n: int, i: _ArrayLike | Tensor, dtype: _DType | None = None, device: _Device | None = None
) -> Tensor: ...
def xavier_uniform(
    fan_in: int,
    fan_out: int,
    gain: float = 1.0,
    shape: int | Sequence[int] | None = None,
    **kwargs: Any,
) -> Tensor: ...
def xavier_normal(
    fan_in: int,
    fan_out: int,
    gain: float = 1.0,
    shape: int | Sequence[int] | None = None,
    **kwargs: Any,
) -> Tensor: ...
def kaiming_uniform(
    fan_in: int,
    fan_out: int,
    shape: int | Sequence[int] | None = None,
    nonlinearity: str = "relu",
    **kwargs: Any,
) -> Tensor: ...
def kaiming_normal(
    fan_in: int,
    fan_out: int,
    shape: int | Sequence[int] | None = None,
    nonlinearity: str = "relu",
    **kwargs: Any,
) -> Tensor: ...
