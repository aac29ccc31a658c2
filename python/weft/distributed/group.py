# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks and the job they belong to."""

from __future__ import annotations

import atexit
import numbers
import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import weft

from .._core import shown
from .._errors import error
from .environment import read_launch
from .failure import Failure


def rank_of(number: Any) -> int:
    """The rank that an argument names, -1 where it names none: truth values and fractions are no ranks."""
    whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    return int(number) if whole else -1


class Group:
    """Ranks that take part in collectives together. `ranks` are those of the whole job; rank and size are of the group. On ranks outside it `rank` is -1, and
    every use of the group raises ArgumentError `distributed.group`."""

    def __init__(self, job: Any, ranks: Sequence[int], host: Any) -> None:
        self.job, self.ranks, self.host = job, ranks, host
        self.size = len(ranks)
        self.rank = ranks.index(job.launch.rank) if job.launch.rank in ranks else -1
        self._cards, self.record = None, None
        if job.watch is not None and self.size > 1 and self.rank >= 0:
            self.record = job.watch.late.record(self.ranks, self._busy)
        self._transports = {"cpu": host, "c": host}

    def transport(self, device_name: str) -> Any:
        """What moves arrays of this device, or None where they go through host memory."""
        if device_name in self._transports:
            return self._transports[device_name]
        found = None
        if device_name.startswith("cuda"):
            if self._cards is None:
                from .nccl import Nccl

                self._cards = Nccl(self.rank, self.size, device_name, self.host.exchange)
            found = self._cards
        self._transports[device_name] = found
        return found

    def _busy(self):
        """Whether a card works at something; asked by the watch's thread."""
        return self._cards is not None and self._cards.busy()

    def combined(self, number: float, op: str) -> float:
        """The sum ("sum") or the largest ("max") of one number of each rank."""
        if self.size == 1:
            return number
        self.job.check()
        out = weft.empty((1,), dtype="float64", device="cpu")
        self.host.all_reduce(weft.asarray([number], dtype="float64", device="cpu"), out, op)()
        return float(out[0])

    def abort(self) -> None:
        for transport in (self._cards, self.host):
            if transport is not None:
                transport.abort()

    def close(self) -> None:
        self._transports = {}
        if self._cards is not None:
            self._cards.close()
            self._cards = None

    def __deepcopy__(self, memo: Any) -> Group:
        """The group itself: copied models stay on their ranks."""
        return self

    def __reduce__(self):
        raise error(
            weft.ArgumentError,
            "distributed.group",
            "a group of ranks cannot be pickled: it belongs to this process",
            help="save model.state_dict(), or model.module",
        )

    def __repr__(self):
        return f"Group(rank={self.rank}, size={self.size}, ranks={self.ranks})"


class Job:
    """All processes that the launcher has started, and this one among them."""

    def __init__(self, launch: Any, timeout: float, debug: bool | None) -> None:
        self.launch, self.debug, self.watch, self.groups = launch, debug, None, []
        self.transports = []  # of host memory, one for each group: what was begun in one goes on while this rank waits in another
        self.turn = threading.RLock()  # of the threads of this process that go on with calls
        self._process = os.getpid()
        self.looked = 0.0  # when a waiting rank asked last who is there
        host = None
        if launch.size > 1:
            from .failure import Watch
            from .late import Late
            from .start import join

            self.watch = Watch(launch, self.abort)
            self.watch.late = Late(launch.rank, lambda: self.watch.board)
            try:
                host = join(self, launch, timeout)
            except BaseException:
                try:
                    self.watch.let_others_look()
                finally:
                    self.watch.stop(left=False)
                raise
        self.world = self.add(Group(self, list(range(launch.size)), host))

    def add(self, group: Group | None) -> Any:
        self.groups.append(group)
        return group

    def check(self) -> None:
        """Raises DeviceError `distributed.peer` when another rank has failed, `distributed.fork` in a fork of the rank."""
        if self.watch is None:
            return
        if os.getpid() != self._process:
            raise error(
                weft.DeviceError,
                "distributed.fork",
                f"a call between ranks in process {os.getpid()}, a fork of rank {self.launch.rank}",
                ["legal: calls in the rank's own process"],
                help="let workers compute, and the rank exchange",
            )
        self.watch.check()

    def check_present(self, ranks: Sequence[int], waited: float | None = None) -> None:
        """The same when one of `ranks`, for whom this rank has waited so many seconds, has left the job."""
        if self.watch is not None:
            self.watch.check_present(ranks, waited)

    def abort(self) -> None:
        for group in self.groups:
            group.abort()

    def close(self) -> None:
        if self.watch is not None and self.watch.in_peace():
            for transport in self.transports:
                try:
                    transport.settle()
                except weft.Error:  # the job has failed: its ranks end anyway
                    break
        if self.watch is not None:
            self.watch.stop()
            if os.getpid() == self._process:
                from .start import leave

                leave()
                for transport in self.transports:
                    transport.close()
        for group in self.groups:
            group.close()


