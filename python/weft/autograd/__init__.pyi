# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
from collections.abc import Callable, Iterable, Sequence
from contextlib import ContextDecorator
from typing import Any, Literal, NamedTuple, TypeVar, overload

from weft import ArgumentError, NDArray, Tensor, enable_grad as enable_grad, no_grad as no_grad, value_and_grad as value_and_grad
from . import functional as functional

class Context:
    """What forward leaves for backward: save_for_backward(*tensors), saved_tensors, and any attribute."""
    saved_tensors: tuple[Any, ...]
    needs_input_grad: tuple[bool, ...]
    def save_for_backward(self, *tensors: Tensor | NDArray | None) -> None:
        """Tensors that backward finds in saved_tensors, in this order."""
    def mark_non_differentiable(self, *tensors: Tensor | NDArray) -> None:
        """Nothing to say: gradients of results that nobody differentiates are zeros."""
    def set_materialize_grads(self, value: bool) -> None:
        """Nothing to say: gradients that nothing reaches are zeros."""
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class Function:
    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:  # any parameters, for those that override it
        """The operation: arrays or tensors of the arguments of apply. To be written by the subclass."""
    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """The gradients of the arguments for those of the results. To be written by the subclass."""
    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs forward and links the result. Raises ArgumentError for a result that is no array, or for a wrong number
        of gradients; ShapeError for a gradient of another shape than its argument.
        """

class detect_anomaly(ContextDecorator):
    def __init__(self, check_nan: bool = True) -> None: ...
    def __enter__(self) -> detect_anomaly: ...
    def __exit__(self, *_: object) -> None: ...

GradcheckError: type[ArgumentError]

@overload
def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function: weft.grad(f, argnums, has_aux). Of a tensor, as in PyTorch, the gradients of it for `inputs`
    as a tuple: grad(loss, [w, b]); the .grad of all leaves stays as it is.
    """
@overload
def grad(f: Tensor | Sequence[Tensor], argnums: Tensor | Sequence[Tensor], *, grad_outputs: Tensor | NDArray | Sequence[Tensor | NDArray | None] | None = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: Literal[False] = False) -> tuple[Tensor, ...]:
    """The gradient of a function: weft.grad(f, argnums, has_aux). Of a tensor, as in PyTorch, the gradients of it for `inputs`
    as a tuple: grad(loss, [w, b]); the .grad of all leaves stays as it is.
    """
@overload
def grad(f: Tensor | Sequence[Tensor], argnums: Tensor | Sequence[Tensor], *, grad_outputs: Tensor | NDArray | Sequence[Tensor | NDArray | None] | None = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: bool) -> tuple[Tensor | None, ...]:
    """The gradient of a function: weft.grad(f, argnums, has_aux). Of a tensor, as in PyTorch, the gradients of it for `inputs`
    as a tuple: grad(loss, [w, b]); the .grad of all leaves stays as it is.
    """
@overload
def grad(*, outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], grad_outputs: Tensor | NDArray | Sequence[Tensor | NDArray | None] | None = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: Literal[False] = False) -> tuple[Tensor, ...]:
    """The gradient of a function: weft.grad(f, argnums, has_aux). Of a tensor, as in PyTorch, the gradients of it for `inputs`
    as a tuple: grad(loss, [w, b]); the .grad of all leaves stays as it is.
    """
@overload
def grad(*, outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], grad_outputs: Tensor | NDArray | Sequence[Tensor | NDArray | None] | None = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: bool) -> tuple[Tensor | None, ...]:
    """The gradient of a function: weft.grad(f, argnums, has_aux). Of a tensor, as in PyTorch, the gradients of it for `inputs`
    as a tuple: grad(loss, [w, b]); the .grad of all leaves stays as it is.
    """
@overload
def grad(f: Tensor | Sequence[Tensor], *, inputs: Tensor | Sequence[Tensor], grad_outputs: Tensor | NDArray | Sequence[Tensor | NDArray | None] | None = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: Literal[False] = False) -> tuple[Tensor, ...]:
    """The gradient of a function: weft.grad(f, argnums, has_aux). Of a tensor, as in PyTorch, the gradients of it for `inputs`
    as a tuple: grad(loss, [w, b]); the .grad of all leaves stays as it is.
    """
@overload
def grad(f: Tensor | Sequence[Tensor], *, inputs: Tensor | Sequence[Tensor], grad_outputs: Tensor | NDArray | Sequence[Tensor | NDArray | None] | None = None, create_graph: bool = False, retain_graph: bool | None = None, only_inputs: bool = True, allow_unused: bool) -> tuple[Tensor | None, ...]:
    """The gradient of a function: weft.grad(f, argnums, has_aux). Of a tensor, as in PyTorch, the gradients of it for `inputs`
    as a tuple: grad(loss, [w, b]); the .grad of all leaves stays as it is.
    """
def backward(tensors: Tensor | Sequence[Tensor], grad_tensors: Tensor | NDArray | Sequence[Tensor | NDArray | None] | None = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Tensor | Sequence[Tensor] | None = None) -> None:
    """tensor.backward() of one tensor or several; grad_tensors: a gradient of its shape for each, None for numbers."""
def checkpoint(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args) by weft.checkpoint(f): nothing inside is kept for the backward pass, which computes it again."""
def gradcheck(func: Callable[..., Any], inputs: Tensor | Sequence[Tensor], eps: float = 1e-06, atol: float = 1e-05, rtol: float = 0.001, raise_exception: bool = True, **options: Any) -> bool:
    """Are the gradients of func(*inputs) those that differences give? Inputs that require gradients are float64 or complex128."""
def gradgradcheck(func: Callable[..., Any], inputs: Tensor | Sequence[Tensor], grad_outputs: Tensor | NDArray | Sequence[Tensor | NDArray | None] | None = None, eps: float = 1e-06, atol: float = 1e-05, rtol: float = 0.001, raise_exception: bool = True, **options: Any) -> bool:
    """gradcheck of the gradients of func with respect to its inputs, for `grad_outputs` or random numbers."""
