# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks and the job they belong to."""

from __future__ import annotations

import atexit
import datetime
import os
import socket
from collections.abc import Sequence
from typing import Any

import weft

from .._errors import error
from .environment import read_launch


class Group:
    """Ranks that take part in collectives together. `ranks` are those of the whole job; rank and size are of the group."""

    def __init__(self, job: Any, ranks: Sequence[int], host: Any) -> None:
        self.job, self.ranks, self.host = job, ranks, host
        self.size = len(ranks)
        self.rank = ranks.index(job.launch.rank)
        self._cards = None
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

    def abort(self) -> None:
        for transport in (self._cards, self.host):
            if transport is not None:
                transport.abort()

    def close(self) -> None:
        self._transports = {}
        if self._cards is not None:
            self._cards.close()
            self._cards = None

    def __repr__(self):
        return f"Group(rank={self.rank}, size={self.size}, ranks={self.ranks})"


class Job:
    """All processes that the launcher has started, and this one among them."""

    def __init__(self, launch: Any, timeout: float, debug: bool | None) -> None:
        self.launch, self.debug, self.watch, self.groups = launch, debug, None, []
        self.looked = 0.0  # when a waiting rank asked last who is there
        host = board = None
        if launch.size > 1:
            host, board = (_torchrun if launch.launcher == "torchrun" else _mpi)(
                self, launch, timeout
            )
        self.world = self.add(Group(self, list(range(launch.size)), host))
        if board is not None:
            from .failure import Watch

            self.watch = Watch(launch.rank, board, self.abort, _introduced(launch, host))

    def add(self, group: Group | None) -> Any:
        self.groups.append(group)
        return group

    def check(self) -> None:
        """Raises DeviceError `distributed.peer` when another rank has failed."""
        if self.watch is not None:
            self.watch.check()

    def check_present(self, ranks: Sequence[int]) -> None:
        """The same when one of `ranks`, for whom this rank waits, has left the job."""
        if self.watch is not None:
            self.watch.check_present(ranks)

    def abort(self) -> None:
        for group in self.groups:
            group.abort()

    def close(self) -> None:
        if self.watch is not None:
            self.watch.stop()
        for group in self.groups:
            group.close()


def _introduced(launch, host):
    """(rank, process) of the other ranks on this host, with whom its processors are shared.

    Raises DeviceError `distributed.versions` where ranks run different versions of weft.
    """
    every = host.gather_values((socket.gethostname(), os.getpid(), weft.__version__))
    versions = {version for _, _, version in every}
    if len(versions) > 1:
        raise error(
            weft.DeviceError,
            "distributed.versions",
            f"the ranks of the job run {len(versions)} versions of weft",
            [f"rank {r} on {name}: {version}" for r, (name, _, version) in enumerate(every)],
            help="install one version everywhere",
        )
    here = {r: pid for r, (name, pid, _) in enumerate(every) if name == every[launch.rank][0]}
    own = _processors()
    used = host.gather_values(own)
    if weft.get_threads() == len(own):  # nobody has set it
        weft.set_threads(share_of(own, [used[r] for r in here]))
    del here[launch.rank]
    return list(here.items())


