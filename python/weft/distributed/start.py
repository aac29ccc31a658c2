# SPDX-License-Identifier: Apache-2.0
"""How a process joins the job: through MPI or through torchrun's store and Gloo.

The libraries' own functions for this wait where nothing can end them. They run on a thread of their own, while the watch looks for the launcher and for the
other ranks of this host.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import datetime
import importlib
import os
import signal
import socket
import sys
import time

import weft

from .._errors import error
from .failure import Failure, MpiBoard, StoreBoard
from .launcher import process_ended


_OWN_WORDS = 2.0  # seconds in which a library whose time is over says why
_FORK_ENDS = 5  # seconds in which a fork ends where a library would wait for ever
_stores = None  # the connections to torchrun's store, kept by a process that leaves its job and joins again
_begun_in = None  # the process in which init() has found or begun MPI
_watch = None  # of the job that was joined last
_JOINED = "WEFT_DISTRIBUTED_RANK"  # the rank's process and its launcher's job, for processes that it starts


def join(job, launch, timeout):
    """The transport of host memory among all ranks, once all have met.

    Raises DeviceError `distributed.launcher` where the launcher is gone, `distributed.peer` where another rank is, `distributed.start` after `timeout` seconds,
    `distributed.versions` where ranks run different versions of weft.
    """
    told = job.watch.launcher.gone_before()
    if told is not None:
        raise Failure(told, "distributed.launcher").error()
    process, _, of = os.environ.get(_JOINED, "").partition(" ")
    own = job.watch.launcher.name()
    if of == own and int(process) != os.getpid() and not process_ended(int(process)):
        raise _no_rank(int(process), launch)
    host, every = (_torchrun if launch.launcher == "torchrun" else _mpi)(job, launch, timeout)
    job.watch.introduced(_introduced(launch, every))
    job.debug = any(identity[5] for identity in every)  # comparing is a call of all ranks
    os.environ[_JOINED] = f"{os.getpid()} {own}"
    return host


def leave():
    """The rank has left the job: processes that it starts now may join in its place."""
    os.environ.pop(_JOINED, None)


def _no_rank(process, launch):
    return error(
        weft.DeviceError,
        "distributed.child",
        f"init() in process {os.getpid()}, which process {process}, rank {launch.rank} of the job, has started",
        ["legal: one process of each rank"],
        help="let workers compute, and the rank exchange; unset the launcher's variables for a worker that calls init() for itself",
    )


def _identity(job):
    host = socket.gethostname()
    return weft.__version__, host, _machine(), os.getpid(), _processors(), job.debug


def _machine():
    """What tells this machine, and its numbers of processes, from others of the same name: nothing where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip(), os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def _introduced(launch, every):
    """{rank: process} of the other ranks on this host, with whom its processors are shared. `every`: the identities of all ranks.

    Raises DeviceError `distributed.versions` where ranks run different versions of weft.
    """
    versions = {identity[0] for identity in every}
    if len(versions) > 1:
        raise error(
            weft.DeviceError,
            "distributed.versions",
            f"the ranks of the job run {len(versions)} versions of weft",
            [f"rank {r} on {identity[1]}: {identity[0]}" for r, identity in enumerate(every)],
            help="install one version everywhere",
        )
    _, name, machine, _, own, _ = every[launch.rank]
    here = {r: identity for r, identity in enumerate(every) if identity[1:3] == (name, machine)}
    if weft.get_threads() == len(own):  # nobody has set it
        weft.set_threads(share_of(own, [identity[4] for identity in here.values()]))
    return {r: identity[3] for r, identity in here.items() if r != launch.rank}


