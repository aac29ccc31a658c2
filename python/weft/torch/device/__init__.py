# SPDX-License-Identifier: Apache-2.0
"""torch.device("weft"): tensors of torch in the memory of weft's devices, computed by weft.

    python -m weft.torch.build          # once for each torch: compiles a small extension
    import weft.torch.device as wd
    wd.load()
    y = x.to("weft:qpu") @ b.to("weft:qpu")

The index of a device chooses cpu, opencl, qpu, vta and wse in this order; `device(name)` gives any other device one. The
operators are the rules of torch.compile's back end.
"""

from __future__ import annotations

import torch

import weft

from ..._errors import error as _error
from .._version import need_device
from . import _build, _memory, _names
from ._names import device, names

__all__ = ["load", "is_built", "device", "names", "set_fallback", "fallbacks"]

_loaded = False


def is_built():
    """Whether the extension was compiled for the torch that is installed."""
    return _build.library().exists()


def load():
    """Makes torch.device("weft") known to torch in this process. Raises weft.Error where the extension was not built."""
    global _loaded
    if _loaded:
        return
    need_device()
    if not is_built():
        raise _error(
            weft.Error,
            "torch.device.unbuilt",
            f"no extension for torch {torch.__version__} at {_build.library()}",
            [
                "rule: torch.device('weft') needs C++ that is compiled against the torch that is installed"
            ],
            help="python -m weft.torch.build",
        )
    _memory.extension = _build.open_library()
    torch.utils.rename_privateuse1_backend("weft")
    _memory.extension.register_device(
        _memory.allocate, _memory.copy_bytes, _names.count, _memory.synchronize
    )
    from . import _exchange, _kernels, _module

    torch._register_device_module("weft", _module.make())
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _kernels.register()
    _module.accept_names()
    _module.load_names()
    _module.print_from_host()
    _exchange.export_by_weft()
    _exchange.refuse_sharing()
    _loaded = True


def set_fallback(on):
    """Whether operators without a rule run on the host, by torch. Off at the beginning. Gives what it was."""
    from . import _run

    return _run.set_fallback(on)


def fallbacks():
    """{operator: times} that torch ran on the host for a weft device, since the process began."""
    from . import _run

    return _run.fallbacks()


def autoload():
    """torch's entry point for back ends: loads the device where the extension was built, and does nothing elsewhere."""
    from .._version import DEVICES

    if DEVICES and is_built():
        load()
