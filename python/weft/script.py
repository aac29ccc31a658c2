# SPDX-License-Identifier: Apache-2.0
"""The text form of programs: ``from weft import script as T``.

``@T.prim_func`` and ``@T.ir_module`` hand the source of what they decorate, and the names it captures from
around it, to the one parser in C++; the Python body never runs. Everything else that T-script mentions
(``T.Buffer``, ``T.grid``, ``T.block`` ...) exists here only so that annotations can be evaluated.
"""

import inspect as _inspect
import linecache as _linecache
import sys as _sys
import textwrap as _textwrap

from ._core import shown as _shown
from . import _boundary, _core
from ._errors import error as _error
from .ir import IRModule, PrimFunc, _adopt


class _Word:
    """Any word of T-script, as a value that does nothing."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("_"):  # no word of T-script; other parts of weft ask for such names
            raise AttributeError(name)
        return _Word(f"{self._name}.{name}")

    def __call__(self, *args, **kwargs):
        return self

    def __getitem__(self, item):
        return self

    def __repr__(self):
        return self._name


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("tir", "ir"):  # from weft.script import tir as T, as programs of TVM have it
        return _sys.modules[__name__]
    return _Word(f"T.{name}")


def _source(thing, frame=None):
    try:
        if isinstance(thing, type) and frame is not None:
            # inspect finds classes only in registered modules; the frame that decorates knows its file and line.
            file, first = frame.f_code.co_filename, frame.f_lineno
            lines = _linecache.getlines(file, frame.f_globals)
            if first > len(lines):
                raise OSError(f"{file} cannot be read")
            if (
                lines[first - 1].lstrip().startswith("class")
            ):  # before Python 3.11 the line is the class's
                while first > 1 and lines[first - 2].lstrip().startswith("@"):
                    first -= 1
            lines = _inspect.getblock(lines[first - 1 :])
        else:
            lines, first = _inspect.getsourcelines(thing)
            file = _inspect.getsourcefile(thing) or "<python>"
    except (OSError, TypeError) as reason:
        raise _error(
            "parse",
            "script.source",
            f"the source of {_shown(thing)} is not available: {reason}",
            help="put the program into a file; T.from_source(text) takes text",
        ) from None
    return _textwrap.dedent("".join(lines)), file, first


def _caller():
    """The frame that called the public function of this module."""
    frame = _inspect.currentframe().f_back.f_back
    while frame is not None and frame.f_code.co_filename == _boundary.__file__:
        frame = frame.f_back
    return frame


def _lookup(function, frame):
    names = {}
    if frame is not None:
        names.update(frame.f_globals)
        names.update(frame.f_locals)
    if function is not None:
        names.update(function.__globals__)
        if frame is not None:
            names.update(frame.f_locals)
        for cell, value in zip(function.__code__.co_freevars, function.__closure__ or ()):
            names[cell] = value.cell_contents

    def find(name):
        first, *rest = name.split(".")
        if first not in names:
            return None
        value = names[first]
        for part in rest:
            value = getattr(value, part, None)
        if isinstance(value, PrimFunc):
            return value._core
        import numbers

        if isinstance(value, bool) or isinstance(value, (str, float, _core.Expr)):
            return value
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            return float(value)
        return None

    return find


def prim_func(function=None, **_options):
    """Parses a Python function as a tensor program. Raises weft.ParseError with line, column and caret."""
    if function is None:
        return prim_func
    frame = _caller()
    if frame is not None and "__qualname__" in frame.f_locals and "__module__" in frame.f_locals:
        return function  # inside an ir_module class: the class is parsed whole
    text, file, line = _source(function)
    return PrimFunc(_core.parse_func(text, file, _lookup(function, frame), line))


def ir_module(cls):
    """Parses a class of tensor functions as a module."""
    frame = _caller()
    text, file, line = _source(cls, frame)
    return IRModule(_core.parse_module(text, file, _lookup(None, frame), line))


def from_source(text, file="<text>", lookup=None):
    """Programs in T-script text: a PrimFunc when there is one bare function, else an IRModule."""
    module = _core.parse_module(text, file, lookup, 1)
    functions = module.functions
    if len(functions) == 1 and "class " not in text:
        return _adopt(next(iter(functions.values())))
    return IRModule(module)


_boundary.publish(__name__)
