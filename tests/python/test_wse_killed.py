# SPDX-License-Identifier: Apache-2.0
"""Host scripts of the wafer that are killed at any moment leave no process behind."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from processes import marked, still_marked
from test_wse_programs import wse

LAYOUT = """
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 6, .height = 6 });
layout {
  @set_rectangle(6, 6);
  for (@range(i16, 6)) |x| { for (@range(i16, 6)) |y| {
    @set_tile_code(x, y, "pe.csl", .{ .memcpy_params = memcpy.get_params(x) });
  } }
  @export_name("a", [*]f32, true);
  @export_name("work", fn(u16)void);
}
"""
PE = """
param memcpy_params: comptime_struct;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
var a = @zeros([64]f32); var a_ptr: [*]f32 = &a;
const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{64} -> a[i] });
fn work(n: u16) void {
  for (@range(u16, n)) |i| { @fadds(d, d, 1.0); a[1] = a[0] * 0.5; }
  sys_mod.unblock_cmd_stream();
}
comptime { @export_symbol(a_ptr, "a"); @export_symbol(work); }
"""
SCRIPT = """
import sys
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime
way = dict(streaming=False, order=MemcpyOrder.ROW_MAJOR, data_type=MemcpyDataType.MEMCPY_32BIT)
print("began", flush=True)
while True:
    r = SdkRuntime(sys.argv[1], simfab_numthreads=3)
    r.load()
    r.run()
    a = r.get_id("a")
    r.memcpy_h2d(a, np.zeros(36 * 64, np.float32), 0, 0, 6, 6, 64, nonblock=True, **way)
    r.launch("work", np.uint16(3000), nonblock=True)
    r.memcpy_d2h(np.zeros(36 * 64, np.float32), a, 0, 0, 6, 6, 64, nonblock=False, **way)
    r.stop()
"""
RUN = "import sys; from weft_wse.script import cs_python_main as m; sys.exit(m(sys.argv[1:]) or 0)"


def started(folder, *before):
    mark = f"WEFT_TEST_KILLED={folder}"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    variables["WEFT_TEST_KILLED"] = str(folder)
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *before, "run.py", "out"],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return process, mark


def ended(process, mark, how):
    process.send_signal(how)
    process.communicate(timeout=300)
    return still_marked(mark, 10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("killed")
    for name, text in {"layout.csl": LAYOUT, "pe.csl": PE, "run.py": SCRIPT}.items():
        (where / name).write_text(text)
    wse.compile_csl(
        str(where / "layout.csl"),
        str(where / "out"),
        memcpy=True,
        channels=1,
        fabric_dims=(13, 8),
        fabric_offsets=(4, 1),
    )
    return where


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_scripts_leave_no_process(folder, how):
    draw = random.Random(int(how))
    # Some before the script has begun, the others while it copies, launches, ends and begins anew.
    for early, _ in itertools.product([True, False], range(5)):
        process, mark = started(folder)
        if early:
            time.sleep(draw.random() * 0.4)
        else:
            assert process.stdout.readline() == "began\n"
            time.sleep(draw.random() * 0.5)
        assert process.poll() is None
        assert ended(process, mark, how) == []
        assert process.returncode == -how


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_perturbations_leave_no_process(folder, how):
    process, mark = started(folder, "--perturb", "3")
    while len(marked(mark)) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.5)
    assert ended(process, mark, how) == []


def test_the_compiler_survives_a_reader_that_has_gone(folder):
    code = "import sys; from weft_wse.compiler import cslc_main as m; sys.exit(m(sys.argv[1:]))"
    options = ["--fabric-dims=13,8", "--fabric-offsets=4,1", "--memcpy", "-o", "again", "--verbose"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [sys.executable, "-c", code, "layout.csl", *options],
        cwd=folder,
        env=variables,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (run.returncode, run.stderr) == (0, "")
    assert (folder / "again/out.json").is_file()
