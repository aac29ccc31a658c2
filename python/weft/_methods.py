# SPDX-License-Identifier: Apache-2.0
"""Methods that the array type takes from the namespace."""

from __future__ import annotations

from . import _core
from ._core import NDArray
from ._errors import error as _error
from ._namespace import argmax, argmin, mean


def _namespace(self, /, *, api_version=None):
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise _error(
            _core.ArgumentError, "array.api.version", f"version {api_version!r} is not offered"
        )
    import weft

    return weft


def _to_device(self, device, /, *, stream=None):
    if stream is not None:
        raise _error(
            _core.ArgumentError,
            "array.to_device.stream",
            f"{self.device} takes no stream, got {stream!r}",
        )
    return self.to(device)


def _make(shape, strides=None, device=None, handle=None, offset=0, dtype=None):
    """A checked view over a handle (another array's .handle), or new unset storage without one."""
    return _core._make(shape, strides, device, handle, offset, dtype)


NDArray.__array_namespace__ = _namespace
NDArray.to_device = _to_device
NDArray.make = staticmethod(_make)
NDArray.handle = property(_core._handle, doc="The storage under the view.")
NDArray.__cuda_array_interface__ = property(
    _core._cuda_interface, doc="Version 3 of the protocol; AttributeError off CUDA devices."
)
NDArray.mean = lambda self, axis=None, keepdims=False: mean(self, axis=axis, keepdims=keepdims)
NDArray.argmax = lambda self, axis=None, keepdims=False: argmax(self, axis=axis, keepdims=keepdims)
NDArray.argmin = lambda self, axis=None, keepdims=False: argmin(self, axis=axis, keepdims=keepdims)
NDArray.__array_priority__ = 100


def _rebuild(raw, shape, dtype):
    return _core._from_bytes(raw, shape, dtype)


NDArray.__reduce__ = lambda self: (_rebuild, (_core._to_bytes(self), self.shape, self.dtype))
NDArray.__copy__ = lambda self: self.copy()
NDArray.__deepcopy__ = lambda self, memo: self.copy()
