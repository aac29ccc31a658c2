# SPDX-License-Identifier: Apache-2.0
"""Whether all ranks of a communicator make the same call.

MPI leaves open what happens to ranks whose calls differ: they wait for ever, end with a signal, or get parts of one another's arrays. So every call has a
checksum, of which the ranks find the smallest and the largest in one message of 16 bytes. MPI's own collectives begin when both are equal; combinations of large
arrays, whose messages have a size and a number, begin before that and end after it.
"""

from __future__ import annotations

import hashlib
import struct
import time

from .failure import Failure

_BYTES = 160  # of a text: such a message leaves without waiting for the other side
_TAG = 32767  # the largest that every MPI has
_PATIENCE = 2.0  # seconds in which the others have noticed it too


class Call:
    """A collective that this rank has begun. `request`: of the exchange of checksums, whose result is `found`."""

    __slots__ = ("calls", "text", "own", "found", "request", "equal")

    def __init__(self, calls, text, own):
        self.calls, self.text, self.own, self.equal = calls, text, own, False
        self.found = found = bytearray(16)
        self.request = calls.exchange(own, found)

    def agreed(self):
        """Whether all ranks make this call; False while that is not known. Raises DeviceError `distributed.mismatch` where one makes another."""
        if not self.equal and self.request.Test():
            if self.found != self.own:  # the smallest number, and the largest with its sign turned
                raise self.calls.mismatch(self.text)
            self.equal = True
        return self.equal


class Calls:
    """The calls on a communicator. `communicator`: a copy of it, for checksums alone; `ranks`: numbers in the job."""

    def __init__(self, mpi, communicator, ranks, watch):
        self._mpi, self._communicator, self._ranks, self._watch = mpi, communicator, ranks, watch
        self._known, self._asked = {}, []

    def enter(self, name, detail, dtype, shape):
        """Begins a call. Returns it."""
        key = name, detail, dtype, shape
        known = self._known.get(key)
        if known is None:
            if len(self._known) > 1000:
                self._known.clear()
            text = f"{name}({detail}) of {dtype}{list(shape)}" if dtype else f"{name}({detail})"
            number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")
            known = self._known[key] = text, struct.pack("=qq", number, -number)
        return Call(self, *known)

    def exchange(self, own, found):
        kind = self._mpi.INT64_T
        return self._communicator.Iallreduce([own, 2, kind], [found, 2, kind], self._mpi.MIN)

    def mismatch(self, text):
        """The error of a call that not all ranks make: it names those of all that say theirs in time."""
        comm, byte, me = self._communicator, self._mpi.BYTE, self._communicator.rank
        data = text.encode()[:_BYTES].ljust(_BYTES)
        others = [r for r in range(comm.size) if r != me]
        rooms = [bytearray(_BYTES) for _ in others]
        waiting = [comm.Irecv([b, _BYTES, byte], r, _TAG) for b, r in zip(rooms, others)]
        waiting += [comm.Isend([data, _BYTES, byte], r, _TAG) for r in others]
        self._asked.append((rooms, data, waiting))  # others may answer later
        begun = time.perf_counter()
        while not all([request.Test() for request in waiting]):
            if time.perf_counter() - begun > _PATIENCE:
                break
            time.sleep(1e-3)
        texts = [room.decode(errors="replace").strip("\0 ") or "nothing yet" for room in rooms]
        texts.insert(me, text)
        told = "; ".join(f"rank {r} calls {t}" for r, t in zip(self._ranks, texts))
        return self._watch.fail(Failure(told, "distributed.mismatch"))