def _processors():
    """The processors that this process may use, where the system says so."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def share_of(own, every):
    """The number of threads for a rank that may use the processors `own`, each shared by those of `every` who may use it."""
    parts = sum(1 / sum(p in other for other in every) for p in own)
    return max(1, int(parts + 1e-9))


def _cannot_join(launch, where, reason, repair):
    return error(
        weft.DeviceError,
        "distributed.start",
        f"rank {launch.rank} of {launch.size} cannot join the job{where}: {reason}",
        help=repair,
    )


def _unknown(host):
    """The text for an address that this host cannot look up, or None."""
    try:
        socket.getaddrinfo(host, None)
    except OSError as problem:
        return f"the address {host!r} of MASTER_ADDR is not known here ({problem.strerror})"
    return None


def _imported(job, name):
    """Imports a library beside this thread: an exception from outside that comes while its C++ begins leaves it as a RuntimeError."""
    return job.watch.run(lambda: importlib.import_module(name))


def _torchrun(job, launch, timeout):
    try:
        td = _imported(job, "torch.distributed")
    except ImportError:
        raise error(
            weft.DeviceError,
            "distributed.torch",
            "torchrun has started this process, and PyTorch cannot be imported in it",
            help="install PyTorch, or start the job with mpirun and mpi4py",
        ) from None
    from .gloo import Gloo

    limit, begun = datetime.timedelta(seconds=timeout), time.perf_counter()
    repair = "the port may be in use (torchrun --master-port), or fewer processes were started than WORLD_SIZE says"
    host, port = os.environ["MASTER_ADDR"], os.environ.get("MASTER_PORT", "")

    def store():
        found, _, _ = next(td.rendezvous("env://", launch.rank, launch.size, timeout=limit))
        # A connection of its own: the other one is taken while somebody waits for an answer on it.
        return found, td.TCPStore(host, int(port), is_master=False, timeout=limit)

    def look():
        if time.perf_counter() - begun > timeout + _OWN_WORDS:
            reason = _unknown(host) or job.watch.absent() or "its ranks have not met"
            raise _cannot_join(launch, f" at {host}:{port}", f"{reason} after {timeout:g} s", repair)  # fmt: skip

    def group():
        # Of weft's own: the program's may be another library's, wait for shorter, and end before the job.
        return Gloo(found, "all", list(range(launch.size)), launch.rank, job)

    global _stores
    try:
        if td.is_initialized():
            found = watched = td.distributed_c10d._get_default_store()
        else:
            if _stores is None:
                _stores = job.watch.run(store, look)
                atexit.register(
                    _end_fork, os.getpid(), "torch.distributed", "end the fork by os._exit"
                )
            found, watched = _stores
        job.watch.board = StoreBoard(watched, launch.rank)
        own = job.watch.run(group, look)
        return own, job.watch.run(lambda: own.gather_values(_identity(job)), look)
    except (RuntimeError, ValueError, OSError) as problem:
        if isinstance(problem, weft.Error):
            raise
        reason = _unknown(host) or job.watch.absent() or str(problem)[:300]
        raise _cannot_join(launch, f" at {host}:{port}", reason, repair) from None


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


def _initialize(MPI):
    """MPI_Init_thread without Python's lock, which mpi4py keeps: the watch runs meanwhile."""
    start = getattr(ctypes.CDLL(MPI.__file__), "MPI_Init_thread", None)
    if start is None:
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
        return
    start(None, None, MPI.THREAD_MULTIPLE, ctypes.byref(ctypes.c_int()))


def _running(process):
    """mpi4py's MPI, where this is the process that uses it and MPI has not ended."""
    MPI = getattr(sys.modules.get("mpi4py"), "MPI", None)
    if MPI is None or os.getpid() != process or not MPI.Is_initialized() or MPI.Is_finalized():
        return None
    return MPI


def _hear_out(process):
    """At the end of the process, before MPI's."""
    MPI = _running(process)
    if MPI is not None and _watch.board is not None:
        with contextlib.suppress(MPI.Exception):
            _watch.board.hear_out(_watch.gone)


def _finalize(process):
    """Ends MPI at the end of the process that has begun it: mpi4py would do so in a fork of it, too, which then waits for ever."""
    MPI = _running(process)
    if MPI is not None:
        end = getattr(ctypes.CDLL(MPI.__file__), "MPI_Finalize", None)
        MPI.Finalize() if end is None else end()


def _wait_in_place_of_ends():
    """Python's end calls what libraries have asked it to call, the last of them first: a wait for SIGALRM now. The end of MPI would
    take messages out of the memory that a fork shares with its rank, which then waited for ever (3 of 54 jobs)."""
    pause = ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p)
    if ctypes.pythonapi.Py_AtExit(pause):  # its table is full
        signal.setitimer(signal.ITIMER_REAL, 1e-3)


