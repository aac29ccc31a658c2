# SPDX-License-Identifier: Apache-2.0
"""Collectives of arrays in host memory through MPI (mpi4py)."""

from __future__ import annotations

import collections
import ctypes
import time

import weft

from .._errors import error
from .calls import Calls
from .failure import LAST_WORDS, Failure
from .host import REDUCED_AS, Values, keep, look_around, memory_of, step
from .pieces import LEAST_BYTES, Combination

# Open MPI 4.1 adds these with saturation, where sums wrap around elsewhere.
_NARROW = ("int8", "uint8", "int16", "uint16")
_MOST = 2**31 - 1  # bytes that MPI takes as a number
_OPEN = 64  # messages and collectives under way, before those that have ended are looked for


class _Collective:
    """A collective that begins when all ranks agree: `start` gives what tells whether it is done."""

    __slots__ = ("call", "_start", "_done")

    def __init__(self, call, start):
        self.call, self._start, self._done = call, start, None

    def begin(self):
        self._done = self._start()

    def done(self):
        return self._done is not None and self._done()


class _Receive:
    """A message of the program, taken when it is there: MPI writes beyond an array that is too small for it."""

    __slots__ = ("_transport", "_array", "_peer", "_request")

    def __init__(self, transport, array, peer):
        self._transport, self._array, self._peer, self._request = transport, array, peer, None

    def begun(self):
        own, status = self._transport, self._transport.mpi.Status()
        message = own.comm.Improbe(self._peer, 0, status)
        if message is None:
            return False
        found, peer = status.Get_elements(own.mpi.BYTE), own.ranks[self._peer]
        if found != self._array.nbytes:
            text = f"rank {own.ranks[own.rank]} receives {self._array.nbytes} bytes, rank {peer} sends it {found}"
            raise own.job.watch.fail(Failure(text, "distributed.mismatch"))
        self._request = message.Irecv(own._raw(self._array))
        return True

    def done(self):
        return self._request is not None and self._request.Test()


