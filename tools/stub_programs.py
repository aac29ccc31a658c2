# SPDX-License-Identifier: Apache-2.0
"""The type stubs of programs for tools/make_stubs.py: ir, te, script, schedule and build.

Steps of a schedule come from the table of primitives in C++ and functions of te from that of intrinsics; the tables here
say what they cannot: types of parameters and results.
"""

import inspect

HEAD = """from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NoReturn, overload

"""

# A number, an index or an expression: what an operator of programs takes.
_BINARY = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
_REFLECTED = "add sub mul truediv floordiv mod pow and or xor lshift".split()

_EXPRESSION = "class {name}:\n    @property\n    def dtype(self) -> str: ...\n    def astype(self, dtype: _DType) -> Expr: ...\n"
for _op in _BINARY:
    _EXPRESSION += f"    def __{_op}__(self, other: _Value, /) -> Expr: ...\n"
for _op in _REFLECTED:
    _EXPRESSION += f"    def __r{_op}__(self, other: _Value, /) -> Expr: ...\n"
for _op in ("lt", "le", "gt", "ge"):
    _EXPRESSION += f"    def __{_op}__(self, other: _Value, /) -> Expr: ...\n"
for _op in ("eq", "ne"):
    _EXPRESSION += (
        f"    def __{_op}__(self, other: _Value, /) -> Expr: ...  # type: ignore[override]\n"
    )
for _op in ("neg", "pos", "abs", "invert"):
    _EXPRESSION += f"    def __{_op}__(self) -> Expr: ...\n"
_EXPRESSION += "    def __bool__(self) -> NoReturn: ...\n    def __hash__(self) -> int: ...\n"

CORE = (
    HEAD
    + "_DType = str | Any\n_Value = Expr | TeAxis | bool | int | float\n_Indices = Expr | TeAxis | int\n\n"
    + _EXPRESSION.format(name="Expr")
    + "\n"
    + _EXPRESSION.format(name="TeAxis")
    + """
class TeTensor:
    @property
    def dtype(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def shape(self) -> tuple[Any, ...]: ...
    def __call__(self, *indices: _Indices) -> Expr: ...
    def __getitem__(self, indices: _Indices | tuple[_Indices, ...], /) -> Expr: ...
    def __iter__(self) -> Iterator[Expr]: ...

class BlockRef: ...

class LoopRef:
    @property
    def name(self) -> str: ...

class Trace:
    def __len__(self) -> int: ...
    def as_json(self) -> str: ...
    def as_python(self) -> str: ...

def __getattr__(name: str) -> Any: ...
"""
)

IR = (
    HEAD
    + """class _Program:
    def script(self) -> str: ...
    def show(self, *_ignored: Any, **_also: Any) -> None: ...

class PrimFunc(_Program):
    def __init__(self, core: Any) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def params(self) -> list[str]: ...
    @property
    def attrs(self) -> dict[str, Any]: ...
    def with_attr(self, key: str, value: Any) -> PrimFunc: ...

class IRModule(_Program):
    def __init__(self, functions: Mapping[str, PrimFunc] | Any) -> None: ...
    def __getitem__(self, name: str) -> PrimFunc: ...
    @property
    def functions(self) -> dict[str, PrimFunc]: ...
    def __call__(self) -> IRModule: ...

def structural_equal(a: _Program, b: _Program) -> bool: ...
def structural_hash(program: _Program) -> int: ...
def verify(program: _Program) -> None: ...
"""
)

# A function below T.prim_func is T-script and no Python: checkers leave it alone, as they do for no_type_check.
SCRIPT = (
    "from collections.abc import Callable\nfrom typing import Any, no_type_check\n\nfrom .ir import IRModule, PrimFunc\n\n"
    + "prim_func = no_type_check\nir_module = no_type_check\n"
    + "def from_source(text: str, file: str = '<text>', lookup: Callable[[str], Any] | None = None) -> "
    + "PrimFunc | IRModule: ...\ndef __getattr__(name: str) -> Any: ...\n"
)

BUILD = (
    HEAD
    + """from . import Device, NDArray
from .ir import IRModule, PrimFunc
from .schedule import Schedule

# T.prim_func makes a PrimFunc of a function; a checker still sees the function.
_Program = PrimFunc | IRModule | Schedule | Callable[..., Any] | type[Any]

class TimeResult:
    mean: float
    median: float
    min: float
    max: float
    stddev: float
    results: list[float]
    cycles: float
    wall: float
    @property
    def std(self) -> float: ...

class Function:
    def __call__(self, *args: Any) -> None: ...
    def time(self, *args: Any, number: int = 10, repeat: int = 3, min_seconds: float = 0.0) -> TimeResult: ...

class Module:
    def __getitem__(self, name: str) -> Function: ...
    def __call__(self, *args: Any) -> None: ...
    @property
    def target(self) -> str: ...
    @property
    def functions(self) -> list[str]: ...
    def source(self) -> str: ...
    def plan(self, name: str = 'main') -> dict[str, Any]: ...
    @property
    def notes(self) -> list[str]: ...
    def bytes(self) -> bytes: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def time_evaluator(
        self, name: str = 'main', dev: Any = None, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0
    ) -> Callable[..., TimeResult]: ...

def build(
    program: _Program,
    target: str | Device = 'cpu',
    after: Callable[[str, PrimFunc, float], Any] | None = None,
    tuned: bool = True,
    validate: bool | int | None = None,
) -> Module: ...
def accepts(program: _Program, target: str | Device = 'cpu') -> Exception | None: ...
def target_limits(target: str) -> dict[str, Any]: ...
def load(path: str | PathLike[str]) -> Module: ...
"""
)

