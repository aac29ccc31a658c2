# SPDX-License-Identifier: Apache-2.0
"""One program, defined by the same lines of te, built by weft and by Apache TVM, on one thread; every result checked.

PYTHONPATH=python python bench/cpu/beside_tvm.py [--trials N] [--only WORD]     (pip install apache-tvm==0.27 apache-tvm-ffi==0.1.14.post1 xgboost psutil cloudpickle)

Two rows a program: as both build it without a schedule, and tuned with the same number of candidates (weft.tune,
TVM's MetaSchedule; both with an empty database). Samples are interleaved, times are medians; the searches' own times are printed.
"""

import argparse
import logging
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import tvm
import weft
from tvm import te as tvm_te
from tvm.s_tir import meta_schedule
from tvm_programs import PROGRAMS as MORE
from weft import te as weft_te

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from recording import Record, processor


def product(n, m, k):
    def make(te):
        a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
        r = te.reduce_axis((0, k), name="r")
        return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]

    return make, lambda a, b: a @ b


def matrix_vector(n, k):
    def make(te):
        a, x = te.placeholder((n, k), name="A"), te.placeholder((k,), name="X")
        r = te.reduce_axis((0, k), name="r")
        return [a, x, te.compute((n,), lambda i: te.sum(a[i, r] * x[r], axis=r), name="Y")]

    return make, lambda a, x: a @ x


def convolution(n, channels, size, results, window):
    edge = size + window - 1

    def make(te):
        x = te.placeholder((n, channels, edge, edge), name="X")
        w = te.placeholder((results, channels, window, window), name="W")
        c, p, q = (te.reduce_axis((0, e), name=s) for e, s in ((channels, "c"), (window, "p"), (window, "q")))  # fmt: skip

        def value(b, o, i, j):
            return te.sum(x[b, c, i + p, j + q] * w[o, c, p, q], axis=[c, p, q])

        return [x, w, te.compute((n, results, size, size), value, name="Y")]

    def reference(x, w):
        windows = np.lib.stride_tricks.sliding_window_view(x, (window, window), axis=(2, 3))
        return np.einsum("bcijpq,ocpq->boij", windows, w, optimize=True)

    return make, reference


def softmax(n, m):
    def make(te):
        x = te.placeholder((n, m), name="X")
        k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
        top = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="T")
        e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
        total = te.compute((n,), lambda i: te.sum(e[i, r], axis=r), name="S")
        return [x, te.compute((n, m), lambda i, j: e[i, j] / total[i], name="Y")]

    def reference(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return make, reference


def stencil(n, m):
    def make(te):
        x = te.placeholder((n + 2, m + 2), name="X")

        def value(i, j):
            around = x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]
            return x[i + 1, j + 1] * 0.5 + around * 0.125

        return [x, te.compute((n, m), value, name="Y")]

    def reference(x):
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return x[1:-1, 1:-1] * np.float32(0.5) + around * np.float32(0.125)

    return make, reference


def chain(n, m):
    def make(te):
        x, y = te.placeholder((n, m), name="X"), te.placeholder((n, m), name="Y")
        a = te.compute((n, m), lambda i, j: x[i, j] * y[i, j] + 1.0, name="A")
        b = te.compute((n, m), lambda i, j: te.tanh(a[i, j]), name="B")
        return [x, y, te.compute((n, m), lambda i, j: b[i, j] * b[i, j] + x[i, j], name="Z")]

    return make, lambda x, y: np.tanh(x * y + 1) ** 2 + x


def column_sums(n, m):
    def make(te):
        x, r = te.placeholder((n, m), name="X"), te.reduce_axis((0, n), name="r")
        return [x, te.compute((m,), lambda j: te.sum(x[r, j], axis=r), name="Y")]

    return make, lambda x: x.sum(0)


PROGRAMS = {
    "product 128³": product(128, 128, 128),
    "product 512³": product(512, 512, 512),
    "product 100 x 129 x 77": product(100, 129, 77),
    "product 33 x 1000 x 500": product(33, 1000, 500),
    "matrix-vector 1000 x 3000": matrix_vector(1000, 3000),
    "convolution 1 x 64 x 56², 3 x 3": convolution(1, 64, 56, 64, 3),
    "convolution 1 x 128 x 27², 3 x 3": convolution(1, 128, 27, 100, 3),
    "convolution 2 x 3 x 112², 7 x 7": convolution(2, 3, 112, 32, 7),
    "softmax 500 x 1000": softmax(500, 1000),
    "star of five 1000 x 999": stencil(1000, 999),
    "chain of maps 700 x 1001": chain(700, 1001),
    "column sums 1000 x 777": column_sums(1000, 777),
}


