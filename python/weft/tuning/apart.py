# SPDX-License-Identifier: Apache-2.0
"""Measuring in a process of its own, which can be ended: a limit for one candidate.

A kernel in machine code cannot be interrupted, and one that a schedule made slow may run for hours. The process is started
once and kept; when a candidate takes longer than the limit, or ends the process, the next candidate gets a new one.
"""

import os
import subprocess
import sys
from multiprocessing.connection import Connection
from multiprocessing.connection import Pipe

import weft
from weft._errors import error

from .measure import Measurer


class Apart:
    """As Measurer, in another process: measure(schedule, best) ends it after `limit` seconds."""

    def __init__(self, program, name, target, device, seed, limit):
        if device is not None and not isinstance(device, str):
            device = device.name
        self._work = program, name, target, device, seed, weft.get_threads()
        self._limit, self._name = limit, name
        self.device = weft.device(device or target)
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

    def _answer(self, limit):
        """What the process says. Raises its error, tune.limit or tune.ended."""
        try:
            if limit is not None and not self._pipe.poll(limit):
                self.close()
                raise error(
                    "value",
                    "tune.limit",
                    f'a candidate for "{self._name}" took more than {limit:g} seconds to build, check and time',
                )
            said = self._pipe.recv()
        except (EOFError, ConnectionError) as gone:
            code = self._process.wait()
            self.close()
            raise error(
                "internal",
                "tune.ended",
                f'a candidate for "{self._name}" ended the process that measured it, with status {code}',
            ) from gone
        if isinstance(said, weft.Error):
            raise said
        return said

    def measure(self, schedule, best):
        """(seconds, cycles) of a call. Raises weft.Error as Measurer.measure, tune.limit, tune.ended."""
        if self._process is None:
            self._started()
        self._pipe.send((str(schedule.trace.as_json()), best))
        return self._answer(self._limit)

    def close(self):
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._pipe.close()
        self._process = self._pipe = None


def _plain(reason):
    """An error that can be sent: of its class, with its code and text."""
    out = type(reason)(str(reason))
    out.code = reason.code
    return out


def serve():
    """The other process: measures what it is sent until the pipe is closed."""
    pipe = Connection(int(sys.argv[1]))
    program, name, target, device, seed, threads = pipe.recv()
    weft.set_threads(threads)
    try:
        measurer = Measurer(program, name, target, device, seed)
        pipe.send("ready")
        while True:
            trace, best = pipe.recv()
            try:
                pipe.send(measurer.measure(weft.Schedule.replay(program, trace), best))
            except weft.Error as reason:
                pipe.send(_plain(reason))
    except weft.Error as reason:
        pipe.send(_plain(reason))
    except EOFError:
        return
