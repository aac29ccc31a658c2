# SPDX-License-Identifier: Apache-2.0
"""Simulated machines used by eight threads at once: builds, launches, copies, statistics and releases. Launches are done
one after another, and each result is that of its own arguments."""

import threading

import numpy as np
import pytest

import weft
from weft import te

THREADS, ROUNDS = 8, 12


def together(work):
    """Runs `work(index)` on all threads at once; the first exception of any is raised."""
    begin, failures = threading.Barrier(THREADS), []

    def body(index):
        begin.wait()
        try:
            work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


def scaled(n, k, dtype):
    x = te.placeholder((n,), dtype, "X")
    return te.create_prim_func([x, te.compute((n,), lambda i: x[i] * k + 1, "Y")])


@pytest.mark.parametrize("target", ["qpu", "vta", "wse:4x4"])
def test_programs_of_each_thread_and_one_of_all(target):
    n, dtype = 8192, "int32" if target == "vta" else "float32"
    shared = weft.build(scaled(n, 3, dtype), target=target)
    device = weft.device(target)

    def work(index):
        rng = np.random.default_rng(index)
        for turn in range(ROUNDS):
            k = 3 if turn % 2 else index + 2
            module = shared if turn % 2 else weft.build(scaled(n, k, dtype), target=target)
            x = rng.integers(-50, 50, n).astype(dtype)
            a, b = weft.asarray(x, device=device), weft.zeros((n,), dtype=dtype, device=device)
            module["main"](a, b)
            np.testing.assert_array_equal(b.numpy(), x * k + 1, err_msg=f"{index} {turn}")
            device.stats()

    together(work)


@pytest.mark.parametrize("target", ["qpu", "vta", "wse:4x4"])
def test_programs_are_released_while_others_ask_for_statistics(target):
    n, dtype = 256, "int32" if target == "vta" else "float32"
    device = weft.device(target)

    def work(index):
        for turn in range(ROUNDS):
            if index % 2:
                for _ in range(20):
                    device.stats()
                continue
            module = weft.build(scaled(n, index + turn % 3, dtype), target=target)
            a, b = (weft.ones((n,), dtype=dtype, device=device) for _ in range(2))
            module["main"](a, b)
            assert (b.numpy() == index + turn % 3 + 1).all()
            del module, a, b

    together(work)


@pytest.mark.parametrize("target", ["null", "qpu", "vta", "wse:4x4"])
def test_simulated_time_is_of_the_thread_that_asks(target):
    n, dtype = 256, "float32" if target.startswith("wse") else "int32"
    module = weft.build(scaled(n, 3, dtype), target=target)
    device = weft.device(target)

    def cycles():
        a, b = (weft.zeros((n,), dtype=dtype, device=device) for _ in range(2))
        return module["main"].time(a, b, number=2, repeat=2).cycles

    alone, found = cycles(), [None] * THREADS
    together(lambda index: found.__setitem__(index, cycles()))
    assert found == [alone] * THREADS


def test_what_a_wafer_holds_is_of_the_thread_that_launched():
    """Inputs that did not change are not sent again, so the clock of a launch depends on those before it: on the thread's own."""
    n = 256
    module = weft.build(scaled(n, 3, "float32"), target="wse:4x4")
    device = weft.device("wse:4x4")

    def run(value, between=lambda: None):
        def cycles():
            module["main"](a, b)
            return device.stats()["fabric.cycles"]

        a = weft.full((n,), float(value), dtype="float32", device=device)
        b = weft.zeros((n,), dtype="float32", device=device)
        found = []
        for _ in range(3):
            found.append(cycles())
            between()
        return found

    def elsewhere(work):
        out = []
        thread = threading.Thread(target=lambda: out.append(work()))
        thread.start()
        thread.join()
        return out[0]

    alone = elsewhere(lambda: run(1.0))
    assert elsewhere(lambda: run(1.0, lambda: elsewhere(lambda: run(2.0)))) == alone
