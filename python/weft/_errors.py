# SPDX-License-Identifier: Apache-2.0
"""Errors made in Python, with the same fields and text as those of the core."""

from __future__ import annotations

from . import _core

_KINDS = {
    _core.ArgumentError: "value",
    _core.ShapeError: "shape",
    _core.DTypeError: "dtype",
    _core.IndexError: "index",
    _core.DeviceError: "device",
    _core.IOError: "io",
    _core.OutOfMemoryError: "memory",
}


def error(cls, code, message, *, help="", note=""):
    """An exception of class `cls` with .code .message .kind .notes .places .help, to be raised by the caller."""
    text = f"error[{code}]: {message}\n"
    if note:
        text += f" = {note}\n"
    if help:
        text += f" = help: {help}\n"
    out = cls(text[:-1])
    out.code, out.message, out.kind = code, message, _KINDS.get(cls, "")
    out.help, out.places, out.notes = help, [], [note] if note else []
    return out
