# SPDX-License-Identifier: Apache-2.0
"""The type stubs of te and schedule for tools/make_stubs.py. Those of ir, script, build and the core are written by hand.

Steps of a schedule come from the table of primitives in C++ and functions of te from that of intrinsics; the tables here
say what they cannot: types of parameters and results.
"""

import inspect

HEAD = """from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NoReturn, overload

"""

_VALUE, _AXES = "_Value", "TeAxis | Sequence[TeAxis]"
TE_PARAMETERS = {
    "shape": "Sequence[Any] | int | Expr",
    "dtype": "_DType",
    "name": "str",
    "attrs": "Mapping[str, Any] | None",
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


def te_stub(load, signature):
    te = load("te")
    out = (
        HEAD
        + "from ._core import Expr as Expr, TeAxis as TeAxis, TeTensor as TeTensor, _DType, _Value\n"
    )
    out += "from .ir import PrimFunc\n\nTensor = TeTensor\n\n"
    for name, f in vars(te).items():
        if name[0] == "_" or not load("_boundary").is_function(f):
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
        "program": "PrimFunc | IRModule",
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
        "te.pyi": mark + te_stub(load, signature),
        "schedule.pyi": mark + schedule_stub(load("schedule"), rows, signature, default),
    }
