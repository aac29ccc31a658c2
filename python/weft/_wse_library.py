# SPDX-License-Identifier: Apache-2.0
"""The errors that the fabric simulator's library reports (`weft.wse`)."""

from __future__ import annotations

import json

from weft_wse.library import library, tool  # noqa: F401  (for `weft.wse`)

from . import _core


class WseError(_core.Error, RuntimeError):
    """An error of the compiler, the runtime or the simulated machine; `.code` is its stable slug."""

    def __init__(self, code: str, message: str, text: str, kind: str):
        super().__init__(text)
        self.code, self.message, self.kind = code, message, kind
        self.notes, self.places, self.help = [], [], ""


class WseValueError(WseError, _core.ArgumentError):
    """An argument outside its domain."""


class WseShapeError(WseValueError, _core.ShapeError):
    """An argument of another shape than the program's."""


class WseDTypeError(WseValueError, _core.DTypeError):
    """An argument of another type than the program's."""


class WseIndexError(WseValueError, _core.IndexError):
    """An index outside what it indexes."""


class WseParseError(WseValueError, _core.ParseError):
    """CSL text that is no program."""


class WseFault(WseError, _core.Fault):
    """The simulated machine did what a machine must not do."""


class WseDeviceError(WseError, _core.DeviceError):
    """There is no such machine here."""


class WseLibraryError(WseDeviceError, ImportError):
    """This build of weft is without the fabric simulator."""


_CLASSES = {
    "value": WseValueError,
    "shape": WseShapeError,
    "dtype": WseDTypeError,
    "index": WseIndexError,
    "parse": WseParseError,
    "fault": WseFault,
    "device": WseDeviceError,
}


def value_error(code: str, message: str, kind: str = "value", help: str = "") -> WseValueError:
    message = _core.bounded(message)
    text = f"error[{code}]: {message}" + (f"\n = help: {help}" if help else "")
    return _CLASSES[kind](code, message, text, kind)


def raise_error(text: str):
    e = json.loads(text)
    cls = _CLASSES.get(e["kind"], WseError)
    raise cls(e["code"], e["message"], e["text"], e["kind"])


def missing_library(module) -> WseLibraryError:
    message = f"{module} was built without the target wse"
    text = f"error[wse.library]: {message}\n = help: configure the build with WEFT_TARGETS empty, or with wse in it"
    return WseLibraryError("wse.library", message, text, "device")


# Methods of a runtime that let simulated time pass; all others are answered at once.
SIMULATES = frozenset(
    "load run stop launch memcpy_h2d memcpy_d2h send receive task_wait is_task_done".split()
)


def directly(call, *args):
    return call(*args)
