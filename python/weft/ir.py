# SPDX-License-Identifier: Apache-2.0
"""Programs: PrimFunc, IRModule, structural equality."""

from ._core import shown as _shown
from . import _core
from ._boundary import publish as _publish
from ._errors import error as _error


class _Program:
    __slots__ = ("_core",)

    def __init__(self, core):
        if not isinstance(core, (_core.PrimFunc, _core.IRModule)):
            raise _error(
                "dtype",
                "python.program",
                f"{type(self).__name__} cannot be made of {type(core).__name__}",
                help="decorate a function with T.prim_func, or read text with weft.script.from_source",
            )
        self._core = core

    def script(self):
        """The T-script text, which the parser reads back to an equal program."""
        return self._core.script()

    def show(self, *_ignored, **_also):
        """Prints the program as T-script."""
        print(self.script())

    def __repr__(self):
        return self.script()

    def __hash__(self):
        return hash(self._core)

    def __eq__(self, other):
        return type(other) is type(self) and self._core == other._core

    # A program never changes: a copy is the program itself, a pickle is its text.
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _read, (type(self).__name__, self.script())


def _read(kind, text):
    if kind == "PrimFunc":
        return PrimFunc(_core.parse_func(text, "<pickle>", None, 1))
    return IRModule(_core.parse_module(text, "<pickle>", None, 1))


class PrimFunc(_Program):
    """One tensor function: parameters, body, attributes."""

    @property
    def name(self):
        """The function's name."""
        return self._core.name

    @property
    def params(self):
        """The names of its parameters, in order."""
        return self._core.params

    @property
    def attrs(self):
        """What T.func_attr says, as a dict."""
        return self._core.attrs

    def with_attr(self, key, value):
        """The function with one attribute more."""
        return PrimFunc(self._core.with_attr(key, value))


class IRModule(_Program):
    """Named functions: ``IRModule({"main": f})``."""

    def __init__(self, functions):
        if isinstance(functions, dict):
            for name, f in functions.items():
                if not isinstance(name, str) or not isinstance(f, PrimFunc):
                    raise _error(
                        "dtype",
                        "python.program",
                        f"IRModule maps names to PrimFuncs, not {_shown(name)} to {type(f).__name__}",
                        help='weft.IRModule({"main": f})',
                    )
            functions = _core.IRModule({name: f._core for name, f in functions.items()})
        super().__init__(functions)

    def __getitem__(self, name):
        return PrimFunc(self._core[name])

    @property
    def functions(self):
        """PrimFuncs by name."""
        return {name: PrimFunc(f) for name, f in self._core.functions.items()}

    def __call__(self):
        return self  # a decorated class may be "instantiated"


def _adopt(core):
    return PrimFunc(core) if isinstance(core, _core.PrimFunc) else IRModule(core)


def structural_equal(a, b):
    """Whether two programs are equal up to the names of variables and buffers."""
    return _core.structural_equal(a, b)


def structural_hash(program):
    """A hash that equal programs share."""
    return _core.structural_hash(program)


def verify(program):
    """Raises weft.Error when the program is ill-formed."""
    _core.verify(program)


_publish(__name__)
