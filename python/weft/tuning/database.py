# SPDX-License-Identifier: Apache-2.0
"""What was measured, in an SQLite file: one row for each candidate of a workload on a target. Many processes may
share a file; each trial is a transaction."""

from __future__ import annotations

import json
import math
import os
import pathlib
import sqlite3
import warnings
from typing import Any

from weft._errors import error

from .best import default_path

VERSION = 1
_PATIENCE = 10  # seconds that a lock of another process is waited for
# In one transaction: a process that is killed leaves an empty file or a database.
_TABLES = f"""
begin immediate;
create table if not exists trials(
  workload text not null, target text not null, candidate text not null, seed integer not null,
  seconds real, cycles real, failure text, trace text,
  primary key(workload, target, candidate));
create table if not exists meta(key text primary key, value text);
insert or ignore into meta values('version', '{VERSION}');
commit;
"""
# A row of the same candidate is replaced by a better one: a wrong result is worse than everything, and stays.
_KEEP_THE_BEST = """
insert into trials values(?,?,?,?,?,?,?,?) on conflict(workload, target, candidate) do update set
  seed=excluded.seed, seconds=excluded.seconds, cycles=excluded.cycles, failure=excluded.failure, trace=excluded.trace
where trials.failure is not 'tune.wrong' and (excluded.failure is 'tune.wrong' or
  (excluded.seconds is not null and (trials.seconds is null or excluded.seconds < trials.seconds)))
"""
_COLUMNS = "workload, target, candidate, seed, seconds, cycles, failure, trace"


class Trial:
    """One candidate: `decisions` (sketch and knobs), and seconds with its trace, or the slug of its failure."""

    __slots__ = ("decisions", "seconds", "cycles", "failure", "trace")

    def __init__(
        self,
        decisions: Any,
        seconds: Any = None,
        cycles: int = 0,
        failure: Any = None,
        trace: Any = None,
    ) -> None:
        self.decisions, self.seconds, self.cycles = decisions, seconds, cycles
        self.failure, self.trace = failure, trace

    @property
    def key(self) -> Any:
        return json.dumps(self.decisions, sort_keys=True)


def _checked(row):
    """A row as it was written. Raises ValueError when it is none."""
    workload, target, candidate, seed, seconds, cycles, failure, trace = row
    texts = (workload, target, candidate, *(t for t in (failure, trace) if t is not None))
    if not all(isinstance(t, str) for t in texts) or not isinstance(seed, int):
        raise ValueError("a row has columns of other types")
    if seconds is not None:
        if not isinstance(seconds, float) or not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"a row has a time of {seconds!r} seconds")
    decisions = json.loads(candidate)
    if not isinstance(decisions, dict) or not isinstance(decisions.get("knobs"), dict):
        raise ValueError("a row's candidate holds no decisions")
    return row


