# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends long work, and what was at work goes on: simulated kernels, the interpreter, timing."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

pytestmark = pytest.mark.targets("qpu")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

# A kernel of 2^40 iterations for one device, then a short one on the same device.
ENDLESS = """
import sys, time
import numpy as np
import weft
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

device = sys.argv[1]
a = np.arange(16, dtype="float32")
def run(steps):
    A, B = weft.asarray(a, device=device), weft.zeros(16, dtype="float32", device=device)
    weft.build(program(steps), target=device)["main"](A, B)
    return B.numpy()
assert np.array_equal(run(3), 4 * a)
print("running", flush=True)
try:
    run(1 << 30)
    print("ended")
except KeyboardInterrupt:
    assert np.array_equal(run(5), 6 * a)
    print("stopped, and usable")
"""

TIMING = """
import numpy as np
import weft
from weft import te

a = te.placeholder((1 << 16,), "float32", name="A")
f = te.create_prim_func([a, te.compute((1 << 16,), lambda i: a[i] + 1, name="B")])
A, B = weft.zeros(1 << 16, dtype="float32"), weft.zeros(1 << 16, dtype="float32")
module = weft.build(f, target="cpu")
timer = module.time_evaluator("main", number=1 << 29, repeat=1)
print("running", flush=True)
try:
    timer(A, B)
    print("ended")
except KeyboardInterrupt:
    module["main"](A, B)
    assert np.all(B.numpy() == 1)
    print("stopped, and usable")
"""

HANDLER = """
import signal

class Stop(Exception):
    pass

def handler(number, frame):
    raise Stop("by the handler")

signal.signal(signal.SIGINT, handler)
""" + ENDLESS.replace(
    "except KeyboardInterrupt:", "except Stop as stop:\n    assert str(stop) == 'by the handler'"
)


def interrupted(code, *arguments):
    """What the program prints when Ctrl-C comes while it works; a deaf one is killed and prints nothing."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(100, process.kill)
    watchdog.start()
    try:
        assert process.stdout.readline() == "running\n", process.communicate()
        time.sleep(0.5)  # into the kernel
        process.send_signal(signal.SIGINT)
        return process.communicate()
    finally:
        watchdog.cancel()
        process.kill()


@pytest.mark.parametrize("device", ["ref", "qpu", "qpu:engine=oracle"])
def test_a_simulated_kernel_without_end(device):
    out, err = interrupted(ENDLESS, device)
    assert out == "stopped, and usable\n", err


def test_a_handler_of_ones_own():
    out, err = interrupted(HANDLER, "ref")
    assert out == "stopped, and usable\n", err


def test_timing_of_many_calls():
    out, err = interrupted(TIMING)
    assert out == "stopped, and usable\n", err
