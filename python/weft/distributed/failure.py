# SPDX-License-Identifier: Apache-2.0
"""A rank that fails names its error on every other rank, so that none of them waits for ever.

A rank whose program ends with an exception posts its text where the others look: a key of torchrun's store, or a message on a
communicator of its own under MPI. A rank that is killed cannot: the ranks on its host see that its process is gone, and post that. A rank that leaves the job
says so too: others that still wait for it in a collective some seconds later would wait for ever. A thread of every rank looks
twice a second, from the beginning of init() on, and at the launcher as well. When it finds something it makes the exception DeviceError `distributed.*` appear
in the main thread and breaks collectives under
way on cards; collectives on the host wait in short steps and look at the same place. The launcher's SIGTERM becomes the same exception, so that every rank
says why it ends.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import signal
import sys
import threading
import time

import weft

from .._errors import error
from .launcher import Launcher, process_ended

_PERIOD = 0.5  # seconds between two looks
_ABORT = 5  # seconds in which MPI's launcher ends a rank that has asked it to end the job
LAST_WORDS = 3.0  # seconds in which what a rank has sent arrives after it has left


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why the job ends: what is known, and the slug of the error that ranks raise for it."""

    text: str
    code: str = "distributed.peer"

    @staticmethod
    def of_store(problem):
        """The store's host is gone, and the job with it."""
        return Failure(f"its store does not answer ({str(problem)[:200]})", "distributed.launcher")

    def error(self):
        if self.code == "distributed.launcher":
            return error(
                weft.DeviceError,
                "distributed.launcher",
                f"the launcher that has started this rank has ended: {self.text}",
                help="start the job again: ranks end with their launcher",
            )
        if self.code == "distributed.mismatch":
            return error(
                weft.DeviceError,
                "distributed.mismatch",
                f"ranks have fallen out of step: {self.text}",
                help="every rank of a group must call the same collectives in the same order with equal shapes and types",
            )
        return error(
            weft.DeviceError,
            "distributed.peer",
            f"another rank of the job failed: {self.text}",
            help="this rank is ended by the failure of that one; look at its own output first",
        )


_TOLD = ("distributed.peer", "distributed.launcher", "distributed.mismatch")  # others know it


class _Failed(weft.DeviceError):
    """Raised in the main thread from outside, where only a class can be given."""

    failure = Failure("")

    def __init__(self, *args):
        made = self.failure.error()
        super().__init__(str(made))
        self.__dict__.update(made.__dict__)
        self.__suppress_context__ = True  # of whatever the thread was at


_Failed.__name__ = _Failed.__qualname__ = "DeviceError"  # what users and logs see
_Failed.__module__ = weft.DeviceError.__module__


