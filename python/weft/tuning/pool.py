# SPDX-License-Identifier: Apache-2.0
"""Candidates measured on one device, or on several at once."""

import concurrent.futures
import contextlib
import threading
import warnings

import weft
from weft._errors import error

from .fleet import revived

_LEAST = 1e-12  # seconds; none would read as a failure


def _one(measurer, schedule, best, allowed, clock):
    """((seconds, cycles), reason, wall seconds): of the first two one is None."""
    began = clock()
    try:
        return measurer.measure(schedule, best, allowed), None, clock() - began
    except weft.Error as reason:
        return None, reason, clock() - began
    except Exception as reason:
        failed = error(
            "internal",
            "tune.failed",
            f"measuring a candidate raised {type(reason).__name__}: {reason}",
            notes=["the steps:\n" + schedule.trace.as_python()],
        )
        return None, failed, clock() - began


def _gone(reason):
    """Whether the device went away: nothing was learnt of the candidate."""
    return reason is not None and (reason.code.startswith("rpc.") or reason.code == "tune.worker")


def _noted(search, trial, found, wall):
    search.took(wall)
    if (
        found is not None
    ):  # no time at all: a machine that had nothing to do, whose host moved the data
        trial.seconds, trial.cycles = max(found[0], _LEAST), found[1]


def measured(search, measurers, clock, again=None, away=()):
    """Yields (trial, reason) for each candidate of `search`, as they end. A device that goes away is left out, and its
    candidate measured on another; `measurers` loses it. Raises its error when it was the last. `again`: for measurers by
    id, what reaches the device again, and for how many seconds that may be tried; the new measurer joins `measurers`. `away`: the
    same, with the reason, of devices that have not been there yet."""
    if len(measurers) > 1 or again or away:
        yield from _on_many(search, measurers, clock, dict(again or {}), away)
        return
    while measurers:
        if search.beside > 1 and hasattr(measurers[0], "measure_many"):
            some = list(_several(search))
            yield from _together(search, measurers[0], some, clock)
            if not some:
                return
            continue
        candidate = search.next(0)
        if candidate is None:
            return
        trial, schedule = candidate
        if schedule is None:
            yield trial, None
            continue
        found, reason, wall = _one(measurers[0], schedule, search.best, search.allowed(), clock)
        if _gone(reason):
            raise reason
        _noted(search, trial, found, wall)
        yield trial, reason


def _several(search):
    for running in range(search.beside):
        candidate = search.next(running)
        if candidate is None:
            return
        yield candidate


def _together(search, measurer, candidates, clock):
    """As measured, of candidates that are built side by side and measured one by one."""
    yield from ((trial, None) for trial, schedule in candidates if schedule is None)
    candidates = [pair for pair in candidates if pair[1] is not None]
    if not candidates:
        return
    found = measurer.measure_many([s for _, s in candidates], search.best, search.allowed())
    began = clock()
    for (trial, _), each in zip(candidates, found):
        reason = each if isinstance(each, weft.Error) else None
        if _gone(reason):
            raise reason
        _noted(search, trial, None if reason else each, clock() - began)
        yield trial, reason


@contextlib.contextmanager
def _threads(measurers, count, stop):
    """A thread for each device. What stops the search ends the candidates that run."""
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        try:
            yield threads
        except BaseException:
            for measurer in measurers:
                measurer.stop()
            raise
        finally:
            stop.set()


def _on_many(search, measurers, clock, again, absent):
    idle, left, running, away, stop = list(measurers), [], {}, {}, threading.Event()
    with _threads(measurers, len(measurers) + len(absent), stop) as threads:
        for make, reason in absent:
            away[threads.submit(revived, *make, stop)] = make, reason
        while True:
            while idle:
                candidate = left.pop() if left else search.next(len(running))
                if candidate is None:
                    break
                trial, schedule = candidate
                if schedule is None:
                    yield trial, None
                    continue
                measurer = idle.pop(0)
                work = threads.submit(
                    _one, measurer, schedule, search.best, search.allowed(), clock
                )
                running[work] = measurer, candidate
            if not running and not (left and away):
                return
            done, _ = concurrent.futures.wait(
                [*running, *away], return_when=concurrent.futures.FIRST_COMPLETED
            )
            for work in done:
                if work in away:
                    back, (make, reason) = work.result(), away.pop(work)
                    if back is not None:
                        again[id(back)] = make
                        measurers.append(back)
                        idle.append(back)
                    elif not measurers and not away:
                        raise reason
                    continue
                measurer, candidate = running.pop(work)
                found, reason, wall = work.result()
                if _gone(reason):
                    measurers.remove(measurer)
                    measurer.close()
                    make = again.pop(id(measurer), None)
                    if make is not None:
                        away[threads.submit(revived, *make, stop)] = make, reason
                    elif not measurers and not away:
                        raise reason
                    what = "is called again" if make else "is left out of the search"
                    warnings.warn(
                        f"{measurer.device.name} {what}: {reason}", RuntimeWarning, stacklevel=3
                    )
                    left.append(candidate)
                    continue
                idle.append(measurer)
                _noted(search, candidate[0], found, wall)
                yield candidate[0], reason
