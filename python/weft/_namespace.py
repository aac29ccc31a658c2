# SPDX-License-Identifier: Apache-2.0
"""The main namespace of the array API standard 2024.12, over weft._core.

Elementwise functions are the rows of the operation table; what stands here gives the structured functions
their signatures and composes the small ones.
"""

from __future__ import annotations

import builtins as _py
import math as _math
from collections import namedtuple as _namedtuple

from . import _core
from ._core import NDArray, operations as _operations
from ._info import __array_namespace_info__

e = _math.e
pi = _math.pi
inf = _math.inf
nan = _math.nan
newaxis = None

globals().update(_operations)
_row = _operations.__getitem__

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_UNSIGNED = _INTEGERS[4:]
_SIGNED = _INTEGERS[:4]
_REALS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_bool, _int64, _float32, _float64 = _core.bool, _core.int64, _core.float32, _core.float64


def _array(x) -> NDArray:
    return x if isinstance(x, NDArray) else _core._asarray(x, None, None, None)


def _is_tensor(x):
    return getattr(x, "__weft_tensor__", False)


# ---- creation


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An array of a number, nested sequence, buffer, DLPack tensor or array; shares memory where it may."""
    return _core._asarray(obj, dtype, device, copy)


def array(obj, dtype=None, device=None):
    """A new array with a copy of the elements."""
    return _core._asarray(obj, dtype, device, True)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over the memory of any DLPack exporter."""
    return _core._from_dlpack(x, device, copy)


def empty(shape, *, dtype=None, device=None):
    """An array with unset elements."""
    return _core._empty(shape, dtype, device)


def zeros(shape, *, dtype=None, device=None):
    """An array of zeros."""
    return _core._full(shape, 0, _float32 if dtype is None else dtype, device)


def ones(shape, *, dtype=None, device=None):
    """An array of ones."""
    return _core._full(shape, 1, _float32 if dtype is None else dtype, device)


def full(shape, fill_value, *, dtype=None, device=None):
    """An array with the same number everywhere."""
    if isinstance(fill_value, NDArray):
        dtype = fill_value.dtype if dtype is None else dtype
        fill_value = fill_value.item()
    return _core._full(shape, fill_value, dtype, device)


