# SPDX-License-Identifier: Apache-2.0
"""What NumPy's programs ask of arrays: made from buffers and functions, written by masks, compared by memory, packed bits."""

from __future__ import annotations

import sys
import os

import weft

from .._core import shown
from .. import _core
from .._boundary import direct
from .._core import NDArray, Tensor
from .._pointwise import composed
from .common import axis_of, beside, plain, real, refused, value


def asanyarray(a, dtype=None):
    """As asarray; arrays and tensors stay what they are. a: any shape and type."""
    x = value(a)
    return x if dtype is None else x.astype(dtype)


def asfarray(a, dtype=None):
    """As an array of floats: whole numbers and truth values become the default float."""
    return real(a) if dtype is None else value(a).astype(dtype)


def asarray_chkfinite(a, dtype=None):
    """As asarray. Raises ArgumentError where an element is infinite or NaN."""
    x = asanyarray(a, dtype)
    if x.dtype.kind in "fc" and not bool(weft.all(weft.isfinite(plain(x)))):
        raise refused("array.chkfinite", "an array with infinite elements or NaN", "finite numbers")
    return x


def ascontiguousarray(a, dtype=None):
    """With its elements in order without gaps, at least one axis; a copy where it was not."""
    x = asanyarray(a, dtype)
    x = x.reshape(1) if x.ndim == 0 else x
    return x.contiguous()


def asfortranarray(a, dtype=None):
    """With the first axis the one whose elements are neighbours in memory; shape and elements are those of a."""
    x = plain(asanyarray(a, dtype))
    order = tuple(reversed(range(x.ndim)))
    return x.permute(order).contiguous().permute(order) if x.ndim > 1 else x.contiguous()


def isfortran(a):
    """Are the elements in order along the first axis, and not along the last?"""
    x = plain(a)
    turned = x.permute(tuple(reversed(range(x.ndim))))
    return x.ndim > 1 and turned.is_contiguous() and not x.is_contiguous()


def require(a, dtype=None, requirements=()):
    """An array that meets C (or F) order, A, O and W of NumPy: a copy where it does not."""
    wanted = {str(r).upper()[0] for r in requirements}
    if wanted - set("CFAOWE"):
        raise refused("array.require", f"requirements {sorted(wanted)}", "C, F, A, O, W, E")
    x = asanyarray(a, dtype)
    return asfortranarray(x) if "F" in wanted else x.contiguous() if "C" in wanted else x


def frombuffer(buffer, dtype=None, count=-1, offset=0, *, requires_grad=False):
    """A vector over bytes: `count` elements of a type (float64 as in NumPy) from a byte on; -1 takes all that are there."""
    import numpy as np

    kind = weft.float64 if dtype is None else weft.asarray(0).astype(dtype).dtype
    raw = np.frombuffer(buffer, np.uint8)[offset:]
    size = kind.itemsize
    n = raw.size // size if count < 0 else count
    if n * size > raw.size or (count < 0 and raw.size % size):
        raise refused(
            "array.frombuffer.size",
            f"{raw.size} bytes for {'all' if count < 0 else count} elements of {kind}",
            f"a multiple of {size} bytes, as many as are asked for",
        )
    return weft._core._from_bytes(raw[: n * size].tobytes(), (n,), kind)


def fromfile(file, dtype=None, count=-1, sep="", offset=0):
    """A vector of the numbers in a file: bytes of a type, or text with a separator."""
    if hasattr(file, "read"):
        text = file.read()
        return fromstring(text, dtype, count, sep=sep) if sep else frombuffer(text, dtype, count, offset)  # fmt: skip
    file = os.fspath(file)  # a number would be a descriptor: 0 waits for the terminal
    if sep:
        with open(file) as f:
            return fromstring(f.read(), dtype, count, sep=sep)
    with open(file, "rb") as f:
        return frombuffer(f.read(), dtype, count, offset)


def fromstring(text, dtype=None, count=-1, *, sep=" "):
    """A vector of the numbers in a text."""
    parts = text.split() if not sep.strip() else text.split(sep.strip())
    kind = weft.float64 if dtype is None else dtype
    numbers = [float(p) for p in parts if p.strip()]
    return weft.asarray(numbers if count < 0 else numbers[:count], dtype="float64").astype(kind)


def fromiter(iterable, dtype, count=-1):
    """A vector of what an iterable gives, `count` elements at most; all of them when it is -1."""
    import itertools

    items = list(iterable if count < 0 else itertools.islice(iterable, count))
    if count > len(items):
        raise refused("array.fromiter.count", f"{len(items)} elements of {count}", "count elements")
    items = [x.item() if hasattr(x, "item") else x for x in items]
    return weft.asarray(items, dtype=dtype) if items else weft.zeros((0,), dtype=dtype)


def fromfunction(function, shape, *, dtype="float64", **kwargs):
    """function(positions along axis 0, along axis 1, ...) of a grid; positions are arrays of this shape and type."""
    at = weft.indices((shape,) if isinstance(shape, int) else shape, dtype=dtype)
    return function(*weft.unstack(at, axis=0), **kwargs)


