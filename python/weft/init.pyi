# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

def rand(*shape: int, low: float = 0.0, high: float = 1.0, dtype: _DType | None = None, device: _Device | None = None, requires_grad: _bool = False, key: random.Key | None = None) -> Tensor:
    """Uniform in [low, high)."""
def randn(*shape: int, mean: float = 0.0, std: float = 1.0, dtype: _DType | None = None, device: _Device | None = None, requires_grad: _bool = False, key: random.Key | None = None) -> Tensor:
    """Normal."""
def constant(*shape: int, c: float = 1.0, dtype: _DType | None = None, device: _Device | None = None, requires_grad: _bool = False) -> Tensor:
    """The same number everywhere."""
def ones(*shape: int, dtype: _DType | None = None, device: _Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Ones."""
def zeros(*shape: int, dtype: _DType | None = None, device: _Device | None = None, requires_grad: _bool = False) -> Tensor:
    """Zeros."""
def one_hot(n: int, i: _ArrayLike | Tensor, dtype: _DType | None = None, device: _Device | None = None) -> Tensor:
    """Rows of the identity matrix."""
def xavier_uniform(fan_in: int, fan_out: int, gain: float = 1.0, shape: int | Sequence[int] | None = None, **kwargs: Any) -> Tensor:
    """Uniform, variance kept forward and backward."""
def xavier_normal(fan_in: int, fan_out: int, gain: float = 1.0, shape: int | Sequence[int] | None = None, **kwargs: Any) -> Tensor:
    """Normal, variance kept forward and backward."""
def kaiming_uniform(fan_in: int, fan_out: int, shape: int | Sequence[int] | None = None, nonlinearity: str = 'relu', **kwargs: Any) -> Tensor:
    """Uniform, variance kept through a nonlinearity."""
def kaiming_normal(fan_in: int, fan_out: int, shape: int | Sequence[int] | None = None, nonlinearity: str = 'relu', **kwargs: Any) -> Tensor:
    """Normal, variance kept through a nonlinearity."""
def calculate_gain(nonlinearity: str, param: Any = None) -> Tensor:
    """The factor by which a nonlinearity shrinks a signal; param is the slope of "leaky_relu" (0.01)."""
def uniform_(tensor: Any, a: Any = 0.0, b: Any = 1.0) -> Tensor:
    """Uniform in [a, b); returns the tensor."""
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal; returns the tensor."""
def trunc_normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, a: Any = -2.0, b: Any = 2.0) -> Tensor:
    """Normal, drawn again outside of [a, b]; returns the tensor."""
def constant_(tensor: Any, val: Any) -> Tensor:
    """The same number everywhere; returns the tensor."""
def ones_(tensor: Any) -> Tensor:
    """Ones; returns the tensor."""
def zeros_(tensor: Any) -> Tensor:
    """Zeros; returns the tensor."""
def eye_(tensor: Any) -> Tensor:
    """The identity, as far as it goes, of a matrix; returns it."""
def xavier_uniform_(tensor: Any, gain: float = 1.0) -> Tensor:
    """As xavier_uniform, into a weight; returns it. Raises ShapeError below two axes."""
def xavier_normal_(tensor: Any, gain: float = 1.0) -> Tensor:
    """As xavier_normal, into a weight; returns it. Raises ShapeError below two axes."""
def kaiming_uniform_(tensor: Any, a: Any = 0.0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu') -> Tensor:
    """Uniform with variance gain**2 / fan, into a weight; `a` is leaky_relu's slope. Returns it."""
def kaiming_normal_(tensor: Any, a: Any = 0.0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu') -> Tensor:
    """Normal with variance gain**2 / fan, into a weight; `a` is leaky_relu's slope. Returns it."""
def orthogonal_(tensor: Any, gain: float = 1.0) -> Tensor:
    """Orthogonal rows or columns (whichever are fewer) of the tensor seen as a matrix; returns it."""
def dirac_(tensor: Any, groups: int = 1) -> Tensor:
    """A convolution (o, c, ...) that gives back its channels, as many as there are; returns it. Raises ShapeError."""
def sparse_(tensor: Any, sparsity: Any, std: float = 0.01) -> Tensor:
    """Normal numbers, in each column this part of them zero; returns it."""
