# SPDX-License-Identifier: Apache-2.0
"""Every public array function beside NumPy and PyTorch, over shape classes and element types, in one process.

    PYTHONPATH=python python bench/sweep.py [--device cpu|cuda] [--class NAME ...] [--only TEXT ...] [--threads N]
        [--layouts 4,1e3 ...] [--dtypes float32 ...] [--seconds S] [--sample N --seed S] [--shapes SEED] [--worst N] [--cpu-time] [--kernels RATIO]
        [--compiled eager|torch]

A row is a function, a layout and a type (bench/sweep/cases.py has the table). Its result is compared with the first rival's before it
is timed; all sides are warmed by the same two calls and sampled in turns; the figure is the ratio of medians, the better
rival's time over ours, so that more is better. Rows of up to 1000 elements are bound by the call and marked so. On a card
PyTorch is the only rival, with TF32 off, and a sample is many calls and one synchronisation. The last lines are a summary: geometric
mean, least, shares below 1 and 0.8 by class, the worst rows, rows that raised (absent) and rows that were wrong.
"""

import argparse
import collections
import math
import os
import random
import statistics
import sys
import time

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = (
        sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
    )

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "sweep"), HERE]
import libraries
from case import vary
from libraries import libraries_for
from recording import Record, threads_in_words

TOLERANCE = {"float16": 2e-2, "bfloat16": 6e-2, "float32": 2e-3, "complex64": 2e-3}


clock = time.perf_counter


def once(f, sync):
    sync()
    start = clock()
    f()
    sync()
    return clock() - start


#: Before the samples of a library with several threads: PyTorch's spin for milliseconds after a job, on a processor that
#: the next library needs.
pause = 0.0


def medians(work, seconds):
    """Median seconds of a call for each (function, synchronisation), sampled in turns."""
    for f, sync in work.values():
        once(f, sync)
    first = {name: once(f, sync) for name, (f, sync) in work.items()}
    budget = seconds / len(work)
    number = {n: max(1, min(2000, int(budget / 7 / max(t, 1e-7)))) for n, t in first.items()}
    rounds = 1 if max(first.values()) > seconds else 3 if pause else 5
    times = {n: [] for n in work}
    for _ in range(rounds):
        for name, (f, sync) in work.items():
            sync()
            if pause and name != "numpy":
                time.sleep(pause)
                f()
            start = clock()
            for _ in range(number[name]):
                f()
            sync()
            times[name].append((clock() - start) / number[name])
    return {n: statistics.median(t) for n, t in times.items()}


def differs(got, want, dtype, scale_of=None):
    """Why two results are not the same within the type's tolerance, or None."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if want.size == 0:
        return None
    if want.dtype == bool or got.dtype == bool or want.dtype.kind in "iu":
        wrong = int((got.astype(want.dtype) != want).sum())
        return f"{wrong} of {want.size} differ" if wrong else None
    got, want = (a.astype("complex128" if a.dtype.kind == "c" else "float64") for a in (got, want))
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return "NaN at other places"
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite & ~np.isnan(want)], want[~finite & ~np.isnan(want)]):
        return "infinities differ"
    if not finite.any():
        return None
    scale = max(1e-30, float(np.sqrt(np.mean(np.abs(want[finite]) ** 2))))
    error = np.abs(got[finite] - want[finite]) / (np.abs(want[finite]) + scale)
    worst = float(error.max())
    return None if worst <= TOLERANCE.get(dtype, 1e-6) else f"error {worst:.1e}"


def reference(case, layout, dtype, arrays, ours):
    """NumPy's result in float32 for operands rounded to bfloat16: PyTorch multiplies and adds up in the narrow type."""
    if dtype != "bfloat16" or case.numpy is None or getattr(case.numpy, "prepare", None):
        return None
    rounded = [ours.host(ours.take(a, dtype)) if a.dtype == np.float32 else a for a in arrays]
    return np.asarray(case.function(libraries.Numpy(), layout, "float32", rounded)())


