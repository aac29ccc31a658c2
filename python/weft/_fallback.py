# SPDX-License-Identifier: Apache-2.0
"""Factorisations and transforms that a device lacks, computed on the host where a program allows it."""

from __future__ import annotations

import threading
from collections import Counter
from typing import NamedTuple

from ._core import shown as _shown
from ._boundary import publish as _publish
from . import _core
from ._errors import error as _error

_here = threading.local()
_lock = threading.Lock()
_done: Counter = Counter()


class Fallback(NamedTuple):
    """An operation that was computed on the host in place of a device, and how often."""

    operation: str
    device: str
    count: int


def swap(to):
    """Sets where missing operations are computed ("cpu" or None: nowhere) on this thread; returns what was set.

    Raises ArgumentError for another device.
    """
    if to not in (None, "cpu"):
        raise _error(
            _core.ArgumentError,
            "device.fallback",
            f"fallback is {_shown(to)}",
            note="legal: 'cpu', or None for a refusal",
        )
    before, _here.to = getattr(_here, "to", None), to
    return before


def fallbacks(*, clear: bool = False) -> list[Fallback]:
    """What was computed on the host in place of a device under ``weft.use(..., fallback="cpu")``, in this process.

    One entry for each operation and device. With ``clear`` the list begins anew.
    """
    with _lock:
        out = [Fallback(*key, count) for key, count in _done.items()]
        if clear:
            _done.clear()
    return out


def _moved(value, device):
    if isinstance(value, _core.NDArray):
        return value.to(device)
    return tuple(_moved(v, device) for v in value) if isinstance(value, tuple) else value


def computed(name, function, *args):
    """function(*args). A refusal for want of a kernel is followed by the host's result where that is allowed."""
    try:
        return function(*args)
    except _core.DeviceError as refusal:
        if getattr(_here, "to", None) is None or refusal.code != f"array.{name}.kernel":
            raise
    device = next(a.device for a in args if isinstance(a, _core.NDArray))
    with _lock:
        _done[name, device.name] += 1
    return _moved(function(*(_moved(a, _here.to) for a in args)), device)


_publish(__name__, skip=("swap", "computed"))
