# SPDX-License-Identifier: Apache-2.0
"""Threads of Python go on while another builds: kernels of one model are compiled side by side."""

import threading
import time

import numpy as np
from present import present

import weft
from weft import te


def product(n):
    a, b = (te.placeholder((n, n), "float32", name=x) for x in "AB")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])


def steps_of_another_thread(work):
    """How often a thread that sleeps a millisecond at a time came back while `work` ran."""
    count, end = [0], threading.Event()

    def run():
        while not end.is_set():
            time.sleep(0.001)
            count[0] += 1

    other = threading.Thread(target=run)
    other.start()
    while not count[0]:
        time.sleep(0.001)
    before = count[0]
    try:
        work()
        return count[0] - before
    finally:
        end.set()
        other.join()


def test_builds_let_other_threads_go_on():
    programs = [product(n) for n in range(96, 104)]
    calls = [0]

    def work():
        for p in programs:
            weft.build(p, target="cpu")
            calls[0] += 1

    # Between two calls the other thread may come once; inside of them, often.
    assert steps_of_another_thread(work) > 3 * calls[0] > 0


def test_array_programs_let_other_threads_go_on(tmp_path, monkeypatch):
    present("opencl:0")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    x = weft.asarray(np.arange(60.0).reshape(3, 4, 5), device="opencl:0")
    calls = [0]

    def work():
        for rank in ((2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0)):
            y = weft.permute_dims(x, rank)
            weft.cumulative_sum(y * (calls[0] + 2), axis=0)
            calls[0] += 1

    assert steps_of_another_thread(work) > 3 * calls[0] > 0
