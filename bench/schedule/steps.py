# SPDX-License-Identifier: Apache-2.0
"""Processor time of a schedule step on the shared-memory GEMM, measured from Python.

PYTHONPATH=python python bench/schedule/steps.py [REPEATS]
"""

import json
import statistics
import sys
import time

import weft
from weft import script as T


@T.prim_func
def gemm(
    A: T.Buffer((1024, 1024), "float32"),
    B: T.Buffer((1024, 1024), "float32"),
    C: T.Buffer((1024, 1024), "float32"),
):
    for i, j, k in T.grid(1024, 1024, 1024):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def fetch(sch, block, index, at):
    cached = sch.cache_read(block, index, "shared")
    sch.compute_at(cached, at)
    i, j = sch.get_loops(cached)[-2:]
    _, thread, vector = sch.split(sch.fuse(i, j), [None, 64, 4])
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(vector)


def schedule():
    """One whole schedule; the number of its steps."""
    sch = weft.Schedule(gemm)
    c = sch.get_block("C")
    out = sch.cache_write(c, 0, "local")
    i, j, k = sch.get_loops(c)
    i0, i1, i2 = sch.split(i, [None, 8, 8])
    j0, j1, j2 = sch.split(j, [None, 8, 8])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    thread = sch.fuse(i1, j1)
    sch.reverse_compute_at(out, thread)
    sch.bind(i0, "blockIdx.x")
    sch.bind(j0, "blockIdx.y")
    sch.bind(thread, "threadIdx.x")
    fetch(sch, c, 0, k0)
    fetch(sch, c, 1, k0)
    sch.decompose_reduction(c, k0)
    return len(sch.trace)


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    schedule()
    samples, steps = [], 0
    for _ in range(repeats):
        start = time.process_time()
        steps = schedule()
        samples.append((time.process_time() - start) * 1e6 / steps)
    result = {
        "benchmark": "schedule.gemm.python",
        "steps": steps,
        "median_us_per_step": round(statistics.median(samples), 2),
        "mean_us_per_step": round(statistics.mean(samples), 2),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
