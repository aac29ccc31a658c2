# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any, no_type_check

from . import script as tir
from .ir import IRModule, PrimFunc

# Only under typing's own decorator does a checker accept T.Buffer((64,), "float32") as an annotation. It then takes what is below
# for a function: weft.build and weft.Schedule accept that.
prim_func = no_type_check
def ir_module(module: type[Any]) -> IRModule: ...
def from_source(text: str, file: str = '<text>', lookup: Callable[[str], Any] | None = None) -> PrimFunc | IRModule: ...
def __getattr__(name: str) -> Any: ...
