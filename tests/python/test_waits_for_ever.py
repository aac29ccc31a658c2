# SPDX-License-Identifier: Apache-2.0
"""Threads and processes that wait for each other: each program ends by itself, and is killed after a minute or two where it would not."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import weft
from present import remote_devices
from processes import computed, computes, still_marked

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
COMMON = """
import gc, os, sys, threading, time
import numpy as np
import weft
from weft import te

def bounded(child, seconds=90):
    '''The status of a child that ends in time; a later one is killed.'''
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "it hangs"
"""


def ended(code, *arguments, seconds=240):
    process = subprocess.Popen(
        [sys.executable, "-c", COMMON + code, *map(str, arguments)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        pytest.fail(f"the program hangs: {code}")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, err
    return out


# The main thread launches without the interpreter's lock and asks for signals during the launch; the other thread has
# the interpreter's lock when it comes to the device's.
BESIDE = """
device, steps = sys.argv[1], int(sys.argv[2])
x = te.placeholder((16,), "float32", "X")
r = te.reduce_axis((0, steps), name="r")
module = weft.build(te.create_prim_func([x, te.compute((16,), lambda i: te.sum(x[i] + 0 * r, axis=r), name="Y")]), target=device)
a, b = weft.ones(16, device=device), weft.zeros(16, device=device)
module["main"](a, b)
going, rounds = True, 0

def other():
    global rounds
    while going:
        y = weft.ones(16, device=device) + weft.ones(16, device=device)
        assert y.numpy()[0] == 2
        b.numpy()
        rounds += 1

thread = threading.Thread(target=other)
thread.start()
for k in range(20):
    module["main"](a, b)
    time.sleep(0.001)
going = False
thread.join()
assert np.all(b.numpy() == steps)
print("ended")
"""


@pytest.mark.parametrize("device, steps", [("qpu", 20000), ("wse:2x2", 2000)])
def test_arrays_beside_a_launch_of_another_thread(device, steps):
    assert ended(BESIDE, device, steps) == "ended\n"


REMOTE = """
from weft import rpc
device = rpc.connect("127.0.0.1", int(sys.argv[1])).device()
x = te.placeholder((16,), "float32", "X")
module = weft.build(te.create_prim_func([x, te.compute((16,), lambda i: x[i] + 1, name="Y")]), target="cpu")
a, b = weft.ones(16, device=device), weft.zeros(16, device=device)
module["main"](a, b)
going, rounds = True, 0

def other():
    global rounds
    while going:
        assert weft.ones(16, device=device).numpy()[0] == 1
        rounds += 1

thread = threading.Thread(target=other)
thread.start()
for k in range(4):
    begun = rounds
    module["main"].time(a, b, number=400, repeat=1)
    while rounds == begun and thread.is_alive():  # measurements beside calls, however slow those are
        module["main"].time(a, b, number=400, repeat=1)
going = False
thread.join()
assert rounds >= 4 and np.all(b.numpy() == 2)
print("ended")
"""


class Serving:
    """`weft serve` in another process; nobody reads its log."""

    def __init__(self, *arguments, stderr=subprocess.DEVNULL):
        remote_devices()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weft", "serve", "--port", "0", *arguments],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        self.port = int(re.search(r":(\d+) ", self.process.stdout.readline()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def test_arrays_beside_a_measurement_of_another_thread():
    with Serving("--device", "cpu") as server:
        assert ended(REMOTE, server.port) == "ended\n"


INTERRUPTED = """
import signal
from weft import rpc
signal.signal(signal.SIGINT, signal.default_int_handler)
from weft import script as T

def program(steps):
    return T.from_source(f'''
from weft import script as T

@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = A[i]
    for r in range({steps}):
        for j in range(16):
            B[j] = B[j] + A[j]
''')

def run(steps):
    device = rpc.connect("127.0.0.1", int(sys.argv[1])).device()
    a, b = weft.ones(16, device=device), weft.zeros(16, device=device)
    module = weft.build(program(steps), target="ref")
    if steps > 5:
        print("running", flush=True)
    try:
        module["main"](a, b)
    except KeyboardInterrupt:
        try:
            a.numpy()
        except weft.Error as error:
            assert error.code == "rpc.lost" and "was interrupted" in str(error), error
            return None
    return b.numpy()

assert np.all(run(3) == 4)
assert run(1 << 30) is None
assert np.all(run(3) == 4)
print("stopped")
"""


def test_ctrl_c_ends_the_wait_for_a_server():
    with Serving("--device", "ref") as server:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMON + INTERRUPTED, str(server.port)],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            before = computed(server.process)
            assert process.stdout.readline() == "running\n", process.stderr.read()
            computes(server.process, before)  # without end, for this client
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
            assert out == "stopped\n", err
        finally:
            process.kill()
            process.communicate()


FORKED = """
from weft import rpc
remote = rpc.connect("127.0.0.1", int(sys.argv[1]))
x = weft.ones(16, device=remote.device())
server = rpc.Server("cpu", port=0)
child = os.fork()
if child == 0:
    try:
        x.numpy()
        status = 1
    except weft.Error as error:
        status = 0 if error.code == "rpc.fork" and "is used by its child" in str(error) else 2
    server.stop()
    del x, remote, server
    gc.collect()
    os._exit(status)
