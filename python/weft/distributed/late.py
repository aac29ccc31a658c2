# SPDX-License-Identifier: Apache-2.0
"""Whether ranks that wait long for a collective on cards, or for a message of Gloo, have made the same calls.

NCCL compares nothing: ranks whose calls differ wait for ever. So do messages of Gloo whose sizes differ (gloo.py). Comparing every call first costs a message (the debug
mode). So each rank keeps its last calls, and the watch's thread looks at a group that has been busy with the same call for some seconds: this rank then says what it has
called, the others answer, and the first number that two ranks use for different calls is the failure. Equal calls mean a slow rank, and the wait goes on.
A rank that has found out by itself that calls differ (instep.py) asks in the same way what the others have called.
"""

from __future__ import annotations

import collections
import json
import time

from .failure import Failure

_PATIENCE = 2.0  # seconds with one call, before others are asked
_SHORTEST, _LONGEST = 0.4, 30.0  # seconds between two looks at what others have said
_KEPT = 64  # calls: a rank may be ahead of its card by some


class Record:
    """The last calls of a group, or the last messages between two ranks. `name` is equal on all of its ranks; `title` says what it is a record of."""

    __slots__ = ("name", "ranks", "busy", "title", "count", "last", "since", "seen")

    def __init__(self, name, ranks, busy, title=None):
        self.name, self.ranks, self.busy, self.title = name, ranks, busy, title
        self.count, self.last = 0, collections.deque(maxlen=_KEPT)
        self.since, self.seen = 0.0, 0

    def note(self, *call):
        """(name, detail, dtype, shape) of a collective that begins. Returns its number, from 1."""
        self.count += 1
        self.last.append((self.count, call))
        return self.count

    @staticmethod
    def text(name, detail, dtype, shape):
        """A call in words. Messages have no name, and nothing that is moved has no shape."""
        call = f"{name}({detail})" if name else dtype
        return call if shape is None else f"{call} of {dtype}{list(shape)}"

    def words(self, number, told):
        """What ranks say of one number. `told`: {rank: text}."""
        which = self.title or f"of the group of ranks {self.ranks}"
        what, verb = ("message", "has") if self.title else ("call", "calls")
        each = "; ".join(f"rank {r} {verb} {told.get(r, 'nothing yet')}" for r in self.ranks)
        return f"{what} {number} {which}: {each}"

    def told(self):
        """[[number, text] of each call that is kept]. Another thread may make calls meanwhile, so each has its number with it."""
        while True:
            try:
                calls = list(self.last)
            except RuntimeError:  # it makes one now
                continue
            return [[number, self.text(*call)] for number, call in calls]

    def late(self, now):
        """Whether the card has been busy with the same call for long."""
        if self.count != self.seen:
            self.seen, self.since = self.count, now
        return self.count > 0 and now - self.since >= _PATIENCE and self.busy()


def first_difference(record, told):
    """The text of the first call that two ranks number alike and make differently, or None. `told`: {rank: [[number, text]...]}."""
    calls = {r: dict(pairs) for r, pairs in told.items()}
    for number in sorted(set().union(*calls.values())):
        made = {r: calls[r][number] for r in record.ranks if number in calls.get(r, ())}
        if len(set(made.values())) > 1:
            return record.words(number, made)
    return None


class Late:
    """Of a job: asked by the watch's thread twice a second. `board()` has say(text, asks), asked(), said(rank) -> text or None, has_left(rank) and calls_of(rank)."""

    def __init__(self, rank, board, now=time.monotonic):
        self.rank, self.board, self.now = rank, board, now
        self.records, self._said, self._again, self._pause = [], None, 0.0, 0.0

    def record(self, ranks, busy, name=None, title=None):
        """The record of a new group of these ranks; one that all of them name alike, or that all make in the same order."""
        if name is None:
            same = sum(r.ranks == list(ranks) and "#" in r.name for r in self.records)
            name = f"{'-'.join(map(str, ranks))}#{same}"
        made = Record(name, list(ranks), busy, title)
        self.records.append(made)
        return made

    def look(self):
        """The failure that is found, or None."""
        now = self.now()
        late = [r for r in self.records if r.late(now)]
        if not late:
            self._pause = 0.0
            if self.records and self.board().asked():
                self._say(asks=False)
            return None
        for record in late:
            gone = [o for o in record.ranks if o != self.rank and self._missed(o, record)]
            if gone:
                return Failure(
                    f"rank {', '.join(map(str, gone))} has left the job: its program has ended, or called shutdown(), before {record.told()[-1][1]}"
                )
        self._say(asks=True)
        if now < self._again:  # a long kernel: a large job's store is asked less and less
            return None
        self._pause = min(2 * self._pause + _SHORTEST, _LONGEST)
        self._again = now + self._pause
        said = {o: self._of(o) for o in sorted({o for r in late for o in r.ranks} - {self.rank})}
        for record in late:
            told = {o: calls[record.name] for o, calls in said.items() if record.name in calls}
            found = first_difference(record, {**told, self.rank: record.told()})
            if found:
                return Failure(found, "distributed.mismatch")
        return None

    def told(self, record, number):
        """{rank: text} of the call of a number, of the ranks that say theirs within some seconds."""
        own, until = dict(record.told()).get(number), self.now() + _PATIENCE
        others = [r for r in record.ranks if r != self.rank]
        self._say(asks=True)
        while True:
            said = {r: dict(self._of(r).get(record.name, ())).get(number) for r in others}
            if None not in said.values() or self.now() > until:
                return {r: text for r, text in {**said, self.rank: own}.items() if text}
            time.sleep(0.05)

    def counts(self):
        """{group's name: number of calls}: said by a rank that leaves."""
        return {r.name: r.count for r in self.records}

    def _missed(self, rank, record):
        """Whether a rank has left without this one's last call. The card of one that makes it alone may have work for long."""
        board = self.board()
        return board.has_left(rank) and board.calls_of(rank).get(record.name, 0) < record.count

    def _of(self, rank):
        text = self.board().said(rank)
        return json.loads(text) if text else {}

    def _say(self, asks):
        text = json.dumps({r.name: r.told() for r in self.records if r.count})
        if (text, asks) != self._said:
            self._said = text, asks
            self.board().say(text, asks)
