# SPDX-License-Identifier: Apache-2.0
"""Decisions of array operations that no program without a schedule holds, such as the tile of a product: each legal one
can be tried in the call that makes it."""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import weft
from weft import _core
from weft._errors import error

from . import best
from .database import Database, Trial
from .measure import _LIMITS, _calls

_ROUNDS = 3


class Decided:
    """A decision that a call made: what it depends on, and the legal options, what the rule takes first."""

    __slots__ = ("operation", "facts", "device", "options")

    def __init__(self, operation: Any, facts: Any, device: Any, options: Any) -> None:
        self.operation, self.facts, self.device, self.options = operation, facts, device, options

    @property
    def workload(self) -> str:
        return best.decision_workload(self.operation, self.facts)


def recorded(function: Any) -> Any:
    """The decisions of a call that have more than one option, each once."""
    seen: dict = {}

    def see(operation, facts, device, options):
        if len(options) > 1:
            seen.setdefault((operation, facts, device), Decided(operation, facts, device, options))

    _core.record_decisions(see)
    try:
        function()
    finally:
        _core.record_decisions(None)
    return list(seen.values())


def _arrays(results):
    if isinstance(results, weft.Tensor):
        results = results.data
    if isinstance(results, weft.NDArray):
        wide = str(results.dtype) in ("bfloat16", "float8_e4m3fn", "float8_e5m2")
        return [(str(results.dtype), (results.astype("float32") if wide else results).numpy())]
    return [a for r in results for a in _arrays(r)] if isinstance(results, (list, tuple)) else []


def _differs(results, expected):
    """Whether results are others than rounding in another order explains."""
    import numpy as np

    for (kind, got), (_, want) in zip(results, expected):
        limit = _LIMITS.get(kind)
        if limit is None and not kind.startswith(("float8", "complex")):
            if not np.array_equal(got, want):
                return True
            continue
        a, b = (np.nan_to_num(x.astype(np.complex128)) for x in (got, want))
        size = np.linalg.norm(b) + 1e-30
        if not np.linalg.norm(a - b) <= (limit or 1e-1) * size:
            return True
    return False


class _Calls:
    """Times of a function's calls under one option of a decision."""

    def __init__(self, function, decided):
        self._function, self._decided = function, decided
        self._device = weft.device(decided.device)

    def under(self, option, work):
        key = self._decided.workload, self._decided.device
        best.tried[key] = list(option)
        _core.forget_decisions()
        try:
            return work()
        finally:
            del best.tried[key]
            _core.forget_decisions()

    def results(self):
        return _arrays(self._function())

    def seconds(self, number):
        self._device.synchronize()
        start = time.perf_counter()
        for _ in range(number):
            self._function()
        self._device.synchronize()
        return (time.perf_counter() - start) / number


def tuned(
    function: Any, decided: Any, trials: int, database: Any, seconds: Any = None, seed: int = 0
) -> Any:
    """The numbers of the fastest of the first `trials` options, measured in turns; every one is kept in the database. The
    first option is never given up for one that is slower beside it."""
    end = None if seconds is None else time.monotonic() + seconds
    file = Database(best.default_path() if database is None else database)
    try:
        options = decided.options[: max(trials, 1)]
        rows = file.trials(decided.workload, decided.device)
        if len(rows) >= len(options):
            return _fastest(rows, decided)
        calls, expected, times = _Calls(function, decided), None, {}
        for option in options:
            if end is not None and times and time.monotonic() >= end:
                break
            try:
                results = calls.under(option, calls.results)
                expected = results if expected is None else expected
                if _differs(results, expected):
                    raise _wrong(decided, option)
                times[option] = calls.under(option, lambda: calls.seconds(1))
            except weft.Error as reason:
                if option is options[0]:
                    raise
                if reason.code == "tune.wrong":
                    warnings.warn(str(reason), RuntimeWarning, stacklevel=3)
                _keep(file, decided, option, seed, failure=reason.code)
        number = _calls(min(times.values()))
        samples: dict = {option: [] for option in times}
        for _ in range(_ROUNDS):
            for option in times:
                samples[option].append(calls.under(option, lambda: calls.seconds(number)))
        for option, measured in samples.items():
            _keep(file, decided, option, seed, seconds=min(measured))
        return _fastest(file.trials(decided.workload, decided.device), decided)
    finally:
        file.close()


def _wrong(decided, option):
    return error(
        "internal",
        "tune.wrong",
        f"{decided.operation} computes another result by {list(option)}",
        notes=[f"what it depends on: {list(decided.facts)}"],
    )


def _keep(file, decided, option, seed, seconds=None, failure=None):
    """What the rule takes anyway is kept as other default schedules are."""
    first = option == decided.options[0]
    knobs = {} if first else {"numbers": list(option)}
    trial = Trial({"sketch": "plain" if first else "decision", "knobs": knobs}, seconds, 0, failure)
    trial.trace = json.dumps(list(option))
    file.add(decided.workload, decided.device, seed, trial)


def _fastest(rows, decided):
    good = [t for t in rows if t.seconds]
    return (
        tuple(json.loads(min(good, key=lambda t: t.seconds).trace)) if good else decided.options[0]
    )
