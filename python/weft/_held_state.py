# SPDX-License-Identifier: Apache-2.0
"""The arrays and numbers that modules, optimizers and tensors hold, as captured functions see them."""

from __future__ import annotations

import contextlib
import threading

from ._core import shown as _shown
from . import _core
from ._core import NDArray, Tensor
from ._errors import error as _error


class _Thread(threading.local):
    on = False  # of the class: a missing attribute of a thread costs more than a small call


_thread = _Thread()


@contextlib.contextmanager
def capturing():
    """Inside, this thread runs a captured function: numbers that change from step to step must lie on the device."""
    before = captured()
    _thread.on = True
    try:
        yield
    finally:
        _thread.on = before


def captured():
    return _thread.on


class Holder:
    """Holds tensors, arrays and numbers in its attributes: modules and optimizers."""


class ParameterHolder(Holder):
    """A module."""


class Faults:
    """Asks a recording now and then whether positions were outside their arrays: asking waits for the device."""

    _BETWEEN = 64

    def __init__(self):
        self.replays = 0

    def look(self, recording):
        self.replays += 1
        if self.replays % self._BETWEEN == 1 and recording.faulty():
            raise _error(
                _core.IndexError,
                "capture.index",
                f"a position was outside its array in one of the last {min(self.replays, self._BETWEEN)} replays",
                [
                    "a replay takes the first element in its place",
                    "recordings are asked at the first and every 64th replay",
                ],
                help="check positions before the call",
            )


class HeldState:
    """Slots of arrays: ("data" or "grad", tensor) and (container, key)."""

    def __init__(self, held):
        self._counters = set()
        self._seen, self._key, self._numbers = None, 0, {}
        self._settled = (None, None)
        self.held = list(held) if isinstance(held, (tuple, list)) else [held]
        for h in self.held:
            if not isinstance(h, (Holder, Tensor)):
                raise _error(
                    _core.DTypeError,
                    "capture.state",
                    f"the state of a captured function holds a {type(h).__name__}",
                    ["legal: modules, optimizers and tensors"],
                    help="pass other arrays as arguments",
                )

    def __bool__(self):
        return bool(self.held)

    def device(self):
        return next(iter(self.arrays().values())).device

    def _parts(self, visited=None):
        """(kind, key, holder) of everything: "tensor" with None, "array" and "number" in a container. Lists and dicts on the
        way are added to `visited`."""
        seen, stack = set(), list(reversed(self.held))
        while stack:
            at = stack.pop()
            if id(at) in seen or isinstance(at, (str, bytes)):
                continue
            if isinstance(at, Tensor):
                seen.add(id(at))
                yield "tensor", None, at
                continue
            if isinstance(at, Holder):
                seen.add(id(at))
                at = at.__dict__
            if not isinstance(at, (dict, list, tuple)) or id(at) in seen:
                continue
            seen.add(id(at))
            if visited is not None and not isinstance(at, tuple):
                visited.append(at)
            for key, value in list(at.items() if isinstance(at, dict) else enumerate(at)):
                if isinstance(value, NDArray):
                    yield "array", key, at
                elif isinstance(value, (int, float, bool)):
                    yield "number", key, at
                else:
                    stack.append(value)

    def arrays(self):
        """{slot: array} of all arrays there are now."""
        self._holders, out = {}, {}
        for kind, key, holder in self._parts():
            if kind == "tensor":
                self._holders[id(holder)] = holder
                out["data", id(holder)] = holder.data
                if holder.grad is not None:
                    out["grad", id(holder)] = holder.grad.data
            elif kind == "array":
                self._holders[id(holder)] = holder
                out[id(holder), key] = holder[key]
        return out

    def put(self, slot, array):
        kind, key = slot
        if kind == "data":
            self._holders[key].data = array
        elif kind == "grad":
            self._holders[key].grad = Tensor(array, requires_grad=False)
        else:
            self._holders[kind][key] = array

    def bring(self, arrays, places):
        """Puts the slots' present values into `arrays`, and those into the slots."""
        if not self.held:
            return
        seen, settled = self._settled
        if (
            seen is self._seen is not None and settled is places
        ):  # they were there, and nothing has moved
            return
        now, moved = self.arrays(), False
        for slot, place in places.items():
            if slot in now and _core._place(now[slot]) != place:
                arrays[slot][...] = now[slot]
                self.put(slot, arrays[slot])
                moved = True
        self._settled = (None, None) if moved else (self._seen, places)

    # ---- numbers

    def facts(self):
        """{(container, key): number}: options, modes, counters."""
        return {
            (id(holder), key): (holder, holder[key])
            for kind, key, holder in self._parts()
            if kind == "number" and not isinstance(holder, tuple)
        }

    def facts_key(self):
        """A number for what of it a recording depends on: numbers that calls leave alone, and which arrays there are."""
        if not self.held:
            return 0
        if self._seen is not None and self._seen.same():
            return self._key
        containers = []
        tensors = [holder for kind, _, holder in self._parts(containers) if kind == "tensor"]
        free = {}
        for holder, key in self._counters:
            free.setdefault(holder, set()).add(key)
        self._seen = _core._HeldArrays([(c, free.get(id(c), set())) for c in containers], tensors)
        self._settled = (None, None)
        numbers = tuple(
            (slot, value) for slot, (_, value) in self.facts().items() if slot not in self._counters
        )
        what = numbers, tuple(self.arrays())
        self._key = self._numbers.setdefault(what, len(self._numbers) + 1)
        return self._key

    def learn(self, before):
        """Numbers that a call changed or made are counters. Raises ArgumentError for fractions among them."""
        for slot, (_, value) in self.facts().items():
            if slot in before and before[slot][1] == value:
                continue
            if isinstance(value, float) and slot in before:
                raise _error(
                    _core.ArgumentError,
                    "capture.number",
                    f"the state of a captured function holds the number {_shown(slot[1])}, which the function changed to {value}",
                    ["a replay repeats the numbers of the recording; whole numbers are counted on"],
                    help="keep numbers that change in arrays",
                )
            self._counters.add(slot)
            self._seen = None

    def advanced(self, before):
        """{slot: (container, how far a counter went since `before`)}."""
        return {
            slot: (holder, value - before[slot][1])
            for slot, (holder, value) in self.facts().items()
            if slot in before and before[slot][1] != value
        }

    def advance(self, counts):
        for (_, key), (holder, step) in counts.items():
            holder[key] += step

    def take_back(self, counts):
        for (_, key), (holder, step) in counts.items():
            holder[key] -= step
