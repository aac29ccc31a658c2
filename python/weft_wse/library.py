# SPDX-License-Identifier: Apache-2.0
"""The fabric simulator's shared library, opened through ctypes."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import sys
import threading


class Library:
    """libweft_wse, opened at first use."""

    def __init__(self):
        self._lib = None

    def get(self):
        if self._lib is None:
            here = pathlib.Path(__file__).resolve().parent.parent / "weft"
            roots = [here, here.parent.parent / "build" / "python" / "weft"]
            if named := os.environ.get("WEFT_WSE_LIBRARY"):
                roots.insert(0, pathlib.Path(named).parent)
            tried = [r / "libweft_wse.so" for r in roots]
            found = next((p for p in tried if p.exists()), None)
            if found is None:
                from weft._wse_library import missing_library

                raise missing_library(tried)
            lib = ctypes.CDLL(str(found))
            p, s = ctypes.c_void_p, ctypes.c_char_p
            lib.weft_wse_open.restype, lib.weft_wse_open.argtypes = p, [s, s, ctypes.POINTER(p)]
            lib.weft_wse_close.restype, lib.weft_wse_close.argtypes = None, [p]
            lib.weft_wse_call.restype = p
            lib.weft_wse_call.argtypes = [p, s, s, p, ctypes.c_int64, ctypes.POINTER(p)]
            lib.weft_wse_tool.restype, lib.weft_wse_tool.argtypes = p, [s, s, ctypes.POINTER(p)]
            lib.weft_wse_free.restype, lib.weft_wse_free.argtypes = None, [p]
            lib.weft_wse_watch.restype, lib.weft_wse_watch.argtypes = None, [p]
            if debug := sys.modules.get("weft._debug"):  # else nobody has asked for the debugger
                debug.attach(lib)
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
            from weft._wse_library import raise_error

            raise_error(self.take(error))
        return json.loads(self.take(result))


library = Library()


def tool(method: str, args: dict):
    error = ctypes.c_void_p()
    result = library.patiently(
        library.get().weft_wse_tool,
        method.encode(),
        json.dumps(args).encode(),
        ctypes.byref(error),
    )
    return library.finish(result, error)
