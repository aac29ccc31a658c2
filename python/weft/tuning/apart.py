# SPDX-License-Identifier: Apache-2.0
"""Building and measuring in a process of its own, which can be ended: a limit for one candidate.

Neither a build nor a kernel in machine code can always be interrupted, and a schedule can make both take hours. The
process is started once and kept; when a candidate takes longer than its limit, or ends the process, the next candidate
gets a new one.
"""

import concurrent.futures
import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from multiprocessing.connection import Pipe

import weft
from weft._errors import error

from .machines import replayed
from .measure import Measurer

BUILD_LIMIT = 60.0  # seconds that a build may take where no limit is given


class Apart:
    """As Measurer, in another process, which is ended when a candidate takes too long.

    A remote device is this process's connection: there the other process only builds, and the module is measured here.
    """

    def __init__(self, program, name, target, device, seed, limit, arguments=None):
        opened = weft.device(device or target)
        self._remote = "#" in opened.name
        self._here = (
            Measurer(program, name, target, device, seed, arguments) if self._remote else None
        )
        named = device if device is None or isinstance(device, str) else device.name
        threads = weft.get_threads()
        self._work = program, name, target, named, seed, threads, self._remote, arguments
        self._limit, self._name = limit, name
        self.device = opened
        self._process = self._pipe = None
        self._started()

    def _started(self):
        """A process that has the inputs and the untuned program's results."""
        ours, theirs = Pipe()
        paths = [os.path.dirname(os.path.dirname(weft.__file__)), *filter(None, sys.path)]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from weft.tuning.apart import serve; serve()",
                str(theirs.fileno()),
            ],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is this process's to handle
        )
        theirs.close()
        self._pipe = ours
        self._pipe.send(self._work)
        self._answer(None)

    def _answer(self, limit, what=""):
        """What the process says within `limit` seconds. Raises its error, tune.limit or tune.ended."""
        try:
            if limit is not None and not self._pipe.poll(max(limit, 0.0)):
                self.close()
                raise error(
                    "value",
                    "tune.limit",
                    f'a candidate for "{self._name}" took more than {what}',
                    help="raise limit= or seconds= of weft.tune; other candidates go on",
                )
            said = self._pipe.recv()
        except (EOFError, ConnectionError) as gone:
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            self.stop()  # what it had started
            code = self._process.wait()
            self.close()
            raise error(
                "internal",
                "tune.ended",
                f'a candidate for "{self._name}" ended the process that measured it, with status {code}',
                help="other candidates go on; building and running this one alone shows why",
            ) from gone
        if isinstance(said, Exception):
            raise said
        return said

    def measure(self, schedule, best, allowed=None):
        """(seconds, cycles) of a call. `allowed`: seconds that are left for this candidate; None: the limit alone.

        Raises weft.Error as Measurer.measure, tune.limit, tune.ended.
        """
        if self._process is None:
            self._started()
        most = min((v for v in (self._limit, allowed) if v is not None), default=None)
        began = time.monotonic()
        import tempfile

        with tempfile.TemporaryDirectory(prefix="weft-tune-") as folder:
            path = os.path.join(folder, "module") if self._remote else None
            try:
                self._pipe.send((str(schedule.trace.as_json()), best, path))
            except (BrokenPipeError, ConnectionError):
                pass  # it has ended: the answer says so
            build = BUILD_LIMIT if most is None else most
            self._answer(build, f"{build:g} seconds to build")
            if self._remote:
                return self._here.timed(weft.load(path), schedule, best)
        left = None if most is None else most - (time.monotonic() - began)
        return self._answer(left, f"{most or 0:g} seconds to build, check and time")

    def beside(self, schedules):
        """As Measurer.beside; the winner and the default schedule have been measured before, so no limit holds."""
        if self._remote:
            return self._here.beside(schedules)
        if self._process is None:
            self._started()
        self._pipe.send((tuple(str(each.trace.as_json()) for each in schedules), None, None))
        return self._answer(None)

    def measure_many(self, schedules, best, allowed=None):
        """Yields for each schedule (seconds, cycles) or the weft.Error: all are built side by side, then measured one by one.

        When building one takes too long, or ends the process, each is measured by itself."""
        if self._remote or len(schedules) == 1:
            yield from (self._alone(each, best, allowed) for each in schedules)
            return
        if self._process is None:
            self._started()
        most = min((v for v in (self._limit, allowed) if v is not None), default=None)
        build = BUILD_LIMIT if most is None else most
        done, end = 0, None if allowed is None else time.monotonic() + allowed
        try:
            traces = [str(each.trace.as_json()) for each in schedules]
            self._pipe.send((traces, best, None))
            self._answer(build, f"{build:g} seconds to build")
            for schedule in schedules:
                try:
                    found = self._answer(most, f"{most or 0:g} seconds to check and time")
                except (weft.Error, RuntimeError) as reason:
                    if isinstance(reason, weft.Error) and self._process is None:
                        raise
                    found = _failed(reason, schedule)
                done += 1
                yield found
        except weft.Error as reason:
            if done:  # the process ended while this one was measured
                yield reason
                done += 1
            for each in schedules[done:]:
                left = None if end is None else end - time.monotonic()
                # Where the time of all is over, what stopped the others is why these were not measured.
                yield reason if left is not None and left <= 0 else self._alone(each, best, left)

    def _alone(self, schedule, best, allowed):
        try:
            return self.measure(schedule, best, allowed)
        except (weft.Error, RuntimeError) as reason:
            return _failed(reason, schedule)

    def stop(self):
        """Ends the candidate that another thread waits for, and the compilers that it has started."""
        process = self._process
        if (
            process is not None and process.returncode is None
        ):  # not waited for: the number is its own
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self):
        """Ends the process."""
        if self._process is not None:
            self.stop()
            self._process.wait()
            self._pipe.close()
        self._process = self._pipe = None


