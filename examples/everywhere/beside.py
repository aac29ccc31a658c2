# SPDX-License-Identifier: Apache-2.0
"""Times of the same work by several libraries, taken in turns: no side gets the quieter minutes."""

import statistics
import time

import weft


def torch_or_none():
    try:
        import torch
    except ImportError:
        return None
    return torch


def in_turns(calls, rounds=7, seconds=0.01, settle=lambda: None, of=statistics.median, untimed=3):
    """{name: seconds of one call, the median}. Each is called `untimed` times, then `rounds` times in turns."""
    counts = {}
    for name, call in calls.items():
        for _ in range(untimed):
            call()
        settle()
        start = time.perf_counter()
        call()
        settle()
        counts[name] = max(1, min(1000, int(seconds / max(time.perf_counter() - start, 1e-7))))
    samples = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            settle()
            samples[name].append((time.perf_counter() - start) / counts[name])
    return {name: of(taken) for name, taken in samples.items()}


def roof(device, megabytes=64):
    """What a device that is real reaches here at best: (operations a second, bytes a second, rows of the product) of weft's own
    product and sum. The product is large enough for the device to reach its rate, and no larger."""
    size = 1024 if device.startswith("cuda") else 512
    a = weft.ones((size, size), dtype="float32", device=device)
    long = weft.ones((megabytes << 18,), dtype="float32", device=device)
    how = dict(rounds=4, settle=weft.device(device).synchronize, of=min, untimed=1)
    product = in_turns({"": lambda: weft.matmul(a, a)}, **how)[""]
    # More often than the product: one moment of a busy host would lower the line below every program.
    stream = in_turns({"": lambda: weft.add(long, 1.0)}, **{**how, "rounds": 12})[""]
    return 2 * size**3 / product, 2 * (megabytes << 20) / stream, size
