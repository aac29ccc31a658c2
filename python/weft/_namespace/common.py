# SPDX-License-Identifier: Apache-2.0
"""What the functions of the namespace share: arguments as arrays, names of types, axes."""

from __future__ import annotations

import builtins as _py

from .. import _core
from .._core import NDArray
from .._core import operations as _operations
from .._errors import error as _error

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_UNSIGNED = _INTEGERS[4:]
_SIGNED = _INTEGERS[:4]
_REALS = ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64")
_NARROW = _REALS[:4]  # computed with as float32
_COMPLEX = ("complex64", "complex128")
_bool, _int64, _float32, _float64 = _core.bool, _core.int64, _core.float32, _core.float64
_pybool = bool
_row = _operations.__getitem__


def _array(x) -> NDArray:
    return x if isinstance(x, NDArray) else _core._asarray(x, None, None, None)


def _is_tensor(x):
    return getattr(x, "__weft_tensor__", False)


def _dtype(d):
    return d if isinstance(d, _core.dtype) else _core.dtype(d)


def _name(d):
    return _dtype(d).name


def _axis(axis, ndim, name):
    if not -ndim <= axis < _py.max(ndim, 1):
        raise _error(
            _core.IndexError,
            f"array.{name}.axis",
            f"axis {axis} of {name} is outside an array of {ndim} dimensions",
        )
    return axis + ndim if axis < 0 else axis


def all_int(*values):
    return all(isinstance(v, int) for v in values)
