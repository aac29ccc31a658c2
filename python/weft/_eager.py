# SPDX-License-Identifier: Apache-2.0
"""Spans of eager operations: while a profile wants them, operators, methods and functions are wrapped.

Outside such a profile nothing is wrapped and an operator is the type's own slot.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time

from . import _core
from ._core import NDArray

_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift neg pos abs invert".split()
_METHODS = (
    "sum prod max min all any reshape permute astype copy compact to numpy __getitem__ __setitem__"
)
_SLOTS = [
    f"__{prefix}{name}__"
    for name in _OPERATORS
    for prefix in (("",) if name in ("neg", "pos", "abs", "invert") else ("", "r", "i"))
] + [f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")]
_kept: list = []  # (owner, name, original)
_depth = [0, 0]  # profiles that want spans; wrapped calls in flight


def _wrapped(f, name, note):
    def call(*args, **kwargs):
        if _depth[1]:  # only the outermost call is what the user wrote
            return f(*args, **kwargs)
        _depth[1] = 1
        started = time.perf_counter()
        try:
            out = f(*args, **kwargs)
            array = (
                out
                if isinstance(out, NDArray)
                else next((a for a in args if isinstance(a, NDArray)), None)
            )
            if array is not None:
                array.device.synchronize()
        finally:
            _depth[1] = 0
        if array is not None:
            note(array.device.name, "eager", name, started, time.perf_counter() - started)
        return out

    try:
        return functools.wraps(f)(call)
    except (AttributeError, TypeError):
        return call


def _own_items(owner):
    """Assigning __getitem__ also took the type's items as a sequence, which C code such as torch.tensor reads."""
    _core._own_sequence_items(owner)
    for child in owner.__subclasses__():
        if "__getitem__" not in child.__dict__:
            _own_items(child)


def start(note):
    """Wraps what is callable on arrays; note(process, thread, name, start, seconds) gets each call."""
    _depth[0] += 1
    if _depth[0] > 1:
        return
    weft = sys.modules["weft"]
    for name in [*_SLOTS, *_METHODS.split()]:
        if name in NDArray.__dict__:
            _kept.append((NDArray, name, NDArray.__dict__[name]))
    for name in weft.__all__:
        f = getattr(weft, name)
        if (
            callable(f)
            and not inspect.isclass(f)
            and getattr(f, "__module__", "").split(".")[-1]
            in (
                "weft",
                *(
                    "creation",
                    "elementwise",
                    "indexing",
                    "manipulation",
                    "padding",
                    "products",
                    "statistics",
                ),
            )
        ):
            _kept.append((weft, name, f))
    for owner, name, f in _kept:
        setattr(owner, name, _wrapped(f, name.strip("_"), note))
    _own_items(NDArray)


def stop():
    """Puts everything back as it was."""
    _depth[0] -= 1
    if _depth[0] == 0:
        for owner, name, f in _kept:
            setattr(owner, name, f)
        _kept.clear()
        _own_items(NDArray)
