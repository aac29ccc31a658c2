# SPDX-License-Identifier: Apache-2.0
"""weft.tune on a card: seconds of a search, and what it found beside the default schedule, the best schedule by hand and PyTorch.

Each search begins with an empty database. Kernels are compared in one process, in turns, with calls queued ahead; figures are medians.
The last line of a case says what each search's schedule is of the fastest of all of them: "of best". `--store FILE` writes every measured
candidate, for the tests of the model.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import torch
import weft
from weft import te

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "tensorir"))


def matmul(n, m, k, dtype="float32"):
    a, b = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c])


def convolution(n, channels, kernels, size, k):
    x = te.placeholder((n, channels, size + k - 1, size + k - 1), "float32", name="X")
    w = te.placeholder((kernels, channels, k, k), "float32", name="W")
    c, p, q = (te.reduce_axis((0, e), name=s) for e, s in ((channels, "c"), (k, "p"), (k, "q")))

    def body(b, o, y, z):
        return te.sum(x[b, c, y + p, z + q] * w[o, c, p, q], axis=[c, p, q])

    return te.create_prim_func([x, w, te.compute((n, kernels, size, size), body, name="Y")])


def row_sums(n, m):
    a, r = te.placeholder((n, m), "float32", name="A"), te.reduce_axis((0, m), name="r")
    return te.create_prim_func([a, te.compute((n,), lambda i: te.sum(a[i, r], axis=r), name="B")])


def softmax(n, m):
    x, r, s = (
        te.placeholder((n, m), "float32", name="X"),
        te.reduce_axis((0, m)),
        te.reduce_axis((0, m)),
    )
    top = te.compute((n,), lambda i: te.max(x[i, r], axis=r), name="top")
    e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, s], axis=s), name="total")
    return te.create_prim_func([x, te.compute((n, m), lambda i, j: e[i, j] / total[i], name="Y")])


def chain(n, m):
    """tanh(x * scale + shift) * x + x in three maps, of which rules make one kernel."""
    x = te.placeholder((n, m), "float32", name="X")
    scale, shift = (te.placeholder((m,), "float32", name=name) for name in ("scale", "shift"))
    a = te.compute((n, m), lambda i, j: x[i, j] * scale[j] + shift[j], name="a")
    t = te.compute((n, m), lambda i, j: te.tanh(a[i, j]), name="t")
    y = te.compute((n, m), lambda i, j: t[i, j] * x[i, j] + x[i, j], name="Y")
    return te.create_prim_func([x, scale, shift, y])


def attention(heads, n, d):
    """softmax(q k' / sqrt(d)) v with its scores in memory: products and rows, each by its rule."""
    q, k, v = (te.placeholder((heads, n, d), "float32", name=name) for name in "QKV")
    c, r, s, t = (te.reduce_axis((0, e)) for e in (d, n, n, n))
    score = te.compute(
        (heads, n, n), lambda h, i, j: te.sum(q[h, i, c] * k[h, j, c], axis=c), name="score"
    )
    scaled = te.compute(
        (heads, n, n), lambda h, i, j: score[h, i, j] * te.const(d**-0.5), name="scaled"
    )
    top = te.compute((heads, n), lambda h, i: te.max(scaled[h, i, r], axis=r), name="top")
    e = te.compute((heads, n, n), lambda h, i, j: te.exp(scaled[h, i, j] - top[h, i]), name="e")
    total = te.compute((heads, n), lambda h, i: te.sum(e[h, i, s], axis=s), name="total")
    p = te.compute((heads, n, n), lambda h, i, j: e[h, i, j] / total[h, i], name="p")
    y = te.compute((heads, n, d), lambda h, i, j: te.sum(p[h, i, t] * v[h, t, j], axis=t), name="Y")
    return te.create_prim_func([q, k, v, y])


def by_hand(n):
    import programs

    sch = programs.gemm_4(n, 8, 16, 8, 4, 32, decompose=True, unroll=True)
    loops = sch.get_loops(sch.get_block("C_update"))
    k0 = next(loop for loop in loops if loop.name == "r_0")
    sch.annotate(k0, "software_pipeline_stage", [0, 0, 2])
    sch.annotate(k0, "software_pipeline_async_stages", [0])
    return sch


def rival_seconds(f, number):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(number):
        f()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / number


class Case:
    def __init__(self, name, program, shapes, rival, hand=None):
        self.name, self.program, self.hand = name, program, hand
        rng = np.random.default_rng(0)
        self.host = [rng.random(s, np.float32) for s in shapes[:-1]]
        self.card = [torch.from_numpy(x).cuda() for x in self.host]
        self.rival = lambda: rival(*self.card)
        self.expected = rival(*(x.double() for x in self.card)).cpu().numpy()
        device = weft.device("cuda:0")
        self.arrays = [weft.asarray(x, device=device) for x in self.host]
        self.arrays.append(weft.zeros(shapes[-1], dtype="float32", device=device))

    def compare(self, schedules):
        """Medians in microseconds by name, in turns with the rival; results are checked."""
        built = {n: weft.build(s, target="cuda", tuned=False) for n, s in schedules.items()}
        calls = {}
        for name, module in built.items():
            f = module["main"]
            f(*self.arrays)
            error = np.abs(self.arrays[-1].numpy() - self.expected) / np.maximum(self.expected, 1)
            assert error.max() < 1e-4, (self.name, name, error.max())
            calls[name] = lambda k, f=f: f.time(*self.arrays, number=k, repeat=1).median
        calls["torch"] = lambda k: rival_seconds(self.rival, k)
        samples = {name: [] for name in calls}
        for call in calls.values():
            call(5)
        for _ in range(9):
            for name, call in calls.items():
                samples[name].append(call(20))
        return {name: statistics.median(v) * 1e6 for name, v in samples.items()}


def cases():
    for n in (1024, 2048):
        yield Case(
            f"gemm float32 {n}",
            matmul(n, n, n),
            [(n, n)] * 3,
            torch.matmul,
            (lambda n=n: by_hand(n)),
        )
    yield Case(
        "sum of rows 4096 x 4096",
        row_sums(4096, 4096),
        [(4096, 4096), (4096,)],
        lambda x: x.sum(1),
    )
    yield Case(
        "conv float32 b8 64->64 56x56 k3",
        convolution(8, 64, 64, 56, 3),
        [(8, 64, 58, 58), (64, 64, 3, 3), (8, 64, 56, 56)],
        torch.nn.functional.conv2d,
    )
    yield Case(
        "softmax 8192 x 1000",
        softmax(8192, 1000),
        [(8192, 1000)] * 2,
        lambda x: torch.softmax(x, 1),
    )
    yield Case(
        "chain 4096 x 4096",
        chain(4096, 4096),
        [(4096, 4096), (4096,), (4096,), (4096, 4096)],
        lambda x, scale, shift: torch.tanh(x * scale + shift) * x + x,
    )
    yield Case(
        "attention float32 h16 n512 d64",
        attention(16, 512, 64),
        [(16, 512, 64)] * 4,
        torch.nn.functional.scaled_dot_product_attention,
    )


def operations(trials):
    """Array operations before and after weft.tuning.tune_operations, beside torch, in turns."""
    from timing import seconds

    device, rng = weft.device("cuda:0"), np.random.default_rng(1)
    for shape, axis in (((3163, 3163), 0), ((64, 397, 394), 1), ((1000000, 3), 1)):
        host = rng.random(shape, np.float32)
        x, y = weft.asarray(host, device=device), torch.from_numpy(host).cuda()

        def ours(x=x, axis=axis):
            return x.sum(axis)

        def rival(y=y, axis=axis):
            return y.sum(axis)

        def medians(x=x):
            calls = {"weft": (ours, device.synchronize), "torch": (rival, torch.cuda.synchronize)}
            samples = {n: [seconds(f, s, 200) for _ in range(9)] for n, (f, s) in calls.items()}
            return {n: statistics.median(v) * 1e6 for n, v in samples.items()}

        with tempfile.TemporaryDirectory() as folder:
            os.environ["WEFT_TUNE_DB"] = str(pathlib.Path(folder) / "tune.db")
            before, start = medians(), time.perf_counter()
            weft.tuning.tune_operations(ours, trials=trials, progress=False)
            wall = time.perf_counter() - start
            after = medians()
            error = np.abs(ours().numpy() - host.astype(np.float64).sum(axis)).max()
            notes = weft.tuning.notes(clear=True)
        print(
            f"sum {shape} over {axis}: default {before['weft']:.1f} us, tuned {after['weft']:.1f} us ({wall:.1f} s), "
            f"torch {before['torch']:.1f}, {after['torch']:.1f} us, error {error:.1e}, {len(notes)} notes {notes[-1:]}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of names of cases")
    parser.add_argument("--trials", type=int, nargs="*", default=[16, 64])
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--store")
    parser.add_argument("--operations", type=int, metavar="TRIALS")
    parser.add_argument("--unranked", action="store_true", help="random candidates, too")
    args = parser.parse_args()
    if args.operations:
        return operations(args.operations)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(torch.cuda.get_device_name(0), weft.device("cuda:0").limits, flush=True)
    stored = {}
    for case in cases():
        if not case.name.startswith(tuple(args.only)):
            continue
        schedules = {"default": case.program}
        if case.hand:
            schedules["hand"] = case.hand()
        with tempfile.TemporaryDirectory() as folder:
            for trials in args.trials:
                for ranked in (True, False) if args.unranked else (True,):
                    name = f"{trials}{'' if ranked else ' unranked'}"
                    path = pathlib.Path(folder) / f"{name}.db"
                    start, cpu = time.perf_counter(), time.process_time()
                    best = weft.tune(
                        case.program,
                        target="cuda",
                        trials=trials,
                        database=path,
                        seconds=args.seconds,
                        progress=False,
                        ranked=ranked,
                    )
                    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
                    from weft.tuning.database import Database

                    rows = Database(path).rows()
                    failed = sorted({str(r[6]) for r in rows if r[6]})
                    print(
                        f"{case.name}: {len(rows)} candidates, {name}: {wall:.1f} s (this process {cpu:.1f} s), failed "
                        f"{sum(1 for r in rows if r[6])} {failed}",
                        flush=True,
                    )
                    stored.setdefault(case.name, []).extend(
                        [r[2], r[4], r[7]] for r in rows if r[4]
                    )
                    schedules[name] = best
        times = case.compare(schedules)
        least = min(t for n, t in times.items() if n != "torch")
        print(
            f"{case.name}: "
            + ", ".join(
                f"{n} {t:.1f} us ({times['torch'] / t:.3f} of torch, {least / t:.3f} of best)"
                for n, t in times.items()
            ),
            flush=True,
        )
    if args.store:
        with open(args.store, "w") as file:
            json.dump(stored, file)


if __name__ == "__main__":
    main()
