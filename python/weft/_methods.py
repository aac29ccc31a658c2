# SPDX-License-Identifier: Apache-2.0
"""Methods that arrays and tensors take from the namespace."""

from __future__ import annotations

import copyreg
import operator

from . import _core
from ._core import NDArray, Tensor
from ._errors import error as _error
from ._namespace import argmax, argmin, mean
from ._torch_names import understanding as _understanding
from .autograd import Function


def _namespace(self, /, *, api_version=None):
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise _error(
            _core.ArgumentError, "array.api.version", f"version {api_version!r} is not offered"
        )
    import weft

    return weft


def _to_device(self, device, /, *, stream=None):
    """The array on a device: the array API's spelling of to(device)."""
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
NDArray.__array_priority__ = 100


def _no_out(out):
    if out is not None:
        raise _error(
            _core.ArgumentError,
            "array.method.out",
            "methods of arrays give new arrays; out is not offered",
            help="assign with x[...] = result",
        )


def _mean(self, axis=None, keepdims=False, dtype=None, out=None):
    """Arithmetic mean."""
    _no_out(out)
    return mean(self if dtype is None else self.astype(dtype), axis=axis, keepdims=keepdims)


def _spread_of(name):
    def method(self, axis=None, keepdims=False, dtype=None, out=None, ddof=0):
        import weft

        _no_out(out)
        x = self if dtype is None else self.astype(dtype)
        return getattr(weft, name)(x, axis=axis, correction=ddof, keepdims=keepdims)

    method.__doc__ = f"weft.{name}; the divisor is the count less `ddof`."
    return method


def _position(name):
    def method(self, axis=None, keepdims=False, out=None):
        import weft

        _no_out(out)
        return getattr(weft, name)(self, axis=axis, keepdims=keepdims)

    method.__doc__ = f"weft.{name}."
    return method


def _running(name):
    def method(self, axis=None, dtype=None, out=None):
        import weft

        _no_out(out)
        x = self.reshape(-1) if axis is None else self
        return getattr(weft, name)(x, axis=0 if axis is None else axis, dtype=dtype)

    method.__doc__ = f"weft.{name}; all elements in a row when axis is None."
    return method


def _ravel(self):
    """The elements in a row, a view where the layout allows it."""
    return self.reshape(-1)


def _flatten_copy(self):
    """The elements in a row, always a copy."""
    return self.reshape(-1).copy()


def _clip_array(self, min=None, max=None, out=None):
    """Every element brought between min and max."""
    import weft

    _no_out(out)
    return weft.clip(self, min, max)


def _round_array(self, decimals=0, out=None):
    """Rounded to a number of decimals, halves to even."""
    import weft

    _no_out(out)
    if decimals == 0:
        return weft.round(self)
    scale = 10.0**decimals
    return weft.round(self * scale) / scale


def _transpose_array(self, *axes):
    """Axes in another order; reversed without arguments, as in NumPy."""
    axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return self.permute(tuple(axes or reversed(range(self.ndim))))


