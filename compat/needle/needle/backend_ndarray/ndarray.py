# SPDX-License-Identifier: Apache-2.0
"""needle's NDArray over weft.NDArray: the rows in which the course's library differs from the array API
standard (float32 only, integer indices keep their axis, comparisons give 0/1, a full sum has shape (1,))."""

import math

import numpy as np
from weft._errors import error as _error

import weft

from .backend import Handle, backend_module

__all__ = [
    "BackendDevice",
    "NDArray",
    "array",
    "empty",
    "full",
    "broadcast_to",
    "reshape",
    "maximum",
    "log",
    "exp",
    "tanh",
    "sum",
    "flip",
    "cpu",
    "cuda",
    "cpu_numpy",
    "all_devices",
    "default_device",
    "prod",
]


def prod(x):
    return math.prod(x)


class BackendDevice:
    """A device by name with the backend module's functions as attributes."""

    def __init__(self, name, mod, reason=None):
        self.name, self.mod, self.reason = name, mod, reason

    def __eq__(self, other):
        return isinstance(other, BackendDevice) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return self.name + "()"

    def __getattr__(self, name):
        if name.startswith("__") and name != "__tile_size__" and name != "__device_name__":
            raise AttributeError(name)
        mod = self.__dict__.get("mod")
        if mod is None:
            self.require()
        return getattr(mod, name)

    def enabled(self):
        return self.mod is not None

    def require(self):
        if self.mod is None:
            raise _error(
                weft.DeviceError,
                "needle.device.absent",
                f"{self.name}() is not here: {self.reason}",
            )
        return self.mod

    @property
    def weft_device(self):
        return self.require().device

    def randn(self, *shape, dtype="float32"):
        # The course's programs seed NumPy's generator: it is drawn from, in float64, then rounded.
        return NDArray(np.random.randn(*shape).astype(dtype), device=self)

    def rand(self, *shape, dtype="float32"):
        return NDArray(np.random.rand(*shape).astype(dtype), device=self)

    def one_hot(self, n, i, dtype="float32"):
        return NDArray(np.eye(n, dtype=dtype)[np.asarray(i).astype(int)], device=self)

    def zeros(self, *shape, dtype="float32"):
        return self.full(shape, 0.0, dtype)

    def ones(self, *shape, dtype="float32"):
        return self.full(shape, 1.0, dtype)

    def empty(self, shape, dtype="float32"):
        return NDArray.make(shape, device=self)

    def full(self, shape, value, dtype="float32"):
        out = self.empty(shape, dtype)
        out.fill(value)
        return out


_modules = {}


def _device(name, weft_name):
    if name not in _modules:
        try:
            device = weft.device(weft_name)
            _modules[name] = (
                (backend_module(name, device), None) if device.available else (None, device.reason)
            )
        except weft.Error as error:
            _modules[name] = (None, error.message or str(error))
    return BackendDevice(name, *_modules[name])


def cpu():
    return _device("cpu", "cpu")


def cuda():
    return _device("cuda", "cuda:0")


def cpu_numpy():
    return _device("cpu_numpy", "cpu")


def default_device():
    return cpu_numpy()


def all_devices():
    return [cpu(), cuda(), cpu_numpy()]


