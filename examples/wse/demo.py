# SPDX-License-Identifier: Apache-2.0
"""The wafer: the SDK's introductory GEMV as printed, a tensor program on 4 x 4 PEs with its CSL, pictures of a fabric."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import time

import numpy as np
import weft
from weft import te, wse
from weft.wse_tools import cs_python_main, cslc_main

HERE = pathlib.Path(__file__).resolve().parent


@contextlib.contextmanager
def _inside(folder):
    old = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(old)


def seed():
    """cslc and cs_python on the printed files: they must say SUCCESS!"""
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        begin = time.perf_counter()
        said = io.StringIO()
        arguments = "--fabric-dims=8,3 --fabric-offsets=4,1 --memcpy --channels=1 -o out".split()
        with contextlib.redirect_stdout(said):
            status = cslc_main([str(HERE / "seed/layout.csl"), *arguments])
            status = status or cs_python_main([str(HERE / "seed/run.py"), "--name", "out"])
        return status == 0 and "SUCCESS!" in said.getvalue(), time.perf_counter() - begin


def matvec(rows, columns):
    A = te.placeholder((rows, columns), "float32", name="A")
    x = te.placeholder((columns,), "float32", name="x")
    k = te.reduce_axis(columns, name="k")
    y = te.compute((rows,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
    return te.create_prim_func([A, x, y])


def heat(folder, width, height, length):
    """(runtime, cycles, sums, what they should be) of a rectangle whose PEs work the longer the further they are."""
    out = str(folder / "heat")
    wse.compile_csl(
        str(HERE / "heat/layout.csl"),
        out,
        fabric_dims=(width + 7, height + 2),
        fabric_offsets=(4, 1),
        params={"width": width, "height": height, "length": length},
        memcpy=True,
    )
    params = json.loads((folder / "heat/out.json").read_text())["params"]
    assert int(params["width"]) == width
    runner = wse.SdkRuntime(out, suppress_simfab_trace=False, timeline=True)
    runner.load()
    runner.run()
    before = runner.cycles()
    runner.launch("work")
    cycles = runner.cycles() - before
    total = np.zeros(length, np.float32)
    runner.memcpy_d2h(total, runner.get_id("sum"), 0, 0, 1, 1, length)
    runner.stop()
    want = sum(x + y for x in range(width) for y in range(height))
    return runner, cycles, total, np.full(length, want)


def frames(runner, folder, width, height, count=6):
    """The busy share of each PE in `count` equal parts of the time, from the trace; and a label for each."""
    path = folder / "trace.json"
    runner.save_trace(path)
    events = json.loads(path.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    where = {
        e["pid"]: tuple(map(int, e["args"]["name"].split()[1].split(",")))
        for e in events
        if e["name"] == "process_name" and e["args"]["name"].startswith("pe ")
    }
    spans = [
        (where[e["pid"]], e["ts"], e["ts"] + e["dur"])
        for e in events
        if e["ph"] == "X" and e["pid"] in where
    ]
    begin, end = min(s[1] for s in spans), max(s[2] for s in spans)
    part = (end - begin) / count
    grids = np.zeros((count, height, width))
    for (x, y), first, last in spans:
        for k in range(count):
            low, high = begin + k * part, begin + (k + 1) * part
            grids[k, y, x] += max(0.0, min(last, high) - max(first, low)) / part
    labels = [
        f"{(begin + k * part):.2f} to {(begin + (k + 1) * part):.2f} us" for k in range(count)
    ]
    return grids.tolist(), labels


def demo(quick=False, progress=lambda text: None, output="out"):
    rng = np.random.default_rng(11)
    out = pathlib.Path(output)
    out.mkdir(parents=True, exist_ok=True)
    progress("the printed GEMV with cslc and cs_python")
    good, seconds = seed()
    yield dict(
        program="GEMV of the SDK, as printed",
        device="wse (cs_python)",
        seconds=0,
        rate=0,
        unit="",
        passed=good,  # run.py compares and says SUCCESS! or not
        note=f"cslc and cs_python, {seconds * 1e3:.3g} ms of the host",
    )
    progress("a tensor program on wse:4x4")
    size = 64
    module = weft.build(matvec(size, size), target="wse:4x4")
    text = module.source()
    (out / "gemv-wse-4x4.csl").write_text(text)
    device = weft.device("wse:4x4")
    a, x = rng.random((size, size), np.float32), rng.random(size, np.float32)
    y = weft.zeros((size,), dtype="float32", device=device)
    arrays = [weft.asarray(v, device=device) for v in (a, x)]
    result = module.time_evaluator("main", number=1, repeat=1)(*arrays, y)
    yield dict(
        program=f"matrix-vector {size}, {len(text.splitlines())} lines of CSL",
        device="wse:4x4",
        seconds=result.median,
        rate=2 * size * size / result.median / 1e9,
        unit="Gop/s",
        got=y.numpy(),
        wanted=a.astype("float64") @ x,
        limit=1e-5,
        note=f"{result.cycles:,.0f} cycles; CSL in {out}/gemv-wse-4x4.csl",
    )
    progress("a rectangle of PEs and its pictures")
    with tempfile.TemporaryDirectory() as folder:
        width, height = (12, 8) if quick else (48, 32)
        with _inside(folder):  # where the runtime leaves its trace
            runner, cycles, got, wanted = heat(pathlib.Path(folder), width, height, 64)
        links = runner.link_traffic()
        yield dict(
            program=f"sums over {width} x {height} PEs",
            device=f"wse {width}x{height}",
            seconds=cycles / runner.clock_hz(),
            rate=0,
            unit="",
            got=got,
            wanted=wanted,
            note=f"{cycles:,} cycles, {int(links.sum()):,} wavelets over links",
        )
        for what, title in (("busy", "utilisation"), ("traffic", "traffic")):
            runner.heat_map(out / f"wse-{title}.svg", what)
            runner.heat_map(out / f"wse-{title}.png", what)
        runner.save_timeline(out / "wse-over-time.html")
        grids, labels = frames(runner, pathlib.Path(folder), width, height)
        yield {
            "chart": "frames",
            "title": f"{width} x {height} PEs at work",
            "pictures": grids,
            "labels": labels,
            "unit": "vector operations at once, the mean of the time",
            "note": "Sums travel to the north-west corner; the whole run's pictures are wse-utilisation.svg and wse-traffic.svg; wse-over-time.html zooms in time and place.",
        }
