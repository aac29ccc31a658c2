# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

from . import script as tir
from .ir import IRModule, PrimFunc

# Only under a decorator that a checker takes for typing's no_type_check does it accept T.Buffer((64,), "float32") as an annotation.
# mypy knows it by where it comes from, and MYPY is true for mypy alone; what is below is Any then. pyright sees a PrimFunc.
MYPY = False
if MYPY:
    from typing import no_type_check as prim_func
else:
    from ._checkers.typing_extensions import no_type_check as prim_func

__all__ = ["from_source", "ir_module", "prim_func", "tir"]

def ir_module(module: type[Any]) -> IRModule: ...
def from_source(text: str, file: str = '<text>', lookup: Callable[[str], Any] | None = None) -> PrimFunc | IRModule: ...
def __getattr__(name: str) -> Any: ...