class NDArray:
    """A strided array. `_a` is the weft.NDArray that does everything."""

    default_dtype = "float32"

    def __init__(self, other, device=None, dtype=None):
        if dtype is None:
            dtype = self.default_dtype
        if isinstance(other, NDArray):
            device = other._device if device is None else device
            source = other._a
        else:
            device = device or default_device()
            source = other if isinstance(other, weft.NDArray) else np.array(other)
            if isinstance(source, np.ndarray) and source.dtype == object:
                raise _error(
                    weft.DTypeError,
                    "needle.array.dtype",
                    f"cannot make an array of {type(other).__name__}",
                )
        device.require()
        a = weft.asarray(source, dtype=dtype, copy=True)
        self._a, self._device = a.to(device.weft_device), device

    @classmethod
    def _of(cls, a, device):
        out = cls.__new__(cls)
        out._a, out._device = a, device
        return out

    def _like(self, a):
        if a.dtype != "float32" and self.default_dtype == "float32":
            a = a.astype("float32")
        cls = NDArray if self.default_dtype == "float32" else type(self)
        return cls._of(a, self._device)

    @staticmethod
    def compact_strides(shape):
        out, step = [], 1
        for n in reversed(shape):
            out.append(step)
            step *= n
        return tuple(reversed(out))

    @staticmethod
    def make(shape, strides=None, device=None, handle=None, offset=0):
        device = device or default_device()
        storage = None if handle is None else getattr(handle, "storage", handle)
        a = weft.NDArray.make(
            tuple(shape), strides=strides, device=device.weft_device, handle=storage, offset=offset
        )
        return NDArray._of(a, device)

    # ---- what it is
    shape = property(lambda self: self._a.shape)
    strides = property(lambda self: self._a.strides)
    device = property(lambda self: self._device)
    dtype = property(lambda self: self._a.dtype.name)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    _shape, _strides = shape, strides
    _offset = property(lambda self: self._a.offset)
    _handle = property(lambda self: Handle(self._a))

    def __repr__(self):
        return f"NDArray({self.numpy()}, device={self._device})"

    def __str__(self):
        return str(self.numpy())

    def __len__(self):
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        return self._a.__array__(dtype)

    def __weft_array__(self):
        return self._a

    def numpy(self):
        return self._a.numpy()

    def astype(self, dtype):
        return type(self)._of(self._a.astype(np.dtype(dtype).name), self._device)

    def item(self):
        return self._a.item()

    def to(self, device):
        if device == self._device:
            return self
        a = self._a.to(device.weft_device)
        return type(self)._of(a.copy() if a is self._a else a, device)

    # ---- views
    def fill(self, value):
        whole = weft.NDArray.make((self._a.handle.nbytes // 4,), handle=self._a.handle)
        whole.fill(float(value))

    def is_compact(self):
        return self._a.is_compact()

    def compact(self):
        return self if self.is_compact() else self._like(self._a.copy())

    def as_strided(self, shape, strides):
        return self._like(self._a.as_strided(shape, strides))

    @property
    def flat(self):
        return self.reshape((self.size,))

    def reshape(self, *new_shape):
        shape = (
            new_shape[0]
            if len(new_shape) == 1 and isinstance(new_shape[0], (tuple, list))
            else new_shape
        )
        return self._like(self._a.reshape(tuple(int(n) for n in shape)))

    def permute(self, axes):
        return self._like(self._a.permute(tuple(axes)))

    def swapaxes(self, a, b):
        axes = list(range(self.ndim))
        axes[a], axes[b] = axes[b], axes[a]
        return self.permute(axes)

    def broadcast_to(self, shape):
        return self._like(self._a.broadcast_to(tuple(shape)))

    def flip(self, axes=None):
        axes = (
            tuple(range(self.ndim))
            if axes is None
            else (axes,)
            if isinstance(axes, int)
            else tuple(axes)
        )
        return self._like(self._a.flip(axes).copy())

    def pad(self, widths):
        return self._like(weft.pad(self._a, widths))

    def process_slice(self, sl, dim):
        """start, stop and step of a slice as non-negative numbers."""
        start, stop, step = sl.indices(self.shape[dim])
        assert stop > start, "Start must be less than stop"
        assert step > 0, "No support for negative increments"
        return slice(start, stop, step)

    def _key(self, index):
        index = index if isinstance(index, tuple) else (index,)
        assert len(index) == self.ndim, "Need indexes equal to number of dimensions"
        out = []
        for dim, i in enumerate(index):
            if isinstance(i, slice):
                out.append(i)
            else:
                n = self.shape[dim]
                i = int(i)
                if not -n <= i < n:
                    raise _error(
                        weft.IndexError,
                        "array.index.range",
                        f"index {i} is outside axis {dim} of extent {n}",
                    )
                i %= n
                out.append(slice(i, i + 1, 1))
        return tuple(out)

    def __getitem__(self, index):
        return self._like(self._a[self._key(index)])

    def __setitem__(self, index, value):
        view = self._a[self._key(index)]
        if isinstance(value, NDArray):
            assert view.size == value.size, "element counts differ"
            value = value._a if value._a.shape == view.shape else value._a.reshape(view.shape)
        view[...] = value

    # ---- arithmetic
    def _binary(self, op, other, swapped=False):
        if isinstance(other, NDArray):
            other = other._a
        elif isinstance(other, np.ndarray):
            other = weft.asarray(other)
        elif isinstance(other, np.generic):
            other = other.item()
        f = getattr(weft, op)
        return self._like(f(other, self._a) if swapped else f(self._a, other))

    def __add__(self, o):
        return self._binary("add", o)

    def __sub__(self, o):
        return self._binary("subtract", o)

    def __mul__(self, o):
        return self._binary("multiply", o)

    def __truediv__(self, o):
        return self._binary("divide", o)

    def __pow__(self, o):
        return self._binary("pow", o)

    def __rsub__(self, o):
        return self._binary("subtract", o, True)

    def __rtruediv__(self, o):
        return self._binary("divide", o, True)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self._like(-self._a)

    def maximum(self, o):
        return self._binary("maximum", o)

    def _compare(self, op, other):
        if isinstance(other, (int, float)):
            other = float(np.float32(other))
        return self._binary(op, other)

    def __eq__(self, o):
        return self._compare("equal", o)

    def __ne__(self, o):
        return self._compare("not_equal", o)

    def __ge__(self, o):
        return self._compare("greater_equal", o)

    def __gt__(self, o):
        return self._compare("greater", o)

    def __le__(self, o):
        return self._compare("less_equal", o)

    def __lt__(self, o):
        return self._compare("less", o)

    __hash__ = None
    __array_ufunc__ = None

    def log(self):
        return self._like(weft.log(self._a))

    def exp(self):
        return self._like(weft.exp(self._a))

    def tanh(self):
        return self._like(weft.tanh(self._a))

    def __matmul__(self, o):
        return self._like(self._a @ o._a)

    def _reduce(self, name, axis, keepdims):
        if isinstance(axis, (tuple, list)) and not axis:
            raise ValueError("Empty axis in reduce")
        if axis is None:
            return self._like(getattr(weft, name)(self._a, axis=None).reshape((1,)))
        axis = tuple(axis) if isinstance(axis, (tuple, list)) else axis
        return self._like(getattr(weft, name)(self._a, axis=axis, keepdims=keepdims))

    def sum(self, axis=None, keepdims=False):
        return self._reduce("sum", axis, keepdims)

    def max(self, axis=None, keepdims=False):
        return self._reduce("max", axis, keepdims)


def array(a, dtype="float32", device=None):
    return NDArray(a, device=device, dtype=dtype or "float32")


def empty(shape, dtype="float32", device=None):
    return (device or default_device()).empty(shape, dtype)


def full(shape, value, dtype="float32", device=None):
    return (device or default_device()).full(shape, value, dtype)


def broadcast_to(a, shape):
    return a.broadcast_to(shape)


def reshape(a, shape):
    return a.reshape(shape)


def maximum(a, b):
    return a.maximum(b)


def log(a):
    return a.log()


def exp(a):
    return a.exp()


def tanh(a):
    return a.tanh()


def sum(a, axis=None, keepdims=False):
    return a.sum(axis=axis, keepdims=keepdims)


def flip(a, axes):
    return a.flip(axes)
