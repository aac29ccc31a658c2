# SPDX-License-Identifier: Apache-2.0
"""Collectives of arrays in host memory under torchrun: Gloo through torch.distributed."""

from __future__ import annotations

import datetime
import threading
import time

import weft

from .._errors import error
from .failure import LAST_WORDS
from .host import REDUCED_AS, Values, look_around, memory_of, step

_PARTS = {"complex64": "float32", "complex128": "float64"}  # Gloo sums complex numbers by parts


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


class Gloo(Values):
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
        self._open = []  # works that had not ended when the last one began
        job.transports.append(self)
        self._ops = {"sum": td.ReduceOp.SUM, "prod": td.ReduceOp.PRODUCT, "max": td.ReduceOp.MAX,
                     "min": td.ReduceOp.MIN}  # fmt: skip

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

    def settle(self):
        """Ends what nobody has waited for, such as messages to ranks that are about to receive them; for some seconds."""
        begun = time.perf_counter()
        while not all(w.is_completed() for w in self._open):
            if time.perf_counter() - begun > LAST_WORDS:
                return
            look_around(self.job, self.ranks, begun)
            step(begun)

    def _start(self, call, *args):
        """A call of torch.distributed that gives something to wait for."""
        more = {} if call in ("isend", "irecv") else {"async_op": True}
        try:
            return getattr(self.td, call)(*args, group=self.group, **more)
        except (RuntimeError, ValueError) as problem:
            if isinstance(problem, weft.Error):
                raise
            self.job.check()  # one that came from outside while C++ ran, among others
            raise self._failed(problem) from None

    def _failed(self, problem):
        return error(
            weft.DeviceError,
            "distributed.gloo",
            f"Gloo reports on rank {self.rank}: {str(problem)[:300]}",
            help="a rank that ended or fell out of step shows like this: WEFT_DISTRIBUTED_DEBUG=1 compares the ranks; so does a program that has called destroy_process_group()",
        )

    def _finish(self, works, *held):
        self._open = [w for w in self._open if not w.is_completed()] + list(works)

        def wait():
            begun = time.perf_counter()
            try:
                for work in works:
                    while not work.is_completed():
                        look_around(self.job, self.ranks, begun)
                        step(begun)
                    work.wait()
            except RuntimeError as problem:
                if isinstance(problem, weft.Error):
                    raise
                time.sleep(1.0)  # the rank that failed may still be saying why
                self.job.check_present(self.ranks)
                raise self._failed(problem) from None
            return held

        return wait

    def all_reduce(self, send, recv, op, overlap=False):
        view = self._view(recv, op)
        view.copy_(self._view(send))
        work = self._start("all_reduce", view, self._ops[op])
        return self._finish([work], send, recv, view)

    def reduce_scatter(self, send, recv, op, overlap=False):
        whole = self.torch.clone(self._view(send, op))
        work = self._start("all_reduce", whole, self._ops[op])
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
        work = self._start("all_gather", parts, self._raw(send))
        return self._finish([work], send, recv, parts)

    def broadcast(self, send, recv, root, overlap=False):
        view = self._raw(recv)
        if self.rank == root:
            view.copy_(self._raw(send))
        work = self._start("broadcast", view, self.ranks[root])
        return self._finish([work], recv, view)

    def all_to_all(self, send, recv, overlap=False):
        if send.nbytes == 0:
            return lambda: recv
        out = self._raw(send).view(self.size, -1)
        into = self._raw(recv).view(self.size, -1)
        into[self.rank].copy_(out[self.rank])
        works = []
        for hop in range(1, self.size):
            to, of = (self.rank + hop) % self.size, (self.rank - hop) % self.size
            works.append(self._start("isend", out[to].contiguous(), self.ranks[to]))
            works.append(self._start("irecv", into[of], self.ranks[of]))
        works = [_Waited(w) for w in works]
        return self._finish(works, send, recv)

    def send(self, array, peer, overlap=False):
        view = self._raw(array)
        work = _Waited(self._start("isend", view, self.ranks[peer]))
        return self._finish([work], array, view)

    def recv(self, array, peer, overlap=False):
        view = self._raw(array)
        work = _Waited(self._start("irecv", view, self.ranks[peer]))
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
