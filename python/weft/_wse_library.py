# SPDX-License-Identifier: Apache-2.0
"""The fabric simulator's shared library, opened through ctypes, and the errors it reports (`weft.wse`)."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import threading

from . import _debug


class WseError(RuntimeError):
    """An error of the compiler, the runtime or the simulated machine; `.code` is its stable slug."""

    def __init__(self, code: str, message: str, text: str, kind: str):
        super().__init__(text)
        self.code, self.message, self.kind = code, message, kind


class WseValueError(WseError, ValueError):
    """An argument outside its domain."""


class WseDeviceError(WseError):
    """There is no such machine here."""


def value_error(code: str, message: str, kind: str = "value") -> WseValueError:
    return WseValueError(code, message, f"error[{code}]: {message}", kind)


def _core_error(kind: str):
    """The class of `weft` itself for this kind of error, if the core is there."""
    try:
        import weft
    except ImportError:
        return None
    names = {
        "device": "DeviceError",
        "fault": "Fault",
        "value": "ValueError_",
        "shape": "ShapeError",
        "index": "IndexError",
    }
    return getattr(weft, names.get(kind, "Error"), None)


def raise_error(text: str):
    e = json.loads(text)
    kinds = {
        "value": WseValueError,
        "shape": WseValueError,
        "dtype": WseValueError,
        "index": WseValueError,
        "parse": WseValueError,
        "device": WseDeviceError,
    }
    cls = kinds.get(e["kind"], WseError)
    core = _core_error(e["kind"])
    if isinstance(core, type) and issubclass(core, Exception) and not issubclass(cls, core):
        try:
            cls = type(cls.__name__, (cls, core), {})
        except TypeError:  # incompatible layouts: the plain class must do
            pass
    try:
        err = cls(e["code"], e["message"], e["text"], e["kind"])
    except TypeError:
        err = kinds.get(e["kind"], WseError)(e["code"], e["message"], e["text"], e["kind"])
    raise err


class Library:
    """libweft_wse, opened at first use."""

    def __init__(self):
        self._lib = None

    def get(self):
        if self._lib is None:
            here = pathlib.Path(__file__).resolve().parent
            roots = [here, here.parent.parent / "build" / "python" / "weft"]
            if named := os.environ.get("WEFT_WSE_LIBRARY"):
                roots.insert(0, pathlib.Path(named).parent)
            tried = [r / "libweft_wse.so" for r in roots]
            found = next((p for p in tried if p.exists()), None)
            if found is None:
                raise ImportError(
                    "libweft_wse.so was not found; searched " + ", ".join(map(str, tried))
                )
            lib = ctypes.CDLL(str(found))
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
