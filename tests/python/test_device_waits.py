# SPDX-License-Identifier: Apache-2.0
"""Other threads of Python run while one waits for a device."""

import sys
import threading
import time

import pytest

import weft


@pytest.fixture
def no_turns():
    """Python hands its lock over only where somebody lets go of it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e4)
    yield
    sys.setswitchinterval(before)


def runs_meanwhile(wait, goes_on):
    """Whether another thread gets a turn in one of many waits; one may end before a busy system has woken it."""
    seen, gate = [], threading.Semaphore(0)

    def other():
        while gate.acquire() and not seen:
            seen.append(1)

    thread = threading.Thread(target=other)
    thread.start()
    gate.release()
    while not seen and goes_on():
        wait()
    found = bool(seen)
    seen.append(1)
    gate.release()
    thread.join()
    return found


@pytest.mark.parametrize("device", ["opencl:0", "cuda:0"])
@pytest.mark.parametrize("wait", ["numpy", "item", "synchronize", "to", "bool"])
def test_a_wait_lets_other_threads_run(device, wait, no_turns):
    place = weft.device(device)
    if not place.available:
        pytest.skip(f"{device.partition(':')[0]} is not here")
    x = weft.ones((500, 500), dtype=weft.float32).to(device)
    waits = {
        "numpy": lambda: (x + x).numpy(),
        "item": lambda: x.sum().item(),
        "synchronize": lambda: (x + x, place.synchronize()),
        "to": lambda: (x + x).to("cpu"),
        "bool": lambda: bool(x.all()),
    }
    waits[wait]()  # builds programs, which lets go of the lock, too
    end = time.monotonic() + 60  # beside eight busy processes well under a second
    assert runs_meanwhile(waits[wait], lambda: time.monotonic() < end)


def test_without_a_wait_no_other_thread_runs(no_turns):
    """The check of the check."""
    rounds = iter(range(2000))
    assert not runs_meanwhile(lambda: None, lambda: next(rounds, None) is not None)
