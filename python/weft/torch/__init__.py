# SPDX-License-Identifier: Apache-2.0
"""weft beside PyTorch, without libtorch at build time: DLPack for the data, torch.library for the operators.

`weft.torch.add/mul/mv/matmul(a, b, device=...)` take and give torch tensors. They are registered as
`torch.ops.weft.*` with kernels for real tensors, meta (fake) kernels and autograd; `device` names the weft
device that computes, the result is where the arguments are. `torch.compile(model, backend="weft")` compiles whole models
with torch 2; `weft.torch.explain(model, *args)` says what weft takes of them.
"""

from __future__ import annotations

from collections.abc import Callable as _Callable
import typing as _typing
from typing import Any as _Any

from .._boundary import publish as _publish
from ._version import COMPILES, need_compile  # first: refuses a torch that lacks an interface
from .interop import from_torch, load_state_dict, state_dict, to_torch
from .operators import add, matmul, mul, mv

if _typing.TYPE_CHECKING:
    from ._explain import Report

__all__ = [
    "add",
    "mul",
    "mv",
    "matmul",
    "from_torch",
    "to_torch",
    "load_state_dict",
    "state_dict",
    "backend",
    "explain",
]


def backend(module: _Any, example_inputs: _Any, **options: _Any) -> _Callable[..., _Any]:
    """A torch.compile backend; see weft.torch.backend's page in docs/guide/torch.md. Needs torch 2.4."""
    need_compile("the torch.compile back end")
    from ._backend import backend as run

    return run(module, example_inputs, **options)


def explain(model: _Callable[..., _Any], *args: _Any, **kwargs: _Any) -> Report:
    """Which operators of a model run on weft, why not the others, and what they cost; a Report.

    Runs the model on the arguments, forward, and backward where it trains. `options=` as in torch.compile. Needs torch 2.4.
    """
    need_compile("explain")
    from ._explain import explain as run

    return run(model, *args, **kwargs)


_publish(__name__, gathered=True)

if COMPILES:
    import torch._dynamo

    torch._dynamo.register_backend(name="weft")(
        backend
    )  # the published one: compiled modules are pickled by its name
