# SPDX-License-Identifier: Apache-2.0
# pyright takes a function for typing's no_type_check by its name and the name of the file that declares it.
from collections.abc import Callable
from typing import Any

from ..ir import PrimFunc

def no_type_check(function: Callable[..., Any]) -> PrimFunc: ...
