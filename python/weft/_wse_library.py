# SPDX-License-Identifier: Apache-2.0
"""The fabric simulator's C functions, called through ctypes, and the errors it reports (`weft.wse`)."""

from __future__ import annotations

import ctypes
import json
import threading

from . import _core, _debug


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


def value_error(code: str, message: str, kind: str = "value") -> WseValueError:
    return _CLASSES[kind](code, message, f"error[{code}]: {message}", kind)


def raise_error(text: str):
    e = json.loads(text)
    cls = _CLASSES.get(e["kind"], WseError)
    raise cls(e["code"], e["message"], e["text"], e["kind"])


class Library:
    """The C functions of the module, looked up at first use."""

    def __init__(self):
        self._lib = None

    def get(self):
        if self._lib is None:
            lib = ctypes.CDLL(_core.__file__)
            if not hasattr(lib, "weft_wse_open"):
                message = f"{_core.__file__} was built without the target wse"
                text = f"error[wse.library]: {message}\n = help: configure the build with WEFT_TARGETS empty, or with wse in it"
                raise WseLibraryError("wse.library", message, text, "device")
            p, s = ctypes.c_void_p, ctypes.c_char_p
            lib.weft_wse_open.restype, lib.weft_wse_open.argtypes = p, [s, s, ctypes.POINTER(p)]
            lib.weft_wse_close.restype, lib.weft_wse_close.argtypes = None, [p]
            lib.weft_wse_call.restype = p
            lib.weft_wse_call.argtypes = [p, s, s, p, ctypes.c_int64, ctypes.POINTER(p)]
            lib.weft_wse_tool.restype, lib.weft_wse_tool.argtypes = p, [s, s, ctypes.POINTER(p)]
            lib.weft_wse_free.restype, lib.weft_wse_free.argtypes = None, [p]
            lib.weft_wse_watch.restype, lib.weft_wse_watch.argtypes = None, [p]
            _debug.attach(lib)
            self._lib = lib
        return self._lib

    def patiently(self, call, *args):
        """Calls a function of the library that may take long. In the main thread a worker makes the call, so
        that Python's signal handlers run meanwhile: what one raises (Ctrl-C) ends the call and is raised."""
        if threading.current_thread() is not threading.main_thread():
            return call(*args)
        stop, done, outcome = ctypes.c_int32(0), threading.Semaphore(0), []

        def work():
            self.get().weft_wse_watch(ctypes.byref(stop))
            try:
                outcome.append((call(*args), None))
            except BaseException as reason:  # noqa: BLE001  (handed to the caller)
                outcome.append((None, reason))
            finally:
                self.get().weft_wse_watch(None)
                done.release()

        threading.Thread(target=work, daemon=True).start()
        try:
            done.acquire()
        except BaseException:
            stop.value = 1
            while True:  # whatever else is raised: the worker still uses the arguments
                try:
                    done.acquire()
                    break
                except BaseException:  # noqa: BLE001
                    continue
            raise
        result, reason = outcome[0]
        if reason is not None:
            raise reason
        return result

    def take(self, pointer) -> str:
        text = ctypes.string_at(pointer).decode()
        self.get().weft_wse_free(pointer)
        return text

    def finish(self, result, error):
        if error.value:
            raise_error(self.take(error))
        return json.loads(self.take(result))


library = Library()
# Methods of a runtime that let simulated time pass; all others are answered at once.
SIMULATES = frozenset(
    "load run stop launch memcpy_h2d memcpy_d2h send receive task_wait is_task_done".split()
)


def directly(call, *args):
    return call(*args)


def tool(method: str, args: dict):
    error = ctypes.c_void_p()
    result = library.patiently(
        library.get().weft_wse_tool,
        method.encode(),
        json.dumps(args).encode(),
        ctypes.byref(error),
    )
    return library.finish(result, error)
