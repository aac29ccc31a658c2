# SPDX-License-Identifier: Apache-2.0
"""What was measured, in an SQLite file: one row for each candidate of a workload on a target. Many processes may
share a file; each trial is a transaction."""

import json
import sqlite3

from weft._errors import error

VERSION = 1
_PATIENCE = 10  # seconds that a lock of another process is waited for
_TABLES = """
create table if not exists trials(
  workload text not null, target text not null, candidate text not null, seed integer not null,
  seconds real, cycles real, failure text, trace text,
  primary key(workload, target, candidate));
create table if not exists meta(key text primary key, value text);
"""


class Trial:
    """One candidate: `decisions` (sketch and knobs), and seconds with its trace, or the slug of its failure."""

    __slots__ = ("decisions", "seconds", "cycles", "failure", "trace")

    def __init__(self, decisions, seconds=None, cycles=0, failure=None, trace=None):
        self.decisions, self.seconds, self.cycles = decisions, seconds, cycles
        self.failure, self.trace = failure, trace

    @property
    def key(self):
        return json.dumps(self.decisions, sort_keys=True)


class Database:
    """Trials of all workloads. Raises weft.IOError: tune.database.damaged, tune.database.busy, tune.database.version."""

    def __init__(self, path):
        self._path = str(path)
        try:
            self._file = sqlite3.connect(self._path, timeout=_PATIENCE)
            self._file.executescript(_TABLES)
            self._file.execute("insert or ignore into meta values('version', ?)", (str(VERSION),))
            self._file.commit()
            (found,) = self._file.execute("select value from meta where key='version'").fetchone()
        except sqlite3.OperationalError as reason:
            if "locked" not in str(reason):
                raise self._damaged(reason) from reason
            raise error(
                "io",
                "tune.database.busy",
                f"{self._path} was locked by another process for {_PATIENCE} s",
                help="let that process end, or name another file",
            ) from reason
        except (sqlite3.Error, ValueError, TypeError) as reason:
            raise self._damaged(reason) from reason
        if found != str(VERSION):
            raise error(
                "io",
                "tune.database.version",
                f"{self._path} has version {found}, this weft reads {VERSION}",
                help="name another file",
            )

    def _damaged(self, reason):
        return error(
            "io",
            "tune.database.damaged",
            f"{self._path} cannot be used as a tuning database: {reason}",
            help="name another file, or remove this one",
        )

    def trials(self, workload, target):
        """All trials, in the order in which they were made."""
        try:
            rows = self._file.execute(
                "select candidate, seconds, cycles, failure, trace from trials "
                "where workload=? and target=? order by rowid",
                (workload, target),
            )
            return [Trial(json.loads(r[0]), *r[1:]) for r in rows]
        except (sqlite3.Error, ValueError, TypeError) as reason:
            raise self._damaged(reason) from reason

    def add(self, workload, target, seed, trial):
        with self._file:
            self._file.execute(
                "insert or replace into trials values(?,?,?,?,?,?,?,?)",
                (
                    workload,
                    target,
                    trial.key,
                    seed,
                    trial.seconds,
                    trial.cycles,
                    trial.failure,
                    trial.trace,
                ),
            )

    def close(self):
        self._file.close()