class Mpi(Values):
    """A communicator of mpi4py. Every rank of it makes one."""

    name = "mpi"

    def __init__(self, communicator, ranks, job):
        from mpi4py import MPI

        self.mpi, self.comm, self.ranks, self.job = MPI, communicator, ranks, job
        self.rank, self.size = communicator.rank, communicator.size
        self._types = {
            "int8": MPI.INT8_T, "uint8": MPI.UINT8_T, "int16": MPI.INT16_T, "uint16": MPI.UINT16_T, "int32": MPI.INT32_T,
            "uint32": MPI.UINT32_T, "int64": MPI.INT64_T, "uint64": MPI.UINT64_T, "float32": MPI.FLOAT, "float64": MPI.DOUBLE,
            "complex64": MPI.C_FLOAT_COMPLEX, "complex128": MPI.C_DOUBLE_COMPLEX,
        }  # fmt: skip
        self._ops = {"sum": MPI.SUM, "mean": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN}  # fmt: skip
        self._combinations, self._under_way, self._arrivals = 0, [], 0
        self._calls = Calls(MPI, communicator.Dup(), ranks, job.watch)
        self._waiting = collections.deque()  # calls in their order, until all ranks agree
        self._receiving = {}  # by rank: what is expected of it, in order
        self._large_types = {}
        self._open = {}  # what is under way, waited for or not, with its arrays: MPI reads and writes them
        job.transports.append(self)

    def several(self, nbytes):
        """Whether arrays of so many bytes together are combined where they lie."""
        return nbytes >= self.size * LEAST_BYTES

    def reduces(self, dtype):
        """The type in which arrays of `dtype` are combined; floats of 8 and 16 bits are rounded once, at the end."""
        return REDUCED_AS.get(dtype, dtype)

    def _by_messages(self, send):
        """Whether an array is combined by messages between two ranks and weft's own arithmetic, not by MPI's."""
        return self.several(send.nbytes) or (send.nbytes > 0 and str(send.dtype) in _NARROW)

    def arrived(self, requests):
        there = self.mpi.Request.Testall(requests)
        self._arrivals += there
        return there

    def _progress(self):
        """Begins collectives that all ranks have come to, in the same order everywhere, and takes messages that are there. The caller has the turn: threads may
        call in groups of their own, and each takes on what all have begun."""
        if not (self._waiting or self._receiving):
            return
        try:
            while self._waiting and self._waiting[0].call.agreed():
                self._waiting.popleft().begin()
            for peer, queue in list(self._receiving.items()):
                while queue and queue[0].begun():
                    queue.popleft()
                if not queue:
                    del self._receiving[peer]
        except self.mpi.Exception as problem:
            raise self._failed(problem) from None

    def _until(self, done):
        """Waits until done() holds. All that was begun goes on meanwhile, in every group: ranks may finish it in another order."""
        try:
            with self.job.turn:
                self._progress()
                if done():
                    return
            begun, arrivals = time.perf_counter(), self._arrivals
            while True:
                with self.job.turn:
                    for transport in self.job.transports:
                        transport._progress()
                        if transport._under_way:
                            transport._under_way = [c for c in transport._under_way if not c.advance()]  # fmt: skip
                    if done():
                        return
                look_around(self.job, self.ranks, begun)
                if self._arrivals != arrivals:  # what comes next comes soon
                    begun, arrivals = time.perf_counter(), self._arrivals
                step(begun)
        except self.mpi.Exception as problem:
            raise self._failed(problem) from None

    def _finish(self, done, *held):
        if len(self._open) >= _OPEN:  # nobody waits for some of them
            with self.job.turn:
                under_way = list(self._open.items())
                ended = self._start(lambda: [k for k, v in under_way if v[0]()])
            for key in ended:
                self._open.pop(key, None)
        key = object()
        self._open[key] = done, held

        def wait():
            self._until(done)
            self._open.pop(key, None)  # after a failure it stays: MPI may still write
            return held

        return wait

    def _collective(self, name, detail, dtype, shape, start, *held):
        """start() begins it, as soon as all ranks agree, and gives what tells whether it is done."""
        with self.job.turn:
            own = _Collective(self._calls.enter(name, detail, dtype, shape), start)
            self._waiting.append(own)
            self._progress()
        return self._finish(own.done, *held)

    def _own(self, name, detail, send, recv, start):
        """One of MPI's own collectives: start() gives its request."""
        dtype, shape = str(send.dtype), tuple(send.shape)
        return self._collective(name, detail, dtype, shape, lambda: self._start(start).Test, send, recv)  # fmt: skip

    def _failed(self, problem):
        return error(
            weft.DeviceError,
            "distributed.mpi",
            f"MPI reports on rank {self.rank}: {problem.Get_error_string()}",
            help="all ranks must call the same collective with equal shapes and types: WEFT_DISTRIBUTED_DEBUG=1 compares them",
        )

    def _typed(self, array):
        return [memory_of(array), array.size, self._types[str(array.dtype)]]

    def _raw(self, array, recv=None):
        """The bytes of an array; with `recv` room for as many from each rank."""
        return self._bytes(memory_of(array if recv is None else recv), array.nbytes)

    def _bytes(self, memory, n):
        return [memory, n, self.mpi.BYTE] if n <= _MOST else [memory, 1, self._large(n)]

    def _large(self, n):
        """MPI's type of n bytes, whose number an int does not hold."""
        made = self._large_types.get(n)
        if made is None:
            byte, step = self.mpi.BYTE, max(1, min(1 << 20, _MOST))
            block = byte.Create_contiguous(step)
            blocks = block.Create_contiguous(n // step)
            made = self.mpi.Datatype.Create_struct([1, n % step], [0, n - n % step], [blocks, byte])
            self._large_types[n] = made.Commit()
            block.Free()
            blocks.Free()
        return made

    def _start(self, f):
        try:
            return f()
        except self.mpi.Exception as problem:
            raise self._failed(problem) from None

    def all_reduce(self, send, recv, op, overlap=False):
        if self._by_messages(send):
            return self._combination("all_reduce", [send], [recv], op)
        whole, into, how = self._typed(send), self._typed(recv), self._ops[op]
        start = lambda: self.comm.Iallreduce(whole, into, how)  # noqa: E731
        return self.mean(self._own("all_reduce", op, send, recv, start), recv, op)

    def all_reduce_several(self, send, recv, op):
        """Each of `send` into the array of `recv` in its place."""
        return self._combination("all_reduce", send, recv, op)

    def _combination(self, name, send, recv, op):
        shapes = tuple(send[0].shape) if len(send) == 1 else tuple(tuple(a.shape) for a in send)
        # Numbers of their own keep messages apart from those of other combinations; send and recv have 0.
        tag = 1 + 2 * (self._combinations % 16000)
        self._combinations += 1
        combination = Combination(self, send, recv, op, tag, name == "all_reduce")

        def start():
            combination.begin()
            self._under_way.append(combination)  # after a failure it stays there, with its arrays

            def done():
                if not combination.advance():
                    return False
                self._under_way = [c for c in self._under_way if c is not combination]
                return True

            return done

        return self._collective(name, op, str(send[0].dtype), shapes, start, combination)

    def reduce_scatter(self, send, recv, op, overlap=False):
        if self._by_messages(send):
            return self._combination("reduce_scatter", [send], [recv], op)
        whole, into, counts = self._typed(send), self._typed(recv), [recv.size] * self.size
        start = lambda: self.comm.Ireduce_scatter(whole, into, counts, self._ops[op])  # noqa: E731
        return self.mean(self._own("reduce_scatter", op, send, recv, start), recv, op)

    def all_gather(self, send, recv, overlap=False):
        own, whole = self._raw(send), self._raw(send, recv)
        start = lambda: self.comm.Iallgather(own, whole)  # noqa: E731
        return self._own("all_gather", "", send, recv, start)

    def broadcast(self, send, recv, root, overlap=False):
        if self.rank == root:
            ctypes.memmove(memory_of(recv), memory_of(send), send.nbytes)
        into = self._raw(recv)
        start = lambda: self.comm.Ibcast(into, root)  # noqa: E731
        return self._own("broadcast", f"root={root}", send, recv, start)

    def all_to_all(self, send, recv, overlap=False):
        piece = send.nbytes // self.size
        own, into = (self._bytes(memory_of(a), piece) for a in (send, recv))
        start = lambda: self.comm.Ialltoall(own, into)  # noqa: E731
        return self._own("all_to_all", "", send, recv, start)

    def barrier(self):
        self._finish(self._calls.enter("barrier", "", "", ()).agreed)()

    def post(self, array, peer, tag):
        return self._start(lambda: self.comm.Isend(self._raw(array), peer, tag))

    def expect(self, array, peer, tag):
        return self._start(lambda: self.comm.Irecv(self._raw(array), peer, tag))

    def send(self, array, peer, overlap=False):
        return self._finish(self.post(array, peer, 0).Test, array)

    def recv(self, array, peer, overlap=False):
        own = _Receive(self, array, peer)
        with self.job.turn:
            self._receiving.setdefault(peer, collections.deque()).append(own)
            self._progress()
        return self._finish(own.done, array)

    def split(self, ranks):
        if self.rank not in ranks:
            return None
        made = self.comm.Create_group(self.comm.group.Incl(ranks))
        return Mpi(made, [self.ranks[r] for r in ranks], self.job)

    def abort(self):
        """A failed job is ended by MPI."""

    def settle(self):
        """Ends what nobody has waited for, such as messages to ranks that are about to receive them; for some seconds."""
        until = time.perf_counter() + LAST_WORDS
        self._until(lambda: time.perf_counter() > until or all(done() for done, _ in self._open.values()))  # fmt: skip

    def close(self):
        """Communicators are freed by MPI at the end. What a failed job has begun, or nobody has come for, stays with its arrays: MPI still reads and writes them."""
        if self.job.watch.failed is not None or not all(done() for done, _ in self._open.values()):
            keep(self)
