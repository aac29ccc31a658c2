# SPDX-License-Identifier: Apache-2.0
"""``weft selftest``: a minute's check of an installation on every device present. It needs no file of a source tree."""

import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import numpy as np

import weft
from weft import _terminal, te
from weft.cli.manual import bare_reason, errors_page, not_installed

SHAPE = (33, 9, 17)  # rows, columns, depth: none a power of two


def _product(integers):
    m, n, k = SHAPE
    kind, out = ("int8", "int32") if integers else ("float32", "float32")
    a, b = te.placeholder((m, k), kind, name="A"), te.placeholder((k, n), kind, name="B")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, axis].astype(out) * b[axis, j].astype(out), axis=axis),
        name="C",
    )
    return te.create_prim_func([a, b, c])


def _program(device):
    """A matrix product, beside NumPy's."""
    m, n, k = SHAPE
    integers = device.name.startswith("vta")
    rng = np.random.default_rng(1)
    if integers:
        x, y = (rng.integers(-128, 128, s).astype(np.int8) for s in ((m, k), (k, n)))
        z = np.zeros((m, n), np.int32)
        wanted = x.astype(np.int32) @ y.astype(np.int32)
    else:
        x, y = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
        z, wanted = np.zeros((m, n), np.float32), x @ y
    module = weft.build(_product(integers), target=device.name, tuned=False)
    arrays = [weft.asarray(v, device=device) for v in (x, y, z)]
    module["main"](*arrays)
    worst = float(np.abs(arrays[2].numpy() - wanted).max())
    assert worst <= (0 if integers else 1e-4), f"differs from NumPy by {worst:.3g}"
    return f"product {m} x {k} x {n}, largest difference from NumPy {worst:.1e}"


def _arrays(device):
    """Values and a gradient of an array expression."""
    x = np.random.default_rng(2).random((7, 5), np.float32)
    a = weft.Tensor(x, device=device)
    loss = (weft.sin(a) * a).sum()
    loss.backward()
    worst = max(
        float(abs(loss.item() - (np.sin(x) * x).sum())),
        float(np.abs(a.grad.numpy() - (np.cos(x) * x + np.sin(x))).max()),
    )
    assert worst <= 1e-3, f"differs from NumPy by {worst:.3g}"
    return f"arrays and a gradient, largest difference from NumPy {worst:.1e}"


def _refusal():
    schedule = weft.Schedule(_product(False))
    loops = schedule.get_loops(schedule.get_block("C"))
    try:
        schedule.split(loops[0], [2, 3])
    except weft.ScheduleError as refusal:
        assert refusal.code == "schedule.split.cover", refusal.code
        return "a split that covers too little is refused"
    raise AssertionError("a split that covers 6 of 33 iterations was accepted")


def _files():
    m, n, k = SHAPE
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "product.weft-mod"
        weft.build(_product(False), target="ref", tuned=False).save(path)
        x, y = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        arrays = [weft.asarray(v, device="ref") for v in (x, y, np.zeros((m, n), np.float32))]
        weft.load(path)["main"](*arrays)
    assert (arrays[2].numpy() == k).all(), "a saved module computes something else"
    return "a module is saved, loaded and called"


def _wafer():
    """A program of the Cerebras SDK's language through cslc and the fabric simulator's host interface."""
    from weft._child import environment
    from weft.cli.demo import examples_folder

    source = examples_folder() / "wse" / "seed"
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in (
            ("cslc", ["layout.csl", "--fabric-dims=8,3", "--fabric-offsets=4,1", "--memcpy"]),
            ("cs_python", ["run.py", "--name", f"{folder}/out"]),
        ):
            if name == "cslc":
                arguments += ["--channels=1", "-o", f"{folder}/out"]
            entry = f"import sys; from weft import wse_tools; sys.exit(wse_tools.{name}_main())"
            done = subprocess.run(
                [sys.executable, "-c", entry, *arguments],
                cwd=source,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, (done.stderr.strip() or done.stdout).splitlines()[:1]
    assert "SUCCESS!" in done.stdout, done.stdout
    return "cslc and cs_python run a matrix-vector product"


def _manual():
    rows = errors_page().read_text("utf-8").count("\n| `")
    assert rows > 100, f"the manual of errors has {rows} rows"
    return f"the manual of errors has {rows} rows"


def checks():
    """(name, function without arguments) of everything to check, and (name, reason) of what is absent."""
    out, absent = [], []
    for device in weft.devices():
        if device.name == "null":  # it computes nothing
            continue
        if not device.available:
            absent.append((device.name, bare_reason(device.reason.splitlines()[0])))
            continue
        out.append((device.name, lambda d=device: _program(d)))
        if device.name == "cpu" or device.name.startswith(("cuda", "opencl")):
            out.append((device.name, lambda d=device: _arrays(d)))
    out += [("schedules", _refusal), ("files", _files), ("errors", _manual)]
    if any(name.startswith("wse") for name, _ in out):
        out.append(("csl", _wafer))
    return out, absent


def run(args):
    print(f"weft {weft.__version__}, Python {platform.python_version()}, NumPy {np.__version__}")
    print(f"{platform.platform()}, {os.cpu_count()} processors\n")
    todo, absent = checks()
    passed = failed = 0
    for name, check in todo:
        try:
            word, text = "ok", check()
        except Exception as failure:  # noqa: BLE001: whatever it is, the rest is checked too
            # A library of the system that a wheel does not bring makes no wrong installation.
            if isinstance(failure, weft.Error) and not_installed(failure):
                absent.append((name, not_installed(failure)))
                continue
            failed += 1
            word, text = "FAILED", f"{type(failure).__name__}: {failure}"
        passed += word == "ok"
        print(_terminal.filled(f"{word:<7} {name:<10} {text}", " " * 19), flush=True)
    for name, reason in absent:
        print(_terminal.filled(f"absent  {name:<10} {reason}", " " * 19))
    print(f"\n{passed} passed, {failed} failed, {len(absent)} absent")
    return 1 if failed else 0
