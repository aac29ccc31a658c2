# SPDX-License-Identifier: Apache-2.0
"""Arrays from numbers, sequences and other libraries."""

from __future__ import annotations

import builtins as _py
import math as _math

from .._core import shown as _shown
from .. import _core
from .._core import NDArray
from .._boundary import direct as _direct
from .._boundary import public as _public
from .._boundary import publish as _publish
from .._errors import error as _error
from .common import _COMPLEX, _INTEGERS, _axis, _dtype, _float32, _float64, _int64, _name, all_int


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An array of a number, nested sequence, buffer, DLPack tensor or array; shares memory where it may."""
    return _core._asarray(obj, dtype, device, copy)


def array(obj, dtype=None, device=None):
    """A new array with a copy of the elements."""
    return _core._asarray(obj, dtype, device, True)


def _of_type(dtype, x=0):
    """weft.float32(x), as NumPy writes it: x as an array of the type; a number has no axes."""
    return array(x, dtype)


_core.dtype.__call__ = _public(_of_type, "dtype", "__call__")


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over the memory of any DLPack exporter."""
    return _core._from_dlpack(x, device, copy)


def _shape(name, shape, more):
    """A shape given extent by extent, as PyTorch takes it."""
    if not isinstance(shape, int) or not all_int(*more):
        raise _error(
            _core.ArgumentError,
            f"array.{name}.shape",
            f"{name} got {_shown(shape)} and {', '.join(map(repr, more))}",
            ["legal: a shape, or extents one by one"],
            help="name the type: dtype=...",
        )
    return (shape, *more)


def empty(shape, *more, dtype=None, device=None):
    """An array with unset elements."""
    return _core._empty(_shape("empty", shape, more) if more else shape, dtype, device)


def zeros(shape, *more, dtype=None, device=None):
    """An array of zeros."""
    shape = _shape("zeros", shape, more) if more else shape
    return _core._full(shape, 0, _float32 if dtype is None else dtype, device)


def ones(shape, *more, dtype=None, device=None):
    """An array of ones."""
    shape = _shape("ones", shape, more) if more else shape
    return _core._full(shape, 1, _float32 if dtype is None else dtype, device)


def full(shape, fill_value, *, dtype=None, device=None):
    """An array with the same number everywhere."""
    if isinstance(fill_value, NDArray):
        dtype = fill_value.dtype if dtype is None else dtype
        fill_value = fill_value.item()
    return _core._full(shape, fill_value, dtype, device)


def empty_like(x, /, *, dtype=None, device=None, shape=None):
    """As empty, shape, type and device taken from x."""
    return empty(
        x.shape if shape is None else shape,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def zeros_like(x, /, *, dtype=None, device=None, shape=None):
    """As zeros, shape, type and device taken from x."""
    return zeros(
        x.shape if shape is None else shape,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def ones_like(x, /, *, dtype=None, device=None, shape=None):
    """As ones, shape, type and device taken from x."""
    return ones(
        x.shape if shape is None else shape,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def full_like(x, /, fill_value, *, dtype=None, device=None, shape=None):
    """As full, shape, type and device taken from x; fill_value may be an array that broadcasts."""
    if getattr(fill_value, "ndim", 0):
        import weft

        out = full_like(x, 0, dtype=dtype, device=device, shape=shape)
        weft.copyto(out, fill_value, casting="unsafe")
        return out
    return full(
        x.shape if shape is None else shape,
        fill_value,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


@_direct(_core._direct_arange)
def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Evenly spaced numbers from start up to, without, stop."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise _error(
            _core.ArgumentError,
            "array.arange.step",
            f"arange from {start} to {stop} with step 0",
            help="give a step above or below 0",
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


def _moved(ndim, axis):
    """The order of axes with the first one at `axis`."""
    order = list(range(1, ndim))
    order.insert(_axis(axis, ndim, "linspace"), 0)
    return order


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True, retstep=False, axis=0):
    """num evenly spaced numbers over an interval; of arrays between their elements, along a new axis.

    retstep=True: with the distance of neighbours.
    """
    if retstep:
        step = (stop - start) / _py.max(num - endpoint, 1)
        how = {"dtype": dtype, "device": device, "endpoint": endpoint, "axis": axis}
        return linspace(start, stop, num, **how), step
    if _py.any(getattr(v, "ndim", 0) or isinstance(v, (list, tuple)) for v in (start, stop)):
        start, stop = (asarray(v, device=device) for v in (start, stop))
        start, stop = (v if v.dtype.kind in "fc" else v.astype(_float32) for v in (start, stop))
        share = linspace(0, 1, num, dtype=start.dtype, device=start.device, endpoint=endpoint)
        share = share.reshape((num, *[1] * _py.max(start.ndim, stop.ndim)))
        out = start + (stop - start) * share
        if axis != 0:
            out = out.permute(*_moved(out.ndim, axis))
        return out if dtype is None else out.astype(dtype)
    if num < 0:
        raise _error(
            _core.ArgumentError,
            "array.linspace.number",
            f"linspace of {num} numbers",
            help="ask for 0 or more numbers",
        )
    if dtype is None:
        dtype = (
            _core.complex64 if isinstance(start, complex) or isinstance(stop, complex) else _float32
        )
    if num > 1 and _name(dtype) in ("float32", "float64"):
        step = (stop - start) / (num - 1 if endpoint else num)
        if step != 0 or start == stop:
            out = _core._arange(float(start), float(step), num, _dtype(dtype), device)
            if endpoint:
                out[num - 1] = stop
            return out
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


def eye(n_rows, n_cols=None, k=0, *, dtype=None, device=None):
    """Ones on diagonal k, zeros elsewhere."""
    return _core._eye(n_rows, n_rows if n_cols is None else n_cols, k, dtype, device)


__all__ = [
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

_publish(__name__)
