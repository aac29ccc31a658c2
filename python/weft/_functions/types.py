# SPDX-License-Identifier: Apache-2.0
"""Other names of element types, NumPy's kinds of types (issubdtype), and the default type of floats."""

from __future__ import annotations

import weft

from .. import _core
from .common import plain, refused, value

_ALIASES = {
    "bool": "bool_",
    "int8": "byte",
    "int16": "short",
    "int32": "int intc",
    "int64": "int_ intp long longlong",
    "uint8": "ubyte",
    "uint16": "ushort",
    "uint32": "uintc",
    "uint64": "uint uintp ulonglong",
    "float16": "half",
    "float32": "float single",
    "float64": "double float_",
    "complex64": "cfloat csingle singlecomplex",
    "complex128": "cdouble complex_",
}
ALIASES = {alias: name for name, text in _ALIASES.items() for alias in text.split()}


class Kind:
    """A family of element types, for issubdtype(x.dtype, weft.integer)."""

    def __init__(self, name, kinds):
        self.name, self.kinds = name, kinds

    def __repr__(self):
        return f"weft.{self.name}"


generic, number = Kind("generic", "biufc"), Kind("number", "iufc")
integer, signedinteger, unsignedinteger = Kind("integer", "iu"), Kind("signedinteger", "i"), Kind("unsignedinteger", "u")  # fmt: skip
inexact, floating, complexfloating = Kind("inexact", "fc"), Kind("floating", "f"), Kind("complexfloating", "c")  # fmt: skip
_PYTHON = {int: "i", float: "f", complex: "c"}


def _type(x):
    """The element type of a type, a name, an array or a number."""
    if isinstance(x, (weft.NDArray, weft.Tensor)) or hasattr(x, "__weft_level__"):
        return x.dtype
    return _core.dtype(x)


def issubdtype(arg1, arg2):
    """Is a type one of a kind (weft.integer, weft.floating, ...), or equal to another type? Python's int, float and complex are kinds."""
    if isinstance(arg1, Kind):
        return isinstance(arg2, Kind) and set(arg1.kinds) <= set(arg2.kinds)
    kind = _type(arg1).kind
    if isinstance(arg2, Kind):
        return kind in arg2.kinds
    if arg2 in _PYTHON:
        return kind == _PYTHON[arg2]
    return _type(arg1) == _type(arg2)


def issctype(rep):
    """Is it an element type?"""
    try:
        _type(rep)
    except (_core.Error, TypeError):
        return False
    return True


def promote_types(type1, type2):
    """The smallest type that both go to by the promotion rules."""
    return _core.promote_types(_type(type1), _type(type2))


def find_common_type(array_types, scalar_types=()):
    """The common type of types."""
    return weft.result_type(*array_types, *scalar_types)


def min_scalar_type(a):
    """The smallest type that holds a number; of an array its type."""
    if getattr(a, "ndim", 0):
        return a.dtype
    n = a.item() if hasattr(a, "item") else a
    if isinstance(n, (bool,)):
        return weft.bool
    if isinstance(n, int):
        names = ("uint8", "uint16", "uint32", "uint64") if n >= 0 else ("int8", "int16", "int32", "int64")  # fmt: skip
        for name in names:
            if weft.iinfo(name).min <= n <= weft.iinfo(name).max:
                return _core.dtype(name)
        raise refused("array.scalar.range", f"{n}", "numbers of 64 bits")
    size = max(abs(n.real), abs(n.imag)) if isinstance(n, complex) else abs(n)
    names = ("complex64", "complex128") if isinstance(n, complex) else ("float16", "float32", "float64")  # fmt: skip
    fits = [m for m in names if not size > weft.finfo(m).max or size == float("inf")]
    return _core.dtype(fits[0])


def common_type(*arrays):
    """The type of floats, or complex numbers, for arrays together: float64 for whole numbers."""
    kinds = [plain(a).dtype for a in arrays]
    kinds = [weft.float64 if k.kind in "iu" else k for k in kinds]
    if any(k.kind == "b" for k in kinds):
        raise refused("array.common_type", "common_type of truth values", "arrays of numbers")
    return weft.result_type(*kinds) if kinds else weft.float16


def mintypecode(typechars, typeset="GDFgdf", default="d"):
    """The letter of the smallest of NumPy's types for several letters."""
    import numpy as np

    return np.mintypecode(typechars, typeset, default)


def is_signed(x):
    """Can elements be negative?"""
    return value(x).dtype.kind in "ifc"


def get_default_dtype():
    """The type of floats that has no other: float32."""
    return weft.asarray(0.0).dtype


def set_default_dtype(d):
    """The default type of floats is float32. Raises ArgumentError for another: name the type with dtype=."""
    if _type(d) != get_default_dtype():
        raise refused(
            "array.default_dtype",
            f"a default of {_type(d)}",
            "float32 is the default: give dtype=, or x.astype(dtype), model.to(dtype=dtype)",
        )


def __getattr__(name):
    if name in ALIASES:
        return _core.dtype(ALIASES[name])
    raise AttributeError(name)