def _swapaxes(self, axis1, axis2):
    """A view with two axes exchanged."""
    order = list(range(self.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return self.permute(tuple(order))


def _squeeze_array(self, axis=None):
    """Without axes of extent 1."""
    import weft

    axes = tuple(i for i, n in enumerate(self.shape) if n == 1) if axis is None else axis
    return weft.squeeze(self, axis=axes)


def _function(name, doc, **fixed):
    def method(self, *args, **kwargs):
        import weft

        return getattr(weft, name)(self, *args, **{**fixed, **kwargs})

    method.__doc__ = doc
    return method


def _take(self, indices, axis=None):
    """Entries at positions along an axis; of the elements in a row when axis is None."""
    import weft

    x = self.reshape(-1) if axis is None else self
    return weft.take(x, weft.asarray(indices), axis=0 if axis is None else axis)


def _dot(self, other):
    """Inner product of vectors, product of matrices."""
    return self @ other if self.ndim and getattr(other, "ndim", 0) else self * other


def _conj(self):
    """Complex conjugate; the array itself when it is real."""
    return _core.operations["conj"](self) if self.dtype.kind == "c" else self


def _part(name):
    def read(self):
        if self.dtype.kind == "c":
            return _core.operations[name](self)
        return self if name == "real" else self - self

    return property(read, doc=f"The {name} part, a copy for complex numbers.")


for _name, _method in {
    "mean": _mean,
    "std": _spread_of("std"),
    "var": _spread_of("var"),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "cumsum": _running("cumulative_sum"),
    "cumprod": _running("cumulative_prod"),
    "ravel": _ravel,
    "flatten": _flatten_copy,
    "clip": _clip_array,
    "round": _round_array,
    "transpose": _transpose_array,
    "swapaxes": _swapaxes,
    "squeeze": _squeeze_array,
    "take": _take,
    "dot": _dot,
    "conj": _conj,
    "argsort": _function("argsort", "Positions that would sort the array along an axis."),
    "nonzero": _function("nonzero", "Positions of the elements that are not zero, for each axis."),
    "repeat": _function("repeat", "Each element several times: weft.repeat."),
}.items():
    _method.__name__ = _method.__qualname__ = _name
    setattr(NDArray, _name, _understanding(_method))
NDArray.real, NDArray.imag = _part("real"), _part("imag")


def _format(self, spec):
    """A format of one number is that number's: f"{x:.3f}"."""
    return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)


def _round_number(self, digits=None):
    """round(x): a Python number of one element, else the rounded array."""
    return round(self.item(), digits) if self.ndim == 0 else self.round(digits or 0)


NDArray.__format__ = _format
NDArray.__round__ = _round_number
NDArray.__divmod__ = lambda self, other: (self // other, self % other)
NDArray.__rdivmod__ = lambda self, other: (other // self, other % self)
Tensor.__format__ = _format


def _contains(self, value):
    """Whether some element equals the value, as in NumPy."""
    import weft

    return bool(weft.any(self == value))


NDArray.__contains__ = Tensor.__contains__ = _contains


def _dlpack(self, **options):
    """The array of the tensor. Raises BufferError when it requires gradients: detach() first."""
    if self.requires_grad:
        raise BufferError("a tensor that requires gradients is not exported: detach() first")
    return self.data.__dlpack__(**options)


Tensor.__dlpack__ = _dlpack
Tensor.__dlpack_device__ = lambda self: self.data.__dlpack_device__()


def _rebuild(raw, shape, dtype):
    return _core._from_bytes(raw, shape, dtype)


def _operation(name):
    return _core.operations[name]


# Operations are kept by name: a module that holds weft.relu can be copied and pickled.
copyreg.pickle(type(_core.operations["relu"]), lambda f: (_operation, (f.__name__,)))
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


def _argmax(self, axis=None, keepdims=False, *, dim=None, keepdim=False):
    """Positions of the largest elements, as an array of int64; dim and keepdim are PyTorch's names."""
    return argmax(self.data, axis=axis if dim is None else dim, keepdims=keepdims or keepdim)


def _argmin(self, axis=None, keepdims=False, *, dim=None, keepdim=False):
    """Positions of the smallest elements, as an array of int64; dim and keepdim are PyTorch's names."""
    return argmin(self.data, axis=axis if dim is None else dim, keepdims=keepdims or keepdim)


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


class _Moved(Function):
    @staticmethod
    def forward(ctx, x, device):
        ctx.device = x.device
        return x.data.to(device)

    @staticmethod
    def backward(ctx, g):
        return g.to(ctx.device), None


def _to(self, device):
    """The tensor on a device; gradients come back to where it was. Itself when it is there already."""
    if self.device == _core.open_device(device):
        return self
    return _Moved.apply(self, device)


def _cpu(self):
    """As to("cpu")."""
    return self.to("cpu")


def _clone(self):
    """A copy that stays linked."""
    return self * 1 if self.requires_grad else Tensor(self.data.copy(), requires_grad=False)


def _contiguous(self):
    """Itself: kernels take any strides."""
    return self


def _requires_grad_(self, requires_grad=True):
    """Sets requires_grad; returns the tensor."""
    self.requires_grad = requires_grad
    return self


def _dim(self):
    """As ndim."""
    return self.ndim


def _numel(self):
    """As size."""
    return self.size


def _prod(self, axis=None, keepdims=False):
    """weft.prod."""
    import weft

    return weft.prod(self, axis=axis, keepdims=keepdims)


def _truth(name):
    def method(self, axis=None, keepdims=False):
        import weft

        return getattr(weft, name)(self.data, axis=axis, keepdims=keepdims)

    method.__doc__ = f"weft.{name}, as an array of bool."
    return method


def _operator(name, symbol, function):
    def method(self, other):
        return function(self, other)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"self {symbol} other."
    return method


for _name, _symbol, _binary in [
    ("add", "+", operator.add),
    ("sub", "-", operator.sub),
    ("mul", "*", operator.mul),
    ("div", "/", operator.truediv),
    ("pow", "**", operator.pow),
    ("matmul", "@", operator.matmul),
    ("mm", "@", operator.matmul),
    ("bmm", "@", operator.matmul),
]:
    setattr(Tensor, _name, _operator(_name, _symbol, _binary))

for _name, _method in {
    "to": _to,
    "cpu": _cpu,
    "clone": _clone,
    "contiguous": _contiguous,
    "requires_grad_": _requires_grad_,
    "dim": _dim,
    "numel": _numel,
    "prod": _prod,
    "all": _truth("all"),
    "any": _truth("any"),
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
    setattr(Tensor, _name, _understanding(_method))
