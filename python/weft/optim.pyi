# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import Tensor, _ArrayLike, _bool, _Device, _DType, _Number
from . import lr_scheduler as lr_scheduler

class Optimizer:
    def __init__(self, params: Iterable[Tensor], lr: float = 0.01, **options: Any) -> None: ...
    param_groups: list[dict[str, Any]]
    @property
    def params(self) -> list[Tensor]: ...
    def zero_grad(self, set_to_none: _bool = True) -> None: ...
    def reset_grad(self) -> None: ...
    def clip_grad_norm(self, max_norm: float = 1.0) -> float: ...
    def step(self) -> None: ...

class SGD(Optimizer):
    def __init__(self, params: Iterable[Tensor], lr: float = 0.01, momentum: float = 0.0, weight_decay: float = 0.0, nesterov: Any = False) -> None: ...
    lr: float

class Adam(Optimizer):
    def __init__(self, params: Iterable[Tensor], lr: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.0, betas: Any = None) -> None: ...
    lr: float

class AdamW(Adam):
    def __init__(self, params: Iterable[Tensor], lr: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.01, betas: Any = None) -> None: ...

class RMSprop(Optimizer):
    def __init__(self, params: Iterable[Tensor], lr: float = 0.01, alpha: Any = 0.99, eps: float = 1e-08, weight_decay: float = 0.0, momentum: float = 0.0) -> None: ...
    lr: float

