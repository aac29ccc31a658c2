# SPDX-License-Identifier: Apache-2.0
"""One sample of a function that queues work on a card."""

import time


def sample(f, sync, number):
    """Seconds of a call, of `number` calls and one wait at the end, and the seconds until a call was queued."""
    sync()
    start = time.perf_counter()
    for _ in range(number):
        f()
    issued = time.perf_counter() - start
    sync()
    return (time.perf_counter() - start) / number, issued / number


def seconds(f, sync, number):
    return sample(f, sync, number)[0]
