# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
from collections.abc import Callable, Iterable, Sequence
from contextlib import ContextDecorator
from typing import Any, Literal, NamedTuple, TypeVar, overload

from weft import NDArray, Tensor

from .. import Module
from . import parametrizations as parametrizations, parametrize as parametrize, rnn as rnn

_M = TypeVar("_M", bound=Module)

def clip_grad_norm(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0) -> float:
    """As clip_grad_norm_."""
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0) -> float:
    """Scales the gradients so that their joint norm is at most max_norm; returns the norm before, a float."""
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Brings every element of the gradients between -clip_value and clip_value."""
def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: float | NDArray | Tensor, foreach: bool | None = None) -> None:
    """Scales the gradients by max_norm over a norm found before, where that is larger."""
def convert_conv2d_weight_memory_format(module: _M, memory_format: Any) -> _M:
    """The module itself: layouts are chosen by the kernels."""
def fuse_conv_bn_eval(conv: _M, bn: Module) -> _M:
    """A copy of a convolution that does what it and the batch norm after it do in evaluation."""
def fuse_conv_bn_weights(conv_w: NDArray, conv_b: NDArray | None, bn_rm: NDArray, bn_rv: NDArray, bn_eps: float, bn_w: NDArray | None, bn_b: NDArray | None) -> tuple[NDArray, NDArray]:
    """(weight, bias) of one convolution that does what a convolution (o, c, ...) and a batch norm with these statistics do."""
def get_total_norm(tensors: Tensor | NDArray | Iterable[Tensor | NDArray], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> NDArray:
    """The joint norm of tensors, such as gradients, as an array without axes."""
def parameters_to_vector(parameters: Tensor | Iterable[Tensor]) -> NDArray:
    """All elements of the parameters in a row, as an array."""
def remove_spectral_norm(module: _M, name: str = 'weight') -> _M:
    """The module with a plain parameter of the weight's present values."""
def remove_weight_norm(module: _M, name: str = 'weight') -> _M:
    """The module with a plain parameter of the weight's present values."""
def skip_init(module_class: Callable[..., _M], *args: Any, **kwargs: Any) -> _M:
    """A module of this class; its parameters have their usual first values."""
def spectral_norm(module: _M, name: str = 'weight', n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> _M:
    """The module with a weight over its largest singular value, found by power iterations while training; parameter name_orig."""
def vector_to_parameters(vector: NDArray | Tensor, parameters: Tensor | Iterable[Tensor]) -> None:
    """Writes the elements of a vector into the parameters, in order. Raises ShapeError for another length."""
def weight_norm(module: _M, name: str = 'weight', dim: int | None = 0) -> _M:
    """The module with a weight of g v / |v|: parameters name_g and name_v in its place, norms over all axes but dim (None: over all)."""
