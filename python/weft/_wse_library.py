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
    """libweft_wse.so is missing."""


_CLASSES = {
    "value": WseValueError,
    "shape": WseShapeError,
    "dtype": WseDTypeError,
    "index": WseIndexError,
    "parse": WseParseError,
    "fault": WseFault,
    "device": WseDeviceError,
}


def value_error(code: str, message: str, kind: str = "value") -> WseValueError:
    return _CLASSES[kind](code, message, f"error[{code}]: {message}", kind)


def raise_error(text: str):
    e = json.loads(text)
    cls = _CLASSES.get(e["kind"], WseError)
    raise cls(e["code"], e["message"], e["text"], e["kind"])


def missing_library(tried: list) -> WseLibraryError:
    message = "libweft_wse.so was not found; searched " + ", ".join(map(str, tried))
    text = f"error[wse.library]: {message}\n = help: build the target weft_wse"
    return WseLibraryError("wse.library", message, text, "device")


# Methods of a runtime that let simulated time pass; all others are answered at once.
SIMULATES = frozenset(
    "load run stop launch memcpy_h2d memcpy_d2h send receive task_wait is_task_done".split()
)


def directly(call, *args):
    return call(*args)
