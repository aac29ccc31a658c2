# SPDX-License-Identifier: Apache-2.0
"""Arguments of a launched function: numbers of the host as the bits of the declared types."""

from __future__ import annotations

from typing import Any

from weft import _numpy as np

from weft._core import shown
from weft._wse_library import value_error

_TYPES = {
    "i1": "i8",
    "i2": "i16",
    "i4": "i32",
    "i8": "i64",
    "u1": "u8",
    "u2": "u16",
    "u4": "u32",
    "u8": "u64",
    "f2": "f16",
    "f4": "f32",
    "b1": "bool",
}


def launch_arguments(
    symbol: str | int, args: tuple[Any, ...], wanted: list[str]
) -> tuple[list[int], list[str]]:
    """Bits and types of `args` for the function `symbol`, whose parameters have the types `wanted`."""
    bits, types = [], []
    for i, a in enumerate(args):
        kind = wanted[i] if i < len(wanted) else "i32"
        if i >= len(wanted) and not isinstance(a, np.generic):
            raise value_error(
                "wse.launch.arguments",
                f'"{symbol}" takes {len(wanted)} arguments ({", ".join(wanted)}) and was given {len(args)}',
            )
        if isinstance(a, np.ndarray) and a.size == 1:
            a = a.reshape(())[()]
        number_of_its_kind = isinstance(a, (int, float, np.generic)) and (
            kind == "bool" or not isinstance(a, (bool, np.bool_))
        )
        if not number_of_its_kind:
            raise value_error(
                "wse.launch.type",
                f"argument {i} is {shown(args[i])}, which is no {kind}",
                "dtype",
                help="launch(name, a, b, nonblock=False): one number for each parameter",
            )
        if isinstance(a, (float, np.floating)) and kind[0] != "f":
            raise value_error(
                "wse.launch.type", f"argument {i} is the float {a}; {kind} is declared", "dtype"
            )
        if not isinstance(a, np.generic):  # plain numbers take the declared type
            declared = np.dtype({"bool": "b1", **{v: k for k, v in _TYPES.items()}}.get(kind, "i4"))
            try:
                fits = declared.kind not in "iu" or (
                    np.iinfo(declared).min <= a <= np.iinfo(declared).max
                )
                a = declared.type(a) if fits else None
            except (OverflowError, TypeError, ValueError):
                fits = False
            if not fits:
                raise value_error(
                    "wse.launch.type",
                    f"argument {i} is {shown(args[i])}, which is no {kind}",
                    "dtype",
                )
        code = _TYPES.get(a.dtype.str[1:])
        if code is None:
            raise value_error(
                "wse.launch.type", f"argument {i} has type {a.dtype}, which no PE has", "dtype"
            )
        raw = (
            np.array(a)
            .view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize])
            .item()
        )
        if code.startswith("i"):
            raw = int(a)
        bits.append(raw)
        types.append(code)
    return bits, types
