# SPDX-License-Identifier: Apache-2.0
"""Helpers for host programs: views of copied words, packing for streams, time stamps."""

from __future__ import annotations

import numpy as np
import weft
from weft._boundary import publish as _publish
from weft._wse_library import value_error as _value_error


def _array(given):
    """As NumPy's. Lists that hold themselves, or more than a host has room for, are refused as weft.asarray refuses them."""
    if not isinstance(given, np.ndarray) and not hasattr(given, "__array__"):
        weft.asarray(given)
    return np.asarray(given)


def memcpy_view(arr: np.ndarray, datatype=None, *, dtype=None) -> np.ndarray:
    """`arr` of 32-bit words seen as `datatype`: the words themselves, or their low halves (bytes) for 16-bit (8-bit) types."""
    if datatype is None and dtype is None:
        raise TypeError(
            "memcpy_view wants the type of the elements: memcpy_view(words, np.float16)"
        )
    dtype = np.dtype(dtype if datatype is None else datatype)
    if arr.dtype.itemsize != 4:
        raise ValueError(f"memcpy_view wants 32-bit words, not {arr.dtype}")
    if dtype.itemsize == 4:
        return arr.view(dtype)
    if dtype.itemsize in (1, 2):
        return arr.view(dtype).reshape(*arr.shape[:-1], -1)[..., :: 4 // dtype.itemsize]
    raise ValueError(
        f"memcpy_view: elements of {dtype} have {dtype.itemsize} bytes; legal are 1, 2 and 4"
    )


def input_array_to_u32(
    np_arr: np.ndarray | None = None,
    sentinel: int | None = None,
    fast_dim_sz: int = 1,
    *,
    arr: np.ndarray | None = None,
) -> np.ndarray:
    """16-bit values in the low halves of 32-bit words; with a sentinel the high halves count the elements of
    each run of `fast_dim_sz`, and 32-bit values pass as they are."""
    given = np_arr if arr is None else arr  # programs say np_arr, the reference of SDK 2.10 arr
    if given is None:
        raise TypeError("input_array_to_u32 wants an array: input_array_to_u32(x, sentinel, size)")
    flat = np.ascontiguousarray(_array(given)).ravel()
    if flat.dtype.itemsize == 4:
        return flat.view(np.uint32).copy()
    if flat.dtype.itemsize != 2:
        raise ValueError(
            f"input_array_to_u32: elements of {flat.dtype} have {flat.dtype.itemsize} bytes; legal are 2 and 4"
        )
    words = flat.view(np.uint16).astype(np.uint32)
    if sentinel is not None:
        words |= (np.arange(flat.size, dtype=np.uint32) % np.uint32(fast_dim_sz)) << np.uint32(16)
    return words


def calculate_cycles(timestamp_buf) -> int:
    """Cycles between two 48-bit time stamps: six 16-bit words (alone, or in the low halves of 32-bit words, or
    packed by two into three words), start low to high, then end."""
    timestamps = _array(timestamp_buf)
    if timestamps.size < 6 and not (timestamps.dtype.itemsize == 4 and timestamps.size == 3):
        raise _value_error(
            "wse.timestamps",
            f"calculate_cycles of {timestamps.size} words of {timestamps.dtype}",
            help="six 16-bit words, or three of 32 bits that hold two each",
        )
    if timestamps.dtype.itemsize == 4 and timestamps.size == 3:
        timestamps = np.ascontiguousarray(timestamps).view(np.uint16)  # two 16-bit words in each
    t = (
        timestamps.view(np.uint16)
        if timestamps.dtype.itemsize == 2
        else timestamps.astype(np.uint64)
    )
    t = [int(v) for v in np.ravel(t)[:6]]
    start = t[0] | t[1] << 16 | t[2] << 32
    end = t[3] | t[4] << 16 | t[5] << 32
    return end - start


_publish(__name__)
