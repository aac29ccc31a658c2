# SPDX-License-Identifier: Apache-2.0
"""Threads of Python go on while another builds: kernels of one model are compiled side by side."""

import threading
import time

import numpy as np
import pytest
from present import present

import weft
from weft import te

MANY = 300  # calls, of which one has to show it


@pytest.fixture
def ticks():
    """A number that a thread of its own counts up about once a millisecond."""
    count, end = [0], threading.Event()

    def run():
        while not end.is_set():
            time.sleep(0.001)
            count[0] += 1

    other = threading.Thread(target=run)
    other.start()
    yield count
    end.set()
    other.join()


def goes_on(ticks, call):
    """Whether the other thread counts while `call(i)` runs: a call that keeps it waiting lets it come back once, at its end."""
    for i in range(MANY):
        before = ticks[0]
        call(i)
        if ticks[0] - before >= 3:
            return True
    return False


def product(n):
    a, b = (te.placeholder((n, n), "float32", name=x) for x in "AB")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])


def test_builds_let_other_threads_go_on(ticks):
    programs = [product(64 + i) for i in range(MANY)]
    assert goes_on(ticks, lambda i: weft.build(programs[i], target="cpu"))


def test_array_programs_let_other_threads_go_on(ticks, tmp_path, monkeypatch):
    present("opencl:0")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    x = weft.asarray(np.arange(60.0), device="opencl:0")
    shapes = [(3, 4, 5), (5, 2, 6), (2, 3, 10), (60, 1, 1), (2, 30, 1), (4, 15, 1)]

    def call(i):
        axes = [(2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0)][i % 4]
        y = weft.permute_dims(weft.reshape(x, shapes[i // 4 % len(shapes)]), axes)
        for dtype in ("float32", "int32", "float16"):
            weft.cumulative_sum(weft.astype(y, dtype), axis=0)

    assert goes_on(ticks, call)
