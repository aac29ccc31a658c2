# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, _ArrayLike, _bool, _Device, _DType, _Number
from . import lr_scheduler as lr_scheduler, swa_utils as swa_utils

class Optimizer:
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.01, **options: Any) -> None: ...
    param_groups: list[dict[str, Any]]
    @property
    def params(self) -> list[Tensor]:
        """The parameters of all groups, in order."""
    def zero_grad(self, set_to_none: _bool = True) -> None:
        """Forgets the gradients; with set_to_none=False they become zeros."""
    def reset_grad(self) -> None:
        """Forgets the gradients; with set_to_none=False they become zeros."""
    def clip_grad_norm(self, max_norm: float = 1.0) -> float:
        """Scales all gradients so that their joint norm is at most max_norm; returns the norm."""
    def add_param_group(self, given: dict[str, Any]) -> None:
        """One more group: a dict with "params" and the options that differ. Raises ArgumentError, DTypeError."""
    def state_dict(self) -> dict[str, Any]:
        """Rates, counts of steps and running averages: what load_state_dict goes on with."""
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes what state_dict gave. Raises ArgumentError when names differ."""
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update. `closure`, if given, is called first: it computes the loss anew, calls backward, and returns
        the loss, which step returns.
        """
    lr: float

class SGD(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.01, momentum: float = 0.0, dampening: Any = 0.0, weight_decay: float = 0.0, nesterov: _bool = False, maximize: _bool = False) -> None: ...

class Adam(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.001, *places: Any, betas: Any = None, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, weight_decay: float | None = None, amsgrad: _bool = False, maximize: _bool = False, decoupled_weight_decay: Any = None) -> None: ...

class AdamW(Adam):
    ...

class RMSprop(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.01, alpha: Any = 0.99, eps: float = 1e-08, weight_decay: float = 0.0, momentum: float = 0.0, centered: _bool = False, maximize: _bool = False) -> None: ...

class Adagrad(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.01, lr_decay: Any = 0.0, weight_decay: float = 0.0, initial_accumulator_value: Any = 0.0, eps: float = 1e-10, maximize: _bool = False) -> None: ...

class Adadelta(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 1.0, rho: Any = 0.9, eps: float = 1e-06, weight_decay: float = 0.0, maximize: _bool = False) -> None: ...

class Adamax(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.002, betas: Any = ..., eps: float = 1e-08, weight_decay: float = 0.0, maximize: _bool = False, decoupled_weight_decay: Any = False, **options: Any) -> None: ...

class NAdam(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.002, betas: Any = ..., eps: float = 1e-08, weight_decay: float = 0.0, momentum_decay: Any = 0.004, decoupled_weight_decay: Any = False, maximize: _bool = False) -> None: ...

class RAdam(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.001, betas: Any = ..., eps: float = 1e-08, weight_decay: float = 0.0, decoupled_weight_decay: Any = False, maximize: _bool = False) -> None: ...

class Rprop(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.01, etas: Any = ..., step_sizes: Any = ..., maximize: _bool = False) -> None: ...

class ASGD(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.01, lambd: Any = 0.0001, alpha: Any = 0.75, t0: Any = 1000000.0, weight_decay: float = 0.0, maximize: _bool = False) -> None: ...
    averages: list[NDArray]

class LBFGS(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 1.0, max_iter: Any = 20, max_eval: Any = None, tolerance_grad: Any = 1e-07, tolerance_change: Any = 1e-09, history_size: Any = 100, line_search_fn: Any = None) -> None: ...

class SparseAdam(Adam):
    ...

class Adafactor(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.01, beta2_decay: Any = -0.8, eps: float = ..., d: float = 1.0, weight_decay: float = 0.0, maximize: _bool = False) -> None: ...

class Muon(Optimizer):
    def __init__(self, params: Iterable[Tensor | Mapping[str, Any]], lr: float = 0.001, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: _bool = True, ns_coefficients: Any = ..., eps: float = 1e-07, ns_steps: Any = 5, adjust_lr_fn: Any = None, maximize: _bool = False) -> None: ...

