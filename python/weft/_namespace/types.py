# SPDX-License-Identifier: Apache-2.0
"""Element types: conversion, promotion, limits, kinds."""

from __future__ import annotations

import math as _math
from collections import namedtuple as _namedtuple

from .._core import shown as _shown
from .. import _core
from .._core import NDArray
from .._boundary import publish as _publish
from .._errors import error as _error
from .common import (
    _COMPLEX,
    _INTEGERS,
    _REALS,
    _SIGNED,
    _UNSIGNED,
    _dtype,
    _float32,
    _int64,
    _is_tensor,
    _name,
    _pybool,
)


def astype(x, dtype, /, *, copy=True, device=None):
    """The elements converted to another type."""
    if _is_tensor(x):
        return x.astype(dtype)
    if device is not None:
        x = x.to(device)
    if _name(x.dtype) in _COMPLEX and _name(dtype) not in _COMPLEX and _name(dtype) != "bool":
        raise _error(
            _core.DTypeError,
            "array.astype.complex",
            f"{x.dtype} does not become {_name(dtype)}: use real() or imag()",
            help="weft.real(x).astype(...) keeps the real part",
        )
    return x.astype(dtype, copy)


def can_cast(from_, to, /):
    """May this type be converted to that along the promotion rules?"""
    return _core.can_cast_types(
        from_.dtype if isinstance(from_, NDArray) else _dtype(from_), _dtype(to)
    )


def result_type(*arrays_and_dtypes):
    """The common type by the promotion rules; Python numbers are weak."""
    types, numbers = [], []
    for item in arrays_and_dtypes:
        if isinstance(item, NDArray) or _is_tensor(item):
            types.append(item.dtype)
        elif isinstance(item, (_pybool, int, float, complex)):
            numbers.append(item)
        else:
            types.append(_dtype(item))
    if not types:
        raise _error(
            _core.ArgumentError,
            "array.result_type.empty",
            f"result_type of {len(arrays_and_dtypes)} arguments without an array or type",
            help="pass arrays or types: result_type(x, weft.float32)",
        )
    out = types[0]
    for t in types[1:]:
        out = _core.promote_types(out, t)
    for number in numbers:
        # Zero of the array's type plus a zero of the number's kind shows the weak rule.
        kind = type(number)
        if kind is _pybool:
            continue
        order = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
        want = {int: 1, float: 2, complex: 3}[kind]
        if order[out.kind] < want:
            if want == 1:
                out = _int64
            elif want == 2:
                out = _float32
            else:
                out = (
                    _core.promote_types(out, _core.complex64)
                    if order[out.kind] == 2
                    else _core.complex64
                )
    return out


def finfo(type, /):
    """Limits of a floating-point type."""
    name = _name(getattr(type, "dtype", type))
    real = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    if real not in _FINFO:
        raise _error(
            _core.DTypeError,
            "array.finfo.dtype",
            f"{name} is no floating-point type",
            help="iinfo has the limits of integers",
        )
    digits, top, bottom = _FINFO[real]
    largest = (2.0 - 2.0**-digits) * 2.0**top
    if real == "float8_e4m3fn":
        largest = 448.0  # all bits set is NaN
    return finfo_object(
        _dtype(real).itemsize * 8, 2.0**-digits, largest, -largest, 2.0**bottom, _dtype(real)
    )


def iinfo(type, /):
    """Limits of an integer type."""
    name = _name(getattr(type, "dtype", type))
    if name not in _INTEGERS:
        raise _error(
            _core.DTypeError,
            "array.iinfo.dtype",
            f"{name} is no integer type",
            help="finfo has the limits of floats",
        )
    bits = _dtype(name).itemsize * 8
    if name in _UNSIGNED:
        return iinfo_object(bits, 2**bits - 1, 0, _dtype(name))
    return iinfo_object(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), _dtype(name))


def isdtype(dtype, kind):
    """Is the type one of a kind, of a tuple of kinds, or equal to a type?"""
    return _of_kind(dtype, kind)


def _of_kind(dtype, kind):
    if isinstance(kind, tuple):
        return any(_of_kind(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise _error(
                _core.ArgumentError,
                "array.isdtype.kind",
                f"unknown kind {_shown(kind)}, legal: {', '.join(_KINDS)}",
                help="name one of these, a type, or a tuple of both",
            )
        return _name(dtype) in _KINDS[kind]
    return _name(dtype) == _name(kind)


class finfo_object(_namedtuple("finfo_object", "bits eps max min smallest_normal dtype")):
    """The limits of a type of floats; tiny and resolution are NumPy's and PyTorch's names."""

    __slots__ = ()
    tiny = property(lambda self: self.smallest_normal, doc="The smallest normal number.")
    resolution = property(lambda self: 10.0 ** -_math.floor(-_math.log10(self.eps)), doc="Decimal digits that hold.")  # fmt: skip


iinfo_object = _namedtuple("iinfo_object", "bits max min dtype")


_FINFO = {  # precision bits, largest exponent, smallest normal exponent
    "float8_e4m3fn": (3, 8, -6),
    "float8_e5m2": (2, 15, -14),
    "float16": (10, 15, -14),
    "bfloat16": (7, 127, -126),
    "float32": (23, 127, -126),
    "float64": (52, 1023, -1022),
}


_KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _INTEGERS,
    "real floating": _REALS,
    "complex floating": _COMPLEX,
    "numeric": (*_INTEGERS, *_REALS, *_COMPLEX),
}


__all__ = [
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]

_publish(__name__)
