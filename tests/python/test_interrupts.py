# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends long work, and what was at work goes on: simulated kernels, the interpreter, timing."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
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
try:
    print("running", flush=True)
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
try:
    print("running", flush=True)
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


# Who was started in the background ignores Ctrl-C, and hands that down.
LISTENING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def interrupted(code, *arguments):
    """What the program prints when Ctrl-C comes while it works; a deaf one is killed and prints nothing."""
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING + code, *arguments],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(300, process.kill)
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


# A wafer program without end: one task that never returns, or one that activates itself again and again.
WAFER = """
import pathlib, signal, sys, tempfile
import numpy as np
from weft import wse

body, handler = sys.argv[1:]
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "pe.csl").write_text('''
param memcpy_params: comptime_struct;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
var v = @zeros([1]u32); var p: [*]u32 = &v;
const again: local_task_id = @get_local_task_id(8);
task work() void {
  v[0] += 1;
  if (v[0] == 3) { sys.unblock_cmd_stream(); return; }
  BODY
}
fn start() void { @activate(again); }
comptime {
  @bind_local_task(work, again);
  @export_symbol(p, "v");
  @export_symbol(start);
}
'''.replace("BODY", body))
(folder / "layout.csl").write_text('''
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 });
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(0) });
  @export_name("v", [*]u32, true);
  @export_name("start", fn()void);
}
''')
wse.compile_csl(str(folder / "layout.csl"), str(folder / "out"), memcpy=True, fabric_dims=(8, 3),
                fabric_offsets=(4, 1))

class Stop(BaseException):
    pass

def raises(number, frame):
    raise Stop

if handler == "own":
    signal.signal(signal.SIGINT, raises)

def runtime():
    rt = wse.SdkRuntime(str(folder / "out"))
    rt.load()
    rt.run()
    return rt

def put(rt, value):
    rt.memcpy_h2d(rt.get_id("v"), np.array([value], "uint32"), 0, 0, 1, 1, 1, streaming=False,
                  order=wse.MemcpyOrder.ROW_MAJOR, data_type=wse.MemcpyDataType.MEMCPY_32BIT, nonblock=False)

rt = runtime()
put(rt, 2)
rt.launch("start", nonblock=False)  # ends at once
put(rt, 3)
try:
    print("running", flush=True)
    rt.launch("start", nonblock=False)
    put(rt, 7)
    print("ended")
except (KeyboardInterrupt, Stop) as reason:
    assert (type(reason) is Stop) == (handler == "own")
    del rt
    rt = runtime()
    put(rt, 2)
    rt.launch("start", nonblock=False)
    rt.stop()
    print("stopped, and usable")
"""


@pytest.mark.targets("wse")
@pytest.mark.parametrize("handler", ["python's", "own"])
@pytest.mark.parametrize("body", ["@activate(again);", "while (true) { v[0] += 4; }"])
def test_a_wafer_program_without_end(body, handler):
    wse = pytest.importorskip("weft.wse")
    wse.library.get()
    out, err = interrupted(WAFER, body, handler)
    assert out == "stopped, and usable\n", err


@pytest.mark.targets("wse")
def test_the_wafers_library_says_that_it_was_stopped(tmp_path):
    import ctypes

    wse = pytest.importorskip("weft.wse")
    library, stop, seen = wse.library.get(), ctypes.c_int32(0), []
    start = WAFER.index("folder = ")
    program = WAFER[start : WAFER.index("class Stop")].replace(
        "tempfile.mkdtemp()", repr(str(tmp_path))
    )
    names = {"pathlib": pathlib, "np": np, "wse": wse, "body": "@activate(again);"}
    exec(program, names)  # noqa: S102
    exec(WAFER[WAFER.index("def runtime") : WAFER.index("rt = runtime()")], names)  # noqa: S102
    rt = names["runtime"]()
    names["put"](rt, 3)

    def work():
        library.weft_wse_watch(ctypes.byref(stop))
        try:
            rt.launch("start", nonblock=False)
            names["put"](rt, 7)
        except wse.WseError as reason:
            seen.append(reason)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    stop.value = 1
    thread.join(60)
    assert [e.code for e in seen] == ["wse.interrupted"] and "stopped by its caller" in str(seen[0])
