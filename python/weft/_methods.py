# SPDX-License-Identifier: Apache-2.0
"""Methods that arrays and tensors take from the namespace."""

from __future__ import annotations

from . import _core
from ._core import NDArray, Tensor
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


def _value_method(name):
    def method(self):
        import weft

        return getattr(weft, name)(self)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"weft.{name} of the tensor, element by element."
    return method


# Element by element, also on traced values of weft.compile.
VALUES = "abs cos exp log relu rsqrt sigmoid sin sqrt square tanh".split()
for _name in VALUES:
    setattr(Tensor, _name, _value_method(_name))


def _view(self, *shape):
    """As reshape."""
    return self.reshape(*shape)


def _unsqueeze(self, dim):
    """With a new axis of extent 1 at `dim`."""
    import weft

    return weft.expand_dims(self, axis=dim)


def _squeeze(self, dim=None):
    """Without the axes `dim`, which must have extent 1; without all such axes when None."""
    import weft

    axes = tuple(i for i, n in enumerate(self.shape) if n == 1) if dim is None else dim
    return weft.squeeze(self, axis=axes)


def _flatten(self, start_dim=0, end_dim=-1):
    """With the axes from start_dim to end_dim (inclusive) as one."""
    first, last = start_dim % max(self.ndim, 1), end_dim % max(self.ndim, 1)
    return self.reshape(*self.shape[:first], -1, *self.shape[last + 1 :])


def _argmax(self, axis=None, keepdims=False):
    """Positions of the largest elements, as an array of int64."""
    return argmax(self.data, axis=axis, keepdims=keepdims)


def _argmin(self, axis=None, keepdims=False):
    """Positions of the smallest elements, as an array of int64."""
    return argmin(self.data, axis=axis, keepdims=keepdims)


def _spread(name):
    def method(self, axis=None, keepdims=False, correction=0.0):
        import weft

        return getattr(weft, name)(self, axis=axis, keepdims=keepdims, correction=correction)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"weft.{name}; the divisor is the count less `correction`."
    return method


def _clip(self, min=None, max=None):
    """Every element brought between min and max."""
    import weft

    return weft.clip(self, min, max)


for _name, _method in {
    "view": _view,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "flatten": _flatten,
    "argmax": _argmax,
    "argmin": _argmin,
    "var": _spread("var"),
    "std": _spread("std"),
    "clip": _clip,
}.items():
    _method.__name__ = _method.__qualname__ = _name
    setattr(Tensor, _name, _method)
