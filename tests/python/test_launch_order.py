# SPDX-License-Identifier: Apache-2.0
"""Kernels of a card are compiled beside the caller: the driver gets every call in the order of the program, whether kernels must be waited for or not."""

import os
import re
import subprocess
import sys

import pytest
from test_absent import CC, DRIVER, NVRTC

NOTE = r"""
#include <stdio.h>
static void note(const char* what, const char* kernel, unsigned long long bytes) {
  fprintf(stderr, "driver: %s %s %llu\n", what, kernel, bytes); }
"""


def noting(text):
    """The driver that says what it is asked to do."""
    for name, kernel, count in [
        ("cuLaunchKernel", "(const char*)f", "a * d"),
        ("cuMemcpyHtoD_v2", '""', "n"),
        ("cuMemcpyDtoH_v2", '""', "n"),
        ("cuMemcpyDtoDAsync_v2", '""', "n"),
        ("cuGraphLaunch", '""', "0"),
    ]:
        at = text.index(")", text.index(f"SAYS({name},")) + 1
        text = f'{text[:at]} note("{name}", {kernel}, {count});{text[at:]}'
    named = text.replace("*f = (void*)1; return 0; }", "*f = strdup(n); return 0; }", 1)
    assert named != text
    return NOTE + named


WORK = """
import os, sys
import numpy as np
import weft
weft._core.set_cache_directory(sys.argv[1])
d = weft.device("cuda:0")
a = weft.asarray(np.arange(64, dtype=np.float32)).to(d)
b = a + a
c = weft.asarray(np.ones(64, dtype=np.float32)).to(d)
e = weft.exp(b * c)
f = e.copy()
x = weft.reshape(f, (8, 8))
y = x @ x
z = weft.nn.functional.softmax(y, -1)
g = weft.asarray(np.ones((8, 8), dtype=np.float32)).to(d)
z = (z + g).T.copy()
np.asarray(z.to("cpu"))
if "share" in sys.argv:
    a.__dlpack__()
h = weft.sqrt(z) - 1.0
d.synchronize()
"""


@pytest.fixture(scope="module")
def fakes(tmp_path_factory):
    root = tmp_path_factory.mktemp("order")
    slow = NVRTC.replace(
        "TOLD(nvrtcCompileProgram);", "TOLD(nvrtcCompileProgram); usleep(20000);"
    ).replace("#include <stdlib.h>", "#include <stdlib.h>\n#include <unistd.h>")
    assert slow != NVRTC
    for name, text in {"libcuda.so.1": noting(DRIVER), "libnvrtc.so.13": slow}.items():
        source = root / f"{name}.c"
        source.write_text(text)
        subprocess.run(
            [CC, "-shared", "-fPIC", "-w", "-D_GNU_SOURCE", "-o", root / name, source], check=True
        )
    return root


def calls(fakes, cache, *more, fail=""):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "LD_LIBRARY_PATH": str(fakes),
        "FAIL": fail,
    }
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(cache), *more],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    return done, [line for line in done.stderr.splitlines() if line.startswith("driver: ")]


@pytest.mark.parametrize("more", [(), ("share",)])
def test_the_driver_sees_one_order(fakes, tmp_path, more):
    cache = tmp_path / "cache"
    done, waiting = calls(fakes, cache, *more)
    assert done.returncode == 0, done.stderr
    kinds = {line.split()[1] for line in waiting}
    assert {"cuLaunchKernel", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2"} <= kinds
    assert sum("cuLaunchKernel" in line for line in waiting) >= 8
    done, at_once = calls(fakes, cache, *more)
    assert done.returncode == 0, done.stderr
    assert at_once == waiting


def test_a_refused_kernel_is_told_where_results_are_asked_for(fakes, tmp_path):
    done, _ = calls(fakes, tmp_path / "cache", fail="nvrtcCompileProgram")
    assert done.returncode == 1 and "cuda.nvrtc.refused" in done.stderr, done.stderr
    lines = WORK.splitlines()
    asked, first = (lines.index(t) + 1 for t in ('np.asarray(z.to("cpu"))', "b = a + a"))
    # At the latest: on a busy machine the refusal may be known while later work is begun.
    told = re.search(r'"<string>", line (\d+), in <module>', done.stderr)
    assert told and first <= int(told[1]) <= asked, done.stderr
