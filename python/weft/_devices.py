# SPDX-License-Identifier: Apache-2.0
"""Devices by name, and the default device."""

from __future__ import annotations

import contextlib
import copyreg
import os
import sys

from ._boundary import publish as _publish
from . import _core, _fallback


def device(name) -> _core.Device:
    """The device of a name: "cpu", "cuda:0", "qpu:qpus=12", "vta", "wse:8x8", "ref".

    An absent device is returned too, with ``.available`` False and the ``.reason``; using it raises
    weft.DeviceError. Raises weft.Error for a name that no target has.
    """
    return _core.open_device(name)


def devices() -> list[_core.Device]:
    """Every device known, whether present or not."""
    return [_core.open_device(row[0]) for row in _core.device_statuses()]


@contextlib.contextmanager
def use(name, *, fallback=None):
    """Makes a device the default inside a with statement, for the thread that runs it.

    ``fallback="cpu"``: factorisations and Fourier transforms that a device lacks are computed on the host there, and
    the result is brought back; ``weft.fallbacks()`` lists them. Without it they raise DeviceError. Raises ArgumentError
    (``device.fallback``) for another fallback.
    """
    allowed = _fallback.swap(fallback)
    try:
        before = _core.swap_thread_device(_core.open_device(name))
    except BaseException:
        _fallback.swap(allowed)
        raise
    try:
        yield _core.open_device(None)
    finally:
        _core.swap_thread_device(before)
        _fallback.swap(allowed)


def use_deterministic(on: bool = True) -> None:
    """Whether every run of a program gives the same bits on devices with a grid, too.

    Gradients of embeddings, index_add and scatter with accumulate=True add floats at equal positions in no fixed
    order there, which is fastest. With True they sort the positions first. The host always adds in one order.
    """
    _core._set_deterministic(bool(on))


def is_deterministic() -> bool:
    """What use_deterministic() was last told; False at the beginning."""
    return _core._is_deterministic()


# A pickled device is its name: another process opens its own.
def _type(found):
    return found.name.partition(":")[0]


def _index(found):
    number = found.name.partition(":")[2]
    return int(number) if number.isdigit() else None


_core.Device.type = property(
    _type, doc="The part of the name before the colon: cpu, cuda, opencl, ..."
)
_core.Device.index = property(_index, doc="The number after the colon, or None.")
copyreg.pickle(_core.Device, lambda found: (device, (found.name,)))

if os.environ.get("WEFT_CACHE_DIR"):
    _core.set_cache_directory(os.environ["WEFT_CACHE_DIR"])
# Where pip puts the libraries of NVIDIA's packages, which the loader does not search. Never a folder that a program happens to run in.
_core.set_package_folders(
    [
        folder
        for folder in sys.path
        if folder.endswith(("/site-packages", "/dist-packages"))
        and os.path.isdir(os.path.join(folder, "nvidia"))
    ]
)

if os.environ.get("WEFT_DEVICE"):
    _core.set_default_device(os.environ["WEFT_DEVICE"])


_publish(__name__)
