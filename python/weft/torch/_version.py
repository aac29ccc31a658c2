# SPDX-License-Identifier: Apache-2.0
"""What weft.torch needs of the torch that is installed."""

from __future__ import annotations

import torch

import weft

from .._errors import error as _error

_OLDEST = (1, 13)
_COMPILER = (2, 4)


def version_of(torch_module):
    """(major, minor) of a torch module."""
    return tuple(
        int(part)
        for part in torch_module.__version__.split("+")[0].split(".")[:2]
        if part.isdigit()
    )


def missing(torch_module):
    """The interfaces without which weft.torch cannot be imported and which this torch lacks."""
    wanted = (
        "library.Library",
        "from_dlpack",
        "autograd.Function",
        "_C._AutoDispatchBelowAutograd",
    )
    lacking = []
    for name in wanted:
        at = torch_module
        for part in name.split("."):
            at = getattr(at, part, None)
        if at is None:
            lacking.append(f"torch.{name}")
    return lacking


def check(torch_module):
    lacking = missing(torch_module)
    if lacking:
        raise _error(
            weft.Error,
            "torch.version",
            f"torch {torch_module.__version__} has no {', '.join(lacking)}",
            [
                f"legal: torch {'.'.join(map(str, _OLDEST))} or newer; torch.compile needs {'.'.join(map(str, _COMPILER))}"
            ],
            help="pip install --upgrade torch; everything else of weft works without it",
        )


def need_compile(what):
    if not COMPILES:
        raise _error(
            weft.Error,
            "torch.version.compile",
            f"{what} needs torch {'.'.join(map(str, _COMPILER))}, this is {torch.__version__}",
            ["rule: aot_autograd and the ATen decompositions of torch 2.4 or newer"],
            help="pip install --upgrade torch",
        )


check(torch)
COMPILES = version_of(torch) >= _COMPILER
