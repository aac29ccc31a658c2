# SPDX-License-Identifier: Apache-2.0
"""Public functions written in Python raise weft's errors only: what Python itself raises for arguments that do not fit
(`'int' object is not iterable`) becomes an error that names the call, the arguments and the signature."""

from __future__ import annotations

import enum
import errno
import functools
import importlib
import inspect
import os
import sys
import types

from . import _core
from ._errors import NotExchanged, error

_KINDS = {
    TypeError: "dtype",
    AttributeError: "dtype",
    ValueError: "value",
    KeyError: "value",
    ArithmeticError: "value",
    IndexError: "index",
    OSError: "io",
    MemoryError: "memory",
    BufferError: "value",
    RecursionError: "value",
}
_WAYS_OUT = {
    errno.ENOSPC: "free some space there, or name another place",
    errno.EDQUOT: "free some space there, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.EMFILE: "close some files, or raise the limit of open files of this process (ulimit -n)",
}
_RAISED = tuple(_KINDS)
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_HERE = (_PACKAGE + os.sep, _PACKAGE + "_wse" + os.sep)
_LIBRARIES = (
    os.path.dirname(os.__file__) + os.sep,
    os.sep + "site-packages" + os.sep,
    os.sep + "dist-packages" + os.sep,
    "<frozen ",
    "<__array_function__ ",
)


def _is_ours(traceback):
    """Whether no function of the caller's was called in between: an error in one is the caller's own."""
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not name.startswith(_HERE) and not any(part in name for part in _LIBRARIES):
            module = traceback.tb_frame.f_globals.get("__name__")
            # Compiled files of NumPy name no folder; the SDK's names lie in one of their own.
            if not (isinstance(module, str) and module.startswith(("numpy.", "cerebras."))):
                return False
        traceback = traceback.tb_next
    return True


def _described(value):
    if type(value) is _core.NDArray:
        return f"array of {value.dtype} {tuple(value.shape)}"
    name = type(value).__name__
    text = repr(value) if isinstance(value, (bool, int, float, str, bytes, type(None))) else ""
    return f"{name} {text[:40]}" if text and value is not None else name


def _accepted(name, function, owner):
    """The signature as a caller writes it: without the object itself and without types."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return f"{name}{inspect.Signature(parameters[1:] if owner else parameters)}"


def _file_error(what, raised):
    place = "" if raised.filename is None else f": {raised.filename!r}"
    reason = raised.strerror or str(raised) or type(raised).__name__
    text = f"{what}: {reason}{place}"
    if raised.errno in _WAYS_OUT:
        return error("io", "python.file", text, help=_WAYS_OUT[raised.errno])
    return error("io", "python.file", text, help="check the path and its rights")


def import_later(name):
    """The module of this name, which is imported on first use; what the host refuses then is weft's error, too."""
    try:
        return importlib.import_module(name)
    except _core.Error:  # the module's own refusal, which may be an OSError, too
        raise
    except OSError as raised:
        refusal = _file_error(f"import {name}", raised)
    raise refusal


def _refusal(function, raised, args, kwargs, owner, name):
    if owner is not None:
        # Of a constructor and of a call, the class and the object are what was called.
        name = owner if name in ("__init__", "__call__") else f"{owner}.{name}"
        args = args[1:]
    given = [_described(a) for a in args] + [f"{k}={_described(v)}" for k, v in kwargs.items()]
    kind = next(k for cls, k in _KINDS.items() if isinstance(raised, cls))
    if kind == "io":
        return _file_error(f"{name}()", raised)
    if kind == "memory":
        return error(
            kind,
            "host.memory",
            "the host has no memory for this call",
            notes=[f"it was {name}()"],
            help="free arrays, or raise the limit of memory of this process (ulimit -v)",
        )
    what = "these arguments: " + ", ".join(given) if given else "a call without arguments"
    return error(
        NotExchanged if isinstance(raised, BufferError) else kind,
        "python.arguments",
        f"{name}() does not take {what}",
        notes=[f"{type(raised).__name__}: {raised}"],
        help=f"accepted: {_accepted(name, function, owner)}",
    )


def _look_again(function, raised, args, kwargs):
    return None


def look_again_by(look):
    """`look(function, raised, args, kwargs)` is asked for what a call meant that Python refused: (its result,) or None."""
    global _look_again
    _look_again = look