class Watch:
    """Posts this rank's failure and looks for those of others, from the beginning of init() on.

    `board`, once there is one, has post(failure), look() -> Failure or None, left(rank, calls), has_left(rank), calls_of(rank), absent(size) and leave().
    `peers`: {rank: process} of the other ranks on this host; until they have introduced themselves, those that the launcher has started here.
    """

    late = None  # what looks at collectives on cards that take long
    _leaving = False

    def __init__(self, launch, broken):
        self.rank, self.size, self.broken, self.failed = launch.rank, launch.size, broken, None
        self.launcher, self.board, self.peers, self.met = Launcher(launch), None, {}, False
        self._one_host = launch.local_size == launch.size
        self._process = os.getpid()  # a fork of it has this object too, and no part in the job
        self._stop = threading.Event()
        self._first = threading.Lock()  # taken by whoever finds the failure
        self._seen_to_leave = {}  # since when this rank knows of it
        self._asks, self._told = threading.Lock(), None  # who asks the board, and what it has told
        self._before = sys.excepthook
        sys.excepthook = self._hook
        self._main = threading.main_thread().ident
        self._takes_signal = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        )
        if self._takes_signal:
            signal.signal(signal.SIGTERM, self._ended_by_launcher)
        self._see_peers()
        self._thread = threading.Thread(target=self._look, name="weft-distributed", daemon=True)
        self._thread.start()

    def introduced(self, peers):
        """From now on all ranks of the job are there, and `peers` are those on this host."""
        self.peers, self.met = dict(peers), True

    def check(self):
        """Raises DeviceError `distributed.*` when another rank, or the launcher, has failed."""
        if self.failed is not None:
            try:
                _arrivals()
            except _Failed:  # was on its way to this thread, which raises the error itself
                pass
            raise self.failed.error()

    def check_present(self, ranks, waited=None):
        """For one who waits for `ranks` in a collective: DeviceError `distributed.peer` when one of them has left the job. `waited`: for so many seconds; what a
        rank has sent before it left may still be on its way. None: nothing more comes."""
        self.check()
        now = time.monotonic()
        for rank in ranks:
            if rank == self.rank or not self.board.has_left(rank):
                continue
            seen = now - self._seen_to_leave.setdefault(rank, now)
            if waited is None or min(seen, waited) >= LAST_WORDS:
                raise Failure(
                    f"rank {rank} has left the job: its program has ended, or called shutdown(), before this collective"
                ).error()

    def fail(self, failure):
        """The error of a failure that this rank has found in its own thread; the others are told."""
        if self._claim(failure):
            self.board.post(failure)
        return failure.error()

    def _claim(self, failure):
        """Whether this is the first failure that is found. No other is raised from outside after it."""
        first = self._first.acquire(blocking=False)
        if first:
            self.failed = failure
        while self.failed is None:  # the watch's thread is about to set it
            time.sleep(1e-3)
        try:
            _arrivals()
        except _Failed:
            pass
        return first

    def run(self, call, look=lambda: None):
        """call() on a thread of its own, for calls that wait where nothing can end them: this thread waits in short steps, which a failure or look() ends."""
        results, problems = [], []

        def work():
            try:
                results.append(call())
            except BaseException as problem:
                problems.append(problem)

        thread = threading.Thread(target=work, name="weft-distributed-call", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.1)
            self.check()
            if thread.is_alive():
                look()
        if problems:
            raise problems[0]
        return results[0]

    def in_peace(self):
        """Whether nothing has failed, and this process is the rank."""
        return os.getpid() == self._process and self.failed is None and not self._stop.is_set()

    def stop(self, left=True):
        """Ends the watch. `left`: this rank leaves the job in peace."""
        if os.getpid() != self._process:
            return
        self._leaving = True
        ended_by = getattr(sys, "last_value", None)  # not the user's at a prompt
        if ended_by is not None and not hasattr(sys, "ps1") and not self._stop.is_set():
            self._say_end(type(ended_by), ended_by)  # another hook than this one's was called
        if left and not self._stop.is_set() and self.board is not None:
            self.board.left(self.rank, {} if self.late is None else self.late.counts())
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=2)
        if sys.excepthook == self._hook:
            sys.excepthook = self._before
        if self._takes_signal and signal.getsignal(signal.SIGTERM) == self._ended_by_launcher:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _ended_by_launcher(self, *_):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
        if os.getpid() != self._process or self._leaving:  # all is said
            os.kill(os.getpid(), signal.SIGTERM)
        if self.failed is None:
            self._claim(self._last_look())
        self._stop.set()
        raise self.failed.error()

    def _last_look(self):
        """What is known when the launcher ends this rank, which may not have looked since another one failed. The launcher may have ended
        others before: what a rank has said of itself comes first."""
        told = self._posted()
        if told is not None and told.code != "distributed.launcher":
            return told
        gone = self.gone()
        if told is not None and gone is None:
            return told
        return Failure(gone or self._ended_early() or "the launcher ends the job (SIGTERM)")

    def _posted(self):
        """What another rank has posted, for the watch's thread and for a signal: the board tells it once."""
        if self.board is None:
            return None
        if self._asks.acquire(timeout=_PERIOD):  # no longer: the launcher does not wait for ever
            try:
                self._told = self._told or self.board.look()
            finally:
                self._asks.release()
        return self._told

    def _ended_early(self):
        """What is known when the launcher ends a job whose ranks have not all met."""
        if self.met:
            return None
        absent = self.absent()
        who = f": {absent}" if absent else ""
        return f"the launcher ends the job (SIGTERM) before its ranks have met in init(){who}"

    def absent(self):
        """The text for ranks that nothing was seen of, or None."""
        missing = self.board.absent(self.size) if self.board is not None else None
        if missing is None and self._one_host:
            missing = [r for r in range(self.size) if r != self.rank and r not in self.peers]
        return f"nothing was seen of rank {', '.join(map(str, missing))}" if missing else None

    def _hook(self, kind, value, trace):
        if os.getpid() != self._process:
            self._before(kind, value, trace)
            return
        self._stop.set()  # this rank ends by its own error
        if self._takes_signal and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # until it has told the others
        self._before(kind, value, trace)
        self._say_end(kind, value)

    def _say_end(self, kind, value):
        """Tells the others of the exception that ends this rank."""
        self._stop.set()
        if self.board is None:
            return
        if getattr(value, "code", "") not in _TOLD:
            import traceback

            text = "".join(traceback.format_exception_only(kind, value)).strip()
            self.board.post(Failure(f"rank {self.rank}: {text[:2000]}"))
        self.board.leave()

    def gone(self):
        """The text for the ranks of this host that were killed, or None. Which of several ended first is not known: all are named."""
        gone = [
            f"rank {rank}: its process {pid} is gone without a word (killed?)"
            for rank, pid in sorted(self.peers.items())
            if process_ended(pid) and not (self.board is not None and self.board.has_left(rank))
        ]
        return "; ".join(gone) or None

    def let_others_look(self):
        """Before there is a board, others see no more of a rank than its process: one that ends by another's failure stays for two of their looks."""
        if self.failed is None or self.board is not None:
            return
        until = time.monotonic() + 3 * _PERIOD
        while time.monotonic() < until and not all(map(process_ended, self.peers.values())):
            time.sleep(0.05)

    def _see_peers(self):
        if not self.met:
            found = self.launcher.ranks()
            found.pop(self.rank, None)
            if not self.met:
                self.peers.update(found)

    def _found(self):
        """What has failed, or None. What others cannot know is posted."""
        told = self.launcher.gone()
        if told is not None:
            return Failure(told, "distributed.launcher")
        self._see_peers()
        gone, told = self.gone(), self._posted()
        if told is not None:
            return told
        found = Failure(gone) if gone is not None else None
        if self.board is not None:
            if found is None and self.late is not None:
                found = self.late.look()
            if found is not None:
                self.board.post(found)
        return found

    def _look(self):
        while not self._stop.wait(_PERIOD):
            failure = self._found()
            if failure is None or self._stop.is_set():
                continue
            if self._first.acquire(blocking=False):
                _Failed.failure = failure
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._main), ctypes.py_object(_Failed)
                )
                self.failed = failure  # after the exception is on its way: check() catches it
                self.broken()
            return


