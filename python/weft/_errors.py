# SPDX-License-Identifier: Apache-2.0
"""weft.Error and its kinds raised from Python, with everything that those of the core carry."""

from __future__ import annotations

from . import _core

_CLASSES = {
    "value": _core.ArgumentError,
    "shape": _core.ShapeError,
    "dtype": _core.DTypeError,
    "index": _core.IndexError,
    "memory": _core.OutOfMemoryError,
    "schedule": _core.ScheduleError,
    "device": _core.DeviceError,
    "fault": _core.Fault,
    "parse": _core.ParseError,
    "io": _core.IOError,
}
_KINDS = {cls: kind for kind, cls in _CLASSES.items()}


def error(kind, code, message, notes=(), help="", note=""):
    """An exception to raise. `kind` is a class of error, or its name as in C++ ("value", "io", ...; those without
    a class of their own, "rpc", "tune" ..., give weft.Error itself).

    Its text is rendered as the core does it: ``error[code]: message``, the notes, the help.
    """
    cls = kind if isinstance(kind, type) else _CLASSES.get(kind, _core.Error)
    # What callers gave is quoted in them, however long it is.
    message, help = _core.bounded(message), _core.bounded(help)
    notes = [_core.bounded(text) for text in ([*notes, note] if note else notes)]
    lines = [f"error[{code}]: {message}"]
    lines += [f" = {text}" for text in notes]
    if help:
        lines.append(f" = help: {help}")
    out = cls("\n".join(lines))
    out.code, out.message, out.help = code, message, help
    known = next((name for known, name in _KINDS.items() if issubclass(cls, known)), "")
    out.kind = known if isinstance(kind, type) else kind
    out.notes, out.places = notes, []
    return out


class NotExchanged(_core.ArgumentError, BufferError):
    """Memory that a protocol of exchange cannot hand over: the protocols promise a BufferError."""


class _Unwritten(_core.ArgumentError, NotImplementedError):
    """A method that a class of the caller's must define."""


def unwritten(self, name):
    """The exception of an abstract method: `name` of the object's class, or of the class itself."""
    cls = self if isinstance(self, type) else type(self)
    return error(
        _Unwritten,
        "python.abstract",
        f"{cls.__name__} defines no {name}()",
        help=f"write {name} in the class {cls.__name__}",
    )