def kernels(f, synchronize):
    """'name launches x us' of one call's kernels on a card, the longest first."""
    from torch.profiler import ProfilerActivity, profile

    number, found = 5, collections.defaultdict(lambda: [0, 0.0])
    with profile(activities=[ProfilerActivity.CUDA]) as taken:
        for _ in range(number):
            f()
        synchronize()
    for event in taken.events():
        if str(event.device_type).endswith("CUDA"):
            found[event.name][0] += 1
            found[event.name][1] += event.device_time / number
    rows = sorted(found.items(), key=lambda item: -item[1][1])[:6]
    return [f"{name[:60]} {count / number:.1f} x {us:.1f}" for name, (count, us) in rows]


def compiled_row(case, layout, dtype, ours, rival, seconds):
    """weft.compile of a function beside the same call without it (`rival` None), or beside torch.compile."""
    if case.ours is None or case.kind == "drawn" or hasattr(case.ours, "prepare"):
        return None
    arrays = case.operands(np.random.default_rng(7), layout, dtype)
    row = dict(name=case.name, **{"class": case.kind}, layout=layout, dtype=dtype)
    row["shapes"] = [list(np.shape(a)) for a in arrays]
    name = "torch.compile" if rival else "eager"
    try:
        if rival:
            other = case.function(rival, layout, dtype, arrays, rival.module.compile)
            sync = rival.synchronize
        else:
            other, sync = case.function(ours, layout, dtype, arrays), ours.synchronize
        if other is None:
            return None
        other()
    except Exception:  # noqa: BLE001
        return None
    try:
        f = case.function(ours, layout, dtype, arrays, ours.module.compile)
        got = ours.host(f())
        if case.check:
            want = ours.host(case.function(ours, layout, dtype, arrays)())
            problem = differs(got, want, case.tolerance or dtype)
            if problem:
                row["wrong"] = problem
    except Exception as problem:  # noqa: BLE001
        return dict(row, absent=f"{type(problem).__name__}: {str(problem)[:160]}")
    times = medians({"weft": (f, ours.synchronize), name: (other, sync)}, seconds)
    return dict(row, ratio=times[name] / times["weft"], times=times)


def run_row(case, layout, dtype, ours, rivals, seconds, profiled=0.0):
    row = dict(name=case.name, **{"class": case.kind}, layout=layout, dtype=dtype)
    rng = np.random.default_rng(7)
    arrays = case.operands(rng, layout, dtype)
    row["shapes"] = [list(np.shape(a)) for a in arrays]
    row["elements"] = max((int(np.size(a)) for a in arrays), default=0)
    work = {}
    want = reference(case, layout, dtype, arrays, ours) if case.check else None
    for library in rivals:
        f = case.function(library, layout, dtype, arrays)
        if f is None:
            continue
        try:
            value = f()
            if want is None and case.check:
                want = library.host(value)
            work[library.name] = (f, library.synchronize)
        except Exception as problem:  # noqa: BLE001
            # A rival that cannot do it is no rival; the row says so.
            row.setdefault("rival_failed", {})[library.name] = str(problem)[:80]
    if not work:
        return None
    try:
        f = case.function(ours, layout, dtype, arrays)
        value = f()
        got = ours.host(value) if case.check else None
    except Exception as problem:  # noqa: BLE001
        return dict(row, absent=f"{type(problem).__name__}: {str(problem)[:160]}")
    if case.check:
        problem = differs(got, want, case.tolerance or dtype)
        if problem:
            row["wrong"] = problem
    del value, got
    work = {"weft": (f, ours.synchronize), **work}
    times = medians(work, seconds)
    ratio = min(t for n, t in times.items() if n != "weft") / times["weft"]
    if ratio < profiled:
        row["kernels"] = {n: kernels(*of_side) for n, of_side in work.items()}
    return dict(row, ratio=ratio, times=times)


def recorded(record, row):
    times = dict(row.get("times", {}))
    facts = {k: row[k] for k in ("absent", "wrong") if k in row}
    record.row(
        row["class"],
        f"{row['name']} {row['layout']} {row['dtype']}",
        times.pop("weft", None),
        times,
        **facts,
    )


def geometric(values):
    return math.exp(sum(math.log(max(v, 1e-9)) for v in values) / len(values))


