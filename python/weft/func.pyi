# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
from collections.abc import Callable
from typing import Any

from weft import functional_call as functional_call
from weft import grad as grad
from weft import hessian as hessian
from weft import jacfwd as jacfwd
from weft import jacrev as jacrev
from weft import jvp as jvp
from weft import linearize as linearize
from weft import value_and_grad as value_and_grad
from weft import vjp as vjp
from weft import vmap as vmap
def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., tuple[Any, Any]]:
    """A function that gives (gradient, value) of func, one number; with has_aux (gradient, (value, aux))."""