_job = None


def init(timeout: float = 300.0, debug: bool | None = None) -> Group:
    """Joins the job that torchrun, mpirun or srun has started; returns the group of all ranks.

    Without a launcher the job is this process alone, and collectives give their argument back. `timeout`: seconds in which all ranks must have
    joined. `debug`: every collective first compares operation, shape and type among the ranks, when one of them asks for it (WEFT_DISTRIBUTED_DEBUG=1 does the same). A second
    call returns the same group. Raises ArgumentError `distributed.timeout` for times that are none, `distributed.environment` for a launcher's variables that do not fit, DeviceError `distributed.*` where the
    launcher's library is absent, the job cannot be joined, or the launcher or another rank is gone.
    """
    global _job
    if _job is None:
        timeout = float(timeout)
        if not 0 < timeout <= 1e9:
            raise error(
                weft.ArgumentError,
                "distributed.timeout",
                f"init(timeout={timeout:g})",
                ["legal: seconds, more than 0 and at most 1e9"],
            )
        if debug is None:
            debug = os.environ.get("WEFT_DISTRIBUTED_DEBUG", "") not in ("", "0")
        _job = Job(read_launch(), timeout, bool(debug))
        atexit.register(shutdown)
    return _job.world


def shutdown() -> None:
    """Leaves the job; init() may join again in a single process. Called at the end of the process."""
    global _job
    job, _job = _job, None
    if job is not None:
        job.close()


def is_initialized() -> bool:
    """Whether init() has been called."""
    return _job is not None


def job() -> Any:
    """The job that was joined. Raises ArgumentError `distributed.init` before init()."""
    if _job is None:
        raise error(
            weft.ArgumentError,
            "distributed.init",
            "this process has not joined a job",
            help="call weft.distributed.init() first, on every rank",
        )
    return _job


def _known(group):
    """The group, or that of all ranks for None. Raises ArgumentError `distributed.group` for what is none of this job."""
    own = job()
    if group is None:
        return own.world
    if not isinstance(group, Group) or group.job is not own:
        raise error(
            weft.ArgumentError,
            "distributed.group",
            f"{shown(group)} is no group of the job that this process is in",
            ["legal: what new_group() gave since init(), or None for all ranks"],
        )
    return group


def resolve(group: Group | None) -> Group:
    """The same for those who take part in it: ranks outside are refused, too."""
    group = _known(group)
    if group.rank < 0:
        raise error(
            weft.ArgumentError,
            "distributed.group",
            f"rank {group.job.launch.rank} is outside the group of the ranks {group.ranks}",
            ["legal: calls of the group's own ranks"],
            help="if dist.rank(group) >= 0: before the call",
        )
    return group


def rank(group: Group | None = None) -> int:
    """This process's number in the group (all ranks without one), from 0; -1 outside it."""
    return _known(group).rank


def size(group: Group | None = None) -> int:
    """The number of ranks in the group."""
    return _known(group).size


def local_rank() -> int:
    """This process's number among those on the same host."""
    return job().launch.local_rank


def device() -> weft.Device:
    """The card of this rank, "cuda:" and its number on this host, where there is one; else the host."""
    name = f"cuda:{job().launch.local_rank}"
    return weft.device(name if weft.device(name).available else "cpu")


def new_group(ranks: Sequence[int]) -> Group:
    """A group of some ranks. Every rank of the job calls this, with the same list; on ranks outside it `dist.rank(group)` is -1.

    Raises ArgumentError `distributed.group` for ranks that are not in the job or named twice, DeviceError `distributed.mismatch` where ranks give different lists.
    """
    own = job()
    world, given = own.world, list(ranks)
    ranks = [rank_of(r) for r in given]
    if not ranks or len(set(ranks)) != len(ranks) or not all(0 <= r < world.size for r in ranks):
        raise error(
            weft.ArgumentError,
            "distributed.group",
            f"a group of the ranks {given}",
            [f"legal: different whole numbers from 0 to {world.size - 1}, one at least"],
        )
    host = None
    if world.host is not None:
        every = world.host.gather_values(ranks)
        if any(other != ranks for other in every):
            told = "; ".join(f"rank {r} calls new_group({other})" for r, other in enumerate(every))
            raise Failure(told, "distributed.mismatch").error()
        begun = time.perf_counter()
        host = own.watch.run(lambda: world.host.split(ranks), lambda: world.host.look(begun))
    made = Group(own, ranks, host)
    return own.add(made) if made.rank >= 0 else made
