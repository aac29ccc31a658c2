# SPDX-License-Identifier: Apache-2.0
"""Collectives of arrays in host memory under torchrun: PyTorch's Gloo, in groups of weft's own."""

from __future__ import annotations

import contextlib
import datetime
import threading
import time

import weft

from .._errors import error
from .failure import LAST_WORDS
from .host import REDUCED_AS, Values, keep, look_around, memory_of
from .instep import InStep

_PARTS = {"complex64": "float32", "complex128": "float64"}  # Gloo sums complex numbers by parts
_NO_END = datetime.timedelta(days=1000)  # the watch ends waiting for ranks that are gone
_LAST_STEPS = 2.0  # seconds in which Gloo ends what is under way
_LOOK = 0.1  # seconds between two looks of a rank that waits
_NUMBERS, _LENGTHS = 1024, 1048573  # of messages that are told apart; a prime
_NOBODY = _NUMBERS << 20  # the tag of no message


class _Message:
    """A message of Gloo, which does not tell whether it has ended: a thread waits for it."""

    def __init__(self, work):
        self.work, self._problem = work, None
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self):
        try:
            self.work.wait()
        except RuntimeError as problem:
            self._problem = problem

    def is_completed(self):
        return not self._thread.is_alive()

    def ends(self, seconds):
        """Whether it has ended within some seconds."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            return False
        if self._problem is not None:
            raise self._problem
        return True


class _Collective:
    """A collective that Gloo's own threads carry out."""

    def __init__(self, work):
        self.work, self.is_completed = work, work.is_completed

    def ends(self, seconds):
        """Whether it has ended within some seconds. A rank that looks for it without a rest would take the processor from Gloo's threads."""
        try:
            self.work.wait(datetime.timedelta(seconds=seconds))
        except RuntimeError:
            if not self.work.is_completed():
                return False
            self.work.wait()  # it has ended since, or by an error
        return True


class _Channel:
    """The messages from one rank to another, whose calls the ranks number alike."""

    def __init__(self, record):
        self.record, self.waiting = record, 0

    def next(self, nbytes):
        """The tag of the next message. Messages of other sizes never meet: Gloo ends the process that gets more bytes than it awaits."""
        number = self.record.note("", "", f"{nbytes} bytes", None)
        return (number % _NUMBERS << 20) + nbytes % _LENGTHS


