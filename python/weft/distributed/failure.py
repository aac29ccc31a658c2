# SPDX-License-Identifier: Apache-2.0
"""A rank that fails names its error on every other rank, so that none of them waits for ever.

A rank whose program ends with an exception posts its text where the others look: a key of torchrun's store, or a message on a
communicator of its own under MPI. A thread of every rank looks there twice a second. When it finds something it makes the exception
DeviceError `distributed.peer` appear in the main thread and breaks collectives under way on cards; collectives on the host
wait in short steps and look at the same place.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import traceback

import weft

from .._errors import error

_PERIOD = 0.5  # seconds between two looks


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


class Watch:
    """Posts this rank's failure and looks for those of others. `board` has post(text) and look() -> text or None."""

    current = None

    def __init__(self, rank, board, broken):
        self.rank, self.board, self.broken, self.failed = rank, board, broken, None
        self._stop = threading.Event()
        self._before = sys.excepthook
        sys.excepthook = self._hook
        self._main = threading.main_thread().ident
        self._thread = threading.Thread(target=self._look, name="weft-distributed", daemon=True)
        Watch.current = self
        self._thread.start()

    def check(self):
        """Raises DeviceError `distributed.peer` when another rank has failed."""
        if self.failed is not None:
            raise peer_error(self.failed)

    def stop(self):
        self._stop.set()
        self._thread.join(timeout=2)
        if sys.excepthook == self._hook:
            sys.excepthook = self._before
        Watch.current = None

    def _hook(self, kind, value, trace):
        self._stop.set()  # this rank ends by its own error
        self._before(kind, value, trace)
        if getattr(value, "code", "") != "distributed.peer":
            text = "".join(traceback.format_exception_only(kind, value)).strip()
            self.board.post(f"rank {self.rank}: {text[:2000]}")
        self.board.leave()

    def _look(self):
        while not self._stop.wait(_PERIOD):
            text = self.board.look()
            if text is None:
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

    def post(self, text):
        self.store.set("weft/failed", text)

    def look(self):
        try:
            return (
                self.store.get("weft/failed").decode()
                if self.store.check(["weft/failed"])
                else None
            )
        except RuntimeError as problem:  # the store's host is gone, and the job with it
            return f"the launcher's store does not answer ({str(problem)[:200]})"

    def leave(self):
        """torchrun ends the others when this process has ended."""


class MpiBoard:
    """Failures under MPI: messages on a communicator of their own."""

    TAG = 7

    def __init__(self, communicator):
        self.communicator = communicator.Dup()

    def post(self, text):
        for rank in range(self.communicator.size):
            if rank != self.communicator.rank:
                self.communicator.isend(text, rank, self.TAG)

    def look(self):
        if not self.communicator.iprobe(tag=self.TAG):
            return None
        return self.communicator.recv(tag=self.TAG)

    def leave(self):
        """The others get two looks before MPI ends all."""
        threading.Event().wait(3 * _PERIOD)
        self.communicator.Abort(1)
