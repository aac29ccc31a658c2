# SPDX-License-Identifier: Apache-2.0
"""Threads of Python go on while another builds: kernels of one model are compiled side by side."""

import statistics
import threading
import time

import pytest
from present import built, present

import weft
from weft import te


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


def goes_on(ticks, calls):
    """Whether the other thread counts while each of `calls` runs, as a rule: a call that keeps it waiting lets it come back
    once, at its end, and now and then between steps that are Python's."""
    counts = []
    for call in calls:
        before = ticks[0]
        call()
        counts.append(ticks[0] - before)
    return statistics.median(counts) >= 4


def products(n):
    """Three products one after another: tens of milliseconds of building."""
    x = te.placeholder((n, n), "float32", name="A")
    arrays = [x]
    for name in "BCD":
        y = te.placeholder((n, n), "float32", name=name)
        k = te.reduce_axis((0, n), name="k")
        x = te.compute(
            (n, n),
            lambda i, j, x=x, y=y, k=k: te.sum(x[i, k] * y[k, j], axis=k),
            name=f"to_{name}",
        )
        arrays.append(y)
    return te.create_prim_func([*arrays, x])


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_builds_let_other_threads_go_on(ticks, target):
    built(target)
    programs = [products(64 + i) for i in range(9)]
    assert goes_on(ticks, [lambda p=p: weft.build(p, target=target) for p in programs])


def test_array_programs_let_other_threads_go_on(ticks, tmp_path, monkeypatch):
    present("opencl:0")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    x = weft.asarray([0.25, 0.5, 0.75], dtype="float32", device="opencl:0")
    names = "sin cos tan sinh cosh tanh asin acos atan asinh atanh exp expm1 log1p log2".split()
    weft.sum(x)  # what the first call of a device does
    assert goes_on(ticks, [lambda f=getattr(weft, name): f(x) for name in names])
