# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: ``with weft.profile() as p: ...`` records compile passes and calls of compiled functions.

``p.save("trace.json")`` opens in Perfetto and chrome://tracing; ``p.table()`` is text. While a profile is active
each call waits for its device, so that its span is the call's own.
"""

import json
import time

_active = []


class Profile:
    """Spans of one `with weft.profile()`. Times are host seconds from its start."""

    def __init__(self, eager=False):
        self._eager = eager
        self._start = time.perf_counter()
        self.spans = []  # (process, thread, name, start, seconds)

    def __enter__(self):
        self._start = time.perf_counter()
        _active.append(self)
        if self._eager:
            from . import _eager

            _eager.start(note)
        return self

    def __exit__(self, *exception):
        if self._eager:
            from . import _eager

            _eager.stop()
        _active.remove(self)

    def add(self, process, thread, name, start, seconds):
        self.spans.append((process, thread, name, start - self._start, seconds))

    def save(self, path):
        """Writes trace-event JSON, whole or not at all."""
        tracks, events = {}, []
        for process, thread, name, start, seconds in self.spans:
            pid = tracks.setdefault(process, (len(tracks) + 1, {}))
            tid = pid[1].setdefault(thread, len(pid[1]) + 1)
            events.append(
                {
                    "ph": "X",
                    "pid": pid[0],
                    "tid": tid,
                    "name": name,
                    "ts": start * 1e6,
                    "dur": seconds * 1e6,
                }
            )
        for process, (pid, threads) in tracks.items():
            events.append(
                {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}}
            )
            events += [
                {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": thread}}
                for thread, tid in threads.items()
            ]
        import os

        beside = f"{path}.tmp{os.getpid()}"
        with open(beside, "w", encoding="utf-8") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": events}, file)
        os.replace(beside, path)

    def table(self):
        """Total time by name, largest first: calls, total and mean in milliseconds."""
        totals = {}
        for process, thread, name, _, seconds in self.spans:
            entry = totals.setdefault((process, name), [0, 0.0])
            entry[0] += 1
            entry[1] += seconds
        lines = [f"{'where':<16} {'what':<28} {'calls':>6} {'total ms':>10} {'mean ms':>10}"]
        for (process, name), (calls, total) in sorted(totals.items(), key=lambda item: -item[1][1]):
            lines.append(
                f"{process:<16} {name:<28} {calls:>6} {total * 1e3:>10.3f} {total / calls * 1e3:>10.3f}"
            )
        return "\n".join(lines)


def profile(eager=False):
    """A profile to be used in a with statement; eager: operations on arrays are recorded one by one, too."""
    return Profile(eager)


def note(process, thread, name, start, seconds):
    """Tells all active profiles of a span; start is time.perf_counter()'s."""
    for p in _active:
        p.add(process, thread, name, start, seconds)


def active():
    return bool(_active)