def _processors():
    """The processors that this process may use, where the system says so."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def share_of(own: Any, every: Any) -> Any:
    """The number of threads for a rank that may use the processors `own`, each shared by those of `every` who may use it."""
    parts = sum(1 / sum(p in other for other in every) for p in own)
    return max(1, int(parts + 1e-9))


def _torchrun(job, launch, timeout):
    try:
        import torch.distributed as td
    except ImportError:
        raise error(
            weft.DeviceError,
            "distributed.torch",
            "torchrun has started this process, and PyTorch cannot be imported in it",
            help="install PyTorch, or start the job with mpirun and mpi4py",
        ) from None
    from .failure import StoreBoard
    from .host import Gloo

    try:
        if not td.is_initialized():
            td.init_process_group("gloo", timeout=datetime.timedelta(seconds=timeout))
    except (RuntimeError, ValueError, OSError) as problem:
        where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise error(
            weft.DeviceError,
            "distributed.start",
            f"rank {launch.rank} of {launch.size} cannot join the job at {where}: {str(problem)[:300]}",
            help="the port may be in use (torchrun --master-port), or fewer processes were started than WORLD_SIZE says",
        ) from None
    store = td.distributed_c10d._get_default_store()
    group = Gloo(None, list(range(launch.size)), launch.rank, job)
    return group, StoreBoard(store)


def _process_manager(variables):
    """Open MPI ends a process that srun has started without a process manager: refused before it does."""
    managed = any(name.startswith(("PMI", "OMPI_")) for name in variables)
    if "SLURM_PROCID" in variables and not managed:
        raise error(
            weft.DeviceError,
            "distributed.slurm",
            "srun has started this process without a process manager, which MPI needs",
            help="srun --mpi=pmix (srun --mpi=list shows what this cluster has), or mpirun inside the allocation",
        )


def _mpi(job, launch, timeout):
    _process_manager(os.environ)
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as problem:
        raise error(
            weft.DeviceError,
            "distributed.mpi.absent",
            f"MPI's launcher has started this process, and mpi4py cannot be imported in it: {problem}",
            help="apt install python3-mpi4py, or pip install mpi4py",
        ) from None
    from .failure import MpiBoard
    from .host import Mpi

    world = MPI.COMM_WORLD
    if world.size != launch.size:
        raise error(
            weft.DeviceError,
            "distributed.start",
            f"the launcher has started {launch.size} processes, and MPI knows {world.size}",
            help="mpi4py was built for another MPI than the launcher's: pip install --no-binary mpi4py mpi4py",
        )
    world.Set_errhandler(MPI.ERRORS_RETURN)
    return Mpi(world, list(range(world.size)), job), MpiBoard(world)


_job = None


def init(timeout: float = 300.0, debug: bool | None = None) -> None:
    """Joins the job that torchrun, mpirun or srun has started; returns the group of all ranks.

    Without a launcher the job is this process alone, and collectives give their argument back. `timeout`: seconds in which all ranks must have joined
    (torchrun). `debug`: every collective first compares operation, shape and type among the ranks (WEFT_DISTRIBUTED_DEBUG=1 does the same). A second
    call returns the same group. Raises ArgumentError for a launcher's variables that do not fit, DeviceError `distributed.*` where the
    launcher's library is absent or the job cannot be joined.
    """
    global _job
    if _job is None:
        if debug is None:
            debug = os.environ.get("WEFT_DISTRIBUTED_DEBUG", "") not in ("", "0")
        _job = Job(read_launch(), float(timeout), bool(debug))
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


def resolve(group: Group | None) -> Group:
    return job().world if group is None else group


def rank(group: Group | None = None) -> int:
    """This process's number in the group (all ranks without one), from 0."""
    return resolve(group).rank


def size(group: Group | None = None) -> int:
    """The number of ranks in the group."""
    return resolve(group).size


def local_rank() -> int:
    """This process's number among those on the same host."""
    return job().launch.local_rank


def device() -> weft.Device:
    """The card of this rank, "cuda:" and its number on this host, where there is one; else the host."""
    name = f"cuda:{job().launch.local_rank}"
    return weft.device(name if weft.device(name).available else "cpu")


def new_group(ranks: Sequence[int]) -> Group | None:
    """A group of some ranks. Every rank of the job calls this, with the same list; others than those get None.

    Raises ArgumentError `distributed.group` for ranks that are not in the job or named twice.
    """
    world = job().world
    ranks = [int(r) for r in ranks]
    if not ranks or len(set(ranks)) != len(ranks) or not all(0 <= r < world.size for r in ranks):
        raise error(
            weft.ArgumentError,
            "distributed.group",
            f"a group of the ranks {ranks}",
            [f"legal: different ranks from 0 to {world.size - 1}, one at least"],
        )
    host = world.host.split(ranks) if world.host is not None else None
    return job().add(Group(job(), ranks, host)) if world.rank in ranks else None
