# SPDX-License-Identifier: Apache-2.0
"""What the transports of host memory share: MPI (mpi.py) and Gloo (gloo.py).

Each call starts the work and returns a function that finishes it. It waits in short steps, so that Ctrl-C and the failure of another rank end it.
"""

from __future__ import annotations

import ctypes
import pickle
import time

import weft

from .failure import LAST_WORDS

REDUCED_AS = {"bool": "uint8", **dict.fromkeys(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"), "float32")}  # fmt: skip


def memory_of(array):
    """The bytes of a compact array, without a copy. The array lives as long as they do."""
    n = array.nbytes
    if n == 0:
        return (ctypes.c_char * 0)()
    start = array.handle.ptr() + array.offset * (n // array.size)
    memory = (ctypes.c_char * n).from_address(start)
    memory.array = array
    return memory


def keep(thing):
    """Until the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def step(begun):
    """Sleeps a little longer the longer one has waited: short collectives are not slowed down."""
    waited = time.perf_counter() - begun
    if waited > 2e-4:
        time.sleep(min(1e-3, waited / 20))


def look_around(job, ranks, begun):
    """What a waiting rank looks at: failures of others, and whether those it waits for are there."""
    job.check()
    now = time.perf_counter()
    if now - begun > LAST_WORDS / 6 and now - job.looked > LAST_WORDS / 6:
        job.looked = now
        job.check_present(ranks, now - begun)


def _bytes_array(data):
    """An array of the host that holds some bytes."""
    array = weft.empty((len(data),), dtype="uint8", device="cpu")
    ctypes.memmove(memory_of(array), data, len(data))
    return array


class Values:
    """Small Python values between ranks, as arrays: the libraries' own functions for objects wait where nothing can end them."""

    def mean(self, done, total, op):
        """The end of a combination: of a sum that done() has put into `total` the mean, where that is asked for."""
        if op != "mean":
            return done

        def wait():
            done()
            into = total
            into /= self.size

        return wait

    def look(self, begun):
        look_around(self.job, self.ranks, begun)

    def gather_values(self, value):
        """Small Python values of all ranks, in order."""
        data = pickle.dumps(value)
        lengths = self._gathered(len(data).to_bytes(8, "little"))
        lengths = [int.from_bytes(part, "little") for part in lengths]
        parts = self._gathered(data.ljust(max(lengths), b"\0"))
        return [pickle.loads(part[:n]) for part, n in zip(parts, lengths)]

    def _gathered(self, data):
        """The bytes of all ranks, as many from each."""
        n, send = len(data), _bytes_array(data)
        recv = weft.empty((n * self.size,), dtype="uint8", device="cpu")
        self.all_gather(send, recv)()
        whole = bytes(memory_of(recv))
        return [whole[at : at + n] for at in range(0, len(whole), n)]

    def exchange(self, value, root=0):
        """A small Python value of `root`, on every rank."""
        data = pickle.dumps(value) if self.rank == root else b""
        length = self._broadcast(len(data).to_bytes(8, "little"), 8, root)
        return pickle.loads(self._broadcast(data, int.from_bytes(length, "little"), root))

    def _broadcast(self, data, n, root):
        send = _bytes_array(data if self.rank == root else bytes(n))
        recv = weft.empty((n,), dtype="uint8", device="cpu")
        self.broadcast(send, recv, root)()
        return bytes(memory_of(recv))
