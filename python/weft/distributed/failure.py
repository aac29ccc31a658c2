# SPDX-License-Identifier: Apache-2.0
"""A rank that fails names its error on every other rank, so that none of them waits for ever.

A rank whose program ends with an exception posts its text where the others look: a key of torchrun's store, or a message on a
communicator of its own under MPI. A rank that is killed cannot: the ranks on its host see that its process is gone, and post that. A rank that leaves the job
says so too: others that still wait for it in a collective some seconds later would wait for ever. A thread of every rank looks
twice a second. When it finds something it makes the exception DeviceError `distributed.peer` appear in the main thread and breaks collectives under
way on cards; collectives on the host wait in short steps and look at the same place. The launcher's SIGTERM becomes the same exception, so that every rank
says why it ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback

import weft

from .._errors import error

_PERIOD = 0.5  # seconds between two looks
LAST_WORDS = 3.0  # seconds in which what a rank has sent arrives after it has left


def peer_error(text):
    return error(
        weft.DeviceError,
        "distributed.peer",
        f"another rank of the job failed: {text}",
        help="this rank is ended by the failure of that one; look at its own output first",
    )


class _PeerFailed(weft.DeviceError):
    """Raised in the main thread from outside, where only a class can be given."""

    def __init__(self, *args):
        made = peer_error(Watch.current.failed if Watch.current else "")
        super().__init__(str(made))
        self.__dict__.update(made.__dict__)


def _ended(pid):
    """Whether a process of this host is gone or waits to be buried. False where the system does not say."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in ("Z", "X")
    except FileNotFoundError:
        return os.path.exists("/proc/self/stat")
    except (OSError, IndexError):
        return False


class Watch:
    """Posts this rank's failure and looks for those of others.

    `board` has post(text), look() -> text or None, left(rank) and has_left(rank).

    `peers`: (rank, process) of the other ranks on this host.
    """

    current = None

    def __init__(self, rank, board, broken, peers=()):
        self.rank, self.board, self.broken, self.failed = rank, board, broken, None
        self.peers = list(peers)
        self._stop = threading.Event()
        self._before = sys.excepthook
        sys.excepthook = self._hook
        self._main = threading.main_thread().ident
        self._takes_signal = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        )
        if self._takes_signal:
            signal.signal(signal.SIGTERM, self._ended_by_launcher)
        self._thread = threading.Thread(target=self._look, name="weft-distributed", daemon=True)
        Watch.current = self
        self._thread.start()

    def check(self):
        """Raises DeviceError `distributed.peer` when another rank has failed."""
        if self.failed is not None:
            raise peer_error(self.failed)

    def check_present(self, ranks):
        """For one who has waited for `ranks` in a collective: DeviceError `distributed.peer` when one of them has left the job."""
        self.check()
        for rank in ranks:
            if rank != self.rank and self.board.has_left(rank):
                raise peer_error(
                    f"rank {rank} has left the job: its program has ended, or called shutdown(), before this collective"
                )

    def stop(self):
        if not self._stop.is_set():
            self.board.left(self.rank)
        self._stop.set()
        self._thread.join(timeout=2)
        if sys.excepthook == self._hook:
            sys.excepthook = self._before
        if self._takes_signal and signal.getsignal(signal.SIGTERM) == self._ended_by_launcher:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        Watch.current = None

    def _ended_by_launcher(self, *_):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
        if self.failed is None:
            self.failed = self._gone() or "the launcher ends the job (SIGTERM)"
        self._stop.set()
        raise peer_error(self.failed)

    def _hook(self, kind, value, trace):
        self._stop.set()  # this rank ends by its own error
        if self._takes_signal and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # until it has told the others
        self._before(kind, value, trace)
        if getattr(value, "code", "") != "distributed.peer":
            text = "".join(traceback.format_exception_only(kind, value)).strip()
            self.board.post(f"rank {self.rank}: {text[:2000]}")
        self.board.leave()

    def _gone(self):
        """The text for a rank of this host that was killed, or None."""
        for rank, pid in self.peers:
            if _ended(pid) and not self.board.has_left(rank):
                return f"rank {rank}: its process {pid} is gone without a word (killed?)"
        return None

    def _look(self):
        while not self._stop.wait(_PERIOD):
            gone = self._gone()
            text = self.board.look()
            if text is None and gone is not None:
                text = gone
                self.board.post(gone)
            if text is None or self._stop.is_set():
                continue
            self.failed = text
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._main), ctypes.py_object(_PeerFailed)
            )
            self.broken()
            return


class StoreBoard:
    """Failures under torchrun: a key of its store."""

    def __init__(self, store):
        self.store = store
        # torchrun keeps its store when it starts the ranks again.
        self._root = f"weft/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}"

    def post(self, text):
        self._quietly("set", f"{self._root}/failed", text)

    def look(self):
        try:
            return (
                self.store.get(f"{self._root}/failed").decode()
                if self.store.check([f"{self._root}/failed"])
                else None
            )
        except RuntimeError as problem:  # the store's host is gone, and the job with it
            return f"the launcher's store does not answer ({str(problem)[:200]})"

    def left(self, rank):
        """Says that this rank has left the job in peace."""
        self._quietly("set", f"{self._root}/left/{rank}", "1")

    def has_left(self, rank):
        return bool(self._quietly("check", [f"{self._root}/left/{rank}"]))

    def _quietly(self, name, *args):
        try:
            return getattr(self.store, name)(*args)
        except RuntimeError:  # the store has ended with the job
            return None

    def leave(self):
        """torchrun ends the others when this process has ended."""


class MpiBoard:
    """Failures under MPI: messages on a communicator of their own."""

    FAILED, LEFT = 7, 8

    def __init__(self, communicator):
        self.communicator, self._gone = communicator.Dup(), set()

    def _tell(self, what, tag):
        for rank in range(self.communicator.size):
            if rank != self.communicator.rank:
                self.communicator.isend(what, rank, tag)

    def post(self, text):
        self._tell(text, self.FAILED)

    def look(self):
        while self.communicator.iprobe(tag=self.LEFT):
            self._gone.add(self.communicator.recv(tag=self.LEFT))
        if not self.communicator.iprobe(tag=self.FAILED):
            return None
        return self.communicator.recv(tag=self.FAILED)

    def left(self, rank):
        """Says that this rank has left the job in peace. Its process waits in MPI's end for the others."""
        self._tell(rank, self.LEFT)

    def has_left(self, rank):
        return rank in self._gone

    def leave(self):
        """The others get two looks before MPI ends all."""
        threading.Event().wait(3 * _PERIOD)
        self.communicator.Abort(1)
