# SPDX-License-Identifier: Apache-2.0
"""Tuning what array operations run: programs are taken from a call, with its arguments, and decisions that no program
holds are tried in the call itself."""

from __future__ import annotations

import threading
from typing import Any

import weft
from weft import _core
from weft._errors import error

from . import decisions
from .search import tune

_one = threading.RLock()  # recording is one for the process
_recorders: list = []  # of calls of recorded() inside each other


class Recorded:
    """A program that an array operation ran, and the arguments of its first call."""

    __slots__ = ("operation", "program", "device", "arguments")

    def __init__(self, operation: Any, program: Any, device: Any, arguments: Any) -> None:
        self.operation, self.program, self.device = operation, program, device
        self.arguments = arguments


def recorded(function: Any) -> Any:
    """The programs with a schedule of the rules that `function()` runs, each once."""
    seen = {}

    def see(operation, program, device, arguments):
        key = _core.structural_hash(program), device
        if key not in seen:
            seen[key] = Recorded(operation, weft.PrimFunc(program), device, arguments)

    with _one:
        _recorders.append(see)
        _core.record_programs(see)
        try:
            function()
        finally:
            _recorders.pop()
            _core.record_programs(_recorders[-1] if _recorders else None)
    return list(seen.values())


def tune_operations(function: Any, trials: int = 16, database: Any = None, **options: Any) -> Any:
    """Tunes the array operations that a call runs on devices whose schedules are chosen by rules (cards).

    `function` is called without arguments, several times: ``weft.tuning.tune_operations(lambda: weft.softmax(x))``. Each
    program that it runs is tuned with the arguments of its first call by weft.tune, whose `options` may be given (`seconds`,
    for each program, `progress`, …); extents and strides are arguments of these programs, so what is found serves all calls
    of the same operation, types and orders of size. Products and convolutions run programs that are bound already: their
    tiles are decided by the extents, and for each decision the `trials` tiles of which most is expected are tried in
    `function` itself, whose results must stay the same within rounding. Later calls use what was found without being asked,
    in this process too.

    Returns a list of (operation, device, schedule), or the numbers of a decision in place of the schedule. Raises
    weft.Error: tune.operations (the call ran no such program), and what weft.tune raises.
    """
    found, decided = recorded(function), decisions.recorded(function)
    if not found and not decided:
        raise error(
            "value",
            "tune.operations",
            "the call ran no program whose schedule rules choose",
            notes=["on hosts there is none"],
            help="call an operation of arrays on a card, such as lambda: x.sum()",
        )
    out = []
    for each in found:
        schedule = tune(
            each.program,
            target=each.device,
            trials=trials,
            database=database,
            arguments=each.arguments,
            **options,
        )
        out.append((each.operation, each.device, schedule))
    limits = {k: v for k, v in options.items() if k in ("seconds", "seed")}
    for each in decided:
        numbers = decisions.tuned(function, each, trials, database, **limits)
        out.append((each.operation, each.device, numbers))
    _core.forget_programs()
    return out
