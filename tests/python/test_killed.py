# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed (SIGKILL) while they build, save, tune or serve: what they wrote is whole or absent, no process and
no partial file is left, and the next process goes on in the same folders. WEFT_TEST_KILLS=1000 kills so often at random moments,
a quarter each while building, saving, tuning and serving; WEFT_TEST_SEED at others. Processes of such long runs are forked from
one that has imported weft, which takes a tenth of the time; `pytest -s` prints what was found."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest
import weft
from conftest import SEED
from present import remote_devices
from processes import still_marked

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
DELAYS = [0.0, 0.004, 0.02, 0.05, 0.09, 0.15, 0.23, 0.4]  # after the process says that it began
MANY = "WEFT_TEST_KILLS" in os.environ
if MANY:
    DELAYS = [
        random.Random(f"{SEED} {k}").uniform(0, 0.5)
        for k in range(-(-int(os.environ["WEFT_TEST_KILLS"]) // 4))
    ]
SERVED = DELAYS if MANY else DELAYS[:6]

COMMON = """
import os, pathlib, sys
import numpy as np
import weft
from weft import te

folder, first = pathlib.Path(sys.argv[1]), int(sys.argv[2])

def scaled(k, n=40):
    a = te.placeholder((n,), "int32", name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] * k + 3, name="B")])

def right(module, k, n=40):
    out = weft.zeros((n,), dtype="int32")
    module(weft.arange(n, dtype="int32"), out)
    assert np.array_equal(out.numpy(), np.arange(n) * k + 3), (k, out.numpy())
"""
WORK = {
    "build": """
print("began", flush=True)
for k in range(first, first + 10**6):
    weft.build(scaled(k), target="c" if k % 4 == 0 else "cpu")
""",
    "save": """
module = weft.build(scaled(7))
print("began", flush=True)
for k in range(first, first + 10**6):
    arrays = {"a": weft.full((1 << 18,), k, dtype="int32"), "b": weft.full((3,), k, dtype="int32")}
    module.save(folder / "m.weft-mod")
    weft.save(folder / "a.npy", arrays["a"])
    weft.savez(folder / "a.npz", **arrays)
    weft.save_safetensors(folder / "a.safetensors", arrays)
""",
    "tune": """
print("began", flush=True)
for k in range(first, first + 10**6):
    weft.tune(scaled(k), trials=3, database=folder / "tune.db")
""",
}
# What the next process does in the same folders.
CHECK = {
    "build": """
for k in range(first, first + 12):
    right(weft.build(scaled(k), target="c" if k % 4 == 0 else "cpu"), k)
""",
    "save": """
if (folder / "m.weft-mod").exists():
    right(weft.load(folder / "m.weft-mod"), 7)
for name, load in {"a.npy": lambda p: {"a": weft.load_arrays(p)}, "a.npz": weft.load_arrays,
                   "a.safetensors": weft.load_safetensors}.items():
    if (folder / name).exists():
        found = load(folder / name)
        for array in found.values():
            assert (array.numpy() == array.numpy()[0]).all(), name
        assert len({int(x.numpy()[0]) for x in found.values()}) == 1, name
""",
    "tune": """
import sqlite3
weft.tune(scaled(1), trials=2, database=folder / "tune.db")
file = sqlite3.connect(folder / "tune.db")
assert file.execute("pragma integrity_check").fetchone() == ("ok",)
assert file.execute("select count(*) from trials").fetchone()[0] >= 2
""",
}


def mark(folder):
    """The variable of all processes that work in a folder."""
    return f"WEFT_TEST_KILLED={folder}"


def environment(folder):
    (folder / "tmp").mkdir(exist_ok=True)
    own = {"WEFT_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder / "tmp")}
    return {**ENVIRONMENT, **own, **dict([mark(folder).split("=", 1)])}


def run(text, folder, first):
    return subprocess.Popen(
        [sys.executable, "-c", text, str(folder), str(first)],
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


FORKER = """
import importlib.util, json, os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if importlib.util.find_spec("weft._rpc"):
    import weft.rpc
exec(compile({common!r}, "common", "exec"))
for line in sys.stdin:
    work = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, path in ((1, work["out"]), (2, work["err"])):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        status = 1
        try:
            first = work["first"]
            exec(compile(work["text"], "work", "exec"))
            status = 0
        except BaseException as reason:
            sys.excepthook(type(reason), reason, reason.__traceback__)
        finally:
            sys.stdout.flush()
            os._exit(status)
    print(child, flush=True)
"""


class Forked:
    """A process that was forked from one that has imported weft; as far as it is needed, like Popen."""

    def __init__(self, forker, text, first):
        self._err = forker.place / "err"
        self._err.unlink(missing_ok=True)
        out = forker.place / "out"
        out.unlink(missing_ok=True)
        os.mkfifo(out)
        work = {"text": text, "first": first, "out": str(out), "err": str(self._err)}
        forker.process.stdin.write(json.dumps(work) + "\n")
        forker.process.stdin.flush()
        self.pid = int(forker.process.stdout.readline())
        self.stdout = out.open()

    @property
    def stderr(self):
        return self._err.open()

    def poll(self):
        return None if pathlib.Path(f"/proc/{self.pid}").exists() else 1

    @property
    def returncode(self):
        """Of one that has ended: who fails says why."""
        return 1 if self._err.stat().st_size else 0

    def send_signal(self, number):
        os.kill(self.pid, number)

    def communicate(self, timeout):
        end = time.monotonic() + timeout
        while self.poll() is None:
            assert time.monotonic() < end, "it does not end"
            time.sleep(0.005)
        with self.stdout:
            return self.stdout.read(), self.stderr.read()


class Forker:
    """Starts processes for one folder: with the interpreter, or by fork where many are asked for."""

    def __init__(self, folder, place):
        self.folder, self.place, self.process = folder, place, None
        if MANY:
            self.process = subprocess.Popen(
                [sys.executable, "-c", FORKER.format(common=COMMON), str(folder), "0"],
                env=environment(folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

    def run(self, text, first):
        if self.process is None:
            return run(COMMON + text, self.folder, first)
        return Forked(self, text, first)

    def close(self):
        if self.process is not None:
            self.process.communicate(timeout=60)


@pytest.fixture
def forker(tmp_path, tmp_path_factory):
    out = Forker(tmp_path, tmp_path_factory.mktemp("forker"))
    yield out
    if out.process is not None:
        out.process.kill()
        out.process.wait()


def killed(process, delay):
    assert process.stdout.readline() == "began\n", process.stderr.read()
    time.sleep(delay)
    assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=300)


def partial(folder):
    """Names of files that are not yet what they shall be."""
    found = {p for p in folder.rglob("*") if ".weft-" in p.name.removesuffix(".weft-mod")}
    cache = (folder / "cache").glob("*")
    return sorted(found | {p for p in cache if not re.fullmatch("[0-9a-f]{32}", p.name)})


@pytest.mark.parametrize("work", WORK)
def test_a_process_that_is_killed_damages_and_leaves_nothing(work, tmp_path, forker):
    for k, delay in enumerate(DELAYS):
        killed(forker.run(WORK[work], 1000 * k), delay)
    forker.close()
    left = still_marked(mark(tmp_path), 30)
    print(f"{work}: {len(DELAYS)} kills, {len(left)} processes and {len(partial(tmp_path))} partial files left")  # fmt: skip
    assert left == []
    # A file gets its name after it is written and its last name at once: it can be caught between the two, whole.
    assert len(partial(tmp_path)) <= 1 + len(DELAYS) // 50, partial(tmp_path)
    check = run(COMMON + CHECK[work], tmp_path, 0)
    said = check.communicate(timeout=500)
    assert check.returncode == 0, said[1]
    assert not list(tmp_path.glob("*-journal"))


SAVERS = {
    "module": "module.save(folder / 'out')",
    "npy": "weft.save(folder / 'out', big)",
    "npz": "weft.savez(folder / 'out', big=big)",
    "safetensors": "weft.save_safetensors(folder / 'out', {'big': big})",
}


@pytest.mark.parametrize("before", [None, b"what was there"], ids=["new", "there"])
@pytest.mark.parametrize("saver", SAVERS)
def test_a_process_that_is_killed_in_the_middle_of_a_file(saver, before, tmp_path):
    """The system kills it (SIGXFSZ) after some bytes of the file."""
    text = f"""
import resource, signal
module = weft.build(scaled(7))
big = weft.zeros((1 << 16,), dtype="int32")
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
{SAVERS[saver]}
"""
    if before is not None:
        (tmp_path / "out").write_bytes(before)
    process = run(COMMON + text, tmp_path, 0)
    said = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGXFSZ, said[1]
    assert {p.name for p in tmp_path.iterdir()} - {"cache", "tmp"} == ({"out"} if before else set())
    assert before is None or (tmp_path / "out").read_bytes() == before


def test_folders_of_killed_compilers_are_removed_by_a_later_build(tmp_path):
    left = tmp_path / "tmp" / "weft-c-abcdef"
    environment(tmp_path)
    left.mkdir()
    (left / "kernel.c").write_text("int x;")
    for path in (left / "kernel.c", left):
        os.utime(path, (time.time() - 7200,) * 2)
    fresh = tmp_path / "tmp" / "weft-c-ghijkl"
    fresh.mkdir()
    check = run(COMMON + CHECK["build"], tmp_path, 0)
    said = check.communicate(timeout=500)
    assert check.returncode == 0, said[1]
    assert [p.name for p in (tmp_path / "tmp").iterdir()] == [fresh.name]


def test_a_database_that_was_killed_before_its_version(tmp_path):
    """The tables and the version are written at once: no moment leaves a file that the next process refuses."""
    import sqlite3

    from weft.tuning import database

    for count in range(1, 8):
        path, steps = tmp_path / f"{count}.db", []

        class Killed(Exception):
            pass

        def progress(steps=steps, count=count):
            steps.append(1)
            return len(steps) >= count * 20  # interrupts the statement

        file = sqlite3.connect(path)
        file.set_progress_handler(progress, 1)
        try:
            file.executescript(database._TABLES)
        except sqlite3.OperationalError:
            pass
        file.close()
        database.Database(path).close()


SERVE = [sys.executable, "-m", "weft", "serve", "--device", "cpu", "--port", "0"]
CLIENT = """
from weft import rpc
remote = rpc.connect("127.0.0.1", first, deadline=20)
device = remote.device()
module = weft.build(scaled(5), target="cpu")
module.save(folder / "m.weft-mod")
remote.upload(folder / "m.weft-mod")
f = remote.load_module("m.weft-mod")
def call():
    out = weft.zeros((40,), dtype="int32", device=device)
    f["main"](weft.asarray(np.arange(40, dtype="int32"), device=device), out)
    assert np.array_equal(out.numpy(), np.arange(40) * 5 + 3)
"""
CALLS = """
print("began", flush=True)
try:
    while True:
        call()
        remote.upload(folder / "m.weft-mod")
except weft.Error as error:
    print(error.code)
"""


SERVE_FORKED = """
import weft.cli
weft.cli.main(["serve", "--device", "cpu", "--port", "0"])
"""


def test_a_server_that_is_killed_while_it_serves(tmp_path, forker):
    remote_devices()

    def server(many=MANY):
        if many:
            process = forker.run(SERVE_FORKED, 0)
        else:
            process = subprocess.Popen(
                SERVE,
                env=environment(tmp_path),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        return process, int(re.search(r":(\d+) ", process.stdout.readline()).group(1))

    for delay in SERVED:
        process, port = server()
        client = forker.run(CLIENT + CALLS, port)
        assert client.stdout.readline() == "began\n", client.stderr.read()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=300)
        said = client.communicate(timeout=300)
        assert client.returncode == 0 and said[0].startswith("rpc."), said
    forker.close()
    process, port = server(many=False)
    try:
        client = run(COMMON + CLIENT + "call()", tmp_path, port)
        said = client.communicate(timeout=300)
        assert client.returncode == 0, said[1]
    finally:
        process.terminate()
        process.communicate(timeout=300)
    left = still_marked(mark(tmp_path), 20)
    print(f"serve: {len(SERVED)} kills, {len(left)} processes and {len(partial(tmp_path))} partial files left")  # fmt: skip
    assert left == []
    assert len(partial(tmp_path)) <= 1 and not list((tmp_path / "tmp").iterdir())
