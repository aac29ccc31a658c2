# SPDX-License-Identifier: Apache-2.0
"""weft.compile(function, capture=True): the launches of a compiled function recorded once and replayed by one call.

A recording holds addresses. Arguments that come from the same memory in every call are read there; others are copied to
memory of the recording first. Results are copied out of it, except those of donated arguments, which stay in memory that
both share.
"""

from __future__ import annotations

import threading

from . import _core
from ._compile import Compiled, _flatten, _static
from ._core import Tensor
from ._dispatch import Recorder, leaves_of
from ._errors import error as _error
from .transforms import trees
from .transforms.reverse import differentiating

_MOST_RECORDINGS = 8  # of one combination of types and shapes; later addresses run as launches


def donated_leaves(args, donate):
    """Numbers of the leaves (of _flatten) that belong to donated arguments."""
    out, first = [], 0
    for i, a in enumerate(args):
        count = len(_flatten([a])[0])
        if i in donate:
            out += range(first, first + count)
        first += count
    return out


def _matched(donated, inputs, results):
    """{leaf: result}: each donated array with the first result of its type and shape that no other has."""
    free, out = list(range(len(results))), {}
    for leaf in donated:
        wanted = inputs[leaf].dtype, tuple(inputs[leaf].shape)
        found = next((r for r in free if (results[r].dtype, tuple(results[r].shape)) == wanted), None)
        if found is None:
            raise _error(
                "value",
                "compile.donate.unused",
                f"a donated argument holds {wanted[0]} {wanted[1]}, and no result of the function replaces it",
                [f"results: {', '.join(f'{r.dtype} {tuple(r.shape)}' for r in results)}"],
                help="donate arguments whose new values the function returns",
            )
        free.remove(found)
        out[leaf] = found
    return out


class _Recorded:
    """One recording: the arrays that it reads and writes, and how a call's arguments get there."""

    def __init__(self, trace, arrays, copied, donated):
        self.pool = _core.MemoryPool(arrays[0].device)
        self.copied = sorted({*copied, *donated})
        self.inputs = list(arrays)
        self.matches = None
        with _core.Lane(self.pool):
            for i in self.copied:
                self.inputs[i] = arrays[i].copy()
        fixed = {_core._place(a)[0] for a in self.inputs}

        def work():
            results = [a.data if isinstance(a, Tensor) else a for a in trace.run(self.inputs)]
            self.matches = _matched(donated, self.inputs, results)
            # What lies in the memory of an argument is copied before donated arguments change.
            results = [r.copy() if _core._place(r)[0] in fixed else r for r in results]
            for leaf, result in self.matches.items():
                self.inputs[leaf][...] = results[result]
                results[result] = self.inputs[leaf]
            return results

        self.recording, self.results = _core._record(self.pool, work)
        self.kept = {r for r in self.matches.values()}
        self.places = [_core._place(a) for a in self.inputs]

    def fits(self, places):
        copied = set(self.copied)
        return all(p == q or i in copied for i, (p, q) in enumerate(zip(places, self.places)))

    def run(self, arrays, places):
        moved = [i for i in self.copied if places[i] != self.places[i]]
        own = {self.places[i][0] for i in moved}
        given = [arrays[i].copy() if places[i][0] in own else arrays[i] for i in moved]
        for i, array in zip(moved, given):
            self.inputs[i][...] = array
        self.recording.replay()
        return [r if i in self.kept else r.copy() for i, r in enumerate(self.results)]


class _Entry:
    """The calls of one combination of types and shapes: the first runs, the second records."""

    def __init__(self):
        self.places, self.copied, self.recordings = None, set(), []

    def run(self, trace, arrays, donated):
        places = [_core._place(a) for a in arrays]
        for recorded in self.recordings:
            if recorded.fits(places):
                return recorded.run(arrays, places)
        before, self.places = self.places, places
        if before is None:
            return None
        self.copied |= {i for i, (p, q) in enumerate(zip(before, places)) if p != q}
        if len(self.recordings) >= _MOST_RECORDINGS:
            self.recordings.clear()
            self.copied = set(range(len(arrays)))
        recorded = _Recorded(trace, arrays, self.copied, donated)
        # One that asked for more equal addresses than there are is not met again.
        self.recordings = [r for r in self.recordings if not set(r.copied) < set(recorded.copied)]
        self.recordings.append(recorded)
        return recorded.run(arrays, places)


class Captured(Compiled):
    """A compiled function whose launches are recorded; made by weft.compile(..., capture=True)."""

    def __init__(self, function, contract=False, donate=()):
        super().__init__(function, contract)
        self.donate = (donate,) if isinstance(donate, int) else tuple(donate)
        self._entries, self._lock = {}, threading.Lock()

    def __call__(self, *args):
        leaves, rebuild = _flatten(args)
        if differentiating() > 1 or next(leaves_of(args, Recorder), None) is not None:
            return self.function(*args)
        if not leaves:
            return super().__call__(*args)
        self._refuse(args, leaves)
        arrays = [a.data if isinstance(a, Tensor) else a for a in leaves]
        trace = self._trace(args, arrays, rebuild)
        entry = self._entries.get(id(trace))
        if entry is None:
            entry = self._entries[id(trace)] = _Entry()
        donated = donated_leaves(args, self.donate)
        with self._lock:  # the memory of a recording is one call's at a time
            results = entry.run(trace, arrays, donated)
        if results is None:
            results = [a.data if isinstance(a, Tensor) else a for a in trace.run(arrays)]
            _matched(donated, arrays, results)
        if any(isinstance(a, Tensor) for a in leaves):
            results = [Tensor(r, requires_grad=False) for r in results]
        return results[0] if trace.single else trees.unflatten(trace.structure, results)

    def _refuse(self, args, leaves):
        if any(isinstance(a, Tensor) and a.requires_grad for a in leaves):
            raise _error(
                "value",
                "compile.capture.gradient",
                f"{self.__name__} is captured and got an argument that requires gradients",
                ["a recording has no history that backward() could follow"],
                help="take the gradient inside, with value_and_grad, and pass x.detach()",
            )
        wrong = [i for i in self.donate if not 0 <= i < len(args)]
        if wrong:
            raise _error(
                "value",
                "compile.donate.argument",
                f"donate names argument {wrong[0]} of {self.__name__}, which got {len(args)}",
                help="donate numbers positional arguments, from 0 on",
            )

    @property
    def launches(self):
        """Kernels and copies of each recording so far."""
        return [r.recording.launches for e in self._entries.values() for r in e.recordings]
