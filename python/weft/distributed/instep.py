# SPDX-License-Identifier: Apache-2.0
"""Whether all ranks of a group make the same call, under torchrun.

Gloo ends the process of a rank that gets more bytes than it awaits: one of its threads throws, where nobody can catch it. So a rank adds a number that stands for
its call to a sum in torchrun's store before Gloo begins it: one message and its answer. Whoever finds a sum that is no multiple of its own number does not begin
the call, asks the others for theirs, and tells all. The ranks that came before it have begun equal calls, and wait.
"""

from __future__ import annotations

import hashlib

import weft

from .failure import Failure

_SLOTS = 4096  # sums of a group: a rank may be half as many calls ahead of another
_HALF = _SLOTS // 2
_ONE = 1 << 48  # a call, beside a number of 36 bits: there is room for 16384 ranks
_KNOWN = 1000


class InStep:
    """The calls of a group. `name`: the group's in the job; `record` (late.py): what others are told of its calls; wait(done) waits for other ranks.

    Slot k holds the sum of call k, of call k + 4096, and so on: a rank adds the difference between the number of its call and that of the call before it
    there, so that the last rank leaves the number times the ranks. No rank begins a half of the slots again before all have come to the half's end.
    """

    def __init__(self, name, watch, record, wait):
        self._name, self._watch, self._record, self._wait = name, watch, record, wait
        self._size, self._last, self._known = len(record.ranks), {}, {}

    def check(self, *call):
        """(name, detail, dtype, shape) of a call that is about to begin. Raises DeviceError `distributed.mismatch` where ranks that came before make another."""
        number = self._record.note(*call) - 1
        slot = number % _SLOTS
        if number >= _SLOTS and number % _HALF == 0:
            self._all_at(slot + _HALF - 1)
        before = self._last.get(slot, 0)
        mine = self._last[slot] = self._number(call) + (0 if number // _SLOTS % 2 else _ONE)
        count, rest = divmod(self._add(slot, mine - before) - self._size * before, mine - before)
        if rest or not 1 <= count <= self._size:
            raise self._mismatch(number + 1)

    def _add(self, slot, number):
        """The sum of a slot after a number is added."""
        try:
            return self._watch.board.add(f"{self._name}/{slot}", number)
        except RuntimeError as problem:
            if isinstance(problem, weft.Error):
                raise
            self._watch.check()  # one that came from outside while C++ ran, among others
            raise self._watch.fail(Failure.of_store(problem)) from None

    def _number(self, call):
        known = self._known.get(call)
        if known is None:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            digest = hashlib.blake2b(self._record.text(*call).encode(), digest_size=8).digest()
            known = self._known[call] = int.from_bytes(digest, "big") >> 28
        return known

    def _all_at(self, slot):
        """Returns when all ranks have made the last call that this one has made in a slot."""
        whole = self._size * self._last[slot]
        self._wait(lambda: self._add(slot, 0) == whole)

    def _mismatch(self, number):
        told = self._watch.late.told(self._record, number)
        return self._watch.fail(Failure(self._record.words(number, told), "distributed.mismatch"))
