# SPDX-License-Identifier: Apache-2.0
"""Limits of the host are hit on purpose: memory, descriptors, sizes of files, threads. Each gives its own error, and the process
goes on once the limit is gone."""

import os
import subprocess
import sys

import pytest
import weft

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
# limited(kind, extra, f): the code and the text of what f raises under the limit, which ends afterwards; then all works.
COMMON = """
import os, resource, sys
import numpy as np
import weft
from weft import te

folder = sys.argv[1]

def scaled(k, n=40):
    a = te.placeholder((n,), "int32", name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] * k + 3, name="B")])

def usable(k):
    out = weft.zeros((40,), dtype="int32")
    weft.build(scaled(k))(weft.arange(40, dtype="int32"), out)
    assert np.array_equal(out.numpy(), np.arange(40) * k + 3)
    weft.save(folder + "/usable.npy", out)
    assert np.array_equal(weft.load_arrays(folder + "/usable.npy").numpy(), out.numpy())

def limited(kind, amount, f):
    before, held = resource.getrlimit(kind), []
    if kind == resource.RLIMIT_AS:
        amount += int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(kind, (amount, before[1]))
    if kind == resource.RLIMIT_NOFILE:
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
    try:
        f()
        said = "nothing"
    except weft.Error as error:
        said = str(error)
    finally:
        for handle in held:
            os.close(handle)
        resource.setrlimit(kind, before)
    usable(1000 + len(said))
    print("<<" + said + ">>")
"""
AS, NOFILE, FSIZE = "resource.RLIMIT_AS", "resource.RLIMIT_NOFILE", "resource.RLIMIT_FSIZE"
LARGE = "big = weft.ones((1 << 16,))"
# name: limit, its amount, what runs before it, what runs under it, beginning of the text, a part of the text
ROWS = {
    "array": (AS, 1 << 24, "", "weft.zeros((1 << 28,))", "device.memory.exhausted", "cpu cannot give 1 GiB"),
    "inside an operation": (AS, 100 << 20, "x = weft.ones((1 << 24,))", "weft.sort(x).numpy()", None, None),
    "work space": (AS, 100 << 20, "x = weft.ones((1 << 24,))", "weft.savez(folder + '/x.npz', x=x)", "host.memory", "no memory for this call"),
    "memory of qpu": (AS, 1 << 24, "", "weft.zeros((10,), device='qpu')", "sim.memory.map", "the host cannot reserve 256 MiB"),
    "memory of vta": (AS, 1 << 24, "", "weft.zeros((16,), dtype='int8', device='vta')", "sim.memory.map", "the host cannot reserve 1 GiB"),
    "compiler": (NOFILE, 64, "import weft.tuning, weft.tuning.best", "weft.build(scaled(4))", "jit.llvm.open", "Too many open files"),
    "a module on first use": (NOFILE, 64, "", "weft.nn", "python.file", "import weft.nn: Too many open files: "),
    "the tuner on first use": (NOFILE, 64, "", "weft.tune", "python.file", "import weft.tuning: Too many open files: "),
    "a part of the tuner": (NOFILE, 64, "import weft.tuning", "weft.tuning.merge", "python.file", "import weft.tuning.database: Too many"),
    "save": (NOFILE, 64, LARGE, "weft.save(folder + '/x.npy', big)", "python.file", "Too many open files"),
    "save a module": (NOFILE, 64, "m = weft.build(scaled(5))", "m.save(folder + '/m')", "file.write", "Too many open files"),
    "load": (NOFILE, 64, "usable(3)", "weft.load_arrays(folder + '/usable.npy')", "python.file", "Too many open files"),
    "database": (NOFILE, 64, "weft.tune(scaled(6), trials=1, database=folder + '/t.db')", "weft.tune(scaled(6), trials=2, database=folder + '/t.db')", "tune.database.path", "unable to open"),
    "large file": (FSIZE, 500, LARGE, "weft.save(folder + '/x.npy', big)", "python.file", "File too large"),
    "large archive": (FSIZE, 500, LARGE, "weft.savez(folder + '/x.npz', x=big)", "python.file", "File too large"),
    "large model": (FSIZE, 500, LARGE, "weft.save_safetensors(folder + '/x', {'x': big})", "python.file", "File too large"),
    "large module": (FSIZE, 500, "m = weft.build(scaled(5))", "m.save(folder + '/m')", "file.write", "File too large"),
    "large cache": (FSIZE, 500, "", "weft.build(scaled(8))", "nothing", "nothing"),  # costs the next build its time
    "large database": (FSIZE, 500, "", "weft.tune(scaled(6), trials=2, database=folder + '/t.db')", "tune.database.full", "cannot grow"),
}  # fmt: skip


def run(text, folder):
    (folder / "tmp").mkdir()
    own = {"WEFT_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder / "tmp")}
    return subprocess.run(
        [sys.executable, "-c", COMMON + text, str(folder)],
        env={**ENVIRONMENT, **own},
        capture_output=True,
        text=True,
        timeout=500,
    )


@pytest.mark.targets("qpu", "vta")
@pytest.mark.parametrize("row", ROWS)
def test_a_limit_has_an_error_of_its_own(row, tmp_path):
    kind, amount, before, under, code, part = ROWS[row]
    done = run(f"{before}\nlimited({kind}, {amount}, lambda: ({under}))\n", tmp_path)
    assert done.returncode == 0, done.stderr[-1500:]
    said = done.stdout[done.stdout.index("<<") + 2 : done.stdout.index(">>")]
    if code is None:
        assert said.startswith(("error[device.memory.exhausted]: ", "error[host.memory]: ")), said
        return
    assert (
        said.startswith("nothing" if code == "nothing" else f"error[{code}]: ") and part in said
    ), said
    assert [p.name for p in tmp_path.rglob("*") if ".weft-" in p.name] == []


THREADS = """
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)  # root has no such limit
weft.set_threads(2)
before = resource.getrlimit(resource.RLIMIT_NPROC)
resource.setrlimit(resource.RLIMIT_NPROC, (1, before[1]))
try:
    weft.exp(weft.ones((1 << 22,))).numpy()
    print("<<nothing>>")
except weft.Error as error:
    print("<<" + str(error) + ">>")
weft.set_threads(1)
assert weft.exp(weft.zeros((1 << 22,))).numpy()[-1] == 1
resource.setrlimit(resource.RLIMIT_NPROC, before)
weft.set_threads(2)
assert weft.exp(weft.zeros((1 << 22,))).numpy()[-1] == 1
"""


@pytest.mark.skipif(os.cpu_count() < 2, reason="one processor: no second thread is started")
def test_threads_that_the_host_does_not_grant(tmp_path):
    done = run(THREADS, tmp_path)
    assert done.returncode == 0, done.stderr[-1500:]
    assert done.stdout.startswith(
        "<<error[pool.threads]: the host does not grant 1 more threads"
    ), done.stdout
    assert "weft.set_threads(1), or raise the limit" in done.stdout


def test_the_class_of_a_host_without_memory():
    assert issubclass(weft.OutOfMemoryError, MemoryError)