def _end_fork_at_once():
    """A fork ends by SIGTERM as other processes do: a handler in Python waits for a call that has just begun to sleep."""
    if isinstance(getattr(signal.getsignal(signal.SIGTERM), "__self__", None), Watch):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_fork_at_once)


def _arrivals():
    """Where an exception that another thread has sent is raised. It is not taken back by PyThreadState_SetAsyncExc(thread, None): CPython goes
    on looking for it at each call and turn of a loop, and functions that are traced then never begin (3.11)."""
    for _ in range(2):
        pass


class StoreBoard:
    """Failures under torchrun: keys of its store."""

    _jobs = 0  # that this process has left

    def __init__(self, store, rank):
        self.store = store
        # torchrun keeps its store when it starts the ranks again, and a job its processes when they leave it and join again.
        self._root = f"weft/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}.{self._jobs}"
        self._rank = rank
        self._set(f"here/{rank}", "1")

    def _set(self, name, text):
        self._quietly("set", f"{self._root}/{name}", text)
        self._quietly("add", f"{self._root}/{name}/set", 1)  # what `_is_set` looks at

    def _is_set(self, name):
        """None where the store does not say. PyTorch 1.13's stores tell nothing of absent keys without waiting for them, but of numbers."""
        number = self._quietly("add", f"{self._root}/{name}/set", 0)
        return None if number is None else number > 0

    def post(self, failure):
        self._set("failed", json.dumps([failure.text, failure.code]))

    def look(self):
        try:
            if self.store.add(f"{self._root}/failed/set", 0) == 0:
                return None
            return Failure(*json.loads(self.store.get(f"{self._root}/failed")))
        except RuntimeError as problem:
            return Failure.of_store(problem)

    def name(self, name):
        """A key of the store that belongs to this job alone."""
        return f"{self._root}/{name}"

    def add(self, name, number):
        """The sum under a name after `number` is added. Raises RuntimeError where the store is gone."""
        return self.store.add(self.name(name), number)

    def absent(self, size):
        """Ranks that have not come to init(); None where the store does not say."""
        there = [self._is_set(f"here/{r}") for r in range(size)]
        return None if None in there else [r for r in range(size) if not there[r]]

    def left(self, rank, calls):
        """Says that this rank has left the job in peace, after so many calls of each group."""
        StoreBoard._jobs += 1
        self._set(f"left/{rank}", json.dumps(calls))

    def calls_of(self, rank):
        """{group's name: number of calls} of a rank that has left."""
        told = self._quietly("get", f"{self._root}/left/{rank}") if self.has_left(rank) else None
        return json.loads(told) if told else {}

    def has_left(self, rank):
        return bool(self._is_set(f"left/{rank}"))

    def _quietly(self, name, *args):
        try:
            return getattr(self.store, name)(*args)
        except RuntimeError:  # the store has ended with the job
            return None

    def say(self, text, asks):
        """What this rank tells of its calls (late.py); `asks`: the others should, too."""
        self._set(f"calls/{self._rank}", text)
        if asks:
            self._set("asked", "1")

    def asked(self):
        return bool(self._is_set("asked"))

    def said(self, rank):
        """What that rank has told last, or None."""
        name = f"calls/{rank}"
        told = self._quietly("get", f"{self._root}/{name}") if self._is_set(name) else None
        return told.decode() if told else None

    def leave(self):
        """torchrun ends the others when this process has ended."""