def summary(rows, worst):
    timed = [r for r in rows if "ratio" in r]
    if timed:
        print("\nclass              rows   geo mean   least   below 1   below 0.8")
        groups = collections.defaultdict(list)
        for r in timed:
            groups[r["class"]].append(r["ratio"])
        groups["all"] = [r["ratio"] for r in timed]
        for kind, ratios in groups.items():
            print(
                f"{kind:16s} {len(ratios):6d} {geometric(ratios):10.2f} {min(ratios):7.3f} "
                f"{sum(x < 1 for x in ratios):9d} {sum(x < 0.8 for x in ratios):11d}"
            )
        print(f"\nworst {worst} rows")
        for r in sorted(timed, key=lambda r: r["ratio"])[:worst]:
            text = "  ".join(f"{n} {t * 1e6:.1f}" for n, t in r["times"].items())
            print(
                f"{r['ratio']:7.3f}  {r['name']:28s} {r['layout']:12s} {r['dtype']:10s} us: {text}  {r['shapes']}"
            )
            for side, found in r.get("kernels", {}).items():
                print(f"           {side}: {'; '.join(found)}")
    for what in ("wrong", "absent"):
        found = [r for r in rows if what in r]
        print(f"\n{what}: {len(found)} of {len(rows)} rows")
        reasons = collections.Counter((r["name"], r[what]) for r in found)
        for (name, reason), count in list(reasons.items())[:60]:
            print(f"  {name:28s} x{count}  {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--class", dest="kinds", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--layouts", nargs="*", default=[])
    parser.add_argument("--dtypes", nargs="*", default=[])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.1, help="for the samples of one row")
    parser.add_argument("--sample", type=int, default=0, help="so many rows, drawn at random")
    parser.add_argument(
        "--limit", type=float, default=0, help="seconds; rows after it are left out and counted"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--shapes", type=int, metavar="SEED", help="other extents of the same classes, at random"
    )
    parser.add_argument("--worst", type=int, default=20)
    parser.add_argument(
        "--compiled",
        choices=["eager", "torch"],
        help="weft.compile of each function beside the same call without it, or beside torch.compile",
    )
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="the process's processor time: one thread, a busy machine",
    )
    parser.add_argument(
        "--kernels",
        type=float,
        default=0,
        metavar="RATIO",
        help="on a card: name the kernels of rows below this ratio",
    )
    options = parser.parse_args()
    if options.cpu_time:
        if options.threads != 1 or options.device != "cpu":
            parser.error("--cpu-time is for one thread of the host")
        global clock
        clock = time.process_time
    if options.threads > 1:
        global pause
        pause = 0.15
    if options.shapes is not None:
        vary(options.shapes)
    from cases import all_cases  # their extents are those of now

    ours, rivals = libraries_for(options.device, options.threads)
    plan = [
        (case, layout, dtype)
        for case in all_cases()
        for layout in case.layouts
        for dtype in case.dtypes
        if (not options.kinds or case.kind in options.kinds)
        and (not options.only or any(t in case.name for t in options.only))
        and (not options.layouts or layout in options.layouts)
        and (not options.dtypes or dtype in options.dtypes)
    ]
    if options.sample and options.sample < len(plan):
        plan = random.Random(options.seed).sample(plan, options.sample)
    elif options.limit:
        random.Random(options.seed).shuffle(plan)
    asked = {"mean": 1.2, "least": 0.8} if options.device == "cuda" else {"mean": 1.5, "least": 0.7}
    title = "sweep"
    if options.compiled:
        asked = {"least": 1} if options.compiled == "eager" else {"mean": 1}
        title = f"weft.compile of functions beside {dict(eager='eager calls', torch='torch.compile')[options.compiled]}"
    record = Record(
        f"{title}, {threads_in_words(options.threads)}" if options.device == "cpu" else title,
        options.device,
        {"": asked},
    )
    rows, begun = [], time.monotonic()
    for i, (case, layout, dtype) in enumerate(plan):
        if options.limit and time.monotonic() - begun > options.limit:
            print(f"{len(plan) - i} of {len(plan)} rows left out: {options.limit} s are over")
            break
        if options.compiled:
            rival = rivals[-1] if options.compiled == "torch" else None
            row = compiled_row(case, layout, dtype, ours, rival, options.seconds)
        else:
            row = run_row(case, layout, dtype, ours, rivals, options.seconds, options.kernels)
        if row:
            rows.append(row)
            recorded(record, row)
        if sys.stderr.isatty():
            print(f"\r{i + 1}/{len(plan)} {case.name:30s}", end="", file=sys.stderr)
    summary(rows, options.worst)
    return 1 if any("wrong" in r for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