def _end_fork(process, library, repair):
    """At the end of a fork of a rank, which the end of some libraries would wait in for ever: it is bounded, and named."""
    if os.getpid() == process or not hasattr(signal, "alarm"):
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_FORK_ENDS)
    _wait_in_place_of_ends()
    raise error(
        weft.DeviceError,
        "distributed.fork.end",
        f"process {os.getpid()}, a fork of a rank, would wait for ever in the end of {library}; it gets SIGALRM in {_FORK_ENDS} s",
        ["legal: forks that end by os._exit, as those of multiprocessing do"],
        help=repair,
    )


def _begun(MPI, job, launch):
    """Who ends MPI; and whether what the program has begun serves ranks. Raises DeviceError `distributed.mpi.ended`, `distributed.mpi.threads` or `distributed.child` where it does not."""
    global _begun_in, _watch
    if _begun_in not in (None, os.getpid()):
        raise _no_rank(_begun_in, launch)
    if MPI.Is_finalized():
        raise error(
            weft.DeviceError,
            "distributed.mpi.ended",
            "MPI has ended in this process, and begins once only",
            help="leave MPI.Finalize() out, or call it after the last shutdown()",
        )
    if MPI.Is_initialized() and MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise error(
            weft.DeviceError,
            "distributed.mpi.threads",
            f"the program has begun MPI for threads of level {MPI.Query_thread()}",
            [
                f"legal: level {MPI.THREAD_MULTIPLE}, MPI.THREAD_MULTIPLE; a thread of init() looks for failures"
            ],
            help='call init() first, or mpi4py.rc(thread_level="multiple") before mpi4py.MPI is imported',
        )
    if _begun_in is None:
        _begun_in = os.getpid()
        if not MPI.Is_initialized():
            atexit.register(_finalize, os.getpid())
        elif sys.modules["mpi4py"].rc.finalize is not False:
            repair = "call init() before mpi4py.MPI is imported, or end the fork by os._exit"
            atexit.register(_end_fork, os.getpid(), "MPI", repair)
        atexit.register(_hear_out, os.getpid())
    _watch = job.watch


def _mpi(job, launch, timeout):
    _process_manager(os.environ)
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            mpi4py.rc.initialize = mpi4py.rc.finalize = False
        MPI = _imported(job, "mpi4py.MPI")
    except weft.Error:
        raise
    except (ImportError, RuntimeError) as problem:
        raise error(
            weft.DeviceError,
            "distributed.mpi.absent",
            f"MPI's launcher has started this process, and mpi4py cannot be imported in it: {problem}",
            help="pip install mpi4py; where its wheel does not find the launcher's MPI: MPICC=mpicc.mpich (or mpicc.openmpi) pip install --no-binary mpi4py mpi4py",
        ) from None
    from .mpi import Mpi

    _begun(MPI, job, launch)
    begun = time.perf_counter()

    def look():
        if time.perf_counter() - begun > timeout:
            reason = job.watch.absent() or "MPI has not begun"
            raise _cannot_join(launch, "", f"{reason} after {timeout:g} s", "all ranks must call init(); init(timeout=...) waits longer")  # fmt: skip

    def meet():
        if not MPI.Is_initialized():
            _initialize(MPI)
        world = MPI.COMM_WORLD
        world.Set_errhandler(MPI.ERRORS_RETURN)
        if world.size != launch.size:
            raise error(
                weft.DeviceError,
                "distributed.start",
                f"the launcher has started {launch.size} processes, and MPI knows {world.size}",
                help="mpi4py uses another MPI than the launcher's: MPI4PY_MPIABI=mpich or openmpi (mpi4py 4), or pip install --no-binary mpi4py mpi4py",
            )
        every = world.allgather(_identity(job))  # by mpi4py: ranks of other versions do the same
        own = world.Dup()  # messages that a job has left behind do not come to the next one
        return Mpi(own, list(range(world.size)), job), every, MpiBoard(world)

    host, every, job.watch.board = job.watch.run(meet, look)
    return host, every