class Database:
    """Trials of all workloads.

    Raises weft.IOError: tune.database.damaged, .foreign (SQLite of another program), .busy (another process holds it),
    .version (an older format), .newer, .full (no space on the device), .path (cannot be opened or written).
    """

    def __init__(self, path: str | os.PathLike[str], exists: bool = False) -> None:
        """`exists`: an absent file is an error, and the file is only read."""
        self.path = pathlib.Path(path)
        self._unsaved = []
        try:
            if exists:
                where = f"{self.path.absolute().as_uri()}?mode=ro"
                self._file = sqlite3.connect(where, timeout=_PATIENCE, uri=True)
            else:
                self._file = sqlite3.connect(str(self.path), timeout=_PATIENCE)
        except sqlite3.Error as reason:
            raise self._named(reason) from reason
        try:
            self._open(exists)
        except (sqlite3.Error, UnicodeDecodeError, TypeError) as reason:
            self._file.close()
            raise self._named(reason) from reason
        except BaseException:
            self._file.close()
            raise

    def _open(self, exists):
        self._file.execute("pragma trusted_schema = off")
        kinds = dict(self._file.execute("select name, type from sqlite_master"))
        tables = set(kinds)
        if tables and not tables & {"trials", "meta"}:
            raise error(
                "io",
                "tune.database.foreign",
                f"{self.path} is a database of another program",
                notes=["its tables: " + ", ".join(sorted(map(str, tables))[:8])],
                help="name another file",
            )
        active = [f"{k} {n}" for n, k in kinds.items() if k in ("view", "trigger")]
        if active:  # what this file does on its own would run in every query
            raise error(
                "io",
                "tune.database.foreign",
                f"{self.path} holds {', '.join(sorted(active)[:8])}; a tuning database holds tables only",
                help="name another file",
            )
        if not {"trials", "meta"} <= tables and not exists:
            self._file.executescript(_TABLES)
        row = self._file.execute("select value from meta where key='version'").fetchone()
        found = row[0] if row else None
        if found == str(VERSION):
            return
        if str(found).isdigit() and int(found) > VERSION:
            raise error(
                "io",
                "tune.database.newer",
                f"{self.path} has version {found}, written by a newer weft; this one reads {VERSION}",
                help="use the newer weft, or name another file",
            )
        raise error(
            "io",
            "tune.database.version",
            f"{self.path} has version {found}, this weft reads {VERSION}",
            help="name another file",
        )

    def _named(self, reason):
        text = str(reason)
        if "locked" in text or "busy" in text:
            return error(
                "io",
                "tune.database.busy",
                f"{self.path} was locked by another process for {_PATIENCE} s",
                help="let that process end, or name another file",
            )
        if "full" in text or "disk I/O" in text:
            return error(
                "io",
                "tune.database.full",
                f"{self.path} cannot grow: {text}",
                help="make space on that disk, or name a file on another",
            )
        if "unable to open" in text or "readonly" in text:
            return error(
                "io",
                "tune.database.path",
                f"{self.path} cannot be opened or written: {text}",
                help="name a file in a folder that exists and is yours",
            )
        return error(
            "io",
            "tune.database.damaged",
            f"{self.path} cannot be used as a tuning database: {text}",
            help="name another file, or remove this one",
        )

    def trials(self, workload: Any, target: Any) -> Any:
        """All trials, in the order in which they were made."""
        try:
            rows = self._file.execute(
                f"select {_COLUMNS} from trials where workload=? and target=? order by rowid",
                (workload, target),
            )
            return [Trial(json.loads(r[2]), *r[4:]) for r in map(_checked, rows)]
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as reason:
            raise self._named(reason) from reason

    def rows(self) -> Any:
        """All rows of all workloads, checked."""
        try:
            found = self._file.execute(f"select {_COLUMNS} from trials order by rowid").fetchall()
            return [_checked(row) for row in found]
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as reason:
            raise self._named(reason) from reason

    def add_rows(self, rows: Any, statement: Any = _KEEP_THE_BEST) -> None:
        """Adds all or none; of two rows of one candidate the better one stays."""
        try:
            with self._file:
                self._file.execute("begin immediate")
                self._file.executemany(statement, rows)
        except (sqlite3.Error, UnicodeDecodeError, TypeError) as reason:
            raise self._named(reason) from reason

    def add(self, workload: Any, target: Any, seed: Any, trial: Any) -> None:
        """Writes a trial. What cannot be written now (a full disk, a lock) is a RuntimeWarning and written later."""
        row = (workload, target, trial.key, seed, trial.seconds, trial.cycles, trial.failure)
        self._unsaved.append((*row, trial.trace))
        self.save()

    def correct(self, workload: Any, target: Any, trial: Any) -> None:
        """Replaces the time of a trial that was measured again."""
        row = (trial.seconds, trial.cycles, workload, target, trial.key)
        self.add_rows(
            [row],
            "update trials set seconds=?, cycles=? where workload=? and target=? and candidate=?",
        )

    def save(self) -> None:
        """Writes what is not written yet."""
        if not self._unsaved:
            return
        try:
            self.add_rows(self._unsaved)
            self._unsaved = []
        except Exception as reason:
            if getattr(reason, "code", "") not in ("tune.database.full", "tune.database.busy"):
                raise
            warnings.warn(
                f"{len(self._unsaved)} trials are not written yet: {reason}",
                RuntimeWarning,
                stacklevel=3,
            )

    def close(self) -> None:
        try:
            self.save()
        finally:
            self._file.close()


def _database(path):
    return default_path() if path is None else pathlib.Path(path)


def export(path: str | os.PathLike[str], database: Any = None) -> Any:
    """Copies all trials of `database` (None: weft.tuning.default_path()) into a new file, to be shipped.

    The file is written whole or not at all; an existing one is replaced. Returns the number of rows. Raises
    weft.IOError: tune.database.*, tune.export.path.
    """
    source, path = Database(_database(database), exists=True), pathlib.Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        rows = source.rows()
        if path.exists() and path.samefile(source.path):
            raise error(
                "io",
                "tune.export.path",
                f"{path} is the database that is to be exported",
                help="name another file",
            )
        if path.exists() and not path.is_file():
            raise error(
                "io",
                "tune.export.path",
                f"{path} is no file that an exported database could replace",
                help="name another file",
            )
        target = Database(beside)
        try:
            target.add_rows(rows)
        finally:
            target.close()
        os.replace(beside, path)
        return len(rows)
    finally:
        source.close()
        beside.unlink(missing_ok=True)


def merge(path: str | os.PathLike[str], database: Any = None) -> Any:
    """Adds the trials of the file `path` to `database` (None: weft.tuning.default_path(), made when absent).

    Of two rows of one candidate the faster stays, one with a time before one that failed; a wrong result stays wrong.
    All rows are taken, or none. Returns the number of rows read. Raises weft.IOError: tune.database.*.
    """
    source = Database(path, exists=True)
    try:
        rows = source.rows()
    finally:
        source.close()
    target = Database(_database(database))
    try:
        target.add_rows(rows)
    finally:
        target.close()
    return len(rows)