def refused(function, owner, name, raised, args, kwargs):
    """What a caller gets instead of an exception that Python raised: another exception, or in a tuple the result of a call in NumPy's
    manner; None where the exception stands as it is."""
    if not isinstance(raised, _RAISED):
        return None
    # An inner public function has refused its arguments: what the caller called is named instead.
    reason = raised
    if isinstance(raised, _core.Error):
        reason = getattr(raised, "_reason", None)
    if owner is None and inspect.isfunction(function) and _is_ours(raised.__traceback__):
        try:
            meant = _look_again(function, raised, args, kwargs)
        except _core.Error:
            raise
        except _RAISED as again:  # that reading does not fit either
            if not _is_ours(again.__traceback__):
                raise
            meant, reason = None, again if isinstance(again, MemoryError) else reason
        if meant is not None:
            return meant
    if reason is None or not _is_ours(raised.__traceback__):
        return None
    refusal = _refusal(function, reason, args, kwargs, owner, name)
    refusal._reason = reason
    return refusal


def direct(core):
    """The function of the core that plain calls of a public function go to; it gives NotImplemented for others."""

    def mark(function):
        function.__weft_direct__ = core
        return function

    return mark


def public(function, owner=None, name=None):
    """The function as callers see it; `owner`: the name of the class whose method it is, `name`: of the method."""
    return _made(function, (owner, name or function.__name__), (None, None, -1))


def with_names(function, names, rename, positional):
    """A function that takes other names of its arguments, too; one argument more than `positional` is the axis.
    `rename(args, kwargs)` gives both back where values change with their names, or raises."""
    called = getattr(function, "__weft_called__", None) if is_function(function) else None
    return _made(function, called, (names, rename, positional))


def _made(function, called, renames):
    """One PublicFunction of a function, which may be one already; `called`: owner and name for refusals, None without."""
    if type(function) is _core.PublicFunction and function.__weft_renames__[0] is None:
        inner = function.__wrapped__
    elif type(function) is _core.PublicFunction and renames[0] is None:
        inner, renames = function.__wrapped__, function.__weft_renames__
    else:
        inner = function
    refuse = functools.partial(refused, inner, *called) if called else None
    direct = getattr(inner, "__weft_direct__", None)
    out = functools.update_wrapper(_core.PublicFunction(inner, direct, refuse, *renames), function)
    out.__wrapped__, out.__weft_renames__ = inner, renames
    if called:
        out.__weft_called__, out.__weft_guarded__ = called, True
    return out


def is_function(value):
    """A function written in Python, as it is or as callers see it."""
    return isinstance(value, (types.FunctionType, _core.PublicFunction))


def publish(module_name, skip=(), gathered=False):
    """Replaces the public functions that a module defines; called at its end, before anybody imports them. `gathered`: also those
    that it imports from other modules of weft to offer them."""
    namespace = sys.modules[module_name].__dict__
    for name, value in list(namespace.items()):
        if name.startswith("_") or name in skip or not is_function(value):
            continue
        home = value.__module__
        ours = home == module_name or gathered and home.startswith("weft.")
        if ours and not hasattr(value, "__weft_guarded__"):
            namespace[name] = public(value)


def publish_class(cls):
    """Guards the public methods that a class defines in Python, its constructor and its call."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        if is_function(value) and not hasattr(value, "__weft_guarded__"):
            setattr(cls, name, public(value, cls.__name__, name))
        elif isinstance(value, (classmethod, staticmethod)):
            if is_function(value.__func__):
                owner = cls.__name__ if isinstance(value, classmethod) else None
                setattr(cls, name, type(value)(public(value.__func__, owner, name)))


def publish_own_classes(module_name):
    """publish_class of the public classes that a module outside this package defines itself."""
    for name, value in list(vars(sys.modules[module_name]).items()):
        if isinstance(value, type) and name[0] != "_" and value.__module__ == module_name:
            publish_class(value)


def publish_classes(module_name):
    """publish_class of all public classes in a module's namespace that weft defines."""
    for name, value in list(vars(sys.modules[module_name]).items()):
        if (
            not name.startswith("_")
            and isinstance(value, type)
            and not issubclass(value, (BaseException, enum.Enum))
        ):
            for cls in value.__mro__:
                if cls.__module__.startswith("weft.") and cls.__module__ != "weft._core":
                    publish_class(cls)