@direct(_core._direct_copyto)
def copyto(dst, src, casting="same_kind", where=True):
    """Writes src, which broadcasts, into dst; only where a mask is true."""
    _write(dst, src, where)


def putmask(a, mask, values):
    """Writes into a where the mask is true: values[n] at the n-th element of a, values repeated as often as needed."""
    values = plain(beside(values, a)).reshape(-1)
    if not values.size:
        raise refused("array.putmask.values", "putmask without values", "one value at least")
    n = a.size
    full = weft.take(values, weft.arange(n, device=a.device) % values.size, axis=0).reshape(a.shape)
    _write(a, full, mask)


def _write(dst, src, where):
    data = dst.data if isinstance(dst, Tensor) else dst
    if not isinstance(data, NDArray):
        raise refused("array.write.place", f"a {type(dst).__name__} to write to", "an array")
    src = weft.broadcast_to(
        plain(beside(src, data)).astype(data.dtype, copy=False), tuple(data.shape)
    )
    if where is not True:
        mask = weft.broadcast_to(plain(beside(where, data)), tuple(data.shape)).astype("bool")
        src = weft.where(mask, src, data)
    data[...] = src


def array_equiv(a, b):
    """Are all elements equal after broadcasting? False where the shapes do not fit."""
    a, b = plain(a), plain(b)
    pairs = zip(reversed(a.shape), reversed(b.shape))
    return all(n == m or 1 in (n, m) for n, m in pairs) and bool(weft.all(a == b))


def isscalar(element):
    """Is it a number or a text, and no array?"""
    import numbers

    return isinstance(element, (numbers.Number, str, bytes)) or (
        type(element).__module__ == "numpy" and getattr(element, "ndim", None) == 0
        and type(element).__name__ != "ndarray"
    )  # fmt: skip


def iscomplexobj(x):
    """Is its element type complex?"""
    return isinstance(x, complex) or value(x).dtype.kind == "c"


def isrealobj(x):
    """Is its element type not complex?"""
    return not iscomplexobj(x)


def iterable(x):
    """Can one iterate over it?"""
    try:
        iter(x)
    except TypeError:
        return False
    return getattr(x, "ndim", 1) > 0


def _span(x):
    """First and last byte of an array on the host."""
    import numpy as np

    place = np.asarray(x)
    low, high = (np.byte_bounds if hasattr(np, "byte_bounds") else np.lib.array_utils.byte_bounds)(place)  # fmt: skip
    return low, high


def may_share_memory(a, b):
    """Could both lie in the same memory? Compared by the first and the last byte."""
    a, b = (x.data if isinstance(x, Tensor) else x for x in (a, b))
    if not all(hasattr(x, "dtype") and hasattr(x, "shape") for x in (a, b)):
        return False
    if isinstance(a, NDArray) and isinstance(b, NDArray):
        if a.device != b.device or not a.size or not b.size:
            return False
        if not a.device.host_accessible:
            return a.handle == b.handle
    low, high = _span(a)
    first, last = _span(b)
    return bool(low < last and first < high)


def shares_memory(a, b):
    """Have both an element in common? On the host exactly; elsewhere whether they are views of one storage."""
    import numpy as np

    if not may_share_memory(a, b):
        return False
    a, b = (x.data if isinstance(x, Tensor) else x for x in (a, b))
    if isinstance(a, NDArray) and not a.device.host_accessible:
        return True
    return bool(np.shares_memory(np.asarray(a), np.asarray(b)))


