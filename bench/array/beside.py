# SPDX-License-Identifier: Apache-2.0
"""Timing of one piece of work beside the same in other libraries, in one process.

Every library gets a few calls in a row, the first untimed, after a pause: worker threads of the one before, which may
spin for milliseconds after their last job, have gone to sleep by then and take no processor from the next.

Imported before NumPy: libraries read the number of threads (--threads N, else 1) from the environment when they load.
"""

import os
import statistics
import sys
import time

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = (
        sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
    )

import numpy as np


def _array(value):
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


class Bench:
    def __init__(self, only=(), seconds=0.6, pause=0.0, calls=3):
        self.only, self.seconds, self.pause, self.calls, self.rows = only, seconds, pause, calls, []

    def case(self, name, ours, check=True, tol=1e-4, **rivals):
        """`ours` and the rivals are functions without arguments; the first rival's value is what ours must be."""
        if self.only and not any(text in name for text in self.only):
            return
        rivals = {k: f for k, f in rivals.items() if f}
        if check:
            want = _array(next(iter(rivals.values()))())
            np.testing.assert_allclose(_array(ours()), want, rtol=tol, atol=tol)
        work = {"weft": ours, **rivals}
        once = {}
        for n, f in work.items():
            f()
            start = time.perf_counter()
            f()
            once[n] = time.perf_counter() - start
        total = sum(once.values()) * (self.calls + 1) + self.pause * len(work)
        rounds = max(1, min(9, int(self.seconds / total)))
        times = {n: [] for n in work}
        for _ in range(rounds):
            for n, f in work.items():
                time.sleep(self.pause)
                f()
                repeat = max(1, int(2e-4 / max(once[n], 1e-7)))  # short calls: many to a sample
                for _ in range(self.calls):
                    start = time.perf_counter()
                    for _ in range(repeat):
                        f()
                    times[n].append((time.perf_counter() - start) / repeat)
        medians = {n: statistics.median(t) for n, t in times.items()}
        ratio = min(medians[n] for n in rivals) / medians["weft"]
        self.rows.append(dict(case=name, ratio=ratio, **medians))
        text = "  ".join(f"{n} {t * 1e3:9.4f} ms" for n, t in medians.items())
        mark = "" if ratio >= 1 else "  <" if ratio >= 0.8 else "  <<<"
        print(f"{name:32s} {text}   ratio {ratio:.2f}{mark}", flush=True)
