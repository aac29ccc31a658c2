# SPDX-License-Identifier: Apache-2.0
"""Which weft device an index of torch.device("weft:index") is."""

from __future__ import annotations

import threading

import torch

import weft

from ..._errors import error as _error

#: The first indices; other devices ("wse:4x4") get the next ones when they are first named.
FIRST = ("cpu", "opencl", "qpu", "vta", "wse")
_MOST = 64

_names, _devices, _lock = list(FIRST), {}, threading.Lock()


def count():
    return len(_names)


def names():
    """The weft devices by index."""
    return tuple(_names)


def device_at(index):
    """The weft device of an index; raises weft.Error where it is not there."""
    found = _devices.get(index)
    if found is None:
        found = weft.device(_names[index])
        if not found.available:
            raise _error(
                "device",
                "torch.device.absent",
                f"weft:{index} is {_names[index]}, which is not there: {found.reason}",
                help="weft.devices() lists those that are",
            )
        _devices[index] = found
    return found


def index_of(name):
    """The index of a weft device by its name, a new one where it has none."""
    with _lock:
        if name in _names:
            return _names.index(name)
        weft.device(name)  # refuses what is no device
        if len(_names) >= _MOST:
            raise _error(
                "value",
                "torch.device.count",
                f"{name} would be weft device {len(_names)} of this process",
                [f"legal: {_MOST} different names"],
                help="torch.device('weft:0') to the last index name those that exist",
            )
        _names.append(name)
        return len(_names) - 1


def device(name="cpu"):
    """torch.device of a weft device: an index, "qpu", "weft:qpu", "weft:2"."""
    if isinstance(name, int):
        return torch.device("weft", name)
    name = str(name).removeprefix("weft:")
    return torch.device("weft", int(name) if name.isdigit() else index_of(name))