_VALUE, _AXES = "_Value", "TeAxis | Sequence[TeAxis]"
TE_PARAMETERS = {
    "shape": "Sequence[Any] | int | Expr",
    "dtype": "_DType",
    "name": "str",
    "attrs": "Mapping[str, Any] | None",
    "fcompute": "_Body",
    "dom": "int | Expr | tuple[Any, Any]",
    "expr": _VALUE,
    "axis": _AXES,
    "where": "Expr | None",
    "index": _VALUE,
    "value": _VALUE,
    "fcombine": "Callable[..., Any]",
    "fidentity": "Callable[..., Any]",
    "args": "Sequence[TeTensor | Expr]",
    "condition": _VALUE,
    "conditions": _VALUE,
    **dict.fromkeys("abxyz", _VALUE),
}
TE_RESULTS = {
    "placeholder": "TeTensor",
    "compute": "Any",  # a tensor, or a tuple of them where the function gives a tuple
    "reduce_axis": "TeAxis",
    "argmax": "tuple[Expr, Expr]",
    "argmin": "tuple[Expr, Expr]",
    "comm_reducer": "Callable[..., Any]",
    "create_prim_func": "PrimFunc",
}

KINDS = {
    "block": "BlockRef",
    "loop": "LoopRef",
    "block or loop": "BlockRef | LoopRef",
    "loop or list of block": "LoopRef | Sequence[BlockRef]",
    "list of block": "list[BlockRef]",
    "list of loop": "list[LoopRef]",
    "list of int": "list[int]",
    "list of int or None": "Sequence[int | Expr | LoopRef | None]",
    "list of float": "Sequence[float]",
    "int or None": "int | None",
    "index map": "Callable[..., Any]",
    "value": "Any",
    '("read" | "write", int) or buffer name': "tuple[Literal['read', 'write'], int] | int | str",
}


def te_stub(te, signature):
    out = (
        HEAD
        + "from ._core import Expr as Expr, TeAxis as TeAxis, TeTensor as TeTensor, _DType, _Value\n"
    )
    out += "from .ir import PrimFunc\n\nTensor = TeTensor\n\n"
    for name, f in vars(te).items():
        if name[0] == "_" or not inspect.isfunction(f):
            continue
        if name == "compute":  # the body says how many results there are
            rest = "name: str = 'compute', attrs: Mapping[str, Any] | None = None"
            shape = f"shape: {TE_PARAMETERS['shape']}"
            for value, result in (
                ("_Value", "TeTensor"),
                ("tuple[_Value, ...]", "tuple[TeTensor, ...]"),
            ):
                body = " | ".join(
                    f"Callable[[{', '.join(['TeAxis'] * n)}], {value}]" for n in range(1, 9)
                )
                out += (
                    f"@overload\ndef compute({shape}, fcompute: {body}, {rest}) -> {result}: ...\n"
                )
            continue
        types = {p: TE_PARAMETERS.get(p, "Any") for p in inspect.signature(f).parameters}
        out += signature(name, f, TE_RESULTS.get(name, "Expr"), types) + "\n"
    return out


def step(row, default):
    name, _, result, fields = row
    parts = ["self"]
    for field, kind, _, mode, value in fields:
        annotation = KINDS.get(kind, kind)
        if mode == 2:
            parts.append(f"*{field}: {annotation.removeprefix('list[').removesuffix(']')}")
        else:
            given = "" if mode == 0 else f" = {default(value)}"
            parts.append(f"{field}: {annotation.replace('list[', 'Sequence[')}{given}")
    return f"    def {name}({', '.join(parts)}) -> {KINDS.get(result, result)}: ..."


def schedule_stub(schedule, rows, signature, default):
    types = {
        "program": "Any",  # a checker sees a function below T.prim_func, not the PrimFunc
        "seed": "int",
        "check": "Literal['run'] | None",
        "step_limit": "int",
        "func_name": "str",
        "ref": "BlockRef | LoopRef",
        "trace": "Trace | str | Any",
        "_ignored": "Any",
    }
    results = {
        "__init__": "None",
        "script": "str",
        "show": "None",
        "work_on": "None",
        "get": "dict[str, Any]",
    }
    properties = {
        "checked": "tuple[int, int] | Any",  # None without check="run"
        "mod": "IRModule",
        "func": "PrimFunc",
        "start": "IRModule",
        "trace": "Trace",
    }
    out = (
        HEAD + "from ._core import BlockRef as BlockRef, Expr, LoopRef as LoopRef, Trace as Trace\n"
    )
    out += "from .ir import IRModule, PrimFunc\n\nclass Schedule:\n"
    for name, kind in properties.items():
        out += f"    @property\n    def {name}(self) -> {kind}: ...\n"
    for name in ("__init__", "script", "show", "copy", "work_on", "get"):
        f = getattr(schedule.Schedule, name)
        out += f"    {signature(name, f, results.get(name, 'Schedule'), types, bound=True)}\n"
    out += "    @staticmethod\n"
    out += f"    {signature('replay', schedule.Schedule.replay, 'Schedule', types)}\n"
    return out + "\n".join(step(row, default) for row in rows) + "\n"


def program_stubs(load, mark, signature, default):
    """The stubs by file."""
    rows = load("_core").schedule_primitives()
    return {
        "_core.pyi": mark + CORE,
        "ir.pyi": mark + IR,
        "te.pyi": mark + te_stub(load("te"), signature),
        "script.pyi": mark + SCRIPT,
        "build.pyi": mark + BUILD,
        "schedule.pyi": mark + schedule_stub(load("schedule"), rows, signature, default),
    }
