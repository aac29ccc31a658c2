# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: ``with weft.profile() as p: ...`` records compile passes and calls of compiled functions.

``p.save("trace.json")`` opens in Perfetto and chrome://tracing; ``p.table()`` is text. While a profile is active
each call waits for its device, so that its span is the call's own.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any as _Any

from ._boundary import publish as _publish
from ._whole_file import write_whole as _write_whole
from ._boundary import publish_classes as _publish_classes
from . import _core

__all__ = ["Profile", "profile"]

_active = []


class Profile:
    """Spans of one `with weft.profile()`. Times are host seconds from its start.

    With a device, the saved trace also holds the spans of its units, in its own clock (simulated on simulators).
    """

    def __init__(self, device: _Any = None, eager: bool = False) -> None:
        self._eager = eager
        self._start = time.perf_counter()
        self._device, self._recording, self._units = device, None, []
        self.spans = []  # (process, thread, name, start, seconds)

    def __enter__(self) -> Profile:
        self._start = time.perf_counter()
        if self._device is not None:
            self._recording = _core.DeviceTrace(_core.open_device(self._device))
        _active.append(self)
        if self._eager:
            from . import _eager

            _eager.start(note)
        return self

    def __exit__(self, *exception: _Any) -> None:
        if self._eager:
            from . import _eager

            _eager.stop()
        _active.remove(self)
        if self._recording is not None:
            self._units = json.loads(self._recording.json())["traceEvents"]
            self._recording = None

    def add(self, process: _Any, thread: _Any, name: _Any, start: _Any, seconds: _Any) -> None:
        self.spans.append((process, thread, name, start - self._start, seconds))

    def save(self, path: str | os.PathLike[str]) -> None:
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
        for event in self._units:  # their processes follow ours
            events.append({**event, "pid": event.get("pid", 0) + len(tracks) + 1})
        text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events})
        _write_whole(path, [text.encode()])

    def table(self) -> str:
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


def profile(device: _Any = None, eager: bool = False) -> Profile:
    """A profile to be used in a with statement.

    `device` adds the spans of that device's units to the trace; `eager` records operations on arrays one by one.
    """
    return Profile(device, eager)


def note(process: _Any, thread: _Any, name: _Any, start: _Any, seconds: _Any) -> None:
    """Tells all active profiles of a span; start is time.perf_counter()'s."""
    for p in _active:
        p.add(process, thread, name, start, seconds)


def active() -> bool:
    return bool(_active)


_publish(__name__, skip=("active", "note"))
_publish_classes(__name__)
