# SPDX-License-Identifier: Apache-2.0
"""``weft bench``: weft beside a rival in the same run, interleaved, medians, results checked.

The benchmarks here need only what ``import weft`` needs. In a source tree the scripts under bench/ are found too, as
``folder/name``; they print their own tables.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import weft
from weft import _terminal, te
from weft._errors import error
from weft._whole_file import write_whole


def _seconds(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def _beside(ours, rival, rounds=15):
    """Medians of both, taken in turn."""
    ours(), rival()
    pairs = [(_seconds(ours), _seconds(rival)) for _ in range(rounds)]
    return tuple(statistics.median(column) for column in zip(*pairs))


def _check(name, got, want, limit=1e-3):
    worst = float(np.max(np.abs(got - want) / np.maximum(np.abs(want), 1)))
    if not worst <= limit:
        raise error(
            "value",
            "bench.wrong",
            f"{name}: the result is off by {worst:.3g}",
            help="report it with the name of the benchmark and of the device",
        )


def add():
    """Vector add, 4 Mi float32, against NumPy: GB/s."""
    n = 1 << 22
    a, b = te.placeholder((n,), "float32", name="A"), te.placeholder((n,), "float32", name="B")
    sch = weft.Schedule(
        te.create_prim_func([a, b, te.compute((n,), lambda i: a[i] + b[i], name="C")])
    )
    (i,) = sch.get_loops(sch.get_block("C"))
    outer, inner = sch.split(i, [None, 4096])
    sch.parallel(outer)
    sch.vectorize(sch.split(inner, [None, 16])[1])
    x, y = np.random.default_rng(0).random((2, n), np.float32)
    z = np.empty_like(x)
    A, B, C = weft.asarray(x), weft.asarray(y), weft.empty((n,), dtype="float32")
    f = weft.build(sch)["main"]
    ours, rival = _beside(lambda: f(A, B, C), lambda: np.add(x, y, out=z))
    _check("add", C.numpy(), z)
    return 12 * n / ours / 1e9, "GB/s", "numpy", 12 * n / rival / 1e9


def gemm():
    """GEMM 512^3 float32, tuned tiles, against NumPy's BLAS: GFLOP/s, all threads."""
    n, rows, columns = 512, 4, 32
    a, b = te.placeholder((n, n), "float32", name="A"), te.placeholder((n, n), "float32", name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = weft.Schedule(te.create_prim_func([a, b, c]))
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, r = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, rows])
    j0, j1 = sch.split(j, [None, columns])
    sch.reorder(i0, j0, r, i1, j1)
    sch.reverse_compute_at(local, j0)
    init = sch.decompose_reduction(block, r)
    for ref in (block, local, init):
        outer, inner = sch.get_loops(ref)[-2:]
        sch.unroll(outer)
        sch.vectorize(inner)
    sch.parallel(i0)
    x, y = np.random.default_rng(0).random((2, n, n), np.float32)
    z = np.empty_like(x)
    A, B, C = weft.asarray(x), weft.asarray(y), weft.empty((n, n), dtype="float32")
    f = weft.build(sch)["main"]
    ours, rival = _beside(lambda: f(A, B, C), lambda: np.matmul(x, y, out=z))
    _check("gemm", C.numpy(), z)
    return 2 * n**3 / ours / 1e9, "GFLOP/s", "numpy", 2 * n**3 / rival / 1e9


def eager():
    """a + b of four numbers, eager, against NumPy: million calls a second."""
    x, y = np.ones((2, 4), np.float32)
    a, b = weft.asarray(x), weft.asarray(y)
    count = range(20000)

    def ours():
        for _ in count:
            a + b

    def rival():
        for _ in count:
            x + y

    mine, other = _beside(ours, rival, 9)
    _check("eager", (a + b).numpy(), x + y)
    return len(count) / mine / 1e6, "M/s", "numpy", len(count) / other / 1e6


def step():
    """A schedule step on a GEMM, on average: thousand steps a second; no rival."""
    n = 256
    a, b = te.placeholder((n, n), "float32", name="A"), te.placeholder((n, n), "float32", name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    func = te.create_prim_func([a, b, c])

    def schedule():
        sch = weft.Schedule(func)
        block = sch.get_block("C")
        local = sch.cache_write(block, 0, "local")
        i, j, r = sch.get_loops(block)
        i0, i1 = sch.split(i, [None, 8])
        j0, j1 = sch.split(j, [None, 8])
        r0, _ = sch.split(r, [None, 4])
        sch.reorder(i0, j0, i1, j1)
        sch.reverse_compute_at(local, j1)
        sch.decompose_reduction(block, r0)
        return sch

    seconds = statistics.median(_seconds(schedule) for _ in range(50))
    return len(schedule().trace) / seconds / 1e3, "k/s", "", 0.0


def startup():
    """`import weft` in a fresh process, against `import numpy`: imports a second."""

    def python(code):
        return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=_environment())

    base = statistics.median(_seconds(python("pass")) for _ in range(5))
    ours, rival = _beside(python("import weft"), python("import numpy"), 7)
    return 1 / max(ours - base, 1e-6), "1/s", "numpy", 1 / max(rival - base, 1e-6)


def _environment():
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


BENCHMARKS = {f.__name__: f for f in (add, gemm, eager, step, startup)}


def _scripts():
    root = pathlib.Path(weft.__file__).resolve().parents[2] / "bench"
    found = sorted(root.glob("*/*.py")) if root.is_dir() else []
    return {f"{p.parent.name}/{p.stem}": p for p in found}


def _run_script(path):
    """A script's own rows, where it takes --json."""
    if "--json" not in path.read_text(encoding="utf-8"):
        subprocess.run([sys.executable, str(path)], check=True, env=_environment())
        return None
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "rows.json"
        subprocess.run(
            [sys.executable, str(path), "--json", str(out)], check=True, env=_environment()
        )
        return json.loads(out.read_text())


def run(args):
    scripts = _scripts()
    if args.list:
        for name, f in BENCHMARKS.items():
            print(_terminal.filled(f"{name:<16} {f.__doc__}", " " * 17))
        for name, path in scripts.items():
            print(_terminal.filled(f"{name:<16} {path}", " " * 17))
        return 0
    names = args.names or list(BENCHMARKS)
    for name in names:
        if name not in BENCHMARKS and name not in scripts:
            raise error(
                "value",
                "bench.unknown",
                f'there is no benchmark "{name}"',
                notes=["benchmarks: " + ", ".join([*BENCHMARKS, *scripts])],
            )
    rows = []
    print(f"{'benchmark':<12} {'weft':>12} {'unit':<8} {'rival':>12} {'ratio':>6}")
    for name in names:
        if _terminal.live():
            _terminal.show(f"{name} ...")
        if name in scripts:
            try:
                rows.append({"name": name, "rows": _run_script(scripts[name])})
            except subprocess.CalledProcessError as reason:
                raise error(
                    "value",
                    "bench.failed",
                    f"{name} ended with status {reason.returncode}",
                    help="its output above says why",
                ) from reason
            continue
        value, unit, rival, other = BENCHMARKS[name]()
        rows.append(
            {"name": name, "value": value, "unit": unit, "rival": rival, "rival_value": other}
        )
        if _terminal.live():
            _terminal.show()
        right = f"{other:>12.4g} {value / other:>6.2f}  {rival}" if rival else ""
        print(f"{name:<12} {value:>12.4g} {unit:<8} {right}".rstrip(), flush=True)
    if args.json:
        text = json.dumps({"version": weft.__version__, "rows": rows}, indent=1)
        write_whole(args.json, [text.encode()])
    return 0