def empty_like(x, /, *, dtype=None, device=None):
    """As empty, shape, type and device taken from x."""
    return empty(
        x.shape,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def zeros_like(x, /, *, dtype=None, device=None):
    """As zeros, shape, type and device taken from x."""
    return zeros(
        x.shape,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def ones_like(x, /, *, dtype=None, device=None):
    """As ones, shape, type and device taken from x."""
    return ones(
        x.shape,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """As full, shape, type and device taken from x."""
    return full(
        x.shape,
        fill_value,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Evenly spaced numbers from start up to, without, stop."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise _core.ArgumentError(
            f"error[array.arange.step]: arange from {start} to {stop} with step 0"
        )
    if dtype is None:
        dtype = _int64 if all_int(start, stop, step) else _float32
    if all_int(start, stop, step):
        count = _py.max(0, -((start - stop) // step))
    else:
        count = _py.max(0, _math.ceil((stop - start) / step))
    if (
        all_int(start, step)
        and _name(dtype) in _INTEGERS
        and (_py.abs(start) >= 2**52 or _py.abs(step) >= 2**52)
    ):
        return (
            asarray([start + i * step for i in range(count)], dtype=dtype, device=device)
            if count
            else empty(0, dtype=dtype)
        )
    return _core._arange(float(start), float(step), count, _dtype(dtype), device)


def all_int(*values):
    return _py.all(isinstance(v, int) for v in values)


def _dtype(d):
    return d if isinstance(d, _core.dtype) else _core.dtype(d)


def _name(d):
    return _dtype(d).name


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """num evenly spaced numbers over an interval."""
    if dtype is None:
        dtype = (
            _core.complex64 if isinstance(start, complex) or isinstance(stop, complex) else _float32
        )
    wide = _core.complex128 if _name(dtype) in _COMPLEX else _float64
    steps = num - 1 if endpoint else num
    t = arange(0, num, 1, dtype=_float64, device=device)
    if steps > 0:
        step = (stop - start) / steps
        y = t * step if step != 0 else t * (stop - start) / steps
    else:
        y = t * (stop - start)
    out = (y.astype(wide) if wide != _float64 else y) + start
    if endpoint and num > 1:
        out[num - 1] = stop
    return out.astype(dtype, copy=False)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on diagonal k, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    out = zeros((n_rows, n_cols), dtype=dtype, device=device)
    first = _py.max(0, -k)
    count = _py.min((n_rows - first, n_cols - _py.max(0, k)))
    if count > 0:
        diagonal = out.as_strided((out.size,), (1,))[first * n_cols + _py.max(0, k) :: n_cols + 1][
            :count
        ]
        diagonal[...] = 1
    return out


def tril(x, /, *, k=0):
    """The lower triangle; zeros above diagonal k."""
    return where(_triangle(x, k), x, zeros((), dtype=x.dtype, device=x.device))


def triu(x, /, *, k=0):
    """The upper triangle; zeros below diagonal k."""
    return where(_triangle(x, k - 1), zeros((), dtype=x.dtype, device=x.device), x)


def _triangle(x, k):
    if x.ndim < 2:
        raise _core.ShapeError(
            f"error[array.tril.rank]: a triangle needs two dimensions, not {x.ndim}"
        )
    rows = reshape(arange(x.shape[-2], device=x.device), (-1, 1))
    cols = arange(x.shape[-1], device=x.device)
    return cols <= rows + k


def meshgrid(*arrays, indexing="xy"):
    """Coordinate arrays of a grid."""
    if indexing not in ("xy", "ij"):
        raise _core.ArgumentError(
            f"error[array.meshgrid.indexing]: indexing is {indexing!r}, legal: 'xy', 'ij'"
        )
    n = len(arrays)
    swap = indexing == "xy" and n > 1
    out = []
    order = [1, 0, *range(2, n)] if swap else list(range(n))
    shape = tuple(arrays[i].shape[0] for i in order)
    for i, a in enumerate(arrays):
        line = [1] * n
        line[order.index(i)] = -1
        out.append(broadcast_to(reshape(a, tuple(line)), shape).copy())
    return out


# ---- types


def astype(x, dtype, /, *, copy=True, device=None):
    """The elements converted to another type."""
    if _is_tensor(x):
        return x.astype(dtype)
    if device is not None:
        x = x.to(device)
    if _name(x.dtype) in _COMPLEX and _name(dtype) not in _COMPLEX and _name(dtype) != "bool":
        raise _core.DTypeError(
            f"error[array.astype.complex]: {x.dtype} does not become {_name(dtype)}: use real() or imag()"
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
        raise _core.ArgumentError(
            f"error[array.result_type.empty]: result_type of {len(arrays_and_dtypes)} arguments without an array or type"
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


_pybool = type(True)

finfo_object = _namedtuple("finfo_object", "bits eps max min smallest_normal dtype")
iinfo_object = _namedtuple("iinfo_object", "bits max min dtype")
_FINFO = {  # precision bits, largest exponent, smallest normal exponent
    "float16": (10, 15, -14),
    "bfloat16": (7, 127, -126),
    "float32": (23, 127, -126),
    "float64": (52, 1023, -1022),
}


def finfo(type, /):
    """Limits of a floating-point type."""
    name = _name(getattr(type, "dtype", type))
    real = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    if real not in _FINFO:
        raise _core.DTypeError(f"error[array.finfo.dtype]: {name} is no floating-point type")
    digits, top, bottom = _FINFO[real]
    largest = (2.0 - 2.0**-digits) * 2.0**top
    return finfo_object(
        _dtype(real).itemsize * 8, 2.0**-digits, largest, -largest, 2.0**bottom, _dtype(real)
    )


def iinfo(type, /):
    """Limits of an integer type."""
    name = _name(getattr(type, "dtype", type))
    if name not in _INTEGERS:
        raise _core.DTypeError(f"error[array.iinfo.dtype]: {name} is no integer type")
    bits = _dtype(name).itemsize * 8
    if name in _UNSIGNED:
        return iinfo_object(bits, 2**bits - 1, 0, _dtype(name))
    return iinfo_object(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), _dtype(name))


_KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _INTEGERS,
    "real floating": _REALS,
    "complex floating": _COMPLEX,
    "numeric": (*_INTEGERS, *_REALS, *_COMPLEX),
}


def isdtype(dtype, kind):
    """Is the type one of a kind, of a tuple of kinds, or equal to a type?"""
    if isinstance(kind, tuple):
        for k in kind:
            if isdtype(dtype, k):
                return True
        return False
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise _core.ArgumentError(
                f"error[array.isdtype.kind]: unknown kind {kind!r}, legal: {', '.join(_KINDS)}"
            )
        return _name(dtype) in _KINDS[kind]
    return _name(dtype) == _name(kind)


# ---- manipulation


def broadcast_to(x, /, shape):
    """A view with extents of 1 repeated to a shape."""
    return x.broadcast_to(shape)


def broadcast_shapes(*shapes):
    """The shape that all these broadcast to."""
    return _core._broadcast_shapes([tuple(s) for s in shapes])


def broadcast_arrays(*arrays):
    """Views of all arrays in their common shape."""
    shape = broadcast_shapes(*[a.shape for a in arrays])
    return [a.broadcast_to(shape) for a in arrays]


def concat(arrays, /, *, axis=0):
    """Arrays joined along an axis; None flattens them first."""
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [a.reshape((-1,)) for a in arrays], 0
    if arrays and _is_tensor(arrays[0]):
        return arrays[0].concat(arrays, axis)
    return _core._concat([_array(a) for a in arrays], axis)


def stack(arrays, /, *, axis=0):
    """Arrays of one shape joined along a new axis."""
    arrays = list(arrays)
    for a in arrays[1:]:
        if a.shape != arrays[0].shape:
            raise _core.ShapeError(
                f"error[array.stack.shape]: stack of shapes {arrays[0].shape} and {a.shape}; they must be equal"
            )
    ndim = arrays[0].ndim
    if not -ndim - 1 <= axis <= ndim:
        raise _core.IndexError(
            f"error[array.stack.axis]: axis {axis} of stack is outside a result of {ndim + 1} dimensions"
        )
    axis = axis % (ndim + 1)
    return concat([expand_dims(a, axis=axis) for a in arrays], axis=axis)


def unstack(x, /, *, axis=0):
    """The slices along an axis, as a tuple."""
    x = moveaxis(x, axis, 0)
    return tuple(x[i, ...] for i in range(x.shape[0]))


def expand_dims(x, /, axis):
    """A view with an extra axis of extent 1."""
    if _is_tensor(x):
        axis = axis % (x.ndim + 1)
        return x.reshape((*x.shape[:axis], 1, *x.shape[axis:]))
    if isinstance(axis, tuple):
        n = x.ndim + len(axis)
        for a in sorted(a % n for a in axis):
            x = _core._expand_dims(x, a)
        return x
    return _core._expand_dims(x, axis)


def squeeze(x, /, axis):
    """A view without axes of extent 1."""
    return _core._squeeze(x, axis)


def reshape(x, /, shape, *, copy=None):
    """The elements in another shape; one extent may be -1."""
    if _is_tensor(x):
        return x.reshape(shape)
    return _core._reshape(x, shape, copy)


def permute_dims(x, /, axes):
    """A view with the axes in another order."""
    return x.permute(axes)


def matrix_transpose(x, /):
    """A view with the last two axes exchanged."""
    return x.mT


def moveaxis(x, source, destination, /):
    """A view with some axes moved."""
    source = (source,) if isinstance(source, int) else tuple(source)
    destination = (destination,) if isinstance(destination, int) else tuple(destination)
    source = [_axis(a, x.ndim, "moveaxis") for a in source]
    destination = [_axis(a, x.ndim, "moveaxis") for a in destination]
    order = [i for i in range(x.ndim) if i not in source]
    for d, s in sorted(zip(destination, source)):
        order.insert(d, s)
    return x.permute(tuple(order))


def _axis(axis, ndim, name):
    if not -ndim <= axis < _py.max(ndim, 1):
        raise _core.IndexError(
            f"error[array.{name}.axis]: axis {axis} of {name} is outside an array of {ndim} dimensions"
        )
    return axis + ndim if axis < 0 else axis


def flip(x, /, *, axis=None):
    """A view with axes reversed."""
    axes = tuple(range(x.ndim)) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    return x.flip(axes)


def roll(x, /, shift, *, axis=None):
    """Elements moved cyclically along axes."""
    if axis is None:
        return roll(reshape(x, (-1,)), shift, axis=0).reshape(x.shape)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if len(shifts) == 1:
        shifts = tuple(shifts) * len(axes)
    if len(axes) == 1:
        axes = tuple(axes) * len(shifts)
    out = x.copy()
    for s, a in zip(shifts, axes):
        a = _axis(a, x.ndim, "roll")
        n = x.shape[a]
        if n == 0 or s % n == 0:
            continue
        s = s % n
        front = (slice(None),) * a
        out = concat([out[(*front, slice(n - s, None))], out[(*front, slice(0, n - s))]], axis=a)
    return out


def repeat(x, repeats, /, *, axis=None):
    """Each element several times."""
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = _axis(axis, x.ndim, "repeat")
    n = x.shape[axis]
    if isinstance(repeats, int):
        index = (
            arange(n * repeats, device=x.device) // repeats
            if repeats
            else empty(0, dtype=_int64, device=x.device)
        )
    else:
        counts = broadcast_to(astype(asarray(repeats), _int64), (n,))
        ends = cumulative_sum(counts) if n else counts
        total = int(ends[n - 1]) if n else 0
        index = searchsorted(ends, arange(total, device=x.device), side="right")
    return take(x, index, axis=axis)


def tile(x, repetitions, /):
    """The whole array several times along each axis."""
    reps = tuple(repetitions)
    ndim = _py.max(len(reps), x.ndim)
    reps = (1,) * (ndim - len(reps)) + reps
    shape = (1,) * (ndim - x.ndim) + x.shape
    pairs = tuple(v for pair in zip(reps, shape) for v in pair)
    thin = tuple(v for n in shape for v in (1, n))
    return reshape(broadcast_to(reshape(x, thin), pairs), tuple(r * n for r, n in zip(reps, shape)))


def pad(x, widths, /, *, value=0):
    """A border of `value`: ((before, after), ...) for every axis."""
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, widths))
    out = full(shape, value, dtype=x.dtype, device=x.device)
    out[tuple(slice(a, a + n) for n, (a, b) in zip(x.shape, widths))] = x
    return out


# ---- indexing, searching, sorting, sets


def take(x, indices, /, *, axis=None):
    """Entries at positions along an axis."""
    if axis is None:
        if x.ndim != 1:
            raise _core.ArgumentError(
                f"error[array.take.axis]: take from {x.ndim} dimensions needs an axis"
            )
        axis = 0
    return _core._take(x, _array(indices), axis)


def take_along_axis(x, indices, /, *, axis=-1):
    """Entries at positions that differ from line to line."""
    return _core._take_along_axis(x, indices, axis)


def where(condition, x1, x2, /):
    """x1 where the condition holds, else x2."""
    if _is_tensor(x1) or _is_tensor(x2):
        return (x1 if _is_tensor(x1) else x2).where(condition, x1, x2)
    if not isinstance(x1, NDArray) and not isinstance(x2, NDArray):
        x1 = asarray(x1)
    return _core._where(_array(condition), x1, x2)


def argmax(x, /, *, axis=None, keepdims=False):
    """Position of the largest element; the first of equals."""
    return _core._arg_reduce(True, x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Position of the smallest element; the first of equals."""
    return _core._arg_reduce(False, x, axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not zero."""
    return _core._reduce("sum", x.astype(_bool), axis, keepdims, _int64)


def nonzero(x, /):
    """Positions of the elements that are not zero, one array for each axis."""
    return tuple(_core._nonzero(x))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where the elements of x2 would go in the sorted x1."""
    if side not in ("left", "right"):
        raise _core.ArgumentError(
            f"error[array.searchsorted.side]: side is {side!r}, legal: 'left', 'right'"
        )
    if sorter is not None:
        x1 = take(x1, sorter, axis=0)
    return _core._searchsorted(x1, _array(x2), side == "right")


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """A sorted copy; NaN last."""
    return _core._sort(x, axis, descending)


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """Positions that would sort the array; NaN last."""
    return _core._argsort(x, axis, descending)


unique_all_result = _namedtuple("unique_all_result", "values indices inverse_indices counts")
unique_counts_result = _namedtuple("unique_counts_result", "values counts")
unique_inverse_result = _namedtuple("unique_inverse_result", "values inverse_indices")


def unique_all(x, /):
    """Distinct elements with first positions, inverse positions and counts; every NaN is distinct."""
    flat = reshape(x, (-1,))
    n = flat.size
    if n == 0:
        none = empty(0, dtype=_int64, device=x.device)
        return unique_all_result(flat.copy(), none, none.reshape(x.shape), none)
    if _name(x.dtype) in _COMPLEX:
        order = argsort(_row("imag")(flat))
        order = take(order, argsort(take(_row("real")(flat), order, axis=0)), axis=0)
    else:
        order = argsort(flat)
    ordered = take(flat, order, axis=0)
    fresh = ones(n, dtype=_bool, device=x.device)
    fresh[1:] = ordered[1:] != ordered[:-1]
    starts = nonzero(fresh)[0]
    values = take(ordered, starts, axis=0)
    ends = concat([starts[1:], asarray([n], device=x.device)])
    inverse = empty(n, dtype=_int64, device=x.device)
    inverse[order] = cumulative_sum(fresh.astype(_int64)) - 1
    return unique_all_result(
        values, take(order, starts, axis=0), inverse.reshape(x.shape), ends - starts
    )


def unique_counts(x, /):
    """Distinct elements and how often each occurs."""
    full_result = unique_all(x)
    return unique_counts_result(full_result.values, full_result.counts)


def unique_inverse(x, /):
    """Distinct elements and the positions that rebuild x."""
    full_result = unique_all(x)
    return unique_inverse_result(full_result.values, full_result.inverse_indices)


def unique_values(x, /):
    """Distinct elements."""
    return unique_all(x).values


def isin(x1, x2, /, *, invert=False):
    """Which elements of x1 occur in x2?"""
    x2 = sort(reshape(_array(x2), (-1,)))
    if x2.size == 0:
        found = zeros(x1.shape, dtype=_bool, device=x1.device)
    else:
        at = _row("minimum")(searchsorted(x2, x1), x2.size - 1)
        found = reshape(take(x2, reshape(at, (-1,)), axis=0), x1.shape) == x1
    return ~found if invert else found


# ---- statistics


def _reduction(name, x, axis, keepdims, dtype=None):
    if _is_tensor(x):
        return getattr(x, name)(axis, keepdims)
    return _core._reduce(name, x, axis, keepdims, dtype)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """Sum of elements."""
    return _reduction("sum", x, axis, keepdims, dtype)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """Product of elements."""
    return _reduction("prod", x, axis, keepdims, dtype)


def max(x, /, *, axis=None, keepdims=False):
    """Largest element; NaN if there is one."""
    return _reduction("max", x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """Smallest element; NaN if there is one."""
    return _reduction("min", x, axis, keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """Is every element true?"""
    return _reduction("all", x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Is some element true?"""
    return _reduction("any", x, axis, keepdims)


def _count(x, axis):
    if axis is None:
        return x.size
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return _math.prod(x.shape[a] for a in axes)


def mean(x, /, *, axis=None, keepdims=False):
    """Arithmetic mean."""
    if _is_tensor(x):
        return x.mean(axis, keepdims)
    if _name(x.dtype) in _INTEGERS or _name(x.dtype) == "bool":
        x = x.astype(_float32)
    if _name(x.dtype) in ("float16", "bfloat16"):
        return (_core._reduce("sum", x, axis, keepdims, _float32) / _count(x, axis)).astype(x.dtype)
    return sum(x, axis=axis, keepdims=keepdims) / _count(x, axis)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Variance, over n - correction."""
    narrow = _name(x.dtype) in ("float16", "bfloat16")
    wide = x.astype(_float32) if narrow or _name(x.dtype) in _INTEGERS else x
    centred = wide - mean(wide, axis=axis, keepdims=True)
    total = sum(centred * centred, axis=axis, keepdims=keepdims)
    n = _count(x, axis) - correction
    out = total / n if n > 0 else total * nan
    return out.astype(x.dtype) if narrow else out


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Standard deviation."""
    return _row("sqrt")(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _cumulative(name, x, axis, dtype, include_initial):
    if axis is None:
        if x.ndim > 1:
            raise _core.ArgumentError(
                f"error[array.cumulative_{name}.axis]: {x.ndim} dimensions need an axis"
            )
        axis = 0
    if x.ndim == 0:
        x = reshape(x, (1,))
    out = _core._scan(name, x, axis, dtype)
    if include_initial:
        axis = _axis(axis, x.ndim, f"cumulative_{name}")
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        out = concat(
            [full(shape, 0 if name == "sum" else 1, dtype=out.dtype, device=x.device), out],
            axis=axis,
        )
    return out


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running sum."""
    return _cumulative("sum", x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running product."""
    return _cumulative("prod", x, axis, dtype, include_initial)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours, n times."""
    parts = [p for p in (prepend, x, append) if p is not None]
    if len(parts) > 1:
        x = concat(parts, axis=axis)
    axis = _axis(axis, x.ndim, "diff")
    front = (slice(None),) * axis
    for _ in range(n):
        a, b = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = (a != b) if _name(x.dtype) == "bool" else a - b
    return x


def clip(x, /, min=None, max=None):
    """Elements limited to [min, max]."""

    def bound(b):
        if isinstance(b, NDArray) or not isinstance(b, (int, float)) or isinstance(b, _pybool):
            return b
        if _name(x.dtype) in _INTEGERS:  # a limit outside the type does not bind
            info = iinfo(x.dtype)
            return int(_py.min(_py.max(b, info.min), info.max))
        return b

    out = x
    if min is not None:
        out = _row("maximum")(out, bound(min))
    if max is not None:
        out = _row("minimum")(out, bound(max))
    if isinstance(out, NDArray) and out.dtype != x.dtype and isinstance(x, NDArray):
        out = out.astype(x.dtype)
    return out.copy() if out is x and isinstance(x, NDArray) else out


# ---- products


def matmul(x1, x2, /):
    """Matrix product over the last two axes; the others broadcast."""
    if _is_tensor(x1) or _is_tensor(x2):
        return x1 @ x2
    return _core._matmul(x1, x2)


def tensordot(x1, x2, /, *, axes=2):
    """Sum of products over several axes."""
    if isinstance(axes, int):
        a1 = list(range(x1.ndim - axes, x1.ndim))
        a2 = list(range(axes))
    else:
        a1, a2 = ([s] if isinstance(s, int) else list(s) for s in axes)
    a1 = [_axis(a, x1.ndim, "tensordot") for a in a1]
    a2 = [_axis(a, x2.ndim, "tensordot") for a in a2]
    for i, j in zip(a1, a2):
        if x1.shape[i] != x2.shape[j]:
            raise _core.ShapeError(
                f"error[array.tensordot.extent]: tensordot over axes {i} and {j}: {x1.shape[i]} and {x2.shape[j]} differ"
            )
    free1 = [i for i in range(x1.ndim) if i not in a1]
    free2 = [i for i in range(x2.ndim) if i not in a2]
    n = _math.prod(x1.shape[i] for i in a1)
    left = reshape(permute_dims(x1, (*free1, *a1)), (_math.prod(x1.shape[i] for i in free1), n))
    right = reshape(permute_dims(x2, (*a2, *free2)), (n, _math.prod(x2.shape[i] for i in free2)))
    shape = tuple(x1.shape[i] for i in free1) + tuple(x2.shape[i] for i in free2)
    return reshape(matmul(left, right), shape)


def vecdot(x1, x2, /, *, axis=-1):
    """Sum of conj(x1) * x2 along an axis."""
    if _name(x1.dtype) in _COMPLEX:
        x1 = _row("conj")(x1)
    if axis >= 0:
        raise _core.ArgumentError(
            f"error[array.vecdot.axis]: axis {axis} must be negative: the arrays broadcast"
        )
    if x1.shape[axis] != x2.shape[axis]:
        raise _core.ShapeError(
            f"error[array.vecdot.extent]: vecdot of extents {x1.shape[axis]} and {x2.shape[axis]}"
        )
    a, b = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    product = matmul(expand_dims(a, axis=-2), expand_dims(b, axis=-1))
    return squeeze(product, (-2, -1))


def einsum(spec, *operands):
    """Sum of products by letters: "ij,jk->ik"; "..." broadcasts."""
    from ._einsum import einsum as implementation

    return implementation(spec, *operands)


def softmax(x, /, *, axis=-1):
    """exp(x) / sum(exp(x)) along an axis, without overflow. Real floats."""
    return x.softmax(axis) if _is_tensor(x) else _core._softmax(_array(x), axis)


def log_softmax(x, /, *, axis=-1):
    """x - log(sum(exp(x))) along an axis, without overflow. Real floats."""
    return x.log_softmax(axis) if _is_tensor(x) else _core._log_softmax(_array(x), axis)


def logsumexp(x, /, *, axis=None, keepdims=False):
    """log(sum(exp(x))) along axes, without overflow. Real floats."""
    if _is_tensor(x):
        return x.logsumexp(axis, keepdims)
    return _core._logsumexp(_array(x), axis, keepdims)


def layer_norm(x, scale, shift, /, *, eps=1e-5):
    """(x - mean) / sqrt(variance + eps) * scale + shift over the last axis; scale and shift hold one row."""
    if _is_tensor(x):
        return x.layer_norm(scale, shift, eps)
    return _core._layer_norm(_array(x), _array(scale), _array(shift), eps)


__all__ = [
    "__array_namespace_info__",
    "e",
    "pi",
    "inf",
    "nan",
    "newaxis",
    *_operations,
    "asarray",
    "array",
    "from_dlpack",
    "empty",
    "zeros",
    "ones",
    "full",
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "arange",
    "linspace",
    "eye",
    "tril",
    "triu",
    "meshgrid",
    "astype",
    "can_cast",
    "result_type",
    "finfo",
    "iinfo",
    "isdtype",
    "broadcast_to",
    "broadcast_shapes",
    "broadcast_arrays",
    "concat",
    "stack",
    "unstack",
    "expand_dims",
    "squeeze",
    "reshape",
    "permute_dims",
    "matrix_transpose",
    "moveaxis",
    "flip",
    "roll",
    "repeat",
    "tile",
    "pad",
    "take",
    "take_along_axis",
    "where",
    "argmax",
    "argmin",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "argsort",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "isin",
    "sum",
    "prod",
    "max",
    "min",
    "all",
    "any",
    "mean",
    "var",
    "std",
    "cumulative_sum",
    "cumulative_prod",
    "diff",
    "clip",
    "matmul",
    "tensordot",
    "vecdot",
    "einsum",
    "softmax",
    "layer_norm",
    "log_softmax",
    "logsumexp",
]
