# SPDX-License-Identifier: Apache-2.0
"""Collectives of arrays in host memory: MPI through mpi4py, or Gloo through torch.distributed under torchrun.

Each call starts the work and returns a function that finishes it. It waits in short steps, so that Ctrl-C and the failure of another rank end it.
"""

from __future__ import annotations

import collections
import ctypes
import datetime
import pickle
import threading
import time

import weft

from .._errors import error
from .calls import Calls
from .failure import LAST_WORDS, Failure
from .pieces import LEAST_BYTES, Combination

_PARTS = {"complex64": "float32", "complex128": "float64"}  # Gloo sums complex numbers by parts
# Open MPI 4.1 adds these with saturation, where sums wrap around elsewhere.
_NARROW = ("int8", "uint8", "int16", "uint16")
_REDUCED_AS = {"bool": "uint8", **dict.fromkeys(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"), "float32")}  # fmt: skip


def _memory(array):
    """The bytes of a compact array, without a copy."""
    n = array.nbytes
    if n == 0:
        return (ctypes.c_char * 0)()
    start = array.handle.ptr() + array.offset * (n // array.size)
    return (ctypes.c_char * n).from_address(start)


def _step(begun):
    """Sleeps a little longer the longer one has waited: short collectives are not slowed down."""
    waited = time.perf_counter() - begun
    if waited > 2e-4:
        time.sleep(min(1e-3, waited / 20))


def _look(job, ranks, begun):
    """What a waiting rank looks at: failures of others, and after some seconds whether those it waits for are there."""
    job.check()
    now = time.perf_counter()
    if now - begun > LAST_WORDS and now - job.looked > LAST_WORDS / 6:
        job.looked = now
        job.check_present(ranks)


def _bytes_array(data):
    """An array of the host that holds some bytes."""
    array = weft.empty((len(data),), dtype="uint8", device="cpu")
    ctypes.memmove(_memory(array), data, len(data))
    return array


class _Values:
    """Small Python values between ranks, as arrays: the libraries' own functions for objects wait where nothing can end them."""

    def look(self, begun):
        _look(self.job, self.ranks, begun)

    def barrier(self):
        """Returns when every rank has come here."""
        one = weft.zeros((1,), dtype=weft.float32)
        self.all_reduce(one, weft.empty((1,), dtype=weft.float32), "sum")()

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
        whole = bytes(_memory(recv))
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
        return bytes(_memory(recv))


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
        found, peer = status.Get_count(own.mpi.BYTE), own.ranks[self._peer]
        if found != self._array.nbytes:
            text = f"rank {own.ranks[own.rank]} receives {self._array.nbytes} bytes, rank {peer} sends it {found}"
            raise own.job.watch.fail(Failure(text, "distributed.mismatch"))
        self._request = message.Irecv(own._raw(self._array))
        return True

    def done(self):
        return self._request is not None and self._request.Test()


class Mpi(_Values):
    """A communicator of mpi4py. Every rank of it makes one."""

    name, means = "mpi", True

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
        self._broken = []  # arrays of collectives that failed: MPI may still write into them
        job.transports.append(self)

    def several(self, nbytes):
        """Whether arrays of so many bytes together are combined where they lie."""
        return nbytes >= self.size * LEAST_BYTES

    def reduces(self, dtype):
        """The type in which arrays of `dtype` are combined; floats of 8 and 16 bits are rounded once, at the end."""
        return _REDUCED_AS.get(dtype, dtype)

    def _by_messages(self, send):
        """Whether an array is combined by messages between two ranks and weft's own arithmetic, not by MPI's."""
        return self.several(send.nbytes) or (send.nbytes > 0 and str(send.dtype) in _NARROW)

    def arrived(self, requests):
        there = self.mpi.Request.Testall(requests)
        self._arrivals += there
        return there

    def _progress(self):
        """Begins collectives that all ranks have come to, in the same order everywhere, and takes messages that are there."""
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
            self._progress()
            if done():
                return
            begun, arrivals = time.perf_counter(), self._arrivals
            while True:
                for transport in self.job.transports:
                    transport._progress()
                    if transport._under_way:
                        transport._under_way = [c for c in transport._under_way if not c.advance()]
                if done():
                    return
                _look(self.job, self.ranks, begun)
                if self._arrivals != arrivals:  # what comes next comes soon
                    begun, arrivals = time.perf_counter(), self._arrivals
                _step(begun)
        except self.mpi.Exception as problem:
            raise self._failed(problem) from None

    def _finish(self, done, *held):
        def wait():
            try:
                self._until(done)
            except BaseException:
                self._broken.append((done, held))
                raise
            return held

        return wait

    def _collective(self, name, detail, dtype, shape, start, *held):
        """start() begins it, as soon as all ranks agree, and gives what tells whether it is done."""
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
        return [_memory(array), array.size, self._types[str(array.dtype)]]

    def _raw(self, array):
        return [_memory(array), array.nbytes, self.mpi.BYTE]

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
        return self._mean(self._own("all_reduce", op, send, recv, start), recv, op)

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

    def _mean(self, done, recv, op):
        if op != "mean":
            return done

        def wait():
            done()
            into = recv
            into /= self.size

        return wait

    def reduce_scatter(self, send, recv, op, overlap=False):
        if self._by_messages(send):
            return self._combination("reduce_scatter", [send], [recv], op)
        whole, into, counts = self._typed(send), self._typed(recv), [recv.size] * self.size
        start = lambda: self.comm.Ireduce_scatter(whole, into, counts, self._ops[op])  # noqa: E731
        return self._mean(self._own("reduce_scatter", op, send, recv, start), recv, op)

    def all_gather(self, send, recv, overlap=False):
        own, whole = self._raw(send), [_memory(recv), send.nbytes, self.mpi.BYTE]
        start = lambda: self.comm.Iallgather(own, whole)  # noqa: E731
        return self._own("all_gather", "", send, recv, start)

    def broadcast(self, send, recv, root, overlap=False):
        if self.rank == root:
            ctypes.memmove(_memory(recv), _memory(send), send.nbytes)
        into = self._raw(recv)
        start = lambda: self.comm.Ibcast(into, root)  # noqa: E731
        return self._own("broadcast", f"root={root}", send, recv, start)

    def all_to_all(self, send, recv, overlap=False):
        piece = send.nbytes // self.size
        own, into = ([_memory(a), piece, self.mpi.BYTE] for a in (send, recv))
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

    def close(self):
        """Communicators are freed by MPI at the end."""


class _Waited:
    """A message of Gloo, which does not tell whether it has ended: a thread waits for it."""

    def __init__(self, work):
        self._problem, self._work = None, work
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self):
        try:
            self._work.wait()
        except RuntimeError as problem:
            self._problem = problem

    def is_completed(self):
        return not self._thread.is_alive()

    def wait(self):
        if self._problem is not None:
            raise self._problem


class Gloo(_Values):
    """A process group of torch.distributed with Gloo."""

    name, means = "gloo", False

    def several(self, nbytes):
        return False

    def __init__(self, group, ranks, rank, job):
        import torch
        import torch.distributed as td

        self.torch, self.td, self.group, self.ranks, self.job = torch, td, group, ranks, job
        self.rank, self.size = ranks.index(rank), len(ranks)
        self._sorted = [
            ranks.index(r) for r in sorted(ranks)
        ]  # PyTorch's groups have no other order
        self._ops = {"sum": td.ReduceOp.SUM, "prod": td.ReduceOp.PRODUCT, "max": td.ReduceOp.MAX,
                     "min": td.ReduceOp.MIN}  # fmt: skip

    def reduces(self, dtype):
        """The type in which arrays of `dtype` are combined; PyTorch has no unsigned words."""
        wider = {"int16": "int32", "uint16": "int32", "uint32": "int64"}
        return {**_REDUCED_AS, **wider}.get(dtype, dtype)

    def _view(self, array, op="sum"):
        """A tensor over the array's own memory, of the type that it is combined in."""
        name = _PARTS.get(str(array.dtype), str(array.dtype))
        if name == "uint64":  # sums and products have the same bits either way
            name = "int64"
            if op in ("max", "min"):
                raise error(
                    weft.DTypeError,
                    "distributed.dtype",
                    f"{op} of uint64 through Gloo, which has no unsigned words",
                    ["legal: sum, prod; all combinations under MPI and on cards"],
                )
        return self._raw(array, name)

    def _raw(self, array, name="uint8"):
        kind = getattr(self.torch, name)
        if array.nbytes == 0:
            return self.torch.empty(0, dtype=kind)
        return self.torch.frombuffer(_memory(array), dtype=kind)

    def _finish(self, works, *held):
        def wait():
            begun = time.perf_counter()
            try:
                for work in works:
                    while not work.is_completed():
                        _look(self.job, self.ranks, begun)
                        _step(begun)
                    work.wait()
            except RuntimeError as problem:
                if isinstance(problem, weft.Error):
                    raise
                time.sleep(1.0)  # the rank that failed may still be saying why
                self.job.check_present(self.ranks)
                raise error(
                    weft.DeviceError,
                    "distributed.gloo",
                    f"Gloo reports on rank {self.rank}: {str(problem)[:300]}",
                    help="a rank that ended or fell out of step shows like this: WEFT_DISTRIBUTED_DEBUG=1 compares the ranks",
                ) from None
            return held

        return wait

    def all_reduce(self, send, recv, op, overlap=False):
        view = self._view(recv, op)
        view.copy_(self._view(send))
        work = self.td.all_reduce(view, self._ops[op], group=self.group, async_op=True)
        return self._finish([work], send, recv, view)

    def reduce_scatter(self, send, recv, op, overlap=False):
        whole = self.torch.clone(self._view(send, op))
        work = self.td.all_reduce(whole, self._ops[op], group=self.group, async_op=True)
        done = self._finish([work], send)

        def wait():
            done()
            into = self._view(recv)
            n = into.numel()
            into.copy_(whole[self.rank * n : (self.rank + 1) * n])
            return recv

        return wait

    def all_gather(self, send, recv, overlap=False):
        if recv.nbytes == 0:
            return lambda: recv
        rows = self._raw(recv).view(self.size, -1)
        parts = [rows[i] for i in self._sorted]
        work = self.td.all_gather(parts, self._raw(send), group=self.group, async_op=True)
        return self._finish([work], send, recv, parts)

    def broadcast(self, send, recv, root, overlap=False):
        view = self._raw(recv)
        if self.rank == root:
            view.copy_(self._raw(send))
        work = self.td.broadcast(view, self.ranks[root], group=self.group, async_op=True)
        return self._finish([work], recv, view)

    def all_to_all(self, send, recv, overlap=False):
        if send.nbytes == 0:
            return lambda: recv
        out = self._raw(send).view(self.size, -1)
        into = self._raw(recv).view(self.size, -1)
        into[self.rank].copy_(out[self.rank])
        works = []
        for step in range(1, self.size):
            to, of = (self.rank + step) % self.size, (self.rank - step) % self.size
            works.append(self.td.isend(out[to].contiguous(), self.ranks[to], group=self.group))
            works.append(self.td.irecv(into[of], self.ranks[of], group=self.group))
        works = [_Waited(w) for w in works]
        return self._finish(works, send, recv)

    def send(self, array, peer, overlap=False):
        view = self._raw(array)
        work = _Waited(self.td.isend(view, self.ranks[peer], group=self.group))
        return self._finish([work], array, view)

    def recv(self, array, peer, overlap=False):
        view = self._raw(array)
        work = _Waited(self.td.irecv(view, self.ranks[peer], group=self.group))
        return self._finish([work], array, view)

    def split(self, ranks):
        world = [self.ranks[r] for r in ranks]
        me = self.ranks[self.rank]
        limit = datetime.timedelta(days=1000)  # the watch ends waiting for ranks that are gone
        group = self.td.new_group(world, backend="gloo", timeout=limit)  # every rank takes part
        return Gloo(group, world, me, self.job) if me in world else None

    def abort(self):
        """A failed job is ended by torchrun."""

    def close(self):
        """The process group is destroyed with the job."""
