# SPDX-License-Identifier: Apache-2.0
"""What weft.torch needs of the torch that is installed."""

from __future__ import annotations

import weft

from .._errors import error as _error


class _Absent(weft.Error, ModuleNotFoundError):
    """PyTorch cannot be imported."""


try:
    import torch
except ImportError as reason:
    refusal = _error(
        _Absent,
        "torch.absent",
        f"weft.torch needs PyTorch, which cannot be imported: {reason}",
        help="install torch 1.13 or newer into this environment",
    )
    refusal.name = "torch"
    raise refusal from reason

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


_DEVICE = (2, 6)


def need_device():
    """Raises weft.Error where this torch lacks what a device of its own needs."""
    wanted = (
        "utils.rename_privateuse1_backend",
        "utils.generate_methods_for_privateuse1_backend",
        "_register_device_module",
        "library.Library.fallback",
        "accelerator",
    )
    lacking = [name for name in wanted if not _has(torch, name)]
    if not DEVICES or lacking:
        raise _error(
            weft.Error,
            "torch.version.device",
            f"torch.device('weft') needs torch {'.'.join(map(str, _DEVICE))}, this is {torch.__version__}",
            [f"it has no torch.{name}" for name in lacking],
            help="pip install --upgrade torch; everything else of weft.torch works without it",
        )


def _has(at, name):
    for part in name.split("."):
        at = getattr(at, part, None)
    return at is not None


DEVICES = version_of(torch) >= _DEVICE
