# SPDX-License-Identifier: Apache-2.0
"""GEMM n^3 float32 on one thread beside oneDNN, interleaved, medians; every result checked.

OMP_NUM_THREADS=1 PYTHONPATH=python:examples/tensorir python bench/cpu/gemm.py [--tuned TRIALS] [N ...]

Without --tuned the packed schedule of the example; with it what weft.tune finds in an empty database.
"""

import argparse
import ctypes
import math
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import programs
import weft

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from recording import Record

lib = ctypes.CDLL("libdnnl.so.2")
POINTER = ctypes.c_void_p


def onednn(a, b, c):
    m, k = a.shape
    n = b.shape[1]
    i64 = ctypes.c_int64
    status = lib.dnnl_sgemm(
        ctypes.c_char(b"N"),
        ctypes.c_char(b"N"),
        i64(m),
        i64(n),
        i64(k),
        ctypes.c_float(1),
        a.ctypes.data_as(POINTER),
        i64(k),
        b.ctypes.data_as(POINTER),
        i64(n),
        ctypes.c_float(0),
        c.ctypes.data_as(POINTER),
        i64(n),
    )
    assert status == 0


def scheduled(n, trials):
    if trials is None:
        return programs.gemm_host_packed(n)
    with tempfile.TemporaryDirectory() as folder:
        database, begin = pathlib.Path(folder) / "tune.db", time.perf_counter()
        best = weft.tune(programs.matmul(n, n, n), trials=trials, database=database, progress=False)
        print(f"{n}^3: {trials} candidates in {time.perf_counter() - begin:.1f} s", flush=True)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tuned", type=int, metavar="TRIALS")
    parser.add_argument("sizes", type=int, nargs="*", default=[512, 1024])
    args = parser.parse_args()
    weft.set_threads(1)
    record = Record("products of the schedule, float32, one thread", "cpu", {"": {"least": 0.92}})
    ratios = []
    for n in args.sizes:
        rng = np.random.default_rng(0)
        x, y = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
        z = np.empty((n, n), np.float32)
        A, B, C = weft.asarray(x), weft.asarray(y), weft.zeros((n, n), dtype="float32")
        f = weft.build(scheduled(n, args.tuned), target="cpu")["main"]
        f(A, B, C)
        onednn(x, y, z)
        error = float(np.max(np.abs(C.numpy() - z) / z))
        ours, rival = [], []
        for _ in range(25):
            ours.append(f.time(A, B, C, number=1, repeat=1).min)
            start = time.perf_counter()
            onednn(x, y, z)
            rival.append(time.perf_counter() - start)
        a, b = statistics.median(ours), statistics.median(rival)
        ratios.append(b / a)
        record.row("float32", f"{n}³", a, {"oneDNN": b})
        print(
            f"{n}^3: weft {2 * n**3 / a / 1e9:.1f} GFLOP/s (best {2 * n**3 / min(ours) / 1e9:.1f}), oneDNN {2 * n**3 / b / 1e9:.1f} "
            f"(best {2 * n**3 / min(rival) / 1e9:.1f}), ratio {b / a:.3f}, of bests {min(rival) / min(ours):.3f}, error {error:.1e}"
        )
    print(f"geometric mean {math.prod(ratios) ** (1 / len(ratios)):.3f}, least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
