# SPDX-License-Identifier: Apache-2.0
"""QPU kernels of your own as Python functions and ``torch.ops`` entries.

A ``.cpp`` with ``<weft/qpu.h>`` and ``WEFT_QPU_MODULE(name, m)`` is built by setup.py::

    from setuptools import setup
    import weft.qpu
    setup(name="dot_cpp", ext_modules=[weft.qpu.extension("dot_cpp", ["dot.cpp"])])

or by CMake (cmake/weft_qpu_module.cmake), without libtorch. ``import dot_cpp`` then gives its functions, which
take and return torch tensors, NumPy arrays or weft arrays, and, where torch is installed, registers
``torch.ops.dot_cpp.*``.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pathlib
import sys
import threading
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from weft import _numpy as np

import weft

from ._boundary import publish as _publish
from ._errors import error as _refusal
from . import _debug

__all__ = ["cmake", "extension", "include", "library", "load"]

_HERE = pathlib.Path(__file__).resolve().parent
_VERSION = 2  # WEFT_QPU_MODULE_VERSION of targets/qpu/extension/abi.h
_FLOATS, _INTS, _INTEGER, _REAL = 1, 2, 3, 4
_DTYPES = {_FLOATS: "float32", _INTS: "int32"}


class _Value(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
        ("integer", ctypes.c_int64),
        ("real", ctypes.c_double),
        ("owner", ctypes.c_void_p),
    ]


_Check = ctypes.CFUNCTYPE(ctypes.c_int32)
_CALL = (
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.POINTER(_Value),
    ctypes.POINTER(_Value),
    ctypes.POINTER(ctypes.c_void_p),
)
_Call = ctypes.CFUNCTYPE(*_CALL)
_HeldCall = ctypes.PYFUNCTYPE(*_CALL)


class _Operator(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("doc", ctypes.c_char_p),
        ("kinds", ctypes.POINTER(ctypes.c_int32)),
        ("arguments", ctypes.c_int32),
        ("closure", ctypes.c_void_p),
        ("call", _Call),
    ]


class _Table(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("doc", ctypes.c_char_p),
        ("operators", ctypes.POINTER(_Operator)),
        ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Value))),
        ("release_text", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("watch", ctypes.CFUNCTYPE(None, _Check)),
    ]


# ---- building


def _find(what, candidates):
    for path in candidates:
        if path.exists():
            return str(path)
    raise _refusal(
        "io",
        f"qpu.module.{what}",
        f"the {what} for extension modules is not here; searched {', '.join(map(str, candidates))}",
        help="build the target weft_qpu, or install the wheel",
    )


def include() -> str:
    """The folder with weft/qpu.h. Raises weft.IOError with the places searched."""
    return str(
        pathlib.Path(
            _find(
                "include",
                [
                    _HERE / "include" / "weft" / "qpu.h",
                    _HERE.parents[1] / "src" / "weft" / "qpu.h",
                ],
            )
        ).parents[1]
    )


def library() -> str:
    """The shared library that extension modules link. Raises weft.IOError with the places searched."""
    return _find("library", [_HERE / "lib" / "libweft_qpu.so"])


def cmake() -> str:
    """The CMake file with weft_qpu_module()."""
    return _find(
        "cmake",
        [
            _HERE / "cmake" / "weft_qpu_module.cmake",
            _HERE.parents[1] / "cmake" / "weft_qpu_module.cmake",
        ],
    )


def extension(name: str, sources: _Sequence[str | os.PathLike[str]], **options: _Any) -> _Any:
    """A setuptools.Extension for a module of QPU kernels; ``options`` are setuptools' own."""
    from setuptools import Extension

    if not isinstance(name, str):
        raise TypeError(f"the name is a {type(name).__name__}, not text")
    if isinstance(sources, (str, bytes)):
        raise TypeError("the sources are one text, not a list of them")
    where = os.path.dirname(library())
    arguments = {
        "include_dirs": [include()],
        "library_dirs": [where],
        "libraries": ["weft_qpu"],
        "runtime_library_dirs": [where],
        "define_macros": [("WEFT_QPU_PYTHON", None)],
        "language": "c++",
        "extra_compile_args": ["-std=c++20", "-O2"],
    }
    for key, value in options.items():
        arguments[key] = arguments[key] + value if isinstance(value, list) else value
    try:
        return Extension(name=name, sources=list(sources), **arguments)
    except AssertionError as reason:  # setuptools asserts the types of what it takes
        raise TypeError(str(reason)) from None


# ---- calling


def _error(text):
    head = text.splitlines()[0] if text else ""
    code = head[head.find("[") + 1 : head.find("]")] if "[" in head else "qpu.module"
    error = weft.Error(text)
    error.code, error.message = code, head.split("]: ", 1)[-1]
    return error


