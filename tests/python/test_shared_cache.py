# SPDX-License-Identifier: Apache-2.0
"""One cache folder for eight processes of eight threads, children of fork and of spawn, and Ctrl-C at random moments of building,
tuning, saving and computing. WEFT_TEST_INTERRUPTS=200 interrupts so often, WEFT_TEST_SEED at other moments."""

import os
import random
import re
import signal
import subprocess
import sys

import pytest
import weft
from conftest import SEED

INTERRUPTS = int(os.environ.get("WEFT_TEST_INTERRUPTS", "6"))
COMMON = """
import os, pathlib, sys, threading
import numpy as np
import weft
from weft import te

folder = pathlib.Path(sys.argv[1])

def scaled(k, n=24):
    a = te.placeholder((n,), "int32", name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] * k - 5, name="B")])

def right(k, target, n=24):
    out = weft.zeros((n,), dtype="int32")
    weft.build(scaled(k), target=target)(weft.arange(n, dtype="int32"), out)
    assert np.array_equal(out.numpy(), np.arange(n) * k - 5), (k, target)

def arrays(k):
    x = np.random.default_rng(k).random((17, 40)).astype("float32")
    a = weft.asarray(x)
    np.testing.assert_allclose(weft.matmul(a, a.T).numpy(), x @ x.T, rtol=1e-5)
    np.testing.assert_allclose(weft.exp(a).sum(axis=0).numpy(), np.exp(x).sum(0), rtol=1e-5)
"""


def start(text, folder, *arguments):
    paths = os.pathsep.join(p for p in sys.path if p)
    return subprocess.Popen(
        [sys.executable, "-c", COMMON + text, str(folder), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": paths, "WEFT_CACHE_DIR": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process, seconds=500):
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out


def partial(folder):
    return [
        p.name for p in (folder / "cache").iterdir() if not re.fullmatch("[0-9a-f]{32}", p.name)
    ]


THREADS = """
import random
failures, begin = [], threading.Barrier(8)

def body(number):
    try:
        order = list(range(6))
        random.Random(number + 8 * int(sys.argv[2])).shuffle(order)
        begin.wait()
        for k in order:
            right(k, "cpu")
        right(100 + number, "c" if number == 0 else "cpu")
        arrays(number)
    except BaseException as reason:
        failures.append(reason)

threads = [threading.Thread(target=body, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert not failures, failures
"""


def test_eight_processes_of_eight_threads_fill_one_cache(tmp_path):
    for process in [start(THREADS, tmp_path, n) for n in range(8)]:
        ended(process)
    first = {p.name for p in (tmp_path / "cache").iterdir()}
    assert len(first) >= 13 and partial(tmp_path) == []
    ended(start(THREADS, tmp_path, 8))
    assert {p.name for p in (tmp_path / "cache").iterdir()} == first  # all of it was there


FORK = """
right(1, "cpu"), arrays(1)  # threads and compilers of the parent are at work or have been
children = []
for n in range(8):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            right(1, "cpu"), right(50 + n, "cpu"), arrays(n)
            status = 0
        finally:
            os._exit(status)
    children.append(child)
right(9, "cpu")
assert [os.waitpid(c, 0)[1] for c in children] == [0] * 8
"""
SPAWN = """
import multiprocessing
if __name__ == "__main__":
    right(1, "cpu"), arrays(1)
    with multiprocessing.get_context(sys.argv[2]).Pool(8) as pool:
        from operator import methodcaller
        x = weft.asarray(np.arange(12, dtype="float32").reshape(3, 4))
        for total in pool.map(methodcaller("sum"), [x + k for k in range(8)]):
            assert isinstance(total, weft.NDArray)
            assert float(total) % 12 == 66 % 12
    right(2, "cpu"), arrays(2)
"""


def test_children_of_fork_use_the_cache(tmp_path):
    ended(start(FORK, tmp_path))
    assert partial(tmp_path) == []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes(tmp_path, method):
    ended(start(SPAWN, tmp_path, method))
    assert partial(tmp_path) == []


@pytest.mark.parametrize("where", ["link", "replace"])
@pytest.mark.parametrize("before", [False, True])
def test_ctrl_c_beside_a_files_name_stays_ctrl_c(tmp_path, monkeypatch, where, before):
    """It comes right before or after the file gets a name: nothing else is raised, and nothing is left."""
    plain = getattr(os, where)

    def interrupted(*args, **options):
        if not before:
            plain(*args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        weft.save(tmp_path / "a.npy", weft.ones((3,)))
    assert [p.name for p in tmp_path.iterdir()] == (
        ["a.npy"] if where == "replace" and not before else []
    )


INTERRUPTED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # who was started in the background ignores it

def work(k):
    right(k, "c" if k % 4 == 0 else "cpu")
    arrays(k)
    weft.save(folder / "a.npy", weft.full((1 << 16,), k, dtype="int32"))
    weft.savez(folder / "a.npz", a=weft.full((1 << 16,), k, dtype="int32"))
    if k % 3 == 0:
        weft.tune(scaled(k), trials=2, database=folder / "tune.db")

k = int(sys.argv[2])
try:
    print("began", flush=True)
    while True:
        k += 1
        work(k)
except KeyboardInterrupt:
    pass
signal.signal(signal.SIGINT, signal.SIG_IGN)
work(k), work(3 * k)
for name in ("a.npy", "a.npz"):
    held = weft.load_arrays(folder / name)
    held = (held if name == "a.npy" else held["a"]).numpy()
    assert (held == held[0]).all(), name
print("usable")
"""


def test_ctrl_c_at_random_moments(tmp_path):
    """A second Ctrl-C follows when the first came where Python drops exceptions (a destructor)."""
    rng = random.Random(SEED)
    for k in range(INTERRUPTS):
        process = start(INTERRUPTED, tmp_path, 1000 * k)
        assert process.stdout.readline() == "began\n", process.stderr.read()
        wait = rng.random() * 1.5
        for _ in range(50):
            try:
                process.wait(wait)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                wait = 10
        assert ended(process) == "usable\n"
    assert len(partial(tmp_path)) <= 1, partial(tmp_path)