def apply_over_axes(function, a, axes):
    """function(a, axis) for one axis after another; an axis that it takes away stays with extent 1."""
    x = value(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        axis = axis_of(x, axis)
        out = function(x, axis)
        x = weft.expand_dims(out, axis=axis) if out.ndim == x.ndim - 1 else out
    return x


def _square(x):
    x = plain(x)
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise refused(
            "array.square", f"an array of shape {tuple(x.shape)}", "equal extents, two at least"
        )
    return x


def diag_indices_from(x):
    """The positions of the diagonal of an array with equal extents."""
    x = _square(x)
    return weft.diag_indices(x.shape[0], x.ndim)


def tril_indices_from(x, k=0):
    """The positions on and below the k-th diagonal of a matrix, as (rows, columns)."""
    x = plain(x)
    return tuple(weft.tril_indices(x.shape[-2], k, x.shape[-1]))


def triu_indices_from(x, k=0):
    """The positions on and above the k-th diagonal of a matrix, as (rows, columns)."""
    x = plain(x)
    return tuple(weft.triu_indices(x.shape[-2], k, x.shape[-1]))


def mask_indices(n, mask_func, k=0):
    """The positions where mask_func(ones of (n, n), k) is not zero: mask_indices(3, weft.triu)."""
    return weft.nonzero(mask_func(weft.ones((n, n), dtype="int64"), k))


def nancumprod(x, axis=None, *, dtype=None):
    """Running products along an axis in which NaN counts as 1; of all elements in a row when axis is None."""
    x = value(x)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    if x.dtype.kind in "fc":
        x = weft.where(weft.isnan(plain(x)), 1.0, x)
    return weft.cumulative_prod(x, axis=axis, dtype=dtype)


def _ordered(bitorder):
    if bitorder not in ("big", "little"):
        raise refused("array.bits.order", f"bitorder {shown(bitorder)}", "big or little")
    return bitorder


def _in_words(x):
    return x.device.host_accessible and sys.byteorder == "little"


def packbits(a, axis=None, bitorder="big"):
    """Truth values, or whole numbers that are 0 or not, eight to a byte along an axis; uint8."""
    x, order = plain(a), _ordered(bitorder)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))
    last = axis == x.ndim - 1
    x = x if x.dtype == "bool" else x != 0
    x = x if last else weft.moveaxis(x, axis, -1)
    if _in_words(x):
        out = _core._packed_bits(x, order == "big")
    else:
        x = weft.pad(x.astype("uint8"), [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 8)])
        x = x.reshape((*x.shape[:-1], x.shape[-1] // 8, 8))
        out = weft.sum(x * _bits(x, order), axis=-1, dtype="uint8")
    return out if last else weft.moveaxis(out, -1, axis)


def _bits(x, bitorder):
    weights = [1 << k for k in range(8)]
    return weft.asarray(
        weights if bitorder == "little" else weights[::-1], dtype="uint8", device=x.device
    )


def unpackbits(a, axis=None, count=None, bitorder="big"):
    """The bits of uint8, eight zeros and ones for a byte along an axis; `count` of them, or all but -count."""
    x, order = plain(a), _ordered(bitorder)
    if x.dtype != weft.uint8:
        raise refused("array.bits.type", f"unpackbits of {x.dtype}", "uint8")
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis_of(x, axis))
    last = axis == x.ndim - 1
    x = x if last else weft.moveaxis(x, axis, -1)
    if _in_words(x):
        bits = _core._unpacked_bits(x, order == "big")
    else:
        x = weft.expand_dims(x, axis=-1)
        bits = ((x & _bits(x, order)) != 0).astype("uint8")
        bits = bits.reshape((*bits.shape[:-2], bits.shape[-2] * 8))
    if count is not None:
        n = bits.shape[-1]
        bits = bits[..., :count] if count <= n else weft.concat(
            [bits, weft.zeros((*bits.shape[:-1], count - n), dtype="uint8", device=x.device)], axis=-1
        )  # fmt: skip
    return bits if last else weft.moveaxis(bits, -1, axis)


@composed
def _counted_bits(x, width):
    """Bits of unsigned numbers: in pairs, in fours, in bytes, whose sum a product has in its highest byte."""
    ones = sum(1 << k for k in range(0, width, 8))
    x = x - ((x >> 1) & (0x55 * ones))
    x = (x & (0x33 * ones)) + ((x >> 2) & (0x33 * ones))
    x = (x + (x >> 4)) & (0x0F * ones)
    return ((x * ones) >> (width - 8)).astype("uint8")


def bitwise_count(x):
    """How many bits of |x| are set; uint8. Whole numbers only."""
    x = plain(x)
    if x.dtype.kind not in "iub":
        raise refused("array.bits.count", f"bitwise_count of {x.dtype}", "whole numbers")
    if x.device.host_accessible and isinstance(x, NDArray):
        return _core._counted_bits(x)
    width = 8 * x.dtype.itemsize
    x = weft.abs(x) if x.dtype.kind == "i" else x
    return _counted_bits(x.astype(f"uint{width}", copy=False), width)


def real_if_close(a, tol=100):
    """The real part of complex numbers whose imaginary parts are all below tol steps of the type (or tol itself below 1)."""
    x = value(a)
    if x.dtype.kind != "c":
        return x
    limit = weft.finfo(x.dtype).eps * tol if tol > 1 else tol
    near = bool(weft.all(weft.abs(weft.imag(plain(x))) < limit))
    return weft.real(x) if near else x


def row_stack(arrays):
    """As vstack: arrays below one another."""
    return weft.vstack(arrays)


def sort_complex(x):
    """Sorted along the last axis by real parts, equal ones by imaginary parts, as complex numbers."""
    x = plain(x)
    if x.dtype.kind != "c":
        wide = x.dtype.itemsize > 2 and x.dtype != weft.float32
        return weft.sort(x, axis=-1).astype("complex128" if wide else "complex64")
    order = weft.lexsort((weft.imag(x), weft.real(x)), axis=-1)
    return weft.take_along_axis(x, order, axis=-1)


def spacing(x):
    """The distance to the next larger number in magnitude, with the sign of x; NaN for infinities."""
    x = plain(real(x))
    size = weft.abs(x)
    step = weft.nextafter(size, weft.full_like(size, float("inf"))) - size
    step = weft.where(weft.isinf(x), float("nan"), step)
    return weft.where(weft.signbit(x) & ~weft.isnan(x), -step, step)
