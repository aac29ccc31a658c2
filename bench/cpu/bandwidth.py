# SPDX-License-Identifier: Apache-2.0
"""Vector add and window sum of large arrays on the host, beside a copy whose stores bypass the caches.

The copy is our own C kernel (256-bit streaming stores, the same arrays and threads), compiled here by
the system's compiler. Bandwidth counts what must move: the copy and the window sum read one array and
write one (8 bytes an element), the add reads two and writes one (12). Samples are interleaved,
figures are medians, results are checked.

PYTHONPATH=python python bench/cpu/bandwidth.py [MEBI_ELEMENTS]
"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import weft
from weft import script as T

COPY = r"""
#include <immintrin.h>
#include <stddef.h>
void copy(const float* restrict a, float* restrict b, size_t n, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i += 16) {
    _mm256_stream_ps(b + i, _mm256_loadu_ps(a + i));
    _mm256_stream_ps(b + i + 8, _mm256_loadu_ps(a + i + 8));
  }
  _mm_sfence();
}
"""


def compile_copy(folder):
    source, library = os.path.join(folder, "copy.c"), os.path.join(folder, "copy.so")
    with open(source, "w") as f:
        f.write(COPY)
    command = ["cc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", source, "-o", library]
    subprocess.run(command, check=True)
    f = ctypes.CDLL(library).copy
    f.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return f


def add_program(n):
    @T.prim_func
    def main(
        A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32"), C: T.Buffer((n,), "float32")
    ):
        T.func_attr({"tir.noalias": True})
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi] + B[vi]

    return main


def window_program(n):
    @T.prim_func
    def main(A: T.Buffer((n + 2,), "float32"), C: T.Buffer((n,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi] + A[vi + 1] + A[vi + 2]

    return main


def scheduled(program, nontemporal=True):
    """Chunks of 64 Ki elements over the threads, whole cache lines per step."""
    sch = weft.Schedule(program)
    (i,) = sch.get_loops(sch.get_block("C"))
    chunk, step, lane = sch.split(i, [None, 4096, 16])
    sch.parallel(chunk)
    sch.vectorize(lane)
    if nontemporal:
        sch.annotate(step, "nontemporal", True)
    return sch


def main():
    n = int(sys.argv[1] if len(sys.argv) > 1 else 64) << 20
    x = np.arange(n + 2, dtype=np.float32) % 1021
    a, b = weft.asarray(x), weft.asarray(x[:n] * 0.5)
    c = weft.zeros((n,), dtype="float32")
    head = weft.asarray(x[:n])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        copy = compile_copy(folder)
        jobs = {
            "vector add": (scheduled(add_program(n)), (head, b, c), 12),
            "vector add, ordinary stores": (scheduled(add_program(n), False), (head, b, c), 12),
            "window sum": (scheduled(window_program(n)), (a, c), 8),
        }
        sources = head.numpy()
        room = np.empty(n + 16, np.float32)
        skip = -room.ctypes.data % 64 // 4
        target = room[skip : skip + n]  # whole cache lines
        for threads in (1, 2):
            weft.set_threads(threads)
            for name, (sch, args, width) in jobs.items():
                f = weft.build(sch.mod, target="cpu")["main"]
                f(*args)
                want = (
                    x[:n] * np.float32(1.5) if width == 12 else x[:n] + x[1 : n + 1] + x[2 : n + 2]
                )
                assert np.array_equal(c.numpy(), want), name
                copy(sources.ctypes.data, target.ctypes.data, n, threads)
                ours, rival = [], []
                for _ in range(7):
                    ours.append(f.time(*args, number=1, repeat=1).min)
                    start = time.perf_counter()
                    copy(sources.ctypes.data, target.ctypes.data, n, threads)
                    rival.append(time.perf_counter() - start)
                rate = width * n / statistics.median(ours) / 1e9
                copied = 8 * n / statistics.median(rival) / 1e9
                rows.append(
                    dict(
                        name=name, threads=threads, gb_s=rate, copy_gb_s=copied, ratio=rate / copied
                    )
                )
                print(
                    f"{name:<28} {threads} thread(s): {rate:6.2f} GB/s, copy {copied:6.2f} GB/s, "
                    f"ratio {rate / copied:.3f}"
                )
    assert np.array_equal(target, sources)
    print(json.dumps({"benchmark": "cpu.bandwidth", "elements": n, "rows": rows}))


if __name__ == "__main__":
    main()