def arrays_of(tensors, options, rng):
    """Random inputs: numbers about 0, small integers, indices where the program says how many."""
    for k, t in enumerate(tensors):
        kind = str(t.dtype)
        shape = tuple(int(n) if str(n).isdigit() else options["size"] for n in t.shape)
        if k in options.get("fixed", {}):
            yield options["fixed"][k]
        elif "int" in kind:
            least = 0 if kind[0] == "u" or "below" in options else -8
            most = options["below"] if "below" in options and kind == "int32" else 8
            yield rng.integers(least, most, shape).astype(kind)
        else:
            yield (rng.random(shape, np.float32) - np.float32(0.5)).astype(kind)


def tvm_target():
    """This processor, one thread; by its level, because a virtual one may lack what its name promises."""
    name = "x86-64-v4" if "AVX-512" in processor() else "x86-64-v3"
    return tvm.target.Target({"kind": "llvm", "mcpu": name, "num-cores": 1})


def tvm_tuned(program, target, trials):
    with tempfile.TemporaryDirectory() as folder:
        database = meta_schedule.tune_tir(
            tvm.IRModule({"main": program}), target, folder, trials, num_trials_per_iter=min(trials, 16)
        )  # fmt: skip
        found = meta_schedule.tir_integration.compile_tir(database, program, target)
    return tvm.IRModule({"main": program}) if found is None else found.mod


def weft_tuned(program, trials):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tune.db"
        return weft.tune(program, trials=trials, database=path, progress=False)


def compared(name, group, ours, theirs, mine, others, want, limit, record):
    """One row: medians of interleaved samples. Both rows of a program use the same arrays, for memory differs by page."""
    f, g = ours["main"], theirs["main"]
    timer = theirs.mod.time_evaluator("main", tvm.cpu(), number=1)
    f(*mine)
    g(*others)
    scale = max(np.abs(want).max(), 1)
    errors = [float(np.abs(x.numpy() - want).max() / scale) for x in (mine[-1], others[-1])]
    weft_times, tvm_times = [], []
    begin = time.perf_counter()
    while len(tvm_times) < 3 or (time.perf_counter() - begin < 1.0 and len(tvm_times) < 200):
        weft_times.append(f.time(*mine, number=1, repeat=1).min)
        tvm_times.append(timer(*others).mean)
    a, b = statistics.median(weft_times), statistics.median(tvm_times)
    wrong = " and ".join(n for n, e in zip(("weft", "tvm"), errors) if e > limit)
    print(f"{name:46s} {group:10s} weft {a * 1e6:9.1f} µs, tvm {b * 1e6:11.1f}, ratio {b / a:7.2f} {wrong}", flush=True)  # fmt: skip
    record.row(group, name, a, {"tvm": b}, **({"wrong": wrong} if wrong else {}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=32, help="candidates of a search; 0: none")
    parser.add_argument("--only", default="", help="programs with this in their name")
    args = parser.parse_args()
    weft.set_threads(1)
    logging.getLogger("tvm").setLevel(logging.ERROR)
    record = Record(f"programs of te beside TVM {tvm.__version__}, one thread", "cpu")
    target, rng = tvm_target(), np.random.default_rng(0)
    programs = {name: (*pair, {}) for name, pair in PROGRAMS.items()} | MORE
    for name, (make, reference, options) in programs.items():
        if args.only not in name:
            continue
        tensors = make(tvm_te)
        ours, theirs = (te.create_prim_func(make(te)) for te in (weft_te, tvm_te))
        arrays = list(arrays_of(tensors[:-1], options, rng))
        want, kind = np.asarray(reference(*arrays)), str(tensors[-1].dtype)
        mine = [weft.asarray(a) for a in arrays] + [weft.zeros(want.shape, dtype=kind)]
        others = [tvm.runtime.tensor(a) for a in (*arrays, np.zeros(want.shape, kind))]
        limit = options.get("tolerance", 1e-4)
        built = weft.build(ours, target="cpu", tuned=False), tvm.compile(theirs, target=target)
        compared(name, "as written", *built, mine, others, want, limit, record)
        if not args.trials or "size" in options:  # both search for constant extents
            continue
        begin = time.perf_counter()
        best = weft_tuned(ours, args.trials)
        middle = time.perf_counter()
        other = tvm_tuned(theirs, target, args.trials)
        end = time.perf_counter()
        print(f"{name:46s} searches: weft {middle - begin:.1f} s, tvm {end - middle:.1f} s")
        built = weft.build(best, target="cpu"), tvm.compile(other, target=target)
        compared(name, "tuned", *built, mine, others, want, limit, record)


if __name__ == "__main__":
    main()
