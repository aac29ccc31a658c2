# SPDX-License-Identifier: Apache-2.0
"""weft.Error and its kinds raised from Python, with everything that those of the core carry."""

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


def error(kind, code, message, notes=(), help=""):
    """An exception to raise: `kind` as in C++ ("value", "io", ...; "rpc", "tune" ... give weft.Error itself).

    Its text is rendered as the core does it: ``error[code]: message``, the notes, the help.
    """
    lines = [f"error[{code}]: {message}"]
    lines += [f" = {note}" for note in notes]
    if help:
        lines.append(f" = help: {help}")
    out = _CLASSES.get(kind, _core.Error)("\n".join(lines))
    out.code, out.kind, out.message, out.help = code, kind, message, help
    out.notes, out.places = list(notes), []
    return out
