# SPDX-License-Identifier: Apache-2.0
"""Threads of Python go on while another builds: kernels of one model are compiled side by side."""

import ctypes
import sys
import threading
import time

import pytest
from present import built, present

import weft
from weft import te


@pytest.fixture
def ticks():
    """A number that a thread of its own counts up about once a millisecond, and only where the other thread gives the
    interpreter's lock away by itself: Python does not take it from a thread within the test."""
    count, end, before = [0], threading.Event(), sys.getswitchinterval()

    def run():
        while not end.is_set():
            time.sleep(0.001)
            count[0] += 1

    other = threading.Thread(target=run)
    other.start()
    sys.setswitchinterval(1000)
    yield count
    sys.setswitchinterval(before)
    end.set()
    other.join()


def goes_on(ticks, calls):
    """Whether the other thread counts while three of `calls` run. One call may end before a busy system has let it count;
    calls that keep the lock give no count at all."""
    seen = 0
    for call in calls:
        before = ticks[0]
        call()
        seen += ticks[0] - before >= 4
        if seen == 3:
            return True
    return False


def test_calls_that_keep_the_lock_are_seen(ticks):
    sleep = ctypes.PyDLL(None).usleep
    assert not goes_on(ticks, [lambda: sleep(10000)] * 4)


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
    assert goes_on(
        ticks, (lambda n=n: weft.build(products(n), target=target) for n in range(64, 128))
    )


def test_array_programs_let_other_threads_go_on(ticks, tmp_path, monkeypatch):
    present("opencl:0")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    x = weft.asarray([0.25, 0.5, 0.75], dtype="float32", device="opencl:0")
    names = "sin cos tan sinh cosh tanh asin acos atan asinh atanh exp expm1 log1p log2".split()
    weft.sum(x)  # what the first call of a device does
    whole = x.astype("int32")
    weft.sum(whole)
    calls = [lambda f=getattr(weft, name), a=a: f(a) for a in (x, whole) for name in names]
    assert goes_on(ticks, calls)
