# SPDX-License-Identifier: Apache-2.0
"""Helpers for host programs: views of copied words, packing for streams, time stamps."""

from __future__ import annotations

import numpy as np


def memcpy_view(arr: np.ndarray, datatype) -> np.ndarray:
    """`arr` of 32-bit words seen as `datatype`: the words themselves, or their low halves (bytes) for 16-bit (8-bit) types."""
    dtype = np.dtype(datatype)
    if arr.dtype.itemsize != 4:
        raise ValueError(f"memcpy_view wants 32-bit words, not {arr.dtype}")
    if dtype.itemsize == 4:
        return arr.view(dtype)
    if dtype.itemsize in (1, 2):
        return arr.view(dtype).reshape(*arr.shape[:-1], -1)[..., :: 4 // dtype.itemsize]
    raise ValueError(
        f"memcpy_view: elements of {dtype} have {dtype.itemsize} bytes; legal are 1, 2 and 4"
    )


def input_array_to_u32(arr: np.ndarray, sentinel: int | None, fast_dim_sz: int) -> np.ndarray:
    """16-bit values in the low halves of 32-bit words; with a sentinel the high halves count the elements of
    each run of `fast_dim_sz`, and 32-bit values pass as they are."""
    flat = np.ascontiguousarray(arr).ravel()
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
    timestamps = np.asarray(timestamp_buf)
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
