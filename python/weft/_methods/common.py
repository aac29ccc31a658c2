# SPDX-License-Identifier: Apache-2.0
"""Methods of arrays and tensors alike: text, membership, element types by name, and how both are copied and pickled."""

from __future__ import annotations

import copyreg

import weft

from .. import _core
from .._errors import error as _error
from .tools import filled, plain

_TYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "bool": "bool",
}


def _cast(name):
    dtype = _TYPES[name]

    def method(self):
        return (self if dtype[:5] == "float" else plain(self)).astype(dtype)

    method.__doc__ = (
        f"As {dtype}; of a tensor, whole numbers and truth values are an array without the graph."
    )
    return method


@filled(_cast, " ".join(_TYPES))
class Common:
    """With one meaning for arrays and tensors."""

    def __format__(self, spec):
        """A format of one number is that number's: f"{x:.3f}"."""
        return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)

    def __contains__(self, value):
        """Whether some element equals the value, as in NumPy."""
        return bool(weft.any(self == value))

    def clip(self, min=None, max=None, out=None):
        """Every element brought between min and max."""
        no_out(out)
        return weft.clip(self, min, max)


def no_out(out):
    """Refuses NumPy's argument for a place to write to."""
    if out is not None:
        raise _error(
            _core.ArgumentError,
            "array.method.out",
            "methods of arrays give new arrays; out is not offered",
            help="assign with x[...] = result",
        )


def _rebuild(raw, shape, dtype):
    return _core._from_bytes(raw, shape, dtype)


def _operation(name):
    return _core.operations[name]


# Operations are kept by name: a module that holds weft.relu can be copied and pickled.
copyreg.pickle(type(_core.operations["relu"]), lambda f: (_operation, (f.__name__,)))


class ArrayCopies:
    """Copies and pickles of arrays: their bytes, shape and type."""

    def __reduce__(self):
        return _rebuild, (_core._to_bytes(self), self.shape, self.dtype)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()


def _tensor(cls, data, requires_grad, attributes):
    out = cls(data, dtype=data.dtype, device=data.device, requires_grad=requires_grad)
    if attributes:
        out.__dict__.update(attributes)
    return out


class TensorCopies:
    """A copied tensor is a leaf: values and requires_grad go along, the graph that made it stays behind."""

    def __reduce__(self):
        attributes = dict(getattr(self, "__dict__", {}))
        return _tensor, (type(self), self.data, self.requires_grad, attributes)

    def __reduce_ex__(self, protocol):
        return self.__reduce__()

    def __deepcopy__(self, memo):
        out = _tensor(
            type(self), self.data.copy(), self.requires_grad, getattr(self, "__dict__", None)
        )
        if self.is_leaf and self.grad is not None:
            out.grad = self.grad.detach()
        return out

    def __copy__(self):
        return self.__deepcopy__({}) if self.requires_grad else self.detach()


def _as_numpy(self):
    """NumPy's type of that name, so that numpy.dtype(x.dtype) and numpy.zeros(3, dtype=x.dtype) work. AttributeError without one."""
    import numpy as np

    try:
        return np.dtype(self.name)
    except TypeError:
        raise AttributeError(f"NumPy has no type {self.name}") from None


_core.dtype.dtype = property(_as_numpy)