class MpiBoard:
    """Failures under MPI: messages on a communicator of their own."""

    FAILED, LEFT, CALLS = 7, 8, 9

    def __init__(self, communicator):
        self.communicator, self._gone = communicator.Dup(), {}
        self._said, self._asked = {}, False
        self._sent = []  # with what they send, which a long message is read from later

    def _tell(self, what, tag):
        self._sent = [request for request in self._sent if not request.Test()]
        for rank in range(self.communicator.size):
            if rank != self.communicator.rank:
                self._sent.append(self.communicator.isend(what, rank, tag))

    def post(self, failure):
        self._tell((failure.text, failure.code), self.FAILED)

    def look(self):
        while self.communicator.iprobe(tag=self.LEFT):
            rank, calls = self.communicator.recv(tag=self.LEFT)
            self._gone[rank] = calls
        if not self.communicator.iprobe(tag=self.FAILED):
            return None
        return Failure(*self.communicator.recv(tag=self.FAILED))

    def hear_out(self, gone):
        """Waits until the others have left too. MPI's end waits as well, but warns of messages that nobody has taken, and Open MPI 4.1's mpirun often
        waits for ever, or crashes, where a rank ends the job while another one is in there. When a rank has failed, or one is gone(), the job's end is waited for."""
        failed = None
        while len(self._gone) < self.communicator.size - 1:
            failed = failed or ((self.look() or gone()) and time.monotonic())
            if failed and time.monotonic() > failed + _ABORT + LAST_WORDS:
                return  # nobody has ended it
            time.sleep(2e-3)

    def absent(self, size):
        """MPI begins when all ranks are there."""
        return []

    def left(self, rank, calls):
        """Says that this rank has left the job in peace, after so many calls of each group. Its process waits in MPI's end for the others."""
        self._tell((rank, calls), self.LEFT)

    def calls_of(self, rank):
        """{group's name: number of calls} of a rank that has left."""
        return self._gone.get(rank, {})

    def has_left(self, rank):
        return rank in self._gone

    def say(self, text, asks):
        """What this rank tells of its calls (late.py); `asks`: the others should, too."""
        self._tell((self.communicator.rank, text, asks), self.CALLS)

    def asked(self):
        self._listen()
        return self._asked

    def said(self, rank):
        """What that rank has told last, or None."""
        self._listen()
        return self._said.get(rank)

    def _listen(self):
        while self.communicator.iprobe(tag=self.CALLS):
            who, text, asks = self.communicator.recv(tag=self.CALLS)
            self._said[who], self._asked = text, self._asked or asks

    def leave(self):
        """The others get two looks before MPI ends all."""
        threading.Event().wait(3 * _PERIOD)
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "alarm"):
            # MPICH's Abort may leave this process waiting where its process manager does not end it.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_ABORT)
        self.communicator.Abort(1)
