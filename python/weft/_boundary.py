# SPDX-License-Identifier: Apache-2.0
"""Public functions written in Python raise weft's errors only: what Python itself raises for arguments that do not fit
(`'int' object is not iterable`) becomes an error that names the call, the arguments and the signature."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types

from . import _core
from ._errors import error

_KINDS = {
    TypeError: "dtype",
    AttributeError: "dtype",
    ValueError: "value",
    KeyError: "value",
    OverflowError: "value",
    ZeroDivisionError: "value",
    IndexError: "index",
    OSError: "io",
}
_RAISED = tuple(_KINDS)
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARIES = (
    os.path.dirname(os.__file__) + os.sep,
    os.sep + "site-packages" + os.sep,
    os.sep + "dist-packages" + os.sep,
    "<frozen ",
)


def _is_ours(traceback):
    """Whether no function of the caller's was called in between: an error in one is the caller's own."""
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not name.startswith(_HERE) and not any(part in name for part in _LIBRARIES):
            return False
        traceback = traceback.tb_next
    return True


def _described(value):
    if isinstance(value, _core.NDArray):
        return f"array of {value.dtype} {tuple(value.shape)}"
    name = type(value).__name__
    text = repr(value) if isinstance(value, (bool, int, float, str, bytes, type(None))) else ""
    return f"{name} {text[:40]}" if text and value is not None else name


def _refusal(function, raised, args, kwargs):
    given = [_described(a) for a in args] + [f"{k}={_described(v)}" for k, v in kwargs.items()]
    kind = next(k for cls, k in _KINDS.items() if isinstance(raised, cls))
    if kind == "io":
        return error(
            kind,
            "python.file",
            f"{function.__name__}(): {raised.strerror or raised}: {raised.filename!r}",
        )
    what = "these arguments: " + ", ".join(given) if given else "a call without arguments"
    return error(
        kind,
        "python.arguments",
        f"{function.__name__}() does not take {what}",
        notes=[f"{type(raised).__name__}: {raised}"],
        help=f"accepted: {function.__name__}{inspect.signature(function)}",
    )


def public(function):
    """The function as callers see it."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except _RAISED as raised:
            # Of the frames, the first is this one, whose file is ours.
            if isinstance(raised, _core.Error) or not _is_ours(raised.__traceback__):
                raise
            refusal = _refusal(function, raised, args, kwargs)
        raise refusal

    call.__weft_guarded__ = True
    return call


def publish(module_name, skip=()):
    """Replaces the public functions that a module defines; called at its end, before anybody imports them."""
    namespace = sys.modules[module_name].__dict__
    for name, value in list(namespace.items()):
        if name.startswith("_") or name in skip or not isinstance(value, types.FunctionType):
            continue
        if value.__module__ == module_name and not hasattr(value, "__weft_guarded__"):
            namespace[name] = public(value)
