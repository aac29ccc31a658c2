# SPDX-License-Identifier: Apache-2.0
"""What a search says while it runs."""

import sys

from weft import _terminal


class Progress:
    """One line on a terminal, nothing in a pipe; or a function that is called after each trial.

    `wanted`: None (a line where standard error is a terminal), True, False, or progress(done, trials, best, failed).
    """

    def __init__(self, wanted, trials):
        self._call = wanted if callable(wanted) else None
        self._trials = trials
        self._live = self._call is None and (_terminal.live() if wanted is None else bool(wanted))

    def __call__(self, seen, default):
        times = [t.seconds for t in seen if t.seconds]
        best, failed = min(times, default=None), len(seen) - len(times)
        if self._call:
            self._call(len(seen), self._trials, best, failed)
        if self._live:
            at = f"best {best * 1e3:.4g} ms" if best else "none ran yet"
            if best and default is not None and default.seconds:
                at += f", {default.seconds / best:.3g} times as fast as the default"
            text = f"tune: {len(seen)}/{self._trials} trials, {at}, {failed} failed"
            _terminal.show(text)

    def end(self):
        if self._live:
            print(file=sys.stderr)