assert bounded(child) == 0
assert x.numpy()[0] == 1
server.stop()
print("ended")
"""


def test_a_connection_in_a_forked_child_is_refused_and_dropped():
    with Serving("--device", "cpu") as server:
        assert ended(FORKED, server.port) == "ended\n"


# Two processors: the QPU's emulator divides launches between the caller and a thread of its own.
FORKED_DEVICE = """
device = sys.argv[1]
x = te.placeholder((4096,), "float32", "X")
module = weft.build(te.create_prim_func([x, te.compute((4096,), lambda i: x[i] * 3 + 1, name="Y")]), target=device)

def work():
    a, b = weft.ones(4096, device=device), weft.zeros(4096, device=device)
    module["main"](a, b)
    assert np.all(b.numpy() == 4)

work()
child = os.fork()
if child == 0:
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)
assert bounded(child) == 0
work()
print("ended")
"""


@pytest.mark.parametrize("device", ["cpu", "c", "qpu", "vta", "wse:2x2", "ref"])
def test_a_forked_child_uses_the_device_of_its_parent(device):
    code = FORKED_DEVICE.replace('"float32"', '"int32"') if device == "vta" else FORKED_DEVICE
    if device == "vta":
        code = code.replace("device=device", 'dtype="int32", device=device')
    assert ended(code, device) == "ended\n"


FORKED_AT_WORK = """
going = True

def other(n):
    x = weft.ones((n, n))
    while going:
        weft.matmul(x, x)
        weft.sort(x + 1)

def scaled(k):
    x = te.placeholder((40,), "int32", name="A")
    return te.create_prim_func([x, te.compute((40,), lambda i: x[i] * k + 3, name="B")])

modules = [weft.build(scaled(k)) for k in range(2)]
threads = [threading.Thread(target=other, args=(20 + n,)) for n in range(4)]
for t in threads:
    t.start()
found = []
for k in range(60):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            out = weft.zeros(40, dtype="int32")
            modules[k % 2](weft.arange(40, dtype="int32"), out)
            x = weft.sort(weft.matmul(weft.ones((30, 30)), weft.ones((30, 30))))
            status = 0 if out.numpy()[1] == k % 2 + 3 and x.numpy()[0, 0] == 30 else 2
        finally:
            os._exit(status)
    found.append(bounded(child, 30))
    if "it hangs" in found:
        break
going = False
for t in threads:
    t.join()
assert set(found) == {0}, found
print("ended")
"""


def test_children_that_are_forked_while_threads_compute():
    assert ended(FORKED_AT_WORK) == "ended\n"


def test_a_server_whose_log_nobody_reads_serves_and_ends():
    """More lines than a pipe holds; then SIGTERM."""
    with Serving("--device", "cpu", stderr=subprocess.PIPE) as server:
        from weft import rpc

        room = fcntl.fcntl(server.process.stderr, 1031, 4096)  # F_SETPIPE_SZ
        for _ in range(room // 40):
            rpc.connect("127.0.0.1", server.port)
        assert rpc.connect("127.0.0.1", server.port).device().name
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0


def test_a_server_whose_log_is_closed_serves():
    with Serving("--device", "cpu", stderr=subprocess.PIPE) as server:
        from weft import rpc

        server.process.stderr.close()
        for _ in range(5):
            x = weft.ones(16, device=rpc.connect("127.0.0.1", server.port).device())
            assert x.numpy()[0] == 1
            time.sleep(0.3)  # a line of the log is written meanwhile
        assert server.process.poll() is None


def test_compilers_of_a_candidate_end_with_it(tmp_path, monkeypatch):
    """A candidate is ended while its C compiler is at work; nothing of it goes on."""
    mark = f"WEFT_TEST_COMPILER={tmp_path}"
    compiler, begun = tmp_path / "cc", tmp_path / "begun"
    compiler.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--version*) exec cc --version;; esac\n'
        f'if [ -e "{begun}" ]; then sleep 1000; fi\n'
        f'touch "{begun}"\nexec cc "$@"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("WEFT_TEST_COMPILER", str(tmp_path))
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    a = weft.te.placeholder((8, 8), "float32", name="A")
    program = weft.te.create_prim_func(
        [a, weft.te.compute((8, 8), lambda i, j: a[i, j] + 1, name="B")]
    )
    target = f"c:cc={compiler}"
    weft.tune(program, target=target, trials=2, limit=12.0, database=tmp_path / "t.db")
    assert begun.exists()
    assert still_marked(mark, 30, apart=[os.getpid()]) == []


def test_a_recording_of_operations_inside_another():
    from weft.tuning.operations import recorded

    found = []

    def outer():
        found.append(recorded(lambda: None))

    thread = threading.Thread(target=lambda: found.append(recorded(outer)), daemon=True)
    thread.start()
    thread.join(60)
    assert found == [[], []]
