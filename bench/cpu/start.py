# SPDX-License-Identifier: Apache-2.0
"""How long it takes until something runs: importing weft, building a small kernel, taking it from the disk cache.

``PYTHONPATH=python python bench/cpu/start.py [SAMPLES]``; medians, each sample a process of its own for the import, a size
not seen before for the build. Says whether importing opened LLVM.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

IMPORT = """
import weft
print("libLLVM" in open("/proc/self/maps").read())
"""
BUILD = """
import sys, time, weft
from weft import te
def add(n):
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    return te.create_prim_func([A, B, te.compute((n,), lambda i: A[i] + B[i], name="C")])
times = []
for n in range(1000, 1001 + int(sys.argv[1])):
    f = add(n)
    start = time.perf_counter()
    weft.build(f, target="cpu")
    times.append(time.perf_counter() - start)
print(*times[1:])  # the first one opens libLLVM, or the cache
"""


def _seconds(*command):
    start = time.perf_counter()
    out = subprocess.run([sys.executable, *command], check=True, capture_output=True, text=True)
    return time.perf_counter() - start, out.stdout


def main():
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    alone, whole, opened = [], [], set()
    for _ in range(samples):
        alone.append(_seconds("-c", "pass")[0])
        seconds, said = _seconds("-c", IMPORT)
        whole.append(seconds)
        opened.add(said.strip())
    print(
        f"import weft        {statistics.median(whole) * 1e3:8.1f} ms, Python alone "
        f"{statistics.median(alone) * 1e3:.1f} ms; LLVM opened: {'yes' if 'True' in opened else 'no'}"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEFT_CACHE_DIR"] = folder
        for name in ("build, new size", "build, from disk"):
            times = [float(t) for t in _seconds("-c", BUILD, str(samples))[1].split()]
            print(f"{name:18} {statistics.median(times) * 1e3:8.2f} ms")


if __name__ == "__main__":
    main()
