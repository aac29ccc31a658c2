# SPDX-License-Identifier: Apache-2.0
"""weft.capture and weft.compile(capture=True): the launches of a function recorded once and replayed by one call.

A recording holds addresses. Arguments that come from the same memory in every call are read there; others are copied to
memory of the recording first. Results are copied out of it, except those of donated arguments, which stay in memory that
both share. Arrays that modules and optimizers hold are written back to where they were, at the end of the recording.
"""

from __future__ import annotations

import threading

from . import _core
from ._autocast import number as _casting
from ._boundary import publish as _publish
from ._compiled import Compiled
from ._compile_arguments import flatten_arguments, static_arguments
from ._core import NDArray, Tensor
from ._dispatch import Recorder, first_leaf
from ._errors import error as _error
from ._held_state import Faults, HeldState, captured, capturing
from .transforms import trees
from ._differentiating import differentiating

__all__ = ["Captured", "capture"]

_MOST_RECORDINGS = 8  # of one combination of types and shapes


def donated_leaves(args, donate):
    """Numbers of the leaves (of _flatten) that belong to donated arguments."""
    out, first = [], 0
    for i, a in enumerate(args):
        count = len(flatten_arguments([a])[0])
        if i in donate:
            out += range(first, first + count)
        first += count
    return out


def _matched(donated, inputs, results):
    """{leaf: result}: each donated array with the first result of its type and shape that no other has."""
    free, out = list(range(len(results))), {}
    for leaf in donated:
        wanted = inputs[leaf].dtype, tuple(inputs[leaf].shape)
        found = next(
            (r for r in free if (results[r].dtype, tuple(results[r].shape)) == wanted), None
        )
        if found is None:
            raise _error(
                "value",
                "capture.donate.unused",
                f"a donated argument holds {wanted[0]} {wanted[1]}, and no result of the function replaces it",
                [f"results: {', '.join(f'{r.dtype} {tuple(r.shape)}' for r in results)}"],
                help="donate arguments whose new values the function returns",
            )
        free.remove(found)
        out[leaf] = found
    return out


def _array(value):
    return value.data if isinstance(value, Tensor) else value


class _Recorded:
    """One recording: the arrays that it reads and writes, and how a call's arguments get there."""

    def __init__(self, run, arrays, copied, donated, state):
        self.pool = _core.MemoryPool(arrays[0].device if arrays else state.device())
        self.copied = sorted({*copied, *donated})
        self.inputs, self.donated = list(arrays), donated
        self.matches = {}
        with _core.Lane(self.pool):
            for i in self.copied:
                self.inputs[i] = arrays[i].copy()
        self.before = state.arrays()
        self.facts = state.facts()
        self.recording, self.results = _core._record(self.pool, lambda: self._work(run, state))
        self.recording.faulty()  # words of the fresh memory hold anything
        self.faults = Faults()
        self.kept = set(self.matches.values())
        self.places = [_core._place(a) for a in self.inputs]
        self.state_places = {slot: _core._place(a) for slot, a in self.before.items()}
        self.counts = state.advanced(self.facts)

    def _work(self, run, state):
        fixed = {_core._place(a)[0] for a in [*self.inputs, *self.before.values()]}
        results = [_array(a) for a in run(self.inputs)]
        self.matches = _matched(self.donated, self.inputs, results)
        after = state.arrays()
        changed = {
            slot: a
            for slot, a in after.items()
            if slot in self.before and _core._place(a) != _core._place(self.before[slot])
        }
        # What lies in memory that the end of the recording writes to is copied first.
        apart = lambda a: a.copy() if _core._place(a)[0] in fixed else a  # noqa: E731
        results = [apart(r) for r in results]
        changed = {slot: apart(a) for slot, a in changed.items()}
        for leaf, result in self.matches.items():
            self.inputs[leaf][...] = results[result]
            results[result] = self.inputs[leaf]
        for slot, a in changed.items():
            self.before[slot][...] = a
            state.put(slot, self.before[slot])
        return results

    def fits(self, places):
        copied = set(self.copied)
        return all(p == q or i in copied for i, (p, q) in enumerate(zip(places, self.places)))

    def run(self, arrays, places, state):
        moved = [i for i in self.copied if places[i] != self.places[i]]
        own = {self.places[i][0] for i in moved}
        given = [arrays[i].copy() if places[i][0] in own else arrays[i] for i in moved]
        for i, array in zip(moved, given):
            self.inputs[i][...] = array
        state.bring(self.before, self.state_places)
        self.recording.replay()
        self.faults.look(self.recording)
        state.advance(self.counts)
        return [r if i in self.kept else r.copy() for i, r in enumerate(self.results)]


class _Entry:
    """The calls of one combination of types, shapes and facts: the first runs, the second records."""

    def __init__(self):
        self.places, self.copied, self.recordings = None, set(), []

    def run(self, run, arrays, donated, state):
        places = [_core._place(a) for a in arrays]
        for recorded in self.recordings:
            if recorded.fits(places):
                return recorded.run(arrays, places, state)
        before, self.places = self.places, places
        if before is None:
            return None
        self.copied |= {i for i, (p, q) in enumerate(zip(before, places)) if p != q}
        if len(self.recordings) >= _MOST_RECORDINGS:
            self.recordings.clear()
            self.copied = set(range(len(arrays)))
        recorded = _Recorded(run, arrays, self.copied, donated, state)
        # One that asked for more equal addresses than there are is not met again.
        self.recordings = [r for r in self.recordings if not set(r.copied) < set(recorded.copied)]
        self.recordings.append(recorded)
        # The recording has counted this step already, and run nothing of it.
        state.take_back(recorded.counts)
        return recorded.run(arrays, places, state)


