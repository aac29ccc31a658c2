# SPDX-License-Identifier: Apache-2.0
"""Functions of functions, with JAX's names and meaning; all of them compose."""

from .._boundary import publish as _publish
from .._boundary import publish_classes as _publish_classes
from .batched import rules as _rules
from .custom import checkpoint, custom_jvp, custom_vjp
from .jacobians import hessian, jacfwd, jacobian, jacrev
from .modules import functional_call
from .reverse import grad, jvp, linearize, stop_gradient, value_and_grad, vjp
from .trees import tree_map
from .vectorize import vmap

__all__ = [
    "checkpoint",
    "custom_jvp",
    "custom_vjp",
    "functional_call",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "stop_gradient",
    "tree_map",
    "value_and_grad",
    "vjp",
    "vmap",
]


def _load_rules():
    from . import batching_rules  # noqa: F401  (long; the first vmap needs it)


_rules.load = _load_rules
_publish(__name__, gathered=True)
_publish_classes(__name__)
for _name in __all__:
    globals()[_name].__weft_transform__ = True