def _host(x, dtype, what):
    """A contiguous NumPy array of what the caller gave, and a function that gives results back alike."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        device = x.device
        values = x.detach().cpu().resolve_conj().numpy()
        back = lambda y: torch.from_numpy(y).to(device)
    elif isinstance(x, weft.NDArray):
        device = x.device
        values = x.numpy()
        back = lambda y: weft.asarray(y, device=device)
    else:
        values = np.asarray(x)
        back = lambda y: y
    if values.dtype.kind not in "iufb":
        raise weft.DTypeError(
            f"error[qpu.module.dtype]: {what} is {values.dtype}; legal are integers and real numbers"
        )
    return np.ascontiguousarray(values, dtype=dtype), back


_thread = threading.local()


# Asked now and then by a call at work. A handler that raises ends it; the exception stays set, and ctypes raises it
# when the call returns, which takes that the interpreter was held meanwhile.
_CHECK = ctypes.cast(ctypes.pythonapi.PyErr_CheckSignals, _Check)
_NO_CHECK = ctypes.cast(None, _Check)


def _watched(table, on):
    """Whether calls of this thread from now on ask for signals: `on`."""
    if getattr(_thread, "watched", False) != on:
        table.watch(_CHECK if on else _NO_CHECK)  # one library for all modules
        _thread.watched = on
    return on


class _Function:
    def __init__(self, table, entry, module):
        self._table, self._entry = table, entry
        self.__name__ = self.__qualname__ = entry.name.decode()
        self.__module__ = module
        self.__doc__ = entry.doc.decode()
        self.kinds = [entry.kinds[i] for i in range(entry.arguments)]
        self.result = entry.kinds[entry.arguments]

    def __repr__(self):
        return f"<QPU function {self.__module__}.{self.__name__}>"

    def __call__(self, *args):
        if len(args) != len(self.kinds):
            raise _refusal(
                "value",
                "qpu.module.arguments",
                f"{self.__name__} takes {len(self.kinds)} arguments, got {len(args)}",
                help="pass one value for each parameter of the kernel",
            )
        values = (_Value * len(args))()
        alive, back = [], None
        for i, (x, kind, v) in enumerate(zip(args, self.kinds, values)):
            v.kind = kind
            if kind == _INTEGER:
                v.integer = int(x)
            elif kind == _REAL:
                v.real = float(x)
            else:
                host, give = _host(x, _DTYPES[kind], f"argument {i} of {self.__name__}")
                back = back or give
                shape = (ctypes.c_int64 * max(host.ndim, 1))(*host.shape)
                alive += [host, shape]
                v.ndim, v.shape, v.data = host.ndim, shape, host.ctypes.data
        out, text = _Value(), ctypes.c_void_p()
        # Signals are the main thread's. Where other threads want to run too, the interpreter is theirs meanwhile,
        # and Ctrl-C waits for the end.
        alone = (
            threading.current_thread() is threading.main_thread() and threading.active_count() == 1
        )
        call = (
            ctypes.cast(self._entry.call, _HeldCall)
            if _watched(self._table, alone)
            else self._entry.call
        )
        try:
            failed = call(self._entry.closure, values, ctypes.byref(out), ctypes.byref(text))
        except BaseException:  # a signal's handler has raised
            if text.value:
                self._table.release_text(text.value)
            raise
        if failed:
            message = ctypes.string_at(text.value).decode() if text.value else "no text"
            if text.value:
                self._table.release_text(text.value)
            raise _error(message)
        if out.kind == _INTEGER:
            return out.integer
        if out.kind == _REAL:
            return out.real
        if out.kind not in _DTYPES:
            return None
        try:
            shape = tuple(out.shape[i] for i in range(out.ndim))
            count = int(np.prod(shape))
            result = np.empty(shape, _DTYPES[out.kind])
            if count:
                ctypes.memmove(result.ctypes.data, out.data, count * 4)
        finally:
            self._table.release(ctypes.byref(out))
        return back(result) if back else result


_SCHEMA = {_FLOATS: "Tensor", _INTS: "Tensor", _INTEGER: "int", _REAL: "float", 0: "()"}
_libraries = []  # torch.library objects must live as long as their operators


def _register(name, functions):
    import torch

    lib = torch.library.Library(name, "DEF")
    _libraries.append(lib)
    for f in functions:
        params = ", ".join(f"{_SCHEMA[k]} a{i}" for i, k in enumerate(f.kinds))
        lib.define(f"{f.__name__}({params}) -> {_SCHEMA[f.result]}")
        lib.impl(f.__name__, f.__call__, "CompositeExplicitAutograd")


def _attach(module, address):
    """Called by an extension module while it is imported: gives it its functions."""
    table = ctypes.cast(ctypes.c_void_p(address), ctypes.POINTER(_Table)).contents
    if table.version != _VERSION:
        raise ImportError(
            f"{module.__name__} was built for version {table.version} of weft's extension modules, this is {_VERSION}"
        )
    if _debug.active():
        _debug.attach(ctypes.CDLL(str(library())))
    functions = [_Function(table, table.operators[i], module.__name__) for i in range(table.count)]
    for f in functions:
        setattr(module, f.__name__, f)
    if importlib.util.find_spec("torch") is not None:
        _register(table.name.decode(), functions)
    return True


def load(path: str | os.PathLike[str], name: str | None = None) -> _Any:
    """A module from a shared library with WEFT_QPU_MODULE(name, ...), built without Python's headers or with.

    Raises weft.IOError when it cannot be opened or has no such table.
    """
    import types

    path = pathlib.Path(path)
    name = name or path.name.split(".")[0].removeprefix("lib")
    try:
        table = getattr(ctypes.CDLL(str(path)), f"weft_qpu_table_{name}")
    except (OSError, AttributeError) as error:
        raise _refusal(
            "io",
            "qpu.module.load",
            f"{path}: {error}",
            help="build the module again with this version of weft",
        ) from None
    table.restype = ctypes.c_void_p
    module = types.ModuleType(name)
    _attach(module, table())
    return module


_publish(__name__)

if __name__ == "__main__":
    _verbs = {"include": include, "library": library, "cmake": cmake}
    if len(sys.argv) != 2 or sys.argv[1] not in _verbs:
        print("usage: python -m weft.qpu include|library|cmake", file=sys.stderr)
        sys.exit(2)
    print(_verbs[sys.argv[1]]())