def _failed(reason, schedule):
    """A weft.Error as it is; what else measuring raised as `tune.failed`."""
    if isinstance(reason, weft.Error):
        return reason
    return error(
        "internal",
        "tune.failed",
        f"measuring a candidate raised {reason}",
        notes=["the steps:\n" + schedule.trace.as_python()],
    )


def _plain(reason):
    """An error that can be sent: of its class, with its text and fields, without what it came from."""
    out = type(reason)(str(reason))
    out.__dict__.update({k: v for k, v in reason.__dict__.items() if not k.startswith("_")})
    return out


def _candidate(measurer, pipe, program, target, trace, best, path):
    """Says "built", and then what was measured; a remote device's module is only saved."""
    schedule = replayed(program, target, trace)
    module = weft.build(schedule, target=target)
    if path is not None:
        module.save(path)
    pipe.send("built")
    if path is None:
        pipe.send(measurer.timed(module, schedule, best))


def _built(program, target, trace):
    """(schedule, module), or what was raised."""
    try:
        schedule = replayed(program, target, trace)
        return schedule, weft.build(schedule, target=target)
    except Exception as reason:
        return reason


def _candidates(measurer, pipe, program, target, traces, best):
    """Says "built" when all are, and then what was measured of each."""
    with concurrent.futures.ThreadPoolExecutor(len(traces)) as threads:
        built = list(threads.map(functools.partial(_built, program, target), traces))
    pipe.send("built")
    for each in built:
        try:
            if isinstance(each, Exception):
                raise each
            found = measurer.timed(each[1], each[0], best)
            best = found[0] if best is None else min(best, found[0])
            pipe.send(found)
        except weft.Error as reason:
            pipe.send(_plain(reason))
        except Exception as reason:
            pipe.send(RuntimeError(f"{type(reason).__name__}: {reason}"))


def serve():
    """The other process: builds and measures what it is sent until the pipe is closed."""
    os.set_inheritable(int(sys.argv[1]), False)  # a compiler would keep it open after this process
    pipe = Connection(int(sys.argv[1]))
    try:
        program, name, target, device, seed, threads, remote, arguments = pipe.recv()
        weft.set_threads(threads)
        measurer = None if remote else Measurer(program, name, target, device, seed, arguments)
        pipe.send("ready")
        while True:
            trace, best, path = pipe.recv()
            try:
                if isinstance(trace, tuple):
                    pipe.send(measurer.beside([replayed(program, target, t) for t in trace]))
                elif isinstance(trace, list):
                    _candidates(measurer, pipe, program, target, trace, best)
                else:
                    _candidate(measurer, pipe, program, target, trace, best, path)
            except weft.Error as reason:
                pipe.send(_plain(reason))
            except Exception as reason:
                pipe.send(RuntimeError(f"{type(reason).__name__}: {reason}"))
    except weft.Error as reason:
        pipe.send(_plain(reason))
    except EOFError:
        return