class Gloo(Values):
    """A process group of Gloo. Its ranks make it together; `path` names it among all of the job, `ranks` are the job's."""

    name = "gloo"

    def several(self, nbytes):
        return False

    def __init__(self, store, path, ranks, rank, job):
        import torch
        import torch.distributed as td

        self.torch, self.td, self.ranks, self.job = torch, td, ranks, job
        self.rank, self.size = ranks.index(rank), len(ranks)
        self._store, self._path, self._splits = store, path, 0
        found = td.PrefixStore(job.watch.board.name(f"gloo/{path}"), store)
        self.group = td.distributed_c10d.ProcessGroupGloo(found, self.rank, self.size, timeout=_NO_END)  # fmt: skip
        keep(self.group)  # what other ranks have not read yet would be lost, and its end waits
        late = job.watch.late
        record = late.record(ranks, lambda: False, f"gloo {path}")
        self._in_step = InStep(f"calls/{path}", job.watch, record, self._until)
        self._channels = {}
        self._open = []  # works that had not ended when the last one began
        job.transports.append(self)
        self._ops = {"sum": td.ReduceOp.SUM, "prod": td.ReduceOp.PRODUCT, "max": td.ReduceOp.MAX,
                     "min": td.ReduceOp.MIN, "mean": td.ReduceOp.SUM}  # fmt: skip

    def reduces(self, dtype):
        """The type in which arrays of `dtype` are combined; PyTorch has no unsigned words."""
        wider = {"int16": "int32", "uint16": "int32", "uint32": "int64"}
        return {**REDUCED_AS, **wider}.get(dtype, dtype)

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
        return self.torch.frombuffer(memory_of(array), dtype=kind)

    def _until(self, done):
        """Waits for other ranks until done() holds."""
        begun = time.perf_counter()
        while not done():
            look_around(self.job, self.ranks, begun)
            time.sleep(1e-3)

    def settle(self):
        """Ends what nobody has waited for, such as messages to ranks that are about to receive them; for some seconds."""
        until = time.perf_counter() + LAST_WORDS
        self._until(lambda: time.perf_counter() > until or all(w.is_completed() for w in self._open))  # fmt: skip

    @contextlib.contextmanager
    def _named(self):
        """What PyTorch raises, by weft's names."""
        try:
            yield
        except (RuntimeError, ValueError) as problem:
            if isinstance(problem, weft.Error):
                raise
            self.job.check()  # one that came from outside while C++ ran, among others
            raise self._failed(problem) from None

    def _start(self, call, *args):
        """A collective that all ranks have come to with equal arguments."""
        with self._named():
            return _Collective(getattr(self.group, call)(*args))

    def _agree(self, name, detail, array):
        """Before a collective begins: whether ranks that came before make the same one."""
        with self._named():
            self._in_step.check(name, detail, str(array.dtype), tuple(array.shape))

    def _options(self, name, **values):
        options = getattr(self.td.distributed_c10d, name)()
        for key, value in values.items():
            setattr(options, key, value)
        return options

    def _failed(self, problem):
        return error(
            weft.DeviceError,
            "distributed.gloo",
            f"Gloo reports on rank {self.rank}: {str(problem)[:300]}",
            help="a rank that has ended shows like this: look at the output of the others first",
        )

    def _finish(self, work, *held):
        self._open = [w for w in self._open if not w.is_completed()] + [work]

        def wait():
            begun = time.perf_counter()
            self.job.check()
            try:
                while not work.ends(_LOOK):
                    look_around(self.job, self.ranks, begun)
                return held
            except RuntimeError as caught:
                if isinstance(caught, weft.Error):
                    raise
                problem = caught
            time.sleep(1.0)  # the rank that failed may still be saying why
            self.job.check_present(self.ranks)
            raise self._failed(problem)

        return wait

    def _combined(self, view, op):
        options = self._options("AllreduceOptions", reduceOp=self._ops[op])
        return self._start("allreduce", [view], options)

    def all_reduce(self, send, recv, op, overlap=False):
        view, own = self._view(recv, op), self._view(send, op)
        self._agree("all_reduce", op, send)
        view.copy_(own)
        return self.mean(self._finish(self._combined(view, op), send, recv, view), recv, op)

    def reduce_scatter(self, send, recv, op, overlap=False):
        own = self._view(send, op)
        self._agree("reduce_scatter", op, send)
        whole = self.torch.clone(own)
        done = self._finish(self._combined(whole, op), send, whole)

        def wait():
            done()
            into = self._view(recv)
            n = into.numel()
            into.copy_(whole[self.rank * n : (self.rank + 1) * n])

        return self.mean(wait, recv, op)

    def all_gather(self, send, recv, overlap=False):
        self._agree("all_gather", "", send)
        if recv.nbytes == 0:
            return lambda: recv
        parts = list(self._raw(recv).view(self.size, -1).unbind(0))
        work = self._start("allgather", [parts], [self._raw(send)])
        return self._finish(work, send, recv, parts)

    def broadcast(self, send, recv, root, overlap=False):
        self._agree("broadcast", f"root={root}", send)
        view = self._raw(recv)
        if self.rank == root:
            view.copy_(self._raw(send))
        options = self._options("BroadcastOptions", rootRank=root, rootTensor=0)
        return self._finish(self._start("broadcast", [view], options), recv, view)

    def all_to_all(self, send, recv, overlap=False):
        self._agree("all_to_all", "", send)
        if send.nbytes == 0:
            return lambda: recv
        out, into = self._raw(send), self._raw(recv)
        return self._finish(self._start("alltoall_base", into, out, [], []), send, recv, out, into)

    def barrier(self):
        with self._named():
            self._in_step.check("barrier", "", "", None)
        one = self.torch.zeros(1)
        self._finish(self._combined(one, "sum"), one)()

    def _message(self, call, array, peer, source, target):
        channel = self._channels.get((source, target))
        if channel is None:
            name = f"gloo {self._path} {source}>{target}"
            title = f"from rank {self.ranks[source]} to rank {self.ranks[target]}"
            ends = [self.ranks[source], self.ranks[target]]
            record = self.job.watch.late.record(ends, lambda: channel.waiting > 0, name, title)
            channel = self._channels[source, target] = _Channel(record)
        view, tag = self._raw(array), channel.next(array.nbytes)
        with self._named():
            work = _Message(getattr(self.group, call)([view], peer, tag))
        done = self._finish(work, array, view)

        def wait():
            channel.waiting += 1
            try:
                return done()
            finally:
                channel.waiting -= 1

        return wait

    def send(self, array, peer, overlap=False):
        return self._message("send", array, peer, self.rank, peer)

    def recv(self, array, peer, overlap=False):
        return self._message("recv", array, peer, peer, self.rank)

    def split(self, ranks):
        self._splits += 1  # on every rank of this group
        if self.rank not in ranks:
            return None
        path, of = f"{self._path}.{self._splits}", [self.ranks[r] for r in ranks]
        return Gloo(self._store, path, of, self.ranks[self.rank], self.job)

    def abort(self):
        """A failed job is ended by torchrun."""

    def close(self):
        """Ends what is under way: when other ranks end, Gloo's threads would give arrays back to an interpreter that is about to go, and end the process by a signal."""
        until = time.perf_counter() + _LAST_STEPS
        if not all(w.is_completed() for w in self._open):
            with contextlib.suppress(RuntimeError):  # a message that is late ends all connections
                nobody = self.group.recv(
                    [self.torch.zeros(1)], (self.rank + 1) % self.size, _NOBODY
                )
                nobody.wait(datetime.timedelta(milliseconds=1))
            while not all(w.is_completed() for w in self._open) and time.perf_counter() < until:
                time.sleep(1e-3)
        for work in self._open:
            keep(work.work)
