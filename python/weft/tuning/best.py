# SPDX-License-Identifier: Apache-2.0
"""The best schedules of a database, for weft.build and array operations. sqlite3 is loaded only when there is a database."""

from __future__ import annotations

import json
import math
import os
import pathlib
from typing import Any

from weft import _core

_read = {}  # path: (what the file was, {(workload, target): trace}, why it cannot be used)


def _where():
    given = os.environ.get("WEFT_TUNE_DB")
    if given:
        return given
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local/share")
    return os.path.join(data, "weft", "tune.db")


def default_path() -> str:
    """The user's own database: $WEFT_TUNE_DB, else weft/tune.db in $XDG_DATA_HOME (~/.local/share).

    The folder is made with mode 0700. Raises weft.IOError: tune.database.folder.
    """
    path = pathlib.Path(_where())
    if os.environ.get("WEFT_TUNE_DB"):
        return path
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as reason:
        from weft._errors import error

        raise error(
            "io",
            "tune.database.folder",
            f"the folder {path.parent} cannot be made: {reason.strerror}",
            help="set WEFT_TUNE_DB to a file that can be written, or give database=...",
        ) from reason
    return path


def _state(path):
    """What changes when a file is written; None: there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _load(path):
    """The fastest trial of each workload and target; None where the default schedule is that."""
    import sqlite3

    try:
        uri = pathlib.Path(path).absolute().as_uri() + "?mode=ro"
        file = sqlite3.connect(uri, timeout=0.2, uri=True)
        try:
            version = file.execute("select value from meta where key='version'").fetchone()
            if version != ("1",):
                return {}, f"version {version and version[0]} is not this weft's"
            rows = file.execute(
                "select workload, target, trace, candidate, min(seconds) from trials "
                "where seconds is not null and failure is null group by workload, target"
            ).fetchall()
        finally:
            file.close()
    except (sqlite3.Error, UnicodeDecodeError) as reason:
        return {}, str(reason)
    plain = '"sketch": "plain"'
    return {
        (w, t): None if plain in str(candidate) else trace for w, t, trace, candidate, _ in rows
    }, ""


def switched_off() -> Any:
    """Whether the environment says that no tuned schedule is to be used: WEFT_TUNED=0."""
    return os.environ.get("WEFT_TUNED", "") in ("0", "off", "no")


def _known(path):
    """(traces by workload and target, why the file cannot be used); (None, "") without a file. Read again when it changes."""
    state = _state(path)
    if state is None:
        return None, ""
    known = _read.get(path)
    if known is None or known[0] != state:
        known = _read[path] = (state, *_load(path))
    return known[1:]


def array_program(operation: Any, program: Any, device: Any) -> Any:
    """The schedule that was found for a program of an array operation, as a function; None: the rules' is used.

    Asked once for each program and device. What was done is kept for weft.tuning.notes()."""
    path = _where()
    found, damage = (None, "") if switched_off() else _known(path)
    if damage:
        _note(f"the tuning database {path} is not used: {damage}")
    if not found:
        return None
    trace = found.get((f"{_core.structural_hash(program):x}", device))
    if trace is None:
        return None
    import weft

    what = f"{operation} on {device}"
    try:
        if not isinstance(trace, str):
            raise weft.ArgumentError(f"its trace is {type(trace).__name__}, not text")
        scheduled = weft.Schedule.replay(weft.PrimFunc(program), trace).func
    except weft.Error as reason:
        why = str(reason).partition("\n")[0]
        _note(f"{what}: the tuned schedule of {path} is not used, for it does not replay: {why}")
        return None
    _note(f"{what}: a tuned schedule of {path} is used")
    return scheduled._core


tried: dict = {}  # decisions that a search measures now, by workload and device


def decision_workload(operation: Any, facts: Any) -> str:
    """The name under which trials of a decision are kept."""
    return f"{operation} " + ",".join(map(str, facts))


def _nearest(found, operation, facts, device, extents):
    """The key of the nearest facts for which something was found, of which all sizes are of the same order (between the
    same powers of two) and the rest is the same; None."""

    def bucket(numbers):
        return [(n - 1).bit_length() if extents >> i & 1 else n for i, n in enumerate(numbers)]

    mine, near = bucket(facts), {}
    for workload, where in found:
        name, _, numbers = str(workload).partition(" ")
        if name != operation or where != device:
            continue
        try:
            others = [int(n) for n in numbers.split(",")]
        except ValueError:
            continue
        if len(others) == len(mine) and bucket(others) == mine:
            apart = sum(abs(math.log(max(a, 1) / max(b, 1))) for a, b in zip(facts, others))
            near[apart, workload] = workload, where
    return near[min(near)] if near else None


def array_decision(operation: Any, facts: Any, device: Any, extents: int = 0) -> Any:
    """The numbers that were found for a decision of an array operation, or for one of the same order of size; None: the
    rule's are used. `extents`: the bits of facts that are sizes. Asked once for each in each thread; what is none of the
    legal ones is not used."""
    key = decision_workload(operation, facts), device
    if key in tried:
        return tried[key]
    found, damage = (None, "") if switched_off() else _known(_where())
    if damage:
        _note(f"the tuning database {_where()} is not used: {damage}")
    if not found:
        return None
    other = key if key in found else _nearest(found, operation, facts, device, extents)
    if other is None or found[other] is None:
        return None
    try:
        out = [int(n) for n in json.loads(found[other])]
    except (ValueError, TypeError, RecursionError):
        return None
    for_others = "" if other == key else f" for {other[0].partition(' ')[2]}"
    _note(f"{key[0]} on {device}: a decision of {_where()}{for_others} is used if it is legal")
    return out


def array_program_refused(operation: Any, program: Any, device: Any, reason: Any) -> None:
    """The schedule replays, but what it makes cannot be built."""
    where = _where()
    _notes.pop(f"{operation} on {device}: a tuned schedule of {where} is used", None)
    _note(
        f"{operation} on {device}: the tuned schedule of {where} is not used, for it does not build: {reason}"
    )


_notes = {}  # sentences, in order; a dictionary so that each is there once


def _note(sentence):
    _notes[sentence] = True


def notes(clear: bool = False) -> Any:
    """What was done with tuned schedules for array operations in this process: sentences, oldest first.

    Which operation uses one; why one, or the whole database, is not used. `clear`: forgets them.
    """
    out = list(_notes)
    if clear:
        _notes.clear()
    return out


def tuned(program: Any, target: Any) -> Any:
    """(program with the schedules that were found for its functions, sentences for Module.notes)."""
    path = _where()
    found, damage = (None, "") if switched_off() else _known(path)
    if damage:
        return program, [f"the tuning database {path} is not used: {damage}"]
    if not found:
        return program, []
    import weft

    from .machines import replayed

    single = isinstance(program, weft.PrimFunc)
    functions = {program.name: program} if single else dict(program.functions)
    notes, changed = [], False
    for name, function in functions.items():
        trace = found.get((f"{_core.structural_hash(function._core):x}", target))
        if not isinstance(trace, str):
            continue
        try:
            functions[name] = replayed(function, target, trace).func
        except weft.Error as reason:
            why = str(reason).partition("\n")[0]
            notes.append(
                f"{name}: the tuned schedule of {path} is not used, for it does not replay: {why}"
            )
            continue
        changed = True
        notes.append(f"{name}: a tuned schedule of {path} is used")
    if not changed:
        return program, notes
    return (functions[program.name] if single else weft.IRModule(functions)), notes
