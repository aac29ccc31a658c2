# SPDX-License-Identifier: Apache-2.0
"""The "np" mode: element types as given, integer indices drop their axis, comparisons are boolean."""

import numpy as np

import weft

from .backend_ndarray.ndarray import (
    BackendDevice as Device,
    NDArray as _Base,
    cpu_numpy as _cpu_numpy,
    cuda,
)


class NDArray(_Base):
    default_dtype = None

    def __getitem__(self, index):
        out = self._a[_plain(index)]
        return self._like(out)

    def __setitem__(self, index, value):
        self._a[_plain(index)] = value._a if isinstance(value, _Base) else value

    def _compare(self, op, other):
        return self._like(weft.__dict__[op](self._a, _operand(other)))

    def _reduce(self, name, axis, keepdims):
        return self._like(getattr(weft, name)(self._a, axis=axis, keepdims=keepdims))

    def fill(self, value):
        self._a.fill(value)


def _operand(x):
    return x._a if isinstance(x, _Base) else x


def _plain(index):
    if isinstance(index, tuple):
        return tuple(_operand(i) for i in index)
    return _operand(index)


class _HostDevice(Device):
    """needle's device of the np mode: random numbers stay float64 until a Tensor casts them."""

    def randn(self, *shape, dtype=None):
        return NDArray(np.random.randn(*shape), device=self)

    def rand(self, *shape, dtype=None):
        return NDArray(np.random.rand(*shape), device=self)

    def one_hot(self, n, i, dtype="float32"):
        return NDArray(np.eye(n, dtype=dtype)[np.asarray(i)], device=self)

    def zeros(self, *shape, dtype="float32"):
        return NDArray(np.zeros(shape, dtype), device=self)

    def ones(self, *shape, dtype="float32"):
        return NDArray(np.ones(shape, dtype), device=self)

    def empty(self, shape, dtype="float32"):
        return NDArray(np.zeros(shape, dtype), device=self)

    def full(self, shape, value, dtype="float32"):
        return NDArray(np.full(shape, value, dtype), device=self)


def cpu():
    return _HostDevice("cpu", _cpu_numpy().mod)


cpu_numpy = cpu
default_device = cpu


def all_devices():
    return [cpu()]


def array(a, dtype=None, device=None):
    return NDArray(a, device=device or cpu(), dtype=dtype)