class Captured:
    """A function whose launches are recorded; made by weft.capture or weft.compile(..., capture=True)."""

    def __init__(self, function, state=(), donate=(), compiled=None):
        self.function, self.compiled = function, compiled
        self.donate = (donate,) if isinstance(donate, int) else tuple(donate)
        self._state = HeldState(state)
        self._entries, self._structures, self._lock = {}, {}, threading.Lock()
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "captured")

    def __call__(self, *args):
        leaves, rebuild = flatten_arguments(args)
        if differentiating() > 1 or first_leaf(args, Recorder) is not None:
            return self.function(*args)
        if captured():  # part of another captured function
            return (self.compiled or self.function)(*args)
        self._refuse(args, leaves)
        arrays = [_array(a) for a in leaves]
        key = (
            tuple((str(a.dtype), tuple(a.shape), str(a.device)) for a in arrays),
            static_arguments(args),
            self._state.facts_key(),
            _casting(),
        )
        donated = donated_leaves(args, self.donate)
        with self._lock, capturing():  # the memory of a recording is one call's at a time
            run = self._runner(key, args, leaves, arrays, rebuild)
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
            results = entry.run(run, arrays, donated, self._state)
            if results is None:
                before = self._state.facts()
                results = [_array(a) for a in run(arrays)]
                self._state.learn(before)
                _matched(donated, arrays, results)
        if self.compiled is None or any(isinstance(a, Tensor) for a in leaves):
            kinds = self._structures[key][1] if self.compiled is None else None
            results = [
                Tensor(r, requires_grad=False) if kinds is None or kinds[i] else r
                for i, r in enumerate(results)
            ]
        structure = self._structures[key][0]
        return results[0] if structure.kind is None else trees.unflatten(structure, results)

    def _runner(self, key, args, leaves, arrays, rebuild):
        """The function of arrays that gives arrays or tensors."""
        if self.compiled is not None:
            trace = self.compiled._trace(args, arrays, rebuild)
            self._structures[key] = trace.structure, None
            return trace.run
        tensors = [isinstance(a, Tensor) for a in leaves]

        def run(arrays):
            given = [Tensor(a, requires_grad=False) if t else a for a, t in zip(arrays, tensors)]
            results, structure = trees.flatten(self.function(*rebuild(given)))
            for r in results:
                if not isinstance(r, (NDArray, Tensor)):
                    raise _error(
                        "value",
                        "capture.result",
                        f"{self.__name__} is captured and returns {type(r).__name__}",
                        ["a replay gives arrays alone"],
                        help="return arrays, and read numbers after the call",
                    )
            self._structures[key] = structure, [isinstance(r, Tensor) for r in results]
            return results

        return run

    def _refuse(self, args, leaves):
        if any(isinstance(a, Tensor) and a.requires_grad for a in leaves):
            raise _error(
                "value",
                "capture.gradient",
                f"{self.__name__} is captured and got an argument that requires gradients",
                ["a recording has no history that backward() could follow"],
                help="take the gradient inside the function, and pass x.detach()",
            )
        if not leaves and not self._state:
            raise _error(
                "value",
                "capture.nothing",
                f"{self.__name__} is captured and got no array and no state: its device is not known",
                help="pass arrays as arguments, or name modules and optimizers with state=",
            )
        wrong = [i for i in self.donate if not 0 <= i < len(args)]
        if wrong:
            raise _error(
                "value",
                "capture.donate.argument",
                f"donate names argument {wrong[0]} of {self.__name__}, which got {len(args)}",
                help="donate numbers positional arguments, from 0 on",
            )

    @property
    def launches(self):
        """Kernels and copies of each recording so far."""
        return [r.recording.launches for e in self._entries.values() for r in e.recordings]

    def __getattr__(self, name):
        if name.startswith("_") or self.compiled is None:
            raise AttributeError(name)
        return getattr(self.compiled, name)


def capture(function, *, state=(), donate=()):
    """The function with its launches recorded in the second call and replayed by one call of the driver after that.

    The function runs as it is, eagerly or in compiled parts: a whole training step with modules and an optimizer, say.
    state: the modules, optimizers and tensors whose arrays the function replaces; they hold the new values after each call.
    donate: numbers of arguments that a call may write over: each of their arrays becomes the result of the same type and
    shape that replaces it. Other results are copied out of the recording's memory. What the function does on the host
    happens while it is recorded and not again: printing, branches on Python values, counters outside the state. Options of
    optimizers and the mode of modules are looked at in every call; a change records anew.

    On cuda the recording is a graph of the driver, on opencl a list of launches; other devices are refused
    (device.record.unsupported). Refused while recording: copies between host and device and waits (device.record.host),
    random numbers without a key (random.capture), arguments that require gradients (capture.gradient).
    """
    return Captured(function, state, donate)


_publish(__name__)
