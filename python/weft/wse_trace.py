# SPDX-License-Identifier: Apache-2.0
"""Decodes the trace buffers of the <debug> library: 16-bit words, each record a kind and its operands."""

from __future__ import annotations

from weft import _numpy as np


def decode(runtime, x: int, y: int, key: str) -> list:
    """The records written so far: integers, floats, strings, and time stamps as integers."""
    position = int(runtime.read_symbol(x, y, f"debug.{key}.pos", "uint16")[0])
    words = runtime.read_symbol(x, y, f"debug.{key}.buf", "uint16")[:position]
    out: list = []
    i = 0
    while i < len(words):
        kind = int(words[i])
        size = {1: 3, 2: 1, 3: 1, 4: 1, 5: 2, 6: 2, 7: 1, 8: 2}.get(kind)
        if size is None or i + 1 + size > len(words):
            break  # the buffer was full
        body = words[i + 1 : i + 1 + size]
        value = sum(int(w) << (16 * k) for k, w in enumerate(body))
        if kind == 2:
            out.append(runtime.program_string(x, y, value))
        elif kind == 4:
            out.append(int(body.view(np.int16)[0]))
        elif kind == 6:
            out.append(int(np.ascontiguousarray(body).view(np.int32)[0]))
        elif kind == 7:
            out.append(float(body.view(np.float16)[0]))
        elif kind == 8:
            out.append(float(np.ascontiguousarray(body).view(np.float32)[0]))
        else:
            out.append(value)
        i += 1 + size
    return out
