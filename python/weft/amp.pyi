# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number
from weft import autocast as autocast, is_autocast_available as is_autocast_available

def custom_bwd(bwd: Any = None, *, device_type: Any = None) -> Any:
    """Decorates backward of an autograd.Function. Gradients convert nothing in any case."""
def custom_fwd(fwd: Any = None, *, device_type: Any = None, cast_inputs: Any = None) -> Any:
    """Decorates forward of an autograd.Function: inside autocast it gets floats as `cast_inputs`, and converts nothing itself."""
class GradScaler:
    def __init__(self, device: _Device | None = 'cuda', init_scale: Any = 65536.0, growth_factor: Any = 2.0, backoff_factor: Any = 0.5, growth_interval: Any = 2000, enabled: Any = True) -> None: ...
    def scale(self, outputs: Any) -> Any:
        """Losses times the scale, one or several in lists and tuples."""
    def unscale_(self, optimizer: Any) -> Any:
        """Divides the optimizer's gradients by the scale, in place; once between a step and the next."""
    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(...) with gradients that unscale_ has divided, where all are finite; None where they are not."""
    def update(self, new_scale: Any = None) -> Any:
        """The scale for the next loss: smaller after gradients that were not finite, larger after many that were; or new_scale."""
    def get_scale(self) -> float:
        """The scale; 1 when disabled."""
    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after growth_interval good steps."""
    def set_growth_factor(self, new_factor: Any) -> Any:
        """Another one; above 1."""
    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after gradients that are not finite."""
    def set_backoff_factor(self, new_factor: Any) -> Any:
        """Another one; below 1."""
    def get_growth_interval(self) -> int:
        """How many good steps in a row make the scale larger."""
    def set_growth_interval(self, new_interval: Any) -> Any:
        """Another number."""
    def is_enabled(self) -> _bool:
        """Does it scale at all?"""
    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and counts by PyTorch's names; empty when disabled."""
    def load_state_dict(self, state: Any) -> Any:
        """Takes what state_dict gave. Raises ArgumentError for an empty state."""

