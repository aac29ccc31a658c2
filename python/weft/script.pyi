# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any, no_type_check

from .ir import IRModule, PrimFunc

prim_func = no_type_check
ir_module = no_type_check
def from_source(text: str, file: str = '<text>', lookup: Callable[[str], Any] | None = None) -> PrimFunc | IRModule: ...
def __getattr__(name: str) -> Any: ...
